# SPDX-License-Identifier: BSD-3-Clause
"""Keep the nft table in step with the flow specifications that ExaBGP receives.

The table has no rules without a session: it is empty at the start and at the end, and the rules of a
session are removed `stale_s` seconds after the session is lost.
"""

import contextlib
import json
import os
import time
from collections import Counter
from dataclasses import dataclass, field

from . import action, origin, translate, update
from .flow import Flow, Refused, order, parse
from .table import CHAINS, TABLE, NftError, NftTimeout, NotListed, Table

DEBOUNCE_S = 0.05  # seconds until a load of the table, which serves a burst of messages
RETRY_S = 5  # seconds until the next attempt after nft failed
BAD_S = 600  # seconds until rules that nft refuses are tried again
VERIFY_S = 5  # seconds between two looks whether another program has changed the table
RECHECK_S = 5  # seconds until refused flows are checked again: their unicast route may come later
# Most seconds of a check and of a load. The loop reads no events meanwhile, so the sum is below the
# hold time of 9 s (exabgp.conf).
CHECK_S, LOAD_S = 4, 3
ERROR_LENGTH = 300  # largest number of characters of an error in the summary
CHECKED = 50  # most destinations for which FRR is asked at a time
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
    refused: str = None  # permanent reason why it is not installed; None: there is none
    unchecked: str = "not checked yet"  # present reason why its announcer may not filter
    # The session that sent it is lost: the time of the clock at which it is removed. None: it is not
    # lost.
    stale_until: float = None
    logged: str = ""  # state and reason in its last line of the log

    @property
    def stale(self):
        """True if the session that sent it is lost."""
        return self.stale_until is not None


@dataclass
class Options:
    """The options of the command line."""

    validate: bool = True
    stale_s: float = 0
    recheck_s: float = 30
    max_flows: int = 2000
    max_rules: int = 1000
    share: int = 50  # percent of both limits that one neighboring AS may use
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

    @property
    def summary(self):
        """The path of the file that the dataplane reads."""
        return os.path.join(self.folder, "summary.json")


def log(event, **facts):
    """Write a line of the log. A log that takes no lines, as on a full disk, costs no rule."""
    words = " ".join(f"{k}={json.dumps(v) if isinstance(v, str) else v}" for k, v in facts.items())
    # sys.stderr would keep a line that it cannot write, and fail again at the end.
    with contextlib.suppress(OSError):
        os.write(2, f"flowspec: {event} {words}".rstrip().encode() + b"\n")


