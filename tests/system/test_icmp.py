# SPDX-License-Identifier: BSD-3-Clause
"""ICMP and ICMPv6 errors: their causes, source addresses, quotes and rates; fragments."""

import time

import pytest
from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrFragment,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib.fpm_speaker import RTN_BLACKHOLE, RTN_PROHIBIT, RTN_UNREACHABLE
from lib.wait import eventually
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


@pytest.fixture(autouse=True)
def full_bucket(dut):
    """Wait until the rate limit of errors has recovered before each test."""
    lan = dut.wires["lan"]

    def answered():
        for dst, src in (("203.0.113.250", None), ("2001:db8:ffff::250", None)):
            lan.srp1(lan.probe(dst, src=src), timeout=0.3)
        return True

    eventually(answered, 10, 0.05, "ICMP errors are answered again")
    lan.clear()


def right_sums(packet):
    """Return true if the checksums in a dissected frame are right."""
    again = Ether(bytes(packet))
    for layer in (IP, ICMP, ICMPv6DestUnreach, ICMPv6TimeExceeded, ICMPv6PacketTooBig):
        if layer in again:
            field = "cksum" if "ICMPv6" in layer.__name__ else "chksum"
            sent = getattr(again[layer], field)
            delattr(again[layer], field)
            built = Ether(bytes(again))
            if getattr(built[layer], field) != sent:
                return False
            setattr(again[layer], field, sent)
    return True


@pytest.mark.parametrize("ttl", [0, 1])
def test_expiring_ttl_is_answered_and_not_forwarded(dut, lan, wan, ttl):
    """A packet with an expiring TTL is not forwarded. Its source gets time exceeded in transit,
    from an address of the interface by which the packet came (RFC 1812, 5.3.1 and 4.3.3.4)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    before = dut.counters()
    probe = lan.probe(HOST, ttl=ttl)

    reply = lan.srp1(probe)

    assert (reply[ICMP].type, reply[ICMP].code) == (11, 0)
    assert (reply[IP].src, reply[IP].dst) == (lan.ip4, lan.peer4)
    assert (reply.src, reply.dst) == (lan.port_mac, lan.mac)
    assert right_sums(reply)
    assert wan.got(token_of(probe)) == []
    assert dut.drops(before) == {"ttl": 1}
    assert dut.moved(before, "punt")["ttl_expired"] == 1


@pytest.mark.parametrize("tos, of_error", [(0, 0xC0), (0x02, 0xC2), (0x10, 0xD0), (0xB8, 0xD8), (0x03, 0xC2)])
def test_errors_have_the_tos_bits_of_the_packet(dut, lan, wan, tos, of_error):
    """The TOS of an error is internetwork control (RFC 1812, 4.3.2.5) and the bits 0x1e of the
    packet. Linux 6.18 answered these packets with the same TOS."""
    dut.route(NET, via=wan.peer4, wire=wan)

    assert lan.srp1(lan.probe(HOST, ttl=1, tos=tos))[IP].tos == of_error


@pytest.mark.parametrize("hlim", [0, 1])
def test_expiring_hop_limit_is_answered_and_not_forwarded(dut, lan, wan, hlim):
    """A packet with an expiring hop limit is not forwarded. Its source gets hop limit exceeded in
    transit (RFC 4443, 3.3)."""
    dut.route(NET6, via=wan.peer6, wire=wan)
    before = dut.counters()
    probe = lan.probe(HOST6, hlim=hlim)

    reply = lan.srp1(probe)

    assert (reply[ICMPv6TimeExceeded].type, reply[ICMPv6TimeExceeded].code) == (3, 0)
    assert (reply[IPv6].src, reply[IPv6].dst) == (lan.ip6, lan.peer6)
    assert right_sums(reply)
    assert wan.got(token_of(probe)) == []
    assert dut.drops(before) == {"ttl": 1}


@pytest.mark.parametrize("size", [40, 128, 548, 549, 1500])
def test_the_quote_is_the_packet_as_it_came(dut, lan, wan, size):
    """An ICMP error quotes the packet unchanged, as much of it as fits 576 octets (RFC 1812,
    4.3.2.3)."""
    probe = lan.probe(HOST, size=size, ttl=1)
    dut.route(NET, via=wan.peer4, wire=wan)

    reply = lan.srp1(probe)

    quote = bytes(reply[IP])[28 : reply[IP].len]
    assert quote == bytes(probe[IP])[: 576 - 28]
    assert reply[IP].len <= 576


def test_the_quote_of_too_big_is_as_long_as_any(dut, lan, wan):
    """The quote in a "too big" error is as long as in other errors, so that the sender finds its
    connection in it (RFC 1812, 4.3.2.3 and RFC 4443, 2.4 (c))."""
    for prefix, dst, room in ((NET, HOST, 576 - 28), (NET6, HOST6, 1280 - 48)):
        gateway = wan.peer4 if prefix == NET else wan.peer6
        dut.route(prefix, nhid=dut.zebra.hop(gateway, wan), mtu=1300)
        probe = lan.probe(dst, size=1500, **({"flags": "DF"} if prefix == NET else {}))

        reply = lan.srp1(probe)

        head = 28 if prefix == NET else 48
        assert bytes(reply.payload)[head:] == bytes(probe.payload)[:room]


@pytest.mark.parametrize("size", [60, 700, 1232, 1500])
def test_the_quote_of_icmpv6_fits_the_minimum_mtu(dut, lan, wan, size):
    """An ICMPv6 error quotes the packet unchanged, as much of it as fits 1280 octets (RFC 4443, 2.4
    (c))."""
    probe = lan.probe(HOST6, size=size, hlim=1)
    dut.route(NET6, via=wan.peer6, wire=wan)

    reply = lan.srp1(probe)

    quote = bytes(reply[IPv6])[48 : 40 + reply[IPv6].plen]
    assert quote == bytes(probe[IPv6])[: 1280 - 48]


@pytest.mark.smoke
def test_the_quote_leaves_padding_out(dut, lan, wan):
    """An ICMP error quotes the datagram without the padding of the frame (RFC 1812, 4.3.2.3)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST, ttl=1)

    lan.send(bytes(probe) + b"\xee" * 22)

    reply = lan.expect(token_of(probe))
    assert b"\xee" * 8 not in bytes(reply[IP])[: reply[IP].len]
    assert reply[IP].len == 28 + len(probe[IP])


