# SPDX-License-Identifier: BSD-3-Clause
"""Random commands about interfaces, addresses, neighbors and sysctls, and the frames that show their
effects. test_links_random gives both to our router and to Linux.

A sequence is a list of steps. A step is a list of items: a line for `ip -batch`, or ("sysctl", key,
value). No item depends on the state of the routers, so that steps can be left out to shorten a sequence.
"""

import ipaddress
import os
import struct

from filter_random import _with_checksum
from wire import token

WIRES = ("lan", "wan", "alt", "ext")
ASKED, MUTE = (20, 21), (30, 31)  # hosts on each wire that answer, and hosts that do not
NETS = {"wan": ("198.51.100.0/24", "2001:db8:f000::/48"), "alt": ("203.0.113.0/24", "2001:db8:f001::/48")}
HOSTS = [("198.51.100.9", "2001:db8:f000::9"), ("203.0.113.9", "2001:db8:f001::9")]
LOST = ("100.64.0.9", "2001:db8:dead::9")
MACS = ("02:00:00:00:aa:01", "02:00:00:00:aa:02", "00:00:5e:00:01:01")
VMACS = ("00:00:5e:00:01:05", "00:00:5e:00:02:07", "02:00:00:00:bb:03")
STRANGE = ("02:de:ad:00:00:01", "02:de:ad:00:00:02")
MTUS = (1500, 1500, 1400, 1300, 1280, 1279, 900, 576)
STATES = ("permanent", "permanent", "noarp", "reachable", "stale", "stale", "none", "incomplete",
          "delay", "probe", "failed")  # fmt: skip
GROUPS = ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:05", "33:33:00:00:00:05", "02:00:00:00:77:77")


def host4(n, host):
    """Return the address of a host on the n-th wire; from 4 on: on a macvlan."""
    return f"192.0.2.{64 * n + host}" if n < 4 else f"10.63.{n}.{host}"


def host6(n, host):
    """Return the IPv6 address of a host on the n-th wire; from 4 on: on a macvlan."""
    return f"2001:db8:{n or 4 if n < 4 else n + 60}::{host}"


def source4(name, number):
    """Return a source behind the neighbor of a wire."""
    return f"10.{77 + WIRES.index(name)}.{number >> 8 & 255}.{number & 255}"


def standard(wires):
    """Return the lines that give a router its standard routes and addresses back."""
    lines = []
    for n, name in enumerate(WIRES):
        lines += back(wires[name], name, n)
    return lines


def back(wire, dev_name, n, dev=None):
    """Return the lines that give an interface what it loses when it goes down."""
    dev = dev or wire.tap
    lines = [
        f"addr replace {wire.ip4}/26 dev {dev}",
        f"addr replace {wire.ip6}/64 dev {dev} nodad",
        f"neigh replace {wire.peer4} lladdr {wire.mac} dev {dev} nud permanent",
        f"neigh replace {wire.peer6} lladdr {wire.mac} dev {dev} nud permanent",
        f"route replace 10.{77 + n}.0.0/16 via {wire.peer4} dev {dev}",
    ]
    if dev_name in NETS:
        four, six = NETS[dev_name]
        lines += [
            f"route replace {four} via {wire.peer4} dev {dev}",
            f"route replace {six} via {wire.peer6} dev {dev}",
        ]
    return lines


