# SPDX-License-Identifier: BSD-3-Clause
"""Cases of the test catalogues of DANOS and VPP for MPLS that the other test_labels files do not
have."""

import ipaddress
import socket

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6

from labels import TAKES_LABELS, LabelRouter, behind, entries_of, with_labels
from lib import netns
from lib.wait import eventually
from router import running
from test_ecmp import far_link
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


@pytest.fixture(scope="module")
def catalogue_router(possible):
    """The router of this file."""
    with running(LabelRouter(name="labelcases"), TAKES_LABELS) as router:
        yield router


@pytest.fixture
def dut(catalogue_router):
    """The router in its standard state, without labels."""
    catalogue_router.ready()
    yield catalogue_router
    assert catalogue_router.alive(), "the daemon died"


def labels_of(frame):
    """Return the labels of a frame, outermost first."""
    return [e[0] for e in entries_of(frame)]


def icmp_on(*wires):
    """Return the ICMP errors on these wires, behind their labels."""
    found = []
    for data in (data for wire in wires for data in wire.got()):
        inner = behind(data) if entries_of(data) else data[14:]
        if inner[:1] == b"\x45" and inner[9:10] == b"\1" and inner[20] in (3, 11, 12):
            found.append(IP(inner))
        if inner[:1] == b"\x60" and inner[6:7] == b"\x3a" and inner[40] < 128:
            found.append(IPv6(inner))
    return found


# {case: (destination, function from an intact packet to a broken one, the reason with which the
# router drops it if it reads its header)}
BROKEN = {
    "one octet": (HOST, lambda p: p[:1], "l2_short"),
    "cut header": (HOST, lambda p: p[:19], "l2_short"),
    "header length": (HOST, lambda p: b"\x44" + p[1:], "ip4_ihl"),
    "options cut": (HOST, lambda p: b"\x4f" + p[1:21], "ip4_ihl"),
    "checksum": (HOST, lambda p: p[:10] + b"\xff\xff" + p[12:], "ip4_checksum"),
    "too long": (HOST, lambda p: p[:2] + b"\x05\x00" + p[4:], "ip4_length"),
    "shorter than its header": (HOST, lambda p: p[:2] + b"\x00\x13" + p[4:], "ip4_length"),
    "IPv6, one octet": (HOST6, lambda p: p[:1], "l2_short"),
    "IPv6, cut header": (HOST6, lambda p: p[:39], "l2_short"),
    "IPv6, too long": (HOST6, lambda p: p[:4] + b"\x05\x00" + p[6:], "ip6_length"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_packet_behind_labels(dut, lan, wan, what):
    """A broken packet is switched while labels remain, and dropped where the last label comes off.
    No ICMP error is sent about it (RFC 1812, 4.3.2.7)."""
    host, broken, reason = BROKEN[what]
    null = 0 if host == HOST else 2
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, dut.hop(wan))
    dut.label(102, {"oif": 1})
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    probe = lan.probe(host)

    def sent(*entries):
        octets = bytes(with_labels(probe, *entries))
        at = 14 + 4 * len(entries)
        return octets[:at] + broken(octets[at:])

    for label in (null, 102, (102, 1)):
        assert dut.not_forwarded(lan, sent(label)) == {reason: 1}, label
    if what != "checksum":  # the router verifies the checksum only if it looks up the address
        for label in (101, (101, 1)):
            assert dut.not_forwarded(lan, sent(label)) == {"mpls_payload": 1}, label
    assert dut.not_forwarded(lan, sent((100, 1))) == {"ttl": 1}
    assert icmp_on(lan, wan) == []
    wan.clear()
    lan.send(sent(100))
    dut.fence(lan)
    (came,) = [f for f in wan.got() if entries_of(f)]
    assert labels_of(came) == [200] and behind(came) == sent(100)[18:]


@pytest.mark.parametrize("flags", [0, "DF"])
def test_a_broken_packet_too_big_for_its_labels(dut, lan, wan, flags):
    """A packet with a wrong checksum is not fragmented, because its fragments would have right
    checksums. Its sender gets no ICMP error."""
    dut.label(100, dut.hop(wan, [200, 201]))
    dut.label(101, dut.hop(wan, [200, 201, 202]))
    probe = lan.probe(HOST, size=1496, flags=flags)

    for label in (100, 101):
        octets = bytes(with_labels(probe, label))
        assert dut.not_forwarded(lan, octets[:28] + b"\xff\xff" + octets[30:]) == {"mtu": 1}
    assert icmp_on(lan, wan) == []


def test_explicit_null_gives_its_traffic_class_to_nothing(dut, lan, wan):
    """RFC 3032, 2.1, and RFC 4182: the label below explicit null keeps its own traffic class, and so
    does the label that replaces it. The packet keeps its DSCP, from which labels that its route
    pushes have their traffic class."""
    dut.label(100, dut.hop(wan, [200]))
    dut.label(101, dut.hop(wan))
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, nhid=dut.zebra.hop(wan.peer6, wan, labels=[300]))
    four, six = lan.probe(HOST, tos=0xBA), lan.probe(HOST6, tc=0xBA)

    def left(probe, *entries):
        wan.clear()
        came = dut.forwarded(lan, with_labels(probe, *entries), wan)
        return [e[:3] for e in entries_of(came)], came

    null = (0, 20, 3)
    assert left(four, null, (100, 64, 6))[0] == [(200, 19, 6)]
    assert left(four, null, null, (101, 64, 6), (400, 9, 1))[0] == [(400, 8, 1)]
    labels, came = left(four, null)
    assert (labels, came[IP].tos) == ([], 0xBA)
    labels, came = left(six, (2, 20, 3))
    assert (labels, IPv6(behind(came)).tc) == ([(300, 19, 5)], 0xBA)


