# SPDX-License-Identifier: BSD-3-Clause
"""States of links and neighbors that operators report trouble with, at our router and at a Linux
router of equal configuration: `arp off`, odd MACs and addresses, links and macvlans that go down and
come back."""

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

from lib import netns
from lib.wait import eventually
from pair import HOST, NET, line, peer
from pair import both, routers  # noqa: F401
from router import is_icmp_error
from wire import token, token_of

ZEROS, VMAC = "00:00:00:00:00:00", "00:00:5e:00:01:05"
FAMILIES = pytest.mark.parametrize("family", [4, 6])


def sent_to(router, dst):
    """Return the MAC to which a router sends a packet that comes by lan and leaves by wan."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    lan.send(probe := lan.probe(dst))
    return wan.expect(token_of(probe), 1).dst


def both_send_to(both, dst, mac):  # noqa: F811
    """Wait until our router, and then the Linux router, send a packet to the MAC."""
    for router in both.both:
        eventually(lambda r=router: sent_to(r, dst) == mac, 5, 0.01, f"{dst} to {mac}")


def undo(both, *lines):  # noqa: F811
    """Run commands that undo earlier ones. Forget the outcomes of the last agree(), because they need
    not be true afterwards."""
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
    """Linux forgets the neighbors of the link, asks for none, and sends to the MAC of its own
    interface. A static neighbor still has its MAC."""
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
    """Our router forwards no packet from or to 240/4. But like Linux it accepts packets to its own
    addresses in 240/4."""
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


def test_a_link_in_mode_dormant_waits_for_its_supplicant(both, wan):  # noqa: F811
    """A supplicant of 802.1X sets this mode first, and the state `up` when the port is authorized.
    Until then FRR treats the link as down, even if it has carrier. The kernel forwards by the link
    nevertheless."""

    def wait_for(*states):
        # linkwatch of the kernel sets states once a second.
        for router in both.both:
            eventually(lambda r=router: r.link_row("wan0")["operstate"] in states, 5, 0.01, f"wan0 is {states}")

    both.ip("link set wan0 mode dormant")
    try:
        for up, states in ((False, ("DOWN", "LOWERLAYERDOWN")), (True, ("DORMANT",))):
            for router in both.both:
                netns.link_set(router.far, "wan", up)
            wait_for(*states)
        both.ip(f"neigh replace {wan.peer4} lladdr {wan.mac} dev wan0 nud permanent")
        both.zebra(NET[4], "wan")
        both.agree("dormant", {HOST[4]: "wan"})
        wait_for("DORMANT")
        both.ip("link set wan0 state up")
        wait_for("UP")
    finally:
        both.ip("link set wan0 mode default", "link set wan0 state up")


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
    again, Linux gives the macvlan its carrier, so that the Master and the Backup would both forward
    for the virtual router. Our router still takes no frame to its MAC (RFC 5798, 6.4.2)."""
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


def answer_to(wire, request, is_answer):
    """Send a request on a wire, and return the first frame that is an answer."""
    wire.clear()
    wire.send(bytes(request))
    return eventually(lambda: next(filter(is_answer, wire.got()), None), 2, 0.01)


