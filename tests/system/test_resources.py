# SPDX-License-Identifier: BSD-3-Clause
"""A resource runs out: the daemon degrades as failures.md says, counts it under a name, logs it
at most once a second, and recovers without help."""

import collections
import glob
import json
import os
import re
import resource
import signal
import subprocess
import time

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether

from full_table import send
from lab import routes
from lib import fpm_speaker as fpm
from lib import netns, preload
from lib.built import only_release
from lib.dut import Dut
from lib.freeze import frozen
from lib.wait import LONG, PATIENCE, eventually
from on_time import Clock, slowness

NET, HOST = "198.51.100.0/24", "198.51.100.9"
# The sizes of two tables: the defaults (base/limits.def), or smaller ones from the file.
ADJACENCIES, HOSTS = (65535, 131072) if LONG else (4096, 8192)


@pytest.fixture
def tough(own_dut):
    """Start a router of its own with one route in use."""
    dut = own_dut()
    if not LONG:
        limits = f"limits: {{adjacencies: {ADJACENCIES}, neighbors: {HOSTS}}}\n"
        dut.edit_config("log-level:", limits + "log-level:")
    dut.start()
    dut.route(NET, via=dut.wires["wan"].peer4, wire=dut.wires["wan"])
    return dut


def table(dut, name):
    """Return the row of a table in `show memory`."""
    rows = dut.control.ask("memory")[0]["tables"]
    return next(row for row in rows if row["table"] == name)


def said(dut, pattern):
    """Count the lines of the log that match. Return the maximum in one second, and the total."""
    with open(dut.log_file, encoding="utf-8", errors="replace") as file:
        seconds = collections.Counter(x[:19] for x in file if re.search(pattern, x))
    return max(seconds.values(), default=0), sum(seconds.values())


def hosts4(first, count):
    """Return `count` addresses from a.b.0.1 on, where `first` is a << 8 | b."""
    return (f"{first >> 8}.{(first & 255) + (n >> 16)}.{n >> 8 & 255}.{n & 255}"
            for n in range(1, count + 1))  # fmt: skip


def permanent(dut, addresses, wire, verb="replace"):
    """Set tens of thousands of static neighbors. The kernel's limits do not count these."""
    tail = f" lladdr {wire.mac} nud permanent" if verb == "replace" else ""
    dut.ip(*(f"neigh {verb} {a} dev {wire.tap}{tail}" for a in addresses))


# -- packet buffers ---------------------------------------------------------------------------


def for_the_host(lan):
    """Return frames of many classes from a hundred sources. Each class has a ring of its
    own."""
    for n in range(100):
        src, mac = f"203.0.113.{n % 250 + 1}", f"02:66:00:00:{n >> 8:02x}:{n & 255:02x}"
        eth = Ether(src=mac, dst=lan.port_mac)
        to_us, far = IP(src=src, dst=lan.ip4), IP(src=src, dst="203.0.113.254")
        yield eth / to_us / UDP(sport=n + 1024, dport=9)
        # There is no route to the source: answers that wait for its MAC would fill the kernel's
        # ICMP socket, which all namespaces share.
        yield eth / IP(src=f"100.64.0.{n}", dst=lan.ip4) / ICMP()
        yield eth / to_us / TCP(sport=n + 1024, dport=179)
        yield eth / IP(src=src, dst=lan.ip4, ttl=255) / UDP(sport=49152, dport=3784)
        yield eth / IP(src=src, dst=lan.ip4, flags="MF", id=n) / UDP(dport=9, chksum=1)
        yield Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(psrc=src, pdst=lan.ip4)
        yield Ether(src=mac, dst="01:00:5e:00:00:16") / IP(src=src, dst="224.0.0.22", proto=2)
        yield Ether(src=mac, dst="01:00:5e:01:02:03") / IP(src=src, dst="239.1.2.3") / UDP()
        yield eth / IP(src=src, dst=HOST, ttl=1) / UDP(dport=33434)
        yield eth / far / UDP(dport=9)
        yield eth / IPv6(src=f"2001:db8:e::{n:x}", dst="2001:db8:f000::1", hlim=1) / UDP()
        yield eth / IPv6(src=f"2001:db8:e::{n:x}", dst="2001:db8:f000::1") / UDP()


