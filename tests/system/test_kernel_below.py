# SPDX-License-Identifier: BSD-3-Clause
"""The kernel interface behind a port of net_af_packet has the MAC address of the TAP. With IPv6 on it
would have the TAP's link-local address too, and answer in the place of the port."""

import json
import subprocess
from socket import AF_INET6, inet_ntop, inet_pton

import pytest
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import Ether
from scapy.utils6 import in6_getnsma, in6_getnsmac

from lib import netns, preload
from lib.wait import eventually

LINK_LOCAL = "fe80::ff:fe00:1"  # made from the MAC address of lan


def ipv6_on(dut, name, value=None):
    """Return whether an interface of the daemon's namespace has IPv6. With a value, first turn its
    IPv6 on or off."""
    key = f"net.ipv6.conf.{name}.disable_ipv6"
    if value is not None:
        netns.sysctl(dut.dp, {key: 0 if value else 1})
    return netns.run(dut.dp, ["sysctl", "-n", key]).strip() == "0"


def link_of(dut, name):
    """Return a link of the daemon's namespace as ip(8) shows it."""
    return json.loads(netns.command(["ip", "-n", dut.dp, "-j", "link", "show", name]))[0]


def is_up(dut, name):
    """Return whether a link of the daemon's namespace is set up."""
    return "UP" in link_of(dut, name)["flags"]


def answers(dut, wire, address):
    """Solicit an address on a wire. Return the number of advertisements that came until the router has
    judged all frames of a fence behind the solicitation."""
    group = in6_getnsma(inet_pton(AF_INET6, address))
    ask = IPv6(src=wire.peer6, dst=inet_ntop(AF_INET6, group), hlim=255) / ICMPv6ND_NS(tgt=address)
    ask = Ether(src=wire.mac, dst=in6_getnsmac(group)) / ask / ICMPv6NDOptSrcLLAddr(lladdr=wire.mac)
    wire.clear()
    wire.send(ask)
    eventually(lambda: [p for p in wire.sniffed(ICMPv6ND_NA) if p.tgt == address], 5, 0.01)
    dut.fence(wire)
    return len([p for p in wire.sniffed(ICMPv6ND_NA) if p.tgt == address])


@pytest.fixture
def below(own_dut):
    """A router whose daemon does not run yet, with IPv6 on in the kernel below lan and wan."""
    dut = own_dut()
    for name in ("p-lan", "p-wan"):
        assert ipv6_on(dut, name, True)
    return dut


def test_the_kernel_below_a_port_has_no_ipv6(below):
    """The daemon turns IPv6 off on the interfaces of its ports, and on no other. One host answers
    for the address of the port."""
    others = {name: ipv6_on(below, name) for name in ("lo", "all", "default")}

    below.start()

    assert not ipv6_on(below, "p-lan") and not ipv6_on(below, "p-wan")
    assert {name: ipv6_on(below, name) for name in others} == others
    assert "kernel ipv6 turned off name=lan0 interface=p-lan" in below.log()
    assert "interface=p-alt" not in below.log(), "it was off"
    assert answers(below, below.wires["lan"], LINK_LOCAL) == 1


def test_a_port_that_is_added_later_is_alone_too(below):
    """The daemon turns IPv6 off for a port that is added later, too. It has dropped its privileges by
    then, and still may write this sysctl."""
    below.start()
    assert below.fpmctl("port", "del", "lan0").returncode == 0
    ipv6_on(below, "p-lan", True)

    done = below.fpmctl("port", "add", "lan0", "device", "net_af_packet,iface=p-lan")

    assert done.returncode == 0, done.stderr
    assert not ipv6_on(below, "p-lan")


def test_an_interface_may_be_named_by_an_alternative_name(below):
    """`iface=` takes an alternative name (`ip link property`), as the kernel does. The port has the
    carrier of the interface, and IPv6 of the interface goes off."""
    netns.ip_batch(["link property add dev p-lan altname lan-port"], below.dp)
    below.edit_config("iface=p-lan", "iface=lan-port")

    below.start()

    assert not ipv6_on(below, "p-lan")
    lan = below.wires["lan"]
    eventually(lambda: below.port_row(lan)["link"] == "up", 2, 0.01)
    netns.ip_batch([f"link set {lan.name} down"], below.far)
    eventually(lambda: below.port_row(lan)["link"] == "down", 2, 0.01)
    ipv6_on(below, "p-lan", True)
    assert "IPv6 is on in the kernel" in below.fpmctl("doctor", "below").stdout
    eventually(lambda: not ipv6_on(below, "p-lan"), 5, 0.02)


