# SPDX-License-Identifier: BSD-3-Clause
"""Ways to show the behavior of the router in any lab. A claim that does not hold raises ProofError
with the expected and the observed state."""

import collections
import contextlib
import json
import subprocess
import time

from lib import netns, probe
from lib.dut import Control
from lib.wait import PATIENCE, Timeout, eventually

MUTE_S = 15  # the longest time for which other labs may keep the kernel from answering


class ProofError(Exception):
    """A claim that does not hold. `logs` are the programs whose logs may have the cause."""

    def __init__(self, expected, seen, logs=()):
        super().__init__(f"expected {expected}; seen: {seen}")
        self.logs = logs


# Linux makes these in each network namespace once the module of GRE is loaded.
FALLBACKS = ("gre0", "gretap0", "erspan0")


def check(condition, expected, seen, logs=()):
    """Raise ProofError unless `condition`."""
    if not condition:
        raise ProofError(expected, seen, logs)


def wait_for(expected, ready, see, logs=(), timeout=30):
    """Wait until ready() is true. Return its value. On timeout, see() gives the observed state."""
    try:
        return eventually(ready, timeout)
    except Timeout:
        raise ProofError(f"{expected} within {timeout} s", see(), logs) from None


def forwarded(lab):
    """Return the number of packets that the dataplane has forwarded, both families."""
    return sum(
        n
        for (kind, name), n in lab.dp.counters().items()
        if kind == "total" and name.startswith("forwarded")
    )


def drops(lab):
    """Return the number of packets that the dataplane has dropped, by reason."""
    return collections.Counter(
        {name: n for (kind, name), n in lab.dp.counters().items() if kind == "drop"}
    )


def transit(lab):
    """Return, by name, the packets of each port and VLAN that neither the kernel nor BFD sent."""
    control = Control(lab.dp.socket)
    try:
        while True:
            own, sent = _sent_by_router(lab, control), control.ask("ports")
            sent += [row for row in control.ask("interfaces") if row["vlan"]]
            if own == _sent_by_router(lab, control):  # otherwise the two counts are not of one moment
                return {row["name"]: row["tx_packets"] - own[row["name"]] for row in sent}
    finally:
        control.close()


def _sent_by_router(lab, control):
    found = collections.Counter(_sent_by_kernel(lab))
    for row in control.ask("bfd"):
        found[row["dev"]] += row["tx_packets"] + row["echo_tx_packets"]
    return found


def _sent_by_kernel(lab):
    table = netns.read_proc(lab.ns["r1"], "/proc/net/dev").splitlines()[2:]
    rows = [line.replace(":", " ").split() for line in table]
    return {row[0]: int(row[10]) for row in rows}


def only_taps(lab):
    """Check that r1 has only TAPs and interfaces on them. Return the number of control packets that
    came by the TAPs."""
    rows = json.loads(netns.command(["ip", "-n", lab.ns["r1"], "-d", "-j", "link"]))
    kinds = {row["ifname"]: row.get("linkinfo", {}).get("info_kind") for row in rows}
    for name in ("lo", *FALLBACKS):
        kinds.pop(name, None)
    expected = {tap: "tun" for tap, _, _ in lab.plan.ports} | lab.plan.stacked
    check(kinds == expected, f"r1 to have nothing but {expected}", kinds)
    names = ("local_control", "group_control", "l2_control")
    carried = sum(lab.dp.counter("punt", name) for name in names)
    check(carried > 0, "control packets carried to the TAPs", carried, ("dataplane",))
    return carried


def unsent(lab):
    """Return the number of answers that the kernels of the lab could not send (no room)."""
    return sum(map(netns.icmp_unsent, lab.ns.values()))


def answered(lab, ask, is_whole):
    """Return the answer to ask(). Ask again while a kernel of the lab had no room to answer.

    All namespaces of a machine share one ICMP socket per CPU. Answers to neighbors that do not
    resolve wait in it, 3 s each. So a flood in one lab keeps the kernels of all labs from
    answering.
    """
    end = time.monotonic() + MUTE_S * PATIENCE
    while True:
        before = unsent(lab)
        heard = ask()
        if is_whole(heard) or unsent(lab) == before or time.monotonic() > end:
            return heard


