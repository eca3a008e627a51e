# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel of the control namespace is told of routes and addresses, our router obeys as a
Linux router of equal configuration does: packets show it."""

import ipaddress
import json
import statistics
import time
from collections import Counter

import pytest
from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6ND_RA,
    ICMPv6NDOptPrefixInfo,
    IPv6,
)
from scapy.layers.l2 import Ether

from lib import netns
from lib.wait import eventually
from pair import pair
from wire import token_of

NET = {4: "198.51.100.0/24", 6: "2001:db8:f000::/48"}
HOST = {4: "198.51.100.9", 6: "2001:db8:f000::9"}
# A prefix of which a test has a part, an address in that part, and an address outside of it.
WIDE = {4: "10.8.0.0/16", 6: "2001:db8:e000::/40"}


@pytest.fixture(scope="module")
def routers(possible):
    """Both routers. The median of each kind of change is printed and judged at the end."""
    with pair("k") as made:
        yield made
        medians = made.medians()
        for kind, seconds in sorted(medians.items()):
            print(f"{kind}: {seconds * 1000:.1f} ms, median of {len(made.took[kind])}")


@pytest.fixture
def both(routers):
    """Both routers in their standard state. Afterwards a new dump must change nothing."""
    routers.clean()
    yield routers
    routers.same_after_a_dump()


def line(family, text):
    """Return a command of `ip` for a family."""
    return f"-6 {text}" if family == 6 else text


def peer(both, name, family):
    """Return the address of the neighbor on a wire."""
    return both.ours.wires[name].peer(family)


def via(both, name, family):
    """Return the words of a route by the neighbor of a wire."""
    return f"via {peer(both, name, family)} dev {name}0"


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
    """The same by a route of an interface alone, with a metric that is better than zebra's."""
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
    """Zebra's metric in the kernel is 20: an operator's route of metric 19 is before it, one of 21
    behind it. The latter takes over when zebra withdraws its route."""
    net, host = NET[family], HOST[family]
    both.zebra(net, "wan")
    both.ip(line(family, f"route add {net} {via(both, 'ext', family)} metric {metric}"))
    both.agree("route beside zebra's", {host: "ext" if metric < 20 else "wan"})
    both.zebra_drops(net)
    both.agree("zebra's route withdrawn", {host: "ext"})


def test_several_metrics_of_one_prefix(both, family):
    """The route of the lowest metric counts. When it is deleted, the next one does, and it is back
    when it is added again."""
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
    both.ip(f"route replace {net} via 192.0.2.3 dev lan0")
    both.answer("lan", "192.0.2.3")
    both.agree("replaced", {host: "lan"})
    both.ip(f"route del {net} via 192.0.2.3 dev lan0")
    both.agree("first deleted", {host: "wan"})
    both.ip(f"route del {net} {via(both, 'wan', 4)}")
    both.agree("first deleted", {host: "alt"})


def test_replace_of_an_ipv6_route(both):
    """`ip -6 route replace` takes the place of the route of the same metric and of its next
    hops."""
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


@pytest.mark.parametrize(
    "kind, fate",
    [("unreachable", "unreachable"), ("prohibit", "prohibited"), ("blackhole", "nothing")],
)
def test_a_route_that_refuses(both, family, kind, fate):
    """unreachable, prohibit and blackhole inside a wider route (ip-route(8))."""
    wide, (host, aside) = WIDE[family], HOSTS[family]
    inside = {4: "10.8.0.0/24", 6: "2001:db8:e000::/48"}[family]
    if (family, kind) == (6, "unreachable"):
        # Linux sends code 0 (no route), our router code 3 (address unreachable): see behavior.md.
        both.alike, fate = {"unreachable": "no route"}, "no route"
    both.ip(line(family, f"route add {wide} {via(both, 'wan', family)}"))
    both.ip(line(family, f"route add {kind} {inside}"))
    both.agree(f"{kind} added", {host: fate, aside: "wan"})
    both.ip(line(family, f"route del {kind} {inside}"))
    both.agree(f"{kind} deleted", {host: "wan", aside: "wan"})


HOSTS = {4: ("10.8.0.9", "10.8.1.9"), 6: ("2001:db8:e000::9", "2001:db8:e001::9")}


def test_a_route_of_type_throw_ends_the_lookup_in_its_table(both):
    """A packet of a throw route has no route when no further table has one."""
    both.ip(f"route add 10.8.0.0/16 {via(both, 'wan', 4)}")
    both.ip("route add throw 10.8.0.0/24")
    both.agree("throw added", {"10.8.0.9": "no route", "10.8.1.9": "wan"})
    both.ip("route del throw 10.8.0.0/24")
    both.agree("throw deleted", {"10.8.0.9": "wan", "10.8.1.9": "wan"})


