# SPDX-License-Identifier: BSD-3-Clause
"""Combinations of routes, rules, next-hop objects, addresses and links, on our router and on a Linux
router of equal configuration. Each test changes one thing that other things depend on."""

import contextlib

import pytest

from lib import netns
from lib.wait import eventually
from pair import HOST, NET, line, peer, spread, via
from pair import both, routers  # noqa: F401

INSIDE = {4: "198.51.100.8/29", 6: "2001:db8:f000::8/125"}
TABLE = 100100  # above the numbers that fit in an octet


@pytest.fixture
def rules(both):
    """A function that adds rules to both routers for the length of a test."""
    undo = []

    def add(*lines):
        both.ip(*lines)
        undo.extend(text.replace("rule add", "rule del") for text in reversed(lines))

    yield add
    both.ip(*undo)
    both.ip(*(line(f, f"route flush table {TABLE}") for f in (4, 6)))


@contextlib.contextmanager
def setting(both, settings, after):
    """Give both kernels settings for the length of a with block, and then the settings `after`."""
    both.sysctl(settings)
    try:
        yield
    finally:
        both.sysctl(dict.fromkeys(settings, after))


@pytest.fixture
def renamed(both):
    """Give lan0 its name back, and then its addresses."""
    yield
    for router in both.both:
        if "lanx" in netns.run(router.ctl, ["ip", "link"]):
            rename(router, "lanx", "lan0")
        router.kernel_defaults()


def rename(router, old, new):
    """Rename an interface, which has to be down meanwhile."""
    lines = [f"link set {old} down", f"link set {old} name {new}", f"link set {new} up"]
    netns.ip_batch(lines, router.ctl)


@pytest.mark.usefixtures("renamed")
def test_a_rule_whose_interface_gets_another_name(both, family, rules):
    """A rule names its interface: it has no effect while no interface has this name."""
    rules(line(family, f"rule add pref 100 iif lan0 lookup {TABLE}"))
    both.ip(line(family, f"route add {NET[family]} {via(both, 'alt', family)}"))
    both.ip(line(family, f"route add {NET[family]} {via(both, 'ext', family)} table {TABLE}"))
    both.agree("rule of an interface", {HOST[family]: "ext"})
    for old, new, out in (("lan0", "lanx", "alt"), ("lanx", "lan0", "ext")):
        for router in both.both:
            rename(router, old, new)
        both.ip()
        both.agree("interface renamed", {HOST[family]: out})
    both.fates = {}


def test_a_member_of_a_group_is_replaced(both, family):
    """A member that is replaced gets a new gateway in all groups. A member that is deleted leaves all
    groups. A group whose last member is deleted is deleted, and its routes are, too."""
    host = HOST[family]
    for n, name in ((1, "wan"), (2, "alt")):
        both.ip(line(family, f"nexthop add id {n} {via(both, name, family)}"))
    both.ip("nexthop add id 10 group 1,1/2,3", "nexthop add id 11 group 1")
    both.ip(line(family, f"route add {NET[family]} nhid 10"))
    both.ip(line(family, f"route add {INSIDE[family]} nhid 11"))
    inside = {4: "198.51.100.12", 6: "2001:db8:f000::c"}[family]
    aside = {4: "198.51.100.99", 6: "2001:db8:f000::99"}[family]
    both.agree("group added", {inside: "wan"})
    both.ip(line(family, f"nexthop replace id 1 {via(both, 'ext', family)}"))
    both.agree("member replaced", {inside: "ext"})
    both.ip("nexthop del id 2")
    both.agree("member deleted", {inside: "ext", aside: "ext"})
    both.ip("nexthop del id 1")
    both.agree("last member deleted", {inside: "no route", aside: "no route"})


def test_all_objects_are_flushed(both, family):
    """`ip nexthop flush` also deletes all groups and the routes with objects. A route without an object
    stays."""
    both.ip(line(family, f"nexthop add id 1 {via(both, 'wan', family)}"))
    both.ip("nexthop add id 10 group 1")
    both.ip(line(family, f"route add {INSIDE[family]} nhid 10"))
    both.ip(line(family, f"route add {NET[family]} {via(both, 'ext', family)}"))
    inside = {4: "198.51.100.12", 6: "2001:db8:f000::c"}[family]
    both.agree("group added", {inside: "wan"})
    both.ip("nexthop flush")
    both.agree("objects flushed", {inside: "ext"})


def test_an_object_becomes_a_blackhole_and_a_gateway_again(both, family):
    both.ip(line(family, f"nexthop add id 1 {via(both, 'wan', family)}"))
    both.ip(line(family, f"route add {NET[family]} nhid 1"))
    both.agree("object added", {HOST[family]: "wan"})
    both.ip(line(family, "nexthop replace id 1 blackhole"))
    both.agree("object replaced", {HOST[family]: "nothing"})
    both.ip(line(family, "nexthop replace id 1 dev ext0"))
    both.answer("ext", HOST[family])
    both.agree("object replaced", {HOST[family]: "ext"})


