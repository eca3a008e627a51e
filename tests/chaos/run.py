#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run faults for T seconds, with the same schedule for the same SEED. Exit code 0: no packet was
lost outside the declared windows, none took a wrong path, and all tables were right in the end.

    T=60 LEAST=0 SEED=1 ROUTES=20000 RATE=1500 ONLY=fault,fault REPEAT=0 EACH=0

The run is longer than T if fewer than LEAST different faults have been drawn by then.
REPEAT=n is for measurements: each fault comes n times, by turns, or until T is over. A fault
starts when the network is quiet again, however long that takes. With EACH=n each fault comes n
times in the order of ONLY, overlapping, or until T is over.

FRR, the kernel and the machine are not under our control: two runs of one seed do the same at
nearly the same times, not at the same times.
"""

import collections
import contextlib
import json
import math
import os
import random
import re
import signal
import sys
import threading
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from chaos import fast, faults, inputs
from chaos.bed import FEW, Bed
from chaos.oracle import Queues
from chaos.report import Verdict, stamp
from lab import sessions
from lib import netns, procs
from lib.audited import only_copies_differ
from lib.linkwatch import LinkWatch
from lib.wait import Timeout, eventually

TELL_S = 60
AFTER_END_S = 8  # a fault that is no longer than this may last until after the end of the time
GOOD_RUN_S = 11  # a little more than GOOD_RUN_MS of the supervisor
# The memory that malloc, a replay and each first use may add. With few routes it was 1 to 11 MiB
# in nine runs, and did not grow after a minute.
LEAK_BYTES, LEAK_BYTES_MANY = 24 << 20, 48 << 20
WARM_S = 300  # after this time a daemon without a restart has had every first use
FLAT_BYTES = 8 << 20  # the most that it may grow from then on, in any time
# The most log lines of one kind about one object in a second. A limited kind, which reports the
# number of suppressed lines (missed=), has one line in a second of the daemon's clock: that may be
# two in a second of ours, and one more of another daemon after a kill. An event of a link may be
# logged as often as it happens.
LOG_LIMITED, LOG_LINES = 3, 8


def _settle(run, ending):
    """Ask zebra repeatedly, and narrow the allowed paths."""
    queues = Queues(run.bed.r1)
    while not ending.wait(0.2):
        if not run.oracle.unsettled():
            continue
        seen_at = time.monotonic()
        try:
            session = _session(run)
            if not session:
                run.oracle.no_session()
            view = run.bed.view()
            run.unsure = "" if queues.are_empty() else queues.why
            # A zebra that comes back selects routes seconds before it connects to FPM again, and
            # the dataplane holds routes that zebra does not confirm. failures.md documents both.
            if not run.unsure and not run.bed.in_step():
                run.unsure = "the dataplane is not in step"
            if not run.unsure:
                run.oracle.agree(view, seen_at)
                run.unsure = "" if session else "bgpd has no session with isp"
        except Exception as err:  # a daemon is away at the moment
            run.unsure = repr(err)


def _session(run):
    """Return True if bgpd has a session with isp. A bgpd that does not run or has no configuration
    yet has no session."""
    with contextlib.suppress(Exception):
        return faults.bgp_is_up(run)
    return False


def schedule(run, seconds, only, least):
    """Run faults, one after the other or overlapping, until the time is up and `least` different
    faults have been drawn: first each fault once, if the time suffices, then by weight."""
    names = [n for n in faults.FAULTS if not only or n in only]
    weights = [faults.FAULTS[n].weight for n in names]
    first, kept = run.rng.sample(names, len(names)), Kept(run)
    least = min(least, sum(faults.FAULTS[n].longest <= AFTER_END_S for n in names))
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(run.drawn) < least:
        name = first.pop() if first else run.rng.choices(names, weights)[0]
        pause, quiet = run.rng.uniform(0.1, 1.5), run.rng.random() < 0.4
        function = faults.FAULTS[name]
        if function.longest > max(end - time.monotonic(), AFTER_END_S):
            continue
        stamp(run, f"{name}: {function.__doc__.splitlines()[0]}")
        kept.before(function)
        function(run)
        run.drawn[name] += 1
        time.sleep(pause)
        if quiet:
            wait_quiet(run, 20)
    kept.compare()


def in_order(run, times, seconds, only):
    """Run each fault `times` times in the order of `only`, with short pauses, until the time is
    up."""
    kept, end = Kept(run), time.monotonic() + seconds
    for name in (only or list(faults.FAULTS)) * times:
        if time.monotonic() > end:
            break
        function = faults.FAULTS[name]
        stamp(run, f"{name}: {function.__doc__.splitlines()[0]}")
        kept.before(function)
        function(run)
        run.drawn[name] += 1
        run.pause(0.05, 0.3)
    kept.compare()


class Kept:
    """Watches FRR's sessions during faults that must not end one. If all sessions were up before
    and one was lost or came up again since, the faults since then have ended it."""

    def __init__(self, run):
        self.run, self.was, self.since = run, None, []
        self.looked = 0.0  # the time when all were up

    def look(self):
        with contextlib.suppress(Exception):  # a daemon of FRR is away
            r1 = self.run.bed.r1
            return sessions.flaps(r1) if sessions.are_up(r1) else None
        return None

    def before(self, function):
        """Record that one more fault starts."""
        self.compare()
        # After several crashes the supervisor waits before a start, and sessions end meanwhile.
        crashed = function.kills and time.monotonic() - self.run.fell_at < GOOD_RUN_S
        if not function.sessions_stay or crashed or function.kills > 1:
            self.was, self.since = None, []
            return
        self.was, self.looked = self.was or self.look(), time.monotonic()
        self.since.append(function.__name__)

    def compare(self):
        """Compare the sessions with their earlier state."""
        now = self.was and sessions.flaps(self.run.bed.r1)
        if now != self.was:
            self.run.lost(", ".join(self.since), _changed(self.was, now), self.looked)
            self.was, self.since = None, []


def _changed(before, after):
    """Return the kinds of sessions that were lost, with their counts."""
    return [f"{kind} {before[kind]} -> {after[kind]}" for kind in after if after[kind] != before[kind]]


def one_by_one(run, times, seconds, only):
    """Run each fault `times` times, without overlap."""
    end = time.monotonic() + seconds
    for name in (only or list(faults.FAULTS)) * times:
        if time.monotonic() > end:
            break
        function = faults.FAULTS[name]
        if function.sessions_stay:
            # After a daemon that did not run for so long, the supervisor would delay the next start.
            if function.kills and run.fell:
                age = lambda: run.bed.dp.show("version")[0]["uptime_s"]  # noqa: E731
                eventually(lambda: age() > GOOD_RUN_S, 30, 0.2)
            # After a fault that ended FRR's sessions, these may not be up yet.
            kept, up = Kept(run), "FRR's sessions are up"
            eventually(lambda: kept.look() is not None, run.bed.patience(60), 0.2, up)
        stamp(run, name)
        before, begin = sessions.flaps(run.bed.r1), time.monotonic()
        with LinkWatch(run.bed.ns["r1"]) as watch:
            function(run)
        run.drawn[name] += 1
        wait_quiet(run, run.bed.patience(120))
        said = "zebra has said all again"
        eventually(run.bed.in_step, run.bed.patience(120), 0.2, said)
        run.pause(0.5, 1.5)
        after = sessions.flaps(run.bed.r1)
        # Two crashes in a row sometimes take longer than BFD's 2 s.
        if function.sessions_stay and function.kills < 2 and after != before:
            run.lost(name, _changed(before, after), begin)
        if function.sessions_stay:
            taps = [line for line in watch.lost_carrier() if not re.search(r" (br1|vx1):", line)]
            run.must(not taps, f"{name}: TAPs lost their carrier")


def _tell(run, every, ending):
    """Print a line of state from time to time, for the observer of a long run."""
    while not ending.wait(every):
        with contextlib.suppress(Exception):  # the daemon is away at the moment
            run.rss.append(rss(run.bed))
            row, fpm = memory(run.bed), run.bed.dp.fpm()
            traffic = run.bed.traffic
            in_use = row["packet_buffers"] - row["packet_buffers_free"]
            stamp(
                run,
                f"sent {len(traffic.came)}, wrong {len(traffic.wrong)}, damaged "
                f"{len(traffic.mangled)}, rss {row['rss_bytes'] >> 20} MiB, buffers in use "
                f"{in_use}, routes {fpm['zebra4'] + fpm['zebra6']}, "
                f"unsettled {len(run.oracle.unsettled())}",
            )


def wait_quiet(run, patience):
    """Wait until every cell has its only right path again, for a limited time."""
    try:
        with run.bed.labelled.still(), run.bed.segments.still():
            eventually(lambda: not run.oracle.unsettled(), patience, 0.1)
    except Timeout:
        pass


def rss(bed):
    """Return (process id, seconds that it runs, octets) of the daemon."""
    row = bed.dp.show("version")[0]
    return row["pid"], row["uptime_s"], memory(bed)["rss_bytes"]


def memory(bed):
    """Return the rows of `show memory`."""
    return bed.dp.show("memory")[0]


def descriptors(folder):
    """Return a Counter of (program, kind) of all descriptors of the dataplane of a bed in `folder`
    and of its supervisor."""
    count = collections.Counter()
    for program in ("fpm-dataplane", "fpm-supervise"):
        for pid in procs.marked(folder, program):
            with contextlib.suppress(FileNotFoundError):  # the process ends just now
                for name in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(FileNotFoundError):  # or it closes this descriptor
                        link = os.readlink(f"/proc/{pid}/fd/{name}")
                        # Leave out the number, because it differs in each line.
                        count[program, re.sub(r":\[\d+\]$", "", link)] += 1
    return count


def left_open(before, now):
    """Return the descriptors that are more than before, as text; "" if there are none."""
    more = now - before
    return "; ".join(f"{' '.join(key)} {before[key]} -> {now[key]}" for key in sorted(more))


def log_rates(bed):
    """Return rows (number of log lines of one kind about one port, device or table in one second,
    the kind, the limit), the most lines first."""
    counts = {}
    with open(bed.dp.log_file, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = re.match(r"(\S+) (\S+ )?(\w+: [^=]*?)( \S+=|$)", line)
            second, kind = (found[1][:19], found[3]) if found else (line[:19], "?")
            thing = re.findall(r" (?:port|dev|device|name|table)=(\S+)", line)[:1]
            most = LOG_LIMITED if " missed=" in line else LOG_LINES
            key = (second, " ".join([kind, *thing]), most)
            counts[key] = counts.get(key, 0) + 1
    return sorted(((n, kind, most) for (_, kind, most), n in counts.items()), reverse=True)


def growth(rss, last, routes):
    """Return (octets by which memory grew, its limit). Of a daemon that runs for long, the growth
    after the first minutes counts. `rss` has the rows of Run; `last` is the present row, with
    `routes` routes."""
    pid, _, now = last
    warm = [was for who, uptime, was in rss if who == pid and uptime > WARM_S]
    if warm:
        return now - warm[0], FLAT_BYTES
    return now - rss[0][2], LEAK_BYTES if routes <= FEW else LEAK_BYTES_MANY


def chaos(seconds, seed, n4, rate, only, repeat, each, least):
    """Run chaos and judge it. Returns the exit code."""
    rng = random.Random(seed)
    long = f"{repeat or each} of each" if repeat or each else f"{seconds:g} s"
    print(f"chaos: seed {seed}, {long}, {n4} + {n4 // 5} routes, {rate} packets/s")
    with Bed(f"chaos{os.getpid()}", n4, n4 // 5, rng) as bed:
        bed.build(rate)
        run = faults.Run(bed, rng)
        ending = threading.Event()
        run.rss.append(rss(bed))
        time.sleep(0.5)  # the last request has closed its connection
        run.open = descriptors(bed.dir)
        run.begin = time.monotonic()
        settler = threading.Thread(target=_settle, args=(run, ending), daemon=True)
        settler.start()
        threading.Thread(target=_tell, args=(run, TELL_S, ending), daemon=True).start()
        run.machine.start()
        bed.fast.watch(run)
        bed.traffic.start()
        bed.labelled.start()
        bed.segments.start()
        time.sleep(1)
        if repeat:
            one_by_one(run, repeat, seconds, only)
        elif each:
            in_order(run, each, seconds, only)
        else:
            schedule(run, seconds, only, least)
        bed.labelled.end()
        bed.segments.end()
        wait_quiet(run, bed.patience(45))
        stamp(run, "the end: traffic stops")
        still = run.oracle.unsettled()
        ending.set()
        settler.join()
        run.machine.end()
        bed.fast.end()
        bed.traffic.stop()
        return _judge(run, still, only or list(faults.FAULTS))


def _judge(run, still, names):
    bed, verdict = run.bed, Verdict(run, run.bed.traffic)
    unsure = f" ({run.unsure})" if run.unsure else ""
    verdict.must(not still, f"cells did not return to their expected paths: {_why(bed, still)}{unsure}")
    try:
        bed.learn()  # a session that came back late still transfers its million routes
        eventually(bed.in_step, bed.patience(90), 0.5, "zebra and the dataplane are in step")
    except Timeout as err:
        verdict.must(False, str(err))
    try:
        bed.labelled.withdraw_all()
        bed.segments.withdraw_all()
    except Timeout as err:
        verdict.must(False, str(err))
    verdict.must(not run.lost_sessions, f"sessions were lost: {run.lost_sessions}")
    for begin, end, peer in bed.fast.lost:
        why = run.machine.taken(begin, fast.STARVED_S)
        text = f"session of 3 x 50 ms with {peer} lost at {end - run.begin:.2f} s"
        verdict.must(why, text)
    try:
        eventually(bed.fast.up, 20, 0.2, "sessions of 3 x 50 ms are up in the end")
    except Timeout as err:
        verdict.must(False, str(err))
    for text in run.failures:
        verdict.must(False, text)
    code, said = bed.audit()
    if code != 0 and bed.zebra_contradicts_itself(said):
        stamp(run, "zebra shows paths that it sent neither to the kernel nor to the dataplane: replay")
        bed.replay()
        code, said = bed.audit()
    if only_copies_differ(said):
        # zebra 8.4 does not install a group again whose member the kernel removed with its link.
        stamp(run, "zebra's copies in the kernel lack next hops that zebra shows")
    else:
        verdict.must(code == 0, f"audit: {said}")
    try:
        eventually(lambda: _no_buffers(bed), 15, 0.2, "all packet buffers are back")
    except Timeout as err:
        verdict.must(False, str(err))
    after = rss(bed)
    grown, most = growth(run.rss, after, bed.n4 + bed.n6)
    verdict.must(grown < most, f"memory grew by {grown >> 20} MiB, the limit is {most >> 20}")
    try:
        eventually(lambda: _no_more_open(run), 15, 0.2, "descriptors are closed again")
    except Timeout as err:
        verdict.must(False, str(err))
    log = bed.tail("fpm-dataplane.log", 1 << 20)
    starts = log.count("supervise: program started")
    why = [line for line in log.splitlines() if "supervise: program ended" in line or " E " in line]
    verdict.must(
        starts == 1 + run.fell,
        "\n".join([f"the daemon was started {starts} times, killed {run.fell}", *why[-20:]]),
    )
    rates = log_rates(bed)
    many = [f"{n} of {kind}" for n, kind, most in rates if n > most]
    verdict.must(not many, f"lines of the log in a second: {'; '.join(many[:4])}")
    for line in verdict.table():
        print(line)
    never = ", ".join(n for n in names if n not in run.drawn)
    print(f"drawn: {len(run.drawn)} of {len(names)} faults{never and f', not {never}'}")
    if run.drawn["flood"]:
        print(f"floods of this round still to come: {', '.join(sorted(run.floods)) or 'none'}")
    print(
        f"labels: {bed.labelled.changes} changes; SRv6 and VXLAN: {bed.segments.changes}; "
        f"{verdict.vanished} packets had no route"
    )
    sent = len(bed.traffic.came) - bed.traffic.refused
    print(
        f"sent {sent}, lost {len(bed.traffic.lost())}, refused by links that were down "
        f"{bed.traffic.refused}; memory {run.rss[0][2] >> 20} -> "
        f"{after[2] >> 20} MiB; descriptors {run.open.total()} -> "
        f"{descriptors(bed.dir).total()}; audit: {said.splitlines()[-1] if said else ''}; "
        f"log: at most {rates[0][0]} lines a second of one kind ({rates[0][1]})"
    )
    for error in verdict.errors:
        print(f"FAILED: {error}")
    if verdict.errors and os.environ.get("KEEP_LOGS"):
        keep_logs(bed, os.environ["KEEP_LOGS"])
    print("chaos: " + ("failed" if verdict.errors else "all as it must be"))
    return 1 if verdict.errors else 0


def keep_logs(bed, folder):
    """Keep the logs and the tables for an examination."""
    os.makedirs(folder, exist_ok=True)
    for name in ("fpm-dataplane.log", "r1/zebra.log", "r1/bgpd.log", "r1/watchfrr.out"):
        with open(os.path.join(folder, os.path.basename(name)), "w", encoding="utf-8") as file:
            file.write(bed.tail(name, 100000))
    said = {
        "routes.json": bed.dp.show("routes"),
        "nexthops.json": bed.dp.show("nexthops"),
        "neighbors.json": bed.dp.show("neighbors"),
    }
    for name, rows in said.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    with open(os.path.join(folder, "zebra.txt"), "w", encoding="utf-8") as file:
        file.write(bed.r1.vtysh("show nexthop-group rib", "show ip route", "show ipv6 route"))
    for name, words in (("nexthop", ["nexthop"]), ("route6", ["-6", "route"])):
        with open(os.path.join(folder, f"kernel-{name}.txt"), "w", encoding="utf-8") as file:
            file.write(netns.command(["ip", "-n", bed.ns["r1"], *words]))


def _why(bed, cells):
    """Return a few cells with zebra's routes for them."""
    view = bed.view() if cells else {}
    return "; ".join(
        f"{c}: {set(c.paths[-1])}, expected {set(bed.oracle.expected(c))}, zebra has "
        f"{set(view.get(c.prefix, ()))}"
        for c in cells[:4]
    )


