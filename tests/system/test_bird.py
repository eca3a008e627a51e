# SPDX-License-Identifier: BSD-3-Clause
"""BIRD 2 writes routes into the kernel's tables, and no zebra runs (`routes: {from: kernel}`). The
FIB follows the kernel: single routes, equal paths, a table of both families, a BIRD that is killed
and started again, `ip route flush`, and many changes a second."""

import ipaddress
import signal
import time

import pytest

from back import astray, drops_since_start, end_under
from lib import bird, machine, netns, procs
from lib.bird import Bird
from lib.wait import LONG, PATIENCE, eventually
from on_time import Clock, outside, slowness
from router import Router, running

KERNEL_ONLY = ("control-socket:", "routes: {from: kernel}\ncontrol-socket:")
N4, N6 = (1_000_000, 200_000) if LONG else (20_000, 4_000)
STAY4, STAY6 = "198.51.100.0/25", "2001:db8:b1d:1::/64"
BOTH4, BOTH6 = "198.51.100.128/25", "2001:db8:b1d:2::/64"
GOES4, COMES4 = "203.0.113.0/25", "203.0.113.128/25"
LARGE = 60_000  # above 50,000, a starting daemon reads the kernel's tables after its first packet
RING_S = 2.0  # the ring of a port holds 2,048 frames; the stream has 1,000 packets a second
AFTER_KERNEL_S = 1.0  # until the FIB has the last route that the kernel has
CHANGES, CHANGES_S = 200_000 if LONG else 100_000, 20_000
CONF = """\
log stderr all;
router id 192.0.2.1;
protocol device {{ }}
protocol kernel k4 {{
	ipv4 {{ export all; import none; }};
	merge paths;
	persist;
	graceful restart;
	scan time {scan};
}}
protocol kernel k6 {{
	ipv6 {{ export all; import none; }};
	merge paths;
	persist;
	graceful restart;
	scan time {scan};
}}
protocol static few4 {{
	ipv4;
	include "few4";
}}
protocol static few6 {{
	ipv6;
	include "few6";
}}
protocol static many4 {{
	{off}
	ipv4;
	include "many4";
}}
protocol static many6 {{
	{off}
	ipv6;
	include "many6";
}}
"""


class Alone(Router):
    """A router that takes all routes from the kernel. zebra cannot connect."""

    def ready(self):
        """Set the state at the start of every test: a standard kernel without routes of BIRD."""
        self.kernel_defaults()
        self.flush("proto bird")
        eventually(self._is_ready, 15, 0.01, "standard neighbors and no routes of BIRD")
        for wire in [*self.wires.values(), *self.taps.values()]:
            wire.silence()
            wire.clear()

    def _is_ready(self):
        rows = self.control.ask("routes")
        left = [r["prefix"] for r in rows if r["source"] == "kernel"]
        have = {r["prefix"] for r in rows}
        known = {(r["dev"], r["address"]): r["mac"] for r in self.control.ask("neighbors")}
        missing = []
        for wire in self.wires.values():
            missing += [p for p in (f"{wire.ip4}/32", f"{wire.ip6}/128", wire.host4) if p not in have]
            for peer in (wire.peer4, wire.peer6):
                missing += [peer] if known.get((wire.tap, peer)) != wire.mac else []
        down = [r["name"] for r in self.control.ask("ports") if r["link"] != "up"]
        if left or missing or down:
            raise LookupError(f"routes, missing, ports amiss: {left[:5]}, {missing}, {down}")
        return True

    def flush(self, *words):
        """Run `ip route flush` for both families. `ip` gives up after 30 s, although its only round
        may have deleted all. The round may take minutes if the table is large and the CPUs are busy."""
        for family in ("-4", "-6"):
            argv = ["ip", "-n", self.ctl, family, "route", "flush", *" ".join(words).split()]
            while "not completed" in netns.command(argv, check=False, timeout=600):
                pass

    def has(self, *prefixes):
        """Return True if the FIB has all these prefixes."""
        return all(self.route_row(prefix) for prefix in prefixes)

    def kernel(self):
        """Return the row of `show kernel`."""
        return self.control.ask("kernel")[0]

    def in_kernel(self):
        """Return the numbers of routes in the kernel, of both families, all tables."""
        four = netns.read_proc(self.ctl, "/proc/net/fib_triestat").splitlines()
        n4 = max(int(line.split()[1]) for line in four if "Prefixes:" in line)
        n6 = int(netns.read_proc(self.ctl, "/proc/net/rt6_stats").split()[3], 16)
        return n4, n6

    def in_fib(self):
        """Return the numbers of prefixes in the FIB, of both families."""
        row = self.fpm()
        return row["routes4"], row["routes6"]

    def equal(self):
        """Assert that the kernel, the RIB and the FIB are equal, and no event was lost."""
        audit = lambda: self.fpmctl("audit", timeout=300 * PATIENCE)  # noqa: E731
        done = eventually(lambda: (seen := audit()).returncode == 0 and seen, 20, 0.2, "an equal audit")
        assert "Equal." in done.stdout, done.stdout
        assert self.kernel()["in_step"] and self.kernel()["overruns"] == 0, self.kernel()


