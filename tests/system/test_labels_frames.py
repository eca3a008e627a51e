# SPDX-License-Identifier: BSD-3-Clause
"""Frames with MPLS labels at the edges of what a frame may be: padded, too big for some of their
labels, with many labels, about errors. Each ends in one counter."""

import ipaddress

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from labels import TAKES_LABELS, LabelRouter, behind, entries_of, with_labels
from lib.wait import eventually
from router import running
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


@pytest.fixture(scope="module")
def frames_router(possible):
    """The router of this file."""
    with running(LabelRouter(name="labelframes"), TAKES_LABELS) as router:
        yield router


@pytest.fixture
def dut(frames_router):
    """The router in its standard state, without labels."""
    frames_router.ready()
    yield frames_router
    assert frames_router.alive(), "the daemon died"


def padded(frame, octets=60):
    """Return the octets of a frame as a device sends them, with padding of ones."""
    data = bytes(frame)
    return data + b"\xff" * (octets - len(data))


def labels_of(frame):
    return [e[0] for e in entries_of(frame)]


def errors(wire):
    """Return the ICMP errors on a wire, behind their labels if they have some."""
    found = []
    for data in wire.got():
        octets = behind(data) if entries_of(data) else bytes(data)[14:]
        if data[12:14] in (b"\x88\x47", b"\x08\x00") and octets[9:10] == b"\x01":
            found += [IP(octets)] if octets[20] in (3, 11) else []
    return found


def test_padding_is_not_part_of_the_packet(dut, lan, wan):
    """RFC 894: where the last label comes off, the packet leaves without the padding. A label that
    is swapped does not say where the packet ends."""
    dut.label(100, dut.hop(wan))
    dut.label(101, {"oif": 1})
    dut.label(102, dut.hop(wan, [200]))
    dut.route(NET, via=wan.peer4, wire=wan)
    for label in (100, 101):
        probe = lan.probe(HOST)
        lan.send(padded(with_labels(probe, label)))
        came = wan.expect(token_of(probe), 2)
        # The veth has no padding of its own.
        assert len(came) == 14 + len(probe[IP]), label
    probe = lan.probe(HOST)
    lan.send(padded(with_labels(probe, 102)))
    came = wan.expect(token_of(probe), 2)
    assert labels_of(came) == [200] and behind(came) == padded(with_labels(probe, 102))[18:]
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300]))
    probe = lan.probe(HOST)
    lan.send(padded(probe))
    came = wan.expect(token_of(probe), 2)
    assert labels_of(came) == [300] and len(behind(came)) == len(probe[IP])


def test_no_error_about_an_error(dut, lan, wan):
    """RFC 1812, 4.3.2.7, and RFC 4443, 2.4 (e): also behind labels, whether they end here."""
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, {"oif": 1})
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    eth, quoted = Ether(src=lan.mac, dst=lan.port_mac), IP(src=HOST, dst=lan.peer4) / UDP()
    bad4 = eth / IP(src=lan.peer4, dst=HOST) / ICMP(type=11) / quoted / Raw(token())
    quoted6 = IPv6(src=HOST6, dst=lan.peer6) / UDP()
    bad6 = eth / IPv6(src=lan.peer6, dst=HOST6) / ICMPv6TimeExceeded() / quoted6 / Raw(token())
    later = eth / IP(src=lan.peer4, dst=HOST, frag=100, proto=17) / Raw(token())
    before = dut.counters()

    for label in (100, 101):
        for frame in (bad4, bad6, later):
            lan.clear()
            assert dut.not_forwarded(lan, with_labels(frame, (label, 1))) == {"ttl": 1}
            assert errors(lan) == [] and errors(wan) == []
    assert dut.moved(before, "total").get("icmp_limited") == 6


@pytest.mark.parametrize("n", [16, 17, 40])
def test_a_deep_stack_is_switched_and_answered_up_to_sixteen(dut, lan, wan, n):
    """Only the first label matters for the path. An ICMP error quotes at most 16 labels; a packet
    with more is dropped without an error."""
    dut.label(100, dut.hop(wan, [200]))
    below = [300 + i for i in range(n - 1)]

    came = dut.forwarded(lan, with_labels(lan.probe(HOST), 100, *below), wan)
    assert labels_of(came) == [200, *below]

    wan.clear()
    before = dut.counters()
    lan.send(with_labels(lan.probe(HOST), (100, 1), *below))
    dut.fence(lan)
    assert dut.drops(before) == {"ttl": 1}
    found = errors(wan)
    assert len(found) == (n <= 16)
    for error in found:
        octets = bytes(error[ICMP])[5] * 4
        extension = bytes(error[ICMP])[8 + octets :]
        assert len(extension) == 8 + 4 * n and len(error) <= 576