def test_addresses_that_are_kept_on_a_link_that_is_down(both):
    """keep_addr_on_down: the IPv6 addresses and the connected subnet are back with the link."""
    subnet = both.ours.wires["ext"].peer6
    with setting(both, {"net.ipv6.conf.ext0.keep_addr_on_down": 1}, 0):
        both.ip(f"-6 route add {NET[6]} {via(both, 'ext', 6)}")
        both.agree("route added", {HOST[6]: "ext", subnet: "ext"})
        both.ip("link set ext0 down")
        both.agree("link down", {HOST[6]: "no route", subnet: "no route", both.ours.wires["ext"].ip6: "no route"})
        both.ip("link set ext0 up")
        both.answer("ext", subnet)
        both.agree("link up", {subnet: "ext", HOST[6]: "no route"})
        both.agree("link up", {both.ours.wires["ext"].ip6: "local"})


def test_the_preference_of_routes_by_hand(both):
    """`pref high` (RFC 4191) of a route counts among equal metrics."""
    both.ip(f"-6 route add {NET[6]} {via(both, 'wan', 6)} pref low")
    both.agree("route added", {HOST[6]: "wan"})
    both.ip(f"-6 route append {NET[6]} dev ext0 pref high")
    both.answer("ext", HOST[6])
    both.agree("route appended", {HOST[6]: "ext"})
    both.ip(f"-6 route del {NET[6]} dev ext0")
    both.agree("route deleted", {HOST[6]: "wan"})


def test_a_gateway_by_a_route_that_comes_later(both):
    """A gateway is on link by a host route alone. The route by the gateway stays in force when the host
    route is deleted, or leads to another link."""
    both.answer("ext", "203.0.113.77")
    both.ip("route add 203.0.113.77 dev ext0", f"route add {NET[4]} via 203.0.113.77")
    both.agree("route added", {HOST[4]: "ext"})
    both.ip("route del 203.0.113.77 dev ext0")
    both.agree("host route deleted", {HOST[4]: "ext"})
    both.ip(f"route add 203.0.113.77 {via(both, 'wan', 4)}")
    both.agree("host route by another link", {HOST[4]: "ext"})


@pytest.mark.parametrize("scope", ["link", "host", "global", "site"])
def test_the_scope_of_a_route(both, scope):
    both.answer("ext", HOST[4])
    for router in (both.linux, both.ours):
        with contextlib.suppress(netns.CommandError):
            netns.ip_batch([f"route add {NET[4]} dev ext0 scope {scope}"], router.ctl)
    both.ip()
    has = NET[4] in netns.run(both.linux.ctl, ["ip", "route"])
    both.agree("route added", {HOST[4]: "ext" if has else "no route"})


def test_a_rule_with_a_table_of_a_large_number(both, family, rules):
    rules(line(family, f"rule add pref 100 to {NET[family]} lookup {TABLE}"))
    both.ip(line(family, f"route add {INSIDE[family]} {via(both, 'ext', family)} table {TABLE}"))
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)}"))
    aside = {4: "198.51.100.99", 6: "2001:db8:f000::99"}[family]
    both.agree("table of a rule", {HOST[family]: "ext", aside: "wan"})
    both.ip(line(family, f"route add throw {INSIDE[family]} table {TABLE} metric 1"))
    both.agree("throw added", {HOST[family]: "wan" if family == 6 else "ext"})
    both.ip(line(family, f"route flush table {TABLE}"))
    both.agree("table flushed", {HOST[family]: "wan"})


def test_an_object_in_the_table_of_a_rule(both, family, rules):
    """The link of an object goes down: the route by the object leaves the table of the rule, and the
    route of table main counts."""
    rules(line(family, f"rule add pref 100 to {NET[family]} lookup {TABLE}"))
    both.ip(line(family, f"nexthop add id 1 {via(both, 'ext', family)}"))
    both.ip(line(family, f"route add {INSIDE[family]} nhid 1 table {TABLE}"))
    both.ip(line(family, f"route add {INSIDE[family]} {via(both, 'wan', family)}"))
    both.agree("object in a table", {HOST[family]: "ext"})
    both.ip("link set ext0 down")
    both.agree("link down", {HOST[family]: "wan"})


def test_a_group_of_ipv6_gateways_for_ipv4_routes(both):
    for n, name in ((1, "wan"), (2, "ext")):
        both.ip(f"nexthop add id {n} via {peer(both, name, 6)} dev {name}0")
    both.ip("nexthop add id 10 group 1,1/2,3")
    both.ip(f"route add {NET[4]} nhid 10", f"-6 route add {NET[6]} nhid 10")
    for family in (4, 6):
        spread(both, family, {"wan": 1, "ext": 3})
    both.ip("link set ext0 down")
    both.agree("link down", {HOST[4]: "wan", HOST[6]: "wan"})


