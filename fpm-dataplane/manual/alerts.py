#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make reference`: write the section of alerts in monitoring.md from docker/prometheus/alerts.yml.
The rest of the page is written by hand. tests/system/test_metrics.py compares both."""

import re
import textwrap
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
RULES, PAGE = HERE.parents[1] / "docker" / "prometheus" / "alerts.yml", HERE / "monitoring.md"
MARKS = re.compile(r"(<!-- alerts -->\n).*?(<!-- end -->\n)", re.DOTALL)


def groups():
    """Return the rules of the two groups: the alerts of the page, and notices."""
    return [group["rules"] for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]]


def item(name, text):
    """Return an item of a list, wrapped as the pages are."""
    return textwrap.fill(f"- **{name}:** {text}", 145, subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False) + "\n"  # fmt: skip


def entry(number, rule):
    """Return the text of an alert."""
    holds = f", for {rule['for']}" if "for" in rule else ""
    of = rule["annotations"]
    # Long expressions are easier to read with one condition on each line.
    condition = rule["expr"].replace(" or ", "\n  or ")
    return (
        f"### {number}. {rule['alert']}\n\n"
        f"```promql\n{condition}\n```\n\n"
        f"Severity {rule['labels']['severity']}{holds}.\n\n"
        + item("Traffic", of["description"])
        + item("First", of["action"])
        + "\n"
    )


def section():
    """Return the text between the marks of the page."""
    alerts, notices = groups()
    rows = "".join(
        f"| {rule['alert']} | {rule['labels']['severity']} | {rule['annotations']['description']} "
        f"| {rule['annotations']['action']} |\n"
        for rule in notices
    )
    return (
        "".join(entry(n, rule) for n, rule in enumerate(alerts, 1))
        + f"The file has {len(notices)} notices as well, which can wait:\n\n"
        + "| notice | severity | traffic | first |\n|---|---|---|---|\n"
        + rows
    )


def page():
    """Return the page with the section of the file."""
    text = PAGE.read_text(encoding="utf-8")
    return MARKS.sub(lambda found: found[1] + section() + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
