# SPDX-License-Identifier: BSD-3-Clause
"""Start the daemon with a library that makes it see a kernel without some feature."""

import os

import pytest


def use(dut, monkeypatch, name, **words):
    """Preload lib/NAME.c, with `words` in the environment, into all programs that start from now
    on."""
    library = os.path.join(os.path.dirname(dut.daemon.program), "tests", name + ".so")
    assert os.path.exists(f"{os.path.dirname(__file__)}/{name}.c"), f"there is no library {name}"
    if not os.path.exists(library):
        pytest.skip(f"{name}.so is not built for this program")
    monkeypatch.setenv("LD_PRELOAD", library)
    for key, value in words.items():
        monkeypatch.setenv(key, value)


def start(dut, monkeypatch, name, **words):
    """Start the daemon of `dut` with the library; other programs start without it."""
    use(dut, monkeypatch, name, **words)
    dut.start()
    monkeypatch.delenv("LD_PRELOAD")
