# SPDX-License-Identifier: BSD-3-Clause
"""A Linux router beside the device under test: the same wires, MACs, addresses, neighbors and
sysctls, and the kernel forwards.

    ctl: veths lan0 wan0 alt0 ext0       the router
    far: veths lan wan alt ext           the neighbors: raw sockets, no kernel addresses

A frame for one of the routers is also a frame for the other, octet by octet.
"""

from lib import netns
from lib.dut import SYSCTL
from lib.links import OFF, far_mac, port_mac
from wire import Collector, Wire, token_of

# Our router sends no redirects. The masks take ICMP errors out of the rate limits. For IPv4 a limit of 0,
# as SYSCTL has it, would also take the tokens of the errors about missing routes; for IPv6 it would
# leave the limit of all errors together, 50 in a burst.
MORE_SYSCTL = {
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
    "net.ipv4.icmp_ratelimit": 1000,
    "net.ipv4.icmp_ratemask": 0,
    "net.ipv6.icmp.ratemask": "\n",
}


class LinuxRouter:
    """A router of the kernel alone, with the wires of `dut`."""

    def __init__(self, dut):
        tag = dut.ctl.rpartition("-")[2]
        self.ctl, self.far = f"fdp-linux-{tag}", f"fdp-linuxfar-{tag}"
        self.dut, self.collector, self.wires = dut, Collector(), {}

    def build(self):
        """Make the namespaces and the wires."""
        for name in (self.ctl, self.far):
            netns.command(["ip", "netns", "add", name])
        netns.sysctl(self.far, {"net.ipv6.conf.default.disable_ipv6": 1})
        netns.sysctl(self.ctl, {**SYSCTL, **MORE_SYSCTL})
        netns.ip_batch(["link set lo up"], self.ctl)
        for n, name in enumerate(self.dut.names):
            netns.ip_batch(
                [
                    f"link add {name} index {100 + n} address {far_mac(n)} type veth "
                    f"peer name {name}0 address {port_mac(n)} netns {self.ctl}",
                    f"link set {name} up",
                ],
                self.far,
            )
            for where, ifname in ((self.far, name), (self.ctl, name + "0")):
                netns.run(where, ["ethtool", "-K", ifname, *OFF], check=False)
            self._give_addresses(self.dut.wires[name])
            wire = self.wires[name] = Wire(self.far, name)
            vars(wire).update(
                {k: v for k, v in vars(self.dut.wires[name]).items() if k not in vars(wire)}
            )
            wire.name = name
            self.collector.add(wire)

    def _give_addresses(self, wire):
        """Give an interface the addresses and the static neighbors that the wire's TAP has."""
        lines = [f"link set {wire.tap} up"]
        lines += [
            f"addr add {a} dev {wire.tap} nodad"
            for a in (f"{wire.ip4}/26", f"{wire.ip6}/64")
        ]
        lines += [
            f"neigh replace {peer} lladdr {wire.mac} dev {wire.tap} nud permanent"
            for peer in (wire.peer4, wire.peer6)
        ]
        self.ip(*lines)

    def ip(self, *lines):
        """Run `ip` commands in the router, in one process."""
        netns.ip_batch(lines, self.ctl)

    def sysctl(self, settings):
        """Set sysctls of the router."""
        netns.sysctl(self.ctl, settings)

    def fence(self, wire):
        """Return when the kernel has judged all frames sent on `wire` before: it forwards frames in
        order, and the fence is two more frames, because this thread may have changed its CPU."""
        out = self.wires["ext" if wire.name != "ext" else "lan"]
        for _ in range(2):
            probe = wire.probe(out.peer4)
            wire.send(probe)
            out.expect_raw(token_of(probe))
        self.collector.catch_up()

    def destroy(self):
        """Remove everything."""
        self.collector.close()
        netns.delete(self.far)
        netns.delete(self.ctl)
