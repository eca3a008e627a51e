# SPDX-License-Identifier: BSD-3-Clause
"""Chaos judges windows, paths, leaks, descriptors and the log correctly. No router runs here."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from types import SimpleNamespace

import pytest

from chaos import run as chaos
from chaos.fast import PEERS, FastSessions
from chaos.faults import FAULTS, Happening, Run
from chaos.oracle import FALLBACK, GONE, LAG_S, VX, Cell, Oracle
from chaos.report import Verdict
from chaos.segments import BRIDGE_MAC, NEXT, OWN_VTEP, TO_MAIN, behind
from chaos.traffic import HOPS, frame_head, unwrapped, without_labels
from lib import machine, procs
from lib.audited import not_as_zebra_shows, only_copies_differ
from lib.dataplane import ROOT
from lib.wait import eventually
from test_chaos import RUNS, WORDS, environment


def test_every_fault_has_its_turn_here():
    """Each fault is part of a run in these tests."""
    assert set(" ".join(run["ONLY"] for run in RUNS.values()).split()) == set(FAULTS)


@pytest.mark.parametrize("name", WORDS)
def test_what_is_no_number_and_no_fault_is_told(name):
    """A bad number or an unknown fault gives one sentence and exit code 2. Nothing is built."""
    argv = [sys.executable, os.path.join(ROOT, "tests", "chaos", "run.py")]

    done = subprocess.run(
        argv, env=environment(**{name: "x"}), capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("chaos: ") and done.stderr.count("\n") == 1


def test_a_window_excuses_what_crosses_its_link():
    """The loss of core0 excuses the loss of packets that may leave by core0. It excuses no packet
    to the lan, and none whose path was wan all the time."""
    cells = [Cell("isp", "a", "192.0.2.9"), Cell("core", "b", "192.0.2.8"),
             Cell("lan", "", "192.0.2.7", "isp")]  # fmt: skip
    oracle = Oracle(cells)
    flap = Happening("link core0")
    flap.may_lose(3, ("core0",))
    end = time.monotonic() + 1
    lost = [(end, 0), (end, 1), (end, 2), (end, 1)]
    traffic = SimpleNamespace(lost=lambda: lost, sent_between=lambda *_: 9, rate=1, wrong=[],
                              mangled=[], twice=[])  # fmt: skip
    run = SimpleNamespace(happenings=[flap], oracle=oracle, begin=flap.begin)

    verdict = Verdict(run, traffic)

    assert len(flap.lost) == 2 and len(verdict.errors) == 1
    assert "2 packets lost outside every window" in verdict.errors[0]
    oracle.change(up={"wan": False})
    assert flap.excuses(oracle, end, cells[0]), "packets of cells[0] leave by core0 from now on"


def test_what_a_stalled_router_had_not_forwarded_is_lost_by_its_death():
    """The router gets no CPU for 90 ms and is then killed. The packets that were sent in this time
    are lost with it. The loss of a packet that was sent before has no excuse, nor has a loss after
    which a newer packet arrived."""
    oracle = Oracle([Cell("isp", "a", "192.0.2.9")])
    death = Happening("dies")
    death.may_lose(3)
    lost = [(death.begin - 0.2, 0), (death.begin - 0.09, 0)]

    def outside(newest):
        traffic = SimpleNamespace(lost=lambda: lost, sent_between=lambda *_: 9, rate=1, wrong=[],
                                  none_newer_came=lambda at: at - newest, mangled=[],
                                  twice=[])  # fmt: skip
        run = SimpleNamespace(happenings=[death], oracle=oracle, begin=death.begin)
        return re.findall(r"\d+ packets lost outside", "".join(Verdict(run, traffic).errors))

    assert outside(0.09) == ["1 packets lost outside"]
    assert outside(0.08) == ["2 packets lost outside"]
    lost = [(death.begin - 0.6, 0), (death.begin - 0.4, 0)]
    assert outside(9) == ["1 packets lost outside"], "the machine does not stand still for 0.6 s"


def test_a_fast_session_that_goes_down_outside_a_window_is_lost():
    """A session of BFD may go down in a fault that allows it, and a while after that. A new session
    with the same peer counts from zero."""
    rows = {peer: {"peer": peer, "discr": 7, "downs": 1} for peer in PEERS[:2]}
    one, other = rows.values()
    bed = SimpleNamespace(ns={"lan": "lan"}, path=str, dp=SimpleNamespace(show=lambda _: rows.values()))
    fast = FastSessions(bed)
    fast.chaos = SimpleNamespace(begin=0.0)
    fast.look()
    with fast.window():
        one["downs"] = 2
        fast.look()
    other.update(discr=8, downs=3)
    fast.look()
    assert fast.lost == []
    fast.windows[0][:] = [0.0, time.monotonic() - 60]
    other["downs"] = 4
    fast.look()
    assert [peer for _, _, peer in fast.lost] == [PEERS[1]]


def test_a_prefix_that_returns_may_take_the_fallback_of_now():
    """The session is back, but not each route. A prefix that still leaves by core0 moves to core1
    if core0 goes down. It leaves by core1 for no other reason."""
    cell = Cell("isp", "a", "192.0.2.9")
    oracle = Oracle([cell])
    oracle.change(session=False)
    oracle.change(session=True)
    allowed = lambda: oracle.allowed(cell, time.monotonic(), time.monotonic())  # noqa: E731

    assert allowed() == {"wan", "core0"}
    oracle.change(up={"core1": False})
    oracle.change(up={"core1": True})
    assert allowed() == {"wan", "core0"}
    oracle.change(up={"core0": False})
    assert allowed() == {"wan", "core0", "core1"}


def test_zebra_is_not_believed_what_bgpd_is_about_to_withdraw(monkeypatch):
    """isp is back, and bgpd still has to withdraw a million routes of the lost session. The oracle
    does not accept zebra's path by wan as the new path, however often it sees this path. It accepts
    core's paths, and the path of a prefix that isp has withdrawn."""
    monkeypatch.setattr("chaos.oracle.LAG_S", -1)
    cells = [Cell("isp", "a", "192.0.2.9"), Cell("core", "b", "192.0.2.8"),
             Cell("isp", "c", "192.0.2.7")]  # fmt: skip
    oracle = Oracle(cells)
    oracle.change(session=False)
    oracle.change(session=True, withdraw=["c"])
    oracle.change(up={"core1": False})
    view = {"a": frozenset({"wan"}), "b": frozenset({"core0"}), "c": frozenset({"core0"})}

    oracle.agree(view, time.monotonic())  # bgpd has not noticed yet
    for _ in range(2):
        now = time.monotonic()
        oracle.no_session()
        oracle.agree(view, now)
    assert oracle.unsettled() == cells[:1]
    oracle.agree(view, time.monotonic())
    assert oracle.unsettled() == cells[:1], "seen once since there is a session"
    oracle.agree(view, time.monotonic())
    assert not oracle.unsettled()


