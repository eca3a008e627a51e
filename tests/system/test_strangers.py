# SPDX-License-Identifier: BSD-3-Clause
"""security.md against forged packets: control packets from a wrong place reach FRR unchanged.
No sender gets an answer longer than its packet. No name controls a terminal."""

import json
import subprocess
import time

import pytest
from scapy.contrib.ospf import OSPF_Hdr, OSPF_Hello
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from lib.wait import eventually
from router import is_icmp_error
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
FAR, FAR6 = "203.0.113.9", "2001:db8:e000::9"  # the forged sources: routed by alt
FAR_NET, FAR_NET6 = "203.0.113.0/24", "2001:db8:e000::/64"


def forged(lan, wan):
    """Return {name: a control packet by lan from a wrong place}."""
    ospf = OSPF_Hdr() / OSPF_Hello()
    bgp, bfd = TCP(dport=179, flags="S"), UDP(sport=49152, dport=3784)
    group, group6 = "01:00:5e:00:00:05", "33:33:00:00:00:05"
    return {
        "BGP from off-link, 1 hop short of TTL security": (
            None, IP(src=FAR, dst=lan.ip4, ttl=254) / bgp),
        "BGP from off-link, with a neighbor's address": (
            None, IP(src=lan.peer4, dst=lan.ip4, ttl=64) / bgp),
        "BGP to another port's address": (None, IP(src=wan.peer4, dst=wan.ip4, ttl=255) / bgp),
        "BGP over IPv6 from off-link": (None, IPv6(src=FAR6, dst=lan.ip6, hlim=3) / bgp),
        "BFD that was routed": (None, IP(src=wan.peer4, dst=wan.ip4, ttl=254) / bfd),
        "BFD by another link": (None, IP(src=wan.peer4, dst=wan.ip4, ttl=255) / bfd),
        "BFD over IPv6 that was routed": (None, IPv6(src=FAR6, dst=lan.ip6, hlim=254) / bfd),
        "OSPF of another link": (group, IP(src=wan.peer4, dst="224.0.0.5", ttl=1) / ospf),
        "OSPF unicast that was routed": (None, IP(src=FAR, dst=lan.ip4, ttl=7) / ospf),
        "OSPFv3 with a global source": (
            group6, IPv6(src=FAR6, dst="ff02::5", hlim=1, nh=89)),
    }  # fmt: skip


@pytest.mark.parametrize("name", forged(*[type("", (), dict.fromkeys(
    ("ip4", "peer4"), "192.0.2.1") | {"ip6": "2001:db8::1"})] * 2))  # fmt: skip
def test_forged_control_packets_are_left_to_frr_as_they_came(dut, lan, wan, alt, name):
    """FRR applies RFC 5082 (TTL security), RFC 5881 5 and RFC 2328 8.2. So the TAP has the
    octets of the wire, including the TTL, on the interface that received the packet. No packet
    is forwarded."""
    dut.route(FAR_NET, via=alt.peer4, wire=alt)
    mac, packet = forged(lan, wan)[name]
    data = bytes(Ether(src=lan.mac, dst=mac or lan.port_mac) / packet / Raw(token()))

    dut.forwarded(lan, transit := lan.probe(FAR), alt)
    lan.send(data)

    assert dut.taps["lan"].expect_raw(token_of(data)) == data
    dut.fence(lan)
    assert [n for n in dut.names if n != "lan" and dut.taps[n].got(token_of(data))] == []
    assert left_by(dut, token_of(transit)) == ["alt"]
    assert left_by(dut, token_of(data)) == []


def martians(lan):
    """Return [(a control packet by lan from an impossible source, the reason of its drop)]."""
    bgp, bfd = TCP(dport=179, flags="S"), UDP(sport=49152, dport=3784)
    ospf = IP(src="127.0.0.9", dst="224.0.0.5", ttl=1) / OSPF_Hdr() / OSPF_Hello()
    return [
        (Ether(dst=lan.port_mac) / IP(src="127.0.0.1", dst=lan.ip4, ttl=255) / bgp,
         "ip4_martian_src"),
        (Ether(dst=lan.port_mac) / IP(src="0.0.0.9", dst=lan.ip4, ttl=255) / bfd,
         "ip4_martian_src"),
        (Ether(dst="01:00:5e:00:00:05") / ospf, "ip4_martian_src"),
        (Ether(dst=lan.port_mac) / IPv6(src="::1", dst=lan.ip6, hlim=255) / bgp,
         "ip6_martian_src"),
    ]  # fmt: skip


