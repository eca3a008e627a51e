# SPDX-License-Identifier: BSD-3-Clause
"""The flows of a route with several next hops spread over them, stay on their next hop, and move
only when they must."""

import time
from collections import Counter

import pytest
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from on_time import IN_TIME_S, Medians, lose_link, outside
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"


def spread(dut, lan, outs, probes):
    """Send probes, all of which must leave. Returns {token: name of the wire by which the probe
    left}."""
    for wire in outs:
        wire.clear()
    for at in range(0, len(probes), 300):
        lan.send(*map(bytes, probes[at : at + 300]))
        dut.fence(lan)
    found = {token_of(data): w.name for w in outs for data in w.got() if token_of(data)}
    assert len(found) == len(probes), f"{len(probes) - len(found)} lost"
    return found


def flows(lan, dst, count):
    """Return probes of `count` flows that differ in their ports."""
    return lan.flow_frames(dst, [(1024 + n * 7, 2000 + n % 13) for n in range(count)])


def group_route(dut, net, peer, wires, weights=None):
    """Announce a route over one next hop for each wire. Returns (group id, ids)."""
    ids = [dut.zebra.hop(getattr(w, peer), w) for w in wires]
    group = dut.zebra.group(dict(zip(ids, weights or [1] * len(ids))))
    dut.route(net, nhid=group)
    return group, ids


@pytest.mark.parametrize("n", [2, 3])
def test_flows_spread_evenly(dut, lan, wan, alt, ext, case, n):
    """Many flows spread over the next hops in equal parts (RFC 2992)."""
    net, dst, peer = case
    outs = [wan, alt, ext][:n]
    group_route(dut, net, peer, outs)

    counts = Counter(spread(dut, lan, outs, flows(lan, dst, 1500)).values())

    assert all(abs(counts[w.name] / 1500 - 1 / n) < 0.06 for w in outs), counts


def test_destinations_spread_too(dut, lan, wan, alt):
    """The hash contains the addresses as well as the ports."""
    group_route(dut, NET, "peer4", [wan, alt])
    probes = [lan.probe(f"198.51.100.{n}") for n in range(256)]

    counts = Counter(spread(dut, lan, [wan, alt], probes).values())

    assert 80 < counts["wan"] < 176, counts


def test_one_flow_takes_one_path(dut, lan, wan, alt, ext, case):
    """All packets of one flow take one next hop, so that they stay in order (RFC 2991, 2)."""
    net, dst, peer = case
    group_route(dut, net, peer, [wan, alt, ext])

    for n in range(20):
        probes = [lan.probe(dst, sport=7000 + n, size=80 + 20 * k) for k in range(10)]
        assert len(set(spread(dut, lan, [wan, alt, ext], probes).values())) == 1


def test_fragments_of_one_datagram_take_one_path(dut, lan, wan, alt):
    """All fragments of one datagram take one next hop. Later fragments have no ports, so the hash
    must leave out the ports of the first, too. Many datagrams spread over both next hops."""
    group_route(dut, NET, "peer4", [wan, alt])
    paths = set()
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
        # The whole payload consists of tokens, so that every fragment holds the start of one.
        counts = tuple(len(w.got(token_of(pieces[0])[:6])) for w in (wan, alt))
        assert sorted(counts) == [0, len(pieces)], counts
        paths.add(counts[0] > 0)

    assert len(paths) == 2, "datagrams of many sources spread"


def test_a_lost_link_moves_its_flows_and_only_those(dut, lan, wan, alt, ext, case):
    """A lost link moves only its own flows, within 100 ms (median). The flows of other members stay on
    their member, and no packet is lost afterwards. When the link is back, only its share moves back."""
    net, dst, peer = case
    outs, medians = [wan, alt, ext], Medians(dut)
    group_route(dut, net, peer, outs)

    def paths():
        # The same flows with new tokens: the position identifies a flow.
        again = flows(lan, dst, 400)
        found = spread(dut, lan, outs, again)
        return [found[token_of(p)] for p in again]

    def lose():
        medians.until("a lost link", lambda: not dut.all_alive(net), lose_link(dut, wan))

    def regain():
        far_link(dut, wan, "up")
        eventually(lambda: dut.all_alive(net), 5, 0.01)

    before = paths()
    lose()
    during = paths()
    eventually(lambda: f"neigh: carrier down port={wan.tap}" in dut.daemon.log(100), 3)
    regain()
    after = paths()
    for _ in range(Medians.TIMES - 1):
        lose()
        regain()
    medians.are_in_time(IN_TIME_S)

    moved = [(b, d) for b, d in zip(before, during) if b != d]
    assert {b for b, _ in moved} == {"wan"} and "wan" not in during
    assert min(Counter(d for _, d in moved).values()) > len(moved) * 0.25, "both share"
    back = [(d, a) for d, a in zip(during, after) if d != a]
    assert {a for _, a in back} == {"wan"}
    assert abs(len(back) - len(moved)) < 60, "only the share of wan moves back"


def far_link(dut, wire, state):
    """Set the far end of a port up or down."""
    netns.link_set(dut.far, wire.name, state == "up")


def link(dut, wire):
    """Return the link state of a port as the daemon shows it."""
    return dut.port_row(wire)["link"]


