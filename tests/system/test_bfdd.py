# SPDX-License-Identifier: BSD-3-Clause
"""Facts of FRR's bfdd with `--dplaneaddr`, on which our BFD relies: doc/bfd.md.

bfdd and zebra run in namespaces of their own, with the machine's FRR and with the newer one of `make
frr-root`; FRR_ROOT names another folder. No dataplane runs. Each test has a bfdd of its own.
"""

import collections
import os
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from lib import netns, procs
from lib.bfddp import ADD, ADMIN_DOWN, CBIT, DELETE, DOWN, ECHO, ECHO_REPLY, INIT, IPV6, MULTIHOP
from lib.bfddp import PASSIVE, SHUTDOWN, STATE, UP, DataPlane
from lib.bfddp import counters_message, message, state_message
from lib.frr_at import NEWER, FrrAt, present
from lib.wait import eventually, never

# The tests measure FRR's bfdd, so no change of this project can break them.
pytestmark = pytest.mark.skipif(
    "FDP_BFDD" not in os.environ, reason="facts about FRR: FDP_BFDD=1 measures them"
)

TOGETHER = "root"  # the tests with one FRR share a zebra
DPLANE = ("--dplaneaddr", "ipv4:127.0.0.1:50700")
FITS = 58  # messages of 140 octets in 8,192
SINGLE_HOP, MULTI_HOP = 3784, 4784


class Bed:
    """A router with zebra and, in each test, bfdd; a second router at the other end of d0."""

    def __init__(self, root):
        mark = f"/tmp/fdp-{os.getpid()}bfdd"
        self.here, self.there = (f"fdp-bfdd-{os.getpid()}{end}" for end in "ab")
        self.near = FrrAt(root, self.here, mark + "a")
        self.far = FrrAt(root, self.there, mark + "b")
        self.planes = []

    def build(self):
        """Make the wire and start zebra."""
        for name in (self.here, self.there):
            netns.command(["ip", "netns", "add", name])
        wire = f"link add d0 type veth peer name d0 netns {self.there}"
        lines = (wire, "link set lo up", "link set d0 up", "addr add 192.0.2.1/24 dev d0")
        six = "-6 addr add 2001:db8::1/64 dev d0 nodad"
        netns.ip_batch([*lines, six], self.here)
        lines = ("link set lo up", "link set d0 up", "addr add 192.0.2.2/24 dev d0")
        netns.ip_batch(lines, self.there)
        self.near.start_all()

    def destroy(self):
        """Remove all."""
        for name in (self.near, self.far):
            name.destroy()
        for name in (self.here, self.there):
            netns.delete(name)

    # -- data planes ----------------------------------------------------------------------

    def connect(self):
        """Return a further connection, after bfdd has sent its sessions."""
        plane = DataPlane(self.here)
        self.planes.append(plane)
        plane.connect().settled()
        return plane

    def close(self, plane, *others):
        """End a connection. Return when the other connections have received what bfdd sends them."""
        number = self.connections()
        plane.close()
        eventually(lambda: self.connections() == number - 1, 5, what="bfdd has noticed")
        for other in others:
            other.settled()

    def connections(self):
        """Return the number of connections that bfdd knows."""
        return self.near.ask("show bfd distributed").count("File descriptor")

    # -- bfdd -----------------------------------------------------------------------------

    def peers(self, number, words=""):
        """Give bfdd this number of single-hop peers: 192.0.2.2 and on."""
        rows = (f" peer 192.0.2.{n + 2}\n{words} exit\n" for n in range(number))
        self.near.load(f"bfd\n profile p\n exit\n{''.join(rows)}exit\n")

    def states(self):
        """Return {status: number of sessions}."""
        return dict(collections.Counter(r["status"] for r in self.near.json("show bfd peers json")))

    def status(self, peer="192.0.2.2"):
        """Return the row of a peer."""
        rows = self.near.json("show bfd peers json")
        return next(row for row in rows if row["peer"] == peer)

    def counts(self):
        """Return {peer: (times up, times down, notifications of clients)}."""
        rows = self.near.json("show bfd peers counters json")
        keys = ("session-up", "session-down", "zebra-notifications")
        return {row["peer"]: tuple(row[k] for k in keys) for row in rows}

    def udp_ports(self):
        """Return the UDP ports that are bound in the router's namespace."""
        text = netns.run(self.here, ["ss", "-Hanu"])
        return {int(row.split()[3].rpartition(":")[2]) for row in text.splitlines()}

    def blocked(self, seconds=1):
        """Return True if bfdd answers nothing for some time."""
        try:
            self.near.ask("show bfd peers brief", timeout=seconds)
        except subprocess.TimeoutExpired:
            return True
        return False


