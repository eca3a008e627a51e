# SPDX-License-Identifier: BSD-3-Clause
"""`fpmctl show rules` has each part of a rule of policy routing, in the words of `ip rule`, and the
audit compares it. Parts that the installed `ip` does not know are sent as netlink messages."""

import json
import os
import socket
import struct

import pytest

from lib import api, netns
from lib.wait import eventually
from rules_beside import ALT, EXT, NET4, TO4, TO6, WAN, becomes
from rules_beside import routers, rules, twin  # noqa: F401

# Attributes of linux/fib_rules.h
PRIORITY, FLOW, TUN_ID, TABLE, PROTO, SPORT, DPORT, DSCP, LABEL, LABEL_MASK, SPORT_MASK, DPORT_MASK, DSCP_MASK = (
    6, 11, 12, 15, 22, 23, 24, 25, 26, 27, 28, 29, 30
)  # fmt: skip
NEW, DELETE = 32, 33


def ports(first, last=0):
    """Return a range of ports of a message."""
    return struct.pack("=HH", first, last or first)


def attributes(values):
    """Return netlink attributes: (type, octets)."""
    octets = b""
    for kind, value in values:
        octets += struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    return octets


def rule_change(ns, kind, family, pref, table, values):
    """Add or delete a rule in a namespace by a netlink message. Returns the kernel's error."""
    af = socket.AF_INET if family == 4 else socket.AF_INET6
    body = struct.pack("=BBBBBBBBI", af, 0, 0, 0, 0, 0, 0, 1, 0)
    body += attributes([(PRIORITY, struct.pack("=I", pref)), (TABLE, struct.pack("=I", table)), *values])
    with netns.open_socket(ns, socket.AF_NETLINK, socket.SOCK_RAW) as sock:
        sock.send(struct.pack("=IHHII", 16 + len(body), kind, 0x605 if kind == NEW else 5, 1, 0) + body)
        return struct.unpack_from("=i", sock.recv(8192), 16)[0]


@pytest.fixture
def messages(twin):
    """A function that adds a rule to both routers by a message, for the length of a test."""
    undo = []

    def add(family, pref, table, values):
        for ns in (twin.dut.ctl, twin.here):
            error = rule_change(ns, NEW, family, pref, table, values)
            assert error == 0, os.strerror(-error)
            undo.append((ns, family, pref, table, values))

    yield add
    for ns, family, pref, table, values in undo:
        assert rule_change(ns, DELETE, family, pref, table, values) == 0


def u8(value):
    """Return an octet of a message."""
    return bytes([value])


def u16(value):
    """Return two octets of a message."""
    return struct.pack("=H", value)


# (family, pref, words of `ip rule add`, words of `show rules`)
BY_WORDS = [
    (4, 90, "from 10.1.0.0/16 iif lan0 oif gone0 lookup 100", "from 10.1.0.0/16 iif lan0 oif gone0 [detached] lookup 100"),
    (4, 91, "fwmark 7 lookup 100", "from all fwmark 0x7 lookup 100"),
    (4, 92, "fwmark 7/0xff lookup main", "from all fwmark 0x7/0xff lookup main"),
    (4, 93, "fwmark 0/0xff to 10.2.0.0/16 lookup 100", "from all to 10.2.0.0/16 fwmark 0x0/0xff lookup 100"),
    (4, 94, "not uidrange 5-9 to 10.2.0.0/16 nop", "not from all to 10.2.0.0/16 uidrange 5-9 nop"),
    (4, 95, "tun_id 77 lookup 100", "from all tun_id 77 lookup 100"),
    (4, 96, "to 10.2.0.0/16 tos 0x10 prohibit", "from all to 10.2.0.0/16 tos 0x10 prohibit"),
    (4, 97, "to 10.2.0.0/16 lookup 100 realms 3/4", "from all to 10.2.0.0/16 lookup 100 realms 3/4"),
    (4, 98, "to 10.2.0.0/16 lookup 100 realms 4", "from all to 10.2.0.0/16 lookup 100 realms 4"),
    (4, 99, "to 10.2.0.0/16 lookup 100 protocol zebra", "from all to 10.2.0.0/16 lookup 100 proto zebra"),
    (4, 100, "to 10.2.0.0/16 lookup 100 protocol 99", "from all to 10.2.0.0/16 lookup 100 proto 99"),
    (4, 101, "goto 103", "from all goto 103"),
    (4, 102, "to 10.2.0.0/16 goto 20000", "from all to 10.2.0.0/16 goto 20000 [unresolved]"),
    (4, 103, "l3mdev", "from all l3mdev"),
    (4, 104, "iif gone0 ipproto udp sport 5-9 dport 53 blackhole",
     "from all iif gone0 [detached] ipproto 17 sport 5-9 dport 53 blackhole"),
    (4, 105, "lookup main suppress_prefixlength 0 suppress_ifgroup 3",
     "from all lookup main suppress_prefixlength 0 suppress_ifgroup 3"),
    (6, 90, "to 2001:db8:78::/48 oif lan0 unreachable", "from all to 2001:db8:78::/48 oif lan0 unreachable"),
    (6, 91, "fwmark 0x10/0x30 lookup local", "from all fwmark 0x10/0x30 lookup local"),
]  # fmt: skip

