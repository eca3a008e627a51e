#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compute throughput, mesh load, loss on a failure and table memory of N boxes, direct and VLB, from the
figures of other benchmarks (scale.py is the model): JSON lines on stdout, tables on stderr; options from
the environment (tests/bench/README.md). It measures nothing and needs no root.

It also compares the model with the loads that the scenario cluster-vlb has measured. The exit code is 1
if they differ."""

import glob
import json
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from bench import command, scale
from bench.fib_report import print_columns

OPTIONS = {"FILES": "build/bench/*.jsonl", "BOXES": "2,4,8,16", "CORES": "4", "EXT": "100", "MESH": "100",
           "OCTETS": "512", "ROUTES": "1200000", "MESH_JSON": ""}  # fmt: skip
# Figures, from the environment or else from the files: Mpps per core, octets of RIB and FIB per route,
# octets per route of the dataplane, zebra and bgpd of a box together, ms until a group stops using a dead
# member, ms until routing has another path.
FIGURES = ("MPPS", "ROUTE_OCTETS", "BOX_ROUTE_OCTETS", "MEMBER_MS", "REROUTE_MS")
MANY = 50_000  # with fewer routes most memory of a box is not that of routes
NOISE = 0.1  # tolerated difference of the boxes that a packet passes
PATTERNS = {"uniform": scale.uniform, "hot pair": scale.hot}


def read(paths):
    """Return the JSON lines of files."""
    lines = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(line) for line in file if line.startswith("{")]
    return lines


def figures(lines, given):
    """Return {name: value} of FIGURES. `given` has the values of the user; None: not measured."""
    found = dict.fromkeys(FIGURES)
    for row in lines:
        kind = row.get("bench")
        if kind == "forward" and (row["table"], row["traffic"], row["program"]) == ("full", "v4", "ours"):
            found["MPPS"] = row["mpps"]
        elif kind == "memory":
            found["ROUTE_OCTETS"] = row["median"] * 2**20 / row["routes"]
        elif kind == "mesh-memory" and row["routes"] >= MANY:
            found["BOX_ROUTE_OCTETS"] = max(sum(box.values()) for box in row["mib"].values()) * 2**20 / row["routes"]
        elif kind == "link-loss":
            found["MEMBER_MS"] = row["median"] / 1000
        elif kind == "mesh-loss":
            found["REROUTE_MS"] = row["reroute_ms"]
    return {name: float(given[name]) if given.get(name) else value for name, value in found.items()}


def compute(option, figure):
    """Yield the JSON objects of each number of boxes, pattern and mode."""
    box = scale.Box(
        figure["MPPS"], int(option["CORES"]), float(option["EXT"]), float(option["MESH"]), int(option["OCTETS"])
    )
    for n in map(int, option["BOXES"].split(",")):
        for name, pattern in PATTERNS.items():
            for mode in scale.MODES:
                yield {"bench": "scale", "boxes": n, "pattern": name, "mode": mode,
                       **one(n, pattern, mode, box, option, figure)}  # fmt: skip


def one(n, pattern, mode, box, option, figure):
    """Return the values of one number of boxes, pattern and mode."""
    boxes = names(n)
    most, limit = scale.throughput(pattern(boxes), mode, boxes, box)
    more, _ = scale.throughput(pattern(names(n + 1)), mode, names(n + 1), box)
    demand = {pair: rate * most / sum(pattern(boxes).values()) for pair, rate in pattern(boxes).items()}
    load = scale.loads(demand, mode, boxes)
    times = [ms / 1000 if (ms := figure[key]) is not None else None for key in ("MEMBER_MS", "REROUTE_MS")]
    row = {
        "mpps": round(most, 2),
        "limit": limit,
        "one_more_mpps": round(more - most, 2),
        "boxes_passed": round(scale.boxes_passed(demand, mode, boxes), 3),
        "mesh_max_gbps": round(max(load.values()) / box.packets(1), 2),
        "mesh_used": sum(rate > 0 for rate in load.values()),
        "mesh_links": len(load),
    }
    for what, dead in (("link", frozenset(boxes[:2])), ("box", boxes[-1])):
        lost = scale.loss(demand, mode, boxes, dead, *times)
        row[f"{what}_lost_packets"] = None if lost["packets"] is None else round(lost["packets"] * 1e6)
        row[f"{what}_gone_share"] = round(lost["gone"] / sum(demand.values()), 4)
    if figure["ROUTE_OCTETS"] is not None:
        row["table_mib"] = round(scale.table_mib(int(option["ROUTES"]), figure["ROUTE_OCTETS"]), 1)
    if figure["BOX_ROUTE_OCTETS"] is not None:
        row["box_mib"] = round(scale.table_mib(int(option["ROUTES"]), figure["BOX_ROUTE_OCTETS"]))
    return row


def names(n):
    """Return the names of n boxes."""
    return [f"r{i}" for i in range(1, n + 1)]


def check(rows):
    """Compare the measured loads of the mesh links with the model. Yield a JSON object for each."""
    for row in rows:
        if row.get("bench") != "mesh-loads":
            continue
        packets, loads = ({tuple(k.split()): n for k, n in row[key].items()} for key in ("packets", "loads"))
        boxes = sorted({box for link in loads for box in link})
        expected = scale.loads(packets, row["mode"], boxes)
        off = scale.differences(packets, row["mode"], loads, row["each"])
        passed = scale.boxes_passed(packets, row["mode"], boxes)
        differ = {" ".join(link): seen for link, seen in off.items()}
        if abs(row["boxes_passed"] - passed) > NOISE:
            differ["boxes"] = (row["boxes_passed"], round(passed, 3), NOISE)
        yield {
            "bench": "scale-check", "mode": row["mode"], "pairs": len(packets), "packets": sum(packets.values()),
            "max_measured": max(loads.values()), "max_model": round(max(expected.values()), 1),
            "boxes_measured": row["boxes_passed"],
            "boxes_model": round(passed, 3),
            "differences": differ,
        }  # fmt: skip


def shown(value):
    """Return a value as text."""
    if value is None:
        return "not measured"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def tables(lines, figure, out=sys.stderr):
    """Print all tables."""
    print("\nbench-scale: figures", file=out)
    rows = [(name, shown(value if value is None else round(value, 3))) for name, value in figure.items()]
    print_columns([("figure", "value"), *rows], out)
    keys = ("mpps", "limit", "one_more_mpps", "boxes_passed", "mesh_max_gbps", "link_lost_packets",
            "box_lost_packets", "box_gone_share", "table_mib", "box_mib")  # fmt: skip
    rows = [
        (f"{r['boxes']} boxes, {r['pattern']}, {r['mode']}", *(shown(r.get(key)) for key in keys))
        for r in lines
        if r["bench"] == "scale"
    ]
    if rows:
        print("\nN boxes", file=out)
        print_columns([("", *keys), *rows], out)
    rows = [
        (f"{r['mode']}, {r['pairs']} pairs", *(shown(r[k]) for k in ("packets", "max_measured", "max_model",
         "boxes_measured", "boxes_model")), "differs" if r["differences"] else "equal")
        for r in lines if r["bench"] == "scale-check"
    ]  # fmt: skip
    if rows:
        print("\nthe lab of cluster-vlb beside the model", file=out)
        head = ("", "packets", "busiest link", "model", "boxes a packet", "model", "")
        print_columns([head, *rows], out)


def main():
    """Returns the exit code."""
    option = {name: os.environ.get(name) or value for name, value in OPTIONS.items()}
    paths = [path for word in option["FILES"].split() for path in sorted(glob.glob(word))]
    measured = read([option["MESH_JSON"]]) if option["MESH_JSON"] else []
    figure = figures([*read(paths), *measured], os.environ)
    lines = list(check(measured))
    if figure["MPPS"] is None:
        print("bench-scale: no rate of a core: run `make bench-forward`, or give MPPS=", file=sys.stderr)
    else:
        lines += compute(option, figure)
    lines.append(command.line("bench-scale", {*OPTIONS, *FIGURES}))
    for line in lines:
        print(json.dumps(line))
    tables(lines, figure)
    differ = any(r.get("differences") for r in lines)
    return 1 if differ else 2 if figure["MPPS"] is None and not measured else 0


if __name__ == "__main__":
    sys.exit(main())
