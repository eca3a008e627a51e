# SPDX-License-Identifier: BSD-3-Clause
"""The commands of README.md and of the quick start work on a clean Debian 12. Each runs unchanged,
`apt-get` included, on the packages that debootstrap installs, in a separate network namespace and
file system."""

import os
import subprocess
import time

import pytest

from test_deb import Machine  # its folder is on the path

from lab.readme import is_so
from lib import docs
from lib.wait import PATIENCE, eventually

HOME = "/root/fpm-dataplane"
MINUTES = 10  # from README to the reason of a dropped packet
PAGES = [docs.ROOT / "README.md", docs.ROOT / "fpm-dataplane/manual/quickstart.md"]
BLOCKS = [b for page in PAGES for b in docs.blocks(page) if b.place == "lab"]


@pytest.fixture
def clean():
    """Yield a Debian with only this project's files."""
    machine = Machine(os.environ["DEB_ROOT"])
    try:
        machine.run("mkdir", HOME)
        words = ["--exclude=./build", "--exclude=./.?*", "--exclude=__pycache__", "."]
        with subprocess.Popen(["tar", "-C", docs.ROOT, "-c", *words], stdout=subprocess.PIPE) as tar:
            subprocess.run(machine.argv(["tar", "-x", "-C", HOME]), stdin=tar.stdout, check=True)
        yield machine
    finally:
        subprocess.run(machine.argv(["make", "-s", "-C", HOME, "lab-down"], net=False), check=False)
        machine.close()


def do(machine, command):
    """Run a command there, on the outer network to reach Debian's servers. Return (exit code,
    text)."""
    argv = machine.argv(["sh", "-c", f"cd {HOME} && {command}"], net=False)
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=1200)  # fmt: skip
    return done.returncode, done.stdout


def test_a_newcomer_gets_from_readme_to_a_reason_for_a_drop(clean):
    """A newcomer gets a running lab, a second scenario, a dropped packet and its reason. The output
    is that of the pages. All commands together take less than ten minutes. The test prints the time
    of each block."""
    begin = time.monotonic()
    assert "apt-get" in BLOCKS[0].text and len(BLOCKS) >= 6
    assert all(any(b.page == page for b in BLOCKS) for page in PAGES)
    for block in BLOCKS:
        started = time.monotonic()
        for command, text in block.commands:
            if block.language == "sh":
                code, seen = do(clean, command)
                assert code == 0, f"{command}\n{seen[-3000:]}"
                continue
            seen = []
            eventually(lambda c=command, t=text: seen.append(do(clean, c)[1]) or is_so(t, seen[-1]),
                       20, 0.5, f"{command}: as {block.page.name} has it")  # fmt: skip
        print(f"{block.page.name}:{block.line}: {time.monotonic() - started:.0f} s")

    took = time.monotonic() - begin
    assert any("explain" in b.text and "DROPPED" in b.text for b in BLOCKS)
    assert took < MINUTES * 60 * PATIENCE, took
