# SPDX-License-Identifier: BSD-3-Clause
"""`fpmctl doctor` prints each problem with its cost and a command, and the command mends the
problem. The speaker, a process with the name zebra and a script as vtysh play zebra."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import time

import pytest

from lib import netns, procs
from lib.haste import hasty
from lib.wait import eventually

SUMMARY = (
    '{{"routes": [{{"fib": 9, "type": "connected"}}, {{"fib": {0}, "type": "ebgp"}}]}}'
)
SCRIPT = """#!/bin/sh
case "$2" in
"show ip route summary json") echo '{ipv4}' ;;
"show ipv6 route summary json") echo '{ipv6}' ;;
*) exit 1 ;;
esac
"""


def doctor(dut, *words):
    """Run an examination. Returns (exit code, {(check, subject): finding})."""
    done = dut.fpmctl("--json", "doctor", *words)
    assert done.stdout, done.stderr
    rows = json.loads(done.stdout)
    return done.returncode, {(r["check"], r["subject"]): r for r in rows}


def mend(row):
    """Run the commands of a finding, as an operator would."""
    assert row["cost"] and row["fix"], row
    for command in row["fix"]:
        netns.command(shlex.split(command))


@pytest.fixture
def sysctl(dut):
    """Set net.KEY in FRR's namespace. The old value comes back afterwards."""
    was = {}

    def write(key, value):
        path = "/proc/sys/net/" + key
        was.setdefault(path, netns.run(dut.ctl, ["cat", path]).strip())
        netns.run(dut.ctl, ["sh", "-c", f"echo {value} >{path}"])

    yield write
    for path, value in was.items():
        netns.run(dut.ctl, ["sh", "-c", f"echo {value} >{path}"])


@contextlib.contextmanager
def a_zebra(dut, *words):
    """Run a process in FRR's namespace whose command line is that of zebra."""
    argv = ["zebra", "-c", "read line", *words]
    with netns.entered(dut.ctl):
        process = subprocess.Popen(argv, executable="/bin/sh", stdin=subprocess.PIPE)
    try:
        eventually(lambda: _cmdline(process.pid).startswith(b"zebra\0"), 5, 0.01)
        yield process
    finally:
        process.communicate(b"\n", timeout=5)


