# SPDX-License-Identifier: BSD-3-Clause
"""The Debian package can be installed, run as by its unit, upgraded and purged in a clean Debian.

`make test-deb` builds package and Debian root first; their paths are in DEB and DEB_ROOT.
The root is the lower layer of an overlay in a mount namespace: tests change nothing of it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib.wait import eventually  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DEB = os.environ["DEB"]
DOC = "/usr/share/doc/fpm-dataplane"
CONFIG = "/etc/fpm-dataplane/config.yaml"
UNIT = "/lib/systemd/system/fpm-dataplane.service"


class Machine:
    """A Debian with its own files and network."""

    def __init__(self, lower):
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", "echo; exec sleep infinity"],
            stdout=subprocess.PIPE,
        )
        self.holder.stdout.readline()
        # These programs are those of the outer machine. Their mounts end with the holder.
        self._in(["mount", "-t", "tmpfs", "none", "/mnt"])
        self._in(["mkdir", "/mnt/upper", "/mnt/work", "/mnt/root"])
        layers = f"lowerdir={lower},upperdir=/mnt/upper,workdir=/mnt/work"
        self._in(["mount", "-t", "overlay", "-o", layers, "none", "/mnt/root"])
        for place in ("proc", "sys", "dev"):
            self._in(["mount", "--rbind", "/" + place, "/mnt/root/" + place])

    def argv(self, argv, net=True):
        """Return the command line that runs `argv` here; without `net`, on the outer network."""
        spaces = ["--mount", "--net"] if net else ["--mount"]
        env = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
               "DEBIAN_FRONTEND=noninteractive"]
        target = f"--target={self.holder.pid}"
        return ["nsenter", target, *spaces, *env, "chroot", "/mnt/root", *argv]

    def _in(self, argv):
        subprocess.run(["nsenter", f"--target={self.holder.pid}", "--mount", *argv], check=True)

    def run(self, *argv, net=True, check=True):
        """Run a command to its end. Return its output. If it fails, raise AssertionError with the
        output."""
        done = subprocess.run(self.argv(argv, net), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 or not check, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def has(self, path):
        return self.run("sh", "-c", f"test -e '{path}' && echo yes || true") == "yes\n"

    def write(self, path, text):
        subprocess.run(self.argv(["tee", path]), input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL)

    def install(self, deb):
        self._in(["cp", deb, "/mnt/root/tmp/new.deb"])
        return self.run("apt-get", "install", "-y", "--no-install-recommends",
                        "-o", "Dpkg::Options::=--force-confdef",
                        "-o", "Dpkg::Options::=--force-confold", "/tmp/new.deb", net=False)

    def close(self):
        self.holder.kill()
        self.holder.wait()


@pytest.fixture(scope="module")
def machine():
    m = Machine(os.environ["DEB_ROOT"])
    try:
        m.install(DEB)
        yield m
    finally:
        m.close()


def unit_says(machine, key):
    found = re.findall(rf"^{key}=(.*)$", machine.run("cat", UNIT), re.M)
    assert len(found) == 1, f"the unit has {key} {len(found)} times"
    return found[0]


@pytest.fixture
def service(machine, tmp_path):
    """Run the daemon with the unit's program, capabilities, privileges and group."""
    capabilities = unit_says(machine, "CapabilityBoundingSet").lower().split()
    bound = ",".join(["-all", *("+" + c.removeprefix("cap_") for c in capabilities)])
    group = unit_says(machine, "Group")
    assert unit_says(machine, "NoNewPrivileges") == "yes"
    log = open(tmp_path / "log", "w+")
    child = subprocess.Popen(
        machine.argv(["setpriv", f"--bounding-set={bound}", "--inh-caps=-all",
                      "--no-new-privs", f"--regid={group}", "--clear-groups",
                      *unit_says(machine, "ExecStart").split()]),
        stdout=log, stderr=log)
    try:
        yield child, log
    finally:
        child.terminate()
        child.wait()
        log.close()


def test_lintian_has_no_errors():
    """lintian reports no error, and none is suppressed or overridden. The project has no mail
    address: the address in the package is below `.invalid`, which does not exist (RFC 2606, 2)."""
    done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", DEB],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "overrid" not in done.stdout + done.stderr


def test_installation_starts_and_enables_nothing(machine):
    assert machine.run("systemctl", "is-enabled", "fpm-dataplane", check=False) == "disabled\n"
    # List only processes with this root, because /proc also has those of containers.
    ours = 'r=$(stat -Lc %d:%i /); for p in /proc/[0-9]*; do ' \
        '[ "$(stat -Lc %d:%i $p/root)" != "$r" ] || readlink $p/exe; done'
    running = machine.run("sh", "-c", ours, check=False)
    assert "stat" not in running and "sh" in running
    assert "/usr/sbin/fpm-dataplane" not in running.split("\n")
    assert machine.run("getent", "group", "fpm-dataplane").startswith("fpm-dataplane:")


