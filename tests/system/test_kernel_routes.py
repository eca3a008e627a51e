# SPDX-License-Identifier: BSD-3-Clause
"""Our router obeys the routes and addresses of the kernel of the control namespace, as a Linux router
of equal configuration does: packets show it."""

import errno
import ipaddress
import socket
import struct
from collections import Counter

import pytest

from lib import fpm_speaker as fpm
from lib import netns
from lib.wait import eventually
from pair import HOST, NET, judge, line, peer, spread, via, wide_of_lan
from pair import both, routers  # noqa: F401
from wire import token_of

# A prefix for tests that also have a longer prefix within it.
WIDE = {4: "10.8.0.0/16", 6: "2001:db8:e000::/40"}
# A route that is in force after the changes before it.
FENCE = WIDE[4]


# --- routes -----------------------------------------------------------------------------------


def test_a_route_by_a_gateway_comes_and_goes(both, family):
    """`ip route add` and `del` of a prefix by a gateway (ip-route(8))."""
    host = HOST[family]
    for _ in range(3):
        both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)}"))
        both.agree("route added", {host: "wan"})
        both.ip(line(family, f"route del {NET[family]}"))
        both.agree("route deleted", {host: "no route"})


def test_a_route_by_an_interface_alone(both, family):
    """The hosts of a route without a gateway are neighbors on its link (ip-route(8), `dev`)."""
    host = HOST[family]
    both.answer("ext", host)
    for _ in range(3):
        both.ip(line(family, f"route add {NET[family]} dev ext0"))
        both.agree("interface route added", {host: "ext"})
        both.ip(line(family, f"route del {NET[family]} dev ext0"))
        both.agree("interface route deleted", {host: "no route"})


def test_an_interface_route_inside_a_route_of_zebra(both, family):
    """A more specific route of the operator is used beside a wider route of zebra."""
    host = HOST[family]
    wide = {4: "198.51.0.0/16", 6: "2001:db8:f000::/36"}[family]
    aside = {4: "198.51.7.9", 6: "2001:db8:f700::9"}[family]
    both.answer("ext", host)
    both.zebra(wide, "wan")
    both.ip(line(family, f"route add {NET[family]} dev ext0"))
    both.agree("interface route added", {host: "ext", aside: "wan"})
    both.ip(line(family, f"route del {NET[family]} dev ext0"))
    both.agree("interface route deleted", {host: "wan", aside: "wan"})


def test_an_operators_route_takes_the_place_of_zebras_and_gives_it_back(both, family):
    """Zebra installs its routes with metric 20. In IPv4 a route of metric 0 is preferred to it; in
    IPv6 the kernel gives a route without a metric 1024, and zebra's stays in force."""
    net, host = NET[family], HOST[family]
    both.zebra(net, "wan")
    both.ip()
    both.agree("zebra's route", {host: "wan"})
    for _ in range(3):
        both.ip(line(family, f"route add {net} {via(both, 'ext', family)}"))
        both.agree("route beside zebra's", {host: "ext" if family == 4 else "wan"})
        both.ip(line(family, f"route del {net} {via(both, 'ext', family)}"))
        both.agree("route beside zebra's deleted", {host: "wan"})


def test_an_interface_route_takes_the_place_of_zebras(both, family):
    """A route by an interface alone, with a metric that is better than zebra's, replaces zebra's route."""
    net, host = NET[family], HOST[family]
    both.answer("ext", host)
    both.zebra(net, "wan")
    both.ip(line(family, f"route add {net} dev ext0 metric 5"))
    both.agree("route beside zebra's", {host: "ext"})
    both.ip(line(family, f"route del {net} dev ext0"))
    both.agree("route beside zebra's deleted", {host: "wan"})


def test_zebras_route_comes_and_goes_below_an_operators(both, family):
    """Zebra withdraws its route while an operator's route is in force, and announces it again."""
    net, host = NET[family], HOST[family]
    both.zebra(net, "wan")
    both.ip(line(family, f"route add {net} {via(both, 'ext', family)} metric 7"))
    both.agree("route beside zebra's", {host: "ext"})
    both.zebra_drops(net)
    both.agree("zebra's route withdrawn", {host: "ext"})
    both.zebra(net, "alt")
    both.agree("zebra's route", {host: "ext"})
    both.ip(line(family, f"route del {net} metric 7"))
    both.agree("route beside zebra's deleted", {host: "alt"})


@pytest.mark.parametrize("metric", [19, 21])
def test_the_lower_metric_counts_between_zebra_and_the_operator(both, family, metric):
    """Zebra's metric in the kernel is 20: an operator's route of metric 19 counts before zebra's route,
    and a route of metric 21 counts after it, when zebra has withdrawn its route."""
    net, host = NET[family], HOST[family]
    both.zebra(net, "wan")
    both.ip(line(family, f"route add {net} {via(both, 'ext', family)} metric {metric}"))
    both.agree("route beside zebra's", {host: "ext" if metric < 20 else "wan"})
    both.zebra_drops(net)
    both.agree("zebra's route withdrawn", {host: "ext"})


