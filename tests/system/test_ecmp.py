# SPDX-License-Identifier: BSD-3-Clause
"""Several ways to one place: flows spread, stay, and move only when they must."""

import time
from collections import Counter

import pytest
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from on_time import Clock, true_in_time
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"


def spread(dut, lan, outs, probes):
    """{token: name of the wire it left by} of probes; all of them must leave."""
    for wire in outs:
        wire.clear()
    for at in range(0, len(probes), 300):
        lan.send(*map(bytes, probes[at : at + 300]))
        dut.fence(lan)
    found = {token_of(data): w.name for w in outs for data in w.got() if token_of(data)}
    assert len(found) == len(probes), f"{len(probes) - len(found)} lost"
    return found


def flows(lan, dst, count):
    """Probes of `count` flows that differ in their ports."""
    return lan.flow_frames(dst, [(1024 + n * 7, 2000 + n % 13) for n in range(count)])


def group_route(dut, net, peer, wires, weights=None):
    """A route over one next hop a wire; returns (group id, ids)."""
    ids = [dut.zebra.hop(getattr(w, peer), w) for w in wires]
    group = dut.zebra.group(dict(zip(ids, weights or [1] * len(ids))))
    dut.route(net, nhid=group)
    return group, ids


@pytest.mark.parametrize("n", [2, 3])
def test_flows_spread_evenly(dut, lan, wan, alt, ext, case, n):
    """RFC 2992: many flows share the ways in equal parts."""
    net, dst, peer = case
    outs = [wan, alt, ext][:n]
    group_route(dut, net, peer, outs)

    counts = Counter(spread(dut, lan, outs, flows(lan, dst, 1500)).values())

    assert all(abs(counts[w.name] / 1500 - 1 / n) < 0.06 for w in outs), counts


def test_destinations_spread_too(dut, lan, wan, alt):
    """Addresses count in the hash as ports do."""
    group_route(dut, NET, "peer4", [wan, alt])
    probes = [lan.probe(f"198.51.100.{n}") for n in range(256)]

    counts = Counter(spread(dut, lan, [wan, alt], probes).values())

    assert 80 < counts["wan"] < 176, counts


def test_one_flow_takes_one_path(dut, lan, wan, alt, ext, case):
    """RFC 2991, 2: packets of one flow are never reordered by taking two ways."""
    net, dst, peer = case
    group_route(dut, net, peer, [wan, alt, ext])

    for n in range(20):
        probes = [lan.probe(dst, sport=7000 + n, size=80 + 20 * k) for k in range(10)]
        assert len(set(spread(dut, lan, [wan, alt, ext], probes).values())) == 1


def test_fragments_of_one_datagram_take_one_path(dut, lan, wan, alt):
    """Later fragments have no ports: the ports of the first must not count either. Many
    datagrams spread over both ways."""
    group_route(dut, NET, "peer4", [wan, alt])
    ways = set()
    for n in range(40):
        whole = (
            IP(src=f"192.0.2.{3 + n}", dst=HOST, id=n)
            / UDP(sport=n, dport=n)
            / Raw(token() * 300)
        )
        pieces = [Ether(src=lan.mac, dst=lan.port_mac) / p for p in fragment(whole, 1200)]
        wan.clear()
        alt.clear()
        lan.send(*pieces)
        dut.fence(lan)
        # Every octet of the datagram is token: every piece holds the start of one.
        counts = tuple(len(w.got(token_of(pieces[0])[:6])) for w in (wan, alt))
        assert sorted(counts) == [0, len(pieces)], counts
        ways.add(counts[0] > 0)

    assert len(ways) == 2, "datagrams of many sources spread"


