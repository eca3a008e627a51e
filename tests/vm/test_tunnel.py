# SPDX-License-Identifier: BSD-3-Clause
"""Tunnels of the kernel are interfaces of the dataplane. A Linux kernel is the far end: pings go
through the tunnel and back, and the forwarders forward them in both directions. The far end
accepts the outer packets."""

import json

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    IPv6,
)
from scapy.layers.l2 import GRE, Ether
from scapy.packet import Raw

from lib import api, netns
from lib.wait import eventually
from router import Router, running
from test_capture import capture
from watching import Watching
from wire import token, token_of

MODULES = ("ip_gre", "ipip", "sit", "ip6_gre", "ip6_tunnel")
# Hosts behind the far end, and the addresses of the far end in the tunnel.
HOST = {4: "198.51.100.9", 6: "2001:db8:a::9"}
NET = {4: "198.51.100.0/24", 6: "2001:db8:a::/48"}
INSIDE = {4: "10.9.0.{}/30", 6: "2001:db8:99::{}/64"}
# Kind: words for ip, family of the outer header, families of the packets.
KINDS = {
    "gre": ("type gre", 4, (4, 6)),
    "gre-key": ("type gre ikey 7 okey 7 ttl 64 tos inherit", 4, (4, 6)),
    "ipip": ("type ipip", 4, (4,)),
    "sit": ("type sit", 4, (6,)),
    "sit-any": ("type sit mode any", 4, (4, 6)),
    "ip6gre": ("type ip6gre", 6, (4, 6)),
    "ip6gre-key": ("type ip6gre key 4000000000 encaplimit none", 6, (4, 6)),
    "ip6ip6": ("type ip6tnl mode ip6ip6", 6, (6,)),
    "ipip6": ("type ip6tnl mode ipip6 encaplimit none", 6, (4,)),
    "ip6-any": ("type ip6tnl mode any", 6, (4, 6)),
}


def far_end(router):
    """Let a Linux kernel be the neighbor on the port wan0, with addresses behind it."""
    far, wan = router.far, router.wires["wan"]
    netns.command(["modprobe", "-a", *MODULES])
    netns.sysctl(far, {"net.ipv6.conf.wan.disable_ipv6": 0, "net.ipv6.conf.lo.disable_ipv6": 0,
                       "net.ipv6.conf.wan.accept_dad": 0, "net.ipv4.conf.all.rp_filter": 0,
                       "net.ipv4.icmp_ratelimit": 0, "net.ipv6.icmp.ratelimit": 0})  # fmt: skip
    netns.ip_batch(["link set lo up", *addresses("add", wan)], far)


def addresses(verb, wan):
    """Return the commands for the addresses of the far end."""
    nodad = " nodad" if verb == "add" else ""
    return [
        f"addr {verb} {wan.peer4}/26 dev wan",
        f"-6 addr {verb} {wan.peer6}/64 dev wan{nodad}",
        f"addr {verb} {HOST[4]}/32 dev lo",
        f"-6 addr {verb} {HOST[6]}/128 dev lo{nodad}",
    ]


@pytest.fixture(scope="module")
def dut(on_veths):
    """Return a router whose port wan0 has a Linux kernel at its far end."""
    on_veths.ready()
    far_end(on_veths)
    yield on_veths
    netns.ip_batch(addresses("del", on_veths.wires["wan"]), on_veths.far)
    netns.sysctl(on_veths.far, {"net.ipv6.conf.wan.disable_ipv6": 1})


def row(dut, name="t0"):
    """Return the row of an interface, or None."""
    rows = dut.control.ask("interfaces")
    api.validate(rows, api.rows_schema("GET", "/interfaces")[1]["schema"])
    return next((r for r in rows if r["name"] == name), None)


def is_ours(dut, name="t0"):
    """Wait until the forwarders serve a tunnel. Return its row."""

    def served():
        found = row(dut, name)
        assert found and found["up"] and found["by_kernel"] is None and "rx_packets" in found, found
        return found

    return eventually(served, 10, 0.05, f"tunnel {name}")