def test_several_metrics_of_one_prefix(both, family):
    """The route of the lowest metric counts. While this route is deleted, the next one counts."""
    net, host = NET[family], HOST[family]
    for name, metric in (("alt", 300), ("wan", 100), ("ext", 200)):
        text = f"route add {net} {via(both, name, family)} metric {metric}"
        both.ip(line(family, text))
    both.agree("metric added", {host: "wan"})
    for _ in range(3):
        both.ip(line(family, f"route del {net} metric 100"))
        both.agree("best metric deleted", {host: "ext"})
        both.ip(line(family, f"route add {net} {via(both, 'wan', family)} metric 100"))
        both.agree("best metric added", {host: "wan"})
    both.ip(line(family, f"route del {net} metric 200"))
    both.agree("other metric deleted", {host: "wan"})
    both.ip(line(family, f"route del {net} metric 100"))
    both.agree("best metric deleted", {host: "alt"})


def test_prepend_append_and_replace(both):
    """Among IPv4 routes of one metric the first counts: `add` and `prepend` put a route before the
    others, `append` behind them, and `replace` takes the place of the first (fib_trie.c)."""
    net, host = NET[4], HOST[4]
    both.ip(f"route add {net} {via(both, 'wan', 4)}")
    both.ip(f"route append {net} {via(both, 'alt', 4)}")
    both.agree("appended", {host: "wan"})
    both.ip(f"route prepend {net} {via(both, 'ext', 4)}")
    both.agree("prepended", {host: "ext"})
    both.answer("lan", "192.0.2.3")
    both.ip(f"route replace {net} via 192.0.2.3 dev lan0")
    both.agree("replaced", {host: "lan"})
    both.ip(f"route del {net} via 192.0.2.3 dev lan0")
    both.agree("first deleted", {host: "wan"})
    both.ip(f"route del {net} {via(both, 'wan', 4)}")
    both.agree("first deleted", {host: "alt"})


def test_routes_of_several_protocols_keep_their_order(both):
    """When a link goes down, our router reads the routes of each protocol by a request of its own. The
    answers do not show the order of routes of several protocols."""
    net, host = NET[4], HOST[4]
    both.ip(f"route add {net} {via(both, 'wan', 4)} proto static", f"route append blackhole {net}")
    both.ip(f"route prepend {net} {via(both, 'alt', 4)} proto bird")
    both.agree("prepended", {host: "alt"})
    before = both.ours.control.ask("kernel")[0]["dumps"]
    both.ip("link set ext0 down", f"route add {FENCE} {via(both, 'wan', 4)}")
    eventually(lambda: both.ours.control.ask("kernel")[0]["dumps"] >= before + 14, 5, 0.02)
    both.agree("link down", {"10.8.0.9": "wan", host: "alt"})
    both.ip(f"route del {net} {via(both, 'alt', 4)}")
    both.agree("first deleted", {host: "wan"})
    both.ip(f"route del {net} {via(both, 'wan', 4)}")
    both.agree("first deleted", {host: "nothing"})


def test_routes_of_the_same_next_hops_in_another_order_are_several(both):
    """Linux compares the next hops of IPv4 routes in their order (fib_find_info()): the appended route
    is another route, and the first one stays in force."""
    net, host = NET[4], HOST[4]
    two = [f"nexthop {via(both, name, 4)}" for name in ("wan", "alt")]
    both.alike = {"alt": "wan"}
    both.ip(f"route add {net} {two[0]} {two[1]}", f"route append {net} {via(both, 'ext', 4)}")
    both.agree("appended", {host: "wan"})
    both.ip(f"route append {net} {two[1]} {two[0]}")
    both.ip(f"route add {FENCE} {via(both, 'ext', 4)}")
    both.agree("appended", {"10.8.0.9": "ext", host: "wan"})
    both.ip(f"route del {net} {two[0]} {two[1]}")
    both.agree("first deleted", {host: "ext"})
    both.ip(f"route del {net} {via(both, 'ext', 4)}")
    both.agree("first deleted", {host: "wan"})


def test_routes_of_the_same_next_hop_and_other_metrics_are_several(both):
    """A route with an MSS and a route without one are two routes of IPv4 (fib_find_info()). The second
    one moves no other route when it is appended, and leaves the first one when it is deleted."""
    net, host = NET[4], HOST[4]
    both.ip(f"route add {net} {via(both, 'wan', 4)}", f"route append {net} {via(both, 'ext', 4)}")
    both.agree("appended", {host: "wan"})
    both.ip(f"route append {net} {via(both, 'wan', 4)} advmss 1400")
    both.ip(f"route add {FENCE} {via(both, 'ext', 4)}")
    both.agree("appended", {"10.8.0.9": "ext", host: "wan"})
    both.ip(f"route del {net} {via(both, 'wan', 4)} advmss 1400", f"route del {FENCE}")
    both.agree("appended route deleted", {"10.8.0.9": "no route", host: "wan"})
    both.ip(f"route del {net} {via(both, 'wan', 4)}")
    both.agree("first deleted", {host: "ext"})


def test_replace_of_an_ipv6_route(both):
    """`ip -6 route replace` replaces the route with the same metric, with all its next hops."""
    net, host = NET[6], HOST[6]
    both.ip(f"-6 route add {net} {via(both, 'wan', 6)}")
    both.agree("route added", {host: "wan"})
    for name in ("ext", "alt", "wan"):
        both.ip(f"-6 route replace {net} {via(both, name, 6)}")
        both.agree("replaced", {host: name})


