# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios whose customers cross a core inside other packets: EVPN over VXLAN
(see claims.py)."""

from lab import evidence, steps
from lab.evidence import check, wait_for
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
    took = evidence.silence(lab, "red1", hosts, lambda: steps.cable(lab, "core0", False))
    seen, after = evidence.crossing(lab, "red1", hosts, "core1"), red_routes(lab)
    check(after == before, f"the routes of red to stay {before}", after, LOGS)
    check(
        max(took.values()) < FAIL_OVER_MS * PATIENCE,
        f"less than {FAIL_OVER_MS * PATIENCE:.0f} ms of silence",
        evidence.milliseconds(took),
        LOGS,
    )
    steps.cable(lab, "core0", True)
    for leaf in ("r2", "l3"):
        steps.by(lab, f"{VTEPS[leaf]}/32", *CORE)
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
