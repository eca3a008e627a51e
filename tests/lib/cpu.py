# SPDX-License-Identifier: BSD-3-Clause
"""Facts of this CPU, and the instructions that our code should use on it. The lists of features are the
tests' own, so that they do not repeat a mistake of the product."""

from pathlib import Path

AVX2 = {"avx2", "bmi1", "bmi2"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
# The words of the key `instructions`, and the names that the programs print.
NAMES = {"scalar": "scalar", "sse4": "SSE4", "avx2": "AVX2", "avx512": "AVX-512"}


def facts():
    """Return {name: value} of the first CPU in /proc/cpuinfo."""
    text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    pairs = (x.partition(":") for x in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def flags():
    """Return the features of this CPU as the kernel names them."""
    return set(facts().get("flags", "").split())


def forwarding(has):
    """Return the word of the widest instructions of the forwarders on a CPU with these features."""
    if AVX512 <= has:
        return "avx512"
    return "avx2" if AVX2 <= has else "sse4"


def lookups(has):
    """Return the word of the widest instructions of lookups on a CPU with these features. Skylake-SP,
    Cascade Lake and Cooper Lake have no VPOPCNTDQ."""
    if AVX512 | {"avx512_vpopcntdq"} <= has:
        return "avx512"
    return "avx2" if AVX2 <= has else "scalar"