def test_a_next_hop_that_is_appended_to_an_ipv6_route(both):
    """IPv6 routes of one metric with gateways are one route with several next hops. One of them is
    deleted, and the other carries on."""
    net = NET[6]
    both.ip(f"-6 route add {net} {via(both, 'wan', 6)}")
    both.ip(f"-6 route append {net} {via(both, 'ext', 6)}")
    spread(both, 6, {"wan": 1, "ext": 1})
    both.ip(f"-6 route del {net} {via(both, 'ext', 6)}")
    both.agree("next hop deleted", {HOST[6]: "wan"})
    both.ip(f"-6 route append {net} {via(both, 'alt', 6)}")
    both.ip(f"-6 route del {net} {via(both, 'wan', 6)}")
    both.agree("next hop deleted", {HOST[6]: "alt"})


@pytest.mark.parametrize("between, fate", [("dev alt0", "alt"), ("unreachable", "no route")])
def test_a_route_between_two_next_hops_of_another(both, between, fate):
    """Linux keeps IPv6 routes of one metric in a list, and obeys the first. A joined route has the place
    of its first next hop: when this next hop is deleted, a route behind it can be the first
    (fib6_add_rt2node())."""
    net, host = NET[6], HOST[6]
    both.answer("alt", host)
    both.ip(f"-6 route add {net} {via(both, 'wan', 6)} metric 9")
    both.ip(f"-6 route append {f'{net} {between}' if 'dev' in between else f'{between} {net}'} metric 9")
    both.ip(f"-6 route append {net} {via(both, 'ext', 6)} metric 9")
    both.ip(f"-6 route del {net} {via(both, 'wan', 6)} metric 9")
    both.agree("first next hop deleted", {host: fate})
    both.ip(f"-6 route del {f'{net} {between}' if 'dev' in between else f'{between} {net}'} metric 9")
    both.agree("route between next hops deleted", {host: "ext"})


@pytest.mark.parametrize(
    "kind, fate",
    [("unreachable", "unreachable"), ("prohibit", "prohibited"), ("blackhole", "nothing")],
)
def test_a_route_that_refuses(both, family, kind, fate):
    """unreachable, prohibit and blackhole inside a wider route (ip-route(8))."""
    wide, (host, aside) = WIDE[family], HOSTS[family]
    inside = {4: "10.8.0.0/24", 6: "2001:db8:e000::/48"}[family]
    if (family, kind) == (6, "unreachable"):
        fate = "no route"  # code 0
    both.ip(line(family, f"route add {wide} {via(both, 'wan', family)}"))
    both.ip(line(family, f"route add {kind} {inside}"))
    both.agree(f"{kind} added", {host: fate, aside: "wan"})
    both.ip(line(family, f"route del {kind} {inside}"))
    both.agree(f"{kind} deleted", {host: "wan", aside: "wan"})


HOSTS = {4: ("10.8.0.9", "10.8.1.9"), 6: ("2001:db8:e000::9", "2001:db8:e001::9")}


@pytest.mark.parametrize("kind", ["broadcast", "multicast", "nat", "xresolve"])
def test_ipv6_routes_of_other_types_forward(both, kind):
    """Linux treats IPv6 routes of these types as unicast routes (ip6_route_info_create())."""
    both.ip(f"-6 route add {kind} {NET[6]} {via(both, 'wan', 6)} table main")
    both.agree("route of a type added", {HOST[6]: "wan"})
    both.ip(f"-6 route del {kind} {NET[6]} {via(both, 'wan', 6)} table main")
    both.agree("route of a type deleted", {HOST[6]: "no route"})


@pytest.mark.parametrize("table", ["main", "local"])
def test_an_ipv4_route_of_type_multicast_drops(both, table):
    """Packets of an IPv4 route of the type multicast are dropped without an error
    (ip_route_input_slow())."""
    both.ip(f"route add default {via(both, 'wan', 4)}")
    both.ip(f"route add multicast {NET[4]} dev ext0 table {table}")
    both.agree("route of a type added", {HOST[4]: "nothing"})
    both.ip(f"route del multicast {NET[4]} dev ext0 table {table}")
    both.agree("route of a type deleted", {HOST[4]: "wan"})


def test_a_route_of_type_throw_ends_the_lookup_in_its_table(both):
    """A packet of a throw route has no route when no further table has one."""
    both.ip(f"route add 10.8.0.0/16 {via(both, 'wan', 4)}")
    both.ip("route add throw 10.8.0.0/24")
    both.agree("throw added", {"10.8.0.9": "no route", "10.8.1.9": "wan"})
    both.ip("route del throw 10.8.0.0/24")
    both.agree("throw deleted", {"10.8.0.9": "wan", "10.8.1.9": "wan"})


def test_throw_in_table_local(both):
    """An IPv6 route of type throw in table local leaves the packet to main."""
    both.ip(f"-6 route add default {via(both, 'wan', 6)}")
    both.ip(f"-6 route add throw {NET[6]} table local")
    both.agree("throw added", {HOST[6]: "wan"})
    both.ip(f"-6 route add {NET[6]} {via(both, 'ext', 6)}")
    both.agree("route added", {HOST[6]: "ext"})


@pytest.mark.parametrize(
    "kind, fate",
    [("unreachable", "no route"), ("prohibit", "prohibited"), ("blackhole", "nothing")],
)
def test_a_route_that_refuses_in_table_local(both, kind, fate):
    """IPv6 asks table local first: its route refuses packets that main has a longer prefix for,
    except where a route of type throw in table local is longer still."""
    both.ip(f"-6 route add 2001:db8:e000::/64 {via(both, 'wan', 6)}")
    both.ip(f"-6 route add {kind} 2001:db8:e000::/40 table local")
    both.agree(f"{kind} added", {"2001:db8:e000::9": fate, "2001:db8:e001::9": fate})
    both.ip("-6 route add throw 2001:db8:e000::/56 table local")
    both.agree("throw added", {"2001:db8:e000::9": "wan", "2001:db8:e001::9": fate})
    both.ip(f"-6 route del {kind} 2001:db8:e000::/40 table local")
    both.agree(f"{kind} deleted", {"2001:db8:e001::9": "no route"})


