# SPDX-License-Identifier: BSD-3-Clause
"""Random commands about VLANs, VRFs, tunnels, labels and their routes, and frames that show their effect.
A sequence is a list of steps. A step is a list of commands that are given at once. Each command is a
line of `ip -batch`, with the option of its family before it, or `sysctl KEY VALUE`."""

import ipaddress
import struct
from dataclasses import dataclass

from ipv4 import checksum
from lib.links import far_mac, port_mac
from wire import token

WIRES = ("lan", "wan", "alt", "ext")
PORTS = tuple(f"{name}0" for name in WIRES)
# The port that stays as it is, because fences use it. It may have VLANs.
CALM = "ext0"
TABLES = {"red": 100, "blue": 2000}
MORE_TABLE = 300  # a table that only rules name
VLANS = ("v1", "v2", "v3", "v4", "v5")
TUNNELS = ("t1", "t2")
KINDS = ("gre", "ipip", "sit", "ip6gre", "ip6tnl")
C, S = 0x8100, 0x88A8
IDS = {"v1": (C, 10), "v2": (C, 20), "v3": (S, 30), "v4": (C, 40), "v5": (C, 10)}
NETS = {4: ("198.51.100.0/24", "198.51.100.128/25", "203.0.113.0/24", "0.0.0.0/0"),
        6: ("2001:db8:a::/48", "2001:db8:a:1::/64", "2001:db8:b::/48", "::/0")}  # fmt: skip
HOSTS = {4: ("198.51.100.9", "198.51.100.200", "203.0.113.9", "198.18.0.9"),
         6: ("2001:db8:a::9", "2001:db8:a:1::9", "2001:db8:b::9", "2001:db8:77::9")}  # fmt: skip
LABELS = (100, 101, 102)
FAR_LABELS = (200, 201, 3)
MODULES = "8021q vrf mpls_router mpls_iptunnel ip_gre ipip sit ip6_gre ip6_tunnel".split()


def address(name, family, host):
    """Return the address of a host in the subnet of an interface. Host 1 is the router."""
    if name in PORTS:
        n = PORTS.index(name)
        return f"192.0.2.{64 * n + host}" if family == 4 else f"2001:db8:{n or len(PORTS)}::{host}"
    # v4 and v5 have the same IPv4 subnet.
    n = {**{v: 10 + i for i, v in enumerate(VLANS)}, "v5": 13 if family == 4 else 14, "t1": 20, "t2": 21}[name]
    return f"10.0.{n}.{host}" if family == 4 else f"2001:db8:f{n}::{host}"


def plen(name, family):
    """Return the length of the subnet of an interface."""
    return 64 if family == 6 else 26 if name in PORTS else 24


def option(family):
    """Return the option of `ip` for a family."""
    return {4: "", 6: "-6 ", "mpls": "-M "}[family]


@dataclass
class Link:
    """An interface as the commands left it, if they all succeeded."""

    slot: str
    name: str
    kind: str
    parent: str = ""
    tags: tuple = ()
    up: bool = True
    master: str = ""
    mac: str = ""
    six: bool = True
    four: bool = True
    own_mac: bool = False  # it does not follow the MAC address of the interface below
    under: str = ""  # a tunnel: the interface with its local address
    bound: bool = False  # a tunnel: it has `dev`


