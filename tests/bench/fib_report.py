# SPDX-License-Identifier: BSD-3-Clause
"""Read the JSON lines of bench_fib. Print tables and the ratios that are goals, and draw a plot. A
goal is compared, never enforced, because machines differ."""

import sys

HEAD = ("goal", "at least", "aim", "measured", "")
MIB = 1 << 20


class Results:
    """The JSON lines of one table."""

    def __init__(self, lines, table):
        self.lines = [line for line in lines if line.get("table") == table]
        self.table = table

    def find(self, bench, **want):
        """Return the first line with these values. Goals are about the first measured variant."""
        for line in self.lines:
            if line["bench"] == bench and all(line.get(k) == v for k, v in want.items()):
                return line
        return None

    def ratio(self, ours, theirs, bench, **want):
        a, b = (self.find(bench, impl=i, **want) for i in (ours, theirs))
        return a["mlps"] / b["mlps"] if a and b else None


def rate_goals(res):
    """Yield (what, at least, aim, measured) of the lookups, a row for each stream."""
    vector, scalar, base = (
        "poptrie-avx512",
        "poptrie-scalar",
        {"batch": 64, "hash": "prefix"},
    )
    four = [
        (vector, "rte_fib-4B-avx512", "idle", {"random": (4, 6), "inprefix": (2.5, 3.5)}),
        (vector, "rte_fib-8B-avx512", "idle", {"random": (4, 6), "inprefix": (2.5, 3.5)}),
        (
            vector,
            "rte_fib-2B-avx512",
            "idle",
            {"random": (4, 5.5), "inprefix": (0.9, 1.1), "zipf": (0.8, 1.0)},
        ),
        (vector, "rte_fib-2B-avx512", "contended", {"inprefix": (2, 3), "zipf": (2, 3)}),
        (scalar, "rte_fib-2B-scalar", "idle", {"random": (3, 4), "inprefix": (1.0, 1.3)}),
    ]
    six = [(vector, "rte_fib6-4B-avx512", "idle", {"inprefix": (2, 4), "zipf": (1.8, 2.5)})]
    for bench, rows in (("fib4", four), ("fib6", six)):
        for ours, theirs, l3, streams in rows:
            for stream, (least, aim) in streams.items():
                got = res.ratio(ours, theirs, bench, l3=l3, stream=stream, **base)
                what = f"{bench} {ours} / {theirs}, {stream}, {l3}"
                line = res.find(bench, l3=l3, stream=stream, **base)
                if line and l3 == "contended":
                    # After a short chase the ratio is near that of an idle machine: the second core has
                    # another L3.
                    what += f" (chase {min(line['chase_8mib_ns']):.0f} ns)"
                yield what, least, aim, got, "x", True


def other_goals(res):
    """Yield the goals of bytes, updates and builds, where less is better."""
    ours = "poptrie-scalar"
    for family, least, aim in ((4, 7, 4.5), (6, 12, 4)):
        touched = [
            line["touched"]
            for line in res.lines
            if line["bench"] == f"lines{family}"
            and line["impl"].startswith("poptrie")
            and (family, line["stream"]) != (6, "random")  # all keys are misses
        ]
        got = max(touched) / MIB if touched else None
        yield f"fib{family} touched by lookups", least, aim, got, " MiB", False
    for family in (4, 6):
        for kind in ("random", "stream"):
            line = res.find(f"update{family}", impl=ours, kind=kind) or {}
            what = f"update{family} {kind}"
            yield f"{what}, mean", 1.5, 0.5, line.get("mean_us"), " us", False
            yield f"{what}, p99.9", 10, 5, line.get("p999_us"), " us", False
        for kind in ("worst-short", "worst-default"):
            line = res.find(f"update{family}", impl=ours, kind=kind) or {}
            length = f" (a /{line['len']})" if line.get("len") else ""
            got = line.get("worst_us")
            yield f"update{family} {kind}{length}", 200, 50, got, " us", False
    line = res.find("build4", impl=ours) or {}
    yield f"build4 of {line.get('routes')} routes", 150, 50, line.get(
        "build_ms"
    ), " ms", False


def print_goals(res, out):
    rows = []
    for what, least, aim, got, unit, more in [*rate_goals(res), *other_goals(res)]:
        if got is None:
            continue
        verdict = "not met"
        if got >= least if more else got <= least:
            verdict = "met"
        if got >= aim if more else got <= aim:
            verdict = "met, and the aim"
        rows.append(
            (what, f"{least:g}{unit}", f"{aim:g}{unit}", f"{got:.2f}{unit}", verdict)
        )
    if rows:
        print(f"\n{res.table}: goals", file=out)
        print_columns([HEAD, *rows], out)


def print_columns(rows, out):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [
            str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths))
        ]
        print("  " + "  ".join(cells).rstrip(), file=out)


def unique(values):
    return list(dict.fromkeys(values))


def print_rates(res, out):
    """Print a block for each assignment of next hops, L3 and batch, with a column for each stream."""
    rates = [line for line in res.lines if line["bench"] in ("fib4", "fib6")]
    keys = ("nexthops", "hash", "l3", "batch")
    for block in unique(tuple(line[k] for k in keys) for line in rates):
        here = [line for line in rates if tuple(line[k] for k in keys) == block]
        streams = unique(line["stream"] for line in here)
        rows = [("M lookups/s: median (min..max)", *streams)]
        for impl in unique(line["impl"] for line in here):
            cells = {line["stream"]: line for line in here if line["impl"] == impl}
            rows.append((impl, *(rate_cell(cells.get(s)) for s in streams)))
        chases = {s: next(x for x in here if x["stream"] == s) for s in streams}
        rows.append(
            (
                "8 MiB chase, lowest, highest: ns",
                *("{:.0f}, {:.0f}".format(*chases[s]["chase_8mib_ns"]) for s in streams),
            )
        )
        hops, by, l3, batch = block
        print(f"\n{res.table}: {hops} next hops by {by}, {l3} L3, batch {batch}", file=out)
        print_columns(rows, out)


