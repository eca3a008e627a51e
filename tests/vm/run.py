#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make test-vm`: the tests that need a machine of their own, each in a guest with the NICs
it is about. The last line says how each went; what a guest printed is in build/vm/."""

import functools
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import guest  # noqa: E402
from lib.links import FAR_SLOT, PORT_SLOT, far_mac, port_mac  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(guest.HERE))
NO_TESTS = 5  # pytest: nothing was left to run
NAMES = 4  # wires of the device under test
PYTEST = "/usr/bin/python3 -m pytest --no-header -p no:cacheprovider -q -rs"

# Two queue pairs and a hash over them; the other models have one, or no hash in QEMU.
VIRTIO = ",mq=on,vectors=6,rss=on,disable-legacy=on,iommu_platform=on,ats=on"
# Model: what QEMU is told of it, DPDK's driver, CPUs that forward.
MODELS = {
    "e1000e": ("", "net_e1000_em", "[1]"),
    "virtio-net-pci": (VIRTIO, "net_virtio", "[0, 1]"),
}


def wires(model, more):
    """Shell text and QEMU's arguments: a NIC of `model` for every port, and one for the
    kernel at the other end of its wire, which is a bridge of two TAPs."""
    multi = "mq=on" in more
    setup = [
        "sysctl -qw net.ipv6.conf.default.disable_ipv6=1",
        # Netfilter on a bridge drops what a wire would pass: a wrong checksum.
        "for x in /proc/sys/net/bridge/bridge-nf-call-ip*; do [ ! -e $x ] || echo 0 >$x; done",
    ]
    argv = []
    for n in range(NAMES):
        setup += [
            f"ip link add b{n} type bridge mcast_snooping 0",
            f"ip tuntap add p{n} mode tap {'multi_queue' if multi else ''}",
            f"ip tuntap add f{n} mode tap",
            *(f"ip link set {x}{n} mtu 9000 master b{n} up" for x in "pf"),
            f"ip link set b{n} up",
        ]
        tap = "vnet_hdr=off,script=no,downscript=no,vhost=off"
        argv += [
            "-netdev", f"tap,id=p{n},ifname=p{n},{tap}" + (",queues=2" if multi else ""),
            "-netdev", f"tap,id=f{n},ifname=f{n},{tap}",
            "-device", f"{model},id=port{n},netdev=p{n},mac={port_mac(n)},"
            f"addr={PORT_SLOT + n:#x}{more}",
            "-device", f"virtio-net-pci,id=far{n},netdev=f{n},mac={far_mac(n)},"
            f"addr={FAR_SLOT + n:#x}",
        ]  # fmt: skip
    return "\n".join(setup), argv


def nics(kernel, model, words):
    """One model of NIC; returns pytest's exit code."""
    more, driver, cores = MODELS[model]
    network, devices = wires(model, more)
    command = f"""
cd {ROOT}
export FDP_LINKS=nics FDP_DRIVER={driver} FDP_CORES='{cores}' PYTHONDONTWRITEBYTECODE=1
{PYTEST} tests/vm/test_nic.py {words}
"""
    return guest.run(kernel, f"{ROOT}/build/vm/{model}.log", command, devices, network)


def two_nodes(kernel, words):
    """A machine of two NUMA nodes, a CPU and half of the memory each, and no NIC."""
    devices = []
    for node in range(2):
        devices += [
            "-object", f"memory-backend-ram,id=mem{node},size={guest.MIB // 2}M",
            "-numa", f"node,nodeid={node},cpus={node},memdev=mem{node}",
        ]  # fmt: skip
    command = f"""
cd {ROOT}
export PYTHONDONTWRITEBYTECODE=1
{PYTEST} tests/vm/test_numa.py {words}
"""
    return guest.run(kernel, f"{ROOT}/build/vm/numa.log", command, devices)


def packaged(kernel, words, name, model, more="", cpus=2):
    """tests/vm/test_NAME.py with the package, under systemd; returns pytest's exit code."""
    network, devices = wires(model, more)
    command = f"""
cd {ROOT}
export FDP_LINKS=nics FDP_DEB='{ROOT}/build/deb/fpm-dataplane_*.deb' PYTHONDONTWRITEBYTECODE=1
{PYTEST} tests/vm/test_{name}.py {words}
"""
    log = f"{ROOT}/build/vm/{name}.log"
    return guest.run(kernel, log, command, devices, network, systemd=True, cpus=cpus)


def links(kernel, words):
    """Kinds of links that need a kernel which has them; wires are veths."""
    command = f"""
cd {ROOT}
export PYTHONDONTWRITEBYTECODE=1
{PYTEST} tests/vm/test_vlan.py tests/vm/test_vrf.py {words}
"""
    return guest.run(kernel, f"{ROOT}/build/vm/links.log", command)


def main(words=""):
    """Returns the exit code. `words` chooses tests, as pytest's -k does."""
    reason = guest.why_not()
    if reason:
        print(f"test-vm: skipped: {reason}")
        return 0
    kernel = guest.Kernel(f"{ROOT}/build/vm")
    try:
        kernel.prepare()
    except guest.GuestError as error:
        print(f"test-vm: skipped: no kernel for the guest: {error}")
        return 0
    choose = f"-k '{words}'" if words else ""
    parts = {model: functools.partial(nics, kernel, model, choose) for model in MODELS}
    parts["numa"] = functools.partial(two_nodes, kernel, choose)
    systemd = functools.partial(packaged, kernel, choose)
    parts["service"] = functools.partial(systemd, "service", "e1000e")
    parts["manual"] = functools.partial(systemd, "manual", "virtio-net-pci", VIRTIO, 3)
    parts["links"] = functools.partial(links, kernel, choose)
    said, failed = [], False
    for name, part in parts.items():
        print(f"--- {name}", flush=True)
        start = time.monotonic()
        try:
            code = part()
        except guest.GuestError as error:
            code = 1
            print(error)
        failed |= code not in (0, NO_TESTS)
        how = {0: "passed", NO_TESTS: "none chosen"}.get(code, "FAILED")
        said.append(f"{name} {how} ({time.monotonic() - start:.0f} s)")
    print("test-vm: " + ", ".join(said))
    return 1 if failed else 0


def _interrupted(number, _):
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    sys.exit(main(*sys.argv[1:]))
