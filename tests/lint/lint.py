#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The house rules that a machine can check: who includes whom, what forwarders may call,
format, licence lines, lengths, words. Prints FILE:LINE: rule; exit code 1 when any."""

import os
import re
import subprocess
import sys
from pathlib import Path

import commands
import commits

ROOT = Path(__file__).resolve().parents[2]
THREADS = {"fpm", "rib", "neigh", "fwd", "punt", "trace", "ui"}
SHARED = {"base", "fib", "port"}
# Header pattern -> folders (or files) that may include it.
ONLY_IN = {
    r"rte_.*": {"port", "fwd", "punt", "main.c", "eal.c", "options.c", "nics"},
    r"libmnl/.*": {"fpm"},
    r"netlink/.*": {"tap-bridge"},
    r"yaml\.h": {"config.c", "config_walk.c", "config_check.c", "config_cores.c",
                  "config_users.c"},
    r"microhttpd\.h": {"ui"},
    r"jansson\.h": {"ui", "rib", "neigh", "trace", "ctl", "manage.c"},
}
FORBIDDEN_IN_FWD = re.compile(
    r"\b(malloc|calloc|realloc|free|aligned_alloc|mmap|printf|fprintf|log_\w+|write|read|"
    r"open|close|ioctl|nanosleep|usleep|poll|epoll_wait|pthread_mutex_\w+|rte_spinlock_\w+|"
    r"rte_malloc|rte_free|rte_pktmbuf_alloc)\s*\("
)
# libev's idea of now is the wall clock, which jumps; so is that of who waits until a time.
WALL_CLOCK = re.compile(
    r"\b(ev_now|ev_time|gettimeofday|time|pthread_cond_timedwait|sem_timedwait|"
    r"pthread_\w+_timed(?:rd|wr)?lock|cnd_timedwait|mtx_timedlock|mq_timed\w+)\s*\(|"
    r"\bCLOCK_REALTIME\w*"
)
MAY_ASK_IT = {"log.c", "watch.c", "watch.h"}  # for time stamps that people read
# The field's words, not their cousins.
WORDS = re.compile(r"\b(nexthop entry|routing entry|blacklist|whitelist|master/slave)\b", re.I)
# Who logs: the first word of a line.
LOG_ROOMS = re.compile(
    "(main|dpdk|fib|fpm|keep|log|manage|neigh|nics|port|prepare|punt|rib|service|supervise|ui): "
)
# A file has one idea. Many lines are a hint that it has two; more than the limit are refused.
ADVISED_LINES, MAX_LINES = 500, 900

problems = []
long_files = []


def problem(path, line, text):
    problems.append(f"{path.relative_to(ROOT)}:{line}: {text}")


def sources(*suffixes):
    """All files of the project of these kinds; git is not asked: a tarball has none."""
    found = []
    for folder, below, names in os.walk(ROOT):
        below[:] = sorted(d for d in below if d != "build" and not d.startswith("."))
        found += [Path(folder, n) for n in sorted(names) if n.endswith(suffixes)]
    return found


def room(path):
    """The folder that a file belongs to: a library, a thread, or main.c and its like."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "fpm-dataplane":
        return parts[1]
    return parts[0]


