# SPDX-License-Identifier: BSD-3-Clause
"""The router sends sFlow version 5: samples of packets, counters of interfaces, dropped packets.
The tests decode the datagrams themselves, and have tshark, sfcapd and sfacctd decode them."""

import contextlib
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import api, netns
from lib.fpm_speaker import RTN_BLACKHOLE
from lib.haste import hasty
from lib.wait import eventually
from router import Router, running
from sflow_sink import COUNTERS, DISCARD, DISCARDED, FLOW, HOST, PORT, Settings, Sink, dissected
from watching import Watching, blocks, count_of
from wire import token, token_of

NET, HOST4 = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
HOLE = "203.0.113.0/24"
OTHER_PORT = 6344
LIMIT = 4000  # samples a second
# Values of sflow_drops.txt.
NET_UNREACHABLE, TTL_EXCEEDED, BLACKHOLE_ROUTE = 0, 257, 269


@pytest.fixture(scope="module")
def sampled(possible):
    """A router that samples each packet. Its waits are 20 times shorter."""
    router = Router(name="sfl", metrics="127.0.0.1:9620")
    router.settings = Settings(router)
    with hasty(20), running(router) as dut:
        yield dut


@pytest.fixture
def dut(sampled):
    """The router, with routes by wan and a blackhole, and the standard settings of these tests."""
    sampled.ready()
    wan = sampled.wires["wan"]
    sampled.route(NET, via=wan.peer4, wire=wan)
    sampled.route(NET6, via=wan.peer6, wire=wan)
    sampled.route(HOLE, rtm_type=RTN_BLACKHOLE)
    sampled.settings()
    return sampled


@pytest.fixture
def settings(dut):
    return dut.settings


@pytest.fixture
def sink(dut):
    with Sink(dut.ctl, port=PORT) as collector:
        yield collector


@pytest.fixture
def lan(dut):
    return dut.wires["lan"]


@pytest.fixture
def wan(dut):
    return dut.wires["wan"]


def sample_of(sink, probe, kind=FLOW):
    """Return the one sample of a probe."""
    (row,) = eventually(lambda: sink.of(token_of(probe), kind), 5, 0.02, "a sample")
    return row


def row_of(dut, kind, name=None):
    """Return the row of `show sflow` of this kind and port."""
    (row,) = [
        r for r in dut.control.ask("sflow") if r["kind"] == kind and name in (None, r.get("name"))
    ]
    return row


def logged(dut, text):
    """Return the lines of the log that have a text."""
    with open(dut.log_file, encoding="utf-8") as file:
        return [line for line in file if text in line]


# --- samples of packets -----------------------------------------------------------------------


@pytest.mark.parametrize(("to", "family"), [(HOST4, 4), (HOST6, 6)], ids=["IPv4", "IPv6"])
def test_a_sample_has_interfaces_next_hop_masks_and_the_frame(dut, sink, lan, wan, to, family):
    """A sample of a forwarded packet names both interfaces by the kernel's numbers, the next hop and
    the lengths of both prefixes, and has the frame as it was received."""
    for came, left in ((lan, wan), (wan, dut.wires["alt"])):
        probe = came.probe(to if left is wan else left.peer(family), size=300)
        came.send(probe)
        left.expect_raw(token_of(probe))

        row = sample_of(sink, probe)

        assert (row["input"], row["output"]) == (dut.ifindex(came), dut.ifindex(left))
        assert (row["source"], row["rate"], row["drops"]) == (dut.ifindex(came), 1, 0)
        # A host on the link has no next hop.
        assert row["nexthop"] == (wan.peer(family) if left is wan else "0.0.0.0" if family == 4 else "::")
        link = 26 if family == 4 else 64
        assert row["src_mask"] == link
        assert row["dst_mask"] == ((24 if family == 4 else 36) if left is wan else link)
        assert row["header"] == bytes(probe)[:128]
        assert (row["length"], row["stripped"]) == (len(probe) + 4, 4)


