# SPDX-License-Identifier: BSD-3-Clause
"""The jobs of a tier that passed in earlier runs, so that a run of hours that was interrupted can
go on (RESUME). Each job has a JSON file. Builds have none, because make does not repeat them."""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess

from lib.results import Result


def git(root, *words):
    """Return what git prints. Raise CalledProcessError if git fails, OSError if it is absent."""
    return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True).stdout


def sources(root):
    """Return a digest of all tracked files with their changes. None: this is no checkout."""
    try:
        return hashlib.sha256(git(root, "rev-parse", "HEAD^{tree}") + git(root, "diff", "HEAD")).hexdigest()
    except (OSError, subprocess.CalledProcessError):
        return None


class Kept:
    """The results in a directory. `wish` is the variable RESUME: "" removes all of them, 1 takes
    those of the same sources, a commit takes those of this commit and of later ones too."""

    def __init__(self, directory, root, wish):
        self.directory, self.root, self.wish = directory, root, wish
        self.sources = sources(root)
        if not wish:
            shutil.rmtree(directory, ignore_errors=True)
        elif wish != "1":
            git(root, "rev-parse", "--verify", f"{wish}^{{commit}}")

    def path(self, job):
        """Return the path of a job's file."""
        return os.path.join(self.directory, job.name.replace(" ", "-") + ".json")

    def keep(self, job):
        """Write the result of a job if it passed."""
        if job.part == "build" or job.code is None or job.result.failed or not self.sources:
            return
        os.makedirs(self.directory, exist_ok=True)
        result = dataclasses.asdict(job.result)
        result["outcome"] = [[*key, how] for key, how in job.result.outcome.items()]
        commit = git(self.root, "rev-parse", "--short", "HEAD").decode().strip()
        kept = {"sources": self.sources, "commit": commit, "took": job.took, "cpu": job.cpu, "result": result}
        with open(self.path(job), "w", encoding="utf-8") as file:
            json.dump(kept, file)

    def take(self, job):
        """Give a job the result of an earlier run. Return False if it has to run."""
        kept = None
        with contextlib.suppress(OSError, ValueError), open(self.path(job), encoding="utf-8") as file:
            kept = json.load(file)
        if not self.wish or not kept or not self.holds(kept):
            return False
        result = kept["result"]
        result["outcome"] = {(file, name): how for file, name, how in result["outcome"]}
        job.result, job.code, job.before = Result(**result), 0, kept["commit"]
        job.took, job.cpu = kept["took"], kept["cpu"]
        return True

    def holds(self, kept):
        """Return True if a kept result is of the same sources, or of a commit that is new enough."""
        if kept["sources"] == self.sources:
            return True
        if self.wish == "1":
            return False
        words = ["git", "-C", self.root, "merge-base", "--is-ancestor", self.wish, kept["commit"]]
        return subprocess.run(words, check=False, capture_output=True).returncode == 0
