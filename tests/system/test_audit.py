# SPDX-License-Identifier: BSD-3-Clause
"""`fpmctl audit` compares zebra, the RIB and the FIB. A script that answers as vtysh 8.4 does plays
zebra; test_frr.py uses the real zebra."""

import json
import os
import shlex
import socket
import struct

import pytest

from impostor import Impostor
from lib import api, frr, netns
from lib import fpm_speaker as fpm
from lib.wait import eventually

HEAD = """Codes: K - kernel route, C - connected, S - static, R - RIP,
       > - selected route, * - FIB route, q - queued, r - rejected, b - backup

"""
NET, NET6 = "198.51.100.0/24", "2001:db8:f000::/36"

SCRIPT = """#!/bin/sh
shift
case "$*" in
"show ip route vrf all") cat {dir}/ip ;;
"show ipv6 route vrf all") cat {dir}/ipv6 ;;
*" vrf lost "*) cat {dir}/lost ;;
*summary*) echo '{{"routes": []}}' ;;
*) echo '{{}}' ;;
esac
"""


def rule_rows(*more):
    """Return the rows of `show rules` for the rules that each kernel has, and for the IPv4 rules (pref,
    table) of `more` between them."""
    none = dict.fromkeys(
        ("iif", "tos", "ip_protocol", "sport", "dport", "target", "suppress_prefixlength", "suppress_ifgroup", "lacks")
    )
    pairs = [(4, 0, 255), *((4, *pair) for pair in more), (4, 32766, 254), (4, 32767, 253), (6, 0, 255), (6, 32766, 254)]
    return [
        {"family": f"ipv{family}", "pref": pref, "not": False, "from": "all", "to": "all", "action": "lookup"}
        | {"table": table, "obeyed": True}
        | none
        for family, pref, table in pairs
    ]


@pytest.fixture
def vtysh(tmp_path):
    """Return a function vtysh(ipv4, ipv6). It returns a command that answers as the vtysh of a zebra
    with these lines of routes."""

    def make(ipv4="", ipv6=""):
        # vtysh prints nothing for an empty table, not even the heading.
        (tmp_path / "ip").write_text(ipv4 and HEAD + ipv4)
        (tmp_path / "ipv6").write_text(ipv6 and HEAD + ipv6)
        script = tmp_path / "vtysh"
        script.write_text(SCRIPT.format(dir=shlex.quote(str(tmp_path))))
        return f"sh {script}"

    return make


def audit(dut, vtysh, *words):
    """Run one audit. Returns (exit code, stdout, stderr)."""
    done = dut.fpmctl("audit", "--vtysh", vtysh, *words)
    return done.returncode, done.stdout, done.stderr


def test_a_vrf_that_only_zebra_has_is_told(dut, lan, vtysh, tmp_path):
    """The daemon has no VRF, for example because it has lost its only VRF. The audit reports the
    routes of zebra's VRF as differences."""
    dut.route(NET, via=lan.peer4, wire=lan)
    line = f"S>* {NET} [1/0] via {lan.peer4}, {lan.tap}, weight 1, 00:00:06\n"
    zebra = vtysh(f"\nVRF default:\n{line}\nVRF lost:\n{line}")
    hops = [{"fib": True, "ip": lan.peer4, "interfaceName": lan.tap, "weight": 1}]
    known = {"selected": True, "installed": True, "protocol": "static", "nexthops": hops}
    (tmp_path / "lost").write_text(json.dumps({NET: [known]}))

    code, out, err = audit(dut, zebra)

    assert (code, err) == (3, "")
    has = f"via {lan.peer4} dev {lan.tap} weight 1"
    assert out.splitlines()[0] == f"VRF lost: DIFFERS {NET}: zebra has {has}, the dataplane has no route"
    assert "zebra   2 routes in table main and 1 VRF\n" in out


@pytest.mark.smoke
def test_equal_tables_are_equal_in_every_spelling(dut, lan, wan, vtysh):
    """The audit finds equal tables equal: gateways, on-link routes, several next hops in any order,
    rejects. It compares routes of the kernel with the kernel, not with zebra, and leaves out routes
    that are not selected, and those of link-local prefixes, which the dataplane does not take."""
    dut.zebra.hop(wan.peer4, wan, nhid=1)
    dut.zebra.hop(lan.peer4, lan, nhid=2)
    dut.zebra.group([1, 2], nhid=3)
    dut.zebra.add(NET, 3)
    dut.route("203.0.113.0/25", rtm_type=6)
    dut.ip("route replace unreachable 203.0.113.128/25 metric 8192")
    eventually(lambda: dut.route_row("203.0.113.128/25"), 5, 0.01)
    dut.route(NET6, via=wan.peer6, wire=wan)
    zebra = vtysh(
        f"C>* 192.0.2.0/24 is directly connected, {wan.tap}, 00:00:07\n"
        f"O   192.0.2.0/24 [110/10] is directly connected, {wan.tap}, weight 1, 00:00:07\n"
        f"B>* {NET} [20/0] via {lan.peer4}, {lan.tap}, weight 1, 00:00:06\n"
        f"  *                   via {wan.peer4}, {wan.tap}, weight 1, 00:00:06\n"
        f"S   {NET} [200/0] via {wan.peer4}, {wan.tap}, weight 1, 00:00:06\n"
        "S>* 203.0.113.0/25 [1/0] unreachable (blackhole), weight 1, 00:00:01\n"
        "K>* 203.0.113.128/25 [255/8192] unreachable (ICMP unreachable), 00:00:01\n"
        "K>* 0.0.0.0/0 is directly connected, eth0, 00:00:07\n",
        f"B>* {NET6} [20/0] via {wan.peer6}, {wan.tap}, weight 1, 00:00:06\n"
        "S>* fe80::/10 [1/0] unreachable (blackhole), weight 1, 00:00:07\n"
        "C * fe80::/64 is directly connected, lan0, 00:00:08\n",
    )

    code, out, _ = audit(dut, zebra)

    assert (code, out.splitlines()[-1].split(" (")[0]) == (0, "Equal."), out
    assert out.startswith("zebra   3 routes\n")
    assert " the kernel's: 0 differ" in out
    dut.ip("route del unreachable 203.0.113.128/25 metric 8192")
    eventually(lambda: not dut.route_row("203.0.113.128/25"), 5, 0.01)


