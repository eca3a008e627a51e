# SPDX-License-Identifier: BSD-3-Clause
"""The limits of a daemon that an attacker has taken over: the lists of security.md, compared
with the kernel."""

import errno
import os
import re
import shutil
import subprocess

import pytest

from lib import netns, preload, procs, unit
from lib.privileges import assert_dropped, threads
from lib.wait import PATIENCE, eventually

NET, HOST = "198.51.100.0/24", "198.51.100.9"


@pytest.mark.smoke
def test_it_has_only_the_capabilities_it_says(dut):
    assert_dropped(dut.daemon.pid())


@pytest.fixture
def overstepping(own_dut):
    """Start a router that loads tests/lib/overstep.c as a driver."""
    dut = own_dut()
    built = os.path.join(os.path.dirname(dut.daemon.program), "tests", "overstep.so")
    if not os.path.exists(built):
        pytest.skip("overstep.so is not built: make system")
    folder = f"/run/fdp-plugin-{os.getpid()}"  # below folders that only root writes to
    os.makedirs(folder, mode=0o755)
    try:
        shutil.copy(built, folder)
        dut.edit_config("log-level:", f"plugins: [{folder}/overstep.so]\nlog-level:")
        yield dut
    finally:
        shutil.rmtree(folder)


def test_system_calls_of_no_use_are_refused(overstepping):
    """A driver that mounts, traces, loads modules or enters other namespaces gets EPERM each
    time. System calls that drivers and the daemon need are allowed, and the router forwards."""
    dut = overstepping
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with open(dut.log_file, encoding="utf-8", errors="replace") as file:
        tried = re.findall(r"overstep (\w+) (\d+)", file.read())

    told = [(name, errno.errorcode.get(int(code), "done")) for name, code in tried]
    exceptions = {
        ("clone3", "ENOSYS"),
        ("socket_alg", "EAFNOSUPPORT"),
        ("socket_packet", "done"),
    }
    assert set(told) >= exceptions | {("setns", "done")}
    rest = set(told) - exceptions - {("setns", "done")}
    assert len(rest) == 16 and {what for _, what in rest} == {"EPERM"}, told
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)


PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38


@pytest.fixture
def old_kernel(own_dut, monkeypatch):
    """Return a function that makes a router whose kernel refuses an option of prctl(2)."""

    def make(option):
        dut = own_dut()
        preload.use(dut, monkeypatch, "prctl_refused", PRCTL_REFUSED=str(option))
        return dut

    return make


def test_with_more_privileges_than_it_says_it_does_not_start(old_kernel):
    """A daemon that cannot drop a privilege would keep it forever. So it logs a line and ends with
    exit code 1, and has created nothing."""
    dut = old_kernel(PR_SET_NO_NEW_PRIVS)
    argv = ["ip", "netns", "exec", dut.dp, dut.daemon.program, "-c", dut.config]

    done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    assert done.returncode == 1
    assert "main: privileges not dropped error=\"Invalid argument\"" in done.stderr
    assert [row["ifname"] for row in dut.links()] == ["lo"]


def test_a_kernel_without_seccomp_is_said_and_no_hindrance(old_kernel):
    """Without seccomp the daemon logs a line and starts, because the filter is an addition to
    the limits of capabilities."""
    dut = old_kernel(PR_SET_SECCOMP)
    dut.start()

    assert "main: system call filter not installed error=\"Invalid argument\"" in dut.daemon.log(200)
    assert {row["Seccomp"].strip() for row in threads(dut.daemon.pid())} == {"0"}


def test_a_successor_has_no_second_filter(own_dut):
    """Filters are inherited and stay forever. A successor installs no second filter, because
    after hundreds of restarts there would be hundreds."""
    dut = own_dut(supervised=True)
    dut.start()
    seen = []
    for _ in range(3):
        was = dut.daemon.pid()
        seen.append({row["Seccomp_filters"].strip() for row in threads(was)})
        assert dut.fpmctl("restart").returncode == 0
        dut.control.close()
        dut.daemon.back(was)
        eventually(lambda gone=was: not procs.is_alive(gone), 10, 0.01)

    assert len(set.union(*seen)) == 1, seen


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_the_unit_has_a_comment_for_each_thing_that_stays_open():
    """systemd-analyze names the restrictions that the unit does not set. The unit has a comment about
    each of them. (test_service tests the running service in a guest.)"""
    analyze = ["systemd-analyze", "--no-pager", "--json=short", "security", "--offline=true"]
    found = netns.command([*analyze, unit.PATH], check=False)

    assert unit.unaccounted(found) == []
    more = found.replace("[", '[{"name": "ProtectHome=", "set": false},', 1)
    assert unit.unaccounted(more) == ["ProtectHome="]
