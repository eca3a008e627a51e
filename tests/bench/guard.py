# SPDX-License-Identifier: BSD-3-Clause
"""Compute the ratios to the peers from the JSON lines of bench_fib and bench_forward, and compare
them with the accepted ratios. This module runs no program."""

import statistics

TOLERANCE = 0.10

# (table, traffic) of bench_forward -> the peers of which the best counts.
FORWARD = {
    ("few", "v4"): ("l3fwd-lpm",),
    ("few", "v6"): ("l3fwd-lpm",),
    ("full", "v4"): ("l3fwd",),
    ("full", "v6"): ("l3fwd",),
    ("full", "mixed"): ("l3fwd",),
}


def figure(ratios):
    """Return median, least and most of the rounds' ratios."""
    return {
        "ratio": round(statistics.median(ratios), 3),
        "min": round(min(ratios), 3),
        "max": round(max(ratios), 3),
    }


def forward_ratios(lines):
    """Return {name: figure}. Ratios are by round, because both had the same machine in a round."""
    found = {}
    rows = [r for r in lines if r.get("bench") == "forward"]
    for (table, traffic), names in FORWARD.items():
        here = [r for r in rows if (r["table"], r["traffic"]) == (table, traffic)]
        ours = [r for r in here if r["program"].startswith("ours")]
        peers = [r for r in here if r["program"].startswith(names)]
        if ours and peers:
            best = max(peers, key=lambda r: r["mpps"])
            pairs = zip(ours[0]["samples"], best["samples"])
            found[f"forward {table} {traffic}"] = figure([a / b for a, b in pairs])
            found[f"forward {table} {traffic}"]["peer"] = best["program"]
    return found


def fib_ratios(lines):
    """Return {name: figure} of the lookups: our best against DPDK's best, for each stream."""
    found = {}
    for family in (4, 6):
        rows = [r for r in lines if r.get("bench") == f"fib{family}" and r["l3"] == "idle"]
        for stream in dict.fromkeys(r["stream"] for r in rows):
            if (family, stream) == (6, "random"):  # nearly all keys are misses
                continue
            here = [r for r in rows if r["stream"] == stream]
            ours = [r for r in here if r["impl"].startswith("poptrie")]
            peers = [r for r in here if r["impl"].startswith("rte_")]
            if ours and peers:
                a, b = (max(x, key=lambda r: r["mlps"]) for x in (ours, peers))
                found[f"fib{family} {stream}"] = {
                    "ratio": round(a["mlps"] / b["mlps"], 3),
                    "min": round(a["min"] / b["max"], 3),
                    "max": round(a["max"] / b["min"], 3),
                    "peer": b["impl"],
                }
    return found


def compare(ratios, accepted):
    """Return [{name, ratio, accepted, change, fell}] of all names of both, in their order.

    ratios    {name: figure}; an accepted name without a figure was not measured: it fell
    accepted  {name: ratio}; a new name has no accepted ratio and cannot fall
    """
    rows = []
    for name in dict.fromkeys([*accepted, *ratios]):
        was, now = accepted.get(name), ratios.get(name)
        row = {"name": name, "accepted": was, **(now or {"ratio": None})}
        if was is not None and now is not None:
            row["change"] = round(now["ratio"] / was - 1, 3)
        row["fell"] = was is not None and (now is None or row["change"] < -TOLERANCE)
        rows.append(row)
    return rows
