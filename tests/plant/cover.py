# SPDX-License-Identifier: BSD-3-Clause
"""Map the lines of the product to the tests that execute them: unit programs and single cases of
the system tests. The map is kept in build/plant/cover/ until the product changes. The part of a
test is kept until its file changes."""

import base64
import bisect
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import zlib
from pathlib import Path

import faults

FLAGS = "CFLAGS_release=-Og -g -fsanitize-coverage=trace-pc"
FETCHED = ("frr-root", "prometheus")  # in build/, by `make`; some system tests use them
UNIT_S, SYSTEM_S = 900, 2400  # limits for a unit program and for a file of system tests


def digest(root, paths):
    """Return a hash of files."""
    found = hashlib.sha256()
    for path in sorted(map(str, paths)):
        found.update(path.encode() + b"\0" + Path(root, path).read_bytes() + b"\0")
    return found.hexdigest()[:16]


def of_product(root):
    """Return a hash of the product's C code and of its build rules."""
    return digest(root, [*faults.sources(root), *faults.headers(root), "Makefile"])


class Code:
    """The addresses of a program's blocks, and the lines of each block."""

    def __init__(self, program):
        said = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", program],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rows = re.findall(
            r"^ *([0-9a-f]+):\s+call.*<__sanitizer_cov_trace_pc(.*)>$", said, re.M
        )
        # A call is 5 octets long. A note belongs to the address behind the call.
        self.starts = [int(at, 16) for at, _ in rows]
        heads = [int(at, 16) for at in re.findall(r"^([0-9a-f]+) <.*>:$", said, re.M)]
        base = int(
            re.search(
                r"^([0-9a-f]+) . .* __executable_start$",
                subprocess.run(
                    ["objdump", "-t", program], capture_output=True, text=True, check=True
                ).stdout,
                re.M,
            )[1],
            16,
        )
        self.block_of = {(at + 5 - base) // 4: n for n, at in enumerate(self.starts)}
        self.lines = [[] for _ in self.starts]  # of each block: (file, line)
        for address, file, line in self._rows(program):
            n = bisect.bisect_right(self.starts, address) - 1
            head = bisect.bisect_right(heads, address) - 1
            if n < 0 or self.starts[n] < heads[head]:
                n += 1  # code before the first call in its function belongs to that call
            if n < len(self.lines):
                self.lines[n].append((file, line))

    @staticmethod
    def _rows(program):
        """Yield (address, file, line) of the product's lines. The line tables name the file of a
        compilation unit without its folder. The names of the units have the folders and are in the
        same order."""
        run = lambda *words: subprocess.run(  # noqa: E731
            ["objdump", *words, program], capture_output=True, text=True, check=True
        ).stdout
        info = run("--dwarf=info", "--dwarf-depth=1")
        names = re.findall(r"DW_AT_name\s*:(?: \(.*?\):)? (.*?)\s*$", info, re.M)
        unit, file, rows = -1, "", []
        for line in run("-WL").splitlines():
            if line.startswith("File name "):
                unit += 1
                file = names[unit]
            elif line.endswith(":"):
                file = os.path.normpath(line[:-1])
            else:
                row = re.match(r"\S+ +(\d+) +0x([0-9a-f]+)", line)
                if row and file.split("/")[0] in faults.FOLDERS:
                    rows.append((int(row[2], 16), file, int(row[1])))
        return rows

    def executed(self, notes):
        """Return {file: mask} of the blocks that were entered: bit n is line n."""
        masks = {}
        for found in re.finditer(rb"[^\0]", notes):
            for file, line in self.lines[self.block_of[found.start()]]:
                masks[file] = masks.get(file, 0) | 1 << line
        return masks

    def all(self):
        """Return {file: mask} of all blocks."""
        masks = {}
        for rows in self.lines:
            for file, line in rows:
                masks[file] = masks.get(file, 0) | 1 << line
        return masks


def merged(one, other):
    """Return the union of two {file: mask}."""
    return {
        file: one.get(file, 0) | other.get(file, 0) for file in one.keys() | other.keys()
    }


class Case:
    """A unit program, or a case of the system tests."""

    def __init__(self, name, row):
        self.name, self.s, self.setup, self.how = name, row["s"], row["setup"], row["how"]
        self.masks = {file: int(mask, 16) for file, mask in row["lines"].items()}
        self.n_lines = sum(mask.bit_count() for mask in self.masks.values()) or 1

    def executes(self, file, lines):
        """Return True if the case executes one of the lines (a mask)."""
        return bool(self.masks.get(file, 0) & lines)

    def share(self, file):
        """Return the fraction of the case's executed lines that are in `file`."""
        return self.masks.get(file, 0).bit_count() / self.n_lines


class Map:
    """All cases; `unit` and `system` are {name: Case}."""

    def __init__(self, folder):
        self.folder = folder
        self.unit, self.system, self.code = {}, {}, {}

    def read(self):
        """Read the files of the map."""
        for path in sorted(self.folder.glob("*/*.json.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                found = json.load(file)
            kind = self.unit if path.parent.name == "unit" else self.system
            kind.update({name: Case(name, row) for name, row in found["cases"].items()})
            self.code = merged(self.code, {f: int(m, 16) for f, m in found["code"].items()})
        return self

    def lines_of(self, fault):
        """Return the lines of a fault that have code, as a mask. If none has, the nearest line
        before."""
        code = self.code.get(fault.file, 0)
        lines = code & ((1 << fault.last_line + 1) - (1 << fault.line))
        before = code & ((1 << fault.line) - 1)
        return lines or (1 << before.bit_length() - 1 if before else 0)

    def cases(self, kind, fault):
        """Return the cases that pass without the fault and execute a line of it, the best first: of
        each file of tests the two cases with the largest share in the faulty file, then two more,
        and so on."""
        lines = self.lines_of(fault)
        found = [
            c
            for c in getattr(self, kind).values()
            if c.how == "passed" and c.executes(fault.file, lines)
        ]
        found.sort(key=lambda c: (-c.share(fault.file), c.s, c.name))
        rank, of_file = {}, {}
        for case in found:
            file = case.name.split("::")[0]
            of_file[file] = of_file.get(file, 0) + 1
            rank[case.name] = (of_file[file] - 1) // 2 if kind == "system" else 0
        return sorted(found, key=lambda c: rank[c.name])


def write(path, content, cases, code):
    """Write the results of a file of tests."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {
        "content": content,
        "cases": cases,
        "code": {file: hex(mask) for file, mask in code.items()},
    }
    with gzip.open(
        path.with_suffix(".new"), "wt", encoding="utf-8", compresslevel=3
    ) as file:
        json.dump(row, file)
    os.replace(path.with_suffix(".new"), path)


def known(path, content):
    """Return True if the map has this test and the test has not changed since."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return json.load(file)["content"] == content
    except (OSError, ValueError, EOFError):
        return False


class Maker:
    """Makes the map in a tree that was built for it (`tree`: box.Tree)."""

    def __init__(self, tree, folder, unit_programs):
        self.tree, self.folder, self.programs = tree, folder, unit_programs
        self._code = {}

    def jobs(self):
        """Return [(kind, name, path, content)] of the tests that the map does not have: "unit" or
        "system", the name, the file of the map for the test, the digest of the test."""
        root, found = self.tree.root, []
        helpers = sorted(
            p.relative_to(root)
            for p in root.glob("tests/unit/*.[ch]")
            if not p.name.startswith("test_") or p.suffix == ".h"
        )
        for name in self.programs:
            content = digest(root, [f"tests/unit/{name}.c", *helpers])
            path = self.folder / "unit" / f"{name}.json.gz"
            if not known(path, content):
                found.append(("unit", name, path, content))
        helpers = [p.relative_to(root) for p in root.glob("tests/lib/*.py")]
        helpers += [
            p.relative_to(root)
            for p in root.glob("tests/system/*.py")
            if not p.name.startswith("test_")
        ]
        for test in sorted(root.glob("tests/system/test_*.py")):
            content = digest(root, [test.relative_to(root), *helpers])
            path = self.folder / "system" / f"{test.stem}.json.gz"
            if not known(path, content):
                found.append(("system", test.stem, path, content))
        return found

    def code(self, program):
        """Return the Code of a program."""
        if program not in self._code:
            self._code[program] = Code(program)
        return self._code[program]

    def lines(self, notes, where):
        """Return (masks executed, masks of all code) of {program: notes} of plant_plugin.py."""
        done, there = {}, {}
        for program, text in notes.items():
            path = self.tree.root / "build/release" / where / program
            if not path.is_file():
                continue  # a copy under another name
            code = self.code(str(path))
            done = merged(done, code.executed(zlib.decompress(base64.b64decode(text))))
            there = merged(there, code.all())
        return done, there

    def unit(self, box, name, path, content):
        """Run a unit program."""
        told = self.tree.root / f"build/told-{name}"
        told.unlink(missing_ok=True)
        script = '"build/release/tests/unit/$1"; rc=$?; "$3" tests/plant/plant_plugin.py >"$2"; exit $rc'
        argv = ["sh", "-c", script, "sh", name, str(told), sys.executable]
        begin = time.monotonic()
        code, said = box.run(self.tree.root, argv, UNIT_S)
        notes = (
            json.loads(told.read_text()) if told.exists() and told.stat().st_size else {}
        )
        told.unlink(missing_ok=True)
        done, _ = self.lines(notes, "tests/unit")
        there = self.code(str(self.tree.root / "build/release/tests/unit" / name)).all()
        ok = code == 0 and re.search(r"^\[ *(OK|SKIPPED) *\]", said, re.M)
        row = {
            "s": round(time.monotonic() - begin, 2),
            "setup": 0,
            "why": "",
            "how": "passed" if ok else "failed",
            "lines": {f: hex(m) for f, m in done.items()},
        }
        write(path, content, {name: row}, there)
        return row["how"], row["s"]

    def system(self, box, name, path, content):
        """Run a file of system tests."""
        told = self.tree.root / f"build/told-{name}"
        told.unlink(missing_ok=True)
        begin = time.monotonic()
        box.run(
            self.tree.root,
            [*PYTEST, f"tests/system/{name}.py"],
            SYSTEM_S,
            {
                **self.tree.env,
                "PLANT_TOLD": str(told),
                "PLANT_NOTES": "1",
                "FDP_PATIENCE": "4",
            },
            log=str(self.tree.root / f"build/log-{name}"),
        )
        cases, there = {}, {}
        for row in read_told(told):
            if "end" in row:
                done, all_ = self.lines(row["notes"], ".")
                there = merged(there, all_)
                cases[row["end"]] = {
                    "s": row["s"],
                    "setup": row["setup"],
                    "how": row["how"],
                    "why": row["why"],
                    "lines": {f: hex(m) for f, m in done.items()},
                }
        write(path, content, cases, there)
        told.unlink(missing_ok=True)
        passed = sum(row["how"] == "passed" for row in cases.values())
        return f"{passed} of {len(cases)} passed", round(time.monotonic() - begin)


PYTEST = [
    "/usr/bin/python3",
    "-m",
    "pytest",
    "-q",
    "--no-header",
    "-p",
    "no:cacheprovider",
    "-p",
    "plant_plugin",
    "--basetemp=/tmp/plant-pytest",
]


def read_told(path):
    """Return the rows that plant_plugin.py wrote."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]
