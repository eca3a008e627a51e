# SPDX-License-Identifier: BSD-3-Clause
"""Measure SIDs of SRv6 that have a next hop and an action each: the time until all are in force,
and their memory, for a tenth of them and for all of them. The time of each must not grow."""

from bench.fpm.figures import spread
from bench.fpm.ingest import fill
from lib import fpm_speaker as fpm

FIRST_ID = 1 << 20
SEG6LOCAL, ACTION, NH6 = 7, 1, 5  # LWTUNNEL_ENCAP_SEG6_LOCAL; SEG6_LOCAL_
END_X = 2


class Sids:
    """`n` SIDs of End.X, each for a neighbor of its own, as zebra sends them."""

    def __init__(self, n):
        self.n = n
        self.prefixes = {4: [], 6: [f"2001:db8:ff00::{i:x}/128" for i in range(1, n + 1)]}
        self.octets = b"".join(map(fpm.frame, self._messages()))

    def _messages(self):
        for i, prefix in enumerate(self.prefixes[6], FIRST_ID):
            neighbor = bytes.fromhex("20010db8000200000000000000") + i.to_bytes(3, "big")
            action = fpm.attr(ACTION, END_X) + fpm.attr(NH6, neighbor)
            yield fpm.nexthop_message(i, oif=1, encap=(SEG6LOCAL, action))
            yield fpm.route_message(prefix, nhid=i)


def sids(rig, n, reps):
    """Run the measurements."""
    for some in (n // 10, n):
        table, took, grown = Sids(some), [], []
        for _ in range(reps):
            _, (seconds, _), mib = fill(rig, table)
            shown = len(rig.control.ask("sids"))
            assert shown == some, f"{shown} of {some} SIDs have an end point"
            took.append(1000 * seconds)
            grown.append(mib)
        yield {"bench": "sids-in-force", "routes": some, "unit": "ms", **spread(took, 1)}
        yield {"bench": "sids-memory", "routes": some, "unit": "MiB", **spread(grown, 1)}
