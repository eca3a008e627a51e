# SPDX-License-Identifier: BSD-3-Clause
"""The configuration file is checked wholly before anything starts; every error has its
file, line, key, and what was expected."""

import subprocess
from pathlib import Path

import pytest

GOOD = """\
ports:
  - tap: lan0
    device: net_af_packet,iface=p-lan
  - tap: wan0
    device: net_af_packet,iface=p-wan
    mtu: 1500
    queues: 1
cores: [0]
control-netns: {ctl}
fpm:
  listen: 127.0.0.1:2620
control-socket: {dir}/other.sock
metrics: "off"
memory:
  hugepages: false
  size-mib: 64
idle: adaptive
log-level: info
"""

# name: (what to replace, with what, line, key, word of the message)
BAD = {
    "unknown key": ("idle: adaptive", "idel: adaptive", 17, "idel", "idle"),
    "unknown key in a port": ("    mtu: 1500", "    mut: 1500", 6, "ports[1].mut", "mtu"),
    "unknown key in fpm": ("  listen:", "  listem:", 11, "fpm.listem", "listen"),
    "wrong type of mtu": ("mtu: 1500", "mtu: large", 6, "ports[1].mtu", "number"),
    "mtu out of range": ("mtu: 1500", "mtu: 20", 6, "ports[1].mtu", "68"),
    "a list for a number": ("queues: 1", "queues: [1]", 7, "ports[1].queues", "number"),
    "duplicate TAP": ("tap: wan0", "tap: lan0", 4, "ports[1].tap", "ports[0]"),
    "duplicate device": ("iface=p-wan", "iface=p-lan", 5, "ports[1].device", "ports[0]"),
    "missing device": ("iface=p-wan", "iface=p-nowhere", 5, "ports[1].device", "p-nowhere"),
    "kernel name as device": (
        "net_af_packet,iface=p-wan",
        "p-wan",
        5,
        "ports[1].device",
        "iface",
    ),
    "TAP name too long": ("tap: wan0", "tap: a-very-long-name-0", 4, "ports[1].tap", "15"),
    "no such namespace": (
        "control-netns: {ctl}",
        "control-netns: nowhere",
        9,
        "control-netns",
        "nowhere",
    ),
    "no such CPU": ("cores: [0]", "cores: [9999]", 8, "cores[0]", "9999"),
    "a CPU twice": ("cores: [0]", "cores: [0, 0]", 8, "cores[1]", "once"),
    "bad listen": ("127.0.0.1:2620", "127.0.0.1", 11, "fpm.listen", "PORT"),
    "bad port number": ("127.0.0.1:2620", "127.0.0.1:99999", 11, "fpm.listen", "PORT"),
    "relative socket": ("{dir}/other.sock", "other.sock", 12, "control-socket", "absolute"),
    "not a boolean": (
        "hugepages: false",
        "hugepages: maybe",
        15,
        "memory.hugepages",
        "true",
    ),
    "not a word of idle": ("idle: adaptive", "idle: sometimes", 17, "idle", "poll"),
    "not a level": ("log-level: info", "log-level: loud", 18, "log-level", "debug"),
    "a key twice": ("idle: adaptive", "cores: [1]", 17, "cores", "twice"),
    "no ports": ("ports:\n", "", 1, "", ""),
    "tab": ("    mtu: 1500", "\tmtu: 1500", 6, "syntax", "tab"),
}


@pytest.fixture
def check(dut, tmp_path):
    """Run --check (or more) on a text; returns the finished process."""

    def run(text, start=False):
        file = tmp_path / "config.yaml"
        file.write_text(text.format(ctl=dut.ctl, dir=dut.dir), encoding="utf-8")
        argv = ["ip", "netns", "exec", dut.dp, dut.daemon.program, "-c", str(file)]
        argv += [] if start else ["--check"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        done.file = str(file)
        return done

    return run


def test_a_good_file_is_called_good(check):
    """Exit code 0, one line, nothing on stderr."""
    done = check(GOOD)

    assert (done.returncode, done.stderr) == (0, "")
    assert "good" in done.stdout and "2 ports" in done.stdout


@pytest.mark.parametrize("name", BAD)
def test_an_error_has_file_line_key_and_expectation(check, name):
    """FILE:LINE: KEY: what is wrong; what was expected. Exit code 2."""
    old, new, line, key, word = BAD[name]
    assert old in GOOD

    done = check(GOOD.replace(old, new, 1))

    assert done.returncode == 2
    want = f"{done.file}:{line}: {key}"
    matching = [text for text in done.stderr.splitlines() if text.startswith(want)]
    assert matching, done.stderr
    assert "expected" in matching[0] and word in matching[0]


def test_all_errors_are_told_at_once(check):
    """One run, every mistake: nobody repairs a file one error at a time."""
    text = GOOD.replace("mtu: 1500", "mtu: 1").replace("idle: adaptive", "idle: never")

    done = check(text.replace("log-level: info", "loglevel: info"))

    lines = [
        t.split(":")[1] for t in done.stderr.splitlines() if t.startswith(done.file + ":")
    ]
    assert {"6", "17", "18"} <= set(lines)


def test_a_bad_file_starts_nothing(check, dut):
    """Without --check a bad file ends the daemon just so, before it touches anything."""
    done = check(GOOD.replace("mtu: 1500", "mtu: 1").replace("lan0", "new0"), start=True)

    assert done.returncode == 2
    assert "new0" not in [link["ifname"] for link in dut.links()]


def test_a_missing_file_is_one_sentence(dut):
    """No file: its name, the reason, exit code 2."""
    argv = [dut.daemon.program, "-c", "/nowhere/config.yaml", "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)

    assert done.returncode == 2
    assert "/nowhere/config.yaml" in done.stderr and "No such file" in done.stderr


def test_wrong_words_get_the_usage(dut):
    """An unknown option: usage on stderr, exit code 2."""
    for words in (["--frobnicate"], ["-c"], ["surplus"]):
        argv = [dut.daemon.program, *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        assert done.returncode == 2 and "usage:" in done.stderr


def test_version_and_help(dut):
    """--version names program and DPDK; --help says how to use it; both exit 0."""
    for word, want in (("--version", "DPDK"), ("--help", "usage:")):
        argv = [dut.daemon.program, word]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        assert done.returncode == 0 and want in done.stdout


def test_the_example_is_good_but_for_its_devices(dut):
    """The configuration that is shipped has no error but devices that are not here."""
    dist = Path(dut.daemon.program).parents[2] / "fpm-dataplane" / "dist"
    for example in dist.glob("*.yaml"):
        argv = [dut.daemon.program, "-c", str(example), "--check"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)

        wrong = [
            text for text in done.stderr.splitlines() if text.startswith(f"{example}:")
        ]
        here = (".device:", "control-netns:", "nothing started")
        assert [text for text in wrong if not any(word in text for word in here)] == []
