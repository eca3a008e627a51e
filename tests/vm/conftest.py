# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests that run in a guest. tests/vm/run.py runs them; do not run them on a
machine by hand."""

import glob
import os
import shutil
import sys

import pytest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "system")]

from lib import netns  # noqa: E402
from qmp import Qmp  # noqa: E402
from router import Router, running  # noqa: E402
from service import DPKG, machine, router  # noqa: E402, F401


def pytest_configure(config):
    """Add the markers of the tests."""
    config.addinivalue_line("markers", "quick: `make test-vm` runs it, too")
    config.addinivalue_line("markers", "guest: `make test-vm-all` runs it in a virtual machine")


@pytest.fixture(scope="session")
def qmp():
    """Connect to QEMU's monitor."""
    with Qmp() as monitor:
        yield monitor


@pytest.fixture(scope="session")
def on_veths():
    """Start a router on veths that several files share."""
    with running(Router(name="veths")) as router:
        yield router


@pytest.fixture(scope="session")
def package():
    """Install the project's package."""
    (deb,) = glob.glob(os.environ["FDP_DEB"])
    for name in ("info", "updates"):
        os.makedirs(f"/run/dpkg/{name}")
    shutil.copy("/var/lib/dpkg/status", "/run/dpkg")
    # The root file system may be a container's image, whose policy forbids packages to start
    # services.
    if os.path.exists("/usr/sbin/policy-rc.d"):
        os.unlink("/usr/sbin/policy-rc.d")
    netns.command([*DPKG, "--install", deb], timeout=180)
    netns.command(["systemctl", "daemon-reload"])


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def family(request):
    """Return each address family."""
    return request.param
