# SPDX-License-Identifier: BSD-3-Clause
"""What is connected to what, and under which addresses.

Documentation addresses only (RFC 5737, RFC 3849). The daemon's namespace r1-dp holds the
router's ends of the veth pairs; it has no addresses and no IPv6, so that its kernel answers
nothing and forwards nothing: net_af_packet leaves a copy of each frame with it.
"""

from lib import netns

ROLES = ("r1", "r1-dp", "isp", "core", "lan")

# The TAP's name in r1, the role at the other end, its interface there.
LINKS = (
    ("wan0", "isp", "eth0"),
    ("core0", "core", "eth0"),
    ("core1", "core", "eth1"),
    ("lan0", "lan", "eth0"),
)

R1_AS, ISP_AS = 64500, 65540
R1_WAN4, ISP4, ISP6 = "192.0.2.1", "192.0.2.2", "2001:db8:1::2"
R1_LAN4, R1_LAN6 = "203.0.113.1", "2001:db8:2::1"
LAN4, LAN6 = "203.0.113.10", "2001:db8:2::10"
R1_LO4, R1_LO6 = "192.0.2.129", "2001:db8:ff::1"
CORE_LO4, CORE_LO6 = "192.0.2.130", "2001:db8:ff::2"
# Answered as a whole by core, announced by OSPF.
CORE_NETS4 = ("198.51.100.128/28", "198.51.100.144/28")
CORE_NETS6 = ("2001:db8:c0::/48", "2001:db8:c1::/48")

_EVERYWHERE = {
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.default.dad_transmits": 0,
    "net.ipv6.conf.default.accept_ra": 0,
    "net.ipv6.conf.default.router_solicitations": 0,
}
_HOST = {**_EVERYWHERE, "net.ipv4.icmp_ratelimit": 0, "net.ipv6.icmp.ratelimit": 0}
_ROUTER = {
    "net.ipv4.ip_forward": 1,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv6.conf.default.forwarding": 1,
}
_SYSCTLS = {
    "r1": {**_EVERYWHERE, **_ROUTER},
    "r1-dp": {
        "net.ipv6.conf.all.disable_ipv6": 1,
        "net.ipv6.conf.default.disable_ipv6": 1,
        "net.ipv4.ip_forward": 0,
    },
    "isp": _HOST,
    "core": {**_HOST, **_ROUTER, "net.ipv4.fib_multipath_hash_policy": 1},
    "lan": _HOST,
}


def create(names):
    """Make the namespaces and cables. `names` maps every role to its namespace."""
    netns.ip_batch([f"netns add {names[role]}" for role in ROLES])
    for role in ROLES:
        # Before the interfaces: each takes the defaults when it is born.
        netns.sysctl(names[role], _SYSCTLS[role])
    netns.ip_batch(
        f"link add port-{tap} netns {names['r1-dp']} index {101 + i} type veth"
        f" peer name {dev} netns {names[role]}"
        # Unequal at the two ends: the kernel tells a carrier loss up to 1 s late otherwise.
        for i, (tap, role, dev) in enumerate(LINKS)
    )
    for tap, role, dev in LINKS:
        _plain_frames(names["r1-dp"], "port-" + tap)
        _plain_frames(names[role], dev)
    for role in ROLES:
        netns.ip_batch(commands(role), names[role])


def _plain_frames(name, dev):
    """veth hands over unfinished checksums and 64 KiB packets otherwise."""
    offloads = "tx off gso off tso off gro off".split()
    netns.run(name, ["ethtool", "-K", dev, *offloads])


def commands(role):
    """The `ip` commands that give a role its addresses and routes."""
    up = ["link set lo up"]
    up += [f"link set {dev} up" for _, at, dev in LINKS if at == role]
    if role == "r1-dp":
        up += [f"link set port-{tap} up" for tap, _, _ in LINKS]
    return up + {"isp": _isp, "core": _core, "lan": _lan}.get(role, list)()


def _lan():
    return [
        f"addr add {LAN4}/24 dev eth0",
        f"addr add {LAN6}/64 dev eth0 nodad",
        f"route add default via {R1_LAN4}",
        f"-6 route add default via {R1_LAN6}",
    ]


def _isp():
    """The Internet: every address there is lives here, except the lab's own.

    A local route for everything makes the kernel answer pings to any announced prefix as
    the host pinged. The lab's subnets are looked up first, or they would be local too.
    """
    return [
        f"addr add {ISP4}/30 dev eth0",
        f"addr add {ISP6}/64 dev eth0 nodad",
        "rule add pref 1 lookup 100",
        "rule add pref 2 lookup local",
        "rule del pref 0",
        "-6 rule add pref 1 lookup 100",
        "-6 rule add pref 2 lookup local",
        "-6 rule del pref 0",
        # In table 100 what is reached by r1; addresses of the link itself stay local.
        f"route add table 100 203.0.113.0/24 via {R1_WAN4}",
        f"route add table 100 198.51.100.0/24 via {R1_WAN4}",
        f"route add table 100 192.0.2.128/25 via {R1_WAN4}",
        f"route add table 100 {R1_WAN4}/32 dev eth0 src {ISP4}",
        "-6 route add table 100 2001:db8:2::/64 via 2001:db8:1::1",
        "-6 route add table 100 2001:db8:10::/60 via 2001:db8:1::1",
        "-6 route add table 100 2001:db8:c0::/44 via 2001:db8:1::1",
        "-6 route add table 100 2001:db8:ff::/48 via 2001:db8:1::1",
        f"-6 route add table 100 2001:db8:1::1/128 dev eth0 src {ISP6}",
        "route add local 0.0.0.0/0 dev lo table local",
        "-6 route add local ::/0 dev lo table local",
    ]


def _core():
    lines = [f"route add local {net} dev lo table local" for net in CORE_NETS4]
    return lines + [f"-6 route add local {net} dev lo table local" for net in CORE_NETS6]