def test_an_ipv4_route_over_an_ipv6_gateway(both):
    """RTA_VIA: an IPv4 prefix by an IPv6 neighbor (RFC 8950)."""
    for _ in range(3):
        both.ip(f"route add {NET[4]} via inet6 {peer(both, 'ext', 6)} dev ext0")
        both.agree("route over IPv6 added", {HOST[4]: "ext"})
        both.ip(f"route del {NET[4]}")
        both.agree("route deleted", {HOST[4]: "no route"})


def test_a_multipath_route_over_both_families(both):
    """An IPv4 route with one IPv4 and one IPv6 gateway uses both."""
    both.ip(
        f"route add {NET[4]} nexthop via {peer(both, 'wan', 4)} dev wan0"
        f" nexthop via inet6 {peer(both, 'ext', 6)} dev ext0"
    )
    spread(both, 4, {"wan": 1, "ext": 1})


def test_the_mtu_of_a_route(both, family):
    """A packet larger than the `mtu` of its route gets an error, and one as large passes."""
    host = HOST[family]
    df = {"flags": "DF"} if family == 4 else {}
    mtu = 1300
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)} mtu lock {mtu}"))
    both.agree("route added", {host: "wan"}, size=mtu, **df)
    both.agree("route added", {host: "too big"}, size=mtu + 10, **df)
    both.ip(line(family, f"route replace {NET[family]} {via(both, 'wan', family)}"))
    both.agree("replaced", {host: "wan"}, size=mtu + 10, **df)


def test_flush_of_everything(both, family):
    """`ip route flush` deletes all routes of main, connected subnets as well. Own addresses stay,
    because they are in table local."""
    host, wan = HOST[family], both.ours.wires["wan"]
    both.ip(line(family, f"route add {NET[family]} {via(both, 'wan', family)}"))
    both.agree("route added", {host: "wan", wan.peer(family): "wan"})
    # Without a route of its own the reference could not send errors to lan.
    keep = line(family, f"route add {wide_of_lan(family)} dev lan0")
    both.ip(line(family, "route flush table main"), keep)
    both.agree(
        "all flushed", {host: "no route", wan.peer(family): "no route", wan.own(family): "local"}
    )
    for router in both.both:  # so that the next test gets its subnets back
        router.ip(*(f"addr flush dev {w.tap} scope global" for w in router.wires.values()))
    both.fates = {}


def wide_of_lan(family):
    """Return a prefix with the neighbor of lan in it, which is no connected subnet."""
    return "192.0.2.2/32" if family == 4 else "2001:db8:4::2/128"


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


# --- next-hop objects -------------------------------------------------------------------------


def spread(both, family, weights, count=6000):
    """Assert that the flows to the host of a route spread by these weights, {wire: weight}, within
    2 % of all flows; in Linux within 5 %, because its hash is another one."""
    total = sum(weights.values())

    def share(router):
        lan, outs = router.wires["lan"], [router.wires[n] for n in weights]
        for wire in router.wires.values():
            wire.clear()
        probes = lan.flow_frames(HOST[family], [(1024 + n, 2000 + n % 13) for n in range(count)])
        for at in range(0, count, 250):
            lan.send(*probes[at : at + 250])
            router.fence(lan)
        counts = Counter(w.name for w in outs for data in w.got() if token_of(data))
        assert counts.total() == count, f"{count - counts.total()} lost"
        return {name: counts[name] / count for name in weights}

    wanted = {name: weight / total for name, weight in weights.items()}
    for router, most in ((both.linux, 0.05), (both.ours, 0.02)):

        def near(router=router, most=most):
            shares = share(router)
            far = {n: s for n, s in shares.items() if abs(s - wanted[n]) > most}
            if far:
                raise LookupError(f"{shares}, not {wanted}")
            return True

        eventually(near, 2, 0.02)


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


def test_the_link_of_an_id_goes_down(both):
    """The kernel deletes the ids of a link that is set down, and their routes."""
    net, host = NET[4], HOST[4]
    both.ip(f"nexthop add id 5 {via(both, 'wan', 4)}", f"route add {net} nhid 5")
    both.agree("route of an id added", {host: "wan"})
    both.ip("link set wan0 down")
    both.agree("link down", {host: "no route"})
    both.ip("link set wan0 up")
    both.agree("link up", {host: "no route"})


# --- addresses --------------------------------------------------------------------------------

MORE = {4: ("10.9.0.1/16", "10.9.0.5"), 6: ("2001:db8:9::1/64", "2001:db8:9::5")}


def own(prefix):
    """Return the address of ADDRESS/LENGTH."""
    return prefix.split("/")[0]


def test_an_address_has_its_subnet(both, family):
    """A new address is ours, and its subnet is on link; a deleted one takes both along."""
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
    """noprefixroute: the address is ours, and its subnet goes by the default route."""
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
    """Without metrics the order in which the addresses came decides. When the link in use loses its
    address, the other one is used."""
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
    """While duplicate address detection runs, the subnet is on link and the address is not ours.
    When the detection fails, this stays so (RFC 4862, 5.4; Linux: IFA_F_TENTATIVE)."""
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
    host's (Linux 5.18)."""
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
    """The subnet-router anycast address of a forwarding interface is ours (RFC 4291, 2.6.1), and so
    is an anycast route."""
    both.ip(f"addr add {MORE[6][0]} dev ext0 nodad")
    both.agree("address added", {"2001:db8:9::": "local"})


