# SPDX-License-Identifier: BSD-3-Clause
"""Tables fit 80 columns with the longest values: IPv6 addresses and names of interfaces of full
length, counters of years, limits at their maximum. The rows are the daemon's own rows with such
values. An impostor gives them to fpmctl."""

import json
import os
import pty
import re
import select
import subprocess
import termios

import pytest

from lib import api
from lib.fpm_speaker import attr
from lib.wait import eventually
from lib.built import not_sanitized

from impostor import Impostor

ADDRESS, NAME = "2001:db8:ffff:ffff:ffff:ffff:ffff:%04x", "customer-4094.0"
COUNTER = 987_654_321_012_345
LONG = {
    "name": NAME, "dev": NAME, "vrf": NAME, "on": NAME, "via": ADDRESS % 2,
    "address": ADDRESS % 2, "addresses4": "255.255.255.255", "addresses6": ADDRESS % 2,
    "addresses": [ADDRESS % 3 + "/128", "192.0.2.1/24", ADDRESS % 4 + "/128"],
    "weight": 65535, "alive": False, "stale": True, "absent": True, "mtu": 65535,
    "ifindex": 9_999_999, "vlan": "4094.4094", "up": False, "link": "down", "cpus": [127] * 16,
    "device": "net_af_packet,iface=customer-4094.0", "queues": 16, "forwarding": "ipv4",
    "rss": "ip tcp udp sctp tunnel l2", "cpu": 1023, "tid": 4_194_303, "routes": 99_999_999,
    "nodes": 99_999_999, "leaves": 99_999_999, "bytes": 900 << 30, "free_bytes": 900 << 30,
    "radix_bytes": 900 << 30, "group": 1_048_575, "nexthop_id": 9_999_999, "rate": 10_000_000,
    "burst": 1_000_000, "source_rate": 10_000_000, "source_burst": 1_000_000,
}  # fmt: skip
COUNTED = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "rx_errors",
           "tx_errors", "dropped", "value", "passed", "policed", "over_share", "ring_full")  # fmt: skip
RATES = {"ports", "vrfs", "counters", "drops", "punt", "threads"}
ASKED = ["ports", "interfaces", "routes", "fib", "vrfs", "nexthops", "groups", "labels", "encaps", "sids", "neighbors", "counters",
         "drops", "punt", "cycles", "threads", "memory", "fpm", "warnings", "filter", "flowspec", "sflow", "bfd",
         "hooks"]  # fmt: skip


def stretched(value, key=None, named=False):
    """Return a row with the longest values of its keys. A key `name` gets one only when it names an
    interface."""
    if isinstance(value, dict):
        return {k: stretched(v, k, named) for k, v in value.items()}
    if key == "name" and not named:
        return value
    if key == "prefix":
        return (ADDRESS % 1 + "/128") if ":" in value else "255.255.255.255/32"
    if key in COUNTED:
        return COUNTER
    if key in LONG:
        return LONG[key]
    return [stretched(v, None, named) for v in value] if isinstance(value, list) else value


def moving(rows):
    """Return an answer function that gives these rows to every request. The counters grow between
    two answers."""

    def answer(request):
        assert "show" in request
        said = [dict(row) for row in rows]
        for row in rows:
            row |= {k: row[k] + 10**12 for k in COUNTED if k in row}
        return said

    return answer


@pytest.fixture
def taught(dut, wan, lan):
    """A router with rows for every show."""
    hops = [dut.zebra.hop(wan.peer4, wan), dut.zebra.hop(lan.peer4, lan)]
    dut.route("198.51.100.0/24", nhid=dut.zebra.group(hops))
    dut.route("2001:db8:f000::/36", via=wan.peer6, wire=wan)
    oif, many = dut.ifindex(wan), [1048575] * 14
    dut.route("203.0.113.0/24", nhid=dut.zebra.hop(wan.peer4, wan, labels=many))
    hop = {"via": wan.peer6, "oif": oif, "labels": many}
    dut.zebra.send(dut.zebra.label_message(1048575, hop))
    end = (7, attr(1, 1))  # LWTUNNEL_ENCAP_SEG6_LOCAL: SEG6_LOCAL_ACTION, End
    dut.zebra.add("2001:db8:f000:f000:f000:f000:f000:f000/128", dut.zebra.hop(oif=1, encap=end))
    eventually(lambda: dut.control.ask("labels") and dut.control.ask("sids"), 5)
    return dut


