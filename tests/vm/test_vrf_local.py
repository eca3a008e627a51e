# SPDX-License-Identifier: BSD-3-Clause
"""Table local before the tables of VRFs, in the order of the kernel's rules, and the check of sources in a
VRF: a Linux router beside ours delivers and forwards the same packets."""

import shlex

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.packet import Raw

from lib import netns
from lib.frr import beside as frr_beside
from lib.wait import eventually
from linux_router import LinuxRouter
from vrfs import BEFORE, BEHIND, HOST, MEMBERS, NET, lines_of, row
from vrfs import machine, router, two  # noqa: F401
from wire import token, token_of

ROUTES = [f"{'-6 ' * (f == 6)}route add {NET[f]} via {BEHIND[f].format(2)} vrf red" for f in (4, 6)]
OWN = [f"addr add {HOST[4]}/32 dev lo", f"addr add {HOST[6]}/128 dev lo nodad"]
# Linux, Documentation/networking/vrf.rst
LOCAL_BEHIND = [f"{six}rule {x}" for six in ("", "-6 ") for x in ("add pref 32765 table local", "del pref 0")]
LOCAL_FIRST = [f"{six}rule {x}" for six in ("", "-6 ") for x in ("add pref 0 table local", "del pref 32765")]
WIDE, LONGER = "203.0.113.0/24", "203.0.113.128/25"
LABEL, DT46, DT6 = 100, "2001:db8:f::46", "2001:db8:f::6"
# Packets of blue come out of outer headers into red.
INTO = [
    f"link add gre1 type gre local {BEFORE[4].format(1)} remote {BEFORE[4].format(2)} dev alt0",
    "link set gre1 master red up",
    f"-6 route add {DT46}/128 vrf blue encap seg6local action End.DT46 vrftable 100 dev red",
    f"-6 route add {DT6}/128 vrf blue encap seg6local action End.DT6 table 100 dev red",
]
OUT = ["link del gre1", f"-f mpls route del {LABEL}", f"-6 route del {DT46}/128 vrf blue", f"-6 route del {DT6}/128 vrf blue"]
OTHER = {4: "198.51.100.77", 6: "2001:db8:a::77"}  # red has a route to these hosts, table local has no address
NET_OF_MAIN, HOST_OF_MAIN = "2001:db8:b::/48", "2001:db8:b::9"


def undo(lines):
    """Return the commands that delete the routes or addresses of `lines`."""
    return [line.replace(" add ", " del ", 1).replace(" nodad", "") for line in lines]


class Beside:
    """The router of `two`, and a Linux router with the same VRFs."""

    def __init__(self, two):
        self.two, self.linux = two, LinuxRouter(two)

    def ip(self, *lines):
        """Run `ip` commands in both."""
        for one in (self.linux, self.two):
            one.ip(*lines)

    def goes(self, one, dst):
        """Send a packet of lan to `dst`. Return "wan" if the router forwards it to wan, or "host"
        if the router's kernel answers that the UDP port is closed."""
        lan, wan = one.wires["lan"], one.wires["wan"]
        probe = lan.probe(dst, src=BEFORE[6 if ":" in dst else 4].format(2))
        token = token_of(probe)
        lan.send(probe)

        def came():
            if wan.got(token):
                return "wan"
            return "host" if any(f[:6] != probe.build()[:6] for f in lan.got(token)) else None

        return eventually(came, 10, 0.005, f"a packet to {dst}")

    def frame(self, one, outer, dst):
        """Return a frame of alt with a packet to `dst` behind the outer headers of `outer`."""
        wire, family = one.wires["alt"], 6 if ":" in dst else 4
        inner = (IPv6 if family == 6 else IP)(src=BEFORE[family].format(2), dst=dst) / UDP(dport=9) / Raw(token())
        head = Ether(src=wire.mac, dst=wire.port_mac)
        if outer == "label":
            return head / MPLS(label=LABEL, s=1, ttl=64) / inner
        if outer == "tunnel":
            return head / IP(src=BEFORE[4].format(2), dst=BEFORE[4].format(1)) / GRE() / inner
        return head / IPv6(src=BEFORE[6].format(2), dst=outer) / inner

    def comes(self, one, outer, dst, last):
        """As goes(), for a packet that comes out of outer headers into red. `last` is an address
        that red forwards to wan: return "none" if a later packet to `last` is forwarded and the
        first packet is not."""
        lan, wan, alt = (one.wires[name] for name in ("lan", "wan", "alt"))
        probe, later = self.frame(one, outer, dst), self.frame(one, outer, last or dst)
        alt.send(*([probe, later] if last else [probe]))

        def came():
            if wan.got(token_of(probe)):
                return "wan"
            if last:
                return "none" if wan.got(token_of(later)) else None
            return "host" if lan.got(token_of(probe)) else None

        return eventually(came, 1, 0.005, f"{outer}: a packet to {dst}")

    def both_come(self, outer, dst, want):
        """Check that the packet goes to `want` in both."""
        last = OTHER[6 if ":" in dst else 4] if want == "none" else None
        for name, one in (("linux", self.linux), ("ours", self.two)):
            eventually(lambda r=one: self.comes(r, outer, dst, last) == want, 10, 0.01, f"{name}: {outer} to {want}")

    def both_go(self, family, want):
        """Check that both send packets to HOST the same way, ours as soon as it knows."""
        assert self.goes(self.linux, HOST[family]) == want
        eventually(lambda: self.goes(self.two, HOST[family]) == want, 5, 0.01, want)


