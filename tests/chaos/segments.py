# SPDX-License-Identifier: BSD-3-Clause
"""Headends and end points of SRv6, and routes into a VXLAN, that change all the time. A headend has a
segment of its own in each announcement, so that the outer headers of a packet show the announcement by
which it was forwarded. The bridge over the VXLAN and its neighbors are the kernel's."""

import ipaddress
import itertools
import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from chaos.announcer import Announcer
from chaos.labelled import FIRST_ID, INSIDE, TAPS, VIAS
from chaos.oracle import VX, Cell
from chaos.traffic import HOPS, VNI, VXLAN_PORT
from lab import routes, topology
from lib import fpm_speaker as fpm
from lib import netns
from lib.fpm_speaker import attr
from lib.wait import eventually

N = 64  # routes of each kind
IN_USE = 8  # routes of each kind that carry traffic
HEAD4 = [f"100.66.{n}.0/24" for n in range(N)]  # prefixes behind headends
HEAD6 = [f"2001:db8:{0x6000 + n:x}::/48" for n in range(N)]
VX4 = [f"100.67.{n}.0/24" for n in range(N)]  # prefixes behind other VTEPs
VX6 = [f"2001:db8:{0x7000 + n:x}::/48" for n in range(N)]
OWN = "2001:db8:e000::/48"  # this router's SIDs
# Blackhole routes for packets whose route is withdrawn: in the dataplane and in the kernel. The kernel gets
# packets while forwarders do not know all that they need of a neighbor or of the kernel. It knows none of
# the routes of this file, so it must drop these packets, too.
DROPPED = [OWN, "100.66.0.0/16", "100.67.0.0/16", "2001:db8:6000::/36", "2001:db8:7000::/36"]
DROPPED_BY_KERNEL = ["100.66.0.0/15", "2001:db8:e000::/47", "2001:db8:6000::/35"]
SIDS = [f"2001:db8:e000:{n:x}::1/128" for n in range(N)]
TO_MAIN = "2001:db8:e000:ffff::1"  # a SID that leads to table main all the time
NEXT = "2001:db8:f100::9"  # the last segment of packets to End.X
# Where the segments and the VTEPs of other routers are: behind one link each, or behind two.
PLACES = {"core0": ("core0",), "core1": ("core1",), "wan": ("wan",), "both": ("core0", "core1")}
LOCATORS = {place: f"2001:db8:f1{n}0::/48" for n, place in enumerate(PLACES, 1)}
VTEPS = {f"10.255.{n}.{host}": place for n, place in enumerate(PLACES) for host in (1, 2)}
OWN_VTEP, BRIDGE_MAC = "10.255.255.1", "02:00:5e:00:99:01"
SEG6, SEG6LOCAL = 5, 7  # LWTUNNEL_ENCAP_*
ACTION, TABLE, NH4, NH6, FLAVORS = 1, 3, 4, 5, 11  # SEG6_LOCAL_*
END_X, DX6, DX4, DT46 = 2, 5, 6, 16
FLAVOR_OPERATION, PSP = 1, 1 << 1
ENCAP, ENCAP_RED = 1, 3  # SEG6_IPTUN_MODE_*
LO, MAIN = 1, 254


def behind(entry, head, flow):
    """Put outer headers before a packet, which still lacks its number. `entry` is VX for a packet from
    another VTEP, or the SID that is the destination. A SID with an even number is an End.X."""
    frame, inside = Ether(head[:14]), head[14:] + bytes(8)
    macs, six = Ether(src=frame.src, dst=frame.dst), inside[0] >> 4 == 6
    if entry == VX:
        inner = Ether(src="02:00:5e:00:99:66", dst=BRIDGE_MAC, type=frame.type) / Raw(inside)
        udp = UDP(sport=50000 + flow, dport=VXLAN_PORT, chksum=0)
        vxlan = IP(src=next(iter(VTEPS)), dst=OWN_VTEP, ttl=HOPS) / udp / VXLAN(flags=8, vni=VNI) / inner
        return bytes(macs / vxlan)[:-8]
    ip = IPv6(src=topology.LAN6, dst=entry, hlim=HOPS, nh=41 if six else 4)
    if _is_end_x(entry):
        ip.nh = 43
        ip /= IPv6ExtHdrSegmentRouting(nh=41 if six else 4, addresses=[NEXT, entry], segleft=1, lastentry=1)
    return bytes(macs / ip / Raw(inside))[:-8]


def _is_end_x(sid):
    return sid != TO_MAIN and int(sid.split(":")[3], 16) % 2 == 0


