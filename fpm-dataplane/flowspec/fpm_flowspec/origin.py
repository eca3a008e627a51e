# SPDX-License-Identifier: BSD-3-Clause
"""Check that the announcer of a flow specification may filter its destination: RFC 8955, section 6,
as RFC 9117 changes it. FRR does not check it, so this asks FRR for its unicast routes.

FRR does not pass on by which peer a flow came. So routes are compared by the neighboring AS, the
first AS of their path: two peers of one AS count as one. FRR has to refuse paths of eBGP that do not
begin with the AS of the neighbor (`neighbor enforce-first-as`, the default from FRR 9.1 on).
"""

import json
import subprocess
from dataclasses import dataclass

from . import flow as f

COMMANDS_MAX = 200  # of one call of vtysh
VTYSH_S = 20
# Below a shorter prefix are too many routes to ask for.
SHORTEST = {4: 8, 6: 16}
FAMILY = {4: "ipv4", 6: "ipv6"}
UNKNOWN = 0  # first AS of a path that does not begin with an AS_SEQUENCE


class FrrError(Exception):
    """FRR did not answer."""


@dataclass(frozen=True)
class Announcer:
    """The attributes of an announcement that tell its announcer."""

    as_path: tuple = ()
    ordered: bool = True  # the path is empty or begins with an AS_SEQUENCE
    reflected: bool = False  # it has an ORIGINATOR_ID: a peer of iBGP announced it


def vtysh(commands, argv=("vtysh",)):
    """Run commands of vtysh that print JSON; return a document for each. Raises FrrError."""
    found = []
    for at in range(0, len(commands), COMMANDS_MAX):
        some = commands[at : at + COMMANDS_MAX]
        words = [word for command in some for word in ("-c", command)]
        try:
            done = subprocess.run(
                [*argv, *words], capture_output=True, text=True, check=False, timeout=VTYSH_S
            )
        except (OSError, subprocess.TimeoutExpired) as why:
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


def check(flows, ask=vtysh):
    """Check flows: {key: (Flow, Announcer)}. Return {key: None if its announcer
    may filter, or the reason why not}. Raises FrrError."""
    said = {key: _refused_at_once(*each) for key, each in flows.items()}
    open_keys = [key for key, reason in said.items() if reason is None]
    best = _best_matches({key: flows[key][0] for key in open_keys}, ask)
    below = _more_specific({key: flows[key][0] for key in open_keys if best[key]}, ask)
    for key in open_keys:
        said[key] = _judge(flows[key][1], best[key], below.get(key, {}))
    return said


def _refused_at_once(flow, announcer):
    if not announcer.ordered:
        return "its AS path does not begin with an AS_SEQUENCE"
    if not announcer.as_path and not announcer.reflected:
        return "its AS path is empty, and no peer of iBGP announced it"
    prefix = flow.get(f.DESTINATION)
    if prefix is None:
        return "it has no destination prefix"
    if prefix.offset:
        return "its destination has an offset"
    if prefix.length < SHORTEST[flow.family]:
        return f"its destination is shorter than /{SHORTEST[flow.family]}"
    return None


def _judge(announcer, best, below):
    """Judge by the announcer of a flow, the path of its best-match unicast route, and the more
    specific routes {prefix: paths}."""
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


def _best_matches(flows, ask):
    """Return {key: AS path of the longest route that covers the destination, or None}."""
    if not flows:
        return {}
    form = "show bgp {} unicast {} json"
    rows = ask([form.format(FAMILY[x.family], x.get(f.DESTINATION).address()) for x in flows.values()])
    found, longer = {}, []
    for (key, flow), row in zip(flows.items(), rows):
        length = int(row.get("prefix", "/0").rpartition("/")[2])
        if row and length > flow.get(f.DESTINATION).length:
            longer.append(key)
        else:
            found[key] = _best_path(row)
    for key in longer:  # the longest match is below the destination: ask for each that covers it
        found[key] = _covering(flows[key], ask)
    return found


def _covering(flow, ask):
    prefix = flow.get(f.DESTINATION)
    commands = []
    for length in range(prefix.length, -1, -1):
        shift = prefix.bits - length
        covering = f.Prefix(0, length, prefix.value >> shift << shift, prefix.bits)
        commands.append(f"show bgp {FAMILY[flow.family]} unicast {covering} json")
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


def _more_specific(flows, ask):
    """Return {key: {prefix: AS paths of the routes below the destination}}."""
    some = {k: x for k, x in flows.items() if x.get(f.DESTINATION).length < x.get(f.DESTINATION).bits}
    if not some:
        return {}
    form = "show bgp {} unicast {} longer-prefixes json"
    rows = ask([form.format(FAMILY[x.family], x.get(f.DESTINATION)) for x in some.values()])
    found = {}
    for (key, flow), row in zip(some.items(), rows):
        itself = str(flow.get(f.DESTINATION))
        found[key] = {
            prefix: [_path_of(p.get("path", "")) for p in paths if p.get("valid", True)]
            for prefix, paths in row.get("routes", {}).items()
            if prefix != itself
        }
    return found


def _path_of(text):
    """Return the AS numbers of a path as FRR writes it: "65540 65541 {65542}"."""
    words = text.split()
    if words and not words[0].isdigit():
        return [UNKNOWN]
    return [int(word) for word in words if word.isdigit()]