OPEN = """local icmp bgp-new control-new fragment arp-new membership group icmp4-ttl
icmp4-unreach icmp6-ttl icmp6-unreach""".split()


def test_packet_buffers_run_out_and_come_back(own_dut):
    """The memory for packets is as small as possible, and the host takes no packet. Packets
    received then are counted as missed. When the host takes packets again, all buffers come
    back and no packet is missed."""
    dut = own_dut()
    dut.edit_config("size-mib: 96", "size-mib: 64")
    # A port with long packets: each packet takes more room, so there are fewer buffers.
    long = "  - tap: long0\n    device: net_null,no-rx=1\n    mtu: 9216\n"
    dut.edit_config("control-netns:", long + "control-netns:")
    free = "{rate: unlimited, source-rate: unlimited}"
    lines = "".join(f"  {name}: {free}\n" for name in OPEN)
    dut.edit_config("log-level:", f"policers:\n{lines}log-level:")
    Dut.start(dut)
    dut.ip("link set long0 up")
    dut.ready()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    buffers = dut.control.ask("memory")[0]["packet_buffers"]
    before = dut.port_row(lan)["rx_missed"]
    frames = [bytes(f) for f in for_the_host(lan)]

    with frozen(dut.daemon.pid(), "fdp-punt"):
        for _ in range(360):  # while the CPUs are busy, the kernel loses frames before the port
            lan.send(*frames)
            if dut.port_row(lan)["rx_missed"] > before + 1000:
                break
        eventually(lambda: said(dut, "packet buffers exhausted")[1] > 0, 10)
        missed = dut.port_row(lan)["rx_missed"] - before
        left = dut.control.ask("memory")[0]["packet_buffers_free"]
    begin = time.monotonic()
    eventually(lambda: said(dut, "packet buffers available again")[1] == 1, 10)
    whole = eventually(lambda: _all_free(dut) and time.monotonic(), 10)
    dut.fence(lan)
    at_rest = dut.port_row(lan)["rx_missed"]
    for _ in range(200):
        dut.forwarded(lan, lan.probe(HOST), wan)

    print(f"{buffers} buffers, {left} left, {missed} frames missed, back in "
          f"{whole - begin:.2f} s")  # fmt: skip
    assert missed > 0
    assert dut.port_row(lan)["rx_missed"] == at_rest
    assert said(dut, "packet buffers exhausted")[0] <= 2


def _all_free(dut):
    row = dut.control.ask("memory")[0]
    return row["packet_buffers_free"] == row["packet_buffers"]


# -- tables -----------------------------------------------------------------------------------


