# SPDX-License-Identifier: BSD-3-Clause
"""Acknowledgements end to end: a real FRR that reads them advertises a route when the dataplane
forwards it, and not before.

FRR 8.4 discards acknowledgements (doc/fpm.md, 8), so the test needs a newer FRR. `make frr-root`
unpacks it into build/frr-root, beside the machine's own FRR; FRR_ROOT names another folder. Without
a newer FRR the test is skipped.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from lib import netns, procs
from lib.wait import eventually

BUILD = os.path.join(os.path.dirname(__file__), "..", "..", "build")
ROOT = os.path.abspath(os.environ.get("FRR_ROOT") or os.path.join(BUILD, "frr-root"))
PROGRAMS = "usr/lib/frr"
N = 500
SPEAKER = os.path.join(os.path.dirname(__file__), "..", "lab", "bgp_speaker.py")

BGPD = """\
router bgp 65001
 bgp router-id 10.99.1.1
 bgp suppress-fib-pending
 no bgp ebgp-requires-policy
 neighbor 10.99.1.2 remote-as 65002
 neighbor 10.99.1.2 passive
 neighbor 10.99.2.2 remote-as 65003
 neighbor 10.99.2.2 passive
 neighbor 10.99.2.2 advertisement-interval 0
 address-family ipv4 unicast
  neighbor 10.99.1.2 route-map IN in
 exit-address-family
route-map IN permit 10
 set ip next-hop {gateway}
"""

pytestmark = pytest.mark.skipif(
    not os.path.isfile(os.path.join(ROOT, PROGRAMS, "zebra")),
    reason="no FRR that listens to feedback: `make frr-root` unpacks one",
)


class NewFrr:
    """Run zebra and bgpd of FRR_ROOT in the router's namespace, with two BGP speakers beside it."""

    def __init__(self, dut, tmp_path):
        self.dut, self.tmp, self.mark = dut, str(tmp_path), str(tmp_path)
        self.far = [f"{dut.ctl}-f", f"{dut.ctl}-d"]
        self.mounts, self.programs = [], []

    def start(self, gateway):
        """Start all programs. `far[0]` announces routes with this next hop, `far[1]` receives."""
        for place in ("proc", "sys", "dev"):
            netns.command(["mount", "--bind", "/" + place, os.path.join(ROOT, place)])
            self.mounts.append(os.path.join(ROOT, place))
        netns.command(["chroot", ROOT, "install", "-d", "-o", "frr", "/run/frr"])
        self._write("etc/frr/empty.conf", "")
        self._write("etc/frr/bgp.conf", BGPD.format(gateway=gateway))
        netns.command(["ip", "-n", self.dut.ctl, "link", "set", "lo", "up"])
        for n, name in enumerate(self.far, 1):
            self._wire(n, name)
        self.frr("zebra", "-M", "dplane_fpm_nl", "--asic-offload=notify_on_offload")
        self.frr("mgmtd", conf=False)
        self.frr("bgpd")
        eventually(lambda: "bgpd" in self.vtysh("-c", "show daemons"), 20)
        self.vtysh("-c", "conf t", "-c", "fpm address 127.0.0.1")
        self.vtysh("-f", "/etc/frr/bgp.conf")
        for n, name in enumerate(self.far, 1):
            self._speaker(n, name)

    def _write(self, path, text):
        with open(os.path.join(ROOT, path), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(file.name, 0o644)

    def _wire(self, n, name):
        here, there = f"fb{n}a", f"fb{n}b"
        netns.command(["ip", "netns", "add", name])
        pair = ["type", "veth", "peer", "name", there, "netns", name]
        netns.command(["ip", "link", "add", here, "netns", self.dut.ctl, *pair])
        for where, dev, host in ((self.dut.ctl, here, 1), (name, there, 2)):
            address = f"10.99.{n}.{host}/24"
            netns.command(["ip", "-n", where, "addr", "add", address, "dev", dev])
            netns.command(["ip", "-n", where, "link", "set", dev, "up"])

    def _speaker(self, n, name):
        argv = [sys.executable, SPEAKER, "--peer", f"10.99.{n}.1"]
        argv += ["--local-as", str(65001 + n), "--next-hop4", f"10.99.{n}.2"]
        argv += ["--next-hop6", "2001:db8::1", "--routes4", str(N if n == 1 else 0)]
        argv += ["--control", os.path.join(self.tmp, f"{n}.sock")]
        log = os.path.join(self.tmp, f"{n}.log")
        self.programs.append(procs.start(argv, self.mark, log, name))

    def frr(self, daemon, *words, conf=True):
        """Start one daemon."""
        argv = ["chroot", ROOT, f"/{PROGRAMS}/{daemon}"]
        argv += ["-f", "/etc/frr/empty.conf"] if conf else []
        log = os.path.join(self.tmp, daemon + ".log")
        self.programs.append(procs.start([*argv, *words], self.mark, log, self.dut.ctl))

    def vtysh(self, *words):
        """Return the output of one vtysh."""
        argv = ["ip", "netns", "exec", self.dut.ctl, "chroot", ROOT, "vtysh", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout

    def peers(self):
        """Return {peer: (state, prefixes received, prefixes sent)}."""
        text = self.vtysh("-c", "show bgp ipv4 unicast summary json")
        rows = json.loads(text or "{}").get("peers", {})
        return {p: (r["state"], r.get("pfxRcd"), r.get("pfxSnt")) for p, r in rows.items()}

    def destroy(self):
        """End all programs and remove all files."""
        for program in self.programs:
            program.kill()
            program.wait()
        for name in self.far:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        for place in self.mounts:
            subprocess.run(["umount", place], check=False)
        shutil.rmtree(os.path.join(ROOT, "run/frr"), ignore_errors=True)


@pytest.mark.parametrize("feedback", [True, False], ids=["feedback", "no feedback"])
def test_what_is_advertised_is_what_is_forwarded(own_dut, tmp_path, feedback):
    """With `bgp suppress-fib-pending` and acknowledgements, bgpd advertises all routes to the next
    router. Without acknowledgements it advertises none, because the dataplane has not said that
    packets would arrive."""
    dut = own_dut()
    # Another root may have another user frr.
    dut.edit_config("fpm:\n", f"fpm:\n  users: any\n  feedback: {str(feedback).lower()}\n")
    dut.start()
    dut.zebra.close()
    frr = NewFrr(dut, tmp_path)
    try:
        frr.start(gateway=dut.wires["wan"].peer4)
        eventually(lambda: dut.fpm()["zebra4"] >= N, 40, 0.2, "the routes come by FPM")
        up = (
            lambda: [p[0] for p in frr.peers().values()] == ["Established"] * 2
        )  # noqa: E731
        eventually(up, 20, 0.2, "both sessions are up")
        if feedback:
            eventually(lambda: frr.peers()["10.99.2.2"][2] == N, 10, 0.2, "advertised")
            assert frr.vtysh("-c", "show ip route bgp").count("\nB>*") == N
            assert dut.fpm()["feedback"] >= N
        else:
            assert frr.peers()["10.99.2.2"][2] == 0
            assert frr.vtysh("-c", "show ip route bgp").count("\nB>q") == N
            assert dut.fpm()["feedback"] == 0
    finally:
        frr.destroy()