def test_an_ipv4_route_over_an_ipv6_gateway(both):
    """RTA_VIA: an IPv4 prefix by an IPv6 neighbor (RFC 8950)."""
    for _ in range(3):
        both.ip(f"route add {NET[4]} via inet6 {peer(both, 'ext', 6)} dev ext0")
        both.agree("route over IPv6 added", {HOST[4]: "ext"})
        both.ip(f"route del {NET[4]}")
        both.agree("route deleted", {HOST[4]: "no route"})


@pytest.mark.parametrize("data", ["ip id 1 dst 192.0.2.99", "ip6 id 1 dst 2001:db8:1::99"])
def test_encapsulation_for_a_tunnel_device_on_another_device(both, family, data):
    """A lightweight tunnel of type ip or ip6 gives data to a tunnel device in mode `external`
    (ip-route(8), `encap`). On another device Linux forwards the packet as it is: by a route, by one
    of several next hops, by a next-hop object."""
    net, host = NET[family], HOST[family]
    both.ip(line(family, f"route add {net} encap {data} {via(both, 'wan', family)}"))
    both.agree("encap added", {host: "wan"})
    both.ip(line(family, f"route del {net}"))
    hops = f"nexthop {via(both, 'wan', family)} nexthop encap {data} {via(both, 'ext', family)}"
    both.ip(line(family, f"route add {net} {hops}"))
    spread(both, family, {"wan": 1, "ext": 1}, 3000)
    both.ip(
        line(family, f"route del {net}"),
        f"nexthop add id 78 encap {data} {via(both, 'alt', family)}",
        line(family, f"route add {net} nhid 78"),
    )
    both.agree("encap of an id added", {host: "alt"})


def test_a_multipath_route_over_both_families(both):
    """An IPv4 route with one IPv4 and one IPv6 gateway uses both."""
    both.ip(
        f"route add {NET[4]} nexthop via {peer(both, 'wan', 4)} dev wan0"
        f" nexthop via inet6 {peer(both, 'ext', 6)} dev ext0"
    )
    spread(both, 4, {"wan": 1, "ext": 1})


def test_the_mtu_of_a_route(both, family):
    """A packet larger than the `mtu` of its route gets an error. A packet of this size passes."""
    host = HOST[family]
    df = {"flags": "DF"} if family == 4 else {}
    mtu = 1300
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)} mtu lock {mtu}"))
    both.agree("route added", {host: "wan"}, size=mtu, **df)
    both.agree("route added", {host: "too big"}, size=mtu + 10, **df)
    both.ip(line(family, f"route replace {NET[family]} {via(both, 'wan', family)}"))
    both.agree("replaced", {host: "wan"}, size=mtu + 10, **df)


def test_the_mtu_of_a_route_above_that_of_its_device(both, family):
    """The smaller MTU counts: a packet above it gets an error. Linux gives a packet up to the MTU of
    the route to the device (here a veth, which sends it), except by an IPv6 route without `lock`."""
    host, df = HOST[family], {"flags": "DF"} if family == 4 else {}
    both.ip("link set wan0 mtu 1400")
    try:
        for lock, linux in (("lock", "wan"), ("", "wan" if family == 4 else "too big")):
            route = f"{NET[family]} {via(both, 'wan', family)} mtu {lock} 9000"
            both.ip(line(family, f"route replace {route}"))
            both.agree("route added", {host: "wan"}, size=1400, **df)
            # The MTU of the device comes by another thread than the route.
            eventually(lambda: both.fate(both.ours, host, size=1480, **df) == "too big", 5, 0.01)
            assert both.fate(both.linux, host, size=1480, **df) == linux
    finally:
        both.ip("link set wan0 mtu 1500")


def test_flush_of_everything(both, family):
    """`ip route flush` deletes all routes of main, connected subnets as well. Own addresses stay,
    because they are in table local."""
    host, wan = HOST[family], both.ours.wires["wan"]
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)}"))
    both.agree("route added", {host: "wan", wan.peer(family): "wan"})
    # Without this route the Linux router could not send errors to lan.
    keep = line(family, f"route add {wide_of_lan(family)} dev lan0")
    both.ip(line(family, "route flush table main"), keep)
    both.agree(
        "all flushed", {host: "no route", wan.peer(family): "no route", wan.own(family): "local"}
    )
    for router in both.both:  # so that the next test gets its subnets back
        router.ip(*(f"addr flush dev {w.tap} scope global" for w in router.wires.values()))
    both.fates = {}


def test_two_hundred_routes_at_once(both, family):
    """A batch of many routes is in force, and then it is gone."""
    nets = {
        4: [f"10.{n}.0.0/16" for n in range(1, 201)],
        6: [f"2001:db8:{0x1000 + n:x}::/48" for n in range(1, 201)],
    }[family]
    fates = {str(ipaddress.ip_network(n)[9]): "wan" for n in (nets[0], nets[99], nets[-1])}
    both.ip(*(line(family, f"route add {n} {via(both, 'wan', family)}") for n in nets))
    both.agree("200 routes added", fates)
    both.ip(line(family, "route flush proto boot"))
    both.agree("200 routes flushed", dict.fromkeys(fates, "no route"))


