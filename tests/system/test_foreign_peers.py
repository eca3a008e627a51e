# SPDX-License-Identifier: BSD-3-Clause
"""FRR on our router speaks with BIRD 2 and GoBGP. Their routes reach the FIB, packets follow them,
and the routes go when the peer withdraws them or dies."""

import pytest

from foreign import AS_OURS, AS_THEIRS, Bird, Gobgp, program
from lib import netns
from lib.frr import beside
from lib.wait import PATIENCE, eventually
from wire import token_of

ALL = {
    4: [f"20.{n >> 8}.{n & 255}.0/24" for n in range(2000)],
    6: [f"2a00:{n:x}::/32" for n in range(1, 1001)],
}
HALF = {family: prefixes[::2] for family, prefixes in ALL.items()}
OSPF = {family: prefixes[:300] for family, prefixes in ALL.items()}
FRR = """\
fpm address 127.0.0.1
bgp route-map delay-timer 0
interface wan0
 ip ospf area 0
 ip ospf hello-interval 1
 ip ospf dead-interval 4
 ipv6 ospf6 area 0
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 4
exit
router ospf
 ospf router-id {own4}
 timers throttle spf 50 200 1000
exit
router ospf6
 ospf6 router-id {own4}
 timers throttle spf 50 200 1000
exit
router bgp {ours}
 bgp router-id {own4}
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 no bgp network import-check
 neighbor {peer4} remote-as {theirs}
 neighbor {peer4} timers 3 9
 neighbor {peer4} timers connect 1
 neighbor {peer6} remote-as {theirs}
 neighbor {peer6} timers 3 9
 neighbor {peer6} timers connect 1
 address-family ipv4 unicast
  neighbor {peer4} activate
  network 203.0.113.0/24
 exit-address-family
 address-family ipv6 unicast
  neighbor {peer6} activate
 exit-address-family
exit
"""


@pytest.fixture(scope="module")
def frr(session_dut):
    """FRR beside the shared router, and addresses for the kernel at the far end of wan."""
    dut, wan = session_dut, session_dut.wires["wan"]
    if not dut.alive():
        dut.start()
    dut.ready()
    dut.zebra.close()
    netns.sysctl(
        dut.far, {"net.ipv6.conf.wan.disable_ipv6": 0, "net.ipv6.conf.wan.accept_dad": 0}
    )
    own = [f"addr add {wan.peer4}/26 dev wan", f"addr add {wan.peer6}/64 dev wan nodad"]
    netns.ip_batch(["link set lo up", *own], dut.far)
    conf = FRR.format(
        ours=AS_OURS, theirs=AS_THEIRS, own4=wan.ip4, peer4=wan.peer4, peer6=wan.peer6
    )
    try:
        with beside(dut, conf, ["bgpd", "ospfd", "ospf6d"]) as made:
            made.dut = dut
            yield made
    finally:
        netns.ip_batch(["addr flush dev wan"], dut.far)
        netns.sysctl(dut.far, {"net.ipv6.conf.wan.disable_ipv6": 1})


@pytest.fixture(scope="module", params=[Bird, Gobgp], ids=["BIRD", "GoBGP"])
def peer(request, frr):
    """A BGP speaker that announces all routes."""
    made = _made(request.param, frr)
    made.start(ALL)
    yield made
    made.kill()


@pytest.fixture
def bird(frr):
    """BIRD for one test."""
    made = _made(Bird, frr)
    yield made
    made.kill()


def _made(kind, frr):
    if program(kind.PROGRAM) is None:
        pytest.skip(f"{kind.PROGRAM} is not there: make peers")
    return kind(frr.dut)


