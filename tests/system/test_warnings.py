# SPDX-License-Identifier: BSD-3-Clause
"""Configuration of the kernel that a Linux router obeys and the dataplane does not is reported: by `show
warnings`, the log, a metric, doctor. Each warning goes when its cause is gone. test_warnings_routes has
the kinds about routes."""

import contextlib
import ctypes
import json
import os
import re
import shlex
import socket
import struct

import pytest

from lib import api, netns, preload
from lib.dataplane import ROOT
from lib.wait import eventually
from lib.warned import POLLED, SOON, gone, made, rows, told

def nft(*lines):
    """Return nft commands as command lines."""
    return [f"nft {line}" for line in lines]


# (kind, where, commands, commands that undo them, seconds)
CASES = {
    "a chain at hook forward with a policy": (
        "nft",
        "table ip t, chain f",
        nft("add table ip t", "add chain ip t f { type filter hook forward priority 0 ; policy drop ; }"),
        nft("delete table ip t"),
        SOON,
    ),
    "a rule at hook prerouting": (
        "nft",
        "table inet t, chain p",
        nft(
            "add table inet t",
            "add chain inet t p { type filter hook prerouting priority 0 ; }",
            "add rule inet t p ip daddr 203.0.113.99 drop",
        ),
        nft("delete table inet t"),
        SOON,
    ),
    "a rule at hook postrouting of ip6": (
        "nft",
        "table ip6 t, chain q",
        nft(
            "add table ip6 t",
            "add chain ip6 t q { type filter hook postrouting priority 0 ; }",
            "add rule ip6 t q ip6 daddr 2001:db8:99::1 drop",
        ),
        nft("delete table ip6 t"),
        SOON,
    ),
    "a chain at ingress of a TAP": (
        "nft",
        "table netdev t, chain i",
        nft(
            "add table netdev t",
            "add chain netdev t i { type filter hook ingress device lan0 priority 0 ; }",
            "add rule netdev t i ip daddr 203.0.113.99 drop",
        ),
        nft("delete table netdev t"),
        SOON,
    ),
    "NAT": (
        "nat",
        "table ip t, chain n",
        nft(
            "add table ip t",
            "add chain ip t n { type nat hook postrouting priority 100 ; }",
            "add rule ip t n oifname wan0 ip daddr 203.0.113.99 snat to 192.0.2.1",
        ),
        nft("delete table ip t"),
        SOON,
    ),
    "a rule of iptables-nft": (
        "nft",
        "table ip filter, chain FORWARD",
        ["iptables-nft -A FORWARD -d 203.0.113.99 -j DROP"],
        ["nft delete table ip filter"],
        SOON,
    ),
    "a rule of the old iptables": (
        "iptables",
        "iptables table filter, chain FORWARD",
        ["iptables-legacy -A FORWARD -d 203.0.113.99 -j DROP"],
        ["iptables-legacy -D FORWARD -d 203.0.113.99 -j DROP"],
        POLLED,
    ),
    "a policy of the old ip6tables": (
        "iptables",
        "ip6tables table filter, chain FORWARD",
        ["ip6tables-legacy -P FORWARD DROP"],
        ["ip6tables-legacy -P FORWARD ACCEPT"],
        POLLED,
    ),
    "a shaper": (
        "tc",
        "qdisc tbf at lan0",
        ["tc qdisc replace dev lan0 root tbf rate 1gbit burst 1mb latency 50ms"],
        ["tc qdisc del dev lan0 root"],
        SOON,
    ),
    "a filter at ingress": (
        "tc",
        "filter u32 at ingress of lan0",
        [
            "tc qdisc add dev lan0 clsact",
            "tc filter add dev lan0 ingress protocol all u32 match u32 0 0 flowid 1:1",
        ],
        ["tc qdisc del dev lan0 clsact"],
        SOON,
    ),
    "a filter at egress": (
        "tc",
        "filter bpf at egress of lan0",
        [
            "tc qdisc add dev lan0 clsact",
            "tc filter add dev lan0 egress bpf bytecode '1,6 0 0 0,' flowid 1:1",
        ],
        ["tc qdisc del dev lan0 clsact"],
        SOON,
    ),
    "a bridge": (
        "member",
        "lan0 in bridge br8",
        ["ip link add br8 type bridge", "ip link set lan0 master br8"],
        ["ip link del br8"],
        SOON,
    ),
    "a rule by a mark": (
        "rule",
        "ipv4 rule 77, from all to all",
        ["ip rule add pref 77 fwmark 7 lookup 100"],
        ["ip rule del pref 77"],
        POLLED,
    ),
    "table main before local": (
        "rule",
        "ipv4 rule 7 before table local",
        ["ip rule add pref 7 iif ext0 lookup main", "ip rule add pref 9 lookup local",
         "ip rule del pref 0"],
        ["ip rule add pref 0 lookup local", "ip rule del pref 7", "ip rule del pref 9"],
        POLLED,
    ),
    "no rule for table local": (
        "rule",
        "ipv6 rule 32766 before table local",
        # Linux obeys the deletion only if a rule was added before.
        ["ip -6 rule add pref 77 lookup 100", "ip -6 rule del pref 77", "ip -6 rule del pref 0"],
        ["ip -6 rule add pref 0 lookup local"],
        POLLED,
    ),
    "a macvlan that an operator holds down": (
        "macvlan",
        "mv8 in protodown",
        ["ip link add mv8 link lan0 type macvlan mode bridge", "ip link set mv8 up",
         "ip link set mv8 protodown on"],
        ["ip link del mv8"],
        SOON,
    ),
    "a virtual router without arp_ignore": (
        "vrrp",
        "arp_ignore of ext0 is 0",
        ["ip link add mv9 link ext0 address 00:00:5e:00:01:09 type macvlan mode bridge",
         "ip link set mv9 up"],
        ["ip link del mv9"],
        SOON,
    ),
    "a vxlan device that learns": (
        "tunnel",
        "vxlan vx8: learning",
        ["ip link add br8 type bridge",
         "ip link add vx8 type vxlan id 88 local 203.0.113.88 dstport 4799",
         "ip link set vx8 master br8"],
        ["ip link del vx8", "ip link del br8"],
        SOON,
    ),
    "a vxlan device in no bridge": (
        "tunnel",
        "vxlan vx9: no-bridge",
        ["ip link add vx9 type vxlan id 99 local 203.0.113.88 dstport 4799 nolearning"],
        ["ip link del vx9"],
        SOON,
    ),
    "a path through the kernel without a reverse path": (
        "forwarding",
        "vk8: off for IPv4",
        ["ip link add vk8 type veth peer vk9", "ip link set vk9 up", "ip link set vk8 up",
         "ip route add 203.0.113.0/24 dev vk8", "sysctl -q -w net.ipv4.conf.vk8.forwarding=0"],
        ["ip link del vk8"],
        POLLED,
    ),
    "labels of addresses": (
        "addrlabel",
        "ip addrlabel",
        ["ip addrlabel add prefix 2001:db8:4::/64 label 99"],
        ["ip addrlabel del prefix 2001:db8:4::/64 label 99"],
        POLLED,
    ),
    "IPsec by default": (
        "ipsec",
        "default policy block",
        ["ip xfrm policy setdefault fwd block"],
        ["ip xfrm policy setdefault fwd accept"],
        POLLED,
    ),
    "a TAP without a queue": (
        "tc",
        "txqueuelen of alt0 is 0",
        ["ip link set alt0 txqueuelen 0"],
        ["ip link set alt0 txqueuelen 1000"],
        SOON,
    ),
    "a macvtap of a virtual machine": (
        "macvlan",
        "02:aa:00:00:00:08 at lan0",
        ["ip link add mt8 link lan0 address 02:aa:00:00:00:08 type macvtap mode bridge",
         "ip link set mt8 up"],
        ["ip link del mt8"],
        SOON,
    ),
    "a macvlan that takes the whole port": (
        "macvlan",
        "macvlan mv7 on alt0",
        ["ip link add mv7 link alt0 type macvlan mode passthru"],
        ["ip link del mv7"],
        SOON,
    ),
    "IPsec": (
        "ipsec",
        "policies of direction fwd",
        ["ip xfrm policy add src 203.0.113.98 dst 203.0.113.99 dir fwd action block"],
        ["ip xfrm policy del src 203.0.113.98 dst 203.0.113.99 dir fwd"],
        POLLED,
    ),
    "a sysctl of all devices": (
        "sysctl",
        "net.ipv4.conf.all.log_martians = 1",
        ["sysctl -q -w net.ipv4.conf.all.log_martians=1"],
        ["sysctl -q -w net.ipv4.conf.all.log_martians=0"],
        POLLED,
    ),
    "a sysctl that needs both values": (
        "sysctl",
        "net.ipv4.conf.lan0.bc_forwarding = 1",
        [
            "sysctl -q -w net.ipv4.conf.all.bc_forwarding=1",
            "sysctl -q -w net.ipv4.conf.lan0.bc_forwarding=1",
        ],
        [
            "sysctl -q -w net.ipv4.conf.all.bc_forwarding=0",
            "sysctl -q -w net.ipv4.conf.lan0.bc_forwarding=0",
        ],
        POLLED,
    ),
    "a sysctl of SRv6": (
        "sysctl",
        "net.ipv6.conf.lan0.seg6_require_hmac = 1",
        ["sysctl -q -w net.ipv6.conf.lan0.seg6_require_hmac=1"],
        ["sysctl -q -w net.ipv6.conf.lan0.seg6_require_hmac=0"],
        POLLED,
    ),
    "a sysctl of IPv6": (
        "sysctl",
        "net.ipv6.conf.lan0.ioam6_enabled = 1",
        ["sysctl -q -w net.ipv6.conf.lan0.ioam6_enabled=1"],
        ["sysctl -q -w net.ipv6.conf.lan0.ioam6_enabled=0"],
        POLLED,
    ),
    "silent deletions of IPv6 routes": (
        "sysctl",
        "net.ipv6.route.skip_notify_on_dev_down = 1",
        ["sysctl -q -w net.ipv6.route.skip_notify_on_dev_down=1"],
        ["sysctl -q -w net.ipv6.route.skip_notify_on_dev_down=0"],
        POLLED,
    ),
    "gateways of ICMP redirects": (
        "sysctl",
        "net.ipv4.conf.ext0.accept_redirects = 1",
        ["sysctl -q -w net.ipv4.conf.all.accept_redirects=1",
         "sysctl -q -w net.ipv4.conf.ext0.accept_redirects=1"],
        ["sysctl -q -w net.ipv4.conf.all.accept_redirects=0",
         "sysctl -q -w net.ipv4.conf.ext0.accept_redirects=0"],
        POLLED,
    ),
    "gateways of ICMPv6 redirects": (
        "sysctl",
        "net.ipv6.conf.alt0.accept_redirects = 1",
        ["sysctl -q -w net.ipv6.conf.alt0.forwarding=0"],
        ["sysctl -q -w net.ipv6.conf.alt0.forwarding=1"],
        POLLED,
    ),
    "the TTL of ICMP errors": (
        "sysctl",
        "net.ipv4.ip_default_ttl = 63",
        ["sysctl -q -w net.ipv4.ip_default_ttl=63"],
        ["sysctl -q -w net.ipv4.ip_default_ttl=64"],
        POLLED,
    ),
    "the hop limit of ICMP errors": (
        "sysctl",
        "net.ipv6.conf.lan0.hop_limit = 63",
        ["sysctl -q -w net.ipv6.conf.lan0.hop_limit=63"],
        ["sysctl -q -w net.ipv6.conf.lan0.hop_limit=64"],
        POLLED,
    ),
    "the rate of ICMP errors": (
        "sysctl",
        "net.ipv6.icmp.ratelimit = 2000",
        ["sysctl -q -w net.ipv6.icmp.ratelimit=2000"],
        ["sysctl -q -w net.ipv6.icmp.ratelimit=0"],
        POLLED,
    ),
    "an idle timer of a group": (
        "resilient",
        "resilient groups of next hops with an idle timer",
        [
            "ip nexthop add id 9001 via 192.0.2.66 dev wan0",
            "ip nexthop add id 9002 group 9001 type resilient buckets 8 idle_timer 60",
        ],
        ["ip nexthop del id 9001"],
        POLLED,
    ),
    "a sysctl of the namespace": (
        "sysctl",
        "net.ipv4.fib_multipath_hash_policy = 2",
        ["sysctl -q -w net.ipv4.fib_multipath_hash_policy=2"],
        ["sysctl -q -w net.ipv4.fib_multipath_hash_policy=0"],
        POLLED,
    ),
}