def test_a_lost_link_moves_its_flows_and_only_those(dut, lan, wan, alt, ext, case):
    """Resilience: within 100 ms, the flows of other members stay where they are; nothing is
    lost afterwards; and when the link is back, only its share comes back."""
    net, dst, peer = case
    outs = [wan, alt, ext]
    group_route(dut, net, peer, outs)

    def ways():
        # Same flows, new tokens: the flow is known by its position.
        again = flows(lan, dst, 400)
        found = spread(dut, lan, outs, again)
        return [found[token_of(p)] for p in again]

    before = ways()
    clock = Clock(dut)
    far_link(dut, wan, "down")
    true_in_time(clock, lambda: not dut.all_alive(net))
    during = ways()
    eventually(lambda: f"neigh: carrier down port={wan.tap}" in dut.daemon.log(100), 3)
    far_link(dut, wan, "up")
    eventually(lambda: dut.all_alive(net), 5, 0.01)
    after = ways()

    moved = [(b, d) for b, d in zip(before, during) if b != d]
    assert {b for b, _ in moved} == {"wan"} and "wan" not in during
    assert min(Counter(d for _, d in moved).values()) > len(moved) * 0.25, "both share"
    back = [(d, a) for d, a in zip(during, after) if d != a]
    assert {a for _, a in back} == {"wan"}
    assert abs(len(back) - len(moved)) < 60, "its share, no more"


def far_link(dut, wire, state):
    """Take the far end of a port up or down."""
    netns.link_set(dut.far, wire.name, state == "up")


def link(dut, wire):
    """Link state of a port as the daemon shows it."""
    return dut.port_row(wire)["link"]


def test_traffic_after_a_link_loss_is_not_lost(dut, lan, wan, alt, case):
    """What is sent later than 100 ms after the loss arrives, every packet."""
    net, dst, peer = case
    group_route(dut, net, peer, [wan, alt])

    with dut.stream(lan, dst, rate=1000, flows=50) as stream:
        clock = Clock(dut)
        far_link(dut, wan, "down")
        moved = true_in_time(clock, lambda: not dut.all_alive(net))
        first = stream.sent + 1  # the next may have been sent already
        eventually(lambda: stream.sent > first + 800)
        down = range(first, stream.sent)
        dut.fence(lan)  # those have been judged
        up = time.monotonic()
        far_link(dut, wan, "up")
        eventually(lambda: link(dut, wan) == "up", 5, 0.01)
        sent = stream.sent
        eventually(lambda: stream.sent > sent + 500)

    lost = [stream.time_of(n) for n in stream.lost(wan, alt)]
    assert [t - moved for t in lost if moved < t < up] == []
    assert [t - up for t in lost if t >= up] == []
    # Nor has any of them waited in the queue of the dead port until it came back.
    assert [n for n in stream.arrived(wan) if n in down] == []


def test_a_group_that_loses_a_member_by_message_is_resilient(dut, lan, wan, alt, ext):
    """The same when zebra takes a member out: only its flows move."""
    group, ids = group_route(dut, NET, "peer4", [wan, alt, ext])

    def ways():
        again = flows(lan, HOST, 300)
        found = spread(dut, lan, [wan, alt, ext], again)
        return [found[token_of(p)] for p in again]

    before = ways()
    dut.zebra.group(ids[1:], nhid=group)
    eventually(lambda: len(dut.route_row(NET)["nexthops"]) == 2)
    during = ways()
    dut.zebra.group(ids, nhid=group)
    eventually(lambda: len(dut.route_row(NET)["nexthops"]) == 3)
    after = ways()

    assert {b for b, d in zip(before, during) if b != d} == {"wan"}
    assert {a for d, a in zip(during, after) if a != d} == {"wan"}


def test_a_failed_neighbor_moves_its_flows(dut, lan, wan, alt, given_up_soon):
    """A member whose gateway does not answer is no way out."""
    hops = [dut.zebra.hop("192.0.2.99", wan), dut.zebra.hop(alt.peer4, alt)]
    dut.route(NET, nhid=dut.zebra.group(hops))

    def state():
        row = dut.neighbor_row("192.0.2.99", wan)
        return row and row["state"] == "failed"

    def all_pass():
        found = lan.flow_frames(HOST, [(8000 + n, 4001) for n in range(32)])
        lan.send(*found)
        dut.fence(lan)
        return all(alt.got(token_of(p)) for p in found)

    eventually(lambda: state() and all_pass(), 10, what="all flows leave by the living one")


