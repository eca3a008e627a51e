# SPDX-License-Identifier: BSD-3-Clause
"""The faults. Each fault makes one change to the bed. Before the change, the fault tells the oracle the new
state of the network, and declares for how long packets may be lost. Most faults may lose no packet."""

import collections
import concurrent.futures
import contextlib
import functools
import os
import random
import signal
import time

from chaos.bed import CHURN4, CHURN6
from chaos.oracle import VX
from chaos.report import stamp
from chaos.segments import another_mac
from lab import routes, sessions, topology
from lib import machine, netns, procs
from lib.freeze import frozen
from lib.wait import eventually

# A lost session counts as the fault of the machine if a thread was ready, but did not run, for so many
# seconds of one second.
STARVED_S = 0.4
_ZEBRAS = ("isp", "core")  # the kinds of cells whose next hops zebra chooses
_ALL = (*_ZEBRAS, "pushed")  # the kinds of cells that the default route may serve
FAULTS = {}


class Happening:
    """One occurrence of a fault."""

    def __init__(self, name, detail=""):
        self.name, self.detail = name, detail
        self.begin, self.may_lose_until = time.monotonic(), 0.0
        # Send times of the packets that were lost within a window; number of packets lost outside.
        self.lost, self.bad = [], 0
        self.counted = None  # the most packets that may be lost, if counters give a number
        self.paths, self.sources = None, ()

    def may_lose(self, seconds, paths=None, sources=()):
        """Allow the loss of packets that are sent in the first `seconds` of the fault and that may
        take one of `paths` in that time or come from one of `sources`. Without paths: all packets."""
        self.may_lose_until = self.begin + seconds
        self.paths, self.sources = paths and frozenset(paths), sources

    def excuses(self, oracle, when, cell):
        """Return True if this fault may lose a packet to `cell` that was sent at `when`."""
        if when > self.may_lose_until:
            return False
        return (
            self.paths is None
            or cell.source in self.sources
            or bool(self.paths & _links(oracle.allowed(cell, self.begin, self.may_lose_until)))
        )


def _links(paths):
    return {path.partition(" ")[0] for path in paths}


def fault(weight, longest=4.0, sessions_stay=False, kills=0, ends_fast=False):
    """Register a fault: its weight in the draw, its longest duration, whether FRR's sessions must
    survive it, how often it kills the dataplane, and whether it may end sessions of 3 x 50 ms, as
    each fault that kills the dataplane may."""

    def register(function):
        @functools.wraps(function)
        def run_it(run):
            with run.bed.fast.window() if ends_fast or kills else contextlib.nullcontext():
                function(run)

        run_it.weight, run_it.longest = weight, longest
        run_it.sessions_stay, run_it.kills = sessions_stay, kills
        FAULTS[function.__name__] = run_it
        return run_it

    return register


class Run:
    """The state that faults need: the bed, the random numbers and the records."""

    def __init__(self, bed, rng):
        self.bed, self.rng, self.oracle = bed, rng, bed.oracle
        self.happenings = []
        self.fell, self.fell_at = 0, 0.0  # number of daemons that were killed; time of the last kill
        self.drawn = collections.Counter()  # names of faults
        self.unsure = ""  # the reason why zebra's choices do not count yet
        self.machine = machine.Watch(lambda: procs.marked(bed.dir))
        self.lost_sessions = []  # names of faults that lost a session but must not
        self.taken = []  # like lost_sessions, but the machine gave our threads no time
        self.failures = []  # the failures that faults found
        self.floods = []  # the kinds of floods that have not run yet
        self.rss = []  # samples (process id, seconds that it runs, octets)
        self.open = collections.Counter()  # descriptors of a fresh daemon at rest
        self.begin = 0.0

    def note(self, name, detail=""):
        """Record the start of a fault."""
        what = Happening(name, detail)
        self.happenings.append(what)
        return what

    def must(self, holds, text):
        """Record a failure unless `holds`."""
        if not holds:
            self.failures.append(text)

    def lost(self, names, kinds, since):
        """Record that sessions of `kinds` ended during the faults `names`, which must not end them. The
        machine is the cause if other programs had the CPUs: BFD waits for 2 s, and then a start of the
        dataplane takes longer."""
        text = f"{names}: {', '.join(kinds)}"
        why = self.machine.taken(since, STARVED_S)
        stamp(self, f"sessions lost by {text}{why and f': {why}'}")
        (self.taken if why else self.lost_sessions).append(text)

    def pause(self, least, most):
        """Sleep for a random time."""
        time.sleep(self.rng.uniform(least, most))

    def in_flux(self, done, timeout, kinds):
        """Wait for a condition of FRR. Until then, cells of `kinds` may use both next hops."""

        def look():
            self.oracle.flux(kinds)
            return done()

        eventually(look, timeout, 0.2)
        self.oracle.flux(kinds)


