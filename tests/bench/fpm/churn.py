# SPDX-License-Identifier: BSD-3-Clause
"""Change groups and adjacencies millions of times, and check the memory of the daemon. The changes
are as many as an unsteady network makes in a week."""

import ipaddress

from bench.fpm.rig import Pour, now
from lib import fpm_speaker as fpm
from lib.wait import eventually

# So many groups that few of them change twice between two commits of the RIB.
GROUPS, FIRST = 2000, 5000  # groups; the first id of their next hops
ROUNDS = 8  # changes of all groups in the octets, which are sent repeatedly
GATEWAYS = 4000  # on each of three links; half of all are in use at a time
PARTS = 20  # number of times that the memory is read
WARM = 4  # reads that do not count: later the queue has its largest size, which malloc keeps


class Unsteady:
    """Groups of two next hops, each with a route. In a round each group exchanges a member, and
    one of its next hops gets another gateway, so that adjacencies come and go."""

    def __init__(self, rig):
        self.hops = []
        for out in (rig.wires[name] for name in ("wan", "alt", "ext")):
            first = ipaddress.IPv6Address(out.peer6) + 0x10000
            gateways = [str(first + n) for n in range(GATEWAYS)]
            self.hops += [(gateway, rig.ifindex(out)) for gateway in gateways]
            rig.ip(*(
                f"neigh replace {gateway} lladdr {out.mac} dev {out.tap} nud permanent"
                for gateway in gateways
            ))  # fmt: skip
        octets = b""
        for g in range(GROUPS):
            for member in range(3):
                octets += self.hop(g, member, 3 * g + member)
            octets += self.group(g, 0)
            octets += fpm.frame(fpm.route_message(f"2001:db8:{0x8000 + g:x}::/48", nhid=self.group_id(g)))
        rig.speaker.send_raw(octets)
        self.octets = b"".join(
            self.hop(g, r % 3, 3 * g + r % 3 + r * 1511) + self.group(g, r % 3)
            for r in range(ROUNDS)
            for g in range(GROUPS)
        )
        self.changes = 2 * ROUNDS * GROUPS

    def group_id(self, g):
        """Return the id of a group."""
        return FIRST + 10 * g

    def hop(self, g, member, n):
        """Return the frame that gives a group's next hop the gateway number n."""
        gateway, oif = self.hops[n % len(self.hops)]
        nhid = self.group_id(g) + 1 + member
        return fpm.frame(fpm.nexthop_message(nhid, gateway=gateway, oif=oif))

    def group(self, g, without):
        """Return the frame that gives a group two of its three next hops."""
        first = self.group_id(g) + 1
        members = {first + m: 1 for m in range(3) if m != without}
        return fpm.frame(fpm.group_message(self.group_id(g), members))


def rss_mib(rig):
    """Return the resident set of the daemon."""
    with open(f"/proc/{rig.daemon.process.pid}/status", encoding="ascii") as file:
        line = next(x for x in file if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def churn(rig, changes):
    """Yield the line of a run with about that many changes."""
    rig.fresh()
    rig.connect()
    unsteady = Unsteady(rig)
    eventually(lambda: rig.fpm()["zebra6"] == GROUPS, 30, what="routes are there")
    times = max(PARTS, changes // unsteady.changes)
    sizes, begin, before = [], now(), rig.fpm()
    for part in range(PARTS):
        for _ in range(times * part // PARTS, times * (part + 1) // PARTS):
            pour = Pour(rig.speaker.socket, unsteady.octets)
            while not pour.done_at:
                pour.step()
        eventually(lambda: rig.fpm()["queue_bytes"] == 0, 60, 0.01, "all applied")
        sizes.append(rss_mib(rig))
    seconds = now() - begin
    differences = rig.control.ask("audit")[-1]["differences"]
    yield {
        "bench": "churn",
        "changes": times * unsteady.changes,
        "seconds": round(seconds, 1),
        "changes_s": round(times * unsteady.changes / seconds),
        "rss_first_mib": round(sizes[WARM], 2),
        "rss_last_mib": round(sizes[-1], 2),
        "rss_max_mib": round(max(sizes[WARM:]), 2),
        "group_writes": rig.fpm()["group_writes"] - before["group_writes"],
        "differences": differences,
    }
