#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The corpora of the fuzzers, kept as text: one input a line, in hex.

    corpus.py unpack DIR         inputs of corpus/NAME.hex to DIR/corpus-NAME; those of fpm_rib,
                                 seeds made here, captures if there are any to DIR/corpus-fpm
    corpus.py pack NAME FOLDER   the smallest inputs of FOLDER to corpus/NAME.hex

What pack is given should be minimised: fuzz_NAME -merge=1 SMALL BIG.
"""

import hashlib
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib import fpm_speaker as fpm  # noqa: E402

# Octets of text, at most.
LIMITS = {"fpm_rib": 96 << 10, "rules": 48 << 10, "packet": 32 << 10}
OTHERS = 24 << 10
ROUND, SETTLE, LINK, ADDR, NEIGH, SESSION, TIME, SEGMENT, ASK, HOLD, MEMORY, AUDIT, BREAK, QUEUE = range(14)  # control.h


def control(*pairs):
    payload = bytes(octet for pair in pairs for octet in pair)
    return b"\x01\xee" + (len(payload) + 4).to_bytes(2, "big") + payload


def frames(*messages):
    return b"".join(fpm.frame(m) for m in messages)


def seeds():
    """Return inputs that the mutator would find late: sequences of a few messages that belong
    together."""
    hops = frames(
        fpm.nexthop_message(1, gateway="10.0.1.2", oif=2),
        fpm.nexthop_message(2, gateway="10.0.2.2", oif=3),
    )
    group = frames(fpm.group_message(20, {1: 1, 2: 3}))
    routes = frames(
        fpm.route_message("192.0.2.0/24", nhid=20), fpm.route_message("198.51.100.0/24", nhid=1)
    )
    sentinel = frames(
        fpm.route_message("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", rtm_type=6)
    )
    everything = hops + group + routes
    settle = control((SETTLE, 0))
    yield everything + settle
    yield routes + settle + group + settle + hops + settle
    yield everything + control((LINK, 8), (SETTLE, 0), (LINK, 0), (SETTLE, 0))
    yield everything + control((NEIGH, 0), (SETTLE, 0), (ASK, 0), (NEIGH, 0x80))
    yield everything + control((SESSION, 0)) + everything + sentinel + settle
    yield everything + control((SESSION, 0)) + routes + settle + hops + group + settle
    yield everything + control((SESSION, 0)) + hops + sentinel + control((TIME, 90)) + settle
    yield everything + frames(fpm.nexthop_del_message(20), fpm.nexthop_del_message(1)) + settle
    yield everything + control((LINK, 0x10), (SETTLE, 0), (LINK, 0), (ADDR, 0), (SETTLE, 0))
    yield control((HOLD, 1)) + everything + control((ROUND, 0), (TIME, 3), (HOLD, 0), (SETTLE, 0))
    yield everything + settle + control((HOLD, 2)) + group + hops + settle
    yield control((MEMORY, 1)) + everything + control((ROUND, 0), (MEMORY, 255), (SETTLE, 0))
    yield control((SEGMENT, 7)) + everything + settle
    yield everything + control((AUDIT, 0), (BREAK, 1), (BREAK, 5), (BREAK, 10), (AUDIT, 1))
    yield everything + control((SESSION, 1)) + everything + control((TIME, 70)) + settle
    yield everything + control((SESSION, 1)) + hops + sentinel + control((TIME, 90)) + settle
    yield control((QUEUE, 200)) + everything + control((QUEUE, 0), (SETTLE, 0))
    yield control((QUEUE, 1)) + everything + routes + group + settle + everything + settle
    yield hops + frames(
        fpm.route_message("192.0.2.0/24", nhid=1, mtu=1400),
        fpm.route_message("198.51.100.0/24", nhid=1, mtu=1280),
        fpm.route_message("192.0.2.128/25", nhid=1),
    ) + settle + control((SESSION, 0)) + hops + settle
    yield hops + fpm.frame(
        fpm.route_del_message("192.0.2.0/24"), fpm.route_message("192.0.2.0/24", nhid=2)
    )


def kept(name):
    """Return the inputs of corpus/NAME.hex."""
    lines = (HERE / "corpus" / f"{name}.hex").read_text().split("\n")
    return [bytes.fromhex(line) for line in lines if line and not line.startswith("#")]


def put(inputs, folder):
    """Write a file for each input, named by a hash of its content."""
    folder.mkdir(parents=True, exist_ok=True)
    for octets in inputs:
        if octets:
            (folder / hashlib.sha1(octets).hexdigest()).write_bytes(octets)
    print(f"fuzz: {len(inputs)} seeds in {folder}")


def unpack(work):
    captures = Path(os.environ.get("SHARED", "../shared")) / "fpm-captures"
    found = sorted(captures.glob("*.bin"))
    if not found:
        print(f"fuzz: no captures at {captures}: seeded without them")
    put([*seeds(), *kept("fpm_rib"), *(path.read_bytes() for path in found)], work / "corpus-fpm")
    for text in sorted((HERE / "corpus").glob("*.hex")):
        if text.stem != "fpm_rib":
            put(kept(text.stem), work / f"corpus-{text.stem}")


def pack(name, folder):
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda b: (len(b), b))
    text = (
        "# SPDX-License-Identifier: BSD-3-Clause\n"
        f"# Inputs of fuzz_{name}, one a line; corpus.py packs and unpacks them.\n"
    )
    n = 0
    for octets in inputs:
        if octets and len(text) + len(octets) * 2 < LIMITS.get(name, OTHERS):
            text += octets.hex() + "\n"
            n += 1
    (HERE / "corpus" / f"{name}.hex").write_text(text)
    print(f"fuzz: kept {n} of {len(inputs)} inputs, {len(text)} octets of text")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "unpack":
        unpack(Path(sys.argv[2]))
    elif len(sys.argv) == 4 and sys.argv[1] == "pack":
        pack(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(__doc__)
