# SPDX-License-Identifier: BSD-3-Clause
"""`fpmctl audit` compares more than gateways: labels and segments of next hops, MTUs of routes, interfaces. A
script takes the place of vtysh."""

import json
import shlex

import pytest

from impostor import Impostor
from lib import api, netns
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
    """For a kernel route with `encap seg6` in the FIB, the audit finds no difference. If the dataplane has
    lost the route, the difference names its segments."""
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


# --- interfaces ---------------------------------------------------------------------------------


def test_interfaces_in_every_state_are_equal(dut, lan, wan, alt, audit):
    """The audit finds interfaces equal to the kernel's: macvlans, a smaller MTU, an IPv6 MTU, IPv6
    and forwarding switched off, a TAP and macvlans that are down. tests/vm/test_links_random.py has VLANs and
    tunnels."""
    dut.ip(
        f"link add vr5 link {lan.tap} address 00:00:5e:00:01:05 type macvlan mode bridge",
        f"link add vr6 link {lan.tap} type macvlan mode bridge",
        f"link add vr7 link {alt.tap} type macvlan mode bridge",
        "link set vr5 mtu 1400 up",
        "link set vr6 up protodown on",
        "link set vr7 up",
        f"link set {alt.tap} down",
    )
    off = {f"net.ipv6.conf.{lan.tap}.disable_ipv6": 1, f"net.ipv4.conf.{wan.tap}.forwarding": 0}
    netns.sysctl(dut.ctl, off | {f"net.ipv6.conf.{wan.tap}.mtu": 1300})
    try:
        eventually(lambda: {"vr5", "vr6", "vr7"} <= served(dut).keys(), 5, 0.01)
        code, said = audit()
    finally:
        dut.ip(*(f"link del {name}" for name in ("vr5", "vr6", "vr7")), f"link set {alt.tap} up")
        netns.sysctl(dut.ctl, dict.fromkeys(off, 0) | {f"net.ipv6.conf.{wan.tap}.mtu": 1500})
        netns.sysctl(dut.ctl, {f"net.ipv4.conf.{wan.tap}.forwarding": 1})
        eventually(lambda: dut.port_row(alt)["link"] == "up", 5, 0.01)
    assert code == 0, said
    assert "interfaces compared with the kernel's: 0 settings differ" in said


def served(dut):
    """Return the settings of the interfaces of the forwarders, by name."""
    return {row["name"]: row["forwarders"] for row in dut.control.ask("interfaces") if "forwarders" in row}


@pytest.fixture
def altered(dut, tmp_path):
    """Return a function altered(change, show). It runs an audit of the daemon, in whose rows of `show`
    change(rows) has altered something. Returns the exit code, the text in one line, and the JSON."""
    path = str(tmp_path / "impostor.sock")
    change, altered_rows = [None], [None]

    def answer(request):
        rows = dut.control.request(request)
        if request.get("show") == altered_rows[0]:
            change[0](rows)
        return rows

    def run(new, show="interfaces"):
        change[0], altered_rows[0] = new, show
        script = tmp_path / "vtysh"
        script.write_text("case \"$*\" in *summary*) echo '{\"routes\": []}' ;; *) echo '{}' ;; esac\n")
        done = dut.fpmctl("audit", "--vtysh", f"sh {script}", socket_path=path)
        told = json.loads(dut.fpmctl("--json", "audit", "--vtysh", f"sh {script}", socket_path=path).stdout)
        api.validate(told, {"$ref": "#/components/schemas/FpmctlAudit"})
        return done.returncode, " ".join((done.stdout + done.stderr).split()), told

    impostor = Impostor(path, answer)
    yield run
    impostor.close()


def test_a_dead_next_hop_is_compared(dut, wan, alt, altered):
    """Linux has marked a next hop as dead, because its link has lost its last IPv4 address. The audit finds
    no difference; but it does if the dataplane does not know it."""
    prefix, own = "198.18.3.0/24", f"{alt.ip4}/26 dev {alt.tap}"
    hops = [f"via {wan.peer4} dev {wan.tap}", f"via inet6 {alt.peer6} dev {alt.tap}"]

    def dead():
        return [hop["kernel_dead"] for hop in dut.route_row(prefix)["nexthops"]]

    def alive(rows):
        for hop in (hop for row in rows for hop in row.get("nexthops", [])):
            hop["kernel_dead"] = False

    dut.ip(f"route add {prefix} nexthop {hops[0]} nexthop {hops[1]}", f"addr del {own}")
    try:
        eventually(lambda: sorted(dead()) == [False, True], 5, 0.01)
        code, said, _ = altered(lambda rows: None, "routes")
        assert code == 0, said
        code, said, _ = altered(alive, "routes")
    finally:
        dut.ip(f"route del {prefix}", f"addr add {own}")
        dut.kernel_defaults()
    shown = [hops[0] + " weight 1", hops[1].replace("inet6 ", "") + " weight 1"]
    assert code == 3, said
    assert f"{shown[1]} dead" in said and f"the dataplane has {shown[0]}; {shown[1]}" in said, said


