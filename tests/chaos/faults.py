# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong. Each fault does one thing to the bed, tells the oracle beforehand what
becomes true by it, and says for how long packets may be lost, which is mostly never."""

import contextlib
import os
import signal
import socket
import time

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from chaos import ledger
from chaos.bed import CHURN4, CHURN6
from chaos.report import stamp
from lab import routes, topology
from lib import fpm_speaker, netns, nonsense, procs
from lib.freeze import frozen
from lib.wait import eventually

FAULTS = {}
FLOOD_S = 1.5


class Happening:
    """One fault, once."""

    def __init__(self, name, detail=""):
        self.name, self.detail = name, detail
        self.begin, self.may_lose_until = time.monotonic(), 0.0
        self.lost, self.bad = [], 0  # when sent, within a window; how many outside
        self.counted = None  # no more of them than this may be lost, where counters tell

    def may_lose(self, seconds):
        """From its beginning on, packets sent in so many seconds may be lost."""
        self.may_lose_until = self.begin + seconds


def fault(weight, longest=4.0, sessions_stay=False):
    """Register a fault: how often it is drawn, how long it takes at most, and whether FRR's
    sessions must not notice it."""

    def register(function):
        function.weight, function.longest = weight, longest
        function.sessions_stay = sessions_stay
        FAULTS[function.__name__] = function
        return function

    return register


class Run:
    """What faults need: the bed, chance, and where to write down what they did."""

    def __init__(self, bed, rng):
        self.bed, self.rng, self.oracle = bed, rng, bed.oracle
        self.happenings = []
        self.fell = 0  # daemons that were killed
        self.unsure = ""  # why zebra's word is not taken yet
        self.lost_sessions = []  # names of faults that were not to cost any
        self.rss = []  # (process id, seconds that it runs, octets), now and then
        self.begin = 0.0

    def note(self, name, detail=""):
        """Begin a happening."""
        what = Happening(name, detail)
        self.happenings.append(what)
        return what

    def pause(self, least, most):
        """A while, by chance."""
        time.sleep(self.rng.uniform(least, most))

    def in_flux(self, done, timeout, kinds):
        """Wait for a condition of FRR's; until then cells of `kinds` go either way."""

        def look():
            self.oracle.flux(kinds)
            return done()

        eventually(look, timeout, 0.2)
        self.oracle.flux(kinds)


# -- routes ------------------------------------------------------------------------------------


@fault(6)
def churn(run):
    """10,000 changes of routes a second for half a second: what is there is withdrawn, what
    is not is announced."""
    what = run.note("churn", "10 k changes/s")
    table = CHURN4 + CHURN6
    for turn in range(20):
        some = run.rng.sample(table, 256)
        gone = [p for p in some if p not in run.oracle.withdrawn]
        back = [p for p in some if p in run.oracle.withdrawn]
        run.oracle.change(withdraw=gone, announce=back)
        run.bed.withdraw(gone)
        run.bed.announce(back)
        late = what.begin + (turn + 1) / 40 - time.monotonic()
        time.sleep(max(late, 0))


@fault(3)
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


# -- links and neighbours -------------------------------------------------------------------------


@fault(3, 8)
def wan_flap(run):
    """The link to isp is lost and comes back; BGP with it."""
    what = run.note("link wan", "carrier lost, back")
    # FRR withdraws a route at a time: until then they lead to a link that is down.
    what.may_lose(3 + (run.bed.n4 + run.bed.n6) / 20000)
    run.oracle.change(up={"wan": False}, session=False)
    run.bed.link("wan", "down")
    run.pause(0.3, 4)
    run.oracle.change(up={"wan": True}, session=True)
    run.bed.link("wan", "up")


@fault(4)
def core_flap(run):
    """One of the links to core is lost and comes back: two changes, each with its window."""
    which = run.rng.choice(("core0", "core1"))
    run.note(f"link {which}", "carrier lost").may_lose(3)
    run.oracle.change(up={which: False})
    run.bed.link(which, "down")
    run.pause(0.1, 3)
    # FRR moves what it chooses this link for back to it; who is there is to be found anew.
    run.note(f"link {which} back", "carrier back").may_lose(3)
    run.oracle.change(up={which: True})
    run.bed.link(which, "up")