class Generator:
    """Makes the steps of a sequence."""

    def __init__(self, rnd, wires):
        self.rnd, self.wires = rnd, wires
        self.dev = {name: wires[name].tap for name in WIRES}  # the names that interfaces have now
        self.macvlans = {}  # name: wire

    def sequence(self, length):
        """Return `length` steps."""
        return [self._step() for _ in range(length)]

    def _step(self):
        items = []
        for _ in range(self.rnd.choice((1, 1, 2, 3, 5))):
            items += self._any()
        return items

    def _any(self):
        kinds = (
            (self._link, 5), (self._macvlan, 5), (self._neighbor, 7), (self._address, 5),
            (self._sysctl, 5), (self._proxy, 1), (self._route, 2),
        )  # fmt: skip
        return self.rnd.choices([k for k, _ in kinds], [w for _, w in kinds])[0]()

    def _name(self, stable=False):
        return self.rnd.choice(WIRES if stable else WIRES[:3])

    def _some_dev(self):
        """Return the name of an interface: of a port or of a macvlan."""
        if self.macvlans and self.rnd.random() < 0.4:
            return self.rnd.choice(sorted(self.macvlans))
        return self.dev[self._name(True)]

    def _link(self):
        rnd, name = self.rnd, self._name()
        dev, wire = self.dev[name], self.wires[name]
        again = back(wire, name, WIRES.index(name), dev)
        kind = rnd.choice(
            ("mac", "mac", "mac back", "mtu", "mtu", "mtu", "down", "down up", "up", "again", "again",
             "arp", "arp", "name", "alias", "flag", "group")
        )  # fmt: skip
        if kind == "mac":
            return [f"link set {dev} address {rnd.choice(MACS)}"] + (again if rnd.random() < 0.5 else [])
        if kind == "mac back":
            return [f"link set {dev} address {wire.port_mac}"] + again
        if kind == "mtu":
            return [f"link set {dev} mtu {rnd.choice(MTUS)}"]
        if kind == "down":
            return [f"link set {dev} down"]
        if kind == "down up":
            return [f"link set {dev} down", f"link set {dev} up"] + (again if rnd.random() < 0.7 else [])
        if kind == "up":
            return [f"link set {dev} up"] + (again if rnd.random() < 0.7 else [])
        if kind == "again":
            return [f"link set {dev} up mtu 1500 arp on"] + again
        if kind == "arp":
            return [f"link set {dev} arp {rnd.choice(('on', 'on', 'off'))}"]
        if kind == "name":
            self.dev[name] = wire.tap if dev != wire.tap else f"x{name}"
            return [f"link set {dev} down", f"link set {dev} name {self.dev[name]}",
                    f"link set {self.dev[name]} up"] + back(wire, name, WIRES.index(name), self.dev[name])  # fmt: skip
        if kind == "alias":
            return [f"link set {dev} alias some{rnd.randint(0, 9)}"]
        if kind == "group":
            return [f"link set {dev} group {rnd.randint(0, 3)}"]
        flag = rnd.choice(("promisc", "allmulticast", "multicast", "dynamic"))
        return [f"link set {dev} {flag} {rnd.choice(('on', 'off'))}"]

    def _macvlan(self):
        rnd = self.rnd
        if not self.macvlans or (len(self.macvlans) < 3 and rnd.random() < 0.4):
            number = next(n for n in range(9) if f"mv{n}" not in self.macvlans)
            name, on = f"mv{number}", self._name()
            self.macvlans[name] = on
            mode = rnd.choice(("bridge", "bridge", "private", "vepa"))
            lines = [f"link add {name} link {self.dev[on]} address {rnd.choice(VMACS)} type macvlan mode {mode}"]
            if rnd.random() < 0.9:
                lines.append(f"link set {name} up")
            return lines + (self._numbered(name) if rnd.random() < 0.8 else [])
        name = rnd.choice(sorted(self.macvlans))
        kind = rnd.choice(
            ("del", "mac", "mac", "down", "up", "up", "addresses", "addresses", "vip", "mtu", "mode",
             "route", "neigh", "arp")
        )  # fmt: skip
        if kind == "del":
            del self.macvlans[name]
            return [f"link del {name}"]
        if kind == "addresses":
            return self._numbered(name)
        if kind == "route":
            four, six = rnd.choice(list(NETS.values()))
            number = name[2:]
            return [f"route {rnd.choice(('replace', 'del'))} {four} via 10.5{number}.0.2 dev {name} metric 5",
                    f"route {rnd.choice(('replace', 'del'))} {six} via 2001:db8:5{number}::2 dev {name} metric 5"]  # fmt: skip
        if kind == "vip":
            n = WIRES.index(self.macvlans[name])
            return [f"addr {rnd.choice(('add', 'add', 'del'))} {host4(n, 17)}/{rnd.choice((32, 32, 26))} dev {name}",
                    f"addr {rnd.choice(('add', 'add', 'del'))} {host6(n, 17)}/128 dev {name} nodad"]  # fmt: skip
        if kind == "neigh":
            return [f"neigh replace 10.5{name[2:]}.0.{rnd.choice(MUTE)} lladdr {rnd.choice(STRANGE)} dev {name} "
                    f"nud {rnd.choice(STATES[:6])}"]  # fmt: skip
        return [
            {
                "mac": f"link set {name} address {rnd.choice(VMACS)}",
                "down": f"link set {name} down",
                "up": f"link set {name} up",
                "mtu": f"link set {name} mtu {rnd.choice(MTUS)}",
                "mode": f"link set {name} type macvlan mode {rnd.choice(('bridge', 'private', 'vepa'))}",
                "arp": f"link set {name} arp {rnd.choice(('on', 'on', 'off'))}",
            }[kind]
        ]

    def _numbered(self, name):
        number = name[2:]
        return [f"addr replace 10.5{number}.0.1/24 dev {name}",
                f"addr replace 2001:db8:5{number}::1/64 dev {name} nodad"]  # fmt: skip

    def _neighbor(self):
        rnd, name = self.rnd, self._name(True)
        n, dev, six = WIRES.index(name), self.dev[name], rnd.random() < 0.5
        host = rnd.choice((*ASKED, *MUTE, *MUTE, 2))
        address = (host6 if six else host4)(n, host)
        kind = rnd.choice(("replace", "replace", "replace", "add", "change", "del", "del", "flush", "flush state"))
        if kind == "flush":
            return [f"neigh flush dev {dev}"]
        if kind == "flush state":
            return [f"neigh flush dev {dev} nud {rnd.choice(('stale', 'permanent', 'reachable', 'noarp', 'all'))}"]
        if kind == "del":
            return [f"neigh del {address} dev {dev}"]
        mac = self.wires[name].mac if host == 2 else rnd.choice(STRANGE)
        words = f"lladdr {mac} " if rnd.random() < 0.9 else ""
        extra = rnd.choice(("", "", "", " router", " managed", " extern_learn", " use"))
        return [f"neigh {kind} {address} {words}dev {dev} nud {rnd.choice(STATES)}{extra}"]

    def _proxy(self):
        rnd, name = self.rnd, self._name()
        n = WIRES.index(name)
        address = rnd.choice((host4, host6))(n, rnd.choice((40, 41)))
        out = rnd.choice(WIRES)
        lines = [f"neigh {rnd.choice(('add', 'replace', 'del'))} proxy {address} dev {self.dev[out]}"]
        key = rnd.choice(("ipv4", "ipv6"))
        what = "proxy_arp" if key == "ipv4" else "proxy_ndp"
        return [*lines, ("sysctl", f"net.{key}.conf.{self.dev[out]}.{what}", rnd.choice((0, 1, 1)))]

    def _address(self):
        rnd, name = self.rnd, self._name(True)
        dev, six = self._some_dev(), rnd.random() < 0.5
        # manual/limits.md: IPv6 routes of one prefix and metric. So no two interfaces have one subnet.
        n = next((WIRES.index(k) for k, v in self.dev.items() if v == dev), None)
        n = int(dev[2:]) + 4 if n is None else n
        life = rnd.choice(("", "", "", "valid_lft 300 preferred_lft 0", "valid_lft 300 preferred_lft 200",
                           "valid_lft forever preferred_lft 0"))  # fmt: skip
        if six:
            address = rnd.choice((f"{host6(n, 5)}/64", f"{host6(n, 6)}/128", f"{host6(n, 7)}/64",
                                  f"fd00:{n}::1/64", f"fe80::{n + 5}/64", f"2001:db8:6{n}::1/64"))  # fmt: skip
            extra = rnd.choice(("nodad", "nodad", "nodad noprefixroute", "nodad home", "optimistic", "", "nodad mngtmpaddr"))
        else:
            address = rnd.choice((f"{host4(n, 5)}/26", f"{host4(n, 6)}/32", f"{host4(n, 7)}/28",
                                  f"10.60.{n}.1/24", f"10.60.{n}.3/24", f"10.61.{n}.1/31",
                                  f"10.62.{n}.1 peer 10.62.{n}.2/32", f"{host4(n, 8)}/24"))  # fmt: skip
            extra = rnd.choice(("", "", "broadcast +", "noprefixroute", "metric 7"))
        kind = rnd.choice(("add", "add", "add", "replace", "change", "del", "del", "flush", "flush"))
        if kind == "flush":
            if rnd.random() < 0.7:
                return [f"addr flush dev {dev} to {rnd.choice(('10.60.0.0/14', 'fd00::/16', '2001:db8:60::/44'))}"]
            lines = [f"addr flush dev {dev} {rnd.choice(('scope global', 'scope global deprecated', 'scope global permanent'))}"]
            for name, tap in self.dev.items():
                if tap == dev and (name == "ext" or rnd.random() < 0.6):
                    lines += back(self.wires[name], name, WIRES.index(name), dev)
            return lines
        if kind == "del":
            return [f"addr del {address} dev {dev}"]
        return [f"addr {kind} {address} dev {dev} {extra} {life}"]

    def _sysctl(self):
        rnd = self.rnd
        dev = self._some_dev() if rnd.random() < 0.7 else rnd.choice(("all", "default"))
        four, six = f"net.ipv4.conf.{dev}", f"net.ipv6.conf.{dev}"
        kind = rnd.choice(
            ("forwarding4", "forwarding4", "forwarding6", "force6", "off6", "off6", "mtu6", "mtu6", "rp_filter",
             "rp_filter", "linkdown4", "linkdown6", "hop_limit", "proxy_arp", "arp_ignore", "ip_forward", "keep")
        )  # fmt: skip
        if kind == "forwarding4":
            return [("sysctl", f"{four}.forwarding", rnd.choice((0, 1, 1)))]
        if kind == "ip_forward":
            return [("sysctl", "net.ipv4.ip_forward", v) for v in rnd.choice(((0, 1), (1,), (0,)))]
        if kind == "forwarding6":
            return [("sysctl", f"{six}.forwarding", rnd.choice((0, 1, 1)))]
        if kind == "force6":
            return [("sysctl", f"{six}.force_forwarding", rnd.choice((0, 1)))]
        if kind == "off6":
            values = rnd.choice(((1, 0), (1,), (0,)))
            items = [("sysctl", f"{six}.disable_ipv6", v) for v in values]
            for name, tap in self.dev.items():
                if dev in (tap, "all") and values[-1] == 0 and rnd.random() < 0.7:
                    items += back(self.wires[name], name, WIRES.index(name), tap)
            return items
        if kind == "mtu6":
            return [("sysctl", f"{six}.mtu", rnd.choice((1280, 1300, 1400, 1500)))]
        if kind == "hop_limit":
            return [("sysctl", f"{six}.hop_limit", 64)]
        if kind == "keep":
            return [("sysctl", f"{six}.keep_addr_on_down", rnd.choice((0, 1)))]
        if kind in ("linkdown4", "linkdown6"):
            return [("sysctl", f"{four if kind[-1] == '4' else six}.ignore_routes_with_linkdown", rnd.choice((0, 1)))]
        return [("sysctl", f"{four}.{kind}", rnd.choice((0, 0, 1, 2) if kind == "rp_filter" else (0, 1)))]

    def _route(self):
        rnd, name = self.rnd, self._name(True)
        wire, dev = self.wires[name], self.dev[name]
        four, six = rnd.choice(list(NETS.values()))
        n = WIRES.index(name)
        verb = rnd.choice(("replace", "replace", "del"))
        far = rnd.choice((wire.peer4, host4(n, 20), host4(n, 21)))
        far6 = rnd.choice((wire.peer6, host6(n, 20), host6(n, 21)))
        kinds = [f"route {verb} {four} via {far} dev {dev}", f"route {verb} {six} via {far6} dev {dev}",
                 f"route {verb} {four} via inet6 {far6} dev {dev}",
                 f"route {verb} {four} via {far} dev {dev} onlink"]  # fmt: skip
        return [rnd.choice(kinds)]