@pytest.mark.parametrize("mtu", [1280, 1284, 1287, 1288, 1289, 1300])
def test_no_sender_of_ipv6_is_asked_for_packets_below_1280_octets(dut, lan, wan, mtu):
    """RFC 8201, 4: a node ignores an error with a smaller MTU. A packet that fits with its labels
    leaves. The sender of a larger IPv4 packet gets the MTU of the link less the labels."""
    dut.route(NET, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300, 301]))
    dut.route(NET6, nhid=dut.zebra.hop(wan.peer6, wan, labels=[300, 301]))
    dut.label(100, dut.hop(wan, [300, 301]))
    now = lambda: dut.port_row(wan)["mtu"]  # noqa: E731
    room = mtu - 8

    def answer(frame):
        before = dut.counters()
        for wire in (lan, wan):
            wire.clear()
        lan.send(frame)
        dut.fence(lan)
        assert dut.drops(before) == {"mtu": 1}
        (error,) = icmp_on(lan, wan)
        if error.version == 6:
            assert bytes(error.payload)[0] == 2  # RFC 4443, 3.2: packet too big
            return int.from_bytes(bytes(error.payload)[4:8], "big")
        assert bytes(error.payload)[:2] == b"\3\4"
        return int.from_bytes(bytes(error.payload)[6:8], "big")

    dut.ip(f"link set {wan.tap} mtu {mtu}")
    try:
        eventually(lambda: now() == mtu, 5, 0.01, "the MTU")
        for host, more in ((HOST, {"flags": "DF"}), (HOST6, {})):
            came = dut.forwarded(lan, lan.probe(host, size=room, **more), wan)
            assert labels_of(came) == [300, 301] and len(came) == 14 + mtu
        assert answer(lan.probe(HOST, size=room + 1, flags="DF")) == room
        assert answer(lan.probe(HOST6, size=room + 1)) == max(room, 1280)
        # An error of 1280 octets that takes the path of the packet has to fit, too.
        if room >= 1280:
            assert answer(with_labels(lan.probe(HOST6, size=room + 1), 100)) == room
    finally:
        dut.ip(f"link set {wan.tap} mtu 1500")
        eventually(lambda: now() == 1500, 5, 0.01, "the MTU")


