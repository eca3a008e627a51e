# SPDX-License-Identifier: BSD-3-Clause
"""A short `make chaos`: the same program, one seed, what takes longest left out."""

import os
import subprocess
import sys

import pytest

from lib.dataplane import ROOT, Dataplane

SHORT = "churn table wan_flap core_flap isp_dies isp_moves neighbours_forgotten mtu_changes"
SHORT += " netlink_overrun daemon_dies daemon_dies_twice daemon_is_restarted daemon_stands_still"
SHORT += " rib_stands_still bgpd_dies nonsense_frames nonsense_channels questions flood"


def test_half_a_minute_of_chaos(possible):
    """Nothing is lost but in declared windows, nothing leaves by a wrong port or damaged,
    and in the end zebra, RIB and FIB say the same, with all packet buffers free."""
    program = Dataplane(None, "", "", "", "").program
    if "/release/" not in program:
        pytest.skip("times are those of the release build")
    argv = [sys.executable, os.path.join(ROOT, "tests", "chaos", "run.py")]
    words = {"T": "30", "SEED": "8", "ROUTES": "2000", "ONLY": SHORT.replace(" ", ",")}
    env = {**os.environ, **words}

    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=240, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