def test_traffic_after_a_link_loss_is_not_lost(dut, lan, wan, alt, case):
    """Every packet that is sent later than 100 ms after a link loss arrives (median of three)."""
    net, dst, peer = case
    group_route(dut, net, peer, [wan, alt])
    medians, down, spans = Medians(dut), set(), []

    with dut.stream(lan, dst, rate=1000, flows=50) as stream:
        for _ in range(3):
            began = time.monotonic()
            dut.fence(lan)  # the forwarder has judged all earlier packets
            moved = medians.until("a lost link", lambda: not dut.all_alive(net), lose_link(dut, wan))
            spans.append((began, moved))
            first = stream.sent + 1  # the stream may have sent the next packet already
            eventually(lambda first=first: stream.sent > first + 800)
            down.update(range(first, stream.sent))
            dut.fence(lan)  # the forwarder has judged these packets
            far_link(dut, wan, "up")
            eventually(lambda: link(dut, wan) == "up" and dut.all_alive(net), 5, 0.01)
            sent = stream.sent
            eventually(lambda sent=sent: stream.sent > sent + 500)

    assert outside([stream.time_of(n) for n in stream.lost(wan, alt)], spans) == []
    medians.are_in_time(IN_TIME_S)
    # No packet waited in the queue of the dead port until the port came back.
    assert [n for n in stream.arrived(wan) if n in down] == []


def test_a_group_that_loses_a_member_by_message_is_resilient(dut, lan, wan, alt, ext):
    """When zebra takes a member out of its group, only the flows of this member move."""
    group, ids = group_route(dut, NET, "peer4", [wan, alt, ext])

    def paths():
        again = flows(lan, HOST, 300)
        found = spread(dut, lan, [wan, alt, ext], again)
        return [found[token_of(p)] for p in again]

    before = paths()
    dut.zebra.group(ids[1:], nhid=group)
    eventually(lambda: len(dut.route_row(NET)["nexthops"]) == 2)
    during = paths()
    dut.zebra.group(ids, nhid=group)
    eventually(lambda: len(dut.route_row(NET)["nexthops"]) == 3)
    after = paths()

    assert {b for b, d in zip(before, during) if b != d} == {"wan"}
    assert {a for d, a in zip(during, after) if a != d} == {"wan"}


def test_a_failed_neighbor_moves_its_flows(dut, lan, wan, alt, given_up_soon):
    """A member whose gateway does not answer gets no flows."""
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
    """A packet whose route has no member left gets destination unreachable, and the drop counts as
    egress down (RFC 1812, 5.2.7.1)."""
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


GATEWAY = "192.0.2.99"  # on wan; only this test uses it


def carrier(dut, wan, dead):
    """Set the far end of the port down, or up again."""
    far_link(dut, wan, "down" if dead else "up")


def admin(dut, wan, dead):
    """Set the interface down, or up again. The kernel forgets the neighbors of an interface that is
    down."""
    dut.ip(f"link set {wan.tap} {'down' if dead else 'up'}")
    if not dead:
        dut.neighbor(GATEWAY, wan)


def neighbor(dut, wan, dead):
    """Set the neighbor entry of the gateway to failed, as for a gateway that no longer answers."""
    if dead:
        dut.ip(f"neigh replace {GATEWAY} dev {wan.tap} nud failed")
    else:
        dut.neighbor(GATEWAY, wan)


def address(dut, wan, dead):
    """Announce the id of the member again, first by an interface that does not exist, then by the
    right one. zebra 8.4 does not announce the group again (doc/fpm.md, rule 8)."""
    oif = 4711 if dead else dut.ifindex(wan)
    dut.zebra.hop(GATEWAY, nhid=881, oif=oif)


@pytest.mark.parametrize("cause", [carrier, admin, neighbor, address])
def test_a_member_is_dead_by_any_cause_and_comes_back(dut, lan, wan, alt, ext, cause):
    """A member leaves its group at once, without a message of zebra, when its port has no carrier
    or is admin-down, its neighbor has failed or its interface is missing. It comes back when the
    cause ends. The flows of the other members stay on their member."""
    dut.neighbor(GATEWAY, wan)
    dut.zebra.hop(GATEWAY, wan, nhid=881)
    ids = [881, dut.zebra.hop(alt.peer4, alt), dut.zebra.hop(ext.peer4, ext)]
    dut.route(NET, nhid=dut.zebra.group(ids))

    def paths():
        again = flows(lan, HOST, 300)
        found = spread(dut, lan, [wan, alt, ext], again)
        return [found[token_of(p)] for p in again]

    def alive():
        hops = dut.route_row(NET)["nexthops"]
        return {hop["via"]: hop["alive"] for hop in hops}[GATEWAY]

    before = paths()
    cause(dut, wan, dead=True)
    eventually(lambda: not alive(), 3, 0.005)
    during = paths()
    cause(dut, wan, dead=False)
    eventually(alive, 5, 0.005)
    after = paths()

    assert {b for b, d in zip(before, during) if b != d} == {"wan"} and "wan" not in during
    assert {a for d, a in zip(during, after) if a != d} == {"wan"}


@pytest.mark.smoke
def test_weights_have_sixteen_bits(dut, lan, wan, alt):
    """With weights of 16 bits (zebra --nexthop-weight-16-bit, 10.5), 16384 of 16384 + 49152 gets a
    quarter of the flows, and fpmctl shows the whole weights."""
    group_route(dut, NET, "peer4", [wan, alt], [16384, 49152])

    counts = Counter(spread(dut, lan, [wan, alt], flows(lan, HOST, 3000)).values())

    assert abs(counts["wan"] / 3000 - 0.25) < 0.03, counts
    weights = {hop["dev"]: hop["weight"] for hop in dut.route_row(NET)["nexthops"]}
    assert weights == {wan.tap: 16384, alt.tap: 49152}