def test_packets_for_the_router_have_the_host_as_output(dut, sink, lan, wan):
    """The sample of a packet for the router has output 0x3fffffff. The sample of a packet whose
    neighbor is not known yet has the interface by which the packet will leave."""
    ping = Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst=wan.ip4)
    ping = ping / ICMP(type=8) / Raw(token())
    lan.send(ping)

    row = sample_of(sink, ping)

    assert (row["input"], row["output"]) == (dut.ifindex(lan), HOST)
    assert "nexthop" not in row
    waits = lan.probe(f"{wan.ip4.rpartition('.')[0]}.99")
    lan.send(waits)
    assert sample_of(sink, waits)["output"] == dut.ifindex(wan)


def test_a_dropped_sample_has_its_reason_as_output(dut, sink, lan):
    """A sample of a packet that is dropped has 0x40000000 plus the reason as output, also if an
    ICMP error answers it."""
    probes = {
        BLACKHOLE_ROUTE: lan.probe("203.0.113.1"),
        TTL_EXCEEDED: lan.probe(HOST4, ttl=1),
        NET_UNREACHABLE: lan.probe("100.64.0.1"),
    }
    lan.send(*probes.values())

    for reason, probe in probes.items():
        assert sample_of(sink, probe)["output"] == DISCARDED + reason
    assert sink.samples(DISCARD) == []


def test_one_of_n_packets_is_a_sample_of_each_port(dut, sink, settings, lan, wan):
    """Each of two ports samples one in N of its packets, within three standard deviations; its pool has
    all its packets, and nothing is lost."""
    rate, shares = 50, {"lan": 3, "wan": 1}
    settings(rate=rate)
    sink.clear()
    before = {n: row_of(dut, "port", f"{n}0") for n in shares}
    frames = {
        "lan": bytes(lan.probe(HOST4, size=100)),
        "wan": bytes(wan.probe(lan.peer4, size=100)),
    }

    def sent():
        """Send. Return true if each port has received enough: the kernel between both ends loses frames
        while the CPUs are busy."""
        for _ in range(100):
            for name, share in shares.items():
                dut.wires[name].send(*[frames[name]] * (25 * share))
        dut.fence(lan)
        dut.fence(wan)
        rows = {n: row_of(dut, "port", f"{n}0") for n in shares}
        return all(rows[n]["pool"] - before[n]["pool"] > 20_000 * shares[n] for n in shares)

    eventually(sent, 60, 0, "each port has received enough")
    for name in shares:  # the thread has taken all records before that of another packet
        wire, to = dut.wires[name], HOST4 if name == "lan" else lan.peer4
        last = bytes(wire.probe(to, size=100))
        taken = lambda w=wire, x=last: w.send(*[x] * 25) or sink.of(token_of(x))  # noqa: E731
        eventually(taken, 10, 0.05, "the last sample")
        dut.fence(wire)

    for name in shares:
        source = dut.ifindex(dut.wires[name])

        def whole(name=name, source=source):
            row, got = row_of(dut, "port", f"{name}0"), sink.samples(FLOW, source=source)
            numbers = list(range(before[name]["samples"] + 1, row["samples"] + 1))
            return [s["sequence"] for s in got] == numbers and (row, got)

        row, got = eventually(whole, 5, 0.05, "each sample has come")
        pool = row["pool"] - before[name]["pool"]
        assert row["drops"] == before[name]["drops"]
        mean = pool / rate
        shown = row["samples"] - before[name]["samples"]
        assert abs(shown - mean) < 3 * math.sqrt(mean), (name, shown, mean)
        assert got[-1]["rate"] == rate
        # All packets between the first and the last sample are in the pool.
        assert abs((got[-1]["pool"] - got[0]["pool"]) - pool) < pool / 10


def test_samples_over_the_limit_are_counted(dut, sink, settings, lan):
    """Samples over the limit do not leave, and the field drops counts them: samples and drops together
    are all packets."""
    before = row_of(dut, "port", "lan0")
    frames = [bytes(lan.probe(HOST4))] * 20_000
    begin = time.monotonic()

    def exceeded():
        """Send. Return true if samples were over the limit: the kernel between both ends loses frames
        while the CPUs are busy."""
        lan.send(*frames)
        dut.fence(lan)
        return row_of(dut, "port", "lan0")["drops"] > before["drops"]

    eventually(exceeded, 30, 0, "samples over the limit")

    def moved():
        """Return how the counters have moved, once the thread has taken all records."""
        row = row_of(dut, "port", "lan0")
        row = {k: row[k] - before[k] for k in ("samples", "drops", "pool")}
        return row if row["samples"] + row["drops"] == row["pool"] else None

    row = eventually(moved, 5)
    assert row["samples"] <= (time.monotonic() - begin + 2) * LIMIT
    probe = lan.probe(HOST4)
    eventually(lambda: lan.send(probe) or sink.of(token_of(probe)), 5, 0.2)
    assert sink.of(token_of(probe))[0]["drops"] >= row["drops"]


