# SPDX-License-Identifier: BSD-3-Clause
"""An interface has the MACs of its macvlans beside its own. FRR's vrrpd and keepalived (use_vmac)
have a macvlan above the TAP for each virtual router."""

import shutil
import statistics
import subprocess

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from back import come_back
from on_time import Clock, in_time_s
from wire import token, token_of

VMAC, OTHER_MAC = "00:00:5e:00:01:05", "00:00:5e:00:02:07"
# These addresses are in the subnets of lan.
VIP = {4: "192.0.2.17", 6: "2001:db8:4::17"}
HOST = {4: "198.51.100.1", 6: "2001:db8:f000::1"}
NET = {4: "198.51.100.0/24", 6: "2001:db8:f000::/48"}
FAMILIES = pytest.mark.parametrize("family", [4, 6])


@pytest.fixture
def macvlan(dut, lan):
    """A macvlan `vr5` above lan0 that is up, with an address of each family."""
    before = set(link["ifname"] for link in dut.links())
    make(dut, "vr5", VMAC)
    dut.ip(
        f"addr add {VIP[4]}/32 dev vr5",
        f"addr add {VIP[6]}/128 dev vr5 nodad",
    )
    eventually(lambda: row(dut, "vr5")["up"], 5, 0.005, "vr5 is up")
    yield "vr5"
    left = {link["ifname"] for link in dut.links()} - before
    dut.ip(*[f"link del {name}" for name in left])
    eventually(
        lambda: not any(r["macvlan"] for r in dut.control.ask("interfaces")), 5, 0.005
    )


def make(dut, name, mac, mode="bridge", on="lan0"):
    """Make a macvlan that is up."""
    dut.ip(
        f"link add {name} link {on} address {mac} type macvlan mode {mode}",
        f"link set {name} up",
    )


def row(dut, name):
    """Return the dataplane's row of an interface."""
    return next(r for r in dut.control.ask("interfaces") if r["name"] == name)


def to_mac(wire, mac, dst):
    """Return a probe of a host on `wire` that goes to a MAC."""
    probe = wire.probe(dst)
    probe[Ether].dst = mac
    return probe


def passes(dut, wire, mac, dst, out):
    """Return true if a probe to the MAC leaves on `out`; false if it is dropped as foreign."""
    before = dut.counters()
    wire.send(probe := to_mac(wire, mac, dst))
    dut.fence(wire)
    came = bool(out.got(token_of(probe)))
    drops = dut.drops(before)
    assert drops == ({} if came else {"l2_foreign": 1})
    return came


@FAMILIES
def test_a_frame_to_a_second_mac_is_forwarded(dut, lan, wan, macvlan, family):
    """RFC 5798, 8.1.2: hosts send to the virtual MAC, and the master forwards. The interface still
    forwards frames to its own MAC, and no frames to other MACs."""
    dut.route(NET[family], wan.peer(family), wan)
    assert passes(dut, lan, VMAC, HOST[family], wan)
    assert passes(dut, lan, lan.port_mac, HOST[family], wan)
    assert not passes(dut, lan, OTHER_MAC, HOST[family], wan)
    assert row(dut, macvlan)["rx_packets"] > 0


@FAMILIES
def test_bursts_of_several_macs_are_separated(dut, lan, wan, macvlan, family):
    """One burst has frames to the MAC of the port, to the MAC of a macvlan, and to an unknown
    MAC."""
    dut.route(NET[family], wan.peer(family), wan)
    make(dut, "vr7", OTHER_MAC)
    eventually(lambda: row(dut, "vr7")["up"], 5, 0.005)
    macs = [lan.port_mac, VMAC, OTHER_MAC, "02:00:00:00:77:77"]
    probes = [to_mac(lan, macs[i % 4], HOST[family]) for i in range(256)]
    before = dut.counters()
    lan.send(*[bytes(p) for p in probes])
    dut.fence(lan)
    ours = [token_of(p) for i, p in enumerate(probes) if i % 4 != 3]
    came = {token_of(data) for data in wan.got()}
    assert came >= set(ours)
    assert dut.drops(before) == {"l2_foreign": 64}


