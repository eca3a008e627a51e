# SPDX-License-Identifier: BSD-3-Clause
"""Routes of the kernel beside those of a real zebra, over the end of zebra and of the daemon, and
after lost events: each packet is numbered. The expected next hop is that of `ip route get`."""

import json
import signal

import pytest

from back import astray, drops_since_start, end_under
from lib import freeze, netns
from lib.frr import beside as frr_beside
from lib.wait import eventually, never
from on_time import outside

# Routes of zebra and of the operator, with a host in each.
OF_ZEBRA, AT_ZEBRA = "198.51.100.0/24", "198.51.100.9"
OF_KERNEL, AT_KERNEL = "203.0.113.0/24", "203.0.113.9"
ON_LINK, AT_LINK = "10.8.0.0/16", "10.8.0.9"
OF_ID, AT_ID = "10.70.0.0/16", "10.70.0.9"
GOES, AT_GOES = "10.71.0.0/16", "10.71.0.9"
COMES, COMES_BY_ID = "10.72.0.0/16", "10.73.0.0/16"
ANYIP, AT_ANYIP = "198.18.5.0/24", "198.18.5.9"
CONF = """\
hostname r1
fpm address 127.0.0.1
ipv6 route ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 blackhole
ip route 198.51.100.0/24 192.0.2.66
ipv6 route 2001:db8:f000::/48 2001:db8:1::2
"""


def egress(dut, address):
    """Return the interface by which the kernel sends packets to an address."""
    text = netns.command(["ip", "-n", dut.ctl, "-j", "route", "get", address], check=False)
    rows = json.loads(text or "[]")
    return rows[0].get("dev") if rows else None


def as_the_kernel(dut, address, tap):
    """Assert that the kernel uses the interface `tap` for an address, and the router as well."""
    lan = dut.wires["lan"]
    eventually(lambda: egress(dut, address) == tap, 10, 0.02, f"{address} by {tap} in the kernel")
    out = next(w for w in dut.wires.values() if w.tap == tap)

    def leaves():
        return dut.forwarded(lan, lan.probe(address), out, 0.1)

    eventually(leaves, 5, 0.01, f"{address} by {tap}")


def teach(dut):
    """Give the kernel a route of each kind, and wait until packets take them."""
    ext, alt = dut.wires["ext"], dut.wires["alt"]
    dut.neighbor(AT_LINK, ext)
    dut.ip(
        f"route replace {OF_KERNEL} via {ext.peer4} dev ext0",
        f"route replace {ON_LINK} dev ext0",
        f"nexthop replace id 777 via {alt.peer4} dev alt0",
        f"route replace {OF_ID} nhid 777",
        f"route replace local {ANYIP} dev lo",
    )
    for address, tap in ((AT_KERNEL, "ext0"), (AT_LINK, "ext0"), (AT_ID, "alt0")):
        as_the_kernel(dut, address, tap)


@pytest.fixture(scope="module")
def zebra_alive(session_dut):
    """zebra and staticd beside the shared router."""
    session_dut.ready()
    session_dut.zebra.close()
    eventually(lambda: not session_dut.fpm()["connected"], 5)
    with frr_beside(session_dut, CONF) as frr:
        yield session_dut, frr
    netns.command(["ip", "-n", session_dut.ctl, "route", "flush", "table", "main", "proto", "196"])


@pytest.fixture
def frr(zebra_alive):
    """(router, FRR) with zebra's routes in force, and afterwards without routes of a test."""
    dut, running = zebra_alive
    if not running.runs("zebra"):
        running.restart_all()
    lan = dut.wires["lan"]
    dut.control.close()
    eventually(lambda: dut.fpm()["connected"], 10)
    dut.kernel_defaults()
    as_the_kernel(dut, AT_ZEBRA, "wan0")
    yield dut, running
    for words in ("-4 route flush proto boot", "-6 route flush proto boot", "nexthop del id 777"):
        netns.command(["ip", "-n", dut.ctl, *words.split()], check=False)
    netns.command(
        ["ip", "-n", dut.ctl, "route", "flush", "table", "local", "proto", "boot"], check=False
    )
    assert lan.name == "lan"


def test_an_operators_route_beside_zebras(frr):
    """`ip route add` of the prefix of a static route of zebra: the kernel prefers the metric 0, and
    zebra the kernel's route. When it is deleted, zebra's route is in force again."""
    dut, _ = frr
    for _ in range(3):
        dut.ip(f"route add {OF_ZEBRA} via {dut.wires['ext'].peer4} dev ext0")
        as_the_kernel(dut, AT_ZEBRA, "ext0")
        dut.ip(f"route del {OF_ZEBRA} via {dut.wires['ext'].peer4} dev ext0")
        as_the_kernel(dut, AT_ZEBRA, "wan0")


def test_an_interface_route_beside_zebras(frr):
    """A route by an interface alone is in force beside zebra's route. When it is deleted, zebra's
    route is in force again; an earlier version had removed it."""
    dut, _ = frr
    dut.neighbor(AT_ZEBRA, dut.wires["ext"])
    dut.ip(f"route add {OF_ZEBRA} dev ext0")
    as_the_kernel(dut, AT_ZEBRA, "ext0")
    dut.ip(f"route del {OF_ZEBRA} dev ext0")
    as_the_kernel(dut, AT_ZEBRA, "wan0")