def test_unit_is_valid_and_hardened(machine):
    machine.run("systemd-analyze", "verify", UNIT)
    said = machine.run("systemd-analyze", "security", "--offline=true", UNIT, check=False)
    exposure = float(re.search(r"exposure level for \S+: ([0-9.]+)", said).group(1))
    assert exposure < 7.0, "systemd-analyze rates the unit MEDIUM or better"


def test_the_helper_for_flowspec_is_installed_and_not_enabled(machine):
    """The unit of fpm-flowspec is valid and hardened. The program runs, and its configuration is there."""
    unit = "/lib/systemd/system/fpm-flowspec.service"
    said = machine.run("systemd-analyze", "security", "--offline=true", unit, check=False)
    assert float(re.search(r"exposure level for \S+: ([0-9.]+)", said).group(1)) < 4.0
    assert machine.run("systemctl", "is-enabled", "fpm-flowspec", check=False) == "disabled\n"
    assert "flow specifications" in machine.run("fpm-flowspec", "--help")
    assert machine.has("/etc/fpm-dataplane/flowspec.conf")


def test_manual_pages_and_completion_are_installed(machine):
    names = ("fpmctl.1", "fpm-dataplane.8", "fpm-supervise.8", "fpm-flowspec.8", "fpm-dataplane.yaml.5")
    for name in names:
        assert machine.has(f"/usr/share/man/man{name[-1]}/{name}.gz"), name
    assert "complete -F _fpmctl fpmctl" in machine.run(
        "cat", "/usr/share/bash-completion/completions/fpmctl")


def test_the_pages_of_the_manual_and_what_they_name_are_installed(machine):
    """All pages of the manual are installed in one folder. The alerts and the dashboard are among
    the examples."""
    below = ROOT / "fpm-dataplane"
    pages = [ROOT / "README.md", *below.glob("doc/*.md"), *below.glob("manual/*.md")]
    there = machine.run("ls", DOC, f"{DOC}/examples").split()

    assert len(pages) > 10 and {"README.md", "failures.md"} <= {page.name for page in pages}
    for page in pages:
        # debhelper installs CHANGELOG.md as changelog.gz.
        names = {page.name, page.name + ".gz", *(["changelog.gz"] * (page.name == "CHANGELOG.md"))}
        assert names & set(there), page.name
    assert machine.run("ls", f"{DOC}/plots").split() == sorted(p.name for p in below.glob("manual/plots/*"))
    for name in ("alerts.yml", "fpm-dataplane.json", "fpm-dataplane.yaml", "static"):
        assert {name, name + ".gz"} & set(there), name


def test_installed_configuration_is_good(machine):
    assert "good" in machine.run("fpm-dataplane", "--check", "-c", CONFIG)


def test_runs_with_what_the_unit_leaves_it(machine, service):
    child, log = service

    def answers():
        assert child.poll() is None, open(log.name).read()
        return machine.run("fpmctl", "--json", "show", "ports", check=False)

    ports = json.loads(eventually(answers, timeout=30))
    assert [p["name"] for p in ports] == ["wan0", "lan0"]
    socket = machine.run("stat", "-c", "%U %G %a", "/run/fpm-dataplane/control.sock")
    assert socket == "root fpm-dataplane 660\n"


def newer(tmp_path):
    """Make the same package with a later version."""
    tree = str(tmp_path / "tree")
    subprocess.run(["dpkg-deb", "-R", DEB, tree], check=True)
    control = f"{tree}/DEBIAN/control"
    with open(control) as f:
        text = f.read()
    with open(control, "w") as f:
        f.write(re.sub(r"(?m)^(Version: .*)$", r"\1+later", text))
    with open(f"{tree}{CONFIG}", "a") as f:
        f.write("# A remark of the later version.\n")
    deb = str(tmp_path / "later.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, deb], check=True,
                   stdout=subprocess.DEVNULL)
    return deb


def test_upgrade_keeps_the_configuration(machine, tmp_path):
    mine = machine.run("cat", CONFIG).replace("wan0", "mine0")
    machine.write(CONFIG, mine)
    machine.install(newer(tmp_path))
    version = machine.run("dpkg-query", "-W", "-f", "${Version} ${Status}", "fpm-dataplane")
    assert version.split()[0].endswith("+later")
    assert version.endswith("install ok installed")
    assert machine.run("cat", CONFIG) == mine


def test_removal_keeps_the_configuration_purge_does_not(machine):
    files = [f for f in machine.run("dpkg", "-L", "fpm-dataplane").split("\n")
             if "fpm-dataplane" in f or "fpmctl" in f]
    assert len(files) > 10
    machine.run("apt-get", "remove", "-y", "fpm-dataplane", net=False)
    assert machine.has(CONFIG)
    assert not machine.has("/usr/sbin/fpm-dataplane")
    machine.run("apt-get", "purge", "-y", "fpm-dataplane", net=False)
    assert [f for f in files if machine.has(f)] == []
