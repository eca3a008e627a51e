# SPDX-License-Identifier: BSD-3-Clause
"""IPVS, the kernel's load balancer, whose services keepalived sets up, too."""

import shutil

import pytest

from lib import netns
from lib.wait import eventually


def test_virtual_services_are_told_while_they_exist(on_veths):
    """A warning names the number of virtual services while they exist. Linux translates the answers
    of the servers at hook forward, without any chain of nf_tables."""
    if shutil.which("ipvsadm") is None:
        pytest.skip("no ipvsadm: apt-get install ipvsadm")
    dut, where = on_veths, "1 virtual service of IPVS"
    told = lambda: [row["where"] for row in dut.control.ask("warnings") if row["kind"] == "nat"]  # noqa: E731
    netns.command(["modprobe", "ip_vs_rr"])
    assert told() == []
    netns.run(dut.ctl, ["ipvsadm", "-A", "-t", "192.0.2.1:80", "-s", "rr"])
    netns.run(dut.ctl, ["ipvsadm", "-a", "-t", "192.0.2.1:80", "-r", "192.0.2.66:80", "-m"])
    eventually(lambda: told() == [where], 20, 0.1, where)
    netns.run(dut.ctl, ["ipvsadm", "-C"])
    eventually(lambda: told() == [], 20, 0.1, "no service")
