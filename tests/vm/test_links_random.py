# SPDX-License-Identifier: BSD-3-Clause
"""Random commands about VLANs, VRFs, tunnels and labels (links_random.py), given to our router and to a
Linux router beside it. After each step the same frames go into both, and the same frames have to come out.
SEEDS is the number of further seeds for each subject, FIRST_SEED the first of them."""

import contextlib
import datetime
import os
import random
import re
import struct
import time

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import twins
from lib import netns, rtnl
from lib.wait import PATIENCE
from linux_router import MORE_SYSCTL
from links_random import CALM, LABELS, MODULES, MORE_TABLE, NETS, PORTS, TABLES, Maker, address, plen
from router import Router, running
from pair import EMPTY_ZEBRA
from wire import token, token_of

POLICERS = "policers:\n" + "".join(
    f"  {name}: {{rate: unlimited, source-rate: unlimited}}\n"
    for name in ("icmp4-unreach", "icmp6-unreach", "icmp4-ttl", "icmp6-ttl", "icmp4-too-big", "icmp6-too-big", "icmp", "local")
)  # fmt: skip
SUBJECTS = {
    "vrf": ("vlan", "vrf", "route", "link", "rule", "nexthop"),
    "mpls": ("vlan", "vrf", "route", "link", "mpls"),
    "tunnel": ("vlan", "vrf", "route", "link", "tunnel"),
}
STEPS, FRAMES = 12, 70
REDUCE_S = float(os.environ.get("REDUCE_S", 120))
SETTLE_S = 8  # a difference counts if it lasts for this time


@pytest.fixture(scope="module")
def both():
    """Return both routers."""
    for module in MODULES:
        netns.command(["modprobe", "-q", module], check=False)
    netns.command(["sysctl", "-qw", "net.ipv4.route.error_cost=0"])
    with running(Router(name="random"), ("fpm:\n", f"{POLICERS}fpm:\n")) as ours:
        ours.ready()
        pair = Both(ours)
        try:
            pair.linux.build()
            pair.begin()
            yield pair
        finally:
            pair.linux.destroy()


