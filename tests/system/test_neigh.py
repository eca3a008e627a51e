# SPDX-License-Identifier: BSD-3-Clause
"""Neighbors: the kernel resolves them, the dataplane uses them, packets wait meanwhile."""

import time

import pytest
from scapy.layers.inet import ICMP
from scapy.layers.inet6 import ICMPv6DestUnreach
from scapy.layers.l2 import ARP, Ether

from gateways import HOST, HOST6, NET, NET6, case, solicit
from lib import netns
from lib.freeze import frozen
from lib.wait import eventually
from wire import token, token_of


pytestmark = pytest.mark.usefixtures("asked_often")


@pytest.mark.smoke
def test_an_unresolved_gateway_is_asked_for_and_the_first_packets_wait(
    dut, lan, wan, family
):
    """RFC 1122, 2.3.2.2 and RFC 4861, 7.2.2: at least one packet is kept and is sent when the
    neighbor answers. Packets that waited leave in order and before later packets."""
    gateway, prefix, dst = case(family, 70)
    dut.route(prefix, via=gateway, wire=wan)
    probes = [lan.probe(dst) for _ in range(5)]

    lan.send(*probes[:3])
    eventually(lambda: wan.solicitations(gateway), 3, 0.005, "a solicitation")
    wan.answer(gateway, "02:00:00:00:70:01")
    frames = wan.expect_many(lambda d: token_of(d) is not None, 3, 3)
    lan.send(*probes[3:])
    frames = wan.expect_many(lambda d: token_of(d) is not None, 5)

    assert [token_of(f) for f in frames] == [token_of(p) for p in probes]
    assert {Ether(f).dst for f in frames} == {"02:00:00:00:70:01"}


@pytest.mark.parametrize("kind", ["gateway", "host"])
def test_no_packet_overtakes_packets_that_waited(dut, lan, wan, family, kind):
    """RFC 4861, 7.2.2: packets that waited are sent when the neighbor answers. A packet that is
    received at that moment leaves after them. Twelve neighbors answer in the middle of a
    stream."""
    for number in range(100, 112):
        gateway, prefix, dst = case(family, number)
        if kind == "gateway":
            dut.route(prefix, via=gateway, wire=wan)
        else:
            dst = gateway
        mark, octets = token(), bytes(lan.probe(dst, size=90))
        at = octets.index(token_of(octets))
        frames = [
            octets[:at] + mark + n.to_bytes(4, "big") + octets[at + 14 :]
            for n in range(40)  # 12 times 40 is less than a source's share of the waiting packets
        ]

        lan.send(*frames[:5])
        wan.answer(gateway)
        lan.send(*frames[5:])
        eventually(lambda m=mark: len(wan.got(m)) >= len(frames), 3, 0.005, "all came")

        came = [int.from_bytes(d[d.index(mark) + 10 :][:4], "big") for d in wan.got(mark)]
        assert came == list(range(40))


def test_an_unresolved_host_on_the_link_is_asked_for(dut, lan, wan, family):
    """RFC 1812, 3.3.2: the kernel resolves each connected destination by itself."""
    host, _, _ = case(family, 71)
    wan.answer(host, "02:00:00:00:71:01")
    probe = lan.probe(host)

    out = dut.forwarded(lan, probe, wan, timeout=3)

    assert out.dst == "02:00:00:00:71:01"
    dut.fence(lan)  # the punt thread has released the packets that waited, and their places
    before = dut.counters()
    dut.forwarded(lan, lan.probe(host), wan)
    assert "unresolved" not in dut.moved(before, "punt")


def test_one_solicitation_at_a_time(dut, lan, wan, family):
    """RFC 1122, 2.3.2.1: at most one request a second is sent for one address, however many
    packets wait for it."""
    host, _, _ = case(family, 72)
    word = f"net.ipv{family}.neigh.{wan.tap}.retrans_time_ms"
    netns.sysctl(dut.ctl, {word: 1000})
    try:
        begin = time.monotonic()
        lan.send(*(lan.probe(host) for _ in range(100)))
        eventually(lambda: wan.solicitations(host), 3, 0.005, "a solicitation")
        dut.fence(lan)

        assert len(wan.solicitations(host)) <= 2 + int(time.monotonic() - begin)
    finally:
        netns.sysctl(dut.ctl, {word: 200})
        wan.answer(host)  # or the next test waits for the packets that wait here