def test_every_kind_of_difference_is_told(dut, wan, vtysh):
    """The audit reports an extra route and a route with another next hop, one line for each, with exit
    code 3. It looks each difference up again, and does not report a route that zebra lost meanwhile."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route("198.18.0.0/24", via=wan.peer4, wire=wan)
    line = f"via {wan.peer4}, {wan.tap}, weight 1, 00:00:06"
    other = f"via 192.0.2.99, {wan.tap}, weight 1, 00:00:06"
    zebra = vtysh(f"S>* {NET} [1/0] {other}\nS>* 198.18.9.0/24 [1/0] {line}\n")

    code, out, _ = audit(dut, zebra)

    # The script reports no route when fpmctl asks it by prefix.
    has = f"the dataplane has via {wan.peer4} dev {wan.tap} weight 1"
    assert code == 3
    assert f"DIFFERS {NET}: zebra has no route, {has}" in out
    assert f"DIFFERS 198.18.0.0/24: zebra has no route, {has}" in out
    assert "198.18.9.0/24" not in out  # zebra says, when asked again, that the route is gone
    assert "2 differ" in out and "NOT equal." in out


def test_many_differences_are_told_from_a_sample(dut, wan, vtysh, tmp_path):
    """With more than 200 differences, as after a restart of zebra without its routes, the audit looks 20
    of them up again. All 20 remain, so it only counts the others. An earlier version looked up 200, one
    after the other."""
    nhid = dut.zebra.hop(wan.peer4, wan)
    for i in range(300):
        dut.zebra.add(f"198.18.{i // 256}.{i % 256}/32", nhid)
    eventually(lambda: dut.route_row("198.18.1.43/32"), 5, 0.05)
    zebra = vtysh()
    asked = tmp_path / "asked"
    (tmp_path / "vtysh").write_text(f"#!/bin/sh\necho \"$*\" >>{asked}\n" + SCRIPT.format(dir=tmp_path))

    code, out, _ = audit(dut, zebra)

    assert code == 3
    assert "280 more differ (not verified by a second query)" in out
    assert "300 differ" in out and out.count("DIFFERS 198.18.0.") == 20
    assert asked.read_text().count("198.18.") == 3 * 20


def test_what_the_kernel_refused_is_no_difference(dut, wan, vtysh):
    """In zebra a route stays selected if the kernel refused it. A replay contains this route, and a live
    update does not. The audit reports no difference."""
    dut.route(NET, via=wan.peer4, wire=wan)
    line = f"via {wan.peer4}, {wan.tap}, weight 1, 00:00:06"
    zebra = vtysh(f"S>r {NET} [1/0] {line}\nS>q 198.18.9.0/24 [1/0] {line}\n")

    code, out, _ = audit(dut, zebra)

    assert code == 0, out
    assert "2 of them refused by the kernel or not installed yet" in out


def test_an_ipv6_route_by_an_ipv4_next_hop_is_without_it_in_the_kernel(dut, wan, vtysh):
    """6PE: zebra has to leave the IPv4 gateway out of its copy in the kernel. The audit reports no
    difference. It reports one if the copy leads to another interface."""
    dut.route(NET6, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300]))
    zebra = vtysh(
        ipv6=f"B>  {NET6} [200/0] via ::ffff:192.0.2.99 (recursive), label implicit-null, weight 1, 00:00:06\n"
        f"  *                      via {wan.peer4}, {wan.tap}, label 300/implicit-null, weight 1, 00:00:06\n"
    )
    dut.ip(f"-6 route add {NET6} dev {wan.tap} proto bgp metric 20")

    code, out, _ = audit(dut, zebra)

    assert code == 0, out
    assert out.startswith("zebra   1 route\n")
    dut.ip(f"-6 route del {NET6}", f"-6 route add {NET6} dev lo proto bgp metric 20")
    code, out, _ = audit(dut, zebra)
    assert code == 3, out
    assert f"DIFFERS {NET6}: " in out
    dut.ip(f"-6 route del {NET6}")


def test_a_broken_fib_is_found_and_repaired(dut, wan, vtysh):
    """The audit compares the tables of the forwarders, not only the RIB. --repair corrects these
    tables."""
    dut.route(NET, via=wan.peer4, wire=wan)
    line = f"via {wan.peer4}, {wan.tap}, weight 1, 00:00:06"
    zebra = vtysh(f"S>* {NET} [1/0] {line}\n")

    for what in ("table", "group"):
        dut.control.request({"break": what, "prefix": NET})
        code, out, _ = audit(dut, zebra, "--json")
        found = json.loads(out)
        api.validate(found, {"$ref": "#/components/schemas/FpmctlAudit"})
        assert (code, found["equal"]) == (3, False)
        assert what in {row["what"] for row in found["differences"]}
        assert audit(dut, zebra, "--repair")[0] == 3
        eventually(lambda: audit(dut, zebra)[0] == 0, 3, what="the FIB is mended")


def test_a_route_that_got_lost_is_asked_for_again(dut, wan, vtysh):
    """--repair makes zebra connect again and replay: the daemon takes the replayed routes as the
    truth."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.control.request({"break": "route", "prefix": NET})
    eventually(lambda: dut.route_row(NET) is None, 2)
    dut.route("198.18.0.0/24", via=wan.peer4, wire=wan)
    closes = dut.fpm()["closes"]

    code, out, _ = audit(dut, vtysh(), "--repair")

    assert code == 3
    assert "asked for a replay" in out
    eventually(lambda: dut.fpm()["closes"] == closes + 1, 3, what="the session is closed")
    dut.zebra.close()
    dut.zebra.connect()
    dut.route(NET, via=wan.peer4, wire=wan)


