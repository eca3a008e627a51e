# SPDX-License-Identifier: BSD-3-Clause
"""BFD in the dataplane with BIRD 2 as the peer, a program that shares no code with bfdd, and a
static route that follows BFD, in an FRR that has such routes."""

import signal

import pytest

from lib import bird, frr_at, machine, netns
from lib.dut import Dut
from lib.procs import signal_pid
from lib.wait import eventually
from router import Router, running

PORT = 50700
STATIC = "203.0.113.0/24"
OPTIONS = ["--dplaneaddr", f"ipv4:127.0.0.1:{PORT}"]
FAST = ("transmit-interval 50", "receive-interval 50")
# Pairs of addresses: ours, the peer's.
LINK4, LINK6 = ("10.198.0.1", "10.198.0.2"), ("2001:db8:198::1", "2001:db8:198::2")
FAR4, FAR6 = ("10.198.1.1", "10.198.2.1"), ("2001:db8:1981::1", "2001:db8:1982::1")
BIRD = f"""\
router id 192.0.2.2;
protocol device {{}}
protocol bfd b1 {{
  interface "wan" {{ interval 50 ms; multiplier 3; }};
  multihop {{ interval 50 ms; multiplier 3; }};
  neighbor {LINK4[0]} dev "wan" local {LINK4[1]};
  neighbor {LINK6[0]} dev "wan" local {LINK6[1]};
  neighbor {FAR4[0]} local {FAR4[1]} multihop on;
  neighbor {FAR6[0]} local {FAR6[1]} multihop on;
}}
"""
PEERS = [LINK4[1], LINK6[1], FAR4[1], FAR6[1]]


def peerings():
    """Return the configuration of bfdd: a session with each address of the peer."""
    lines = ["bfd"]
    for ours, peer in (LINK4, LINK6):
        lines += [f"peer {peer} local-address {ours} interface wan0", *FAST, "exit"]
    for ours, peer in (FAR4, FAR6):
        lines += [f"peer {peer} multihop local-address {ours}", *FAST]
        lines += ["minimum-ttl 60", "exit"]  # BIRD sends over several hops with a TTL of 64
    return lines


class Bed:
    """Our router with a bfdd of `root`, and BIRD."""

    def __init__(self, router, root):
        self.router = router
        self.frr = frr_at.FrrAt(root, router.ctl, f"{router.dir}/ours")
        self._addresses()
        self.frr.start_all("staticd", "bfdd", zebra=["-M", "dplane_fpm_nl"], bfdd=OPTIONS)
        self.frr.configure("fpm address 127.0.0.1", *peerings())
        path = f"{router.dir}/bird.conf"
        with open(path, "w", encoding="ascii") as file:
            file.write(BIRD)
        self.bird = bird.Bird(router.far, path, f"{router.dir}/bird", router.dir)
        self.bird.start()

    def _addresses(self):
        router = self.router
        netns.sysctl(router.far, {"net.ipv6.conf.wan.disable_ipv6": 0})
        for space, dev, link4, link6, far4, far6 in (
            (router.ctl, "wan0", LINK4[0], LINK6[0], FAR4[0], FAR6[0]),
            (router.far, "wan", LINK4[1], LINK6[1], FAR4[1], FAR6[1]),
        ):
            lines = ["link set lo up", f"addr add {link4}/24 dev {dev}"]
            lines += [f"addr add {link6}/64 dev {dev} nodad", f"addr add {far4}/32 dev lo"]
            netns.ip_batch([*lines, f"addr add {far6}/128 dev lo nodad"], space)
        for space, to4, via4, to6, via6 in (
            (router.ctl, FAR4[1], LINK4[1], FAR6[1], LINK6[1]),
            (router.far, FAR4[0], LINK4[0], FAR6[0], LINK6[0]),
        ):
            lines = [f"route add {to4}/32 via {via4}", f"-6 route add {to6}/128 via {via6}"]
            netns.ip_batch(lines, space)

    def _shown(self):
        """Return {our address: (state, time of its last change)} as BIRD shows it."""
        lines = self.bird.birdc("show", "bfd", "sessions").splitlines()
        mine = [pair[0] for pair in (LINK4, LINK6, FAR4, FAR6)]
        rows = [words for words in map(str.split, lines) if words and words[0] in mine]
        return {words[0]: (words[2], words[3]) for words in rows}

    def sessions(self):
        """Return {our address: state} as BIRD shows it."""
        return {address: state for address, (state, _) in self._shown().items()}

    def lives(self):
        """Return what a change of a session changes: {peer: (our number of failures, our
        discriminator)}, and {our address: second of the day of BIRD's last change}."""
        ours = {peer: (row["downs"], row["discr"]) for peer, row in self.up().items()}
        return ours, {address: second_of(since) for address, (_, since) in self._shown().items()}

    def rows(self):
        return {row["peer"]: row for row in self.router.control.ask("bfd")}

    def _bird_is_up(self):
        if list(self.sessions().values()) != ["Up"] * 4:
            ours = {peer: (row["state"], row["reason"]) for peer, row in self.rows().items()}
            raise LookupError(f"BIRD: {self.sessions()}, ours: {ours}")
        return True

    def bfdd_is_up(self):
        """Return True if bfdd has all sessions, and all of them Up."""
        return [peer["status"] for peer in self.frr.json("show bfd peers json")] == ["up"] * 4

    def up(self):
        """Wait until both sides have all sessions Up, at the agreed pace. Returns our rows."""
        eventually(self._bird_is_up, 30, what="BIRD has all Up")
        eventually(
            lambda: {row["detect_us"] for row in self.rows().values()} == {150000},
            20,
            what="the timers are agreed",
        )
        return self.rows()

    def close(self):
        self.frr.destroy()
        self.bird.stop()