def test_failure_is_told_to_the_sources(dut, lan, wan, family, given_up_soon):
    """RFC 1812, 4.3.3.1 and RFC 4443, 3.1: senders get host or address unreachable when no
    neighbor answers."""
    host, _, _ = case(family, 73)
    before = dut.counters()

    reply = lan.srp1(lan.probe(host), timeout=8)

    layer = reply[ICMP] if ICMP in reply else reply[ICMPv6DestUnreach]
    assert (layer.type, layer.code) == ((3, 1) if family == 4 else (1, 3))
    assert dut.drops(before) == {"neigh_failed": 1}


def test_what_waits_goes_by_the_route_that_it_has_then(dut, lan, wan, alt, family):
    """RFC 1812, 5.2.7.1: two packets wait for a gateway. Meanwhile the route of the first
    packet is withdrawn, and the route of the second leads elsewhere. When the gateway answers,
    the first packet is unreachable (its sender gets an error, the drop has its reason) and the second
    is forwarded."""
    gateway, prefix, dst = case(family, 85)
    far, at = {
        4: ("203.0.113.0/24", "203.0.113.9"),
        6: ("2001:db8:e000::/36", "2001:db8:e000::9"),
    }[family]
    dut.route(prefix, via=gateway, wire=wan)
    dut.route(far, via=gateway, wire=wan)
    gone, moved = lan.probe(dst), lan.probe(at)
    lan.send(gone, moved)
    eventually(lambda: wan.solicitations(gateway), 3, 0.005, "a solicitation")
    before = dut.counters()

    dut.zebra.drop(prefix)
    dut.route(far, via=alt.peer(family), wire=alt)
    eventually(lambda: dut.route_row(prefix) is None, 3, 0.005)
    wan.answer(gateway, "02:00:00:00:85:01")

    reply = lan.expect(token_of(gone), 5)
    layer = reply[ICMP] if ICMP in reply else reply[ICMPv6DestUnreach]
    assert (layer.type, layer.code) == ((3, 0) if family == 4 else (1, 0))
    assert alt.expect(token_of(moved)).dst == alt.mac
    assert dut.drops(before) == {"no_route": 1}
    assert wan.got(token_of(gone)) == wan.got(token_of(moved)) == []


def test_what_waits_in_vain_goes_by_a_route_that_came_meanwhile(
    dut, lan, wan, alt, family
):
    """RFC 1812, 5.2.4: a destination is unreachable only if no route leads to it. Packets leave
    a gateway that does not answer when zebra sends a route by another one. All packets that
    waited are sent or answered with an error; no buffer is kept."""
    gateway, prefix, dst = case(family, 86)
    other, _, _ = case(family, 87)
    in_use = _buffers(dut)
    dut.route(prefix, via=gateway, wire=wan)
    eventually(lambda: wan.solicitations(gateway), 3, 0.005, "a solicitation")
    probe, *vain = lan.probe(dst), *(lan.probe(other) for _ in range(20))
    lan.send(probe, *vain)
    dut.fence(lan)
    before = dut.counters()
    assert _buffers(dut) >= in_use + 21

    dut.route(prefix, via=alt.peer(family), wire=alt)
    solicit(dut, mcast_solicit=3)  # not earlier: all packets must wait when the route comes
    try:
        assert alt.expect(token_of(probe), 8).dst == alt.mac
        lan.expect(token_of(vain[-1]), 8)
    finally:
        solicit(dut, mcast_solicit=50)
    assert dut.drops(before) == {"neigh_failed": 20}
    eventually(lambda: _buffers(dut) <= in_use, 3, 0.01, "packet buffers come back")


def _buffers(dut):
    """Return the number of packet buffers in use."""
    row = dut.control.ask("memory")[0]
    return row["packet_buffers"] - row["packet_buffers_free"]


@pytest.mark.parametrize("mac", ["01:00:5e:00:00:09", "ff:ff:ff:ff:ff:ff", "00:" * 5 + "00"])
def test_a_multicast_broadcast_or_zero_mac_is_not_learned(dut, lan, wan, mac):
    """RFC 1812, 3.3.2: a router does not believe ARP that gives a unicast address a multicast,
    broadcast or zero MAC address. Linux believes it, so the dataplane must not."""
    host = {"01": "192.0.2.89", "ff": "192.0.2.90", "00": "192.0.2.91"}[mac[:2]]
    arp = ARP(op=1, hwsrc=mac, psrc=host, pdst=wan.ip4)
    wan.send(Ether(src="02:00:00:00:89:01", dst="ff:ff:ff:ff:ff:ff") / arp)
    eventually(lambda: dut.neighbor_row(host, wan)["mac"] == mac, 3, 0.005)
    before = dut.counters()

    dut.not_forwarded(lan, lan.probe(host))

    assert dut.moved(before, "punt")["unresolved"] == 1
    dut.neighbor(host, wan)  # or the next test waits for the packets that wait here


