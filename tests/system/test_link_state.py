# SPDX-License-Identifier: BSD-3-Clause
"""States of links and neighbors that operators report trouble with, at our router and at a Linux
router of equal configuration: `arp off`, odd MACs and addresses, links and macvlans that go down and
come back."""

import pytest

from lib.wait import eventually
from pair import HOST, NET, line, peer
from pair import both, routers  # noqa: F401
from wire import token_of

ZEROS, VMAC = "00:00:00:00:00:00", "00:00:5e:00:01:05"
FAMILIES = pytest.mark.parametrize("family", [4, 6])


def sent_to(router, dst):
    """Return the MAC to which a router sends a packet that comes by lan and leaves by wan."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    lan.send(probe := lan.probe(dst))
    return wan.expect(token_of(probe), 1).dst


def both_send_to(both, dst, mac):  # noqa: F811
    """Wait until both routers send a packet to the MAC; Linux has the last word."""
    for router in both.both:
        eventually(lambda r=router: sent_to(r, dst) == mac, 5, 0.01, f"{dst} to {mac}")


def undo(both, *lines):  # noqa: F811
    """Take commands back: the last outcomes of agree() need not be true from now on."""
    both.ip(*lines)
    both.fates = {}


@pytest.fixture
def wan(both):  # noqa: F811
    """The wire wan of our router; afterwards both have the usual neighbors there."""
    made = both.ours.wires["wan"]
    yield made
    both.ip(
        "link set wan0 arp on", "link set wan0 up",
        f"neigh replace {made.peer4} lladdr {made.mac} dev wan0 nud permanent",
        f"neigh replace {made.peer6} lladdr {made.mac} dev wan0 nud permanent",
    )  # fmt: skip


@FAMILIES
def test_a_neighbor_may_have_the_mac_of_zeros(both, wan, family):  # noqa: F811
    """Linux sends to this MAC as to any other MAC. The dataplane does so if an operator added the
    entry."""
    both.zebra(NET[family], "wan")
    both_send_to(both, HOST[family], wan.mac)

    both.ip(f"neigh replace {peer(both, 'wan', family)} lladdr {ZEROS} dev wan0 nud permanent")

    both_send_to(both, HOST[family], ZEROS)
    both_send_to(both, peer(both, "wan", family), ZEROS)


@FAMILIES
def test_arp_off_sends_to_the_mac_of_the_link(both, wan, family):  # noqa: F811
    """Linux forgets the neighbors of the link, asks for none, and sends to its own MAC. A static
    neighbor still has its MAC."""
    both.zebra(NET[family], "wan")
    both_send_to(both, HOST[family], wan.mac)
    gateway = peer(both, "wan", family)

    both.ip("link set wan0 arp off")

    both_send_to(both, HOST[family], wan.port_mac)
    both_send_to(both, gateway, wan.port_mac)
    both.ip(f"neigh replace {gateway} lladdr {wan.mac} dev wan0 nud permanent")
    both_send_to(both, HOST[family], wan.mac)

    both.answer("wan", gateway)
    both.ip("link set wan0 arp on")
    both_send_to(both, HOST[family], wan.mac)


def test_own_addresses_of_240_are_reached(both):  # noqa: F811
    """Ours forwards no packet from or to 240/4, but as Linux it takes those for its own addresses."""
    lan = both.ours.wires["lan"]
    both.ip("addr add 240.0.0.1/24 dev lan0", f"neigh add 240.0.0.2 lladdr {lan.mac} dev lan0")
    try:
        both.agree("own address", {"240.0.0.1": "local"})
        both.agree("from 240/4", {"240.0.0.1": "local", lan.ip4: "local"}, src="240.0.0.2")
        assert both.fate(both.ours, "240.0.0.9") == "nothing"
        assert both.fate(both.ours, both.ours.wires["wan"].peer4, src="240.0.0.2") == "nothing"
    finally:
        undo(both, "addr del 240.0.0.1/24 dev lan0")


@FAMILIES
def test_a_failed_neighbor_resolves_after_the_link_is_up(both, wan, family):  # noqa: F811
    """The entry failed while the link was down. The next packet asks for it again."""
    gateway = peer(both, "wan", family)
    both.ip("link set wan0 down")
    for router in both.both:
        router.ip(f"neigh replace {gateway} dev wan0 nud failed")
    both.answer("wan", gateway)
    both.ip("link set wan0 up")
    if family == 6:
        both.ip(f"addr replace {wan.ip6}/64 dev wan0 nodad")
    both.zebra(NET[family], "wan")

    both_send_to(both, HOST[family], wan.mac)


@FAMILIES
def test_a_neighbor_by_a_link_local_address(both, wan, family):  # noqa: F811
    """The interface has a global address, too. A link-local neighbor that answers is a next hop."""
    gateway = "fe80::77"
    both.answer("wan", gateway)
    words = "via inet6 fe80::77" if family == 4 else "via fe80::77"
    both.ip(line(family, f"route add {NET[family]} {words} dev wan0"))

    both_send_to(both, HOST[family], wan.mac)


@FAMILIES
def test_a_macvlan_in_backup_stays_so_when_the_link_flaps(both, family):  # noqa: F811
    """vrrpd of FRR holds the macvlan of a Backup router in protodown. When the link below comes up
    again, Linux gives the macvlan its carrier, and both routers would answer for the virtual router:
    ours still takes no frame (RFC 5798, 6.4.2)."""
    ours, lan = both.ours, both.ours.wires["lan"]
    back = [f"addr replace {lan.ip6}/64 dev lan0 nodad",
            f"neigh replace {lan.peer4} lladdr {lan.mac} dev lan0 nud permanent",
            f"neigh replace {lan.peer6} lladdr {lan.mac} dev lan0 nud permanent"]  # fmt: skip
    both.zebra(NET[family], "wan")
    both.ip(f"link add vr5 link lan0 address {VMAC} type macvlan mode bridge", "link set vr5 up")
    try:
        both.agree("Master", {HOST[family]: "wan"}, to=VMAC)
        both.ip("link set vr5 protodown on protodown_reason 3 on")
        eventually(lambda: both.fate(ours, HOST[family], to=VMAC) == "nothing", 5, 0.01)
        both.ip("link set lan0 down", "link set lan0 up", *back)
        eventually(lambda: ours.link_row("vr5")["operstate"] == "UP", 5, 0.01, "vr5 has a carrier")
        both.agree("link up", {HOST[family]: "wan"})
        assert both.fate(ours, HOST[family], to=VMAC) == "nothing"

        both.ip("link set vr5 protodown_reason 3 off", "link set vr5 protodown off")

        both.agree("Master again", {HOST[family]: "wan"}, to=VMAC)
    finally:
        undo(both, "link del vr5")


def test_a_link_local_address_of_a_virtual_router(both):  # noqa: F811
    """keepalived gives fe80::1 to a virtual router: the macvlan has it, and answers."""
    both.ip(f"link add vr5 link lan0 address {VMAC} type macvlan mode bridge", "link set vr5 up",
            "addr add fe80::1/64 dev vr5 nodad")  # fmt: skip
    lan = both.ours.wires["lan"]
    both.ip(f"neigh add fe80::77 lladdr {lan.mac} dev vr5 nud permanent")
    try:
        both.agree("address", {"fe80::1": "local"}, to=VMAC, src="fe80::77")
    finally:
        undo(both, "link del vr5")
