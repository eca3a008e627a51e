# SPDX-License-Identifier: BSD-3-Clause
"""Headends and end points of SRv6. A Linux kernel is the far end: it takes the packets of our
headends, and writes packets to our end points. The routes are set in the kernel of the router,
so this kernel has the same headends and end points."""

import json

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    IPv6,
    IPv6ExtHdrSegmentRouting,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import vrfs
from lib import netns
from lib.wait import eventually
from wire import token, token_of

# These hosts are behind the far end, in its VRF red.
HOST = {4: "198.51.100.9", 6: "2001:db8:a::9"}
NET = {4: "198.51.100.0/24", 6: "2001:db8:a::/48"}
LOCATOR, OURS = "2001:db8:ff00::/40", "2001:db8:fe00::"
END, DT = "2001:db8:ff01::1", {4: "2001:db8:ff01::4", 6: "2001:db8:ff01::6"}
SOURCE = "2001:db8:bb::1"
MODES = {"encap": 1, "encap.red": 3}


def vrf_del(where):
    """Delete the VRF red with its routes. The kernel deletes the routes of a link with the link, whatever
    their table is. The table of a VRF remains, with its routes by other links."""
    netns.command(["ip", "-n", where, "link", "del", "red"], check=False)
    for family in ("-4", "-6"):
        netns.command(["ip", "-n", where, family, "route", "flush", "table", "100"], check=False)


def far_lines(verb, wan, lan):
    """Return the commands for the end points of the far end, and the routes back."""
    nodad = " nodad" if verb == "add" else ""
    lan6 = f"{lan.ip6.rpartition('::')[0]}::/64"
    lines = [
        f"addr {verb} {wan.peer4}/26 dev wan",
        f"-6 addr {verb} {wan.peer6}/64 dev wan{nodad}",
    ]
    if verb == "del":
        return [*lines, "link del d0"]
    return [
        "link set lo up",
        *lines,
        "link add red type vrf table 100",
        "link set red up",
        "link add d0 type dummy",
        "link set d0 master red up",
        f"addr add {HOST[4]}/32 dev d0",
        f"-6 addr add {HOST[6]}/128 dev d0 nodad",
        f"-6 route add {END}/128 encap seg6local action End dev d0",
        f"-6 route add {DT[4]}/128 encap seg6local action End.DT4 vrftable 100 dev red",
        f"-6 route add {DT[6]}/128 encap seg6local action End.DT6 vrftable 100 dev red",
        f"route add {lan.host4} table 100 via {wan.ip4} dev wan",
        f"-6 route add {lan6} table 100 via {wan.ip6} dev wan",
    ]


@pytest.fixture(scope="module")
def dut(on_veths):
    """Return a router whose port wan0 has a Linux kernel with end points at its far end."""
    on_veths.ready()
    netns.command(["modprobe", "-a", "vrf", "dummy"])
    far, wan, lan = on_veths.far, on_veths.wires["wan"], on_veths.wires["lan"]
    on = {f"net.ipv6.conf.{dev}.{name}": value for dev in ("all", "wan")
          for name, value in (("seg6_enabled", 1), ("forwarding", 1))}  # fmt: skip
    netns.sysctl(far, {"net.ipv6.conf.wan.disable_ipv6": 0, "net.ipv6.conf.lo.disable_ipv6": 0,
                       "net.ipv6.conf.default.disable_ipv6": 0, "net.ipv4.ip_forward": 1,
                       "net.ipv6.conf.wan.accept_dad": 0, "net.ipv4.conf.all.rp_filter": 0,
                       "net.vrf.strict_mode": 1, **on})  # fmt: skip
    netns.ip_batch(far_lines("add", wan, lan), far)
    on_veths.ip(f"sr tunsrc set {SOURCE}", f"-6 route add {LOCATOR} via {wan.peer6} dev wan0")
    eventually(lambda: on_veths.fpm()["srv6_source"] == SOURCE, 20, 0.1, "the source of the kernel")
    yield on_veths
    on_veths.ip("sr tunsrc set ::", f"-6 route del {LOCATOR}")
    netns.ip_batch(far_lines("del", wan, lan), far)
    vrf_del(far)
    netns.sysctl(far, {"net.ipv6.conf.wan.disable_ipv6": 1})


def headend(dut, family, mode, segments):
    """Let the kernel of the router have a route behind segments. Return the row of the router."""
    flag = "-6 " if family == 6 else ""
    dut.ip(f"{flag}route replace {NET[family]} encap seg6 mode {mode} segs {','.join(segments)} dev wan0")
    words = " ".join(["H.Encaps" if mode == "encap" else "H.Encaps.Red", *segments])

    def there():
        row = dut.route_row(NET[family])
        return row and row["nexthops"][0].get("srv6") == words and row

    return eventually(there, 10, 0.05, f"route {NET[family]} with {words}")


