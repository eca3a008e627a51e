# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the test tools. `make test` runs them when a tool has changed since they last passed."""

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "system")]


def pytest_configure(config):
    """Add the folder of the system tests to the path, because some tests import their files."""
    config.addinivalue_line("markers", "long: only with FDP_LONG=1")