# --- dropped packets --------------------------------------------------------------------------


def test_dropped_packets_are_reported_with_their_reason(dut, sink, settings, lan):
    """With `drops`, each packet that a forwarder drops is reported as a discarded packet with its
    reason and its frame, although it was not sampled."""
    settings(drops=True, rate=1_000_000)
    probes = {
        BLACKHOLE_ROUTE: lan.probe("203.0.113.1", size=200),
        TTL_EXCEEDED: lan.probe(HOST4, ttl=1),
        NET_UNREACHABLE: lan.probe("100.64.0.1"),
    }
    good = lan.probe(HOST4)
    lan.send(*probes.values(), good)

    for n, (reason, probe) in enumerate(probes.items()):
        row = sample_of(sink, probe, DISCARD)
        assert (row["reason"], row["input"], row["output"]) == (reason, dut.ifindex(lan), 0)
        assert (row["source"], row["class"], row["drops"]) == (dut.ifindex(lan), 0, 0)
        assert row["header"] == bytes(probe)[:128]
        assert row["length"] == len(probe) + 4
        if n > 0:
            assert row["sequence"] == last + 1  # noqa: F821
        last = row["sequence"]  # noqa: F841
    dut.fence(lan)
    assert sink.of(token_of(good), DISCARD) == []


def test_a_flood_of_dropped_packets_is_counted(dut, sink, settings, lan, wan):
    """At most 1,000 dropped packets a second are reported. The field drops counts the remaining
    ones, and other packets are forwarded."""
    settings(drops=True, rate=1_000_000)
    before = row_of(dut, "port", "lan0")
    dropped, began = dut.counter("drop", "blackhole"), time.monotonic()

    with dut.stream(wan, lan.peer4, rate=500) as stream:
        lan.send(*[bytes(lan.probe("203.0.113.1"))] * 20_000)
        dut.fence(lan)

    assert stream.lost(lan) == []
    # The kernel between both ends loses some while the CPUs are busy.
    dropped = dut.counter("drop", "blackhole") - dropped

    def told():
        """Return the numbers of reported and of other packets, once they are all of them."""
        row = row_of(dut, "port", "lan0")
        moved = [row[k] - before[k] for k in ("discards", "discards_dropped")]
        return moved if sum(moved) == dropped else None

    reported, others = eventually(told, 5)
    most = 1000 * (time.monotonic() - began + 1)
    assert 0 < reported <= most and others > 0, (reported, others, most)


# --- counters ---------------------------------------------------------------------------------


def test_counters_are_those_of_the_interfaces(dut, sink, settings, lan, wan):
    """The counters of each port come in the interval, with the kernel's number of the interface and
    the octets and packets that `show ports` has."""
    settings(counters_s=1, rate=1_000_000)
    lan.send(*[lan.probe(HOST4, size=500) for _ in range(20)])
    dut.fence(lan)
    sink.clear()

    def settled():
        shown = {r["name"]: r for r in dut.control.ask("ports")}
        for wire in dut.wires.values():
            rows = sink.samples(COUNTERS, ifindex=dut.ifindex(wire))
            row, port = rows[-1], shown[wire.tap]
            assert row["in_octets"] == port["rx_bytes"]
            assert row["in_packets"] == port["rx_packets"] & 0xFFFFFFFF
            assert row["out_octets"] == port["tx_bytes"]
            assert row["out_packets"] == port["tx_packets"] & 0xFFFFFFFF
            assert row["in_discards"] == port["rx_missed"] & 0xFFFFFFFF
            assert (row["type"], row["status"], row["source"]) == (6, 3, row["ifindex"])
            assert row["in_multicast"] == row["out_broadcast"] == 0xFFFFFFFF
            assert len(rows) < 3 or rows[-1]["sequence"] == rows[-2]["sequence"] + 1
        return True

    def is_settled():
        try:
            return settled()
        except (AssertionError, IndexError):
            return False

    eventually(is_settled, 15, 0.3, "the counters of sFlow are those of the ports")


