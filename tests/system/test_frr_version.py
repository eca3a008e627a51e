# SPDX-License-Identifier: BSD-3-Clause
"""`fpmctl show version` and `fpmctl doctor frr-version` tell the version of the FRR that runs, and
the faults of that version that its configuration meets. test_frr_version.c has other versions."""

import json
import subprocess

import pytest

from lib.frr import PROGRAMS
from lib.frr import beside as frr_beside
from lib.wait import eventually

CONF = """\
hostname r1
fpm address 127.0.0.1
ipv6 route ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 blackhole
ip route 198.51.100.0/24 192.0.2.66
"""
# bgpd turns EVPN on in zebra. The table main has a VNI.
EVPN = """\
vni 55
router bgp 65001
 bgp router-id 192.0.2.1
 address-family l2vpn evpn
  advertise-all-vni
 exit-address-family
"""


@pytest.fixture
def silent(session_dut):
    """The router without a session of the zebra that the tests play. These tests send no packets."""
    session_dut.ready()
    session_dut.zebra.close()
    eventually(lambda: not session_dut.fpm()["connected"], 5)
    return session_dut


def installed():
    """Return the version of FRR's package as a word and as numbers, such as (8, 4, 4)."""
    text = subprocess.run([f"{PROGRAMS}/zebra", "-v"], capture_output=True, text=True, check=True)
    word = text.stdout.split()[2]
    return word, tuple(int(n) for n in word.split("-")[0].split("."))


def doctor(dut, *words):
    """Run the check. Returns (exit code, {subject: finding})."""
    done = dut.fpmctl("--json", "doctor", "frr-version", *words)
    return done.returncode, {row["subject"]: row for row in json.loads(done.stdout)}


def test_the_version_of_a_real_frr_is_told(silent):
    """`show version` has a line with FRR's version and zebra's pid while zebra runs, and none
    before. JSON has only the daemon's row."""
    word, numbers = installed()
    before = silent.fpmctl("show", "version").stdout
    with frr_beside(silent, CONF) as frr:
        shown = silent.fpmctl("show", "version")
        row = json.loads(silent.fpmctl("--json", "show", "version").stdout)
        code, found = doctor(silent)
        pid = frr.pid("zebra")

    assert "FRR" not in before
    assert f"    FRR {word}, zebra pid {pid}\n" in shown.stdout and shown.stderr == ""
    assert "frr" not in row[0]
    assert code == 0
    if (10, 3) <= numbers < (10, 3, 3) or (10, 4) <= numbers < (10, 4, 2):
        assert found["static-routes"]["text"] == "1 static route without an interface"
        assert "'ip route 198.51.100.0/24 192.0.2.66 INTERFACE'" in found["static-routes"]["fix"][0]
    else:
        assert (found[""]["status"], list(found)) == ("ok", [""])
        assert found[""]["text"].startswith(f"FRR {word}, ")


def test_evpn_with_a_zebra_that_may_crash_is_a_warning(silent):
    """A VNI of table main is a warning with a zebra below 10.2, and no finding with a later one."""
    _, numbers = installed()
    with frr_beside(silent, CONF + EVPN, ["bgpd"]) as frr:
        eventually(lambda: " L3 " in frr.vtysh("show evpn vni"), 10, what="zebra has the VNI")
        code, found = doctor(silent)

    assert code == 0
    assert ("evpn" in found) == (numbers < (10, 2)), found
    if "evpn" in found:
        assert found["evpn"]["status"] == "warn"
        assert "10.2 or later" in found["evpn"]["cost"]
        assert "timers delayopen 10" in found["evpn"]["cost"]


def test_a_vtysh_that_hangs_costs_the_version_and_no_more(silent, tmp_path):
    """A vtysh that hangs is ended after some seconds, and the version is unknown then: no failure."""
    script = tmp_path / "vtysh"
    script.write_text("#!/bin/sh\nexec sleep 300\n")

    code, found = doctor(silent, "--vtysh", f"sh {script}")

    assert (code, found[""]["status"]) == (0, "n/a")
    assert found[""]["text"] == "no zebra reports its version"
