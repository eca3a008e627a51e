# SPDX-License-Identifier: BSD-3-Clause
"""The demo's lab with a second path for all packets: a prefix that isp does not announce goes to
core by a static route over core0, or over core1 if core0 is down."""

import json
import os
import signal
import subprocess
import time

from chaos import fast
from chaos.labelled import DATAPLANE_PORT, Labelled
from chaos.oracle import Cell, Oracle, zebra_view
from chaos.segments import Segments, behind
from chaos.traffic import Traffic, frame_head
from lab import proofs, routes, topology
from lab.lab import Lab
from lib import netns, procs
from lib.audited import not_as_zebra_shows
from lib.frr import Frr
from lib.wait import eventually

CHURN4 = [f"198.18.{n}.0/24" for n in range(256)]  # in the prefix of RFC 2544
CHURN6 = [f"2001:db8:{0x4000 + n:x}::/48" for n in range(256)]
CORE4, CORE6 = "198.51.100.2", "2001:db8:10::2"
SPARE4, SPARE6 = "198.51.100.6", "2001:db8:11::2"
# Links flap about once a second here: by default OSPF waits up to 5 s between two SPF runs.
# The ospf6d of FRR 10 announces core's addresses as host routes over both links. An End.X looks its
# neighbor up, so half of its packets would leave by the link that the neighbor is not on.
STATICS = f"""
ipv6 prefix-list NEIGHBORS seq 10 deny {CORE6}/128
ipv6 prefix-list NEIGHBORS seq 20 deny {SPARE6}/128
ipv6 prefix-list NEIGHBORS seq 30 permit any
route-map NEIGHBORS permit 10
 match ipv6 address prefix-list NEIGHBORS
exit
ipv6 protocol ospf6 route-map NEIGHBORS
ip route 0.0.0.0/0 {CORE4} core0 200
ip route 0.0.0.0/0 {SPARE4} core1 210
ipv6 route ::/0 {CORE6} core0 200
ipv6 route ::/0 {SPARE6} core1 210
router bgp {topology.R1_AS}
 neighbor {topology.ISP4} timers 3 9
 neighbor {topology.ISP4} timers connect 2
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 bgp graceful-restart rib-stale-time 60
exit
router ospf
 timers throttle spf 0 50 400
exit
router ospf6
 timers throttle spf 0 50 400
exit
"""
SWEEP = """\
  sweep-quiet-s: 2
  sweep-max-s: {}
  sweep-restart-s: {}
"""
# At least so many routes a second pass from isp to the FIB on busy cores: bgpd and zebra 8.4
# need some 70 us of CPU time for each, the dataplane needs 4.
ROUTES_PER_S = 3000
FEW = 24000  # the number of routes for which the timeouts were chosen
LINKS = {"wan0": "wan", "core0": "core0", "core1": "core1"}
SINKS = {"wan": ("isp", "eth0"), "core0": ("core", "eth0"), "core1": ("core", "eth1")}
SINKS["lan"] = ("lan", "eth0")
IN_USE = 8  # churned prefixes of each family that carry traffic


class _TwoWays(Frr):
    """The demo's r1 with the static routes and the fast sessions."""

    def prepare(self):
        super().prepare()
        with open(os.path.join(self.dir, "frr.conf"), "a", encoding="ascii") as file:
            file.write(STATICS + fast.R1)
        # watchfrr starts the daemons by another process, which reads the options from this file.
        with open(os.path.join(self.dir, "daemons"), "w", encoding="ascii") as file:
            file.write(f'bfdd_options="{self.options["bfdd_options"]}"\n')