def test_the_numbers_of_counter_samples_begin_again_with_the_counters(dut, sink, settings, lan):
    """The interface below a port goes and comes: the port keeps its ifIndex and counts from 0. A
    collector would take the difference for a counter that wrapped, unless the number of the sample
    begins again, too (sFlow 5, counters_sample: "must also reset the sequence_number")."""
    settings(counters_s=1, rate=1_000_000)
    ext = dut.wires["ext"]
    rows = lambda wire: sink.samples(COUNTERS, ifindex=dut.ifindex(wire))  # noqa: E731
    for _ in range(20):
        dut.forwarded(ext, ext.probe(HOST4), dut.wires["wan"])
    eventually(lambda: len(rows(ext)) > 2 and rows(ext)[-1]["in_octets"] >= 20 * 46, 15, 0.05)
    index, before = dut.ifindex(ext), rows(ext)[-1]

    netns.ip_batch([f"link set p-ext netns {dut.far}"], dut.dp)
    eventually(lambda: dut.port_row(ext)["link"] == "down", 5, 0.01)
    netns.ip_batch([f"link set p-ext netns {dut.dp}"], dut.far)
    netns.ip_batch(["link set p-ext up"], dut.dp)
    eventually(lambda: dut.port_row(ext)["link"] == "up", 10, 0.01)
    eventually(lambda: rows(ext)[-1]["in_octets"] < before["in_octets"], 10, 0.05)

    assert dut.ifindex(ext) == index
    for old, new in itertools.pairwise(rows(ext)):
        back = new["in_octets"] < old["in_octets"]
        assert new["sequence"] == (1 if back else old["sequence"] + 1), rows(ext)
    assert all(new["sequence"] > old["sequence"] for old, new in itertools.pairwise(rows(lan)))


def test_the_numbers_of_samples_begin_again_with_the_pool(dut, sink, settings, lan, wan):
    """The pool of a source counts from 0 when sFlow is switched on again, and so do its samples
    (sFlow 5, flow_sample)."""
    for _ in range(20):
        dut.forwarded(lan, probe := lan.probe(HOST4), wan)
    before = sample_of(sink, probe)
    assert before["pool"] >= before["sequence"] >= 20

    settings(ports=())
    settings()
    dut.forwarded(lan, probe := lan.probe(HOST4), wan)
    after = sample_of(sink, probe)

    assert after["pool"] < 20 and after["sequence"] < 20


# --- collectors -------------------------------------------------------------------------------


def test_a_reload_changes_rate_and_collectors(dut, sink, settings, lan):
    """A reload gives samples another rate and another collector, and turns sFlow off and on. Agent
    and source are those of the file."""
    with Sink(dut.ctl, port=OTHER_PORT) as other:
        settings(ports=(PORT, OTHER_PORT), agent="192.0.2.200", source="127.0.0.9", header=64)
        probe = lan.probe(HOST4, size=200)
        lan.send(probe)
        row = sample_of(other, probe)
        assert row == sample_of(sink, probe)
        assert row["header"] == bytes(probe)[:64]
        assert {d["agent"] for d in other.datagrams()} == {"192.0.2.200"}
        assert {source[0] for source in other.sources()} == {"127.0.0.9"}
        settings(ports=(OTHER_PORT,), rate=3)
        before = len(sink.octets())
        probes = [lan.probe(HOST4) for _ in range(300)]
        lan.send(*probes)
        dut.fence(lan)
        rows = eventually(lambda: other.samples(FLOW, rate=3), 5)
        assert 50 < len(rows) < 160 or eventually(
            lambda: 50 < len(other.samples(FLOW, rate=3)) < 160, 5
        )
        assert len(sink.octets()) == before
    settings(ports=())
    assert [r["state"] for r in settings.shown()] == ["off"]
    assert "fpmdp_sflow" not in dut.metrics_page()
    settings()
    probe = lan.probe(HOST4)
    lan.send(probe)
    assert sample_of(sink, probe)["rate"] == 1