def long_rows(dut, what):
    """Return the daemon's own rows with the longest values. If a daemon may have no rows, make
    some."""
    if what == "cycles":
        return [{"thread": "fwd-63", "cpu": 1023, "stage": "adjacency", "cycles": 10**15,
                 "packets": 10**6, "bursts": 10**4}]  # fmt: skip
    if what == "vrfs":
        return [{"name": NAME, "table": 2**32 - 2, "published": False, "stale": 99_999_999,
                 "replayed": False, "rx_packets": COUNTER, "rx_bytes": COUNTER,
                 "dropped": COUNTER, "fib4": {"routes": 99_999_999},
                 "fib6": {"routes": 99_999_999}}]  # fmt: skip
    if what == "bfd":
        long = {"peer": ADDRESS % 6, "local": ADDRESS % 7, "dev": NAME, "vrf": NAME, "multihop": True, "state": "admin-down",
                "diag": "reverse concatenated path down", "remote_diag": "control detection time expired",
                "discr": 2**32 - 1, "remote_discr": 2**32 - 1, "lid": 2**32 - 1, "mult": 255, "remote_mult": 255,
                "tx_us": 2**32 - 1, "rx_us": 2**32 - 1, "remote_tx_us": 2**32 - 1, "remote_rx_us": 2**32 - 1,
                "interval_us": 2**32 - 1, "detect_us": 255 * (2**32 - 1), "echo": True, "echo_us": 2**32 - 1,
                "passive": True, "shutdown": True, "by": None, "reason": "word " * 30, "pruned": True,
                "downs": 2**32 - 1, "since_s": 86400 * 999, "rx_packets": COUNTER, "tx_packets": COUNTER,
                "rx_bytes": COUNTER, "tx_bytes": COUNTER, "echo_rx_packets": COUNTER,
                "echo_tx_packets": COUNTER, "echo_rx_bytes": COUNTER, "echo_tx_bytes": COUNTER}  # fmt: skip
        short = {"peer": "255.255.255.255", "local": "255.255.255.254", "dev": "eth0.100", "interval_us": 9999000,
                 "rx_us": 9999000, "remote_tx_us": 0, "by": "forwarders", "reason": None}  # fmt: skip
        return [long, long | short]
    if what == "warnings":
        return [{"kind": "multicast", "where": f"table inet {'t' * 40}, chain {'c' * 30}",
                 "linux": "Linux does it. " * 9, "dataplane": "It does not. " * 9}]  # fmt: skip
    if what == "filter":
        return [{"kind": "rule", "chain": "c" * 24, "handle": 10**7, "action": "continue", "to": None,
                 "comment": "word " * 20, "packets": 10**13, "octets": 10**15}]  # fmt: skip
    if what == "flowspec":
        return [{"state": "running", "age_s": 10**6, "nft_error": "word " * 60, "frr_error": "word " * 60, "validate": False,
                 "sessions": 10**6, "sessions_up": 10**6, "installed": 2000, "refused": 10**6, "waiting": 10**6}]  # fmt: skip
    if what == "sflow":
        return [{"kind": "agent", "state": "on", "agent": ADDRESS % 5, "rate": 10**6, "header": 512, "counters_s": 3600,
                 "drops": False, "sequence": COUNTER, "counters": COUNTER, "samples": COUNTER,
                 "samples_over": COUNTER, "discards": COUNTER, "discards_over": COUNTER},
                {"kind": "collector", "address": f"[{ADDRESS % 5}]:65535", "vrf": NAME, "state": "failing",
                 "last_error": "Network is unreachable", "datagrams": COUNTER, "errors": COUNTER},
                {"kind": "port", "name": NAME, "samples": 10**10, "pool": COUNTER, "drops": COUNTER,
                 "discards": COUNTER, "discards_dropped": COUNTER}]  # fmt: skip
    if what == "hooks":
        return [{"dev": NAME, "file": "f" * 61 + ".o", "hash": "f" * 16, "instructions": 4096,
                 "compiled": False, "active": False, "age_s": 10**8, "packets": COUNTER, "dropped": COUNTER,
                 "marked": COUNTER, "moved": COUNTER, "errors": COUNTER, "counters": 16 * [COUNTER]}]  # fmt: skip
    if what in ("log", "version"):
        return LINES[f"show {what}"][0]
    named = what in ("ports", "interfaces")
    return [stretched(row, named=named) for row in dut.control.ask(what)]


