#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Static analysis of the daemon and its programs: gcc -fanalyzer, cppcheck, clang-tidy. Each
file is clean, or the finding is in KNOWN with the reason why it is no bug. A reason without a
finding is a problem too. A tool that is not installed is skipped, with a message.

    analyze.py CC -- FLAG...       as `make analyze` calls it

The output of a tool that ended well is kept in build/analyze. A later run reads it, if neither the
preprocessed file, nor one of our files in it, nor the tool, nor its arguments have changed. So an
interrupted run goes on where it was. stderr has a line for each file that a tool has read.
"""

import collections
import concurrent.futures
import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("poptrie", "tap-bridge", "fpm-dataplane")

# (tool, file, function, check, number of lines): the reason why it is no bug.
# fmt: off
KNOWN = {
    ("gcc", "poptrie/lookup_avx512.c", "nodes8", "use-of-uninitialized-value", 4):
        "the loops set all elements of x and y, which the analyzer does not follow",
    ("gcc", "fpm-dataplane/config/load.c", "syntax_error_report", "null-dereference", 3):
        "`text` is NULL with `len` 0 only, and each index is below `len`",
    ("gcc", "fpm-dataplane/ctl/audit_table.c", "places_add_vrf", "malloc-leak", 1):
        "places_add() copies the pointer to p->v, and places_free() frees it",
    ("gcc", "fpm-dataplane/ctl/kernel_nexthop.c", "attribute_take", "malloc-leak", 1):
        "the members hang in all->v[], which kernel_nexthops_free() frees",
    ("gcc", "fpm-dataplane/ctl/kernel_nexthop.c", "all_on_message", "malloc-leak", 1):
        "the text hangs in all->v[], which kernel_nexthops_free() frees",
    ("gcc", "fpm-dataplane/filter/build.c", "ruleset_build", "malloc-leak", 5):
        "the arrays are members of b->r and b, which filter_build() frees",
    ("gcc", "fpm-dataplane/filter/elements.c", "set_describe", "malloc-leak", 1):
        "the name is a member of a set of the ruleset, and ruleset_free() frees it",
    ("gcc", "fpm-dataplane/filter/merge.c", "bases_append", "malloc-leak", 2):
        "array_append() frees the old array, and ruleset_free() the new one",
    ("gcc", "fpm-dataplane/filter/merge.c", "ruleset_append", "malloc-leak", 5):
        "array_append() frees the old array, and ruleset_free() the new one",
    ("gcc", "fpm-dataplane/ctl/hops_text.c", "hops_push", "malloc-leak", 1):
        "the text hangs in w->hop, of which hops_reset() frees each",
    ("gcc", "fpm-dataplane/fwd/fast_lanes.h", "group_fast6", "use-of-uninitialized-value",
     1):
        "the loop sets each element of the vector, which the analyzer does not follow",
    ("gcc", "fpm-dataplane/fwd/few.c", "few_lookup_families", "use-of-uninitialized-value",
     1):
        "an index is in of6 before n6 counts it",
    ("gcc", "fpm-dataplane/fwd/lookup.c", "lookup_each4", "use-of-uninitialized-value", 1):
        "a burst has a packet, and the caller sets pt4[i] of each packet",
    ("gcc", "fpm-dataplane/neigh/hosts.c", "host_add", "malloc-leak", 1):
        "the host is in fib->hosts and nb->host, and host_remove() frees it",
    ("gcc", "fpm-dataplane/neigh/retire.c", "neigh_retire_memory", "malloc-leak", 1):
        "neigh_retire() links old->retired, and memory_free() frees it",
    ("gcc", "fpm-dataplane/neigh/vxlan.c", "vni_update", "malloc-leak", 1):
        "v->chain is in a chain of n->vni[], and vnis_free() frees it",
    ("gcc", "fpm-dataplane/neigh/vxlan_hop.c", "nb_renew_hop", "malloc-leak", 1):
        "nb->vxlan points to a member of it, and nb_free_hop() frees it",
    ("gcc", "fpm-dataplane/ruleset/members.c", "content_room", "malloc-leak", 2):
        "the old memory is lost only when there is no other, and then it aborts",
    ("gcc", "fpm-dataplane/trace/pcapng.c", "octets_put", "malloc-leak", 1):
        "the old memory is lost only when there is no other, and then it aborts",
    ("gcc", "/usr/include/dpdk/rte_ring_elem_pvt.h", "__rte_ring_enqueue_elems_64",
     "use-of-uninitialized-value", 1):
        "DPDK's; as many as there are were filled in",
    ("cppcheck", "fpm-dataplane/bfd/conn.c", "conn_remove", "nullPointer", 1):
        "recv() with MSG_TRUNC takes octets off a TCP stream without a buffer: tcp(7)",
    ("cppcheck", "fpm-dataplane/bfd/conn.c", "conn_keep_part", "nullPointer", 1):
        "recv() with MSG_TRUNC takes octets off a TCP stream without a buffer: tcp(7)",
    ("cppcheck", "fpm-dataplane/bfd/keep.c", "keep_map", "memleak", 1):
        "b->kept points into the memory, and keep_end() unmaps it",
    ("cppcheck", "fpm-dataplane/base/huge.c", "huge_new", "deallocret", 1):
        "two ends are given back, what is between them is returned",
    ("cppcheck", "fpm-dataplane/ruleset/acl.c", "part_classify",
     "bufferAccessOutOfBounds", 2):
        "the copy fills `src` and `dst`, which is next to it",
    ("cppcheck", "fpm-dataplane/ruleset/acl.c", "ruleset_acl_classify4",
     "bufferAccessOutOfBounds", 1):
        "the copy fills all members from `src` up to `bits`, as a static_assert says",
    ("cppcheck", "fpm-dataplane/fib/fib.c", "pages_reserve", "memleak", 1):
        "MAP_FAILED is no memory",
    ("cppcheck", "poptrie/build.c", "node_descend", "ctunullpointer", 2):
        "n_dirty is at least 1 there, and `old` is what it descends from",
    ("cppcheck", "tap-bridge/netns.c", "netns_socket", "resourceLeak", 1):
        "the descriptor is what is returned",
    ("tidy", "fpm-dataplane/config/load.c", "syntax_error_report",
     "clang-analyzer-core.NullDereference", 3):
        "`text` is NULL with `len` 0 only, and each index is below `len`",
    ("tidy", "fpm-dataplane/bfd/receive.c", "rings_take",
     "clang-analyzer-core.CallAndMessage", 1):
        "the ring has filled the first n entries",
    ("tidy", "fpm-dataplane/ctl/cmd_snmp.c", "answer_get",
     "clang-analyzer-core.CallAndMessage", 1):
        "oid->n is n + 2 there, and all numbers below oid->n are set",
    ("tidy", "fpm-dataplane/filter/rows.c", "ruleset_row",
     "clang-analyzer-core.NullDereference", 1):
        "in the states IN_FORCE and OLD the filter has a ruleset",
    ("tidy", "fpm-dataplane/fwd/lookup.c", "dst6_is_one",
     "clang-analyzer-core.CallAndMessage", 1):
        "a burst has a packet, and the caller sets dst6[i] of each packet",
    ("tidy", "fpm-dataplane/fwd/lookup.c", "lookup_each4",
     "clang-analyzer-core.UndefinedBinaryOperatorResult", 1):
        "a burst has a packet, and the caller sets pt4[i] of each packet",
    ("tidy", "fpm-dataplane/fpm/peer.c", "sockid_fill",
     "clang-analyzer-core.uninitialized.Assign", 1):
        "getsockname() and accept() have set the port of an address that is not IPv6",
    ("tidy", "fpm-dataplane/fwd/loop.c", "inject_drain",
     "clang-analyzer-core.CallAndMessage", 1):
        "the ring has filled the first n entries",
    ("tidy", "fpm-dataplane/fwd/tx.c", "vlan_frames_count",
     "clang-analyzer-core.UndefinedBinaryOperatorResult", 1):
        "without a frame it adds zero to a counter; otherwise frame[0] is set",
    ("tidy", "fpm-dataplane/hook/verify.c", "paths_take", "clang-analyzer-unix.Malloc", 1):
        "v->later is freed by the function that allocates it",
    ("tidy", "fpm-dataplane/manage/manage.c", "settings_apply",
     "bugprone-suspicious-memory-comparison", 1):
        "both are zeroed before they are read, padding included",
    ("tidy", "fpm-dataplane/neigh/iface.c", "iface_publish",
     "bugprone-suspicious-memory-comparison", 1):
        "padding is zero in both, as said there",
    ("tidy", "fpm-dataplane/neigh/link.c", "link_free_all", "clang-analyzer-unix.Malloc", 1):
        "it is out of its chain before it is freed: the chain is that of its ifindex",
    ("tidy", "fpm-dataplane/rib/rules.c", "ifaces_tell",
     "bugprone-suspicious-memory-comparison", 1):
        "msg_new() zeroes the message, padding included, and `told` is a copy of one",
    ("tidy", "fpm-dataplane/rib/words.c", "word_compute",
     "clang-analyzer-core.NonNullParamChecker", 1):
        "without `keep` log2_keep is 0, and log2_n of several paths is at least 1",
    ("tidy", "fpm-dataplane/ruleset/members.c", "address_ones",
     "clang-analyzer-core.UndefinedBinaryOperatorResult", 1):
        "with 0 bits the loop of span_add() ends, because first <= last",
    ("tidy", "fpm-dataplane/rib/zebra.c", "zebra_batch",
     "clang-analyzer-core.CallAndMessage", 1):
        "the first loop fills in as many as the last reads",
    ("tidy", "fpm-dataplane/supervise/store.c", "store_export",
     "clang-analyzer-core.CallAndMessage", 1):
        "the first loop fills in as many as the others read",
    ("tidy", "tap-bridge/kmon_mirror.c", "link_equal",
     "bugprone-suspicious-memory-comparison", 1):
        "both are zeroed first; with other padding the link is only reported again",
}
# fmt: on

CPPCHECK = """--enable=warning,performance,portability --inline-suppr --quiet --error-exitcode=0
--std=c11 --max-configs=1 --template={file}:{line}:{id}:{message} --library=posix
--suppress=missingInclude --suppress=missingIncludeSystem --suppress=unknownMacro""".split()
CPPCHECK += [
    "--suppress=" + word
    for word in (
        "uninitvar",  # wrong for cursors of intrusive lists, unlike the checks of gcc and clang
        "ctuuninitvar",
        "invalidFunctionArg",  # mmap() without a file wants -1
        "readdirCalled",  # safe because no two threads share a DIR; readdir_r() is deprecated
    )
]

# Checks that find bugs. Style is left to clang-format and the reviewer.
TIDY = "-*,clang-analyzer-*,bugprone-*,concurrency-*"
for _off in (
    # wants memcpy_s() of C11's Annex K, which glibc does not have
    "clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling",
    # flags each strcpy(); in this code the length is compared with the room before each call
    "clang-analyzer-security.insecureAPI.strcpy",
    "bugprone-easily-swappable-parameters",  # a matter of names
    "bugprone-reserved-identifier",  # _GNU_SOURCE and the like
    "bugprone-assignment-in-if-condition",  # the code does this in loop conditions only, on purpose
    "bugprone-narrowing-conversions",  # gcc's -Wconversion judges conversions by other rules
    "bugprone-implicit-widening-of-multiplication-result",  # the products are bounded
    "bugprone-branch-clone",  # cases that have the same code at present
    "bugprone-macro-parentheses",  # macros that make declarations cannot have them
    "concurrency-mt-unsafe",  # strerror(), getenv() at start
    "bugprone-sizeof-expression",  # arrays of pointers have the size of pointers
    "bugprone-misplaced-widening-cast",  # json_int_t is signed, and wide enough
):
    TIDY += ",-" + _off


# Files for CPUs of the other architecture, as NOT_x86 and NOT_arm64 in the Makefile.
FOREIGN = {"x86_64": ("_neon.c",), "aarch64": ("_sse4.c", "_avx2.c", "_avx512.c", "_x86.c")}

# gcc 12 takes log2 of the number of elements of a vector type (4, 8) for the bits of an element.
VECTOR_SHIFT = re.compile(r"precision of type \(‘[23]’\)")


def sources():
    """Return the C files of the programs that this machine compiles. The examples of
    fpm-dataplane/hook are for BPF."""
    foreign = FOREIGN.get(platform.machine(), ())
    paths = (p for f in FOLDERS for p in (ROOT / f).rglob("*.c"))
    ours = (p for p in paths if not p.name.endswith(foreign) and p.parent.name != "examples")
    return sorted(str(p.relative_to(ROOT)) for p in ours)


def run(argv):
    """Run a tool. Return (exit code, the text of stdout and stderr)."""
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def gcc(cc, flags, path):
    """Return the command of gcc -fanalyzer."""
    return [*cc, *flags, "-fanalyzer", "-O1", "-c", "-o", "/dev/null", path]


def gcc_rows(text):
    """Return [(file, line, check, text) of each finding] in gcc's output."""
    pattern = r"^(\S+?):(\d+):\d+: warning: (.*) \[-Wanalyzer-([\w-]+)\]$"
    found = re.findall(pattern, text, re.M)
    rows = [(name, line, check, said) for name, line, said, check in found]
    return [row for row in rows if not VECTOR_SHIFT.search(row[3])]


