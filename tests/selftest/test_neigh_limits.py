# SPDX-License-Identifier: BSD-3-Clause
"""The limits of the kernel's neighbor tables while tests run side by side."""

import pytest

from lib import neigh_limits


def test_the_limits_are_restored_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(neigh_limits, "_path", lambda *which: tmp_path / "-".join(map(str, which)))
    for family in ("ipv4", "ipv6"):
        (tmp_path / f"{family}-2").write_text("512\n")
        (tmp_path / f"{family}-3").write_text("1024\n")
    with pytest.raises(KeyError), neigh_limits.limits(3000, 4000):
        assert {path.read_text() for path in tmp_path.iterdir()} == {"3000", "4000"}
        raise KeyError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "ipv4-2": "512", "ipv4-3": "1024", "ipv6-2": "512", "ipv6-3": "1024",
    }  # fmt: skip


def test_a_machine_whose_limits_cannot_be_written_keeps_them(tmp_path, monkeypatch):
    monkeypatch.setattr(neigh_limits, "_path", lambda *which: tmp_path / "absent")
    with neigh_limits.limits(3000, 4000):
        assert list(tmp_path.iterdir()) == []
