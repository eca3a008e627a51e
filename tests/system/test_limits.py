# SPDX-License-Identifier: BSD-3-Clause
"""Tables have the sizes of `limits:` in the file. The router counts, logs and shows each
refused entry. A refused entry gets a place when other entries leave. A successor with other
limits takes over."""

import contextlib
import json
import socket

import pytest

from back import HOST, NET, come_back, impatient_kernel
from labels import TAKES_LABELS, LabelRouter, entries_of, with_labels
from lib import api
from lib.wait import eventually
from router import running
from test_feedback import FAILED, OFFLOAD, Acks
from test_resources import permanent, said, table

ROUTES, HOSTS, WAITING, AWAITED, CLIENTS, HTTP = 100, 24, 16, 12, 12, 4


@pytest.fixture
def small(own_dut):
    """Start a router of its own with small limits, under the supervisor."""
    dut = own_dut(supervised=True)
    limits = {
        "routes": ROUTES,
        "hosts": HOSTS,
        "waiting": WAITING,
        "waited-for": AWAITED,
        "clients": CLIENTS,
        "http-clients": HTTP,
    }
    lines = "".join(f"  {key}: {value}\n" for key, value in limits.items())
    dut.edit_config("log-level:", f"limits:\n{lines}log-level:")
    dut.start()
    return dut


def shown(dut, name):
    """Return a row of `fpmctl show memory` in words: table, used, of, refused, set by."""
    lines = dut.fpmctl("show", "memory").stdout.splitlines()
    return next(x.split() for x in lines if x.startswith(name + " "))


def nth(n):
    return f"100.64.{n}.0/24"


def teach(dut, *numbers):
    """Send routes by one gateway."""
    wan = dut.wires["wan"]
    nhid = dut.zebra.hop(wan.peer4, wan)
    dut.zebra.send(*(dut.zebra.add_message(nth(n), nhid) for n in numbers))


def test_routes_beyond_the_limit_come_in_when_others_go(small):
    """The RIB refuses routes beyond the limit and keeps all others. When an eighth of the table
    is free, fpm asks zebra to send all routes again."""
    dut, lan, wan = small, small.wires["lan"], small.wires["wan"]
    room = ROUTES - table(dut, "routes")["used"]
    assert 30 < room < ROUTES
    teach(dut, *range(room + 5))
    row = eventually(lambda: (r := table(dut, "routes"))["refused"] >= 5 and r, 5)

    assert row["used"] == row["max"] == ROUTES and row["key"] == "limits.routes"
    assert row["refused"] == 5 == dut.fpm()["routes_full"]
    assert shown(dut, "routes") == ["routes", "100", "100", "5", "limits.routes"]
    assert "5 beyond limits.routes" in dut.fpmctl("show", "fpm").stdout
    assert said(dut, "table is full table=routes max=100 .*key=limits.routes")[0] == 1
    dut.forwarded(lan, lan.probe(f"100.64.{room - 1}.9"), wan)
    assert dut.not_forwarded(lan, lan.probe(f"100.64.{room}.9")) == {"no_route": 1}

    dut.zebra.drop(*(nth(n) for n in range(20)))
    eventually(lambda: not dut.fpm()["connected"], 5, 0.01, "zebra is to say all again")
    dut.zebra.connect()
    teach(dut, *range(20, room + 5))
    eventually(lambda: dut.route_row(nth(room + 4)), 5)
    dut.forwarded(lan, lan.probe(f"100.64.{room}.9"), wan)
    assert said(dut, "table has room again table=routes")[1] == 1
    assert table(dut, "routes")["refused"] == 5


ENCAPS = 16  # the smallest limit


@pytest.fixture
def few_encaps(possible):
    """Run a router with room for a few label stacks, which acknowledges routes."""
    limit = ("log-level:", f"limits:\n  encaps: {ENCAPS}\nlog-level:")
    with running(LabelRouter(name="encaps"), TAKES_LABELS, ("fpm:\n", "fpm:\n  feedback: true\n"), limit) as dut:
        dut.ready()
        yield dut


