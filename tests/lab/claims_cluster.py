# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios with several boxes (see claims.py)."""

import collections
import contextlib
import json
import os
import time

from bench import scale
from lab import evidence, steps
from lab.evidence import check, wait_for
from lab.plan import wires
from lib import flows, netns
from lib.dut import Control
from lib.wait import PATIENCE

LOGS = ("dataplane", "zebra", "bgpd")

# -- four boxes behind r1 --------------------------------------------------------------------

SHARED = {"198.51.100.10": "198.51.100.0/24", "2001:db8:c0::10": "2001:db8:c0::/64"}
# By box: its port at r1, and its addresses as BGP peers of r1.
BEHIND = {f"b{n + 1}": (f"box{n}", (f"192.0.2.{4 * n + 2}", f"2001:db8:1{n}::2")) for n in range(4)}
FLOWS = 400
RATE = 500  # packets a second while a box leaves


def anycast_edge(lab):
    """r1 spreads flows over four boxes. A box that leaves moves its own flows and no others."""
    steps.bgp_up(lab, *(peer for _, peers in BEHIND.values() for peer in peers))
    _behind(lab, BEHIND)
    for host, prefix in SHARED.items():
        with contextlib.ExitStack() as stack:
            watch = _Shares(lab, host, prefix, stack)
            before = watch.owners()
            shares = collections.Counter(before.values())
            fair = all(FLOWS / 6 < n < FLOWS / 3 for n in shares.values())
            check(shares.keys() == BEHIND.keys() and fair, "a fair share of each box", shares, LOGS)
            yield f"{FLOWS} flows to {host}: {_spoken(shares)}."
            yield watch.leaves("b3", before, "shut down by r1", _shut_down(lab, "b3"))
            yield watch.leaves("b2", before, "unplugged", _unplugged(lab, "b2"))


def _behind(lab, boxes):
    """Wait until r1 has the shared prefixes by these boxes."""
    for prefix in SHARED.values():
        steps.by(lab, prefix, *(BEHIND[box][0] for box in boxes))


def _shut_down(lab, box):
    """Return the functions that take a box out and bring it back by BGP."""

    def shut(no):
        peers = [f"{no}neighbor {peer} shutdown" for peer in BEHIND[box][1]]
        lab.r1.configure("router bgp 64500", *peers)

    return lambda: shut(""), lambda: shut("no ")


def _unplugged(lab, box):
    """Return the functions that pull the cable of a box and plug it in again."""
    port = BEHIND[box][0]
    return lambda: steps.cable(lab, port, False), lambda: steps.cable(lab, port, True)


def _spoken(shares):
    return ", ".join(f"{n} by {name}" for name, n in sorted(shares.items()))


class _Shares:
    """Flows from h1 to an address that all boxes have, and their receivers."""

    def __init__(self, lab, host, prefix, stack):
        self.lab, self.host, self.prefix = lab, host, prefix
        self.sinks = {box: stack.enter_context(flows.Sink(lab.ns[box], host)) for box in BEHIND}
        self.source = stack.enter_context(flows.Source(lab.ns["h1"], host, FLOWS))
        evidence.answered(lab, lambda: _pinged(lab, host), bool)

    def owners(self):
        """Send a packet of each flow, and check that all arrive. Return {flow: box that received it}."""
        for sink in self.sinks.values():
            sink.forget()
        self.source.sent.clear()
        sent = self.source.round()
        lost = flows.settle(self.source, self.sinks.values())
        check(lost == 0, f"all of {sent} packets to arrive", f"{lost} lost", LOGS)
        return flows.owners(self.sinks)

    def leaves(self, box, before, how, actions):
        """Take a box out while packets flow, and bring it back. Returns a sentence."""
        out, back = actions
        mine = {flow for flow, name in before.items() if name == box}
        rest = [name for name in BEHIND if name != box]
        lost, silence = self._meanwhile(out, rest)
        hit = {flow for flow, _ in lost}
        check(hit <= mine, f"only flows of {box} to lose packets", sorted(hit - mine), LOGS)
        without = self.owners()
        moved = {flow for flow, name in without.items() if name != before[flow]}
        check(moved == mine, f"the {len(mine)} flows of {box} to move, and no other", len(moved), LOGS)
        shares = collections.Counter(without[flow] for flow in moved)
        fair = all(n > len(mine) / 6 for n in shares.values())
        check(shares.keys() == set(rest) and fair, f"{', '.join(rest)} to share them", shares, LOGS)
        self._meanwhile(back, BEHIND)
        again = self.owners()
        check(again == before, f"{box} to have its flows again", _differ(before, again), LOGS)
        return (
            f"{box} {how}: its {len(mine)} flows move ({_spoken(shares)}), {len(lost)} packets are lost in "
            f"{1000 * silence:.0f} ms; the other {FLOWS - len(mine)} flows stay and lose none. It comes back: "
            "each flow is where it was."
        )

    def _meanwhile(self, action, boxes):
        """Call action() while packets flow, until r1 has the prefix by these boxes. Return the
        packets that are lost, and the seconds between the first and the last of them."""
        for sink in self.sinks.values():
            sink.forget()
        self.source.sent.clear()
        with flows.Stream(self.source, RATE) as stream:
            action()
            _behind(self.lab, boxes)
            stream.goes_on(self.sinks.values())
        flows.settle(self.source, self.sinks.values())
        lost = self.source.lost(self.sinks.values())
        return lost, self.source.silence(lost)


