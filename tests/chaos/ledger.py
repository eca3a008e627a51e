# SPDX-License-Identifier: BSD-3-Clause
"""Where packets are lost for want of room, and who counts them there: a flood that outruns the
cores overruns rings. Such a loss is one of policy when a counter with a name tells of it, and
no greater than that tells."""

from lib import netns

REASONS = ("no_mbuf", "tx_full")  # the daemon's, that a packet in transit meets
PORT = ("rx_missed", "tx_errors")
DROPS = {"rx dropped": 3, "tx dropped": 11}  # columns of /proc/net/dev


def read(bed):
    """{counter: value}: the daemon's, and the kernel's at both ends of each cable."""
    seen = {f"drop {name}": bed.dp.counter("drop", name) for name in REASONS}
    for name, row in bed.dp.ports().items():
        seen |= {f"{name} {counter}": row[counter] for counter in PORT}
    for tap, role, dev in bed.plan.ports:
        for at, ifname in (("r1-dp", "port-" + tap), (role, dev)):
            text = netns.read_proc(bed.ns[at], "/proc/net/dev")
            rows = dict(line.split(":") for line in text.splitlines()[2:])
            words = {name.strip(): row.split() for name, row in rows.items()}[ifname]
            seen |= {f"{at} {ifname} {k}": int(words[n]) for k, n in DROPS.items()}
    return seen


def grown(before, after):
    """Those that have grown, and by how much."""
    return {k: v - before[k] for k, v in after.items() if v > before[k]}
