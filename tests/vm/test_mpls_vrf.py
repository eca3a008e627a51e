# SPDX-License-Identifier: BSD-3-Clause
"""The edge of L3VPNs (RFC 4364, RFC 4659): two customers in VRFs with equal addresses, a core of
IPv4 with labels. zebra's messages are those of tests/unit/captures/l3vpn-10.3.hex: routes of both
families by an IPv4 neighbor of the core (6VPE), a label for each VRF, a label for a next hop."""

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import Ether

from labels import LabelRouter, behind, entries_of, with_labels
from lib import netns
from lib.wait import eventually
from router import running
from vrfs import BEFORE, HOST, NET, PLEN, TABLE, row
from wire import token_of

CUSTOMER = {"red": "lan", "blue": "alt"}
MINE = {"red": 144, "blue": 146}  # labels of this router
THEIRS = {"red": [16, 500], "blue": [16, 501]}  # of the path to the other edge, and of its VRF
TO_HOST = 148  # the label of a next hop in red
MODULES = ("mpls_iptunnel", "mpls_router")


@pytest.fixture(scope="module")
def edge():
    """Run the router, with the interface of each customer in a VRF, and wan in the core."""
    netns.command(["modprobe", "-a", *MODULES])
    with running(LabelRouter(name="edge")) as router:
        router.ready()
        core = {"net.mpls.platform_labels": 1000, "net.mpls.conf.wan0.input": 1}
        netns.sysctl(router.ctl, core)
        for vrf in CUSTOMER:
            customer_make(router, vrf)
        yield router
    netns.command(["modprobe", "-r", *MODULES])


@pytest.fixture
def dut(edge):
    """Return the router. zebra's only routes are those of both customers to the other edge."""
    edge.zebra.flush()
    eventually(lambda: not edge.control.ask("labels"), 5, 0.01, "no labels")
    for wire in [*edge.wires.values(), *edge.taps.values()]:
        wire.silence()
        wire.clear()
    wan = edge.wires["wan"]
    for vrf, labels in THEIRS.items():
        hop = edge.zebra.hop(wan.peer4, wan, labels=labels)
        for net in NET.values():
            edge.zebra.add(net, hop, table=TABLE[vrf])
        edge.label(MINE[vrf], {"oif": device(edge, vrf)})
    for vrf in THEIRS:
        for net in NET.values():
            forwards = lambda v=vrf, n=net: (row(edge, v, n) or {}).get("state") == "forwarding"  # noqa: E731
            eventually(forwards, 5, 0.01, f"{net} in {vrf}")
    yield edge
    assert edge.alive(), "the daemon died"


def customer_make(router, vrf):
    """Make a VRF, and the interface and the host of its customer."""
    wire = router.wires[CUSTOMER[vrf]]
    lines = [f"link add {vrf} type vrf table {TABLE[vrf]}", f"link set {vrf} up"]
    lines += [f"link set {wire.tap} master {vrf}"]
    for family in (4, 6):
        mine, host = BEFORE[family].format(1), BEFORE[family].format(2)
        lines += [f"addr replace {mine}/{PLEN[family]} dev {wire.tap} nodad"]
        lines += [f"neigh replace {host} lladdr {wire.mac} dev {wire.tap} nud permanent"]
    router.ip(*lines)
    for family, plen in ((4, 32), (6, 128)):
        own = f"{BEFORE[family].format(1)}/{plen}"
        eventually(lambda p=own: row(router, vrf, p), 10, 0.01, f"{own} in {vrf}")


def device(router, vrf):
    """Return the interface index of a VRF."""
    rows = router.control.ask("interfaces")
    return next(r["ifindex"] for r in rows if r["name"] == vrf)


def ttl_of(frame):
    return frame[IP].ttl if IP in frame else frame[IPv6].hlim


def from_customer(wire, family, **more):
    return wire.probe(HOST[family], src=BEFORE[family].format(2), **more)


def to_customer(wire, family, **more):
    return wire.probe(BEFORE[family].format(2), src=HOST[family], **more)


