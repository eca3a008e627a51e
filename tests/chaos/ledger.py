# SPDX-License-Identifier: BSD-3-Clause
"""The counters of lib/ledger.py for the lab: the daemon's, and both ends of each cable."""

from lib import ledger
from lib.ledger import grown

__all__ = ["grown", "read"]


def read(bed):
    """Return the present {counter: value}."""
    ends = []
    for tap, role, dev in bed.plan.ports:
        for at, ifname in (("r1-dp", "port-" + tap), (role, dev)):
            ends.append((bed.ns[at], ifname, f"{at} {ifname}"))
    return ledger.read(bed.dp, ends)
