# SPDX-License-Identifier: BSD-3-Clause
"""The claims of each scenario of frr-config. CLAIMS[NAME](lab) yields a sentence with numbers for
each claim that holds, or raises ProofError (see evidence.py)."""

import contextlib
import time
from pathlib import Path

from lab import (
    bfd_capture,
    claims_cluster,
    claims_fabric,
    claims_filter,
    claims_kernel,
    claims_links,
    claims_mpls,
    evidence,
    proofs,
    steps,
)
from lab.evidence import check, wait_for
from lib import netns, probe
from lib.wait import PATIENCE, eventually


def static(lab):
    """r1 has next hops, floating routes, blackhole and reject; routes that are written stay."""
    hosts = ["198.51.100.9", "2001:db8:c0::9"]
    steps.in_fib(lab, "203.0.113.0/26", "203.0.113.64/26")
    for prefix in ("0.0.0.0/0", "::/0"):
        steps.by(lab, prefix, "wan0")  # the floating route by wan1 may be the first to be valid
    yield f"h1 pings beyond gw1: {evidence.crossing(lab, 'h1', hosts, 'wan0')}"

    steps.refused(lab, "h1", "203.0.113.70", "192.0.2.129")
    steps.blackholed(lab, "h1", "203.0.113.9")
    yield "A rejected prefix is answered with unreachable by r1, a blackholed one is silence."

    routes = dict(zip(hosts, ("0.0.0.0/0", "::/0")))
    yield from steps.pulled(lab, "wan0", "wan1", "h1", routes)

    lab.r1.configure("ip route 203.0.113.192/26 192.0.2.6")
    lab.r1.vtysh("write memory")
    lab.r1.restart("staticd")
    steps.by(lab, "203.0.113.192/26", "wan1")
    out = evidence.crossing(lab, "h1", ["203.0.113.200"], "wan1")
    lab.r1.configure("no ip route 203.0.113.192/26 192.0.2.6")
    lab.r1.vtysh("write memory")
    yield f"A route that vtysh wrote down is there after a restart of staticd. {out}"


def bgp_unnumbered(lab):
    """BGP has IPv4 routes by IPv6 next hops, over two links without addresses."""
    hosts, links = ["198.51.100.10", "2001:db8:c0::10"], ("core0", "core1")
    steps.bgp_up(lab, *links)
    for prefix in ("198.51.100.0/24", "2001:db8:c0::/64"):
        steps.by(lab, prefix, *links)
    hops = steps.hops(lab, "198.51.100.0/24")
    check(all(h.startswith("fe80:") for h in hops.values()), "fe80:: next hops", hops)
    rows = netns.command(["ip", "-n", lab.ns["r1"], "-4", "-br", "addr", "show", "up"])
    check("core" not in rows, "no IPv4 address on core0 and core1", rows)
    yield (
        "BGP is Established with r2 on both links, which have no address but fe80::. "
        f"198.51.100.0/24 goes by {hops['core0']} on core0 and {hops['core1']} on core1."
    )
    yield from steps.spreads(lab, "h1", hosts, "h2", links)
    hops = ["203.0.113.1", "192.0.2.130", hosts[0]]
    yield f"h1 finds h2 by {evidence.path(lab, 'h1', hosts[0], hops)}."
    routes = dict(zip(hosts, ("198.51.100.0/24", "2001:db8:c0::/64")))
    yield from steps.pulled(lab, "core0", "core1", "h1", routes, links)


def bgp_full_table(lab):
    """One session brings a full table: all routes are in the FIB, reachable, and withdrawn at
    once."""
    # The speaker listens after it has made its table; for a million routes that takes seconds.
    told = eventually(lambda: lab.isp("status"), 60, what="the BGP speaker answers")
    n4, n6 = told["routes4"], told["routes6"]
    state = wait_for(
        f"{n4:,} + {n6:,} routes by BGP in zebra and in the FIB",
        lambda: proofs.whole(now := proofs.tables(lab), n4, n6, 0) and now,
        lambda: proofs.tables(lab),
        ("dataplane", "zebra", "bgpd", "isp"),
        60 + n4 // 5000,
    )
    yield (
        f"isp announces {n4:,} IPv4 and {n6:,} IPv6 routes; the FIB has "
        f"{state[4]['fib']:,} and {state[6]['fib']:,} of zebra's, which are all."
    )
    yield proofs.reachable(lab, seed=1)
    yield proofs.withdrawal(lab, seed=1)
    eventually(lambda: proofs.whole(proofs.tables(lab), n4, n6, 0), 10, what="all are back")


