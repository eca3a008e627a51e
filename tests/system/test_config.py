# SPDX-License-Identifier: BSD-3-Clause
"""The daemon checks the whole configuration file before it starts anything. Every error has its
file, line, column and key, and the expected value."""

import re
import subprocess
from pathlib import Path

import pytest

from lib import netns
from lib.built import only_release
from lib.wait import PATIENCE

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

# name: (text to replace, new text, line, key, word of the message)
BAD = {
    "unknown key": ("idle: adaptive", "idel: adaptive", 17, "idel", "idle"),
    "unknown key in a port": ("    mtu: 1500", "    mut: 1500", 6, "ports[wan0].mut", "mtu"),
    "unknown key in fpm": ("  listen:", "  listem:", 11, "fpm.listem", "listen"),
    "wrong type of mtu": ("mtu: 1500", "mtu: large", 6, "ports[wan0].mtu", "number"),
    "mtu out of range": ("mtu: 1500", "mtu: 20", 6, "ports[wan0].mtu", "68"),
    "a list for a number": ("queues: 1", "queues: [1]", 7, "ports[wan0].queues", "number"),
    "duplicate TAP": ("tap: wan0", "tap: lan0", 4, "ports[lan0].tap", "line 2"),
    "duplicate device": ("iface=p-wan", "iface=p-lan", 5, "ports[wan0].device", "ports[lan0]"),
    "missing device": ("iface=p-wan", "iface=p-nowhere", 5, "ports[wan0].device", "p-nowhere"),
    "kernel name as device": (
        "net_af_packet,iface=p-wan",
        "p-wan",
        5,
        "ports[wan0].device",
        "iface",
    ),
    "TAP name too long": ("tap: wan0", "tap: a-very-long-name-0", 4, "ports[a-very-long-name-0].tap", "15"),
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
    "a peer that is nobody": (
        "  listen: 127.0.0.1:2620",
        "  peer: 224.0.0.1",
        11,
        "fpm.peer",
        "cannot be the address of a peer",
    ),
    "a user that is not there": (
        "  listen: 127.0.0.1:2620",
        "  users: [nosuchuser]",
        11,
        "fpm.users[0]",
        "a name in /etc/passwd",
    ),
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
    "TAP name of the loopback": ("tap: wan0", "tap: lo", 4, "ports[lo].tap", "another"),
    "TAP name that is a pattern": ("tap: wan0", "tap: rt%d", 4, "ports[rt%d].tap", "percent"),
    "TAP name of something else": ("tap: wan0", "tap: other", 4, "ports[other].tap", "not a TAP"),
    "a socket that is a directory": (
        "{dir}/other.sock",
        "{dir}",
        12,
        "control-socket",
        "directory",
    ),
    "two listeners on one port": (
        'metrics: "off"',
        "metrics: 127.0.0.1:2620",
        13,
        "metrics",
        "fpm.listen",
    ),
    "more memory than any": (
        "size-mib: 64",
        "size-mib: 1048576",
        16,
        "memory.size",
        "16384",
    ),
    "a queue too short": (
        "  listen: 127.0.0.1:2620",
        "  queue-limit-mib: 1",
        11,
        "fpm.queue-limit-mib",
        "64",
    ),
    "nested too deep": ("idle: adaptive", "idle: " + "[" * 20000, 17, "syntax", "deep"),
    "no ports": ("ports:\n", "", 1, "", ""),
    "tab": ("    mtu: 1500", "\tmtu: 1500", 6, "syntax", "tab"),
}