def addresses_in_use(dut):
    """Wait until the kernel uses the addresses of the macvlan. It neither answers for them nor sends
    from them until it has handled the carrier of the new link."""
    shown = ["ip", "-n", dut.ctl, "-6", "addr", "show", "dev", "vr5"]
    eventually(lambda: "tentative" not in netns.command(shown), 10, 0.01)


@FAMILIES
def test_the_address_of_a_macvlan_answers(dut, lan, macvlan, family):
    """The kernel gets the frame with the macvlan's MAC, and answers from this MAC."""
    dut.ip(f"neigh replace {lan.peer(family)} lladdr {lan.mac} dev vr5 nud permanent")
    addresses_in_use(dut)
    load = token()
    ping = ICMP() / Raw(load) if family == 4 else ICMPv6EchoRequest(data=load)
    ip = (IP if family == 4 else IPv6)(src=lan.peer(family), dst=VIP[family])
    reply = lan.srp1(Ether(src=lan.mac, dst=VMAC) / ip / ping)
    assert reply[ip.__class__].src == VIP[family]
    assert reply.dst == lan.mac


def test_arp_for_the_address_names_the_macvlan(dut, lan, macvlan):
    """RFC 5798, 8.1.2: the answer names the virtual MAC, and its frame has this MAC as its source."""
    dut.ip("addr add 192.0.2.18/26 dev vr5")
    for dst in ("ff:ff:ff:ff:ff:ff", VMAC):
        lan.clear()
        lan.send(Ether(src=lan.mac, dst=dst) / ARP(psrc=lan.peer4, pdst="192.0.2.18", hwsrc=lan.mac))
        said = lan.expect(lambda data: ARP in Ether(data) and data[6:12].hex(":") == VMAC)
        assert (said[ARP].op, said[ARP].hwsrc, said.src) == (2, VMAC, VMAC)


def test_nd_for_the_address_names_the_macvlan(dut, lan, macvlan):
    """RFC 5798, 8.2.2: the neighbor advertisement has the virtual MAC."""
    dut.ip("addr add 2001:db8:4::18/64 dev vr5 nodad")
    addresses_in_use(dut)
    ask = IPv6(src=lan.peer6, dst="ff02::1:ff00:18", hlim=255)
    ask /= ICMPv6ND_NS(tgt="2001:db8:4::18") / ICMPv6NDOptSrcLLAddr(lladdr=lan.mac)
    lan.send(Ether(src=lan.mac, dst="33:33:ff:00:00:18") / ask)
    said = lan.expect(lambda data: ICMPv6ND_NA in Ether(data), 4)
    assert said.src == VMAC


@FAMILIES
def test_a_route_by_a_macvlan_leaves_the_port_below(dut, lan, wan, macvlan, family):
    """As in Linux the source is the MAC of the macvlan, and packets go to neighbors of the macvlan,
    also to a neighbor that is resolved only now."""
    gateway = {4: "203.0.113.2", 6: "2001:db8:113::2"}[family]
    own = {4: "203.0.113.1/24", 6: "2001:db8:113::1/64"}[family]
    nodad = "" if family == 4 else "nodad"
    dut.ip(f"addr add {own} dev vr5 {nodad}")
    addresses_in_use(dut)
    lan.answer(gateway)
    dut.ip(f"route add {NET[family]} via {gateway} dev vr5")
    eventually(lambda: dut.route_row(NET[family]), 5, 0.005)
    assert dut.route_row(NET[family])  # the round that added it has ended
    wan.send(probe := wan.probe(HOST[family]))
    came = lan.expect(token_of(probe), 4)
    assert (came.src, came.dst) == (VMAC, lan.mac)
    wan.send(probe := wan.probe(gateway))
    came = lan.expect(token_of(probe), 4)
    assert (came.src, came.dst) == (VMAC, lan.mac)
    before = row(dut, macvlan)["tx_packets"]
    probes = [wan.probe(HOST[family]) for _ in range(40)]
    wan.send(*map(bytes, probes))
    for probe in probes:
        lan.expect(token_of(probe))
    eventually(lambda: row(dut, macvlan)["tx_packets"] >= before + 40, 2, 0.01)


