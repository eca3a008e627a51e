# SPDX-License-Identifier: BSD-3-Clause
"""The source of a packet in transit is checked by the kernel's `rp_filter` (RFC 3704). The Linux
router beside ours gets the same sysctls, routes and frames, and has to do the same."""

from itertools import product
from statistics import median

import pytest

from lib import netns
from lib.wait import eventually
from linux_twin import Twin
from on_time import Medians, in_time_s
from wire import token_of

OUT, BACK = "198.51.100.0/24", "203.0.113.0/24"
DST, SRC = "198.51.100.9", "203.0.113.9"
OFF, STRICT, LOOSE = 0, 1, 2
MODES = {OFF: "off", STRICT: "strict", LOOSE: "loose"}
# All values of an interface and of `all`.
PAIRS = list(product(MODES, MODES))


@pytest.fixture(scope="module")
def routers(session_dut):
    """Both routers. `medians` has the times of all changes of rp_filter."""
    twin = Twin(session_dut)
    twin.medians = Medians(session_dut)
    try:
        twin.build()
        yield twin
    finally:
        twin.destroy()


class Checked:
    """Both routers with rp_filter."""

    def __init__(self, twin):
        self.twin, self.dut, self.undo, self.values, self.marks = twin, twin.dut, [], {}, 0

    def ip(self, *lines):
        """Run `ip ... add ...` commands in both routers, for the length of a test."""
        self.twin.ip(*lines)
        self.undo += [line.replace(" add ", " del ", 1) for line in lines]
        self.settle(*lines)

    def settle(self, *lines):
        """Return when our router has the routes of the kernel, and has followed the rules that `lines`
        add or delete. The kernel reports routes in order, so a route that is added here is the last."""
        self.marks += 1
        mark = f"203.0.112.{self.marks}/32"
        self.dut.ip(f"route add blackhole {mark}")
        eventually(lambda: self.dut.route_row(mark), 5, 0.005, "the kernel's routes")
        self.dut.ip(f"route del blackhole {mark}")
        for line in lines:
            if line.startswith("rule "):
                pref, add = int(line.split("pref ")[1]), line.startswith("rule add")
                eventually(lambda p=pref, a=add: self.has_rule(p) == a, 5, 0.005, line)

    def has_rule(self, pref):
        """Return true if our router has a rule."""
        return any(row["pref"] == pref for row in self.dut.control.ask("rules"))

    def undo_last(self):
        """Undo the last command."""
        line = self.undo.pop()
        self.twin.ip(line)
        self.settle(line)

    def set(self, value, dev="lan0"):
        """Set rp_filter of an interface, or of `all`, and wait until our router obeys."""
        for namespace in (self.dut.ctl, self.twin.here):
            netns.sysctl(namespace, {f"net.ipv4.conf.{dev}.rp_filter": value})
        self.values[dev] = value
        modes = {
            wire.tap: MODES[max(self.values.get(wire.tap, 0), self.values.get("all", 0))]
            for wire in self.dut.wires.values()
        }
        self.until(lambda: self.modes() == modes)

    def until(self, fn):
        """Wait until a change of rp_filter is in force. Note the time that it took."""
        self.twin.medians.until("rp_filter", fn)

    def modes(self):
        """Return {port: mode} as fpmctl shows it."""
        rows = self.dut.control.ask("interfaces")
        return {row["name"]: row["urpf"] for row in rows if row["port"]}

    def passes(self, wire="lan", src=SRC, dst=DST, mac=None, **fields):
        """Return true if both routers forward a packet, false if neither does. `mac`: the MAC of the
        macvlan that gets the packet; None: the port gets it."""
        before = self.dut.counters()
        probe = self.dut.wires[wire].probe(dst, src=src, **fields)
        probe.dst = mac or probe.dst
        mine, linux = self.twin.outcomes(wire, probe)
        assert mine == linux, f"{mine}, Linux: {linux}"
        if mine == ("nothing",):
            assert self.dut.moved(before, "drop") == {"urpf": 1}
        return mine[0] == "out"

    def restore(self):
        """Undo everything."""
        for dev in list(self.values):
            self.set(OFF, dev)
        self.twin.ip(*reversed(self.undo))


@pytest.fixture
def both(routers, dut):
    """Both routers with a route to DST by wan."""
    checked = Checked(routers)
    try:
        checked.ip(f"route add {OUT} via {dut.wires['wan'].peer4}")
        yield checked
    finally:
        checked.restore()


