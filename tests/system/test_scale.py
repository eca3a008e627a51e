# SPDX-License-Identifier: BSD-3-Clause
"""The time and memory of a full table, and its effect on transit. `make test` has a tenth of a
full table."""

import ipaddress
import json
import random
import re
import subprocess
import time

import pytest

from full_table import HELD_S, N4, N6, send
from lab import routes
from lib import fpm_speaker as fpm
from lib.built import only_release
from lib.wait import LONG, PATIENCE, eventually
from router import Router

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
ALL_S = 25.0  # to load, look up and withdraw: about three times the time of a full table
RSS_MAX = (600 if LONG else 240) << 20  # 170 MiB with a tenth of a table


def test_a_full_table_comes_and_goes_and_nothing_waits(short_queue):
    """zebra sends N4 IPv4 and N6 IPv6 routes over FPM, with the shortest queue that the
    configuration allows. The daemon never delays zebra. Every route is in the FIB and leads to
    the right next hop. Transit loses no packet, memory is bounded, and all routes can be
    withdrawn."""
    dut = short_queue
    lan, outs = dut.wires["lan"], [dut.wires[name] for name in ("wan", "alt", "ext")]
    dut.route(NET, via=outs[0].peer4, wire=outs[0])
    dut.route(NET6, via=outs[0].peer6, wire=outs[0])
    tables = {4: routes.table4(N4), 6: routes.table6(N6)}
    hops = {4: [dut.zebra.hop(o.peer4, o) for o in outs]}
    hops[6] = [dut.zebra.hop(o.peer6, o) for o in outs]
    teach = [fpm.table_stream(tables[f], f, hops[f]) for f in (4, 6)]
    unteach = [fpm.table_stream(tables[f], f, hops[f], delete=True) for f in (4, 6)]

    def counts():
        row = dut.fpm()
        return row["zebra4"] - 1, row["zebra6"] - 1

    with dut.stream(lan, HOST, rate=500) as four, dut.stream(lan, HOST6, rate=500) as six:
        begin = time.monotonic()
        held = [send(dut.zebra.speaker, octets) for octets in teach]
        eventually(lambda: counts() == (N4, N6), ALL_S, 0.1, "all routes are in the FIB")
        loaded = time.monotonic()
        memory = json.loads(dut.fpmctl("--json", "show", "memory").stdout)[0]
        text = dut.fpmctl("show", "memory").stdout
        status = dut.fpm()
        for family in (4, 6):
            some = routes.lonely(tables[family], family, 6, random.Random(7))
            for prefix in some:
                out = outs[tables[family].index(prefix) % len(outs)]
                host = routes.host(prefix, family, random.Random(7))
                dut.forwarded(lan, lan.probe(host), out)
        eventually(lambda: min(four.sent, six.sent) > 500, 5, 0.01, "the streams go on")
        looked = time.monotonic()
        held += [send(dut.zebra.speaker, octets) for octets in unteach]
        eventually(lambda: counts() == (0, 0), ALL_S, 0.1, "all routes are gone")
        done = time.monotonic()

    print(f"loaded in {loaded - begin:.1f} s, withdrawn in {done - looked:.1f} s, held at "
          f"most {max(held) * 1000:.0f} ms, queue at most "
          f"{status['queue_high_bytes'] >> 20} MiB, rss {memory['rss_bytes'] >> 20} MiB, "
          f"rib {memory['rib_bytes'] >> 20} MiB")  # fmt: skip
    assert max(held) < HELD_S, held
    assert (four.lost(outs[0]), six.lost(outs[0])) == ([], [])
    assert done - begin < ALL_S * PATIENCE
    assert (status["malformed"], status["overflows"]) == (0, 0)
    assert memory["rss_bytes"] < RSS_MAX, memory
    assert [w for w in ("Process", "FIB IPv4", "FIB IPv6", "RIB") if w not in text] == []


# -- N4 rows, listed -------------------------------------------------------------------------

PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.M)
# The memory limit of fpmctl, which needs 2 MiB, and the memory that the daemon may grow by. A
# tenth of a table is 20 MiB of JSON.
CTL_MAX, GROWN_MAX = 8 << 20, 8 << 20
# The memory that zebra's copy of the routes in the kernel may cost: 20 MiB with a full table.
COPY_MAX = (20 if LONG else 2) << 20


