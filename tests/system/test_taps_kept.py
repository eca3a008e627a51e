# SPDX-License-Identifier: BSD-3-Clause
"""A TAP that was deleted, moved or renamed by hand is kept like any other: over a crash or a
restart of the daemon it has its carrier, index, name and addresses."""

import os
import signal
import socket

import pytest

from lib import netns, procs
from lib.freeze import frozen
from lib.linkwatch import LinkWatch
from lib.wait import eventually
from test_restart import come_back, taps

NET, HOST = "198.51.100.0/24", "198.51.100.9"
TWO_QUEUES = "net_af_packet,iface=p-wan,qpairs=2"


def made_anew(dut, wire, *lines):
    """Run `lines` with ip(8) on the TAP of a wire, and wait until the daemon has made
    another."""
    index = dut.link_row(wire.tap)["ifindex"]
    dut.ip(*lines)
    eventually(
        lambda: any(r["ifname"] == wire.tap and r["ifindex"] != index for r in dut.links()), 10
    )


def deleted(dut, wire):
    """Delete the TAP with `ip link del`."""
    made_anew(dut, wire, f"link del {wire.tap}")


def moved(dut, wire):
    """Move the TAP to another namespace. It stays there, and no program holds it."""
    made_anew(dut, wire, f"link set {wire.tap} netns {dut.far} name stolen")
    netns.ip_batch(["link set stolen up"], dut.far)
    eventually(lambda: "NO-CARRIER" in netns.command(["ip", "-n", dut.far, "link"]), 5)


def rename(dut, **names):
    """Rename TAPs, all at once. They are down meanwhile, because kernels before 6.2 require
    it."""
    olds, news = list(names), list(names.values())
    dut.ip(
        *(f"link set {old} down" for old in olds),
        *(f"link set {old} name away{n}" for n, old in enumerate(olds)),
        *(f"link set away{n} name {new} up" for n, new in enumerate(news)),
    )
    for wire in dut.wires.values():
        wire.tap = names.get(wire.tap, wire.tap)


def renamed(dut, wire):
    """Rename the TAP to a name that no port has."""
    rename(dut, **{wire.tap: "uplink"})


def swapped(dut, wire):
    """Swap the names of this TAP and another port's TAP."""
    rename(dut, **{wire.tap: "alt0", "alt0": wire.tap})


def is_complete(row):
    """Return True if an interface is up and has its link-local address. The kernel needs up to a
    second for the state, and two for the check that no other host has the address."""
    found = {address["scope"]: "tentative" in address for address in row["addr_info"]}
    return row["operstate"] == "UP" and "link" in found and True not in found.values()


def whole_again(dut, wire):
    """Set addresses, neighbors and a route by the wire, as the operator and FRR do. Then zebra
    closes, so that later packets are forwarded by the checkpoint."""
    dut.kernel_defaults()
    eventually(lambda: all(r["link"] == "up" for r in dut.control.ask("ports")), 5)
    names = {w.tap for w in dut.wires.values()}
    eventually(lambda: all(is_complete(taps(dut)[name]) for name in names), 5)
    eventually(lambda: (dut.neighbor_row(wire.peer4, wire) or {}).get("mac") == wire.mac, 5)
    dut.zebra.connect()
    dut.route(NET, via=wire.peer4, wire=wire)
    eventually(lambda: dut.fpm()["checkpoint"]["routes"] == 1, 5)
    forwards(dut, wire)
    dut.zebra.close()


def forwards(dut, wire):
    """Check that a packet leaves by the route."""
    lan = dut.wires["lan"]
    dut.forwarded(lan, lan.probe(HOST), wire)


def killed(dut):
    """End the daemon with kill -9 and wait for the next one."""
    come_back(dut, dut.daemon.crash())


def restarted(dut):
    """Run `fpmctl restart` and wait for the successor."""
    was = dut.daemon.pid()
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)
    eventually(lambda: not procs.is_alive(was), 10, 0.01, "the old one ends")


@pytest.mark.parametrize("mishap", [deleted, moved, renamed, swapped])
@pytest.mark.parametrize("ends", [[killed], [restarted, killed]])
def test_it_outlives_the_daemon(kept, mishap, ends):
    """A TAP keeps its carrier and all its settings after a crash of the daemon, after a planned
    restart, and after a crash of the successor."""
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
    """A TAP is renamed and its new name is written into the file. The port of that name uses
    the TAP, over a planned restart and over a crash."""
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
    assert "tap released name=wan0" in dut.daemon.log(1000)