def by(both, *names, prefix=BACK):
    """Return the command that adds a route by some wires."""
    hops = [f"via {both.dut.wires[name].peer4}" for name in names]
    if len(hops) == 1:
        return f"route add {prefix} {hops[0]}"
    return f"route add {prefix} " + " ".join(f"nexthop {hop}" for hop in hops)


def test_strict_wants_the_reverse_path_by_the_same_interface(both):
    """RFC 3704, 2.2: a packet passes if the route to its source leaves by the interface by which
    the packet came."""
    both.ip(by(both, "lan"))
    both.set(STRICT)

    assert both.passes("lan")
    assert both.passes("alt"), "an interface without rp_filter"

    both.set(OFF)
    both.set(STRICT, "alt0")

    assert both.passes("lan") and not both.passes("alt")


def test_loose_wants_any_reverse_path(both):
    """RFC 3704, 2.4: a packet passes if its source has a route, by any interface."""
    both.ip(by(both, "ext"))
    both.set(LOOSE)

    assert both.passes("lan")
    assert not both.passes("lan", src="203.0.114.9"), "no route"

    both.set(STRICT)

    assert not both.passes("lan")


def test_the_larger_value_of_all_and_the_interface_counts(both):
    """ip-sysctl.rst: the larger one of both values counts, for each pair of 0, 1 and 2: `all` with 2
    makes the mode loose for an interface with 1, and also for an interface with 0."""
    both.ip(by(both, "ext"))

    for own, of_all in PAIRS:
        both.set(own)
        both.set(of_all, "all")
        mode = max(own, of_all)
        assert both.passes("lan") == (mode != STRICT), (own, of_all)
        assert both.passes("lan", src="203.0.114.9") == (mode == OFF), (own, of_all)
        assert both.passes("alt") == (of_all != STRICT), (own, of_all)
        assert both.passes("alt", src="203.0.114.9") == (of_all == OFF), (own, of_all)


def test_a_value_that_linux_does_not_name_is_loose(both):
    """The kernel takes each value above 1 for loose, and a negative one for off."""
    both.ip(by(both, "ext"))

    netns.sysctl(both.dut.ctl, {"net.ipv4.conf.lan0.rp_filter": 7})
    netns.sysctl(both.twin.here, {"net.ipv4.conf.lan0.rp_filter": 7})
    both.values["lan0"] = LOOSE
    both.until(lambda: both.modes()["lan0"] == "loose")

    assert both.passes("lan") and not both.passes("lan", src="203.0.114.9")


def test_each_next_hop_of_the_reverse_path_counts(both):
    """Strict mode lets packets pass that come by any next hop of the route to their source."""
    both.ip(by(both, "lan", "alt", "ext"))
    both.set(STRICT, "all")

    assert all(both.passes(name) for name in ("lan", "alt", "ext"))

    both.undo_last()
    both.ip(by(both, "alt", "ext"))

    assert not both.passes("lan") and both.passes("alt") and both.passes("ext")


@pytest.mark.parametrize("mode", [STRICT, LOOSE])
def test_a_subnet_has_a_reverse_path(both, mode):
    """The source is a neighbor: its subnet has to be that of the interface in strict mode."""
    both.set(mode)

    assert both.passes("lan", src="192.0.2.3")
    assert both.passes("lan", src="192.0.2.77") == (mode == LOOSE), "a neighbor on wan"


@pytest.mark.parametrize("mode", [STRICT, LOOSE])
def test_a_default_route_has_a_reverse_path(both, mode):
    """As in Linux, the default route counts like any other route."""
    both.ip(by(both, "alt", prefix="default"))
    both.set(mode, "all")

    assert both.passes("alt", src="203.0.114.9")
    assert both.passes("lan", src="203.0.114.9") == (mode == LOOSE)


@pytest.mark.parametrize("kind", ["blackhole", "unreachable", "prohibit"])
@pytest.mark.parametrize("mode", [STRICT, LOOSE])
def test_a_route_that_refuses_drops_by_source(both, mode, kind):
    """RFC 5635: loose mode and a blackhole route drop packets by their source (RTBH)."""
    both.ip(by(both, "lan"))
    both.set(mode)
    assert both.passes("lan")

    both.ip(f"route add {kind} {SRC}/32")

    assert not both.passes("lan") and both.passes("lan", src="203.0.113.10")


@pytest.mark.parametrize("mode", [STRICT, LOOSE])
def test_own_and_broadcast_addresses_are_no_sources(both, mode):
    """An address of the router, and the broadcast address of a subnet, have no reverse path."""
    both.set(mode)

    for src in ("192.0.2.1", "192.0.2.65", "192.0.2.63"):
        assert not both.passes("lan", src=src), src


