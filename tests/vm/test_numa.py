# SPDX-License-Identifier: BSD-3-Clause
"""A machine of two NUMA nodes with a forwarder on each. Each node has a copy of the FIB in its
memory, and each forwarder reads the copy of its node."""

import os
import re

import pytest

from lib.wait import eventually
from router import Router, running

NODES = {0: 0, 1: 1}  # CPU -> node, as run.py starts QEMU
NET, HOST = "198.51.100.0/24", "198.51.100.9"
MANY = [f"{20 + n % 64}.{n >> 6}.0.0/{24 + n % 3}" for n in range(4000)]


@pytest.fixture(scope="module")
def numa():
    """Run a router with a forwarder and a copy of the FIB on each node."""
    os.environ["FPM_DATAPLANE_TEST_HOOKS"] = "1"
    cores = ("\nmemory:", f"\ncores: {list(NODES)}\nmemory:")
    copies_each = ("\nmemory:", "\nmemory:\n  fib-copies: per-node")
    with running(Router(name="numa"), cores, copies_each) as router:
        yield router


@pytest.fixture
def router(numa):
    """Return the router in its standard state."""
    numa.ready()
    return numa


def copies(router):
    """Return the rows of `show memory` about the copies, by node."""
    (row,) = router.control.ask("memory")
    return {copy["node"]: copy for copy in row["fib_copies"]}


def serve_by(router, wire, cpu):
    """Give both queues of a port to one CPU."""
    done = router.fpmctl("port", "set", wire.tap, "cores", f"{cpu},{cpu}")
    assert done.returncode == 0, done.stderr


def test_each_node_has_the_whole_table_in_memory_of_its_own(router):
    """The kernel's account of the pages (proc(5), numa_maps) shows each copy on its own
    node."""
    hop = router.zebra.hop(router.wires["wan"].peer4, router.wires["wan"])
    for prefix in MANY:
        router.zebra.add(prefix, hop)
    router.in_force(MANY[-1])

    rows = eventually(
        lambda: (c := copies(router))[1]["fib4"]["routes"] > len(MANY) and c, 10, 0.1
    )

    assert set(rows) == set(NODES.values()) and all(row["placed"] for row in rows.values())
    assert rows[0]["fib4"]["routes"] == rows[1]["fib4"]["routes"]
    with open(f"/proc/{router.daemon.pid()}/numa_maps", encoding="ascii") as file:
        maps = file.read().splitlines()
    for node in rows:
        # 7f5a00000000 prefer:1 anon=512 dirty=512 N1=512 kernelpagesize_kB=4
        mine = [line for line in maps if f" prefer:{node} " in line]
        pages = {n: sum(int(x) for line in mine for x in re.findall(rf" N{n}=(\d+)", line))
                 for n in rows}  # fmt: skip
        assert pages[node] * 4096 > 1 << 17 and pages[1 - node] == 0, (node, pages, mine)


def test_a_forwarder_reads_the_copy_of_its_node_wherever_a_queue_moves(router):
    """A route is removed from the copy of the second node alone. The forwarder there has no
    route, and the forwarder of the first node has it. The same holds for a queue that moves
    between them."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    router.route(NET, via=wan.peer4, wire=wan)
    for cpu in NODES:
        serve_by(router, lan, cpu)
        assert router.forwarded(lan, lan.probe(HOST), wan)

    router.control.request({"break": "table", "prefix": NET})
    router.route_row(NET)  # answered after the commit

    for cpu in (0, 1, 0, 1):
        serve_by(router, lan, cpu)
        if NODES[cpu] == 0:
            assert router.forwarded(lan, lan.probe(HOST), wan)
        else:
            assert router.not_forwarded(lan, lan.probe(HOST)) == {"no_route": 1}
    found = router.control.ask("audit", repair=True)
    assert found[-1]["differences"] > 0 and found[0]["prefix"] == NET
    router.route_row(NET)
    assert router.forwarded(lan, lan.probe(HOST), wan)


def test_both_forward_while_routes_change(router):
    """A stream passes by both forwarders while a route changes 40 times. No packet is lost."""
    lan, wan, alt = (router.wires[name] for name in ("lan", "wan", "alt"))
    one, other = router.zebra.hop(wan.peer4, wan), router.zebra.hop(alt.peer4, alt)
    router.route(NET, nhid=one)
    done = router.fpmctl("port", "set", lan.tap, "cores", "0,1")
    assert done.returncode == 0, done.stderr

    with router.stream(lan, HOST, rate=400, flows=32) as stream:
        for n in range(40):
            router.zebra.together(
                router.zebra.drop_message(NET),
                router.zebra.add_message(NET, (other, one)[n % 2]),
            )
            sent = stream.sent
            eventually(lambda s=sent: stream.sent > s, 5, 0.005)

    eventually(lambda: stream.lost(wan, alt) == [], 10, 0.1, "all arrive")
    assert {row["cpu"] for row in router.daemon.show("cycles")} == set(NODES)
