# SPDX-License-Identifier: BSD-3-Clause
"""No input may cause a crash or a stall, and no second daemon may disturb the first."""

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from back import come_back, impatient_kernel
from lib import netns, nonsense, procs
from lib.freeze import frozen
from lib.wait import PATIENCE, eventually
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
FRAMES = 10000


@pytest.fixture
def tough(own_dut):
    """Start a separate daemon for tests that change its state permanently."""
    router = own_dut()
    router.start()
    return router


def still_works(dut):
    """Check that the router forwards and that FPM and the control socket answer."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    assert dut.alive()
    dut.ready()
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)
    dut.forwarded(lan, lan.probe(HOST6), wan)


def addressed_well(out, data):
    """Return True if a frame of the router is for the neighbor on `out`, or for a group to
    which the kernel's own ARP and IPv6 multicast go."""
    if data[6:12] != bytes.fromhex(out.port_mac.replace(":", "")):
        return False
    if not data[0] & 1:
        return data[:6] == bytes.fromhex(out.mac.replace(":", ""))
    if data[12:14] == b"\x08\x06":
        return data[:6] == b"\xff" * 6
    return data[:2] == b"\x33\x33" and data[12:14] == b"\x86\xdd" and data[38] == 0xFF


def _nothing_waits(dut):
    tables = {t["table"]: t["used"] for t in dut.control.ask("memory")[0]["tables"]}
    return not tables["waiting"]


@pytest.mark.parametrize("name", ["lan", "wan", "alt", "ext"])
def test_random_frames_on_every_port(dut, wan, rng, name):
    """10,000 random frames on each port are counted and cause no crash. The router sends no
    frame to a MAC that is not a neighbor's, except requests of ARP, ND and the like."""
    wire = dut.wires[name]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    before, port = dut.counters(), dut.port_row(wire)

    with impatient_kernel(dut):
        for n, data in enumerate(nonsense.frames(rng, wire, FRAMES)):
            wire.send(data)
            if n % 400 == 399:
                dut.fence(wire)
        dut.fence(wire)
        eventually(lambda: _nothing_waits(dut), 15, 0.02, "the kernel has given up all silent neighbors")

    assert sum(dut.drops(before).values()) > FRAMES / 10
    assert dut.port_row(wire)["rx_packets"] - port["rx_packets"] > FRAMES * 0.9
    for out in dut.wires.values():
        strays = out.got(lambda data, out=out: not addressed_well(out, data))
        assert strays == [], f"on {out.name}: {[data.hex() for data in strays[:3]]}"
    still_works(dut)


def test_random_fpm_messages(tough, rng):
    """Forty sessions send damaged netlink messages in correct frames."""
    for _ in range(40):
        nonsense.fpm_session(tough, rng)
        tough.zebra.close()
        tough.zebra.connect()

    lan, wan = tough.wires["lan"], tough.wires["wan"]
    # A replay removes random routes, because it does not confirm them.
    tough.zebra.route(NET6, wan.peer6, wan)
    eventually(lambda: tough.fpm()["zebra4"] + tough.fpm()["zebra6"] == 1, 20)
    tough.forwarded(lan, lan.probe(HOST6), wan)


def test_random_octets_on_the_fpm_port(tough, rng):
    """The octets are no frame of FPM: the daemon closes the session each time and accepts the next."""
    for _ in range(50):
        octets = rng.randbytes(3000)
        try:
            tough.zebra.raw(octets)
        except OSError:
            pass
        # Random octets can begin like the header of a frame. Then fpm waits for the rest.
        is_frame = octets[:2] == b"\1\1"
        assert tough.zebra.speaker.wait_closed(3) or is_frame
        tough.zebra.connect()

    still_works(tough)


