# SPDX-License-Identifier: BSD-3-Clause
"""A router under attack: real FRR with BGP and BFD to a real FRR, transit traffic over the
route it learned, and a generator that floods one port.

    peer: FRR, AS 64501     peer0 -- the router -- ext0     the attacker: on this link, and
    BGP 1/3 s, BFD 3x100 ms                 `-- lan0     any number of hosts behind it
    announces 198.51.100.0/24                  transit comes from here

All programs share two cores: the forwarder has the last core, the generator the first, and the
kernel places all other programs. The router and FRR have more weight (lib/machine.py) than the
generator and than other programs of the machine, which are no part of the attack.

A flood has a fixed rate, and more frames than its class lets pass in that time. FDP_LONG=1: the
generator sends as fast as one core can.
"""

import contextlib
import glob
import json
import os
import random
import re
import struct
import time
from types import SimpleNamespace

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from lib import ledger, machine, netns, procs
from lib.dut import Dut
from lib.frr import Frr
from lib.wait import LONG, Timeout, eventually
from router import Router, Stream
from wire import Wire

OUR4, PEER4 = "203.0.113.1", "203.0.113.2"
NET, HOST = "198.51.100.0/24", "198.51.100.9"
LASTING, LASTING_HOST = "198.51.150.0/24", "198.51.150.9"  # by lan0, also without BGP
BEHIND = "198.51.200.0/24"  # by vk0, an interface of the kernel that is no port
LINK4, LINK6 = "198.18.0.1", "2001:db8:3::1"  # ext0; the addresses of RFC 2544: a /16
VARIANTS = 2048 if LONG else 512  # different frames of a flood
# The lowest number of frames, frames a second (0: as many as one core can send), the lowest number
# of seconds. The long floods last longer than BGP's hold time.
FLOOD, RATE, SECONDS = (100_000, 0, 4) if LONG else (30_000, 40_000, 0)
SECONDS_MOST = 30 if LONG else 10  # the limit of a flood, for a machine that has other work
# Hosts of the link: the kernel has room for 1,024 neighbors in all namespaces together.
NEAR = 1 << 16 if LONG else 64
# A thread that waits for a CPU for a shorter time loses no session: BFD has 300 ms.
SLACK_S = 0.1

DAEMONS = """\
zebra=yes
bgpd=yes
bfdd=yes
zebra_options="-A 127.0.0.1 -s 90000000 {zebra}"
bgpd_options="-A 127.0.0.1"
bfdd_options="-A 127.0.0.1"
staticd_options="-A 127.0.0.1"
"""
FRR_CONF = """\
frr defaults traditional
hostname {name}
service integrated-vtysh-config
{extra}
router bgp {asn}
 bgp router-id {own}
 no bgp ebgp-requires-policy
 timers bgp 1 3
 neighbor {other} remote-as {other_asn}
 neighbor {other} timers connect 1
 neighbor {other} bfd 3 100 100
 address-family ipv4 unicast
  redistribute static
 exit-address-family
exit
"""