@pytest.fixture
def beside(two):
    """Return the router and a Linux router beside it, with a route of red to HOST."""
    both = Beside(two)
    try:
        both.linux.build()
        both.linux.ip(*(line for vrf in MEMBERS for line in lines_of(both.linux, vrf)))
        both.ip(*ROUTES)
        eventually(lambda: all(row(two, "red", NET[f]) for f in NET), 5, 0.01, "in force")
        yield both
    finally:
        both.linux.destroy()
        for line in undo(ROUTES + OWN):
            netns.command(["ip", "-n", two.ctl, *line.split()], check=False)


@pytest.mark.quick
def test_table_local_precedes_vrfs_in_the_order_of_the_rules_as_in_linux(beside):
    """A packet to an address that is in no VRF is delivered to the host, although a VRF has a route
    for it. It is forwarded while the rule of table local is behind the rule of VRFs."""
    two = beside.two
    for turn in range(2):
        for family in (4, 6):
            beside.both_go(family, "wan")
        beside.ip(*OWN)
        for family in (4, 6):
            beside.both_go(family, "host")
        if turn == 0:
            check_words(two)
        beside.ip(*LOCAL_BEHIND)
        try:
            for family in (4, 6):
                beside.both_go(family, "wan")
            assert two.control.ask("audit")[-1]["differences"] == 0
        finally:
            beside.ip(*LOCAL_FIRST)
        for family in (4, 6):
            beside.both_go(family, "host")
        assert two.control.ask("audit")[-1]["differences"] == 0
        beside.ip(*undo(OWN))


@pytest.fixture
def into(beside):
    """Return both routers with a tunnel, a label and two SIDs that lead from blue into red."""
    netns.command(["modprobe", "-a", "mpls_router", "mpls_iptunnel", "ip_gre"])
    for one in (beside.linux, beside.two):
        netns.sysctl(one.ctl, {"net.vrf.strict_mode": 1, "net.mpls.platform_labels": 1000, "net.mpls.conf.alt0.input": 1})
    try:
        two = beside.two
        beside.ip(*INTO)
        for one in (beside.linux, two):
            netns.command(["ip", "-n", one.ctl, "-f", "mpls", "route", "add", str(LABEL), "dev", "red"])
        there = lambda sid: row(two, "blue", f"{sid}/128")  # noqa: E731
        eventually(lambda: there(DT46) and there(DT6), 5, 0.01, "end points")
        eventually(lambda: two.control.ask("labels"), 5, 0.01, "the label")
        eventually(lambda: any(r["name"] == "gre1" for r in two.control.ask("interfaces")), 5, 0.01, "the tunnel")
        yield beside
    finally:
        for line in OUT:
            netns.command(["ip", "-n", beside.two.ctl, *line.split()], check=False)


def test_table_local_precedes_a_vrf_behind_outer_headers_as_in_linux(into):
    """For a packet that comes out of a tunnel, a label or a SID into a VRF, table local is looked
    up first. Only behind a SID with `table N` the VRF alone decides, and table main is not used
    either. Behind a label Linux delivers the packet by lo, where no ICMP error finds the VRF."""
    own = {"tunnel": "host", "label": "none", DT46: "host", DT6: "wan"}
    kinds = [(outer, family) for outer in own for family in (4, 6) if (outer, family) != (DT6, 4)]
    for outer, family in kinds:
        into.both_come(outer, HOST[family], "wan")
    into.ip(*OWN)
    for outer, family in kinds:
        into.both_come(outer, HOST[family], own[outer])
    into.ip(*undo(OWN))
    into.ip(f"-6 route add {NET_OF_MAIN} via {BEHIND[6].format(2)} dev wan0 onlink")
    try:
        for outer, want in (("tunnel", "wan"), ("label", "wan"), (DT46, "wan"), (DT6, "none")):
            into.both_come(outer, HOST_OF_MAIN, want)
    finally:
        into.ip(f"-6 route del {NET_OF_MAIN}")


def check_words(two):
    """Check what the commands show about a packet of red to an address that is in no VRF."""
    for family, plen in ((4, 32), (6, 128)):
        src = BEFORE[family].format(2)
        said = two.fpmctl("explain", "port", "lan0", "src", src, "dst", HOST[family]).stdout
        assert f"{HOST[family]}/{plen} local" in said and "table local precedes the VRF" in said, said
        listed = two.fpmctl("show", "routes", HOST[family], "vrf", "red").stdout
        assert "(table local)" in listed.splitlines()[-1], listed


