# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the system tests: the session has one router. The router is in its standard state at
the start of every test. Its four wires have names."""

import contextlib
import fcntl
import os
import random
import signal
import sys
import traceback

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import built  # noqa: E402
from lib.dut import sweep_leftovers, why_not  # noqa: E402
from lib.wait import LONG  # noqa: E402
from gateways import solicit  # noqa: E402
from router import Router, running  # noqa: E402


# test_audit.py breaks state on purpose and runs `fpmctl audit` on it.
os.environ["FPM_DATAPLANE_TEST_HOOKS"] = "1"

ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def pytest_configure(config):
    """End the tests cleanly on a signal (a time limit, a closed terminal): the tests leave nothing
    behind."""
    config.addinivalue_line("markers", "guest: `make test-vm-all` runs it in a virtual machine")
    config.addinivalue_line("markers", "smoke: `make check` runs it; quick, and uses the shared router")
    config.addinivalue_line("markers", "long: only with FDP_LONG=1, as `make test-all` has it")
    for number in ASKED_TO_END:
        signal.signal(number, _end)


def _end(number, frame):
    """Handle the first signal and ignore the later ones, so that the cleanup continues: timeout(1)
    sends its signal twice, Ctrl-C reaches every process of the terminal, and the parent process
    sends one more."""
    for also in ASKED_TO_END:
        signal.signal(also, signal.SIG_IGN)
    where = "".join(traceback.format_stack(frame, 12))
    raise KeyboardInterrupt(f"signal {number} in {os.environ.get('PYTEST_CURRENT_TEST')}\n{where}")


def _kept_together(item):
    """Return the test's value of the parameter that its module names in TOGETHER, or None. Tests with
    the same value run in the same shard."""
    name = getattr(item.module, "TOGETHER", None)
    return name and getattr(item, "callspec", None) and item.callspec.params.get(name)


def _cut(items, at):
    """Return the first index from `at` on where a cut does not separate tests that share an
    expensive fixture."""
    while 0 < at < len(items):
        group = _kept_together(items[at])
        if group is None or group != _kept_together(items[at - 1]):
            break
        at += 1
    return at


def pytest_collection_modifyitems(config, items):
    """FDP_SHARD=i/n: run the part i of n parts of the tests, in their order (tests/shards.py).
    Tests marked as long run with FDP_LONG=1."""
    if not LONG:
        config.hook.pytest_deselected(items=[x for x in items if x.get_closest_marker("long")])
        items[:] = [x for x in items if not x.get_closest_marker("long")]
    part, _, parts = os.environ.get("FDP_SHARD", "0/1").partition("/")
    first, end = (
        _cut(items, len(items) * (int(part) + more) // int(parts)) for more in (0, 1)
    )
    config.hook.pytest_deselected(items=items[:first] + items[end:])
    items[:] = items[first:end]


@pytest.fixture(scope="session", autouse=True)
def possible():
    """Skip all tests, with one sentence as the reason, on a machine that cannot run them."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    sweep_leftovers()


@pytest.fixture(scope="session", autouse=True)
def sanitizers(tmp_path_factory):
    """Collect the reports of the sanitizers in the programs of `make system-asan`."""
    log = str(tmp_path_factory.mktemp("sanitizers") / "found")
    if os.environ.get("BUILD") == "asan":
        os.environ |= built.reporting_to(log)
    found = built.Reports(log)
    yield found
    assert found.new() == "", "a report of a router that ended after the last test"


@pytest.fixture(autouse=True)
def nothing_found(sanitizers):
    """Fail the test if a sanitizer of one of its programs has reported an error. If a router ends
    between two tests, its reports fail the later test."""
    yield
    assert sanitizers.new() == ""


@pytest.fixture(scope="session")
def session_dut(possible):
    """Yield the router that most tests share."""
    with running(Router()) as router:
        yield router


