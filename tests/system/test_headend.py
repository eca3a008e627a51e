# SPDX-License-Identifier: BSD-3-Clause
"""Headends of SRv6 that zebra announces: the packets that leave by their routes, by RFC 8986, 5.
scapy dissects the packets."""

import ipaddress
import json
import struct

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6PacketTooBig,
    IPv6,
    IPv6ExtHdrSegmentRouting,
)
from scapy.layers.l2 import Ether

from labels import entries_of
from lib.fpm_speaker import RTN_BLACKHOLE, attr
from lib.wait import eventually
from test_capture import capture
from wire import token_of

SEG6, SRH, SOURCE = 5, 1, 2  # LWTUNNEL_ENCAP_SEG6, SEG6_IPTUNNEL_SRH, _SRC
INLINE, ENCAP, ENCAP_RED = 0, 1, 3
NAME = {ENCAP: "H.Encaps", ENCAP_RED: "H.Encaps.Red"}
NET4, HOST4 = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:a::/48", "2001:db8:a::9"
HOSTS = {NET4: HOST4, NET6: HOST6}
LOCATOR = "2001:db8:ff00::/40"
SIDS = [f"2001:db8:ff{n:02x}::{n}" for n in range(1, 6)]


@pytest.fixture
def core(dut, wan):
    """The router with a route by wan to all SIDs."""
    dut.route(LOCATOR, wan.peer6, wan)
    eventually(lambda: dut.fpm()["srv6_source"], 10, what="the source of SRv6 is known")
    return dut


def announce(dut, prefix, wire, sids, mode=ENCAP, source=None, mtu=None):
    """Announce a route as zebra does. The gateway is that of the underlay, and not used."""
    last = len(sids) - 1
    packed = b"".join(ipaddress.ip_address(sid).packed for sid in reversed(sids))
    header = bytes([0, 2 * len(sids), 4, last, last, 0, 0, 0]) + packed
    encap = attr(SRH, struct.pack("=I", mode) + header)
    if source:
        encap += attr(SOURCE, ipaddress.ip_address(source).packed)
    hop = dut.zebra.hop(wire.peer6, wire, encap=(SEG6, encap))
    dut.zebra.add(prefix, hop, mtu=mtu)
    return dut.in_force(prefix, hop)


def check_outer(dut, came, wan, sids, mode):
    """Check the outer headers. Return the inner packet."""
    outer = came[IPv6]
    assert (came[Ether].src, came[Ether].dst) == (wan.port_mac, wan.mac)
    assert (outer.src, outer.dst, outer.hlim) == (wan.ip6, sids[0], 64)
    assert outer.fl != 0 and outer.plen == len(outer.payload)
    listed = sids if mode == ENCAP else sids[1:]
    if not listed:
        assert IPv6ExtHdrSegmentRouting not in came
        return outer.payload
    routing = came[IPv6ExtHdrSegmentRouting]
    assert list(reversed(routing.addresses)) == listed
    assert (routing.segleft, routing.lastentry) == (len(sids) - 1, len(listed) - 1)
    assert (routing.type, routing.len, routing.tag) == (4, 2 * len(listed), 0)
    return routing.payload


@pytest.mark.parametrize("prefix", [NET4, NET6])
@pytest.mark.parametrize("mode, n", [(ENCAP, 1), (ENCAP, 4), (ENCAP_RED, 1), (ENCAP_RED, 5)])
def test_packets_leave_behind_an_outer_header(core, lan, wan, alt, mode, n, prefix):
    """The outer headers are right, and the TTL of the inner packet is decremented once. The first
    segment has a route by wan; the gateway of the headend, by alt, does not matter."""
    row = announce(core, prefix, alt, SIDS[:n], mode)
    assert row["state"] == "forwarding"
    assert row["nexthops"][0]["srv6"] == " ".join([NAME[mode], *SIDS[:n]])
    host = HOSTS[prefix]
    probe = lan.probe(host, **({"tos": 0xB9} if "." in host else {"tc": 0xB9}))
    came = core.forwarded(lan, probe, wan)
    inside = check_outer(core, came, wan, SIDS[:n], mode)
    assert came[IPv6].tc == 0xB9
    assert inside.dst == host and bytes(inside[UDP]) == bytes(probe[UDP])
    assert (inside.ttl if "." in host else inside.hlim) == 63
    if "." in host:
        checksum = inside.chksum
        del inside.chksum
        assert IP(bytes(inside)).chksum == checksum
    assert core.taps["lan"].got(token_of(probe)) == []


