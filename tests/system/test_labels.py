# SPDX-License-Identifier: BSD-3-Clause
"""Packets with MPLS labels: the handling of each label that zebra announces, by RFC 3031, 3032 and
3443. scapy builds and dissects the frames. M1 to M26 number the kinds of handling."""

import ipaddress

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from labels import TAKES_LABELS, LabelRouter, behind, entries_of, with_labels
from lib import api, netns
from lib.wait import eventually
from router import running
from watching import Watching, blocks, count_of, packets
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


@pytest.fixture(scope="module")
def mpls_router(possible):
    """The router of this file."""
    with running(LabelRouter(name="mpls"), TAKES_LABELS) as router:
        yield router


@pytest.fixture
def dut(mpls_router):
    """The router in its standard state, without labels."""
    mpls_router.ready()
    yield mpls_router
    assert mpls_router.alive(), "the daemon died"


def test_a_label_is_swapped_and_the_payload_stays_as_it_is(dut, lan, wan):
    """M1: the label is replaced, the TTL is lowered by one, TC, S and the payload are unchanged."""
    dut.label(100, dut.hop(wan, [200]))
    sent = with_labels(lan.probe(HOST), (100, 64, 5))

    came = dut.forwarded(lan, sent, wan)

    assert entries_of(came) == [(200, 63, 5, 1)]
    assert behind(came) == behind(sent)
    assert (came[Ether].src, came[Ether].dst) == (wan.port_mac, wan.mac)


def test_a_label_that_is_not_the_last_is_swapped_with_s_clear(dut, lan, wan):
    """M1: the labels below the swapped label are unchanged."""
    dut.label(100, dut.hop(wan, [200]))

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), 100, (300, 7, 2)), wan)

    assert entries_of(came) == [(200, 63, 0, 0), (300, 7, 2, 1)]


def test_a_swap_may_push_several_labels(dut, lan, wan):
    """M2: each new label has the TC of the received label, and its TTL less one. The last new label
    has S only if the received label had S."""
    dut.label(100, dut.hop(wan, [200, 201, 202]))

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), (100, 9, 3)), wan)

    assert entries_of(came) == [(200, 8, 3, 0), (201, 8, 3, 0), (202, 8, 3, 1)]

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), (100, 9, 3), (300, 7, 2)), wan)

    assert entries_of(came) == [(200, 8, 3, 0), (201, 8, 3, 0), (202, 8, 3, 0), (300, 7, 2, 1)]


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(
    ("label_ttl", "ip_ttl", "want"), [(64, 64, 63), (10, 64, 9), (64, 10, 9)]
)
def test_the_last_label_comes_off_at_the_penultimate_hop(
    dut, lan, wan, family, label_ttl, ip_ttl, want
):
    """M3: the TTL of the IP packet never rises (RFC 3443, uniform model), the checksum is right."""
    dut.label(100, dut.hop(wan))
    fields = {"ttl": ip_ttl} if family == 4 else {"hlim": ip_ttl}
    probe = lan.probe(HOST if family == 4 else HOST6, **fields)

    came = dut.forwarded(lan, with_labels(probe, (100, label_ttl)), wan)

    layer = came[IP] if family == 4 else came[IPv6]
    assert entries_of(came) == []
    assert (layer.ttl if family == 4 else layer.hlim) == want
    if family == 4:
        right = IP(bytes(layer))
        del right.chksum
        assert IP(bytes(right)).chksum == layer.chksum


@pytest.mark.parametrize(("outer", "inner"), [(10, 64), (64, 10)])
def test_the_first_of_two_labels_comes_off(dut, lan, wan, outer, inner):
    """M4: the next label gets the lower of both TTLs, less one, and keeps its TC. The frame stays
    MPLS."""
    dut.label(100, dut.hop(wan))

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), (100, outer, 5), (300, inner, 3)), wan)

    assert entries_of(came) == [(300, 9, 3, 1)]


@pytest.mark.parametrize("host", [HOST, HOST6])
def test_a_label_that_leads_to_main_is_looked_up_there(dut, lan, wan, alt, host):
    """M5: the packet behind the label takes the route of table main; the TTL is lowered once."""
    dut.label(100, {"oif": 1})
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=alt.peer6, wire=alt)

    came = dut.forwarded(lan, with_labels(lan.probe(host), 100), alt if ":" in host else wan)

    assert entries_of(came) == []
    assert (came[IPv6].hlim if ":" in host else came[IP].ttl) == 63


