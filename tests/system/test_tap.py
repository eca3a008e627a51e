# SPDX-License-Identifier: BSD-3-Clause
"""A change that `ip` makes to a TAP takes effect on its port."""

import ipaddress
import json
import random
import time

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether

from lib import netns
from lib.links import on_nics
from lib.linkwatch import LinkWatch
from lib.wait import eventually
from on_time import Medians, coming, dropped_in_time
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"


def test_a_tap_has_name_mac_and_mtu_of_its_port(dut):
    """The TAP has the port's MAC, because the kernel answers ARP with the TAP's MAC."""
    for wire in dut.wires.values():
        link = dut.link_row(wire.tap)
        row = dut.port_row(wire)
        assert link["address"] == wire.port_mac == row["mac"]
        assert link["mtu"] == row["mtu"] == 1500
        assert link["ifindex"] == row["ifindex"]
        assert {"UP", "LOWER_UP"} <= set(link["flags"])


def test_a_tap_is_persistent(dut, lan):
    """The TAP is persistent, so it outlives the daemon."""
    text = netns.command(["ip", "-n", dut.ctl, "-d", "-j", "link", "show", lan.tap])
    assert json.loads(text)[0]["linkinfo"]["info_data"]["persist"] is True


def test_carrier_follows_the_port(dut, wan):
    """The far end goes down: the TAP loses carrier, so FRR sees it as on any router."""
    netns.ip_batch([f"link set {wan.name} down"], dut.far)
    eventually(lambda: "LOWER_UP" not in dut.link_row(wan.tap)["flags"], 2, 0.005)
    eventually(lambda: dut.port_row(wan)["link"] == "down", 2, 0.005)

    netns.ip_batch([f"link set {wan.name} up"], dut.far)
    eventually(lambda: "LOWER_UP" in dut.link_row(wan.tap)["flags"], 2, 0.005)
    eventually(lambda: dut.port_row(wan)["link"] == "up", 2, 0.005)


def test_a_carrier_is_told_at_once(dut, wan):
    """The kernel reports one link event a second and holds later ones back until the second is
    over. Here the far end's event is the first, so zebra would keep a lost link for a second.
    The TAP's carrier is reported at once nevertheless (the median of five)."""
    medians = Medians(dut)
    with LinkWatch(dut.ctl) as watch:
        for word, flag in (("down", "NO-CARRIER"), ("up", ",LOWER_UP")) * medians.TIMES:
            netns.link_set(dut.far, wan.name, word == "up")
            eventually(lambda w=word: dut.port_row(wan)["link"] == w, 5, 0.001)
            medians.until(word, lambda f=flag: f in watch.last(wan.tap))
        medians.are_in_time()
        # The kernel's linkwatch reports the same state later.
        netns.link_set(dut.far, wan.name, False)
        eventually(lambda: "state DOWN" in watch.last(wan.tap), 5)
        netns.link_set(dut.far, wan.name, True)
        eventually(lambda: "state UP" in watch.last(wan.tap), 5)


def test_a_link_that_flaps_does_not_fill_the_log(dut, ext):
    """The other end of a wire can change its link at will. The log has at most one line a
    second, with the last state, and that line has the number of changes. The kernel reports
    fewer changes under load, so the test repeats them until more are counted than there can be
    lines."""
    head = f"neigh: carrier {{}} port={ext.tap}"
    lines = lambda: [  # noqa: E731
        row for row in dut.daemon.log(5000).splitlines() if f"port={ext.tap}" in row
    ]
    before = len(lines())
    flap = [f"link set {ext.name} {word}" for word in ("down", "up")]

    def told():
        netns.ip_batch(flap * 100, dut.far)
        said = lines()[before:]
        return len(said) + sum(int(row.partition(" missed=")[2] or 0) for row in said) > 20

    begin = time.monotonic()
    eventually(told, 20, 0.01, "the log has counted more than 20 changes")
    netns.link_set(dut.far, ext.name, False)
    eventually(lambda: dut.port_row(ext)["link"] == "down", 5, 0.005)
    eventually(lambda: head.format("down") in lines()[-1], 5)
    netns.link_set(dut.far, ext.name, True)
    # The line `down` may be the first of all; a later line has the count.
    eventually(lambda: head.format("up") in lines()[-1], 5)
    took_s = time.monotonic() - begin
    said = lines()[before:]

    assert len(said) <= took_s + 4, said


