# SPDX-License-Identifier: BSD-3-Clause
"""Policy routing: the router obeys the rules of the kernel (`ip rule`) as the Linux router beside
it does. Each test gives both the same commands and the same frames."""

import os
import statistics
from ipaddress import ip_address, ip_network

import pytest

from lib import frr
from lib.dut import Dut
from lib.wait import eventually
from linux_twin import Twin
from rules_beside import ALT, EXT, LAN4, LAN6, NET4, NET6, TO4, TO6, WAN, becomes
from rules_beside import routers, rules, twin  # noqa: F401
from wire import token_of

REFUSED4, REFUSED6 = ("icmp", "lan", 3, 13), ("icmp", "lan", 1, 1)
UNREACHABLE4, UNREACHABLE6 = ("icmp", "lan", 3), ("icmp", "lan", 1)

# (name, commands, [(expected outcome, fields of the probe)]); the probes come by lan unless they
# name another wire.
CASES = [
    (
        "from",
        [f"rule add from {LAN4} lookup 100", f"-6 rule add from {LAN6} lookup 100"],
        [(EXT, {}), (WAN, {"name": "alt"}), (EXT, {"dst": TO6}), (WAN, {"dst": TO6, "name": "alt"})],
    ),
    (
        "to",
        [f"rule add to {TO4} lookup 100", f"-6 rule add to {TO6} lookup 100"],
        [
            (EXT, {}),
            (WAN, {"dst": "198.51.100.10"}),
            (EXT, {"dst": TO6}),
            (WAN, {"dst": "2001:db8:100::a"}),
        ],
    ),
    (
        "prefixes",
        [
            "rule add from 192.0.2.0/26 to 198.51.100.8/29 lookup 100",
            "-6 rule add from 2001:db8:4::/48 to 2001:db8:100::/127 lookup 100",
        ],
        [
            (EXT, {}),
            (WAN, {"dst": "198.51.100.16"}),
            (WAN, {"name": "alt"}),
            (EXT, {"dst": "2001:db8:100::1"}),
            (WAN, {"dst": "2001:db8:100::2"}),
        ],
    ),
    (
        "iif",
        ["rule add iif lan0 lookup 100", "-6 rule add iif lan0 lookup 100"],
        [(EXT, {}), (WAN, {"name": "alt"}), (EXT, {"dst": TO6}), (WAN, {"dst": TO6, "name": "alt"})],
    ),
    (
        "iif by an alternative name",
        [
            "link property add dev lan0 altname lan-by-another-name",
            "link property add dev lan0 altname office",
            "rule add iif office lookup 100",
            "-6 rule add iif office lookup 100",
        ],
        [(EXT, {}), (WAN, {"name": "alt"}), (EXT, {"dst": TO6}), (WAN, {"dst": TO6, "name": "alt"})],
    ),
    (
        "iif by a name that comes after the rule",
        ["rule add iif office lookup 100", "link property add dev lan0 altname office"],
        [(WAN, {})],
    ),
    (
        "not",
        ["rule add not from 192.0.2.2 lookup 100", "-6 rule add not iif lan0 lookup 100"],
        [(WAN, {}), (EXT, {"name": "alt"}), (WAN, {"dst": TO6}), (EXT, {"dst": TO6, "name": "alt"})],
    ),
    (
        "tos",
        ["rule add tos 0x10 lookup 100", "-6 rule add tos 0x10 lookup 100"],
        [
            (EXT, {"tos": 0x10}),
            (WAN, {}),
            (WAN, {"tos": 0x08}),
            (EXT, {"dst": TO6, "tc": 0x10}),
            (WAN, {"dst": TO6, "tc": 0x08}),
        ],
    ),
    (
        "protocol and ports",
        [
            "rule add ipproto udp dport 4001 lookup 100",
            "rule add ipproto tcp lookup 101",
            "rule add sport 5000-5010 lookup 101",
            "-6 rule add ipproto udp sport 5000-5010 lookup 100",
        ],
        [
            (EXT, {}),
            (WAN, {"dport": 4002}),
            (ALT, {"dport": 4002, "sport": 5010}),
            (EXT, {"dst": TO6, "sport": 5000}),
            (WAN, {"dst": TO6, "sport": 5011}),
        ],
    ),
    (
        "prohibit",
        ["rule add from 192.0.2.2 prohibit", "-6 rule add from 2001:db8:4::2 prohibit"],
        [(REFUSED4, {}), (REFUSED6, {"dst": TO6}), (WAN, {"name": "alt"})],
    ),
    (
        "unreachable",
        ["rule add from 192.0.2.2 unreachable", "-6 rule add iif lan0 unreachable"],
        [(UNREACHABLE4, {}), (UNREACHABLE6, {"dst": TO6})],
    ),
    (
        "blackhole",
        ["rule add to 198.51.100.9 blackhole", "-6 rule add iif lan0 blackhole"],
        [(("nothing",), {}), (WAN, {"dst": "198.51.100.10"}), (("nothing",), {"dst": TO6})],
    ),
    (
        "order",
        [
            "rule add pref 300 from all lookup 100",
            "rule add pref 200 from 192.0.2.2 lookup 101",
            "rule add pref 100 to 198.51.100.10 lookup main",
        ],
        [(ALT, {}), (WAN, {"dst": "198.51.100.10"}), (EXT, {"name": "alt", "dst": TO4})],
    ),
    (
        "a table without the route",
        [
            "route add 203.0.113.0/24 via 192.0.2.194 table 102",
            "-6 route add 2001:db8:300::/48 via 2001:db8:3::2 table 102",
            "rule add pref 100 from all lookup 102",
            "-6 rule add pref 100 from all lookup 102",
        ],
        [
            (WAN, {}),
            (EXT, {"dst": "203.0.113.9"}),
            (WAN, {"dst": TO6}),
            (EXT, {"dst": "2001:db8:300::9"}),
        ],
    ),
    (
        "throw and the special routes",
        [
            "route add throw 198.51.100.9 table 103",
            "route add prohibit 198.51.100.10 table 103",
            "route add blackhole 198.51.100.11 table 103",
            "route add default via 192.0.2.194 table 103",
            "-6 route add throw 2001:db8:100::9/128 table 103",
            "-6 route add default via 2001:db8:3::2 table 103",
            "rule add pref 100 from all lookup 103",
            "-6 rule add pref 100 from all lookup 103",
        ],
        [
            (WAN, {}),
            # The rule applies to the ICMP error, too.
            (("icmp", "ext", 3, 13), {"dst": "198.51.100.10"}),
            (("nothing",), {"dst": "198.51.100.11"}),
            (EXT, {"dst": "203.0.113.9"}),
            (WAN, {"dst": TO6}),
            (EXT, {"dst": "2001:db8:100::a"}),
        ],
    ),
    (
        "goto and nop",
        [
            "rule add pref 400 lookup 101",
            "rule add pref 100 from 192.0.2.2 goto 400",
            "rule add pref 200 lookup 100",
            "rule add pref 210 nop",
        ],
        [(ALT, {}), (EXT, {"name": "alt", "dst": TO4})],
    ),
    (
        "suppress_prefixlength",
        [
            "route add default via 192.0.2.130",
            "-6 route add default via 2001:db8:2::2",
            "route add default via 192.0.2.194 table 104",
            "-6 route add default via 2001:db8:3::2 table 104",
            "rule add pref 100 lookup main suppress_prefixlength 0",
            "rule add pref 200 lookup 104",
            "-6 rule add pref 100 lookup main suppress_prefixlength 0",
            "-6 rule add pref 200 lookup 104",
        ],
        [
            (WAN, {}),
            (EXT, {"dst": "203.0.113.9"}),
            (WAN, {"dst": TO6}),
            (EXT, {"dst": "2001:db8:900::9"}),
        ],
    ),
    (
        "a suppressed length beyond every prefix",
        [
            f"route add {TO4} via 192.0.2.194 table 105",
            "rule add pref 100 lookup 105 suppress_prefixlength 200",
            f"-6 route add {TO6} via 2001:db8:3::2 table 105",
            "-6 rule add pref 100 lookup 105 suppress_prefixlength 129",
        ],
        [(WAN, {}), (WAN, {"dst": TO6})],
    ),
    (
        "a longer suppressed prefix",
        [
            "route add 198.51.100.8/29 via 192.0.2.194 table 105",
            "route add 198.51.100.0/24 via 192.0.2.130 table 105",
            "rule add pref 100 lookup 105 suppress_prefixlength 24",
        ],
        [(EXT, {}), (WAN, {"dst": "198.51.100.16"})],
    ),
    (
        "errors are not suppressed",
        [
            "route add blackhole default table 107",
            "route add 198.51.100.0/24 via 192.0.2.194 table 107",
            "-6 route add prohibit default table 107",
            "-6 route add 2001:db8:100::/48 via 2001:db8:3::2 table 107",
            "rule add pref 100 from 192.0.2.2 lookup 107 suppress_prefixlength 24",
            "-6 rule add pref 100 from 2001:db8:4::2 lookup 107 suppress_prefixlength 48",
        ],
        [
            (WAN, {}),
            (("nothing",), {"dst": "203.0.113.9"}),
            (WAN, {"dst": TO6}),
            (REFUSED6, {"dst": "2001:db8:900::9"}),
        ],
    ),
    (
        "a source in table default",
        [
            "-6 route add 2001:db8:300::/48 from 2001:db8:4::/64 via 2001:db8:3::2 table default",
            "-6 rule add pref 32767 lookup default",
        ],
        [(EXT, {"dst": "2001:db8:300::9"}), (WAN, {"dst": TO6})],
    ),
    (
        "not the rule of VRFs",
        [
            "rule add pref 100 not from 192.0.2.130 l3mdev",
            "rule add pref 101 lookup 101",
            "rule add pref 102 prohibit",
            "route add 203.0.113.0/24 via 192.0.2.194 table 101",
        ],
        [(WAN, {}), (EXT, {"dst": "203.0.113.9"}), (WAN, {"name": "alt"})],
    ),
    (
        "table default",
        ["route add 203.0.113.0/24 via 192.0.2.194 table default"],
        [(EXT, {"dst": "203.0.113.9"}), (WAN, {})],
    ),
    (
        "own addresses come first",
        ["rule add pref 100 lookup 106", "route add default via 192.0.2.194 table 106"],
        [(EXT, {}), (EXT, {"dst": "192.0.2.66"}), (("icmp", "ext", 3, 3), {"dst": "192.0.2.65"})],
    ),
    (
        "a mark that no packet has",
        ["rule add fwmark 7 lookup 100", "rule add not fwmark 7 to 198.51.100.9 lookup 101"],
        [(ALT, {}), (ALT, {"dst": "198.51.100.10"})],
    ),
    (
        "a mark of 0",
        [
            "rule add pref 100 fwmark 0/0xff to 198.51.100.9 lookup 100",
            "rule add pref 101 fwmark 1 lookup 100",
            "rule add pref 102 fwmark 7/8 to 198.51.100.10 lookup 100",
            "rule add pref 103 not fwmark 1 lookup 101",
            "-6 rule add pref 100 fwmark 0/0xff to 2001:db8:100::9 lookup 100",
            "-6 rule add pref 101 not fwmark 1 lookup 101",
        ],
        [
            (EXT, {}),
            (EXT, {"dst": "198.51.100.10"}),
            (ALT, {"dst": "198.51.100.11"}),
            (EXT, {"dst": TO6}),
            (ALT, {"dst": "2001:db8:100::a"}),
        ],
    ),
    (
        "users",
        [
            "rule add pref 100 uidrange 0-0 to 198.51.100.9 lookup 100",
            "rule add pref 101 uidrange 1-4294967294 lookup 100",
            "rule add pref 102 uidrange 0-5 to 198.51.100.10 lookup 101",
            "rule add pref 103 not uidrange 0-5 lookup 100",
            "rule add pref 104 not uidrange 1-5 lookup 101",
            "-6 rule add pref 100 uidrange 0-0 to 2001:db8:100::9 lookup 100",
            "-6 rule add pref 101 uidrange 1-5 lookup 101",
        ],
        [
            (EXT, {}),
            (ALT, {"dst": "198.51.100.10"}),
            (ALT, {"dst": "198.51.100.11"}),
            (EXT, {"dst": TO6}),
            (WAN, {"dst": "2001:db8:100::a"}),
        ],
    ),
    (
        "an outgoing interface",
        ["rule add pref 100 oif ext0 lookup 100", "rule add pref 101 iif nonesuch lookup 100"],
        [(WAN, {})],
    ),
    (
        "a TOS",
        [
            "route add 198.51.100.0/24 tos 0x10 via 192.0.2.194",
            "route add 198.51.100.0/24 tos 0x08 via 192.0.2.130 metric 50",
            "route add blackhole 198.51.100.0/24 tos 0x0c",
            "route add 198.51.100.0/24 tos 0xb8 via 192.0.2.194",
        ],
        [
            (WAN, {}),
            (EXT, {"tos": 0x10}),
            (EXT, {"tos": 0xF3}),
            (ALT, {"tos": 0x08}),
            (("nothing",), {"tos": 0x0C}),
            (WAN, {"tos": 0x18}),
            (WAN, {"tos": 0xB8}),
        ],
    ),
    (
        "a TOS and the length of prefixes",
        [
            "route add 198.51.100.8/30 tos 0x10 via 192.0.2.194",
            "route add 198.51.100.9 via 192.0.2.130",
            "route add 203.0.113.0/24 tos 0x08 via 192.0.2.194",
            "route add default tos 0x04 via 192.0.2.130",
        ],
        [
            (ALT, {"tos": 0x10}),
            (EXT, {"tos": 0x10, "dst": "198.51.100.10"}),
            (WAN, {"dst": "198.51.100.10"}),
            (EXT, {"tos": 0x08, "dst": "203.0.113.9"}),
            (ALT, {"tos": 0x04, "dst": "203.0.113.9"}),
            (WAN, {"tos": 0x04, "dst": "198.51.100.10"}),
            (UNREACHABLE4, {"dst": "203.0.113.9"}),
        ],
    ),
    (
        "a TOS in the table of a rule",
        [
            "route add 198.51.100.0/24 tos 0x10 via 192.0.2.194 table 108",
            "route add throw 198.51.100.0/24 tos 0x08 table 108",
            "route add default via 192.0.2.130 table 108",
            "rule add pref 100 from 192.0.2.2 lookup 108",
        ],
        [
            (ALT, {}),
            (EXT, {"tos": 0x10}),
            (WAN, {"tos": 0x08}),
            (WAN, {"tos": 0x10, "name": "alt", "dst": TO4}),
        ],
    ),
    (
        "a TOS and suppress_prefixlength",
        [
            "route add default via 192.0.2.66",
            "route add default tos 0x10 via 192.0.2.194",
            "route add 203.0.113.0/24 tos 0x08 via 192.0.2.194",
            "route add default via 192.0.2.130 table 109",
            "rule add pref 100 lookup main suppress_prefixlength 0",
            "rule add pref 200 lookup 109",
        ],
        [
            (ALT, {"tos": 0x10, "dst": "203.0.113.9"}),
            (EXT, {"tos": 0x08, "dst": "203.0.113.9"}),
            (ALT, {"dst": "203.0.113.9"}),
            (WAN, {}),
        ],
    ),
    (
        "a TOS and own addresses",
        [
            "route add 192.0.2.193 tos 0x10 via 192.0.2.66",
            "route add 192.0.2.192/26 tos 0x10 via 192.0.2.66",
        ],
        [
            (("icmp", "lan", 3, 3), {"tos": 0x10, "dst": "192.0.2.193"}),
            (WAN, {"tos": 0x10, "dst": "192.0.2.194"}),
            (EXT, {"dst": "192.0.2.194"}),
        ],
    ),
    (
        "a source in table local",
        [
            f"-6 route add blackhole {NET6} from {LAN6} table local",
            f"-6 route add {NET6} from {LAN6} via 2001:db8:3::2 metric 10",
        ],
        [(("nothing",), {"dst": TO6})],
    ),
    (
        "a source in table local only",
        [f"-6 route add blackhole {NET6} from {LAN6} table local"],
        [(("nothing",), {"dst": TO6}), (WAN, {"dst": TO6, "name": "alt"})],
    ),
    (
        "throw for a source in table local",
        [
            f"-6 route add throw {NET6} from {LAN6} table local",
            f"-6 route add {NET6} from {LAN6} via 2001:db8:3::2",
        ],
        [(EXT, {"dst": TO6})],
    ),
    (
        "a TOS in table local",
        [
            f"route add blackhole {NET4} tos 0x10 metric 5 table local",
            f"route add {NET4} tos 0x10 via 192.0.2.194",
        ],
        [(("nothing",), {"tos": 0x10}), (WAN, {})],
    ),
    (
        "a TOS before a route for all in table local",
        [f"route add {of} {NET4} table local" for of in ("unreachable", "tos 0x10 blackhole")],
        [(("nothing",), {"tos": 0x10}), (UNREACHABLE4, {})],
    ),
    (
        "a source before a route for all in table local",
        [f"-6 route add unreachable {NET6} table local", f"-6 route add blackhole {NET6} from {LAN6} table local"],
        [(("nothing",), {"dst": TO6}), (WAN, {"dst": TO6, "name": "alt"})],
    ),
    (
        "no main table",
        ["rule add pref 100 from 192.0.2.2 lookup main"],
        [(WAN, {}), (WAN, {"name": "alt"})],
    ),
]


