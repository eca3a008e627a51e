# SPDX-License-Identifier: BSD-3-Clause
"""Flow specifications that a BGP peer announces filter packets in transit (RFC 8955, 8956): the peer,
FRR, ExaBGP, fpm-flowspec, nft and the dataplane are the real ones."""

import contextlib
import json
import os
import shutil
import signal
import sys

import pytest

from flowspec import FRR, Announcer, Helper, Speaker
from foreign import AS_OURS, AS_THEIRS
from lib import netns
from lib.dataplane import ROOT
from lib.flowspec import FOLDER, PROGRAM, why_not
from lib.frr import beside
from lib.peers import program
from lib.wait import eventually
from router import Router, running

sys.path.insert(0, FOLDER)

from fpm_flowspec import flow  # noqa: E402

CONFIG = 'filter: {table: ["inet transit", "inet flowspec"]}\nfpm:\n'
TRANSIT = """\
table inet transit {
	chain forward {
		type filter hook forward priority 0; policy accept;
		tcp dport 25 counter drop comment "no mail"
	}
}
"""
VICTIM = "198.51.100.9"
UNIT = os.path.join(ROOT, "fpm-dataplane", "dist", "fpm-flowspec.service")
VALUES = 5  # values in a component
FORGER = 65541  # AS of another peer
DNS = "destination 198.51.100.9/32 protocol =17 source-port =53"


class Filtered:
    """The router with its filter: a peer that announces flow specifications, and fpm-flowspec."""

    def __init__(self, dut, frr):
        self.dut, self.frr = dut, frr
        self.lan, self.wan = dut.wires["lan"], dut.wires["wan"]
        self.peer, self.helper = Announcer(dut), Helper(dut, frr)

    def close(self):
        """End the programs that are not FRR."""
        self.peer.kill()
        self.helper.end()

    def passes(self, probe):
        """Return True if a probe from lan leaves by wan. After the first fence no forwarder is within a
        round that began with the previous rules."""
        self.dut.fence(self.lan)
        drops = self.dut.counters()
        self.lan.send(probe)
        self.dut.fence(self.lan)
        dropped = self.dut.drops(drops)
        assert dropped in ({}, {"filter": 1}), dropped
        return not dropped


class Watcher(Router):
    """A router whose daemon reads the summary of the helper of this test."""

    def start(self):
        self.daemon.within = ["env", f"FPM_FLOWSPEC_FOLDER={self.dir}/flowspec"]
        super().start()


@pytest.fixture(scope="module")
def router(possible):
    """A router between lan and wan. On wan a peer announces 198.51.100.0/24 and 2001:db8:5::/48."""
    if why_not() or program("gobgpd") is None:
        pytest.skip(why_not() or "gobgpd is not there: make peers")
    with running(Watcher(name="fsp"), ("fpm:\n", CONFIG)) as dut:
        netns.run(dut.ctl, ["nft", "-f", "-"], stdin=TRANSIT)
        dut.zebra.close()
        wan = dut.wires["wan"]
        netns.sysctl(dut.far, {"net.ipv6.conf.wan.disable_ipv6": 0, "net.ipv6.conf.wan.accept_dad": 0})
        own = [f"addr add {wan.peer4}/26 dev wan", f"addr add {wan.peer6}/64 dev wan nodad"]
        netns.ip_batch(["link set lo up", *own], dut.far)
        words = {"own4": wan.ip4, "peer4": wan.peer4, "peer6": wan.peer6}
        with beside(dut, FRR.format(ours=AS_OURS, theirs=AS_THEIRS, **words), ["bgpd"]) as frr:
            made = Filtered(dut, frr)
            try:
                made.peer.start()
                made.peer.route("198.51.100.0/24")
                made.peer.route("2001:db8:5::/48")
                made.helper.start()
                eventually(lambda: dut.route_row("198.51.100.0/24"), 30, what="the route of the peer")
                eventually(lambda: dut.route_row("2001:db8:5::/48"), 30, what="the route of the peer")
                yield made
            finally:
                made.close()


