# SPDX-License-Identifier: BSD-3-Clause
"""fpmctl capture writes pcapng of received, sent and dropped packets, with the reason. These tests
read it back block by block, and with tshark."""

import base64
import itertools
import os
import shutil
import signal
import subprocess
import time

import pytest

from lib.fpm_speaker import RTN_BLACKHOLE
from lib.wait import eventually
from impostor import Impostor
from wire import token_of
from watching import Watching, blocks, count_of, packets

NET, HOST = "198.51.100.0/24", "198.51.100.9"


@pytest.fixture
def taught(dut, wan):
    """A router with a route and a blackhole route."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route("203.0.113.0/24", rtm_type=RTN_BLACKHOLE)
    return dut


def capture(dut, lan, probes, n, **want):
    """Capture these probes until packets() has `n` rows. Returns the rows."""
    with Watching(dut, capture=want) as watch:
        lan.send(*probes)
        return packets(blocks(watch.octets(lambda found: count_of(found) >= n)))


@pytest.mark.smoke
def test_in_out_and_dropped(taught, lan, wan):
    """A capture has interface names, directions, both forms of a forwarded packet, reasons and
    times."""
    good, bad, expired = lan.probe(HOST), lan.probe("203.0.113.1"), lan.probe(HOST, ttl=1)
    begin = time.time()

    rows = capture(taught, lan, [good, bad, expired], 5, host=lan.peer4)

    def of(probe, direction):
        """Return the one row that holds the token of this probe, has this direction and is no ICMP
        error."""
        (row,) = [
            r for r in rows if token_of(probe) in r[2] and r[1] == direction and r[2][23] == 17
        ]
        return row

    came, left = of(good, "in"), of(good, "out")
    assert came[:5] == (lan.tap, "in", bytes(good), len(good), "")
    assert left[0] == wan.tap and left[2] == wan.expect_raw(token_of(good))
    assert of(bad, "in")[2] == bytes(bad)
    assert of(bad, "in")[4] == "drop blackhole: blackhole route"
    assert of(expired, "in")[4].startswith("drop ttl: ")
    (error,) = [row for row in rows if row[2][23] == 1]
    assert error[:2] == (lan.tap, "out") and error[2][34:36] == b"\x0b\x00"
    assert all(begin - 1 < row[5] < time.time() + 1 for row in rows)


POINTS = {
    "rx": (["rx"], [("in", False), ("in", True)]),
    "tx": (["tx"], [("out", False)]),
    "drop": (["drop"], [("in", True)]),
    "tx and drop": (["tx", "drop"], [("out", False), ("in", True)]),
}


@pytest.mark.parametrize("name", POINTS)
def test_only_the_points_that_were_named(taught, lan, name):
    """A capture contains only the chosen points: rx, tx and drop, each alone and together."""
    points, want = POINTS[name]

    with Watching(taught, capture={"points": points, "proto": 17, "for_s": 3}) as watch:
        lan.send(lan.probe(HOST), lan.probe("203.0.113.1"))
        found = blocks(watch.octets(lambda found: False))

    assert sorted((row[1], row[4] != "") for row in packets(found)) == sorted(want)


def test_snap_cuts_and_says_how_long_it_was(taught, lan):
    """With --snap the captured length is smaller than the original length."""
    probe = lan.probe(HOST, size=1000)

    ((_, _, data, whole, _, _),) = capture(taught, lan, [probe], 1, points=["rx"], snap=60)[
        :1
    ]

    assert data == bytes(probe)[:60] and whole == 1014


def test_punted_frames_say_whereto(taught, lan, wan):
    """A punted frame has `punt`, the reason and its text as its comment."""
    rows = capture(taught, lan, [lan.probe(wan.ip4)], 1, dst=wan.ip4, points=["rx"])

    assert rows[0][4].startswith("punt local: ")


def run(dut, *words, **kw):
    """Run fpmctl capture as a process."""
    return subprocess.Popen([dut.daemon.ctl, "-s", dut.socket, "capture", *words], **kw)


def test_a_file_until_interrupted(taught, lan, tmp_path):
    """With -w FILE, SIGINT ends the capture with a complete file, the number of packets on stderr
    and exit code 0."""
    path = str(tmp_path / "all.pcapng")
    probes = [lan.probe(HOST) for _ in range(50)]
    with run(
        taught, "-w", path, "proto", "udp", stderr=subprocess.PIPE, text=True
    ) as child:
        eventually(lambda: os.path.exists(path) and os.path.getsize(path) > 0, 5)
        taught.fence(lan)  # the forwarder may be within a round that began without the capture
        lan.send(*probes)
        eventually(lambda: _count(path) >= 100, 10)
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()

    assert child.returncode == 0 and f"100 packets in {path}" in said
    assert os.stat(path).st_mode & 0o777 == 0o600  # the file has packets of other users
    seen = {token_of(row[2]) for row in packets(_blocks(path))}
    assert seen == {token_of(probe) for probe in probes}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_packets_come_without_a_pause(dut, tmp_path, number):
    """SIGINT and SIGTERM end fpmctl at any moment. While packets come without a pause, fpmctl is rarely
    in a blocking read, so its loop must notice the signal."""
    path, out = str(tmp_path / "impostor.sock"), str(tmp_path / "out")
    block = base64.b64encode(bytes(1500)).decode()
    impostor = Impostor(path, lambda _: ({"pcapng": block} for _ in itertools.count()))
    try:
        for _ in range(20):
            argv = [dut.daemon.ctl, "-s", path, "capture", "-w", out]
            with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as child:
                eventually(lambda: os.path.exists(out) and os.path.getsize(out) > 0, 5, 0.001)
                child.send_signal(number)
                try:
                    assert child.wait(10) == 0
                finally:
                    child.kill()
            os.unlink(out)
    finally:
        impostor.close()


@pytest.mark.parametrize("size", [100, 8192, 50_000], ids=["buffered", "whole", "and a rest"])
def test_a_full_disk_is_told_of(dut, tmp_path, size):
    """fpmctl reports a full disk by a sentence and exit code 1, for data that the stream buffers
    and for data larger than the buffer. It never claims a capture that is not on the disk."""
    path = str(tmp_path / "full.sock")
    block = {"pcapng": base64.b64encode(bytes(size)).decode()}
    impostor = Impostor(path, lambda _: [block, block, {"packets": 2, "lost": 0}])
    try:
        argv = [dut.daemon.ctl, "-s", path, "capture", "-w"]
        for out in ("/dev/full", "-"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run(
                    [*argv, out], stdout=full, stderr=subprocess.PIPE, text=True, timeout=10
                )
            said = "fpmctl: cannot write: No space left on device\n"
            assert (done.returncode, done.stderr) == (1, said)
    finally:
        impostor.close()


def _blocks(path):
    with open(path, "rb") as file:
        return blocks(file.read())


def _count(path):
    return count_of(_blocks(path))


def test_tshark_opens_it(taught, lan, wan):
    """tshark reads `fpmctl capture -w -` from a pipe and shows names, directions and comments."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed: make deps")
    fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.comment"]
    fields += ["ip.dst", "ip.ttl", "udp.srcport"]
    tshark = ["tshark", "-n", "-r", "-", "-T", "fields", "-E", "separator=|"]
    for field in fields:
        tshark += ["-e", field]
    with run(
        taught, "-w", "-", "proto", "udp", "count", "3", stdout=subprocess.PIPE
    ) as child:
        with subprocess.Popen(
            tshark,
            stdin=child.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as shark:

            def sent_until_done():
                if child.poll() is None:
                    lan.send(lan.probe("203.0.113.1", sport=7001))
                return child.poll() is not None

            eventually(sent_until_done, 10, 0.05)
            lines = shark.communicate(timeout=20)[0].splitlines()

    assert child.returncode == 0 and shark.returncode == 0
    want = "lan0|0x00000001|drop blackhole: blackhole route|203.0.113.1|64|7001"
    assert lines == [want] * 3


def test_where_it_may_not_write(taught, tmp_path):
    """fpmctl reports a path that it may not write with a sentence and an exit code. Only capture
    accepts -w."""
    done = taught.fpmctl("capture", "-w", str(tmp_path / "no" / "such"))
    assert done.returncode == 2 and "cannot write" in done.stderr
    done = taught.fpmctl("trace", "-w", "x")
    assert done.returncode == 2 and "-w is for capture" in done.stderr


def test_a_flood_is_forwarded_whatever_is_captured(taught, lan, wan):
    """A capture whose client reads slowly loses no packet of the traffic."""
    with Watching(taught, capture={}) as watch:
        with taught.stream(lan, HOST, rate=4000) as stream:
            eventually(lambda: stream.sent > 6000, 20)
        assert stream.lost(wan) == []
        found = blocks(watch.octets(lambda found: count_of(found) > 1000))

    assert count_of(found) > 1000