def test_a_gateway_that_is_on_link_by_word(both, family):
    """`onlink`: the gateway is a neighbor on the link, whatever the subnets say."""
    gateway = {4: "203.0.113.77", 6: "2001:db8:abcd::77"}[family]
    both.answer("ext", gateway)
    both.ip(line(family, f"route add {NET[family]} via {gateway} dev ext0 onlink"))
    both.agree("route added", {HOST[family]: "ext"})


def test_the_weights_of_a_multipath_route(both, family):
    """A route with several next hops of its own: flows spread by their weights, and `replace` takes
    the place of all of them."""
    hops = [f"nexthop {via(both, n, family)} weight {w}" for n, w in (("wan", 3), ("ext", 1))]
    both.ip(line(family, f"route add {NET[family]} {' '.join(hops)}"))
    spread(both, family, {"wan": 3, "ext": 1})
    hops = [f"nexthop {via(both, n, family)} weight {w}" for n, w in (("alt", 1), ("ext", 1))]
    both.ip(line(family, f"route replace {NET[family]} {' '.join(hops)}"))
    spread(both, family, {"alt": 1, "ext": 1})
    both.ip(line(family, f"route replace {NET[family]} {via(both, 'wan', family)}"))
    both.agree("replaced", {HOST[family]: "wan"})


def test_a_route_of_200_next_hops_uses_all(both):
    """Flows leave by each of 200 gateways of one route, in Linux and in ours, and none is lost."""
    gates = {f"10.9.8.{n}": f"02:00:00:00:08:{n:02x}" for n in range(2, 202)}
    both.ip("addr add 10.9.8.1/24 dev ext0")
    both.ip(*(f"neigh replace {g} lladdr {mac} dev ext0" for g, mac in gates.items()))
    known = lambda: {r["address"] for r in both.ours.control.ask("neighbors") if r["mac"]}  # noqa: E731
    eventually(lambda: gates.keys() <= known(), 5, 0.01, "all gateways are known")
    words = " ".join(f"nexthop via {gate} dev ext0" for gate in gates).split()
    for router in both.both:
        netns.command(["ip", "-n", router.ctl, "route", "add", NET[4], *words])
        lan, ext = router.wires["lan"], router.wires["ext"]
        eventually(lambda r=router: both.fate(r, HOST[4]) == "ext", 5, 0.01)
        ext.clear()
        probes = lan.flow_frames(HOST[4], [(1024 + n, 7) for n in range(9000)])
        for at in range(0, len(probes), 250):
            lan.send(*probes[at : at + 250])
            router.fence(lan)
        left = Counter(d[:6].hex(":") for d in ext.got() if token_of(d))
        assert left.total() == len(probes) and set(left) == set(gates.values())


def test_a_link_of_a_multipath_route_is_set_down_and_up(both, family):
    """The flows of a link that is set down go by the other next hop."""
    hops = [f"nexthop {via(both, n, family)}" for n in ("wan", "ext")]
    both.ip(line(family, f"route add {NET[family]} {' '.join(hops)}"))
    spread(both, family, {"wan": 1, "ext": 1})
    both.ip("link set ext0 down")
    for port in range(20):
        both.agree("link down", {HOST[family]: "wan"}, sport=5000 + port)
    both.ip("link set ext0 up")
    both.linux.kernel_defaults()
    both.ours.kernel_defaults()  # the kernel forgets the neighbors of a link that is down
    spread(both, family, {"wan": 1, "ext": 1})
    both.fates = {}


def test_the_last_address_of_a_link_of_a_multipath_route_is_deleted(both):
    """Linux then marks the next hops by this link as dead, without a message, until the link gets an
    address or comes up. It uses the next hops of routes that are added meanwhile."""
    ext, later, single = both.ours.wires["ext"], "203.0.113.201", "203.0.113.202"
    neighbor = f"neigh replace {ext.peer4} lladdr {ext.mac} dev ext0 nud permanent"
    hops = f"nexthop {via(both, 'wan', 4)} nexthop {via(both, 'ext', 4)}"
    by_ipv6 = hops.replace(f"via {ext.peer4}", f"via inet6 {ext.peer6}")

    def uses(dst, names):
        """Assert that the flows to `dst` leave by these wires."""
        for router in both.both:
            eventually(lambda r=router: used(r, dst) == names, 5, 0.02, f"{dst} by {names}")

    def used(router, dst):
        return {both.fate(router, dst, sport=6000 + n) for n in range(40)}

    both.ip(f"route add {NET[4]} {hops}")
    uses(HOST[4], {"wan", "ext"})
    both.ip(f"addr del {ext.ip4}/26 dev ext0", neighbor)
    uses(HOST[4], {"wan"})
    both.ip(f"addr add {ext.ip4}/26 dev ext0", neighbor)
    uses(HOST[4], {"wan", "ext"})
    both.ip(f"addr del {ext.ip4}/26 dev ext0", neighbor, f"route add {later} {by_ipv6}")
    uses(HOST[4], {"wan"})
    uses(later, {"wan", "ext"})
    both.audit()
    both.ip(f"route add {single} via inet6 {ext.peer6} dev ext0")
    both.agree("route added", {single: "ext"})
    both.ip("link set ext0 down")
    both.agree("link down", {single: "no route"})  # a dump has shown this
    uses(HOST[4], {"wan"})
    both.ip("link set ext0 up", neighbor)
    uses(HOST[4], {"wan", "ext"})
    both.ip(f"route del {later}", f"addr add {ext.ip4}/26 dev ext0", f"addr del {ext.ip4}/26 dev ext0")
    both.ip(f"route del {NET[4]}")
    both.agree("route with a dead next hop deleted", {HOST[4]: "no route", later: "no route"})