@pytest.fixture(
    scope="module",
    params=["/", NEWER],
    ids=["installed", "newer"],
)
def bed(request):
    """A router with zebra of one FRR."""
    if not present(request.param):
        pytest.skip("no FRR here: `make frr-root` unpacks a newer one")
    made = Bed(request.param)
    try:
        made.build()
        yield made
    finally:
        made.destroy()


@pytest.fixture
def bfdd(bed):
    """The router with a new bfdd without sessions."""
    bed.near.start("bfdd", *DPLANE)
    try:
        yield bed
    finally:
        bed.near.end("bfdd", signal.SIGKILL)
        while bed.planes:
            bed.planes.pop().close()


def resets_the_interface(bed):
    """Return True if bfdd forgets interface and VRF of a session that leaves software (10.3)."""
    return bed.near.version >= (10, 3)


# --- the connections (doc/bfd.md, 3) ----------------------------------------------------------


def test_with_dplaneaddr_bfdd_opens_no_receiving_socket(bfdd):
    """With the option, bfdd opens no receiving socket before, during and after a connection. Without
    the option it opens them."""
    receives = lambda: bfdd.udp_ports() & {SINGLE_HOP, MULTI_HOP}  # noqa: E731
    bfdd.peers(1)
    eventually(bfdd.udp_ports, 5, what="bfdd has a socket to send from")
    assert not receives()
    plane = bfdd.connect()
    plane.report_all(UP)
    plane.settled()
    assert not bfdd.udp_ports()
    bfdd.close(plane)
    eventually(bfdd.udp_ports, 5, what="bfdd has a socket to send from again")
    assert not receives()

    bfdd.near.end("bfdd", signal.SIGKILL)
    bfdd.near.start("bfdd")
    bfdd.peers(1)
    eventually(lambda: receives() == {SINGLE_HOP, MULTI_HOP}, 5)


def test_a_connection_is_told_58_sessions_and_the_next_one_the_rest(bfdd):
    """The buffer of a connection has 8 KiB, room for 58 sessions. Further connections get the sessions
    that no connection has. The last connection gets none."""
    bfdd.peers(70)

    told = [len(bfdd.connect().sessions) for _ in range(3)]

    assert told == [FITS, 70 - FITS, 0]


def test_the_end_of_a_connection_hands_its_sessions_over_without_telling_clients(bfdd):
    """The oldest other connection gets the sessions. No client of bfdd gets a Down."""
    bfdd.peers(70)
    first, second, third = (bfdd.connect() for _ in range(3))
    for plane in (first, second):
        plane.report_all(UP)
        plane.settled()
    moved = set(first.sessions)

    bfdd.close(first, second, third)

    assert moved < set(second.sessions) and len(second.sessions) == 70
    assert not third.sessions
    assert bfdd.states() == {"down": FITS, "up": 70 - FITS}
    assert set(bfdd.counts().values()) == {(1, 0, 1)}
    for lid in moved:
        second.report(lid, UP)
    second.settled()
    assert bfdd.states() == {"up": 70}
    assert sorted(set(bfdd.counts().values())) == [(1, 0, 1), (2, 0, 2)]