@pytest.fixture
def flows(router):
    """The router without a flow specification at the start and at the end."""
    router.helper.settled()
    zebra = router.frr.pid("zebra")
    yield router
    router.peer.nothing()
    router.helper.settled()
    assert router.frr.runs("zebra") and router.frr.pid("zebra") == zebra


def test_a_flow_is_dropped_while_it_is_announced(flows):
    """Packets of a flow with the rate 0 are dropped until it is withdrawn; all others pass."""
    attack = lambda: flows.lan.probe(VICTIM, sport=53)  # noqa: E731
    assert flows.passes(attack())

    flows.peer.flow(f"destination {VICTIM}/32 protocol udp source-port 53")
    rules = flows.helper.settled(**{DNS: "installed"})

    [rule] = [r for r in rules if r["comment"] == DNS]
    assert rule["chain"] == "inet flowspec flow4"
    assert (rule["comment"], rule["action"]) == (DNS, "drop")
    assert not flows.passes(attack())
    assert flows.passes(flows.lan.probe(VICTIM, sport=54))
    assert flows.passes(flows.lan.probe("198.51.100.8", sport=53))

    flows.peer.withdraw(f"destination {VICTIM}/32 protocol udp source-port 53")
    flows.helper.settled()
    assert flows.passes(attack())


def test_a_rate_limits_and_a_mark_marks(flows):
    """A rate above 0 passes some packets of a flow, for both families; a mark is the new DSCP."""
    flows.peer.flow("destination 198.51.100.1/32", "rate-limit 100")
    flows.peer.flow("destination 2001:db8:5::1/128", "rate-limit 100", 6)
    flows.peer.flow("destination 198.51.100.2/32", "mark 10")
    wants = ("destination 198.51.100.1/32", "destination 2001:db8:5::1/128", "destination 198.51.100.2/32")
    flows.helper.settled(**dict.fromkeys(wants, "installed"))

    for dst in ("198.51.100.1", "2001:db8:5::1"):
        passed = sum(flows.passes(flows.lan.probe(dst, size=100)) for _ in range(12))
        assert 1 <= passed < 12, "one packet, and one a second after it"
    marked = flows.dut.forwarded(flows.lan, flows.lan.probe("198.51.100.2", tos=3), flows.wan)
    assert marked.tos == 10 << 2 | 3


def test_what_cannot_be_obeyed_is_refused_by_name(flows):
    """A redirect, a destination of another neighbor and a flow without a destination filter nothing, and
    `fpm-flowspec show` names the reason."""
    flows.peer.flow("destination 198.51.100.1/32", "redirect 65000:1")
    flows.peer.flow("destination 203.0.113.9/32")
    flows.peer.flow("protocol tcp")
    reasons = {
        "destination 198.51.100.1/32": "action redirect (0x8008) is not supported",
        "destination 203.0.113.9/32": "not validated: no unicast route covers its destination",
        "protocol =6": "not validated: it has no destination prefix",
    }
    flows.helper.settled(**reasons)
    said = netns.run(flows.dut.ctl, [PROGRAM, "show", "--folder", flows.helper.folder])
    for match, reason in reasons.items():
        assert f"refused    {match}: {reason}" in said
    assert flows.helper.kernel_rules() == 0


def test_a_flow_follows_its_unicast_route(flows):
    """A flow is installed when its neighbor announces the unicast route, and removed when the route
    is withdrawn (RFC 8955, 6)."""
    match = "destination 192.88.0.0/24"
    flows.peer.flow(match)
    flows.helper.settled(**{match: "no unicast route"})
    flows.peer.route("192.88.0.0/24")
    flows.helper.settled(**{match: "installed"})
    flows.peer.route("192.88.0.0/24", "del")
    flows.helper.settled(**{match: "no unicast route"})


