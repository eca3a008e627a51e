# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP API on the control socket and all JSON of fpmctl match dist/openapi.yaml, key by key.
The API gives the same rights as fpmctl."""

import contextlib
import ctypes
import fcntl
import http.client
import io
import json
import os
import re
import socket
import struct
import subprocess
import termios
import threading

import jsonschema
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from lib import api, netns
from lib.dataplane import ROOT
from lib.fpm_speaker import RTN_BLACKHOLE
from lib.wait import eventually

NET, HOST, NET6 = "198.51.100.0/24", "198.51.100.9", "2001:db8:f000::/36"
EXT = "net_af_packet,iface=p-ext"
SHOWN = {
    path: said["x-fpmctl"].split()
    for (_, path), said in api.operations().items()
    if said["x-fpmctl"].startswith("show ")
}
MANY = 50000
GZIP = b"\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: gzip\r\n\r\n"
# A user in the group of the socket, not root.
MEMBER = {"user": 65534, "group": 60000, "extra_groups": []}


@pytest.fixture
def taught(dut, wan, alt):
    """A router with routes of several kinds, and with counters that are not zero."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=alt.peer6, wire=alt)
    dut.route("203.0.113.0/24", rtm_type=RTN_BLACKHOLE)
    hop = {"via": wan.peer4, "oif": dut.ifindex(wan), "labels": [200]}
    dut.zebra.send(dut.zebra.label_message(100, hop))
    eventually(lambda: dut.control.ask("labels"), 5)
    return dut


@pytest.fixture
def ending():
    """Calls that are made at the end of the test."""
    with contextlib.ExitStack() as calls:
        yield calls


@pytest.fixture
def router(own_dut):
    """A router for one test alone, with a route, under a supervisor."""
    dut = own_dut(supervised=True)
    dut.start()
    dut.route(NET, via=dut.wires["wan"].peer4, wire=dut.wires["wan"])
    return dut


def ok(dut, method, path, *name, **more):
    """Make a call that must succeed. Returns the answer."""
    status, said = api.call(dut, method, path, *name, **more)
    assert status == 200, said
    return said


def refused(dut, status, *call, **more):
    """Make a call that must fail. Returns the sentence of the error."""
    got, said = api.call(dut, *call, **more)
    assert got == status, said
    assert said["error"] and "\n" not in said["error"]
    return said["error"]


def frame_of(lan, dst=HOST, ttl=9):
    return bytes(
        Ether(src=lan.mac, dst=lan.port_mac) / IP(src=lan.peer4, dst=dst, ttl=ttl) / UDP()
    )


# --- the specification ------------------------------------------------------------------------


