# SPDX-License-Identifier: BSD-3-Clause
"""Our router and a Linux router that get the same random commands (route_random.py). After each step
both get the same packets, and the frames that come out are compared."""

import contextlib
import ipaddress
import itertools
import re
import socket
import struct
import subprocess
import time

import pair
from lib import netns
from lib.wait import PATIENCE, eventually
from ipv4 import checksum
from route_random import ALL_PROTOS, FOREIGN, GATEWAYS, HOSTS, LINKS
from wire import token, token_of

# No policer may drop a packet for the router or an error.
POLICERS = pair.POLICERS.replace("memory:", "  local: {rate: unlimited, source-rate: unlimited}\nmemory:")
# Linux limits its errors about missing routes for each source (ip_error()): each probe has a source of
# its own.
BACK = {4: "100.64.0.0/10", 6: "2001:db8:64::/48"}
WITHIN_S = 4
# Frames that the ring of each class of packets for the host has room for.
AT_ONCE = 200


class Shell:
    """A process of `ip -batch` that stays, for one family in one namespace."""

    def __init__(self, namespace, family):
        argv = ["ip", f"-{family}", "-force", "-batch", "-"]
        with netns.entered(namespace):
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        self.lines = 0

    def run(self, lines):
        """Run commands. Return {number of the command: error}."""
        end = f"end{self.lines}"
        self.process.stdin.write("".join(f"{line}\n" for line in [*lines, f"link show dev {end}"]))
        self.process.stdin.flush()
        first, errors, said = self.lines + 1, {}, []
        self.lines += len(lines) + 1
        for text in self.process.stderr:
            if failed := re.match(r"Command failed -:(\d+)", text):
                number = int(failed[1])
                if number == self.lines:
                    return errors
                errors[number - first] = " ".join(said)
                said = []
            else:
                said.append(text.strip())
        raise ConnectionError(f"ip ended: {said}")

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait(10)


