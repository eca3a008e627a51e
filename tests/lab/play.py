# SPDX-License-Identifier: BSD-3-Clause
"""A lab shown to a person: made, proved, left up when all is well; otherwise, and on
Ctrl-C, removed."""

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
        # Nobody reads any more: nothing can be said, cleaning up below still happens.
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
        if lab.owned:  # or they would be another lab's
            show_logs(lab, screen, ("dataplane", "zebra"))
    return 1


def show_logs(lab, screen, names):
    """The ends of the logs that may tell why."""
    for name in dict.fromkeys(names):
        if name == "dataplane":
            text = lab.dp.log(12)
        elif name == "isp":
            text = lab.tail("isp.log", 6)
        else:
            text = lab.r1.log(name, 8)
        if text:
            screen.text(f"\n--- end of the log of {name}")
            screen.text(text, indent=2)


def _interrupt(number, _frame):
    _calm()
    raise Interrupted(signal.Signals(number).name)


def _calm():
    """A second Ctrl-C must not stop the cleaning up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
