# SPDX-License-Identifier: BSD-3-Clause
"""Our router and a Linux router of equal configuration. A test gives both the same commands, sends
the same packets to both, and compares where the packets come out. The answer of Linux is the
expected answer.

    kernel of our router     TAPs lan0 wan0 alt0 ext0
    kernel of the reference  veths lan0 wan0 alt0 ext0; it forwards itself
    far ends                 wires lan wan alt ext of each router: raw sockets

A packet has one of these outcomes: the name of the wire by which it left; `local`, if a kernel
took it for itself (its UDP port is closed); the name of an ICMP error; `nothing`.
"""

import contextlib
import ipaddress
import itertools
import statistics
import time
from collections import Counter

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns, rtnl
from lib.dut import Dut
from lib.links import OFF, far_mac, port_mac
from lib.wait import PATIENCE, eventually
from on_time import Clock, in_time_s
from router import Router, is_icmp_error, running
from wire import Collector, Wire, token, token_of

# Each packet must have one outcome, so redirects are off. Both kernels hash the ports to choose a
# group's member.
SETTINGS = {
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
    "net.ipv4.fib_multipath_hash_policy": 1,
    "net.ipv6.fib_multipath_hash_policy": 1,
}
# Tests poll with packets that cause ICMP errors. No policer may drop an error.
POLICERS = """\
policers:
  icmp4-unreach: {rate: unlimited, source-rate: unlimited}
  icmp4-too-big: {rate: unlimited, source-rate: unlimited}
  icmp6-unreach: {rate: unlimited, source-rate: unlimited}
  icmp6-too-big: {rate: unlimited, source-rate: unlimited}
memory:"""

EMPTY_ZEBRA = """\
case "$*" in
*summary*) echo '{"routes": []}' ;;
*json*) echo '{}' ;;
esac
"""

ERRORS = {
    (4, 3, 0): "no route",
    (4, 3, 1): "unreachable",
    (4, 3, 3): "local",
    (4, 3, 4): "too big",
    (4, 3, 13): "prohibited",
    (6, 1, 0): "no route",
    (6, 1, 1): "prohibited",
    (6, 1, 3): "unreachable",
    (6, 1, 4): "local",
    (6, 2, 0): "too big",
}
# fate() polls for this time before it uses a fence. A packet that still waits for its neighbor has
# the outcome `nothing`.
JUDGED_S = 0.03


def error_of(data):
    """Return the name of the ICMP error in a frame."""
    packet = Ether(data)
    if IPv6 in packet:
        return ERRORS.get((6, data[54], data[55]), f"ICMPv6 {data[54]}/{data[55]}")
    icmp = packet[ICMP]
    return ERRORS.get((4, icmp.type, icmp.code), f"ICMP {icmp.type}/{icmp.code}")


class Veths:
    """The links of the Linux router: a veth for each wire, whose other end is the interface."""

    memory = ""

    def make(self, dut):
        lines = []
        for n, name in enumerate(dut.names):
            lines += [
                f"link add {name} index {100 + n} address {far_mac(n)} type veth "
                f"peer name {name}0 address {port_mac(n)} netns {dut.ctl}",
                f"link set {name} up",
            ]
        netns.ip_batch(lines, dut.far)
        for name in dut.names:
            netns.run(dut.far, ["ethtool", "-K", name, *OFF], check=False)
            netns.run(dut.ctl, ["ethtool", "-K", name + "0", *OFF], check=False)

    def give_back(self, dut):
        """Give nothing back: veths end with their namespaces."""

    def device(self, name):
        return name


class LinuxRouter(Dut):
    """A router whose kernel forwards. Its wires are those of Dut, and it has no daemon."""

    def __init__(self, name):
        super().__init__(Wire, Collector(), name=name)
        self.wiring = Veths()

    def fence(self, wire):
        """Return when the kernel has judged every packet sent on `wire` before."""
        echo = IP(src=wire.peer4, dst=wire.ip4) / ICMP() / Raw(mark := token())
        if wire.ip4 in [address.local for address in rtnl.addresses(self.ctl)]:
            wire.send(Ether(src=wire.mac, dst=wire.port_mac) / echo)
        else:
            echo = IPv6(src=wire.peer6, dst=wire.ip6) / ICMPv6EchoRequest(data=mark)
            wire.send(Ether(src=wire.mac, dst=wire.port_mac) / echo)
        wire.expect(mark, 5)
        self.collector.catch_up()


