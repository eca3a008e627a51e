# SPDX-License-Identifier: BSD-3-Clause
"""A route whose way out is an interface of the kernel that is no port: the kernel forwards its
packets, as a Linux router does.

    lan, wan: wires    the router's TAPs    vk0 -- veth -- bk0: a namespace with a host
"""

import contextlib
import os
import socket
import threading

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6PacketTooBig
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from wire import Wire, token_of

OWN = {4: "10.77.0.1", 6: "2001:db8:77::1"}
HOST = {4: "10.77.0.2", 6: "2001:db8:77::2"}
LINK = {4: "10.77.0.0/24", 6: "2001:db8:77::/64"}
BEYOND = {4: "10.78.0.0/24", 6: "2001:db8:78::/64"}
FAR = {4: "10.78.0.9", 6: "2001:db8:78::9"}
DEV = "vk0"


class Behind:
    """A namespace with a host, at the other end of a veth of the control namespace."""

    def __init__(self, dut):
        self.dut, self.ns = dut, f"fdp-behind-{os.getpid()}"

    def build(self):
        netns.command(["ip", "netns", "add", self.ns])
        netns.sysctl(self.ns, {"net.ipv6.conf.default.accept_dad": 0})
        netns.ip_batch(["link set lo up"], self.ns)
        self.dut.ip(f"link add {DEV} type veth peer name bk0 netns {self.ns}",
                    f"link set {DEV} up",
                    f"addr add {OWN[4]}/24 dev {DEV}",
                    f"addr add {OWN[6]}/64 dev {DEV} nodad")  # fmt: skip
        lines = ["link set bk0 up", f"addr add {HOST[4]}/24 dev bk0",
                 f"addr add {HOST[6]}/64 dev bk0 nodad",
                 f"route add default via {OWN[4]}", f"route add default via {OWN[6]}"]  # fmt: skip
        for family in (4, 6):
            lines.append(f"addr add {FAR[family]}/{32 if family == 4 else 128} dev lo")
        netns.ip_batch(lines, self.ns)
        self.wire = Wire(self.ns, "bk0")
        self.dut.collector.add(self.wire)
        for family in (4, 6):
            self.state(LINK[family], "through-kernel")
            # The kernel of either end resolves the other before packets are counted.
            netns.run(self.ns, ["ping", "-c1", "-W2", OWN[family]])

    def state(self, prefix, state):
        """Wait until a route has a state."""
        row = lambda: (self.dut.route_row(prefix) or {}).get("state")  # noqa: E731
        eventually(lambda: row() == state, 5, 0.01, f"{prefix} is {state}")

    def destroy(self):
        netns.command(["ip", "-n", self.dut.ctl, "link", "del", DEV], check=False)
        netns.delete(self.ns)


@contextlib.contextmanager
def host_behind(dut):
    """Have the host for the length of a with block."""
    behind = Behind(dut)
    try:
        behind.build()
        yield behind
    finally:
        behind.destroy()


@pytest.fixture
def behind(dut):
    """A host behind the kernel of the shared router."""
    with host_behind(dut) as made:
        yield made


def ip_of(packet, family):
    """Return the IP header of a packet."""
    return packet[IP if family == 4 else IPv6]


def hops_left(packet, family):
    """Return TTL or hop limit."""
    return packet[IP].ttl if family == 4 else packet[IPv6].hlim


def echo(wire, family, size=0, **fields):
    """Return an echo request with a token to the host."""
    probe = wire.probe(HOST[family], size=size, **fields)
    kind = ICMP(id=7) if family == 4 else ICMPv6EchoRequest(id=7)
    ip_of(probe, family).payload = kind / Raw(probe[Raw].load)
    for field in ("len", "plen", "nh", "proto"):
        if field in ip_of(probe, family).fields:
            delattr(ip_of(probe, family), field)
    return probe


def test_the_kernel_forwards_both_ways(dut, lan, behind, family):
    """A host behind an interface of the kernel gets a packet with a TTL one less, and its answer
    comes back. The packet counts as punted, in the class kernel-route."""
    before, passed = dut.counters(), punt_row(dut)["passed"]
    forwarded = netns.forwarded(dut.ctl)[family == 6]
    probe = echo(lan, family)
    ttl = hops_left(Ether(bytes(probe)), family)

    answer = lan.srp1(probe)

    kind = ICMP if family == 4 else ICMPv6EchoReply
    assert kind in answer and ip_of(answer, family).src == HOST[family]
    assert answer.src == lan.port_mac and answer.dst == lan.mac
    (came,) = [Ether(data) for data in behind.wire.got(token_of(probe))]
    assert hops_left(came, family) == ttl - 1
    assert hops_left(answer, family) == 63
    assert dut.moved(before, "punt") == {"kernel_route": 1}
    assert punt_row(dut)["passed"] == passed + 1
    # One by the device, the answer by the TAP.
    assert netns.forwarded(dut.ctl)[family == 6] == forwarded + 2


