# SPDX-License-Identifier: BSD-3-Clause
"""Our router with an FRR, and a Linux router with the same FRR, which forwards by its kernel. Both get
the same lines of vtysh, the same events and the same frames."""

import contextlib
import os
import signal
import socket
import threading

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether

from lib import netns
from lib.bgp_paths import Neighbor
from lib.fpm_tap import FpmTap
from lib.frr import Frr
from lib.wait import eventually
from ipv4 import checksum
from linux_router import LinuxRouter
from router import is_icmp_error
from wire import token, token_of

AS, BGP_HERE, BGP_THERE = 65001, "10.255.0.1", "10.255.0.2"
SENTINEL = "ipv6 route ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 blackhole"
CONF = f"""\
hostname r1
{SENTINEL}
zebra nexthop-group keep 1
zebra route-map delay-timer 0
bgp route-map delay-timer 0
router bgp {AS}
 bgp router-id {BGP_HERE}
 no bgp ebgp-requires-policy
 neighbor {BGP_THERE} remote-as {AS}
 neighbor {BGP_THERE} passive
 neighbor {BGP_THERE} capability extended-nexthop
 address-family ipv4 unicast
  maximum-paths ibgp 8
 exit-address-family
 address-family ipv6 unicast
  neighbor {BGP_THERE} activate
  maximum-paths ibgp 8
 exit-address-family
"""
POLICERS = "policers:\n" + "".join(
    f"  icmp{f}-{k}: {{rate: 100000, burst: 8192, source-rate: 100000, source-burst: 8192}}\n"
    for f in (4, 6)
    for k in ("ttl", "unreach")
)
# The table of a rule, and the source for which it is looked up before main.
TABLE, RULE_PREF = 100, 5000
SYSCTL = {
    "net.ipv6.conf.all.keep_addr_on_down": 1,
    "net.ipv4.fib_multipath_hash_policy": 1,
    "net.ipv6.fib_multipath_hash_policy": 1,
}


def gateways(wire):
    """Return {address: MAC address} of the gateways on a wire, and of its peers."""
    n = int(wire.mac.split(":")[4], 16)
    found = {wire.peer4: wire.mac, wire.peer6: wire.mac}
    for host in (3, 4):
        mac = f"02:00:00:01:{n:02x}:{host:02x}"
        found[wire.peer4.rpartition(".")[0] + f".{64 * n + host}"] = mac
        found[wire.peer6.rpartition("::")[0] + f"::{host}"] = mac
        found[f"fe80::{host}"] = mac
        found[f"203.0.113.{host}"] = mac
    return found


class Vty:
    """The command line of a daemon, kept open. vtysh sends each line in the same way."""

    def __init__(self, frr, daemon):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(os.path.join(frr.dir, daemon + ".vty"))
        self.run("enable", "configure terminal")

    def run(self, *lines):
        """Send each line. Return the answers with their codes."""
        answers = []
        for line in lines:
            self.sock.sendall(line.encode() + b"\0")
            said = b""
            while said[-4:-1] != b"\0\0\0":
                more = self.sock.recv(4096)
                if not more:
                    raise ConnectionError(f"{line}: the daemon ended")
                said += more
            answers.append((said[-1], said[:-4].decode()))
        return answers