# -- routes ------------------------------------------------------------------------------------


@fault(6, sessions_stay=True)
def churn(run):
    """10,000 changes of routes a second for half a second: announced routes are withdrawn,
    and withdrawn routes are announced."""
    run.note("churn", "10 k changes/s")
    _churn(run, run.rng, 20)


def _churn(run, rng, turns):
    table, begin, changes = CHURN4 + CHURN6, time.monotonic(), 0
    for turn in range(turns):
        some = rng.sample(table, 256)
        changes += len(some)
        gone = [p for p in some if p not in run.oracle.withdrawn]
        back = [p for p in some if p in run.oracle.withdrawn]
        run.oracle.change(withdraw=gone, announce=back)
        run.bed.withdraw(gone)
        run.bed.announce(back)
        late = begin + (turn + 1) / 40 - time.monotonic()
        time.sleep(max(late, 0))
    stamp(run, f"churn: {changes} changes in {time.monotonic() - begin:.2f} s")


@fault(3, sessions_stay=True)
def table(run):
    """10,000 routes of the full table go and come back."""
    run.note("table", "10 k routes go and come")
    known = {cell.prefix for cell in run.oracle.cells}
    every = routes.table4(run.bed.n4)
    some = [routes.text(p, 4) for p in run.rng.sample(every, min(10000, len(every)))]
    some = [p for p in some if p not in known]
    run.bed.withdraw(some)
    run.pause(0.2, 2)
    run.bed.announce(some)


@fault(4, sessions_stay=True)
def labels_churn(run):
    """10,000 changes of labels and of routes that push labels in a second, for half a second."""
    run.note("labels churn", "10 k changes/s")
    _labels_churn(run, run.rng, 20)


def _bursts(run, what, burst, rng, turns):
    """Change 256 routes at once, 40 times a second."""
    begin = time.monotonic()
    for turn in range(turns):
        burst(256, rng)
        time.sleep(max(begin + (turn + 1) / 40 - time.monotonic(), 0))
    stamp(run, f"{what} churn: {turns * 256} changes in {time.monotonic() - begin:.2f} s")


def _labels_churn(run, rng, turns):
    _bursts(run, "labels", run.bed.labelled.burst, rng, turns)


@fault(4, sessions_stay=True)
def segments_churn(run):
    """10,000 changes of headends, of SIDs and of routes into a VXLAN in a second, for half a second."""
    run.note("segments churn", "10 k changes/s")
    _segments_churn(run, run.rng, 20)


def _segments_churn(run, rng, turns):
    _bursts(run, "segments", run.bed.segments.burst, rng, turns)


# -- links and neighbors -------------------------------------------------------------------------


@fault(3, 8)
def wan_flap(run):
    """The link to isp is lost and comes back; BGP with it."""
    what = run.note("link wan", "carrier lost, back")
    # FRR withdraws the routes one by one: until then they lead to a link that is down.
    what.may_lose(3 + (run.bed.n4 + run.bed.n6) / 20000, ("wan",), ("isp",))
    run.oracle.change(up={"wan": False}, session=False)
    run.bed.link("wan", "down")
    run.pause(0.3, 4)
    # As in core_flap(): routes move back, and the neighbor has to be resolved again.
    run.note("link wan back", "carrier back").may_lose(3, ("wan",), ("isp",))
    run.oracle.change(up={"wan": True}, session=True)
    run.bed.link("wan", "up")