def ospf_ecmp(lab):
    """r1 uses three equal paths by OSPF and OSPFv3, and the remaining paths after a failure."""
    hosts, links = ["198.51.100.130", "2001:db8:c0::130"], ("core0", "core1", "core2")
    steps.ospf_full(lab, *links)
    for prefix in ("198.51.100.128/25", "2001:db8:c0::/64"):
        steps.by(lab, prefix, *links)
    yield f"OSPF and OSPFv3 are Full on {', '.join(links)}; h2's networks go by all three."
    yield from steps.spreads(lab, "h1", hosts, "h2", links)
    took = evidence.silence(lab, "h1", hosts, lambda: steps.cable(lab, "core1", False))
    yield f"Cable of core1 pulled, flows rest at most: {evidence.milliseconds(took)}."
    for prefix in ("198.51.100.128/25", "2001:db8:c0::/64"):
        steps.by(lab, prefix, "core0", "core2")
    yield from steps.spreads(lab, "h1", hosts, "h2", ("core0", "core2"))
    steps.cable(lab, "core1", True)
    steps.ospf_full(lab, *links)
    for prefix in ("198.51.100.128/25", "2001:db8:c0::/64"):
        steps.by(lab, prefix, *links)
    yield "Plugged in again: h2's networks go by all three."


def ibgp_route_reflector(lab):
    """Clients with a session only to r1 have each other's routes, with next hops by OSPF."""
    hosts = ["198.51.100.10", "2001:db8:c0::10"]
    steps.bgp_up(lab, "192.0.2.130", "192.0.2.131", "2001:db8:ff::2", "2001:db8:ff::3")
    steps.in_fib(lab, "203.0.113.0/24", "2001:db8:2::/64")
    for prefix in ("198.51.100.0/24", "2001:db8:c0::/64"):
        steps.by(lab, prefix, "link2")
    client = lab.neighbors["c1"]
    peers = client.json("show bgp summary json")["ipv4Unicast"]["peers"]
    check(list(peers) == ["192.0.2.129"], "r1 to be c1's only peer", list(peers))
    for family, prefix in (("ipv4", "198.51.100.0/24"), ("ipv6", "2001:db8:c0::/64")):
        ask = f"show bgp {family} unicast {prefix} json"
        (route,) = wait_for(
            f"{prefix} in c1",
            lambda q=ask: client.json(q).get("paths"),
            lambda q=ask: client.json(q),
            ("bgpd",),
        )
        seen = route.get("originatorId"), route.get("clusterList", {}).get("list")
        wanted = ("192.0.2.131", ["192.0.2.129"])
        check(seen == wanted, f"{prefix} of originator, by cluster {wanted}", seen)
    yield (
        "c1 has a session with r1 alone, and c2's networks of both families: originator "
        "192.0.2.131, cluster list 192.0.2.129."
    )
    yield f"h1 pings h2: {evidence.crossing(lab, 'h1', hosts, 'link2')}"
    hops = ["203.0.113.1", "192.0.2.1", "192.0.2.6", hosts[0]]
    yield f"h1 finds h2 by {evidence.path(lab, 'h1', hosts[0], hops)}."
    before = lab.r1.json("show bgp neighbors 192.0.2.131 json")["192.0.2.131"]
    routes = dict(zip(hosts, ("198.51.100.0/24", "2001:db8:c0::/64")))
    yield from steps.pulled(lab, "link2", "spare2", "h1", routes)
    after = lab.r1.json("show bgp neighbors 192.0.2.131 json")["192.0.2.131"]
    same = before["connectionsEstablished"], after["connectionsEstablished"]
    check(same[0] == same[1], "the session with c2 to have stayed", same)
    yield "Meanwhile the sessions with c2 stayed: next hops moved by OSPF alone."


BFD_MS = 4 * 100  # frr.conf: detect-multiplier, receive-interval


BFD_AT = "127.0.0.1:50700"


@contextlib.contextmanager
def bfd_in_the_dataplane(lab):
    """Let the dataplane run the sessions of bfdd for the length of a with block. The dataplane gets
    the key `bfd`, bfdd gets an option, and both start again."""
    config = Path(lab.dp.config)
    text, options = config.read_text(encoding="utf-8"), lab.r1.options["bfdd_options"]

    def run(text, options):
        config.write_text(text, encoding="utf-8")
        lab.r1.options["bfdd_options"] = options
        lab.r1.restart("bfdd")
        lab.dp.stop()
        lab.start_again()

    run(f'{text}bfd: {{dplane: "{BFD_AT}"}}\n', f"{options} --dplaneaddr ipv4:{BFD_AT}")
    try:
        yield
    finally:
        run(text, options)


