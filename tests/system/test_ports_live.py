# SPDX-License-Identifier: BSD-3-Clause
"""Ports are added and deleted while packets pass: the TAP appears and disappears, next hops
fail at once, and other ports lose no packet."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest
import yaml

from back import kept_taps
from lib import netns, preload, procs
from lib.haste import hasty
from lib.wait import LONG, eventually, never
from whereabouts import Whereabouts
from wire import token_of

NET, HOST, EXT_NET = "198.51.100.0/24", "198.51.100.9", "203.0.113.0/24"
EXT = "net_af_packet,iface=p-ext"


@pytest.fixture
def router(own_dut):
    """Start a router of its own with one route by wan0 and one by ext0."""
    dut = own_dut()
    dut.start()
    dut.route(NET, via=dut.wires["wan"].peer4, wire=dut.wires["wan"])
    return dut


def taps(dut):
    """Return the interfaces of the control namespace."""
    return {link["ifname"] for link in dut.links()}


def ports(dut):
    """Return the rows of `show ports`."""
    return [row["name"] for row in dut.control.ask("ports")]


def done(dut, *words):
    """Run a command that must succeed. Return its output."""
    result = dut.fpmctl(*words)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout


def listen_again(dut):
    """Open the test's own socket on ext0 again, because ext0 is another interface now."""
    dut.taps["ext"] = dut._wire(dut.ctl, "ext0")
    dut.collector.add(dut.taps["ext"])


def forwards_by_ext(dut):
    """Give ext0 its first addresses and a route, and check that a packet leaves there."""
    lan, ext = dut.wires["lan"], dut.wires["ext"]
    eventually(lambda: dut.link_row("ext0")["operstate"] == "UP", 5)
    dut.kernel_defaults()
    eventually(lambda: dut.route_row(f"{ext.ip4}/32"), 5, 0.01)
    dut.neighbor(ext.peer4, ext)
    dut.route(EXT_NET, via=ext.peer4, wire=ext)
    eventually(lambda: dut.route_row(EXT_NET)["state"] == "forwarding", 5, 0.01)
    return dut.forwarded(lan, lan.probe("203.0.113.7"), ext)


def test_a_port_goes_and_comes_and_no_other_loses_a_packet(router):
    """A port is deleted and added ten times, while 2000 packets a second pass between two other
    ports. All of them arrive, except packets that a full ring drops and counts."""
    dut, lan, wan = router, router.wires["lan"], router.wires["wan"]
    where = Whereabouts(dut)
    with dut.stream(lan, HOST, rate=2000) as stream:
        for _ in range(10):
            done(dut, "port", "del", "ext0")
            assert ports(dut) == ["lan0", "wan0", "alt0"] and "ext0" not in taps(dut)
            done(dut, "port", "add", "ext0", "device", EXT)
            assert "ext0" in ports(dut) and "ext0" in taps(dut)

    where.all_accounted_for(stream.lost(wan))
    assert stream.sent > 1000 and forwards_by_ext(dut)
    assert dut.control.ask("ports")[-1]["name"] == "ext0"


def test_next_hops_by_a_port_that_goes_are_dead_at_once(router):
    """When a port is deleted, the other next hop of a group takes all traffic. A route by this
    port alone is down, and the commands show it."""
    dut, lan, wan, ext = router, *(router.wires[w] for w in ("lan", "wan", "ext"))
    zebra = dut.zebra
    group = zebra.group([zebra.hop(wan.peer4, wan), zebra.hop(ext.peer4, ext)])
    zebra.add("198.18.0.0/15", group)
    dut.in_force("198.18.0.0/15")
    dut.route(EXT_NET, via=ext.peer4, wire=ext)
    probes = [lan.probe("198.18.1.1", sport=5000 + n) for n in range(64)]

    done(dut, "port", "del", "ext0")

    for probe in probes:
        assert dut.forwarded(lan, probe, wan)
    assert dut.route_row(EXT_NET)["state"] == "down"
    assert dut.not_forwarded(lan, lan.probe("203.0.113.7")) == {"egress_down": 1}


