# SPDX-License-Identifier: BSD-3-Clause
"""Make tables and goals of the forwarding benchmarks from their JSON lines. A goal is compared,
never enforced, because machines differ."""

from fib_report import HEAD as GOAL_HEAD
from fib_report import print_columns, unique

HEAD = ("program", "Mpps", "min", "max", "cycles", "min", "max", "wrong")
# (table, traffic, name, peers of which the best counts, at least, aim)
RATIOS = [
    ("full", "v4", "v4 full table / l3fwd's best", ("l3fwd",), 1.0, 1.3),
    ("few", "v4", "v4 4 routes / l3fwd LPM", ("l3fwd-lpm",), 0.85, 1.0),
    ("full", "v6", "v6 full table / l3fwd FIB", ("l3fwd-fib-4B",), 1.2, 2.0),
]


def rates(lines, table, traffic):
    """Return the rows of one table and traffic."""
    return [
        r
        for r in lines
        if r["bench"] == "forward" and (r["table"], r["traffic"]) == (table, traffic)
    ]


def print_rates(lines, out):
    """Print a block for each table and traffic."""
    for table, traffic in dict.fromkeys(
        (r["table"], r["traffic"]) for r in lines if r["bench"] == "forward"
    ):
        rows = [HEAD]
        for r in rates(lines, table, traffic):
            cells = [f"{r[k]:.1f}" for k in ("mpps", "mpps_min", "mpps_max")]
            cells += [f"{r[k]:.1f}" for k in ("cycles", "cycles_min", "cycles_max")]
            wrong = r.get("wrong_port")
            wrong = "-" if wrong is None else wrong + r["wrong_header"]
            rows.append((r["program"], *cells, wrong))
        length = rates(lines, table, traffic)[0]["len"]
        runs = rates(lines, table, traffic)[0]["runs"]
        print(f"\n{table} table, {traffic}, {length} octets, medians of {runs}", file=out)
        print_columns(rows, out)
        for r in rates(lines, table, traffic):
            print_stages(r["program"], r, out)


def print_stages(name, row, out):
    """Print the cycles of our stages, if the row has them."""
    if "stages" in row:
        cells = ", ".join(f"{stage} {took}" for stage, took in row["stages"].items())
        print(f"  {name}, cycles a packet by stage: {cells}", file=out)


def print_sweeps(lines, out):
    """Print a block for each sweep and table, with a row for each value and a column for each
    program."""
    sweeps = [r for r in lines if r["bench"] == "sweep"]
    for what, table in unique((r["what"], r["table"]) for r in sweeps):
        here = [r for r in sweeps if (r["what"], r["table"]) == (what, table)]
        programs = unique(r["program"] for r in here)
        rows = [(f"{what}: Mpps (min..max)", *programs)]
        for value in sorted({r["value"] for r in here}):
            of = {r["program"]: r for r in here if r["value"] == value}
            cells = [sweep_cell(of.get(p), what) for p in programs]
            rows.append((f"2^{value:g}" if what == "set" else value, *cells))
        print(f"\n{table} table, v4, medians of {here[0]['runs']}", file=out)
        print_columns(rows, out)
        for row in here:
            print_stages(f"{row['program']}, {what} {row['value']}", row, out)


def sweep_cell(row, what):
    """Format a rate. With octets it has also Gbit/s on the wire, with preamble and gap. With cores
    it has also the ratio to the fewest cores."""
    if row is None:
        return "-"
    more = ""
    if what == "len":
        more = f", {row['mpps'] * (row['value'] + 20) * 8e-3:.0f} G"
    elif what == "cores":
        more = (
            f", {row['scaling']:.2f}x ({row['scaling_low']:.2f}..{row['scaling_high']:.2f})"
        )
    return f"{row['mpps']:.1f} ({row['mpps_min']:.0f}..{row['mpps_max']:.0f}){more}"


def verdict(got, least, aim, more=True):
    """Compare a figure with its goal."""
    sign = 1 if more else -1
    if sign * got >= sign * aim:
        return "met, and the aim"
    return "met" if sign * got >= sign * least else "not met"


def goals(lines):
    """Yield (name, at least, aim, measured, verdict)."""
    yield from rate_goals(lines)
    yield from idle_goals(lines)


def rate_goals(lines):
    """Yield the goals of ratios to peers and of cycles."""
    for table, traffic, what, names, least, aim in RATIOS:
        rows = rates(lines, table, traffic)
        ours = [r["mpps"] for r in rows if r["program"] == "ours"]
        theirs = [r["mpps"] for r in rows if r["program"].startswith(names)]
        if ours and theirs:
            got = ours[0] / max(theirs)
            yield what, f"{least:g}x", f"{aim:g}x", f"{got:.2f}x", verdict(got, least, aim)
    for r in rates(lines, "full", "v4"):
        if r["program"] == "ours":
            got = r["cycles"]
            yield (
                "cycles a packet, v4 full table",
                "54",
                "40",
                f"{got:.1f}",
                verdict(got, 54, 40, more=False),
            )


def idle_goals(lines):
    """Yield the goals of an idle router: its CPU use, and the delay of the first packet."""
    for r in lines:
        if r["bench"] == "idle" and r["frames"]:
            got = r["process_percent"]
            yield "idle, ports to be polled: of a core", "2 %", "2 %", f"{got:.2f} %", verdict(
                got, 2, 2, more=False
            )
            lost = r["lost"]
            late = r["first_max_us"] if lost == 0 else float("inf")
            said = f"{r['first_us']:.0f} us, at most {r['first_max_us']:.0f}, {lost} lost"
            yield "first packet after 20 ms of nothing", "1000 us", "1000 us", said, verdict(
                late, 1000, 1000, more=False
            )


def tables(lines, out):
    """Print all tables."""
    print_rates(lines, out)
    print_sweeps(lines, out)
    rows = [GOAL_HEAD, *goals(lines)]
    if len(rows) > 1:
        print("\ngoals", file=out)
        print_columns(rows, out)
    for r in lines:
        if r["bench"] == "skipped":
            print(f"\nskipped: {r['what']}: {r['why']}", file=out)
