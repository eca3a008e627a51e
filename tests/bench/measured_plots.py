# SPDX-License-Identifier: BSD-3-Clause
"""Draw the plots of the manual's page of performance from the data of measured.json."""

import svg

LATE = ((1, "p50", 0), (2, "p99", 1), (3, "p99.9", 2))  # index in a row, name, color


def rates(data):
    """Draw the rates of one core against the best mode of l3fwd."""
    groups = [
        (r["what"], [
            (0, r[who][0], r[who][1], r[who][2], f"{r[who][0]:.1f}{more}")
            for who, more in (("ours", ""), ("theirs", f" {r['peer']}"))
        ])
        for r in data["forward"]["rows"]
    ]  # fmt: skip
    title = "Forwarding rate of one core (median; line: minimum to maximum)"
    return svg.bars(title, "million packets a second", groups, ["fpm-dataplane", "l3fwd, best mode"])


def swept(data, part, title, unit, name=lambda x: f"{x:g}"):
    """Draw the rates of a sweep."""
    rows = data[part]["rows"]
    # The axis is logarithmic. The destinations are logarithms already.
    value = (lambda x: 2**x) if part == "set" else (lambda x: x)
    values = sorted({x for r in rows for x, _ in r["mpps"]})
    ticks = [(value(x), name(x)) for x in values]
    series = [
        ("fpm-dataplane" if r["what"] == "ours" else r["what"],
         [(value(x), y) for x, y in r["mpps"]], n, False)
        for n, r in enumerate(rows)
    ]  # fmt: skip
    return svg.lines(title, unit, "million packets a second", ticks, series, (True, False))


def latency(data):
    """Draw percentiles of the latency by load, ours and testpmd io at the same rate."""
    rows = data["latency"]["rows"]
    series = [
        (f"{name} {percentile}", [(r["load"], r[who][at]) for r in rows if who in r],
         color, who == "io")
        for who, name in (("ours", "fpm-dataplane"), ("io", "testpmd io"))
        for at, percentile, color in LATE
    ]  # fmt: skip
    ticks = [(r["load"], f"{r['load']:g}") for r in rows]
    x_unit, y_unit = "load, % of the maximum rate", "microseconds"
    return svg.lines("Latency by load", x_unit, y_unit, ticks, series, (False, True))


def convergence(data):
    """Draw the time from an event until packets follow it."""
    groups = [
        (r["what"], [(*r["ms"], None, None, " to ".join(f"{x:g}" for x in sorted({*r["ms"]})))])
        for r in data["fpm"]["rows"]
        if "ms" in r
    ]
    title = "Time until packets follow a change"
    return svg.bars(title, "milliseconds", groups, [""], log=True)


def drawn(data):
    """Return {file name: SVG text}, a plot for each part that the data has."""
    plots = {
        "rates.svg": ("forward", lambda: rates(data)),
        "frame-size.svg": ("len", lambda: swept(
            data, "len", "Rate of one core by frame size, full IPv4 table", "octets a frame")),
        "burst.svg": ("burst", lambda: swept(
            data, "burst", "Rate of one core by frames received at once, full IPv4 table",
            "frames that the port delivers at once")),
        "destinations.svg": ("set", lambda: swept(
            data, "set", "Rate of one core by number of destinations",
            "destinations, each in a /24 of its own",
            lambda x: f"2^{x:g}" if x == int(x) else f"{2**x / 1e6:.1f} M")),
        "latency.svg": ("latency", lambda: latency(data)),
        "convergence.svg": ("fpm", lambda: convergence(data)),
    }  # fmt: skip
    return {name: draw() for name, (part, draw) in plots.items() if data.get(part, {}).get("rows")}
