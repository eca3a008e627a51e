# SPDX-License-Identifier: BSD-3-Clause
"""Random commands about routes, next-hop objects, addresses and links: our router forwards as Linux
does. `make route-commands SEED=n SEQUENCES=1` repeats the sequence of a seed."""

import datetime
import os

import pytest

from lib.wait import LONG
from route_beside import beside, reduced
from route_random import Generator

FIXED = range(1, 7)
# FIRST:COUNT of `make route-commands`.
CHOSEN = os.environ.get("FDP_ROUTE_SEEDS", "")


def seeds():
    """Return the seeds: some that are always the same, and with FDP_LONG=1 some of the date."""
    if CHOSEN:
        first, _, count = CHOSEN.partition(":")
        return range(int(first), int(first) + int(count or 1))
    today = int(datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))
    return [*FIXED, *range(today, today + (300 if LONG else 0))]


@pytest.fixture(scope="module")
def both(possible):
    """Our router and a Linux router."""
    with beside("q") as made:
        yield made


def test_random_commands_have_the_same_effect_as_in_linux(both):
    """After each step of a sequence the same packets come out of both routers, and at its end the
    audits find no difference and explain tells what happens to packets (ip-route(8), ip-nexthop(8),
    ip-address(8), ip-link(8))."""
    for seed in seeds():
        made = Generator(seed)
        sequence = made.sequence()
        print(f"seed {seed}, {made.settings}")
        if not (found := both.play(sequence, made.settings)):
            continue
        print(f"{found} in {sequence[: found[0] + 1]}", flush=True)
        shortest = reduced(both, sequence[: found[0] + 1], made.settings)
        pytest.fail(f"seed {seed}, {made.settings}: {found}; shortest: {shortest}")
