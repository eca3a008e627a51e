# SPDX-License-Identifier: BSD-3-Clause
"""Bridges over vxlan devices in the kernel of a namespace, with the neighbors and the forwarding database that
zebra writes for EVPN."""

from lib import netns
from lib.wait import eventually

VNI, PORT = 5001, 4789
INSIDE = {4: "10.9.0.{}/24", 6: "2001:db8:99::{}/64"}


def gateway(vtep, each):
    """Return the next hop that zebra has for a route of the family `each` to a VTEP."""
    return f"::ffff:{vtep}" if each == 6 and ":" not in vtep else vtep


def make(where, local, vni=VNI, more="", n="1", numbers=None):
    """Make a bridge over a vxlan device in a namespace."""
    if "csum" not in more:
        more += " noudpcsum udp6zerocsumtx udp6zerocsumrx"
    if "learning" not in more:
        more += " nolearning"
    netns.ip_batch(
        [
            f"link add vx{n} type vxlan id {vni} local {local} dstport {PORT} {more}",
            f"link add br{n} type bridge",
            f"link set vx{n} master br{n} addrgenmode none",
            f"link set br{n} addrgenmode none",
        ],
        where,
    )
    netns.sysctl(
        where,
        {
            f"net.ipv6.conf.br{n}.disable_ipv6": 0,
            f"net.ipv6.conf.br{n}.accept_dad": 0,
            f"net.ipv4.conf.br{n}.rp_filter": 0,
        },
    )
    lines = [f"link set vx{n} up", f"link set br{n} up"]
    if numbers:
        lines.append(f"addr add {INSIDE[4].format(numbers)} dev br{n}")
        lines.append(f"-6 addr add {INSIDE[6].format(numbers)} dev br{n} nodad")
    netns.ip_batch(lines, where)


def fdb(where, verb, mac, vtep, n="1"):
    """Change the forwarding database of a vxlan device."""
    words = ["dev", f"vx{n}", "dst", vtep] if verb != "del" else ["dev", f"vx{n}"]
    netns.command(["bridge", "-n", where, "fdb", verb, mac, *words])


def neighbors(where, vtep, mac, n="1", entry=True):
    """Make the neighbors of another router, as zebra writes them for both families of routes."""
    lines = []
    for each in (4, 6):
        to = gateway(vtep, each)
        six = "-6 " if ":" in to else ""
        lines.append(f"{six}neigh replace {to} lladdr {mac} dev br{n} nud noarp extern_learn")
    if entry:
        fdb(where, "replace", mac, vtep, n)
    netns.ip_batch(lines, where)


def known(dut, vtep, mac, n="1"):
    """Wait until the router has read the neighbors of another router, of both families of routes."""
    want = {(f"br{n}", gateway(vtep, each), mac) for each in (4, 6)}
    there = lambda: {(r["dev"], r["address"], r["mac"]) for r in dut.control.ask("neighbors")}  # noqa: E731
    eventually(lambda: want <= there(), 5, 0.01, f"the neighbors behind {vtep}")
