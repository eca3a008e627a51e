# SPDX-License-Identifier: BSD-3-Clause
"""A route whose egress is an interface of the kernel that is no port: the kernel forwards its
packets, as a Linux router does.

    lan, wan: wires    the router's TAPs    vk0 -- veth -- bk0: a namespace with a host
"""

import contextlib
import socket
import threading

import pytest
from scapy.layers.inet import ICMP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6PacketTooBig, ICMPv6TimeExceeded
from scapy.layers.l2 import Ether

from behind import BEYOND, DEV, FAR, HOST, LINK, echo, hops_left, host_behind, ip_of
from lib import netns
from lib.wait import eventually
from wire import token_of

@pytest.fixture
def behind(dut):
    """A host behind the kernel of the shared router."""
    with host_behind(dut) as made:
        yield made


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
    # The kernel forwards the request by the device, and the answer by the TAP.
    assert netns.forwarded(dut.ctl)[family == 6] == forwarded + 2


def punt_row(dut):
    """Return the row of the class in `show punt`."""
    return next(r for r in dut.control.ask("punt") if r["class"] == "kernel-route")


def test_a_route_by_a_gateway_behind_the_kernel(dut, lan, behind, family):
    """The route is zebra's, and the kernel has it, too. `show routes` and explain name the
    interface. When the interface is down, no packet takes the route."""
    # Protocol and metric of zebra's copies, so that the daemon takes the route from the FPM.
    dut.ip(f"route add {BEYOND[family]} via {HOST[family]} dev {DEV} proto 186 metric 20")
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
    """The kernel sends the ICMP error about a used-up TTL and about a packet above the MTU of the
    interface. The dataplane counts no drop."""
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


def test_our_own_errors_reach_a_host_behind_the_kernel(dut, lan, behind, family):
    """A packet comes by a port, and its source is behind an interface of the kernel. The ICMP errors
    about it are the dataplane's, and leave by that interface, as those of a Linux router do."""
    before = dut.counters()
    nowhere = "100.64.0.1" if family == 4 else "2001:db8:aaaa::1"
    fields = {"ttl": 1} if family == 4 else {"hlim": 1}
    wan = dut.wires["wan"]
    expired = lan.probe(wan.peer(family), src=HOST[family], **fields)
    lost = lan.probe(nowhere, src=HOST[family])

    lan.send(expired, lost)
    kinds = ((11, 0), (3, 0)) if family == 4 else ((3, 0), (1, 0))
    for probe, kind in zip((expired, lost), kinds, strict=True):
        behind.wire.expect(token_of(probe))  # the error quotes it
        (error,) = [ip_of(Ether(data), family) for data in behind.wire.got(token_of(probe))]
        assert (error.src, error.dst) == (lan.own(family), HOST[family])
        assert (error.payload.type, error.payload.code) == kind
    assert dut.drops(before) == {"ttl": 1, "no_route": 1}


@pytest.mark.parametrize("family", [6], ids=["IPv6"])
def test_our_own_errors_take_routes_by_source(dut, lan, behind, family):
    """Only a rule, or a route, for the source of the ICMP error leads to the host behind the kernel.
    For other sources the host is unreachable. The kernel sends the error to the host. (An IPv4 error
    gets its source after the lookup: test_rules.)"""
    host, own = f"{HOST[family]}/128", f"{lan.own(family)}/128"
    by_rule = [f"route add {host} dev {DEV} table 77", f"rule add pref 77 from {own} lookup 77"]
    by_route = [f"route add {host} from {own} dev {DEV}"]
    rules = lambda: [r["pref"] for r in dut.control.ask("rules")]  # noqa: E731

    for routes in (by_rule, by_route):
        lines = [f"-6 {line}" for line in (*routes, f"route add unreachable {host}")]
        dut.ip(*lines)
        try:
            behind.state(host, "unreachable")
            eventually(lambda: routes == by_route or 77 in rules(), 5, 0.01, "the rule is known")
            before = dut.counters()
            expired = lan.probe(dut.wires["wan"].peer(family), src=HOST[family], hlim=1)
            lan.send(expired)
            behind.wire.expect(token_of(expired))
            (error,) = [ip_of(Ether(d), family) for d in behind.wire.got(token_of(expired))]
            assert (error.src, error.dst) == (lan.own(family), HOST[family])
            assert dut.drops(before) == {"ttl": 1}
        finally:
            dut.ip(*[line.replace(" add ", " del ") for line in reversed(lines)])


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