def test_label_stacks_beyond_the_limit_are_refused_until_others_go(few_encaps):
    """Routes and labels whose stacks find no room are unsupported, and the daemon acknowledges the routes
    as failed. Their packets are dropped, also those of the label. A group uses its other next hop. When
    stacks are free, the routes and the label get them, and are acknowledged again."""
    dut = few_encaps
    lan, wan, alt = (dut.wires[name] for name in ("lan", "wan", "alt"))
    acks = Acks(dut.zebra.speaker)
    told = lambda n: [flags for prefix, *_, flags in acks.read() if prefix == nth(n)][-1:]  # noqa: E731
    state = lambda n: dut.route_row(nth(n))["state"]  # noqa: E731
    plain = dut.zebra.hop(alt.peer4, alt)
    for n in range(ENCAPS + 1):
        dut.route(nth(n), nhid=dut.zebra.hop(wan.peer4, wan, labels=[1000 + n]))
    mixed = dut.zebra.group([plain, dut.zebra.hop(wan.peer4, wan, labels=[2000])])
    dut.route(nth(100), nhid=mixed)
    dut.zebra.send(dut.zebra.label_message(100, dut.hop(wan, [3000])))
    eventually(lambda: dut.label_row(100), 5, 0.005)

    row = table(dut, "encaps")
    assert (row["used"], row["max"], row["key"]) == (ENCAPS, ENCAPS, "limits.encaps") and row["refused"] >= 3
    assert said(dut, f"table is full table=encaps max={ENCAPS} .*key=limits.encaps")[0] == 1
    eventually(lambda: [told(n) for n in (0, ENCAPS, 100)] == [[OFFLOAD], [FAILED], [OFFLOAD]], 5)
    assert (state(0), state(ENCAPS), dut.label_row(100)["state"]) == ("forwarding", "unsupported", "unsupported")
    came = dut.forwarded(lan, lan.probe("100.64.0.9"), wan)
    assert [e[0] for e in entries_of(came)] == [1000]
    assert dut.not_forwarded(lan, lan.probe(f"100.64.{ENCAPS}.9")) == {"unsupported_encap": 1}
    labelled = with_labels(lan.probe("100.64.0.9"), 100)
    assert dut.not_forwarded(lan, labelled).get("unsupported_encap") == 1
    for port in range(20):
        came = dut.forwarded(lan, lan.probe("100.64.100.9", sport=5000 + port), alt)
        assert entries_of(came) == []

    # The group and the label wait for room, too.
    dut.zebra.drop(*map(nth, range(3)))
    eventually(lambda: told(ENCAPS) == [OFFLOAD] and dut.label_row(100)["state"] == "forwarding", 10)
    for sent, label in ((lan.probe(f"100.64.{ENCAPS}.9"), 1000 + ENCAPS), (labelled, 3000)):
        assert [e[0] for e in entries_of(dut.forwarded(lan, sent, wan))] == [label]

