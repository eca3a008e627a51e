# SPDX-License-Identifier: BSD-3-Clause
"""Where packets are lost for want of room, and who counts them there: whoever outruns the cores
overruns rings. Such a loss is one of policy when a counter with a name tells of it, and no
greater than that tells."""

from lib import netns

REASONS = ("no_mbuf", "tx_full")  # the daemon's, that a packet in transit meets
PORT = ("rx_missed", "tx_errors")
DROPS = {"rx dropped": 3, "tx dropped": 11}  # columns of /proc/net/dev


def read(dataplane, ends):
    """{counter: value}: the daemon's, and the kernel's at `ends` of cables, each a namespace,
    an interface and a name for both."""
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
    """Those that have grown, and by how much; what was not there before began at 0."""
    return {k: v - before.get(k, 0) for k, v in after.items() if v > before.get(k, 0)}
