# SPDX-License-Identifier: BSD-3-Clause
"""The page of page.h, from the benchmark's side: what comes, how fast, and what became of it."""

import mmap
import struct

N_PORTS, N_QUEUES = 8, 64
TSC_HZ, RUN, CHECK, EPOCH, GAP, LIMIT, FAMILY = 0, 12, 16, 20, 24, 32, 40
LEN, WINDOW, BURST, DEPTH, LEN_NOW = 44, 48, 52, 56, 60
QUEUE0, QUEUE_WORDS, SLOTS = 64, 8, 1024
WORDS = N_PORTS * N_QUEUES * QUEUE_WORDS
LATENCY = QUEUE0 + 8 * WORDS
POLLS = LATENCY + 8 * SLOTS
QUEUE = ("rx", "missed", "tx", "wrong_port", "wrong_header")
TID = 5  # word of a queue
LOOK, TIME = 1, 2  # of CHECK
PAGE_DEPTH = 1024


class Page:
    """The file that a program's ports map."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(POLLS + 8 * SLOTS))
        with open(path, "r+b") as file:
            self.mem = mmap.mmap(file.fileno(), 0)

    def get(self, at, kind="I"):
        """One number."""
        return struct.unpack_from("<" + kind, self.mem, at)[0]

    def put(self, at, value, kind="I"):
        """Set one number."""
        struct.pack_into("<" + kind, self.mem, at, value)

    def begin(self, family=0, check=0, gap_q16=0, limit=0, depth=0):
        """Let frames come, counted and paced from now on."""
        self.mem[LATENCY:] = bytes(2 * 8 * SLOTS)
        self.put(FAMILY, family)
        self.put(CHECK, check)
        self.put(GAP, gap_q16, "Q")
        self.put(LIMIT, limit, "Q")
        self.put(DEPTH, depth)
        self.put(EPOCH, self.get(EPOCH) + 1)
        self.put(RUN, 1)

    def shape(self, length=0, window=0, burst=0):
        """What frames are like from now on; zeros: as at the start."""
        self.put(LEN, length)
        self.put(WINDOW, window)
        self.put(BURST, burst)

    def shaped(self):
        """Are the frames that come of the length that was wanted?"""
        return self.get(LEN) == self.get(LEN_NOW)

    def end(self):
        """No more frames."""
        self.put(RUN, 0)

    def gap_of(self, mpps):
        """What begin() calls `gap_q16`, of a rate."""
        return int(self.get(TSC_HZ, "Q") / (mpps * 1e6) * 65536)

    def words(self):
        """All that queues say, one after the other."""
        return struct.unpack_from(f"<{WORDS}Q", self.mem, QUEUE0)

    def counts(self):
        """What all queues of all ports counted, added up."""
        words = self.words()
        return {name: sum(words[i::QUEUE_WORDS]) for i, name in enumerate(QUEUE)}

    def tids(self):
        """The threads that receive frames."""
        return {tid for tid in self.words()[TID::QUEUE_WORDS] if tid}

    def thread_is(self, tid):
        """Of a program whose frames come from no port of this page."""
        self.put(QUEUE0 + 8 * TID, tid, "Q")

    def latencies(self):
        """[(us, frames)], rising: from due to left."""
        return self.histogram(LATENCY)

    def polls(self):
        """[(us, polls)], rising: since the poll before."""
        return self.histogram(POLLS)

    def histogram(self, at):
        """[(us, number)] of one of the two; the lower ends of buckets."""
        counts = struct.unpack_from(f"<{SLOTS}Q", self.mem, at)
        us = 1e6 / max(1, self.get(TSC_HZ, "Q"))
        return [(slot_ticks(i) * us, n) for i, n in enumerate(counts) if n]


def slot_ticks(slot):
    """Lower end of a bucket of a histogram: 16 to an octave."""
    octave, part = divmod(slot, 16)
    return part if octave == 0 else (16 + part) << (octave - 1)


def percentile(histogram, share):
    """The value below which `share` of a histogram [(value, number)] lies; None: empty."""
    left = share * sum(n for _, n in histogram)
    for value, n in histogram:
        left -= n
        if left <= 0:
            return value
    return histogram[-1][0] if histogram else None
