# SPDX-License-Identifier: BSD-3-Clause
"""fpmctl shows the state of the daemon, for people and for scripts (test_api.py tests its JSON).
Its exit code gives the result: 0 done, 1 no daemon, 2 wrong words, 3 nothing found."""

import http.client
import ipaddress
import itertools
import json
import re
import socket
import subprocess
import threading

import pytest
import yaml

from lib import api, netns, preload
from lib.built import only_release
from lib.fpm_speaker import RTN_BLACKHOLE
from lib.wait import LONG, eventually
from impostor import Impostor
from on_time import Clock
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6 = "2001:db8:f000::/36"
MANY = 50_000 if LONG else 20_000  # routes; fpmctl reads 256 at a time from rib

@pytest.fixture
def taught(dut, wan, alt):
    """A router with a few routes of every kind."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route("198.51.100.128/25", via=alt.peer4, wire=alt)
    dut.route(NET6, via=wan.peer6, wire=wan)
    dut.route("203.0.113.0/24", rtm_type=RTN_BLACKHOLE)
    return dut


def rows(dut, *words):
    """Return the rows of `fpmctl --json show ...`, which must succeed."""
    done = dut.fpmctl("--json", "show", *words)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


WORDS = {
    "routes": ["198.51.100.0/24", "192.0.2.66", "wan0", "203.0.113.0/24", "blackhole"],
    "nexthops": ["192.0.2.66", "wan0"],
    "neighbors": ["192.0.2.66", "02:00:00:00:01:02", "wan0", "permanent"],
    "ports": ["lan0", "wan0", "up", "02:00:00:00:00:01"],
    "punt": ["class", "bgp-new", "icmp6-too-big", "policed", "1000"],
    "fpm": [
        "connected",
        "generation",
        "limit 512.0 MiB",
        "1 s without updates",
        "at most 10",
        "lag",
        "confirmed",
        "before 2 s",
        "Feedback   off",
        "Commits",
        "Grace",
    ],
    "interfaces": ["lan0", "yes", "192.0.2.1/26", "lo"],
    "fib": ["ipv4", "ipv6", "mib", "nodes"],
    "threads": ["fwd-0", "fdp-rib", "cpu seconds"],
    "log": ["session up"],
    "memory": ["process", "IPv4", "RIB"],
    "version": ["fpm-dataplane", "DPDK"],
}


@pytest.mark.parametrize("what", WORDS)
def test_every_show_for_people(taught, what):
    """Without --json every show prints a table with the important names and lines of moderate
    length."""
    done = taught.fpmctl("show", what)

    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout.lower()
    assert [w for w in WORDS[what] if w.lower() not in text] == [], done.stdout
    assert "{" not in text and max(map(len, text.splitlines())) <= 160


def test_counters_for_people_hide_zeros_unless_asked(taught, lan):
    """`show counters` leaves out counters that are zero; `show counters all` prints every
    counter."""
    lan.srp1(lan.probe("198.51.100.9", ttl=1))

    def names(*words):
        """Return the second column. A long text continues in lines that begin with blanks."""
        lines = taught.fpmctl("show", "counters", *words).stdout.splitlines()[1:]
        return {line.split()[1] for line in lines if not line.startswith(" ")}

    short, full = names(), names("all")
    counted = rows(taught, "counters")
    zero = {r["name"] for r in counted if r["value"] == 0}
    assert zero and {r["name"] for r in counted} == full
    assert "ttl" in short and not zero & short


def test_cycles_are_shown_when_there_are_any(taught, lan):
    """One of 251 rounds with traffic is timed. Before the first timed round, `show cycles` prints a
    sentence that there is none."""

    def shown():
        lan.send(*(lan.probe("203.0.113.9") for _ in range(100)))
        text = taught.fpmctl("show", "cycles").stdout.lower()
        return "cycles/packet" in text and text

    text = eventually(shown, 20, 0.01)
    words = ["thread", "fwd-0", "receive", "lookup", "send"]
    assert [w for w in words if w not in text] == []
    assert rows(taught, "cycles")[0].keys() >= set("thread stage cycles packets bursts".split())


@pytest.mark.smoke
def test_drops_say_what_they_mean_and_what_to_do(taught, lan):
    """Each reason has a line of meaning and, where an operator can act, a line of advice."""
    lan.srp1(lan.probe("198.51.100.9", ttl=1))

    text = taught.fpmctl("show", "drops").stdout
    every = taught.fpmctl("show", "drops", "all").stdout

    assert "ttl" in text and "traceroute" in text and "forwarded4" not in every
    names = [r["name"] for r in rows(taught, "counters") if r["kind"] == "drop"]
    assert [n for n in names if f"\n{n} " not in every] == []
    assert max(map(len, every.splitlines())) <= 80
    one = taught.fpmctl("show", "drops", "ttl").stdout
    assert len([line for line in one.splitlines() if line.startswith("ttl")]) == 1


@pytest.mark.parametrize(
    "words", ["ports --rates=0.1", "interfaces", "punt", "counters all", "nexthops",
              "neighbors", "memory", "fib", "threads", "version", "fpm"]
)  # fmt: skip
def test_tables_fit_a_terminal(taught, words):
    """Tables fit 80 columns, as far as names of files and devices allow."""
    done = taught.fpmctl("show", *words.split())

    assert [t for t in done.stdout.splitlines() if len(t) > 80] == []
    assert "\033" not in done.stdout


def test_a_name_chooses_a_row(taught):
    """A name chooses one port, class or counter. An unknown name gives exit code 3."""
    assert [r["name"] for r in rows(taught, "ports", "wan0")] == ["wan0"]
    assert [r["class"] for r in rows(taught, "punt", "icmp")] == ["icmp"]
    assert [r["address"] for r in rows(taught, "neighbors", "192.0.2.66")] == ["192.0.2.66"]
    for words in (["ports", "nowhere0"], ["punt", "frob"], ["drops", "frob"]):
        assert taught.fpmctl("show", *words).returncode == 3
    for name in (b"\xff", "", "x" * 64):
        assert taught.fpmctl("show", "ports", name).returncode == 2


@pytest.mark.smoke
def test_words_choose_among_rows(taught, wan, alt):
    """Words choose rows: by a next hop, of which one must match all words; by protocol; by state.
    No row gives exit code 3."""
    dut = taught
    both = dut.zebra.group([dut.zebra.hop(w.peer4, w) for w in (wan, alt)])
    dut.route("198.18.0.0/24", nhid=both)
    chosen = lambda what, key, *words: {r[key] for r in rows(dut, what, *words)}  # noqa: E731
    mine = lambda *words: chosen("routes", "prefix", *words)  # noqa: E731

    assert mine("via", alt.peer4) == {"198.51.100.128/25", "198.18.0.0/24"}
    assert mine("via", wan.peer4, "dev", wan.tap) == {NET, "198.18.0.0/24"}
    assert mine("via", wan.peer6.replace("::", ":0::"), "-6") == {NET6}
    assert mine("state", "blackhole") == {"203.0.113.0/24"}
    assert mine(NET, "dev", wan.tap) == {NET}
    assert f"{wan.ip4}/32" in mine("proto", "local") and NET not in mine("proto", "local")
    assert NET in mine("proto", "bgp") and f"{wan.ip4}/32" not in mine("proto", "bgp")
    assert both in chosen("groups", "nexthop_id", "via", wan.peer4)
    assert chosen("neighbors", "dev", "dev", wan.tap) == {wan.tap}
    assert chosen("neighbors", "state", "state", "permanent") == {"permanent"}
    assert rows(dut, "log") and not [x for x in dut.fpmctl(
        "show", "log", "level", "error").stdout.splitlines() if " I " in x]  # fmt: skip
    for words in (["via", wan.peer4, "dev", alt.tap], ["proto", "rip"]):
        done = dut.fpmctl("show", "routes", *words)
        assert (done.returncode, done.stdout) == (3, f"no rows of routes match {' '.join(words)}\n")


def test_rates_are_what_moved(taught, lan):
    """--rates reads twice, some time apart, and prints the rate beside each counter."""
    with taught.stream(lan, "203.0.113.9", rate=500):
        found = rows(taught, "drops", "blackhole", "--rates=0.5")
        text = taught.fpmctl("show", "ports", "lan0", "--rates=0.5").stdout

    assert found[0]["value_per_s"] > 50
    assert "now rx " in text and "pps" in text


def rates_of(dut, tmp_path, what, *answers):
    """Return the rows and the table of `show WHAT --rates`. The daemon gives these two answers in turn."""
    path, turns = str(tmp_path / f"{what}.sock"), itertools.cycle(answers)
    impostor = Impostor(path, lambda _: next(turns))
    try:
        done = dut.fpmctl("--json", "--rates=0.1", "show", what, socket_path=path)
        return json.loads(done.stdout), dut.fpmctl("--rates=0.1", "show", what, socket_path=path).stdout
    finally:
        impostor.close()


def test_drops_of_a_vrf_and_of_a_program_have_rates(dut, tmp_path):
    """--rates has the rate of each counter of a VRF and of a program, also of the drops."""
    red = {"name": "red", "table": 10, "published": True, "rx_packets": 0, "rx_bytes": 0, "dropped": 0}
    more = red | {"rx_packets": 900_000, "rx_bytes": 90_000_000, "dropped": 500_000}
    hook = {"dev": "lan0", "packets": 0, "dropped": 0, "marked": 0, "moved": 0, "errors": 0}

    (row,), text = rates_of(dut, tmp_path, "vrfs", [red], [more])
    (program,), _ = rates_of(dut, tmp_path, "hooks", [hook], [hook | dict.fromkeys(list(hook)[1:], 500)])

    assert row["rx_packets_per_s"] > row["dropped_per_s"] > 0
    assert re.search(r"^per second +\S+ [kM] +\S+ [kM] +\S+ [kM]$", text, re.M), text
    assert {key for key in program if key.endswith("_per_s")} == {f"{key}_per_s" for key in list(hook)[1:]}


def test_counters_that_begin_again_have_no_rates(dut, lan, tmp_path):
    """After a restart of the daemon, --rates prints no negative rate: how much the old counters grew is unknown."""
    row = dut.port_row(lan)
    old = row | {"rx_packets": 5_000_000, "rx_bytes": 400_000_000, "tx_packets": 0, "tx_bytes": 0}
    new = row | {"rx_packets": 12, "rx_bytes": 900, "tx_packets": 500_000, "tx_bytes": 40_000_000}

    (rates,), text = rates_of(dut, tmp_path, "ports", [old], [new])

    assert [key for key in rates if key.endswith("_per_s")] == []
    assert "lan0 " in text and "now rx " not in text


def test_a_sid_of_two_tables_has_two_rates(dut, tmp_path):
    """A table that a rule names may have the SID of another table. --rates compares each with itself."""
    hop = {"dev": "wan0", "srv6": "End.DT6 table 254"}
    sid = {"sid": "2001:db8:5::1/128", "nexthops": [hop], "packets": 0, "bytes": 0, "errors": 0}
    old = [sid | {"table": 100, "packets": 10_000}, sid | {"table": 254}]
    new = [sid | {"table": 100, "packets": 30_000}, sid | {"table": 254, "packets": 10_000}]

    (first, second), _ = rates_of(dut, tmp_path, "sids", old, new)

    assert first["packets_per_s"] > second["packets_per_s"] > 0


def test_watch_shows_again_and_again(taught):
    """--watch prints each page as an array of its own, until a signal ends fpmctl."""
    argv = [taught.daemon.ctl, "-s", taught.socket, "--json", "--watch=0.1", "show", "ports"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as watch:
        decoder, text, looks = json.JSONDecoder(), "", []
        while len(looks) < 3:
            text += watch.stdout.readline()
            if text.endswith("]\n"):
                looks.append(decoder.decode(text))
                text = ""
        watch.terminate()

    assert "rx_packets_per_s" not in looks[0][0] and "rx_packets_per_s" in looks[2][0]


def test_counters_tell_of_exactly_what_was_sent(taught, lan):
    """Counters are exact when the router is at rest, because each counter has one writer."""
    before = {(r["kind"], r["name"]): r["value"] for r in rows(taught, "counters")}
    lan.send(*(lan.probe("203.0.113.9") for _ in range(37)))
    taught.fence(lan)

    now = {(r["kind"], r["name"]): r["value"] for r in rows(taught, "counters")}

    assert now[("drop", "blackhole")] - before[("drop", "blackhole")] == 37


def test_exact_and_longest(taught):
    """`show routes` takes a prefix exactly and an address by its longest match. With the word
    `longest` a prefix finds the longest match, too."""
    dut = taught
    one = lambda *words: [r["prefix"] for r in rows(dut, "routes", *words)]  # noqa: E731

    assert one(NET) == [NET]
    assert one("198.51.100.200") == ["198.51.100.128/25"]
    assert one("198.51.100.1") == [NET]
    assert one("198.51.100.64/26", "longest") == [NET]
    assert one("2001:db8:f123::1") == [NET6]
    assert one("192.0.2.70") == ["192.0.2.64/26"]
    assert one("192.0.2.65") == ["192.0.2.65/32"]


def test_host_bits_are_masked_and_said(taught):
    """fpmctl masks host bits, so that the address of an interface finds its prefix, and says so on
    stderr. It says nothing when no bit is masked, and stdout contains only JSON."""
    done = taught.fpmctl("--json", "show", "routes", "198.51.100.9/24")

    assert done.returncode == 0
    assert [row["prefix"] for row in json.loads(done.stdout)] == [NET]
    said = "fpmctl: 198.51.100.9/24 has host bits set; looking up 198.51.100.0/24\n"
    assert done.stderr == said
    assert taught.fpmctl("show", "routes", NET).stderr == ""
    assert taught.fpmctl("show", "routes", "2001:db8:f000::/36").stderr == ""
    missing = taught.fpmctl("show", "routes", "8.8.8.8/8")
    said = "no prefix 8.0.0.0/8; `longest` finds the prefix that covers it\n"
    assert (missing.returncode, missing.stdout) == (3, said)


def test_tables_for_people_have_one_header(taught):
    """A table has one line with the names of the columns."""
    text = taught.fpmctl("show", "routes").stdout.splitlines()

    assert text[0].split() == ["PREFIX", "SOURCE", "NEXT", "HOPS"]
    assert [line for line in text[1:] if "PREFIX" in line] == []


def test_seconds_have_three_decimals(taught):
    """Seconds have at most three decimals, as measured."""
    taught.control.close()
    text = taught.fpmctl("--json", "show", "fpm").stdout

    ages = re.findall(r'"(?:uptime|last_rx_age|summary_age)_s": ?([0-9.]+)', text)
    assert len(ages) == 3 and all(len(age.partition(".")[2]) <= 3 for age in ages), ages


def test_neighbors_are_sorted(taught):
    """Neighbors are sorted by port, family and address."""
    order = lambda r: (
        r["dev"],
        ":" in r["address"],
        ipaddress.ip_address(r["address"]),
    )  # noqa: E731
    found = rows(taught, "neighbors")

    assert len(found) >= 8 and found == sorted(found, key=order)
    text = taught.fpmctl("show", "neighbors").stdout.splitlines()[1:]
    assert [line.split()[0] for line in text] == [r["address"] for r in found]


def test_groups_are_counted_as_they_are_shown(taught):
    """`show fpm` and `show groups` count the same groups."""
    eventually(lambda: rows(taught, "fpm")[0]["groups"] == len(rows(taught, "groups")), 3)


def test_an_id_that_zebra_deleted_is_told(taught, wan):
    """After DELNEXTHOP of an id or a member in use, the last next hop stays, and fpmctl shows that
    it was deleted."""
    zebra = taught.zebra
    member = zebra.hop(wan.peer4, wan)
    group = zebra.group([member])
    zebra.add("198.18.0.0/24", group)
    taught.in_force("198.18.0.0/24")
    told = lambda: [
        r["nexthop_id"] for r in rows(taught, "groups") if r["absent"]
    ]  # noqa: E731
    assert told() == []

    zebra.drop_hop(member)

    eventually(lambda: told() == [group], 3)
    assert "deleted by FRR while in use" in taught.fpmctl("show", "groups").stdout
    eventually(lambda: "(1 deleted while in use)" in taught.fpmctl("show", "fpm").stdout, 3)


def test_show_filter_without_a_table_names_the_key(dut):
    """Without the key `filter.table`, `show filter` prints a sentence and no empty table."""
    said = dut.fpmctl("show", "filter").stdout
    assert said == "filter off: the configuration has no `filter.table`\n"


def test_family_filters(taught):
    """-4 and -6 choose the rows of one family."""
    for what, key in (("routes", "prefix"), ("neighbors", "address")):
        everything = {r[key] for r in rows(taught, what)}
        four, six = ({r[key] for r in rows(taught, what, w)} for w in ("-4", "-6"))
        assert four and six and four | six == everything
        assert {":" in k for k in four} == {False} and {":" in k for k in six} == {True}


@pytest.mark.parametrize(
    "words", [["198.51.100.0/26"], ["198.51.100.9", "exact"], ["8::8"]]
)
def test_nothing_found_is_3(taught, words):
    """No match gives exit code 3, for scripts that ask whether a route exists."""
    for extra in ([], ["--json"]):
        done = taught.fpmctl(*extra, "show", "routes", *words)
        assert done.returncode == 3


def test_an_unknown_name_is_answered_with_the_command_that_lists_names(taught):
    """For a name that chooses no row, fpmctl prints the command that lists all names."""
    for what, lists in (("fib", "show fib"), ("counters", "show counters all")):
        done = taught.fpmctl("show", what, "summary")
        assert done.returncode == 3
        assert done.stdout == f"no row summary in {what}; `fpmctl {lists}` lists all\n"


WRONG = [
    [],
    ["show"],
    ["frobnicate"],
    ["show", "frobs"],
    ["show", "version", "surplus"],
    ["show", "ports", "lan0", "surplus"],
    ["show", "routes", "--rates"],
    ["--rates", "audit"],
    ["show", "routes", "300.1.1.1"],
    ["show", "routes", "198.51.100.0/33"],
    ["show", "routes", "2001:db8::/129"],
    ["show", "routes", "198.51.100.9", "shortest"],
    ["show", "routes", "via", "wan0"],
    ["show", "routes", "dev"],
    ["show", "routes", "dev", "wan0", "dev", "lan0"],
    ["show", "ports", "dev", "wan0", "state", "up"],
    ["--frobnicate", "show", "ports"],
    ["help", "me"],
]


@pytest.mark.parametrize("words", WRONG, ids=lambda w: " ".join(w) or "none")
def test_wrong_words_are_2_with_the_usage(dut, words):
    """Wrong words give a usage line on stderr, nothing on stdout and exit code 2."""
    done = dut.fpmctl(*words)

    assert done.returncode == 2 and done.stdout == ""
    said = ("usage:", "routes", "`fpmctl help`")
    assert any(text in done.stderr for text in said), done.stderr


def test_a_word_with_a_list_says_its_list(dut):
    """fpmctl lists the same states, protocols and levels as the specification of the API."""
    schemas = api.SPEC["components"]["schemas"]
    of = lambda kind: set(schemas[kind]["enum"])  # noqa: E731
    for words, values in (
        ("routes state", of("State")), ("groups state", of("State")),
        ("neighbors state", of("NeighborState")),
        ("routes proto", {"bgp", "static", "connected", "local"}),
        ("log level", {"error", "warn", "info", "debug"}),
    ):  # fmt: skip
        done = dut.fpmctl("show", *words.split(), "FROB")
        assert (done.returncode, done.stdout) == (2, "")
        said = re.fullmatch(r"fpmctl: \w+ 'FROB' is none of (.*)\n", done.stderr)
        said = set(re.split(", (?:nor a number.*)?", said[1])) - {""}
        assert said == values or (words == "routes proto" and said > values)
        completed = dut.fpmctl("--complete", "show", *words.split()).stdout.split()
        assert set(completed) == said


def test_a_next_hop_is_found_by_its_id(taught, wan):
    """A next hop is found by its id, with gateway, interface, state, and the groups and routes that
    use it."""
    zebra = taught.zebra
    nhid = zebra.hop(wan.peer4, wan)
    zebra.add("198.18.1.0/24", zebra.group([nhid]))
    zebra.add("198.18.2.0/24", nhid)
    taught.in_force("198.18.2.0/24")
    (row,) = rows(taught, "nexthops", f"00{nhid}")
    assert (row["nexthop_id"], row["via"], row["dev"]) == (nhid, wan.peer4, wan.tap)
    assert (row["state"], row["groups"], row["routes"]) == ("forwarding", 1, 1)
    assert row in rows(taught, "nexthops", "via", wan.peer4, "state", "forwarding")
    assert taught.fpmctl("show", "nexthops", "state", "failed").returncode == 3
    assert str(nhid) in taught.fpmctl("--complete=nexthops").stdout.split()
    shown = taught.fpmctl("show", "nexthops", str(nhid)).stdout.splitlines()[1]
    assert shown.split() == [str(nhid), "forwarding", "1", "1", "via", wan.peer4, "dev", wan.tap]


def test_a_group_is_found_by_its_number(taught):
    """A group is found by its number, as explain prints it. Completion offers the number after one
    digit."""
    group = str(taught.route_row(NET)["group"])
    (row,) = rows(taught, "groups", group)
    assert str(row["group"]) == group and rows(taught, "groups", "00" + group) == [row]
    assert group in taught.fpmctl("--complete=groups").stdout.split()
    assert taught.fpmctl("show", "groups", "99999999").returncode == 3
    assert taught.fpmctl("show", "groups", "wan0").returncode == 2


@pytest.mark.parametrize(
    "words", [["help", "me"], ["show", "me"], ["show", "version", "me"], ["me", "show"]]
)
def test_the_word_to_blame_is_named(dut, words):
    """fpmctl names the first word that it does not understand, not the words before it."""
    assert dut.fpmctl(*words).stderr.startswith("fpmctl: unexpected word 'me'\n")


@pytest.mark.parametrize(
    "words, meant", [("show route", "routes"), ("show port", "ports"), ("confg show", "config"),
                     ("show neigbors", "neighbors"), ("shwo ports", None), ("show me", None)]
)  # fmt: skip
def test_a_word_that_is_nearly_right_has_a_hint(dut, words, meant):
    """A word that is cut short or misspelt by a letter or two gets a hint. A word that may have any
    value gets none."""
    first = dut.fpmctl(*words.split()).stderr.splitlines()[0]
    assert first.partition("'; ")[2] == (f"did you mean {meant}?" if meant else ""), first


def test_no_daemon_is_1_with_one_sentence(dut, tmp_path):
    """A missing socket, and a socket without a daemon, give exit code 1 and one sentence with the
    path."""
    stale = str(tmp_path / "stale.sock")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(stale)
    for path in ("/nowhere/control.sock", stale, "/etc/passwd"):
        done = dut.fpmctl("show", "ports", socket_path=path)
        assert done.returncode == 1 and done.stdout == ""
        assert len(done.stderr.strip().splitlines()) == 1 and path in done.stderr


def test_help_is_0(dut):
    """--help and help print the whole help on stdout, with exit code 0."""
    for words in (["--help"], ["help"]):
        done = dut.fpmctl(*words)
        assert done.returncode == 0 and "usage:" in done.stdout


def test_many_routes_are_streamed(dut, lan, wan):
    """The list of routes is complete, in order and made in slices. Forwarding, other requests and
    route changes go on meanwhile, and a client that does not read delays no other. Time in which
    the machine ran other programs does not count."""
    dut.route(NET, via=wan.peer4, wire=wan)
    nhid = dut.zebra.hop(wan.peer6, wan)
    dut.zebra.speaker.routes("2001:db8:e000::/64", MANY, nhid)
    eventually(lambda: dut.fpm()["zebra6"] == MANY, 30, 0.05)
    argv = [dut.daemon.ctl, "-s", dut.socket, "--json", "show", "routes"]

    with (
        dut.stream(lan, HOST) as stream,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lazy,
    ):
        said = []  # converted to rows later, because the work would keep this thread from reading
        reader = threading.Thread(
            target=lambda: said.append(dut.fpmctl("--json", "show", "routes"))
        )
        reader.start()
        waited = []
        while reader.is_alive():
            clock = Clock(dut)
            assert dut.control.ask("version")
            waited.append(clock.seconds())
            reader.join(0.01)
        reader.join()
        clock = Clock(dut)
        dut.route("203.0.113.0/24", rtm_type=RTN_BLACKHOLE)
        added = clock.seconds()
        lazy.kill()
        lazy.communicate()

    try:
        found = json.loads(said[0].stdout)
        assert len([r for r in found if r["source"] == "zebra"]) == MANY + 1
        six = [r["prefix"] for r in found if r["prefix"].startswith("2001:db8:e")]
        assert six == sorted(six, key=_packed) and len(set(six)) == MANY
        assert stream.lost(wan) == []
        assert max(waited) < 0.5 and added < 0.5
    finally:
        dut.zebra.speaker.routes_del("2001:db8:e000::/64", MANY)
        eventually(lambda: dut.fpm()["zebra6"] == 0, 30, 0.05)


def _packed(prefix):
    return ipaddress.ip_network(prefix).network_address


def test_a_policer_is_changed_while_packets_pass(dut):
    """`set policer` changes the given values and keeps the others. Its row has the values in
    force."""
    row = lambda: next(r for r in rows(dut, "punt") if r["class"] == "dhcp")  # noqa: E731
    before = row()
    try:
        words = ["set", "policer", "dhcp", "rate", "unlimited", "source-burst", "7"]
        done = dut.fpmctl("--json", *words)
        assert (done.returncode, done.stderr) == (0, "")
        now = json.loads(done.stdout)[0]
        assert now == row()
        assert (now["rate"], now["source_burst"]) == (None, 7)
        assert now["burst"] == before["burst"] and now["source_rate"] == before["source_rate"]
        assert "unlimited" in dut.fpmctl("set", "policer", "dhcp", "burst", "9").stdout
        assert "policer set class=dhcp rate=unlimited burst=9 " in dut.log(5)
    finally:
        dut.fpmctl("set", "policer", "dhcp", "rate", str(before["rate"]), "burst",
                   str(before["burst"]), "source-burst", str(before["source_burst"]))  # fmt: skip
    assert row() == before


@pytest.mark.parametrize(
    "words",
    [
        "", "dhcp", "dhcp rate", "dhcp rate x", "dhcp rate 1.5", "dhcp rate 10000001",
        "dhcp burst 0", "dhcp burst unlimited", "dhcp speed 5", "dhcq rate 5",
        "dhcp rate 5 burst", "dhcp rate 5 rate 6",
    ],
)  # fmt: skip
def test_a_wrong_policer_is_refused_and_changes_nothing(dut, words):
    """A wrong policer gives exit code 2 and a sentence, and changes nothing."""
    before = [r["rate"] for r in rows(dut, "punt")]

    done = dut.fpmctl("set", "policer", *words.split())

    assert done.returncode == 2 and done.stderr.startswith("fpmctl: ") and done.stdout == ""
    assert [r["rate"] for r in rows(dut, "punt")] == before


def test_a_reader_that_stops_is_no_error(taught):
    """`fpmctl show routes | head -1`: a closed pipe ends fpmctl without an error message."""
    line = f"{taught.daemon.ctl} -s {taught.socket} show routes | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)

    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("words", ["show fpm --watch=0.1", "show ports --watch=0.1 --json",
                                   "show ports --watch=60"])  # fmt: skip
def test_a_watch_ends_with_its_reader(dut, words):
    """`fpmctl show fpm --watch | grep -q Session` ends at once, with any interval."""
    watch = dut.fpmctl_begin(*words.split())
    try:
        assert watch.stdout.readline()
        watch.stdout.close()
        assert watch.wait(10) == 0 and watch.stderr.read() == ""
    finally:
        watch.kill()
        watch.wait()


def test_the_version_shows_the_daemon_that_answers(dut):
    """`show version` prints the pid and the configuration of the running daemon."""
    row = rows(dut, "version")[0]

    assert row["pid"] == dut.daemon.process.pid
    assert row["config"] == dut.config
    with open(dut.config, encoding="utf-8") as file:
        conf = yaml.safe_load(file)
    assert row["fpm_listen"] == conf["fpm"]["listen"] != conf["metrics"]
    assert row["control_netns"] == conf["control-netns"]
    assert row["memory_mib"] == conf["memory"]["size-mib"]
    assert (row["routes_from"], row["bfd_dplane"]) == ("both", None)


def test_connections_that_come_and_go_leave_nothing_behind(dut):
    """Three hundred requests, each on a connection of its own, do not grow the memory of the
    daemon."""
    only_release(dut.daemon.program, "memory is")
    before = dut.rss()
    for _ in range(300):
        dut.control.close()
        dut.control.ask("ports")

    assert dut.rss() - before < 4 << 20


def test_metrics_agree_with_counters(own_dut):
    """The metrics page has the text format, names with units, and the same values as the
    counters."""
    dut = own_dut(metrics="127.0.0.1:9620")
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    lan.send(
        *(lan.probe(HOST) for _ in range(5)), *(lan.probe("203.0.113.1") for _ in range(3))
    )
    wan.expect_many(lambda d: token_of(d) is not None, 5)
    dut.fence(lan)

    with netns.entered(dut.ctl):
        page = http.client.HTTPConnection("127.0.0.1", 9620, timeout=5)
        page.request("GET", "/metrics")
        reply = page.getresponse()
    text = reply.read().decode()

    assert reply.status == 200 and "text/plain" in reply.getheader("Content-Type")
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name] = float(value)
    total = sum(v for n, v in values.items() if n.startswith("fpmdp_drop_packets_total")
                and 'reason="no_route"' in n)  # fmt: skip
    assert total == 3
    passed = sum(
        v for n, v in values.items() if n.startswith("fpmdp_forwarded_packets_total")
    )
    assert passed == 5
    assert values['fpmdp_punt_class_packets_total{class="icmp4-unreach",verdict="passed"}'] == 3
    assert values['fpmdp_policer_rate_packets_per_second{class="icmp"}'] == 2000


@pytest.fixture
def macvlan_of_lan(dut):
    """A macvlan of lan0 that is an interface of the dataplane."""
    dut.ip("link add vr8 link lan0 type macvlan mode bridge", "link set vr8 up")
    eventually(lambda: [r["name"] for r in rows(dut, "interfaces") if r.get("macvlan")], 5, 0.02)
    yield "vr8"
    dut.ip("link del vr8")


def test_an_alternative_name_is_a_name(taught, lan, wan, macvlan_of_lan):
    """`ip`, `tc` and rules of the kernel take alternative names of interfaces (ip-link(8), `property`),
    so commands and requests take them, too. Answers have the primary names."""
    dut, names = taught, {"wan0": "uplink-to-the-provider", "lan0": "office", macvlan_of_lan: "virtual-router"}
    dut.ip(*[f"link property add dev {own} altname {name}" for own, name in names.items()])
    try:
        for own, name in names.items():
            assert [r["name"] for r in rows(dut, "interfaces", name)] == [own]
        assert [r["name"] for r in rows(dut, "ports", "uplink-to-the-provider")] == ["wan0"]
        assert {r["dev"] for r in rows(dut, "neighbors", "dev", "uplink-to-the-provider")} == {"wan0"}
        routes = rows(dut, "routes", "dev", "uplink-to-the-provider")
        assert {NET, NET6} <= {r["prefix"] for r in routes}
        assert all(h["dev"] == "wan0" for r in routes for h in r["nexthops"])
        words = ["explain", "port", "office", "src", lan.peer4, "dst", HOST]
        assert dut.fpmctl(*words).stdout.replace("office", "lan0") == dut.fpmctl(
            *[w.replace("office", "lan0") for w in words]
        ).stdout
        # The former name of an interface is often kept as an alternative name.
        dut.rename("wan0", "uplink")
        dut.ip("link property add dev uplink altname wan0")
        for name in ("wan0", "uplink", "uplink-to-the-provider"):
            assert [r["name"] for r in rows(dut, "ports", name)] == ["wan0"]
            assert [r["name"] for r in rows(dut, "interfaces", name)] == ["uplink"]
            assert dut.fpmctl("explain", "port", name, "src", wan.peer4, "dst", lan.peer4).returncode == 0
        done = dut.fpmctl("trace", "port", "virtual-router", "count", "1", "for", "1")
        assert done.returncode in (0, 3), done.stderr
    finally:
        dut.ip(*[f"link property del dev {name} altname {name}" for name in names.values()])
        if any(link["ifname"] == "uplink" for link in dut.links()):
            netns.run(dut.ctl, ["ip", "link", "property", "del", "dev", "uplink", "altname", "wan0"], check=False)
            dut.rename("uplink", "wan0")
    assert dut.fpmctl("show", "ports", "uplink-to-the-provider").returncode == 3
    done = dut.fpmctl("explain", "port", "office", "dst", HOST)
    assert done.returncode == 2 and "no port or VLAN 'office'" in done.stderr


def test_a_known_name_does_not_wait_for_the_kernel(own_dut, monkeypatch):
    """The router asks the kernel only for a name that it does not know itself. The kernel may answer
    late, because another process changes interfaces. Here it never answers the thread of requests."""
    dut = own_dut()
    preload.start(dut, monkeypatch, "netlink_mute", NETLINK_MUTE="fdp-ui")
    for words in (("interfaces", "wan0"), ("ports", "wan0"), ("neighbors", "dev", "wan0")):
        assert dut.fpmctl("--json", "show", *words).stderr == ""
    assert dut.fpmctl("explain", "port", "wan0", "dst", HOST).returncode == 3  # no route
    assert "netlink_mute: " not in dut.log()
    assert dut.fpmctl("show", "interfaces", "uplink").returncode == 3
    assert "netlink_mute: a request has no answer" in dut.log()
