# SPDX-License-Identifier: BSD-3-Clause
"""Our router follows the settings of the kernel of the control namespace (addresses, links, router
advertisements) as a Linux router of equal configuration does. Packets show it."""

import ipaddress
import time

import pytest
from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6ND_RA,
    ICMPv6NDOptPrefixInfo,
    ICMPv6NDOptRouteInfo,
    IPv6,
)
from scapy.layers.l2 import Ether

from lib import netns
from lib.wait import eventually
from pair import HOST, NET, judge, line, peer, via
from pair import both, routers  # noqa: F401

# --- addresses --------------------------------------------------------------------------------

MORE = {4: ("10.9.0.1/16", "10.9.0.5"), 6: ("2001:db8:9::1/64", "2001:db8:9::5")}


def own(prefix):
    """Return the address of ADDRESS/LENGTH."""
    return prefix.split("/")[0]


def test_an_address_has_its_subnet(both, family):
    """A new address is ours, and its subnet is on link. Neither is true after its deletion."""
    prefix, host = MORE[family]
    both.answer("ext", host)
    for _ in range(3):
        both.ip(f"addr add {prefix} dev ext0" + nodad(family))
        both.agree("address added", {host: "ext", own(prefix): "local"})
        both.ip(f"addr del {prefix} dev ext0")
        both.agree("address deleted", {host: "no route", own(prefix): "no route"})


def nodad(family):
    """Return the word that makes an IPv6 address valid at once."""
    return " nodad" if family == 6 else ""


def test_an_address_without_a_prefix_route(both, family):
    """noprefixroute: the router has the address, and packets to its subnet take the default
    route."""
    prefix, host = MORE[family]
    both.ip(line(family, f"route add default {via(both, 'wan', family)}"))
    both.ip(f"addr add {prefix} dev ext0 noprefixroute" + nodad(family))
    both.agree("address added", {host: "wan", own(prefix): "local"})
    both.answer("ext", host)
    net = ipaddress.ip_interface(prefix).network
    both.ip(line(family, f"route add {net} dev ext0"))
    both.agree("interface route added", {host: "ext", own(prefix): "local"})


def test_the_metric_of_an_address(both, family):
    """Two links have the same subnet. The lower metric of their addresses counts, whatever the
    order in which they came."""
    prefix, host = MORE[family]
    other = prefix.replace("1/", "2/")
    both.answer("ext", host)
    both.answer("alt", host)
    both.ip(f"addr add {prefix} dev alt0 metric 300" + nodad(family))
    both.agree("address added", {host: "alt"})
    both.ip(f"addr add {other} dev ext0 metric 200" + nodad(family))
    both.agree("address added", {host: "ext", own(prefix): "local", own(other): "local"})
    both.ip(f"addr change {other} dev ext0 metric 400" + nodad(family))
    both.agree("address metric changed", {host: "alt"})
    both.ip(f"addr del {prefix} dev alt0")
    both.agree("address deleted", {host: "ext"})


@pytest.mark.parametrize("order", [("ext", "alt"), ("alt", "ext")])
def test_two_links_with_the_same_subnet(both, family, order):
    """Without metrics the order in which the addresses were added decides. When the link in use
    loses its address, the other one is used."""
    prefix, host = MORE[family]
    other = prefix.replace("1/", "2/")
    first, second = order
    both.answer(first, host)
    both.answer(second, host)
    both.ip(f"addr add {prefix} dev {first}0" + nodad(family))
    both.ip(f"addr add {other} dev {second}0" + nodad(family))
    both.agree("address added", {host: first})
    both.ip(f"addr del {prefix} dev {first}0")
    both.agree("address deleted", {host: second})
    both.ip(f"addr add {prefix} dev {first}0" + nodad(family))
    both.agree("address added", {host: second})


