# SPDX-License-Identifier: BSD-3-Clause
"""Flow specifications that a BGP peer announces filter packets in transit (RFC 8955, 8956): the peer,
FRR, ExaBGP, fpm-flowspec, nft and the dataplane are the real ones."""

import pytest

from flowspec import FRR, Announcer, Helper
from foreign import AS_OURS, AS_THEIRS
from lib import netns
from lib.frr import beside
from lib.peers import exabgp, program
from lib.wait import eventually
from router import Router, running

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
DNS = "destination 198.51.100.9/32 protocol =17 source-port =53"


class Filtered:
    """The router with all programs beside it."""

    def __init__(self, dut, frr):
        self.dut, self.frr = dut, frr
        self.lan, self.wan = dut.wires["lan"], dut.wires["wan"]
        self.peer, self.helper = Announcer(dut), Helper(dut, frr)

    def close(self):
        """End the programs that are not FRR."""
        self.peer.kill()
        self.helper.end()

    def passes(self, probe):
        """Return True if a probe from lan leaves by wan."""
        drops = self.dut.counters()
        self.lan.send(probe)
        self.dut.fence(self.lan)
        dropped = self.dut.drops(drops)
        assert dropped in ({}, {"filter": 1}), dropped
        return not dropped


@pytest.fixture(scope="module")
def router(possible):
    """A router between lan and wan. On wan a peer announces 198.51.100.0/24 and 2001:db8:5::/48."""
    for name, found in (("ExaBGP", exabgp()), ("GoBGP", program("gobgpd"))):
        if found is None:
            pytest.skip(f"{name} is not there: make peers")
    with running(Router(name="fsp"), ("fpm:\n", CONFIG)) as dut:
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
    """The router without a flow specification at the begin and at the end."""
    router.helper.settled()
    yield router
    router.peer.nothing()
    router.helper.settled()


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
