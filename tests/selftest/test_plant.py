# SPDX-License-Identifier: BSD-3-Clause
"""`make plant`: equal seeds give equal faults, a planted fault is found, and nothing stays."""

import os
import random
import subprocess
import sys
import types

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "plant"))

import box  # noqa: E402
import cover  # noqa: E402
import faults  # noqa: E402
import plant  # noqa: E402
import trial  # noqa: E402

TINY = """\
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

struct tiny {
	_Atomic int ready;
	int n, m;
	char *text;
};

void tiny_end(struct tiny *t);
int tiny_add(struct tiny *t, int n);

void
tiny_end(struct tiny *t)
{
	free(t->text);
	t->text = NULL;
	atomic_store_explicit(&t->ready, 0, memory_order_release);
}

int
tiny_add(struct tiny *t, int n)
{
	assert(n > -7);
	if (n < 0 || n >= 10) /* more than 10 < 20 */
		return -1;
	t->n++;
	return t->n + 1;
}
"""

TEST = """\
#include <stdio.h>

struct tiny { int ready, n, m; char *text; };
int tiny_add(struct tiny *t, int n);

int
main(void)
{
	struct tiny t = {0};

	if (tiny_add(&t, 3) != 2 || tiny_add(&t, 10) != -1)
		return 1;
	puts("[       OK ] sums");
	return 0;
}
"""

MAKEFILE = """\
build/asan/tests/unit/test_tiny: poptrie/tiny.c test_tiny.c
	mkdir -p $(@D)
	gcc -o $@ $^
"""


@pytest.fixture
def source(tmp_path):
    """A project of one file."""
    for name, text in (
        ("poptrie/tiny.c", TINY),
        ("test_tiny.c", TEST),
        ("Makefile", MAKEFILE),
    ):
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "source"


@pytest.fixture
def found(source):
    """Return the faults that can be planted in the file."""
    pytest.importorskip("clang.cindex", reason="make plant installs python3-clang-14")
    here = os.getcwd()
    try:
        return faults.of_tree(source, ["-std=gnu17"])[0]
    finally:
        os.chdir(here)


def changes(found, kind):
    """Return {(text, its replacement)} of a kind."""
    text = TINY.encode()
    return {(text[f.start : f.end], f.new) for f in found if f.kind == kind}


def test_each_kind_of_fault_is_listed_but_for_what_checks(found):
    assert changes(found, "bound") == {(b"<", b"<="), (b">=", b">"), (b" + 1", b"")}
    assert changes(found, "free") == {(b"free(t->text)", b"(void)0")}
    assert changes(found, "pointer") == {(b"t->text = NULL", b"(void)0")}
    assert changes(found, "counter") == {(b"t->n++", b"(void)0")}
    assert changes(found, "order") == {(b"memory_order_release", b"memory_order_relaxed")}
    assert (b"n < 0", b"!(n < 0)") in changes(found, "condition")
    assert (b"n", b"m") in changes(found, "constant")
    assert not any(f.line == 25 for f in found), "assert() has no faults"


def test_faults_are_looked_for_in_the_files_that_make_compiles():
    """`make plant` looks for faults in exactly the files that make compiles here. Other CPUs have files
    that this machine's headers cannot parse. Programs for `hook load` have headers of their own."""
    said = subprocess.run(
        ["make", "-n", "plant"], cwd=plant.ROOT, check=True, capture_output=True, text=True
    ).stdout
    sources = set(said.split('SOURCES="')[1].split('"')[0].split())

    objects = plant.ROOT / "build/release/obj"
    compiled = {str(p.relative_to(objects).with_suffix(".c")) for p in objects.rglob("*.o")}
    compiled = {f for f in compiled if f.startswith(faults.FOLDERS) and (plant.ROOT / f).exists()}
    assert sources == compiled


def test_equal_seeds_choose_equal_faults_whatever_their_order(found):
    mixed = random.Random(1).sample(found, len(found))

    assert plant.chosen(found, 6, "7") == plant.chosen(mixed, 6, "7")
    assert plant.chosen(found, 6, "7") != plant.chosen(found, 6, "8")
    kinds = {f.kind for f in found}
    assert {slot[0].kind for slot in plant.chosen(found, len(kinds), "7")} == kinds


def test_faults_are_limited_to_folders_and_kinds(found):
    assert plant.selected(found, "", "") == found
    assert plant.selected(found, "poptrie", "") == found
    assert {f.kind for f in plant.selected(found, "fwd,poptrie", "bound,free")} == {"bound", "free"}
    with pytest.raises(SystemExit, match="no place"):
        plant.selected(found, "trie", "")


def test_no_fault_is_planted_twice(found):
    slots = plant.chosen(found, len(found), "7")
    firsts = [slot[0] for slot in slots]

    assert sorted(firsts) == sorted(found)


def test_every_fault_compiles_and_keeps_the_lines(found, tmp_path):
    for fault in found:
        text = fault.planted(TINY.encode())

        assert text.count(b"\n") == TINY.count("\n")
        subprocess.run(
            ["gcc", "-w", "-x", "c", "-c", "-o", "/dev/null", "-"], input=text, check=True
        )


def test_a_fault_is_found_and_taken_back(found, source, tmp_path):
    reason = box.why_not()
    if reason:
        pytest.skip(reason)
    base, tree = (box.Tree(tmp_path / name, ["make", "-s"]) for name in ("base", "tree"))
    for one in (base, tree):
        one.copy(source)
    assert base.make("build/asan/tests/unit/test_tiny")[0]
    row = {
        "s": 0.1,
        "setup": 0,
        "how": "passed",
        "lines": {"poptrie/tiny.c": hex((1 << 33) - 1)},
    }
    known = cover.Map(tmp_path)
    known.unit = {"test_tiny": cover.Case("test_tiny", row)}
    known.code = known.unit["test_tiny"].masks
    facts = {"unit": {"asan": {"test_tiny"}}}
    shared = types.SimpleNamespace(map=known, alone=None, facts=facts)
    said = {}
    with box.Box(0) as its:
        for fault in found:
            tree.plant(fault)
            one = trial.Trial(fault, tree, base, its, shared)
            said[fault.function, fault.kind, fault.line] = one.run(trial.TIERS[0])
            tree.restore()

    assert said["tiny_add", "counter", 28][0] == "test_tiny"
    assert said["tiny_add", "condition", 26][2] == "found"
    assert said["tiny_end", "free", 17] == ("", "", "1 of 1 programs passed")
    assert (tree.root / "poptrie/tiny.c").read_text() == TINY
    assert not os.path.exists(its.group)


def test_what_is_killed_takes_all_its_processes_with_it(tmp_path):
    reason = box.why_not()
    if reason:
        pytest.skip(reason)
    with box.Box(0) as its:
        code, _ = its.run(
            tmp_path, ["sh", "-c", "sleep 98765 & touch started; sleep 98765"], 2
        )

    said = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout
    assert code is None and (tmp_path / "started").exists()
    assert "sleep 98765" not in said