@pytest.mark.parametrize(
    "command", ["nosuch-command", "false", "true", "echo hello", "sh -c exit"]
)
def test_a_zebra_that_does_not_answer_is_no_verdict(dut, command):
    """When zebra does not answer, the audit prints one sentence and exits with 1. It does not print
    a list of a million differences."""
    code, out, err = audit(dut, command)

    assert (code, out) == (1, "")
    assert err.startswith("fpmctl: ") and len(err.splitlines()) == 1


def test_replay_needs_a_zebra(dut):
    """`fpmctl replay` without a session says so."""
    dut.zebra.close()
    eventually(lambda: not dut.fpm()["connected"], 3)

    done = dut.fpmctl("replay")

    assert (done.returncode, done.stdout) == (3, "")
    assert "zebra is not connected" in done.stderr
    dut.zebra.connect()


def test_only_tests_may_break(own_dut, monkeypatch):
    """Without FPM_DATAPLANE_TEST_HOOKS in the environment, the daemon does not know the key `break`."""
    monkeypatch.delenv("FPM_DATAPLANE_TEST_HOOKS")
    router = own_dut()
    router.start()

    with pytest.raises(LookupError, match="unknown key 'break'"):
        router.control.request({"break": "route", "prefix": NET})


VRF_SCRIPT = """#!/bin/sh
shift
case "$*" in
"show ip route vrf all") cat {dir}/all ;;
"show ipv6 route vrf all") ;;
*summary*) echo '{{"routes": []}}' ;;
*" {blue} 198.51.102.0/24 json") cat {dir}/lost ;;
*) echo '{{}}' ;;
esac
"""


def packed(rows):
    """Return rows of routes as the daemon packs them for an audit."""
    return [row | {"prefixes": [row["prefix"]], "hidden": False} for row in rows]


def hop(via, dev):
    return [{"via": via, "dev": dev, "weight": 1, "alive": True, "adj": 1}]


