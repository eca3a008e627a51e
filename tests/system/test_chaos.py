# SPDX-License-Identifier: BSD-3-Clause
"""`make chaos` with one seed: a fixed list of faults in half a minute; with FDP_LONG=1 all faults,
and more of each."""

import os
import re
import subprocess
import sys

import pytest

from lib.built import only_release
from lib.dataplane import ROOT, Dataplane

# What it goes by; `make system T=...` has one of these, too.
WORDS = ("T", "SEED", "ROUTES", "RATE", "REPEAT", "EACH", "ONLY")

# All that are over soon, one into another: first those that may cost no session of FRR's, between
# two kills of the daemon more than the ten seconds for which the supervisor remembers a crash.
BRIEF = "daemon_dies_in_churn table questions nonsense_requests nonsense_file nonsense_frames"
BRIEF += " netlink_overrun rib_stands_still daemon_stands_still flood daemon_is_restarted"
BRIEF += " mtu_changes neighbors_forgotten isp_moves checkpoint_is_damaged daemon_dies_twice"
BRIEF += " churn core_flap nonsense_channels address_goes isp_dies wan_flap bgpd_dies"
BRIEF += " zebra_stands_still"

# Those that are over soon. A minute holds most of them, each once before any comes again.
SHORT = "churn table wan_flap core_flap isp_dies isp_moves neighbors_forgotten mtu_changes"
SHORT += " netlink_overrun daemon_dies daemon_dies_twice daemon_is_restarted daemon_stands_still"
SHORT += " daemon_dies_in_churn checkpoint_is_damaged rib_stands_still bgpd_dies questions flood"
SHORT += " nonsense_frames nonsense_channels nonsense_requests nonsense_file"
AT_LEAST = 14  # of those; a run says which were not drawn

# Others, and those that the minute may not come to, each once, when all is quiet again; zebra takes
# all of FRR along.
FRR = "zebra_dies zebra_stands_still ospfd_dies core_dies frr_dies frr_is_restarted"
FRR += " bgpd_restarts_gracefully"
OTHERS = "address_goes isp_is_silent flood nonsense_frames nonsense_channels nonsense_requests"
OTHERS += " nonsense_file"

RUNS = {
    "half a minute": {"EACH": "1", "SEED": "8", "ROUTES": "2000", "ONLY": BRIEF},
    "a minute": {"T": "60", "SEED": "8", "ROUTES": "2000", "ONLY": SHORT},
    "FRR dies": {"REPEAT": "1", "SEED": "8", "ROUTES": "2000", "ONLY": FRR},
    "others": {"REPEAT": "1", "SEED": "8", "ROUTES": "2000", "ONLY": OTHERS},
}


def environment(**words):
    """With these of its words and no others."""
    return {k: v for k, v in os.environ.items() if k not in WORDS} | words


def played(run):
    """What the program says; a failure of it is the test's."""
    program = Dataplane(None, "", "", "", "").program
    only_release(program, "times are")
    # By SIGTERM, at which it takes its bed down.
    argv = ["timeout", "-k", "60", "400", sys.executable]
    argv += [os.path.join(ROOT, "tests", "chaos", "run.py")]
    env = environment(**run | {"ONLY": run["ONLY"].replace(" ", ",")})

    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=480, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return done.stdout


@pytest.mark.parametrize(
    "name", [x if x == "half a minute" else pytest.param(x, marks=pytest.mark.long) for x in RUNS]
)
def test_a_short_chaos(possible, name):
    """Nothing is lost but in declared windows, nothing leaves by a wrong port or damaged, no
    session of FRR's is lost to what does not concern it, and in the end zebra, RIB and FIB say
    the same, with all packet buffers free."""
    said, asked = played(RUNS[name]), RUNS[name]["ONLY"].split()

    drawn, of = map(int, re.search(r"drawn: (\d+) of (\d+) faults", said).groups())
    assert of == len(asked) and drawn >= (AT_LEAST if "T" in RUNS[name] else of)


@pytest.mark.long
def test_frr_sessions_survive_kills_under_load(possible):
    """BGP (hold 9 s), OSPF (dead 5 s), BFD (2 s): three kills, each at a random moment of 10,000
    changes of routes a second, beside traffic of which each packet's way out is checked: not
    one flap, no carrier lost, nothing by a wrong way, and all routes are right afterwards."""
    run = {"REPEAT": "3", "SEED": "8", "ROUTES": "2000", "ONLY": "daemon_dies_in_churn"}

    said = played(run)

    (times, sent) = re.search(r"^dies in churn +(\d+) +(\d+)", said, re.M).groups()
    assert int(times) == 3 and int(sent) > 3000
