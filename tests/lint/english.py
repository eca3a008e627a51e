#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reject sentence patterns that readers have to read twice (fpm-dataplane/doc/style.md).

    english.py PATH...    files or folders; prints FILE:LINE: pattern; exit code 1 when any

Looks at comments and string literals of C, at comments and docstrings of Python, at comments of
shell scripts, makefiles and the files of frr-config, at YAML, and at the text of Markdown and of
manual pages outside of code.
"""

import ast
import functools
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

VERBS = "is|are|was|were|has|have|had|asks?|waits?|reads?|sends?|comes?|came|goes|went|says?|said|wants?|knows?|looks?|takes?|gives?|needs?|does|did"
# (pattern, its replacement)
PATTERNS = [
    (r"\b(nobody|somebody|anybody|everybody|no one|whoever)\b", "name the program or the person"),
    (rf"\bwho(ever)? ({VERBS})\b", "name the program; a program is 'it'"),
    (rf"\bwhat (?:it |they )?({VERBS}|comes|remains|stays|follows)\b", "name the thing"),
    (r"\b(those|the ones?|that one|this one) (that|who|which)\b", "name the things"),
    (r"\b(no more|any more|anymore)\b(?! (than|of|\w+s\b))", "no longer"),
    (r"\banew\b", "again"),
    (r"\b(let|lets|letting) go\b", "release, close"),
    (r"\b(he|him|his|she)\b", "a program is 'it'"),
    (r", for (it|that|what|who|there|they|this|these|those)\b", "because"),
    (r"\b(twin|riddle|for ever)\b", "the plain word"),
    (r"\b(is|are|was|were|been?) told\b(?! (apart|from))", "receives, is notified, is reported"),
    (r"\b(ways? back|ways? out(?! of)|best ways?|right ways?)\b", "path, reverse path, egress interface"),
    (r"\bpackets? inside\b(?! (the|a|it)\b)", "inner packet"),
    (r"\b(leads?|goes) nowhere\b", "has no egress, has no next hop"),
    (r"\ban own\b", "an address of this router, a thread of its own"),
    (r"[.;:] (?-i:Of) (several|two|all|equal|these|those)\b", "if there are several, one of several"),
]
# The first word of a comment that asks, or that leaves the thing without a name.
FIRST = re.compile(
    r"(Of|What|Who|Whose|Is|Has|Have|Does|Do|Did|Are|Was|Were|May|Can|Shall|Will|Which)\b"
)
# The first words of a comment that a reader understands only after another comment.
BEFORE = re.compile(r"The same(,| (of|for|by|after|as|with|while)\b)|(Nor|So) (has|have|does|do|is|are)\b|Another one\b")
# A comment may break between two words of a pattern.
FOUND = [(re.compile(p.replace(" ", r"\s+"), re.I), hint) for p, hint in PATTERNS]


def of_c(text):
    """Yield (line, text, is_comment) of each comment and string literal."""
    token = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'"
    for m in re.finditer(token, text, re.S):
        line, word = text.count("\n", 0, m.start()) + 1, m[0]
        if word.startswith("/"):
            yield line, word, True
        elif word.startswith('"'):
            yield line, word[1:-1], False


@functools.lru_cache(maxsize=1)
def tokens(text):
    """Return the tokens of a Python file."""
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def of_python(text):
    """Yield the same for Python: comments and docstrings."""
    lines = text.splitlines()
    for t in tokens(text):
        if t.type == tokenize.COMMENT:
            yield t.start[0], t.string, True
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node) is not None:
                string = node.body[0].value
                whole = "\n".join(lines[string.lineno - 1 : string.end_lineno])
                yield string.lineno, whole[string.col_offset :], True


def of_hashes(text):
    """Yield the same for shell, make, YAML, TOML and FRR ("! comment"): comments."""
    for n, line in enumerate(text.splitlines(), 1):
        m = re.search(r"(^|\s)#(?!!)(.*)", line) or re.match(r"(!)\s+(.*)", line)
        if m:
            yield n, m[2], True


def of_yaml(text):
    """Yield the same for YAML: comments, and the other text (descriptions)."""
    yield from of_hashes(text)
    for n, line in enumerate(text.splitlines(), 1):
        yield n, re.sub(r"(^|\s)#(?!!).*", "", line), False


def of_markdown(text):
    """Yield the same for Markdown: text outside of code."""
    fenced = False
    for n, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield n, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line), False


# Files whose comments begin with # or, in a configuration of FRR, with !.
HASHES = (".sh", ".mk", ".service", ".conf", ".toml", ".hex", ".ip", ".links", ".nft", ".wg",
          ".postinst", ".preinst")  # fmt: skip
HASHES_NAMES = ("Makefile", "Dockerfile", "daemons", "links", "rules", "run")


def texts(path):
    """Return (line, text, is_comment) of each text of a file."""
    text, name = path.read_text(errors="replace"), path.name
    if name.endswith((".c", ".h", ".def")):
        return of_c(text)
    if name.endswith(".py"):
        return of_python(text)
    if name.endswith((".md", ".rst")):
        return of_markdown(text)
    if name.endswith((".yaml", ".yml")):
        return of_yaml(text)
    if name.endswith(HASHES) or name in HASHES_NAMES:
        return of_hashes(text)
    return ()


# A call of the log: the level, if any, and the literals of the format.
LOG = re.compile(r'\blog_(?:error|warn|info|debug|write)\(\s*(?:\w+,\s*)?((?:"(?:\\.|[^"\\\n])*"\s*)+)')
# `source: event key=value ...` (style.md). A value with blanks is in quotes; %s at the end may add keys.
LOG_FORM = re.compile(r"(?:%s|[a-z]+): [a-z][a-z0-9-]*(?: (?:[a-z0-9-]+|%s))*(?: ?[a-z0-9_%]+=(?:'[^']*'|[^ ']*)| ?%s)*")


def log_problems(text):
    """Yield (line, text) of each log line of C that has another form."""
    for m in LOG.finditer(text):
        line = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', m[1])).replace(r"\"", "'")
        if not LOG_FORM.fullmatch(line) or "error=%s" in line:  # an error is a text in quotes
            yield text.count("\n", 0, m.start()) + 1, f"log line '{line}': write 'source: event key=value ...'"


def names(text):
    """Yield (line, text) of each identifier of C that calls a path or a next hop a way."""
    code = blank(r'/\*(?s:.*?)\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', text)
    for m in re.finditer(r"\b(?:\w+_)?ways?(?:_\w+)?\b", code):
        yield code.count("\n", 0, m.start()) + 1, f"the name '{m[0]}': next hop, path, egress"


def names_of_python(text):
    """Yield the same for Python."""
    for t in tokens(text):
        if t.type == tokenize.NAME and t.string.strip("_").lower() in ("way", "ways"):
            yield t.start[0], f"the name '{t.string}': path, mode, direction, egress"


def blank(pattern, text):
    """Replace each match by as many blanks, so that lines stay where they are."""
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def problems(path):
    """Return [(line, text)] of the problems of a file."""
    found = set()
    if path.name.endswith((".c", ".h")) and "tests" not in path.parts:
        found |= set(log_problems(path.read_text(errors="replace")))
    if path.name.endswith((".c", ".h")):
        found |= set(names(path.read_text(errors="replace")))
    if path.name.endswith(".py"):
        found |= set(names_of_python(path.read_text(errors="replace")))
    for begin, text, is_comment in texts(path):
        quotes = r'`[^`]*`|"[^"]*"' if is_comment and not text.startswith(('"', "r")) else r"`[^`]*`"
        flat = blank(r"(?m)^\s*[*#](?!/)", blank(quotes, text))
        for pattern, hint in FOUND:
            for m in pattern.finditer(flat):
                words = " ".join(m[0].split())
                found.add((begin + flat.count("\n", 0, m.start()), f"'{words}': {hint}"))
        if not is_comment:
            continue
        first = re.match(r"[\s/*#\"r]*", text)
        word = FIRST.match(text, first.end())
        if word:
            found.add((begin, f"begins with '{word[0]}': start with a verb"))
        if BEFORE.match(text, first.end()):
            found.add((begin, "depends on the comment before it: name the thing"))
        if re.search(r"\?\s*(\*/|\"*)?\s*$", text) and "://" not in text:
            found.add((begin, "a question: state the fact"))
    return sorted(found)


def files(paths):
    """Yield all files below the paths."""
    for path in map(Path, paths):
        yield from sorted(p for p in path.rglob("*") if p.is_file() and "build" not in p.parts) if path.is_dir() else [path]


def main(paths):
    """Returns the exit code."""
    n = 0
    for path in files(paths):
        for line, text in problems(path):
            print(f"{path}:{line}: {text}")
            n += 1
    print(f"english: {n} problem(s)")
    return n > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