def punt_row(dut):
    """Return the row of the class in `show punt`."""
    return next(r for r in dut.control.ask("punt") if r["class"] == "kernel-route")


def test_a_route_by_a_gateway_behind_the_kernel(dut, lan, behind, family):
    """The route is zebra's, and the kernel has it, too. `show routes` and explain name the
    interface. When the interface is down, no packet takes the route."""
    # Zebra's own protocol number, so that the daemon takes the route from the FPM.
    dut.ip(f"route add {BEYOND[family]} via {HOST[family]} dev {DEV} proto 186")
    with netns.entered(dut.ctl):
        oif = socket.if_nametoindex(DEV)
    dut.route(BEYOND[family], nhid=dut.zebra.hop(HOST[family], oif=oif))
    behind.state(BEYOND[family], "through-kernel")

    probe = lan.probe(FAR[family])
    lan.send(probe)
    behind.wire.expect(token_of(probe))

    (hop,) = dut.route_row(BEYOND[family])["nexthops"]
    assert (hop["via"], hop["dev"], hop["alive"]) == (HOST[family], DEV, True)
    assert "the kernel forwards" in dut.fpmctl("show", "routes", BEYOND[family]).stdout
    said = dut.fpmctl("explain", "dst", FAR[family], "port", lan.tap)
    assert said.returncode == 0
    assert f"the kernel forwards it by {DEV} (class kernel-route)" in said.stdout, said.stdout
    dut.ip(f"link set {DEV} down")
    behind.state(BEYOND[family], "down")
    assert dut.not_forwarded(lan, lan.probe(FAR[family])) == {"egress_down": 1}


def test_the_kernel_sends_the_icmp_errors(dut, lan, behind, family):
    """A used-up TTL and a packet above the MTU of the interface: the kernel sends the ICMP error,
    and the dataplane counts no drop."""
    dut.ip(f"link set {DEV} mtu 1400")
    before = dut.counters()
    fields = {"ttl": 1} if family == 4 else {"hlim": 1}
    expired = lan.srp1(lan.probe(HOST[family], **fields))
    fields = {"flags": "DF"} if family == 4 else {}
    too_big = lan.srp1(lan.probe(HOST[family], size=1401, **fields))
    fits = lan.probe(HOST[family], size=1400, **fields)
    lan.send(fits)
    behind.wire.expect(token_of(fits))

    if family == 4:
        assert (expired[ICMP].type, expired[ICMP].code) == (11, 0)
        assert (too_big[ICMP].type, too_big[ICMP].code) == (3, 4)
        assert too_big[ICMP].nexthopmtu == 1400
    else:
        assert ICMPv6TimeExceeded in expired
        assert too_big[ICMPv6PacketTooBig].mtu == 1400
    assert ip_of(expired, family).src == lan.own(family)
    assert dut.moved(before, "punt")["kernel_route"] == 3
    assert not dut.drops(before)


