# SPDX-License-Identifier: BSD-3-Clause
"""Samples for hsflowd by the kernel's psample, a module that the machine's own kernel may not have. The
listener decodes the messages as hsflowd does (net/psample/psample.c has the attributes)."""

import json
import os
import shutil
import socket
import struct

import pytest

from lib import api, netns, procs
from lib.dataplane import ROOT
from lib.wait import eventually
from sflow_sink import PORT, Reader, Settings, Sink
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
GROUP = 1
NETLINK_GENERIC, SOL_NETLINK, ADD_MEMBERSHIP = 16, 270, 1
GENL_ID_CTRL, GETFAMILY, FAMILY_ID, FAMILY_NAME, MCAST_GROUPS = 16, 3, 1, 2, 7
# The folder with hsflowd and mod_psample.so (doc/testing.md has the commands that build them).
HSFLOWD = os.path.join(ROOT, "build/hsflowd")
HSFLOWD_CONF = """sflow {
  agentIP = 192.0.2.1
  polling = 0
  sampling = 1
  collector { ip=127.0.0.1 udpport=6343 }
  psample { group=1 }
}
"""
NAMES = ["input", "output", "size", "group", "sequence", "rate", "data"]


def attributes(octets):
    """Return {type: octets} of netlink attributes."""
    found = {}
    while len(octets) >= 4:
        length, kind = struct.unpack_from("HH", octets)
        found[kind & 0x3FFF] = octets[4:length]
        octets = octets[(length + 3) & ~3 :]
    return found


class Listener:
    """A member of the multicast group of psample in a namespace."""

    def __init__(self, namespace):
        self.sock = netns.open_socket(namespace, socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.sock.settimeout(1)
        name = struct.pack("HH", 4 + len(b"psample\0"), FAMILY_NAME) + b"psample\0"
        head = struct.pack("BBH", GETFAMILY, 1, 0)
        self.sock.send(struct.pack("IHHII", 16 + len(head + name), GENL_ID_CTRL, 1, 1, 0) + head + name)
        found = attributes(self.sock.recv(65536)[20:])
        (self.family,) = struct.unpack("H", found[FAMILY_ID])
        groups = [attributes(group) for group in attributes(found[MCAST_GROUPS]).values()]
        (number,) = (struct.unpack("I", g[2])[0] for g in groups if g[1] == b"packets\0")
        self.sock.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, number)

    def samples(self):
        """Return the samples that have come."""
        found = []
        self.sock.setblocking(False)
        while True:
            try:
                message = self.sock.recv(65536)
            except BlockingIOError:
                return found
            kind, command = struct.unpack_from("4xH10xB", message)
            assert (kind, command) == (self.family, 0)
            values = attributes(message[20:])
            row = {NAMES[k]: int.from_bytes(v, "little") for k, v in values.items() if k < 6}
            found.append(row | {"data": values[6]})


@pytest.fixture
def dut(on_veths):
    """Return the router without psample in its kernel."""
    netns.command(["modprobe", "-r", "psample"])
    on_veths.ready()
    wan = on_veths.wires["wan"]
    on_veths.route(NET, wan.peer4, wan)
    on_veths.settings = Settings(on_veths)
    yield on_veths
    on_veths.settings(ports=())


def row(dut):
    """Return the row of psample of `show sflow`."""
    (found,) = [r for r in dut.control.ask("sflow") if r["kind"] == "psample"]
    return found