def test_the_source_may_be_that_of_the_next_hop(core, lan, wan):
    announce(core, NET4, wan, SIDS[:1], source="2001:db8:bb::1")
    came = core.forwarded(lan, lan.probe(HOST4), wan)
    assert came[IPv6].src == "2001:db8:bb::1"


def test_flows_spread_over_equal_ways_to_the_first_segment(core, lan, wan, alt):
    """The flow label follows from the flow of the inner packet, and the flows take both paths."""
    ids = [core.zebra.hop(w.peer6, w) for w in (wan, alt)]
    core.route(LOCATOR, nhid=core.zebra.group(dict.fromkeys(ids, 1)))
    announce(core, NET4, wan, SIDS[:2])
    probes = [lan.probe(HOST4, sport=5000 + n) for n in range(64) for _ in range(2)]
    lan.send(*probes)
    core.fence(lan)
    seen = {}
    for wire in (wan, alt):
        for probe in probes:
            for data in wire.got(token_of(probe)):
                path = (wire.name, Ether(data)[IPv6].fl)
                seen.setdefault(probe[UDP].sport, []).append(path)
    assert len(seen) == 64
    assert all(len(paths) == 2 and paths[0] == paths[1] for paths in seen.values())
    counts = [sum(paths[0][0] == wire.name for paths in seen.values()) for wire in (wan, alt)]
    assert min(counts) > 10
    assert len({paths[0][1] for paths in seen.values()}) > 60


@pytest.mark.parametrize("prefix", [NET4, NET6])
def test_without_a_route_to_the_first_segment_the_sender_is_told(core, lan, wan, prefix):
    """The sender gets an ICMP error if the first segment has no route. A packet whose first segment
    has a blackhole route is dropped."""
    announce(core, prefix, wan, SIDS[:1])
    core.zebra.drop(LOCATOR)
    eventually(lambda: core.route_row(LOCATOR) is None, 5, what="the route is gone")
    before = core.counters()
    reply = lan.srp1(lan.probe(HOSTS[prefix]))
    assert reply[IP if prefix == NET4 else IPv6].src == (lan.ip4 if prefix == NET4 else lan.ip6)
    assert (ICMP if prefix == NET4 else ICMPv6DestUnreach) in reply
    assert core.drops(before) == {"no_route": 1}
    core.route(LOCATOR, rtm_type=RTN_BLACKHOLE)
    assert core.not_forwarded(lan, lan.probe(HOSTS[prefix])) == {"blackhole": 1}


def test_a_changed_route_below_is_followed_at_once(core, lan, wan, alt):
    announce(core, NET4, wan, SIDS[:1])
    core.forwarded(lan, lan.probe(HOST4), wan)
    core.route(LOCATOR, alt.peer6, alt)
    came = core.forwarded(lan, lan.probe(HOST4), alt)
    assert (came[IPv6].src, came[Ether].dst) == (alt.ip6, alt.mac)


@pytest.mark.parametrize("prefix", [NET4, NET6])
def test_rules_for_a_tos_obey_that_of_the_outer_packet(core, lan, wan, alt, prefix):
    """The first segment is looked up with the TOS of the outer header, without the ECN bits."""
    announce(core, prefix, wan, SIDS[:2])
    field = "tos" if prefix == NET4 else "tc"
    probe = lambda value: lan.probe(HOSTS[prefix], **{field: value})  # noqa: E731
    leaves = lambda value, by: core.forwarded(lan, probe(value), by)[IPv6].tc == value  # noqa: E731
    core.ip(f"-6 route add {LOCATOR} via {alt.peer6} dev {alt.tap} table 77")
    core.ip("-6 rule add tos 0x10 lookup 77")
    try:
        eventually(lambda: leaves(0x10, alt), 5, 0.05, "the rule")
        assert leaves(0x12, alt) and leaves(0, wan) and leaves(0x20, wan)
    finally:
        core.ip("-6 rule del tos 0x10 lookup 77")
        core.ip("-6 route flush table 77")
    eventually(lambda: leaves(0x10, wan), 5, 0.05, "no rule")


