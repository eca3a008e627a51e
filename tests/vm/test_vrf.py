# SPDX-License-Identifier: BSD-3-Clause
"""Interfaces in VRFs of the kernel: each VRF is a router of its own with its FIB, addresses and
neighbors, independent of the others."""

import base64
import ipaddress
import os
import shlex
import socket
import struct
import time

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import Ether

from lib import api, netns
from lib.frr import beside
from lib.probe import ping
from lib.wait import eventually
from filtered import Filtered
from linux_router import LinuxRouter
from router import Router, running
from sflow_sink import PORT, Settings, decode
from vrfs import BEFORE, BEHIND, HOST, MEMBERS, NET, PLEN, RENAMED, TABLE
from vrfs import add, enslave, goes, route, row, vrfs
from vrfs import machine, router, two  # noqa: F401
from wire import token_of

# audited() has the daemon forget a route.
os.environ["FPM_DATAPLANE_TEST_HOOKS"] = "1"

VRF_LAST = 4278198272  # metric of the last route of a VRF, after all routes of zebra
SENTINEL = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"
LEAKED, LEAKED_HOST = "203.0.113.0/24", "203.0.113.9"

FRR_CONF = """\
hostname r1
fpm address 127.0.0.1
vrf red
 ip route 198.51.100.0/24 10.0.2.2
 ipv6 route 2001:db8:a::/48 2001:db8:52::2
 ip route 203.0.113.0/24 10.0.2.2 nexthop-vrf blue
exit-vrf
vrf blue
 ip route 198.51.100.0/24 10.0.2.2
 ipv6 route 2001:db8:a::/48 2001:db8:52::2
exit-vrf
"""


def fib4(router, vrf):
    """Return the row of a VRF's IPv4 FIB."""
    rows = router.control.ask("fib")
    return next(r for r in rows if (r["vrf"], r["family"]) == (vrf, "ipv4"))


def counted(router, vrf):
    """Return (frames, octets, drops) of a VRF."""
    (found,) = api.call(router, "GET", "/vrfs/{name}", vrf)[1]
    return found["rx_packets"], found["rx_bytes"], found["dropped"]


def audited(router, frr):
    """Check that zebra, RIB and FIB are equal in all VRFs, and that the audit finds a route
    that the dataplane lacks."""
    lost = "198.51.102.0/24"
    ask = ["audit", "--vtysh", shlex.join(frr.vtysh_argv())]

    def same():
        done = router.fpmctl(*ask)
        if done.returncode != 0:
            raise LookupError(done.stdout + done.stderr)
        return True

    # Linux's documentation of VRFs advises it, so that no lookup continues in another table.
    router.ip(f"route add table 100 unreachable default metric {VRF_LAST}")
    eventually(lambda: row(router, "red", "0.0.0.0/0"), 10, 0.1, "zebra tells of it")
    eventually(same, 20, 0.5, "equal")
    said = router.fpmctl(*ask).stdout
    assert "in table main and 2 VRFs" in said and "Equal." in said, said

    own = "198.51.103.0/24"
    router.ip(f"route add {own} via {BEHIND[4].format(2)} dev wan0 table 100")
    eventually(lambda: row(router, "red", own), 10, 0.1, "a route of the kernel")
    eventually(same, 20, 0.5, "equal")
    router.control.request({"break": "route", "prefix": own})
    done = router.fpmctl(*ask)
    hop = f"via {BEHIND[4].format(2)} dev wan0 weight 1"
    found = f"VRF red: DIFFERS {own}: the kernel has {hop}, the dataplane has no route"
    assert done.returncode == 3 and found in done.stdout.splitlines(), done.stdout
    router.ip(f"route del {own} table 100")

    frr.configure("no fpm address 127.0.0.1")
    eventually(lambda: not router.fpm()["connected"], 15, 0.1, "zebra has gone")
    frr.configure("vrf blue", f"ip route {lost} {BEHIND[4].format(2)}")
    there = lambda: lost in frr.vtysh("show ip route vrf blue")  # noqa: E731
    eventually(there, 10, 0.1, "zebra has it")
    done = router.fpmctl(*ask)
    assert done.returncode == 3, done.stdout + done.stderr
    hop = f"via {BEHIND[4].format(2)} dev ext0 weight 1"
    found = f"VRF blue: DIFFERS {lost}: zebra has {hop}, the dataplane has no route"
    assert found in done.stdout.splitlines(), done.stdout
    frr.configure("fpm address 127.0.0.1")
    eventually(same, 30, 0.5, "replayed, and equal")


def both(router):
    """Return (VRF, the port before the router, the port behind it) of each VRF."""
    return [(v, *(router.wires[n] for n in names)) for v, names in MEMBERS.items()]