@fault(2, 8)
def isp_dies(run):
    """The BGP speaker is killed; another one comes."""
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
    """The BGP speaker says nothing for longer than the hold time."""
    run.note("isp silent", "11 s, hold time 9 s")
    pids = _speakers(run)
    run.oracle.change(session=False)
    for pid in pids:
        procs.signal_pid(pid, signal.SIGSTOP)
    time.sleep(11)
    run.oracle.change(session=True)
    for pid in pids:
        procs.signal_pid(pid, signal.SIGCONT)


@fault(3)
def neighbours_forgotten(run):
    """All that the kernel knows of the neighbours on a link is thrown away."""
    which = run.rng.choice(("wan0", "core0", "core1", "lan0"))
    run.note("neigh flush", which)
    try:
        netns.command(["ip", "-n", run.bed.ns["r1"], "neigh", "flush", "dev", which])
    except netns.CommandError as err:
        # All were thrown away, in each of its rounds: traffic asks for them as fast.
        if "Flush not complete" not in str(err):
            raise


@fault(2)
def isp_moves(run):
    """isp has another MAC and says so."""
    run.note("MAC moves", "isp's, with gratuitous ARP and NA")
    space = run.bed.ns["isp"]
    said = {"net.ipv4.conf.eth0.arp_notify": 1, "net.ipv6.conf.eth0.ndisc_notify": 1}
    netns.sysctl(space, said)
    mac = b"\x02\x77" + run.rng.randbytes(4)
    run.oracle.macs["wan"] = run.oracle.macs["wan"] | {mac}
    netns.ip_batch([f"link set eth0 address {mac.hex(':')}"], space)
    time.sleep(2)
    run.oracle.macs["wan"] = {mac}


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
    """The lan's subnet is taken away and given back: its hosts are nobody's meanwhile."""
    what = run.note("address", "lan0's, gone and back")
    what.may_lose(3)
    run.oracle.flux(("lan",))
    lines = [f"addr %s {topology.R1_LAN4}/24 dev lan0"]
    netns.ip_batch([x % "del" for x in lines], run.bed.ns["r1"])
    run.pause(0.1, 0.5)
    netns.ip_batch([x % "add" for x in lines], run.bed.ns["r1"])
    run.oracle.flux(("lan",))


@fault(1, 8)
def netlink_overrun(run):
    """More is said by the kernel than neigh can hear while it stands still."""
    run.note("overrun", "20,000 neighbours while neigh stands still")
    lines = [
        f"neigh {verb} 203.0.113.{100 + n % 100} lladdr 02:55:00:00:{n >> 8:02x}:{n & 255:02x}"
        f" dev lan0 nud permanent"
        for n in range(20000)
        for verb in ("replace",)
    ]
    lines += [f"neigh del 203.0.113.{100 + n} dev lan0" for n in range(100)]
    with _still(run, "fdp-neigh"):
        netns.ip_batch(lines, run.bed.ns["r1"])


# -- programs ---------------------------------------------------------------------------------------


def _kill_daemon(run):
    pids = run.bed.daemon_pids()
    for pid in pids:
        procs.signal_pid(pid, signal.SIGKILL)
    run.fell += len(pids)
    return pids


def _back(run, was):
    eventually(
        lambda: (now := run.bed.daemon_pids()) and now != was and run.bed.dp.show("version"),
        20,
        0.05,
        "another daemon answers",
    )


@fault(3, 10, sessions_stay=True)
def daemon_dies(run):
    """kill -9 of the dataplane."""
    what = run.note("daemon dies", "kill -9")
    what.may_lose(_crash_s(run))
    _back(run, _kill_daemon(run))


