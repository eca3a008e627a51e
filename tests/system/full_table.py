# SPDX-License-Identifier: BSD-3-Clause
"""A full table, sent as zebra sends it, and the time for which the daemon holds up zebra's socket."""

import time

from lib.wait import LONG

FULL4, FULL6 = 1_000_000, 200_000  # such a table takes 55 MiB of the daemon's queue
N4, N6 = (FULL4, FULL6) if LONG else (100_000, 20_000)
# While zebra's socket is full, zebra's buffer grows and its other work waits. zebra's walk of the
# table then sleeps for this time. No piece may be held as long.
HELD_S = 1.0


def send(speaker, octets):
    """Send all octets in pieces, as zebra does. Returns the longest time that one piece was
    held."""
    worst, view = 0.0, memoryview(octets)
    for at in range(0, len(view), 65536):
        begin = time.monotonic()
        speaker.send_raw(view[at : at + 65536])
        worst = max(worst, time.monotonic() - begin)
    return worst