# --- frames -------------------------------------------------------------------------------------


def octets(mac):
    """Return the octets of a MAC address."""
    return bytes.fromhex(mac.replace(":", ""))


def packed4(text):
    """Return the octets of an IPv4 address."""
    return bytes(map(int, text.split(".")))


def packed6(text):
    """Return the octets of an IPv6 address."""
    return ipaddress.IPv6Address(text).packed


def packet(smac, dmac, src, dst, ttl=64, size=0, df=False, echo=False):
    """Return (token, frame) of a UDP packet or an echo request. `size` is that of the IP packet. The
    payload repeats the token, so that each fragment has it."""
    mark, six = token(), ":" in dst
    room = max(10, size - (40 if six else 20) - 8)
    load = (mark * (room // 10 + 1))[:room]
    addresses = packed6(src) + packed6(dst) if six else packed4(src) + packed4(dst)
    if echo:
        data = struct.pack("!BBHHH", 128 if six else 8, 0, 0, 7, 1) + load
        pseudo = addresses + struct.pack("!II", len(data), 58) if six else b""
        data, number = _sum_at(data, 2, pseudo), 58 if six else 1
    else:
        data, number = struct.pack("!4H", 4000, 4001, 8 + len(load), 0) + load, 17
        lengths = struct.pack("!II", len(data), 17) if six else struct.pack("!HH", 17, len(data))
        data = _sum_at(data, 6, addresses + lengths)
    head = octets(dmac) + octets(smac)
    if six:
        return mark, head + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(data), number, ttl) + addresses + data
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), 77, 0x4000 if df else 0, ttl, number, 0)
    return mark, head + b"\x08\0" + _with_checksum(ip, 10, addresses) + addresses + data


