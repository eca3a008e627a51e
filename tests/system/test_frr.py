# SPDX-License-Identifier: BSD-3-Clause
"""Real FRR runs behind the dataplane: packets show the changes of vtysh and BGP, and dead daemons
come back without an operator."""

import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import threading
import time

import pytest

from lab import evidence, proofs, routes, sessions, topology
from lab.lab import Lab
from lib import machine, netns, procs
from lib.audited import only_copies_differ
from lib.dut import Control
from lib.freeze import frozen
from lib.frr import HAS_MGMTD
from lib.probe import Stopwatch, UdpSink
from lib.wait import LONG, eventually, never

N4, N6 = 2000, 400
STATIC, STATIC_HOST = "192.0.2.64/28", "192.0.2.65"


@pytest.fixture(scope="module")
def lab(possible):
    """The lab of the demo under a name of its own, with its routes."""
    with Lab(f"t{os.getpid()}") as made:
        made.of_machine = of_machine()
        made.up(N4, N6)
        settled(made)
        yield made


def settled(lab, timeout=60):
    """Wait until BGP is up and the FIB has all routes of zebra."""
    peer = topology.ISP4
    eventually(lambda: lab.r1.bgp_state(peer) == "Established", timeout, what="BGP is up")
    eventually(
        lambda: proofs.whole(proofs.tables(lab), N4, N6), timeout, 0.2, "FIB = zebra = isp"
    )


@pytest.fixture
def preferred(lab):
    """Give other programs of the machine less weight than the lab, because a test measures its
    time. This process keeps its weight, because it may carry the weight of all programs of its
    terminal (sched(7), autogroups)."""
    machine.prefer(procs.marked(lab.dir))


def of_machine():
    """Return the files that the machine's own FRR keeps while it runs, and the times of their last
    change."""
    rows = os.scandir("/run/frr") if os.path.isdir("/run/frr") else []
    return {row.path: (row.inode(), row.stat().st_mtime_ns) for row in rows}


def announced(lab):
    """Return (prefix, host in it) that isp announces and that no other prefix covers."""
    sample = lab.isp("lonely", count=1, seed=7)["ipv4"]
    row = sample[0]
    return row["prefix"], row["host"]


class Load:
    """Send one numbered UDP packet each millisecond from lan to an address behind isp."""

    def __init__(self, lab, address):
        self.sink = UdpSink(lab.ns["isp"], address)
        self.sock = netns.open_socket(lab.ns["lan"], 2, 2)
        self.address, self.sent, self._stop = address, 0, threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()
        self.sock.close()
        self.sink.sock.close()

    def _send(self):
        while not self._stop.wait(0.001):
            self.sock.sendto(b"load", (self.address, 9))
            self.sent += 1
            self.sink.count()  # read now, because the socket would fill up

    def lost(self):
        """End the load. Returns the number of packets that did not arrive."""
        self._stop.set()
        self._thread.join()
        try:
            eventually(lambda: self.sink.count() == self.sent, 2)
        except AssertionError:
            pass
        return self.sent - self.sink.count()


@contextlib.contextmanager
def fpm_says(lab, line):
    """Run the dataplane with one more line below `fpm:` of its configuration."""

    def reload(was, now):
        with open(lab.dp.config, encoding="utf-8") as file:
            text = file.read()
        assert text.count(was) == 1
        with open(lab.dp.config, "w", encoding="utf-8") as file:
            file.write(text.replace(was, now))
        netns.command([lab.dp.ctl, "-s", lab.socket, "config", "reload"])

    reload("fpm:\n", f"fpm:\n  {line}\n")
    try:
        yield
    finally:
        reload(f"fpm:\n  {line}\n", "fpm:\n")


class Vty:
    """The command line of one daemon, kept open as vtysh keeps it. A command starts no process, so
    the clock can start when the daemon gets the command."""

    def __init__(self, frr, daemon):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(os.path.join(frr.dir, daemon + ".vty"))
        self.run("enable", "configure terminal")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def run(self, *lines):
        """Send each line and read its answer, which ends with three zeros and a result code."""
        for line in lines:
            self.sock.sendall(line.encode() + b"\0")
            said = b""
            while said[-4:-1] != b"\0\0\0":
                more = self.sock.recv(4096)
                assert more, f"{line}: the daemon hung up"
                said += more
            assert said[-1] == 0, (line, said)


