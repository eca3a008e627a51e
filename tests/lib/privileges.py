# SPDX-License-Identifier: BSD-3-Clause
"""Check the privileges of a process that has dropped all privileges except those of security.md."""

import glob

CAPABILITIES = {
    "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_RAWIO": 17, "SYS_ADMIN": 21
}  # fmt: skip
SYS_NICE = 1 << 23


def threads(pid):
    """Return the kernel's status of each thread."""
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path, encoding="ascii") as file:
            yield dict(line.split(":\t", 1) for line in file.read().splitlines())


def assert_dropped(pid, more=0):
    """Check that no thread has more privileges, that execve() adds none, and that a filter for
    system calls is installed. `more`: bits of capabilities that it may have, too."""
    allowed = more | sum(1 << bit for bit in CAPABILITIES.values())
    rows = list(threads(pid))

    assert rows
    for row in rows:
        for key in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb"):
            assert int(row[key], 16) & ~allowed == 0, (row["Name"], key, row[key])
        assert row["NoNewPrivs"].strip() == "1", row["Name"]
        assert row["Seccomp"].strip() == "2", row["Name"]