def cppcheck(_, flags, path):
    """Return the command of cppcheck."""
    words = [f for f in flags if f.startswith(("-D", "-I")) and not f.startswith("-I/")]
    words.append(f"-D__{platform.machine()}__=1")
    return ["cppcheck", *CPPCHECK, *words, path]


def cppcheck_rows(text):
    """Return the same as gcc_rows()."""
    return re.findall(r"^([^:\n]+):(\d+):(\w+):(.*)$", text, re.M)


def tidy(_, flags, path):
    """Return the command of clang-tidy."""
    drop = ("-fanalyzer", "-Wno-unused-parameter")
    words = [f for f in flags if f not in drop and not f.startswith("-W")]
    if "lookup_avx512" in path:
        words += ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vpopcntdq"]
    if "avx" in path:
        words += ["-mavx2", "-mbmi", "-mbmi2", "-mpopcnt"]
    return ["clang-tidy-14", "--quiet", f"--checks={TIDY}", path, "--", *words]


def tidy_rows(text):
    """Return the same as gcc_rows()."""
    pattern = r"^(\S+?):(\d+):\d+: (?:warning|error): (.*) \[([\w.,-]+)\]$"
    return [
        (os.path.relpath(name, ROOT) if name.startswith(str(ROOT)) else name, line, check, said)
        for name, line, said, check in re.findall(pattern, text, re.M)
    ]