@pytest.mark.parametrize("blue, shown", [("blue", "blue"), ("b\x1b[2Jue", "b?[2Jue")])
def test_each_vrf_is_compared_and_differences_are_told_by_name(dut, tmp_path, blue, shown):
    """The audit compares each VRF: the same prefix in several VRFs, a leaked route, a route missing
    in one VRF, a VRF that only zebra has. The kernel here has no VRF, so an impostor plays the
    daemon, in a namespace without addresses. fpmctl asks zebra and the daemon by the exact name of a
    VRF, and prints names without their control characters."""
    route = {"prefix": NET, "source": "zebra", "type": "unicast", "state": "forwarding"}
    tables = {"red": 100, blue: 2000, "green": 3000}
    rows = {
        None: [route | {"table": 254, "nexthops": hop("192.0.2.2", "lan0")}],
        "red": [route | {"table": 100, "nexthops": hop("10.0.2.2", "ext0")}],
        blue: [route | {"table": 2000, "nexthops": hop("10.0.2.2", "ext0")}],
        "green": [],
    }

    def answer(request):
        if request["show"] == "version":
            return [{"routes_from": "both", "control_netns": dut.far}]
        if request["show"] == "vrfs":
            return [{"name": name, "table": table} for name, table in tables.items()]
        if request["show"] == "rules":
            return rule_rows()
        if request["show"] in ("interfaces", "warnings"):
            return []
        if request["show"] == "audit":
            zero = {"prefixes": 3, "lookups": 15, "groups": 2, "differences": 0}
            return [{"what": "checked", **zero}]
        if request.get("of") == "each":
            return packed(row for of_vrf in rows.values() for row in of_vrf)
        found = rows[request.get("vrf")]
        return [r for r in found if request.get("prefix") == r["prefix"]]

    nexthop = {"fib": True, "ip": "10.0.2.2", "interfaceName": "ext0", "weight": 1}
    known = {
        "selected": True,
        "installed": True,
        "protocol": "static",
        "nexthops": [nexthop],
    }
    (tmp_path / "lost").write_text(json.dumps({"198.51.102.0/24": [known]}))
    text = (
        "\nVRF default:\n"
        f"S>* {NET} [1/0] via 192.0.2.2, lan0, weight 1, 00:00:06\n"
        "\nVRF red:\n"
        "C>* 10.0.1.0/24 is directly connected, lan0, 00:00:07\n"
        f"S>* {NET} [1/0] via 10.0.2.2, ext0 (vrf {blue}), weight 1, 00:00:06\n"
        f"\nVRF {blue}:\n"
        f"S>* {NET} [1/0] via 10.0.2.2, ext0, weight 1, 00:00:06\n"
    )
    lost = "S>* 198.51.102.0/24 [1/0] via 10.0.2.2, ext0, weight 1, 00:00:06\n"
    script = tmp_path / "vtysh"
    script.write_text(VRF_SCRIPT.format(dir=shlex.quote(str(tmp_path)), blue=blue))
    path = str(tmp_path / "impostor.sock")
    ask = ["audit", "--vtysh", f"sh {script}"]
    impostor = Impostor(path, answer)
    try:
        (tmp_path / "all").write_text(HEAD + text)
        same = dut.fpmctl(*ask, socket_path=path)
        (tmp_path / "all").write_text(HEAD + text + lost)
        differs = dut.fpmctl(*ask, socket_path=path)
        told = json.loads(dut.fpmctl("--json", *ask, socket_path=path).stdout)
    finally:
        impostor.close()

    assert same.returncode == 0, same.stdout + same.stderr
    assert same.stdout.startswith("zebra   3 routes in table main and 3 VRFs\n")
    assert differs.returncode == 3, differs.stdout + differs.stderr
    line = "via 10.0.2.2 dev ext0 weight 1"
    assert differs.stdout.splitlines()[0] == (
        f"VRF {shown}: DIFFERS 198.51.102.0/24: zebra has {line}, the dataplane has no route"
    )
    assert [(d["vrf"], d["prefix"]) for d in told["differences"]] == [
        (shown, "198.51.102.0/24")
    ]


@pytest.mark.parametrize("words", [[], ["--vtysh", "false"]])
def test_without_the_control_namespace_nothing_is_compared(dut, tmp_path, words):
    """If fpmctl cannot enter the namespace of the TAPs, the audit ends with code 1 and the reason. It
    does not compare with the tables of the namespace in which fpmctl runs, and repairs nothing.
    """
    asked = []

    def answer(request):
        asked.append(request["show"])
        return [{"routes_from": "both", "control_netns": "none-such"}]

    path = str(tmp_path / "impostor.sock")
    impostor = Impostor(path, answer)
    try:
        done = dut.fpmctl("audit", "--repair", *words, socket_path=path)
    finally:
        impostor.close()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "fpmctl: cannot enter the network namespace of the TAPs (/run/netns/none-such): "
        "No such file or directory\n"
    )
    assert set(asked) == {"version"}


def test_the_kernel_is_asked_in_the_control_namespace(dut, wan, vtysh):
    """The audit reads the kernel's tables in the namespace of the TAPs, also with --vtysh and when
    fpmctl runs in another namespace, which has none of the prefixes."""
    with netns.entered(dut.far):
        code, out, err = audit(dut, vtysh(), "--json")
    assert code == 0, out + err
    assert json.loads(out)["kernel_prefixes"] > 0


# --- tables of rules, source-specific routes ------------------------------------------------


@pytest.fixture
def lines(dut):
    """A function that runs `ip` commands that add objects, for the length of a test."""
    undo = []

    def add(*commands):
        dut.ip(*commands)
        for line in commands:
            words = line.replace(" add ", " del ", 1).split()
            undo.insert(0, " ".join(words[: 4 if words[0] == "nexthop" else None]))

    yield add
    dut.ip(*undo)


TABLE_NETS = ["198.51.100.0/24", "2001:db8:100::/48"]
FROM_NET, SOURCE = "2001:db8:200::/48", "2001:db8:9::/48"


def differing(dut, vtysh, prefix):
    """Run an audit until it names a difference of `prefix`. Returns that line of text."""

    def find():
        code, out, err = audit(dut, vtysh())
        assert code in (0, 3), out + err
        return [line for line in out.splitlines() if prefix in line]

    return eventually(find, 5, what=f"a difference of {prefix}")[0]


def assert_equal(dut, vtysh):
    """Run audits until one finds no difference. Returns it as --json shows it."""

    def equal():
        code, out, _ = audit(dut, vtysh(), "--json")
        found = json.loads(out)
        api.validate(found, {"$ref": "#/components/schemas/FpmctlAudit"})
        return found if code == 0 else None

    return eventually(equal, 5, what="an audit without a difference")


