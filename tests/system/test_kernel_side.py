# SPDX-License-Identifier: BSD-3-Clause
"""An operator changes the interfaces of the kernel under traffic whose every packet is counted:
TAPs renamed, moved, deleted; MTU and MAC changed; addresses flushed."""

import contextlib
import os
import time

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns, rtnl
from lib.wait import LONG, eventually
from wire import token

NET, HOST = "198.51.100.0/24", "198.51.100.9"
OTHER, THERE = "203.0.113.0/24", "203.0.113.9"


@pytest.fixture
def busy(own_dut):
    """A router with a route by wan and a route by ext; (dut, lan, wan, ext)."""
    dut = own_dut()
    dut.start()
    lan, wan, ext = (dut.wires[n] for n in ("lan", "wan", "ext"))
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(OTHER, via=ext.peer4, wire=ext)
    return dut, lan, wan, ext


def host_answers(dut, wire):
    """Wait until the kernel behind the TAP answers a ping of the peer. It answers when its address
    is in the FIB."""

    def answers():
        echo = IP(src=wire.peer4, dst=wire.ip4) / ICMP() / Raw(mark := token())
        wire.send(Ether(src=wire.mac, dst=wire.port_mac) / echo)
        try:
            return wire.expect(mark, 0.2)[ICMP].type == 0
        except AssertionError:
            return False  # no answer yet

    eventually(answers, 5, 0.005, "an answer to a ping")


def test_a_renamed_tap_stays_the_port(busy):
    """A TAP renamed by `ip link set ext0 name uplink` and back, ten times, stays the port: no
    packet is lost in either direction, the port keeps the name of the configuration, `show ports` has
    both names, and an audit finds no difference."""
    dut, lan, wan, ext = busy

    with dut.stream(lan, HOST) as aside, dut.stream(lan, THERE) as stream:
        for _ in range(10):
            dut.ip(f"link set {ext.tap} name uplink")
            dut.ip(f"link set uplink name {ext.tap}")
        dut.ip(f"link set {ext.tap} name uplink")
        eventually(
            lambda: "uplink" in [r["name"] for r in dut.control.ask("interfaces")], 5, 0.01
        )
        host_answers(dut, ext)
        assert dut.port_row(ext)["interface"] == "uplink"
        shown = dut.fpmctl("show", "ports", "ext0").stdout
        assert "renamed in the kernel: interface uplink" in shown
        dut.ip(f"link set uplink name {ext.tap}")

    assert aside.lost(wan) == [] and stream.lost(ext) == []
    assert dut.port_row(ext)["name"] == "ext0" and dut.port_row(ext)["link"] == "up"
    assert dut.control.ask("audit")[-1]["differences"] == 0


def test_a_name_that_is_not_utf8_hides_no_row(busy):
    """An interface may have any octets in its name. Its rows, the rows of its neighbors and of its
    routes stay, with a question mark for each octet that is not UTF-8, and the metrics can be
    read."""
    dut, lan, wan, ext = busy
    dut.neighbor(ext.peer4, ext)

    def rename(old, new):
        for words in ([old, b"down"], [old, b"name", new], [new, b"up"]):
            netns.command(["ip", "-n", dut.ctl, "link", "set", *words])

    def devices(show, key):
        return {row[key] for row in dut.control.ask(show)}

    tap, name = ext.tap.encode(), b"w\x9bn"
    rename(tap, name)
    try:
        eventually(lambda: "w?n" in devices("interfaces", "name"), 5, 0.01)
        netns.command(["ip", "-n", dut.ctl, "neigh", "replace", "192.0.2.250", "lladdr"]
                      + [ext.mac, "dev", name])
        eventually(lambda: "w?n" in devices("neighbors", "dev"), 5, 0.01)
        assert dut.route_row(THERE, longest=True)["nexthops"][0]["dev"] == "w?n"
        for what in ("interfaces", "neighbors", "routes"):
            assert "w?n" in dut.fpmctl("show", what).stdout
        assert dut.port_row(ext)["interface"] == "w?n"
    finally:
        rename(name, tap)
    eventually(lambda: ext.tap in devices("interfaces", "name"), 5, 0.01)
    assert dut.port_row(ext)["interface"] == ext.tap