@pytest.mark.quick
def test_the_same_prefix_leaves_by_the_vrf_that_it_came_in_by(two, family):
    for vrf, _, out in both(two):
        route(two, vrf, NET[family], BEHIND[family].format(2), out)

    for _, wire, out in both(two):
        goes(two, wire, out, HOST[family])

    two.zebra.drop(NET[family], table=TABLE["red"])
    eventually(lambda: not row(two, "red", NET[family]), 5, 0.01, "withdrawn")
    lan = two.wires["lan"]
    # A packet of the first part may still wait for its neighbor, and fail now.
    assert two.not_forwarded(lan, lan.probe(HOST[family])).get("no_route") == 1
    goes(two, two.wires["alt"], two.wires["ext"], HOST[family])


@pytest.mark.quick
def test_a_program_leads_packets_into_another_vrf(two, family):
    """The program of an interface chooses the table of another VRF, whatever VRF the interface is
    in: `return FPM_TABLE(...)`."""
    for vrf, _, out in both(two):
        route(two, vrf, NET[family], BEHIND[family].format(2), out)
    words = struct.pack("<BBhiBBhi", 0x18, 0, 0, 4, 0, 0, 0, TABLE["blue"])
    words += struct.pack("<BBhi", 0x95, 0, 0, 0)
    lan, wan, ext = (two.wires[name] for name in ("lan", "wan", "ext"))

    goes(two, lan, wan, HOST[family])
    program = {"file": "blue.o", "of": 3, "program": base64.b64encode(words).decode()}
    two.control.request({"hook": {"do": "load", "dev": "lan0", **program}})
    try:
        goes(two, lan, ext, HOST[family])
        words = ["port", "lan0", "src", BEFORE[family].format(2), "dst", HOST[family]]
        assert "looked up again in vrf blue: adjacency" in two.fpmctl("explain", *words).stdout
    finally:
        two.control.request({"hook": {"do": "unload", "dev": "lan0"}})
    goes(two, lan, wan, HOST[family])


@pytest.mark.quick
def test_samples_of_sflow_have_the_prefixes_of_the_vrf(two, family):
    """A sample of a packet in a VRF has the lengths of the VRF's prefixes, and datagrams reach a
    collector in the VRF."""
    lan, wan = two.wires["lan"], two.wires["wan"]
    route(two, "red", NET[family], BEHIND[family].format(2), wan)
    to = BEHIND[family].format(2)
    settings = Settings(two)
    settings(collectors=[f"[{to}]:{PORT} vrf red" if family == 6 else f"{to}:{PORT} vrf red"])
    two.fence(lan)  # a forwarder uses the settings with which its round began
    try:
        probe = lan.probe(HOST[family], src=BEFORE[family].format(2))
        two.forwarded(lan, probe, wan)
        packet = wan.expect(lambda data: token_of(probe) in data[60:] and UDP in Ether(data)
                            and Ether(data)[UDP].dport == PORT, 5)  # fmt: skip
    finally:
        settings(ports=())

    head = packet[IP if family == 4 else IPv6]
    assert (head.src, head.dst) == (BEHIND[family].format(1), to)
    (row,) = [s for s in decode(bytes(packet[UDP].payload))["samples"] if token_of(probe) in s["header"]]
    assert (row["src_mask"], row["dst_mask"]) == (PLEN[family], 24 if family == 4 else 48)
    assert (row["output"], row["nexthop"]) == (two.ifindex(wan), to)


def test_hosts_with_the_same_address_are_each_vrfs_own(two, family):
    for _, wire, out in both(two):
        goes(two, wire, out, BEHIND[family].format(2))


def test_an_unknown_host_is_asked_for_in_the_vrf(two, family):
    host = BEHIND[family].format(77)

    for _, wire, out in both(two):
        out.answer(host)
        goes(two, wire, out, host)


def test_an_icmp_error_goes_back_into_the_vrf(two, family):
    for vrf, wire, out in both(two):
        route(two, vrf, NET[family], BEHIND[family].format(2), out)
        last = {"ttl": 1} if family == 4 else {"hlim": 1}
        probe = wire.probe(HOST[family], src=BEFORE[family].format(2), **last)

        error = wire.srp1(probe)

        layer, kind = (IP, ICMP) if family == 4 else (IPv6, ICMPv6TimeExceeded)
        assert error[layer].dst == BEFORE[family].format(2) and error.dst == wire.mac
        # A port uses its first address of each family for all its errors.
        assert error[layer].src in (wire.ip4, wire.ip6, BEFORE[family].format(1))
        assert kind in error and error[kind].type in (3, 11)


def kernel_says(router, dst, src, wire):
    """Return the interface by which the kernel would send the packet, or its error."""
    argv = ["ip", "route", "get", dst, "from", src, "iif", wire.tap]
    done = netns.run(router.ctl, argv, check=False)
    return done.split(" dev ")[1].split()[0] if " dev " in done else "none"


