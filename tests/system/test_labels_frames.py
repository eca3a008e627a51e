# SPDX-License-Identifier: BSD-3-Clause
"""Unusual frames with MPLS labels: frames with padding, packets too big for their labels, deep
stacks, ICMP errors behind labels. Each frame is counted once."""

import ipaddress
import shutil
import subprocess

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

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
    """Return the octets of a frame as a device sends them, padded with 0xff."""
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
    """RFC 894: where the last label comes off, the packet leaves without the padding. Where a label is
    swapped, the padding stays, because the router does not read the length of the packet."""
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
    """RFC 1812, 4.3.2.7, and RFC 4443, 2.4 (e): the router sends no ICMP error about an ICMP error or
    about a later fragment behind labels, whether or not the labels end at this router."""
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
    """RFC 3032, 3.4: the labels below the swapped label are on each fragment, and the MTU
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
    # With DF the sender gets the room that is left for its packet.
    wan.clear()
    lan.send(with_labels(lan.probe(HOST, size=1488, flags="DF"), 100, 300, 301))
    dut.fence(lan)
    (error,) = errors(wan)
    assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1484)


def test_the_mtu_of_a_route_counts_the_packet_without_its_labels(dut, lan, wan):
    """As in Linux: RTAX_MTU limits the packet without its labels, and the MTU of the link limits the
    packet with its labels."""
    dut.zebra.add(NET, dut.zebra.hop(wan.peer4, wan, labels=[16, 17]), mtu=1400)
    dut.in_force(NET)

    came = dut.forwarded(lan, lan.probe(HOST, size=1400, flags="DF"), wan)
    assert labels_of(came) == [16, 17]
    lan.clear()
    lan.send(lan.probe(HOST, size=1401, flags="DF"))
    dut.fence(lan)
    (error,) = errors(lan)
    assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1400)


def test_a_neighbor_that_does_not_answer_is_reported_along_the_path(dut, lan, wan):
    """A packet that waited in vain is dropped once. If its labels do not end here, the error takes
    their path, which is dead, and is dropped, too. If the packet has a label of this router, the
    error returns to the sender."""
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
    """Return the number of packets since `before` that were forwarded, dropped or punted. A packet
    that causes an ICMP error counts as a punt and as a drop; here only its drop counts."""
    asked = ("ttl_expired", "unreach", "too_big", "unresolved")
    totals = dut.moved(before, "total").items()
    ends = {k: v for k, v in totals if k.startswith("forwarded")}, dut.drops(before)
    punts = {k: v for k, v in dut.moved(before, "punt").items() if k not in asked}
    return sum(sum(d.values()) for d in (*ends, punts))


# The severity of a warning of tshark. Lower values are remarks, for example about a low TTL.
WARNING = 0x00600000
FIELDS = ["mpls.label", "mpls.ttl", "mpls.exp", "mpls.bottom", "icmp.mpls.label", "icmp.mpls.ttl",
          "icmp.type", "icmpv6.type", "ip.checksum.status", "udp.checksum.status",
          "icmp.checksum.status", "icmpv6.checksum.status", "icmp.ext.checksum.status",
          "_ws.expert.severity", "_ws.expert.message"]  # fmt: skip


def dissected(frames, path):
    """Return tshark's fields of each frame, {field: texts}."""
    wrpcap(path, [Ether(bytes(f)) for f in frames])
    argv = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=|", "-E", "aggregator=;"]
    for name in ("ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "ip.defragment:FALSE"):
        argv += ["-o", name]
    for field in FIELDS:
        argv += ["-e", field]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    rows = [line.split("|") for line in said.splitlines()]
    return [{f: t.split(";") if t else [] for f, t in zip(FIELDS, row)} for row in rows]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed: make deps")
def test_tshark_finds_no_fault_in_what_leaves(dut, lan, wan, tmp_path):
    """tshark, which we did not write, reads the labels that the test expects in each kind of frame. It
    finds no malformed frame and no wrong checksum, and warns of nothing else."""
    many = list(range(400, 414))
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, dut.hop(wan, [201, 202, 203]))
    dut.label(102, dut.hop(wan))
    dut.label(103, dut.hop(wan, [0]))
    dut.label(104, dut.hop(wan, [2]))
    dut.label(105, {"oif": 1})
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=many))
    dut.route(NET6, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300, 2]))
    ports = {"sport": 50001, "dport": 50002}  # ports without a protocol
    probe = lambda host, **more: lan.probe(host, **ports, **more)  # noqa: E731
    four, six = probe(HOST, ttl=20, tos=0xB8), probe(HOST6, hlim=20, tc=0xB8)
    # The frame that is sent, and for each frame that leaves by wan: (label, TTL, TC) of each label.
    cases = [
        (with_labels(four, (100, 9, 3)), [[(200, 8, 3)]]),
        (with_labels(six, (100, 9, 3)), [[(200, 8, 3)]]),
        (with_labels(four, (101, 9, 3)), [[(201, 8, 3), (202, 8, 3), (203, 8, 3)]]),
        (with_labels(four, 100, (500, 7, 1)), [[(200, 63, 0), (500, 7, 1)]]),
        (with_labels(four, (102, 9)), [[]]),
        (with_labels(six, (102, 9)), [[]]),
        (with_labels(six, (102, 9), (501, 64, 2)), [[(501, 8, 2)]]),
        (with_labels(four, (103, 9)), [[(0, 8, 0)]]),
        (with_labels(six, (104, 9)), [[(2, 8, 0)]]),
        (four, [[(label, 19, 5) for label in many]]),
        (six, [[(300, 19, 5), (2, 19, 5)]]),
        (with_labels(six, (105, 9)), [[(300, 8, 5), (2, 8, 5)]]),
        (probe(HOST, size=1500), [[(label, 63, 0) for label in many]] * 2),
        (with_labels(probe(HOST, size=1488), (101, 9), (500, 7, 1)),
         [[(201, 8, 0), (202, 8, 0), (203, 8, 0), (500, 7, 1)]] * 2),
    ]
    frames, want = [], []
    for sent, expected in cases:
        wan.clear()
        lan.send(sent)
        dut.fence(lan)
        frames += [f for f in wan.got() if token_of(sent) in f or len(expected) > 1]
        want += expected
    rows = dissected(frames, str(tmp_path / "out.pcap"))
    got = [labels_by_tshark(row) for row in rows]
    assert got == want
    assert [row["mpls.bottom"] for row in rows] == [["0"] * (len(w) - 1) + ["1"] * bool(w) for w in want]

    # ICMP errors: along the path and back, of both families, with the stack that came.
    wan.clear()
    lan.clear()
    lan.send(with_labels(four, (101, 1, 3), (500, 7, 1)), with_labels(six, (100, 1)),
             with_labels(four, (105, 1)), with_labels(six, (105, 1)),
             with_labels(probe(HOST, size=1496, flags="DF"), 101))  # fmt: skip
    dut.fence(lan)
    out = [f for f in wan.got() if entries_of(f)]
    # Leave out the router's own solicitations and multicast reports.
    back = [f for f in lan.got() if ICMP in Ether(f) or ICMPv6TimeExceeded in Ether(f)]
    found = dissected(out + back, str(tmp_path / "errors.pcap"))
    named = [(row["icmp.type"] + row["icmpv6.type"], row["icmp.mpls.label"]) for row in found]
    assert sorted(named) == sorted([
        (["11"], ["101", "500"]), (["3"], ["100"]), (["3"], []), (["11"], ["105"]), (["3"], ["105"])
    ])  # fmt: skip
    # Sorted, because each class of ICMP errors has a queue of its own.
    assert sorted(labels_by_tshark(row) for row in found[: len(out)]) == [
        [(200, 254, 0)],
        [(201, 254, 0), (202, 254, 0), (203, 254, 0)],
        [(201, 254, 3), (202, 254, 3), (203, 254, 3), (500, 255, 1)],
    ]
    rows += found
    for row in rows:
        severe = [int(n) for n in row["_ws.expert.severity"]]
        assert not severe or max(severe) < WARNING, row
        for field in FIELDS:
            # 1: right; 2: not checked, as of a quoted part of a packet.
            assert not field.endswith("status") or set(row[field]) <= {"1", "2"}, row
    assert sum("1" in row["icmp.ext.checksum.status"] for row in rows) == 4


def labels_by_tshark(row):
    """Return (label, TTL, TC) of each label of a frame."""
    return list(zip(*([int(n) for n in row["mpls." + f]] for f in ("label", "ttl", "exp"))))
