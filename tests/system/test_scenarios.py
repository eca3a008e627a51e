# SPDX-License-Identifier: BSD-3-Clause
"""Every scenario of frr-config starts, shows its claims, prints the output of its README, is kept
by `write memory`, and leaves nothing behind, however it ends.

SCENARIO_ROUTES=N   routes of the BGP speaker, a fifth of it IPv6; without it as many as the READMEs
                    say, or fewer (lib/wait.py: LONG)
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

# In this scenario FRR starts again with the file of `write memory`: that file has a context
# inside another.
RESTARTED = "dual-stack-edge"
PROGRAM = os.path.join(ROOT, "tests", "lab", "scenario.py")
# A scenario takes one to two minutes in a guest with a CPU of its own. Each step of it has a limit.
MAKE_S = 300
TOGETHER = "lab"  # a scenario takes long to make: its tests are in one shard


def environment(name, **more):
    """Return the environment for a lab of another name, without the variables of `make
    system`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return {**kept, "LAB": name, "ROUTES": "", **more}


def routes(scenario_name):
    """Return the word of make that gives the BGP speaker of a scenario its number of routes."""
    plan = Plan(os.path.join(SCENARIOS, scenario_name))
    own = any("routes" in about for about in plan.having("speaker").values())
    return "ROUTES=" + os.environ.get("SCENARIO_ROUTES", "" if LONG or own else "10000")