class Flooded:
    """The router, FRR at both ends, and the attacker; a context manager."""

    def __init__(self, name=""):
        self.dut = Router(name=f"flood{name}")
        self.peer_ns = f"fdp-peer-{os.getpid()}{name}"
        self.far = None  # frames that reach the peer
        self.r1 = self.peer = None

    def __enter__(self):
        try:
            self._up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        try:
            self.dut.destroy()
        finally:
            netns.delete(self.peer_ns)

    def _up(self):
        dut = self.dut
        dut.build()
        netns.command(["ip", "netns", "add", self.peer_ns])
        netns.ip_batch(
            [
                "link set lo up",
                f"link add eth0 index 200 type veth peer name p-peer netns {dut.dp}",
                "link set eth0 up",
                f"addr add {PEER4}/30 dev eth0",
            ],
            self.peer_ns,
        )
        netns.ip_batch(["link set p-peer up"], dut.dp)
        off = "tx off gso off tso off gro off".split()
        netns.run(self.peer_ns, ["ethtool", "-K", "eth0", *off], check=False)
        netns.run(dut.dp, ["ethtool", "-K", "p-peer", *off], check=False)
        dut.write_config()
        peer = "  - tap: peer0\n    device: net_af_packet,iface=p-peer\n"
        dut.edit_config("control-netns:", peer + "control-netns:")
        Dut.start(dut)  # this router has a real zebra
        dut.kernel_defaults()
        ext, lan = dut.wires["ext"], dut.wires["lan"]
        dut.ip(
            "link set peer0 up",
            f"addr add {OUR4}/30 dev peer0",
            f"addr add {LINK4}/16 dev ext0",
            f"route add 198.19.0.0/16 via {ext.peer4} dev ext0",
            f"route add {LASTING} via {lan.peer4} dev lan0",
            f"-6 route add 2001:db8:f000::/36 via {ext.peer6} dev ext0",
        )
        self._host_behind()
        self.r1 = self._frr("r1", dut.ctl, 64500, OUR4, 64501, PEER4, "-M dplane_fpm_nl")
        extra = f"ip route {NET} Null0"
        self.peer = self._frr("peer", self.peer_ns, 64501, PEER4, 64500, OUR4, "", extra)
        self.far = Wire(self.peer_ns, "eth0")
        dut.collector.add(self.far)
        eventually(self.is_up, 60, 0.2, "BGP, BFD and the route are there")

    def _host_behind(self):
        """Make an interface of the kernel that is no port, and a host behind it. The host discards
        the packets."""
        near, far = BEHIND.replace("0/24", "1/24"), BEHIND.replace("0/24", "2")
        self.dut.ip(
            f"link add vk0 type veth peer name vk1 address 02:77:00:00:00:02 netns {self.peer_ns}",
            "link set vk0 up",
            f"addr add {near} dev vk0",
            f"neigh add {far} lladdr 02:77:00:00:00:02 dev vk0 nud permanent",
        )
        netns.ip_batch(["link set vk1 up"], self.peer_ns)

    def received_behind(self):
        """Return the number of packets that the host behind the kernel has received."""
        text = netns.run(self.peer_ns, ["ip", "-j", "-s", "link", "show", "vk1"])
        return json.loads(text)[0]["stats64"]["rx"]["packets"]

    def _frr(self, name, space, asn, own, other_asn, other, zebra, extra=""):
        source = os.path.join(self.dut.dir, name + ".conf")
        os.makedirs(source)
        conf = FRR_CONF.format(
            name=name, asn=asn, own=own, other=other, other_asn=other_asn,
            extra=extra or "fpm address 127.0.0.1",
        )  # fmt: skip
        texts = {"daemons": DAEMONS.format(zebra=zebra), "frr.conf": conf}
        texts["vtysh.conf"] = "service integrated-vtysh-config\n"
        for file, text in texts.items():
            with open(os.path.join(source, file), "w", encoding="ascii") as out:
                out.write(text)
        frr = Frr(space, source, os.path.join(self.dut.dir, name), self.dut.dir)
        frr.start()
        return frr

    # -- the state of the router --

    def is_up(self):
        """Return true when BGP is established, BFD is up and the route is forwarded."""
        rows = self.dut.control.ask("routes", prefix=NET)
        bgp, bfd = _told(self.r1, f"show bgp neighbors {PEER4} json", "show bfd peers json")
        return (
            bgp[PEER4]["bgpState"] == "Established"
            and bfd[0]["status"] == "up"
            and any(r["state"] == "forwarding" for r in rows)
        )

    def losses(self):
        """Return how often a session has ended so far, at either end: (BGP, BFD)."""
        both = [0, 0]
        for frr, other in ((self.r1, PEER4), (self.peer, OUR4)):
            lines = f"show bgp neighbors {other} json", "show bfd peers counters json"
            bgp, bfd = _told(frr, *lines)
            both[0] += bgp[other]["connectionsDropped"]
            both[1] += bfd[0]["session-down"]
        return tuple(both)

    def classes(self):
        """Return the rows of `show punt`, by class."""
        return {row["class"]: row for row in self.dut.control.ask("punt")}

    def cpu_seconds(self, thread):
        """Return the CPU time that a thread of the daemon has used, in the kernel too."""
        pid = self.dut.daemon.process.pid
        for path in glob.glob(f"/proc/{pid}/task/*"):
            with open(path + "/comm", encoding="ascii") as file:
                if file.read().strip() != thread:
                    continue
            with open(path + "/schedstat", encoding="ascii") as file:
                return int(file.read().split()[0]) / 1e9
        raise LookupError(thread)

    def no_room(self, port):
        """Count the frames of a flood that were lost before a forwarder saw them: in the ring of
        the port and at both ends of its link. A paced flood loses none, except while the machine
        stands still."""
        space, far, near = (
            (self.dut.far, port, "p-" + port) if port != "peer" else (self.peer_ns, "eth0", "p-peer")
        )
        ends = [(space, far, "far"), (self.dut.dp, near, "near")]
        room = ledger.read(self.dut.daemon, ends)
        return sum(room[k] for k in (port + "0 rx_missed", "far tx dropped", "near rx dropped"))

    # -- traffic --

    def transit(self, rate=2000 if LONG else 1000):
        """Send numbered packets from lan to a host behind the peer. lost(self.far) of the stream
        returns the lost packets."""
        return Stream(self.dut, self.dut.wires["lan"], HOST, rate=rate)

    @contextlib.contextmanager
    def flooding(self, frames, port="ext"):
        """Flood by the far end of a port for the length of a with block. After the block, `sent` of
        the object that this yields is the number of frames."""
        path, said = (os.path.join(self.dut.dir, name) for name in ("frames", "flood"))
        with open(path, "wb") as file:
            for frame in frames:
                file.write(struct.pack("!H", len(frame)) + frame)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(said)
        space, interface = (self.dut.far, port) if port != "peer" else (self.peer_ns, "eth0")
        program = os.path.join(os.path.dirname(self.dut.daemon.program), "tests", "flood")
        cpu = str(min(os.sched_getaffinity(0)))
        argv = ["taskset", "-c", cpu, program, interface, path, "60", str(1 << 40), str(RATE)]
        flood = procs.start(argv, self.dut.dir, said, space)
        machine.prefer([flood.pid], 0 if RATE else 5)
        result = SimpleNamespace(sent=0, seconds=0.0)
        try:
            yield result
            assert flood.poll() is None, "the flood ended early"
        finally:
            flood.terminate()
            flood.wait(10)
        with open(said, encoding="ascii") as file:
            sent, _, seconds = file.read().split()
        result.sent, result.seconds = int(sent), float(seconds)


