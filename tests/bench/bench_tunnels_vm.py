#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run rows of bench-fpm that need links of the kernel in a virtual machine, whose kernel has every
kind: 4,000 tunnels, 1,000 VNIs, and 10,000 SIDs beside them. JSON lines on stdout, tables on stderr.

    bench_tunnels_vm.py         (options: tests/bench/README.md)

Without KVM the guest runs emulated code, which is about ten times as slow.
"""

import contextlib
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "vm")]

ROWS = "tunnels,vnis,sids"


def main():
    """Returns the exit code."""
    import run

    kernel = run.guest.Kernel(f"{ROOT}/build/vm")
    if not run.can_run("bench-tunnels-vm: skipped", kernel):
        return 0
    kernel.prepare()
    reps = os.environ.get("REPS") or (1 if os.environ.get("QUICK") else 3)
    rows = os.environ.get("ROWS") or ROWS
    words = f"{run.ENVIRONMENT} REPS={int(reps)} ROWS='{rows}' {sys.executable} {HERE}/bench_fpm.py"
    with contextlib.redirect_stdout(sys.stderr):
        code = run.in_guest(kernel, "bench-tunnels", words, seconds=3600)
    log = Path(f"{ROOT}/build/vm/bench-tunnels.log")
    text = log.read_text(encoding="utf-8", errors="replace")
    print(*re.findall(r'^\{"bench": .*\}$', text, re.M), sep="\n", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
