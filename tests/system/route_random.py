# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of commands about routes, next-hop objects, addresses and links, from a seed.

A sequence is a list of steps. A step is a list of commands that one `ip -batch` runs, or a change
of a link: ("down", wire), ("up", wire), ("lost", wire), ("found", wire)."""

import random

# The links that a sequence changes. Probes come from lan, and errors go back to lan.
LINKS = ("wan", "alt", "ext")
SUBNET = {"wan": 64, "alt": 128, "ext": 192}
NET6 = {"wan": 1, "alt": 2, "ext": 3}
# Gateways: (address, wire). Each has a MAC address of its own.
GATEWAYS = {
    4: [(f"192.0.2.{SUBNET[w] + n}", w) for w in LINKS for n in (2, 3)] + [("192.0.2.3", "lan")],
    6: [(f"2001:db8:{NET6[w]}::{n}", w) for w in LINKS for n in (2, 3)]
    + [(f"fe80::{n}", w) for w in LINKS for n in (2, 3)],
}
# Gateways that are in no subnet.
FOREIGN = {4: ("10.200.0.1", "10.200.0.2"), 6: ("2001:db8:ff::1", "2001:db8:ff::2")}
PREFIXES = {
    4: (
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.8.0.0/16",
        "10.8.0.0/24",
        "10.8.0.0/25",
        "10.8.0.8/31",
        "10.8.0.9/32",
        "10.8.0.9/32",
        "10.8.1.0/24",
        "10.9.0.0/24",
        "10.9.0.0/25",
        "192.0.2.64/26",
        "192.0.2.70/32",
        "192.0.2.128/25",
    ),
    6: (
        "::/0",
        "2001:db8:e000::/36",
        "2001:db8:e000::/48",
        "2001:db8:e000::/64",
        "2001:db8:e000::8/127",
        "2001:db8:e000::9/128",
        "2001:db8:e000::9/128",
        "2001:db8:e001::/48",
        "2001:db8:9::/64",
        "2001:db8:9::/112",
        "2001:db8:1::/64",
        "2001:db8:1::46/128",
        "2001:db8:2::/63",
    ),
}
HOSTS = {
    4: (
        "203.0.113.7",
        "10.1.0.1",
        "10.8.9.9",
        "10.8.0.0",
        "10.8.0.8",
        "10.8.0.9",
        "10.8.0.130",
        "10.8.0.255",
        "10.8.1.9",
        "10.9.0.0",
        "10.9.0.1",
        "10.9.0.2",
        "10.9.0.9",
        "10.9.0.77",
        "10.9.0.127",
        "10.9.0.255",
        "192.0.2.70",
        "192.0.2.127",
        "192.0.2.130",
        "192.0.2.65",
    ),
    6: (
        "2001:db8:7777::7",
        "2001:db8:e100::1",
        "2001:db8:e000::",
        "2001:db8:e000::8",
        "2001:db8:e000::9",
        "2001:db8:e000:1::1",
        "2001:db8:e001::9",
        "2001:db8:9::",
        "2001:db8:9::1",
        "2001:db8:9::2",
        "2001:db8:9::9",
        "2001:db8:9::77",
        "2001:db8:9::1:1",
        "2001:db8:1::46",
        "2001:db8:2::46",
        "2001:db8:1::1",
    ),
}
METRICS = {4: ("", "", "", "metric 5", "metric 100", "metric 300"), 6: ("", "", "metric 5", "metric 100")}
# Metrics of IPv6 routes that refuse: Linux keeps routes of one metric in a list, and its messages do not
# show the places (manual/limits.md).
METRICS_REFUSE6 = ("metric 7", "metric 90", "metric 2000")
PROTOS = ("", "", "", "proto static", "proto 99", "proto bird", "proto dhcp", "proto bgp")
# The protocols of all routes that a sequence can add.
ALL_PROTOS = ("boot", "static", "99", "bird", "dhcp", "bgp")
ADDRESSES = {
    4: (
        "10.9.0.1/24",
        "10.9.0.2/24",
        "10.9.0.2/25",
        "10.9.0.1/32",
        "10.9.0.8/31",
        "10.9.0.9/31",
        "10.9.0.1 peer 10.9.0.77/32",
        "10.9.0.1 peer 10.9.0.77/24",
        "10.9.0.1/24 broadcast 10.9.0.77",
        "10.9.0.1/24 broadcast +",
        "10.8.0.9/32",
        "192.0.2.70/26",
    ),
    6: (
        "2001:db8:9::1/64",
        "2001:db8:9::2/64",
        "2001:db8:9::2/112",
        "2001:db8:9::1/128",
        "2001:db8:9::9/127",
        "2001:db8:9::1 peer 2001:db8:9::77/128",
        "2001:db8:e000::9/128",
        "2001:db8:1::46/64",
    ),
}
MTUS = ("mtu 1300", "mtu lock 1300", "mtu 1360", "advmss 1000")
SOURCES = {4: ("192.0.2.1", "192.0.2.65", "10.9.0.1"), 6: ("2001:db8:4::1", "2001:db8:1::1", "2001:db8:9::1")}
# The numbers of single next-hop objects and of groups. Most groups have members of one family.
SINGLES, GROUPS = {4: range(1, 4), 6: range(4, 7)}, {4: range(21, 23), 6: range(23, 25)}


class Generator:
    """Make a sequence. `kinds` limits it: letters of r (routes), n (next-hop objects), a (addresses),
    l (links set down), c (carrier)."""

    def __init__(self, seed, kinds="rnalc"):
        self.rnd, self.kinds = random.Random(seed), kinds
        self.done = []  # (family, command) that added something
        self.settings = {
            "promote_secondaries": self.rnd.randint(0, 1),
            "nexthop_compat_mode": self.rnd.randint(0, 1),
        }
        some = [k for k in kinds if k in "rr" or self.rnd.random() < 0.5]
        self.some = [k for k in some if k in kinds] or ["r"]
        self.families = self.rnd.choice(((4,), (6,), (4, 6)))
        # Linux has an MTU for each next hop of an IPv6 route, and reports that of one of them.
        self.mtus = {p: self.rnd.choice(("", "", "", *MTUS)) for p in PREFIXES[6]}
        self.preferences = self.rnd.random() < 0.2
        # Few prefixes, so that commands are about the same routes.
        self.prefixes = {f: self.rnd.sample(PREFIXES[f], self.rnd.choice((1, 2, 2, 3, 4))) for f in (4, 6)}
        # Without this sysctl our router withdraws subnets without carrier (manual/behavior.md).
        self.settings["ignore_routes_with_linkdown"] = int("c" in self.some or self.rnd.random() < 0.2)

    def sequence(self):
        """Return the steps."""
        first = []
        if "n" in self.some:
            first = [[(f, self.nexthop(f)) for f in self.families for _ in range(4)]]
            self.done += [c for c in first[0] if "nexthop del" not in c[1]]
        return first + [step for _ in range(self.rnd.randint(3, 9)) for step in self.steps()]

    def steps(self):
        """Return one or two steps."""
        links = [k for k in self.some if k in "lc"]
        if links and self.rnd.random() < 0.3:
            return [self.link(self.rnd.choice(links))]
        return [[self.command() for _ in range(self.rnd.choice((1, 1, 2, 3, 6)))]]

    def link(self, kind):
        """Return a change of a link."""
        words = ("down", "up") if kind == "l" else ("lost", "found")
        return (self.rnd.choice(words), self.rnd.choice(LINKS))

    def command(self):
        """Return (family, command)."""
        rnd, family = self.rnd, self.rnd.choice(self.families)
        kind = rnd.choice([k for k in self.some if k in "rna"] + ["r"])
        if rnd.random() < 0.3 and self.done:
            return self.undo()
        made = {"r": self.route, "n": self.nexthop, "a": self.address}[kind](family)
        if not made.startswith(("route del", "route flush", "nexthop del", "addr del")):
            self.done.append((family, made))
        return (family, made)

    def undo(self):
        """Return a command that deletes the object of an earlier command, by all its words or by some."""
        rnd = self.rnd
        at = rnd.randrange(len(self.done))
        family, was = self.done[at] if rnd.random() < 0.5 else self.done.pop(at)
        words = was.split()
        if words[0] == "nexthop":
            return (family, f"nexthop del id {words[3]}")
        if words[0] == "addr":
            return (family, _without_address(words))
        if rnd.random() < 0.25:
            metric = [f"metric {words[words.index('metric') + 1]}"] if "metric" in words else []
            prefix = next(word for word in words if "/" in word)
            return (family, " ".join(["route", "del", prefix, *metric]))
        return (family, " ".join(["route", "del", *words[2:]]))

    # -- routes --

    def route(self, family):
        """Return a command about a route."""
        rnd = self.rnd
        verb = rnd.choices(
            ("add", "append", "prepend", "replace", "change", "del", "flush"), (6, 4, 2, 5, 2, 2, 0.7)
        )[0]
        prefix = rnd.choice(self.prefixes[family])
        if verb == "flush":
            return self.flush(family, prefix)
        if verb == "del" and rnd.random() < 0.6:
            return f"route del {prefix} {rnd.choice(METRICS[family])}".strip()
        if rnd.random() < 0.06:
            return self.local_route(family, verb, prefix)
        kind, words = self.target(family)
        refuses = kind != "" or "blackhole" in words
        metric = rnd.choice(METRICS_REFUSE6 if family == 6 and refuses else METRICS[family])
        more = [metric, rnd.choice(PROTOS)]
        if family == 4 and rnd.random() < 0.12:
            more.append(rnd.choice(("tos 0x10", "tos 0x08")))
        if not refuses and family == 4 and rnd.random() < 0.12:
            more.append(rnd.choice(MTUS))
        if not refuses and family == 6:
            # All IPv6 routes of a next-hop object share cached routes in Linux, and with them an MTU.
            more.append("" if "nhid" in words else self.mtus[prefix])
            if self.preferences and rnd.random() < 0.3:
                more.append(rnd.choice(("pref high", "pref low", "pref medium")))
        if not refuses and rnd.random() < 0.1:
            more.append(f"src {rnd.choice(SOURCES[family])}")
        if family == 4 and not refuses and rnd.random() < 0.05:
            more.append(rnd.choice(("scope link", "scope global", "scope host")))
        return " ".join(w for w in (f"route {verb}", kind, prefix, *more, words) if w)

    def flush(self, family, prefix):
        """Return a flush with selectors that leave the routes of the test."""
        rnd = self.rnd
        every = "10.0.0.0/8" if family == 4 else "2001:db8:e000::/36"
        how = rnd.choice(
            (
                f"root {every}",
                f"exact {prefix}",
                f"root {prefix}" if not prefix.endswith("/0") and prefix != "192.0.2.128/25" else f"root {every}",
                f"match {every}",
                f"dev {rnd.choice(LINKS)}0",
                f"proto {rnd.choice(ALL_PROTOS)}",
                f"via {rnd.choice(GATEWAYS[family])[0]}",
                f"table local root {every}",
            )
        )
        return f"route flush {how}"

    def local_route(self, family, verb, prefix):
        """Return a command about a route of table local."""
        rnd = self.rnd
        if prefix.endswith("/0"):
            prefix = "10.8.0.0/24" if family == 4 else "2001:db8:e000::/64"
        verb = "add" if verb in ("change", "prepend", "append") else verb
        kind = rnd.choice(("local", "local", "local", "broadcast", "blackhole", "unreachable", "throw", "anycast"))
        if kind == "broadcast" and family == 6:
            kind = "local"
        dev = "" if kind in ("blackhole", "unreachable", "throw") else "dev lo"
        if kind == "broadcast":
            dev = f"dev {rnd.choice(LINKS)}0"
        return f"route {verb} {kind} {prefix} table local {dev}".strip()

    def target(self, family):
        """Return (type of a route, words of its next hops)."""
        rnd = self.rnd
        what = rnd.random()
        if what < 0.1:
            return (rnd.choice(("blackhole", "unreachable", "prohibit", "throw")), "")
        if what < 0.4 and "n" in self.some:
            return ("", f"nhid {self.some_id(family)}")
        if what < 0.55:
            hops = [f"nexthop {self.hop(family, many=True)}" for _ in range(rnd.choice((2, 2, 3, 4)))]
            if family == 6 and rnd.random() < 0.95:
                hops = [h for h in hops if "via" in h] or [f"nexthop {self.hop_with_dev(6)}"]
            return ("", " ".join(hops))
        return ("", self.hop(family))

    def hop(self, family, many=False):
        """Return the words of one next hop."""
        rnd, what = self.rnd, self.rnd.random()
        gate, wire = rnd.choice(GATEWAYS[family])
        text = f"via {gate} dev {wire}0"
        if what < 0.12:
            text = f"dev {rnd.choice(LINKS)}0"
        elif what < 0.2:
            text = f"via {rnd.choice(FOREIGN[family])} dev {rnd.choice(LINKS)}0 onlink"
        elif what < 0.3 and family == 4 and "c" not in self.some:
            # Linux does not notice that such a next hop has no carrier when it is added, and loses packets
            # (fib_check_nh_v6_gw()).
            gate, wire = rnd.choice(GATEWAYS[6])
            text = f"via inet6 {gate} dev {wire}0"
        elif what < 0.4 and not gate.startswith("fe80"):
            text = f"via {gate}"
        if many and rnd.random() < 0.3:
            text += f" weight {rnd.randint(1, 4)}"
        return text

    # -- next-hop objects --

    def nexthop(self, family):
        """Return a command about a next-hop object."""
        rnd = self.rnd
        verb = rnd.choices(("add", "replace", "del"), (4, 4, 2))[0]
        if verb == "del":
            return f"nexthop del id {self.some_id(family)}"
        if rnd.random() < 0.35:
            ids = {self.some_id(family, False) for _ in range(rnd.choice((1, 2, 2, 3)))}
            group = "/".join(f"{i},{rnd.randint(1, 4)}" if rnd.random() < 0.4 else str(i) for i in sorted(map(str, ids)))
            return f"nexthop {verb} id {rnd.choice(GROUPS[family])} group {group}"
        target = "blackhole" if rnd.random() < 0.12 else self.hop(family)
        if target.startswith("via") and ("dev" not in target or "inet6" in target):
            target = self.hop_with_dev(family)
        return f"nexthop {verb} id {rnd.choice(SINGLES[family])} {target}"

    def some_id(self, family, group=True):
        """Return the number of an object, most often of one that was added."""
        if self.rnd.random() < 0.05:
            family = 10 - family
        some = [*SINGLES[family], *(GROUPS[family] if group else ())]
        was = {int(text.split()[3]) for _, text in self.done if text.startswith("nexthop")}
        return self.rnd.choice([n for n in some if n in was] or some)

    def hop_with_dev(self, family):
        """Return a next hop with an interface."""
        gate, wire = self.rnd.choice(GATEWAYS[family])
        return f"via {gate} dev {wire}0"

    # -- addresses --

    def address(self, family):
        """Return a command about an address."""
        rnd = self.rnd
        verb = rnd.choices(("add", "del", "replace"), (6, 2, 1))[0]
        dev = f"{rnd.choice(LINKS)}0"
        # manual/limits.md: next hops by an interface without an IPv4 address
        stays = family == 4 and any("nexthop via" in command for _, command in self.done)
        if rnd.random() < 0.06 and not stays:
            own = {"wan0": 1, "alt0": 2, "ext0": 3}[dev]
            text = f"192.0.2.{64 * own + 1}/26" if family == 4 else f"2001:db8:{own}::1/64"
            return f"addr del {text} dev {dev}"
        text = rnd.choice(ADDRESSES[family])
        if verb == "del":
            return _without_address(f"addr add {text} dev {dev}".split())
        more = rnd.choice(("", "", "", "metric 50", "noprefixroute", "metric 400"))
        return f"addr {verb} {text} dev {dev} {more} {'nodad' if family == 6 else ''}".strip()


def _without_address(words):
    """Return the command that deletes the address of `addr add`."""
    peer = f" peer {words[4]}" if words[3] == "peer" else ""
    return f"addr del {words[2]}{peer} dev {words[words.index('dev') + 1]}"
