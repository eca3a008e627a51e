# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the test tools. `make test` runs them when a tool has changed since they last passed."""

import os
import sys

# Some tests import files of the system tests.
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "system")]


def pytest_configure(config):
    """Declare the mark `long`."""
    config.addinivalue_line("markers", "long: only with FDP_LONG=1")
