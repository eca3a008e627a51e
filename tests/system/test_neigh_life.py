# SPDX-License-Identifier: BSD-3-Clause
"""Neighbors over time: the kernel keeps those in use, detects dead ones, and resolves neighbors
again after a link flap or a scan."""

import itertools
import socket
import threading
import time

import pytest
from scapy.layers.inet import ICMP
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

from gateways import HOST, HOST6, NET, NET6, case, solicit
from lib import neigh_limits, netns
from lib.built import sanitized
from lib.wait import LONG, eventually
from router import Router, running
from wire import token_of

USABLE = {"reachable", "stale", "delay", "probe"}


pytestmark = pytest.mark.usefixtures("asked_often")


@pytest.fixture
def fast_time(dut):
    """Make neighbors of wan stale after a second instead of half a minute. The kernel asks them
    ten times a second and gives up after three seconds, because this process answers in their
    place and may have to wait for a CPU."""
    solicit(dut, retrans_time_ms=100, ucast_solicit=30)
    solicit(dut, base_reachable_time_ms=600, delay_first_probe_time=1)
    yield
    solicit(dut, base_reachable_time_ms=30000, delay_first_probe_time=5)
    solicit(dut, retrans_time_ms=200, ucast_solicit=3, mcast_solicit=50)


def test_neighbors_in_use_are_kept_and_missed_when_they_die(dut, lan, wan, fast_time):
    """RFC 4861, 7.3.3 and RFC 1122, 2.3.2.1: the kernel does not see the forwarded traffic, but
    asks the neighbors in use by unicast again and again. No packet is lost meanwhile. A
    neighbor that no longer answers is detected, and senders get an error. One test has
    gateways, a host on the link and both families, because it takes long."""
    life = {}
    for family in (4, 6):
        gateway, prefix, dst = case(family, 120)
        host = case(family, 121)[0]
        wan.answer(gateway, "02:00:00:00:12:00")
        wan.answer(host, "02:00:00:00:12:01")
        dut.route(prefix, via=gateway, wire=wan)
        for address, at in ((gateway, dst), (host, host)):
            dut.forwarded(lan, lan.probe(at), wan, timeout=3)
            life[address] = at
    seen = set()

    def unicast(address):
        def asks(data):
            v4 = data[12:14] == b"\x08\x06" and data[38:42] == packed
            v6 = (
                data[12:14] == b"\x86\xdd"
                and data[54:55] == b"\x87"
                and data[62:78] == packed
            )
            return (v4 or v6) and not data[0] & 1

        packed = socket.inet_pton(
            socket.AF_INET6 if ":" in address else socket.AF_INET, address
        )
        return len(wan.got(asks))

    def asked_twice():
        seen.update(row["state"] for row in map(lambda a: dut.neighbor_row(a, wan), life))
        return all(unicast(address) >= 2 for address in life)

    with dut.stream(lan, list(life.values()), rate=400) as stream:
        eventually(asked_twice, 25, 0.1, "every neighbor is asked twice")

    assert stream.lost(wan) == []
    assert seen <= USABLE, "never unknown, never failed"
    wan.silence()
    solicit(dut, ucast_solicit=3, mcast_solicit=3)
    for address, at in life.items():

        def told(at=at):
            reply = lan.srp1(lan.probe(at), 1)
            return ICMP in reply or ICMPv6DestUnreach in reply

        eventually(told, 20, 0.05, f"{address} is missed")


def test_every_source_is_told_of_a_failure(dut, lan, wan, alt, family):
    """RFC 1812, 5.2.7.1: each held packet is answered to its own source and freed."""
    host, _, _ = case(family, 122)
    before = dut.counters()
    probes = [(w, w.probe(host)) for w in (lan, alt, lan, alt, lan)]

    for wire, probe in probes:
        wire.send(probe)
    for wire in (lan, alt):
        dut.fence(wire)
    solicit(dut, mcast_solicit=3)  # not earlier: all five packets must wait
    try:
        replies = [wire.expect(token_of(probe), 8) for wire, probe in probes]
    finally:
        solicit(dut, mcast_solicit=50)

    for (wire, _), reply in zip(probes, replies):
        ends = (reply.payload.src, reply.payload.dst)
        assert ends == (wire.own(family), wire.peer(family))
    assert dut.drops(before) == {"neigh_failed": 5}