@fault(1, 12, sessions_stay=True)
def daemon_dies_twice(run):
    """kill -9, and again while the next one is starting."""
    what = run.note("daemon dies twice", "kill -9 in its start as well")
    what.may_lose(2 * _crash_s(run))
    was = _kill_daemon(run)
    eventually(lambda: (now := run.bed.daemon_pids()) and now != was, 20, 0.01)
    run.pause(0, 0.8)
    _back(run, _kill_daemon(run))


@fault(2, 12, sessions_stay=True)
def daemon_is_restarted(run):
    """fpmctl restart: a successor takes the place of the dataplane, within 0.2 s of transit."""
    what = run.note("planned restart", "fpmctl restart")
    was = run.bed.daemon_pids()
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
    what.counted = int(0.2 * run.bed.traffic.rate)


@fault(2, sessions_stay=True)
def daemon_stands_still(run):
    """The whole dataplane gets no time for a while."""
    what = run.note("daemon stopped", "0.3 s")
    what.may_lose(0.8)
    pids = run.bed.daemon_pids()
    for pid in pids:
        procs.signal_pid(pid, signal.SIGSTOP)
    time.sleep(0.3)
    for pid in pids:
        procs.signal_pid(pid, signal.SIGCONT)


@fault(1)
def rib_stands_still(run):
    """rib gets no time for a while: what zebra says waits, packets do not."""
    run.note("rib stands still", "1 s")
    with _still(run, "fdp-rib"):
        end = time.monotonic() + 1
        while time.monotonic() < end:
            run.oracle.flux()
            time.sleep(0.1)


@fault(2, 40)
def zebra_dies(run):
    """kill -9 of zebra; watchfrr starts all of FRR again. Routes that come back do not
    lose a packet, nor does one packet take another way."""
    run.note("zebra dies", "kill -9, all of FRR again")
    was = run.bed.r1.kill("zebra")
    eventually(lambda: run.bed.r1.pid("zebra") != was and _bgp_is_up(run), run.bed.patience(60), 0.2)


@fault(1, 40)
def frr_dies(run):
    """kill -9 of all of FRR at once, then a start of all of it: as when zebra dies."""
    run.note("FRR dies", "kill -9 of all, start")
    run.bed.restart_frr(killed=True)
    eventually(lambda: _bgp_is_up(run), run.bed.patience(60), 0.2)


@fault(1, 40)
def frr_is_restarted(run):
    """systemctl restart frr."""
    run.note("FRR restarted", "stop, start")
    run.bed.restart_frr(killed=False)
    eventually(lambda: _bgp_is_up(run), run.bed.patience(60), 0.2)


@fault(2, 30)
def bgpd_dies(run):
    """kill -9 of bgpd: zebra withdraws its routes until it is back."""
    run.note("bgpd dies", "kill -9")
    run.bed.r1.configure(f"router bgp {topology.R1_AS}", "no bgp graceful-restart")
    was = run.bed.r1.kill("bgpd")
    done = lambda: run.bed.r1.pid("bgpd") != was and _bgp_is_up(run)  # noqa: E731
    run.in_flux(done, run.bed.patience(60), ("isp",))


@fault(1, 30)
def bgpd_restarts_gracefully(run):
    """kill -9 of bgpd with RFC 4724: zebra keeps its routes until it is back. When bgpd has
    heard its peers, zebra 8.4 withdraws some, or all, for 0.1 to 2 s until bgpd has said them
    again, from the kernel as well."""
    run.note("bgpd, graceful", "kill -9, RFC 4724")
    was = run.bed.r1.kill("bgpd")
    done = lambda: run.bed.r1.pid("bgpd") != was and _bgp_is_up(run)  # noqa: E731
    run.in_flux(done, run.bed.patience(60), ("isp",))
    end = time.monotonic() + 3 + (run.bed.n4 + run.bed.n6) / 4000
    run.in_flux(lambda: time.monotonic() > end, 600, ("isp",))


def _bgp_is_up(run):
    r1 = run.bed.r1
    return r1.runs("bgpd") and r1.bgp_state(topology.ISP4) == "Established"