def test_a_down_link_comes_back_to_work(dut, lan, wan):
    """A route's only port was down. It forwards again when the port is up."""
    dut.route(NET, via=wan.peer4, wire=wan)
    netns.ip_batch([f"link set {wan.name} down"], dut.far)
    eventually(lambda: dut.route_row(NET)["state"] == "down", 2, 0.005)
    assert dut.not_forwarded(lan, lan.probe(HOST)) == {"egress_down": 1}
    netns.ip_batch([f"link set {wan.name} up"], dut.far)

    def passes():
        lan.send(probe := lan.probe(HOST))
        return wan.expect_raw(token_of(probe), 0.05)

    eventually(passes, 3, 0.01)


def test_an_address_added_is_ours_at_once(dut, lan, wan):
    """RFC 1812, 5.2.3: a new address is local and its subnet is connected. Both end with the
    address."""
    dut.route("203.0.113.0/24", via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe("203.0.113.1"), wan)

    probe, medians = lambda: lan.probe("203.0.113.1"), Medians(dut)
    for _ in range(medians.TIMES):
        dut.ip(f"addr add 203.0.113.1/28 dev {lan.tap}")
        medians.until("added", coming(lan, probe, dut.taps["lan"]))
        # The kernel reports the address and the subnet in two messages.
        row = eventually(lambda: dut.route_row("203.0.113.0/28"), 5, 0.005)
        assert row["source"] == "connected"

        dut.ip(f"addr del 203.0.113.1/28 dev {lan.tap}")
        medians.until("deleted", coming(lan, probe, wan))  # by zebra's route again
        assert dut.route_row("203.0.113.0/28") is None
    medians.are_in_time()


def test_an_ipv6_address_added_is_ours_at_once(dut, lan, wan):
    """RFC 4291, 2.8: an added IPv6 address is in force at once, and so is the subnet-router
    anycast address."""
    new, subnet = "2001:db8:77::5", "2001:db8:77::"
    dut.route(f"{subnet}/48", via=wan.peer6, wire=wan)
    dut.forwarded(lan, lan.probe(new), wan)

    medians = Medians(dut)
    for _ in range(medians.TIMES):
        dut.ip(f"addr add {new}/64 dev {lan.tap} nodad")
        medians.until("added", coming(lan, lambda: lan.probe(new), dut.taps["lan"]))
        # The kernel reports the anycast address in a message of its own.
        eventually(coming(lan, lambda: lan.probe(subnet), dut.taps["lan"]), 5, 0.005)
        assert dut.route_row(f"{subnet}/64")["source"] == "connected"

        dut.ip(f"addr del {new}/64 dev {lan.tap}")
        medians.until("deleted", coming(lan, lambda: lan.probe(new), wan))  # by zebra's route again
        assert dut.route_row(f"{subnet}/64") is None
    medians.are_in_time()