def test_a_renamed_interface_is_followed(below):
    """The kernel interface below a port is renamed, and another interface gets its name. The daemon sets
    IPv6, state, MTU and MAC of no interface but its own."""
    below.start()
    lan = below.wires["lan"]
    netns.ip_batch(["link set p-lan name p-moved"], below.dp)
    netns.ip_batch(["link add p-lan type veth peer name p-peer", "link set p-lan up"], below.dp)
    ipv6_on(below, "p-lan", True)
    ipv6_on(below, "p-moved", True)

    eventually(lambda: not ipv6_on(below, "p-moved"), 5, 0.02)
    mac = link_of(below, "p-lan")["address"]
    below.ip(f"link set {lan.tap} mtu 1400 address 02:00:5e:00:53:77")
    eventually(lambda: below.port_row(lan)["mtu"] == 1400, 5, 0.02)
    below.ip(f"link set {lan.tap} down")
    eventually(lambda: not is_up(below, "p-moved"), 5, 0.02)
    assert ipv6_on(below, "p-lan") and is_up(below, "p-lan")
    assert link_of(below, "p-lan")["mtu"] == 1500
    assert link_of(below, "p-lan")["address"] == mac
    below.ip(f"link set {lan.tap} up")
    eventually(lambda: is_up(below, "p-moved"), 5, 0.02)
    eventually(lambda: below.port_row(lan)["link"] == "up", 5, 0.02)


def test_ipv6_that_is_turned_on_later_goes_off_again(below):
    """`sysctl net.ipv6.conf.all.disable_ipv6=0` turns IPv6 on for each interface. The daemon turns it off
    again on the interfaces of its ports."""
    below.start()
    for _ in range(2):
        ipv6_on(below, "all", False)
        ipv6_on(below, "all", True)
        eventually(lambda: not ipv6_on(below, "p-lan") and not ipv6_on(below, "p-alt"), 5, 0.02)
    assert ipv6_on(below, "lo")


def test_a_port_that_would_not_be_alone_is_refused(below, monkeypatch):
    """/proc/sys may be read-only, as in the service unit or in a container. Then the port is refused, and
    the reason has the command that turns IPv6 off. `--prepare`, which the unit runs with all rights
    before the daemon, also turns it off."""
    for name in ("p-lan", "p-wan"):
        ipv6_on(below, name, False)
    preload.start(below, monkeypatch, "sysctl_refused", SYSCTL_REFUSED="1")
    assert below.fpmctl("port", "del", "lan0").returncode == 0
    ipv6_on(below, "p-lan", True)

    done = below.fpmctl("port", "add", "lan0", "device", "net_af_packet,iface=p-lan")

    assert done.returncode == 2
    assert "would answer in the place of the port" in done.stderr
    command = "sysctl -w net/ipv6/conf/p-lan/disable_ipv6=1"
    assert command in " ".join(done.stderr.split())
    assert ipv6_on(below, "p-lan")
    subprocess.run(
        ["ip", "netns", "exec", below.dp, below.daemon.program, "--prepare", "-c", below.config],
        check=True,
        capture_output=True,
    )
    assert not ipv6_on(below, "p-lan")
    done = below.fpmctl("port", "add", "lan0", "device", "net_af_packet,iface=p-lan")
    assert done.returncode == 0, done.stderr


def test_ipv6_that_cannot_be_turned_off_is_reported(below, monkeypatch):
    """IPv6 is turned on when the port forwards already, and stays on. The log names the port."""
    for name in ("p-lan", "p-wan"):
        ipv6_on(below, name, False)
    preload.start(below, monkeypatch, "sysctl_refused", SYSCTL_REFUSED="1")

    ipv6_on(below, "p-lan", True)

    eventually(lambda: "neigh: ipv6 on in the kernel port=lan0" in below.log(), 5, 0.02)
    assert ipv6_on(below, "p-lan")
