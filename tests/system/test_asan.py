# SPDX-License-Identifier: BSD-3-Clause
"""The same daemon built with AddressSanitizer and UBSan lives through nonsense and churn,
then stops: no report, no leak, exit code 0. So it does through what other tests do to it."""

import os
import re
import subprocess
import sys

import pytest

from lib import built, nonsense
from lib.dataplane import ROOT
from lib.wait import eventually
from watching import Watching

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


# Tests whose daemons go ways that those of this file do not: started anew by a checkpoint or by
# a predecessor, ports and TAPs that come, go and move, netlink that overruns, queues on other
# cores, reload, HTTP, VRFs as zebra tells them, tables that are full, sessions held and swept.
ELSEWHERE = {
    "restart": "transit_is_back_before_zebra_is a_planned_restart_takes_no_carrier_and_is_no_crash "
    "a_tap_deleted_meanwhile_is_made_anew",
    "succession": "a_successor_that_fails_changes_nothing "
    "a_successor_that_crashes_when_it_has_nearly_got_ready_changes_nothing",
    "ports_live": "a_port_goes_and_comes_and_no_other_loses_a_packet "
    "a_device_that_was_deleted_is_had_again_by_a_new_port a_port_that_is_lost_is_had_again "
    "another_device_behind_the_same_tap reload_adds_and_removes_ports "
    "traffic_into_a_port_that_goes_leaves_nothing_behind "
    "a_port_that_came_later_is_kept_over_a_crash",
    "kernel_side": "a_tap_moved_to_another_namespace_is_made_anew "
    "mtu_and_mac_change_under_load taps_deleted_ten_times_under_load",
    "resources": "an_overrun_of_netlink_is_said_and_leaves_no_wrong_neighbour "
    "more_gateways_than_adjacencies",
    "config_live": "reload_applies_what_needs_no_restart reload_is_refused_as_a_whole",
    "cores": "queues_move_to_other_cores_and_no_packet_is_lost",
    "api": "changes_are_as_specified packets_are_as_specified a_long_list_is_streamed",
    "audit": "each_vrf_is_compared_and_differences_are_told_by_name "
    "a_broken_fib_is_found_and_repaired",
    "fpm_session": "what_a_zebra_that_is_ended_withdraws_is_not_heard "
    "a_zebra_without_routes_sweeps_them_all",
}


@pytest.fixture
def sanitized(monkeypatch, tmp_path):
    """Programs with sanitizers write what they find to files; returns what reads them all."""
    log = str(tmp_path / "asan")
    for name, value in built.reporting_to(log).items():
        monkeypatch.setenv(name, value)
    if not os.access(os.path.join(ROOT, "build/asan/fpm-dataplane"), os.X_OK):
        pytest.skip("build/asan/fpm-dataplane is not built: make BUILD=asan all")
    return built.Reports(log).new


@pytest.fixture
def watched(own_dut, sanitized):
    """A daemon with sanitizers and a route of each family; reports() is what they wrote."""
    router = own_dut(build="asan")
    router.reports = sanitized
    router.start()
    wan = router.wires["wan"]
    router.route(NET, via=wan.peer4, wire=wan)
    router.route(NET6, via=wan.peer6, wire=wan)
    return router


def ends_clean(dut):
    """Stop it, if it lives: exit code 0, and the sanitizers wrote nothing."""
    code = dut.stop(timeout=30) if dut.alive() else dut.daemon.process.poll()
    assert dut.reports() == ""
    assert code == 0, dut.log()


