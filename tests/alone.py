# SPDX-License-Identifier: BSD-3-Clause
"""System tests that need the machine to themselves, each with the reason. tests/suite.py runs them
when no other job runs. A key is a file of tests/system, or a test of one: `test_x.py::test_name`."""

ALONE = {
    "test_neigh_life.py": "scans fill the kernel's neighbour table, which all namespaces share",
}
