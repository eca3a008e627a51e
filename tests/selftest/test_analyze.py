# SPDX-License-Identifier: BSD-3-Clause
"""What `make analyze` makes of the findings of its tools."""

import os

import pytest

from lint import analyze

SOURCE = "static int\nf(void)\n{\n\treturn 1;\n\treturn 2;\n}\n\nint\ng(void)\n{\n\treturn f();\n}\n"


@pytest.fixture
def analyzed(tmp_path, monkeypatch, capsys):
    """analyzed(known, gcc=..., cppcheck=..., tidy=...): (exit code, lines) of an analysis of a file
    with functions f and g, by such shell scripts; a tool without one has nothing to say."""
    programs = {"gcc": "gcc", "cppcheck": "cppcheck", "tidy": "clang-tidy-14"}
    (tmp_path / "x.c").write_text(SOURCE)
    monkeypatch.setattr(analyze, "ROOT", tmp_path)
    monkeypatch.setattr(analyze, "sources", lambda: ["x.c"])
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    analyze.heads.cache_clear()

    def look(known, **scripts):
        monkeypatch.setattr(analyze, "KNOWN", dict.fromkeys(known, "why"))
        for tool, program in programs.items():
            (tmp_path / program).write_text(f"#!/bin/sh\n{scripts.get(tool, '')}\n")
            (tmp_path / program).chmod(0o755)
        code = analyze.main([str(tmp_path / "gcc"), "--"])
        return code, capsys.readouterr().out.splitlines()

    yield look
    analyze.heads.cache_clear()


SAID = {
    "gcc": ("echo 'x.c:{}:1: warning: leak of a [CWE-401] [-Wanalyzer-malloc-leak]' >&2", "malloc-leak"),
    "cppcheck": ("echo 'x.c:{}:memleak:Memory leak: a' >&2", "memleak"),
    "tidy": ('echo "$PWD/x.c:{}:1: warning: a is lost [bugprone-a]"', "bugprone-a"),
}


@pytest.mark.parametrize("tool", SAID)
def test_an_analyzer_that_fails_is_not_clean(analyzed, tool):
    """It is killed, or refuses what it is asked, whatever it found before: that is a problem, and
    what it said of it is shown."""
    finding, check = SAID[tool]
    known = [(tool, "x.c", "f", check, 1)]
    one = finding.format(4)

    assert analyzed(known, **{tool: one}) == (0, ["analyze: 1 C files, 1 known, 0 problem(s)"])
    code, lines = analyzed(known, **{tool: f"{one}; kill -SEGV $$"})
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("x.c:1: exit code -11: ")
    code, lines = analyzed([], **{tool: "echo fatal error: no such file; echo end; exit 1"})
    assert code == 1
    assert lines[0] == f"x.c:1: exit code 1: fatal error: no such file [{tool}: failed]"


@pytest.mark.parametrize("tool", SAID)
def test_a_reason_is_for_one_finding(analyzed, tool):
    """The same check's in another function shows, and so does a second one in that function, and
    a reason for which there is none any more."""
    finding, check = SAID[tool]
    known = [(tool, "x.c", "f", check, 1)]
    at = lambda *lines: {tool: "; ".join(finding.format(n) for n in lines)}  # noqa: E731

    code, lines = analyzed(known, **at(4, 11))
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("x.c:11: ") and lines[0].endswith(f"[{tool}: {check} in g]")
    code, lines = analyzed(known, **at(4, 5, 5))
    assert code == 1 and [line[:6] for line in lines[:-1]] == ["x.c:4:", "x.c:5:"]
    assert lines[0].endswith(f"[{tool}: {check} in f, 1 known, 2 found]")
    code, lines = analyzed(known)
    assert code == 1 and lines[0].startswith("x.c: no such finding any more")
    assert analyzed([(tool, "x.c", "f", check, 2)], **at(4, 5))[0] == 0