def test_no_sanitizer_report_after_nonsense_and_churn(watched, rng):
    """Random frames on every port, damaged FPM, reconnects, churn, neighbours that come
    and go, links that flap, every show; then SIGTERM."""
    dut = watched
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.zebra.group(list(dut.zebra.nexthops))

    for wire in dut.wires.values():
        for n, data in enumerate(nonsense.frames(rng, wire, 1500)):
            wire.send(data)
            if n % 100 == 99:
                dut.fence(wire)
    for _ in range(10):
        nonsense.fpm_session(dut, rng, 8000)
        dut.zebra.close()
        dut.zebra.connect()
    for n in range(60):
        dut.ip(f"neigh replace 192.0.2.{100 + n % 20} lladdr {wan.mac} dev wan0")
        lan.send(lan.probe(f"192.0.2.{100 + n}"))
        if n % 20 == 0:
            dut.ip("link set wan0 down", "link set wan0 up", "link set wan0 mtu 1400")
            dut.ip("addr add 203.0.113.1/28 dev wan0", "addr del 203.0.113.1/28 dev wan0")
    for _ in range(3):
        dut.zebra.speaker.routes("2001:db8:e000::/64", 3000, 77)
        dut.zebra.hop(wan.peer6, wan, nhid=77)
        dut.zebra.speaker.routes_del("2001:db8:e000::/64", 3000)
    for show in ("routes", "nexthops", "neighbors", "ports", "counters", "fpm", "memory"):
        dut.control.ask(show)
    eventually(lambda: not dut.alive() or dut.fpm()["queue_bytes"] == 0, 20)

    ends_clean(dut)


def test_no_sanitizer_report_on_forwarding_and_errors(watched):
    """Every slow path once: ICMP errors, fragments, waiting packets; then SIGTERM."""
    dut = watched
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.ip("link set wan0 mtu 1300")
    wan.answer("192.0.2.99")
    for dst in (HOST, HOST6, "203.0.113.1", "2001:db8:ffff::1", "192.0.2.99", "192.0.2.98"):
        for size in (60, 1300, 1301, 1500):
            lan.send(lan.probe(dst, size=size))
            hop = {"hlim": 1} if ":" in dst else {"ttl": 1}
            lan.send(lan.probe(dst, size=size, **hop))
    dut.fence(lan)
    dut.forwarded(lan, lan.probe("192.0.2.99"), wan, timeout=5)

    ends_clean(dut)


def test_no_sanitizer_report_while_packets_are_looked_at(watched, rng):
    """Nonsense on every port under traces and captures whose clients read, do not read, and
    go away; explained nonsense; the end comes while they run."""
    dut = watched
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    silent = [Watching(dut, trace={}), Watching(dut, capture={"snap": 64})]

    for wire in (lan, wan):
        for n, data in enumerate(nonsense.frames(rng, wire, 600)):
            want = {"port": wire.tap, "frame": data[:1900].hex(), "frame_bytes": len(data)}
            (row,) = dut.control.request({"explain": want})
            assert row["verdict"] in ("forwarded", "punted", "dropped")
            wire.send(data)
            if n % 50 == 49:
                dut.fence(wire)
                with Watching(dut, capture={"points": ["drop"]}):
                    wire.send(data)
                Watching(dut, trace={"dst": NET, "count": 1}).close()

    ends_clean(dut)
    for watch in silent:
        watch.close()


def test_no_sanitizer_report_in_what_other_tests_do(possible, sanitized):
    """Those of ELSEWHERE once more, with this daemon, its fpmctl and its supervisor: they hold,
    none is skipped, nothing is reported (conftest.py), and every daemon that is asked to end
    does, without a leak. All tests so: `make system-asan`."""
    if os.environ.get("BUILD") == "asan":
        pytest.skip("all are run so")
    tests = [
        f"{ROOT}/tests/system/test_{file}.py::test_{name}"
        for file, names in ELSEWHERE.items()
        for name in names.split()
    ]
    argv = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    argv += ["--durations=5", *tests]
    env = {**os.environ, "BUILD": "asan", "FDP_ENDS_WELL": "1", "FDP_PATIENCE": "4"}

    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=900, cwd=ROOT, check=False
    )

    print(done.stdout[-3000:])
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed in", done.stdout)
    assert passed and int(passed[1]) >= len(tests), "some were skipped"