def test_a_vrf_goes_on_in_main_as_in_linux_unless_it_has_a_default_route(router, family):
    """A packet that no route of its VRF matches goes by table main. An unreachable default route
    keeps it in the VRF, and `doctor` says so. Packets in no VRF never enter one."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    host, peer = (wan.peer4, lan.peer4) if family == 4 else (wan.peer6, lan.peer6)
    router.forwarded(lan, lan.probe(host), wan)
    router.forwarded(wan, wan.probe(peer), lan)

    add(router, "red")
    enslave(router, "red", lan)

    assert kernel_says(router, host, peer, lan) == "wan0"
    router.forwarded(lan, lan.probe(host), wan)
    assert kernel_says(router, peer, host, wan) == "none"
    assert router.not_forwarded(wan, wan.probe(peer)) == {"no_route": 1}
    said = router.fpmctl("explain", "port", "lan0", "src", peer, "dst", host).stdout
    assert "vrf        red has no route: table main answers" in said, said

    advice = router.fpmctl("doctor", "vrfs").stdout
    line = f"route add vrf red unreachable default metric {VRF_LAST}"
    assert " red " in advice and "no default route: IPv4, IPv6" in advice, advice
    assert f"ip {line}" in advice and f"ip -6 {line}" in advice
    router.ip(line, f"-6 {line}")
    eventually(lambda: row(router, "red", "::/0"), 5, 0.01, "in force")
    assert kernel_says(router, host, peer, lan) == "none"
    assert router.not_forwarded(lan, lan.probe(host)) == {"unreachable": 1}
    assert "0 WARN" in router.fpmctl("doctor", "vrfs").stdout
    # Such a route stays when its VRF is deleted.
    router.ip(*(x.replace(" add ", " del ") for x in (line, f"-6 {line}")))


def test_without_the_rule_of_vrfs_their_packets_look_up_main(router, family):
    """Linux adds the rule (`l3mdev`) with the first VRF, and `ip rule flush` removes it. The rule
    has no effect if it is behind the rule of main, as in Linux."""
    lan, wan, alt = (router.wires[name] for name in ("lan", "wan", "alt"))
    six, host = "-6 " * (family == 6), HOST[family]
    add(router, "red")
    enslave(router, "red", lan)
    enslave(router, "red", alt)
    peer = f"{alt.peer(family)} dev {alt.tap}"
    router.ip(
        f"{six}neigh replace {peer.replace(' ', f' lladdr {alt.mac} ', 1)} nud permanent",
        f"{six}route add {NET[family]} via {peer} table 100",
        f"{six}route add {NET[family]} via {wan.peer(family)} dev {wan.tap}",
    )

    def by(out):
        probe = lan.probe(host)
        lan.send(probe)
        router.fence(lan)
        return [w for w in (wan, alt) if w.got(token_of(probe))] == [out]

    try:
        eventually(lambda: by(alt), 5, 0.05, "by the route of the VRF")
        assert kernel_says(router, host, lan.peer(family), lan) == alt.tap
        router.ip(f"{six}rule del pref 1000")
        eventually(lambda: by(wan), 5, 0.05, "by the route of main")
        assert kernel_says(router, host, lan.peer(family), lan) == wan.tap
        said = router.fpmctl("explain", "port", "lan0", "src", lan.peer(family), "dst", host).stdout
        assert wan.tap in said and alt.tap not in said, said
        router.ip(f"{six}rule add l3mdev pref 40000")
        assert kernel_says(router, host, lan.peer(family), lan) == wan.tap
        rows = lambda: [r["action"] for r in router.control.ask("rules")]  # noqa: E731
        eventually(lambda: rows().count("l3mdev") == 2, 5, 0.01, "the rule behind main")
        assert by(wan)
    finally:
        router.ip(
            f"{six}rule add l3mdev pref 1000",
            f"{six}route del {NET[family]} table 100",
            f"{six}route del {NET[family]}",
        )
        netns.command(["ip", "-n", router.ctl, f"-{family}", "rule", "del", "pref", "40000"], check=False)
    eventually(lambda: len([r for r in router.control.ask("rules") if r["pref"] == 40000]) == 0, 5, 0.01)


@pytest.mark.quick
def test_who_leaves_the_vrf_is_in_main_again(router):
    lan, wan = router.wires["lan"], router.wires["wan"]
    add(router, "red")
    router.ip(f"route add vrf red unreachable default metric {VRF_LAST}")
    enslave(router, "red", lan)
    assert router.not_forwarded(lan, lan.probe(wan.peer4)) == {"unreachable": 1}

    router.ip("link set lan0 nomaster", "route del table 100 unreachable default")
    router.ready()

    router.forwarded(lan, lan.probe(wan.peer4), wan)
    router.forwarded(wan, wan.probe(lan.peer4), lan)


@pytest.mark.quick
def test_a_bond_in_a_vrf_has_the_routes_of_the_vrf(router):
    """A bond of the kernel over a port is in a VRF. The packets that the port receives take the
    routes of the VRF and not those of main. Packets from a member that the bond does not use are
    not forwarded."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    netns.command(["modprobe", "bonding"])
    router.route(NET[4], via=wan.peer4, wire=wan)
    router.forwarded(lan, lan.probe(HOST[4]), wan)
    add(router, "red")
    router.ip(
        f"route add table {TABLE['red']} unreachable default",
        f"route add table {TABLE['red']} 203.0.113.0/24 via {wan.peer4} dev wan0",
        "link add bond7 type bond mode active-backup miimon 100", "link set bond7 master red",
        "link set lan0 down", "link set lan0 master bond7", "link set alt0 down",
        "link set alt0 master bond7", "link set bond7 up", "link set lan0 up", "link set alt0 up",
        "addr add 10.9.0.1/24 dev bond7",
        f"neigh replace 10.9.0.2 lladdr {lan.mac} dev bond7 nud permanent",
    )  # fmt: skip
    try:
        eventually(lambda: vrfs(router)["lan0"] == "red", 5, 0.01)

        def passes(wire, dst):
            probe = wire.probe(dst, src="10.9.0.2")
            probe[Ether].dst = lan.port_mac  # that of the bond
            wire.send(probe)
            return wan.expect_raw(token_of(probe), 0.3)

        eventually(lambda: passes(lan, "203.0.113.9"), 10, 0.1, "by the VRF")
        assert router.not_forwarded(lan, lan.probe(HOST[4], src="10.9.0.2")) == {}
        with pytest.raises(AssertionError):
            passes(router.wires["alt"], "203.0.113.9")
    finally:
        # Such a route stays when its VRF is deleted.
        default = f"table {TABLE['red']} unreachable default"
        router.ip("link del bond7", "link set lan0 up", "link set alt0 up", f"route del {default}")


