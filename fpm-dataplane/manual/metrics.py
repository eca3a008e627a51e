#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make reference`: write metrics.md from the tables and texts of the metrics page in ui/metrics*.c,
ui/show.c and ui/show_kernel.c. No line of the page is written by hand. tests/system/test_metrics.py
compares it with the code, and with the metrics page of a running daemon."""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
UI = HERE.parent / "ui"

BEGIN = """\
# Metrics

`make reference` writes this page from the code of the metrics page, `http://127.0.0.1:9620/metrics` ([`metrics`](configuration.md#metrics)). The
names on that page begin with `fpmdp_`, which the tables below leave out. Counters begin at 0 with each start of the daemon. A histogram has the
series `_bucket` (label `le`), `_sum` and `_count`.

| label | values |
|---|---|
| `lcore` | the name of a thread, such as `fwd-0` or `punt` |
| `reason` | [drop and punt reasons](reasons.md) |
| `class` | punt classes: `fpmctl show punt` |
| `table` of `table_used` and others | tables with a limit: `fpmctl show memory` |
| `kind` of `kernel_not_obeyed` | kinds of [configuration that is not obeyed](limits.md#configuration-of-the-kernel-that-is-not-obeyed) |
| `port` of `hook_packets_total` and others | the interface that has the program |
| `port` of `urpf_dropped_packets_total` | a port or another interface, as in `fpmctl show interfaces` |
| `interface` | an interface that is no port, as in `fpmctl show interfaces` |
| `vrf`, `table` of `srv6_sid_packets_total` and others | a SID outside of table main has one of these labels |
"""
# The headings of metrics.md, the condition under which the metrics are on the metrics page, and the
# functions of metrics*.c that write them.
SECTIONS = (
    ("Process, drops, punts", "", ("metrics_page", "punt_classes_put", "policers_put")),
    ("Threads", "", ("thread_counters_put", "cycles_put")),
    ("Ports", "", ("ports_put", "queues_put", "urpf_put")),
    ("VLANs, macvlans, tunnels, bridges over vxlan devices", "", ("interfaces_put",)),
    ("Connection to zebra", "", ("channel_put",)),
    ("Routes of the kernel", "", ("kernel_put", "warnings_put")),
    ("RIB and FIB", "", ("tables_put", "limits_put")),
    ("Neighbors", "", ("neighbors_put",)),
    ("VRFs", "The daemon has these metrics if a VRF has a FIB.", ("vrfs_put",)),
    ("SRv6", "The daemon has these metrics if the router has a SID.", ("sids_put",)),
    ("Filter", "The daemon has these metrics if the configuration has the key `filter.table`.", ("filter_put",)),
    (
        "BGP flowspec",
        "The daemon has these metrics if the key `filter.table` names the table `inet flowspec`.",
        ("flowspec_put",),
    ),
    ("sFlow", "The daemon has these metrics while sFlow is on.", ("sflow_put",)),
    ("BFD", "The daemon has these metrics if the configuration has the key `bfd.dplane`.", ("bfd_put",)),
    ("Programs", "The daemon has these metrics if an interface has a program.", ("hooks_put",)),
    ("HTTP API", "", ("api_put",)),
)
TYPES = {
    "gauge_put": "gauge",
    "seconds_put": "gauge",
    "histogram_put": "histogram",
    "hook_put": "counter",
    "reasons_put": "counter",
}
# The tables of counters in other files: file, first word of the names.
COUNTS = {"channel_put": ("show.c", "fpm"), "kernel_put": ("show_kernel.c", "kernel")}
# Labels that helper functions append.
HELPERS = {"hook_put": ["port"], "reasons_put": ["reason", "lcore"], "histogram_put": ["le"]}

STRING = r'"((?:[^"\\]|\\.)*)"'
HEAD = re.compile(
    r"(?P<head>metric_head|" + "|".join(TYPES) + r")\(\s*b,\s*(?:hooks,\s*)?"
    r'(?:"(?P<name>\w+)"|name),\s*(?:"(?P<type>gauge|counter)",\s*)?'
    r'(?!"(?:gauge|counter)")' + STRING
)
METRIC = re.compile(r'METRIC\("(\w+)",\s*"(\w+)",\s*\w+,\s*\w+,\s*' + STRING)
STATUS = re.compile(r"STATUS_GAUGE\(b, (\w+),\s*" + STRING)
ROW = re.compile(r'\{"(\w+)",((?:\s*"(?:[^"\\]|\\.)*",)*?)\s*"([^"]*\.)"')
TOTAL = re.compile(r'TOTAL\([^()]*?"(\w+_total)",\s*' + STRING + r",\s*" + STRING + r"\)")
COUNT = re.compile(r"COUNT\((\w+),\s*" + STRING)
LABEL = re.compile(r'[{,"](\w+)=\\"')


def source(name):
    """Return a file of ui/ without comments. Adjacent strings are one string."""
    text = (UI / name).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("'\"'", "0")
    several = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*')
    return several.sub(lambda s: '"' + "".join(re.findall(STRING, s[0])) + '"', text)


def functions(text):
    """Return {name: body} of the functions of a file."""
    return dict(re.findall(r"^(\w+)\([^;{}]*?\)\n\{\n(.*?)^\}", text, re.M | re.S))


def heads(body):
    """Yield (place, name, type, labels, text) of the metrics that a function writes one by one."""
    constant = re.search(r'char name\[\] = "(\w+)"', body)
    found = list(HEAD.finditer(body))
    for head, after in zip(found, [*found[1:], None]):
        kind = head["head"]
        labels = HELPERS.get(kind, [])
        if kind == "metric_head":
            labels = LABEL.findall(body[head.end() : after.start() if after else len(body)])
        name = head["name"] or constant[1]
        yield head.start(), name, head["type"] or TYPES[kind], labels, head[4]
    for field, text in STATUS.findall(body):
        yield body.index(f"(b, {field},"), f"fpm_{field}", "gauge", [], text


def rows(body):
    """Yield (place, name, type, labels, text) of the metrics in the tables of a function."""
    fib = body.find("of_fib[][2]")
    # The format that writes the rows has their labels, if the rows have none of their own.
    shared = re.search(r'"%s\{((?:[^"\\]|\\.)*)', body)
    shared = LABEL.findall('"' + shared[1]) if shared and fib < 0 else []
    for row in METRIC.finditer(body):
        yield row.start(), row[1], row[2], shared, row[3]
    for row in ROW.finditer(body):
        between = re.findall(STRING, row[2])
        name, labels = row[1], LABEL.findall(row[2]) or shared
        type_ = "counter" if name.endswith("_total") else "gauge"
        type_ = next((word for word in between if word in ("gauge", "counter")), type_)
        if 0 <= fib < row.start():
            name, labels = f"fib_{name}", ["family"]
        yield row.start(), name, type_, labels, row[3]


def of_function(name, body):
    """Return the metrics of a function: (name, type, labels, text)."""
    found = [row[1:] for row in sorted([*heads(body), *rows(body)], key=lambda row: row[0])]
    if name == "thread_counters_put":
        totals = TOTAL.findall(source("show.c"))
        for total, own, text in totals:
            found.append((total, "counter", [*LABEL.findall('"' + own), "lcore"], text))
    if name in COUNTS:
        file, of = COUNTS[name]
        for field, text in COUNT.findall(source(file)):
            found.append((f"{of}_{field}_total", "counter", [], text))
    if name == "sids_put":
        found = [(sid, kind, [*labels, "vrf", "table"], text) for sid, kind, labels, text in found]
    return found


def sections():
    """Return [(heading, condition, metrics)] in the order of the page."""
    bodies = functions(source("metrics.c") + source("metrics_services.c"))
    return [
        (heading, when, [m for name in names for m in of_function(name, bodies[name])])
        for heading, when, names in SECTIONS
    ]


def metrics():
    """Return {name: (type, labels, text)} of all metrics."""
    return {name: rest for _, _, found in sections() for name, *rest in found}


def page():
    """Return the page."""
    out = [BEGIN]
    for heading, when, found in sections():
        out.append(f"\n## {heading}\n\n" + (f"{when}\n\n" if when else ""))
        out.append("| metric | type | labels | meaning |\n|---|---|---|---|\n")
        for name, type_, labels, text in found:
            named = "".join(f" `{label}`" for label in labels).replace("` `", "`, `")
            out.append(f"| `{name}` | {type_} |{named} | {text.rstrip('.')} |\n")
    return "".join(out)


if __name__ == "__main__":
    (HERE / "metrics.md").write_text(page(), encoding="utf-8")
