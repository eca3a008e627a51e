# SPDX-License-Identifier: BSD-3-Clause
"""vhost-user: a port whose device is the memory of a virtual machine. Another dataplane plays the
machine; its port is the guest's end of the same socket.

    host: vm0, net_vhost == vhost.sock == net_virtio_user, eth0 :guest
"""

import json
import os
import signal
import socket
import subprocess

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from lib import netns
from lib.dataplane import Dataplane
from lib.wait import eventually

PORTS = {
    "host": 'tap: vm0, device: "net_vhost,iface={dir}/vhost.sock"',
    "guest": 'tap: eth0, device: "net_virtio_user,path={dir}/vhost.sock,'
    'mac=02:00:00:00:00:77"',
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
def pair(tmp_path, request):
    """Make (host, guest); the guest does not run yet. The side that a test names, or both, has
    long frames."""
    both, long = [], getattr(request, "param", None)
    try:
        for name, port in PORTS.items():
            port += ", mtu: 9000" if long in (name, "both") else ""
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
    """Return True if the TAP has carrier."""
    text = netns.command(["ip", "-n", daemon.space, "-j", "link", "show", tap])
    return "LOWER_UP" in json.loads(text)[0]["flags"]


def pings(daemon, address):
    """Return True if a ping is answered."""
    return " 1 received" in netns.run(
        daemon.space, ["ping", "-c", "1", "-W", "1", address], check=False
    )


def test_a_guest_comes_goes_and_comes_again(pair):
    """The port exists before its guest. The TAP has carrier while the guest runs."""
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


class Between:
    """A router, and a neighbor on its only port. The neighbor sends frames and reads the frames
    that the router sends."""

    def __init__(self, router, tap, neighbor, its_tap):
        self.neighbor, self.dev = neighbor, its_tap
        self.addresses = [f"192.0.2.{n}" for n in range(2, 8)]
        netns.ip_batch([f"addr add 192.0.2.1/24 dev {tap}"], router.space)
        netns.sysctl(router.space, {"net.ipv4.ip_forward": 1})
        netns.ip_batch([f"addr add {a}/24 dev {its_tap}" for a in self.addresses], neighbor.space)
        eventually(lambda: pings(router, self.addresses[0]), 10, 0.05, "the host answers")
        # The kernel answers also before the daemon has read its address and its sysctl.
        forwards = lambda: router.ports()[tap]["forwarding"] in ("on", "ipv4")  # noqa: E731
        route = lambda: router.show("routes", "192.0.2.0/24", "exact")  # noqa: E731
        eventually(lambda: forwards() and route(), 10, 0.05, "the daemon has what the kernel has")
        self.macs = [d.ports()[t]["mac"] for d, t in ((router, tap), (neighbor, its_tap))]

    def __enter__(self):
        self.sock = netns.open_socket(
            self.neighbor.space, socket.AF_PACKET, socket.SOCK_RAW, 0x0300
        )
        self.sock.bind((self.dev, 0x0800))
        self.sock.settimeout(10)
        return self

    def __exit__(self, *_):
        self.sock.close()

    def sent(self, address, octets, more):
        """Send a packet with `more` octets behind it. Return the packet."""
        packet = IP(src=self.addresses[0], dst=address) / UDP(dport=9) / os.urandom(octets)
        packet = bytes(Ether(dst=self.macs[0], src=self.macs[1]) / packet)
        self.sock.send(packet + bytes(more))
        return packet[14:]

    def had(self, address):
        """Return the next packet, with its padding, that the router forwards to the address."""
        while True:
            frame = self.sock.recv(65536)
            packet = Ether(frame)[IP]
            if (packet.dst, packet.ttl) == (address, 63):
                return frame[14:]


LONG = 9000
OVER = 28  # the headers of IPv4 and UDP


@pytest.mark.parametrize("pair", ["both"], indirect=True)
@pytest.mark.parametrize("by", ["net_vhost", "net_virtio_user"])
def test_packets_of_9000_octets_are_forwarded(pair, by):
    """A router without a NIC forwards packets of 9000 octets by either end of the socket. With an
    MTU of 8000 at its egress it fragments them."""
    host, guest = pair
    guest.start()
    ends = (host, "vm0", guest, "eth0") if by == "net_vhost" else (guest, "eth0", host, "vm0")
    assert ends[0].ports()[ends[1]]["driver"].startswith(by.replace("_user", ""))
    with Between(*ends) as between:
        there = between.addresses[1]
        for octets in (LONG - OVER - 1, LONG - OVER):
            packet = between.sent(there, octets, 0)
            assert between.had(there)[20:] == packet[20:], octets

        router, tap = ends[:2]
        netns.ip_batch([f"link set {tap} mtu 8000"], router.space)
        eventually(lambda: router.ports()[tap]["mtu"] == 8000, 5, 0.01, "MTU in force")
        packet = between.sent(there, LONG - OVER, 0)
        parts = [between.had(there) for _ in range(2)]
        assert b"".join(part[20:] for part in parts) == packet[20:]
        assert max(len(part) for part in parts) <= 8000


@pytest.mark.parametrize("pair", ["host"], indirect=True)
def test_what_is_behind_a_packet_goes_no_further(pair):
    """A long frame may be in several buffers (net_virtio, net_vmxnet3). The router sends only
    the buffers that the packet needs. This holds if the octets behind the packet fill more or
    less than the last buffer, and if the packet waits for its neighbor or is fragmented."""
    host, router = pair
    router.start()
    with Between(router, "eth0", host, "vm0") as between:
        there = between.addresses[1:]
        for address, octets, more in zip(there, (30, 1400, 1400, 1400), (4000, 4000, 1000, 20)):
            for _ in range(2):  # the first waits
                packet = between.sent(address, octets, more)
                assert between.had(address)[20:] == packet[20:], (octets, more)

        netns.ip_batch(["link set eth0 mtu 800"], router.space)
        eventually(lambda: router.ports()["eth0"]["mtu"] == 800, 5, 0.01, "MTU in force")
        packet = between.sent(there[0], 1400, 4000)
        assert b"".join(between.had(there[0])[20:] for _ in range(2)) == packet[20:]


@pytest.mark.parametrize("pair", ["guest"], indirect=True)
def test_a_guests_frame_has_one_buffer_at_most(pair):
    """A guest names the length of its frames and could take all buffers. So its frame gets one
    buffer at most."""
    router, guest = pair
    guest.start()
    with Between(router, "vm0", guest, "eth0") as between:
        there = between.addresses[1]
        between.sent(there, 1400, 4000)
        between.sent(there, 4000, 0)
        packet = between.sent(there, 1400, 0)

        assert between.had(there)[20:] == packet[20:]


@pytest.mark.parametrize("owner", [0, 65534], ids=["ours", "given to another user"])
def test_the_socket_of_a_killed_daemon_is_replaced(pair, tmp_path, owner):
    """SIGKILL leaves the socket. The next daemon removes it before DPDK reports an error about it, also if an
    operator gave it to another user, such as that of QEMU."""
    host, guest = pair
    os.chown(tmp_path / "vhost.sock", owner, owner)
    host.stop(signal.SIGKILL)
    host.start()
    guest.start()
    eventually(lambda: carrier(host, "vm0"), 10)
    assert "already in use" not in host.log(400)


@pytest.mark.parametrize("owner", [0, 65534], ids=["ours", "given to another user"])
def test_a_socket_of_another_daemon_is_refused(pair, tmp_path, owner):
    """A second daemon with other names refuses the socket, and the first daemon keeps its guest. In an
    earlier version the second daemon took the socket's path from the first one."""
    host, guest = pair
    guest.start()
    eventually(lambda: carrier(host, "vm0"), 10)
    text = (tmp_path / "host.yaml").read_text()
    text = text.replace("tap: vm0", "tap: vm1").replace("/host.sock", "/second.sock")
    os.chown(tmp_path / "vhost.sock", owner, owner)
    text += "fpm: {listen: 127.0.0.1:2621}\nmetrics: off\n"
    (tmp_path / "second.yaml").write_text(text)

    argv = ["timeout", "20", host.program, "-c", str(tmp_path / "second.yaml")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert f"a process listens on {tmp_path}/vhost.sock" in done.stderr
    assert carrier(host, "vm0") and carrier(guest, "eth0")


def test_a_path_without_room_for_a_socket_is_refused_in_words(dut, tmp_path):
    """`port add` names the fault of a socket's path, and changes nothing. A plain file stays: in an
    earlier version the port listened nowhere, and its end removed the file."""
    (tmp_path / "plain").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    no_socket = "is no socket; expected a path where nothing is, or a socket"
    wrong = {
        "": "'' is no path of a socket; expected 1 to 107 characters",
        f"{tmp_path}/{'x' * 107}": "is no path of a socket; expected 1 to 107 characters",
        f"{tmp_path}/plain": no_socket,
        f"{tmp_path}/folder": no_socket,
        f"{tmp_path}/link": no_socket,
        f"{tmp_path}/none/s": "cannot be made: No such file or directory",
        f"{tmp_path}/plain/s": "cannot be made: Not a directory",
    }
    devices = ("net_vhost,iface={}", "net_memif7,role=server,socket-abstract=no,socket={}")

    for path, words in wrong.items():
        for device in devices:
            done = dut.fpmctl("port", "add", "sock0", "device", device.format(path))
            assert done.returncode == 2 and words in done.stderr, (device, done.stderr)
    assert (tmp_path / "plain").read_text() == "precious"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["folder", "link", "plain"]
    assert "sock0" not in {row["ifname"] for row in dut.links()}
