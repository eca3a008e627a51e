# SPDX-License-Identifier: BSD-3-Clause
"""Make the JSON line that records the command, the build and the instruction set of a benchmark's run.
Options come from the environment. The line has the options that the benchmark knows and that are
set."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from lib import cpu  # noqa: E402

# The values of these options are files. The line has their names without the folder.
FILES = ("TABLE", "UPDATES", "PNG")
NO_ISA = "instruction set not recorded"
# The values of ISA, the widest instructions that all programs may use, and the words of the key
# `instructions`. Code for x86-64-v2 has vectors of 128 bits. An unset option sets no limit.
LIMITS = {"": "avx512", "avx512": "avx512", "avx2": "avx2", "sse4": "sse4", "scalar": "sse4",
          "reference": "scalar"}  # fmt: skip
ORDER = list(cpu.NAMES)


def line(name, options):
    """Return the JSON line. options: the names of all options that the benchmark knows."""
    given = [f"{o}={shown(o, os.environ[o])}" for o in sorted(options) if os.environ.get(o)]
    return {
        "bench": "command", "command": " ".join(["make", name, *given]), "build": build(),
        "isa": used() if "ISA" in options else isa()
    }  # fmt: skip


def build():
    """Return the version and the commit of the tree, as the programs print them."""
    script = Path(__file__).resolve().parents[2] / "fpm-dataplane" / "dist" / "version.sh"
    return subprocess.run([script], capture_output=True, text=True, check=False).stdout.strip()


def limit():
    """Return the option ISA as a word of `instructions`. Ends the program if the option is wrong."""
    given = os.environ.get("ISA", "")
    if given not in LIMITS:
        sys.exit(f"ISA={given}: the values are {', '.join(filter(None, LIMITS))}")
    return LIMITS[given]


def used():
    """Return the vector instructions that the product used in a benchmark that obeys ISA."""
    return isa(limit())


def isa(most="avx512"):
    """Return the vector instructions of this CPU that the product uses, if it may use `most`. Names the
    instructions of lookups if they differ: on some CPUs only forwarding uses AVX-512."""
    forwarding = min(cpu.forwarding(cpu.flags()), most, key=ORDER.index)
    names = {**cpu.NAMES, "sse4": "x86-64-v2"}
    if forwarding == "avx512" and lookups(most) != "avx512":
        return f"{names[forwarding]}, lookups {names[lookups(most)]}"
    return names[forwarding]


def lookups(most):
    """Return the word of the instructions that lookups use on this CPU, if they may use `most`."""
    return min(cpu.lookups(cpu.flags()), most, key=ORDER.index)


def model():
    """Return vendor, family and model of this CPU. The name in /proc/cpuinfo says too little: virtual
    machines call Zen 1 and Zen 4 "AMD EPYC"."""
    facts = cpu.facts()
    words = [facts.get(name, "?") for name in ("vendor_id", "cpu family", "model")]
    return "{} family {} model {}".format(*words)


def shown(option, value):
    """Return the value as a word of a shell."""
    if option in FILES:
        value = " ".join(Path(x).name for x in value.split())
    return f'"{value}"' if set(value) & set(" \n*?") else value
