# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios with VLANs, VRFs and tunnels (see claims.py)."""

import json
import socket
import struct

from lab import evidence, steps
from lab.evidence import check, wait_for
from lib import netns, probe

LOGS = ("dataplane", "zebra")
# RFC 5798, 6.1: three advertisement intervals of 1 s and the skew of priority 100.
FAIL_OVER_S = 4
TRIES = 3  # in one try other programs may take all CPUs for half a second
VMACS = {"203.0.113.1": "00:00:5e:00:01:05", "2001:db8:2::1": "00:00:5e:00:02:05"}


def vlan_trunk(lab):
    """r1 forwards between VLANs of one port, one of them inside another, as between ports."""
    peers, core = ("192.0.2.6", "2001:db8:1::2"), "trunk0.300.30"
    steps.ospf_full(lab, core)
    steps.bgp_up(lab, *peers)
    for prefix, out in (
        ("203.0.113.128/26", core),
        ("2001:db8:2:300::/64", core),
        ("0.0.0.0/0", "wan0"),
        ("::/0", "wan0"),
    ):
        steps.by(lab, prefix, out)
    tags = {r["name"]: r["vlan"] for r in lab.dp.show("interfaces") if r["vlan"]}
    wanted = {f"trunk0.{tag}": tag for tag in ("100", "200", "300", "300.30")}
    check(tags == wanted, f"VLANs {wanted}", tags)
    yield (
        "OSPF and OSPFv3 with core are Full within two tags, BGP with isp is Established on "
        "wan0, which has none."
    )
    for where, hosts, out in (
        (
            "h2, from VLAN to VLAN of one port",
            ["203.0.113.74", "2001:db8:2:200::10"],
            "trunk0.200",
        ),
        ("h3, by two tags", ["203.0.113.138", "2001:db8:2:300::10"], core),
        ("the Internet, without a tag", ["198.51.100.9", "2001:db8:c0::9"], "wan0"),
    ):
        yield f"h1 pings {where}: {evidence.crossing(lab, 'h1', hosts, out)}"
    paths = [
        evidence.path(lab, "h1", hops[-1], hops)
        for hops in (
            ["203.0.113.1", "192.0.2.2", "203.0.113.138"],
            ["2001:db8:2:100::1", "2001:db8:30::2", "2001:db8:2:300::10"],
        )
    ]
    yield f"h1 finds h3 by {paths[0]}, and {paths[1]}: errors have the VLAN's address."

    for host, router in (
        ("203.0.113.138", "203.0.113.1"),
        ("2001:db8:2:300::10", "2001:db8:2:100::1"),
    ):
        told = steps.too_long(lab, "h1", host, 1500)
        check(told == (router, 1496), f"{router} to say that 1496 octets fit", told, LOGS)
    yield "A packet of 1500 octets for h3 is answered by r1, in both families: 1496 fit there."

    before = lab.dp.counter("drop", "vlan_unknown")
    _send_tagged(lab, "sw", "eth0", lab.dp.ports()["trunk0"]["mac"], 999)
    count = lambda: lab.dp.counter("drop", "vlan_unknown") - before  # noqa: E731
    wait_for("a frame of VLAN 999 dropped by name", lambda: count() == 1, count, LOGS)
    yield "A frame of VLAN 999, which nobody made, is dropped and counted as vlan_unknown."

    netns.ip_batch(["link del trunk0.200"], lab.ns["r1"])
    for host, router in (
        ("203.0.113.74", "203.0.113.1"),
        ("2001:db8:2:200::10", "2001:db8:2:100::1"),
    ):
        steps.refused(lab, "h1", host, router)
    seen = evidence.crossing(lab, "h1", ["203.0.113.138"], core)
    netns.ip_batch([x for x in lab.plan.links if "trunk0.200" in x], lab.ns["r1"])
    for host in ("203.0.113.74", "2001:db8:2:200::10"):
        _answers(lab, "h1", host)
    yield (
        f"VLAN 200 deleted: h2 is unreachable, says r1; others go on. {seen} Made again, it has "
        "its addresses of FRR, and h2 answers."
    )


