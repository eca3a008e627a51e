# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks compute right results from measured values. No test here runs a benchmark."""

import json
import os
import re
import socket
import struct
import sys
from xml.etree import ElementTree

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "bench"))

import bench_dpdk
import bench_fib
import bench_quick
import bench_report
import bench_tags
import command
import guard
import measured
import svg
from forward import measure, page, sweep
from forward.teacher import Teacher, nhid
from lib import cpu
from lib.fpm_speaker import frame, route_del_message, route_message


def forwarded(program, samples, table="full", traffic="v4"):
    """Return an output line of bench_forward."""
    return {
        "bench": "forward",
        "table": table,
        "traffic": traffic,
        "program": program,
        "mpps": sorted(samples)[len(samples) // 2],
        "samples": samples,
    }


def test_a_ratio_is_of_rounds_and_to_the_best_peer():
    lines = [
        forwarded("ours", [50.0, 25.0, 60.0]),
        forwarded("l3fwd-fib-4B", [30.0, 30.0, 30.0]),
        forwarded("l3fwd-fib-2B", [40.0, 20.0, 60.0]),
        forwarded("testpmd-io", [170.0, 170.0, 170.0]),
    ]

    (name, got), *more = guard.forward_ratios(lines).items()

    assert (name, more) == ("forward full v4", [])
    assert got == {"ratio": 1.25, "min": 1.0, "max": 1.25, "peer": "l3fwd-fib-2B"}


def test_lookups_are_compared_best_to_best_on_an_idle_l3():
    def row(impl, mlps, l3="idle"):
        return {"bench": "fib4", "stream": "zipf", "l3": l3, "impl": impl,
                "mlps": mlps, "min": mlps, "max": mlps}  # fmt: skip

    lines = [row("poptrie-avx2", 80), row("poptrie-avx512", 100), row("rte_fib-2B", 50),
             row("rte_lpm", 40), row("rte_fib-2B", 10, "contended")]  # fmt: skip

    assert guard.fib_ratios(lines) == {
        "fib4 zipf": {"ratio": 2.0, "min": 2.0, "max": 2.0, "peer": "rte_fib-2B"}
    }


@pytest.mark.parametrize(
    "now, accepted, fell",
    [(0.91, 1.0, False), (0.89, 1.0, True), (2.0, 1.0, False), (0.5, None, False)],
)
def test_only_a_fall_of_more_than_a_tenth_is_shown(now, accepted, fell):
    known = {} if accepted is None else {"x": accepted}

    (row,) = guard.compare({"x": guard.figure([now])}, known)

    assert row["fell"] is fell


def test_an_accepted_ratio_that_was_not_measured_counts_as_fallen():
    (row,) = guard.compare({}, {"forward full v4": 1.2})

    assert row["fell"] and row["ratio"] is None


def test_a_bucket_begins_where_the_one_before_ends():
    """The bounds of a bucket are the inverse of page_slot() in page.h."""
    ticks = [page.slot_ticks(slot) for slot in range(900)]

    assert ticks[:18] == list(range(18))
    assert all(a < b <= a * 17 / 16 for a, b in zip(ticks[16:], ticks[17:]))


def test_percentiles_of_a_histogram_count_its_entries():
    rows = [(1.0, 98), (5.0, 1), (100.0, 1)]

    assert page.percentile(rows, 0.5) == 1.0
    assert page.percentile(rows, 0.99) == 5.0
    assert page.percentile(rows, 1.0) == 100.0
    assert page.percentile([], 0.5) is None


def test_a_page_is_read_where_the_ports_write_it(tmp_path):
    """The reader finds the fields of struct page (page.h) at the offsets where ports write them.
    Two queues of port 0 and one of port 3 count, and one bucket of each histogram is filled."""
    one = page.Page(tmp_path / "page")
    one.put(page.TSC_HZ, 2_000_000_000, "Q")
    for queue, counts in (
        (0, (60, 7, 0, 0, 0, 4711)),
        (1, (40, 0, 0, 0, 0, 4712)),
        (3 * 64 + 1, (0, 0, 90, 2, 1, 0)),
    ):
        struct.pack_into("<6Q", one.mem, 64 + 64 * queue, *counts)
    histograms = 64 + 8 * 64 * 64
    struct.pack_into("<Q", one.mem, histograms + 8 * 20, 5)
    struct.pack_into("<Q", one.mem, histograms + 8 * 1024 + 8 * 16, 6)

    got = one.counts()

    assert [got[k] for k in page.QUEUE] == [100, 7, 90, 2, 1]
    assert one.tids() == {4711, 4712}
    assert one.latencies() == [(20 / 2000, 5)] and one.polls() == [(16 / 2000, 6)]
    assert one.gap_of(50) == 40 * 65536


def test_gaps_are_those_that_descriptors_cannot_bridge():
    polls = [(0.1, 1000), (30.0, 4), (2000.0, 2)]

    assert measure.gaps(polls, 30) == {"gaps": 6, "gaps_ms": 4.12, "gap_max_us": 2000.0}
    assert measure.gaps(polls, 5000) == {"gaps": 0, "gaps_ms": 0, "gap_max_us": 2000.0}


def test_changes_leave_every_answer_and_undo_themselves(tmp_path):
    """Changes move routes between two next hops of one port, and add host routes only where there
    is no host route. So each lookup gives the same port, and the changes undo themselves."""
    routes, frames = tmp_path / "routes4", tmp_path / "frames4"
    routes.write_text("198.51.100.0/24 1\n203.0.113.7/32 2\n")
    frames.write_bytes(
        b"".join(
            struct.pack("<4sHH", socket.inet_aton(address), 0, port)
            for address, port in (("198.51.100.9", 1), ("203.0.113.7", 2))
        )
    )
    teacher = Teacher(None, None, 4, {4: routes}, frames)

    changes = teacher.change_frames()

    def route(prefix, port, second=False):
        return frame(route_message(prefix, nhid=nhid(4, port, second)))

    assert sorted(changes[:3]) == sorted([
        route("198.51.100.0/24", 1, True),
        route("203.0.113.7/32", 2, True),
        route("198.51.100.9/32", 1),
    ])  # fmt: skip
    assert sorted(changes[3:]) == sorted([
        route("198.51.100.0/24", 1),
        route("203.0.113.7/32", 2),
        frame(route_del_message("198.51.100.9/32")),
    ])  # fmt: skip


def test_a_median_has_bounds():
    """Order statistics bound a median: of 15 values the 4th and the 12th enclose it in 96.5 % of
    all cases (two binomial tails of 576 / 2^15). The order of the values has no effect."""
    values = [n * 7 % 15 for n in range(15)]

    assert measure.bounds(values) == (7, 3, 11)


@pytest.mark.parametrize(
    "n, counts", [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])]
)
def test_cores_are_doubled_up_to_all(n, counts):
    assert sweep.doubled(n) == counts