@pytest.fixture
def check(dut, tmp_path):
    """Return a function that runs the daemon on a text, with --check or as a start. The function returns
    the finished process."""

    def run(text, start=False, before=()):
        file = tmp_path / "config.yaml"
        file.write_text(text.format(ctl=dut.ctl, dir=dut.dir), encoding="utf-8")
        argv = ["ip", "netns", "exec", dut.dp, *before, dut.daemon.program, "-c", str(file)]
        argv += [] if start else ["--check"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        done.file = str(file)
        return done

    return run


@pytest.fixture
def other(dut):
    """Make the interface `other`, which is no TAP, in FRR's namespace."""
    netns.ip_batch(["link add other type veth peer name other-peer"], dut.ctl)
    yield
    netns.ip_batch(["link del other"], dut.ctl)


@pytest.mark.smoke
def test_a_good_file_is_called_good(check):
    """--check of a good file gives exit code 0, one line on stdout and no output on stderr."""
    done = check(GOOD)

    assert (done.returncode, done.stderr) == (0, "")
    assert "good" in done.stdout and "2 ports" in done.stdout


@pytest.mark.parametrize("name", BAD)
def test_an_error_has_file_line_key_and_expectation(check, other, name):
    """--check prints FILE:LINE:COLUMN: KEY: the error; the expected value. Exit code 2."""
    old, new, line, key, word = BAD[name]
    good = GOOD
    if "listeners" in name:  # two listeners in two namespaces would not conflict
        good = GOOD.replace("control-netns", "# control-netns")
    assert old in good

    done = check(good.replace(old, new, 1))

    assert done.returncode == 2
    want = re.escape(f"{done.file}:{line}:") + r"\d+" + re.escape(f": {key}")
    matching = [text for text in done.stderr.splitlines() if re.match(want, text)]
    assert matching, done.stderr
    assert "expected" in matching[0] and word in matching[0]


def test_all_errors_are_told_at_once(check):
    """One run reports every error, so that an operator does not repair a file one error at a
    time."""
    text = GOOD.replace("mtu: 1500", "mtu: 1").replace("idle: adaptive", "idle: never")

    done = check(text.replace("log-level: info", "loglevel: info"))

    lines = [int(n) for n in re.findall(rf"^{re.escape(done.file)}:(\d+):", done.stderr, re.M)]
    assert {6, 17, 18} <= set(lines) and lines == sorted(lines)


def test_a_bad_file_starts_nothing(check, dut):
    """Without --check, a bad file ends the daemon in the same way, before it touches anything."""
    done = check(GOOD.replace("mtu: 1500", "mtu: 1").replace("lan0", "new0"), start=True)

    assert done.returncode == 2
    assert "new0" not in [link["ifname"] for link in dut.links()]


# A configuration that starts beside the shared daemon. Each test changes one key.
STARTS = """\
ports:
  - tap: new0
    device: net_null
  - tap: new1
    device: net_null
control-netns: {ctl}
fpm:
  listen: 127.0.0.1:2621
control-socket: {dir}/other.sock
metrics: "off"
memory:
  size-mib: 64
"""

# name: (text to replace, new text, words of the sentence)
START_FAILS = {
    "fpm.listen is not local": (
        "127.0.0.1:2621",
        "10.9.9.9:2620",
        "key=fpm.listen address=10.9.9.9:2620 error=\"Cannot assign requested address",
    ),
    "fpm.listen is another daemon's": (
        "127.0.0.1:2621",
        "127.0.0.1:2620",
        "key=fpm.listen address=127.0.0.1:2620 error=\"Address already in use\" hint=another-daemon",
    ),
    "metrics is not local": (
        '"off"',
        '"[2001:db8::9]:9620"',
        "key=metrics address=[2001:db8::9]:9620 error=\"Cannot assign requested address",
    ),
    "the control socket is another daemon's": (
        "other.sock",
        "control.sock",
        "control.sock hint=another-daemon",
    ),
    "a device does not start": (
        "new1\n    device: net_null",
        "new1\n    device: net_pcap,rx_pcap=/nowhere.pcap",
        'name=new1 device="net_pcap,rx_pcap=/nowhere.pcap"',
    ),
}


@pytest.mark.parametrize("name", START_FAILS)
def test_a_start_that_fails_says_why_and_leaves_no_tap(check, dut, name):
    """A failed start names the key and the value in one sentence and has exit code 1. It removes
    the TAPs that it made."""
    old, new, words = START_FAILS[name]
    assert old in STARTS

    done = check(STARTS.replace(old, new, 1), start=True)

    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if words in line], done.stderr
    assert not {"new0", "new1"} & {link["ifname"] for link in dut.links()}


def test_a_start_that_fails_keeps_the_taps_of_an_earlier_one(check, dut):
    """A failed start keeps the TAPs of an earlier start, because they have addresses, and sessions
    that wait for the daemon."""
    dut.ip("tuntap add dev new0 mode tap", "addr add 203.0.113.1/24 dev new0")
    try:
        done = check(STARTS.replace("new1\n    device: net_null",
                                    "new1\n    device: net_pcap"), start=True)  # fmt: skip

        assert done.returncode == 1
        assert "new0" in [link["ifname"] for link in dut.links()]
    finally:
        dut.ip("link del new0")