def test_each_customer_gets_the_labels_of_its_vrf(dut, family):
    """The label of the path comes first. IPv6 goes to the MAC address of the IPv4 neighbor."""
    wan = dut.wires["wan"]
    for vrf, name in CUSTOMER.items():
        probe = from_customer(dut.wires[name], family, **({"ttl": 9} if family == 4 else {"hlim": 9}))
        came = dut.forwarded(dut.wires[name], probe, wan)
        assert [e[:2] for e in entries_of(came)] == [(label, 8) for label in THEIRS[vrf]]
        assert (came.dst, came.src, ttl_of(came)) == (wan.mac, wan.port_mac, 8)


def test_a_label_leads_to_the_customer_of_its_vrf(dut, family):
    """A label leads only to the customer of its VRF, although both customers have the same
    addresses. The TTL falls by one."""
    wan = dut.wires["wan"]
    for vrf, name in CUSTOMER.items():
        out = dut.wires[name]
        came = dut.forwarded(wan, with_labels(to_customer(wan, family), (MINE[vrf], 9)), out)
        assert not entries_of(came) and (came.dst, ttl_of(came)) == (out.mac, 8)
        others = [w for w in dut.wires.values() if w not in (out, wan)]
        assert not any(w.got(token_of(bytes(came))) for w in others)


def test_a_packet_to_an_address_of_the_vrf_goes_to_the_kernel_as_it_came(dut, family):
    """The kernel pops the label and takes the packet in the VRF. The same label leads other packets to the
    customer."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    sent = with_labels(wan.probe(BEFORE[family].format(1), src=HOST[family]), (MINE["red"], 9))
    wan.send(sent)
    assert bytes(dut.taps["wan"].expect_raw(bytes(sent)[14:], 5)) == bytes(sent)
    dut.fence(wan)
    assert not any(token_of(sent) in bytes(f) for f in lan.got())


def test_an_unknown_host_behind_a_label_is_asked_for_in_its_vrf(dut, family):
    """The packet waits for the host's MAC address, and leaves without its label."""
    wan, host = dut.wires["wan"], BEFORE[family].format(77)
    for vrf, name in CUSTOMER.items():
        out = dut.wires[name]
        out.answer(host)
        probe = wan.probe(host, src=HOST[family])
        came = dut.forwarded(wan, with_labels(probe, (MINE[vrf], 9)), out, 5)
        assert not entries_of(came) and (came.dst, ttl_of(came)) == (out.mac, 8)


def test_explain_names_the_vrf_and_both_labels(dut):
    """`fpmctl explain` shows that a label is popped, the VRF of the lookup, and the labels that are
    pushed, for a packet that crosses a VRF."""
    wan = dut.wires["wan"]
    frame = with_labels(wan.probe(HOST[4], src=HOST[4]), MINE["red"])
    said = dut.fpmctl("explain", "port", wan.tap, "hex", bytes(frame).hex()).stdout
    assert "1 popped, looked up in vrf red, pushed: 16/500; path: labels" in said, said
    assert f"route      {NET[4]} " in said and f"via {wan.peer4} dev {wan.tap}" in said, said


def test_a_label_leads_to_a_next_hop_in_a_vrf(dut, family):
    """`label vpn export allocation-mode per-nexthop`: the label alone chooses the next hop. There
    is no lookup of the destination."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.label(TO_HOST, {"via": BEFORE[family].format(2), "oif": dut.ifindex(lan)})
    probe = wan.probe({4: "10.99.0.1", 6: "2001:db8:99::1"}[family], src=HOST[family])
    came = dut.forwarded(wan, with_labels(probe, (TO_HOST, 9)), lan)
    assert not entries_of(came) and (came.dst, ttl_of(came)) == (lan.mac, 8)


def test_a_packet_crosses_a_vrf_from_the_core_to_the_core(dut, family):
    """A hub: the label ends here, and the route of the VRF pushes the labels of another path."""
    wan = dut.wires["wan"]
    probe = wan.probe(HOST[family], src=HOST[family])
    came = dut.forwarded(wan, with_labels(probe, (MINE["blue"], 9)), wan)
    assert [e[:2] for e in entries_of(came)] == [(label, 8) for label in THEIRS["blue"]]


def test_a_packet_that_expires_here_is_answered_through_its_vrf(dut, family):
    """The error has an address of the VRF, quotes the label, and takes the labels of the route to
    the sender. Toward the customer it has none."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    wan.send(with_labels(to_customer(wan, family), (MINE["red"], 1)))
    dut.fence(wan)
    (data,) = [f for f in wan.got() if entries_of(f)]
    assert [e[0] for e in entries_of(data)] == THEIRS["red"]
    error = (IP if family == 4 else IPv6)(behind(data))
    mine = (BEFORE[family].format(1), lan.ip4)
    assert error.src in mine and error.dst == HOST[family]
    assert (ICMP if family == 4 else ICMPv6TimeExceeded) in error
    # The object of RFC 4950, class 1, type 1: one entry, with the label as it came.
    entry = (MINE["red"] << 12 | 1 << 8 | 1).to_bytes(4, "big")
    assert bytes(error).endswith(b"\x00\x08\x01\x01" + entry)

    lan.send(from_customer(lan, family, **({"ttl": 1} if family == 4 else {"hlim": 1})))
    dut.fence(lan)
    kind = ICMP if family == 4 else ICMPv6TimeExceeded
    (error,) = [f for f in map(Ether, lan.got()) if kind in f]
    net = error[IP] if family == 4 else error[IPv6]
    assert net.src in mine and net.dst == BEFORE[family].format(2)


