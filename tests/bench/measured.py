#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the manual's page of performance. They are what measured.json holds: of each
part of the page the machine, the command, the build and the rows that were last accepted.
`make bench-report ACCEPT=1` (or ACCEPT=tags,loss) takes them out of what the benchmarks left in
build/bench and writes the page anew; its prose is by hand, and a test holds the rest to the data.

    measured.py     (the page's tables out of the data: `make reference`)
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench_tags  # noqa: E402
import fib_report  # noqa: E402
from bench.fpm import report as fpm_report  # noqa: E402
from fib_report import unique  # noqa: E402
from forward.page import PAGE_DEPTH  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "bench" / "measured.json"
PAGE = ROOT / "fpm-dataplane" / "manual" / "performance.md"
MARKS = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


class UnknownPart(Exception):
    """The page, the data or ACCEPT names a part that there is not."""


def table(head, rows):
    """A table of Markdown."""
    lines = ["|" + "".join(f" {c} |" if c else " |" for c in row) for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "".join(line + "\n" for line in lines)


def number(value):
    """Three figures, and no more of a large number than it says."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def ratio(figure, places=2):
    """[median, from, to] as it stands in a cell; without a median what lies between."""
    middle, low, high = (None if x is None else f"{x:.{places}f}" for x in figure)
    between = low if low == high else f"{low} to {high}"
    return between if middle is None else f"{middle} ({between})"


# --- forwarding ---------------------------------------------------------------------------

FORWARDED = {
    ("few", "v4"): "4 routes, IPv4", ("few", "v6"): "4 routes, IPv6",
    ("few", "mixed"): "4 routes, half and half", ("606k", "v4"): "606,000 made-up routes, IPv4",
    ("full", "v4"): "full table, IPv4", ("full", "v6"): "full table, IPv6",
    ("full", "mixed"): "full table, half and half",
    ("1m", "v4"): "a million made-up routes, IPv4", ("1m", "v6"): "200,000 made-up routes, IPv6",
    ("1m", "mixed"): "both, half and half",
}  # fmt: skip
PROGRAMS = {
    "ours": "ours", "l3fwd-lpm": "LPM", "l3fwd-fib": "FIB", "l3fwd-fib-2B": "FIB, 2 B",
    "l3fwd-fib-4B": "FIB, 4 B", "l3fwd-fib-8B": "FIB, 8 B", "testpmd-io": "testpmd io",
}  # fmt: skip


def forward_rows(lines):
    """Ours and the peer with the highest rate; ratios are those of a round."""
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
    """The median of what is sorted."""
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


def rate(figure):
    """[median, least, most] Mpps."""
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
    """Rates on one table by one thing that varies, a row a program."""

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
    """Of destinations: 2^16; where it is none, the millions of them."""
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
    """Frames that are held against those without a tag, or VRFs against table main."""

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
    "idle": "missed: nothing else",
    "updates": "10,000 changes a second",
    "replay": "replays without a pause",
}


def loss_rows(lines):
    """With so many descriptors that no absence fills them: what is lost is the router's."""
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
    """[lost, offered, pieces that lost, pieces]."""
    if cell is None:
        return "-"
    n, offered, some, pieces = cell
    text = f"{n:,} of {offered / 1e6:.0f} M"
    return text if n == 0 else f"{text}, in {some} piece{'s' * (some != 1)} of {pieces}"


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
    """Microseconds: tenths of few."""
    return f"{us:.1f}" if us < 10 else f"{us:.0f}"


def latency_table(rows):
    return table(
        ["load", "Mpps", "p50 us", "p99", "p99.9", "most", "io: p50", "p99", "p99.9", "most"],
        [
            [f"{r['load']} %", f"{r['ours'][0]:.1f}", *map(late, r["ours"][1:]),
             *(map(late, r["io"][1:]) if "io" in r else ["-"] * len(LATE))]
            for r in rows
        ],
    )  # fmt: skip


# --- lookups, the way from zebra ------------------------------------------------------------

STREAMS = {
    (4, "random"): "IPv4, random", (4, "inprefix"): "IPv4, inside announced prefixes",
    (4, "zipf"): "IPv4, Zipf mix of a million flows",
    (6, "inprefix"): "IPv6, inside announced prefixes", (6, "zipf"): "IPv6, Zipf",
}  # fmt: skip
PEERS = [(l3, octets) for l3 in ("idle", "contended") for octets in (2, 4, 8)]


def lookup_rows(lines):
    """The first table that was measured, the first assignment of next hops, batches of 64."""
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
        ["keys", "ours, M/s", "rte_fib 2 B", "4 B", "8 B",
         "while another core takes the L3: 2 B", "4 B", "8 B"],
        [
            [r["what"], "" if r["mlps"] is None else ratio(r["mlps"], 0),
             *("" if x is None else ratio(x, 1) for x in r["times"])]
            for r in rows
        ],
    )  # fmt: skip


def fpm_rows(lines):
    """All that has a goal."""
    return [
        {"what": what, "figure": f"{got} ({spread.replace('..', ' to ')})"}
        for what, _, _, got, spread, *_ in fpm_report.goals(lines)
    ]


def fpm_table(rows):
    return table(["", ""], [[r["what"], r["figure"]] for r in rows])


GOALS = {
    "v4 full table / l3fwd's best": "IPv4, full table, against l3fwd's best mode",
    "v4 4 routes / l3fwd LPM": "IPv4, 4 routes, against l3fwd LPM",
    "v6 full table / l3fwd FIB": "IPv6, full table, against l3fwd FIB on the same table",
    "cycles a packet, v4 full table": "cycles a packet, IPv4, full table",
    "loss from replays at 80 % load": "frames lost to replays of the full table, without a pause, "
    "at 80 % of the throughput (RFC 2544), 60 s",
    "rate lost to 10 k updates/s": "rate lost while 10,000 routes a second change",
    "QSBR / no synchronisation": "QSBR against no synchronisation at all",
    **{f"cycles with {x} / with none": f"cycles with {x}, against none" for x in bench_tags.ONE},
    "idle, ports to be polled: of a core": "idle router, ports that must be polled: of a core",
    "first packet after 20 ms of nothing": "the first packet after 20 ms of nothing, ports that "
    "must be polled",
}  # the benchmarks' words, and the page's


def goals_table(rows):
    head = ["goal", "at least", "aim", "measured", "machine", "build", ""]
    keys = ("least", "aim", "measured", "machine", "build", "verdict")
    return table(head, [[GOALS.get(r["what"], r["what"]), *(r[k] for k in keys)] for r in rows])


# --- the whole ------------------------------------------------------------------------------

# part of the page -> (benchmark, rows of its lines, table of rows)
PARTS = {
    "forward": ("bench-forward", forward_rows, forward_table),
    "burst": ("bench-forward", sweep_rows("burst"), sweep_table("{:g}".format)),
    "set": ("bench-forward", sweep_rows("set", "set"), sweep_table(exponent)),
    "tags": ("bench-tags", tag_rows(False), tags_table),
    "vrfs": ("bench-tags", tag_rows(True), vrfs_table),
    "loss": ("bench-loss", loss_rows, loss_table),
    "latency": ("bench-latency", latency_rows, latency_table),
    "lookups": ("bench-fib", lookup_rows, lookups_table),
    "fpm": ("bench-fpm", fpm_rows, fpm_table),
}


def place(bench, lines):
    """Where rows come from: {"command", "machine", "build"} and, if it is known, "load"."""
    machines = [r for r in lines if r["bench"] == "machine"]
    last = machines[-1]
    dpdk, kernel = (re.search(r"\d[\d.]*\d", last[k])[0] for k in ("dpdk", "kernel"))
    builds = [
        r["version"].removeprefix("fpm-dataplane ").partition(",")[0]
        for r in machines
        if "version" in r
    ]
    commands = unique(r["command"] for r in lines if r["bench"] == "command")
    found = {
        "command": "; ".join(commands) or f"make {bench}",
        "machine": f"{last['cpu']}, {last['cores']} CPUs, Linux {kernel}, DPDK {dpdk}",
        "build": ", ".join(unique(builds)) or "unknown",
    }
    loads = [r["load"] for r in machines if "load" in r]
    return found | ({"load": max(loads)} if loads else {})


def take_goals(data, bench, lines, judged):
    """A row a goal, in the place of the last of that name; others stay as they were."""
    at = place(bench, lines)
    at = {"machine": at["machine"].partition(",")[0], "build": at["build"]}
    rows = {r["what"]: r for r in data.setdefault("goals", {"rows": []})["rows"]}
    for what, least, aim, measured, verdict in judged:
        measured = measured.replace("..", " to ")
        rows[what] = {"what": what, "least": least, "aim": aim, "measured": measured,
                      **at, "verdict": verdict}  # fmt: skip
    data["goals"]["rows"] = list(rows.values())


def where(part):
    """The line above a table; that of goals has no place of its own."""
    if "command" not in part:
        return ""
    load = f", load average {part['load']:.0f}" if "load" in part else ""
    return f"`{part['command']}`, build {part['build']}.\n{part['machine']}{load}.\n\n"


def accept(data, of, judges, names=None):
    """Into `data` what was measured, of all parts or those of `names`. Returns which.

    of: {benchmark: lines}; judges: {benchmark: goals(lines)}, as in bench_report.py
    """
    unknown = set(names or ()) - set(PARTS)
    if unknown:
        raise UnknownPart(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
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
    """The page with the tables of the data between its marks."""

    def one(found):
        name = found[2]
        if name not in data:
            raise UnknownPart(f"the page has a part {name}, which nobody measured")
        made = goals_table if name == "goals" else PARTS[name][2]
        return found[1] + where(data[name]) + made(data[name]["rows"]) + found[3]

    return MARKS.sub(one, text)


def load():
    """What was accepted."""
    return json.loads(DATA.read_text(encoding="utf-8"))


def dumped(data):
    """As it is committed: a row a line."""
    parts = []
    for name in ["goals", *PARTS]:
        if name in data:
            head = {k: v for k, v in data[name].items() if k != "rows"}
            rows = ",\n".join("   " + json.dumps(r) for r in data[name]["rows"])
            keys = "".join(f'  {json.dumps(k)}: {json.dumps(v)},\n' for k, v in head.items())
            parts.append(f' {json.dumps(name)}: {{\n{keys}  "rows": [\n{rows}\n  ]\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(data):
    """The page's tables anew."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), data), encoding="utf-8")


def refresh(of, judges, names=None):
    """Accept, and write data and page. Returns the parts that were taken."""
    data = load()
    taken = accept(data, of, judges, names)
    DATA.write_text(dumped(data), encoding="utf-8")
    write(data)
    return taken


if __name__ == "__main__":
    write(load())