@fault(1, 30)
def ospfd_dies(run):
    """kill -9 of an OSPF daemon: core's routes are withdrawn until it is back."""
    which, family = run.rng.choice((("ospfd", 4), ("ospf6d", 6)))
    run.note(f"{which} dies", "kill -9")
    was = run.bed.r1.kill(which)
    full = {"core0": "Full", "core1": "Full"}
    run.in_flux(
        lambda: run.bed.r1.pid(which) != was and run.bed.r1.ospf_states(family) == full,
        60,
        ("core",),
    )


@fault(1, 8)
def zebra_stands_still(run):
    """zebra gets no time for a while."""
    run.note("zebra stopped", "2 s")
    pid = run.bed.r1.kill("zebra", signal.SIGSTOP)
    run.pause(0.5, 2)
    procs.signal_pid(pid, signal.SIGCONT)


# -- what comes in ---------------------------------------------------------------------------------


class _Attacker:
    """What nonsense.py asks of a wire."""

    def __init__(self, bed):
        self.mac = bed.mac_of("lan", "eth0")
        self.port_mac = bed.mac_of("r1", "lan0")
        self.ip4, self.ip6 = topology.R1_LAN4, topology.R1_LAN6

    def probe(self, dst, size=0, **fields):
        """A UDP packet through the router."""
        ip = (
            IPv6(src=topology.LAN6, dst=dst)
            if ":" in dst
            else IP(src=topology.LAN4, dst=dst, **fields)
        )
        packet = Ether(src=self.mac, dst=self.port_mac) / ip / UDP(sport=4000, dport=4001)
        return packet / Raw(bytes(max(0, size - len(ip / UDP()))))


@contextlib.contextmanager
def _room_is_counted(run, what):
    """While no forwarder has time a ring fills: what counters say was lost for that may be
    lost, until they stand still."""
    before = last = ledger.read(run.bed)
    yield

    def stand_still():
        nonlocal last
        was, last = last, ledger.read(run.bed)
        return not ledger.grown(was, last)

    eventually(stand_still, 10, 0.1)
    full = ledger.grown(before, last)
    if full:
        what.may_lose(time.monotonic() - what.begin)
        what.counted = sum(full.values())
        grown = ", ".join(f"{k} {v}" for k, v in full.items())
        stamp(run, f"{what.name}: no room: {grown}")


@fault(4)
def nonsense_frames(run):
    """3,000 broken frames by the lan."""
    what = run.note("nonsense frames", "3,000 by lan0")
    sock = run.bed.traffic.out["lan"]
    with _room_is_counted(run, what):
        for n, data in enumerate(nonsense.frames(run.rng, _Attacker(run.bed), 3000)):
            with contextlib.suppress(OSError):
                sock.send(data)
            if n % 32 == 31:
                time.sleep(0.005)


@fault(2)
def nonsense_channels(run):
    """Nonsense to FPM (zebra is thrown out by it, and comes again), to the control socket
    and to the metrics."""
    run.note("nonsense channels", "FPM, control socket, metrics")
    for _ in range(3):
        with contextlib.suppress(OSError):
            with fpm_speaker.FpmSpeaker(netns=run.bed.ns["r1"]).connect(1) as speaker:
                speaker.send_raw(run.rng.randbytes(2000))
                speaker.wait_closed(0.2)
    for _ in range(20):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(0.2)
            sock.connect(run.bed.socket)
            sock.sendall(run.rng.randbytes(run.rng.randrange(1, 5000)) + b"\n")
            sock.recv(100)
    for _ in range(20):
        space = run.bed.ns["r1"]
        with contextlib.suppress(OSError), netns.open_socket(space, 2, 1) as sock:
            sock.settimeout(0.2)
            sock.connect(("127.0.0.1", 9620))
            sock.sendall(run.rng.randbytes(run.rng.randrange(1, 5000)))
            sock.recv(100)


