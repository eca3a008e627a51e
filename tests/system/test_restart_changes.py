# SPDX-License-Identifier: BSD-3-Clause
"""A planned restart and a change of configuration exclude each other: the successor knows every
change that was reported as applied, and no program holds a TAP without a port."""

import contextlib
import re
import signal

import pytest
import yaml

from back import HOST, NET, come_back
from lib import api, procs
from lib.freeze import frozen
from lib.wait import eventually
from test_comeback import dead
from test_succession import listens, refused, successor

UNDER_WAY = "refused, nothing changed: a restart is under way; ask again when it is over"


@contextlib.contextmanager
def under_way(dut):
    """Begin a restart and stop the successor when it has read its file and opened its ports.
    Yield the successor's process id and the waiting fpmctl. The successor continues when the
    block ends."""
    restarts = dut.fpmctl_begin("restart")
    heir = successor(dut)
    begun = dut.daemon.log(1000).count("main: successor started")

    def said():
        return dut.daemon.log(1000).split("main: successor started")[begun]

    eventually(lambda: "main: port opened" in said(), 20, 0.001)
    procs.stand_still(heir)
    try:
        yield heir, restarts
    finally:
        procs.signal_pid(heir, signal.SIGCONT)


CHANGES = (
    "port add z device net_null60,no-rx=1",
    "port set ext0 mtu 1400",
    "port del ext0",
    "config reload",
    "set policer icmp rate 7",
)


def test_nothing_is_changed_while_a_restart_is_under_way(kept):
    """The successor would not know of a change: a port would be missing, and a program would
    hold its TAP without reading it. During the restart the daemon refuses each change and
    answers questions. After the restart, or after its refusal, changes are accepted."""
    dut, was = kept, kept.daemon.pid()
    dut.edit_config("sweep-quiet-s: 1", "sweep-quiet-s: 3")
    before = dut.fpmctl("config", "show").stdout

    with under_way(dut) as (heir, restarts):
        for words in CHANGES:
            done = dut.fpmctl(*words.split())
            assert done.returncode == 3 and "applied" not in done.stdout, words
            assert done.stderr == f"fpmctl: {UNDER_WAY}\n", words
        status, said = api.call(dut, "DELETE", "/ports/{name}", "ext0")
        assert (status, said["error"]) == (409, UNDER_WAY)
        status, said = api.call(dut, "PATCH", "/punt/{name}", "icmp", body={"rate": 7})
        assert (status, said["error"]) == (409, UNDER_WAY)
        dry = dut.fpmctl("config", "reload", "--dry-run")
        assert dry.returncode == 0 and "fpm.sweep-quiet-s: 1 -> 3" in dry.stdout
        assert dut.fpmctl("config", "show").stdout == before
        procs.signal_pid(heir, signal.SIGKILL)
    refused(dut, restarts, "its successor was ended by signal 9 (perhaps no memory)")

    assert dut.daemon.pid() == was
    done = dut.fpmctl("port", "add", "z", "device", "net_null60,no-rx=1")
    assert done.returncode == 0, done.stderr
    assert dut.fpmctl("port", "del", "z").returncode == 0
    with under_way(dut) as (_, restarts):
        done = dut.fpmctl("port", "add", "z", "device", "net_null60,no-rx=1")
        assert done.returncode == 3 and "applied" not in done.stdout
    assert restarts.wait(20) == 0
    come_back(dut, was)
    assert "z" not in {link["ifname"] for link in dut.links()}
    done = dut.fpmctl("port", "add", "z", "device", "net_null60,no-rx=1")
    assert done.returncode == 0, done.stderr