def _no_buffers(bed):
    row = memory(bed)
    if row["packet_buffers"] != row["packet_buffers_free"]:
        raise LookupError(f"{row['packet_buffers'] - row['packet_buffers_free']} in use")
    return True


def _no_more_open(run):
    if left := left_open(run.open, descriptors(run.bed.dir)):
        raise LookupError(left)
    return True


def number(name, default, least, kind=int):
    """Return a number of the environment. If it is no number, print an error and exit."""
    text = os.environ.get(name) or ""
    try:
        value = kind(text) if text else default
        if least <= value < 1e12 or value == default:
            return value
    except ValueError:
        pass
    what = "a number" if kind is float else "a whole number"
    print(f'chaos: {name}="{text}" is not {what} of {least} or more', file=sys.stderr)
    sys.exit(2)


def main():
    """The command line: the environment, as make gives it."""
    seed = number("SEED", random.randrange(1 << 30), 0)
    only = [w for w in (os.environ.get("ONLY") or "").split(",") if w]
    unknown = [w for w in only if w not in faults.FAULTS]
    if unknown:
        print(f"chaos: no such fault: {' '.join(unknown)}; there are {' '.join(faults.FAULTS)}",
              file=sys.stderr)  # fmt: skip
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    repeat, each = number("REPEAT", 0, 0), number("EACH", 0, 0)
    seconds = number("T", math.inf if repeat or each else 60, 1, float)
    # With 100 routes or more, each cell of the full table has a prefix that no other prefix covers.
    table, rate = number("ROUTES", 20000, 100), number("RATE", 1500, 1)
    return chaos(seconds, seed, table, rate, only, repeat, each, number("LEAST", 0, 0))


if __name__ == "__main__":
    sys.exit(main())
