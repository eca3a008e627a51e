# SPDX-License-Identifier: BSD-3-Clause
"""Read the JSON lines of bench-fpm. Print the goals beside the results, then the use of CPU time.
A goal is compared, never enforced, because machines differ."""

import sys

from bench.fib_report import print_columns

HEAD = ("goal", "at least", "aim", "median", "min..max", "p99", "")
# (bench, its name, least, aim, unit, factor to the line's unit, True if more is better)
GOALS = (
    ("ingest", "ingest of a replay", 600, 1500, "k routes/s", 1e3, True),
    ("replay", "identical replay", 1500, 3000, "k routes/s", 1e3, True),
    ("bgp", "lag behind zebra's last octet", 100, 20, "ms", 1, False),
    ("change-idle", "one route, idle", 1000, 200, "us", 1, False),
    ("change-replay", "one route, during a replay", 20000, 5000, "us", 1, False),
    ("group-change", "group change", 1000, 200, "us", 1, False),
    ("link-loss", "link loss of a member", 1000, 200, "us", 1, False),
    ("link-loss-replay", "the same, during a replay", 20000, 5000, "us", 1, False),
    ("memory", "RIB and FIB", 250, 120, "MiB", 1, False),
    ("labels-ingest", "ingest of prefixes with labels", 300, 600, "k/s", 1e3, True),
    ("labels-memory", "prefixes with labels", 60, 30, "MiB", 1, False),
    ("labels-reroute", "another path, each batch of it", 1000, 200, "us", 1, False),
    ("sids-in-force", "SIDs, each with its action", 1000, 200, "ms", 1, False),
    ("sids-memory", "SIDs, each with its action", 50, 20, "MiB", 1, False),
    ("tunnels-in-force", "tunnels of the kernel", 1000, 200, "ms", 1, False),
    ("tunnels-memory", "tunnels", 50, 20, "MiB", 1, False),
    ("vnis-in-force", "VNIs", 1000, 200, "ms", 1, False),
    ("vnis-memory", "VNIs", 50, 20, "MiB", 1, False),
    ("labels-shared", "other labels of a next hop", 1000, 200, "us", 1, False),
)


def detail(line):
    """Return the values that distinguish lines of one kind."""
    words = []
    if "routes" in line:
        words.append(f"{line['routes']:,} routes")
    words += [f"{line[key]:,}" for key in ("tunnels", "vnis") if key in line]
    if "labels" in line:
        words.append(f"{line['labels']} label{'s' * (line['labels'] > 1)}")
    if line.get("vrf"):
        words.append("in a VRF")
    if "daemon" in line:
        words.append(f"the daemon {'follows' if line['daemon'] == 'followed' else 'was stopped'}")
    if line.get("order") == "shuffled":
        words.append("shuffled")
    if "rate" in line:
        rate = line["rate"]
        words.append(f"{rate / 1000:g} k routes/s" if rate else "as fast as the socket")
    return ", ".join(words)


def goals(lines):
    """Return rows for print_columns(): every measured line of a kind that has a goal."""
    for bench, what, least, aim, unit, scale, more in GOALS:
        for line in lines:
            if line["bench"] != bench or "median" not in line:
                continue
            got, low, high = (line[key] / scale for key in ("median", "min", "max"))
            verdict = "not met"
            if got >= least if more else got <= least:
                verdict = "met"
            if got >= aim if more else got <= aim:
                verdict = "met, and the aim"
            cells = [f"{least} {unit}", f"{aim} {unit}", f"{got:,.0f} {unit}"]
            cells += [f"{low:,.0f}..{high:,.0f}"]
            cells += [f"{line['p99']:,.0f}" if "p99" in line else "", verdict]
            yield (f"{what}: {detail(line)}".rstrip(": "), *cells)


def cpu(lines):
    """Return ns per route by thread."""
    for line in lines:
        if "cpu_ns_a_route" in line:
            cost = line["cpu_ns_a_route"]
            spent = ", ".join(f"{k} {v}" for k, v in cost.items() if v >= 5)
            yield f"{line['bench']}: {detail(line)}", spent, str(line["prefix_writes"])


