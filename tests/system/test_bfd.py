# SPDX-License-Identifier: BSD-3-Clause
"""BFD in the dataplane: bfdd tells its sessions to the daemon, which keeps them up with a peer that
is another bfdd, and takes a dead next hop out of its groups."""

import contextlib
import datetime
import json
import math
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from statistics import median

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from bfd_bed import PATIENT, PORT, bed, nexthops_of, sniffed, undisturbed
from lib import api, machine, netns, procs
from lib.freeze import frozen
from lib.privileges import SYS_NICE, assert_dropped
from lib.wait import eventually
from on_time import slowness

SYS_RESOURCE = 1 << 24  # the bit of the capability: capabilities(7)


@pytest.fixture(scope="module")
def bfd():
    with bed("bfd") as both:
        yield both


def test_a_session_of_bfdd_comes_up_with_a_peer_and_the_forwarders_keep_it(bfd):
    bfd.up()
    row = bfd.row()
    assert row["by"] == "forwarders" and row["reason"] is None, row
    before = row["rx_packets"]
    eventually(lambda: bfd.row()["rx_packets"] >= before + 40, 20, what="packets are counted")
    ours = bfd.ours.json("show bfd peers json")[0]
    assert ours["status"] == "up", ours
    assert bfd.peer_row()["remote-id"] == row["discr"]


def hops(bfd):
    """Return {address: state} of the next hops by wan and alt, which the route has."""
    rows = bfd.router.control.ask("nexthops")
    wires = bfd.router.wires
    ours = {wires["wan"].peer4, wires["alt"].peer4}
    return {row["via"]: row["state"] for row in nexthops_of(rows) if row.get("via") in ours}


def test_a_next_hop_leaves_its_group_when_its_session_fails_and_comes_back_with_it(bfd):
    wan, alt = (bfd.router.wires[name].peer4 for name in ("wan", "alt"))
    bfd.up()
    eventually(lambda: hops(bfd).get(wan) == "forwarding", 20, what="both hops are used")
    bfd.theirs.kill("bfdd", signal.SIGSTOP)
    eventually(lambda: bfd.state() == "down", 10, what="the session fails")
    row = bfd.row()
    assert row["pruned"], row
    eventually(lambda: hops(bfd).get(wan) == "bfd-down", 10, what="the hop is left out")
    assert hops(bfd)[alt] == "forwarding", hops(bfd)
    bfd.theirs.kill("bfdd", signal.SIGCONT)
    bfd.up()
    assert not bfd.row()["pruned"]
    eventually(lambda: hops(bfd).get(wan) == "forwarding", 10, what="the hop is used again")


def test_a_shutdown_of_the_peer_is_no_failure_and_prunes_nothing(bfd):
    wan = bfd.router.wires["wan"]
    bfd.up()
    # A restart before may have taken the hop away. The session can be Up before the hop is back.
    eventually(lambda: hops(bfd).get(wan.peer4) == "forwarding", 20, what="the hop is used")
    peer = ["bfd", f"peer {wan.ip4} interface wan"]
    bfd.theirs.configure(*peer, "shutdown")
    try:
        eventually(lambda: bfd.state() == "down", 10, what="the session is down")
        assert not bfd.row()["pruned"]
        assert hops(bfd)[wan.peer4] == "forwarding"
    finally:  # a peer that stays in shutdown fails the tests after this one
        bfd.theirs.configure(*peer, "no shutdown")
    bfd.up()