def test_a_tap_deleted_by_hand_does_not_outlive_its_port(router):
    """`port del` deletes the TAP that the daemon made again after a deletion by hand. If the
    daemon has not made it yet, it makes none."""
    dut = router
    index = dut.link_row("ext0")["ifindex"]
    dut.ip("link del ext0")
    eventually(lambda: "ext0" in taps(dut) and dut.link_row("ext0")["ifindex"] != index, 5)
    done(dut, "port", "del", "ext0")
    assert "ext0" not in taps(dut)

    dut.ip("link del alt0", "link del wan0")
    done(dut, "port", "del", "alt0")
    # The test looks at a time when the daemon would have made alt0 again.
    eventually(lambda: "wan0" in taps(dut), 5, what="a TAP in place of wan0")
    assert "alt0" not in taps(dut)


@pytest.mark.parametrize("words", ["", "queues 1"])
def test_every_queue_is_read_that_a_device_was_told_to_have(router, words):
    """The kernel divides flows between all sockets of net_af_packet, also those beyond the
    number of forwarders or of `queues`. All queues are read."""
    dut, wan, ext = router, router.wires["wan"], router.wires["ext"]
    done(dut, "port", "del", "ext0")
    done(dut, "port", "add", "ext0", "device", EXT + ",qpairs=4", *words.split())
    listen_again(dut)
    assert forwards_by_ext(dut)

    probes = [ext.probe(HOST, sport=5000 + n) for n in range(64)]
    ext.send(*probes)
    dut.fence(ext)

    assert [n for n, probe in enumerate(probes) if not wan.got(token_of(probe))] == []
    assert dut.port_row(ext)["queues"] == 4


def test_a_device_that_was_deleted_is_opened_again_when_it_is_back(router):
    """The port of a deleted device stays and is down. When an interface with the device's name exists
    again, the daemon opens it behind the same TAP, which keeps its addresses."""
    dut, lan, ext = router, router.wires["lan"], router.wires["ext"]
    index = dut.link_row("ext0")["ifindex"]
    netns.ip_batch(["link del p-ext"], dut.dp)
    eventually(lambda: dut.port_row(dut.wires["ext"])["link"] == "down", 5)
    netns.ip_batch(
        [f"link add p-ext type veth peer name ext netns {dut.far}", "link set p-ext up"],
        dut.dp,
    )
    netns.ip_batch(["link set ext up"], dut.far)

    eventually(lambda: dut.port_row(ext)["link"] == "up", 10)
    eventually(lambda: dut.link_row("ext0")["operstate"] == "UP", 5)
    assert dut.link_row("ext0")["ifindex"] == index
    said = "manage: port opened again name=ext0 reason=interface-back"
    eventually(lambda: said in dut.log(100), 5, what=said)
    eventually(lambda: dut.route_row(f"{ext.ip4}/32"), 5)


def test_a_device_of_another_port_is_not_taken_from_it(router):
    """A change that swaps devices, or that gives a device to a port of another name, is refused
    as a whole. The port that has the device keeps it and forwards."""
    dut, last = router, "    device: net_af_packet,iface=p-ext\n"
    done(dut, "port", "add", "a0", "device", "net_null0,no-rx=1")
    done(dut, "port", "add", "b0", "device", "net_null1,no-rx=1")
    eventually(lambda: {row["link"] for row in dut.control.ask("ports")} == {"up"}, 5)
    was = ports(dut)
    for names in (("b0", "a0"), ("c0", "b0")):
        rows = [f"  - tap: {x}\n    device: net_null{n},no-rx=1\n" for n, x in enumerate(names)]
        dut.edit_config(last, last + "".join(rows))

        refused = dut.fpmctl("config", "reload")

        assert refused.returncode == 2 and "nothing changed" in refused.stderr
        assert "the device of a port that runs" in refused.stderr
        dut.edit_config("".join(rows), "")
        assert ports(dut) == was
        assert {row["link"] for row in dut.control.ask("ports")} == {"up"}


