# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin for FRR's topotests: it puts a dataplane into every router of a topology, audits
all of them after each test, and records events for the verdict.

The environment of the process, which run.py sets:

    TOPO_MODE   kernel: nothing is inserted, the rest is the same; else a dataplane in each router
    TOPO_OUT    the folder for events.jsonl and the daemons' logs
    TOPO_BFD    1: bfdd gives its sessions to the dataplane
    TOPO_KILL   1: kill each daemon with SIGKILL before each test
    BUILD       the build of the daemon: release, asan
"""

import concurrent.futures
import os

import ours
import events
import frr_hooks
from inserted import BFD_PORT, Inserted
from reach import reach

WITH_DATAPLANE = os.environ["TOPO_MODE"] != "kernel"
KILL = os.environ.get("TOPO_KILL") == "1"

inserted = {}  # by the name of the router


def each(method):
    """Call a method of all dataplanes at the same time. Return {name of the router: result}."""
    with concurrent.futures.ThreadPoolExecutor(max(len(inserted), 1)) as pool:
        return dict(zip(inserted, pool.map(method, inserted.values())))


def insert_all(net):
    """Insert a dataplane into each router. Turn off the checksum offloads of other hosts."""
    if not WITH_DATAPLANE:
        return
    for number, router in enumerate(frr_hooks.routers(net)):
        inserted[router.name] = Inserted(router.name, router.pid, router.intfs, number)
    each(Inserted.insert)
    events.record(event="inserted", routers=list(inserted))
    for name, host in net.hosts.items():
        if name not in inserted:
            for ifname in host.intfs:
                host.cmd_status(["ethtool", "-K", ifname, *ours.OFF], warn=False)


def look(net):
    """Record the pings and the last audits of a topology."""
    try:
        events.record(event="reach", answered=reach(net))
    except Exception as error:  # a test's failure may have left the topology in any state
        events.record(event="reach", error=repr(error))
    for name, said in each(Inserted.audit).items():
        one = inserted[name]
        events.record(
            event="end", router=name, audit=said, drops=one.drops(), log=one.warnings()
        )


def end_all():
    """End all dataplanes."""
    for name, code in each(Inserted.end).items():
        events.record(event="ended", router=name, code=code)
    inserted.clear()


frr_hooks.spare_the_machine()
frr_hooks.on_start(insert_all)
frr_hooks.on_stop(look, end_all)
frr_hooks.speak_to_dataplane(lambda name: name in inserted, BFD_PORT if events.BFD else None)


def pytest_runtest_call(item):
    """Kill the daemons before a test, if the run asks for it."""
    del item
    if KILL and inserted:
        events.record(event="killed", pids=each(Inserted.kill))


def pytest_runtest_logreport(report):
    """Audit all dataplanes after a test."""
    if report.when == "call" and inserted:
        audits = each(Inserted.audit)
        events.record(
            event="test",
            test=report.nodeid,
            audited=[name for name, said in audits.items() if said is not None],
            audits={name: said for name, said in audits.items() if said},
            dead=[name for name, one in inserted.items() if not one.alive()],
            pids=each(Inserted.pid_of_daemon),
            sessions=sum(each(Inserted.sessions).values()) if events.BFD else 0,
        )


def pytest_unconfigure(config):
    """End the dataplanes of a topology that its module did not take down."""
    del config
    end_all()