def test_kernel_and_fpmctl_say_the_same(dut):
    """`ip` changes addresses and links in any order. 100 ms later (the median of 12 rounds) the
    kernel and fpmctl agree: every address of the kernel is local and no other, and MTU, MAC and
    state are equal."""
    rng = random.Random(4)
    addresses = [f"203.0.113.{16 * n + 1}/28" for n in range(8)]
    addresses += [f"2001:db8:{n:x}77::1/64" for n in range(8)] + ["203.0.113.2/28"]
    taps, there = [w.tap for w in dut.wires.values()], set()

    def agree():
        links = json.loads(netns.command(["ip", "-n", dut.ctl, "-j", "addr"]))
        links = {link["ifname"]: link for link in links if link["ifname"] in taps}
        ports = {row["name"]: row for row in dut.control.ask("ports")}
        routes = dut.control.ask("routes")
        shown = {r["prefix"].split("/")[0] for r in routes if r["source"] == "local"}
        wanted = set()
        for name, link in links.items():
            port = ports[name]
            assert (port["mtu"], port["mac"]) == (link["mtu"], link["address"])
            assert (port["link"] == "up") == ("UP" in link["flags"])
            info = [a for a in link["addr_info"] if a["scope"] == "global"]
            wanted |= {a["local"] for a in info}
            for a in info:
                net = ipaddress.ip_interface(f"{a['local']}/{a['prefixlen']}").network
                wanted |= {str(net[0])} if net.version == 6 else set()  # RFC 4291, 2.6.1
        assert shown == wanted
        return True

    medians = Medians(dut)
    for _ in range(12):
        lines = []
        for address in rng.sample(addresses, 5):
            tap = taps[addresses.index(address) % len(taps)]
            lines.append(f"addr {'del' if address in there else 'add'} {address} dev {tap}")
            lines[-1] += " nodad" if ":" in address and address not in there else ""
            there ^= {address}
        lines.append(f"link set {rng.choice(taps)} mtu {rng.choice([1280, 1400, 1500])}")
        dut.ip(*lines)
        medians.until("agreed", agree)
    # Each look starts an `ip`, and the clock does not see how long this waits for a CPU.
    medians.are_in_time()


def test_an_own_address_beats_every_route(dut, lan, wan):
    """RFC 1812, 5.2.3: a packet to a local address is for the router, whatever routes zebra
    sends."""
    nhid = dut.zebra.hop(wan.peer4, wan)
    dut.zebra.add(f"{lan.ip4}/32", nhid)
    dut.zebra.add("192.0.2.0/26", nhid)
    dut.route(NET, nhid=nhid)
    probe = lan.probe(lan.ip4)

    assert dut.not_forwarded(lan, probe) == {}
    assert len(dut.taps["lan"].got(token_of(probe))) == 1


def test_errors_come_from_an_address_that_is_there(dut, lan):
    """RFC 1812, 4.3.2.4: the source of an error is an address that the interface has at that
    time."""
    dut.ip(
        f"addr del {lan.ip4}/26 dev {lan.tap}",
        f"addr add 192.0.2.5/26 dev {lan.tap}",
        f"neigh replace {lan.peer4} lladdr {lan.mac} dev {lan.tap} nud permanent",
    )
    eventually(lambda: dut.port_row(lan)["addresses4"] == "192.0.2.5", 2, 0.005)
    eventually(lambda: dut.route_row("192.0.2.5/32"), 2, 0.005)  # then the route to the sender is back

    reply = lan.srp1(lan.probe(HOST))

    assert reply[ICMP].type == 3 and reply[IP].src == "192.0.2.5"


@pytest.fixture
def new_macs(dut, lan):
    """Return other MACs for the port. Restore the old MAC after the test."""
    yield [f"02:00:00:00:ab:{n:02x}" for n in range(5)]
    dut.ip(f"link set {lan.tap} address {lan.port_mac}")
    eventually(lambda: dut.port_row(lan)["mac"] == lan.port_mac, 3, 0.01)


def test_a_mac_changed_with_ip_is_the_ports(dut, lan, wan, new_macs):
    """100 ms after `ip link set address` (the median of five) the port takes frames to the new MAC.
    It sends frames from it."""
    dut.route(NET, via=wan.peer4, wire=wan)

    def probe_to(mac):
        probe = lan.probe(HOST)
        probe[Ether].dst = mac
        return probe

    medians = Medians(dut)
    for mac in new_macs:
        dut.ip(f"link set {lan.tap} address {mac}")
        medians.until("new MAC", coming(lan, lambda m=mac: probe_to(m), wan))
    medians.are_in_time()
    # A new MAC of the device empties the kernel's neighbor cache, even of static entries.
    dut.neighbor(lan.peer4, lan)
    assert dut.forwarded(wan, wan.probe(lan.peer4), lan).src == new_macs[-1]