def test_a_port_that_has_just_gone_is_not_there_after_a_restart(kept):
    """A deleted port and its TAP stay deleted over a restart right after `port del`, and over a
    crash after that."""
    dut, was = kept, kept.daemon.pid()

    assert dut.fpmctl("port", "del", "ext0").returncode == 0
    dut.edit_config("  - tap: ext0\n    device: net_af_packet,iface=p-ext\n", "")
    assert dut.fpmctl("restart").returncode == 0
    for end in (lambda: was, dut.daemon.crash):
        gone = end()
        dut.control.close()
        dut.daemon.back(gone)
        assert [row["name"] for row in dut.control.ask("ports")] == ["lan0", "wan0", "alt0"]
        assert "ext0" not in {link["ifname"] for link in dut.links()}
    assert "tap released" not in dut.daemon.log(1000)


def test_a_port_that_is_not_in_the_file_is_closed_by_a_restart(kept):
    """A restart closes the TAP of a port that is not in the file, as the log says. The TAP has
    no carrier, and a new port of that name takes it."""
    dut, was = kept, kept.daemon.pid()
    add = ("port", "add", "z", "device", "net_null60,no-rx=1")
    assert dut.fpmctl(*add).returncode == 0

    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)
    eventually(lambda: "NO-CARRIER" in dut.link_row("z")["flags"], 5)
    said = "fdstore: tap released name=z"
    eventually(lambda: said in dut.daemon.log(60), 5, 0.01)
    done = dut.fpmctl(*add)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def letting_go(dut):
    """Keep a planned restart at the point where the old daemon has closed its sockets and the
    successor has not opened its own."""
    with frozen(dut.daemon.pid(), "fdp-rib"):
        restarts = dut.fpmctl_begin("restart")
        eventually(lambda: not listens(dut), 30, 0.01, "it lets go")
        yield
    dut.control.close()
    dut.zebra.close()
    assert restarts.wait(30) == 0


@pytest.mark.parametrize("away", [dead, letting_go])
def test_a_hold_waits_for_the_daemon_that_is_to_come(kept, away):
    """FRR ends while no daemon answers: `fpmctl hold` waits for the next daemon. This daemon
    ignores the routes that zebra withdraws as it ends. After a stop no next daemon comes, so
    `fpmctl hold` does not wait."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was, old = dut.daemon.pid(), dut.zebra

    with away(dut):
        holds = dut.fpmctl_begin("hold", "600")
        said = holds.stderr.readline()
        assert said.endswith("; waiting for it, at most 30 s\n"), said
    out, _ = holds.communicate(timeout=40)
    assert holds.returncode == 0 and "stay in force" in out

    come_back(dut, was)
    eventually(lambda: dut.fpm()["state"] == "held", 5)
    old.connect()
    old.speaker.routes_del(NET, 1)
    assert old.speaker.wait_closed(5)
    dut.forwarded(lan, lan.probe(HOST), wan)

    assert dut.stop() == 0
    none = dut.fpmctl("hold")
    assert (none.returncode, none.stdout) == (1, "") and "no daemon answers" in none.stderr


def quiet_s(dut):
    """Return the running value of the key that the test changes in the file."""
    return yaml.safe_load(dut.fpmctl("config", "show").stdout)["fpm"]["sweep-quiet-s"]


@pytest.mark.parametrize("comes", [True, False], ids=["succeeds", "refused"])
def test_a_hangup_in_a_restart_is_obeyed_after_it(kept, comes):
    """The successor has read the file before the change, so it reads the file again after a
    SIGHUP. Without a successor the old daemon does."""
    dut, was = kept, kept.daemon.pid()

    with under_way(dut) as (heir, restarts):
        dut.edit_config("sweep-quiet-s: 1", "sweep-quiet-s: 3")
        dut.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: hung_up(was), 5, 0.001, "the supervisor passes it on")
        if not comes:
            procs.signal_pid(heir, signal.SIGKILL)
    assert restarts.wait(30) == (0 if comes else 3)

    dut.control.close()
    assert (dut.daemon.pid() != was) == comes
    eventually(lambda: quiet_s(dut) == 3, 5)


def hung_up(pid):
    """Return 1 if a SIGHUP is pending for the process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        pending = re.search(r"^ShdPnd:\s*(\w+)", file.read(), re.M)[1]
    return int(pending, 16) >> (signal.SIGHUP - 1) & 1