def test_a_second_address_of_a_subnet_takes_over(both, family):
    """A subnet with two addresses on one link stays on link when one of them is deleted. In IPv4 the
    second is a secondary address, which promote_secondaries keeps."""
    prefix, host = MORE[family]
    other = prefix.replace("1/", "2/")
    both.answer("ext", host)
    both.sysctl({"net.ipv4.conf.ext0.promote_secondaries": 1})
    both.ip(f"addr add {prefix} dev ext0" + nodad(family))
    both.ip(f"addr add {other} dev ext0" + nodad(family))
    both.agree("address added", {host: "ext", own(other): "local"})
    both.ip(f"addr del {prefix} dev ext0")
    both.agree("address deleted", {host: "ext", own(other): "local"})


def test_a_secondary_address_goes_with_its_primary(both):
    """Without promote_secondaries the kernel deletes the secondary addresses with their primary
    one, and the subnet with them."""
    both.answer("ext", "10.9.0.5")
    both.sysctl({"net.ipv4.conf.ext0.promote_secondaries": 0})
    both.ip("addr add 10.9.0.1/16 dev ext0", "addr add 10.9.0.2/16 dev ext0")
    both.agree("address added", {"10.9.0.5": "ext", "10.9.0.2": "local"})
    both.ip("addr del 10.9.0.1/16 dev ext0")
    both.agree("address deleted", {"10.9.0.5": "no route", "10.9.0.2": "no route"})


def test_a_point_to_point_address(both):
    """The prefix of an address with a peer is that of the peer (ip-address(8))."""
    both.answer("ext", "10.9.1.1")
    both.ip("addr add 10.9.0.1 peer 10.9.1.1/32 dev ext0")
    both.agree("address added", {"10.9.1.1": "ext", "10.9.0.1": "local", "10.9.0.2": "no route"})
    both.ip("addr del 10.9.0.1 peer 10.9.1.1/32 dev ext0")
    both.agree("address deleted", {"10.9.1.1": "no route", "10.9.0.1": "no route"})


def test_an_address_whose_owner_is_not_known_yet(both):
    """While duplicate address detection runs, the subnet is on link and the address is no own
    address. This stays so when the detection fails (RFC 4862, 5.4; Linux: IFA_F_TENTATIVE)."""
    prefix, host = MORE[6]
    address = own(prefix)
    both.answer("ext", host)
    both.sysctl({"net.ipv6.conf.ext0.accept_dad": 1, "net.ipv6.conf.ext0.dad_transmits": 30})
    try:
        both.ip(f"addr add {prefix} dev ext0")
        both.agree("tentative address added", {host: "ext"})
        assert all("tentative" in flags(r, address) for r in both.both)
        for router in both.both:
            eventually(lambda r=router: contend(r, address) and "dadfailed" in flags(r, address), 10)
        both.ip()
        both.agree("address is a duplicate", {host: "ext"})
        both.ip(f"addr del {prefix} dev ext0")
        both.agree("address deleted", {host: "no route"})
    finally:
        both.sysctl({"net.ipv6.conf.ext0.accept_dad": 0, "net.ipv6.conf.ext0.dad_transmits": 1})


def test_an_address_that_passes_the_detection_is_ours(both):
    """When duplicate address detection has ended, the address is ours."""
    prefix, host = MORE[6]
    address = own(prefix)
    both.answer("ext", host)
    both.sysctl({"net.ipv6.conf.ext0.accept_dad": 1, "net.ipv6.conf.ext0.dad_transmits": 1})
    try:
        both.ip(f"addr add {prefix} dev ext0")
        both.agree("tentative address added", {host: "ext"})
        for router in both.both:
            eventually(lambda r=router: "tentative" not in flags(r, address), 5, 0.01)
        both.ip()
        both.agree("address valid", {host: "ext", address: "local"})
    finally:
        both.sysctl({"net.ipv6.conf.ext0.accept_dad": 0})


def flags(router, address):
    """Return the words of `ip addr` about an address of ext0."""
    text = netns.command(["ip", "-n", router.ctl, "-o", "addr", "show", "ext0"])
    return next(row for row in text.splitlines() if address + "/" in row)