def test_a_gateway_that_the_kernel_does_not_ask_for_is_told_of_once(dut, lan, wan):
    """IPv6 is off on the egress interface (as with an MTU below 1280; RFC 8200, 5): packets do
    not wait in vain, and their senders get the error of Linux, which has no route by this interface.
    The log names the gateway and the reason, but not every second; the test looks at two seconds."""
    gateway, prefix, dst = case(6, 88)
    netns.sysctl(dut.ctl, {f"net.ipv6.conf.{wan.tap}.disable_ipv6": 1})
    try:
        dut.route(prefix, via=gateway, wire=wan)
        line = f"refuses to resolve address={gateway} dev={wan.tap} error=\"Invalid argument"
        eventually(lambda: line in dut.log(), 5, 0.02)
        before = dut.counters()

        reply = lan.srp1(lan.probe(dst))
        with dut.stream(lan, dst, rate=50) as stream:
            eventually(lambda: stream.sent > 110, 10)

        assert reply[ICMPv6DestUnreach].code == 0
        failed = {"ipv6_off": stream.sent + 1}
        eventually(lambda: dut.drops(before) == failed, 3, 0.005, f"drops are {failed}")
        assert dut.log().count(line) == 1
    finally:
        netns.sysctl(dut.ctl, {f"net.ipv6.conf.{wan.tap}.disable_ipv6": 0})


def test_a_failed_neighbor_that_comes_back_is_found(dut, lan, wan, family, given_up_soon):
    """RFC 4861, 7.3.3: a failed neighbor does not stay failed; the next packet makes the kernel
    ask again."""
    host, _, _ = case(family, 74)
    lan.srp1(lan.probe(host), timeout=8)
    wan.answer(host, "02:00:00:00:74:01")

    def comes():
        probe = lan.probe(host)
        lan.send(probe)
        return wan.expect(token_of(probe), 0.3)

    assert eventually(comes, 10, what="traffic to the host that came back").dst


def test_what_waits_is_bounded(dut, lan, wan, family):
    """RFC 1812, 3.3.2: the queue for an unresolved neighbor is small. Packets beyond it are
    counted."""
    host, _, _ = case(family, 75)
    before = dut.counters()

    lan.send(*(lan.probe(host) for _ in range(200)))
    dut.fence(lan)
    full = dut.drops(before).get("hold_full", 0)
    wan.answer(host, "02:00:00:00:75:01")
    wan.expect_many(lambda d: token_of(d) is not None, 200 - full, 5)
    dut.fence(lan)

    assert 100 < full < 200
    assert len(wan.got(lambda d: token_of(d) is not None)) == 200 - full


@pytest.mark.smoke
def test_a_changed_mac_is_used_at_once(dut, lan, wan, family):
    """RFC 4861, 7.2.5 and RFC 826: when the neighbor cache changes, forwarders use the new MAC
    at once."""
    gateway, prefix, dst = case(family, 76)
    dut.neighbor(gateway, wan, "02:00:00:00:76:01")
    dut.route(prefix, via=gateway, wire=wan)
    assert dut.forwarded(lan, lan.probe(dst), wan).dst == "02:00:00:00:76:01"

    dut.neighbor(gateway, wan, "02:00:00:00:76:02")

    assert dut.forwarded(lan, lan.probe(dst), wan).dst == "02:00:00:00:76:02"


def test_no_packet_is_lost_while_the_mac_changes(dut, lan, wan, family):
    """Forwarders see an adjacency with the old MAC or with the new one, never a mix."""
    gateway, prefix, dst = case(family, 77)
    macs = ["02:00:00:00:77:01", "02:00:00:00:77:02"]
    dut.neighbor(gateway, wan, macs[0])
    dut.route(prefix, via=gateway, wire=wan)

    with dut.stream(lan, dst) as stream:
        for n in range(20):
            dut.neighbor(gateway, wan, macs[n % 2])
            eventually(lambda n=n: len(wan.got(stream.mark)) > 5 * n, 5, 0.005)

    assert stream.lost(wan) == []
    assert {Ether(d).dst for d in wan.got(stream.mark)} == set(macs)


