# SPDX-License-Identifier: BSD-3-Clause
"""Make a lab, prove its claims and show them on a terminal. Leave it up if all claims hold;
otherwise, and on Ctrl-C, remove it."""

import os
import signal
import sys

from lab.evidence import ProofError
from lab.lab import LabError
from lab.screen import Screen
from lib import netns
from lib.dataplane import DataplaneError
from lib.wait import Timeout


class Interrupted(BaseException):
    """A signal asks us to stop."""


def perform(make, play):
    """Call play(lab, screen) for the lab that make() gives. Returns the exit code."""
    if os.geteuid() != 0:
        print("A lab is made of network namespaces: please run this as root.")
        return 1
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    screen, lab, code = Screen(), make(), 1
    try:
        code = _run(lab, screen, play)
    except BrokenPipeError:
        # The reader closed the pipe: no output is possible, but the lab is removed below.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Interrupted as err:
        code = 130
        screen.text(f"\nStopped by {err}.")
    finally:
        if code and lab.owned and not (os.environ.get("KEEP") and code == 1):
            _calm()
            lab.down()
            screen.text("Everything that was made has been removed.")
        lab.unlock()
    return code


def _run(lab, screen, play):
    """Returns the exit code."""
    try:
        play(lab, screen)
        return 0
    except ProofError as err:
        screen.failed(str(err))
        show_logs(lab, screen, err.logs)
    except BrokenPipeError:
        raise
    except (LabError, Timeout, DataplaneError, netns.CommandError, OSError) as err:
        screen.failed(str(err))
        if lab.owned:  # otherwise the logs belong to another lab
            show_logs(lab, screen, ("dataplane", "zebra"))
    return 1


def show_logs(lab, screen, names):
    """Print the last lines of the logs that may have the cause."""
    for name in dict.fromkeys(names):
        if name == "dataplane":
            text = lab.dp.log(12)
        elif name == "isp":
            text = lab.tail("isp.log", 6)
        else:
            text = lab.r1.log(name, 8) if lab.r1 and name in lab.r1.daemons else ""
        if text:
            screen.text(f"\n--- end of the log of {name}")
            screen.text(text, indent=2)


def _interrupt(number, _frame):
    _calm()
    raise Interrupted(signal.Signals(number).name)


def _calm():
    """Ignore signals: a second Ctrl-C must not stop the removal of the lab."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