KINDS = {
    "no route": (None, "no_route", (3, 0), (1, 0)),
    "unreachable": (RTN_UNREACHABLE, "unreachable", (3, 1), (1, 0)),
    "prohibit": (RTN_PROHIBIT, "prohibit", (3, 13), (1, 1)),
}


@pytest.mark.parametrize("name", KINDS)
def test_refusing_routes_answer(dut, lan, name):
    """A packet to a refusing route gets an ICMP error whose code gives the reason (RFC 1812,
    5.2.7.1 and RFC 4443, 3.1)."""
    kind, reason, code4, code6 = KINDS[name]
    for prefix, dst, code in ((NET, HOST, code4), (NET6, HOST6, code6)):
        if kind:
            dut.route(prefix, rtm_type=kind)
        before = dut.counters()

        reply = lan.srp1(lan.probe(dst))

        layer = reply[ICMP] if ICMP in reply else reply[ICMPv6DestUnreach]
        assert (layer.type, layer.code) == code
        assert right_sums(reply)
        assert dut.drops(before) == {reason: 1}


def test_blackhole_routes_are_silent(dut, lan):
    """The router drops and counts packets to `blackhole` and `Null0` routes and sends no error."""
    for prefix, dst in ((NET, HOST), (NET6, HOST6)):
        dut.route(prefix, rtm_type=RTN_BLACKHOLE)
        probes = [lan.probe(dst) for _ in range(5)]
        assert dut.not_forwarded(lan, *probes) == {"blackhole": 5}
        assert [p for p in probes if lan.got(token_of(p))] == []


def test_errors_are_rate_limited_and_the_limit_recovers(dut, lan):
    """ICMP errors have a rate limit, and the limit recovers (RFC 1812, 4.3.2.8 and RFC 4443, 2.4
    (f))."""
    for dst in ("198.51.100.77", "2001:db8:f000::77"):
        before = dut.counters()
        probes = lan.flow_frames(dst, [(4000, 4001)] * 2000)
        begin = time.monotonic()
        lan.send(*probes)
        dut.fence(lan)
        took = time.monotonic() - begin

        assert dut.drops(before) == {"no_route": 2000}
        moved = dut.moved(before, "total")
        assert 0 < moved["icmp_sent"] < 100 + 1100 * took
        assert moved["icmp_sent"] + moved["icmp_limited"] == 2000
        eventually(lambda d=dst: lan.srp1(lan.probe(d), 0.2), 5, what="the limit recovers")