def bfd_failover(lab):
    """r1 leaves a dead link with carrier when BFD reports it, with the sessions in bfdd and in the
    dataplane."""
    hosts = ["198.51.100.10", "2001:db8:c0::10"]
    peers = ("192.0.2.2", "192.0.2.6", "2001:db8:1::2", "2001:db8:10::2")
    by_wan0 = ("192.0.2.2", "2001:db8:1::2")
    sw = lab.ns["sw"]
    room = BFD_MS + 2000 * PATIENCE

    def preferred():
        steps.bgp_up(lab, *peers)
        steps.bfd_up(lab, peers)
        led_by("wan0")

    def led_by(port):
        for prefix in ("198.51.100.0/24", "2001:db8:c0::/64"):
            steps.by(lab, prefix, port)

    def downs():
        """Return {peer: how often its session has gone down}."""
        rows = lab.r1.json("show bfd peers counters json")
        return {row["peer"]: row["session-down"] for row in rows}

    def crossing(port):
        """Return the sentence of evidence.crossing(). Ask again if a session went down meanwhile: a
        bfdd that gets no CPU for 400 ms loses its sessions, and zebra the routes for a moment."""
        end = time.monotonic() + 30 * PATIENCE
        while True:
            before = downs()
            try:
                return evidence.crossing(lab, "h1", hosts, port)
            except evidence.ProofError as error:
                after = downs()
                if after == before or time.monotonic() > end:
                    seen = f"{error}; times that BFD went down: {before}, then {after}"
                    raise evidence.ProofError("packets of both families", seen, error.logs) from None
            led_by(port)

    def dies():
        """Return ({host: milliseconds of silence}, {peer: milliseconds of the detection}, the packets
        that left by wan1)."""
        dead = lambda: netns.ip_batch(["link set eth1 nomaster"], sw)  # noqa: E731
        with bfd_capture.Capture(sw, "eth0") as capture:
            heard = lambda: {src for _, src, *_ in capture.packets()}  # noqa: E731
            wait_for("BFD packets of r2", lambda: heard().issuperset(by_wan0), heard)
            took = evidence.silence(lab, "h1", hosts, dead)
            detection = capture.detection_ms(by_wan0)
        check(None not in detection.values(), "r1 to say Down to the peers by wan0", detection)
        check(lab.dp.ports()["wan0"]["link"] == "up", "wan0 to have its carrier", "no link")
        seen = crossing("wan1")
        netns.ip_batch(["link set eth1 master br0"], sw)
        preferred()
        return took, detection, seen

    preferred()
    yield "BGP and BFD are up on wan0 and wan1, IPv4 and IPv6; wan0 is preferred."
    yield f"h1 pings h2: {crossing('wan0')}"

    def left_in_time():
        for _ in range(3):  # in one try other programs may take all CPUs for seconds
            took, detection, seen = dies()
            if max(took.values()) < room:
                break
        check(
            max(took.values()) < room,
            f"less than {room:.0f} ms of silence, {BFD_MS} are BFD's",
            evidence.milliseconds(took),
        )
        found = ", ".join(f"{peer} after {ms:.0f} ms" for peer, ms in detection.items())
        return f"r1 said Down to {found}. No answer came from {evidence.milliseconds(took)}", seen

    took, seen = left_in_time()
    yield (
        "The switch drops all packets, and wan0 keeps its carrier. With BFD over the TAP (4 x 100 ms; "
        f"BGP alone: 180 s) {took}, then packets left by wan1. {seen}"
    )
    with bfd_in_the_dataplane(lab):
        preferred()
        rows = {row["peer"]: row["by"] for row in lab.dp.show("bfd")}
        check(rows == dict.fromkeys(peers, "forwarders"), "forwarders to send for all peers", rows)
        took, seen = left_in_time()
        yield (
            f"With BFD in the dataplane {took}, then packets left by wan1. {seen}"
        )
    preferred()


def isis(lab):
    """One IS-IS instance has both families; a metric moves the packets to the other link."""
    hosts = ["198.51.100.10", "2001:db8:c0::10"]
    up = lambda: lab.r1.vtysh("show isis neighbor").count(" Up ")  # noqa: E731
    wait_for("two IS-IS adjacencies", lambda: up() == 2, up, ("isisd", "dataplane"))
    prefixes = ("198.51.100.0/24", "2001:db8:c0::/64")
    for prefix in prefixes:
        steps.by(lab, prefix, "core0")
    yield "IS-IS is Up on core0 and core1; both families go by core0, the shorter way."
    yield f"h1 pings h2: {evidence.crossing(lab, 'h1', hosts, 'core0')}"

    def metric(n):
        lab.r1.configure("interface core0", f"isis metric {n}")

    def raised():
        metric(100)
        for prefix in prefixes:
            steps.by(lab, prefix, "core1")

    took = evidence.silence(lab, "h1", hosts, raised)
    seen = evidence.crossing(lab, "h1", hosts, "core1")
    metric(10)
    for prefix in prefixes:
        steps.by(lab, prefix, "core0")
    yield (
        "Metric of core0 raised in vtysh: all move to core1, silent at most "
        f"{evidence.milliseconds(took)}. {seen}"
    )