def test_of_runs_behind_one_another_the_last_word_counts(tmp_path):
    """A benchmark that runs in pieces leaves one file. A row that is measured again replaces the
    older row, and the rows are ordered by load."""
    rows = [{"bench": "loss", "program": p, "load": load, "doing": "idle", "depth": 1024,
             "missed": missed}
            for p, load, missed in (("ours", 80, 1), ("ours", 10, 2), ("io", 80, 3), ("ours", 80, 4))]  # fmt: skip
    path = tmp_path / "bench-loss.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))

    assert [(r["program"], r["load"], r["missed"]) for r in bench_report.read(path)] == [
        ("ours", 10, 2),
        ("ours", 80, 4),
        ("io", 80, 3),
    ]


def report(folder, monkeypatch, **benches):
    """Return the report's text for the lines of benchmarks; the keys have _ for -."""
    for name, rows in benches.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name.replace('_', '-')}.jsonl").write_text(text)
    monkeypatch.setattr(sys, "argv", ["bench_report.py", str(folder)])

    assert bench_report.main() == 0
    return (folder / "report.md").read_text()


def test_the_report_tells_what_was_not_run(tmp_path, monkeypatch):
    row = {"bench": "sync", "kind": "none", "published": 0, "runs": 3}
    for key in ("quiet_mpps", "busy_mpps", "quiet_of_none", "busy_of_none"):
        row |= {key + end: 1.0 for end in ("", "_min", "_max", "_low", "_high")}

    text = report(tmp_path, monkeypatch, bench_sync=[row])

    assert "none   1.0  1.0  1.0" in text
    assert "`make bench-loss` has no results here" in text