def has_config(daemon):
    """Return the daemon whose command line has the configuration of zebra or staticd."""
    return "mgmtd" if HAS_MGMTD else daemon


def medians_are_below(seconds, measure):
    """Assert that the median of each of measure()'s {what: [seconds]} is below `seconds`. It may
    measure three times: a slow router is late each time, a machine with other work is not."""
    for _ in range(3):
        late = {what: t for what, t in measure().items() if statistics.median(t) >= seconds}
        if not late:
            return
        print(late)
    assert late == {}


def change(watch, what, command):
    """Return the seconds from `command` until packets show `what`. Packets must not show it before.
    `command` may return the (later) moment at which the change was sent."""
    shown = lambda: {kind for _, kind, _ in list(watch.seen)[-10:]}  # noqa: E731
    eventually(
        lambda: what not in shown(), 2, 0.005, f"no {what} before {what} is asked for"
    )
    start = time.monotonic()
    start = command() or start
    return eventually(lambda: watch.first(what, start), 5, 0.01, what)[0] - start


def test_a_static_route_is_in_packets_within_100_ms(lab, preferred):
    """Packets show a static route within 100 ms of the moment at which staticd gets the command,
    when it is added, replaced by a reject, restored and removed. vtysh itself takes 50 ms and more.
    The test takes medians, because the claim is about the router and not about a machine with other
    work."""
    add = f"ip route {STATIC} {topology.ISP4}"
    reject = f"ip route {STATIC} reject"
    changes = (
        ("added", "reply", [add]),
        ("rejected", "unreachable", ["no " + add, reject]),
        ("back", "reply", ["no " + reject, add]),
        ("removed", "unreachable", ["no " + add]),
    )

    with Stopwatch(lab.ns["lan"], STATIC_HOST) as watch, Vty(lab.r1, has_config("staticd")) as vty:
        eventually(lambda: watch.first("unreachable", 0), 5, what="unreachable at first")

        def measure():
            took = {what: [] for what, _, _ in changes}
            for _ in range(5):
                for what, shown, lines in changes:
                    took[what].append(change(watch, shown, lambda x=lines: vty.run(*x)))
            return took

        medians_are_below(0.1, measure)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_bgp_route_is_in_packets_within_100_ms(lab, preferred, family):
    """Packets show a withdrawn and an announced BGP route within 100 ms of the moment at which the
    neighbor writes the UPDATE. No timer of bgpd delays it: its MRAI is for the routes that it
    sends, its route-map delay for changed policy. The test takes medians of seven, because five
    daemons handle it and share two cores with all other work."""
    row = lab.isp("lonely", count=1, seed=7)[family][0]

    with Stopwatch(lab.ns["lan"], row["host"]) as watch:
        eventually(lambda: watch.first("reply", 0), 5, what="a reply at first")

        def measure():
            took = {"withdraw": [], "announce": []}
            for _ in range(7):
                for verb, what in (("withdraw", "unreachable"), ("announce", "reply")):
                    ask = lambda v=verb: lab.isp(v, prefixes=[row["prefix"]])["t"]  # noqa: E731
                    took[verb].append(change(watch, what, ask))
            return took

        medians_are_below(0.1, measure)