def test_a_port_that_is_lost_is_had_again(router):
    """A port is lost when its device is closed and the new device is refused. The answer says
    so. `port set` with a working device, or `port del`, ends this state."""
    dut = router
    nowhere = "net_pcap,rx_pcap=/nowhere.pcap"
    netns.ip_batch(["link add p-x type veth peer name far-x", "link set p-x up"], dut.dp)
    done(dut, "port", "add", "x0", "device", "net_af_packet,iface=p-x")
    netns.ip_batch(["link del p-x"], dut.dp)

    refused = dut.fpmctl("port", "set", "x0", "device", nowhere)
    assert refused.returncode == 2 and "the port is lost" in refused.stderr
    assert "nothing changed" not in refused.stderr
    assert "x0" not in ports(dut) and "x0" in done(dut, "config", "show")
    again = dut.fpmctl("port", "set", "lan0", "mtu", "1400")
    assert again.returncode == 2 and "'p-x'" in again.stderr

    done(dut, "port", "set", "x0", "device", "net_null,no-rx=1")
    assert "x0" in ports(dut) and "x0" in taps(dut)
    done(dut, "port", "del", "x0")
    assert "x0" not in taps(dut)


@pytest.mark.parametrize("on", [True, False])
def test_the_forwarding_sysctls_of_a_new_port_are_obeyed(router, on):
    """The kernel's default for new interfaces holds for the TAP from its first packet."""
    dut = router
    netns.sysctl(dut.ctl, {"net.ipv4.conf.default.forwarding": int(on)})
    done(dut, "port", "add", "null0", "device", "net_null,no-rx=1")
    row = next(r for r in dut.control.ask("ports") if r["name"] == "null0")
    assert row["forwarding"] == ("on" if on else "ipv6")


def test_traffic_into_a_port_that_goes_leaves_nothing_behind(router):
    """A port is deleted and added while it receives packets and others send to it: the daemon does
    not crash and loses no buffer."""
    dut, lan, ext = router, router.wires["lan"], router.wires["ext"]
    dut.route(EXT_NET, via=ext.peer4, wire=ext)
    with dut.stream(lan, "203.0.113.9"), dut.stream(ext, HOST):
        for _ in range(3):
            done(dut, "port", "del", "ext0")
            done(dut, "port", "add", "ext0", "device", EXT)
            dut.kernel_defaults()
        listen_again(dut)
    dut.zebra.flush()
    assert forwards_by_ext(dut)


def test_a_new_port_with_a_device_that_polls(router):
    """A device without a kernel interface behind it is polled for its link state. Its counters
    begin at zero."""
    dut = router
    said = done(dut, "port", "add", "null0", "device", "net_null,no-rx=1", "mtu", "1400")

    assert "ports[null0]: none -> net_null,no-rx=1" in said
    assert dut.link_row("null0")["mtu"] == 1400
    eventually(lambda: dut.link_row("null0")["operstate"] == "UP", 5)
    row = next(r for r in dut.control.ask("ports") if r["name"] == "null0")
    assert (row["rx_packets"], row["mtu"], row["link"]) == (0, 1400, "up")
    shown = yaml.safe_load(done(dut, "config", "show"))["ports"]
    assert {"tap": "null0", "device": "net_null,no-rx=1", "mtu": 1400}.items() <= shown[-1].items()
    done(dut, "port", "set", "null0", "mtu", "1300")
    eventually(lambda: dut.link_row("null0")["mtu"] == 1300, 5)
    said = done(dut, "port", "set", "null0", "mtu", "1300")
    assert said == "no difference from the running configuration\n"


def test_the_configured_mtu_is_set_again(router):
    """`port set` sets the MTU of the configuration again after `ip link set mtu`. `config show`
    has the configured MTU all the time."""
    dut = router

    def mtus():
        ports = yaml.safe_load(done(dut, "config", "show"))["ports"]
        return dut.link_row("ext0")["mtu"], [p for p in ports if p["tap"] == "ext0"][0].get("mtu", 1500)

    dut.ip("link set ext0 mtu 1400")
    eventually(lambda: dut.port_row(dut.wires["ext"])["mtu"] == 1400, 5, 0.01)
    assert mtus() == (1400, 1500)
    said = done(dut, "port", "set", "ext0", "mtu", "1500")
    assert "ports[ext0].mtu: 1400 -> 1500" in said and mtus() == (1500, 1500)
    said = done(dut, "port", "set", "ext0", "mtu", "1500")
    assert said == "no difference from the running configuration\n"
    dut.ip("link set ext0 mtu 1300")
    done(dut, "port", "set", "ext0", "mtu", "1300")
    assert mtus() == (1300, 1300)
    done(dut, "port", "set", "ext0", "mtu", "1500")
    assert mtus() == (1500, 1500)


