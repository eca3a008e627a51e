# SPDX-License-Identifier: BSD-3-Clause
"""`make lint` refuses bad code and commit messages, and accepts good ones."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lint"))
import circles  # noqa: E402
import commits  # noqa: E402
import english  # noqa: E402
import lint  # noqa: E402

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


@pytest.mark.parametrize("name, text, words", [
    ("a.c", "/* Find the way back of a packet. */", "path"),
    ("a.c", "/* The peer is told at once. */", "is notified"),
    ("a.c", "/* Count the packet inside. */", "inner packet"),
    ("a.c", "/* The route leads nowhere. */", "no egress"),
    ("a.c", "/* The source is an own address. */", "an address of this router"),
    ("a.c", "/* Choose a route. Of two routes the first counts. */", "one of several"),
    ("a.c", "struct fib_ways *ways;", "next hop, path, egress"),
    ("a.py", "for _WAYS in x: pass", "path, mode"),
    ("a.c", 'log_info("port: it is up now: %s", name);', "key=value"),
    ("a.c", 'log_warn("port: mtu not set error=%s", why);', "key=value"),
    ("a.h", 'log_write(level, "dpdk: %.*s", n, text);', "key=value"),
    ("a.c", "/* The same for IPv6. */", "the comment before"),
    ("a.md", "Somebody is there.", "name the program"),
    ("openapi.yaml", "description: what is kept  # the descriptors", "name the thing"),
    ("topology.toml", "# What r1 is connected to.", "start with a verb"),
    ("daemons", "# Which daemons run.", "start with a verb"),
    ("frr.conf", "! Packets that go nobody knows where.", "name the program"),
])  # fmt: skip
def test_bad_english_is_refused(tmp_path, name, text, words):
    (tmp_path / name).write_text(text + "\n")
    found = english.problems(tmp_path / name)
    assert any(words in problem for _, problem in found), found


@pytest.mark.parametrize("name, text", [
    ("a.c", "/* Find the reverse path in the same way. The two are told apart by the port. */"),
    ("a.c", 'log_info("port: mtu changed name=%s mtu=%u%s", name, mtu, more);'),
    ("a.c", 'log_warn("port: mtu not set error=\\"%s\\" missed=%u", why, missed);'),
    ("a.md", "The migration works either way."),
])  # fmt: skip
def test_good_english_is_accepted(tmp_path, name, text):
    (tmp_path / name).write_text(text + "\n")
    assert english.problems(tmp_path / name) == []


def test_a_circle_of_files_is_found():
    """Files that call each other by a third file are a circle. A member, a type, a static function
    or a text with the name of a function is no call."""
    one = "void\none(void)\n{\n\ttwo();\n}\n"
    two = "int x;\n\nvoid\ntwo(void)\n{\n\tthree(&x);\n}\n"
    three = "void\nthree(int *p)\n{\n\t%s;\n}\n"
    texts = {"one.c": one, "two.c": two}
    assert sorted(circles.find({**texts, "three.c": three % "one()"})) == ["one.c", "three.c", "two.c"]
    for use in ("p->one = 1", "struct one o", '/* one() */ log("one")'):
        assert circles.find({**texts, "three.c": three % use}) is None
    static = "static void\none(void)\n{\n}\n\n"
    assert circles.find({**texts, "three.c": static + three % "one()"}) is None


def test_a_header_with_the_name_of_a_strange_source_is_found(tmp_path):
    """A header may have the name of a source file of another folder only if it has its own source."""
    for name in ("a/one.c", "a/two.c", "b/one.h", "b/two.h", "b/two.c", "b/three.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = []
    circles.check_names(tmp_path, ("a", "b"), lambda path, line, text: found.append((path.name, text)))
    assert found == [("one.h", "it has the name of a/one.c, which does something else")]


def test_a_circle_of_headers_is_found():
    """Headers that include each other by a third header are a circle. Two headers that include a
    third one, which does not include them, are none."""
    texts = {"a/one.h": '#include "a/two.h"\n#include <b.h>\n', "a/two.h": '#include "b/three.h"\n'}
    circle = circles.find_headers({**texts, "b/three.h": '# include "a/one.h"\n'})
    assert sorted(circle) == ["a/one.h", "a/two.h", "b/three.h"]
    three = {"b/three.h": "", "a/four.h": '#include "b/three.h"\n'}
    assert circles.find_headers({**texts, **three}) is None


@pytest.mark.parametrize("line, faults", [
    ("test_vlan_moved (guest): `renamed`", 0),
    ("test_vlan_moved (guest): `renamed`, `no_such_test`", 1),
    ("test_neigh: `no_packet_overtakes`, `no_such_test`", 1),
    ("test_no_such_file: `renamed`", 1),
])  # fmt: skip
def test_a_claim_names_tests_that_exist(line, faults, monkeypatch):
    """Words behind the name of a file of tests occur in names of its tests, also in guests."""
    found = []
    monkeypatch.setattr(lint, "problem", lambda _path, _n, text: found.append(text))
    lint.check_claim(lint.ROOT / "README.md", 1, line)
    assert len(found) == faults, found