def contend(router, address):
    """Advertise an address on ext as another host that owns it. Returns true."""
    ext = router.wires["ext"]
    head = Ether(src=ext.mac, dst="33:33:00:00:00:01") / IPv6(src=address, dst="ff02::1", hlim=255)
    ext.send(head / ICMPv6ND_NA(R=0, S=0, O=1, tgt=address))
    return True


def test_a_prefix_on_the_loopback(both, family):
    """All addresses of an IPv4 prefix on lo are ours; of an IPv6 prefix only the address itself,
    and the rest is unreachable by lo (Linux adds the IPv4 prefix to table local)."""
    prefix, inside = {4: ("10.9.0.1/24", "10.9.0.77"), 6: ("2001:db8:9::1/64", "2001:db8:9::77")}[
        family
    ]
    both.ip(f"addr add {prefix} dev lo")
    fates = {own(prefix): "local", inside: "local" if family == 4 else LO6}
    both.agree("address on lo added", fates)
    both.ip(f"addr del {prefix} dev lo")
    both.agree("address on lo deleted", dict.fromkeys(fates, "no route"))


# Linux has a route in main for the rest of the prefix, by lo, which leads to no neighbor.
LO6 = "no route"


@pytest.mark.parametrize("zebra_has_more", [False, True])
def test_anyip(both, family, zebra_has_more):
    """`ip route add local PREFIX dev lo`: all addresses of the prefix are ours. Linux asks table
    local first for IPv6, so a more specific route in table main changes nothing until the local
    route is deleted. Without rules of the operator it keeps the tables local and main of IPv4 in
    one trie, in which the longest prefix counts (fib_trie.c, fib_trie_table())."""
    prefix, inside, route = {
        4: ("198.18.5.0/24", "198.18.5.200", "198.18.5.192/26"),
        6: ("2001:db8:18::/48", "2001:db8:18::200", "2001:db8:18::/64"),
    }[family]
    aside = {4: "198.18.5.9", 6: "2001:db8:18:1::9"}[family]

    def more_specific():
        if zebra_has_more:
            both.zebra(route, "wan")
        else:
            both.ip(line(family, f"route add {route} {via(both, 'wan', family)}"))

    both.ip(line(family, f"route add local {prefix} dev lo"))
    both.agree("AnyIP added", {inside: "local", aside: "local"})
    more_specific()
    fate = "wan" if family == 4 else "local"
    both.agree("route inside AnyIP", {inside: fate, aside: "local"})
    both.ip(line(family, f"route del local {prefix} dev lo"))
    both.agree("AnyIP deleted", {inside: "wan", aside: "no route"})
    both.ip(line(family, f"route add local {prefix} dev lo"))
    both.agree("AnyIP added", {inside: fate, aside: "local"})


def test_broadcast_addresses(both):
    """A subnet's broadcast address is not forwarded (RFC 2644). The first address of a subnet is a
    host's (Linux 5.14)."""
    both.answer("ext", "10.9.0.0")
    both.ip("addr add 10.9.0.1/16 broadcast 10.9.255.255 dev ext0")
    both.agree("address added", {"10.9.255.255": "nothing", "10.9.0.0": "ext"})
    both.ip("addr del 10.9.0.1/16 dev ext0", "addr add 10.9.0.1/16 broadcast 10.9.1.255 dev ext0")
    both.answer("ext", "10.9.255.255")
    both.agree("broadcast address changed", {"10.9.1.255": "nothing"})


def test_a_subnet_without_a_broadcast_address(both):
    """`broadcast -`: the kernel adds 10.9.255.255 nevertheless, as the last address of the
    subnet."""
    both.ip("addr add 10.9.0.1/16 broadcast - dev ext0")
    both.agree("address added", {"10.9.255.255": "nothing"})