@pytest.mark.parametrize("files", [8, 16, 63])
def test_too_few_open_files_are_refused_in_words(check, files):
    """The daemon refuses to start with too few open files. Otherwise libraries would abort the process
    in the middle of its start."""
    done = check(STARTS, start=True, before=["prlimit", f"--nofile={files}"])

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"too few open files allowed={files} " in done.stderr


@pytest.mark.parametrize("octets", [64 << 10, 1 << 20])
def test_too_small_a_stack_is_refused_in_words(check, octets):
    """The daemon refuses to start if its stacks may not have the size that forwarders need. Otherwise it
    would end with SIGSEGV."""
    done = check(STARTS, start=True, before=["prlimit", f"--stack={octets}:{octets}"])

    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert f"stack too small allowed_bytes={octets} " in done.stderr


@pytest.mark.parametrize(
    "limit, told", [("as=100000000", "ulimit -v 97656"), ("data=40000000", "ulimit -d 39062")]
)
def test_a_thread_that_cannot_start_is_told_in_words(check, dut, limit, told):
    """The daemon refuses to start if a limit of address space or data forbids a thread, and names the
    limit. Otherwise liburcu would abort the process."""
    only_release(dut.daemon.program, "the addresses of a process are limited")

    done = check(STARTS, start=True, before=["prlimit", f"--{limit}"])

    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "E main: thread does not start " in done.stderr
    assert told in done.stderr.partition('limits="')[2]


def test_who_may_ask_counts_among_open_files(check):
    """The daemon counts the clients that the configuration permits among its open files. A daemon
    full of clients would have no descriptor left to tell the supervisor that it lives."""
    text = STARTS + "limits:\n  clients: 4096\n"

    done = check(text, start=True, before=["prlimit", "--nofile=4096"])

    assert done.returncode == 1
    assert "too few open files allowed=4096 " in done.stderr
    assert 'see="ulimit -n, limits.clients, limits.http-clients"' in done.stderr


def test_a_missing_file_is_one_sentence(dut):
    """A missing file gives one sentence with its name and the reason, and exit code 2."""
    argv = [dut.daemon.program, "-c", "/nowhere/config.yaml", "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    assert done.returncode == 2
    assert "/nowhere/config.yaml" in done.stderr and "No such file" in done.stderr


def test_wrong_words_get_the_usage(dut):
    """An unknown option gives the usage on stderr and exit code 2."""
    for words in (["--frobnicate"], ["-c"], ["surplus"]):
        argv = [dut.daemon.program, *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        assert done.returncode == 2 and "usage:" in done.stderr


def test_options_that_do_not_go_together_are_refused(dut):
    """Two options that exclude each other give one sentence and exit code 2, and the daemon reads
    neither file. The same option twice counts as one."""
    for words, why in (
        (["-c", "/nowhere/a", "-c", "/nowhere/b"], "-c is given twice, as '/nowhere/a' and"),
        (["--check", "--prepare"], "--check and --prepare exclude each other"),
        (["-c", "/nowhere/a", "--check", "--config=/nowhere/a"], "/nowhere/a: cannot be read"),
    ):
        argv = [dut.daemon.program, *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert why in done.stderr.splitlines()[0], done.stderr


def test_version_and_help(dut):
    """--version prints the program and DPDK, --help prints the usage; both exit with 0."""
    for word, want in (("--version", "DPDK"), ("--help", "usage:")):
        argv = [dut.daemon.program, word]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        assert done.returncode == 0 and want in done.stdout


def test_the_example_is_good_but_for_its_devices(dut):
    """The configuration that is shipped has no error except that its devices are not on this
    machine."""
    dist = Path(dut.daemon.program).parents[2] / "fpm-dataplane" / "dist"
    examples = [file for file in dist.glob("*.yaml") if file.name != "openapi.yaml"]
    assert examples
    for example in examples:
        argv = [dut.daemon.program, "-c", str(example), "--check"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

        wrong = [
            text for text in done.stderr.splitlines() if text.startswith(f"{example}:")
        ]
        assert done.returncode == (2 if wrong else 0), done.stderr
        here = (".device:", "control-netns:", "nothing started")
        assert [text for text in wrong if not any(word in text for word in here)] == []