def test_a_packet_too_big_for_the_customer_is_answered_through_its_vrf(dut, family):
    """The error has the MTU of the customer's link. A packet without DF is cut, and leaves without
    a label."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    mtu = lambda: dut.port_row(lan)["mtu"]  # noqa: E731
    dut.ip(f"link set {lan.tap} mtu 1300")
    try:
        eventually(lambda: mtu() == 1300, 5, 0.01, "the MTU")
        big = to_customer(wan, family, size=1400, **({"flags": "DF"} if family == 4 else {}))
        wan.send(with_labels(big, MINE["red"]))
        dut.fence(wan)
        (data,) = [f for f in wan.got() if entries_of(f)]
        assert [e[0] for e in entries_of(data)] == THEIRS["red"]
        error = (IP if family == 4 else IPv6)(behind(data))
        assert error.dst == HOST[family]
        if family == 4:
            assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1300)
            lan.clear()
            wan.send(with_labels(to_customer(wan, 4, size=1400), MINE["red"]))
            dut.fence(wan)
            parts = [p for p in map(Ether, lan.got()) if IP in p and p[IP].dst == BEFORE[4].format(2)]
            assert sorted(p[IP].frag * 8 for p in parts)[0] == 0 and len(parts) == 2
            assert sum(p[IP].len - 20 for p in parts) == 1380
        else:
            assert error[ICMPv6PacketTooBig].mtu == 1300
    finally:
        dut.ip(f"link set {lan.tap} mtu 1500")
        eventually(lambda: mtu() == 1500, 5, 0.01, "the MTU")


LEAKED = {4: ("10.88.0.0/24", "10.88.0.9"), 6: ("2001:db8:88::/48", "2001:db8:88::9")}


def leak(dut, vrf, net, hop):
    """Announce a route of another VRF in this one, as `import vrf` does."""
    dut.zebra.add(net, hop, table=TABLE[vrf])
    forwards = lambda: (row(dut, vrf, net) or {}).get("state") == "forwarding"  # noqa: E731
    eventually(forwards, 5, 0.01, f"{net} in {vrf}")


def test_a_label_and_a_leak_lead_to_the_customer_of_another_vrf(dut, family):
    """red has a network of blue's customer, and blue has a network of red behind the core. From the
    core, the label of red leads to blue's customer. Toward the core, the packets of blue's
    customer get the labels of red. Between the customers no label is used. The TTL falls by one."""
    lan, alt, wan = (dut.wires[name] for name in ("lan", "alt", "wan"))
    net, host = LEAKED[family]
    back, far = {4: ("10.77.0.0/24", "10.77.0.9"), 6: ("2001:db8:77::/48", "2001:db8:77::9")}[family]
    leak(dut, "red", net, dut.zebra.hop(BEFORE[family].format(2), alt))
    leak(dut, "blue", back, dut.zebra.hop(wan.peer4, wan, labels=THEIRS["red"]))

    came = dut.forwarded(wan, with_labels(wan.probe(host, src=HOST[family]), (MINE["red"], 9)), alt)
    assert not entries_of(came) and (came.dst, ttl_of(came)) == (alt.mac, 8)
    came = dut.forwarded(lan, lan.probe(host, src=BEFORE[family].format(2)), alt)
    assert not entries_of(came) and (came.dst, ttl_of(came)) == (alt.mac, 63)
    came = dut.forwarded(alt, alt.probe(far, src=BEFORE[family].format(2)), wan)
    assert [e[:2] for e in entries_of(came)] == [(label, 63) for label in THEIRS["red"]]
    # blue has no route to the network that red has. The ICMP error takes the labels of blue.
    wan.clear()
    before = dut.counters()
    wan.send(with_labels(wan.probe(host, src=HOST[family]), MINE["blue"]))
    dut.fence(wan)
    assert dut.drops(before) == {"no_route": 1}
    (data,) = [f for f in wan.got() if entries_of(f)]
    assert [e[0] for e in entries_of(data)] == THEIRS["blue"]
    assert (IP if family == 4 else IPv6)(behind(data)).dst == HOST[family]


def test_an_error_about_a_leaked_packet_is_of_the_vrf_that_it_came_to(dut, family):
    """The packet came to red, and its route leaves by the port of blue's customer. The router
    answers by an address of red, along the path of red, about an expired packet and about one
    that is too big for the link of blue's customer."""
    lan, alt, wan = (dut.wires[name] for name in ("lan", "alt", "wan"))
    net, host = LEAKED[family]
    leak(dut, "red", net, dut.zebra.hop(BEFORE[family].format(2), alt))
    mtu = lambda: dut.port_row(alt)["mtu"]  # noqa: E731
    dut.ip(f"link set {alt.tap} mtu 1300", f"addr add 10.66.0.1/24 dev {alt.tap}")
    try:
        eventually(lambda: mtu() == 1300, 5, 0.01, "the MTU")
        big = wan.probe(host, src=HOST[family], size=1400, **({"flags": "DF"} if family == 4 else {}))
        for sent, kind in (
            (with_labels(wan.probe(host, src=HOST[family]), (MINE["red"], 1)), (11, 3)),
            (with_labels(big, MINE["red"]), (3, 2)),
        ):
            wan.clear()
            wan.send(sent)
            dut.fence(wan)
            (data,) = [f for f in wan.got() if entries_of(f)]
            assert [e[0] for e in entries_of(data)] == THEIRS["red"]
            error = (IP if family == 4 else IPv6)(behind(data))
            ours = (BEFORE[family].format(1), lan.ip4 if family == 4 else lan.ip6)
            assert error.src in ours and error.dst == HOST[family]
            assert bytes(error.payload)[0] == kind[family == 6]
    finally:
        dut.ip(f"link set {alt.tap} mtu 1500", f"addr del 10.66.0.1/24 dev {alt.tap}")
        eventually(lambda: mtu() == 1500, 5, 0.01, "the MTU")


