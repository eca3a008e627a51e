# SPDX-License-Identifier: BSD-3-Clause
"""Programs of eBPF on the packets of an interface (`fpmctl hook`): the examples of the manual,
refusals, rows, metrics."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from gateways import HOST, HOST6, NET, NET6, case
from lib import api, docs, preload
from lib.dataplane import ROOT
from lib.wait import eventually
from wire import token, token_of

CLANG = next((c for c in ("clang-14", "clang-19", "clang") if shutil.which(c)), None)
FOLDER = os.path.join(ROOT, "fpm-dataplane", "hook", "examples")
HEAD = "#include <fpm_hook.h>\nuint64_t program(struct fpm_hook *hook)\n"
# The options that the manual names, except for the folder of the header.
FLAGS = ["-target", "bpf", "-mcpu=v2", "-O2", "-ffreestanding"]

pytestmark = pytest.mark.skipif(CLANG is None, reason="no clang here: `make deps` installs it")


def compiled(source, target, *flags):
    """Compile a file. Returns the object file."""
    words = [CLANG, *FLAGS, "-I", os.path.join(ROOT, "fpm-dataplane", "base"), *flags]
    subprocess.run([*words, "-Wall", "-Werror", "-c", source, "-o", target], check=True)
    return str(target)


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """The object files of the examples: {name: path}."""
    folder = tmp_path_factory.mktemp("hook")
    names = sorted(name[:-2] for name in os.listdir(FOLDER) if name.endswith(".c"))
    assert len(names) == 5
    return {name: compiled(f"{FOLDER}/{name}.c", folder / f"{name}.o") for name in names}


@pytest.fixture
def written(tmp_path):
    """A function that compiles a program with this body."""

    def write(body, *flags):
        source = tmp_path / "program.c"
        source.write_text(HEAD + body)
        return compiled(source, tmp_path / "program.o", *flags)

    return write


def load(dut, path, dev="lan0"):
    """Load a program."""
    done = dut.fpmctl("hook", "load", path, "dev", dev)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "until the daemon ends" in done.stdout


def unload_all(dut):
    """Remove all programs."""
    for row in dut.control.ask("hooks"):
        done = dut.fpmctl("hook", "unload", "dev", row["dev"])
        assert (done.returncode, done.stdout) == (0, "unloaded\n"), done.stderr


@pytest.fixture
def hooked(dut, lan, wan):
    """The router with routes by wan, and without a program at the start and the end."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    yield dut
    unload_all(dut)


def row_of(dut, dev="lan0"):
    """Return the row of an interface's program."""
    (row,) = [row for row in dut.control.ask("hooks") if row["dev"] == dev]
    return row


def before_token(probe, octets):
    """Return the probe with octets before its token."""
    probe[Raw].load = octets + probe[Raw].load
    return probe


@pytest.mark.smoke
def test_drop_by_payload(hooked, examples, lan, wan):
    """drop_payload.c drops the datagrams that begin with M-SEARCH, and no others."""
    load(hooked, examples["drop_payload"])
    before = hooked.counters()

    for host in (HOST, HOST6):
        assert hooked.forwarded(lan, lan.probe(host), wan)
        assert hooked.forwarded(lan, before_token(lan.probe(host), b"M-SEARCX"), wan)
    assert hooked.moved(before, "drop") == {}
    for host in (HOST, HOST6):
        bad = before_token(lan.probe(host), b"M-SEARCH")
        assert hooked.not_forwarded(lan, bad) == {"hook": 1}

    row = row_of(hooked)
    assert (row["packets"], row["dropped"], row["errors"]) == (6, 2, 0)
    assert row["counters"] == [2] + 15 * [0]
    unload_all(hooked)
    assert hooked.forwarded(lan, before_token(lan.probe(HOST), b"M-SEARCH"), wan)


def dscp_of(frame):
    """Return the DSCP of a frame."""
    return frame[IP].tos >> 2 if IP in frame else frame[IPv6].tc >> 2