@pytest.mark.parametrize(
    "name, port, ttl, discr, drop",
    [
        ("wan", 3784, 64, 0, "bfd_bad"),  # it crossed a router
        ("alt", 3784, 255, 0, "bfd_no_session"),  # the interface is not that of the session
        ("alt", 3784, 255, None, "bfd_no_session"),  # the sender also knows the discriminator
        ("wan", 7784, 255, None, None),  # a port of S-BFD, for which the dataplane has no sessions
        ("wan", 4784, 255, None, "bfd_no_session"),  # several hops
        ("wan", 3785, 254, None, "bfd_no_session"),  # an echo packet that was never sent
    ],
)
def test_a_forged_packet_does_not_end_a_session(bfd, name, port, ttl, discr, drop):
    router, wan = bfd.router, bfd.router.wires["wan"]
    wire = router.wires[name]
    ether = Ether(src=wire.mac, dst=wire.port_mac)
    ip = IP(src=wan.peer4, dst=wan.ip4, ttl=ttl)

    def forged():
        """Send the packet. Return the state of the session, and how often it went down meanwhile."""
        bfd.up()
        before, was = bfd.row(), router.counters()
        its = before["discr"] if discr is None else discr
        down = struct.pack("!BBBBIIIII", 0x20, 0x40, 3, 24, 7, its, 50000, 50000, 0)
        wire.send(ether / ip / UDP(sport=50000, dport=port) / down)
        router.fence(wire)
        if drop is not None:
            eventually(lambda: router.drops(was) == {drop: 1}, 5, what=f"it counts as {drop}")
        row = bfd.row()
        return row["state"], row["downs"] - before["downs"]

    bfd.up()
    assert undisturbed(bfd, (wan.ip4, wan.peer4), 0.15, forged) == ("up", 0)


def downs(bfd):
    """Return how often the peer has seen the session go down."""
    return bfd.theirs.json("show bfd peers counters json")[0]["session-down"]


def test_a_planned_restart_does_not_end_a_session_of_three_times_50_ms(bfd):
    def restarted():
        """Return how often the peer saw the session go down, and whether it is the same session."""
        before, discr = downs(bfd), bfd.row()["discr"]
        assert bfd.router.fpmctl("restart").returncode == 0
        eventually(lambda: bfd.row() is not None, 20, what="the successor has the session")
        bfd.up()
        return downs(bfd) - before, bfd.row()["discr"] == discr

    bfd.up()
    wan = bfd.router.wires["wan"]
    assert undisturbed(bfd, (wan.ip4, wan.peer4), 0.15, restarted) == (0, True)
    assert bfd.ours.json("show bfd peers json")[0]["status"] == "up"


def test_an_upgrade_does_not_end_a_session_of_three_times_50_ms(bfd):
    """dpkg replaces the file of the program, and postinst of the package sends SIGUSR1."""
    daemon, wan = bfd.router.daemon, bfd.router.wires["wan"]

    def upgraded():
        """Return how often the peer saw the session go down, and whether it is the same session."""
        before, discr = downs(bfd), bfd.row()["discr"]
        was, later = daemon.pid(), daemon.program + ".dpkg-new"
        shutil.copy(daemon.program, later)
        with open(later, "ab") as file:
            file.write(b"later")
        os.rename(later, daemon.program)
        procs.signal_pid(was, signal.SIGUSR1)
        eventually(lambda: daemon.pid() != was and bfd.row() is not None, 20, what="the successor has the session")
        bfd.up()
        assert os.path.samefile(f"/proc/{daemon.pid()}/exe", daemon.program)
        return downs(bfd) - before, bfd.row()["discr"] == discr

    bfd.up()
    assert undisturbed(bfd, (wan.ip4, wan.peer4), 0.15, upgraded) == (0, True)


def agree(bfd, ms):
    """Let both sides send a packet each `ms` milliseconds."""
    wan = bfd.router.wires["wan"]
    for frr, peer in (
        (bfd.ours, f"peer {wan.peer4} interface wan0"),
        (bfd.theirs, f"peer {wan.ip4} interface wan"),
    ):
        frr.configure("bfd", peer, f"transmit-interval {ms}", f"receive-interval {ms}")
    eventually(
        lambda: (row := bfd.row())["state"] == "up" and row["detect_us"] == 3000 * ms,
        20,
        what="the timers are agreed",
    )


# Parts of the time from a kill to the first BFD packet, by the log line that ends each.
STEPS = {
    "the kernel ends the program": "supervise: program ended",
    "checkpoint": "rib: checkpoint restored",
    "DPDK and the first port": "main: port opened name=lan0",
    "three more ports": "main: port opened name=ext0",
    "threads, and the take-over of the sessions": "bfd: sessions taken over",
}


