#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make reference`: write reasons.md from the daemon's own list of reasons (base/reason.def) and from
the advice of fpmctl (ctl/advice.c). No line of the page is written by hand; a test compares the page
with both."""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
REASONS, ADVICE = HERE.parent / "base" / "reason.def", HERE.parent / "ctl" / "advice.c"

BEGIN = """\
# Why packets leave the fast path

`make reference` writes this page from the daemon's list of reasons. `fpmctl show drops`, `show counters`, `trace`, `explain`, captures and the
metric `fpmdp_drop_packets_total{reason="..."}` use the same names. `fpmctl trace reason no_route`, for example, shows the packets of one reason.

The column *what to do* has the advice that `show drops` prints. In it, ADDRESS is the destination, PORT is the ingress port, and [vrf NAME] is the
VRF of the lookup.

## Dropped

| reason | meaning | what to do |
|---|---|---|
"""
THEN = """
## Given to the kernel, or to the punt thread

These packets are a part of normal operation. The kernel gets packets for the router itself. The punt thread holds packets for neighbors that are
not resolved, fragments packets, and sends ICMP errors. Policers limit the packets by class: `fpmctl show punt`.

| reason | meaning |
|---|---|
"""


def page():
    """Return the page."""
    text = REASONS.read_text(encoding="utf-8")
    reasons = re.findall(r'^(DROP|PUNT)\((\w+), "(.*)"\)$', text, re.M)
    advice = re.sub(r'"\s*\n\s*"', "", ADVICE.read_text(encoding="utf-8"))
    said = dict(re.findall(r'\{"(\w+)",\s*"(.*?)"\}', advice))
    drops = [(name, what) for kind, name, what in reasons if kind == "DROP"]
    punts = [(name, what) for kind, name, what in reasons if kind == "PUNT"]
    rows = "".join(f"| `{name}` | {what} | {said[name]} |\n" for name, what in drops)
    return BEGIN + rows + THEN + "".join(f"| `{name}` | {what} |\n" for name, what in punts)


if __name__ == "__main__":
    (HERE / "reasons.md").write_text(page(), encoding="utf-8")
