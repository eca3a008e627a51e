# SPDX-License-Identifier: BSD-3-Clause
"""Run ExaBGP, and hand its events to the helper.

ExaBGP starts `relay` and writes each event to it as a line of JSON; `relay` copies the lines to a named
pipe. If ExaBGP or `relay` ends, the pipe is closed, and `run` ends, too. If `run` ends, it ends
ExaBGP. So the table never has rules of a session whose events do not arrive. If `run` hangs, systemd
gets no notification, kills it after 30 s and empties the table (dist/fpm-flowspec.service).
"""

import contextlib
import os
import selectors
import signal
import socket
import subprocess

from .helper import Helper, log
from .origin import WITHOUT_RIGHTS
from .table import TABLE, NftError

READ_BYTES = 1 << 20
LOOK_S = 1.0  # seconds between checks whether ExaBGP has ended before `relay` opened the pipe
END_S = 5  # seconds for ExaBGP to end after SIGTERM
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NOTIFY = "NOTIFY_SOCKET"
# ExaBGP takes no commands, keeps its user, and logs to the standard error.
SETTINGS = {
    "exabgp_api_cli": "false",
    "exabgp_daemon_daemonize": "false",
    "exabgp_daemon_user": "root",
    "exabgp_log_destination": "stderr",
}


class Ended(Exception):
    """A signal asks the program to end."""


def pipe_path(folder):
    """Return the path of the named pipe in a folder."""
    return os.path.join(folder, "events")


def relay(folder, source=0):
    """Copy the events of ExaBGP from the descriptor `source` to the pipe until ExaBGP or `run` ends."""
    sink = os.open(pipe_path(folder), os.O_WRONLY)
    while data := os.read(source, READ_BYTES):
        while data:
            data = data[os.write(sink, data) :]


def notify(state):
    """Send a state to the service manager (sd_notify(3)), if there is one. Never wait."""
    path = os.environ.get(NOTIFY, "")
    if path:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(state.encode(), path.replace("@", "\0", 1) if path[0] == "@" else path)


def run(options):
    """Run ExaBGP and serve its events until it ends, or until a signal. The table is empty at
    return. Returns the exit code: 1 if ExaBGP ended."""

    def asked(_number, _frame):
        raise Ended

    for number in ENDS:
        signal.signal(number, asked)
    os.makedirs(options.folder, exist_ok=True)
    path = pipe_path(options.folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    os.mkfifo(path, 0o600)
    helper, exabgp, code = Helper(options), None, 0
    try:
        source = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        helper.start()
        log("started", table=TABLE, validate=options.validate)
        exabgp = subprocess.Popen(
            [*WITHOUT_RIGHTS, *options.exabgp],
            stdin=subprocess.DEVNULL,
            env={**{key: text for key, text in os.environ.items() if key != NOTIFY}, **SETTINGS},
        )  # fmt: skip
        notify("READY=1")
        _serve(helper, exabgp, source)
        code = 1
    except Ended:
        pass
    finally:
        for number in ENDS:
            signal.signal(number, signal.SIG_IGN)
        notify("STOPPING=1")
        with contextlib.suppress(NftError):
            helper.end()
        log("ended", table=TABLE)
        if exabgp is not None:
            _end(exabgp)
    return code


def _serve(helper, exabgp, source):
    """Serve events until the pipe is closed or ExaBGP has ended."""
    left = b""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while True:
            # A round takes at most 8 s: LOOK_S here, CHECK_S and LOAD_S in helper.py.
            notify("WATCHDOG=1")
            wait = helper.wait_s()
            if selector.select(LOOK_S if wait is None else min(wait, LOOK_S)):
                data = os.read(source, READ_BYTES)
                if not data:
                    log("exabgp events ended")
                    return
                *lines, left = (left + data).split(b"\n")
                for text in lines:
                    helper.line(text.decode("utf-8", "replace"))
            elif exabgp.poll() is not None:
                log("exabgp ended", code=exabgp.returncode)
                return
            helper.on_time()


def _end(exabgp):
    exabgp.terminate()
    try:
        exabgp.wait(END_S)
    except subprocess.TimeoutExpired:
        log("exabgp killed")
        exabgp.kill()
        exabgp.wait()