def test_a_proxied_host_is_answered_for_and_reached(both):  # noqa: F811
    """`ip neigh add proxy` of both families: the kernel gets the request for the host, also a
    solicitation to a group of which no own address is a member. Packets to the host take its route."""
    lan = both.ours.wires["lan"]
    hosts = {4: "192.0.2.40", 6: lan.ip6.rpartition(":")[0] + ":7777"}
    both.sysctl({"net.ipv6.conf.lan0.proxy_ndp": 1, "net.ipv4.neigh.lan0.proxy_delay": 0,
                 "net.ipv6.neigh.lan0.proxy_delay": 0})  # fmt: skip
    for family, host in hosts.items():
        both.ip(f"neigh add proxy {host} dev lan0")
        both.ip(line(family, f"route add {host} via {peer(both, 'wan', family)} dev wan0"))
    try:
        arp = ARP(hwsrc=lan.mac, psrc=lan.peer4, pdst=hosts[4])
        group = "ff02::1:ff00:7777"
        ns = IPv6(src=lan.peer6, dst=group) / ICMPv6ND_NS(tgt=hosts[6])
        ns /= ICMPv6NDOptSrcLLAddr(lladdr=lan.mac)
        for router in both.both:
            wire = router.wires["lan"]
            request = Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff") / arp
            assert answer_to(wire, request, lambda d: d[12:14] == b"\x08\x06" and d[21] == 2)
            request = Ether(src=lan.mac, dst="33:33:ff:00:77:77") / ns
            assert answer_to(wire, request, lambda d: d[12:14] == b"\x86\xdd" and d[54] == 136)
        both.agree("route of a proxied host", {hosts[4]: "wan", hosts[6]: "wan"})
    finally:
        both.sysctl({"net.ipv6.conf.lan0.proxy_ndp": 0})
        for family, host in hosts.items():
            both.ip(f"neigh del proxy {host} dev lan0", line(family, f"route del {host}"))
        both.fates = {}


@FAMILIES
def test_a_neighbor_of_each_state_with_a_mac_is_used(both, wan, family):  # noqa: F811
    """NUD_NOARP, entries that another program learned, and entries whose MAC is the router's own, the
    broadcast MAC or a group: Linux sends to each of them."""
    gateway = peer(both, "wan", family)
    both.zebra(NET[family], "wan")
    entries = [(f"02:00:00:00:99:{n:02x}", f"nud {state}") for n, state in
               enumerate(["noarp", "reachable", "stale", "delay", "probe"])]  # fmt: skip
    entries += [("02:00:00:00:99:20", "extern_learn"), ("02:00:00:00:99:21", "nud stale extern_learn")]
    entries += [(mac, "nud permanent") for mac in
                (wan.port_mac, "ff:ff:ff:ff:ff:ff", "01:00:5e:01:02:03")]  # fmt: skip
    for mac, words in entries:
        both.ip(f"neigh replace {gateway} lladdr {mac} dev wan0 {words}")
        both_send_to(both, HOST[family], mac)


def test_requests_come_from_the_address_of_the_receivers_subnet(both, wan):  # noqa: F811
    """The ARP request for a host of a further subnet has the address of that subnet as its source; on
    an unnumbered link it has the address of the loopback device (inet_select_addr())."""
    both.ip("addr add 10.9.1.1/24 dev wan0", "addr add 10.9.9.1/32 dev lo")

    def asks_from(router, host):
        """Send packets to the host until the router asks for it, because the router may not have
        handled the last change yet. Return the source address of the request."""
        router.wires["wan"].clear()
        is_it = lambda d: d[12:14] == b"\x08\x06" and Ether(d)[ARP].pdst == host  # noqa: E731

        def asked():
            router.wires["lan"].send(router.wires["lan"].probe(host))
            return next(filter(is_it, router.wires["wan"].got()), None)

        return Ether(eventually(asked, 3, 0.05))[ARP].psrc

    try:
        assert [asks_from(r, "10.9.1.7") for r in both.both] == ["10.9.1.1"] * 2
        both.ip("addr del 10.9.1.1/24 dev wan0", f"addr del {wan.ip4}/26 dev wan0")
        both.ip("route add 10.9.5.7/32 dev wan0", "route add 10.9.6.0/24 via 10.9.5.7 dev wan0 onlink")
        both.answer("wan", "10.9.5.7")
        both_send_to(both, "10.9.6.7", wan.mac)
        for router in both.both:
            router.wires["wan"].silence("10.9.5.7")  # before the flush: no late request is answered
            router.ip("neigh flush to 10.9.5.7 dev wan0")
        assert [asks_from(r, "10.9.5.7") for r in both.both] == ["10.9.9.1"] * 2
    finally:
        undo(both, f"addr replace {wan.ip4}/26 dev wan0", "addr del 10.9.9.1/32 dev lo")