@pytest.mark.parametrize("what", ASKED)
def test_the_longest_values_fit_80_columns(taught, what, tmp_path):
    """No line is longer than 80 columns, and every value is complete on one line."""
    dut, rows = taught, long_rows(taught, what)
    path = str(tmp_path / "impostor.sock")
    impostor = Impostor(path, moving(rows))
    try:
        for words in [[], ["--rates=0.1"]] if what in RATES else [[]]:
            every = ["all"] if what in ("counters", "drops") else []
            done = dut.fpmctl(*words, "show", what, *every, socket_path=path)

            assert (done.returncode, done.stderr) == (0, "")
            assert [x for x in done.stdout.splitlines() if len(x) > 80] == []
            said = set(done.stdout.split())
            assert not rows or {w for w in wanted(what)} <= said, done.stdout
    finally:
        impostor.close()


def test_all_about_a_session_of_bfd_fits_80_columns(dut, tmp_path):
    """`show bfd PEER` prints all values of the session, without the heading of the table."""
    path = str(tmp_path / "impostor.sock")
    rows = [row | {"reason": None, "by": "kernel"} for row in long_rows(dut, "bfd")[:1]]
    api.validate(rows, api.rows_schema("GET", "/bfd")[1]["schema"])
    impostor = Impostor(path, moving(rows))
    try:
        done = dut.fpmctl("show", "bfd", ADDRESS % 6, socket_path=path)
        said = done.stdout
    finally:
        impostor.close()

    assert (done.returncode, done.stderr) == (0, "")
    assert [x for x in said.splitlines() if len(x) > 80] == []
    for value in ("several hops, passive, shut down", ADDRESS % 7, NAME, "the kernel sends its packets",
                  "reverse concatenated path down", "control detection time expired", "4294967295",
                  str(COUNTER), "its next hop was removed from all groups"):  # fmt: skip
        assert value in said, said
    assert "PEER" not in said


def test_an_interface_that_takes_labels_is_told(dut, tmp_path):
    """The table has a line below each interface that takes MPLS labels, and no such line where the
    kernel has no MPLS."""
    path = str(tmp_path / "impostor.sock")
    row = {"ifindex": 7, "up": True, "port": True, "addresses": [], "macvlan": False}
    rows = [row | {"name": "a", "mpls": True}, row | {"name": "b", "mpls": False}, row | {"name": "c"}]
    impostor = Impostor(path, lambda _: rows)
    try:
        done = dut.fpmctl("show", "interfaces", socket_path=path)
        assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["a", "takes", "b", "c"]
        assert "\n    takes MPLS labels\n" in done.stdout
    finally:
        impostor.close()


def test_a_queue_that_no_cpu_serves_has_a_dash(dut, lan, tmp_path):
    """CPU 0 is a CPU: the line of a port names it only for the queues that it serves."""
    path = str(tmp_path / "impostor.sock")
    row = dut.port_row(lan) | {"queues": 3, "cpus": [2, None, 0]}
    impostor = Impostor(path, lambda _: [row])
    try:
        done = dut.fpmctl("show", "ports", socket_path=path)
        assert "3 queues on CPU 2 - 0, RSS" in done.stdout, done.stdout
    finally:
        impostor.close()


