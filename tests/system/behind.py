# SPDX-License-Identifier: BSD-3-Clause
"""A host behind the kernel of the router. The host is in a namespace at the other end of a veth, and
the veth is no port of the dataplane."""

import contextlib
import os

from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from wire import Wire

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
            # Both kernels resolve each other before packets are counted.
            netns.run(self.ns, ["ping", "-c5", "-i0.2", "-W2", OWN[family]])

    def state(self, prefix, state):
        """Wait until a route has a state."""
        row = lambda: (self.dut.route_row(prefix) or {}).get("state")  # noqa: E731
        eventually(lambda: row() == state, 5, 0.01, f"{prefix} is {state}")

    def destroy(self):
        netns.command(["ip", "-n", self.dut.ctl, "link", "del", DEV], check=False)
        netns.delete(self.ns)


@contextlib.contextmanager
def host_behind(dut):
    """Run the host for the length of a with block."""
    behind = Behind(dut)
    try:
        behind.build()
        yield behind
    finally:
        behind.destroy()


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