def make(name, *words):
    """Run make in a lab's environment. Return (exit code, output)."""
    # A guest has the host's files, which are built: make would take long to find that out.
    built = ["MAKE=:"] if os.environ.get("FDP_BUILT") else []
    try:
        done = subprocess.run(
            ["make", "-s", "-C", ROOT, *words, *built],
            env=environment(name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=MAKE_S * PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace")
        return -1, f"{said}\nFAIL make {' '.join(words)} ran for {error.timeout:.0f} s"
    return done.returncode, done.stdout


def params():
    """Return every scenario. Scenarios that a kernel may not support are marked for the guest."""
    for name in scenario.names():
        plan = Plan(os.path.join(SCENARIOS, name))
        in_guest = plan.modules or {"vlan", "vrf", "gre"} & set(plan.stacked.values())
        marks = pytest.mark.guest if in_guest else ()
        yield pytest.param(name, marks=marks)


@pytest.fixture(scope="module", params=params())
def lab(request):
    """Run `make lab S=NAME`, check its proofs, and run `make lab-down` at the end."""
    reason = scenario.why_not(request.param)
    if reason:
        pytest.skip(reason)
    name = f"s{os.getpid()}"
    try:
        code, text = make(name, "lab", f"S={request.param}", routes(request.param))
        assert code == 0 and "All proofs hold" in text, why(text)
        yield Lab(name)
    finally:
        code, text = make(name, "lab-down")
    assert code == 0 and no_trace(name), text


def why(text):
    """Return the output of a failed lab, with the failed proof on a line before it."""
    return " ".join(text.partition("FAIL ")[2].split())[:400] + "\n" + text


def no_trace(name):
    """Return True if nothing of a lab is left."""
    directory = os.path.join(RUN, name)
    left = [n for n in os.listdir("/run/netns") if n.endswith("-" + name)]
    return not left and not os.path.exists(directory) and not procs.marked(directory)


def test_commands_of_its_readme_print_what_it_says(lab):
    """Each command of the README, in order, prints the output that the README shows."""
    about = Readme(lab.folder)
    assert about.picture and len(about.commands) >= 5

    for command, text in about.commands:
        seen = differs(lab, command, text)
        assert seen is None, f"$ {command}\n{seen}"


@pytest.fixture
def with_frr(lab):
    """Return the lab if its r1 runs FRR."""
    if lab.plan.runs != "frr":
        pytest.skip("r1 of this scenario runs no FRR")
    return lab


# FRR does not write this line from 9.1 on, because it is the default.
LATER_DEFAULT = " enforce-first-as"


def test_write_memory_keeps_every_line_of_frr_conf(with_frr):
    """`write memory` into an empty file writes all of frr.conf in its contexts and later
    changes. So FRR refused no line, and no line has a place that vtysh does not read. FRR that
    starts again with this file has the same configuration."""
    lab = with_frr
    with open(lab.path("r1", "frr.conf"), "w", encoding="ascii"):
        pass
    lab.r1.configure("interface lo", "description of the test")
    running = lines_of(lab.r1.vtysh("show running-config"))

    lab.r1.vtysh("write memory")

    written = lines(lab.path("r1", "frr.conf"))
    lost = lines(os.path.join(lab.folder, "frr.conf")) - written
    assert {line for line in lost if not line[1].endswith(LATER_DEFAULT)} == set()
    assert ("interface lo", "description of the test") in written
    if lab.scenario == RESTARTED:
        lab.r1.restart_all()
        assert lines_of(lab.r1.vtysh("show running-config")) == running


def test_vtysh_answers_what_advice_has_it_asked(with_frr):
    """vtysh answers each command that `show drops` advises, with any set of FRR's daemons, for
    both families, with and without a VRF. Without a route it says so, or prints nothing."""
    with open(os.path.join(ROOT, "fpm-dataplane", "ctl", "advice.c"), encoding="utf-8") as file:
        asked = re.findall(r"\bshow (?:bgp|ip|ipv6)\b[^;,)]*? ADDRESS", file.read())

    assert asked
    plain = [command.replace("[vrf NAME] ", vrf) for command in asked for vrf in ("", "vrf default ")]
    for command in plain + [command.replace("ip route", "ipv6 route") for command in plain]:
        address = "2001:db8:c0::9" if "ipv6" in command else "198.51.100.9"
        said = with_frr.r1.vtysh(command.replace("ADDRESS", address))
        assert "%" not in said.replace("% Network not in table", ""), f"{command}: {said}"


def lines(path):
    """Return the commands of a frr.conf."""
    with open(path, encoding="utf-8") as file:
        return lines_of(file.read())


def lines_of(text):
    """Return commands with their contexts: ("router bgp 64500", "address-family ipv4 unicast",
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
    """Ctrl-C in the middle of a lab's start leaves nothing behind."""
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
        text, _ = child.communicate(timeout=40 * PATIENCE)

        assert child.returncode == 130 and "Stopped by SIGINT" in text, text
        assert no_trace(name)
    finally:
        child.kill()
        Lab(name, "static").down()


def test_a_failure_leaves_nothing():
    """A start fails because the build `nowhere` has no daemon. The start leaves nothing behind."""
    name = f"f{os.getpid()}"

    done = subprocess.run(
        [sys.executable, PROGRAM, "static"],
        env=environment(name, BUILD="nowhere"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * PATIENCE,
    )

    assert done.returncode == 1 and "FAIL" in done.stdout, done.stdout + done.stderr
    assert no_trace(name)


def test_the_list_names_every_scenario_and_an_unknown_one_is_refused():
    """`make lab` prints the list. `make lab S=...` with an unknown name is refused."""
    code, text = make("none", "lab")
    assert code == 0 and all(name in text for name in scenario.names()), text
    done = subprocess.run(
        [sys.executable, PROGRAM, "nonesuch"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "There is no scenario nonesuch" in done.stdout


def test_lab_vm_has_the_same_list_and_boots_nothing_for_an_unknown_one():
    """`make lab-vm` prints the same list, also with an empty variable of sizes. `make lab-vm
    S=...` with an unknown name is refused before a guest starts."""
    run = [sys.executable, os.path.join(ROOT, "tests", "vm", "run.py"), "--lab"]
    for words in ((), ("ROUTES=",)):
        code, text = make("none", "lab-vm", *words)
        assert code == 0 and all(name in text for name in scenario.names()), text
    done = subprocess.run([*run, "nonesuch"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout.startswith("There is no scenario nonesuch")
    assert "guest" not in done.stdout and done.stderr == ""