def test_explicit_null_is_accepted_at_any_place(dut, lan, wan):
    """M7 (RFC 4182): the labels 0 and 2 are popped, above another label and at the bottom of the
    stack. The IP version of the packet behind them, not the label, selects the routing table."""
    dut.label(100, dut.hop(wan, [200]))
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), (0, 20), 100), wan)
    assert entries_of(came) == [(200, 19, 0, 1)]
    assert entries_of(dut.forwarded(lan, with_labels(lan.probe(HOST), 0), wan)) == []
    assert entries_of(dut.forwarded(lan, with_labels(lan.probe(HOST6), 2), wan)) == []
    assert entries_of(dut.forwarded(lan, with_labels(lan.probe(HOST6), 0), wan)) == []
    assert entries_of(dut.forwarded(lan, with_labels(lan.probe(HOST), 2, 0), wan)) == []


def test_labels_of_our_own_come_off_one_after_the_other(dut, lan, wan):
    """M6: the router pops two labels that lead to table main, then swaps the third label. It pops
    four labels of its own in a row, and drops a packet with five."""
    dut.label(100, {"oif": 1})
    dut.label(101, {"oif": 1})
    dut.label(102, dut.hop(wan, [200]))

    dut.route(NET, via=wan.peer4, wire=wan)

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), 100, (101, 30), 102), wan)

    assert entries_of(came) == [(200, 29, 0, 1)]
    came = dut.forwarded(lan, with_labels(lan.probe(HOST), 100, (101, 30), 101, 100), wan)
    assert entries_of(came) == [] and came[IP].ttl == 29
    assert dut.not_forwarded(lan, with_labels(lan.probe(HOST), *[100] * 5)) == {"mpls_stack": 1}


def test_a_route_pushes_labels_onto_ip_packets(dut, lan, wan):
    """M15: each label has the lowered TTL of the packet, and its precedence as TC. The last label
    has S."""
    for net, peer in ((NET, wan.peer4), (NET6, wan.peer6)):
        nhid = dut.zebra.hop(peer, wan, labels=[16, 1048575, 18])
        dut.route(net, nhid=nhid)
    probe = lan.probe(HOST, ttl=20, tos=0xB8)
    came = dut.forwarded(lan, probe, wan)
    assert entries_of(came) == [(16, 19, 5, 0), (1048575, 19, 5, 0), (18, 19, 5, 1)]
    inner = IP(behind(came))
    assert (inner.ttl, inner.tos, inner.dst) == (19, 0xB8, HOST)
    assert bytes(inner.payload) == bytes(probe[IP].payload)

    came = dut.forwarded(lan, lan.probe(HOST6, hlim=20, tc=0xB8), wan)
    assert [e[:3] for e in entries_of(came)] == [(16, 19, 5), (1048575, 19, 5), (18, 19, 5)]
    assert IPv6(behind(came)).hlim == 19


@pytest.mark.parametrize(("host", "null"), [(HOST, 0), (HOST6, 2)])
def test_a_route_pushes_explicit_null_like_any_label(dut, lan, wan, host, null):
    """M16: explicit null is pushed alone and below a transport label. M15: TC has no bit of ECN. The
    packet keeps its ECN."""
    net, peer = (NET, wan.peer4) if host == HOST else (NET6, wan.peer6)
    fields = {"ttl": 20, "tos": 0xBB} if host == HOST else {"hlim": 20, "tc": 0xBB}
    for labels in ([null], [300, null]):
        dut.route(net, nhid=dut.zebra.hop(peer, wan, labels=labels))

        came = dut.forwarded(lan, lan.probe(host, **fields), wan)

        want = [(label, 19, 5, int(label == null)) for label in labels]
        assert entries_of(came) == want
        inner = (IP if host == HOST else IPv6)(behind(came))
        assert (inner.tos if host == HOST else inner.tc) == 0xBB


def test_labels_over_a_neighbor_of_the_other_family(dut, lan, wan):
    """M22: an IPv6 packet with a pushed label leaves to an IPv4 neighbor, and a swapped label over an
    IPv4 packet leaves to an IPv6 neighbor."""
    dut.route(NET6, nhid=dut.zebra.hop(wan.peer4, wan, labels=[30]))
    dut.label(100, dut.hop(wan, [200], via=wan.peer6))

    came = dut.forwarded(lan, lan.probe(HOST6), wan)
    assert entries_of(came) == [(30, 63, 0, 1)] and IPv6(behind(came)).dst == HOST6
    assert entries_of(dut.forwarded(lan, with_labels(lan.probe(HOST), 100), wan)) == [
        (200, 63, 0, 1)
    ]