def test_control_packets_of_martians_are_dropped(dut, lan):
    """RFC 1812, 5.3.7 and RFC 4291, 2.5.3: the daemon drops packets from an impossible source,
    so FRR does not see them."""
    for packet, reason in martians(lan):
        packet.src = lan.mac
        probe = packet / Raw(token())

        assert dut.not_forwarded(lan, probe) == {reason: 1}, packet.summary()
        assert dut.taps["lan"].got(token_of(probe)) == []


def left_by(dut, mark):
    """Return the wires on which a packet was seen, whatever its MACs and TTL are there. An
    error that quotes the packet is the kernel's answer."""
    return [n for n in dut.names if any(not is_icmp_error(d) for d in dut.wires[n].got(mark))]


def provoking(lan, wan):
    """Return packets of all sizes with a forged source that cause an answer."""
    for size in (0, 40, 548, 600, 1280, 1500):
        for ttl in (1, 64):
            yield lan.probe(HOST, size=size, src=FAR, ttl=ttl)
            yield lan.probe("198.18.0.1", size=size, src=FAR, ttl=ttl)  # no route
        yield lan.probe(HOST6, size=size or 58, src=FAR6, hlim=1)
        yield lan.probe("2001:db8:a000::1", size=size or 58, src=FAR6)  # no route
    for dst in (lan.ip4, wan.ip4, "192.0.2.63", "192.0.2.127", "255.255.255.255", "224.0.0.1"):
        for load in (0, 1000):
            echo = IP(src=FAR, dst=dst) / ICMP() / Raw(token() + bytes(load))
            mac = lan.port_mac if not dst.startswith(("255", "224")) else "ff:ff:ff:ff:ff:ff"
            yield Ether(src=lan.mac, dst=mac) / echo
    yield Ether(src=lan.mac, dst=lan.port_mac) / IP(src=FAR, dst=lan.ip4) / TCP(dport=179)
    yield Ether(src=lan.mac, dst=lan.port_mac) / IP(src=FAR, dst=lan.ip4) / UDP(dport=9)
    echo6 = ICMPv6EchoRequest(data=token())
    yield Ether(src=lan.mac, dst=lan.port_mac) / IPv6(src=FAR6, dst=lan.ip6) / echo6
    all6 = Ether(src=lan.mac, dst="33:33:00:00:00:01")
    yield all6 / IPv6(src=FAR6, dst="ff02::1") / echo6


@pytest.fixture
def reverse_path(dut, alt):
    """Set a route to the forged sources, for the dataplane's errors and for the kernel's
    answers."""
    dut.route(FAR_NET, via=alt.peer4, wire=alt)
    dut.route(FAR_NET6, via=alt.peer6, wire=alt)
    routes = [f"{FAR_NET} via {alt.peer4} dev {alt.tap}", f"{FAR_NET6} via {alt.peer6} dev {alt.tap}"]
    dut.ip(*(f"route add {route}" for route in routes))
    yield
    dut.ip(*(f"route del {route}" for route in routes))