def test_a_collector_that_is_away_delays_nothing(dut, sink, settings, lan, wan):
    """One of two collectors does not answer. The other collector gets each sample, and packets are
    forwarded. The errors are counted and logged once. The log has another line when the collector
    works again."""
    name = f"127.0.0.1:{OTHER_PORT}"
    # An earlier test may have left such lines: its last datagram was sent after its collector's end.
    old = {word: len(logged(dut, f"sflow: collector {word} collector={name}")) for word in ("fails", "works again")}
    settings(ports=(OTHER_PORT, PORT))
    with dut.stream(lan, HOST4, rate=1000) as stream:
        eventually(lambda: stream.sent > 1500, 20)
    assert stream.lost(wan) == []

    def collector():
        return {r["address"]: r for r in settings.shown() if r["kind"] == "collector"}[name]

    assert collector()["state"] == "failing" and collector()["errors"] > 1
    assert collector()["last_error"] == "Connection refused"
    assert f"collector {name}: failing: Connection refused" in dut.fpmctl("show", "sflow").stdout
    assert re.search(r"^fpmdp_sflow_collectors_failing 1$", dut.metrics_page(), re.M)
    assert "Connection refused" in dut.fpmctl("doctor", "sflow").stdout
    eventually(lambda: len(sink.samples(FLOW)) >= stream.sent, 5)
    new = lambda word: len(logged(dut, f"sflow: collector {word} collector={name}")) - old[word]  # noqa: E731
    assert new("fails") == 1

    def works():
        """Return True if the collector works again. That takes a datagram without an error."""
        lan.send(lan.probe(HOST4))
        return collector()["state"] == "open"

    with Sink(dut.ctl, port=OTHER_PORT) as other:
        eventually(works, 10)
        probe = lan.probe(HOST4)
        lan.send(probe)
        sample_of(other, probe)
    eventually(lambda: new("works again") == 1, 5, what="the line of the log")
    assert new("fails") == 1


def test_a_collector_beyond_a_missing_vrf_is_told(dut, sink, settings, lan):
    """A collector whose VRF does not exist has an error for each datagram, and the others get the
    samples."""
    settings(collectors=["127.0.0.1:9 vrf nosuch", f"127.0.0.1:{PORT}"])

    row, other = (r for r in settings.shown() if r["kind"] == "collector")

    assert (row["vrf"], row["state"], row["last_error"]) == ("nosuch", "failing", "No such device")
    assert (other["state"], other["last_error"]) == ("open", None)
    for _ in range(10):
        probe = lan.probe(HOST4)
        lan.send(probe)
        sample_of(sink, probe)
    row, other = (r for r in settings.shown() if r["kind"] == "collector")
    assert row["datagrams"] == 0 and other["errors"] == 0
    assert row["errors"] > other["datagrams"] >= 10


def test_a_collector_without_a_route_is_told(dut, sink, settings, lan, wan):
    """A collector that the kernel has no route to is an error in `show sflow` and a finding of doctor. Packets
    pass, the other collector gets the samples, and the datagrams leave when there is a route."""
    there = "203.0.113.9"
    settings(collectors=[f"{there}:9", f"127.0.0.1:{PORT}"])
    row = lambda: next(r for r in settings.shown() if r.get("address") == f"{there}:9")  # noqa: E731
    with dut.stream(lan, HOST4, rate=500) as stream:
        eventually(lambda: stream.sent > 500 and row()["errors"] > 1, 20)
    assert stream.lost(wan) == []
    assert (row()["state"], row()["last_error"]) == ("failing", "Network is unreachable")
    assert "Network is unreachable" in dut.fpmctl("doctor", "sflow").stdout
    eventually(lambda: len(sink.samples(FLOW)) >= stream.sent, 5)
    dut.ip(f"route add {there}/32 via {wan.peer4}")

    def works():
        """Return True if the collector works again. That takes a datagram without an error."""
        lan.send(lan.probe(HOST4))
        return row()["state"] == "open"

    eventually(works, 20, 0.1, "it works again")
    probe = lan.probe(HOST4)
    lan.send(probe)
    wan.expect(lambda data: data[36:38] == (9).to_bytes(2) and token_of(probe) in data, 5)
    dut.ip(f"route del {there}/32")


