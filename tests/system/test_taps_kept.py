# SPDX-License-Identifier: BSD-3-Clause
"""A TAP that somebody has deleted, moved away or renamed is kept like any other: the daemon
dies or is restarted, and it has its carrier, index, name and addresses all the while."""

import os
import signal
import socket

import pytest

from lib import netns, procs
from lib.linkwatch import LinkWatch
from lib.wait import eventually
from test_restart import come_back, taps

NET, HOST = "198.51.100.0/24", "198.51.100.9"
TWO_QUEUES = "net_af_packet,iface=p-wan,qpairs=2"


def made_anew(dut, wire, *lines):
    """What `lines` of ip(8) do to its TAP, and that there is another then."""
    index = dut.link_row(wire.tap)["ifindex"]
    dut.ip(*lines)
    eventually(
        lambda: any(r["ifname"] == wire.tap and r["ifindex"] != index for r in dut.links()), 10
    )


def deleted(dut, wire):
    """`ip link del`."""
    made_anew(dut, wire, f"link del {wire.tap}")


def moved(dut, wire):
    """To another namespace, where it lives on, and nobody keeps it any more."""
    made_anew(dut, wire, f"link set {wire.tap} netns {dut.far} name stolen")
    netns.ip_batch(["link set stolen up"], dut.far)
    eventually(lambda: "NO-CARRIER" in netns.command(["ip", "-n", dut.far, "link"]), 5)


def rename(dut, **names):
    """TAPs that are down meanwhile, as kernels before 6.2 want it: renamed all at once."""
    olds, news = list(names), list(names.values())
    dut.ip(
        *(f"link set {old} down" for old in olds),
        *(f"link set {old} name away{n}" for n, old in enumerate(olds)),
        *(f"link set away{n} name {new} up" for n, new in enumerate(news)),
    )
    for wire in dut.wires.values():
        wire.tap = names.get(wire.tap, wire.tap)


def renamed(dut, wire):
    """To a name that no port has."""
    rename(dut, **{wire.tap: "uplink"})


def swapped(dut, wire):
    """With that of another port."""
    rename(dut, **{wire.tap: "alt0", "alt0": wire.tap})


def whole_again(dut, wire):
    """Addresses, neighbors and a route by it, as the operator and FRR give them back; zebra
    goes away, so that what is forwarded from here on is by the checkpoint."""
    dut.kernel_defaults()
    eventually(lambda: all(r["link"] == "up" for r in dut.control.ask("ports")), 5)
    # The kernel takes as much as a second to say so.
    names = {w.tap for w in dut.wires.values()}
    eventually(lambda: all(taps(dut)[name]["operstate"] == "UP" for name in names), 5)
    eventually(lambda: (dut.neighbor_row(wire.peer4, wire) or {}).get("mac") == wire.mac, 5)
    dut.zebra.connect()
    dut.route(NET, via=wire.peer4, wire=wire)
    eventually(lambda: dut.fpm()["checkpoint"]["routes"] == 1, 5)
    forwards(dut, wire)
    dut.zebra.close()


def forwards(dut, wire):
    """A packet by the route goes out there."""
    lan = dut.wires["lan"]
    dut.forwarded(lan, lan.probe(HOST), wire)


def killed(dut):
    """kill -9, and the next one."""
    come_back(dut, dut.daemon.crash())


def restarted(dut):
    """`fpmctl restart`, and the next one."""
    was = dut.daemon.pid()
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)
    eventually(lambda: not procs.is_alive(was), 10, 0.01, "the old one ends")


@pytest.mark.parametrize("mishap", [deleted, moved, renamed, swapped])
@pytest.mark.parametrize("ends", [[killed], [restarted, killed]])
def test_it_outlives_the_daemon(kept, mishap, ends):
    """Not a carrier is lost, and all is as it was: after a crash, after a planned restart, and
    after a crash of what came of that."""
    dut, wan = kept, kept.wires["wan"]
    mishap(dut, wan)
    whole_again(dut, wan)
    before = taps(dut)

    with LinkWatch(dut.ctl) as watch:
        for end in ends:
            end(dut)
            forwards(dut, wan)

    assert watch.lost_carrier() == []
    assert taps(dut) == before
    assert "kept tap unusable" not in dut.daemon.log(1000)
    assert dut.control.ask("audit")[-1]["differences"] == 0
    assert dut.stop() == 0


def test_a_name_that_was_made_the_ports_own(kept):
    """Somebody renames a TAP, then writes that name into the file: the port of the new name
    goes on with it, over a planned restart and over a crash."""
    dut, wan = kept, kept.wires["wan"]
    renamed(dut, wan)
    whole_again(dut, wan)
    before = taps(dut)
    dut.edit_config("tap: wan0", "tap: uplink")
    done = dut.fpmctl("config", "reload")
    assert done.returncode != 0 and "`fpmctl restart` would use it under this name" in done.stderr

    with LinkWatch(dut.ctl) as watch:
        for end in (restarted, killed):
            end(dut)
            forwards(dut, wan)

    assert watch.lost_carrier() == []
    assert taps(dut) == before
    assert dut.port_row(wan)["link"] == "up"
    assert "unused descriptor removed name=tap-wan0" in dut.daemon.log(1000)


