# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's settings of IPv6 on an interface (disable_ipv6, mtu) count for our router as they do
for a Linux router of equal configuration: packets show it. The kernel has no events for them."""

import json
import os

import pytest
from scapy.layers.inet6 import ICMPv6ND_RA, ICMPv6NDOptMTU, ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Ether

from lib.wait import eventually
from on_time import Clock
from pair import HOST, NET, judge, line, via
from pair import routers  # noqa: F401
from wire import token_of

ALL_DEVS = ("lan0", "wan0", "alt0", "ext0")


@pytest.fixture
def both(routers):  # noqa: F811
    """Both routers in their standard state. Afterwards a new dump must change nothing; then IPv6 is
    on everywhere, with the MTU of the link."""
    routers.clean()
    yield routers
    routers.same_after_a_dump()
    ipv6(routers, "all", "disable_ipv6", 0)
    routers.ip(*[f"link set {dev} mtu 1500" for dev in ALL_DEVS])
    for dev in ALL_DEVS:
        ipv6(routers, dev, "mtu", 1500)
        ipv6(routers, dev, "accept_ra", 0)
    give_back(routers, "lan", "wan", "alt", "ext")


def ipv6(both, dev, key, value):
    """Set net.ipv6.conf.DEV.KEY in both kernels, Linux first, and start the clock."""
    both.sysctl({f"net.ipv6.conf.{dev}.{key}": value})
    both.clock = Clock(both.ours)


def give_back(both, *names):
    """Give interfaces the addresses and neighbors back that they lost with IPv6."""
    lines = []
    for name in names:
        wire = both.ours.wires[name]
        lines += [f"addr replace {wire.ip6}/64 dev {name}0 nodad"]
        lines += [f"neigh replace {wire.peer6} lladdr {wire.mac} dev {name}0 nud permanent"]
    both.ip(*lines)


def give_route(both):
    """Give both kernels the copy of zebra's IPv6 route by wan again. Our router still has zebra's
    route."""
    both.ip(line(6, f"route replace {NET[6]} {via(both, 'wan', 6)} proto bgp metric 20"))


def drops(both, reason):
    """Return the number of packets that our router has dropped for a reason."""
    return both.ours.counter("drop", reason)


def doctor_rows(dut, check):
    """Return the rows of a check of doctor."""
    return json.loads(dut.fpmctl("--json", "doctor", check).stdout)


def test_no_ipv6_is_taken_where_it_is_off(both):
    """ip-sysctl.rst, disable_ipv6: the interface accepts no IPv6 packets. IPv4 and other interfaces go
    on."""
    for family in (4, 6):
        both.zebra(NET[family], "wan")
    both.agree("route", {HOST[4]: "wan", HOST[6]: "wan"})
    for _ in range(3):
        ipv6(both, "lan0", "disable_ipv6", 1)
        both.agree("IPv6 off", {HOST[6]: "nothing"})
        before = drops(both, "ipv6_off")
        assert both.fate(both.ours, HOST[6]) == "nothing"
        assert drops(both, "ipv6_off") == before + 1
        assert both.fate(both.ours, HOST[4]) == "wan"
        ipv6(both, "lan0", "disable_ipv6", 0)
        both.agree("IPv6 on", {HOST[6]: "wan", HOST[4]: "wan"})


def test_an_interface_without_ipv6_addresses_is_switched_too(both):
    """The kernel sends no event about an interface that has no address to lose."""
    both.zebra(NET[6], "wan")
    for router in both.both:
        router.ip("link set lan0 addrgenmode none", "-6 addr flush dev lan0")
    both.agree("route", {HOST[6]: "wan"})
    for _ in range(3):
        ipv6(both, "lan0", "disable_ipv6", 1)
        both.agree("IPv6 off, no address", {HOST[6]: "nothing"})
        ipv6(both, "lan0", "disable_ipv6", 0)
        both.agree("IPv6 on, no address", {HOST[6]: "wan"})
    both.ip("link set lan0 addrgenmode eui64")


def test_all_interfaces_are_switched_at_once(both):
    """conf.all.disable_ipv6 sets the value of each interface."""
    both.zebra(NET[6], "wan")
    both.agree("route", {HOST[6]: "wan"})

    ipv6(both, "all", "disable_ipv6", 1)
    both.agree("IPv6 off", {HOST[6]: "nothing"})
    ipv6(both, "all", "disable_ipv6", 0)
    give_back(both, "lan", "wan")
    give_route(both)
    both.agree("IPv6 on", {HOST[6]: "wan"})


def test_no_ipv6_leaves_where_it_is_off(both):
    """The kernel forgets the routes by the interface. zebra's route stays, but has no
    egress: the sender gets the ICMP error of Linux."""
    for family in (4, 6):
        both.zebra(NET[family], "wan")
    both.agree("route", {HOST[4]: "wan", HOST[6]: "wan"})
    for _ in range(3):
        ipv6(both, "wan0", "disable_ipv6", 1)
        both.agree("egress IPv6 off", {HOST[6]: "no route", HOST[4]: "wan"})
        before = drops(both, "ipv6_off")
        assert both.fate(both.ours, HOST[6]) == "no route"
        assert drops(both, "ipv6_off") == before + 1
        both.agree("no route", {HOST[6]: "no route"}, hlim=1)
        ipv6(both, "wan0", "disable_ipv6", 0)
        give_back(both, "wan")
        give_route(both)
        both.agree("egress IPv6 on", {HOST[6]: "wan", HOST[4]: "wan"})


def test_of_equal_paths_those_with_ipv6_carry(both):
    """A path over an interface without IPv6 carries nothing; the flows take the other one."""
    hops = " ".join(f"nexthop {via(both, name, 6)}" for name in ("wan", "alt"))
    both.ip(line(6, f"route add {NET[6]} {hops}"))
    ipv6(both, "wan0", "disable_ipv6", 1)
    for sport in range(4000, 4012):
        both.agree("egress IPv6 off", {HOST[6]: "alt"}, sport=sport)


def test_of_equal_paths_without_gateways_those_with_ipv6_carry(both):
    """zebra's route keeps a next hop without a gateway, which has no neighbor that could fail: its
    flows take the other one. Linux would drop them, because next-hop objects stay, too."""
    both.answer("wan", HOST[6])
    both.answer("alt", HOST[6])
    ours = both.ours
    hops = [ours.zebra.hop(None, ours.wires[name]) for name in ("wan", "alt")]
    ours.route(NET[6], nhid=ours.zebra.group(dict.fromkeys(hops, 1)))

    def carried():
        lan, flows = ours.wires["lan"], range(4000, 4032)
        for wire in ours.wires.values():
            wire.clear()
        lan.send(*(p := [lan.probe(HOST[6], sport=n) for n in flows]))
        ours.fence(lan)
        tokens = {token_of(x) for x in p}
        return {
            name: sum(token_of(data) in tokens for data in ours.wires[name].got())
            for name in ("lan", "wan", "alt")
        }

    eventually(lambda: carried()["wan"] > 0 and carried()["alt"] > 0, 5)
    ipv6(both, "wan0", "disable_ipv6", 1)
    eventually(lambda: carried() == {"lan": 0, "wan": 0, "alt": 32}, 5)
    ipv6(both, "wan0", "disable_ipv6", 0)
    eventually(lambda: carried()["wan"] > 0, 5)


def test_below_an_mtu_of_1280_octets_there_is_no_ipv6(both):
    """RFC 8200, 5: the kernel removes IPv6 from such a link. It is back with the MTU."""
    both.zebra(NET[6], "wan")
    both.agree("route", {HOST[6]: "wan"})
    for _ in range(3):
        both.ip("link set lan0 mtu 1279")
        both.agree("MTU below 1280", {HOST[6]: "nothing"})
        both.ip("link set lan0 mtu 1500")
        both.agree("MTU of 1500", {HOST[6]: "wan"})


REFUSED = {"2001:db8:ee:1::/64": "unreachable", "2001:db8:ee:2::/64": "prohibit",
           "2001:db8:ee:3::/64": "blackhole"}  # fmt: skip


def test_without_forwarding_missing_routes_are_still_told(both):
    """With all.forwarding=0 Linux forwards nothing, and sends no error for packets that have a
    route. It sends an error for packets without a route and for packets of a route that refuses,
    with any hop limit."""
    both.zebra(NET[6], "wan")
    both.agree("route", {HOST[6]: "wan"})
    kinds = [f"{kind} {prefix}" for prefix, kind in REFUSED.items()]
    both.ip(*[line(6, f"route add {words} proto static") for words in kinds])
    wanted = {"2001:db8:dd::1": "no route", "2001:db8:ee:1::1": "no route",
              "2001:db8:ee:2::1": "prohibited", "2001:db8:ee:3::1": "nothing"}  # fmt: skip
    both.agree("refused", wanted)
    try:
        ipv6(both, "all", "forwarding", 0)
        both.agree("forwarding off", {HOST[6]: "nothing", **wanted})
        both.agree("no route", {HOST[6]: "nothing", **wanted}, hlim=1)
    finally:
        ipv6(both, "all", "forwarding", 1)
    both.agree("forwarding on", {HOST[6]: "wan", **wanted})


def test_without_forwarding_a_route_by_a_link_without_ipv6_is_missing(both):
    """The kernel has no route by an interface with disable_ipv6, so it answers with
    all.forwarding=0, too. zebra's route stays in the dataplane."""
    both.zebra(NET[6], "wan")
    both.agree("route", {HOST[6]: "wan"})
    try:
        ipv6(both, "all", "forwarding", 0)
        both.agree("forwarding off", {HOST[6]: "nothing"})
        ipv6(both, "wan0", "disable_ipv6", 1)
        both.agree("both off", {HOST[6]: "no route"})
        both.agree("no route", {HOST[6]: "no route"}, hlim=1)
        ipv6(both, "wan0", "disable_ipv6", 0)
        give_back(both, "wan")
        give_route(both)
        both.agree("forwarding off", {HOST[6]: "nothing"})
    finally:
        ipv6(both, "all", "forwarding", 1)
    both.agree("forwarding on", {HOST[6]: "wan"})