class Bed(Lab):
    """The lab and the traffic through it."""

    def __init__(self, name, n4, n6, rng):
        super().__init__(name, "demo")
        self.n4, self.n6, self.rng = n4, n6, rng
        self.oracle = self.traffic = None
        self.labelled, self.ifindexes = Labelled(self, rng), {}
        self.segments = Segments(self, rng)
        self.quiet_udp = []
        self.r1 = _TwoWays(self.ns["r1"], self.folder, self.path("r1"), self.dir)
        self.r1.options["bfdd_options"] += f" --dplaneaddr ipv4:{fast.DPLANE}"
        core = self.neighbors["core"]
        self.neighbors["core"] = fast.Core(
            core.node, core.namespace, core.source, core.only, core.dir, core.mark
        )
        self.fast = fast.FastSessions(self)

    def write_dataplane_config(self):
        super().write_dataplane_config()
        with open(self.dp.config, encoding="utf-8") as file:
            sweep = SWEEP.format(int(self.patience(60)), int(self.patience(25)))
            text = file.read().replace("fpm:\n", "fpm:\n" + sweep)
        assert "listen: 127.0.0.1:2620\n" in text
        text = text.replace("listen: 127.0.0.1:2620\n", f"listen: 127.0.0.1:{DATAPLANE_PORT}\n")
        text += f'mpls:\n  input: all\nbfd: {{dplane: "{fast.DPLANE}"}}\n'
        with open(self.dp.config, "w", encoding="utf-8") as file:
            file.write(text)

    def start_dataplane(self):
        self.segments.connect(self.labelled.start_relay())
        super().start_dataplane()

    def patience(self, seconds):
        """Return the timeout for an operation that takes `seconds` at most with a small table."""
        return seconds + max(self.n4 + self.n6 - FEW, 0) / ROUTES_PER_S

    def build(self, rate):
        """Start the lab and wait until the routes are learned. Traffic has not started yet."""
        self.up(self.n4, self.n6)
        self.watch_r1()
        # core must forward no packet, because its default route would send the packet back.
        for dev in ("eth0", "eth1"):
            rule = f"rule add pref 500 iif {dev} blackhole"
            netns.ip_batch([rule, "-6 " + rule], self.ns["core"])
        for role in ("isp", "core"):
            netns.sysctl(self.ns[role], {"net.ipv6.conf.eth0.keep_addr_on_down": 1})
            netns.sysctl(self.ns[role], {"net.ipv6.conf.all.keep_addr_on_down": 1})
        self.quiet_udp = [self._swallow(role) for role in ("isp", "core", "lan")]
        eventually(lambda: self.r1.bgp_state(topology.ISP4) == "Established", 60)
        self.fast.start_peer()
        self.fast.be_timely()
        eventually(self.fast.up, self.patience(60), 0.2, "sessions of 3 x 50 ms are up")
        self.learn()
        self.announce(CHURN4 + CHURN6)
        self.oracle = Oracle(self._cells())
        self._addresses(rate)
        self.labelled.announce_all()
        self.segments.make_vxlan()
        self.segments.announce_all()
        settled = "zebra has chosen as expected"
        eventually(lambda: not self.amiss(), self.patience(60), 0.2, settled)
        eventually(self.in_step, self.patience(60), 0.2, "the dataplane is in step")

    def _swallow(self, role):
        """Open a socket that is not read, so that the kernel answers no packet of the test."""
        sock = netns.open_socket(self.ns[role], 10, 2)
        sock.bind(("::", 7))
        return sock

    def learn(self):
        """Wait until zebra has all routes of isp, as long as their number grows."""
        known = self._learnt()
        while min(have - want for have, want in zip(known, (self.n4, self.n6))) < 0:
            more = "zebra has more of what isp says"
            known = eventually(lambda k=known: (n := self._learnt()) != k and n, 60, 0.5, more)

    def _learnt(self):
        seen = proofs.tables(self)
        return seen[4]["bgp"], seen[6]["bgp"]

    def _cells(self):
        some = self.isp("lonely", count=4, seed=self.rng.randrange(1 << 16))
        cells = [
            Cell("isp", row["prefix"], row["host"])
            for row in some["ipv4"] + some["ipv6"]
        ]
        for table, family in ((CHURN4, 4), (CHURN6, 6)):
            for text in self.rng.sample(table, IN_USE):
                host = routes.host(routes.parse(text)[0], family, self.rng)
                cells.append(Cell("isp", text, host))
        for text in topology.CORE_NETS4 + topology.CORE_NETS6:
            base = text.split("/")[0]
            for n in range(3, 6):
                host = base + str(n) if ":" in base else _plus(base, n)
                cells.append(Cell("core", text, host))
        cells.append(Cell("lan", "", topology.LAN4, "isp"))
        cells.append(Cell("lan", "", topology.LAN6, "isp"))
        inside = [c for c in cells if c.kind == "core"][::3] + cells[:8:2]
        return cells + self.labelled.make_cells(inside) + self.segments.make_cells(inside[::2])

    def _addresses(self, rate):
        macs = {egress: self.mac_of(*SINKS[egress]) for egress in SINKS}
        self.oracle.macs = {e: {bytes.fromhex(m.replace(":", ""))} for e, m in macs.items()}
        ports = {r["ifname"]: r["address"] for r in self.links("r1")}
        self.ifindexes = {r["ifname"]: r["ifindex"] for r in self.links("r1")}
        for cell in self.oracle.cells:
            if cell.source == "lan":
                ends = macs["lan"], ports["lan0"]
                source = topology.LAN4 if cell.family == 4 else topology.LAN6
            else:
                ends = macs["wan"], ports["wan0"]
                source = topology.ISP4 if cell.family == 4 else topology.ISP6
            text = isinstance(cell.entry, str)
            label = None if text else cell.entry
            cell.head = frame_head(*ends, source, cell.host, cell.index, label)
            if text:
                cell.head = behind(cell.entry, cell.head, cell.index)
        sources = {"lan": (self.ns["lan"], "eth0"), "isp": (self.ns["isp"], "eth0")}
        sinks = {e: (self.ns[role], dev) for e, (role, dev) in SINKS.items()}
        self.traffic = Traffic(self.oracle, sources, sinks, rate)

    def links(self, role):
        """Return the interfaces of a namespace, as `ip -j link` prints them."""
        return json.loads(netns.command(["ip", "-n", self.ns[role], "-j", "link"]))

    def mac_of(self, role, dev):
        """Return the MAC address of an interface."""
        return next(r["address"] for r in self.links(role) if r["ifname"] == dev)

    def restart_frr(self, killed):
        """Restart FRR as `systemctl restart frr` does: the unit fpm-dataplane-hold ends first, then
        the daemons of FRR, zebra last. With `killed`, kill all daemons instead."""
        for pid in procs.marked(self.dir, "watchfrr"):
            procs.signal_pid(pid, signal.SIGKILL)
        *others, zebra = reversed(self.r1.daemons)
        if killed:
            for daemon in (*others, zebra):
                self.r1.kill(daemon)
        else:
            netns.command([self.dp.ctl, "-s", self.socket, "hold"])
            self.r1.stop(*others)
            time.sleep(0.2)  # frrinit.sh checks every 0.1 s whether a daemon has ended
        self.r1.restart_all()
        self.watch_r1()

    # -- commands --

    def announce(self, prefixes):
        """Make isp announce the prefixes."""
        self.isp("announce", prefixes=list(prefixes))

    def withdraw(self, prefixes):
        """Make isp withdraw the prefixes."""
        self.isp("withdraw", prefixes=list(prefixes))

    def link(self, egress, word):
        """Take the neighbor's end of a link up or down."""
        role, dev = SINKS[egress]
        lines = [f"link set {dev} {word}"]
        if (role, word) == ("isp", "up"):  # the kernel of isp has lost the routes
            some = [x for x in self.plan.commands("isp") if "route add table" in x]
            lines.append(f"-6 addr replace {topology.ISP6}/64 dev eth0 nodad")
            # The gateway first: all other addresses are local to isp.
            lines += sorted(some, key=lambda x: " via " in x)
        netns.ip_batch(lines, self.ns[role])

    # -- observed state --

    def view(self):
        """Return zebra's choices for the cells."""
        return zebra_view(self.r1, self.oracle.cells, LINKS)

    def amiss(self):
        """Return the cells for which zebra's choice is not the expected choice."""
        view = self.view()
        return [
            cell
            for cell in self.oracle.cells
            if cell.kind in ("isp", "core")
            and (view.get(cell.prefix) or view.get("0.0.0.0/0" if cell.family == 4 else "::/0"))
            != self.oracle.expected(cell)
        ]

    def in_step(self):
        """Return True if the dataplane has processed all messages of zebra."""
        seen = self.dp.fpm()
        return seen["state"] == "in-step" and seen["queue_bytes"] == 0 and seen["stale"] == 0

    def audit_argv(self):
        """Return the command of an audit."""
        shell = " ".join(self.r1.vtysh_argv())
        return [self.dp.ctl, "-s", self.socket, "audit", "--vtysh", shell]

    def audit(self):
        """Run `fpmctl audit`, which compares zebra, RIB and FIB. Return (exit code, last line)."""
        argv, timeout = self.audit_argv(), self.patience(180)
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout, check=False
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    def zebra_contradicts_itself(self, said):
        """Take the routes for which zebra and the dataplane have different next hops. Return True if the
        kernel has the next hops of the dataplane for all of them: zebra sent the same to both.

        zebra 8.4 has this fault: while it installs a member again whose link came back, it may
        install the group without this member. It then shows the member, but never sends it. If it
        sent the member to the dataplane only, only_copies_differ() is true. One loss of a link can
        have both effects, on different routes.
        """
        found = not_as_zebra_shows(said)
        return bool(found) and all(
            self._kernel_paths(p) == self._dataplane_paths(p) != set() for p in found
        )

    def _kernel_paths(self, prefix):
        family = "-6" if ":" in prefix else "-4"
        show = ["ip", "-n", self.ns["r1"], "-j"]
        routes_there = json.loads(netns.command([*show, family, "route", "show", prefix]))
        every = {row["id"]: row for row in json.loads(netns.command([*show, "nexthop"]))}
        paths = set()
        for row in routes_there:
            hops = every.get(row.get("nhid"), {}).get("group", [{"id": row.get("nhid")}])
            for hop in (every.get(hop["id"], {}) for hop in hops):
                paths.add((hop.get("gateway"), hop.get("dev")))
        return paths

    def _dataplane_paths(self, prefix):
        rows = self.dp.show("routes", prefix)
        return {(hop["via"], hop["dev"]) for row in rows for hop in row["nexthops"]}

    def replay(self):
        """Make zebra send all routes again. Wait until it has."""
        before = self.dp.fpm()["generation"]
        netns.command([self.dp.ctl, "-s", self.socket, "replay"])
        said = lambda: self.dp.fpm()["generation"] > before and self.in_step()  # noqa: E731
        eventually(said, self.patience(60), 0.2, "zebra has said all again")

    def daemon_pids(self):
        """Return the ids of the dataplane's process (not of its supervisor)."""
        return [p for p in procs.marked(self.dir, "fpm-dataplane") if procs.is_alive(p)]

    def down(self):
        for sock in self.quiet_udp:
            sock.close()
        self.quiet_udp = []
        self.fast.lan.destroy()
        super().down()


def _plus(address, n):
    head, _, last = address.rpartition(".")
    return f"{head}.{int(last) + n}"
