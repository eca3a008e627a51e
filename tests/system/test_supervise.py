# SPDX-License-Identifier: BSD-3-Clause
"""fpm-supervise alone: the programs that it starts again, the programs that it does not, and the end
without remains."""

import os
import re
import resource
import signal
import subprocess
import time

import pytest

from lib import procs
from lib.dataplane import Dataplane
from lib.haste import hasty
from lib.privileges import SYS_NICE
from lib.wait import eventually

# A program in the daemon's place. It sends READY=1 as in sd_notify(3).
READY = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
"""

# A program that forks a successor when it gets SIGTERM.
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
    """A supervisor with a program under it, and the log of both."""

    def __init__(self, tmp_path):
        self.dir, self.log = str(tmp_path), str(tmp_path / "log")
        self.program = Dataplane(None, "", "", self.log, self.dir).supervisor
        self.process = None

    def start(self, *argv):
        """Start `fpm-supervise ARGV`."""
        self.process = procs.start([self.program, *argv], self.dir, self.log)
        return self

    def python(self, text, *words):
        """Start the supervisor with a Python program."""
        return self.start(*words, "/usr/bin/python3", "-c", text)

    def said(self, pattern):
        """Return all matches in the log."""
        with open(self.log, encoding="utf-8") as file:
            return re.findall(pattern, file.read())

    def end(self, number=signal.SIGTERM):
        """Send a signal. Return the supervisor's exit code."""
        self.process.send_signal(number)
        return self.process.wait(15)


@pytest.fixture
def sup(tmp_path):
    """Make a supervisor. End it and all its processes after the test."""
    made = Supervised(tmp_path)
    yield made
    procs.end_all(made.dir)


TELLS = """
with open("/proc/self/status") as file:
    print(file.read(), flush=True)
s.recv(1)  # never
"""
# The capabilities that the daemon keeps by security.md, DAC_OVERRIDE and SETPCAP.
KEPT = sum(1 << bit for bit in (1, 8, 12, 13, 14, 17, 21))


def test_it_and_what_it_starts_have_only_the_capabilities_it_says(sup):
    """Supervisor and program have no capabilities but the listed ones. This holds for the program,
    too, although execve(2) gives a program of root all capabilities that the bounding set allows."""
    sup.python(READY + TELLS)
    eventually(lambda: sup.said(r"(?m)^CapAmb:"), 10)
    sets = "Cap(?:Prm|Eff|Bnd):\t([0-9a-f]+)"
    with open(f"/proc/{sup.process.pid}/status", encoding="ascii") as file:
        own = re.findall(sets, file.read())
    child = sup.said(sets)
    soft, _ = resource.prlimit(sup.process.pid, resource.RLIMIT_RTPRIO)
    kept = KEPT if soft else KEPT | SYS_NICE  # for thread bfd

    assert len(own) == len(child) == 3
    assert [int(text, 16) & ~kept for text in own + child] == [0] * 6
    assert sup.end() == 143


def test_a_crash_loop_slows_down_and_does_not_end(sup):
    """The supervisor starts the program at once, then after 100 ms, then after twice the time
    at each crash. Each wait is logged. SIGTERM ends the wait."""
    sup.python(READY + "os.abort()")

    eventually(lambda: len(sup.said("next_start")) >= 5, 20)
    waits = [int(n) for n in sup.said(r"next_start_in_ms=(\d+)")][:4]
    assert waits == [0, 100, 200, 400]
    assert sup.process.poll() is None
    # The program waits, has just started, or aborts at that moment.
    assert sup.end() in (0, 128 + signal.SIGTERM, 128 + signal.SIGABRT)
    assert procs.marked(sup.dir) == []


def test_a_wrong_configuration_is_not_tried_again(sup):
    """Exit code 2 is a wrong configuration, which the operator must correct. The supervisor
    ends with it."""
    daemon = Dataplane(None, "", "", sup.log, sup.dir).program
    sup.start(daemon, "-c", sup.dir + "/not-there.yaml")

    assert sup.process.wait(20) == 2
    assert len(sup.said("started pid=")) == 1
    assert sup.said("program ended code=2 restart=no")


@pytest.mark.parametrize(["code", "haste"], [(2, 1), (77, 10)])
def test_a_wrong_configuration_found_after_a_crash_is_tried_again(sup, code, haste):
    """The program was ready once and crashed. Meanwhile the file became wrong, or a device is
    missing. The supervisor does not end, because then all TAPs would lose their carrier, and
    the fault may pass. It tries once a second and logs each try."""
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
    """A program that fails before it is ready ends the command, as without a supervisor."""
    sup.python("import sys; sys.exit(1)")

    assert sup.process.wait(20) == 1
    assert len(sup.said("started pid=")) == 1


