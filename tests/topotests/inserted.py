# SPDX-License-Identifier: BSD-3-Clause
"""The dataplane between one router of a topotest and its wires.

A router of a topotest is a network namespace whose interfaces are ends of veths. insert() moves
these ends into a second namespace, where the daemon has them as ports. The daemon's TAPs appear
in the router under the names that the veths had. The router's FRR sees no difference. The
product's containers are built in the same way (docker/router.sh).
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess

import events
from ours import OFF, PATIENCE, Dataplane, Timeout
from ours import eventually, netns, only_copies_differ, procs

MTU_MOST = 1500  # of DPDK 22.11's net_af_packet
# size-mib depends on the number of ports, because each port has descriptors and buffers.
CONFIG = """\
ports:
{ports}
control-netns: {ctl}
control-socket: {socket}
fpm:
  listen: 127.0.0.1:2620
metrics: off
cores: [{core}]
memory:
  size-mib: {mib}
{more}"""
BFD_PORT = 50700
# In a virtual machine that was paused, the kernel may count the pause as CPU time of the thread that ran
# when it began. Then this thread waits until all others had as much time.
WATCHDOG_S = 30
END_S = 20


class Inserted:
    """The dataplane of one router. `number` counts the routers of the topology."""

    def __init__(self, name, pid, interfaces, number):
        self.name, self.pid, self.interfaces = name, pid, list(interfaces)
        # lib/dut.py removes the objects with such names if this process is killed.
        tag = f"{os.getpid()}-{name}"
        self.ctl, self.wire, self.dir = f"fdp-ctl-{tag}", f"fdp-dp-{tag}", f"/tmp/fdp-{tag}"
        cpus = sorted(os.sched_getaffinity(0))
        self.core = cpus[number % len(cpus)]
        self.socket = f"{self.dir}/control.sock"
        self.daemon = Dataplane(
            self.wire,
            f"{self.dir}/config.yaml",
            self.socket,
            os.path.join(events.OUT, f"{name}.dataplane.log"),
            self.dir,
            supervised=True,
        )
        self.daemon.preferred = False  # because the kernel's run has no such advantage
        self.daemon.supervisor_words = ["--watchdog", f"{WATCHDOG_S * max(PATIENCE, 1):.0f}"]
        self.addresses = {}

    # -- begin and end --

    def insert(self):
        """Move the router's interfaces away, start the daemon, and give its TAPs the addresses
        that the interfaces had."""
        os.makedirs(self.dir)
        netns.command(["ip", "netns", "add", self.wire])
        netns.command(["ip", "netns", "attach", self.ctl, str(self.pid)])
        quiet = {"net.ipv6.conf.default.disable_ipv6": 1, "net.ipv4.ip_forward": 0}
        netns.sysctl(self.wire, quiet)
        netns.ip_batch(["link set lo up"], self.wire)
        ports = [self._take(n, ifname) for n, ifname in enumerate(self.interfaces)]
        with open(self.daemon.config, "w", encoding="ascii") as file:
            file.write(
                CONFIG.format(
                    ports="\n".join(ports),
                    ctl=self.ctl,
                    socket=self.socket,
                    core=self.core,
                    mib=64 + 8 * len(ports),
                    more=f'bfd: {{dplane: "127.0.0.1:{BFD_PORT}"}}\n' if events.BFD else "",
                )
            )
        self.daemon.start(timeout=60)
        # zebra reaches the daemon by lo. FRR's library (munet) sets it up too, but on a busy machine
        # before the router has its own namespace.
        up = [f"link set {name} up" for name in ("lo", *self.interfaces)]
        netns.ip_batch(up, self.ctl)
        for name, addresses in self.addresses.items():
            for address in addresses:
                argv = ["ip", "-n", self.ctl, "addr", "replace", address, "dev", name]
                netns.command(argv, check=False)

    def _take(self, number, name):
        """Move one interface to the wire. Return its lines of the configuration file."""
        show = ["ip", "-n", self.ctl, "-j", "addr", "show", "dev", name]
        row = json.loads(netns.command(show))[0]
        self.addresses[name] = [
            f"{a['local']}/{a['prefixlen']}"
            for a in row["addr_info"]
            if a["scope"] == "global"
        ]
        # In two lines, because the kernel renames no interface that is up.
        netns.ip_batch(
            [f"link set {name} down", f"link set {name} netns {self.wire} name p{number}"],
            self.ctl,
        )
        netns.run(self.wire, ["ethtool", "-K", f"p{number}", *OFF], check=False)
        netns.ip_batch([f"link set p{number} up"], self.wire)
        mtu = min(row["mtu"], MTU_MOST)
        return f'  - {{tap: {name}, device: "net_af_packet,iface=p{number}", mtu: {mtu}}}'

    def end(self):
        """End the daemon and remove everything. Return the exit code of its supervisor."""
        code = None
        if self.daemon.process is not None:
            try:
                code = self.daemon.stop(signal.SIGTERM, END_S * max(PATIENCE, 1))
            except subprocess.TimeoutExpired:
                code = f"it did not end within {END_S * max(PATIENCE, 1):.0f} s"
        procs.end_all(self.dir)
        netns.delete(self.ctl)
        netns.delete(self.wire)
        shutil.rmtree(self.dir, ignore_errors=True)
        return code

    # -- during the tests --

    def kill(self):
        """Kill the daemon with SIGKILL and wait until the supervisor's next daemon answers. Return
        the process id that the daemon had."""
        was = self.daemon.crash()
        self.daemon.back(was, timeout=60)
        return was

    def alive(self):
        """Return True if the supervisor runs."""
        return self.daemon.process is not None and self.daemon.process.poll() is None

    def pid_of_daemon(self):
        """Return the process id of the daemon, or None if it does not answer."""
        with contextlib.suppress(netns.CommandError, ValueError):
            return self.daemon.pid()
        return None

    def _zebra_runs(self):
        """Return True if the router's zebra runs. A test may have ended it."""
        argv = ["nsenter", "-t", str(self.pid), "-m", "cat", "/var/run/frr/zebra.pid"]
        pid = netns.command(argv, check=False).strip()
        return pid.isdigit() and procs.comm(int(pid)) == "zebra"

    def audit(self):
        """Compare zebra, kernel, RIB and FIB. Return "" if they become equal or differ only in copies
        that zebra or a test changed in the kernel alone. Return the last output if not, and None if
        the router has no zebra now."""
        if not self._zebra_runs():
            return None
        shell = f"nsenter -a -F -t {self.pid} vtysh"
        argv = [self.daemon.ctl, "-s", self.socket, "audit", "--vtysh", shell]
        last = {}

        def equal():
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False
            )
            last["said"] = f"exit code {done.returncode}: {done.stdout}{done.stderr}"
            return done.returncode == 0

        try:
            eventually(equal, 10, 0.3, "the audit is equal")
        except Timeout as error:
            said = last.get("said", str(error))
            return "" if only_copies_differ(said) else said[:2000]
        return ""

    def sessions(self):
        """Return the number of BFD sessions that the router's bfdd has given to the daemon."""
        with contextlib.suppress(netns.CommandError, ValueError):
            return len(self.daemon.show("bfd"))
        return 0

    def drops(self):
        """Return the packets that the daemon dropped since its start, by reason."""
        with contextlib.suppress(netns.CommandError, ValueError):
            counters = self.daemon.counters()
            return {name: n for (kind, name), n in counters.items() if kind == "drop" and n}
        return {}

    def warnings(self):
        """Return the warnings and errors in the daemon's log."""
        with open(self.daemon.log_file, errors="replace", encoding="utf-8") as file:
            return [line.strip()[:300] for line in file if "Z W " in line or "Z E " in line]