def test_sessions_without_room_in_any_buffer_are_down_in_software_and_no_client_is_told(bfdd):
    """One connection with 70 sessions ends, and there is room for 58. bfdd sends for the other 12
    itself. The next connection gets them, again without a word to clients."""
    bfdd.peers(70)
    first, second = bfdd.connect(), bfdd.connect()
    bfdd.close(first, second)
    assert len(second.sessions) == 70
    second.report_all(UP)
    second.settled()
    third = bfdd.connect()

    bfdd.close(second, third)

    assert len(third.sessions) == FITS
    assert bfdd.states() == {"down": 70}
    assert len(bfdd.udp_ports()) == 70 - FITS
    fourth = bfdd.connect()
    assert len(fourth.sessions) == 70 - FITS
    assert not bfdd.udp_ports()
    assert set(bfdd.counts().values()) == {(1, 0, 1)}


def test_without_another_connection_sessions_stay_up_for_3_s_and_passive_ones_for_ever(bfdd):
    """bfdd sends Up for three seconds and then Down, with the discriminators of the session. Then
    clients are notified. A passive session stays Up. When a new connection comes, bfdd first sets a session that is Up in software
    to Down, and notifies clients."""
    bfdd.near.load("bfd\n peer 192.0.2.2\n exit\n peer 192.0.2.3\n  passive-mode\n exit\nexit\n")
    plane = bfdd.connect()
    lid = plane.session("192.0.2.2").lid
    plane.report_all(UP, rid=0x77)
    plane.settled()
    sink = netns.open_socket(bfdd.there, socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("192.0.2.2", SINGLE_HOP))
    sink.settimeout(10)
    started = time.monotonic()
    plane.close()
    packets = []
    while not packets or packets[-1][1] >> 6 == UP:
        packets.append(sink.recv(64))
    lasted = time.monotonic() - started
    sink.close()

    down = packets.pop()
    assert packets and {p[4:12] for p in packets} == {struct.pack("!II", lid, 0x77)}
    assert down[1] >> 6 == DOWN and down[0] & 31 == 1 and down[4:8] == struct.pack("!I", lid)
    assert 2.9 < lasted < 8
    eventually(lambda: bfdd.counts() == {"192.0.2.2": (1, 1, 2), "192.0.2.3": (1, 0, 1)}, 5)
    assert bfdd.states() == {"down": 1, "up": 1}
    bfdd.connect()
    assert bfdd.counts() == {"192.0.2.2": (1, 1, 2), "192.0.2.3": (1, 1, 2)}
    assert bfdd.states() == {"down": 2}


def test_updates_and_deletes_beyond_8_kib_are_lost(bfdd):
    """All 70 sessions use one connection. After a change of their profile bfdd sends 58 updates, and
    after `no bfd` 58 deletes. It never sends the remaining 12."""
    bfdd.peers(70, "  profile p\n")
    first, second = bfdd.connect(), bfdd.connect()
    bfdd.close(first, second)

    bfdd.near.configure("bfd", "profile p", "transmit-interval 77")
    second.settled()
    changed = [s for s in second.sessions.values() if s.min_tx == 77000]
    bfdd.near.configure("no bfd")
    second.settled()

    assert len(changed) == FITS
    assert (len(second.of(DELETE)), len(second.sessions)) == (FITS, 70 - FITS)
    assert bfdd.near.json("show bfd peers json") in ([], {})


def test_bfdd_ends_without_deletes(bfdd):
    """bfdd closes the connection when it ends, and sends no delete before."""
    bfdd.peers(3)
    plane = bfdd.connect()

    bfdd.near.end("bfdd", signal.SIGTERM)
    eventually(lambda: plane.closed, 5)

    assert len(plane.sessions) == 3 and not plane.of(DELETE)
    bfdd.near.start("bfdd", *DPLANE)


# --- sessions (doc/bfd.md, 4) -----------------------------------------------------------------

MANY_KINDS = """\
bfd
 profile fast
  transmit-interval 50
  receive-interval 60
  detect-multiplier 5
  echo-mode
  echo transmit-interval 70
  echo receive-interval 80
 exit
 peer 192.0.2.2
 exit
 peer 192.0.2.3 interface d0
 exit
 peer 192.0.2.4 local-address 192.0.2.1 interface d0
 exit
 peer 203.0.113.5 multihop local-address 192.0.2.1
  minimum-ttl 200
 exit
 peer 203.0.113.6 multihop local-address 192.0.2.1
 exit
 peer 192.0.2.6
  echo-mode
 exit
 peer 192.0.2.7
  passive-mode
 exit
 peer 192.0.2.8
  profile fast
 exit
 peer 192.0.2.9
  shutdown
 exit
 peer 2001:db8::2
 exit
 peer fe80::2 interface d0
 exit
 peer 2001:db8:1::2 multihop local-address 2001:db8::1
 exit
 peer 192.0.2.10 interface missing
 exit
 peer 192.0.2.11 vrf missing
 exit
exit
"""


