# SPDX-License-Identifier: BSD-3-Clause
"""Headends and end points of SRv6, and IP over VXLAN, while the daemon ends and returns without zebra: each
packet gets its own outer headers, or none."""

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.vxlan import VXLAN

import test_vxlan as vxlan
from back import HOST, NET, come_back
from lib import netns
from lib.fpm_speaker import attr
from lib.wait import eventually
from test_headend import LOCATOR, SIDS, announce as headend
from test_restart import differences
from test_srv6 import DT4, MAIN, SID, VRFTABLE, announce, outer

# Packets to FAR leave in a VXLAN, packets to PLAIN without outer headers.
FAR, FAR_NET = "198.18.1.9", "198.18.1.0/24"
PLAIN, PLAIN_NET = "198.18.2.9", "198.18.2.0/24"


@pytest.fixture(name="dut")
def kept_dut(own_dut):
    """A router under the supervisor, with a headend, an end point and a VXLAN."""
    dut = own_dut(supervised=True)
    dut.start()
    wan = dut.wires["wan"]
    netns.ip_batch(vxlan.own_addresses("add", 4), dut.ctl)
    vxlan.make(dut.ctl, vxlan.OWN[4], numbers=1)
    vxlan.is_ours(dut)
    vxlan.neighbors(dut.ctl, vxlan.VTEP[4], vxlan.RMAC)
    dut.route(f"{vxlan.VTEP[4]}/32", wan.peer4, wan)
    dut.route(FAR_NET, nhid=vxlan.type_5(dut, vxlan.VTEP[4], 4))
    dut.route(PLAIN_NET, wan.peer4, wan)
    dut.route(LOCATOR, wan.peer6, wan)
    headend(dut, NET, wan, SIDS[:3])
    announce(dut, DT4, attr(VRFTABLE, MAIN))
    serves(dut)
    return dut


def serves(dut):
    """Wait until the router has the source of SRv6 and the VXLAN from the kernel."""
    eventually(lambda: dut.fpm()["srv6_source"], 20, 0.02, "the source of SRv6 is known")
    vxlan.is_ours(dut)


def shape(frame):
    """Return the kind of a frame that left by wan, which is that of its packet in `dress`: 0 SRv6, 1
    without outer headers, 2 VXLAN. Return None for any other frame."""
    if IPv6 in frame:
        return 0 if frame[IPv6].dst == SIDS[0] else None
    if frame[IP].dst == PLAIN:
        return 1
    inside = VXLAN(bytes(frame[UDP].payload))
    return 2 if (frame[IP].dst, inside.vni, inside[IP].dst) == (vxlan.VTEP[4], vxlan.VNI, FAR) else None


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_outer_headers_are_right_before_zebra_is_back(dut, how):
    """After kill -9 or `fpmctl restart`, three times under traffic, all outer headers are right before zebra
    is back. The next daemon takes segments and end points from the checkpoint, and the VXLAN from the
    kernel."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dress = (lambda p: p, lambda _: outer(lan, lan.probe(PLAIN, size=100)), lambda _: lan.probe(FAR, size=100))
    eventually(lambda: dut.fpm()["checkpoint"]["routes"] >= 6, 5, what="the checkpoint is whole")
    dut.zebra.close()
    for _ in range(3):
        was = dut.daemon.pid()
        with dut.stream(lan, HOST, rate=500, dress=dress) as stream:
            if how == "kill":
                dut.daemon.crash()
            else:
                assert dut.fpmctl("restart").returncode == 0
            come_back(dut, was)
            serves(dut)
            back = stream.sent
            eventually(lambda b=back, s=stream: s.sent > b + 300, 10)
        stream.is_right(wan, shape, since=back + 1)  # each packet leaves after the return
        found = dut.fpm()["checkpoint"]
        assert (found["restore_lost"], found["discarded"], differences(dut)) == (0, 0, 0)
        for wire in (lan, wan):
            wire.clear()
