#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make reference`: reasons.md out of the daemon's own list of reasons (base/reason.def) and of
what fpmctl advises (ctl/advice.c). Nothing of the page is written by hand, and a test holds it
against them."""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
REASONS, ADVICE = HERE.parent / "base" / "reason.def", HERE.parent / "ctl" / "advice.c"

BEGIN = """\
# Why packets leave the fast path

Made by `make reference` of the daemon's own list, by the names that `fpmctl show drops`, `show counters`, `trace`, `explain`, captures and
`fpmdp_drop_packets_total{reason="..."}` use. *What to do* is what `show drops` says beside the count: ADDRESS stands for the destination, PORT
for the port that the packet came in by, [vrf NAME] for the VRF where it was looked for. What only one packet knows, `fpmctl trace reason NAME` tells.

## Dropped

| reason | meaning | what to do |
|---|---|---|
"""
THEN = """
## Given to the kernel, or to the thread that holds, cuts and answers

Ordinary, and bounded by class: `fpmctl show punt`.

| reason | meaning |
|---|---|
"""


def page():
    """The whole page."""
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