def test_a_renamed_vrf_stays_the_table(two):
    """The kernel renames a VRF only while it is down. Members of the VRF forward meanwhile: no
    packet is lost, the VRF has its new name in all commands, and its counters continue. The
    kernel refuses to move a VRF to another namespace."""
    for vrf, _, out in both(two):
        route(two, vrf, NET[4], BEHIND[4].format(2), out)
    lan, wan = two.wires["lan"], two.wires["wan"]
    with two.stream(lan, HOST[4], rate=200) as stream:
        before = counted(two, "red")[0]
        for old, new in (("red", RENAMED), (RENAMED, "red")) * 3:
            two.rename(old, new)
            eventually(lambda n=new: vrfs(two)["lan0"] == n, 5, 0.01, "its new name")
            # rib gets the new name later than neigh.
            there = eventually(lambda n=new: row(two, n, NET[4]), 5, 0.01, "its routes")
            assert there["state"] == "forwarding"
            assert {r["vrf"] for r in two.control.ask("fib")} == {None, new, "blue"}
            assert f"\n{new} " in two.fpmctl("show", "vrfs").stdout
            enough = stream.sent + 20
            eventually(lambda n=enough: stream.sent > n, 5, 0.01, "packets")
        with pytest.raises(netns.CommandError):
            two.ip(f"link set red netns {two.far}")
    assert stream.lost(wan) == []
    assert counted(two, "red")[0] >= before + 120
    assert two.control.ask("audit")[-1]["differences"] == 0


def test_a_vlan_moves_from_vrf_to_vrf_and_back_under_load(two):
    """Each packet received on the VLAN leaves by one VRF or by the other. Packets are lost only
    while the kernel has the VLAN in no VRF."""
    for vrf, _, out in both(two):
        route(two, vrf, NET[4], BEHIND[4].format(2), out)
    lan, wan, ext = (two.wires[n] for n in ("lan", "wan", "ext"))

    def moves(vrf):
        two.ip(f"link set lan0.7 master {vrf}" if vrf else "link set lan0.7 nomaster")
        rows = lambda: {r["name"]: r["vrf"] for r in two.control.ask("interfaces")}  # noqa: E731
        eventually(lambda: rows().get("lan0.7", "") == vrf, 5, 0.01, f"in {vrf}")

    two.ip("link add link lan0 name lan0.7 type vlan id 7", "link set lan0.7 up")
    moves("red")
    stream, turns = two.stream(lan, HOST[4], rate=500), []
    stream.templates = [
        (head[:12] + b"\x81\0\0\7" + head[12:], tail) for head, tail in stream.templates
    ]
    try:
        with stream:
            for vrf, out in (("blue", ext), ("red", wan), (None, None), ("blue", ext)):
                moves(vrf)
                begin = stream.sent
                eventually(lambda b=begin: stream.sent > b + 50, 10, 0.01, "more packets")
                turns.append((out, range(begin + 1, stream.sent - 1)))
                stream.dut.fence(lan)
    finally:
        two.ip("link del lan0.7")

    seen = {out: stream.arrived(out) for out in (wan, ext)}
    for out, numbers in turns:
        for other, arrived in seen.items():
            got = [n for n in numbers if n in arrived]
            assert got == (list(numbers) if other is out else []), (out, other)
    assert not set(seen[wan]) & set(seen[ext])
    assert set(seen[wan].values()) == set(seen[ext].values()) == {1}