def test_tables_of_rules_and_routes_for_sources_are_equal_in_every_spelling(
    dut, wan, ext, vtysh, lines
):
    """The audit finds the tables of rules equal to the kernel's: gateways, several next hops,
    metrics, rejects, throw, MTU, next-hop objects, and source-specific routes in main and in a
    table of rules."""
    before = assert_equal(dut, vtysh)["kernel_prefixes"]
    hops = [f"nexthop via {wire.peer4} dev {wire.tap} weight 2" for wire in (wan, ext)]
    lines(
        "rule add pref 100 from 192.0.2.2 lookup 100",
        "rule add pref 101 from all lookup main suppress_prefixlength 0",
        "-6 rule add pref 100 iif lan0 lookup 100",
        f"nexthop add id 77 via {ext.peer4} dev {ext.tap}",
        f"route add {TABLE_NETS[0]} via {ext.peer4} dev {ext.tap} table 100",
        f"route add {TABLE_NETS[0]} via {wan.peer4} dev {wan.tap} table 100 metric 7",
        f"route add 203.0.113.0/25 table 100 {' '.join(hops)}",
        "route add 203.0.113.128/26 nhid 77 table 100",
        "route add prohibit 203.0.113.192/27 table 100",
        "route add throw 203.0.113.224/28 table 100",
        f"route add default via {wan.peer4} dev {wan.tap} mtu lock 1400 table 100",
        f"-6 route add {TABLE_NETS[1]} via {ext.peer6} dev {ext.tap} table 100",
        f"-6 route add {FROM_NET} from {SOURCE} via {ext.peer6} dev {ext.tap}",
        f"-6 route add {FROM_NET} via {wan.peer6} dev {wan.tap}",
        f"-6 route add {FROM_NET} from {SOURCE} via {wan.peer6} dev {wan.tap} table 100",
        f"-6 route add default from {SOURCE} via {wan.peer6} dev {wan.tap} table 100",
        f"route add {TABLE_NETS[0]} tos 0x10 via {ext.peer4} dev {ext.tap}",
        f"route add {TABLE_NETS[0]} tos 0x08 nhid 77 table 100",
        f"route add blackhole {TABLE_NETS[0]} tos 0x04",
        f"route add {TABLE_NETS[0]} tos 0xb8 via {ext.peer4} dev {ext.tap}",  # no packet has this TOS
    )
    assert assert_equal(dut, vtysh)["kernel_prefixes"] == before + 14


@pytest.mark.parametrize(
    "where, command, prefix",
    [
        ("table 100", "table 100", TABLE_NETS[0]),
        ("table 100", "table 100", TABLE_NETS[1]),
        (f"table main from {SOURCE}", f"from {SOURCE}", FROM_NET),
        (f"table 100 from {SOURCE}", f"from {SOURCE} table 100", FROM_NET),
        ("table main tos 0x10", "tos 0x10", TABLE_NETS[0]),
        ("table 100 tos 0x08", "tos 0x08 table 100", TABLE_NETS[0]),
    ],
)
def test_a_route_that_only_the_kernel_has_is_told(
    dut, ext, vtysh, lines, where, command, prefix
):
    """The daemon forgets a route of a table of rules, a source-specific route, or a route of a TOS.
    The audit finds that the kernel has it. Then the trie of the FIB loses it, and the audit finds that
    as well."""
    via = ext.peer6 if ":" in prefix else ext.peer4
    family = "-6 " if ":" in prefix else ""
    line = f"{prefix} {command} via {via} dev {ext.tap}"
    lines(
        "rule add pref 100 from 192.0.2.2 lookup 100",
        "-6 rule add pref 100 iif lan0 lookup 100",
        f"{family}route add {line}",
    )
    assert_equal(dut, vtysh)

    dut.control.request({"break": "route", "prefix": prefix})
    assert differing(dut, vtysh, prefix) == (
        f"{where}: DIFFERS {prefix}: the kernel has via {via} dev {ext.tap} weight 1, "
        "the dataplane has no route"
    )
    dut.ip(f"{family}route del {line}", f"{family}route add {line}")
    assert_equal(dut, vtysh)

    dut.control.request({"break": "table", "prefix": prefix})
    told = differing(dut, vtysh, prefix)
    assert told.endswith(" in the RIB, 0 in the FIB")
    assert ("table 100: " in told) == ("100" in where)
    assert audit(dut, vtysh(), "--repair")[0] == 3
    assert_equal(dut, vtysh)


@pytest.mark.parametrize(
    "selector",
    ["to 198.51.100.9", "fwmark 0/0xff", "not fwmark 1", "uidrange 0-5", "iif lan0 goto 102", "oif x0"],
)
def test_a_route_of_zebra_counts_in_the_tables_that_rules_use(dut, ext, vtysh, lines, selector):
    """A replay has no routes of other tables, so the daemon takes those of zebra from the kernel. They
    are in force if a rule leads received packets to their table. Received packets have the mark 0 and
    the user id 0, so a rule with the mark 1 leads none of them. The audit finds the kernel and the
    dataplane equal in each case."""
    lines(
        f"route add {TABLE_NETS[0]} via {ext.peer4} dev {ext.tap} proto bgp metric 20 table 101",
        "rule add pref 100 fwmark 1 lookup 101",
    )
    assert_equal(dut, vtysh)

    if "goto" in selector:
        lines("rule add pref 102 lookup 101", f"rule add pref 101 {selector}")
    else:
        lines(f"rule add pref 101 {selector} lookup 101")
    if selector == "oif x0":  # no received packet
        assert_equal(dut, vtysh)
        return

    ask = lambda: dut.control.ask("routes", prefix=TABLE_NETS[0], longest=False)  # noqa: E731
    in_force = lambda: {101: "forwarding"}.items() <= {r["table"]: r["state"] for r in ask()}.items()  # noqa: E731
    eventually(in_force, 5, 0.02, "the rule's table has it")
    assert_equal(dut, vtysh)