def test_anycast_addresses(both):
    """The subnet-router anycast address of a forwarding interface is ours (RFC 4291, 2.6.1), until
    the address of the subnet is deleted."""
    both.ip(f"addr add {MORE[6][0]} dev ext0 nodad")
    both.agree("address added", {"2001:db8:9::": "local"})
    both.ip(f"addr del {MORE[6][0]} dev ext0")
    both.agree("address deleted", {"2001:db8:9::": "no route"})


def test_an_anycast_route(both, family):
    """`ip route add anycast`, in table local: Linux takes IPv6 packets to the address for its own, or
    refuses them if the route is by lo. It drops IPv4 packets to it. A route in table main to the
    address is used again when the anycast route is deleted."""
    net, host = NET[family], HOST[family]
    both.ip(line(family, f"route add {net} {via(both, 'wan', family)}"))
    both.agree("route added", {host: "wan"})
    for dev, fate in ("ext0", "local"), ("lo", LO6):
        both.ip(line(family, f"route add anycast {host} dev {dev}"))
        both.agree("anycast route added", {host: fate if family == 6 else "nothing"})
        both.ip(line(family, f"route del anycast {host} dev {dev}"))
        both.agree("anycast route deleted", {host: "wan"})


def test_the_source_of_a_route_is_deleted(both):
    """The kernel deletes the IPv4 routes whose preferred source is the deleted address, without a
    message. A route with a worse metric is used then."""
    net, host = NET[4], HOST[4]
    for _ in range(3):
        both.ip("addr add 10.9.0.1/16 dev ext0")
        both.ip(
            f"route add {net} {via(both, 'wan', 4)} src 10.9.0.1",
            f"route add {net} {via(both, 'alt', 4)} metric 50",
        )
        both.agree("route added", {host: "wan"})
        both.ip("addr del 10.9.0.1/16 dev ext0")
        both.agree("source deleted", {host: "alt"})
        both.ip(f"route del {net}")
        both.agree("route deleted", {host: "no route"})


def test_the_gateways_subnet_is_deleted(both, family):
    """A route by a gateway stays in force when the only address of the gateway's subnet is deleted,
    and the gateway itself has no route then (Linux keeps the route with its interface)."""
    prefix, gateway = MORE[family]
    both.answer("ext", gateway)
    both.ip(f"addr add {prefix} dev ext0" + nodad(family))
    both.ip(line(family, f"route add {NET[family]} via {gateway}"))
    both.agree("route added", {HOST[family]: "ext", gateway: "ext"})
    both.ip(f"addr del {prefix} dev ext0")
    both.agree("address deleted", {gateway: "no route", HOST[family]: "ext"})
    both.ip(f"addr add {prefix} dev ext0" + nodad(family))
    both.agree("address added", {gateway: "ext", HOST[family]: "ext"})
    both.ip(line(family, f"route del {NET[family]}"))
    both.agree("route deleted", {HOST[family]: "no route"})


def test_the_last_address_of_a_link_is_deleted(both):
    """The kernel deletes all IPv4 routes of a link whose last address is deleted, without a
    message."""
    ext = both.ours.wires["ext"]
    both.answer("ext", HOST[4])
    both.ip(f"route add {NET[4]} dev ext0", f"route add 198.51.0.0/16 {via(both, 'wan', 4)}")
    both.agree("interface route added", {HOST[4]: "ext"})
    both.ip(f"addr del {ext.ip4}/26 dev ext0")
    both.agree("last address deleted", {HOST[4]: "wan", ext.ip4: "no route"})


def test_an_address_with_a_life(both):
    """The kernel deletes an address whose valid_lft is over, and its subnet."""
    both.answer("ext", MORE[6][1], MORE[4][1])
    for family in (4, 6):
        both.ip(f"addr add {MORE[family][0]} dev ext0 valid_lft 4 preferred_lft 1" + nodad(family))
        both.agree("address added", {MORE[family][1]: "ext", own(MORE[family][0]): "local"})
    for family in (4, 6):
        gone = lambda f=family: both.fate(both.linux, MORE[f][1]) == "no route"  # noqa: E731
        eventually(gone, 10, 0.02)
        both.ip()
        fates = {MORE[family][1]: "no route", own(MORE[family][0]): "no route"}
        both.agree("address's lifetime over", fates)