def test_below_1280_octets_the_kernel_takes_ipv6_and_the_answer_says_so(router):
    """RFC 8200, section 5: below an MTU of 1280 the kernel removes IPv6 addresses and routes;
    those of IPv4 stay. Above it the kernel gives the link-local address back. The answer to
    `port add` with such an MTU says so, too."""
    dut, ext = router, router.wires["ext"]

    def addresses(family):
        """Return the addresses of the TAP, as the kernel and as the dataplane have them."""
        rows = json.loads(netns.run(dut.ctl, ["ip", "-j", "addr", "show", "dev", "ext0"]))
        kernel = {a["local"] for a in rows[0]["addr_info"] if a["family"] == family}
        known = dut.control.ask("interfaces", name="ext0")[0]["addresses"]
        return kernel, {a.split("/")[0] for a in known if (":" in a) == (family == "inet6")}

    assert ext.ip6 in addresses("inet6")[0]
    said = done(dut, "port", "set", "ext0", "mtu", "1279")
    assert "ports[ext0].mtu: 1500 -> 1279" in said
    assert "the kernel removes the IPv6 addresses" in said and "RFC 8200 section 5" in said
    eventually(lambda: addresses("inet6") == (set(), set()), 5)
    assert addresses("inet") == ({ext.ip4}, {ext.ip4})
    eventually(lambda: dut.route_row(f"{ext.ip6}/128") is None, 5, 0.01)

    said = done(dut, "port", "set", "ext0", "mtu", "1280")
    assert "only the link-local IPv6 address" in said
    back = lambda: addresses("inet6")  # noqa: E731
    eventually(lambda: all(len(a) == 1 and min(a)[:4] == "fe80" for a in back()), 5)
    assert "IPv6" not in done(dut, "port", "set", "ext0", "mtu", "1400")
    said = done(dut, "port", "add", "n0", "device", "net_null,no-rx=1", "mtu", "1000")
    assert "RFC 8200" in said
    assert dut.log(400).count("ipv6 disabled reason=mtu-below-1280") == 2


def test_another_device_behind_the_same_tap(router):
    """After `port set device` the TAP has the same ifindex and addresses, and other ports are
    not disturbed."""
    dut, lan, wan = router, router.wires["lan"], router.wires["wan"]
    index, where = dut.link_row("ext0")["ifindex"], Whereabouts(dut)
    with dut.stream(lan, HOST) as stream:
        done(dut, "port", "set", "ext0", "device", "net_null,no-rx=1")
        done(dut, "port", "set", "ext0", "device", EXT)

    where.all_accounted_for(stream.lost(wan))
    assert dut.link_row("ext0")["ifindex"] == index
    assert forwards_by_ext(dut)


def test_another_device_goes_again_when_the_kernel_refuses_its_mtu(own_dut, monkeypatch):
    """A change is made as a whole or not at all: if the kernel refuses it, the old device is
    behind the TAP again and forwards."""
    dut = own_dut()
    preload.start(dut, monkeypatch, "mtu_refused", MTU_REFUSED="1399")
    before, index = done(dut, "config", "show"), dut.link_row("ext0")["ifindex"]
    words = ["device", "net_null,no-rx=1", "mtu"]

    refused = dut.fpmctl("port", "set", "ext0", *words, "1399")

    assert refused.returncode == 2
    assert "nothing changed" in refused.stderr and "mtu not set" in refused.stderr
    assert dut.control.ask("ports", name="ext0")[0]["device"] == EXT
    assert done(dut, "config", "show") == before
    assert (dut.link_row("ext0")["ifindex"], dut.link_row("ext0")["mtu"]) == (index, 1500)
    assert forwards_by_ext(dut)
    done(dut, "port", "set", "ext0", *words, "1398")