def test_hosts_and_packets_that_wait_have_the_room_that_the_file_says(small):
    """Hosts on a link, and packets that wait for a silent host, fill their tables up to the
    limit. The refused ones are counted. There is room again when others leave."""
    dut, lan, wan = small, small.wires["lan"], small.wires["wan"]
    base, first = wan.ip4.rpartition(".")[::2]
    hosts = [f"{base}.{int(first) + 5 + n}" for n in range(40)]
    silent, there = hosts.pop(), hosts[:]
    permanent(dut, there, wan)
    row = eventually(lambda: (r := table(dut, "hosts"))["refused"] and r, 5)
    assert row["used"] == row["max"] == HOSTS
    eventually(lambda: said(dut, "table is full table=hosts")[1] >= 1, 5, 0.005)

    before = dut.counters()
    lan.send(*(lan.probe(silent) for _ in range(60)))
    eventually(lambda: dut.drops(before).get("hold_full", 0) == 60 - WAITING, 5)
    row = table(dut, "waiting")
    assert (row["used"], row["max"], row["refused"]) == (WAITING, WAITING, 60 - WAITING)
    assert shown(dut, "waiting")[2:] == [str(WAITING), str(60 - WAITING), "limits.waiting"]
    assert said(dut, "table is full table=waiting max=16 .*key=limits.waiting")[0] == 1
    wan.answer(silent, "02:00:00:00:81:01")
    eventually(lambda: table(dut, "waiting")["used"] == 0, 10)
    eventually(lambda: said(dut, "table has room again table=waiting")[1] == 1, 5)

    permanent(dut, there[:30], wan, "del")
    eventually(lambda: table(dut, "hosts")["used"] < HOSTS, 10)
    # Hosts that had no place get one as soon as a place is free.
    eventually(lambda: dut.forwarded(lan, lan.probe(there[-1]), wan, timeout=0.5), 5)
    eventually(lambda: said(dut, "table has room again table=hosts")[1] >= 1, 5)


def test_more_neighbors_are_waited_for_than_there_is_room(small):
    """One packet waits for each neighbor. Packets for neighbors beyond the limit are dropped
    and counted. There is a place again when the kernel has given up the others."""
    dut, lan, wan = small, small.wires["lan"], small.wires["wan"]
    base = wan.ip4.rpartition(".")[0]
    silent = [f"{base}.{n}" for n in range(90, 110)]

    before = dut.counters()
    lan.send(*(lan.probe(address) for address in silent[:-1]))
    beyond = len(silent) - 1 - AWAITED
    eventually(lambda: dut.drops(before).get("hold_full", 0) == beyond, 5)
    row = table(dut, "waited_for")
    assert (row["used"], row["max"], row["refused"]) == (AWAITED, AWAITED, beyond)
    words = ["waited_for", str(AWAITED), str(AWAITED), str(beyond), "limits.waited-for"]
    assert shown(dut, "waited_for") == words
    assert said(dut, "table is full table=waited_for .*key=limits.waited-for")[0] == 1

    with impatient_kernel(dut):
        eventually(lambda: table(dut, "waited_for")["used"] == 0, 15)
    eventually(lambda: said(dut, "table has room again table=waited_for")[1] == 1, 5)
    wan.answer(silent[-1], "02:00:00:00:81:02")
    dut.forwarded(lan, lan.probe(silent[-1]), wan, timeout=5)


class Client:
    """A connection to the control socket."""

    def __init__(self, dut, until):
        self.sock = until.enter_context(socket.socket(socket.AF_UNIX))
        self.sock.settimeout(10)
        self.sock.connect(dut.socket)
        self.file = until.enter_context(self.sock.makefile())

    def is_served(self):
        """Return True if the daemon answers the request, False if it says that there are too
        many clients."""
        with contextlib.suppress(BrokenPipeError):
            self.sock.sendall(b'{"show": "version"}\n')
        return "pid" in json.loads(self.file.readline()) and "end" in self.file.readline()


def test_more_clients_than_there_is_room_for(small):
    """The control socket serves the clients that are connected. It tells further clients that
    there are too many and closes them. When clients leave, it accepts others."""
    dut = small
    table(dut, "clients")  # the connection of this request stays open and counts as a client
    with contextlib.ExitStack() as until:
        there = []
        while len(there) < CLIENTS - 1:  # a request of the daemon's own counts, too
            there += [c for c in [Client(dut, until)] if c.is_served()]
        beyond = [Client(dut, until) for _ in range(40)]
        for client in beyond:
            with contextlib.suppress(BrokenPipeError):
                client.sock.sendall(b"{")
        assert {c.file.readline() for c in beyond} == {'{"error":"too many clients: limits.clients is 12","code":1}\n'}
        done = dut.fpmctl("show", "version")
        assert (done.returncode, done.stderr) == (1, "fpmctl: too many clients: limits.clients is 12\n")
        row = table(dut, "clients")
        assert row["used"] >= row["max"] == CLIENTS and row["refused"] >= 41
        assert said(dut, "table is full table=clients max=12 .*key=limits.clients")[0] <= 2
        assert not said(dut, "table has room again table=clients")[1]
        with contextlib.closing(api.Connection(dut.socket)) as conn:
            conn.request("GET", "/v1/version")
            assert conn.getresponse().status == 200
        assert all(client.is_served() for client in there)
    eventually(lambda: said(dut, "table has room again table=clients")[1] == 1, 5)
    refused = str(table(dut, "clients")["refused"])
    assert shown(dut, "clients")[2:] == [str(CLIENTS), refused, "limits.clients"]