def test_listeners_of_psample_get_the_samples(dut):
    """If no collector is set, a listener gets each sample once the module is loaded, with both
    interfaces, rate, size, group and sequence. If a collector is set, both get the same packets.
    When the module was removed and loaded again, samples come again."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.settings(ports=(), psample=GROUP)
    assert (row(dut)["state"], row(dut)["group"]) == ("failing", GROUP)
    rows = json.loads(dut.fpmctl("--json", "doctor", "sflow").stdout)
    assert [r["status"] for r in rows if r["subject"] == "psample"] == ["warn"]
    netns.command(["modprobe", "psample"])
    eventually(lambda: row(dut)["state"] == "open", 30, 0.1, "the family is found")
    api.validate(dut.control.ask("sflow"), api.rows_schema("GET", "/sflow")[1]["schema"])
    listener, seen = Listener(dut.ctl), []
    for size in (100, 300):
        probe = lan.probe(HOST, size=size)
        lan.send(probe)
        wan.expect_raw(token_of(probe))
        eventually(lambda: seen.extend(listener.samples()) or seen[-1:], 10, 0.02, "a sample")
        own = {"input": dut.ifindex(lan), "output": dut.ifindex(wan), "rate": 1, "group": GROUP}
        own |= {"size": len(probe), "data": bytes(probe)[:128]}
        (found,) = [s for s in seen if token_of(probe) in s["data"]]
        assert own == {k: v for k, v in found.items() if k != "sequence"}
    counted = lambda: seen.extend(listener.samples()) or row(dut)["samples"] == len(seen)  # noqa: E731
    eventually(counted, 5, 0.02, "all samples are counted")
    assert [s["sequence"] for s in seen] == list(range(seen[0]["sequence"], seen[0]["sequence"] + len(seen)))
    assert row(dut)["errors"] >= 1
    assert f"psample {GROUP}: open" in dut.fpmctl("show", "sflow").stdout
    ping = lan.probe(dut.wires["lan"].ip4)
    lan.send(ping)
    (found,) = eventually(lambda: [s for s in listener.samples() if token_of(ping) in s["data"]], 10, 0.02)
    assert "output" not in found
    with Sink(dut.ctl, port=PORT) as sink:
        dut.settings(psample=GROUP)
        dut.fence(lan)  # a forwarder uses the settings with which its round began
        probe = lan.probe(HOST)
        lan.send(probe)
        eventually(lambda: sink.of(token_of(probe)), 10, 0.02, "a sample at the collector")
        eventually(lambda: [s for s in listener.samples() if token_of(probe) in s["data"]], 10, 0.02)
    listener.sock.close()
    netns.command(["modprobe", "-r", "psample"])
    eventually(lambda: row(dut)["state"] == "failing", 30, 0.1, "the family is missed")
    netns.command(["modprobe", "psample"])
    eventually(lambda: row(dut)["state"] == "open", 30, 0.1, "the family is found again")
    listener, probe = Listener(dut.ctl), lan.probe(HOST)
    lan.send(probe)
    eventually(lambda: [s for s in listener.samples() if token_of(probe) in s["data"]], 10, 0.02)


@pytest.fixture
def hsflowd(dut):
    """Run hsflowd in the namespace of the router."""
    if not os.path.exists(f"{HSFLOWD}/hsflowd"):
        pytest.skip("there is no hsflowd in build/hsflowd")
    netns.command(["modprobe", "psample"])
    dut.settings(ports=(), psample=GROUP)
    eventually(lambda: row(dut)["state"] == "open", 30, 0.1, "the family is found")
    there = f"{dut.dir}/hsflowd"
    os.mkdir(there)
    with open(f"{there}/conf", "w", encoding="ascii") as file:
        file.write(HSFLOWD_CONF)
    argv = [f"{HSFLOWD}/hsflowd", "-dd", "-P", "-l", HSFLOWD, "-u", "0" * 32]
    for option, name in {"f": "conf", "o": "out", "p": "pid", "D": "log", "c": "crash"}.items():
        argv += [f"-{option}", f"{there}/{name}"]
    running = procs.start(argv, dut.dir, f"{there}/said", netns=dut.ctl)
    yield running
    running.terminate()
    running.wait(30)
    shutil.rmtree(there)


def flows_of_hsflowd(sink, mark):
    """Return the flow samples of hsflowd with a token: (input, output, rate, drops, length, header)."""
    found = []
    for octets in sink.octets():
        r = Reader(octets)
        assert r.word() == 5 and r.address() == "192.0.2.1"
        for _ in range(r.words(4)[3]):
            kind, sample = r.word(), Reader(r.opaque())
            if kind not in (1, 3):
                continue
            # Sequence, source, rate, pool, drops, input, output, records; kind 3 has two words for a source and an
            # interface.
            words = sample.words(8 if kind == 1 else 11)
            rate, _, drops = words[2:5] if kind == 1 else words[3:6]
            came, went = words[5:7] if kind == 1 else (words[7], words[9])
            records = words[-1]
            for _ in range(records):
                kind, record = sample.word(), Reader(sample.opaque())
                if kind == 1 and mark in record.octets:
                    _, length, _ = record.words(3)
                    found.append((came, went, rate, drops, length, record.opaque()))
    return found


def test_hsflowd_sends_our_samples(dut, hsflowd):
    """hsflowd itself reads the samples, and sends them with both interfaces, rate, length and header."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    with Sink(dut.ctl, port=PORT) as sink:

        def sampled(to):
            """Send a packet. Return its samples and the packet. The first packets may have none,
            because hsflowd takes no sample before it has found the interfaces."""
            assert hsflowd.poll() is None, "hsflowd has ended"
            probe = lan.probe(to, size=300)
            lan.send(probe)
            return eventually(lambda: flows_of_hsflowd(sink, token_of(probe)), 1, 0.02), bytes(probe)

        (flow,), probe = eventually(lambda: sampled(HOST), 60, 0.1, "a sample from hsflowd")
        assert flow[:5] == (dut.ifindex(lan), dut.ifindex(wan), 1, 0, len(probe) + 4)
        assert flow[5] == probe[:128][: len(flow[5])] and len(flow[5]) > 60
        (flow,), _ = sampled(lan.ip4)
        assert flow[0] == dut.ifindex(lan) and flow[1] in (0, 0x3FFFFFFF)
