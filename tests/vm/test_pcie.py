# SPDX-License-Identifier: BSD-3-Clause
"""Doctor's results about PCI Express, compared with pciutils: for the configuration spaces of
this machine (run.py puts a NIC into a faster slot), and for copies that setpci has changed,
also by the commands that doctor advises."""

import contextlib
import glob
import json
import os
import pathlib
import re
import subprocess
import tempfile

import pytest

from impostor import Impostor
from lib.dataplane import ROOT

SYS = "/sys/bus/pci"
FPMCTL = os.path.join(ROOT, "build", "release", "fpmctl")
CHECKS = ("pcie-link", "ext-tag", "read-request")
pytestmark = pytest.mark.quick


def doctor(addresses, tmp_path):
    """Run doctor with a daemon that has these devices as ports. Return {(check, address):
    row}."""
    path = os.path.join(tempfile.mkdtemp(dir=tmp_path), "sock")
    answers = {"version": [{"version": "1"}], "fpm": [{"state": "up"}],
               "ports": [{"name": a, "device": a} for a in addresses]}  # fmt: skip
    impostor = Impostor(path, lambda request: answers.get(request.get("show"), []))
    try:
        argv = [FPMCTL, "-s", path, "--json", "doctor", *CHECKS]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    finally:
        impostor.close()
    return {(r["check"], r["subject"]): r for r in json.loads(done.stdout)}


def lspci(address, path=SYS):
    """Return lspci's text about a device's PCI Express capability; "" if the device has
    none."""
    argv = ["lspci", "-vv", "-D", "-A", "linux-sysfs", "-O", f"sysfs.path={path}", "-s", address]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    return said[at:] if (at := said.find(" Express (v")) >= 0 else ""


# The vendors of virtio and of VMware. In a guest their devices have no slot, whatever they report.
HYPERVISORS = ("0x1af4", "0x15ad")


def expected(said, vendor):
    """Return {check: (verdict, words)} from lspci's text. lspci is another program that reads
    the same octets."""
    if said and vendor in HYPERVISORS:
        return dict.fromkeys(CHECKS, ("n/a", "a device of the hypervisor"))
    if not said:
        return dict.fromkeys(CHECKS, ("n/a", "no PCI Express"))
    able, on = re.findall(r"ExtTag([+-])", said)[:2]
    read = int(re.search(r"MaxReadReq (\d+) bytes", said)[1])
    tag = ("ok", "on") if on == "+" else ("warn", "off, though") if able == "+" else ("n/a", "none")
    link = ("n/a", "no link")
    speeds = re.findall(r"Lnk(?:Cap|Sta):.*?Speed (\S+)GT/s.*?Width x(\d+)", said)
    if len(speeds) == 2 and "0" not in (speeds[0][1], speeds[1][1]):
        (can, can_x), (does, does_x) = speeds
        less = float(does) < float(can) or int(does_x) < int(can_x)
        link = ("warn" if less else "ok", f"x{does_x} at {does} GT/s, ")
        link = (link[0], link[1] + (f"the maximum is x{can_x} at {can} GT/s" if less else "its maximum"))
    return {"pcie-link": link, "ext-tag": tag,
            "read-request": ("ok" if read >= 512 else "warn", f"{read} octets")}  # fmt: skip


def agree(address, found, said):
    """Check that doctor and lspci agree on a device."""
    vendor = pathlib.Path(f"{SYS}/devices/{address}/vendor").read_text("ascii").strip()
    for check, (verdict, words) in expected(said, vendor).items():
        row = found[check, address]
        assert (row["status"], words in row["text"]) == (verdict, True), (row, words, said)


def test_doctor_reads_every_device_as_lspci_does(tmp_path):
    """Doctor and lspci agree on each device, also on bridges. One bridge has a slot that is faster
    than its NIC."""
    addresses = sorted(os.listdir(f"{SYS}/devices"))

    found = doctor(addresses, tmp_path)

    for address in addresses:
        agree(address, found, lspci(address))
    links = [row["text"] for (check, _), row in found.items() if check == "pcie-link"]
    assert [t for t in links if t == "x1 at 2.5 GT/s, the maximum is x16 at 8 GT/s"], links
    assert [t for t in links if t.startswith("x1 at 2.5 GT/s, its maximum")], links
    assert [t for t in links if t.startswith("no PCI Express")], links
    assert "warn" in {row["status"] for (c, _), row in found.items() if c == "read-request"}


