# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of `ip rule`, `ip route` and other commands, given to our router and to a Linux
router beside it. After each burst of commands packets have the same outcome in both, and `explain`
tells it. In the end the audit finds no difference.

FDP_RULES_SEQUENCES is the number of seeds, FDP_RULES_SEED the first one. A failure prints the shortest
sequence that was found."""

import datetime
import os
import random

import pytest

import rules_pair
from lib.wait import LONG
from rules_random import Sequence

SEQUENCES = int(os.environ.get("FDP_RULES_SEQUENCES", "500" if LONG else "12"))
SEED = int(os.environ.get("FDP_RULES_SEED", "1"))
TODAY = [int(datetime.date.today().strftime("%Y%m%d"))] if LONG else []


@pytest.fixture(scope="module")
def beside(possible):
    """Both routers."""
    with rules_pair.beside("r") as made:
        yield made


@pytest.mark.parametrize("seed", [*range(SEED, SEED + SEQUENCES), *TODAY])
def test_random_rules_and_routes_have_the_same_effect_as_in_linux(beside, seed):
    rnd = random.Random(seed)
    sequence = Sequence(rnd)
    packets = rules_pair.packets_of(rnd, sequence)
    wrong = beside.sequence(sequence.steps, packets) or beside.same_after_a_dump(packets)
    if wrong:
        state = beside.state()
        print(f"(packet, Linux, ours): {wrong}", flush=True)
        steps = beside.shortest(sequence.steps, wrong[0][0])
        text = "\n".join(f"  {line}" for step in steps for line in [*step, "--"])
        pytest.fail(f"seed {seed}\n(packet, Linux, ours): {wrong}\n{text}\n{state}")