def test_a_device_that_takes_long_to_start_is_no_hang(own_dut):
    """`port add` of a device needs longer than the watchdog waits (here it reads a pipe
    without a writer). It delays other changes and nothing else. Then it fails and the daemon
    runs on."""
    dut = own_dut(supervised=True)
    dut.daemon.supervisor_words = ["--watchdog", "2"]
    dut.start()
    was, slow = dut.daemon.pid(), dut.dir + "/slow.pcap"
    os.mkfifo(slow)
    answer = []
    words = ["port", "add", "slow0", "device", "net_pcap,rx_pcap=" + slow]
    asks = threading.Thread(target=lambda: answer.append(dut.fpmctl(*words)))

    asks.start()
    try:
        never(lambda: answer or "hangs" in dut.daemon.log(60), 4)
    finally:
        with open(os.open(slow, os.O_WRONLY | os.O_NONBLOCK), "wb") as pipe:
            pipe.write(b"no pcap at all")
        asks.join(20)

    assert answer[0].returncode == 2 and "nothing changed" in answer[0].stderr
    assert dut.daemon.pid() == was and "hangs" not in dut.daemon.log(60)
    assert ports(dut) == ["lan0", "wan0", "alt0", "ext0"]


# The header of a capture file of Ethernet frames (pcap-savefile(5)) without a frame.
NO_FRAMES = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


class SlowDevice:
    """A device that is not ready before the test says so: it reads a pipe."""

    def __init__(self, dut, name):
        self.path, self._pipe = f"{dut.dir}/{name}.pcap", None
        self.name, self.device = name, "net_pcap,rx_pcap=" + self.path
        os.mkfifo(self.path)

    def begun(self):
        """Return True if the daemon has begun to start the device."""
        with contextlib.suppress(OSError):  # the daemon has not opened the pipe yet
            self._pipe = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        return self._pipe is not None

    def get_ready(self):
        """Let the device start. It receives no frame."""
        self._answer(NO_FRAMES)

    def fail(self):
        """Let the start of the device fail."""
        self._answer(b"no pcap at all")

    def _answer(self, octets):
        os.write(self._pipe, octets)
        os.close(self._pipe)
        self._pipe = None


def test_fpmctl_waits_for_a_device_that_takes_long(own_dut):
    """fpmctl waits longer for a slow device than for other answers (here a tenth of the usual
    time). It tells the user that the device is still starting, and reports success at the end."""
    dut = own_dut()
    dut.start()
    slow = SlowDevice(dut, "slow0")

    with hasty(10):
        asks = dut.fpmctl_begin("port", "add", slow.name, "device", slow.device)
    eventually(slow.begun, 20, 0.01)
    assert "the daemon is still working" in asks.stderr.readline()
    slow.get_ready()
    out, err = asks.communicate(timeout=30)

    assert (asks.returncode, err) == (0, "") and "\napplied\n" in out
    assert slow.name in ports(dut)


def test_a_start_with_slow_devices_is_given_time(own_dut):
    """Two slow devices together need longer than a start may take without a step, and each
    needs less. The start succeeds."""
    dut = own_dut(supervised=True)
    dut.daemon.supervisor_words = ["--start", "3"]
    slow = [SlowDevice(dut, f"slow{n}") for n in range(2)]
    more = [f"  - tap: {one.name}\n    device: {one.device}\n" for one in slow]
    dut.edit_config("ports:\n", "ports:\n" + "".join(more))
    starts = threading.Thread(target=dut.start)

    starts.start()
    for one in slow:
        eventually(one.begun, 20, 0.01)
        never(lambda: "supervise: program hangs" in dut.daemon.log(60), 2)
        one.get_ready()
    starts.join(30)

    assert dut.alive() and {one.name for one in slow} < set(ports(dut))
    assert dut.daemon.log(100).count("supervise: program started") == 1