@pytest.fixture
def copy(tmp_path):
    """Copy the configuration space of the spare NIC to a folder. Yield (address, function that
    changes the copy)."""
    below = glob.glob(f"{SYS}/devices/*/0000:??:??.?")
    (address,) = [os.path.basename(path) for path in below]
    config = f"{SYS}/devices/{address}/config"
    mine = tmp_path / "pci" / "devices" / address
    mine.mkdir(parents=True)
    for name in ("config", "vendor", "device", "class", "irq", "resource"):
        (mine / name).write_bytes(pathlib.Path(f"{SYS}/devices/{address}/{name}").read_bytes())

    def setpci(*words):
        argv = ["setpci", "-A", "linux-sysfs", "-O", f"sysfs.path={tmp_path}/pci", *words]
        subprocess.run(argv, timeout=60, check=True)

    subprocess.run(["mount", "--bind", mine / "config", config], check=True)
    with contextlib.ExitStack() as undo:
        undo.callback(subprocess.run, ["umount", config], check=True)
        yield address, setpci


# LnkCap and LnkSta, each speed | width << 4, by the numbers of the specification.
LINKS = {"x8 of x8": (0x083, 0x083), "x4 of x8": (0x083, 0x043), "generation 2 of 3": (0x083, 0x082),
         "x16 of generation 5": (0x105, 0x105), "x32 that is x12": (0x204, 0x0C4)}  # fmt: skip


@pytest.mark.parametrize("link", LINKS)
def test_a_link_is_read_as_lspci_reads_it(copy, tmp_path, link):
    """Doctor and lspci agree for each link of a slot and a card."""
    address, setpci = copy
    can, does = LINKS[link]

    setpci("-s", address, f"CAP_EXP+c.w={can:x}:3ff", f"CAP_EXP+12.w={does:x}:3ff")

    found = doctor([address], tmp_path)
    agree(address, found, lspci(address, tmp_path / "pci"))
    assert found["pcie-link", address]["status"] == ("ok" if can == does else "warn")


def test_the_commands_that_doctor_tells_mend_what_it_found(copy, tmp_path):
    """The commands work as printed; the test only tells setpci another place of the device. After
    them doctor finds no fault. Doctor distinguishes a device without Extended Tag from a device
    that has it off."""
    address, setpci = copy
    setpci("-s", address, "CAP_EXP+4.l=0:20", "CAP_EXP+8.w=0:7100")
    assert doctor([address], tmp_path)["ext-tag", address]["status"] == "n/a"
    setpci("-s", address, "CAP_EXP+4.l=20:20")
    found = doctor([address], tmp_path)
    agree(address, found, lspci(address, tmp_path / "pci"))

    for check in ("ext-tag", "read-request"):
        row = found[check, address]
        assert row["status"] == "warn" and len(row["fix"]) == 1
        program, *words = row["fix"][0].split()
        assert program == "setpci"
        setpci(*words)

    found = doctor([address], tmp_path)
    agree(address, found, lspci(address, tmp_path / "pci"))
    assert {c: found[c, address]["status"] for c in CHECKS[1:]} == dict.fromkeys(CHECKS[1:], "ok")
    assert found["read-request", address]["text"] == "4096 octets"


@pytest.mark.parametrize("octets, status", [(128, "warn"), (256, "warn"), (512, "ok"), (2048, "ok")])
def test_each_size_of_a_read_is_told(copy, tmp_path, octets, status):
    """Doctor shows each size of a read request, 128 to 4096 octets."""
    address, setpci = copy

    setpci("-s", address, f"CAP_EXP+8.w={octets.bit_length() - 8:x}000:7000")

    row = doctor([address], tmp_path)["read-request", address]
    assert (row["status"], row["text"]) == (status, f"{octets} octets")
    agree(address, doctor([address], tmp_path), lspci(address, tmp_path / "pci"))
