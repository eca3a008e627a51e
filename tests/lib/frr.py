# SPDX-License-Identifier: BSD-3-Clause
"""One FRR in a network namespace, with all its files in a directory of its own.

Several FRRs run side by side, and beside the FRR of the machine. FRR 8.4 has names of files
that no option changes. So every process of a router lives in a mount namespace where that one
directory is /etc/frr, /var/run/frr and /var/tmp/frr. The directories of the machine are
neither read nor written. The configuration comes from a folder laid out like /etc/frr:
`daemons`, `frr.conf`, `vtysh.conf`.
"""

import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import socket

from lib import machine, netns, procs
from lib.wait import PATIENCE, Timeout, eventually

PROGRAMS = "/usr/lib/frr"
# sh runs this with the directory and a command, in the mount namespace of `ip netns exec`. Each router
# has a host name of its own, because BGP and IS-IS send it to other routers.
PRIVATE = """\
hostname "$(basename "$0")" || exit 1
for there in /etc/frr /var/run/frr /var/tmp/frr; do
	[ -d $there ] || install -d -o frr -g frr $there
	mount --bind "$0" $there || exit 1
done
exec "$@"
"""
# The options of zebra in a test with routes by FPM.
BY_FPM = 'zebra_options="-A 127.0.0.1 -s 90000000 -M dplane_fpm_nl"\n'
# From FRR 10 on mgmtd has the configuration of staticd, and of zebra except `ip forwarding`.
HAS_MGMTD = os.access(f"{PROGRAMS}/mgmtd", os.X_OK)
# zebra first; the others in any order.
ALWAYS_ON = ["zebra", *(["mgmtd"] if HAS_MGMTD else []), "staticd"]


