# SPDX-License-Identifier: BSD-3-Clause
"""The package's service on four NICs of the guest, under systemd. Its fixtures `machine` and
`router` are those of conftest.py, so that several files share one service."""

import contextlib
import itertools
import signal

import pytest

from lib import netns
from lib.dataplane import Dataplane
from router import Router, running

NAME = "fpm-dataplane"
CONFIG = f"/etc/{NAME}/config.yaml"
# Without triggers, because to index all manual pages takes the guest minutes. Without the lists
# of all other packages' files, because to read them takes half a minute.
DPKG = ["dpkg", "--admindir=/run/dpkg", "--no-triggers"]
NET = {4: "198.51.100.0/24", 6: "2001:db8:a::/48"}
HOST = {4: "198.51.100.9", 6: "2001:db8:a::9"}


def systemctl(*words, check=True):
    """Run systemctl. Return its output."""
    return netns.command(["systemctl", *words], check=check)


def state(key):
    """Return one property of the service as text."""
    return systemctl("show", "--value", "-p", key, NAME).strip()


class Service(Dataplane):
    """The package's daemon, which systemd runs."""

    def __init__(self, *words):
        super().__init__(*words)
        self.ctl = "/usr/bin/fpmctl"
        self.process = self

    def start(self, timeout=0):
        systemctl("start", NAME)

    def stop(self, number=signal.SIGTERM, timeout=0):
        systemctl("stop", NAME)
        return int(state("ExecMainStatus"))

    def poll(self):
        return None if state("ActiveState") == "active" else int(state("ExecMainStatus"))

    def terminate(self):
        self.stop()

    def wait(self, timeout):
        return self.poll()

    def log(self, lines=15):
        netns.command(["journalctl", "--sync"])  # wait until the log is complete
        return netns.command(
            ["journalctl", "-q", "-o", "cat", "-u", NAME, "-n", str(lines)]
        )


@pytest.fixture(scope="session")
def machine(package):
    """Run the package's service on four NICs."""
    router = Router(name="svc")
    router.config, router.socket = CONFIG, f"/run/{NAME}/control.sock"
    router.control.path = router.socket
    router.daemon = Service(None, CONFIG, router.socket, "", router.dir)
    with running(router):
        yield router


@pytest.fixture
def router(machine):
    if not machine.alive():
        systemctl("reset-failed", NAME, check=False)
        machine.start()
    machine.ready()
    return machine


def routes(router):
    for family in (4, 6):
        wan = router.wires["wan"]
        router.route(NET[family], via=wan.peer4 if family == 4 else wan.peer6, wire=wan)


def forwards(router):
    """Check that a packet of each family is forwarded."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    return [router.forwarded(lan, lan.probe(HOST[f]), wan, 5) for f in (4, 6)]


def wait_for_other(router, was):
    """Wait until systemd has started another daemon than `was` and it answers."""
    router.control.close()
    now = router.daemon.back(was, 60)
    assert now == int(state("MainPID"))
    router.zebra.connect()
    router.ready()
    routes(router)


@contextlib.contextmanager
def traffic(router, was):
    """Send packets while another daemon replaces `was`, and until they pass again, before zebra
    connects. Print the longest time without a packet. This time is long in a guest without KVM."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    with router.stream(lan, HOST[4], rate=100) as stream:
        yield
        router.control.close()
        router.daemon.back(was, 60)
        router.forwarded(lan, lan.probe(HOST[4]), wan, 20)
    # The times of arrival, not the lost packets: QEMU keeps ten seconds of packets before a
    # closed NIC.
    came = sorted(when for when, _ in wan.timed(stream.mark))
    rest = max(after - before for before, after in itertools.pairwise(came))
    print(f"{stream.sent} packets; transit rested {rest:.2f} s")


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