def test_without_an_address_loose_is_strict(both):
    """fib_validate_source() of Linux: on an interface without an IPv4 address only a reverse path by
    that interface passes."""
    lan = both.dut.wires["lan"]
    both.ip(by(both, "ext"), "route add 203.0.114.0/24 dev lan0")
    both.set(LOOSE)
    assert both.passes("lan") and both.passes("lan", src="203.0.114.9")

    both.twin.ip(f"addr del {lan.ip4}/26 dev lan0")
    try:
        both.twin.ip("route replace 203.0.114.0/24 dev lan0")
        both.settle()
        both.until(lambda: both.modes()["lan0"] == "strict")
        refused, passed = (lan.probe(DST, src=src) for src in (SRC, "203.0.114.9"))
        for wires in (both.dut.wires, both.twin.wires):
            wires["lan"].send(refused, passed)
            wires["wan"].expect(token_of(passed))
            assert wires["wan"].got(token_of(refused)) == []
    finally:
        both.twin.ip(
            f"addr add {lan.ip4}/26 dev lan0",
            f"neigh replace {lan.peer4} lladdr {lan.mac} dev lan0 nud permanent",
        )
    both.until(lambda: both.modes()["lan0"] == "loose")


def test_a_macvlan_has_a_value_of_its_own(both, lan):
    """A packet to the MAC of a macvlan has the macvlan as its ingress interface, for the sysctl and for
    the reverse path."""
    mac, dev = "02:00:5e:10:00:77", "mv0"
    both.twin.ip(
        f"link add link lan0 name {dev} address {mac} type macvlan mode bridge",
        f"link set {dev} up",
        f"addr add 203.0.114.1/24 dev {dev}",
    )
    try:
        both.ip(by(both, "lan"))
        for namespace in (both.dut.ctl, both.twin.here):
            netns.sysctl(namespace, {f"net.ipv4.conf.{dev}.rp_filter": STRICT})
        rows = lambda: {r["name"]: r.get("urpf") for r in both.dut.control.ask("interfaces")}  # noqa: E731
        eventually(lambda: rows().get(dev) == "strict", 5, 0.01, "strict")

        assert both.passes() and not both.passes(mac=mac)
        assert both.passes(src="203.0.114.9", mac=mac)
        both.set(STRICT)
        assert both.passes() and not both.passes(src="203.0.114.9")
    finally:
        both.twin.ip(f"link del {dev}")


def test_the_check_comes_before_the_hop_count_and_after_the_route(both):
    """No ICMP error about the hop count goes to a source without a reverse path, because the source is
    checked first. But an error about a destination without a route goes to each source."""
    both.ip(by(both, "ext"))
    both.set(STRICT)

    assert not both.passes("lan", ttl=1)
    lan, elsewhere = (both.dut.wires[name] for name in ("lan", "wan"))

    def both_tell():
        mine, linux = both.twin.outcomes("lan", lan.probe("203.0.115.9", src=elsewhere.peer4))
        return mine == linux == ("icmp", "wan", 3, 0)

    eventually(both_tell, 10, 0.5, "an error for a missing route: Linux sends one a second")


def test_rules_see_the_ports_exchanged(both):
    """Linux asks the rules about the source with the ports exchanged, too (__fib_validate_source())."""
    both.ip(f"{by(both, 'lan')} table 100", "rule add sport 7000 lookup 100 pref 900")
    both.set(STRICT)
    assert not both.passes(sport=7000, dport=53)
    assert both.passes(sport=53, dport=7000)
    both.undo_last()
    both.ip("rule add dport 7000 lookup 100 pref 900")
    assert both.passes(sport=7000, dport=53)
    assert not both.passes(sport=53, dport=7000)


def test_rules_decide_about_the_source(both):
    """Linux asks the rules about the source with the addresses exchanged, as if the packet came by
    the interface by which it leaves."""
    both.ip(by(both, "ext"))
    both.set(STRICT)
    assert not both.passes("lan")

    both.ip(f"{by(both, 'lan')} table 100", "rule add iif wan0 lookup 100 pref 900")
    assert both.passes("lan")

    both.undo_last()
    both.ip(f"rule add from {DST} to {SRC} lookup 100 pref 900")
    assert both.passes("lan") and not both.passes("lan", src="203.0.113.10")


