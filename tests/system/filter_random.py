# SPDX-License-Identifier: BSD-3-Clause
"""Random rulesets of nft and random packets, from a seed. The packets include no later fragments,
because Linux 6.18 reads the ports of such a fragment from its payload (nft_payload_fast_eval() does
not look at the offset; later kernels do)."""

import ipaddress
import re
import struct

from wire import token

PORTS = (22, 53, 80, 443, 8080, 50000)
SOURCES = ("192.0.2.2", "10.1.2.3", "10.200.0.1", "203.0.113.5")
SOURCES6 = ("2001:db8:4::2", "2001:db8:aaaa::1", "2001:db8:bbbb::5")
TARGETS = ("198.51.100.9", "198.51.100.200", "198.18.0.1")
TARGETS6 = ("2001:db8:f000::9", "2001:db8:f00f::1", "2001:db8:e000::1")
# Prefix: wire by which its packets leave.
ROUTES = {
    "198.51.100.0/24": "wan",
    "198.18.0.0/24": "alt",
    "2001:db8:f000::/36": "wan",
    "2001:db8:e000::/36": "alt",
}
SETS = """
set nets4 {{ type ipv4_addr; flags interval; elements = {{ {nets4} }} }}
set nets6 {{ type ipv6_addr; flags interval; elements = {{ {nets6} }} }}
set hosts {{ type ipv4_addr; elements = {{ {hosts} }} }}
set pairs {{ type ipv4_addr . inet_service; flags interval; elements = {{ {pairs} }} }}
set pairs6 {{ type ipv6_addr . inet_service; flags interval; elements = {{ {pairs6} }} }}
map ranges4 {{ type ipv4_addr . inet_service : verdict; flags interval; elements = {{ {ranges4} }} }}
map ranges6 {{ type ipv6_addr . inet_service : verdict; flags interval; elements = {{ {ranges6} }} }}
map paths {{ type inet_proto : verdict; elements = {{ {paths} }} }}
counter named {{ }}
"""
# Ranges of the maps. A range may contain those before it, and then the first of them decides.
RANGES4 = ("10.200.0.0/24 . 80-90", "10.1.2.0/24 . 53-443", "10.0.0.0/8 . 22-8080", "192.0.2.0/25 . 22", "0.0.0.0/0 . 53-60000")
RANGES6 = ("2001:db8:aaaa::/64 . 80-90", "2001:db8:aaaa::/48 . 53-443", "2001:db8::/32 . 22-8080", "2000::/3 . 1-60000")
REJECTS = (
    "reject",
    "reject with icmpx admin-prohibited",
    "reject with icmpx no-route",
    "reject with icmpx host-unreachable",
)
REJECTS4 = ("reject with icmp net-unreachable", "reject with icmp host-prohibited")
REJECTS6 = ("reject with icmpv6 addr-unreachable", "reject with icmpv6 admin-prohibited")

