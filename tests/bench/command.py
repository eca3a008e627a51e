# SPDX-License-Identifier: BSD-3-Clause
"""Make the JSON line that records the command, the build and the instruction set of a benchmark's run.
Options come from the environment. The line has the options that the benchmark knows and that are
set."""

import os
import subprocess
from pathlib import Path

# The values of these options are files. The line has their names without the folder.
FILES = ("TABLE", "UPDATES", "PNG")
AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "bmi1"}  # as fwd_isa_best()
NO_ISA = "instruction set not recorded"
# The values of ISA, the widest instructions that all programs may use. An unset option sets no limit.
NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "scalar": "x86-64-v2", "reference": "scalar"}


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


def used():
    """Return the vector instructions that the product used in a benchmark that obeys ISA."""
    return NAMES.get(os.environ.get("ISA", ""), isa())


def isa():
    """Return the vector instructions of this CPU that the product uses."""
    flags = set(facts_of_cpu().get("flags", "").split())
    if AVX512 <= flags:
        return "AVX-512"
    return "AVX2" if "avx2" in flags else "x86-64-v2"


def model():
    """Return vendor, family and model of this CPU. The name in /proc/cpuinfo says too little: virtual
    machines call Zen 1 and Zen 4 "AMD EPYC"."""
    facts = facts_of_cpu()
    words = [facts.get(name, "?") for name in ("vendor_id", "cpu family", "model")]
    return "{} family {} model {}".format(*words)


def facts_of_cpu():
    """Return {name: value} of the first CPU in /proc/cpuinfo."""
    text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    pairs = (x.partition(":") for x in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def shown(option, value):
    """Return the value as a word of a shell."""
    if option in FILES:
        value = " ".join(Path(x).name for x in value.split())
    return f'"{value}"' if set(value) & set(" \n*?") else value