def carries(dut, routes, gone=(), seconds=60):
    """Wait until the FIB has exactly these prefixes of the peer, {family: prefixes}. Then packets
    to about 20 of them leave by wan, and packets to the prefixes `gone` do not leave."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    want = {prefix for prefixes in routes.values() for prefix in prefixes}

    def settled():
        have = _of_peer(dut)
        if have != want:
            raise LookupError(f"{len(have)} prefixes, {len(have & want)} of them right")
        return True

    eventually(settled, seconds, 0.2, f"{len(want)} routes of the peer")
    some = [
        prefix
        for prefixes in routes.values()
        for prefix in prefixes[:: len(prefixes) // 10 or 1]
    ]
    for probe in [lan.probe(_host(prefix)) for prefix in some]:
        assert dut.forwarded(lan, probe, wan).dst == wan.mac
    assert set(dut.not_forwarded(lan, *(lan.probe(_host(p)) for p in gone))) <= {"no_route"}


def _of_peer(dut):
    """Return the prefixes of the peer in the FIB."""
    rows = dut.control.ask("routes")
    return {
        r["prefix"]
        for r in rows
        if r["state"] == "forwarding" and r["prefix"].startswith(("20.", "2a00:"))
    }


def _host(prefix):
    """Return an address in a prefix of this module."""
    network = prefix.partition("/")[0]
    return network + "9" if ":" in network else network[:-1] + "9"


def is_equal(frr):
    """Wait until zebra, RIB and FIB are equal."""
    shell = " ".join(frr.vtysh_argv())

    def equal():
        done = frr.dut.fpmctl("audit", "--vtysh", shell, timeout=60 * PATIENCE)
        if done.returncode:
            raise LookupError(done.stdout[-500:] + done.stderr)
        return True

    eventually(equal, 20, 0.5, "the audit is equal")


# OSPF is first: `peer` announces the same prefixes until the end of the module.
def test_routes_of_an_ospf_neighbor_carry_packets(frr, bird):
    """External routes of BIRD by OSPFv2 and OSPFv3 are in the FIB and packets follow them. They go
    within the dead interval when BIRD is killed (RFC 2328, RFC 5340)."""
    bird.start(OSPF, protocol="ospf")
    carries(frr.dut, OSPF)
    assert frr.ospf_states(4).get("wan0") == "Full" == frr.ospf_states(6).get("wan0")
    is_equal(frr)
    bird.kill()
    carries(frr.dut, {4: [], 6: []}, gone=[OSPF[4][0], OSPF[6][0]])
    is_equal(frr)


def test_routes_of_a_bgp_peer_carry_packets(frr, peer):
    """2,000 IPv4 and 1,000 IPv6 routes of BIRD and of GoBGP are in the FIB, and packets follow them
    (RFC 4271, RFC 4760). The peer has the router's prefix."""
    carries(frr.dut, ALL)
    is_equal(frr)
    for address in (peer.wan.peer4, peer.wan.peer6):
        assert frr.bgp_state(address) == "Established"
    net = "203.0.113.0/24"
    if isinstance(peer, Bird):
        told = lambda: net in peer.birdc("show", "route", "protocol", "b4")  # noqa: E731
    else:
        told = lambda: net in peer.client("global", "rib", "-a", "ipv4", net)  # noqa: E731
    eventually(told, 10, 0.1, "the peer has the router's prefix")


def test_routes_that_a_bgp_peer_withdraws_leave_the_fib(frr, peer):
    """The FIB loses the half of the routes that BIRD or GoBGP withdraws, and gets them back when the
    peer announces them again (RFC 4271, 3.1)."""
    carries(frr.dut, ALL)
    peer.announce(HALF)
    carries(frr.dut, HALF, gone=[ALL[4][1], ALL[6][1]])
    is_equal(frr)
    peer.announce(ALL)
    carries(frr.dut, ALL)


def test_routes_of_a_bgp_peer_that_dies_leave_the_fib(frr, peer):
    """The FIB loses all routes of BIRD or GoBGP when the peer is killed, and gets them back from the
    next one (RFC 4271, 8.2.2)."""
    carries(frr.dut, ALL)
    peer.kill()
    carries(frr.dut, {4: [], 6: []}, gone=[ALL[4][0], ALL[6][0]])
    is_equal(frr)
    peer.start(ALL)
    carries(frr.dut, ALL)
    is_equal(frr)
