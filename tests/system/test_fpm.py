# SPDX-License-Identifier: BSD-3-Clause
"""Packets take the routes that zebra sends over FPM: every message, in any order, in time."""

import struct

import pytest

from lib import fpm_speaker as fpm
from lib.wait import eventually
from on_time import Medians, comes_in_time, coming, dropping
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


def leads_to(dut, wire, dst, out):
    """Assert that packets come out at `out` within the 100 ms that a change may take."""
    comes_in_time(dut, wire, lambda: wire.probe(dst), out)


@pytest.mark.smoke
def test_a_route_is_added_replaced_and_withdrawn_in_time(dut, lan, wan, alt, case):
    """Packets show an added, a replaced and a withdrawn route within 100 ms of zebra's message (the
    medians of five)."""
    net, dst, peer = case
    one, two = dut.zebra.hop(getattr(wan, peer), wan), dut.zebra.hop(
        getattr(alt, peer), alt
    )
    probe, medians = lambda: lan.probe(dst), Medians(dut)
    for _ in range(medians.TIMES):
        dut.zebra.add(net, one)
        medians.until("added", coming(lan, probe, wan))
        dut.zebra.add(net, two)
        medians.until("replaced", coming(lan, probe, alt))
        dut.fence(lan)  # no packet that was sent before the change is on its way
        dut.zebra.drop(net)
        medians.until("withdrawn", dropping(dut, lan, probe, "no_route"))
        dut.fence(lan)
        assert dut.not_forwarded(lan, probe()) == {"no_route": 1}
    medians.are_in_time()


def test_delete_and_add_in_one_frame_shows_no_gap(dut, lan, wan, alt, case):
    """FRR up to 9.0 replaces a route by DELROUTE and NEWROUTE in one frame: no packet is lost."""
    net, dst, peer = case
    one, two = dut.zebra.hop(getattr(wan, peer), wan), dut.zebra.hop(
        getattr(alt, peer), alt
    )
    dut.route(net, nhid=one)

    with dut.stream(lan, dst, rate=1500) as stream:
        for n in range(150):
            nhid = (two, one)[n % 2]
            dut.zebra.together(
                dut.zebra.drop_message(net), dut.zebra.add_message(net, nhid)
            )
            sent = stream.sent
            eventually(lambda s=sent: stream.sent > s, 2, 0.001)

    assert stream.lost(wan, alt) == []
    assert len(stream.arrived(wan)) > 0 and len(stream.arrived(alt)) > 0


def test_replace_without_delete_shows_no_gap(dut, lan, wan, alt, case):
    """FRR from 9.1 on replaces a route by a NEWROUTE over the existing route: no packet is lost."""
    net, dst, peer = case
    one, two = dut.zebra.hop(getattr(wan, peer), wan), dut.zebra.hop(
        getattr(alt, peer), alt
    )
    dut.route(net, nhid=one)

    with dut.stream(lan, dst, rate=1500) as stream:
        for n in range(150):
            dut.zebra.add(net, (two, one)[n % 2])
            sent = stream.sent
            eventually(lambda s=sent: stream.sent > s, 2, 0.001)

    assert stream.lost(wan, alt) == []
    assert len(stream.arrived(alt)) > 0


def test_a_changed_next_hop_moves_its_routes(dut, lan, wan, alt, case):
    """NEWNEXTHOP changes an existing next hop and moves its routes by late binding, without a route
    message. No packet is lost."""
    net, dst, peer = case
    nhid = dut.zebra.hop(getattr(wan, peer), wan)
    dut.route(net, nhid=nhid)

    with dut.stream(lan, dst) as stream:
        dut.zebra.hop(getattr(alt, peer), alt, nhid=nhid)
        leads_to(dut, lan, dst, alt)

    assert stream.lost(wan, alt) == []