@pytest.mark.parametrize("host", [HOST, HOST6])
def test_dscp_by_port(hooked, examples, lan, wan, host):
    """dscp_by_port.c sets the DSCP by the ports, and clears that of other packets. The rest of the
    packet is as without a program, the checksum included; so is the ECN field."""
    load(hooked, examples["dscp_by_port"])
    marks = {"tos" if host == HOST else "tc": 0x0B << 2 | 1}

    for ports, dscp in (((4000, 5060), 24), ((5060, 9), 24), ((9, 16384), 46), ((9, 32767), 46),
                        ((9, 32768), 0), ((16384, 9), 0)):  # fmt: skip
        probe = lan.probe(host, sport=ports[0], dport=ports[1], **marks)
        out = hooked.forwarded(lan, probe, wan)
        assert dscp_of(out) == dscp, ports
        layer = IP if host == HOST else IPv6
        want = Ether(bytes(probe))[layer]
        if host == HOST:
            want.tos, want.ttl = dscp << 2 | 1, want.ttl - 1
            del want.chksum
        else:
            want.tc, want.hlim = dscp << 2 | 1, want.hlim - 1
        assert bytes(out[layer]) == bytes(want)
    assert row_of(hooked)["marked"] == 6
    assert row_of(hooked)["counters"][:3] == [2, 2, 2]


def test_sampling_counter(hooked, examples, lan):
    """sample.c counts one packet of 16 by its size."""
    load(hooked, examples["sample"])
    sizes = [100, 300, 900, 1400]

    for size in sizes:
        lan.send(*(lan.probe(HOST, size=size) for _ in range(32)))
        hooked.fence(lan)

    row = row_of(hooked)
    assert row["packets"] == 128
    if hooked.port_row(lan)["queues"] == 1:
        assert row["counters"][:6] == [8, 2, 2, 2, 2, 2 * sum(sizes)]
    else:
        assert 0 < row["counters"][0] <= 8


@pytest.mark.parametrize("host", [HOST, HOST6])
def test_ttl_floor(hooked, examples, lan, wan, host):
    """ttl_floor.c drops packets with few hops left, without an ICMP error, except those of TCP and OSPF."""
    load(hooked, examples["ttl_floor"])
    hops = "ttl" if host == HOST else "hlim"

    assert hooked.forwarded(lan, lan.probe(host, **{hops: 8}), wan)
    for few in (1, 7):
        assert hooked.not_forwarded(lan, lan.probe(host, **{hops: few})) == {"hook": 1}
    bgp = lan.probe(host, **{hops: 7})
    upper = TCP(sport=4000, dport=179) / Raw(token())
    bgp = Ether(src=bgp.src, dst=bgp.dst) / bgp.getlayer(1).__class__(
        src=bgp[1].src, dst=bgp[1].dst, **{hops: 7}
    ) / upper  # fmt: skip
    assert hooked.forwarded(lan, bgp, wan)
    ospf = IP(src=bgp[1].src, dst=host, ttl=1 + 1, proto=89) if host == HOST else IPv6(
        src=bgp[1].src, dst=host, hlim=1 + 1, nh=89)  # fmt: skip
    assert hooked.forwarded(lan, Ether(src=bgp.src, dst=bgp.dst) / ospf / Raw(token()), wan)
    assert row_of(hooked)["counters"][:2] == [2, 2]


def test_ttl_floor_of_the_page(hooked, lan, wan, tmp_path):
    """The program of the manual is compiled with the options of the manual, is accepted, and works."""
    blocks = docs.blocks(Path(ROOT, "fpm-dataplane", "manual", "hook.md"))
    (text,) = [block.text for block in blocks if block.language == "c"]
    assert any(" ".join(FLAGS) in block.text for block in blocks)
    source = tmp_path / "ttl_floor.c"
    source.write_text(text)
    load(hooked, compiled(source, tmp_path / "ttl_floor.o"))

    assert hooked.forwarded(lan, lan.probe(HOST, ttl=8), wan)
    assert hooked.not_forwarded(lan, lan.probe(HOST, ttl=7)) == {"hook": 1}
    assert row_of(hooked)["counters"][0] == 1