def test_prefixes_without_a_broadcast(both):
    """/31 and /32 of an address have no broadcast (RFC 3021)."""
    both.answer("ext", "10.9.0.1")
    both.ip("addr add 10.9.0.0/31 dev ext0", "addr add 10.9.7.7/32 dev ext0")
    fates = {"10.9.0.1": "ext", "10.9.0.0": "local", "10.9.7.7": "local", "10.9.7.6": "no route"}
    both.agree("address added", fates)


# --- links ------------------------------------------------------------------------------------


def test_a_link_is_set_down_and_up(both, family):
    """The routes of a link that is set down are gone, those of IPv4 without a message, and a worse
    route takes over. When the link is up again, only its connected subnet is back."""
    net, host = NET[family], HOST[family]
    both.ip(
        line(family, f"route add {net} {via(both, 'ext', family)}"),
        line(family, f"route add {net} {via(both, 'wan', family)} metric 2000"),
    )
    both.agree("route added", {host: "ext"})
    both.ip("link set ext0 down")
    both.agree("link down", {host: "wan"})
    both.ip("link set ext0 up")
    both.agree("link up", {host: "wan"})
    both.ip(line(family, f"route del {net} metric 2000"))
    both.agree("route deleted", {host: "no route"})


def test_own_addresses_of_a_link_that_is_down(both):
    """The IPv4 addresses of a link that is down stay own addresses, but its subnet is not on
    link."""
    ext = both.ours.wires["ext"]
    both.ip("link set ext0 down")
    both.agree("link down", {ext.peer4: "no route", ext.ip4: "local"})
    both.ip("link set ext0 up")
    both.agree("link up", {ext.ip4: "local"})


def set_carrier(both, name, up):
    """Remove the carrier of a wire in both routers, or restore it with its static neighbors."""
    for router in both.both:
        router.wires[name].silence()
        netns.command(["ip", "-n", router.far, "link", "set", name, "up" if up else "down"])
        if up:
            router.kernel_defaults()
    both.ip()


@pytest.fixture
def carriers(both):
    """Yield both routers. Then restore the carrier of ext, and clear the sysctls."""
    yield both
    set_carrier(both, "ext", True)
    off = {f"net.ipv{v}.conf.{d}.{LINKDOWN}": 0 for v in (4, 6) for d in ("ext0", "all")}
    both.sysctl(off)


LINKDOWN = "ignore_routes_with_linkdown"


@pytest.mark.parametrize("of", ["ext0", "all"])
def test_routes_by_a_link_without_carrier_do_not_count(carriers, family, of):
    """ignore_routes_with_linkdown: a route by a link without carrier gives way to one of a worse
    metric and to a shorter one (ip-sysctl.rst; SONiC, sonic-buildimage #24462; babeld #111)."""
    both = carriers
    setting = f"net.ipv{family}.conf.{of}.{LINKDOWN}"
    longer, inside = {4: ("198.51.100.0/25", "198.51.100.77"), 6: ("2001:db8:f000::/64", HOST[6])}[
        family
    ]
    both.ip(
        line(family, f"route add {longer} {via(both, 'ext', family)} metric 10"),
        line(family, f"route add {longer} {via(both, 'alt', family)} metric 2000"),
        line(family, f"route add {NET[family]} {via(both, 'wan', family)}"),
        line(family, f"route add {WIDER[family]} {via(both, 'ext', family)}"),
    )
    fates = {inside: "ext", OUTSIDE[family]: "ext"}
    both.agree("route added", fates)
    both.sysctl({setting: 1})
    both.agree("route added", fates)
    set_carrier(both, "ext", False)
    both.agree("carrier lost", {inside: "alt", OUTSIDE[family]: "no route"})
    both.ip(line(family, f"route del {longer} metric 2000"))
    both.agree("route deleted", {inside: "wan"})
    both.audit()
    # Linux then drops the packets without an ICMP error.
    both.sysctl({setting: 0})
    both.alike = {"no route": "nothing"}
    both.ip()
    both.agree("routes without carrier count", {inside: "nothing"})
    both.alike = {}
    both.sysctl({setting: 1})
    both.ip()
    both.agree("routes without carrier do not count", {inside: "wan"})
    set_carrier(both, "ext", True)
    both.agree("carrier is back", fates)