@fault(4, ends_fast=True)
def core_flap(run):
    """Take a link to core down and up again: two changes, each with its window."""
    which = run.rng.choice(("core0", "core1"))
    run.note(f"link {which}", "carrier lost").may_lose(3, (which,))
    run.oracle.change(up={which: False})
    run.bed.link(which, "down")
    run.pause(0.1, 3)
    # FRR moves routes back to this link. The neighbor on it has to be resolved again.
    run.note(f"link {which} back", "carrier back").may_lose(3, (which,))
    run.oracle.change(up={which: True})
    run.bed.link(which, "up")


@fault(2, 8)
def isp_dies(run):
    """Kill the BGP speaker and start another one."""
    run.note("isp dies", "kill -9, another comes")
    run.oracle.change(session=False)
    for pid in _speakers(run):
        procs.signal_pid(pid, signal.SIGKILL)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(run.bed.path("isp.sock"))
    run.pause(0.1, 3)
    run.oracle.change(session=True)
    run.bed.start_isp(run.bed.n4, run.bed.n6)
    eventually(lambda: run.bed.isp("status"), run.bed.patience(30), 0.2)
    some = set(CHURN4 + CHURN6) - run.oracle.withdrawn
    run.bed.announce(sorted(some))


@fault(1, 16)
def isp_is_silent(run):
    """The BGP speaker sends nothing for longer than the hold time."""
    run.note("isp silent", "11 s, hold time 9 s")
    pids = _speakers(run)
    run.oracle.change(session=False)
    for pid in pids:
        procs.signal_pid(pid, signal.SIGSTOP)
    time.sleep(11)
    run.oracle.change(session=True)
    for pid in pids:
        procs.signal_pid(pid, signal.SIGCONT)


@fault(1, 40, ends_fast=True)
def core_dies(run):
    """kill -9 of core's OSPF and BFD daemons: its routes are withdrawn. Static routes lead to core
    until the daemons have sent routes again."""
    run.note("core dies", "kill -9 of its OSPF and BFD")
    core, r1, daemons = run.bed.neighbors["core"], run.bed.r1, ("bfdd", "ospfd", "ospf6d")
    run.oracle.change(ospf=False)
    for daemon in daemons:
        core.kill(daemon)
    eventually(lambda: r1.ospf_states(4) == r1.ospf_states(6) == {}, 60, 0.2)
    run.pause(0.1, 3)
    run.oracle.change(ospf=True)
    for daemon in daemons:
        core.restart(daemon)
    eventually(lambda: sessions.ospf_is_full(r1), 60, 0.2)


@fault(3)
def neighbors_forgotten(run):
    """Make the kernel forget the neighbors on a link."""
    which = run.rng.choice(("wan0", "core0", "core1", "lan0"))
    run.note("neigh flush", which)
    try:
        netns.command(["ip", "-n", run.bed.ns["r1"], "neigh", "flush", "dev", which])
    except netns.CommandError as err:
        # Each round of the flush deleted all neighbors, because traffic resolves them as fast.
        if "Flush not complete" not in str(err):
            raise


@fault(2)
def isp_moves(run):
    """isp gets another MAC and announces it."""
    run.note("MAC moves", "isp's, with gratuitous ARP and NA")
    space = run.bed.ns["isp"]
    said = {"net.ipv4.conf.eth0.arp_notify": 1, "net.ipv6.conf.eth0.ndisc_notify": 1}
    netns.sysctl(space, said)
    mac = b"\x02\x77" + run.rng.randbytes(4)
    run.oracle.macs["wan"] = run.oracle.macs["wan"] | {mac}
    netns.ip_batch([f"link set eth0 address {mac.hex(':')}"], space)
    time.sleep(2)
    run.oracle.macs["wan"] = {mac}


@fault(2, 6, sessions_stay=True)
def router_mac_moves(run):
    """The router MAC of another VTEP changes: the kernel gets another neighbor and another entry in the
    forwarding database of the VXLAN."""
    vtep = run.rng.choice(list(run.oracle.rmacs))
    run.note("router MAC", f"of VTEP {vtep}")
    mac = another_mac(run.rng)
    run.oracle.rmacs[vtep] = run.oracle.rmacs[vtep] | {mac}
    run.bed.segments.router_mac_moves(vtep, mac)
    time.sleep(2)
    run.oracle.rmacs[vtep] = {mac}