def vrf_lite(lab):
    """One router and one cable serve two customers with the same addresses."""
    hosts = ["10.0.2.10", "2001:db8:2::10"]
    routers = dict(zip(hosts, ("10.0.1.1", "2001:db8:1::1")))
    more = dict(zip(("10.0.3.10", "2001:db8:3::10"), routers.values()))
    # VRF: its peers; its VLAN; the router behind the VLAN.
    customers = {
        "red": (("192.0.2.2", "2001:db8:10::2"), "trunk0.10"),
        "blue": (("192.0.2.6", "2001:db8:20::2"), "trunk0.20"),
    }
    for vrf, (peers, out) in customers.items():
        steps.bgp_up(lab, *peers, vrf=vrf)
        for prefix in ("10.0.2.0/24", "2001:db8:2::/64"):
            steps.by(lab, prefix, out, vrf=vrf)
    yield (
        "BGP is Established within red and within blue, IPv4 and IPv6; 10.0.2.0/24 and "
        "2001:db8:2::/64 go by trunk0.10 in red and by trunk0.20 in blue."
    )
    ends = ("red2", "blue2")
    for vrf, (peers, out) in customers.items():
        before = {end: steps.echoes(lab, end) for end in ends}
        seen = evidence.crossing(lab, f"{vrf}1", hosts, out)
        asked = {end: steps.echoes(lab, end) - before[end] for end in ends}
        own = asked.pop(f"{vrf}2")  # it includes the pings that resolved the neighbors
        check(own >= 6, f"6 pings or more at {vrf}2", f"{own}; {seen}", LOGS)
        check(not any(asked.values()), "none at the other customer's", asked, LOGS)
        paths = [
            evidence.path(lab, f"{vrf}1", host, [routers[host], peer, host])
            for host, peer in zip(hosts, peers)
        ]
        yield (
            f"{vrf}1 pings {vrf}2, which has the addresses of the other customer's: {seen} Asked "
            f"were {asked}. The path is {paths[0]}, and {paths[1]}."
        )

    yield f"red1 pings a network that red alone has: {evidence.crossing(lab, 'red1', list(more), 'trunk0.10')}"
    for host, router in more.items():
        steps.refused(lab, "blue1", host, router)
    yield "blue1 is told by r1, from its address in blue, that there is no such network."

    for host in hosts:
        for vrf in customers:
            ask = lambda h=host, v=vrf: probe.ping(lab.ns["r1"], h, dev=v)[0]  # noqa: E731
            got = evidence.answered(lab, ask, lambda heard: heard == 3)
            check(got == 3, f"3 answers from {host} in {vrf}", got, LOGS)
        said = netns.command(
            ["ip", "netns", "exec", lab.ns["r1"], "sh", "-c", f"ping -n -c 1 {host} 2>&1"],
            check=False,
        )
        check("unreachable" in said, f"no route to {host} without a VRF", said)
    yield "r1 itself pings 10.0.2.10 and 2001:db8:2::10 within red, within blue, and nowhere else."

    for host, peer, prefix in zip(
        hosts, customers["red"][0], ("10.0.2.0/24", "2001:db8:2::/64")
    ):
        session = lambda *words, p=peer: lab.r1.configure(  # noqa: E731
            "router bgp 64500 vrf red", " ".join([*words, "neighbor", p, "shutdown"])
        )

        def gone(h=host, stop=session):
            stop()
            steps.refused(lab, "red1", h, routers[h])

        took = evidence.silence(lab, "blue1", [host], gone)[host]
        session("no")
        steps.by(lab, prefix, "trunk0.10", vrf="red")
        _answers(lab, "red1", host)
        yield (
            f"Session with {peer} shut down in red: {host} is unreachable from red1; blue1, which "
            f"pings that address meanwhile, waits {took:.0f} ms at most."
        )