EVENTS = [case for case in CASES if CASES[case][4] == SOON]
POLLS = [case for case in CASES if CASES[case][4] == POLLED]


def lacks(case):
    """Return the feature that the commands of a case need and this kernel does not have, or None."""
    for line in CASES[case][2]:
        found = re.search(r"^ip link add .* type (.+)", line)
        if found and not netns.can_have(found[1]):
            return f"devices of type {found[1].split()[0]}"
        if line.startswith("ip xfrm") and not netns.can_run(line):
            return f"`{line}`"
    return None


LIMITS = os.path.join(ROOT, "fpm-dataplane/manual/limits.md")
PLACES = ("ipv4", "ipv4/conf/all", "ipv4/neigh/default", "ipv4/route",
          "ipv6", "ipv6/conf/all", "ipv6/neigh/default", "ipv6/route", "ipv6/icmp")  # fmt: skip


def test_the_manual_names_each_sysctl_of_routers():
    """The manual names each key of this kernel's net.ipv4 and net.ipv6, and says whether the router obeys
    it. A newer kernel may have further keys. The table has each key that the daemon warns of."""
    with open(LIMITS, encoding="utf-8") as file:
        page = file.read()
    named = set(re.findall(r"[`.]([a-z0-9_]+\*?)(?=`)", page))
    families = tuple(name[:-1] for name in named if name.endswith("*"))
    for place in PLACES:
        base = f"/proc/sys/net/{place}"
        if not os.path.isdir(base):  # only the first network namespace has neigh/default
            base = base.replace("/default", "/lo")
        for key in sorted(os.listdir(base)):
            if os.path.isfile(f"{base}/{key}"):
                known = key in named or key.startswith(families)
                assert known, f"{place}/{key} is not in limits.md"
    table = page[page.index("| sysctl |") : page.index("`ip_forward`, the `forwarding`")]
    with open(os.path.join(ROOT, "fpm-dataplane/warn/sysctl.c"), encoding="utf-8") as file:
        code = file.read()
    warned = set(re.findall(r'"net\.(?:\w+\.)*(\w+)"', code))
    warned |= {name for name in re.findall(r'_[A-Z0-9_]+,\s+"(\w+)",\s+(?:"|NULL)', code)}
    warned -= {"mc_forwarding"}  # the kind `multicast`
    assert len(warned) > 20
    for key in sorted(warned):
        row = next((line for line in table.splitlines() if re.search(rf"[`.]{key}`", line)), None)
        assert row is not None, f"{key} has no row in limits.md"
        assert not row.endswith("| no |"), row


