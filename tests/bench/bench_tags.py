#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure the cycles a packet of VLAN tags, macvlans, VRFs, MPLS labels, filters and checks of sources. The daemon's forwarding loop runs between
ports that are functions, without a kernel (tests/bench/tags/), and all rows take turns in one
process. JSON lines on stdout, a table on stderr.

    bench_tags.py BUILD_DIR        (options: tests/bench/README.md)
"""

import json
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import command  # noqa: E402
from fib_report import print_columns  # noqa: E402
from forward import rig, sources  # noqa: E402
from forward.measure import spread  # noqa: E402
from forward.report import verdict  # noqa: E402

NONE = "no tag"  # the name in tags/main.c
ONE = ("one tag in", "one tag out", "one tag in and out")
ONE_TAG = 1.05  # at most this times the cycles without a tag
LABELS = ("one label pushed", "label swapped", "label popped, to a neighbor")
VPN = ("VPN ingress: VRF and two labels", "VPN egress: label popped and VRF")
RULES = "1,000 rules of a filter"
STRICT = "rp_filter strict"
MACVLANS = "255 macvlans, to the port"
TUNNELS = ("into a tunnel of GRE", "out of a tunnel of GRE", "into a tunnel of IPIP", "out of a tunnel of IPIP")
# Rows of other outer headers, and of functions that no frame uses: the rate against plain IPv4, at least and as an aim.
OUTER = {
    "into a VXLAN": (0.5, 0.65),
    "out of a VXLAN": (0.5, 0.65),
    "into SRv6 (H.Encaps)": (0.5, 0.65),
    "into SRv6 (H.Encaps.Red)": (0.5, 0.65),
    "through an end point (End)": (0.6, 0.75),
    "out of an end point (End.DT46)": (0.55, 0.7),
    "with unused tunnels, VNIs and SIDs": (0.99, 1.0),
    "with policy rules of other interfaces": (0.99, 1.0),
}
SESSIONS = "1,000 BFD sessions of 300 ms"  # the interval of FRR
IN_VRF = ", a VRF each"
ENDS = ("", "_min", "_max")


def figures(rows, name, base):
    """Return the cycles of a row and, if it is compared with another row, the ratio to it.

    rows: {name: (base, turns)}. The turns of a round are of the base, the row, the row, the base.
    The cycles of a row that is a base are from its turns in the rounds of the other rows.
    """
    turns = rows[name][1]
    own = [(b + c) / 2 for _, b, c, _ in turns]
    theirs = [
        (a + d) / 2 for of, all_ in rows.values() if of == name for a, _, _, d in all_
    ]
    row = spread("cycles", theirs or own)
    if base:
        row |= spread("ratio", [(b + c) / (a + d) for a, b, c, d in turns])
        more = [(b + c - a - d) / 2 for a, b, c, d in turns]
        row["more"] = round(statistics.median(more), 2)
    return row


def rows_of(bench, argv, routes, frames, rounds):
    """Run bench_tags, whose command begins with argv, with these files. Return its rows {name: (base,
    turns)}, and the number of frames that left wrong."""
    argv = [*argv, bench.cpu, routes, frames, rounds, rig.option("TURN_US", 1000)]
    argv += [f"*{part}*" for part in rig.options("ROWS", [""])]
    text = sources.run(["nice", "-n", "-15", *map(str, argv)])
    lines = [json.loads(x) for x in text.splitlines() if x.startswith("{")]
    rows = {x["row"]: (x["base"], x["turns"]) for x in lines if "row" in x}
    return rows, sum(x.get("wrong", 0) for x in lines)


def measure(bench):
    """Measure all rows, on the full table and on ten routes."""
    bench.use("full")
    rounds = rig.option("REPS", 21 if rig.quick() else 101)
    limit = command.limit() if rig.option("ISA", "") else ""
    program = ["env", f"ISA={limit}", bench.build / "tests/bench/bench_tags"]
    rows, wrong = rows_of(bench, program, bench.routes[4], bench.frames[4], rounds)
    for name, (base, _) in rows.items():
        row = {"bench": "tags", "name": name, "base": base}
        bench.emit(row | figures(rows, name, base) | {"runs": rounds})
    bench.emit({"bench": "tags-right", "program": "ours", "wrong_port": wrong})


def goals(lines):
    """Return the goals in the form of forward/report.py. One tag costs at most 5 %. VRFs cost
    nothing if the lower bound of the ratio is at most 1. Labels have goals of rates."""
    for r in lines:
        if r["bench"] != "tags" or not r["base"]:
            continue
        got, low, high = (r[f"ratio{end}"] for end in ("", "_low", "_high"))
        said = f"{got:.3f}x ({low:.3f}..{high:.3f})"
        if r["name"] in ONE:
            met = verdict(got, ONE_TAG, 1.0, more=False)
            yield f"cycles with {r['name']} / with none", "1.05x", "1.0x", said, met
        elif r["name"] == RULES:
            said = f"{1 / got:.3f}x ({1 / high:.3f}..{1 / low:.3f})"
            what = f"rate with {RULES} / without"
            yield what, "0.6x", "0.8x", said, verdict(1 / got, 0.6, 0.8)
        elif r["name"] == STRICT:
            said = f"{1 / got:.3f}x ({1 / high:.3f}..{1 / low:.3f})"
            what = f"rate with {STRICT} / without"
            yield what, "0.85x", "0.95x", said, verdict(1 / got, 0.85, 0.95)
        elif r["name"] == SESSIONS:
            said = f"{1 / got:.3f}x ({1 / high:.3f}..{1 / low:.3f})"
            what = f"rate with {SESSIONS} / without"
            yield what, "0.99x", "0.998x", said, verdict(1 / got, 0.99, 0.998)
        elif r["name"] in TUNNELS or r["name"] in OUTER:
            rate, aim = OUTER.get(r["name"], (0.55, 0.7))
            said = f"{1 / got:.3f}x ({1 / high:.3f}..{1 / low:.3f})"
            what = f"rate {r['name']} / of plain IPv4"
            yield what, f"{rate}x", f"{aim}x", said, verdict(1 / got, rate, aim)
        elif r["name"] in LABELS + VPN:
            rate, aim = (0.9, 1.1) if r["name"] in LABELS else (0.75, 0.9)
            what = f"rate with {r['name']} / of plain IPv4"
            said = f"{1 / got:.3f}x ({1 / high:.3f}..{1 / low:.3f})"
            yield what, f"{rate}x", f"{aim}x", said, verdict(1 / got, rate, aim)
        elif r["name"] == MACVLANS:
            what = "cycles of a port with 255 macvlans / without"
            yield what, "1.0x", "", said, "met" if low <= 1.0 else "not met"
        elif r["name"].endswith(IN_VRF):
            what = f"cycles of {r['name']} / of table main"
            yield what, "1.0x", "", said, "met" if low <= 1.0 else "not met"


def report(lines, out):
    """Print the table."""
    rows = [("frames", "cycles a packet", "min", "max", "of", "ratio", "min", "max",
             "95 %", "", "cycles more")]  # fmt: skip
    all_ = [r for r in lines if r["bench"] == "tags"]
    for r in all_:
        cells = [f"{r[f'cycles{end}']:.1f}" for end in ENDS]
        if r["base"]:
            cells += [
                r["base"],
                *(f"{r[f'ratio{end}']:.3f}" for end in (*ENDS, "_low", "_high")),
            ]
            cells.append(f"{r['more']:+.1f}")
        else:
            cells += ["-"] * 7
        rows.append((r["name"], *cells))
    if all_:
        print(f"\nfull table, v4, one forwarder, medians of {all_[0]['runs']} rounds; below, ten "
              "routes in table main, or in each VRF", file=out)  # fmt: skip
        print_columns(rows, out)


if __name__ == "__main__":
    sys.exit(rig.run("bench-tags", measure, report, rig.Bench.tables))
