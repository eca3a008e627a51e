# SPDX-License-Identifier: BSD-3-Clause
"""The daemon acknowledges routes to zebra (`fpm: feedback: true`): RTM_F_OFFLOAD when packets take
the route, RTM_F_OFFLOAD_FAILED when they cannot (doc/fpm.md, 8)."""

import ipaddress
import select
import struct

import pytest

from lib import fpm_speaker as fpm
from lib.wait import eventually

NET, NET6 = "198.51.100.0/24", "2001:db8:f000::/36"
HOST = "198.51.100.9"
OFFLOAD, FAILED = 0x4000, 0x20000000


class Acks:
    """The messages of the daemon on the FPM connection."""

    def __init__(self, speaker):
        self.socket, self.data, self.rows = speaker.socket, b"", []

    def read(self):
        """Return all acknowledgements so far: [(prefix, protocol, type, flags)]."""
        while select.select([self.socket], [], [], 0)[0]:
            self.data += self.socket.recv(1 << 16)
        while len(self.data) >= 4:
            version, kind, size = struct.unpack("!BBH", self.data[:4])
            assert (version, kind) == (1, 1)
            if len(self.data) < size:
                break
            self.rows.append(self._row(self.data[4:size]))
            self.data = self.data[size:]
        return self.rows

    @staticmethod
    def _row(octets):
        size, kind, flags, _, _ = struct.unpack("=IHHII", octets[:16])
        family, length, _, _, table, protocol, _, rtype, rflags = struct.unpack(
            "=BBBBBBBBI", octets[16:28]
        )
        attr_size, attr = struct.unpack("=HH", octets[28:32])
        # The daemon sends one message in a frame, as a request, because zebra reads nothing else.
        assert (size, kind, flags) == (len(octets), fpm.RTM_NEWROUTE, fpm.NLM_F_REQUEST)
        assert (table, attr, attr_size) == (
            fpm.RT_TABLE_MAIN,
            fpm.RTA_DST,
            len(octets) - 28,
        )
        assert family == (fpm.AF_INET if attr_size == 8 else fpm.AF_INET6)
        address = ipaddress.ip_address(octets[32:])
        return f"{address}/{length}", protocol, rtype, rflags


@pytest.fixture
def router(own_dut):
    """A router that acknowledges, with its lan and wan."""
    dut = own_dut()
    dut.edit_config("fpm:\n", "fpm:\n  feedback: true\n")
    dut.start()
    return dut


def test_a_route_is_acknowledged_when_packets_take_it(router):
    """The daemon acknowledges a route when packets take it: in both families, with next-hop objects
    and without, and again each time zebra sends it."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    acks = Acks(router.zebra.speaker)

    for n in range(20):
        net, host = f"198.51.{n}.0/24", f"198.51.{n}.9"
        router.zebra.route(net, wan.peer4, wan)
        eventually(lambda: len(acks.read()) == n + 1, 2, 0.0005)
        assert acks.rows[n] == (net, fpm.PROTO_BGP, fpm.RTN_UNICAST, OFFLOAD)
        router.forwarded(lan, lan.probe(host), wan)  # no wait: the packet takes the route at once

    router.zebra.route(NET6, wan.peer6, wan)
    router.zebra.add(NET, rtm_type=fpm.RTN_BLACKHOLE)
    router.zebra.add(NET, rtm_type=fpm.RTN_BLACKHOLE)
    eventually(lambda: len(acks.read()) == 23, 2)
    assert acks.rows[20] == (NET6, fpm.PROTO_BGP, fpm.RTN_UNICAST, OFFLOAD)
    assert acks.rows[21] == acks.rows[22]
    assert acks.rows[22][0::2] == (NET, fpm.RTN_BLACKHOLE)
    row = router.fpm()
    assert (row["feedback"], row["feedback_failed"]) == (23, 0)


def test_what_cannot_be_forwarded_is_acknowledged_as_failed(router):
    """The daemon acknowledges a route with more labels than it can push as failed, because it does
    not forward such a route and zebra must not advertise it. It acknowledges a route with one label as
    offloaded."""
    wan = router.wires["wan"]
    acks = Acks(router.zebra.speaker)

    router.zebra.add(NET, router.zebra.hop(wan.peer4, wan, labels=range(16, 33)))
    eventually(acks.read, 2)
    assert acks.rows == [(NET, fpm.PROTO_BGP, fpm.RTN_UNICAST, FAILED)]
    assert router.fpm()["feedback_failed"] == 1

    router.zebra.add(NET6, router.zebra.hop(wan.peer6, wan, labels=[100]))
    eventually(lambda: len(acks.read()) == 2, 2)
    assert acks.rows[1] == (NET6, fpm.PROTO_BGP, fpm.RTN_UNICAST, OFFLOAD)


def test_a_zebra_that_reads_no_acknowledgements_disturbs_nothing(router):
    """100,000 acknowledgements wait, because zebra does not read them. Routes, packets and the session
    go on. The next client of the FPM gets only its own acknowledgements."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    router.route(NET, via=wan.peer4, wire=wan)
    with router.stream(lan, HOST) as stream:
        router.zebra.hop(wan.peer4, wan, nhid=9)
        router.zebra.speaker.routes("10.0.0.0/24", 100_000, 9)
        eventually(lambda: router.fpm()["routes4"] > 100_000, 20)
        eventually(lambda: router.fpm()["feedback"] == 100_001, 20)
    assert stream.lost(wan) == []
    assert router.fpm()["connected"] is True

    router.zebra.connect()
    acks = Acks(router.zebra.speaker)
    router.zebra.route(NET, wan.peer4, wan)
    eventually(acks.read, 2)
    assert [row[0] for row in acks.rows] == [NET]


def test_feedback_is_off_when_not_asked_for(dut, wan):
    """By default the daemon sends nothing to zebra."""
    before = dut.fpm()["feedback"]

    dut.route(NET, via=wan.peer4, wire=wan)

    assert dut.fpm()["feedback"] == before == 0
    assert Acks(dut.zebra.speaker).read() == []
