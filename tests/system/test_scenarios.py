# SPDX-License-Identifier: BSD-3-Clause
"""Every scenario of frr-config comes up, shows what it claims, prints what its README says,
is kept by `write memory`; and leaves nothing behind, however it ends.

SCENARIO_ROUTES=N   in bgp-full-table, IPv6 a fifth; without it as many as its README says, or
                    fewer (lib/wait.py: LONG)
"""

import os
import re
import signal
import subprocess
import sys

import pytest

from lab import scenario
from lab.lab import RUN, SCENARIOS, Lab
from lab.plan import Plan
from lab.readme import Readme, differs
from lib import netns, procs
from lib.dataplane import ROOT
from lib.wait import LONG, PATIENCE, eventually

# One whose FRR is started anew with what `write memory` wrote: it has a context in another.
RESTARTED = "dual-stack-edge"
PROGRAM = os.path.join(ROOT, "tests", "lab", "scenario.py")
TOGETHER = "lab"  # a scenario takes long to make: its tests are of one shard


def environment(name, **more):
    """What a lab of another name needs, and none of what `make system` was told."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    routes = os.environ.get("SCENARIO_ROUTES", "" if LONG else "10000")
    return {**kept, "LAB": name, "ROUTES": routes, **more}


def make(name, *words):
    """Run make in a lab's environment. Returns (exit code, what it printed)."""
    # A guest's files are the host's, where all is built: to find that out takes it long.
    built = ["MAKE=:"] if os.environ.get("FDP_BUILT") else []
    done = subprocess.run(
        ["make", "-s", "-C", ROOT, *words, *built],
        env=environment(name),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120 * PATIENCE,
    )
    return done.returncode, done.stdout


def params():
    """Every scenario; those that a kernel may not have are marked for the guest."""
    for name in scenario.names():
        stacked = Plan(os.path.join(SCENARIOS, name)).stacked
        yield pytest.param(name, marks=pytest.mark.guest if stacked else ())


@pytest.fixture(scope="module", params=params())
def lab(request):
    """`make lab S=NAME`, whose proofs hold; `make lab-down`."""
    reason = scenario.why_not(request.param)
    if reason:
        pytest.skip(f"{reason}; `make test-vm-all` has it")
    name = f"s{os.getpid()}"
    try:
        code, text = make(name, "lab", f"S={request.param}")
        assert code == 0 and "All proofs hold" in text, why(text)
        yield Lab(name)
    finally:
        code, text = make(name, "lab-down")
    assert code == 0 and no_trace(name), text


def why(text):
    """What a lab that failed has printed, and before it the proof that does not hold, on a line."""
    return " ".join(text.partition("FAIL ")[2].split())[:400] + "\n" + text


def no_trace(name):
    """Is nothing left of a lab?"""
    directory = os.path.join(RUN, name)
    left = [n for n in os.listdir("/run/netns") if n.endswith("-" + name)]
    return not left and not os.path.exists(directory) and not procs.marked(directory)


def test_commands_of_its_readme_print_what_it_says(lab):
    """In the order of the README, each until it does."""
    about = Readme(lab.folder)
    assert about.picture and len(about.commands) >= 5

    for command, text in about.commands:
        seen = differs(lab, command, text)
        assert seen is None, f"$ {command}\n{seen}"


def test_write_memory_keeps_every_line_of_frr_conf(lab):
    """Nothing was refused, nothing needs another place than vtysh: of an empty file `write
    memory` makes one that has it all, in its context, and what was configured since. FRR that
    starts anew with that is configured as before."""
    with open(lab.path("r1", "frr.conf"), "w", encoding="ascii"):
        pass
    lab.r1.configure("interface lo", "description of the test")
    running = lines_of(lab.r1.vtysh("show running-config"))

    lab.r1.vtysh("write memory")

    written = lines(lab.path("r1", "frr.conf"))
    assert lines(os.path.join(lab.folder, "frr.conf")) - written == set()
    assert ("interface lo", "description of the test") in written
    if lab.scenario == RESTARTED:
        lab.r1.restart_all()
        assert lines_of(lab.r1.vtysh("show running-config")) == running


def test_vtysh_answers_what_advice_has_it_asked(lab):
    """What `show drops` says to type there, whichever daemons FRR has, of both families, with a
    VRF and without. Of what it has no route to it says so, or nothing."""
    with open(os.path.join(ROOT, "fpm-dataplane", "ctl", "advice.c"), encoding="utf-8") as file:
        asked = re.findall(r"\bshow (?:bgp|ip|ipv6)\b[^;,)]*? ADDRESS", file.read())

    assert asked
    plain = [command.replace("[vrf NAME] ", vrf) for command in asked for vrf in ("", "vrf default ")]
    for command in plain + [command.replace("ip route", "ipv6 route") for command in plain]:
        address = "2001:db8:c0::9" if "ipv6" in command else "198.51.100.9"
        said = lab.r1.vtysh(command.replace("ADDRESS", address))
        assert "%" not in said.replace("% Network not in table", ""), f"{command}: {said}"


def lines(path):
    """The commands of a frr.conf."""
    with open(path, encoding="utf-8") as file:
        return lines_of(file.read())


def lines_of(text):
    """Commands with what they stand below: ("router bgp 64500", "address-family ipv4 unicast",
    "neighbor 192.0.2.2 activate")."""
    found, above = set(), []
    for line in text.splitlines():
        command = line.strip()
        if command == "" or re.match("!|exit|end$|Building|Current", command):
            continue
        depth = len(line) - len(line.lstrip())
        above = [(d, x) for d, x in above if d < depth] + [(depth, command)]
        found.add(tuple(x for _, x in above))
    return found


def test_ctrl_c_leaves_nothing():
    """In the midst of it."""
    name = f"c{os.getpid()}"
    child = subprocess.Popen(
        [sys.executable, PROGRAM, "static"],
        env=environment(name),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        eventually(lambda: netns.exists(f"h1-{name}"), 10, 0.01)
        child.send_signal(signal.SIGINT)
        text, _ = child.communicate(timeout=40)

        assert child.returncode == 130 and "Stopped by SIGINT" in text, text
        assert no_trace(name)
    finally:
        child.kill()
        Lab(name, "static").down()


def test_a_failure_leaves_nothing():
    """There is no daemon of such a build."""
    name = f"f{os.getpid()}"

    done = subprocess.run(
        [sys.executable, PROGRAM, "static"],
        env=environment(name, BUILD="nowhere"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 1 and "FAIL" in done.stdout, done.stdout + done.stderr
    assert no_trace(name)


def test_the_list_names_every_scenario_and_an_unknown_one_is_refused():
    """As `make lab` and `make lab S=...` say it."""
    code, text = make("none", "lab")
    assert code == 0 and all(name in text for name in scenario.names()), text
    done = subprocess.run(
        [sys.executable, PROGRAM, "nonesuch"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "There is no scenario nonesuch" in done.stdout


def test_lab_vm_has_the_same_list_and_boots_nothing_for_an_unknown_one():
    """As `make lab-vm` and `make lab-vm S=...` say it, wherever there may be guests."""
    run = [sys.executable, os.path.join(ROOT, "tests", "vm", "run.py"), "--lab"]
    code, text = make("none", "lab-vm")
    assert code == 0 and all(name in text for name in scenario.names()), text
    done = subprocess.run([*run, "nonesuch"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout.startswith("There is no scenario nonesuch")
    assert "guest" not in done.stdout and done.stderr == ""