class Manager(threading.Thread):
    """A service manager that only listens (sd_notify(3))."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.heard, self._sock = [], socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(path)
        self.start()

    def run(self):
        while True:
            self.heard.append(self._sock.recv(512).decode())


def test_a_start_reports_each_step(own_dut):
    """The manager hears of each step before the step begins, and each step has a time of its own. So
    a slow step takes no time from the next one, and a start that hangs names its step."""
    dut = own_dut()
    manager = Manager(path := f"{dut.dir}/notify")
    dut.daemon.within = ["env", f"NOTIFY_SOCKET={path}"]

    dut.start()
    eventually(lambda: "READY=1\nSTATUS=forwarding" in manager.heard, 10)

    steps = [text.removeprefix("EXTEND_TIMEOUT_USEC=90000000\nSTATUS=starting: ")
             for text in manager.heard if "STATUS=starting" in text]  # fmt: skip
    assert steps == [
        "tables of routes", "fpm-nics", "DPDK", "packet memory", "forwarders",
        *(f"port {name}" for name in ports(dut)), "threads and the kernel's state",
    ]  # fmt: skip


def test_reload_adds_and_removes_ports(router):
    """A reload changes ports by the same code as `port add`: all changes of the file or
    none."""
    dut = router
    old = "  - tap: ext0\n    device: net_af_packet,iface=p-ext\n"
    dut.edit_config(old, "  - tap: new0\n    device: net_null,no-rx=1\n")
    said = done(dut, "config", "reload")
    assert "ports[ext0]: net_af_packet,iface=p-ext -> none" in said
    assert {"new0"} <= taps(dut) and "ext0" not in taps(dut)

    dut.edit_config("new0\n    device: net_null,no-rx=1",
                    "new1\n    device: net_pcap,rx_pcap=/nowhere.pcap")  # fmt: skip
    before = taps(dut)
    refused = dut.fpmctl("config", "reload")
    assert refused.returncode == 2 and "port new1 device net_pcap" in refused.stderr
    assert taps(dut) == before and ports(dut) == ["lan0", "wan0", "alt0", "new0"]


WRONG = {
    "add": "usage:", "frob x": "unexpected word 'frob'", "add x": "a port needs a device",
    "add x device nothing": "is not a device", "add a/b device net_null": "interface name",
    "add x device net_af_packet,iface=p-wan": "belongs to ports[wan0] too; expected",
    "add x device net_null mtu 20": "mtu: 20 is out of range", "add x device net_null mtu y":
    "is not a whole number from 68 to 9216", "add lan0 device net_null": "exists already", "del x": "no port x",
    "set x mtu 1400": "no port x", "set lan0": "set needs", "del lan0 mtu 1": "del takes only a NAME",
    "add x device net_pcap,rx_pcap=/nowhere.pcap": "nothing changed",
    "set lan0 mtu 9000": "is more than the device", "add x colour red": "unexpected word",
    "set lan0 mtu 1400 mtu 1300": "mtu is given twice",
    "set lan0 device net_pcap,rx_pcap=/nowhere.pcap": "nothing changed",
    "set lan0 mtu 99999": "mtu: 99999 is out of range; expected a number from 68 to 9216, and the device of lan0 (net_af_packet) takes",
    "add x device net_null mtu 99999": "mtu: 99999 is out of range; expected a number from 68 to 9216",
    "set lan0 mtu 0": "mtu '0' is not a whole number from 68 to 9216", "set lan0 queues 99999999999": "queues '99999999999' is not a whole number from 1 to 64",
    "set lan0 queues 65": "queues: 65 is out of range; expected a number from 1 to 64", "add x device": "device needs a value",
    "del x y": "del takes only a NAME", "set lan0 cores 1,x": "is not a list of CPUs by number such as 1,2",
    "set lan0 queues 9": "device has 1 receive queue, not 9",
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_is_refused_and_changes_nothing(dut, words):
    """The daemon refuses an impossible change with one sentence and exit code 2. The
    configuration stays the same and the router forwards."""
    before, order = done(dut, "config", "show"), ports(dut)

    result = dut.fpmctl("port", *words.split())

    assert result.returncode == 2 and WRONG[words] in result.stderr, result.stderr
    assert "applied" not in result.stdout
    assert result.stdout == "" or result.stdout.startswith("requested:\n")
    assert done(dut, "config", "show") == before and ports(dut) == order
    assert "x" not in taps(dut)
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    eventually(lambda: dut.port_row(lan)["link"] == "up", 5)
    eventually(dut._is_ready, 10, 0.01)
    dut.route(NET, via=wan.peer4, wire=wan)
    assert dut.forwarded(lan, lan.probe(HOST), wan)


def test_what_its_own_device_refuses_does_not_close_the_port(router):
    """The daemon refuses more queues or a larger MTU than the device has. The port stays open
    and its counters continue."""
    dut = router
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    assert dut.forwarded(lan, lan.probe(HOST), wan)
    counted = dut.port_row(lan)["rx_packets"]
    assert counted > 0

    for words in ("queues 9", "mtu 9000", "queues 9 mtu 1400"):
        refused = dut.fpmctl("port", "set", "lan0", *words.split())
        assert (refused.returncode, "nothing changed" in refused.stderr) == (2, True)

    assert dut.port_row(lan)["rx_packets"] >= counted
    assert "manage: port removed" not in dut.log(400)


def test_a_port_keeps_its_place_behind_another_device(router):
    """Rows of `show ports` keep their places. A new port has the last place."""
    dut = router
    was = ports(dut)
    assert len(was) > 2

    done(dut, "port", "set", was[0], "device", "net_null")
    assert ports(dut) == was
    done(dut, "port", "del", was[1])
    done(dut, "port", "add", was[1], "device", "net_null")
    assert ports(dut) == [was[0], *was[2:], was[1]]


ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\\n")
print(s.makefile().readline())
"""


