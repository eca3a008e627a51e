# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios with MPLS (see claims.py).

The kernels of the other routers forward, too. Linux sends no ICMP error for a labelled packet, so
such a router is no hop of a traceroute: "*" (doc/fpm.md, 5.2)."""

from lab import evidence, steps
from lab.evidence import check, wait_for
from lib import probe

LOGS = ("dataplane", "zebra", "ldpd", "isisd", "bgpd")
SILENT = ("*", [])
IMPLICIT_NULL = 3


def mpls_ldp(lab):
    """r1 switches labels of LDP: it swaps toward pe2 over two links, and pops toward pe1."""
    _ldp_up(lab, "192.0.2.130", "192.0.2.131")
    out = label_of(lab.neighbors["p2"], "198.51.100.0/24")
    east, west = (label_of(lab.r1, prefix) for prefix in ("198.51.100.0/24", "203.0.113.0/24"))
    switched(lab, east, {("192.0.2.6", (out,)), ("192.0.2.10", (out,))})
    switched(lab, west, {("192.0.2.1", ())})
    yield (
        f"LDP is operational with pe1 and p2. r1 swaps label {east} to {out} over core0 and core1, and "
        f"pops label {west} toward pe1."
    )
    yield f"h1 pings h2: {evidence.crossing(lab, 'h1', ['198.51.100.10'], ('core0', 'core1'))}"
    yield f"h2 pings h1: {evidence.crossing(lab, 'h2', ['203.0.113.10'], ('edge0',))}"

    pushes(lab, "pe1", "198.51.100.0/24", east)
    hops = [("203.0.113.1", []), ("192.0.2.2", [east]), SILENT, ("192.0.2.14", []), ("198.51.100.10", [])]
    yield f"h1 finds h2 by {traced(lab, 'h1', hops)}."
    back = label_of(lab.neighbors["p2"], "203.0.113.0/24")
    hops = [("198.51.100.1", []), SILENT, ("192.0.2.{5,9}", [west]), ("192.0.2.1", []), ("203.0.113.10", [])]
    yield f"h2 finds h1 by {traced(lab, 'h2', hops)}; pe2 pushes {back}, r1 pops {west}."

    # r1 itself: the kernel pushes the label, and the dataplane sends the frame as it is.
    got = evidence.answered(
        lab, lambda: probe.ping(lab.ns["r1"], "192.0.2.132")[0], lambda heard: heard == 3
    )
    check(got == 3, "3 answers from 192.0.2.132", got, LOGS)
    yield "r1 itself pings the loopback of pe2, by labels that its kernel pushes."


def l3vpn_mpls(lab):
    """Customers with the same addresses cross a core that knows none of them."""
    _ldp_up(lab, "192.0.2.130")
    steps.bgp_up(lab, "192.0.2.132", "2001:db8:ff::4")
    transport = label_of(lab.neighbors["p"], "192.0.2.132/32")
    prefixes = {"10.0.2.0/24": "10.0.2.10", "2001:db8:2::/64": "2001:db8:2::10"}
    own = {}
    for vrf in ("red", "blue"):
        for prefix in prefixes:
            steps.by(lab, prefix, "core0", vrf=vrf)
        rows = lambda: _labels(lab.r1)  # noqa: E731
        mine = lambda v=vrf, r=rows: {label for label, hops in r().items() if hops == {(v, ())}}  # noqa: E731
        own[vrf] = wait_for(f"a label of r1 for {vrf}", mine, rows, LOGS)
        for label in own[vrf]:
            switched(lab, label, {(vrf, ())})
    yield (
        f"LDP with p is operational, BGP with pe2 is Established. r1's labels: red {_spoken(own['red'])}, "
        f"blue {_spoken(own['blue'])}. p's label for pe2 is {transport}."
    )
    ends = ("red2", "blue2")
    for vrf in own:
        hosts = list(prefixes.values())
        before = {end: steps.echoes(lab, end) for end in ends}
        seen = evidence.crossing(lab, f"{vrf}1", hosts, ("core0",))
        asked = {end: steps.echoes(lab, end) - before[end] for end in ends}
        mine = asked.pop(f"{vrf}2")
        check(mine >= 6, f"6 pings or more at {vrf}2", mine, LOGS)
        check(not any(asked.values()), "none at the other customer's", asked, LOGS)
        yield f"{vrf}1 pings {vrf}2, which has the addresses of the other customer's: {seen}"
        yield f"{vrf}2 pings {vrf}1: {evidence.crossing(lab, f'{vrf}2', ['10.0.1.10', '2001:db8:1::10'], (f'{vrf}0',))}"

    for vrf in own:
        # The kernel of pe2 does not lower the TTL of a packet that it takes into a VRF.
        paths = [
            traced(lab, f"{vrf}1", [(router, []), SILENT, (host, [])])
            for router, host in (("10.0.1.1", "10.0.2.10"), ("2001:db8:1::1", "2001:db8:2::10"))
        ]
        yield f"{vrf}1 finds {vrf}2 by {paths[0]}, and {paths[1]}."
    for host, router in (("10.0.3.10", "10.0.1.1"), ("2001:db8:3::10", "2001:db8:1::1")):
        steps.refused(lab, "red1", host, router)
    yield "red1 is told by r1, from its address in red, that there is no network 10.0.3.0/24."


def sr_mpls(lab):
    """Customers cross a core without BGP, by segments of IS-IS."""
    up = lambda: lab.r1.vtysh("show isis neighbor").count(" Up ")  # noqa: E731
    wait_for("two IS-IS adjacencies", lambda: up() == 2, up, LOGS)
    # The segments of both families: pe2's are swapped for the same label, pe1's are popped.
    switched(lab, 16004, {("192.0.2.6", (16004,))})
    switched(lab, 16003, {("192.0.2.1", ())})
    for label in (16001, 16101):  # r1's own segments, without PHP
        switched(lab, label, {("lo", ())})
    yield (
        "IS-IS is Up with pe1 and p2. r1 swaps 16004, the segment of pe2, pops 16003, the segment of "
        "pe1, and takes its own, 16001 and 16101."
    )
    rows = {row["prefix"] for row in lab.dp.show("routes")}
    check(not rows & {"198.51.100.0/24", "203.0.113.0/24"}, "no route to a customer in r1", rows)
    pairs = {
        "h1": (["198.51.100.10", "2001:db8:c0::10"], "core0"),
        "h2": (["203.0.113.10", "2001:db8:2::10"], "edge0"),
    }
    for node, (hosts, port) in pairs.items():
        yield f"{node} pings beyond r1, which has no route there: {evidence.crossing(lab, node, hosts, port)}"

    hops = [("203.0.113.1", []), ("192.0.2.2", [16004]), SILENT, ("192.0.2.10", []), ("198.51.100.10", [])]
    yield f"h1 finds h2 by {traced(lab, 'h1', hops)}."
    hops = [("2001:db8:2::1", []), ("2001:db8:10::2", [16104]), SILENT, ("2001:db8:12::2", []), ("2001:db8:c0::10", [])]
    yield f"h1 finds h2 by {traced(lab, 'h1', hops)}."
    hops = [("198.51.100.1", []), SILENT, ("192.0.2.5", [16003]), ("192.0.2.1", []), ("203.0.113.10", [])]
    yield f"h2 finds h1 by {traced(lab, 'h2', hops)}."

    for node in ("pe1", "pe2"):
        for host in ("192.0.2.129", "2001:db8:ff::1"):
            ask = lambda n=node, h=host: probe.ping(lab.ns[n], h)[0]  # noqa: E731
            got = evidence.answered(lab, ask, lambda heard: heard == 3)
            check(got == 3, f"3 answers from {host} to {node}", got, LOGS)
    yield "pe1 and pe2 ping the loopback of r1. The packets come with its segment, which r1 takes off."


def switched(lab, label, hops):
    """Wait until zebra and the dataplane have a label with `hops`: a set of (gateway or interface,
    outgoing labels)."""
    see = lambda: (_labels(lab.r1).get(label), _in_dataplane(lab).get(label))  # noqa: E731
    wait_for(f"label {label} by {hops}, in zebra and the dataplane", lambda: see() == (hops, hops), see, LOGS)


def pushes(lab, node, prefix, label):
    """Wait until a neighbor pushes this label for a prefix. Without labels its packets arrive as well."""
    ask = f"show ip route {prefix} json"

    def labels():
        rows = lab.neighbors[node].json(ask).get(prefix, [])
        return [hop.get("labels") for row in rows if row.get("selected") for hop in row["nexthops"] if hop.get("fib")]

    wait_for(f"{node} to push {label} for {prefix}", lambda: labels() == [[label]], labels, LOGS)


def traced(lab, node, expected):
    """Check the hops of a traceroute to the last of `expected`, with the labels that came there.
    Returns them as text. "192.0.2.{5,9}" is either address."""
    target = expected[-1][0]
    ask = lambda: probe.label_trace(lab.ns[node], target)  # noqa: E731
    wanted = [(_either(address), labels) for address, labels in expected]
    same = lambda heard: len(heard) == len(wanted) and all(  # noqa: E731
        address in some and labels == stack
        for (address, labels), (some, stack) in zip(heard, wanted)
    )
    silent = lambda hops: sum(address == "*" for address, _ in hops)  # noqa: E731
    seen = evidence.traced(lab, ask, same, lambda heard: silent(heard) > silent(expected))
    check(same(seen), f"traceroute {target} by {expected}", seen, LOGS)
    return " > ".join(
        address + (f" (label {'/'.join(map(str, labels))})" if labels else "") for address, labels in seen
    )


def _either(text):
    head, brace, tail = text.partition("{")
    return [head + last for last in tail.rstrip("}").split(",")] if brace else [text]


def _ldp_up(lab, *ids):
    """Wait until LDP is operational with these routers."""
    text = lambda: lab.r1.vtysh("show mpls ldp neighbor")  # noqa: E731
    up = lambda: {row.split()[1] for row in text().splitlines() if " OPERATIONAL " in row}  # noqa: E731
    wait_for(f"LDP with {', '.join(ids)}", lambda: up() == set(ids), text, LOGS, 60)


def label_of(frr, prefix):
    """Return the label that a router gave to a prefix by LDP."""

    def label():
        rows = frr.json("show mpls ldp binding json").get("bindings", [])
        found = {row["localLabel"] for row in rows if row["prefix"] == prefix}
        found -= {"-", "imp-null"}
        return int(found.pop()) if found else None

    return wait_for(f"a label for {prefix}", label, lambda: frr.vtysh("show mpls ldp binding"), LOGS)


def _labels(frr):
    """Return {label: {(gateway or interface, outgoing labels)}} of zebra's labels."""
    found = {}
    for label, row in frr.json("show mpls table json").items():
        found[int(label)] = {
            (hop.get("nexthop") or hop["interface"], _without_null(hop.get("outLabelStack", [])))
            for hop in row["nexthops"]
        }
    return found


def _without_null(labels):
    return tuple(label for label in labels if label != IMPLICIT_NULL)


def _in_dataplane(lab):
    """Return the labels of the dataplane: {label: {(gateway or interface, pushed labels)}}."""
    return {
        row["label"]: {(hop["via"] or hop["dev"], tuple(hop["labels"])) for hop in row["nexthops"]}
        for row in lab.dp.show("labels")
        if row["state"] == "forwarding"
    }


def _spoken(labels):
    return " and ".join(map(str, sorted(labels)))
