# SPDX-License-Identifier: BSD-3-Clause
"""A RIB that stands still does not block zebra. The memory of the queue has a bound that the daemon
shows, and afterwards the RIB and zebra are equal again."""

import os
import time

import pytest

from full_table import FULL4, FULL6, HELD_S, N4, N6, send
from lab import routes
from lib.freeze import frozen
from lib.fpm_speaker import table_stream
from lib.wait import LONG, eventually

LIMIT = 64 << 20  # the shortest queue that the configuration allows
NET, HOST = "198.51.100.0/24", "198.51.100.9"
PAUSE_S = float(os.environ.get("DRAIN_PAUSE_S", "5" if LONG else "2"))
# As many messages as a full table has, so that the queue fills. Without FDP_LONG they are a tenth of
# a table, ten times.
TIMES = (FULL4 + FULL6) // (N4 + N6)
ROOM = 48 << 20  # above the counted bytes: memory of malloc, socket buffers, answers


@pytest.fixture
def short(short_queue):
    """A router with the shortest queue and one route in use."""
    wan = short_queue.wires["wan"]
    short_queue.route(NET, via=wan.peer4, wire=wan)
    return short_queue


def table(dut):
    """Return the messages of a full table as octets of FPM. Their next hops are announced."""
    wan = dut.wires["wan"]
    hops = {4: [dut.zebra.hop(wan.peer4, wan)], 6: [dut.zebra.hop(wan.peer6, wan)]}
    eventually(lambda: dut.fpm()["queue_bytes"] == 0, 5)
    made = {4: routes.table4(N4), 6: routes.table6(N6)}
    return b"".join(table_stream(made[f], f, hops[f]) for f in (4, 6)) * TIMES


def warnings(dut, text):
    """Return the lines of the daemon's log that contain `text`."""
    with open(dut.log_file, encoding="utf-8") as file:
        return [line for line in file if text in line]


def test_a_rib_that_hangs_delays_neither_zebra_nor_packets(short):
    """The rib thread stands still for PAUSE_S while a full table comes at full speed. No send of
    zebra waits, log and show warn of the queue before it is full, and the daemon forwards.
    Afterwards the RIB has all routes."""
    dut, lan, wan = short, short.wires["lan"], short.wires["wan"]
    octets = table(dut)
    generation, before = dut.fpm()["generation"], dut.rss()

    with dut.stream(lan, HOST, rate=200) as stream:
        with frozen(dut.daemon.pid(), "fdp-rib"):
            begin = time.monotonic()
            held = send(dut.zebra.speaker, octets)
            took = time.monotonic() - begin
            eventually(lambda: dut.fpm()["queue_warning"], 10, what="the queue warns")
            shown = dut.fpmctl("show", "fpm").stdout
            eventually(lambda: time.monotonic() > begin + PAUSE_S, PAUSE_S + 1)
            paused, grown = dut.fpm(), dut.rss() - before
        begin = time.monotonic()
        in_step = lambda f: (f["zebra4"] - 1, f["zebra6"], f["queue_bytes"]) == (N4, N6, 0)  # noqa: E731
        eventually(lambda: in_step(dut.fpm()), 30, 0.1, "all routes, and nothing waits")
        done = time.monotonic()

    print(f"{len(octets) >> 20} MiB sent in {took:.1f} s, held at most "
          f"{held * 1000:.0f} ms, queue {paused['queue_bytes'] >> 20} MiB, rss grew by "
          f"{grown >> 20} MiB, digested {done - begin:.1f} s after the pause")  # fmt: skip
    assert held < HELD_S
    assert "WARNING    the RIB is behind" in shown and "75 %" in shown, shown
    assert len(warnings(dut, "fpm: queue near its limit")) == 1
    assert LIMIT * 3 // 4 < paused["queue_bytes"] <= LIMIT and grown < LIMIT + ROOM
    assert paused["lag_ms"] > (PAUSE_S - 1) * 1000
    now = dut.fpm()
    assert (now["generation"], now["overflows"], now["queue_warning"]) == (
        generation,
        0,
        False,
    )
    assert (now["queue_bytes"], now["lag_ms"]) == (0, 0)
    assert now["lag_high_ms"] >= paused["lag_ms"]
    assert stream.lost(wan) == [] and stream.sent > PAUSE_S * 100


def test_at_the_limit_the_session_ends_and_a_new_one_brings_all_in_step(short):
    """More full tables come than the queue has room for. The daemon closes the session and does not
    end. Until there is room, it refuses each connection of zebra at once, instead of letting zebra
    wait. Then zebra replays, and the daemon sweeps the routes that zebra did not repeat."""
    dut, lan, wan = short, short.wires["lan"], short.wires["wan"]
    octets = table(dut)
    before = dut.rss()

    with dut.stream(lan, HOST, rate=200) as stream:
        with frozen(dut.daemon.pid(), "fdp-rib"):
            with pytest.raises(OSError):
                for _ in range(3):
                    send(dut.zebra.speaker, octets)
            ended = lambda f: f["overflows"] == f["closes"] == 1 and f  # noqa: E731
            row = eventually(lambda: ended(dut.fpm()), 5)
            shown = dut.fpmctl("show", "fpm").stdout
            with pytest.raises(ConnectionRefusedError):
                dut.zebra.speaker.connect(timeout=1)  # each attempt is refused
            grown = dut.rss() - before
        # zebra tries again every 3 s.
        eventually(lambda: dut.fpm()["state"] != "refusing", 30, 0.1, "there is room again")
        dut.zebra.connect()
        dut.zebra.route(NET, wan.peer4, wan)
        eventually(lambda: dut.fpm()["state"] == "in-step", 30, 0.1, "replay and sweep")

    print(f"rss grew by {grown >> 20} MiB, queue {row['queue_high_bytes'] >> 20} MiB")
    assert (row["state"], row["connected"], row["closes"]) == ("refusing", False, 1)
    assert "WARNING    the RIB is too far behind" in shown, shown
    assert LIMIT < row["queue_high_bytes"] < LIMIT + (8 << 20) and grown < LIMIT + ROOM
    assert len(warnings(dut, "fpm: session closed reason=queue-limit")) == 1
    assert len(warnings(dut, "fpm: listen resumed")) == 1
    now = dut.fpm()
    assert (now["zebra4"], now["zebra6"], now["stale"]) == (1, 0, 0)
    assert now["swept_routes"] > N4 // 2
    assert dut.route_row(NET)["stale"] is False
    assert stream.lost(wan) == []