@pytest.fixture(scope="module", params=["installed", "newer"])
def bed(request):
    if bird.why_not():
        pytest.skip(bird.why_not())
    root = "/" if request.param == "installed" else frr_at.NEWER
    if not frr_at.present(root):
        pytest.skip("no bfdd: apt-get install frr" if root == "/" else "no FRR: make frr-root")
    with running(Router(name=f"bird-{request.param}"[:8], supervised=True)) as router:
        router.stop()
        router.zebra.close()
        router.edit_config("log-level: info", f'bfd: {{dplane: "127.0.0.1:{PORT}"}}\nlog-level: info')
        router.edit_config("fpm:\n", "fpm:\n  users: any\n")  # another root has another user frr
        Dut.start(router)
        both = Bed(router, root)
        try:
            yield both
        finally:
            both.close()


def second_of(time):
    """Return the second of the day of a time such as 16:14:20.221."""
    hours, minutes, seconds = time.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def same(before, after):
    """Return True if lives() has not changed. A session that goes down is Up again after 150 ms at
    least. BIRD computes a time again for each answer, and it may differ by some milliseconds."""
    (ours, theirs), (ours_now, theirs_now) = before, after
    since = {address: pytest.approx(second, abs=0.05) for address, second in theirs.items()}
    return ours == ours_now and theirs_now == since


def kept(bed, act):
    """Assert that no session changes its state, for us or for BIRD, or gets another discriminator while
    act() runs. A program that gets no CPU for 150 ms loses its sessions: if other programs had the
    CPUs, repeat act()."""
    for _ in range(5):
        share = machine.Share(lambda: [bed.bird.pid(), bed.router.daemon.pid()])
        before = bed.lives()
        act()
        after = bed.lives()
        if same(before, after) or not share.was_taken(0.05):
            break
    assert same(before, after), (before, after)


def test_sessions_with_bird_come_up_over_one_and_several_hops(bed):
    rows = bed.up()
    assert set(rows) == set(PEERS)
    assert {row["by"] for row in rows.values()} == {"forwarders"}
    assert [rows[peer]["multihop"] for peer in PEERS] == [False, False, True, True]

    def forty_packets():
        before = {peer: row["rx_packets"] for peer, row in bed.rows().items()}
        eventually(
            lambda: all(row["rx_packets"] > before[p] + 40 for p, row in bed.rows().items()),
            20,
            what="packets of BIRD are counted",
        )

    kept(bed, forty_packets)  # all of this time the intervals hold, on both sides


def test_our_shutdown_is_no_failure_for_bird_and_back_again(bed):
    bed.up()
    peer = f"peer {LINK4[1]} local-address {LINK4[0]} interface wan0"
    bed.frr.configure("bfd", peer, "shutdown")
    eventually(lambda: bed.sessions()[LINK4[0]] == "Down", 10, what="BIRD is told AdminDown")
    bed.frr.configure("bfd", peer, "no shutdown")
    bed.up()


def test_a_silent_bird_is_detected_and_comes_back(bed):
    before = {peer: row["downs"] for peer, row in bed.up().items()}
    signal_pid(bed.bird.pid(), signal.SIGSTOP)
    try:
        eventually(
            lambda: {row["state"] for row in bed.rows().values()} == {"down"}, 10, what="all are Down"
        )
    finally:
        signal_pid(bed.bird.pid(), signal.SIGCONT)
    rows = bed.up()
    assert all(row["downs"] > before[peer] for peer, row in rows.items())


def test_a_planned_restart_and_a_restart_of_bfdd_are_not_seen_by_bird(bed):
    """BIRD has its sessions Up without a change of state while the daemon, and then bfdd, is ended and
    started again. The new bfdd has them Up, too."""

    def restart():
        assert bed.router.fpmctl("restart").returncode == 0
        eventually(lambda: len(bed.rows()) == 4, 20, what="the successor has the sessions")

    def restart_bfdd():
        bed.frr.end("bfdd")
        bed.frr.start("bfdd", *OPTIONS)
        bed.frr.configure(*peerings())
        eventually(bed.bfdd_is_up, 30, what="the new bfdd has all Up")

    kept(bed, restart)
    kept(bed, restart_bfdd)


def test_a_static_route_goes_and_comes_with_its_session(bed):
    """A static route with BFD, which FRR has from 8.5 on, leaves the FIB while its next hop is dead
    on a link that stays up."""
    if bed.frr.version < (8, 5):
        pytest.skip("FRR has static routes with BFD from 8.5 on")
    bed.up()
    bed.frr.configure("bfd", "profile fast", *FAST)
    bed.frr.configure(f"ip route {STATIC} {LINK4[1]} bfd profile fast")
    there = lambda: [r for r in bed.router.control.ask("routes") if r["prefix"] == STATIC]  # noqa: E731
    eventually(there, 30, what="the route is in the FIB")
    signal_pid(bed.bird.pid(), signal.SIGSTOP)
    try:
        eventually(lambda: not there(), 10, what="the route is gone")
    finally:
        signal_pid(bed.bird.pid(), signal.SIGCONT)
    eventually(there, 30, what="the route is back")
    bed.frr.configure(f"no ip route {STATIC} {LINK4[1]} bfd profile fast")
    eventually(lambda: not there(), 10, what="the route is deleted")