def tunnel_add(dut, words, family, inner, more=""):
    """Make a tunnel between the router and the far end, with routes through it on both sides."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    ends = (wan.own(family), wan.peer(family))
    for where, (local, remote), n in ((dut.ctl, ends, 1), (dut.far, ends[::-1], 2)):
        netns.ip_batch([f"link add t0 {words} local {local} remote {remote} {more}"], where)
        netns.sysctl(where, {"net.ipv6.conf.t0.disable_ipv6": 0, "net.ipv4.conf.t0.rp_filter": 0})
        lines = ["link set t0 up"]
        for each in inner:
            flag = "-6 " if each == 6 else ""
            nodad = " nodad" if each == 6 else ""
            lines.append(f"{flag}addr add {INSIDE[each].format(n)} dev t0{nodad}")
        netns.ip_batch(lines, where)
    back = {4: lan.host4, 6: f"{lan.ip6.rpartition('::')[0]}::/64"}
    for each in inner:
        flag = "-6 " if each == 6 else ""
        netns.ip_batch([f"{flag}route add {NET[each]} dev t0"], dut.ctl)
        netns.ip_batch([f"{flag}route add {back[each]} dev t0"], dut.far)
    is_ours(dut)
    for each in inner:
        net = NET[each]
        eventually(lambda n=net: dut.route_row(n), 5, 0.01, f"route {net}")


def tunnel_del(dut):
    """Remove the tunnel, and its routes with it."""
    for where in (dut.ctl, dut.far):
        netns.command(["ip", "-n", where, "link", "del", "t0"], check=False)
    eventually(lambda: row(dut) is None, 5, 0.01, "no tunnel")


@pytest.fixture(params=KINDS)
def tunnel(request, dut):
    """Make each kind of tunnel. Return (kind, outer family, inner families)."""
    words, family, inner = KINDS[request.param]
    tunnel_add(dut, words, family, inner)
    yield request.param, family, inner
    tunnel_del(dut)


def echo(wire, family, size=0, **fields):
    """Return an echo request with a token, from the peer of a wire to the host behind the tunnel."""
    load = token()
    load += bytes(max(0, size - len(load) - (28 if family == 4 else 48)))
    head = Ether(src=wire.mac, dst=wire.port_mac)
    if family == 4:
        return head / IP(src=wire.peer4, dst=HOST[4], **fields) / ICMP(id=1, seq=1) / Raw(load)
    return head / IPv6(src=wire.peer6, dst=HOST[6], **fields) / ICMPv6EchoRequest() / Raw(load)


def replies(dut, family, n=1, **fields):
    """Send echo requests through the tunnel. Return (the outer packets, the answers)."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    out, back = [], []
    for _ in range(n):
        probe = echo(lan, family, **fields)
        answer = lan.srp1(probe, 5)
        assert (answer[ICMP].type == 0) if family == 4 else ICMPv6EchoReply in answer
        back.append(answer)
        out.append(Ether(wan.got(token_of(probe))[0]))
    return out, back


def by_forwarders(dut):
    """Return (packets that the forwarders have sent, packets that the kernel got to route)."""
    return sum(v for k, v in dut.counters("total").items() if k.startswith("forwarded")), dut.counter(
        "punt", "kernel_route"
    )


@pytest.mark.quick
def test_packets_go_through_a_tunnel_and_back(dut, tunnel):
    kind, family, inner = tunnel
    was = is_ours(dut)
    assert was["tunnel"] == KINDS[kind][0].split()[1]
    assert (was["local"], was["remote"]) == (
        dut.wires["wan"].own(family),
        dut.wires["wan"].peer(family),
    )
    replies(dut, inner[0])  # neighbors are known now
    before, base = by_forwarders(dut), is_ours(dut)
    drops = dut.counters()
    for each in inner:
        ttl = {"ttl": 40} if each == 4 else {"hlim": 40}
        out, back = replies(dut, each, n=5, **ttl)
        outer = out[0][IP if family == 4 else IPv6]
        assert (outer.src, outer.dst) == (was["local"], was["remote"])
        inside = outer.payload[IP if each == 4 else IPv6]
        assert (inside.ttl if each == 4 else inside.hlim) == 39
        # The far end answered with 64.
        assert (back[0][IP].ttl if each == 4 else back[0][IPv6].hlim) == 63
        if "gre" in kind:
            assert outer[GRE].proto == (0x0800 if each == 4 else 0x86DD)
            assert outer[GRE].key_present == ("key" in kind)
    n = 5 * len(inner)
    after, now = by_forwarders(dut), is_ours(dut)
    assert (after[0] - before[0], after[1] - before[1]) == (2 * n, 0), (before, after)
    assert now["tx_packets"] - base["tx_packets"] == n
    # The far end may have solicited a router or joined a group meanwhile.
    assert now["rx_packets"] - base["rx_packets"] in range(n, n + 4)
    assert dut.drops(drops) == {}
    assert doctor(dut)[""]["status"] == "ok"


def test_to_us_through_a_tunnel(dut):
    """The kernel of the router answers pings to the router, and sends pings itself."""
    tunnel_add(dut, "type gre", 4, (4, 6))
    try:
        for where, to in ((dut.far, 1), (dut.ctl, 2)):
            for each in (4, 6):
                addr = INSIDE[each].format(to).split("/")[0]
                netns.run(where, ["ping", "-c", "3", "-i", "0.2", "-W", "5", addr])
    finally:
        tunnel_del(dut)


def test_a_route_by_a_gateway_behind_the_tunnel(dut):
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        dut.ip(f"route replace {NET[4]} via {INSIDE[4].format(2).split('/', maxsplit=1)[0]} dev t0")
        eventually(lambda: dut.route_row(NET[4])["nexthops"][0]["via"] == "10.9.0.2", 5, 0.01)
        before = by_forwarders(dut)
        replies(dut, 4)
        assert [a - b for a, b in zip(by_forwarders(dut), before)] == [2, 0]
    finally:
        tunnel_del(dut)