def test_table_by_source(hooked, examples, lan, wan, alt):
    """vrf_by_source.c leads packets from its prefixes to table 1001, and leaves other packets as they are.
    Without a FIB of that table its packets are dropped. If the table has no route, they take that of
    main. (Guests have VRFs; here a rule that concerns another interface names the table.)"""
    hosts = {HOST: ("192.0.2.200", "192.0.2.5"), HOST6: ("2001:db8:1::9", "2001:db8:9::9")}
    load(hooked, examples["vrf_by_source"])

    for host, (inside, outside) in hosts.items():
        assert hooked.forwarded(lan, lan.probe(host, src=outside), wan)
        assert hooked.not_forwarded(lan, lan.probe(host, src=inside)) == {"vrf_no_fib": 1}
    lines = ["rule add iif ext0 lookup 1001", "-6 rule add iif ext0 lookup 1001",
             f"route add {NET} via {alt.peer4} dev {alt.tap} table 1001",
             f"-6 route add {NET6} via {alt.peer6} dev {alt.tap} table 1001"]  # fmt: skip
    hooked.ip(*lines)
    try:
        for host, (inside, outside) in hosts.items():
            arrives = lambda h=host, s=inside: goes_to(hooked, lan, alt, h, s)  # noqa: E731
            eventually(arrives, 5, 0.02, "table 1001 is in force")
            assert hooked.forwarded(lan, lan.probe(host, src=outside), wan)
            said = hooked.fpmctl("explain", "port", "lan0", "src", inside, "dst", host)
            assert "change by program vrf_by_source.o, table 1001" in said.stdout
            assert "looked up again in table 1001: adjacency" in said.stdout
            assert "FORWARDED by alt0" in said.stdout
        hooked.ip(*(line.replace("route add", "route del") for line in lines[2:]))
        for host, (inside, _) in hosts.items():
            arrives = lambda h=host, s=inside: goes_to(hooked, lan, wan, h, s)  # noqa: E731
            eventually(arrives, 5, 0.02, "main answers")
    finally:
        hooked.ip(*(line.replace("rule add", "rule del") for line in lines[:2]))


TABLE_1001 = """{
	const uint8_t *to = hook->packet + (hook->family == 4 ? 16 : 24);
	return to[0] == 224 ? FPM_PASS : FPM_TABLE(1001);
}
"""


@pytest.fixture
def in_table(hooked, written, alt):
    """A function that writes routes to the two networks by a gateway on alt or `out`, in table
    1001, to which a program leads all packets. Main leads them to wan."""
    load(hooked, written(TABLE_1001))
    rules = ["rule add iif ext0 lookup 1001", "-6 rule add iif ext0 lookup 1001"]
    routes = []

    def write(prefix, words, out=alt):
        six = "-6 " if ":" in prefix else ""
        routes.append(f"{six}route add {prefix} {words} dev {out.tap} table 1001")
        hooked.ip(routes[-1])

    hooked.ip(*rules)
    yield write
    hooked.ip(*(line.replace(" add ", " del ") for line in routes + rules))


def leads_to(dut, host, words):
    """Wait until the text of explain about a packet to the host has these words."""
    said = lambda: words in dut.fpmctl("explain", "port", "lan0", "dst", host).stdout  # noqa: E731
    eventually(said, 5, 0.02, f"explain has: {words}")


@pytest.mark.usefixtures("asked_often")
def test_a_packet_waits_for_its_neighbor_in_the_table(hooked, in_table, lan, wan, alt, family):
    """A packet that a program has looked up in a table waits for the neighbor of that table's
    route, and leaves by it."""
    gateway, prefix, dst = case(family, 74)
    hooked.route(prefix, via=alt.peer(family), wire=alt)
    in_table(prefix, f"via {gateway}", wan)
    leads_to(hooked, dst, "unresolved")
    probes = [lan.probe(dst) for _ in range(3)]

    lan.send(*probes)
    eventually(lambda: wan.solicitations(gateway), 3, 0.005, "a solicitation")
    wan.answer(gateway, "02:00:00:00:74:01")
    frames = wan.expect_many(lambda d: token_of(d) is not None, 3, 3)

    assert [token_of(f) for f in frames] == [token_of(p) for p in probes]
    assert not any(alt.got(token_of(p)) for p in probes)


def test_fragments_leave_by_the_table(hooked, in_table, lan, wan, alt):
    """A packet above the MTU of the table's route leaves by that route, in fragments. The error about a
    packet that must not be fragmented leaves by the table of the interface."""
    in_table(NET, f"via {alt.peer4} mtu lock 600")
    in_table(NET6, f"via {alt.peer6} mtu lock 1300")
    leads_to(hooked, HOST, "alt0")
    leads_to(hooked, HOST6, "alt0")
    probe = lan.probe(HOST, size=1400)

    lan.send(probe)
    alt.expect(token_of(probe))
    pieces = lambda: [p for p in alt.sniffed(IP) if p[IP].dst == HOST]  # noqa: E731
    eventually(lambda: len(pieces()) == 3, 3, 0.01, "three fragments")
    assert {p[IP].id for p in pieces()} == {probe[IP].id}
    assert not [p for p in wan.sniffed(IP) if p[IP].dst == HOST]
    whole = lan.probe(HOST6, size=1400)
    lan.send(whole)
    assert lan.expect(lambda d: Ether(d).haslayer(ICMPv6PacketTooBig))[ICMPv6PacketTooBig].mtu == 1300


