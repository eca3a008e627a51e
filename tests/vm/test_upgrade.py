# SPDX-License-Identifier: BSD-3-Clause
"""The Debian package is upgraded while its service runs. dpkg chooses the cheapest method,
and never one that ends the router (fpm-dataplane/dist/debian/fpm-dataplane.postinst)."""

import contextlib
import glob
import os
import re
import subprocess

from lib import netns, procs
from lib.linkwatch import LinkWatch
from lib.wait import eventually
from service import (CONFIG, DPKG, HOST, NAME, forwards, routes, state, systemctl, traffic,
                     wait_for_other, write)  # fmt: skip

UNIT = f"/lib/systemd/system/{NAME}.service"
POLICY = "/usr/sbin/policy-rc.d"


def later_package(folder):
    """Make the package again with "+later" in its version and a program of another size. Return
    its file."""
    (deb,) = glob.glob(os.environ["FDP_DEB"])
    tree, later = str(folder / "tree"), str(folder / "later.deb")
    netns.command(["dpkg-deb", "-R", deb, tree], timeout=60)
    with open(tree + "/DEBIAN/control", encoding="utf-8") as file:
        text = re.sub(r"^(Version: .*)$", r"\1+later", file.read(), flags=re.M)
    with open(tree + "/DEBIAN/control", "w", encoding="utf-8") as file:
        file.write(text)
    with open(f"{tree}/usr/sbin/{NAME}", "ab") as file:
        file.write(b"later")
    netns.command(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, later], timeout=60)
    return later


def runs_what_is_installed(router):
    """Return True if the daemon's program is the file that dpkg installed."""
    return os.path.samefile(f"/proc/{router.daemon.pid()}/exe", f"/usr/sbin/{NAME}")


def test_an_upgrade_has_another_daemon_take_the_place(router, tmp_path):
    """dpkg -i of a later version under traffic: the service runs the new program, as after
    `fpmctl restart`. Carrier, configuration and zebra's routes stay."""
    routes(router)
    was, later, invocation = router.daemon.pid(), later_package(tmp_path), state("InvocationID")
    with open(CONFIG, encoding="utf-8") as file:
        mine = file.read()

    with LinkWatch(router.ctl) as watch:
        with traffic(router, was):
            netns.command([*DPKG, "--install", later], timeout=180)
        wait_for_other(router, was)

    assert runs_what_is_installed(router)
    assert state("InvocationID") == invocation, "systemd does not restart the service"
    assert watch.lost_carrier() == []
    said = netns.command(["dpkg-query", DPKG[1], "-W", "-f", "${Version} ${Status}", NAME])
    assert said.endswith("+later install ok installed")
    with open(CONFIG, encoding="utf-8") as file:
        assert file.read() == mine
    forwards(router)


def upgrade(change=lambda: None):
    """Run the package's scripts as dpkg does when it unpacks a later version. `change` plays
    the unpacking. Return their output."""
    said = ""
    for script, word in (("preinst", "upgrade"), ("postinst", "configure")):
        argv = [f"/run/dpkg/info/{NAME}.{script}", word, "0.1"]
        done = subprocess.run(
            argv, env={**os.environ, "DPKG_MAINTSCRIPT_PACKAGE": NAME},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said += done.stdout + done.stderr
        if script == "preinst":
            change()
    return said


@contextlib.contextmanager
def restored(path):
    """Restore a file at the end of the block."""
    with open(path, encoding="utf-8") as file:
        good = file.read()
    try:
        yield good
    finally:
        write(path, good)


def test_an_upgrade_with_another_unit_restarts_the_service(router):
    """With another unit a successor is not enough, because it would inherit the settings of
    the old unit. If the machine's policy forbids restarts, the next upgrade restarts the
    service."""
    routes(router)
    was = router.daemon.pid()
    with restored(UNIT) as unit, LinkWatch(router.ctl) as watch:
        write(POLICY, "#!/bin/sh\nexit 101\n")
        os.chmod(POLICY, 0o755)
        try:
            said = upgrade(lambda: write(UNIT, unit.replace("NOFILE=65536", "NOFILE=65432")))
        finally:
            os.unlink(POLICY)
        assert "the old version continues to forward: policy-rc.d forbids a restart" in said
        assert router.daemon.pid() == was

        assert "the daemon continues" not in upgrade()
        wait_for_other(router, was)

    assert watch.lost_carrier() == []
    with open(f"/proc/{router.daemon.pid()}/limits", encoding="ascii") as file:
        assert re.search(r"^Max open files +65432 ", file.read(), re.M)
    forwards(router)


def test_an_upgrade_to_what_would_not_start_leaves_the_old_one(router):
    """The new version refuses the configuration, or does not run at all. The old daemon
    forwards on, and the upgrade prints the reason."""
    routes(router)
    was = router.daemon.pid()

    with restored(CONFIG) as config:
        said = upgrade(lambda: router.write_config(config + "nonsense: 1\n"))

    assert "the old version continues to forward: the new version would not start" in said
    assert "nonsense" in said
    assert router.daemon.pid() == was and state("ActiveState") == "active"
    forwards(router)


def test_an_upgrade_loses_no_packet_where_nics_are_kept(router):
    """With kept NICs and the unit as it is: an upgrade, then a crash, then a stop that leaves
    nothing behind."""
    with restored(CONFIG):
        router.edit_config("\nmemory:", "\nkeep-nics: true\nmemory:")
        was = router.daemon.pid()
        systemctl("restart", NAME)
        wait_for_other(router, was)
        was, process = router.daemon.pid(), keeper()
        lan, wan = router.wires["lan"], router.wires["wan"]

        with LinkWatch(router.ctl) as watch, router.stream(lan, HOST[4], rate=100) as stream:
            assert "the daemon continues" not in upgrade()
            router.control.close()
            router.daemon.back(was, 60)
            router.forwarded(lan, lan.probe(HOST[4]), wan, 20)
        eventually(lambda: stream.lost(wan) == [], 10, 0.1, "all arrive")
        lan.clear()
        wan.clear()
        assert keeper() == process
        wait_for_other(router, was)

        was = router.daemon.crash()
        wait_for_other(router, was)
        forwards(router)
        assert watch.lost_carrier() == []
        assert keeper() not in (process, None)

        router.stop()
        assert keeper() is None
        assert glob.glob("/dev/hugepages/fdp*") + glob.glob(f"/run/{NAME}/dpdk/*") == []
    router.start()
    router.ready()


def keeper():
    """Return the process that keeps NICs, or None."""
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    found = [p for p in pids if procs.comm(p) == "fpm-nics"]
    return found[0] if found else None


def test_an_upgrade_starts_no_service_that_is_stopped(router):
    """The upgrade does not start a stopped service, which is not enabled here."""
    router.stop()

    upgrade()

    assert state("ActiveState") == "inactive"
