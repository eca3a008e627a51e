# SPDX-License-Identifier: BSD-3-Clause
"""A model of N boxes in a full mesh: load of the mesh links, boxes that a packet passes, throughput,
loss on a failure, memory of the tables. Pure functions.

Traffic is a demand {(box, far box): rate} between external ports; the unit is the caller's. Modes:

direct   a packet goes by the one link to its output box
vlb      Valiant load balancing. Phase 1: the input box spreads flows evenly over all mesh links.
         Phase 2: the box at the other end sends a packet by the one link to its output box.
"""

import math
from dataclasses import dataclass

MODES = ("direct", "vlb")
ON_WIRE = 20  # octets of a frame that a link carries and no port counts: preamble and gap
# A flow has one path. So a measured load differs from the mean by chance; more than this many
# standard deviations are a difference. A share of the buckets of a group is within 2 %.
SIGMAS, SHARE = 5, 0.02
CONTROL = 6  # packets of routing protocols on a link that no count leaves out


def links(boxes):
    """Return both directions of all mesh links."""
    return [(a, b) for a in boxes for b in boxes if a != b]


def middles(a, b, mode, boxes):
    """Return {box at the end of phase 1: share of the flows from a to b}."""
    if mode == "direct":
        return {b: 1.0}
    others = [box for box in boxes if box != a]
    return dict.fromkeys(others, 1 / len(others))


def loads(demand, mode, boxes):
    """Return the rate on each direction of each mesh link."""
    found = dict.fromkeys(links(boxes), 0.0)
    for (a, b), rate in demand.items():
        for middle, share in middles(a, b, mode, boxes).items() if a != b else ():
            found[a, middle] += share * rate
            if middle != b:
                found[middle, b] += share * rate
    return found


def boxes_passed(demand, mode, boxes):
    """Return how many boxes a packet passes on average."""
    total = sum(demand.values())
    crossing = sum(loads(demand, mode, boxes).values())
    return 1 + crossing / total if total else 0.0


def lookups(demand, mode, boxes):
    """Return the rate of packets that each box looks up: from outside and from the mesh."""
    found = {box: sum(rate for (a, _), rate in demand.items() if a == box) for box in boxes}
    for (_, to), rate in loads(demand, mode, boxes).items():
        found[to] += rate
    return found


def uniform(boxes, rate=1.0):
    """Return the demand with which each box sends `rate` in equal parts to the others."""
    return dict.fromkeys(links(boxes), rate / (len(boxes) - 1))


def hot(boxes, rate=1.0):
    """Return the demand of one pair."""
    return {(boxes[0], boxes[1]): rate}


@dataclass
class Box:
    """The figures of one box, and the speeds of its links."""

    mpps: float  # of one core
    cores: int
    ext_gbps: float  # of the external port, each direction
    mesh_gbps: float  # of a mesh link, each direction
    octets: int  # of a frame

    def packets(self, gbps):
        """Return the packets a second that a link carries, in millions."""
        return gbps * 1e3 / (8 * (self.octets + ON_WIRE))


def throughput(demand, mode, boxes, box):
    """Return (the largest rate of all external ports together in Mpps with this pattern, its limit:
    "port", "mesh" or "cores")."""
    total = sum(demand.values())
    come = [sum(r for (a, _), r in demand.items() if a == x) for x in boxes]
    go = [sum(r for (_, b), r in demand.items() if b == x) for x in boxes]
    most = {
        "port": box.packets(box.ext_gbps) / max(come + go),
        "mesh": box.packets(box.mesh_gbps) / (max(loads(demand, mode, boxes).values()) or math.inf),
        "cores": box.mpps * box.cores / max(lookups(demand, mode, boxes).values()),
    }
    limit = min((x for x in most if most[x] > 0), key=most.get)
    return most[limit] * total, limit


def loss(demand, mode, boxes, dead, member_s, reroute_s):
    """Return the loss by a dead mesh link {a, b}, or by a dead box "a": {"member": rate that is lost
    until a group leaves the dead member, "reroute": rate that is lost until routing has another path,
    "gone": rate from and to the dead box itself, "packets": the number lost before the paths
    are whole}. A time of None is not known, nor is `packets` then."""
    of = {"member": 0.0, "reroute": 0.0, "gone": 0.0}
    is_box = isinstance(dead, str)
    for (a, b), rate in demand.items():
        if is_box and dead in (a, b):
            of["gone"] += rate
            continue
        for middle, share in middles(a, b, mode, boxes).items():
            first, second = {a, middle}, {middle, b} if middle != b else set()
            if is_box:
                hit = "member" if middle == dead else None
            else:
                hit = "member" if first == set(dead) else "reroute" if second == set(dead) else None
            if hit == "member" and mode == "direct":
                hit = "reroute"  # "reroute": there is no group with other members
            if hit:
                of[hit] += share * rate
    lost = [(of["member"], member_s), (of["reroute"], reroute_s)]
    known = all(seconds is not None for rate, seconds in lost if rate)
    of["packets"] = sum(rate * seconds for rate, seconds in lost if rate) if known else None
    return of


def table_mib(routes, octets_a_route):
    """Return the MiB that a full table takes in a box. Both modes need it once: with VLB the FIB for packets
    from outside has only a default route, and a box that never uses VLB needs no VRF. (The boxes of the
    scenario cluster-vlb change from one mode to the other. They keep their VRF, so with direct routing they
    have the table twice.)"""
    return routes * octets_a_route / 2**20


def differences(demand, mode, measured, each=1):
    """Return {link: (measured, expected, tolerated)} of the links whose measured packets differ from
    the model. demand: packets of each pair, `each` of them in one flow."""
    boxes = sorted({box for link in measured for box in link})
    variance = dict.fromkeys(measured, 0.0)
    for (a, b), packets in demand.items():
        for middle, share in middles(a, b, mode, boxes).items():
            of_one = packets * each * share * (1 - share)
            for link in {(a, middle), (middle, b)} & measured.keys():
                variance[link] += of_one
    found = {}
    for link, expected in loads(demand, mode, boxes).items():
        tolerated = SIGMAS * math.sqrt(variance[link]) + SHARE * expected + CONTROL
        if abs(measured[link] - expected) > tolerated:
            found[link] = (measured[link], round(expected, 1), round(tolerated, 1))
    return found