def test_the_outer_header_has_ttl_tos_and_ecn(dut):
    tunnel_add(dut, "type gre ttl 17 tos inherit", 4, (4,))
    try:
        out, _ = replies(dut, 4, ttl=40, tos=0xB9)  # ECT(1)
        assert (out[0][IP].ttl, out[0][IP].tos) == (17, 0xB9)
    finally:
        tunnel_del(dut)
    tunnel_add(dut, "type gre tos 0x20 nopmtudisc", 4, (4,))
    try:
        out, _ = replies(dut, 4, ttl=40, tos=0xBA)
        assert (out[0][IP].ttl, out[0][IP].tos, out[0][IP].flags) == (39, 0x22, 0)
        out, _ = replies(dut, 4, flags="DF")
        assert out[0][IP].flags == "DF"
    finally:
        tunnel_del(dut)


def test_packets_larger_than_the_tunnel(dut):
    tunnel_add(dut, "type gre", 4, (4, 6))
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    try:
        assert is_ours(dut)["mtu"] == 1476 and "t0" not in doctor(dut)
        dut.ip("link set t0 mtu 1500")
        eventually(lambda: is_ours(dut)["mtu"] == 1500, 5, 0.01, "MTU")
        assert "MTU 1500, but only 1476 fit by wan0" in doctor(dut)["t0"]["text"]
        probe = echo(lan, 4, size=1490, flags="DF")
        error = lan.srp1(probe, 5)
        assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1476)
        probe = echo(lan, 6, size=1490)
        assert lan.srp1(probe, 5)[ICMPv6PacketTooBig].mtu == 1476
        # Without DF the packet is fragmented, and each fragment has outer headers. The far end
        # answers the whole packet, in fragments of its own.
        probe = echo(lan, 4, size=1490)
        wan.clear()
        lan.send(probe)
        is_gre = lambda d: d[12:14] == b"\x08\x00" and d[23] == 47  # noqa: E731
        pieces = [Ether(d) for d in wan.expect_many(is_gre, 2, 5)]
        assert all(p[IP].len <= 1500 and p[GRE].proto == 0x0800 for p in pieces)
        lan.expect(token_of(probe), 5)
    finally:
        tunnel_del(dut)


@pytest.mark.parametrize("kind", ["gre", "ipip", "ip6gre", "sit", "ip6ip6", "ipip6"])
def test_the_sender_of_a_lost_packet_is_told(dut, kind):
    """An ICMP error about an outer packet comes from the core (RFC 2003, 5; RFC 2473, 8.1). The
    kernel of the router tells the sender, as in Linux. For most kinds the kernel gets the next
    packet into the tunnel, and its error is about this packet. For ip6tnl its error is about the
    packet that the error from the core quotes. The kernel gets no other packet. For sit the
    error from the core quotes only the minimum of RFC 792: if it quotes more, the kernel informs
    no sender."""
    words, family, inner = KINDS[kind]
    each = inner[0]
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    tunnel_add(dut, words, family, inner)
    try:
        (sent,), _ = replies(dut, each)
        quoted = bytes(sent.payload)[: 28 if kind == "sit" else 200]
        if family == 4:
            error = IP(src=wan.peer4, dst=wan.ip4) / ICMP(type=3, code=1) / quoted
        else:
            error = IPv6(src=wan.peer6, dst=wan.ip6) / ICMPv6DestUnreach(code=3) / quoted
        before = dut.counter("punt", "kernel_route")
        lan.clear()
        wan.send(Ether(src=wan.mac, dst=wan.port_mac) / error)
        # Host, or address, unreachable.
        proto, at, want = (23, 34, b"\x03\x01") if each == 4 else (20, 54, b"\x01\x03")
        is_error = lambda d: d[proto] == (1 if each == 4 else 58) and d[at : at + 2] == want  # noqa: E731

        def told():
            # The far end answers this packet, too.
            lan.send(echo(lan, each))
            return lan.got(is_error)

        eventually(told, 5, 0.05, "the sender is told")
        replies(dut, each, n=3)
        assert dut.counter("punt", "kernel_route") == before + 1
    finally:
        tunnel_del(dut)


def doctor(dut):
    """Return {tunnel: row} of doctor's check of tunnels."""
    return {r["subject"]: r for r in json.loads(dut.fpmctl("--json", "doctor", "tunnels").stdout)}