# (program, or None for the compiler; its command; its findings)
TOOLS = {
    "gcc": (None, gcc, gcc_rows),
    "cppcheck": ("cppcheck", cppcheck, cppcheck_rows),
    "tidy": ("clang-tidy-14", tidy, tidy_rows),
}


def digest_of(cc, flags, path):
    """Return the digest of a preprocessed file with its comments, and of our files in it, whose
    other branches cppcheck reads. Return None if it cannot be preprocessed."""
    code, text = run([*cc, *without_version(flags), "-E", "-C", path])
    if code != 0:
        return None
    digest = hashlib.sha256(text.encode())
    for name in sorted({path, *re.findall(r'^# \d+ "([^"</][^"]*)"', text, re.M)}):
        if (ROOT / name).is_file():
            digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def without_version(words):
    """Return the words of a command without the version, which each commit changes."""
    return [w for w in words if not w.startswith("-DFPMDP_VERSION")]


def state_of(program):
    """Return the path, size and time of a program, which an upgrade changes."""
    path = os.path.realpath(shutil.which(program) or program)
    if not os.path.exists(path):
        return [path]
    return [path, os.stat(path).st_size, os.stat(path).st_mtime_ns]


def output_of(tool, argv, path, digest):
    """Return (exit code, output, seconds) of a tool for a file. The time of a kept output is
    None."""
    kept = ROOT / "build" / "analyze" / tool / f"{path}.json"
    key = [digest, state_of(argv[0]), without_version(argv)]
    if digest and kept.is_file():
        with contextlib.suppress(ValueError):
            old = json.loads(kept.read_text(encoding="utf-8"))
            if old["key"] == key:
                return 0, old["text"], None
    start = time.monotonic()
    code, text = run(argv)
    if digest and code == 0:
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(".new")
        new.write_text(json.dumps({"key": key, "text": text}), encoding="utf-8")
        new.rename(kept)
    return code, text, time.monotonic() - start