def test_the_specification_is_sound():
    """The schemas are valid JSON Schema, each reference has a target, and no object permits keys that
    it does not list."""

    def walk(node):
        if isinstance(node, dict):
            yield node
            node = list(node.values())
        if isinstance(node, list):
            for one in node:
                yield from walk(one)

    for schema in api.SPEC["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for node in walk(api.SPEC):
        # YAML ends plain text at a comma: the text behind it would be a key without a value.
        assert None not in node.values(), node
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert set(node.get("required", [])) <= set(node["properties"])
        if "$ref" in node:
            where = api.SPEC
            for step in node["$ref"].removeprefix("#/").split("/"):
                where = where[step]


def test_every_show_has_its_path_and_every_path_its_command(dut):
    """The paths of the API are the shows of fpmctl and its other commands."""
    shown = set(dut.fpmctl("--complete", "show").stdout.split())
    assert {words[1] for words in SHOWN.values()} == shown
    assert {path.split("/")[1] for path in SHOWN} == shown
    commands = {said["x-fpmctl"].split()[0] for said in api.operations().values()}
    # device, doctor and snmp look at the machine on which they run (info.description).
    assert set(dut.fpmctl("--complete").stdout.split()) - commands == {
        "device",
        "doctor",
        "help",
        "snmp",
    }
    # A name chooses a row in fpmctl and in the API, or in neither.
    named = re.findall(
        r"^      ([a-z]+) .*\[(?:NAME|CLASS|THREAD|FAMILY|GROUP|ID|KIND|LABEL|NUMBER|CHAIN|PEER)\]",
        dut.fpmctl("help", "show").stdout,
        re.M,
    )
    assert {f"/{what}/{{name}}" for what in named} == {p for p in SHOWN if "{" in p}


# --- answers ----------------------------------------------------------------------------------


# Only a kernel with VRFs has rows of VRFs, a router with a filter rows of chains, and a router with
# bfdd rows of sessions: tests/vm/test_vrf.py, test_filter.py and test_fpmctl_width.py test them.
# A program is loaded in test_changes_are_as_specified.
@pytest.mark.parametrize("path", [p for p in SHOWN if p not in ("/vrfs/{name}", "/filter/{name}", "/bfd/{name}", "/hooks/{name}")])
def test_what_is_shown_is_as_specified(taught, lan, path, ending):
    """Each path of the API and `fpmctl --json` give the same rows under the same schema."""
    lan.send(*(lan.probe("203.0.113.9") for _ in range(3)))
    taught.fence(lan)
    what = SHOWN[path][1]
    name = {"interfaces": "lo", "fib": "ipv4", "counters": "blackhole", "drops": "blackhole",
            "punt": "icmp", "cycles": "fwd-0", "threads": "fdp-ui"}.get(what, "lan0")  # fmt: skip
    if what == "labels":
        name = "100"
    if what == "encaps":
        name = str(taught.control.ask(what)[0]["encap"])
    if what == "groups":
        name = str(taught.route_row(NET)["group"])
    if what == "nexthops":
        name = str(taught.control.ask(what)[0]["nexthop_id"])
    if what == "warnings":
        name = "sysctl"
        there = lambda: [r for r in taught.control.ask(what) if r["kind"] == name]  # noqa: E731
        ending.callback(eventually, lambda: not there(), 15, 0.05)
        ending.callback(netns.sysctl, taught.ctl, {"net.ipv4.conf.lan0.log_martians": 0})
        netns.sysctl(taught.ctl, {"net.ipv4.conf.lan0.log_martians": 1})
        eventually(there, 15, 0.05)
    words = [name] if "{name}" in path else []

    def same():
        """Compare the answers of the API and of fpmctl. The state may change between the two."""
        rows = ok(taught, "GET", path, name)
        done = taught.fpmctl("--json", "show", what, *words)
        assert (done.returncode, done.stderr) == (0, "")
        printed = json.loads(done.stdout)
        api.validate(printed, api.rows_schema("GET", path)[1]["schema"])
        assert (rows or what in ("vrfs", "bfd", "hooks", "sids")) and len(rows) == len(printed)
        assert what not in ("routes", "nexthops", "groups", "interfaces", "drops") or rows == printed
        return True

    eventually(same, 5, 0.05, "both are the same")


@pytest.mark.parametrize("what", ["ports", "counters", "drops", "punt", "threads"])
def test_rates_are_as_specified(taught, what):
    """--rates adds KEY_per_s, and no other key."""
    rows = json.loads(taught.fpmctl("--json", "show", what, "--rates=0.1").stdout)
    api.validate(rows, api.rows_schema("GET", f"/{what}")[1]["schema"])
    assert any(key.endswith("_per_s") for key in rows[0])


@pytest.mark.smoke
def test_parameters_choose(taught):
    """The parameters of the API choose the same rows as the words of fpmctl."""
    prefixes = lambda **query: [
        r["prefix"] for r in ok(taught, "GET", "/routes", **query)
    ]  # noqa: E731
    assert prefixes(prefix=NET) == prefixes(prefix=HOST) == [NET]
    assert prefixes(prefix="198.51.100.64/26", longest="true") == [NET]
    assert prefixes(prefix="8.8.8.8") == []
    assert NET in prefixes(family=4) and NET6 not in prefixes(family=4)
    assert [r["address"] for r in ok(taught, "GET", "/neighbors", prefix="192.0.2.66")] == [
        "192.0.2.66"
    ]


def test_words_of_fpmctl_that_choose_are_parameters(taught, wan):
    """The API has a parameter for each word of fpmctl that chooses rows, and no others. A parameter
    chooses the same rows as its word."""
    dut = taught
    # Parameters for which fpmctl has no words of these names. Only its audit uses `of`.
    either = {"prefix", "longest", "family", "all_tables", "vrf", "of"}
    words = {}
    for line in dut.fpmctl("help", "show").stdout.splitlines():
        if named := re.match(r"      ([a-z]+)\b", line):
            what = named[1]
        elif only := re.match(r"          filter: (.*)", line):
            words[what] = {one.split()[0] for one in only[1].split(", ")}
    said = {
        path.strip("/"): {api.referred(p)["name"] for p in op.get("parameters", [])} - either
        for (_, path), op in api.operations().items() if path in SHOWN
    }  # fmt: skip
    assert words == {what: names for what, names in said.items() if names}

    for what, query in (
        ("routes", {"via": wan.peer4, "dev": wan.tap}), ("routes", {"proto": "local"}),
        ("routes", {"proto": 186, "family": 4}), ("routes", {"state": "blackhole"}),
        ("groups", {"via": wan.peer4}), ("nexthops", {"dev": wan.tap}),
        ("groups", {"state": "forwarding"}), ("neighbors", {"dev": wan.tap}),
        ("neighbors", {"state": "permanent"}), ("log", {"level": "info"}),
    ):  # fmt: skip
        asked = [str(x) for pair in query.items() for x in pair if pair[0] != "family"]
        asked += ["-4"] if "family" in query else []

        def same(what=what, query=query, asked=asked):
            """Return the rows of both, if nothing has changed in between."""
            found = ok(dut, "GET", f"/{what}", **query)
            printed = json.loads(dut.fpmctl("--json", "show", what, *asked).stdout)
            by = lambda row: json.dumps(row, sort_keys=True)  # noqa: E731
            return sorted(found, key=by) == sorted(printed, key=by) and found

        rows = eventually(same, 5, 0.05, f"both are the same: {what} {query}")
        if what in ("routes", "groups", "nexthops"):  # these lists have several objects
            assert len(rows) < len(ok(dut, "GET", f"/{what}")), (what, query)
    assert ok(dut, "GET", "/neighbors", state="failed") == []


def test_one_object_among_many_is_found_or_missing(taught, wan):
    """An object after hundreds of others is found. The answer for an object that does not exist is
    404 and no empty list, although the rows come in several parts."""
    hop = {"via": wan.peer4, "oif": taught.ifindex(wan)}
    many = range(2000, 3000)
    taught.zebra.send(*(taught.zebra.label_message(n, hop) for n in many))
    eventually(lambda: len(taught.control.ask("labels")) > len(many), 5)

    assert [r["label"] for r in ok(taught, "GET", "/labels/{name}", "2999")] == [2999]
    for name in ("3000", "-1", "no"):
        said = refused(taught, 404, "GET", "/labels/{name}", name)
        assert said == f"labels has no entry {name}"


def test_refusals_have_a_status_and_a_sentence(taught):
    """The API refuses with a status and a sentence the requests that fpmctl refuses with exit codes
    2 and 3."""
    assert "ports has no entry nowhere0" == refused(
        taught, 404, "GET", "/ports/{name}", "nowhere0"
    )
    assert "300.1.1.1" in refused(taught, 400, "GET", "/routes", prefix="300.1.1.1")
    assert "unknown parameter" in refused(taught, 400, "GET", "/version", frob=1)
    assert "no port or VLAN" in refused(taught, 404, "GET", "/trace", port="nowhere0")
    assert "no port" in refused(taught, 404, "DELETE", "/ports/{name}", "nowhere0")
    assert "exists already" in refused(
        taught, 409, "POST", "/ports", body={"name": "lan0", "device": EXT}
    )
    assert "nothing changed" in refused(
        taught, 409, "PATCH", "/ports/{name}", "lan0", body={"mtu": 9}
    )
    assert "no class" in refused(
        taught, 404, "PATCH", "/punt/{name}", "frob", body={"rate": 1}
    )
    assert "no supervisor would start" in refused(taught, 409, "POST", "/restart")


UNKNOWN = "nowhere0"
# PROGRAM is: r0 = 0; exit. LOOP jumps back.
PROGRAM = {"file": "pass.o", "of": 2, "program": "twAAAAAAAACVAAAAAAAAAA=="}
LOOP = {"file": "loop.o", "of": 1, "program": "BQD//wAAAAA="}
# Requests for an object that does not exist, other than by a name in the path.
NOT_THERE = {("GET", "/routes"): {"vrf": UNKNOWN}, ("GET", "/trace"): {"port": UNKNOWN},
             ("GET", "/capture"): {"port": UNKNOWN}, ("GET", "/explain"): {"port": UNKNOWN},
             ("PATCH", "/ports/{name}"): {"body": {"mtu": 1400}},
             ("PATCH", "/punt/{name}"): {"body": {"rate": 1}},
             ("PUT", "/hooks/{name}"): {"body": PROGRAM}}  # fmt: skip
NOT_YOURS = {("POST", "/ports"): {"name": "x", "device": "net_pcap,tx_pcap=/tmp/x"},
             ("PATCH", "/ports/{name}"): {"device": "net_pcap,tx_pcap=/tmp/x"},
             ("POST", "/config/reload"): {"file": "/etc/shadow"},
             ("PUT", "/hooks/{name}"): PROGRAM, ("DELETE", "/hooks/{name}"): None}  # fmt: skip


# Statuses that come only during a restart. The daemon here cannot restart; test_restart_changes
# tests them.
IN_RESTARTS = {("PATCH", "/punt/{name}", "409"), ("DELETE", "/hooks/{name}", "409")}


def test_every_status_that_is_described_is_given_and_as_it_is_described(own_dut):
    """Every operation gives each status that the specification describes, except 200, in the
    described form. api.call() fails on a status that is not described."""
    dut, given = own_dut(), set()
    dut.start()

    def gives(status, method, path, name=UNKNOWN, **more):
        got, said = api.call(dut, method, path, name, **more)
        assert got == status, (method, path, said)
        given.add((method, path, str(status)))
        return said

    for method, path in api.operations():
        gives(400, method, path, frob=1)
        gives(413, method, path, body=b" " * 4097)
        if library_refuses_codings():
            line = f"{method} {api.place(path, UNKNOWN)} HTTP/1.1".encode()
            assert status_of(dut, line + GZIP) == 400
            given.add((method, path, "501"))
        else:
            gives(501, method, path, headers={"Transfer-Encoding": "gzip"})
        if "{name}" in path or (method, path) in NOT_THERE:
            gives(404, method, path, **NOT_THERE.get((method, path), {}))
    with too_many(dut):
        for method, path in api.operations():
            gives(503, method, path)
    for (method, path), body in NOT_YOURS.items():
        assert "only root" in as_of_the_group(dut, method, path, body)
        given.add((method, path, "403"))

    with open(f"{dut.dir}/bad.yaml", "w", encoding="utf-8") as file:
        file.write("ports: 7\n")
    said = gives(409, "POST", "/config/reload", body={"file": file.name})
    assert "nothing changed" in said["error"] and said["rows"][0]["wrong"]
    gives(409, "POST", "/ports", body={"name": "lan0", "device": EXT})
    gives(409, "PATCH", "/ports/{name}", "lan0", body={"mtu": 9})
    assert "jumps back" in gives(409, "PUT", "/hooks/{name}", "lan0", body=LOOP)["error"]
    gives(409, "POST", "/restart")
    gives(409, "POST", "/hold", body={})
    dut.zebra.close()
    eventually(lambda: not dut.fpm()["connected"], 5)
    gives(409, "POST", "/replay")
    for name in ("lan0", "wan0", "alt0"):
        ok(dut, "DELETE", "/ports/{name}", name)
    gives(409, "DELETE", "/ports/{name}", "ext0")
    described = {(*key, status) for key, said in api.operations().items()
                 for status in said["responses"]}  # fmt: skip
    assert given | IN_RESTARTS == {one for one in described if one[2] != "200"}


def library_refuses_codings():
    """Return True if libmicrohttpd itself answers a coding other than chunked. It does so from version
    1.0 on, with 400."""
    library = ctypes.CDLL("libmicrohttpd.so.12")
    library.MHD_get_version.restype = ctypes.c_char_p
    return not library.MHD_get_version().startswith(b"0.")


def status_of(dut, octets):
    """Send a request. Return the status of the answer, whatever its body is."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(dut.socket)
        sock.sendall(octets)
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        return answer.status


@contextlib.contextmanager
def too_many(dut):
    """Open the largest number of connections. Each has sent a request and received the answer."""
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            conn = stack.enter_context(contextlib.closing(api.Connection(dut.socket)))
            conn.request("GET", "/v1/version")
            conn.getresponse().read()
        yield


def as_of_the_group(dut, method, path, body):
    """Send a request as an unprivileged user of the group. Returns the sentence of its 403."""
    os.chown(dut.socket, 0, MEMBER["group"])
    os.chmod(dut.dir, 0o755)
    words = ["-D", "-", "-X", method, *(["-d", json.dumps(body)] if body else [])]
    words.append("http://localhost" + api.place(path, "lan0"))
    done = subprocess.run(["curl", "-s", "--unix-socket", dut.socket, *words],
                          capture_output=True, check=True, **MEMBER)  # fmt: skip
    head, _, octets = done.stdout.partition(b"\r\n\r\n")
    first, _, fields = head.partition(b"\r\n")
    assert first.split()[1] == b"403"
    headers = http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n"))
    return api.held_to(api.operations()[method, path]["responses"], 403, headers, octets)[
        "error"
    ]


def test_the_ninth_that_watches_is_told_to_come_again(dut):
    """The daemon answers 503 to the ninth session of traces and captures."""
    watching = []
    try:
        for n in range(8):
            conn = api.Connection(dut.socket)
            conn.request("GET", f"/v1/{'trace' if n % 2 else 'capture'}")
            watching.append(conn)
            assert conn.getresponse().status == 200
        for path in ("/trace", "/capture"):
            assert "8 traces and captures" in refused(dut, 503, "GET", path)
    finally:
        for conn in watching:
            conn.close()


def test_what_is_no_operation_is_answered_as_described(dut):
    """The daemon answers as described to unknown paths, to unknown methods of each path, and to
    requests that are hardly HTTP."""
    end = b"Host: x\r\nConnection: close\r\n"
    request = (
        lambda line, more=b"": line + b" HTTP/1.1\r\n" + end + more + b"\r\n"
    )  # noqa: E731
    strange = {
        400: [b"GET /v1/version\r\n\r\n", b"GET " + bytes(range(128, 255)) + b"\r\n\r\n",
              request(b"GET /v1/version", b"no colon\r\n"),
              request(b"POST /v1/hold", b"Content-Length: some\r\n"),
              request(b"POST /v1/hold", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")],
        404: [request(b"GET /"), request(b"GET /v1/prts"), request(b"POST /v1/ports/a/b")],
        413: [request(b"POST /v1/hold", b"Content-Length: %d\r\n" % 10**30)],
        414: [request(b"GET /v1/" + b"x" * 20000)],
        431: [request(b"GET /v1/version", b"X: " + b"y" * 20000 + b"\r\n")],
        505: [b"GET /v1/version HTTP/3.0\r\n" + end + b"\r\n"],
    }  # fmt: skip
    for status, requests in strange.items():
        for octets in requests:
            assert api.otherwise(dut, octets)[0] == status, octets[:80]

    taken = {}
    for method, path in api.operations():
        taken.setdefault(path, set()).add(method)
    for path, methods in taken.items():
        for method in {
            "GET",
            "POST",
            "PUT",
            "PATCH",
            "DELETE",
            "HEAD",
            "OPTIONS",
        } - methods:
            octets = request(f"{method} {api.place(path, UNKNOWN)}".encode())
            status, headers, _ = api.otherwise(dut, octets, method)
            assert (status, set(headers["Allow"].split(", "))) == (405, methods), (
                method,
                path,
            )
    assert {str(status) for status in (*strange, 405)} == set(api.SPEC["x-otherwise"])


def test_packets_are_as_specified(taught, lan):
    """trace and explain return a row on each line, capture returns a pcapng file; all match the
    specification."""
    frame = frame_of(lan)
    (row,) = ok(taught, "GET", "/explain", port="lan0", frame=frame.hex())
    assert row["verdict"] == "forwarded" and row["route"]["prefix"] == NET
    (row,) = ok(
        taught, "GET", "/explain", port="lan0", frame=frame_of(lan, "203.0.113.9").hex()
    )
    assert (row["verdict"], row["reason"]) == ("dropped", "blackhole")

    def beside(call):
        """Return the answer of `call` while packets pass."""
        stop = threading.Event()

        def send():
            while not stop.wait(0.01):
                lan.send(lan.probe(HOST), lan.probe("203.0.113.9"))

        sender = threading.Thread(target=send)
        sender.start()
        try:
            return call()
        finally:
            stop.set()
            sender.join()

    rows = beside(lambda: ok(taught, "GET", "/trace", port="lan0", dst=NET, count=3))
    assert rows[0] == {"watching": True} and rows[-1]["packets"] == 3 and len(rows) == 5
    file = beside(
        lambda: ok(taught, "GET", "/capture", reason="blackhole", points="drop", count=2)
    )
    assert file[:4] == b"\x0a\x0d\x0d\x0a" and file.count(b"drop blackhole") == 2

    for words in (["explain", "dst", HOST], ["trace", "dst", HOST, "count", "2"]):
        done = beside(lambda words=words: taught.fpmctl("--json", *words))
        kind = {"$ref": "#/components/schemas/Packet"}
        api.validate(json.loads(done.stdout), {"type": "array", "items": kind})


def test_changes_are_as_specified(router):
    """Changes of ports, policers, configuration, audit, replay and restart answer as specified, and
    so does fpmctl --json (test_audit: audit)."""
    dut, done = router, set()

    def did(method, path, *more, **body):
        done.add((method, path))
        return ok(dut, method, path, *more, **body)

    assert did("DELETE", "/ports/{name}", "ext0")[0]["key"] == "ports[ext0]"
    assert did("POST", "/ports", body={"name": "ext0", "device": EXT, "mtu": 1400})[0][
        "possible"
    ]
    assert did("PATCH", "/ports/{name}", "ext0", body={"mtu": 1500})[0]["to"] == "1500"
    assert did("PATCH", "/punt/{name}", "icmp", body={"rate": 500})[0]["rate"] == 500
    assert (
        did("PATCH", "/punt/{name}", "icmp", body={"rate": "unlimited"})[0]["rate"] is None
    )
    assert did("PUT", "/hooks/{name}", "lan0", body=PROGRAM) == []
    (row,) = ok(dut, "GET", "/hooks/{name}", "lan0")
    assert (row["file"], row["instructions"]) == ("pass.o", 2)
    assert did("DELETE", "/hooks/{name}", "lan0") == []
    assert "tap: ext0" in did("GET", "/config")[0]["yaml"]
    keys = json.loads(dut.fpmctl("--json", "config", "keys").stdout)
    assert did("GET", "/config/keys") == keys
    assert did("POST", "/config/reload", body={"dry_run": True})[0]["key"]
    assert did("GET", "/audit")[-1]["differences"] == 0
    assert did("POST", "/audit/repair")[-1]["what"] == "checked"
    for words, schema in (
        (["config", "show"], "Yaml"),
        (["config", "reload", "--dry-run"], "Change"),
        (["port", "set", "ext0", "mtu", "1400"], "Change"),
        (["set", "policer", "icmp", "rate", "400"], "PuntClass"),
    ):
        printed = json.loads(dut.fpmctl("--json", *words).stdout)
        kind = {"$ref": f"#/components/schemas/{schema}"}
        assert printed
        api.validate(printed, {"type": "array", "items": kind})
    assert dut.fpmctl("--json", "hold", "0").stdout == "[]\n"
    nics = json.loads(dut.fpmctl("--json", "device", "list").stdout)
    api.validate(nics, {"$ref": "#/components/schemas/FpmctlDeviceList"})
    found = json.loads(dut.fpmctl("--json", "doctor", "fpm", "rss").stdout)
    api.validate(found, {"$ref": "#/components/schemas/FpmctlDoctor"})
    found = json.loads(dut.fpmctl("--json", "doctor", "list").stdout)
    api.validate(found, {"$ref": "#/components/schemas/FpmctlDoctorList"})

    bad = os.path.join(dut.dir, "bad.yaml")
    with open(bad, "w", encoding="utf-8") as file:
        file.write("ports: 7\n")
    status, said = api.call(dut, "POST", "/config/reload", body={"file": bad})
    assert status == 409 and "nothing changed" in said["error"] and said["rows"][0]["wrong"]
    assert did("POST", "/replay") == []
    assert did("POST", "/hold", body={"seconds": 0}) == []
    was = dut.daemon.pid()
    assert did("POST", "/restart") == []
    dut.daemon.back(was)
    reading = {k for k in api.operations() if k[0] == "GET" and k[1] in SHOWN}
    packets = {("GET", path) for path in ("/trace", "/capture", "/explain")}
    assert done | reading | packets == set(api.operations())


# --- many, slow, strange ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ["half", "rest"],
    [(b"GET /v1/por", b"ts HTTP/1.1\r\nHost: x\r\n\r\n"),
     (b"GET /v1/ports HTTP/1.1\r\nHost: x\r\n", b"\r\n")],
)  # fmt: skip
def test_a_client_that_sends_half_a_request_is_disconnected(dut, half, rest):
    """If a client sends half a request and then closes its direction of the connection, the daemon
    closes the connection at once. The daemon answers a whole request."""
    for text, answers in ((half, False), (half + rest, True)):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(dut.socket)
            sock.settimeout(20)
            sock.sendall(text)
            sock.shutdown(socket.SHUT_WR)
            said = b"".join(iter(lambda s=sock: s.recv(65536), b""))
        assert said.startswith(b"HTTP/1.1 ") == answers


POST = b"POST /v1/replay HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ["first", "last"],
    [(b"GET /v1/p", b"orts HTTP/1.1\r\nHost: x\r\n"),
     (POST + b"Content-Length: 100\r\n\r\n", b"{}"),
     (b"", POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{")],
)  # fmt: skip
def test_a_client_that_ends_within_a_request_is_disconnected(dut, first, last):
    """The daemon sees the end of the stream also if it comes together with the last octets: it does not
    wait a minute for the rest of the request."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(dut.socket)
        sock.settimeout(20)
        sock.sendall(first)
        eventually(lambda: not unread(sock), 5, 0.001, "the daemon has read the first octets")
        sock.sendall(last)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(65536) == b""


def unread(sock):
    """Return how many octets the other end has not read yet."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


def test_a_long_list_is_streamed(dut, lan, wan):
    """The daemon sends all rows of a long list in order and in chunks. Forwarding loses no packet
    meanwhile, a client that stops reading delays no other client, and the daemon grows by less than
    the size of the list (except with sanitizers, which keep freed memory)."""
    nhid = dut.zebra.hop(wan.peer4, wan)
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.zebra.speaker.routes("10.0.0.0/32", MANY, nhid)
    eventually(lambda: dut.fpm()["zebra4"] == MANY + 1, 20, 0.05)
    try:
        stopped = socket.socket(socket.AF_UNIX)
        stopped.connect(dut.socket)
        stopped.sendall(b"GET /v1/routes HTTP/1.1\r\nHost: x\r\n\r\n")
        before = dut.rss()

        with dut.stream(lan, HOST, rate=200) as stream:
            conn = api.Connection(dut.socket)
            conn.request("GET", "/v1/routes")
            answer = conn.getresponse()
            assert answer.headers["Transfer-Encoding"] == "chunked"
            octets = answer.read()

        prefixes = [row["prefix"] for row in json.loads(octets)]
        assert len(prefixes) > MANY and prefixes == [
            r["prefix"] for r in dut.control.ask("routes")
        ]
        assert stream.lost(wan) == []
        assert len(octets) > 10 << 20
        assert dut.rss() - before < 4 << 20 or "/asan/" in dut.daemon.program
        stopped.close()
    finally:
        dut.zebra.speaker.routes_del("10.0.0.0/32", MANY)
        eventually(lambda: dut.fpm()["zebra4"] <= 1, 30, 0.05)


def test_garbage_is_counted_and_harms_no_other_client(own_dut, rng):
    """The daemon answers 400 to octets that are not HTTP, or closes the connection. It counts them
    and serves the next client."""
    dut = own_dut(metrics="127.0.0.1:9620")
    dut.start()
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(dut.socket)
            sock.sendall(b"GET " + rng.randbytes(300) + b"\r\n\r\n")
    assert ok(dut, "GET", "/version")

    script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9620/metrics').read().decode())"
    page = subprocess.run(
        ["ip", "netns", "exec", dut.ctl, "/usr/bin/python3", "-c", script],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    count = {k: int(v) for k, v in re.findall(r"^fpmdp_api_(\w+)_total (\d+)$", page, re.M)}
    assert count["requests"] >= 1 and count["garbage"] + count["refused"] >= 1


# --- permissions --------------------------------------------------------------------------------


def curl(dut, *words, **who):
    """Run curl on the socket as another user. Returns (exit code, status, JSON)."""
    argv = ["curl", "-s", "--unix-socket", dut.socket, "-w", "\n%{http_code}", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **who)
    body, _, status = done.stdout.rpartition("\n")
    return done.returncode, int(status or 0), json.loads(body or "null")


def test_only_the_group_may_ask_and_only_root_names_devices_and_files(router):
    """The socket has mode 0660, and SO_PEERCRED distinguishes root from the group."""
    dut, root = router, "http://localhost/v1"
    os.chown(dut.socket, 0, MEMBER["group"])
    os.chmod(dut.dir, 0o755)
    assert os.stat(dut.socket).st_mode & 0o777 == 0o660
    stranger = {"user": 65534, "group": 65534, "extra_groups": []}

    assert curl(dut, f"{root}/version", **stranger)[:2] == (7, 0)
    assert curl(dut, f"{root}/version", **MEMBER)[:2] == (0, 200)
    mtu = ["-X", "PATCH", "-d", '{"mtu": 1400}', f"{root}/ports/lan0"]
    assert curl(dut, *mtu, **MEMBER)[1] == 200
    for (method, path), body in NOT_YOURS.items():
        assert "only root" in as_of_the_group(dut, method, path, body)


def test_the_examples_in_the_documents_work(router):
    """Each `curl --unix-socket` line of monitoring.md succeeds and prints no error."""
    page = os.path.join(ROOT, "fpm-dataplane/manual/monitoring.md")
    with open(page, encoding="utf-8") as file:
        lines = re.findall(r"^(curl .*?--unix-socket .*?)(?: +#.*)?$", file.read(), re.M)
    assert len(lines) >= 3
    with router.stream(router.wires["lan"], HOST, rate=100):
        for line in lines:
            line = line.replace("/run/fpm-dataplane/control.sock", router.socket)
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True,
                                  timeout=30, cwd=router.dir, check=False)  # fmt: skip
            assert done.returncode == 0 and '"error":' not in done.stdout, (line, done)