def test_a_changed_group_moves_its_routes(dut, lan, wan, alt, case):
    """NEWNEXTHOP changes an existing group and moves its routes, without a route message."""
    net, dst, peer = case
    one, two = dut.zebra.hop(getattr(wan, peer), wan), dut.zebra.hop(
        getattr(alt, peer), alt
    )
    group = dut.zebra.group([one])
    dut.route(net, nhid=group)
    dut.forwarded(lan, lan.probe(dst), wan)

    dut.zebra.group([two], nhid=group)

    leads_to(dut, lan, dst, alt)


def test_a_changed_member_moves_the_routes_of_its_group(dut, lan, wan, alt, case):
    """NEWNEXTHOP of a member moves the routes of its group: late binding over two levels, route ->
    group -> member."""
    net, dst, peer = case
    one = dut.zebra.hop(getattr(wan, peer), wan)
    group = dut.zebra.group([one])
    dut.route(net, nhid=group)
    dut.forwarded(lan, lan.probe(dst), wan)

    dut.zebra.hop(getattr(alt, peer), alt, nhid=one)

    leads_to(dut, lan, dst, alt)


def test_route_before_group_before_member(dut, lan, wan, case):
    """The daemon accepts any order: every replay has groups before their members, and routes may
    come first."""
    net, dst, peer = case
    dut.zebra.add(net, 901)
    dut.zebra.group([902], nhid=901)
    eventually(lambda: dut.route_row(net)["state"] == "unresolved")

    dut.zebra.hop(getattr(wan, peer), wan, nhid=902)

    leads_to(dut, lan, dst, wan)


def test_an_id_never_announced_is_unresolved_and_hides_shorter_prefixes(
    dut, lan, wan, case
):
    """A route with an id that zebra never announced is unresolved. Its packets are dropped and do
    not take a shorter prefix."""
    net, dst, peer = case
    default = "0.0.0.0/0" if peer == "peer4" else "::/0"
    dut.route(default, via=getattr(wan, peer), wire=wan)
    dut.route(net, nhid=77777)

    drops = dut.not_forwarded(lan, lan.probe(dst), lan.probe(dst))

    assert drops == {"unresolved_nh": 2}
    assert dut.route_row(net)["state"] == "unresolved"


def test_delnexthop_keeps_the_route(dut, lan, wan, alt, case):
    """DELNEXTHOP of an id in use, as FRR 8.4 sends after a replay, keeps the route. Its last next
    hop stays in force until zebra sends the id or the route again."""
    net, dst, peer = case
    nhid = dut.zebra.hop(getattr(wan, peer), wan)
    dut.route(net, nhid=nhid)
    dut.forwarded(lan, lan.probe(dst), wan)

    dut.zebra.drop_hop(nhid)
    group = dut.route_row(net)["group"]
    rows = lambda: [
        r for r in dut.control.ask("groups") if r["group"] == group
    ]  # noqa: E731
    eventually(lambda: rows()[0]["absent"])
    dut.forwarded(lan, lan.probe(dst), wan)

    dut.zebra.hop(getattr(alt, peer), alt, nhid=nhid)
    leads_to(dut, lan, dst, alt)
    dut.forwarded(lan, lan.probe(dst), alt)


def test_inline_gateway(dut, lan, wan, case):
    """A kernel route that an operator added comes with RTA_GATEWAY and without an id, and it
    forwards."""
    net, dst, peer = case
    dut.route(net, gateway=getattr(wan, peer), oif=dut.ifindex(wan))

    assert dut.forwarded(lan, lan.probe(dst), wan).dst == wan.mac


def test_inline_multipath(dut, lan, wan, alt, case):
    """A route with RTA_MULTIPATH spreads its flows (`no fpm use-next-hop-groups`)."""
    net, dst, peer = case
    hops = [{"gateway": getattr(w, peer), "oif": dut.ifindex(w)} for w in (wan, alt)]
    dut.route(net, multipath=hops)
    probes = [lan.probe(dst, sport=5000 + n) for n in range(200)]

    lan.send(*map(bytes, probes))
    dut.fence(lan)

    on_wan, on_alt = (sum(1 for d in w.got() if token_of(d)) for w in (wan, alt))
    assert on_wan + on_alt == 200 and on_wan > 50 and on_alt > 50