def test_a_label_is_right_while_its_announcement_is():
    """A packet with the labels of the previous announcement is right until the new announcement
    has settled, and wrong afterwards. A packet may vanish if it has no route, or if its link is
    down, but not if its route was there all the time."""
    lsp, pushed, plain = Cell("lsp", "", "192.0.2.9"), Cell("pushed", "a", "192.0.2.8"), Cell("isp", "b", "::1")
    lsp.hops, pushed.hops = (("core0", (200, 201)),), (("wan", ()), ("core0", (300,)))
    oracle = Oracle([lsp, pushed, plain])
    now = time.monotonic
    allowed = lambda cell: oracle.allowed(cell, now(), now())  # noqa: E731

    assert (allowed(lsp), allowed(pushed)) == ({"core0 200 201"}, {"wan", "core0 300"})
    oracle.change(hops={lsp: (("core1", (202,)),)})
    assert allowed(lsp) == {"core0 200 201", "core1 202"}
    settle(oracle)
    assert allowed(lsp) == {"core1 202"} and not oracle.may_vanish(lsp, now())

    oracle.change(up={"core0": False})
    settle(oracle)
    assert (allowed(lsp), allowed(pushed)) == ({"core1 202"}, {"wan"})
    oracle.change(hops={lsp: (), pushed: ()})
    assert oracle.may_vanish(lsp, now()) and not oracle.may_vanish(pushed, now())
    settle(oracle)
    assert (allowed(lsp), allowed(pushed)) == ({""}, {"core1"})
    assert not oracle.may_vanish(plain, now())