class Beside(pair.Pair):
    """Both routers."""

    def begin(self):
        """Start the processes, and add what every sequence needs."""
        self.shells = {(r, f): Shell(r.ctl, f) for r in self.both for f in (4, 6)}
        self.marker = itertools.count()
        self.sources = itertools.count(1)
        self.down = set()
        for router in self.both:
            taps = [wire.tap for wire in router.wires.values()]
            netns.sysctl(router.ctl, {f"net.ipv4.conf.{tap}.send_redirects": 0 for tap in taps})
            netns.sysctl(router.ctl, {"net.ipv4.icmp_ratemask": 0, "net.ipv4.icmp_ratelimit": 1000})
            netns.sysctl(router.ctl, {"net.ipv6.icmp.ratemask": "\n"})
        self.macs = self._macs()
        lan = self.ours.wires["lan"]
        self.run_all([(4, f"route add {BACK[4]} via {lan.peer4} dev lan0 proto 77")])
        self.run_all([(6, f"route add {BACK[6]} via {lan.peer6} dev lan0 proto 77")])
        self.run_all(self.neighbors("lan"))
        self.reset({})

    def end(self):
        """End the processes."""
        for shell in self.shells.values():
            shell.close()

    @staticmethod
    def _macs():
        """Return {(wire, address): MAC} of all neighbors: each address has a MAC on each wire."""
        macs = {}
        for w, wire in enumerate(("lan", *LINKS)):
            some = [a for f in (4, 6) for a, _ in GATEWAYS[f]] + [a for f in (4, 6) for a in FOREIGN[f]]
            some += [a for f in (4, 6) for a in HOSTS[f]]
            for n, address in enumerate(dict.fromkeys(some)):
                macs[(wire, address)] = f"02:aa:{w:02x}:00:00:{n:02x}"
        return macs

    def run(self, router, commands):
        """Run commands (family, text) in one router. Return {number: error}."""
        errors, at = {}, 0
        for family, some in itertools.groupby(commands, lambda c: c[0]):
            lines = [text for _, text in some]
            for n, error in self.shells[(router, family)].run(lines).items():
                errors[at + n] = error
            at += len(lines)
        return errors

    def run_all(self, commands):
        """Run commands in both routers. Return the errors, which are the same."""
        linux, ours = (self.run(router, commands) for router in (self.linux, self.ours))
        if linux != ours:
            raise KernelsDiffer(f"{commands}: Linux {linux}, ours {ours}")
        return linux

    # -- the state before a sequence --

    def reset(self, settings):
        """Set the state before each sequence."""
        for wire in LINKS:
            self.carrier(wire, True)
        self.run_all([(4, f"link set {wire}0 up") for wire in sorted(self.down)])
        self.down.clear()
        for wire in LINKS:
            self.wait_up(wire)
        for router in self.both:
            names = {"promote_secondaries": ["net.ipv4.conf.all"], "nexthop_compat_mode": ["net.ipv4"]}
            names["ignore_routes_with_linkdown"] = [f"net.{f}.conf.all" for f in ("ipv4", "ipv6")]
            default = {"promote_secondaries": 0, "nexthop_compat_mode": 1, "ignore_routes_with_linkdown": 0}
            for key, value in {**default, **settings}.items():
                netns.sysctl(router.ctl, {f"{where}.{key}": value for where in names[key]})
        lines = [(4, "nexthop flush")]
        for family in (4, 6):
            lines += [(family, f"route flush table {t} proto {p}") for p in ALL_PROTOS for t in ("main", "local")]
            lines += [(family, f"addr flush dev {wire}0 scope global") for wire in LINKS]
            lines += [(family, f"route flush dev {wire}0 proto kernel table main scope link") for wire in LINKS]
        self.run_all(lines)
        for wire in LINKS:
            self.give(wire)
        self.settle()

    def give(self, wire):
        """Give an interface its addresses and neighbors."""
        like = self.ours.wires[wire]
        lines = [(4, f"addr replace {like.ip4}/26 dev {like.tap}")]
        lines += [(6, f"addr replace {like.ip6}/64 dev {like.tap} nodad")]
        lines += self.neighbors(wire)
        self.run_all(lines)

    def neighbors(self, wire):
        """Return the commands that write all neighbors of a wire."""
        lines = []
        for (name, address), mac in self.macs.items():
            if name == wire:
                family = 6 if ":" in address else 4
                lines.append((family, f"neigh replace {address} lladdr {mac} dev {wire}0 nud permanent"))
        return sorted(lines)

    def settle(self):
        """Return when our router has read the events of the kernel so far."""
        number = next(self.marker)
        mark = f"203.0.113.{128 + number % 100}/32"
        self.ours.ip(f"route add unreachable {mark} proto 77")
        eventually(lambda: self.ours.route_row(mark), 10, 0.002, "the marker route")
        self.ours.ip(f"route del unreachable {mark} proto 77")

    def carrier(self, wire, up):
        """Set the carrier of a wire, and wait for both kernels."""
        for router in self.both:
            if netns.is_up(router.far, wire) != up:
                netns.link_set(router.far, wire, up)
        if wire not in self.down:
            for router in self.both:
                tap = wire + "0"
                eventually(lambda r=router, t=tap: netns.has_carrier(r.ctl, t) == up, 10, 0.002, f"carrier of {wire}")

    def wait_up(self, wire):
        """Return when an interface that was set up has its carrier and its link-local address."""
        tap = wire + "0"
        for router in self.both:
            eventually(lambda r=router: netns.has_carrier(r.ctl, tap), 10, 0.002, f"carrier of {tap}")
            eventually(lambda r=router: self.has_link_local(r, tap), 10, 0.002, f"link-local address of {tap}")
        eventually(lambda: self.ours.port_row(self.ours.wires[wire])["link"] == "up", 10, 0.002, f"link of {tap}")

    @staticmethod
    def has_link_local(router, tap):
        """Return True if the interface has a link-local address."""
        rows = netns.read_proc(router.ctl, "/proc/net/if_inet6").splitlines()
        return any(row.startswith("fe80") and row.split()[-1] == tap for row in rows)

    # -- steps --

    def step(self, step):
        """Change both routers by one step."""
        if isinstance(step, list):
            self.run_all(step)
            # Linux forgets the neighbors of an interface that loses its last IPv4 address (fib_disable_ip()).
            for name in LINKS:
                if name not in self.down and any(line.startswith("addr del") and f"dev {name}0" in line for _, line in step):
                    self.run_all([line for line in self.neighbors(name) if line[0] == 4])
            return
        what, wire = step
        lost = [w for w in LINKS if not netns.is_up(self.linux.far, w)]
        if what == "down" and wire not in self.down:
            self.run_all([(4, f"link set {wire}0 down")])
            self.down.add(wire)
        elif what == "up" and wire in self.down:
            self.run_all([(4, f"link set {wire}0 up")])
            self.down.discard(wire)
            if wire not in lost:
                self.wait_up(wire)
            self.give(wire)
        elif what in ("lost", "found") and wire not in self.down:
            self.carrier(wire, what == "found")

    # -- packets --

    def probes(self, family, flows, text, every=False):
        """Return {label: {mark: frame}} of probes to the hosts that a sequence is about, or to every
        host."""
        large, tos = " mtu " in text, " tos " in text
        lan, made = self.ours.wires["lan"], {}
        kinds = [(0, 100)] + ([(0, 1390)] if large else []) + ([(0x10, 100)] if tos and family == 4 else [])
        for host in HOSTS[family] if every else _concerned(family, text):
            for tos_of, size in kinds:
                some = made[f"{host}{f' tos {tos_of:#x}' * bool(tos_of)}{f' of {size}' * (size > 100)}"] = {}
                for _ in range(flows):
                    mark = token()
                    some[mark] = self.frame(lan, family, host, tos_of, size, mark)
        return made

    def frame(self, lan, family, host, tos, size, mark):
        """Return a frame with a UDP packet without a checksum."""
        number = next(self.sources)
        ports = (1024 + number * 7 % 50000, 2000 + number * 13 % 50000)
        head = bytes.fromhex((lan.port_mac + lan.mac).replace(":", ""))
        if family == 4:
            load = mark.ljust(size - 28, b"\0")
            src, dst = struct.pack("!I", 0x64400000 + number % (1 << 22)), socket.inet_aton(host)
            ip = struct.pack("!BBHHHBBH", 0x45, tos, size, number & 0xFFFF, 0x4000, 60, 17, 0) + src + dst
            ip = ip[:10] + (0xFFFF - checksum(ip)).to_bytes(2, "big") + ip[12:]
            return head + b"\x08\0" + ip + struct.pack("!4H", *ports, size - 20, 0) + load
        load = mark.ljust(size - 48, b"\0")
        src = socket.inet_pton(socket.AF_INET6, f"2001:db8:64::{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}")
        dst = socket.inet_pton(socket.AF_INET6, host)
        udp = struct.pack("!4H", *ports, size - 40, 0) + load
        total = sum(struct.unpack(f"!{len(udp) // 2}H", udp)) + sum(struct.unpack("!16H", src + dst)) + 17 + size - 40
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        udp = udp[:6] + struct.pack("!H", ~total & 0xFFFF or 0xFFFF) + udp[8:]
        return head + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, size - 40, 17, 60) + src + dst + udp

    def outcomes(self, router, made):
        """Send probes to one router. Return {label: set of outcomes}."""
        for wire in (*router.wires.values(), *router.taps.values()):
            wire.clear()
        lan = router.wires["lan"]
        frames = [frame for some in made.values() for frame in some.values()]
        for at in range(0, len(frames), AT_ONCE):
            lan.send(*frames[at : at + AT_ONCE])
            eventually(lambda: router.fence(lan) or True, 30, 0.01, "a fence")
        seen = {}
        for name, wire in router.wires.items():
            for data in wire.got():
                mark = token_of(data)
                if mark and (text := _outcome(name, data)):
                    seen.setdefault(mark, []).append(text)
        return {
            label: {" and ".join(sorted(seen.get(mark, ["nothing"]))) for mark in some} for label, some in made.items()
        }

    def differences(self, families, flows, text):
        """Return {label: (outcomes of Linux, outcomes of ours)} of the probes with different outcomes."""
        found = {}
        for family in families:
            made = self.probes(family, flows, text)
            linux, ours = (self.outcomes(router, made) for router in (self.linux, self.ours))
            found |= {k: (linux[k], ours[k]) for k in made if linux[k] != ours[k]}
        return found

    def check(self, sequence, within_s=WITHIN_S):
        """Return the differences that stay, {} if both routers do the same."""
        text = str(sequence)
        families = [f for f in (4, 6) if f"({f}," in text] or [4, 6]
        many = any(word in text for word in ("nexthop", "nhid", "append", "(6,"))
        end = time.monotonic() + within_s * PATIENCE
        flows, tries = (24 if many else 2), 0
        while found := self.differences(families, flows, text):
            if time.monotonic() > end and tries >= 3:
                return found
            time.sleep(0.005)
            flows, tries = min(2 * flows, 96) if many else 2, tries + 1
        return {}

    def play(self, sequence, settings, audit=True):
        """Run a sequence from the start. Return (number of the step, differences), or None."""
        self.reset(settings)
        for n, step in enumerate(sequence):
            self.step(step)
            self.settle()
            if found := self.check(sequence[: n + 1]):
                return (n, found)
        return self.judged(len(sequence) - 1) if audit else None

    def judged(self, n):
        """Return what the audit finds, as play() does."""
        rows = self.ours.control.ask("audit")
        if rows[-1]["differences"]:
            return (n, {"audit of RIB and FIB": rows})
        # A busy machine may lose a packet.
        if self.not_explained() and self.not_explained() and (wrong := self.not_explained()):
            return (n, {"explain": wrong})
        done = self.ours.fpmctl("audit", "--vtysh", f"sh {self._empty_zebra()}")
        if done.returncode:
            return (n, {"audit": done.stdout + done.stderr})
        return None

    def not_explained(self):
        """Return the packets whose fate `fpmctl explain` does not predict, [] if there are none."""
        wrong = []
        for family in (4, 6):
            made = self.probes(family, 1, "", every=True)
            seen = self.outcomes(self.ours, made)
            for label, some in made.items():
                (frame,), (fate,) = some.values(), seen[label]
                want = {"port": "lan0", "frame": frame.hex(), "frame_bytes": len(frame)}
                (row,) = self.ours.control.request({"explain": want})
                if not _is_explained(row, fate):
                    wrong.append((label, fate, row))
        return wrong

    def tables(self):
        """Return the routes, next-hop objects and addresses of both kernels, as text."""
        found = []
        for router in (self.linux, self.ours):
            text = ""
            for words in ("nexthop", "-4 route show table all", "-6 route show table all"):
                text += netns.command(["ip", "-n", router.ctl, *words.split()])
            text = re.sub(r"203\.0\.113\.1\d\d proto 77.*\n", "", text)
            found.append(text)
        return found