def test_a_route_may_have_labelled_and_plain_next_hops(dut, lan, wan, alt):
    """M23: each next hop of a group keeps its own labels, and flows use both."""
    plain = dut.zebra.hop(wan.peer4, wan)
    labelled = dut.zebra.hop(alt.peer4, alt, labels=[77])
    dut.route(NET, nhid=dut.zebra.group([plain, labelled]))

    for port in range(40):
        lan.send(lan.probe(HOST, sport=5000 + port))
    dut.fence(lan)
    by_wan = [f for f in wan.got() if Ether(f)[Ether].src == wan.port_mac and IP in Ether(f)]
    by_alt = [f for f in alt.got() if entries_of(f)]
    assert len(by_wan) + len(by_alt) >= 40 and by_wan and by_alt
    assert {entries_of(f)[0][0] for f in by_alt} == {77}


def test_flows_of_a_label_spread_over_its_next_hops_and_stay(dut, lan, wan, alt):
    """M20: the inner flow and an entropy label choose the next hop. A flow keeps its next hop."""
    dut.label(100, dut.hop(wan, [200]), dut.hop(alt, [300]))
    for port in range(40):
        lan.send(with_labels(lan.probe(HOST, sport=6000 + port), 100))
    dut.fence(lan)
    by = [len([f for f in w.got() if entries_of(f)]) for w in (wan, alt)]
    assert sum(by) == 40 and min(by) >= 5, by

    for wire in (wan, alt):
        wire.clear()
    for _ in range(10):
        lan.send(with_labels(lan.probe(HOST, sport=6001), 100))
    dut.fence(lan)
    by = [len([f for f in w.got() if entries_of(f)]) for w in (wan, alt)]
    assert sorted(by) == [0, 10]

    for wire in (wan, alt):
        wire.clear()
    for n in range(40):
        lan.send(with_labels(lan.probe(HOST, sport=6001), 100, (7, 64), (100000 + n, 0)))
    dut.fence(lan)
    by = [len([f for f in w.got() if entries_of(f)]) for w in (wan, alt)]
    assert sum(by) == 40 and min(by) >= 5, by


def test_an_entropy_label_on_top_comes_off_with_its_indicator(dut, lan, wan):
    """M8 (RFC 6790, 4.2): the label behind the entropy label decides, or table main if none
    follows. The TTL of the entropy label, 0, does not count."""
    dut.label(100, dut.hop(wan, [200]))
    dut.route(NET, via=wan.peer4, wire=wan)
    pair = (7, 64), (100000, 0)

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), *pair, (100, 30, 5)), wan)
    assert entries_of(came) == [(200, 29, 5, 1)]
    came = dut.forwarded(lan, with_labels(lan.probe(HOST), *pair), wan)
    assert entries_of(came) == [] and came[IP].ttl == 63


def test_what_may_not_pass_is_dropped_with_its_reason(dut, lan, wan):
    """M8, M9, M11 to M13: each kind of fault has a counter, and nothing is forwarded."""
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, dut.hop(wan))
    dut.label(102, {"oif": 1})
    probe = lan.probe(HOST)
    cut = bytes(with_labels(probe, 100))[:16]
    no_bottom = bytes(with_labels(probe, 102, 102)).replace(b"\x00\x06\x61\x40", b"\x00\x06\x60\x40")
    group = with_labels(probe, 100)
    group[Ether].dst = "01:00:5e:00:00:01"
    control_word = bytes(with_labels(probe, 101))[:18] + bytes(40)

    def drops(*frames):
        return dut.not_forwarded(lan, *frames)

    assert drops(with_labels(probe, 7)) == {"mpls_malformed": 1}
    assert drops(with_labels(probe, 999)) == {"mpls_no_label": 1}
    for label in (3, 4, 6, 8, 12, 15):
        assert drops(with_labels(probe, label)) == {"mpls_reserved": 1}, label
    assert drops(cut) == {"mpls_malformed": 1}
    assert drops(group) == {"mpls_multicast": 1}
    assert drops(bytes(with_labels(probe, 100)).replace(b"\x88\x47", b"\x88\x48", 1)) == {
        "mpls_multicast": 1
    }
    assert drops(control_word) == {"mpls_payload": 1}
    assert drops(with_labels(probe, *[102] * 6)) == {"mpls_stack": 1}
    assert drops(no_bottom[:22]) == {"mpls_malformed": 1}
    more = bytes(with_labels(probe, 101, 300))
    for octets in (18, 20, 21):  # the label behind the popped label is missing
        assert drops(more[:octets]) == {"mpls_malformed": 1}


