# SPDX-License-Identifier: BSD-3-Clause
"""`make chaos` with one seed injects a fixed list of faults in half a minute. With FDP_LONG=1 it
injects all faults, and more of each."""

import os
import re
import subprocess
import sys

import pytest

from lib.built import only_release
from lib.dataplane import ROOT, Dataplane
from lib.wait import PATIENCE

# The variables that the program reads. `make system T=...` sets one of them, too.
WORDS = ("T", "LEAST", "SEED", "ROUTES", "RATE", "REPEAT", "EACH", "ONLY")

# All short faults in one sequence. The faults that may cost no session of FRR come first. Two kills
# of the daemon are more than ten seconds apart, because the supervisor remembers a crash for ten
# seconds.
BRIEF = "daemon_dies_in_churn table questions nonsense_requests nonsense_file nonsense_frames"
BRIEF += " netlink_overrun rib_stands_still daemon_stands_still flood daemon_is_restarted"
BRIEF += " mtu_changes neighbors_forgotten isp_moves checkpoint_is_damaged daemon_dies_twice"
BRIEF += " router_mac_moves vxlan_goes churn labels_churn segments_churn core_flap nonsense_channels address_goes isp_dies wan_flap bgpd_dies"
BRIEF += " zebra_stands_still"

# The short faults. Most of them fit into a minute on a free machine. Each fault is used once before any fault is
# repeated.
SHORT = "churn table wan_flap core_flap isp_dies isp_moves neighbors_forgotten mtu_changes"
SHORT += " netlink_overrun daemon_dies daemon_dies_twice daemon_is_restarted daemon_stands_still"
SHORT += " daemon_dies_in_churn checkpoint_is_damaged rib_stands_still bgpd_dies questions flood"
SHORT += " labels_churn segments_churn daemon_dies_in_labels_churn daemon_dies_in_segments_churn"
SHORT += " router_mac_moves vxlan_goes nonsense_frames nonsense_channels nonsense_requests nonsense_file"
AT_LEAST = 14  # of the short faults; a run prints the faults that were not drawn

# Faults that end zebra and with it all of FRR, and faults for which the minute may have no time.
# Each comes once, when all is quiet again.
FRR = "zebra_dies zebra_stands_still ospfd_dies core_dies frr_dies frr_is_restarted"
FRR += " bgpd_restarts_gracefully"
OTHERS = "address_goes isp_is_silent flood nonsense_frames nonsense_channels nonsense_requests"
OTHERS += " nonsense_file daemon_dies_in_labels_churn daemon_dies_in_segments_churn"

RUNS = {
    "half a minute": {"EACH": "1", "SEED": "8", "ROUTES": "2000", "ONLY": BRIEF},
    "a minute": {"T": "60", "LEAST": f"{AT_LEAST}", "SEED": "8", "ROUTES": "2000", "ONLY": SHORT},
    "FRR dies": {"REPEAT": "1", "SEED": "8", "ROUTES": "2000", "ONLY": FRR},
    "others": {"REPEAT": "1", "SEED": "8", "ROUTES": "2000", "ONLY": OTHERS},
}


def environment(**words):
    """Return the environment with these of the program's variables and no others."""
    return {k: v for k, v in os.environ.items() if k not in WORDS} | words


def played(run):
    """Return the output of the program. The test fails when the program fails."""
    program = Dataplane(None, "", "", "", "").program
    only_release(program, "times are")
    # On SIGTERM the program removes its test bed.
    limit = int(400 * PATIENCE)
    argv = ["timeout", "-k", "60", str(limit), sys.executable]
    argv += [os.path.join(ROOT, "tests", "chaos", "run.py")]
    env = environment(**run | {"ONLY": run["ONLY"].replace(" ", ",")})

    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=limit + 80, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return done.stdout


@pytest.mark.parametrize(
    "name", [x if x == "half a minute" else pytest.param(x, marks=pytest.mark.long) for x in RUNS]
)
def test_a_short_chaos(possible, name):
    """The router loses packets only in declared windows. No packet leaves by a wrong port or
    damaged, no session of FRR ends by an unrelated fault, and in the end zebra, RIB and FIB are
    equal and all packet buffers are free."""
    said, asked = played(RUNS[name]), RUNS[name]["ONLY"].split()

    drawn, of = map(int, re.search(r"drawn: (\d+) of (\d+) faults", said).groups())
    assert of == len(asked) and drawn >= (AT_LEAST if "T" in RUNS[name] else of)


@pytest.mark.long
def test_frr_sessions_survive_kills_under_load(possible):
    """BGP (hold 9 s), OSPF (dead 5 s) and BFD (2 s) survive three kills, each at a random moment of
    10,000 route changes a second, beside traffic of which the test checks each packet's egress: no
    session flaps, no carrier is lost, no packet takes a wrong egress, and afterwards all routes are
    right."""
    run = {"REPEAT": "3", "SEED": "8", "ROUTES": "2000", "ONLY": "daemon_dies_in_churn"}

    said = played(run)

    (times, sent) = re.search(r"^dies in churn +(\d+) +(\d+)", said, re.M).groups()
    assert int(times) == 3 and int(sent) > 3000
