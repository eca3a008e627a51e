# SPDX-License-Identifier: BSD-3-Clause
"""lib/flows.py: each packet of a flow is seen or lost, with its order and its TTL. The plan of a lab with
several boxes gives each box the namespaces and the ports that r1 has."""

import os
import socket
import time
from types import SimpleNamespace

import pytest

from lab.lab import SCENARIOS
from lab.plan import Plan
from lib import flows, netns, probe
from lib.wait import eventually


@pytest.fixture
def link():
    """A link with a host at both ends, both families."""
    here, there = (f"fdp-{end}-{os.getpid()}f" for end in ("here", "there"))
    try:
        for name in (here, there):
            netns.command(["ip", "netns", "add", name])
            netns.sysctl(name, {"net.ipv6.conf.default.accept_dad": 0})
        netns.ip_batch([f"link add v type veth peer name v netns {there}"], here)
        for last, name in enumerate((here, there), 1):
            lines = [f"addr add 198.18.0.{last}/24 dev v", f"addr add 2001:db8::{last}/64 dev v nodad"]
            netns.ip_batch([*lines, "link set v up"], name)
        for address in ("198.18.0.2", "2001:db8::2"):
            eventually(lambda a=address: probe.ping(here, a, 1, 1)[0], 10, 0.01, f"{address} answers")
        yield here, there
    finally:
        for name in (here, there):
            netns.delete(name)


@pytest.mark.parametrize("address", ["198.18.0.2", "2001:db8::2"])
def test_packets_are_counted_by_flow_in_order_with_their_ttl(link, address):
    here, there = link
    with flows.Sink(there, address) as sink, flows.Source(here, address, 40) as source:
        source.round()
        source.round(2)

        assert flows.settle(source, [sink]) == 0
        assert {flow: [n for n, _ in rows] for flow, rows in sink.came.items()} == dict.fromkeys(range(40), [0, 1, 2])
        assert flows.owners({"one": sink}) == dict.fromkeys(range(40), "one")
        assert flows.reordered([sink]) == 0 and flows.ttls([sink]) == {64: 120}
        sink.forget()
        assert sink.take() == 0


def test_a_frame_is_a_packet_of_its_flow(link):
    """A host accepts the frame that a box is asked about, as the packet of that flow."""
    here, there = link
    mac = netns.command(["ip", "-n", there, "-br", "link", "show", "v"]).split()[2]
    with flows.Sink(there, "198.18.0.2") as sink, netns.open_socket(here, socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("v", 0))
        raw.send(bytes.fromhex(flows.frame(mac, "198.18.0.1", "198.18.0.2", 7)))

        eventually(sink.take, 10, 0.01, "the packet arrives")
        assert dict(sink.came) == {7: [(0, 64)]}


def test_lost_packets_are_named_and_timed(link):
    """Packets that are sent while the link is down are lost, and the other packets arrive."""
    here, there = link
    with flows.Sink(there, "198.18.0.2") as sink, flows.Source(here, "198.18.0.2", 10, first=100) as source:
        source.round()
        assert flows.settle(source, [sink]) == 0
        with flows.Stream(source, 500) as stream:
            stream.goes_on([sink], 0)
            netns.link_set(there, "v", False)
            dark = time.monotonic()
            eventually(lambda: len(source.sent) > 100, 10, 0.01, "packets are sent")
            time.sleep(0.1)
            netns.link_set(there, "v", True)
            light = time.monotonic()
            stream.goes_on([sink], 0)
        flows.settle(source, [sink])
        lost = source.lost([sink])

    assert lost and {flow for flow, _ in lost} <= set(range(100, 110))
    assert all(dark - 0.1 < source.sent[packet] for packet in lost)
    assert 0 < source.silence(lost) < light - dark + 5
    assert source.silence(set()) == 0


def test_a_packet_behind_a_later_one_is_found():
    one = SimpleNamespace(came={1: [(0, 64), (2, 64), (1, 64), (3, 64)], 2: [(5, 63), (6, 63)]})
    other = SimpleNamespace(came={1: [(4, 64)], 2: []})

    assert flows.reordered([one]) == 1
    assert flows.reordered([other]) == 0
    assert flows.ttls([one, other]) == {64: 5, 63: 2}


def test_a_flow_with_paths_of_two_lengths_is_found():
    one = SimpleNamespace(came={1: [(0, 64), (1, 63)], 2: [(0, 63), (1, 63)]})
    other = SimpleNamespace(came={3: [(0, 62), (1, 62), (2, 61)], 4: []})

    assert flows.divided([one, other]) == [1, 3]


def test_a_flow_with_two_receivers_has_both_names():
    one, two = (SimpleNamespace(came=dict.fromkeys(some, [(0, 64)]), take=int) for some in ([1, 2], [2, 3]))

    assert flows.owners({"b1": one, "b2": two}) == {1: "b1", 2: "b1+b2", 3: "b2"}


def test_each_box_has_the_namespaces_and_the_ports_of_a_router():
    """r1 and three more boxes each have ports with the names of the one fpm-dataplane.yaml, and a second
    namespace for their wires. Each box has a link to each other box."""
    plan = Plan(os.path.join(SCENARIOS, "cluster-vlb"))

    assert plan.boxes == ["r1", "r2", "r3", "r4"]
    for box in plan.boxes:
        assert {tap for tap, _, _ in plan.ports_of(box)} == {"ext0", "mesh0", "mesh1", "mesh2"}
        assert {box, f"{box}-dp"} <= set(plan.nodes)
        assert "link set port-mesh0 up" in plan.commands(f"{box}-dp")
        assert plan.commands(box) == ["link set lo up"]
    assert plan.ports == plan.ports_of("r1")
    links = {(box, far) for box in plan.boxes for _, far, _ in plan.ports_of(box)}
    assert {(a, b) for a in plan.boxes for b in plan.boxes if a != b} <= links


def test_a_lab_of_one_router_is_as_before():
    plan = Plan(os.path.join(SCENARIOS, "static"))

    assert plan.boxes == ["r1"] and plan.nodes[:2] == ["r1", "r1-dp"] and len(plan.nodes) == len(set(plan.nodes))


def test_the_command_line_sets_the_number_of_routes():
    """ROUTES= replaces the number in topology.toml. Without both the number is 100,000."""
    small, full = (Plan(os.path.join(SCENARIOS, name)) for name in ("cluster-vlb", "bgp-full-table"))

    assert (small.routes(None), full.routes(None)) == (500, 100000)
    assert small.routes(900000) == full.routes(900000) == 900000