def test_a_program_that_is_not_there(sup):
    """The supervisor prints one sentence and ends with exit code 127, as a shell does."""
    sup.start("/not/there")

    assert sup.process.wait(20) == 127
    assert sup.said("cannot run program=/not/there error=\"No such file")


def test_a_restart_asked_for_is_at_once_and_no_crash(sup):
    """After READY=1 and exit code 75 the supervisor starts the program at once, however
    often."""
    sup.python(READY + "sys.exit(75)")

    eventually(lambda: len(sup.said("started pid=")) >= 8, 20)
    assert sup.said("next_start_in_ms") == []
    sup.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_program_and_both_end(sup, number):
    """The supervisor passes the signal on and ends with the program's exit code."""
    sup.python(
        READY + "import signal, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
        "print('waits', flush=True)\nwhile True: time.sleep(1)"
    )
    eventually(lambda: sup.said("waits"), 10)

    assert sup.end(number) == 7
    assert procs.marked(sup.dir) == []


def test_a_stop_that_meets_a_successor_ends_that_one(sup):
    """The old program names its successor before it gets the stop. The supervisor ends the
    successor."""
    sup.python(READY + HANDS_OVER)
    eventually(lambda: sup.said("waits"), 10)

    assert sup.end() == 7
    assert sup.said("successor took over pid=")
    assert procs.marked(sup.dir) == []


def test_hangup_is_passed_on_and_ends_nothing(sup):
    """The supervisor passes SIGHUP on to the program and runs on."""
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
    """The terminal sends SIGINT to the whole process group, so the program gets the signal
    twice. No process is left."""
    sup.python(READY + "import time\nprint('waits', flush=True)\nwhile True: time.sleep(1)")
    eventually(lambda: sup.said("waits"), 10)

    os.killpg(sup.process.pid, signal.SIGINT)

    sup.process.wait(15)
    assert procs.marked(sup.dir) == []


def test_descriptors_come_back_by_name_and_only_those_kept(sup):
    """After a crash the next program inherits each stored descriptor under its name. It does not
    inherit removed descriptors or descriptors of another process. If several descriptors have one
    name, it inherits the last one."""
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


# A program under another user that sends messages and descriptors to the supervisor.
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
    """Start a program that sends to the supervisor and is not its child."""
    eventually(lambda: sup.said("at (.*)"), 10)
    argv = ["/usr/bin/python3", "-c", STRANGER, sup.said("at (.*)")[0], *words]
    return procs.start(argv, sup.dir, "/dev/null")


def test_strangers_leave_no_descriptor_and_are_not_listened_to(sup):
    """Any process can send to an abstract socket. The supervisor closes one, two or three
    descriptors in a datagram and stores none. The log has one line a second."""
    sup.python(READY + WAITS)
    eventually(lambda: sup.said("at (.*)"), 10)
    own = f"/proc/{sup.process.pid}/fd"
    before, begin = os.listdir(own), time.monotonic()

    assert stranger(sup).wait(20) == 0

    eventually(lambda: sup.said(r"W supervise: notification refused pid=\d+ missed="), 10)
    eventually(lambda: len(os.listdir(own)) == len(before), 10)
    assert len(sup.said("notification refused")) <= time.monotonic() - begin + 2
    procs.signal_pid(int(sup.said(r"started pid=(\d+)")[0]), signal.SIGKILL)
    eventually(lambda: sup.said("started pid=.* restarts=1 stored=0"), 10)
    sup.end()


def test_a_flood_of_the_notify_socket_delays_no_restart_and_no_stop(sup):
    """The supervisor reads the messages that the program sent before its end, and waits for no
    others."""
    sup.python(READY + WAITS)
    said = [stranger(sup, "on") for _ in range(3)]
    eventually(lambda: sup.said("notification refused"), 10)

    procs.signal_pid(int(sup.said(r"started pid=(\d+)")[0]), signal.SIGKILL)
    eventually(lambda: sup.said("started pid=.* restarts=1"), 10)

    assert sup.end() == 128 + signal.SIGTERM
    for one in said:
        one.wait(10)  # the socket with its address is closed


def test_a_flood_that_displaces_watchdog_messages_aborts_nothing(sup):
    """Another process floods the notify socket, so WATCHDOG=1 of the program finds no room. Its
    absence proves nothing, and the supervisor does not abort the program during the flood. It aborts
    the program after the flood."""
    sup.python(READY + WAITS, "--watchdog", "1")
    said = [stranger(sup, "on") for _ in range(3)]

    eventually(lambda: sup.said("watchdog extended reason=notify-socket-flooded"), 20)
    assert sup.said("aborting it") == []
    for one in said:
        one.kill()
        one.wait()

    eventually(lambda: sup.said("program hangs pid="), 20)
    sup.end()