def test_a_vrf_that_goes_under_load_lets_its_members_go_and_hurts_no_other(two):
    for vrf, _, out in both(two):
        route(two, vrf, NET[4], BEHIND[4].format(2), out)
    ext = two.wires["ext"]

    with two.stream(two.wires["alt"], HOST[4]) as blue:
        with two.stream(two.wires["lan"], HOST[4]):
            two.ip("link del red")
            eventually(lambda: vrfs(two)["lan0"] is None, 5, 0.01, "in no VRF")
            blue.stop()
    assert blue.lost(ext) == []
    assert row(two, "red", NET[4]) is None
    # The RIB keeps zebra's route until zebra withdraws it.
    rows = two.control.ask("routes", prefix=NET[4], longest=False, all_tables=True)
    states = {(r["table"], r["vrf"], r["state"]) for r in rows}
    assert states == {(100, None, "not-installed"), (2000, "blue", "forwarding")}

    two.ready()
    lan, wan = two.wires["lan"], two.wires["wan"]
    two.forwarded(lan, lan.probe(wan.peer4), wan)


def test_a_vrf_with_many_routes_goes_under_load_and_hurts_no_other(two, capsys):
    """The VRF's FIB is removed in one step. Its memory is freed afterwards and takes no time of
    a forwarder. With a million routes: `N_ROUTES=1000000 make test-vm T=many_routes`."""
    n = int(os.environ.get("N_ROUTES", "20000"))
    for vrf, _, out in both(two):
        route(two, vrf, NET[4], BEHIND[4].format(2), out)
    nhid = two.zebra.hop(BEHIND[4].format(2), two.wires["wan"])
    begin = time.monotonic()
    two.zebra.speaker.routes("20.0.0.0/28", n, nhid, table=TABLE["red"])
    full = lambda: fib4(two, "red")["routes"] > n  # noqa: E731
    eventually(full, 60 + n / 2000, 0.05, "all of them in the FIB")
    filled = time.monotonic() - begin
    row_full = fib4(two, "red")
    last = str(ipaddress.ip_address("20.0.0.0") + (n - 1) * 16 + 1)
    goes(two, two.wires["lan"], two.wires["wan"], last)
    ext, rss = two.wires["ext"], two.rss()

    with two.stream(two.wires["alt"], HOST[4]) as blue:
        with two.stream(two.wires["lan"], last):
            begin = time.monotonic()
            two.ip("link del red")
            asked = time.monotonic() - begin
            gone = lambda: {r["name"] for r in two.control.ask("vrfs")} == {
                "blue"
            }  # noqa: E731
            eventually(gone, 30, 0.002, "no FIB any more")
            took = time.monotonic() - begin
            eventually(lambda: two.fpm()["reclaim_pending"] == 0, 30, 0.01, "the memory is freed")
            freed = time.monotonic() - begin
            blue.stop()
    assert blue.lost(ext) == []
    assert two.control.ask("audit")[-1]["differences"] == 0
    with capsys.disabled():
        print(f"\nvrf of {n} routes: filled in {filled:.1f} s, {row_full['bytes'] >> 10} + "
              f"{row_full['radix_bytes'] >> 10} KiB; link del {asked:.3f} s, no FIB after "
              f"{took:.3f} s, freed after {freed:.3f} s; of {blue.sent} packets in the other "
              f"VRF 0 lost; RSS {rss >> 20} -> {two.rss() >> 20} MiB")  # fmt: skip
    two.zebra.speaker.routes_del("20.0.0.0/28", n, table=TABLE["red"])
    two.zebra.drop(NET[4], table=TABLE["red"])
    withdrawn = lambda: two.fpm()["no_vrf_routes"] == 0  # noqa: E731
    eventually(withdrawn, 60 + n / 2000, 0.05, "withdrawn")