def test_zebra_replaces_an_operators_route_of_metric_20(frr):
    """zebra installs its routes with `replace` and metric 20. So zebra's route replaces an operator's
    route of this metric, and is replaced by it, in the kernel and in the router."""
    dut, running = frr
    ext, alt = dut.wires["ext"], dut.wires["alt"]
    dut.ip(f"route replace {OF_ZEBRA} via {ext.peer4} dev ext0 metric 20")
    settle(dut, running)
    as_the_kernel(dut, AT_ZEBRA, egress(dut, AT_ZEBRA))
    # zebra has a reason to install its route again.
    running.configure(f"no ip route {OF_ZEBRA} 192.0.2.66", f"ip route {OF_ZEBRA} {alt.peer4}")
    settle(dut, running)
    as_the_kernel(dut, AT_ZEBRA, egress(dut, AT_ZEBRA))
    dut.ip(f"route replace {OF_ZEBRA} via {ext.peer4} dev ext0 metric 20")
    settle(dut, running)
    as_the_kernel(dut, AT_ZEBRA, egress(dut, AT_ZEBRA))
    running.configure(f"no ip route {OF_ZEBRA} {alt.peer4}")
    settle(dut, running)
    netns.command(["ip", "-n", dut.ctl, "route", "flush", OF_ZEBRA], check=False)
    running.configure(f"ip route {OF_ZEBRA} 192.0.2.66")
    as_the_kernel(dut, AT_ZEBRA, "wan0")


def settle(dut, running):
    """Wait until zebra is idle, and the kernel's answer has not changed for half a second."""
    eventually(lambda: not running.zebra_queued(), 10, 0.05)
    first = egress(dut, AT_ZEBRA)
    never(lambda: egress(dut, AT_ZEBRA) != first, 0.5)


def test_zebra_is_killed_and_comes_back(frr):
    """zebra is killed and started again. No packet on the routes that stay is lost or misrouted:
    those of the kernel, and zebra's static route."""
    dut, running = frr
    teach(dut)
    lan, wan, alt, ext = (dut.wires[n] for n in ("lan", "wan", "alt", "ext"))
    streams = {
        wan: dut.stream(lan, AT_ZEBRA, rate=300),
        ext: dut.stream(lan, [AT_KERNEL, AT_LINK], rate=300),
        alt: dut.stream(lan, AT_ID, rate=300),
    }
    for wire in dut.wires.values():
        wire.clear()
    for stream in streams.values():
        stream.start()
    try:
        for _ in range(2):
            generation = dut.fpm()["generation"]
            running.kill("zebra", signal.SIGKILL)
            eventually(lambda: not dut.fpm()["connected"], 10)
            running.restart_all()
            eventually(lambda g=generation: dut.fpm()["generation"] > g, 20)
            eventually(lambda: dut.fpm()["state"] == "in-step", 30, 0.1, "the replay is over")
    finally:
        for stream in streams.values():
            stream.stop()
    for wire, stream in streams.items():
        others = [w for w in dut.wires.values() if w not in (wire, lan)]
        assert stream.lost(wire) == [] and stream.arrived(*others) == {}, wire.name
    assert dut.control.ask("audit")[-1]["differences"] == 0


def gaps(numbers, apart=40):
    """Return the runs of numbers that are less than `apart` from the next, as [(first, last)]."""
    found = []
    for n in numbers:
        if found and n - found[-1][1] < apart:
            found[-1] = (found[-1][0], n)
        else:
            found.append((n, n))
    return found


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_routes_of_the_kernel_are_in_force_when_forwarding_begins(kept, how):
    """The daemon is restarted (fpmctl restart) or killed. The next one has the kernel's routes in
    force with its first packet, and also those of zebra. The stream has packets for routes of both in
    turn: each packet has a route and leaves by the right wire. Packets are lost only from the last
    packet of a daemon until the next daemon answers."""
    dut = kept
    teach(dut)
    lan, wan, alt, ext = (dut.wires[n] for n in ("lan", "wan", "alt", "ext"))
    dut.route(OF_ZEBRA, via=wan.peer4, wire=wan)
    egresses = {AT_ZEBRA: wan, AT_KERNEL: ext, AT_LINK: ext, AT_ID: alt}
    for wire in dut.wires.values():
        wire.clear()

    ends = []  # the numbers of the packets without a daemon, as (first, last)
    with dut.stream(lan, list(egresses), rate=800) as stream:
        for _ in range(3):
            ends.append(end_under(dut, how, stream, (wan, alt, ext)))
            eventually(lambda n=stream.sent: max(stream.arrived(ext), default=0) > n + 200, 10, 0.02)
            # The first packets may come before the MAC address of the port is read.
            assert drops_since_start(dut).keys() <= {"l2_foreign"}

    lost = stream.lost(wan, alt, ext)
    print(f"{stream.sent} packets, without a daemon: {ends}, lost (first, last): {gaps(lost)}")
    assert outside(lost, ends) == []
    assert astray(dut, stream, egresses) == {}