@pytest.fixture(scope="module")
def alone():
    """A router without zebra."""
    if bird.why_not():
        pytest.skip(bird.why_not())
    with running(Alone(name="bird"), KERNEL_ONLY) as router:
        yield router


@pytest.fixture
def dut(alone):
    """The router, with a BIRD that has few routes and many disabled ones."""
    assert alone.alive()
    alone.ready()
    alone.bird = Bird(alone.ctl, f"{alone.dir}/bird.conf", f"{alone.dir}/bird.d", alone.dir)
    configure(alone)
    yield alone
    if alone.bird.runs():
        alone.bird.end(signal.SIGKILL)
    assert alone.alive()


def configure(dut, few4=None, scan=600, off="disabled;"):
    """Write BIRD's files. `few4` are the lines of its few IPv4 routes."""
    wan, ext = dut.wires["wan"], dut.wires["ext"]
    if few4 is None:
        few4 = [via(STAY4, wan.peer4), via(BOTH4, wan.peer4, ext.peer4), via(GOES4, wan.peer4)]
    texts = {
        "bird.conf": CONF.format(scan=scan, off=off),
        "few4": "\n".join(few4),
        "few6": "\n".join([via(STAY6, wan.peer6), via(BOTH6, wan.peer6, ext.peer6)]),
        "many4": "\n".join(via(prefix, (wan, ext)[n % 3 == 0].peer4) for n, prefix in enumerate(many4())),
        "many6": "\n".join(via(prefix, (wan, ext)[n % 3 == 0].peer6) for n, prefix in enumerate(many6())),
    }
    for name, text in texts.items():
        with open(f"{dut.dir}/{name}", "w", encoding="ascii") as file:
            file.write(text + "\n")


def via(prefix, *gateways):
    """Return a route of BIRD's static protocol."""
    return f"route {prefix} {' '.join('via ' + gateway for gateway in gateways)};"


def many4(count=N4):
    """Yield `count` prefixes from 16.0.0.0 on, without 127.0.0.0/8."""
    for n in range(count):
        at = (16 << 24) + (n << 8)
        at += (1 << 24) * (at >> 24 >= 127)
        yield f"{at >> 24}.{at >> 16 & 255}.{at >> 8 & 255}.0/24"


def many6():
    """Yield N6 prefixes below 2a00::/16."""
    return (f"2a00:{n >> 16:x}:{n & 0xFFFF:x}::/48" for n in range(N6))


def host(prefix):
    """Return an address of a prefix."""
    return str(ipaddress.ip_network(prefix)[9])


def test_routes_come_and_go(dut):
    """Packets follow a route that BIRD adds, moves to another gateway and removes, in both
    families. A blackhole drops packets. An audit finds no difference."""
    lan, wan, ext = (dut.wires[name] for name in ("lan", "wan", "ext"))
    dut.bird.start()
    eventually(lambda: dut.has(STAY4, STAY6, GOES4), 10, 0.01, "routes of BIRD")
    row = dut.route_row(STAY4)
    assert row["source"] == "kernel" and row["nexthops"][0]["via"] == wan.peer4
    for prefix in (STAY4, STAY6):
        dut.forwarded(lan, lan.probe(host(prefix)), wan)

    configure(dut, [via(STAY4, ext.peer4), f"route {COMES4} blackhole;"])
    dut.bird.birdc("configure")

    eventually(lambda: dut.has(COMES4) and not dut.has(GOES4), 10, 0.01, "the new routes")
    eventually(lambda: dut.route_row(STAY4)["nexthops"][0]["via"] == ext.peer4, 10, 0.01)
    dut.forwarded(lan, lan.probe(host(STAY4)), ext)
    assert dut.not_forwarded(lan, lan.probe("203.0.113.137")) == {"blackhole": 1}
    dut.equal()


