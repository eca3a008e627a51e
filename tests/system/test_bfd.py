# SPDX-License-Identifier: BSD-3-Clause
"""BFD in the dataplane: bfdd tells its sessions to the daemon, which keeps them up with a peer that
is another bfdd, and takes a dead next hop out of its groups."""

import os
import shutil
import signal

import pytest

from lib import netns
from lib.frr import Frr, Neighbor
from lib.wait import eventually
from router import Router, running

PORT = 50700
OURS = """\
fpm address 127.0.0.1
ip route 198.51.100.0/24 {wan.peer4}
ip route 198.51.100.0/24 {alt.peer4}
bfd
 peer {wan.peer4} interface wan0
  transmit-interval {ms}
  receive-interval {ms}
 exit
exit
"""
THEIRS = """\
bfd
 peer {wan.ip4} interface wan
  transmit-interval {ms}
  receive-interval {ms}
 exit
exit
"""


class Bfd:
    """Our router with bfdd in front of it, and a peer with a bfdd of its own."""

    def __init__(self, router, ms=50):
        self.router, wan, alt = router, router.wires["wan"], router.wires["alt"]
        netns.ip_batch(
            [
                "link set lo up",
                f"addr add {wan.peer4}/26 dev wan",
                f"addr add {alt.peer4}/26 dev alt",
            ],
            router.far,
        )
        source = f"{router.dir}/frr.d"
        os.makedirs(source, exist_ok=True)
        options = f'bfdd_options="-A 127.0.0.1 --dplaneaddr ipv4:127.0.0.1:{PORT}"\n'
        fpm = 'zebra_options="-A 127.0.0.1 -s 90000000 -M dplane_fpm_nl"\n'
        words = {"wan": wan, "alt": alt, "ms": ms}
        for name, text in {
            "daemons": "bfdd=yes\n" + fpm + options,
            "vtysh.conf": "hostname r1\n",
            "frr.conf": OURS.format(**words),
            "r2.conf": THEIRS.format(**words),
        }.items():
            with open(f"{source}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        self.ours = Frr(router.ctl, source, f"{router.dir}/frr1", router.dir)
        self.theirs = Neighbor(
            "r2", router.far, source, ["bfdd"], f"{router.dir}/frr2", router.dir
        )
        self.ours.start()
        self.theirs.start()

    def row(self):
        """Return the row of the session, or None."""
        rows = self.router.control.ask("bfd")
        return rows[0] if rows else None

    def state(self):
        row = self.row()
        return row and row["state"]

    def up(self):
        """Wait until both sides have the session Up."""
        eventually(lambda: self.state() == "up", 20, what="our side is up")
        eventually(lambda: self.peer_row()["status"] == "up", 20, what="the peer is up")

    def peer_row(self):
        """Return what the peer's bfdd says of the session."""
        return self.theirs.json("show bfd peers json")[0]

    def close(self):
        for frr in (self.ours, self.theirs):
            frr.stop(*frr.daemons)


@pytest.fixture(scope="module")
def bfd():
    if shutil.which("vtysh") is None or not os.path.exists("/usr/lib/frr/bfdd"):
        pytest.skip("no bfdd: apt-get install frr")
    router = Router(name="bfd", supervised=True)
    with running(router) as made:
        made.stop()
        made.edit_config("log-level: info", f'bfd: {{dplane: "127.0.0.1:{PORT}"}}\nlog-level: info')
        made.start()
        made.ready()
        made.zebra.close()
        bed = Bfd(made)
        yield bed
        bed.close()


def test_a_session_of_bfdd_comes_up_with_a_peer_and_the_forwarders_keep_it(bfd):
    bfd.up()
    row = bfd.row()
    assert row["by"] == "forwarders" and row["reason"] is None, row
    before = row["rx_packets"]
    eventually(lambda: bfd.row()["rx_packets"] >= before + 40, 20, what="packets are counted")
    ours = bfd.ours.json("show bfd peers json")[0]
    assert ours["status"] == "up", ours
    assert bfd.peer_row()["remote-id"] == row["discr"]


def hops(bfd):
    """Return {address: state} of the next hops of the route with two of them."""
    rows = bfd.router.control.ask("nexthops")
    wires = bfd.router.wires
    ours = {wires["wan"].peer4, wires["alt"].peer4}
    return {row["via"]: row["state"] for row in nexthops_of(rows) if row.get("via") in ours}


def nexthops_of(rows):
    for row in rows:
        yield row
        yield from row.get("nexthops", ())


def test_a_next_hop_leaves_its_group_when_its_session_fails_and_comes_back_with_it(bfd):
    wan, alt = (bfd.router.wires[name].peer4 for name in ("wan", "alt"))
    bfd.up()
    eventually(lambda: hops(bfd).get(wan) == "forwarding", 20, what="both hops are used")
    bfd.theirs.kill("bfdd", signal.SIGSTOP)
    eventually(lambda: bfd.state() == "down", 10, what="the session fails")
    row = bfd.row()
    assert row["pruned"], row
    eventually(lambda: hops(bfd).get(wan) == "bfd-down", 10, what="the hop is left out")
    assert hops(bfd)[alt] == "forwarding", hops(bfd)
    bfd.theirs.kill("bfdd", signal.SIGCONT)
    bfd.up()
    assert not bfd.row()["pruned"]
    eventually(lambda: hops(bfd).get(wan) == "forwarding", 10, what="the hop is used again")


def test_a_shutdown_of_the_peer_is_no_failure_and_prunes_nothing(bfd):
    wan = bfd.router.wires["wan"]
    bfd.up()
    peer = ["bfd", f"peer {wan.ip4} interface wan"]
    bfd.theirs.configure(*peer, "shutdown")
    eventually(lambda: bfd.state() == "down", 10, what="the session is down")
    assert not bfd.row()["pruned"]
    assert hops(bfd)[wan.peer4] == "forwarding"
    bfd.theirs.configure(*peer, "no shutdown")
    bfd.up()


def downs(bfd):
    """Return how often the peer has seen the session go down."""
    return bfd.theirs.json("show bfd peers counters json")[0]["session-down"]


def test_a_planned_restart_does_not_end_a_session_of_three_times_50_ms(bfd):
    bfd.up()
    before = downs(bfd)
    discr = bfd.row()["discr"]
    assert bfd.router.fpmctl("restart").returncode == 0
    eventually(lambda: bfd.row() is not None, 20, what="the successor has the session")
    bfd.up()
    assert downs(bfd) == before and bfd.row()["discr"] == discr
    assert bfd.ours.json("show bfd peers json")[0]["status"] == "up"


def test_a_crash_does_not_end_a_session_of_three_times_700_ms(bfd):
    for frr, peer in (
        (bfd.ours, f"peer {bfd.router.wires['wan'].peer4} interface wan0"),
        (bfd.theirs, f"peer {bfd.router.wires['wan'].ip4} interface wan"),
    ):
        frr.configure("bfd", peer, "transmit-interval 700", "receive-interval 700")
    eventually(
        lambda: (row := bfd.row())["state"] == "up" and row["detect_us"] == 2100000,
        20,
        what="the timers are agreed",
    )
    before, discr = downs(bfd), bfd.row()["discr"]
    was = bfd.router.daemon.crash(signal.SIGKILL)
    bfd.router.daemon.back(was)
    bfd.up()
    assert downs(bfd) == before and bfd.row()["discr"] == discr
    assert bfd.ours.json("show bfd peers json")[0]["status"] == "up"