def _cmdline(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


@pytest.fixture
def vtysh(tmp_path):
    """Return a function vtysh(ipv4, ipv6). It returns a command that answers as the vtysh of a zebra
    with these numbers of routes."""

    def make(ipv4, ipv6):
        script = tmp_path / "vtysh"
        script.write_text(
            SCRIPT.format(ipv4=SUMMARY.format(ipv4), ipv6=SUMMARY.format(ipv6))
        )
        return f"sh {script}"

    return make


@pytest.mark.smoke
def test_a_healthy_router_has_no_failure_and_every_check_says_something(dut, vtysh):
    """A healthy router gives exit code 0, with warnings, and every check prints a finding, except the
    checks of labels and of segments on a router without them. `doctor list` prints the names of the checks, each with
    a line about it."""
    listed = json.loads(dut.fpmctl("--json", "doctor", "list").stdout)

    code, found = doctor(dut, "--vtysh", vtysh(0, 0))

    assert {r["check"] for r in listed} - {check for check, _ in found} == {"mpls", "srv6"}
    assert all(r["about"] for r in listed)
    assert [r for r in found.values() if r["status"] == "fail"] == []
    assert code == 0
    wrong = [r for r in found.values() if r["status"] == "warn"]
    # `clock` and `rss` have no command, because only the hypervisor or the device could mend them.
    told = [r for r in wrong if r.get("cost")
            and (r.get("fix") or r["check"] in ("clock", "rss"))]  # fmt: skip
    assert wrong == told
    for name in ("daemon", "fpm", "routes"):
        assert found[name, ""]["status"] == "ok", found[name, ""]


def test_the_default_hash_of_flows_is_no_warning_but_a_line(dut, sysctl):
    """doctor prints a line, and no warning, where the kernel's hash is another one. The dataplane hashes
    ports, too, where the kernel's default hashes addresses alone, and the flow label where Linux hashes
    ports."""
    policies = [f"ipv{v}/fib_multipath_hash_policy" for v in (4, 6)]
    lines = lambda: [  # noqa: E731
        (r["status"], r["text"].split("net.")[1])
        for r in json.loads(dut.fpmctl("--json", "doctor", "obeyed").stdout)
        if r["subject"] == "multipath"
    ]

    for policy in policies:
        sysctl(policy, 0)
    assert lines() == [("ok", f"{policy.replace('/', '.')} is 0") for policy in policies]
    for policy in policies:
        sysctl(policy, 1)
    assert lines() == [("ok", "ipv6.fib_multipath_hash_policy is 1")]


def test_the_source_of_icmp_errors_is_no_warning_but_a_line(dut, sysctl):
    """doctor prints a line, and no warning, if icmp_errors_use_inbound_ifaddr is 0. Linux then takes an
    address of the interface by which the error leaves."""
    for value in (0, 1):
        sysctl("ipv4/icmp_errors_use_inbound_ifaddr", value)
        rows = json.loads(dut.fpmctl("--json", "doctor", "obeyed").stdout)
        lines = [(r["status"], "ingress interface" in r["text"]) for r in rows if r["subject"] == "icmp"]
        assert lines == ([] if value else [("ok", True)])


def test_it_fits_80_columns_and_names_each_port(dut, vtysh):
    """The output fits 80 columns and names each port. Only commands may be longer, because an
    operator copies them. Colour appears only on a terminal."""
    out = dut.fpmctl("doctor", "--vtysh", vtysh(0, 0)).stdout

    lines = out.splitlines()
    assert [x for x in lines if len(x) > 80 and not x.startswith("      $ ")] == []
    assert "\033" not in out
    words = [x.split() for x in lines]
    for wire in dut.wires.values():
        assert ["OK", "forwarding", wire.tap, "IPv4", "and", "IPv6"] in words
    assert "0 FAIL" in lines[-1]


def test_a_strict_reverse_path_filter_is_mended_by_the_command_shown(dut, lan, wan, sysctl):
    """The doctor reports a strict reverse path filter, and the command that it shows mends it. The
    larger value of `all` and the interface counts (RFC 3704, 2.2)."""
    sysctl(f"ipv4/conf/{lan.tap}/rp_filter", 1)

    code, found = doctor(dut, "rp-filter")

    assert (code, found["rp-filter", wan.tap]["status"]) == (0, "ok")
    row = found["rp-filter", lan.tap]
    assert (row["status"], row["text"]) == ("warn", "strict")
    mend(row)
    assert doctor(dut, "rp-filter")[1]["rp-filter", lan.tap]["status"] == "ok"


def test_the_kernels_tables_are_followed(dut):
    """The check `kernel` is ok while the router follows the kernel's tables."""
    code, found = doctor(dut, "kernel")
    assert (code, found["kernel", ""]["status"]) == (0, "ok")


def test_a_strict_filter_of_all_interfaces_reaches_each(dut, lan, sysctl):
    """A strict filter of `all` affects each interface, so the command of one finding repairs all
    interfaces."""
    sysctl("ipv4/conf/all/rp_filter", 1)

    _, found = doctor(dut, "rp-filter")

    assert {r["status"] for r in found.values()} == {"warn"}
    mend(found["rp-filter", lan.tap])
    _, found = doctor(dut, "rp-filter")
    assert {r["status"] for r in found.values()} == {"ok"}


@pytest.mark.parametrize("key, other", [("ipv4/conf/lan0", "IPv4"), ("ipv6/conf/all", "IPv6")])
def test_a_port_that_does_not_forward_is_mended(dut, lan, sysctl, key, other):
    """A port that does not forward one family is a warning, because a router may have only one
    family. A port that forwards neither family is a failure. The command mends both."""
    sysctl(f"{key}/forwarding", 0)

    code, found = doctor(dut, "forwarding")

    row = found["forwarding", lan.tap]
    assert (code, row["status"], row["text"]) == (0, "warn", f"off: {other}")
    mend(row)
    assert doctor(dut, "forwarding")[1]["forwarding", lan.tap]["status"] == "ok"


def test_a_router_that_forwards_nothing_fails(dut, lan, sysctl):
    """`no ip forwarding` and `no ipv6 forwarding` give exit code 3, and two commands mend them."""
    sysctl("ipv4/conf/all/forwarding", 0)
    sysctl("ipv6/conf/all/forwarding", 0)

    code, found = doctor(dut, "forwarding")

    row = found["forwarding", lan.tap]
    assert (code, row["status"], row["text"]) == (3, "fail", "off: IPv4 and IPv6")
    mend(row)
    code, found = doctor(dut, "forwarding")
    assert (code, {r["status"] for r in found.values()}) == (0, {"ok"})


def test_zebra_that_has_gone_fails_and_its_return_mends_it(dut):
    """Without a session of zebra the doctor has exit code 3, names the address on which the daemon
    listens, and does not compare routes. The return of zebra mends it."""
    dut.zebra.close()
    eventually(lambda: not dut.fpm()["connected"], 5, 0.01)

    code, found = doctor(dut, "frr", "fpm", "routes")

    assert code == 3
    assert (found["fpm", ""]["status"], found["fpm", ""]["text"]) == (
        "fail",
        "zebra is disconnected",
    )
    assert "fpm address 127.0.0.1 port 2620" in found["fpm", ""]["fix"][0]
    assert found["frr", ""]["status"] == "fail"
    assert found["routes", ""]["status"] == "n/a"
    dut.zebra.connect()
    eventually(lambda: dut.fpm()["connected"], 5, 0.01)
    code, found = doctor(dut, "fpm")
    assert (code, found["fpm", ""]["status"]) == (0, "ok")


def test_zebra_without_the_module_fails(dut):
    """The doctor reads from zebra's command line that the module is missing. With the module the
    check is ok. One zebra with the module among several is enough."""
    with a_zebra(dut, "-A", "127.0.0.1"):
        code, found = doctor(dut, "frr")
        assert (code, found["frr", ""]["status"]) == (3, "fail")
        assert "-M dplane_fpm_nl" in found["frr", ""]["fix"][0]
        with a_zebra(dut, "-M", "dplane_fpm_nl") as right:
            code, found = doctor(dut, "frr")
            assert (code, found["frr", ""]["status"]) == (0, "ok")
            assert f"pid {right.pid}," in found["frr", ""]["text"]


def test_zebra_that_waits_for_acknowledgements_in_vain_fails(dut):
    """A zebra that waits for acknowledgements, without `fpm: feedback: true`, is a failure, because
    its routes would stay queued without end. The key mends it."""
    words = ["-M", "dplane_fpm_nl", "--asic-offload=notify_on_offload"]
    with a_zebra(dut, *words):
        code, found = doctor(dut, "frr")
        assert (code, found["frr", ""]["status"]) == (3, "fail")
        assert dut.config in found["frr", ""]["cost"]
        assert found["frr", ""]["fix"] == ["fpmctl config reload"]
        dut.edit_config("fpm:\n", "fpm:\n  feedback: true\n")
        try:
            dut.fpmctl("config", "reload")
            eventually(lambda: dut.fpm()["feedback_enabled"], 5, 0.01)
            code, found = doctor(dut, "frr")
            assert (code, found["frr", ""]["status"]) == (0, "ok")
        finally:
            dut.edit_config("fpm:\n  feedback: true\n", "fpm:\n")
            dut.fpmctl("config", "reload")


@contextlib.contextmanager
def a_bfdd(dut, *words):
    """Run a process in FRR's namespace whose command line is that of bfdd."""
    argv = ["bfdd", "-c", "read line", *words]
    with netns.entered(dut.ctl):
        process = subprocess.Popen(argv, executable="/bin/sh", stdin=subprocess.PIPE)
    try:
        eventually(lambda: _cmdline(process.pid).startswith(b"bfdd\0"), 5, 0.01)
        yield process
    finally:
        process.communicate(b"\n", timeout=5)


def test_bfdd_and_the_key_disagree(dut):
    """Without the key `bfd.dplane` the check fails if bfdd has --dplaneaddr, because bfdd receives
    no packets. If bfdd does not have the option, the check is ok."""
    finding = lambda: doctor(dut, "bfd")[1]["bfd", ""]  # noqa: E731
    assert finding()["status"] == "n/a"
    with a_bfdd(dut, "-A", "127.0.0.1"):
        assert finding()["status"] == "ok"
    with a_bfdd(dut, "--dplaneaddr", "ipv4:127.0.0.1:50701"):
        said = finding()
    assert said["status"] == "fail" and said["fix"] == ["fpmctl restart"]
    assert 'bfd: {dplane: "127.0.0.1:50701"}' in said["cost"]
    assert dut.control.ask("bfd") == []


def test_who_may_connect_to_bfdd(own_dut):
    """If bfd.dplane is set, bfdd must listen at this address. Any other --dplaneaddr fails, and
    doctor prints the command that corrects it."""
    dut = own_dut()
    dut.edit_config("log-level:", "bfd: {dplane: 127.0.0.1}\nlog-level:")
    dut.start()
    assert dut.control.ask("version")[0]["bfd_dplane"] == "127.0.0.1:50700"
    assert doctor(dut, "bfd")[1]["bfd", ""]["text"] == "no bfdd runs where the TAPs are"
    for words, text in (
        ([], "has no --dplaneaddr"),
        (["--dplaneaddr=ipv4:127.0.0.2"], "bfdd listens at ipv4:127.0.0.2, bfd.dplane is 127.0.0.1:50700"),
        (["--dplaneaddr", "ipv4c:127.0.0.1"], "bfdd connects to ipv4c:127.0.0.1, and does not listen"),
    ):
        with a_bfdd(dut, *words):
            code, found = doctor(dut, "bfd")
        assert code == 3 and text in found["bfd", ""]["text"], found
        assert "--dplaneaddr ipv4:127.0.0.1:50700 " in found["bfd", ""]["fix"][0]
    with a_bfdd(dut, "--dplaneaddr=ipv4:0.0.0.0"):
        assert "is not connected" in doctor(dut, "bfd")[1]["bfd", ""]["text"]


def test_other_counts_in_zebra_fail(dut, wan, vtysh):
    """The doctor fails when zebra's own sum of routes differs from the RIB's. Neither sum contains
    the routes of the kernel."""
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    eventually(lambda: dut.fpm()["state"] == "in-step", 15, 0.05)

    code, found = doctor(dut, "routes", "--vtysh", vtysh(3, 0))

    assert (code, found["routes", ""]["status"]) == (3, "fail")
    assert found["routes", ""]["text"] == "IPv4: zebra 3, RIB 1; IPv6: 0, 0"
    code, found = doctor(dut, "routes", "--vtysh", vtysh(1, 0))
    assert (code, found["routes", ""]["status"]) == (0, "ok")


def test_a_zebra_that_does_not_tell_is_a_warning(dut):
    """A zebra that gives no sum is a warning, not a failure, and the doctor prints another way to
    ask."""
    code, found = doctor(dut, "routes", "--vtysh", "false")

    assert (code, found["routes", ""]["status"]) == (0, "warn")
    assert "--vtysh" in found["routes", ""]["fix"][0]
    assert dut.fpmctl("doctor", "routes", "--vtysh", "cat /nonexistent").stderr == ""


def test_a_zebra_that_hangs_fails_and_holds_up_nothing(dut, tmp_path):
    """A vtysh that hangs is ended after 10 s (here 2.5 s). doctor fails but shows the other checks
    before the wait, and audit has exit code 1."""
    script = tmp_path / "vtysh"
    script.write_text("#!/bin/sh\necho $$ >>$0.pids\nexec sleep 300\n")
    began = time.monotonic()
    words = ["doctor", "--vtysh", f"sh {script}", "fpm", "routes"]
    with hasty(4), dut.fpmctl_begin(*words) as examined:
        first = examined.stdout.readline()
        at = time.monotonic()
        said = examined.stdout.read()

    assert first.startswith("OK    fpm") and time.monotonic() - at > 0.5, "shown before the wait"
    assert examined.returncode == 3 and time.monotonic() - began < 25
    assert "FAIL  routes" in said and "zebra does not answer" in said
    assert " 10 s" in " ".join(said.split())
    with hasty(10):
        done = dut.fpmctl("audit", "--vtysh", f"sh {script}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fpmctl: zebra does not answer: ")
    assert len(done.stderr.splitlines()) == 1
    pids = (tmp_path / "vtysh.pids").read_text().split()
    assert len(pids) == 2 and not [pid for pid in pids if procs.is_alive(int(pid))]


def test_routes_alone_asks_the_zebra_that_runs(dut, tmp_path, monkeypatch):
    """The check `routes` reads from zebra's command line where zebra listens, with and without the
    check `frr`."""
    script = tmp_path / "vtysh"
    script.write_text('#!/bin/sh\n[ "$1 $2" = "-N r1" ] || exit 1\nshift 2\n'
                      + SCRIPT.format(ipv4=SUMMARY.format(0), ipv6=SUMMARY.format(0)))  # fmt: skip
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with a_zebra(dut, "-M", "dplane_fpm_nl", "-N", "r1"):
        for words in (["routes"], ["frr", "routes"]):
            code, found = doctor(dut, *words)
            assert (code, found["routes", ""]["status"]) == (0, "ok"), found


def test_a_port_that_is_shut_down_or_without_a_link_is_told(dut, wan):
    """The doctor reports a port that is shut down or has no link, by the name of its TAP. The
    command that it shows sets the port up again."""
    dut.ip(f"link set {wan.tap} down")
    code, found = doctor(dut, "links")

    row = found["links", wan.tap]
    assert (code, row["status"], row["text"]) == (0, "warn", "shut down in the kernel")
    assert {r["status"] for r in found.values() if r is not row} == {"ok"}
    mend(row)
    eventually(lambda: doctor(dut, "links")[1]["links", wan.tap]["status"] == "ok", 5)
    netns.ip_batch([f"link set {wan.name} down"], dut.far)
    eventually(lambda: dut.port_row(wan)["link"] == "down", 5)
    code, found = doctor(dut, "links")
    row = found["links", wan.tap]
    assert (code, row["status"], row["text"][:8]) == (0, "warn", "no link:")


def test_a_tap_whose_name_is_taken_is_told(own_dut):
    """A TAP is deleted, and another interface gets its name. The doctor says that the TAP does not
    exist, not that a cable may be the cause."""
    dut = own_dut()
    dut.start()
    dut.ip("link del ext0", "link add ext0 type veth peer name other")
    eventually(lambda: dut.port_row(dut.wires["ext"])["link"] == "down", 5)

    code, found = doctor(dut, "links")

    row = found["links", "ext0"]
    assert (code, row["status"], row["text"]) == (0, "warn", "the TAP does not exist")
    assert "cable" not in row["cost"]
    assert row["fix"] == [f"ip netns exec {dut.ctl} ip link show ext0"]


def test_who_may_not_ask_is_told_so(dut):
    """The doctor says that a user has no access to the running daemon. It shows no command that starts
    the daemon, and its exit code is not 0. The test runs a copy of fpmctl in another folder, because
    other users than root may have no right to read the clone."""
    ctl = shutil.copy(dut.daemon.ctl, dut.dir)
    done = subprocess.run([ctl, "-s", dut.socket, "--json", "doctor", "daemon"],
                          capture_output=True, text=True, check=False, user=65534, group=65534,
                          extra_groups=[])  # fmt: skip

    (row,) = json.loads(done.stdout)
    assert (done.returncode, row["status"]) == (3, "fail")
    assert "access denied" in row["text"]
    assert row["fix"] == [f"sudo fpmctl -s {dut.socket} doctor"]


def test_without_a_daemon_the_machine_is_examined(dut):
    """Without a daemon the doctor examines the machine and marks the checks that need the daemon
    n/a. The missing daemon is a failure, but checks that are chosen by name have an exit code of
    their own."""
    path = "/nonexistent/control.sock"
    done = dut.fpmctl("--json", "doctor", socket_path=path)

    found = {(r["check"], r["subject"]): r["status"] for r in json.loads(done.stdout)}
    assert done.returncode == 3
    assert found["daemon", ""] == "fail"
    assert dut.fpmctl("doctor", "clock", "hugepages", socket_path=path).returncode == 0
    assert found["hugepages", ""] in ("ok", "warn")
    assert found["forwarding", ""] == found["fpm", ""] == "n/a"
    assert "no daemon answers" in done.stderr


@pytest.mark.parametrize("check", ["fpm", "routes", "links", "isolation", "memlock", "files"])
def test_what_only_the_daemon_tells_fails_without_it(dut, check):
    """A check that needs the daemon is n/a without it. doctor then fails, also when the check is chosen
    by name, so that a script with `doctor fpm` does not get an exit code of 0."""
    path = "/nonexistent/control.sock"
    done = dut.fpmctl("--json", "doctor", check, socket_path=path)

    first, second = json.loads(done.stdout)
    assert done.returncode == 3
    assert (first["check"], first["status"]) == (check, "n/a")
    assert (second["check"], second["status"]) == ("daemon", "fail")
    said = dut.fpmctl("doctor", "clock", check, "daemon", socket_path=path)
    assert said.returncode == 3 and said.stdout.count("  daemon  ") == 1


@pytest.mark.parametrize(
    "words", [["doctor", "nonsense"], ["doctor", "list", "fpm"], ["--repair", "doctor"]]
)
def test_other_words_are_refused(dut, words):
    """Other words give exit code 2 and one sentence, and the doctor examines nothing."""
    done = dut.fpmctl(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fpmctl: ")