def test_numbered_packets_both_ways(dut, lan, behind, family):
    """A host behind the kernel echoes a thousand numbered packets: each arrives once, and each
    comes back once."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    host = netns.open_socket(behind.ns, kind, socket.SOCK_DGRAM)
    host.bind((HOST[family], 4001))
    host.settimeout(0.2)
    ending = threading.Event()
    probes = [lan.probe(HOST[family], sport=2000 + n) for n in range(1000)]
    number = {token_of(p): n for n, p in enumerate(probes)}

    def reflect():
        while not ending.is_set():
            with contextlib.suppress(socket.timeout):
                data, peer = host.recvfrom(2048)
                host.sendto(data, peer)

    def seen(wire):
        return sorted(number[token_of(d)] for d in wire.got(lambda d: token_of(d) in number))

    reflector = threading.Thread(target=reflect, daemon=True)
    reflector.start()
    try:
        for first in range(0, 1000, 100):  # as many as the socket of the host holds
            lan.send(*probes[first : first + 100])
            eventually(lambda n=first + 100: len(seen(lan)) >= n, 5, 0.01, "answers")
    finally:
        ending.set()
        reflector.join()
        host.close()
    assert seen(behind.wire) == seen(lan) == list(range(1000))


def test_of_a_group_the_members_by_the_kernel_get_packets(dut, lan, wan, behind, family):
    """Next hops by a port and by an interface of the kernel share a group: packets of some flows
    leave by the port, packets of others by the interface, and none is lost."""
    with netns.entered(dut.ctl):
        oif = socket.if_nametoindex(DEV)
    dut.ip(f"route add {BEYOND[family]} proto 186 nexthop via {HOST[family]} dev {DEV} "
           f"nexthop via {wan.peer(family)} dev {wan.tap}")  # fmt: skip
    members = [dut.zebra.hop(HOST[family], oif=oif), dut.zebra.hop(wan.peer(family), wan)]
    dut.route(BEYOND[family], nhid=dut.zebra.group(dict.fromkeys(members, 1)))
    eventually(lambda: dut.all_alive(BEYOND[family]), 5, 0.01, "both are alive")
    before = dut.counters()
    probes = [lan.probe(FAR[family], sport=2000 + i) for i in range(200)]
    tokens = {token_of(p) for p in probes}

    def arrived(*wires):
        return [token_of(d) for w in wires for d in w.got(lambda d: token_of(d) in tokens)]

    lan.send(*probes)
    eventually(lambda: len(arrived(wan, behind.wire)) == 200, 5, 0.01, "all arrive")

    assert set(arrived(wan, behind.wire)) == tokens
    punted = dut.moved(before, "punt")["kernel_route"]
    assert 60 < punted < 140
    assert 0 < len(arrived(behind.wire)) <= punted
    assert not dut.drops(before)


def test_only_packets_of_these_routes_are_forwarded_by_the_kernel(dut, lan, wan, behind, case, family):
    """Transit by the ports and packets without a route do not reach the kernel, and packets from an
    interface whose forwarding is off are dropped by the dataplane."""
    net, host, _ = case
    dut.route(net, via=wan.peer(family), wire=wan)
    forwarded = netns.forwarded(dut.ctl)
    for _ in range(10):
        dut.forwarded(lan, lan.probe(host), wan)
    nowhere = "100.64.0.1" if family == 4 else "2001:db8:aaaa::1"
    assert dut.not_forwarded(lan, lan.probe(nowhere)) == {"no_route": 1}
    key = f"net.ipv{family}.conf.{lan.tap}.forwarding"
    netns.sysctl(dut.ctl, {key: 0})
    try:
        off = lambda: dut.port_row(lan)["forwarding"] == f"ipv{10 - family}"  # noqa: E731
        eventually(off, 5, 0.01, "forwarding is off")
        assert dut.not_forwarded(lan, lan.probe(HOST[family])) == {"forwarding_off": 1}
        said = dut.fpmctl("doctor", "forwarding")
        assert f"off: IPv{family}" in said.stdout, said.stdout
    finally:
        netns.sysctl(dut.ctl, {key: 1})
    eventually(lambda: dut.port_row(lan)["forwarding"] == "on", 5, 0.01, "it is on")
    assert netns.forwarded(dut.ctl) == forwarded
    assert not behind.wire.got(lambda d: token_of(d) is not None)


def test_packets_over_the_rate_are_dropped(dut, lan, behind):
    """The policer of the class limits the packets for the kernel, and nothing else."""
    dut.fpmctl("set", "policer", "kernel-route", "rate", "10", "burst", "20")
    try:
        before, passed = dut.counters(), punt_row(dut)["passed"]
        lan.send(*[lan.probe(HOST[4], sport=2000 + i) for i in range(500)])
        dut.fence(lan)
        drops, let = dut.drops(before), punt_row(dut)["passed"] - passed
        assert set(drops) == {"policed"} and drops["policed"] + let == 500
        assert 20 <= let < 100
    finally:
        dut.fpmctl("set", "policer", "kernel-route", "rate", "60000", "burst", "8192")


def test_it_can_be_switched_off(own_dut):
    """With `routes.through-kernel: false` the packets are dropped, and a reload switches it off and
    on while the router runs."""
    dut = own_dut()
    dut.start()
    lan = dut.wires["lan"]
    with host_behind(dut) as behind:
        for on in (False, True, False):
            set_through(dut, on)
            done = dut.fpmctl("config", "reload")
            assert done.returncode == 0 and "routes.through-kernel" in done.stdout, done
            behind.state(LINK[4], "through-kernel" if on else "foreign")
            if on:
                assert ICMP in lan.srp1(echo(lan, 4))
            else:
                assert dut.not_forwarded(lan, lan.probe(HOST[4])) == {"foreign_oif": 1}
        dut.stop()
        dut.start()
        behind.state(LINK[4], "foreign")


def set_through(dut, on):
    """Write the key into the configuration."""
    with open(dut.config, encoding="utf-8") as file:
        lines = [row for row in file.read().splitlines() if "through-kernel" not in row]
    dut.write_config("\n".join(lines) + f"\nroutes: {{through-kernel: {str(on).lower()}}}\n")