def test_ipv4_over_an_ipv6_next_hop(dut, lan, wan):
    """IPv4 over an IPv6 next hop has EtherType 0x0800 and the MAC of the IPv6 neighbor (RFC
    8950)."""
    mac = dut.neighbor("fe80::89", wan, "02:00:00:00:89:50")
    nhid = dut.zebra.hop("fe80::89", wan)
    dut.route(NET, nhid=nhid)
    dut.route("203.0.113.0/24", gateway="fe80::89", oif=dut.ifindex(wan))
    # The same id serves both families.
    dut.route(NET6, nhid=nhid)

    for dst, kind in ((HOST, 0x800), ("203.0.113.9", 0x800), (HOST6, 0x86DD)):
        out = dut.forwarded(lan, lan.probe(dst), wan)
        assert (out.dst, out.type) == (mac, kind)


def test_an_onlink_gateway_outside_the_subnet(dut, lan, wan):
    """A gateway with RTNH_F_ONLINK resolves on the given interface, without regard to its subnets.
    FRR up to 10.5 sends IPv4 over IPv6 this way (169.254.0.1)."""
    mac = dut.neighbor("169.254.0.1", wan, "02:00:00:00:16:92")
    dut.route(NET, nhid=dut.zebra.hop("169.254.0.1", wan, onlink=True))
    # Without next-hop groups the gateway comes inside the route.
    inside = {"gateway": "169.254.0.1", "oif": dut.ifindex(wan), "onlink": True}
    dut.route("203.0.113.0/24", **inside)
    dut.route("203.0.113.0/25", multipath=[inside])

    for dst in (HOST, "203.0.113.200", "203.0.113.9"):
        assert dut.forwarded(lan, lan.probe(dst), wan).dst == mac


def test_a_next_hop_without_gateway_is_onlink(dut, lan, wan, case):
    """A route with only an interface makes every destination a neighbor on it."""
    net, dst, _ = case
    wan.answer(dst, "02:00:00:00:99:01")
    dut.route(net, nhid=dut.zebra.hop(wire=wan))

    assert dut.forwarded(lan, lan.probe(dst), wan, timeout=3).dst == "02:00:00:00:99:01"


def test_link_local_prefixes_of_zebra_are_ignored(dut, lan):
    """The daemon ignores fe80::/64, because zebra sends it for only one of the interfaces."""
    dut.zebra.add("fe80::/64", dut.zebra.hop(wire=dut.wires["wan"]), protocol=2)
    dut.route("2001:db8:f000::/64", rtm_type=fpm.RTN_BLACKHOLE)  # read after the first

    assert dut.route_row("fe80::/64") is None


def test_connected_routes_of_zebra_are_not_trusted(dut, lan, wan, alt):
    """The daemon takes connected subnets from the kernel. A stale or wrong connected route of zebra
    (protocol kernel) neither replaces nor outlives it."""
    wrong = dut.zebra.hop(alt.peer4, alt)
    dut.zebra.add(wan.host4, wrong, protocol=fpm.PROTO_KERNEL)
    dut.zebra.add("203.0.113.0/24", dut.zebra.hop(wire=wan), protocol=fpm.PROTO_KERNEL)
    dut.route(NET, rtm_type=fpm.RTN_BLACKHOLE)

    assert dut.forwarded(lan, lan.probe(wan.peer4), wan).dst == wan.mac
    assert dut.route_row(wan.host4)["source"] == "connected"


def test_other_tables_are_not_forwarded(dut, lan, wan):
    """Routes of table 100 have another user: the daemon shows them and keeps them out of the main
    FIB."""
    nhid = dut.zebra.hop(wan.peer4, wan)
    for table in (100, 1000):
        dut.zebra.add(NET, nhid, table=table)
    eventually(lambda: dut.fpm()["other_tables"] == 2)

    assert dut.not_forwarded(lan, lan.probe(HOST)) == {"no_route": 1}
    rows = [r for r in dut.control.ask("routes") if r["prefix"] == NET]
    assert {(r["table"], r["state"]) for r in rows} == {
        (100, "not-installed"),
        (1000, "not-installed"),
    }


