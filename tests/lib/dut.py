# SPDX-License-Identifier: BSD-3-Clause
"""The device under test: one dataplane between four wires, in namespaces of its own.

    ctl: TAPs lan0 wan0 alt0 ext0        FRR's place: addresses, neighbors, FPM
    dp:  veths p-lan p-wan p-alt p-ext   the daemon
    far: veths lan wan alt ext           the neighbors: raw sockets, no kernel addresses

In a virtual machine the wires may be NICs (lib/links.py).

The kernel of `far` has no addresses and answers nothing. The test answers in the place of a
neighbor (Wire.answer), or the kernel of `ctl` has the neighbor as a static entry.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess

from lib import links, netns, procs, rtnl
from lib.dataplane import Dataplane
from lib.links import far_mac, port_mac
from lib.wait import PATIENCE, Timeout, eventually

NAMES = ("lan", "wan", "alt", "ext")

CONFIG = """\
ports:
{ports}
control-netns: {ctl}
fpm:
  listen: 127.0.0.1:2620
  sweep-quiet-s: 1
  sweep-max-s: 10
  sweep-restart-s: 2
control-socket: {socket}
metrics: {metrics}
memory:
{memory}
log-level: info
"""

# The settings of a router's kernel that sends no packets unasked, because tests count packets.
SYSCTL = {
    "net.ipv4.ip_forward": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.icmp_ratelimit": 0,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.default.router_solicitations": 0,
    "net.ipv6.conf.default.ndisc_notify": 0,
    "net.ipv6.icmp.ratelimit": 0,
}


class Control:
    """A connection to the control socket that stays open, so that a request needs no new
    process."""

    def __init__(self, path):
        self.path, self.file, self.sock = path, None, None

    def ask(self, show, **words):
        """Return all rows that answer `show`. Raise LookupError if the daemon refuses the request."""
        return self.request({"show": show, **words})

    def request(self, request):
        """Return all rows that answer a request. Raise LookupError if the daemon refuses it."""
        if self.file is None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(10 * PATIENCE)
            self.sock.connect(self.path)
            self.file = self.sock.makefile("rw", encoding="utf-8")
        try:
            self.file.write(json.dumps(request) + "\n")
            self.file.flush()
            rows = []
            for line in self.file:
                row = json.loads(line)
                if "error" in row:
                    raise LookupError(row["error"])
                if "end" in row:
                    return rows
                rows.append(row)
            raise ConnectionError("the daemon closed the control connection")
        except OSError:
            self.close()
            raise

    def close(self):
        """Close the connection; the next request opens a new one."""
        if self.sock is not None:
            self.sock.close()
        self.sock = self.file = None


def has_to_end_well():
    """Return True if the daemon has to end by itself with exit code 0: a leak checker runs then."""
    return "FDP_ENDS_WELL" in os.environ


class Dut:
    """Namespaces, wires, a daemon. start() and stop() may be called many times.

    `wire` makes an end of a link from (namespace, interface); `collector` reads all the ends.
    """

    def __init__(self, wire, collector, name="", metrics="off", supervised=False):
        tag = f"{os.getpid()}{name}"
        self.ctl, self.dp, self.far = (f"fdp-{k}-{tag}" for k in ("ctl", "dp", "far"))
        self.dir = f"/tmp/fdp-{tag}"
        self.names, self.metrics = NAMES, metrics
        self.wiring = links.chosen()
        self.socket, self.config = self.dir + "/control.sock", self.dir + "/config.yaml"
        self.log_file = self.dir + "/daemon.log"
        self.daemon = Dataplane(
            self.dp, self.config, self.socket, self.log_file, self.dir, supervised=supervised
        )
        self.control = Control(self.socket)
        self.collector, self._wire = collector, wire
        self.wires, self.taps = {}, {}

    # -- life --

    def build(self):
        """Make directories, namespaces, veths and the configuration file."""
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        for name in (self.ctl, self.dp, self.far):
            netns.command(["ip", "netns", "add", name])
        for name in (self.dp, self.far):
            quiet = {"net.ipv6.conf.default.disable_ipv6": 1, "net.ipv4.ip_forward": 0}
            netns.sysctl(name, quiet)
        netns.sysctl(self.ctl, SYSCTL)
        for name in (self.ctl, self.dp):
            netns.ip_batch(["link set lo up"], name)
        self.wiring.make(self)
        self.write_config()
        for n, name in enumerate(self.names):
            wire = self._wire(self.far, name)
            wire.name, wire.tap = name, name + "0"
            wire.mac, wire.port_mac = far_mac(n), port_mac(n)
            wire.ip4, wire.peer4 = f"192.0.2.{64 * n + 1}", f"192.0.2.{64 * n + 2}"
            wire.host4 = f"192.0.2.{64 * n}/26"
            # Not 0: tests compare addresses as text, and :0: is not the canonical form.
            net6 = f"2001:db8:{n or len(self.names)}"
            wire.ip6, wire.peer6 = f"{net6}::1", f"{net6}::2"
            self.wires[name] = wire
            self.collector.add(wire)

    def write_config(self, text=None):
        """Write the configuration file: the standard configuration, or `text`."""
        if text is None:
            ports = "\n".join(
                f"  - tap: {name}0\n    device: {self.wiring.device(name)}"
                for name in self.names
            )
            text = CONFIG.format(
                ports=ports,
                ctl=self.ctl,
                socket=self.socket,
                metrics=self.metrics,
                memory=self.wiring.memory,
            )
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)

    def edit_config(self, old, new):
        """Replace each `old` in the configuration by `new`; `old` must be there."""
        with open(self.config, encoding="utf-8") as file:
            text = file.read()
        assert old in text, f"no {old!r} in {self.config}"
        self.write_config(text.replace(old, new))

    def start(self):
        """Start the daemon and wait until it answers; open the TAPs for listening."""
        self.control.close()
        self.daemon.start()
        for name in self.names:
            if name not in self.taps:
                self.taps[name] = self._wire(self.ctl, name + "0")
                self.collector.add(self.taps[name])

    def stop(self, number=signal.SIGTERM, timeout=15):
        """End the daemon with a signal. Returns its exit code (-signal if killed)."""
        self.control.close()
        return self.daemon.stop(number, timeout)

    def alive(self):
        """Return True if the daemon runs."""
        return self.daemon.process is not None and self.daemon.process.poll() is None

    def destroy_daemon(self):
        """End the daemon, by SIGKILL if necessary, and the daemons that a supervisor or a test has
        left.

        Returns its exit code; 0 if no daemon ran.
        """
        code = 0
        self.control.close()
        if self.alive():
            self.daemon.process.terminate()
            try:
                code = self.daemon.process.wait(5 * PATIENCE)
            except subprocess.TimeoutExpired:
                self.daemon.process.kill()
                code = self.daemon.process.wait(5)
        if has_to_end_well():
            # A predecessor that handed over looks for leaks as well, and is no child of this
            # process.
            with contextlib.suppress(Timeout):
                eventually(lambda: not self._daemons(), 10, 0.1, "daemons have ended")
        procs.end_all(self.dir)
        return code

    def _daemons(self):
        """Return the daemons that still run."""
        return [p for p in procs.marked(self.dir, "fpm-dataplane") if procs.is_alive(p)]

    def destroy(self):
        """Remove everything; works from any half-built state.

        If the daemon has to end well and does not, this raises an error.
        """
        self.collector.close()
        code, said = self.destroy_daemon(), self.log()
        self.wiring.give_back(self)
        for name in (self.far, self.dp, self.ctl):
            netns.delete(name)
        shutil.rmtree(self.dir, ignore_errors=True)
        if has_to_end_well():
            assert code == 0, f"the daemon ended with code {code}:\n{said}"

    # -- the kernel of the control namespace --

    def ip(self, *lines):
        """Run `ip` commands in the control namespace, in one process."""
        netns.ip_batch(lines, self.ctl)

    def kernel_defaults(self):
        """Bring TAPs, addresses and neighbors back to the standard. Change only values that differ.

        Standard: up, MTU 1500, an address a family, every wire's peer a static neighbor.
        """
        for name in self.names:
            if not netns.is_up(self.far, name):
                netns.link_set(self.far, name, True)
        links, neighbors = rtnl.links(self.ctl), rtnl.neighbors(self.ctl)
        addresses = rtnl.addresses(self.ctl)
        lines = []
        for wire in self.wires.values():
            link = links[wire.tap]
            if not link.up or link.mtu != 1500:
                lines.append(f"link set {wire.tap} up mtu 1500")
            if link.mac != wire.port_mac:
                lines.append(f"link set {wire.tap} address {wire.port_mac}")
            want = {f"{wire.ip4}/26", f"{wire.ip6}/64"}
            have = {a.text for a in addresses if a.index == link.index and a.is_global}
            lines += [f"addr del {a} dev {wire.tap}" for a in sorted(have - want)]
            lines += [f"addr add {a} dev {wire.tap} nodad" for a in sorted(want - have)]
            there = [row for row in neighbors if row.index == link.index]
            lines += self._neighbor_lines(wire, there, bool(want - have))
        if lines:
            self.ip(*lines)

    def _neighbor_lines(self, wire, rows, all_anew):
        lines, right = [], set()
        for row in rows:
            if row.state in (0, rtnl.NUD_NOARP):
                continue
            address = row.address
            permanent = row.state == rtnl.NUD_PERMANENT and row.mac == wire.mac
            if address in (wire.peer4, wire.peer6) and permanent and not all_anew:
                right.add(address)
            elif not all_anew:
                if row.state != rtnl.NUD_PERMANENT:
                    # Let the packets of the last test that wait for this neighbor leave. Otherwise the
                    # kernel asks for it again when the entry is deleted. A permanent entry is also not
                    # evicted before the deletion.
                    at = f"{address} lladdr {wire.mac} dev {wire.tap}"
                    lines.append(f"neigh replace {at} nud permanent")
                lines.append(f"neigh del {address} dev {wire.tap}")
        for address in {wire.peer4, wire.peer6} - right:
            lines.append(
                f"neigh replace {address} lladdr {wire.mac} dev {wire.tap} nud permanent"
            )
        return lines

    def _ip_json(self, *words):
        return json.loads(netns.command(["ip", "-n", self.ctl, "-j", *words]) or "[]")

    def neighbor(self, address, wire, mac=None):
        """Write a static neighbor and wait until the dataplane has it. Returns its MAC address."""
        mac = mac or wire.mac
        self.ip(f"neigh replace {address} lladdr {mac} dev {wire.tap} nud permanent")
        eventually(
            lambda: (self.neighbor_row(address, wire) or {}).get("mac") == mac,
            5,
            0.005,
            f"neighbor {address} at {mac}",
        )
        return mac

    def neighbor_row(self, address, wire):
        """Return the dataplane's row of one neighbor, or None."""
        for row in self.control.ask("neighbors"):
            if row["address"] == address and row["dev"] == wire.tap:
                return row
        return None

    def ifindex(self, wire):
        """Return the interface index of a port's TAP, which FPM messages contain."""
        with netns.entered(self.ctl):
            return socket.if_nametoindex(wire.tap)

    def link_row(self, tap):
        """Return the row of `ip -j link` of a TAP."""
        return self._ip_json("link", "show", tap)[0]

    def static_neighbors(self):
        """Return the permanent neighbors as rows of `ip -j neigh`."""
        return self._ip_json("neigh", "show", "nud", "permanent")

    def links(self):
        """Return all interfaces of the control namespace as rows of `ip -j link`."""
        return self._ip_json("link")

    # -- the daemon's answers --

    def counters(self, kind=None):
        """Return {name: value} of one kind (drop, punt, total), or {(kind, name): value}."""
        rows = self.control.ask("counters")
        if kind:
            return {r["name"]: r["value"] for r in rows if r["kind"] == kind}
        return {(r["kind"], r["name"]): r["value"] for r in rows}

    def moved(self, before, kind):
        """Return the differences from `before` (of counters()): {name: difference} without
        zeros."""
        now = self.counters()
        by = {
            name: v - before.get((k, name), 0) for (k, name), v in now.items() if k == kind
        }
        return {name: value for name, value in by.items() if value}

    def fpm(self):
        """Return all rows of `show fpm` in one dictionary."""
        merged = {}
        for row in self.control.ask("fpm"):
            merged.update(row)
        return merged

    def port_row(self, wire):
        """Return the row of one port."""
        return next(r for r in self.control.ask("ports") if r["name"] == wire.tap)

    def route_row(self, prefix, longest=False):
        """Return the main table's row of a prefix, or None."""
        rows = self.control.ask("routes", prefix=prefix, longest=longest)
        rows = [r for r in rows if r.get("table", 254) == 254]
        return rows[0] if rows else None

    def fpmctl(self, *words, socket_path=None, timeout=30 * PATIENCE):
        """Run fpmctl. Returns the finished process with its output as text."""
        path = socket_path or self.socket
        return subprocess.run(
            [self.daemon.ctl, "-s", path, *words],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def fpmctl_begin(self, *words):
        """Start fpmctl beside the test. Returns the process; its communicate() returns the
        output."""
        return subprocess.Popen(
            [self.daemon.ctl, "-s", self.socket, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, procs.MARK: self.dir},
        )

    def rss(self):
        """Return the resident octets of the daemon, from the kernel. Of the daemon's threads only ui is
        asked, for the process id."""
        with open(f"/proc/{self.daemon.pid()}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def log(self, lines=40):
        """Return the last lines of the daemon's log."""
        return self.daemon.log(lines)


def why_not():
    """Return the reason why system tests cannot run here in one sentence, or None."""
    build = os.environ.get("BUILD", "release")
    program = Dataplane(None, "", "", "", "").program
    if os.geteuid() != 0:
        return "system tests need root (namespaces, TAPs, raw sockets)"
    if not os.path.exists("/dev/net/tun"):
        return "system tests need /dev/net/tun"
    if not os.access(program, os.X_OK):
        return f"{os.path.relpath(program)} is not built: make BUILD={build} all"
    for tool in ("ip", "ethtool"):
        if shutil.which(tool) is None:
            return f"system tests need the command {tool}"
    return None


def sweep_leftovers():
    """Remove the objects of an earlier run that was killed before it could remove them."""
    for name in os.listdir("/run/netns") if os.path.isdir("/run/netns") else []:
        m = re.fullmatch(r"fdp-[a-z]+-((\d+)(?:\D.*)?)", name)
        if m and not procs.is_alive(int(m.group(2))):
            procs.end_all(f"/tmp/fdp-{m.group(1)}")
            netns.delete(name)
            shutil.rmtree(f"/tmp/fdp-{m.group(1)}", ignore_errors=True)