def _pinged(lab, host):
    return steps.probe.ping(lab.ns["h1"], host, 1)[0]


def _differ(one, other):
    return f"{sum(one[flow] != other.get(flow) for flow in one)} of {len(one)} flows elsewhere"


# -- four boxes in a full mesh -----------------------------------------------------------------

BOXES = ("r1", "r2", "r3", "r4")
AS, FAMILIES = 64500, (4, 6)
# By box: the node at its external port, an address behind this node and its prefix (n1 has the routes of
# a BGP speaker instead), the node's address as BGP peer, and the loopback of the box in VRF mesh. Addresses of
# both families are by family.
OUTSIDE = {"r1": "n1", "r2": "n2", "r3": "n3", "r4": "n4"}
HOST = {
    4: {"r2": "198.51.100.65", "r3": "198.51.100.129", "r4": "198.51.100.193"},
    6: {f"r{n}": f"2001:db8:c0:{n}::1" for n in (2, 3, 4)},
}
PREFIX = {
    4: {"r2": "198.51.100.64/26", "r3": "198.51.100.128/26", "r4": "198.51.100.192/26"},
    6: {f"r{n}": f"2001:db8:c0:{n}::/64" for n in (2, 3, 4)},
}
PEER = {box: f"192.0.2.{130 + 4 * n}" for n, box in enumerate(BOXES)}
NODE = {4: PEER, 6: {box: f"2001:db8:e{n + 1}::2" for n, box in enumerate(BOXES)}}
LOOPBACK = {box: f"192.0.2.{241 + n}" for n, box in enumerate(BOXES)}
HOT, UNIFORM, EACH = 900, 120, 4  # flows of a hot pair, flows of each pair, packets of a flow in a row
FAIL_RATE = 100  # packets a second while a part fails: a busy machine forwards them, too
FAILING, UNROUTED = 60, 60  # flows of each pair while a part fails, and flows without a route
BETWEEN = 30  # flows of each pair of the other boxes while a box dies
NOISE = 0.1  # tolerated difference from the model: by chance a box gets a few flows more than another
LATE_S = 1.0 * PATIENCE  # a packet that has not come after this time is lost
DETECT_S = 3 * 0.7  # BFD: profile mesh
TTL = 64
DEFAULT, NOWHERE = {4: "0.0.0.0/0", 6: "::/0"}, "203.0.113.77"
WAIT = 120  # seconds until BGP between four boxes has settled


def cluster_vlb(lab):
    """Four boxes are one router: a packet crosses the mesh in two phases at most."""
    mesh = _Mesh(lab)
    took = mesh.converge(mesh.announced())
    routes = f"{mesh.n[4]:,} IPv4 and {mesh.n[6]:,} IPv6 routes"
    yield f"Each box has its own neighbor's BGP session, and n1's {routes}: {_tables(mesh.sizes())}."
    yield (
        f"Seconds from n1's BGP session to all of these routes in the FIB: {_by_box(took)}. "
        f"MiB of memory of each box: {_by_box(mesh.memory())}."
    )
    mesh.neighbors()
    yield from mesh.audits()
    yield mesh.nowhere("r2")
    found = {"vlb": mesh.measure("vlb")}
    yield from _loads("vlb", found["vlb"])
    yield from _loads("vlb", mesh.measure("vlb", 6), "IPv6, ")
    yield mesh.link_dies("r2", "r4")
    yield from mesh.box_hangs("r4")
    yield from mesh.box_dies("r4")
    yield _one_more("vlb", mesh.three["vlb"], found["vlb"]["uniform"])

    mesh.route("direct")
    found["direct"] = mesh.measure("direct")
    yield from _loads("direct", found["direct"])
    yield from _loads("direct", mesh.measure("direct", 6), "IPv6, ")
    yield _one_more("direct", mesh.three["direct"], found["direct"]["uniform"])
    for what in ("hot", "uniform"):
        most = {mode: max(found[mode][what]["loads"].values()) for mode in found}
        passed = {mode: found[mode][what]["boxes"] for mode in found}
        yield (
            f"Compared with direct routing in the same run, the busiest mesh link of {what} traffic has "
            f"{most['vlb'] / most['direct']:.2f} times the load, and a packet passes "
            f"{passed['vlb'] / passed['direct']:.2f} times as many boxes."
        )
    of_box = {mode: found[mode]["uniform"]["of_box"] for mode in found}
    yield (
        "Until the busiest box has forwarded a given number of packets, uniform traffic by two phases delivers "
        f"{of_box['vlb'] / of_box['direct']:.2f} times as many packets as direct routing in the same run."
    )

    mesh.route("vlb")
    yield from mesh.audits()