@pytest.mark.parametrize("lines, probes", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_rules_are_obeyed(rules, twin, lines, probes):
    """With each kind of selector and of action a packet leaves by the same wire as from Linux, or
    causes the same ICMP error. After the rules are deleted, the packet leaves by table main."""
    rules(*lines)
    for want, probe in probes:
        becomes(twin, want, **probe)
    rules.undo()
    for _, probe in probes:
        if any(ip_address(probe.get("dst", TO4)) in ip_network(net) for net in (NET4, NET6)):
            becomes(twin, WAN, **probe)


def forwards(wires, dst):
    """Return True if a router forwards a packet from `lan` to `wan`."""
    probe, wire = wires["lan"].probe(dst), wires["wan"]
    wires["lan"].send(probe)
    try:
        wire.expect(token_of(probe), 0.2)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("dst", [TO4, TO6], ids=["IPv4", "IPv6"])
def test_without_any_rule_nothing_is_forwarded(twin, dut, dst):
    """When all rules are deleted, Linux has no route: ENETUNREACH. It obeys the deletion of IPv6
    rules only if a rule was added in the namespace before. Rules that return are in force."""
    six = "-6 " if dst == TO6 else ""
    tables = {0: "local", 32766: "main"} | ({} if six else {32767: "default"})
    twin.ip(f"{six}rule add pref 100 to {dst} lookup 100", f"{six}rule del pref 100")
    assert forwards(twin.wires, dst)
    eventually(lambda: forwards(dut.wires, dst), 5, 0.05)
    try:
        twin.ip(*(f"{six}rule del pref {pref}" for pref in tables))
        assert not forwards(twin.wires, dst)
        family = "ipv6" if six else "ipv4"
        left = lambda: [row for row in dut.control.ask("rules") if row["family"] == family]  # noqa: E731
        eventually(lambda: not left(), 5, 0.02, "no rule is left")
        eventually(lambda: not forwards(dut.wires, dst), 5, 0.05)
    finally:
        twin.ip(*(f"{six}rule add pref {pref} lookup {table}" for pref, table in tables.items()))
    assert forwards(twin.wires, dst)
    eventually(lambda: forwards(dut.wires, dst), 5, 0.05)


def test_deleted_rules_of_ipv6_have_no_effect_before_a_rule_was_added(own_dut):
    """Linux forwards IPv6 by tables local and main without any rule of IPv6, until one is added."""
    dut = own_dut()
    dut.start()
    twin = Twin(dut)
    route = f"-6 route add {NET6} via {dut.wires['wan'].peer6} dev wan0"
    try:
        twin.build()
        twin.ip(route, "-6 rule del pref 0", "-6 rule del pref 32766")
        assert forwards(twin.wires, TO6)
        eventually(lambda: forwards(dut.wires, TO6), 5, 0.05)
        twin.ip("-6 rule add pref 77 lookup 100")
        assert not forwards(twin.wires, TO6)
        eventually(lambda: not forwards(dut.wires, TO6), 5, 0.05)
    finally:
        twin.destroy()


@pytest.mark.parametrize("dst, src", [(TO4, "192.0.2.2"), (TO6, LAN6)], ids=["IPv4", "IPv6"])
def test_a_rule_is_in_force_in_time(twin, dst, src):
    """Packets take another table within 100 ms after `ip rule add`, and main again within 100 ms
    after `ip rule del`: medians of ten."""
    family, added, deleted = "-6 " if ":" in dst else "", [], []
    for _ in range(10):
        twin.ip(f"{family}rule add from {src} lookup 100")
        added.append(becomes(twin, EXT, dst=dst))
        twin.ip(f"{family}rule del from {src} lookup 100")
        deleted.append(becomes(twin, WAN, dst=dst))
    assert max(statistics.median(added), statistics.median(deleted)) < 0.1


def test_other_interfaces_lose_no_packet(twin, dut):
    """Rules for one interface come and go a hundred times, with their tables. Numbered packets on
    another interface all arrive once, and by main."""
    alt, wan = dut.wires["alt"], dut.wires["wan"]
    with dut.stream(alt, TO4, rate=2000) as stream:
        for n in range(100):
            dut.ip(f"route add {NET4} via {dut.wires['ext'].peer4} table {1000 + n}")
            dut.ip(f"rule add iif lan0 lookup {1000 + n}")
            dut.ip(f"rule del iif lan0 lookup {1000 + n}", f"route flush table {1000 + n}")
    assert stream.lost(wan) == [] and set(stream.arrived(wan).values()) == {1}


def test_packets_of_a_rule_are_not_lost_when_other_rules_change(rules, twin, dut):
    """Numbered packets that a rule sends by another table all arrive there while other rules come
    and go."""
    rules("rule add pref 100 iif lan0 lookup 100")
    becomes(twin, EXT)
    lan, ext = dut.wires["lan"], dut.wires["ext"]
    with dut.stream(lan, TO4, rate=2000) as stream:
        for n in range(50):
            dut.ip(f"rule add pref 200 from 10.0.0.{n} lookup {2000 + n}")
            dut.ip(f"rule del pref 200 from 10.0.0.{n} lookup {2000 + n}")
    assert stream.lost(ext) == []


def test_a_table_is_followed(rules, twin, dut):
    """Routes of a rule's table that come, change and go are in force at once."""
    rules("rule add pref 100 iif lan0 lookup 110", "-6 rule add pref 100 iif lan0 lookup 110")
    becomes(twin, WAN)
    for dst, net, via in ((TO4, NET4, "peer4"), (TO6, NET6, "peer6")):
        six = "-6 " if ":" in dst else ""
        ext, alt = (getattr(dut.wires[name], via) for name in ("ext", "alt"))
        twin.ip(f"{six}route add {net} via {ext} table 110")
        becomes(twin, EXT, dst=dst)
        twin.ip(f"{six}route replace {net} via {alt} table 110")
        becomes(twin, ALT, dst=dst)
        twin.ip(f"{six}route del {net} table 110")
        becomes(twin, WAN, dst=dst)


@pytest.mark.parametrize("first", ["rule", "routes"])
def test_zebras_routes_of_a_table_that_it_does_not_replay(rules, twin, dut, first):
    """zebra replays no table that only a rule names. After a start of the daemon, zebra's routes in
    such a table are only in the kernel, with zebra's next-hop objects. The router follows them
    there."""
    ext, alt = dut.wires["ext"], dut.wires["alt"]
    obeyed = [f"{six}rule add pref 100 iif lan0 lookup 1110" for six in ("", "-6 ")]
    if first == "rule":
        rules(*obeyed)
        becomes(twin, WAN)
    for n, dst, net, via in ((4, TO4, NET4, "peer4"), (6, TO6, NET6, "peer6")):
        six = "-6 " if n == 6 else ""
        twin.ip(
            f"nexthop add id 301{n} via {getattr(ext, via)} dev ext0 proto zebra",
            f"{six}route add {net} nhid 301{n} table 1110 proto 196 metric 20",
        )
    if first == "routes":
        rules(*obeyed)
    for n, dst, net, via in ((4, TO4, NET4, "peer4"), (6, TO6, NET6, "peer6")):
        six = "-6 " if n == 6 else ""
        becomes(twin, EXT, dst=dst)
        twin.ip(f"{six}route replace {net} via {getattr(alt, via)} table 1110 proto 186 metric 20")
        becomes(twin, ALT, dst=dst)
        twin.ip(f"{six}route del {net} table 1110", f"nexthop del id 301{n}")
        becomes(twin, WAN, dst=dst)


def test_routes_by_a_group_of_interfaces_are_suppressed(rules, twin):
    """`suppress_ifgroup`: a rule does not use routes by the interfaces of a group. A change of an
    interface's group counts at once."""
    rule = "rule add pref 100 iif lan0 lookup 100 suppress_ifgroup 7"
    rules(rule, f"-6 {rule}")
    for group, want in ("0", EXT), ("7", WAN), ("0", EXT):
        twin.ip(f"link set ext0 group {group}")
        for dst in TO4, TO6:
            becomes(twin, want, dst=dst)


SOURCES = [
    f"-6 route add {NET6} from 2001:db8:4::/64 via 2001:db8:3::2",
    "-6 route add 2001:db8:100::8/125 via 2001:db8:2::2",
    "-6 route add 2001:db8:100::8/126 from 2001:db8:4::2 via 2001:db8:1::2",
    "-6 route add default from 2001:db8:2::/64 via 2001:db8:3::2",
    "-6 route add 2001:db8:900::/48 via 2001:db8:1::2",
    "-6 route add 2001:db8:900::/47 from 2001:db8:4::/64 via 2001:db8:2::2",
]


def test_anyip_comes_first_when_there_are_rules(rules, twin):
    """After the first change of the rules, Linux looks up table local of IPv4 before main
    (fib_unmerge()): a local prefix hides a longer prefix of main, also when the rule is gone."""
    twin.ip("rule add pref 77 to 203.0.113.77 lookup 100", "rule del pref 77")
    rules("route add local 203.0.113.0/24 dev lo", "route add 203.0.113.128/25 via 192.0.2.66")
    own = ("icmp", "lan", 3, 3)
    becomes(twin, own, dst="203.0.113.9")
    becomes(twin, own, dst="203.0.113.200")
    twin.ip("route del local 203.0.113.0/24 dev lo")
    becomes(twin, WAN, dst="203.0.113.200")
    twin.ip("route add local 203.0.113.0/24 dev lo")
    becomes(twin, own, dst="203.0.113.200")


def test_source_specific_routes(rules, twin):
    """`ip -6 route add X from S`: the longest destination counts, then the longest source, as in
    Linux. A route to X for S hides the plain route to X from other sources, also as in Linux."""
    rules(*SOURCES)
    for want, probe in [
        (EXT, {"dst": "2001:db8:100::1"}),
        (WAN, {"dst": "2001:db8:100::9"}),
        (ALT, {"dst": "2001:db8:100::9", "src": "2001:db8:4::3"}),
        (ALT, {"dst": "2001:db8:100::c"}),
        (EXT, {"dst": "2001:db8:800::9", "name": "alt"}),
        (EXT, {"dst": "2001:db8:100::1", "name": "alt"}),
        (("icmp", "ext"), {"dst": "2001:db8:100::1", "name": "ext"}),
        (WAN, {"dst": "2001:db8:900::9"}),
        (ALT, {"dst": "2001:db8:901::9"}),
        (UNREACHABLE6, {"dst": "2001:db8:800::9"}),
    ]:
        becomes(twin, want, **probe)


def test_source_specific_routes_go(twin):
    """A source-specific route is in force within 100 ms, and the plain route is in force within
    100 ms after the deletion of the source-specific route: medians of five."""
    line, added, deleted = f"{NET6} from 2001:db8:4::/64 via 2001:db8:3::2", [], []
    for _ in range(5):
        twin.ip(f"-6 route add {line}")
        added.append(becomes(twin, EXT, dst=TO6))
        twin.ip(f"-6 route del {line}")
        deleted.append(becomes(twin, WAN, dst=TO6))
    assert max(statistics.median(added), statistics.median(deleted)) < 0.1


def test_a_source_in_main_counts_behind_one_in_table_local(twin):
    """A route of main for a source hides the plain route from other sources, and no longer hides it
    after its deletion, also while table local decides for the source itself."""
    of_local, of_main = f"blackhole {NET6} from {LAN6} table local", f"{NET6} from {LAN6} via 2001:db8:3::2"
    twin.ip(f"-6 route add {of_local}")
    becomes(twin, ("nothing",), dst=TO6)
    becomes(twin, WAN, dst=TO6, name="alt")
    twin.ip(f"-6 route add {of_main}")
    becomes(twin, ("icmp", "alt", 1, 0), dst=TO6, name="alt")
    twin.ip(f"-6 route del {of_main}")
    becomes(twin, WAN, dst=TO6, name="alt")
    twin.ip(f"-6 route del {of_local}")
    becomes(twin, WAN, dst=TO6)


def test_a_route_of_a_tos_is_followed_and_shown(rules, twin, dut):
    """A next-hop object under a route of a TOS is replaced, and then deleted, which deletes the route
    without a message. `show routes` and the audit have the route."""
    twin.ip("nexthop add id 91 via 192.0.2.194 dev ext0")
    twin.ip(f"route add {NET4} tos 0x10 nhid 91")
    becomes(twin, EXT, tos=0x10)
    (row,) = (r for r in dut.control.ask("routes") if "tos" in r)
    assert (row["prefix"], row["tos"], row["state"]) == (NET4, "0x10", "forwarding")
    assert dut.control.ask("kernel")[0]["tos_now"] == 1
    assert "tos 0x10" in dut.fpmctl("show", "routes").stdout
    assert dut.control.ask("audit")[-1]["differences"] == 0
    twin.ip("nexthop replace id 91 via 192.0.2.130 dev alt0")
    becomes(twin, ALT, tos=0x10)
    twin.ip("nexthop del id 91")
    becomes(twin, WAN, tos=0x10)
    assert dut.control.ask("kernel")[0]["tos_now"] == 0


def test_five_thousand_routes_of_a_tos(rules, twin, dut):
    """5000 routes of a TOS are in force. A flush of their protocol removes all of them."""
    nets = [f"10.{n >> 8}.{n & 255}.0/24" for n in range(5000)]
    twin.ip(*(f"route add {net} tos 0x10 via 192.0.2.194 proto 77" for net in nets))
    for net in nets[0], nets[-1]:
        becomes(twin, EXT, tos=0x10, dst=net[:-4] + "9")
    assert dut.control.ask("kernel")[0]["tos_now"] == len(nets)
    twin.ip("route flush proto 77")
    becomes(twin, UNREACHABLE4, tos=0x10, dst=nets[-1][:-4] + "9")
    assert dut.control.ask("kernel")[0]["tos_now"] == 0


def test_an_icmp_error_takes_the_route_of_a_tos(rules, twin):
    """A sender that only a route of the packet's TOS reaches gets its ICMP error (RFC 1812,
    4.3.2.5)."""
    rules("route add 203.0.113.0/24 tos 0x10 via 192.0.2.194")
    becomes(twin, ("icmp", "ext", 11, 0), src="203.0.113.7", ttl=1, tos=0x10)
    becomes(twin, ("nothing",), src="203.0.113.7", ttl=1)


def test_rules_that_packets_cannot_match_are_named(rules, twin, dut):
    """A rule by a mark, a user or a tunnel matches no received packet. `show rules` and the log name
    it, and a rule that suppresses routes of VRFs or of an interface group. They do not name rules
    that each packet matches."""
    rules(
        "rule add pref 76 uidrange 0-0 to 203.0.113.9 lookup 100",
        "rule add pref 77 fwmark 7 lookup 100",
        "rule add pref 78 uidrange 1000-2000 lookup 100",
        "rule add pref 79 l3mdev suppress_prefixlength 0",
        "rule add pref 80 l3mdev suppress_ifgroup 7",
        "rule add pref 81 fwmark 0/7 to 203.0.113.9 lookup 100",
    )
    becomes(twin, WAN)
    named = {77: "fwmark", 78: "uidrange", 79: "suppress_prefixlength", 80: "suppress_ifgroup"}
    lacks = lambda: {r["pref"]: r["lacks"] for r in dut.control.ask("rules") if not r["obeyed"]}
    eventually(lambda: lacks() == named, 5, 0.02)
    for pref, what in named.items():
        line = f"rib: rule not obeyed family=ipv4 pref={pref} selector={what}"
        eventually(lambda line=line: line in dut.daemon.log(200), 5, 0.02, line)


def test_a_table_whose_number_is_reserved_is_not_used(rules, twin, dut):
    """The router keeps source-specific routes in tables of its own numbers. Routes that the kernel or
    zebra have in a table of such a number are skipped, and a rule for the table is named. In an
    earlier version the first such route ended the daemon."""
    ext, table = dut.wires["ext"], 0xFFF00000
    rules(
        f"-6 route add {TO6} from 2001:db8:ffff::/48 via {ext.peer6}",
        f"route add {NET4} via {ext.peer4} table {table}",
        f"-6 route add {NET6} via {ext.peer6} table {table}",
    )
    dut.zebra.add(NET4, dut.zebra.hop(ext.peer4, ext), table=table)
    dut.ip(f"rule add pref 76 lookup {table}", f"-6 rule add pref 76 lookup {table}")
    try:
        lacks = lambda: [r["lacks"] for r in dut.control.ask("rules") if r["pref"] == 76]
        eventually(lambda: lacks() == ["lookup", "lookup"], 5, 0.02)
        assert [r for r in dut.control.ask("routes") if r["table"] == table] == []
        lan, wan = dut.wires["lan"], dut.wires["wan"]
        for dst in (TO4, "2001:db8:100::8"):
            dut.forwarded(lan, lan.probe(dst), wan)
    finally:
        dut.ip("rule del pref 76", "-6 rule del pref 76")


def test_packets_that_wait_leave_by_their_rule(rules, twin, dut):
    """Packets that a rule sends to a neighbor without a MAC address wait. When the neighbor is
    known, they leave by the table of the rule and not by the route of main."""
    ext, lan = dut.wires["ext"], dut.wires["lan"]
    rules(
        "route add 198.51.100.0/24 via 192.0.2.199 dev ext0 table 120",
        "rule add pref 100 iif lan0 lookup 120",
    )
    becomes(twin, ("nothing",))  # the neighbor does not answer yet
    probes = [lan.probe(TO4) for _ in range(3)]
    lan.send(*probes)
    dut.neighbor("192.0.2.199", ext)
    for probe in probes:
        ext.expect(token_of(probe), 2)
    dut.ip(f"neigh del 192.0.2.199 dev {ext.tap}")


def test_an_icmp_error_takes_the_table_of_a_rule(rules, twin):
    """A sender that only the table of a rule reaches gets its ICMP errors by this table."""
    rules(
        "route add 203.0.113.0/24 via 192.0.2.194 table 121",
        "-6 route add 2001:db8:300::/48 via 2001:db8:3::2 table 121",
        "rule add pref 100 to 203.0.113.0/24 lookup 121",
        "-6 rule add pref 100 to 2001:db8:300::/48 lookup 121",
    )
    becomes(twin, ("icmp", "ext", 11, 0), src="203.0.113.7", ttl=1)
    becomes(twin, ("icmp", "ext", 3, 0), src="2001:db8:300::7", dst=TO6, hlim=1)


def test_a_rule_for_sources_is_not_about_errors_to_them(rules, twin):
    """Linux looks up the route of an IPv4 error before it chooses the source. So a rule for packets
    from a subnet does not apply to errors to hosts of this subnet, although their source is an address
    of the router in it. A rule with `not from` applies to them. Linux chooses the source of an IPv6
    error first."""
    rules(
        "route add default via 192.0.2.194 table 122",
        "-6 route add default via 2001:db8:3::2 table 122",
        "rule add pref 100 from 192.0.2.0/26 lookup 122",
        "-6 rule add pref 100 from 2001:db8:4::/64 lookup 122",
    )
    becomes(twin, EXT, dst="203.0.113.9")
    becomes(twin, ("icmp", "lan", 11, 0), ttl=1)
    becomes(twin, ("icmp", "ext", 3, 0), dst=TO6, hlim=1)
    becomes(twin, ("nothing",), src="203.0.113.7", ttl=1)
    rules("rule add pref 90 not from 192.0.2.64/26 lookup 122")
    becomes(twin, ("icmp", "ext", 11, 0), ttl=1)


def test_explain_says_what_forwarders_do(rules, twin, dut):
    """`fpmctl explain` names the rule, the table and the path of a packet that the router
    forwards."""
    rules(
        "rule add pref 100 from 192.0.2.2 lookup 100",
        "rule add pref 101 to 198.51.100.10 prohibit",
        SOURCES[0],
    )
    becomes(twin, EXT)
    becomes(twin, EXT, dst=TO6)
    becomes(twin, ("icmp", "alt", 3, 13), name="alt", dst="198.51.100.10")
    lan, alt = dut.wires["lan"], dut.wires["alt"]

    def explained(wire, dst):
        words = ("explain", "port", wire.tap, "src", wire.peer(6 if ":" in dst else 4), "dst", dst)
        return dut.fpmctl(*words).stdout

    said = explained(lan, TO4)
    assert "rule       100, table 100" in said and "FORWARDED by ext0" in said
    said = explained(alt, TO4)
    assert "rule       32766, table 254" in said and "FORWARDED by wan0" in said
    said = explained(alt, "198.51.100.10")
    assert "rule       101, prohibit" in said and "DROPPED, prohibit" in said
    said = explained(lan, TO6)
    assert "FORWARDED by ext0" in said
    assert "rule       no rule decides" in explained(alt, TO6)


NEAR = "203.0.113.9/32"
# Without the interface, FRR 10.3 does not install a route again that the kernel lost (frr.md).
ZEBRA = f"""fpm address 127.0.0.1
ip route 198.51.100.0/24 192.0.2.66 wan0
ip route {NEAR} 192.0.2.194 ext0 table 1120
"""
PBR = [
    "pbr-map ROUND seq 5",
    "match src-ip 192.0.2.0/26",
    "match dst-ip 198.51.100.8/29",
    "set nexthop 192.0.2.194",
    "exit",
    "interface lan0",
    "pbr-policy ROUND",
]


@pytest.mark.skipif(
    not os.access(f"{frr.PROGRAMS}/pbrd", os.X_OK), reason="FRR has no pbrd here"
)
def test_a_map_of_pbrd_is_obeyed(own_dut):
    """A `pbr-map` of FRR on an interface: its packets leave by the next hop of the map, other
    packets by the route of zebra. After `no pbr-policy` zebra's route counts for all. `explain`
    names the rule and the table of pbrd. A static route of FRR in another table of a rule is
    obeyed, too, also by a daemon that starts after FRR: zebra does not replay it."""
    dut = own_dut()
    dut.start()
    dut.zebra.close()
    lan, wan, alt, ext = (dut.wires[n] for n in ("lan", "wan", "alt", "ext"))

    def leaves_by(wire, out, dst=TO4):
        eventually(lambda: dut.forwarded(wire, wire.probe(dst), out, 0.2), 10, 0.05)

    dut.ip(f"rule add pref 90 to {NEAR} lookup 1120")
    with frr.beside(dut, ZEBRA, ["pbrd", "staticd"]) as router:
        leaves_by(lan, wan)
        leaves_by(lan, ext, NEAR[:-3])
        dut.stop()
        # The kernel has deleted zebra's next hops, because the TAPs have lost their carrier. If the
        # carrier came back before zebra 8.4 saw that, zebra would not install its routes again.
        eventually(lambda: f"S>* {NEAR}" not in router.vtysh("show ip route table 1120"), 10)
        Dut.start(dut)  # Router.start() waits until there are no routes of zebra
        leaves_by(lan, wan)
        leaves_by(lan, ext, NEAR[:-3])
        router.configure(*PBR)
        leaves_by(lan, ext)
        leaves_by(alt, wan)
        dut.forwarded(lan, lan.probe("198.51.100.99"), wan)
        said = dut.fpmctl("explain", "port", "lan0", "src", lan.peer4, "dst", TO4).stdout
        rule = next(r for r in dut.control.ask("rules") if r["iif"] == "lan0")
        assert f"rule       {rule['pref']}, table {rule['table']}" in said
        router.configure("interface lan0", "no pbr-policy ROUND")
        leaves_by(lan, wan)


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_rules_are_in_force_before_the_first_packet(own_dut, how):
    """Numbered packets that a rule concerns leave by its table before and after a planned restart
    or a crash. None leaves by the route of main."""
    dut = own_dut(supervised=True)
    dut.start()
    lan, wan, ext = (dut.wires[n] for n in ("lan", "wan", "ext"))
    dut.ip(
        f"route add {NET4} via {wan.peer4}",
        f"route add {NET4} via {ext.peer4} table 100",
        "rule add iif lan0 lookup 100",
    )
    eventually(lambda: dut.forwarded(lan, lan.probe(TO4), ext, 0.2), 5, 0.05)
    with dut.stream(lan, TO4) as stream:
        was = dut.daemon.pid()
        if how == "restart":
            assert dut.fpmctl("restart").returncode == 0
        else:
            dut.daemon.crash()
        dut.daemon.back(was)
        dut.control.close()
        last = stream.sent
        eventually(lambda: max(stream.arrived(ext), default=0) > last + 100, 20, 0.05)
    assert stream.arrived(wan) == {}