# Forms of nft that random rulesets lack: {name: (sets and chains, rules of the chain forward)}.
FORMS = {
    "map of intervals": ("", "ip saddr vmap { 10.0.0.0/8 : drop, 192.0.2.0/24 : accept }\ncounter"),
    "map of pairs": (
        "chain c { counter drop\n}\nmap m { type ipv4_addr . inet_service : verdict; flags interval, timeout; timeout 1h;"
        " elements = { 10.0.0.0/8 . 1-100 : drop, 192.0.2.0/24 . 443 : jump c } }",
        "ip saddr . tcp dport vmap @m\nip saddr . udp dport vmap @m\ncounter",
    ),
    "overlapping ranges of pairs": (
        "chain c { counter drop\n}\nmap m { type ipv4_addr . inet_service : verdict; flags interval; elements = {"
        " 10.200.0.0/16 . 80-443 : jump c, 10.0.0.0/8 . 1-9000 : continue, 8.0.0.0-12.0.0.0 . 0-65535 : drop,"
        " 192.0.2.0/24 . 22 : drop } }\nmap m6 { type ipv6_addr . inet_service : verdict; flags interval; elements = {"
        " 2001:db8:aaaa::/48 . 80-443 : drop, 2001:db8::/32 . 1-9000 : continue, 2000::/3 . 0-65535 : drop } }",
        "ip saddr . tcp dport vmap @m\nip saddr . udp dport vmap @m\nip6 saddr . tcp dport vmap @m6\n"
        "ip6 saddr . udp dport vmap @m6\ncounter",
    ),
    "pairs with a default": (
        "map m { type ipv4_addr . inet_service : verdict; flags interval; elements = { 10.0.0.0/8 . 80-443 : drop, * : continue } }",
        "ip saddr . tcp dport vmap @m counter\ncounter",
    ),
    "ranges without a name": (
        "set s { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 80-443, 192.0.2.0/24 . 22 } }",
        "ip saddr . tcp dport != @s counter\nip6 saddr != 2001:db8:aaaa::/48 udp dport . ip6 daddr { 22-443 . 2001:db8:f000::/36 } counter drop\n"
        "ip daddr . th sport . meta length { 198.51.100.0/25 . 22-100 . 60-120 } counter drop\n"
        "ip6 daddr . meta l4proto . th dport { 2001:db8:f000::/36 . tcp . 22-100 } counter reject\n"
        'iifname . ip6 saddr . udp dport vmap { "l*" . 2001:db8:bbbb::/48 . 50-60 : drop, "lan0" . ::/0 . 0-79 : accept }\n'
        "ip6 saddr . ip6 hoplimit { 2001:db8::/32 . 1-5 } counter drop\nicmp type . icmp code { 3-8 . 0 } counter drop\ncounter",
    ),
    "ranges of pairs with a timeout and a counter": (
        "set s { type ipv6_addr . inet_service; flags interval,timeout; counter; elements = { 2001:db8:aaaa::/48 . 80-443 timeout 1h } }",
        "ip6 saddr . tcp dport @s counter drop\nip6 saddr . udp sport @s counter drop\ncounter",
    ),
    "map with a default": (
        "chain c { counter drop\n}\nmap m { type inet_proto : verdict; elements = { tcp : goto c, * : continue } }",
        "meta l4proto vmap @m\ncounter",
    ),
    "map by length": ("", "meta length vmap { 0-80 : drop, 81-200 : accept }\ncounter"),
    "set with a default": (
        "set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, * } }",
        "ip saddr != @s counter\nip saddr @s counter drop\ncounter",
    ),
    "set of intervals with a timeout": (
        "set s { type ipv4_addr; flags interval,timeout; timeout 1h; elements = { 10.0.0.0/8, 192.0.2.0/24 timeout 1d } }",
        "ip saddr @s counter drop\ncounter",
    ),
    "set of five fields": (
        "set s { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; flags interval;"
        " elements = { 10.0.0.0/8 . 198.51.100.0/24 . tcp . 0-65535 . 22-443 } }",
        "ip saddr . ip daddr . meta l4proto . th sport . th dport @s counter drop\ncounter",
    ),
    "set of names": (
        'set s { type ifname . ipv4_addr; flags interval; elements = { "lan0" . 10.0.0.0/8, "la*" . 192.0.2.0/24 } }',
        "iifname . ip saddr @s counter drop\ncounter",
    ),
    "set of all and of none": (
        "set all4 { type ipv4_addr; flags interval; elements = { 0.0.0.0/1, 128.0.0.0/1 } }\n"
        "set all6 { type ipv6_addr; flags interval; elements = { ::/0 } }\nset none { type inet_service; }",
        "tcp dport @none counter drop\ntcp dport != @none counter\nip saddr @all4 counter drop\n"
        "ip6 saddr != @all6 counter\ncounter",
    ),
    "set of ports at both ends": (
        "set s { type inet_service; flags interval; elements = { 0-21, 65535, 443-65534 } }",
        "tcp dport @s counter drop\ncounter",
    ),
    "set with a counter": ("set s { type ipv4_addr; counter; elements = { 10.1.2.3 } }", "ip saddr @s counter drop\ncounter"),
    "set of octets": ("set s { typeof @nh,72,8; elements = { 6, 17 } }", "@nh,72,8 @s counter drop\ncounter"),
    "bits": (
        "",
        "ip saddr & 255.0.0.0 == 10.0.0.0 counter\nip daddr | 0.0.0.255 == 198.51.100.255 counter\n"
        "ip saddr ^ 1.1.1.1 == 11.0.3.2 counter\n(ip ttl << 1) & 0xff > 100 counter drop\n@nh,4,4 5 counter\n@th,3,13 53 counter",
    ),
    "fields": (
        "",
        "ip6 flowlabel 0 counter\nip hdrlength 5 counter\nip ecn ce counter drop\nip6 ecn ect0 counter drop\n"
        "tcp doff 5 counter\ntcp window 8192 counter\nicmp id 0 counter\ndst nexthdr 6 counter\nfrag more-fragments 1 counter drop",
    ),
    "changes": ("", "ip ecn set ce counter\nip dscp set ef\nip dscp ef ip checksum > 9000 counter\nip6 ecn set not-ect\nip6 ecn 0 counter"),
    "chains without names": (
        "",
        "meta l4proto tcp jump { ip saddr 10.0.0.0/8 counter drop; counter; }\nudp dport 53 goto { counter return; }\ncounter",
    ),
    "chains of one priority": (
        "chain a { type filter hook forward priority 0; policy accept;\nudp dport 53 counter drop\ncounter\n}\n"
        "chain z { type filter hook forward priority 0; policy accept;\ntcp dport 22 counter reject\ncounter\n}",
        "tcp dport 22 counter drop\ncounter",
    ),
    "chains that many jumps reach": (
        "chain c { udp dport 53 counter return\ncounter\n}\nchain b { jump c\njump c\njump c\n}\n"
        "chain a { jump b\njump b\ngoto b\njump b\n}",
        "jump a\njump a\ngoto a\ncounter",
    ),
    "two limits of a rule": ("", "limit rate 1/hour burst 3 packets limit rate over 1/hour burst 2 packets counter drop\ncounter"),
}