def test_next_hops_that_are_equal(both, family):
    """The same next hop twice counts twice in IPv4; IPv6 refuses it."""
    one, two = via(both, "wan", family), via(both, "ext", family)
    words = f"nexthop {one} nexthop {two} nexthop {one}"
    if family == 4:
        both.ip(f"route add {NET[4]} {words}")
        spread(both, 4, {"wan": 2, "ext": 1})
    both.ip(line(family, f"nexthop add id 1 {one}"), line(family, f"nexthop add id 2 {two}"))
    both.ip(line(family, f"nexthop add id 3 {one}"))
    both.ip("nexthop add id 10 group 1/2/3")
    both.ip(line(family, f"route replace {NET[family]} nhid 10"))
    spread(both, family, {"wan": 2, "ext": 1})


def test_an_address_is_changed(both, family):
    """`ip addr change` changes the metric of the address's subnet, or sets noprefixroute."""
    prefix, host = {4: ("10.9.0.1/24", "10.9.0.5"), 6: ("2001:db8:9::1/64", "2001:db8:9::5")}[family]
    nodad = " nodad" if family == 6 else ""
    both.answer("ext", host)
    both.answer("alt", host)
    both.ip(f"addr add {prefix} dev ext0 metric 300{nodad}")
    both.agree("address added", {host: "ext"})
    second = prefix.replace("1/", "2/")
    both.ip(f"addr add {second} dev alt0 metric 200{nodad}")
    both.agree("address with a better metric", {host: "alt"})
    both.ip(f"addr change {prefix} dev ext0 metric 100{nodad}")
    both.agree("metric changed", {host: "ext"})
    both.ip(f"addr change {prefix} dev ext0 noprefixroute{nodad}")
    # Linux takes the IPv6 route of the subnet away, and keeps the one of IPv4.
    both.agree("noprefixroute", {host: "ext" if family == 4 else "alt"})


def test_source_hints_of_routes(both):
    """When an address is deleted, a route that has it as its source is deleted. The other route of the
    prefix counts then."""
    both.ip("addr add 10.9.0.1/32 dev ext0", f"route add {NET[4]} {via(both, 'wan', 4)} src 10.9.0.1")
    both.ip(f"route append {NET[4]} {via(both, 'alt', 4)}")
    both.agree("source added", {HOST[4]: "wan"})
    both.ip("addr del 10.9.0.1/32 dev ext0")
    both.agree("source deleted", {HOST[4]: "alt"})


def test_a_link_is_deleted_behind_rules_and_routes(both, family, rules):
    """A macvlan with routes, a rule of its name and an object: all of them go with it."""
    host = HOST[family]
    for router in (both.linux, both.ours):
        netns.ip_batch(
            ["link add mv0 link ext0 type macvlan mode bridge", "link set mv0 up"], router.ctl
        )
    both.ip(line(family, f"nexthop add id 1 via {peer(both, 'wan', family)} dev wan0"))
    address = {4: "10.9.3.1/24", 6: "2001:db8:9:3::1/64 nodad"}[family]
    gateway = {4: "10.9.3.2", 6: "2001:db8:9:3::2"}[family]
    both.answer("ext", gateway)
    both.ip(f"addr add {address} dev mv0")
    both.ip(line(family, f"nexthop add id 2 via {gateway} dev mv0"))
    both.ip("nexthop add id 10 group 1/2")
    rules(line(family, "rule add pref 100 iif mv0 prohibit"))
    both.ip(line(family, f"route add {INSIDE[family]} via {gateway} dev mv0"))
    both.ip(line(family, f"route add {NET[family]} nhid 10"))
    both.agree("route by a macvlan", {HOST[family]: "ext"})
    both.ip("link del mv0")
    both.agree("macvlan deleted", {HOST[family]: "wan"})


@pytest.mark.parametrize("keyword", ["replace", "change"])
def test_a_route_is_replaced_by_another_kind(both, family, keyword):
    """The new route is of another type, or has an object or a list of next hops in place of a
    gateway."""
    host, net = HOST[family], NET[family]
    metric = "metric 50"
    both.ip(line(family, f"nexthop add id 1 {via(both, 'ext', family)}"))
    both.ip(line(family, f"route add {net} {via(both, 'wan', family)} {metric}"))
    both.agree("route added", {host: "wan"})
    for text, fate in (
        (f"blackhole {net}", "nothing"),
        (f"{net} nhid 1", "ext"),
        (f"prohibit {net}", "prohibited"),
        (f"{net} {via(both, 'alt', family)}", "alt"),
        (f"throw {net}", "no route"),
        (f"{net} {metric} nexthop {via(both, 'wan', family)}", "wan"),
    ):
        text = text if metric in text else f"{text} {metric}"
        both.ip(line(family, f"route {keyword} {text}"))
        both.agree("route replaced", {host: fate})
