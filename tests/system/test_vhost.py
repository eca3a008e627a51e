# SPDX-License-Identifier: BSD-3-Clause
"""vhost-user: a port that leads into a virtual machine's memory. The machine is played by
another dataplane, whose port is the guest's end of the same socket.

    host: vm0, net_vhost == vhost.sock == net_virtio_user, eth0 :guest
"""

import json
import os
import socket

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from lib import netns
from lib.dataplane import Dataplane
from lib.wait import eventually

PORTS = {
    "host": 'tap: vm0, device: "net_vhost,iface={dir}/vhost.sock"',
    "guest": 'tap: eth0, device: "net_virtio_user,path={dir}/vhost.sock,'
    'mac=02:00:00:00:00:77", mtu: 9000',
}
CONFIG = """\
ports:
  - {{{port}}}
cores: auto
control-netns: {netns}
control-socket: {dir}/{name}.sock
memory: {{size-mib: 64}}
"""


@pytest.fixture
def pair(tmp_path):
    """(host, guest); the guest does not run yet."""
    both = []
    try:
        for name, port in PORTS.items():
            space = f"fdp-{name}-{os.getpid()}"
            config = tmp_path / f"{name}.yaml"
            config.write_text(CONFIG.format(port=port.format(dir=tmp_path), netns=space,
                                            dir=tmp_path, name=name))  # fmt: skip
            both.append(Dataplane(None, str(config), f"{tmp_path}/{name}.sock",
                                  f"{tmp_path}/{name}.log", str(tmp_path)))  # fmt: skip
            both[-1].space = space
            netns.command(["ip", "netns", "add", space])
            netns.ip_batch(["link set lo up"], space)
        both[0].start()
        yield both
    finally:
        for daemon in both:
            if daemon.process is not None and daemon.process.poll() is None:
                daemon.stop()
            netns.delete(daemon.space)


def carrier(daemon, tap):
    """Has the TAP one?"""
    text = netns.command(["ip", "-n", daemon.space, "-j", "link", "show", tap])
    return "LOWER_UP" in json.loads(text)[0]["flags"]


def pings(daemon, address):
    """Is a ping answered?"""
    return " 1 received" in netns.run(
        daemon.space, ["ping", "-c", "1", "-W", "1", address], check=False
    )


def test_a_guest_comes_goes_and_comes_again(pair):
    """The port is there before its guest; the TAP's carrier is whether that is."""
    host, guest = pair
    netns.ip_batch(["addr add 192.0.2.1/24 dev vm0"], host.space)
    assert not carrier(host, "vm0")

    for _ in range(2):
        guest.start()
        netns.ip_batch(["addr replace 192.0.2.2/24 dev eth0"], guest.space)
        eventually(lambda: carrier(host, "vm0"), 10, 0.05, "carrier")
        eventually(lambda: pings(host, "192.0.2.2"), 10, 0.05, "the guest answers")
        eventually(lambda: pings(guest, "192.0.2.1"), 10, 0.05, "the host answers")
        assert host.ports()["vm0"]["driver"] == "net_vhost"
        guest.stop()
        eventually(lambda: not carrier(host, "vm0"), 10, 0.05, "no carrier")


def test_what_is_behind_a_packet_goes_no_further(pair):
    """A guest's long frame comes in several buffers; as many as its packet has leave, be the rest
    more than the last of them or less, and whether it waits for its neighbour or is cut."""
    host, guest = pair
    netns.ip_batch(["addr add 192.0.2.1/24 dev vm0"], host.space)
    netns.sysctl(host.space, {"net.ipv4.ip_forward": 1})
    guest.start()
    addresses = [f"192.0.2.{n}" for n in range(2, 8)]
    netns.ip_batch([f"addr add {a}/24 dev eth0" for a in addresses], guest.space)
    eventually(lambda: pings(host, addresses[0]), 10, 0.05, "there is a way")
    macs = [daemon.ports()[tap]["mac"] for daemon, tap in ((host, "vm0"), (guest, "eth0"))]

    with netns.open_socket(guest.space, socket.AF_PACKET, socket.SOCK_RAW, 0x0300) as sock:
        sock.bind(("eth0", 0x0800))
        sock.settimeout(10)

        def sent(address, octets, more):
            """Send it; returns its packet."""
            packet = IP(src=addresses[0], dst=address) / UDP(dport=9) / os.urandom(octets)
            packet = bytes(Ether(dst=macs[0], src=macs[1]) / packet)
            sock.send(packet + bytes(more))
            return packet[14:]

        def had(address):
            """What the router sends on to there."""
            while True:
                frame = sock.recv(65536)
                packet = Ether(frame)[IP]
                if (packet.dst, packet.ttl) == (address, 63):
                    return frame[14:]

        for address, octets, more in zip(
            addresses[1:], (30, 1400, 1400, 1400), (4000, 4000, 1000, 20)
        ):
            for _ in range(2):  # the first waits
                packet = sent(address, octets, more)
                assert had(address)[20:] == packet[20:], (octets, more)

        netns.ip_batch(["link set vm0 mtu 800"], host.space)
        eventually(lambda: host.ports()["vm0"]["mtu"] == 800, 5, 0.01, "MTU in force")
        packet = sent(addresses[1], 1400, 4000)
        assert b"".join(had(addresses[1])[20:] for _ in range(2)) == packet[20:]
