# SPDX-License-Identifier: BSD-3-Clause
"""Check that the announcer of a flow specification may filter its destination: RFC 8955, section 6,
as RFC 9117 changes it. FRR does not check this, so this module asks FRR for its unicast routes.

FRR does not pass on the peer from which a flow came. So flows and routes are compared by the
neighboring AS, the first AS of their paths: two peers of one AS count as one. FRR has to refuse paths
of eBGP that do not begin with the AS of the neighbor (`neighbor enforce-first-as`, the default from
FRR 9.1 on).
"""

import json
import subprocess
import time
from dataclasses import dataclass

from . import flow as f

COMMANDS_MAX = 200  # commands in one call of vtysh
# ExaBGP and vtysh do not inherit CAP_NET_ADMIN, which nft needs.
WITHOUT_RIGHTS = ("setpriv", "--ambient-caps=-all")
# Shortest destination of a flow: a shorter prefix covers too many routes to ask FRR for them.
SHORTEST = {4: 8, 6: 16}
UNKNOWN = 0  # first AS of a path that does not begin with an AS_SEQUENCE


class FrrError(Exception):
    """FRR did not answer."""


class FrrTimeout(FrrError):
    """FRR did not answer in time."""


@dataclass(frozen=True)
class Announcer:
    """The attributes of an announcement that identify its announcer."""

    as_path: tuple = ()
    ordered: bool = True  # the path is empty or begins with an AS_SEQUENCE
    reflected: bool = False  # an ORIGINATOR_ID is present: a peer of iBGP announced the flow

    @property
    def neighbor(self):
        """The neighboring AS; None: a peer of iBGP in this AS; UNKNOWN: the path does not show
        it."""
        if self.as_path and self.ordered:
            return self.as_path[0]
        return None if self.reflected and self.ordered else UNKNOWN