def test_a_rib_that_stands_still_is_not_felt_by_zebra(lab):
    """The rib thread stands still for DRAIN_PAUSE_S during a load of BGP routes. By zebra's own
    counters its output never met a full buffer, and the FIB has all routes afterwards."""
    pause_s = float(os.environ.get("DRAIN_PAUSE_S", "3" if LONG else "1.5"))
    taken = set(routes.table4(N4, 1))
    more = [
        f"{net}.{a}.{b}.0/24" for net in (11, 12) for a in range(80) for b in range(250)
    ]
    more = [prefix for prefix in more if routes.parse(prefix)[0] not in taken]

    def counters():
        return lab.r1.json("show fpm counters json")

    def in_step():
        rows = proofs.tables(lab).values()
        return all(row["zebra"] == row["fib"] for row in rows)

    before = counters()

    with frozen(lab.dp.pid(), "fdp-rib"):
        begin = time.monotonic()
        for at in range(0, len(more), 5000):
            lab.isp("announce", prefixes=more[at : at + 5000])
        eventually(
            lambda: lab.r1.route_counts()["ebgp"] >= len(more), 60, 0.2, "zebra has all"
        )
        eventually(lambda: time.monotonic() > begin + pause_s, pause_s + 1)
        waiting = lab.dp.fpm()
    eventually(in_step, 30, 0.2, "the FIB is what zebra has")
    now = counters()
    for at in range(0, len(more), 5000):
        lab.isp("withdraw", prefixes=more[at : at + 5000])
    settled(lab)

    print(f"longest queue {waiting['queue_bytes'] >> 10} KiB; zebra before and after: {before} {now}")
    assert waiting["queue_bytes"] > 40 * len(more), "the daemon has taken all routes, and they wait"
    for key in ("buffer-full-hits", "connection-closes", "connection-errors"):
        assert now[key] == before[key], (key, now)


def test_acknowledgements_are_nothing_to_a_zebra_that_cannot_read_them(lab):
    """FRR 8.4 reads and discards the acknowledgements of the dataplane (doc/fpm.md, 8). The daemon
    acknowledges every route of a replay, and the session and the routes are not affected."""

    with fpm_says(lab, "feedback: true"):
        eventually(lambda: lab.dp.fpm()["feedback_enabled"], 3)
        before = lab.dp.fpm()
        errors = lab.r1.json("show fpm counters json")["connection-errors"]

        netns.command([lab.dp.ctl, "-s", lab.socket, "replay"])
        acknowledged = lambda: lab.dp.fpm()["feedback"] - before["feedback"]  # noqa: E731
        eventually(lambda: acknowledged() >= N4 + N6, 20, 0.1, "a replay, acknowledged")
        settled(lab)
        with Load(lab, announced(lab)[1]) as load:
            eventually(lambda: load.sent > 300, 5, what="packets")
            assert load.lost() == 0
        now = lab.dp.fpm()
        assert (now["generation"], now["connected"]) == (before["generation"] + 1, True)
        assert lab.r1.json("show fpm counters json")["connection-errors"] == errors


def in_force(fn):
    """Return the seconds until fn() is true."""
    begin = time.monotonic()
    eventually(fn, 5, 0.002)
    return time.monotonic() - begin


