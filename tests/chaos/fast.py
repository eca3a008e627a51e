# SPDX-License-Identifier: BSD-3-Clause
"""BFD sessions of 3 x 50 ms in r1's dataplane. No protocol uses these sessions: two are single-hop
sessions with lan, and over each link to core there is a multihop session. Each session must stay up,
except during a fault that may end it."""

import contextlib
import os
import threading
import time

from chaos.report import stamp
from lab import topology
from lib import machine, netns, procs
from lib.frr import Neighbor
from lib.frr_at import FrrAt

DPLANE = "127.0.0.1:50700"
DETECT_S = 0.15
# A lost session counts as the fault of the machine if a thread was ready, but did not run, for so many
# seconds of one second.
STARVED_S = 0.1
EVERY_S = 0.3  # between two looks
# A session that a fault may end may also go down in so many seconds after the fault: core's daemons
# start again, links come back, and the supervisor waits longer from crash to crash.
SETTLE_S = 4.0
# Not the addresses of OSPF's IPv4 neighbors: ospfd 8.4 drops such a neighbor when this session ends, too.
CORE0, CORE1 = ("2001:db8:10::1", "2001:db8:10::2"), ("2001:db8:11::1", "2001:db8:11::2")
# The sessions with lan use no IPv4 address of the lab, because the fault `address_goes` removes it.
LAN4, LAN6 = ("10.250.0.1", "10.250.0.2"), (topology.R1_LAN6, topology.LAN6)
PEERS = [theirs for _, theirs in (CORE0, CORE1, LAN4, LAN6)]
TIMES = ("  transmit-interval 50", "  receive-interval 50", " exit")


def _several_hops(*pairs):
    """Return the configuration of multihop sessions between pairs (local address, peer)."""
    lines = ["bfd"]
    for local, peer in pairs:
        lines += [f" peer {peer} multihop local-address {local}", "  minimum-ttl 250", *TIMES]
    return "\n".join([*lines, "exit"]) + "\n"


def _one_hop(dev, *ends):
    """Return the configuration of single-hop sessions between pairs (own address, peer). bfdd 10.3 takes
    any address of the interface if the configuration names none."""
    lines = ["bfd"]
    for own, peer in ends:
        lines += [f" peer {peer} local-address {own} interface {dev}", *TIMES]
    return "\n".join([*lines, "exit"]) + "\n"


R1 = _several_hops(CORE0, CORE1) + _one_hop("lan0", LAN4, LAN6)


class Core(Neighbor):
    """The demo's core with its ends of the sessions."""

    def prepare(self):
        super().prepare()
        with open(os.path.join(self.dir, "frr.conf"), "a", encoding="ascii") as file:
            file.write(_several_hops(CORE0[::-1], CORE1[::-1]))


class FastSessions(threading.Thread):
    """The sessions, their peer in lan, and a watch over them."""

    def __init__(self, bed):
        super().__init__(daemon=True, name="fast sessions")
        self.bed, self.ending = bed, threading.Event()
        self.windows = []  # [begin, end] in which a session may go down
        self.known = {}  # peer: (discriminator, downs)
        self.looked = 0.0
        self.lost = []  # (from, to, peer): it went down in this time, outside every window
        self.lan = FrrAt("/", bed.ns["lan"], bed.path("lan"))
        self.chaos = None  # the run, for its clock

    def start_peer(self):
        """Start the peer in lan. Its addresses and r1's are beside those of the lab."""
        netns.ip_batch([f"addr add {LAN4[0]}/30 dev lan0"], self.bed.ns["r1"])
        netns.ip_batch([f"addr add {LAN4[1]}/30 dev eth0"], self.bed.ns["lan"])
        self.lan.start_all("bfdd")
        self.lan.load(_one_hop("eth0", LAN4[::-1], LAN6[::-1]))

    def up(self):
        """Return True if all sessions are up and in the forwarders. Raises LookupError."""
        rows = self._rows()
        said = {peer: peer in rows and (rows[peer]["state"], rows[peer]["by"]) for peer in PEERS}
        if set(said.values()) != {("up", "forwarders")}:
            raise LookupError(f"{said}")
        return True

    def _rows(self):
        return {row["peer"]: row for row in self.bed.dp.show("bfd") if row["peer"] in PEERS}

    @contextlib.contextmanager
    def window(self):
        """Allow that sessions go down during the with block, and a while after it."""
        window = [time.monotonic(), float("inf")]
        self.windows.append(window)
        try:
            yield
        finally:
            window[1] = time.monotonic() + SETTLE_S

    def run(self):
        while not self.ending.wait(EVERY_S):
            with contextlib.suppress(Exception):  # the daemon is away at the moment
                self.be_timely()
                self.look()

    def be_timely(self):
        """Give a real-time priority to each bfdd of a peer, which stands for another machine. r1's
        bfdd waits for answers of the dataplane in a loop: with that priority it would take a CPU
        while the dataplane is away."""
        for pid in procs.marked(self.bed.dir, "bfdd") + procs.marked(self.lan.dir, "bfdd"):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"--dplaneaddr" not in file.read():
                    machine.real_time(pid, "bfdd")

    def look(self):
        """Compare the sessions with those of the last look."""
        began, rows = time.monotonic(), self._rows()
        for peer, row in rows.items():
            discr, downs = self.known.get(peer, (row["discr"], row["downs"]))
            # With another discriminator, the session began again.
            if row["discr"] != discr or row["downs"] > downs:
                self._went_down(peer, self.looked, time.monotonic())
            self.known[peer] = row["discr"], row["downs"]
        for peer in self.known.keys() - rows.keys():
            del self.known[peer]
            self._went_down(peer, self.looked, time.monotonic())
        self.looked = began

    def _went_down(self, peer, since, until):
        """Record that a session went down between two looks, if no window allows it."""
        if not any(begin <= until and since - DETECT_S <= end for begin, end in self.windows):
            self.lost.append((since, until, peer))
            stamp(self.chaos, f"session of 3 x 50 ms with {peer} went down")

    def watch(self, chaos):
        """Start to watch the sessions of a run."""
        self.chaos = chaos
        self.start()

    def end(self):
        """Stop the watch."""
        self.ending.set()
        self.join()
