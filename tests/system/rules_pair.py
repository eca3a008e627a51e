# SPDX-License-Identifier: BSD-3-Clause
"""Run sequences of rules_random.py in our router and in a Linux router beside it, and compare the
frames that both send."""

import contextlib
import itertools
import random
import re
import subprocess
import threading
import time


from lib import netns
from lib.wait import PATIENCE, eventually
from linux_router import MORE_SYSCTL
from pair import pair
from router import is_icmp_error
from rules_random import FAMILIES, LARGE, OUTS, TABLES, Packet
from wire import Wire, token, token_of

SETTINGS = {**MORE_SYSCTL, "net.ipv4.icmp_errors_use_inbound_ifaddr": 1}
MARK_TYPE = b"\x88\xb5"
PACKETS = 14
LAST = "no-such-device"  # a command that fails, after each burst


class Difference(AssertionError):
    """The two routers do not agree."""


@contextlib.contextmanager
def beside(name):
    """Run both routers for the length of a with block."""
    with pair(name) as made:
        made.sysctl(SETTINGS)
        both = Beside(made)
        try:
            yield both
        finally:
            for shell in both.shells.values():
                shell.close()


class Shell:
    """A process `ip -batch` in a namespace that stays for many bursts of commands."""

    def __init__(self, namespace, six):
        argv = ["ip", *(["-6"] if six else []), "-force", "-batch", "-"]
        with netns.entered(namespace):
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )

    def run(self, lines):
        """Run commands. Returns the text of their errors."""
        self.process.stdin.write("\n".join([*lines, f"link show dev {LAST}", ""]))
        self.process.stdin.flush()
        said = []
        for line in self.process.stderr:
            if LAST in line:
                self.process.stderr.readline()  # "Command failed"
                return "".join(said)
            if not line.startswith("Command failed"):
                said.append(line)
        raise RuntimeError("".join(said))

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