_MODES = {"vlb": "Two phases", "direct": "Direct routing"}


def _loads(mode, found, family=""):
    """Yield the sentence of each kind of traffic that was measured in a mode."""
    for what, seen in found.items():
        yield f"{_MODES[mode]}, {family}{what}: {seen['spoken']}"


def _one_more(mode, three, four):
    """Compare the throughput of three boxes with that of four, by packets of uniform traffic that arrive
    while the busiest box forwards one packet. Returns a sentence."""
    got, model = four["of_box"] / three["of_box"], four["model_of_box"] / three["model_of_box"]
    check(abs(got / model - 1) < NOISE, f"a fourth box to add {model - 1:.0%} ({mode})", f"{got - 1:.0%}", LOGS)
    link = four["of_link"] / three["of_link"]
    return (
        f"{_MODES[mode]}, uniform: while the busiest box forwards one packet, three boxes deliver "
        f"{three['of_box']:.2f} packets and four {four['of_box']:.2f}: the fourth box adds {got - 1:.0%} (model "
        f"{model - 1:.0%}). If mesh links are the limit, it adds {link - 1:.0%}."
    )


def _by_box(values):
    return ", ".join(f"{box} {value}" for box, value in values.items())


def _own(box):
    """Return the address of a box on its external port."""
    return f"192.0.2.{129 + 4 * BOXES.index(box)}"


def _tables(rows):
    """Return the prefixes of each FIB as text."""
    least = [min(row["mesh", family] for row in rows.values()) for family in FAMILIES]
    most = [max(row["main", family] for row in rows.values()) for family in FAMILIES]
    return (
        f"at least {least[0]:,} + {least[1]:,} prefixes in VRF mesh, and at most {most[0]:,} + {most[1]:,} in table main"
    )