def test_a_neighbor_that_asked_us_is_known(dut, lan, wan):
    """RFC 826: the kernel learns the neighbor from its own request; packets to it do not
    wait."""
    arp = ARP(op=1, hwsrc="02:00:00:00:12:03", psrc="192.0.2.123", pdst=wan.ip4)
    wan.send(Ether(src="02:00:00:00:12:03", dst="ff:ff:ff:ff:ff:ff") / arp)
    eventually(lambda: dut.neighbor_row("192.0.2.123", wan), 3, 0.005)
    before = dut.counters()

    out = dut.forwarded(lan, lan.probe("192.0.2.123"), wan)

    assert out.dst == "02:00:00:00:12:03"
    assert "unresolved" not in dut.moved(before, "punt")


@pytest.mark.parametrize("flag", ["extern_learn", "managed"])
def test_a_failed_neighbor_of_another_program_is_asked_again(dut, lan, wan, family, flag):
    """As in Linux, a packet lets the kernel ask again for a failed neighbor that is externally learned or
    managed. The entry keeps its flag."""
    host = case(family, 76)[0]
    wan.answer(host)
    dut.ip(f"neigh replace {host} dev {wan.tap} nud failed {flag}")

    dut.forwarded(lan, lan.probe(host), wan, timeout=3)

    assert flag in netns.command(["ip", "neigh", "show", host, "dev", wan.tap], name=dut.ctl)
    dut.ip(f"neigh del {host} dev {wan.tap}")


def test_an_unsolicited_advertisement_moves_the_traffic(dut, lan, wan):
    """RFC 4861, 7.2.5: an advertisement with the override flag replaces the cached address."""
    gateway = "2001:db8:1::124"
    wan.answer(gateway, "02:00:00:00:12:04")
    dut.route(NET6, via=gateway, wire=wan)
    dut.forwarded(lan, lan.probe(HOST6), wan, timeout=3)
    wan.answer(gateway, "02:00:00:00:12:14")

    na = ICMPv6ND_NA(tgt=gateway, O=1, S=0) / ICMPv6NDOptDstLLAddr(
        lladdr="02:00:00:00:12:14"
    )
    ip = IPv6(src=gateway, dst="ff02::1", hlim=255)
    wan.send(Ether(src="02:00:00:00:12:14", dst="33:33:00:00:00:01") / ip / na)

    eventually(
        lambda: dut.neighbor_row(gateway, wan)["mac"] == "02:00:00:00:12:14", 3, 0.005
    )
    assert dut.forwarded(lan, lan.probe(HOST6), wan).dst == "02:00:00:00:12:14"


GATEWAYS = {
    "over an IPv6 next hop": "fe80::125",
    "on-link": "169.254.0.1",
}


@pytest.mark.parametrize("name", GATEWAYS)
def test_ipv4_waits_for_a_gateway(dut, lan, wan, name):
    """RFC 8950, and 169.254.0.1 as FRR up to 10.5 sends it: IPv4 packets wait for a gateway
    that is not resolved. The kernel resolves it by the gateway's own protocol. The packets
    leave in order as IPv4."""
    gateway = GATEWAYS[name]
    wan.silence()
    dut.route(NET, nhid=dut.zebra.hop(gateway, wan, onlink=True))
    probes = [lan.probe(HOST) for _ in range(5)]

    lan.send(*probes)
    eventually(lambda: wan.solicitations(gateway), 3, 0.005, "a solicitation")
    wan.answer(gateway, "02:00:00:00:12:05")

    frames = wan.expect_many(lambda d: token_of(d) is not None, 5, 4)
    assert [token_of(f) for f in frames] == [token_of(p) for p in probes]
    assert {(Ether(f).dst, Ether(f).type) for f in frames} == {("02:00:00:00:12:05", 0x800)}