class Both(twins.Twins):
    """Two routers that get the same commands and the same frames."""

    def begin(self):
        """Make the state that each sequence begins with, and a vtysh that knows no routes."""
        self.vtysh = f"{self.ours.dir}/vtysh"
        with open(self.vtysh, "w", encoding="ascii") as file:
            file.write(EMPTY_ZEBRA)
        netns.sysctl(self.ours.ctl, MORE_SYSCTL)
        for one in (self.linux, self.ours):
            self.give(one, ["link add red type vrf table 100", "link del red", "sysctl net/mpls/platform_labels 1000"])
        self.reset()

    @staticmethod
    def give(one, lines):
        """Run commands in one router. A command that fails does not end the others."""
        group = []

        def run():
            if group:
                text = "\n".join(x.removeprefix("-6 ").removeprefix("-M ") for x in group) + "\n"
                argv = ["ip", *([group[0].split()[0]] if group[0].startswith("-") else []), "-force", "-batch", "-"]
                netns.command(["ip", "-n", one.ctl, *argv[1:]], stdin=text, check=False)
                group.clear()

        for line in lines:
            if line.startswith("sysctl "):
                run()
                with contextlib.suppress(netns.CommandError):
                    netns.sysctl(one.ctl, {line.split()[1].replace(".", "/"): line.split()[2]})
                continue
            family = lambda x: x[:2] if x.startswith("-") else ""  # noqa: E731
            if group and family(group[0]) != family(line):
                run()
            group.append(line)
        run()

    def reset(self):
        """Bring both back to the standard state."""
        for one in (self.linux, self.ours):
            names = [x.name for x in rtnl.links(one.ctl).values()]
            lines = [f"link del {n}" for n in names if n not in (*PORTS, "lo") and not re.fullmatch(r"(gre|gretap|erspan|tunl|sit|ip6gre|ip6tnl)0", n)]
            four, six = list(lines), []
            settings = ["sysctl net/mpls/platform_labels 1000"]
            for family, some in (("", four), ("-6 ", six)):
                some += [f"{family}route flush table {table}" for table in (100, 2000, MORE_TABLE)]
                some += [f"{family}route flush proto boot"]
                some += [f"{family}rule del pref {p}" for p in (900, 901, 902, 1000, 40000) for _ in range(3)]
                some += [f"{family}rule add l3mdev pref 1000"]
            four += ["nexthop flush"]
            for wire in self.ours.wires.values():
                tap = wire.tap
                settings += [f"sysctl net/ipv6/conf/{tap}/disable_ipv6 0", f"sysctl net/ipv4/conf/{tap}/forwarding 1",
                             f"sysctl net/mpls/conf/{tap}/input 0"]  # fmt: skip
                four += [f"link set {tap} nomaster", f"link set {tap} address {wire.port_mac} mtu 1500 up"]
                if tap != CALM:
                    four += [f"addr flush dev {tap} scope global"]
                for family in (4, 6):
                    four += [f"addr replace {address(tap, family, 1)}/{plen(tap, family)} dev {tap}" + " nodad" * (family == 6),
                             f"neigh replace {address(tap, family, 2)} lladdr {wire.mac} dev {tap} nud permanent"]  # fmt: skip
            lines = settings + four + six + [f"-M route del {label}" for label in LABELS]
            self.give(one, lines)

    # -- frames --

    def wait_for_all(self, one):
        """Return when the router has judged all frames and their answers have come."""
        wire = one.wires["ext"]
        for _ in range(2):
            mark = token()
            wire.send(bytes(Ether(src=wire.mac, dst=wire.port_mac) / IP(src=wire.peer4, dst=wire.ip4) / ICMP() / Raw(mark)))
            wire.expect_raw(mark, 10)
        one.collector.catch_up()

    def outcomes(self, cases):
        """Send the frames of {name: case} into both. Return {name: (texts of Linux, of ours)}."""
        frames = {name: case.frame() for name, case in cases.items()}
        found = []
        for one in (self.linux, self.ours):
            for wire in one.wires.values():
                wire.clear()
            for name, frame in frames.items():
                send(one.wires[cases[name].wire], frame)
            self.wait_for_all(one)
            texts = {}
            for wname, wire in one.wires.items():
                for data in wire.got():
                    if (mark := token_of(data)) and not is_redirect(data):
                        texts.setdefault(mark, []).append(f"{wname} {text(data)}")
            found.append({name: sorted(texts.get(token_of(f), [])) for name, f in frames.items()})
        return {name: (found[0][name], found[1][name]) for name in cases}

    def differences(self, cases, maker, settle_s=SETTLE_S):
        """Return {name: (Linux, ours)} of the frames that both treat differently for some time."""
        begin, every = time.monotonic(), 0.02
        while cases:
            found = self.outcomes(cases)
            wrong = {n: f for n, f in found.items() if not agree(cases[n], maker, *f)}
            wrong = {n: f for n, f in wrong.items() if not self.is_known(cases[n], maker, *f)}
            cases = {n: cases[n] for n in wrong}
            if not wrong or time.monotonic() - begin > settle_s * PATIENCE:
                return wrong
            time.sleep(every)
            every = min(every * 2, 0.5)
        return {}

    def is_known(self, case, maker, linux, ours):
        """Return True if the manual (interfaces.md) has the difference. VRFs, leaks: the packet has no route in
        the second VRF, or is too large for the first route, or rules apply to the second lookup of Linux.
        Tunnels, VRFs and far end: the outer packet has no route, or no source in its VRF."""
        link = maker.links.get(case.slot)
        if link is None or case.labels or not (is_error(ours) or maker.ruled):
            return False
        if case.tunnel:
            done = self.ours.fpmctl("explain", "port", f"{case.wire}0", "hex", case.frame().hex())
        else:
            done = self.ours.fpmctl("explain", "port", link.name, "src", case.src, "dst", case.dst)
        if "tunnel     into" in done.stdout:
            return is_error(ours) and (linux == [] or is_error(linux) or "egress_down" in done.stdout)
        refused = is_error(ours) and (linux == [] or is_error(linux))
        return (refused or maker.ruled) and ("looked up again" in done.stdout or "vrf_again" in done.stdout)

    def explained_wrong(self, cases, maker):
        """Return {name: text} of an explanation that does not agree with what became of a frame, for some time."""
        plain_ones = [n for n, c in cases.items() if (c.ttl, c.size, c.labels, c.tunnel) == (64, 60, (), ()) and "unknown" not in n
                      and c.mac == maker.links[c.slot].mac]  # fmt: skip
        for name in plain_ones[:2]:
            case, begin = cases[name], time.monotonic()
            while True:
                (_, ours), = self.outcomes({name: case}).values()
                words = ["port", maker.links[case.slot].name, "src", case.src, "dst", case.dst, "sport", "4000", "dport", "4001"]
                said = self.ours.fpmctl("explain", *words).stdout
                left = bool(ours) and not is_error(ours)
                if ("FORWARDED" in said) == left or (left and "kernel" in said):
                    break
                if time.monotonic() - begin > SETTLE_S * PATIENCE:
                    return {name: (said, ours)}
                time.sleep(0.1)
        return {}

    def audit(self):
        """Return the text of an audit that finds a difference for some time, or None."""
        begin = time.monotonic()
        while True:
            done = self.ours.fpmctl("audit", "--vtysh", f"sh {self.vtysh}")
            if done.returncode == 0:
                return None
            if time.monotonic() - begin > SETTLE_S * PATIENCE:
                return done.stdout + done.stderr
            time.sleep(0.2)

    # -- sequences --

    def search(self, seed, subject):
        """Play the sequence of a seed. Return a text about a difference with the shortest sequence that
        shows it, or None."""
        rnd = random.Random(f"{subject} {seed}")
        maker, steps, checks = Maker(rnd, SUBJECTS[subject]), [], []
        self.reset()
        wrong = self.differences(maker.frames(FRAMES), maker)
        if wrong:
            return f"{subject} {seed}: after the reset: {shown(wrong)}"
        for n in range(STEPS):
            steps.append(maker.step() if n else maker.first())
            checks.append(maker.frames(FRAMES))
            for one in (self.linux, self.ours):
                self.give(one, steps[-1])
            wrong = self.differences(checks[-1], maker)
            wrong = wrong or self.explained_wrong(checks[-1], maker)
            if not wrong and (n % 4 == 3 or n == STEPS - 1):
                said = self.audit()
                wrong = {"audit": said} if said else {}
            assert self.ours.alive(), self.ours.log()
            if wrong:
                break
        else:
            return None
        explained = self.explain(checks[-1], wrong, maker)
        print(f"{subject} {seed} step {len(steps)}: {shown(wrong)}\n{explained}", flush=True)
        if REDUCE_S:
            steps = self.reduced(steps, wrong, checks[-1], maker)
        text = "\n".join("  " + "\n  ".join(step) + "\n  --" for step in steps)
        return f"{subject} {seed}:\n{text}\n{shown(wrong)}\n{explained}"

    def explain(self, cases, wrong, maker):
        """Return the explanation of the first frame that both treat differently."""
        case = next((cases[n] for n in wrong if n in cases), None)
        if case is None:
            return ""
        link = maker.links[case.slot]
        words = ["hex", case.frame().hex()] if case.labels or case.tunnel else ["src", case.src, "dst", case.dst]
        done = self.ours.fpmctl("explain", "port", f"{case.wire}0" if words[0] == "hex" else link.name, *words)
        said = done.stdout + done.stderr
        for name, one in (("Linux", self.linux), ("ours", self.ours)):
            for what in (f"route show table all match {case.dst}", f"route get {case.dst} from {case.src} iif {link.name}", "rule"):
                shown_here = netns.command(["ip", "-n", one.ctl, f"-{case.family}", *what.split()], check=False)
                said += f"{name}, {what}:\n{shown_here}"
        return said

    def reduced(self, steps, wrong, cases, maker):
        """Return a shorter sequence that ends with the same difference, if there is one."""
        left = {n: cases[n] for n in list(wrong)[:4] if n in cases}

        def fails(tried):
            self.reset()
            for lines in tried:
                for one in (self.linux, self.ours):
                    self.give(one, lines)
                # The router follows each step, as in the sequence.
                self.wait_for_all(self.ours)
                self.differences({n: c for n, c in list(cases.items())[:3]}, maker, 0)
            if "audit" in wrong:
                return bool(self.audit())
            return bool(self.differences(left, maker, 1.5))

        if not fails(steps):
            return [["(the difference does not come again)"], *steps]
        end = time.monotonic() + REDUCE_S
        for size in (8, 4, 2, 1):
            at = 0
            while at < sum(not settles(line) for step in steps for line in step) and time.monotonic() < end:
                flat = [(n, line) for n, step in enumerate(steps) for line in step if not settles(line)]
                gone = set(flat[at : at + size])
                tried = [[line for line in step if (n, line) not in gone] for n, step in enumerate(steps)]
                tried = [step for step in tried if not all(map(settles, step))]
                if tried and fails(tried):
                    steps = tried
                else:
                    at += size
        return steps