@fault(2, 6, sessions_stay=True)
def vxlan_goes(run):
    """The bridge over the VXLAN goes down and up. Its neighbors go with it, and come back."""
    run.note("VXLAN", "its bridge down and up")
    run.oracle.change(up={VX: False})
    netns.ip_batch(["link set br1 down"], run.bed.ns["r1"])
    run.pause(0.2, 2)
    run.oracle.change(up={VX: True})
    netns.ip_batch(["link set br1 up"], run.bed.ns["r1"])
    run.bed.segments.say_neighbors()


# -- the kernel ------------------------------------------------------------------------------------


@fault(2)
def mtu_changes(run):
    """A TAP's MTU goes down and up under traffic that fits both."""
    which = run.rng.choice(("wan0", "core0", "lan0"))
    run.note("MTU", which)
    netns.ip_batch([f"link set {which} mtu 1400"], run.bed.ns["r1"])
    run.pause(0.1, 1)
    netns.ip_batch([f"link set {which} mtu 1500"], run.bed.ns["r1"])


@fault(1)
def address_goes(run):
    """The lan's subnet is removed and added again. Meanwhile no interface has its hosts."""
    what = run.note("address", "lan0's, gone and back")
    what.may_lose(3, ("lan",))
    run.oracle.flux(("lan",))
    lines = [f"addr %s {topology.R1_LAN4}/24 dev lan0"]
    netns.ip_batch([x % "del" for x in lines], run.bed.ns["r1"])
    run.pause(0.1, 0.5)
    netns.ip_batch([x % "add" for x in lines], run.bed.ns["r1"])
    run.oracle.flux(("lan",))


@fault(1, 8, sessions_stay=True)
def netlink_overrun(run):
    """The kernel sends more events than fit the socket of neigh while neigh is stopped."""
    run.note("overrun", "20,000 neighbors while neigh stands still")
    lines = [
        f"neigh {verb} 203.0.113.{100 + n % 100} lladdr 02:55:00:00:{n >> 8:02x}:{n & 255:02x}"
        f" dev lan0 nud permanent"
        for n in range(20000)
        for verb in ("replace",)
    ]
    lines += [f"neigh del 203.0.113.{100 + n} dev lan0" for n in range(100)]
    overruns = lambda: run.bed.dp.counter("total", "resyncs")  # noqa: E731
    before = overruns()
    with _still(run, "fdp-neigh"):
        netns.ip_batch(lines, run.bed.ns["r1"])
    eventually(lambda: overruns() > before, 20, 0.05, "an overrun is counted")


# -- programs ---------------------------------------------------------------------------------------


def _kill_daemon(run):
    pids = run.bed.daemon_pids()
    for pid in pids:
        procs.signal_pid(pid, signal.SIGKILL)
    run.fell += len(pids)
    run.fell_at = time.monotonic()
    return pids


def _is_back(run, was):
    return (now := run.bed.daemon_pids()) and now != was and run.bed.dp.show("version")


def _back(run, was):
    eventually(lambda: _is_back(run, was), 20, 0.05, "another daemon answers")


@fault(3, 10, sessions_stay=True, kills=1)
def daemon_dies(run):
    """kill -9 of the dataplane."""
    what = run.note("daemon dies", "kill -9")
    what.may_lose(_crash_s(run))
    _back(run, _kill_daemon(run))


def _dies_within(run, churn, note):
    """Kill the dataplane at a random moment of `churn`, which goes on, and wait for both ends."""
    chance = random.Random(run.rng.random())  # random numbers of its own, because another thread uses run.rng
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        churning = pool.submit(churn, run, chance, 80)
        run.pause(0.2, 1.2)
        run.note(note, "kill -9 in 10 k changes/s").may_lose(_crash_s(run))
        _back(run, _kill_daemon(run))
        churning.result()


@fault(2, 10, sessions_stay=True, kills=1)
def daemon_dies_in_churn(run):
    """kill -9 of the dataplane at a random moment of 10,000 changes a second, which go on."""
    _dies_within(run, _churn, "dies in churn")


@fault(2, 10, sessions_stay=True, kills=1)
def daemon_dies_in_labels_churn(run):
    """kill -9 of the dataplane at a random moment of 10,000 changes of labels a second."""
    _dies_within(run, _labels_churn, "dies in labels")