def l3vpn_leak(lab):
    """Customers reach the services but not each other."""
    services = ["198.51.100.10", "2001:db8:c0::10"]
    links = ["192.0.2.2", "2001:db8:5::2"]
    customers = {
        "red": (("10.1.0.1", "2001:db8:a1::1"), ("10.1.0.10", "2001:db8:a1::10")),
        "blue": (("10.2.0.1", "2001:db8:a2::1"), ("10.2.0.10", "2001:db8:a2::10")),
    }
    steps.bgp_up(lab, *links, vrf="shared")
    for vrf in customers:
        for prefix in ("198.51.100.0/24", "2001:db8:c0::/64", "192.0.2.0/30"):
            steps.by(lab, prefix, "srv0", vrf=vrf)
    for prefix, out in (
        ("10.1.0.0/24", "red0"),
        ("2001:db8:a1::/64", "red0"),
        ("10.2.0.0/24", "blue0"),
        ("2001:db8:a2::/64", "blue0"),
    ):
        steps.by(lab, prefix, out, vrf="shared")
    yield (
        "BGP is Established within shared. red and blue have its routes, by srv0 in another VRF; "
        "shared has theirs, by red0 and blue0."
    )
    for vrf, (ours, _) in customers.items():
        seen = evidence.crossing(lab, f"{vrf}1", services + links, "srv0")
        paths = [
            evidence.path(lab, f"{vrf}1", host, [router, link, host])
            for host, router, link in zip(services, ours, links)
        ]
        yield (
            f"{vrf}1 pings the services: {seen} The path is {paths[0]}, and {paths[1]}: from VRF to "
            "VRF is one hop."
        )

    for vrf, other in (("red", "blue"), ("blue", "red")):
        for host, router in zip(customers[other][1], customers[vrf][0]):
            steps.refused(lab, f"{vrf}1", host, router)
    tables = {vrf: _prefixes(lab, vrf) for vrf in customers}
    for vrf, foreign in (("red", "10.2.0.0/24"), ("blue", "10.1.0.0/24")):
        check(foreign not in tables[vrf], f"no {foreign} in {vrf}", tables[vrf])
    yield "red1 and blue1 are unreachable to each other, say r1's addresses in their VRFs."

    def gone():
        lab.r1.configure(*_imports("no import vrf shared"))
        for host, router in zip(services, customers["red"][0]):
            steps.refused(lab, "red1", host, router)

    took = evidence.silence(lab, "blue1", services[:1], gone)[services[0]]
    lab.r1.configure(*_imports("import vrf shared"))
    for host, prefix in zip(services, ("198.51.100.0/24", "2001:db8:c0::/64")):
        steps.by(lab, prefix, "srv0", vrf="red")
        _answers(lab, "red1", host)
    yield (
        "red imports shared no more: the services are unreachable from red1, while blue1 waits "
        f"{took:.0f} ms at most for an answer of theirs. Imported again, they answer."
    )


def vrrp_gateway(lab):
    """Two routers are one gateway for the hosts; one takes the place of the other."""
    hosts = ["198.51.100.10", "2001:db8:c0::10"]
    for prefix in ("198.51.100.0/24", "2001:db8:c0::/64"):
        steps.by(lab, prefix, "core0")
    _masters(lab, "r1")
    yield "r1 is Master of virtual router 5 for IPv4 and IPv6, r2 is Backup."
    seen = evidence.crossing(lab, "h1", hosts, "core0")
    for address, mac in VMACS.items():
        rows = netns.command(["ip", "-n", lab.ns["h1"], "neigh", "show", address])
        check(mac in rows, f"{address} at {mac}", rows, LOGS)
    yield f"h1 has the virtual MACs for its gateways. {seen}"

    for _ in range(TRIES):
        took = evidence.silence(lab, "h1", hosts, lambda: _cut(lab, False))
        _core_uses(lab, "eth1")
        back = evidence.silence(lab, "h1", hosts, lambda: _cut(lab, True))
        _core_uses(lab, "eth0")
        _switch_knows_r1(lab)
        if _in_time(took):
            break
    _fails_over(took)
    yield f"Cable of lan0 pulled, r2 is Master. Silent are {evidence.milliseconds(took)}."
    yield (
        f"Plugged in again, r1 is Master. Silent are {evidence.milliseconds(back)}. "
        f"{evidence.crossing(lab, 'h1', hosts, 'core0')}"
    )

    r2 = lab.neighbors["r2"]
    for _ in range(TRIES):
        r2.configure("interface eth0", "vrrp 5 priority 250")
        _masters(lab, "r2")
        took = evidence.silence(lab, "h1", hosts, lambda: _stop_r2(lab))
        netns.command(["ip", "-n", lab.ns["sw"], "link", "set", "eth1", "master", "br0"])
        r2.configure("interface eth0", "vrrp 5 priority 100")
        _masters(lab, "r1")
        _switch_knows_r1(lab)
        if _in_time(took):
            break
    _fails_over(took)
    yield (
        "r2 is Master by its priority; then it loses its cable, and r1 is Master. Silent are "
        f"{evidence.milliseconds(took)}."
    )
    yield f"Plugged in with its old priority, r2 is Backup. {evidence.crossing(lab, 'h1', hosts, 'core0')}"


def _in_time(took):
    return max(took.values()) < 1000 * FAIL_OVER_S


def _fails_over(took):
    check(_in_time(took), f"{FAIL_OVER_S} s at most", took, LOGS)


