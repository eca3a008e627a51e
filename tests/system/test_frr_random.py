# SPDX-License-Identifier: BSD-3-Clause
"""Random configuration of a real FRR: our router forwards as a Linux router beside it with the same FRR
does, or as its zebra says, where faults of FRR make kernels differ (doc/fpm.md, 9)."""

import os
import time

import pytest

from frr_pair import POLICERS, Pair
from frr_random import HOSTS, OURS, Maker, Runner
from lib.frr import HAS_MGMTD
from lib.wait import LONG, eventually
from router import Router

# FDP_FRR_SEED repeats one sequence, or begins FDP_FRR_SEQUENCES sequences.
SEED = os.environ.get("FDP_FRR_SEED")
SEQUENCES = int(os.environ.get("FDP_FRR_SEQUENCES", "1" if SEED else "100" if LONG else "0"))
TODAY = int(time.strftime("%Y%m%d"))


@pytest.fixture(scope="module")
def pair(possible):
    """Both routers."""
    dut = Router(name="frr")
    made = Pair(dut)
    try:
        dut.build()
        dut.edit_config("fpm:\n", "fpm:\n  feedback: true\n")
        dut.edit_config("log-level: info\n", "log-level: info\n" + POLICERS)
        dut.start()
        dut.zebra.close()
        peers = {w.peer(f) for w in dut.wires.values() for f in (4, 6)}
        made.build([host for f in (4, 6) for host in HOSTS[f] if host not in peers])
        eventually(lambda: dut.fpm()["connected"], 20)
        yield made
    finally:
        made.destroy()
        dut.destroy()


def seeds():
    """Return the seeds of this run."""
    if SEQUENCES:
        first = int(SEED or TODAY)
        return range(first, first + SEQUENCES)
    return [9, 22]


def nothing_left(runner):
    """Return True if our router has no route of FRR. Raise LookupError with the routes otherwise."""
    if rows := runner.left():
        raise LookupError(f"{rows}")
    return True


@pytest.mark.skipif(HAS_MGMTD, reason="staticd of this FRR has no command line of its own")
def test_our_router_follows_frr_as_linux_does(pair):
    """Random static routes, BGP paths, policy routing, options, links and addresses: after each step
    frames leave both routers in the same way, the audit finds no difference, `explain` tells the outcome
    of frames, and no route is reported as failed. Without the lines no route of FRR remains."""
    maker, runner = Maker(pair.dut.wires), Runner(pair)
    assert not runner.compare()
    failed = pair.dut.fpm()["feedback_failed"]
    for seed in seeds():
        steps = maker.sequence(seed, bool(SEQUENCES))
        print(f"seed {seed}")
        found = runner.run(steps)
        if found:
            kind, said = runner.kind(found[1])
            print(f"seed {seed}, step {found[0]}: {kind}: {said}\n{found[1]}\n{runner.judge(found[1])}")
            if kind == OURS:
                runner.restore()
                steps, found = runner.shortest(steps[: found[0] + 1])
                pytest.fail(f"seed {seed}, shortest sequence: {steps}\n{found}")
        runner.restore()
        assert not runner.compare(), f"seed {seed}: without its lines"
        eventually(lambda: nothing_left(runner), 10, what=f"seed {seed}: no route of FRR remains")
        runner.flush_kernels()
        assert pair.dut.fpm()["feedback_failed"] == failed, f"seed {seed}: a route was reported as failed"