def test_a_larger_and_a_smaller_mtu_are_in_force(dut, lan, wan):
    """RFC 1812, 5.2.7.1 code 4: the MTU of the TAP is the MTU of the egress."""
    dut.route(NET, via=wan.peer4, wire=wan)
    medians = Medians(dut)
    for mtu in (1400, 1280, 1450, 1300, 1500):
        dut.ip(f"link set {wan.tap} mtu {mtu}")
        medians.until("MTU", lambda m=mtu: dut.port_row(wan)["mtu"] == m)
        dut.forwarded(lan, lan.probe(HOST, size=mtu, flags="DF"), wan)
        if mtu < 1500:
            reply = lan.srp1(lan.probe(HOST, size=mtu + 1, flags="DF"))
            assert reply[ICMP].nexthopmtu == mtu
    medians.are_in_time()


def test_an_mtu_beyond_the_device_is_not_in_force(dut, lan, wan):
    """The kernel's TAP accepts any MTU, the port's device does not: the device's maximum stays
    in force. A larger frame of the kernel is dropped whole, never cut."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.ip(f"link set {wan.tap} mtu 9000")
    eventually(lambda: " mtu=1500 mtu_max=1500" in dut.log(), 3, what="a warning")
    assert dut.port_row(wan)["mtu"] == 1500
    dut.forwarded(lan, lan.probe(HOST, size=1500, flags="DF"), wan)
    before = dut.counters()

    for size in (1800, 3000, 8900):
        head = Ether(dst=wan.mac, src=wan.port_mac, type=0x88B5)
        dut.taps["wan"].send(bytes(head) + bytes(size))

    eventually(lambda: dut.drops(before).get("mtu") == 3, 3)
    assert wan.got(lambda d: len(d) > 1514) == []


@pytest.mark.smoke
def test_an_interface_set_down_forwards_nothing(dut, lan, wan, alt):
    """RFC 1812, 5.2.1 with ifAdminStatus: a port that is set down neither sends nor
    receives."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route("203.0.113.0/24", via=alt.peer4, wire=alt)
    dut.forwarded(lan, lan.probe(HOST), wan)

    dut.ip(f"link set {wan.tap} down")

    dropped_in_time(dut, lan, lambda: lan.probe(HOST), "egress_down")
    dut.ip(f"link set {wan.tap} up")
    dut.neighbor(wan.peer4, wan)

    def passes():
        lan.send(probe := lan.probe(HOST))
        return wan.expect_raw(token_of(probe), 0.05)

    eventually(passes, 3, 0.01)


def test_an_interface_set_down_takes_nothing(dut, lan, wan, alt):
    """RFC 2863, 3.1.13: a port that is administratively down takes no packet, even directly
    after the forwarder has handled packets of another port."""
    dut.route("203.0.113.0/24", via=alt.peer4, wire=alt)
    dut.ip(f"link set {wan.tap} down")
    eventually(lambda: dut.port_row(wan)["link"] == "down", 2, 0.005)
    # Imitate a device whose driver cannot take the link down: it still receives frames.
    if not on_nics():
        netns.link_set(dut.dp, f"p-{wan.ifname}", True)
        # Until the far end has its carrier, the kernel drops what a program sends there.
        far = ["ip", "-j", "link", "show", wan.ifname]
        eventually(lambda: json.loads(netns.run(dut.far, far))[0]["operstate"] == "UP", 5, 0.01)
    probes, before = [wan.probe("203.0.113.9") for _ in range(20)], dut.counters()

    for probe in probes:
        dut.forwarded(lan, lan.probe("203.0.113.9"), alt)
        wan.send(probe)

    eventually(lambda: dut.drops(before) == {"ingress_down": len(probes)}, 3, 0.01)
    dut.fence(lan)
    for wire in dut.wires.values():
        assert [p for p in probes if wire.got(token_of(p))] == [], wire.name