def test_the_source_of_a_route_is_deleted(both):
    """The kernel deletes the IPv4 routes whose preferred source is the deleted address, without a
    message. A route of a worse metric takes over."""
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


def test_the_gateways_subnet_is_deleted(both):
    """A route by a gateway stays when the address of the gateway's subnet is deleted, as long as it
    is another address that goes (Linux keeps the route with its interface)."""
    both.answer("ext", "10.9.0.5")
    both.ip("addr add 10.9.0.1/16 dev ext0", f"route add {NET[4]} via 10.9.0.5")
    both.agree("route added", {HOST[4]: "ext"})
    both.ip("addr add 10.9.0.2/16 dev ext0")
    both.agree("address added", {HOST[4]: "ext"})


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
    """The IPv4 addresses of a link that is down stay ours, and its subnet is not on link."""
    ext = both.ours.wires["ext"]
    both.ip("link set ext0 down")
    both.agree("link down", {ext.peer4: "no route", ext.ip4: "local"})
    both.ip("link set ext0 up")
    both.agree("link up", {ext.ip4: "local"})


# --- router advertisements --------------------------------------------------------------------

ADVERTISER = "fe80::9"
ON_LINK = ("2001:db8:99::", "2001:db8:99::5")


def advertise(router, prefix_s=0, router_s=0):
    """Send a router advertisement on wan, with an on-link prefix and a life as default router."""
    wan = router.wires["wan"]
    head = Ether(src=wan.mac, dst="33:33:00:00:00:01") / IPv6(src=ADVERTISER, dst="ff02::1", hlim=255)
    info = ICMPv6NDOptPrefixInfo(
        prefix=ON_LINK[0], prefixlen=64, L=1, A=0, validlifetime=prefix_s, preferredlifetime=prefix_s
    )
    wan.send(head / ICMPv6ND_RA(routerlifetime=router_s) / info)


@pytest.fixture
def advertised(both):
    """Both routers accept advertisements on wan, whose neighbors answer."""
    both.sysctl({"net.ipv6.conf.wan0.accept_ra": 2})
    both.ip(f"-6 neigh replace {ADVERTISER} lladdr {both.ours.wires['wan'].mac} dev wan0 nud permanent")
    both.answer("wan", ON_LINK[1])
    return both


def test_the_prefix_of_an_advertisement_and_its_end(advertised):
    """An on-link prefix and a default route of a router advertisement are in force, are renewed
    without a message, and end with their life (RFC 4861, 6.3.4)."""
    both = advertised
    away = "2001:db8:7777::7"
    for router in both.both:
        advertise(router, 2, 2)
    both.ip()
    both.agree("advertised", {ON_LINK[1]: "wan", away: "wan"})
    # Renewed for longer than the first life.
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
    both.agree("advertised life over", {ON_LINK[1]: "no route", away: "no route"}, within_s=3)


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


def test_a_route_with_a_life(both):
    """`ip -6 route add ... expires N` ends in time, in Linux and in our router."""
    both.ip(f"-6 route add {NET[6]} {via(both, 'wan', 6)} expires 2")
    both.agree("route added", {HOST[6]: "wan"})
    eventually(lambda: both.fate(both.linux, HOST[6]) == "no route", 6, 0.02)
    both.ip()
    both.agree("route's life over", {HOST[6]: "no route"}, within_s=3)


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
        both.agree("route of a VRF added", {host: "wan"}, within_s=3)
        both.ip(line(family, f"route add table 100 {net} {via(both, 'ext', family)} metric 5"))
        both.agree("route of a VRF added", {host: "ext" if family == 6 else "wan"})
        both.ip(line(family, f"route flush table 100 proto boot"))
        both.agree("routes of a VRF flushed", {host: "no route"})
    finally:
        both.ip("link del red")
        both.fates = {}


# --- time -------------------------------------------------------------------------------------


def test_changes_are_in_force_within_100_ms(routers):
    """The median of the times that packets took to show a change is below 100 ms for each kind of
    change that was made at least three times, and below 10 ms of all changes together on a machine
    at rest."""
    ended = {"advertised life over", "route's life over"}  # by the seconds of the kernel's clock
    took = {kind: t for kind, t in routers.took.items() if kind not in ended}
    for kind, seconds in sorted(took.items()):
        print(f"{kind}: {statistics.median(seconds) * 1000:.1f} ms, median of {len(seconds)}")
    late = {k: t for k, t in took.items() if len(t) >= 3 and statistics.median(t) >= 0.1}
    assert took and not late, late