WIDER = {4: "203.0.0.0/16", 6: "2001:db8:e000::/40"}
OUTSIDE = {4: "203.0.113.9", 6: "2001:db8:e000::9"}


def test_the_broadcast_address_of_a_link_without_carrier(carriers):
    """ignore_routes_with_linkdown: a default route is used in the place of the broadcast address of a
    link without carrier, but the own address stays (fib_sync_down_dev())."""
    both = carriers
    own, broadcast = "192.0.2.193", "192.0.2.255"
    both.sysctl({f"net.ipv4.conf.ext0.{LINKDOWN}": 1})
    both.ip(f"route add default {via(both, 'wan', 4)}")
    both.agree("route added", {OUTSIDE[4]: "wan", broadcast: "nothing", own: "local"})
    set_carrier(both, "ext", False)
    both.agree("carrier lost", {broadcast: "wan", own: "local"})
    both.audit()
    set_carrier(both, "ext", True)
    both.agree("carrier is back", {broadcast: "nothing", own: "local"})


def test_a_dead_next_hop_beside_one_without_carrier(carriers):
    """Linux uses neither a next hop of a link without an IPv4 address, nor, with
    ignore_routes_with_linkdown, one of a link without carrier. So the next route counts."""
    both = carriers
    alt = both.ours.wires["alt"]
    dead = f"via inet6 {alt.peer6} dev alt0"
    both.sysctl({f"net.ipv4.conf.ext0.{LINKDOWN}": 1})
    both.ip(
        f"route add {NET[4]} nexthop {dead} nexthop {via(both, 'ext', 4)}",
        f"route add {NET[4]} {via(both, 'wan', 4)} metric 2000",
        f"addr del {alt.ip4}/26 dev alt0",
    )
    both.agree("last address deleted", {HOST[4]: "ext"})
    set_carrier(both, "ext", False)
    both.agree("carrier lost", {HOST[4]: "wan"})
    both.ip(f"addr add {alt.ip4}/26 dev alt0")
    both.agree("address added", {HOST[4]: "alt"})
    both.ip(f"route del {NET[4]} metric 0")
    both.agree("route deleted", {HOST[4]: "wan"})


def test_a_link_with_an_id_loses_its_carrier(carriers, family):
    """The kernel deletes the ids of a link that loses its carrier, and their routes, whatever the
    sysctl says (bisdn, basebox #469)."""
    both = carriers
    net, host = NET[family], HOST[family]
    both.ip(
        line(family, f"nexthop add id 5 {via(both, 'ext', family)}"),
        line(family, f"route add {net} nhid 5"),
        line(family, f"route add {net} {via(both, 'wan', family)} metric 2000"),
    )
    both.agree("route of an id added", {host: "ext"})
    set_carrier(both, "ext", False)
    both.agree("carrier lost", {host: "wan"})
    set_carrier(both, "ext", True)
    both.agree("carrier is back", {host: "wan"})


# --- router advertisements --------------------------------------------------------------------

ADVERTISER = "fe80::9"
ON_LINK = ("2001:db8:99::", "2001:db8:99::5")


def advertise(router, prefix_s=0, router_s=0):
    """Send a router advertisement on wan, with an on-link prefix and a router lifetime."""
    wan = router.wires["wan"]
    head = Ether(src=wan.mac, dst="33:33:00:00:00:01") / IPv6(src=ADVERTISER, dst="ff02::1", hlim=255)
    info = ICMPv6NDOptPrefixInfo(
        prefix=ON_LINK[0], prefixlen=64, L=1, A=0, validlifetime=prefix_s, preferredlifetime=prefix_s
    )
    wan.send(head / ICMPv6ND_RA(routerlifetime=router_s, prf=0) / info)


