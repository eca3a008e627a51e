# SPDX-License-Identifier: BSD-3-Clause
"""End points of SRv6 that zebra announces: the handling of packets to their SIDs by RFC 8986 and
9800. scapy builds and dissects the packets. S5 to S16 number the kinds of handling."""

import ipaddress
import json
import socket
import struct

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6ParamProblem,
    IPv6,
    IPv6ExtHdrFragment,
    IPv6ExtHdrSegmentRouting,
)
from scapy.layers.l2 import Ether

from lib import api, netns
from lib.fpm_speaker import attr
from lib.wait import eventually
from test_capture import capture
from test_warnings import POLLED, attribute, gone, message, rows, send, told
from wire import token, token_of

SEG6LOCAL = 7  # LWTUNNEL_ENCAP_SEG6_LOCAL
ACTION, SRH, TABLE, NH4, NH6, OIF, VRFTABLE, FLAVORS = 1, 2, 3, 4, 5, 7, 9, 11
FLAVOR_OPERATION, FLAVOR_BLOCK, FLAVOR_NODE = 1, 2, 3
END, END_X, DX6, DX4, DT6, DT4, B6, DT46 = 1, 2, 5, 6, 7, 8, 10, 16
PSP, NEXT_CSID = 1 << 1, 1 << 4
MAIN = 254
SID, NEXT = "2001:db8:ff00::1", "2001:db8:ff01::1"
NET4, HOST4 = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:a::/48", "2001:db8:a::9"


@pytest.fixture
def plain(dut, wan):
    """The router with a route by wan to each host, and to the next SID."""
    dut.route(NET4, wan.peer4, wan)
    dut.route(NET6, wan.peer6, wan)
    dut.route("2001:db8:ff01::/48", wan.peer6, wan)
    return dut


def announce(dut, action, *attributes, prefix=f"{SID}/128"):
    """Announce the SID as zebra does. The interface has no effect, but zebra sends one."""
    encap = attr(ACTION, action) + b"".join(attributes)
    hop = dut.zebra.hop(oif=1, encap=(SEG6LOCAL, encap))
    dut.zebra.add(prefix, hop)
    dut.in_force(prefix, hop)  # the SID may be there before, with another action
    assert dut.route_row(prefix)["nexthops"][0]["srv6"]


def outer(lan, probe, dst=SID, hlim=64, segments=None, left=0, tc=0):
    """Put the IP packet of a probe behind an outer header, and a routing header."""
    ip = IPv6(src=lan.peer6, dst=dst, hlim=hlim, tc=tc)
    if segments:
        ip /= IPv6ExtHdrSegmentRouting(addresses=segments, segleft=left, lastentry=len(segments) - 1)
    return Ether(src=lan.mac, dst=lan.port_mac) / ip / probe[Ether].payload


@pytest.mark.parametrize("segments", [None, [SID]], ids=["bare", "srh"])
@pytest.mark.parametrize(
    "action, table, host",
    [(DT4, VRFTABLE, HOST4), (DT6, TABLE, HOST6), (DT46, VRFTABLE, HOST4), (DT46, VRFTABLE, HOST6)],
)
def test_a_packet_inside_leaves_by_the_table_of_its_end_point(plain, lan, wan, action, table, host, segments):
    """S11: the outer headers come off, and the TTL falls once."""
    announce(plain, action, attr(table, MAIN))
    probe = lan.probe(host)
    came = plain.forwarded(lan, outer(lan, probe, segments=segments), wan)
    inside = came[Ether].payload
    assert (came[Ether].src, came[Ether].dst) == (wan.port_mac, wan.mac)
    assert inside.dst == host and bytes(inside[UDP]) == bytes(probe[UDP])
    assert (inside.ttl if IP in came else inside.hlim) == 63
    if IP in came:
        checksum = inside.chksum
        del inside.chksum
        assert IP(bytes(inside)).chksum == checksum


