# SPDX-License-Identifier: BSD-3-Clause
"""Ports whose devices are interfaces that DPDK's net_tap makes in the kernel: a router for labs
without NICs, and with packets above 1500 octets from DPDK 24.11 on.

    namespace of the daemon: w0, l0 == net_tap, wan0 and lan0 :namespace of the router
"""

import contextlib
import os
import socket

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from lib import netns, procs
from lib.dataplane import Dataplane, DataplaneError
from lib.wait import eventually

LONG = 9000
OVER = 28  # the headers of IPv4 and UDP
CONFIG = """\
ports:
  - {{tap: wan0, device: "net_tap,iface=w0", mtu: {mtu}}}
  - {{tap: lan0, device: "net_tap,iface=l0", mtu: {mtu}}}
control-netns: {netns}
control-socket: {dir}/ctl.sock
memory: {{size-mib: 96}}
metrics: off
"""
PEER = "02:00:00:00:00:77"


class Bed:
    """A router on two interfaces of net_tap, which does not run yet."""

    def __init__(self, where, mtu):
        self.below, self.space = (f"fdp-{kind}-{os.getpid()}" for kind in ("below", "taps"))
        config = where / "dp.yaml"
        config.write_text(CONFIG.format(mtu=mtu, netns=self.space, dir=where))
        self.daemon = Dataplane(
            self.below, str(config), f"{where}/ctl.sock", f"{where}/log", str(where)
        )
        for name in (self.below, self.space):
            netns.command(["ip", "netns", "add", name])
            netns.ip_batch(["link set lo up"], name)

    def start(self):
        """Start the daemon, with a neighbor behind wan0."""
        try:
            self.daemon.start()
        except DataplaneError:
            if 'EAL: failed to parse device "net_tap_' in self.daemon.log():
                pytest.skip("this DPDK has no net_tap")
            raise
        netns.ip_batch(
            ["addr add 192.0.2.1/24 dev lan0", "addr add 198.51.100.1/24 dev wan0",
             f"neigh replace 198.51.100.2 lladdr {PEER} dev wan0"], self.space,
        )  # fmt: skip
        netns.sysctl(self.space, {"net.ipv4.ip_forward": 1})
        for name in ("wan0", "lan0"):
            eventually(lambda n=name: self.daemon.ports()[n]["link"] == "up", 10, 0.05, "link")
        eventually(self._is_told, 10, 0.05, "the daemon has what the kernel has")

    def _is_told(self):
        """Return true if the daemon has read the neighbor, its route and the sysctl."""
        known = {row["address"]: row["mac"] for row in self.daemon.show("neighbors")}
        forwards = self.daemon.ports()["lan0"]["forwarding"] in ("on", "ipv4")
        there = known.get("198.51.100.2") == PEER and forwards
        return there and self.daemon.show("routes", "198.51.100.0/24", "exact")

    def open(self, ifname):
        """Return a socket for frames of an interface of the kernel."""
        sock = netns.open_socket(self.below, socket.AF_PACKET, socket.SOCK_RAW, 0x0300)
        sock.bind((ifname, 0x0800))
        sock.setblocking(False)
        return sock

    def close(self):
        if self.daemon.process is not None and self.daemon.process.poll() is None:
            self.daemon.stop()
        procs.end_all(self.daemon.mark)
        for name in (self.below, self.space):
            netns.delete(name)


@pytest.fixture
def bed(tmp_path, request):
    made = Bed(tmp_path, request.param)
    try:
        yield made
    finally:
        made.close()


def packet(octets):
    """Return a packet of this length for the neighbor behind wan0."""
    return IP(src="192.0.2.2", dst="198.51.100.2") / UDP(dport=9) / os.urandom(octets - OVER)


def forwarded(bed, octets):
    """Return True if a packet of this length is forwarded as it is."""
    with bed.open("l0") as near, bed.open("w0") as far:
        sent = bytes(packet(octets))
        head = Ether(dst=bed.daemon.ports()["lan0"]["mac"], src=PEER, type=0x0800)
        near.send(bytes(head) + sent)
        frame = eventually(lambda: next_frame(far, octets), 10, 0.005, "the packet leaves")
    return frame[34:] == sent[20:] and frame[22] == sent[8] - 1


def next_frame(far, octets):
    """Return the next frame if its packet has this length and is for the neighbor, or None."""
    with contextlib.suppress(BlockingIOError):
        frame = far.recv(65536)
        if len(frame) == 14 + octets and Ether(frame).dst == PEER:
            return frame
    return None


@pytest.mark.parametrize("bed", [1500], indirect=True)
def test_net_tap_makes_its_interfaces(bed):
    """The interface that `iface` names is made by the driver, so it need not exist before."""
    bed.start()

    assert forwarded(bed, 1500)


@pytest.mark.parametrize("bed", [LONG], indirect=True)
def test_packets_of_9000_octets_by_net_tap(bed):
    """net_tap of DPDK 24.11 takes packets of 9000 octets. net_tap of DPDK 22.11 takes 1504 octets at
    most, and the log says so."""
    try:
        bed.start()
    except DataplaneError:
        assert "mtu 9000 is more than the device (net_tap) takes: 1504 at most" in bed.daemon.log()
        pytest.skip("net_tap of this DPDK takes 1504 octets at most")

    assert forwarded(bed, LONG - 1) and forwarded(bed, LONG)