def test_what_stays_with_the_kernel(dut):
    """The kernel serves these tunnels as before. `show interfaces`, doctor, the log and a warning
    have the reason."""
    for words, reason in (
        ("type gre icsum ocsum", "checksum"),
        ("type gre iseq oseq", "sequence"),
        ("type gre external", "external"),
        ("type ipip remote 192.0.2.66", "no-local"),
    ):
        if "external" not in words and "remote" not in words:
            wan = dut.wires["wan"]
            words += f" local {wan.ip4} remote {wan.peer4}"
        dut.ip(f"link add t1 up {words}")
        try:
            eventually(lambda r=reason: (row(dut, "t1") or {}).get("by_kernel") == r, 5, 0.05, reason)
            assert f"served by the kernel: {reason}" in dut.fpmctl("show", "interfaces", "t1").stdout
            assert doctor(dut)["t1"]["status"] == "warn"
            said = f"neigh: tunnel left to the kernel dev=t1 kind={words.split()[1]} reason={reason}"
            assert (said in dut.log()) == (reason != "external")
            where = f"{words.split()[1]} t1: {reason}"
            eventually(lambda w=where: w in obeyed(dut), 30, 0.1, where)
        finally:
            dut.ip("link del t1")
            eventually(lambda: row(dut, "t1") is None, 5, 0.01)


def obeyed(dut):
    """Return the subjects of the tunnels in `show warnings`."""
    return [r["where"] for r in dut.control.ask("warnings") if r["kind"] == "tunnel"]


def test_a_kind_that_forwarders_do_not_know(dut):
    """GRE with Ethernet inside stays with the kernel, and a warning names it while it is up."""
    wan = dut.wires["wan"]
    dut.ip(f"link add t1 type gretap local {wan.ip4} remote {wan.peer4}")
    try:
        dut.ip("link set t1 up")
        eventually(lambda: "gretap t1: kind" in obeyed(dut), 30, 0.1, "a warning")
        assert row(dut, "t1").get("by_kernel") is None
    finally:
        dut.ip("link del t1")
    eventually(lambda: "gretap t1: kind" not in obeyed(dut), 30, 0.1, "no warning")


def test_a_tunnel_with_a_checksum_still_forwards(dut):
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    for where, a, b in ((dut.ctl, wan.ip4, wan.peer4), (dut.far, wan.peer4, wan.ip4)):
        netns.ip_batch([f"link add t0 up type gre csum local {a} remote {b}"], where)
    dut.ip(f"route add {NET[4]} dev t0")
    netns.ip_batch([f"route add {lan.host4} dev t0"], dut.far)
    try:
        eventually(lambda: dut.route_row(NET[4]), 5, 0.01)
        before = dut.counter("punt", "kernel_route")
        out, _ = replies(dut, 4)
        assert out[0][GRE].chksum_present == 1
        assert dut.counter("punt", "kernel_route") == before + 1
    finally:
        tunnel_del(dut)


def test_ipsec_policies_leave_tunnels_to_the_kernel(dut):
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        replies(dut, 4)
        policy = ["src", "203.0.113.1/32", "dst", "203.0.113.2/32", "dir", "out"]
        netns.run(dut.ctl, ["ip", "xfrm", "policy", "add", *policy, "action", "block"])
        eventually(lambda: row(dut)["by_kernel"] == "ipsec", 5, 0.05, "left to the kernel")
        before = dut.counter("punt", "kernel_route")
        replies(dut, 4)
        assert dut.counter("punt", "kernel_route") == before + 1
        netns.run(dut.ctl, ["ip", "xfrm", "policy", "del", *policy])
        is_ours(dut)
        replies(dut, 4)
        assert dut.counter("punt", "kernel_route") == before + 1
    finally:
        tunnel_del(dut)


def test_the_tunnel_is_in_one_vrf_and_its_outer_packets_in_another(dut):
    """Packets of VRF red go into the tunnel. The outer packets are in table main."""
    dut.ip("link add red up type vrf table 100")
    tunnel_add(dut, "type gre", 4, (4,))
    lan = dut.wires["lan"]
    try:
        dut.ip(
            "link set t0 master red",
            "link set lan0 master red",
            f"addr replace {INSIDE[4].format(1)} dev t0",
            f"route add {NET[4]} dev t0 table 100",
        )
        eventually(lambda: row(dut)["vrf"] == "red", 5, 0.05, "in the VRF")
        dut.neighbor(lan.peer4, lan)
        eventually(lambda: replies(dut, 4), 10, 0.1, "through the VRF")
        assert row(dut)["outer_vrf"] is None
    finally:
        dut.ip("link set lan0 nomaster")
        tunnel_del(dut)
        dut.ip("link del red")
        dut.ready()


def test_a_loop_is_dropped(dut):
    """The far end's address is routed into the tunnel itself."""
    dut.ip(
        "link add t0 up type gre local 192.0.2.65 remote 203.0.113.77",
        "route add 203.0.113.77/32 dev t0",
        f"route add {NET[4]} dev t0",
    )
    lan = dut.wires["lan"]
    try:
        is_ours(dut)
        eventually(lambda: dut.route_row(NET[4]) and dut.route_row("203.0.113.77/32"), 5, 0.01)
        assert dut.not_forwarded(lan, lan.probe(HOST[4])) == {"encap_loop": 1}
    finally:
        tunnel_del(dut)