def test_packets_to_the_router_stay(hooked, in_table, lan, alt):
    """Packets to addresses of the router go to the kernel, whatever the table has for them."""
    in_table("0.0.0.0/0", f"via {alt.peer4}")
    in_table("::/0", f"via {alt.peer6}")
    leads_to(hooked, HOST, "alt0")
    before = hooked.counters()

    for own in (lan.ip4, lan.ip6, alt.ip4):
        probe = lan.probe(own)
        lan.send(probe)
        hooked.fence(lan)
        assert not alt.got(token_of(probe))
    assert hooked.moved(before, "punt")["local"] >= 3


def goes_to(dut, lan, out, host, src, **fields):
    """Send a probe. Return true if it leaves by `out`."""
    probe = lan.probe(host, src=src, **fields)
    lan.send(probe)
    dut.fence(lan)
    return bool(out.got(token_of(probe)))


# --- refusals -------------------------------------------------------------------------------

LOOP = """{
	uint64_t sum = 0;
#pragma nounroll
	for (uint32_t i = 0; i < hook->octets; i++)
		sum += hook->packet[i & 255];
	return sum;
}
"""
PROGRAMS = {
    LOOP: "jumps back",
    "{ return hook->packet[hook->length]; }": "an address by a number without a bound",
    "{ return hook->packet[hook->length & 8191]; }": "may reach beyond struct fpm_hook",
    "{ return ((volatile uint8_t *)hook)[-1]; }": "may reach beyond struct fpm_hook",
    "{ return *(volatile uint64_t *)4096; }": "takes a number for an address",
    "{ return hook->length / hook->family; }": "divides by a register",
    "{ static uint64_t n; return n++; }": "a function or a variable outside of it",
    "{ extern int outer(void); return outer(); }": "a function or a variable outside of it",
    "{ hook->counter[0] = (uint64_t)hook; return 0; }": "gives an address away",
}