def test_transit_goes_on_over_a_crash_and_what_zebra_does_not_say_again_goes(two, family):
    """VRFs have their routes before zebra connects. Then the replay of each VRF counts by itself."""
    other = {4: "198.51.101.0/24", 6: "2001:db8:b::/48"}[family]
    for vrf, _, out in both(two):
        route(two, vrf, NET[family], BEHIND[family].format(2), out)
        route(two, vrf, other, BEHIND[family].format(2), out)

    was = two.daemon.crash()
    two.control.close()
    two.daemon.back(was)
    for vrf, _, _ in both(two):
        own = BEHIND[6].format(1) + "/128"
        eventually(lambda v=vrf: row(two, v, own), 5, 0.01, "addresses in the FIB")

    for _, wire, out in both(two):
        goes(two, wire, out, HOST[family])
    found = two.fpm()["checkpoint"]
    assert found["restored"] >= 4 and found["discarded"] == found["restore_lost"] == 0
    assert two.control.ask("audit")[-1]["differences"] == 0
    # zebra sends no route for blue: its routes are kept, and `show vrfs` says so. For red it
    # sends one of two routes.
    two.zebra.connect()
    two.zebra.add("192.0.2.240/28", rtm_type=6)
    two.zebra.add(SENTINEL, rtm_type=6)
    red = two.wires["wan"]
    route(two, "red", NET[family], BEHIND[family].format(2), red)
    eventually(lambda: two.fpm()["vrf_phase"] == "in-step", 30, 0.1, "the sweep is over")
    assert row(two, "red", other) is None
    assert row(two, "red", NET[family])["stale"] is False
    assert row(two, "blue", other)["stale"] is True
    for _, wire, out in both(two):
        goes(two, wire, out, HOST[family])
    listed = two.fpmctl("show", "vrfs").stdout
    assert listed.count("    2 routes stale, not replayed\n") == listed.count("stale") == 1
    assert two.fpm()["vrfs_not_replayed"] == 1
    assert "WARNING" in two.fpmctl("show", "fpm").stdout
    two.zebra.drop(NET[family], other, table=TABLE["blue"])


def test_what_comes_in_is_counted_by_vrf_wherever_the_member_goes(two):
    for vrf, _, out in both(two):
        route(two, vrf, NET[4], BEHIND[4].format(2), out)
    lan = two.wires["lan"]
    two.fence(lan)
    before = {vrf: counted(two, vrf) for vrf in TABLE}

    for _ in range(5):
        goes(two, lan, two.wires["wan"], HOST[4])
    probes = [lan.probe("203.0.113.77") for _ in range(40)]
    two.not_forwarded(lan, *probes)

    red, blue = counted(two, "red"), counted(two, "blue")
    # Frames of fences and of hosts are counted, too.
    assert red[0] - before["red"][0] >= 45
    assert red[1] - before["red"][1] >= 45 * len(bytes(probes[0]))
    assert red[2] - before["red"][2] >= 40
    assert blue[0] - before["blue"][0] < 40
    assert "red" in two.fpmctl("show", "vrfs", "red").stdout

    enslave(two, "blue", lan)
    left, came = counted(two, "red"), counted(two, "blue")
    two.not_forwarded(lan, *[lan.probe("203.0.113.77") for _ in range(40)])
    # The counters of the VRF stay.
    assert left[0] <= counted(two, "red")[0] < left[0] + 40
    assert counted(two, "blue")[2] >= came[2] + 40


@pytest.mark.quick
def test_the_host_is_served_in_the_vrf(router):
    """The kernel answers to the member's addresses in the VRF as elsewhere: pings pass, and so
    can BGP sessions."""
    lan = router.wires["lan"]
    add(router, "red")
    enslave(router, "red", lan)
    probe = lan.probe(lan.ip4)
    peer = "192.0.2.50"

    lan.send(probe)

    # A NIC pads a frame to 60 octets, a veth does not.
    came = router.taps["lan"].expect_raw(token_of(probe))
    assert came in (bytes(probe), bytes(probe).ljust(60, b"\0"))
    netns.ip_batch([f"addr add {peer}/26 dev lan"], router.far)
    try:
        here = ping(router.far, lan.ip4)[0]
        there = ping(router.ctl, peer, dev="red")[0]
    finally:
        netns.ip_batch([f"addr del {peer}/26 dev lan"], router.far)
    assert (here, there) == (3, 3)


def passed(router):
    """Return {punt class: number of passed packets}."""
    return {r["class"]: r["passed"] for r in router.control.ask("punt")}


def test_a_peer_of_one_vrf_is_a_stranger_in_another(two, family):
    """The router has a BFD session with a host of red. A host of blue with the same address has
    no protected room."""
    ours, peer = BEFORE[family].format(1), BEFORE[family].format(2)
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with netns.open_socket(two.ctl, kind, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"red")
        sock.sendto(b"hello", (peer, 3784))
    two.wires["lan"].expect(lambda d: d[-5:] == b"hello")
    last = {"ttl": 255} if family == 4 else {"hlim": 255}

    for name, mine, other in (("lan", "bfd", "control-new"), ("alt", "control-new", "bfd")):
        wire, before = two.wires[name], passed(two)
        probes = [wire.probe(ours, src=peer, dport=3784, **last) for _ in range(20)]
        two.fence(wire)
        wire.send(*probes)
        for probe in probes:
            two.taps[name].expect_raw(token_of(probe))
        two.fence(wire)
        now = passed(two)
        assert (now[mine] - before[mine], now[other] - before[other]) == (20, 0), name