def test_a_link_that_is_about_to_go_down_takes_packets_of_a_new_announcement():
    """The oracle counts a link as down before it is taken down. A route that is announced meanwhile
    sends packets there. When the announcement has settled, the link takes none."""
    lsp = Cell("lsp", "", "192.0.2.9")
    lsp.hops = (("core1", (200,)),)
    oracle = Oracle([lsp])
    allowed = lambda: oracle.allowed(lsp, time.monotonic(), time.monotonic())  # noqa: E731

    oracle.change(up={"core0": False})
    oracle.change(hops={lsp: (("core0", ()),)})

    assert allowed() == {"core1 200", "core0", ""}
    settle(oracle)
    assert allowed() == {""}


def settle(oracle):
    """Let zebra be seen with all its fallbacks by core1 for longer than the lag."""
    view = {FALLBACK[4]: frozenset({"core1"}), "b": frozenset({"wan"})}
    for cell in oracle.unsettled():
        cell.changed_at -= LAG_S
    oracle.agree(view, time.monotonic())
    for cell in oracle.unsettled():
        cell.agreed_at -= LAG_S
        cell.changed_at -= LAG_S
    oracle.agree(view, time.monotonic())


def test_the_labels_of_a_frame_are_read():
    """The judge separates the labels of a frame from the packet, and says when one has a TTL that
    no label should have."""
    macs, number = ("02:00:00:00:00:01", "02:00:00:00:00:02"), bytes(8)
    for host, source in (("192.0.2.9", "192.0.2.1"), ("2001:db8::9", "2001:db8::1")):
        plain = frame_head(*macs, source, host, 3) + number
        labelled = frame_head(*macs, source, host, 3, 77) + number
        assert without_labels(labelled) == ([77], {HOPS}, plain)
        assert without_labels(plain) == ([], set(), plain)
    entries = bytes.fromhex("000c803f000c913e")
    frame = labelled[:14] + entries + labelled[18:]
    assert without_labels(frame) == ([200, 201], {63, 62}, plain)


def test_outer_headers_are_judged_and_removed():
    """The judge reads the segments to come, the VTEP and the router MAC from the outer headers of a packet.
    A wrong length, checksum or VNI changes the name of the path."""
    macs, number = ("02:00:00:00:00:01", "02:00:00:00:00:02"), bytes(8)
    for host, source in (("192.0.2.9", "192.0.2.1"), ("2001:db8::9", "2001:db8::1")):
        plain = frame_head(*macs, source, host, 3)
        bare = behind(TO_MAIN, plain, 3) + number
        assert unwrapped(bare) == ([TO_MAIN], {HOPS}, plain + number, None)
        two = behind("2001:db8:e000:2::1", plain, 3) + number
        assert unwrapped(two) == (["2001:db8:e000:2::1", NEXT, "/2"], {HOPS}, plain + number, None)
        assert unwrapped(two + b"x")[0][-1] == "of a wrong length"
        vxlan = behind(VX, plain, 3) + number
        words, ttls, inside, mac = unwrapped(vxlan)
        assert (words, ttls, inside) == ([VX, OWN_VTEP], {HOPS}, plain + number)
        assert mac.hex(":") == BRIDGE_MAC
        assert unwrapped(vxlan[:24] + b"xx" + vxlan[26:])[0][-1] == "with a wrong header"
        assert unwrapped(vxlan[:46] + b"xxx" + vxlan[49:])[0][-1] == "of another VNI"
        assert unwrapped(plain + number) == ([], set(), plain + number, None)


def test_a_withdrawn_bridge_takes_its_routes_along():
    """Without the bridge over the VXLAN a packet into it, or out of it, is dropped. The neighbor of an
    end point is reached by the default route while its link is down."""
    into, out, sid = Cell("pushed", "a", "192.0.2.9"), Cell("isp", "b", "192.0.2.8"), Cell("sid", "", "192.0.2.7")
    into.hops, out.entry = (("wan", (VX, "10.0.0.1")),), VX
    sid.entry, sid.hops = TO_MAIN, (("core0", ()),)
    oracle = Oracle([into, out, sid])
    right = lambda: [set(oracle.expected(cell)) for cell in (into, out, sid)]  # noqa: E731

    assert right() == [{f"wan {VX} 10.0.0.1"}, {"wan"}, {"core0"}]
    oracle.change(up={VX: False, "core0": False})
    assert right() == [{GONE}, {GONE}, {"core1"}]