@pytest.fixture
def advertised(both):
    """Both routers accept advertisements on wan, whose neighbors answer."""
    both.sysctl({"net.ipv6.conf.wan0.accept_ra": 2})
    both.ip(f"-6 neigh replace {ADVERTISER} lladdr {both.ours.wires['wan'].mac} dev wan0 nud permanent")
    both.answer("wan", ON_LINK[1])
    return both


def test_the_prefix_of_an_advertisement_and_its_end(advertised):
    """An on-link prefix and a default route of a router advertisement are in force, are renewed
    without a message, and end with their lifetime (RFC 4861, 6.3.4)."""
    both = advertised
    away = "2001:db8:7777::7"
    for router in both.both:
        advertise(router, 2, 2)
    both.ip()
    both.agree("advertised", {ON_LINK[1]: "wan", away: "wan"})
    # Renewed for longer than the first lifetime.
    end = time.monotonic() + 3.2
    while time.monotonic() < end:
        for router in both.both:
            advertise(router, 2, 2)
            for dst in (ON_LINK[1], away):
                assert both.fate(router, dst) == "wan"
        time.sleep(0.2)
    linux = lambda: both.fate(both.linux, away) == both.fate(both.linux, ON_LINK[1]) == "no route"  # noqa: E731
    eventually(linux, 6, 0.02, "the advertised routes end in Linux")
    both.ip()
    both.agree("advertised lifetime over", {ON_LINK[1]: "no route", away: "no route"})


def test_an_advertisement_that_takes_back(advertised):
    """A lifetime of zero ends an advertised prefix and default route at once."""
    both = advertised
    away = "2001:db8:7777::7"
    for _ in range(3):
        for router in both.both:
            advertise(router, 600, 600)
        both.ip()
        both.agree("advertised", {ON_LINK[1]: "wan", away: "wan"})
        for router in both.both:
            advertise(router, 0, 0)
        both.ip()
        both.agree("taken back", {ON_LINK[1]: "no route", away: "no route"})


def ends_in_linux(both, *addresses):
    """Return when Linux no longer has a route to these addresses."""
    gone = lambda: {both.fate(both.linux, dst) for dst in addresses} == {"no route"}  # noqa: E731
    eventually(gone, 6, 0.02, "the routes end in Linux")
    both.ip()


def test_an_advertised_route_is_back_after_its_end(advertised):
    """The kernel keeps an expired route for some time. An advertisement then gives it a new
    lifetime, and the kernel sends no message (RFC 4861, 6.3.4)."""
    both = advertised
    away = "2001:db8:7777::7"
    for router in both.both:
        advertise(router, 3, 3)  # not over before agree() has seen it in both
    both.ip()
    both.agree("advertised", {ON_LINK[1]: "wan", away: "wan"})
    ends_in_linux(both, ON_LINK[1], away)
    both.agree("advertised lifetime over", {ON_LINK[1]: "no route", away: "no route"})
    for router in both.both:
        advertise(router, 600, 600)
    both.ip()
    both.agree("advertised again", {ON_LINK[1]: "wan", away: "wan"})


def test_an_advertised_life_gets_shorter(advertised):
    """The kernel sends no message when a later advertisement shortens a lifetime."""
    both = advertised
    away = "2001:db8:7777::7"
    for router in both.both:
        advertise(router, 0, 600)
    both.ip()
    both.agree("advertised", {away: "wan"})
    for router in both.both:
        advertise(router, 0, 1)
    ends_in_linux(both, away)
    both.agree("advertised lifetime over", {away: "no route"})