class Maker:
    """Makes the steps of a sequence, and keeps a model of the state."""

    def __init__(self, rnd, subjects=("vlan", "vrf", "route", "rule")):
        self.rnd, self.subjects = rnd, subjects
        self.links = {p: Link(p, p, "port", mac=port_mac(n)) for n, p in enumerate(PORTS)}
        self.vrfs = {}  # name: up
        self.ruled = False  # there were changes of rules

    # -- choices --

    def some(self, *kinds):
        """Return a random interface of these kinds, or None."""
        rows = [x for x in self.links.values() if x.kind in kinds]
        return self.rnd.choice(rows) if rows else None

    def maybe(self, share):
        """Return True in this share of the calls."""
        return self.rnd.random() < share

    def table(self):
        """Return a random table."""
        return self.rnd.choice(("main", "main", 100, 100, 2000, MORE_TABLE))

    # -- steps --

    def first(self):
        """Return the commands of the first step, which makes interfaces and routes of all kinds."""
        lines = self.vrf_add() + self.vrf_add() * self.maybe(0.7)
        for _ in range(self.rnd.choice((2, 3, 4))):
            lines += self.vlan_add()
        for _ in range(self.rnd.choice((1, 2, 3))):
            lines += self.enslave()
        if "mpls" in self.subjects:
            lines += [f"sysctl net/mpls/conf/{x.name}/input 1" for x in self.links.values() if self.maybe(0.8)]
            for _ in range(4):
                lines += self.label() + self.label_push()
        if "tunnel" in self.subjects:
            lines += self.tunnel() + self.tunnel()
            for _ in range(4):
                lines += self.tunnel_route()
        for _ in range(8):
            lines += self.route()
        return lines + self.settle()

    def step(self):
        """Return the commands of a step."""
        lines = []
        for _ in range(self.rnd.choice((1, 2, 2, 3, 4, 6, 9))):
            lines += self.change()
        return lines + self.settle()

    def settle(self):
        """Return commands that give interfaces their neighbors again, and mostly their IPv6 addresses,
        because the kernel deletes them with many changes."""
        lines, six = [], self.maybe(0.75)
        for link in self.links.values():
            if link.kind == "tunnel":
                continue
            if six and link.six:
                lines.append(f"addr replace {address(link.slot, 6, 1)}/64 dev {link.name} nodad")
            for family, host in ((4, 2), (6, 2), (4, 3), (6, 3)):
                lines.append(f"neigh replace {address(link.slot, family, host)} lladdr {neighbor_mac(link)} "
                             f"dev {link.name} nud permanent")  # fmt: skip
        return lines

    def change(self):
        """Return the commands of one change."""
        weights = {
            "vlan": {self.vlan_add: 5, self.link_del: 1, self.rename: 1},
            "vrf": {self.vrf_add: 3, self.vrf_del: 1, self.enslave: 5, self.release: 2, self.vrf_rename: 0.5},
            "route": {self.route: 10, self.route_del: 4, self.flush: 1},
            "link": {self.up_down: 3, self.mtu: 1, self.mac: 1, self.addresses: 2, self.sysctl: 1},
            "rule": {self.rule: 2, self.l3mdev: 0.5},
            "nexthop": {self.nexthop: 2, self.nexthop_route: 2},
            "mpls": {self.label: 5, self.label_del: 2, self.label_input: 2, self.label_push: 3},
            "tunnel": {self.tunnel: 4, self.link_del: 0.5, self.tunnel_change: 2, self.tunnel_route: 3},
        }
        chosen = {f: w for s in self.subjects for f, w in weights[s].items()}
        for _ in range(50):
            (change,) = self.rnd.choices(list(chosen), chosen.values())
            if lines := change():
                return lines
        return []

    # -- links --

    def vlan_add(self):
        free = [v for v in VLANS if v not in self.links]
        if not free:
            return []
        slot = self.rnd.choice(free)
        if slot == "v4":
            parent = self.links.get(self.rnd.choice(("v3", "v3", "v1")))
        else:
            parent = self.some("port")
        if parent is None:
            return []
        kind, vid = IDS[slot]
        if any(x.parent == parent.slot and x.tags[-1] == (kind, vid) for x in self.links.values() if x.kind == "vlan"):
            return []
        link = self.links[slot] = Link(slot, slot, "vlan", parent.slot, (*parent.tags, (kind, vid)), mac=parent.mac)
        protocol = "802.1ad" if kind == S else "802.1Q"
        lines = [f"link add link {parent.name} name {slot} type vlan protocol {protocol} id {vid}"]
        if self.vrfs and self.maybe(0.3):
            link.master = self.rnd.choice(list(self.vrfs))
            lines.append(f"link set {slot} master {link.master}")
        lines.append(f"link set {slot} up")
        return lines + [f"addr add {address(slot, f, 1)}/{plen(slot, f)} dev {slot} nodad" for f in (4, 6)]

    def link_del(self):
        link = self.some("vlan", "tunnel")
        if link is None:
            return []
        self.forget(link)
        return [f"link del {link.name}"]

    def forget(self, link):
        """Remove an interface and those above it from the model."""
        self.links.pop(link.slot, None)
        for other in list(self.links.values()):
            if other.parent == link.slot:
                self.forget(other)

    def rename(self):
        link = self.some("vlan")
        if link is None:
            return []
        old, link.name = link.name, link.slot.replace("v", "u") if link.name == link.slot else link.slot
        lines = [f"link set {old} down", f"link set {old} name {link.name}"]
        link.up = self.maybe(0.9)
        return lines + [f"link set {link.name} up"] * link.up

    def movable(self, *kinds):
        """Return a random interface that may change, or None."""
        link = self.some(*kinds)
        return None if link is None or link.name == CALM else link

    def up_down(self):
        link = self.movable("port", "vlan", "vlan", "tunnel")
        if link is None:
            return []
        if link.up and self.maybe(0.5):
            return [f"link set {link.name} down", f"link set {link.name} up"]
        link.up = not link.up
        return [f"link set {link.name} {'up' if link.up else 'down'}"]

    def mtu(self):
        link = self.movable("port", "vlan", "tunnel")
        return [] if link is None else [f"link set {link.name} mtu {self.rnd.choice((1500, 1500, 1400, 1280, 1200))}"]

    def mac(self):
        link = self.movable("port", "vlan", "vlan")
        if link is None:
            return []
        self.set_mac(link, self.rnd.choice((f"02:00:00:00:bb:{self.rnd.randrange(3):02x}", parent_mac(self.links, link))))
        link.own_mac = True
        return [f"link set {link.name} address {link.mac}"]

    def set_mac(self, link, mac):
        """Note the MAC address of an interface, and of those above it that follow it."""
        link.mac = mac
        for other in self.links.values():
            if other.parent == link.slot and not other.own_mac:
                self.set_mac(other, mac)

    def addresses(self):
        link = self.movable("port", "vlan", "tunnel")
        if link is None:
            return []
        if self.maybe(0.2):
            link.four = link.six = False
            return [f"addr flush dev {link.name}"]
        family = self.rnd.choice((4, 6))
        has = link.four if family == 4 else link.six
        if family == 4:
            link.four = not has
        else:
            link.six = not has
        words = f"{address(link.slot, family, 1)}/{plen(link.slot, family)} dev {link.name}"
        return [f"addr del {words}" if has else f"addr add {words} nodad"]

    def sysctl(self):
        link = self.movable("port", "vlan")
        if link is None:
            return []
        if self.maybe(0.5):
            return [f"sysctl net/ipv4/conf/{link.name}/forwarding {self.rnd.choice((0, 1, 1))}"]
        return [f"sysctl net/ipv6/conf/{link.name}/disable_ipv6 {self.rnd.choice((0, 0, 1))}"]

    # -- VRFs --

    def vrf_add(self):
        free = [v for v in TABLES if v not in self.vrfs]
        if not free:
            return []
        name = self.rnd.choice(free)
        self.vrfs[name] = True
        lines = [f"link add {name} type vrf table {TABLES[name]}", f"link set {name} up"]
        for _ in range(self.rnd.choice((0, 1, 2, 3))):
            lines += self.enslave(name)
        return lines

    def vrf_del(self):
        if not self.vrfs:
            return []
        name = self.rnd.choice(list(self.vrfs))
        del self.vrfs[name]
        for link in self.links.values():
            link.master = "" if link.master == name else link.master
        return [f"link del {name}"]

    def vrf_rename(self):
        """Rename a VRF and give it its name again: other interfaces keep it as their master."""
        if not self.vrfs:
            return []
        name = self.rnd.choice(list(self.vrfs))
        return [f"link set {name} down", f"link set {name} name {name}x", f"link set {name}x name {name}", f"link set {name} up"]

    def enslave(self, name=None):
        link = self.movable("port", "vlan", "vlan", "tunnel")
        if link is None or not self.vrfs:
            return []
        link.master = name or self.rnd.choice(list(self.vrfs))
        return [f"link set {link.name} master {link.master}"]

    def release(self):
        rows = [x for x in self.links.values() if x.master]
        if not rows:
            return []
        link = self.rnd.choice(rows)
        link.master = ""
        return [f"link set {link.name} nomaster"]

    # -- routes --

    def hop(self, family):
        """Return the words of a next hop."""
        if self.vrfs and self.maybe(0.15):
            return f"dev {self.rnd.choice(list(self.vrfs))}"
        link = self.some("port", "vlan", "vlan")
        onlink = " onlink" * self.maybe(0.1)
        return f"via {address(link.slot, family, 2)} dev {link.name}{onlink}"

    def route(self):
        family, table = self.rnd.choice((4, 6)), self.table()
        verb = self.rnd.choice(("add", "add", "replace", "replace", "change", *(("append", "prepend") if family == 4 else ())))
        prefix = self.rnd.choice(NETS[family])
        metric = self.rnd.choice(("", "", "", " metric 5", " metric 50"))
        if self.maybe(0.15):
            kind = self.rnd.choice(("blackhole", "unreachable", "prohibit", "throw"))
            return [f"route {verb} {kind} {prefix} table {table}{metric}"]
        # Without `lock` Linux makes IPv6 errors in a place that does not know the VRF. The MTU of a route is not
        # larger than that of a link (manual/interfaces.md, Ports: MTU).
        more = self.rnd.choice(("", "", "", "", " mtu 1200" if family == 4 else " mtu lock 1280"))
        return [f"route {verb} {prefix} {self.hop(family)} table {table}{metric}{more}"]

    def route_del(self):
        family = self.rnd.choice((4, 6))
        more = f" {self.hop(family)}" if self.maybe(0.3) else ""
        return [f"route del {self.rnd.choice(NETS[family])}{more} table {self.table()}"]

    def flush(self):
        family = self.rnd.choice((4, 6))
        if self.maybe(0.5):
            return [f"{option(family)}route flush table {self.rnd.choice((100, 2000, MORE_TABLE))}"]
        link = self.some("port", "vlan")
        return [f"{option(family)}route flush proto boot dev {link.name} table {self.table()}"]

    def nexthop(self):
        number = self.rnd.choice((1, 2, 3))
        if self.maybe(0.25):
            return [f"nexthop del id {number}"]
        if self.maybe(0.15):
            return [f"nexthop replace id {number} blackhole"]
        family = self.rnd.choice((4, 6))
        return [f"nexthop {self.rnd.choice(('add', 'replace'))} id {number} {self.hop(family)}"]

    def nexthop_route(self):
        family = self.rnd.choice((4, 6))
        return [f"route {self.rnd.choice(('add', 'replace'))} {self.rnd.choice(NETS[family])} "
                f"nhid {self.rnd.choice((1, 2, 3))} table {self.table()}"]  # fmt: skip

    def rule(self):
        self.ruled = True
        family, pref = self.rnd.choice((4, 6)), self.rnd.choice((900, 901, 902))
        if self.maybe(0.4):
            return [f"{option(family)}rule del pref {pref}"]
        # `iif VRF` matches packets of members in Linux 6.15, and none in Linux 6.1.
        names = [x.name for x in self.links.values()]
        words = self.rnd.choice((
            f"iif {self.rnd.choice(names)}", f"iif {self.rnd.choice(names)}", f"oif {self.rnd.choice(names)}",
            f"iif {self.rnd.choice(names)}", f"from {address(self.some('port', 'vlan').slot, family, 2)}", f"to {self.rnd.choice(NETS[family])}",
        ))  # fmt: skip
        action = self.rnd.choice((f"lookup {self.table()}", f"lookup {MORE_TABLE}", "l3mdev", "unreachable"))
        return [f"{option(family)}rule add pref {pref} {words} {action}"]

    def l3mdev(self):
        self.ruled = True
        family = self.rnd.choice((4, 6))
        if self.maybe(0.5):
            return [f"{option(family)}rule del pref 1000"]
        return [f"{option(family)}rule add l3mdev pref {self.rnd.choice((1000, 40000))}"]

    # -- labels --

    def label(self):
        verb = self.rnd.choice(("add", "replace", "replace", "change"))
        label = self.rnd.choice(LABELS)
        if self.maybe(0.25):
            return [f"-M route {verb} {label} dev {self.rnd.choice(('lo', *TABLES))}"]
        family, link = self.rnd.choice((4, 6)), self.some("port", "vlan", "vlan")
        out = "" if self.maybe(0.3) else f" as {'/'.join(str(self.rnd.choice(FAR_LABELS[:2])) for _ in range(self.rnd.choice((1, 1, 2))))}"
        return [f"-M route {verb} {label}{out} via inet{'6' * (family == 6)} {address(link.slot, family, 2)} dev {link.name}"]

    def label_del(self):
        return [f"-M route del {self.rnd.choice(LABELS)}"]

    def label_input(self):
        if self.maybe(0.1):
            return [f"sysctl net/mpls/platform_labels {self.rnd.choice((101, 1000, 1000))}"]
        link = self.some("port", "vlan")
        return [f"sysctl net/mpls/conf/{link.name}/input {self.rnd.choice((0, 1, 1, 1))}"]

    def label_push(self):
        family, link = self.rnd.choice((4, 6)), self.some("port", "vlan", "vlan")
        labels = "/".join(str(self.rnd.choice(FAR_LABELS[:2])) for _ in range(self.rnd.choice((1, 1, 2))))
        return [f"route {self.rnd.choice(('add', 'replace', 'replace'))} {self.rnd.choice(NETS[family])} "
                f"encap mpls {labels} via {address(link.slot, family, 2)} dev {link.name} table {self.table()}"]  # fmt: skip

    # -- tunnels --

    def tunnel_words(self, kind):
        """Return random settings of a tunnel."""
        words, six = [], kind.startswith("ip6")
        if self.maybe(0.5):
            words.append(f"{'hoplimit' if six else 'ttl'} {self.rnd.choice((5, 64))}")
        if "gre" in kind and self.maybe(0.4):
            words.append(self.rnd.choice(("key 7", "ikey 7 okey 9", "key 8")))
        if six and self.maybe(0.5):
            words.append("encaplimit none")
        if kind == "ip6tnl":
            words.append("mode any")
        return " ".join(words)

    def tunnel(self):
        free = [t for t in TUNNELS if t not in self.links]
        if not free:
            return []
        slot, kind = self.rnd.choice(free), self.rnd.choice(KINDS)
        family = 6 if kind.startswith("ip6") else 4
        under = self.some("port", "vlan")
        self.links[slot] = Link(slot, slot, "tunnel", tags=(kind,), under=under.slot, bound=self.maybe(0.3))
        dev = f" dev {under.name}" * self.links[slot].bound
        return [
            f"link add {slot} type {kind} local {address(under.slot, family, 1)} remote {address(under.slot, family, 3)}{dev} {self.tunnel_words(kind)}",
            f"sysctl net/ipv6/conf/{slot}/disable_ipv6 0", f"link set {slot} up",
            f"addr add {address(slot, 4, 1)}/24 dev {slot}", f"addr add {address(slot, 6, 1)}/64 dev {slot} nodad",
        ]  # fmt: skip

    def tunnel_change(self):
        link = self.some("tunnel")
        if link is None:
            return []
        (kind,) = link.tags
        family, under = 6 if kind.startswith("ip6") else 4, self.some("port", "vlan")
        link.under = under.slot
        dev = f" dev {under.name}" * link.bound
        return [f"link change {link.name} type {kind} local {address(under.slot, family, 1)} "
                f"remote {address(under.slot, family, 3)}{dev} {self.tunnel_words(kind)}"]  # fmt: skip

    def tunnel_route(self):
        family, link = self.rnd.choice((4, 6)), self.some("tunnel")
        if link is None:
            return []
        return [f"route {self.rnd.choice(('add', 'replace'))} {self.rnd.choice(NETS[family])} "
                f"dev {link.name} table {self.table()}"]  # fmt: skip

    # -- frames --

    def frames(self, most):
        """Return {case: (wire, frame)}: packets into each interface to hosts of all kinds."""
        rnd, places = self.rnd, [x for x in self.links.values() if x.kind != "tunnel"]
        hosts = {f: [*HOSTS[f], *(address(x.slot, f, 2) for x in self.links.values())] for f in (4, 6)}
        owns = {f: [address(x.slot, f, 1) for x in self.links.values()] for f in (4, 6)}
        found = {}
        for n in range(most):
            link = places[n % len(places)] if n < 2 * len(places) else rnd.choice(places)
            family = rnd.choice((4, 6))
            dst = rnd.choice(owns[family]) if rnd.random() < 0.06 else rnd.choice(hosts[family])
            labels = ()
            if "mpls" in self.subjects and rnd.random() < 0.35:
                labels = tuple(rnd.choice((*LABELS, *LABELS, 0, 2)) for _ in range(rnd.choice((1, 1, 2))))
            case = Case(link.slot, family, dst, labels, wire_of(self.links, link), tags_of(link), link.mac,
                        address(link.slot, family, 2), *rnd.choice(((64, 60), (64, 60), (64, 60), (1, 60), (64, 1390), (64, 1250))))  # fmt: skip
            if case.tags and rnd.random() < 0.05:
                case.tags = ((C, 77),)
            if labels:
                case.ttl, case.size = 64, 60
            if link.kind == "vlan" and rnd.random() < 0.1:
                case.mac = self.links[link.parent].mac
            found[str(case)] = case
        if "tunnel" in self.subjects:
            for link in self.links.values():
                if link.kind == "tunnel":
                    for inner in (4, 6):
                        case = self.from_tunnel(link, inner, rnd.choice(hosts[inner]))
                        if case:
                            found[str(case)] = case
        return found

    def from_tunnel(self, link, inner, dst):
        """Return the case of a packet out of a tunnel, or None."""
        under = self.links.get(link.under)
        if under is None:
            return None
        case = Case(under.slot, inner, dst, (), wire_of(self.links, under), tags_of(under), under.mac, address(link.slot, inner, 2), 64, 60)
        case.tunnel, case.key = (link.tags[0], address(under.slot, 4, 3), address(under.slot, 4, 1),
                                 address(under.slot, 6, 3), address(under.slot, 6, 1)), self.rnd.choice((None, 7, 8))  # fmt: skip
        return case