class Pair:
    """Both routers. `took` has the seconds that changes took in the dataplane, by kind of
    change."""

    def __init__(self, ours, linux):
        self.ours, self.linux = ours, linux
        self.both = (ours, linux)
        self.took, self.fates = {}, {}
        self.alike = {}  # {outcome: the outcome as which the test counts it}

    # -- the state of both --

    def clean(self):
        """Set the state at the start of every test: standard addresses and neighbors; no other
        route, next-hop object or address."""
        self.fates, self.alike = {}, {}
        lines = ["nexthop flush", "addr flush dev lo scope global"]
        lines += ["addr flush dev ext0 to 10.9.0.0/16", "addr flush dev alt0 to 10.9.0.0/16"]
        protos, tables = ("boot", "static", "bgp", "ra"), ("main", "local")
        routes = [f"route flush table {t} proto {proto}" for proto in protos for t in tables]
        for router in self.both:
            # -force: the next lines run after an error. A table that has no routes yet is an error.
            for family, some in (([], lines), (["-4"], routes), (["-6"], routes)):
                argv = ["ip", "-n", router.ctl, *family, "-force", "-batch", "-"]
                netns.command(argv, stdin="\n".join(some) + "\n", check=False)
            taps = [wire.tap for wire in router.wires.values()]
            netns.sysctl(router.ctl, {f"net.ipv6.conf.{tap}.accept_ra": 0 for tap in taps})
        self.linux.kernel_defaults()
        for wire in self.linux.wires.values():
            wire.silence()
            wire.clear()
        self.ours.ready()

    def ip(self, *lines):
        """Give both kernels the same commands of `ip`, Linux first. The clock of agree() starts
        when the last command for our router has ended."""
        self.linux.ip(*lines)
        self.ours.ip(*lines)
        self.clock = Clock(self.ours)

    def sysctl(self, settings):
        """Give both kernels the same settings."""
        for router in self.both:
            netns.sysctl(router.ctl, settings)

    def zebra(self, prefix, name):
        """Add zebra's route by the neighbor of a wire: its message for us, and its copy in both
        kernels."""
        wire = self.ours.wires[name]
        via = wire.peer(ipaddress.ip_network(prefix).version)
        six = "-6 " if ":" in prefix else ""
        self.ip(f"{six}route replace {prefix} via {via} proto bgp metric 20")
        self.ours.zebra.route(prefix, via, wire)

    def zebra_drops(self, prefix):
        """Withdraw zebra's route from both."""
        six = "-6 " if ":" in prefix else ""
        self.ip(f"{six}route del {prefix} proto bgp metric 20")
        self.ours.zebra.drop(prefix)

    def answer(self, name, *addresses):
        """Answer for these addresses on a wire of both."""
        for router in self.both:
            for address in addresses:
                router.wires[name].answer(address)

    # -- packets --

    def fate(self, router, dst, to=None, **probe):
        """Return the outcome of one packet from lan, in a frame to the MAC `to`; None: the MAC of
        the port."""
        lan = router.wires["lan"]
        packet = lan.probe(dst, **probe)
        packet[Ether].dst = to or packet[Ether].dst
        mark = token_of(packet)
        lan.send(packet)
        end = time.monotonic() + JUDGED_S
        while not (seen := self._seen(router, mark)) and time.monotonic() < end:
            time.sleep(0.001)
        if not seen:
            router.fence(lan)
            seen = self._seen(router, mark)
        return seen or "nothing"

    def _seen(self, router, mark):
        for wire in router.wires.values():
            for data in wire.got(mark):
                seen = error_of(data) if is_icmp_error(data) else wire.name
                return self.alike.get(seen, seen)
        return None

    def agree(self, kind, fates, within_s=5, **probe):
        """Assert that packets have these outcomes, {destination: outcome}, in our router after at most
        `within_s`, and in the Linux router. Note the time that our router took since the last change
        as a time of `kind`.

        Linux sends one error a second about packets without a route (ip_error())."""
        for router in self.both:
            for wire in router.wires.values():
                wire.clear()
        for dst, fate in fates.items():
            eventually(lambda d=dst, f=fate: self._is(self.ours, d, f, probe), within_s, 0.004)
        self.took.setdefault(kind, []).append(self.clock.seconds())
        for dst, fate in fates.items():
            eventually(lambda d=dst, f=fate: self._is(self.linux, d, f, probe), 3, 0.05)
        self.fates = {(dst, tuple(probe.items())): fate for dst, fate in fates.items()}

    def _is(self, router, dst, fate, probe):
        """Return true if the outcome is the wanted one."""
        seen = self.fate(router, dst, **probe)
        if seen != fate:
            name = "ours" if router is self.ours else "Linux"
            raise LookupError(f"{name}: {dst} -> {seen}, not {fate}")
        return True

    def same_after_a_dump(self):
        """Assert that the last outcomes are still true after our router has read all tables again,
        and that its audit finds no difference."""
        done = self.ours.fpmctl("replay")
        assert done.returncode == 0, done.stderr
        self.ours.fence(self.ours.wires["lan"])
        for _ in range(2):
            for (dst, probe), fate in self.fates.items():
                assert self.fate(self.ours, dst, **dict(probe)) == fate, dst
        assert self.ours.control.ask("audit")[-1]["differences"] == 0
        if not self.ours.zebra.prefixes:
            self.audit()

    def audit(self):
        """Assert that our router has the kernel's routes, while zebra has none."""
        done = self.ours.fpmctl("audit", "--vtysh", f"sh {self._empty_zebra()}")
        assert done.returncode == 0, done.stdout + done.stderr

    def _empty_zebra(self):
        """Return a script in the place of vtysh, whose zebra has no routes."""
        path = f"{self.ours.dir}/vtysh"
        with open(path, "w", encoding="ascii") as file:
            file.write(EMPTY_ZEBRA)
        return path

    def medians(self):
        """Return {kind of change: median of its seconds}."""
        return {kind: statistics.median(took) for kind, took in self.took.items()}