@pytest.mark.parametrize("case", EVENTS)
def test_what_linux_obeys_and_we_do_not_is_told(dut, case):
    """The kernel reports such a change by an event. `show warnings` and the log tell it when it
    appears and when it is gone."""
    kind, where, do, undo, seconds = CASES[case]
    if lack := lacks(case):
        pytest.skip(f"this kernel has no {lack}")
    assert where not in rows(dut)
    with made(dut, do, undo):
        told(dut, kind, where, seconds)
    gone(dut, kind, where, seconds)


def test_the_daemon_looks_without_an_event(dut):
    """The kernel has no event for this sysctl: the daemon looks every five seconds."""
    kind, where, do, undo, seconds = CASES["a sysctl of all devices"]
    eventually(lambda: not rows(dut), POLLED, 0.05)
    with made(dut, do, undo):
        told(dut, kind, where, seconds)
    gone(dut, kind, where, seconds)


def test_changes_without_an_event_are_told_too(dut):
    """The kernel has no event for most of these. One scan writes 16 lines at most, so there are two
    rounds."""
    assert not {CASES[case][1] for case in POLLS} & set(rows(dut))
    able = [case for case in POLLS if not lacks(case)]
    for cases in (able[::2], able[1::2]):
        with contextlib.ExitStack() as ending:
            for case in cases:
                ending.enter_context(made(dut, *CASES[case][2:4]))
            for case in cases:
                told(dut, *CASES[case][:2], POLLED)
        for case in cases:
            gone(dut, *CASES[case][:2], POLLED)


