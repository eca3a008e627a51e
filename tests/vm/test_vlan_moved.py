# SPDX-License-Identifier: BSD-3-Clause
"""VLANs are renamed or moved to another namespace and back by hand, but not deleted. On veths
and on NICs (vlans.py)."""

import contextlib
import shlex
import time
from types import SimpleNamespace

import pytest

from lib import netns
from lib.frr import beside
from lib.wait import eventually
from router import Router
from vlans import ADDRESSES, HOST, HOST6, NET, NET6, PEER, PEER6, VLAN, C, S
from vlans import add, neighbor, tagged, through, vlans
from vlans import lan, machine, router, vlan, wan  # noqa: F401

NEW = SimpleNamespace(name="uplink", tap="uplink")
OTHER, THERE = "198.18.0.0/24", "198.18.0.9"
FRR_CONF = f"""\
hostname r1
fpm address 127.0.0.1
ip route {NET} {PEER}
ipv6 route {NET6} {PEER6}
"""


def rename_up(router, old, new):
    """Rename an interface without setting it down, if the kernel allows that."""
    try:
        router.ip(f"link set {old} name {new}")
    except netns.CommandError:
        router.rename(old, new)


def give_back(router, wan, dev):
    """Restore the addresses and neighbors that the kernel deleted while a VLAN was down or
    away."""
    router.ip(*(f"addr replace {a} dev {dev.tap} nodad" for a in ADDRESSES))
    for peer in (PEER, PEER6):
        neighbor(router, wan, peer, dev)


def both_ways(router, lan, wan):
    """Check that packets of both families pass out of the VLAN and into it."""
    for host, peer, back in ((HOST, PEER, lan.peer4), (HOST6, PEER6, lan.peer6)):
        eventually(lambda h=host: through(lan, lan.probe(h), wan, (C, 100)), 10, 0.01)
        through(wan, tagged(wan.probe(back, src=peer), (C, 100)), lan)


def shown(router, word):
    """Count a word in the commands that show interfaces, routes and neighbors."""
    return "\n".join(
        router.fpmctl(*words).stdout
        for words in (["show", "interfaces"], ["show", "routes", NET], ["show", "neighbors"])
    ).count(word)


@contextlib.contextmanager
def away(router, name="wan0.100"):
    """Move a VLAN to another namespace for the length of the block. At the end it is back or
    deleted."""
    router.ip(f"link set {name} netns {router.far}")
    try:
        yield
        netns.ip_batch([f"link set {name} netns {router.ctl}"], router.far)
    finally:
        netns.command(["ip", "-n", router.far, "link", "del", name], check=False)


def is_equal(router):
    """Return True if RIB and FIB are equal."""
    return router.control.ask("audit")[-1]["differences"] == 0


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_a_renamed_vlan_stays_the_interface(router, lan, wan):
    """A renamed VLAN has its new name in all commands, its counters continue, and its old name
    is free."""
    both_ways(router, lan, wan)
    before = vlans(router)["wan0.100"]["rx_packets"]

    for change, old, new in (
        (Router.rename, VLAN, NEW), (rename_up, NEW, VLAN), (Router.rename, VLAN, NEW)
    ):  # fmt: skip
        change(router, old.name, new.name)
        eventually(lambda n=new: list(vlans(router)) == [n.name], 5, 0.01, "its new name")
        give_back(router, wan, new)
        both_ways(router, lan, wan)
        assert shown(router, old.name) == 0 and shown(router, new.name) >= 4

    assert vlans(router)["uplink"]["rx_packets"] >= before + 6
    said = router.fpmctl("explain", "dst", lan.peer4, "src", PEER, "port", "uplink")
    assert "FORWARDED" in said.stdout, said.stdout + said.stderr
    add(router, vid=200, addresses=("192.0.2.193/28",))
    both_ways(router, lan, wan)
    assert is_equal(router)


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_a_vlan_is_not_served_in_another_namespace_and_is_when_it_returns(router, lan, wan):
    """Other ports lose no packet while a VLAN is in another namespace. Packets for it are dropped
    and counted by reason."""
    ext = router.wires["ext"]
    router.route(OTHER, via=ext.peer4, wire=ext)

    with router.stream(lan, THERE, rate=200) as aside:
        with away(router):
            eventually(lambda: vlans(router) == {}, 2, 0.01, "it is gone")
            assert {router.route_row(n)["state"] for n in (NET, NET6)} == {"down"}
            for host, peer, back in ((HOST, PEER, lan.peer4), (HOST6, PEER6, lan.peer6)):
                assert router.not_forwarded(lan, lan.probe(host)) == {"egress_down": 1}
                probe = tagged(wan.probe(back, src=peer), (C, 100))
                assert router.not_forwarded(wan, probe) == {"vlan_unknown": 1}
            # The name is shown only with the route, which is marked as dead.
            assert shown(router, "wan0.100") == shown(router, "wan0.100 (dead)") == 1
            assert is_equal(router)
        eventually(lambda: "wan0.100" in vlans(router), 5, 0.01, "it is back")
        router.ip("link set wan0.100 up")
        give_back(router, wan, VLAN)
        # The VLAN may have another index, so zebra sends its routes again.
        for prefix, peer in ((NET, PEER), (NET6, PEER6)):
            router.route(prefix, nhid=router.zebra.hop(peer, VLAN))
        both_ways(router, lan, wan)

    assert aside.lost(ext) == []
    assert is_equal(router)