@pytest.mark.skipif(
    not os.path.exists("/proc/sys/net/ipv6/conf/all/force_forwarding"), reason="Linux before 6.17"
)
def test_one_interface_forwards_although_all_do_not(both):
    """ip-sysctl.rst, force_forwarding: packets of this interface pass with all.forwarding=0."""
    both.zebra(NET[6], "wan")
    both.agree("route", {HOST[6]: "wan"})
    try:
        ipv6(both, "all", "forwarding", 0)
        both.agree("forwarding off", {HOST[6]: "nothing"})
        for _ in range(3):
            ipv6(both, "wan0", "force_forwarding", 1)  # the setting of the egress interface has no effect
            ipv6(both, "lan0", "force_forwarding", 1)
            both.agree("forwarding forced", {HOST[6]: "wan"})
            assert both.ours.port_row(both.ours.wires["lan"])["forwarding"] == "on"
            told = {r["subject"]: r["status"] for r in doctor_rows(both.ours, "forwarding")}
            assert (told["lan0"], told["alt0"]) == ("ok", "warn"), told
            ipv6(both, "lan0", "force_forwarding", 0)
            both.agree("forwarding not forced", {HOST[6]: "nothing"})
    finally:
        ipv6(both, "wan0", "force_forwarding", 0)
        ipv6(both, "all", "forwarding", 1)
    both.agree("forwarding on", {HOST[6]: "wan"})