@pytest.mark.parametrize("host", [HOST, HOST6])
def test_a_packet_that_is_shorter_than_it_says_is_not_read_beyond_its_end(dut, lan, wan, host):
    """A packet whose end is missing in the frame causes no ICMP error. It is dropped where its last
    label would be popped, and is switched without a look at the packet while labels remain."""
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, dut.hop(wan))
    dut.label(102, {"oif": 1})
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    length = {"len": 1500} if host == HOST else {"plen": 1400}
    probe = lan.probe(host, **length)

    assert dut.not_forwarded(lan, with_labels(probe, (100, 1))) == {"ttl": 1}
    assert dut.not_forwarded(lan, with_labels(probe, 101)) == {"mpls_payload": 1}
    assert dut.not_forwarded(lan, with_labels(probe, (101, 1))) == {"mpls_payload": 1}
    reason = "ip4_length" if host == HOST else "ip6_length"
    assert dut.not_forwarded(lan, with_labels(probe, 102)) == {reason: 1}
    assert entries_of(dut.forwarded(lan, with_labels(probe, 100), wan)) == [(200, 63, 0, 1)]


def test_a_pseudowire_is_switched_while_labels_remain(dut, lan, wan):
    """M13: the payload is no IP packet, and only the labels are read."""
    dut.label(100, dut.hop(wan, [200]))
    sent = bytes(with_labels(lan.probe(HOST), 100))
    sent = sent[:18] + b"\x00\x00\x00\x01" + sent[18:]

    lan.send(sent)
    came = wan.expect_raw(sent[18:60], 2)

    assert entries_of(came) == [(200, 63, 0, 1)] and behind(came) == sent[18:]


@pytest.mark.parametrize("ttl", [0, 1])
def test_an_expired_label_is_answered_along_the_path(dut, lan, wan, ttl):
    """M14: a P router has no route back, so the error goes on with the labels (RFC 3032,
    2.3.2), and quotes the stack (RFC 4950)."""
    dut.label(100, dut.hop(wan, [200]))
    probe, before = lan.probe(HOST, ttl=1), dut.counters()

    lan.send(with_labels(probe, (100, ttl, 2)))
    came = wan.expect(lambda f: entries_of(f) and IP(behind(f)).proto == 1, 2)

    assert [e[0] for e in entries_of(came)] == [200]
    error = IP(behind(came))
    assert (error.src, error.dst) == (lan.ip4, lan.peer4)
    assert (error[ICMP].type, error[ICMP].code) == (11, 0)
    quote = bytes(error[ICMP].payload)
    octets = bytes(error[ICMP])[5] * 4  # RFC 4884: the length of the quote
    assert octets >= 128 and quote[:20] == bytes(probe[IP])[:20]
    extension = bytes(error[ICMP])[8 + octets :]
    assert extension[0] >> 4 == 2 and extension[4:8] == bytes([0, 8, 1, 1])
    assert int.from_bytes(extension[8:12], "big") == 100 << 12 | 2 << 9 | 1 << 8 | ttl
    assert dut.drops(before) == {"ttl": 1}


def test_an_expired_packet_that_ends_here_is_answered_by_its_route(dut, lan, wan):
    """M14: the label leads to table main, so the error is routed like any other."""
    dut.label(100, {"oif": 1})
    dut.route(NET, via=wan.peer4, wire=wan)

    lan.send(with_labels(lan.probe(HOST, ttl=1), 100))
    came = lan.expect(lambda f: IP in Ether(f) and ICMP in Ether(f), 2)

    assert (came[ICMP].type, came[IP].dst) == (11, lan.peer4) and entries_of(came) == []


def test_a_packet_to_us_goes_to_the_kernel_with_its_labels(dut, lan):
    """M24: the frame reaches the TAP as it came."""
    dut.label(100, {"oif": 1})
    sent = with_labels(lan.probe(lan.ip4), 100)

    lan.send(sent)
    came = dut.taps["lan"].expect_raw(bytes(sent)[14:], 2)

    assert bytes(came) == bytes(sent)


