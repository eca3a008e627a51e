# SPDX-License-Identifier: BSD-3-Clause
"""The steps of several claims: wait until zebra has a route and the FIB has it, and observe what
happens when a cable is pulled."""

import re

from lab import evidence
from lab.evidence import check, wait_for
from lib import netns, probe
from lib.wait import PATIENCE

FLOWS = 300


def in_fib(lab, *prefixes, vrf=None):
    """Wait until the FIB of a VRF, or of the main table, has these prefixes."""
    where = ["vrf", vrf] if vrf else []

    def missing():
        rows = {p: lab.dp.show("routes", p, "exact", *where) for p in prefixes}
        return [p for p in prefixes if not any(r["source"] in ("zebra", "kernel") for r in rows[p])]

    wait_for(
        f"{', '.join(prefixes)} in the FIB",
        lambda: not missing(),
        lambda: f"without {', '.join(missing())}",
        ("dataplane", "zebra", "bird"),
    )


def hops(lab, prefix, vrf=None):
    """Return the next hops of a route that zebra uses, by interface: an address, or None if
    on-link."""
    words = ("ipv6" if ":" in prefix else "ip") + " route"
    words += f" vrf {vrf}" if vrf else ""
    rows = lab.r1.json(f"show {words} {prefix} json").get(prefix, [])
    used = [hop for row in rows if row.get("selected") for hop in row["nexthops"]]
    # FRR 10.3 keeps a hop whose link is down, as "fib" without "active".
    return {hop["interfaceName"]: hop.get("ip") for hop in used if hop.get("fib") and hop.get("active")}


def by(lab, prefix, *names, vrf=None):
    """Wait until zebra uses a route by these interfaces and the FIB has it."""
    seen = lambda: hops(lab, prefix, vrf)  # noqa: E731
    wait_for(f"{prefix} by {', '.join(names)}", lambda: seen().keys() == set(names), seen)
    in_fib(lab, prefix, vrf=vrf)


def bgp_up(lab, *peers, vrf=None, router=None):
    """Wait until BGP of the box, or of another router, is Established with all `peers`."""
    states = lambda: {peer: (router or lab.r1).bgp_state(peer, vrf) for peer in peers}  # noqa: E731
    wait_for(
        "BGP Established",
        lambda: set(states().values()) == {"Established"},
        states,
        ("bgpd", "dataplane"),
    )


def ospf_full(lab, *taps):
    """Wait until OSPF and OSPFv3 are Full on these interfaces."""
    states = lambda: [lab.r1.ospf_states(family) for family in (4, 6)]  # noqa: E731
    wanted = [dict.fromkeys(taps, "Full")] * 2
    wait_for("OSPF Full", lambda: states() == wanted, states, ("ospfd", "ospf6d"))


def bfd_up(lab, peers):
    """Wait until BFD is up with all `peers`."""

    def states():
        rows = lab.r1.json("show bfd peers json")
        return {row["peer"]: row["status"] for row in rows}

    wanted = dict.fromkeys(peers, "up")
    wait_for("BFD up", lambda: states() == wanted, states, ("bfdd", "dataplane"))


def announced(lab, family):
    """Return the number of prefixes that isp1 announces to r1."""
    isp = lab.neighbors["isp1"]
    peer = "192.0.2.1" if family == 4 else "2001:db8:1::1"
    words = f"show bgp ipv{family} unicast neighbors {peer} advertised-routes json"
    return isp.json(words)["totalPrefixCounter"]


def refused(lab, node, address, router):
    """Wait until the router answers pings to an address with unreachable."""
    with probe.Stopwatch(lab.ns[node], address) as watch:
        told = wait_for(
            f"{address} unreachable, says r1",
            lambda: watch.first("unreachable", 0),
            lambda: "nothing",
            ("dataplane",),
        )
    check(told[1] == router, f"unreachable sent by {router}", told[1])


def cable(lab, tap, plugged):
    """Unplug the cable of a port, or plug it in."""
    netns.link_set(lab.ns["r1-dp"], "port-" + tap, plugged)


def pulled(lab, tap, other, node, routes, usual=()):
    """Pull the cable of `tap`, and check that packets take the port `other`. Plug it in again, and wait
    until the routes use the ports `usual` (default: `tap`). `routes`: the hosts that `node` pings, with
    the prefix of each."""
    took = evidence.silence(lab, node, routes, lambda: cable(lab, tap, False))
    for prefix in routes.values():  # if both ports were usual, a flow by `other` is never silent
        by(lab, prefix, other)
    seen = evidence.crossing(lab, node, routes, other)
    cable(lab, tap, True)
    for prefix in routes.values():
        by(lab, prefix, *(usual or [tap]))
    yield f"Cable of {tap} pulled, silent are {evidence.milliseconds(took)}, then by {other}. {seen}"


def spreads(lab, node, hosts, at, taps):
    """Check that flows use several ports, in both families."""
    for host in hosts:
        counts = evidence.spread(lab, node, host, FLOWS, at, taps)
        yield f"{FLOWS} flows to {host} arrive, {shares(counts)}."


def blackholed(lab, node, host, logs=()):
    """Ping a host once. Wait until r1 has dropped that packet by the reason blackhole, and check that
    there was no answer."""
    before = lab.dp.counter("drop", "blackhole")
    got, _ = probe.ping(lab.ns[node], host, 1, 1)
    silent = lambda: lab.dp.counter("drop", "blackhole") - before  # noqa: E731
    wait_for(f"the blackhole to drop a ping to {host}", silent, silent, logs)
    check((got, silent()) == (0, 1), "the blackhole to drop one ping", (got, silent()), logs)


def shares(counts):
    """Return the counts of spread() as text."""
    return ", ".join(f"{n} by {tap}" for tap, n in counts.items())


def echoes(lab, node):
    """Return the number of echo requests that a node received, of both families."""
    rows = [r.split() for r in netns.read_proc(lab.ns[node], "/proc/net/snmp").splitlines()]
    four = [r for r in rows if r[0] == "Icmp:"]
    six = dict(
        r.split() for r in netns.read_proc(lab.ns[node], "/proc/net/snmp6").splitlines()
    )
    return int(dict(zip(*four))["InEchos"]) + int(six["Icmp6InEchos"])


def too_long(lab, node, host, octets):
    """Return (the address that reports that a packet of `octets` is too long, the MTU it
    reports)."""
    size = octets - (48 if ":" in host else 28)
    argv = ["ping", "-n", "-c", "1", "-W", str(5 * PATIENCE), "-M", "do", "-s", str(size), host]
    said = netns.run(lab.ns[node], argv, check=False)
    found = re.search(
        r"From (\S+) icmp_seq=1 (?:Frag needed.*|Packet too big:.*)mtu ?= ?(\d+)", said
    )
    check(found, f"an answer that {octets} octets are too long", said, ("dataplane", "zebra"))
    return found[1], int(found[2])
