# SPDX-License-Identifier: BSD-3-Clause
"""Make zebra's messages as octets beforehand: a full table, and one prefix that moves."""

from bench.fpm.rig import N_HOPS, gateways4, gateways6
from lab import routes
from lib import fpm_speaker as fpm

MARKER, MARKER_HOST = "198.51.100.0/24", "198.51.100.9"
ANCHORS = ("203.0.113.0/25", "203.0.113.128/25")  # keep the marker's next hops in use


class Table:
    """A full table: ids, groups, and routes in the order of addresses as zebra replays them, or
    shuffled as BGP brings them. Each route has one of the next hops or groups."""

    def __init__(self, rig, n4, n6, order="sorted"):
        self.rig, self.order, self.n = rig, order, n4 + n6
        arrange = sorted if order == "sorted" else list
        self.prefixes = {4: arrange(routes.table4(n4)), 6: arrange(routes.table6(n6))}
        parts = [*self._ids(), self._routes(4, 1000), self._routes(6, 2000)]
        self.octets = b"".join(parts)

    def _ids(self):
        """Make next hops by wan, alt and ext in turn, all different, and a group of each next hop and
        the following one."""
        outs = [self.rig.wires[name] for name in ("wan", "alt", "ext")]
        index = {out.name: self.rig.ifindex(out) for out in outs}
        for base, gateways in ((1000, gateways4), (2000, gateways6)):
            each = {out.name: iter(gateways(out)) for out in outs}
            for n in range(N_HOPS):
                out = outs[n % 3]
                gateway, oif = next(each[out.name]), index[out.name]
                yield fpm.frame(fpm.nexthop_message(base + n, gateway=gateway, oif=oif))
            for n in range(N_HOPS):
                members = {base + n: 1, base + (n + 1) % N_HOPS: 1}
                yield fpm.frame(fpm.group_message(base + N_HOPS + n, members))

    def _routes(self, family, base):
        ids = range(base, base + 2 * N_HOPS)
        return fpm.table_stream(self.prefixes[family], family, ids, pick=way_of)


def way_of(prefix):
    """Return one of the ids. It depends only on the prefix, not on the order."""
    return (prefix * 0x9E3779B97F4A7C15 >> 40) % (2 * N_HOPS)


class Marker:
    """One prefix that moves between two next hops. When it has moved, all earlier messages are in
    force."""

    NHID = 10
    ROUTES = 1 + len(ANCHORS)

    def __init__(self, rig):
        self.rig, self.at = rig, 0
        self.outs = [rig.wires["wan"], rig.wires["alt"]]
        self.frame = rig.probe(MARKER_HOST)

    def ids(self):
        """Return frames that announce the two next hops, and for each a route that keeps it in use."""
        octets = b""
        for n, out in enumerate(self.outs):
            nhid, oif = self.NHID + n, self.rig.ifindex(out)
            octets += fpm.frame(fpm.nexthop_message(nhid, gateway=out.peer4, oif=oif))
            octets += fpm.frame(fpm.route_message(ANCHORS[n], nhid=nhid))
        return octets

    def move(self):
        """Return the frame that moves the prefix. `out` is its wire from then on."""
        self.at = 1 - self.at
        return fpm.frame(fpm.route_message(MARKER, nhid=self.NHID + self.at))

    @property
    def out(self):
        """Return the wire by which packets to the prefix leave."""
        return self.outs[self.at]

    def wait(self, since):
        """Send probes. Return the time when the first one after `since` left by the present wire."""
        return self.rig.wait_for(self.frame, self.out, since)

    def settle(self):
        """Announce the prefix, move it once, and wait until frames show the move, so that caches
        have the path."""
        octets = self.ids() + self.move()
        for out in self.outs:
            out.drain()
        self.rig.speaker.send_raw(octets)
        self.wait(0.0)