def test_the_report_begins_with_goals_and_has_commands(tmp_path, monkeypatch):
    loss = {"bench": "loss", "program": "ours", "load": 80, "mpps": 30.0, "doing": "replay",
            "depth": 1 << 20, "offered": 1000, "missed": 0, "lost_inside": 0, "wrong_port": 0,
            "wrong_header": 0, "gaps": 0, "bridge_us": 9.0, "gap_max_us": 0, "cpu": 1.0,
            "away": 0.0, "stolen": 0.0, "pieces": 12, "pieces_missed": 0,
            "throughput_of_fastest": 0.9}  # fmt: skip
    command = {"bench": "command", "command": "make bench-loss LOADS=80"}

    text = report(tmp_path, monkeypatch, bench_loss=[loss, command])

    goals, _, rest = text.partition("## Loss")
    assert (
        "loss from replays at 80 % load         0    0  0 of 1000, in 0 of 12 pieces  met, and the aim"
        in goals
    )
    assert "make bench-loss LOADS=80" in rest


def test_the_report_takes_the_lines_of_bench_fpm_as_they_come(tmp_path, monkeypatch):
    machine = {"bench": "machine", "cpu": "x", "cores": 2, "kernel": "6", "dpdk": "22",
               "version": "v", "control_cpu": 0, "own_cpu": 1, "idle": "poll"}  # fmt: skip

    text = report(
        tmp_path, monkeypatch, bench_fpm=[machine, {"bench": "steal", "share": 0.25}]
    )

    assert "25.0% of the CPUs were stolen" in text


def test_the_manuals_tables_are_what_was_accepted():
    """The manual's page has each part of the accepted data once, with equal values. After a failure
    run `make reference`."""
    data, page_now = measured.load(), measured.PAGE.read_text(encoding="utf-8")

    assert measured.filled(page_now, data) == page_now
    assert sorted(m[1] for m in measured.MARKS.findall(page_now)) == sorted(data)
    assert measured.DATA.read_text(encoding="utf-8") == measured.dumped(data)
    assert set(data) == {"goals", *measured.PARTS}


def test_each_table_has_its_origin():
    """Each part of the data, and each goal, has its machine, instruction set, build and date."""
    data = measured.load()
    origins = [*(data[name] for name in measured.PARTS), *data["goals"]["rows"]]

    for origin in origins:
        assert {"machine", "isa", "build", "date"} <= origin.keys(), origin
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", origin["date"]), origin


def test_the_manuals_plots_are_what_was_accepted():
    """The plots of the manual are drawn from the accepted data, and the page shows each of them.
    After a failure run `make reference`."""
    plots = measured.measured_plots.drawn(measured.load())
    page_now = measured.PAGE.read_text(encoding="utf-8")

    assert {path.name: path.read_text(encoding="utf-8") for path in measured.PLOTS.iterdir()} == plots
    assert set(re.findall(r"\]\(plots/(.*?)\)", page_now)) == set(plots)


def test_each_plot_is_a_document_with_title_units_and_every_value():
    """Each plot is well-formed XML with a title, axis labels and as many marks as the data has
    values, all of them inside the picture."""
    data, n = measured.load(), {}
    n["rates.svg"] = 2 * len(data["forward"]["rows"])
    n["convergence.svg"] = sum("ms" in r for r in data["fpm"]["rows"])
    n["latency.svg"] = 6 * len(data["latency"]["rows"])
    for file, part in (("frame-size.svg", "len"), ("burst.svg", "burst"), ("destinations.svg", "set")):
        n[file] = sum(len(r["mpps"]) for r in data[part]["rows"])

    for name, text in measured.measured_plots.drawn(data).items():
        root = ElementTree.fromstring(text)
        tag = lambda x: f"{{http://www.w3.org/2000/svg}}{x}"  # noqa: E731
        width, height = map(float, root.get("viewBox").split()[2:])
        marks = root.findall(tag("rect")) + root.findall(tag("circle"))
        words = [x.text for x in root.findall(tag("text"))]
        assert root.find(tag("title")).text == words[0]
        assert {"million packets a second", "milliseconds", "microseconds"} & set(words), name
        assert len(marks) == n[name], name
        for mark in marks:
            x, y = (float(mark.get(k) or mark.get(f"c{k}")) for k in "xy")
            assert 0 <= x <= width and 0 <= y <= height, name