def test_what_vtysh_says_of_an_interface_is_in_force_within_100_ms(lab, preferred):
    """The kernel and the dataplane have `ip address`, `ipv6 address`, `shutdown`, `ip forwarding`
    and their opposites within 100 ms after zebra got the command. The test takes medians, because the
    machine may have other work."""
    control = Control(lab.socket)

    def local(address):
        rows = control.ask("routes", prefix=address, longest=False)
        return [row["source"] for row in rows] == ["local"]

    def port():
        return next(row for row in control.ask("ports") if row["name"] == "lan0")

    def up():
        return netns.is_up(lab.ns["r1"], "lan0") and port()["link"] == "up"

    subnets = ["192.0.2.96/28", "2001:db8:97::/64", "203.0.113.0/24"]

    def zebra_is_done():
        """Return true when zebra knows each existing subnet and no removed subnet, and its queue is
        empty. zebra 8.4 aborts (process_subq_route(), an assertion) when an address or a link goes
        and comes while one of its subnets, of either family, is still in zebra's queue."""
        there = [local("192.0.2.97/32") and up(), local("2001:db8:97::1/128") and up(), up()]
        for subnet, expected in zip(subnets, there, strict=True):
            family = "ipv6" if ":" in subnet else "ip"
            rows = lab.r1.json(f"show {family} route {subnet} json").get(subnet, [])
            rows = [r for r in rows if r["protocol"] == "connected"]
            if bool(rows) != bool(expected) or not all(r.get("installed") for r in rows):
                return False
        return not lab.r1.zebra_queued()

    changes = [
        ("interface lan0", "ip address 192.0.2.97/28", lambda: local("192.0.2.97/32")),
        (
            "interface lan0",
            "ipv6 address 2001:db8:97::1/64",
            lambda: local("2001:db8:97::1/128"),
        ),
        ("", "no ip forwarding", lambda: port()["forwarding"] == "ipv6"),
        ("interface lan0", "shutdown", lambda: not up() and port()["link"] == "down"),
    ]

    def measure():
        took = {}
        for _ in range(3):
            for where, line, there in changes:
                undo = line[3:] if line.startswith("no ") else "no " + line
                for command, wanted in ((line, there), (undo, lambda t=there: not t())):
                    assert not wanted(), command
                    asked = vty if where else zebra
                    asked.run(*([where] if where else []), command)
                    took.setdefault(command, []).append(in_force(wanted))
                    asked.run(*(["exit"] if where else []))
                    eventually(zebra_is_done, 10, 0.05)
        return took

    with (
        contextlib.closing(control),
        Vty(lab.r1, "zebra") as zebra,
        Vty(lab.r1, has_config("zebra")) as vty,
    ):
        medians_are_below(0.1, measure)
    settled(lab)


