#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Static analysis of the daemon and its programs: gcc -fanalyzer, cppcheck, clang-tidy. Each
file is clean, or the finding is in KNOWN with the reason why it is none. A reason for which
there is no finding any more is a problem, too. What is not installed is skipped, and said.

    analyze.py CC -- FLAG...       as `make analyze` calls it
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("poptrie", "tap-bridge", "fpm-dataplane")

# (tool, file, check): why it is none.
KNOWN = {
    ("gcc", "fpm-dataplane/ctl/audit.c", "null-dereference"): "`order` is >= 0 only with both, "
    "or with in_zebra alone: one of the two is always there",
    ("gcc", "fpm-dataplane/trace/pcapng.c", "malloc-leak"): "the old memory is lost only when "
    "there is no other, and then it aborts",
    ("gcc", "fpm-dataplane/trace/trace.c", "malloc-leak"): "`u` hangs on t->explained, an "
    "intrusive list that the analyzer does not follow",
    ("gcc", "/usr/include/dpdk/rte_ring_elem_pvt.h", "use-of-uninitialized-value"): "DPDK's; "
    "as many as there are were filled in",
    ("cppcheck", "fpm-dataplane/base/huge.c", "deallocret"): "two ends are given back, what is "
    "between them is returned",
    ("cppcheck", "fpm-dataplane/fib/fib.c", "memleak"): "MAP_FAILED is no memory",
    ("cppcheck", "poptrie/build.c", "ctunullpointer"): "n_dirty is at least 1 there, and `old` "
    "is what it descends from",
    ("cppcheck", "tap-bridge/netns.c", "resourceLeak"): "the descriptor is what is returned",
    ("cppcheck", "tap-bridge/tap.c", "resourceLeak"): "rc < 0 there means that there is none",
    ("tidy", "fpm-dataplane/config.c", "clang-analyzer-core.NullDereference"): "`text` is "
    "NULL with `len` 0 only, and each index is below `len`",
    ("tidy", "fpm-dataplane/fwd/loop.c", "clang-analyzer-core.CallAndMessage"): "the ring has "
    "filled the first n entries",
    ("tidy", "fpm-dataplane/neigh/iface.c", "bugprone-suspicious-memory-comparison"): "padding "
    "is zero in both, as said there",
    ("tidy", "fpm-dataplane/neigh/link.c", "clang-analyzer-unix.Malloc"): "it is out of its "
    "chain before it is freed: the chain is that of its ifindex",
    ("tidy", "fpm-dataplane/rib/group.c", "clang-analyzer-core.DivideZero"): "a group of "
    "several ways has members",
    ("tidy", "fpm-dataplane/rib/zebra.c", "clang-analyzer-core.CallAndMessage"): "the first "
    "loop fills in as many as the last reads",
    ("tidy", "fpm-dataplane/supervise/store.c", "clang-analyzer-core.CallAndMessage"): "the "
    "first loop fills in as many as the others read",
    ("tidy", "poptrie/build.c", "clang-analyzer-core.UndefinedBinaryOperatorResult"): "`s` is "
    "the number of a bit that is set; -1 is `only`, which it is compared with",
}

CPPCHECK = """--enable=warning,performance,portability --inline-suppr --quiet --error-exitcode=0
--std=c11 --max-configs=1 --template={file}:{line}:{id}:{message} --library=posix
--suppress=missingInclude --suppress=missingIncludeSystem --suppress=unknownMacro""".split()
CPPCHECK += [
    "--suppress=" + word
    for word in (
        "uninitvar",  # it takes the cursor of an intrusive list for one; gcc and clang do not
        "ctuuninitvar",
        "invalidFunctionArg",  # mmap() without a file wants -1
        "readdirCalled",  # a DIR of one's own is safe, and readdir_r() deprecated
    )
]

