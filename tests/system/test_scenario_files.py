# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a scenario's files that do not run it, on kernels that may lack its features: each
program accepts its file, and all files name the same interfaces."""

import glob
import os
import re
import subprocess

import pytest

from lab import claims, scenario
from lab.lab import SCENARIOS
from lab.plan import ROUTER, Plan
from lib import bird, netns
from lib.dataplane import ROOT, Dataplane
from lib.peers import libraries, program


@pytest.fixture(params=["demo", *scenario.names()])
def folder(request):
    """Return each folder of frr-config."""
    return os.path.join(SCENARIOS, request.param)


def text_of(*path):
    """Return the text of a file."""
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def test_vtysh_knows_every_command(folder):
    """`vtysh -C` accepts the files of r1 and of the other routers, also those of IS-IS, BFD and
    VRFs. BIRD accepts the file of an r1 with BIRD."""
    plan = Plan(folder)
    files = set(glob.glob(f"{folder}/*.conf")) - {f"{folder}/vtysh.conf", f"{folder}/bird.conf"}
    routers = {*(["frr"] if plan.runs == "frr" else []), *plan.having("frr")}
    assert {os.path.basename(path)[:-5] for path in files} == routers

    for path in files:
        argv = ["vtysh", "-C", "-f", path]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{path}: {done.stdout}{done.stderr}"
    if plan.runs == "bird" and not bird.why_not():
        argv = [*libraries(), program("bird"), "-p", "-c", f"{folder}/bird.conf"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{folder}/bird.conf: {done.stdout}{done.stderr}"


def configurations():
    """Return the paths of FRR's configurations that users copy, and of pages with commands."""
    globs = ("frr-config/*/*.conf", "docker/*.conf", "docker/lab/*.conf", "fpm-dataplane/manual/*.md")
    return [path for pattern in globs for path in sorted(glob.glob(f"{ROOT}/{pattern}"))]


def test_each_static_route_names_its_interface():
    """Each static route names an interface after its gateway. FRR 10.3 keeps a static route without
    an interface when its link is lost (manual/frr.md)."""
    route = re.compile(r"(?<!no )\bip(?:v6)? route \S+/\d+ ([0-9a-f]*[.:][0-9a-f.:]+)(?: ([a-z][^\s']*))?")
    options = {"tag", "label", "table", "nexthop-vrf", "onlink", "color", "bfd", "segments"}
    named, bare = 0, []
    for path in configurations():
        for line in text_of(path).splitlines():
            for found in route.finditer(line):
                named += 1
                if found[2] is None or found[2] in options:
                    bare.append(f"{os.path.relpath(path, ROOT)}: {line.strip()}")

    assert bare == [] and named >= 8


def test_terminals_of_daemons_listen_on_the_loopback_only():
    """Each daemon of FRR that runs has an option that binds its terminal to a loopback address, as in
    Debian's file. mgmtd is one of them from FRR 10 on."""
    paths = [f"{ROOT}/docker/daemons", *glob.glob(f"{ROOT}/frr-config/*/daemons")]
    bare = []
    for path in paths:
        text = text_of(path)
        on = {"zebra", "staticd", "mgmtd", *re.findall(r"^([a-z0-9]+)=yes$", text, re.M)}
        bound = re.findall(r'^([a-z0-9]+)_options=".*-A (?:127\.0\.0\.1|::1)\b.*"$', text, re.M)
        bare += [f"{os.path.relpath(path, ROOT)}: {name}" for name in on - set(bound)]

    assert bare == [] and len(paths) > 10


def test_the_daemon_takes_its_file(folder, tmp_path):
    """`--check` accepts the file where its ports and its namespace exist."""
    plan, names = Plan(folder), [f"fdp-{k}-{os.getpid()}f" for k in ("dp", "ctl")]
    wires, control = names
    config = tmp_path / "config.yaml"
    text = text_of(folder, "fpm-dataplane.yaml")
    config.write_text(text.replace("control-netns: r1\n", f"control-netns: {control}\n"))
    try:
        netns.ip_batch([f"netns add {name}" for name in names])
        netns.ip_batch(
            (f"link add port-{tap} type veth" for tap, _, _ in plan.ports), wires
        )
        program = Dataplane(wires, config, "", "", "").program
        done = subprocess.run(
            ["ip", "netns", "exec", wires, program, "--check", "-c", config],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        for name in names:
            netns.delete(name)


def test_all_speak_of_the_same_interfaces(folder):
    """The TAPs of the YAML file have cables. Interfaces on TAPs, and interfaces that FRR, BIRD or
    the file `r1.ip` names, exist."""
    plan = Plan(folder)
    taps = re.findall(r"^  - tap: (\S+)$", text_of(folder, "fpm-dataplane.yaml"), re.M)
    assert sorted(taps) == sorted(tap for tap, _, _ in plan.ports)
    there = set(taps)
    for line in plan.links:
        words = line.split()
        known = ("link add", "link set", "addr add", "route add", "-6 route", "sr tunsrc")
        assert " ".join(words[:2]) in known, line
        below = re.search(r"\b(?:link add link|link set|master|addr add \S+ dev) (\S+)", line)
        assert below is None or below[1] in there, line
        made = re.match(r"link add (?:link \S+ name )?(\S+)", line)
        there |= {made[1]} if made else set()
    assert there == set(taps) | set(plan.stacked)

    if plan.runs != "frr":
        config = text_of(folder, "bird.conf") if plan.runs else ""
        rows = re.findall(r"\binterface ([^{]+)\{", config)
        named = {name for row in rows for name in re.findall(r'"(\w+)"', row)}
        named |= set(re.findall(r"\b(?:dev|set) (\w+)", "\n".join(plan.settings)))
        assert named - {"lo"} == there, named
        return
    vrfs = {name for name, kind in plan.stacked.items() if kind == "vrf"}
    for box in plan.boxes:
        assert {tap for tap, _, _ in plan.ports_of(box)} == set(taps)
        config = text_of(folder, "frr.conf" if box == ROUTER else f"{box}.conf")
        named = set(re.findall(r"^interface (\S+)", config, re.M)) - {"lo"}
        # frr.conf names a VRF as an interface only to enable MPLS on it, or to give it an address.
        own = {name for name in vrfs if re.search(rf"^interface {name}\n(?: .*\n)* ip address", config, re.M)}
        assert named <= (there if plan.modules else there - vrfs | own), named
        assert set(re.findall(r"\bvrf (\S+)", config)) - {"default", "route-map"} == vrfs


def test_what_a_kernel_lacks_is_said_in_one_sentence(folder):
    """For each kind of interface that the kernel lacks there is one sentence with the
    command that tested it. For a kind that it has there is none. The test for it leaves
    nothing behind."""
    before = netns.command(["ip", "link"])
    plan = Plan(folder)
    assert Plan.why_not(plan) is None or "this kernel has no" in Plan.why_not(plan)

    plan.links = ["link add nonesuch0 type nonesuch", "link add br7 type bridge"]
    plan.about, plan.modules = {}, []

    reason = "this kernel has no NONESUCH devices (`ip link add ... type nonesuch`)"
    assert plan.why_not() == reason
    assert netns.command(["ip", "link"]) == before


def test_every_scenario_has_claims():
    """Every scenario has claims, and every claim has a scenario."""
    assert set(claims.CLAIMS) == set(scenario.names())
