# SPDX-License-Identifier: BSD-3-Clause
"""The routing sessions of the demo's r1, as FRR counts them."""

from lab import topology


def _of_ospf(peers):
    """Return the BFD sessions of OSPF. chaos/fast.py has others, over several hops and to the lan."""
    return [p for p in peers if p.get("interface") in ("core0", "core1") and not p["multihop"]]


def bfd_up(r1):
    """Return the BFD sessions of OSPF that are up."""
    return [p for p in _of_ospf(r1.json("show bfd peers json")) if p["status"] == "up"]


def ospf_is_full(r1, families=(4, 6)):
    """Return True if OSPF of these families is Full on both links to core."""
    full = {"core0": "Full", "core1": "Full"}
    return all(r1.ospf_states(family) == full for family in families)


def are_up(r1):
    """Return True if all sessions are up: BGP, OSPF of both families, BFD over both links to
    core."""
    return (
        r1.bgp_state(topology.ISP4) == "Established"
        and ospf_is_full(r1)
        and len(bfd_up(r1)) == 4
    )


def flaps(r1):
    """Return how often BGP came up, how often each BFD session went down, and the state changes of
    OSPF. The value is constant until a session is lost."""
    bgp = r1.json("show bgp neighbors json")[topology.ISP4]
    bfd = r1.json("show bfd peers counters json")
    ospf = r1.vtysh("show ip ospf neighbor detail").splitlines()
    ospf = [line.split(",")[-1].strip() for line in ospf if "state changes" in line]
    return {
        "bgp": bgp["connectionsEstablished"],
        "bfd": sorted((p["peer"], p["session-down"]) for p in _of_ospf(bfd)),
        "ospf": ospf,
    }