def test_an_operator_sees_what_is_in_a_vrf(two):
    route(two, "red", NET[4], BEHIND[4].format(2), two.wires["wan"])

    listed = two.fpmctl("show", "routes", "vrf", "red").stdout
    longest = two.fpmctl("show", "routes", HOST[4], "vrf", "red").stdout
    fibs = two.fpmctl("show", "fib").stdout
    missing = two.fpmctl("show", "routes", "vrf", "green")

    assert f"{NET[4]}" in listed and "10.0.1.1/32" in listed and "(vrf red)" in listed
    assert longest.splitlines()[-1].startswith(NET[4])
    assert "red" in fibs and "blue" in fibs
    assert missing.returncode != 0 and "has a FIB" in missing.stderr
    assert two.control.ask("audit")[-1]["differences"] == 0
    rows = two.control.ask("vrfs")
    api.validate(rows, api.rows_schema("GET", "/vrfs")[1]["schema"])
    assert {r["name"]: (r["table"], r["zebra"]) for r in rows} == {
        "red": (100, 1), "blue": (2000, 0)
    }  # fmt: skip


def test_frr_with_two_vrfs(two):
    """A real zebra has the same routes in two VRFs and one leaked route. After a replay the
    VRFs have their routes again."""
    lan, wan, alt, ext = (two.wires[n] for n in ("lan", "wan", "alt", "ext"))
    two.zebra.close()
    with beside(two, FRR_CONF) as frr:
        for vrf, wire, out in both(two):
            for family in (4, 6):
                eventually(
                    lambda v=vrf, f=family: row(two, v, NET[f]), 30, 0.1, "from zebra"
                )
                goes(two, wire, out, HOST[family])
        eventually(lambda: row(two, "red", LEAKED), 10, 0.1, "the leaked route")
        goes(two, lan, ext, LEAKED_HOST)
        assert two.not_forwarded(alt, alt.probe(LEAKED_HOST)) == {"no_route": 1}

        frr.configure("vrf red", f"no ip route {NET[4]} {BEHIND[4].format(2)}")
        eventually(lambda: not row(two, "red", NET[4]), 10, 0.1, "withdrawn")
        assert two.not_forwarded(lan, lan.probe(HOST[4])) == {"no_route": 1}
        before = two.fpm()["generation"]
        two.control.request({"do": "replay"})
        eventually(lambda: two.fpm()["generation"] > before, 30, 0.1, "another session")
        eventually(
            lambda: two.fpm()["vrf_phase"] == "in-step", 30, 0.1, "replayed and swept"
        )
        goes(two, lan, wan, HOST[6])
        goes(two, alt, ext, HOST[4])
        with two.stream(lan, HOST[6], rate=200) as stream:
            for was, now in (("red", RENAMED), (RENAMED, "red")):
                two.rename(was, now)
                knows = lambda n=now: NET[6] in frr.vtysh(f"show ipv6 route vrf {n}")  # noqa: E731
                eventually(knows, 10, 0.1, "zebra knows its new name")
        assert stream.lost(wan) == []
        audited(two, frr)

        two.ip("link del red")
        rows = lambda: two.control.ask("routes", all_tables=True)  # noqa: E731
        left = lambda: [r for r in rows() if r["table"] == TABLE["red"]]  # noqa: E731
        # The kernel keeps the unreachable route of audited(), which has no interface.
        gone = lambda: not [r for r in left() if r["source"] == "zebra"]  # noqa: E731
        eventually(gone, 20, 0.2, "zebra withdraws the routes of red")


