# SPDX-License-Identifier: BSD-3-Clause
"""The manual's chapters for a machine with NICs, run as commands: a router of FRR and the kernel
moves to the dataplane and back, and a new router is installed. systemd runs the machine, the
commands are those of the pages (lib/docs.py), and the neighbors are kernels and an FRR.

    far0 (isp, AS 65001)  enp3s0f0 or wan0, 192.0.2.1/30   the machine's two ports
    far1 (a host)         enp3s0f1 or lan0, 198.51.100.1/24
"""

import json
import os
import subprocess

import pytest

from lib import docs, links, netns
from lib.frr import Frr
from lib.wait import PATIENCE, eventually

MANUAL = docs.ROOT / "fpm-dataplane" / "manual"
# The PCI addresses of the pages, and those of the virtual machine.
DEVICES = {
    "0000:03:00.0": links.pci(0),
    "0000:03:00.1": links.pci(1),
    "0000:04:00.0": links.pci(2),
}
NAMES = {"enp3s0f0": 0, "enp3s0f1": 1, "enp4s0": 2}
ADDRESSES = {"enp3s0f0": "192.0.2.1/30", "enp3s0f1": "198.51.100.1/24"}
HOST = "203.0.113.9"  # behind isp
DIR = "/run/test-manual"

ISP = """\
hostname isp
ip route 203.0.113.0/24 blackhole
router bgp 65001
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 192.0.2.1 remote-as 65002
 neighbor 192.0.2.1 timers 3 9
 neighbor 192.0.2.1 timers connect 1
 address-family ipv4 unicast
  network 203.0.113.0/24
"""
OURS = """\
hostname r1
router bgp 65002
 bgp router-id 192.0.2.1
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 192.0.2.2 remote-as 65001
 neighbor 192.0.2.2 timers 3 9
 neighbor 192.0.2.2 timers connect 1
 address-family ipv4 unicast
  network 198.51.100.0/24
"""


def by_mac(mac):
    """Return the interface with this MAC."""
    rows = json.loads(netns.command(["ip", "-j", "link"]))
    return next((row["ifname"] for row in rows if row.get("address") == mac), None)


def name_nics():
    """Give the NICs the names that udev would give them in the slots of the pages."""
    netns.command(["udevadm", "settle"])  # udev gives them names of its own
    for name, n in NAMES.items():
        was = eventually(lambda n=n: by_mac(links.port_mac(n)), 10, 0.05, f"NIC {n}")
        if was != name:
            netns.ip_batch([f"link set {was} down", f"link set {was} name {name}"])


def far_end(n, address, more=()):
    """Make namespace far`n` with the NIC at the other end of port n's wire."""
    name = f"far{n}"
    netns.command(["ip", "netns", "add", name])
    nic = eventually(lambda: by_mac(links.far_mac(n)), 10, 0.05)
    netns.ip_batch([f"link set {nic} down", f"link set {nic} name eth0 netns {name}"])
    netns.ip_batch(["link set lo up", f"addr add {address} dev eth0", "link set eth0 up", *more],
                   name)  # fmt: skip


@pytest.fixture(scope="module")
def machine(package):
    """Make the neighbors. FRR has the configuration of Debian's package."""
    netns.command(["modprobe", "virtio_net"])
    name_nics()
    netns.command(["ip", "netns", "attach", "machine", "1"])
    back = "route add 198.51.100.0/24 via 192.0.2.1"
    far_end(0, "192.0.2.2/30", [f"addr add {HOST}/32 dev lo", back])
    far_end(1, "198.51.100.2/24", ["route add default via 198.51.100.1"])
    os.makedirs(DIR + "/isp.conf")
    files = {
        "frr.conf": ISP,
        "vtysh.conf": "",
        "daemons": "bgpd=yes\nbgpd_options=\"-A 127.0.0.1\"\n",
    }
    for name, text in files.items():
        with open(f"{DIR}/isp.conf/{name}", "w", encoding="ascii") as file:
            file.write(text)
    isp = Frr("far0", DIR + "/isp.conf", DIR + "/isp", DIR)
    isp.start()
    try:
        yield
    finally:
        isp.stop(*isp.daemons)