def test_a_capture_has_the_outer_packet_and_the_inner_packet(plain, lan, wan):
    """The filter of a capture is compared with the outer packet as it was received, and then with the
    inner packet."""
    announce(plain, DT4, attr(VRFTABLE, MAIN))
    frame = outer(lan, lan.probe(HOST4))
    (came, *_) = capture(plain, lan, [frame], 1, dst=SID)
    assert came[:3] == (lan.tap, "in", bytes(frame))
    wan.clear()
    inside, left = capture(plain, lan, [frame], 2, dst=HOST4)
    assert (inside[:2], inside[2][14:]) == ((lan.tap, "in"), bytes(frame[IP]))
    assert left[:3] == (wan.tap, "out", wan.expect_raw(token_of(frame)))


def test_doctor_says_which_tos_rules_see(plain, lan, wan, alt):
    """Rules with a TOS match the TOS of the inner packet. Linux uses TOS 0 for the lookup."""
    notes = lambda: [r["status"] for r in json.loads(plain.fpmctl("--json", "doctor", "srv6").stdout) if r["subject"] == "tos"]  # noqa: E731
    plain.ip("rule add pref 90 tos 0x10 lookup 77", f"route add {NET4} via {alt.peer4} dev alt0 table 77")
    try:
        eventually(lambda: any(r["tos"] for r in plain.control.ask("rules")), what="the rule is read")
        announce(plain, DT6, attr(TABLE, MAIN))
        assert notes() == []
        announce(plain, DT4, attr(VRFTABLE, MAIN))
        assert notes() == ["ok"]
        for tos, out in ((0, wan), (0x10, alt)):
            eventually(lambda t=tos, o=out: plain.forwarded(lan, outer(lan, lan.probe(HOST4, tos=t)), o), 5, 0.1, f"TOS {tos}")
    finally:
        plain.ip("rule del pref 90", "route flush table 77")


def parameter_problem(plain, lan, probe, code, pointer, reason):
    """Send a packet. Check the ICMPv6 parameter problem that answers it (RFC 4443, 3.4)."""
    before = plain.counters()
    reply = lan.srp1(probe)
    problem = reply[ICMPv6ParamProblem]
    assert (reply[IPv6].src, reply[IPv6].dst) == (lan.ip6, lan.peer6)
    assert (problem.code, problem.ptr) == (code, pointer)
    assert bytes(reply[IPv6])[48:] == bytes(probe[IPv6])[: len(bytes(reply[IPv6])) - 48]
    assert plain.drops(before) == {reason: 1}


def test_a_packet_inside_of_another_family_is_answered(plain, lan):
    """S11, RFC 8986, 4.7 and 4.1.1: End.DT4 takes no IPv6."""
    announce(plain, DT4, attr(VRFTABLE, MAIN))
    parameter_problem(plain, lan, outer(lan, lan.probe(HOST6)), 4, 40, "srv6_upper")


def test_a_segment_that_is_left_does_not_end_here(plain, lan):
    """S11, RFC 8986, 4.7: the end points that decapsulate are the last segment."""
    announce(plain, DT4, attr(VRFTABLE, MAIN))
    probe = outer(lan, lan.probe(HOST4), segments=[NEXT, SID], left=1)
    parameter_problem(plain, lan, probe, 0, 43, "srv6_segments")


def test_end_answers_packets_that_it_cannot_advance(plain, lan):
    """S5, S6: End sends an ICMP error about a packet at its last segment, because it lacks the flavor
    USD, and about a packet with more segments left than its list has."""
    announce(plain, END)
    last = outer(lan, lan.probe(HOST4), segments=[NEXT, SID], left=0)
    parameter_problem(plain, lan, last, 4, 40 + 8 + 32, "srv6_upper")
    many = outer(lan, lan.probe(HOST4), segments=[NEXT, SID], left=3)
    parameter_problem(plain, lan, many, 0, 43, "srv6_segments")