def test_without_an_agent_no_sample_counts_as_sent(dut, sink, settings, lan):
    """While no collector has a socket, the agent has no address. The samples count as drops, not as
    sent, until a reload gives them a collector."""
    settings(collectors=["127.0.0.1:9 vrf nosuch"])
    agent, before = row_of(dut, "agent"), row_of(dut, "port", "lan0")
    assert (agent["state"], agent["agent"]) == ("on", None)
    lan.send(*[lan.probe(HOST4) for _ in range(10)])
    dut.fence(lan)

    row = eventually(
        lambda: (r := row_of(dut, "port", "lan0"))["drops"] >= before["drops"] + 10 and r, 5
    )

    assert (row["samples"], row_of(dut, "agent")["samples"]) == (before["samples"], agent["samples"])
    settings()
    probe = lan.probe(HOST4)
    lan.send(probe)
    assert sample_of(sink, probe)["drops"] >= row["drops"]


def test_a_collector_with_an_ipv6_address(dut, settings, lan):
    """Datagrams reach a collector by IPv6, and the agent has an IPv6 address."""
    with Sink(dut.ctl, "::1", PORT) as collector:
        settings(collectors=[f"[::1]:{PORT}"])
        probe = lan.probe(HOST6)
        lan.send(probe)
        sample_of(collector, probe)
        assert {d["agent"] for d in collector.datagrams()} == {"::1"}


def test_datagrams_leave_by_the_ports(dut, settings, lan, wan):
    """A collector behind the router's own ports gets datagrams, from the address of the port.
    The datagrams are not sampled."""
    settings(collectors=[f"{wan.peer4}:{PORT}"])
    probe = lan.probe(HOST4)
    lan.send(probe)

    def datagram(data):
        return data[23:24] == b"\x11" and data[36:38] == PORT.to_bytes(2) and token_of(probe) in data

    packet = wan.expect(datagram, 5)

    assert packet[IP].src == wan.ip4
    dut.fence(lan)
    assert len(wan.got(datagram)) == 1


def test_a_restart_begins_the_sequence_again(dut, sink, lan):
    """The datagrams of a new daemon have sequence numbers from 1 and its own uptime."""
    probe = lan.probe(HOST4)
    lan.send(probe)
    sample_of(sink, probe)
    assert sink.datagrams()[-1]["sequence"] > 1
    assert dut.stop() == 0
    sink.clear()
    begin = time.monotonic()
    dut.start()
    wan = dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    probe = lan.probe(HOST4)
    lan.send(probe)
    sample_of(sink, probe)

    datagrams = sink.datagrams()

    assert [d["sequence"] for d in datagrams] == list(range(1, len(datagrams) + 1))
    assert datagrams[-1]["uptime"] < (time.monotonic() - begin + 2) * 1000
    assert sink.of(token_of(probe))[0]["sequence"] <= len(sink.samples(FLOW))


def test_a_kernel_without_psample_is_told(dut, sink, settings, lan):
    """Without the module psample, `show sflow` and doctor name it, and collectors get their samples. Without
    a collector the samples are lost and counted."""
    settings(psample=1)
    if row_of(dut, "psample")["state"] == "open":
        pytest.skip("the kernel has psample")
    wanted = "the kernel has no psample: modprobe psample"
    assert row_of(dut, "psample")["last_error"] == wanted
    assert wanted in dut.fpmctl("doctor", "sflow").stdout
    assert f"psample 1: failing: {wanted}" in " ".join(dut.fpmctl("show", "sflow").stdout.split())
    api.validate(dut.control.ask("sflow"), api.rows_schema("GET", "/sflow")[1]["schema"])
    probe = lan.probe(HOST4)
    lan.send(probe)
    sample_of(sink, probe)
    assert "fpmdp_sflow_psample_samples_total 0" in dut.metrics_page()
    settings(ports=(), psample=1)
    drops = row_of(dut, "port", "lan0")["drops"]
    lan.send(lan.probe(HOST4))
    eventually(lambda: row_of(dut, "port", "lan0")["drops"] > drops, 5)
    assert len(logged(dut, "sflow: psample fails")) == 2


# --- the operator's view ----------------------------------------------------------------------