def test_a_new_next_hop_whose_mac_is_known_is_used_without_asking(dut, lan, wan, family):
    """A route moves to a gateway that no route used before and that the kernel has resolved.
    The forwarders have its MAC before they have the route, so no packet waits or is lost."""
    gateways = [case(family, 80 + n)[0] for n in range(10)]
    _, prefix, dst = case(family, 80)
    for n, gateway in enumerate(gateways):
        dut.neighbor(gateway, wan, f"02:00:00:00:80:{n:02x}")
    dut.route(prefix, via=gateways[0], wire=wan)
    before = dut.counters()

    with dut.stream(lan, dst) as stream:
        for n, gateway in enumerate(gateways):
            dut.route(prefix, via=gateway, wire=wan)
            eventually(lambda n=n: n in {d[5] for d in wan.got(stream.mark)}, 5, 0.005)

    assert stream.lost(wan) == []
    assert "unresolved" not in dut.moved(before, "punt")


def test_a_gratuitous_arp_moves_the_traffic(dut, lan, wan):
    """RFC 5227, 3 with RFC 826: an announcement changes the MAC of a known address."""
    gateway = "192.0.2.78"
    wan.answer(gateway, "02:00:00:00:78:01")
    dut.route(NET, via=gateway, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan, timeout=3)
    # The kernel accepts a change only if the entry is older than a second (locktime).
    dut.ip(f"neigh replace {gateway} lladdr 02:00:00:00:78:01 dev {wan.tap} nud stale")
    wan.answer(gateway, "02:00:00:00:78:02")
    arp = ARP(
        op=2, hwsrc="02:00:00:00:78:02", psrc=gateway, hwdst=wan.port_mac, pdst=wan.ip4
    )

    def moved():
        wan.send(Ether(src="02:00:00:00:78:02", dst="ff:ff:ff:ff:ff:ff") / arp)
        row = dut.neighbor_row(gateway, wan)
        return row["mac"] == "02:00:00:00:78:02"

    eventually(moved, 5, 0.1, "the announcement is believed")
    assert dut.forwarded(lan, lan.probe(HOST), wan).dst == "02:00:00:00:78:02"


def test_a_stale_neighbor_keeps_forwarding(dut, lan, wan, family):
    """RFC 4861, 7.3.3: a neighbor in the state STALE is not confirmed, but is used."""
    gateway, prefix, dst = case(family, 79)
    wan.answer(gateway, "02:00:00:00:79:01")
    dut.ip(f"neigh replace {gateway} lladdr 02:00:00:00:79:01 dev {wan.tap} nud stale")
    dut.route(prefix, via=gateway, wire=wan)

    with dut.stream(lan, dst, rate=300) as stream:
        eventually(lambda: stream.sent > 300)

    assert stream.lost(wan) == []


def test_a_static_neighbor_is_never_overwritten(dut, lan, wan, family):
    """Traffic and resolution do not change a permanent entry, which belongs to the operator."""
    gateway, prefix, dst = case(family, 80)
    dut.neighbor(gateway, wan, "02:00:00:00:80:01")
    wan.answer(gateway, "02:00:00:00:80:02")
    dut.route(prefix, via=gateway, wire=wan)

    for _ in range(20):
        assert dut.forwarded(lan, lan.probe(dst), wan).dst == "02:00:00:00:80:01"
    assert wan.solicitations(gateway) == []


def test_a_deleted_neighbor_is_resolved_again(dut, lan, wan, family):
    """The kernel's cache decides: the kernel resolves a deleted entry again."""
    gateway, prefix, dst = case(family, 81)
    dut.neighbor(gateway, wan, "02:00:00:00:81:01")
    dut.route(prefix, via=gateway, wire=wan)
    dut.forwarded(lan, lan.probe(dst), wan)
    wan.answer(gateway, "02:00:00:00:81:02")

    dut.ip(f"neigh del {gateway} dev {wan.tap}")

    def new_mac():
        return dut.forwarded(lan, lan.probe(dst), wan).dst == "02:00:00:00:81:02"

    eventually(new_mac, 5, what="resolved again")


