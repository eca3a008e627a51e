# SPDX-License-Identifier: BSD-3-Clause
"""Measure one running program, and reduce many samples to a few figures."""

import math
import os
import statistics
import time

from forward.page import LOOK, TIME, TSC_HZ, percentile
from lib.wait import eventually


def sample(program, family, seconds, during=None):
    """Measure one run: Mpps and cycles a packet by the CPU time of the forwarding threads.

    during(end): as in rated()
    """
    with program.awake() as page:
        page.begin(family)
        eventually(page.shaped, 5, 0.005, "frames of the length wanted")
        time.sleep(0.05)
        before, cpu = page.counts(), program.cpu_s()
        begin = time.monotonic()
        if during is not None:
            during(begin + seconds)
        time.sleep(max(0, begin + seconds - time.monotonic()))
        after, cpu = page.counts(), program.cpu_s() - cpu
        wall = time.monotonic() - begin
        packets = after["tx"] - before["tx"]
        hz = page.get(TSC_HZ, "Q") * len(program.cpus)
    program.alive()
    if packets == 0:
        raise RuntimeError(f"{program.name} forwards nothing: see {program.log}")
    return {"mpps": packets / cpu / 1e6, "cycles": hz * cpu / packets, "cpu": cpu / wall}


def verify(program, family, seconds=0.2):
    """Check every frame that leaves, in a run of its own. Return the counts."""
    with program.awake() as page:
        page.begin(family, check=LOOK)
        before = page.counts()
        time.sleep(seconds)
        after = page.counts()
    return {k: after[k] - before[k] for k in ("tx", "wrong_port", "wrong_header")}


def rated(program, mpps, seconds, family=4, check=LOOK, depth=0, during=None):
    """Offer frames at a rate for a while, and count everything to the last frame.

    during(end) runs meanwhile and returns at time.monotonic() `end`; None: nothing runs. Return
    the frames that were offered, lost (missed: no descriptor was free; inside: taken, never sent)
    and wrong, the share of its core that the program had and that the host took away, and the
    histograms of latency and of polls in us.
    """
    with program.awake() as page:
        stolen = stolen_s(program.cpus[0])
        before, cpu, begin = page.counts(), program.cpu_s(), time.monotonic()
        page.begin(family, check=check, gap_q16=page.gap_of(mpps), depth=depth)
        end = begin + seconds
        if during is not None:
            during(end)
        time.sleep(max(0, end - time.monotonic()))
        page.end()
        wall = time.monotonic() - begin
        cpu = (program.cpu_s() - cpu) / wall
        stolen = (stolen_s(program.cpus[0]) - stolen) / wall
        time.sleep(0.02)  # the program sends the frames that it holds
        after = page.counts()
        latency, polls = page.latencies(), page.polls()
    program.alive()
    took = {k: after[k] - before[k] for k in after}
    return {
        "offered": took["rx"] + took["missed"],
        "missed": took["missed"],
        "lost_inside": took["rx"] - took["tx"],
        "wrong_port": took["wrong_port"],
        "wrong_header": took["wrong_header"],
        "cpu": round(cpu, 4),
        "stolen": round(stolen, 4),
    }, {"latency": latency, "polls": polls}