def test_what_is_shown(dut, sink, settings, lan):
    """show sflow, its JSON, the metrics and doctor tell the same."""
    settings(drops=True)
    lan.send(lan.probe(HOST4), lan.probe("203.0.113.1"))
    dut.fence(lan)
    eventually(lambda: sink.samples(DISCARD), 5)

    rows = json.loads(dut.fpmctl("--json", "show", "sflow").stdout)

    api.validate(rows, api.rows_schema("GET", "/sflow")[1]["schema"])
    assert [r["kind"] for r in rows] == ["agent", "collector"] + ["port"] * len(dut.wires)
    assert (rows[0]["state"], rows[0]["agent"], rows[0]["rate"]) == ("on", "127.0.0.1", 1)
    text = dut.fpmctl("show", "sflow").stdout
    assert "agent 127.0.0.1\n  1 of 1 packets, 128 octets of each" in text
    assert f"collector 127.0.0.1:{PORT}: open" in text and "port lan0" in text
    page = dut.metrics_page()
    values = dict(re.findall(r"^fpmdp_(sflow_\S+) (\d+)$", page, re.M))
    assert values["sflow_rate"] == "1" and values["sflow_collectors"] == "1"
    assert int(values['sflow_samples_total{kind="packet"}']) >= rows[0]["samples"] > 0
    assert int(values['sflow_samples_total{kind="drop"}']) >= rows[0]["discards"] > 0
    assert int(values["sflow_datagrams_total"]) > 0


def test_trace_and_capture_work_beside_it(dut, sink, lan, wan):
    """A packet that a trace and a capture watch is sampled, too: all three have the same frame and
    path."""
    with Watching(dut, trace={"dst": HOST4}) as trace, Watching(dut, capture={"proto": 17}) as capture:
        probe = lan.probe(HOST4, size=150)
        lan.send(probe)
        (told,) = trace.take(1)
        capture.octets(lambda found: count_of(found) >= 2)
    row = sample_of(sink, probe)

    assert told["frame"] == row["header"].hex() == bytes(probe)[:128].hex()
    assert (told["via"], told["out"]) == (row["nexthop"], "wan0")
    assert row["output"] == dut.ifindex(wan)
    assert told["route"]["prefix"].endswith(f"/{row['dst_mask']}")


# --- other programs ---------------------------------------------------------------------------


def program(name):
    """Return the path of a program, or skip the test."""
    path = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
    if path is None:
        pytest.skip(f"{name} is not installed: make collectors")
    return path


@contextlib.contextmanager
def grouped(argv):
    """Run a program whose processes end with the block: sfacctd has two, and waits for a datagram
    before it obeys SIGTERM."""
    child = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_tshark_reads_the_same(dut, sink, settings, lan, tmp_path):
    """tshark's dissector of sFlow finds the same fields in all kinds of samples that it knows, and
    nothing malformed."""
    program("tshark")
    settings(counters_s=1)
    probe = lan.probe(HOST4, sport=4711)
    lan.send(probe)
    row = sample_of(sink, probe)
    counters = eventually(lambda: sink.samples(COUNTERS), 5)[0]
    datagrams = [d for d in sink.octets() if token_of(probe) in d]
    datagrams += [d for d in sink.octets() if token_of(probe) not in d]
    names = {
        "sflow.flow_sample.sequence_number": "sequence",
        "sflow.flow_sample.sampling_rate": "rate",
        "sflow.flow_sample.sample_pool": "pool",
        "sflow.flow_sample.dropped_packets": "drops",
        "sflow.flow_sample.input_interface": "input",
        "sflow.flow_sample.output_interface": "output",
        "sflow_245.nexthop": "nexthop",
        "sflow_245.nexthop.src_mask": "src_mask",
        "sflow_245.nexthop.dst_mask": "dst_mask",
        "sflow_245.header.frame_length": "length",
    }
    ifs = {"sflow_245.ifindex": "ifindex", "sflow_245.ifinoct": "in_octets"}
    ifs |= {"sflow_245.ifoutpkt": "out_packets"}
    fields = [*names, *ifs, "udp.srcport"]

    shown = dissected(datagrams, tmp_path / "sflow.pcap", fields)

    for field, name in names.items():
        values = [v if "." in v else int(v, 0) for v in shown[0][field]]
        assert row[name] in values, field
    assert "4711" in shown[0]["udp.srcport"]
    seen = {f: [int(v) for s in shown for v in s[f]] for f in ifs}
    for field, name in ifs.items():
        assert counters[name] in seen[field], field