def rate_cell(line):
    if not line:
        return "-"
    return f"{line['mlps']:.0f} ({line['min']:.0f}..{line['max']:.0f})"


def print_builds(res, out):
    rows = [("structure", "create ms", "build ms", "MiB", "of it lookups", "pages", "")]
    for line in res.lines:
        if line["bench"] not in ("build4", "build6"):
            continue
        same = {k: line[k] for k in ("impl", "nexthops", "hash")}
        b = res.find(line["bench"].replace("build", "bytes"), **same)
        if len(rows) > 1 and any(row[0] == line["impl"] for row in rows[1:]):
            continue
        rows.append(
            (
                line["impl"],
                line["create_ms"],
                line["build_ms"],
                f"{b['total'] / MIB:.1f}",
                f"{b['lookup'] / MIB:.1f}",
                b["pages"],
                line.get("note", ""),
            )
        )
    if len(rows) > 1:
        print(f"\n{res.table}: builds and bytes", file=out)
        print_columns(rows, out)


def print_touched(res, out):
    lines = [line for line in res.lines if line["bench"].startswith("lines")]
    if not lines:
        return
    streams = unique(line["stream"] for line in lines)
    rows = [("MiB of cache lines touched", *streams)]
    for impl in unique(line["impl"] for line in lines):
        cells = {line["stream"]: line["touched"] for line in lines if line["impl"] == impl}
        rows.append(
            (impl, *(f"{cells[s] / MIB:.2f}" if s in cells else "-" for s in streams))
        )
    print(f"\n{res.table}: memory that the streams touch", file=out)
    print_columns(rows, out)


def print_updates(res, out):
    rows = [
        ("updates, us", "n", "mean", "p50", "p99", "p99.9", "max", "raw max", "gap max")
    ]
    for line in res.lines:
        if not line["bench"].startswith("update"):
            continue
        name = f"{line['impl']} {line['kind']}"
        if "worst_us" in line:
            name += f" (/{line['len']}; median of 9)"
            cells = (line["tried"], "", line["worst_us"], "", "")
        else:
            cells = (line["changes"], *(line[k] for k in ("mean_us", "p50_us", "p99_us")))
            cells += (line["p999_us"],)
            if line["refused"]:
                name += f" ({line['refused']} refused)"
        cells += ("" if "worst_us" in line else line["max_us"],)
        raw = line.get("raw_max_us", line["max_us"])
        rows.append((name, *cells, raw, line["gap_max_us"]))
    if len(rows) > 1:
        print(f"\n{res.table}: updates, each published alone", file=out)
        print_columns(rows, out)


def tables(lines, out=sys.stderr):
    for table in unique(line["table"] for line in lines if "table" in line):
        res = Results(lines, table)
        for part in (print_rates, print_builds, print_touched, print_updates, print_goals):
            part(res, out)
    for line in lines:
        if line["bench"] == "machine":
            quiet = (
                "quiet"
                if line["gap_max_us"] < 100 and line["others_busy"] < 0.1
                else "noisy"
            )
            print(
                f"\nmachine: {line['cpu']}, {line['cores']} cores, kernel {line['kernel']}, "
                f"{line['dpdk']}; {quiet} at the start: {line['gaps_a_second']} gaps/s, longest "
                f"{line['gap_max_us']} us, 8 MiB chase {line['chase_8mib_ns']} ns, other cores "
                f"{line['others_busy']:.0%} busy",
                file=out,
            )


def plot(lines, path):
    """Draw bars of the first assignment of next hops at its largest batch. False: no matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return False
    rates = [line for line in lines if line["bench"] in ("fib4", "fib6")]
    panels = []
    for table in unique(line["table"] for line in rates):
        of = [line for line in rates if line["table"] == table]
        first = of[0]
        of = [
            line
            for line in of
            if all(line[k] == first[k] for k in ("nexthops", "hash", "batch"))
        ]
        panels += [(table, l3, of) for l3 in unique(line["l3"] for line in of)]
    if not panels:
        return False
    fig, axes = pyplot.subplots(
        len(panels), 1, figsize=(11, 3.6 * len(panels)), squeeze=False, layout="constrained"
    )
    for axis, (table, l3, of) in zip(axes[:, 0], panels):
        draw(axis, [line for line in of if line["l3"] == l3])
        axis.set_title(
            f"{table}, {of[0]['nexthops']} next hops, batch {of[0]['batch']}, {l3} L3"
        )
    fig.savefig(path, dpi=110)
    return True


def draw(axis, lines):
    streams, impls = (unique(line[k] for line in lines) for k in ("stream", "impl"))
    width = 0.85 / len(impls)
    for i, impl in enumerate(impls):
        cell = {line["stream"]: line for line in lines if line["impl"] == impl}
        at = [x + i * width for x, s in enumerate(streams) if s in cell]
        mid = [cell[s]["mlps"] for s in streams if s in cell]
        low = [cell[s]["mlps"] - cell[s]["min"] for s in streams if s in cell]
        high = [cell[s]["max"] - cell[s]["mlps"] for s in streams if s in cell]
        color = None if impl.startswith("poptrie") else f"{0.35 + 0.5 * i / len(impls):.2f}"
        axis.bar(
            at, mid, width, yerr=[low, high], label=impl, color=color, error_kw={"lw": 0.6}
        )
    axis.set_xticks([x + 0.4 for x in range(len(streams))], streams)
    axis.set_ylabel("M lookups/s")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