PLAIN = [
    "ip -6 rule add pref 9 lookup local",
    "ip -6 rule del pref 0",
    *nft(
        "add table ip t",
        "add chain ip t f { type filter hook forward priority 0 ; policy accept ; }",
        "add chain ip t i { type filter hook input priority 0 ; policy accept ; }",
        "add rule ip t i ip saddr 203.0.113.99 drop",
        "add chain ip t unused",
        "add rule ip t unused drop",
        "add table netdev t",
        "add chain netdev t i { type filter hook ingress device lo priority 0 ; policy drop ; }",
    ),
    "iptables-legacy -A INPUT -s 203.0.113.99 -j DROP",
    "tc qdisc add dev lan0 clsact",
    "ip rule add pref 77 to 203.0.113.99 lookup 100",
    "sysctl -q -w net.ipv4.conf.lan0.proxy_arp=1",
]
PLAIN_UNDO = [
    *nft("delete table ip t", "delete table netdev t"),
    "iptables-legacy -D INPUT -s 203.0.113.99 -j DROP",
    "tc qdisc del dev lan0 clsact",
    "ip rule del pref 77",
    "ip -6 rule add pref 0 lookup local",
    "ip -6 rule del pref 9",
    "sysctl -q -w net.ipv4.conf.lan0.proxy_arp=0",
]


