#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants faults in the product's C code, one at a time, and reports the tests that find them.

plant.py CC... -- FLAG...    as `make plant` calls it; README.md has the variables. SOURCES names
                             the C files that make compiles for this CPU
"""

import collections
import contextlib
import dataclasses
import functools
import gzip
import hashlib
import json
import os
import random
import re
import signal
import sys
import threading
import time

import box
import cover
import faults
import trial
from workshop import PLACE, ROOT, Shared, say

TARGETS = ("check", "test", "test-all")

# --- the choice of faults -------------------------------------------------------------------


def enumerated(flags):
    """Return (all faults, the number of places left out by reason). Kept until the sources
    change."""
    flags = [flag for flag in flags if "FPMDP_VERSION" not in flag]
    flags.append('-DFPMDP_VERSION="0"')
    sources = words("SOURCES").split()
    key = [cover.of_product(ROOT), cover.digest(ROOT, ["tests/plant/faults.py"]), *flags, *sources]
    key = hashlib.sha256("\0".join(key).encode()).hexdigest()[:16]
    path = PLACE / f"faults-{key}.json.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows, left = json.load(file)
        return [faults.Fault(*r[:4], r[4].encode("latin-1"), *r[5:]) for r in rows], left
    say("plant: looking for places in the C code")
    found, left = faults.of_tree(ROOT, flags, sources)
    for old in PLACE.glob("faults-*.json.gz"):
        old.unlink()
    rows = [
        [*dataclasses.astuple(f)[:4], f.new.decode("latin-1"), *dataclasses.astuple(f)[5:]]
        for f in found
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump([rows, left], file)
    return found, left


def selected(found, folders, kinds):
    """Return the faults of the named folders and kinds. `fwd` names the folder fpm-dataplane/fwd; no
    name selects all."""
    left = found
    if folders:
        left = [f for f in left if {f.folder(), f.folder().split("/")[-1]} & set(folders.split(","))]
    if kinds:
        left = [f for f in left if f.kind in kinds.split(",")]
    if not left:
        raise SystemExit(f"plant: no place for a fault: FOLDERS={folders} KINDS={kinds}")
    return left


def chosen(found, n, seed):
    """Return `n` lists of faults. Of each list the first fault that compiles and changes the
    program is planted. Folders take turns, and in each folder the kinds. Equal arguments give equal
    lists, whatever the results of the faults are."""
    sorts = collections.defaultdict(lambda: collections.defaultdict(list))
    for fault in found:
        sorts[fault.folder()][fault.kind].append(fault)
    rng = random.Random(f"plant {seed}")
    folders = sorted(sorts)
    rng.shuffle(folders)
    of_kind, slots, kinds = collections.Counter(), [], {}
    for folder in folders:
        kinds[folder] = sorted(sorts[folder])
        rng.shuffle(kinds[folder])
    used = collections.Counter()
    for k in range(n):
        folder = folders[k % len(folders)]
        # The kind with the fewest faults so far, here and in total, that has some left.
        able = [
            kind for kind in kinds[folder] if used[folder, kind] < len(sorts[folder][kind])
        ] or kinds[folder]
        kind = min(able, key=lambda kind: (used[folder, kind], of_kind[kind]))
        used[folder, kind] += 1
        of_kind[kind] += 1
        slots.append((folder, kind, used[folder, kind] - 1))
    lists = {}
    for folder in folders:
        for kind in kinds[folder]:
            lists[folder, kind] = mixed(
                sorts[folder][kind], f"plant {seed} {folder} {kind}"
            )
    return [
        lists[folder, kind][first :: max(1, used[folder, kind])]
        for folder, kind, first in slots
    ]


def mixed(found, seed):
    """Return the faults in random order, but each function once before any function twice."""
    rng, turn, seen = random.Random(seed), {}, collections.Counter()
    found = sorted(found)
    rng.shuffle(found)
    for fault in found:
        where = fault.file, fault.function
        turn[fault] = seen[where]
        seen[where] += 1
    return sorted(found, key=turn.get)


def diff(fault, root):
    """Return the change as `diff -u` prints it, without its head. `root` is a tree without the
    fault."""
    old = (root / fault.file).read_bytes()
    new = fault.planted(old)
    rows = list(zip(old.split(b"\n"), new.split(b"\n")))[fault.line - 1 : fault.last_line]
    text = [b"-" + a for a, b in rows if a != b]
    text += [b"+" + b for a, b in rows if a != b and b.strip()]
    return b"\n".join(text).decode(errors="replace")


# --- trials ----------------------------------------------------------------------------------


class Run:
    """Tries all faults of a seed; results are appended to build/plant/SEED.jsonl."""

    def __init__(self, shared, slots, path, names):
        self.shared, self.slots, self.path, self.tiers = shared, slots, path, names
        self.lock = threading.Lock()
        self.done = {}

    def resume(self, head):
        """Read the results of an interrupted run of the same faults."""
        with contextlib.suppress(OSError), open(self.path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.endswith("\n")]
            if rows[:1] != [head]:
                raise SystemExit(
                    f"plant: {self.path} is of another tree, N or SEED: no RESUME"
                )
            self.done = {row["slot"]: row for row in rows[1:]}

    def all(self, head):
        """Try all faults that are left."""
        if not self.done:
            self.path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        left = [n for n in range(len(self.slots)) if n not in self.done]
        self.shared.beside([functools.partial(self.slot, n) for n in left])

    def slot(self, n, number):
        """Plant the first fault of a list that changes the program, and try it."""
        tree, replaced = self.shared.trees[number], collections.Counter()
        begin = time.monotonic()
        with box.Box(number) as its:
            for fault in self.slots[n]:
                tree.plant(fault)
                try:
                    why = self.no_fault(fault, tree)
                    row = None if why else self.tried(fault, tree, its)
                except trial.DoesNotCompile:
                    why = "does not compile"
                finally:
                    tree.restore()
                if not why:
                    break
                replaced[why] += 1
            else:
                return
        row = {
            "slot": n,
            **row,
            "seconds": round(time.monotonic() - begin, 1),
            "replaced": replaced,
        }
        with self.lock:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self.done[n] = row
        found = f"{row['tier']}: {row['test']}" if row["tier"] else "NOT FOUND"
        say(
            f"[{len(self.done)}/{len(self.slots)}] {row['file']}:{row['line']} {row['kind']}: "
            f"{found} ({row['seconds']} s)"
        )

    def no_fault(self, fault, tree):
        """Return the reason why a change is no fault: the compiler refuses it, or makes an equal
        program."""
        path = self.shared.unit_of(fault.file)
        if path is None:
            return "is not compiled"
        # A relaxed order makes a difference on this CPU only with ThreadSanitizer.
        more = ["-O1", "-fsanitize=thread"] if fault.kind == "order" else []
        objects = [self.compiled(t, path, more) for t in (self.shared.base, tree)]
        if objects[1] is None:
            return "does not compile"
        if objects[0] == objects[1] and fault.file.endswith(".c"):
            return "same program"
        return ""

    def compiled(self, tree, path, more):
        """Return a hash of the object without debugging information; None: the compiler refuses."""
        out = tree.root / f"build/one-{threading.get_ident()}.o"
        flags = [f for f in self.shared.flags if not re.fullmatch(r"-g\d?", f)]
        argv = [*self.shared.cc, *flags, *more, "-c", "-o", str(out), path]
        if box.call(argv, tree.root, box.clean_environment())[0] != 0:
            return None
        octets = out.read_bytes()
        out.unlink()
        return hashlib.sha256(octets).digest()

    def tried(self, fault, tree, its):
        """Return the row of a fault with the first tier that finds it."""
        row = {
            "file": fault.file,
            "line": fault.line,
            "function": fault.function,
            "kind": fault.kind,
            "folder": fault.folder(),
            "diff": diff(fault, self.shared.base.root),
            "tier": "",
            "target": "",
            "test": "",
            "why": "",
            "tiers": {},
        }
        its_trial = trial.Trial(fault, tree, self.shared.base, its, self.shared)
        for tier in self.tiers:
            test, why, said = its_trial.run(tier)
            row["tiers"][tier.name] = said
            if test:
                row.update(tier=tier.name, target=tier.target, test=test, why=why)
                break
        return row


# --- output ------------------------------------------------------------------------------------


def table(rows, key):
    """Return lines with the number of faults of each folder or kind that each target found."""
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        for name in (row[key] or ".", "all"):
            counts[name][row["target"] or "none"] += 1
    names = [*sorted(n for n in counts if n != "all"), "all"]
    width = max(map(len, names))
    heads = [*TARGETS, "none"]
    yield f"{key:<{width}} {'faults':>7} " + " ".join(f"{h:>8}" for h in heads)
    for name in names:
        n = counts[name]
        yield f"{name:<{width}} {sum(n.values()):>7} " + " ".join(
            f"{n[h] or '-':>8}" for h in heads
        )


def report(rows):
    """Print the results of all faults."""
    for key in ("folder", "kind"):
        say("")
        for line in table(rows, key):
            say(line)
    say("\nnot found:")
    for row in rows:
        if not row["tier"]:
            tried = ", ".join(f"{name}: {said}" for name, said in row["tiers"].items())
            say(
                f"\n{row['file']}:{row['line']} {row['function']} [{row['kind']}] ({tried})"
            )
            say(row["diff"])
    replaced = sum(
        (collections.Counter(row["replaced"]) for row in rows), collections.Counter()
    )
    n = collections.Counter(row["target"] or "none" for row in rows)
    said = ", ".join(f"{n[t]} by {t}" for t in (*TARGETS, "none") if n[t])
    more = ", ".join(f"{count} {why}" for why, count in sorted(replaced.items()))
    say(
        f"\nplant: {len(rows)} faults: found {said}"
        + (f" (others taken instead: {more})" if more else "")
    )


def words(name, default=""):
    """Return a variable of make's command line."""
    return os.environ.get(name) or default