def test_the_forwarding_sysctl_is_that_of_the_macvlan(dut, lan, wan, macvlan):
    """The sysctl of the macvlan decides about frames to its MAC, because the macvlan receives them, as
    in Linux."""
    dut.route(NET[4], wan.peer4, wan)
    netns.sysctl(dut.ctl, {"net.ipv4.conf.vr5.forwarding": 0})
    probe = lambda: to_mac(lan, VMAC, HOST[4])  # noqa: E731
    eventually(lambda: dut.not_forwarded(lan, probe()).get("forwarding_off"), 5, 0.01)
    assert passes(dut, lan, lan.port_mac, HOST[4], wan)


def changes_in_time(dut, lan, wan, changes):
    """Assert that the median of several changes is in force within 100 ms. `changes` are (`ip`
    command, MAC, true if frames to the MAC pass then). The time begins when the command has ended: the
    kernel's lock for interfaces, which programs in other namespaces hold, too, can delay it."""
    took = {command: [] for command, _, _ in changes}
    for _ in range(5):
        for command, mac, should in changes:
            dut.ip(command)
            clock = Clock(dut)
            eventually(lambda: _passes_now(lan, wan, mac) == should, 5, 0.001, command)
            took[command].append(clock.seconds())
    late = {what: t for what, t in took.items() if statistics.median(t) >= in_time_s(dut)}
    assert late == {}


def _passes_now(lan, wan, mac):
    """Return true if a probe to the MAC comes out before a later one to the port's MAC does."""
    probe, last = to_mac(lan, mac, HOST[4]), to_mac(lan, lan.port_mac, HOST[4])
    lan.send(bytes(probe), bytes(last))
    wan.expect(token_of(last))
    return bool(wan.got(token_of(probe)))


def test_down_and_up_are_in_force_in_time(dut, lan, wan, macvlan):
    """A macvlan that is down accepts no frame."""
    dut.route(NET[4], wan.peer4, wan)
    changes_in_time(
        dut,
        lan,
        wan,
        [("link set vr5 down", VMAC, False), ("link set vr5 up", VMAC, True)],
    )


def test_a_changed_mac_is_in_force_in_time(dut, lan, wan, macvlan):
    dut.route(NET[4], wan.peer4, wan)
    changes_in_time(
        dut,
        lan,
        wan,
        [
            (f"link set vr5 address {OTHER_MAC}", OTHER_MAC, True),
            (f"link set vr5 address {VMAC}", VMAC, True),
        ],
    )
    assert not passes(dut, lan, OTHER_MAC, HOST[4], wan)


def test_a_backup_accepts_no_frame(dut, lan, wan, macvlan):
    """RFC 5798, 6.4.2: a Backup discards frames to the virtual MAC. vrrpd sets protodown."""
    dut.route(NET[4], wan.peer4, wan)
    changes_in_time(
        dut,
        lan,
        wan,
        [
            ("link set vr5 protodown on", VMAC, False),
            ("link set vr5 protodown off", VMAC, True),
        ],
    )


