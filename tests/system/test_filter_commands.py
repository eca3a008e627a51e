# SPDX-License-Identifier: BSD-3-Clause
"""Sequences of nft commands: the router follows them as Linux does."""

import pytest

from filtered import TABLE, chain, filtered, passes
from router import Router


@pytest.fixture(scope="module")
def both(possible):
    """A router with a filter, and Linux."""
    with filtered(Router(name="flc")) as pair:
        yield pair


@pytest.fixture
def lan(both):
    return both.dut.wires["lan"]


def test_a_dormant_table_judges_no_packet_and_keeps_its_counters(both, lan):
    """As in Linux. Rules that are not supported are no fault while the table is dormant."""
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
    """As in Linux: the rules of a chain to which no rule jumps, a named limit that no rule uses, and
    the rules of a dormant table with a rule that is not supported go on with their old values."""
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
