# SPDX-License-Identifier: BSD-3-Clause
"""Ways to show, in any lab, what the router does. What does not hold raises ProofError with
what was expected and what was seen."""

import collections
import contextlib
import json
import subprocess
import time

from lib import netns, probe
from lib.wait import PATIENCE, Timeout, eventually

MUTE_S = 15  # as long may others keep the kernel from answering


class ProofError(Exception):
    """A claim that does not hold. `logs` are the programs whose logs may tell why."""

    def __init__(self, expected, seen, logs=()):
        super().__init__(f"expected {expected}; seen: {seen}")
        self.logs = logs


def check(condition, expected, seen, logs=()):
    """Raise ProofError unless `condition`."""
    if not condition:
        raise ProofError(expected, seen, logs)


def wait_for(expected, ready, see, logs=(), timeout=30):
    """Wait until ready() is true, and return that; see() tells what is there instead."""
    try:
        return eventually(ready, timeout)
    except Timeout:
        raise ProofError(f"{expected} within {timeout} s", see(), logs) from None


def forwarded(lab):
    """Packets the dataplane has forwarded so far, both families."""
    return sum(
        n
        for (kind, name), n in lab.dp.counters().items()
        if kind == "total" and name.startswith("forwarded")
    )


def drops(lab):
    """Packets the dataplane has dropped so far: by reason."""
    return collections.Counter(
        {name: n for (kind, name), n in lab.dp.counters().items() if kind == "drop"}
    )


def transit(lab):
    """Packets each port and each VLAN has sent that were not the kernel's own: by name."""
    while True:
        own, sent = _sent_by_kernel(lab), lab.dp.ports()
        sent |= {row["name"]: row for row in lab.dp.show("interfaces") if row["vlan"]}
        if own == _sent_by_kernel(lab):  # or both are not of one moment
            return {name: row["tx_packets"] - own[name] for name, row in sent.items()}


def _sent_by_kernel(lab):
    table = netns.read_proc(lab.ns["r1"], "/proc/net/dev").splitlines()[2:]
    rows = [line.replace(":", " ").split() for line in table]
    return {row[0]: int(row[10]) for row in rows}


def only_taps(lab):
    """r1 has nothing but TAPs and what stands on them, and control packets come by them:
    how many."""
    rows = json.loads(netns.command(["ip", "-n", lab.ns["r1"], "-d", "-j", "link"]))
    kinds = {row["ifname"]: row.get("linkinfo", {}).get("info_kind") for row in rows}
    del kinds["lo"]
    expected = {tap: "tun" for tap, _, _ in lab.plan.ports} | lab.plan.stacked
    check(kinds == expected, f"r1 to have nothing but {expected}", kinds)
    names = ("local_control", "group_control", "l2_control")
    carried = sum(lab.dp.counter("punt", name) for name in names)
    check(carried > 0, "control packets carried to the TAPs", carried, ("dataplane",))
    return carried


def unsent(lab):
    """Answers that kernels of the lab had no room to send."""
    return sum(map(netns.icmp_unsent, lab.ns.values()))


def answered(lab, ask, is_whole):
    """What ask() hears; asked again while it was a kernel of the lab that could not answer.

    All namespaces of a machine have one ICMP socket a CPU. Answers to neighbors that nobody
    finds wait in it, 3 s each: a flood in any lab, and the kernels of all are mute.
    """
    end = time.monotonic() + MUTE_S * PATIENCE
    while True:
        before = unsent(lab)
        heard = ask()
        if is_whole(heard) or unsent(lab) == before or time.monotonic() > end:
            return heard


