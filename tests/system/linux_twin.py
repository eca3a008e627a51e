# SPDX-License-Identifier: BSD-3-Clause
"""A Linux router with the ports, addresses and neighbors of the router under test. A test gives
both the same `ip` commands and the same frames, and compares the frames of both."""

import os
import struct

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether

from lib import netns
from lib.dut import SYSCTL
from wire import Wire, token_of


class Twin:
    """Two namespaces with a veth for each wire of `dut`. The kernel routes between them."""

    def __init__(self, dut):
        self.dut, self.wires = dut, {}
        tag = dut.ctl.rpartition("-")[2]
        self.here, self.far = f"fdp-twin-{tag}", f"fdp-twinfar-{tag}"

    def build(self):
        """Make the namespaces, and give the router the addresses of `dut`."""
        for name in (self.here, self.far):
            netns.command(["ip", "netns", "add", name])
        netns.sysctl(self.far, {"net.ipv6.conf.default.disable_ipv6": 1})
        netns.sysctl(self.here, SYSCTL)
        lines = ["link set lo up"]
        for name, like in self.dut.wires.items():
            lines += [
                f"link add {like.tap} address {like.port_mac} type veth peer name {name} "
                f"netns {self.far} address {like.mac}",
                f"link set {like.tap} up",
                f"addr add {like.ip4}/26 dev {like.tap}",
                f"addr add {like.ip6}/64 dev {like.tap} nodad",
                f"neigh replace {like.peer4} lladdr {like.mac} dev {like.tap} nud permanent",
                f"neigh replace {like.peer6} lladdr {like.mac} dev {like.tap} nud permanent",
            ]
        netns.ip_batch(lines, self.here)
        netns.ip_batch([f"link set {name} up" for name in self.dut.wires], self.far)
        for name, like in self.dut.wires.items():
            for ns, dev in ((self.here, like.tap), (self.far, name)):
                argv = ["ethtool", "-K", dev, "tx", "off", "gso", "off", "gro", "off"]
                netns.run(ns, argv, check=False)
            wire = Wire(self.far, name)
            for what in ("name", "mac", "port_mac", "ip4", "peer4", "ip6", "peer6"):
                setattr(wire, what, getattr(like, what))
            self.wires[name] = wire
            self.dut.collector.add(wire)

    def destroy(self):
        """Remove the namespaces."""
        for name in (self.far, self.here):
            netns.delete(name)

    def ip(self, *lines):
        """Run `ip` commands in both routers."""
        netns.ip_batch(lines, self.here)
        self.dut.ip(*lines)

    def outcomes(self, name, probe):
        """Send a frame to both routers by the wire `name`. Returns the outcomes (router under test,
        Linux), each in the form of outcome()."""
        mine, its = self.dut.wires[name], self.wires[name]
        frame = bytes(probe)
        mine.send(frame)
        its.send(frame)
        self.dut.fence(mine)
        # The kernel handles the frames of one link in order, and no rule is about ARP.
        mac = b"\x02" + os.urandom(5)
        asks = {"hwsrc": mac.hex(":"), "psrc": mine.peer4, "pdst": mine.ip4}
        its.send(bytes(Ether(src=mine.mac, dst="ff:ff:ff:ff:ff:ff") / ARP(**asks)))
        its.expect(lambda data: data[:6] == mac, 2)
        self.dut.collector.catch_up()
        return outcome(self.dut.wires, probe), outcome(self.wires, probe)


def outcome(wires, probe):
    """Return the outcome of a probe: ("out", wire, TTL), ("icmp", wire, type, code), or
    ("nothing",)."""
    mark = token_of(probe)
    for name, wire in wires.items():
        for data in wire.got(mark):
            six = data[12:14] == b"\x86\xdd"
            packet = (IPv6 if six else IP)(data[14:])
            quoted = packet.nh == 58 if six else packet.proto == 1
            at = 54 if six else 14 + packet.ihl * 4
            if quoted and probe.payload.dst != packet.dst:
                return ("icmp", name, *struct.unpack("BB", data[at : at + 2]))
            if data[6:12] != wire_octets(wire.mac):
                return ("out", name, packet.hlim if six else packet.ttl)
    return ("nothing",)


def wire_octets(mac):
    """Return the octets of a MAC address."""
    return bytes.fromhex(mac.replace(":", ""))
