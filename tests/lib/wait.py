# SPDX-License-Identifier: BSD-3-Clause
"""Wait for a condition, never for a time."""

import os
import time

# All waits are multiplied by this: a guest without KVM gets little time beside a build.
PATIENCE = float(os.environ.get("FDP_PATIENCE", "1"))
# `make test-all`: run the longer variant of each test that has a longer variant.
LONG = "FDP_LONG" in os.environ


class Timeout(AssertionError):
    """A condition did not come true; the message contains the last value."""


def cpu_seconds():
    """Return the CPU time of this process and of the children that have ended."""
    return sum(os.times()[:4])


class Limit:
    """The time that is left to wait, in s. PATIENCE extends it.

    A step counts as a quarter of the limit at most. When the machine paused for longer, the program
    under test did not run either and still needs its time.
    """

    def __init__(self, seconds):
        self.left = seconds * PATIENCE
        self.quarter = self.left / 4
        self.at = time.monotonic()

    def step(self):
        """Count the time since the last step."""
        now = time.monotonic()
        self.left -= min(now - self.at, self.quarter)
        self.at = now


def never(fn, seconds, every=0.05):
    """Assert that `fn` returns nothing true for `seconds`. PATIENCE does not extend this time,
    because the program under test has a clock of its own. An exception of `fn` is raised to the
    caller.
    """
    end = time.monotonic() + seconds
    while True:
        seen = fn()
        assert not seen, f"not expected: {seen!r}"
        if time.monotonic() >= end:
            break
        time.sleep(every)


def eventually(fn, timeout=10.0, every=0.05, what=""):
    """Call `fn` until it returns something true, and return that.

    An exception of `fn` counts as "not yet". The message of Timeout shows it with the last value.
    `what` names the condition for the message.
    """
    limit = Limit(timeout)
    seen = None
    while True:
        asked, used = time.monotonic(), cpu_seconds()
        try:
            seen = fn()
            if seen:
                return seen
        except Exception as err:  # a daemon that is still starting refuses in many ways
            seen = err
        if limit.left <= 0:
            break
        now = time.monotonic()
        # Calls of `fn` take half of the time and a quarter of a CPU at most: a vtysh needs 50 ms of
        # CPU, and tests run side by side.
        time.sleep(max(every, min(max(now - asked, 3 * (cpu_seconds() - used)), 0.5)))
        limit.step()
    name = what or getattr(fn, "__doc__", None) or getattr(fn, "__name__", "condition")
    raise Timeout(f"{name}: not within {timeout * PATIENCE:g} s; last seen: {seen!r}") from (
        seen if isinstance(seen, Exception) else None
    )