def _told(frr, *lines):
    """Return the values of several `show ... json`, by one vtysh."""
    text, decoder, at, values = frr.vtysh(*lines), json.JSONDecoder(), 0, []
    while found := re.compile(r"[\[{]").search(text, at):
        value, at = decoder.raw_decode(text, found.start())
        values.append(value)
    return values


# -- frames of floods: each method of Maker makes one frame of a kind ---------------------------


class Maker:
    """Make frames of an attacker at a port whose MAC is `port_mac`."""

    def __init__(self, port_mac, seed):
        self.port_mac, self.rng = port_mac, random.Random(seed)

    def mac(self):
        """Return a random unicast address."""
        return (b"\x02\x66" + self.rng.randbytes(4)).hex(":")

    def _eth(self, dst=None):
        return Ether(src=self.mac(), dst=dst or self.port_mac)

    def _host(self, net="198.19"):
        return f"{net}.{self.rng.randrange(256)}.{self.rng.randrange(1, 255)}"

    def _near(self, first):
        """Return a host of the link, in its lower or its upper half."""
        n = self.rng.randrange(2, min(NEAR, 1 << 15))
        return f"198.18.{first + (n >> 8)}.{n & 255}"

    def _host6(self, net="2001:db8:f000"):
        return f"{net}:{self.rng.randrange(1, 0xFFFF):x}::{self.rng.randrange(1, 0xFFFF):x}"

    def arp(self):
        """Make an ARP request for the router's address, as from a host of the link (RFC 826)."""
        eth = self._eth("ff:ff:ff:ff:ff:ff")
        return eth / ARP(op=1, hwsrc=eth.src, psrc=self._near(0), pdst=LINK4)

    def nd(self):
        """Make a neighbor solicitation for the router's address (RFC 4861, 4.3)."""
        eth = self._eth("33:33:ff:00:00:01")
        src = f"2001:db8:3::{self.rng.randrange(2, min(NEAR, 0xFFFF)):x}"
        return eth / IPv6(src=src, dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=LINK6)

    def ttl(self):
        """Make a transit packet whose TTL expires at the router. Its route does not end with the
        BGP session: without a route the packet would be of class no_route."""
        return (
            self._eth()
            / IP(src=self._host(), dst=LASTING_HOST, ttl=1)
            / UDP(dport=33434)
            / Raw(b"x")
        )

    def no_route(self):
        """Make a transit packet that has no route."""
        ip = IP(src=self._host(), dst=self._host("198.50"))
        return self._eth() / ip / UDP(dport=9) / Raw(b"x")

    def echo(self):
        """Make an echo request to the router."""
        return self._eth() / IP(src=self._host(), dst=LINK4) / ICMP() / Raw(bytes(24))

    def echo6(self):
        """Make an ICMPv6 echo request to the router, each from a /64 of its own."""
        return self._eth() / IPv6(src=self._host6(), dst=LINK6) / ICMPv6EchoRequest()

    def syn(self):
        """Make a SYN to BGP, at the address to which the session is bound."""
        tcp = TCP(sport=self.rng.randrange(1024, 65535), dport=179, flags="S")
        return self._eth() / IP(src=self._host(), dst=OUR4) / tcp

    def ack(self):
        """Make a segment of no session, from the address of the peer."""
        tcp = TCP(sport=self.rng.randrange(1024, 65535), dport=179, flags="A")
        return self._eth() / IP(src=PEER4, dst=OUR4, ttl=1) / tcp

    def bfd(self):
        """Make a BFD control packet of an unknown host (its TTL is right, RFC 5881, 5)."""
        ip = IP(src=self._host(), dst=OUR4, ttl=255)
        return self._eth() / ip / UDP(sport=49152, dport=3784) / Raw(bytes(24))

    def bfd_spoofed(self):
        """Make a BFD control packet with the address of the peer, sent from beyond a router (the
        TTL shows it, RFC 5881, 5)."""
        ip = IP(src=PEER4, dst=OUR4, ttl=254)
        return self._eth() / ip / UDP(sport=49152, dport=3784) / Raw(bytes(24))

    def unresolved(self):
        """Make a packet of a scan of the connected /16 (RFC 1812, 3.3.2). The scan skips the hosts of
        arp(), because the kernel knows them from their ARP requests."""
        ip = IP(src=self._host(), dst=self._near(128))
        return self._eth() / ip / UDP(dport=9) / Raw(b"x")

    def fragment(self):
        """Make a first fragment for the router whose datagram is never completed (RFC 791)."""
        ip = IP(src=self._host(), dst=LINK4, id=self.rng.randrange(65536), flags="MF")
        return self._eth() / ip / UDP(dport=9, chksum=1) / Raw(bytes(32))

    def fragment6(self):
        """Make a first fragment of IPv6 for the router whose packet is never completed (RFC 8200,
        4.5)."""
        piece = struct.pack("!BBHI", 17, 0, 1, self.rng.randrange(1 << 32)) + bytes(32)
        return self._eth() / IPv6(src=self._host6(), dst=LINK6, nh=44) / Raw(piece)

    def udp(self):
        """Make a UDP packet for the router that belongs to no other class."""
        return self._eth() / IP(src=self._host(), dst=LINK4) / UDP(dport=9) / Raw(b"x")

    def kernel_route(self):
        """Make a transit packet whose route leaves by an interface of the kernel that is no
        port."""
        ip = IP(src=self._host(), dst=BEHIND.replace("0/24", "2"))
        return self._eth() / ip / UDP(dport=9) / Raw(b"x")

    def frames(self, kind, count=VARIANTS):
        """Return `count` frames of one kind, all different."""
        return [bytes(getattr(self, kind)()) for _ in range(count)]