def _sum_at(data, at, pseudo):
    """Return the octets, which may be odd in number, with their checksum at an offset."""
    even = data + b"\0" * (len(data) % 2)
    return _with_checksum(even, at, pseudo)[: len(data)]


def arp_request(smac, psrc, pdst, dmac="ff:ff:ff:ff:ff:ff"):
    """Return (key, frame): the answer is a frame to the key."""
    mac = b"\x02\xee" + os.urandom(4)
    head = octets(dmac) + octets(smac) + b"\x08\x06\0\x01\x08\0\x06\x04\0\x01"
    return mac, (head + mac + packed4(psrc) + bytes(6) + packed4(pdst)).ljust(60, b"\0")


def solicitation(smac, src, target):
    """Return (key, frame): the answer is a frame to the key."""
    mac, tgt = b"\x02\xee" + os.urandom(4), packed6(target)
    group = b"\xff\x02" + bytes(9) + b"\x01\xff" + tgt[13:]
    body = b"\x87\0\0\0\0\0\0\0" + tgt + b"\x01\x01" + mac
    addresses = packed6(src) + group
    body = _with_checksum(body, 2, addresses + struct.pack("!II", len(body), 58))
    head = b"\x33\x33\xff" + tgt[13:] + octets(smac) + b"\x86\xdd"
    return mac, head + struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + addresses + body