MANY = ("routes", "prefixes", "groups", "adjacencies", "messages", "frames", "types", "lookups", "differ",
        "queues", "sweeps", "buffers", "ids", "packets", "octets", "VRFs", "errors", "members")  # fmt: skip


def ones(value):
    """Return a row whose numbers are all 1."""
    if isinstance(value, dict):
        return {k: ones(v) for k, v in value.items()}
    if isinstance(value, list):
        return [ones(v) for v in value[:1]]
    return 1 if isinstance(value, int) and not isinstance(value, bool) else value


def test_one_of_everything_is_told_in_the_singular(dut, tmp_path):
    """fpmctl prints 1 with a noun in the singular (1 route, 1 prefix, 1 octet), also with a word
    between number and noun."""
    path = str(tmp_path / "impostor.sock")
    kept = dict.fromkeys(("routes", "other_tables", "kernel_routes", "groups", "bytes",
                          "restored", "restored_kernel", "restore_lost", "discarded"), 1)  # fmt: skip
    vrf = {"vrfs": 1, "vrf_phase": "in-step", "no_vrf_routes": 1, "vrfs_not_replayed": 1,
           "replay_s": 1, "feedback_enabled": True, "checkpoint": kept}  # fmt: skip
    rows = {what: [ones(row) for row in dut.control.ask(what)] for what in ("fpm", "memory", "ports")}
    rows["fpm"][0] |= vrf
    rows["vrfs"] = [{"name": "red", "table": 1, "stale": 1}]
    small = {"port": "lan0", "stages": [], "verdict": "dropped", "reason": "l2_short", "text": ""}
    packet = {"trace": [small | {"frame_bytes": 1}, small | {"family": 4, "length": 1},
                        small | {"frame_bytes": 1, "eth_type": 1}]}  # fmt: skip
    packet = {"trace": [row | {"point": "walk"} for row in packet["trace"]]}
    impostor = Impostor(path, lambda r: packet["trace"] if "trace" in r else rows[r["show"]])
    try:
        for words in ("show fpm", "show memory", "show ports", "show vrfs", "trace"):
            text = dut.fpmctl(*words.split(), socket_path=path).stdout
            text = re.sub(r"\n? +", " ", text)  # a continuation belongs to its line
            assert re.search(r"\b1 \w", text), text
            wrong = re.findall(rf"\b1 (?:[a-z-]+ )?(?:{'|'.join(MANY)})\b", text)
            assert wrong == [], text
    finally:
        impostor.close()


PATH = "/etc/" + "a-folder-with-a-long-name/" * 8 + "fpm-dataplane.yaml"
DEVICE = "net_virtio_user,path=/run/a/very/long/folder/for/a/socket.sock,mac=02:00:00:00:00:01,queues=16"
FAMILY6 = {
    "family": 6, "src": ADDRESS % 7, "dst": ADDRESS % 8, "proto": 132, "sport": 65535,
    "dport": 65535, "ttl": 255, "length": 65535, "frame_bytes": 65549, "fragment": True,
    "port": NAME, "eth_src": "02:00:00:ff:ff:01", "eth_dst": "02:00:00:ff:ff:02",
    "group": 1_048_575, "path": "group of paths", "hash": 2**32 - 1, "bucket": 1023, "buckets": 1024,
    "route": {"prefix": ADDRESS % 1 + "/128", "source": "zebra", "protocol": "openfabric",
              "nexthops": [{"via": ADDRESS % 2, "dev": NAME, "weight": 65535, "alive": False}] * 2},
    "route_changed": True, "via": ADDRESS % 2, "mtu": 65535, "out": NAME,
    "neighbor": {"state": "permanent"}, "mac": "02:00:00:ff:ff:03",
    "stages": ["rx", "parse", "lookup", "adjacency", "rewrite"], "point": "walk",
}  # fmt: skip
DROPPED = {"verdict": "dropped", "reason": "ip6_linklocal_dst", "icmp": True,
           "text": "destination is link-local and no address of the port it came in by",
           "icmp_src": ADDRESS % 9}  # fmt: skip
