# SPDX-License-Identifier: BSD-3-Clause
"""The commands of README and manual, run as they stand there: page by page, in the order of
a reader who does them all (lib/docs.py tells how a page says so)."""

import os
import re
import subprocess
import time

import pytest

from lab.lab import Lab
from lab.readme import differs, in_lab
from lib import docs

PAGES = [p for p in docs.pages() if any(b.place == "lab" for b in docs.blocks(p))]
# The tests' machine has it, and may have no way to Debian's servers.
INSTALL = "apt-get update && apt-get install -y make && "


class Reader:
    """Who follows a page, in a lab of another name than one that may be up."""

    def __init__(self):
        self.name = f"d{os.getpid()}"

    def do(self, block):
        """Run a block. AssertionError when it does not do what the page says."""
        lab = Lab(self.name)
        for command, text in block.commands:
            where = f"{block.page.relative_to(docs.ROOT)}:{block.line}: {command}"
            if block.language == "console":
                seen = differs(lab, command, text)
                assert seen is None, f"{where}\n{seen}"
                continue
            done = subprocess.run(
                ["bash", "-e", "-c", in_lab(lab, command.replace(INSTALL, ""))],
                cwd=docs.ROOT, env=self.environment(lab), text=True, check=False, timeout=120,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert done.returncode in block.codes, f"{where}\n{done.stdout}"

    def environment(self, lab):
        """As a reader's, and none of what `make system` was told."""
        kept = {k: v for k, v in os.environ.items() if not re.match("MAKE|BUILD$", k)}
        path = f"{docs.ROOT}/build/release:{kept['PATH']}"
        return {**kept, "LAB": self.name, "FPMCTL_SOCKET": lab.socket, "PATH": path,
                "ROUTES": "2000"}  # fmt: skip

    def leave(self):
        """Whatever is still up goes."""
        Lab(self.name).down()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_reader_who_does_what_the_page_says_sees_what_it_says(page):
    """Every block for a lab; exit codes, and what is printed where the page has it. How long
    each took is told, and judged by nobody: it is the machine's, too."""
    reader, begin = Reader(), time.monotonic()
    try:
        for block in docs.blocks(page):
            if block.place == "lab":
                at = time.monotonic()
                reader.do(block)
                print(f"{page.name}:{block.line}: {time.monotonic() - at:.1f} s")
    finally:
        reader.leave()
    print(f"{page.name}: {time.monotonic() - begin:.1f} s in all")


def test_all_pages_have_commands_that_are_run():
    """README and troubleshooting among them: the harness finds what it is for."""
    assert {"README", "troubleshooting", "behaviour"} <= {page.stem for page in PAGES}