@fault(2)
def questions(run):
    """Somebody looks at everything, live packets included, and has zebra say it again."""
    run.note("questions", "dump, audit, capture, replay")
    program, path = run.bed.dp.ctl, run.bed.socket
    run.bed.audit()
    for words in (["--json", "show", "routes"], ["replay"]):
        netns.command([program, "-s", path, *words], check=False, timeout=120)
    argv = ["timeout", "1", program, "-s", path, "capture", "-w", "/dev/null"]
    netns.command(argv, check=False)


def _flood_frames(run, kind):
    """Two hundred frames of a kind, as attackers on the lan send them."""
    rng, end = run.rng, _Attacker(run.bed)
    host = lambda: f"203.0.113.{rng.randrange(20, 250)}"  # noqa: E731
    far = lambda: f"100.{rng.randrange(128, 250)}.0.{rng.randrange(1, 250)}"  # noqa: E731
    port = lambda: rng.randrange(1024, 65536)  # noqa: E731
    r1 = end.ip4
    for _ in range(200):
        mac = (b"\x02\x66" + rng.randbytes(4)).hex(":")
        eth, every = Ether(src=mac, dst=end.port_mac), Ether(src=mac, dst="ff:ff:ff:ff:ff:ff")
        yield bytes(
            {
                "arp": lambda: every / ARP(op=1, hwsrc=mac, psrc=host(), pdst=r1),
                "nd": lambda: Ether(src=mac, dst="33:33:ff:00:00:01")
                / IPv6(src=f"2001:db8:2::{port():x}", dst="ff02::1:ff00:1", hlim=255)
                / ICMPv6ND_NS(tgt=end.ip6),
                "echo": lambda: eth / IP(src=host(), dst=r1) / ICMP() / Raw(bytes(24)),
                "syn": lambda: eth / IP(src=far(), dst=topology.R1_WAN4)
                / TCP(sport=port(), dport=179, flags="S"),
                "bfd": lambda: eth / IP(src=far(), dst=r1, ttl=255)
                / UDP(sport=49152, dport=3784) / Raw(bytes(24)),
                "udp": lambda: eth / IP(src=far(), dst=r1) / UDP(sport=port(), dport=9),
                "ttl": lambda: eth / IP(src=far(), dst=far(), ttl=1) / UDP(dport=33434),
                "scan": lambda: eth / IP(src=far(), dst=host()) / UDP(dport=9),
                "fragment": lambda: eth / IP(src=far(), dst=r1, id=port(), flags="MF")
                / UDP(dport=9, chksum=1) / Raw(bytes(32)),
            }[kind]()
        )  # fmt: skip


@fault(4, 6)
def flood(run):
    """One class of packets as fast as a core sends them, at the lowest priority."""
    kinds = ("arp", "nd", "echo", "syn", "bfd", "udp", "ttl", "scan", "fragment")
    kind = run.rng.choice(kinds)
    path = run.bed.path("flood")
    with open(path, "wb") as file:
        for data in _flood_frames(run, kind):
            file.write(len(data).to_bytes(2, "big") + data)
    what = run.note("flood", kind)
    program = os.path.join(os.path.dirname(run.bed.dp.program), "tests", "flood")
    cpu = str(min(os.sched_getaffinity(0)))
    argv = ["nice", "-n", "19", "taskset", "-c", cpu, program, "eth0", path]
    with _room_is_counted(run, what):
        netns.run(run.bed.ns["lan"], [*argv, str(FLOOD_S), "0"])


def _crash_s(run):
    """Until transit flows again after a crash, with other programs on its cores."""
    return 3 + (run.bed.n4 + run.bed.n6) / 1e6


def _still(run, thread):
    """A thread of the dataplane without time; nothing, when there is no dataplane now."""
    pids = run.bed.daemon_pids()
    return frozen(pids[0], thread) if pids else contextlib.nullcontext()


def _speakers(run):
    found = []
    for pid in procs.marked(run.bed.dir):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"bgp_speaker.py" in file.read():
                found.append(pid)
    return found
