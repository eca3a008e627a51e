# SPDX-License-Identifier: BSD-3-Clause
"""`make analyze` reports the findings of its tools that KNOWN does not explain."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lint"))
import analyze  # noqa: E402

SOURCE = "static int\nf(void)\n{\n\treturn 1;\n\treturn 2;\n}\n\nint\ng(void)\n{\n\treturn f();\n}\n"


@pytest.fixture
def analyzed(tmp_path, monkeypatch, capsys):
    """Yield analyzed(known, gcc=..., cppcheck=..., tidy=...), which returns (exit code, lines) of
    an analysis of a file with functions f and g. The tools are these shell scripts; a tool without
    a script finds nothing."""
    programs = {"gcc": "gcc", "cppcheck": "cppcheck", "tidy": "clang-tidy-14"}
    (tmp_path / "x.c").write_text(SOURCE)
    monkeypatch.setattr(analyze, "ROOT", tmp_path)
    monkeypatch.setattr(analyze, "sources", lambda: ["x.c"])
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    analyze.heads.cache_clear()

    def look(known, **scripts):
        monkeypatch.setattr(analyze, "KNOWN", dict.fromkeys(known, "why"))
        for tool, program in programs.items():
            text, path = f"#!/bin/sh\n{scripts.get(tool, '')}\n", tmp_path / program
            if not path.exists() or path.read_text() != text:  # analyze.py looks at its time
                path.write_text(text)
                path.chmod(0o755)
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
    """An analyzer that is killed or refuses its arguments is a problem, whatever it found before.
    `make analyze` prints its output."""
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
    """`make analyze` reports a finding of the same check in another function, a second finding in
    the same function, and a reason without a finding."""
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
    assert code == 1 and lines[0].startswith("x.c: fewer findings than KNOWN has")
    assert analyzed([(tool, "x.c", "f", check, 2)], **at(4, 5))[0] == 0


@pytest.mark.parametrize("tool", SAID)
def test_a_file_is_read_again_only_after_a_change(analyzed, tmp_path, tool):
    """A second run keeps the findings of an unchanged file and does not run its tool. The tool runs again
    after a change of the file, of a header, of a comment or of the tool, and after its failure."""
    header, runs = tmp_path / "x.h", tmp_path / "runs"
    header.write_text("int h;\n")
    preprocess = """case "$*" in *-E*) echo '# 1 "x.h" 1'; exit;; esac"""
    script = f"{SAID[tool][0].format(4)}; echo ran >>{runs}"
    scripts = {"gcc": preprocess, tool: f"{preprocess}; {script}" if tool == "gcc" else script}
    n_runs = lambda: len(runs.read_text().splitlines())  # noqa: E731

    for n in (1, 1):
        code, lines = analyzed([], **scripts)
        assert (code, lines[0][:6], n_runs()) == (1, "x.c:4:", n)
    for n, change in ((2, header), (3, tmp_path / "x.c")):
        change.write_text(change.read_text() + "/* later */\n")
        for _ in range(2):
            analyzed([], **scripts)
            assert n_runs() == n
    scripts[tool] += "; exit 1"
    for n in (4, 5):
        analyzed([], **scripts)
        assert n_runs() == n


def test_a_reason_names_a_function_that_exists(analyzed, monkeypatch):
    """`make lint` reports an entry of KNOWN whose function was renamed."""
    for function, faults in (("f", 0), ("h", 1)):
        known = {("gcc", "x.c", function, "malloc-leak", 1): "why"}
        monkeypatch.setattr(analyze, "KNOWN", known)
        assert len(list(analyze.unknown_functions())) == faults