def test_other_packets_are_not_checked(both, dut, lan, wan):
    """Packets for the router and IPv6 packets are not dropped: the kernel itself checks packets for the
    router, and rp_filter is not for IPv6."""
    both.set(STRICT)
    dut.route("2001:db8:f000::/36", via=wan.peer6, wire=wan)

    dut.forwarded(lan, lan.probe("2001:db8:f000::9", src="2001:db8:77::1"), wan)
    before = dut.counters()
    lan.send(lan.probe(lan.ip4, src=SRC))
    dut.fence(lan)
    assert dut.moved(before, "drop") == {}


def alive(dut):
    """Return {gateway: true if it is alive} of the route to SRC."""
    return {hop["via"]: hop["alive"] for hop in dut.route_row(BACK)["nexthops"]}


def test_packets_of_zebras_routes_are_checked(both, dut, lan, alt):
    """Routes of zebra with next-hop objects and groups are reverse paths like those of the kernel. A
    next hop whose neighbor has failed gets no packets, and still is a reverse path."""
    twin_only = [f"route replace {BACK} nexthop via {lan.peer4} nexthop via {alt.peer4}"]
    netns.ip_batch(twin_only, both.twin.here)
    try:
        ids = [dut.zebra.hop(w.peer4, w) for w in (lan, alt)]
        dut.route(BACK, nhid=dut.zebra.group(dict.fromkeys(ids, 1)))
        both.set(STRICT, "all")

        assert both.passes("lan") and both.passes("alt") and not both.passes("ext")

        both.twin.ip(f"neigh replace {alt.peer4} dev alt0 nud failed")
        eventually(lambda: alive(dut) == {lan.peer4: True, alt.peer4: False}, 5, 0.01, "alt has failed")
        assert both.passes("lan") and both.passes("alt") and not both.passes("ext")
    finally:
        both.twin.ip(f"neigh replace {alt.peer4} lladdr {alt.mac} dev alt0 nud permanent")
        netns.ip_batch([f"route del {BACK}"], both.twin.here)


def test_explain_and_interfaces_tell(both, dut, lan):
    """`fpmctl explain` names mode and reverse path, `show interfaces` the mode and its drops, `show drops`
    the reason."""
    both.ip(by(both, "ext"))
    both.set(LOOSE)
    told = dut.fpmctl("explain", "port", "lan0", "src", SRC, "dst", DST).stdout
    assert "checked by rp_filter, loose: the reverse path is by another interface" in told
    assert "FORWARDED" in told
    both.set(STRICT)
    told = dut.fpmctl("explain", "port", "lan0", "src", SRC, "dst", DST).stdout
    assert "DROPPED, urpf" in told

    def dropped():
        return {r["name"]: r["urpf_dropped"] for r in dut.control.ask("interfaces") if r["port"]}

    before = dropped()
    assert dut.not_forwarded(lan, *[lan.probe(DST, src=SRC) for _ in range(5)]) == {"urpf": 5}
    assert {k: v - before[k] for k, v in dropped().items() if v != before[k]} == {"lan0": 5}
    shown = dut.fpmctl("show", "interfaces").stdout
    assert f"checks IPv4 sources (rp_filter), strict: {dropped()['lan0']} dropped" in shown


def test_a_change_under_load_loses_no_packet_with_a_reverse_path(both, dut, lan, wan):
    """While rp_filter of the interface and of `all` changes, packets with a reverse path by their
    interface pass, and packets without any reverse path are dropped unless both values are 0."""
    with dut.stream(lan, DST, rate=2000) as good:
        for own, of_all in PAIRS * 2:
            both.set(own)
            both.set(of_all, "all")
            if max(own, of_all) == OFF:
                dut.forwarded(lan, lan.probe(DST, src=SRC), wan)
            else:
                assert dut.not_forwarded(lan, lan.probe(DST, src=SRC)) == {"urpf": 1}
    assert good.lost(wan) == []


def test_a_change_of_routes_under_load_is_seen_whole(both, dut, lan, wan, alt):
    """The reverse path gains and loses next hops while packets arrive by a next hop that stays."""
    both.ip(by(both, "lan", "alt"))
    both.set(STRICT)
    dress = (lambda probe: lan.probe(DST, src=SRC, size=100),)
    with dut.stream(lan, DST, rate=2000, dress=dress) as stream:
        for names in (("lan", "ext"), ("lan", "alt", "ext"), ("lan",), ("lan", "alt")) * 5:
            both.twin.ip(by(both, *names).replace("add", "replace"))
    assert stream.lost(wan) == []


def test_rp_filter_is_in_force_in_time(routers):
    """The median of the times of all changes above is below 100 ms."""
    took = routers.medians.took.get("rp_filter", [])
    if len(took) < Medians.TIMES:
        pytest.skip("the tests above made too few changes")
    assert median(took) < in_time_s(routers.dut), took