def findings(tool, cc, flags, path, digest):
    """Return (the findings of a tool in a file, seconds, or None for a kept output). The failure of a
    tool is a finding, whatever it found before."""
    _, command, rows = TOOLS[tool]
    code, text, took = output_of(tool, command(cc, flags, path), path, digest)
    found = rows(text)
    if code != 0:
        said = text.splitlines() or ["nothing said"]
        why = next((line for line in said if "error" in line), said[-1])
        found.append((path, "1", "failed", f"exit code {code}: {why}"))
    return found, took


def findings_of_all(tools, cc, flags, path):
    """Return {tool: findings()} of a file."""
    digest = digest_of(cc, flags, path)
    return {tool: findings(tool, cc, flags, path, digest) for tool in tools}


@functools.cache
def heads(name):
    """Return (line, function) of each start of a function. A line begins with its name, as
    `make format` and DPDK write it."""
    path = ROOT / name  # a name that is no file is a tool's word for "no file"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    rows = ((n, re.match(r"(\w+)\(", line)) for n, line in enumerate(text.split("\n"), 1))
    return [(n, head[1]) for n, head in rows if head]


def function_of(name, line):
    """Return the function that contains a line; "" if there is none."""
    return next((head for n, head in reversed(heads(name)) if n <= int(line)), "")