class _Mesh:
    """The boxes, the mesh links between them, and traffic from one external port to another."""

    def __init__(self, lab):
        self.lab = lab
        self.seats = {box: lab.seat(box) for box in BOXES}
        self.boxes = list(BOXES)  # all that are alive
        self.three = {}  # mode: figures of uniform traffic between three boxes
        # The port of each direction of each mesh link.
        self.port = {
            (box, far): tap for box in BOXES for tap, far, _ in lab.plan.ports_of(box) if far in BOXES
        }
        told = wait_for("the BGP speaker answers", lambda: lab.isp("status"), lambda: "nothing", (), 60)
        self.n = {family: told[f"routes{family}"] for family in FAMILIES}
        some = lab.isp("sample", count=1, seed=1)
        some = {family: some[f"ipv{family}"][0] for family in FAMILIES}
        self.host = {family: {"r1": some[family]["host"], **HOST[family]} for family in FAMILIES}
        self.prefix = {family: {"r1": some[family]["prefix"], **PREFIX[family]} for family in FAMILIES}
        self.filling = WAIT + sum(self.n.values()) // 50  # seconds for all routes
        self.plain = None  # by family, the largest number of prefixes of a table main without routes of BGP

    # -- routing --

    def announced(self):
        """Wait until n1's BGP session is Established. Return this time, from when n1 announces its routes."""

        def established():
            with open(self.lab.path("isp.log"), encoding="utf-8") as file:
                rows = [json.loads(line) for line in file if line.startswith("{")]
            return [row["t"] for row in rows if row["event"] == "established"]

        return wait_for("BGP of n1", established, lambda: self.lab.tail("isp.log", 3), LOGS, WAIT)[0]

    def converge(self, since):
        """Wait until each box has all routes. Return the seconds from the time `since` to all routes in the
        FIB of each box."""
        took = {}

        def whole():
            rows = self.sizes()
            for box in BOXES:
                if all(rows[box].get(("mesh", f), 0) >= self.n[f] + len(PREFIX[f]) - 1 for f in FAMILIES):
                    took.setdefault(box, round(time.monotonic() - since, 1))
            return took.keys() == set(BOXES)

        wait_for("all routes in all boxes", whole, self.sizes, LOGS, self.filling)
        for box, seat in self.seats.items():
            steps.bgp_up(seat, PEER[box])
            others = [LOOPBACK[far] for far in BOXES if far != box]
            states = lambda s=seat, o=others: {p: s.r1.bgp_state(p, "mesh") for p in o}  # noqa: E731
            wait_for(
                f"BGP of {box} with the others",
                lambda s=states: set(s().values()) == {"Established"}, states, LOGS, WAIT,
            )  # fmt: skip
        rows = self.sizes()
        self.plain = {family: max(row["main", family] for row in rows.values()) for family in FAMILIES}
        self.spreads()
        return {box: took[box] for box in BOXES}

    def neighbors(self):
        """Check that each neighbor has the prefixes of the others by its own box."""
        for box, outside in OUTSIDE.items():
            if outside not in self.lab.neighbors:
                continue
            frr = self.lab.neighbors[outside]
            for prefix in (x for far, x in PREFIX[4].items() if far != box):
                hops = lambda frr=frr, prefix=prefix: _next_hops(frr, "ip", prefix)  # noqa: E731
                wait_for(f"{prefix} in {outside}", lambda h=hops, b=box: h() == [_own(b)], hops, LOGS, WAIT)
            for prefix in (x for far, x in PREFIX[6].items() if far != box):
                hops = lambda frr=frr, prefix=prefix: _next_hops(frr, "ipv6", prefix)  # noqa: E731
                wait_for(f"{prefix} in {outside}", lambda h=hops: len(h()) == 1, hops, LOGS, WAIT)

    def sizes(self):
        """Return {box: {(VRF, family): prefixes in its FIB}}."""
        return {
            box: {(r["vrf"] or "main", int(r["family"][-1])): r["routes"] for r in seat.dp.show("fib")}
            for box, seat in self.seats.items()
            if box in self.boxes
        }

    def memory(self):
        """Return the resident memory of the programs of each box, as text."""
        found = {}
        for box, seat in self.seats.items():
            pids = {"dataplane": self.lab.pids(seat.dp)[0], **{x: seat.r1.pid(x) for x in ("zebra", "bgpd")}}
            found[box] = {name: _resident_mib(pid) for name, pid in pids.items()}
        _append({"bench": "mesh-memory", "mode": "vlb", "routes": sum(self.n.values()), "mib": found})
        return {
            box: f"({', '.join(f'{name} {mib}' for name, mib in of_box.items())})" for box, of_box in found.items()
        }

    def audit(self, seat):
        """Audit a box. Return fpmctl's verdict."""
        return evidence.audit(seat, self.filling)

    def audits(self):
        """Audit all boxes. Yields a sentence for each."""
        for box, seat in self.seats.items():
            yield f"Audit of {box}: {self.audit(seat)}"

    def route(self, mode):
        """Change each box to a mode of routing, and wait until all use it with all routes."""
        no = "no " if mode == "direct" else ""
        for box in self.boxes:
            for family in FAMILIES:
                self.seats[box].r1.configure(
                    f"router bgp {AS}", f"address-family ipv{family} unicast", f"{no}table-map ANNOUNCED"
                )

        def filled(rows, family):
            main = [row["main", family] for row in rows]
            return max(main) <= self.plain[family] if mode == "vlb" else min(main) >= self.n[family]

        def whole():
            rows = self.sizes().values()
            return all(filled(rows, family) for family in FAMILIES)

        wait_for(f"all routes of mode {mode} in table main", whole, self.sizes, LOGS, self.filling)
        self.spreads(mode)

    def spreads(self, mode="vlb"):
        """Wait until each box has the expected next hops for the prefixes of the other boxes. In table
        main they are: in mode vlb only those of the default route, by all mesh links; with direct
        routing the link to the box of the prefix. In VRF mesh they are always the link to that box. Wait
        until BFD is Up with all other boxes."""
        for box in self.boxes:
            up = lambda b=box: self._bfd(b, "up")  # noqa: E731
            wait_for(f"BFD of {box} is Up", lambda b=box, s=up: s() == self._links(b), up, ("dataplane", "bfdd"), WAIT)
            seat = self.seats[box]
            for family in FAMILIES:
                self._by(seat, DEFAULT[family], self._links(box), "main")
                for far in (x for x in self.boxes if x != box):
                    one = [self.port[box, far]]
                    self._by(seat, self.prefix[family][far], [] if mode == "vlb" else one, "main")
                    self._by(seat, self.prefix[family][far], one, "mesh")

    def _bfd(self, box, state):
        """Return the ports of a box whose two BFD sessions with a box that is alive have this state, in the order
        of _links()."""
        devs = collections.Counter(row["dev"] for row in self.seats[box].dp.show("bfd") if row["state"] == state)
        return [tap for tap in self._links(box) if devs[tap] == len(FAMILIES)]

    def _left_out(self, dead):
        """Wait until BFD has removed a box from phase 1 of all others, while all links have carrier."""
        for box in (x for x in self.boxes if x != dead):
            seat, tap = self.seats[box], self.port[box, dead]
            pruned = lambda s=seat: [row["dev"] for row in s.dp.show("bfd") if row["pruned"]]  # noqa: E731
            both = [tap] * len(FAMILIES)
            wait_for(f"{box} to leave out {dead}", lambda p=pruned, b=both: p() == b, pruned, ("dataplane",), WAIT)
            for prefix in DEFAULT.values():
                taps = _hops(seat, prefix, "main")
                check(taps == sorted(self._links(box)), "all links in the route, because they have carrier", taps)

    def _links(self, box, without=None):
        """Return the ports of the links of a box to the boxes that are alive, except for `without`."""
        links = {far: tap for (at, far), tap in self.port.items() if at == box and far in self.boxes}
        return [tap for far, tap in links.items() if far != without]

    def _by(self, seat, prefix, taps, vrf):
        seen = lambda: _hops(seat, prefix, vrf)  # noqa: E731
        wait_for(f"{prefix} by {taps} in {vrf}", lambda: seen() == sorted(taps), seen, LOGS, WAIT)

    def nowhere(self, box):
        """Check that packets without a route cross only one mesh link. Returns a sentence."""
        before, dropped = self._settled(), self._unrouted()
        with flows.Source(self.lab.ns[OUTSIDE[box]], NOWHERE, UNROUTED, HOST[4][box]) as source:
            sent = source.round()
            count = lambda: self._unrouted() - dropped  # noqa: E731
            wait_for(f"{sent} packets without a route", lambda: count() >= sent, count, LOGS, 10)
        # The links to the box do not count, because they carry ICMP errors.
        crossed = sum(n - before[link] for link, n in self._settled().items() if link[1] != box)
        check((count(), crossed) == (sent, sent), "each of them to cross one link", (count(), crossed), LOGS)
        return f"{sent} packets to a destination without a route cross one mesh link each; no box spreads them again."

    def _unrouted(self):
        """Return the packets that all boxes have dropped because a route is unreachable."""
        return sum(seat.dp.counter("drop", "unreachable") for seat in self.seats.values())

    # -- traffic --

    def measure(self, mode, family=4):
        """Return what hot() and uniform() measure."""
        return {"hot": self.hot(mode, family), "uniform": self.uniform(mode, family)}

    def hot(self, mode, family=4):
        """Send all flows of one pair. Return the loads and a sentence."""
        return self._traffic(mode, {("r2", "r3"): HOT}, family)

    def uniform(self, mode, family=4):
        """Send as many flows from each box to each other. Return the loads and a sentence."""
        pairs = [(a, b) for a in self.boxes for b in self.boxes if a != b]
        return self._traffic(mode, dict.fromkeys(pairs, UNIFORM), family)

    def _traffic(self, mode, pairs, family):
        """Send flows, and compare the packets on each mesh link with the model. Return the loads,
        the boxes that a packet passes, and a sentence."""
        with contextlib.ExitStack() as stack:
            sinks = {far: self._sink(stack, far, family) for far in dict.fromkeys(b for _, b in pairs)}
            sources = self._sources(stack, pairs, family)
            for source in sources.values():
                source.round()  # this resolves the neighbors; it is not measured
            flows.settle(_All(sources.values()), list(sinks.values()))
            for far in sinks.values():
                far.forget()
            before, passed = self.loads(), self.forwarded()
            sent = sum(s.round(EACH) for s in sources.values())
            came = lambda: sum(sink.take() for sink in sinks.values())  # noqa: E731
            wait_for(f"{sent} packets", lambda: came() == sent, came, LOGS, 10)
            after = self.loads()
            loads = {link: after[link] - before[link] for link in after}
            by_box = {box: n - passed[box] for box, n in self.forwarded().items()}
            boxes = sum(by_box.values()) / sent
            late, hops = flows.reordered(sinks.values()), flows.ttls(sinks.values())
            divided = flows.divided(sinks.values())
        packets = {pair: n * EACH for pair, n in pairs.items()}
        off = scale.differences(packets, mode, loads, EACH)
        model = scale.boxes_passed(packets, mode, self.boxes)
        check(not off, f"the load of each mesh link as the model has it ({mode})", off, LOGS)
        check(late == 0, "no packet behind a later one of its flow", late, LOGS)
        check(not divided, "one path for all packets of a flow", divided, LOGS)
        least = TTL - (3 if mode == "vlb" else 2)
        check(abs(boxes - model) < 0.1, f"{model:.2f} boxes a packet", f"{boxes:.2f}", LOGS)
        check(min(hops) >= least and max(hops) == TTL - 2, f"TTLs from {least} to {TTL - 2}", hops, LOGS)
        if family == 4:
            _record(mode, packets, loads, boxes)
        return {
            "loads": loads,
            "boxes": boxes,
            "of_box": sent / max(by_box.values()),
            "model_of_box": sent / max(scale.lookups(packets, mode, self.boxes).values()),
            "of_link": sent / max(loads.values()),
            "spoken": (
                f"{sent} packets, all arrive, in order, with TTLs {dict(sorted(hops.items()))}; busiest mesh link "
                f"{max(loads.values())}, {sum(n > sent / 100 for n in loads.values())} of {len(loads)} used; a packet "
                f"passes {boxes:.2f} boxes (model {model:.2f})."
            ),
        }

    # -- failures --

    def link_dies(self, one, two):
        """Pull the cable of a mesh link while packets flow, and plug it in again. Returns a sentence."""
        third = next(box for box in HOST[4] if box not in (one, two))
        # Phase 1 of the first pair uses the link, and phase 2 of the second pair.
        pairs = {(one, third): FAILING, (third, two): FAILING}
        ends = ((one, two), (two, one))

        def found():
            for box, far in ends:
                self._by(self.seats[box], DEFAULT[4], self._links(box, far), "main")
                detour = lambda b=box, f=far: _hops(self.seats[b], self.prefix[4][f], "mesh")  # noqa: E731
                wait_for(f"{self.prefix[4][far]} in {box} by a third box",
                         lambda b=box, f=far, d=detour: d() and self.port[b, f] not in d(), detour, LOGS, WAIT)  # fmt: skip

        hit = self._flows_by(one, third, two) | self._flows_by(third, two, one, FAILING)
        _expected(hit, pairs, {one, two})
        text, span = self._fails(pairs, hit, lambda: steps.cable(self.seats[one], self.port[one, two], False), found)
        _append({"bench": "mesh-loss", "routes": self.n[4], "reroute_ms": round(1000 * span, 1)})
        steps.cable(self.seats[one], self.port[one, two], True)
        self.spreads()
        return f"The link of {one} and {two} is pulled: {text}"

    def box_hangs(self, dead):
        """Stop all programs of a box while packets flow between the others. Its cables keep their carrier. Let
        the programs go on. Yields a sentence for each."""
        pairs, hit = self._past(dead)
        with contextlib.ExitStack() as stack:
            watch = _Watch(self, pairs, stack)
            with self.lab.stopped_box(dead):
                text = self._silent(watch, dead, hit)
                yield f"All programs of {dead} are stopped, and its cables keep their carrier: {text}"
                resumed = time.monotonic()
            self.spreads()
            watch.go_on()
            text, _ = watch.lost(hit, resumed, time.monotonic())
            yield f"They go on, and BFD is Up again: {dead} is used as before. Of its share {text}. The others lose none."

    def _silent(self, watch, dead, hit):
        """Wait until the other boxes have left out a box that is silent from now on. Check that its share of
        the flows loses packets until BFD detects it, and none afterwards. Returns a sentence."""
        silent = time.monotonic()
        self._left_out(dead)
        found = time.monotonic()
        watch.go_on()
        text, last = watch.lost(hit, silent, found)
        limit = DETECT_S + LATE_S
        check(0 < last < limit, f"lost packets, the last within {limit:.1f} s (BFD: {DETECT_S:.1f} s)", last, LOGS)
        return (
            f"of its share, which is {len(hit)} of {watch.flows} flows between the other boxes, {text} (detection time of "
            f"BFD: {1000 * DETECT_S:.0f} ms). Then all flows go on by the other boxes. The others lose none."
        )

    def _past(self, dead):
        """Return pairs of the other boxes with their number of flows, and the flows that pass the box `dead`."""
        alive = [box for box in BOXES if box != dead]
        pairs = dict.fromkeys(zip(alive, alive[1:] + alive[:1]), BETWEEN)
        hit = set()
        for n, (box, far) in enumerate(pairs):
            hit |= self._flows_by(box, far, dead, n * BETWEEN, BETWEEN)
        _expected(hit, pairs, dead)
        return pairs, hit

    def box_dies(self, dead):
        """Kill all programs of a box while packets flow between the others, pull its cables, and boot
        it. Yields a sentence for each."""
        alive = [box for box in BOXES if box != dead]
        pairs, hit = self._past(dead)
        with contextlib.ExitStack() as stack:
            watch = _Watch(self, pairs, stack)
            self.lab.kill_box(dead)
            text = self._silent(watch, dead, hit)
            yield f"All programs of {dead} are killed, and its cables keep their carrier: {text}"
            pulled = time.monotonic()
            self._cables(dead, False)
            self._without(dead, alive)
            watch.go_on()
            text, _ = watch.lost(hit, pulled, time.monotonic())
            yield f"Then the cables of {dead} are pulled: {text}. The other boxes have no route to its port."
        self.boxes = alive
        for mode in scale.MODES:
            self.route(mode)
            self.three[mode] = self.uniform(mode)
        self.boxes = list(BOXES)
        with contextlib.ExitStack() as stack:
            watch = _Watch(self, pairs, stack)
            booted = time.monotonic()
            # A link that flaps leaves other next hops in the kernel than in zebra 8.4. The dataplane takes its
            # ports down and up when it starts, so the far ends stay down until all programs run.
            self._far_ends(dead, False)
            self._cables(dead, True)  # net_af_packet opens no interface that is down
            self.lab.boot_box(dead)
            plugged = time.monotonic()
            self._far_ends(dead, True)
            took = self.converge(plugged)[dead]
            self.neighbors()
            watch.go_on()
            watch.lost(hit, booted, plugged)
            text, _ = watch.lost(hit, plugged, time.monotonic())
            yield (
                f"{dead} boots, gets its cables, has all {sum(self.n.values()):,} routes in its FIB {took} s later, and is used as "
                f"before: of its share {text}. The others lose none."
            )
        yield f"Audits of {', '.join(BOXES)}: " + " ".join(map(self.audit, self.seats.values()))

    def _cables(self, box, plugged):
        """Pull all cables of a box, or plug them in, at its own ends."""
        for tap, _, _ in self.lab.plan.ports_of(box):
            netns.link_set(self.lab.ns[wires(box)], f"port-{tap}", plugged)

    def _far_ends(self, box, up):
        """Take the far ends of all cables of a box up or down."""
        for _, far, dev in self.lab.plan.ports_of(box):
            at, dev = (wires(far), f"port-{dev}") if far in BOXES else (far, dev)
            netns.link_set(self.lab.ns[at], dev, up)

    def _without(self, dead, alive):
        """Wait until the other boxes use no link to a dead box, and have no route to its prefix."""
        for box in alive:
            for family in FAMILIES:
                self._by(self.seats[box], DEFAULT[family], self._links(box, dead), "main")
                self._by(self.seats[box], self.prefix[family][dead], [], "mesh")

    def _flows_by(self, box, far, middle, first=0, flows_each=FAILING):
        """Return the flows from a box to another that the first box sends to `middle`."""
        mine = range(first, first + flows_each)
        by = _egress(self.seats[box], HOST[4].get(box, PEER[box]), self.host[4][far], mine)
        return {flow for flow, tap in by.items() if tap == self.port[box, middle]}

    def _fails(self, pairs, hit, action, found):
        """Call action() and found() while packets flow. Check that only the flows `hit` lose packets,
        and that all flows go on. Return a sentence, and the seconds from the first to the last lost packet
        of a pair, for the pair with the longest such time."""
        with contextlib.ExitStack() as stack:
            sinks, sources = self.traffic(stack, pairs)
            whole = _All(sources)
            with contextlib.ExitStack() as sending:
                streams = [sending.enter_context(flows.Stream(x, FAIL_RATE / len(pairs))) for x in sources]
                for stream in streams:
                    stream.goes_on(sinks, 0)
                action()
                found()
                for stream in streams:
                    stream.goes_on(sinks)
            flows.settle(whole, sinks)
            lost, ttl = whole.lost(sinks), flows.ttls(sinks)
        losers = {flow for flow, _ in lost}
        total = sum(pairs.values())
        check(losers <= hit, f"only the {len(hit)} flows of the dead part to lose packets", sorted(losers - hit), LOGS)
        check(min(ttl) >= TTL - len(BOXES), f"at most {len(BOXES)} boxes", ttl, LOGS)
        span = max(source.silence({p for p in lost if p in source.sent}) for source in sources)
        text = (
            f"{len(losers)} of its {len(hit)} flows lose {len(lost)} of {len(whole.sent)} packets, in {1000 * span:.0f} ms; "
            f"the other {total - len(hit)} flows lose none, and then all {total} arrive, with TTLs of at least {min(ttl)}, "
            f"{flows.reordered(sinks)} of them out of order."
        )
        return text, span

    def traffic(self, stack, pairs):
        """Return the sinks of these pairs, and their sources."""
        sinks = [self._sink(stack, far) for far in dict.fromkeys(b for _, b in pairs)]
        return sinks, list(self._sources(stack, pairs).values())

    def _sink(self, stack, far, family=4):
        return stack.enter_context(flows.Sink(self.lab.ns[OUTSIDE[far]], self.host[family][far]))

    def _sources(self, stack, pairs, family=4):
        """Return a source of flows for each pair. Each pair has source ports of its own."""
        found, first = {}, 0
        for (box, far), n in pairs.items():
            source = flows.Source(
                self.lab.ns[OUTSIDE[box]], self.host[family][far], n, HOST[family].get(box, NODE[family][box]), first=first
            )
            found[box, far] = stack.enter_context(source)
            first += n
        return found

    def loads(self):
        """Return the packets that each direction of each mesh link has carried for others."""
        sent = {box: evidence.transit(self.seats[box]) for box in self.boxes}
        links = {link: tap for link, tap in self.port.items() if sent.keys() >= set(link)}
        return {link: sent[link[0]][tap] for link, tap in links.items()}

    def _settled(self):
        """Return loads() while no program sends packets. A packet that the kernel gave to a TAP and that the port has
        not sent yet is missing in one reading, and not in the next."""
        found = self.loads()
        while found != (again := self.loads()):
            found = again
        return found

    def forwarded(self):
        """Return the packets that each box has forwarded."""
        return {box: evidence.forwarded(self.seats[box]) for box in self.boxes}