def test_the_old_name_of_a_renamed_tap_may_have_another_interface(kept):
    """A TAP is renamed, and another kind of interface gets its old name. A reload, a change of a
    port, a planned restart and a crash use the renamed TAP as before."""
    dut, wan = kept, kept.wires["wan"]
    renamed(dut, wan)
    whole_again(dut, wan)
    before = taps(dut)
    dut.ip("link add wan0 type bridge")
    dut.edit_config("sweep-quiet-s: 1", "sweep-quiet-s: 2")

    with LinkWatch(dut.ctl) as watch:
        for words in (["config", "reload"], ["port", "set", "alt0", "mtu", "1400"]):
            done = dut.fpmctl(*words)
            assert done.returncode == 0, done.stderr
        for end in (restarted, killed):
            end(dut)
            forwards(dut, wan)

    assert watch.lost_carrier() == []
    after = taps(dut)["uplink"]
    assert (after["ifindex"], after["address"]) == (before["uplink"]["ifindex"], before["uplink"]["address"])
    checked = dut.fpmctl("config", "check", dut.config)
    assert "an interface 'wan0' exists and is not a TAP" in checked.stdout + checked.stderr
    # systemd runs this before each start, without the stored descriptors.
    netns.command(["ip", "netns", "exec", dut.dp, dut.daemon.program, "--prepare", "-c", dut.config])


def test_a_renamed_tap_obeys(kept):
    """`port set` finds a renamed TAP by its port, to change the MTU or to open a device again
    behind it. `port del` deletes the TAP."""
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
    """The TAP is deleted after the successor has adopted it, when the kernel's event comes too
    early for the successor. The successor makes another."""
    dut, wan = kept, kept.wires["wan"]
    was = dut.daemon.pid()
    index = dut.link_row(wan.tap)["ifindex"]
    restarts = dut.fpmctl_begin("restart")

    def said():
        return dut.daemon.log(1000).partition("main: successor started")[2]

    eventually(said, 5, 0.001)
    procs.stand_still(was)
    try:
        eventually(lambda: said().count("main: port opened") == len(dut.wires), 20, 0.01)
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


def test_a_port_without_a_tap_outlives_the_daemon(kept):
    """A TAP is deleted, and another port's TAP is renamed to its name. The daemon crashes and is
    restarted, and the other ports forward. When the name is free, the port gets a TAP."""
    dut, ext = kept, kept.wires["ext"]
    whole_again(dut, ext)
    with frozen(dut.daemon.pid(), "fdp-neigh"):  # it would make wan0 again
        dut.ip("link set alt0 down", "link del wan0", "link set alt0 name wan0 up")
    dut.control.close()

    def ports():
        return {row["name"]: (row["ifindex"] != 0, row["link"]) for row in dut.control.ask("ports")}

    known = dict.fromkeys(ports(), (True, "up"))
    lacks = "tap not recreated port=wan0 error=\"Device or resource busy\""
    eventually(lambda: lacks in dut.daemon.log(1000), 10)
    for restart in (False, True):
        was = dut.daemon.pid()
        if restart:
            done = dut.fpmctl("restart")
            assert done.returncode == 0, done.stderr
        else:
            dut.daemon.crash()
        dut.control.close()
        dut.daemon.back(was)
        eventually(lambda: ports() == known | {"wan0": (False, "down")}, 10)
        eventually(lambda: dut.route_row(NET), 10)
        forwards(dut, ext)
    assert "tap=none" in dut.daemon.log(1000)

    rename(dut, wan0="alt0")
    eventually(lambda: ports() == known, 10)
    with LinkWatch(dut.ctl) as watch:
        dut.daemon.back(dut.daemon.crash())
        dut.control.close()
        eventually(lambda: ports() == known, 10)
    assert watch.lost_carrier() == []


def test_a_renamed_tap_is_not_kept_over_a_stop(kept):
    """After a stop no program holds the TAPs. The next start finds the port's TAP by its name
    or makes one. If the file has the new name, the start finds the renamed TAP with its
    addresses."""
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


def test_no_process_replaces_a_dead_supervisor(own_dut):
    """The name of an ended supervisor is in the abstract namespace, so any process can bind it.
    The daemon and its successors give such a process no TAP and no checkpoint."""
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