def test_a_deleted_and_a_moved_macvlan_is_gone(dut, lan, wan, alt, macvlan):
    """The MAC belongs to the port below, and to no other port."""
    dut.route(NET[4], wan.peer4, wan)
    assert not passes(dut, alt, VMAC, HOST[4], wan)
    make_and_delete = [("link del vr5", VMAC, False)]
    dut.ip("link del vr5")
    eventually(lambda: not _passes_now(lan, wan, VMAC), 5, 0.005)
    took = []
    for _ in range(5):
        make(dut, "vr5", VMAC)
        eventually(lambda: _passes_now(lan, wan, VMAC), 5, 0.001)
        clock = Clock(dut)
        dut.ip(make_and_delete[0][0])
        eventually(lambda: not _passes_now(lan, wan, VMAC), 5, 0.001)
        took.append(clock.seconds())
    assert statistics.median(took) < in_time_s(dut)
    make(dut, "vr5", VMAC, on="alt0")
    eventually(lambda: _passes_now(alt, wan, VMAC), 5, 0.005)
    assert not passes(dut, lan, VMAC, HOST[4], wan)


def test_only_an_interface_that_stays_is_said_to_lose_its_ipv6(dut, macvlan):
    """The kernel removes the IPv6 of an interface before the interface. The log has a warning about
    the loss only if the interface stays: here its MTU is too small."""
    for n in range(5):
        make(dut, f"gone{n}", OTHER_MAC)
        dut.ip(f"addr add 2001:db8:77::1/64 dev gone{n} nodad")
        eventually(lambda n=n: row(dut, f"gone{n}")["up"], 5, 0.005)
        dut.ip(f"link del gone{n}")
    dut.ip(f"link set {macvlan} mtu 1200")

    eventually(lambda: f"ipv6 off dev={macvlan} " in dut.daemon.log(100), 10, 0.05)
    assert "ipv6 off dev=gone" not in dut.daemon.log(100)


@pytest.mark.parametrize("mode", ["private", "vepa", "bridge"])
def test_the_modes_of_a_macvlan(dut, lan, wan, macvlan, mode):
    """The mode is about frames between macvlans. The router does not care."""
    dut.route(NET[4], wan.peer4, wan)
    make(dut, "vrm", OTHER_MAC, mode=mode)
    eventually(lambda: _passes_now(lan, wan, OTHER_MAC), 5, 0.005)


def test_mode_source_is_not_followed(dut, lan, wan, macvlan):
    """A macvlan of mode source takes frames by their source MAC. So a frame to the MAC of the macvlan
    itself is not forwarded, by Linux neither. The log names the macvlan."""
    dut.route(NET[4], wan.peer4, wan)
    make(dut, "vrs", OTHER_MAC, mode="source")
    eventually(lambda: "macvlan not forwarded dev=vrs reason=mode-source" in dut.log(), 5)
    assert not passes(dut, lan, OTHER_MAC, HOST[4], wan)


def test_forwarding_that_was_off_in_mode_source_stays_off(dut, lan, wan, macvlan):
    """The kernel sends the sysctl while the router does not follow the macvlan, and does not send it
    again when the mode changes."""
    dut.route(NET[4], wan.peer4, wan)
    make(dut, "vrs", OTHER_MAC, mode="source")
    netns.sysctl(dut.ctl, {"net.ipv4.conf.vrs.forwarding": 0})

    dut.ip("link set vrs type macvlan mode bridge")

    eventually(lambda: row(dut, "vrs").get("on") == lan.tap, 5, 0.01)
    assert dut.not_forwarded(lan, to_mac(lan, OTHER_MAC, HOST[4])) == {"forwarding_off": 1}


def test_neighbors_from_mode_source_are_known(dut, lan, wan, macvlan):
    """Packets go to a neighbor that the kernel had before the mode changed. The kernel does not send it
    again: packets to it waited, and were dropped."""
    host, mac = "203.0.113.2", "02:aa:aa:aa:aa:aa"
    make(dut, "vrs", OTHER_MAC, mode="source")
    dut.ip("addr add 203.0.113.1/24 dev vrs", f"neigh add {host} lladdr {mac} dev vrs nud permanent")
    eventually(lambda: any(r["name"] == "vrs" and r["addresses"] for r in dut.control.ask("interfaces")), 5, 0.01)

    dut.ip("link set vrs type macvlan mode bridge")

    eventually(lambda: row(dut, "vrs").get("on") == lan.tap, 5, 0.01)
    wan.send(probe := wan.probe(host))
    assert lan.expect(token_of(probe)).dst == mac