@fault(2, 10, sessions_stay=True, kills=1)
def daemon_dies_in_segments_churn(run):
    """kill -9 of the dataplane at a random moment of 10,000 changes of headends, SIDs and routes into a
    VXLAN a second."""
    _dies_within(run, _segments_churn, "dies in segments")


@fault(1, 20, sessions_stay=True, kills=1)
def checkpoint_is_damaged(run):
    """Flip octets in the header of the checkpoint or in its routes, then kill -9: the next daemon
    discards the checkpoint and gets all routes from zebra."""
    which = run.rng.choice(("header", "routes"))
    what = run.note("checkpoint damaged", f"its {which}, kill -9")
    before = _discarded(run)
    run.oracle.flux(_ALL)
    for pid in run.bed.daemon_pids():
        _damage(run, pid, which)
    what.may_lose(_crash_s(run) + run.bed.patience(10))
    was = _kill_daemon(run)
    run.in_flux(lambda: _is_back(run, was) and run.bed.in_step(), run.bed.patience(40), _ALL)
    said = _discarded(run)[len(before) :]
    right = len(said) == 1 and f"damaged {which}" in said[0]
    run.must(right, f"of a checkpoint with damaged {which} the log says {said}")


def _damage(run, pid, which):
    """Flip one bit of each of some octets: of the namespace's number and the CRC in the header, or
    of a page of routes. With a change elsewhere in the header the file would be no checkpoint, or a
    checkpoint of another version."""
    folder = f"/proc/{pid}/fd"
    fds = [f"{folder}/{n}" for n in os.listdir(folder)]
    (fd,) = [n for n in fds if "fpm-dataplane-checkpoint" in os.readlink(n)]
    first, most = (24, 12) if which == "header" else (4096, 4096)
    with open(fd, "r+b", buffering=0) as file:
        for at in run.rng.sample(range(first, first + most), 8):
            octet = os.pread(file.fileno(), 1, at)[0]
            os.pwrite(file.fileno(), bytes([octet ^ 1 << run.rng.randrange(8)]), at)


def _discarded(run):
    with open(run.bed.dp.log_file, encoding="utf-8", errors="replace") as file:
        return [line for line in file if "rib: checkpoint discarded" in line]


@fault(1, 12, sessions_stay=True, kills=2)
def daemon_dies_twice(run):
    """kill -9 of the dataplane, and again while the next dataplane is starting."""
    what = run.note("daemon dies twice", "kill -9 in its start as well")
    what.may_lose(2 * _crash_s(run))
    was = _kill_daemon(run)
    eventually(lambda: (now := run.bed.daemon_pids()) and now != was, 20, 0.01)
    run.pause(0, 0.8)
    _back(run, _kill_daemon(run))


@fault(2, 12, sessions_stay=True)
def daemon_is_restarted(run):
    """fpmctl restart: a successor takes the place of the dataplane. The loss may be the packets of 0.2 s
    at most, and of the longest time for which a thread waited for a CPU."""
    what = run.note("planned restart", "fpmctl restart")
    was, share = run.bed.daemon_pids(), machine.Share(run.bed.daemon_pids)
    netns.command([run.bed.dp.ctl, "-s", run.bed.socket, "restart"])
    eventually(
        lambda: (now := run.bed.daemon_pids())
        and not set(now) & set(was)
        and run.bed.dp.show("version"),
        20,
        0.05,
        "a successor answers, alone",
    )
    what.may_lose(time.monotonic() - what.begin)
    what.counted = int((0.2 + share.longest_wait()) * run.bed.traffic.rate)


@fault(2, sessions_stay=True, ends_fast=True)
def daemon_stands_still(run):
    """The whole dataplane gets no time for a while."""
    what = run.note("daemon stopped", "0.3 s")
    what.may_lose(0.8)
    pids = run.bed.daemon_pids()
    for pid in pids:
        procs.stand_still(pid)
    time.sleep(0.3)
    for pid in pids:
        procs.signal_pid(pid, signal.SIGCONT)


@fault(1, sessions_stay=True)
def rib_stands_still(run):
    """rib gets no time for a while: messages of zebra wait, packets do not."""
    run.note("rib stands still", "1 s")
    with _still(run, "fdp-rib"):
        end = time.monotonic() + 1
        while time.monotonic() < end:
            run.oracle.flux()
            time.sleep(0.1)