class Side:
    """One of the two routers: its namespaces, its wires and its FRR."""

    def __init__(self, ctl, far, wires, folder, fpm):
        self.ctl, self.far, self.wires, self.dir, self.fpm = ctl, far, wires, folder, fpm
        self.frr = self.neighbor = None
        self.vtys = {}

    def start(self, lines):
        """Give the router its FRR and its BGP neighbor."""
        netns.sysctl(self.ctl, SYSCTL)
        pair = "type veth peer name bgp1 netns " + self.far
        netns.ip_batch([f"link add bgp0 {pair}", f"addr add {BGP_HERE}/30 dev bgp0", "link set bgp0 up"], self.ctl)
        netns.ip_batch([f"addr add {BGP_THERE}/30 dev bgp1", "link set bgp1 up", "link set lo up"], self.far)
        source = f"{self.dir}/frr.d"
        os.makedirs(source, exist_ok=True)
        module = " -M dplane_fpm_nl" if self.fpm else ""
        texts = {
            "daemons": f'pbrd=yes\nbgpd=yes\nzebra_options="-A 127.0.0.1 -s 90000000{module}"\n',
            "vtysh.conf": "service integrated-vtysh-config\nhostname r1\n",
            "frr.conf": CONF + ("fpm address 127.0.0.1\n" if self.fpm else ""),
        }
        for name, text in texts.items():
            with open(f"{source}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        self.frr = Frr(self.ctl, source, f"{self.dir}/frr", self.dir)
        self.frr.start()
        self.neighbor = Neighbor(self.far, BGP_HERE, AS)
        netns.ip_batch(lines, self.ctl)

    def stop(self):
        """End FRR and the neighbor."""
        if self.neighbor:
            self.neighbor.close()
        if self.frr:
            self.frr.stop(*self.frr.daemons)

    def vty(self, daemon, *lines):
        """Run lines in the configuration of a daemon."""
        try:
            if daemon not in self.vtys:
                self.vtys[daemon] = Vty(self.frr, daemon)
            return self.vtys[daemon].run(*lines)
        except OSError as error:
            self.vtys.pop(daemon, None)
            return [(255, f"{error}")]

    def restart(self, how):
        """Kill zebra, or stop FRR, and start all daemons with the present configuration."""
        self.vtys.clear()
        if self.frr.runs("zebra"):
            self.frr.vtysh("write memory")
        if how == "kill":
            self.frr.kill("zebra", signal.SIGKILL)
        self.frr.restart_all()


class Pair:
    """Both routers."""

    def __init__(self, dut):
        self.dut, self.linux = dut, LinuxRouter(dut)
        self.sides, self.templates, self.number = [], {}, 0
        self.tap = self.sent = self.sources = None

    def build(self, hosts=()):
        """Make the Linux router, start both FRRs. Each wire has these hosts."""
        self.linux.build()
        folder = f"{self.dut.dir}/linux"
        os.makedirs(folder)
        lan = self.dut.wires["lan"]
        self.sources = {4: ("10.200.0.1", "10.201.0.1"), 6: (lan.peer6, lan.peer6.replace("::2", "::3"))}
        lines = [
            f"route add 10.200.0.0/15 via {lan.peer4} proto 99",
            f"rule add pref {RULE_PREF} from 10.201.0.0/16 lookup {TABLE}",
            f"-6 rule add pref {RULE_PREF} from {self.sources[6][1]} lookup {TABLE}",
        ]
        self.sides = [
            Side(self.dut.ctl, self.dut.far, self.dut.wires, self.dut.dir, True),
            Side(self.linux.ctl, self.linux.far, self.linux.wires, folder, False),
        ]
        for side in self.sides:
            for wire in side.wires.values():
                for address, mac in gateways(wire).items():
                    wire.answer(address, mac)
                for address in hosts:
                    wire.answer(address, wire.mac[:-2] + "99")
        self.tap = FpmTap(self.dut.ctl)
        self.both(lambda side: side.start(lines))

    def destroy(self):
        """End both FRRs, remove the Linux router."""
        for side in self.sides:
            with contextlib.suppress(Exception):
                side.stop()
        if self.tap:
            self.tap.close()
        self.linux.destroy()

    def both(self, do):
        """Call a function for both sides at the same time. Return both results. Raise what a call raises."""
        results, errors = [None, None], []

        def one(n):
            try:
                results[n] = do(self.sides[n])
            except Exception as error:  # for the thread of the test
                errors.append(error)

        threads = [threading.Thread(target=one, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results

    # -- frames --

    def _template(self, dst, src):
        """Return the octets before the ports and UDP's length of a probe."""
        if (dst, src) not in self.templates:
            data = bytes(self.dut.wires["lan"].probe(dst, src=src, sport=0, dport=0))
            at = data.index(token_of(data))
            self.templates[dst, src] = (data[: at - 8], data[at - 4 : at - 2])
        return self.templates[dst, src]

    def frames(self, dst, src, n):
        """Return n frames of different flows, each with its token. Those of IPv4 have different sources
        also: Linux limits the errors about missing routes to one a second for each source."""
        head, length = self._template(dst, src)
        made = []
        for k in range(n):
            mark = token()
            port = (k * 2654435761 >> 7) % 60000 + 1024
            if "." in dst:
                self.number += 1
                head = _with_source(head, head[26:28] + (self.number % 65000 + 1).to_bytes(2, "big"))
            # The routers do not look at UDP's checksum.
            ports = port.to_bytes(2, "big") + (4000 + k).to_bytes(2, "big")
            made.append((mark, head + ports + length + b"\0\0" + mark))
        return made

    def outcomes(self, asked):
        """Send frames for [(dst, src, n)] into both routers. Return for each side {(dst, src): set of
        outcomes}."""
        frames = {key[:2]: self.frames(*key) for key in asked}
        self.sent = frames
        octets = [data for some in frames.values() for _, data in some]
        for side in self.sides:
            for wire in side.wires.values():
                wire.clear()
        for at in range(0, len(octets), 200):
            for side in self.sides:
                side.wires["lan"].send(*octets[at : at + 200])
            self.dut.fence(self.dut.wires["lan"])
            self._fence_linux()
        return [self._came_out(side, frames) for side in self.sides]

    def _fence_linux(self):
        """Return when Linux has judged the frames: it answers an ARP request behind them."""
        wire = self.linux.wires["lan"]
        mac = os.urandom(4)
        asks = {"hwsrc": (b"\x02\x77" + mac).hex(":"), "psrc": wire.peer4, "pdst": wire.ip4}
        frame = bytes(Ether(src=wire.mac, dst="ff:ff:ff:ff:ff:ff") / ARP(**asks))
        for _ in range(2):
            wire.send(frame)
        wire.expect_many(lambda data: data[:6] == b"\x02\x77" + mac, 2, 5)
        self.linux.collector.catch_up()

    @staticmethod
    def _came_out(side, frames):
        """Return {(dst, src): {outcome: number of frames}}."""
        where = {mark: key for key, some in frames.items() for mark, _ in some}
        found = {key: {} for key in frames}
        seen = set()
        for name, wire in side.wires.items():
            for data in wire.got():
                mark = token_of(data)
                key = where.get(mark)
                if key is None or data[6:12] == bytes.fromhex(wire.mac.replace(":", "")):
                    continue
                result = _outcome(name, data)
                found[key][result] = found[key].get(result, 0) + 1
                if mark in seen:
                    found[key]["twice"] = found[key].get("twice", 0) + 1
                seen.add(mark)
        for mark, key in where.items():
            if mark not in seen:
                found[key]["nothing"] = found[key].get("nothing", 0) + 1
        return found


def _outcome(name, data):
    if is_icmp_error(data):
        packet = Ether(data)
        layer = packet[IP] if IP in packet else packet[IPv6]
        return f"icmp {name} {layer.payload.type}/{layer.payload.code} from {layer.src}"
    ttl = data[22] if data[12] == 8 else data[21]
    return f"out {name} {data[:6].hex()} ttl {ttl}"


def _with_source(head, source):
    """Return the head of a frame of IPv4 with another source."""
    ip = bytearray(head[14:34])
    ip[10:12], ip[12:16] = b"\0\0", source
    ip[10:12] = (0xFFFF - checksum(bytes(ip))).to_bytes(2, "big")
    return head[:14] + bytes(ip) + head[34:]


def idle(side):
    """Return true if zebra has no work."""
    return not side.frr.zebra_queued()


def settled(pair):
    """Wait until both zebras have no work."""
    eventually(lambda: all(pair.both(idle)), 20, 0.02, "zebra is idle")