def test_a_question_that_is_thrown_away_is_asked_again(dut, lan, wan, family):
    """`ip neigh flush` deletes a neighbor that the kernel is asking for. The kernel reports a
    failure before it reports the deletion. The daemon must not count the neighbor as failed,
    because its time to answer is not over."""
    gateway, prefix, dst = case(family, 46)
    dut.route(prefix, via=gateway, wire=wan)
    before = dut.counters()

    probe = lan.probe(dst)
    lan.send(probe)
    eventually(lambda: dut.neighbor_row(gateway, wan)["state"] == "incomplete", 3, 0.005)
    netns.command(["ip", "-n", dut.ctl, "neigh", "del", gateway, "dev", wan.tap])
    wan.answer(gateway, "02:00:00:00:46:00")

    wan.expect(token_of(probe), 3)
    assert dut.drops(before) == {}


def test_an_answer_that_is_thrown_away_is_waited_for_again(dut, lan, wan, family):
    """`ip neigh flush` works in rounds and deletes a neighbor that has just answered. The punt
    thread reads the answer when the entry is already deleted."""
    gateway, prefix, dst = case(family, 47)
    dut.route(prefix, via=gateway, wire=wan)
    before = dut.counters()
    entry = [gateway, "dev", wan.tap]

    probe = lan.probe(dst)
    lan.send(probe)
    eventually(lambda: dut.moved(before, "punt").get("unresolved") == 1, 3, 0.005)
    eventually(lambda: dut.neighbor_row(gateway, wan)["state"] == "incomplete", 3, 0.005)
    with frozen(dut.daemon.pid(), "fdp-punt"):
        netns.command(["ip", "-n", dut.ctl, "neigh", "replace", *entry,
                       "lladdr", "02:00:00:00:47:00", "nud", "reachable"])  # fmt: skip
        eventually(lambda: dut.neighbor_row(gateway, wan)["state"] == "reachable", 3, 0.005)
        netns.command(["ip", "-n", dut.ctl, "neigh", "del", *entry])
        eventually(lambda: dut.neighbor_row(gateway, wan)["state"] != "reachable", 3, 0.005)
    wan.answer(gateway, "02:00:00:00:47:00")

    wan.expect(token_of(probe), 3)
    assert dut.drops(before) == {}
    # A packet is counted when it leaves, because its egress is known only then.
    eventually(lambda: dut.moved(before, "total").get("held") == 1, 3, 0.005)


def test_a_gateway_is_resolved_before_there_is_traffic(dut, wan, family):
    """The kernel resolves the next hops of routes before the first packet."""
    gateway, prefix, _ = case(family, 82)
    wan.answer(gateway, "02:00:00:00:82:01")

    dut.route(prefix, via=gateway, wire=wan)

    eventually(lambda: dut.neighbor_row(gateway, wan)["mac"], 5, what="asked for ahead")


def test_two_routes_share_the_wait(dut, lan, wan, family):
    """Packets of many flows wait for one neighbor together and leave together."""
    gateway, prefix, dst = case(family, 83)
    dut.route(prefix, via=gateway, wire=wan)
    probes = [lan.probe(dst, sport=5000 + n) for n in range(4)]

    lan.send(*probes)
    eventually(lambda: wan.solicitations(gateway), 3, 0.005)
    wan.answer(gateway, "02:00:00:00:83:01")

    for probe in probes:
        wan.expect(token_of(probe), 3)


def test_ttl_is_spent_once_by_a_packet_that_waited(dut, lan, wan, family):
    """RFC 1812, 5.3.1: the TTL of a packet that waited is decremented once."""
    host, _, _ = case(family, 84)
    wan.answer(host, "02:00:00:00:84:01")
    field = "ttl" if family == 4 else "hlim"

    out = dut.forwarded(lan, lan.probe(host, **{field: 9}), wan, timeout=3)

    assert getattr(out.payload, field) == 8
    assert (out.src, out.dst) == (wan.port_mac, "02:00:00:00:84:01")


def test_a_scan_of_a_subnet_leaves_the_gateway_alone(dut, lan, wan, alt):
    """A scan of hundreds of hosts that do not answer neither stops traffic to known neighbors
    nor leaves entries forever. The test uses fewer hosts than the kernel's table has room for
    (1024 in all namespaces), because other tests run beside it."""
    dut.route(NET6, via=alt.peer6, wire=alt)

    with dut.stream(lan, HOST6) as stream:
        for n in range(400):
            lan.send(bytes(lan.probe(f"2001:db8:1::a:{n:x}")))

    assert stream.lost(alt) == []
    assert dut.fpm()["connected"]
