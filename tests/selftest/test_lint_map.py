# SPDX-License-Identifier: BSD-3-Clause
"""`make lint` compares the map of files in design.md with the tree."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lint"))
import design_map  # noqa: E402

FILES = {
    "poptrie/node.h": "static inline uint32_t\nleaf_get(void)\n{\n}\n",
    "fpm-dataplane/rib/group.c": "void\ngroup_fill(int n)\n{\n\tmember_of_path(n);\n}\n",
    "fpm-dataplane/rib/group.h": "void group_fill(int n);\n",
    "tests/unit/test_x.c": "",
}
MAP = """# Layout

## 8. Which file does what

### poptrie/

- `node.h`: Reads and writes nodes.

### rib/

- `group.c`: Assigns buckets of a group
  to its members.

### tests/

- `unit/`: Tests of single files.

## 9. Where do I look for ...?

| question | file and function |
|---|---|
| A member leaves | `rib/group.c: group_fill`; buckets: `poptrie/node.h: leaf_get` |
"""


def problems(tmp_path, old="", new="", more=()):
    """Return the problems of the map with `new` in the place of `old`, in a tree with `more`
    files."""
    assert old in MAP
    for name, code in {**FILES, **dict.fromkeys(more, "")}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    (tmp_path / "fpm-dataplane/doc").mkdir()
    (tmp_path / "fpm-dataplane/doc/design.md").write_text(MAP.replace(old, new))
    found = []
    design_map.check(tmp_path, lambda path, line, text: found.append((line, text)))
    return found


def test_a_whole_map_is_accepted_and_a_header_goes_with_its_file(tmp_path):
    assert problems(tmp_path) == []


@pytest.mark.parametrize("more", ["fpm-dataplane/rib/new.c", "tap-bridge/new.h", "poptrie/a/new.c", "tests/new/x.py"])  # fmt: skip
def test_a_file_without_a_line_is_refused(tmp_path, more):
    name = "tests/new/" if more.startswith("tests/") else more
    assert problems(tmp_path, more=[more]) == [(1, f'no line in "{design_map.FILES}" for {name}')]


@pytest.mark.parametrize("old, new, line, words", [
    ("`node.h`", "`knot.h`, `node.h`", 7, "there is no poptrie/knot.h"),
    ("`unit/`: ", "`unit/`, `system/`: ", 16, "there is no tests/system/"),
    ("- `node.h`: ", "- `node.h`: Reads all of it.\n- `node.h`: ", 8, "a second line for poptrie/node.h"),
    ("Reads and writes nodes.", "", 7, "a sentence of 3 to"),
    ("Reads and writes nodes.", "word " * 31, 7, "a sentence of 3 to"),
    ("to its members", "word " * 31, 11, "a sentence of 3 to"),
    ("`rib/group.c: ", "`rib/groups.c: ", 22, "there is no rib/groups.c"),
    (": group_fill`", ": group_fill, group_empty`", 22, "rib/group.c does not define group_empty"),
    (": group_fill`", ": member_of_path`", 22, "rib/group.c does not define member_of_path"),
    ("## 8. Which", "## 8. What", 1, "no section"),
    ("## 9. Where", "## 9. Here", 1, "no section"),
])  # fmt: skip
def test_a_map_that_is_not_so_is_refused(tmp_path, old, new, line, words):
    found = problems(tmp_path, old, new)
    assert any(n == line and words in text for n, text in found), found