LIVE = {"time_ns": 1_700_000_000_123_456_789}
FORWARDED = {"verdict": "forwarded", "out_ttl": 254, "out_src_mac": "02:00:00:ff:ff:04"}
LINE = ("2026-11-22T05:50:15.123456Z warn  manage: port added name=" + NAME + " device=" + DEVICE
        + " ifindex=9999999 queues=16 why=" + "x" * 100)  # fmt: skip
# Commands: the rows of the answer, and the words that must be on one line when the output is no
# terminal.
LINES = {
    "show log": ([{"line": LINE}], [LINE]),
    "show version": ([{"version": "1.2.3-456-gabcdef0123456789-dirty", "dpdk": "DPDK 22.11.11",
                       "pid": 4_194_303, "uptime_s": 10**9, "config": PATH,
                       "instructions": "AVX-512", "instructions_best": "AVX-512",
                       "lookup_instructions": "AVX-512", "lookup_instructions_best": "AVX-512"}],
                     [PATH]),
    "show ports": ([{"name": NAME, "link": "up", "mtu": 65535, "mac": "02:00:00:ff:ff:01",
                     "device": DEVICE, "queues": 16, "cpus": [127] * 16, "vlan_offload": True,
                     "checksum_offload": True}],
                   [DEVICE]),
    "explain port lan0 dst 192.0.2.1 src 192.0.2.2": ([FAMILY6 | DROPPED | {"name": "lan0"}],
        [f"packet     {FAMILY6['src']} -> {FAMILY6['dst']}, sctp 65535 -> 65535, ttl 255,"]),
    "trace count 1": ([FAMILY6 | FORWARDED | LIVE, FAMILY6 | DROPPED | LIVE],
        [f"  via {ADDRESS % 2} dev {NAME} weight 65535 (dead)"]),
    "config reload --dry-run": ([{"key": "ports[lan0].device", "from": DEVICE, "to": DEVICE + "0",
        "possible": True, "note": "of the next start"}],
        [f"ports[lan0].device: {DEVICE} -> {DEVICE}0  (of the next start)"]),
}  # fmt: skip


def typed(argv, columns=0, until=None, **environment):
    """Return the output of a command on a terminal, as text. With 0 columns the terminal has no
    size. The command gets SIGTERM when until(text) is true."""
    ours, theirs = pty.openpty()
    if columns:
        subprocess.run(["stty", "cols", str(columns)], stdin=theirs, check=True)
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment
    with subprocess.Popen(argv, stdout=theirs, stdin=subprocess.DEVNULL, env=env) as done:
        os.close(theirs)
        said = b""
        try:
            while some := os.read(ours, 4096):
                said += some
                if until is not None and until(said.decode()):
                    done.terminate()
        except OSError:  # EIO: no process has the terminal open
            pass
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def on_a_terminal(argv, columns=0):
    """Return the output of a command on a terminal (see typed) without colours, as lines."""
    return re.sub(r"\x1b\[\d+m", "", typed(argv, columns)).splitlines()


@pytest.fixture
def port_down(tmp_path):
    """Return the socket of a daemon with two ports. wan0 is down."""
    path = str(tmp_path / "impostor.sock")
    rows = [{"name": "lan0", "link": "up"}, {"name": "wan0", "link": "down"}]
    impostor = Impostor(path, lambda _: rows)
    yield path
    impostor.close()


