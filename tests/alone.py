# SPDX-License-Identifier: BSD-3-Clause
"""The tests that must run alone on the machine, each with the reason. tests/suite.py runs them when
no other job runs. A key is a file of tests/system, or one test: `test_x.py::test_name`."""

import os

NEIGHBORS = "a scan fills the kernel's neighbor table, which all namespaces share"

ALONE = {
    "test_neigh_life.py::test_a_scan_leaves_gateways_alone_and_memory_bounded": NEIGHBORS,
    "test_neigh_life.py::test_a_scan_does_not_prevent_the_resolution_of_other_hosts": NEIGHBORS,
}

# Tests of tests/selftest.
SELFTEST = {
    "test_lab.py::test_a_host_whose_kernel_could_not_answer_is_asked_again": (
        "echo replies to absent hosts fill the ICMP socket of a CPU, which all namespaces share: for "
        "3 s no kernel sends ICMP messages from that CPU"
    ),
}

# The tests that must run alone only in their longer variants (FDP_LONG).
ALONE_LONG = {
    "test_flood.py": "scans fill the kernel's neighbor table, and floods take a CPU",
    "test_resources.py": "133,000 neighbors are in the kernel's table",
}


def alone():
    """Return {file or test: reason} of this run."""
    return {**ALONE, **(ALONE_LONG if "FDP_LONG" in os.environ else {})}
