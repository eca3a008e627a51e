#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make a scenario of frr-config and prove its claims. It stays up until `make lab-down`.

    scenario.py [NAME]    without a name: print the list of scenarios
    ONCE=1                do not leave it up
    ROUTES=N, SEED=N      number and seed of the routes of the BGP speaker, if there is one (default: the
                          number in topology.toml, or 100,000)
    KEEP=1                leave the lab up after a failure too
    LAB=NAME              another lab than the one with plain names (lab.py)
"""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from lab import claims, evidence, play
from lab.lab import PLAIN, SCENARIOS, Lab
from lab.plan import Plan
from lab.readme import Readme
from lib import bird, flowspec

NEXT = """\
The lab is up; frr-config/{name}/README.md has what to look at:
{commands}
{shell}
  make lab-down               when you have seen enough"""
SHELL = {
    "frr": "  make vtysh                  r1's shell; of another router: tests/lab/lab.py vtysh NODE",
    "bird": "  tests/lab/lab.py birdc      r1's shell; of another router: tests/lab/lab.py vtysh NODE",
    None: "  ip netns exec r1 ip route   the routes of r1",
}


def names():
    """Return the names of all scenarios, which are their folders."""
    found = os.listdir(SCENARIOS)
    there = lambda n: os.path.exists(
        os.path.join(SCENARIOS, n, "topology.toml")
    )  # noqa: E731
    return sorted(n for n in found if there(n) and n != "demo")


def why_not(name):
    """Return the reason why this machine cannot have a scenario in one sentence, or None."""
    plan = Plan(os.path.join(SCENARIOS, name))
    if (plan.runs == "bird" or plan.having("bird")) and bird.why_not():
        return bird.why_not()
    if plan.having("flowspec") and flowspec.why_not():
        return flowspec.why_not()
    reason = plan.why_not()
    return reason and f"{reason}. `make lab-vm S={name}` proves it in a virtual machine whose kernel has them"


def readme(name):
    """Return the README of a scenario."""
    return Readme(os.path.join(SCENARIOS, name))


def show(name, asked, seed):
    """Return the function that shows one scenario. `asked`: the number of routes of the command line, or
    None."""

    def build_and_prove(lab, screen):
        about = readme(name)
        screen.title(f"{name}: {about.title}")
        screen.text(about.picture)
        screen.title("Building the lab")
        lab.lock()
        if lab.is_up():
            screen.step("a lab is up already: it is removed")
        lab.create()
        screen.step(f"network namespaces {', '.join(lab.plan.nodes)}")
        if lab.plan.having("speaker"):
            n4 = lab.plan.routes(asked)
            lab.start_isp(n4, n4 // 5, seed)
        lab.start_routers()
        screen.step("fpm-dataplane" + runs(lab))
        screen.title("Proofs")
        for sentence in claims.CLAIMS[name](lab):
            screen.passed(sentence)
        taps = ", ".join(tap for tap, _, _ in lab.plan.ports)
        screen.passed(
            f"r1 has only TAPs ({taps}); the dataplane carried "
            f"{evidence.only_taps(lab)} control packets up. Audit: {evidence.audit(lab)}"
        )
        screen.text(f"\nAll proofs hold, {screen.seconds():.0f} seconds in all.\n")
        if os.environ.get("ONCE"):
            lab.down()
            return
        lines = "\n".join("  " + command for command, _ in about.commands)
        screen.text(NEXT.format(name=name, commands=lines, shell=SHELL[lab.plan.runs]))

    return build_and_prove


def runs(lab):
    """Return the routing daemons of a lab as text."""
    text = ", BIRD in r1" if lab.plan.runs == "bird" else ""
    return text + (f", FRR in {', '.join(lab.frrs)}" if lab.frrs else "")


def not_one(words, makes="make lab S=NAME runs one of these; make lab-down removes it:"):
    """Print the list of scenarios, below the text `makes`, if the command line names no scenario.
    Print an error if no scenario has that name. Returns the exit code; None: words[0] is a
    scenario."""
    known = names()
    if not words:
        print(makes)
        for name in known:
            print(f"  {name:22} {readme(name).title}")
        return 0
    if words[0] not in known:
        print(f"There is no scenario {words[0]}; there are {', '.join(known)}.")
        return 2
    return None


def main():
    """Returns the exit code."""
    code = not_one(sys.argv[1:])
    if code is not None:
        return code
    name = sys.argv[1]
    try:
        asked = int(words) if (words := os.environ.get("ROUTES")) else None
        seed = int(os.environ.get("SEED") or 1)
        if asked is not None and not 100 <= asked <= 1000000:
            raise ValueError
    except ValueError:
        print("ROUTES must be a number from 100 to 1000000, SEED a number.")
        return 2
    reason = why_not(name) if os.geteuid() == 0 else None
    if reason:
        print(f"{name} cannot be here: {reason}.")
        return 1
    make = lambda: Lab(os.environ.get("LAB", PLAIN), name)  # noqa: E731
    return play.perform(make, show(name, asked, seed))


if __name__ == "__main__":
    sys.exit(main())
