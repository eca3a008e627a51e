# SPDX-License-Identifier: BSD-3-Clause
"""Build parts of Debian's dpdk source package under build/ when a benchmark needs them: the
traffic port, because drivers need headers that libdpdk-dev does not have, and l3fwd with higher
limits. The project has no copy of them. The apt configuration of the system is read, not changed.
"""

import re
import shutil
import subprocess
from pathlib import Path

PACKAGE = "dpdk"

# l3fwd holds 1024 routes (LPM) or 65536 (FIB) unless changed: (file, pattern, replacement).
RAISED = [
    ("l3fwd_lpm.c", r"(IPV[46]_L3FWD_LPM_MAX_RULES\s+)1024", r"\1(1 << 20)"),
    ("l3fwd_lpm.c", r"(IPV4_L3FWD_LPM_NUMBER_TBL8S\s+)\(1 << 8\)", r"\1(1 << 16)"),
    ("l3fwd_fib.c", r"max_routes = \(1 << 16\);", "max_routes = 3 << 19;"),
]
# For IPv6 each route reserves a group for every octet beyond 24 bits.
FOUR_BYTES = [
    ("l3fwd_fib.c", r"max_routes = \(1 << 16\) - 1;", "max_routes = 1 << 19;"),
    ("l3fwd_fib.c", r"trie\.num_tbl8 = \(1 << 15\)", "trie.num_tbl8 = 1 << 19"),
]
# The smallest entries; for IPv4 alone.
TWO_BYTES = [
    ("l3fwd_fib.c", r"RTE_FIB_DIR24_8_4B", "RTE_FIB_DIR24_8_2B"),
    ("l3fwd_fib.c", r"dir24_8\.num_tbl8 = \(1 << 15\)", "dir24_8.num_tbl8 = (1 << 15) - 1"),
]
# Packets leave after the burst in which they came. Unchanged, l3fwd holds up to 16 or 32 packets of
# a port for 100 us.
PROMPT = [("l3fwd.h", r"BURST_TX_DRAIN_US 100 ", "BURST_TX_DRAIN_US 0 ")]
# The programs: {name: changes of the source}.
L3FWD = {
    "l3fwd-4B": RAISED + FOUR_BYTES,
    "l3fwd-2B": RAISED + TWO_BYTES,
    "l3fwd-4B-prompt": RAISED + FOUR_BYTES + PROMPT,
    "l3fwd-2B-prompt": RAISED + TWO_BYTES + PROMPT,
}
MARCH = {"": "native", "avx512": "x86-64-v4", "avx2": "x86-64-v3", "scalar": "x86-64-v2"}
MARCH["sse4"] = MARCH["reference"] = MARCH["scalar"]


class SourceError(Exception):
    """A part cannot be built. The text is one sentence with the reason."""


def run(argv, **words):
    """Run a command and return its output. The error has its last line."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **words)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no word"]
        raise SourceError(f"{argv[0]}: {said[0]}")
    return done.stdout


def package_version():
    """Return the version of the installed package. Source and library must have the same version."""
    return run(["dpkg-query", "-W", "-f", "${Version}", "libdpdk-dev"])


def fetch(folder):
    """Unpack the source of the installed version below `folder`. Return its folder."""
    version = package_version()
    upstream = re.sub(r"^\d+:", "", version).rsplit("-", 1)[0]
    tree = folder / f"{PACKAGE}-{upstream}"
    if (tree / "meson.build").exists():
        return tree
    apt = folder / "apt"
    for sub in ("parts", "lists/partial", "cache/archives/partial"):
        (apt / sub).mkdir(parents=True, exist_ok=True)
    sources = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    for path in sources:
        if path.suffix in (".list", ".sources") and path.exists():
            text = re.sub(r"(?m)^deb\s", "deb-src ", path.read_text())
            text = re.sub(r"(?m)^Types:.*", "Types: deb-src", text)
            (apt / "parts" / path.name).write_text(text)
    words = [
        f"Dir::Etc::sourcelist={apt}/none",
        f"Dir::Etc::sourceparts={apt}/parts",
        f"Dir::State::lists={apt}/lists",
        f"Dir::Cache={apt}/cache",
        "APT::Sandbox::User=root",
    ]
    options = [x for word in words for x in ("-o", word)]
    run(["apt-get", *options, "update"])
    run(
        ["apt-get", *options, "source", "--only-source", f"{PACKAGE}={version}"],
        cwd=folder,
    )
    if not (tree / "meson.build").exists():
        raise SourceError(
            f"the source of {PACKAGE} {version} did not unpack to {tree.name}"
        )
    return tree


def flags(kind):
    """Return the flags of pkg-config for DPDK."""
    return run(["pkg-config", f"--{kind}", "libdpdk"]).split()


def build_port(tree, folder, out):
    """Compile the traffic port in `folder` to a plugin."""
    parts = [folder / "pmd.c", folder / "stream.c"]
    if newer(out, *parts, *folder.glob("*.h")):
        return out
    argv = ["gcc", "-std=gnu17", "-O3", "-g", "-shared", "-fPIC", "-Wall"]
    argv += ["-DALLOW_INTERNAL_API", "-DALLOW_EXPERIMENTAL_API", *flags("cflags")]
    argv += ["-march=native", f"-I{tree}/lib/ethdev", f"-I{tree}/drivers/bus/vdev"]
    argv += [f"-I{tree}/lib/eal/include", "-o", str(out), *map(str, parts)]
    # Some programs are not linked with the bus of virtual devices.
    run(argv + ["-Wl,--no-as-needed", "-lrte_bus_vdev", "-lrte_ethdev", "-lrte_eal"])
    return out


def build_l3fwd(tree, folder, name, isa=""):
    """Compile a program of L3FWD. isa: the option ISA; "": for this CPU."""
    out = folder / (f"{name}-{isa}" if isa else name)
    if out.exists():
        return out
    work = folder / f"{out.name}-src"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(tree / "examples/l3fwd", work)
    for file, pattern, instead in L3FWD[name]:
        text, n = re.subn(pattern, instead, (work / file).read_text())
        if n == 0:
            raise SourceError(f"l3fwd's {file} is not as expected: no {pattern}")
        (work / file).write_text(text)
    argv = ["gcc", "-O3", *flags("cflags"), f"-march={MARCH[isa]}", "-DALLOW_EXPERIMENTAL_API"]
    argv += [f"-I{tree}/examples/common", "-o", str(out)]
    argv += [str(path) for path in sorted(work.glob("*.c")) if compiled(work, path)]
    run(argv + flags("libs"))
    return out


def compiled(work, path):
    """Return True if the file is compiled by itself. Other files are included."""
    included = "".join(p.read_text() for p in work.glob("*.c"))
    return f'#include "{path.name}"' not in included


def newer(out, *inputs):
    """Return True if `out` exists and is not older than its inputs."""
    return out.exists() and all(
        out.stat().st_mtime >= path.stat().st_mtime for path in inputs
    )