def stamps(bfd):
    """Return {step: time} of the last start, in seconds since 1970."""
    lines = bfd.router.daemon.log(200).splitlines()
    last = {step: next(x for x in reversed(lines) if text in x) for step, text in STEPS.items()}
    return {step: datetime.datetime.fromisoformat(x.split()[0]).timestamp() for step, x in last.items()}


def test_the_time_from_a_crash_to_the_next_bfd_packet(bfd):
    """REPEAT=10 with -s prints the figures of doc/failures.md: for how long the wire had no packet of
    ours, the parts of this time, and whether the peer, with 3 x 300 ms, noticed it. The supervisor
    delays the next start unless the daemon has run for ten seconds."""
    ends, repeat = (bfd.router.wires["wan"].ip4, bfd.router.wires["wan"].peer4), int(os.environ.get("REPEAT") or 1)
    agree(bfd, 300)
    discr, ready = bfd.row()["discr"], -math.inf
    with sniffed(bfd) as wire:
        for _ in range(repeat):
            eventually(lambda r=ready: repeat == 1 or time.monotonic() > r + 11, 20, what="a run of ten seconds")
            bfd.up()
            seen = eventually(lambda: wire.of(*ends), 20, what="packets before the crash")
            before, first, killed = downs(bfd), len(seen), time.time()
            bfd.router.daemon.back(bfd.router.daemon.crash(signal.SIGKILL))
            ready = time.monotonic()
            bfd.up()
            eventually(lambda n=first + 2: len(wire.of(*ends)) >= n, 20, what="packets after it")
            times = [p.when for p in wire.of(*ends)[first - 1 :]]
            gap, at = max(b - a for a, b in zip(times, times[1:])), stamps(bfd)
            parts = [f"{step} {1000 * (at[step] - a):.0f}" for step, a in zip(at, [killed, *at.values()])]
            print(f"gap {1000 * gap:.0f} ms, downs of the peer {downs(bfd) - before}; ms: {', '.join(parts)}")
            # The sessions are taken over, and not made again, however long the start takes.
            assert bfd.row()["discr"] == discr


def test_a_crash_does_not_end_a_session_of_three_times_700_ms(bfd):
    """A crash does not end the session, unless the CPUs are so busy that no packet comes in the
    detection time. The kernel's time stamps show such a gap; then the test crashes the daemon again."""
    ms = 700 * slowness(bfd.router)  # the start of a program with sanitizers takes longer
    ends = bfd.router.wires["wan"].ip4, bfd.router.wires["wan"].peer4
    agree(bfd, ms)
    with sniffed(bfd) as wire:
        for _ in range(10):
            eventually(lambda: wire.of(*ends), 20, what="a packet before the crash")
            before, discr, first = downs(bfd), bfd.row()["discr"], len(wire.of(*ends))
            was = bfd.router.daemon.crash(signal.SIGKILL)
            bfd.router.daemon.back(was)
            bfd.up()
            eventually(lambda n=first + 2: len(wire.of(*ends)) >= n, 20, what="packets after it")
            times = [p.when for p in wire.of(*ends)[first - 1 :]]
            gap = max(b - a for a, b in zip(times, times[1:]))
            if gap < 3 * ms / 1000:
                break
    assert gap < 3 * ms / 1000, "the daemon was back too late after each of ten crashes"
    assert downs(bfd) == before and bfd.row()["discr"] == discr, f"no packet for {gap:.3f} s"
    assert bfd.ours.json("show bfd peers json")[0]["status"] == "up"