def overlays(lines):
    """Return the time of the kernel, and the CPU time of the daemon, until all links were made."""
    for line in lines:
        if "kernel_ms" in line:
            cells = (f"{line[key]['median']:,.0f} ms" for key in ("kernel_ms", "cpu_ms"))
            yield f"{line['bench'].partition('-')[0]}: {detail(line)}", *cells


def bgp(lines):
    """Return the same load with and without the dataplane."""
    for line in lines:
        if line["bench"] in ("bgp", "bgp-sink"):
            who = "fpm-dataplane" if line["bench"] == "bgp" else "a sink"
            visible = f"{line['visible_s']['median']:.2f} s" if "visible_s" in line else "-"
            last, spent = line["last_octet_s"], line["cpu_s"]
            replay = line.get("replay_routes_s")
            yield (
                who,
                f"{last['median']:.2f} s ({last['min']:.2f}..{last['max']:.2f})",
                visible,
                ", ".join(f"{k} {v:.1f}" for k, v in spent.items()),
                f"{replay['median'] / 1000:.0f} k routes/s" if replay else "-",
            )


def audits(lines):
    """Return the audits of zebra, RIB and FIB, and their effect on packets."""
    for line in lines:
        if "audit_s" in line:
            took, code = line["audit_s"], line["audit_code"]["max"]
            lost = f"{line['lost']['max']} of {line['echoes']['median']:.0f}"
            seconds = f"{took['median']:.1f} s ({took['min']:.1f}..{took['max']:.1f})"
            yield f"{line['routes']:,}", seconds, str(code), lost


def churns(lines):
    """Return the runs of changes below constant routes."""
    for line in lines:
        if line["bench"] == "churn":
            sizes = (f"{line[f'rss_{which}_mib']:.2f} MiB" for which in ("first", "last", "max"))
            found = line["differences"]
            verdict = f"{found} differences" if found else "equal"
            yield f"{line['changes']:,}", f"{line['changes_s']:,}", *sizes, verdict


def tables(lines, out=sys.stderr):
    """Print all tables."""
    print("\nbench-fpm: goals", file=out)
    print_columns([HEAD, *goals(lines)], out)
    rows = list(cpu(lines))
    if rows:
        head = ("", "ns of CPU a route, by thread", "prefixes written")
        print("\nCPU time", file=out)
        print_columns([head, *rows], out)
    rows = list(overlays(lines))
    if rows:
        head = ("links", "the kernel made them in", "CPU time of the daemon's control threads")
        print("\nlinks of the kernel", file=out)
        print_columns([head, *rows], out)
    rows = list(bgp(lines))
    if rows:
        head = ("listener", "BGP up to zebra's last octet", "all in the FIB")
        print("\na full table by bgpd and zebra", file=out)
        print_columns([(*head, "CPU seconds", "zebra's replay"), *rows], out)
    rows = list(churns(lines))
    if rows:
        head = ("changes", "changes/s", "resident set: first", "last", "largest", "audit")
        print("\ngroups and adjacencies that change", file=out)
        print_columns([head, *rows], out)
    rows = list(audits(lines))
    if rows:
        print("\nfpmctl audit of the full table", file=out)
        print_columns([("routes", "took", "exit code", "echoes lost"), *rows], out)
    for line in lines:
        if line["bench"] == "machine":
            print(
                f"\nmachine: {line['cpu']}, {line['cores']} cores, kernel "
                f"{line['kernel']}, {line['dpdk']}, version {line['version']}; CPU "
                f"{line['control_cpu']}: the daemon's control threads; CPU "
                f"{line['own_cpu']}: forwarder ({line['idle']}), sender, prober",
                file=out,
            )
        if line["bench"] == "steal":
            print(f"{line['share']:.1%} of the CPUs were stolen meanwhile", file=out)