def test_a_start_without_a_checkpoint_has_the_routes_of_the_kernel(own_dut):
    """A daemon starts without a checkpoint. The kernel still has its routes, because the supervisor has
    kept the TAPs. The kernel's routes are in force with the first packet. Packets of zebra's route
    are dropped until zebra has connected. No packet leaves by a wrong wire, before or after this."""
    dut = own_dut(supervised=True)
    dut.edit_config("control-socket:", "checkpoint-max-age-s: 0\ncontrol-socket:")
    dut.start()
    teach(dut)
    lan, wan, alt, ext = (dut.wires[n] for n in ("lan", "wan", "alt", "ext"))
    dut.route(OF_ZEBRA, via=wan.peer4, wire=wan)
    egresses = {AT_ZEBRA: wan, AT_KERNEL: ext, AT_LINK: ext, AT_ID: alt}
    for wire in dut.wires.values():
        wire.clear()

    ends, of_zebra = [], []  # the numbers of the packets without a daemon, and without zebra's route
    with dut.stream(lan, list(egresses), rate=800) as stream:
        for _ in range(2):
            ends.append(end_under(dut, "kill", stream, (wan, alt, ext)))
            eventually(lambda n=stream.sent: max(stream.arrived(ext), default=0) > n + 200, 10, 0.02)
            assert dut.fpm()["checkpoint"] is None and not dut.route_row(OF_ZEBRA)
            assert set(drops_since_start(dut)) - {"l2_foreign"} == {"no_route"}
            dut.zebra.connect()
            dut.route(OF_ZEBRA, via=wan.peer4, wire=wan)
            of_zebra.append((ends[-1][0], stream.sent))
            eventually(lambda n=stream.sent: max(stream.arrived(wan), default=0) > n + 200, 10, 0.02)

    lost = stream.lost(wan, alt, ext)
    print(f"{stream.sent} packets, without a daemon: {ends}, lost (first, last): {gaps(lost)}")
    assert outside([n for n in lost if n % len(egresses) != 0], ends) == []
    assert outside(lost, of_zebra) == []
    assert astray(dut, stream, egresses) == {}


def events_dropped(dut):
    """Return the number of messages that netlink sockets of the control namespace have lost."""
    rows = netns.read_proc(dut.ctl, "/proc/net/netlink").splitlines()[1:]
    return sum(int(row.split()[8]) for row in rows)


def test_events_that_were_lost_lead_to_a_new_dump(own_dut):
    """The thread that reads the kernel's tables is stopped while they change, until its socket is full.
    Then it reports that events were lost, reads all tables again, and has the routes of the kernel.
    Meanwhile all packets of routes that stay are forwarded, both of zebra's and the kernel's routes."""
    dut = own_dut()
    dut.start()
    teach(dut)
    lan, wan, alt, ext = (dut.wires[n] for n in ("lan", "wan", "alt", "ext"))
    dut.route(OF_ZEBRA, via=wan.peer4, wire=wan)
    dut.ip(f"route add {GOES} via {wan.peer4} dev wan0")
    as_the_kernel(dut, AT_GOES, "wan0")
    nets = [f"11.{b}.{c}.0/24" for b in range(150) for c in range(200)]
    several = "".join(f"route add {n} via {ext.peer4} dev ext0\n" for n in nets)
    several += "".join(f"route del {n}\n" for n in nets)
    egresses = {AT_ZEBRA: wan, AT_KERNEL: ext, AT_LINK: ext, AT_ID: alt}
    for wire in dut.wires.values():
        wire.clear()

    with dut.stream(lan, list(egresses), rate=400) as stream:
        with freeze.frozen(dut.daemon.pid(), "fdp-rtnl"):
            before = events_dropped(dut)
            for _ in range(20):
                if events_dropped(dut) > before:
                    break
                netns.command(["ip", "-n", dut.ctl, "-batch", "-"], stdin=several, timeout=200)
            assert events_dropped(dut) > before
            dut.ip(
                f"route del {GOES}",
                f"route add {COMES} via {ext.peer4} dev ext0",
                f"nexthop add id 9 via {alt.peer4} dev alt0",
                f"route add {COMES_BY_ID} nhid 9",
                "rule add pref 77 from 203.0.113.0/24 lookup 100",
            )
        eventually(lambda: dut.route_row(COMES) and dut.route_row(COMES_BY_ID), 20, 0.02, "the new routes")
        eventually(lambda: not dut.route_row(GOES), 20, 0.02, "the deleted route is gone")
        eventually(lambda n=stream.sent: max(stream.arrived(ext), default=0) > n + 100, 10, 0.02)
    assert stream.lost(wan, alt, ext) == [] and astray(dut, stream, egresses) == {}

    assert 77 in [row["pref"] for row in dut.control.ask("rules")]
    assert "rtnl: route events lost effect=tables-read-again" in dut.log(100)
    assert dut.not_forwarded(lan, lan.probe("11.3.4.5")) == {"no_route": 1}
    assert dut.control.ask("audit")[-1]["differences"] == 0