def test_an_address_of_the_host_behind_explicit_null(dut, lan):
    """A packet to 127.0.0.1 is dropped. A packet to an address of the router goes to the kernel as it
    came."""
    assert dut.not_forwarded(lan, with_labels(lan.probe("127.0.0.1"), 0)) == {"ip4_martian_dst": 1}
    for own, null in ((lan.ip4, 0), (lan.ip6, 2)):
        sent = with_labels(lan.probe(own), null)
        lan.send(sent)
        assert bytes(dut.taps["lan"].expect_raw(bytes(sent)[14:], 2)) == bytes(sent)


@pytest.mark.parametrize("label", [1, 13, 14])
def test_a_label_for_the_host_goes_to_it_as_it_came(dut, lan, wan, label):
    """Router alert, G-ACh and OAM: labels, TTL and TC are unchanged, whatever follows."""
    dut.label(100, dut.hop(wan, [200]))
    sent = with_labels(lan.probe(HOST), (label, 7, 3), (100, 1))

    lan.send(sent)

    assert bytes(dut.taps["lan"].expect_raw(bytes(sent)[14:], 2)) == bytes(sent)
    dut.fence(lan)
    assert [f for f in wan.got() if entries_of(f)] == []


@pytest.mark.parametrize("host", [HOST, HOST6])
def test_the_ttl_ends_where_the_last_label_comes_off(dut, lan, wan, host):
    """The ICMP error leaves without a label, by the path that the packet would take."""
    dut.label(100, dut.hop(wan))

    assert dut.not_forwarded(lan, with_labels(lan.probe(host), (100, 1))) == {"ttl": 1}

    (error,) = icmp_on(lan, wan)
    assert error.dst == (lan.peer4 if host == HOST else lan.peer6)
    assert [f for f in wan.got() if entries_of(f)] == [] and icmp_on(wan) == [error]


def test_a_host_of_a_connected_subnet_behind_a_label(dut, lan, wan):
    """The label leads to table main, and the kernel has to resolve the host first."""
    fresh = str(ipaddress.ip_network(wan.host4)[9])
    dut.label(100, {"oif": 1})
    sent = [with_labels(lan.probe(fresh), 100), with_labels(lan.probe(fresh), (0, 9))]

    wan.answer(fresh)
    lan.send(*sent)

    for frame, ttl in zip(sent, (63, 8)):
        came = wan.expect(token_of(frame), 3)
        assert (labels_of(came), came[IP].ttl) == ([], ttl)


def test_an_interface_that_is_no_port(dut, lan):
    """A packet whose next hop is behind such an interface goes to the kernel as it came, with its
    labels if it has some, because the kernel may have a route."""
    dut.ip("link add nodp type veth peer name nodp0", "link set nodp up",
           "addr add 203.0.113.1/24 dev nodp")  # fmt: skip
    try:
        with netns.entered(dut.ctl):
            oif = socket.if_nametoindex("nodp")
        hop = {"via": "203.0.113.2", "oif": oif}
        dut.label(100, {**hop, "labels": [200]})
        dut.label(101, hop)
        dut.zebra.add(NET, dut.zebra.hop("203.0.113.2", oif=oif, labels=[300]))
        dut.route_row(NET)
        before, tap = dut.counters(), dut.taps["lan"]
        probe = lan.probe(HOST)
        for sent in (with_labels(probe, 100), with_labels(probe, 101), probe):
            tap.clear()
            lan.send(sent)
            assert bytes(tap.expect_raw(token_of(sent), 2)) == bytes(sent)
        assert dut.moved(before, "punt")["kernel_route"] == 3 and dut.drops(before) == {}
    finally:
        dut.ip("link del nodp")