def test_a_route_out_of_no_port_is_not_leaked(dut, lan, wan):
    """A route by an interface of the kernel that is no port: the daemon drops its packets, counts
    them and shows the state."""
    dut.route("0.0.0.0/0", via=wan.peer4, wire=wan)
    dut.route(NET, nhid=dut.zebra.hop("127.0.0.9", oif=1))

    assert dut.not_forwarded(lan, lan.probe(HOST)) == {"foreign_oif": 1}


@pytest.mark.parametrize("n", [17, 18])
def test_more_labels_than_can_be_pushed_are_counted(dut, lan, wan, n):
    """The router drops and counts packets to a next hop with more than 16 labels, because without
    them they would go to another network. The row of the route says so."""
    nhid = dut.zebra.hop(wan.peer4, wan, labels=range(16, 16 + n))
    dut.route(NET, nhid=nhid)

    assert dut.not_forwarded(lan, lan.probe(HOST)) == {"unsupported_encap": 1}
    assert dut.route_row(NET)["state"] == "unsupported"


def test_an_srv6_encapsulation_is_counted_and_shown(dut, lan, wan):
    """Next hops of seg6local (7) that are not supported are counted and shown (End.DX2, inside the
    route); those of seg6 (5) are left to the kernel (a segment routing header of mode inline)."""
    head = fpm.nexthop_message(991, gateway=wan.peer6, oif=dut.ifindex(wan))[16:]
    inline = bytes(4) + bytes([0, 2, 4, 0, 0, 0, 0, 0]) + bytes(16)
    sids = fpm.attr(fpm.NHA_ENCAP_TYPE, b"\5\0") + fpm.attr(fpm.NHA_ENCAP, fpm.attr(1, inline))
    dut.zebra.nexthops.add(991)
    dut.zebra.send(fpm.message(fpm.RTM_NEWNEXTHOP, head + sids))
    dut.route(NET6, nhid=991)
    local = fpm.route_message("2001:db8:51d::1/128", oif=dut.ifindex(wan))[16:]
    local += fpm.attr(fpm.RTA_ENCAP_TYPE, b"\7\0") + fpm.attr(fpm.RTA_ENCAP, fpm.attr(1, 4))
    dut.zebra.prefixes[(254, "2001:db8:51d::1/128")] = None
    dut.zebra.send(fpm.message(fpm.RTM_NEWROUTE, local))
    dut.in_force("2001:db8:51d::1/128")

    probes = [lan.probe(HOST6), lan.probe("2001:db8:51d::1")]
    assert dut.not_forwarded(lan, *probes) == {"unsupported_encap": 1}
    assert dut.route_row(NET6)["state"] == "through-kernel"
    assert dut.route_row("2001:db8:51d::1/128")["state"] == "unsupported"
    assert dut.fpm()["unsupported"] == 1


LSP = bytes([fpm.AF_MPLS, 20, 0, 0, 254, 196, 0, 1]) + bytes(4)