def stolen_s(cpu):
    """Return the seconds since boot that the host took from a CPU for other guests, counted in
    ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        (words,) = (x.split() for x in file if x.startswith(f"cpu{cpu} "))
    return int(words[8]) / os.sysconf("SC_CLK_TCK")


def capacity(program, family=4, reps=3, seconds=0.3, check=LOOK):
    """Return the maximum Mpps by the wall clock, with frames checked as in rated()."""
    rates = []
    for _ in range(reps):
        with program.awake() as page:
            page.begin(family, check=check)
            time.sleep(0.05)
            before, begin = page.counts()["tx"], time.monotonic()
            time.sleep(seconds)
            rates.append((page.counts()["tx"] - before) / (time.monotonic() - begin) / 1e6)
    return statistics.median(rates)


def summary(samples):
    """Return median, minimum and maximum of the samples."""
    row = {}
    for key in ("mpps", "cycles"):
        values = [s[key] for s in samples]
        row[key] = round(statistics.median(values), 2)
        row[key + "_min"], row[key + "_max"] = round(min(values), 2), round(max(values), 2)
    row["cpu_min"] = round(min(s["cpu"] for s in samples), 3)
    row["runs"] = len(samples)
    return row


def bounds(values):
    """Return the median and its 95 % confidence bounds by order statistics (binomial, p = 1/2)."""
    sorted_, n = sorted(values), len(values)
    skip, mass = 0, 0.0
    while skip < n // 2:
        mass += math.comb(n, skip) / 2**n
        if mass > 0.025:
            break
        skip += 1
    skip = max(0, skip - 1)
    return statistics.median(sorted_), sorted_[skip], sorted_[n - 1 - skip]


def spread(name, values):
    """Return a figure: median `name`, minimum, maximum, and bounds of the median."""
    middle, low, high = bounds(values)
    row = {"": middle, "_min": min(values), "_max": max(values), "_low": low, "_high": high}
    return {name + end: round(value, 4) for end, value in row.items()}


def in_turns(programs, family, reps, seconds):
    """Return {program: samples}. Each round has all programs, one after the other."""
    seen = {p: [] for p in programs}
    for _ in range(reps):
        for program in programs:
            seen[program].append(sample(program, family, seconds))
    return seen


def stages(program, family):
    """Return the cycles a packet by stage from the program's own counters, in a run of its own."""
    with program.awake() as page:
        before = program.daemon.show("cycles")
        page.begin(family)
        time.sleep(0.5)
        page.end()
        after = program.daemon.show("cycles")
    packets = after[0]["packets"] - (before[0]["packets"] if before else 0)
    old = {row["stage"]: row["cycles"] for row in before}
    new = {row["stage"]: row["cycles"] for row in after}
    took = {name: (new[name] - old.get(name, 0)) / packets for name in new}
    return {"stages": {name: round(value, 1) for name, value in took.items()}}


TAIL = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))


def tail(histogram, name):
    """Return the percentiles of a histogram in us, as `NAME_p50_us` and so on."""
    return {
        f"{name}_{key}_us": None
        if (v := percentile(histogram, share)) is None
        else round(v, 2)
        for key, share in TAIL
    }


def gaps(polls, least_us):
    """Return the number and the total time of pauses of `least_us` or more between two polls."""
    long = [(us, n) for us, n in polls if us >= least_us]
    return {
        "gaps": sum(n for _, n in long),
        "gaps_ms": round(sum(us * n for us, n in long) / 1e3, 2),
        "gap_max_us": round(polls[-1][0], 1) if polls else 0,
    }


IDLE_GAP_S, IDLE_FRAMES = 0.02, 100


def idle(program):
    """Measure the CPU use without traffic, and then the delay of single frames."""
    with program.awake() as page:
        page.end()
        time.sleep(0.2)
        begin, one, all_ = time.monotonic(), program.cpu_s(), program.process_cpu_s()
        time.sleep(3)
        one, all_ = program.cpu_s() - one, program.process_cpu_s() - all_
        wall = time.monotonic() - begin
        hz, before = page.get(TSC_HZ, "Q"), page.counts()
        gap = int(IDLE_GAP_S * hz) << 16
        page.begin(4, check=TIME, gap_q16=gap, limit=IDLE_FRAMES)
        time.sleep(IDLE_GAP_S * (IDLE_FRAMES + 10))
        after = page.counts()
        late = [us for us, n in page.latencies() for _ in range(n)]
    return {
        "bench": "idle",
        "forwarder_percent": round(one / wall * 100, 2),
        "process_percent": round(all_ / wall * 100, 2),
        "frames": after["rx"] - before["rx"],
        "lost": after["rx"] - before["rx"] - (after["tx"] - before["tx"]),
        "first_us": round(statistics.median(late), 1) if late else None,
        "first_max_us": round(max(late), 1) if late else None,
    }
