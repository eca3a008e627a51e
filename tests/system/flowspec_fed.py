# SPDX-License-Identifier: BSD-3-Clause
"""A helper of flow specifications with a clock, a table and an FRR that the test controls."""

import ipaddress
import json
import struct
import sys

from lib.flowspec import FOLDER

sys.path.insert(0, FOLDER)

from fpm_flowspec import helper  # noqa: E402


class NoTable:
    """Takes the place of the nft table."""

    want, changed, loads = None, False, 0

    def touched(self):
        """Return true if another program has changed the table."""
        return self.changed

    def load(self, want):
        """Keep the rules."""
        self.want, self.changed, self.loads = want, False, self.loads + 1

    def check(self, want):
        """Keep the rules."""
        self.want = want


class Fed:
    """A helper with a clock, a table and an FRR that the test controls, and one peer."""

    def __init__(self, tmp_path, ask, **options):
        self.now, self.table = 100.0, NoTable()
        options = helper.Options(folder=str(tmp_path), **options)
        self.helper = helper.Helper(options, self.table, ask, lambda: self.now)

    def flow(self, nlri, path=(65001,), withdraw=False, act="8006000000000000"):
        """Announce or withdraw a flow, which drops unless `act` is another extended community."""
        if withdraw:
            unreach = bytes.fromhex("000185") + bytes([len(nlri)]) + nlri
            attributes = b"\x80\x0f" + bytes([len(unreach)]) + unreach
        else:
            reach = bytes.fromhex("0001850000") + bytes([len(nlri)]) + nlri
            attributes = b"\x80\x0e" + bytes([len(reach)]) + reach + bytes([0x40, 2, 2 + 4 * len(path), 2, len(path)])
            attributes += struct.pack(f"!{len(path)}I", *path) + bytes.fromhex("c01008" + act)
        body = b"\0\0" + struct.pack("!H", len(attributes)) + attributes
        message = {"category": 2, "body": body.hex()}
        self.event("update", message=message)

    def event(self, kind, **facts):
        """Hand an event of ExaBGP to the helper."""
        neighbor = {"address": {"peer": "127.0.0.1"}, **facts}
        self.helper.line(json.dumps({"type": kind, "neighbor": neighbor}))

    def wait(self, seconds):
        """Let the time pass. Meanwhile the helper does its work whenever it is due."""
        end = self.now + seconds
        while (due := self.helper.wait_s()) is not None and self.now + due <= end:
            self.now += due
            self.helper.on_time()
        self.now = end

    def status(self):
        """Return the content of the status file."""
        with open(self.helper.options.status, encoding="utf-8") as file:
            return json.load(file)

    def states(self):
        """Return {match: None if it is installed, or the reason}."""
        return {str(route.flow): reason for route, _, reason in self.helper.states()}


class Frr:
    """Answers `show bgp` from {prefix: AS path} of unicast routes. The next hop of a path that is a tuple
    cannot be reached."""

    def __init__(self, routes):
        self.routes = routes

    def __call__(self, commands, *_):
        return [self._one(command.split()) for command in commands]

    def _one(self, words):
        asked = ipaddress.ip_network(words[4])
        nets = {ipaddress.ip_network(p): path for p, path in self.routes.items()}
        if "longer-prefixes" in words:
            below = {n: path for n, path in nets.items() if n.version == asked.version and n.subnet_of(asked)}
            rows = {n: {"path": " ".join(map(str, path))} for n, path in below.items()}
            # FRR leaves the key out of a path that it does not use.
            rows = {n: row if isinstance(below[n], tuple) else {"valid": True, **row} for n, row in rows.items()}
            return {"routes": {str(n): [row] for n, row in rows.items()}}
        some = [n for n in nets if n.version == asked.version and asked.subnet_of(n)]
        if "/" in words[4]:
            some = [n for n in some if n == asked]
        if not some:
            return {}
        best = max(some, key=lambda n: n.prefixlen)
        segments = [{"type": "as-sequence", "list": list(nets[best])}] if nets[best] else []
        used = {} if isinstance(nets[best], tuple) else {"bestpath": {"overall": True}}
        return {"prefix": str(best), "paths": [{**used, "aspath": {"segments": segments}}]}


def host(number):
    """Return the octets of a flow to 198.51.100.NUMBER."""
    return bytes([1, 32, 198, 51, 100, number])