def headend_gone(dut):
    """Remove the routes."""
    for family, flag in ((4, ""), (6, "-6 ")):
        if dut.route_row(NET[family]):
            dut.ip(f"{flag}route del {NET[family]}")
        eventually(lambda f=family: dut.route_row(NET[f]) is None, 5, 0.05, "no route")


def echo(wire, family, size=0, **fields):
    """Return an echo request with a token, from the peer of a wire to the host behind the segments."""
    load = token()
    load += bytes(max(0, size - len(load) - (28 if family == 4 else 48)))
    head = Ether(src=wire.mac, dst=wire.port_mac)
    if family == 4:
        return head / IP(src=wire.peer4, dst=HOST[4], **fields) / ICMP(id=1, seq=1) / Raw(load)
    return head / IPv6(src=wire.peer6, dst=HOST[6], **fields) / ICMPv6EchoRequest() / Raw(load)


def answered(dut, family, **fields):
    """Send an echo request. Return (the packet as it left, the answer)."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    probe = echo(lan, family, **fields)
    answer = lan.srp1(probe, 5)
    assert (answer[ICMP].type == 0) if family == 4 else ICMPv6EchoReply in answer
    return Ether(wan.got(token_of(probe))[0]), answer


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("far", ["DT", "End, DT"])
def test_linux_takes_the_packets_of_our_headends(dut, family, mode, far):
    segments = [DT[family]] if far == "DT" else [END, DT[family]]
    assert headend(dut, family, mode, segments)["state"] == "forwarding"
    try:
        answered(dut, family)  # neighbors are known now
        kernel = dut.counter("punt", "kernel_route")
        out, back = answered(dut, family, **({"ttl": 40} if family == 4 else {"hlim": 40}))
        assert (out[IPv6].src, out[IPv6].dst, out[IPv6].hlim) == (SOURCE, segments[0], 64)
        listed = segments if mode == "encap" else segments[1:]
        assert (IPv6ExtHdrSegmentRouting in out) == bool(listed)
        inside = out[IP] if family == 4 else out[IPv6].payload[IPv6]
        assert (inside.ttl if family == 4 else inside.hlim) == 39
        # The far end answered with 64.
        assert (back[IP].ttl if family == 4 else back[IPv6].hlim) == 63
        assert dut.counter("punt", "kernel_route") == kernel
    finally:
        headend_gone(dut)


def test_packets_too_big_and_fragments(dut):
    """The far end answers a packet that came in fragments, each behind an outer header."""
    lan = dut.wires["lan"]
    try:
        for family in (4, 6):
            headend(dut, family, "encap", [END, DT[family]])
        room = 1500 - 40 - 8 - 32
        error = lan.srp1(echo(lan, 4, size=1490, flags="DF"), 5)
        assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, room)
        assert lan.srp1(echo(lan, 6, size=1490), 5)[ICMPv6PacketTooBig].mtu == room
        probe = echo(lan, 4, size=1490)
        lan.send(probe)
        lan.expect(token_of(probe), 5)
    finally:
        headend_gone(dut)


@pytest.mark.parametrize("mode", MODES)
def test_our_end_points_take_the_packets_of_linux(dut, mode):
    """The answers come back behind segments of the router: End, then End.DT6 of table main."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    end, dt = f"{OURS}1", f"{OURS}6"
    lan6 = f"{lan.ip6.rpartition('::')[0]}::/64"
    dut.ip(
        "link add sr0 type dummy",
        "link set sr0 up",
        f"-6 route add {end}/128 encap seg6local action End dev sr0",
        f"-6 route add {dt}/128 encap seg6local action End.DT6 table 254 dev sr0",
    )
    netns.ip_batch(
        [
            f"-6 route add {OURS}/64 via {wan.ip6} dev wan",
            f"-6 route replace {lan6} table 100 encap seg6 mode {mode} segs {end},{dt} dev wan",
            f"-6 route replace {OURS}/64 table 100 via {wan.ip6} dev wan",
        ],
        dut.far,
    )
    try:
        headend(dut, 6, mode, [DT[6]])
        eventually(lambda: dut.route_row(f"{dt}/128"), 5, 0.05, "the end point")
        answered(dut, 6)
        kernel, local = dut.counter("punt", "kernel_route"), dut.counter("punt", "local")
        _, back = answered(dut, 6)
        assert back[IPv6].hlim == 63
        assert (dut.counter("punt", "kernel_route"), dut.counter("punt", "local")) == (kernel, local)
    finally:
        netns.ip_batch(
            [
                f"-6 route del {OURS}/64",
                f"-6 route del {OURS}/64 table 100",
                f"-6 route replace {lan6} table 100 via {wan.ip6} dev wan",
            ],
            dut.far,
        )
        dut.ip("link del sr0")
        headend_gone(dut)


