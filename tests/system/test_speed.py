# SPDX-License-Identifier: BSD-3-Clause
"""A TAP reports the speed of its device, and OSPF computes its costs from it."""

import contextlib
import fcntl
import os
import struct

import pytest

from lib import netns, preload
from lib.frr import beside as frr_beside
from lib.wait import eventually

# The speed of a veth, in Mbit/s; the cost of OSPF is 100 Gbit/s divided by it.
SPEED, COST = 10000, 10
CONF = """\
hostname r1
fpm address 127.0.0.1
router ospf
 network 192.0.2.0/26 area 0
"""


def speed(dut, wire):
    """Return what the kernel says about the TAP: (Mbit/s, duplex)."""
    place = f"/sys/class/net/{wire.tap}"
    return tuple(netns.run(dut.ctl, ["cat", place + "/speed", place + "/duplex"], sysfs=True).split())


def slow_down(dut, wire):
    """Make the TAP report 10 Mbit/s, as each TAP of Debian 12 does."""
    netns.run(dut.ctl, ["ethtool", "-s", wire.tap, "speed", "10", "duplex", "half"])
    assert speed(dut, wire) == ("10", "half")


def test_a_tap_has_the_speed_of_its_device_when_the_link_comes(dut, wan):
    """The speed is set each time the link comes up."""
    assert speed(dut, wan) == (str(SPEED), "full")
    slow_down(dut, wan)
    netns.ip_batch([f"link set {wan.name} down"], dut.far)
    eventually(lambda: dut.port_row(wan)["link"] == "down", 2, 0.005)

    netns.ip_batch([f"link set {wan.name} up"], dut.far)

    eventually(lambda: dut.port_row(wan)["link"] == "up", 2, 0.005)
    eventually(lambda: speed(dut, wan) == (str(SPEED), "full"), 2, 0.005)


TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


@contextlib.contextmanager
def slow_device(dut, name, mbit_per_s):
    """Make a TAP in the namespace of the daemon, as a kernel interface whose speed can be set."""
    with netns.entered(dut.dp):
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    with contextlib.closing(os.fdopen(fd, "rb")):
        set_speed(dut, name, mbit_per_s)
        netns.ip_batch([f"link set {name} up"], dut.dp)
        yield name


def set_speed(dut, name, mbit_per_s):
    words = ["ethtool", "-s", name, "speed", str(mbit_per_s), "duplex", "full"]
    netns.run(dut.dp, words)


def test_a_tap_has_the_speed_of_the_kernel_interface_below(own_dut):
    """DPDK reports 10 Gbit/s for each port of net_af_packet. A 1-Gbit/s interface below the port would
    have the cost of a 10-Gbit/s interface."""
    dut = own_dut()
    dut.start()
    tap_speed = lambda: netns.run(dut.ctl, ["cat", "/sys/class/net/slow0/speed"], sysfs=True)  # noqa: E731
    with slow_device(dut, "p-slow", 1000):
        dut.fpmctl("port", "add", "slow0", "device", "net_af_packet,iface=p-slow")
        dut.ip("link set slow0 up")
        eventually(lambda: tap_speed().strip() == "1000", 5, 0.02, "the speed below")
        # The kernel sends no event about the speed alone, but drivers take the link down for the change.
        set_speed(dut, "p-slow", 100)
        netns.ip_batch(["link set p-slow mtu 1600"], dut.dp)
        eventually(lambda: tap_speed().strip() == "100", 5, 0.02, "the changed speed")
        dut.fpmctl("port", "del", "slow0")


def test_a_kernel_that_cannot_set_speeds_is_named_once(own_dut, monkeypatch):
    """The router forwards although its TAPs do not have their speeds. The log has one line for all
    TAPs."""
    dut = own_dut()
    preload.start(dut, monkeypatch, "mtu_refused", SPEED_REFUSED="1")
    eventually(lambda: {dut.port_row(w)["link"] for w in dut.wires.values()} == {"up"}, 5, 0.01)
    assert dut.log().count("speed of taps not set error=\"Operation not supported") == 1


@pytest.fixture
def kept_taps(own_dut):
    """A router whose TAPs were slow when it started."""
    dut = own_dut()
    dut.start()
    dut.stop()
    for wire in dut.wires.values():
        slow_down(dut, wire)
    dut.start()
    dut.zebra.close()
    return dut


def test_costs_of_ospf_are_those_of_the_devices(kept_taps):
    """ospfd divides its reference bandwidth by the speed that zebra reads from the TAP."""
    dut = kept_taps
    lan = dut.wires["lan"]
    eventually(lambda: speed(dut, lan) == (str(SPEED), "full"), 5, 0.01)
    with frr_beside(dut, CONF, ["ospfd"]) as frr:

        def cost():
            rows = frr.json(f"show ip ospf interface {lan.tap} json")["interfaces"]
            return rows[lan.tap]["cost"]

        eventually(lambda: cost() == COST, 10, 0.05)
