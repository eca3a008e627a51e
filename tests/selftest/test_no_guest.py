# SPDX-License-Identifier: BSD-3-Clause
"""If there can be no guest, `make test-vm` and similar targets print the reason in a line and do
not fail. A run that is possible names the tests that it leaves out. A guest gets the frequency of its
clock. Nothing is booted here."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from lib.dataplane import ROOT

VM = os.path.join(ROOT, "tests", "vm")
NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "modprobe", "zstd", "unshare", "sh", "ip")
sys.path.append(VM)

import guest  # noqa: E402
import run as vm  # noqa: E402


def path_without(folder, *missing):
    """Return a PATH with the programs that a guest needs, except `missing`."""
    for name in set(NEEDED) - set(missing):
        os.symlink(shutil.which(name) or "/bin/true", folder / name)
    return {**os.environ, "PATH": str(folder)}


@pytest.mark.parametrize(
    "words, begin",
    [
        ([], "test-vm: skipped"),
        (["--all"], "test-vm-all: skipped"),
        (["--package", "upgrade"], "test-vm-package: skipped"),
        (["--lab", "vrf-lite"], "lab-vm"),
    ],
)
def test_without_qemu_the_reason_is_told(tmp_path, words, begin):
    """Without qemu the output has the reason. A run of all tests succeeds; a run of a named
    scenario fails."""
    env = path_without(tmp_path, "qemu-system-x86_64")

    done = subprocess.run(
        [sys.executable, f"{VM}/run.py", *words],
        env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.stdout == f"{begin}: not installed: qemu-system-x86_64\n", done
    assert (done.returncode, done.stderr) == (1 if words[:1] == ["--lab"] else 0, "")


def test_all_that_is_missing_is_named(tmp_path):
    env = path_without(tmp_path, "busybox", "cpio")

    done = subprocess.run(
        [sys.executable, f"{VM}/run.py"],
        env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "test-vm: skipped: not installed: busybox, cpio\n")


def test_user_mode_linux_needs_busybox(tmp_path):
    """Without busybox, which mounts its file systems, the output has the reason, and nothing is fetched."""
    env = path_without(tmp_path, "busybox")

    done = subprocess.run(
        [sys.executable, f"{VM}/run.py", "--topotests-uml", "rip_topo1"],
        env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "topotests-uml: not installed: busybox\n"), done


@pytest.mark.parametrize("what", ["test-vm", "test-vm-all"])
def test_packages_that_cannot_be_had_are_named(tmp_path, what):
    """make names the packages that cannot be installed, before it builds for the guest."""
    for name in ("apt-get", "tee"):  # build/deps.log does not change
        (tmp_path / name).write_text("#!/bin/sh\nexit 100\n")
        (tmp_path / name).chmod(0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    env["PATH"] = f"{tmp_path}:{env['PATH']}"

    done = subprocess.run(
        ["make", "-s", "-C", ROOT, what, "PKGS_VM=nonesuch-of-a-package"],
        env=env, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    said = done.stdout.splitlines()[-1].rstrip()
    assert said == f"{what}: skipped: not installable here: nonesuch-of-a-package", done
    assert done.returncode == 0


def test_each_test_of_the_smoke_guest_is_of_the_whole_and_the_rest_is_named():
    smoke, whole, package = map(vm.chosen_parts, ("", "--all", "--package"))

    assert set(vm.all_parts(None)) == set(whole) | set(package) | set(smoke)
    assert not set(package) & set(whole) and not set(smoke) & set(whole)
    files = {word for word in smoke[vm.SMOKE].split() if word.endswith(".py")}
    assert files and files < set(" ".join(whole.values()).split())
    said = vm.summary("test-vm", {"passed": 9, "failed": 0, "skipped": 1}, 200, "")
    assert said.startswith("test-vm: 9 passed, 1 skipped in 200 s; not run here: scenarios, links, ")
    for word in ("bonds", "vmxnet3", "service", "make test-vm-all", "make test-vm-package"):
        assert word in said


def test_a_guest_for_topotests_has_mpls_and_the_time_of_a_module(monkeypatch):
    """FRR's tests of LDP and VPNs skip without the modules. tests/topotests/run.py limits a module;
    the guest does not end it earlier."""
    seen = {}
    keep = lambda _kernel, _name, command, **more: seen.update(command=command, **more)  # noqa: E731
    monkeypatch.setattr(vm, "in_guest", keep)

    vm.run_topotests(None, "ldp_topo1")

    assert "modprobe -a mpls_router mpls_iptunnel\n" in seen["command"]
    assert seen["seconds"] >= 3600


class Started(Exception):
    """Raised in the place of a start of QEMU, with its arguments."""


def test_a_guest_gets_the_frequency_of_its_clock(monkeypatch, tmp_path):
    """The kernel of a guest gets the frequency of its clock as a parameter. A guest that measures it at
    boot beside busy programs has a clock that is several times too fast."""
    (tmp_path / "root/lib/modules/6.1").mkdir(parents=True)

    def start(argv, **_):
        raise Started(argv)

    monkeypatch.setattr(guest.subprocess, "Popen", start)
    with pytest.raises(Started) as started:
        guest.run(guest.Kernel(str(tmp_path)), str(tmp_path / "log"), "true")

    (argv,) = started.value.args
    khz = int(re.search(r"tsc_early_khz=(\d+) ", argv[argv.index("-append") + 1])[1])
    assert khz == pytest.approx(guest.tsc_khz(), rel=0.01) and khz > 10**5