def test_what_a_session_looks_like(bfdd):
    """The message of a session has no VRF, and no interface if the peer was configured without one. Up
    to 10.2 `src` is the configured address. From 10.3 on it is an address of the interface, if the
    message has an interface."""
    first = bfdd.connect()
    bfdd.near.load(MANY_KINDS)
    first.settled()
    # Each session as its last update has it: bfdd sends an update after each line of its
    # configuration.
    seen = {str(s.dst): s for s in first.sessions.values()}

    filled = resets_the_interface(bfdd)
    d0 = int(netns.run(bfdd.here, ["cat", "/sys/class/net/d0/ifindex"], sysfs=True))
    brief = {
        peer: (s.flags, str(s.src), s.ttl, s.ifindex, s.ifname) for peer, s in seen.items()
    }
    assert brief == {
        "192.0.2.2": (0, "0.0.0.0", 255, 0, ""),
        "192.0.2.3": (0, "192.0.2.1" if filled else "0.0.0.0", 255, d0, "d0"),
        "192.0.2.4": (0, "192.0.2.1", 255, d0, "d0"),
        "203.0.113.5": (MULTIHOP, "192.0.2.1", 200, 0, ""),
        "203.0.113.6": (MULTIHOP, "192.0.2.1", 254, 0, ""),
        "192.0.2.6": (ECHO, "0.0.0.0", 255, 0, ""),
        "192.0.2.7": (PASSIVE, "0.0.0.0", 255, 0, ""),
        "192.0.2.8": (ECHO, "0.0.0.0", 255, 0, ""),
        "192.0.2.9": (SHUTDOWN, "0.0.0.0", 255, 0, ""),
        "2001:db8::2": (IPV6, "::", 255, 0, ""),
        "fe80::2": (IPV6, "2001:db8::1" if filled else "::", 255, d0, "d0"),
        "2001:db8:1::2": (IPV6 | MULTIHOP, "2001:db8::1", 254, 0, ""),
    }
    times = lambda s: tuple(s[4:9]) + (s.detect_mult, s.zero)  # noqa: E731
    assert times(seen["192.0.2.2"]) == (300000, 300000, 50000, 50000, 0, 3, 0)
    assert times(seen["192.0.2.8"]) == (50000, 60000, 70000, 80000, 0, 5, 0)
    # Sessions of a missing interface or VRF come only when a connection begins. They look complete.
    second = bfdd.connect()
    late = {str(s.dst): (s.ifindex, s.ifname) for s in second.sessions.values()}
    assert late == {"192.0.2.10": (0, ""), "192.0.2.11": (0, "")}
    assert all(m.id == 0 for m in first.messages)


def test_the_interface_is_missing_at_a_connection_and_there_after_a_hand_over(bfdd):
    """From 10.3 on bfdd forgets interface and VRF when it takes a session out of software. If a second
    connection is open when the first ends, the sessions that it takes over have them."""
    bfdd.near.load("bfd\n peer 192.0.2.3 interface d0\n exit\nexit\n")
    first = bfdd.connect()
    given = first.session("192.0.2.3")
    second = bfdd.connect()

    bfdd.close(first, second)

    lost = resets_the_interface(bfdd)
    assert (given.ifindex > 0, given.ifname) == ((False, "") if lost else (True, "d0"))
    handed = second.session("192.0.2.3")
    assert (handed.ifindex > 0, handed.ifname) == (True, "d0")