def test_a_resilient_group(both):
    """A group of type resilient forwards by its members."""
    both.ip(f"nexthop add id 1 {via(both, 'wan', 4)}", f"nexthop add id 2 {via(both, 'alt', 4)}")
    both.ip("nexthop add id 10 group 1,3/2,1 type resilient buckets 128")
    both.ip(f"route add {NET[4]} nhid 10")
    for router in both.both:
        eventually(lambda r=router: both.fate(r, HOST[4]) in ("wan", "alt"), 2, 0.02)
        seen = {both.fate(router, HOST[4], sport=6000 + n) for n in range(60)}
        assert seen == {"wan", "alt"}
    both.ip("nexthop del id 2")
    both.agree("member deleted", {HOST[4]: "wan"})


def test_weights_of_sixteen_bits_are_obeyed_and_audit_finds_no_difference(both):
    """Groups of Linux 6.12 have weights of 16 bits. The kernel's routes, and so `ip route`, show
    the low eight bits of weight - 1."""
    both.ip(f"nexthop add id 1 {via(both, 'wan', 4)}", f"nexthop add id 2 {via(both, 'alt', 4)}")
    members = struct.pack("=IBBHIBBH", 1, 999 & 255, 999 >> 8, 0, 2, 332 & 255, 332 >> 8, 0)
    body = bytes(8) + fpm.attr(fpm.NHA_ID, 10) + fpm.attr(fpm.NHA_GROUP, members)
    create = 0x605  # NLM_F_REQUEST, _ACK, _EXCL, _CREATE
    head = struct.pack("=IHHII", 16 + len(body), fpm.RTM_NEWNEXTHOP, create, 1, 0)
    for router in both.both:
        with netns.open_socket(router.ctl, socket.AF_NETLINK, socket.SOCK_RAW) as sock:
            sock.send(head + body)
            (error,) = struct.unpack_from("=i", sock.recv(4096), 16)
        if error == -errno.EINVAL:
            pytest.skip("weights of 16 bits need Linux 6.12")
        assert error == 0
    both.ip(f"route add {NET[4]} nhid 10")
    spread(both, 4, {"wan": 1000, "alt": 333})
    both.audit()


def test_routes_by_an_object_that_is_a_blackhole_are_equal_in_the_audit(both):
    """Linux reports such a route with the type blackhole, also in a table that no packet asks."""
    both.ip("nexthop add id 5 blackhole", f"route add {NET[4]} nhid 5", f"route add {NET[4]} table 77 nhid 5")
    both.agree("added", {HOST[4]: "nothing"})
    both.audit()


def test_a_table_without_a_rule_is_not_asked(both, family):
    """Routes of a table that no rule names have no effect."""
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)} table 77"))
    both.agree("route of another table", {HOST[family]: "no route"})
    both.ip(line(family, f"route add default {via(both, 'ext', family)}"))
    both.agree("route added", {HOST[family]: "ext"})
    both.ip(line(family, "route flush table 77"))


@pytest.mark.parametrize("proto", ["babel", "bgp", "ospf", "zebra", "196"])
def test_a_route_with_a_protocol_number_of_frr(both, family, proto):
    """zebra installs its routes with metric 20. A route with a protocol number of FRR and another
    metric is that of another program, such as babeld, or of an operator, and counts as in Linux."""
    host, words = HOST[family], f"{NET[family]} proto {proto}"
    for metric in (19, 1024):
        both.ip(line(family, f"route add {words} {via(both, 'wan', family)} metric {metric}"))
        both.agree("route of a protocol of FRR", {host: "wan"})
        both.ip(line(family, f"route replace {words} {via(both, 'ext', family)} metric {metric}"))
        both.agree("route of a protocol of FRR replaced", {host: "ext"})
        both.ip(line(family, f"route del {words} metric {metric}"))
        both.agree("route of a protocol of FRR deleted", {host: "no route"})
    if proto == "bgp":  # This route stays. The fixture checks it again after a dump.
        both.ip(line(family, f"route add {words} {via(both, 'wan', family)} metric 21"))
        both.agree("route of a protocol of FRR", {host: "wan"})


def test_a_route_is_changed(both, family):
    """`ip route change` changes the next hop in its place."""
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)} metric 30"))
    both.agree("route added", {HOST[family]: "wan"})
    both.ip(line(family, f"route change {NET[family]} {via(both, 'ext', family)} metric 30"))
    both.agree("replaced", {HOST[family]: "ext"})


def test_a_local_and_a_broadcast_address_by_hand(both):
    """A single address becomes ours, or a broadcast, by a route of table local."""
    both.ip(
        f"route add {NET[4]} {via(both, 'wan', 4)}",
        "route add local 198.51.100.7 dev lo",
        "route add broadcast 198.51.100.8 dev ext0 table local",
    )
    fates = {"198.51.100.7": "local", "198.51.100.8": "nothing", HOST[4]: "wan"}
    both.agree("AnyIP added", fates)