def test_configuration_without_an_effect_on_transit_is_not_told(dut):
    """Rules for the router's own packets, empty chains, other devices and obeyed rules cause no
    warning. A shaper that is made after them is reported, so the daemon has looked at all of them."""
    kind, where, do, undo, seconds = CASES["a shaper"]
    with made(dut, PLAIN, PLAIN_UNDO), made(dut, do, undo):
        told(dut, kind, where, seconds)
        assert list(rows(dut)) == [where]
    eventually(lambda: not rows(dut), POLLED, 0.05)


def bpf_program(kind):
    """Load a BPF program of this type that returns 2, XDP_PASS. Returns its descriptor."""
    code = struct.pack("<BBhi", 0xB7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    octets = ctypes.create_string_buffer(code, len(code))
    name = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("=IIQQ", kind, 2, ctypes.addressof(octets), ctypes.addressof(name))
    attr = ctypes.create_string_buffer(attr.ljust(128, b"\0"), 128)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(321, 5, attr, 128)  # bpf(BPF_PROG_LOAD)
    if fd < 0:
        pytest.skip(f"no BPF: {os.strerror(ctypes.get_errno())}")
    return fd


def attribute(kind, octets):
    """Return a netlink attribute."""
    octets = struct.pack("=HH", 4 + len(octets), kind) + octets
    return octets.ljust(-(-len(octets) // 4) * 4, b"\0")


def message(kind, flags, octets, seq=1):
    """Return a netlink message."""
    return struct.pack("=IHHII", 16 + len(octets), kind, flags, seq, 0) + octets


def send(dut, protocol, octets):
    """Send netlink messages in the control namespace, and check the first answer."""
    with netns.entered(dut.ctl):
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    with sock:
        sock.settimeout(5)
        sock.send(octets)
        answer = sock.recv(65536)
        (error,) = struct.unpack_from("=i", answer, 16)
        assert error == 0, os.strerror(-error)


def set_xdp(dut, wire, fd):
    """Attach a program to a TAP in the generic mode; -1 detaches it."""
    xdp = attribute(1, struct.pack("=i", fd)) + attribute(3, struct.pack("=I", 2))
    info = struct.pack("=BBHiII", 0, 0, 0, dut.ifindex(wire), 0, 0)
    send(dut, 0, message(19, 5, info + attribute(43 | 0x8000, xdp)))  # RTM_SETLINK, IFLA_XDP


def test_an_xdp_program_is_told(dut, lan):
    """An XDP program on a TAP sees only the packets that the kernel gets."""
    fd = bpf_program(6)
    set_xdp(dut, lan, fd)
    os.close(fd)
    try:
        told(dut, "xdp", lan.tap, SOON)
    finally:
        set_xdp(dut, lan, -1)
    gone(dut, "xdp", lan.tap, SOON)


def test_a_tcx_program_is_told(dut, lan):
    """A program that a BPF link attaches to the TAP (tcx) sees only the packets of the kernel."""
    fd = bpf_program(3)  # BPF_PROG_TYPE_SCHED_CLS
    attr = struct.pack("=IIII", fd, dut.ifindex(lan), 46, 0).ljust(128, b"\0")  # BPF_TCX_INGRESS
    libc = ctypes.CDLL(None, use_errno=True)
    with netns.entered(dut.ctl):
        link = libc.syscall(321, 28, ctypes.create_string_buffer(attr, 128), 128)  # BPF_LINK_CREATE
    os.close(fd)
    if link < 0:
        pytest.skip(f"no tcx: {os.strerror(ctypes.get_errno())}")
    where = f"tcx programs at ingress of {lan.tap}"
    try:
        told(dut, "tc", where, POLLED)
    finally:
        os.close(link)
    gone(dut, "tc", where, POLLED)


def test_multicast_routing_is_told(dut, lan):
    """A multicast router (pimd) adds the devices that it uses to a table of the kernel."""
    where = f"net.ipv4.conf.{lan.tap}.mc_forwarding = 1"
    with netns.entered(dut.ctl):
        sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
    with sock:
        sock.setsockopt(socket.IPPROTO_IP, 200, 1)  # MRT_INIT
        vif = struct.pack("=HBBIi4s", 0, 8, 1, 0, dut.ifindex(lan), b"")  # VIFF_USE_IFINDEX
        sock.setsockopt(socket.IPPROTO_IP, 202, vif)  # MRT_ADD_VIF
        told(dut, "multicast", where, SOON)
    gone(dut, "multicast", where, SOON)


def nft_batch(dut, *messages):
    """Send messages of nf_tables as one transaction."""
    head = struct.pack("!BBH", 0, 0, 10)  # the subsystem NFTABLES
    last = len(messages) + 1
    send(dut, 12, message(16, 1, head, 1)
         + b"".join(message(kind, flags, octets, n + 2)
                    for n, (kind, flags, octets) in enumerate(messages))
         + message(17, 1, head, last + 1))  # fmt: skip


def test_names_of_any_octets_are_told(dut):
    """The kernel takes any octets as names. They do not hide the row, and they reach no terminal."""
    ip = struct.pack("!BBH", 2, 0, 0)
    table, chain = b"t\x9b\x1b[31m\0", b'c"\n\0'
    hook = attribute(1, struct.pack("!I", 2)) + attribute(2, struct.pack("!i", 0))
    nft_batch(
        dut,
        (0xA00, 0x401, ip + attribute(1, table)),  # NFT_MSG_NEWTABLE
        (0xA03, 0x405, ip + attribute(1, table) + attribute(3, chain)
         + attribute(4 | 0x8000, hook) + attribute(5, struct.pack("!I", 0))
         + attribute(7, b"filter\0")),
    )  # fmt: skip
    try:
        row = eventually(lambda: next(iter(rows(dut, "nft").values()), None), SOON, 0.05)
        assert "\\x9b" in row["where"] and row["where"].isprintable(), row
        shown = dut.fpmctl("show", "warnings").stdout
        assert "\\x9b" in shown and "\033" not in shown
    finally:
        nft_batch(dut, (0xA02, 5, ip + attribute(1, table)))  # NFT_MSG_DELTABLE
    eventually(lambda: not rows(dut, "nft"), SOON, 0.05)


def test_the_list_is_bounded_and_the_rest_is_counted(dut):
    """The list has 256 rows for 300 chains, and the number of the rest."""
    text = "".join(
        f"add chain ip t f{i} {{ type filter hook forward priority {i} ; policy drop ; }}\n"
        for i in range(300)
    )
    netns.run(dut.ctl, ["nft", "-f", "-"], stdin="add table ip t\n" + text)
    try:
        found = eventually(
            lambda: (r := dut.control.ask("warnings")) and len(r) == 257 and r, SOON, 0.05
        )
        rest, text = found[-1]["linux"].split(maxsplit=1)
        assert found[-1]["kind"] == "more" and text == "more are not listed."
        assert len(rows(dut, "nft")) + int(rest) == 300
        log = dut.daemon.log(40)
        assert "warn: further changes not logged changes=240 " in log
    finally:
        netns.run(dut.ctl, ["nft", "delete table ip t"])
    eventually(lambda: not rows(dut), SOON, 0.05)


def test_each_interface_tells_the_same(dut):
    """fpmctl, the HTTP API and doctor have the rows of the daemon. The doctor's command shows them."""
    kind, where, do, undo, _ = CASES["a shaper"]
    assert "OK    obeyed" in dut.fpmctl("doctor", "obeyed").stdout
    with made(dut, do, undo):
        told(dut, kind, where, SOON)
        lines = dut.fpmctl("show", "warnings", kind).stdout.splitlines()
        assert lines[0] == f"{kind}: {where}" and all(len(x) <= 80 for x in lines)
        assert dut.fpmctl("show", "warnings", "ipsec").returncode == 3
        connection = api.Connection(dut.socket)
        connection.request("GET", "/v1/warnings")
        found = json.loads(connection.getresponse().read())
        connection.close()
        schema = api.SPEC["components"]["schemas"]["Warning"]
        for row in found:
            api.validate(row, schema)
        assert where in {row["where"] for row in found}
        done = dut.fpmctl("--json", "doctor", "obeyed")
        assert done.returncode == 0
        row = next(r for r in json.loads(done.stdout) if r["text"] == where)
        assert row["status"] == "warn" and row["subject"] == kind
        assert where in dut.fpmctl(*row["fix"][0].split()[1:]).stdout


@pytest.mark.parametrize("key, differs, same", [
    ("ipv4.conf.all.accept_local", 0, 1), ("ipv4.fib_multipath_use_neigh", 0, 1), ("ipv4.conf.all.send_redirects", 1, 0),
    ("ipv4.ip_forward_update_priority", 1, 0), ("ipv6.auto_flowlabels", 1, 2), ("ipv6.auto_flowlabels", 3, 0),
    ("ipv6.max_hbh_opts_number", 8, 2**31 - 1), ("ipv6.max_hbh_length", 64, 2**31 - 1),
])  # fmt: skip
def test_doctor_states_defaults_that_are_not_obeyed(dut, key, differs, same):
    """Each router has the kernel's defaults, so they are no warnings, but lines of doctor."""
    name = f"net.{key}"
    before = netns.run(dut.ctl, ["sysctl", "-n", name]).strip()
    try:
        for value in (differs, same):
            netns.run(dut.ctl, ["sysctl", "-q", "-w", f"{name}={value}"])
            lines = json.loads(dut.fpmctl("--json", "doctor", "obeyed").stdout)
            found = [r["status"] for r in lines if r["text"].endswith(f"; {name} is {value}")]
            assert found == (["ok"] if value == differs else [])
            assert not [r for r in lines if name in r["text"] and not found]
    finally:
        netns.run(dut.ctl, ["sysctl", "-q", "-w", f"{name}={before}"])


def test_a_check_of_sources_that_is_ignored_is_told(own_dut, dut):
    """The router obeys rp_filter, so there is no warning, unless the key `rp-filter` is `ignore`."""
    ours = own_dut()
    ours.write_config()
    ours.edit_config("log-level: info", "log-level: info\nrp-filter: ignore")
    ours.start()
    value, where = "net.ipv4.conf.lan0.rp_filter", "net.ipv4.conf.lan0.rp_filter = 2"
    undo = [f"sysctl -q -w {value}=0"]
    with made(ours, [f"sysctl -q -w {value}=2"], undo), made(dut, [f"sysctl -q -w {value}=2"], undo):
        told(ours, "sysctl", where, SOON)
        assert where not in rows(dut)
    gone(ours, "sysctl", where, SOON)


def test_the_metric_counts_by_kind(own_dut):
    """Prometheus sees the number of each kind; configuration from before the start counts, too."""
    dut = own_dut(metrics="127.0.0.1:9101")

    def value(kind):
        with netns.entered(dut.ctl):
            sock = socket.create_connection(("127.0.0.1", 9101), 5)
        with sock, sock.makefile("rb") as answer:
            sock.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            page = answer.read().decode()
        name = f'fpmdp_kernel_not_obeyed{{kind="{kind}"}} '
        return next(int(x.removeprefix(name)) for x in page.splitlines() if x.startswith(name))

    case = CASES["a rule at hook prerouting"]
    with made(dut, *case[2:4]):
        dut.start()
        told(dut, *case[:2], SOON)
        eventually(lambda: value("nft") == 1, SOON, 0.05)
        assert value("tc") == 0
    eventually(lambda: value("nft") == 0, SOON, 0.05)
    assert "no configuration of the kernel" in dut.fpmctl("show", "warnings").stdout
    dut.ip("rule add pref 77 fwmark 7 lookup 100")
    eventually(lambda: value("rule") == 1, POLLED, 0.05)


def test_a_macvlan_of_a_container_is_told(dut, lan):
    """A macvlan in another namespace is no link of the control namespace, but its MAC is one of the
    port."""
    if not netns.can_have("macvlan mode bridge"):
        pytest.skip("this kernel has no macvlans")
    mac, name = "02:aa:00:00:00:06", f"{dut.ctl}-box"
    netns.command(["ip", "netns", "add", name])
    try:
        dut.ip(f"link add mv6 link {lan.tap} address {mac} type macvlan mode bridge",
               f"link set mv6 netns {name}")
        netns.ip_batch(["link set mv6 up"], name)
        told(dut, "macvlan", f"{mac} at {lan.tap}", POLLED)
    finally:
        netns.delete(name)
    gone(dut, "macvlan", f"{mac} at {lan.tap}", POLLED)


@pytest.mark.parametrize(
    "words, end, cause",
    [
        ("ip link add mt8 link lan0 address MAC type macvtap", "ip link del mt8", "the macvtap mt8."),
        ("ip link add mv8 link lan0 address MAC type macvlan mode source", "ip link del mv8",
         "the macvlan mv8."),
        ("bridge fdb add MAC dev lan0 self", "bridge fdb del MAC dev lan0 self", "`bridge fdb add`"),
    ],
)  # fmt: skip
def test_the_cause_of_a_further_mac_is_named(dut, words, end, cause):
    """A device of the control namespace is named. The MAC of a program has no device."""
    kind = re.search("type (.+)", words)
    if kind and not netns.can_have(kind[1]):
        pytest.skip(f"this kernel has no {kind[1]}")
    mac = "02:aa:00:00:00:09"
    up = [f"ip link set {end.split()[-1]} up"] if kind else []
    with made(dut, [words.replace("MAC", mac), *up], [end.replace("MAC", mac)]):
        told(dut, "macvlan", where := f"{mac} at lan0", POLLED)
        assert cause in rows(dut)[where]["linux"]
    gone(dut, "macvlan", where, POLLED)


def test_a_refused_answer_is_not_no_configuration(own_dut, monkeypatch):
    """A kernel that refuses to tell its chains gives a warning, not silence."""
    dut = own_dut()
    preload.start(dut, monkeypatch, "nfnetlink_refused", NFNETLINK_REFUSED="1")
    row = eventually(lambda: rows(dut, "unread").get("nftables"), SOON, 0.05)
    assert "Operation not permitted" in row["linux"]


def test_a_scan_that_waits_for_the_kernel_does_not_delay_the_end(own_dut, monkeypatch):
    """The scan waits for an answer when the daemon is asked to end. The time of its thread stands
    still, so that the wait is over only because the daemon ends. The scan is given up: it does not
    finish, which would add rows about the parts without an answer."""
    dut = own_dut()
    preload.start(dut, monkeypatch, "netlink_mute", NETLINK_MUTE="fdp-warn")
    eventually(lambda: "netlink_mute: a request has no answer" in dut.log(), SOON, 0.02)
    assert dut.stop() == 0
    assert "configuration not obeyed" not in dut.log()
    assert "main: ports closed" in dut.log()


def test_ipv6_below_a_port_is_told_and_mended(own_dut, monkeypatch):
    """The daemon cannot turn IPv6 off in the kernel below a port, because /proc/sys is read-only for
    it. The doctor tells it, and its command turns IPv6 off."""
    dut = own_dut()
    preload.start(dut, monkeypatch, "sysctl_refused", SYSCTL_REFUSED="1")
    assert "4 OK, 0 WARN" in dut.fpmctl("doctor", "below").stdout
    netns.sysctl(dut.dp, {"net.ipv6.conf.p-lan.disable_ipv6": 0})
    found = json.loads(dut.fpmctl("--json", "doctor", "below").stdout)
    assert {r["subject"]: r["status"] for r in found} == {
        "p-lan": "warn", "p-wan": "ok", "p-alt": "ok", "p-ext": "ok"}  # fmt: skip
    (line,) = next(r["fix"] for r in found if r["status"] == "warn")
    netns.command(shlex.split(line))
    assert "4 OK, 0 WARN" in dut.fpmctl("doctor", "below").stdout
