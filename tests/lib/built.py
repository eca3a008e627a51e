# SPDX-License-Identifier: BSD-3-Clause
"""Tell which build is under test. A build with sanitizers skips some tests and has more time or
memory in others."""

import glob

import pytest


def reporting_to(log):
    """Return {variable: value}: with this environment, programs with sanitizers write their reports
    to files LOG.PID and end with exit code 99. Another library may come before the sanitizer's
    (preload.py)."""
    more = "detect_leaks=1:exitcode=99:verify_asan_link_order=0"
    return {
        "ASAN_OPTIONS": f"log_path={log}:{more}",
        "UBSAN_OPTIONS": f"log_path={log}:print_stacktrace=1",
    }


class Reports:
    """The reports that programs with sanitizers wrote to files LOG.PID."""

    def __init__(self, log):
        self.log, self.seen = log, {}

    def new(self):
        """Return all reports since the last call."""
        found = []
        for name in sorted(glob.glob(glob.escape(self.log) + ".*")):
            with open(name, errors="replace", encoding="utf-8") as file:
                text = file.read()
            found.append(text[len(self.seen.get(name, "")) :])
            self.seen[name] = text
        return "".join(found)


def sanitized(dut):
    """Return True if the daemon has AddressSanitizer and UBSan. It then needs twice the time or
    more, and twice the memory."""
    return dut.daemon.build == "asan"  # its program may be a copy in another folder


def only_release(program, what="time and memory are"):
    """Skip the test unless the build is a release build, because times and memory differ in other builds."""
    if "/release/" not in program:
        pytest.skip(f"{what} measured on the release build")


def not_sanitized(dut, why):
    """Skip the test in a build with sanitizers, with the reason `why`."""
    if sanitized(dut):
        pytest.skip(f"with sanitizers {why}")
