# SPDX-License-Identifier: BSD-3-Clause
"""Keep the nft table in step with the flow specifications that ExaBGP receives.

The table is empty whenever no session stands behind it: at the start, at the end, and `stale_s`
after the session is lost.
"""

import json
import os
import sys
import time
from dataclasses import dataclass, field

from . import action, origin, translate, update
from .flow import Flow, Refused, order, parse
from .table import CHAINS, TABLE, NftError, Table

DEBOUNCE_S = 0.05  # a load serves a burst of messages
RETRY_S = 5  # after nft failed
RECHECK_S = 5  # of flows that are refused: the unicast route may come later
UPDATE = 2  # type of the BGP message


@dataclass
class Route:
    """A flow specification of one peer."""

    family: int
    nlri: bytes
    announcer: origin.Announcer
    flow: Flow = None  # None: it is malformed
    actions: action.Actions = None
    rules: translate.Rules = None
    refused: str = None  # why it cannot be installed, for ever
    unchecked: str = "not checked yet"  # why its announcer may not filter, at present
    stale: bool = False  # of a session that is lost
    logged: str = ""  # state that the log has


@dataclass
class Options:
    """The options of the command line."""

    validate: bool = True
    stale_s: float = 0
    recheck_s: float = 30
    max_rules: int = 1000
    folder: str = "/run/fpm-flowspec"  # of the status file, and of the pipe from ExaBGP
    vtysh: list = field(default_factory=lambda: ["vtysh"])
    exabgp: list = field(
        default_factory=lambda: [
            *("/usr/bin/fpm-flowspec", "speaker"),
            *("/usr/sbin/exabgp", "/etc/fpm-dataplane/flowspec.conf"),
        ]
    )

    @property
    def status(self):
        """The path of the status file."""
        return os.path.join(self.folder, "status.json")


def log(event, **facts):
    """Write a line of the log."""
    words = " ".join(f"{k}={json.dumps(v) if isinstance(v, str) else v}" for k, v in facts.items())
    print(f"flowspec: {event} {words}".rstrip(), file=sys.stderr, flush=True)


