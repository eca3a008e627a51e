# SPDX-License-Identifier: BSD-3-Clause
"""An interface that is a member of a VRF: its packets are not routed by the table of all
others. There is no FIB a VRF yet: what is for the host is served, nothing passes."""

import pytest

from lib import netns
from lib.wait import eventually
from router import Router, running
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"


@pytest.fixture(scope="module")
def machine():
    """A router on veths in a kernel that has VRFs."""
    with running(Router(name="vrf")) as router:
        yield router


@pytest.fixture
def router(machine):
    """It, in its standard state: without VRFs."""
    netns.command(["ip", "-n", machine.ctl, "link", "del", "red"], check=False)
    eventually(lambda: vrf_of(machine, "lan0") is None, 5, 0.01, "in no VRF")
    machine.ready()
    return machine


def vrf_of(router, name):
    """The VRF of an interface as `show interfaces` has it."""
    return {r["name"]: r["vrf"] for r in router.control.ask("interfaces")}[name]


def enslave(router):
    """lan0 becomes a member of VRF red, with its address."""
    lan = router.wires["lan"]
    router.ip("link add red type vrf table 100", "link set red up", "link set lan0 master red")
    eventually(lambda: vrf_of(router, "lan0") == "red", 5, 0.01, "in the VRF")
    router.ip(f"addr replace {lan.ip6}/64 dev lan0 nodad")


def test_a_member_of_a_vrf_passes_nothing_into_the_table_of_others(router, family):
    lan, wan = router.wires["lan"], router.wires["wan"]
    host, peer = (wan.peer4, lan.peer4) if family == 4 else (wan.peer6, lan.peer6)
    router.forwarded(lan, lan.probe(host), wan)
    router.forwarded(wan, wan.probe(peer), lan)

    enslave(router)

    assert router.not_forwarded(lan, lan.probe(host)) == {"vrf_unsupported": 1}
    assert router.not_forwarded(wan, wan.probe(peer)) == {"no_route": 1}


def test_who_leaves_the_vrf_forwards_again(router):
    lan, wan = router.wires["lan"], router.wires["wan"]
    enslave(router)
    assert router.not_forwarded(lan, lan.probe(wan.peer4)) == {"vrf_unsupported": 1}

    router.ip("link set lan0 nomaster")
    router.ready()

    router.forwarded(lan, lan.probe(wan.peer4), wan)
    router.forwarded(wan, wan.probe(lan.peer4), lan)


def test_a_vrf_that_goes_lets_its_members_go(router):
    lan, wan = router.wires["lan"], router.wires["wan"]
    enslave(router)

    router.ip("link del red")
    router.ready()

    router.forwarded(lan, lan.probe(wan.peer4), wan)


def test_the_host_is_served_in_the_vrf(router):
    """Its addresses are the host's, in the VRF as elsewhere: pings, and so BGP sessions."""
    lan = router.wires["lan"]
    enslave(router)
    probe = lan.probe(lan.ip4)

    lan.send(probe)

    assert router.taps["lan"].expect_raw(token_of(probe)) == bytes(probe)
    peer = "192.0.2.50"
    netns.ip_batch([f"addr add {peer}/26 dev lan"], router.far)
    try:
        said = netns.run(router.far, ["ping", "-c", "2", "-W", "5", lan.ip4])
    finally:
        netns.ip_batch([f"addr del {peer}/26 dev lan"], router.far)
    assert " 2 received" in said, said
