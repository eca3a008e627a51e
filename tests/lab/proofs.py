# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the demo and their proofs. Each proof returns a sentence with numbers, or raises
ProofError (see evidence.py)."""

import json
import time

from lab import evidence, topology
from lab.evidence import ProofError, check
from lib import probe
from lib.wait import Timeout, eventually

FLOWS = 600
# Core's loopback and two networks, in each family. From FRR 10 on ospf6d also announces the
# addresses of point-to-point links.
CORE_ROUTES = 3


# -- state that several proofs and the progress line read ---------------------------------


def tables(lab):
    """Return for each family the number of routes that zebra has selected, how many of them are
    routes of BGP and OSPF and static routes, and how many of zebra's routes the FIB has.

    Connected subnets, and own addresses, which are routes of their own from FRR 10 on, are not
    counted here: the dataplane has those from the kernel, before zebra does (see connected()).
    """
    both = lab.r1.vtysh("show ip route summary json", "show ipv6 route summary json")
    decoder, at, found = json.JSONDecoder(), 0, {}
    fpm = lab.dp.fpm()
    for family in (4, 6):
        summary, at = decoder.raw_decode(both, both.index("{", at))
        counts = {row["type"]: row["fib"] for row in summary["routes"]}
        found[family] = {
            "zebra": summary["routesTotalFib"]
            - counts.get("connected", 0)
            - counts.get("local", 0),
            "bgp": counts.get("ebgp", 0),
            "ospf": counts.get("ospf", 0) + counts.get("ospf6", 0),
            "static": counts.get("static", 0),
            "fib": fpm[f"zebra{family}"],
        }
    return found


def connected(lab, family):
    """Return the number of connected subnets: (in zebra, of those in the FIB).

    fe80::/64 is left out: every interface has one, and it is never routed.
    """
    words = "ip" if family == 4 else "ipv6"
    known = lab.r1.json(f"show {words} route connected json")
    known = {prefix for prefix in known if not prefix.startswith("fe80:")}
    there = 0
    for prefix in known:
        rows = lab.dp.show("routes", prefix, "exact")
        there += any(row["source"] in ("connected", "local") for row in rows)
    return len(known), there


def whole(state, n4, n6, ospf=CORE_ROUTES):
    """Return True if zebra has all routes that isp and core announce, and the FIB has all of
    these."""
    return (
        all(t["zebra"] == t["fib"] and t["ospf"] >= ospf for t in state.values())
        and state[4]["bgp"] == n4
        and state[6]["bgp"] == n6
    )


# -- the proofs ---------------------------------------------------------------------------


def sessions(lab):
    """BGP is Established and OSPF is Full, and all their packets pass the TAPs."""
    peer, links = topology.ISP4, {"core0": "Full", "core1": "Full"}
    logs = ("dataplane", "bgpd", "ospfd", "ospf6d")
    try:
        eventually(lambda: lab.r1.bgp_state(peer) == "Established", 30)
        eventually(lambda: lab.r1.ospf_states(4) == links, 30)
        eventually(lambda: lab.r1.ospf_states(6) == links, 30)
    except Timeout:
        states = [lab.r1.bgp_state(peer), lab.r1.ospf_states(4), lab.r1.ospf_states(6)]
        raise ProofError("BGP Established, OSPF Full within 30 s", states, logs) from None
    carried = evidence.only_taps(lab)
    return (
        "BGP with isp is Established; OSPF and OSPFv3 with core are Full on core0 and "
        f"core1. r1 has only TAPs; the dataplane carried {carried:,} control packets up."
    )


def same_tables(lab, n4, n6):
    """The FIB has the routes of zebra, and zebra has the announced and the configured routes."""
    logs = ("dataplane", "zebra", "isp")

    def settled():
        now = tables(lab)
        return now if whole(now, n4, n6) else None

    try:
        now = eventually(settled, 20, every=0.25)
    except Timeout:
        raise ProofError(
            f"zebra = FIB, {n4:,} + {n6:,} routes by BGP, {CORE_ROUTES} each by OSPF",
            tables(lab),
            logs,
        ) from None
    spoken = []
    for family, t in now.items():
        subnets, there = connected(lab, family)
        check(
            there == subnets,
            f"{subnets} connected IPv{family} subnets in the FIB",
            there,
            logs,
        )
        spoken.append(
            f"IPv{family}: {t['zebra'] + subnets:,} routes in zebra, "
            f"{t['fib'] + there:,} of them in the FIB ({t['bgp']:,} BGP, {t['ospf']} OSPF, "
            f"{t['static']} static, {subnets} connected)"
        )
    return "; ".join(spoken) + "."


def reachable(lab, seed, count=5):
    """Ping and traceroute to announced prefixes cross the dataplane, not the kernel."""
    some = lab.isp("sample", count=count, seed=seed)
    hosts = [row["host"] for family in ("ipv4", "ipv6") for row in some[family]]
    targets = [some[family][0]["host"] for family in ("ipv4", "ipv6")]
    seen = evidence.crossing(lab, "lan", hosts, "wan0")
    paths = [
        evidence.path(lab, "lan", target, [hop, target])
        for target, hop in zip(targets, (topology.R1_LAN4, topology.R1_LAN6))
    ]
    return f"lan pings {len(hosts)} announced hosts: {seen} Traceroute {paths[0]}, and {paths[1]}."


def both_links(lab):
    """Flows from lan to a prefix of core use both equal-cost links."""
    spoken = []
    for address in ("198.51.100.130", "2001:db8:c0::130"):
        links = ("core0", "core1")
        by_link = evidence.spread(lab, "lan", address, FLOWS, "core", links)
        spoken.append(" + ".join(map(str, by_link.values())))
    return (
        f"{FLOWS} flows from lan to core, each family, all arrive, by core0 + core1: "
        f"IPv4 {spoken[0]}, IPv6 {spoken[1]}."
    )


def withdrawal(lab, seed):
    """A withdrawn prefix is unreachable at once, and comes back when announced again."""
    some, spoken = lab.isp("lonely", count=1, seed=seed), []
    for family in ("ipv4", "ipv6"):
        prefix, host = some[family][0]["prefix"], some[family][0]["host"]
        gone, back = _withdraw_once(lab, prefix, host)
        spoken.append(f"{prefix}: gone after {gone:.0f} ms, back after {back:.0f} ms")
    return (
        "a prefix that isp withdraws is answered with ICMP unreachable by r1, and works "
        "again when announced. " + "; ".join(spoken) + "."
    )


def _withdraw_once(lab, prefix, host):
    """Return the ms from the withdrawal to the first unreachable, and from the announcement to the
    first answer."""
    logs = ("dataplane", "bgpd", "isp")
    steps = {"start": "reply", "withdraw": "unreachable", "announce": "reply"}
    with probe.Stopwatch(lab.ns["lan"], host) as watch:
        for verb, what in steps.items():
            since = time.monotonic()
            if verb != "start":
                since = lab.isp(verb, prefixes=[prefix])["t"]
            try:
                seen = eventually(lambda w=what, s=since: watch.first(w, s), 5, every=0.002)
            except Timeout:
                raise ProofError(
                    f"{what} from {host} within 5 s of {verb}", "nothing", logs
                ) from None
            if verb == "withdraw":
                router = topology.R1_LAN4 if "." in host else topology.R1_LAN6
                check(seen[1] == router, f"unreachable sent by {router}", seen[1], logs)
                gone = 1000 * (seen[0] - since)
                time.sleep(0.2)
                late = watch.first("reply", seen[0] + 0.1)
                check(late is None, f"no answer from {host} any more", late, logs)
    return gone, 1000 * (seen[0] - since)
