# SPDX-License-Identifier: BSD-3-Clause
"""Routes from VRF to VRF, by a port of the other VRF or by the VRF device itself."""

import ipaddress

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6PacketTooBig, IPv6
from scapy.packet import Raw

from lib.wait import eventually
from vrfs import BEFORE, BEHIND, HOST, NET, TABLE, goes, leads, route, row, vrfs
from vrfs import machine, router, two  # noqa: F401


def explained(router, family, dst):
    """Return fpmctl's explanation of a packet from the host before lan0."""
    return router.fpmctl(
        "explain", "port", "lan0", "src", BEFORE[family].format(2), "dst", dst
    ).stdout


@pytest.mark.quick
def test_a_route_may_leave_by_a_port_of_another_vrf(two, family):
    ext = two.wires["ext"]
    route(two, "red", NET[family], BEHIND[family].format(2), ext)

    goes(two, two.wires["lan"], ext, HOST[family])


def test_a_route_may_lead_to_another_vrf_itself(two, family):
    """FRR from 8.5 on leaks connected and static routes as routes to the VRF device (`dev
    blue`). The packet is looked up again in that VRF. This costs one hop, and no second lookup
    in a further VRF follows."""
    lan, ext = two.wires["lan"], two.wires["ext"]
    other = {4: "203.0.113.0/24", 6: "2001:db8:c::/48"}[family]
    round_trip = {4: "203.0.113.9", 6: "2001:db8:c::9"}[family]
    route(two, "blue", NET[family], BEHIND[family].format(2), ext)
    for vrf, to, prefix in (
        ("red", "blue", NET[family]),
        ("red", "blue", other),
        ("blue", "red", other),
    ):
        leads(two, vrf, to, prefix)
        assert row(two, vrf, prefix)["state"] == "forwarding"

    probe = lan.probe(HOST[family], src=BEFORE[family].format(2))
    left = two.forwarded(lan, probe, ext)

    assert (left.src, left.dst) == (ext.port_mac, ext.mac)
    assert (left[IP].ttl if family == 4 else left[IPv6].hlim) == 63
    lost = lan.probe(round_trip, src=BEFORE[family].format(2))
    assert two.not_forwarded(lan, lost) == {"vrf_again": 1}
    error = lan.srp1(lan.probe(round_trip, src=BEFORE[family].format(2)))
    said = error[ICMP] if family == 4 else error[ICMPv6DestUnreach]
    assert (said.type, said.code) == ((3, 0) if family == 4 else (1, 0))
    said = explained(two, family, round_trip)
    assert "looked up again in vrf blue: vrf" in said and "an ICMP error goes to" in said, said
    assert f"show routes vrf blue {round_trip}" in said, said
    said = explained(two, family, HOST[family])
    assert "FORWARDED" in said and "ext0" in said, said
    assert "looked up again in vrf blue: adjacency" in said, said
    # First blue has no route to the host any longer, then blue is deleted.
    two.zebra.drop(NET[family], table=TABLE["blue"])
    eventually(lambda: not row(two, "blue", NET[family]), 5, 0.01, "withdrawn")
    assert two.not_forwarded(lan, lan.probe(HOST[family])) == {"no_route": 1}
    said = explained(two, family, HOST[family])
    assert f"show ip route vrf blue {HOST[family]}, or ipv6" in said, said
    two.ip("link del blue")
    eventually(lambda: vrfs(two)["ext0"] is None, 5, 0.01, "in no VRF")
    down = lambda: two.not_forwarded(lan, lan.probe(HOST[family])) == {"egress_down": 1}  # noqa: E731
    eventually(down, 5, 0.1, "no egress")


def test_of_two_routes_mtus_the_smaller_one_counts(two, family):
    """The smaller of two MTUs is in force: that of the route to the other VRF, or that of the route there."""
    lan, ext = two.wires["lan"], two.wires["ext"]
    there = two.zebra.hop(BEHIND[family].format(2), ext)
    too_big = ICMP if family == 4 else ICMPv6PacketTooBig
    words = {"flags": "DF"} if family == 4 else {}

    for to_mtu, there_mtu in ((1300, None), (None, 1300), (1300, 1400), (1400, 1300)):
        leads(two, "red", "blue", NET[family], mtu=to_mtu)
        two.zebra.add(NET[family], there, table=TABLE["blue"], mtu=there_mtu)
        for vrf, mtu in (("red", to_mtu), ("blue", there_mtu)):
            has = lambda v=vrf, m=mtu: (row(two, v, NET[family]) or {"mtu": 0})["mtu"] == m  # noqa: E731
            eventually(has, 5, 0.005, f"MTU {mtu} in {vrf}")

        src = BEFORE[family].format(2)
        two.forwarded(lan, lan.probe(HOST[family], src=src, size=1300, **words), ext)
        error = lan.srp1(lan.probe(HOST[family], src=src, size=1301, **words))

        said = error[too_big]
        assert (said.nexthopmtu if family == 4 else said.mtu) == 1300, (to_mtu, there_mtu)


@pytest.mark.quick
def test_a_vrfs_own_interface_is_no_egress_of_it(two):
    """Hosts of a subnet on the VRF device are not reachable. Addresses on it are local."""
    lan = two.wires["lan"]
    two.ip("addr add 10.255.0.1/24 dev red")
    eventually(lambda: row(two, "red", "10.255.0.0/24"), 5, 0.01, "connected")
    leads(two, "red", "red", NET[4])

    assert row(two, "red", "10.255.0.0/24")["state"] == "foreign"
    assert row(two, "red", "10.255.0.1/32")["state"] == "local"
    assert row(two, "red", NET[4])["state"] == "foreign"
    assert two.not_forwarded(lan, lan.probe("10.255.0.9")) == {"foreign_oif": 1}
    assert two.not_forwarded(lan, lan.probe(HOST[4])) == {"vrf_again": 1}


def test_own_addresses_in_another_vrf_answer_packets_of_a_leaked_route(two):
    """The packet is punted. The kernel answers it, because it has the same routes and follows them
    from VRF to VRF."""
    lan, ext = two.wires["lan"], two.wires["ext"]
    link = ipaddress.ip_interface(f"{ext.ip4}/26").network
    leads(two, "red", "blue", str(link))
    before = ipaddress.ip_interface(f"{lan.ip4}/26").network
    two.ip(f"route add {link} dev blue table {TABLE['red']}",
           f"route add {before} dev red table {TABLE['blue']}")  # fmt: skip
    lan.answer(lan.peer4)
    ping = lan.probe(ext.ip4)
    ping[IP].payload = ICMP() / ping[Raw].load

    answer = lan.srp1(ping)

    assert (answer[IP].src, answer[IP].dst) == (ext.ip4, lan.peer4)
    assert answer[ICMP].type == 0


def test_what_is_connected_in_another_vrf_is_reached(two):
    """Hosts on the links of the other VRF are reached, even if the kernel must resolve them
    first."""
    lan, ext = two.wires["lan"], two.wires["ext"]
    link = ipaddress.ip_interface(f"{ext.ip4}/26").network
    host = str(link[50])
    assert row(two, "blue", str(link))["state"] == "onlink"
    leads(two, "red", "blue", str(link))

    ext.answer(host)

    for _ in range(3):
        goes(two, lan, ext, host)