def test_packets_wait_for_the_neighbor_of_the_outer_packet(dut):
    """The first packets are held until the far end has answered ARP."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        dut.ip(f"neigh del {wan.peer4} dev wan0")
        probes = [echo(lan, 4) for _ in range(3)]
        lan.send(*probes)
        for probe in probes:
            lan.expect(token_of(probe), 5)
        sent = [d for d in wan.got() if d[12:14] == b"\x08\x00" and d[23] == 47]
        order = [sent.index(next(d for d in sent if token_of(p) in d)) for p in probes]
        assert order == sorted(order)
    finally:
        tunnel_del(dut)
        dut.ready()


def test_packets_out_of_the_tunnel_wait_for_their_neighbor(dut):
    lan = dut.wires["lan"]
    host = lan.peer4.rpartition(".")[0] + ".10"
    tunnel_add(dut, "type ipip", 4, (4,))
    try:
        lan.answer(host)
        ask = ["ping", "-c", "1", "-W", "1", "-p", "feedc0de", "-I", HOST[4], host]
        netns.run(dut.far, ask, check=False)
        came = lan.expect(bytes.fromhex("feedc0de" * 3), 5)
        assert (came[IP].src, came[IP].dst, came[IP].ttl) == (HOST[4], host, 63)
    finally:
        lan.silence(host)
        tunnel_del(dut)


def test_errors_go_back_through_the_tunnel(dut):
    """The TTL of a packet out of the tunnel is used up. The router sends the error through the tunnel."""
    lan = dut.wires["lan"]
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        ask = ["ping", "-c", "1", "-W", "2", "-t", "1", "-I", HOST[4], lan.peer4]
        said = netns.run(dut.far, ask, check=False)
        assert "From 10.9.0.1" in said and "Time to live exceeded" in said, said
        error = lan.srp1(echo(lan, 4, ttl=1), 5)
        assert (error[ICMP].type, error[IP].src) == (11, lan.ip4)
    finally:
        tunnel_del(dut)


def test_a_tunnel_in_a_tunnel(dut):
    lan = dut.wires["lan"]
    tunnel_add(dut, "type gre", 4, (4,))
    for where, a, b in ((dut.ctl, 1, 2), (dut.far, 2, 1)):
        lines = [f"link add t1 up type ipip local 10.9.0.{a} remote 10.9.0.{b}"]
        netns.ip_batch(lines, where)
        netns.sysctl(where, {"net.ipv4.conf.t1.rp_filter": 0})
    dut.ip(f"route replace {NET[4]} dev t1")
    netns.ip_batch([f"route replace {lan.host4} dev t1"], dut.far)
    try:
        is_ours(dut, "t1")
        eventually(lambda: dut.route_row(NET[4])["nexthops"][0]["dev"] == "t1", 5, 0.01)
        before = by_forwarders(dut)
        out, _ = replies(dut, 4)
        assert [layer.name for layer in (out[0], out[0].payload)] == ["Ethernet", "IP"]
        assert out[0][GRE].payload.proto == 4
        assert [a - b for a, b in zip(by_forwarders(dut), before)] == [2, 0]
    finally:
        for where in (dut.ctl, dut.far):
            netns.command(["ip", "-n", where, "link", "del", "t1"], check=False)
        tunnel_del(dut)


def test_outer_packets_obey_rules_of_this_host(dut):
    """A rule by the source of the outer packets decides on their route, as in Linux."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    tunnel_add(dut, "type gre", 4, (4,))
    rule = f"from {wan.ip4} lookup 77"
    try:
        replies(dut, 4)
        dut.ip("route add blackhole default table 77", f"rule add {rule}")
        eventually(lambda: dut.not_forwarded(lan, lan.probe(HOST[4])) == {"blackhole": 1}, 5, 0.05)
        dut.ip(f"rule del {rule}")
        eventually(lambda: replies(dut, 4), 10, 0.1)
    finally:
        netns.command(["ip", "-n", dut.ctl, "rule", "del", *rule.split()], check=False)
        netns.command(["ip", "-n", dut.ctl, "route", "flush", "table", "77"], check=False)
        tunnel_del(dut)


def explained(dut, wire, packet):
    """Return the row that explains a frame on a wire."""
    frame = bytes(packet)
    want = {"port": wire.tap, "frame": frame.hex(), "frame_bytes": len(frame)}
    (row_of_it,) = dut.control.request({"explain": want})
    api.validate([row_of_it], api.rows_schema("GET", "/explain")[1]["schema"])
    return row_of_it