@pytest.mark.parametrize("body", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_bad_program_is_refused_with_a_sentence(hooked, written, body):
    """A program that could harm the daemon is refused, with the reason, and exit code 2."""
    done = hooked.fpmctl("hook", "load", written(body), "dev", "lan0")

    assert (done.returncode, done.stdout) == (2, "")
    assert PROGRAMS[body] in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert hooked.control.ask("hooks") == []


def test_a_bad_file_is_refused_with_a_sentence(hooked, examples, tmp_path):
    """A file that is no object file for the target bpf, is cut off or is huge, a wrong name of an
    interface, and wrong words are refused."""
    good = examples["sample"]
    with open(good, "rb") as file:
        octets = file.read()
    files = {
        "text": (b"drop all packets\n", "no ELF file"),
        "empty": (b"", "no ELF file"),
        "short": (octets[:200], "table of sections is damaged"),
        "end": (octets[:-1], "table of sections is damaged"),
        "huge": (octets + bytes(1 << 20), "larger than 1 MiB"),
    }
    for name, (content, sentence) in files.items():
        (tmp_path / name).write_bytes(content)
        refuses(hooked, sentence, "load", tmp_path / name, "dev", "lan0")
    refuses(hooked, "target bpf", "load", sys.executable, "dev", "lan0", but="larger")
    refuses(hooked, "No such file", "load", tmp_path / "none", "dev", "lan0")
    refuses(hooked, "no regular file", "load", tmp_path, "dev", "lan0")
    refuses(hooked, "no regular file", "load", "/dev/zero", "dev", "lan0")
    refuses(hooked, "no port or VLAN 'lan9'", "load", good, "dev", "lan9")
    refuses(hooked, "interface 'lan0' has no program", "unload", "dev", "lan0")
    refuses(hooked, "unexpected word 'lan0'", "load", good, "lan0", "lan0")
    refuses(hooked, "unexpected word 'run'", "run", good)
    refuses(hooked, "hook needs", "load", good)
    assert hooked.control.ask("hooks") == []


def refuses(dut, sentence, *words, but=None):
    """Assert that fpmctl hook refuses these words with this sentence, or with the sentence `but`."""
    done = dut.fpmctl("hook", *map(str, words))
    assert (done.returncode, done.stdout) == (2, ""), words
    assert sentence in done.stderr or (but and but in done.stderr), done.stderr


def test_a_refused_program_leaves_the_old_one(hooked, examples, written, lan):
    """A refused program changes nothing: the previous program continues, with its counters."""
    load(hooked, examples["drop_payload"])
    bad = before_token(lan.probe(HOST), b"M-SEARCH")
    assert hooked.not_forwarded(lan, bad) == {"hook": 1}

    refuses(hooked, "divides by", "load", written("{ return hook->family % hook->length; }"), "dev", "lan0")

    assert hooked.not_forwarded(lan, before_token(lan.probe(HOST), b"M-SEARCH")) == {"hook": 1}
    assert row_of(hooked)["counters"][0] == 2


ASK = """
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\\n")
print(s.makefile().readline())
"""


def test_only_root_loads_and_unloads(own_dut, examples):
    """A member of the socket's group can neither load nor unload a program, and sees it."""
    dut = own_dut()
    dut.start()
    load(dut, examples["sample"])
    os.chmod(dut.dir, 0o755)

    def nobody_asks(request):
        argv = [sys.executable, "-c", ASK, dut.socket, json.dumps(request)]
        done = subprocess.run(argv, user=65534, group=os.stat(dut.socket).st_gid,
                              extra_groups=[], capture_output=True, text=True, check=True)  # fmt: skip
        return json.loads(done.stdout)

    program = {"do": "load", "dev": "lan0", "file": "x.o", "of": 2,
               "program": "twAAAAAAAACVAAAAAAAAAA=="}  # fmt: skip
    assert "only root" in nobody_asks({"hook": program})["error"]
    assert "only root" in nobody_asks({"hook": {"do": "unload", "dev": "lan0"}})["error"]
    assert nobody_asks({"show": "hooks"})["file"] == "sample.o"


# --- rows ------------------------------------------------------------------------------------


def test_what_is_shown(hooked, examples, lan):
    """show hooks and its JSON have the packets, verdicts and counters of a program."""
    load(hooked, examples["drop_payload"])
    load(hooked, examples["sample"], "wan0")
    assert hooked.not_forwarded(lan, before_token(lan.probe(HOST), b"M-SEARCH")) == {"hook": 1}

    said = hooked.fpmctl("show", "hooks", "lan0").stdout
    assert said.startswith("lan0: drop_payload.o\n  hash ")
    assert "\n  packets 1, dropped 1\n  dscp set 0, table chosen 0\n  errors 0\n" in said
    assert said.endswith("\n  counters 0: 1\n")
    rows = json.loads(hooked.fpmctl("--json", "show", "hooks").stdout)
    api.validate(rows, api.rows_schema("GET", "/hooks")[1]["schema"])
    assert [row["dev"] for row in rows] == ["lan0", "wan0"]
    assert rows[0]["hash"] != rows[1]["hash"] and all(row["active"] for row in rows)
    assert hooked.fpmctl("hook", "unload", "dev", "wan0").returncode == 0
    assert [row["dev"] for row in hooked.control.ask("hooks")] == ["lan0"]


def test_metrics_have_each_program(own_dut, examples):
    """The metrics page has lines of programs while an interface has one."""
    dut = own_dut(metrics="127.0.0.1:9620")
    dut.start()
    assert "fpmdp_hook" not in dut.metrics_page()
    load(dut, examples["sample"])
    page = dut.metrics_page()
    assert 'fpmdp_hook_packets_total{port="lan0"} 0' in page
    assert 'fpmdp_hook_counter_total{port="lan0",counter="15"} 0' in page
    assert 'fpmdp_drop_packets_total{reason="hook"' in page


def test_explain_asks_the_program_and_counts_nothing(hooked, examples, lan, wan):
    """explain names the program and its verdict; its counters stay."""
    load(hooked, examples["ttl_floor"])

    done = hooked.fpmctl("explain", "port", "lan0", "dst", HOST, "ttl", "3")
    assert done.returncode == 3
    assert "hook       drop by program ttl_floor.o\n" in done.stdout
    assert "DROPPED, hook: a program drops the packet" in done.stdout
    done = hooked.fpmctl("explain", "port", "lan0", "dst", HOST, "ttl", "9")
    assert "hook       pass by program ttl_floor.o\n" in done.stdout
    assert "FORWARDED by wan0" in done.stdout
    assert "hook" not in hooked.fpmctl("explain", "port", "wan0", "dst", lan.peer4).stdout
    row = row_of(hooked)
    assert (row["packets"], row["dropped"], row["counters"]) == (0, 0, 16 * [0])


def cycles_of(dut):
    """Return the cycles of the stage `hook`, and the packets of timed rounds."""
    rows = [row for row in dut.control.ask("cycles") if row["stage"] == "hook"]
    return sum(row["cycles"] for row in rows), sum(row["packets"] for row in rows)


def test_without_a_program_the_stage_takes_no_time(hooked, examples, lan):
    """show cycles has the time of programs. Without a program the stage is not entered."""

    def more_timed(packets):
        lan.send(*(lan.probe(HOST) for _ in range(64)))
        return cycles_of(hooked)[1] > packets

    cycles, packets = cycles_of(hooked)
    eventually(lambda: more_timed(packets), 30, 0, "a timed round")
    assert cycles_of(hooked)[0] == cycles
    load(hooked, examples["sample"])
    packets = cycles_of(hooked)[1]
    eventually(lambda: more_timed(packets) and cycles_of(hooked)[0] > cycles, 30, 0, "time")
    unload_all(hooked)
    cycles, packets = cycles_of(hooked)
    eventually(lambda: more_timed(packets), 30, 0, "a timed round")
    assert cycles_of(hooked)[0] == cycles


# --- how it runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("refused", [False, True])
def test_the_result_is_the_same_without_executable_memory(own_dut, examples, monkeypatch, refused):
    """Where no memory can be made executable (MemoryDenyWriteExecute), programs are interpreted,
    with the same result."""
    dut = own_dut()
    if refused:
        preload.start(dut, monkeypatch, "exec_refused")
    else:
        dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    load(dut, examples["dscp_by_port"])

    assert row_of(dut)["compiled"] is not refused
    said = dut.fpmctl("show", "hooks").stdout
    assert ("interpreted" if refused else "compiled") in said
    assert dscp_of(dut.forwarded(lan, lan.probe(HOST, dport=5060), wan)) == 24


def test_a_long_program_comes_in_parts(hooked, written, lan, wan):
    """A program that fpmctl loads by many requests is put together, and all of it runs."""
    # The program has no `if`, because each `if` would double the paths through it.
    lines = "".join(f"\thook->counter[{n % 16}] += (hook->packet[{n}] ^ {n}u) & 1;\n"
                    for n in range(20, 250))  # fmt: skip
    path = written("{\n" + lines + "\treturn 0;\n}\n")
    load(hooked, path)
    assert row_of(hooked)["instructions"] > 512

    probe = lan.probe(HOST, size=400)
    assert hooked.forwarded(lan, probe, wan)
    want = [0] * 16
    for n in range(20, 250):
        want[n % 16] += (bytes(probe)[14 + n] ^ n) & 1
    assert row_of(hooked)["counters"] == want


def test_a_program_is_replaced_under_traffic(hooked, examples, lan, wan):
    """Programs come and go while packets pass, and none is lost."""
    with hooked.stream(lan, HOST) as stream:
        for _ in range(20):
            load(hooked, examples["sample"])
            load(hooked, examples["ttl_floor"])
        unload_all(hooked)
    assert stream.sent > 20 and stream.lost(wan) == []


def test_a_program_belongs_to_a_name(own_dut, examples):
    """A program belongs to the name of an interface: it waits while no interface has the name."""
    dut = own_dut()
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    load(dut, examples["ttl_floor"])
    passes = lambda: goes_to(dut, lan, wan, HOST, lan.peer4, ttl=7)  # noqa: E731
    assert not passes()

    dut.rename("lan0", "lan9")
    eventually(passes, 10, 0.05, "an interface without a program")
    assert not row_of(dut)["active"]
    assert "no interface has this name at present" in dut.fpmctl("show", "hooks").stdout
    dut.rename("lan9", "lan0")
    eventually(lambda: row_of(dut)["active"] and not passes(), 10, 0.05, "its program")


def test_a_program_ends_with_the_daemon(own_dut, examples):
    """After a restart no interface has a program, and a new one can be loaded."""
    dut = own_dut(supervised=True)
    dut.start()
    load(dut, examples["sample"])
    was = dut.daemon.pid()
    assert dut.fpmctl("restart").returncode == 0
    dut.daemon.back(was)
    dut.control.close()

    assert "hook not kept reason=daemon-ends dev=lan0 file=sample.o" in dut.log()
    assert dut.control.ask("hooks") == []
    assert "no interface has a program" in dut.fpmctl("show", "hooks").stdout
    load(dut, examples["sample"])
