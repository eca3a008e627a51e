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


def test_a_neighbor_may_have_the_mac_of_zeros(both, wan, family):  # noqa: F811
    """Linux sends to this MAC as to any other one. Ours does so if an operator wrote the entry."""
    both.zebra(NET[family], "wan")
    both_send_to(both, HOST[family], wan.mac)

    both.ip(f"neigh replace {peer(both, 'wan', family)} lladdr {ZEROS} dev wan0 nud permanent")

    both_send_to(both, HOST[family], ZEROS)
    both_send_to(both, peer(both, "wan", family), ZEROS)


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


