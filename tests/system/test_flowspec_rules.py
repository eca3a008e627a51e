# SPDX-License-Identifier: BSD-3-Clause
"""fpm_flowspec makes nft rules that hold for exactly the packets of a flow specification."""

import functools
import json
import os
import random
import re
import struct
import subprocess
import sys
import time

import pytest

import flowspec_random as made
from flowspec import TABLE
from flowspec_fed import Fed, Frr, NoTable, host
from lib import netns
from lib.flowspec import FOLDER, PROGRAM
from lib.wait import eventually
from router import Router, running
from wire import token_of

sys.path.insert(0, FOLDER)

from fpm_flowspec import action, flow, helper, origin, table, translate, update  # noqa: E402

# FDP_FLOWSPEC_SETS=1000 FDP_FLOWSPEC_PACKETS=500 is the long run; FDP_FLOWSPEC_SEED repeats one.
SETS = int(os.environ.get("FDP_FLOWSPEC_SETS", "30"))
PACKETS = int(os.environ.get("FDP_FLOWSPEC_PACKETS", "60"))
SEED = int(os.environ.get("FDP_FLOWSPEC_SEED", "1"))
CONFIG = f'filter: {{table: ["inet transit", "{TABLE}"]}}\nfpm:\n'
# A table of the operator that accepts all packets, with the parts that the join of tables renumbers.
TRANSIT = """\
table inet transit {
	set hosts { type ipv4_addr; flags interval; elements = { 203.0.113.0/30 } }
	counter seen { }
	chain ports {
		tcp dport vmap { 80 : accept, 443 : return }
	}
	chain forward {
		type filter hook forward priority 0; policy drop;
		ip saddr @hosts counter name "seen" accept
		jump ports
		meta l4proto vmap { tcp : accept, udp : accept, icmp : accept }
		counter accept
	}
}
"""
DROP, ACCEPT = action.Actions(bytes_s=0), action.Actions()


class Judged:
    """A router that obeys the table, and the table."""

    def __init__(self, dut):
        self.dut, self.lan = dut, dut.wires["lan"]
        self.table, self.transactions = table.Table(self._nft, number=self._generation), 0

    def _generation(self):
        with netns.entered(self.dut.ctl):
            return table.generation()

    def _nft(self, text, *options):
        argv = ["nft", *options, *(["-f", "-"] if text is not None else [])]
        self.transactions += text is not None
        try:
            return netns.run(self.dut.ctl, argv, stdin=text)
        except netns.CommandError as why:
            raise table.NftError(str(why)) from why

    def load(self, want):
        """Load flows {family: {nlri: Rules}}, and return when the dataplane obeys them."""
        before, done = self._status()["generation_read"], self.transactions
        self.table.load(want)
        if self.transactions == done:
            return
        row = eventually(lambda: (r := self._status())["generation_read"] != before and r, 20, 0.002)
        assert row["state"] == "in-force", row["refused"]
        # A forwarder may be within a round that began with the previous rules.
        self.dut.fence(self.lan)

    def _status(self):
        return self.dut.control.ask("filter")[0]

    def passed(self, packets):
        """Send packets; return which of them left the router."""
        before = self.dut.counters()
        self.lan.send(*(p.frame for p in packets))
        self.dut.fence(self.lan)
        assert set(self.dut.drops(before)) <= {"filter"}
        out = self.dut.wires["wan"]
        seen = {token_of(data) for data in out.got()}
        out.clear()
        return [token_of(p.frame) in seen for p in packets]


@pytest.fixture(scope="module")
def judged(possible):
    """A router with routes for the packets."""
    with running(Router(name="fsr"), ("fpm:\n", CONFIG)) as dut:
        for prefix in ("198.51.100.0/24", "2001:db8:5::/48"):
            wire = dut.wires["wan"]
            dut.route(prefix, via=wire.peer(6 if ":" in prefix else 4), wire=wire)
        before = dut.control.ask("filter")[0]["generation_read"]
        netns.run(dut.ctl, ["nft", "-f", "-"], stdin=TRANSIT)
        # load() waits for the next change of the tables that the dataplane reads.
        eventually(lambda: dut.control.ask("filter")[0]["generation_read"] != before, 20, 0.002)
        yield Judged(dut)


def in_order(some, family):
    """Return flow specifications in the order of RFC 8955."""
    key = functools.cmp_to_key(lambda a, b: -1 if made.precedes(a, b, family) else 1)
    return sorted(set(some), key=key)