@pytest.mark.smoke
def test_a_slash_31_neighbor_is_resolved(dut, lan, wan):
    """RFC 3021, 2.2.1: both addresses of a /31 are hosts; the kernel resolves the other one."""
    dut.ip("addr add 203.0.113.1/31 dev wan0")
    wan.answer("203.0.113.0", "02:00:00:00:12:06")
    eventually(lambda: dut.route_row("203.0.113.0/31"), 3, 0.005)

    assert dut.forwarded(lan, lan.probe("203.0.113.0"), wan, 4).dst == "02:00:00:00:12:06"


def test_a_link_that_flaps_resolves_again(dut, lan, wan, family):
    """After RFC 4861, 7.3.3: a link that was down may lead to another network. The neighbors
    are forgotten and resolved again when the link is up, and traffic flows without help."""
    gateway, prefix, dst = case(family, 126)
    wan.answer(gateway, "02:00:00:00:12:07")
    dut.route(prefix, via=gateway, wire=wan)
    dut.forwarded(lan, lan.probe(dst), wan, timeout=3)

    netns.ip_batch([f"link set {wan.name} down"], dut.far)
    eventually(lambda: dut.port_row(wan)["link"] == "down", 3, 0.005)
    eventually(lambda: not dut.neighbor_row(gateway, wan)["mac"], 3, 0.005, "MAC forgotten")
    eventually(lambda: dut.route_row(prefix)["state"] == "down", 3, 0.005)
    assert dut.not_forwarded(lan, lan.probe(dst)) == {"egress_down": 1}
    wan.answer(gateway, "02:00:00:00:12:17")
    netns.ip_batch([f"link set {wan.name} up"], dut.far)

    def passes():
        lan.send(probe := lan.probe(dst))
        return wan.expect(token_of(probe), 0.05).dst == "02:00:00:00:12:17"

    eventually(passes, 5, 0.01)


# -- scans --


class Talk(threading.Thread):
    """Send packets from the router to a neighbor, as a BGP session does."""

    def __init__(self, dut, address):
        super().__init__(daemon=True, name="talk")
        self.sock = netns.open_socket(dut.ctl, 10 if ":" in address else 2, 2)
        self.address, self.ending, self.sent = address, threading.Event(), 0

    def run(self):
        while not self.ending.wait(0.005):
            try:
                self.sock.sendto(b"talk%08d" % self.sent, (self.address, 179))
                self.sent += 1
            except OSError:
                pass  # no room in the kernel's table now

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.ending.set()
        self.join()
        self.sock.close()


@pytest.fixture(scope="module")
def scanned(possible):
    """Start a router of its own, because a scan leaves the kernel's table full for a while. The table
    has the size that Linux gives it."""
    with neigh_limits.limits(*neigh_limits.LINUX), running(Router(name="scan")) as router:
        yield router


SCANNED = 64_500 if LONG else 13_000  # addresses of a /16 (IPv4) or of a /64 (IPv6)
GROWN_MAX = (16 if LONG else 4) << 20


def scan_frames(lan, family):
    """Return frames to SCANNED addresses of a /16 or of a /64 on wan. No host has any of
    them."""
    if family == 6:
        head = bytearray(bytes(lan.probe("2001:db8:1::aaaa:0")))
        for n in range(1, 1 + SCANNED):
            head[52:54] = n.to_bytes(2, "big")
            yield bytes(head)
        return
    head = bytearray(bytes(lan.probe("198.18.0.0", id=0)))
    for n in range(1000, 1000 + SCANNED):
        head[32:34] = n.to_bytes(2, "big")
        # The identification balances the address, so the checksum stays the same.
        head[18:20] = (0xFFFF - n).to_bytes(2, "big")
        yield bytes(head)