def sent_to_sid(wire, dst, inside, segments=None):
    """Return a frame to a SID: a packet behind an outer header, with the segments in the order in which
    they are visited (the SID first)."""
    ip = IPv6(src=wire.peer6, dst=dst)
    if segments:
        ip /= IPv6ExtHdrSegmentRouting(addresses=segments[::-1], segleft=len(segments) - 1, lastentry=len(segments) - 1)
    return Ether(src=wire.mac, dst=wire.port_mac) / ip / inside


@pytest.fixture
def sids(dut):
    """Return a function that makes end points of the kernel of the router, on a dummy."""
    dut.ip("link add sr0 type dummy", "link set sr0 up")

    def make(*lines):
        for line in lines:
            prefix = line.split()[0]
            dut.ip(f"-6 route add {line}")
            eventually(lambda p=prefix: dut.route_row(p), 5, 0.05, f"end point {prefix}")

    yield make
    dut.ip("link del sr0")


def test_link_local_neighbors_are_on_the_ingress_interface(dut, sids):
    """For an End.X with a link-local neighbor, Linux as the far end sends a packet back by the
    interface by which it came, whatever the route says. The router does the same."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    end_x, here = "2001:db8:ff01::e", f"{OURS}e"
    netns.ip_batch(
        [
            f"neigh replace fe80::99 lladdr {wan.port_mac} dev wan nud permanent",
            f"-6 route add {end_x}/128 encap seg6local action End.X nh6 fe80::99 dev d0",
        ],
        dut.far,
    )
    try:
        inside = lan.probe(lan.peer6)[Ether].payload
        probe = sent_to_sid(lan, end_x, inside, [end_x, lan.peer6])
        lan.send(probe)
        back = lan.expect(lambda d: token_of(probe) in d and d[6:12] == bytes.fromhex(lan.port_mac.replace(":", "")), 5)
        # The router lowered the hop limit twice, the far end once.
        assert (back[IPv6].dst, back[IPv6].hlim) == (lan.peer6, 61)

        mac = dut.neighbor("fe80::99", lan, "02:00:00:00:99:01")
        sids(f"{here}/128 encap seg6local action End.X nh6 fe80::99 dev sr0")
        local = dut.counter("punt", "local")
        probe = sent_to_sid(lan, here, inside, [here, HOST[6]])
        lan.send(probe)
        back = lan.expect(lambda d: token_of(probe) in d and d[:6] == bytes.fromhex(mac.replace(":", "")), 5)
        assert (back[IPv6].dst, back[IPv6].hlim) == (HOST[6], 63)
        assert dut.counter("punt", "local") == local
    finally:
        netns.ip_batch(
            [f"-6 route del {end_x}/128", "neigh del fe80::99 dev wan"],
            dut.far,
        )
        dut.ip("neigh del fe80::99 dev lan0")


def test_a_container_of_compressed_segments(dut, sids):
    """As in the kernel's selftest srv6_end_next_csid_l3vpn_test, the router is a uN in the middle.
    It shifts the destination to the next segment, an End.DT6 of the far end, without a routing
    header."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    un, dt = "2001:db8:fe0::/48", "2001:db8:ff01:6::"
    sids(f"{un} encap seg6local action End flavors next-csid lblen 32 nflen 16 dev sr0")
    netns.ip_batch([f"-6 route add {dt}/128 encap seg6local action End.DT6 vrftable 100 dev red"], dut.far)
    try:
        assert dut.route_row(un)["nexthops"][0]["srv6"] == "End NEXT-C-SID 32/16"
        for _ in range(2):  # the first packet resolves the neighbors
            before = [dut.counter("punt", name) for name in ("kernel_route", "local")]
            probe = sent_to_sid(lan, "2001:db8:fe0:ff01:6::", echo(lan, 6)[Ether].payload)
            assert ICMPv6EchoReply in lan.srp1(probe, 5)
        out = Ether(wan.got(token_of(probe))[0])
        assert (out[IPv6].dst, out[IPv6].hlim) == (dt, 63)
        assert [dut.counter("punt", name) for name in ("kernel_route", "local")] == before
    finally:
        netns.ip_batch([f"-6 route del {dt}/128"], dut.far)