def _concerned(family, text):
    """Return the hosts that are in a prefix of the commands, and two others."""
    texts = re.findall(r"[\da-f]+[.:][\da-f.:]+/\d+", text) + re.findall(r"(?<![\da-f:])::/0", text)
    if any(word in text for word in ("'down'", "'lost'", "addr del")):
        texts += ["192.0.2.0/24", "2001:db8::/46"]
    nets = {ipaddress.ip_network(found, strict=False) for found in texts}
    nets |= {ipaddress.ip_network(found) for found in re.findall(r" peer ([\da-f.:]+)", text)}
    hosts = HOSTS[family]
    return [h for h in hosts if h in hosts[:2] or any(ipaddress.ip_address(h) in net for net in nets)]


class KernelsDiffer(Exception):
    """The two kernels gave different answers to the same command."""


def _outcome(name, data):
    """Return the text of a frame that came out; None: a redirect."""
    if data[12:14] == b"\x08\0":
        at = 14 + 4 * (data[14] & 15)
        if data[23] == 1:
            kind, code = data[at], data[at + 1]
            mtu = f" mtu {data[at + 6] * 256 + data[at + 7]}" if (kind, code) == (3, 4) else ""
            return None if kind == 5 else f"ICMP {kind}/{code} from {socket.inet_ntoa(data[26:30])}{mtu} at {name}"
        return f"{name} to {data[:6].hex(':')} ttl {data[22]} tos {data[15]:#x}"
    if data[20] == 58:
        kind, code = data[54], data[55]
        mtu = f" mtu {struct.unpack_from('!I', data, 58)[0]}" if kind == 2 else ""
        src = socket.inet_ntop(socket.AF_INET6, data[22:38])
        return None if kind == 137 else f"ICMPv6 {kind}/{code} from {src}{mtu} at {name}"
    return f"{name} to {data[:6].hex(':')} ttl {data[21]}"