def vtysh(commands, limit_s, argv=("vtysh",)):
    """Run commands of vtysh that print JSON, all of them within `limit_s` seconds; return a document
    for each. Raises FrrError."""
    found, end = [], time.monotonic() + limit_s
    for at in range(0, len(commands), COMMANDS_MAX):
        some = commands[at : at + COMMANDS_MAX]
        words = [word for command in some for word in ("-c", command)]
        try:
            left_s = max(0.0, end - time.monotonic())
            done = subprocess.run(
                [*WITHOUT_RIGHTS, *argv, *words],
                capture_output=True, text=True, check=False, timeout=left_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired as why:
            raise FrrTimeout("vtysh takes too long") from why
        except OSError as why:
            raise FrrError(str(why)) from why
        documents = _documents(done.stdout)
        if len(documents) != len(some):
            said = " ".join((done.stderr or done.stdout).split())[:200]
            raise FrrError(said or f"{len(documents)} of {len(some)} answers")
        found += documents
    return found


def _documents(text):
    """Return the JSON documents that follow each other in a text."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        found.append(document)
    return found


def check(flows, ask):
    """Check flows for which refused() returned None: {key: (Flow, Announcer)}. Return {key: the reason
    why its announcer may not filter; None: it may}. FRR is asked once for each destination: `ask`
    returns the JSON documents of commands. Raises FrrError."""
    where = {key: destination(flow) for key, (flow, _) in flows.items()}
    best = _best_matches(set(where.values()), ask)
    said = {key: _judge(announcer, best[where[key]], {}) for key, (_, announcer) in flows.items()}
    below = _more_specific({where[key] for key, reason in said.items() if reason is None}, ask)
    for key, reason in said.items():
        if reason is None:
            said[key] = _judge(flows[key][1], best[where[key]], below.get(where[key], {}))
    return said


def destination(flow):
    """Return the destination of a flow: a Prefix, which has the family, or None."""
    return flow.get(f.DESTINATION)


def refused(flow, announcer):
    """Return the reason why an announcer may not filter, whatever the unicast routes are; or None."""
    if not announcer.ordered:
        return "its AS path does not begin with an AS_SEQUENCE"
    if not announcer.as_path and not announcer.reflected:
        return "its AS path is empty, and no peer of iBGP announced it"
    prefix = destination(flow)
    if prefix is None:
        return "it has no destination prefix"
    if prefix.offset:
        return "its destination has an offset"
    if prefix.length < SHORTEST[flow.family]:
        return f"its destination is shorter than /{SHORTEST[flow.family]}"
    return None


def _judge(announcer, best, below):
    """Return the reason why an announcer may not filter a destination; None: it may. `best` is the AS
    path of the unicast route that matches the destination best, `below` has the more specific routes:
    {prefix: AS paths}."""
    if best is None:
        return "no unicast route covers its destination"
    neighbor, as_path = _first(best), announcer.as_path
    if neighbor == UNKNOWN:
        return "the AS path of the unicast route does not begin with an AS_SEQUENCE"
    if as_path and as_path[0] != neighbor:
        whose = f"AS {neighbor}" if neighbor else "this AS"
        return f"its neighbor is AS {as_path[0]}, that of the unicast route is {whose}"
    for prefix, others in below.items():
        for other in others:
            if _first(other) != neighbor:
                return f"a more specific route is of another AS: {prefix}"
    return None


def _first(path):
    """Return the first AS of a path; None: the route is of this AS."""
    return path[0] if path else None


def _best_matches(prefixes, ask):
    """Return {prefix: AS path of the longest route that covers it, or None}."""
    if not prefixes:
        return {}
    form = "show bgp {} unicast {} json"
    rows = ask([form.format(_family(prefix), prefix.address()) for prefix in prefixes])
    found = {}
    for prefix, row in zip(prefixes, rows):
        longer = row and int(row.get("prefix", "/0").rpartition("/")[2]) > prefix.length
        found[prefix] = None if longer else _best_path(row)
        # If the longest match is below the destination, or has no best path because no next hop can be
        # reached, ask for each prefix that covers the destination.
        if row and found[prefix] is None:
            found[prefix] = _covering(prefix, ask)
    return found


def _family(prefix):
    return "ipv4" if prefix.bits == 32 else "ipv6"


def _covering(prefix, ask):
    commands = []
    for length in range(prefix.length, -1, -1):
        shift = prefix.bits - length
        covering = f.Prefix(0, length, prefix.value >> shift << shift, prefix.bits)
        commands.append(f"show bgp {_family(prefix)} unicast {covering} json")
    paths = (_best_path(row) for row in ask(commands) if row)
    return next((path for path in paths if path is not None), None)


def _best_path(row):
    """Return the AS path of the best path of a route; None: there is none."""
    for path in row.get("paths", ()):
        if path.get("bestpath", {}).get("overall"):
            segments = path.get("aspath", {}).get("segments", ())
            if segments and segments[0]["type"] != "as-sequence":
                return [UNKNOWN]
            return [n for s in segments if s["type"] == "as-sequence" for n in s["list"]]
    return None


def _more_specific(prefixes, ask):
    """Return {prefix: {more specific prefix: AS paths of its routes}}. Routes that FRR does not use count,
    too: condition c of the RFC is about all routes that "have been received"."""
    some = [prefix for prefix in prefixes if prefix.length < prefix.bits]
    if not some:
        return {}
    form = "show bgp {} unicast {} longer-prefixes json"
    rows = ask([form.format(_family(prefix), prefix) for prefix in some])
    found = {}
    for itself, row in zip(some, rows):
        found[itself] = {
            prefix: [_path_of(p.get("path", "")) for p in paths]
            for prefix, paths in row.get("routes", {}).items()
            if prefix != str(itself)
        }
    return found


def _path_of(text):
    """Return the AS numbers of a path as FRR writes it: "65540 65541 {65542}"."""
    words = text.split()
    if words and not words[0].isdigit():
        return [UNKNOWN]
    return [int(word) for word in words if word.isdigit()]
