# SPDX-License-Identifier: BSD-3-Clause
"""A daemon on a kernel that does not do everything, by a library that it is started with."""

import os

import pytest


def use(dut, monkeypatch, name, **words):
    """What is started from now on has lib/NAME.c before its own libraries, told `words`."""
    library = os.path.join(os.path.dirname(dut.daemon.program), "tests", name + ".so")
    if not os.path.exists(library):
        pytest.skip(f"{name}.so is not built for this program")
    monkeypatch.setenv("LD_PRELOAD", library)
    for key, value in words.items():
        monkeypatch.setenv(key, value)


def start(dut, monkeypatch, name, **words):
    """Start the daemon of `dut` so, and nothing else."""
    use(dut, monkeypatch, name, **words)
    dut.start()
    monkeypatch.delenv("LD_PRELOAD")
