# SPDX-License-Identifier: BSD-3-Clause
"""`fpmctl audit` compares more than gateways: what next hops push, MTUs of routes, interfaces. A script
that answers as vtysh plays zebra."""

import json
import shlex

import pytest

from lib import fpm_speaker as fpm
from lib.wait import eventually
from test_audit import HEAD, NET
from test_headend import ENCAP, SIDS, announce

SCRIPT = """#!/bin/sh
shift
case "$*" in
"show ip route vrf all") cat {dir}/table ;;
"show ipv6 route vrf all") ;;
*summary*) echo '{{"routes": []}}' ;;
*" {net} json") cat {dir}/prefix ;;
*) echo '{{}}' ;;
esac
"""


@pytest.fixture
def audit(dut, tmp_path):
    """Return a function audit(*words, words_of_hop=None, **members). It runs an audit with a zebra that has
    a route for NET by the next hop, if there is one. Returns the exit code and the text in one line."""
    script = tmp_path / "vtysh"
    script.write_text(SCRIPT.format(dir=shlex.quote(str(tmp_path)), net=NET))

    def run(*words, line="", **members):
        hop = {"fib": True, "weight": 1} | members
        known = {"selected": True, "installed": True, "protocol": "bgp", "nexthops": [hop]}
        (tmp_path / "prefix").write_text(json.dumps({NET: [known]} if line else {}))
        (tmp_path / "table").write_text(line and f"{HEAD}B>* {NET} [20/0] {line}, weight 1, 00:00:06\n")
        done = dut.fpmctl("audit", "--vtysh", f"sh {script}", *words)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    return run


def test_other_labels_of_an_ip_route_differ(dut, wan, audit):
    """zebra has label 300 and the dataplane 301: one sentence, and exit code 3. An implicit null is no
    difference."""
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[301]))
    hop = {"ip": wan.peer4, "interfaceName": wan.tap}
    line = f"via {wan.peer4}, {wan.tap}, label"

    code, said = audit(line=f"{line} 300", labels=[300], **hop)

    via = f"via {wan.peer4} dev {wan.tap}"
    assert code == 3, said
    assert f"DIFFERS {NET}: zebra has {via} label 300 weight 1, the dataplane has {via} label 301 weight 1" in said
    code, said = audit(line=f"{line} 301/implicit-null", labels=[301, 3], **hop)
    assert code == 0, said
    # Before the second look zebra has changed the label as well.
    code, said = audit(line=f"{line} 300", labels=[301], **hop)
    assert code == 0, said


def test_another_segment_of_an_ip_route_differs(dut, wan, audit):
    """zebra and the dataplane have different segments of a headend of SRv6, or another order of them: one
    sentence, and exit code 3."""
    announce(dut, NET, wan, SIDS[:2], ENCAP)
    hop = {"ip": wan.peer6, "interfaceName": wan.tap}
    right, wrong = SIDS[:2], [SIDS[0], SIDS[2]]

    def said_of(sids):
        # FRR writes an address too many.
        return audit(line=f"via {wan.peer6}, {wan.tap}, seg6 {','.join(sids)}", seg6=[*sids, "6c65::"], **hop)

    code, said = said_of(wrong)

    via = f"via {wan.peer6} dev {wan.tap} H.Encaps"
    assert code == 3, said
    ours = f"the dataplane has {via} {' '.join(right)} weight 1"
    assert f"DIFFERS {NET}: zebra has {via} {' '.join(wrong)} weight 1, {ours}" in said
    assert said_of(right)[0] == 0
    assert said_of(right[::-1])[0] == 3


def test_segments_of_a_route_of_the_kernel(dut, wan, audit):
    """A route of the kernel with `encap seg6` is equal. If the dataplane has lost it, the difference names
    its segments."""
    prefix = "2001:db8:5e60::/48"
    dut.ip(f"-6 route add {prefix} encap seg6 mode encap segs {','.join(SIDS[:2])} dev {wan.tap}")
    try:
        eventually(lambda: dut.route_row(prefix), 5, 0.01)
        code, said = audit()
        assert code == 0, said
        dut.control.request({"break": "route", "prefix": prefix})
        code, said = audit()
        assert code == 3, said
        text = f"the kernel has dev {wan.tap} H.Encaps {' '.join(SIDS[:2])} weight 1, the dataplane has"
        assert f"DIFFERS {prefix}: {text} no route" in said
    finally:
        dut.ip(f"-6 route del {prefix}")


def test_another_mtu_of_a_route_differs(dut, wan, audit):
    """zebra's copy in the kernel has an MTU that the route of the dataplane lacks. Routes of the kernel with
    an MTU are equal, also if the MTU is locked or below the minimum of the family."""
    routes = [f"198.18.1.0/24 via {wan.peer4} mtu lock 1400", f"198.18.2.0/24 via {wan.peer4} mtu 60"]
    copy = f"{NET} via {wan.peer4} dev {wan.tap} proto bgp metric 20"
    hop = {"ip": wan.peer4, "interfaceName": wan.tap, "line": f"via {wan.peer4}, {wan.tap}"}
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.ip(*(f"route add {route}" for route in [*routes, copy]))
    try:
        eventually(lambda: dut.route_row("198.18.2.0/24"), 5, 0.01)
        code, said = audit(**hop)
        assert code == 0, said
        dut.ip(f"route replace {copy} mtu 1400")
        code, said = audit(**hop)
    finally:
        dut.ip(*(f"route del {route}" for route in [*routes, copy]))
    via = f"via {wan.peer4} dev {wan.tap} weight 1"
    assert code == 3, said
    assert f"DIFFERS {NET}: zebra's copy in the kernel has {via}, mtu 1400, zebra and the dataplane have {via}" in said