@contextlib.contextmanager
def pair(name, kind=Pair, policers=POLICERS, settings=None):
    """Run both routers for the length of a with block."""
    linux = LinuxRouter(name + "l")
    with running(Router(name=name), ("memory:", policers)) as ours:
        try:
            linux.build()
            made = kind(ours, linux)
            made.sysctl(settings or SETTINGS)
            yield made
        finally:
            linux.destroy()


# --- for the tests ------------------------------------------------------------------------------

NET = {4: "198.51.100.0/24", 6: "2001:db8:f000::/48"}
HOST = {4: "198.51.100.9", 6: "2001:db8:f000::9"}


@pytest.fixture(scope="module")
def routers(possible):
    """Both routers. The median of each kind of change is printed at the end."""
    with pair("k") as made:
        yield made
        medians = made.medians()
        for kind, seconds in sorted(medians.items()):
            print(f"{kind}: {seconds * 1000:.1f} ms, median of {len(made.took[kind])}")


@pytest.fixture
def both(routers):
    """Both routers in their standard state. Afterwards a new dump must change nothing."""
    routers.clean()
    yield routers
    routers.same_after_a_dump()


def line(family, text):
    """Return a command of `ip` for a family."""
    return f"-6 {text}" if family == 6 else text


def peer(both, name, family):
    """Return the address of the neighbor on a wire."""
    return both.ours.wires[name].peer(family)


def via(both, name, family):
    """Return the words of a route by the neighbor of a wire."""
    return f"via {peer(both, name, family)} dev {name}0"


def wide_of_lan(family):
    """Return a prefix with the neighbor of lan in it, which is no connected subnet."""
    return "192.0.2.2/32" if family == 4 else "2001:db8:4::2/128"


def spread(both, family, weights, count=6000):
    """Assert that the flows to the host of a route spread by these weights, {wire: weight}, within
    2 % of all flows; in Linux within 5 %, because its hash is another one. Each attempt has other
    flows: chance moves one sample of 6000 by more than 2 % once in some hundred daemons."""
    total = sum(weights.values())
    attempt = itertools.count()

    def sent(router, count):
        """Send that many flows. Returns a Counter of the wires by which they left."""
        lan, outs = router.wires["lan"], [router.wires[n] for n in weights]
        for wire in router.wires.values():
            wire.clear()
        first = next(attempt) * count
        ports = [1024 + (first + n) % 60000 for n in range(count)]
        probes = lan.flow_frames(HOST[family], [(p, 2000 + p % 13) for p in ports])
        for at in range(0, count, 250):
            lan.send(*probes[at : at + 250])
            router.fence(lan)
        return Counter(w.name for w in outs for data in w.got() if token_of(data))

    def answered(router):
        """Return true if all gateways have answered: a router keeps few packets until then."""
        if (n := sent(router, 100).total()) != 100:
            raise LookupError(f"{100 - n} of 100 lost")
        return True

    def share(router):
        counts = sent(router, count)
        assert counts.total() == count, f"{count - counts.total()} lost"
        return {name: counts[name] / count for name in weights}

    wanted = {name: weight / total for name, weight in weights.items()}
    for router, most in ((both.linux, 0.05), (both.ours, 0.02)):

        def near(router=router, most=most):
            shares = share(router)
            far = {n: s for n, s in shares.items() if abs(s - wanted[n]) > most}
            if far:
                raise LookupError(f"{shares}, not {wanted}")
            return True

        eventually(lambda r=router: answered(r), 5, 0.02)
        eventually(near, 2, 0.02)


def judge(made):
    """Assert that the median of each kind of change that was made three times is below 100 ms (in
    time, in this build)."""
    ended = {"advertised lifetime over", "route's lifetime over", "address's lifetime over"}
    took = {kind: t for kind, t in made.took.items() if kind not in ended}
    most = in_time_s(made.ours)
    late = {k: t for k, t in took.items() if len(t) >= 3 and statistics.median(t) >= most}
    assert took and not late, late