def test_an_unreachable_default_behind_a_better_one(both, family):
    """A default route of the worst metric refuses when the other default is deleted."""
    both.ip(
        line(family, "route add prohibit default metric 4278198272"),
        line(family, f"route add default {via(both, 'wan', family)} metric 10"),
    )
    both.agree("route added", {HOST[family]: "wan"})
    both.ip(line(family, "route del default metric 10"))
    both.agree("route deleted", {HOST[family]: "prohibited"})


def test_a_prefix_of_every_length(both, family):
    """Nested prefixes of all lengths: the longest counts."""
    bits = 32 if family == 4 else 128
    base = ipaddress.ip_address(HOST[family])
    lengths = range(8, bits + 1, 4 if family == 4 else 12)
    names = ["wan", "alt", "ext"]
    for n, length in enumerate(lengths):
        net = ipaddress.ip_network(f"{base}/{length}", strict=False)
        both.ip(line(family, f"route add {net} {via(both, names[n % 3], family)}"))
    last = len(lengths) - 1
    for n in range(last, 0, -1):
        both.agree("route deleted", {str(base): names[n % 3]})
        net = ipaddress.ip_network(f"{base}/{lengths[n]}", strict=False)
        both.ip(line(family, f"route del {net}"))
    both.agree("route deleted", {str(base): names[0]})


# --- next-hop objects -------------------------------------------------------------------------


def test_a_next_hop_id_made_by_hand(both, family):
    """`ip nexthop add id` and a route that names it, which the operator replaces and deletes. The
    kernel deletes the routes of an id with it, those of IPv4 without a message."""
    net, host = NET[family], HOST[family]
    for _ in range(3):
        both.ip(line(family, f"nexthop add id 777 {via(both, 'wan', family)}"))
        both.ip(line(family, f"route add {net} nhid 777"))
        both.agree("route of an id added", {host: "wan"})
        both.ip(line(family, f"nexthop replace id 777 {via(both, 'ext', family)}"))
        both.agree("id replaced", {host: "ext"})
        both.ip("nexthop del id 777")
        both.agree("id deleted", {host: "no route"})


def test_a_next_hop_id_that_is_a_blackhole(both, family):
    """A route of a blackhole id drops, and forwards when the id is replaced."""
    net, host = NET[family], HOST[family]
    both.ip(line(family, "nexthop add id 778 blackhole"))
    both.ip(line(family, f"route add {net} nhid 778"))
    both.agree("route of an id added", {host: "nothing"})
    both.ip(line(family, f"nexthop replace id 778 {via(both, 'wan', family)}"))
    both.agree("id replaced", {host: "wan"})


def test_a_group_made_by_hand(both, family):
    """Flows spread by the weights of a group. A changed weight, a deleted member and a deleted
    group are followed."""
    net, host = NET[family], HOST[family]
    for n, name in ((1, "wan"), (2, "alt"), (3, "ext")):
        both.ip(line(family, f"nexthop add id {n} {via(both, name, family)}"))
    both.ip("nexthop add id 10 group 1,1/2,2/3,5")
    both.ip(line(family, f"route add {net} nhid 10"))
    spread(both, family, {"wan": 1, "alt": 2, "ext": 5})
    both.ip("nexthop replace id 10 group 1,3/2,1/3,4")
    spread(both, family, {"wan": 3, "alt": 1, "ext": 4})
    both.ip("nexthop del id 3")
    spread(both, family, {"wan": 3, "alt": 1})
    both.ip("nexthop del id 2")
    both.agree("member deleted", {host: "wan"})
    both.ip("nexthop del id 1")
    both.agree("id deleted", {host: "no route"})


def test_routes_that_name_their_next_hop_object_alone(both, family):
    """With nexthop_compat_mode 0 the kernel's messages of a route name its object and no next hop. The
    router forwards by the members of the group, and its audit finds no difference."""
    both.sysctl({"net.ipv4.nexthop_compat_mode": 0})
    try:
        for n, name in ((1, "wan"), (2, "alt")):
            both.ip(line(family, f"nexthop add id {n} {via(both, name, family)}"))
        both.ip("nexthop add id 10 group 1,3/2,1", line(family, f"route add {NET[family]} nhid 10"))
        spread(both, family, {"wan": 3, "alt": 1})
        both.audit()
    finally:
        both.sysctl({"net.ipv4.nexthop_compat_mode": 1})


def test_a_member_whose_gateway_has_not_answered_carries_nothing(both, family):
    """Linux uses only the next-hop objects whose neighbors are known (nexthop_select_path()). While the
    kernel asks for a gateway, the other members carry its flows. It gets its share when it answers."""
    net, host = NET[family], HOST[family]
    gateway = {4: "192.0.2.77", 6: "2001:db8:1::77"}[family]
    setting = f"net.{'ipv6' if family == 6 else 'ipv4'}.neigh.wan0.retrans_time_ms"
    both.sysctl({setting: 5000})  # so that the gateway does not fail during the test
    try:
        both.ip(line(family, f"nexthop add id 1 via {gateway} dev wan0"))
        both.ip(line(family, f"nexthop add id 2 {via(both, 'ext', family)}"))
        both.ip("nexthop add id 10 group 1/2", line(family, f"route add {net} nhid 10"))
        for router in both.both:

            def is_asked_for():
                show = ["ip", "-n", router.ctl, "neigh", "show", "nud", "incomplete"]
                return gateway in netns.command(show)

            # Linux asks for the gateway when its hash gives it the first flow.
            next(p for p in range(3000, 3064) if both.fate(router, host, sport=p) and is_asked_for())
        both.agree("a gateway is asked for", {host: "ext"})
        for router in both.both:
            # The one packet of agree() may leave by ext although the other member carries flows, too.
            fates = lambda r=router: {both.fate(r, host, sport=sport) for sport in range(4000, 4016)}  # noqa: E731
            eventually(lambda f=fates: f() == {"ext"}, 5, 0.02, "all flows leave by ext")
            router.ip(f"neigh replace {gateway} lladdr {router.wires['wan'].mac} dev wan0")
        spread(both, family, {"wan": 1, "ext": 1})
    finally:
        both.sysctl({setting: 1000})
        both.ip(line(family, f"neigh del {gateway} dev wan0"))


