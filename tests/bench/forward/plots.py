# SPDX-License-Identifier: BSD-3-Clause
"""Draw plots of the forwarding benchmarks' JSON lines. Each function draws to a file and returns
True. It returns False without data or without matplotlib."""

from fib_report import unique

TAILS = ("p50", "p99", "p999", "max")


def figure(n=1, height=4.0):
    """Return (figure, n axes below one another), or (None, None) without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None, None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(
        n, 1, figsize=(10, height * n), squeeze=False, layout="constrained"
    )
    return fig, axes[:, 0]


def save(fig, path):
    """Write the file. Return True."""
    fig.savefig(path, dpi=110)
    return True


def bars(axis, names, mid, low, high):
    """Draw medians as bars and the spread as whiskers."""
    spread = [[m - x for m, x in zip(mid, low)], [x - m for m, x in zip(mid, high)]]
    colors = ["C0" if name.startswith("ours") else "0.6" for name in names]
    axis.barh(range(len(names)), mid, xerr=spread, color=colors, error_kw={"lw": 0.8})
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()


def rates(lines, path):
    """Draw bench_forward: a panel for each table and traffic."""
    rows = [r for r in lines if r["bench"] == "forward"]
    panels = unique((r["table"], r["traffic"]) for r in rows)
    fig, axes = figure(len(panels), 2.4) if panels else (None, None)
    if fig is None:
        return False
    for axis, (table, traffic) in zip(axes, panels):
        here = [r for r in rows if (r["table"], r["traffic"]) == (table, traffic)]
        columns = (
            [r[k] for r in here] for k in ("program", "mpps", "mpps_min", "mpps_max")
        )
        bars(axis, *columns)
        axis.set_title(f"{table} table, {traffic}, {here[0]['len']} octets")
        axis.set_xlabel("million packets a second")
    return save(fig, path)


def stages(lines, path):
    """Draw bench_forward: cycles a packet by stage, stacked."""
    rows = [r for r in lines if r["bench"] == "forward" and "stages" in r]
    fig, axes = figure() if rows else (None, None)
    if fig is None:
        return False
    names = [f"{r['table']} {r['traffic']}" for r in rows]
    left = [0.0] * len(rows)
    for stage in rows[0]["stages"]:
        took = [r["stages"][stage] for r in rows]
        axes[0].barh(names, took, left=left, label=stage)
        left = [a + b for a, b in zip(left, took)]
    axes[0].invert_yaxis()
    axes[0].set_xlabel("cycles a packet")
    axes[0].legend(ncols=4, fontsize=8)
    return save(fig, path)


def sweep(lines, path, what, label, value=lambda r: r["value"]):
    """Draw a line for each program and table over the varied value, with the spread as a band."""
    rows = [r for r in lines if r["bench"] == "sweep" and r["what"] == what]
    tables = unique(r["table"] for r in rows)
    fig, axes = figure(len(tables), 3.2) if rows else (None, None)
    if fig is None:
        return False
    for axis, table in zip(axes, tables):
        for program in unique(r["program"] for r in rows if r["table"] == table):
            here = [r for r in rows if (r["table"], r["program"]) == (table, program)]
            here.sort(key=value)
            at = [value(r) for r in here]
            ours = program == "ours"
            (line,) = axis.plot(at, [r["mpps"] for r in here], "o-", lw=2.2 if ours else 1,
                                label=program)  # fmt: skip
            axis.fill_between(at, [r["mpps_min"] for r in here],
                              [r["mpps_max"] for r in here], alpha=0.12,
                              color=line.get_color())  # fmt: skip
        axis.set_xscale("log", base=2)
        axis.set_xticks(unique(value(r) for r in rows),
                        [str(r["value"]) for r in unique_rows(rows, value)])  # fmt: skip
        axis.set_ylim(bottom=0)
        axis.set_title(f"table: {table}")
        axis.set_ylabel("million packets a second")
        axis.legend(fontsize=7)
    axes[-1].set_xlabel(label)
    return save(fig, path)


def unique_rows(rows, value):
    """Return the first row of each value."""
    return list({value(r): r for r in reversed(rows)}[v] for v in unique(map(value, rows)))


def lengths(lines, path):
    """Draw the rates by octets of a frame."""
    return sweep(lines, path, "len", "octets of a frame")


def bursts(lines, path):
    """Draw the rates by frames in each receive call."""
    return sweep(lines, path, "burst", "maximum of frames received at once")


def sets(lines, path):
    """Draw the rates by the working set."""
    return sweep(lines, path, "set", "destinations, 2^n", lambda r: 2 ** r["value"])


def cores(lines, path):
    """Draw the rates by forwarding cores."""
    return sweep(lines, path, "cores", "forwarding cores")


def loss(lines, path):
    """Draw bench_loss: frames that found no descriptor, by load."""
    rows = [r for r in lines if r["bench"] == "loss"]
    depths = unique(r["depth"] for r in rows)
    fig, axes = figure(len(depths), 3.2) if rows else (None, None)
    if fig is None:
        return False
    for axis, depth in zip(axes, depths):
        here = [r for r in rows if r["depth"] == depth]
        for program, doing in unique((r["program"], r["doing"]) for r in here):
            of = [r for r in here if (r["program"], r["doing"]) == (program, doing)]
            at = [r["missed"] / r["offered"] * 1e6 for r in of]
            style = "o-" if program == "ours" else "x--"
            axis.plot([r["load"] for r in of], at, style, label=f"{program} {doing}")
        axis.set_yscale("symlog", linthresh=1)
        axis.set_title(f"{depth} descriptors")
        axis.set_ylabel("missed, ppm")
        axis.legend(fontsize=7)
    axes[-1].set_xlabel("load, % of the highest rate")
    return save(fig, path)


def latency(lines, path):
    """Draw bench_latency: percentiles by load, of the dataplane and of the reference."""
    rows = [r for r in lines if r["bench"] == "latency"]
    fig, axes = figure() if rows else (None, None)
    if fig is None:
        return False
    for program in unique(r["program"] for r in rows):
        of = [r for r in rows if r["program"] == program]
        for i, tail in enumerate(TAILS):
            axes[0].plot([r["load"] for r in of], [r[f"late_{tail}_us"] for r in of],
                         "o-" if program == "ours" else "x--", color=f"C{i}",
                         label=f"{program} {tail}")  # fmt: skip
    axes[0].set_yscale("log")
    axes[0].set_xlabel("load, % of the highest rate")
    axes[0].set_ylabel("us")
    axes[0].legend(fontsize=7, ncols=2)
    return save(fig, path)


def sync(lines, path):
    """Draw bench_sync: rates above, time to publish below."""
    rows = [r for r in lines if r["bench"] == "sync"]
    timed = [r for r in rows if "publish_p50_us" in r]
    fig, axes = figure(2 if timed else 1, 3.0) if rows else (None, None)
    if fig is None:
        return False
    columns = ([r[k] for r in rows]
               for k in ("kind", "busy_mpps", "busy_mpps_min", "busy_mpps_max"))  # fmt: skip
    bars(axes[0], *columns)
    axes[0].set_xlabel("million packets a second, a thousand new FIBs a second")
    if not timed:
        return save(fig, path)
    for tail in TAILS:
        axes[1].plot(
            [r[f"publish_{tail}_us"] for r in timed], range(len(timed)), "o", label=tail
        )
    axes[1].set_yticks(range(len(timed)), [r["kind"] for r in timed])
    axes[1].invert_yaxis()
    axes[1].set_xscale("log")
    axes[1].set_xlabel("us until all readers use a new FIB")
    axes[1].legend(fontsize=7)
    return save(fig, path)