# (family, pref, attributes, words), for rules that look up table 100
BY_MESSAGE = [
    (4, 110, [(DSCP, u8(46))], "from all dscp 46 lookup 100"),
    (4, 111, [(DSCP, u8(0)), (PROTO, u8(6))], "from all dscp 0 ipproto 6 lookup 100"),
    (4, 112, [(DSCP, u8(40)), (DSCP_MASK, u8(0x38))], "from all dscp 40/0x38 lookup 100"),
    (4, 113, [(SPORT, ports(0x100)), (SPORT_MASK, u16(0xFF00))], "from all sport 256/0xff00 lookup 100"),
    (4, 114, [(DPORT, ports(80)), (DPORT_MASK, u16(0xFFFF))], "from all dport 80 lookup 100"),
    (6, 110, [(DSCP, u8(1)), (DSCP_MASK, u8(1)), (SPORT, ports(7, 9))], "from all dscp 1/0x1 sport 7-9 lookup 100"),
    (6, 111, [(LABEL, struct.pack("!I", 5)), (LABEL_MASK, struct.pack("!I", 0xFF))],
     "from all flowlabel 0x5/0xff lookup 100"),
    (6, 112, [(LABEL, struct.pack("!I", 0x12345)), (LABEL_MASK, struct.pack("!I", 0xFFFFF))], "from all flowlabel 0x12345 lookup 100"),
    (6, 113, [(DPORT, ports(0x10)), (DPORT_MASK, u16(0xF0))], "from all dport 16/0xf0 lookup 100"),
]  # fmt: skip


VTYSH = """#!/bin/sh
case "$*" in
*summary*) echo '{"routes": []}' ;;
*json*) echo '{}' ;;
esac
"""


def test_each_part_of_a_rule_is_shown_and_compared(rules, messages, twin, tmp_path):
    """`show rules` has all parts of rules in the words of `ip rule`, its JSON conforms to the schema,
    and the audit finds both sides equal. The rules that packets cannot match are named."""
    dut = twin.dut
    rules(*(f"{'-6 ' if family == 6 else ''}rule add pref {pref} {words}" for family, pref, words, _ in BY_WORDS))
    for family, pref, values, _ in BY_MESSAGE:
        messages(family, pref, 100, values)
    wanted = [(f"ipv{f}", pref, words) for f, pref, _, words in [*BY_WORDS, *BY_MESSAGE]]
    eventually(lambda: len(dut.control.ask("rules")) == 5 + len(wanted), 5, 0.01)
    for row in dut.control.ask("rules"):
        api.validate(row, {"$ref": "#/components/schemas/Rule"})
    shown = " ".join(dut.fpmctl("show", "rules").stdout.split())
    for family, pref, words in wanted:
        assert f"{family} {pref} {words} " in shown, (words, shown)
    lacks = {(r["family"], r["pref"]): r["lacks"] for r in dut.control.ask("rules") if r["lacks"]}
    assert lacks == {
        ("ipv4", 91): "fwmark", ("ipv4", 92): "fwmark", ("ipv4", 94): "uidrange", ("ipv4", 95): "tun_id",
        ("ipv6", 91): "fwmark",
    }  # fmt: skip
    (tmp_path / "vtysh").write_text(VTYSH)  # a zebra without routes
    found = json.loads(dut.fpmctl("audit", "--json", "--vtysh", f"sh {tmp_path}/vtysh").stdout)
    assert (found["kernel_rules"], found["differences"]) == (5 + len(wanted), []), found