EXPIRING = {"icmp4-ttl": (HOST, {"ttl": 1}), "icmp6-ttl": (HOST6, {"hlim": 1})}
TOO_BIG = {
    "icmp4-too-big": (HOST, {"size": 1500, "flags": "DF"}),
    "icmp6-too-big": (HOST6, {"size": 1500}),
}


@pytest.mark.parametrize("name", [*EXPIRING, *TOO_BIG])
def test_one_source_has_its_share_of_a_types_errors_and_no_more(dut, lan, wan, name):
    """Each type of error has a rate of its own, and each source has a share of it (RFC 1812,
    4.3.2.8 and RFC 4443, 2.4 (f)). A source that uses up its share leaves the other shares. Every
    packet is answered or counted as not answered."""
    for prefix, gateway in ((NET, wan.peer4), (NET6, wan.peer6)):
        dut.route(prefix, nhid=dut.zebra.hop(gateway, wan), mtu=1300)
    dst, fields = (EXPIRING | TOO_BIG)[name]
    # Two sources, because one source in 256 has the same bucket as the source that used up its
    # share (base/policer.c).
    if ":" in dst:  # other sites: each /64 has a share
        others = ["2001:db8:44:1::30", "2001:db8:44:2::30"]
        dut.route("2001:db8:44::/48", via=lan.peer6, wire=lan)
    else:
        others = ["192.0.2.30", "192.0.2.31"]
        for other in others:
            dut.neighbor(other, lan)

    def moved():
        now = next(r for r in dut.control.ask("punt") if r["class"] == name)
        return {k: now[k] - before[k] for k in ("passed", "over_share", "policed")}

    before = next(r for r in dut.control.ask("punt") if r["class"] == name)
    lan.send(*[bytes(lan.probe(dst, **fields))] * 400)
    dut.fence(lan)
    probes = {other: lan.probe(dst, src=other, **fields) for other in others}
    lan.send(*probes.values())

    def answered():
        return [o for o, p in probes.items() for d in lan.got(token_of(p))
                if Ether(d).payload.dst == o]  # fmt: skip

    eventually(answered, 2, 0.01, "another source is answered")
    eventually(lambda: sum(moved().values()) == 402, 2, 0.01, "each is counted")
    now = moved()
    assert before["source_burst"] / 2 < now["passed"] < 400 and now["policed"] == 0


def _inner_error(kind):
    return ICMP(type=kind) / Raw(token() + bytes(28))


NO_ERROR_ABOUT = {
    "an ICMP unreachable": lambda lan: IP(src=lan.peer4, dst=HOST, ttl=1) / _inner_error(3),
    "an ICMP time exceeded": lambda lan: IP(src=lan.peer4, dst=HOST) / _inner_error(11),
    "an ICMP redirect": lambda lan: IP(src=lan.peer4, dst=HOST) / _inner_error(5),
    "a later fragment": lambda lan: IP(src=lan.peer4, dst=HOST, frag=8) / Raw(token()),
    "a directed broadcast": lambda lan: IP(src=lan.peer4, dst="192.0.2.127", ttl=1)
    / UDP()
    / Raw(token()),
    "a multicast": lambda lan: IP(src=lan.peer4, dst="233.252.0.1", ttl=1)
    / UDP()
    / Raw(token()),
    "a source of zeros": lambda lan: IP(src="0.0.0.0", dst=HOST) / UDP() / Raw(token()),
    "an ICMPv6 error": lambda lan: IPv6(src=lan.peer6, dst=HOST6, hlim=1)
    / ICMPv6DestUnreach()
    / Raw(token() + bytes(40)),
}


@pytest.mark.parametrize("name", NO_ERROR_ABOUT)
def test_no_error_about(dut, lan, name):
    """These packets never cause an ICMP error (RFC 1812, 4.3.2.7 and RFC 4443, 2.4 (e))."""
    packet = Ether(src=lan.mac, dst=lan.port_mac) / NO_ERROR_ABOUT[name](lan)

    drops = dut.not_forwarded(lan, packet)

    assert lan.got(token_of(packet)) == []
    # A multicast packet goes to the kernel, in any frame. Every other packet is one drop.
    assert sum(drops.values()) == (0 if name == "a multicast" else 1)


def test_padding_is_no_icmp_type(dut, lan):
    """An empty ICMP message gets no error, because it may be an error (RFC 1812, 4.3.2.7).
    The Ethernet padding behind it would look like an echo reply."""
    empty = Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst=HOST, proto=1)
    before = dut.counters()

    assert dut.not_forwarded(lan, bytes(empty) + token() + bytes(16)) == {"no_route": 1}
    assert dut.not_forwarded(lan, bytes(empty) + bytes(26)) == {"no_route": 1}

    assert "icmp_sent" not in dut.moved(before, "total")