def run(block):
    """Run a block as a reader does, in root's home directory."""
    text = block.text
    for there, here in DEVICES.items():
        text = text.replace(there, here)
    done = subprocess.run(
        ["bash", "-e", "-c", text], cwd="/root", text=True, timeout=90 * PATIENCE, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    print(f"$ {text}{done.stdout}")
    where = f"{block.page.name}:{block.line}: {text}"
    assert done.returncode in block.codes, f"{where}{done.stdout}"
    return done.stdout


def blocks(page):
    """Return the blocks of a page that are for this machine."""
    return [block for block in docs.blocks(page) if block.place == "vm"]


def answered():
    """Return True if the host behind isp answers the host behind the machine."""
    said = netns.run("far1", ["ping", "-q", "-c", "1", "-W", "1", HOST], check=False)
    return " 1 received" in said


def established():
    """Return True if BGP with isp is established."""
    said = netns.command(["vtysh", "-c", "show bgp summary json"])
    peers = json.loads(said)["ipv4Unicast"]["peers"]
    return peers["192.0.2.2"]["state"] == "Established"


def connected():
    """Return True if zebra has connected to the dataplane."""
    return json.loads(netns.command(["fpmctl", "--json", "show", "fpm"]))[0]["connected"]


def by_whom():
    """Return the forwarder of the packets: "kernel" or "dataplane"."""
    eventually(lambda: established() and answered(), 90, 0.5, "BGP is up and packets pass")
    before = sum(netns.forwarded("machine"))
    assert all(answered() for _ in range(5))
    return "kernel" if sum(netns.forwarded("machine")) - before >= 10 else "dataplane"


def may_ask(user):
    """Return True if the daemon answers fpmctl of this user."""
    ask = ["runuser", "-u", user, "--", "fpmctl", "show", "ports"]
    try:
        return "lan0" in netns.command(ask)
    except netns.CommandError as error:
        assert "Permission denied" in str(error)
        return False


def examined(*checks):
    """Return the states of doctor's checks of the machine."""
    said = netns.command(["fpmctl", "--json", "doctor", *checks], check=False)
    rows = json.loads(said)
    assert {row["check"] for row in rows} == set(checks)
    print([row for row in rows if row["status"] != "ok"])
    return {row["status"] for row in rows}


def as_ifup():
    """Set the addresses as /etc/network/interfaces would."""
    for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        netns.command(["sysctl", "-qw", f"{key}=1"])
    for name, address in ADDRESSES.items():
        netns.ip_batch([f"addr replace {address} dev {name}", f"link set {name} up"])


def test_a_router_of_frr_and_the_kernel_moves_and_goes_back(machine):
    """Six steps move the router to the dataplane, and the page's last commands move it back.
    Names and sessions stay the same, but another program forwards."""
    as_ifup()
    with open("/etc/frr/frr.conf", "w", encoding="ascii") as file:
        file.write(OURS)
    netns.command(["sed", "-i", "s/^bgpd=no/bgpd=yes/", "/etc/frr/daemons"])
    netns.command(["systemctl", "restart", "frr"])
    assert by_whom() == "kernel"
    *steps, rollback, restored = blocks(MANUAL / "migrate.md")
    assert len(steps) == 6

    for step in steps[:4]:
        run(step)
    assert by_whom() == "kernel"
    run(steps[4])
    assert by_whom() == "dataplane"
    run(steps[5])
    assert examined("frr", "fpm", "routes", "iommu", "hugepages", "forwarding") == {"ok"}
    run(rollback)
    name_nics()
    as_ifup()
    run(restored)
    assert by_whom() == "kernel"


def test_a_new_router_is_installed_and_changed_while_it_runs(machine):
    """Install a router from an empty file (install.md), then change the running router
    (operations.md)."""
    netns.command(["systemctl", "stop", "frr"])
    for name in NAMES:
        netns.ip_batch([f"addr flush dev {name}", f"link set {name} down"])
    with open("/etc/frr/frr.conf", "w", encoding="ascii") as file:
        file.write("")
    netns.command(["sed", "-i", "s/-M dplane_fpm_nl //", "/etc/frr/daemons"])
    pages = [MANUAL / "install.md", MANUAL / "operations.md"]
    netns.command(["useradd", "alice"])

    for page in pages:
        for block in blocks(page):
            assert "adduser alice" not in block.text or not may_ask("alice")
            run(block)
            assert "adduser alice" not in block.text or may_ask("alice")
            if "enable --now fpm-dataplane" in block.text:
                eventually(connected, 30, 0.5, "zebra has tried again, as it does each 3 s")
            if "show routes" in block.text:
                eventually(answered, 30, 0.5, "packets pass")
    assert answered()
    assert "ext0" not in netns.command(["fpmctl", "show", "ports"])
    check = ["fpm-dataplane", "--check", "-c", "/root/now.yaml"]
    assert "good: 2 ports" in netns.command(check)
