#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rules for commit messages: `area: imperative summary` in at most 72 characters, an empty line, and
a body that gives the reason.

    commits.py FILE    check one message, as the hook tests/lint/hooks/commit-msg does

`make lint` checks all commits since this file exists. To have git check each message when it is
written: git config core.hooksPath tests/lint/hooks
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUBJECT = re.compile(r"[a-z0-9][\w./,-]*(?: [\w./,-]+)?: ([A-Za-z][\w-]*) \S")
MOST = 72
# First words that are no imperative.
NO_VERB = re.compile(r"(a|an|the|of|what|who|there|this|that|is|are|no|not|all|each|some|it|when|where|\w+ed|\w+ing)$", re.I)
VERBS = {"embed", "feed", "need", "seed", "shed", "speed", "bring", "string", "ring", "ping"}


def faults(message):
    """Return the faults of a commit message as text; [] if there are none."""
    subject, *rest = message.rstrip("\n").split("\n")
    found = []
    if len(subject) > MOST:
        found.append(f"the subject has {len(subject)} characters, at most {MOST} are allowed")
    match = SUBJECT.match(subject)
    if not match:
        found.append("the subject is not `area: imperative summary`")
    elif NO_VERB.match(match[1]) and match[1].lower() not in VERBS:
        found.append(f"the summary does not begin with an imperative: {match[1]}")
    if subject.endswith("."):
        found.append("the subject ends with a dot")
    if not rest or rest[0] or not "".join(rest[1:]).strip():
        found.append("there is no body, after an empty line, that gives the reason")
    return found


def git(*words):
    """Return the output of a git command; "" if there is no history."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def check_history(problem):
    """Call problem(text) for each fault of a commit since this file exists. Return the number of
    commits."""
    if not (ROOT / ".git").exists():
        return 0  # a tarball
    first = git("log", "--diff-filter=A", "--format=%H", "--", "tests/lint/commits.py").split()
    if not first:
        return 0
    commits = git("log", "--no-merges", "-z", "--format=%h%n%B", f"{first[-1]}..HEAD").split("\0")
    commits = [c.partition("\n") for c in commits if c.strip()]
    for name, _, message in commits:
        for text in faults(message):
            problem(f"commit {name.strip()}: {text}: {message.splitlines()[0][:100]}")
    return len(commits)


def main(path):
    """Check the message in a file; lines of git's own that begin with # do not count."""
    text = Path(path).read_text(encoding="utf-8").partition("\n# ------------------------ >8")[0]
    message = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    if message.startswith(("Merge ", "fixup! ", "squash! ")):
        return 0
    found = faults(message)
    for text in found:
        print(f"commit message: {text}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