def test_255_virtual_routers_on_one_port(dut, lan, wan, macvlan):
    """VRRP has 255 virtual routers on a link. Each MAC is accepted until its macvlan is deleted."""
    dut.route(NET[4], wan.peer4, wan)
    macs = {f"v{i}": f"00:00:5e:00:01:{i:02x}" for i in range(1, 256) if i != 5}
    lines = []
    for name, mac in macs.items():
        lines.append(
            f"link add {name} link lan0 address {mac} type macvlan mode bridge"
        )
        lines.append(f"link set {name} up")
    dut.ip(*lines)
    up = lambda: sum(r["macvlan"] and r["up"] for r in dut.control.ask("interfaces"))  # noqa: E731
    eventually(lambda: up() == 255, 10, 0.02, "255 macvlans are up")
    probes = [to_mac(lan, mac, HOST[4]) for mac in [VMAC, *macs.values()]]
    lan.send(*map(bytes, probes))
    dut.fence(lan)
    came = {token_of(data) for data in wan.got()}
    assert came >= {token_of(p) for p in probes}
    dut.ip(*[f"link del {name}" for name in list(macs)[:100]])
    eventually(lambda: up() == 155, 10, 0.02)
    before = dut.counters()
    probes = [to_mac(lan, mac, HOST[4]) for mac in macs.values()]
    lan.send(*map(bytes, probes))
    dut.fence(lan)
    assert dut.drops(before) == {"l2_foreign": 100}


def test_a_device_that_refuses_one_more_mac_receives_all(dut, lan, ext, macvlan):
    """net_af_packet refuses a further MAC and has no filter of its own. The kernel interface behind
    the port must not filter either, so it becomes promiscuous."""
    assert dut.port_row(lan)["promiscuous"] and not dut.port_row(ext)["promiscuous"]
    link = netns.command(["ip", "-n", dut.dp, "-d", "link", "show", "p-lan"])
    assert "promiscuity 1" in link, link


KEEPALIVED = """\
global_defs {
  vrrp_version 3
}
vrrp_instance four {
  state MASTER
  interface lan0
  use_vmac
  virtual_router_id 5
  priority 200
  advert_int 0.2
  virtual_ipaddress { 192.0.2.17/26 }
}
vrrp_instance six {
  state MASTER
  interface lan0
  use_vmac
  virtual_router_id 7
  priority 200
  advert_int 0.2
  virtual_ipaddress {
    fe80::5
    2001:db8:4::17/64
  }
}
"""


@pytest.fixture
def keepalived(dut):
    """keepalived with a virtual router of each family on lan0."""
    if shutil.which("keepalived") is None:
        pytest.skip("no keepalived: apt-get install keepalived")
    files = {flag: f"{dut.dir}/keepalived.{flag}" for flag in "fprc"}
    with open(files["f"], "w", encoding="ascii") as file:
        file.write(KEEPALIVED)
    words = [word for flag, path in files.items() for word in (f"-{flag}", path)]
    with netns.entered(dut.ctl):
        program = subprocess.Popen(["keepalived", "-n", "-l", *words], stderr=subprocess.DEVNULL)
    try:
        yield program
    finally:
        program.terminate()
        program.wait(10)
    eventually(lambda: not any(r["macvlan"] for r in dut.control.ask("interfaces")), 5, 0.01)