OVER = 40 + 8 + 2 * 16


def test_packets_too_big_are_answered_with_what_fits(core, lan, wan):
    """A packet that is too big gets an ICMP error with the MTU of the link less the outer headers."""
    for prefix in (NET4, NET6):
        announce(core, prefix, wan, SIDS[:2])
    core.forwarded(lan, lan.probe(HOST4, size=1500 - OVER, flags="DF"), wan)
    core.forwarded(lan, lan.probe(HOST6, size=1500 - OVER), wan)
    before = core.counters()
    reply = lan.srp1(lan.probe(HOST4, size=1501 - OVER, flags="DF"))
    assert (reply[ICMP].type, reply[ICMP].code, reply[ICMP].nexthopmtu) == (3, 4, 1500 - OVER)
    assert reply[IP].src == lan.ip4
    reply = lan.srp1(lan.probe(HOST6, size=1501 - OVER))
    assert reply[ICMPv6PacketTooBig].mtu == 1500 - OVER
    assert core.drops(before) == {"mtu": 2}


def test_a_path_mtu_that_a_router_tells_is_obeyed(core, lan, wan):
    """An ICMPv6 error about an outer packet lowers the MTU of its headend. The test uses segments that
    no other test uses."""
    announce(core, NET4, wan, ["2001:db8:ff77::1", "2001:db8:ff77::2"])
    probe = lambda more: lan.probe(HOST4, size=1300 - OVER + more, flags="DF")  # noqa: E731
    sent = core.forwarded(lan, probe(1), wan)[IPv6]
    error = IPv6(src=wan.peer6, dst=sent.src) / ICMPv6PacketTooBig(mtu=1300) / bytes(sent)[:600]
    wan.send(Ether(src=wan.mac, dst=wan.port_mac) / error)
    reply = eventually(lambda: lan.srp1(probe(1), timeout=0.2), 5, what="the sender is told")
    assert (reply[ICMP].type, reply[ICMP].code, reply[ICMP].nexthopmtu) == (3, 4, 1300 - OVER)
    core.forwarded(lan, probe(0), wan)
    # A sender of IPv6 need not send less than 1280 octets.
    announce(core, NET6, wan, ["2001:db8:ff77::1", "2001:db8:ff77::2"])
    core.forwarded(lan, lan.probe(HOST6, size=1280), wan)
    assert lan.srp1(lan.probe(HOST6, size=1281))[ICMPv6PacketTooBig].mtu == 1280


@pytest.mark.parametrize("n", [2, 4])
def test_without_df_the_packet_inside_is_fragmented(core, lan, wan, n):
    """Each fragment of the inner packet gets the outer headers, also the longest outer headers."""
    announce(core, NET4, wan, SIDS[:n])
    probe = lan.probe(HOST4, size=1500, id=77)
    lan.send(probe)
    ours = lambda data: data[12:14] == b"\x86\xdd" and Ether(data)[IPv6].dst == SIDS[0]  # noqa: E731
    frames = [Ether(data) for data in wan.expect_many(ours, 2)]
    parts = sorted((f[IPv6ExtHdrSegmentRouting].payload for f in frames), key=lambda p: p.frag)
    assert all((p.id, p.ttl, p.dst) == (77, 63, HOST4) for p in parts)
    assert all(len(f[IPv6]) <= 1500 for f in frames)
    whole = b"".join(bytes(p)[20:] for p in parts)
    assert whole == bytes(probe[UDP])


