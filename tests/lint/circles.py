# SPDX-License-Identifier: BSD-3-Clause
"""Find circles of files: files of one folder that call each other's functions, and headers that
include each other, directly or through others. A part of a program that is a circle can be understood
and tested only as a whole."""

import graphlib
import re

# A definition begins a line: `name(` below its type, or a variable with a value.
FUNCTION = re.compile(r"^(?!static\b)(?:[\w*]+[ *]+)*[\w*]+\n(\w+)\([^;]*?\)\n\{", re.M)
VARIABLE = re.compile(r"^(?!static\b|typedef\b|extern\b)(?:[\w*]+[ *]+)+(\w+)(?:\[[^\]]*\])* =", re.M)
# A name that is no member and no type of a structure.
WORD = re.compile(r"(?<![.>\w])(?<!struct )(?<!enum )(?<!union )[a-z_]\w*")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|^\s*#[^\n]*|"(?:\\.|[^"\\\n])*"', re.S | re.M)


def graph_of(texts):
    """Return {file: files whose functions or variables it names} of the files {name: text} of a
    folder."""
    code = {name: NO_CODE.sub(" ", text) for name, text in texts.items()}
    home = {}
    for name, text in code.items():
        for pattern in (FUNCTION, VARIABLE):
            home.update({m[1]: name for m in pattern.finditer(text)})
    words = {name: set(WORD.findall(text)) - static_names(text) for name, text in code.items()}
    return {
        name: {home[word] for word in words[name] if home.get(word, name) != name} for name in code
    }


def static_names(text):
    """Return the names of static functions, which hide those of other files."""
    return set(re.findall(r"^static\b[^\n;=]*\n(\w+)\(", text, re.M))


def circle_of(graph):
    """Return the files of a circle, or None."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as err:
        return err.args[1][:-1]
    return None


def find(texts):
    """Return the files of a folder that are a circle of calls, or None."""
    return circle_of(graph_of(texts))


def find_headers(texts):
    """Return the headers {path: text} that include each other in a circle, or None."""
    return circle_of(
        {name: {n for n in INCLUDE.findall(text) if n in texts} for name, text in texts.items()}
    )


def check(root, folders, problem):
    """Report a circle in each folder that has one, and headers with misleading names."""
    for folder in folders:
        paths = {path.name: path for path in (root / folder).glob("*.c")}
        circle = find({name: path.read_text() for name, path in paths.items()})
        if circle:
            problem(paths[circle[0]], 1, f"a circle of files that call each other: {', '.join(circle)}")
    check_headers(root, folders, problem)
    check_names(root, folders, problem)


def check_names(root, folders, problem):
    """Report a header without a source file whose name is that of a source file of another folder."""
    sources = {path.stem: path for folder in folders for path in (root / folder).glob("*.c")}
    for folder in folders:
        for path in (root / folder).glob("*.h"):
            other = sources.get(path.stem)
            if other and not path.with_suffix(".c").exists():
                problem(path, 1, f"it has the name of {other.relative_to(root)}, which does something else")


def check_headers(root, folders, problem):
    """Report a circle of headers. Includes name a path below the root or below fpm-dataplane/."""
    texts = {}
    for folder in folders:
        for path in (root / folder).glob("*.h"):
            name = path.relative_to(root).as_posix().removeprefix("fpm-dataplane/")
            texts[name] = path.read_text()
    circle = find_headers(texts)
    if circle:
        problem(root, 1, f"a circle of headers: {', '.join(circle)}")
