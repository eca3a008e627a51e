#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""System tests, as many files at a time as there are cores: for builds that are slow anyway. Most
of a test is waiting. The last line says how many passed.

    abreast.py NAME [WORDS]    NAME: of the make target; WORDS choose tests, as pytest's -k does
"""

import collections
import glob
import os
import shutil
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import beside  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NO_TESTS = 5  # pytest: nothing was left to run
LIMIT_S = 1500  # of a job, of several files twice that; none is meant to need that long
# What these do to the machine (the table of neighbours and the ICMP sockets that all namespaces
# share) any other would feel, or they judge tenths of a second: nothing runs beside them.
ALONE = ("flood", "neigh", "neigh_life", "lab", "frr", "fpmctl", "idle", "ecmp", "ecmp_many", "hang")
# Each other's hugepages these would feel.
TOGETHER = ("resources", "succession")
LONGEST = ("scenarios", "machine", "ports_live", "restart", "supervise", "robust")
# As a reader has them are its programs those of the release build, whatever is asked for.
NOT_HERE = ("docs",)
# Tests whose daemons go ways that others do not: started anew by a checkpoint or by a predecessor,
# ports and TAPs that come, go and move, netlink that overruns, queues on other cores, reload, HTTP,
# VRFs as zebra tells them, tables that are full, sessions held and swept. None may be skipped.
NEVER_SKIPPED = {
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


def files():
    """{name of a job: its files}, those first that run alone, then those that take longest."""
    found = collections.defaultdict(list)
    for path in sorted(glob.glob(f"{ROOT}/tests/system/test_*.py")):
        name = os.path.basename(path)[len("test_") : -len(".py")]
        if name not in NOT_HERE:
            found["machine" if name in TOGETHER else name].append(os.path.relpath(path, ROOT))
    order = [name for name in (*ALONE, *LONGEST) if name in found]
    return {name: found[name] for name in [*order, *found]}


def job(where, name, paths, words):
    """pytest, whose temporary files and report are in the folder `where`."""
    limit = str(LIMIT_S * min(len(paths), 2))
    argv = ["timeout", "-k", "60", limit, sys.executable, "-m", "pytest", "-q", "-rfEs"]
    argv += ["--no-header", "-p", "no:cacheprovider", f"--basetemp={where}/{name}"]
    argv += [f"--junit-xml={where}/{name}.xml", *paths]
    return beside.Job(name, [*argv, *(["-k", words] if words else [])])


def tests_of(report):
    """{(file, test): "passed", "failed" or "skipped"} of pytest's report; none: there is none."""
    try:
        cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return {}
    how = {}  # a test that failed, and whose fixtures did, too, is one
    for case in cases:
        tags = {child.tag for child in case}
        this = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        name = (case.get("classname"), case.get("name"))
        how[name] = "failed" if "failed" in (this, how.get(name)) else this
    return how


def skipped_though(how):
    """Of NEVER_SKIPPED, those that were, or are not there any more."""
    ran = {(f.rpartition("test_")[2], t.partition("[")[0]) for (f, t), h in how.items() if h != "skipped"}
    all_ = {(file, f"test_{name}") for file, names in NEVER_SKIPPED.items() for name in names.split()}
    return sorted(f"{file}: {name}" for file, name in all_ - ran)


def how_it_went(report, code, chosen):
    """Counter of "passed", "failed", "skipped"; a run without a report has failed, and one without
    tests, unless some were `chosen`."""
    if code == NO_TESTS and chosen:
        return collections.Counter()
    count = collections.Counter(tests_of(report).values())
    if (code != 0 or not count) and not count["failed"]:
        count["failed"] = 1  # pytest itself, or its time was up
    return count


def run(jobs):
    """Those that run alone, one after the other, then the others; yields each when it is done."""
    yield from beside.run([j for j in jobs if j.name in ALONE], 1, ROOT)
    others = [j for j in jobs if j.name not in ALONE]
    yield from beside.run(others, len(os.sched_getaffinity(0)), ROOT)


def main(name, words=""):
    """Returns the exit code."""
    begin, where = time.monotonic(), f"{ROOT}/build/{name}"
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    some = files()
    if words:  # few: to look into each file would take longer
        some = {"chosen": sorted(sum(some.values(), []))}
    count, wrong, how = collections.Counter(), [], {}
    for done in run([job(where, what, paths, words) for what, paths in some.items()]):
        one = how_it_went(f"{where}/{done.name}.xml", done.code, words)
        count += one
        how |= tests_of(f"{where}/{done.name}.xml")
        wrong += [done.name] if one["failed"] else []
    if count["passed"] and not words:  # there is a machine that can
        wrong += [f"{test} did not run" for test in skipped_though(how)]
    said = ", ".join(f"{count[key]} {key}" for key in ("passed", "failed", "skipped") if count[key])
    failed = f": {', '.join(wrong)}" if wrong else ""
    print(f"{name}: {said or 'no tests'} in {time.monotonic() - begin:.0f} s{failed}")
    return 1 if wrong or not said else 0


if __name__ == "__main__":
    beside.end_on_signals()
    sys.exit(main(*sys.argv[1:]))