@fault(2, 40)
def zebra_dies(run):
    """kill -9 of zebra; watchfrr starts all of FRR again. While the routes come back, no packet is
    lost, and no packet takes another path."""
    run.note("zebra dies", "kill -9, all of FRR again")
    was = run.bed.r1.kill("zebra")
    eventually(lambda: run.bed.r1.pid("zebra") != was and bgp_is_up(run), run.bed.patience(60), 0.2)


@fault(1, 40)
def frr_dies(run):
    """kill -9 of all of FRR at once, then a start of all of it: as when zebra dies."""
    run.note("FRR dies", "kill -9 of all, start")
    run.bed.restart_frr(killed=True)
    eventually(lambda: bgp_is_up(run), run.bed.patience(60), 0.2)


@fault(1, 40)
def frr_is_restarted(run):
    """systemctl restart frr."""
    run.note("FRR restarted", "stop, start")
    run.bed.restart_frr(killed=False)
    eventually(lambda: bgp_is_up(run), run.bed.patience(60), 0.2)


@fault(2, 30)
def bgpd_dies(run):
    """kill -9 of bgpd: zebra withdraws the routes of bgpd until bgpd is back."""
    run.note("bgpd dies", "kill -9")
    run.bed.r1.configure(f"router bgp {topology.R1_AS}", "no bgp graceful-restart")
    was = run.bed.r1.kill("bgpd")
    done = lambda: run.bed.r1.pid("bgpd") != was and bgp_is_up(run)  # noqa: E731
    run.in_flux(done, run.bed.patience(60), ("isp",))


@fault(1, 30)
def bgpd_restarts_gracefully(run):
    """kill -9 of bgpd with RFC 4724: zebra keeps the routes of bgpd until bgpd is back, and no packet
    takes another path. When bgpd has heard its peers, zebra 8.4 withdraws some or all of these routes,
    from the kernel as well, for 0.1 to 2 s, until bgpd has sent them again."""
    what = run.note("bgpd, graceful", "kill -9, RFC 4724")
    was = run.bed.r1.kill("bgpd")
    eventually(lambda: run.bed.r1.pid("bgpd") != was, run.bed.patience(60), 0.02)
    stamp(run, f"bgpd starts after {time.monotonic() - what.begin:.2f} s")
    done = lambda: run.bed.r1.pid("bgpd") != was and bgp_is_up(run)  # noqa: E731
    run.in_flux(done, run.bed.patience(60), ("isp",))
    end = time.monotonic() + 3 + (run.bed.n4 + run.bed.n6) / 4000
    run.in_flux(lambda: time.monotonic() > end, 600, ("isp",))


def bgp_is_up(run):
    """Return True if bgpd has a session with isp."""
    r1 = run.bed.r1
    return r1.runs("bgpd") and r1.bgp_state(topology.ISP4) == "Established"


@fault(1, 30)
def ospfd_dies(run):
    """kill -9 of an OSPF daemon: core's routes are withdrawn until it is back."""
    which, family = run.rng.choice((("ospfd", 4), ("ospf6d", 6)))
    run.note(f"{which} dies", "kill -9")
    was = run.bed.r1.kill(which)
    r1 = run.bed.r1
    back = lambda: r1.pid(which) != was and sessions.ospf_is_full(r1, (family,))  # noqa: E731
    run.in_flux(back, 60, ("core",))


@fault(1, 8)
def zebra_stands_still(run):
    """zebra gets no time for a while."""
    run.note("zebra stopped", "2 s")
    pid = run.bed.r1.kill("zebra", signal.SIGSTOP)
    run.pause(0.5, 2)
    procs.signal_pid(pid, signal.SIGCONT)


def _crash_s(run):
    """Return the allowed time in seconds without transit after a crash, with other load."""
    return 3 + (run.bed.n4 + run.bed.n6) / 1e6


def _still(run, thread):
    """Freeze a thread of the dataplane. Do nothing if no dataplane runs."""
    pids = run.bed.daemon_pids()
    return frozen(pids[0], thread) if pids else contextlib.nullcontext()


def _speakers(run):
    found = []
    for pid in procs.marked(run.bed.dir):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"bgp_speaker.py" in file.read():
                found.append(pid)
    return found