def _stop_r2(lab):
    """Take the cable of r2 out of the switch, and return when r1 is Master."""
    netns.command(["ip", "-n", lab.ns["sw"], "link", "set", "eth1", "nomaster"])
    _masters(lab, "r1", only=True)


def _switch_knows_r1(lab):
    """Wait until the switch has seen an advertisement of r1, whose source is the virtual MAC."""

    def ports():
        rows = netns.run(lab.ns["sw"], ["bridge", "fdb", "show", "br", "br0"]).splitlines()
        found = {row.split()[0]: row.split()[2] for row in rows}
        return {mac: found.get(mac) for mac in VMACS.values()}

    wait_for("the virtual MACs at eth0", lambda: set(ports().values()) == {"eth0"}, ports, LOGS)


def _core_uses(lab, dev):
    """Wait until core has the routes to the hosts by r1 (eth0) or r2 (eth1)."""
    core = lab.neighbors["core"]
    for words, prefix in (("ip", "203.0.113.0/24"), ("ipv6", "2001:db8:2::/64")):

        def devs(words=words, prefix=prefix):
            rows = core.json(f"show {words} route {prefix} json")[prefix]
            return {hop["interfaceName"] for row in rows for hop in row["nexthops"]}

        wait_for(f"{prefix} by {dev} in core", lambda d=devs: d() == {dev}, devs, LOGS)


def _cut(lab, plugged):
    """Unplug the cable of lan0, or plug it in, and return when the expected router is
    Master. vrrpd of r1 stays Master while its interface is down."""
    steps.cable(lab, "lan0", plugged)
    _masters(lab, "r1" if plugged else "r2", only=not plugged)


def _masters(lab, node, only=False):
    """Wait until `node` is Master for both families. Unless `only`, wait until no other router is
    Master, too."""

    def states():
        found = {}
        for name, frr in {"r1": lab.r1, "r2": lab.neighbors["r2"]}.items():
            if only and name != node:
                continue
            (row,) = frr.json("show vrrp json")
            found[name] = {f: row[f]["status"] for f in ("v4", "v6")}
        return found

    def ready():
        return all(
            (set(by.values()) == {"Master"}) if name == node else "Master" not in by.values()
            for name, by in states().items()
        )

    wait_for(f"{node} to be Master", ready, states, ("vrrpd", "dataplane"))


def _imports(words):
    """Return the commands that configure `words` for both families of red."""
    found = ["router bgp 64500 vrf red"]
    for family in ("ipv4", "ipv6"):
        found += [f"address-family {family} unicast", words, "exit-address-family"]
    return found


def _prefixes(lab, vrf):
    """Return the prefixes in a VRF's FIB."""
    return {row["prefix"] for row in lab.dp.show("routes", "vrf", vrf)}


def _answers(lab, node, host):
    """Wait until a host answers pings again."""
    once = lambda: probe.ping(lab.ns[node], host, 1)[0]  # noqa: E731
    wait_for(f"an answer from {host}", once, lambda: "nothing", LOGS)


def _passed(lab, name):
    """Return the packets of a punt class that passed its policer."""
    return next(row["passed"] for row in lab.dp.show("punt") if row["class"] == name)


def wireguard(lab):
    """The kernel forwards by a tunnel that is no port, in both directions. BGP runs through the
    tunnel."""
    peers = ("192.0.2.10", "2001:db8:9::2")
    hosts, routers = ("203.0.113.74", "2001:db8:2:200::10"), ("203.0.113.1", "2001:db8:2:100::1")
    steps.bgp_up(lab, *peers)
    yield "BGP with branch is Established through the tunnel, in both families."
    for prefix in ("203.0.113.64/26", "2001:db8:2:200::/64"):
        rows = lambda p=prefix: lab.dp.show("routes", p, "exact")  # noqa: E731
        states = lambda r=rows: [(x["state"], x["nexthops"][0]["dev"]) for x in r()]  # noqa: E731
        wait_for(
            f"{prefix} by wg0", lambda s=states: s() == [("through-kernel", "wg0")], states, LOGS
        )
    for host in hosts:
        _answers(lab, "h1", host)
        before, told = lab.dp.counter("punt", "kernel_route"), _tunnel_packets(lab)
        outer = _passed(lab, "kernel-tunnel")
        got, _ = probe.ping(lab.ns["h1"], host, 5)
        moved = lab.dp.counter("punt", "kernel_route") - before
        sent = _tunnel_packets(lab) - told
        back = _passed(lab, "kernel-tunnel") - outer
        check((got, moved) == (5, 5), "5 pings through the kernel", (got, moved), LOGS)
        check(sent >= 5, "5 packets in the tunnel", sent, LOGS)
        check(back >= 5, "5 packets out of the tunnel, in class kernel-tunnel", back, LOGS)
    yield f"h1 pings {' and '.join(hosts)}: the kernel forwards each packet, by wg0."
    paths = [
        evidence.path(lab, "h1", host, [router, peer, host])
        for router, peer, host in zip(routers, peers, hosts)
    ]
    yield f"h1 finds h2 by {paths[0]}, and {paths[1]}."
    for host, router in zip(hosts, routers):
        told = steps.too_long(lab, "h1", host, 1500)
        check(told == (router, 1420), f"{router} to say that 1420 octets fit", told, LOGS)
    yield "A packet of 1500 octets is answered by the kernel of r1: 1420 fit into the tunnel."