def test_each_change_of_a_session_is_the_whole_session_again(bfdd):
    """Times, modes and shutdown are updates by DP_ADD_SESSION; shutdown comes twice. If nothing changes,
    no message comes. A session ends with a DP_DELETE_SESSION that has the content of its last update."""
    bfdd.peers(1)
    plane = bfdd.connect()
    lid = plane.session("192.0.2.2").lid
    plane.report(lid, UP)

    def after(*lines):
        old = len(plane.of(ADD))
        bfdd.near.configure("bfd", *lines)
        plane.settled()
        assert set(s.lid for s in plane.of(ADD)[old:]) <= {lid}
        return [(s.flags, s.min_tx, s.min_rx, s.detect_mult) for s in plane.of(ADD)[old:]]

    peer = "peer 192.0.2.2"
    assert after(peer, "transmit-interval 400") == [(0, 400000, 300000, 3)]
    assert after(peer, "transmit-interval 400") == []
    assert after(peer, "receive-interval 500") == [(0, 400000, 500000, 3)]
    assert after(peer, "detect-multiplier 7") == [(0, 400000, 500000, 7)]
    assert after(peer, "passive-mode") == [(PASSIVE, 400000, 500000, 7)]
    assert after(peer, "no passive-mode") == [(0, 400000, 500000, 7)]
    assert after(peer, "echo-mode") == [(ECHO, 400000, 500000, 7)]
    assert bfdd.states() == {"up": 1}
    assert after(peer, "shutdown") == [(ECHO | SHUTDOWN, 400000, 500000, 7)] * 2
    assert bfdd.states() == {"shutdown": 1}
    assert after(peer, "no shutdown") == [(ECHO, 400000, 500000, 7)] * 2
    assert bfdd.states() == {"down": 1}
    bfdd.near.configure("bfd", "no " + peer)
    plane.settled()
    (gone,) = plane.of(DELETE)
    assert (gone.lid, gone.min_tx, gone.flags) == (lid, 400000, ECHO)
    assert not any(s.flags & CBIT for s in plane.of(ADD))


def test_nothing_comes_when_the_interface_of_a_session_goes_and_comes(bfdd):
    """bfdd sends neither a delete nor an update. Until the next hand-over the session has no interface."""
    netns.ip_batch(["link add t0 type veth peer name t1", "link set t0 up"], bfdd.here)
    eventually(lambda: "t0" in bfdd.near.ask("show interface brief"), 5)
    plane = bfdd.connect()
    bfdd.near.load("bfd\n peer 198.51.100.2 interface t0\n exit\nexit\n")
    peer = "peer 198.51.100.2 interface t0"
    assert plane.session("198.51.100.2").ifname == "t0"

    netns.command(["ip", "-n", bfdd.here, "link", "set", "t0", "down"])
    netns.command(["ip", "-n", bfdd.here, "link", "del", "t0"])
    eventually(lambda: "t0" not in bfdd.near.ask("show interface brief"), 5)
    plane.settled()
    assert len(plane.of(ADD)) == 1 and not plane.of(DELETE)

    def updated(interval):
        bfdd.near.configure("bfd", peer, f"transmit-interval {interval}")
        plane.settled()
        return plane.session("198.51.100.2").ifname

    eventually(lambda: updated(400) == updated(401) == "", 5, what="bfdd knows that t0 has gone")
    netns.ip_batch(["link add t0 type veth peer name t1", "link set t0 up"], bfdd.here)
    eventually(lambda: "t0" in bfdd.near.ask("show interface brief"), 5)
    assert updated(402) == ""
    other = bfdd.connect()
    bfdd.close(plane, other)
    assert other.session("198.51.100.2").ifname == "t0"
    netns.command(["ip", "-n", bfdd.here, "link", "del", "t0"])


# --- states and other messages of ours (doc/bfd.md, 5 and 6) ----------------------------------


