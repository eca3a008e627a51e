# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios whose routes come from the kernel's tables, without zebra (see
claims.py)."""

import signal

from lab import evidence, proofs, steps, topology
from lab.evidence import check, wait_for
from lib import netns

LOGS = ("dataplane", "bird")


def by(lab, prefix, *names):
    """Wait until the FIB has a route by these interfaces and no others, and all its gateways are
    resolved. Packets to an unresolved gateway would wait in a queue that has room for few."""

    def hops():
        return [hop for row in lab.dp.show("routes", prefix, "exact") for hop in row["nexthops"]]

    def seen():
        return sorted(hop["dev"] for hop in hops())

    def unresolved():
        known = {(row["dev"], row["address"]) for row in lab.dp.show("neighbors") if row["mac"]}
        return {(hop["dev"], hop["via"]) for hop in hops() if hop["via"]} - known

    wait_for(f"{prefix} by {', '.join(names)}", lambda: seen() == sorted(names), seen, LOGS)
    wait_for(f"the gateways of {prefix} to be resolved", lambda: not unresolved(), unresolved, LOGS)


def kernel_static(lab):
    """r1 forwards by the routes that `ip` wrote into the kernel, and follows each change."""
    hosts, links = ["198.51.100.9", "2001:db8:c0::9"], ("wan0", "wan1")
    defaults = ("0.0.0.0/0", "::/0")
    for prefix in defaults:
        by(lab, prefix, *links)
    for host in hosts:
        counts = evidence.spread(lab, "h1", host, steps.FLOWS, ("gw1", "gw2"), links)
        yield f"{steps.FLOWS} flows to {host} arrive, {steps.shares(counts)}."

    steps.in_fib(lab, "203.0.113.0/26", "203.0.113.64/26", "2001:db8:bad::/48")
    steps.refused(lab, "h1", "203.0.113.70", "192.0.2.129")
    for host in ("203.0.113.9", "2001:db8:bad::9"):
        steps.blackholed(lab, "h1", host, LOGS)
    yield "An unreachable prefix is answered by r1, blackholed ones of both families are silence."

    _ip(lab, "route add 203.0.113.192/26 via 192.0.2.2")
    by(lab, "203.0.113.192/26", "wan0")  # until then the default route leads there, by both
    seen = evidence.crossing(lab, "h1", ["203.0.113.200"], "wan0")
    _ip(lab, "route replace 203.0.113.192/26 via 192.0.2.6")
    by(lab, "203.0.113.192/26", "wan1")
    seen = evidence.crossing(lab, "h1", ["203.0.113.200"], "wan1")
    _ip(lab, "route del 203.0.113.192/26")
    _ip(lab, "route add unreachable 203.0.113.192/26")
    steps.refused(lab, "h1", "203.0.113.200", "192.0.2.129")
    _ip(lab, "route del unreachable 203.0.113.192/26")
    yield f"A route that `ip` adds, moves to gw2 and deletes is followed. {seen}"

    took = evidence.silence(lab, "h1", hosts, lambda: steps.cable(lab, "wan0", False))
    for prefix in defaults:
        by(lab, prefix, "wan1")
    seen = evidence.crossing(lab, "h1", hosts, "wan1")
    yield f"Cable of wan0 pulled, silent are {evidence.milliseconds(took)}, then by wan1. {seen}"
    steps.cable(lab, "wan0", True)
    wait_for("the carrier of wan0", lambda: lab.dp.ports()["wan0"]["link"] == "up", lab.dp.ports)
    lab.plan.configure(lab.ns["r1"])
    for prefix in defaults:
        by(lab, prefix, *links)
    yield (
        "The kernel has deleted the next hops of wan0. Plugged in again, and after `ip -batch r1.ip`, "
        "the default routes have both gateways."
    )


def bird_edge(lab):
    """BIRD writes its routes into the kernel, and the dataplane follows it, also when it dies."""
    # The speaker listens after it has made its table; for a million routes that takes seconds.
    told = wait_for("the BGP speaker answers", lambda: lab.isp("status"), lambda: "nothing", (), 60)
    _bird_up(lab)
    yield "BGP with isp is Established; OSPF and OSPFv3 with core run on core0 and core1."
    n4, n6 = told["routes4"], told["routes6"]
    steps.in_fib(lab, *topology.CORE_NETS4, *topology.CORE_NETS6)
    state = wait_for(
        f"{n4:,} + {n6:,} routes of isp in BIRD and in the FIB",
        lambda: _whole(now := _tables(lab), n4, n6) and now,
        lambda: _tables(lab),
        (*LOGS, "isp"),
        60 + n4 // 5000,
    )
    fib = state["fib"]
    yield (
        f"isp announces {n4:,} IPv4 and {n6:,} IPv6 routes. BIRD has them all; the FIB has {fib[0]:,} and "
        f"{fib[1]:,} prefixes, with those of core and r1's own."
    )
    yield proofs.reachable(lab, seed=1)
    for prefix in (*topology.CORE_NETS4, *topology.CORE_NETS6):
        by(lab, prefix, "core0", "core1")
    yield proofs.both_links(lab)
    yield proofs.withdrawal(lab, seed=1)

    some = lab.isp("sample", count=1, seed=2)
    hosts = [some[family][0]["host"] for family in ("ipv4", "ipv6")]
    dropped = evidence.drops(lab)

    def dies():
        lab.r1.end(signal.SIGKILL)
        lab.r1.start("-R")
        _bird_up(lab)
        wait_for("all routes", lambda: _whole(_tables(lab), n4, n6), lambda: _tables(lab), LOGS, 60)

    took = evidence.silence(lab, "lan", hosts, dies)
    lost = {k: n for k, n in (evidence.drops(lab) - dropped).items() if k in ("no_route", "unreachable")}
    check(not lost, "no packet without a route while BIRD was away", lost, LOGS)
    yield (
        "BIRD is killed and started again with `bird -R`; no packet finds no route, and lan waits at "
        f"most {evidence.milliseconds(took)} for an answer."
    )
    kernel = lab.dp.show("kernel")[0]
    check(kernel["overruns"] == 0, "no overrun", kernel, LOGS)


def _ip(lab, line):
    netns.ip_batch([line], lab.ns["r1"])


def _bird_up(lab):
    """Wait until BGP is Established and OSPF runs with a full neighbor on both links."""

    def state():
        words = {name: info for name, (_, info) in lab.r1.states().items()}
        full = [lab.r1.birdc("show", "ospf", "neighbors", name).count("Full/") for name in ("core4", "core6")]
        return words["isp"], full

    wait_for("BGP and OSPF up", lambda: state() == ("Established", [2, 2]), state, LOGS, 60)


def _whole(now, n4, n6):
    """Return True if BIRD has all routes of isp, and the FIB has at least as many."""
    return now["bgp"] == [n4, n6] and now["fib"][0] >= n4 and now["fib"][1] >= n6


def _tables(lab):
    """Return {"bgp": routes of isp in BIRD, "fib": all routes in the FIB}, IPv4 and IPv6."""
    found, fpm = {"bgp": [], "fib": []}, lab.dp.fpm()
    for family in (4, 6):
        words = ["show", "route", "table", f"master{family}", "protocol", "isp", "count"]
        text = lab.r1.birdc(*words).strip().splitlines()[-1]
        found["bgp"].append(int(text.split()[0]))
        found["fib"].append(fpm[f"routes{family}"])
    return found