def test_a_customer_cannot_enter_the_core_or_another_vrf_by_a_label(dut):
    """RFC 4364, 13.1: labels are taken from interfaces of the core alone."""
    lan = dut.wires["lan"]
    for label in (*MINE.values(), 16):
        assert dut.not_forwarded(lan, with_labels(from_customer(lan, 4), label)) == {"mpls_off": 1}


def test_labels_end_with_their_vrf(dut):
    """Packets with the label of a deleted VRF are dropped, also when a new VRF was made since.
    zebra announces the label again with the new device."""
    wan, lan = dut.wires["wan"], dut.wires["lan"]
    probe = lambda: with_labels(to_customer(wan, 4), MINE["red"])  # noqa: E731
    dut.ip("link del red")
    eventually(lambda: "red" not in {r["vrf"] for r in dut.control.ask("fib")}, 5, 0.01, "red is gone")
    assert dut.not_forwarded(wan, probe())
    dut.ip("link add green type vrf table 300", "link set green up")
    eventually(lambda: "green" in {r["vrf"] for r in dut.control.ask("fib")}, 5, 0.01, "green is there")
    assert dut.not_forwarded(wan, probe())
    dut.ip("link del green")
    customer_make(dut, "red")
    dut.label(MINE["red"], {"oif": device(dut, "red")})
    assert not entries_of(dut.forwarded(wan, probe(), lan))