def settles(line):
    """Return True if a command is one of Maker.settle()."""
    return line.startswith(("neigh replace", "addr replace"))


def send(wire, frame):
    """Send a frame. It is lost if the link is down."""
    with contextlib.suppress(OSError):
        wire.sock.send(frame)


def text(data):
    """Return the words of a frame with tags or labels: its headers, and a digest of the rest."""
    tags, at = [], 12
    while data[at : at + 2] in (b"\x81\0", b"\x88\xa8"):
        kind, tci = struct.unpack("!HH", data[at : at + 4])
        tags.append(f"[{kind:x} {tci:x}]")
        at += 4
    head = f"{''.join(tags)} from {data[6:12].hex(':')} "
    if data[at : at + 2] != b"\x88\x47":
        return head + twins.text(data[:12] + data[at:])
    labels, at = [], at + 2
    while at + 4 <= len(data):
        (word,) = struct.unpack("!I", data[at : at + 4])
        labels.append(word >> 12)
        at += 4
        if word & 0x100:
            break
    kind = {4: b"\x08\0", 6: b"\x86\xdd"}.get(data[at] >> 4 if at < len(data) else 0, b"\xff\xff")
    return f"{head}labels {labels} {twins.text(data[:12] + kind + data[at:])}"


def is_redirect(data):
    """Return True if a frame is a redirect, which our router does not send (manual/behavior.md, ICMP errors)."""
    at = 12
    while data[at : at + 2] in (b"\x81\0", b"\x88\xa8"):
        at += 4
    return data[at : at + 2] == b"\x86\xdd" and data[at + 8] == 58 and data[at + 42] == 137


