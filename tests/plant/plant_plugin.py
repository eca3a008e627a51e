# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: writes one line of JSON to the file $PLANT_TOLD when a case starts and
when it has ended. If programs record the blocks that they execute (cover.c), the line has them.
"""

import base64
import glob
import json
import mmap
import os
import time
import zlib

NOTES = "/tmp/plant-cover"
_state = {"failed": False, "skipped": False, "why": "", "setup": 0.0}


def _tell(**row):
    with open(os.environ["PLANT_TOLD"], "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def notes():
    """Return {program: its notes since the last call}, compressed, as text. Set the notes to 0."""
    found = {}
    for path in glob.glob(f"{NOTES}/*"):
        program, _, pid = os.path.basename(path).rpartition(".")
        if os.path.getsize(path) == 0:
            continue
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as octets:
            seen = octets[:]
            octets[:] = bytes(len(seen))
        if not os.path.exists(f"/proc/{pid}"):
            os.unlink(path)
        if program in found:
            seen = (
                int.from_bytes(seen, "big") | int.from_bytes(found[program], "big")
            ).to_bytes(len(seen), "big")
        found[program] = seen
    return {
        program: base64.b64encode(zlib.compress(seen, 1)).decode()
        for program, seen in found.items()
        if seen.strip(b"\0")
    }


def pytest_runtest_logstart(nodeid, location):
    """A case starts."""
    _state.update(failed=False, skipped=False, why="", setup=0.0, begin=time.monotonic())
    _tell(start=nodeid)


def pytest_runtest_logreport(report):
    """One of its three phases has ended."""
    _state["failed"] |= report.failed
    _state["skipped"] |= report.skipped
    if report.when == "setup":
        _state["setup"] = report.duration
    if report.failed and not _state["why"]:
        crash = getattr(report.longrepr, "reprcrash", None)
        _state["why"] = (crash.message if crash else str(report.longrepr))[:400]


def pytest_runtest_logfinish(nodeid, location):
    """All phases have ended."""
    how = "failed" if _state["failed"] else "skipped" if _state["skipped"] else "passed"
    more = (
        {"notes": notes()} if os.path.isdir(NOTES) and "PLANT_NOTES" in os.environ else {}
    )
    _tell(
        end=nodeid,
        how=how,
        s=round(time.monotonic() - _state["begin"], 2),
        setup=round(_state["setup"], 2),
        why=_state["why"],
        **more,
    )


if __name__ == "__main__":  # after a program that pytest does not run: print its notes
    print(json.dumps(notes()))