class _All:
    """Several sources as one."""

    def __init__(self, sources):
        self.sources = list(sources)

    @property
    def sent(self):
        """Return the packets of all of them. The flows of two sources differ."""
        return {packet: at for source in self.sources for packet, at in source.sent.copy().items()}

    def lost(self, sinks):
        """Return the packets that no sink has received."""
        return set().union(*(source.lost(sinks) for source in self.sources))


class _Watch:
    """Numbered packets of several pairs of boxes, which are sent until the stack ends."""

    def __init__(self, mesh, pairs, stack):
        self.sinks, sources = mesh.traffic(stack, pairs)
        self.whole, self.flows = _All(sources), sum(pairs.values())
        self.streams = [stack.enter_context(flows.Stream(x, FAIL_RATE / len(pairs))) for x in sources]
        self.go_on()

    def go_on(self):
        """Wait until a packet of each flow that is sent from now on arrives."""
        for stream in self.streams:
            stream.goes_on(self.sinks, 0)

    def _lost(self, begin, end):
        missing = self.whole.lost(self.sinks)
        sent = self.whole.sent
        return {packet for packet in missing if begin <= sent[packet] < end}

    def lost(self, hit, begin, end):
        """Wait until packets that were sent before `end` have arrived or are lost. Check that only flows of
        the set `hit` have lost packets since `begin`. Return how many, and the time of the last of them, as
        text, and the seconds from `begin` to the last of them."""
        wait_for("the last packets", lambda: time.monotonic() > end + LATE_S, lambda: "")
        lost, sent = self._lost(begin, end), self.whole.sent
        losers = {flow for flow, _ in lost}
        check(losers <= hit, f"only the {len(hit)} flows of the dead box to lose packets", sorted(losers - hit), LOGS)
        if not lost:
            return "no packet is lost", 0.0
        last = max(sent[packet] - begin for packet in lost)
        return f"{len(losers)} flows lose {len(lost)} packets, the last {1000 * last:.0f} ms later", last