def test_labels_and_macs_of_evpn_are_counted_and_shown(dut, lan, wan):
    """The daemon recognizes and counts messages that are no IP route, shows them in `show routes`
    (a MAC as unsupported), and removes them when zebra deletes them."""
    before = dut.fpm()
    oif = dut.ifindex(wan)
    lsp = LSP + fpm.attr(fpm.RTA_DST, b"\0\6\x41\0")  # label 100, bottom of stack
    via = fpm.attr(fpm.RTA_VIA, b"\2\0\xc0\0\2\x42") + fpm.attr(fpm.RTA_OIF, oif)
    mac = struct.pack("=BBHiHBB", 7, 0, 0, oif, 2, 0x16, 0)
    mac += fpm.attr(12, b"\x0b") + fpm.attr(2, bytes.fromhex("021122334455"))
    vtep = fpm.attr(1, bytes([192, 0, 2, 66]))
    dut.zebra.send(
        fpm.message(fpm.RTM_NEWROUTE, lsp + via), fpm.message(fpm.RTM_NEWNEIGH, mac + vtep)
    )
    dut.route(NET, via=wan.peer4, wire=wan)

    rows = {r["prefix"]: r for r in dut.control.ask("routes") if r["table"] == 0}
    assert set(rows) == {"label 100", "mac 02:11:22:33:44:55 vlan 0"}
    states = {name: row["state"] for name, row in rows.items()}
    assert states["label 100"] == "forwarding"
    assert states["mac 02:11:22:33:44:55 vlan 0"] == "unsupported"
    for row in rows.values():
        assert row["source"] == "zebra"
        assert [(h["via"], h["dev"]) for h in row["nexthops"]] == [("192.0.2.66", wan.tap)]
    shown = dut.fpmctl("show", "routes").stdout
    assert "label 100" in shown and "(encapsulation not supported)" in shown
    now = dut.fpm()
    assert (now["labels"], now["macs"]) == (before["labels"] + 1, before["macs"] + 1)
    assert now["unsupported"] == 1 and now["malformed"] == before["malformed"]

    dut.zebra.send(
        fpm.message(fpm.RTM_DELROUTE, lsp), fpm.message(fpm.RTM_NEWNEIGH + 1, mac)
    )
    eventually(lambda: dut.fpm()["unsupported"] == 0, 3)
    dut.forwarded(lan, lan.probe(HOST), wan)


def test_unknown_types_are_skipped_and_counted(dut, lan, wan):
    """The daemon skips and counts rules, traffic control and messages of later versions by their
    length. It never guesses."""
    before = dut.fpm()
    nhid = dut.zebra.hop(wan.peer4, wan)
    dut.zebra.together(
        fpm.message(32, bytes(12)),  # RTM_NEWRULE
        fpm.message(4242, bytes(40)),
        dut.zebra.add_message(NET, nhid),
        fpm.message(fpm.RTM_NEWROUTE, bytes([12]) + LSP[1:]),  # DECnet
    )

    dut.in_force(NET)
    dut.forwarded(lan, lan.probe(HOST), wan)
    now = dut.fpm()
    assert now["skipped_type"] == before["skipped_type"] + 2
    assert now["skipped_route"] == before["skipped_route"] + 1


def test_frames_may_be_cut_anywhere(dut, lan, wan):
    """TCP may cut frames anywhere: a stream sent octet by octet has the same effect."""
    message = dut.zebra.add_message(NET, dut.zebra.hop(wan.peer4, wan))
    for octet in fpm.frame(message) * 2:
        dut.zebra.raw(bytes([octet]))

    dut.in_force(NET)
    dut.forwarded(lan, lan.probe(HOST), wan)


def test_all_messages_of_a_large_frame_count(dut, lan, wan):
    """The daemon reads all messages of a frame of up to 65,535 octets."""
    nhid = dut.zebra.hop(wan.peer6, wan)
    nets = [f"2001:db8:f{n:03x}::/48" for n in range(900)]
    dut.zebra.together(*(dut.zebra.add_message(net, nhid) for net in nets))

    eventually(lambda: dut.fpm()["zebra6"] == 900)
    dut.forwarded(lan, lan.probe("2001:db8:f383::1"), wan)


def test_delete_of_what_is_not_there_is_nothing(dut, lan, wan):
    """zebra deletes routes that it never announced. The daemon ignores this and reads the later
    messages."""
    before = dut.fpm()
    dut.zebra.drop("203.0.113.0/25", "2001:db8:ffff::/48")
    dut.zebra.drop_hop(4040404)

    dut.route(NET, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)
    assert dut.fpm()["malformed"] == before["malformed"]


def test_identical_messages_change_nothing(dut, lan, wan):
    """A repeated route changes nothing. zebra repeats a route when BGP updates only its
    attributes."""
    nhid = dut.zebra.hop(wan.peer4, wan)
    dut.route(NET, nhid=nhid)

    with dut.stream(lan, HOST) as stream:
        for _ in range(200):
            dut.zebra.hop(wan.peer4, wan, nhid=nhid)
            dut.zebra.add(NET, nhid)
        eventually(lambda: stream.sent > 400)

    assert stream.lost(wan) == []
