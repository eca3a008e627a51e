# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of commands about interfaces, macvlans, addresses, neighbors and sysctls: after each
step our router treats frames as Linux does. FDP_LINKS_SEED=N repeats one seed, and finds the shortest
sequence that has a difference; FDP_LINKS_SEEDS is the number of seeds from there on."""

import contextlib
import datetime
import ipaddress
import itertools
import os
import random
import re
import struct
import subprocess
import time

import pytest

from lib import netns, rtnl
from lib.wait import LONG, PATIENCE, eventually
from links_random import (
    ASKED, GROUPS, HOSTS, LOST, MACS, MUTE, VMACS, WIRES, Generator, arp_request, host4, host6, octets,
    packet, solicitation, source4, standard,
)  # fmt: skip
from pair import pair
from router import Router, is_icmp_error
from wire import token_of

FIRST = int(os.environ.get("FDP_LINKS_SEED", "0"))
SEEDS = int(os.environ.get("FDP_LINKS_SEEDS", "100" if LONG else "0"))
STEPS = 8 if FIRST or SEEDS else 6
SHORT = (400, 401)
VALID = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80  # NUD_VALID without NUD_INCOMPLETE and NUD_FAILED
SAME_WITHIN_S = 3

# The kernels forget neighbors, and learn them from packets, at different times.
OF_NEIGHBORS = ("RTNETLINK answers: No such file or directory", "RTNETLINK answers: File exists",
                "Error: No link layer address given.")  # fmt: skip

BASE = {
    "net.ipv4.ip_forward": 1,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv4.icmp_ratelimit": 1000,
    "net.ipv4.icmp_ratemask": 0,
    "net.ipv6.icmp.ratemask": "\n",
    "net.ipv4.conf.all.accept_local": 1,
    "net.ipv4.conf.default.accept_local": 1,
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.proxy_arp": 0,
    "net.ipv4.conf.all.arp_ignore": 0,
    "net.ipv4.conf.all.ignore_routes_with_linkdown": 0,
    "net.ipv4.conf.default.ignore_routes_with_linkdown": 0,
    "net.ipv6.conf.all.ignore_routes_with_linkdown": 0,
    "net.ipv6.conf.default.ignore_routes_with_linkdown": 0,
    "net.ipv6.conf.all.disable_ipv6": 0,
    "net.ipv6.conf.default.disable_ipv6": 0,
    "net.ipv6.conf.default.mtu": 1280,
    "net.ipv6.conf.all.keep_addr_on_down": 0,
    "net.ipv6.conf.default.keep_addr_on_down": 0,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.all.accept_dad": 0,
}
OF_DEV4 = {"forwarding": 1, "rp_filter": 0, "arp_ignore": 0, "proxy_arp": 0, "accept_local": 1, "send_redirects": 0,
           "ignore_routes_with_linkdown": 0}  # fmt: skip
OF_DEV6 = {"disable_ipv6": 0, "mtu": 1500, "ignore_routes_with_linkdown": 0, "keep_addr_on_down": 0, "accept_dad": 0,
           "proxy_ndp": 0, "forwarding": 1, "force_forwarding": 0, "accept_ra": 0}  # fmt: skip
# Linux before 6.17 has no such setting.
if not os.path.exists("/proc/sys/net/ipv6/conf/all/force_forwarding"):
    del OF_DEV6["force_forwarding"]
# Each kernel draws the time for which a neighbor is reachable, 0.5 to 1.5 times the base.
NEIGH = {"proxy_delay": 0, "retrans_time_ms": 100, "mcast_solicit": 40, "base_reachable_time_ms": 3600000}


class Both:
    """Our router and Linux."""

    def __init__(self, made):
        self.made, self.ours, self.linux = made, made.ours, made.linux
        self.routers = made.both
        self.sources = itertools.count()  # Linux limits errors about missing routes for each source

    # -- the state --

    def begin(self):
        """Bring both routers to the standard state."""
        for router in self.routers:
            have = rtnl.links(router.ctl)
            lines = [f"link del {name}" for name in have if name.startswith("mv")]
            for name in WIRES:
                if f"x{name}" in have:
                    lines += [f"link set x{name} down", f"link set x{name} name {name}0"]
                dev, wire = f"{name}0", router.wires[name]
                lines += [f"link set {dev} down"] if name != "ext" else []
                lines += [f"link set {dev} up mtu 1500 arp on address {wire.port_mac} promisc off allmulticast off "
                          f"multicast on group 0 alias none", f"addr flush dev {dev} scope global",
                          f"addr flush dev {dev} to 10.0.0.0/8",
                          f"addr flush dev {dev} to 192.0.2.0/24", f"neigh flush dev {dev}"]  # fmt: skip
                lines += [f"neigh del proxy {a(n, h)} dev {dev}" for a in (host4, host6) for n in range(4) for h in (40, 41)]
            _force(router, lines)
            values = {**BASE}
            for dev in ["default", *(f"{name}0" for name in WIRES)]:
                values.update({f"net.ipv4.conf.{dev}.{k}": v for k, v in OF_DEV4.items()})
                values.update({f"net.ipv6.conf.{dev}.{k}": v for k, v in OF_DEV6.items() if dev != "default" or k != "mtu"})
                for family in ("ipv4", "ipv6") if dev != "default" else ():
                    values.update({f"net.{family}.neigh.{dev}.{k}": v for k, v in NEIGH.items()})
            for key, value in values.items():
                netns.sysctl(router.ctl, {key: value})
            standing = rtnl.links(router.ctl)
            assert all(standing[f"{name}0"].up for name in WIRES)
            _force(router, ["route flush proto boot", "route flush table local proto boot", "addr flush dev lo scope global",
                            *standard(router.wires)])  # fmt: skip
            _force(router, ["route flush proto boot", *standard(router.wires)], "-6")
            for n, name in enumerate(WIRES):
                wire = router.wires[name]
                wire.silence()
                wire.clear()
                for host in (2, *ASKED):
                    wire.answer(host4(n, host))
                    wire.answer(host6(n, host))
                for m in range(4):
                    wire.answer(f"10.5{m}.0.2")
                    wire.answer(f"2001:db8:5{m}::2")

    def apply(self, step):
        """Give a step to both routers. Return the messages of both kernels if they differ."""
        # A TAP gets its carrier back after it is set up. Linux forgets the neighbors that it got before.
        down = {link.name for link in rtnl.links(self.linux.ctl).values() if not link.up}
        step = [x for x in step if not (isinstance(x, str) and x.startswith("neigh") and down & set(x.split()))]
        said = []
        for router in (self.linux, self.ours):
            words, lines = [], []
            for item in [*step, None]:
                if isinstance(item, str):
                    lines.append(item)
                    continue
                words.append(_force(router, lines) if lines else "")
                lines = []
                if item:
                    try:
                        netns.sysctl(router.ctl, {item[1]: item[2]})
                    except netns.CommandError as error:
                        words.append(str(error))
            said.append("\n".join(words))
        if said[0] != said[1]:
            # One kernel knew a neighbor that the other had forgotten or not yet learned.
            entries = [re.sub("^neigh (add|change)", "neigh replace", item) for item in step if isinstance(item, str)]
            for router in self.routers:
                _force(router, [entry for entry in entries if entry.startswith("neigh replace") and "lladdr" in entry])
        said = [[x for x in words.splitlines() if x and x not in OF_NEIGHBORS] for words in said]
        return None if said[0] == said[1] else ["\n".join(x) for x in said]

    def settle(self):
        """Wait until our router has read all that the kernel has told."""
        mac = "02:fe:" + os.urandom(4).hex(":")
        self.ours.ip(f"neigh replace {host4(3, 60)} lladdr {mac} dev ext0 nud permanent")
        eventually(lambda: any(r["mac"] == mac for r in self.ours.control.ask("neighbors")), 5, 0.002, "a marker")
        eventually(lambda: self.ours.control.ask("kernel")[0]["in_step"], 5, 0.002, "the kernel's routes")

    # -- frames --

    def frames(self, rnd):
        """Return {name of a probe: (wire, key, frame)} for the state that Linux has now."""
        links, addresses = rtnl.links(self.linux.ctl), rtnl.addresses(self.linux.ctl)
        by_index = {link.index: link for link in links.values()}
        ports = {}
        for n, name in enumerate(WIRES):
            ports[name] = links.get(f"x{name}") or links[f"{name}0"]
        own = sorted({a.local for a in addresses if not a.local.startswith(("127.", "fe80")) and a.local != "::1"})
        valid = {r.address for r in rtnl.neighbors(self.linux.ctl) if r.state & VALID}
        made = {}
        dsts = self._destinations(own, valid)
        if any(link.name.startswith("mv") and link.up and not link.running for link in links.values()):
            # manual/behavior.md: what a link without carrier means for its routes is different from Linux.
            dsts = [d for d in dsts if d in own or not d.startswith(("10.5", "2001:db8:5", "198", "203", "2001:db8:f"))]
        for name in WIRES[:3]:
            mac = ports[name].mac
            for dst in dsts:
                if rnd.random() < 0.45:
                    self._packet(rnd, made, name, mac, dst)
            others = set(VMACS) | set(MACS) | {self.linux.wires[name].port_mac} | set(GROUPS)
            for other in sorted(others):
                # manual/behavior.md: a unicast packet in a frame to a group is dropped.
                for dst in rnd.sample([d for d in dsts if other not in GROUPS or d not in own], 2):
                    self._packet(rnd, made, name, other, dst)
            no_ipv6 = _ipv6_is_off(self.linux.ctl, ports[name])  # manual/limits.md: macvlans above it
            for address in rnd.sample(own, min(3, len(own))) + [host4(WIRES.index(name), 40), host6(WIRES.index(name), 40)]:
                if not (no_ipv6 and ":" in address):
                    self._ask(made, name, address)
        self.own, self.macvlans = set(own), any(link.name.startswith("mv") for link in by_index.values())
        return made

    def _destinations(self, own, valid):
        dsts = [x for pair in (*HOSTS, LOST) for x in pair] + own
        for n in range(4):
            for address in (host4, host6):
                dsts += [address(n, host) for host in ASKED]
                dsts += [a for host in MUTE if (a := address(n, host)) in valid]
        for m in range(4):
            dsts += [a for host in (2, *MUTE) for a in (f"10.5{m}.0.{host}", f"2001:db8:5{m}::{host}") if a in valid]
        dsts += ["192.0.2.63", "192.0.2.127", "10.60.0.255", "10.60.1.7", "10.61.1.0", "255.255.255.255", "224.0.0.9", "ff02::1:3", "127.0.0.9"]
        return dsts

    def _packet(self, rnd, made, name, mac, dst):
        wire, six = self.linux.wires[name], ":" in dst
        src = wire.peer6 if six else source4(name, next(self.sources) % 65000 + 1)
        ttl, size = rnd.choice((64, 64, 64, 2, 1)), rnd.choice((0, 0, 0, 1280, 1281, 1300, 1400, 1401, 1500, 577))
        df, echo = rnd.random() < 0.5, rnd.random() < 0.5
        key, frame = packet(wire.mac, mac, src, dst, ttl, size, df, echo)
        made[f"{name} {mac} {dst} ttl {ttl} size {size}{' DF' * df}{' echo' * echo} {len(made)}"] = name, key, frame

    def _ask(self, made, name, address):
        wire, n = self.linux.wires[name], WIRES.index(name)
        if ":" in address:
            key, frame = solicitation(wire.mac, host6(n, 62), address)
        else:
            key, frame = arp_request(wire.mac, host4(n, 62), address)
        made[f"{name} asks for {address}"] = name, key, frame

    def send(self, made):
        """Send the frames into both routers."""
        for router in self.routers:
            for wire in router.wires.values():
                wire.clear()
            by_wire = {}
            for name, _, frame in made.values():
                by_wire.setdefault(name, []).append(frame)
            for name, frames in by_wire.items():
                for at, frame in enumerate(frames):
                    # A link that is down, or with a smaller MTU, takes no frame.
                    with contextlib.suppress(OSError):
                        router.wires[name].sock.send(frame)
                    if at % 24 == 23:
                        time.sleep(0.0005)
        self.fence()

    def fence(self):
        """Return when both routers have judged the frames that were sent before."""
        if isinstance(self.ours, Router):
            self.ours.fence(self.ours.wires["ext"])
        for router in self.routers:
            if not isinstance(router, Router):
                wire = router.wires["ext"]
                key, frame = arp_request(wire.mac, host4(3, 61), wire.ip4)
                wire.send(frame)
                wire.expect_raw(lambda data, key=key: data[:6] == key, 5)
                router.collector.catch_up()

    def collected(self, router, made):
        """Return {name of a probe: sorted texts of the frames that came out}."""
        keys = {key: name for name, (_, key, _) in made.items()}
        found = {name: [] for name in made}
        for wire in router.wires.values():
            for data in wire.got():
                name = keys.get(token_of(data)) or (_is_answer(data) and keys.get(data[:6]))
                if name and not _is_redirect(data):
                    found[name].append(self._text(wire.name, data, made[name][0]))
        return {name: sorted(set(texts)) for name, texts in found.items()}

    def _text(self, name, data, came):
        """Return what must be the same of a frame that left on wire `name`; the probe came on `came`."""
        kind = data[12:14]
        macs = f"{data[6:12].hex(':')} > {data[:6].hex(':')}"
        if kind == b"\x08\x06":
            return f"{name}: ARP {data[21]} {data[22:28].hex(':')} {data[6:12].hex(':')}"
        if kind == b"\x08\x00":
            src, dst = ".".join(map(str, data[26:30])), ".".join(map(str, data[30:34]))
            at, number, ttl = 34, data[23], data[22]
        else:
            src, dst = (str(ipaddress.IPv6Address(data[a : a + 16])) for a in (22, 38))
            at, number, ttl = 54, data[20], data[21]
        if number == 58 and data[at] == 136:
            return f"{name}: NA {data[6:12].hex(':')} {src} flags {data[at + 4]:02x} {data[at + 26 : at + 32].hex(':')}"
        if is_icmp_error(data):
            word = struct.unpack_from("!I", data, at + 4)[0]
            if self.macvlans or name != came:
                src = "own" if src in self.own else src
                macs = macs if not self.macvlans else ""
            return f"{name}: ICMP {data[at]}/{data[at + 1]} {word} {src} > {dst} ttl {ttl} {macs}"
        if src in self.own:
            return f"{name}: own {number} {data[at]} {src} > {dst} ttl {ttl} {macs}"
        last = 14 + struct.unpack_from("!H", data, 16)[0] if kind == b"\x08\0" else 54 + struct.unpack_from("!H", data, 18)[0]
        return f"{name}: transit {macs} {src} > {dst} ttl {ttl} octets {len(data[14:last])} {hash(data[:last]) & 0xffff:04x}"

    def difference(self, rnd):
        """Return what both routers do differently, {probe: (Linux, ours)}, after they had time to agree."""
        end, state = time.monotonic() + SAME_WITHIN_S * PATIENCE, rnd.getstate()
        for tries in itertools.count(1):
            rnd.setstate(state)
            made = self.frames(rnd)
            self.send(made)
            wrong = self._wrong(made)
            for _ in range(3 * tries):  # a forwarder without a CPU needs longer
                if not wrong:
                    self.last = made
                    return {}
                time.sleep(0.03)
                self.fence()
                wrong = self._wrong(made)
            if time.monotonic() > end and tries > 3 and wrong:
                return wrong

    def _wrong(self, made):
        for router in self.routers:
            router.collector.catch_up()
        kernel, ours = (self.collected(r, made) for r in (self.linux, self.ours))
        return {name: (kernel[name], ours[name]) for name in made if kernel[name] != ours[name]}

    def neighbors_apart(self):
        """Return lines about neighbors that the two kernels do not have alike, and about ours of the daemon."""
        kernel, ours = (
            {(r.address, r.mac, r.state) for r in rtnl.neighbors(router.ctl)} for router in (self.linux, self.ours)
        )
        rows = [str({k: r[k] for k in ("ip", "mac", "state") if k in r}) for r in self.ours.control.ask("neighbors")]
        return [f"Linux {sorted(kernel - ours, key=str)}", f"ours  {sorted(ours - kernel, key=str)}", *rows]

    def explained(self, made, rnd):
        """Return where explain contradicts the frames of the last attempt, or None."""
        ours = self.collected(self.ours, made)
        names = {link.mac: link.name for link in rtnl.links(self.ours.ctl).values()}
        probes = [name for name, (_, key, _) in made.items() if len(key) == 10]
        for probe in rnd.sample(probes, min(6, len(probes))):
            wire, _, frame = made[probe]
            have = rtnl.links(self.ours.ctl)
            port = f"x{wire}" if f"x{wire}" in have else f"{wire}0"
            if len(frame) - 14 > have[port].mtu:
                continue  # the link takes no such frame
            want = {"port": port, "frame": frame[:300].hex(), "frame_bytes": len(frame)}
            (row,) = self.ours.control.request({"explain": want})
            transit = [text for text in ours[probe] if ": transit " in text]
            errors = [text for text in ours[probe] if ": ICMP " in text]
            wrong = None
            if row["verdict"] == "forwarded":
                macs = f"transit {row['out_src_mac']} > {row['mac']}"
                wrong = not any(macs in text for text in transit)
            elif row["verdict"] == "dropped":
                wrong = bool(transit) or (bool(errors) != ("icmp_src" in row))
            elif row["reason"] not in ("unresolved", "too_big", "kernel_route"):
                wrong = bool(transit)
            if wrong:
                brief = {k: v for k, v in row.items() if k not in ("stages", "frame")}
                return f"{probe}: explain {brief}\n frames {ours[probe]} {names}"
        return None

    def run(self, seed, steps, last=False):
        """Run a sequence. Return None, or (number of steps, text) of the first difference. With `last`
        compare only after the last step."""
        self.begin()
        self.settle()
        for at, step in enumerate(steps):
            words = self.apply(step)
            if words:
                return at + 1, f"the kernels say:\n{words[0]}\n--- ours:\n{words[1]}"
            if last and at + 1 < len(steps):
                continue
            self.settle()
            wrong = self.difference(random.Random(seed * 1000 + at))
            if wrong:
                rows = [f"{name}\n     Linux {k}\n     ours  {o}" for name, (k, o) in list(wrong.items())[:6]]
                return at + 1, f"{len(wrong)} probes:\n" + "\n".join(rows + self.neighbors_apart())
            if not last and (text := self.explained(self.last, random.Random(seed * 1000 + at))):
                return at + 1, text
        wrong = self.ours.control.ask("audit")[-1]["differences"]
        if wrong:
            return len(steps), f"audit of the FIB: {wrong} differences"
        try:
            self.made.audit()
        except AssertionError as error:
            return len(steps), f"audit: {error}"
        return None


def _ipv6_is_off(namespace, link):
    """Return True if an interface has no IPv6."""
    path = f"/proc/sys/net/ipv6/conf/{link.name}/disable_ipv6"
    return link.mtu < 1280 or netns.read_proc(namespace, path) == "1\n"


def _is_redirect(data):
    """Return True if a frame is a redirect. Linux sends those of IPv6 whatever its settings are."""
    return data[12:14] == b"\x86\xdd" and data[20] == 58 and data[54] == 137


def _is_answer(data):
    """Return True if a frame is an ARP reply or a neighbor advertisement."""
    return data[12:14] == b"\x08\x06" and data[21] == 2 or data[12:14] == b"\x86\xdd" and data[54:55] == b"\x88"


def _force(router, lines, family=None):
    """Run lines of `ip`, also those after an error. Return the error output without numbers of lines.

    A neighbor command that fails ends `ip`. So a line of output follows each of them, and the rest of
    the lines is for another process."""
    argv, said = ["ip", *([family] if family else []), "-o", "-force", "-batch", "-"], []
    while lines:
        text = [x + "\nlink show dev lo" if x.startswith("neigh") else x for x in lines]
        with netns.entered(router.ctl):
            done = subprocess.run(argv, input="\n".join(text) + "\n", capture_output=True, text=True, timeout=60)
        said += [x for x in done.stderr.splitlines() if not x.startswith("Command failed")]
        ended = [at for at, x in enumerate(lines) if x.startswith("neigh")][done.stdout.count(": lo:") :]
        lines = lines[ended[0] + 1 :] if ended else []
    return "\n".join(said)


def shortest(both, seed, steps):
    """Leave out items while a difference stays. Return the shortest steps and the text, or None."""
    found = both.run(seed, steps)
    if not found:
        return None
    steps, text = steps[: found[0]], found[1]
    flat = [[item] for step in steps for item in step]
    if again := both.run(seed, flat, True):
        steps, text = flat[: again[0]], again[1]
    size = max(1, len(steps) // 2)
    while size:
        at = len(steps) - size
        while at >= 0:
            fewer = steps[:at] + steps[at + size :]
            if fewer and (again := both.run(seed, fewer, True)):
                steps, text = fewer[: again[0]], again[1]
            at -= size
        size //= 2
    return steps, text


@pytest.fixture(scope="module")
def both(possible):
    """Both routers, without routes of zebra."""
    with pair("lr") as made:
        made.ours.zebra.flush()
        yield Both(made)


def seeds():
    """Return the seeds of this run: fixed ones, or with FDP_LONG=1 the numbers after the date."""
    if FIRST or SEEDS:
        first = FIRST or int(datetime.date.today().strftime("%Y%m%d"))
        return range(first, first + max(SEEDS, 1))
    return SHORT


def test_random_commands_about_links_and_neighbors(both):
    """After each step of a random sequence the frames of both routers are the same; explain agrees with
    them, and the audit finds no difference."""
    bad = {}
    for seed in seeds():
        steps = Generator(random.Random(seed), both.linux.wires).sequence(STEPS)
        print(f"seed {seed}")
        found = both.run(seed, steps)
        if found and FIRST:
            steps, text = shortest(both, seed, steps) or (steps[: found[0]], found[1])
            found = len(steps), text
        if found:
            lines = [str(step) for step in steps[: found[0]]]
            bad[seed] = found[1]
            print(f"seed {seed}: {found[1]}", *lines, sep="\n", flush=True)
    assert bad == {}