def test_b6_puts_the_packet_behind_its_policy(plain, lan, wan):
    """S13, RFC 8986, 4.13: the packet goes on to its next segment, and gets an outer header with the
    segments of the policy."""
    eventually(lambda: plain.fpm()["srv6_source"], 10, what="the source of SRv6 is known")
    first, second = "2001:db8:ff01::5", "2001:db8:ff01::6"
    packed = b"".join(ipaddress.ip_address(sid).packed for sid in (second, first))
    announce(plain, B6, attr(SRH, bytes([0, 4, 4, 1, 1, 0, 0, 0]) + packed))
    probe = lan.probe(HOST4)
    came = plain.forwarded(lan, outer(lan, probe, segments=[NEXT, SID], left=1), wan)
    policy = came[IPv6]
    assert (policy.src, policy.dst, policy.hlim) == (wan.ip6, first, 64)
    assert policy[IPv6ExtHdrSegmentRouting].addresses == [second, first]
    inside = policy.payload[IPv6]
    assert (inside.src, inside.dst, inside.hlim) == (lan.peer6, NEXT, 63)
    assert inside[IPv6ExtHdrSegmentRouting].segleft == 0
    assert bytes(came[UDP]) == bytes(probe[UDP])


def test_congestion_that_the_outer_header_met_is_told_inside(plain, lan, wan):
    """RFC 6040: the inner packet gets the congestion mark of its outer header."""
    announce(plain, DT4, attr(VRFTABLE, MAIN))
    came = plain.forwarded(lan, outer(lan, lan.probe(HOST4, tos=2), tc=3), wan)
    assert came[IP].tos == 3


@pytest.mark.parametrize("psp", [False, True])
def test_end_goes_on_to_the_next_segment(plain, lan, wan, psp):
    """S5, S7: the destination becomes the next segment, and the hop limit falls. With PSP the routing
    header comes off if the next segment is the last one."""
    announce(plain, END, *([attr(FLAVORS, attr(FLAVOR_OPERATION, PSP))] if psp else []))
    probe = lan.probe(HOST4)
    came = plain.forwarded(lan, outer(lan, probe, segments=[NEXT, SID], left=1), wan)
    assert (came[IPv6].dst, came[IPv6].hlim) == (NEXT, 63)
    assert came[IPv6].plen == len(came[IPv6].payload)
    assert (IPv6ExtHdrSegmentRouting in came) is not psp
    if not psp:
        assert came[IPv6ExtHdrSegmentRouting].segleft == 0
    assert bytes(came[UDP]) == bytes(probe[UDP]) and came[IP].ttl == 64


def test_end_x_sends_to_its_neighbor_whatever_the_route_says(plain, lan, alt):
    """S9: the packet goes to the neighbor of End.X, although the next segment has a route by
    wan."""
    announce(plain, END_X, attr(NH6, ipaddress.ip_address(alt.peer6).packed))
    probe = lan.probe(HOST4)
    came = plain.forwarded(lan, outer(lan, probe, segments=[NEXT, SID], left=1), alt)
    assert (came[IPv6].dst, came[IPv6].hlim, came[Ether].dst) == (NEXT, 63, alt.mac)


@pytest.mark.parametrize("out", ["alt", "lan"])
def test_a_link_local_neighbor_is_on_the_interface_of_its_end_point(plain, lan, wan, alt, out):
    """S9, as in Linux: the neighbor is on the interface that End.X names (since Linux 6.17), or on the
    ingress interface if End.X names none. The same address is on three links, and the default route is
    by wan."""
    plain.route("::/0", wan.peer6, wan)
    mac = {wire.name: plain.neighbor("fe80::9", wire, f"02:00:00:00:99:0{i}")
           for i, wire in enumerate((lan, wan, alt))}  # fmt: skip
    peer = attr(NH6, ipaddress.ip_address("fe80::9").packed)
    announce(plain, END_X, peer, *([attr(OIF, plain.ifindex(alt))] if out == "alt" else []))
    probe = lan.probe(HOST4)
    came = plain.forwarded(lan, outer(lan, probe, segments=[NEXT, SID], left=1), {"alt": alt, "lan": lan}[out])
    assert (came[IPv6].dst, came[IPv6].hlim, came[Ether].dst) == (NEXT, 63, mac[out])
    assert bytes(came[UDP]) == bytes(probe[UDP])
    text = "End.X fe80::9" + (f" oif {alt.tap}" if out == "alt" else "")
    assert plain.route_row(f"{SID}/128")["nexthops"][0]["srv6"] == text