def dual_stack_edge(lab):
    """Prefix lists filter routes in both directions; one changes while packets pass."""
    hosts = ["198.51.100.9", "2001:db8:c0::9"]
    peers = ("192.0.2.2", "192.0.2.6", "2001:db8:1::2", "2001:db8:10::2")
    steps.bgp_up(lab, *peers)
    good = {4: {"198.51.100.0/24"}, 6: {"2001:db8:c0::/48"}}
    for prefix in (*good[4], *good[6]):
        steps.by(lab, prefix, "wan0")  # isp2, which is not preferred, may be the first to announce it
    for family, word in ((4, "ip"), (6, "ipv6")):
        got = lambda w=word: set(lab.r1.json(f"show {w} route bgp json"))  # noqa: E731
        wait_for(f"{good[family]} of the ISPs", lambda f=family: got() == good[f], got)
    told = lab.r1.json("show bgp ipv4 unicast summary json")["peers"]["192.0.2.2"]
    yield (
        f"isp1 announces {steps.announced(lab, 4)} IPv4 and {steps.announced(lab, 6)} IPv6 prefixes, "
        f"private, too long and our own ones among them; accepted: {told['pfxRcd']} and 1."
    )
    yield f"lan pings what was accepted: {evidence.crossing(lab, 'lan', hosts, 'wan0')}"
    for address, router in (("10.1.2.3", "203.0.113.1"), ("fd00::1", "2001:db8:2::1")):
        steps.refused(lab, "lan", address, router)
    yield "10.1.2.3 and fd00::1, which isp1 announces, are unreachable, says r1."
    for name in ("isp1", "isp2"):
        isp = lab.neighbors[name]
        for family, ours in (("ipv4", "203.0.113.0/24"), ("ipv6", "2001:db8:2::/64")):

            def heard(isp=isp, family=family):
                table = isp.json(f"show bgp {family} unicast json")["routes"]
                return {p for p, rows in table.items() if any(r["path"] for r in rows)}

            # r1 may announce it to an ISP later than that ISP announces its prefixes to r1.
            wait_for(f"{ours} at {name}", lambda h=heard, o=ours: o in h(), heard, ("bgpd",))
            check(heard() == {ours}, f"{ours} and no other prefix at {name}", heard())
    yield "Both ISPs hear of 203.0.113.0/24 and 2001:db8:2::/64, and of nothing else."
    rules = [
        "ip prefix-list INTERNET seq 5 deny 198.51.100.0/24",
        "ipv6 prefix-list INTERNET seq 5 deny 2001:db8:c0::/48",
    ]
    lab.r1.configure(*rules)
    for host, router in zip(hosts, ("203.0.113.1", "2001:db8:2::1")):
        steps.refused(lab, "lan", host, router)
    lab.r1.configure(*("no " + rule for rule in rules))
    for host in hosts:
        eventually(lambda h=host: probe.ping(lab.ns["lan"], h, 1)[0], 20, what=host)
    for prefix in (*good[4], *good[6]):
        steps.by(lab, prefix, "wan0")  # isp2 may have answered, too
    yield (
        f"`{rules[0]}` in vtysh, and the same for 2001:db8:c0::/48: {' and '.join(hosts)} are "
        "unreachable; taken back: they answer."
    )
    routes = dict(zip(hosts, (*good[4], *good[6])))
    yield from steps.pulled(lab, "wan0", "wan1", "lan", routes)


CLAIMS = {
    "anycast-edge": claims_cluster.anycast_edge,
    "bird-edge": claims_kernel.bird_edge,
    "bfd-failover": bfd_failover,
    "bgp-full-table": bgp_full_table,
    "bgp-unnumbered": bgp_unnumbered,
    "cluster-vlb": claims_cluster.cluster_vlb,
    "dual-stack-edge": dual_stack_edge,
    "evpn-l3vni": claims_fabric.evpn_l3vni,
    "gre-hub": claims_links.gre_hub,
    "ibgp-route-reflector": ibgp_route_reflector,
    "isis": isis,
    "kernel-static": claims_kernel.kernel_static,
    "l3vpn-leak": claims_links.l3vpn_leak,
    "l3vpn-mpls": claims_mpls.l3vpn_mpls,
    "mpls-ldp": claims_mpls.mpls_ldp,
    "ospf-ecmp": ospf_ecmp,
    "sr-mpls": claims_mpls.sr_mpls,
    "srv6-l3vpn": claims_fabric.srv6_l3vpn,
    "static": static,
    "vlan-trunk": claims_links.vlan_trunk,
    "vrf-lite": claims_links.vrf_lite,
    "vrrp-gateway": claims_links.vrrp_gateway,
    "edge-filter": claims_filter.edge_filter,
    "flowspec": claims_filter.flowspec,
    "wireguard": claims_links.wireguard,
}
