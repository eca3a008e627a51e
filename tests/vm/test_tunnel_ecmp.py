# SPDX-License-Identifier: BSD-3-Clause
"""ECMP and tunnels, with a Linux kernel as the far end: flows spread over two tunnels by the hash of the
inner packets; a tunnel over two links takes one of them. Packets of a flow stay in order."""

import os
import socket
from collections import Counter

import pytest

from lib import netns
from lib.wait import eventually
from test_ecmp import spread
from test_tunnel import HOST, NET, echo, far_end, is_ours
from test_tunnel import addresses as far_addresses
from wire import token_of

PORT, FLOWS, ROUNDS = 2000, 60, 12
OWN, REMOTE = "203.0.113.1", "203.0.113.{}"  # ends of tunnels that are on no link
SO_RCVBUFFORCE = 33


@pytest.fixture(scope="module")
def dut(on_veths):
    """Return a router whose ports wan0 and alt0 have one Linux kernel at their far ends."""
    far, wan, alt = on_veths.far, on_veths.wires["wan"], on_veths.wires["alt"]
    on_veths.ready()
    far_end(on_veths)
    netns.ip_batch([f"addr add {alt.peer4}/26 dev alt"], far)
    yield on_veths
    netns.ip_batch([f"addr del {alt.peer4}/26 dev alt", *far_addresses("del", wan)], far)
    netns.sysctl(far, {"net.ipv6.conf.wan.disable_ipv6": 1})
    on_veths.ready()