def test_a_packet_is_fragmented_under_labels_that_stay(dut, lan, wan):
    """RFC 3032, 3.4: the labels below the one that is swapped are on each fragment, and the MTU
    counts them."""
    dut.label(100, dut.hop(wan, [200, 201]))
    frame = with_labels(lan.probe(HOST, size=1488), 100, (300, 9, 3), 301)
    wan.clear()
    lan.send(frame)
    dut.fence(lan)

    pieces = [f for f in wan.got() if entries_of(f)]
    assert [labels_of(f) for f in pieces] == [[200, 201, 300, 301]] * 2
    assert [entries_of(f)[2] for f in pieces] == [(300, 9, 3, 0)] * 2
    parts = sorted((IP(behind(f)) for f in pieces), key=lambda p: p.frag)
    assert b"".join(bytes(p.payload) for p in parts) == bytes(frame[IP].payload)
    assert all(len(f) <= 1514 for f in pieces)
    assert len(behind(pieces[0])) > 1400 or len(behind(pieces[1])) > 1400
    # With DF the sender gets what is left for its packet.
    wan.clear()
    lan.send(with_labels(lan.probe(HOST, size=1488, flags="DF"), 100, 300, 301))
    dut.fence(lan)
    (error,) = errors(wan)
    assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1484)


def test_the_mtu_of_a_route_counts_the_packet_without_its_labels(dut, lan, wan):
    """As in Linux: RTAX_MTU is that of the packet, the MTU of the link counts the labels, too."""
    dut.zebra.add(NET, dut.zebra.hop(wan.peer4, wan, labels=[16, 17]), mtu=1400)
    dut.route_row(NET)

    came = dut.forwarded(lan, lan.probe(HOST, size=1400, flags="DF"), wan)
    assert labels_of(came) == [16, 17]
    lan.clear()
    lan.send(lan.probe(HOST, size=1401, flags="DF"))
    dut.fence(lan)
    (error,) = errors(lan)
    assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1400)


def test_a_neighbor_that_does_not_answer_is_reported_along_the_path(dut, lan, wan):
    """A held packet that comes to nothing is dropped once. Its labels do not end here, and their
    path is dead, so the error ends here, too. Behind a label of ours it returns to the sender."""
    dead = str(ipaddress.ip_network(wan.host4)[11])
    dut.label(100, dut.hop(wan, [200], via=dead))
    dut.label(101, {"oif": 1})
    dut.route(NET, nhid=dut.zebra.hop(dead, wan, labels=[300]))
    before = dut.counters()
    lan.clear()
    lan.send(with_labels(lan.probe(HOST), 100), with_labels(lan.probe(HOST), 101))
    eventually(lambda: dut.drops(before).get("neigh_failed") == 2, 10, 0.05)
    eventually(lambda: len(errors(lan)) == 1, 5, 0.05)
    (error,) = errors(lan)
    assert (error[ICMP].type, error[ICMP].code, error.dst) == (3, 1, lan.peer4)


def test_each_frame_ends_in_one_counter(dut, lan, wan):
    """Forwarded, dropped or for the kernel: the sum is the number of the frames."""
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, dut.hop(wan))
    dut.label(102, {"oif": 1})
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST)
    frames = [
        with_labels(probe, 100),
        with_labels(probe, 101),
        with_labels(probe, 102),
        with_labels(probe, 100, 300),
        with_labels(probe, 101, 300),
        with_labels(probe, 0, 100),
        with_labels(probe, 7, 5000, 100),
        with_labels(probe, (100, 1)),
        with_labels(probe, (101, 0)),
        with_labels(probe, 999),
        with_labels(probe, 3),
        with_labels(lan.probe("203.0.113.9"), 102),
        with_labels(lan.probe(lan.ip4), 102),
        with_labels(probe, 1),
        with_labels(probe, 13),
        with_labels(lan.probe(HOST, size=1496, flags="DF"), 102),
        probe,
    ]
    dut.fence(lan)
    before = dut.counters()
    lan.send(*frames)
    eventually(lambda: sum_of(dut, before) >= len(frames), 3, 0.02)
    assert sum_of(dut, before) == len(frames), (dut.drops(before), dut.moved(before, "punt"))


def sum_of(dut, before):
    """Return the packets since `before` that have come to an end. An ICMP error counts as punt and
    as the drop that caused it."""
    asked = ("ttl_expired", "unreach", "too_big", "unresolved")
    totals = dut.moved(before, "total").items()
    ends = {k: v for k, v in totals if k.startswith("forwarded")}, dut.drops(before)
    punts = {k: v for k, v in dut.moved(before, "punt").items() if k not in asked}
    return sum(sum(d.values()) for d in (*ends, punts))