def test_a_restart_keeps_taps_and_addresses_and_recovers(own_dut):
    """ifindex and addresses outlive the daemon. After the start zebra connects and replays its
    routes, and packets are forwarded."""
    dut = own_dut()
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)
    before = {w.tap: dut.link_row(w.tap)["ifindex"] for w in dut.wires.values()}
    addresses = netns.command(["ip", "-n", dut.ctl, "-o", "-4", "addr"])

    assert dut.stop() == 0
    assert {w.tap: dut.link_row(w.tap)["ifindex"] for w in dut.wires.values()} == before
    dut.start()

    assert {w.tap: dut.link_row(w.tap)["ifindex"] for w in dut.wires.values()} == before
    now = netns.command(["ip", "-n", dut.ctl, "-o", "-4", "addr"])
    assert now == addresses
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)


def test_a_port_that_a_bridge_takes_is_told_of(dut, lan, wan):
    """A TAP that is a member of a kernel bridge or bond is no interface of the dataplane.
    The kernel forwards packets routed by the bridge. Log, fpmctl and doctor name the bridge."""
    part_of = lambda: next(  # noqa: E731
        row["part_of"] for row in dut.control.ask("interfaces") if row["name"] == wan.tap
    )
    assert part_of() is None
    dut.ip("link add br7 type bridge", "link set br7 up", f"link set {wan.tap} master br7")
    try:
        eventually(lambda: part_of() == "br7", 5, 0.01, "shown")
        assert f"dev={wan.tap} part_of=br7" in dut.daemon.log(50)
        assert "member of br7" in dut.fpmctl("show", "interfaces", wan.tap).stdout
        done = dut.fpmctl("doctor", "members")
        assert done.returncode == 0
        assert f"WARN  members {wan.tap}" in done.stdout, done.stdout
        assert f"ip link set {wan.tap} nomaster" in done.stdout
        dut.ip("addr add 203.0.113.1/24 dev br7")
        wan.answer("203.0.113.2")
        state = lambda: dut.route_row("203.0.113.0/24")["state"]  # noqa: E731
        eventually(lambda: state() == "through-kernel", 5, 0.01, "a route by the bridge")
        before = dut.counters()
        assert dut.forwarded(lan, lan.probe("203.0.113.2"), wan)
        assert dut.moved(before, "punt")["kernel_route"] == 1
        # As in Linux the bridge is reached at its own MAC by each member, and bridges frames.
        dut.ip(f"link set {dut.wires['alt'].tap} master br7", "link set br7 address 02:00:00:00:77:01")
        alt = dut.wires["alt"]
        eventually(lambda: dut.link_row("br7")["address"] == "02:00:00:00:77:01", 5, 0.01)
        to_bridge = alt.probe(lan.peer4, src="203.0.113.3")
        to_bridge[Ether].dst = "02:00:00:00:77:01"
        bridged = alt.probe("203.0.113.2", src="203.0.113.3")
        bridged[Ether].dst = wan.mac
        for probe, out in ((to_bridge, lan), (bridged, wan)):
            eventually(lambda p=probe, o=out: alt.send(p) or o.got(token_of(p)), 10, 0.1, "by the kernel")
        tagged = bytes(bridged)[:12] + b"\x81\0\0\x64" + bytes(bridged)[12:]
        eventually(lambda: alt.send(tagged) or any(d[12:16] == tagged[12:16] for d in wan.got(token_of(tagged))), 10, 0.1)
    finally:
        dut.ip("link del br7")
    eventually(lambda: part_of() is None, 5, 0.01, "its own again")
    dut.route(NET, via=wan.peer4, wire=wan)
    assert dut.forwarded(lan, lan.probe(HOST), wan)
