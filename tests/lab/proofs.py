# SPDX-License-Identifier: BSD-3-Clause
"""What the demo claims, and how each claim is shown. Each proof returns a sentence with
numbers, or raises ProofError with what was expected and what was seen."""

import contextlib
import json
import time

from lab import topology
from lib import netns, probe
from lib.wait import Timeout, eventually

FLOWS = 600
CORE_ROUTES = 3  # of either family: core's loopback and two networks


class ProofError(Exception):
    """A claim that does not hold. `logs` are the programs whose logs may tell why."""

    def __init__(self, expected, seen, logs=()):
        super().__init__(f"expected {expected}; seen: {seen}")
        self.logs = logs


def check(condition, expected, seen, logs=()):
    """Raise ProofError unless `condition`."""
    if not condition:
        raise ProofError(expected, seen, logs)


# -- state that several proofs and the progress line read ---------------------------------


def tables(lab):
    """Routes per family: what zebra has selected, how much of that is BGP's and OSPF's,
    and what it has put into the FIB.

    Connected subnets are not counted here: the dataplane has those from the kernel, before
    zebra does (see connected()).
    """
    both = lab.r1.vtysh("show ip route summary json", "show ipv6 route summary json")
    decoder, at, found = json.JSONDecoder(), 0, {}
    fpm = lab.dp.fpm()
    for family in (4, 6):
        summary, at = decoder.raw_decode(both, both.index("{", at))
        counts = {row["type"]: row["fib"] for row in summary["routes"]}
        found[family] = {
            "zebra": summary["routesTotalFib"] - counts.get("connected", 0),
            "bgp": counts.get("ebgp", 0),
            "ospf": counts.get("ospf", 0) + counts.get("ospf6", 0),
            "static": counts.get("static", 0),
            "fib": fpm[f"zebra{family}"],
        }
    return found


def connected(lab, family):
    """Connected subnets: (how many zebra has, how many of those are in the FIB).

    fe80::/64 is left out: every interface has one, and none is ever routed.
    """
    words = "ip" if family == 4 else "ipv6"
    known = lab.r1.json(f"show {words} route connected json")
    known = {prefix for prefix in known if not prefix.startswith("fe80:")}
    there = 0
    for prefix in known:
        rows = lab.dp.show("routes", prefix, "exact")
        there += any(row["source"] in ("connected", "local") for row in rows)
    return len(known), there


def whole(state, n4, n6):
    """Is everything that isp and core announce in zebra, and all of that in the FIB?"""
    return (
        all(t["zebra"] == t["fib"] and t["ospf"] == CORE_ROUTES for t in state.values())
        and state[4]["bgp"] == n4
        and state[6]["bgp"] == n6
    )


def forwarded(lab):
    """Packets the dataplane has forwarded so far, both families."""
    return sum(
        n
        for (kind, name), n in lab.dp.counters().items()
        if kind == "total" and name.startswith("forwarded")
    )


# -- the proofs ---------------------------------------------------------------------------


def sessions(lab):
    """BGP Established, OSPF Full, and all of that through TAPs."""
    peer, links = topology.ISP4, {"core0": "Full", "core1": "Full"}
    logs = ("dataplane", "bgpd", "ospfd", "ospf6d")
    try:
        eventually(lambda: lab.r1.bgp_state(peer) == "Established", 30)
        eventually(lambda: lab.r1.ospf_states(4) == links, 30)
        eventually(lambda: lab.r1.ospf_states(6) == links, 30)
    except Timeout:
        states = [lab.r1.bgp_state(peer), lab.r1.ospf_states(4), lab.r1.ospf_states(6)]
        raise ProofError("BGP Established, OSPF Full within 30 s", states, logs) from None
    rows = json.loads(netns.command(["ip", "-n", lab.ns["r1"], "-d", "-j", "link"]))
    kinds = {row["ifname"]: row.get("linkinfo", {}).get("info_kind") for row in rows}
    del kinds["lo"]
    check(
        kinds == {tap: "tun" for tap, _, _ in topology.LINKS},
        "r1 to have nothing but TAPs",
        kinds,
    )
    carried = lab.dp.counter("punt", "local_control") + lab.dp.counter(
        "punt", "group_control"
    )
    check(carried > 0, "control packets carried to the TAPs", carried, logs)
    return (
        "BGP with isp is Established; OSPF and OSPFv3 with core are Full on core0 and "
        f"core1. r1 has only TAPs; the dataplane carried {carried:,} control packets up."
    )


def same_tables(lab, n4, n6):
    """Routes in the FIB = routes in zebra = what isp announced and what we configured."""
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
    lan, logs = lab.ns["lan"], ("dataplane",)
    some = lab.isp("sample", count=count, seed=seed)
    hosts = [row["host"] for family in ("ipv4", "ipv6") for row in some[family]]
    kernel, fast = netns.forwarded(lab.ns["r1"]), forwarded(lab)
    ports = lab.dp.ports()
    answers, best = 0, []
    for host in hosts:
        got, ms = probe.ping(lan, host)
        check(got == 3, f"3 answers from {host}", f"{got} answers", logs)
        answers += got
        best.append(ms)
    paths = {}
    for family, hop in (("ipv4", topology.R1_LAN4), ("ipv6", topology.R1_LAN6)):
        target = some[family][0]["host"]
        path = probe.traceroute(lan, target)
        check(path == [hop, target], f"traceroute {target} by {hop}", path, logs)
        paths[family] = f"{hop} > {target}"
    fast = forwarded(lab) - fast
    # There and back, each ping twice; traceroute's come on top.
    check(fast >= 2 * answers, f">= {2 * answers} packets forwarded", fast, logs)
    now = lab.dp.ports()
    out = now["wan0"]["tx_packets"] - ports["wan0"]["tx_packets"]
    check(out >= answers, f">= {answers} packets out of wan0", out, logs)
    kernel = tuple(b - a for a, b in zip(kernel, netns.forwarded(lab.ns["r1"])))
    check(kernel == (0, 0), "r1's kernel to forward nothing", kernel, logs)
    return (
        f"lan pings {len(hosts)} announced hosts ({answers} of {answers} answered, best "
        f"{min(best):.2f} ms). The dataplane forwarded {fast} packets, r1's kernel 0. "
        f"Traceroute {paths['ipv4']}, and {paths['ipv6']}."
    )


def both_links(lab):
    """Flows from lan to a prefix of core spread over both equal-cost links."""
    spoken, logs = [], ("dataplane", "ospfd", "ospf6d")
    for family, address in ((4, "198.51.100.130"), (6, "2001:db8:c0::130")):
        probe.ping(lab.ns["lan"], address, 1)  # neighbours are known from here on
        with contextlib.ExitStack() as stack:
            sinks = [
                stack.enter_context(probe.UdpSink(lab.ns["core"], address, device=dev))
                for _, role, dev in topology.LINKS
                if role == "core"
            ]
            sent = probe.udp_flows(lab.ns["lan"], address, FLOWS)
            try:
                eventually(lambda: sum(s.count() for s in sinks) >= sent, 3)
            except Timeout:
                raise ProofError(
                    f"{sent} packets at {address}", [s.count() for s in sinks], logs
                ) from None
            by_link = [sink.count() for sink in sinks]
        check(
            min(by_link) > sent / 4,
            f"a quarter of {sent} flows or more on each link",
            by_link,
            logs,
        )
        spoken.append(" + ".join(map(str, by_link)))
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
    """Milliseconds from withdraw to the first unreachable, from announce to an answer."""
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
