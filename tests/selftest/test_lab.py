# SPDX-License-Identifier: BSD-3-Clause
"""The lab finds all its own processes and no others. Two programs do not build it at once."""

import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether

from lab import evidence
from lab.lab import RUN, Lab, LabError
from lib import netns, probe, procs
from lib.wait import eventually


@pytest.fixture
def started(tmp_path):
    """Starts commands with the mark of this test's directory; ends them."""
    children = []

    def start(*argv):
        child = procs.start(argv, str(tmp_path), tmp_path / "out")
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()


def test_a_process_in_another_mount_namespace_is_found_and_ended(started, tmp_path):
    """The lab ends a marked process in another mount namespace, where FRR's daemons run. A process
    of the same program without the mark stays."""
    stranger = subprocess.Popen(["sleep", "99"])
    try:
        child = started("unshare", "-m", "sleep", "99")
        eventually(lambda: procs.marked(str(tmp_path), "sleep") == [child.pid], 5)

        procs.end_all(str(tmp_path))

        assert not procs.is_alive(child.pid) and procs.is_alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_containers_with_a_lab_of_the_same_name_are_not_ours(started, tmp_path):
    """The lab does not take the processes of a container with a lab of the same name, whether it
    has its own process ids or only its own files."""
    ids = started("unshare", "--pid", "--fork", "--kill-child", "sleep", "99")
    hide = f"mount -t tmpfs none {tmp_path.parent}; mkdir {tmp_path}; exec sleep 99"
    files = started("unshare", "-m", "sh", "-c", hide)
    eventually(lambda: procs.comm(files.pid) == "sleep", 5)
    task = f"/proc/{ids.pid}/task/{ids.pid}/children"
    inside = eventually(lambda: int(open(task, encoding="ascii").read()), 5)
    eventually(lambda: procs.comm(inside) == "sleep", 5)

    assert procs.marked(str(tmp_path)) == [ids.pid]  # the process of unshare itself is not in the namespace


def test_a_lab_is_built_by_one_program_at_a_time_and_no_lock_is_left():
    """The error for the second program names the first. A program that was killed leaves no
    lock."""
    name = f"lock{os.getpid()}"
    first, second = Lab(name), Lab(name)

    first.lock()
    with pytest.raises(LabError, match=f"process {os.getpid()}"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()

    assert not os.path.exists(f"{RUN}/{name}.lock")


def test_status_and_vtysh_of_a_lab_without_daemons_fail_and_say_why():
    """`status` and `vtysh` fail with a reason if the namespaces exist but no program runs in
    them."""
    with Lab(f"dead{os.getpid()}") as lab:
        lab.create()

        def run(*words):
            program = os.path.join(os.path.dirname(netns.__file__), "../lab/lab.py")
            argv = [sys.executable, program, words[0], "--name", lab.name, *words[1:]]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        code, text = run("status")
        assert code == 1 and "zebra of r1" in text and "fpm-dataplane" in text
        code, text = run("vtysh", "-c", "show version")
        assert code == 1 and "No daemon of r1 runs" in text


@pytest.fixture
def pairs():
    """Two independent links, each with a host at both ends."""
    tag, made = os.getpid(), []
    try:
        for n in range(2):
            here, there = (f"fdp-{end}-{tag}m{n}" for end in ("here", "there"))
            made.append((here, there))
            for name in (here, there):
                netns.command(["ip", "netns", "add", name])
            netns.ip_batch([f"link add v type veth peer name v netns {there}"], here)
            for last, name in enumerate((here, there), 1):
                netns.ip_batch([f"addr add 198.18.0.{last}/16 dev v", "link set v up"], name)
        yield made
    finally:
        for names in made:
            for name in names:
                netns.delete(name)


def test_a_host_whose_kernel_could_not_answer_is_asked_again(pairs):
    """Answers to absent neighbors in another namespace fill the socket that all namespaces share on
    a CPU. The lab then asks again. It reports a host that is silent for another reason."""
    (here, there), (other, far) = pairs
    lab = SimpleNamespace(ns={"here": here, "there": there})
    tries = []

    def ask(host):
        tries.append(host)
        return probe.ping(here, host)

    whole = lambda heard: heard[0] == 3  # noqa: E731
    assert whole(evidence.answered(lab, lambda: ask("198.18.0.2"), whole)) and len(tries) == 1
    mac = netns.command(["ip", "-n", far, "-br", "link", "show", "v"]).split()[2]
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        with netns.entered(other), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
            sock.bind(("v", 0))
            head = Ether(src="02:00:00:00:00:01", dst=mac)
            nobodies = [IP(src=f"198.18.9.{n}", dst="198.18.0.2") for n in range(1, 31)]
            for frame in [bytes(head / ip / ICMP() / bytes(1000)) for ip in nobodies] * 100:
                sock.send(frame)
                if netns.icmp_unsent(far) > 0:
                    break
        assert whole(evidence.answered(lab, lambda: ask("198.18.0.2"), whole))
    finally:
        os.sched_setaffinity(0, cpus)
    assert len(tries) > 2
    assert not whole(evidence.answered(lab, lambda: ask("198.18.0.9"), whole))
    assert tries.count("198.18.0.9") == 1