def test_more_clients_of_http_than_there_is_room_for(small):
    """The HTTP server answers 503 to connections beyond the limit. It serves its clients
    meanwhile, and there is room again when they leave."""
    dut = small
    with contextlib.ExitStack() as until:
        conns = [until.enter_context(contextlib.closing(api.Connection(dut.socket)))
                 for _ in range(HTTP + 3)]  # fmt: skip
        for n, conn in enumerate(conns):
            conn.request("GET", "/v1/version")
            said_so = conn.getresponse()
            assert said_so.status == (200 if n < HTTP else 503)
            assert ("too many clients" in said_so.read().decode()) == (n >= HTTP)
        row = table(dut, "http_clients")
        assert (row["used"], row["max"], row["refused"]) == (HTTP, HTTP, 3)
        words = ["http_clients", str(HTTP), str(HTTP), "3", "limits.http-clients"]
        assert shown(dut, "http_clients") == words
        assert said(dut, "table is full table=http_clients .*key=limits.http-clients")[0] == 1
    eventually(lambda: table(dut, "http_clients")["used"] == 0, 5)
    eventually(lambda: said(dut, "table has room again table=http_clients")[1] == 1, 5)
    with contextlib.closing(api.Connection(dut.socket)) as conn:
        conn.request("GET", "/v1/version")
        assert conn.getresponse().status == 200


def test_other_limits_need_a_restart_which_may_have_less_room(small):
    """A reload refuses other limits and gives the reason. A successor with smaller limits takes
    the routes that it has room for and forwards by them. The next successor, without a limit,
    forwards by all routes again."""
    dut, lan, wan = small, small.wires["lan"], small.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    numbers = range(ROUTES // 2)
    teach(dut, *numbers)
    eventually(lambda: dut.route_row(nth(numbers[-1])), 5)
    mine = table(dut, "routes")["used"] - len(numbers) - 1
    dut.edit_config(f"routes: {ROUTES}", "routes: 20\n  groups: 64")

    done = dut.fpmctl("config", "reload")
    assert done.returncode == 2
    assert f"! limits.routes: {ROUTES} -> 20  (needs a restart" in done.stdout
    assert table(dut, "routes")["max"] == ROUTES

    was = dut.daemon.pid()
    dut.zebra.close()
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)
    row = table(dut, "routes")
    assert row["max"] == 20 and row["refused"] == len(numbers) + 1 - 20
    assert dut.fpm()["zebra4"] == 20 and row["used"] == 20 + mine
    assert dut.fpm()["checkpoint"]["restored"] == 20
    kept = [r["prefix"] for r in dut.control.ask("routes") if r["source"] == "zebra"]
    for prefix in kept[:: len(kept) - 1]:
        host = prefix.rpartition(".")[0] + ".9"
        dut.forwarded(lan, lan.probe(host), wan)

    dut.edit_config("routes: 20", "routes: 0")
    was = dut.daemon.pid()
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)
    assert shown(dut, "routes")[2:] == ["no", "limit", "0", "limits.routes"]
    dut.zebra.connect()
    dut.route(NET, via=wan.peer4, wire=wan)
    teach(dut, *numbers)
    eventually(lambda: dut.fpm()["zebra4"] == len(numbers) + 1, 5)
    dut.forwarded(lan, lan.probe(HOST), wan)