def main(argv):
    """Returns the exit code."""
    split = argv.index("--")
    cc, flags = argv[:split], argv[split + 1 :]
    n, seed = int(words("N", "100")), words("SEED", "1")
    PLACE.mkdir(parents=True, exist_ok=True)
    found, left = enumerated(flags)
    kinds = collections.Counter(f.kind for f in found)
    say(
        f"plant: {len(found)} faults can be planted ("
        + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        + ")"
    )
    say(
        "plant: left out: "
        + "; ".join(
            f"{left.get(why, 0)} {why}: {text}" for why, text in faults.OF_NO_EFFECT.items()
        )
    )
    found = selected(found, words("FOLDERS"), words("KINDS"))
    slots = chosen(found, n, seed)
    if words("LIST"):
        for slot in slots:
            fault = slot[0]
            say(
                f"{fault.name()} {fault.file}:{fault.line} {fault.function} [{fault.kind}]\n{diff(fault, ROOT)}"
            )
        return 0
    why = box.why_not()
    if why:
        say(f"plant: {why}")
        return 1
    os.nice(10)
    full = bool(words("FULL"))
    chosen_tiers = [
        t
        for t in trial.TIERS
        if (full or t.target != "test-all")
        and (not words("TIERS") or t.name in words("TIERS").split(","))
        and (t.how != "guest" or full or words("GUEST"))
    ]
    shared = Shared(cc, flags, full, chosen_tiers)
    head = {
        "seed": seed,
        "n": n,
        "folders": words("FOLDERS"),
        "kinds": words("KINDS"),
        "tree": cover.of_product(ROOT),
        "tiers": [t.name for t in chosen_tiers],
    }
    run = Run(shared, slots, PLACE / f"{seed}.jsonl", chosen_tiers)
    if words("RESUME"):
        run.resume(head)
    shared.build()
    shared.learn()
    shared.ask()
    shared.copies()
    run.all(head)
    report([run.done[n] for n in sorted(run.done)])
    return 0


if __name__ == "__main__":
    # End all commands and remove their files, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