def _expected(hit, pairs, dead):
    """Check that as many flows use the part `dead` as the model has it, except for chance."""
    flows_by = scale.loss(pairs, "vlb", list(BOXES), dead, None, None)
    model = flows_by["member"] + flows_by["reroute"]
    tolerated = scale.SIGMAS * (model * (1 - 1 / (len(BOXES) - 1))) ** 0.5
    check(abs(len(hit) - model) <= tolerated, f"{model:.0f} flows by {dead}, within {tolerated:.0f}", len(hit), LOGS)


def _resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) >> 10


def _next_hops(frr, words, prefix):
    """Return the next hops of the route that zebra uses. `words`: "ip" or "ipv6"."""
    rows = frr.json(f"show {words} route {prefix} json").get(prefix, [])
    return [hop.get("ip") for row in rows if row.get("selected") for hop in row["nexthops"]]


def _hops(seat, prefix, vrf):
    """Return the interfaces of a route in a VRF of a box; [] if there is no such route."""
    try:
        rows = [r for r in seat.dp.show("routes", prefix, "exact") if (r["vrf"] or "main") == vrf]
    except netns.CommandError as error:
        if "(exit code 3)" not in str(error):
            raise
        rows = []  # no table has the prefix
    return sorted(hop["dev"] for row in rows for hop in row["nexthops"])


def _egress(seat, source, host, flows_of):
    """Return {flow: the port by which a box sends it}, of these flows from outside."""
    control = Control(seat.dp.socket)
    mac, found = seat.dp.ports()["ext0"]["mac"], {}
    try:
        for flow in flows_of:
            words = {"port": "ext0", "frame": flows.frame(mac, source, host, flow)}
            (row,) = control.request({"explain": words})
            found[flow] = row["out"]
    finally:
        control.close()
    return found


def _record(mode, packets, loads, boxes):
    """Append the measured loads to the file of the environment variable MESH_JSON, for bench-scale."""
    _append({
        "bench": "mesh-loads", "mode": mode, "each": EACH, "boxes_passed": round(boxes, 4),
        "packets": {f"{a} {b}": n for (a, b), n in packets.items()},
        "loads": {f"{a} {b}": n for (a, b), n in loads.items()},
    })  # fmt: skip


def _append(row):
    path = os.environ.get("MESH_JSON")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