def test_a_tap_moved_to_another_namespace_is_made_anew(busy):
    """The kernel moves a TAP to another namespace, where the daemon cannot see it. Its routes are
    dead, other routes lose no packet. The daemon makes a TAP of the same name, and the port works
    again with its addresses. A deletion of the moved TAP changes nothing."""
    dut, lan, wan, ext = busy
    index = dut.link_row(ext.tap)["ifindex"]

    with dut.stream(lan, HOST) as aside:
        dut.ip(f"link set {ext.tap} netns {dut.far} name stolen")
        eventually(lambda: _made_anew(dut, ext, index), 5, 0.005)
        dut.kernel_defaults()
        eventually(lambda: dut.port_row(ext)["link"] == "up", 5, 0.01)
        eventually(lambda: (dut.neighbor_row(ext.peer4, ext) or {}).get("mac") == ext.mac, 5)
        netns.ip_batch(["link del stolen"], dut.far)
        # zebra names interfaces by index, so it announces its routes again.
        dut.route(OTHER, nhid=dut.zebra.hop(ext.peer4, ext))
        for _ in range(50):
            dut.forwarded(lan, lan.probe(THERE), ext)

    assert aside.lost(wan) == []
    host_answers(dut, ext)
    assert dut.stop() == 0


def test_a_namespace_that_loses_its_name_keeps_its_ports(busy):
    """`ip netns del` and `ip netns add` of the control namespace give its name to another namespace.
    A TAP that is then deleted is made again beside the other TAPs, not in the namespace that has the
    name now, and no packet of the other ports is lost. `show warnings`, doctor and audit report the
    cause."""
    dut, lan, wan, ext = busy
    old = dut.ctl + "-old"

    with dut.stream(lan, HOST) as aside:
        open(f"/run/netns/{old}", "w", encoding="ascii").close()
        netns.command(["mount", "--bind", f"/run/netns/{dut.ctl}", f"/run/netns/{old}"])
        try:
            netns.command(["ip", "netns", "del", dut.ctl])
            netns.command(["ip", "netns", "add", dut.ctl])
            netns.ip_batch([f"link del {ext.tap}"], old)
            eventually(lambda: ext.tap in rtnl.links(old), 10, 0.005)
            assert ext.tap not in rtnl.links(dut.ctl)
            kinds = lambda: [row["kind"] for row in dut.control.ask("warnings")]  # noqa: E731
            eventually(lambda: "namespace" in kinds(), 15, 0.05)
            doctor = dut.fpmctl("doctor", "obeyed", "rp-filter")
            audit = dut.fpmctl("audit")
        finally:
            netns.delete(old)

    assert aside.lost(wan) == []
    assert f"control-netns {dut.ctl}" in doctor.stdout
    assert "has lost this name" in doctor.stdout and "run as root" not in doctor.stdout
    assert audit.returncode == 1 and "has lost this name" in audit.stderr


def _link(dut, name):
    return next((row for row in dut.links() if row["ifname"] == name), None)


def _made_anew(dut, wire, index):
    """Return true if a new TAP has the name and the port's MAC. Until it has the MAC, the kernel
    forgets each neighbor that it gets."""
    row = _link(dut, wire.tap)
    return row and row["ifindex"] != index and row["address"] == wire.port_mac


def test_mtu_and_mac_change_under_load(busy):
    """Forty changes of MTU and MAC of the egress and of the MTU of the ingress lose no packet. Each
    packet has the old or the new MAC, never a mixture."""
    dut, lan, wan, _ = busy
    macs = [f"02:00:00:aa:{n:02x}:{255 - n:02x}" for n in range(20)]

    with dut.stream(lan, HOST, rate=2000) as stream:
        for n, mac in enumerate(macs):
            dut.ip(
                f"link set {wan.tap} mtu {1400 + n}",
                f"link set {wan.tap} address {mac}",
                f"link set {lan.tap} mtu {1500 - n}",
            )
            eventually(lambda m=mac: dut.port_row(wan)["mac"] == m, 5, 0.002)
            eventually(lambda n=n: dut.port_row(lan)["mtu"] == 1500 - n, 5, 0.002)
            eventually(lambda n=n: stream.sent > 100 * (n + 1), 5, 0.002)
        seen = {bytes(f[6:12]).hex(":") for f in wan.got(stream.mark)}
        dut.ip(f"link set {wan.tap} address {wan.port_mac}")

    print(f"{stream.sent} packets under {3 * len(macs)} changes, {len(seen)} sources")
    lines = dut.daemon.log(1000)
    assert "neigh: mtu changed port=wan0 mtu=1419" in lines
    assert f"neigh: mac changed port=wan0 mac={macs[-1]}" in lines
    assert stream.lost(wan) == [] and set(stream.arrived(wan).values()) == {1}
    assert seen <= {*macs, wan.port_mac} and len(seen) > len(macs) // 2