def test_down_is_red_on_a_terminal_that_permits_colors(dut, port_down):
    """On a terminal only the word `down` is red. With NO_COLOR (no-color.org: set and not empty)
    there is no escape sequence."""
    argv = [dut.daemon.ctl, "-s", port_down, "show", "ports"]

    said = typed(argv)

    assert re.findall(r"\x1b\[31m(.*?)\x1b\[0m", said) == ["down"]
    assert said.count("\x1b") == 2 and "lan0            up " in said
    assert typed(argv, NO_COLOR="") == said
    assert typed(argv, NO_COLOR="1") == re.sub(r"\x1b\[\d+m", "", said)
    assert dut.fpmctl("show", "ports", socket_path=port_down).stdout.count("\x1b") == 0


@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_terminal_that_knows_no_escapes_gets_none(dut, port_down, term):
    """A terminal without escape sequences (a serial console, the shell of an editor) gets no
    colours, and no page is cleared."""
    argv = [dut.daemon.ctl, "-s", port_down, "--watch=0.1", "show", "ports"]

    said = typed(argv, until=lambda text: text.count("wan0") >= 3, TERM=term)

    assert "\x1b" not in said and said.count("\n\nPORT") >= 2, said


def test_watch_clears_a_terminal_before_each_page(dut, port_down):
    """--watch clears the terminal before each page but the first, which stands where the command
    was typed. A pipe gets an empty line instead."""
    clear = "\x1b[H\x1b[2J"
    argv = [dut.daemon.ctl, "-s", port_down, "--watch=0.1", "show", "ports"]

    said = typed(argv, until=lambda text: text.count("wan0") >= 3, NO_COLOR="1")

    pages = said.split(clear)
    assert len(pages) >= 3 and pages[0].startswith("PORT") and "lan0" in pages[0]
    assert pages[1] == pages[0]


CLEAR = "\x1b[H\x1b[2J"


