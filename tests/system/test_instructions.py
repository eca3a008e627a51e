# SPDX-License-Identifier: BSD-3-Clause
"""The key `instructions` limits the vector instructions of forwarding and of lookups. Each kind of
code that this CPU can run forwards the same packets."""

import subprocess

import pytest

from gateways import case
from wire import token_of

# Words of the key, and what `show version` prints for them.
WORDS = {"scalar": "scalar", "sse4": "SSE4", "avx2": "AVX2", "avx512": "AVX-512"}

MAC = "02:00:00:00:70:01"


def flags():
    """Return the features of this CPU as the kernel names them."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        line = next((x for x in file if x.startswith("flags")), ":")
    return set(line.partition(":")[2].split())


def best():
    """Return the word of the widest instructions that forwarding has code for on this CPU."""
    if not {"avx2", "bmi1", "bmi2"} <= flags():
        return "sse4"
    return "avx512" if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags() else "avx2"


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
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 1
    assert f"cpu lacks instructions wanted={lacking[0]} best={WORDS[best()]}" in done.stderr


@pytest.mark.parametrize("word", WORDS)
def test_a_router_forwards_with_each_kind_of_instructions(own_dut, word):
    """With `instructions: WORD` full bursts of both families are forwarded with the right headers.
    `show version` and doctor tell the instructions."""
    if word not in able():
        pytest.skip(f"this CPU has no {WORDS[word]}")
    dut = own_dut()
    dut.edit_config("control-netns:", f"instructions: {word}\ncontrol-netns:")
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    row = dut.control.ask("version")[0]
    said = dut.fpmctl("doctor", "daemon").stdout

    assert (row["instructions"], row["instructions_best"]) == (WORDS[word], WORDS[best()])
    assert ("by the configuration" in said) == (word != best()), said
    assert f"instructions {WORDS[word]}, the CPU has" in dut.fpmctl("show", "version").stdout
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