def test_explain_and_trace_follow_packets_through_tunnels(dut):
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        into = explained(dut, lan, echo(lan, 4))
        assert (into["verdict"], into["path"], into["tunnel"], into["out"]) == ("forwarded", "tunnel", "t0", "wan0")
        assert (into["mtu"], into["via"]) == (1476, wan.peer4)
        outer = Ether(src=wan.mac, dst=wan.port_mac) / IP(src=wan.peer4, dst=wan.ip4) / GRE()
        packet = outer / IP(src=HOST[4], dst=lan.peer4) / ICMP()
        out = explained(dut, wan, packet)
        assert (out["verdict"], out["port"], out["outer_port"], out["out"]) == ("forwarded", "t0", "wan0", "lan0")
        assert (out["src"], out["dst"]) == (HOST[4], lan.peer4)
        said = dut.fpmctl("explain", "port", "lan0", "src", lan.peer4, "dst", HOST[4]).stdout
        assert "into t0" in said and "FORWARDED by wan0" in said, said

        with Watching(dut, trace={"proto": 1}) as watch:
            replies(dut, 4)
            seen = watch.take(2)
        with Watching(dut, trace={"proto": 47}) as watch:
            replies(dut, 4)
            seen.insert(1, watch.row())
        assert [(r["port"], r["verdict"]) for r in seen] == [
            ("lan0", "forwarded"), ("wan0", "decapsulated"), ("t0", "forwarded")]  # fmt: skip
        assert [r.get("tunnel") for r in seen] == ["t0", "t0", None]
    finally:
        tunnel_del(dut)


def test_sources_of_packets_in_the_tunnel_are_checked(dut):
    """The sysctl rp_filter of the tunnel decides. The reverse path to other sources is not the tunnel."""
    lan = dut.wires["lan"]
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        netns.sysctl(dut.ctl, {"net.ipv4.conf.t0.rp_filter": 1})
        eventually(lambda: row(dut)["urpf"] == "strict", 5, 0.01, "strict")
        replies(dut, 4)
        netns.ip_batch(["addr add 203.0.113.9/32 dev lo"], dut.far)
        before = dut.counters()
        netns.run(dut.far, ["ping", "-c", "2", "-i", "0.2", "-W", "1", "-I", "203.0.113.9", lan.peer4], check=False)
        assert dut.drops(before) == {"urpf": 2}
        assert row(dut)["urpf_dropped"] == 2
    finally:
        netns.command(["ip", "-n", dut.far, "addr", "del", "203.0.113.9/32", "dev", "lo"], check=False)
        tunnel_del(dut)


def test_the_path_mtu_that_a_router_tells_is_obeyed(dut):
    """An ICMP error about an outer packet lowers the MTU of the tunnel. A restart forgets it."""
    tunnel_add(dut, "type gre ikey 7 okey 8", 4, (4,))
    netns.command(["ip", "-n", dut.far, "link", "set", "t0", "type", "gre", "ikey", "8", "okey", "7"])
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    try:
        out, _ = replies(dut, 4, size=1300, flags="DF")
        sent = out[0][IP]
        error = IP(src=wan.peer4, dst=sent.src) / ICMP(type=3, code=4, nexthopmtu=1000) / bytes(sent)[:300]
        wan.send(Ether(src=wan.mac, dst=wan.port_mac) / error)

        def is_told():
            answer = lan.srp1(echo(lan, 4, size=973, flags="DF"), 1)
            return (answer[ICMP].type, answer[ICMP].nexthopmtu) == (3, 972)

        eventually(is_told, 20, 0.1, "the sender is told")
        replies(dut, 4, size=972, flags="DF")
    finally:
        tunnel_del(dut)
        dut.stop()
        dut.start()
        dut.ready()


def label_route(where, words):
    """Add a route of a label. `ip -batch` takes no family of labels."""
    netns.command(["ip", "-n", where, "-f", "mpls", "route", "replace", *words.split()])


def labels_add(dut, inner):
    """Let the routes through the tunnel push labels, which the far ends pop."""
    lan, t0 = dut.wires["lan"], {each: [INSIDE[each].format(n).split("/")[0] for n in (1, 2)] for each in inner}
    back = {4: lan.host4, 6: f"{lan.ip6.rpartition('::')[0]}::/64"}
    netns.command(["modprobe", "-a", "mpls_router", "mpls_iptunnel"])
    for where in (dut.ctl, dut.far):
        netns.sysctl(where, {"net.mpls.platform_labels": 1000, "net.mpls.conf.t0.input": 1})
    for each in inner:
        flag, to_lan = ("-6 ", f"inet6 {lan.peer6}") if each == 6 else ("", f"inet {lan.peer4}")
        netns.ip_batch([f"{flag}route replace {NET[each]} encap mpls {100 + each} via {t0[each][1]} dev t0"], dut.ctl)
        netns.ip_batch([f"{flag}route replace {back[each]} encap mpls {200 + each} via {t0[each][0]} dev t0"], dut.far)
        label_route(dut.far, f"{100 + each} dev lo")
        label_route(dut.ctl, f"{200 + each} via {to_lan} dev lan0")

    def known():
        assert {r["label"] for r in dut.control.ask("labels")} == {200 + each for each in inner}
        hops = [dut.route_row(NET[each])["nexthops"][0] for each in inner]
        assert [hop.get("labels") for hop in hops] == [[100 + each] for each in inner]
        return {dut.route_row(NET[each])["state"] for each in inner} == {"forwarding"}

    eventually(known, 10, 0.05, "labels")