def test_a_scale_places_values_between_its_ends():
    """A scale is linear or logarithmic. A value outside of the scale is drawn at its end."""
    linear, log = svg.Axis([0, 50, 100], 0, 200), svg.Axis([0.1, 1, 10], 0, 200, log=True)
    assert svg.Axis([64], 0, 200).at(64) == svg.Axis([64], 0, 200, log=True).at(64) == 100

    assert [linear.at(x) for x in (0, 25, 100, 500)] == [0, 50, 200, 200]
    assert [round(log.at(x)) for x in (0, 0.1, 1, 10)] == [0, 0, 100, 200]
    assert svg.ticks_to(75) == [0, 20, 40, 60, 80] and svg.decades(0.14, 800) == [0.1, 1, 10, 100, 1000]


# Row of README's table -> row of the part `forward`.
README_ROWS = {
    "IPv4, 902 k routes": "full table, IPv4", "IPv6, 160 k routes": "full table, IPv6",
    "IPv6, 4 routes": "4 routes, IPv6",
}  # fmt: skip


def readmes_figures():
    """Return README's table of performance: {row: the other cells}."""
    text = (measured.ROOT / "README.md").read_text(encoding="utf-8")
    (part,) = re.findall(r"^## Performance\n(.*?)^## ", text, re.M | re.S)
    rows = [[c.strip() for c in r.split("|")[1:-1]] for r in part.splitlines() if r[:1] == "|"]
    return {row[0]: row[1:] for row in rows[2:]}


def test_readmes_figures_are_those_that_were_accepted():
    """README's figures equal the accepted figures: the forwarding table cell by cell, the full
    table over FPM by its range of seconds."""
    data, said = measured.load(), readmes_figures()
    rows = {row["what"]: row for part in ("forward", "fpm") for row in data[part]["rows"]}
    replay = "a full table is forwarded, after the first octet of its replay"

    for name, what in README_ROWS.items():
        row = rows[what]
        assert said.pop(name) == [
            f"{row['ours'][0]:.1f} Mpps",
            f"{row['peer']}: {row['theirs'][0]:.1f} Mpps",
            "{:.2f} ({:.2f} to {:.2f})".format(*row["ratio"]),
        ], name
    whole = said.pop("a full table from zebra to the FIB (measured before version 0.1)")[0]
    assert rows[replay]["figure"].startswith(whole + ":")
    assert said == {}


MACHINE = {"bench": "machine", "cpu": "Some CPU", "cores": 4, "kernel": "6.1.0",
           "dpdk": "22.11.11-0+deb12u1", "load": 3.2,
           "version": "fpm-dataplane abc1234, DPDK 22.11.11"}  # fmt: skip


def spread(name, middle, low, high):
    return {name: middle, f"{name}_min": low, f"{name}_max": high,
            f"{name}_low": low, f"{name}_high": high}  # fmt: skip


