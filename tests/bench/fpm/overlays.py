# SPDX-License-Identifier: BSD-3-Clause
"""Measure tunnels and VXLANs of the kernel: the time until forwarders send packets by the last of
them, and the memory of all. There are two times. `followed`: from the last message of the kernel, while
the daemon follows each message. `stopped`: the daemon is stopped until the kernel has made all links,
and the time is from its continuation on, so it contains all work of the daemon and none of the
kernel."""

import signal
import sys
import time

from bench.fpm.figures import spread
from bench.fpm.rig import FORWARDER, now
from lib import netns
from lib.wait import eventually

GROUP = 7  # `ip link del group` deletes many links at once
HOST = "198.51.100.9"
# The kinds of tunnels, which take turns: the words for ip, and the family of the outer header.
KINDS = (("sit", 4), ("ipip", 4), ("ip6gre", 6), ("ip6tnl mode any", 6), ("gre", 4))
PROBES = {
    "tunnels": "gre local 192.0.2.1 remote 192.0.2.2",
    "vnis": "vxlan id 1 local 192.0.2.1 dstport 4789",
}


class Tunnels:
    """`n` tunnels of all kinds, each to a far end of its own. The last one is GRE over IPv4, and a
    route leads to it."""

    what, mark = "tunnels", "t"

    def __init__(self, rig, n):
        wan = rig.wires["wan"]
        ends = {4: (wan.ip4, lambda i: f"198.18.{i >> 8}.{i & 255}"),
                6: (wan.ip6, lambda i: f"2001:db8:18::{i:x}")}  # fmt: skip
        self.n = n
        self.before = (f"route add 198.18.0.0/15 via {wan.peer4} dev wan0",
                       f"-6 route add 2001:db8:18::/48 via {wan.peer6} dev wan0")  # fmt: skip
        self.links = []
        for i in range(1, n + 1):
            words, family = KINDS[(i - n - 1) % len(KINDS)]
            local, remote = ends[family][0], ends[family][1](i)
            self.links.append(
                f"link add t{i} group {GROUP} up type {words} local {local} remote {remote}"
            )
        self.links.append(f"route add {HOST}/32 dev t{n}")
        self.entries = []


class Vnis:
    """`n` VNIs, as EVPN's type-5 routes need them: each a vxlan device below a bridge, with the
    neighbor and the entry of another router. A route leads to the last one."""

    what, mark = "vnis", "br"
    own, vtep, mac = "203.0.113.1", "203.0.113.66", "02:00:5e:00:53:99"

    def __init__(self, rig, n):
        wan = rig.wires["wan"]
        self.n = n
        self.before = (f"addr add {self.own}/32 dev lo",
                       f"route add {self.vtep}/32 via {wan.peer4} dev wan0")  # fmt: skip
        self.links, self.entries = [], []
        for i in range(1, n + 1):
            self.links += [
                f"link add br{i} group {GROUP} up type bridge",
                f"link add vx{i} group {GROUP} up master br{i} type vxlan id {i} local {self.own} "
                "dstport 4789 nolearning noudpcsum",
                f"neigh replace {self.vtep} lladdr {self.mac} dev br{i} nud noarp extern_learn",
            ]
            self.entries.append(f"fdb replace {self.mac} dev vx{i} dst {self.vtep}")
        self.links.append(f"route add {HOST}/32 via {self.vtep} dev br{n} onlink")


def why_not(what):
    """Return the reason for which this kernel has no such links, or None."""
    if netns.can_run(f"ip link add try0 type {PROBES[what]}"):
        return None
    return f"this kernel has no {PROBES[what].split()[0]}; make bench-tunnels-vm measures them in a guest"


def served(rig, links):
    """Return the number of these links by which forwarders send and receive."""
    rows = rig.control.ask("interfaces")
    return sum(r["name"].rstrip("0123456789") == links.mark and r["up"] and "rx_packets" in r for r in rows)


def control_s(rig):
    """Return the CPU seconds of the daemon without those of forwarders."""
    return sum(s for name, s in rig.cpu_s().items() if not name.startswith(FORWARDER))


def one(rig, kind, n, stopped):
    """Make all links with a new daemon. Return (ms, ms of the kernel, CPU ms, MiB)."""
    rig.fresh()
    links = kind(rig, n)
    rig.ip(*links.before)
    frame, wan, process = rig.probe(HOST), rig.wires["wan"], rig.daemon.process
    time.sleep(0.5)  # the rest of the start is not measured
    before, cpu, begin = rig.rss(), control_s(rig), now()
    try:
        if stopped:
            process.send_signal(signal.SIGSTOP)
        rig.ip(*links.links)
        if links.entries:
            netns.run(rig.ctl, ["bridge", "-batch", "-"], stdin="\n".join(links.entries) + "\n")
        told = now()
        process.send_signal(signal.SIGCONT)
        at = rig.wait_for(frame, wan, told)
        spent = control_s(rig) - cpu
        there = served(rig, links)
        assert there == n, f"{there} of {n} {links.what} are in force when packets leave by the last"
        time.sleep(1)  # the last grace periods
        mib = (rig.rss() - before) / 2**20
        return 1000 * (at - told), 1000 * (told - begin), 1000 * spent, mib
    finally:
        process.send_signal(signal.SIGCONT)
        netns.command(["ip", "-n", rig.ctl, "link", "del", "group", str(GROUP)], check=False)
        rig.ip(*(line.replace(" add ", " del ") for line in links.before))
        eventually(lambda: served(rig, links) == 0, 60, 0.1, "no links")


def overlays(rig, kind, n, reps):
    """Run the measurements of a kind of links."""
    reason = why_not(kind.what)
    if reason:
        print(f"bench-fpm: {kind.what}: not measured: {reason}", file=sys.stderr)
        return
    for mode in ("followed", "stopped"):
        took, kernel, cpu, grown = zip(*(one(rig, kind, n, mode == "stopped") for _ in range(reps)))
        count = {kind.what: n, "daemon": mode}
        yield {"bench": f"{kind.what}-in-force", **count, "unit": "ms", **spread(took, 1),
               "kernel_ms": spread(kernel, 0), "cpu_ms": spread(cpu, 0)}  # fmt: skip
        yield {"bench": f"{kind.what}-memory", **count, "unit": "MiB", **spread(grown, 1)}
