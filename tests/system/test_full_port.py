# SPDX-License-Identifier: BSD-3-Clause
"""A port that is slower than the transit by it: the packets of this router, BGP with a hold time of
3 s and BFD, are not lost among the transit that the port does not take (RFC 1812, 5.3.8)."""

import bisect
import os
import socket
import statistics
import struct
import time

import pytest

from bfd_bed import bed
from lib import netns, procs
from lib.wait import eventually
from wire import token

SLOW, HOST = "198.18.0.0/15", "198.18.0.9"
TBF = "root tbf rate 50mbit burst 32kb limit 30kb"
FRAME_BYTES, FRAMES_A_SECOND = 1400, 20000
RING, BESIDE = 2048, 512  # frames in the ring of net_af_packet; those in the qdisc, and some more
OWN = 350  # packets of this router, one each PAUSE_S: in all longer than the hold time
PAUSE_S = 0.01


def slow_down(router):
    """Put the port of wan0 on a macvlan, whose queueing discipline is that of its link. If it is full,
    the port keeps the frame in its ring and tries again, as with a NIC that is full."""
    lines = ["link add m-wan link p-wan type macvlan mode passthru", "link set m-wan up"]
    netns.ip_batch(lines, router.dp)
    netns.run(router.dp, ["tc", "qdisc", "add", "dev", "p-wan", *TBF.split()])
    router.edit_config("iface=p-wan", "iface=m-wan")


@pytest.fixture(scope="module")
def slow():
    """A router whose port wan0 is slow. BGP and BFD with the peer are up."""
    if not netns.can_run(f"ip link set lo up && tc qdisc add dev lo {TBF}"):
        pytest.skip("the kernel has no qdisc tbf")
    if not netns.can_have("macvlan"):
        pytest.skip("the kernel has no macvlan")
    with bed("full", daemons=["bgpd"], before=slow_down) as both:
        wan = both.router.wires["wan"]
        for frr, own, other, dev, peer in (
            (both.ours, 65001, 65002, "wan0", wan.peer4),
            (both.theirs, 65002, 65001, "wan", wan.ip4),
        ):
            # A side without a CPU for a second keeps its session.
            frr.configure("bfd", f"peer {peer} interface {dev}", "detect-multiplier 40")
            frr.configure(
                f"router bgp {own}",
                "no bgp ebgp-requires-policy",
                "timers bgp 1 3",
                f"neighbor {peer} remote-as {other}",
                f"neighbor {peer} timers connect 1",
            )
        both.router.ip(f"route add {SLOW} via {wan.peer4} dev wan0")
        eventually(lambda: both.router.route_row(SLOW), 10, what="the route")
        both.up()
        eventually(lambda: both.ours.bgp_state(wan.peer4) == "Established", 40, what="BGP is up")
        yield both


@pytest.fixture
def flood(slow):
    """Transit to the slow port, four times its rate."""
    router, lan = slow.router, slow.router.wires["lan"]
    frame = bytes(lan.probe(HOST, size=FRAME_BYTES))
    path = router.dir + "/frames"
    with open(path, "wb") as file:
        file.write((struct.pack("!H", len(frame)) + frame) * 64)
    program = os.path.join(os.path.dirname(router.daemon.ctl), "tests", "flood")
    argv = [program, "lan", path, "60", str(1 << 40), str(FRAMES_A_SECOND)]
    flood = procs.start(argv, router.dir, router.dir + "/flood", router.far)
    yield flood
    flood.terminate()
    flood.wait(10)


def ends(both):
    """Return how often sessions ended: BGP at each side, BFD at ours."""
    wan = both.router.wires["wan"]
    rows = [
        frr.json(f"show bgp neighbors {peer} json")[peer]
        for frr, peer in ((both.ours, wan.peer4), (both.theirs, wan.ip4))
    ]
    return [row["connectionsDropped"] for row in rows], both.row()["downs"]


def test_no_packet_of_the_router_is_lost_by_a_port_that_is_full_of_transit(slow, flood):
    """Each waits only for the frames that are in the device's ring already."""
    router, wan, mark = slow.router, slow.router.wires["wan"], token()
    before, was = router.counters(), ends(slow)
    eventually(lambda: router.drops(before).get("tx_full"), 20, what="the port is full")
    times = []
    with netns.open_socket(router.ctl, socket.AF_INET, socket.SOCK_DGRAM) as own:
        for number in range(OWN):
            times.append(time.monotonic())
            own.sendto(mark + struct.pack("!I", number), (wan.peer4, 9))
            time.sleep(PAUSE_S)
    wan.expect_many(lambda data: mark in data, OWN, 20)
    assert ends(slow) == was
    assert router.drops(before)["tx_full"] > 0 and flood.poll() is None
    left = wan.timed()
    when = [at for at, _ in left]
    waited = []
    for place, (_, data) in enumerate(left):
        if (at := data.find(mark)) >= 0:
            (number,) = struct.unpack_from("!I", data, at + len(mark))
            assert number == len(waited), f"packet {number} in the place of {len(waited)}"
            waited.append(place - bisect.bisect(when, times[number]))
    assert RING / 2 < statistics.median(waited) <= RING + BESIDE, sorted(waited)