class Helper:
    """The flow specifications of all sessions, and the table made of them."""

    def __init__(self, options, table=None, ask=None, clock=time.monotonic):
        self.options, self.clock = options, clock
        self.table = table or Table()
        self.ask = ask or (lambda commands, limit_s: origin.vtysh(commands, limit_s, options.vtysh))
        self.check_until = 0.0  # time of the clock at which a check has to end
        self.routes = {}  # {(peer, family, nlri): Route}
        self.waiting = {}  # {key of a route: Update}: too many flows, so these are not translated
        self.flows_of = Counter()  # routes by neighboring AS; None: of this AS
        # Keys of routes to check: dictionaries as sets that keep their order. New flows go first.
        self.due, self.new = {}, {}
        self.chunk = CHECKED
        self.sessions = {}  # {peer: "up" or "down"}
        self.error = None  # last error of nft
        self.frr_error = None
        self.waiting_logged = 0
        self.counted = {}  # flows by state, for the summary
        self.bad = {}  # {Rules: error}: nft refuses these rules
        # Times of the clock at which work is due; None: there is no such work.
        self.load_at = self.recheck_at = self.stale_at = self.bad_at = self.verify_at = None

    # -- events --

    def start(self):
        """Remove the rules that an earlier helper left."""
        self._load()
        self.verify_at = self.clock() + VERIFY_S

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
        log("session changed", peer=peer, state=state)
        if state == "down":
            until = self.clock() + self.options.stale_s
            for (whose, _, _), route in self.routes.items():
                if whose == peer and not route.stale:
                    route.stale_until = until
            self.waiting = {key: x for key, x in self.waiting.items() if key[0] != peer}
            self._stale_next()
        self._soon()

    def _stale_next(self):
        """Set the time at which the next stale flow is removed."""
        self.stale_at = min((r.stale_until for r in self.routes.values() if r.stale), default=None)

    def _message(self, peer, body):
        try:
            found = update.decode(bytes.fromhex(body.removeprefix("0x")))
        except (update.Malformed, ValueError) as why:
            log("update malformed", peer=peer, error=str(why))
            return
        for family, nlri in found.withdrawn:
            self.waiting.pop((peer, family, nlri), None)
            self._forget((peer, family, nlri))
        for family, nlri in found.announced:
            self._announced((peer, family, nlri), found)
        if found.withdrawn or found.announced:
            self._soon()

    def _announced(self, key, found):
        """Store a flow, or let it wait if there are too many."""
        self.waiting.pop(key, None)
        old, announcer = self._forget(key), _announcer(found)
        if not self._has_room(announcer):
            self.waiting[key] = found
            return
        route = _route(*key[1:], announcer, found)
        if not self.options.validate:
            route.unchecked = None
        elif route.refused is None and (reason := origin.refused(route.flow, announcer)):
            route.refused = f"not validated: {reason}"
        elif old is not None and old.refused is None and old.announcer.neighbor == announcer.neighbor:
            # The verdict depends on the neighbor only. The old flow was checked, or waits for a check.
            route.unchecked = old.unchecked
        else:
            self.new[key] = None
        self.routes[key] = route
        self.flows_of[announcer.neighbor] += 1

    def _forget(self, key):
        """Remove a route, and return it; None: there is none."""
        route = self.routes.pop(key, None)
        if route is not None:
            self.flows_of[route.announcer.neighbor] -= 1
        return route

    def _has_room(self, announcer):
        number, largest = self.flows_of[announcer.neighbor], self.options.max_flows
        return len(self.routes) < largest and number < self._share(largest, announcer)

    def _share(self, largest, announcer):
        """Return the part of a number that an announcer may use. An announcer in this AS, such as a
        controller, may use the whole number."""
        return largest if announcer.neighbor is None else largest * self.options.share // 100

    def _let_in(self):
        """Store waiting flows while there is room."""
        for key, found in list(self.waiting.items()):
            if len(self.routes) >= self.options.max_flows:
                return
            if self._has_room(_announcer(found)):
                self._announced(key, found)

    def _soon(self):
        if self.load_at is None:
            self.load_at = self.clock() + DEBOUNCE_S

    # -- time --

    def wait_s(self):
        """Return the seconds until on_time() has work; None: it has none."""
        times = (self.load_at, self.recheck_at, self.stale_at, self.bad_at, self.verify_at)
        due = [at for at in times if at is not None]
        return max(0.0, min(due) - self.clock()) if due else None

    def on_time(self):
        """Run the work that is due."""
        now = self.clock()
        if self.stale_at is not None and now >= self.stale_at:
            for key in [key for key, r in self.routes.items() if r.stale and r.stale_until <= now]:
                self._forget(key)
            self._stale_next()
            self.load_at = now
        if self.recheck_at is not None and now >= self.recheck_at:
            self.recheck_at = None
            self.due |= dict.fromkeys(self.routes)
            self.load_at = now
        if self.bad_at is not None and now >= self.bad_at:
            self.bad, self.bad_at = {}, None
            self.load_at = now
        if self.verify_at is not None and now >= self.verify_at:
            self.verify_at = now + VERIFY_S
            if self.table.touched():
                self.load_at = now
            self._report()
        if self.load_at is not None and now >= self.load_at:
            self.load_at = None
            self._let_in()
            self._check()
            self._load()

    def _check(self):
        """Ask FRR whether the announcers may filter, new flows first. If FRR does not answer, the last
        verdict counts. Flows for which there is no time are checked after the events that have
        arrived meanwhile."""
        if not self.options.validate:
            return
        self.due, self.new = self.new | self.due, {}
        self.check_until = self.clock() + CHECK_S
        # FRR is asked no question after `last`, so each question has at least half of the time.
        last = self.check_until - CHECK_S / 2
        while self.clock() <= last and (some := self._next_due()):
            try:
                for key, reason in origin.check(some, self._ask).items():
                    self.routes[key].unchecked = reason
                self.frr_error, self.chunk = None, min(2 * self.chunk, CHECKED)
            except origin.FrrError as why:
                self._unanswered(some, why)
        if self.due:
            self._soon()
        refused = any(r.unchecked for r in self.routes.values() if r.refused is None)
        if self.routes:
            wait = RECHECK_S if refused or self.frr_error else self.options.recheck_s
            due = self.clock() + min(wait, self.options.recheck_s)
            # A flow that is announced again and again does not postpone the check of other flows.
            self.recheck_at = due if self.recheck_at is None else min(self.recheck_at, due)

    def _ask(self, commands):
        left_s = self.check_until - self.clock()
        if left_s <= 0:
            raise origin.FrrTimeout("vtysh takes too long")
        return self.ask(commands, left_s)

    def _next_due(self):
        """Take the next flows to check, of at most `chunk` destinations: {key: (Flow, Announcer)}."""
        some, seen = {}, set()
        for key in list(self.due):
            route = self.routes.get(key)
            if route is not None and route.refused is None:
                seen.add(origin.destination(route.flow))
                if len(seen) > self.chunk:
                    break
                some[key] = (route.flow, route.announcer)
            del self.due[key]
        return some

    def _unanswered(self, some, why):
        """Handle a question that FRR did not answer. If the time was too short, ask for fewer
        destinations at a time, so that a destination with many routes does not prevent the answers
        for the others."""
        if self.frr_error != str(why):
            log("frr not answering", error=str(why))
        self.frr_error = str(why)
        if not isinstance(why, origin.FrrTimeout):
            self.due = {}
        elif len({origin.destination(each) for each, _ in some.values()}) > 1:
            self.due |= dict.fromkeys(some)
            self.chunk = max(1, self.chunk // 8)

    # -- the table --

    def states(self):
        """Return [(Route, state, reason)] in the order in which the flows apply to a packet. The state
        is installed or refused. Malformed flows are last."""
        by_flow = {}
        for route in self.routes.values():
            known = by_flow.get((route.family, route.nlri))
            if known is None or known.stale or known.unchecked:
                by_flow[route.family, route.nlri] = route
        some = [r for r in by_flow.values() if r.flow is not None]
        some.sort(key=lambda r: (r.family, order(r.flow), r.nlri))
        found, room, rules_of = [], self.options.max_rules, Counter()
        for route in some:
            reason = route.refused or (f"not validated: {route.unchecked}" if route.unchecked else None)
            reason = reason or self.bad.get(route.rules)
            if reason is None:
                number, whose = route.rules.number, route.announcer.neighbor
                share = self._share(self.options.max_rules, route.announcer)
                if number > room:
                    reason = f"more than {self.options.max_rules} rules"
                elif rules_of[whose] + number > share:
                    reason = f"more than {share} rules of AS {whose}"
                else:
                    room -= number
                    rules_of[whose] += number
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
        self.table.until = self.clock() + LOAD_S
        there = {route.rules for route in self.routes.values()} if self.bad else ()
        self.bad = {rules: error for rules, error in self.bad.items() if rules in there}
        try:
            try:
                made_again = self.table.load(self._wanted())
            except (NftTimeout, NotListed):
                raise  # no rule is bad
            except NftError:
                self._find_bad()
                made_again = self.table.load(self._wanted())
            if made_again:
                log("table made again", table=TABLE, reason="another program changed it")
            self.error = None
        except NftError as why:
            if self.error != str(why):
                log("nft failed", error=str(why))
            self.error, self.load_at = str(why), self.clock() + RETRY_S
        self._tell()

    def _find_bad(self):
        """Find the rules that nft refuses: check all rules, then the halves of each refused part."""
        self.table.check({family: {} for family in CHAINS})  # raises NftError if nft does not work
        parts = [[(f, key, rules) for f, some in self._wanted().items() for key, rules in some.items()]]
        while parts:
            part = parts.pop()
            some = {family: {} for family in CHAINS}
            for family, key, rules in part:
                some[family][key] = rules
            try:
                self.table.check(some)
            except NftTimeout:
                raise
            except NftError as why:
                if len(part) == 1:
                    self.bad[part[0][2]] = f"nft: {why}"
                    self.bad_at = self.bad_at or self.clock() + BAD_S
                else:
                    half = len(part) // 2
                    parts += [part[half:], part[:half]]

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
        status |= {"sessions": self.sessions, "flows": rows, "waiting": len(self.waiting)}
        if len(self.waiting) != self.waiting_logged:
            facts = {"reason": "too many flows"} if self.waiting else {}
            log("flows waiting", number=len(self.waiting), **facts)
            self.waiting_logged = len(self.waiting)
        self._write(self.options.status, status)
        states = Counter(row["state"] for row in rows)
        self.counted = {state: states[state] for state in ("installed", "refused")}
        self._report()

    def _report(self):
        """Write the summary, which the dataplane reads (ui/show_flowspec.c). The time in the summary
        shows that this program does not hang."""
        errors = {"nft_error": self.error, "frr_error": self.frr_error}
        errors = {key: text and text[:ERROR_LENGTH] for key, text in errors.items()}
        up = sum(state == "up" for state in self.sessions.values())
        summary = {"at_s": self.clock(), **errors, "validate": self.options.validate}
        summary |= {"sessions": len(self.sessions), "sessions_up": up, "waiting": len(self.waiting)}
        self._write(self.options.summary, summary | self.counted)

    def _write(self, path, what):
        """Replace a file. A reader sees the old content or the new content, never a part."""
        part = f"{path}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(what, file, indent=1)
            os.replace(part, path)
        except OSError as why:
            log("status file not written", error=str(why))

    def end(self):
        """Remove all rules and the summary."""
        self.routes, self.waiting, self.due, self.new = {}, {}, {}, {}
        self.sessions = dict.fromkeys(self.sessions, "down")
        self._load()
        try:
            os.unlink(self.options.summary)
        except FileNotFoundError:
            pass
        except OSError as why:
            log("status file not removed", error=str(why))


def _announcer(found):
    return origin.Announcer(tuple(found.as_path), found.ordered, found.reflected)


def _route(family, nlri, announcer, found):
    route = Route(family, nlri, announcer)
    try:
        route.flow = parse(family, nlri)
        route.actions = action.parse(found.communities, found.communities6)
        route.rules = translate.rules(route.flow, route.actions)
    except Refused as why:
        route.refused = str(why)
    return route