def test_bfdd_stores_each_state_that_it_is_told_and_tells_clients(bfdd):
    """bfdd also stores Init, a repeated state and an unknown number, because it has no state machine.
    It ignores an unknown session."""
    bfdd.peers(1)
    plane = bfdd.connect()
    lid = plane.session("192.0.2.2").lid

    def after(state, **words):
        plane.report(lid, state, **words)
        plane.settled()
        return bfdd.status()["status"], bfdd.counts()["192.0.2.2"]

    assert after(INIT) == ("init", (0, 0, 1))
    assert after(UP) == ("up", (1, 0, 2))
    assert after(UP, tx=1000000, mult=9, rid=5) == ("up", (1, 0, 3))
    row = bfdd.status()
    keys = ("remote-transmit-interval", "remote-detect-multiplier", "remote-id")
    assert [row[k] for k in keys] == [1000, 9, 5]
    assert after(DOWN, diagnostic=1) == ("down", (1, 1, 4))
    assert bfdd.status()["remote-diagnostic"] == "control detection time expired"
    assert after(ADMIN_DOWN) == ("shutdown", (1, 1, 5))
    assert after(7) == ("unknown", (1, 1, 6))
    plane.report(lid + 1, UP)
    assert after(UP) == ("up", (2, 1, 7))


def test_bfdd_puts_pieces_of_messages_together_and_stands_still_meanwhile(bfdd):
    """bfdd reads a message that comes octet by octet. While a part is missing, it does nothing else."""
    bfdd.peers(1)
    plane = bfdd.connect()
    lid = plane.session("192.0.2.2").lid

    plane.send(state_message(lid, UP), piece=1)
    plane.settled()
    assert bfdd.status()["status"] == "up"
    down = state_message(lid, DOWN)
    plane.send(down[:20])
    assert bfdd.blocked()
    plane.send(down[20:])
    plane.settled()
    assert bfdd.status()["status"] == "down"


def test_a_question_for_counters_blocks_bfdd_until_any_message_comes(bfdd):
    """The answer is the first message with the id of the question, whatever its session. A message
    with another id ends the wait as well, without new counters. bfdd shows the number of echo octets
    sent as the number of echo packets sent."""
    bfdd.peers(1)
    plane = bfdd.connect()
    asked = threading.Event()
    numbers = []

    def silent(lid, number):
        numbers.append(number)
        asked.set()
        return b""

    def counted():
        (row,) = bfdd.near.json("show bfd peers counters json")
        return [row[f"{kind}-packet-{direction}"] for kind in ("control", "echo") for direction in ("input", "output")]

    plane.answer = silent
    seen = []
    thread = threading.Thread(target=lambda: seen.append(counted()))
    thread.start()
    assert asked.wait(10)
    assert bfdd.blocked() and not seen
    plane.send(counters_message(12345, numbers[-1], range(1, 9)))
    thread.join()
    assert seen == [[2, 4, 6, 7]]

    plane.answer = lambda lid, number: counters_message(lid, number + 1, range(11, 19))
    assert counted() == [2, 4, 6, 7]
    plane.answer = lambda lid, number: state_message(lid, UP)
    assert counted() == [2, 4, 6, 7]
    assert bfdd.status()["status"] == "up"
    # The late answer to the first question is no answer to the next.
    plane.answer = lambda lid, number: counters_message(lid, number, range(21, 29))
    assert counted() == [22, 24, 26, 27]


def test_unknown_types_are_skipped_and_any_number_of_messages_is_read(bfdd):
    """Types that bfdd does not expect change nothing. 2,000 reports in one write are all handled."""
    bfdd.peers(1)
    plane = bfdd.connect()
    lid = plane.session("192.0.2.2").lid

    plane.send(message(9, b"1234") + message(ADD, bytes(132)) + message(ECHO_REPLY, bytes(16)))
    plane.send(b"".join(state_message(lid, n) for _ in range(1000) for n in (UP, DOWN)))
    sent, answered = plane.settled(20)

    assert answered >= sent
    assert bfdd.counts()["192.0.2.2"] == (1000, 1000, 2000)


def test_a_message_of_another_version_makes_bfdd_deaf_to_that_connection_for_ever(bfdd):
    """bfdd neither closes this connection nor reads it again. The sessions stay with the connection even
    after its end."""
    bfdd.peers(1)
    plane = bfdd.connect()
    lid = plane.session("192.0.2.2").lid

    plane.send(message(STATE, bytes(28), version=2))
    plane.report(lid, UP)
    eventually(lambda: "bad data plane client version" in _log(bfdd), 5)
    assert not plane.closed and bfdd.states() == {"down": 1}
    other = bfdd.connect()
    plane.close()

    never(lambda: other.sessions or bfdd.connections() != 2, 1)