# setting of the daemon, its wrong value: setting in the audit, value of the kernel, wrong value as text
WRONG = {
    ("mac", "02:00:00:00:00:99"): ("mac", None, "02:00:00:00:00:99"),
    ("up", False): ("up", "up", "down"),
    ("mtu", 1400): ("mtu", "1500", "1400"),
    ("mtu6", 1280): ("ipv6-mtu", "1500", "1280"),
    ("ipv6", False): ("ipv6", "on", "off"),
    ("forwarding4", False): ("forwarding4", "on", "off"),
    ("forwarding6", False): ("forwarding6", "on", "off"),
    ("speed_mbit", 100): ("speed", "10000", "100"),
}


@pytest.mark.parametrize("key, value", WRONG)
def test_each_setting_of_an_interface_is_compared(dut, wan, altered, key, value):
    """One setting of the forwarders is not that of the kernel: a line, exit code 3, and a row."""
    setting, kernel, rib = WRONG[key, value]
    kernel = kernel or wan.port_mac

    def change(rows):
        next(row for row in rows if row["name"] == wan.tap)["forwarders"][key] = value

    code, said, told = altered(change)

    assert code == 3 and "NOT equal." in said, said
    assert f"interface {wan.tap}: DIFFERS {setting}: the kernel has {kernel}, the dataplane has {rib}" in said
    assert "1 setting differs" in said
    row = {"what": "interface", "interface": wan.tap, "setting": setting, "kernel": kernel, "rib": rib}
    assert (told["equal"], told["differences"]) == (False, [row])
    assert told["interfaces"] == len(served(dut))


def test_an_interface_that_one_side_lacks_differs(dut, lan, altered):
    """The dataplane lacks a macvlan, or has an interface that the kernel lacks. A macvlan of mode source is
    no difference."""
    dut.ip(
        f"link add vr5 link {lan.tap} type macvlan mode bridge",
        f"link add vr6 link {lan.tap} type macvlan mode source",
    )
    try:
        eventually(lambda: "vr5" in served(dut), 5, 0.01)

        def change(rows):
            rows[:] = [row for row in rows if row["name"] != "vr5"]
            rows.append(next(row for row in rows if row["name"] == lan.tap) | {"name": "gone0", "ifindex": 999999})

        code, said, told = altered(change)
    finally:
        dut.ip("link del vr5", "link del vr6")
    assert code == 3, said
    assert "interface vr5: DIFFERS present: the kernel has on, the dataplane has off" in said
    assert "interface gone0: DIFFERS present: the kernel has off, the dataplane has on" in said
    assert len(told["differences"]) == 2, told


def test_a_tap_that_is_down_takes_the_link_below(dut, wan, altered):
    """A TAP is down, but the interface below the port has a link. The audit reports it, because the far
    end notices no loss of the link."""

    def change(rows):
        next(row for row in rows if row["name"] == wan.tap)["forwarders"]["link"] = True

    dut.ip(f"link set {wan.tap} down")
    try:
        eventually(lambda: not served(dut)[wan.tap]["up"], 5, 0.01)
        code, said, _ = altered(change)
    finally:
        dut.ip(f"link set {wan.tap} up")
        eventually(lambda: dut.port_row(wan)["link"] == "up", 5, 0.01)
    assert code == 3, said
    assert f"interface {wan.tap}: DIFFERS link-below: the kernel has off, the dataplane has on" in said


def test_settings_that_are_not_obeyed_are_counted(dut, audit):
    """A chain of nft at a hook that is not obeyed is not a difference. The audit counts it as a warning."""
    before = len(dut.control.ask("warnings"))
    code, said = audit()
    assert code == 0 and ("not obeyed" in said) == (before > 0), said
    netns.run(dut.ctl, ["nft", "add table ip t; add chain ip t c { type filter hook forward priority 0; policy drop; }"])
    try:
        eventually(lambda: len(dut.control.ask("warnings")) > before, 10, 0.05)
        code, said = audit()
        told = json.loads(audit("--json")[1])
    finally:
        netns.run(dut.ctl, ["nft", "delete table ip t"])
        eventually(lambda: len(dut.control.ask("warnings")) == before, 10, 0.05)
    assert code == 0 and "Equal." in said, said
    n = before + 1
    settings = "1 setting of the kernel is" if n == 1 else f"{n} settings of the kernel are"
    assert f"warning {settings} not obeyed: fpmctl show warnings" in said
    assert (told["equal"], told["warnings"]) == (True, n)
