# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine without an IOMMU, its virtio NICs by uio_pci_generic: the manual's commands
(install.md) run under the unit as it is installed. The files of the package are copied, because
to make and install the package takes longer than these tests."""

import json
import os
import shutil
import subprocess

import pytest

from lib import docs, netns, unit
from lib.links import pci
from router import Router
from service import CONFIG, NAME, Service, forwards, routes, systemctl, wait_for_other, write
from test_manual import MANUAL, run
from test_nic import test_forwards_both_ways_without_loss  # noqa: F401

DIST = os.path.dirname(unit.PATH)
# These settings differ from the service's, so that the daemon could start beside it.
SMALL_PAGES = """\
ports:
  - {{tap: other0, device: "{device}"}}
fpm: {{listen: 127.0.0.1:2621}}
control-socket: {dir}/other.sock
memory: {{size-mib: 64}}
"""


@pytest.fixture(scope="module")
def installed():
    """Install the programs, the unit and its group."""
    build = os.path.join(docs.ROOT, "build", "release")
    shutil.copy(f"{build}/fpm-dataplane", "/usr/sbin")
    shutil.copy(f"{build}/fpmctl", "/usr/bin")
    shutil.copy(unit.PATH, "/etc/systemd/system")
    os.makedirs(os.path.dirname(CONFIG), exist_ok=True)
    netns.command(["systemd-sysusers", f"{DIST}/{NAME}.sysusers"])
    systemctl("daemon-reload")


@pytest.fixture(scope="module")
def uio(installed):
    """Run the page's commands and the service on two NICs."""
    router = Router(name="uio")
    router.names = ("lan", "wan")
    router.wiring.to_vfio = False
    router.config, router.socket = CONFIG, f"/run/{NAME}/control.sock"
    router.control.path = router.socket
    router.daemon = Service(None, CONFIG, router.socket, "", router.dir)
    try:
        router.build()
        router.edit_config("\nmemory:", "\ncores: [1]\nmemory:")
        (block,) = [b for b in docs.blocks(MANUAL / "install.md") if b.place == "noiommu"]
        run(block)
        router.start()
        yield router
    finally:
        router.destroy()


@pytest.fixture
def router(uio):
    """Return the router in its standard state."""
    uio.ready()
    return uio


def devices():
    """Return `fpmctl device list` by address."""
    rows = json.loads(netns.command(["fpmctl", "--json", "device", "list"]))
    return {row["address"]: row for row in rows}


def refused(*words):
    """Run fpmctl, which must refuse. Return its message."""
    done = subprocess.run(["fpmctl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    return done.stderr


def test_vfio_takes_none_and_says_what_would(installed):
    """Debian's kernel has no no-IOMMU mode of vfio. The module accepts the parameter for it
    without effect."""
    netns.command(["modprobe", "vfio", "enable_unsafe_noiommu_mode=1"])
    assert not os.path.exists("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")
    before = devices()
    assert {row["iommu_group"] for row in before.values()} == {None}

    said = refused("device", "bind", pci(3))

    assert "it is in no IOMMU group" in said
    assert "use uio_pci_generic, because this kernel's vfio has no no-IOMMU mode (install.md)" in said
    assert devices() == before


def test_the_service_has_them_and_no_capability_more(uio):
    """The page gives the unit access to files only: /sys and /dev/uio."""
    rows = devices()
    assert [rows[pci(n)]["driver"] for n in range(2)] == ["uio_pci_generic"] * 2
    assert [rows[pci(n)]["port"] for n in range(2)] == ["lan0", "wan0"]
    assert {row["driver"] for row in uio.control.ask("ports")} == {"net_virtio"}
    with open(f"/proc/{uio.daemon.pid()}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    # NET_ADMIN 12, NET_RAW 13, IPC_LOCK 14, SYS_ADMIN 21.
    assert int(status["CapEff"], 16) == 1 << 12 | 1 << 13 | 1 << 14 | 1 << 21


def test_doctor_warns_of_what_it_costs(router):
    """Doctor has a warning for each port, and names the cost: the NIC can write to all memory."""
    rows = json.loads(netns.command(["fpmctl", "--json", "doctor", "iommu"], check=False))

    assert {row["subject"]: (row["status"], row["text"]) for row in rows} == {
        name: ("warn", "driver uio_pci_generic without an IOMMU") for name in ("lan0", "wan0")
    }
    assert all("can write to all memory" in row["cost"] for row in rows)
    # `device bind` is refused on this machine, as test_vfio_takes_none shows.
    assert not any("device bind" in line for row in rows for line in row["fix"])


def test_the_log_of_a_start_has_no_errors(uio):
    """The daemon asks uio for no interrupt for each queue, which DPDK's virtio driver would
    refuse in three lines. The doctor tells the cost of it."""
    lines = [row["line"] for row in uio.control.ask("log")]

    assert any("main: forwarding" in line for line in lines)
    assert [line for line in lines if " E " in line] == []


def test_a_restart_and_a_crash_have_the_nics_again(router):
    """uio lets two processes open a device. The daemon that ends must not close the device of
    the next."""
    routes(router)
    assert all(forwards(router))
    was = router.daemon.pid()
    netns.command(["fpmctl", "restart"])
    wait_for_other(router, was)
    assert all(forwards(router))

    was = router.daemon.crash()

    wait_for_other(router, was)
    assert all(forwards(router))


def test_without_physical_addresses_no_nic_is_started(router):
    """DPDK refuses the NIC before it touches it. The daemon's message says how to correct
    it."""
    path = f"{router.dir}/small.yaml"
    write(path, SMALL_PAGES.format(device=pci(0), dir=router.dir))

    done = subprocess.run(
        ["fpm-dataplane", "-c", path], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 1, done
    assert f"{pci(0)} is bound to uio_pci_generic without an IOMMU" in done.stderr
    assert "needs physical addresses" in done.stderr
    routes(router)
    assert all(forwards(router))


def test_at_last_the_kernel_has_them_back(uio):
    """`fpmctl device unbind` refuses while the service runs and succeeds after it has ended."""
    assert "is port lan0 of the running dataplane" in refused("device", "unbind", pci(0))
    # fpmctl sees the open device even without an answer of the daemon.
    lost = ["-s", "/nowhere", "device", "unbind", pci(0)]
    assert "a process has it open" in refused(*lost) and devices()[pci(0)]["open"]
    assert devices()[pci(0)]["driver"] == "uio_pci_generic"
    systemctl("stop", NAME)

    for n in range(2):
        said = netns.command(["fpmctl", "device", "unbind", pci(n)])
        assert "before uio_pci_generic" in said
        assert devices()[pci(n)]["driver"] == "virtio-pci"
