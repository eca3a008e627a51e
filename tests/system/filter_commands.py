# SPDX-License-Identifier: BSD-3-Clause
"""Random nft commands that change a table step by step, from a seed. Some of them are wrong, and nft
refuses the transaction: then the rules of neither kernel change."""

import filter_random
from filter_random import PORTS, REJECTS, REJECTS4, REJECTS6, SOURCES, TARGETS

# nft has names for these codes of ICMP errors.
CODES4 = ("net-unreachable", "host-unreachable", "prot-unreachable", "port-unreachable", "net-prohibited",
          "host-prohibited", "admin-prohibited")  # fmt: skip
CODES6 = ("no-route", "admin-prohibited", "addr-unreachable", "port-unreachable", "policy-fail", "reject-route")
HOOK = "type filter hook forward priority {}; policy {};"
SETS = """
set nets4 { type ipv4_addr; flags interval; }
set nets6 { type ipv6_addr; flags interval; }
set hosts { type ipv4_addr; }
set pairs { type ipv4_addr . inet_service; flags interval; }
set pairs6 { type ipv6_addr . inet_service; flags interval; }
set times { type ipv4_addr; flags interval,timeout; timeout 1h; }
set fives { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service; flags interval; }
map paths { type inet_proto : verdict; }
map ways { type ipv4_addr . inet_service : verdict; flags interval,timeout; timeout 1h; }
map ranges4 { type ipv4_addr . inet_service : verdict; flags interval; }
map ranges6 { type ipv6_addr . inet_service : verdict; flags interval; }
counter named { }
limit few { rate 1/day burst 7 packets; }
limit many { rate over 1/day burst 5 packets; }
"""
USES = {
    "nets4": ("ip saddr {}@nets4",),
    "nets6": ("ip6 saddr {}@nets6", "ip6 daddr {}@nets6"),
    "hosts": ("ip saddr {}@hosts", "ip daddr {}@hosts"),
    "pairs": ("ip saddr . tcp dport {}@pairs", "ip daddr . udp dport {}@pairs"),
    "pairs6": ("ip6 saddr . udp dport {}@pairs6", "ip6 daddr . tcp dport {}@pairs6"),
    "times": ("ip saddr {}@times", "ip daddr {}@times"),
    "fives": ("ip saddr . ip daddr . meta l4proto . th sport . th dport {}@fives",),
}
MAPS = {
    "paths": "meta l4proto vmap @paths",
    "ways": "ip saddr . th dport vmap @ways",
    "ranges4": "ip saddr . tcp dport vmap @ranges4",
    "ranges6": "ip6 saddr . udp dport vmap @ranges6",
}