def test_a_packet_that_waited_takes_the_new_route(dut, lan, wan, behind, given_up_soon, family):
    """A packet waits for a silent gateway. Its route then leads to an interface of the kernel, so the
    packet leaves by this interface when the kernel gives up the gateway."""
    silent = {4: "192.0.2.99", 6: "2001:db8:1::99"}[family]
    dut.ip(f"route add {BEYOND[family]} via {HOST[family]} dev {DEV} proto 186 metric 20")
    dut.route(BEYOND[family], via=silent, wire=wan)
    before = dut.counters()
    probe = lan.probe(FAR[family])
    lan.send(probe)
    eventually(lambda: dut.moved(before, "punt").get("unresolved") == 1, 5, 0.005, "it waits")
    with netns.entered(dut.ctl):
        oif = socket.if_nametoindex(DEV)
    dut.route(BEYOND[family], nhid=dut.zebra.hop(HOST[family], oif=oif))

    behind.wire.expect(token_of(probe), timeout=8)


def test_of_a_group_the_members_by_the_kernel_get_packets(dut, lan, wan, behind, family, request):
    """Next hops by a port and by an interface of the kernel share a group: packets of some flows
    leave by the port, packets of others by the interface, and none is lost."""
    # Without the ports in its hash, the kernel sends all of these flows by one next hop.
    by_ports = f"net.ipv{family}.fib_multipath_hash_policy"
    netns.sysctl(dut.ctl, {by_ports: 1})
    request.addfinalizer(lambda: netns.sysctl(dut.ctl, {by_ports: 0}))
    with netns.entered(dut.ctl):
        oif = socket.if_nametoindex(DEV)
    dut.ip(f"route add {BEYOND[family]} proto 186 metric 20 nexthop via {HOST[family]} dev {DEV} "
           f"nexthop via {wan.peer(family)} dev {wan.tap}")  # fmt: skip
    # The next hop by the port would outlive the interface of the kernel.
    request.addfinalizer(lambda: dut.ip(f"route del {BEYOND[family]} proto 186"))
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

    told = lambda: [r["where"] for r in dut.control.ask("warnings") if r["kind"] == "mixed-group"]  # noqa: E731
    eventually(told, 15, 0.05, "the group is told")
    assert set(arrived(wan, behind.wire)) == tokens
    punted = dut.moved(before, "punt")["kernel_route"]
    assert 60 < punted < 140
    assert 0 < len(arrived(behind.wire)) <= punted
    assert not dut.drops(before)


def test_only_packets_of_these_routes_are_forwarded_by_the_kernel(dut, lan, wan, behind, case, family):
    """Transit by the ports and packets without a route do not reach the kernel. While forwarding is
    off, for IPv4 by the sysctl of the ingress interface and for IPv6 by that of `all`, the dataplane
    drops packets."""
    net, host, _ = case
    dut.route(net, via=wan.peer(family), wire=wan)
    forwarded = netns.forwarded(dut.ctl)
    for _ in range(10):
        dut.forwarded(lan, lan.probe(host), wan)
    nowhere = "100.64.0.1" if family == 4 else "2001:db8:aaaa::1"
    assert dut.not_forwarded(lan, lan.probe(nowhere)) == {"no_route": 1}
    key = f"net.ipv{family}.conf.{lan.tap if family == 4 else 'all'}.forwarding"
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
