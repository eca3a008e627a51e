# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for a condition, never for a time."""

import os
import time

# All waits are so many times as long: a guest without KVM starves beside a build.
PATIENCE = float(os.environ.get("FDP_PATIENCE", "1"))
# `make test-all`: the longer variants of tests, of those that have one.
LONG = "FDP_LONG" in os.environ


class Timeout(AssertionError):
    """A condition did not come true; the message holds what was seen last."""


def never(fn, seconds, every=0.05):
    """Assert that `fn` returns nothing true for so long: no longer elsewhere, for whoever should
    not do something has a clock of its own. It has to be able to look: what `fn` raises is raised.
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

    An exception of `fn` counts as "not yet": it is shown only when the time is up, with
    the value seen last. `what` names the condition for the message.
    """
    timeout *= PATIENCE
    end = time.monotonic() + timeout
    seen = None
    while True:
        asked = time.monotonic()
        try:
            seen = fn()
            if seen:
                return seen
        except Exception as err:  # a daemon that is still starting refuses in many ways
            seen = err
        now = time.monotonic()
        if now >= end:
            break
        # Who asks takes at most half of the time from who is asked: a vtysh takes a guest long.
        time.sleep(max(every, min(now - asked, 0.5)))
    name = what or getattr(fn, "__doc__", None) or getattr(fn, "__name__", "condition")
    raise Timeout(f"{name}: not within {timeout:g} s; last seen: {seen!r}") from (
        seen if isinstance(seen, Exception) else None
    )
