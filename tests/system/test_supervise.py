# SPDX-License-Identifier: BSD-3-Clause
"""fpm-supervise by itself: what it starts again and what not, and that it leaves nothing."""

import os
import re
import signal
import subprocess
import time

import pytest

from lib import procs
from lib.dataplane import Dataplane
from lib.haste import hasty
from lib.wait import eventually

# A program in the daemon's place; READY=1 as sd_notify(3) has it.
READY = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
"""

# One that has a successor when it is told to end.
HANDS_OVER = """
import signal, time
def hand_over(*_):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
    there, is_there = os.pipe()
    heir = os.fork()
    if heir == 0:
        os.write(is_there, b"!")  # Python forgets what comes while it forks
    else:
        os.read(there, 1)
        s.sendto(b"MAINPID=%d" % heir, os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
        os._exit(0)
signal.signal(signal.SIGTERM, hand_over)
print("waits", flush=True)
while True: time.sleep(1)
"""


class Supervised:
    """A supervisor with a program under it, and what both wrote."""

    def __init__(self, tmp_path):
        self.dir, self.log = str(tmp_path), str(tmp_path / "log")
        self.program = Dataplane(None, "", "", self.log, self.dir).supervisor
        self.process = None

    def start(self, *argv):
        """Start `fpm-supervise ARGV`."""
        self.process = procs.start([self.program, *argv], self.dir, self.log)
        return self

    def python(self, text, *words):
        """Start it on a Python program."""
        return self.start(*words, "/usr/bin/python3", "-c", text)

    def said(self, pattern):
        """All that matches in the log."""
        with open(self.log, encoding="utf-8") as file:
            return re.findall(pattern, file.read())

    def end(self, number=signal.SIGTERM):
        """A signal, then its exit code."""
        self.process.send_signal(number)
        return self.process.wait(15)


@pytest.fixture
def sup(tmp_path):
    """One that is gone after the test, with all it started."""
    made = Supervised(tmp_path)
    yield made
    procs.end_all(made.dir)


TELLS = """
with open("/proc/self/status") as file:
    print(file.read(), flush=True)
s.recv(1)  # never
"""
# security.md: what the daemon keeps, DAC_OVERRIDE and SETPCAP.
KEPT = sum(1 << bit for bit in (1, 8, 12, 13, 14, 17, 21))


def test_it_and_what_it_starts_have_only_the_capabilities_it_says(sup):
    """Of all that root has: in the program, too, which root's execve(2) gives what there is."""
    sup.python(READY + TELLS)
    eventually(lambda: sup.said(r"(?m)^CapAmb:"), 10)
    sets = "Cap(?:Prm|Eff|Bnd):\t([0-9a-f]+)"
    with open(f"/proc/{sup.process.pid}/status", encoding="ascii") as file:
        own = re.findall(sets, file.read())
    child = sup.said(sets)

    assert len(own) == len(child) == 3
    assert [int(text, 16) & ~KEPT for text in own + child] == [0] * 6
    assert sup.end() == 143


def test_a_crash_loop_slows_down_and_does_not_end(sup):
    """At once, then 100 ms and twice as long each time, each said; SIGTERM ends the wait."""
    sup.python(READY + "os.abort()")

    eventually(lambda: len(sup.said("next_start")) >= 5, 20)
    waits = [int(n) for n in sup.said(r"next_start_in_ms=(\d+)")][:4]
    assert waits == [0, 100, 200, 400]
    assert sup.process.poll() is None
    # In the wait, just started, or dying of itself as it is asked to end.
    assert sup.end() in (0, 128 + signal.SIGTERM, 128 + signal.SIGABRT)
    assert procs.marked(sup.dir) == []


def test_a_wrong_configuration_is_not_tried_again(sup):
    """Exit code 2 is the operator's to mend; the supervisor ends with it."""
    daemon = Dataplane(None, "", "", sup.log, sup.dir).program
    sup.start(daemon, "-c", sup.dir + "/not-there.yaml")

    assert sup.process.wait(20) == 2
    assert len(sup.said("started pid=")) == 1
    assert sup.said("program ended, not restarted code=2")


@pytest.mark.parametrize(["code", "haste"], [(2, 1), (77, 10)])
def test_a_wrong_configuration_found_after_a_crash_is_tried_again(sup, code, haste):
    """It was ready once, crashed, and meanwhile somebody broke the file, or a device is away: to
    end would take the carrier of all TAPs for good, and that may pass. Once a second, said."""
    flag = sup.dir + "/flag"
    with hasty(haste):
        sup.python(
            f"import os, sys\nif os.path.exists({flag!r}): sys.exit({code})\n"
            + READY
            + f"open({flag!r}, 'w').close()\nos.abort()"
        )

    eventually(lambda: len(sup.said("started pid=")) >= 4, 20)
    assert sup.process.poll() is None
    waits = sup.said(rf"program refused its configuration code={code} retry_in_ms=(\d+)")
    assert len(waits) >= 2 and set(waits) == {str(1000 // haste)}
    os.remove(flag)
    eventually(lambda: sup.said("ended signal=6 next_start_in_ms=100"), 20)
    sup.end()


def test_a_start_that_fails_is_reported_not_repeated(sup):
    """As without a supervisor: a port that is not there ends the command."""
    sup.python("import sys; sys.exit(1)")

    assert sup.process.wait(20) == 1
    assert len(sup.said("started pid=")) == 1


def test_a_program_that_is_not_there(sup):
    """One sentence, exit code 127 as from a shell."""
    sup.start("/not/there")

    assert sup.process.wait(20) == 127
    assert sup.said("cannot run program=/not/there error=No such file")


def test_a_restart_asked_for_is_at_once_and_no_crash(sup):
    """Exit code 75 after READY=1, many times over: never a wait."""
    sup.python(READY + "sys.exit(75)")

    eventually(lambda: len(sup.said("started pid=")) >= 8, 20)
    assert sup.said("next_start_in_ms") == []
    sup.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_program_and_both_end(sup, number):
    """The program's exit code is the supervisor's."""
    sup.python(
        READY + "import signal, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
        "print('waits', flush=True)\nwhile True: time.sleep(1)"
    )
    eventually(lambda: sup.said("waits"), 10)

    assert sup.end(number) == 7
    assert procs.marked(sup.dir) == []


def test_a_stop_that_meets_a_successor_ends_that_one(sup):
    """The old one had named it before it heard of the stop."""
    sup.python(READY + HANDS_OVER)
    eventually(lambda: sup.said("waits"), 10)

    assert sup.end() == 7
    assert sup.said("successor took over pid=")
    assert procs.marked(sup.dir) == []


def test_hangup_is_passed_on_and_ends_nothing(sup):
    """SIGHUP is the program's own affair."""
    sup.python(
        READY + "import signal, time\n"
        "signal.signal(signal.SIGHUP, lambda *_: print('heard', flush=True))\n"
        "print('waits', flush=True)\nwhile True: time.sleep(1)"
    )
    eventually(lambda: sup.said("waits"), 10)

    sup.process.send_signal(signal.SIGHUP)

    eventually(lambda: sup.said("heard"), 10)
    assert sup.process.poll() is None
    sup.end()


def test_ctrl_c_at_a_terminal_leaves_nothing(sup):
    """The terminal signals the whole process group: the program gets it twice."""
    sup.python(READY + "import time\nprint('waits', flush=True)\nwhile True: time.sleep(1)")
    eventually(lambda: sup.said("waits"), 10)

    os.killpg(sup.process.pid, signal.SIGINT)

    sup.process.wait(15)
    assert procs.marked(sup.dir) == []


def test_descriptors_come_back_by_name_and_only_those_kept(sup):
    """What was given away is inherited after a crash, under its name; what was taken back,
    or given by a stranger, is not. One name has one descriptor, the last."""
    sup.python(
        READY + "import array\n"
        "addr = os.environ['NOTIFY_SOCKET'].replace('@', '\\0', 1)\n"
        "def say(text, *fds):\n"
        "    s.sendmsg([text.encode()], [(1, 1, array.array('i', fds))] if fds else [],\n"
        "              0, addr)\n"
        "def keep(name, text):\n"
        "    fd = os.memfd_create(name)\n"
        "    os.write(fd, text)\n"
        "    say(f'FDSTORE=1\\nFDNAME={name}\\nFDPOLL=0', fd)\n"
        "if 'LISTEN_FDS' not in os.environ:\n"
        "    keep('one', b'old'); keep('two', b'2'); keep('three', b'3')\n"
        "    keep('one', b'new'); say('FDSTOREREMOVE=1\\nFDNAME=two')\n"
        "    keep('no:name', b'x'); keep('n' * 101, b'x')\n"
        "    if os.fork() == 0:\n"
        "        keep('stranger', b'x'); os._exit(0)\n"
        "    os.wait(); os.abort()\n"
        "n = int(os.environ['LISTEN_FDS'])\n"
        "assert int(os.environ['LISTEN_PID']) == os.getpid()\n"
        "names = os.environ['LISTEN_FDNAMES'].split(':')\n"
        "text = {names[i]: os.pread(3 + i, 9, 0) for i in range(n)}\n"
        "print('inherited', sorted(text.items()), flush=True)\n"
        "sys.exit(0)"
    )

    assert sup.process.wait(20) == 0
    assert sup.said(r"inherited (.*)") == ["[('one', b'new'), ('three', b'3')]"]
    assert len(sup.said("descriptor not stored")) == 2


# Words and descriptors of a program that is not the daemon, for anybody's.
STRANGER = """
import array, os, socket, sys
address = "\\0" + sys.argv[1]
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
f = os.open("/dev/null", os.O_RDONLY)
for n in range(4):
    for _ in range(50):
        s.sendmsg([b"READY=1\\nFDSTORE=1\\nFDNAME=x"],
                  [(1, 1, array.array("i", [f] * n))] if n else [], 0, address)
while "on" in sys.argv:
    s.sendto(b"x", address)
"""

WAITS = """
print("at", os.environ["NOTIFY_SOCKET"][1:], flush=True)
import time
while True: time.sleep(1)
"""


def stranger(sup, *words):
    """It speaks to the supervisor."""
    eventually(lambda: sup.said("at (.*)"), 10)
    argv = ["/usr/bin/python3", "-c", STRANGER, sup.said("at (.*)")[0], *words]
    return procs.start(argv, sup.dir, "/dev/null")


def test_strangers_leave_no_descriptor_and_are_not_listened_to(sup):
    """An abstract socket is anybody's: one, two, three descriptors in a datagram are closed, none
    is kept, and the log has one line a second."""
    sup.python(READY + WAITS)
    eventually(lambda: sup.said("at (.*)"), 10)
    own = f"/proc/{sup.process.pid}/fd"
    before, begin = os.listdir(own), time.monotonic()

    assert stranger(sup).wait(20) == 0

    eventually(lambda: sup.said(r"W supervise: notice refused pid=\d+ missed="), 10)
    eventually(lambda: len(os.listdir(own)) == len(before), 10)
    assert len(sup.said("notice refused")) <= time.monotonic() - begin + 2
    procs.signal_pid(int(sup.said(r"started pid=(\d+)")[0]), signal.SIGKILL)
    eventually(lambda: sup.said("started pid=.* restarts=1 stored=0"), 10)
    sup.end()


def test_a_stranger_who_never_stops_holds_up_no_restart_and_no_stop(sup):
    """What the program said before its death is heard, and no more is waited for."""
    sup.python(READY + WAITS)
    said = [stranger(sup, "on") for _ in range(3)]
    eventually(lambda: sup.said("notice refused"), 10)

    procs.signal_pid(int(sup.said(r"started pid=(\d+)")[0]), signal.SIGKILL)
    eventually(lambda: sup.said("started pid=.* restarts=1"), 10)

    assert sup.end() == 128 + signal.SIGTERM
    for one in said:
        one.wait(10)  # its address is gone


def test_who_drowns_signs_of_life_has_nothing_aborted(sup):
    """The program's own find no room then, so that none comes is no proof; when it is quiet
    again, it is."""
    sup.python(READY + WAITS, "--watchdog", "1")
    said = [stranger(sup, "on") for _ in range(3)]

    eventually(lambda: sup.said("watchdog extended, notify socket flooded"), 20)
    assert sup.said("aborting it") == []
    for one in said:
        one.kill()
        one.wait()

    eventually(lambda: sup.said("program hangs, aborting it pid="), 20)
    sup.end()


def test_a_log_that_nobody_reads_holds_up_no_restart(sup, unread):
    """A program that hangs is aborted, killed, started again, whatever becomes of the lines
    that say so; those who read again are told how many they have missed."""
    sup.log, starts = unread.path, sup.dir + "/starts"
    sup.python(
        f"open({starts!r}, 'a').write('s')\n" + READY + "import signal, time\n"
        "signal.signal(signal.SIGABRT, lambda *_: os._exit(86))\n"
        "while True: time.sleep(1)",
        "--watchdog",
        "1",
    )

    eventually(lambda: os.path.getsize(starts) >= 3, 30)
    unread.drain()
    eventually(lambda: "W log: output resumed lost=" in unread.drain(), 20)
    # In the wait, just started, or aborted as it is asked to end.
    assert sup.end() in (0, 128 + signal.SIGTERM, 86)


def test_a_log_whose_reader_is_gone_ends_nothing(sup, unread):
    """The pipe is broken: no reason for what keeps the TAPs to end."""
    sup.log, starts = unread.path, sup.dir + "/starts"
    sup.python(f"open({starts!r}, 'a').write('s')\n" + READY + "os.abort()")
    eventually(lambda: os.path.exists(starts), 10)

    unread.drain()
    unread.close()

    now = os.path.getsize(starts)
    eventually(lambda: os.path.getsize(starts) >= now + 2, 20)
    assert sup.process.poll() is None
    sup.end()


def test_one_that_does_not_end_is_killed(sup):
    """SIGTERM ignored: ten seconds, here one, then SIGKILL, and said."""
    with hasty(10):
        sup.python(
            READY + "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "print('waits', flush=True)\nwhile True: time.sleep(1)"
        )
    eventually(lambda: sup.said("waits"), 10)

    assert sup.end() == 128 + signal.SIGKILL
    assert sup.said("program does not end, killing it pid=")


STEPS = """
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
say = lambda text: s.sendto(text, os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
print("begins", flush=True)
for more in STEPS:
    say(b"EXTEND_TIMEOUT_USEC=%d" % (more * 1000000))
    time.sleep(1)
"""


def test_a_start_that_goes_on_is_given_time(sup):
    """Each step in the time that it has asked for: ready after more than --start allows."""
    sup.python(
        STEPS.replace("STEPS", "(2, 2, 2, 2)")
        + "say(b'READY=1')\nprint('ready', flush=True)\nwhile True: time.sleep(1)",
        "--start",
        "2",
    )

    eventually(lambda: sup.said("ready") or sup.said("aborting it"), 20)
    assert sup.said("aborting it") == [] and len(sup.said("begins")) == 1
    sup.end()


@pytest.mark.parametrize("steps", ["()", "(1, 2)", "(-1, 1 << 60)"])
def test_a_start_that_stands_still_is_aborted(sup, steps):
    """However long it went on before, and whatever nonsense it has asked for."""
    sup.python(
        STEPS.replace("STEPS", steps) + "while True: time.sleep(1)",
        "--start",
        "2",
    )

    eventually(lambda: len(sup.said("begins")) == 2, 20, what="it is started again")
    assert len(sup.said(r"program hangs, aborting it pid=\d+ ready=0")) == 1
    assert sup.said(f"ended signal={int(signal.SIGABRT)} next_start")
    sup.end()


# One that hands over to a successor which says that it lives, so many times a second, and no more.
HEIR = """
import os, socket, time
def say(text):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(text, os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
say(b"READY=1")
print("begins", flush=True)
there, is_named = os.pipe()
heir = os.fork()
if heir != 0:
    say(b"MAINPID=%d" % heir)
    os.write(is_named, b"!")
    os._exit(0)
os.read(there, 1)
for _ in range(SIGNS):
    time.sleep(0.25)
    say(b"WATCHDOG=1")
print("silent", flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("signs", [0, 6])
def test_a_successor_has_the_watchdogs_time(sup, signs):
    """From being named on, however long a start may take; its signs of life count at once."""
    sup.python(HEIR.replace("SIGNS", str(signs)), "--watchdog", "1", "--start", "60")

    eventually(lambda: len(sup.said("begins")) == 2, 20, what="it is started again")
    assert sup.said("silent")
    assert len(sup.said(r"program hangs, aborting it pid=\d+ ready=0")) >= 1
    sup.end()


def test_help_and_nonsense():
    """Words for the operator."""
    program = Dataplane(None, "", "", "", "").supervisor

    def run(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, check=False)

    assert run("--help").returncode == 0 and "usage" in run("--help").stdout
    assert run().returncode == 2 and "usage" in run().stderr
    assert run("--watchdog", "x", "true").returncode == 2
    assert run("--start", "0", "true").returncode == 2
