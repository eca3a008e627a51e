# SPDX-License-Identifier: BSD-3-Clause
"""vhost-user with a virtual machine: two NICs of this guest are ports of a dataplane on the
host (run.py: hosted()). The guest's kernel drives them with all features that virtio offers."""

import json
import re
import socket
import threading
import urllib.request

import pytest

from lib import netns
from lib.links import far_mac
from lib.probe import ping
from lib.wait import eventually

pytestmark = pytest.mark.guest
# Namespace: number of its NIC, its address, the port's address.
SIDES = {"left": (0, "192.0.2.2", "192.0.2.1"), "right": (1, "192.0.2.66", "192.0.2.65")}
OCTETS = 1 << 20  # by TCP


@pytest.fixture(scope="module")
def sides():
    """Make a host on each NIC, with the port as its router."""
    netns.command(["modprobe", "virtio_net"])
    rows = json.loads(netns.command(["ip", "-j", "link"]))
    names = {row.get("address"): row["ifname"] for row in rows}
    for side, (n, address, router) in SIDES.items():
        netns.command(["ip", "netns", "add", side])
        netns.ip_batch([f"link set {names[far_mac(n)]} name nic netns {side}"])
        netns.ip_batch(["link set lo up", f"addr add {address}/26 dev nic", "link set nic up",
                        f"route add default via {router}"], side)  # fmt: skip
    yield
    for side in SIDES:
        netns.delete(side)


def forwarded():
    """Return the number of IPv4 packets that the host's forwarders have forwarded. The host's
    metrics page has it, and a NIC of the guest reaches the page."""
    with netns.entered("left"):
        with urllib.request.urlopen(f"http://{SIDES['left'][2]}:9620/metrics", timeout=20) as page:
            text = page.read().decode()
    row = r'^fpmdp_forwarded_packets_total\{family="ipv4",lcore="fwd-\d+"\} (\d+)$'
    return sum(map(int, re.findall(row, text, re.M)))


def carried(octets):
    """Send this number of octets by TCP from left to right. Return the number received."""
    there = (SIDES["right"][1], 7000)
    kind = (socket.AF_INET, socket.SOCK_STREAM)
    with netns.open_socket("right", *kind) as listener, netns.open_socket("left", *kind) as out:
        listener.bind(there)
        listener.listen()
        out.settimeout(60)
        out.connect(there)
        connection, _ = listener.accept()

        def send():
            out.sendall(bytes(octets))
            out.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        came = 0
        with connection:
            connection.settimeout(60)
            while data := connection.recv(65536):
                came += len(data)
        sender.join()
    return came


def test_a_guests_kernel_is_routed_by_vhost_user_ports(sides):
    """Echo requests and TCP pass from port to port. The guest's kernel leaves the TCP checksums
    to the device. TCP with the host itself works, too."""
    there = SIDES["right"][1]
    once = ["ping", "-c", "1", "-W", "1", there]
    eventually(lambda: netns.run("left", once), 10, 0.1, "neighbors are known")
    before = forwarded()

    assert ping("left", there, 20)[0] == 20

    assert forwarded() - before >= 40
    assert "tx-checksumming: on" in netns.run("left", ["ethtool", "-k", "nic"])
    before = forwarded()
    assert carried(OCTETS) == OCTETS
    assert forwarded() - before > OCTETS / 1500
