# SPDX-License-Identifier: BSD-3-Clause
"""A short `make chaos`: the same program, one seed, what takes longest left out."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from chaos import run as chaos
from lib.dataplane import ROOT, Dataplane

SHORT = "churn table wan_flap core_flap isp_dies isp_moves neighbours_forgotten mtu_changes"
SHORT += " netlink_overrun daemon_dies daemon_dies_twice daemon_is_restarted daemon_stands_still"
SHORT += " rib_stands_still bgpd_dies nonsense_frames nonsense_channels questions flood"


# Others, each once, when all is quiet again; zebra takes all of FRR along.
OTHERS = "zebra_dies zebra_stands_still address_goes ospfd_dies isp_is_silent"

RUNS = {
    "half a minute": {"T": "30", "SEED": "8", "ROUTES": "2000", "ONLY": SHORT},
    "FRR dies": {"REPEAT": "1", "SEED": "8", "ROUTES": "2000", "ONLY": OTHERS},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_short_chaos(possible, name):
    """Nothing is lost but in declared windows, nothing leaves by a wrong port or damaged,
    and in the end zebra, RIB and FIB say the same, with all packet buffers free."""
    program = Dataplane(None, "", "", "", "").program
    if "/release/" not in program:
        pytest.skip("times are those of the release build")
    argv = [sys.executable, os.path.join(ROOT, "tests", "chaos", "run.py")]
    env = {**os.environ, **RUNS[name], "ONLY": RUNS[name]["ONLY"].replace(" ", ",")}

    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=240, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_soak_calls_a_leak():
    """Of a daemon that runs on it is what it grew by after the first minutes, 8 MiB at most; of
    one that was started anew since, more, for it has a replay behind it."""
    mib = 1 << 20
    flat = [(7, 0, 100 * mib), (7, 250, 290 * mib), (7, 310, 300 * mib), (7, 370, 299 * mib)]

    assert chaos.growth(flat, (7, 3600, 309 * mib)) == (9 * mib, 8 * mib)
    assert chaos.growth(flat, (8, 40, 140 * mib)) == (40 * mib, 48 * mib)
    assert chaos.growth(flat[:2], (7, 290, 140 * mib)) == (40 * mib, 48 * mib)


def test_what_chaos_counts_of_the_log(tmp_path):
    """Lines of one kind about one thing in one second, whatever numbers are in them; fewer of
    those that are limited."""
    head = "2026-01-01T10:00:0{}.{:03d}Z W "
    bed = SimpleNamespace(dp=SimpleNamespace(log_file=str(tmp_path / "log")))
    with open(bed.dp.log_file, "w", encoding="utf-8") as file:
        for n in range(8):
            file.write(head.format(0, n) + f"neigh: carrier up port=lan{n}\n")
            file.write(head.format(n, n) + "rib: table is full table=groups missed=7\n")
        for n in range(5):
            file.write(head.format(9, n) + f"fpm: session up peer=127.0.0.1:{n} missed=0\n")
            file.write(head.format(9, n) + f"neigh: mtu changed port=wan0 mtu={n}\n")

    rows = chaos.log_rates(bed)

    assert rows[:2] == [(5, "neigh: mtu changed wan0", 8), (5, "fpm: session up", 3)]
    assert {n for n, _, _ in rows[2:]} == {1} and len(rows) == 2 + 16