def test_only_root_names_devices_and_files(router):
    """A member of the socket's group without root rights cannot make the daemon open a file as
    root."""
    dut = router

    def nobody_asks(request):
        argv = [sys.executable, "-c", ASK, dut.socket, json.dumps(request)]
        done = subprocess.run(argv, user=65534, group=os.stat(dut.socket).st_gid,
                              extra_groups=[], capture_output=True, text=True, check=True)  # fmt: skip
        return json.loads(done.stdout)

    target = os.path.join(dut.dir, "written")
    device = {"do": "add", "name": "x", "device": f"net_pcap,tx_pcap={target}"}
    assert "only root" in nobody_asks({"port": device})["error"]
    assert "only root" in nobody_asks({"config": {"do": "reload", "file": dut.config}})["error"]
    assert not os.path.exists(target) and "x" not in taps(dut)
    assert nobody_asks({"config": {"do": "reload"}}) == {"end": True, "rows": 0}
    assert nobody_asks({"port": {"do": "set", "name": "lan0", "mtu": 1400}})["key"]


def test_a_port_that_came_later_is_kept_over_a_crash(own_dut):
    """The supervisor holds the TAP of an added port like all others. It does not hold the TAP
    of a deleted port."""
    dut = own_dut(supervised=True)
    dut.start()
    said = done(dut, "port", "add", "null0", "device", "net_null,no-rx=1")
    assert "applied\nThis lasts until the daemon ends." in said
    done(dut, "port", "del", "ext0")
    shown = done(dut, "config", "show")
    index = dut.link_row("null0")["ifindex"]
    dut.write_config(shown)

    was = dut.daemon.crash()
    dut.control.close()
    dut.daemon.back(was)

    assert dut.link_row("null0")["ifindex"] == index and "ext0" not in taps(dut)
    assert "name=null0 device=net_null,no-rx=1" in dut.daemon.log(40)
    assert "tap=kept" in [t for t in dut.daemon.log(40).splitlines() if "name=null0" in t][-1]


