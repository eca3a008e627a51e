# SPDX-License-Identifier: BSD-3-Clause
"""The link of a port's device follows the state of the TAP, as if both were one interface: `shutdown`
in vtysh and `ip link set down` take the carrier of the peer away."""

import pytest

from lib import netns
from lib.links import on_nics
from lib.wait import eventually
from on_time import Clock, Medians
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.77"

pytestmark = pytest.mark.skipif(
    on_nics(), reason="QEMU does not tell a NIC that the guest took the other one's link down"
)


def peer_has_carrier(dut, wire):
    """Return True if the interface at the other end of a wire has carrier."""
    return netns.has_carrier(dut.far, wire.ifname)


def assert_forwards(dut, lan, wan):
    """Wait for the link of wan, and assert that a packet passes."""
    eventually(lambda: dut.port_row(wan)["link"] == "up", 5, 0.01)
    dut.neighbor(wan.peer4, wan)
    lan.send(probe := lan.probe(HOST))
    eventually(lambda: wan.got(token_of(probe)))


def test_a_tap_that_is_set_down_takes_the_carrier_of_its_peer(dut, lan, wan):
    """The peer loses its carrier within 100 ms after the TAP is set down, and has it within 100 ms
    after the TAP is set up (medians). Then packets pass again."""
    dut.route(NET, via=wan.peer4, wire=wan)
    medians = Medians(dut)
    for _ in range(medians.TIMES):
        for up in (False, True):
            clock = Clock(dut)
            netns.link_set(dut.ctl, wan.tap, up)
            medians.until(f"up={up}", lambda up=up: peer_has_carrier(dut, wan) is up, clock)
    medians.are_in_time()
    assert_forwards(dut, lan, wan)
    assert f"link of device set port={wan.tap} state=down" in dut.log()


def test_a_peer_that_is_set_down_leaves_the_device_up(dut, wan):
    """The daemon follows only the TAP. It sets no interface up that another program has set down, at
    the far end of the wire or behind the port."""
    for where, name in ((dut.far, wan.ifname), (dut.dp, f"p-{wan.ifname}")):
        netns.link_set(where, name, False)
        eventually(lambda: dut.port_row(wan)["link"] == "down", 5, 0.01)
        assert not netns.is_up(where, name) and netns.is_up(dut.ctl, wan.tap)
        netns.link_set(where, name, True)
        eventually(lambda: dut.port_row(wan)["link"] == "up", 5, 0.01)


def test_what_was_set_while_no_daemon_ran_is_followed(own_dut):
    """A daemon that starts sets the device down if its TAP is down, and sets the other devices up,
    which an earlier daemon had set down."""
    dut = own_dut()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.start()
    netns.link_set(dut.ctl, wan.tap, False)
    eventually(lambda: not peer_has_carrier(dut, wan), 5, 0.01)
    dut.stop()
    assert not peer_has_carrier(dut, wan), "the operator has not set it up"
    netns.link_set(dut.ctl, wan.tap, True)
    netns.link_set(dut.ctl, lan.tap, False)

    dut.start()  # start() sets all TAPs up, but only after the daemon has answered

    eventually(lambda: peer_has_carrier(dut, lan) and peer_has_carrier(dut, wan), 5, 0.01)
    states = [line.split()[-2:] for line in dut.log().splitlines() if "link of device set" in line]
    own = [state for port, state in states[1:] if port == f"port={lan.tap}"]
    assert own[:1] == ["state=down"], states
    for wire in (lan, wan):
        eventually(lambda wire=wire: dut.port_row(wire)["link"] == "up", 5, 0.01)