def test_packets_wait_for_the_neighbor_with_their_labels(dut, lan, wan):
    """M25: the kernel resolves an unknown neighbor, then the held packet leaves with its labels."""
    fresh = str(ipaddress.ip_network(wan.host4)[7])
    dut.label(100, dut.hop(wan, [200], via=fresh))
    dut.route(NET, nhid=dut.zebra.hop(fresh, wan, labels=[300]))
    swapped, pushed = with_labels(lan.probe(HOST), 100), lan.probe(HOST)

    wan.answer(fresh)
    lan.send(swapped, pushed)

    assert entries_of(wan.expect(token_of(swapped), 3)) == [(200, 63, 0, 1)]
    assert entries_of(wan.expect(token_of(pushed), 3)) == [(300, 63, 0, 1)]


def own_addresses(dut):
    """Return the addresses that the router takes packets for."""
    return {r["prefix"] for r in dut.control.ask("routes") if r["source"] == "local"}


@pytest.fixture
def no_ipv6(dut, lan, wan):
    """IPv6 is off on both interfaces, as on the core links of a provider edge router for 6VPE."""
    devs = ("lan0", "wan0")
    netns.sysctl(dut.ctl, {f"net.ipv6.conf.{dev}.disable_ipv6": 1 for dev in devs})
    eventually(lambda: not any(f"{w.ip6}/128" in own_addresses(dut) for w in (lan, wan)), 5, 0.01)
    yield
    netns.sysctl(dut.ctl, {f"net.ipv6.conf.{dev}.disable_ipv6": 0 for dev in devs})
    for wire in (lan, wan):
        dut.ip(
            f"addr replace {wire.ip6}/64 dev {wire.tap} nodad",
            f"neigh replace {wire.peer6} lladdr {wire.mac} dev {wire.tap} nud permanent",
        )


def test_ipv6_under_labels_needs_no_ipv6_on_the_links(dut, lan, wan, alt, no_ipv6):
    """M22: IPv6 packets with labels come by a link without IPv6, and leave by another one to IPv4
    neighbors, resolved or not. IPv6 packets without labels are dropped there."""
    fresh = str(ipaddress.ip_network(wan.host4)[8])
    dut.label(100, {"oif": 1})
    dut.label(101, dut.hop(wan))
    dut.route(NET6, nhid=dut.zebra.hop(fresh, wan, labels=[30]))
    dut.route("2001:db8:e000::/48", via=alt.peer6, wire=alt)

    assert dut.forwarded(lan, with_labels(lan.probe("2001:db8:e000::9"), 100), alt)[IPv6].hlim == 63
    assert dut.forwarded(lan, with_labels(lan.probe(HOST6), 101), wan)[IPv6].hlim == 63
    wan.answer(fresh)
    came = dut.forwarded(lan, with_labels(lan.probe(HOST6), 100), wan, timeout=3)
    assert entries_of(came) == [(30, 63, 0, 1)] and IPv6(behind(came)).dst == HOST6
    assert dut.not_forwarded(lan, lan.probe("2001:db8:e000::9")) == {"ipv6_off": 1}


def test_a_packet_too_big_for_its_labels_is_answered_with_the_smaller_mtu(dut, lan, wan):
    """M17: the error names the MTU of the link less four octets for each label."""
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[16, 17]))
    dut.route(NET6, nhid=dut.zebra.hop(wan.peer6, wan, labels=[16, 17]))

    dut.forwarded(lan, lan.probe(HOST, size=1492, flags="DF"), wan)
    lan.send(lan.probe(HOST, size=1493, flags="DF"))
    error = lan.expect(lambda f: IP in Ether(f) and ICMP in Ether(f), 2)
    assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1492)
    lan.send(lan.probe(HOST6, size=1493))
    error = lan.expect(lambda f: IPv6 in Ether(f) and Ether(f)[IPv6].nh == 58
                       and bytes(Ether(f)[IPv6].payload)[0] == 2, 2)
    assert int.from_bytes(bytes(error[IPv6].payload)[4:8], "big") == 1492