def crossing(lab, node, hosts, port):
    """Ping each of `hosts`, which are behind `port` (or a VLAN of one, or several ports), from `node`.
    Check that the dataplane forwards and the kernel does not. Returns a sentence."""
    logs, ports = ("dataplane",), (port,) if isinstance(port, str) else port
    for host in hosts:  # first the neighbors resolve, which takes time on a busy machine
        wait_for(
            f"{host} to answer {node}",
            lambda host=host: probe.ping(lab.ns[node], host, 1, 1)[0],
            lambda: f"r1 dropped {dict(+drops(lab))}", logs,
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
    # A forwarder counts a packet after it has sent it, and may get no CPU in between.
    passed = lambda: forwarded(lab) - fast  # noqa: E731
    wait_for(f">= {2 * answers} packets forwarded", lambda: passed() >= 2 * answers, passed, logs, 3)
    # Until a port sends a packet that the kernel gave to its TAP, the difference lacks a packet.
    out = lambda: sum(n - before[name] for name, n in transit(lab).items() if name in ports)  # noqa: E731
    what = f">= {answers} packets of others out of {', '.join(ports)}"
    wait_for(what, lambda: out() >= answers, out, logs, 3)
    kernel = tuple(b - a for a, b in zip(kernel, netns.forwarded(lab.ns["r1"])))
    check(kernel == (0, 0), "r1's kernel to forward nothing", kernel, logs)
    return (
        f"{answers} of {answers} answered, best {min(best):.2f} ms. The dataplane forwarded "
        f"{passed()} packets, r1's kernel 0."
    )


def _lost_so_far(lab):
    """Return the drops as text. A daemon that does not answer is no error here."""
    try:
        dropped = dict(+drops(lab))
    except netns.CommandError as error:
        dropped = error
    return f"r1 has dropped {dropped}, kernels could not send {unsent(lab)} answers"


TRACES = 3  # traceroute sends one packet to each hop, and a busy machine may lose it


def traced(lab, ask, is_right, is_silent):
    """Return the answer to ask(), a traceroute. Ask again if is_silent() is true: a hop that usually
    answers did not answer."""
    for _ in range(TRACES):
        heard = answered(lab, ask, is_right)
        if is_right(heard) or not is_silent(heard):
            break
    return heard


def path(lab, node, target, expected):
    """Check that the path from `node` to `target` has the `expected` addresses. Returns it as
    text."""
    ask = lambda: probe.traceroute(lab.ns[node], target)  # noqa: E731
    seen = traced(lab, ask, lambda heard: heard == expected, lambda heard: "*" in heard)
    what = f"{seen}" if seen == expected else f"{seen}; {_lost_so_far(lab)}"
    check(seen == expected, f"traceroute {target} by {expected}", what, ("dataplane",))
    return " > ".join(seen)


def spread(lab, node, address, flows, at, taps):
    """Send `flows` UDP flows from `node` to `address` of node `at`, or of several nodes. Check that
    all packets arrive. Return the packets by the port on which they leave r1."""
    wait_for(  # the neighbors are resolved from here on: a queue of packets for one has room for few
        f"{address} to answer {node}",
        lambda: probe.ping(lab.ns[node], address, 1)[0],
        lambda: f"r1 dropped {dict(+drops(lab))}",
        ("dataplane",),
    )
    with contextlib.ExitStack() as stack:
        ends = [at] if isinstance(at, str) else at
        sinks = [stack.enter_context(probe.UdpSink(lab.ns[end], address)) for end in ends]
        arrived = lambda: sum(sink.count() for sink in sinks)  # noqa: E731
        before = transit(lab)
        sent = probe.udp_flows(lab.ns[node], address, flows)
        wait_for(
            f"{sent} packets at {address}",
            lambda: arrived() >= sent,
            arrived,
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


WATCHED_S = 0.5  # time to watch after the first answer, because later ones may be late; a change takes 25 ms


def silence(lab, node, hosts, action):
    """Return {host: the longest time in ms without an answer from it around action()}. All hosts
    are watched at once."""
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
    """Return the result of silence() as text."""
    return ", ".join(f"{host} for {ms:.0f} ms" for host, ms in took.items())


def audit(lab, timeout=20):
    """Check that zebra, if it runs, the kernel, RIB and FIB are equal for each prefix. Returns
    fpmctl's verdict."""
    argv = [lab.dp.ctl, "-s", lab.socket, "audit"]

    def ask():
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    done = wait_for(
        "`fpmctl audit` to find no difference",
        lambda: (done := ask()).returncode == 0 and done,
        # An audit that could not ask zebra or the daemon says so on stderr alone.
        lambda: (done := ask()).stdout[-400:] + done.stderr,
        ("dataplane", "zebra"),
        timeout,
    )
    return done.stdout.strip().splitlines()[-1]