def test_a_deleted_group_leaves_the_next_route(both):
    """The kernel deletes the route of a group with it, and a route of a worse metric is used."""
    net, host = NET[4], HOST[4]
    both.ip(f"nexthop add id 1 {via(both, 'wan', 4)}", f"nexthop add id 2 {via(both, 'alt', 4)}")
    both.ip("nexthop add id 10 group 1/2")
    both.ip(f"route add {net} nhid 10", f"route add {net} {via(both, 'ext', 4)} metric 50")
    spread(both, 4, {"wan": 1, "alt": 1})
    both.ip("nexthop del id 10")
    both.agree("id deleted", {host: "ext"})


def test_an_id_is_deleted_and_made_again(both, family):
    """A new id of the same number has routes of its own: the old routes do not come back."""
    net, host = NET[family], HOST[family]
    both.ip(line(family, f"nexthop add id 5 {via(both, 'wan', family)}"))
    both.ip(line(family, f"route add {net} nhid 5"))
    both.agree("route of an id added", {host: "wan"})
    both.ip("nexthop del id 5", line(family, f"nexthop add id 5 {via(both, 'ext', family)}"))
    both.agree("id deleted", {host: "no route"})
    both.ip(line(family, f"route add {net} nhid 5"))
    both.agree("route of an id added", {host: "ext"})


def test_an_id_is_replaced_behind_another_route(both, family):
    """The kernel sends the routes of an id with NLM_F_REPLACE when the id is replaced. These messages
    replace no other route: the route before them stays in force. When it is deleted, the route of the
    id is used."""
    net, host = NET[family], HOST[family]
    first = "unreachable" if family == 6 else ""  # not joined with the route of the id
    gateway = "" if family == 6 else via(both, "wan", family)
    fate = "no route" if family == 6 else "wan"
    both.ip(line(family, f"route add {first} {net} {gateway} metric 20"))
    for proto in ("bgp", "boot"):  # bgp: as a route of zebra, which FPM has
        both.ip(line(family, f"nexthop replace id 5 {via(both, 'alt', family)}"))
        both.ip(line(family, f"route append {net} nhid 5 metric 20 proto {proto}"))
        both.agree("route of an id appended", {host: fate})
        both.ip(line(family, f"nexthop replace id 5 {via(both, 'ext', family)}"))
        both.ip(line(family, f"route add {WIDE[family]} {via(both, 'ext', family)}"))
        both.agree("id replaced", {HOSTS[family][0]: "ext", host: fate})
        both.ip(line(family, f"route del {WIDE[family]}"))
        if proto == "bgp":
            both.ip(line(family, f"route del {net} nhid 5 metric 20 proto bgp"))
            both.agree("route of an id deleted", {host: fate})
    both.ip(line(family, f"route del {first} {net} {gateway} metric 20"))
    both.agree("first deleted", {host: "ext"})


def test_the_link_of_an_id_goes_down(both):
    """The kernel deletes the ids of a link that is set down, and their routes."""
    net, host = NET[4], HOST[4]
    both.ip(f"nexthop add id 5 {via(both, 'wan', 4)}", f"route add {net} nhid 5")
    both.agree("route of an id added", {host: "wan"})
    both.ip("link set wan0 down")
    both.agree("link down", {host: "no route"})
    both.ip("link set wan0 up")
    both.agree("link up", {host: "no route"})


# --- VRFs -------------------------------------------------------------------------------------


def test_the_tables_of_vrfs(both, family):
    """The kernel's routes of a VRF's table are in force for the VRF's interfaces, and routes of
    main are not (Linux, Documentation/networking/vrf.rst)."""
    if not netns.can_have("vrf table 100"):
        pytest.skip("this kernel has no VRFs")
    net, host = NET[family], HOST[family]
    both.ip("link add red type vrf table 100", "link set red up")
    try:
        for name in ("lan", "wan", "ext"):
            both.ip(f"link set {name}0 master red")
        both.linux.kernel_defaults()
        both.ours.kernel_defaults()
        both.ip(line(family, f"route add {net} {via(both, 'alt', family)}"))
        both.ip(line(family, f"route add table 100 {net} {via(both, 'wan', family)}"))
        both.agree("route of a VRF added", {host: "wan"})
        both.ip(line(family, f"route add table 100 {net} {via(both, 'ext', family)} metric 5"))
        both.agree("route of a VRF added", {host: "ext" if family == 6 else "wan"})
        both.ip(line(family, f"route flush table 100 proto boot"))
        both.agree("routes of a VRF flushed", {host: "no route"})
    finally:
        both.ip("link del red")
        both.fates = {}


# --- time -------------------------------------------------------------------------------------


def test_changes_are_in_force_within_100_ms(routers):
    """The median of the times that packets took to show a change is below 100 ms, for each kind of
    change that was made at least three times."""
    judge(routers)
