# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of configuration for FRR, and events, for two routers (frr_pair.py). A sequence is a
list of steps; a step is a list of operations, which have their effect together."""

import contextlib
import ipaddress
import random
import re
import time

from lib import netns
from lib.wait import PATIENCE, eventually
from lib.audited import not_as_zebra_shows, only_copies_differ
from frr_pair import TABLE, gateways, settled

OUT = ("wan", "alt", "ext")
NETS = {
    4: ["10.1.0.0/16", "10.1.1.0/24", "10.1.1.128/25", "10.1.1.200/32", "10.2.0.0/16", "0.0.0.0/0"],
    6: ["2001:db8:a::/48", "2001:db8:a:1::/64", "2001:db8:a:1:8000::/65", "2001:db8:a:1::9/128", "2001:db8:b::/48",
        "::/0"],
}  # fmt: skip
# Prefixes with the next hops of recursive routes.
VIA = {4: ["10.9.0.0/24", "10.9.0.8/29"], 6: ["2001:db8:9::/64", "2001:db8:9::8/125"]}
FAR = {4: ["10.9.0.1", "10.9.0.9"], 6: ["2001:db8:9::1", "2001:db8:9::9"]}
HOSTS = {
    4: ["10.1.2.3", "10.1.1.5", "10.1.1.130", "10.1.1.200", "10.2.0.7", "10.77.0.1", "10.9.0.1", "10.9.0.9",
        "192.0.2.130", "192.0.2.66", "192.0.2.194", "198.51.100.9"],
    6: ["2001:db8:a:2::3", "2001:db8:a:1::5", "2001:db8:a:1:8000::5", "2001:db8:a:1::9", "2001:db8:b::7",
        "2001:db8:77::1", "2001:db8:9::1", "2001:db8:9::9", "2001:db8:2::2", "2001:db8:1::2", "2001:db8:2:0:8000::2",
        "2001:db8:51::9"],
}  # fmt: skip
EXTRA = {4: "198.51.100.1/24", 6: "2001:db8:51::1/64"}
WORD = {4: "ip", 6: "ipv6"}
# The kind of a difference that is a fault of our router (Runner.kind).
OURS = "our router"


class Maker:
    """Makes random sequences for the wires of a router."""

    def __init__(self, wires):
        self.wires = wires
        self.gates = {}
        for name in OUT:
            for address in gateways(wires[name]):
                if address.startswith("203."):
                    continue
                family = 6 if ":" in address else 4
                self.gates.setdefault(family, []).append((address, name))

    def sequence(self, seed, long):
        """Return the steps of a sequence. A long sequence may cut the channel to zebra, or restart FRR."""
        self.rnd, self.lines, self.down = random.Random(seed), [], set()
        rnd = self.rnd
        rare = rnd.random()
        self.events = {"kill": long and rare < 0.04, "fpm": long and 0.04 <= rare < 0.14}
        steps = []
        for _ in range(rnd.randint(3, 9)):
            n = rnd.choice((1, 1, 2, 3, 6, 15))
            step = [op for _ in range(n) for op in self.operation()]
            steps.append(step)
        return steps

    def operation(self):
        """Return the operations of one random change."""
        rnd = self.rnd
        kinds = {
            self.static: 30, self.remove: 14, self.replace: 6, self.group: 6, self.pbr: 5, self.bgp: 14, self.link: 4,
            self.address: 3, self.more: 5, self.route_map: 0 if self.events["fpm"] else 3, self.options: 2, self.kernel: 3, self.clear: 1,
        }  # fmt: skip
        if self.events["fpm"]:
            kinds[self.channel] = 8
        if self.events["kill"]:
            kinds[self.kill] = 3
        return rnd.choices(list(kinds), kinds.values())[0]()

    def add(self, daemon, line, *context):
        """Remember a line of the configuration, and return its operation."""
        key = (daemon, context, line)
        if key not in self.lines:
            self.lines.append(key)
        return [("vty", daemon, context, line)]

    def remove(self):
        """Remove a line."""
        if not self.lines:
            return []
        daemon, context, line = self.lines.pop(self.rnd.randrange(len(self.lines)))
        return [("vty", daemon, context, "no " + line)]

    def replace(self):
        """Remove a static route and add another one of the prefix."""
        rows = [row for row in self.lines if " route " in row[2]]
        if not rows:
            return []
        row = self.rnd.choice(rows)
        self.lines.remove(row)
        words = row[2].split()
        family = 6 if words[0] == "ipv6" else 4
        new = self.static(family, words[2])
        gone = [("vty", row[0], row[1], "no " + row[2])]
        return gone + new if self.rnd.random() < 0.7 else new + gone

    def gate(self, family):
        """Return the words of a random next hop of a static route."""
        rnd = self.rnd
        kind = rnd.random()
        if kind < 0.08:
            return rnd.choice(("Null0", "blackhole", "reject"))
        if kind < 0.2:
            return rnd.choice(FAR[family])
        if kind < 0.26:
            return rnd.choice(OUT) + "0"
        if kind < 0.29:
            return {4: "10.1.1.7", 6: "2001:db8:a:1::7"}[family]
        if family == 4 and kind < 0.33:
            return f"203.0.113.{rnd.choice((3, 4))} {rnd.choice(OUT)}0 onlink"
        address, name = rnd.choice(self.gates[family])
        named = rnd.random() < 0.6 or address.startswith("fe80")
        return f"{address} {name}0" if named else address

    def static(self, family=None, prefix=None):
        """Return a static route."""
        rnd = self.rnd
        family = family or rnd.choice((4, 6))
        prefix = prefix or rnd.choice(NETS[family] * 2 + VIA[family] * 3)
        gate = self.gate(family)
        if prefix in VIA[family] and (gate in FAR[family] or " " not in gate and not gate[0].isdigit()):
            gate = rnd.choice(self.gates[family][:2])[0]  # Linux refuses next hops that lead to a blackhole
        words = [WORD[family], "route", prefix, gate]
        if rnd.random() < 0.15:
            words += ["tag", str(rnd.randint(1, 9))]
        if rnd.random() < 0.3:
            words += [rnd.choice(("5", "10", "200"))]
        if len(gate.split()) == 2 and not gate.startswith("fe80") and rnd.random() < 0.1:
            words += ["onlink"]
        if rnd.random() < 0.2:
            words += ["table", str(TABLE)]
        return self.add("staticd", " ".join(words))

    def group(self):
        """Return a next hop of a next-hop group."""
        rnd = self.rnd
        family = rnd.choice((4, 6))
        address, name = rnd.choice(self.gates[family])
        words = ["nexthop", address]
        if rnd.random() < 0.6 or address.startswith("fe80"):
            words += [name + "0"]
        if rnd.random() < 0.4:
            words += ["weight", str(rnd.choice((1, 2, 5)))]
        return self.add("pbrd", " ".join(words), f"nexthop-group G{family}{rnd.randint(1, 2)}")

    def pbr(self):
        """Return a line of a map of pbrd."""
        rnd = self.rnd
        family = rnd.choice((4, 6))
        context = f"pbr-map M seq {rnd.choice((10, 20, 30))}{family}"
        kind = rnd.random()
        if kind < 0.25:
            return self.add("pbrd", "pbr-policy M", "interface lan0")
        if kind < 0.5:
            return self.add("pbrd", f"match dst-ip {rnd.choice(NETS[family])}", context)
        if kind < 0.6:
            lan = {4: "10.201.0.0/16", 6: "2001:db8:4::3/128"}[family]
            return self.add("pbrd", f"match src-ip {lan}", context)
        if kind < 0.8:
            return self.add("pbrd", f"set nexthop-group G{family}{rnd.randint(1, 2)}", context)
        address, name = rnd.choice(self.gates[family])
        return self.add("pbrd", f"set nexthop {address} {name}0", context)

    def bgp(self):
        """Return a path of the neighbor, or its withdrawal, or an option of bgpd."""
        rnd = self.rnd
        if rnd.random() < 0.06:
            line = rnd.choice(("bgp bestpath bandwidth ignore", "bgp bestpath bandwidth skip-missing",
                               "bgp bestpath bandwidth default-weight-for-missing"))  # fmt: skip
            return self.add("bgpd", line, "router bgp 65001")
        if rnd.random() < 0.05:
            return [("bgp-reset",)]
        family = rnd.choice((4, 6))
        prefix, path = rnd.choice(NETS[family][:6] + VIA[family]), rnd.randint(1, 4)
        if rnd.random() < 0.25:
            return [("bgp", prefix, path, None)]
        hop_family = 6 if family == 6 or rnd.random() < 0.2 else 4
        hops = [a for a, _ in self.gates[hop_family] if not a.startswith("fe80")]
        hop = rnd.choice(hops * 2 + FAR[hop_family] * 3)
        if prefix in VIA[family] and hop in FAR[hop_family]:
            hop = rnd.choice(hops)
        return [("bgp", prefix, path, (hop, rnd.choice((None, None, 1e6, 2e6, 5e6))))]

    def link(self):
        """Return a change of an interface."""
        rnd = self.rnd
        name = rnd.choice(OUT)
        kind = rnd.choice(("admin", "admin", "vty", "carrier", "flap"))
        if kind == "flap":
            return [("wait",), ("admin", name, False), ("wait",), ("admin", name, True), ("wait",)]
        key = (kind, name)
        up = key in self.down
        if up:
            self.down.remove(key)
        elif any(n == name for _, n in self.down):
            return []
        else:
            self.down.add(key)
        return [("wait",), (kind, name, up), ("wait",)]

    def more(self):
        """Return a line that is rarely chosen."""
        rnd = self.rnd
        family, name = rnd.choice((4, 6)), rnd.choice(OUT)
        kind = rnd.randrange(1, 8)
        if kind == 1 and family == 4:
            word = rnd.choice(("no ", ""))
            return [("wait",), ("vty", "zebra", (), f"{word}{WORD[family]} forwarding"), ("wait",)]
        if kind == 2:
            return [("vty", "zebra", (f"interface {name}0",), rnd.choice(("no link-detect", "link-detect")))]
        if kind == 3:
            n = rnd.choice((3, 250, 255))
            return self.add("bgpd", f"distance bgp 20 {n} {n}", "router bgp 65001", f"address-family ipv{family} unicast")
        if kind == 4:
            return self.add("bgpd", f"table-map R{family}", "router bgp 65001", f"address-family ipv{family} unicast")
        if kind == 5:
            n = rnd.choice((1, 2, 3, 8))
            return [("vty", "bgpd", ("router bgp 65001", f"address-family ipv{family} unicast"), f"maximum-paths ibgp {n}")]
        if kind == 6:
            context = f"pbr-map M seq {rnd.choice((10, 20, 30))}{family}"
            return self.add("pbrd", rnd.choice(("match dscp 0", "match dscp 10", "match ip-protocol udp", "match ip-protocol tcp", "match mark 1")), context)
        net = {4: "192.0.2.64/26", 6: "2001:db8:1::/64"}[family]
        return self.static(family, net)

    def address(self):
        """Return an address of an interface."""
        family, name = self.rnd.choice((4, 6)), self.rnd.choice(OUT)
        line = f"{WORD[family]} address {EXTRA[family]}"
        kind = self.rnd.random()
        if kind < 0.3:
            name = "lo"
            line = f"{WORD[family]} address {HOSTS[family][self.rnd.choice((1, 3, 6))]}/{ {4: 32, 6: 128}[family]}"
            return [("wait",), *self.add("zebra", line, "interface lo"), ("wait",)]
        if kind < 0.4:
            line = "ip address 198.51.100.1 peer 198.51.100.9/32"
        return [("wait",), *self.add("zebra", line, f"interface {name}0"), ("wait",)]

    def route_map(self):
        """Return a line about route maps of zebra."""
        rnd = self.rnd
        family = rnd.choice((4, 6))
        own = {4: ("192.0.2.65", "192.0.2.129"), 6: ("2001:db8:1::1", "2001:db8:2::1")}[family]
        kind = rnd.random()
        if kind < 0.4:
            proto = rnd.choice(("static", "static", "bgp", "any"))
            return self.add("zebra", f"{WORD[family]} protocol {proto} route-map R{family}")
        if kind < 0.7:
            word = {4: "", 6: ""}[family]
            return self.add("zebra", f"set src {word}{rnd.choice(own)}", f"route-map R{family} permit 20")
        line = f"match {WORD[family]} address prefix-list P{family}"
        verb = rnd.choice(("permit", "deny"))
        return [
            *self.add("zebra", f"{WORD[family]} prefix-list P{family} seq {rnd.choice((5, 6))} permit {rnd.choice(NETS[family])}"),
            *self.add("zebra", line, f"route-map R{family} {verb} 10"),
        ]

    def options(self):
        """Return an option of zebra."""
        family = self.rnd.choice((4, 6))
        return self.add("zebra", f"{WORD[family]} nht resolve-via-default")

    def kernel(self):
        """Return a route of the kernel that an operator adds or deletes beside zebra."""
        rnd = self.rnd
        family = rnd.choice((4, 6))
        prefix, (address, name) = rnd.choice(NETS[family][:5]), rnd.choice(self.gates[family])
        metric = rnd.choice((0, 0, 20, 50)) if family == 4 else rnd.choice((5, 20, 1024))
        verb = rnd.choice(("replace", "replace", "del"))
        words = {4: "", 6: "-6 "}[family]
        target = "" if verb == "del" else f" via {address} dev {name}0"
        return [("ip", f"{words}route {verb} {prefix}{target} metric {metric}")]

    def clear(self):
        """Return a command that clears something."""
        return [("exec", "bgpd", self.rnd.choice(("clear bgp *", "clear bgp ipv4 unicast * soft in", "clear bgp ipv6 unicast * soft in")))]

    def channel(self):
        """Cut the FPM channel, or make zebra connect."""
        return [("fpm", self.rnd.choice(("cut", "join", "join", "replay")))]

    def kill(self):
        """Kill zebra and start FRR again, or restart it."""
        return [("wait",), ("restart", self.rnd.choice(("kill", "stop")))]


def _hops(frr, word, address):
    """Return the prefix and the next hops that zebra has selected for an address, as text."""
    table = frr.json(f"show {word} route {address} json")
    out = []
    for prefix, rows in table.items():
        for row in rows:
            if row.get("selected"):
                hops = [
                    (h.get("ip", "").removeprefix("::ffff:"), h.get("interfaceName", h.get("blackhole")), h.get("weight"))
                    for h in row["nexthops"]
                    if h.get("fib") or h.get("active") and not h.get("recursive")
                ]
                out.append((prefix, row["protocol"], sorted(map(str, hops))))
    return str(out)


class Runner:
    """Gives both routers the same sequence and compares them."""

    def __init__(self, pair, log=print):
        self.pair, self.log = pair, log
        self.done = []  # (daemon, context, line)
        self.down = {}
        self.fpm_cut = False
        self.rnd = random.Random(0)

    # -- operations --

    def do(self, op):
        """Run one operation in both routers."""
        kind, *words = op
        name = "vty_link" if kind == "vty" and len(words) == 2 else kind.replace("-", "_")
        getattr(self, "_" + name)(*words)

    def _vty(self, daemon, context, line):
        if not line.startswith("no "):
            self.done.append((daemon, context, line))
        run = [*context, line, *["exit"] * len(context)]
        said = self.pair.both(lambda side: side.vty(daemon, *run))
        if said[0] != said[1]:
            self.log(f"the answers of both FRRs to {line!r} differ: {said}")

    def _exec(self, daemon, line):
        self.pair.both(lambda side: side.vty(daemon, "do " + line))

    def _ip(self, *lines):
        for side in self.pair.sides:
            for line in lines:
                family, text = ("-6", line[3:]) if line.startswith("-6 ") else ("-4", line)
                netns.command(["ip", family, *text.split()], name=side.ctl, check=False)

    def _bgp(self, prefix, path, value):
        for side in self.pair.sides:
            side.neighbor.set(prefix, path, value)

    def _bgp_reset(self):
        for side in self.pair.sides:
            side.neighbor.reset()

    def _wait(self):
        settled(self.pair)

    def _admin(self, name, up):
        self.down[name, "admin"] = not up
        for side in self.pair.sides:
            netns.link_set(side.ctl, name + "0", up)
        if up:
            self._neighbors(name)

    def _vty_link(self, name, up):
        self.down[name, "vty"] = not up
        line = "no shutdown" if up else "shutdown"
        self.pair.both(lambda side: side.vty("zebra", f"interface {name}0", line, "exit"))
        if up:
            self._neighbors(name)

    def _carrier(self, name, up):
        self.down[name, "carrier"] = not up
        for side in self.pair.sides:
            netns.link_set(side.far, name, up)
        if up:
            self._neighbors(name)

    def _neighbors(self, name):
        wire = self.pair.dut.wires[name]
        eventually(lambda: all(netns.is_up(s.ctl, name + "0") for s in self.pair.sides), 5, 0.01)
        for side in self.pair.sides:
            lines = [
                f"neigh replace {a} lladdr {wire.mac} dev {name}0 nud permanent"
                for a in (wire.peer4, wire.peer6)
            ]
            netns.ip_batch(lines, side.ctl)

    def _fpm(self, what):
        ours = self.pair.sides[0]
        if what == "replay":
            with contextlib.suppress(LookupError):  # zebra is not connected
                self.pair.dut.control.request({"do": "replay"})
            return
        ours.vty("zebra", "no fpm address" if what == "cut" else "fpm address 127.0.0.1")
        self.fpm_cut = what == "cut"
        if self.fpm_cut:  # otherwise zebra may lose the next line about the address
            eventually(lambda: not self.pair.dut.fpm()["connected"], 10, 0.01, "zebra closes")

    def _restart(self, how):
        self.pair.both(lambda side: side.restart(how))
        self.fpm_cut = False

    # -- comparison --

    def difference(self, hosts=HOSTS, flows=16):
        """Return {(dst, src): (ours, Linux's)} of the packets that come out differently."""
        keys = [(h, s) for f in (4, 6) for h in hosts[f] for s in self.pair.sources[f] if not self._without_carrier(h)]
        ours, its = self.pair.outcomes([(*k, 1) for k in keys])
        frames = self.pair.sent
        self.explained = {k: (frames[k], ours[k]) for k in keys}
        out = [k for k in keys if any("out" in str(x) for x in (ours[k], its[k]))]
        wrong = {k: (ours[k], its[k]) for k in keys if k not in out and set(ours[k]) != set(its[k])}
        if any(down and kind == "carrier" for (_, kind), down in self.down.items()):
            # Our router sends errors about links without carrier (manual/behavior.md), Linux sends none.
            wrong = {k: row for k, row in wrong.items() if not ("icmp" in str(row[0]) and "nothing" in row[1])}
        if wrong:
            return wrong
        ours, its = self.pair.outcomes([(*k, flows) for k in out])
        other = [k for k in out if set(ours[k]) != set(its[k])]
        if not other:
            several = [k for k in out if len(ours[k]) > 1]
            if several and self.rnd.random() < 0.15:
                some = self.rnd.sample(several, min(3, len(several)))
                ours, its = self.pair.outcomes([(*k, 400) for k in some])
                return {k: (ours[k], its[k]) for k in some if any(abs(ours[k].get(w, 0) - its[k].get(w, 0)) > 56 for w in its[k])}
            return {}
        ours, its = self.pair.outcomes([(*k, 400) for k in other[:6]])
        return {k: (ours[k], its[k]) for k in other[:6] if set(ours[k]) != set(its[k])}

    def kind(self, found):
        """Return the kind of a difference: whether our router has the routes of its zebra, and whether
        both zebras have the same route."""
        ours, linux = (side.frr for side in self.pair.sides)
        if not all(isinstance(key, tuple) for key in found):
            return OURS, "the router contradicts itself"
        if wrong := self._explained([key for key in found if key in self.explained]):
            return OURS, str(wrong)
        done = self.pair.dut.fpmctl("audit", "--vtysh", " ".join(ours.vtysh_argv()))
        said = done.stdout + done.stderr
        if done.returncode not in (0, 3):
            return OURS, said
        if done.returncode == 3 and not only_copies_differ(said):
            wrong = not_as_zebra_shows(said)
            if wrong and all(self.pair.tap.kinds.get(p) == "NEWROUTE" for p in wrong) and "zebra has no route" in said:
                return "zebra sent it", f"{wrong}"
            if wrong and set(re.findall(r"the dataplane has (.*)", said)) == {"no route"} and all(
                self.pair.tap.kinds.get(p) in (None, "DELROUTE") for p in wrong
            ):
                return "kernel keeps", f"{wrong}"
            return OURS, said
        for key in found:
            word = "ipv6" if ":" in key[0] else "ip"
            one, other = ({_hops(frr, word, key[0])} for frr in (ours, linux))
            if one != other:
                return "zebras differ", f"{one} {other}"
            if lost := self._lost_copy(linux, word, key[0]):
                return "a kernel lost a route", lost
        if all(self._as_own_kernel(key, *row) for key, row in found.items()):
            return "kernels differ", ""
        return "Linux differs", said

    def _as_own_kernel(self, key, ours, _its):
        """Return true if our router sends the packets by the route of its own kernel."""
        dst, src = key
        ours = [o.split() for o in ours if o.startswith("out")]
        words = ["ip", "-6" if ":" in dst else "-4", "route", "get", dst, "from", src, "iif", "lan0"]
        text = netns.command(words, name=self.pair.sides[0].ctl, check=False)
        hop = re.search(r"via (\S+) .*?dev (\w+)0 ", text) or re.search(r"()dev (\w+)0 ", text)
        if not ours or not hop:
            return not ours and not hop
        mac = gateways(self.pair.dut.wires[hop[2]]).get(hop[1] or dst, "99")
        return [hop[2], mac.replace(":", "")] in [o[1:3] for o in ours]

    def _lost_copy(self, frr, word, address):
        """Return text if the kernel of a Linux router does not have the route that its zebra has."""
        table = frr.json(f"show {word} route {address} json")
        family = "-6" if word == "ipv6" else "-4"
        for prefix, rows in table.items():
            for row in rows:
                if row.get("selected") and row["protocol"] not in ("connected", "kernel"):
                    text = netns.command(["ip", family, "route", "show", prefix], name=frr.namespace, check=False)
                    hops = {
                        (h.get("ip", "").removeprefix("::ffff:"), h.get("interfaceName"))
                        for h in row["nexthops"]
                        if h.get("fib")
                    }
                    there = set(re.findall(r"(?:via (\S+) )?dev (\S+)", text)) - {("", "lo")}
                    if not text or (hops and "blackhole" not in row["nexthops"][0] and hops != there):
                        return f"{prefix}: zebra {hops} kernel {text!r}"
        return None

    def judge(self, found):
        """Return text about a difference: the routes of both zebras and kernels, and those of our router."""
        out = [f"latest messages of zebra: {list(self.pair.tap.recent)}"]
        for dst, src in [key for key in found if isinstance(key, tuple)][:2]:
            family, word = ("-6", "ipv6") if ":" in dst else ("-4", "ip")
            for side in self.pair.sides:
                get = ["ip", family, "route", "get", dst, "from", src, "iif", "lan0"]
                out.append(f"{side.ctl}: {netns.command(get, name=side.ctl, check=False)}")
                out.append(side.frr.vtysh(f"show {word} route {dst}"))
                out.append(netns.command(["ip", family, "route", "show", "match", dst], name=side.ctl, check=False))
            out.append(f"router: {self.pair.dut.control.ask('routes', prefix=dst, longest=True)}")
        return "\n".join(out)

    def _without_carrier(self, host):
        """Return true if a host is in the subnet of an interface without carrier: our router withdraws the
        subnet, and Linux does not (manual/behavior.md)."""
        at = ipaddress.ip_address(host)
        for (name, kind), down in self.down.items():
            if down and kind == "carrier":
                wire = self.pair.dut.wires[name]
                nets = (wire.host4, f"{wire.ip6}/64", *EXTRA.values())
                if any(at in ipaddress.ip_interface(n).network for n in nets):
                    return True
        return False

    def compare(self, seconds=6):
        """Return the difference that stays, or {}."""
        settled(self.pair)
        found = {}
        if self.fpm_cut:
            return found
        eventually(lambda: self.pair.dut.fpm()["connected"], 20, 0.05, "zebra connects")
        end, tries = time.monotonic() + seconds * PATIENCE, 0
        while True:
            tries += 1
            found = self._now()
            if not found or (time.monotonic() > end and tries > 3):
                return found
            time.sleep(0.1)

    def _now(self):
        control = self.pair.dut.control
        found = self.difference()
        rows = control.ask("audit")
        if not found and rows[-1]["differences"]:
            return {"audit": rows}
        return found or self._explained(self.rnd.sample(list(self.explained), 4))

    def _explained(self, keys):
        """Return {"explain": rows} of (packet, explanation, outcome) where `explain` does not tell the
        outcome, or {}."""
        wrong = []
        for key in keys:
            ((_, frame),), outcome = self.explained[key]
            want = {"port": "lan0", "frame": frame.hex(), "frame_bytes": len(frame)}
            (row,) = self.pair.dut.control.request({"explain": want})
            if row["verdict"] == "forwarded":
                told = f"out {row['out'][:-1]} {row['mac'].replace(':', '')} ttl {row['out_ttl']}"
            elif row.get("icmp"):
                told = f"icmp lan {list(outcome)[0].split()[2] if 'icmp' in str(outcome) else '?'} from {row.get('icmp_src')}"
            else:
                told = "nothing"
            if set(outcome) != {told}:
                wrong.append((key, told, outcome, row))
        return {"explain": wrong} if wrong else {}

    def run(self, steps, seconds=6):
        """Run a sequence. Return (number of the step, difference), or None."""
        self.rnd.seed(str(steps))
        for n, step in enumerate(steps):
            for op in step:
                self.do(op)
            found = self.compare(seconds)
            if found:
                return n, found
        return None

    def restore(self):
        """Bring both routers back to the state without a configuration."""
        if self.fpm_cut:
            self._fpm("join")
        for (name, kind), down in list(self.down.items()):
            if down:
                settled(self.pair)
                getattr(self, {"vty": "_vty_link"}.get(kind, "_" + kind))(name, True)
        self.down.clear()
        for side in self.pair.sides:
            side.neighbor.clear()
            for words in ("-4 route flush proto boot", "-6 route flush proto boot"):
                netns.command(["ip", *words.split()], name=side.ctl, check=False)
        undo = list(dict.fromkeys(reversed(self.done)))
        self.done.clear()
        for daemon, context, line in undo:
            run = [*context, "no " + line, *["exit"] * len(context)]
            self.pair.both(lambda side, d=daemon, r=run: side.vty(d, *r))
        for side in self.pair.sides:
            for line in ("interface lan0", "no pbr-policy M", "exit"):
                side.vty("pbrd", line)
            side.vty("zebra", "ip forwarding", *(x for n in OUT for x in (f"interface {n}0", "link-detect", "exit")))
            for f in (4, 6):
                side.vty("bgpd", "router bgp 65001", f"address-family ipv{f} unicast", "maximum-paths ibgp 8", "exit", "exit")
        for context in {c for _, c, _ in undo if c}:
            if context[0].startswith(("nexthop-group", "pbr-map", "route-map")):
                daemon = "zebra" if context[0].startswith("route-map") else "pbrd"
                self.pair.both(lambda side, d=daemon, c=context[0]: side.vty(d, "no " + c))
        settled(self.pair)

    def kernel_left(self):
        """Return the routes of FRR that the kernels still have."""
        found = {}
        for side in self.pair.sides:
            who = "ours" if side.fpm else "linux"
            for family in ("-4", "-6"):
                for proto in ("static", "bgp", "196", "pbr", "boot"):
                    rows = netns.command(["ip", family, "route", "show", "table", "all", "proto", proto], name=side.ctl, check=False)
                    rows = [r for r in rows.splitlines() if "ffff:ffff:ffff" not in r]
                    if rows:
                        found[who, family, proto] = rows
        return found

    def flush_kernels(self):
        """Delete the routes of FRR that the kernels still have."""
        for who, family, proto in self.kernel_left():
            for side in self.pair.sides:
                if side.fpm == (who == "ours"):
                    for row in self.kernel_left()[who, family, proto]:
                        words = row.split(" pref ")[0].split()
                        netns.command(["ip", family, "route", "del", *words], name=side.ctl, check=False)

    def left(self):
        """Return the routes of zebra that our router still has, without the sentinel."""
        rows = self.pair.dut.control.ask("routes", all_tables=True)
        return [
            (r["table"], r["prefix"], r["protocol"])
            for r in rows
            if r["source"] == "zebra" and not r["prefix"].startswith("ffff:")
            or r["protocol"] in ("static", "bgp", "pbr") and not r["prefix"].startswith("ffff:")
        ]

    def shortest(self, steps, tries=60):
        """Return the shortest sequence found that still has a difference, and the difference."""
        best = None
        unit = max(1, sum(map(len, steps)) // 2)
        flat = [(n, op) for n, step in enumerate(steps) for op in step]
        while unit:
            at, shorter = 0, False
            while at < len(flat) and tries:
                tries -= 1
                less = flat[:at] + flat[at + unit :]
                numbers = sorted({n for n, _ in less})
                found = self.again([[op for m, op in less if m == n] for n in numbers], 2)
                if found:
                    flat, best, shorter = [(n, op) for n, op in less if numbers.index(n) <= found[0]], found, True
                else:
                    at += unit
            unit = unit // 2 if unit > 1 or not shorter or not tries else 1
        numbers = sorted({n for n, _ in flat})
        return [[op for m, op in flat if m == n] for n in numbers], best

    def again(self, steps, seconds):
        """Run a sequence from the state without a configuration, and restore that state."""
        found = self.run(steps, seconds)
        self.restore()
        assert not self.compare()
        self.flush_kernels()
        return found