def vpn_add(dut, ours):
    """Put lan0 into the VRF red, with headends to the far end, and end points for packets back."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    lan6 = f"{lan.ip6.rpartition('::')[0]}::/64"
    vrfs.add(dut, "red")
    vrfs.enslave(dut, "red", lan)
    for peer in (lan.peer4, lan.peer6):
        dut.neighbor(peer, lan)
    netns.sysctl(dut.ctl, {"net.vrf.strict_mode": 1})
    dut.ip(
        f"-6 route add {ours[4]}/128 encap seg6local action End.DT4 vrftable 100 dev red",
        f"-6 route add {ours[6]}/128 encap seg6local action End.DT6 vrftable 100 dev red",
        f"route add {NET[4]} vrf red encap seg6 mode encap segs {END},{DT[4]} dev wan0",
        f"-6 route add {NET[6]} vrf red encap seg6 mode encap.red segs {END},{DT[6]} dev wan0",
    )
    netns.ip_batch(
        [
            f"-6 route add {OURS}/64 via {wan.ip6} dev wan",
            f"route replace {lan.host4} table 100 encap seg6 mode encap segs {ours[4]} dev wan",
            f"-6 route replace {lan6} table 100 encap seg6 mode encap segs {ours[6]} dev wan",
        ],
        dut.far,
    )
    for net in NET.values():
        eventually(lambda n=net: vrfs.row(dut, "red", n), 5, 0.05, f"{net} in red")
    for sid in ours.values():
        eventually(lambda s=sid: dut.route_row(f"{s}/128"), 5, 0.05, f"end point {sid}")


def vpn_del(dut):
    """Let lan0 be in table main again."""
    netns.ip_batch([f"-6 route del {OURS}/64"], dut.far)
    dut.ip("link set lan0 nomaster")
    vrf_del(dut.ctl)
    eventually(lambda: vrfs.vrfs(dut)["lan0"] is None, 5, 0.05, "in no VRF")
    dut.ready()


def test_a_vpn_has_headends_and_end_points(dut):
    """This test is behind the others, because lan0 changes its VRF. The forwarders handle both
    directions and send the ICMP errors into the VRF."""
    lan = dut.wires["lan"]
    vpn_add(dut, {4: f"{OURS}14", 6: f"{OURS}16"})
    try:
        for family in (4, 6):
            answered(dut, family)
            before = [dut.counter("punt", name) for name in ("kernel_route", "local")]
            out, back = answered(dut, family)
            assert (out[IPv6].src, out[IPv6].dst) == (SOURCE, END)
            assert (back[IP].ttl if family == 4 else back[IPv6].hlim) == 63
            assert [dut.counter("punt", name) for name in ("kernel_route", "local")] == before
        error = lan.srp1(echo(lan, 4, ttl=1), 5)
        assert (error[ICMP].type, error[IP].src) == (11, lan.ip4)
        error = lan.srp1(echo(lan, 4, size=1490, flags="DF"), 5)
        assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1420)
        # Linux would look up the first segment in red. The router looks it up in table main.
        assert "vrf" not in doctor(dut)
        dut.ip(f"-6 route add unreachable {END}/128 vrf red")
        eventually(lambda: vrfs.row(dut, "red", f"{END}/128"), 5, 0.05, "the route in red")
        row = doctor(dut)["vrf"]
        assert row["status"] == "ok" and f"VRF red has a route to the segment {END}" in row["text"], row
        for family in (4, 6):
            answered(dut, family)
    finally:
        vpn_del(dut)


def doctor(dut):
    """Return {subject: row} of doctor's check of SRv6."""
    return {r["subject"]: r for r in json.loads(dut.fpmctl("--json", "doctor", "srv6").stdout)}


def test_tenants_are_apart(dut):
    """As in the kernel's selftests srv6_end_dt4_, dt6_ and dt46_l3vpn_test, there is an End.DT46
    for each of two tenants. Packets that the far end sends to the SID of red reach its host.
    Packets to the SID of blue do not, because the host is in red. lan0 changes its VRF."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    sid = {"red": f"{OURS}46", "blue": f"{OURS}47"}
    vpn_add(dut, {4: f"{OURS}14", 6: f"{OURS}16"})
    try:
        vrfs.add(dut, "blue")
        dut.ip(
            f"-6 route add {sid['red']}/128 encap seg6local action End.DT46 vrftable 100 dev red",
            f"-6 route add {sid['blue']}/128 encap seg6local action End.DT46 vrftable 2000 dev blue",
            "route add vrf blue unreachable default metric 4278198272",
            "-6 route add vrf blue unreachable default metric 4278198272",
        )
        for name, one in sid.items():
            eventually(lambda s=one: dut.route_row(f"{s}/128"), 5, 0.05, f"end point of {name}")
        inside = {4: IP(src=HOST[4], dst=lan.peer4), 6: IPv6(src=HOST[6], dst=lan.peer6)}
        for head in inside.values():
            probe = sent_to_sid(wan, sid["red"], head / UDP(dport=9) / Raw(token()))
            dut.forwarded(wan, probe, lan, 5)
            probe = sent_to_sid(wan, sid["blue"], head / UDP(dport=9) / Raw(token()))
            before = dut.counters()
            dut.not_forwarded(wan, probe)
            assert sum(dut.drops(before).values()) == 1
    finally:
        dut.ip("link del blue")
        vpn_del(dut)