def labels_del(dut):
    netns.command(["ip", "-n", dut.ctl, "-f", "mpls", "route", "flush", "proto", "boot"], check=False)
    tunnel_del(dut)


@pytest.mark.parametrize("kind", ["gre", "gre-key", "ip6gre", "ip6gre-key"])
def test_labels_go_through_a_tunnel(dut, kind):
    """RFC 4023: forwarders write labels behind GRE and read labels there, as the far end does."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    words, family, inner = KINDS[kind]
    tunnel_add(dut, words, family, inner)
    try:
        labels_add(dut, inner)
        for each in inner:
            eventually(lambda n=each: lan.srp1(echo(lan, n), 1), 20, 0.1, "neighbors are known")
        before, base, locals_ = by_forwarders(dut), row(dut), dut.counter("punt", "local")
        drops = dut.counters()
        for each in inner:
            wan.clear()
            probe = echo(lan, each, **({"ttl": 40} if each == 4 else {"hlim": 40}))
            answer = lan.srp1(probe, 5)
            assert token_of(answer) == token_of(probe)
            assert (answer[IP].ttl if each == 4 else answer[IPv6].hlim) == 63
            (sent,) = [Ether(d) for d in wan.got(token_of(probe)) if Ether(d).src == wan.port_mac]
            assert (sent[IP].ttl, sent[IP].tos) == (64, 0) if family == 4 else sent[IPv6].hlim == 64
            assert sent[GRE].proto == 0x8847 and sent[GRE].key_present == ("key" in kind)
            assert bytes(sent[GRE].payload)[:4] == ((100 + each) << 12 | 1 << 8 | 39).to_bytes(4, "big")
        n = len(inner)
        assert [a - b for a, b in zip(by_forwarders(dut), before)] == [2 * n, 0]
        assert dut.counter("punt", "local") == locals_
        now = row(dut)
        assert now["tx_packets"] - base["tx_packets"] == n
        assert now["rx_packets"] - base["rx_packets"] in range(n, n + 4)
        assert dut.drops(drops) == {}
    finally:
        labels_del(dut)


def test_labels_are_swapped_into_a_tunnel(dut):
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        labels_add(dut, (4,))
        netns.sysctl(dut.ctl, {"net.mpls.conf.lan0.input": 1})
        eventually(lambda: row(dut, "lan0")["mpls"], 5, 0.05)
        label_route(dut.ctl, "300 as 104 via inet 10.9.0.2 dev t0")
        eventually(lambda: len(dut.control.ask("labels")) == 2, 5, 0.05)
        eventually(lambda: lan.srp1(echo(lan, 4), 1), 20, 0.1, "neighbors are known")
        before = by_forwarders(dut)
        wan.clear()
        probe = echo(lan, 4, ttl=40)
        label = Raw((300 << 12 | 1 << 8 | 20).to_bytes(4, "big"))
        answer = lan.srp1(Ether(src=lan.mac, dst=lan.port_mac, type=0x8847) / label / probe.payload, 5)
        assert token_of(answer) == token_of(probe)
        (sent,) = [Ether(d) for d in wan.got(token_of(probe)) if Ether(d).src == wan.port_mac]
        assert bytes(sent[GRE].payload)[:4] == (104 << 12 | 1 << 8 | 19).to_bytes(4, "big")
        assert [a - b for a, b in zip(by_forwarders(dut), before)] == [2, 0]
        said = explained(dut, lan, echo(lan, 4))
        assert (said["verdict"], said["path"], said["push"], said["tunnel"]) == ("forwarded", "labels", [104], "t0")
    finally:
        netns.sysctl(dut.ctl, {"net.mpls.conf.lan0.input": 0})
        labels_del(dut)


def test_labels_out_of_a_tunnel_need_its_sysctl(dut):
    lan = dut.wires["lan"]
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        labels_add(dut, (4,))
        eventually(lambda: lan.srp1(echo(lan, 4), 1), 20, 0.1, "neighbors are known")
        netns.sysctl(dut.ctl, {"net.mpls.conf.t0.input": 0})
        eventually(lambda: not row(dut)["mpls"], 5, 0.05)
        before = dut.counters()
        lan.send(echo(lan, 4))
        eventually(lambda: dut.drops(before) == {"mpls_off": 1}, 5, 0.05)
    finally:
        labels_del(dut)


# Octets that the kinds of tunnels put in front of a packet.
OVERHEAD = {"ipip": 20, "sit": 20, "ip6gre": 40 + 8 + 4, "ip6ip6": 40 + 8, "ipip6": 40}


def test_each_kind_of_tunnel_obeys_a_path_mtu(dut):
    """Each other kind of tunnel obeys a path MTU, too. The option for the encapsulation limit (RFC
    2473, 4.1.1) takes 8 octets. Each error has a smaller MTU than the previous one, because all
    tunnels have the same far end."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    try:
        for n, (kind, overhead) in enumerate(OVERHEAD.items()):
            words, family, inner = KINDS[kind]
            each, mtu = inner[0], 1400 - 10 * n
            df = {"flags": "DF"} if each == 4 else {}
            tunnel_add(dut, words, family, inner)
            (sent,), _ = replies(dut, each, size=1300, **df)
            quoted = bytes(sent.payload)[:300]
            if family == 4:
                error = IP(src=wan.peer4, dst=wan.ip4) / ICMP(type=3, code=4, nexthopmtu=mtu) / quoted
            else:
                error = IPv6(src=wan.peer6, dst=wan.ip6) / ICMPv6PacketTooBig(mtu=mtu) / quoted
            wan.send(Ether(src=wan.mac, dst=wan.port_mac) / error)

            def told(each=each, size=mtu - overhead + 1, df=df):
                answer = lan.srp1(echo(lan, each, size=size, **df), 1)
                if each == 6:
                    return ICMPv6PacketTooBig in answer and answer[ICMPv6PacketTooBig].mtu == size - 1
                return (answer[ICMP].type, answer[ICMP].nexthopmtu) == (3, size - 1)

            eventually(told, 20, 0.1, f"the sender of packets into {kind} is told")
            replies(dut, each, size=mtu - overhead, **df)
            tunnel_del(dut)
    finally:
        tunnel_del(dut)
        dut.stop()
        dut.start()
        dut.ready()