def unknown_functions():
    """Yield a text for each entry of KNOWN whose file or function does not exist."""
    for _, name, function, *_ in KNOWN:
        if name.startswith("/"):
            continue  # a file of another project
        if function not in (head for _, head in heads(name)):
            yield f"tests/lint/analyze.py: KNOWN names {function}(), which is not in {name}"


def problems(found, skipped):
    """Return the findings in more lines of a function than KNOWN allows, or in fewer, except those
    of skipped tools.
    `found` has {(tool, file, function, check): {(line, text)}}."""
    known = {tuple(key): n for *key, n in KNOWN if key[0] not in skipped}
    for key in found.keys() | known.keys():
        rows, most = found.get(key, set()), known.get(key, 0)
        tool, name, function, check = key
        n = len({line for line, _ in rows})
        what = f"{tool}: {check}{function and ' in '}{function}"
        if n > 0 and most > 0 and not (ROOT / name).is_relative_to(ROOT):
            continue  # a header of another project: any number of findings is accepted
        if n < most:
            yield f"{name}: fewer findings than KNOWN has [{what}, {most} known, {n} found]"
        elif n > most:
            what += f", {most} known, {n} found" if most else ""
            yield from (f"{name}:{line}: {text} [{what}]" for line, text in rows)


def analyze(cc, flags, files, tools):
    """Run each tool on each file. Return {(tool, file, function, check): {(line, text)}}. Print a line
    for each file that a tool has read, with its findings that KNOWN does not have."""
    known, found = {tuple(key) for *key, _ in KNOWN}, collections.defaultdict(set)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(findings_of_all, tools, cc, flags, path): path for path in files}
        for n, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            all_rows = job.result()
            times = [f"{tool} {took:.1f} s" for tool, (_, took) in all_rows.items() if took is not None]
            if times:
                print(f"analyze: {n} of {len(jobs)}: {jobs[job]}, {', '.join(times)}", file=sys.stderr)
            for tool, (rows, took) in all_rows.items():
                for name, line, check, text in rows:
                    key = tool, name, function_of(name, line), check
                    if key not in known and (line, text) not in found[key] and took is not None:
                        print(f"  {name}:{line}: {text} [{tool}: {check}]", file=sys.stderr)
                    found[key].add((line, text))
    return found


def main(argv):
    """Returns the exit code."""
    split = argv.index("--")
    cc, flags = argv[:split], argv[split + 1 :]
    skipped = {t: p for t, (p, *_) in TOOLS.items() if p and shutil.which(p) is None}
    files = sources()
    found = analyze(cc, flags, files, [tool for tool in TOOLS if tool not in skipped])
    wrong = sorted(problems(found, skipped))
    for text in wrong:
        print(text)
    tail = f", skipped: {', '.join(skipped.values())} (make analyze installs)" if skipped else ""
    print(f"analyze: {len(files)} C files, {len(KNOWN)} known, {len(wrong)} problem(s){tail}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