def test_a_unicast_route_that_is_not_used_is_skipped(flows):
    """The best match of a destination is the longest route that FRR uses (RFC 8955, 6)."""
    half, via = "198.51.100.0/25", "203.0.113.99"
    flows.peer.route(half, via=via)
    row = eventually(lambda: flows.frr.json(f"show bgp ipv4 unicast {half} json"), 10, 0.05)
    assert row["prefix"] == half and "bestpath" not in row["paths"][0]
    below = flows.frr.json("show bgp ipv4 unicast 198.51.100.0/24 longer-prefixes json")["routes"]
    assert below[half][0]["path"] == str(AS_THEIRS) and "valid" not in below[half][0]
    try:
        flows.peer.flow(f"destination {VICTIM}/32")
        flows.helper.settled(**{f"destination {VICTIM}/32": "installed"})
    finally:
        flows.peer.route(half, "del", via)


@contextlib.contextmanager
def speaking(flows, asn, *lines):
    """Run a peer of the AS `asn`. FRR's configuration of the peer has the additional `lines`."""
    speaker = Speaker(flows.dut, flows.frr, asn)
    try:
        speaker.connect(*lines)
        yield speaker
    finally:
        speaker.close()


def victim(host):
    """Return the octets and the text of a flow to a host below the route of the first peer."""
    return bytes([1, 32, 198, 51, 100, host]), f"destination 198.51.100.{host}/32"


def test_no_path_forges_the_neighbor(flows):
    """FRR 8.4.4 accepts from a peer of eBGP a path that begins with another AS, an empty path, and a path
    that begins with a set. Only `enforce-first-as`, the default from FRR 9.1 on, keeps out the first of
    these. fpm-flowspec refuses the other two in any case, although FRR adds LOCAL_PREF."""
    sequence, sets = 2, 1
    paths = {1: [(sequence, [AS_THEIRS])], 2: [], 3: [(sets, [AS_THEIRS])], 4: [(sequence, [FORGER])]}
    theirs = f"its neighbor is AS {FORGER}, that of the unicast route is AS {AS_THEIRS}"
    with speaking(flows, FORGER, "no neighbor {0} enforce-first-as") as speaker:
        for host, path in paths.items():
            speaker.flow(victim(host)[0], path)
        reasons = ["installed", "its AS path is empty", "does not begin with an AS_SEQUENCE", theirs]
        flows.helper.settled(**{victim(host)[1]: why for host, why in zip(paths, reasons)})
    flows.helper.settled()

    with speaking(flows, FORGER, "neighbor {0} enforce-first-as") as speaker:
        for host, path in paths.items():
            speaker.flow(victim(host)[0], path)
        flows.helper.settled(**{victim(4)[1]: theirs})
    flows.helper.settled()


def test_a_controller_of_ibgp_may_filter(flows):
    """FRR adds ORIGINATOR_ID to a flow of a peer of iBGP. With an empty path it is installed."""
    with speaking(flows, AS_OURS) as speaker:
        speaker.flow(victim(1)[0], [])
        flows.helper.settled(**{victim(1)[1]: "installed"})
    flows.helper.settled()


def long_flow(octets):
    """Return a flow specification of this many octets to a host. FRR accepts only a few values in a
    component, so most values have eight octets."""
    nlri, left = victim(9)[0], octets - 6
    for kind, value in ((3, 6), (4, 53), (5, 53), (6, 53), (9, 2), (10, 100), (11, 8), (12, 1)):
        sizes = []
        left -= 1
        while left and len(sizes) < VALUES:
            sizes.append(next(n for n in (8, 4, 2, 1) if left - n - 1 >= 0 and left - n - 1 != 1))
            left -= sizes[-1] + 1
        nlri += bytes([kind])
        for number, size in enumerate(sizes, 1):
            end = 0x80 if number == len(sizes) else 0
            nlri += bytes([end | (size.bit_length() - 1) << 4 | 1]) + value.to_bytes(size, "big")
        if not left:
            return nlri
    raise AssertionError(f"no flow has {octets} octets")