def test_a_forged_source_gets_no_more_than_was_sent(dut, lan, wan, alt, reverse_path):
    """For each packet that is sent, its forged source gets at most one packet, an error or an
    answer, from the dataplane or the kernel. It is longer than the sent packet by at most the
    headers of an error (28 octets of IPv4, 48 of IPv6). Packets to a multicast or broadcast
    address get none, except the kernel's answer to an echo request of IPv6 (RFC 4443, 4.2)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    kinds = set()

    for packet in provoking(lan, wan):
        for wire in dut.wires.values():
            wire.clear()
        lan.send(packet)
        dut.fence(lan)
        _what_the_kernel_said_has_left(dut, alt)
        size = len(bytes(packet)) - 14
        back = [d for d in alt.got() if _goes_to_who_is_forged(d)]
        assert len(back) <= 1, packet.summary()
        more = 48 if packet.haslayer(IPv6) else 28
        assert all(len(d) - 14 <= size + more for d in back), packet.summary()
        many = packet.dst != lan.port_mac or packet.haslayer(ICMP) and \
            packet[IP].dst in ("192.0.2.63", "192.0.2.127")  # fmt: skip
        assert not (many and back) or packet.haslayer(ICMPv6EchoRequest), packet.summary()
        kinds |= {_kind(d) for d in back}

    assert kinds == {"ttl", "no route", "no port", "echo", "reset", "hop limit", "no route6", "echo6"}


def _what_the_kernel_said_has_left(dut, wire):
    """Wait for the kernel's answers by this wire. Frames of a TAP leave in the order in which the
    kernel sent them."""
    mark = token()
    dut.taps[wire.name].send(Ether(src=wire.port_mac, dst=wire.mac, type=0x88B5) / Raw(mark))
    wire.expect_raw(mark)


def _kind(data):
    """Return the kind of an answer."""
    packet = Ether(data)
    if packet.haslayer(TCP):
        return "reset" if packet[TCP].flags & 4 else "other"
    if packet.haslayer(IPv6):
        names = {(3, 0): "hop limit", (1, 0): "no route6", (129, 0): "echo6"}
        return names.get(tuple(bytes(packet[IPv6].payload)[:2]), "other")
    names = {(11, 0): "ttl", (3, 0): "no route", (3, 3): "no port", (0, 0): "echo"}
    return names.get((packet[ICMP].type, packet[ICMP].code), "other")


def _goes_to_who_is_forged(data):
    packet = Ether(data)
    ip = packet.getlayer(IP) or packet.getlayer(IPv6)
    return ip is not None and ip.dst in (FAR, FAR6)


def enquiring(lan):
    """Return (name, a request for the router's MAC with a forged sender, to whose MAC the
    answer goes)."""
    anybody, victim = "ff:ff:ff:ff:ff:ff", "02:66:00:00:00:01"
    stranger = "02:66:00:00:00:02"  # lan.mac may still be a BGP peer's from another test
    for name, who in (("a neighbor", lan.host4.replace(".0/26", ".40")), ("off-link", FAR)):
        for how, dst in (("everybody", anybody), ("the router", lan.port_mac)):
            arp = ARP(op=1, hwsrc=victim, psrc=who, pdst=lan.ip4)
            yield f"ARP to {how} for {name}", Ether(src=stranger, dst=dst) / arp
    for name, who in (("a neighbor", lan.ip6 + "40"), ("off-link", FAR6)):
        for dst, ip in (("33:33:ff:00:00:01", "ff02::1:ff00:1"), (lan.port_mac, lan.ip6)):
            ask = IPv6(src=who, dst=ip, hlim=255) / ICMPv6ND_NS(tgt=lan.ip6)
            ask /= ICMPv6NDOptSrcLLAddr(lladdr=victim)
            yield f"NS to {ip} for {name}", Ether(src=stranger, dst=dst) / ask


def passed(dut):
    """Return the packets that passed the policers, by class."""
    return {row["class"]: row["passed"] for row in dut.control.ask("punt")}


def answers(wire):
    """Return the ARP answers and neighbor advertisements that left by a wire."""
    arp = b"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x02"
    return wire.got(lambda d: d[12:22] == arp or
                    (d[12:14] == b"\x86\xdd" and d[20] == 58 and d[54:55] == b"\x88"))  # fmt: skip


def test_whoever_is_forged_in_a_question_for_a_mac_gets_one_answer(dut, lan, ext):
    """RFC 826; RFC 4861, 7.2.4: a request gets at most one answer, no longer than the request,
    on the link of the request, whatever the source address is. If one MAC sends more than the
    policers (arp-new, nd-new) allow in a second, the answers stop at that number."""
    answered = 0
    for name, question in enquiring(lan):
        for wire in dut.wires.values():
            wire.clear()
        lan.send(question)
        dut.fence(lan)
        _what_the_kernel_said_has_left(dut, lan)
        back = {n: answers(wire) for n, wire in dut.wires.items()}
        assert len(back["lan"]) <= 1, name
        assert sum(map(len, back.values())) == len(back["lan"]), name
        assert all(len(d) <= max(60, len(question)) for d in back["lan"]), name
        answered += len(back["lan"])
    assert answered >= 4

    for wanted, kind in (("ARP", "arp-new"), ("NS", "nd-new")):
        (room,) = [row for row in dut.control.ask("punt") if row["class"] == kind]
        most = 4 * (room["source_rate"] + room["source_burst"])
        question = next(bytes(q) for name, q in enquiring(lan) if name.startswith(wanted))
        before = passed(dut)
        lan.clear()
        begin = time.monotonic()
        for _ in range(most):
            lan.send(question)
        dut.fence(lan)
        took = time.monotonic() - begin
        got = len(answers(lan))
        print(f"{wanted}: {most} in {took:.2f} s, {got} answered")
        by_class = {name: n - before[name] for name, n in passed(dut).items() if n != before[name]}
        assert 0 < got <= room["source_burst"] + room["source_rate"] * took + 1, by_class


ZEBRA = """#!/bin/sh
case "$*" in
*"show ip route vrf all") printf 'Codes:\\n\\n%s\\n' '{}' ;;
*"show ipv6 route vrf all") ;;
*summary*) echo '{{"routes": []}}' ;;
*) echo '{{}}' ;;
esac
"""


def audited(dut, line, tmp_path):
    """Run `fpmctl audit` against a zebra that shows this line."""
    script = tmp_path / "vtysh"
    script.write_text(ZEBRA.format(line), errors="surrogateescape")
    return dut.fpmctl("audit", "--vtysh", f"sh {script}")


def test_names_of_interfaces_do_nothing_to_a_terminal(own_dut, tmp_path):
    """Linux allows a name with almost any octet, in UTF-8 or not. Log and tables have no octet
    of a name that controls a terminal. --json has the name escaped and complete. An audit that
    gets such a name from zebra finds no difference in it."""
    dut = own_dut()
    dut.start()
    ext, texts = dut.wires["ext"], []
    dut.route(NET, via=ext.peer4, wire=ext)

    def ip(*words):
        subprocess.run(["ip", "-n", dut.ctl, "link", *words], check=True)

    for evil in ("\x1b[2Jx\x07\x7f\u009b", "\x1b]0;\udc9by"):
        ip("set", ext.tap, "name", evil)
        ip("set", evil, "mtu", "1400")
        eventually(lambda: dut.port_row(ext)["mtu"] == 1400, 5, 0.01)
        for what in ("interfaces", "ports", "log", "neighbors", "routes"):
            done = dut.fpmctl("show", what)
            assert done.returncode == 0, done.stderr
            texts.append(done.stdout)
        if "\udc9b" not in evil:
            assert "?[2Jx???" in texts[-5], texts[-5]
            said = dut.fpmctl("--json", "show", "interfaces").stdout
            assert evil in [row["name"] for row in json.loads(said)]
            texts.append(said)
        hop = f"S>* {NET} [1/0] via %s, {evil}, weight 1, 00:00:06"
        vias = (ext.peer4, "203.0.113.99")
        same, other = (audited(dut, hop % via, tmp_path) for via in vias)
        assert same.returncode == 0 and "Equal." in same.stdout, same.stdout
        assert other.returncode == 3 and f"DIFFERS {NET}: zebra has" in other.stdout
        texts += [same.stdout, other.stdout]
        ip("set", evil, "mtu", "1500")
        eventually(lambda: dut.port_row(ext)["mtu"] == 1500, 5, 0.01)
        ip("set", evil, "name", ext.tap)

    with open(dut.log_file, encoding="latin-1") as file:
        texts.append(file.read())
    found = [c for text in texts for c in text if c < " " and c not in "\n\t" or
             "\x7f" <= c < "\xa0"]  # fmt: skip
    assert found == []
    assert dut.stop() == 0


@pytest.mark.parametrize("evil", ["\x1b[2Jx\x07\x7f\u009b", "\x1b]0;\udc9by"])
def test_names_of_nics_do_nothing_to_a_terminal(dut, tmp_path, evil):
    """`fpmctl device list` reads the names of NICs itself. Here /sys is a copy with one such
    NIC."""
    nic = tmp_path / "bus/pci/devices/0000:00:03.0"
    (nic / "net" / evil).mkdir(parents=True)
    for name, text in (("class", "0x020000"), ("vendor", "0x8086"), ("device", "0x10d3")):
        (nic / name).write_text(text)
    inside = 'mount --bind "$0" /sys && exec "$@"'

    def run(*words):
        return subprocess.run(
            ["unshare", "-m", "sh", "-c", inside, tmp_path, dut.daemon.ctl, "-s", "/none", *words],
            capture_output=True, text=True, check=True, timeout=30,
        ).stdout  # fmt: skip

    table, (row,) = run("device", "list"), json.loads(run("--json", "device", "list"))

    assert "0000:00:03.0 8086:10d3" in table
    shown = "?[2Jx????" if "\udc9b" not in evil else "?]0;?y"
    assert shown in table and row["interface"] in (evil, shown)
    assert [c for c in table if c < " " and c != "\n" or "\x7f" <= c < "\xa0"] == []
