#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the house rules that a program can check: includes, calls of forwarders, format, licence
lines, lengths, words. Prints FILE:LINE: rule; exit code 1 if there is a problem."""

import graphlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import analyze
import circles
import commands
import commits
import design_map
import english
import pages

ROOT = Path(__file__).resolve().parents[2]
# Folder -> what its files may include beside their own folder, libc and the kernel's headers:
# folders, single headers, libraries. A file that may include more has a row of its own.
INCLUDES = {
    "poptrie": "",
    "tap-bridge": "libnl",
    "base": "libev liburcu",
    "pci": "base",
    "config": "base pci tap-bridge/netns.h libyaml",
    "fib": "base poptrie/poptrie.h liburcu",
    "hook": "base fib liburcu",
    "hook/program.c": "DPDK",
    "port": "base fib pci tap-bridge/tap.h DPDK liburcu",
    "netlink": "base libmnl",
    "fpm": "base netlink tap-bridge/netns.h libmnl libev",
    "rtnl": "base netlink tap-bridge/netns.h libmnl libev",
    "rib": "base fib jansson libev liburcu",
    "neigh": "base fib port tap-bridge jansson libev liburcu",
    "ruleset": "base poptrie",
    "ruleset/acl.c": "DPDK",
    "ruleset/acl_alg.c": "DPDK",
    "ruleset/acl_alg.h": "DPDK",
    "ruleset/acl_context.c": "DPDK",
    "ruleset/acl_context.h": "DPDK",
    "fwd": "base fib port ruleset DPDK liburcu",
    "punt": "base fib port ruleset DPDK libev liburcu",
    "trace": "base fib port jansson libev liburcu",
    "warn": "base fib netlink tap-bridge/netns.h jansson libev libmnl liburcu",
    "filter": "base fib netlink ruleset tap-bridge/netns.h jansson libev libmnl liburcu",
    "sflow": "base fib netlink port tap-bridge/netns.h jansson libev libmnl liburcu",
    "bfd": "base fib port tap-bridge/netns.h DPDK jansson libev liburcu",
    "ui": "base fib port tap-bridge/netns.h jansson libev liburcu",
    "ui/http.h": "libmicrohttpd",
    "start": "base config",
    "start/eal.c": "pci port DPDK",
    "start/options.c": "DPDK",
    "start/preflight.c": "tap-bridge/netns.h",
    "start/prepare.c": "pci",
    "restart": "base config port start tap-bridge/tap.h",
    "manage": "base config hook/hook.h pci port restart/fdstore.h restart/restart_lock.h liburcu",
    "manage/reconnect.c": "libev",
    "manage/reconnect.h": "libev",
    "manage/manage.c": "jansson",
    "nicd": "base config port restart/spawn.h start",
    "nicd/server.c": "DPDK",
    "ctl": "base config pci jansson libmnl",
    "supervise": "base",
    "daemon": "base bfd config fib filter fpm fwd hook manage neigh port punt restart/fdstore.h rib rtnl "
    "sflow start tap-bridge/netns.h trace ui warn DPDK liburcu",
    "main.c": "base daemon manage nicd restart rib start DPDK liburcu",
}
LIBRARIES = {
    "DPDK": r"rte_.*",
    "jansson": r"jansson\.h",
    "libev": r"ev\.h",
    "libmicrohttpd": r"microhttpd\.h",
    "libmnl": r"libmnl/.*",
    "libnl": r"netlink/.*",
    "liburcu": r"urcu.*",
    "libyaml": r"yaml\.h",
}
INCLUDE_PATH = (ROOT, ROOT / "fpm-dataplane")  # as the Makefile has it
FORBIDDEN_IN_FWD = re.compile(
    r"\b(malloc|calloc|realloc|free|aligned_alloc|mmap|printf|fprintf|log_\w+|write|read|"
    r"open|close|ioctl|nanosleep|usleep|poll|epoll_wait|pthread_mutex_\w+|rte_spinlock_\w+|"
    r"rte_malloc|rte_free|rte_pktmbuf_alloc)\s*\("
)
# The clock of libev and of waits until an absolute time is the wall clock, which jumps.
WALL_CLOCK = re.compile(
    r"\b(ev_now|ev_time|gettimeofday|time|pthread_cond_timedwait|sem_timedwait|"
    r"pthread_\w+_timed(?:rd|wr)?lock|cnd_timedwait|mtx_timedlock|mq_timed\w+)\s*\(|"
    r"\bCLOCK_REALTIME\w*"
)
MAY_ASK_IT = {"log.c", "watch.c", "watch.h"}  # for time stamps that people read
# Words of our own for which the field has an established word.
WORDS = re.compile(r"\b(nexthop entry|routing entry|blacklist|whitelist|master/slave)\b", re.I)
# The first word of a log line: its source (style.md).
LOG_ROOMS = re.compile(
    "(bfd|main|dpdk|fdstore|filter|fpm|log|manage|neigh|nics|port|prepare|punt|rib|rtnl|sflow|supervise|ui|warn): "
)
# Folders and files whose comments, messages and text are held to the patterns of english.py.
PLAIN = (
    "Makefile",
    "README.md",
    "docker",
    "fpm-dataplane",
    "frr-config",
    "poptrie",
    "tap-bridge",
    "tests",
)
# A file has one idea. Many lines are a hint that it has two. More than the limit are refused.
ADVISED_LINES, MAX_LINES = 500, 900

problems = []
long_files = []


def problem(path, line, text):
    problems.append(f"{path.relative_to(ROOT)}:{line}: {text}")


def sources(*suffixes):
    """Return all files of the project of these kinds. This does not use git because a tarball has
    no repository."""
    found = []
    for folder, below, names in os.walk(ROOT):
        below[:] = sorted(d for d in below if d != "build" and not d.startswith("."))
        found += [Path(folder, n) for n in sorted(names) if n.endswith(suffixes)]
    return found


def room(path):
    """Return the folder of a file: a library, a folder of the daemon, or main.c."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "fpm-dataplane":
        return parts[1]
    return parts[0]


