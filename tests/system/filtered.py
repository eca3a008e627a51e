# SPDX-License-Identifier: BSD-3-Clause
"""A router that obeys an nft table, and a Linux router beside it with the same rules."""

import contextlib
import ipaddress
import json
import os
import re

from scapy.layers.l2 import ARP, Ether

import filter_random
from lib import netns
from lib.wait import eventually
from linux_router import LinuxRouter
from router import is_icmp_error, running
from wire import token_of

TABLE = "inet transit"
FORWARD = "chain forward {{ type filter hook forward priority 0; policy {policy};\n{rules}\n}}"

CONFIG = """\
filter: {table: "inet transit"}
policers:
  icmp4-unreach: {rate: unlimited, source-rate: unlimited}
  icmp6-unreach: {rate: unlimited, source-rate: unlimited}
  icmp4-ttl: {rate: unlimited, source-rate: unlimited}
  icmp6-ttl: {rate: unlimited, source-rate: unlimited}
fpm:
"""


@contextlib.contextmanager
def filtered(router, *edits):
    """Run a router that obeys TABLE, and a Linux router beside it, with routes to the targets of random
    packets."""
    with running(router, *edits, ("fpm:\n", CONFIG)) as dut:
        pair = Filtered(dut)
        try:
            pair.linux.build()
            for prefix, wire in filter_random.ROUTES.items():
                pair.route(prefix, wire)
            yield pair
        finally:
            pair.close()


class Filtered:
    """Two routers that get the same routes, the same rules and the same frames."""

    def __init__(self, dut):
        self.dut, self.linux = dut, LinuxRouter(dut)

    def close(self):
        """Remove the Linux router."""
        self.linux.destroy()

    def status(self):
        """Return the row of the ruleset."""
        return self.dut.control.ask("filter")[0]

    def rules(self):
        """Return the rows of rules."""
        return [r for r in self.dut.control.ask("filter") if r["kind"] == "rule"]

    def builds(self):
        """Return how often the table was read and a ruleset built."""
        with open(self.dut.log_file, encoding="utf-8", errors="replace") as file:
            return file.read().count("filter: ruleset in force")

    def nft(self, text, linux=True):
        """Run nft commands in one transaction. Wait until the dataplane has read the result. Return the
        row of the ruleset."""
        before = self.status()["generation_read"]
        netns.run(self.dut.ctl, ["nft", "-f", "-"], stdin=text)
        if linux:
            netns.run(self.linux.ctl, ["nft", "-f", "-"], stdin=text)

        tables = netns.run(self.dut.ctl, ["nft", "list", "tables"]).splitlines()

        def read():
            row = self.status()
            gone = row["state"] == "absent" and f"table {TABLE}" not in tables
            return (row["generation_read"] != before or gone) and row

        row = eventually(read, 20, 0.005, "the ruleset is read")
        # A forwarder may be within a round that began with the previous ruleset.
        self.dut.fence(self.dut.wires["lan"])
        return row

    def load(self, chains, linux=True):
        """Replace the whole table."""
        return self.nft(replacement(chains), linux)

    def route(self, prefix, name):
        """Add a route by the neighbor on a wire, in both routers."""
        wire = self.dut.wires[name]
        family = 6 if ":" in prefix else 4
        self.linux.ip(f"{'-6 ' * (family == 6)}route replace {prefix} via {wire.peer(family)}")
        self.dut.route(prefix, via=wire.peer(family), wire=wire)

    def kernel_rules(self):
        """Return {handle: (packets, octets)} of the rules of Linux that have a counter."""
        argv = ["nft", "-j", "-a", "list", "table", *TABLE.split()]
        found = {}
        for row in json.loads(netns.run(self.linux.ctl, argv))["nftables"]:
            rule = row.get("rule")
            for expr in rule["expr"] if rule else []:
                # nft 1.0.6 prints a jump to a chain without a name as text.
                if isinstance(expr, dict) and isinstance(expr.get("counter"), dict):
                    c = expr["counter"]
                    found[rule["handle"]] = (c["packets"], c["bytes"])
        return found

    def answers(self, frames, wire="lan"):
        """Send frames into a wire of both routers. Return for each of them (frames that leave Linux,
        frames that leave our router)."""
        found = []
        for router, fence in ((self.linux, self._fence_linux), (self.dut, self.dut.fence)):
            router.wires[wire].send(*frames)
            fence(router.wires[wire])
            came = _came_out(router)
            found.append([sorted(came.get(token_of(frame), ())) for frame in frames])
        for router in (self.linux, self.dut):
            for one in router.wires.values():
                one.clear()
        return list(zip(*found))

    def _fence_linux(self, wire):
        """Return when Linux has judged the frames sent on `wire` before. Linux handles frames in order,
        so its answer to an ARP request, which no rule concerns, comes after them."""
        for _ in range(2):
            mac = b"\x02" + os.urandom(5)
            ask = ARP(hwsrc=mac.hex(":"), psrc=wire.peer4, pdst=wire.ip4)
            wire.send(bytes(Ether(src=wire.mac, dst="ff:ff:ff:ff:ff:ff") / ask))
            wire.expect(lambda data, mac=mac: data[:6] == mac, 2)
        self.linux.collector.catch_up()


def replacement(chains):
    """Return the nft commands that replace the whole table."""
    return f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n{chains}\n}}\n"


def _came_out(router):
    """Return {token: frames that carry it, as texts}."""
    found = {}
    for name, wire in router.wires.items():
        for data in wire.got():
            found.setdefault(token_of(data), []).append(f"{name}: {_text(data)}")
    return found


def _text(data):
    """Return a frame as text: an ICMP error by its fields and the header that it quotes."""
    if not is_icmp_error(data):
        return data.hex()
    six = data[12:14] == b"\x86\xdd"
    at = (54 if six else 14 + (data[14] & 15) * 4) + 8
    addresses = data[22:54] if six else data[26:34]
    src, dst = (ipaddress.ip_address(addresses[i:][: len(addresses) // 2]) for i in (0, len(addresses) // 2))
    quoted = data[at : at + (40 if six else 20)].hex()
    return f"ICMP {data[at - 8]}/{data[at - 7]} {src} > {dst} at {data[:6].hex(':')} about {quoted}"


def chain(*rules, policy="accept"):
    return FORWARD.format(policy=policy, rules="\n".join(rules))


def passes(both, probe, wire="lan"):
    """Return True if a probe leaves by any wire."""
    both.dut.wires[wire].send(probe)
    both.dut.fence(both.dut.wires[wire])
    mark = token_of(probe)
    return any(
        not is_icmp_error(data) for w in both.dut.wires.values() for data in w.got(mark)
    )


def metric(both, name):
    """Return the value of a metric without labels."""
    text = both.dut.metrics_page()
    return float(re.search(rf"^fpmdp_{name} (\S+)$", text, re.M)[1])


def explained(frame, kernel, ours):
    """Return True if a difference has a known reason: our router does not check the checksum of the
    upper layer before it sends an ICMP error."""
    return kernel == [] and "ICMP" in ours[0] and filter_random.checksum_is_wrong(frame)
