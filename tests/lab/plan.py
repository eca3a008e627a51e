# SPDX-License-Identifier: BSD-3-Clause
"""A scenario's topology.toml: the nodes, the cables and the content of the nodes.

    cables = ["r1 wan0 - isp eth0"]     node and interface - node and interface
    modules = ["mpls_router"]           modules of the kernel, if any

    [isp]                               a table for each node that is more than a host:
    frr = ["bgpd"]                      daemons of an FRR that has NODE.conf for frr.conf
    sysctl = {"net..." = 1}             settings of its kernel in addition to the default ones
    ip = ["addr add ..."]               `ip` commands; those for IPv6 routes begin with -6
    internet = {"192.0.2.1" = ["203.0.113.0/24"]}
                                        the node answers pings to all addresses, except to
                                        addresses behind these gateways
    bird = "NODE.bird"                  the configuration of a BIRD
    box = true                          another router like r1: a dataplane under the FRR, with the
                                        `fpm-dataplane.yaml` and the `links` of r1, or with the
                                        file `BOX.links`, if there is one
    flowspec = true                     of r1: fpm-flowspec and ExaBGP beside its FRR
    speaker = {peer = "192.0.2.1", as = 65540, hop4 = "192.0.2.2", hop6 = "2001:db8::2"}
                                        a BGP speaker that announces a made-up Internet. Without
                                        hop6 it has IPv4 only; `routes = 500` is the number of its
                                        IPv4 routes without ROUTES= of the command line

r1 is the router of the folder, and each `box` is a further router of this kind. r1 runs FRR if the
folder has `frr.conf`, BIRD if the folder has `bird.conf`, otherwise no routing daemon. The routing
daemons use the TAPs of the dataplane. The dataplane has its ends of the cables in a namespace of its
own, r1-dp, without addresses and without IPv6. net_af_packet leaves a copy of each frame to the kernel
of this namespace, which must not answer or forward it. The file `links` beside topology.toml, if any,
has the VLANs, VRFs and tunnels of r1: `ip` commands, one a line. The file NODE.wg, if any, has keys and peers of
the WireGuard tunnel wg0 of a node, for `wg setconf`. Without FRR, the file `r1.ip` has the addresses
and routes of r1 in the same form. The file `r1.nft`, if any, has the rules that the dataplane obeys, for
`nft -f`.
"""

import os
import re
import shutil
import subprocess
import tomllib

from lib import netns

ROUTER, WIRES = "r1", "r1-dp"
ROUTES = 100000  # IPv4 routes of a BGP speaker, unless the scenario or the command line says otherwise

_EVERYWHERE = {
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.default.dad_transmits": 0,
    "net.ipv6.conf.default.accept_ra": 0,
    "net.ipv6.conf.default.router_solicitations": 0,
}
_NODE = {**_EVERYWHERE, "net.ipv4.icmp_ratelimit": 0, "net.ipv6.icmp.ratelimit": 0}
_FORWARDING = {
    "net.ipv4.ip_forward": 1,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv6.conf.default.forwarding": 1,
}
_OTHERS_FORWARDING = {"net.ipv4.fib_multipath_hash_policy": 1}
_SYSCTLS = {
    ROUTER: {**_EVERYWHERE, **_FORWARDING},
    WIRES: {
        "net.ipv6.conf.all.disable_ipv6": 1,
        "net.ipv6.conf.default.disable_ipv6": 1,
        "net.ipv4.ip_forward": 0,
    },
}