def test_the_kernel_gets_a_packet_to_an_unknown_link_local_neighbor(plain, lan, wan):
    """The kernel gets the packet as it came, because no FIB has the neighbor. The default route does
    not lead to it."""
    plain.route("::/0", wan.peer6, wan)
    announce(plain, END_X, attr(NH6, ipaddress.ip_address("fe80::a").packed))
    probe = outer(lan, lan.probe(HOST4), segments=[NEXT, SID], left=1)
    lan.send(probe)
    assert plain.taps["lan"].expect_raw(token_of(probe)) == bytes(probe)
    assert wan.got(token_of(probe)) == []


@pytest.mark.parametrize("action, kind, host", [(DX4, NH4, HOST4), (DX6, NH6, HOST6)])
def test_end_dx_sends_the_packet_inside_to_its_neighbor(plain, lan, alt, action, kind, host):
    """S11: the inner packet goes to the neighbor of End.DX*, although it has a route by wan."""
    peer = alt.peer4 if kind == NH4 else alt.peer6
    announce(plain, action, attr(kind, ipaddress.ip_address(peer).packed))
    came = plain.forwarded(lan, outer(lan, lan.probe(host)), alt)
    inside = came[Ether].payload
    assert inside.dst == host and (inside.ttl if IP in came else inside.hlim) == 63


def test_next_c_sid_shifts_the_destination(plain, lan, wan):
    """S10, RFC 9800: the bits behind the node id move up to the end of the block; zeros follow."""
    flavors = attr(FLAVOR_OPERATION, NEXT_CSID) + attr(FLAVOR_BLOCK, b"\x20") + attr(FLAVOR_NODE, b"\x10")
    announce(plain, END, attr(FLAVORS, flavors), prefix="2001:db8:ff00::/48")
    came = plain.forwarded(lan, outer(lan, lan.probe(HOST4), dst="2001:db8:ff00:ff01:7::"), wan)
    assert (came[IPv6].dst, came[IPv6].hlim) == ("2001:db8:ff01:7::", 63)


def test_the_kernel_takes_what_forwarders_do_not(plain, lan):
    """S6, S16: the kernel gets a ping of the SID, and a fragment of an outer packet."""
    announce(plain, DT4, attr(VRFTABLE, MAIN))
    whole = outer(lan, lan.probe(HOST4))
    part = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=SID)
    part = part / IPv6ExtHdrFragment(m=1, nh=4) / whole[IPv6].payload
    head = Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=lan.peer6, dst=SID)
    for probe in (head / ICMPv6EchoRequest(data=token()), part):
        lan.send(probe)
        assert plain.taps["lan"].expect_raw(token_of(probe)) == bytes(probe)


def test_an_end_point_that_is_not_supported_says_why(plain, lan):
    """End.DX2 is not supported: its packets are dropped."""
    hop = plain.zebra.hop(oif=1, encap=(SEG6LOCAL, attr(ACTION, 4)))
    plain.zebra.add(f"{SID}/128", hop)
    eventually(
        lambda: plain.route_row(f"{SID}/128")["nexthops"][0]["srv6"]
        == "unsupported: the action is not supported",
        5,
        what="the reason is shown",
    )
    assert plain.not_forwarded(lan, outer(lan, lan.probe(HOST4))) == {"unsupported_encap": 1}


def test_packets_are_counted_for_each_sid(plain, lan, wan):
    """`show sids` and the API have packets, octets and errors of each SID. Both SIDs have the same
    action."""
    other = "2001:db8:ff00::2"
    for sid in (SID, other):
        announce(plain, DT4, attr(VRFTABLE, MAIN), prefix=f"{sid}/128")
    good = outer(lan, lan.probe(HOST4))
    plain.forwarded(lan, good, wan)
    plain.not_forwarded(lan, outer(lan, lan.probe(HOST6), dst=other))

    rows = plain.control.ask("sids", prefix="2001:db8:ff00::/48")
    api.validate(rows, api.rows_schema("GET", "/sids")[1]["schema"])
    counted = {r["sid"]: (r["packets"], r["bytes"], r["errors"]) for r in rows}
    assert counted == {f"{SID}/128": (1, len(good[IPv6]), 0), f"{other}/128": (0, 0, 1)}
    assert rows[0]["nexthops"][0]["srv6"] == "End.DT4 table 254"
    assert [r["sid"] for r in plain.control.ask("sids", prefix=other)] == [f"{other}/128"]

    shown = plain.fpmctl("show", "sids").stdout.splitlines()
    assert shown[1].split() == [f"{SID}/128", "1", str(len(good[IPv6])), "B", "0", "End.DT4", "table", "254"]
    assert shown[2].split()[:5] == [f"{other}/128", "0", "0", "B", "1"]

    plain.zebra.drop(f"{other}/128")
    eventually(lambda: not plain.control.ask("sids", prefix=other), 5, what="the SID is gone")
    assert plain.fpmctl("show", "sids", "2001:db8:fffe::/48").returncode == 3