def test_masks_of_ports_and_of_the_dscp_are_obeyed(messages, twin):
    """Linux 6.13 to 6.15: rules with a DSCP, with its mask, with ports and masks, and with a flow label
    choose the table of packets."""
    messages(4, 110, 100, [(DSCP, u8(46))])
    messages(4, 111, 101, [(DSCP, u8(8)), (DSCP_MASK, u8(0x38))])
    messages(4, 112, 100, [(SPORT, ports(0x1000)), (SPORT_MASK, u16(0xFF00))])
    messages(4, 113, 101, [(DPORT, ports(0x2001)), (DPORT_MASK, u16(0x200F))])
    messages(6, 110, 100, [(DSCP, u8(46)), (DSCP_MASK, u8(0x3E))])
    messages(6, 111, 101, [(DPORT, ports(0x2001)), (DPORT_MASK, u16(0x200F))])
    messages(6, 112, 101, [(LABEL, struct.pack("!I", 5)), (LABEL_MASK, struct.pack("!I", 0xFF))])
    for want, probe in [
        (EXT, {"tos": 46 << 2}),
        (EXT, {"tos": 46 << 2 | 3}),
        (WAN, {"tos": 47 << 2}),
        (ALT, {"tos": 8 << 2}),
        (ALT, {"tos": 15 << 2}),
        (WAN, {"tos": 16 << 2}),
        (EXT, {"sport": 0x10FF}),
        (WAN, {"sport": 0x1100}),
        (ALT, {"dport": 0x2FF1}),
        (WAN, {"dport": 0x2FF2}),
        (EXT, {"dst": TO6, "tc": 47 << 2}),
        (WAN, {"dst": TO6, "tc": 44 << 2}),
        (ALT, {"dst": TO6, "dport": 0x2001}),
        (ALT, {"dst": TO6, "fl": 0xFF05}),
        (WAN, {"dst": TO6, "fl": 0xFF15}),
        (WAN, {"dst": TO6, "fl": 0}),
    ]:
        becomes(twin, want, **{"dst": TO4, **probe})


def test_routes_of_type_local_in_main_do_not_precede_rules(rules, twin, dut):
    """The rule for table local finds only the routes of table local: a route of main of type local or
    broadcast counts at the rule for main. `explain` says so."""
    rules(
        "route add broadcast 203.0.113.0/25 dev wan0 table main",
        "route add local 203.0.113.128/25 dev lo table main",
        "-6 route add local 2001:db8:300::/48 dev lo table main",
    )
    lan, dsts = dut.wires["lan"], ("203.0.113.9", "203.0.113.200", "2001:db8:300::9")

    def verdict(dst):
        words = ("explain", "port", lan.tap, "src", lan.peer(6 if ":" in dst else 4), "dst", dst)
        return dut.fpmctl(*words).stdout

    for dst in dsts:
        eventually(lambda dst=dst: "FORWARDED" not in verdict(dst) and "no_route" not in verdict(dst), 5, 0.02)
    rules(
        "route add default via 192.0.2.194 table 123",
        "-6 route add default via 2001:db8:3::2 table 123",
        "rule add pref 100 from all lookup 123",
        "-6 rule add pref 100 from all lookup 123",
    )
    for dst in dsts:
        becomes(twin, EXT, dst=dst)
        assert "FORWARDED by ext0" in verdict(dst)