@pytest.mark.smoke
def test_all_members_down_is_told(dut, lan, wan, alt):
    """RFC 1812, 5.2.7.1: no way left is unreachable, counted as egress down."""
    group_route(dut, NET, "peer4", [wan, alt])
    for wire in (wan, alt):
        far_link(dut, wire, "down")
    eventually(lambda: {link(dut, wan), link(dut, alt)} == {"down"}, 2, 0.005)
    eventually(lambda: dut.route_row(NET)["state"] == "down", 2, 0.005)

    probe = lan.probe(HOST)
    assert dut.not_forwarded(lan, probe) == {"egress_down": 1}
    lan.expect(token_of(probe))

    for wire in (wan, alt):
        far_link(dut, wire, "up")
    eventually(lambda: dut.route_row(NET)["state"] == "forwarding", 5, 0.01)
    lan.send(again := lan.probe(HOST))
    eventually(lambda: wan.got(token_of(again)) or alt.got(token_of(again)))


GATEWAY = "192.0.2.99"  # on wan, nobody but this test knows it


def carrier(dut, wan, dead):
    """The far end of the port goes down."""
    far_link(dut, wan, "down" if dead else "up")


def admin(dut, wan, dead):
    """`ip link set down`; the kernel forgets the neighbors of that interface."""
    dut.ip(f"link set {wan.tap} {'down' if dead else 'up'}")
    if not dead:
        dut.neighbor(GATEWAY, wan)


def neighbor(dut, wan, dead):
    """The gateway does not answer any more: the kernel says failed."""
    if dead:
        dut.ip(f"neigh replace {GATEWAY} dev {wan.tap} nud failed")
    else:
        dut.neighbor(GATEWAY, wan)


def address(dut, wan, dead):
    """zebra 8.4 tells the member's id anew and not its group (FPM.md, 0.8): by an interface
    that is not there, and back."""
    oif = 4711 if dead else dut.ifindex(wan)
    dut.zebra.hop(GATEWAY, nhid=881, oif=oif)


@pytest.mark.parametrize("cause", [carrier, admin, neighbor, address])
def test_a_member_is_dead_by_any_cause_and_comes_back(dut, lan, wan, alt, ext, cause):
    """No carrier, admin-down, neighbor failed, interface missing: it leaves its group at
    once and without a word of zebra's about it, comes back when the cause has gone, and
    the flows of the others stay where they are."""
    dut.neighbor(GATEWAY, wan)
    dut.zebra.hop(GATEWAY, wan, nhid=881)
    ids = [881, dut.zebra.hop(alt.peer4, alt), dut.zebra.hop(ext.peer4, ext)]
    dut.route(NET, nhid=dut.zebra.group(ids))

    def ways():
        again = flows(lan, HOST, 300)
        found = spread(dut, lan, [wan, alt, ext], again)
        return [found[token_of(p)] for p in again]

    def alive():
        hops = dut.route_row(NET)["nexthops"]
        return {hop["via"]: hop["alive"] for hop in hops}[GATEWAY]

    before = ways()
    cause(dut, wan, dead=True)
    eventually(lambda: not alive(), 3, 0.005)
    during = ways()
    cause(dut, wan, dead=False)
    eventually(alive, 5, 0.005)
    after = ways()

    assert {b for b, d in zip(before, during) if b != d} == {"wan"} and "wan" not in during
    assert {a for d, a in zip(during, after) if a != d} == {"wan"}


@pytest.mark.smoke
def test_weights_have_sixteen_bits(dut, lan, wan, alt):
    """zebra --nexthop-weight-16-bit (10.5): 16384 to 49152 is a quarter, and shown whole."""
    group_route(dut, NET, "peer4", [wan, alt], [16384, 49152])

    counts = Counter(spread(dut, lan, [wan, alt], flows(lan, HOST, 3000)).values())

    assert abs(counts["wan"] / 3000 - 0.25) < 0.03, counts
    weights = {hop["dev"]: hop["weight"] for hop in dut.route_row(NET)["nexthops"]}
    assert weights == {wan.tap: 16384, alt.tap: 49152}