# What a bug looks like; style is clang-format's and the reviewer's.
TIDY = "-*,clang-analyzer-*,bugprone-*,concurrency-*,-clang-analyzer-security.insecureAPI.*"
for _off in (
    "bugprone-easily-swappable-parameters",  # a matter of names
    "bugprone-reserved-identifier",  # _GNU_SOURCE and the like
    "bugprone-assignment-in-if-condition",  # not done here but in loops, on purpose
    "bugprone-narrowing-conversions",  # gcc's -Wconversion has its own view
    "bugprone-implicit-widening-of-multiplication-result",  # bounded products
    "bugprone-branch-clone",  # cases that agree today
    "bugprone-macro-parentheses",  # of declarations
    "concurrency-mt-unsafe",  # strerror(), getenv() at start
    "bugprone-sizeof-expression",  # arrays of pointers have the size of pointers
    "bugprone-misplaced-widening-cast",  # json_int_t is signed, and wide enough
):
    TIDY += ",-" + _off


def sources():
    """All C files of the programs."""
    return sorted(str(p.relative_to(ROOT)) for f in FOLDERS for p in (ROOT / f).rglob("*.c"))


def run(argv):
    """What a tool says, on both of its outputs."""
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def gcc(cc, flags, path):
    """(file, line, check, text) of each finding."""
    text = run([*cc, *flags, "-fanalyzer", "-O1", "-c", "-o", "/dev/null", path])
    pattern = r"^(\S+?):(\d+):\d+: warning: (.*) \[-Wanalyzer-([\w-]+)\]$"
    for name, line, said, check in re.findall(pattern, text, re.M):
        yield name, line, check, said
    for name, line, said in re.findall(r"^(\S+?):(\d+):\d+: (error: .*)$", text, re.M):
        yield name, line, "error", said


def cppcheck(_, flags, path):
    """The same of cppcheck."""
    words = [f for f in flags if f.startswith(("-D", "-I")) and not f.startswith("-I/")]
    text = run(["cppcheck", *CPPCHECK, *words, path])
    yield from re.findall(r"^([^:\n]+):(\d+):(\w+):(.*)$", text, re.M)


def tidy(_, flags, path):
    """The same of clang-tidy."""
    drop = ("-fanalyzer", "-Wno-unused-parameter")
    words = [f for f in flags if f not in drop and not f.startswith("-W")]
    if "lookup_avx512" in path:
        words += ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vpopcntdq"]
    if "avx" in path:
        words += ["-mavx2", "-mbmi", "-mbmi2", "-mpopcnt"]
    argv = ["clang-tidy-14", "--quiet", f"--checks={TIDY}", path, "--", *words]
    pattern = r"^(\S+?):(\d+):\d+: (?:warning|error): (.*) \[([\w.,-]+)\]$"
    for name, line, said, check in re.findall(pattern, run(argv), re.M):
        yield os.path.relpath(name, ROOT) if name.startswith(str(ROOT)) else name, line, check, said


TOOLS = {"gcc": (None, gcc), "cppcheck": ("cppcheck", cppcheck), "tidy": ("clang-tidy-14", tidy)}


def main(argv):
    """Returns the exit code."""
    split = argv.index("--")
    cc, flags = argv[:split], argv[split + 1 :]
    files, problems, used, skipped = sources(), set(), set(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for tool, (program, look) in TOOLS.items():
            if program and shutil.which(program) is None:
                skipped.append(program)
                used |= {key for key in KNOWN if key[0] == tool}
                continue
            jobs = [pool.submit(lambda p, f=look: list(f(cc, flags, p)), path) for path in files]
            for found in (row for job in jobs for row in job.result()):
                name, line, check, text = found
                key = (tool, name, check)
                used.add(key)
                if key not in KNOWN:
                    problems.add(f"{name}:{line}: {text} [{tool}: {check}]")
    problems |= {f"{k[1]}: no such finding any more [{k[0]}: {k[2]}]" for k in KNOWN.keys() - used}
    for text in sorted(problems):
        print(text)
    tail = f", skipped: {', '.join(skipped)} (make analyze installs)" if skipped else ""
    print(f"analyze: {len(files)} C files, {len(KNOWN)} known, {len(problems)} problem(s){tail}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
