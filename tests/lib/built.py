# SPDX-License-Identifier: BSD-3-Clause
"""Which build is under test: what cannot be asked of one with sanitizers is skipped there, or is
given more."""

import glob

import pytest


def reporting_to(log):
    """{variable: value}: programs with sanitizers write what they find to files LOG.PID, and end
    with 99. A library may come before theirs (preload.py)."""
    more = "detect_leaks=1:exitcode=99:verify_asan_link_order=0"
    return {
        "ASAN_OPTIONS": f"log_path={log}:{more}",
        "UBSAN_OPTIONS": f"log_path={log}:print_stacktrace=1",
    }


class Reports:
    """What programs with sanitizers wrote to files LOG.PID."""

    def __init__(self, log):
        self.log, self.seen = log, {}

    def new(self):
        """All that came since this was asked last."""
        found = []
        for name in sorted(glob.glob(glob.escape(self.log) + ".*")):
            with open(name, errors="replace", encoding="utf-8") as file:
                text = file.read()
            found.append(text[len(self.seen.get(name, "")) :])
            self.seen[name] = text
        return "".join(found)


def sanitized(dut):
    """With AddressSanitizer and UBSan? They take twice the time or more, and twice the memory."""
    return "/asan/" in dut.daemon.program


def only_release(program, what="time and memory are"):
    """Skip what any other build says nothing of."""
    if "/release/" not in program:
        pytest.skip(f"{what} measured on the release build")


def not_sanitized(dut, why):
    """Skip, and say why."""
    if sanitized(dut):
        pytest.skip(f"with sanitizers {why}")