KEYS = ("passed", "policed", "over_share", "ring_full")


def measure(flooded, kind, frames, port="ext"):
    """Run one flood, judged by class `kind`, with transit beside it, until it has lasted long
    enough and the policers have passed BGP and BFD packets of the peer. Returns a dictionary of the
    measured values."""
    dut = flooded.dut
    losses, drops = flooded.losses(), dut.counters("drop")
    with flooded.transit() as stream:
        eventually(lambda: stream.sent > 100, 5)
        share = machine.Share(lambda: procs.marked(dut.dir))
        before, missed = flooded.classes(), flooded.no_room(port)
        cpu, begin = flooded.cpu_seconds("fdp-punt"), time.monotonic()

        def moved():
            now = flooded.classes()
            return {c: {k: now[c][k] - before[c][k] for k in KEYS} for c in now}

        def judged():
            return sum(moved()[kind].values()) + flooded.no_room(port) - missed

        def is_long_enough():
            now = moved()
            peers = all(now[c]["passed"] for c in ("bfd", "bgp"))
            return judged() >= FLOOD and peers and time.monotonic() > begin + SECONDS

        with flooded.flooding(frames, port) as flood:
            with contextlib.suppress(Timeout):  # the caller judges the result
                eventually(is_long_enough, SECONDS_MOST)
        stream.ending.set()
        stream.join()
        # The kernel may still have frames of the flood: it queues them for the CPU of the flood's
        # program, and a frame that is sent later by another CPU comes before them.
        with contextlib.suppress(Timeout):  # the caller judges the result
            eventually(lambda: judged() >= flood.sent, 5)
        dut.fence(dut.wires["ext"])
        classes, seconds = moved(), time.monotonic() - begin
        missed = flooded.no_room(port) - missed
        cpu = flooded.cpu_seconds("fdp-punt") - cpu
    lost = len(stream.lost(flooded.far))
    for wire in (flooded.far, *dut.wires.values()):
        wire.clear()
    after = flooded.losses()
    drops = {k: v - drops.get(k, 0) for k, v in dut.counters("drop").items()}
    row = flooded.classes()[kind]
    return {
        "sent": flood.sent, "seconds": flood.seconds, "missed": missed,
        "judged": sum(classes[kind].values()), "passed": classes[kind]["passed"],
        "at_most": row["burst"] + row["rate"] * seconds, "classes": classes,
        "bgp_lost": after[0] - losses[0], "bfd_lost": after[1] - losses[1],
        "transit": stream.sent, "transit_lost": lost, "punt_cpu": cpu / seconds,
        "drops": {k: v for k, v in drops.items() if v},
        "taken": share.was_taken(SLACK_S), "others": share.others(), "waits": share.waits(),
    }  # fmt: skip