@pytest.mark.parametrize("octets", [239, 240, 256, 300])
def test_a_long_flow_of_a_peer_leaves_the_session_up(flows, octets):
    """fpm-flowspec reads numbers of eight octets, and the length of one octet that FRR 8.4.4 writes for 240
    octets and more. ExaBGP by itself would end the session for either, and all rules would be gone."""
    other, nlri = victim(3)[1], long_flow(octets)
    flows.peer.flow(other)
    flows.helper.settled(**{other: "installed"})
    sessions = flows.helper.log().count("session changed")
    with speaking(flows, AS_THEIRS, "neighbor {0} enforce-first-as") as speaker:
        speaker.flow(nlri, [(2, [AS_THEIRS])])
        text = str(flow.parse(4, nlri))
        eventually(lambda: flows.helper.flows() == {other: "installed", text: "installed"}, 20)
        assert flows.helper.kernel_rules() > 1
        speaker.withdraw(nlri)
        flows.helper.settled(**{other: "installed"})
    assert flows.helper.log().count("session changed") == sessions


def test_counters_and_limits_stay_while_other_flows_come(flows):
    """The counter of a flow stays when other flows are announced that come before and behind it."""
    flows.peer.flow("destination 198.51.100.9/32")
    flows.helper.settled(**{"destination 198.51.100.9/32": "installed"})
    assert not flows.passes(flows.lan.probe(VICTIM))
    flows.peer.flow("destination 198.51.100.8/32")
    flows.peer.flow("destination 198.51.100.16/28", "rate-limit 1000")
    wants = dict.fromkeys((f"destination 198.51.100.{p}" for p in ("8/32", "9/32", "16/28")), "installed")

    rules = flows.helper.settled(**wants)

    order = [r["comment"] for r in rules if r["comment"] in wants]
    assert order == list(wants)
    assert [r["packets"] for r in rules if r["comment"] in wants] == [0, 1, 0]


LOSSES = ["the peer dies", "bgpd dies", "ExaBGP dies", "the relay dies", "the helper dies", "the helper hangs"]


@pytest.mark.parametrize("loss", LOSSES)
def test_no_rule_outlives_its_announcement(flows, loss):
    """When a peer or a program between peer and table dies, the table becomes empty. It is right again
    when the program is back. The unit ends ExaBGP and runs `fpm-flowspec flush` after the helper has
    ended."""
    helper = flows.helper
    flows.peer.flow(f"destination {VICTIM}/32")
    want = {f"destination {VICTIM}/32": "installed"}
    helper.settled(**want)

    if loss == "the peer dies":
        flows.peer.kill()
        eventually(lambda: helper.kernel_rules() == 0, 30, 0.05, "no rule is left")
        flows.peer.start()
        flows.peer.route("198.51.100.0/24")
        flows.peer.route("2001:db8:5::/48")
        flows.peer.flow(f"destination {VICTIM}/32")
    elif loss == "bgpd dies":
        flows.frr.kill("bgpd")
        eventually(lambda: helper.kernel_rules() == 0, 10, 0.05, "no rule is left")
        eventually(lambda: helper.sessions() == {"127.0.0.1": "down"}, 5, 0.02)
        flows.frr.restart("bgpd")
    else:
        speaker, relay = helper.pids(f"{helper.folder}/exabgp.conf"), helper.pids("relay")
        own = [helper.process.pid]
        if loss == "the helper hangs":
            helper.notified()
            assert set(eventually(helper.notified, 10, 0.02)) == {"WATCHDOG=1"}
            os.kill(helper.process.pid, signal.SIGSTOP)
            eventually(lambda: stopped(helper.process.pid), 5, 0.01)
            helper.notified()
            silent = lambda: flows.dut.control.ask("flowspec")[0]["state"] == "silent"  # noqa: E731
            eventually(silent, 30, 0.05, "the dataplane tells that the helper hangs")
            assert helper.notified() == [], "so systemd kills the helper after WatchdogSec"
        victims = {"ExaBGP dies": speaker, "the relay dies": relay}
        for pid in victims.get(loss, own):
            os.kill(pid, signal.SIGKILL)
        helper.process.wait(20)
        if loss in ("the helper dies", "the helper hangs"):
            for pid in speaker:
                os.kill(pid, signal.SIGKILL)
            netns.run(flows.dut.ctl, [PROGRAM, "flush"])
        eventually(lambda: helper.kernel_rules() == 0, 10, 0.05, "no rule is left")
        eventually(lambda: not helper.pids(PROGRAM), 10, 0.05, "all programs end")
        helper.start()

    helper.settled(**want)
    eventually(lambda: not flows.passes(flows.lan.probe(VICTIM)), 20)