@pytest.mark.parametrize("end", ["planned", "crash"])
def test_the_first_packets_after_a_restart_do_not_use_a_next_hop_that_was_dead(bfd, end):
    router, wires = bfd.router, bfd.router.wires
    bfd.up()
    bfd.theirs.kill("bfdd", signal.SIGSTOP)
    try:
        eventually(lambda: hops(bfd).get(wires["wan"].peer4) == "bfd-down", 20, what="it is dead")
        with router.stream(wires["lan"], "198.51.100.9", rate=4000, flows=64) as stream:
            eventually(lambda: len(stream.arrived(wires["alt"])) > 100, 10, what="they arrive")
            if end == "planned":
                assert router.fpmctl("restart").returncode == 0
            else:
                router.daemon.back(router.daemon.crash(signal.SIGKILL))
            eventually(lambda: bfd.row() is not None, 20, what="the next daemon answers")
            count = len(stream.arrived(wires["alt"]))
            eventually(
                lambda: len(stream.arrived(wires["alt"])) > count + 1000, 10, what="they go on"
            )
        assert not stream.arrived(wires["wan"])
    finally:
        bfd.theirs.kill("bfdd", signal.SIGCONT)
    bfd.up()


def management(bfd):
    """Give both sides an interface that is no port of the dataplane. Returns our and the peer's
    addresses."""
    router = bfd.router
    netns.run(router.ctl, ["ip", "link", "add", "mgmt0", "type", "veth", "peer", "mgmt1"])
    netns.run(router.ctl, ["ip", "link", "set", "mgmt1", "netns", router.far])
    for space, dev, last in ((router.ctl, "mgmt0", 1), (router.far, "mgmt1", 2)):
        netns.run(space, ["sysctl", "-qw", f"net.ipv6.conf.{dev}.disable_ipv6=0"])
        netns.ip_batch(
            [
                f"addr add 192.0.2.{last}/24 dev {dev}",
                f"addr add 2001:db8:77::{last}/64 dev {dev} nodad",
                f"link set {dev} up",
            ],
            space,
        )
    return {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8:77::1", "2001:db8:77::2")}


def say_down(bfd, row, src, dst, ttl):
    """Send a Down packet as the peer of a session does, from the peer's kernel, with this TTL."""
    numbers = (row["remote_discr"], row["discr"], 1000000, 300000, 0)
    down = struct.pack("!BBBBIIIII", 0x20, 0x40, 3, 24, *numbers)
    family = socket.AF_INET6 if ":" in src else socket.AF_INET
    hops = (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS)
    with netns.open_socket(bfd.router.far, family, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(*(hops if ":" in src else (socket.IPPROTO_IP, socket.IP_TTL)), ttl)
        sock.bind((src, 0))
        sock.sendto(down, (dst, 3784))


def test_a_forwarder_that_hangs_does_not_stop_detection(bfd):
    """Detection usually waits until the forwarders have looked at their queues. If a forwarder hangs
    and looks at none, bfdd is notified all the same, after a second."""
    bfd.up()
    told = lambda: bfd.ours.json("show bfd peers json")[0]["status"]  # noqa: E731
    with frozen(bfd.router.daemon.pid(), "fwd-0"):
        eventually(lambda: told() == "down", 10, what="the session goes down")
    bfd.up()


def test_a_session_by_a_bridge_over_a_port_is_served_over_the_kernel(bfd):
    """The members of a bridge or bond of the kernel may be ports. The forwarders leave the BFD packets
    that such a port receives to the kernel."""
    router, lan = bfd.router, bfd.router.wires["lan"]
    ends = {4: ("203.0.113.129", "203.0.113.130"), 6: ("fe80::81", "fe80::82")}
    elsewhere = "203.0.113.134"
    router.ip(f"link add br7 address {lan.port_mac} type bridge", "link set br7 up", f"link set {lan.tap} master br7")
    netns.run(router.ctl, ["sysctl", "-qw", "net.ipv6.conf.br7.disable_ipv6=0"])
    netns.run(router.far, ["sysctl", "-qw", "net.ipv6.conf.lan.disable_ipv6=0"])
    for space, dev, side in ((router.ctl, "br7", 0), (router.far, "lan", 1)):
        netns.ip_batch([f"addr add {ends[4][side]}/30 dev {dev}", f"addr add {ends[6][side]}/64 dev {dev} nodad"], space)
    try:
        for ours, theirs in ends.values():
            bfd.ours.configure("bfd", f"peer {theirs} local-address {ours} interface br7", PATIENT)
            bfd.theirs.configure("bfd", f"peer {ours} local-address {theirs} interface lan", PATIENT)
        for _, theirs in ends.values():
            eventually(lambda peer=theirs: bfd.state(peer) == "up", 20, what=f"{theirs} is up")
            assert (bfd.row(theirs)["by"], bfd.row(theirs)["dev"]) == ("kernel", "br7"), bfd.row(theirs)
        # The kernel takes what the member receives as received by the bridge.
        bfd.ours.configure("bfd", f"peer {elsewhere} local-address {ends[4][0]} interface {lan.tap}")
        eventually(lambda: bfd.row(elsewhere) is not None, 20, what="the session of the member is known")
        row = bfd.row(elsewhere)
        assert (row["by"], row["reason"]) == (None, "the interface is a member of a bridge, bond or team"), row
        # Packets of unknown senders do not use up the rate of these peers.
        assert router.fpmctl("set", "policer", "control-new", "rate", "1", "burst", "1").returncode == 0
        rows = [bfd.row(theirs) for _, theirs in ends.values()]
        for row in rows:
            more = lambda r=row: bfd.row(r["peer"])["rx_packets"] > r["rx_packets"] + 10  # noqa: E731
            eventually(more, 20, what="its packets are received")
            assert bfd.row(row["peer"])["downs"] == row["downs"], bfd.row(row["peer"])
    finally:
        router.fpmctl("set", "policer", "control-new", "rate", "1000", "burst", "1000")
        bfd.ours.configure("bfd", f"no peer {elsewhere} local-address {ends[4][0]} interface {lan.tap}")
        for ours, theirs in ends.values():
            bfd.ours.configure("bfd", f"no peer {theirs} local-address {ours} interface br7")
            bfd.theirs.configure("bfd", f"no peer {ours} local-address {theirs} interface lan")
            eventually(lambda peer=theirs: bfd.row(peer) is None, 20, what=f"{theirs} has ended")
        router.ip("link del br7")
        netns.ip_batch([f"addr del {ends[4][1]}/30 dev lan", f"addr del {ends[6][1]}/64 dev lan"], router.far)


def test_a_session_by_an_interface_that_is_no_port_is_served_over_the_kernel(bfd):
    """bfdd of the peer would send echo packets of IPv6 to our address, where no program returns them."""
    pairs = management(bfd)
    for ours, theirs in pairs.values():
        bfd.ours.configure("bfd", f"peer {theirs} interface mgmt0", PATIENT)
        echo = ("echo-mode", "echo transmit-interval 200")
        bfd.theirs.configure("bfd", f"peer {ours} interface mgmt1", PATIENT, *echo)
    for _, theirs in pairs.values():
        eventually(lambda peer=theirs: bfd.state(peer) == "up", 20, what=f"{theirs} is up")
        row = bfd.row(theirs)
        assert (row["by"], row["reason"], row["dev"]) == ("kernel", None, "mgmt0"), row
    def both_up():
        """Return True if the peer has both sessions up. It gets the last packet of the handshake after
        our side is up."""
        peers = bfd.theirs.json("show bfd peers json")
        return [p["status"] for p in peers if p["peer"] in {ours for ours, _ in pairs.values()}] == ["up"] * 2

    eventually(both_up, 20, what="the peer has both sessions up")

    def counters(ours):
        return next(r for r in bfd.theirs.json("show bfd peers counters json") if r["peer"] == ours)

    for ours, _ in pairs.values():
        eventually(lambda peer=ours: counters(peer)["control-packet-input"] >= 12, 20, what="time goes on")
        assert counters(ours)["session-down"] == 0, counters(ours)
    for ours, theirs in pairs.values():
        was, drops = bfd.row(theirs), bfd.router.counters()
        say_down(bfd, was, theirs, ours, 254)  # it crossed a router
        eventually(lambda: bfd.router.drops(drops).get("bfd_bad") == 1, 10, what="it is dropped")
        row = bfd.row(theirs)
        assert (row["state"], row["downs"]) == ("up", was["downs"]), row
        say_down(bfd, was, theirs, ours, 255)
        eventually(lambda: bfd.row(theirs)["downs"] == was["downs"] + 1, 10, what="it is believed")
        eventually(lambda: bfd.state(theirs) == "up", 20, what=f"{theirs} is up again")
    before, discr = bfd.row("192.0.2.2")["downs"], bfd.row("192.0.2.2")["discr"]
    assert bfd.router.fpmctl("restart").returncode == 0
    eventually(lambda: bfd.row("192.0.2.2") is not None, 20, what="the successor has it")
    eventually(lambda: bfd.state("192.0.2.2") == "up", 20, what="it is up")
    row = bfd.row("192.0.2.2")
    assert (row["downs"], row["discr"]) == (before, discr), row
    netns.run(bfd.router.far, ["ip", "link", "set", "mgmt1", "down"])
    eventually(lambda: bfd.state("192.0.2.2") == "down", 20, what="it fails")
    assert bfd.row("192.0.2.2")["diag"] == "control detection time expired"


def examined(bfd, vtysh=None):
    """Return {subject: finding} of `fpmctl doctor bfd`, with a command that plays vtysh or with
    that of our side."""
    words = ["doctor", "bfd", "--vtysh", vtysh or shlex.join(bfd.ours.vtysh_argv())]
    return {row["subject"]: row for row in json.loads(bfd.router.fpmctl("--json", *words).stdout)}


def metrics(bfd):
    """Return {name with labels: value} of the metrics of BFD."""
    found = re.findall(r"^(fpmdp_bfd_\S+) (\d+)$", bfd.router.metrics_page(), re.M)
    return {name: int(value) for name, value in found}


def test_doctor_and_metrics_tell_what_the_sessions_are(bfd):
    bfd.up()
    found, before = examined(bfd), metrics(bfd)
    assert found[""]["text"].endswith("gives the sessions to the dataplane"), found
    assert found["access"]["text"] == "programs of this namespace can connect to bfdd"
    rows = bfd.router.control.ask("bfd")
    n, downs_before = len(rows), sum(row["downs"] for row in rows)
    assert found["sessions"]["text"] == str(n) and "served" not in found, found
    assert before["fpmdp_bfd_connected"] == 1 and before["fpmdp_bfd_connections"] >= 1
    assert sum(v for k, v in before.items() if k.startswith("fpmdp_bfd_sessions{")) == n
    assert before["fpmdp_bfd_sessions_not_served"] == 0
    # Add a peer that is in no connected subnet. A default route leads to it by another router.
    default = f"ip route 0.0.0.0/0 {bfd.router.wires['wan'].peer4}"
    bfd.ours.configure(default)
    bfd.ours.configure("bfd", "peer 10.9.9.9")
    eventually(lambda: "served" in examined(bfd), 20, what="a session is not served")
    said = examined(bfd)["served"]
    assert said["text"] == "1 session is not served", said
    assert "10.9.9.9: no connected subnet has the peer" in said["cost"], said
    eventually(lambda: metrics(bfd)["fpmdp_bfd_sessions_not_served"] == 1, 5, what="it is counted")
    bfd.ours.configure("bfd", "no peer 10.9.9.9")
    bfd.ours.configure(f"no {default}")
    eventually(lambda: "served" not in examined(bfd), 20, what="all are served")
    # Let a peer fail. On a busy machine its session may fail once more while it comes up.
    mine = bfd.row()["downs"]
    bfd.theirs.kill("bfdd", signal.SIGSTOP)
    eventually(lambda: bfd.state() == "down", 20, what="the session fails")
    bfd.theirs.kill("bfdd", signal.SIGCONT)
    bfd.up()
    fell = lambda: sum(row["downs"] for row in bfd.router.control.ask("bfd")) - downs_before  # noqa: E731
    assert fell() >= 1
    rises = lambda name: metrics(bfd)[name] - before[name]  # noqa: E731
    eventually(lambda: rises("fpmdp_bfd_downs_total") == fell(), 5, what="the metric of downs")
    # Each Down of a session by a port prunes its next hop once.
    eventually(
        lambda: rises("fpmdp_bfd_prunes_total") == bfd.row()["downs"] - mine,
        5,
        what="the metric of prunes",
    )


VTYSH = """#!/bin/sh
case "$2" in
"show bfd peers brief") echo "Session count: {sessions}" ;;
"show modules") echo "Module Name  Version  Description"; echo "zebra {version} zebra daemon" ;;
*) exit 1 ;;
esac
"""


def test_doctor_compares_the_sessions_of_both_sides(bfd, tmp_path):
    """doctor compares the daemon's number of sessions with that of a vtysh that reports another
    number, and of a vtysh of another version of FRR."""
    bfd.up()
    n = len(bfd.router.control.ask("bfd"))

    def said(sessions, version="8.4.4"):
        script = tmp_path / "vtysh"
        script.write_text(VTYSH.format(sessions=sessions, version=version))
        return examined(bfd, f"sh {script}")

    for sessions in (n - 1, n + 1, 0):
        found = said(sessions)["sessions"]
        assert found["status"] == "warn", found
        assert found["text"] == f"bfdd has {sessions}, the dataplane has {n}", found
        assert ("no longer has" in found["cost"]) == (sessions < n), found
        assert found["fix"], found
    found = said(n)
    assert (found["sessions"]["status"], found["sessions"]["text"]) == ("ok", str(n))
    assert "frr" not in found, "one burst of bfdd holds all of them"
    found = examined(bfd, "false")["sessions"]
    assert found["status"] == "ok" and found["text"].endswith("bfdd does not report its number of sessions")
    # A bfdd that has more sessions than fit into one burst.
    open_now = bfd.router.control.ask("version")[0]["bfd_connections"]
    text = f"FRR 10.7.1 announces at most 58 sessions per connection; {open_now} connections are open"
    assert said(59, "10.7.1")["frr"]["text"] == text
    assert "frr" not in said(58, "10.7.1") and "frr" not in said(59, "10.8")


def test_doctor_warns_of_a_session_whose_interface_does_not_exist(bfd):
    bfd.up()
    n = len(bfd.router.control.ask("bfd"))
    bfd.ours.configure("bfd", "peer 192.0.2.99 interface nodev")
    found = examined(bfd)["sessions"]
    assert found["status"] == "warn", found
    assert found["text"] == f"bfdd has {n + 1}, the dataplane has {n}", found
    bfd.ours.configure("bfd", "no peer 192.0.2.99 interface nodev")
    eventually(lambda: examined(bfd)["sessions"]["status"] == "ok", 20, what="both have the same")


def test_doctor_warns_of_a_bfdd_to_which_other_hosts_may_connect(bfd):
    bfd.up()
    bfd.ours.vtysh("write memory")
    was = bfd.ours.options["bfdd_options"]
    bfd.ours.options["bfdd_options"] = was.replace("ipv4:127.0.0.1", "ipv4:0.0.0.0")
    try:
        bfd.ours.restart("bfdd")
        eventually(lambda: "access" in (examined(bfd)), 20, what="bfdd is connected")
        found = examined(bfd)["access"]
        assert found["status"] == "warn", found
        assert found["text"] == f"other hosts may connect to bfdd at 0.0.0.0:{PORT}", found
        assert "no password" in found["cost"] and found["fix"], found
    finally:
        bfd.ours.options["bfdd_options"] = was
        bfd.ours.restart("bfdd")
    eventually(
        lambda: examined(bfd).get("access", {}).get("status") == "ok", 20, what="bfdd listens as before"
    )
    eventually(lambda: examined(bfd)["sessions"]["status"] == "ok", 20, what="it has its sessions")
    bfd.up()


def test_the_api_tells_the_sessions(bfd):
    bfd.up()
    router = bfd.router
    status, rows = api.call(router, "GET", "/bfd")
    assert status == 200
    keys = ("peer", "local", "dev", "state", "by", "discr", "lid", "downs")
    told = lambda some: [[row[key] for key in keys] for row in some]  # noqa: E731
    assert told(rows) == told(router.control.ask("bfd")) and rows
    wan = router.wires["wan"].peer4
    status, one = api.call(router, "GET", "/bfd/{name}", wan)
    assert status == 200 and told(one) == told([bfd.row()])
    status, error = api.call(router, "GET", "/bfd/{name}", "192.0.2.250")
    assert status == 404 and error["error"], error
    words = ["--json", "show", "bfd", wan]
    assert told(json.loads(router.fpmctl(*words).stdout)) == told(one)


def test_thread_bfd_runs_before_busy_programs(bfd):
    """Thread bfd has the lowest real-time priority if the limit permits that, or if root may raise
    the limit or needs no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    with open("/proc/self/status", encoding="ascii") as file:
        caps = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    if soft == 0 and not caps & (SYS_RESOURCE | SYS_NICE):
        pytest.skip("no CAP_SYS_RESOURCE, no CAP_SYS_NICE, and RLIMIT_RTPRIO is 0")
    pid = bfd.router.daemon.pid()
    (tid,) = threads(pid, "fdp-bfd")
    assert_dropped(pid, 0 if soft else SYS_NICE)
    assert (os.sched_getscheduler(tid), os.sched_getparam(tid).sched_priority) == (os.SCHED_RR, 1)


def threads(pid, name):
    """Return the numbers of the threads of a process whose names begin with `name`."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as file:
            if file.read().startswith(name):
                found.append(int(tid))
    return found


@contextlib.contextmanager
def without_cpu_time(pid, tids):
    """Let busy programs run on the CPUs of these threads, with 6,000 times the weight of the threads.
    The kernel weighs processes by their nice values, and also weighs sessions (sched(7))."""
    cpus = set().union(*map(os.sched_getaffinity, tids))
    hogs = [
        subprocess.Popen([sys.executable, "-c", "while 1: pass"], start_new_session=True) for _ in cpus
    ]
    try:
        for hog, cpu in zip(hogs, cpus):
            os.sched_setaffinity(hog.pid, {cpu})
            machine.prefer([hog.pid], -20)
        machine.prefer_session(pid, 19)
        for tid in tids:
            os.setpriority(os.PRIO_PROCESS, tid, 19)
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        machine.prefer([pid])


def test_a_forwarder_without_cpu_time_is_lent_the_priority_of_thread_bfd(bfd):
    """A forwarder without CPU time runs with the priority of thread bfd. Without this priority it would
    send nothing for more than the detection time of 3 x 50 ms, again and again. The test judges the
    median, because other programs may stop the whole machine once."""
    bfd.up()
    agree(bfd, 50)
    machine.real_time(bfd.theirs.pid("bfdd"), "bfdd")  # this bfdd stands for another machine
    pid, wan = bfd.router.daemon.pid(), bfd.router.wires["wan"]
    tids = threads(pid, "fwd-")
    lent = metrics(bfd)["fpmdp_bfd_lends_total"]
    with sniffed(bfd) as wire, without_cpu_time(pid, tids):
        first = len(wire.of(wan.ip4, wan.peer4))
        eventually(
            lambda: len(wire.of(wan.ip4, wan.peer4)) >= first + 60, 20, what="packets are sent"
        )
        times = [p.when for p in wire.of(wan.ip4, wan.peer4)[first:]]
    assert median(b - a for a, b in zip(times, times[1:])) < 0.060
    assert metrics(bfd)["fpmdp_bfd_lends_total"] > lent
    eventually(
        lambda: {os.sched_getscheduler(tid) for tid in tids} == {os.SCHED_OTHER},
        10,
        what="the priority is given back",
    )
