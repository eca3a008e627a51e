# SPDX-License-Identifier: BSD-3-Clause
"""fpmctl trace shows the path of live packets that match its filter. It shows no other packets, and
does not change forwarding."""

import contextlib
import json
import signal
import subprocess
import time

import pytest
from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib.fpm_speaker import RTN_BLACKHOLE
from lib.wait import eventually
from wire import token
from watching import Watching

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


@pytest.fixture
def taught(dut, wan, alt):
    """Add routes to wan, over wan and alt, and a blackhole."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    ids = [dut.zebra.hop(w.peer4, w) for w in (wan, alt)]
    dut.route("203.0.113.0/25", nhid=dut.zebra.group(dict.fromkeys(ids, 1)))
    dut.route("203.0.113.128/27", rtm_type=RTN_BLACKHOLE)
    return dut


def explained(dut, wire, packet):
    """Return the row of `explain` for the same frame."""
    data = bytes(packet)
    want = {"port": wire.tap, "frame": data[:300].hex(), "frame_bytes": len(data)}
    return dut.control.request({"explain": want})[0]


def mixed(lan, wan):
    """Return one packet of each kind."""
    head = Ether(src=lan.mac, dst=lan.port_mac)
    return {
        "udp": lan.probe(HOST, sport=1001, dport=53),
        "tcp": head
        / IP(src=lan.peer4, dst=HOST)
        / TCP(sport=1002, dport=80)
        / Raw(token()),
        "udp6": lan.probe(HOST6, sport=1003, dport=53),
        "other host": lan.probe("198.51.100.77", sport=1004, dport=53),
        "from elsewhere": lan.probe(HOST, src="192.0.2.9", sport=1005),
        "many": lan.probe("203.0.113.9", sport=1006),
        "hole": lan.probe("203.0.113.129", sport=1007),
        "ttl": lan.probe(HOST, ttl=1, sport=1008),
        "no route": lan.probe("100.64.0.1", sport=1009),
        "ping": head / IP(src=lan.peer4, dst=wan.ip4) / ICMP(type=0) / Raw(token()),
    }


def test_live_packets_are_told_as_explain_tells_them(taught, lan, wan):
    """trace shows the same stages, prefix, group, path and verdict as explain."""
    probes = list(mixed(lan, wan).values())
    told = [explained(taught, lan, p) for p in probes]

    with Watching(taught, trace={"port": lan.tap, "count": len(probes)}) as watch:
        lan.send(*probes)
        seen = watch.rest()

    assert seen.pop() == {"packets": len(probes), "lost": 0}
    for row, want in zip(seen, told, strict=True):
        assert abs(row.pop("time_ns") / 1e9 - time.time()) < 60
        want.pop("neighbor", None)  # trace does not ask for it
        assert row == want


FILTERS = {
    "port": ({"port": "lan0"}, "all"),
    "another port": ({"port": "wan0"}, ""),
    "destination": ({"dst": HOST}, "udp, tcp, from elsewhere, ttl"),
    "prefix": ({"dst": NET}, "udp, tcp, other host, from elsewhere, ttl"),
    "source": ({"src": "192.0.2.9"}, "from elsewhere"),
    "either end": ({"host": "192.0.2.64/26"}, "ping"),
    "IPv6": ({"dst": NET6}, "udp6"),
    "protocol": ({"proto": 6}, "tcp"),
    "source port": ({"sport": 1006}, "many"),
    "destination port": ({"dport": 53}, "udp, udp6, other host"),
    "5-tuple": ({"dst": HOST, "proto": 17, "sport": 1001, "dport": 53}, "udp"),
    "dropped": ({"verdict": "dropped"}, "hole, ttl, no route"),
    "punted": ({"verdict": "punted"}, "ping"),
    "forwarded": (
        {"verdict": "forwarded", "dst": "0.0.0.0/0"},
        "udp, tcp, other host, from elsewhere, many",
    ),
    "reason": ({"reason": "blackhole"}, "hole"),
    "cause of an ICMP error": ({"reason": "no_route"}, "no route"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_only_what_was_asked_for_is_told(taught, lan, wan, name):
    """trace shows only packets that match its filter: port, prefix, 5-tuple, verdict or reason."""
    want, names = FILTERS[name]
    probes = mixed(lan, wan)
    names = list(probes) if names == "all" else [n for n in names.split(", ") if n]

    with Watching(taught, trace={"count": 100, "for_s": 3, **want}) as watch:
        lan.send(*probes.values())
        rows = watch.rest()

    frames = [row["frame"] for row in rows[:-1] if row["port"] != "wan0"]
    own = [f for f in frames if f in {bytes(p)[:128].hex() for p in probes.values()}]
    assert own == [bytes(probes[n])[:128].hex() for n in names]
    assert rows[-1]["lost"] == 0


@pytest.mark.smoke
def test_count_and_time_end_it(taught, lan):
    """A trace ends after its count or its time, whichever is first. The last row has the
    sum."""
    with Watching(taught, trace={"dst": HOST, "count": 2}) as watch:
        lan.send(*[lan.probe(HOST) for _ in range(5)])
        assert watch.rest()[2:] == [{"packets": 2, "lost": 0}]
    taught.fence(lan)  # the forwarder has handled all five packets
    with Watching(taught, trace={"dst": HOST, "for_s": 0.3}) as watch:
        begin = time.monotonic()
        assert watch.rest() == [{"packets": 0, "lost": 0}]
        assert time.monotonic() - begin < 5


def test_a_later_drop_is_told_too(taught, lan, wan, given_up_soon):
    """trace shows a drop by the punt thread: a neighbor never answers, and the packet that
    waited is dropped."""
    with Watching(taught, trace={"dst": "192.0.2.99", "count": 2}) as watch:
        lan.send(lan.probe("192.0.2.99"))
        held, gone = watch.take(2)

    assert (held["verdict"], held["reason"]) == ("punted", "unresolved")
    assert (gone["point"], gone["verdict"]) == ("lost", "dropped")
    assert gone["reason"] == "neigh_failed" and gone["frame"] == held["frame"]


def test_a_reader_that_stops_reading_delays_no_packet(taught, lan, wan):
    """A reader stops reading: its records are lost and counted, and every packet is forwarded.
    The trace runs longer on a machine that sends slowly, because all packets must be sent while
    it runs."""
    for seconds in (2, 6, 20):
        begin = time.monotonic()
        with Watching(taught, trace={"dst": HOST, "for_s": seconds}) as watch:
            with taught.stream(lan, HOST, rate=6000) as stream:
                eventually(lambda: stream.sent > 6000, 20)
            in_time = time.monotonic() < begin + seconds
            assert stream.lost(wan) == []
            *told, total = watch.rest()
        if in_time:
            break

    assert len(told) == total["packets"] >= 300 and total["lost"] > 0
    assert total["packets"] + total["lost"] == stream.sent


def test_eight_at_a_time_and_places_come_back(taught):
    """The ninth trace is refused with a sentence. A trace that ends gives its place back."""

    def eight():
        with contextlib.ExitStack() as all_of_them:
            for _ in range(8):
                all_of_them.enter_context(Watching(taught, trace={}))
            with pytest.raises(LookupError, match="8 traces"):
                Watching(taught, trace={})
        return True

    assert eight()
    eventually(eight, 5)
    eventually(eight, 5)


def test_the_place_of_another_brings_no_strangers(taught, lan):
    """A new session never gets packets that match the filter of an old one."""
    for n in range(30):
        want = {"sport": 2000 + n, "count": 1}
        # The traces of the last test have their places until the daemon notices that their
        # connections have ended.
        with eventually(lambda w=want: Watching(taught, trace=w), 5) as watch:
            lan.send(*lan.flow_frames(HOST, [(2000 + k, 4001) for k in range(30)]))
            row, total = watch.rest()
            assert row["sport"] == 2000 + n and total["lost"] == 0


def test_trace_for_people_and_scripts(taught, lan):
    """fpmctl trace prints a line for each stage, with --json one array, and ends with exit code
    0."""
    for words in ([], ["--json"]):
        argv = [taught.daemon.ctl, "-s", taught.socket, *words, "trace"]
        argv += ["dst", HOST, "proto", "udp", "count", "2"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:

            def sent_until_done():
                lan.send(lan.probe(HOST))
                return child.poll() is not None

            eventually(sent_until_done, 10, 0.02)
            text = child.stdout.read()
            assert child.returncode == 0
        if words:
            assert [r["verdict"] for r in json.loads(text)] == ["forwarded"] * 2
        else:
            assert text.count("FORWARDED by wan0") == 2 and f"route      {NET} bgp" in text
            assert f"arrived    lan0 from {lan.mac} to {lan.port_mac}\n" in text


def test_no_packet_in_the_time_is_told(taught, tmp_path):
    """Without a matching packet a line is on stderr. trace ends with exit code 3 (nothing
    found). A capture ends with exit code 0 and writes a valid file."""
    never = ["dst", "203.0.113.250", "sport", "4", "for", "0.2"]
    told = "fpmctl: no matching packet in 0.2 s\n"
    for words, out in ((["trace"], ""), (["--json", "trace"], "[]\n")):
        done = taught.fpmctl(*words, *never)
        assert (done.returncode, done.stdout, done.stderr) == (3, out, told)
    path = str(tmp_path / "none.pcapng")
    done = taught.fpmctl("capture", "-w", path, *never)
    assert (done.returncode, done.stderr) == (0, told + f"0 packets in {path}\n")
    assert (tmp_path / "none.pcapng").stat().st_size > 0


def test_a_signal_ends_it_well(taught, lan):
    """Ctrl-C: fpmctl closes the JSON array and ends with exit code 0."""
    argv = [taught.daemon.ctl, "-s", taught.socket, "--json", "trace", "dst", HOST]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        with taught.stream(lan, HOST, rate=100):
            assert child.stdout.read(1) == "["
            child.send_signal(signal.SIGINT)
            rest = child.stdout.read()

    assert child.returncode == 0 and json.loads("[" + rest)