def test_more_gateways_than_adjacencies(tough):
    """zebra sends more next hops than there are adjacencies. Those beyond the limit have no
    egress, and all others are forwarded to. When some are removed, the others get an adjacency
    without a message from zebra."""
    dut, lan, wan = tough, tough.wires["lan"], tough.wires["wan"]
    beyond = 500
    gateways = list(hosts4(10 << 8, ADJACENCIES + beyond))
    dut.ip(f"addr add 10.0.0.0/14 dev {wan.tap}")
    permanent(dut, gateways, wan)
    oif, first = dut.ifindex(wan), 1000

    begin = time.monotonic()
    for at in range(0, len(gateways), 500):
        messages = []
        for n, gateway in enumerate(gateways[at : at + 500], at):
            messages.append(dut.zebra.hop_message(first + n, gateway, oif=oif))
            messages.append(fpm.route_message(_behind(n), nhid=first + n))
        dut.zebra.send(*messages)
    eventually(lambda: dut.fpm()["zebra4"] == len(gateways) + 1, 60, 0.1)
    row = eventually(lambda: (r := table(dut, "adjacencies"))["refused"] and r, 5)
    loaded = time.monotonic()

    assert row["used"] == row["max"] == ADJACENCIES
    assert dut.fpm()["adjacencies_full"] == row["refused"] >= beyond
    for n in (0, 1, ADJACENCIES // 2, ADJACENCIES - 1000):
        dut.forwarded(lan, lan.probe(_host(n)), wan, timeout=5)
    last = len(gateways) - 1
    assert dut.not_forwarded(lan, lan.probe(_host(last))) == {"egress_down": 1}
    assert said(dut, "table is full table=adjacencies")[0] <= 2

    gone = time.monotonic()
    dut.zebra.send(*(fpm.route_del_message(_behind(n)) for n in range(ADJACENCIES // 3)))
    eventually(lambda: dut.route_row(_behind(last))["nexthops"][0]["adj"] != 0, 20, 0.05)
    back = time.monotonic()
    for n in range(last, last - beyond, -100):
        dut.forwarded(lan, lan.probe(_host(n)), wan)
    eventually(lambda: said(dut, "table has room again table=adjacencies")[1] == 1, 5)
    print(f"{len(gateways)} next hops in {loaded - begin:.1f} s, room again after "
          f"{back - gone:.2f} s; audit {dut.control.ask('audit')[-1]}")  # fmt: skip
    assert dut.control.ask("audit")[-1]["differences"] == 0


def _behind(n):
    return f"100.{64 + (n >> 16)}.{n >> 8 & 255}.{n & 255}/32"


def _host(n):
    return _behind(n).split("/")[0]


def test_more_neighbors_than_places(tough):
    """The kernel has more neighbors than the table has places. Those with a place are in use,
    and a gateway that comes after all of them is too. When some are deleted, the others get a
    place."""
    dut, lan, wan = tough, tough.wires["lan"], tough.wires["wan"]
    beyond = HOSTS // 40
    hosts = list(hosts4(10 << 8, HOSTS + beyond))
    dut.ip(f"addr add 10.0.0.0/12 dev {wan.tap}")
    begin = time.monotonic()
    permanent(dut, hosts, wan)
    row = eventually(lambda: (r := table(dut, "neighbors"))["refused"] and r, 30, 0.1)
    full = time.monotonic()

    assert row["max"] == HOSTS and row["used"] >= HOSTS
    known = {r["address"] for r in dut.control.ask("neighbors")}
    going, staying = hosts[: HOSTS // 4], hosts[HOSTS // 4 :]
    left_out = next(h for h in staying if h not in known)
    dut.forwarded(lan, lan.probe(next(h for h in hosts if h in known)), wan)
    late = wan.answer("192.0.2.120")
    clock = Clock(dut)
    dut.route("203.0.113.0/24", via="192.0.2.120", wire=wan)
    commit = clock.seconds()
    dut.forwarded(lan, lan.probe("203.0.113.9"), wan, timeout=5)
    assert late == wan.mac
    assert said(dut, "table is full table=neighbors")[0] <= 2

    gone = time.monotonic()
    permanent(dut, going, wan, "del")
    eventually(lambda: dut.neighbor_row(left_out, wan), 20, 0.2, "the rest is known")
    back = time.monotonic()
    dut.forwarded(lan, lan.probe(left_out), wan)
    eventually(lambda: said(dut, "table has room again table=neighbors")[1] == 1, 5)
    print(f"{len(hosts)} neighbors in {full - begin:.1f} s, {row['refused']} refused, "
          f"the rest known {back - gone:.2f} s after others went; a route in force, with all "
          f"of them there, after {commit * 1000:.0f} ms")  # fmt: skip
    # The time is as short as ever, because no thread walks through colliding entries.
    assert commit < 0.5 * slowness(dut)


def test_an_overrun_of_netlink_is_said_and_leaves_no_wrong_neighbor(tough):
    """ENOBUFS: the neigh thread stands still while the kernel sends more than its socket holds.
    Afterwards each MAC that changed meanwhile is right, in every row and on the wire."""
    dut, lan, wan = tough, tough.wires["lan"], tough.wires["wan"]
    hosts = [f"192.0.2.{n}" for n in range(70, 126)]
    moved = "02:00:00:77:77:77"
    for address in hosts:
        dut.neighbor(address, wan, "02:00:00:00:00:01")
    noise = [f"neigh replace 203.0.113.{n % 200 + 1} lladdr 02:55:00:00:{n >> 8:02x}:"
             f"{n & 255:02x} dev {dut.wires['ext'].tap} nud permanent"
             for n in range(40000)]  # fmt: skip

    with frozen(dut.daemon.pid(), "fdp-neigh"):
        dut.ip(*noise)
        dut.ip(*(f"neigh replace {a} lladdr {moved} dev {wan.tap}" for a in hosts[:28]))
        dut.ip(*(f"neigh del {a} dev {wan.tap}" for a in hosts[28:]))
    begin = time.monotonic()
    eventually(lambda: dut.counters("total")["resyncs"] >= 1, 10, 0.01, "an overrun")
    eventually(lambda: dut.neighbor_row(hosts[0], wan)["mac"] == moved, 10, 0.01)
    print(f"in step {(time.monotonic() - begin) * 1000:.0f} ms after the thread went on")

    kernel = {
        (row["dev"], row["dst"]): row["lladdr"]
        for row in dut.static_neighbors()
    }

    def known():
        """Return the rows of the router, which may still be reading its list."""
        rows = dut.control.ask("neighbors")
        return {(r["dev"], r["address"]): r["mac"] for r in rows if r["state"] == "permanent"}

    eventually(lambda: known() == kernel, 10, 0.02, "each neighbor is that of the kernel")
    assert len(kernel) > 200
    for address in hosts[:28]:
        out = dut.forwarded(lan, lan.probe(address), wan)
        assert out.dst == moved
    assert said(dut, "kernel monitor overrun effect=state-read-again")[0] == 1


# -- four million routes ------------------------------------------------------------------------


def test_four_million_routes(own_dut):
    """Four times the routes of the Internet (a tenth of that without FDP_LONG=1) are all in the
    FIB. `show memory` tells their memory, and transit loses no packet. When all but one are
    withdrawn, later routes use the memory that they had."""
    count = int(float(os.environ.get("MILLIONS", "4" if LONG else "0.4")) * 1_000_000)
    if _available() < 1600 * count:
        pytest.skip(f"less than {1600 * count >> 20} MiB of memory are available")
    dut = own_dut()
    only_release(dut.daemon.program)
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    hops = [dut.zebra.hop(w.peer4, w) for w in (wan, dut.wires["alt"], dut.wires["ext"])]
    made = routes.table4(count)

    begin = time.monotonic()
    with dut.stream(lan, HOST, rate=200) as stream:
        for at in range(0, count, count // 8):
            send(dut.zebra.speaker, fpm.table_stream(made[at : at + count // 8], 4, hops))
        eventually(lambda: dut.fpm()["zebra4"] == count + 1, 60, 0.2)
        took = time.monotonic() - begin
        row = dut.control.ask("memory")[0]
        known, rss = dut.fpm()["fib4"]["routes"], row["rss_bytes"]
        dut.zebra.connect()  # a new session of zebra, which sends only the next route
        dut.route(NET, via=wan.peer4, wire=wan)
        eventually(lambda: dut.fpm()["zebra4"] == 1, 60, 0.2, "the others are swept")
        hops = [dut.zebra.hop(wan.peer4, wan)]
        send(dut.zebra.speaker, fpm.table_stream(made[-count // 4 :], 4, hops))
        eventually(lambda: dut.fpm()["zebra4"] > count // 4, 60, 0.2)
        again = dut.control.ask("memory")[0]["rss_bytes"]

    print(f"{count} routes in {took:.1f} s with their making, rss {rss >> 20} MiB: rib "
          f"{row['rib_bytes'] >> 20}, fib {row['fib4']['bytes'] >> 20}, its writer's "
          f"{row['fib4']['radix_bytes'] >> 20} MiB; with a quarter of them anew {again >> 20} MiB; "
          f"lost {len(stream.lost(wan))} of {stream.sent}")  # fmt: skip
    assert known > count
    assert dut.fpm()["out_of_memory"] == 0
    assert stream.lost(wan) == []
    assert rss < 160 * count + (160 << 20)  # 0.75 GiB for four million
    assert again < rss + ((16 if LONG else 6) << 20)


def _available():
    with open("/proc/meminfo", encoding="ascii") as file:
        rows = dict(line.split(":") for line in file)
    return int(rows["MemAvailable"].split()[0]) << 10


# -- descriptors -------------------------------------------------------------------------------


def device(dut, name):
    """Return the row of `ip -j link` of the kernel interface behind a port."""
    return json.loads(netns.command(["ip", "-n", dut.dp, "-j", "link", "show", name]))[0]


def test_changes_without_a_descriptor_are_made_when_there_is_one(tough):
    """The daemon may open no further descriptor (RLIMIT_NOFILE) while MTU, MAC and state of TAPs
    change and a port's link comes up. The devices get these settings when the limit is raised."""
    dut, lan, wan = tough, tough.wires["lan"], tough.wires["wan"]
    pid = dut.daemon.pid()
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    mac = "02:00:00:77:00:01"
    dut.ip("link set alt0 down")
    eventually(lambda: device(dut, "p-alt")["operstate"] == "DOWN", 5)

    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    dut.ip("link set lan0 mtu 1400", f"link set ext0 address {mac}", "link set alt0 up")
    eventually(lambda: "mtu of device not set port=lan0" in dut.log(20), 5)
    eventually(lambda: dut.port_row(dut.wires["ext"])["mac"] == mac, 5)
    assert device(dut, "p-lan")["mtu"] == 1500 and device(dut, "p-ext")["address"] != mac
    dut.forwarded(lan, lan.probe(HOST), wan)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))

    eventually(lambda: device(dut, "p-lan")["mtu"] == 1400, 5)
    eventually(lambda: device(dut, "p-ext")["address"] == mac, 5)
    eventually(lambda: "UP" in device(dut, "p-alt")["flags"], 5)
    eventually(lambda: dut.port_row(lan)["mtu"] == 1400, 5)
    assert dut.daemon.pid() == pid


# -- the machine ----------------------------------------------------------------------------------


def test_a_disk_that_is_full_costs_the_log_and_nothing_else(own_dut):
    """Every write to the log fails with ENOSPC. The daemon forwards, and `show log` has the
    lines."""
    dut = own_dut()
    dut.daemon.log_file = "/dev/full"
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    dut.forwarded(lan, lan.probe(HOST), wan)

    lines = lambda: [row["line"] for row in dut.control.ask("log")]  # noqa: E731
    eventually(lambda: any("main: forwarding" in line for line in lines()), 5, 0.01)
    assert dut.stop() == 0


def test_a_log_without_a_reader_loses_lines_and_nothing_else(own_dut, unread):
    """The reader of the log's pipe has stopped. No thread waits for it. `show log` has the
    lines and says that output fails. A reader that starts again learns how many lines are
    lost."""
    dut = own_dut()
    dut.daemon.log_file = unread.path
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    dut.forwarded(lan, lan.probe(HOST), wan)
    log = lambda: "\n".join(row["line"] for row in dut.control.ask("log"))  # noqa: E731
    lines = eventually(lambda: "main: forwarding" in (text := log()) and text, 5, 0.01)
    assert "log: output failed error=\"Resource temporarily" in lines
    unread.drain()
    assert dut.stop() == 0
    found = re.search(r"log: output resumed lost=(\d+)\n", unread.drain())
    assert int(found[1]) >= lines.count("\n")


@pytest.fixture
def small_run(own_dut):
    """Make a router under the supervisor whose control socket is on a file system of its
    own."""
    dut = own_dut(supervised=True)
    run = dut.dir + "/run"
    os.makedirs(run)
    netns.command(["mount", "-t", "tmpfs", "-o", "size=64k", "none", run])
    try:
        dut.socket = dut.daemon.socket = dut.control.path = run + "/control.sock"
        dut.write_config()
        yield dut
    finally:
        dut.destroy_daemon()
        netns.command(["umount", run])


def test_run_read_only_costs_nothing_until_a_start(small_run):
    """/run becomes read-only and the daemon runs on. A daemon that crashes then cannot make its
    socket: each try is logged, and the first try after the repair succeeds."""
    dut, run = small_run, os.path.dirname(small_run.socket)
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    netns.command(["mount", "-o", "remount,ro", run])
    dut.control.close()
    dut.forwarded(lan, lan.probe(HOST), wan)
    assert dut.fpmctl("show", "version").returncode == 0
    was = dut.daemon.crash()
    dut.control.close()
    eventually(lambda: said(dut, "control socket not opened")[1] >= 2, 20, 0.05)
    netns.command(["mount", "-o", "remount,rw", run])
    begin = time.monotonic()
    dut.daemon.back(was)
    print(f"there again {time.monotonic() - begin:.2f} s after the repair")
    eventually(lambda: dut.port_row(wan)["link"] == "up", 5)
    dut.forwarded(lan, lan.probe(HOST), wan)


def test_a_restart_on_a_read_only_run_is_refused(small_run):
    """/run is read-only: a planned restart is refused before the daemon closes a socket, and no packet
    is lost. In an earlier version the daemon could not open its socket again and ended, and no start
    succeeded before the repair."""
    dut, run = small_run, os.path.dirname(small_run.socket)
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    was = dut.daemon.pid()

    netns.command(["mount", "-o", "remount,ro", run])
    with dut.stream(lan, HOST, rate=500) as stream:
        done = dut.fpmctl("restart")
    assert done.returncode == 3 and "restart refused, the daemon continues" in done.stderr
    assert stream.lost(wan) == []
    assert said(dut, "control socket not opened .*Read-only file system")[1] == 1
    assert dut.daemon.pid() == was and dut.fpm()["connected"]
    netns.command(["mount", "-o", "remount,rw", run])
    assert dut.fpmctl("restart").returncode == 0
    dut.control.close()
    dut.daemon.back(was)
    dut.forwarded(lan, lan.probe(HOST), wan)


EMPTY = "/var/run/dpdk/fpm-dataplane"  # DPDK makes it without hugepages, and no process uses it
FREE_PAGES = "/sys/kernel/mm/hugepages/*/free_hugepages"


def glob_of(pattern):
    """Return the content of the files that match."""
    texts = []
    for path in glob.glob(pattern):
        with open(path, encoding="ascii") as file:
            texts.append(file.read().strip())
    return texts


def started_in_vain(dut):
    """Check that a start with huge pages ends with one sentence that names the keys, and leaves
    no TAP."""
    dut.edit_config("memory:\n", "memory:\n  hugepages: true\n")
    argv = ["ip", "netns", "exec", dut.dp, dut.daemon.program, "-c", dut.config]

    done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    assert done.returncode == 1, done.stderr
    (said,) = re.findall(r"main: dpdk not started .*", done.stderr + done.stdout)
    with open(dut.config, encoding="utf-8") as file:
        size = re.search(r"size-mib: (\d+)", file.read())[1]
    assert f"wanted_mib={size} see=hugepages,memory.size-mib" in said, said
    assert "reason=too-few-hugepages free_mib=" in said, said
    assert dut.links() == [row for row in dut.links() if row["ifname"] == "lo"]


def test_huge_pages_that_are_not_there_are_told_and_nothing_is_left(own_dut, hugepages):
    """memory.hugepages is on and the machine has no huge page: the daemon prints one sentence
    that names the key, ends with exit code 1, and leaves no TAP."""
    if any(int(n) for n in glob_of(FREE_PAGES)):
        pytest.skip("there are huge pages here")

    started_in_vain(own_dut())


@pytest.fixture
def one_page(hugepages):
    """Reserve one huge page of 2 MiB, and no other, for one test."""
    room = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
    if any(int(n) for n in glob_of(FREE_PAGES)) or not os.access(room + "nr_hugepages", os.W_OK):
        pytest.skip("there are huge pages here, or none can be had")
    with open(room + "nr_hugepages", "r+", encoding="ascii") as file:
        before = file.read()
        file.seek(0)
        file.write("1")
        file.flush()
        yield eventually(lambda: glob_of(room + "free_hugepages") == ["1"], 5)
        file.seek(0)
        file.write(before)


def test_huge_pages_that_are_too_few_are_told_and_nothing_is_left(own_dut, one_page):
    """The machine has one page of 2 MiB and the file asks for 64 MiB: the daemon prints the
    same sentence and leaves no TAP. The page is free again."""
    dut = own_dut()
    dut.edit_config("size-mib: 96", "size-mib: 64")

    started_in_vain(dut)

    assert any(int(n) for n in glob_of(FREE_PAGES))


def test_a_start_without_memory_is_told_and_nothing_is_left(own_dut):
    """The limit of the address space (RLIMIT_AS) is below memory.size-mib: the daemon ends with exit
    code 1 and a sentence that names the limit. It leaves no TAP and no directory of DPDK, because
    fpm-supervise and systemd repeat such a start without an end."""
    dut = own_dut()
    only_release(dut.daemon.program, "the addresses of a process are limited")
    dut.edit_config("size-mib: 96", "size-mib: 8192")
    argv = ["ip", "netns", "exec", dut.dp, "prlimit", f"--as={4 << 30}", dut.daemon.program]

    with subprocess.Popen(
        [*argv, "-c", dut.config], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as started:
        _, text = started.communicate(timeout=30)

    assert started.returncode == 1, text
    assert (
        f"main: dpdk not started reason=address-space-limit limit_mib={4 << 10} "
        'see="ulimit -v, LimitAS of the unit, memory.size-mib"'
    ) in text
    assert glob.glob(f"/var/run/dpdk/fdp{started.pid}-*") == []
    eventually(lambda: not os.path.exists(EMPTY), 5, what="no empty directory is left")
    assert dut.links() == [row for row in dut.links() if row["ifname"] == "lo"]


def test_a_start_removes_the_directory_that_a_killed_one_has_left(own_dut):
    """A daemon that is killed while DPDK starts leaves an empty directory. The next start removes
    it, so that there is one at most."""
    dut = own_dut()
    os.makedirs(EMPTY, exist_ok=True)

    dut.start()

    assert not glob.glob(f"/var/run/dpdk/fdp{dut.daemon.pid()}-*")
    eventually(lambda: not os.path.exists(EMPTY), 5, what="no empty directory is left")


# -- the clock --------------------------------------------------------------------------------------


@pytest.fixture
def jumping(own_dut, monkeypatch):
    """Start a router whose wall clock the test can set: router.jump(seconds)."""
    dut = own_dut()
    offset = dut.dir + "/offset"

    def jump(seconds):
        with open(offset, "r+b") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))

    with open(offset, "wb") as file:
        file.write(bytes(8))
    preload.start(dut, monkeypatch, "wall_clock", WALL_CLOCK_OFFSET=offset)
    dut.jump = jump
    return dut


@pytest.mark.parametrize("seconds", [3600, -3600], ids=["forward", "back"])
def test_a_clock_that_jumps_changes_time_stamps_only(jumping, seconds):
    """The wall clock jumps by an hour while packets pass and wait. No packet is lost. Packets
    that wait for a neighbor wait as long as usual. Sessions and the sweep use the monotonic
    clock."""
    dut, lan, wan = jumping, jumping.wires["lan"], jumping.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    silent = "192.0.2.99"
    year = time.strftime("%Y-%m-%dT%H", time.gmtime(time.time() + seconds))

    with dut.stream(lan, HOST) as stream:
        lan.send(lan.probe(silent))
        eventually(lambda: table(dut, "waiting")["used"] == 1, 5, 0.005)
        dut.jump(seconds)
        begin = time.monotonic()
        lan.send(lan.probe("192.0.2.98"))
        eventually(lambda: table(dut, "waiting")["used"] == 2, 5, 0.005, "both packets wait")
        eventually(lambda: table(dut, "waiting")["used"] == 0, 12, 0.05, "no packet waits")
        waited = time.monotonic() - begin
        wan.answer("192.0.2.97")
        dut.forwarded(lan, lan.probe("192.0.2.97"), wan, timeout=3)
        dut.zebra.close()
        dut.zebra.connect()
        dut.zebra.route(NET, wan.peer4, wan)
        eventually(lambda: dut.fpm()["state"] == "in-step", 15)
    print(f"given up after {waited:.1f} s")

    assert stream.lost(wan) == []
    assert waited < 8
    assert any(year in row["line"] for row in dut.control.ask("log"))
    assert dut.stop(signal.SIGTERM) == 0