def neighbor_mac(link):
    """Return the MAC address of the neighbor on an interface."""
    if link.kind == "port":
        return far_mac(PORTS.index(link.slot))
    return f"02:00:00:00:aa:{VLANS.index(link.slot) + 1:02x}"


def parent_mac(links, link):
    """Return the MAC address that an interface has by itself."""
    if link.kind == "port":
        return port_mac(PORTS.index(link.slot))
    parent = links.get(link.parent)
    return parent.mac if parent else link.mac


def wire_of(links, link):
    """Return the name of the wire of an interface."""
    while link.kind != "port":
        link = links[link.parent]
    return WIRES[PORTS.index(link.slot)]


def tags_of(link):
    """Return the tags of the frames of an interface."""
    return link.tags if link.kind == "vlan" else ()


@dataclass
class Case:
    """A packet that arrives at an interface."""

    slot: str
    family: int
    dst: str
    labels: tuple
    wire: str
    tags: tuple
    mac: str
    src: str
    ttl: int
    size: int
    tunnel: tuple = ()
    key: object = None

    def __str__(self):
        words = [f"{self.slot}: {self.src} > {self.dst}"]
        words += [f"labels {self.labels}"] * bool(self.labels) + [f"ttl {self.ttl}"] * (self.ttl != 64)
        words += [f"size {self.size}"] * (self.size != 60)
        words += [f"in {self.tunnel[0]} key {self.key}"] if self.tunnel else []
        words += [f"to {self.mac}"]
        words += ["unknown tag"] * (self.tags == ((C, 77),))
        return " ".join(words)

    def frame(self):
        """Return the octets of the frame, with a new token."""
        data = packet(self.family, self.src, self.dst, 17, udp(self.size - (28 if self.family == 4 else 48)), self.ttl)
        kind = 0x800 if self.family == 4 else 0x86DD
        if self.tunnel:
            kind, data = self.outside(data)
        if self.labels:
            stack = [struct.pack("!I", v << 12 | (n == len(self.labels) - 1) << 8 | 64) for n, v in enumerate(self.labels)]
            kind, data = 0x8847, b"".join(stack) + data
        tags = b"".join(struct.pack("!HH", *tag) for tag in self.tags)
        n = WIRES.index(self.wire)
        return octets(self.mac) + octets(far_mac(n)) + tags + struct.pack("!H", kind) + data

    def outside(self, data):
        """Return the EtherType and the octets of a packet of a tunnel."""
        kind, src4, dst4, src6, dst6 = self.tunnel
        proto = 41 if self.family == 6 else 4
        if "gre" in kind:
            flags = 0 if self.key is None else 0x2000
            data = struct.pack("!HH", flags, 0x86DD if self.family == 6 else 0x800) + (struct.pack("!I", self.key) if flags else b"") + data
            proto = 47
        if kind.startswith("ip6"):
            return 0x86DD, packet(6, src6, dst6, proto, data, 64)
        return 0x800, packet(4, src4, dst4, proto, data, 64)


def udp(size):
    """Return a UDP packet with a token."""
    load = token()
    load += bytes(max(0, size - len(load)))
    return struct.pack("!HHHH", 4000, 4001, 8 + len(load), 0) + load


def packet(family, src, dst, proto, body, ttl):
    """Return an IP packet."""
    src, dst = ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed
    if family == 6:
        return struct.pack("!IHBB", 6 << 28, len(body), proto, ttl) + src + dst + body
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, ttl, proto, 0) + src + dst
    return head[:10] + struct.pack("!H", 0xFFFF - checksum(head)) + head[12:] + body


def octets(mac):
    """Return the octets of a MAC address."""
    return bytes.fromhex(mac.replace(":", ""))
