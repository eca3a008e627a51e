# SPDX-License-Identifier: BSD-3-Clause
"""The system tests cut into shards: a shard is one pytest process with some files, or with a part
of a file that takes long. tests/times.json has the seconds of each file, measured by the last
`suite.py` run with RECORD=1; a file that it does not name counts as DEFAULT_S.

Shards run side by side. They share only the machine: each process has its own namespaces,
directories, sockets and routers (tests/lib/dut.py names them by process id).
"""

import collections
import glob
import json
import os

import alone as those_alone

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMES = os.path.join(ROOT, "tests", "times.json")
SHARD_S = 90  # the target time of a shard; small files share one
DEFAULT_S = 10


def times():
    """Return {file: seconds} of the last recorded run."""
    try:
        with open(TIMES, encoding="ascii") as file:
            return json.load(file)
    except OSError:
        return {}


def record(outcomes):
    """Write the times of all files. `outcomes`: [(seconds, "test_x::test_name")]."""
    per_file = collections.Counter()
    for seconds, name in outcomes:
        per_file[name.partition("::")[0] + ".py"] += seconds
    found = {**times(), **{name: round(seconds, 1) for name, seconds in per_file.items()}}
    there = {os.path.basename(path) for path in files()}
    with open(TIMES, "w", encoding="ascii") as file:
        json.dump({k: found[k] for k in sorted(found) if k in there}, file, indent=0)
        file.write("\n")


def files():
    """Return all files of system tests."""
    return sorted(glob.glob(f"{ROOT}/tests/system/test_*.py"))


def shards(without=()):
    """Return [(name, [path], "i/n" or "")]: parts of files, then the longest shard first. A file of more than
    1.5 * SHARD_S is cut into n parts; shorter files are combined. The files that run alone and
    the files of `without` are left out."""
    left = {os.path.basename(path): path for path in files()}
    for name in [*without, *those_alone.alone()]:
        left.pop(name, None)
    took, found, small = times(), [], []
    for name, path in left.items():
        seconds = took.get(name, DEFAULT_S)
        parts = round(seconds / SHARD_S)
        word = name[len("test_") : -len(".py")]
        if parts < 2:
            small.append((seconds, word, path))
            continue
        found += [(seconds / parts, f"{word}-{i + 1}", [path], f"{i}/{parts}") for i in range(parts)]
    groups = []  # [seconds, words, paths]
    for seconds, word, path in sorted(small, reverse=True):
        group = next((g for g in groups if g[0] + seconds <= SHARD_S), None)
        if group is None:
            groups.append(group := [0, [], []])
        group[0] += seconds
        group[1].append(word)
        group[2].append(path)
    for seconds, words, paths in groups:
        more = f"+{len(words) - 1}" if len(words) > 1 else ""
        found.append((seconds, words[0] + more, paths, ""))
    # The parts of a file differ in length, so a part comes before all whole files.
    found.sort(key=lambda shard: (shard[3] != "", shard), reverse=True)
    return [(name, paths, part) for _, name, paths, part in found]


def alone():
    """Return ([whole files], [single tests]) of tests/alone.py as arguments of pytest."""
    keys = [f"tests/system/{key}" for key in those_alone.alone()]
    whole = [key for key in keys if "::" not in key]
    tests = [key for key in keys if "::" in key]
    return whole, tests