def test_what_is_on_a_vlan_that_is_moved_away_is_ours_again_with_it(router, lan, wan):
    """The dataplane serves neither VLAN while the outer VLAN is away, and both when it returns. For
    the inner VLAN the kernel reports only that it is down."""
    add(router, "s.20", vid=20, protocol="802.1ad", addresses=())
    add(router, "s.30", on="s.20", vid=30)
    inner, tags = SimpleNamespace(name="s.30", tap="s.30"), ((S, 20), (C, 30))
    neighbor(router, wan, PEER, inner)
    router.route(NET, via=PEER, wire=inner)
    through(lan, lan.probe(HOST), wan, *tags)

    with away(router, "s.20"):
        eventually(lambda: vlans(router) == {}, 2, 0.01, "neither VLAN is served")
        probe = tagged(wan.probe(lan.peer4, src=PEER), *tags)
        assert router.not_forwarded(wan, probe) == {"vlan_unknown": 1}
    router.ip("link set s.20 up", "link set s.30 up")
    eventually(lambda: vlans(router).get("s.30", {}).get("up"), 5, 0.01, "both VLANs are served")
    neighbor(router, wan, PEER, inner)
    eventually(lambda: through(lan, lan.probe(HOST), wan, *tags), 5, 0.01)
    through(wan, tagged(wan.probe(lan.peer4, src=PEER), *tags), lan)


def audited(router, frr, routes):
    """Check that zebra, RIB and FIB are equal and have this number of routes."""
    ask = ["audit", "--vtysh", shlex.join(frr.vtysh_argv())]

    def same():
        done = router.fpmctl(*ask)
        if done.returncode != 0 or f"zebra   {routes} routes\n" not in done.stdout:
            raise LookupError(done.stdout + done.stderr)
        return True

    eventually(same, 20, 0.5, "equal")


def silence(stream, wan):
    """Return the longest time without a packet of a stream."""
    stream.stop()
    came = sorted(when for when, _ in wan.timed(stream.mark))
    return max(b - a for a, b in zip(came, came[1:]))


def test_with_frr(router, lan, wan, capsys):
    """zebra takes a renamed interface for another one. zebra, RIB and FIB are equal after each
    change. The VLAN forwards when the addresses and neighbors that the kernel deleted are set
    again; nothing else is needed."""
    router.zebra.close()
    add(router)
    neighbor(router, wan)
    neighbor(router, wan, PEER6)
    silent = {}
    with beside(router, FRR_CONF) as frr:
        both_ways(router, lan, wan)
        audited(router, frr, 2)
        stream = router.stream(lan, HOST, rate=200)
        with stream:
            router.rename("wan0.100", "uplink")
            eventually(lambda: "uplink" in vlans(router), 5, 0.01, "its new name")
            give_back(router, wan, NEW)
            both_ways(router, lan, wan)
        silent["renamed"] = silence(stream, wan)
        audited(router, frr, 2)
        assert shown(router, "wan0.100") == 0 and shown(router, "uplink") >= 4
        router.rename("uplink", "wan0.100")
        give_back(router, wan, VLAN)
        both_ways(router, lan, wan)

        with away(router):
            eventually(lambda: not router.route_row(NET), 10, 0.05, "zebra withdraws it")
            assert router.not_forwarded(lan, lan.probe(HOST)) == {"no_route": 1}
            audited(router, frr, 0)
        begin = time.monotonic()
        router.ip("link set wan0.100 up")
        give_back(router, wan, VLAN)
        both_ways(router, lan, wan)
        silent["back"] = time.monotonic() - begin
        audited(router, frr, 2)
    with capsys.disabled():
        print(f"\nno packet for {silent['renamed']:.2f} s when renamed, down meanwhile; "
              f"forwarded {silent['back']:.2f} s after `up` of one that was away")  # fmt: skip
