# SPDX-License-Identifier: BSD-3-Clause
"""The limits of the kernel's neighbor tables while tests run side by side."""

import pytest

from lib import neigh_limits


@pytest.fixture
def values(tmp_path, monkeypatch):
    """Replace the kernel's limits by files with those of Linux. Returns a function that reads them."""
    monkeypatch.setattr(neigh_limits, "_path", lambda *which: tmp_path / "-".join(map(str, which)))
    monkeypatch.setattr(neigh_limits, "LOCK", tmp_path / "lock")
    names = [f"{family}-{number}" for family in ("ipv4", "ipv6") for number in (2, 3)]
    for name in names:
        (tmp_path / name).write_text("512" if name.endswith("2") else "1024")
    return lambda: [int((tmp_path / name).read_text()) for name in names]


def test_the_limits_are_restored_after_an_error(values):
    with pytest.raises(KeyError), neigh_limits.limits(300, 4000):
        assert values() == [300, 4000] * 2
        raise KeyError
    assert values() == [512, 1024] * 2


def test_a_suite_lowers_no_limit_and_leaves_those_that_another_suite_has_raised(values):
    with neigh_limits.at_least(300, 4000):
        assert values() == [512, 4000] * 2
        with neigh_limits.at_least(9000, 9000):
            assert values() == [512, 4000] * 2
        assert values() == [512, 4000] * 2
    assert values() == [512, 1024] * 2


def test_a_machine_whose_limits_cannot_be_written_keeps_them(tmp_path, monkeypatch):
    monkeypatch.setattr(neigh_limits, "_path", lambda *which: tmp_path / "absent")
    with neigh_limits.limits(3000, 4000):
        assert list(tmp_path.iterdir()) == []