def test_equal_paths_share_flows(dut):
    """BIRD exports two gateways of a prefix as one route with two next hops. Flows use both, in
    both families, and no packet is lost."""
    lan, wan, ext = (dut.wires[name] for name in ("lan", "wan", "ext"))
    dut.bird.start()
    eventually(lambda: dut.has(BOTH4, BOTH6), 10, 0.01, "routes of BIRD")

    for prefix in (BOTH4, BOTH6):
        gateways = {hop["via"] for hop in dut.route_row(prefix)["nexthops"]}
        family = 4 if "." in prefix else 6
        assert gateways == {wan.peer(family), ext.peer(family)}
        with dut.stream(lan, host(prefix), flows=64) as stream:
            eventually(lambda s=stream: s.sent > 400, 10, 0.01)
        shares = [len(stream.arrived(wire)) for wire in (wan, ext)]
        assert stream.lost(wan, ext) == [] and min(shares) > stream.sent / 4, shares
    dut.equal()


def test_a_killed_bird_costs_no_packet(dut):
    """BIRD is killed with SIGKILL and started again with other routes, then ended with SIGTERM and
    started again. Packets to routes that stay are all forwarded, on both families and on equal
    paths. The routes that BIRD no longer has leave the FIB, its new ones come."""
    lan, wan, ext = (dut.wires[name] for name in ("lan", "wan", "ext"))
    dut.bird.start()
    eventually(lambda: dut.has(STAY4, STAY6, BOTH4, BOTH6, GOES4), 10, 0.01, "routes of BIRD")

    stay = [host(prefix) for prefix in (STAY4, STAY6, BOTH4, BOTH6)]
    with dut.stream(lan, stay, flows=16) as stream:
        dut.bird.end(signal.SIGKILL)
        configure(dut, [via(STAY4, wan.peer4), via(BOTH4, wan.peer4, ext.peer4), via(COMES4, ext.peer4)])
        dut.bird.start("-R")
        eventually(lambda: dut.has(COMES4) and not dut.has(GOES4), 20, 0.01, "the new routes")
        dut.bird.end()
        assert dut.has(STAY4, STAY6, BOTH4, BOTH6, COMES4), "`persist` keeps routes"
        configure(dut)
        dut.bird.start("-R")
        eventually(lambda: dut.has(GOES4) and not dut.has(COMES4), 20, 0.01, "the old routes")

    assert stream.lost(wan, ext) == []
    dut.equal()


def test_a_flush_of_everything_is_followed(dut):
    """`ip route flush` of BIRD's routes empties the FIB of them, and BIRD's next scan writes them
    again. A flush of table main leaves only the addresses of the router."""
    whole = lambda: all(n >= wanted for n, wanted in zip(dut.in_fib(), (N4, N6)))  # noqa: E731
    configure(dut, off="")
    dut.bird.start()
    eventually(whole, 120, 0.1, "the table")

    dut.flush("proto bird")

    eventually(lambda: max(dut.in_fib()) < 100, 60, 0.05, "no route of BIRD")
    dut.equal()

    configure(dut, scan=1, off="")
    dut.bird.birdc("configure")
    eventually(whole, 120, 0.1, "the table again")
    dut.bird.end(signal.SIGKILL)
    dut.flush("table", "main")

    addresses = {w.ip4 + "/32" for w in dut.wires.values()} | {w.ip6 + "/128" for w in dut.wires.values()}
    eventually(lambda: max(dut.in_fib()) < 100 and not dut.has(dut.wires["wan"].host4), 60, 0.05, "an empty table")
    rows = lambda: dut.control.ask("routes")  # noqa: E731
    main = lambda: [row for row in rows() if row["source"] == "kernel" and row.get("table", 254) == 254]  # noqa: E731
    eventually(lambda: not main(), 10, 0.05, "no route of table main")
    assert addresses <= {row["prefix"] for row in rows()}
    dut.equal()
    dut.ip(*(f"addr flush dev {wire.tap}" for wire in dut.wires.values()))