def test_the_audit_finds_what_is_broken_and_nothing_else(lab):
    """The audit compares zebra's own tables with all protocols, rejects and ECMP, and finds only
    broken routes. A lost route comes back by a replay."""
    vtysh = ["--vtysh", " ".join(lab.r1.vtysh_argv())]
    prefix, _ = announced(lab)
    lab.r1.configure(f"ip route {STATIC} reject", f"ip route 192.0.2.80/28 {topology.ISP4}")

    def audit(*words):
        argv = [lab.dp.ctl, "-s", lab.socket, "audit", *vtysh, *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    eventually(lambda: audit()[0] == 0, 10, what="equal at first")
    Control(lab.socket).request({"break": "route", "prefix": prefix})
    code, text = audit("--repair")
    assert code == 3 and f"DIFFERS {prefix}: zebra has via {topology.ISP4}" in text, text
    eventually(lambda: audit()[0] == 0, 20, what="the replay heals it")

    # The kernel loses zebra's copy of a next hop, as by a link that went down for a moment.
    copy = "blackhole 192.0.2.80/28 proto 196 metric 20"  # RTPROT_ZSTATIC
    netns.ip_batch([f"route replace {copy}"], lab.ns["r1"])
    code, text = audit()
    assert code == 3 and only_copies_differ(text), text
    assert (
        "DIFFERS 192.0.2.80/28: zebra's copy in the kernel has blackhole, "
        f"zebra and the dataplane have via {topology.ISP4}"
    ) in text
    Control(lab.socket).request({"break": "route", "prefix": prefix})
    code, text = audit()
    assert code == 3 and not only_copies_differ(text), text
    Control(lab.socket).request({"do": "replay"})

    lab.r1.configure(
        f"no ip route {STATIC} reject", f"no ip route 192.0.2.80/28 {topology.ISP4}"
    )


def test_the_doctor_asks_the_zebra_that_it_found(lab):
    """The doctor asks a zebra with a /run/frr of its own, as in a container, without --vtysh."""

    def routes():
        argv = [lab.dp.ctl, "-s", lab.socket, "--json", "doctor", "frr", "routes"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return {row["check"]: row["status"] for row in json.loads(done.stdout)}

    eventually(lambda: routes() == {"frr": "ok", "routes": "ok"}, 20, 0.5)


@pytest.mark.skipif(HAS_MGMTD, reason="zebra of this FRR announces next hops whatever it gives the kernel")
def test_the_doctor_says_why_a_route_has_no_next_hop_and_how_it_gets_one(lab):
    """With `no zebra nexthop kernel enable` zebra 8.4 announces no next hops. The doctor reports routes that
    lack them, and its commands give a route its next hop."""
    before = lab.dp.fpm()["zebra4"]
    route = "ip route 192.0.2.80/28 203.0.113.77"  # no other route has this next hop

    def findings():
        argv = [lab.dp.ctl, "-s", lab.socket, "--json", "doctor", "routes"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return {row["subject"]: row for row in json.loads(done.stdout)}

    def state():
        rows = lab.dp.show("routes", "192.0.2.80/28", "exact")
        return [row["state"] for row in rows]

    try:
        lab.r1.configure("no zebra nexthop kernel enable")
        lab.r1.configure(route)
        eventually(lambda: lab.dp.fpm()["zebra4"] == before + 1, 20, 0.1, "the route")
        assert state() == ["unresolved"]
        found = findings()["next-hops"]
        assert found["status"] == "fail" and "no zebra nexthop kernel enable" in found["cost"]
        assert found["fix"] == [
            "vtysh -c 'conf t' -c 'zebra nexthop kernel enable' -c end -c write", "fpmctl replay",
        ]  # fmt: skip
        lab.r1.configure("zebra nexthop kernel enable")
        netns.command([lab.dp.ctl, "-s", lab.socket, "replay"])
        eventually(lambda: state() not in ([], ["unresolved"]), 30, 0.5, "the route has its next hop")
        eventually(lambda: "next-hops" not in findings(), 30, 0.5, "no finding after the commands")
    finally:
        lab.r1.configure("zebra nexthop kernel enable")
        lab.r1.configure("no " + route)
        eventually(lambda: lab.dp.fpm()["zebra4"] == before, 20, 0.1, "the route is gone")


def test_the_kernel_of_the_router_forwards_nothing(lab):
    """The kernel of the router forwards no packet: transit takes the dataplane."""
    _, host = announced(lab)
    before = evidence.forwarded(lab)

    with Load(lab, host) as load:
        eventually(lambda: load.sent > 500, 10)
        assert load.lost() == 0

    assert evidence.forwarded(lab) - before >= 500
    snmp = netns.run(lab.ns["r1"], ["cat", "/proc/net/snmp"])
    keys, values = [row.split() for row in snmp.splitlines() if row.startswith("Ip:")]
    assert dict(zip(keys, values))["ForwDatagrams"] == "0"


def test_the_loss_of_zebra_and_all_of_frr_loses_no_transit_packet(lab):
    """Forwarding continues after kill -9 of zebra and a restart of all daemons of FRR. The replay
    is reconciled, and all routes are there again."""
    _, host = announced(lab)
    generation = lab.dp.fpm()["generation"]

    with Load(lab, host) as load:
        eventually(lambda: load.sent > 100, 10)
        lab.r1.kill("zebra", signal.SIGKILL)
        eventually(lambda: not lab.dp.fpm()["connected"], 10, what="the session ends")
        eventually(lambda: "fpm: session down" in lab.dp.log(100), 5)
        lab.r1.restart_all()
        eventually(lambda: lab.dp.fpm()["generation"] > generation, 20, what="it is back")
        settled(lab)
        assert load.lost() == 0

    assert lab.dp.fpm()["malformed"] == 0


def test_a_route_that_went_while_zebra_was_away_goes_sweep_restart_s_later(lab):
    """A route that was withdrawn while zebra did not run stays in force for sweep-restart-s (first
    an hour, then a second), because the daemons of FRR may still have routes to send. Other routes
    lose no packet."""
    (gone, _), (_, host) = [row.values() for row in lab.isp("lonely", count=2, seed=7)["ipv4"]]
    control = Control(lab.socket)
    there = lambda: gone in {row["prefix"] for row in control.ask("routes")}  # noqa: E731
    generation = lab.dp.fpm()["generation"]

    with Load(lab, host) as load:
        try:
            with fpm_says(lab, "sweep-restart-s: 3600"):
                lab.r1.kill("zebra", signal.SIGKILL)
                eventually(lambda: not lab.dp.fpm()["connected"], 10, what="the session ends")
                lab.isp("withdraw", prefixes=[gone])
                lab.r1.restart_all()
                eventually(lambda: lab.dp.fpm()["generation"] > generation, 20, what="it is back")
                state = lambda: lab.dp.fpm()["state"]  # noqa: E731
                # zebra 10.3 reads the routes of the previous zebra from the kernel, as routes of
                # bgpd, and also keeps the routes that bgpd does not have.
                kept = lambda: HAS_MGMTD and lab.r1.json(f"show ip route {gone} json")  # noqa: E731
                said = lambda: state() == "holding" or state() == "in-step" and kept()  # noqa: E731
                eventually(said, 20, what="all was said")
                if state() == "in-step":
                    pytest.skip("zebra kept the route that bgpd does not have (FRR 10.3)")
                never(lambda: not there() or state() != "holding", 1)
            with fpm_says(lab, "sweep-restart-s: 1"):
                eventually(lambda: not there(), 30, 0.2, "the route is gone")
            eventually(lambda: "swept=1 end=" in lab.dp.log(20), 5, what="the sweep is over")
        finally:
            lab.isp("announce", prefixes=[gone])
            settled(lab)
        assert load.lost() == 0


def test_a_deleted_tap_has_its_addresses_and_its_sessions_of_frr_again(lab):
    """After a deletion of its TAP, zebra configures the new interface with its addresses, and BGP
    comes up again. Only FRR restores the addresses."""
    _, host = announced(lab)
    ups = lambda: sessions.flaps(lab.r1)["bgp"]  # noqa: E731
    before = ups()

    netns.ip_batch(["link del wan0"], lab.ns["r1"])

    eventually(lambda: "neigh: tap recreated" in lab.dp.log(100), 5)
    eventually(lambda: ups() > before, 60, 0.1, "BGP is up again")
    settled(lab)
    with Load(lab, host) as load:
        eventually(lambda: load.sent > 300, 10)
        assert load.lost() == 0


def test_a_killed_bgpd_takes_its_routes_along_and_brings_them_back(lab):
    """When bgpd dies, zebra withdraws its routes. When bgpd is back, all routes are there again."""
    lab.r1.kill("bgpd", signal.SIGKILL)
    eventually(lambda: proofs.tables(lab)[4]["fib"] < 100, 20, what="BGP routes are gone")

    lab.r1.restart("bgpd")

    settled(lab)


def test_a_killed_daemon_recovers_alone_when_started_again(lab):
    """After kill -9 of the dataplane and of its supervisor, which would start it again and keeps
    its TAPs, a new start makes new TAPs. FRR gives them their addresses and connects, and packets
    flow."""
    _, host = announced(lab)
    show = ["ip", "-br", "-4", "addr", "show", "wan0"]
    addresses = netns.run(lab.ns["r1"], show)
    pid = lab.dp.pid()

    lab.dp.stop(signal.SIGKILL)
    procs.signal_pid(pid, signal.SIGKILL)
    eventually(lambda: not procs.is_alive(pid), 10, what="the daemon ends")
    lab.dp.start()

    assert lab.dp.pid() != pid
    settled(lab)
    assert addresses.split()[2:] == netns.run(lab.ns["r1"], show).split()[2:]
    with Stopwatch(lab.ns["lan"], host) as watch:
        eventually(lambda: watch.first("reply", 0), 10, what="ping is answered")
    assert lab.dp.fpm()["malformed"] == 0


def test_watchfrr_brings_a_daemon_back_and_leaves_the_machines_frr_alone(lab):
    """watchfrr starts a killed daemon again and does not touch the FRR of the machine. FRR 8.4 has
    one path for watchfrr's vty and for the state that OSPF keeps over a restart."""
    lab.watch_r1()
    state = lambda: lab.r1.vtysh("show watchfrr")  # noqa: E731
    eventually(lambda: state().count(" Up") == len(lab.r1.daemons), 10, what="all are up")

    killed = lab.r1.kill("staticd")

    eventually(lambda: lab.r1.runs("staticd") and lab.r1.pid("staticd") != killed, 10)
    assert of_machine() == lab.of_machine