MEASURED = {
    "bench-forward": [
        MACHINE,
        {"bench": "command", "command": "make bench-forward REPS=3", "isa": "AVX2"},
        *(
            forwarded(program, samples)
            | spread("mpps", sorted(samples)[1], min(samples), max(samples))
            | {"cycles": 2600 / sorted(samples)[1]}
            | ({"stages": {"receive": 11.0, "send": 8.9}} if program == "ours" else {})
            for program, samples in (("ours", [50.0, 25.0, 60.0]), ("l3fwd-lpm", [40.0, 25.0, 30.0]))
        ),
        {"bench": "sweep", "what": "burst", "table": "full", "program": "ours", "value": 8, "mpps": 123.4},
        {"bench": "sweep", "what": "len", "table": "full", "program": "ours", "value": 64, "mpps": 70.0},
        {"bench": "forward", "table": "none", "traffic": "v4", "program": "ours", "mpps": 70.7, "cycles": 36.8},
        *(
            {"bench": "sweep", "what": "cores", "table": "full", "program": "ours", "value": n, "mpps": mpps,
             **spread("scaling", *ratio)}
            for n, mpps, ratio in ((1, 60.0, (1, 1, 1)), (4, 200.0, (3.3, 3.0, 3.5)))
        ),
    ],
    "bench-sync": [
        MACHINE,
        {"bench": "sync", "kind": "none", "quiet_of_none": 1.0},
        {"bench": "sync", "kind": "qsbr", "publish_p50_us": 3.1, "publish_p99_us": 46.0,
         **spread("quiet_of_none", 0.97, 0.95, 1.01)},
    ],
    "bench-tags": [
        MACHINE,
        {"bench": "tags", "name": "no tag", "base": None, "cycles": 44.3},
        {"bench": "tags", "name": "one tag in", "base": "no tag", "cycles": 46.5, **spread("ratio", 1.02, 1.01, 1.03)},
        {"bench": "tags", "name": "1 port, no VRF", "base": None, "cycles": 30.0},
        {"bench": "tags", "name": "1 port, a VRF each", "base": "1 port, no VRF", "cycles": 33.0,
         **spread("ratio", 1.1, 1.09, 1.12)},
    ],
    "bench-loss": [
        MACHINE,
        *(
            {"bench": "loss", "program": "ours", "depth": 1 << 20, "load": 90, "doing": doing, "mpps": 30.04,
             "missed": missed, "lost_inside": 0, "offered": 2_000_000, "pieces_missed": missed // 7, "pieces": 12}
            for doing, missed in (("idle", 0), ("updates", 7), ("replay", 14))
        ),
    ],
    "bench-latency": [
        MACHINE,
        *(
            {"bench": "latency", "program": program, "load": 50, "mpps": 27.61, "late_p50_us": 0.94,
             "late_p99_us": 54.3, "late_p999_us": 366.2, "late_max_us": 807.0}
            for program in ("ours", "testpmd-io")
        ),
    ],
    "bench-fib": [
        MACHINE | {"bench": "machine"},
        *(
            {"bench": "fib4", "table": "t", "stream": "random", "batch": 64, "hash": "prefix",
             "l3": "idle", "impl": impl, "mlps": mlps}
            for impl, mlps in (("poptrie-avx512", 1000), ("rte_fib-2B-avx512", 400))
        ),
    ],
    "bench-fpm": [
        MACHINE,
        {"bench": "link-loss", "median": 300, "min": 250, "max": 800},
    ],
}  # fmt: skip
ROWS = [
    "| full table, IPv4 | 50.0 (25 to 60) | 52.0 | LPM 30.0 (25 to 40) | 86.7 | 1.25 (1.00 to 2.00) |",
    "| | 8 |", "| ours | 123 |", "| no tag | 44.3 | |", "| one tag in | 46.5 | 1.02 (1.01 to 1.03) |",
    "| 1 port | 30.0 | 33.0 | 1.10 (1.09 to 1.12) |",
    "| 90 % | 30.0 | 0 of 2 M | 7 of 2 M, in 1 of 12 intervals | 14 of 2 M, in 2 of 12 intervals |",
    "| ours | 4 | 60.0 | 200 | 3.33 | 3.30 (3.00 to 3.50) |", "| ours | 70.7 | 36.8 |",
    "| cycles a packet | receive | send |", "| full table, IPv4 | 11.0 | 8.9 |",
    "| QSBR | 0.97 (0.95 to 1.01) | 3.1 us (99 %: 46.0 us) |",
    "| 50 % | 27.6 | 0.9 | 54 | 366 | 807 | 0.9 | 54 | 366 | 807 |",
    "| IPv4, random | 1000 | 2.5 | | | | | |", "| link loss of a member | 300 us (250 to 800) |",
    "| cycles with one tag in, relative to no tag | 1.05x | 1.0x | 1.020x (1.010 to 1.030) "
    "| Some CPU, instruction set not recorded | abc1234, 2026-01-02 | met |",
    "| cycles with a VRF each, relative to table main: 1 port | 1.0x | | 1.100x (1.090 to 1.120) "
    "| Some CPU, instruction set not recorded | abc1234, 2026-01-02 | not met |",
    "2026-01-02, build abc1234, `make bench-forward REPS=3`.\n"
    "Some CPU, AVX2, 4 CPUs, Linux 6.1.0, DPDK 22.11.11, load average 3.",
]  # fmt: skip


def test_what_is_accepted_stands_on_the_page(monkeypatch):
    """The page gets rows, date, command, build, machine, instruction set and load of every accepted
    part. The parts that were not measured do not change."""
    monkeypatch.setattr(measured, "today", lambda: "2026-01-02")
    old = {"command": "make x", "machine": "m", "build": "b", "isa": "i", "date": "d"}
    data = {"set": old | {"rows": []}}
    marks = "".join(f"<!-- measured: {name} -->\nold\n<!-- end -->\n" for name in
                    ["goals", *measured.PARTS])  # fmt: skip

    taken = measured.accept(data, MEASURED, bench_report.JUDGES)
    text = measured.filled(marks, data)

    assert taken == [name for name in measured.PARTS if name != "set"]
    assert [row for row in ROWS if row + "\n" not in text] == []
    assert "old" not in text and measured.filled(text, data) == text
    assert data["set"]["rows"] == [] and json.loads(measured.dumped(data)) == data


def test_destinations_are_a_part_of_the_page():
    """The page has the destinations on the table of their sweep, and frame sizes on the full table."""
    lines = [{"bench": "sweep", "what": what, "table": table, "program": "ours", "value": 8, "mpps": 3.5}
             for what, table in (("set", "set"), ("len", "full"))]  # fmt: skip

    of = {"bench-forward": [MACHINE, *lines]}

    assert measured.accept({}, of, {}) == ["len", "set"]


def test_a_command_has_files_by_their_names(monkeypatch):
    """The recorded command has the names of files without their folders. All other values are
    unchanged."""
    given = {"TABLE": "/srv/a/v4.txt.xz v6.txt.xz", "PEERS": "ours,l3*", "REPS": "3", "UPDATES": "/u.xz"}
    for name in ("TABLE", "PEERS", "REPS", "UPDATES", "LOADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    line = command.line("bench-fib", {*given, "LOADS"})

    assert re.match(r"0\.\d+", line["build"])
    assert line["isa"] in ("AVX-512", "AVX2", "x86-64-v2")
    assert line["command"] == ('make bench-fib PEERS="ours,l3*" REPS=3 TABLE="v4.txt.xz v6.txt.xz" '
                               "UPDATES=u.xz")  # fmt: skip


@pytest.mark.parametrize(("limit", "used"), [("avx2", "AVX2"), ("scalar", "x86-64-v2"), ("reference", "scalar")])
def test_a_command_has_the_instructions_that_its_option_permits(monkeypatch, limit, used):
    """A benchmark that obeys ISA records the option and the instructions that were used, not those of
    the CPU. A benchmark that does not know the option records those of the CPU."""
    monkeypatch.setenv("ISA", limit)

    line = command.line("bench-forward", {"ISA"})

    assert (line["command"], line["isa"]) == (f"make bench-forward ISA={limit}", used)
    assert command.line("bench-fpm", {"REPS"})["isa"] == command.isa()


def test_goals_of_other_benchmarks_stay():
    """The goals of other benchmarks stay on the page, and a goal that is measured again keeps its
    place."""
    old = [{"what": what, "least": "1", "aim": "1", "measured": "1", "build": "b", "verdict": "met"}
           for what in ("cycles with one tag in / with none", "another")]  # fmt: skip
    data = {"goals": {"rows": old}}

    assert measured.accept(data, MEASURED, bench_report.JUDGES, ["tags"]) == ["tags"]

    rows = data["goals"]["rows"]
    assert [r["what"] for r in rows[:2]] == [r["what"] for r in old] and rows[1] == old[1]
    assert rows[0]["build"] == "abc1234" and "," not in rows[0]["machine"]


@pytest.mark.parametrize(
    "name, base, ratio, met",
    [
        ("one tag in", "no tag", (1.04, 1.03, 1.06), "met"),
        ("one tag out", "no tag", (1.06, 1.04, 1.09), "not met"),
        ("one tag in and out", "no tag", (0.99, 0.98, 1.0), "met, and the aim"),
        ("16 ports, a VRF each", "16 ports, no VRF", (1.01, 1.0, 1.02), "met"),
        ("256 ports, a VRF each", "256 ports, no VRF", (1.02, 1.01, 1.03), "not met"),
        ("two tags in and out", "no tag", (1.2, 1.1, 1.3), None),
    ],
)
def test_one_tag_and_each_number_of_vrfs_is_judged(name, base, ratio, met):
    """bench_tags judges one tag and each number of VRFs. It reports the cost of two tags and of
    mixed tags without a goal."""
    line = {"bench": "tags", "name": name, "base": base, **spread("ratio", *ratio)}

    assert [row[-1] for row in bench_tags.goals([line])] == ([met] if met else [])


def test_the_rate_with_another_dpdk_is_of_neighboring_runs():
    """A row with half of the cycles has twice the rate, even if the machine was slower in one pair."""
    row = bench_dpdk.compared([100.0, 300.0, 100.0], [50.0, 150.0, 40.0])

    assert [row[f"rate{end}"] for end in ("", "_min", "_max")] == [2.0, 2.0, 2.5]
    assert (row["here"], row["root"]) == (100.0, 50.0)


@pytest.mark.parametrize(
    "rates, met", [([0.9, 1.1], "met"), ([0.9, 0.98], "not met"), ([1.2, 1.0], "met, and the aim")]
)
def test_the_goal_of_another_dpdk_is_of_the_median_row(rates, met):
    """The row without our code does not count."""
    lines = [{"bench": "dpdk", "name": f"row {n}", "rate": x} for n, x in enumerate(rates)]
    lines.append({"bench": "dpdk", "name": bench_dpdk.MACHINE, "rate": 9.0})

    assert [row[-1] for row in bench_dpdk.goals(lines)] == [met]


def test_a_part_that_there_is_not_is_refused():
    with pytest.raises(measured.UnknownPart, match="no part nonsense: the parts are forward"):
        measured.accept({}, MEASURED, bench_report.JUDGES, ["nonsense"])
    with pytest.raises(measured.UnknownPart, match="has a part nonsense"):
        measured.filled("<!-- measured: nonsense -->\n<!-- end -->\n", {})


# The features of CPUs: with all of AVX-512; Skylake-SP to Cooper Lake; with AVX2; without it.
ICE_LAKE = cpu.AVX512 | {"avx512_vpopcntdq"}
CPUS = {"ice lake": ICE_LAKE, "skylake": cpu.AVX512, "zen": cpu.AVX2, "old": {"sse4_2"}}


@pytest.mark.parametrize(
    "name, limit, used, ours",
    [
        ("ice lake", "", "AVX-512", "poptrie-avx*"),
        ("ice lake", "avx2", "AVX2", "poptrie-avx2"),
        ("ice lake", "scalar", "x86-64-v2", "poptrie-scalar"),
        ("ice lake", "reference", "scalar", "poptrie-scalar"),
        ("skylake", "", "AVX-512, lookups AVX2", "poptrie-avx2"),
        ("zen", "avx512", "AVX2", "poptrie-avx2"),
        ("old", "", "x86-64-v2", "poptrie-scalar"),
    ],
)
def test_the_class_of_a_cpu_and_the_lookups_have_the_same_instructions(monkeypatch, name, limit, used, ours):
    """bench-quick measures those lookups whose instructions the class names, so the ratios of AVX-512
    are never accepted for AVX2. On a CPU without VPOPCNTDQ the class names the lookups, too."""
    monkeypatch.setattr(cpu, "flags", lambda: CPUS[name])
    monkeypatch.setenv("ISA", limit)

    assert command.used() == used
    assert bench_quick.of_cpu().startswith(f"{used}, ")
    assert bench_quick.implementations().split(",")[0] == ours
    bits = {"avx2": "256", "scalar": "128", "reference": "128"}.get(limit, "512")
    args, _ = bench_fib.arguments()
    assert args[args.index("-V") + 1] == bits


def test_a_wrong_limit_of_instructions_is_refused(monkeypatch):
    """A value of ISA that no benchmark knows ends the benchmark with the values that it knows."""
    monkeypatch.setenv("ISA", "avx3")

    with pytest.raises(SystemExit, match="ISA=avx3: the values are avx512, avx2"):
        bench_fib.arguments()