def test_what_a_soak_calls_a_leak():
    """For a daemon that runs on, only the growth after the first minutes counts: 8 MiB are allowed.
    For a daemon that was restarted since, more is allowed because of its replay, and still more
    with many routes."""
    mib = 1 << 20
    flat = [(7, 0, 100 * mib), (7, 250, 290 * mib), (7, 310, 300 * mib), (7, 370, 299 * mib)]

    assert chaos.growth(flat, (7, 3600, 309 * mib), 2400) == (9 * mib, 8 * mib)
    assert chaos.growth(flat, (8, 40, 140 * mib), 24000) == (40 * mib, 24 * mib)
    assert chaos.growth(flat, (8, 40, 140 * mib), 240000) == (40 * mib, 48 * mib)
    assert chaos.growth(flat[:2], (7, 290, 140 * mib), 2400) == (40 * mib, 24 * mib)


def test_what_chaos_calls_a_descriptor_left_open():
    """A descriptor is left open if a daemon, or its successor, has more of a kind than a fresh
    daemon at rest. Chaos reports the kind. It counts the supervisor's descriptors too, and those of
    no other process."""
    fifo = ("fpm-dataplane", "pipe")
    before = Counter({fifo: 2, ("fpm-dataplane", "socket"): 9, ("fpm-supervise", "socket"): 3})

    assert chaos.left_open(before, before - Counter([fifo])) == ""
    left = before + Counter([fifo, ("fpm-supervise", "socket"), ("fpm-dataplane", "/dev/net/tun")])
    assert chaos.left_open(before, left - Counter([("fpm-dataplane", "socket")])) == (
        "fpm-dataplane /dev/net/tun 0 -> 1; fpm-dataplane pipe 2 -> 3; fpm-supervise socket 3 -> 4"
    )


def test_chaos_sees_what_the_dataplane_has_open(tmp_path):
    """Chaos counts the open descriptors of the dataplane by kind, without their numbers."""
    shutil.copy("/bin/sleep", tmp_path / "fpm-dataplane")
    ends = [end for _ in range(2) for end in os.pipe()]
    env = {**os.environ, procs.MARK: str(tmp_path)}
    with subprocess.Popen([tmp_path / "fpm-dataplane", "60"], env=env, pass_fds=ends,
                          stdin=subprocess.DEVNULL) as program:  # fmt: skip
        try:
            eventually(lambda: procs.marked(str(tmp_path)) == [program.pid], 5)
            seen = eventually(lambda: chaos.descriptors(str(tmp_path)), 5)
        finally:
            program.kill()
            for end in ends:
                os.close(end)

    assert seen["fpm-dataplane", "pipe"] >= 4 and seen["fpm-dataplane", "/dev/null"] >= 1
    assert {name for name, _ in seen} == {"fpm-dataplane"}


def test_what_chaos_counts_of_the_log(tmp_path):
    """Chaos counts the log lines of one kind about one object in one second, whatever numbers they
    contain. The limit is lower for rate-limited lines."""
    head = "2026-01-01T10:00:0{}.{:03d}Z W "
    bed = SimpleNamespace(dp=SimpleNamespace(log_file=str(tmp_path / "log")))
    with open(bed.dp.log_file, "w", encoding="utf-8") as file:
        for n in range(8):
            file.write(head.format(0, n) + f"neigh: carrier up port=lan{n}\n")
            file.write(head.format(n, n) + "rib: table is full table=groups missed=7\n")
        for n in range(5):
            file.write(head.format(9, n) + f"fpm: session up peer=127.0.0.1:{n} missed=0\n")
            file.write(head.format(9, n) + f"neigh: mtu changed port=wan0 mtu={n}\n")

    rows = chaos.log_rates(bed)

    assert rows[:2] == [(5, "neigh: mtu changed wan0", 8), (5, "fpm: session up", 3)]
    assert {n for n, _, _ in rows[2:]} == {1} and len(rows) == 2 + 16