def test_a_scan_leaves_gateways_alone_and_memory_bounded(scanned, family):
    """RFC 1812, 3.3.2 and RFC 6583, 6.2: a scan sends packets to SCANNED addresses, thirteen
    times the size of the kernel's table (a whole /16 with FDP_LONG). A gateway that ARP or ND
    has resolved forwards every transit packet. The router's own traffic with it continues. A
    new gateway is resolved during the scan. Neither the table of neighbors nor memory grows
    with the scan."""
    dut = scanned
    dut.ready()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    gateway, prefix, dst = case(family, 70)
    other, _, _ = case(family, 71)
    wan.answer(gateway, "02:00:00:00:70:01")
    wan.answer(other, "02:00:00:00:71:01")
    if family == 4:
        dut.ip("addr add 198.18.0.1/16 dev wan0")
        eventually(lambda: dut.route_row("198.18.0.0/16"), 3, 0.005)
    dut.route(prefix, via=gateway, wire=wan)
    dut.forwarded(lan, lan.probe(dst), wan, timeout=3)
    memory = dut.rss()
    before = dut.counters()
    frames, sent = scan_frames(lan, family), 0

    with dut.stream(lan, dst, rate=500) as stream, Talk(dut, gateway) as talk:
        for n in itertools.count():
            some = list(itertools.islice(frames, 200))
            if not some:
                break
            lan.send(*some)
            sent += len(some)
            dut.fence(lan)
            if n == 30:
                far = "203.0.113.0/24" if family == 4 else "2001:db8:e000::/36"
                dut.route(far, via=other, wire=wan)
        eventually(lambda: talk.sent > 40, 5, 0.01, "the router talks")
        begin = time.monotonic()
        at = "203.0.113.9" if family == 4 else "2001:db8:e000::9"
        out = dut.forwarded(lan, lan.probe(at), wan, timeout=3)
        waited = time.monotonic() - begin

    assert stream.lost(wan) == []
    assert out.dst == "02:00:00:00:71:01" and waited < 3
    heard = len(wan.got(b"talk"))
    assert heard > 0.95 * talk.sent > 20, "the kernel reaches the gateway all the time"
    rows = dut.control.ask("neighbors")
    assert len(rows) < 4096, "the kernel's table has at most gc_thresh3 entries"
    assert next(r for r in rows if r["address"] == gateway)["mac"] == "02:00:00:00:70:01"
    grown = dut.rss() - memory
    print(f"{grown >> 10} KiB more")
    # A sanitizer does not return freed memory.
    assert sanitized(dut) or grown < GROWN_MAX, f"{grown} octets more"
    assert sum(dut.drops(before).values()) > 0.9 * sent


def test_a_scan_does_not_prevent_the_resolution_of_other_hosts(scanned, family):
    """RFC 6583, 7.1: packets ask for 1000 addresses a second that no host has. Hosts in use
    lose no packet, although the kernel deletes their entries. New hosts are resolved, and their
    first packet is not lost."""
    dut = scanned
    dut.ready()
    lan, wan, alt = (dut.wires[name] for name in ("lan", "wan", "alt"))
    known = [case(family, number)[0] for number in range(80, 90)]
    fresh = [case(family, number)[0] for number in range(90, 120 if LONG else 102)]
    for host in [*known, *fresh]:
        wan.answer(host)
    if family == 4:
        dut.ip("addr add 198.18.0.1/16 dev wan0")
        eventually(lambda: dut.route_row("198.18.0.0/16"), 3, 0.005)
    for host in known:
        dut.forwarded(alt, alt.probe(host), wan, timeout=3)
    frames, probes, pace = scan_frames(lan, family), [], threading.Event()

    with dut.stream(alt, known, rate=200) as stream:
        for host in fresh:
            for _ in range(12):
                lan.send(*itertools.islice(frames, 20))
                pace.wait(0.02)
            alt.send(probe := alt.probe(host))
            probes.append(token_of(probe))
    assert stream.lost(wan) == []
    found = lambda: sum(bool(wan.got(mark)) for mark in probes)  # noqa: E731
    eventually(lambda: found() >= 0.9 * len(probes), 5, 0.05, "new hosts are resolved")
    print(f"{found()} of {len(probes)} were found")
