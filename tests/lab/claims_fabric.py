# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios whose customers cross a core inside other packets: EVPN over VXLAN,
and SRv6 (see claims.py)."""

import re

from lab import evidence, steps
from lab.evidence import check, wait_for
from lib import netns
from lib.wait import PATIENCE

LOGS = ("dataplane", "zebra", "bgpd")

VTEPS = {"r1": "192.0.2.129", "r2": "192.0.2.132", "l3": "192.0.2.133"}
SPINES = ("192.0.2.130", "192.0.2.131")
CORE = ("core0", "core1")
SVI = "br5001"
# The hosts by leaf, each with its subnet.
RED = {
    leaf: {f"10.0.{i}.0/24": f"10.0.{i}.10", f"2001:db8:{i}::/64": f"2001:db8:{i}::10"}
    for i, leaf in enumerate(VTEPS, 1)
}
FAIL_OVER_MS = 1000  # the cable takes the carrier, so OSPF does not wait for its timers


def evpn_l3vni(lab):
    """Two leaves with a dataplane and one of Linux carry a customer over two spines, by VXLAN."""
    seats = {box: lab.seat(box) for box in ("r1", "r2")}
    for seat in seats.values():
        steps.bgp_up(seat, *SPINES)
    steps.bgp_up(lab, *SPINES, router=lab.neighbors["l3"])
    yield "BGP is Established between each leaf and both spines, which reflect the EVPN routes."

    for box, seat in seats.items():
        for leaf in VTEPS.keys() - {box}:
            steps.by(seat, f"{VTEPS[leaf]}/32", *CORE)
            for prefix in RED[leaf]:
                steps.by(seat, prefix, SVI, vrf="red")
        served(seat)
    yield (
        "r1 and r2 have the subnets of the other leaves by type-5 routes, in VRF red, by the interface "
        f"of VNI 5001. They have the VTEPs by {' and '.join(CORE)}."
    )
    for leaf, name in (("r2", "red2"), ("l3", "red3")):
        seen = evidence.crossing(lab, "red1", RED[leaf].values(), CORE)
        yield f"red1 pings {name}, behind {leaf}: {seen}"
    back = evidence.crossing(seats["r2"], "red3", RED["r2"].values(), "red0")
    yield f"red3 pings red2, from the Linux kernel of l3 to r2: {back}"

    for host, length in zip(RED["l3"].values(), (32, 128)):
        for seat in seats.values():
            steps.by(seat, f"{host}/{length}", SVI, vrf="red")
    yield (
        "l3 has bridged hosts, so it announces red3 by type-2 routes, too: r1 and r2 have host routes "
        f"by the same VNI. red1 pings red3: {evidence.crossing(lab, 'red1', RED['l3'].values(), CORE)}"
    )
    for leaf, name in (("r2", "red2"), ("l3", "red3")):
        yield from steps.spreads(lab, "red1", list(RED[leaf].values()), name, CORE)

    paths = [
        evidence.path(lab, "red1", host, [*routers, host])
        for host, routers in (
            ("10.0.2.10", ["10.0.1.1", "10.0.2.1"]),
            ("2001:db8:2::10", ["2001:db8:1::1", "2001:db8:2::1"]),
        )
    ]
    yield f"red1 finds red2 by {paths[0]}, and {paths[1]}. The spines are no hops."
    for host, router in (("10.0.2.10", "10.0.1.1"), ("2001:db8:2::10", "2001:db8:1::1")):
        told = steps.too_long(lab, "red1", host, 1500)
        check(told == (router, 1450), f"{router} to say that 1450 octets fit", told, LOGS)
    yield "A packet of 1500 octets is answered by r1: 1450 fit into VXLAN over IPv4."
    for host, router in (("10.0.9.9", "10.0.1.1"), ("2001:db8:9::9", "2001:db8:1::1")):
        steps.refused(lab, "red1", host, router)
    yield "r1 answers from its addresses in red that no route leads to 10.0.9.9 and 2001:db8:9::9."

    hosts, before = [*RED["r2"].values(), *RED["l3"].values()], red_routes(lab)
    for _ in range(3):  # in one try other programs may take all CPUs for a second
        took = evidence.silence(lab, "red1", hosts, lambda: steps.cable(lab, "core0", False))
        seen, after = evidence.crossing(lab, "red1", hosts, "core1"), red_routes(lab)
        check(after == before, f"the routes of red to stay {before}", after, LOGS)
        steps.cable(lab, "core0", True)
        for leaf in ("r2", "l3"):
            steps.by(lab, f"{VTEPS[leaf]}/32", *CORE)
        if max(took.values()) < FAIL_OVER_MS * PATIENCE:
            break
    check(
        max(took.values()) < FAIL_OVER_MS * PATIENCE,
        f"less than {FAIL_OVER_MS * PATIENCE:.0f} ms of silence",
        evidence.milliseconds(took),
        LOGS,
    )
    yield (
        f"Cable to s1 pulled, silent are {evidence.milliseconds(took)}, then by s2: no route in red "
        f"changes. {seen}"
    )
    yield f"Audit of r2: {evidence.audit(seats['r2'])}"


def red_routes(lab):
    """Return the routes of VRF red, each with its source and its next hops."""
    rows = lab.dp.show("routes", "vrf", "red")
    hop = lambda h: (h["via"], h["dev"], h["weight"], h["alive"])  # noqa: E731
    return {row["prefix"]: (row["source"], sorted(map(hop, row["nexthops"]), key=str)) for row in rows}


def served(seat):
    """Wait until forwarders serve the interface of the VNI."""
    rows = lambda: {row["name"]: row for row in seat.dp.show("interfaces")}  # noqa: E731

    def there():
        svi, vxlan = (rows().get(name) for name in (SVI, "vxlan5001"))
        return svi and vxlan and (svi["vrf"], svi["vni"], vxlan["by_kernel"]) == ("red", 5001, None)

    wait_for(f"{SVI} in the forwarders", there, rows, LOGS)


CUSTOMERS = ("red", "blue")
LOOPBACKS = {"r1": "2001:db8:ff::1", "r2": "2001:db8:ff::4", "pe3": "2001:db8:ff::5"}
LOCATORS = {"r1": "2001:db8:f1::/64", "r2": "2001:db8:f4::/64", "pe3": "2001:db8:f5::/64"}
SITES = dict(zip(LOOPBACKS, RED.values()))
# 1500 octets less the outer header and a routing header with one segment.
ROOM = 1500 - 40 - 8 - 16


def srv6_l3vpn(lab):
    """Customers with the same addresses cross a core of IPv6 behind segments that BGP announces."""
    seats = {box: lab.seat(box) for box in ("r1", "r2")}
    routers = {**{box: seat.r1 for box, seat in seats.items()}, "pe3": lab.neighbors["pe3"]}
    for pe, router in routers.items():
        peers = [loopback for other, loopback in LOOPBACKS.items() if other != pe]
        steps.bgp_up(lab, *peers, router=router)
    sids = {pe: _sids_of(router) for pe, router in routers.items()}
    for box, seat in seats.items():
        for pe in LOCATORS.keys() - {box}:
            steps.by(seat, LOCATORS[pe], *CORE)
            for vrf, own in sids[pe].items():
                for prefix, sid in zip(SITES[pe], own):
                    _behind(seat, prefix, vrf, sid)
        _serves(seat, sids[box])
    yield (
        "BGP is Established between the PE routers. SIDs of red: "
        f"{'; '.join(f'{pe} ' + ' and '.join(own['red']) for pe, own in sids.items())}. r1 and r2 have the "
        f"customers' routes behind such SIDs, and the locators by {' and '.join(CORE)}."
    )

    before = _counted(lab, "packets")
    ends = ("red2", "blue2")
    for vrf in CUSTOMERS:
        asked = {end: steps.echoes(lab, end) for end in ends}
        seen = evidence.crossing(lab, f"{vrf}1", SITES["r2"].values(), CORE)
        asked = {end: steps.echoes(lab, end) - n for end, n in asked.items()}
        mine = asked.pop(f"{vrf}2")
        check(mine >= 6, f"6 pings or more at {vrf}2", mine, LOGS)
        check(not any(asked.values()), "none at the other customer's", asked, LOGS)
        yield f"{vrf}1 pings {vrf}2, which has the addresses of the other customer's: {seen}"
    packets = {sid: n - before[sid] for sid, n in _counted(lab, "packets").items()}
    check(min(packets.values()) >= 3, "3 packets or more to each SID of r1", packets, LOGS)
    check(not any(_counted(lab, "errors").values()), "no errors of the SIDs", lab.dp.show("sids"), LOGS)
    yield f"The answers came to the SIDs of r1: {', '.join(f'{n} to {sid}' for sid, n in packets.items())}."

    seen = evidence.crossing(lab, "red1", SITES["pe3"].values(), CORE)
    yield f"red1 pings red3, behind the Linux kernel of pe3: {seen}"
    back = evidence.crossing(seats["r2"], "red3", SITES["r2"].values(), "red0")
    yield f"red3 pings red2, from the Linux kernel of pe3 to r2: {back}"
    yield from steps.spreads(lab, "red1", list(SITES["r2"].values()), "red2", CORE)

    paths = [
        evidence.path(lab, "red1", host, [near, far, host])
        for near, far, host in (
            ("10.0.1.1", "10.0.2.1", "10.0.2.10"),
            ("2001:db8:1::1", "2001:db8:2::1", "2001:db8:2::10"),
        )
    ]
    yield f"red1 finds red2 by {paths[0]}, and {paths[1]}. The routers of the core are no hops."
    for host, router in (("10.0.2.10", "10.0.1.1"), ("2001:db8:2::10", "2001:db8:1::1")):
        told = steps.too_long(lab, "red1", host, 1500)
        check(told == (router, ROOM), f"{router} to say that {ROOM} octets fit", told, LOGS)
    yield f"A packet of 1500 octets is answered by r1: {ROOM} fit behind the outer headers."
    for host, router in (("10.0.9.9", "10.0.1.1"), ("2001:db8:9::9", "2001:db8:1::1")):
        steps.refused(lab, "red1", host, router)
    for host in SITES["pe3"].values():
        router = "2001:db8:1::1" if ":" in host else "10.0.1.1"
        steps.refused(lab, "blue1", host, router)
    yield "r1 answers red1 that no route leads to 10.0.9.9, and blue1 that none leads to red3."

    hosts, old = [*SITES["r2"].values(), *SITES["pe3"].values()], red_routes(lab)
    took = evidence.silence(lab, "red1", hosts, lambda: steps.cable(lab, "core0", False))
    seen = evidence.crossing(lab, "red1", hosts, "core1")
    steps.cable(lab, "core0", True)
    for pe in ("r2", "pe3"):
        steps.by(lab, LOCATORS[pe], *CORE)
    yield f"Cable to p1 pulled, silent are {evidence.milliseconds(took)}, then by p2. {seen}"
    if _version(lab) >= (10, 3):
        yield _compressed(lab, seats)
    yield f"Audit of r2: {evidence.audit(seats['r2'])}"


# Locators of IS-IS, with compressed SIDs (NEXT-C-SID), and a static SID of r2 for red.
CORE_LOCATORS = {"r1": "2001:db8:f6::/48", "r2": "2001:db8:f7::/48"}
CARRIER, STATIC = "2001:db8:f6:f7::", "2001:db8:f4:0:fe01::"
THROUGH_R1 = f"vrf red 2001:db8:2::10/128 encap seg6 mode encap segs {CARRIER},{STATIC} dev eth0"


def _compressed(lab, seats):
    """Send packets of Linux through SIDs of IS-IS and of staticd. One address has the SIDs of r1 and r2."""
    for box, seat in seats.items():
        prefix = f"prefix {CORE_LOCATORS[box]} block-len 32 node-len 16 func-bits 16"
        seat.r1.configure("segment-routing", "srv6", "locators", "locator core", prefix, "behavior usid")
        seat.r1.configure("router isis core", "segment-routing srv6", "locator core")
    static = f"sid {STATIC}/128 locator main behavior uDT46 vrf red"
    seats["r2"].r1.configure("segment-routing", "srv6", "static-sids", static)
    wanted = {"r1": [CORE_LOCATORS["r1"]], "r2": [CORE_LOCATORS["r2"], f"{STATIC}/128"]}
    for box, seat in seats.items():
        steps.by(seat, CORE_LOCATORS["r2" if box == "r1" else "r1"], *CORE)
        see = lambda s=seat: _counted(s, "packets")  # noqa: E731
        wait_for(f"SIDs {wanted[box]}", lambda w=wanted[box], s=see: set(w) <= s().keys(), see, (*LOGS, "isisd"))
    actions = [row["nexthops"][0]["srv6"] for box, seat in seats.items() for row in seat.dp.show("sids")
               if row["sid"] in wanted[box]]  # fmt: skip
    netns.ip_batch([f"-6 route add {THROUGH_R1}"], lab.ns["pe3"])
    seen = evidence.crossing(seats["r2"], "red3", ["2001:db8:2::10"], "red0")
    netns.ip_batch([f"-6 route del {THROUGH_R1}"], lab.ns["pe3"])
    for box, seat in seats.items():
        counted = _counted(seat, "packets")
        check(all(counted[sid] >= 3 for sid in wanted[box]), f"3 packets or more to {wanted[box]}", counted, LOGS)
    return (
        f"SIDs of IS-IS and of staticd: {', '.join(actions)}. Packets of red3 to {CARRIER} cross r1, reach r2, and "
        f"continue to {STATIC}: {seen}"
    )


def _version(lab):
    """Return (major, minor) of FRR."""
    return tuple(map(int, re.search(r"FRRouting (\d+)\.(\d+)", lab.r1.vtysh("show version")).groups()))


def _sids_of(router):
    """Return {VRF: [its SID for IPv4, that for IPv6]} of a router, as soon as BGP has them."""

    def told():
        found = re.findall(r"name: (\w+)\n.*AFI_IP\].*: (\S+)\n.*AFI_IP6\].*: (\S+)", _segments(router))
        sids = {name: list(own) for name, *own in found if name in CUSTOMERS}
        return "red" in sids and all(":" in sid for own in sids.values() for sid in own) and sids

    return wait_for("SIDs for the VRFs", told, lambda: _segments(router), LOGS)


def _segments(router):
    return router.vtysh("show bgp segment-routing srv6")


def _behind(seat, prefix, vrf, sid):
    """Wait until zebra has a route of a VRF, and the dataplane has it behind a segment."""
    steps.by(seat, prefix, *CORE, vrf=vrf)
    rows = lambda: seat.dp.show("routes", prefix, "exact", "vrf", vrf)  # noqa: E731
    there = lambda: {hop.get("srv6") for row in rows() for hop in row["nexthops"]} == {f"H.Encaps {sid}"}  # noqa: E731
    wait_for(f"{prefix} of {vrf} behind {sid}", there, rows, LOGS)


def _serves(seat, sids):
    """Wait until forwarders serve these SIDs: for each VRF one for IPv4, and one for IPv6."""
    tables = dict(zip(CUSTOMERS, (10, 20)))
    wanted = {
        f"{sid}/128": f"{action} table {tables[vrf]}"
        for vrf, own in sids.items()
        for sid, action in zip(own, ("End.DT4", "End.DT6"))
    }
    see = lambda: {row["sid"]: row["nexthops"][0]["srv6"] for row in seat.dp.show("sids")}  # noqa: E731
    wait_for(f"the SIDs {wanted}", lambda: see() == wanted, see, LOGS)


def _counted(lab, what):
    """Return a counter of each SID."""
    return {row["sid"]: row[what] for row in lab.dp.show("sids")}