@pytest.mark.parametrize("family", [4, 6])
def test_random_flows_hold_for_their_packets_only(judged, family):
    """With random lists of flow specifications, half of them with the action accept, the dataplane drops
    exactly the packets that RFC 8955 and 8956 require."""
    rnd = random.Random(f"{SEED} {family}")
    refused, dropped, total, kept = 0, 0, 0, {}
    for number in range(SETS):
        new = [made.nlri(rnd, family) for _ in range(rnd.choice((1, 3, 12)))]
        some = in_order([*kept, *new], family)
        acts, want = {}, {4: {}, 6: {}}
        parsed = [flow.parse(family, octets) for octets in some]
        assert sorted(parsed, key=flow.order) == parsed
        for one in parsed:
            act = kept.get(one.nlri) or rnd.choice((DROP, ACCEPT))
            try:
                want[family][one.nlri] = translate.rules(one, act)
                acts[one.nlri] = act
            except flow.Refused as why:
                assert str(why) == "no packet matches it"
                refused += 1
        judged.load(want)
        packets = [made.packet(rnd, family, judged.lan) for _ in range(PACKETS)]
        for p, passes in zip(packets, judged.passed(packets)):
            first = next((n for n in some if made.matches(n, p)), None)
            should = first is None or acts[first] is ACCEPT
            why = f"set {number}: {p}, {[str(x) for x in parsed]}, {want[family].values()}"
            assert passes == should, why
            dropped, total = dropped + (not passes), total + 1
        kept = dict(rnd.sample(sorted(acts.items(), key=lambda x: x[0]), len(acts) // 3))
    assert refused < total / 10 and total / 10 < dropped < total * 0.9


def rules_of(family, octets, act=DROP):
    """Return the nft rules of a flow specification given in hex."""
    return translate.rules(flow.parse(family, bytes.fromhex(octets)), act)


def rate(kind, value):
    """Return the community of a rate."""
    return struct.pack("!HHf", kind, 0, value)


def test_a_message_has_announced_and_withdrawn_flows():
    """The first flow is example 1 of RFC 8955, 4.3. A message that ends too early is refused."""
    one = bytes.fromhex("0b0118c00002038106048119")
    reach = bytes.fromhex("0001850000") + one + one
    unreach = bytes.fromhex("00028503038106")
    attributes = b"\x90\x0e" + struct.pack("!H", len(reach)) + reach
    attributes += b"\x80\x0f" + bytes([len(unreach)]) + unreach
    attributes += bytes.fromhex("c010088006000000000000") + bytes.fromhex("40020602010000fde8")
    body = b"\0\0" + struct.pack("!H", len(attributes)) + attributes

    found = update.decode(body)

    assert found.announced == [(4, one[1:])] * 2 and found.withdrawn == [(6, bytes.fromhex("038106"))]
    assert found.as_path == [65000] and action.parse(found.communities) == DROP
    assert str(flow.parse(4, one[1:])) == "destination 192.0.2.0/24 protocol =6 port =25"
    for end in range(4, len(body)):
        with pytest.raises(update.Malformed):
            update.decode(body[:end])


def test_a_length_of_two_octets_is_read():
    """A flow specification of 240 octets or more has its length in two octets (RFC 8955, 4.1)."""
    long = b"\x04" + b"\x01\x05" * 120 + b"\x81\x06"
    assert update.split(4, bytes([0xF0, len(long)]) + long + b"\x03\x03\x81\x06") == [long, b"\x03\x81\x06"]


@pytest.mark.parametrize("octets", [239, 240, 255, 256, 257, 300, 511, 512, 800])
def test_the_short_length_of_frr_is_read(octets):
    """FRR writes only the lowest octet of a length. The flows before and behind a long flow are found,
    too, and no octets within a long flow are taken for another flow."""
    other, inner = b"\x03\x81\x06", bytes([1, 32, 198, 51, 100, 9])
    odd = (octets - 7) % 2
    long = inner + b"\x04" + b"\x01\x05" * ((octets - 9 - odd) // 2) + (b"\x91\x00\x06" if odd else b"\x81\x06")
    assert len(long) == octets
    form = lambda nlri: bytes([len(nlri) & 0xFF]) + nlri  # noqa: E731
    for some in ([long], [other, long], [long, other], [long, other, long, long]):
        assert update.split(4, b"".join(map(form, some))) == some


def test_octets_without_a_split_are_malformed():
    """A list of many lengths is not tried again from the same place, so no message takes long."""
    begin = time.process_time()
    assert len(update.split(4, b"\x01\x04" * 1000 + b"\x01\x05" * 1000)) == 2000
    assert time.process_time() - begin < 3
    for octets in (b"\x01" * 4001, b"\xf0\x01" * 2000, b"\x00" * 4000 + b"\x05"):
        with pytest.raises(update.Malformed):
            update.split(4, octets)


@pytest.mark.parametrize("octets", ["0e8101", "03", "0381", "0120c633", "0121c633640900", "0381060118c00002", "038106038106"])
def test_a_malformed_flow_is_refused(octets):
    """Unknown types, values that are cut off, wrong lengths and a wrong order are refused."""
    with pytest.raises(flow.Refused):
        flow.parse(4, bytes.fromhex(octets))


def test_random_octets_are_parsed_or_refused():
    """The helper survives any octets, and makes rules of octets that are flow specifications."""
    rnd, good = random.Random(SEED), 0
    for _ in range(3000):
        family = rnd.choice((4, 6))
        octets = bytearray(made.nlri(rnd, family))
        for _ in range(rnd.randrange(3)):
            octets[rnd.randrange(len(octets))] = rnd.randrange(256)
        try:
            translate.rules(flow.parse(family, bytes(octets[: rnd.choice((len(octets), 9))])), ACCEPT)
            good += 1
        except flow.Refused:
            pass
    assert good > 150


def test_another_exabgp_runs_with_its_decoder(tmp_path):
    """An ExaBGP without the modules that fpm-flowspec changes runs unchanged, with a line in the log."""
    (tmp_path / "exabgp").mkdir()
    (tmp_path / "exabgp" / "__init__.py").touch()
    program = tmp_path / "program"
    program.write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    argv = [PROGRAM, "speaker", str(program), "a", "-b"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "__main__ ['a', '-b']\n" and "exabgp decodes flows" in done.stderr


def test_no_message_ends_the_helper(tmp_path, capfd):
    """Random changes of an UPDATE, and lines that ExaBGP does not write: the helper goes on."""
    table_of, rnd = NoTable(), random.Random(SEED)
    done = helper.Helper(helper.Options(folder=str(tmp_path)), table_of, lambda some, _: [{}] * len(some))
    good = bytes.fromhex(
        "00000036900e001200018500000c0120c6336409038111058135400101025002000602010001000440050400000064"
        "c010088006000000000000"
    )
    event = {"type": "update", "neighbor": {"address": {"peer": "127.0.0.1"}}}
    for number in range(1500):
        body = bytearray(good)
        for _ in range(rnd.randrange(4)):
            body[rnd.randrange(len(body))] = rnd.randrange(256)
        body = body[: rnd.choice((len(body), rnd.randrange(len(body) + 1)))]
        event["neighbor"]["message"] = {"category": 2, "body": "0x" + body.hex()}
        done.line(json.dumps(event))
        if number % 100 == 0:
            done.load_at = 0.0
            done.on_time()
    for text in ("", "{}", "[]", "null", "7", '{"neighbor": 1}', json.dumps({**event, "type": "open"})):
        done.line(text)
    for message in (None, {}, {"category": 2}, {"category": 2, "body": None}, {"category": 2, "body": "0xz"}):
        event["neighbor"]["message"] = message
        done.line(json.dumps(event))
    assert len(done.routes) > 100 and "update malformed" in capfd.readouterr().err
    done.end()
    assert table_of.want == {4: {}, 6: {}}


def test_a_flow_that_flaps_does_not_postpone_the_checks(tmp_path):
    """A flow that is announced again every second is checked at once. The other flows are checked
    after 30 s, although they are valid."""
    routes = {"198.51.100.0/24": [65001], "198.51.100.9/32": [65002]}
    fed = Fed(tmp_path, lambda commands, *_: Frr(routes)(commands))
    fed.flow(host(8))
    fed.wait(1)
    assert fed.states() == {"destination 198.51.100.8/32": None}

    routes["198.51.100.8/32"] = [65009]
    for number in range(40):
        fed.flow(host(7), [65001, number + 1])
        fed.wait(1)
    assert "neighbor is AS 65001" in fed.states()["destination 198.51.100.8/32"]


def test_a_flow_is_checked_when_its_action_becomes_one_that_is_supported(tmp_path):
    """A flow with an action that is not supported is not checked. If its peer announces it again with
    another action, it is checked and installed at once."""
    fed = Fed(tmp_path, lambda commands, *_: Frr({"198.51.100.0/24": [65001]})(commands))
    fed.flow(host(8), act="8008fde800000001")
    fed.wait(1)
    assert "action redirect" in fed.states()["destination 198.51.100.8/32"]
    fed.flow(host(8))
    fed.wait(1)
    assert fed.states() == {"destination 198.51.100.8/32": None}


def test_a_new_path_by_the_same_neighbor_keeps_the_verdict(tmp_path):
    """FRR does not answer when a flow comes again by another path of the same neighbor: the last verdict
    counts. With another neighbor the flow has no verdict."""
    answers = True

    def ask(commands, *_):
        if not answers:
            raise origin.FrrTimeout("vtysh takes too long")
        return Frr({"198.51.100.0/24": [65001]})(commands)

    fed = Fed(tmp_path, ask)
    fed.flow(host(8))
    fed.wait(1)
    answers = False
    fed.flow(host(8), [65001, 65007])
    fed.wait(1)
    assert fed.states() == {"destination 198.51.100.8/32": None}
    fed.flow(host(8), [65002, 65007])
    fed.wait(1)
    assert "not checked yet" in fed.states()["destination 198.51.100.8/32"]


def test_a_session_that_flaps_does_not_keep_old_flows(tmp_path):
    """With --stale-time 60 a flow that a lost session had announced stays for 60 s, unless it is announced
    again. A further loss of the session does not keep it longer."""
    fed = Fed(tmp_path, None, validate=False, stale_s=60)
    fed.event("state", state="up")
    fed.flow(host(7))
    fed.flow(host(8))
    for _ in range(2):
        fed.event("state", state="down")
        fed.wait(1)
        fed.event("state", state="up")
        fed.flow(host(8))
        fed.wait(39)
    assert fed.states() == {"destination 198.51.100.8/32": None}
    fed.event("state", state="down")
    fed.wait(59)
    assert fed.states() == {"destination 198.51.100.8/32": None}
    fed.wait(2)
    assert fed.states() == {}


def test_no_neighbor_takes_the_room_of_the_others(tmp_path):
    """A neighboring AS has at most its share of the flows and of the rules. Flows above it wait until
    there is room, or until they are withdrawn."""
    routes = {f"198.51.100.{n}/32": [65001 if n < 100 else 65002] for n in range(200)}
    fed = Fed(tmp_path, Frr(routes), max_flows=8, max_rules=6, share=50)
    installed = lambda: {m.split(".")[3] for m, reason in fed.states().items() if reason is None}  # noqa: E731
    for number in range(20):
        fed.flow(host(number), [65001])
    fed.flow(host(150), [65002])
    fed.wait(1)
    assert fed.states()["destination 198.51.100.3/32"] == "more than 3 rules of AS 65001"
    assert installed() == {"0/32", "1/32", "2/32", "150/32"} and len(fed.helper.waiting) == 16
    assert fed.status()["waiting"] == 16

    fed.flow(host(0), withdraw=True)
    fed.flow(host(4), withdraw=True)
    fed.wait(1)
    assert installed() == {"1/32", "2/32", "3/32", "150/32"} and len(fed.helper.waiting) == 14
    assert "destination 198.51.100.5/32" in fed.states()

    fed.event("state", state="up")
    fed.event("state", state="down")
    fed.wait(1)
    assert not fed.states() and not fed.helper.waiting and not +fed.helper.flows_of


def ports(numbers):
    """Return the octets of a component with destination ports."""
    terms = b"".join(struct.pack("!BH", 0x11, number) for number in numbers)
    return b"\x05" + terms[:-3] + bytes([0x91]) + terms[-2:]


def test_long_lists_count_as_several_rules(tmp_path):
    """nft needs as much time for a rule with a long list as for many rules. If such a rule counted once,
    one neighboring AS could make each load of the table too slow, so that no flow of any peer is
    installed or removed."""
    fed = Fed(tmp_path, None, validate=False, max_rules=100)
    for number in range(60):
        fed.flow(host(number) + ports(range(1000, 1180, 3)))
    fed.flow(host(200), [65002])
    fed.wait(1)
    states = fed.states()
    assert states.pop("destination 198.51.100.200/32") is None
    assert list(states.values()) == [None] * 25 + ["more than 50 rules of AS 65001"] * 35
    lines = [line for rules in fed.table.want[4].values() for line in rules.lines]
    assert sum(map(len, lines)) <= 100 * translate.RULE_OCTETS


@pytest.mark.parametrize(
    "octets",
    [
        "09" + "0000" * 1900 + "8102",
        "09" + "42ff" * 1900 + "8102",
        "04" + "".join(f"56{3 * n:04x}" for n in range(1300)) + "d60001",
    ],
    ids=("flags-or", "flags-and", "ports-and"),
)
def test_the_longest_flows_cost_little_time(octets):
    """A flow that fills a BGP message costs some milliseconds, so that its peer does not delay the flows of
    other peers."""
    began = time.process_time()
    rules_of(4, octets)
    assert time.process_time() - began < 0.5
    one = flow.parse(4, bytes.fromhex(octets))
    assert str(one) is str(one), "each load of the table writes the text"


def test_a_path_that_hides_its_neighbor_has_a_share(tmp_path):
    """The flows of all paths that hide their neighbor have one share together. Only a controller of this
    AS may have all the room."""
    fed = Fed(tmp_path, Frr({}), max_flows=8)
    for number in range(20):
        fed.flow(host(number), [])
    assert len(fed.states()) == 4


def test_frr_is_asked_once_for_each_destination(tmp_path):
    """Flows with one destination and different other components cause one question to FRR."""
    asked = []
    frr = Frr({"198.51.100.0/24": [65001]})
    fed = Fed(tmp_path, lambda commands, *_: asked.extend(commands) or frr(commands))
    for port in range(100):
        fed.flow(host(2 + port % 2) + bytes([5, 0x81, port]))
    fed.flow(bytes([1, 25, 198, 51, 100, 0]))
    fed.wait(1)
    assert len(fed.states()) == 101 and set(fed.states().values()) == {None}
    assert len(asked) == len(set(asked)) == 4


def test_a_slow_answer_keeps_no_other_from_coming(tmp_path):
    """FRR's answer about one destination takes too long. All other destinations get their verdict,
    and this one keeps its previous verdict."""
    frr = Frr({"198.51.100.0/24": [65001]})

    def ask(commands, *_):
        if any(".66 " in command for command in commands):
            raise origin.FrrTimeout("vtysh takes too long")
        return frr(commands)

    fed = Fed(tmp_path, ask)
    for number in range(150):
        fed.flow(host(number))
    fed.wait(3)
    refused = {match: reason for match, reason in fed.states().items() if reason is not None}
    assert refused == {"destination 198.51.100.66/32": "not validated: not checked yet"}


def test_refusals_that_stay_are_not_checked_again(tmp_path):
    """A flow that no unicast route could validate does not shorten the time between checks."""
    asked = []
    frr = Frr({"198.51.100.0/24": [65001]})
    fed = Fed(tmp_path, lambda commands, *_: asked.extend(commands) or frr(commands))
    fed.flow(b"\x03\x81\x06")
    fed.flow(host(1), [])
    fed.flow(host(2))
    fed.wait(100)
    assert len(asked) == 4 and "no destination prefix" in fed.states()["protocol =6"]


class Picky(NoTable):
    """Refuses rules whose comment has a word, as nft could."""

    word = "198.51.100.3/32"

    def load(self, want):
        """Take all rules or none."""
        self.check(want)
        self.want = want

    def check(self, want):
        """Refuse rules with the word."""
        if any(self.word in line for some in want.values() for r in some.values() for line in r.lines):
            raise table.NftError("no")


def test_rules_that_nft_refuses_are_tried_again(tmp_path):
    """One bad rule does not keep the others out. It is tried again after ten minutes, and forgotten when
    its flow is withdrawn."""
    fed = Fed(tmp_path, Frr({"198.51.100.0/24": [65001]}))
    fed.table = fed.helper.table = Picky()
    for number in range(9):
        fed.flow(host(number))
    fed.wait(1)
    refused = {match: reason for match, reason in fed.states().items() if reason is not None}
    assert refused == {"destination 198.51.100.3/32": "nft: no"} and len(fed.table.want[4]) == 8

    fed.table.word = "another"
    fed.wait(500)
    assert len(fed.table.want[4]) == 8
    fed.wait(110)
    assert len(fed.table.want[4]) == 9 and not fed.helper.bad

    fed.table.word = "198.51.100.3/32"
    fed.flow(host(3), withdraw=True)
    fed.flow(host(3) + b"\x03\x81\x06")
    fed.wait(1)
    assert len(fed.helper.bad) == 1
    fed.flow(host(3) + b"\x03\x81\x06", withdraw=True)
    fed.wait(1)
    assert not fed.helper.bad


def test_equal_flows_have_one_order(tmp_path):
    """The padding of a prefix has no meaning, so two flows can be equal. Their octets decide the order."""
    some = [bytes([1, 25, 198, 51, 100, last]) for last in (0x80, 0x81, 0xFF)]
    orders = []
    for each in (some, some[::-1]):
        fed = Fed(tmp_path, Frr({"198.51.100.0/24": [65001]}))
        for nlri in each:
            fed.flow(nlri)
        fed.wait(1)
        orders.append(list(fed.table.want[4]))
    assert orders == [some, some]


def test_events_are_read_while_frr_is_slow(tmp_path):
    """The helper asks for four seconds at most, and then looks for events. All flows have their verdict at
    the end, and a session that is lost meanwhile removes the rules at once."""
    frr, longest = Frr({"198.51.100.0/24": [65001]}), []

    def ask(commands, limit_s):
        took = min(0.02 * len(commands), limit_s)
        fed.now += took
        longest.append(limit_s)
        if took == limit_s:
            raise origin.FrrTimeout("vtysh takes too long")
        return frr(commands)

    fed = Fed(tmp_path, ask)
    fed.event("state", state="up")
    for number in range(250):
        fed.flow(host(number))
    fed.now += 0.1
    rounds = 0
    while fed.helper.load_at is not None:
        begin = fed.now
        fed.helper.on_time()
        assert fed.now - begin <= helper.CHECK_S
        fed.now += fed.helper.wait_s()
        rounds += 1
    assert 2 <= rounds < 10 and set(fed.states().values()) == {None}
    assert helper.CHECK_S / 2 <= min(longest) and max(longest) <= helper.CHECK_S

    fed.flow(host(251))
    fed.event("state", state="down")
    fed.wait(1)
    assert fed.table.want == {4: {}, 6: {}}


@pytest.mark.parametrize(
    ("octets", "line"),
    [
        ("0120c6336409038111058135", "ip daddr 198.51.100.9/32 meta l4proto 17 th dport 53"),
        ("098102", "meta l4proto 6 tcp flags & 2 == 2"),
        ("090102c210", "meta l4proto 6 tcp flags & 18 == 2"),
        ("0c8102", "ip frag-off & 0x1fff != 0"),
        ("0a1301f4d505dc", "meta length 500-1500"),
    ],
)
def test_common_flows_are_short_rules(octets, line):
    """A common flow is one short rule, so that an operator recognizes the flow in `nft list`."""
    [text] = rules_of(4, octets).lines
    said = text.partition(" counter")[0].removeprefix("meta nfproto ipv4 ")
    assert said.replace("{ ", "").replace(" }", "") == line


def test_rates_are_limits_that_all_rules_of_a_flow_share():
    """A flow on source or destination port has two rules and one chain with the limits."""
    communities = [rate(0x8006, 12500.4), rate(0x800C, 100.0), bytes.fromhex("800900000000000a")]
    found = rules_of(4, "048135", action.parse(communities))
    assert len(found.lines) == 2 and all(f"goto {found.chain} " in line for line in found.lines)
    assert found.chain_lines == (
        "limit rate over 12501 bytes/second counter drop",
        "limit rate over 100/second burst 100 packets counter drop",
        "ip dscp set 10 counter accept",
    )


@pytest.mark.parametrize(
    ("community", "said"),
    [
        (rate(0x8006, 0.0), "drop"),
        (rate(0x8006, -1.0), "drop"),
        (rate(0x800C, 0.0), "drop"),
        (rate(0x8006, float("inf")), "accept"),
        (rate(0x8006, 0.5), "1 bytes/s"),
        (bytes.fromhex("800900000000002e"), "dscp 46"),
        (bytes.fromhex("0002fde800000001"), "accept"),  # a route target is no action
    ],
)
def test_actions_have_the_meaning_of_the_rfc(community, said):
    """RFC 8955, 7: a negative rate drops; a rate is never rounded down."""
    assert str(action.parse([community])) == said


@pytest.mark.parametrize(
    ("community", "why"),
    [
        ("8008fde800000001", "redirect (0x8008)"),
        ("0800c00002010000", "redirect (0x0800)"),
        ("000d20010db8000000000000000000000001fde8", "redirect (0x000d)"),  # RFC 8956, 6.1
        ("0900000000000001", "redirect (0x0900)"),
        ("0702fde800000001", "interface-set"),
        ("8099000000000000", "0x8099"),
        ("800600007fc00000", "not a number"),
    ],
)
def test_an_unsupported_action_is_refused_by_name(community, why):
    """A flow with an unsupported action is refused, because without its action it would do something
    else."""
    octets = bytes.fromhex(community)
    with pytest.raises(flow.Refused, match=re.escape(why)):
        action.parse([octets] if len(octets) == 8 else [], [octets] if len(octets) == 20 else [])


def test_rules_of_another_program_are_replaced(judged):
    """The helper makes the table again if another program changed the order or the comments of its
    rules, although their number is right."""
    one, two = (flow.parse(4, host(number)) for number in (1, 2))
    want = {4: {x.nlri: translate.rules(x, DROP) for x in (one, two)}, 6: {}}
    judged.load(want)
    [[_, (handle, *_)], _] = judged.table.known[4].values()
    nft = lambda words: netns.run(judged.dut.ctl, ["nft", *words.split()])  # noqa: E731
    nft(f"delete rule {TABLE} flow4 handle {handle}")
    nft(f"add rule {TABLE} flow4 ip daddr 198.51.100.1 drop comment other")
    three = flow.parse(4, host(3))
    judged.load({4: {**want[4], three.nlri: translate.rules(three, DROP)}, 6: {}})
    text = netns.run(judged.dut.ctl, ["nft", "list", "chain", *TABLE.split(), "flow4"])
    assert [text.index(str(x)) for x in (one, two, three)] == sorted(text.index(str(x)) for x in (one, two, three))
    assert "other" not in text
    judged.load({4: {}, 6: {}})


def test_a_table_that_another_program_removes_is_made_again(judged):
    """`nft flush ruleset`, which a reload of nftables.service runs, removes the rules of all flows. The
    next load makes them again, although no flow has changed."""
    one, two = (flow.parse(4, host(number)) for number in (1, 2))
    limited = translate.rules(two, action.parse([rate(0x8006, 1000.0)]))
    want = {4: {one.nlri: translate.rules(one, DROP), two.nlri: limited}, 6: {}}
    judged.load(want)
    assert not judged.table.touched()
    listed = ["nft", "--stateless", "list", "table", *TABLE.split()]
    text = netns.run(judged.dut.ctl, listed)
    assert str(one) in text and "limit rate" in text
    for change in (
        f"delete table {TABLE}",
        f"flush table {TABLE}",
        f"flush chain {TABLE} flow4",
        f"flush chain {TABLE} {limited.chain}",
        f"flush chain {TABLE} forward",
        f"delete chain {TABLE} forward",
        f"add chain {TABLE} forward {{ policy drop ; }}",
        f"add rule {TABLE} flow6 accept",
        f"add table {TABLE} {{ flags dormant ; }}",
    ):
        netns.run(judged.dut.ctl, ["nft", *change.split()])
        assert judged.table.touched()
        assert judged.table.load(want), change
        assert netns.run(judged.dut.ctl, listed) == text
    done = judged.transactions
    netns.run(judged.dut.ctl, ["nft", "add", "table", "inet", "another"])
    assert judged.table.touched() and not judged.table.load(want)
    assert judged.transactions == done and not judged.table.touched()
    netns.run(judged.dut.ctl, ["nft", "delete", "table", "inet", "another"])
    judged.load({4: {}, 6: {}})


def test_reserved_tcp_flags_are_refused_by_name():
    """nft has no word for reserved flags. A rule without them would match more packets than the flow,
    so the flow is not installed."""
    with pytest.raises(flow.Refused, match="tcp-flags beyond"):
        rules_of(4, "09910102")


def test_the_greatest_rates_are_taken_by_nft(judged):
    """nft and the dataplane take each rate that is not unlimited."""
    want = {4: {}, 6: {}}
    for number, value in enumerate((1.0, 1e6, 1.2e10, action.UNLIMITED_BYTES)):
        for kind in (0x8006, 0x800C):
            act = action.parse([rate(kind, min(value, 1e10) if kind == 0x800C else value)])
            one = flow.parse(4, bytes([3, 0x81, 17, 5, 0x81, (kind & 0xFF) + number]))
            want[4][one.nlri] = translate.rules(one, act)
    judged.load(want)
    judged.load({4: {}, 6: {}})


# --- permission to filter (RFC 8955, 6; RFC 9117) ---


@pytest.mark.parametrize(
    ("octets", "as_path", "why"),
    [
        ("0120c6336409", [65001], None),
        ("0120c6336409", [65002], "its neighbor is AS 65002"),
        ("0120c6336409", [], None),
        ("0118c63365", [65002], "no unicast route"),
        ("0118c63366", [65002], "a more specific route is of another AS: 198.51.102.128/25"),
        ("0119c6336680", [65003], None),
        ("0119c6336680", [65002], "its neighbor is AS 65002"),
        ("0118cb0071", [65001], "that of the unicast route is this AS"),
        ("0118c00002", [], "a more specific route is of another AS: 192.0.2.128/25"),
        ("0120c6336809", [65001], None),
        ("0120c6336809", [65002], "its neighbor is AS 65002"),
        ("0120c6336809", [65003], "its neighbor is AS 65003"),
        ("0116c63368", [65001], "a more specific route is of another AS: 198.51.104.0/24"),
        ("0118c6336a", [65001], None),
        ("038106", [65001], "no destination"),
        ("0100", [65001], "shorter than /8"),
    ],
)
def test_only_the_neighbor_of_the_unicast_route_may_filter(octets, as_path, why):
    """A flow is accepted from the neighbor that announces the unicast route (RFC 8955, 6), and from this
    AS (RFC 9117, 4.1)."""
    routes = {
        "198.51.100.0/24": [65001, 65009],
        "198.51.102.0/23": [65002],
        "198.51.102.128/25": [65003],
        "198.51.104.0/22": [65001],
        "198.51.104.0/24": (65003,),  # not used: the /22 is the best match, but this route is received, too
        "198.51.106.0/25": (65001,),
        "203.0.113.0/24": [],
        "192.0.2.0/24": [],
        "192.0.2.128/25": [65003],
    }
    one = flow.parse(4, bytes.fromhex(octets))
    announcer = origin.Announcer(tuple(as_path), reflected=not as_path)
    said = origin.refused(one, announcer) or origin.check({1: (one, announcer)}, Frr(routes))[1]
    assert (said is None) if why is None else (why in (said or "None")), said


def path_of(*segments, reflected=False):
    """Return the announcer of an UPDATE whose AS path has segments (type, AS numbers)."""
    path = b"".join(struct.pack(f"!BB{len(x)}I", kind, len(x), *x) for kind, x in segments)
    attributes = bytes([0x40, 2, len(path)]) + path + (bytes.fromhex("800904c0000201") if reflected else b"")
    found = update.decode(b"\0\0" + struct.pack("!H", len(attributes)) + attributes)
    return origin.Announcer(tuple(found.as_path), found.ordered, found.reflected)


@pytest.mark.parametrize(
    ("announcer", "why"),
    [
        (path_of((2, [65001, 7]), (1, [8, 9])), None),
        (path_of((1, [65001])), "does not begin with an AS_SEQUENCE"),
        (path_of((1, [9]), (2, [65001])), "does not begin with an AS_SEQUENCE"),
        (path_of((3, [9]), (2, [65001])), "does not begin with an AS_SEQUENCE"),
        (path_of(), "its AS path is empty, and no peer of iBGP"),
        (path_of(reflected=True), None),
    ],
)
def test_a_path_without_a_first_as_tells_no_neighbor(announcer, why):
    """A set has no first AS. An empty path is that of a peer of iBGP only with an ORIGINATOR_ID,
    because FRR writes LOCAL_PREF into each route for ExaBGP."""
    one = flow.parse(4, bytes.fromhex("0120c6336409"))
    said = origin.refused(one, announcer)
    assert (said is None) if why is None else (why in (said or "None")), said


@pytest.mark.parametrize("segments", ["as-set", "as-confed-sequence"])
def test_a_unicast_route_without_a_first_as_permits_no_filter(segments):
    """The neighbor of a route is not known if its path begins with a set."""
    paths = [{"bestpath": {"overall": True}, "aspath": {"segments": [{"type": segments, "list": [65001]}]}}]
    one = flow.parse(4, bytes.fromhex("0120c6336409"))
    said = origin.check({1: (one, path_of((2, [65001])))}, lambda _: [{"prefix": "198.51.100.0/24", "paths": paths}])
    assert "of the unicast route does not begin" in said[1]


def test_several_tables_filter_as_in_the_kernel(judged):
    """A packet passes if the chains of all tables accept it. If one table is changed or deleted, the
    rules of the other table keep their counters. The second table may be missing, but not the first."""
    dut, lan, wan = judged.dut, judged.lan, judged.dut.wires["wan"]
    probe = lambda port: lan.probe("198.51.100.1", dport=port)  # noqa: E731
    nft = lambda *words: netns.run(dut.ctl, ["nft", *words])  # noqa: E731
    one = flow.parse(4, bytes.fromhex("0120c633640103811105911389"))
    with_flow = {4: {one.nlri: translate.rules(one, DROP)}, 6: {}}

    def rules():
        return {r["comment"]: r for r in dut.control.ask("filter") if r["kind"] == "rule"}

    judged.load({4: {}, 6: {}})
    nft("insert", "rule", *"inet transit forward udp dport 5000 counter drop comment own".split())
    eventually(lambda: "own" in rules(), 5, 0.005)
    dut.fence(lan)  # a forwarder may be within a round that began with the previous rules
    assert dut.not_forwarded(lan, probe(5000)) == {"filter": 1}
    assert dut.forwarded(lan, probe(5001), wan)

    judged.load(with_flow)
    assert dut.not_forwarded(lan, probe(5000), probe(5001)) == {"filter": 2}
    assert dut.forwarded(lan, probe(5002), wan)
    assert rules()["own"]["chain"] == "inet transit forward" and rules()["own"]["packets"] == 2
    assert rules()[str(one)]["chain"] == "inet flowspec flow4" and rules()[str(one)]["packets"] == 1
    assert "=5001" in dut.fpmctl("show", "filter", "inet flowspec flow4").stdout

    # The rules of the second table keep their counters while the first one is away.
    nft("delete", "table", "inet", "transit")
    eventually(lambda: dut.control.ask("filter")[0]["state"] == "absent", 5, 0.005)
    netns.run(dut.ctl, ["nft", "-f", "-"], stdin=TRANSIT)
    eventually(lambda: dut.control.ask("filter")[0]["state"] == "in-force", 5, 0.005)
    assert rules()[str(one)]["packets"] == 1 and "own" not in rules()
    nft("insert", "rule", *"inet transit forward udp dport 5000 counter drop comment own".split())
    eventually(lambda: "own" in rules(), 5, 0.005)
    dut.fence(lan)
    assert dut.not_forwarded(lan, probe(5001)) == {"filter": 1}
    assert (rules()["own"]["packets"], rules()[str(one)]["packets"]) == (0, 2)

    nft("delete", "table", *TABLE.split())
    eventually(lambda: str(one) not in rules(), 5, 0.005)
    dut.fence(lan)
    assert dut.not_forwarded(lan, probe(5000)) == {"filter": 1}
    assert dut.forwarded(lan, probe(5001), wan)
    assert rules()["own"]["packets"] == 1

    nft("delete", "table", "inet", "transit")
    eventually(lambda: dut.control.ask("filter")[0]["state"] == "absent", 5, 0.005)
    dut.fence(lan)
    assert dut.not_forwarded(lan, probe(5001)) == {"filter_absent": 1}
    netns.run(dut.ctl, ["nft", "-f", "-"], stdin=TRANSIT)
    eventually(lambda: dut.control.ask("filter")[0]["state"] == "in-force", 5, 0.005)


def test_elements_change_in_the_set_of_their_table_only(judged):
    """Two tables have a set with the same name. An element of one set is no element of the other."""
    dut, lan = judged.dut, judged.lan
    element = "element inet {} hosts {{ " + lan.peer4 + " }}"

    def change(words):
        """Run nft, and return when the forwarders obey its change."""
        seen = dut.control.ask("filter")[0]["generation_read"]
        netns.run(dut.ctl, ["nft", *words.split()])
        eventually(lambda: dut.control.ask("filter")[0]["generation_read"] != seen, 5, 0.005, words)
        dut.fence(lan)

    def outcome():
        before = dut.counters()
        lan.send(lan.probe("198.51.100.1"))
        dut.fence(lan)
        return dut.drops(before)

    judged.load({4: {}, 6: {}})
    change("add set inet flowspec hosts { type ipv4_addr ; }")
    change("add rule inet flowspec flow4 ip saddr @hosts counter drop")
    try:
        for table_name, drops in (("transit", {}), ("flowspec", {"filter": 1})):
            change("add " + element.format(table_name))
            assert outcome() == drops
            change("delete " + element.format(table_name))
            assert outcome() == {}
    finally:
        judged.table.flush()