def test_a_packet_too_big_for_its_labels_is_fragmented_under_them(dut, lan, wan):
    """M18, M19: each fragment has the labels (RFC 3032, 3.4), pushed and swapped."""
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[16, 17]))
    dut.label(100, dut.hop(wan, [200, 201]))

    for frame, labels in (
        (lan.probe(HOST, size=1500), [16, 17]),
        (with_labels(lan.probe(HOST, size=1496), 100), [200, 201]),
    ):
        wan.clear()
        lan.send(frame)
        dut.fence(lan)
        pieces = [f for f in wan.got() if entries_of(f)]
        assert [[e[0] for e in entries_of(f)] for f in pieces] == [labels, labels]
        parts = sorted((IP(behind(f)) for f in pieces), key=lambda p: p.frag)
        payload = b"".join(bytes(p.payload) for p in parts)
        assert payload == bytes(frame[IP].payload)
        assert all(len(behind(f)) + 8 <= 1500 for f in pieces)


def test_a_packet_too_big_after_a_swap_is_answered_or_dropped(dut, lan, wan):
    """M19: an ICMP error about an IPv6 packet takes the path of its label. A packet of another
    protocol is dropped without an error."""
    dut.label(100, dut.hop(wan, [200, 201]))
    sent = with_labels(lan.probe(HOST6, size=1493), 100)

    lan.send(sent)
    came = wan.expect(lambda f: entries_of(f) and behind(f)[6:7] == b"\x3a", 2)

    error = IPv6(behind(came))
    assert [e[0] for e in entries_of(came)] == [200, 201] and error.dst == lan.peer6
    assert bytes(error.payload)[0] == 2  # RFC 4443, 3.2: packet too big
    assert int.from_bytes(bytes(error.payload)[4:8], "big") == 1492
    foreign = bytes(sent)[:18] + b"\0" + bytes(sent)[19:]
    wan.clear()
    assert dut.not_forwarded(lan, foreign) == {"mtu": 1}
    assert [f for f in wan.got() if entries_of(f)] == []


def test_a_label_is_replaced_and_withdrawn_without_loss(dut, lan, wan, alt):
    """M26: each packet leaves by the old or the new path, none is lost, none has mixed labels."""
    dut.label(100, dut.hop(wan, [200]))
    frames = [with_labels(lan.probe(HOST), 100) for _ in range(400)]
    for n, frame in enumerate(frames):
        if n % 20 == 10:
            out, label = ((wan, 200), (alt, 300))[n // 20 % 2]
            dut.label(100, dut.hop(out, [label]))
        lan.send(frame)
    dut.fence(lan)
    by_wan = [entries_of(f)[0][0] for f in wan.got() if entries_of(f)]
    by_alt = [entries_of(f)[0][0] for f in alt.got() if entries_of(f)]
    assert len(by_wan) + len(by_alt) == 400
    assert set(by_wan) == {200} and set(by_alt) == {300}
    dut.unlabel(100)
    assert dut.not_forwarded(lan, with_labels(lan.probe(HOST), 100)) == {"mpls_no_label": 1}


def test_labels_and_stacks_are_shown(dut, lan, wan, alt):
    """`show labels` has a row for each label, `show encaps` one for each stack over a neighbor, and
    a route shows the labels of its next hop."""
    dut.label(100, dut.hop(wan, [200]), dut.hop(alt))
    dut.label(101, {"oif": 1})
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[200]))

    row = dut.label_row(100)
    assert row["state"] == "forwarding" and not row["stale"]
    assert {h["via"]: h["labels"] for h in row["nexthops"]} == {wan.peer4: [200], alt.peer4: []}
    encap = dut.only_encap()
    assert (encap["labels"], encap["via"], encap["dev"]) == ([200], wan.peer4, wan.tap)
    assert encap["nexthops"] == 2
    assert dut.control.ask("labels", name="101")[0]["label"] == 101

    shown = dut.fpmctl("show", "labels").stdout
    assert f"100 static    label 200 via {wan.peer4} dev {wan.tap}" in shown
    assert f"pop via {alt.peer4} dev {alt.tap}" in shown and "pop dev lo" in shown
    assert f"label 200 via {wan.peer4}" in dut.fpmctl("show", "routes", NET).stdout
    assert f"label 200 via {wan.peer4} dev {wan.tap}" in dut.fpmctl("show", "encaps").stdout
    assert "label 200" in dut.fpmctl("show", "nexthops").stdout


def _explained(dut, wire, octets):
    """Return the rows that explain a frame on a wire."""
    return dut.control.request({"explain": {"port": wire.tap, "frame": octets.hex()}})