def test_keepalived_with_virtual_macs(dut, lan, wan, keepalived):
    """A master of keepalived (use_vmac) advertises, answers with the virtual MACs, and forwards frames
    to them. The router has no warning of kind `vrrp`."""
    for family in (4, 6):
        dut.route(NET[family], wan.peer(family), wan)
    lan.expect(lambda data: data[:6].hex(":") == "01:00:5e:00:00:12", 10)
    lan.expect(lambda data: data[:6].hex(":") == "33:33:00:00:00:12", 10)
    for family, mac in ((4, VMAC), (6, OTHER_MAC)):
        name = "vrrp.5" if family == 4 else "vrrp.7"
        eventually(lambda n=name: row(dut, n)["up"], 5, 0.01, name)
        assert passes(dut, lan, mac, HOST[family], wan)
    ask = Ether(src=lan.mac, dst="ff:ff:ff:ff:ff:ff")
    ask /= ARP(psrc=lan.peer4, pdst="192.0.2.17", hwsrc=lan.mac)
    lan.send(ask)
    lan.expect(lambda data: ARP in Ether(data) and Ether(data)[ARP].hwsrc == VMAC)
    assert "vrrp" not in {r["kind"] for r in dut.control.ask("warnings")}


def test_show_explain_and_trace_name_the_macvlan(dut, lan, wan, macvlan):
    """The macvlan is the interface by which its frames come in."""
    dut.route(NET[4], wan.peer4, wan)
    shown = row(dut, macvlan)
    assert (shown["mac"], shown["on"], shown["macvlan"]) == (VMAC, "lan0", True)
    assert shown["vlan"] is None and not shown["port"]
    text = dut.fpmctl("show", "interfaces", macvlan).stdout
    assert "macvlan" in text and VMAC in text and "on lan0" in text
    frame = bytes(to_mac(lan, VMAC, HOST[4])).hex()
    text = dut.fpmctl("explain", "port", "lan0", "hex", frame).stdout
    assert "vr5" in text and "wan0" in text, text
    assert dut.fpmctl("explain", "dst", HOST[4], "port", "vr5").returncode == 0


def test_a_daemon_that_starts_accepts_the_macs(dut, lan, wan, macvlan):
    """The TAP had no carrier while the daemon was stopped. The kernel gives the macvlan its carrier
    a moment after the TAP."""
    dut.route(NET[4], wan.peer4, wan)
    dut.stop()
    dut.start()
    dut.zebra.connect()
    dut.route(NET[4], wan.peer4, wan)
    eventually(lambda: row(dut, macvlan)["up"], 5, 0.005, "vr5 is up")
    assert passes(dut, lan, VMAC, HOST[4], wan)


def test_a_planned_restart_and_a_crash_keep_the_macs(kept):
    """The successor has the MACs before it forwards. The daemon after a crash accepts them, too."""
    dut, lan, wan = kept, kept.wires["lan"], kept.wires["wan"]
    make(dut, "vr5", VMAC)
    eventually(lambda: row(dut, "vr5")["up"], 5, 0.005)
    dut.route(NET[4], via=wan.peer4, wire=wan)
    dut.zebra.close()
    rests = []
    for _ in range(3):
        was = dut.daemon.pid()
        stream = dut.stream(lan, HOST[4])
        stream.templates = [
            (bytes.fromhex(VMAC.replace(":", "")) + head[6:], tail) for head, tail in stream.templates
        ]
        before = dut.counters("drop")["l2_foreign"]
        with stream:
            assert dut.fpmctl("restart").returncode == 0
            come_back(dut, was)
        assert dut.counters("drop")["l2_foreign"] <= before
        rests.append(len(stream.lost(wan)))
    assert statistics.median(rests) < 200, rests  # ms, as test_restart has it
    was = dut.daemon.crash()
    dut.control.close()
    dut.daemon.back(was)
    eventually(lambda: row(dut, "vr5")["up"], 5, 0.005)
    assert passes(dut, lan, VMAC, HOST[4], wan)
    dut.ip("link del vr5")