def _is_explained(row, fate):
    """Return True if a row of explain agrees with what a frame became."""
    if row["verdict"] == "forwarded":
        return fate.startswith(f"{row['out'][:-1]} to {row['mac']} ttl {row['out_ttl']}")
    if row["verdict"] == "dropped":
        told = bool(row.get("icmp")) and "icmp_refused" not in row
        return fate.startswith("ICMP") == told and (not told or f"from {row['icmp_src']}" in fate)
    return fate.startswith(("ICMP", "nothing"))  # the kernel decides


def reduced(made, sequence, settings):
    """Return the shortest sequence that still differs: drop steps and commands one by one."""

    def fails(some):
        with contextlib.suppress(KernelsDiffer):
            return made.play(some, settings) is not None
        return False

    at = len(sequence) - 1
    while at >= 0:
        some = sequence[:at] + sequence[at + 1 :]
        if fails(some):
            sequence = some
        elif isinstance(sequence[at], list):
            for n in range(len(sequence[at]) - 1, -1, -1):
                less = sequence[at][:n] + sequence[at][n + 1 :]
                if less and fails(some := [*sequence[:at], less, *sequence[at + 1 :]]):
                    sequence = some
        at -= 1
    return sequence


@contextlib.contextmanager
def beside(name):
    """Run both routers for the length of a with block."""
    settings = {f"net.{f}.fib_multipath_hash_policy": 1 for f in ("ipv4", "ipv6")}
    with pair.pair(name, Beside, POLICERS, settings) as made:
        made.linux.kernel_defaults()
        made.ours.ready()
        made.begin()
        yield made
        made.end()