# --- the MTU of IPv6 --------------------------------------------------------------------------


def mtu_told(router, size):
    """Return the MTU in the error about an IPv6 packet of `size` octets."""
    lan = router.wires["lan"]
    probe = lan.probe(HOST[6], size=size)
    return lan.srp1(probe)[ICMPv6PacketTooBig].mtu


def fits(both, kind, size):
    """Assert that `size` octets are the largest that leave by wan in IPv6, and that IPv4 packets
    of 1500 leave."""
    both.agree(kind, {HOST[6]: "too big"}, size=size + 1)
    both.agree("the same MTU", {HOST[6]: "wan"}, size=size)
    assert mtu_told(both.ours, size + 1) == mtu_told(both.linux, size + 1) == size
    both.agree("the same MTU", {HOST[4]: "wan"}, size=1500)


@pytest.fixture
def paths(both):
    """Routes of both families by wan."""
    for family in (4, 6):
        both.zebra(NET[family], "wan")
    both.agree("route", {HOST[4]: "wan", HOST[6]: "wan"})
    return both


def test_ipv6_packets_obey_the_ipv6_mtu(paths):
    """ip-sysctl.rst, conf/interface/mtu: IPv6 has an MTU of its own, which IPv4 does not obey."""
    for mtu in (1400, 1280, 1499):
        ipv6(paths, "wan0", "mtu", mtu)
        fits(paths, "IPv6 MTU lower", mtu)
    for _ in range(3):
        ipv6(paths, "wan0", "mtu", 1280)
        paths.agree("IPv6 MTU lower", {HOST[6]: "too big"}, size=1500)
        ipv6(paths, "wan0", "mtu", 1500)
        paths.agree("IPv6 MTU higher", {HOST[6]: "wan"}, size=1500)