def test_a_prefix_of_table_local_hides_longer_routes_of_a_vrf_as_in_linux(beside):
    """A match in table local ends the search, whatever its length."""
    lines = [f"route add {LONGER} via {BEHIND[4].format(2)} vrf red", f"route add blackhole {WIDE} table local"]

    def passes(one):
        """Return True if the packet to the longer prefix is forwarded. A later packet to HOST always is."""
        lan, wan = one.wires["lan"], one.wires["wan"]
        probe, last = (lan.probe(dst, src=BEFORE[4].format(2)) for dst in ("203.0.113.200", HOST[4]))
        lan.send(probe, last)
        wan.expect(token_of(last))
        return bool(wan.got(token_of(probe)))

    beside.ip(lines[0])
    eventually(lambda: row(beside.two, "red", LONGER), 5, 0.01, "in force")
    assert passes(beside.linux)
    eventually(lambda: passes(beside.two), 5, 0.01, "forwarded")
    beside.ip(lines[1])
    try:
        assert not passes(beside.linux)
        eventually(lambda: not passes(beside.two), 5, 0.01, "hidden")
        assert beside.two.control.ask("audit")[-1]["differences"] == 0
    finally:
        beside.ip(*undo(lines))


def test_the_audit_of_zebra_and_the_kernel_finds_no_difference_in_hidden_routes(two):
    """zebra, the kernel and the RIB have routes of a VRF that table local hides. The audit finds no
    difference, and `show routes` marks the routes as hidden."""
    conf = f"""\
hostname r1
fpm address 127.0.0.1
vrf red
 ip route {HOST[4]}/32 {BEHIND[4].format(2)}
 ip route {LONGER} {BEHIND[4].format(2)}
 ipv6 route {HOST[6]}/128 {BEHIND[6].format(2)}
exit-vrf
"""
    hide = [*OWN, f"route add blackhole {WIDE} table local"]
    hidden = (f"{HOST[4]}/32", LONGER, f"{HOST[6]}/128")
    two.zebra.close()
    two.ip(*hide)
    try:
        with frr_beside(two, conf) as frr:

            def state(prefix):
                rows = two.control.ask("routes", vrf="red", prefix=prefix, longest=False)
                return [r["state"] for r in rows if r["table"] == 100]

            for prefix in hidden:
                eventually(lambda p=prefix: state(p) == ["not-installed"], 30, 0.1, f"{prefix} is hidden")
            ask = ["audit", "--vtysh", shlex.join(frr.vtysh_argv())]
            done = eventually(lambda: (d := two.fpmctl(*ask)).returncode == 0 and d, 30, 0.5, "no difference")
            assert "Equal." in done.stdout, done.stdout
            listed = two.fpmctl("show", "routes", "vrf", "red").stdout
            assert listed.count("(vrf red: hidden by table local)") == len(hidden), listed
    finally:
        two.ip(*undo(hide))


LEAKED = "203.0.113.9"  # blue has a route to this host by an interface of red
# Wire, source: the modes of rp_filter in which a packet passes.
SOURCES = {
    ("wan", HOST[4]): {0, 1, 2},  # the route of red
    ("lan", HOST[4]): {0, 2},
    ("ext", HOST[4]): {0},  # only red has this route
    ("ext", BEHIND[4].format(77)): {0, 1, 2},  # the subnet
    ("alt", BEHIND[4].format(77)): {0, 2},
    ("ext", LEAKED): {0, 2},
}


def test_sources_are_checked_in_the_vrf_of_the_port_as_in_linux(beside):
    """rp_filter of a member, strict and loose: the source is looked up in its VRF, and a route into another VRF
    leads to another interface. The value of the VRF device does not count."""
    leak = f"route add {LEAKED}/32 via {BEHIND[4].format(2)} dev wan0 onlink vrf blue"

    def set_mode(one, ports, devices):
        names = {w.tap: ports for w in one.wires.values()} | dict.fromkeys(MEMBERS, devices)
        netns.sysctl(one.ctl, {f"net.ipv4.conf.{name}.rp_filter": value for name, value in names.items()})

    def passing(one):
        """Return the wires and sources whose packets leave, each with a later packet that always does."""
        found = set()
        for name, src in SOURCES:
            members = next(m for m in MEMBERS.values() if name in m)
            wire, out = one.wires[name], one.wires[members[name == members[0]]]
            here, there = (BEFORE, BEHIND) if name == members[0] else (BEHIND, BEFORE)
            probe, last = (wire.probe(there[4].format(2), src=s) for s in (src, here[4].format(2)))
            wire.send(probe, last)
            out.expect_raw(token_of(last), 10)
            found |= {(name, src)} if out.got(token_of(probe)) else set()
        return found

    beside.ip(leak)
    try:
        eventually(lambda: row(beside.two, "blue", f"{LEAKED}/32"), 5, 0.01, "in force")
        for ports, devices in ((1, 0), (2, 0), (0, 1)):
            want = {case for case, modes in SOURCES.items() if ports in modes}
            for one in (beside.linux, beside.two):
                set_mode(one, ports, devices)
            assert passing(beside.linux) == want
            eventually(lambda w=want: passing(beside.two) == w, 10, 0.05, f"rp_filter {ports}")
    finally:
        for one in (beside.linux, beside.two):
            set_mode(one, 0, 0)
        beside.ip(*undo([leak]))