def test_a_smaller_mtu_below_a_port_is_its_mtu(busy):
    """The kernel drops each frame of AF_PACKET that is longer than the MTU of the interface, and
    counts it nowhere. So the MTU of the port is that of the interface if that is smaller: packets
    are fragmented, or dropped as too big. A larger MTU of the interface changes nothing."""
    dut, lan, _, ext = busy

    def below(mtu, want):
        netns.ip_batch([f"link set p-ext mtu {mtu}"], dut.dp)
        eventually(lambda: dut.port_row(ext)["mtu"] == want, 5, 0.005)

    try:
        below(1400, 1400)
        first = dut.forwarded(lan, lan.probe(THERE, size=1480), ext)
        assert first[IP].flags == "MF" and len(first) <= 1414
        whole = lan.probe(THERE, size=1480)
        whole[IP].flags = "DF"
        assert dut.not_forwarded(lan, whole) == {"mtu": 1}
        assert "neigh: device mtu below port mtu port=ext0 device=p-ext mtu=1400" in dut.log(100)
        below(9000, 1500)
        assert len(dut.forwarded(lan, lan.probe(THERE, size=1480), ext)) > 1414
    finally:
        below(1500, 1500)


def test_addresses_flushed_under_load_and_given_back(busy):
    """After `ip addr flush` the subnet has no interface, and its gateways, which are static
    neighbors, are gone with it. Other ports lose no packet. Restored addresses work at once, ten
    times."""
    dut, lan, wan, ext = busy

    def addresses():
        return next(r for r in dut.control.ask("interfaces") if r["name"] == ext.tap)["addresses"]

    with dut.stream(lan, HOST) as aside:
        for _ in range(10):
            dut.ip(f"addr flush dev {ext.tap}")
            eventually(lambda: dut.route_row(ext.host4) is None, 5, 0.005)
            eventually(lambda: not any(a.startswith("192.0.2.") for a in addresses()), 5, 0.005)
            dut.kernel_defaults()
            eventually(
                lambda: (dut.neighbor_row(ext.peer4, ext) or {}).get("mac") == ext.mac, 5, 0.005
            )
            eventually(lambda: dut.route_row(ext.host4), 5, 0.005)
            dut.forwarded(lan, lan.probe(THERE), ext)
            dut.forwarded(lan, lan.probe(ext.peer4), ext)
            host_answers(dut, ext)

    assert aside.lost(wan) == []


def descriptors(pid):
    """Return the targets of the descriptors of a process. Some may be closed meanwhile."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return sorted(found)


def test_taps_deleted_again_and_again_under_load(busy):
    """Each time a TAP is deleted, the daemon creates it again within seconds, with its MAC. Other
    ports lose no packet, and no descriptor leaks."""
    dut, lan, wan, ext = busy
    took, pid = [], dut.daemon.pid()
    before = descriptors(pid)

    with dut.stream(lan, HOST) as aside:
        for _ in range(10 if LONG else 4):
            index = dut.link_row(ext.tap)["ifindex"]
            begin = time.monotonic()
            dut.ip(f"link del {ext.tap}")
            eventually(lambda i=index: _made_anew(dut, ext, i), 10, 0.005)
            took.append(time.monotonic() - begin)
            dut.kernel_defaults()
            eventually(lambda: dut.port_row(ext)["link"] == "up", 5, 0.005)
            host_answers(dut, ext)

    took.sort()
    print(f"made anew after {took[len(took) // 2]:.2f} s, at most {took[-1]:.2f} s")
    assert aside.lost(wan) == []
    # A scan of the kernel has a descriptor for a moment.
    eventually(lambda: len(descriptors(pid)) <= len(before), 10, 0.05, f"at most {len(before)} descriptors")


def test_addresses_are_shown_by_family(busy):
    """`show interfaces` has IPv4 addresses first, then IPv6 addresses, then link-local ones, in
    whatever order the kernel got them."""
    dut, _, _, ext = busy

    def shown():
        """Return the addresses of ext without their lengths."""
        row = next(r for r in dut.control.ask("interfaces") if r["name"] == ext.tap)
        return [a.split("/")[0] for a in row["addresses"]]

    dut.ip(f"addr flush dev {ext.tap}")
    late = ["2001:db8:77::1/64", "fe80::77/64", "10.77.0.1/24"]
    for n, address in enumerate(late, 1):
        dut.ip(f"addr add {address} dev {ext.tap}" + (" nodad" if ":" in address else ""))
        eventually(lambda n=n: len(shown()) == n, 5, 0.01)
    assert shown() == ["10.77.0.1", "2001:db8:77::1", "fe80::77"]