class Rules:
    """A random ruleset."""

    def __init__(self, rnd):
        self.rnd = rnd
        # Long chains of narrow rules have a classifier.
        self.long = rnd.random() < 0.5

    def text(self):
        """Return the content of the table."""
        rnd = self.rnd
        self.elements = {
            "nets4": {self._net4(16 * i) for i in range(rnd.randint(1, 4))},
            "nets6": {f"2001:db8:{x:x}::/48" for x in rnd.sample(range(4), 2)} | {"2001:db8:aaaa::/64"},
            "hosts": set(rnd.sample(SOURCES + TARGETS, 3)),
            "pairs": {f"10.0.0.0/8 . {rnd.choice(PORTS)}", "192.0.2.0/24 . 50-100"},
            "pairs6": {"2001:db8:aaaa::/48 . 22-60", f"2001:db8:4::/64 . {rnd.choice(PORTS)}"},
        }  # fmt: skip
        if rnd.random() < 0.5:  # sets of many addresses are in a Poptrie
            self.elements["nets4"] |= {f"14.{n}.0.0/{rnd.randint(17, 32)}" for n in range(40)}
            self.elements["nets6"] |= {f"2001:db9:{n:x}::/{rnd.randint(50, 128)}" for n in range(40)}
            self.elements["hosts"] |= {f"14.0.0.{n}" for n in range(40)}
        sets = SETS.format(
            paths=f"tcp : {self._simple()}, udp : jump sub0",
            ranges4=self._ranges(RANGES4),
            ranges6=self._ranges(RANGES6),
            **{name: ", ".join(sorted(some)) for name, some in self.elements.items()},
        )
        policy = rnd.choice(("accept", "accept", "drop"))
        few = rnd.randint(16, 40) if self.long else 3
        chains = [self._chain("sub0", few, ""), self._chain("sub1", few, "jump sub0")]
        hook = f"type filter hook forward priority 0; policy {policy};"
        chains.append(self._chain("forward", rnd.randint(2, 9) * (few // 3), "jump sub1", hook))
        if rnd.random() < 0.3:
            hook = f"type filter hook forward priority {rnd.choice((-10, 0, 10))}; policy accept;"
            chains.append(self._chain("second", few, "goto sub0", hook))
        return sets + "\n".join(chains)

    def change(self, table):
        """Return nft commands that add elements to the sets and delete some."""
        rnd, lines = self.rnd, []
        for name in rnd.sample(sorted(self.elements), rnd.choice((1, 1, 2))):
            have = self.elements[name]
            gone = set(rnd.sample(sorted(have), rnd.randint(0, min(2, len(have)))))
            new = {self._element(name) for _ in range(rnd.randint(1, 2))} - have
            new = {x for x in new if not any(_overlap(x, y) for y in (have - gone) | (new - {x}))}
            self.elements[name] = have - gone | new
            lines += [f"delete element {table} {name} {{ {', '.join(sorted(gone))} }}"] * bool(gone)
            lines += [f"add element {table} {name} {{ {', '.join(sorted(new))} }}"] * bool(new)
        return "\n".join(lines) + "\n"

    def _ranges(self, ranges):
        """Return some of the ranges in their order, each with a verdict."""
        some = sorted(self.rnd.sample(range(len(ranges)), self.rnd.randint(1, len(ranges))))
        verdicts = ("accept", "drop", "continue", "return", "jump sub0", "goto sub0")
        return ", ".join(f"{ranges[i]} : {self.rnd.choice(verdicts)}" for i in some)

    def _element(self, name):
        """Return an element for the set `name`. A packet may match the element."""
        rnd = self.rnd
        if name == "nets4":
            return rnd.choice((self._net4(16 * rnd.randint(0, 12)), "192.0.2.0/24", "203.0.113.0/29"))
        if name == "nets6":
            return rnd.choice(("2001:db8:4::/63", "2001:db8:bbbb::/48", "2001:db8:bbbb::5/128", "::/3"))
        if name == "hosts":
            return rnd.choice(SOURCES + TARGETS)
        first = rnd.choice(PORTS)
        ports = rnd.choice((f"{first}", f"{first}-{first + rnd.randint(1, 9000)}"))
        return f"{rnd.choice(SOURCES6 if name == 'pairs6' else SOURCES)}{rnd.choice(('', '/24'))} . {ports}"

    def _chain(self, name, count, jump, hook=""):
        rules = "\n".join(self._rule(jump) for _ in range(count))
        return f"chain {name} {{\n{hook}\n{rules}\n}}"

    def _net4(self, first):
        rnd = self.rnd
        plen = rnd.choice((8, 12, 16, 24, 32))
        base = int.from_bytes(bytes([first + rnd.randint(0, 12), 200 * rnd.randint(0, 1), 0, 1]), "big")
        base &= ~((1 << (32 - plen)) - 1)
        return ".".join(map(str, base.to_bytes(4, "big"))) + f"/{plen}"

    def _simple(self):
        return self.rnd.choice(("accept", "drop", "continue", "return"))

    def _port(self):
        rnd, p = self.rnd, self.rnd.choice(PORTS)
        return rnd.choice(
            (str(p), f"{p}-{p + 100}", f"!= {p}", f"< {p}", f"> {p}",
             f"{{ {p}, 1000-60000 }}", f"!= {{ {p} }}")
        )  # fmt: skip

    def _match(self):
        """Return (match, family or None)."""
        rnd = self.rnd
        src, dst = rnd.choice(SOURCES), rnd.choice(TARGETS)
        src6, dst6 = rnd.choice(SOURCES6), rnd.choice(TARGETS6)
        return rnd.choice(
            [
                (f'iifname {rnd.choice(["lan0", "l*", "ext0"])}', None),
                (f'oifname {rnd.choice(["wan0", "alt0", "!= wan0", "w*"])}', None),
                ('oifname { "alt0", "w*" }', None),
                ('iif "lan0"', None),
                ('oif { "wan0", "ext0" }', None),
                (f"ip saddr {rnd.choice([src, src + '/8', '!= ' + src, '10.0.0.0-10.1.255.255'])}", 4),
                (f"ip daddr {rnd.choice([dst, dst + '/25', '!= ' + dst])}", 4),
                (f"ip6 saddr {rnd.choice([src6, src6 + '/33', '!= ' + src6])}", 6),
                (f"ip6 daddr {rnd.choice([dst6, dst6 + '/100', '!= ' + dst6])}", 6),
                (f"ip saddr {rnd.choice(['', '!= '])}@nets4", 4),
                (f"ip6 saddr {rnd.choice(['', '!= '])}@nets6", 6),
                (f"ip {rnd.choice(['saddr', 'daddr'])} @hosts", 4),
                ("ip saddr . tcp dport @pairs", 4),
                (f"ip saddr . udp dport {rnd.choice(('', '!= '))}@pairs", 4),
                (f"ip6 saddr . {rnd.choice(('tcp', 'udp'))} dport {rnd.choice(('', '!= '))}@pairs6", 6),
                (f"ip saddr . ip daddr . meta l4proto {{ {src} . {dst} . tcp }}", 4),
                (f"meta nfproto {rnd.choice(['ipv4', 'ipv6'])}", None),
                (f"meta l4proto {rnd.choice(['tcp', 'udp', '{ icmp, ipv6-icmp, 47 }', '!= tcp'])}", None),
                (f"ip protocol {rnd.choice(['tcp', '!= udp', '{ 1, 6 }'])}", 4),
                (f"ip6 nexthdr {rnd.choice(['tcp', 'udp', '44', '60'])}", 6),
                (f"tcp dport {self._port()}", None),
                (f"udp dport {self._port()}", None),
                (f"udp sport {self._port()}", None),
                (f"meta l4proto {{ tcp, udp }} th dport {self._port()}", None),
                ("tcp flags syn / syn,ack,rst", None),
                ("tcp flags & (ack | rst) != 0", None),
                ("tcp flags != ack", None),
                ("tcp flags { syn, ack | psh }", None),
                (f"icmp type {rnd.choice(['echo-request', '!= echo-request', '{ 3, 8, 11 }'])}", 4),
                (f"icmp code {rnd.choice(['0', '> 0'])}", 4),
                ("icmpv6 type echo-request", 6),
                (f"ip dscp {rnd.choice(['cs1', 'ef', '!= cs0', '{ cs1, cs2 }'])}", 4),
                (f"ip6 dscp {rnd.choice(['cs1', 'ef', '!= cs0'])}", 6),
                ("ip frag-off & 0x1fff != 0", 4),
                ("exthdr frag exists", 6),
                ("exthdr dst missing", 6),
                ("frag id > 5", 6),
                (f"ah spi {rnd.choice(['1', '!= 1'])}", None),
                ("meta l4proto ah", None),
                (f"ip ttl {rnd.choice(['< 10', '63', '1', '!= 4'])}", 4),
                (f"ip6 hoplimit {rnd.choice(['< 10', '63', '1', '!= 4'])}", 6),
                (f"meta length {rnd.choice(['> 200', '<= 80', '60-120'])}", None),
                ("ip length > 100", 4),
                ("udp length > 60", None),
                ("ip checksum > 30000", 4),
                ("ip version 4", 4),
                ("meta protocol ip6", None),
                ("@th,0,16 53", None),
                (f"fib saddr{rnd.choice(['', ' . iif'])} oif {rnd.choice(['exists', 'missing'])}", None),
            ]
        )

    def _rule(self, jump):
        """Return a rule that nft takes: its matches are of one family."""
        rnd, family, parts, has_upper = self.rnd, None, [], None
        for _ in range(rnd.randint(2, 5) if self.long else rnd.randint(0, 3)):
            match, its = self._match()
            upper = re.search(r"tcp|udp|icmp|th |ah |l4proto|protocol|nexthdr|@th|@pairs", match)
            if (its is not None and family not in (None, its)) or (upper and has_upper):
                continue
            has_upper = has_upper or upper
            family = its or family
            if match.startswith("meta nfproto") or match.startswith("meta protocol"):
                if family is not None or any(p.startswith("meta ") for p in parts):
                    continue
                family = 0
            parts.append(match)
        done = [rnd.choice(("accept", "drop")), self._simple(), rnd.choice(REJECTS), "", ""]
        if jump:
            done += [jump, jump]
        if family == 4:
            done += ["ip dscp set cs3", rnd.choice(REJECTS4)]
        if family == 6:
            done += ["ip6 dscp set ef", rnd.choice(REJECTS6)]
        if jump and family is None and not has_upper:
            done += ["meta l4proto vmap @paths"] * 2
        # The maps jump to sub0.
        if jump and family in (None, 4, 6) and not has_upper:
            its = family or rnd.choice((4, 6))
            ip = "ip" if its == 4 else "ip6"
            done += [f"{ip} {rnd.choice(('saddr', 'daddr'))} . {rnd.choice(('tcp', 'udp'))} dport vmap @ranges{its}"] * 2
        count = rnd.choice(("counter", "counter", "counter", "counter name named", ""))
        return " ".join([*parts, count, rnd.choice(done)]) or "counter"


def _overlap(a, b):
    """Return True if two elements may not be in a set of intervals together."""
    if " . " in a:
        pairs = [x.split(" . ") for x in (a, b)]
        nets = [ipaddress.ip_network(net, strict=False) for net, _ in pairs]
        ends = [[int(n) for n in ports.split("-")] for _, ports in pairs]
        return nets[0].overlaps(nets[1]) and max(e[0] for e in ends) <= min(e[-1] for e in ends)
    return ipaddress.ip_network(a).overlaps(ipaddress.ip_network(b))


FLAGS = (0x02, 0x12, 0x10, 0x04, 0x18, 0x01)  # SYN, SYN ACK, ACK, RST, PSH ACK, FIN
NUMBER = {"tcp": 6, "udp": 17, "gre": 47, "ah": 51}
AH, DEST, FRAGMENT = 51, 60, 44


def packet(rnd, mac, port_mac):
    """Return a random packet as octets of a frame. Scapy would take a second for 1,000 of them."""
    mark = token() + bytes(rnd.choice((0, 0, 20, 200, 1000)))
    six = rnd.random() < 0.5
    kind = rnd.choice(("tcp", "udp", "icmp", "gre", "tcp", "udp", "icmp", "ah"))
    dscp, hops = rnd.choice((0, 0, 8, 24, 46)) << 2 | rnd.randint(0, 3), rnd.choice((64, 64, 5, 2, 1))
    src, dst = rnd.choice(SOURCES6 if six else SOURCES), rnd.choice(TARGETS6 if six else TARGETS)
    addresses = ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed
    number = NUMBER.get(kind) or (58 if six else 1)
    data = _upper(rnd, kind, six, addresses, mark)
    ether = bytes.fromhex((port_mac + mac).replace(":", "")) + (b"\x86\xdd" if six else b"\x08\0")
    if six:
        for header in rnd.choice(((), (), (), (DEST,), (DEST, DEST))) + (FRAGMENT,) * (rnd.random() < 0.25):
            rest = bytes((1, 4, 0, 0, 0, 0))
            if header == FRAGMENT:
                rest = struct.pack("!HI", rnd.randint(0, 1), rnd.randint(1, 9))
            data, number = bytes((number, 0)) + rest + data, header
        return ether + struct.pack("!IHBB", 6 << 28 | dscp << 20, len(data), number, hops) + addresses + data
    ip = struct.pack(
        "!BBHHHBBH", 0x45, dscp, 20 + len(data), rnd.randint(1, 65535), rnd.choice((0, 0, 1, 2)) << 13,
        hops, number, 0,
    )  # fmt: skip
    return ether + _with_checksum(ip, 10, addresses) + addresses + data


def _upper(rnd, kind, six, addresses, mark):
    """Return the upper layer: a header and the mark, with a checksum."""
    ports = rnd.choice(PORTS), rnd.choice(PORTS)
    if kind == "gre":
        return bytes(4) + mark
    if kind == "icmp":
        head = (128, 0) if six else (rnd.choice((8, 8, 3, 13)), rnd.randint(0, 1))
        data = bytes(head) + bytes(6) + mark
        return _with_checksum(data, 2, addresses + struct.pack("!HH", 58, len(data)) if six else b"")
    if kind == "udp":
        data, number, at = struct.pack("!4H", *ports, 8 + len(mark), 0) + mark, 17, 6
    else:
        data = struct.pack("!HHIIBBHHH", *ports, 0, 0, 0x50, rnd.choice(FLAGS), 8192, 0, 0) + mark
        number, at = 6, 16
    data = _with_checksum(data, at, addresses + struct.pack("!HH", number, len(data)))
    if kind == "ah":
        data = struct.pack("!BBHII", number, 4, 0, rnd.randint(1, 2), 1) + bytes(12) + data
    return data


def _sum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _with_checksum(data, at, pseudo):
    """Return the octets with their checksum at an offset."""
    return data[:at] + struct.pack("!H", ~_sum(pseudo + data) & 0xFFFF) + data[at + 2 :]


def checksum_is_wrong(frame):
    """Return True if the checksum of the upper layer is wrong, as it is in a fragment. Linux then
    rejects without an ICMP error."""
    six = frame[12:14] == b"\x86\xdd"
    if not six:
        number, at = frame[23], 14 + 4 * (frame[14] & 15)
        addresses = frame[26:34]
    else:
        number, at = frame[20], 54
        addresses = frame[22:54]
        while number in (0, 43, 44, 51, 60):
            words = 1 if number == 44 else frame[at + 1] + 1
            if number == AH:
                words = (frame[at + 1] + 2) // 2
            number, at = frame[at], at + 8 * words
    if number in (47, AH) or (number == 17 and frame[at + 6 : at + 8] == b"\0\0"):
        return False
    data = frame[at:]
    if six or number in (6, 17):
        data += b"\0" * (len(data) % 2) + addresses + struct.pack("!HH", number, len(frame) - at)
    return _sum(data) != 0xFFFF