def is_error(texts):
    """Return True if the texts are those of an ICMP error alone."""
    return len(texts) == 1 and " ICMP " in texts[0]


def agree(case, maker, linux, ours):
    """Return True if the texts of both are equal, or if the manual has the difference."""
    if linux == ours:
        return True
    labelled = bool(case.labels)
    if is_error(ours) and linux == []:
        # manual/interfaces.md: VRFs that are down, tunnels; manual/mpls.md: errors about labels.
        link = maker.links.get(case.slot)
        if labelled or (link is not None and maker.vrfs.get(link.master) is False):
            return True
    if is_error(ours) and re.search("ICMP (2/0|3/4)", ours[0]) and (not linux or is_error(linux)):
        return True  # Linux looks up the receiver of "too big" in the VRF of the egress
    if ours == [] and case.family == 6 and is_error(linux) and f" {address(case.slot, 6, 1)} > " not in linux[0]:
        return True  # the ingress interface has no global address, and the VRF none to borrow
    if again(linux) and is_error(ours):
        return True
    simple = [[plain(t, case) for t in texts] for texts in (linux, ours)]
    return simple[0] == simple[1]


def again(texts):
    """Return True if a packet of Linux has passed through several VRFs (manual/interfaces.md, VRFs: leaks)."""
    found = re.findall(r"\b(?:ttl|hl) (\d+)", " ".join(texts))
    return bool(found) and int(found[-1]) < 62


def plain(words, case):
    """Return the words of a frame without what the manual names as different."""
    if " ICMP " in words:
        # Linux takes the address of the interface by which the error leaves, ours that of the ingress.
        words = re.sub(r"(ICMP 2/0 .*quotes .* hl) \d+", r"\1", words)
        words = re.sub(r"(: )\S+( > \S+ (?:ttl|hl) \d+ ICMP)", r"\1ROUTER\2", words, count=1)
    if case.labels or "labels" in words:
        words = re.sub(r"\b(ttl|hl) \d+", r"\1", words)
    return words


def shown(wrong):
    """Return differences as text."""
    if "audit" in wrong:
        return f"audit: {wrong['audit']}"
    return "\n".join(f"{n}\n   linux {a}\n   ours  {b}" for n, (a, b) in list(wrong.items())[:6])


def seeds():
    """Return the seeds of this run: some fixed ones, that of the date, and SEEDS others."""
    fixed = [1, int(datetime.date.today().strftime("%Y%m%d"))]
    first = int(os.environ.get("FIRST_SEED", 1000))
    more = int(os.environ.get("SEEDS", 0))
    return list(range(first, first + more)) if more else fixed


@pytest.mark.parametrize("subject", SUBJECTS)
def test_random_sequences(both, subject):
    """Frames and errors of both are equal after each step, and so are zebra, kernel, RIB and FIB."""
    found = []
    for seed in seeds():
        begin = time.monotonic()
        said = both.search(seed, subject)
        print(f"SEED {seed} {time.monotonic() - begin:.1f} s", flush=True)
        if said:
            print(said, flush=True)
            found.append(said)
    assert not found, "\n\n".join(found)