def test_a_later_ipv6_fragment_is_answered(dut, lan):
    """A later fragment of IPv6 gets an error. RFC 4443, 2.4 (e) does not exclude fragments; RFC
    1812 does for IPv4."""
    piece = (
        IPv6(src=lan.peer6, dst=HOST6) / IPv6ExtHdrFragment(nh=17, offset=8) / Raw(token())
    )

    reply = lan.srp1(Ether(src=lan.mac, dst=lan.port_mac) / piece)

    assert reply[ICMPv6DestUnreach].code == 0


def test_no_error_about_a_link_layer_broadcast(dut, lan):
    """A datagram that came as a link-layer broadcast gets no error (RFC 1122, 3.2.2)."""
    probe = bytes(lan.probe(HOST, ttl=1))

    assert dut.not_forwarded(lan, b"\xff" * 6 + probe[6:]) == {"l2_not_unicast": 1}

    assert lan.got(token_of(probe)) == []


@pytest.mark.parametrize("kind", [0, 8])
def test_echo_is_answered_with_an_error(dut, lan, kind):
    """An ICMP query gets an error, because it is no error, so traceroute with echo works (RFC 1122,
    3.2.2)."""
    mark = token()
    packet = IP(src=lan.peer4, dst=HOST, ttl=1) / ICMP(type=kind) / Raw(mark)

    lan.send(Ether(src=lan.mac, dst=lan.port_mac) / packet)

    assert lan.expect(mark)[ICMP].type == 3  # the route is missing, which the router finds first


@pytest.mark.smoke
def test_echo6_is_answered_with_an_error(dut, lan):
    """An informational message of ICMPv6 gets an error (RFC 4443, 2.4)."""
    for echo in (ICMPv6EchoRequest, ICMPv6EchoReply):
        mark = token()
        packet = IPv6(src=lan.peer6, dst=HOST6) / echo(data=mark)

        lan.send(Ether(src=lan.mac, dst=lan.port_mac) / packet)

        assert lan.expect(mark)[ICMPv6DestUnreach].type == 1


