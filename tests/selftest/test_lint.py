# SPDX-License-Identifier: BSD-3-Clause
"""`make lint` refuses bad code and commit messages, and accepts good ones."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lint"))
import commits  # noqa: E402

BODY = "\n\nBecause of that.\n"


@pytest.mark.parametrize("subject", [
    "build: split the Makefile", "rib/commit: Fix an overflow", "fwd: use 4 buckets", "tests, docs: embed figures",
])  # fmt: skip
def test_a_good_message_is_accepted(subject):
    assert commits.faults(subject + BODY) == []


@pytest.mark.parametrize("message, words", [
    ("build: " + "x " * 40 + BODY, "characters"),
    ("Whether OSPF has both links is asked in one place" + BODY, "area: imperative"),
    ("fwd: the ring is drained" + BODY, "imperative: the"),
    ("fwd: drained the ring" + BODY, "imperative: drained"),
    ("fwd: drain the ring." + BODY, "dot"),
    ("fwd: drain the ring", "no body"),
    ("fwd: drain the ring\nbecause", "no body"),
])  # fmt: skip
def test_a_bad_message_is_refused(message, words):
    assert any(words in fault for fault in commits.faults(message)), commits.faults(message)


def test_the_hook_reads_what_git_leaves_in_the_file(tmp_path, capsys):
    path = tmp_path / "message"
    path.write_text("fwd: drain the ring\n\nWhy.\n# Please enter the commit message\n")
    assert commits.main(str(path)) == 0
    path.write_text("fwd: drain the ring\n\n# Please enter the commit message\n")
    assert commits.main(str(path)) == 1 and "no body" in capsys.readouterr().err
