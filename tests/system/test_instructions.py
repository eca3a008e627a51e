# SPDX-License-Identifier: BSD-3-Clause
"""The key `instructions` limits the vector instructions of forwarding and of lookups. Each kind of
code that this CPU can run forwards the same packets."""

import subprocess

import pytest

from gateways import case
from wire import token_of

from lib import cpu
from lib.cpu import NAMES as WORDS
from lib.wait import PATIENCE

MAC = "02:00:00:00:70:01"


def best():
    """Return the word of the widest instructions that forwarding has code for on this CPU."""
    return cpu.forwarding(cpu.flags())


def lookups_with(word):
    """Return the word of the instructions that lookups use with `instructions: WORD`."""
    words = list(WORDS)
    used = words[min(words.index(word), words.index(cpu.lookups(cpu.flags())))]
    return "scalar" if used == "sse4" else used


def able():
    """Return the words of the instructions that this CPU has."""
    words = list(WORDS)
    return words[: words.index(best()) + 1]


def test_instructions_that_the_cpu_lacks_are_refused_by_name(own_dut):
    """On a CPU that lacks the instructions of the configuration the daemon does not start. The message
    names these instructions, and the best instructions of the CPU."""
    lacking = [word for word in WORDS if word not in able()]
    if not lacking:
        pytest.skip("this CPU has all instructions, AVX-512 too")
    dut = own_dut()
    dut.edit_config("control-netns:", f"instructions: {lacking[0]}\ncontrol-netns:")
    argv = ["ip", "netns", "exec", dut.dp, dut.daemon.program, "-c", dut.config]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    assert done.returncode == 1
    assert f"cpu lacks instructions wanted={lacking[0]} best={WORDS[best()]}" in done.stderr


@pytest.mark.parametrize("word", WORDS)
def test_a_router_forwards_with_each_kind_of_instructions(own_dut, word):
    """With `instructions: WORD` full bursts of both families are forwarded with the right headers.
    `show version` and doctor tell the instructions of the forwarders and of lookups. Lookups need
    more features for AVX-512."""
    if word not in able():
        pytest.skip(f"this CPU has no {WORDS[word]}")
    dut = own_dut()
    dut.edit_config("control-netns:", f"instructions: {word}\ncontrol-netns:")
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    row = dut.control.ask("version")[0]
    said = " ".join(dut.fpmctl("doctor", "daemon").stdout.split())

    assert (row["instructions"], row["instructions_best"]) == (WORDS[word], WORDS[best()])
    lookups = WORDS[lookups_with(word)], WORDS[cpu.lookups(cpu.flags())]
    assert (row["lookup_instructions"], row["lookup_instructions_best"]) == lookups
    assert f"forwarding uses {WORDS[word]}, lookups {lookups[0]}" in said
    assert ("as configured" in said) == (word != best()), said
    version = dut.fpmctl("show", "version").stdout
    assert f"forwarding uses {WORDS[word]}, at most {WORDS[best()]} on this CPU" in version
    assert f"lookups use {lookups[0]}, at most {lookups[1]} on this CPU" in version
    for family in (4, 6):
        gateway, prefix, dst = case(family, 70)
        wan.answer(gateway, MAC)
        dut.route(prefix, via=gateway, wire=wan)
        dut.forwarded(lan, lan.probe(dst), wan, timeout=3)
        probes = [lan.probe(dst, sport=5000 + n) for n in range(200)]
        lan.send(*probes)
        frames = [wan.expect(token_of(probe)) for probe in probes]

        assert {(f.src, f.dst) for f in frames} == {(wan.port_mac, MAC)}
        assert {getattr(f.payload, "ttl" if family == 4 else "hlim") for f in frames} == {63}
