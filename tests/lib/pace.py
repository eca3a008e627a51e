# SPDX-License-Identifier: BSD-3-Clause
"""Send packets at a steady rate."""

import time

# A sender that the machine has paused sends the packets of this time at once, not more. A longer
# burst would not fit in the ring of a port, and its packets would be lost without a fault.
BURST_S = 0.05


class Pace:
    """The times of the packets of one sender, in s of CLOCK_MONOTONIC."""

    def __init__(self, rate):
        self.gap, self.due = 1 / rate, time.monotonic()

    def wait(self, ending):
        """Wait until the next packet is due, or until the event `ending` is set."""
        now = time.monotonic()
        self.due = max(self.due + self.gap, now - BURST_S)
        if self.due > now:
            ending.wait(self.due - now)