def test_an_address_of_several_interfaces_stays_until_the_last_has_lost_it(both, wan):  # noqa: F811
    """The same address on lo, wan and ext is the router's while one of them has it."""
    own = "10.9.77.1"
    both.ip(*(f"addr add {own}/32 dev {name}" for name in ("lo", "wan0", "ext0")))
    for change in ("link set wan0 down", f"addr del {own}/32 dev lo", "link set wan0 up",
                   f"addr del {own}/32 dev ext0"):  # fmt: skip
        both.ip(change, f"route replace {NET[4]} via {peer(both, 'ext', 4)} dev ext0")
        both.agree("an address elsewhere", {HOST[4]: "ext", own: "local"})
        both.ip(f"route del {NET[4]}")
    both.ip(f"addr del {own}/32 dev wan0")
    both.agree("the last address", {own: "no route"})


@pytest.fixture
def announced(both, wan):  # noqa: F811
    """Both routers announce their addresses on wan, and keep them while the link is down."""
    words = {"ipv4": "arp_notify", "ipv6": "ndisc_notify"}
    keys = {f"net.{family}.conf.wan0.{word}": 1 for family, word in words.items()}
    keys["net.ipv6.conf.wan0.keep_addr_on_down"] = 1
    both.sysctl(keys)
    yield wan
    both.sysctl(dict.fromkeys(keys, 0))


def announcements(router):
    """Return {(source MAC, address, MAC of the address)} of the gratuitous ARP requests, and of the
    unsolicited advertisements to all nodes, which a router has sent on wan."""
    wire = router.wires["wan"]
    asked = [p for p in wire.sniffed(ARP) if p[ARP].psrc == p[ARP].pdst and p[ARP].op == 1]
    told = [p for p in wire.sniffed(ICMPv6ND_NA) if p[IPv6].dst == "ff02::1"]
    for p in told:
        sums, p[ICMPv6ND_NA].cksum = p[ICMPv6ND_NA].cksum, None
        assert Ether(bytes(p))[ICMPv6ND_NA].cksum == sums
        assert (p[ICMPv6ND_NA].R, p[ICMPv6ND_NA].S, p[ICMPv6ND_NA].O, p[IPv6].hlim) == (1, 0, 1, 255)
        assert (p.dst, p[IPv6].src) == ("33:33:00:00:00:01", p[ICMPv6ND_NA].tgt)
    return {(p.src, p[ARP].psrc, p[ARP].hwsrc) for p in asked if p.dst == "ff:ff:ff:ff:ff:ff"} | {
        (p.src, p[ICMPv6ND_NA].tgt, p[ICMPv6NDOptDstLLAddr].lladdr) for p in told
    }


def test_the_addresses_of_a_link_that_is_set_up_are_announced(both, announced):  # noqa: F811
    """arp_notify and ndisc_notify: the kernel sends the frames by a TAP that has no carrier yet, which
    would lose them. A switch beside the router needs them, because it learns the MAC by them."""
    wan, macs = announced, {announced.port_mac, "02:00:00:00:ab:01"}
    both.ip("addr add 10.9.0.1/24 dev wan0", "addr add 10.9.0.2/24 dev wan0")
    try:
        for mac in sorted(macs, reverse=True):  # the kernel announces a new MAC, too
            for router in both.both:
                router.wires["wan"].clear()
            both.ip(f"link set wan0 address {mac}")
            wanted = {(mac, a, mac) for a in (wan.ip4, wan.ip6, "10.9.0.1", "10.9.0.2")}
            for router in both.both:
                eventually(lambda r=router, w=wanted: w <= announcements(r), 5, 0.02, "a new MAC")
        both.ip("link set wan0 down")
        eventually(lambda: both.ours.port_row(wan)["link"] == "down", 5, 0.01)
        for router in both.both:
            router.wires["wan"].clear()
        both.ip("link set wan0 up")
        for router in both.both:
            eventually(lambda r=router: wanted <= announcements(r), 5, 0.02, "set up")
            # An address is announced when no duplicate was found, which takes a second.
            argv = ["ip", "-n", router.ctl, "-6", "addr", "show", "dev", "wan0", "tentative"]
            eventually(lambda a=argv: not netns.command(a), 10, 0.05, "no tentative address")

        # A carrier that comes back announces nothing.
        for router in both.both:
            netns.link_set(router.far, "wan", False)
        eventually(lambda: both.ours.port_row(wan)["link"] == "down", 5, 0.01)
        for router in both.both:
            router.collector.catch_up()  # the collector reads the announcements of the steps above
            router.wires["wan"].clear()
            netns.link_set(router.far, "wan", True)
        eventually(lambda: both.ours.port_row(wan)["link"] == "up", 5, 0.01)
        both.ours.fence(wan)
        assert [announcements(r) for r in both.both] == [set(), set()]
    finally:
        undo(both, f"link set wan0 address {wan.port_mac}", "addr flush dev wan0 to 10.9.0.0/16")


