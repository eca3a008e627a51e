# SPDX-License-Identifier: BSD-3-Clause
"""Sequences of nft commands: the router follows them as Linux does."""

import os
import random
import re
import socket
import struct

import pytest

import filter_random
from filter_commands import Commands
from filtered import TABLE, chain, explained, filtered, passes
from lib import netns
from lib.wait import eventually
from router import Router

# `make filter-commands` is the long run; FDP_FILTER_SEED repeats one sequence of it.
SEQUENCES = int(os.environ.get("FDP_FILTER_SEQUENCES", "3"))
STEPS = int(os.environ.get("FDP_FILTER_STEPS", "10"))
NETLINK_NETFILTER, GETGEN = 12, 10 << 8 | 16  # linux/netfilter/nf_tables.h
SEED = int(os.environ.get("FDP_FILTER_SEED", "1"))


@pytest.fixture(scope="module")
def both(possible):
    """A router with a filter, and Linux."""
    with filtered(Router(name="flc")) as pair:
        yield pair


@pytest.fixture
def lan(both):
    return both.dut.wires["lan"]


def test_a_dormant_table_judges_no_packet_and_keeps_its_counters(both, lan):
    """As in Linux, a dormant table judges no packet and keeps its counters. Rules that are not supported
    are no fault while the table is dormant."""
    both.load(chain("udp dport 53 counter drop"))
    assert not passes(both, lan.probe("198.51.100.9", dport=53))

    def flag(word):
        return both.nft(f"add table {TABLE} {{ {word} }}")

    flag("flags dormant;")
    assert passes(both, lan.probe("198.51.100.9", dport=53))
    assert [r["packets"] for r in both.rules()] == [1]
    flag("")
    assert not passes(both, lan.probe("198.51.100.9", dport=53))
    assert [r["packets"] for r in both.rules()] == [2]
    flag("flags dormant;")
    row = both.nft(f"add rule {TABLE} forward meta time > 0 drop", linux=False)
    assert (row["state"], row["refused"]) == ("in-force", None) and both.rules() == []
    assert passes(both, lan.probe("198.51.100.9", dport=53))


def test_counters_and_limits_stay_while_no_packet_reaches_them(both, lan):
    """As in Linux, values stay while no packet can reach them: counters of a chain to which no rule
    jumps, a named limit that no rule uses, and counters of a dormant table with an unsupported rule."""
    few = "limit few { rate 1/hour burst 3 packets; }\n"
    sub = "chain sub { udp dport 53 counter drop\ncounter return\n}\n"
    both.load(few + sub + chain('limit name "few" counter accept', "jump sub", policy="drop"))
    ports = (53, 54, 53, 55, 53, 53)

    def judged(*changes):
        for change in changes:
            both.nft(change)
        got = both.answers([bytes(lan.probe("198.51.100.9", dport=port)) for port in ports])
        assert [kernel == ours for kernel, ours in got] == [True] * len(ports)
        return sum(bool(ours) for _, ours in got)

    def counted():
        kernel = both.kernel_rules()
        ours = {r["handle"]: (r["packets"], r["octets"]) for r in both.rules()}
        assert {h: n for h, n in ours.items() if h in kernel} == kernel
        return [packets for packets, _ in kernel.values()]

    assert judged() == 3
    assert counted() == [2, 1, 3]
    flush, again = f"flush chain {TABLE} forward\n", f'add rule {TABLE} forward limit name "few" counter accept\n'
    assert judged(flush) == 0
    assert judged(again + f"add rule {TABLE} forward jump sub\n") == 0, "the bucket of the limit is empty"
    assert counted() == [6, 3, 0]

    dormant = f"add table {TABLE} {{ flags dormant; }}\n"
    assert judged(dormant) == 6
    assert judged(f"add rule {TABLE} forward meta time > 0 counter drop\n") == 6
    assert both.rules() == []
    bad = max(both.kernel_rules())
    assert judged(f"delete rule {TABLE} forward handle {bad}\n") == 6
    assert counted() == [6, 3, 0]
    assert judged(f"add table {TABLE} {{ }}\n") == 0
    assert counted() == [10, 5, 0]


