# SPDX-License-Identifier: BSD-3-Clause
"""Groups with many next hops: shares over ten thousand flows, groups of 8 and of 64, members of
both families, two routers in a row. The destination MAC of a packet identifies its member."""

import ipaddress
import itertools
import time
from collections import Counter

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns
from lib.fpm_speaker import route_block
from lib.wait import eventually
from on_time import IN_TIME_S, Clock, Medians, lose_link, outside
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
FLOWS = 10_000


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def case(request):
    """Return (prefix, destination, function (w, n) that returns gateway number n of wire number w)."""
    if request.param == 4:
        return NET, HOST, lambda w, n: f"192.0.2.{64 * w + 10 + n}"
    return NET6, HOST6, lambda w, n: f"2001:db8:{w or 4}::10:{n + 1:x}"


def gateways(dut, wires, count, address):
    """Make `count` gateways in turn on `wires`, known to the kernel. Returns [(address, wire,
    MAC)]."""
    numbers = {w.name: n for n, w in enumerate(dut.wires.values())}
    found = []
    for n in range(count):
        wire = wires[n % len(wires)]
        found.append((address(numbers[wire.name], n), wire, f"02:00:00:00:e0:{n:02x}"))
    dut.ip(
        *(
            f"neigh replace {a} lladdr {mac} dev {w.tap} nud permanent"
            for a, w, mac in found
        )
    )
    known(dut, found)
    return found


def known(dut, hops):
    """Wait until the router knows these gateways, because it holds few packets for an unknown
    gateway."""
    wanted = {(w.tap, address): mac for address, w, mac in hops}
    rows = lambda: {(r["dev"], r["address"]): r["mac"] for r in dut.control.ask("neighbors")}  # noqa: E731
    eventually(lambda: wanted.items() <= rows().items(), 5, 0.01, "all gateways are known")