class Plan:
    """The topology of the scenario in `folder`."""

    def __init__(self, folder):
        with open(os.path.join(folder, "topology.toml"), "rb") as file:
            self.about = tomllib.load(file)
        self.cables = [
            tuple(tuple(end.split()) for end in text.split(" - "))
            for text in self.about.pop("cables")
        ]
        self.modules = self.about.pop("modules", [])
        ends = [node for cable in self.cables for node, _ in cable if node != ROUTER]
        self.boxes = [ROUTER, *self.having("box")]
        below = [wires(box) for box in self.boxes]
        self.nodes = [*dict.fromkeys([ROUTER, WIRES, *self.about, *ends, *below])]
        self.ports = self.ports_of(ROUTER)
        self.links = _lines(os.path.join(folder, "links"))
        own = {box: _lines(os.path.join(folder, f"{box}.links")) for box in self.boxes}
        self.links_of = {box: lines or self.links for box, lines in own.items()}
        self.settings = _lines(os.path.join(folder, "r1.ip"))
        self.rules = os.path.join(folder, "r1.nft")
        wg = {node: os.path.join(folder, node + ".wg") for node in self.nodes}
        self.tunnels = {node: path for node, path in wg.items() if os.path.exists(path)}
        runs = [name for name in ("frr", "bird") if os.path.exists(f"{folder}/{name}.conf")]
        self.runs = runs[0] if runs else None  # in r1
        made = (
            re.match(r"link add (?:link \S+ name )?(\S+) .*\btype (\w+)", x)
            for x in self.links
        )
        # The kinds of the interfaces in `links`, by name.
        self.stacked = {name: kind for name, kind in (x.groups() for x in made if x)}

    def of(self, node, word):
        """Return the value of a key of a node, or None."""
        return self.about.get(node, {}).get(word)

    def having(self, word):
        """Return {node: value} of the nodes with the key `word`."""
        return {node: about[word] for node, about in self.about.items() if word in about}

    def routes(self, asked):
        """Return the number of IPv4 routes of the BGP speaker. `asked`: the number of the command line, or
        None."""
        (about,) = self.having("speaker").values()
        return asked or about.get("routes", ROUTES)

    def ports_of(self, box):
        """Return the ports of a box: [(name of the TAP, node at the other end, interface there)]."""
        return [
            (near[1], *far)
            for cable in self.cables
            for near, far in (cable, cable[::-1])
            if near[0] == box
        ]

    def create(self, names):
        """Make namespaces and cables. `names` maps every node to its namespace."""
        if self.modules:
            netns.command(["modprobe", "-a", *self.modules])
        netns.ip_batch([f"netns add {names[node]}" for node in self.nodes])
        for node in self.nodes:
            # Set these before the interfaces are created, because a new interface copies the
            # defaults.
            netns.sysctl(names[node], self._sysctls(node))
        netns.ip_batch(
            f"link add {a_dev} netns {names[a]} index {101 + i} type veth"
            f" peer name {b_dev} netns {names[b]}"
            # The ends have unequal indexes, else the kernel reports a carrier loss up to 1 s late.
            for i, ((a, a_dev), (b, b_dev)) in enumerate(map(self._at_wires, self.cables))
        )
        for cable in map(self._at_wires, self.cables):
            for node, dev in cable:
                _plain_frames(names[node], dev)
        if os.path.exists(self.rules):
            netns.run(names[ROUTER], ["nft", "-f", self.rules])
        for node in self.nodes:
            netns.ip_batch(self.commands(node), names[node])
            if node != ROUTER:
                self._tunnel(node, names[node])

    def again(self, name, box):
        """Replace the namespace of a box, which has no programs and no TAPs, by an empty one."""
        netns.delete(name)
        netns.ip_batch([f"netns add {name}"])
        netns.sysctl(name, self._sysctls(box))
        netns.ip_batch(self.commands(box), name)

    def stack(self, name, box=ROUTER):
        """Make the interfaces on the TAPs of a box, which is namespace `name`, and for r1 their
        addresses and routes, if FRR does not configure them."""
        netns.ip_batch(self.links_of[box], name)
        self._tunnel(box, name)
        if box == ROUTER:
            self.configure(name)

    def _tunnel(self, node, name):
        """Give the tunnel of a node, which is namespace `name`, its keys and peers."""
        if node in self.tunnels:
            netns.run(name, ["wg", "setconf", "wg0", self.tunnels[node]])

    def configure(self, name):
        """Run the commands of the file `r1.ip` in namespace `name`."""
        netns.ip_batch(self.settings, name)

    def why_not(self):
        """Return the reason why this kernel cannot have the topology in one sentence, or None."""
        absent = [name for name in self.modules if not _can_load(name)]
        if absent:
            return f"this kernel has no {' and no '.join(absent)} (`modprobe {absent[0]}`)"
        lines = [*self.links, *(x for ip in self.having("ip").values() for x in ip)]
        found = (re.match(r"link add .*\btype ((\w+).*)", line) for line in lines)
        words = {match[2]: match[1] for match in found if match}
        missing = [kind for kind, how in words.items() if not netns.can_have(how)]
        if not missing and self.tunnels and shutil.which("wg") is None:
            return "this machine has no program wg (Debian's package wireguard-tools)"
        if not missing:
            return None
        what = " and no ".join(f"{kind.upper()} devices" for kind in sorted(missing))
        return f"this kernel has no {what} (`ip link add ... type {sorted(missing)[0]}`)"

    def commands(self, node):
        """The `ip` commands that give a node its addresses and routes."""
        ends = [end for cable in map(self._at_wires, self.cables) for end in cable]
        up = ["link set lo up"] + [f"link set {dev} up" for at, dev in ends if at == node]
        return up + (self.of(node, "ip") or []) + _internet(self.of(node, "internet"))

    def _at_wires(self, cable):
        """Return a cable's ends with the namespace of the wires in the place of a box."""
        return tuple(
            (wires(at), "port-" + dev) if at in self.boxes else (at, dev) for at, dev in cable
        )

    def _sysctls(self, node):
        own = self.of(node, "sysctl") or {}
        for box in self.boxes:
            if node in (box, wires(box)):
                return {**_SYSCTLS[ROUTER if node == box else WIRES], **own}
        if self.of(node, "frr"):
            return {**_NODE, **_FORWARDING, **_OTHERS_FORWARDING, **own}
        return {**_NODE, **own}


def wires(box):
    """Return the node where the dataplane of a box has its ends of the cables."""
    return f"{box}-dp"


def _can_load(module):
    """Return True if the kernel has a module, or can load it."""
    if os.path.isdir(f"/sys/module/{module}"):
        return True
    if shutil.which("modprobe") is None:
        return False
    return subprocess.run(["modprobe", "-q", module], check=False).returncode == 0


def _lines(path):
    """The lines of a file that may be missing, without comments."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and line[0] != "#"]


def _plain_frames(name, dev):
    """Switch offloads off. Otherwise veth delivers unfinished checksums and packets of 64 KiB."""
    offloads = "tx off gso off tso off gro off".split()
    netns.run(name, ["ethtool", "-K", dev, *offloads])


def _internet(gateways):
    """Return the commands that give a node all addresses except those behind `gateways`.

    A local default route makes the kernel answer pings to any address. The routes to other
    nodes are looked up before it, or their addresses would be local too.
    """
    if gateways is None:
        return []
    lines = []
    for word, everything in (("", "0.0.0.0/0"), ("-6 ", "::/0")):
        lines += [
            f"{word}rule add pref 1 lookup 100",
            f"{word}rule add pref 2 lookup local",
            f"{word}rule del pref 0",
        ]
        for gateway, prefixes in gateways.items():
            if (":" in gateway) == bool(word):
                lines.append(f"{word}route add table 100 {gateway} dev eth0")
                lines += [
                    f"{word}route add table 100 {prefix} via {gateway}"
                    for prefix in prefixes
                ]
        lines.append(f"{word}route add local {everything} dev lo table local")
    return lines