def crossing(lab, node, hosts, port):
    """`node` pings each of `hosts`, which are beyond `port` (or a VLAN on one): the dataplane
    forwards, the kernel does not. Returns a sentence."""
    logs = ("dataplane",)
    for host in hosts:  # neighbors may have to be found first, on a busy machine too
        wait_for(
            f"{host} to answer {node}",
            lambda host=host: probe.ping(lab.ns[node], host, 1, 1)[0],
            lambda: f"r1 dropped {dict(+drops(lab))}", logs, timeout=10,
        )  # fmt: skip
    kernel, fast, dropped = netns.forwarded(lab.ns["r1"]), forwarded(lab), drops(lab)
    before = transit(lab)
    answers, best = 0, []
    for host in hosts:
        ask = lambda host=host: probe.ping(lab.ns[node], host)  # noqa: E731
        got, ms = answered(lab, ask, lambda heard: heard[0] == 3)
        why = dict(drops(lab) - dropped)
        check(got == 3, f"3 answers from {host}", f"{got} answers, r1 dropped {why}", logs)
        answers += got
        best.append(ms)
    fast = forwarded(lab) - fast
    check(fast >= 2 * answers, f">= {2 * answers} packets forwarded", fast, logs)
    out = transit(lab)[port] - before[port]
    check(out >= answers, f">= {answers} packets of others out of {port}", out, logs)
    kernel = tuple(b - a for a, b in zip(kernel, netns.forwarded(lab.ns["r1"])))
    check(kernel == (0, 0), "r1's kernel to forward nothing", kernel, logs)
    return (
        f"{answers} of {answers} answered, best {min(best):.2f} ms. The dataplane forwarded "
        f"{fast} packets, r1's kernel 0."
    )


def _lost_so_far(lab):
    """In words; a daemon that does not answer any more is no news here."""
    try:
        dropped = dict(+drops(lab))
    except netns.CommandError as error:
        dropped = error
    return f"r1 has dropped {dropped}, kernels could not send {unsent(lab)} answers"


def path(lab, node, target, expected):
    """The way from `node` to `target` is by `expected` addresses. Returns it as text."""
    ask = lambda: probe.traceroute(lab.ns[node], target)  # noqa: E731
    seen = answered(lab, ask, lambda heard: heard == expected)
    what = f"{seen}" if seen == expected else f"{seen}; {_lost_so_far(lab)}"
    check(seen == expected, f"traceroute {target} by {expected}", what, ("dataplane",))
    return " > ".join(seen)


def spread(lab, node, address, flows, at, taps):
    """Packets of `flows` UDP flows from `node` to `address`, which is of node `at`, by the
    port they leave r1 by; all of them arrive."""
    probe.ping(lab.ns[node], address, 1)  # neighbors are known from here on
    with probe.UdpSink(lab.ns[at], address) as sink:
        before = transit(lab)
        sent = probe.udp_flows(lab.ns[node], address, flows)
        wait_for(
            f"{sent} packets at {address}",
            lambda: sink.count() >= sent,
            lambda: sink.count(),
            ("dataplane",),
            3,
        )
        by_port = {tap: n - before[tap] for tap, n in transit(lab).items() if tap in taps}
    check(
        min(by_port.values()) > flows / (2 * len(taps)),
        f"each of {', '.join(taps)} to carry a fair share of {flows} flows",
        by_port,
        ("dataplane",),
    )
    return by_port


WATCHED_S = 0.5  # more may go wrong after a first late answer; a change takes 25 ms


def silence(lab, node, hosts, action):
    """{host: milliseconds without an answer from it around action(), the longest while}. All are
    watched at once."""
    with contextlib.ExitStack() as watching:
        watches = {
            host: watching.enter_context(probe.Stopwatch(lab.ns[node], host)) for host in hosts
        }

        def all_answer(since, what):
            for host, watch in watches.items():
                eventually(lambda w=watch: w.first("reply", since), 60, 0.01, f"{host} {what}")

        all_answer(time.monotonic(), "answers")
        action()
        end = time.monotonic()
        all_answer(end, "answers again")
        all_answer(end + WATCHED_S, "goes on answering")
        return {host: _longest_gap(watch) for host, watch in watches.items()}


def _longest_gap(watch):
    times = [t for t, kind, _ in list(watch.seen) if kind == "reply"]
    return 1000 * max(b - a for a, b in zip(times, times[1:]))


def milliseconds(took):
    """What silence() found, as text."""
    return ", ".join(f"{host} for {ms:.0f} ms" for host, ms in took.items())


def audit(lab):
    """zebra, RIB and FIB say the same, prefix by prefix. Returns fpmctl's verdict."""
    argv = [lab.dp.ctl, "-s", lab.socket, "audit"]

    def ask():
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    done = wait_for(
        "`fpmctl audit` to find zebra = RIB = FIB",
        lambda: (done := ask()).returncode == 0 and done,
        lambda: ask().stdout[-400:],
        ("dataplane", "zebra"),
        20,
    )
    return done.stdout.strip().splitlines()[-1]
