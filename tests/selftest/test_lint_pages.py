# SPDX-License-Identifier: BSD-3-Clause
"""The faults of pages that `make lint` reports."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lint"))
import pages  # noqa: E402

LONG = "word " * 40  # 200 characters


def faults(tmp_path, text, name="doc/page.md", exempt=()):
    """Return the faults of a page with this text as [(line, words)]. Its folder has other.md."""
    page = tmp_path / name
    page.parent.mkdir(parents=True, exist_ok=True)
    (page.parent / "other.md").write_text("# Other\n\n## A heading, long\n\n```sh\n# no heading\n```\n")
    page.write_text(text)
    found = []
    pages.check(tmp_path, [page], lambda path, n, words: found.append((n, words)), exempt)
    return found


@pytest.mark.parametrize("text", [
    "[a](other.md) [b](other.md#a-heading-long) [c](https://example.net/none.md) [d](#top)\n\n# Top\n",
    "[a]: other.md\n", "[a]: https://example.net\n",
    f"```text\n{LONG}\n[a](none.md)\n```\n",
    f"| {'x' * 160} | {'y' * 160} |\n",
    f"| {'x' * 100} \\| {'y' * 40} |\n",
    "https://example.net/" + "x" * 150 + "\n",
])  # fmt: skip
def test_a_good_page_is_accepted(tmp_path, text):
    assert faults(tmp_path, text) == []


@pytest.mark.parametrize("text, line, words", [
    ("\n[a](none.md)\n", 2, "leads nowhere: none.md"),
    ("[a]: none.md\n", 1, "leads nowhere: none.md"),
    ("[a](other.md#nothing)\n", 1, "no heading: other.md#nothing"),
    ("[a](other.md#no-heading)\n", 1, "no heading"),
    ("[a](#top)\n", 1, "no heading: #top"),
    (f"short\n{LONG}\n", 2, "200 columns"),
    (f"| a |\n|---|\n| {'x' * 161} |\n", 3, "cell of 161"),
    ("see `../shared/FPM.md`\n", 1, "outside of the repository"),
    ("```sh\ncat ../shared/FPM.md\n```\n", 2, "outside of the repository"),
])  # fmt: skip
def test_a_bad_page_is_refused(tmp_path, text, line, words):
    found = faults(tmp_path, text)
    assert any(n == line and words in what for n, what in found), found


def test_an_exempt_page_may_have_long_lines_but_no_dead_links(tmp_path):
    text = f"{LONG}\n[a](none.md)\n"
    assert [n for n, _ in faults(tmp_path, text, exempt=["doc/page.md"])] == [2]


def test_an_exempt_page_exists(tmp_path):
    assert "no such page" in faults(tmp_path, "", exempt=["doc/gone.md"])[0][1]


def test_readme_has_130_lines_of_100_columns(tmp_path):
    assert faults(tmp_path, "x\n" * 129 + "y" * 100, name="README.md") == []
    assert faults(tmp_path, "x\n" * 131, name="README.md") == [(131, "131 lines (at most 130)")]
    assert faults(tmp_path, f"```sh\n{'x' * 101}\n```\n", name="README.md") == [(2, "101 columns (at most 100)")]


def test_a_changelog_has_each_entry_of_a_version_once(tmp_path):
    """The same entry may be in two versions, but not twice in one."""
    text = "## 0.2\n\n- A new key.\n- A fix.\n\n### Speed\n\n- A fix.\n\n## 0.1\n\n- A fix.\n"
    assert faults(tmp_path, text, name="CHANGELOG.md") == [(8, "an entry that is also in line 4")]