def test_a_renamed_tap_obeys(kept):
    """`port set` finds it by its port, for another MTU and for one that is opened anew behind it; `port del` deletes it."""
    dut, wan = kept, kept.wires["wan"]
    renamed(dut, wan)
    whole_again(dut, wan)
    before = dut.link_row("uplink")

    with LinkWatch(dut.ctl) as watch:
        for words in (["mtu", "1400"], ["mtu", "1500"], ["device", TWO_QUEUES]):
            done = dut.fpmctl("port", "set", "wan0", *words)
            assert done.returncode == 0, done.stderr
            assert words[0] != "mtu" or dut.link_row("uplink")["mtu"] == int(words[1])
        eventually(lambda: all(r["link"] == "up" for r in dut.control.ask("ports")), 5)
        after = dut.link_row("uplink")
        killed(dut)

    assert (after["ifindex"], after["address"]) == (before["ifindex"], before["address"])
    assert [line for line in watch.lost_carrier() if "uplink" not in line] == []
    assert "wan0" not in taps(dut)
    assert dut.fpmctl("port", "del", "wan0").returncode == 0
    assert "uplink" not in taps(dut)


def test_one_deleted_while_a_successor_prepares_is_made_anew(kept):
    """It was adopted by then, and the kernel does not speak of it any more."""
    dut, wan = kept, kept.wires["wan"]
    was = dut.daemon.pid()
    index = dut.link_row(wan.tap)["ifindex"]
    restarts = dut.fpmctl_begin("restart")

    def said():
        return dut.daemon.log(1000).partition("main: successor started")[2]

    eventually(said, 5, 0.001)
    procs.stand_still(was)
    try:
        eventually(lambda: said().count("port: up") == len(dut.wires), 20, 0.01)
        dut.ip(f"link del {wan.tap}")
    finally:
        procs.signal_pid(was, signal.SIGCONT)
    dut.control.close()
    dut.daemon.back(was)
    assert restarts.wait(20) == 0
    eventually(lambda: not procs.is_alive(was), 10, 0.01, "the old one ends")
    eventually(lambda: wan.tap in taps(dut) and dut.link_row(wan.tap)["ifindex"] != index, 10)

    eventually(lambda: dut.port_row(wan)["link"] == "up", 10)
    whole_again(dut, wan)
    with LinkWatch(dut.ctl) as watch:
        killed(dut)
        forwards(dut, wan)
    assert watch.lost_carrier() == []


def test_nobody_keeps_a_renamed_tap_over_a_stop(kept):
    """A stop is a stop: the next start finds the port's TAP by its name, or makes one. By the
    name that the file has by then, the renamed one is found, with its addresses."""
    dut, wan = kept, kept.wires["wan"]
    renamed(dut, wan)
    whole_again(dut, wan)
    assert dut.stop() == 0
    before = taps(dut)["uplink"]

    dut.daemon.start()
    assert taps(dut)["wan0"]["addr_info"] != before["addr_info"]
    assert dut.stop() == 0
    dut.edit_config("tap: wan0", "tap: uplink")
    dut.daemon.start()

    after = taps(dut)["uplink"]
    assert (after["ifindex"], after["address"]) == (before["ifindex"], before["address"])
    whole_again(dut, wan)


def test_nobody_takes_a_dead_supervisors_place(own_dut):
    """Its name is in the abstract namespace, anybody's from then on: who has it is given no TAP and
    no checkpoint, by no daemon that comes after, either."""
    dut = own_dut(supervised=True)
    dut.start()
    with open(f"/proc/{dut.daemon.pid()}/environ", encoding="utf-8") as file:
        env = dict(row.partition("=")[::2] for row in file.read().split("\0"))
    name = "\0" + env["NOTIFY_SOCKET"][1:]
    dut.daemon.process.kill()
    dut.daemon.process.wait()

    with netns.entered(dut.dp):
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with stranger:
        stranger.bind(name)
        dut.zebra.close()
        for tap, restarts in (("new0", True), ("new1", True), ("new2", False)):
            added = dut.fpmctl("port", "add", tap, "device", "net_null0,no-rx=1")
            assert added.returncode == 0, added.stderr
            if restarts:
                assert dut.fpmctl("restart").returncode == 0
                dut.control.close()
        procs.signal_pid(dut.daemon.pid(), signal.SIGTERM)
        eventually(lambda: not os.path.exists(dut.socket), 10)
        with pytest.raises(BlockingIOError):
            stranger.recv(100, socket.MSG_DONTWAIT)