def test_an_advertised_more_specific_route(advertised):
    """A route information option (RFC 4191, 2.3): the route comes before the default route, and ends
    with its lifetime. The kernel sends its message before it sets this lifetime."""
    both = advertised
    away = "2001:db8:7777::7"
    both.sysctl(
        {
            "net.ipv6.conf.ext0.accept_ra": 2,
            "net.ipv6.conf.ext0.accept_ra_rt_info_max_plen": 64,
        }
    )
    both.ip(
        f"-6 neigh replace fe80::8 lladdr {both.ours.wires['ext'].mac} dev ext0 nud permanent",
        f"-6 route add default {via(both, 'alt', 6)} metric 2000",
    )
    for router in both.both:
        ext = router.wires["ext"]
        head = Ether(src=ext.mac, dst="33:33:00:00:00:01") / IPv6(src="fe80::8", dst="ff02::1", hlim=255)
        option = ICMPv6NDOptRouteInfo(prefix="2001:db8:7777::", plen=48, rtlifetime=3)
        ext.send(head / ICMPv6ND_RA(routerlifetime=0) / option)
    both.ip()
    both.agree("advertised", {away: "ext"})
    eventually(lambda: both.fate(both.linux, away) == "alt", 6, 0.02, "the route ends in Linux")
    both.ip()
    both.agree("advertised lifetime over", {away: "alt"})


def test_an_address_is_back_after_its_life(both):
    """The kernel still has the expired route of the address's subnet, and uses it again without a
    message."""
    prefix, host = MORE[6]
    both.answer("ext", host)
    both.ip(f"addr add {prefix} dev ext0 nodad valid_lft 3 preferred_lft 3")
    both.agree("address added", {host: "ext", own(prefix): "local"})
    ends_in_linux(both, host, own(prefix))
    both.agree("address's lifetime over", {host: "no route", own(prefix): "no route"})
    both.ip(f"addr add {prefix} dev ext0 nodad")
    both.agree("address is back", {host: "ext", own(prefix): "local"})


def test_an_address_gets_a_life(both):
    """An address gets a lifetime later: the kernel also limits the lifetime of its subnet's route,
    without a message. Linux 6.18 takes the route as expired at once."""
    prefix, host = MORE[6]
    both.answer("ext", host)
    both.ip(f"addr add {prefix} dev ext0 nodad")
    both.agree("address added", {host: "ext", own(prefix): "local"})
    both.ip(f"addr change {prefix} dev ext0 nodad valid_lft 2 preferred_lft 2")
    ends_in_linux(both, host)
    both.agree("address's lifetime over", {host: "no route"})


def test_a_route_with_a_life(both):
    """`ip -6 route add ... expires N` ends in time, in Linux and in our router."""
    both.ip(f"-6 route add {NET[6]} {via(both, 'wan', 6)} expires 2")
    both.agree("route added", {HOST[6]: "wan"})
    eventually(lambda: both.fate(both.linux, HOST[6]) == "no route", 6, 0.02)
    both.ip()
    both.agree("route's lifetime over", {HOST[6]: "no route"})


def test_the_preference_of_advertised_routers(advertised):
    """The router uses the advertised default router with the higher preference (RFC 4191)."""
    both = advertised
    both.sysctl({"net.ipv6.conf.ext0.accept_ra": 2})
    ext = both.ours.wires["ext"]
    both.ip(f"-6 neigh replace fe80::8 lladdr {ext.mac} dev ext0 nud permanent")
    away = "2001:db8:7777::7"
    for router in both.both:
        advertise(router, 0, 600)
        head = Ether(src=ext.mac, dst="33:33:00:00:00:01") / IPv6(src="fe80::8", dst="ff02::1", hlim=255)
        router.wires["ext"].send(head / ICMPv6ND_RA(routerlifetime=600, prf=1))
    both.ip()
    both.agree("advertised", {away: "ext"})


def test_changes_are_in_force_within_100_ms(routers):
    """The median of the times that packets took to show a change is below 100 ms, for each kind of
    change that was made at least three times."""
    judge(routers)