@contextlib.contextmanager
def beside(dut, conf, daemons=()):
    """Run zebra, staticd and these daemons with this frr.conf beside a device under test, until the
    with block ends."""
    source = f"{dut.dir}/frr.d"
    os.makedirs(source, exist_ok=True)
    on = "".join(f"{name}=yes\n" for name in daemons)
    texts = {"daemons": on + BY_FPM, "vtysh.conf": "hostname r1\n", "frr.conf": conf}
    for name, text in texts.items():
        with open(f"{source}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    frr = Frr(dut.ctl, source, f"{dut.dir}/frr", dut.dir)
    try:
        frr.start()
        yield frr
    finally:
        frr.stop(*frr.daemons)


class Frr:
    """The routing daemons of one router."""

    def __init__(self, namespace, source, run_dir, mark):
        self.namespace, self.source, self.dir, self.mark = namespace, source, run_dir, mark
        self.options = self._options()

    def _options(self):
        """Return {KEY: value} of Debian's file `daemons`, and of one in the run directory, which has
        the values that a bed has changed."""
        found = _read_daemons(os.path.join(self.source, "daemons"))
        changed = os.path.join(self.dir, "daemons")
        return {**found, **(_read_daemons(changed) if os.path.exists(changed) else {})}

    @property
    def daemons(self):
        """Return the names of the daemons that run here, zebra first."""
        on = [d for d, v in self.options.items() if v == "yes" and "_" not in d]
        return ALWAYS_ON + [d for d in on if d not in ALWAYS_ON]

    def prepare(self):
        """Make the run directory with a copy of the configuration, owned by user frr."""
        os.makedirs(self.dir, exist_ok=True)
        for name in ("frr.conf", "vtysh.conf"):
            shutil.copy(os.path.join(self.source, name), self.dir)
        self._give_to_frr()

    def _give_to_frr(self):
        for name in (self.dir, *glob.glob(self.dir + "/*")):
            shutil.chown(name, "frr", "frr")

    def start(self):
        """Start all daemons and give them the configuration of the source folder."""
        self.prepare()
        self._start_all()

    def restart_all(self):
        """End the daemons that run. Start all daemons with the present configuration."""
        self.stop(*reversed(self.daemons))
        self._start_all()

    def _start_all(self):
        for daemon in self.daemons:
            self.start_daemon(daemon)
        eventually(lambda: all(map(self._listens, self.daemons)), 30, what="FRR starts")
        self.vtysh_boot()

    def start_daemon(self, daemon):
        """Start one daemon. If it is zebra, wait for it, because the others connect to it."""
        path = lambda suffix: os.path.join(self.dir, daemon + suffix)  # noqa: E731
        argv = [os.path.join(PROGRAMS, daemon)]
        argv += shlex.split(self.options.get(daemon + "_options", ""))
        argv += ["--log", "file:" + path(".log"), "--log-level", "informational"]
        for stale in (path(".vty"), path(".pid")):
            if os.path.exists(stale):
                os.unlink(stale)
        self._spawn(argv, path(".out"))
        if daemon == "zebra":
            eventually(lambda: self._listens("zebra"), 30, what="zebra starts")

    def watch(self, command):
        """Run watchfrr, as Debian's service does: it restarts a daemon that ends.

        `command`, with start, stop or restart in the place of %VERB and a daemon's name
        appended, does that. When zebra ends, watchfrr restarts them all: bgpd 8.4 does
        not tell a new zebra its routes.
        """
        argv = [os.path.join(PROGRAMS, "watchfrr"), "-i", "2"]
        argv += ["--min-restart-interval", "2", "--max-restart-interval", "20"]
        # By default watchfrr kills a command after 20 s, and daemons with a million routes need
        # 10 s to end. The daemons of the next start would run, but without a configuration.
        argv += ["--restart-timeout", str(int(100 * PATIENCE))]
        for flag, verb in (("-s", "start"), ("-k", "stop"), ("-r", "restart")):
            argv += [flag, command.replace("%VERB", verb) + " %s"]
        log = os.path.join(self.dir, "watchfrr.out")
        self._spawn([*argv, *self.daemons], log)

    def stop(self, *daemons, patience=10):
        """End the daemons that run. zebra 8.4 hangs in half of all cases when asked to end."""
        pids = [self.kill(d, signal.SIGTERM) for d in daemons if self.runs(d)]
        try:
            eventually(lambda: not any(map(procs.is_alive, pids)), patience)
        except Timeout:
            for pid in filter(procs.is_alive, pids):
                procs.signal_pid(pid, signal.SIGKILL)
            eventually(lambda: not any(map(procs.is_alive, pids)), 5, what="FRR ends")

    def runs(self, daemon):
        """Return True if the process of the daemon's pid file runs and belongs to this lab."""
        try:
            return procs.carries(self.pid(daemon), self.mark)
        except OSError:
            return False

    def restart(self, daemon):
        """Start a daemon with its configuration. If it runs, end it first."""
        self.stop(daemon)
        self.start_daemon(daemon)
        eventually(lambda: self._listens(daemon), 10, what=f"{daemon} starts")
        self.vtysh_boot(daemon)

    def kill(self, daemon, number=signal.SIGKILL):
        """Send a signal to one daemon. Returns its process id."""
        pid = self.pid(daemon)
        procs.signal_pid(pid, number)
        return pid

    def pid(self, daemon):
        """Return the process id of a running daemon, from its pid file."""
        with open(os.path.join(self.dir, daemon + ".pid"), encoding="ascii") as file:
            return int(file.read())

    def vtysh_argv(self):
        """Return the command that opens this router's shell."""
        return ["vtysh", "--vty_socket", self.dir, "--config_dir", self.dir]

    def vtysh_boot(self, daemon=None):
        """Send frr.conf to all daemons, or to one."""
        only = ["-d", daemon] if daemon else []
        netns.command([*self.vtysh_argv(), "-b", *only])

    def vtysh(self, *lines):
        """Run commands in vtysh, return the output. A `show` command of one daemon goes to its socket
        instead, as vtysh itself sends it, because each start of vtysh takes 50 ms of CPU."""
        daemons = [_answers(line) for line in lines]
        if set(daemons) <= set(self.daemons):
            return "".join(map(self._ask, daemons, lines))
        args = [word for line in lines for word in ("-c", line)]
        return netns.command([*self.vtysh_argv(), *args])

    def _ask(self, daemon, line):
        """Return the answer of a daemon to a command, as vtysh prints it. An answer ends with three
        zero octets and a status. vtysh waits as long as the daemon needs, and so does this."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60 * PATIENCE)
            try:
                sock.connect(os.path.join(self.dir, daemon + ".vty"))
                for text in ("enable", line):
                    sock.sendall(text.encode() + b"\0")
                    answer = b""
                    while answer[-4:-1] != b"\0\0\0":
                        more = sock.recv(1 << 16)
                        if not more:
                            raise netns.CommandError(f"{daemon} ended the connection at: {line}")
                        answer += more
            except OSError as error:
                raise netns.CommandError(f"{daemon}: {error} at: {line}") from None
        if answer[-1] > CMD_WARNING:
            raise netns.CommandError(f"{daemon}: {answer[:-4].decode()} at: {line}")
        return answer[:-4].decode()

    def configure(self, *lines):
        """Run commands in vtysh's configuration mode."""
        return self.vtysh("configure terminal", *lines)

    def json(self, line):
        """Run one `show ... json` and return its value ({} for no output)."""
        return json.loads(self.vtysh(line).strip() or "{}")

    def zebra_queued(self):
        """Return the number of entries in zebra's work queues."""
        text = self._ask("zebra", "show work-queues")
        return sum(int(n) for n in re.findall(r"^[P ] +(\d+) +\d+ ", text, re.M))

    def log(self, daemon, lines=15):
        """Return the last lines of a daemon's log."""
        text = ""
        for suffix in (".out", ".log"):
            try:
                with open(
                    os.path.join(self.dir, daemon + suffix), errors="replace"
                ) as file:
                    text += file.read()
            except OSError:
                pass
        return "\n".join(text.splitlines()[-lines:])

    # -- the router's state ---------------------------------------------------------------

    def bgp_state(self, peer, vrf=None):
        """Return the state of the BGP session with `peer`: "Established", "Active", ..."""
        words = f"vrf {vrf} " if vrf else ""
        return self.json(f"show bgp {words}neighbors {peer} json")[peer]["bgpState"]

    def ospf_states(self, family=4):
        """Return the state of every OSPF adjacency (OSPFv3 with family 6) by interface."""
        if family == 4:
            rows = self.json("show ip ospf neighbor json")["neighbors"].values()
            rows = [row for some in rows for row in some]
            name = lambda r: r["ifaceName"].split(":")[0]  # noqa: E731
            return {name(r): r["nbrState"].split("/")[0] for r in rows}
        rows = self.json("show ipv6 ospf6 neighbor json")["neighbors"]
        return {r["interfaceName"]: r["state"] for r in rows}

    def route_counts(self, family=4):
        """Return the number of routes that zebra has selected, by protocol and as "total"."""
        words = "ip" if family == 4 else "ipv6"
        summary = self.json(f"show {words} route summary json")
        counts = {row["type"]: row["fib"] for row in summary["routes"]}
        return {**counts, "total": summary["routesTotalFib"]}

    def _spawn(self, argv, log):
        argv = ["unshare", "--uts", "sh", "-c", PRIVATE, self.dir, *argv]
        machine.prefer([procs.start(argv, self.mark, log, self.namespace).pid])

    def _listens(self, daemon):
        return os.path.exists(os.path.join(self.dir, daemon + ".vty"))


class Neighbor(Frr):
    """An FRR on a router whose kernel forwards. It runs `daemons`; its frr.conf is NODE.conf."""

    def __init__(self, node, namespace, source, daemons, run_dir, mark):
        self.node, self.only = node, daemons
        super().__init__(namespace, source, run_dir, mark)

    def _options(self):
        on = dict.fromkeys(self.only, "yes")
        return {**on, **{d + "_options": "-A 127.0.0.1" for d in [*ALWAYS_ON, *on]}}

    def prepare(self):
        """Make the run directory with the configuration, owned by user frr."""
        os.makedirs(self.dir, exist_ok=True)
        shutil.copy(
            os.path.join(self.source, self.node + ".conf"),
            os.path.join(self.dir, "frr.conf"),
        )
        with open(os.path.join(self.dir, "vtysh.conf"), "w", encoding="ascii") as file:
            file.write(f"service integrated-vtysh-config\nhostname {self.node}\n")
        self._give_to_frr()


class Box(Neighbor):
    """An FRR above a dataplane of its own: zebra sends it the routes. Its daemons have the options of
    the file `daemons`, as those of r1."""

    def _options(self):
        found = _read_daemons(os.path.join(self.source, "daemons"))
        return {**super()._options(), **{key: x for key, x in found.items() if key.endswith("_options")}}


# The status of a command that finds nothing, for which vtysh does not fail either.
CMD_WARNING = 1
# The first words of `show` commands and the daemon that answers them.
ANSWERS = {
    "bgp": "bgpd", "ip bgp": "bgpd", "ip ospf": "ospfd", "ipv6 ospf6": "ospf6d", "isis": "isisd", "bfd": "bfdd",
    "ip route": "zebra", "ipv6 route": "zebra", "nexthop-group": "zebra", "interface": "zebra",
    "mpls table": "zebra", "vrf": "zebra", "evpn": "zebra", "mpls ldp": "ldpd",
}  # fmt: skip


def _answers(line):
    """Return the daemon that answers a command, or None if this is not known."""
    found = re.match(r"show (?:ip bgp|ip ospf|ipv6 ospf6|ip route|ipv6 route|mpls \w+|[\w-]+)", line)
    return ANSWERS.get(found[0].removeprefix("show ")) if found else None


def _read_daemons(path):
    """Return the KEY=value lines of a `daemons` file in Debian's form."""
    values = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            for word in shlex.split(line, comments=True):
                key, sep, value = word.partition("=")
                if sep:
                    values[key] = value
    return values