def listing(dut, *words):
    """Run fpmctl with a pipe as output. Return ({prefix: how often}, its peak memory in octets,
    seconds)."""
    seen, peak, begin = {}, 0, time.monotonic()
    argv = [dut.daemon.ctl, "-s", dut.socket, *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as ctl:
        for n, line in enumerate(ctl.stdout):
            row = re.match(r"""\[?\{.*?"prefix": *"([^"]+)"|(\d\S*/\d+) """, line)
            if row:
                prefix = row[1] or row[2]
                seen[prefix] = seen.get(prefix, 0) + 1
            if n % 50_000 == 0:
                with open(f"/proc/{ctl.pid}/status", encoding="ascii") as file:
                    said = PEAK.search(file.read())
                peak = int(said[1]) << 10 if said else peak  # no value: fpmctl has ended
    assert ctl.returncode == 0
    return seen, peak, time.monotonic() - begin


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_all_routes_are_listed_each_once_in_little_memory(taught, form):
    """`fpmctl show routes` writes every prefix that zebra sent exactly once into a pipe.
    Neither the daemon nor fpmctl holds the whole list."""
    dut, prefixes = taught
    before = dut.rss()

    seen, peak, took = listing(dut, *form, "show", "routes")

    grown = dut.rss() - before
    print(f"{len(seen)} routes in {took:.1f} s, fpmctl's peak {peak >> 10} KiB, the daemon "
          f"grew by {grown >> 10} KiB")  # fmt: skip
    assert (prefixes[4] | prefixes[6]) - seen.keys() == set()
    assert max(seen.values()) == 1
    assert 0 < peak < CTL_MAX
    assert grown < GROWN_MAX


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_zebras_copy_in_the_kernel_needs_no_memory(taught, family):
    """zebra installs its routes in the kernel, too. The router gets the events and reads the whole
    table, and does not store the routes a second time."""
    dut, prefixes = taught[0], taught[1][family]
    wan, n = dut.wires["wan"], len(prefixes)
    via = wan.peer4 if family == 4 else wan.peer6
    before, kernel = dut.rss(), dut.control.ask("kernel")[0]

    def passed():
        """Return how many routes of zebra the daemon has read and left out since the test began."""
        return dut.control.ask("kernel")[0]["of_zebra"] - kernel["of_zebra"]

    word = "route" if family == 4 else "-6 route"
    lines = [f"{word} add {prefix} via {via} proto bgp metric 20" for prefix in prefixes]
    for at in range(0, n, 20_000):
        dut.ip(*lines[at : at + 20_000])
    dut.ip("link set ext0 down", "link set ext0 up")  # the daemon reads the tables after a flap
    eventually(lambda: passed() >= n, ALL_S, 0.05, "the whole table is read")
    eventually(lambda: dut.control.ask("kernel")[0]["in_step"], 10, 0.05)

    grown = dut.rss() - before
    print(f"{n} routes in the kernel, too: the daemon grew by {grown >> 10} KiB")
    rows = dut.control.ask("kernel")[0]
    assert dut.fpm()[f"zebra{family}"] == n and rows["routes"] - kernel["routes"] < 100, rows
    assert grown < COPY_MAX


@pytest.fixture(scope="module")
def taught():
    """Start a router and teach it N4 and N6 routes by two next hops. Yield the router and the
    prefixes by family."""
    router = Router(name="taught")
    only_release(router.daemon.program, "memory is")
    try:
        router.build()
        router.start()
        tables = {4: routes.table4(N4), 6: routes.table6(N6)}
        outs = [router.wires[name] for name in ("wan", "alt")]
        hops = {4: [router.zebra.hop(out.peer4, out) for out in outs],
                6: [router.zebra.hop(out.peer6, out) for out in outs]}  # fmt: skip
        for family, table in tables.items():
            send(router.zebra.speaker, fpm.table_stream(table, family, hops[family]))
        eventually(lambda: (router.fpm()["zebra4"], router.fpm()["zebra6"]) == (N4, N6), ALL_S, 0.1,
                   "all are in the FIB")  # fmt: skip
        yield router, {
            4: {f"{ipaddress.IPv4Address(route >> 8)}/{route & 255}" for route in tables[4]},
            6: {f"{ipaddress.IPv6Address(route >> 8 << 64)}/{route & 255}" for route in tables[6]},
        }
    finally:
        router.destroy()