def test_the_dataplane_tells_the_state(flows):
    """`show flowspec` counts the flows, and reports that bgpd or the helper does not run."""
    state = lambda: flows.dut.control.ask("flowspec")[0]  # noqa: E731
    flows.peer.flow(f"destination {VICTIM}/32")
    flows.peer.flow("protocol tcp")
    flows.helper.settled(**{f"destination {VICTIM}/32": "installed", "protocol =6": "no destination"})
    told = lambda row: (row["state"], row["sessions_up"], row["installed"], row["refused"])  # noqa: E731
    eventually(lambda: told(state()) == ("running", 1, 1, 1), 10, 0.02)
    flows.frr.kill("bgpd")
    eventually(lambda: state()["state"] == "down", 10, 0.02)
    flows.frr.restart("bgpd")
    eventually(lambda: state()["state"] == "running", 30, 0.05)
    flows.helper.end()
    assert state()["state"] == "absent"
    flows.helper.start()
    eventually(lambda: state()["state"] == "running", 10, 0.02)


def stopped(pid):
    """Return true if a signal has stopped the process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def test_the_unit_waits_for_the_helper(flows):
    """The helper tells systemd that it is ready, that it works, and that it ends. The unit requires this."""
    flows.helper.end()
    flows.helper.notified()
    flows.helper.start()
    eventually(lambda: flows.dut.control.ask("flowspec")[0]["state"] == "running", 10, 0.02)
    said = flows.helper.notified()  # before the queue of the socket is full
    flows.helper.end()
    said += flows.helper.notified()
    assert (said[0], set(said[1:-1]), said[-1]) == ("READY=1", {"WATCHDOG=1"}, "STOPPING=1")
    with open(UNIT, encoding="utf-8") as file:
        assert {"Type=notify", "WatchdogSec=30"} <= set(file.read().splitlines())
    flows.helper.start()


def test_rules_that_another_program_removes_are_made_again(flows):
    """The rules are in force again within seconds after another program has deleted the table."""
    flows.peer.flow(f"destination {VICTIM}/32 protocol udp source-port 53")
    flows.helper.settled(**{DNS: "installed"})
    was = handle(flows)
    netns.run(flows.dut.ctl, ["nft", "delete", "table", "inet", "flowspec"])
    # The next table has another handle. Packets pass until it is there, which may be a short time.
    eventually(lambda: handle(flows) not in (None, was), 10, what="a new table")
    flows.helper.settled(**{DNS: "installed"})
    eventually(lambda: not flows.passes(flows.lan.probe(VICTIM, sport=53)), 10, what="the rule is in force")


def handle(flows):
    """Return the number that the kernel has for the table of the helper, or None."""
    said = json.loads(netns.run(flows.dut.ctl, ["nft", "-j", "list", "tables"]))
    tables = [row["table"] for row in said["nftables"] if "table" in row]
    return next((t["handle"] for t in tables if t["name"] == "flowspec"), None)


def test_options_keep_rules_and_trust_the_peer(flows):
    """With --stale-time the rules stay that long after bgpd has died. With --no-validate a flow needs no
    unicast route."""
    helper = flows.helper
    helper.end()
    helper.start("--stale-time", "3", "--no-validate")
    try:
        flows.peer.flow("destination 203.0.113.9/32")
        helper.settled(**{"destination 203.0.113.9/32": "installed"})
        flows.frr.kill("bgpd")
        eventually(lambda: helper.sessions() == {"127.0.0.1": "down"}, 10, 0.02)
        assert helper.kernel_rules() == 1
        eventually(lambda: helper.kernel_rules() == 0, 10, 0.05, "the rule is removed")
    finally:
        flows.frr.restart("bgpd")
        helper.end()
        helper.start()


def test_a_user_without_a_name_runs_it(flows):
    """The unit runs the programs by a user without rights but CAP_NET_ADMIN: nft works."""
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+net_admin"]
    argv += ["--ambient-caps=-all,+net_admin", "--bounding-set=-all,+net_admin", "--no-new-privs"]
    there = f"{flows.dut.dir}/installed"
    shutil.copytree(FOLDER, there)
    netns.run(flows.dut.ctl, [*argv, "/usr/bin/python3", f"{there}/fpm-flowspec", "flush"])
    assert flows.helper.kernel_rules() == 0


def test_exabgp_and_vtysh_have_no_rights(flows):
    """The unit gives the helper CAP_NET_ADMIN for nft. The programs that read from peers and from FRR do
    not inherit it."""
    flows.helper.end()
    folder = f"{flows.dut.dir}/plain"
    shutil.copytree(FOLDER, folder)
    script = f"{folder}/script"
    with open(script, "w", encoding="ascii") as file:
        file.write("awk '/CapEff/ { print \"\\\"\" $2 \"\\\"\" }' /proc/self/status\n")
    os.makedirs(f"{folder}/run")
    shutil.chown(f"{folder}/run", 65534)
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+net_admin"]
    argv += ["--ambient-caps=-all,+net_admin", "--no-new-privs"]
    run = ["/usr/bin/python3", f"{folder}/fpm-flowspec", "run", "--folder", f"{folder}/run"]
    said = netns.run(flows.dut.ctl, [*argv, *run, "--exabgp", f"sh {script}"], check=False)
    assert said.split() == ['"0000000000000000"']
    code = f"from fpm_flowspec import origin; print(*origin.vtysh(['x'], 9, ['sh', '{script}']))"
    said = netns.run(flows.dut.ctl, [*argv, "env", f"PYTHONPATH={folder}", "/usr/bin/python3", "-c", code])
    assert said.split() == ["0000000000000000"]
    flows.helper.start()


def test_zebra_survives_flows_of_each_kind(flows):
    """bgpd sends simple flows to zebra, which does not install them. With `local-install lo` zebra
    of FRR 8.4.4 does not crash when they are withdrawn."""
    dst = "destination 198.51.100.9/32"
    some = [
        (f"{dst} protocol udp destination-port 9", "discard"),
        (f"{dst} protocol icmp icmp-type 8", "rate-limit 1000"),
        (f"{dst} protocol tcp tcp-flags S", "discard"),
        (f"{dst} fragment is-fragment", "discard"),
        (f"{dst} packet-length 100", "mark 8"),
        (f"{dst} source 203.0.113.0/24", "redirect 65000:1"),
        (dst, "discard"),
    ]
    for _ in range(2):
        for match, then in some:
            flows.peer.flow(match, then)
        eventually(lambda: len(flows.helper.flows()) == len(some), 20)
        flows.peer.nothing()
        flows.helper.settled()
    assert "zebra" in flows.dut.fpmctl("audit", timeout=60).stdout
