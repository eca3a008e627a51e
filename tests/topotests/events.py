# SPDX-License-Identifier: BSD-3-Clause
"""The file of events that a run of a module leaves for the verdict: one JSON object a line."""

import json
import os

OUT = os.environ.get("TOPO_OUT", ".")  # the folder of this run
BFD = os.environ.get("TOPO_BFD") == "1"  # the BFD sessions of this run are in the dataplanes


def record(**event):
    """Append one event."""
    with open(os.path.join(OUT, "events.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def read(folder):
    """Return the events of a run, in their order."""
    try:
        with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except OSError:
        return []