@pytest.fixture
def dut(session_dut):
    """Yield the shared router in its standard state. If a test kills the router, that test fails, not
    a later one."""
    router = session_dut
    if not router.alive():
        router.start()
    router.ready()
    router.log_from = os.path.getsize(router.log_file)
    yield router
    if not router.alive():
        code = router.daemon.process.poll()
        router.daemon.process = None
        pytest.fail(f"the daemon died during this test: exit code {code}")


@pytest.fixture(scope="module")
def asked_often(session_dut):
    """Let the kernel ask for a neighbor on wan five times a second, not once, and for 10 s, longer
    than packets wait (5 s). So the kernel soon finds a neighbor that begins to answer, and a
    neighbor that does not answer yet has not failed."""
    solicit(session_dut, retrans_time_ms=200, mcast_solicit=50)
    yield
    solicit(session_dut, retrans_time_ms=1000, mcast_solicit=3)


@pytest.fixture
def given_up_soon(asked_often, dut):
    """Let the kernel give up a neighbor on wan after 0.6 s."""
    solicit(dut, mcast_solicit=3)
    yield
    solicit(dut, mcast_solicit=50)


@pytest.fixture
def own_dut():
    """Yield a function that makes routers, for tests that restart, kill or reconfigure a router."""
    made = []

    def make(kind=Router, **kw):
        router = kind(name=f"x{len(made)}", **kw)
        ending.callback(router.destroy)
        made.append(router)
        router.build()
        return router

    make.made = made
    with contextlib.ExitStack() as ending:  # the others end even if one router fails to end
        yield make


@pytest.fixture
def hugepages():
    """Reserve the hugepages of the machine for this test: another process that asks for them
    waits."""
    with open("/tmp/fdp-hugepages.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Unread:
    """A named pipe that is full, and that no process reads until the test drains it."""

    def __init__(self, path):
        self.path = path
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4095 + b"\n")
        os.close(writer)

    def drain(self):
        """Return the content of the pipe."""
        found = b""
        with contextlib.suppress(BlockingIOError):
            while octets := os.read(self._reader, 65536):
                found += octets
        return found.decode(errors="replace")

    def close(self):
        """Close the pipe: no process reads it again."""
        if self._reader >= 0:
            os.close(self._reader)
        self._reader = -1


@pytest.fixture
def kept(own_dut):
    """Return a router for one test alone, under the supervisor."""
    dut = own_dut(supervised=True)
    dut.start()
    return dut


@pytest.fixture
def unread(tmp_path):
    """Make a full pipe to which a program can write its log."""
    made = Unread(str(tmp_path / "unread"))
    yield made
    made.close()


@pytest.fixture
def short_queue(own_dut):
    """Return a router with the shortest queue for zebra that the configuration allows, 64 MiB. It is of
    the release build, because the tests measure memory and time."""
    router = own_dut()
    built.only_release(router.daemon.program)
    router.edit_config("fpm:", "fpm:\n  queue-limit-mib: 64")
    router.start()
    return router


@pytest.fixture
def rng():
    """Return a random number generator. It prints its seed."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    return random.Random(seed)


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def family(request):
    """Run the test for both families."""
    return request.param


@pytest.fixture
def case(family):
    """Return (prefix, destination, attribute of a wire that has the neighbor's address)."""
    if family == 4:
        return "198.51.100.0/24", "198.51.100.9", "peer4"
    return "2001:db8:f000::/36", "2001:db8:f000::9", "peer6"


@pytest.fixture
def lan(dut):
    """Return the wire from which most probes come."""
    return dut.wires["lan"]


@pytest.fixture
def wan(dut):
    """Return the wire to which most routes point."""
    return dut.wires["wan"]


@pytest.fixture
def alt(dut):
    """Return a second egress wire."""
    return dut.wires["alt"]


@pytest.fixture
def ext(dut):
    """Return a third egress wire."""
    return dut.wires["ext"]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Attach the end of the daemon's log to a failure."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    routers = [item.funcargs["dut"]] if "dut" in item.funcargs else []
    routers += getattr(item.funcargs.get("own_dut"), "made", [])
    for router in routers:
        report.sections.append(("daemon log", router.log()))