def listens(dut):
    """Return True if a program waits for datagrams: its socket has no other end."""
    return f":{PORT:04X} 00000000:0000" in netns.read_proc(dut.ctl, "/proc/net/udp")


def test_nfdump_reads_the_flows(dut, settings, lan, tmp_path):
    """sfcapd and nfdump see the addresses, the ports, both interfaces, the next hop and the masks,
    and the number of packets times the rate."""
    sfcapd, nfdump = program("sfcapd"), program("nfdump")
    settings(rate=2)
    argv = ["ip", "netns", "exec", dut.ctl, sfcapd, "-b", "127.0.0.1", "-p", str(PORT)]
    argv += ["-l", str(tmp_path), "-t", "2"]
    with grouped(argv):
        eventually(lambda: listens(dut), 10)
        lan.send(*[bytes(lan.probe(HOST4, sport=4712, dport=4713))] * 2000)
        dut.fence(lan)
        # sfcapd begins a file every 2 s, and the flow may be in two of them.
        line = eventually(
            lambda: (seen := nfdump_line(nfdump, tmp_path)) and int(seen[-1]) > 1000 and seen,
            30, 0.3, "flows of nfdump",
        )  # fmt: skip
    wan = dut.wires["wan"]
    own = [
        lan.peer4, HOST4, "4712", "4713", str(dut.ifindex(lan)), str(dut.ifindex(wan)), wan.peer4, "26", "24",
    ]  # fmt: skip
    assert line[: len(own)] == own
    assert int(line[-1]) < 4000


def nfdump_line(nfdump, folder):
    """Return the fields of the flow with source port 4712, summed over all files; None: there is no
    such flow."""
    argv = [nfdump, "-R", str(folder), "-q", "-a", "-o"]
    argv += ["fmt:%sa,%da,%sp,%dp,%in,%out,%nh,%smk,%dmk,%pkt", "-N", "src port 4712"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    rows = [[v.strip() for v in x.split(",")] for x in done.stdout.splitlines() if x.count(",") == 9]
    return rows[0] if rows else None


def test_pmacct_reads_the_flows(dut, settings, lan, tmp_path):
    """sfacctd sees the addresses, the interfaces, the masks, the next hop, and renormalizes the
    packets by the rate."""
    sfacctd = program("sfacctd")
    settings(rate=2)
    out, conf = tmp_path / "flows.json", tmp_path / "sfacctd.conf"
    conf.write_text(
        f"sfacctd_ip: 127.0.0.1\nsfacctd_port: {PORT}\nsfacctd_renormalize: true\n"
        "plugins: print\naggregate: src_host, dst_host, src_port, dst_port, in_iface, out_iface,"
        " src_mask, dst_mask\nsfacctd_net: sflow\n"
        f"print_output: json\nprint_output_file: {out}\nprint_output_file_append: true\n"
        "print_refresh_time: 1\n"
    )
    argv = ["ip", "netns", "exec", dut.ctl, sfacctd, "-f", str(conf)]
    with grouped(argv):

        def flows():
            rows = [json.loads(x) for x in out.read_text().splitlines()] if out.exists() else []
            rows = [r for r in rows if r.get("port_src") == 4714]
            return rows if sum(r["packets"] for r in rows) > 1000 else None

        eventually(lambda: listens(dut), 10)
        frames = [bytes(lan.probe(HOST4, sport=4714, dport=4715))] * 2000
        sent = 0

        def sent_and_seen():
            """Send, because datagrams are lost until both processes of sfacctd are ready."""
            nonlocal sent
            lan.send(*frames)
            sent += len(frames)
            return flows()

        rows = eventually(sent_and_seen, 30, 1, "flows of sfacctd")
    (row,) = {
        (r["ip_src"], r["ip_dst"], r["port_dst"], r["iface_in"], r["iface_out"], r["mask_src"], r["mask_dst"])
        for r in rows
    }  # fmt: skip
    assert row == (lan.peer4, HOST4, 4715, dut.ifindex(lan), dut.ifindex(dut.wires["wan"]), 26, 24)
    assert sum(r["packets"] for r in rows) < 1.2 * sent
