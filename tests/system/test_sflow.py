# SPDX-License-Identifier: BSD-3-Clause
"""The router sends sFlow version 5: samples of packets, counters of interfaces, dropped packets.
The tests decode the datagrams themselves, and have tshark, sfcapd and sfacctd decode them."""

import shutil

import pytest

from lib.wait import eventually
from router import Router, running
from sflow_sink import FLOW, Sink, dissected
from wire import token_of

NET, HOST4 = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
PORT, OTHER_PORT = 6343, 6344
CONFIG = "sflow: {{collectors: [{to}], rate: 1, counters-s: 0}}\nfpm:\n"


def collectors(*ports):
    return ", ".join(f'"127.0.0.1:{port}"' for port in ports)


@pytest.fixture(scope="module")
def sampled(possible):
    """A router that samples each packet."""
    router = Router(name="sfl", metrics="127.0.0.1:9620")
    with running(router, ("fpm:\n", CONFIG.format(to=collectors(PORT)))) as dut:
        yield dut


@pytest.fixture
def dut(sampled):
    """The router, with routes by wan."""
    sampled.ready()
    wan = sampled.wires["wan"]
    sampled.route(NET, via=wan.peer4, wire=wan)
    sampled.route(NET6, via=wan.peer6, wire=wan)
    return sampled


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


@pytest.mark.parametrize(("to", "family"), [(HOST4, 4), (HOST6, 6)], ids=["IPv4", "IPv6"])
def test_a_sample_has_interfaces_next_hop_masks_and_the_frame(dut, sink, lan, wan, to, family):
    """A sample of a forwarded packet names both interfaces by the kernel's numbers, the next hop and
    the lengths of both prefixes, and has the frame as it was received."""
    probe = lan.probe(to, size=300)
    lan.send(probe)
    wan.expect_raw(token_of(probe))

    row = sample_of(sink, probe)

    assert (row["input"], row["output"]) == (dut.ifindex(lan), dut.ifindex(wan))
    assert (row["source"], row["rate"], row["drops"]) == (dut.ifindex(lan), 1, 0)
    assert row["nexthop"] == wan.peer(family)
    assert (row["src_mask"], row["dst_mask"]) == ((26, 24) if family == 4 else (64, 36))
    assert row["header"] == bytes(probe)[:128]
    assert (row["length"], row["stripped"]) == (len(probe) + 4, 4)


def test_tshark_reads_the_same(dut, sink, lan, wan, tmp_path):
    """tshark's dissector of sFlow finds the same fields, and nothing malformed."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed: make deps")
    probe = lan.probe(HOST4, sport=4711)
    lan.send(probe)
    row = sample_of(sink, probe)
    datagrams = [d for d in sink.octets() if token_of(probe) in d]
    flow = "sflow.flow_sample."
    numbers = ["sequence_number", "sampling_rate", "sample_pool", "dropped_packets",
               "input_interface", "output_interface"]  # fmt: skip
    names = ["sequence", "rate", "pool", "drops", "input", "output"]
    fields = [flow + n for n in numbers]
    fields += ["sflow_245.nexthop", "sflow_245.nexthop.src_mask", "sflow_245.nexthop.dst_mask"]
    fields += ["sflow_245.header.frame_length", "udp.srcport"]

    (shark,) = dissected(datagrams, tmp_path / "sflow.pcap", fields)

    rows = [s for s in sink.datagrams() for s in s["samples"]]
    at = [s.get("header", b"") for s in rows].index(row["header"])
    assert at >= 0
    of = {f: shark[f] for f in fields}
    first = [s for d in sink.datagrams() for s in d["samples"] if row in d["samples"]].index(row)
    for number, name in zip(numbers, names, strict=True):
        assert int(of[flow + number][first], 0) == row[name], number
    assert row["nexthop"] in of["sflow_245.nexthop"]
    assert str(row["src_mask"]) in of["sflow_245.nexthop.src_mask"]
    assert str(row["dst_mask"]) in of["sflow_245.nexthop.dst_mask"]
    assert str(row["length"]) in of["sflow_245.header.frame_length"]
    assert "4711" in of["udp.srcport"]