@pytest.mark.parametrize("net, via, six", [(TABLE_NETS[0], "peer4", ""), (TABLE_NETS[1], "peer6", "-6 ")])
def test_a_route_of_zebra_in_a_table_that_no_rule_uses_is_not_compared(dut, wan, ext, vtysh, lines, net, via, six):
    """A table that no rule names has a route of zebra and another route for one prefix. No packet uses
    them, and the audit finds no difference, before and after a rule names the table."""
    lines(
        f"{six}route add {net} via {getattr(ext, via)} dev {ext.tap} proto bgp metric 20 table 101",
        f"{six}route add {net} via {getattr(wan, via)} dev {wan.tap} metric 1024 table 101",
    )
    dut.zebra.add(net, dut.zebra.hop(getattr(ext, via), ext), table=101)
    ask = lambda: dut.control.ask("routes", prefix=net, longest=False, all_tables=True)  # noqa: E731
    eventually(lambda: [r for r in ask() if r["source"] == "zebra"], 5, 0.02, "zebra's route")
    assert_equal(dut, vtysh)
    rule = f"{six}rule add pref 100 lookup 101"
    dut.ip(rule)
    assert_equal(dut, vtysh)
    dut.ip(rule.replace(" add ", " del "))
    assert_equal(dut, vtysh)


@pytest.mark.parametrize("turn", [1, -1])
def test_table_local_precedes_main_for_a_source_and_a_tos(dut, ext, vtysh, lines, turn):
    """Linux looks up table local before main, also for source-specific routes and routes of one TOS.
    The order in which the routes were added does not matter."""
    lines(
        *[
            f"-6 route add local {FROM_NET} from {SOURCE} dev lo table local",
            f"-6 route add {FROM_NET} from {SOURCE} via {ext.peer6} dev {ext.tap}",
            f"route add local {TABLE_NETS[0]} tos 0x10 dev lo table local",
            f"route add {TABLE_NETS[0]} tos 0x10 via {ext.peer4} dev {ext.tap}",
        ][::turn]
    )
    assert_equal(dut, vtysh)
    rows = dut.control.ask("routes", all_tables=True)
    states = {row["prefix"]: row["state"] for row in rows if row.get("from") or row.get("tos")}
    assert states == {FROM_NET: "local", TABLE_NETS[0]: "local"}


def test_a_throw_in_table_local_leads_to_main(dut, ext, vtysh, lines):
    """Once the rules of IPv4 were changed, Linux looks up table main after a route of type throw in
    table local, as it always does for IPv6. The audit reports no difference, neither with other rules
    nor with the first ones again."""
    rule = "rule add pref 99 from 203.0.113.7 lookup 99"
    dut.ip(rule)
    lines(
        f"route add throw {TABLE_NETS[0]} table local",
        f"route add {TABLE_NETS[0]} via {ext.peer4} dev {ext.tap}",
        f"route add throw {TABLE_NETS[0]} tos 0x10 table local",
        f"route add blackhole {TABLE_NETS[0]} tos 0x10",
        "route add throw 203.0.113.0/24 table local",
        f"-6 route add throw {TABLE_NETS[1]} table local",
        f"-6 route add {TABLE_NETS[1]} via {ext.peer6} dev {ext.tap}",
    )
    assert_equal(dut, vtysh)
    dut.ip(rule.replace(" add ", " del "))
    assert_equal(dut, vtysh)


@pytest.mark.parametrize("table, proto", [("default", "boot metric 5"), ("101", "bgp metric 20")])
def test_a_rule_of_ipv4_uses_no_ipv6_routes_of_its_table(dut, ext, vtysh, lines, table, proto):
    """A rule of IPv4 looks up the table, and no rule of IPv6 does. Every kernel has such a rule for
    table default. The audit expects neither a FIB for the table's IPv6 routes, nor zebra's IPv6
    routes of the table in the dataplane."""
    lines(
        f"rule add pref 100 from 203.0.113.7 lookup {table}",
        f"-6 route add {TABLE_NETS[1]} via {ext.peer6} dev {ext.tap} proto {proto} table {table}",
    )
    assert_equal(dut, vtysh)


BLACKHOLE = {"type": "blackhole", "state": "blackhole", "source": "kernel", "nexthops": []}
OF_RULES = BLACKHOLE | {"prefix": TABLE_NETS[0], "table": 100}
OF_SOURCE = BLACKHOLE | {"prefix": FROM_NET, "table": 254, "from": SOURCE}
OF_VRF = BLACKHOLE | {"prefix": "198.51.102.0/24", "table": 200}