def flow_frames(lan, dst, count):
    """Return frames of `count` flows that differ only in their ports. Equal arguments give the same
    flows with other tokens."""
    ports = [(1024 + n * 7 % 60000, 2000 + n // 8) for n in range(count)]
    return lan.flow_frames(dst, ports)


def members(dut, lan, outs, frames):
    """Return the destination MAC of each frame, in order. Every frame must have left."""
    for wire in outs:
        wire.clear()
    for at in range(0, len(frames), 250):  # the size of a port's ring
        lan.send(*frames[at : at + 250])
        dut.fence(lan)
    found = {token_of(d): d[:6].hex(":") for w in outs for d in w.got() if token_of(d)}
    paths = [found.get(token_of(f)) for f in frames]
    assert None not in paths, f"{paths.count(None)} lost"
    return paths


def group_of(dut, prefix, hops, weights=None):
    """Announce a route over gateways. Returns (group id, ids in order)."""
    ids = [dut.zebra.hop(a, w) for a, w, _ in hops]
    group = dut.zebra.group(dict(zip(ids, weights or itertools.repeat(1))))
    dut.route(prefix, nhid=group)
    return group, ids


@pytest.mark.parametrize("weights", [(1, 3), (10, 20, 70), (1, 254)], ids=str)
def test_weights_are_honoured_within_two_percent(dut, lan, wan, alt, ext, case, weights):
    """The shares of ten thousand flows match the weights within two percent (RFC 2992 with
    weights)."""
    prefix, dst, address = case
    hops = gateways(dut, [wan, alt, ext][: len(weights)], len(weights), address)
    group_of(dut, prefix, hops, weights)

    got = Counter(members(dut, lan, [wan, alt, ext], flow_frames(lan, dst, FLOWS)))

    for (_, _, mac), weight in zip(hops, weights):
        assert abs(got[mac] / FLOWS - weight / sum(weights)) < 0.02, got


def test_one_of_eight_goes_and_comes_back(dut, lan, wan, alt, ext, case):
    """A member of eight that goes moves only its own flows, spread over all the others. When it is
    back, only its share moves, all of it to this member."""
    prefix, dst, address = case
    outs = [wan, alt, ext]
    hops = gateways(dut, outs, 8, address)
    group, ids = group_of(dut, prefix, hops)
    gone = hops[3][2]

    def paths(count):
        eventually(lambda: len(dut.route_row(prefix)["nexthops"]) == count, 3, 0.005)
        return members(dut, lan, outs, flow_frames(lan, dst, 4000))

    before = paths(8)
    dut.zebra.group([n for n in ids if n != ids[3]], nhid=group)
    during = paths(7)
    dut.zebra.group(ids, nhid=group)
    after = paths(8)

    moved = Counter(d for b, d in zip(before, during) if b != d)
    assert {b for b, d in zip(before, during) if b != d} == {gone}
    assert gone not in moved and len(moved) == 7, "all seven others get a part of its flows"
    shares = Counter(during)
    assert all(abs(n / 4000 - 1 / 7) < 0.03 for n in shares.values()), shares
    back = Counter(a for d, a in zip(during, after) if d != a)
    assert set(back) == {gone}
    assert abs(back[gone] / 4000 - 1 / 8) < 0.03


def fragment_frames(lan, dst, count):
    """Return three fragments of each of `count` datagrams, one after the other. The first fragment
    has the ports."""
    eth, frames = Ether(src=lan.mac, dst=lan.port_mac), []
    for n in range(count):
        ports = UDP(sport=n, dport=n, len=88)
        for at, load in enumerate((ports / Raw(token() * 4), Raw(token() * 4), Raw(token()))):
            if ":" in dst:
                piece = IPv6ExtHdrFragment(nh=17, m=at < 2, offset=6 * at, id=n)
                ip = IPv6(src=f"2001:db8:4::1:{n:x}", dst=dst) / piece
            else:
                more = "MF" if at < 2 else 0
                ip = IP(src=f"198.18.{n}.1", dst=dst, proto=17, id=n, frag=6 * at, flags=more)
            frames.append(bytes(eth / ip / load))
    return frames


def test_sixty_four_ways(dut, lan, wan, alt, ext, case):
    """In a group as wide as FRR makes them, every member gets its share. The fragments of one
    datagram take one next hop (RFC 6438, 3), and many datagrams spread."""
    prefix, dst, address = case
    hops = gateways(dut, [wan, alt, ext], 36 if address(0, 0)[0] == "1" else 64, address)
    if len(hops) < 64:  # a /26 has no room for more: the rest is on lan, from which packets come
        hops += [(f"192.0.2.{10 + n}", lan, f"02:00:00:00:e1:{n:02x}") for n in range(28)]
        dut.ip(
            *(
                f"neigh replace {a} lladdr {m} dev {lan.tap} nud permanent"
                for a, _, m in hops[36:]
            )
        )
        known(dut, hops)
    group_of(dut, prefix, hops)
    assert len(dut.route_row(prefix)["nexthops"]) == 64

    got = Counter(members(dut, lan, [wan, alt, ext, lan], flow_frames(lan, dst, 6400)))

    assert set(got) == {mac for _, _, mac in hops}
    assert 50 < min(got.values()) and max(got.values()) < 170, got
    paths = members(dut, lan, [wan, alt, ext, lan], fragment_frames(lan, dst, 100))
    assert [n for n in range(100) if len(set(paths[3 * n : 3 * n + 3])) > 1] == []
    assert len(set(paths)) > 30, "of 64 paths 100 datagrams use 51 by chance"


def test_members_of_both_families(dut, lan, wan, alt):
    """IPv4 takes an IPv4 gateway and an IPv6 gateway of one group, each with its own MAC and the
    EtherType of the packet (RFC 8950)."""
    mac4 = dut.neighbor("192.0.2.90", wan, "02:00:00:00:e4:04")
    mac6 = dut.neighbor("fe80::90", alt, "02:00:00:00:e6:06")
    ids = [dut.zebra.hop("192.0.2.90", wan), dut.zebra.hop("fe80::90", alt)]
    dut.route(NET, nhid=dut.zebra.group(ids))

    got = Counter(members(dut, lan, [wan, alt], flow_frames(lan, HOST, 1000)))

    assert set(got) == {mac4, mac6} and min(got.values()) > 400
    assert {d[12:14] for w in (wan, alt) for d in w.got() if token_of(d)} == {b"\x08\0"}


def test_the_flow_label_counts(dut, lan, wan, alt):
    """Flows that differ only in the flow label spread. Packets with equal labels take one next hop
    (RFC 6437, 3)."""
    group_of(dut, NET6, [(wan.peer6, wan, None), (alt.peer6, alt, None)])

    frames = [bytes(lan.probe(HOST6, fl=n)) for n in range(400)]
    got = Counter(members(dut, lan, [wan, alt], frames))
    same = [bytes(lan.probe(HOST6, fl=7)) for _ in range(50)]

    assert min(got.values()) > 120, got
    assert len(set(members(dut, lan, [wan, alt], same))) == 1


def test_fragments_of_one_ipv6_datagram_take_one_path(dut, lan, wan, alt):
    """The fragments of one IPv6 datagram take one next hop. Only the first has ports, so the hash
    leaves the ports of all fragments out (RFC 6438, 3). Many datagrams spread over both next
    hops."""
    group_of(dut, NET6, [(wan.peer6, wan, None), (alt.peer6, alt, None)])
    eth, paths = Ether(src=lan.mac, dst=lan.port_mac), set()
    for n in range(40):
        ip = IPv6(src=f"2001:db8:4::1:{n:x}", dst=HOST6)
        first = IPv6ExtHdrFragment(nh=17, m=1, id=n) / UDP(sport=n, dport=n, len=64)
        pieces = [
            eth / ip / first / Raw(token() * 4),
            eth / ip / IPv6ExtHdrFragment(nh=17, m=1, offset=6, id=n) / Raw(token() * 4),
            eth / ip / IPv6ExtHdrFragment(nh=17, offset=11, id=n) / Raw(token()),
        ]
        used = set(members(dut, lan, [wan, alt], list(map(bytes, pieces))))
        assert len(used) == 1
        paths |= used

    assert len(paths) == 2


@pytest.mark.parametrize("cause", ["link", "neighbor"])
def test_a_lost_member_moves_twenty_thousand_prefixes_at_once(dut, lan, wan, alt, cause):
    """Prefixes point at groups, so the time to handle a lost link or a failed neighbor does not
    grow with the number of prefixes. A stream to addresses all over the table loses no packet that
    is sent later than 100 ms after the loss (median of three)."""
    count, ids = 20_000, [dut.zebra.hop(wan.peer4, wan), dut.zebra.hop(alt.peer4, alt)]
    group = dut.zebra.group(ids)
    first = ipaddress.ip_network("198.18.0.0/29")
    prefixes = [f"{first[0] + 8 * n}/29" for n in range(count)]
    dut.zebra.prefixes.update({(254, p): group for p in prefixes})
    dut.zebra.raw(route_block(str(first), count, group))
    dut.in_force(prefixes[-1])
    dsts = [str(first[1] + 8 * n) for n in range(0, count, 400)]
    medians, spans = Medians(dut), []

    def lost():
        """Lose the member. Return a Clock that began then."""
        if cause == "link":
            return lose_link(dut, wan)
        clock = Clock(dut)
        dut.ip(f"neigh replace {wan.peer4} dev {wan.tap} nud failed")
        return clock

    def back():
        if cause == "link":
            netns.link_set(dut.far, wan.name, True)
        else:
            dut.neighbor(wan.peer4, wan)
        eventually(lambda: dut.all_alive(prefixes[-1]), 5, 0.01)

    with dut.stream(lan, dsts, rate=1000) as stream:
        for _ in range(3):
            began = time.monotonic()
            dut.fence(lan)  # the forwarder has judged all earlier packets
            moved = medians.until(cause, lambda: not dut.all_alive(prefixes[-1]), lost())
            spans.append((began, moved))
            sent = stream.sent
            eventually(lambda sent=sent: stream.sent > sent + 500)
            back()

    assert outside([stream.time_of(n) for n in stream.lost(wan, alt)], spans) == []
    assert len(stream.arrived(alt)) > 400
    medians.are_in_time(IN_TIME_S)


def test_two_routers_in_a_row_do_not_choose_alike(dut, lan, wan, alt, own_dut):
    """Two routers in a row do not polarize. The second router has the same next hops and a seed of its
    own. It spreads the flows that the first router sends to one next hop over both of its next hops,
    half of them to each."""
    second = own_dut()
    second.start()
    for router in (dut, second):
        w, a = router.wires["wan"], router.wires["alt"]
        group_of(router, NET, [(w.peer4, w, None), (a.peer4, a, None)])

    frames = flow_frames(lan, HOST, 2000)
    paths = members(dut, lan, [wan, alt], frames)
    by_wan = [f for f, mac in zip(frames, paths) if mac == wan.mac]
    other = second.wires
    again = Counter(members(second, other["lan"], [other["wan"], other["alt"]], by_wan))

    assert abs(again[wan.mac] / len(by_wan) - 0.5) < 0.08, again