class Beside:
    """Both routers with a state that sequences change."""

    def __init__(self, made):
        self.pair, self.ours, self.linux = made, made.ours, made.linux
        self.both = made.both
        self.rnd = random.Random(0)
        self.shells = {(router, six): Shell(router.ctl, six) for router in self.both for six in (False, True)}
        self.heard = {}  # frames that the kernel of the Linux router has received
        for n in ("lan", "alt"):
            self.heard[n] = Wire(self.linux.ctl, n + "0")
            self.linux.collector.add(self.heard[n])

    # -- state --

    def _ip(self, router, six, lines):
        """Give commands to a kernel in one burst. Returns the error messages of `ip`."""
        return self.shells[router, six].run(lines)

    def _give(self, lines):
        """Give both kernels commands in the same order, in bursts of one family. Returns False if a
        command failed."""
        done = True
        while lines:
            six = lines[0].startswith("-6 ")
            some = []
            while lines and lines[0].startswith("-6 ") == six:
                some.append(lines.pop(0).removeprefix("-6 "))
            said = [self._ip(router, six, some) for router in (self.linux, self.ours)]
            if said[0] != said[1]:
                raise Difference(f"the kernels do not agree: {some}\n{said[0]}\n{said[1]}")
            done = done and not said[0]
        return done

    def clean(self):
        """Set the state of both routers in which sequences begin."""
        lines = ["nexthop flush"] + [f"link set {name}0 group 0" for name in OUTS]
        for f in FAMILIES:
            standard = [(0, "local"), (32766, "main")] + [(32767, "default")] * (not f.six)
            some = ["rule flush", *["rule del pref 0"] * 4]
            some += [f"rule add pref {pref} lookup {table}" for pref, table in standard]
            some += [f"route flush table {table} proto boot" for table in (*TABLES, *LARGE, "local")]
            some += [f"route flush table {table} proto bgp" for table in TABLES]
            lines += [f.words + line for line in some]
        self._give(lines)
        self.linux.kernel_defaults()
        for router in self.both:
            for wire in router.wires.values():
                wire.clear()
        for wire in self.heard.values():
            wire.clear()
        self.ours.ready()

    def run(self, step):
        """Give the commands of a step to both routers."""
        some = []
        for line in step:
            words = line.split()
            if words[0] not in ("down", "up", "zebra", "rpf"):
                some.append(line)
                continue
            self._give(some)
            some = []
            getattr(self, "_" + words[0])(*words[1:])
        self._give(some)

    def _rpf(self, mode):
        """Set rp_filter. With value 0 our router also forwards packets from its own addresses."""
        self.pair.sysctl({"net.ipv4.conf.all.rp_filter": mode, "net.ipv4.conf.all.accept_local": int(mode == "0")})

    def _down(self, name):
        self._give([f"link set {name}0 down"])

    def _up(self, name):
        wire = self.ours.wires[name]
        self._give([f"link set {name}0 up"])
        eventually(lambda: netns.has_carrier(self.ours.ctl, f"{name}0"), 5, 0.002)
        lines = [f"addr replace {wire.ip6}/64 dev {name}0 nodad"]
        lines += [
            f"neigh replace {peer} lladdr {wire.mac} dev {name}0 nud permanent"
            for peer in (wire.peer4, wire.peer6)
        ]
        self._give(lines)

    def _zebra(self, verb, family, table, net, name=None):
        six = "-6 " if family == "6" else ""
        prefix = ("::/0" if six else "0.0.0.0/0") if net == "default" else net
        if "/" not in prefix:
            prefix += "/128" if six else "/32"
        if verb == "del":
            self._give([f"{six}route del {net} table {table} proto bgp metric 20"])
            self.ours.zebra.drop(prefix, table=int(table))
            return
        wire = self.ours.wires[name]
        via = wire.peer(int(family))
        copied = f"{six}route replace {net} via {via} dev {name}0 table {table} proto bgp metric 20"
        if not self._give([copied]):
            return  # zebra sends no route that it cannot install
        zebra = self.ours.zebra
        zebra.add(prefix, zebra.hop(via, wire), table=int(table))

    def relist(self):
        """Delete the IPv6 routes of Linux and add them again. Linux sometimes stops using a route for
        a source when another route is deleted, although it still lists the route
        (manual/behavior.md). Returns False if it has no route for a source."""
        lines = []
        for proto in ("boot", "bgp"):
            said = netns.command(["ip", "-n", self.linux.ctl, "-6", "route", "show", "table", "all", "proto", proto])
            for row in said.splitlines():
                words = re.sub(r" (error -\d+|pref medium|dead|linkdown)", "", row.strip())
                words = re.sub(r" nhid (\d+) .*?(?= table| metric|$)", r" nhid \1", words)
                lines.append(f"route add {words} proto {proto}")
        if not any(" from " in line for line in lines):
            return False
        flush = [f"route flush table {table} proto {proto}" for table in (*TABLES, *LARGE, "local") for proto in ("boot", "bgp")]
        self._ip(self.linux, True, flush)
        self._ip(self.linux, True, lines)
        return True

    # -- packets --

    def frame(self, packet):
        """Return the octets of a packet."""
        wire = self.ours.wires[packet.wire]
        return octets_of(wire.port_mac + wire.mac) + packet.octets(self.rnd, token())

    def _fence_linux(self, name):
        wire = self.linux.wires[name]
        for _ in range(2):
            mark = token()
            wire.send(octets_of(wire.port_mac + wire.mac) + MARK_TYPE + mark.ljust(50, b"\0"))
            self.heard[name].expect_raw(mark, 5)
        self.linux.collector.catch_up()

    def answers(self, packets):
        """Send packets to both. Returns [(packet, outcome in Linux, ours, frame)]."""
        frames = [(packet, self.frame(packet)) for packet in packets]
        names = sorted({packet.wire for packet in packets})
        for router in self.both:
            for packet, data in frames:
                router.wires[packet.wire].send(data)
        for name in names:
            self._fence_linux(name)
            self.ours.fence(self.ours.wires[name])
        found = []
        seen = [[(name, data) for name, wire in router.wires.items() for data in wire.got()] for router in self.both]
        for packet, data in frames:
            mark = token_of(data)
            came = [
                sorted(text(name, got, packet) for name, got in some if mark in got) for some in reversed(seen)
            ]
            found.append((packet, *came, data))
        for router in self.both:
            for wire in router.wires.values():
                wire.clear()
        for wire in self.heard.values():
            wire.clear()
        return found

    def usable(self, packets):
        """Return the packets whose wire is up."""
        up = [n for n in ("lan", "alt") if netns.is_up(self.linux.ctl, n + "0")]
        return [packet for packet in packets if packet.wire in up]

    def compare(self, packets, within=4.0):
        """Send packets until both routers agree about all of them. Returns the packets about which
        they do not agree in the end: [(packet, Linux, ours)]."""
        end = time.monotonic() + within * PATIENCE
        left, listed, tries = self.usable(packets), False, 0
        while left:
            tries += 1
            found = self.answers(left)
            for packet, linux, ours, data in found[:3]:
                if linux == ours:
                    self.explained(packet, ours, data, end)
            wrong = [(p, linux, ours) for p, linux, ours, _ in found if linux != ours]
            left = [row[0] for row in wrong]
            over = time.monotonic() > end and tries > 3
            if left and over and not listed and any(packet.f.six for packet in left):
                listed = True
                if self.relist():
                    continue
            if not left or over:
                return wrong
            time.sleep(0.003)
        return []

    def explained(self, packet, ours, data, end):
        """Assert that `explain` says what the router did with a packet."""
        for tries in itertools.count(1):
            want = {"port": packet.wire + "0", "frame": data.hex(), "frame_bytes": len(data)}
            row = self.ours.control.request({"explain": want})[0]
            out = [got.split(":")[0] + "0" for got in ours if "ICMP" not in got and "echo" not in got]
            if out == ([row["out"]] if row["verdict"] == "forwarded" else []):
                return
            # The state may have changed between the packet and the question.
            (_, linux, ours, data) = self.answers([packet])[0]
            if time.monotonic() > end + 1 and tries > 3:
                raise Difference(f"explain of {packet}: {row}\nours: {ours}\nLinux: {linux}")

    # -- a sequence --

    def sequence(self, steps, packets, within=4.0):
        """Run a sequence. Returns the packets that differ in the end, or after a step."""
        self.clean()
        for step in steps:
            self.run(step)
            wrong = self.compare(packets, within)
            if wrong:
                return wrong
        return []

    def same_after_a_dump(self, packets):
        """Assert that the audit finds no difference, also after our router has read all tables again.
        Returns the packets that differ then."""
        eventually(lambda: self.ours.control.ask("kernel")[0]["in_step"], 10, 0.002)
        self.pair.audit()
        done = self.ours.fpmctl("replay")
        assert done.returncode == 0, done.stderr
        return self.compare(packets)

    def shortest(self, steps, packet, within=1.0):
        """Return a shorter sequence after which a packet still differs."""

        def fails(some):
            try:
                self.clean()
                for step in some:
                    self.run(step)
                return bool(self.compare([packet], within))
            except Difference:
                return False

        steps = [list(step) for step in steps]
        if not fails(steps):
            flat = [[line for step in steps for line in step]]
            if not fails(flat):
                return steps
        for at in reversed(range(len(steps))):
            less = steps[:at] + steps[at + 1 :]
            if fails(less):
                steps = less
        for at in reversed(range(len(steps))):
            size = max(1, len(steps[at]) // 2)
            while size:
                n = len(steps[at]) - size
                while n >= 0:
                    less = steps[at][:n] + steps[at][n + size :]
                    if fails(steps[:at] + [less] + steps[at + 1 :]):
                        steps[at] = less
                    n -= size
                    n = min(n, len(steps[at]) - size)
                size //= 2
        return [step for step in steps if step]

    def state(self):
        """Return the rules and routes of both for a message."""
        found = []
        for router in self.both:
            for argv in (["rule"], ["-6", "rule"], ["route", "show", "table", "all"], ["-6", "route", "show", "table", "all"]):
                said = netns.command(["ip", "-n", router.ctl, *argv], check=False)
                found.append("\n".join(r for r in said.splitlines() if "multicast" not in r and "fe80" not in r))
        return "\n--\n".join(found[4:])


def text(name, data, packet):
    """Return a frame that came out by the wire `name` as text: its octets, or the important fields of
    an ICMP error. The source of an IPv6 error is left out if it does not leave by the port of the packet,
    because ours is an address of that port (manual/behavior.md), and if a rule refuses a packet for the
    router itself, because Linux then takes the packet's destination."""
    if not is_icmp_error(data):
        at = 54 if data[12:14] == b"\x86\xdd" else 34
        if packet.kind == "icmp" and data[at] in (0, 129):
            return f"{name}: echo reply"
        return f"{name}: {data.hex()}"
    six = data[12:14] == b"\x86\xdd"
    at, first, size = (54, 22, 16) if six else (14 + (data[14] & 15) * 4, 26, 4)
    src, dst = data[first : first + size].hex(), data[first + size : first + 2 * size].hex()
    if six and (name != packet.wire or packet.dst == packet.f.own):
        src = "*"
    return f"{name}: ICMP {data[at]}/{data[at + 1]} {src} > {dst} at {data[:6].hex()}"


def octets_of(macs):
    """Return the octets of MAC addresses."""
    return bytes.fromhex(macs.replace(":", ""))


def packets_of(rnd, sequence):
    """Return random packets for a sequence."""
    own = not sequence.moves_local
    return [Packet(rnd, sequence.six, own) for _ in range(PACKETS)]