class Commands(filter_random.Rules):
    """A table that random commands change. begin() and step(rules) return one transaction each."""

    def __init__(self, rnd, table):
        super().__init__(rnd)
        self.table, self.subs, self.bases, self.made = table, [], [], 0

    def begin(self):
        """Return the commands that delete the table and make it."""
        self.subs, self.bases = ["sub0", "sub1"], ["forward"]
        subs = "".join(f"chain {name} {{ }}\n" for name in self.subs)
        hook = HOOK.format(0, self.rnd.choice(("accept", "accept", "drop")))
        fill = "".join(self._rule_added("") for _ in range(self.rnd.randint(3, 12)))
        fill += "".join(self._element_changed() for _ in range(5))
        return (
            f"table {self.table}\ndelete table {self.table}\n"
            f"table {self.table} {{\n{SETS}{subs}chain forward {{ {hook} }}\n}}\n{fill}"
        )

    def step(self, rules):
        """Return a transaction. `rules` has the (chain, handle) of each rule of the table."""
        rnd = self.rnd
        self.subs = sorted({chain for chain, _ in rules} & set(self.subs)) or self.subs
        kinds = [self._rule_added, self._rule_added, self._rule_inserted, self._rule_replaced, self._rule_deleted,
                 self._element_changed, self._element_changed, self._chain_made, self._chain_changed,
                 self._table_changed, self._object_made]  # fmt: skip
        one = lambda kind: kind(rules) if kind != self._element_changed else kind()  # noqa: E731
        return "".join(one(rnd.choice(kinds)) for _ in range(rnd.choice((1, 1, 2, 4))))

    # -- rules --

    def _any_chain(self):
        return self.rnd.choice(self.bases * 2 + self.subs)

    def _target(self):
        return f"{self.rnd.choice(('jump', 'jump', 'goto'))} {self.rnd.choice(self.subs)}"

    def _text(self):
        """Return a rule."""
        rnd = self.rnd
        kind = rnd.random()
        if kind < 0.4:
            return self._rule(self._target() if rnd.random() < 0.4 else "")
        of = rnd.choice(list(USES))
        match = rnd.choice(USES[of]).format(rnd.choice(("", "", "!= ")))
        four = "6" not in of
        done = [
            "accept", "drop", "return", "continue", "", self._target(),
            rnd.choice(REJECTS), rnd.choice(REJECTS4 if four else REJECTS6),
            f"reject with icmp {rnd.choice(CODES4)}" if four else f"reject with icmpv6 {rnd.choice(CODES6)}",
            "limit rate 1/day burst 4 packets drop", "limit rate over 1 bytes/day burst 900 bytes accept",
            'limit name "few" accept', 'limit name "many" drop', "counter name named drop",
        ]  # fmt: skip
        if kind < 0.5:
            return f"counter {rnd.choice(list(MAPS.values()))}"
        if kind < 0.6:
            ports = ", ".join(f"{p} : {self._verdict()}" for p in sorted(rnd.sample(PORTS, rnd.randint(1, 4))))
            return f"counter {rnd.choice(('tcp', 'udp'))} dport vmap {{ {ports} }}"
        if kind < 0.65:
            return f"counter {self._target()}"
        if kind < 0.7:
            return f"meta l4proto {rnd.choice(('tcp', 'udp', 'icmp'))} counter jump {{ {match} counter drop; counter; }}"
        return f"{match} counter {rnd.choice(done)}"

    def _verdict(self):
        return self.rnd.choice(("accept", "drop", "continue", "return", self._target()))

    def _rule_added(self, rules):
        return f"add rule {self.table} {self._any_chain()} {self._text()}\n"

    def _rule_inserted(self, rules):
        if not rules or self.rnd.random() < 0.5:
            return f"insert rule {self.table} {self._any_chain()} {self._text()}\n"
        chain, handle = self.rnd.choice(rules)
        how = self.rnd.choice(("add", "insert"))
        return f"{how} rule {self.table} {chain} position {handle} {self._text()}\n"

    def _rule_replaced(self, rules):
        if not rules:
            return ""
        chain, handle = self.rnd.choice(rules)
        return f"replace rule {self.table} {chain} handle {handle} {self._text()}\n"

    def _rule_deleted(self, rules):
        if not rules:
            return ""
        chain, handle = self.rnd.choice(rules)
        return f"delete rule {self.table} {chain} handle {handle}\n"

    # -- sets and maps --

    def _key(self, of):
        rnd = self.rnd
        src, dst, port = rnd.choice(SOURCES), rnd.choice(TARGETS), rnd.choice(PORTS)
        net = rnd.choice((src, dst, f"{src}/8", f"{dst}/24", f"{src}/{rnd.randint(1, 32)}", "10.0.0.0-10.200.0.0"))
        if "/" in net:
            net = str(filter_random.ipaddress.ip_network(net, strict=False))
        ports = rnd.choice((str(port), f"{port}-{port + 1000}", "0-65535"))
        net6 = rnd.choice(("2001:db8::/32", "2001:db8:aaaa::1", "2001:db8:f000::/36", "2001:db8:4::-2001:db8:bbbb::5"))
        keys = {
            "nets4": net,
            "nets6": net6,
            "hosts": rnd.choice((src, dst)),
            "pairs": f"{net} . {ports}",
            "pairs6": f"{net6} . {ports}",
            "ranges4": f"{net} . {ports}",
            "ranges6": f"{net6} . {ports}",
            "times": net,
            "fives": f"{net} . {dst}/{rnd.choice((8, 24))} . {rnd.choice(('tcp', 'udp'))} . 0-65535 . {ports}",
            "paths": rnd.choice(("tcp", "udp", "icmp", "ipv6-icmp", "47", "*")),
            "ways": f"{net} . {ports}",
        }
        if of == "fives":
            keys[of] = keys[of].replace(f"{dst}/8", f"{dst.partition('.')[0]}.0.0.0/8").replace(
                f"{dst}/24", f"{dst.rpartition('.')[0]}.0/24"
            )
        more = rnd.choice((" timeout 1h", " timeout 2d", "")) if of in ("times", "ways") else ""
        if of in MAPS:
            more += f" : {self._verdict()}"
        return keys[of], more

    def _element_changed(self):
        rnd = self.rnd
        of = rnd.choice(list(USES) + list(MAPS))
        if rnd.random() < 0.1:
            return f"flush {'map' if of in MAPS else 'set'} {self.table} {of}\n"
        key, more = self._key(of)
        how = rnd.choice(("add", "add", "delete"))
        text = f"{how} element {self.table} {of} {{ {key}{more if how == 'add' else ''} }}\n"
        if rnd.random() < 0.1:  # a set of many addresses is a Poptrie
            many = ", ".join(f"14.{n}.0.0/{20 + n % 9}" for n in range(60))
            text += f"add element {self.table} nets4 {{ {many} }}\n"
        return text

    # -- chains and the table --

    def _chain_made(self, rules):
        rnd, self.made = self.rnd, self.made + 1
        name = f"c{self.made}"
        if rnd.random() < 0.6:
            self.subs.append(name)
            return f"add chain {self.table} {name}\nadd rule {self.table} {name} {self._text()}\n"
        self.bases.append(name)
        hook = HOOK.format(rnd.choice((-10, 0, 0, 10)), rnd.choice(("accept", "accept", "accept", "drop")))
        return f"add chain {self.table} {name} {{ {hook} }}\nadd rule {self.table} {name} {self._text()}\n"

    def _chain_changed(self, rules):
        rnd = self.rnd
        name = rnd.choice(self.bases + self.subs)
        what = rnd.random()
        if what < 0.25:
            return f"flush chain {self.table} {name}\n"
        if what < 0.5:
            return f"add chain {self.table} {rnd.choice(self.bases)} {{ policy {rnd.choice(('accept', 'drop'))}; }}\n"
        if what < 0.7:
            return f"flush chain {self.table} {name}\ndelete chain {self.table} {name}\n"
        self.made += 1
        return f"rename chain {self.table} {name} n{self.made}\n"

    def _table_changed(self, rules):
        what = self.rnd.random()
        if what < 0.3:
            return f"add table {self.table} {{ flags dormant; }}\n"
        if what < 0.8:
            return f"add table {self.table} {{ }}\n"
        if what < 0.9:
            return f"flush table {self.table}\n" + "".join(self._rule_added("") for _ in range(4))
        return self.begin()

    def _object_made(self, rules):
        """Delete a named limit and create it again, with a full bucket. nft refuses this while a rule
        uses the limit."""
        return (
            f"delete limit {self.table} few\n"
            f"add limit {self.table} few {{ rate 1/day burst {self.rnd.choice((5, 7))} packets; }}\n"
        )
