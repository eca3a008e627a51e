# SPDX-License-Identifier: BSD-3-Clause
"""If an interface has several addresses, the source of an ICMP error is the address that a Linux
router of equal configuration selects."""

import ipaddress

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from lib.dut import Dut
from lib.wait import eventually
from pair import HOST, line, routers  # noqa: F401
from router import is_icmp_error
from wire import token_of

LAN6, MORE6, OTHER6 = "2001:db8:4::1", "2001:db8:4::77", "2001:db8:4::88"


@pytest.fixture
def both(routers):  # noqa: F811
    """Both routers in their standard state."""
    routers.clean()
    yield routers
    routers.ip("addr flush dev lan0 scope global")


def source(router, family, src=None):
    """Return the source of the error about a packet without a route from lan."""
    lan = router.wires["lan"]
    reply = lan.srp1(lan.probe(HOST[family], src=src))
    assert is_icmp_error(bytes(reply))
    return reply[IPv6 if family == 6 else IP].src


def agree(both, family, wanted, src=None):
    """Assert that errors have this source address, from the dataplane and from Linux."""
    for router in (both.linux, both.ours):
        name = "ours" if router is both.ours else "Linux"
        eventually(lambda r=router: source(r, family, src) == wanted, 3, 0.02, f"{name}: {wanted}")


def lifetimes(both, address, words):
    """Set the lifetimes of an address of lan in both routers."""
    both.ip(f"addr change {address} dev lan0 {words}")


def deprecate(both, address):
    """End the preferred lifetime of an address."""
    lifetimes(both, address, "valid_lft forever preferred_lft 0")


def test_a_deprecated_address_is_no_source_beside_a_preferred_one(both):
    """RFC 6724, 5, rule 3. The order in which the addresses were added does not matter."""
    agree(both, 6, LAN6)
    both.ip(f"addr add {MORE6}/64 dev lan0 nodad")
    deprecate(both, f"{LAN6}/64")
    agree(both, 6, MORE6)
    lifetimes(both, f"{LAN6}/64", "valid_lft forever preferred_lft forever")
    deprecate(both, f"{MORE6}/64")
    agree(both, 6, LAN6)


def test_a_preferred_life_that_ends_by_itself_counts(both):
    """The kernel deprecates an address when its preferred lifetime is over, here after a second."""
    both.ip(f"addr add {MORE6}/64 dev lan0 nodad")
    lifetimes(both, f"{LAN6}/64", "valid_lft forever preferred_lft 1")
    agree(both, 6, MORE6)


def test_a_preferred_address_of_another_interface_is_better(both):
    """Rule 3 (preferred addresses) comes before rule 5 (addresses of the egress interface). If no
    interface of the router has a preferred address, the source is a deprecated one."""
    deprecate(both, f"{LAN6}/64")
    agree(both, 6, both.ours.wires["wan"].ip6)
    both.ip("addr add 2001:db8:4::99/128 dev lo")
    agree(both, 6, "2001:db8:4::99")
    both.ip("addr del 2001:db8:4::99/128 dev lo")
    for name in ("wan", "alt", "ext"):
        both.ip(f"addr del {both.ours.wires[name].ip6}/64 dev {name}0")
    agree(both, 6, LAN6)


def test_a_deprecated_ipv4_address_is_still_a_source(both):
    """Linux does not prefer addresses that are not deprecated for IPv4 (inet_select_addr())."""
    lan = both.ours.wires["lan"]
    both.ip("addr add 10.9.0.1/16 dev lan0")
    agree(both, 4, lan.ip4)
    deprecate(both, f"{lan.ip4}/26")
    agree(both, 4, lan.ip4)


# --- the receiver of an error selects the source ------------------------------------------------


def neighbors(both, *addresses):
    """Give both routers permanent neighbors with these addresses on lan."""
    mac = both.ours.wires["lan"].mac
    both.ip(*[f"neigh replace {a} lladdr {mac} dev lan0 nud permanent" for a in addresses])


def test_an_ipv4_error_has_the_address_of_the_receivers_subnet(both):
    """inet_select_addr(): the source is the first address whose subnet has the receiver, or the
    gateway to it. If no subnet has it, the source is the first address."""
    lan = both.ours.wires["lan"]
    both.ip("addr add 10.9.0.1/16 dev lan0", "addr add 10.9.0.3/16 dev lan0")
    neighbors(both, "10.9.0.2")
    both.ip("route add 10.77.0.0/16 via 10.9.0.2 dev lan0")
    both.ip(f"route add 10.78.0.0/16 via {lan.peer4} dev lan0")
    agree(both, 4, "10.9.0.1", src="10.9.0.2")
    agree(both, 4, lan.ip4)
    agree(both, 4, "10.9.0.1", src="10.77.0.5")
    agree(both, 4, lan.ip4, src="10.78.0.5")


def test_an_ipv6_error_has_the_address_that_is_like_the_receivers(both):
    """RFC 6724, 5: the source has the label of the receiver (rule 6), and among such addresses the
    longest common prefix with the receiver (rule 8)."""
    both.ip(*[f"addr add {a} dev lan0 nodad" for a in ("2001:db8:9::1/64", "fd00:9::1/64")])
    neighbors(both, "2001:db8:9::2", "fd00:9::2")
    both.ip("-6 route add fd77::/16 via fd00:9::2 dev lan0")
    agree(both, 6, "2001:db8:9::1", src="2001:db8:9::2")
    agree(both, 6, LAN6)
    agree(both, 6, "fd00:9::1", src="fd00:9::2")
    agree(both, 6, "fd00:9::1", src="fd77::5")
    deprecate(both, "fd00:9::1/64")
    agree(both, 6, source(both.linux, 6, "fd77::5"), src="fd77::5")


def test_of_equal_ipv6_addresses_the_newest_counts(both):
    """The kernel keeps the newest address first, also for a router that starts later."""
    both.ip(f"addr add {MORE6}/64 dev lan0 nodad")
    agree(both, 6, MORE6)
    both.ip(f"addr add {OTHER6}/64 dev lan0 nodad")
    agree(both, 6, OTHER6)
    both.ours.stop()
    Dut.start(both.ours)  # without the standard addresses
    agree(both, 6, OTHER6)
    both.ip(f"addr del {OTHER6}/64 dev lan0")
    agree(both, 6, MORE6)