@pytest.mark.smoke
def test_the_error_goes_where_the_source_is_routed(dut, lan, wan, alt):
    """The router routes an error like any datagram (RFC 1812, 4.3.2.4 and 5.2.4)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route("203.0.113.0/24", via=alt.peer4, wire=alt)
    probe = lan.probe(HOST, src="203.0.113.5", ttl=1)

    lan.send(probe)

    reply = alt.expect(token_of(probe))
    assert reply[IP].dst == "203.0.113.5" and reply[IP].src == lan.ip4
    assert reply.dst == alt.mac


# -- larger than the egress MTU --


@pytest.fixture(params=["interface", "route"])
def narrow(request, dut, wan):
    """Set a smaller egress MTU, in force: the interface's, or the routes' own."""
    if request.param == "route":
        dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan), mtu=1300)
        dut.route(NET6, nhid=dut.zebra.hop(wan.peer6, wan), mtu=1300)
        yield 1300
        return
    dut.ip(f"link set {wan.tap} mtu 1300")
    eventually(lambda: _mtu(dut, wan) == 1300, 5, 0.01, "MTU 1300")
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    yield 1300
    dut.ip(f"link set {wan.tap} mtu 1500")
    eventually(lambda: _mtu(dut, wan) == 1500, 5, 0.01, "MTU 1500")


def test_a_routes_mtu_is_that_routes_and_the_smaller_one_counts(dut, lan, wan):
    """Routes by one next hop have MTUs of their own (RTAX_MTU). The smaller of the route's and the
    interface's MTU counts. fpmctl shows the MTU of a route, and the route loses it when zebra sends
    the route again without it."""
    nhid = dut.zebra.hop(wan.peer4, wan)
    dut.route(NET, nhid=nhid, mtu=1400)
    dut.route("203.0.113.0/24", nhid=nhid)
    dut.route("198.51.100.0/26", nhid=nhid, mtu=9000)
    large = lambda dst: lan.probe(dst, size=1500, flags="DF")  # noqa: E731

    assert lan.srp1(large("198.51.100.129"))[ICMP].nexthopmtu == 1400
    dut.forwarded(lan, large("203.0.113.9"), wan)
    dut.forwarded(lan, large(HOST), wan)
    assert dut.route_row(NET)["mtu"] == 1400
    assert dut.route_row("203.0.113.0/24")["mtu"] is None
    assert "mtu 1400" in dut.fpmctl("show", "routes", NET).stdout
    dut.route(NET, nhid=nhid)
    dut.forwarded(lan, large("198.51.100.129"), wan)


def test_the_mtu_of_an_onlink_route_counts(dut, lan, wan):
    """The MTU of a route without a gateway counts. Such a route has no adjacency of its own that
    could hold the MTU."""
    wan.answer(HOST, "02:00:00:00:99:01")
    dut.route(NET, nhid=dut.zebra.hop(wire=wan), mtu=1400)
    dut.forwarded(lan, lan.probe(HOST, size=1400, flags="DF"), wan, timeout=3)

    reply = lan.srp1(lan.probe(HOST, size=1401, flags="DF"))

    assert (reply[ICMP].type, reply[ICMP].code, reply[ICMP].nexthopmtu) == (3, 4, 1400)


def _mtu(dut, wire):
    return dut.port_row(wire)["mtu"]


def test_df_and_too_big_says_the_mtu(dut, lan, wan, narrow):
    """A packet with DF that is larger than the MTU gets "fragmentation needed and DF set" with the
    next-hop MTU (RFC 1191, 4)."""
    before = dut.counters()
    probe = lan.probe(HOST, size=1301, flags="DF")

    reply = lan.srp1(probe)

    assert (reply[ICMP].type, reply[ICMP].code) == (3, 4)
    assert reply[ICMP].nexthopmtu == narrow
    assert right_sums(reply)
    assert wan.got(token_of(probe)) == []
    assert dut.drops(before) == {"mtu": 1}
    dut.forwarded(lan, lan.probe(HOST, size=1300, flags="DF"), wan)


def test_too_big_for_ipv6_says_the_mtu(dut, lan, wan, narrow):
    """An IPv6 packet that is larger than the MTU gets "packet too big" with the MTU, because
    routers never fragment (RFC 4443, 3.2 and RFC 8200, 5)."""
    before = dut.counters()
    probe = lan.probe(HOST6, size=1301)

    reply = lan.srp1(probe)

    assert reply[ICMPv6PacketTooBig].mtu == narrow
    assert right_sums(reply)
    assert wan.got(token_of(probe)) == []
    assert dut.drops(before) == {"mtu": 1}
    dut.forwarded(lan, lan.probe(HOST6, size=1300), wan)


@pytest.mark.parametrize("family", [4, 6])
def test_too_big_is_said_before_the_neighbor_is_known(dut, lan, wan, family):
    """The gateway is not known yet, and never answers. The error comes at once, and the gateway is not
    asked for, as in Linux."""
    net, host = (NET, HOST) if family == 4 else (NET6, HOST6)
    gateway = "192.0.2.98" if family == 4 else wan.peer6[:-1] + "98"
    dut.route(net, nhid=dut.zebra.hop(gateway, wan), mtu=1300)
    eventually(lambda: wan.solicitations(gateway), 5, what="the new next hop is asked for")
    before = dut.counters()

    reply = lan.srp1(lan.probe(host, size=1301, **({"flags": "DF"} if family == 4 else {})))

    said = reply[ICMP].nexthopmtu if family == 4 else reply[ICMPv6PacketTooBig].mtu
    assert said == 1300
    assert dut.drops(before) == {"mtu": 1}
    assert "unresolved" not in dut.moved(before, "punt")


def reassemble(frames):
    """Check every fragment. Return the fragments in order, and the payload of all of them."""
    pieces = sorted((Ether(f)[IP] for f in frames), key=lambda ip: ip.frag)
    at, data = 0, b""
    for piece in pieces:
        assert right_sums(Ether() / piece)
        assert piece.frag * 8 == at
        body = bytes(piece)[piece.ihl * 4 : piece.len]
        data, at = data + body, at + len(body)
    assert [p.flags.MF for p in pieces] == [True] * (len(pieces) - 1) + [False]
    assert len({p.id for p in pieces}) == 1
    return pieces, data


def _pieces(dut, lan, wan, ident):
    dut.fence(lan)
    return wan.got(
        lambda d: d[12:14] == b"\x08\x00" and d[18:20] == ident.to_bytes(2, "big")
    )


@pytest.mark.parametrize("size", [1301, 1400, 1500])
def test_df_clear_is_fragmented_and_reassembles(dut, lan, wan, narrow, size):
    """Fragments of a packet without DF reassemble: offsets, MF and identification are right, the
    TTL is lower by one, and the sums are right (RFC 791, 3.2)."""
    probe = lan.probe(HOST, size=size, id=0x7A01, ttl=33, tos=0x20)

    lan.send(probe)
    eventually(lambda: len(_pieces(dut, lan, wan, 0x7A01)) >= 2)

    pieces, data = reassemble(_pieces(dut, lan, wan, 0x7A01))
    assert data == bytes(probe[IP])[20:]
    assert {p.ttl for p in pieces} == {32} and {p.tos for p in pieces} == {0x20}
    assert max(p.len for p in pieces) <= narrow


def test_the_smallest_mtu_and_the_longest_header_make_180_pieces(dut, lan, wan):
    """An MTU of 68 octets and a header of 60 make 180 fragments with 8 octets of data each (RFC
    791, 3.2)."""
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan), mtu=68)
    options = bytes([148, 4, 0, 0] * 10)  # the router copies it into every fragment
    head = IP(src=lan.peer4, dst=HOST, id=0x7A04, proto=17, options=[])
    probe = bytearray(bytes(head))
    probe[0] = 0x4F
    probe[2:4] = (1500).to_bytes(2, "big")
    whole = IP(bytes(probe) + options)
    del whole.chksum
    data = bytes(i % 251 for i in range(1440))
    lan.send(Ether(src=lan.mac, dst=lan.port_mac) / whole / Raw(data))
    eventually(lambda: len(_pieces(dut, lan, wan, 0x7A04)) >= 180)

    pieces, again = reassemble(_pieces(dut, lan, wan, 0x7A04))
    assert again == data and max(p.len for p in pieces) <= 68


@pytest.mark.parametrize("count", range(11))
def test_fragments_are_as_large_as_they_may_be(dut, lan, wan, count):
    """With any options, no fragment but the last is 8 octets or more below the MTU (RFC 791, 3.2),
    because each needless fragment may be lost."""
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan), mtu=604)
    ident = 0x7B00 + count
    options = [bytes([148, 4, 0, 0] * count)] if count else []
    head = IP(src=lan.peer4, dst=HOST, id=ident, proto=17, options=options)
    data = bytes(i % 251 for i in range(1400))
    lan.send(Ether(src=lan.mac, dst=lan.port_mac) / head / Raw(data))
    eventually(lambda: len(_pieces(dut, lan, wan, ident)) >= 3)

    pieces, again = reassemble(_pieces(dut, lan, wan, ident))
    assert again == data
    assert [p.len for p in pieces[:-1] if not 604 - 8 < p.len <= 604] == []


def test_a_fragment_is_fragmented_again(dut, lan, wan, narrow):
    """A fragment is fragmented again: the offsets add up, and the MF flag of the original stays on
    the last piece (RFC 791, 3.2)."""
    whole = (
        IP(src=lan.peer4, dst=HOST, id=0x7A02) / UDP(sport=1, dport=2) / Raw(bytes(2800))
    )
    for piece in fragment(whole, 1400):
        lan.send(Ether(src=lan.mac, dst=lan.port_mac) / piece)
    eventually(lambda: len(_pieces(dut, lan, wan, 0x7A02)) >= 5, 2)

    _, data = reassemble(_pieces(dut, lan, wan, 0x7A02))
    assert data == bytes(whole)[20:]


def test_only_copied_options_go_into_later_fragments(dut, lan, wan, narrow):
    """Later fragments have only the options with the copied flag (RFC 791, 3.1)."""
    # Router alert (148, copied) and record route (7, not copied), padded.
    options = bytes([148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 0])
    probe = lan.probe(HOST, size=1400, id=0x7A03)
    header = bytearray(bytes(probe[IP])[:20])
    header[0] = 0x40 + 8
    header[2:4] = (1400 + 12).to_bytes(2, "big")
    head = IP(bytes(header) + options)
    del head.chksum
    lan.send(Ether(src=lan.mac, dst=lan.port_mac) / head / Raw(bytes(probe[IP])[20:]))
    eventually(lambda: len(_pieces(dut, lan, wan, 0x7A03)) >= 2)

    pieces, data = reassemble(_pieces(dut, lan, wan, 0x7A03))
    assert data == bytes(probe[IP])[20:]
    first, later = bytes(pieces[0])[20 : pieces[0].ihl * 4], bytes(pieces[1])[20:]
    assert first == options
    assert later[: pieces[1].ihl * 4 - 20].rstrip(b"\0\1") == bytes([148, 4])