def test_a_capture_has_the_outer_packet_and_the_packet_inside(dut, tunnel):
    """A filter is compared with the outer header of a frame that leaves, and with both headers of a frame
    that came: first with the outer one."""
    _, family, inner = tunnel
    lan, wan, each = dut.wires["lan"], dut.wires["wan"], inner[0]
    replies(dut, each)  # neighbors are known now
    probe = echo(lan, each)
    (left,) = capture(dut, lan, [probe], 1, dst=wan.peer(family), src=wan.own(family))
    assert left[:2] == (wan.tap, "out") and token_of(probe) in left[2]
    (whole,) = capture(dut, lan, [probe], 1, src=wan.peer(family), dst=wan.own(family))
    assert whole[:2] == (wan.tap, "in") and token_of(probe) in whole[2]
    inside, answer = capture(dut, lan, [probe], 2, src=HOST[each])
    assert (inside[:2], answer[:2]) == ((wan.tap, "in"), (lan.tap, "out"))
    assert len(inside[2]) == len(answer[2]) < len(whole[2])


def test_a_daemon_that_starts_finds_the_tunnel(dut):
    tunnel_add(dut, "type gre", 4, (4,))
    try:
        replies(dut, 4)
        dut.stop()
        dut.start()
        is_ours(dut)
        eventually(lambda: replies(dut, 4), 20, 0.1, "a session of the tunnel")
        before = by_forwarders(dut)
        replies(dut, 4)
        assert [a - b for a, b in zip(by_forwarders(dut), before)] == [2, 0]
    finally:
        tunnel_del(dut)
        dut.ready()


def test_the_filter_sees_packets_in_the_tunnel():
    """Rules of nft name the tunnel as the interface of packets that go in or come out."""
    with running(Router(name="gate"), ("log-level: info\n", "log-level: info\nfilter: {table: inet gate}\n")) as router:
        router.ready()
        far_end(router)
        tunnel_add(router, "type gre", 4, (4,))
        lan = router.wires["lan"]
        for rule in ("oifname", "iifname"):
            rules = f"chain c {{\ntype filter hook forward priority 0\n{rule} t0 icmp type echo-request drop\n}}"
            if rule == "iifname":
                rules = rules.replace("echo-request", "echo-reply")
            text = f"table inet gate\ndelete table inet gate\ntable inet gate {{\n{rules}\n}}\n"
            was = router.control.ask("filter")[0]["generation_read"]
            netns.run(router.ctl, ["nft", "-f", "-"], stdin=text)
            eventually(lambda w=was: router.control.ask("filter")[0]["generation_read"] != w, 10, 0.01)
            before = router.counters()
            probe = echo(lan, 4)
            router.wires["wan"].clear()
            lan.send(probe)
            eventually(lambda b=before: router.drops(b) == {"filter": 1}, 5, 0.05, f"{rule}")
            went = [d for d in router.wires["wan"].got(token_of(probe)) if d[23] == 47]
            assert len(went) == (rule == "iifname")
        tunnel_del(router)