def watched(argv):
    """Run a command on a controlling terminal of 80 columns until its second page is complete, then
    type Ctrl-C. Returns the text, the exit code, and true if the terminal has its old settings."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    before, said = termios.tcgetattr(theirs), b""
    # The terminal would print ^C in the middle of the text on Ctrl-C, and discard the text that the
    # test has not read yet.
    before[3] = before[3] & ~termios.ECHOCTL | termios.NOFLSH
    termios.tcsetattr(theirs, termios.TCSANOW, before)
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env,
                          preexec_fn=lambda: os.login_tty(os.dup(0))) as watch:  # fmt: skip
        while said.count(CLEAR.encode()) < 2:
            readable, _, _ = select.select([ours], [], [], 10)
            if not readable or watch.poll() is not None:
                break
            said += os.read(ours, 4096)
        os.write(ours, b"\x03")
        # The command may be in the middle of a page that is larger than the terminal's buffer.
        while watch.poll() is None or select.select([ours], [], [], 0)[0]:
            readable, _, _ = select.select([ours], [], [], 0.1)
            said += os.read(ours, 4096) if readable else b""
    code = watch.returncode
    same = termios.tcgetattr(theirs) == before
    os.close(theirs)
    os.close(ours)
    return said.decode().replace("\r\n", "\n").replace("\x03", ""), code, same


def test_whatever_is_watched_fits_its_terminal_and_ends_well(taught, tmp_path):
    """Every word of `show` with --watch and the longest values prints a second page like the first.
    No line wraps. After Ctrl-C the prompt is below the text, no colour is left and the exit code is
    0."""
    for what in taught.fpmctl("--complete", "show").stdout.split():
        path = str(tmp_path / f"{what}.sock")
        rows = long_rows(taught, what)
        assert rows, f"nothing to show of {what}: long_rows() needs some"
        impostor = Impostor(path, moving(rows))
        try:
            argv = [taught.daemon.ctl, "-s", path, "--watch=0.1", "show", what]
            said, code, same = watched(argv)
        finally:
            impostor.close()

        assert (code, same) == (0, True), (what, said)
        first, second, *_ = said.split(CLEAR)
        assert second and first.splitlines()[0] == second.splitlines()[0], (what, said)
        red = "\x1b\\[31m(.*?)\x1b\\[0m"
        lines = re.sub(red, r"\1", said.replace(CLEAR, "\n")).splitlines()
        assert [x for x in lines if len(x) > 80 or "\x1b" in x] == [], what
        assert said.endswith("\n"), what


def test_watch_with_json_ends_behind_a_whole_array(taught):
    """SIGTERM at any moment ends --watch --json behind a whole array, with exit code 0."""
    argv = [taught.daemon.ctl, "-s", taught.socket, "--json", "--watch=0.1", "show", "counters"]
    for n in range(4):
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as watch:
            said = watch.stdout.readline() + watch.stdout.read(n * 1000)
            watch.terminate()
            said += watch.stdout.read()
        decoder = json.JSONDecoder()
        assert watch.returncode == 0
        while said := said.strip():
            page, end = decoder.raw_decode(said)
            assert len(page) > 10
            said = said[end:]


@pytest.mark.parametrize("words", LINES)
def test_long_lines_are_broken_on_a_terminal_and_nowhere_else(dut, words, tmp_path):
    """On a terminal fpmctl breaks lines at 80 columns and indents the rest below. A file or a pipe
    gets whole lines. No text is lost in either case."""
    rows, whole = LINES[words]
    path = str(tmp_path / "impostor.sock")

    def answer(request):
        ours = request.get("show") in ("ports", "interfaces") and not words.startswith("show")
        return [{"name": "lan0", "mac": "02:00:00:00:00:01"}] if ours else rows

    impostor = Impostor(path, answer)
    try:
        piped = dut.fpmctl(*words.split(), socket_path=path).stdout
        lines = on_a_terminal([dut.daemon.ctl, "-s", path, *words.split()])
        wide = on_a_terminal([dut.daemon.ctl, "-s", path, *words.split()], columns=200)
    finally:
        impostor.close()

    assert [x for x in lines if len(x) > 80] == [] and len(lines) > len(rows)
    assert [x for x in wide if len(x) > 200] == [] and len(wide) <= len(lines)
    assert all(text in piped for text in whole), piped
    assert "".join("".join(lines).split()) == "".join(piped.split())


def test_a_long_answer_needs_no_memory(dut, tmp_path):
    """fpmctl prints 100,000 routes, 30 MiB of JSON and 100 MiB as objects, as they come, with at
    most 32 MiB of data."""
    row = {
        "prefix": "198.18.0.0/15", "table": 254, "vrf": None, "source": "zebra",
        "protocol": "bgp", "type": "unicast", "nexthop_id": 7, "group": 9, "stale": False,
        "state": "forwarding", "mtu": None, "nexthops": [],
    }  # fmt: skip
    not_sanitized(dut, "no program has that little room")
    path, out = str(tmp_path / "impostor.sock"), tmp_path / "out"
    impostor = Impostor(path, lambda _: [row] * 100_000)
    try:
        for words in (["--json", "show", "routes"], ["show", "routes"]):
            argv = ["prlimit", f"--data={32 << 20}", dut.daemon.ctl, "-s", path, *words]
            with open(out, "wb") as file:
                subprocess.run(argv, stdout=file, check=True, timeout=60)
            assert len(out.read_bytes().splitlines()) >= 100_000
    finally:
        impostor.close()


def wanted(what):
    """Return the words that a table of such values must contain."""
    of = {
        "ports": [NAME, ADDRESS % 2],
        "interfaces": [NAME, ADDRESS % 3 + "/128", "192.0.2.1/24", ADDRESS % 4 + "/128"],
        "routes": [ADDRESS % 1 + "/128", ADDRESS % 2, NAME, "65535", "(dead)", "(stale)"],
        "nexthops": [ADDRESS % 2, NAME],
        "groups": [ADDRESS % 2, NAME, "65535", "(dead)"],
        "neighbors": [ADDRESS % 2, NAME],
        "fib": [NAME, "99999999"],
        "vrfs": [NAME, "4294967294", "99999999"],
        "bfd": [ADDRESS % 6, ADDRESS % 7, NAME, "255.255.255.254", "eth0.100", "9999/9999", "71m/71m", "999d"],
    }
    return of.get(what, [])