def test_a_carrier_that_another_program_takes_is_restored(both, wan):  # noqa: F811
    """A NIC refuses `ip link set carrier`, and a TAP accepts it. FRR would see a lost link although
    the device has its link. The dataplane alone sets the carrier of a TAP."""
    ours = both.ours
    flags = lambda: ours.link_row("wan0")["flags"]  # noqa: E731
    ours.ip("link set wan0 carrier off")
    eventually(lambda: "NO-CARRIER" in flags(), 5, 0.01)

    eventually(lambda: "LOWER_UP" in flags(), 10, 0.05, "restored")
    said = "carrier of tap changed by another program port=wan0 restored=up"
    eventually(lambda: said in ours.daemon.log(50), 5, 0.05, "the line of the log")
    eventually(lambda: both.fate(ours, wan.ip4) == "local", 5, 0.05)


SOURCES = {
    "host scope": ("lan0", ["10.9.0.1/24 dev lan0 scope host"], "wan"),
    "link scope": ("lan0", ["10.9.0.1/24 dev lan0 scope link"], "10.9.0.1"),
    "link scope of another link": ("wan0", ["10.9.0.1/24 dev wan0 scope link"], "alt"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_the_scope_of_an_address_limits_its_use(both, wan, case):  # noqa: F811
    """The source of an ICMP error is no address of scope host, and is an address of scope link only on
    the link of this address (inet_select_addr() of Linux). The ingress interface has no other
    address."""
    dev, addresses, source = SOURCES[case]
    source = both.ours.wires[source].ip4 if source in both.ours.wires else source
    lan = both.ours.wires["lan"]
    both.zebra(NET[4], "ext")
    both.sysctl({"net.ipv4.icmp_errors_use_inbound_ifaddr": 1})
    both.ip("addr flush dev lan0 scope global", f"addr flush dev {dev} scope global", *(f"addr add {a}" for a in addresses),
            f"route add {lan.peer4} dev lan0", f"neigh replace {lan.peer4} lladdr {lan.mac} dev lan0 nud permanent")  # fmt: skip
    try:
        for router in both.both:
            eventually(lambda r=router: error_source(r) == source, 5, 0.05, f"{case}: {source}")
    finally:
        both.sysctl({"net.ipv4.icmp_errors_use_inbound_ifaddr": 0})
        undo(both, f"addr flush dev {dev}", f"route flush {lan.peer4}", f"addr replace {lan.ip4}/26 dev lan0",
             f"addr replace {wan.ip4}/26 dev wan0", f"addr replace {lan.ip6}/64 dev lan0 nodad", f"addr replace {wan.ip6}/64 dev wan0 nodad",
             f"neigh replace {lan.peer4} lladdr {lan.mac} dev lan0 nud permanent")  # fmt: skip


def error_source(router):
    """Return the source of the error about a packet whose TTL ends at a router."""
    lan = router.wires["lan"]
    lan.send(probe := lan.probe(HOST[4], ttl=1))
    return lan.expect(lambda data: token_of(probe) in data and is_icmp_error(data), 1)[IP].src


def test_the_bridge_decides_about_packets_of_its_members(both, wan):  # noqa: F811
    """A member of a bridge, bond or team receives a packet. For Linux its ingress interface is the
    bridge, bond or team, whose sysctls, VRF and rules count. The packet may be to the MAC of the port,
    because the bridge has this MAC, too."""
    lan = both.ours.wires["lan"]
    host = {4: "10.9.0.2", 6: "2001:db8:9::2"}

    def passes(router, family):
        wire = router.wires["wan"]
        wire.send(probe := wire.probe(lan.peer(family), src=host[family]))
        router.fence(router.wires["lan"])
        return bool(router.wires["lan"].got(token_of(probe)))

    def agree(passing):
        for router in both.both:
            for family in (4, 6):
                eventually(lambda r=router, f=family: passes(r, f) is passing, 5, 0.1, f"IPv{family}: {passing}")

    both.ip(
        f"link add br7 address {wan.port_mac} type bridge", "link set br7 up", "link set wan0 master br7",
        "addr add 10.9.0.1/24 dev br7", "addr add 2001:db8:9::1/64 dev br7 nodad",
        *(f"neigh replace {a} lladdr {wan.mac} dev br7 nud permanent" for a in host.values()),
    )  # fmt: skip
    try:
        both.sysctl({"net.ipv4.conf.all.rp_filter": 1})
        agree(True)
        both.sysctl({"net.ipv4.conf.br7.forwarding": 0, "net.ipv6.conf.all.forwarding": 0})
        agree(False)
    finally:
        both.sysctl({"net.ipv4.conf.all.rp_filter": 0, "net.ipv6.conf.all.forwarding": 1})
        undo(both, "link del br7", f"addr replace {wan.ip6}/64 dev wan0 nodad")


def test_a_bridge_has_link_local_addresses_and_ipv6_of_its_own(both, wan):  # noqa: F811
    """A frame that a member of a bridge receives is one of the bridge for Linux. So a link-local
    address of the bridge is reached although the port lacks it, and IPv6 that is off on the port is
    on at the bridge. A bridge forwards a broadcast frame whatever its IP addresses are."""

    def replies(router, dst, frame_dst):
        wire, mark = router.wires["wan"], token()
        wire.send(Ether(src=wire.mac, dst=frame_dst) / IPv6(src="fe80::9", dst=dst) / ICMPv6EchoRequest(data=mark))
        router.fence(router.wires["lan"])
        return bool(wire.got(mark))

    def bridged(router):
        wire = router.wires["wan"]
        probe = wire.probe("198.18.5.255", src="198.18.5.1")
        probe[Ether].dst = "ff:ff:ff:ff:ff:ff"
        wire.send(probe)
        router.fence(router.wires["lan"])
        return bool(router.wires["alt"].got(token_of(probe)))

    both.ip(
        f"link add br7 address {wan.port_mac} type bridge", "link set br7 up",
        "link set wan0 master br7", "link set alt0 master br7", "addr add fe80::7/64 dev br7 nodad",
        f"neigh replace fe80::9 lladdr {wan.mac} dev br7 nud permanent",
    )  # fmt: skip
    try:
        for router in both.both:
            eventually(lambda r=router: replies(r, "fe80::7", wan.port_mac), 5, 0.1, "an address of the bridge")
            eventually(lambda r=router: bridged(r), 5, 0.1, "a broadcast of another subnet")
        both.sysctl({"net.ipv6.conf.wan0.disable_ipv6": 1})
        eventually(lambda: both.ours.port_row(wan)["forwarding"] == "ipv4", 5, 0.05, "the setting is read")
        for router in both.both:
            for dst, to in (("fe80::7", wan.port_mac), ("ff02::1", "33:33:00:00:00:01")):
                eventually(lambda r=router, d=dst, t=to: replies(r, d, t), 5, 0.1, f"IPv6 of the bridge: {dst}")
    finally:
        both.sysctl({"net.ipv6.conf.wan0.disable_ipv6": 0})
        undo(both, "link del br7", *(f"addr replace {both.ours.wires[n].ip6}/64 dev {n}0 nodad" for n in ("wan", "alt")))