def test_thousands_of_changes_a_second_are_followed(dut):
    """BIRD removes and adds its whole table again and again, as fast as the kernel takes it: more than
    20,000 routes a second. The reader of the kernel's tables loses no event, and packets to other
    routes lose nothing."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.bird.start()
    eventually(lambda: dut.has(STAY4, STAY6), 10, 0.01, "routes of BIRD")
    few = dut.in_kernel()
    before, missed = dut.kernel(), dut.port_row(lan)["rx_missed"]
    share = machine.Share(lambda: procs.marked(dut.dir))

    def changes():
        now = dut.kernel()
        return sum(now[key] - before[key] for key in ("routes", "route_dels"))

    with dut.stream(lan, [host(STAY4), host(STAY6)]) as stream:
        begin = time.monotonic()
        while changes() < CHANGES:
            for verb, n in (("enable", (N4, N6)), ("disable", (0, 0))):
                dut.bird.birdc(verb, '"many*"')
                wanted = tuple(a + b for a, b in zip(few, n))
                eventually(lambda w=wanted: dut.in_kernel() == w, 120, 0.01, f"{wanted} in the kernel")
        seconds = time.monotonic() - begin
    rate = changes() / seconds
    print(f"{changes()} changes in {seconds:.1f} s, {rate:.0f} a second")
    assert rate * slowness(dut) > CHANGES_S or share.was_taken(RING_S), share.waits()

    lost, missed = stream.lost(wan), dut.port_row(lan)["rx_missed"] - missed
    # The ring of a port overflows while its forwarder gets no CPU.
    most = missed if share.was_taken(RING_S) else 0
    assert len(lost) <= most, f"{lost} lost, {missed} missed by the port, waits {share.waits()}"
    eventually(lambda: max(dut.in_fib()) < 100, 60, 0.05, "no route of the table")
    dut.equal()


def test_a_full_table_is_in_the_fib_soon_after_the_kernel_has_it(dut):
    """Each route that the kernel has of a table of both families reaches the FIB, at most a second
    after the kernel's last route (the median of several tables)."""
    took = []
    dut.bird.start()
    eventually(lambda: dut.has(STAY4, STAY6), 10, 0.01, "routes of BIRD")
    few, fib = dut.in_kernel(), dut.in_fib()
    for _ in range(1 if LONG else 3):
        dut.bird.birdc("enable", '"many*"')
        wanted = few[0] + N4, few[1] + N6
        eventually(lambda: dut.in_kernel() == wanted, 300, 0.01, f"{wanted} in the kernel")
        clock = Clock(dut)
        eventually(lambda: dut.in_fib() == (fib[0] + N4, fib[1] + N6), 60, 0.01, "the table in the FIB")
        took.append(clock.seconds())
        print(f"{N4} + {N6} routes in the FIB {took[-1]:.2f} s after the kernel had them")
        dut.equal()
        dut.bird.birdc("disable", '"many*"')
        eventually(lambda: dut.in_fib() == fib, 300, 0.05, "no route of the table")

    median = sorted(took)[len(took) // 2]
    print(f"median {median:.2f} s")
    dut.equal()
    assert median < AFTER_KERNEL_S * slowness(dut), took


def test_a_large_table_over_the_end_of_the_daemon(own_dut):
    """The kernel has more routes than a starting daemon reads before its first packet. The daemon is
    restarted (fpmctl restart), and killed twice. The next one has the kernel's routes from the
    checkpoint with its first packet: each packet has a route and leaves by the right wire. Packets are
    lost only from the last packet of a daemon until the next daemon answers. Then the daemon reads the
    tables: routes that were deleted meanwhile go, and routes that were added come."""
    dut = own_dut(Alone, supervised=True)
    dut.edit_config(*KERNEL_ONLY)
    dut.start()
    lan, wan, ext = (dut.wires[name] for name in ("lan", "wan", "ext"))
    nets, by = list(many4(LARGE)), [(wan, ext)[n % 3 == 0] for n in range(LARGE)]
    lines = [f"route add {net} via {out.peer4} dev {out.tap}\n" for net, out in zip(nets, by)]
    netns.command(["ip", "-n", dut.ctl, "-batch", "-"], stdin="".join(lines), timeout=200)
    eventually(lambda: dut.in_fib()[0] >= LARGE, 60, 0.05, "the table in the FIB")
    egresses = {host(nets[n]): by[n] for n in (0, 1, LARGE // 2, LARGE - 1)}
    for wire in dut.wires.values():
        wire.clear()

    ends = []  # the numbers of the packets without a daemon, as (first, last)
    with dut.stream(lan, list(egresses), rate=800) as stream:
        for n, how in enumerate(("restart", "kill", "kill")):
            eventually(lambda: dut.fpm()["checkpoint"]["kernel_routes"] >= LARGE, 30, 0.05, "the checkpoint")
            goes, comes = nets[100 + n], f"10.80.{n}.0/24"
            meanwhile = [f"route del {goes}", f"route add {comes} via {ext.peer4} dev ext0"]
            ends.append(end_under(dut, how, stream, (wan, ext), meanwhile if how == "kill" else ()))
            eventually(lambda n=stream.sent: max(stream.arrived(wan), default=0) > n + 200, 10, 0.02)
            # The first packets may come before the MAC address of the port is read.
            assert drops_since_start(dut).keys() <= {"l2_foreign"}
            assert dut.fpm()["checkpoint"]["restored_kernel"] >= LARGE - 2
            if how == "kill":
                eventually(lambda g=goes, c=comes: dut.has(c) and not dut.has(g), 20, 0.02, "the tables were read")
            dut.equal()

    lost = stream.lost(wan, ext)
    print(f"{stream.sent} packets, without a daemon: {ends}, {len(lost)} lost")
    assert outside(lost, ends) == []
    assert astray(dut, stream, egresses) == {}