def test_packets_wait_for_the_neighbor_of_the_outer_packet(core, lan, wan):
    """The kernel resolves the next hop of the first segment, and all packets that waited leave in
    order."""
    gateway = "2001:db8:1::77"
    core.route("2001:db8:ff01::/48", gateway, wan)
    announce(core, NET4, wan, SIDS[:2])
    probes = [lan.probe(HOST4) for _ in range(3)]
    lan.send(*probes)
    eventually(lambda: wan.solicitations(gateway), 5, what="the gateway is asked for")
    assert all(wan.got(token_of(probe)) == [] for probe in probes)
    wan.answer(gateway, "02:00:00:00:99:01")
    frames = wan.expect_many(lambda data: any(token_of(p) in data for p in probes), 3, 5)
    assert [token_of(data) for data in frames] == [token_of(probe) for probe in probes]
    for data in frames:
        came = Ether(data)
        assert came.dst == "02:00:00:00:99:01" and came[IPv6].dst == SIDS[0]
        assert came[IP].ttl == 63
    came = core.forwarded(lan, lan.probe(HOST4), wan)
    assert came.dst == "02:00:00:00:99:01"


def test_a_segment_on_the_link_is_its_own_neighbor(core, lan, wan):
    sid = "2001:db8:1::88"
    announce(core, NET6, wan, [sid], ENCAP_RED)
    probe = lan.probe(HOST6)
    lan.send(probe)
    eventually(lambda: wan.solicitations(sid), 5, what="the segment is asked for")
    wan.answer(sid, "02:00:00:00:99:02")
    came = wan.expect(token_of(probe), 5)
    assert (came.dst, came[IPv6].dst, came[IPv6].hlim) == ("02:00:00:00:99:02", sid, 64)


def test_a_used_up_ttl_is_answered(core, lan, wan):
    announce(core, NET4, wan, SIDS[:1])
    reply = lan.srp1(lan.probe(HOST4, ttl=1))
    assert (reply[ICMP].type, reply[ICMP].code) == (11, 0)


def test_the_kernel_keeps_what_forwarders_do_not_write(core, lan, wan):
    """Inline mode, and more segments than fit: the kernel gets the packet as it came, and the row of
    the route says why."""
    why = {
        NET6: (SIDS[:1], INLINE, "the mode of the headend is not supported"),
        NET4: (SIDS, ENCAP, "more segments than a packet buffer has room for"),
    }
    for prefix, (sids, mode, reason) in why.items():
        row = announce(core, prefix, wan, sids, mode)
        assert row["state"] == "through-kernel"
        assert row["nexthops"][0]["srv6"] == f"by the kernel: {reason}"
        probe = lan.probe(HOSTS[prefix])
        lan.send(probe)
        assert core.taps["lan"].expect_raw(token_of(probe)) == bytes(probe)
        assert wan.got(token_of(probe)) == []
        assert reason.split()[0] in core.fpmctl("show", "routes", prefix).stdout


def test_the_outer_packet_gets_the_labels_of_its_route(core, lan, wan):
    """The route to the first segment pushes two labels. They have the TTL of the outer packet, and count
    in the MTU. Packets wait for its gateway, which has an IPv4 address."""
    hop = core.zebra.hop("192.0.2.77", wan, labels=[300, 301])
    core.route(LOCATOR, nhid=hop)
    for prefix in HOSTS:
        announce(core, prefix, wan, SIDS[:2])
    probes = [lan.probe(HOST4), lan.probe(HOST6)]
    lan.send(*probes)
    eventually(lambda: wan.solicitations("192.0.2.77"), 5, what="the gateway is asked for")
    wan.answer("192.0.2.77", "02:00:00:00:99:03")
    for probe in probes:
        came = wan.expect(token_of(probe), 5)
        assert came.dst == "02:00:00:00:99:03"
        assert entries_of(came) == [(300, 64, 0, 0), (301, 64, 0, 1)]
        assert (came[IPv6].dst, came[IPv6].hlim) == (SIDS[0], 64)
    before = core.counters()
    came = core.forwarded(lan, lan.probe(HOST4, size=1500 - 8 - OVER, flags="DF", tos=0xB8), wan)
    assert entries_of(came) == [(300, 64, 5, 0), (301, 64, 5, 1)]
    reply = lan.srp1(lan.probe(HOST4, size=1501 - 8 - OVER, flags="DF"))
    assert (reply[ICMP].type, reply[ICMP].code, reply[ICMP].nexthopmtu) == (3, 4, 1500 - 8 - OVER)
    assert core.drops(before) == {"mtu": 1}
    data = bytes(lan.probe(HOST4))
    want = {"port": lan.tap, "frame": data.hex(), "frame_bytes": len(data)}
    (row,) = core.control.request({"explain": want})
    assert (row["path"], row["outer_push"], row["via"], row["out_ttl"]) == ("segments", [300, 301], "192.0.2.77", 64)
    said = core.fpmctl("explain", "port", lan.tap, "src", lan.peer4, "dst", HOST4).stdout
    assert "pushed before the outer header: 300/301" in said, said