class Helper:
    """The flow specifications of all sessions, and the table made of them."""

    def __init__(self, options, table=None, ask=None, clock=time.monotonic):
        self.options, self.clock = options, clock
        self.table = table or Table()
        self.ask = ask or (lambda commands: origin.vtysh(commands, options.vtysh))
        self.routes = {}  # {(peer, family, nlri): Route}
        self.sessions = {}  # {peer: "up" or "down"}
        self.error = None  # of nft
        self.frr_error = None
        self.bad = {}  # {Rules: error}: nft refuses them
        self.load_at = self.recheck_at = self.stale_at = None  # clock; None: nothing to do

    # -- events --

    def start(self):
        """Remove the rules of a helper before this one."""
        self._load()

    def line(self, text):
        """Take one line of ExaBGP."""
        try:
            event = json.loads(text)
            peer = event["neighbor"]["address"]["peer"]
            kind = event["type"]
        except (ValueError, KeyError, TypeError):
            return  # an event of ExaBGP itself
        if kind == "state":
            self._session(peer, event["neighbor"].get("state"))
        elif kind == "update":
            message = event["neighbor"].get("message") or {}
            if message.get("category") == UPDATE and isinstance(message.get("body"), str):
                self._message(peer, message["body"])

    def _session(self, peer, state):
        if state not in ("up", "down") or self.sessions.get(peer) == state:
            return
        self.sessions[peer] = state
        log("session changes", peer=peer, state=state)
        if state == "down":
            for (whose, _, _), route in self.routes.items():
                route.stale |= whose == peer
            self.stale_at = self.clock() + self.options.stale_s
        self._soon()

    def _message(self, peer, body):
        try:
            found = update.decode(bytes.fromhex(body.removeprefix("0x")))
        except (update.Malformed, ValueError) as why:
            log("update is malformed", peer=peer, error=str(why))
            return
        for family, nlri in found.withdrawn:
            self.routes.pop((peer, family, nlri), None)
        for family, nlri in found.announced:
            route = _route(family, nlri, found)
            if not self.options.validate:
                route.unchecked = None
            old = self.routes.get((peer, family, nlri))
            if old is not None and old.announcer == route.announcer:
                route.unchecked = old.unchecked
            self.routes[peer, family, nlri] = route
        if found.withdrawn or found.announced:
            self._soon()

    def _soon(self):
        if self.load_at is None:
            self.load_at = self.clock() + DEBOUNCE_S

    # -- time --

    def wait_s(self):
        """Return the seconds until on_time() has work; None: it has none."""
        due = [at for at in (self.load_at, self.recheck_at, self.stale_at) if at is not None]
        return max(0.0, min(due) - self.clock()) if due else None

    def on_time(self):
        """Run the work that is due."""
        now = self.clock()
        if self.stale_at is not None and now >= self.stale_at:
            self.stale_at = None
            self.routes = {k: r for k, r in self.routes.items() if not r.stale}
            self.load_at = now
        if self.recheck_at is not None and now >= self.recheck_at:
            self.recheck_at = None
            self._check(self.routes)
            self.load_at = now
        if self.load_at is not None and now >= self.load_at:
            self.load_at = None
            self._check({k: r for k, r in self.routes.items() if r.unchecked == "not checked yet"})
            self._load()

    def _check(self, routes):
        """Ask FRR whether the announcers may filter. Without an answer the last one counts."""
        if not self.options.validate:
            return
        some = {k: (r.flow, r.announcer) for k, r in routes.items() if r.refused is None}
        try:
            for key, reason in origin.check(some, self.ask).items():
                routes[key].unchecked = reason
            self.frr_error = None
        except origin.FrrError as why:
            if self.frr_error != str(why):
                log("FRR does not answer", error=str(why))
            self.frr_error = str(why)
        refused = any(r.unchecked for r in self.routes.values() if r.refused is None)
        if self.routes:
            wait = RECHECK_S if refused or self.frr_error else self.options.recheck_s
            due = self.clock() + min(wait, self.options.recheck_s)
            # A flow that comes again and again does not postpone the check of the others.
            self.recheck_at = due if self.recheck_at is None else min(self.recheck_at, due)

    # -- the table --

    def states(self):
        """Return [(Route, state, reason)] in the order in which packets are asked; the state is
        installed or refused. Malformed flows are last."""
        by_flow = {}
        for route in self.routes.values():
            known = by_flow.get((route.family, route.nlri))
            if known is None or known.stale or known.unchecked:
                by_flow[route.family, route.nlri] = route
        some = [r for r in by_flow.values() if r.flow is not None]
        some.sort(key=lambda r: (r.family, order(r.flow)))
        found, room = [], self.options.max_rules
        for route in some:
            reason = route.refused or (f"not validated: {route.unchecked}" if route.unchecked else None)
            reason = reason or self.bad.get(route.rules)
            if reason is None and len(route.rules.lines) > room:
                reason = f"more than {self.options.max_rules} rules"
            if reason is None:
                room -= len(route.rules.lines)
            found.append((route, "refused" if reason else "installed", reason))
        found += [(r, "refused", r.refused) for r in by_flow.values() if r.flow is None]
        return found

    def _wanted(self):
        want = {family: {} for family in CHAINS}
        for route, state, _ in self.states():
            if state == "installed":
                want[route.family][route.nlri] = route.rules
        return want

    def _load(self):
        try:
            try:
                self.table.load(self._wanted())
            except NftError:
                self._find_bad()
                self.table.load(self._wanted())
            self.error = None
        except NftError as why:
            if self.error != str(why):
                log("nft fails", error=str(why))
            self.error, self.load_at = str(why), self.clock() + RETRY_S
        self._tell()

    def _find_bad(self):
        """Find the rules that nft refuses, one by one."""
        wanted = self._wanted()
        self.table.check({family: {} for family in CHAINS})  # nft works
        for family, some in wanted.items():
            for key, rules in some.items():
                try:
                    self.table.check({family: {key: rules}})
                except NftError as why:
                    self.bad[rules] = f"nft: {why}"

    def _tell(self):
        """Write the status file, and log changed states."""
        rows = []
        for route, state, reason in self.states():
            text = str(route.flow) if route.flow is not None else route.nlri.hex()
            row = {"family": route.family, "match": text, "action": str(route.actions)}
            row |= {"state": state, "reason": reason, "as_path": route.announcer.as_path, "stale": route.stale}
            rows.append(row)
            if route.logged != f"{state} {reason}":
                route.logged = f"{state} {reason}"
                facts = {"reason": reason} if reason else {"action": row["action"]}
                log(f"flow {state}", family=route.family, match=text, **facts)
        status = {"table": TABLE, "loaded": self.error is None, "error": self.error}
        status |= {"frr_error": self.frr_error, "validate": self.options.validate}
        status |= {"sessions": self.sessions, "flows": rows}
        part = self.options.status + ".part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(status, file, indent=1)
            os.replace(part, self.options.status)
        except OSError as why:
            log("status file is not written", error=str(why))

    def end(self):
        """Remove all rules."""
        self.routes, self.sessions = {}, dict.fromkeys(self.sessions, "down")
        self._load()


def _route(family, nlri, found):
    announcer = origin.Announcer(tuple(found.as_path), found.ordered, found.reflected)
    route = Route(family, nlri, announcer)
    try:
        route.flow = parse(family, nlri)
        route.actions = action.parse(found.communities, found.communities6)
        route.rules = translate.rules(route.flow, route.actions)
    except Refused as why:
        route.refused = str(why)
    return route