def audit_of(dut, tmp_path, answer, kernel):
    """Run the audit against an impostor of the daemon that answers by `answer`. Meanwhile the kernel of
    `dut.far` has the routes and rules that `kernel`, lines of `ip -batch`, adds."""
    path = str(tmp_path / "impostor.sock")
    netns.ip_batch(kernel, dut.far)
    impostor = Impostor(path, answer)
    try:
        return dut.fpmctl("audit", socket_path=path)
    finally:
        impostor.close()
        netns.ip_batch([line.replace(" add ", " del ", 1) for line in kernel], dut.far)


@pytest.mark.parametrize(
    "rows, told",
    [
        ([OF_RULES, OF_SOURCE, OF_VRF], None),
        (
            [OF_RULES | {"state": "not-installed"}, OF_SOURCE, OF_VRF],
            "table 100: DIFFERS 198.51.100.0/24: the kernel has blackhole, the dataplane has no FIB",
        ),
        (
            [OF_RULES, OF_RULES | {"prefix": "198.51.101.0/24"}, OF_SOURCE, OF_VRF],
            "table 100: DIFFERS 198.51.101.0/24: the kernel has no route, "
            "the dataplane has blackhole",
        ),
        (
            [OF_RULES, OF_RULES | {"prefix": "198.51.101.0/24", "source": "zebra"}]
            + [OF_SOURCE, OF_VRF],
            "table 100: DIFFERS 198.51.101.0/24: the kernel has no route, "
            "the dataplane has blackhole",
        ),
        (
            [OF_RULES, OF_SOURCE | {"from": "2001:db8:8::/48"}, OF_VRF],
            f"table main from {SOURCE}: DIFFERS {FROM_NET}: the kernel has blackhole, "
            "the dataplane has no route",
        ),
        (
            [OF_RULES, OF_SOURCE, OF_VRF | {"state": "prohibit"}],
            "VRF red: DIFFERS 198.51.102.0/24: the kernel has blackhole, "
            "the dataplane has prohibit",
        ),
        (
            [OF_RULES, OF_SOURCE],
            "VRF red: DIFFERS 198.51.102.0/24: the kernel has blackhole, "
            "the dataplane has no route",
        ),
    ],
)
def test_each_table_of_the_kernel_is_compared(dut, tmp_path, rows, told):
    """An impostor plays a daemon whose RIB differs from the kernel: in a table of rules, in the table of
    a VRF, or in source-specific routes. The audit reports each difference and no other."""
    kernel = [
        "rule add pref 100 from all lookup 100",
        "route add blackhole 198.51.100.0/24 table 100",
        "route add blackhole 198.51.102.0/24 table 200",
        f"-6 route add blackhole {FROM_NET} from {SOURCE}",
    ]

    def answer(request):
        if request["show"] == "version":
            return [{"routes_from": "kernel", "control_netns": dut.far}]
        if request["show"] == "vrfs":
            return [{"name": "red", "table": 200}]
        if request["show"] == "rules":
            return rule_rows((100, 100))
        if request["show"] in ("interfaces", "warnings"):
            return []
        if request["show"] == "audit":
            zero = {"prefixes": 3, "lookups": 15, "groups": 2, "differences": 0}
            return [{"what": "checked", **zero}]
        if request.get("of") == "each":
            return packed(rows)
        table = {"red": 200}.get(request.get("vrf"))
        return [
            row
            for row in rows
            if row["prefix"] == request["prefix"] and table in (None, row["table"])
        ]

    done = audit_of(dut, tmp_path, answer, kernel)
    differences = [line for line in done.stdout.splitlines() if "DIFFERS" in line]
    assert (done.returncode, told) in ((0, None), (3, told)), done.stdout + done.stderr
    assert told in [None, *differences]
    assert len(differences) <= (0 if told is None else 2)


# --- routes of many next hops ---------------------------------------------------------------

MANY = 252
EMPTY = {"nexthops": []}


def kernel_change(dut, message):
    """Send the kernel a netlink message, which is longer than `ip` can send."""
    with netns.open_socket(dut.ctl, socket.AF_NETLINK, socket.SOCK_RAW) as sock:
        (kind,) = struct.unpack_from("=H", message, 4)
        flags = 0x605  # NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL
        sock.send(struct.pack("=IHHII", len(message), kind, flags, 1, 0) + message[16:])
        (code,) = struct.unpack_from("=i", sock.recv(8192), 16)
        assert code == 0, os.strerror(-code)


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "multipath"])
def test_routes_of_252_next_hops_are_equal(dut, wan, lines, vtysh, grouped):
    """The audit reads routes of 252 next hops, of both families, and the routes that Linux shows
    after them. `ip route show` ends its list at such a route."""
    after = ["203.0.113.0/24", "2001:db8:ffff::/48"]
    for family, net in ((4, NET), (6, NET6)):
        hops = [{4: f"10.70.0.{n}", 6: f"fe80::9:{n:x}"}[family] for n in range(1, MANY + 1)]
        lines(f"route add {after[family == 6]} dev {wan.tap}")
        if grouped:
            ids = range(family * 1000, family * 1000 + MANY)
            adds = [f"nexthop add id {i} via {hop} dev {wan.tap} onlink" for i, hop in zip(ids, hops)]
            lines(*adds)
            group = fpm.group_message(family, ids)
            kernel_change(dut, group[:18] + bytes([4]) + group[19:])  # the operator's, not zebra's
            lines(f"route add {net} nhid {family}")
        else:
            oif = dut.ifindex(wan)
            paths = [{"gateway": hop, "oif": oif, "onlink": True} for hop in hops]
            kernel_change(dut, fpm.route_message(net, multipath=paths, protocol=4))
        eventually(lambda net=net: len((dut.route_row(net) or EMPTY)["nexthops"]) == MANY, 5, 0.01)
        eventually(lambda family=family: dut.route_row(after[family == 6]), 5, 0.01)
    try:
        found = assert_equal(dut, vtysh)
    finally:
        if not grouped:
            dut.ip(f"route del {NET}", f"route del {NET6}")

    # These four routes, and the connected and the local route of each wire and family.
    assert found["kernel_prefixes"] >= 4 + 2 * 2 * len(dut.names)