def test_a_rule_that_replaces_another_begins_anew(both, lan):
    """Linux 6.18 gives the new rule the handle of the old rule. The counter of the new rule is 0, and its
    bucket is full, with the new rate. A rule that jumps to a renamed chain keeps its counter."""
    both.load("chain sub { counter\n}\n" + chain("limit rate 1/hour burst 3 packets counter accept", "counter jump sub"))
    sub, limit, jump = sorted(listed(both.linux.ctl), key=lambda at: at[1])

    def counted():
        both.answers([bytes(lan.probe("198.51.100.9", dport=port)) for port in range(10)])
        kernel = {handle: n for (_, handle), n in listed(both.linux.ctl).items()}
        assert {r["handle"]: (r["packets"], r["octets"]) for r in both.rules()} == kernel
        return [packets for packets, _ in kernel.values()]

    assert sorted(counted()) == [3, 7, 7]
    both.nft(f"replace rule {TABLE} forward handle {limit[1]} limit rate 1/hour burst 5 packets counter accept\n")
    assert sorted(counted()) == [5, 12, 12]
    both.nft(f"rename chain {TABLE} {sub[0]} other\n")
    assert sorted(counted()) == [5, 22, 22]
    both.nft(f"replace rule {TABLE} forward handle {jump[1]} counter goto other\n")
    assert sorted(counted()) == [5, 10, 32]


def listed(where):
    """Return {(chain, handle): (packets, octets) or None} of the rules of the table, from the text of nft,
    whose JSON (1.0.6) ends early for a dormant table."""
    found, chain_name, opened = {}, None, []
    for line in netns.run(where, ["nft", "-a", "list", "table", *TABLE.split()]).splitlines():
        count = re.search(r"counter packets (\d+) bytes (\d+)", line)
        count = count and tuple(map(int, count.groups()))
        handle = re.search(r"# handle (\d+)$", line)
        if name := re.match(r"\tchain (\S+) \{", line):
            chain_name = name[1]
        elif line.endswith("jump {"):
            opened.append(count)
        elif handle and line.strip().startswith("}"):
            found[chain_name, int(handle[1])] = opened.pop()
        elif handle and chain_name:
            found[chain_name, int(handle[1])] = count
        elif line == "\t}":
            chain_name = None
    return found


def generation_of(where):
    """Return the generation of nf_tables."""
    ask = struct.pack("=IHHII", 20, GETGEN, 1, 1, 0) + bytes(4)
    with netns.open_socket(where, socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as sock:
        sock.send(ask)
        answer = sock.recv(4096)
    return struct.unpack_from("!I", answer, 24)[0]


def commanded(both, text):
    """Run a transaction in both routers. Return True when it is in force, False if nft refuses it."""
    taken = set()
    for where in (both.dut.ctl, both.linux.ctl):
        try:
            netns.run(where, ["nft", "-f", "-"], stdin=text)
            taken.add(True)
        except netns.CommandError:  # the refused transaction has used up handles
            taken.add(False)
    if taken == {False}:
        return False
    assert taken == {True}
    generation = generation_of(both.dut.ctl)
    row = eventually(lambda: (r := both.status())["generation_read"] == generation and r, 20, 0.005)
    assert (row["state"], row["refused"]) == ("in-force", None)
    both.dut.fence(both.dut.wires["lan"])
    return True


@pytest.mark.parametrize("seed", range(SEED, SEED + SEQUENCES))
def test_random_commands_are_followed_as_linux_does(both, lan, seed):
    """Rules are added, inserted, replaced and deleted, elements of sets and maps come and go, chains are
    made, flushed, renamed and deleted, policies and tables change: after each transaction random
    packets have the verdicts, ICMP errors and counters of Linux."""
    rnd = random.Random(f"commands {seed}")
    table, done = Commands(rnd, TABLE), []
    text = table.begin()
    while not commanded(both, text):
        text = table.begin()
    for _ in range(STEPS):
        done.append(text)
        frames = [filter_random.packet(rnd, lan.mac, lan.port_mac) for _ in range(12)]
        # Rules do not see packets that expire. Linux does not send all errors about them if many
        # come at once.
        frames = [f for f in frames if f[22 if f[12:14] == b"\x08\0" else 21] > 1]
        differ = [
            (frame.hex(), kernel, ours)
            for frame, (kernel, ours) in zip(frames, both.answers(frames))
            if kernel != ours and not explained(frame, kernel, ours)
        ]
        counted = {r["handle"]: (r["packets"], r["octets"]) for r in both.rules()}
        kernel = listed(both.linux.ctl)
        wrong = {h: (n, counted[h]) for (_, h), n in kernel.items() if n and h in counted and counted[h] != n}
        assert (differ, wrong) == ([], {}), "after\n" + "# then\n".join(done)
        for _ in range(20):
            text = table.step(list(kernel))
            if commanded(both, text):
                break
