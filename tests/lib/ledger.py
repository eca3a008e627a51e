# SPDX-License-Identifier: BSD-3-Clause
"""The counters of packets that are lost because a ring is full. Rings overflow when a sender is
faster than the cores. A test accepts such a loss if a counter with a name reports it, and only up
to the value of that counter."""

from lib import netns

REASONS = ("no_mbuf", "tx_full")  # the daemon's drop reasons that a packet in transit can meet
PORT = ("rx_missed", "tx_errors")
DROPS = {"rx dropped": 3, "tx dropped": 11}  # columns of /proc/net/dev


def read(dataplane, ends):
    """Return {counter: value}: the daemon's, and the kernel's at `ends` of cables. An end is a
    namespace, an interface and a name for both."""
    seen = {f"drop {name}": dataplane.counter("drop", name) for name in REASONS}
    for name, row in dataplane.ports().items():
        seen |= {f"{name} {counter}": row[counter] for counter in PORT}
    for namespace, ifname, label in ends:
        text = netns.read_proc(namespace, "/proc/net/dev")
        rows = dict(line.split(":") for line in text.splitlines()[2:])
        words = {name.strip(): row.split() for name, row in rows.items()}[ifname]
        seen |= {f"{label} {k}": int(words[n]) for k, n in DROPS.items()}
    return seen


def grown(before, after):
    """Return the counters that have grown, with the difference. A counter that is not in `before`
    began at 0."""
    return {k: v - before.get(k, 0) for k, v in after.items() if v > before.get(k, 0)}