def answer_to(dut, octets):
    """Return the first answer of the control socket, and whether it serves the same client
    again."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(dut.socket)
        with contextlib.suppress(BrokenPipeError):  # refused after its first octets
            sock.sendall(octets)
        with sock.makefile("rb") as file:
            first = file.readline()
            with contextlib.suppress(OSError):
                sock.sendall(b'{"show": "version"}\n')
                return first, any(b'"end":true' in line for line in file)
    return first, False


@pytest.mark.smoke
def test_nonsense_on_the_control_socket(dut, rng):
    """The control socket answers any request with one sentence that names the fault. It serves
    the same client again, unless it cannot find the beginning of the next request. The log has
    no line about it."""
    texts = ["x", "{}", "7", '{"show": 7}', '{"show": "roots"}', "[" * 4000, '{"show": "routes", ']
    texts += ['{"show": "routes", "prefix": %s}' % p for p in ("9", '"300.1.1.1/99"')]
    octets = [text.encode() for text in texts]
    # No request is blank or has two lines.
    octets += [b"!" + rng.randbytes(500).replace(b"\n", b"") for _ in range(20)]
    size = os.path.getsize(dut.log_file)

    for one in octets:
        first, again = answer_to(dut, one + b"\n")
        said = json.loads(first)
        assert said["error"] and said["code"] != 0, one
        assert "\n" not in said["error"] and again, one
    first, again = answer_to(dut, b"\0" * 70000)
    assert json.loads(first)["error"] == "request longer than 4096 octets" and not again
    first, again = answer_to(dut, b"GET " + rng.randbytes(300).replace(b"\n", b"") + b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 400 ") or not first

    assert dut.control.ask("version")
    with open(dut.log_file, "rb") as file:
        file.seek(size)
        assert file.read() == b""


@pytest.mark.smoke
def test_route_churn_with_traffic(dut, lan, wan, alt):
    """Thousands of routes are added and withdrawn. A route that stays loses no packet."""
    nhid = dut.zebra.hop(alt.peer6, alt)
    dut.route(NET6, via=wan.peer6, wire=wan)

    with dut.stream(lan, HOST6) as stream:
        for _ in range(5):
            dut.zebra.speaker.routes("2001:db8:e000::/64", 4000, nhid)
            eventually(lambda: dut.fpm()["zebra6"] == 4001, 10, 0.02)
            dut.zebra.speaker.routes_del("2001:db8:e000::/64", 4000)
            eventually(lambda: dut.fpm()["zebra6"] == 1, 10, 0.02)

    assert stream.lost(wan) == []


def test_memory_does_not_grow_with_churn(dut, wan):
    """The memory of withdrawn routes is freed: the memory does not grow after the first round."""
    nhid = dut.zebra.hop(wan.peer6, wan)

    def bytes_after_round():
        dut.zebra.speaker.routes("2001:db8:e000::/64", 20000, nhid)
        eventually(lambda: dut.fpm()["zebra6"] == 20000, 20, 0.05)
        dut.zebra.speaker.routes_del("2001:db8:e000::/64", 20000)
        eventually(lambda: dut.fpm()["zebra6"] == 0, 20, 0.05)
        eventually(lambda: dut.fpm()["reclaim_pending"] == 0, 5)
        return dut.fpm()["rib_bytes"]

    first = bytes_after_round()
    rounds = [bytes_after_round() for _ in range(4)]
    assert max(rounds) <= first * 1.05 + 4096


def test_what_finds_no_room_in_a_ring_is_counted_as_missed(tough):
    """The daemon stands still while a port receives more than its ring holds (2048 frames).
    `rx_missed` counts exactly the frames that are not forwarded afterwards."""
    dut, lan, wan = tough, tough.wires["lan"], tough.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    probe, pid = lan.probe(HOST), tough.daemon.pid()
    before = dut.port_row(lan)

    procs.stand_still(pid)
    try:
        lan.send(*[bytes(probe)] * 10000)
    finally:
        os.kill(pid, signal.SIGCONT)
    dut.fence(lan)

    row = dut.port_row(lan)
    missed = row["rx_missed"] - before["rx_missed"]
    others = row["rx_packets"] - before["rx_packets"] + missed - 10000
    print("missed", missed, "of 10000 and", others)
    assert missed > 0 and 0 <= others < 100
    # All of the test's frames that are not missed have left.
    eventually(lambda: len(wan.got(token_of(probe))) >= 10000 - missed, 5, 0.05)
    assert len(wan.got(token_of(probe))) <= 10000 - missed + others


def test_a_port_that_vanishes_takes_nothing_along(tough):
    """The interface behind a port is deleted (as a container's cable is). Routes by this port
    are down; the daemon and the other ports run on."""
    dut, lan, wan = tough, tough.wires["lan"], tough.wires["wan"]
    dut.route("203.0.113.0/24", via=dut.wires["ext"].peer4, wire=dut.wires["ext"])

    netns.ip_batch(["link del p-ext"], dut.dp)

    eventually(lambda: dut.port_row(dut.wires["ext"])["link"] == "down", 5, 0.01)
    # The kernel reports the link first.
    eventually(lambda: "neigh: device deleted port=ext0" in dut.daemon.log(100), 5, 0.01)
    told = dut.fpmctl("doctor", "below").stdout
    assert re.search(r"WARN +below p-ext +this interface does not exist\n", told), told
    eventually(lambda: dut.route_row("203.0.113.0/24")["state"] == "down", 5, 0.01)
    dut.route(NET, via=wan.peer4, wire=wan)
    for _ in range(50):
        dut.forwarded(lan, lan.probe(HOST), wan)
        assert dut.not_forwarded(lan, lan.probe("203.0.113.9")) == {"egress_down": 1}
    assert dut.stop() == 0


def test_a_port_whose_interface_is_renamed_goes_on(tough):
    """The port stays the same under another name of its interface. When the interface is up
    again, packets leave and are received, and the TAP follows its carrier."""
    dut, lan, ext = tough, tough.wires["lan"], tough.wires["ext"]
    dut.route("203.0.113.0/24", via=ext.peer4, wire=ext)

    netns.ip_batch(["link set p-ext down", "link set p-ext name q-ext"], dut.dp)
    eventually(lambda: not dut.all_alive("203.0.113.0/24"), 5, 0.01)
    netns.ip_batch(["link set q-ext up"], dut.dp)

    eventually(lambda: dut.all_alive("203.0.113.0/24"), 5, 0.01, "rib has heard of it")
    dut.forwarded(lan, lan.probe("203.0.113.9"), ext)
    dut.route(NET, via=dut.wires["wan"].peer4, wire=dut.wires["wan"])
    dut.forwarded(ext, ext.probe(HOST), dut.wires["wan"])
    assert "device deleted" not in dut.daemon.log(100)


def test_a_port_whose_interface_is_moved_away_is_as_one_that_vanished(tough):
    """The interface is moved to another network namespace: routes by this port are down, the
    other ports run on. When the interface is back, the port opens it again."""
    dut, lan, wan, ext = tough, *(tough.wires[n] for n in ("lan", "wan", "ext"))
    dut.route("203.0.113.0/24", via=ext.peer4, wire=ext)
    dut.route(NET, via=wan.peer4, wire=wan)

    netns.ip_batch([f"link set p-ext netns {dut.far}"], dut.dp)

    eventually(lambda: not dut.all_alive("203.0.113.0/24"), 5, 0.01)
    # The kernel reports the link first.
    eventually(lambda: "neigh: device deleted port=ext0" in dut.daemon.log(100), 5, 0.01)
    for _ in range(50):
        dut.forwarded(lan, lan.probe(HOST), wan)
        assert dut.not_forwarded(lan, lan.probe("203.0.113.9")) == {"egress_down": 1}
    netns.ip_batch([f"link set p-ext netns {dut.dp}"], dut.far)
    netns.ip_batch(["link set p-ext up"], dut.dp)
    eventually(lambda: dut.port_row(ext)["link"] == "up", 10, 0.01)
    eventually(lambda: dut.all_alive("203.0.113.0/24"), 5, 0.01)
    dut.forwarded(lan, lan.probe("203.0.113.9"), ext)
    assert dut.stop() == 0


def test_a_tap_that_vanishes_takes_nothing_along_and_is_made_anew(tough):
    """A TAP is deleted by hand: the daemon and the other ports run on. The daemon makes the
    TAP again with its MAC and its last MTU. When FRR or `ip` has set the addresses again, the
    port works as before."""
    dut, lan, wan = tough, tough.wires["lan"], tough.wires["wan"]
    ext = dut.wires["ext"]
    dut.ip(f"link set {ext.tap} mtu 1450")
    eventually(lambda: dut.port_row(ext)["mtu"] == 1450, 5, 0.01)

    # Another interface takes the name at once, so that the TAP cannot come back before the test
    # looks.
    with frozen(dut.daemon.pid(), "fdp-neigh"):
        dut.ip(f"link del {ext.tap}", f"link add {ext.tap} type veth peer name other")

    dut.route(NET, via=wan.peer4, wire=wan)
    eventually(lambda: dut.route_row(ext.host4) is None, 5, 0.01)
    eventually(lambda: "neigh: tap deleted port=ext0" in dut.daemon.log(100), 5, 0.01)
    probes = [ext.probe(HOST) for _ in range(50)]
    for probe in probes:
        ext.send(probe)
        dut.forwarded(lan, lan.probe(HOST), wan)
    dut.fence(lan)
    assert [p for p in probes if wan.got(token_of(p))] == []
    dut.ip(f"link del {ext.tap}")
    eventually(lambda: dut.port_row(ext)["link"] == "up", 5, 0.01, "the TAP is back")
    assert "neigh: tap recreated port=ext0" in dut.daemon.log(100)
    assert dut.link_row(ext.tap)["address"] == ext.port_mac
    assert dut.link_row(ext.tap)["mtu"] == dut.port_row(ext)["mtu"] == 1450
    dut.kernel_defaults()
    eventually(lambda: dut.neighbor_row(ext.peer4, ext)["mac"] == ext.mac, 5, 0.01)
    eventually(lambda: dut.route_row(ext.host4), 5, 0.01)
    dut.forwarded(lan, lan.probe(ext.peer4), ext)
    dut.forwarded(ext, ext.probe(HOST), wan)
    echo = IP(src=ext.peer4, dst=ext.ip4) / ICMP() / Raw(mark := token())
    ext.send(Ether(src=ext.mac, dst=ext.port_mac) / echo)
    assert ext.expect(mark)[ICMP].type == 0
    assert dut.stop() == 0


def test_kill_and_start_again(own_dut):
    """kill -9 leaves a socket file, TAPs and addresses. The next start takes them over."""
    dut = own_dut()
    dut.start()
    before = {w.tap: dut.link_row(w.tap)["ifindex"] for w in dut.wires.values()}

    assert dut.stop(signal.SIGKILL) == -signal.SIGKILL
    dut.start()

    assert {w.tap: dut.link_row(w.tap)["ifindex"] for w in dut.wires.values()} == before
    still_works(dut)
    assert dut.stop() == 0


@pytest.mark.smoke
def test_a_second_daemon_is_refused_in_words(dut):
    """A second daemon prints one sentence, ends, and changes nothing."""
    argv = ["ip", "netns", "exec", dut.dp, dut.daemon.program, "-c", dut.config]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    assert done.returncode == 1
    said = done.stderr + done.stdout
    assert "hint=another-daemon" in said and len(said.splitlines()) == 1
    assert dut.alive()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(HOST), wan)
    lan.send(dut_probe := lan.probe(lan.ip4))
    dut.taps["lan"].expect_raw(token_of(dut_probe))


def start_beside(dut, folder):
    """Start a second daemon with other names and with an interface that is a port of `dut`. It must
    refuse to start. Return its output."""
    with open(dut.config, encoding="utf-8") as file:
        text = file.read()
    for old, new in (("tap: lan0", "tap: other0"), ("127.0.0.1:2620", "127.0.0.1:2621"),
                     (dut.socket, f"{folder}/ctl")):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    (folder / "config").write_text(text)
    argv = ["ip", "netns", "exec", dut.dp, dut.daemon.program, "-c", str(folder / "config")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert done.returncode == 1
    return done.stderr


def owner_answers(dut, interface):
    """Connect to the claim of an interface (port/claim.h), as a daemon does that finds the interface
    in use. Return False if the daemon that has the claim does not answer."""
    with netns.entered(dut.dp):
        index = socket.if_nametoindex(interface)
    with netns.open_socket(dut.dp, socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        try:
            sock.connect(f"\0fpm-dataplane/port/{index}")
        except BlockingIOError:
            return False
    return True


def test_many_processes_that_ask_for_an_interface_get_an_answer(kept):
    """The queue of a claim has room for a few connections, which the daemon closes."""
    for _ in range(20):
        eventually(lambda: owner_answers(kept, "p-lan"), 5)


def test_an_interface_is_a_port_of_one_daemon(kept, tmp_path):
    """AF_PACKET gives each frame to all of its readers. A second daemon with other names refuses an
    interface that is a port of the first daemon, also after a planned restart and a crash of the
    first daemon."""
    dut = kept
    refusal = "interface p-lan is a port of another fpm-dataplane, process "
    assert f"{refusal}{dut.daemon.pid()}:" in start_beside(dut, tmp_path)

    was = dut.daemon.pid()
    assert dut.fpmctl("restart").returncode == 0
    come_back(dut, was)
    assert f"{refusal}{dut.daemon.pid()}:" in start_beside(dut, tmp_path)

    was = dut.daemon.pid()
    os.kill(was, signal.SIGKILL)
    come_back(dut, was)
    assert f"{refusal}{dut.daemon.pid()}:" in start_beside(dut, tmp_path)
    assert "not claimed" not in dut.daemon.log(400)


def test_a_start_waits_for_the_end_of_the_owner_of_a_port(own_dut, tmp_path):
    """The kernel closes the sockets of a killed daemon one after another. A new daemon that finds the
    claim of a port waits until the process that has the claim ends, and takes the port."""
    dut = own_dut()
    with netns.entered(dut.dp), socket.socket(socket.AF_UNIX) as mark:
        mark.bind(f"\0fpm-dataplane/port/{socket.if_nametoindex('p-lan')}")
        mark.listen(8)

        def end():
            """Accept nothing, as a process that is ending."""
            select.select([mark], [], [], 20)
            mark.close()

        ending = threading.Thread(target=end)
        ending.start()
        dut.start()
        ending.join()

    still_works(dut)
    assert "not claimed" not in dut.daemon.log(100)
    assert "interface p-lan is a port of another fpm-dataplane" in start_beside(dut, tmp_path)


def test_a_deleted_control_socket_is_opened_again(kept):
    """A program that cleans /run deletes the control socket. The daemon opens it again within
    seconds, with its mode, and connected clients keep their answers."""
    dut = kept
    was = dut.control.ask("version")[0]["pid"]
    mode = os.stat(dut.socket).st_mode

    os.unlink(dut.socket)

    eventually(lambda: dut.fpmctl("show", "version").returncode == 0, 10, 0.05)
    assert os.stat(dut.socket).st_mode == mode
    assert dut.control.ask("version")[0]["pid"] == was == dut.daemon.pid()
    assert f"ui: control socket opened again path={dut.socket} reason=deleted" in dut.log(100)
    dut.control.close()
    assert dut.stop() == 0 and not os.path.exists(dut.socket)


@pytest.mark.parametrize("by", ["a-folder", "a-file", "another-socket"])
def test_a_replaced_control_socket_is_said_once_and_comes_back(kept, by):
    """Another program puts something else at the path of the control socket. The daemon says so once,
    and opens its socket again after an operator has removed it."""
    dut = kept
    with socket.socket(socket.AF_UNIX) as another:
        with frozen(dut.daemon.pid(), "fdp-ui"):  # it does not see the moment without a file
            os.unlink(dut.socket)
            if by == "a-folder":
                os.mkdir(dut.socket)
            elif by == "a-file":
                open(dut.socket, "x", encoding="ascii").close()
            else:
                another.bind(dut.socket)
        line = f"ui: control socket replaced path={dut.socket} by={by} "
        eventually(lambda: line in dut.log(100), 10, 0.05)
    (os.rmdir if by == "a-folder" else os.unlink)(dut.socket)

    eventually(lambda: dut.fpmctl("show", "version").returncode == 0, 10, 0.05)
    assert dut.log(100).count("control socket replaced") == 1
    still_works(dut)


@pytest.mark.parametrize("change", ["owner", "mode"])
def test_a_control_socket_of_another_user_prevents_no_start(kept, change):
    """An operator gives the control socket to another user, or takes all rights away. The daemon has
    no right to connect to it, and replaces it after a crash and in a planned restart. In an earlier
    version no start succeeded, and no packet was forwarded, until the operator removed the socket."""
    dut = kept
    for planned in (False, True, False):
        was = dut.daemon.pid()
        if change == "owner":
            os.chown(dut.socket, 65534, 65534)
        else:
            os.chmod(dut.socket, 0)
        if planned:
            assert dut.fpmctl("restart").returncode == 0
        else:
            os.kill(was, signal.SIGKILL)
        come_back(dut, was)
        row = os.stat(dut.socket)
        assert (row.st_uid, row.st_mode & 0o777) == (0, 0o660)
    still_works(dut)


def test_a_restart_is_refused_if_the_control_socket_cannot_be_replaced(kept):
    """The control socket and its folder are of another user, and the folder has the sticky bit, as /tmp
    has it: the daemon has no right to replace the socket. A planned restart is refused, and no packet is
    lost."""
    dut = kept
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    folder = os.path.dirname(dut.socket)
    was = dut.daemon.pid(), os.stat(folder)
    os.chown(dut.socket, 65534, os.stat(dut.socket).st_gid)
    os.chmod(dut.socket, 0o666)
    os.chown(folder, 65534, 65534)
    os.chmod(folder, 0o1777)
    try:
        with dut.stream(lan, HOST, rate=500) as stream:
            done = dut.fpmctl("restart")
    finally:
        os.chown(folder, was[1].st_uid, was[1].st_gid)
        os.chmod(folder, was[1].st_mode & 0o7777)
    assert done.returncode == 3 and "restart refused, the daemon continues" in done.stderr
    assert stream.lost(wan) == [] and dut.daemon.pid() == was[0]
    assert f'control socket not opened path={dut.socket} error="Operation not permitted"' in dut.log(100)


def test_a_first_start_replaces_no_control_socket_of_another_user(own_dut):
    """A first start cannot tell whether a daemon listens on a socket of another user. It ends with a
    sentence, and leaves the socket."""
    dut = own_dut()
    with socket.socket(socket.AF_UNIX) as mark:
        mark.bind(dut.socket)
        mark.listen()
        os.chown(dut.socket, 65534, 65534)
        argv = ["ip", "netns", "exec", dut.dp, dut.daemon.program, "-c", dut.config]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    assert done.returncode == 1
    said = f'main: control socket not opened path={dut.socket} error="Permission denied" '
    assert said + 'see="owner and mode of this socket"\n' in done.stderr
    assert os.path.exists(dut.socket)


def test_sigterm_ends_it_cleanly_under_traffic(own_dut):
    """A stop while packets and routes flow ends the daemon soon, with exit code 0."""
    dut = own_dut()
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    with dut.stream(lan, HOST):
        dut.zebra.speaker.routes("2001:db8:e000::/64", 20000, dut.zebra.hop(wan.peer6, wan))
        dut.daemon.process.send_signal(signal.SIGTERM)
        assert dut.daemon.process.wait(10) == 0  # soon: FDP_PATIENCE does not extend this time


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_cleanly(own_dut, number):
    """Ctrl-C and the stop of a service manager have the same effect."""
    dut = own_dut()
    dut.start()

    assert dut.stop(number) == 0