def test_explain_shows_each_step(dut, lan, wan):
    """`explain` shows the labels of the frame, which of them are popped, which labels are pushed, and
    the neighbor."""
    dut.label(100, dut.hop(wan, [200, 201]))
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300]))
    frame = bytes(with_labels(lan.probe(HOST), (100, 9), 400))

    (row,) = _explained(dut, lan, frame)
    assert (row["labels"], row["label_ttl"], row["pops"], row["push"]) == ([100, 400], 9, 1, [200, 201])
    assert (row["dst"], row["path"], row["via"], row["verdict"], row["out_ttl"]) == (
        HOST, "labels", wan.peer4, "forwarded", 8)  # fmt: skip
    shown = dut.fpmctl("explain", "port", lan.tap, "hex", frame.hex()).stdout
    assert "labels     100/400, ttl 9" in shown, shown
    assert "1 popped, pushed: 200/201; path: labels" in shown, shown
    shown = dut.fpmctl("explain", "dst", HOST, "port", lan.tap).stdout
    assert "pushed: 300" in shown and f"FORWARDED by {wan.tap}" in shown, shown
    dut.label(101, {"oif": 1})
    frame = bytes(with_labels(lan.probe(HOST), 101))
    (row,) = _explained(dut, lan, frame)
    assert (row["pops"], row["vrf"], row["push"], row["route"]["prefix"]) == (1, None, [300], NET)
    assert "vrf" not in _explained(dut, lan, bytes(with_labels(lan.probe(HOST), 100)))[0]
    shown = dut.fpmctl("explain", "port", lan.tap, "hex", frame.hex()).stdout
    assert "1 popped, looked up in table main, pushed: 300; path: labels" in shown, shown
    assert f"route      {NET} bgp" in shown or f"route      {NET} static" in shown, shown
    frame = bytes(with_labels(lan.probe("203.0.113.9"), 101))
    shown = dut.fpmctl("explain", "port", lan.tap, "hex", frame.hex()).stdout
    assert "route      none" in shown and "DROPPED, no_route" in shown, shown
    expired = bytes(with_labels(lan.probe(HOST, ttl=1), (100, 1)))
    (row,) = _explained(dut, lan, expired)
    assert (row["verdict"], row["reason"], row["icmp_src"]) == ("dropped", "ttl", lan.ip4)


def test_trace_and_capture_show_packets_with_labels(dut, lan, wan):
    """`trace` shows the labels and steps that `explain` shows, and `capture` the frame with the labels
    that came and with the labels that left, or the reason of a drop."""
    dut.label(100, dut.hop(wan, [200, 201]))
    dut.label(101, {"oif": 1})
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300]))
    plain, swapped, popped, unknown = (lan.probe(HOST, dport=port) for port in (1, 2, 3, 4))
    frames = [
        bytes(plain), bytes(with_labels(swapped, (100, 9), 400)), bytes(with_labels(popped, 101)),
        bytes(with_labels(unknown, 999)),
    ]  # fmt: skip
    told = [_explained(dut, lan, frame)[0] for frame in frames]
    assert [row.get("push") for row in told] == [[300], [200, 201], [300], None]

    with Watching(dut, trace={"port": lan.tap, "count": len(frames)}) as watch:
        lan.send(*frames)
        seen = watch.rest()

    assert seen.pop() == {"packets": len(frames), "lost": 0}
    for row, want in zip(seen, told, strict=True):
        del row["time_ns"]
        want.pop("neighbor", None)  # trace does not ask for it
        assert row == want

    with Watching(dut, capture={"host": HOST}) as watch:
        lan.send(*frames)
        rows = packets(blocks(watch.octets(lambda found: count_of(found) >= 7)))
    came = {row[2]: row[4] for row in rows if row[1] == "in"}
    assert came == dict.fromkeys(frames[:3], "") | {frames[3]: came[frames[3]]}
    assert came[frames[3]].startswith("drop mpls_no_label: ")
    left = {token_of(row[2]): [e[0] for e in entries_of(row[2])] for row in rows if row[1] == "out"}
    assert left == {token_of(plain): [300], token_of(swapped): [200, 201, 400], token_of(popped): [300]}


