# SPDX-License-Identifier: BSD-3-Clause
"""The output of the demo on the terminal: 80 columns, one progress line, verdicts."""

import shutil
import sys
import textwrap
import time

WIDTH = min(80, shutil.get_terminal_size((80, 24)).columns)
INDENT = 7


class Screen:
    """Writes to standard output; a progress line is redrawn in place on a terminal."""

    def __init__(self):
        self.start = time.monotonic()
        self.tty = sys.stdout.isatty()
        self._moving = False
        self._last = 0.0

    def title(self, text):
        """Print a heading with an empty line before it."""
        self._settle()
        print(f"\n{self._bold(text)}", flush=True)

    def step(self, text):
        """Print a step that is done, with the seconds since the start."""
        self._settle()
        print(f"  {self.seconds():5.1f} s  {text}", flush=True)

    def progress(self, text, force=False):
        """Print the progress line; without a terminal, print one line every few seconds."""
        now = time.monotonic()
        if self.tty:
            line = f"  {self.seconds():5.1f} s  {text}"[: WIDTH - 1]
            print(f"\r{line:{WIDTH - 1}}", end="", flush=True)
            self._moving = True
            if force:
                self._settle()
        elif force or now - self._last >= 3:
            self._last = now
            print(f"  {self.seconds():5.1f} s  {text}", flush=True)

    def passed(self, text):
        """Print a proof that holds."""
        self._verdict("PASS", "32", text)

    def failed(self, text):
        """Print a proof that does not hold."""
        self._verdict("FAIL", "31", text)

    def text(self, text="", indent=0):
        """Print lines without a change."""
        self._settle()
        print(textwrap.indent(text, " " * indent), flush=True)

    def seconds(self):
        """Return the seconds since the demo began."""
        return time.monotonic() - self.start

    def _verdict(self, word, colour, text):
        self._settle()
        lines = textwrap.wrap(text, WIDTH - INDENT)
        print(f"  {self._colour(word, colour)} {lines[0]}")
        for line in lines[1:]:
            print(" " * INDENT + line)
        sys.stdout.flush()

    def _settle(self):
        if self._moving:
            self._moving = False
            print(flush=True)

    def _bold(self, text):
        return self._colour(text, "1")

    def _colour(self, text, code):
        return f"\033[{code}m{text}\033[0m" if self.tty else text