def test_a_session_lost_while_others_have_the_cpus_is_no_fault():
    """The loss of a session is excused if one of our threads waited for a CPU in the second before
    and other programs ran. One of these two facts alone, or both long before the loss, excuse
    nothing."""
    watch = machine.Watch(list)
    run = SimpleNamespace(machine=watch, begin=0, taken=[], lost_sessions=[])
    lost = lambda: Run.lost(run, "daemon_dies", ["bfd"], 100.0)  # noqa: E731

    watch.rows = [(90.0, 0.9, 0.9), (100.0, 0.3, 0.9), (101.0, 0.9, 0.05)]
    lost()
    assert (run.lost_sessions, run.taken) == (["daemon_dies: bfd"], [])
    watch.rows.append((101.5, 0.5, 0.5))
    lost()
    assert run.taken == ["daemon_dies: bfd"] and len(run.lost_sessions) == 1


def test_the_machine_is_shared_out_as_it_was():
    """Share counts a busy loop outside the processes under test as another program, and a busy loop
    among them as our own."""
    with subprocess.Popen([sys.executable, "-c", "while 1: pass"]) as loop:
        try:
            ours, strangers = machine.Share(lambda: [loop.pid]), machine.Share(list)
            eventually(lambda: machine._ran(loop.pid, loop.pid)[0] > 1, 60, what="1 s of CPU of the loop")
            share = 1 / ((time.monotonic() - ours.begin) * os.cpu_count())
            assert strangers.others() > ours.others() + share / 2
            assert any(tid == str(loop.pid) for _, tid, _ in ours.waits())
        finally:
            loop.kill()


@pytest.mark.parametrize(
    "copies, zebras, kernels, fib, links, is_so",
    [
        (3, "0 differ", "3 differ", "0 differ", "0 settings differ", True),
        (1, "0 differ", "1 differs", "0 differ", "0 settings differ", True),
        (3, "0 differ", "3 differ", "0 differ", "1 setting differs", False),
        (2, "0 differ", "3 differ", "0 differ", "0 settings differ", False),
        (3, "1 differs", "3 differ", "0 differ", "0 settings differ", False),
        (3, "0 differ", "3 differ", "1 differs", "0 settings differ", False),
        (None, "0 differ", "3 differ", "0 differ", "0 settings differ", False),
        (None, "0 differ", "0 differ", "0 differ", "0 settings differ", False),
    ],
)
def test_only_copies_differ_if_nothing_else_does(copies, zebras, kernels, fib, links, is_so):
    """The judge forgives an audit that found differences in zebra's copies in the kernel alone."""
    lines = ["zebra   9 routes", "kernel  9 prefixes", f"links   4 interfaces compared with the kernel's: {links}"]
    if copies:
        lines.append(f"copies  {copies} routes in the kernel differ from zebra's, which the ...")
    lines.append(f"RIB     9 routes compared with zebra's: {zebras}; 9 prefixes compared with the kernel's: {kernels}")
    lines.append(f"FIB     9 prefixes, 45 lookups, 2 groups of next hops: {fib}")

    assert only_copies_differ("\n".join([*lines, "NOT equal. (0.1 s)"])) is is_so


def test_differences_of_copies_are_not_those_between_zebra_and_the_dataplane():
    """After the loss of a link, next hops can be missing in zebra's messages, and in its copies in the
    kernel. The judge returns only the prefixes whose messages differ."""
    both = "via fe80::1 dev core0 weight 1; via fe80::2 dev core1 weight 1"
    said = [
        "DIFFERS 192.0.2.130/32: zebra has via 198.51.100.2 dev core0 weight 1; via 198.51.100.6 dev core1 "
        "weight 1, the dataplane has via 198.51.100.2 dev core0 weight 1",
        "DIFFERS 2001:db8:c0::/48: zebra's copy in the kernel has via fe80::1 dev core0 weight 1, zebra and "
        f"the dataplane have {both}",
        "zebra   2651 routes",
    ]

    assert not_as_zebra_shows("\n".join(said)) == ["192.0.2.130/32"]
