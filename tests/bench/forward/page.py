# SPDX-License-Identifier: BSD-3-Clause
"""Read and write the page of page.h for the benchmark: which frames come, at which rate, and the
counts of the ports."""

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
LOOK, TIME = 1, 2  # values of CHECK
PAGE_DEPTH = 1024


class Page:
    """The file that the ports of a program map."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(POLLS + 8 * SLOTS))
        with open(path, "r+b") as file:
            self.mem = mmap.mmap(file.fileno(), 0)

    def get(self, at, kind="I"):
        """Return a number."""
        return struct.unpack_from("<" + kind, self.mem, at)[0]

    def put(self, at, value, kind="I"):
        """Write a number."""
        struct.pack_into("<" + kind, self.mem, at, value)

    def begin(self, family=0, check=0, gap_q16=0, limit=0, depth=0):
        """Start the frames, and count and pace them from now on."""
        self.mem[LATENCY:] = bytes(2 * 8 * SLOTS)
        self.put(FAMILY, family)
        self.put(CHECK, check)
        self.put(GAP, gap_q16, "Q")
        self.put(LIMIT, limit, "Q")
        self.put(DEPTH, depth)
        self.put(EPOCH, self.get(EPOCH) + 1)
        self.put(RUN, 1)

    def shape(self, length=0, window=0, burst=0):
        """Set the shape of the frames from now on. Zeros: as at the start."""
        self.put(LEN, length)
        self.put(WINDOW, window)
        self.put(BURST, burst)

    def shaped(self):
        """Return True if the frames have the wanted length."""
        return self.get(LEN) == self.get(LEN_NOW)

    def end(self):
        """Stop the frames."""
        self.put(RUN, 0)

    def gap_of(self, mpps):
        """Return the `gap_q16` of begin() for a rate."""
        return int(self.get(TSC_HZ, "Q") / (mpps * 1e6) * 65536)

    def words(self):
        """Return the words of all queues, one after the other."""
        return struct.unpack_from(f"<{WORDS}Q", self.mem, QUEUE0)

    def counts(self):
        """Return the sums of the counts of all queues of all ports."""
        words = self.words()
        return {name: sum(words[i::QUEUE_WORDS]) for i, name in enumerate(QUEUE)}

    def tids(self):
        """Return the threads that receive frames."""
        return {tid for tid in self.words()[TID::QUEUE_WORDS] if tid}

    def thread_is(self, tid):
        """Set the thread of a program whose frames come from no port of this page."""
        self.put(QUEUE0 + 8 * TID, tid, "Q")

    def latencies(self):
        """Return [(us, frames)], rising: the time from due to left."""
        return self.histogram(LATENCY)

    def polls(self):
        """Return [(us, polls)], rising: the time since the poll before."""
        return self.histogram(POLLS)

    def histogram(self, at):
        """Return [(us, number)] of a histogram, with the lower ends of its buckets."""
        counts = struct.unpack_from(f"<{SLOTS}Q", self.mem, at)
        us = 1e6 / max(1, self.get(TSC_HZ, "Q"))
        return [(slot_ticks(i) * us, n) for i, n in enumerate(counts) if n]


def slot_ticks(slot):
    """Return the lower end of a bucket of a histogram. An octave has 16 buckets."""
    octave, part = divmod(slot, 16)
    return part if octave == 0 else (16 + part) << (octave - 1)


def percentile(histogram, share):
    """Return the value below which `share` of a histogram [(value, number)] lies. None: it is
    empty."""
    left = share * sum(n for _, n in histogram)
    for value, n in histogram:
        left -= n
        if left <= 0:
            return value
    return histogram[-1][0] if histogram else None