def test_a_refused_reload_leaves_the_tap_of_a_port_that_waits(own_dut):
    """A port waits for its server of memif after a crash, and the supervisor keeps its TAP. A
    reload gives the port another device and fails at a later port: the TAP is kept as before,
    without carrier, and also over the next crash and a planned restart."""
    dut = own_dut(supervised=True)
    waits = f"net_memif0,role=client,socket={dut.dir}/memif.sock,socket-abstract=no"
    other, slow = "net_null,no-rx=1", SlowDevice(dut, "slow0")
    wrong = f"{other}\n  - tap: {slow.name}\n    device: {slow.device}"
    dut.edit_config("ports:\n", f"ports:\n  - tap: mem0\n    device: {other}\n")
    dut.start()
    eventually(lambda: kept_taps(dut) == len(dut.wires) + 1, 5, 0.02, "the supervisor has all TAPs")
    index, kept = dut.link_row("mem0")["ifindex"], kept_taps(dut)
    dut.edit_config(other, waits)
    said, n = "fdstore: tap kept name=mem0 reason=port-waits", 0

    def came_back(was):
        dut.control.close()
        dut.daemon.back(was)
        eventually(lambda: dut.daemon.log(1000).count(said) == n, 5, 0.02, "the TAP is kept")
        eventually(lambda: kept_taps(dut) == kept, 5, 0.02, "the supervisor has all TAPs")
        assert dut.link_row("mem0")["ifindex"] == index
        eventually(lambda: not netns.has_carrier(dut.ctl, "mem0"), 10, 0.05)

    n += 1
    came_back(dut.daemon.crash())
    for again in (dut.daemon.crash, dut.daemon.pid):
        dut.edit_config(waits, wrong)
        asks = dut.fpmctl_begin("config", "reload")
        eventually(slow.begun, 20, 0.01)
        eventually(lambda: netns.has_carrier(dut.ctl, "mem0"), 5, 0.01)
        slow.fail()
        _, err = asks.communicate(timeout=30)
        assert asks.returncode == 2 and "nothing changed: port slow0" in err
        assert "mem0" not in ports(dut) and not netns.has_carrier(dut.ctl, "mem0")
        assert kept_taps(dut) == kept

        dut.edit_config(wrong, waits)
        was, n = again(), n + 1
        if again == dut.daemon.pid:
            done(dut, "restart")
        came_back(was)


def test_a_port_that_went_can_come_again_at_once(own_dut):
    """`port del` answers when the TAP is deleted and the supervisor has closed its
    descriptor."""
    dut = own_dut(supervised=True)
    dut.start()
    kept = len(dut.wires)
    eventually(lambda: kept_taps(dut) == kept, 5, 0.02, "the supervisor has all TAPs")

    for _ in range(40):
        done(dut, "port", "add", "t", "device", "net_null50,no-rx=1")
        done(dut, "port", "del", "t")
        assert kept_taps(dut) == kept and "t" not in taps(dut)


def test_a_port_goes_although_the_supervisor_does_not_listen(own_dut):
    """The daemon waits for a supervisor that does not listen, but not forever. The TAP is
    deleted nevertheless, so a port of that name can be added again, and the next daemon has the
    new TAP."""
    dut = own_dut(supervised=True)
    with hasty(5):
        dut.start()
    add = ("port", "add", "t", "device", "net_null50,no-rx=1")
    done(dut, *add)
    before = dut.link_row("t")["ifindex"]
    procs.stand_still(dut.daemon.process.pid)
    try:
        done(dut, "port", "del", "t")
        assert "t" not in taps(dut)
        said = "fdstore: tap not removed yet name=t"
        assert said in dut.daemon.log(60)
        done(dut, *add)
        index = dut.link_row("t")["ifindex"]
    finally:
        procs.signal_pid(dut.daemon.process.pid, signal.SIGCONT)
    assert index != before
    dut.write_config(done(dut, "config", "show"))

    was = dut.daemon.crash()
    dut.control.close()
    dut.daemon.back(was)
    assert dut.link_row("t")["ifindex"] == index


def test_many_comings_leave_no_memory_behind(router):
    """The daemon frees slots, devices, TAPs and descriptors: 60 additions and deletions (200
    with FDP_LONG=1) let memory grow by less than 40 KiB each."""
    dut = router
    files = lambda: len(netns.command(["ls", f"/proc/{dut.daemon.pid()}/fd"]).split())  # noqa: E731
    rss = lambda: dut.control.ask("memory")[0]["rss_bytes"]  # noqa: E731

    def round_trip():
        for change in ({"do": "add", "device": "net_null,no-rx=1"}, {"do": "del"}):
            assert dut.control.request({"port": {"name": "null0", **change}})

    for _ in range(3):
        round_trip()
    n, before = files(), rss()
    rounds = 200 if LONG else 60
    for _ in range(rounds):
        round_trip()
    # One descriptor more or less is a connection that another program opens or closes.
    eventually(lambda: files() <= n, 5)
    if "/release/" in dut.daemon.program:
        assert rss() - before < rounds * (40 << 10)
    assert json.loads(done(dut, "--json", "port", "add", "null0", "device", "net_null"))