@pytest.fixture(autouse=True)
def one_cpu():
    """Let this thread send from one CPU. A veth queues frames on the CPU that sends them, so frames from
    two CPUs arrive in another order."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    yield
    os.sched_setaffinity(0, cpus)


@pytest.fixture
def names(dut):
    """Return a list for the names of tunnels, which are deleted on both sides after the test."""
    made = []
    yield made
    for where in (dut.ctl, dut.far):
        for name in made:
            netns.command(["ip", "-n", where, "link", "del", name], check=False)
    gone = lambda: not {r["name"] for r in dut.control.ask("interfaces")} & set(made)  # noqa: E731
    eventually(gone, 5, 0.01, "no tunnel")


def tunnel_make(dut, names, name, ours, theirs):
    """Make a tunnel of GRE between two addresses on both sides, for both families."""
    names.append(name)
    for where, (local, remote) in ((dut.ctl, (ours, theirs)), (dut.far, (theirs, ours))):
        netns.ip_batch([f"link add {name} type gre local {local} remote {remote}"], where)
        netns.sysctl(where, {f"net.ipv6.conf.{name}.disable_ipv6": 0, f"net.ipv4.conf.{name}.rp_filter": 0})
        netns.ip_batch([f"link set {name} up"], where)
    is_ours(dut, name)


def frames_of_flows(lan, dst):
    """Return (frames in the order to send, tokens of each flow in that order)."""
    ports = [(1024 + 7 * n, PORT) for n in range(FLOWS)]
    frames = [frame for _ in range(ROUNDS) for frame in lan.flow_frames(dst, ports)]
    return frames, [[token_of(frame) for frame in frames[n::FLOWS]] for n in range(FLOWS)]


def take_one_path_in_order(outs, flows):
    """Check that all packets of a flow left by one wire, in their order."""
    place = {}
    for wire in outs:
        for n, data in enumerate(wire.got()):
            if token_of(data):
                place[token_of(data)] = (wire.name, n)
    for tokens in flows:
        left = [place[t] for t in tokens]
        assert len({name for name, _ in left}) == 1 and left == sorted(left), left


@pytest.mark.parametrize("family", [4, 6])
def test_flows_spread_over_two_tunnels_and_stay_in_order(dut, names, family):
    """A route leads over two tunnels, each over a link of its own. The far end takes the packets of
    both, and a program there gets the packets of a flow in their order."""
    lan, outs = dut.wires["lan"], [dut.wires["wan"], dut.wires["alt"]]
    for name, wire in zip(("t0", "t1"), outs):
        tunnel_make(dut, names, name, wire.ip4, wire.peer4)
    if family == 4:
        dut.ip(f"route add {NET[4]} nexthop dev t0 nexthop dev t1")
    else:  # the kernel wants gateways
        dut.ip(*(f"-6 addr add 2001:db8:9{n}::1/64 dev t{n} nodad" for n in (0, 1)))
        dut.ip(f"-6 route add {NET[6]} nexthop via 2001:db8:90::2 dev t0 nexthop via 2001:db8:91::2 dev t1")
    hops = lambda: {h["dev"] for h in (dut.route_row(NET[family]) or {"nexthops": []})["nexthops"]}  # noqa: E731
    eventually(lambda: hops() == {"t0", "t1"}, 5, 0.01, "two tunnels")
    with netns.open_socket(dut.far, socket.AF_INET, socket.SOCK_DGRAM) as program:
        program.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        program.bind((HOST[4], PORT))
        program.settimeout(20)
        frames, flows = frames_of_flows(lan, HOST[family])
        before = dut.counter("punt", "kernel_route")
        count = Counter(spread(dut, lan, outs, frames).values())
        assert abs(count["wan"] / len(frames) - 0.5) < 0.2, count
        take_one_path_in_order(outs, flows)
        assert dut.counter("punt", "kernel_route") == before
        if family == 6:  # these frames have no UDP checksum, and Linux drops them over IPv6
            return
        got = [program.recv(64) for _ in frames]
    number = {data: n for n, data in enumerate(got)}
    for tokens in flows:
        numbers = [number[t] for t in tokens]
        assert numbers == sorted(numbers)


def test_tunnels_over_an_ecmp_underlay_take_one_link_each(dut, names):
    """The outer packets of a tunnel have one source and one destination, so one of two links has all
    of them, as in Linux by default. Several tunnels use both links. When a link is lost, its tunnels
    take the other, and the far end answers there."""
    lan, wan, alt = (dut.wires[name] for name in ("lan", "wan", "alt"))
    ends = [REMOTE.format(n) for n in range(66, 78)]
    over = "nexthop via {} dev {} nexthop via {} dev {}"
    dut.ip(f"addr add {OWN}/32 dev lo")
    netns.ip_batch([f"addr add {end}/32 dev lo" for end in ends], dut.far)
    dut.ip("route add 203.0.113.64/26 " + over.format(wan.peer4, wan.tap, alt.peer4, alt.tap))
    netns.ip_batch([f"route add {OWN}/32 " + over.format(wan.ip4, "wan", alt.ip4, "alt")], dut.far)
    try:
        for n, end in enumerate(ends):
            tunnel_make(dut, names, f"t{n}", OWN, end)
        netns.ip_batch([f"route add {lan.host4} dev t0"], dut.far)
        link = {}
        for n in range(len(ends)):
            dut.ip(f"route replace {NET[4]} dev t{n}")
            by = lambda n=n: (dut.route_row(NET[4]) or {"nexthops": [{}]})["nexthops"][0].get("dev") == f"t{n}"  # noqa: E731
            eventually(by, 5, 0.01, f"route by t{n}")
            frames, flows = frames_of_flows(lan, HOST[4])
            found = set(spread(dut, lan, [wan, alt], frames).values())
            assert len(found) == 1, f"t{n}: {found}"
            take_one_path_in_order([wan, alt], flows)
            (link[n],) = found
        assert set(link.values()) == {"wan", "alt"}, link
        n = next(n for n, name in link.items() if name == "wan")
        dut.ip(f"route replace {NET[4]} dev t{n}")
        netns.link_set(dut.far, "wan", False)
        eventually(lambda: lan.srp1(echo(lan, 4), 1), 10, 0.05, "answers by the other link")
        assert set(spread(dut, lan, [wan, alt], frames_of_flows(lan, HOST[4])[0]).values()) == {"alt"}
    finally:
        netns.link_set(dut.far, "wan", True)
        # The kernel deletes the IPv6 addresses of a link that goes down.
        netns.command(["ip", "-n", dut.far, "-6", "addr", "replace", f"{wan.peer6}/64", "dev", "wan", "nodad"])
        netns.command(["ip", "-n", dut.far, "route", "del", f"{OWN}/32"], check=False)
        netns.ip_batch([f"addr del {end}/32 dev lo" for end in ends], dut.far)
        dut.ip(f"addr del {OWN}/32 dev lo", "route del 203.0.113.64/26")
        dut.ready()