def check_includes(path):
    here = room(path)
    if here == "tests":
        return
    for n, text in enumerate(path.read_text().splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', text)
        if not m:
            continue
        header = m.group(1)
        for pattern, allowed in ONLY_IN.items():
            if re.fullmatch(pattern, header) and here not in allowed:
                problem(path, n, f"{header} belongs to {', '.join(sorted(allowed))} only")
        first = header.split("/")[0]
        if "/" not in header or first not in THREADS | SHARED | {"ctl"}:
            if here == "base" and header in ("poptrie.h", "tap.h", "kmon.h", "netns.h"):
                problem(path, n, "base includes nothing but libc and liburcu")
            if here == "poptrie" and header in ("tap.h", "kmon.h", "netns.h"):
                problem(path, n, "libraries include nothing of ours")
            if here == "tap-bridge" and header == "poptrie.h":
                problem(path, n, "libraries include nothing of ours")
            continue
        if here in ("poptrie", "tap-bridge"):
            problem(path, n, "libraries include nothing of ours")
        elif here == "base" and first != "base":
            problem(path, n, "base includes nothing but itself")
        elif here in ("fib", "port") and first not in ("base", "fib", "port"):
            problem(path, n, f"{here} knows no thread")
        elif here in THREADS and first in THREADS and first != here:
            problem(path, n, f"thread {here} includes thread {first}: send a message")


def check_fwd(path):
    if room(path) != "fwd":
        return
    for n, text in enumerate(path.read_text().splitlines(), 1):
        code = re.sub(r"/\*.*?\*/|//.*|^\s*\*.*", "", text)
        m = FORBIDDEN_IN_FWD.search(code)
        if m:
            problem(path, n, f"{m.group(1)}() under fwd/: no allocation, lock, log, system call")


def check_clock(path):
    if room(path) == "tests" or path.name in MAY_ASK_IT:
        return
    for n, text in enumerate(path.read_text().splitlines(), 1):
        if m := WALL_CLOCK.search(re.sub(r"/\*.*?\*/|^\s*\*.*", "", text)):
            problem(path, n, f"{m.group(0)}: the wall clock jumps, base/clock.h does not")


def check_text(path):
    text = path.read_text()
    lines = text.splitlines()
    if "SPDX-License-Identifier: BSD-3-Clause" not in "\n".join(lines[:5]):
        problem(path, 1, "no SPDX licence line")
    if len(lines) > ADVISED_LINES:
        long_files.append(path)
    if len(lines) > MAX_LINES:
        problem(path, len(lines), f"{len(lines)} lines: too long (at most {MAX_LINES})")
    for n, line in enumerate(lines, 1):
        if WORDS.search(line) and path.name != "lint.py":
            problem(path, n, f"word: {WORDS.search(line).group(1)}")
        if re.search(r"\b(TODO|FIXME|XXX)\b", line) and path.name != "lint.py":
            problem(path, n, "unfinished thought: finish it or open an issue")
        if line.rstrip() != line:
            problem(path, n, "trailing blank")


def check_claims(path):
    """A table of claims names tests."""
    for n, line in enumerate(path.read_text().splitlines(), 1):
        check_claim(path, n, line)


def check_claim(path, n, line):
    """In `test_x: `a`, `b`` the words are of names of tests in test_x. Returns how many."""
    found = re.findall(r"\b(test_\w+\w)\b(?!_)(?:: ((?:`[^`]+`(?:, )?)+))?", line)
    for name, words in found:
        files = [*ROOT.glob(f"tests/*/{name}.py"), *ROOT.glob(f"tests/*/{name}.c")]
        if not files:
            problem(path, n, f"there is no {name}")
        text = "".join(file.read_text() for file in files)
        for word in re.findall("`([^`]+)`", words):
            if files and not re.search(rf"^(def test_\w*|[a-z]\w*?)?{word}\w*\(", text, re.M):
                problem(path, n, f"no test of {name} has {word} in its name")
    return len(found)


def check_commands(path):
    def shown(page, line, words):
        if check_claim(page, line, words) == 0:
            problem(page, line, f"no test is named: {words}")

    commands.check_page(path, problem, shown)


def check_failures(path, sources_c):
    """Each fault names what forces it, and log lines that there are."""
    code = re.sub(r'"\s*\n\s*"', "", "".join(p.read_text() for p in sources_c))
    faults = "".join(p.read_text() for p in (ROOT / "tests/chaos").glob("*.py"))
    for n, line in enumerate(path.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|") or line.startswith("|---") or cells[-1] == "shown by":
            continue
        if len(cells) != 4 or not re.search(r"\btest_\w+|chaos: ", cells[-1]):
            problem(path, n, "a fault without a test")
        for names in re.findall(r"chaos: ([\w, ]+)", cells[-1]):
            for name in names.split(", "):
                if f"def {name}(run)" not in faults:
                    problem(path, n, f"chaos has no fault {name}")
        for said in re.findall(r"`((?:\w+): [^`=]+)(?=[`=])", line):
            words = said.rsplit(" ", 1)[0] if f"`{said}=" in line else said
            if re.match(LOG_ROOMS, said):
                if words not in code.replace("%%", "%"):
                    problem(path, n, f"no log line {words!r}")


def check_format(files):
    if not files:
        return
    try:
        out = subprocess.run(
            ["clang-format-14", "--dry-run", "--Werror", *map(str, files)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        problems.append("clang-format-14 is not installed: make deps")
        return
    if out.returncode != 0:
        bad = {l.split(":")[0] for l in out.stderr.splitlines() if ": error:" in l}
        if not bad:
            problems.append(f"clang-format-14: {out.stderr.strip() or out.returncode}")
        for name in sorted(bad):
            problem(Path(name).resolve(), 1, "not formatted: make format")


def main():
    c_files = sources(".c", ".h")
    for path in c_files:
        check_includes(path)
        check_fwd(path)
        check_clock(path)
    for path in c_files + sources(".py", ".sh", ".def"):
        check_text(path)
    check_claims(ROOT / "tests/system/README.md")
    for path in sources(".md"):
        check_commands(path)
    check_claims(ROOT / "fpm-dataplane/FAILURES.md")
    check_failures(ROOT / "fpm-dataplane/FAILURES.md", c_files)
    check_format(c_files)
    n_commits = commits.check_history(problems.append)
    for text in problems:
        print(text)
    print(
        f"lint: {len(c_files)} C files, {len(long_files)} files above {ADVISED_LINES} lines, "
        f"{n_commits} commits, {len(problems)} problem(s)"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