def test_explain_and_show_name_the_segments(core, lan, wan):
    # Another test's policy of End.B6.Encaps keeps its entry until the next restart.
    text = " ".join(["H.Encaps", *SIDS[:3]])
    mine = lambda: [e for e in core.control.ask("encaps") if e["srv6"] == text]  # noqa: E731
    announce(core, NET4, wan, SIDS[:3])
    data = bytes(lan.probe(HOST4))
    want = {"port": lan.tap, "frame": data.hex(), "frame_bytes": len(data)}
    (row,) = core.control.request({"explain": want})
    assert (row["path"], row["segments"], row["verdict"]) == ("segments", SIDS[:3], "forwarded")
    assert (row["via"], row["mac"], row["out"], row["out_ttl"]) == (wan.peer6, wan.mac, wan.tap, 64)
    said = core.fpmctl("explain", "port", lan.tap, "src", lan.peer4, "dst", HOST4).stdout
    assert all(sid in said for sid in SIDS[:3]), said
    (encap,) = mine()
    assert encap["labels"] == []
    assert SIDS[2] in core.fpmctl("show", "encaps").stdout
    assert core.fpm()["headends"] >= 1
    doctor = json.loads(core.fpmctl("--json", "doctor", "srv6").stdout)
    assert [row["status"] for row in doctor] == ["ok", "ok"], doctor
    core.ip("-6 rule add pref 90 tos 0x10 lookup main")
    eventually(lambda: any(r["tos"] for r in core.control.ask("rules")), what="the rule is read")
    doctor = json.loads(core.fpmctl("--json", "doctor", "srv6").stdout)
    assert ("ok", "tos") in [(row["status"], row["subject"]) for row in doctor], doctor
    core.ip("-6 rule del pref 90", "-6 rule add pref 91 from 2001:db8:7::/48 lookup main")
    eventually(lambda: any(r["from"] != "all" for r in core.control.ask("rules")), what="the rule is read")
    (row,) = [r for r in json.loads(core.fpmctl("--json", "doctor", "srv6").stdout) if r["subject"] == "rules"]
    assert row["status"] == "warn" and row["fix"][0].endswith("ip sr tunsrc set ADDRESS"), row
    core.ip("-6 rule del pref 91")
    core.zebra.drop(NET4)
    eventually(lambda: mine() == [], 5, what="the entry is free")


def test_a_capture_has_the_packet_as_it_came_and_as_it_left(core, lan, wan):
    """The frame that leaves has the outer headers. Filters compare the outer packet there."""
    announce(core, NET4, wan, SIDS[:2])
    probe = lan.probe(HOST4)
    (came,) = capture(core, lan, [lan.probe(wan.ip4), probe], 1, dst=HOST4)
    assert came[:5] == (lan.tap, "in", bytes(probe), len(probe), "")
    wan.clear()
    (left,) = capture(core, lan, [probe], 1, dst=SIDS[0])
    sent = wan.expect_raw(token_of(probe))
    assert left[:5] == (wan.tap, "out", sent, len(sent), "")
    assert Ether(sent)[IPv6].dst == SIDS[0]