BEATS = """
import time
print("program", os.getpid(), flush=True)
while True:
    s.sendto(b"WATCHDOG=1", os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
    time.sleep(0.1)
"""


def test_a_pause_of_both_is_no_hang(sup):
    """The virtual machine, or the container, is paused for longer than the watchdog's time. The
    program did not hang, and the supervisor does not abort it. The program then hangs alone: the
    supervisor aborts it."""
    sup.python(READY + BEATS, "--watchdog", "3")
    (pid,) = eventually(lambda: sup.said(r"program (\d+)\n"), 10)
    both = [sup.process.pid, int(pid)]

    for number in (signal.SIGSTOP, signal.SIGCONT):
        for one in both:
            os.kill(one, number)
        if number == signal.SIGSTOP:
            time.sleep(6)  # longer than the watchdog's time

    eventually(lambda: sup.said(rf"watchdog extended reason=paused pid={pid} paused_ms=[5-9]"), 10)
    os.kill(both[1], 0)
    assert sup.said("program hangs") == []
    os.kill(both[1], signal.SIGSTOP)
    eventually(lambda: sup.said(f"program hangs pid={pid} ready=1 status="), 20)
    os.kill(both[1], signal.SIGCONT)
    sup.end()


def test_a_log_without_a_reader_delays_no_restart(sup, unread):
    """A program that hangs is aborted, killed and started again, although no process reads the
    log. A reader that starts again learns how many lines are lost."""
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
    # The program waits, has just started, or is being aborted.
    assert sup.end() in (0, 128 + signal.SIGTERM, 86)


def test_a_log_whose_reader_has_ended_ends_no_program(sup, unread):
    """The log's pipe is broken. The supervisor runs on, because it keeps the TAPs."""
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
    """The program ignores SIGTERM. After ten seconds (here one) the supervisor logs it and
    sends SIGKILL."""
    with hasty(10):
        sup.python(
            READY + "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "print('waits', flush=True)\nwhile True: time.sleep(1)"
        )
    eventually(lambda: sup.said("waits"), 10)

    assert sup.end() == 128 + signal.SIGKILL
    assert sup.said("program does not end pid=")


STEPS = """
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
say = lambda text: s.sendto(text, os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
print("begins", flush=True)
for more in STEPS:
    say(b'EXTEND_TIMEOUT_USEC=%d\\nSTATUS=step "%d"' % (more * 1000000, more))
    time.sleep(1)
"""


def test_a_start_that_goes_on_is_given_time(sup):
    """Each step of the start ends within the time that it has asked for. The program may be
    ready later than --start allows."""
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
    """A start that stands still is aborted, although it has made steps before or has asked for
    an impossible time. The log names the step of the start."""
    sup.python(
        STEPS.replace("STEPS", steps) + "while True: time.sleep(1)",
        "--start",
        "2",
    )

    eventually(lambda: len(sup.said("begins")) == 2, 20, what="it is started again")
    step = {"()": "", "(1, 2)": "step .2.", "(-1, 1 << 60)": "step .[0-9]+."}[steps]
    assert len(sup.said(rf'program hangs pid=\d+ ready=0 status="{step}" signal=ABRT')) == 1
    assert sup.said(f"ended signal={int(signal.SIGABRT)} next_start")
    sup.end()


# A program that hands over to a successor. The successor sends WATCHDOG=1 SIGNS times, four times a
# second, and then stops.
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


@pytest.mark.parametrize("signs", [0, 12])
def test_a_successor_has_the_watchdogs_time(sup, signs):
    """The supervisor watches a successor from the moment it is named, however long a start may
    take. WATCHDOG=1 of the successor counts at once."""
    sup.python(HEIR.replace("SIGNS", str(signs)), "--watchdog", "2", "--start", "60")

    eventually(lambda: len(sup.said("begins")) == 2, 20, what="it is started again")
    assert sup.said("silent")
    assert len(sup.said(r"program hangs pid=\d+ ready=0")) >= 1
    sup.end()


def test_help_and_nonsense():
    """--help prints the usage. Wrong arguments end with exit code 2."""
    program = Dataplane(None, "", "", "", "").supervisor

    def run(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, check=False)

    assert run("--help").returncode == 0 and "usage" in run("--help").stdout
    assert run().returncode == 2 and "usage" in run().stderr
    assert run("--watchdog", "x", "true").returncode == 2
    assert run("--start", "0", "true").returncode == 2