def test_a_burst_of_both_families_obeys_both_mtus(paths):
    """Packets of one burst, in turns IPv4 and IPv6, below and above the MTU of IPv6."""
    ipv6(paths, "wan0", "mtu", 1400)
    paths.agree("IPv6 MTU lower", {HOST[6]: "too big"}, size=1500)
    lan, wan = paths.ours.wires["lan"], paths.ours.wires["wan"]
    probes = [
        lan.probe(HOST[family], size=size)
        for size in (1300, 1400, 1401, 1500) * 8
        for family in (4, 6)
    ]
    wan.clear()
    lan.send(*probes)
    paths.ours.fence(lan)
    out = {token_of(data) for data in wan.got(lambda data: token_of(data) is not None)}
    want = {token_of(p) for p in probes if IPv6 not in p or len(p) <= 14 + 1400}
    assert out == want


def test_the_mtu_of_a_router_advertisement_is_obeyed(paths):
    """RFC 4861, 6.3.4: a host, or a router with accept_ra=2, takes the MTU of an advertisement."""
    ipv6(paths, "wan0", "accept_ra", 2)
    for mtu in (1300, 1420, 1360):
        for router in paths.both:
            wan = router.wires["wan"]
            wan.send(
                Ether(src=wan.mac, dst="33:33:00:00:00:01")
                / IPv6(src="fe80::99", dst="ff02::1", hlim=255)
                / ICMPv6ND_RA(routerlifetime=0)
                / ICMPv6NDOptMTU(mtu=mtu)
            )
        paths.clock = Clock(paths.ours)
        fits(paths, "advertised MTU", mtu)


def test_a_new_mtu_of_the_link_is_the_ipv6_mtu_too(paths):
    """The kernel sets the IPv6 MTU of an interface to each new MTU of the link."""
    ipv6(paths, "wan0", "mtu", 1300)
    fits(paths, "IPv6 MTU lower", 1300)
    for mtu in (1450, 1400, 1480):
        paths.ip(f"link set wan0 mtu {mtu}")
        paths.agree("MTU of the link", {HOST[6]: "too big"}, size=mtu + 1)
        paths.agree("MTU of the link", {HOST[6]: "wan"}, size=mtu)
        assert mtu_told(paths.ours, mtu + 1) == mtu


# --- time -------------------------------------------------------------------------------------


def test_settings_are_in_force_within_100_ms(routers):  # noqa: F811
    """The median of the times that packets took to show a change is below 100 ms, for each kind of
    change that was made at least three times."""
    judge(routers)
