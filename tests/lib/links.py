# SPDX-License-Identifier: BSD-3-Clause
"""The links between the device under test and its neighbors: veths, or in a virtual machine PCI
NICs with DPDK's own drivers.

    make(dut)       make the wires of dut.names from namespace dut.far to the daemon's ports
    give_back(dut)  give the NICs back before the namespaces of dut end
    device(name)    return the device name in the configuration of the port of a wire
"""

import glob
import json
import os

from lib import netns
from lib.wait import eventually

OFF = "tx off gso off tso off gro off".split()
# PCI slots of port 0 and of the kernel's NIC at the other end of its wire.
PORT_SLOT, FAR_SLOT = 0x10, 0x18


def port_mac(n):
    """Return the MAC address of the router's port number n."""
    return f"02:00:00:00:{n:02x}:01"


def far_mac(n):
    """Return the MAC address of the neighbor on port number n."""
    return f"02:00:00:00:{n:02x}:02"


def on_nics():
    """Return True if this is a guest with NICs for the wires (tests/vm)."""
    return os.environ.get("FDP_LINKS") == "nics"


def chosen():
    """Return the links of this run."""
    return Nics() if on_nics() else Veths()


class Veths:
    """A veth for each wire. The daemon opens the port's end with net_af_packet."""

    memory = "  size-mib: 96"

    def make(self, dut):
        lines = []
        for n, name in enumerate(dut.names):
            # The two ends have different indexes. If their indexes are equal, the kernel takes
            # the veth for a plain device and may report its carrier up to a second late.
            lines += [
                f"link add {name} index {100 + n} address {far_mac(n)} "
                f"type veth peer name p-{name} "
                f"address {port_mac(n)} netns {dut.dp}",
                f"link set {name} up",
            ]
        netns.ip_batch(lines, dut.far)
        netns.ip_batch([f"link set p-{name} up" for name in dut.names], dut.dp)
        for name in dut.names:
            netns.run(dut.far, ["ethtool", "-K", name, *OFF], check=False)
            netns.run(dut.dp, ["ethtool", "-K", "p-" + name, *OFF], check=False)

    def give_back(self, dut):
        """Give nothing back: veths end with their namespaces."""

    def device(self, name):
        return f"net_af_packet,iface=p-{name}"


class Nics:
    """A PCI NIC for each port, bound to vfio-pci. Its wire leads to another NIC, which has a driver of
    the kernel. The virtual machine has these NICs in the slots that are named above."""

    def __init__(self):
        self.names = []
        self.to_vfio = True
        self.memory = f"  size-mib: {os.environ.get('FDP_MIB', 96)}\n  hugepages: true"

    def make(self, dut):
        netns.command(["modprobe", "-a", "virtio_net", "vfio-pci"])
        self.names = list(dut.names)
        for n, name in enumerate(dut.names):
            if self.to_vfio:
                give_to_vfio(pci(n))
            # A NIC in the namespace of a test that was killed comes back later.
            ifname = eventually(
                lambda n=n: _kernel_name(far_mac(n)), 10, 0.05, f"NIC of {name}"
            )
            lines = [
                f"link set {ifname} down",
                f"link set {ifname} name {name} netns {dut.far}",
            ]
            netns.ip_batch(lines)
            netns.ip_batch([f"link set {name} mtu 9000 up"], dut.far)

    def give_back(self, dut):
        """Give the NICs back. A namespace ends, and releases its NICs, with its last socket. A TCP
        connection whose peer is away lasts without a process while the kernel retransmits."""
        for name in dut.names:
            argv = ["ip", "-n", dut.far, "link", "set", name, "netns", "1"]
            netns.command(argv, check=False)

    def device(self, name):
        return pci(self.names.index(name))


def pci(n):
    """Return the PCI address of port number n."""
    return f"0000:00:{PORT_SLOT + n:02x}.0"


def give_to_vfio(address):
    """Unbind a PCI device from its driver and bind it to vfio-pci."""
    device = f"/sys/bus/pci/devices/{address}"
    if os.path.realpath(device + "/driver").endswith("/vfio-pci"):
        return
    if os.path.exists(device + "/driver"):
        _write(device + "/driver/unbind", address)
    _write(device + "/driver_override", "vfio-pci")
    _write("/sys/bus/pci/drivers_probe", address)
    assert glob.glob(device + "/driver"), f"vfio-pci does not take {address}"


def _kernel_name(mac):
    rows = json.loads(netns.command(["ip", "-j", "link"]))
    return next((row["ifname"] for row in rows if row.get("address") == mac), None)


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