def test_sids_of_a_table_that_a_rule_names_are_counted(plain, lan, wan):
    """The same SID is in table main and in the table of a rule about lan. Packets of lan are counted
    for the SID in the table of the rule."""
    plain.ip("-6 rule add pref 100 iif lan0 lookup 100")
    try:
        announce(plain, DT4, attr(VRFTABLE, MAIN))
        hop = plain.zebra.hop(oif=1, encap=(SEG6LOCAL, attr(ACTION, DT4) + attr(VRFTABLE, MAIN)))
        plain.zebra.add(f"{SID}/128", hop, table=100)
        eventually(lambda: len(plain.control.ask("sids")) == 2, 5, what="two SIDs")
        prefs = lambda: {r["pref"] for r in plain.control.ask("rules")}  # noqa: E731
        eventually(lambda: 100 in prefs(), 5, what="the rule is read")
        plain.forwarded(lan, outer(lan, lan.probe(HOST4)), wan)
        rows = plain.control.ask("sids", prefix=SID)
        api.validate(rows, api.rows_schema("GET", "/sids")[1]["schema"])
        assert {(r["table"], r["vrf"], r["packets"]) for r in rows} == {(254, None, 0), (100, None, 1)}
        assert f"{SID}/128 table 100" in plain.fpmctl("show", "sids").stdout
    finally:
        plain.ip("-6 rule del pref 100")
    eventually(lambda: len(plain.control.ask("sids")) == 1, 5, what="the SID of main alone")


SEG6_SETHMAC, SEG6_HMACKEYID, SEG6_SECRET, SEG6_SECRETLEN, SEG6_ALGID = 1, 3, 4, 5, 6


def family_of(dut, name):
    """Return the number of a family of generic netlink."""
    head = struct.pack("=BBH", 3, 1, 0)  # CTRL_CMD_GETFAMILY
    with netns.entered(dut.ctl):
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
    with sock:
        sock.settimeout(5)
        sock.send(message(16, 1, head + attribute(2, name.encode() + b"\0")))
        answer = sock.recv(65536)[20:]
    while answer:
        length, kind = struct.unpack_from("=HH", answer)
        if kind == 1:
            return struct.unpack_from("=H", answer, 4)[0]
        answer = answer[-(-length // 4) * 4 :]
    raise AssertionError(f"no family {name}")


def hmac_key(dut, secret):
    """Set the key 7 of `ip sr hmac`, which itself reads a terminal; an empty secret removes it."""
    fields = attribute(SEG6_HMACKEYID, struct.pack("=I", 7)) + attribute(SEG6_SECRETLEN, bytes([len(secret)]))
    fields += attribute(SEG6_ALGID, b"\2") + (attribute(SEG6_SECRET, secret) if secret else b"")
    send(dut, 16, message(family_of(dut, "SEG6"), 5, struct.pack("=BBH", SEG6_SETHMAC, 1, 0) + fields))


def test_keys_for_the_hmac_of_srv6_are_told(dut):
    """End points do not verify the HMAC of a routing header (RFC 8754, 2.1.2), and Linux does."""
    where = "keys of ip sr hmac"
    assert where not in rows(dut)
    hmac_key(dut, b"secret")
    try:
        told(dut, "srv6", where, POLLED)
    finally:
        hmac_key(dut, b"")
    gone(dut, "srv6", where, POLLED)