def gre_hub(lab):
    """Packets between two branches come in one tunnel and leave by another one, in the dataplane."""
    steps.ospf_full(lab, "gre1", "gre2")
    yield "OSPF and OSPFv3 are Full with s1 and s2, through the tunnels."
    steps.bgp_up(lab, "192.0.2.18")
    steps.bfd_up(lab, ["192.0.2.18"])
    steps.by(lab, "203.0.113.193/32", "gre1")
    yield "BGP is Established and BFD Up with s1, through gre1, which the route of BGP leaves by."
    branches = {
        "gre1": {"203.0.113.64/26": "203.0.113.74", "2001:db8:2:200::/64": "2001:db8:2:200::10"},
        "gre2": {"203.0.113.128/26": "203.0.113.138", "2001:db8:2:300::/64": "2001:db8:2:300::10"},
    }
    for tunnel, prefixes in branches.items():
        for prefix in prefixes:
            steps.by(lab, prefix, tunnel)
        rows = lambda t=tunnel: [r for r in lab.dp.show("interfaces") if r["name"] == t]  # noqa: E731
        wait_for(f"{tunnel} in the forwarders", lambda r=rows: r() and r()[0]["by_kernel"] is None, rows, LOGS)
    for tunnel, prefixes in branches.items():
        hosts = list(prefixes.values())
        yield f"h0 pings {' and '.join(hosts)}, behind {tunnel}: {evidence.crossing(lab, 'h0', hosts, 'wan0')}"
    yield f"h0 pings 203.0.113.193, which s1 announces by BGP: {evidence.crossing(lab, 'h0', ['203.0.113.193'], 'wan0')}"
    before = _received(lab)
    far = list(branches["gre2"].values())
    yield f"h1 pings h2, from one tunnel into the other: {evidence.crossing(lab, 'h1', far, 'wan0')}"
    moved = {name: count - before[name] for name, count in _received(lab).items()}
    check(all(n >= 6 for n in moved.values()), "6 packets or more out of each tunnel", moved, LOGS)
    paths = [
        evidence.path(lab, "h1", host, [*hops, host])
        for host, hops in (
            (far[0], ["203.0.113.65", "192.0.2.17", "192.0.2.22"]),
            (far[1], ["2001:db8:2:200::1", "2001:db8:11::1", "2001:db8:12::2"]),
        )
    ]
    yield f"h1 finds h2 by {paths[0]}, and {paths[1]}."
    for host, router in (("203.0.113.74", "203.0.113.1"), ("2001:db8:2:200::10", "2001:db8:2:100::1")):
        told = steps.too_long(lab, "h0", host, 1500)
        check(told == (router, 1472), f"{router} to say that 1472 octets fit", told, LOGS)
    yield "A packet of 1500 octets is answered by r1: 1472 fit into the tunnel with its key."


def _received(lab):
    """Return the number of packets that came out of each tunnel, by its name."""
    rows = lab.dp.show("interfaces")
    return {row["name"]: row["rx_packets"] for row in rows if row["name"] in ("gre1", "gre2")}


def _tunnel_packets(lab):
    """Return the number of packets that r1 has sent by wg0."""
    text = netns.run(lab.ns["r1"], ["ip", "-j", "-s", "link", "show", "wg0"])
    return json.loads(text)[0]["stats64"]["tx"]["packets"]


def _send_tagged(lab, node, dev, mac, vid):
    """Send one frame of a VLAN without an inner packet."""
    frame = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000001")
    frame += struct.pack("!HHH", 0x8100, vid, 0x88B5) + bytes(46)
    with netns.open_socket(lab.ns[node], socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((dev, 0))
        sock.send(frame)
