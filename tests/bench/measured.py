#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the tables and plots of the manual's page of performance from measured.json.

For each part of the page, measured.json has the machine, the instruction set, the date, the
command, the build, and the rows that were accepted last. `make bench-report ACCEPT=1` (or
ACCEPT=tags,loss) takes rows from build/bench and writes the page and the plots. The prose of the
page is written by hand. A test compares tables and plots with the data.

    measured.py     (`make reference`: write the page's tables and the plots)
"""

import datetime
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_tags  # noqa: E402
import command  # noqa: E402
import fib_report  # noqa: E402
import measured_plots  # noqa: E402
from bench.fpm import report as fpm_report  # noqa: E402
from fib_report import unique  # noqa: E402
from forward.page import PAGE_DEPTH  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "bench" / "measured.json"
PAGE = ROOT / "fpm-dataplane" / "manual" / "performance.md"
PLOTS = PAGE.parent / "plots"
MARKS = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


class UnknownPart(Exception):
    """The page, the data or ACCEPT names a part that does not exist."""


def table(head, rows):
    """Return a table in Markdown."""
    lines = ["|" + "".join(f" {c} |" if c else " |" for c in row) for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "".join(line + "\n" for line in lines)


def number(value):
    """Format a number with three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def ratio(figure, places=2):
    """Format [median, from, to] for a cell; [None, from, to] without a median."""
    middle, low, high = (None if x is None else f"{x:.{places}f}" for x in figure)
    between = low if low == high else f"{low} to {high}"
    return between if middle is None else f"{middle} ({between})"


# --- forwarding ---------------------------------------------------------------------------

FORWARDED = {
    ("few", "v4"): "4 routes, IPv4", ("few", "v6"): "4 routes, IPv6",
    ("few", "mixed"): "4 routes, IPv4 and IPv6",
    ("606k", "v4"): "606,000 generated routes, IPv4",
    ("full", "v4"): "full table, IPv4", ("full", "v6"): "full table, IPv6",
    ("full", "mixed"): "full table, IPv4 and IPv6",
    ("1m", "v4"): "a million generated routes, IPv4",
    ("1m", "v6"): "200,000 generated routes, IPv6",
    ("1m", "mixed"): "a million and 200,000 generated routes, IPv4 and IPv6",
}  # fmt: skip
PROGRAMS = {
    "ours": "ours", "l3fwd-lpm": "LPM", "l3fwd-fib": "FIB", "l3fwd-fib-2B": "FIB, 2 B",
    "l3fwd-fib-4B": "FIB, 4 B", "l3fwd-fib-8B": "FIB, 8 B", "testpmd-io": "testpmd io",
    "testpmd-macswap": "testpmd macswap",
}  # fmt: skip


def forward_rows(lines):
    """Return a row for each table: ours and the peer with the highest rate. Ratios are of rounds."""
    found = []
    for of, name in FORWARDED.items():
        here = {
            r["program"]: r
            for r in lines
            if r["bench"] == "forward" and (r["table"], r["traffic"]) == of
        }
        peers = [r for p, r in here.items() if p.startswith("l3fwd")]
        if "ours" not in here or not peers:
            continue
        ours, best = here["ours"], max(peers, key=lambda r: r["mpps"])
        rounds = sorted(a / b for a, b in zip(ours["samples"], best["samples"]))
        row = {"what": name, "peer": PROGRAMS.get(best["program"], best["program"])}
        for who, r in (("ours", ours), ("theirs", best)):
            row[who] = [r["mpps"], r["mpps_min"], r["mpps_max"]]
            row[f"{who}_cycles"] = r["cycles"]
        row["ratio"] = [round(x, 3) for x in (middle(rounds), rounds[0], rounds[-1])]
        found.append(row)
    return found


def middle(values):
    """Return the median of a sorted list."""
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


def rate(figure):
    """Format [median, minimum, maximum] Mpps."""
    return f"{figure[0]:.1f} ({figure[1]:.0f} to {figure[2]:.0f})"


def forward_table(rows):
    head = ["table, traffic", "ours, Mpps", "cycles", "l3fwd's best mode, Mpps", "cycles"]
    return table(
        [*head, "ours / l3fwd"],
        [
            [r["what"], rate(r["ours"]), f"{r['ours_cycles']:.1f}",
             f"{r['peer']} {rate(r['theirs'])}", f"{r['theirs_cycles']:.1f}", ratio(r["ratio"])]
            for r in rows
        ],
    )  # fmt: skip


def sweep_rows(what, on="full"):
    """Return a function that reads the rates of a sweep on one table, a row for each program."""

    def rows(lines):
        here = [
            r
            for r in lines
            if r["bench"] == "sweep" and (r["what"], r["table"]) == (what, on)
        ]
        return [
            {
                "what": PROGRAMS.get(program, program),
                "mpps": [[r["value"], r["mpps"]] for r in here if r["program"] == program],
            }
            for program in unique(r["program"] for r in here)
        ]

    return rows


def exponent(value):
    """Format a number of destinations, given as its binary logarithm: 2^16, or 11.9 M."""
    return f"2^{value:g}" if value == int(value) else f"{2**value / 1e6:.1f} M"


def sweep_table(name):
    def made(rows):
        values = sorted({value for r in rows for value, _ in r["mpps"]})
        of = [dict(map(tuple, r["mpps"])) for r in rows]
        return table(
            ["", *map(name, values)],
            [
                [r["what"], *(number(mpps[v]) if v in mpps else "-" for v in values)]
                for r, mpps in zip(rows, of)
            ],
        )

    return made


# --- tags and VRFs ------------------------------------------------------------------------


def tag_rows(vrfs):
    """Return a function that reads the rows of tags, or of VRFs against table main."""

    def rows(lines):
        here = {r["name"]: r for r in lines if r["bench"] == "tags"}
        return [
            {
                "what": name,
                "of": r["base"],
                "base_cycles": here[r["base"]]["cycles"],
                "cycles": r["cycles"],
                "ratio": [r["ratio"], r["ratio_low"], r["ratio_high"]],
            }
            for name, r in here.items()
            if r["base"] and (r["base"] != bench_tags.NONE) == vrfs
        ]

    return rows


def tags_table(rows):
    none = [[bench_tags.NONE, f"{rows[0]['base_cycles']:.1f}", ""]]
    return table(
        ["frames", "cycles a packet", "ratio to no tag (95 %)"],
        none + [[r["what"], f"{r['cycles']:.1f}", ratio(r["ratio"])] for r in rows],
    )


def vrfs_table(rows):
    return table(
        ["frames", "cycles a packet, table main", "a VRF each", "ratio (95 %)"],
        [
            [r["what"].removesuffix(", a VRF each"), f"{r['base_cycles']:.1f}",
             f"{r['cycles']:.1f}", ratio(r["ratio"])]
            for r in rows
        ],
    )  # fmt: skip


# --- loss, latency ------------------------------------------------------------------------

DOING = {
    "idle": "frames missed: no route changes",
    "updates": "10,000 route changes a second",
    "replay": "replays without a pause",
}


def loss_rows(lines):
    """Return the losses with so many descriptors that a pause of the machine does not fill them."""
    here = [
        r
        for r in lines
        if r["bench"] == "loss" and r["program"] == "ours" and r["depth"] > PAGE_DEPTH
    ]
    return [
        {"load": load, "mpps": next(r["mpps"] for r in here if r["load"] == load)}
        | {
            r["doing"]: [r["missed"] + r["lost_inside"], r["offered"], r["pieces_missed"],
                         r["pieces"]]
            for r in here
            if r["load"] == load
        }
        for load in unique(r["load"] for r in here)
    ]  # fmt: skip


def lost(cell):
    """Format [lost, offered, intervals with losses, intervals]."""
    if cell is None:
        return "-"
    n, offered, some, pieces = cell
    text = f"{n:,} of {offered / 1e6:.0f} M"
    return text if n == 0 else f"{text}, in {some} of {pieces} intervals"


def loss_table(rows):
    return table(
        ["load", "Mpps", *DOING.values()],
        [
            [f"{r['load']} %", f"{r['mpps']:.1f}", *(lost(r.get(d)) for d in DOING)]
            for r in rows
        ],
    )


LATE = ("p50", "p99", "p999", "max")


def latency_rows(lines):
    here = [r for r in lines if r["bench"] == "latency"]
    return [
        {"load": load}
        | {
            ("ours" if r["program"] == "ours" else "io"): [
                r["mpps"], *(round(r[f"late_{k}_us"], 2) for k in LATE)
            ]
            for r in here
            if r["load"] == load
        }
        for load in unique(r["load"] for r in here)
    ]  # fmt: skip


def late(us):
    """Format microseconds: one decimal below 10."""
    return f"{us:.1f}" if us < 10 else f"{us:.0f}"


def latency_table(rows):
    return table(
        ["load", "Mpps", "p50, us", "p99", "p99.9", "maximum", "testpmd io: p50, us", "p99", "p99.9",
         "maximum"],
        [
            [f"{r['load']} %", f"{r['ours'][0]:.1f}", *map(late, r["ours"][1:]),
             *(map(late, r["io"][1:]) if "io" in r else ["-"] * len(LATE))]
            for r in rows
        ],
    )  # fmt: skip


# --- lookups, time from zebra to forwarding -------------------------------------------------

STREAMS = {
    (4, "random"): "IPv4, random", (4, "inprefix"): "IPv4, inside announced prefixes",
    (4, "zipf"): "IPv4, Zipf mix of a million flows",
    (6, "inprefix"): "IPv6, inside announced prefixes", (6, "zipf"): "IPv6, Zipf",
}  # fmt: skip
PEERS = [(l3, octets) for l3 in ("idle", "contended") for octets in (2, 4, 8)]


def lookup_rows(lines):
    """Return the rows of the first table, the first assignment of next hops, batches of 64."""
    tables = unique(r["table"] for r in lines if "table" in r)
    found = []
    for (family, stream), name in STREAMS.items():
        bench, vector = f"fib{family}", "poptrie-avx512"
        peer = "rte_fib-{}B-avx512" if family == 4 else "rte_fib6-{}B-avx512"
        want = {"stream": stream, "batch": 64, "hash": "prefix"}
        res = next(
            (
                fib_report.Results(lines, t)
                for t in tables
                if fib_report.Results(lines, t).find(bench, impl=vector, l3="idle", **want)
            ),
            None,
        )
        if res is None:
            continue
        ours = res.find(bench, impl=vector, l3="idle", **want)["mlps"]
        times = [
            res.ratio(vector, peer.format(octets), bench, l3=l3, **want)
            for l3, octets in PEERS
        ]
        found.append({
            "what": name,
            "mlps": [None, ours, ours],
            "times": [None if x is None else [None, round(x, 2), round(x, 2)] for x in times],
        })  # fmt: skip
    return found


def lookups_table(rows):
    return table(
        ["keys", "ours, M/s", "ratio to rte_fib 2 B", "ratio to 4 B", "ratio to 8 B",
         "while another core uses the L3: ratio to 2 B", "to 4 B", "to 8 B"],
        [
            [r["what"], "" if r["mlps"] is None else ratio(r["mlps"], 0),
             *("" if x is None else ratio(x, 1) for x in r["times"])]
            for r in rows
        ],
    )  # fmt: skip


TO_MS = {"us": 1e-3, "ms": 1.0}


def fpm_rows(lines):
    """Return every result that has a goal; "ms" is the range of a time, for the plot."""
    found = []
    for what, _, _, got, spread, *_ in fpm_report.goals(lines):
        row = {"what": what, "figure": f"{got} ({spread.replace('..', ' to ')})"}
        if (unit := got.split()[-1]) in TO_MS:
            ends = (float(x.replace(",", "")) * TO_MS[unit] for x in spread.split(".."))
            row["ms"] = [round(x, 4) for x in ends]
        found.append(row)
    return found


def fpm_table(rows):
    return table(["event", "result"], [[r["what"], r["figure"]] for r in rows])


# --- a default route alone, stages, cores, synchronization ----------------------------------


def none_rows(lines):
    """Return rates and cycles with a default route alone."""
    return [
        {"what": PROGRAMS.get(r["program"], r["program"]), "mpps": r["mpps"], "cycles": r["cycles"]}
        for r in lines
        if r["bench"] == "forward" and r["table"] == "none"
    ]


def none_table(rows):
    return table(
        ["default route alone, IPv4", "Mpps", "cycles a packet"],
        [[r["what"], number(r["mpps"]), f"{r['cycles']:.1f}"] for r in rows],
    )


def stage_rows(lines):
    """Return our cycles by stage on the full table with IPv4."""
    return [
        {"what": FORWARDED["full", "v4"], "stages": r["stages"]}
        for r in lines
        if r["bench"] == "forward"
        and (r["table"], r["traffic"]) == ("full", "v4")
        and "stages" in r
    ]


def stages_table(rows):
    return table(
        ["cycles a packet", *rows[0]["stages"]],
        [[r["what"], *(f"{x:.1f}" for x in r["stages"].values())] for r in rows],
    )


def core_rows(lines):
    """Return the rate of each program on one core and on more, and the ratio by rounds."""
    here = [r for r in lines if r["bench"] == "sweep" and r["what"] == "cores"]
    found = []
    for r in here:
        one = next(x for x in here if x["program"] == r["program"])
        if r is not one:
            ends = ("scaling", "scaling_min", "scaling_max")
            found.append({
                "what": PROGRAMS.get(r["program"], r["program"]), "cores": r["value"],
                "one": one["mpps"], "more": r["mpps"], "ratio": [round(r[k], 2) for k in ends],
            })  # fmt: skip
    return found


def cores_table(rows):
    return table(
        ["full table, IPv4", "cores", "one core, Mpps", "all, Mpps", "ratio of the medians",
         "median of the ratios of the rounds"],
        [
            [r["what"], str(r["cores"]), number(r["one"]), number(r["more"]),
             f"{r['more'] / r['one']:.2f}", ratio(r["ratio"])]
            for r in rows
        ],
    )  # fmt: skip


# Kind of bench_sync -> its name on the page.
METHODS = {
    "qsbr": "QSBR", "memb": "membarrier", "mb": "memory barriers", "signal": "signals",
    "thread-mutex": "a mutex for each thread", "global-mutex": "one mutex", "rwlock": "a rwlock",
}  # fmt: skip


def sync_rows(lines):
    """Return the rate of each method relative to none, and the time until a new FIB is in use."""
    return [
        {
            "what": METHODS.get(r["kind"], r["kind"]),
            "ratio": [r["quiet_of_none"], r["quiet_of_none_low"], r["quiet_of_none_high"]],
            "seen": f"{r['publish_p50_us']:.1f} us (99 %: {r['publish_p99_us']:.1f} us)",
        }
        for r in lines
        if r["bench"] == "sync" and "quiet_of_none" in r and r.get("publish_p50_us") is not None
    ]


def sync_table(rows):
    return table(
        ["method", "rate, relative to no synchronization (95 %)", "time until the new FIB is in use"],
        [[r["what"], ratio(r["ratio"]), r["seen"]] for r in rows],
    )


GOALS = {
    "v4 full table / l3fwd's best": "IPv4, full table, against l3fwd's best mode",
    "v4 4 routes / l3fwd LPM": "IPv4, 4 routes, against l3fwd LPM",
    "v6 full table / l3fwd FIB": "IPv6, full table, against l3fwd FIB on the same table",
    "cycles a packet, v4 full table": "cycles a packet, IPv4, full table",
    "loss from replays at 80 % load": "frames lost during replays of the full table without a "
    "pause, at 80 % of the throughput (RFC 2544), 60 s",
    "loss from replays at 80 % of the maximum rate": "frames lost during such "
    "replays, at 80 % of the maximum rate",
    "rate lost to 10 k updates/s": "rate lost while 10,000 routes a second change",
    "QSBR / no synchronisation": "rate with QSBR, relative to no synchronization",
    **{f"cycles with {x} / with none": f"cycles with {x}, relative to no tag" for x in bench_tags.ONE},
    "an idle lab router (net_af_packet), all threads": "CPU use of an idle lab router "
    "(net_af_packet), all threads",
    "idle, ports to be polled: of a core": "CPU use of an idle router with ports that must be polled",
    "first packet after 20 ms of nothing": "delay of the first packet after 20 ms without traffic, "
    "on ports that must be polled",
}  # the benchmarks' names of goals, and the names on the page


VRF_GOAL = re.compile(r"cycles of (.*), a VRF each / of table main")


def goal_name(what):
    """Return the name of a goal on the page."""
    return GOALS.get(what) or VRF_GOAL.sub(r"cycles with a VRF each, relative to table main: \1", what)


def goals_table(rows):
    head = ["figure", "goal", "aim", "measured", "machine", "build, date", "verdict"]
    said = {
        "met, and the aim": "goal and aim met",
        "met by the median; the upper bound exceeds it": "the median meets the goal, the upper bound "
        "exceeds it",
        "not met, with and without replays": "not met with replays, and not met without",
    }  # the benchmarks' verdicts, and the words on the page
    rows = [
        r | {"machine": f"{r['machine']}, {r['isa']}", "build": f"{r['build']}, {r['date']}",
             "verdict": said.get(r["verdict"], r["verdict"])}
        for r in rows
    ]  # fmt: skip
    keys = ("least", "aim", "measured", "machine", "build", "verdict")
    return table(head, [[goal_name(r["what"]), *(r[k] for k in keys)] for r in rows])


# --- all parts ------------------------------------------------------------------------------

# part of the page -> (benchmark, rows of its lines, table of rows)
PARTS = {
    "forward": ("bench-forward", forward_rows, forward_table),
    "none": ("bench-forward", none_rows, none_table),
    "stages": ("bench-forward", stage_rows, stages_table),
    "cores": ("bench-forward", core_rows, cores_table),
    "len": ("bench-forward", sweep_rows("len"), sweep_table("{:g} octets".format)),
    "burst": ("bench-forward", sweep_rows("burst"), sweep_table("{:g}".format)),
    "set": ("bench-forward", sweep_rows("set", "set"), sweep_table(exponent)),
    "tags": ("bench-tags", tag_rows(False), tags_table),
    "vrfs": ("bench-tags", tag_rows(True), vrfs_table),
    "loss": ("bench-loss", loss_rows, loss_table),
    "latency": ("bench-latency", latency_rows, latency_table),
    "sync": ("bench-sync", sync_rows, sync_table),
    "lookups": ("bench-fib", lookup_rows, lookups_table),
    "fpm": ("bench-fpm", fpm_rows, fpm_table),
}


def today():
    """Return the date of an acceptance."""
    return datetime.date.today().isoformat()


def place(bench, lines):
    """Return the origin of rows: {"command", "machine", "build", "isa", "date"} and, if it is
    known, "load"."""
    machines = [r for r in lines if r["bench"] == "machine"]
    last = machines[-1]
    dpdk, kernel = (re.search(r"\d[\d.]*\d", last[k])[0] for k in ("dpdk", "kernel"))
    builds = [
        r["version"].removeprefix("fpm-dataplane ").partition(",")[0]
        for r in machines
        if "version" in r
    ]
    commands = [r for r in lines if r["bench"] == "command"]
    # Programs that only measure a library have no version. The command has that of the tree.
    builds = builds or [r["build"] for r in commands if r.get("build")]
    found = {
        "command": "; ".join(unique(r["command"] for r in commands)) or f"make {bench}",
        "machine": f"{last['cpu']}, {last['cores']} CPUs, Linux {kernel}, DPDK {dpdk}",
        "build": ", ".join(unique(builds)) or "unknown",
        "isa": ", ".join(unique(r["isa"] for r in commands if "isa" in r)) or command.NO_ISA,
        "date": today(),
    }
    loads = [r["load"] for r in machines if "load" in r]
    return found | ({"load": max(loads)} if loads else {})


def take_goals(data, bench, lines, judged):
    """Replace the row of each judged goal. The other rows stay as they are."""
    at = place(bench, lines)
    machine = at["machine"].partition(",")[0]
    at = {"machine": machine, "isa": at["isa"], "build": at["build"], "date": at["date"]}
    rows = {r["what"]: r for r in data.setdefault("goals", {"rows": []})["rows"]}
    for what, least, aim, measured, verdict in judged:
        measured = measured.replace("..", " to ")
        rows[what] = {"what": what, "least": least, "aim": aim, "measured": measured,
                      **at, "verdict": verdict}  # fmt: skip
    data["goals"]["rows"] = list(rows.values())


def where(part):
    """Return the lines above a table. The rows of the goals have their own origins."""
    if "command" not in part:
        return ""
    load = f", load average {part['load']:.0f}" if "load" in part else ""
    cpu, _, rest = part["machine"].partition(",")
    return (
        f"{part['date']}, build {part['build']}, `{part['command']}`.\n"
        f"{cpu}, {part['isa']},{rest}{load}.\n\n"
    )


def accept(data, of, judges, names=None):
    """Put the measured parts, or the parts `names` of them, into `data`. Return their names.

    of: {benchmark: lines}; judges: {benchmark: goals(lines)}, as in bench_report.py
    """
    unknown = set(names or ()) - set(PARTS)
    if unknown:
        raise UnknownPart(f"no part {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    taken = []
    for name in names or PARTS:
        bench, rows_of, _ = PARTS[name]
        rows = rows_of(of.get(bench, []))
        if rows:
            data[name] = place(bench, of[bench]) | {"rows": rows}
            taken.append(name)
    for bench in unique(PARTS[name][0] for name in taken):
        if bench in judges:
            take_goals(data, bench, of[bench], judges[bench](of[bench]))
    return taken


def filled(text, data):
    """Return the page with the tables of the data between its marks."""

    def one(found):
        name = found[2]
        if name not in data:
            raise UnknownPart(f"the page has a part {name}, which measured.json does not have")
        made = goals_table if name == "goals" else PARTS[name][2]
        return found[1] + where(data[name]) + made(data[name]["rows"]) + found[3]

    return MARKS.sub(one, text)


def load():
    """Return the accepted data."""
    return json.loads(DATA.read_text(encoding="utf-8"))


def dumped(data):
    """Return the text of measured.json, with one line for each row."""
    parts = []
    for name in ["goals", *PARTS]:
        if name in data:
            head = {k: v for k, v in data[name].items() if k != "rows"}
            rows = ",\n".join("   " + json.dumps(r) for r in data[name]["rows"])
            keys = "".join(f'  {json.dumps(k)}: {json.dumps(v)},\n' for k, v in head.items())
            parts.append(f' {json.dumps(name)}: {{\n{keys}  "rows": [\n{rows}\n  ]\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(data):
    """Write the page's tables, and the plots."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), data), encoding="utf-8")
    PLOTS.mkdir(exist_ok=True)
    for name, text in measured_plots.drawn(data).items():
        (PLOTS / name).write_text(text, encoding="utf-8")


def refresh(of, judges, names=None):
    """Accept results, and write the data, the page and the plots. Return the accepted parts."""
    data = load()
    taken = accept(data, of, judges, names)
    DATA.write_text(dumped(data), encoding="utf-8")
    write(data)
    return taken


if __name__ == "__main__":
    write(load())