@pytest.mark.parametrize("ttl, out", [(0, 63), (7, 7)])
def test_labels_have_the_ttl_of_their_route(dut, lan, wan, ttl, out):
    """`encap mpls 300 ttl N`: the pushed label has TTL N, or the TTL of the packet if N is 0. Each
    view shows N."""
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300], label_ttl=ttl))
    came = dut.forwarded(lan, lan.probe(HOST, ttl=64), wan)
    assert [(entry[0], entry[1]) for entry in entries_of(came)] == [(300, out)]
    for what in ("encaps", "routes", "nexthops"):
        schema = api.rows_schema("GET", f"/{what}")[1]["schema"]
        api.validate(dut.control.ask(what), schema)
    encap = dut.only_encap()
    assert (encap["labels"], encap["label_ttl"]) == ([300], ttl)
    words = f"label 300 ttl {ttl} via {wan.peer4}"
    for view in (("encaps",), ("routes", NET), ("nexthops",)):
        assert words in dut.fpmctl("show", *view).stdout
    (row,) = _explained(dut, lan, bytes(lan.probe(HOST)))
    assert (row["push"], row["push_ttl"]) == ([300], ttl)
    shown = dut.fpmctl("explain", "dst", HOST, "port", lan.tap).stdout
    assert f"pushed: 300 ttl {ttl}" in shown, shown


@pytest.mark.parametrize("propagate, ttl", [(0, 63), (1, 8), (None, 8)])
def test_the_route_of_a_label_says_where_its_ttl_goes(dut, lan, wan, propagate, ttl):
    """ttl-propagate: 1 copies the TTL of the popped label to the packet, 0 does not. `show labels`
    prints it. Without the attribute the sysctl decides."""
    dut.label(100, dut.hop(wan), propagate=propagate)
    came = dut.forwarded(lan, with_labels(lan.probe(HOST, ttl=64), (100, 9)), wan)
    assert came[IP].ttl == ttl
    row = dut.label_row(100)
    api.validate([row], api.rows_schema("GET", "/labels")[1]["schema"])
    shown = dut.fpmctl("show", "labels").stdout
    if propagate is None:
        assert "ttl_propagate" not in row and "ttl-propagate" not in shown
    else:
        assert row["ttl_propagate"] is bool(propagate)
        assert f"ttl-propagate {('disabled', 'enabled')[propagate]}" in shown


ZEBRA_LABELS = """{"100": {"inLabel": 100, "installed": true, "nexthops": [
  {"type": "LDP", "outLabel": 200, "outLabelStack": [200], "installed": true, "nexthop": "%s"},
  {"type": "LDP", "outLabel": 9, "outLabelStack": [9], "nexthop": "192.0.2.250"}]},
 "101": {"inLabel": 101, "nexthops": [
  {"type": "BGP", "outLabel": 3, "outLabelStack": [3], "installed": true, "interface": "lo"}]},
 "103": {"inLabel": 103, "nexthops": [
  {"type": "SR (IS-IS)", "outLabel": 16, "outLabelStack": [16], "installed": true, "nexthop": "fe80::7",
   "interface": "%s"}]}}"""


def test_audit_compares_labels_with_zebra(dut, wan, alt, tmp_path):
    """audit finds a label with other labels than zebra's, a label that only zebra has, a label that only
    the dataplane has, and a label by the same link-local gateway on another link."""
    (tmp_path / "mpls.json").write_text(ZEBRA_LABELS % (wan.peer4, wan.tap))
    script = tmp_path / "vtysh"
    script.write_text(
        'case "$*" in *route) ;; *summary*) echo \'{"routes": []}\' ;;'
        f" *mpls*) cat {tmp_path}/mpls.json ;; *) echo '{{}}' ;; esac\n"
    )
    audit = lambda: dut.fpmctl("audit", "--vtysh", f"sh {script}")  # noqa: E731
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, {"oif": 1})
    dut.label(103, dut.hop(wan, [16], via="fe80::7"))
    done = audit()
    assert done.returncode == 0 and "labels  3 of zebra, 3 in the dataplane: 0 differ" in done.stdout, done

    dut.label(103, dut.hop(alt, [16], via="fe80::7"))
    dut.label(100, dut.hop(wan, [201]))
    dut.unlabel(101)
    dut.label(102, dut.hop(wan))
    done = audit()
    assert done.returncode == 3, done
    via = f"via {wan.peer4}"
    text = " ".join(done.stdout.split())
    for line in (
        f"DIFFERS label 100: zebra has {via} label 200, the dataplane has {via} label 201",
        "DIFFERS label 101: zebra has dev lo, the dataplane has none",
        f"DIFFERS label 102: zebra has none, the dataplane has {via}",
        f"DIFFERS label 103: zebra has via fe80::7 dev {wan.tap} label 16, the dataplane has via fe80::7"
        f" dev {alt.tap} label 16",
    ):
        assert line in text, text