class Checked:
    """The router of `two` and a Linux router beside it, both with VRF red and the same sources."""

    ROUTES = (
        "route add 198.51.100.0/24 via 10.0.2.2 vrf red",  # where the packets go
        "route add 203.0.113.0/24 via 10.0.1.2 vrf red",  # back by the ingress interface
        "route add 203.0.114.0/24 via 10.0.2.2 vrf red",  # by another member
        "route add 203.0.115.0/24 dev blue vrf red",  # by another VRF
        "route add blackhole 203.0.116.0/24 vrf red",
    )
    SOURCES = ("203.0.113.9", "203.0.114.9", "203.0.115.9", "203.0.116.9", "203.0.117.9")

    def __init__(self, two):
        self.two, self.linux = two, LinuxRouter(two)

    def build(self):
        """Make the Linux router, and the routes of both."""
        self.linux.build()
        lines = []
        for vrf, names in MEMBERS.items():
            lines += [f"link add {vrf} type vrf table {TABLE[vrf]}", f"link set {vrf} up"]
            for name, net in zip(names, (BEFORE, BEHIND)):
                wire, at = self.two.wires[name], net[4].format
                lines += [
                    f"link set {wire.tap} master {vrf}",
                    f"addr add {at(1)}/24 dev {wire.tap}",
                    f"neigh replace {at(2)} lladdr {wire.mac} dev {wire.tap} nud permanent",
                ]
        self.linux.ip(*lines, *self.ROUTES)
        self.two.ip(*self.ROUTES)
        eventually(lambda: row(self.two, "red", "203.0.116.0/24"), 5, 0.01, "in force")

    def close(self):
        """Remove the Linux router, and the routes of ours."""
        self.linux.destroy()
        self.two.ip(*(line.replace("route add", "route del") for line in self.ROUTES))

    def set(self, dev, value):
        """Set rp_filter of an interface, of a VRF, or of all, in both."""
        for ns in (self.two.ctl, self.linux.ctl):
            netns.sysctl(ns, {f"net.ipv4.conf.{dev}.rp_filter": value})

    def mode(self):
        """Return the mode of the ingress interface."""
        rows = self.two.control.ask("interfaces")
        return next(r["urpf"] for r in rows if r["name"] == "lan0")

    def pass_(self):
        """Return the sources from which packets of lan pass: (in Linux, in ours)."""
        found = []
        for router in (self.linux, self.two):
            lan, wan = router.wires["lan"], router.wires["wan"]
            probes = {src: lan.probe(HOST[4], src=src) for src in self.SOURCES}
            last = lan.probe(HOST[4], src=self.SOURCES[0])
            lan.send(*probes.values(), last)
            wan.expect(token_of(last))
            found.append([s for s in probes if wan.got(token_of(probes[s]))])
        return tuple(found)


@pytest.mark.quick
def test_sources_are_checked_in_the_vrf_by_rp_filter_of_the_member(two):
    """The source is looked up in the table of the VRF. The rp_filter of the member and of `all`
    count, that of the VRF does not. A route by another VRF leads to another interface."""
    both_routers = Checked(two)
    all_of_them = list(Checked.SOURCES)
    try:
        both_routers.build()
        for dev, value, mode, pass_ in (
            ("red", 1, "off", all_of_them),
            ("lan0", 2, "loose", all_of_them[:3]),
            ("lan0", 1, "strict", all_of_them[:1]),
            ("all", 2, "loose", all_of_them[:3]),
        ):
            both_routers.set(dev, value)
            eventually(lambda m=mode: both_routers.mode() == m, 5, 0.01, mode)
            assert both_routers.pass_() == (pass_, pass_), (dev, value)
    finally:
        for dev in ("lan0", "red", "all"):
            both_routers.set(dev, 0)
        both_routers.close()


def in_red(router, linux):
    """Put lan and wan of both routers into VRF red, with a route to the host behind wan."""
    lines = ["link add red type vrf table 100", "link set red up"]
    for name in ("lan", "wan"):
        wire = router.wires[name]
        lines += [
            f"link set {wire.tap} master red",
            f"neigh replace {wire.peer4} lladdr {wire.mac} dev {wire.tap} nud permanent",
        ]
    lines.append(f"route add {NET_BEHIND} via {router.wires['wan'].peer4} dev wan0 vrf red")
    for one in (router, linux):
        one.ip(*lines)
    eventually(lambda: row(router, "red", NET_BEHIND)["state"] == "forwarding", 10, 0.01, "in force")


NET_BEHIND, HOST_BEHIND = "198.51.100.0/24", "198.51.100.9"


def test_rules_of_nft_see_the_vrf_as_the_ingress_of_its_packets():
    """As in Linux, iif and iifname name the VRF, and oif and oifname name the member."""
    edit = ("log-level: info\n", "log-level: info\nfilter: {table: inet transit}\n")
    with running(Router(name="vgate"), edit) as gate:
        gate.ready()
        both = Filtered(gate)
        try:
            both.linux.build()
            in_red(gate, both.linux)
            for match, passes in (
                ("iifname red", False),
                ("iifname lan0", True),
                ("iif red", False),
                ("oifname wan0", False),
                ("oifname red", True),
            ):
                head = "chain forward { type filter hook forward priority 0; policy accept;"
                both.load(f"{head} {match} udp dport 53 drop; }}")
                for one in (both.linux, gate):
                    lan, wan = one.wires["lan"], one.wires["wan"]
                    probe, last = (lan.probe(HOST_BEHIND, dport=port) for port in (53, 54))
                    lan.send(probe, last)
                    wan.expect(token_of(last))
                    assert bool(wan.got(token_of(probe))) == passes, (one.ctl, match)
        finally:
            both.close()