def test_a_message_of_length_0_hangs_bfdd(bfdd):
    """The program uses a whole CPU and no longer answers."""
    bfdd.peers(1)
    plane = bfdd.connect()

    plane.send(message(STATE, length=0))

    assert bfdd.blocked(2)
    assert procs.is_alive(bfdd.near.running["bfdd"].pid)


def _log(bed):
    """Return what bfdd has logged."""
    with open(f"{bed.near.dir}/bfdd.log", encoding="utf-8") as file:
        return file.read()


# --- a client (doc/bfd.md, 7) -----------------------------------------------------------------

BGP = """\
router bgp {asn}
 no bgp ebgp-requires-policy
 neighbor {peer} remote-as {remote}
 neighbor {peer} timers connect 1
{more}exit
"""


@pytest.fixture
def bgp(bfdd):
    """Two bgpd. The near bgpd lets bfdd watch the far bgpd."""
    far = BGP.format(asn=65002, peer="192.0.2.1", remote=65001, more="")
    near = BGP.format(asn=65001, peer="192.0.2.2", remote=65002, more=" neighbor 192.0.2.2 bfd\n")
    bfdd.far.start_all("bgpd")
    bfdd.far.load(far)
    bfdd.near.start("bgpd")
    bfdd.near.load(near)
    try:
        yield bfdd
    finally:
        bfdd.near.end("bgpd", signal.SIGKILL)
        bfdd.far.destroy()


def test_bgp_survives_a_hand_over_and_ends_3_s_after_the_last_connection(bgp):
    """First comes a session without source and interface. Another session replaces it when the
    source is known. BGP of 10.3 waits for Up. bfdd tells its clients the states that are
    reported."""

    def peer():
        return bgp.near.json("show bgp neighbors 192.0.2.2 json")["192.0.2.2"]

    def heard(state):
        return eventually(lambda: peer()["peerBfdInfo"]["status"] == state, 5, what=f"bgpd: {state}")

    first = bgp.connect()

    def established():
        first.report_all(UP)
        return peer()["bgpState"] == "Established"

    eventually(established, 30)
    known = lambda: [s for s in first.sessions.values() if str(s.src) == "192.0.2.1"]  # noqa: E731
    session = eventually(known, 5, what="the session has a source")[0]
    assert session.ifname == "d0"
    assert first.of(ADD)[0].lid != session.lid
    first.report(session.lid, UP)
    heard("Up")
    second = bgp.connect()

    bgp.close(first, second)
    assert session.lid in second.sessions
    never(lambda: peer()["peerBfdInfo"]["status"] != "Up", 1)
    second.report(session.lid, UP)
    second.settled()
    assert bgp.counts()["192.0.2.2"][1] == 0
    established = peer()["connectionsDropped"]

    started = time.monotonic()
    second.close()
    eventually(lambda: peer()["connectionsDropped"] > established, 10, what="BGP ends")
    assert time.monotonic() - started > 2.9


def test_a_client_hears_of_a_session_that_came_out_of_software(bgp):
    """The session was in software before the connection. In all versions bgpd is notified of Up,
    although bfdd may have forgotten the interface."""

    def peer():
        return bgp.near.json("show bgp neighbors 192.0.2.2 json")["192.0.2.2"]

    if bgp.near.version[:2] == (10, 3):
        pytest.skip("BGP of 10.3 waits for BFD, so the session has no interface yet")
    eventually(lambda: peer()["bgpState"] == "Established", 30)
    eventually(lambda: bgp.status()["interface"] == "d0", 5, what="the session has an interface")
    plane = bgp.connect()
    (session,) = plane.sessions.values()
    assert session.ifname == ("" if resets_the_interface(bgp) else "d0")

    plane.report(session.lid, UP)

    eventually(lambda: peer()["peerBfdInfo"]["status"] == "Up", 5, what="bgpd hears of Up")