OSPF_ON_LO = """\
fpm address 127.0.0.1
interface lo
 ip address 17.0.0.1/24
 ip ospf area 0
exit
router ospf
 ospf router-id 17.0.0.1
"""


def test_a_route_of_ospf_for_an_address_of_lo_is_no_difference(own_dut):
    """zebra has a route of OSPF for an address of lo, and the kernel a better one in table local: the
    audit finds no difference. It does find a copy of a route that zebra does not have."""
    dut = own_dut()
    dut.start()
    dut.zebra.close()
    with frr.beside(dut, OSPF_ON_LO, ["ospfd"]) as router:
        of_ospf = lambda: router.json("show ip route ospf json")  # noqa: E731
        eventually(lambda: any(prefix.startswith("17.0.0.") for prefix in of_ospf()), 30, 0.2)
        vtysh = " ".join(router.vtysh_argv())
        audited = lambda: dut.fpmctl("audit", "--vtysh", vtysh, timeout=60)  # noqa: E731
        done = eventually(lambda: (seen := audited()).returncode == 0 and seen, 20, 0.2, "an equal audit")
        assert "Equal." in done.stdout, done.stdout
        dut.ip("route add 17.0.0.0/26 via 192.0.2.66 proto bgp metric 20")
        assert audited().returncode == 3


RULES = """\
rule add pref 90 from 10.1.0.0/16 to 10.2.0.0/16 iif lan0 tos 0x10 lookup 100
rule add pref 91 not from 10.3.0.0/16 ipproto tcp sport 100-200 dport 179 lookup 70000
rule add pref 92 fwmark 0x7 lookup 100
rule add pref 92 uidrange 5-9 lookup 100
rule add pref 93 oif wan0 lookup 100
rule add pref 94 goto 96
rule add pref 95 nop
rule add pref 96 iif lan0 lookup main suppress_prefixlength 8
rule add pref 97 lookup main suppress_ifgroup 3
rule add pref 97 lookup main suppress_prefixlength 200
rule add pref 98 iif gone0 blackhole
-6 rule add pref 90 from 2001:db8:77::/48 unreachable
-6 rule add pref 90 to 2001:db8:78::/48 prohibit
-6 rule add pref 91 tos 0x48 ipproto udp dport 53 lookup 100
"""


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([(100, 100), (100, 200)], None),
        ([(100, 100)], "the kernel has 100: from all lookup 200, the dataplane has none"),
        ([(100, 100), (100, 200), (200, 100)], "the kernel has none, the dataplane has 200: from all lookup 100"),
        (
            [(100, 200), (100, 100)],
            "the kernel has 100: from all lookup 100, the dataplane has 100: from all lookup 200",
        ),
    ],
)
def test_a_rule_that_differs_is_told(dut, tmp_path, rules, told):
    """An impostor plays a daemon whose rules differ from the kernel's: one is missing, one is too many,
    or the order differs. The audit reports this."""
    kernel = [f"rule add pref 100 from all lookup {table}" for table in (100, 200)]

    def answer(request):
        if request["show"] == "version":
            return [{"routes_from": "kernel", "control_netns": dut.far}]
        if request["show"] == "audit":
            return [{"what": "checked", "prefixes": 0, "lookups": 0, "groups": 0, "differences": 0}]
        return rule_rows(*rules) if request["show"] == "rules" else []

    done = audit_of(dut, tmp_path, answer, kernel)
    differences = [line.strip() for line in done.stdout.splitlines() if "DIFFERS" in line]
    assert differences == ([] if told is None else [f"DIFFERS ipv4 rule: {told}"]), done.stdout + done.stderr
    assert done.returncode == (0 if told is None else 3)


def test_rules_of_policy_routing_are_compared(dut, vtysh):
    """Rules with each selector and each action are equal on both sides, in the kernel's order."""
    lines = RULES.splitlines()
    dut.ip(*lines)
    try:
        ours = lambda: len(dut.control.ask("rules"))  # noqa: E731
        eventually(lambda: ours() == 3 + 2 + len(lines), 5, 0.01)
        code, out, err = audit(dut, vtysh())
        assert code == 0, out + err
        assert f"rules   {ours()} of the kernel, {ours()} in the dataplane: 0 differ" in out, out
        found = json.loads(audit(dut, vtysh(), "--json")[1])
        api.validate(found, {"$ref": "#/components/schemas/FpmctlAudit"})
        assert found["kernel_rules"] == found["rib_rules"] == ours()
    finally:
        dut.ip(*(line.replace("rule add", "rule del") for line in lines))