@pytest.mark.parametrize("host", [HOST, HOST6])
def test_routes_follow_a_next_hop_that_changes_its_labels(dut, lan, wan, alt, host):
    """BGP PIC: many routes share a next hop. Its labels and its neighbor change, and zebra sends no
    route again. Each packet takes the old or the new next hop."""
    nets = [f"198.51.{n}.0/24" for n in range(100, 140)] if host == HOST else [NET6]
    peer = "peer4" if host == HOST else "peer6"
    nhid = dut.zebra.hop(getattr(wan, peer), wan, labels=[300, 400])
    for net in nets:
        dut.zebra.add(net, nhid)
    dut.route_row(nets[-1])
    frames = [lan.probe(host) for _ in range(200)]
    for n, frame in enumerate(frames):
        if n == 100:
            dut.zebra.hop(getattr(alt, peer), alt, nhid=nhid, labels=[500])
        lan.send(frame)
    dut.fence(lan)

    assert labels_of(dut.forwarded(lan, lan.probe(host), alt)) == [500]
    by = [[labels_of(f) for f in w.got() if entries_of(f)] for w in (wan, alt)]
    assert sum(map(len, by)) == 201 and [300, 400] in by[0] and [500] in by[1]
    assert set(map(tuple, by[0])) == {(300, 400)} and set(map(tuple, by[1])) == {(500,)}


@pytest.mark.parametrize("kind", ["label", "route"])
def test_a_lost_link_moves_flows_to_the_other_labels(dut, lan, wan, alt, kind):
    """Flows leave a labelled next hop at once when its link is lost, without zebra."""
    if kind == "label":
        dut.label(100, dut.hop(wan, [200]), dut.hop(alt, [300]))
    else:
        hops = [dut.zebra.hop(w.peer4, w, labels=[n]) for w, n in ((wan, 200), (alt, 300))]
        dut.route(NET, nhid=dut.zebra.group(hops))

    def taken():
        wan.clear()
        alt.clear()
        probes = [lan.probe(HOST, sport=7000 + n) for n in range(40)]
        lan.send(*(with_labels(p, 100) if kind == "label" else p for p in probes))
        dut.fence(lan)
        by = [[labels_of(f)[0] for f in w.got() if entries_of(f)] for w in (wan, alt)]
        return [len(x) for x in by], set(by[0]), set(by[1])

    both, *labels = taken()
    assert sum(both) == 40 and min(both) >= 5 and labels == [{200}, {300}]
    far_link(dut, wan, "down")
    try:
        eventually(lambda: f"neigh: carrier down port={wan.tap}" in dut.daemon.log(100), 3, 0.01)
        eventually(lambda: taken() == ([0, 40], set(), {300}), 3, 0.01)
    finally:
        far_link(dut, wan, "up")
    eventually(lambda: taken()[0] == both, 5, 0.05)


def test_flows_without_an_ip_packet_are_told_apart_by_their_labels(dut, lan, wan, alt):
    """Each pseudowire has a label of its own below the label of the path. TTL and TC have no effect on
    the choice of a next hop."""
    dut.label(100, dut.hop(wan, [200]), dut.hop(alt, [300]))
    load = b"\0\0\0\1" + bytes(60)

    def taken(*entries):
        for wire in (wan, alt):
            wire.clear()
        head = [bytes(with_labels(lan.probe(HOST), *e))[: 14 + 4 * len(e)] for e in entries]
        lan.send(*(h + load for h in head))
        dut.fence(lan)
        return [len([f for f in w.got() if entries_of(f)]) for w in (wan, alt)]

    many = taken(*([100, 5000 + n] for n in range(40)))
    assert sum(many) == 40 and min(many) >= 5
    one = taken(*([(100, 2 + n, n % 8), (5000, 1 + n, n % 8)] for n in range(40)))
    assert sorted(one) == [0, 40]


def test_flows_of_ipv6_behind_labels_are_told_apart(dut, lan, wan, alt):
    """The addresses, the ports and the flow label of the packet choose the next hop."""
    dut.label(100, dut.hop(wan, [200]), dut.hop(alt, [300]))

    def taken(*probes):
        for wire in (wan, alt):
            wire.clear()
        lan.send(*(with_labels(p, 100, 400) for p in probes))
        dut.fence(lan)
        return [len([f for f in w.got() if entries_of(f)]) for w in (wan, alt)]

    for field in ({"sport": 5000}, {"fl": 7000}):
        (name, first), *_ = field.items()
        many = taken(*(lan.probe(HOST6, **{name: first + n}) for n in range(40)))
        assert sum(many) == 40 and min(many) >= 5, name
    assert sorted(taken(*(lan.probe(HOST6) for _ in range(40)))) == [0, 40]
