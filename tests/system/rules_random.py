# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of commands about policy routing, and random packets, from a seed. A sequence is
a list of steps, and a step is a list of commands that the kernel gets in one burst:

    rule ..., route ..., nexthop ..., link ...   words of `ip`, with `-6 ` in front for IPv6
    down NAME, up NAME                           an interface, with its address and neighbors
    zebra add FAMILY TABLE PREFIX NAME           a route of zebra by the neighbor of a wire
    zebra del FAMILY TABLE PREFIX
    rpf N                                        rp_filter of all interfaces

Left out, because manual/behavior.md and limits.md name the differences: several next hops (each
router has a hash of its own), IPv6 routes of one prefix and metric, rules with `suppress_...` for
table local, table main before table local together with own prefixes, routes of table local for a
source or a TOS, next-hop objects in table local. Also left out: several default routes of one metric,
between which Linux alternates for packets of its own (fib_select_default())."""

import ipaddress
import struct

from ipv4 import checksum

OUTS = ("wan", "alt", "ext")
TABLES = ("main", "100", "101", "102", "103", "default")
MISSING = "1100"
LARGE = [str(number) for number in range(200, 212)]
PREFS = (5, 10, 20, 20, 20, 30, 40, 100, 200, 32766, 32767, 40000)
TOS = ("0x10", "0x08", "0x04", "0x1c")
REFUSALS = ("throw", "blackhole", "unreachable", "prohibit")
GROUP = 7


class Family:
    """The addresses of a family."""

    def __init__(self, six):
        self.six = six
        self.number, self.words = (6, "-6 ") if six else (4, "")
        if six:
            self.nets = ["2001:db8:100::/48", "2001:db8:100::/64", "2001:db8:100::8/125", "2001:db8:100::9"]
            self.nets += ["2001:db8:300::/48", "default", "2001:db8:a1::/48", "2001:db8:1::/64"]
            self.hosts = ["2001:db8:100::9", "2001:db8:100::a", "2001:db8:100::77", "2001:db8:100:1::9"]
            self.hosts += ["2001:db8:300::9", "2001:db8:777::9", "2001:db8:1::2", "2001:db8:3::2", "2001:db8:a1::7"]
            self.sources = ["2001:db8:a1::/48", "2001:db8:a1:1::/64", "2001:db8:a2::/48", "2001:db8:a0::/44"]
            self.senders = ["2001:db8:a1::{:x}", "2001:db8:a1:1::{:x}", "2001:db8:a2::{:x}", "2001:db8:a9::{:x}"]
            self.home, self.own = "2001:db8:a0::/44", "2001:db8:1::1"
            self.lengths = (0, 44, 48, 63, 64, 125, 127, 128)
        else:
            self.nets = ["198.51.100.0/24", "198.51.100.0/25", "198.51.100.8/29", "198.51.100.9"]
            self.nets += ["203.0.113.0/24", "default", "10.1.0.0/16", "192.0.2.64/26"]
            self.hosts = ["198.51.100.9", "198.51.100.10", "198.51.100.77", "198.51.100.200"]
            self.hosts += ["203.0.113.9", "100.64.1.9", "192.0.2.66", "192.0.2.194", "10.1.0.7"]
            self.sources = ["10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/16", "10.0.0.0/8"]
            self.senders = ["10.1.0.{}", "10.1.1.{}", "10.2.0.{}", "10.9.0.{}"]
            self.home, self.own = "10.0.0.0/8", "192.0.2.65"
            self.lengths = (0, 8, 16, 24, 26, 28, 31, 32)

    def gateway(self, name):
        """Return the neighbor of a wire."""
        return PEERS[self.number][name]


PEERS = {
    4: {"lan": "192.0.2.2", "wan": "192.0.2.66", "alt": "192.0.2.130", "ext": "192.0.2.194"},
    6: {"lan": "2001:db8:4::2", "wan": "2001:db8:1::2", "alt": "2001:db8:2::2", "ext": "2001:db8:3::2"},
}
FAMILIES = (Family(False), Family(True))


class Sequence:
    """A random sequence of steps."""

    def __init__(self, rnd):
        self.rnd = rnd
        # Table main before table local is a difference for own addresses alone.
        self.local = rnd.choice(("first", "first", "first", "late", "any"))
        self.moves_local = self.local == "any"
        self.rules, self.routes, self.objects, self.zebra, self.down = [], [], [], [], set()
        self.six = rnd.choice(([False], [True], [False, True]))
        self.sources_used = rnd.random() < 0.5
        self.steps = [self._first()]
        self.rpf = rnd.choice((0, 1, 2))
        self.steps[0].insert(0, f"rpf {self.rpf}")
        for _ in range(rnd.randint(3, 8)):
            self.steps.append([line for _ in range(self._burst()) for line in self._change()])
        if self.down:
            self.steps.append([f"up {name}" for name in sorted(self.down)])
            self.down.clear()

    def _burst(self):
        return self.rnd.choice((1, 1, 1, 2, 3, 8, 20))

    def _family(self):
        return FAMILIES[self.rnd.choice(self.six)]

    def _first(self):
        lines = []
        for f in FAMILIES:
            lines.append(f"{f.words}route add {f.home} via {f.gateway('lan')} dev lan0")
        for f in (FAMILIES[six] for six in self.six):
            if self.local == "late":
                lines += [f"{f.words}rule add pref 25 lookup local", f"{f.words}rule del pref 0"]
            for table, name in (("main", "wan"), ("100", "ext"), ("101", "alt")):
                lines.append(f"{f.words}route add {f.nets[0]} via {f.gateway(name)} dev {name}0 table {table}")
        for _ in range(self.rnd.randint(1, 6)):
            lines += self._rule_add()
        for _ in range(self.rnd.randint(0, 8)):
            lines += self._route_add()
        return lines

    def _change(self):
        kinds = (
            (6, self._rule_add), (5, self._rule_del), (6, self._route_add), (5, self._route_del),
            (1, self._flush_rules), (1, self._flush_table), (1, self._interface), (1, self._group),
            (2, self._object), (2, self._zebra), (1, self._standard), (2, self._fill),
        )  # fmt: skip
        (kind,) = self.rnd.choices([k for _, k in kinds], [n for n, _ in kinds])
        return kind()

    # -- rules --

    def _selectors(self, f):
        pick, words = self.rnd.choice, []
        if self.rnd.random() < 0.15:
            words.append("not")
        if self.rnd.random() < 0.45:
            words.append(f"from {pick(f.sources)}")
        if self.rnd.random() < 0.35:
            words.append("to " + pick([net for net in f.nets if net != "default"]))
        if self.rnd.random() < 0.25:
            words.append(f"iif {pick(('lan0', 'lan0', 'alt0', 'wan0', 'gone0', 'lo'))}")
        if self.rnd.random() < 0.15:
            words.append(f"tos {pick(TOS)}")
        if self.rnd.random() < 0.15:
            words.append(f"ipproto {pick(('udp', 'tcp', 'icmp' if not f.six else 'ipv6-icmp'))}")
        if self.rnd.random() < 0.1:
            words.append(pick(("sport 4000", "sport 1000-4999", "dport 53", "dport 4001-5000")))
        if self.rnd.random() < 0.04:
            words.append(pick(("fwmark 7", "fwmark 0/0xff", "uidrange 0-5", "uidrange 7-9", "oif ext0", "tun_id 7")))
        return " ".join(words)

    def _action(self, f):
        pick = self.rnd.choice
        kind = self.rnd.random()
        if kind < 0.12:
            # No goto may lead around table local to main.
            return f"goto {pick(PREFS if self.local != 'late' else (5, 10, 20))}"
        if kind < 0.16:
            return "nop"
        if kind < 0.26:
            return pick(("blackhole", "unreachable", "prohibit"))
        tables = TABLES if self.local != "late" else TABLES[1:]
        words = f"lookup {pick((*tables, *tables, MISSING))}"
        if self.rnd.random() < 0.25:
            words += f" suppress_prefixlength {pick(f.lengths)}"
        if self.rnd.random() < 0.1:
            words += f" suppress_ifgroup {pick((0, GROUP, GROUP))}"
        return words

    def _rule_add(self):
        f = self._family()
        pref = self.rnd.choice((None, 0, *PREFS, *PREFS))
        if self.moves_local is False and pref == 0 and self.rnd.random() < 0.7:
            pref = None
        words = "" if pref is None else f"pref {pref} "
        words += f"{self._selectors(f)} {self._action(f)}"
        if self.rnd.random() < 0.05:
            words += f" protocol {self.rnd.choice(('static', '77'))}"
        words = " ".join(words.split())
        if words.startswith("lookup ") or words.startswith(("goto", "nop", "black", "unre", "prohi")):
            words = f"from all {words}"
        self.rules.append((f, words, pref))
        return [f"{f.words}rule add {words}"]

    def _rule_del(self):
        f = self._family()
        prefs = [0, 32766, 32767] if self.moves_local else [32766, 32767]
        if not self.rules or self.rnd.random() < 0.15:
            return [f"{f.words}rule del pref {self.rnd.choice(prefs)}"]
        f, words, pref = self.rules.pop(self.rnd.randrange(len(self.rules)))
        # Without its other words, `pref 0` would be the rule of table local.
        if pref and self.rnd.random() < 0.3:
            return [f"{f.words}rule del pref {pref}"]
        return [f"{f.words}rule del {words}"]

    def _standard(self):
        """Add, or move, a rule that every kernel has."""
        f, pref = self._family(), self.rnd.choice((*PREFS, 32766, 32766))
        if self.local == "late":
            pref = self.rnd.choice((30, 40, 32766))
        tables = ("main", "main", "local") if self.moves_local else ("main",)
        table = self.rnd.choice(tables)
        if table == "local" and self.rnd.random() < 0.5:
            pref = 0
        lines = [f"{f.words}rule add pref {pref} lookup {table}"]
        if self.rnd.random() < 0.5:
            lines.insert(self.rnd.randrange(2), f"{f.words}rule del lookup {table}")
        return lines

    def _flush_rules(self):
        f = self._family()
        if self.rnd.random() < 0.4:
            self.rules = [row for row in self.rules if row[0] is not f]
            lines = [f"{f.words}rule flush"]
            if self.local == "late":
                lines.append(f"{f.words}rule add pref 25 lookup local")
            if self.rnd.random() < 0.7:
                lines.append(f"{f.words}rule add pref 32766 lookup main")
            return lines
        return [f"{f.words}rule del lookup {self.rnd.choice(TABLES[1:])}"]

    # -- routes --

    def _hop(self, f):
        if self.rnd.random() < 0.2 and self.objects:
            number, of = self.rnd.choice(self.objects)
            if of is f:
                return f"nhid {number}"
        name = self.rnd.choice(OUTS)
        return f"via {f.gateway(name)} dev {name}0" + " onlink" * (self.rnd.random() < 0.2)

    def _route_words(self, f, table):
        """Return (the words that name a route, the words of its target)."""
        pick = self.rnd.choice
        net = pick(f.nets)
        words, kind, target = f"{net} table {table}", "", ""
        if self.rnd.random() < 0.3:
            kind = pick(REFUSALS)
        elif self.rnd.random() < 0.07:
            kind, target = "local", "dev lo"
        if table == "local":
            kind = pick((*REFUSALS, "local"))
            target = "dev lo" * (kind == "local")
        elif f.six and self.sources_used and kind != "local" and self.rnd.random() < 0.4:
            words = f"{net} from {pick(f.sources)} table {table}"
        elif not f.six and self.rnd.random() < 0.2:
            words = f"{net} tos {pick(TOS)} table {table}"
        if self.rnd.random() < 0.4:
            words += f" metric {pick((10, 50))}"
        if not kind:
            target = self._hop(f)
            if "from" in words and "nhid" in target:
                target = f"via {f.gateway('ext')} dev ext0"
        return f"{kind} {words}".strip(), target

    def _fill(self):
        """Many routes of a table in one burst, and a rule for it among them."""
        f, table = self._family(), self.rnd.choice(LARGE)
        name = self.rnd.choice(OUTS)
        nets = [f"2001:db8:100:{n:x}::/64" for n in range(150)] if f.six else [f"198.51.100.{n}" for n in range(150)]
        self.rnd.shuffle(nets)
        verb = self.rnd.choice(("replace", "replace", "del"))
        target = f"via {f.gateway(name)} dev {name}0" if verb == "replace" else ""
        lines = [f"{f.words}route {verb} {net} table {table} {target}".strip() for net in nets]
        words = f"pref {self.rnd.choice((5, 10, 20))} {self._selectors(f)} lookup {table}"
        words = " ".join(words.split())
        self.rules.append((f, words, 5))
        lines.insert(self.rnd.randrange(150), f"{f.words}rule {self.rnd.choice(('add', 'add', 'del'))} {words}")
        if self.rnd.random() < 0.3:
            lines.insert(self.rnd.randrange(150), f"{f.words}route flush table {table} proto boot")
        return lines

    def _table(self):
        if self.rnd.random() < 0.1:
            return self.rnd.choice(LARGE)
        if not self.moves_local and self.rnd.random() < 0.08:
            return "local"
        return self.rnd.choice(TABLES)

    def _route_add(self):
        f = self._family()
        if self.routes and self.rnd.random() < 0.35:
            # Another target for a route that may be there.
            of, words, _ = self.rnd.choice(self.routes)
            if not words.startswith((*REFUSALS, "local")) and "table local" not in words:
                f, target = of, self._hop(of)
                if "from" in words and "nhid" in target:
                    target = f"via {f.gateway('wan')} dev wan0"
            else:
                f, target = of, "dev lo" * words.startswith("local")
        else:
            words, target = self._route_words(f, self._table())
        how = ["add", "add", "replace", "change"]
        if not f.six and not words.startswith("default"):
            how += ["append", "prepend"]
        self.routes.append((f, words, target))
        return [f"{f.words}route {self.rnd.choice(how)} {words} {target}".strip()]

    def _route_del(self):
        if not self.routes:
            return self._route_add()
        f, words, target = self.routes.pop(self.rnd.randrange(len(self.routes)))
        if self.rnd.random() < 0.4:
            words += f" {target}"
        # Not the kernel's copy of a route of zebra, which would install it again.
        return [f"{f.words}route del {words} proto boot"]

    def _flush_table(self):
        f, table = self._family(), self.rnd.choice(TABLES[1:])
        words = self.rnd.choice(("proto boot", "proto boot", "type blackhole", "type throw"))
        return [f"{f.words}route flush table {table} {words}".strip()]

    # -- other state --

    def _interface(self):
        name = self.rnd.choice(OUTS)
        if name in self.down:
            self.down.discard(name)
            return [f"up {name}"]
        self.down.add(name)
        # zebra withdraws the routes of an interface that goes down, and the kernel its copies.
        gone = [row for row in self.zebra if row[3] == name]
        self.zebra = [row for row in self.zebra if row[3] != name]
        return [f"down {name}"] + [f"zebra del {n} {table} {net}" for n, table, net, _ in gone]

    def _group(self):
        return [f"link set {self.rnd.choice(OUTS)}0 group {self.rnd.choice((0, GROUP))}"]

    def _object(self):
        f = self._family()
        number = (91 if f.six else 81) + self.rnd.randrange(4)
        name = self.rnd.choice(OUTS)
        target = f"via {f.gateway(name)} dev {name}0" if self.rnd.random() < 0.8 else "blackhole"
        if self.rnd.random() < 0.25:
            self.objects = [row for row in self.objects if row[0] != number]
            return [f"nexthop del id {number}"]
        if (number, f) not in self.objects:
            self.objects.append((number, f))
        return [f"{f.words}nexthop {self.rnd.choice(('add', 'replace'))} id {number} {target}"]

    def _zebra(self):
        if self.zebra and self.rnd.random() < 0.4:
            n, table, net, _ = self.zebra.pop(self.rnd.randrange(len(self.zebra)))
            return [f"zebra del {n} {table} {net}"]
        f, table, name = self._family(), self.rnd.choice(("100", "101", "102")), self.rnd.choice(OUTS)
        net = self.rnd.choice(f.nets[:5])
        if name in self.down:
            return []
        self.zebra = [row for row in self.zebra if row[:3] != (f.number, table, net)]
        self.zebra.append((f.number, table, net, name))
        return [f"zebra add {f.number} {table} {net} {name}"]


class Packet:
    """A random packet. frame() makes it with another sender of the same subnet each time, because
    Linux limits the errors of missing routes for each source."""

    def __init__(self, rnd, families, own):
        self.f = f = FAMILIES[rnd.choice(families)]
        self.wire = rnd.choice(("lan", "lan", "lan", "alt"))
        self.dst = rnd.choice(f.hosts + [f.own] * own)
        self.sender = rnd.choice(f.senders)
        self.tos = rnd.choice((0, 0, 0, 0x10, 0x08, 0x04, 0x1C, 0xF3))
        self.kind = rnd.choice(("udp",) * 6 + ("tcp", "tcp", "first", "later", "icmp", "esp", "options"))
        self.ports = rnd.choice(((4000, 4001), (7000, 53), (1000, 9)))
        self.ttl = rnd.choice((64, 64, 64, 64, 64, 64, 1))

    def octets(self, rnd, mark):
        """Return EtherType, header and content, with `mark` in the content."""
        src = ipaddress.ip_address(self.sender.format(rnd.randrange(1, 65535 if self.f.six else 255))).packed
        dst = ipaddress.ip_address(self.dst).packed
        proto, load = self._content(src + dst, mark)
        if self.f.six:
            proto, load = self._extended(proto, load)
            head = struct.pack("!IHBB", 6 << 28 | self.tos << 20, len(load), proto, self.ttl)
            return b"\x86\xdd" + head + src + dst + load
        options = b"\x01" * 4 if self.kind == "options" else b""
        at = {"first": 0x2000, "later": 0x2001}.get(self.kind, 0)
        words = 5 + len(options) // 4
        head = [0x40 | words, self.tos, words * 4 + len(load), 9, at, self.ttl, proto, 0]
        form = "!BBHHHBBH"
        head[7] = 0xFFFF - checksum(struct.pack(form, *head) + src + dst + options)
        return b"\x08\0" + struct.pack(form, *head) + src + dst + options + load

    def _content(self, addresses, mark):
        """Return (protocol, content of the packet)."""
        if self.kind == "esp":  # the halves of its SPI are where UDP has ports
            return 50, struct.pack("!HH8x", *self.ports) + mark
        if self.kind == "icmp":
            proto, first, at = (58, b"\x80\0", 2) if self.f.six else (1, b"\x08\0", 2)
            load = first + bytes(6) + mark
        elif self.kind == "tcp":
            proto, at, load = 6, 16, struct.pack("!HHIIBBHHH", *self.ports, 1, 0, 0x50, 2, 8192, 0, 0) + mark
        else:
            proto, at, load = 17, 6, struct.pack("!HHHH", *self.ports, 8 + len(mark), 0) + mark
        if self.kind in ("first", "later"):
            return proto, load + bytes(-len(load) % 8)
        pseudo = b"" if proto == 1 else addresses + struct.pack("!HH", proto, len(load))
        value = 0xFFFF - checksum(pseudo + load)
        return proto, load[:at] + struct.pack("!H", value or 0xFFFF) + load[at + 2 :]

    def _extended(self, proto, load):
        """Return (next header, content) with the extension header of an IPv6 packet."""
        if self.kind in ("first", "later"):
            return 44, struct.pack("!BBHI", proto, 0, (8 if self.kind == "later" else 0) | 1, 9) + load
        if self.kind == "options":
            return 60, struct.pack("!BB6s", proto, 0, b"\x01\x04\0\0\0\0") + load
        return proto, load

    def __repr__(self):
        kind = self.kind
        src = self.sender.replace("{:x}", "X").replace("{}", "X")
        return f"{self.wire}: {src} > {self.dst} tos {self.tos:#x} {kind} {self.ports} ttl {self.ttl}"
