# SPDX-License-Identifier: BSD-3-Clause
"""Tunnels of GRE and IP in IP while the daemon ends and returns without zebra, under traffic: each packet
gets its own outer headers, or none. tests/system/test_encap_restart does so with SRv6 and VXLAN, for which
the kernel of most machines suffices."""

import socket

import pytest
from scapy.layers.inet import IP

from back import HOST, NET, come_back
from lib import netns
from lib.wait import eventually
from router import Router, running
from test_restart import differences
from test_tunnel import is_ours

MODULES = ("ip_gre", "ipip")
REMOTE = "203.0.113.66"
# Packets to HOST leave in GRE with a key, packets to FAR in an IP packet, packets to PLAIN as they are.
FAR, FAR_NET = "198.18.1.9", "198.18.1.0/24"
PLAIN, PLAIN_NET = "198.18.2.9", "198.18.2.0/24"
TUNNELS = {"t0": ("type gre key 7", NET), "t1": ("type ipip", FAR_NET)}


@pytest.fixture
def dut():
    """A router under the supervisor, with two tunnels. zebra announces the routes by them."""
    netns.command(["modprobe", "-a", *MODULES])
    with running(Router(name="kept", supervised=True)) as router:
        router.ready()
        wan = router.wires["wan"]
        router.route(f"{REMOTE}/32", wan.peer4, wan)
        router.route(PLAIN_NET, wan.peer4, wan)
        for name, (words, net) in TUNNELS.items():
            netns.ip_batch(
                [f"link add {name} {words} local {wan.ip4} remote {REMOTE}", f"link set {name} up"], router.ctl
            )
            is_ours(router, name)
            with netns.entered(router.ctl):
                oif = socket.if_nametoindex(name)
            router.route(net, nhid=router.zebra.hop(oif=oif))
        yield router


def shape(frame):
    """Return the kind of a frame that left by wan, which is that of its packet in `dress`: 0 GRE, 1 without
    outer headers, 2 IP in IP. Return None for any other frame."""
    ip = frame[IP]
    if ip.dst == PLAIN:
        return 1
    if ip.dst != REMOTE:
        return None
    inside = bytes(ip.payload)
    if ip.proto == 47 and inside[:8] == bytes.fromhex("2000080000000007"):
        return 0 if IP(inside[8:]).dst == HOST else None
    return 2 if ip.proto == 4 and IP(inside).dst == FAR else None


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_outer_headers_are_right_before_zebra_is_back(dut, how):
    """After kill -9 or `fpmctl restart`, three times under traffic, all outer headers are right before zebra
    is back. The next daemon takes the routes from the checkpoint, and the tunnels from the kernel."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dress = (lambda p: p, lambda _: lan.probe(PLAIN, size=100), lambda _: lan.probe(FAR, size=100))
    eventually(lambda: dut.fpm()["checkpoint"]["routes"] >= 4, 5, what="the checkpoint is whole")
    dut.zebra.close()
    for _ in range(3):
        was = dut.daemon.pid()
        with dut.stream(lan, HOST, rate=500, dress=dress) as stream:
            if how == "kill":
                dut.daemon.crash()
            else:
                assert dut.fpmctl("restart").returncode == 0
            come_back(dut, was)
            for name in TUNNELS:
                is_ours(dut, name)
            back = stream.sent
            eventually(lambda b=back, s=stream: s.sent > b + 300, 10)
        stream.is_right(wan, shape, since=back + 1)  # each packet leaves after the return
        found = dut.fpm()["checkpoint"]
        assert (found["restore_lost"], found["discarded"], differences(dut)) == (0, 0, 0)
        for wire in (lan, wan):
            wire.clear()