def check_includes(path):
    """Each included header is one file, and this folder may include it."""
    here = room(path)
    file = path.relative_to(ROOT).as_posix().removeprefix("fpm-dataplane/")
    allowed = {here, *INCLUDES.get(here, "").split(), *INCLUDES.get(file, "").split()}
    for n, text in enumerate(path.read_text().splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', text)
        if not m:
            continue
        header = m.group(2)
        if m.group(1) == '"':
            found = {(folder / header).resolve() for folder in (path.parent, *INCLUDE_PATH)}
            found = [f for f in found if f.exists()]
            if len(found) != 1:
                problem(path, n, f"{header} names {len(found)} files on the include path")
            names = {header.split("/")[0], header} if "/" in header else {header}
        else:
            names = {lib for lib, its in LIBRARIES.items() if re.fullmatch(its, header)}
        if here != "tests" and names and not names & allowed:
            problem(path, n, f"{here} may not include {header}: see INCLUDES in lint.py")


def check_circles():
    """INCLUDES allows no circle of folders that include each other."""
    graph = {}
    for row, words in INCLUDES.items():
        folder = row.split("/")[0]
        others = {word.split("/")[0] for word in words.split() if word not in LIBRARIES}
        graph.setdefault(folder, set()).update(others - {folder})
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        problems.append(f"INCLUDES allows a circle: {' <- '.join(error.args[1])}")


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


def check_mutexes(paths):
    """One table in design.md has the mutexes that may be taken while another is held."""
    design = (ROOT / "fpm-dataplane/doc/design.md").read_text()
    for path in paths:
        found = re.search(r"^(?!extern).*\bpthread_mutex_t\b", path.read_text(), re.M)
        file = path.relative_to(ROOT).as_posix().removeprefix("fpm-dataplane/")
        if room(path) != "tests" and found and f"` of `{file}`" not in design:
            problem(path, 1, "a mutex that the table of mutexes in design.md does not have")


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
    """In `test_x: `a`, `b`` and `test_x (guest): `a`` the words occur in names of tests in test_x.
    Returns the number of files of tests."""
    found = re.findall(r"\b(test_\w+\w)\b(?!_)(?:(?: \(guest\))?: ((?:`[^`]+`(?:, )?)+))?", line)
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
    """Each fault names the test that forces it, and log lines that exist."""
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
        if shutil.which("clang-format-19"):
            print("lint: the format is not checked: clang-format-14 (Debian 12) is not here")
        else:
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
    for folder in {room(path) for path in c_files} - {*INCLUDES, "tests"}:
        problems.append(f"{folder}: no row in INCLUDES")
    check_circles()
    check_mutexes(c_files)
    for path in c_files:
        check_includes(path)
        check_fwd(path)
        check_clock(path)
    for path in c_files + sources(".py", ".sh", ".def"):
        check_text(path)
    check_claims(ROOT / "tests/system/README.md")
    for path in sources(".md"):
        check_commands(path)
    pages.check(ROOT, sources(".md"), problem)
    check_claims(ROOT / "fpm-dataplane/doc/failures.md")
    check_failures(ROOT / "fpm-dataplane/doc/failures.md", c_files)
    design_map.check(ROOT, problem)
    parts = {path.parent for path in c_files if room(path) != "tests"}
    circles.check(ROOT, sorted(parts), problem)
    check_format(c_files)
    for path in english.files(ROOT / place for place in PLAIN):
        for n, text in english.problems(path):
            problem(path, n, f"English: {text}")
    problems.extend(analyze.unknown_functions())
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
