# SPDX-License-Identifier: BSD-3-Clause
"""Record the link messages that the kernel of a namespace sends during a test."""

import fcntl
import os
import subprocess
import tempfile

from lib import netns
from lib.wait import eventually

MARK = "watchmark"


class LinkWatch:
    """The link messages since the start. Usage:
    with LinkWatch("r1") as watch: ...; assert watch.lost_carrier() == []"""

    def __init__(self, name):
        self.name, self.lines = name, []
        self._file = self._process = None

    def __enter__(self):
        self._file = tempfile.TemporaryFile("r+", encoding="utf-8")
        # The monitor and this reader share one file offset, and reading moves it. Without
        # O_APPEND, which no mode of tempfile sets, a new line overwrites the first lines.
        fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)
        self._process = subprocess.Popen(
            ["ip", "-n", self.name, "-o", "monitor", "link"], stdout=self._file
        )
        # Repeat the mark, because the monitor may not listen yet.
        eventually(lambda: self._mark() and self._said(), 5, 0.1, "the watch listens")
        self._begin = len(self._said())
        return self

    def __exit__(self, *exc):
        try:
            if exc[0] is None:
                self._mark("end")
                eventually(lambda: MARK + "end" in "".join(self._said()), 5)
                lines = self._said()[self._begin :]
                self.lines = [line for line in lines if MARK not in line]
        finally:
            self._process.kill()
            self._process.wait()
            self._file.close()

    def _mark(self, word=""):
        """Cause a link event. When the monitor reports it, it has reported all earlier events."""
        name = MARK + word
        netns.ip_batch([f"link add {name} type bridge", f"link del {name}"], self.name)
        return True

    def _said(self):
        self._file.seek(0)
        return self._file.readlines()

    def last(self, dev):
        """Return the newest message about a link, or "" if there is none."""
        lines = [line for line in self._said()[self._begin :] if f": {dev}:" in line or f": {dev}@" in line]
        return lines[-1] if lines else ""

    def lost_carrier(self):
        """Return the messages about a link that is down, deleted or without carrier."""
        bad = ("NO-CARRIER", "state DOWN", "Deleted")
        return [line for line in self.lines if any(word in line for word in bad)]