class Segments(Announcer):
    """The headends, the end points and the VXLAN of a bed."""

    def __init__(self, bed, rng):
        super().__init__(bed, rng, FIRST_ID + (FIRST_ID >> 1))
        self.fresh = itertools.cycle(range(1, 1 << 32))
        self.oif = 0  # index of the bridge over the VXLAN
        self.macs = {vtep: self._mac(rng) for vtep in VTEPS}  # router MACs of the other VTEPs

    @staticmethod
    def _mac(rng):
        return b"\x02\x88" + rng.randbytes(4)

    def make_vxlan(self):
        """Make the kernel's bridge over a VXLAN, and wait until forwarders serve it."""
        space = self.bed.ns["r1"]
        vxlan = f"id {VNI} local {OWN_VTEP} dstport {VXLAN_PORT} nolearning noudpcsum"
        netns.ip_batch([
            f"addr add {OWN_VTEP}/32 dev lo",
            *(f"{'-6 ' * (':' in x)}route add blackhole {x}" for x in DROPPED_BY_KERNEL),
            f"link add vx1 type vxlan {vxlan}",
            f"link add br1 address {BRIDGE_MAC} type bridge",
            "link set vx1 master br1 addrgenmode none",
            "link set br1 addrgenmode none",
        ], space)  # fmt: skip
        netns.sysctl(space, {
            "net.ipv6.conf.br1.accept_dad": 0,
            "net.ipv6.conf.br1.disable_ipv6": 0,
            "net.ipv6.conf.br1.keep_addr_on_down": 1,
            "net.ipv4.conf.br1.rp_filter": 0,
        })  # fmt: skip
        netns.ip_batch([
            "addr add 10.254.0.1/24 dev br1",
            "-6 addr add 2001:db8:9f::1/64 dev br1 nodad",
            "link set vx1 up",
            "link set br1 up",
        ], space)  # fmt: skip
        self.say_neighbors()
        served = lambda: any(r["name"] == "br1" and "rx_packets" in r for r in self.bed.dp.show("interfaces"))  # noqa: E731
        eventually(served, 20, 0.1, "forwarders serve the bridge over the VXLAN")
        self.oif = next(r["ifindex"] for r in self.bed.links("r1") if r["ifname"] == "br1")

    def say_neighbors(self, *vteps):
        """Tell the kernel the router MACs of these VTEPs, or of all, as zebra does."""
        lines = []
        for vtep in vteps or VTEPS:
            mac = self.macs[vtep].hex(":")
            for six, to in (("", vtep), ("-6 ", f"::ffff:{vtep}")):
                lines.append(f"{six}neigh replace {to} lladdr {mac} dev br1 nud noarp extern_learn")
            fdb = ["fdb", "replace", mac, "dev", "vx1", "dst", vtep]
            netns.command(["bridge", "-n", self.bed.ns["r1"], *fdb])
        netns.ip_batch(lines, self.bed.ns["r1"])

    def router_mac_moves(self, vtep, mac):
        """Give a VTEP another router MAC."""
        was, self.macs[vtep] = self.macs[vtep].hex(":"), mac
        self.say_neighbors(vtep)
        netns.command(["bridge", "-n", self.bed.ns["r1"], "fdb", "del", was, "dev", "vx1"])

    def make_cells(self, others):
        """Return the cells of prefixes and SIDs with traffic, and of `others` behind a SID that leads to
        table main, and behind the VXLAN."""
        for n, text in enumerate(self.rng.sample(SIDS, IN_USE)):
            cell = self.cells[text] = Cell("sid", "", INSIDE[n % 2])
            cell.entry, cell.hops = text.split("/")[0], ()
        for table, family in ((HEAD4, 4), (HEAD6, 6), (VX4, 4), (VX6, 6)):
            for text in self.rng.sample(table, IN_USE // 2):
                host = routes.host(routes.parse(text)[0], family, self.rng)
                cell = self.cells[text] = Cell("lsp", text, host)
                cell.hops = ()
        inside = []
        for entry in (TO_MAIN, VX):
            for one in others:
                cell = Cell(one.kind, one.prefix, one.host)
                cell.entry = entry
                inside.append(cell)
        return [*self.cells.values(), *inside]

    def announce_all(self):
        """Announce the first routes. Wait until the dataplane has them."""
        self.oracle = self.bed.oracle
        self.oracle.rmacs = {vtep: {mac} for vtep, mac in self.macs.items()}
        eventually(lambda: self.bed.dp.fpm()["srv6_source"], 20, 0.1, "the source of SRv6 is known")
        self._tell(*(word for key in self._always() for word in (key, *self._fixed(key))))
        self._change({key: self._some(self.rng, key, True) for key in self.keys()})
        there = lambda: len(self.bed.dp.show("sids")) == len(SIDS) + 1  # noqa: E731
        eventually(there, 20, 0.1, "the dataplane has the SIDs")

    @staticmethod
    def _always():
        """Return the prefixes that do not change."""
        return [*DROPPED, TO_MAIN + "/128", *LOCATORS.values(), *(f"{vtep}/32" for vtep in VTEPS)]

    def _fixed(self, key):
        """Return the frames of a prefix that does not change."""
        if key in DROPPED:
            frames = fpm.frame(fpm.route_message(key, rtm_type=fpm.RTN_BLACKHOLE))
            return frames, frames
        if key == TO_MAIN + "/128":
            return self._route(key, [self._local(DT46, attr(TABLE, MAIN))])
        six = ":" in key
        place = next(p for p, loc in LOCATORS.items() if loc == key) if six else VTEPS[key.split("/")[0]]
        hops = [{"gateway": VIAS[x][six], "oif": self.bed.ifindexes[TAPS[x]]} for x in PLACES[place]]
        return self._route(key, hops)

    @staticmethod
    def _local(action, *attributes):
        """Return the next hop of an end point. Its interface has no effect, but zebra sends one."""
        return {"oif": LO, "encap": (SEG6LOCAL, attr(ACTION, action) + b"".join(attributes))}

    def keys(self):
        return [*SIDS, *HEAD4, *HEAD6, *VX4, *VX6]

    def withdraw_all(self):
        """Withdraw all these routes: zebra knows none of them."""
        self._change({key: () for key in self.keys()})
        for key in self._always():
            now = fpm.frame(fpm.route_del_message(key))
            now += b"".join(fpm.frame(fpm.nexthop_del_message(n)) for n in reversed(self.known.get(key, ())))
            self._tell(key, b"", now)
        gone = lambda: not self.bed.dp.show("sids")  # noqa: E731
        eventually(gone, self.bed.patience(20), 0.1, "no SID is left")

    def _some(self, rng, key, there=False):
        if not there and rng.random() < 0.2:
            return ()
        if key in SIDS:
            words = rng.choice(((NEXT, "/2"), (NEXT,))) if _is_end_x(key) else ()
            return ((rng.choice(("core0", "core1", "wan")), words),)
        if key in VX4 or key in VX6:
            vtep = rng.choice(list(VTEPS))
            return tuple((link, (VX, vtep)) for link in PLACES[VTEPS[vtep]])
        place = rng.choice(list(PLACES))
        listed = [self._segment(place) for _ in range(rng.choice((1, 1, 2, 3)))]
        reduced = rng.random() < 0.5
        size = len(listed) - reduced
        words = (*listed, f"/{size}") if size else tuple(listed)
        return tuple((link, words) for link in PLACES[place])

    def _segment(self, place):
        number = next(self.fresh)
        return str(ipaddress.ip_network(LOCATORS[place])[number << 16 | 1])

    def _frames(self, key, hops):
        if not hops:
            return self._route(key, ())
        (link, words), six = hops[0], ":" in key
        if key in SIDS:
            return self._route(key, [self._end_point(key, link, words)])
        if words[0] == VX:
            gateway = f"::ffff:{words[1]}" if six else words[1]
            return self._route(key, [{"gateway": gateway, "oif": self.oif, "onlink": True}])
        listed = [word for word in words if word[0] != "/"]
        mode = ENCAP if words[-1] == f"/{len(listed)}" else ENCAP_RED
        last = len(listed) - 1
        packed = b"".join(ipaddress.ip_address(sid).packed for sid in reversed(listed))
        header = bytes([0, 2 * len(listed), 4, last, last, 0, 0, 0]) + packed
        # The route to the first segment decides, not this gateway.
        hop = {"gateway": VIAS["wan"][1], "oif": self.bed.ifindexes[TAPS["wan"]]}
        hop["encap"] = (SEG6, attr(1, struct.pack("=I", mode) + header))
        return self._route(key, [hop])

    def _end_point(self, key, link, words):
        to4, to6 = (ipaddress.ip_address(via).packed for via in VIAS[link])
        if _is_end_x(key.split("/")[0]):
            psp = [] if "/2" in words else [attr(FLAVORS, attr(FLAVOR_OPERATION, PSP))]
            return self._local(END_X, attr(NH6, to6), *psp)
        cell = self.cells.get(key)
        if cell and cell.family == 6:
            return self._local(DX6, attr(NH6, to6))
        return self._local(DX4, attr(NH4, to4))


def another_mac(rng):
    """Return a router MAC that no VTEP has."""
    return b"\x02\x89" + rng.randbytes(4)
