# SPDX-License-Identifier: BSD-3-Clause
"""fpmctl explain prints the fate of a packet by the same stages that packets take. It sends and
counts nothing, and a real packet has the explained fate."""

import json
import struct
from collections import Counter

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from lib.fpm_speaker import RTN_BLACKHOLE, RTN_PROHIBIT, RTN_UNREACHABLE
from lib.wait import eventually
from impostor import Impostor
from wire import token, token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
ECMP, MANY = "203.0.113.0/25", "203.0.113.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
BROADCAST = "ff:ff:ff:ff:ff:ff"


@pytest.fixture
def taught(dut, wan, alt):
    """A router with a route of every kind, and with an egress of a small MTU."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    ids = [dut.zebra.hop(w.peer4, w) for w in (wan, alt)]
    dut.route(ECMP, nhid=dut.zebra.group(dict.fromkeys(ids, 1)))
    dut.route("203.0.113.128/27", rtm_type=RTN_BLACKHOLE)
    dut.route("203.0.113.160/27", rtm_type=RTN_PROHIBIT)
    dut.route("203.0.113.192/27", rtm_type=RTN_UNREACHABLE)
    dut.route("203.0.113.224/27", nhid=9999)
    dut.route("2001:db8:e000::/36", rtm_type=RTN_PROHIBIT)
    dut.ip(f"link set {wan.tap} mtu 1400")
    eventually(lambda: dut.port_row(wan)["mtu"] == 1400, 5, 0.01, "MTU 1400")
    return dut


def explain(dut, wire, packet):
    """Return the row that explains a frame on a wire."""
    data = bytes(packet)
    want = {"port": wire.tap, "frame": data[:300].hex(), "frame_bytes": len(data)}
    (row,) = dut.control.request({"explain": want})
    return row


def said(dut, *words, code=0):
    """Return the output of fpmctl explain with these words."""
    done = dut.fpmctl("explain", *words)
    assert (done.returncode, done.stderr) == (code, ""), (done.stdout, done.stderr)
    return done.stdout


def frame(lan, ip, **ether):
    """Return a frame for the router with a token in it."""
    ether = {"src": lan.mac, "dst": lan.port_mac, **ether}
    return Ether(**ether) / ip / Raw(token())


def udp(src, dst, dport=4001, **fields):
    """Return a UDP packet of either family."""
    ip = IPv6 if ":" in dst else IP
    return ip(src=src, dst=dst, **fields) / UDP(sport=4000, dport=dport)


def kinds(lan, wan):
    """Return {claim: (frame, verdict, reason)} of the cases that manual/behavior.md describes."""
    p4, p6 = lan.peer4, lan.peer6
    no_ip = Ether(src=lan.mac, dst=lan.port_mac)
    bad_sum = bytearray(bytes(frame(lan, udp(p4, HOST))))
    bad_sum[24] ^= 0x55
    cut = frame(lan, udp(p4, HOST, len=600))
    ihl = bytearray(bytes(frame(lan, udp(p4, HOST))))
    ihl[14] = 0x44
    return {
        "forwarded": (frame(lan, udp(p4, HOST)), "forwarded", None),
        "forwarded6": (frame(lan, udp(p6, HOST6)), "forwarded", None),
        "many next hops": (frame(lan, udp(p4, MANY)), "forwarded", None),
        "on link": (frame(lan, udp(p4, wan.peer4)), "forwarded", None),
        "ttl": (frame(lan, udp(p4, HOST, ttl=1)), "dropped", "ttl"),
        "hop limit": (frame(lan, udp(p6, HOST6, hlim=0)), "dropped", "ttl"),
        "no route": (frame(lan, udp(p4, "100.64.0.1")), "dropped", "no_route"),
        "no route6": (frame(lan, udp(p6, "2001:db8:aaaa::1")), "dropped", "no_route"),
        "blackhole": (frame(lan, udp(p4, "203.0.113.130")), "dropped", "blackhole"),
        "prohibit": (frame(lan, udp(p4, "203.0.113.161")), "dropped", "prohibit"),
        "prohibit6": (frame(lan, udp(p6, "2001:db8:e000::1")), "dropped", "prohibit"),
        "unreachable": (frame(lan, udp(p4, "203.0.113.193")), "dropped", "unreachable"),
        "not told": (frame(lan, udp(p4, "203.0.113.225")), "dropped", "unresolved_nh"),
        "multicast": (frame(lan, udp(p4, "233.252.0.1")), "punted", "local"),
        "link-local dst": (frame(lan, udp(p6, "fe80::9")), "dropped", "ip6_linklocal_dst"),
        "martian": (frame(lan, udp("127.0.0.1", HOST)), "dropped", "ip4_martian_src"),
        "martian dst": (frame(lan, udp(p4, "127.0.0.1")), "dropped", "ip4_martian_dst"),
        "martian6": (frame(lan, udp("::1", HOST6)), "dropped", "ip6_martian_src"),
        "link-local": (frame(lan, udp("169.254.1.1", HOST)), "dropped", "ip4_linklocal"),
        "checksum": (bytes(bad_sum), "dropped", "ip4_checksum"),
        "header length": (bytes(ihl), "dropped", "ip4_ihl"),
        "cut": (cut, "dropped", "ip4_length"),
        "foreign": (frame(lan, udp(p4, HOST), dst=wan.mac), "dropped", "l2_foreign"),
        "in a broadcast": (
            frame(lan, udp(p4, HOST), dst=BROADCAST),
            "dropped",
            "l2_not_unicast",
        ),
        "directed": (frame(lan, udp(p4, "192.0.2.127")), "dropped", "ip4_directed_bcast"),
        "bgp": (
            frame(lan, IP(src=p4, dst=wan.ip4) / TCP(dport=179)),
            "punted",
            "local_control",
        ),
        "local": (frame(lan, IP(src=p4, dst=wan.ip4) / ICMP()), "punted", "local"),
        "local6": (
            frame(lan, IPv6(src=p6, dst=wan.ip6) / ICMPv6EchoRequest()),
            "punted",
            "local",
        ),
        "arp": (no_ip / ARP(psrc=p4, pdst=lan.ip4), "punted", "l2_control"),
        "ospf": (
            frame(lan, IP(src=p4, dst="224.0.0.5", proto=89), dst="01:00:5e:00:00:05"),
            "punted",
            "group_control",
        ),
        "not ip": (no_ip / Raw(token()), "punted", "not_ip"),
        "no neighbor": (frame(lan, udp(p4, "192.0.2.120")), "punted", "unresolved"),
        "too big": (
            frame(lan, udp(p4, HOST) / Raw(bytes(1450))),
            "punted",
            "too_big",
        ),
        "too big, DF": (
            frame(lan, udp(p4, HOST, flags="DF") / Raw(bytes(1450))),
            "dropped",
            "mtu",
        ),
        "too big, IPv6": (frame(lan, udp(p6, HOST6) / Raw(bytes(1450))), "dropped", "mtu"),
    }


@pytest.mark.smoke
def test_every_kind_of_verdict(taught, lan, wan):
    """explain gives each verdict with its reason, and the stages up to the stage that decided."""
    stages = ["admit", "parse", "lookup", "adjacency", "rewrite", "send"]
    for claim, (packet, verdict, reason) in kinds(lan, wan).items():
        if claim == "not ip":
            packet.type = 0x88B5

        row = explain(taught, lan, packet)

        assert (row["verdict"], row.get("reason")) == (verdict, reason), (claim, row)
        assert row["stages"] == stages[: len(row["stages"])], claim
        assert (row["stages"][-1] == "send") == (verdict == "forwarded"), claim


def test_an_error_that_is_not_sent_is_told_with_its_reason(taught, lan):
    """explain says when no ICMP error is sent, and why: a silent drop is not a lost ICMP error (RFC
    1812, 4.3.2.7 and RFC 4443, 2.4 (e))."""
    p4, p6, nowhere, nowhere6 = lan.peer4, lan.peer6, "100.64.0.1", "2001:db8:aaaa::1"
    cases = {
        "ICMP error itself": IP(src=p4, dst=nowhere) / ICMP(type=3),
        "ICMPv6 error or redirect itself": IPv6(src=p6, dst=nowhere6)
        / ICMPv6DestUnreach(),
        "later fragment": IP(src=p4, dst=nowhere, frag=7) / Raw(bytes(40)),
        "no route leads back": udp("100.64.9.9", nowhere),
    }
    for words, packet in cases.items():
        row = explain(taught, lan, frame(lan, packet))

        assert (row["verdict"], row["reason"]) == ("dropped", "no_route")
        assert row["icmp"] and words in row["icmp_refused"] and "icmp_src" not in row
    row = explain(taught, lan, frame(lan, udp(p4, nowhere)))
    assert row["icmp_src"] == lan.ip4 and "icmp_refused" not in row
    text = said(taught, "port", lan.tap, "src", "100.64.9.9", "dst", nowhere, code=3)
    assert "no ICMP error, because no route leads back" in text
    text = said(taught, "port", lan.tap, "src", p4, "dst", nowhere, code=3)
    assert f"goes to {p4} from {lan.ip4}" in text


def test_a_forwarded_packet_is_told_whole(taught, lan, wan):
    """For a forwarded packet explain prints route, next hop, neighbor, MTU, MACs and TTL, as JSON
    and as text."""
    row = explain(taught, lan, frame(lan, udp(lan.peer4, HOST, ttl=9)))
    text = said(taught, "port", lan.tap, "src", lan.peer4, "dst", HOST, "ttl", "9")

    assert row["route"]["prefix"] == NET and row["route"]["protocol"] == "bgp"
    assert row["group"] == row["route"]["group"] and not row["route_changed"]
    assert (row["via"], row["mac"], row["out"]) == (wan.peer4, wan.mac, wan.tap)
    assert row["neighbor"]["state"] == "permanent"
    assert (row["mtu"], row["out_ttl"], row["out_src_mac"]) == (1400, 8, wan.port_mac)
    for word in (NET, "bgp", wan.peer4, wan.mac, "permanent", "1400", "ttl 8", "FORWARDED"):
        assert word in text, (word, text)


def test_the_longest_prefix_is_the_one_told(taught, lan, alt):
    """explain names the longest prefix: a more specific route, or the default route when no other
    matches."""
    taught.route("198.51.100.9/32", via=alt.peer4, wire=alt)
    taught.route("0.0.0.0/0", via=alt.peer4, wire=alt)

    assert explain(taught, lan, frame(lan, udp(lan.peer4, HOST)))["out"] == alt.tap
    assert f"route      {HOST}/32 bgp" in said(taught, "dst", HOST)
    assert "route      0.0.0.0/0 bgp" in said(taught, "dst", "100.64.0.1")


def test_words_that_were_not_said_are_guessed(taught, lan, wan):
    """explain completes missing words: the port by the route back to the source, the source by the
    port."""
    assert f"arrived    {wan.tap}" in said(taught, "src", wan.peer4, "dst", HOST)
    assert f"packet     {lan.peer4} -> {HOST}, udp" in said(taught, "dst", HOST)
    assert f"{wan.peer6} -> {HOST6}" in said(taught, "port", wan.tap, "dst", HOST6)


@pytest.mark.parametrize(
    "own, source",
    [
        ("192.0.2.1/31", "192.0.2.0"),
        ("192.0.2.2/31", "192.0.2.3"),
        ("192.0.2.254/31", "192.0.2.255"),
        ("192.0.2.1/30", "192.0.2.2"),
        ("192.0.2.255/16", "192.0.2.254"),
        ("192.0.2.0/16", "192.0.2.1"),
        ("2001:db8::1/127", "2001:db8::"),
        ("2001:db8::2/127", "2001:db8::3"),
        ("2001:db8::2/64", "2001:db8::1"),
    ],
)
def test_the_guessed_source_is_in_the_subnet_of_the_port(dut, lan, tmp_path, own, source):
    """The guess is the only neighbor of a point-to-point link (RFC 3021, RFC 6164), and otherwise an
    address next to the port's own. Another source could fail the check of the source."""
    address, four = own.split("/")[0], "." in own
    port = dut.port_row(lan) | {"addresses4" if four else "addresses6": address}
    interface = {"name": lan.tap, "ifindex": port["ifindex"], "up": True, "port": True, "addresses": [own]}
    rows, frames = {"ports": [port], "interfaces": [interface]}, []

    def answer(request):
        if "explain" in request:
            frames.append(bytes.fromhex(request["explain"]["frame"]))
            return [{"verdict": "forwarded"}]
        return rows.get(request["show"], [])

    impostor = Impostor(str(tmp_path / "impostor.sock"), answer)
    try:
        words = ("port", lan.tap, "dst", HOST if four else HOST6)
        dut.fpmctl("--json", "explain", *words, socket_path=tmp_path / "impostor.sock")
    finally:
        impostor.close()

    (frame,) = frames
    assert (IP(frame[14:]) if four else IPv6(frame[14:])).src == source


@pytest.mark.parametrize(
    "words, sentence",
    [
        ([], "explain needs dst ADDRESS"),
        (["dst", "198.51.100.0/24"], "dst '198.51.100.0/24' is not an address"),
        (["dst", HOST, "port", "lan9"], "no port or VLAN 'lan9'"),
        (["dst", HOST, "src", "2001:db8::1"], "of different families"),
        (["dst", HOST, "ttl", "256"], "ttl '256' is not a whole number from 0 to 255"),
        (["dst", HOST, "len", "27"], "len must be at least 28"),
        (["dst", HOST, "colour", "red"], "unexpected word 'colour'"),
        (["dst"], "dst needs ADDRESS"),
        (["port", "lan0", "hex", "0x12"], "hexadecimal digits"),
        (["dst", HOST, "proto", "icmp", "sport", "5"], "only tcp, udp and sctp have sport"),
        (["dst", HOST, "label", "100"], "label is for IPv6"),
        (["dst", HOST, "dst", HOST], "dst after dst: give one of them, once"),
    ],
)
def test_wrong_words_are_told(taught, words, sentence):
    """Wrong words give a sentence and exit code 2."""
    done = taught.fpmctl("explain", *words)

    assert done.returncode == 2 and sentence in done.stderr, done.stderr


def test_the_exit_code_tells_drops_from_the_rest(taught, wan):
    """explain exits with 0 for a forwarded, delivered or waiting packet and with 3 for a dropped
    packet, with advice."""
    said(taught, "dst", HOST)
    said(taught, "dst", wan.ip4)
    said(taught, "dst", "192.0.2.120")
    text = said(taught, "dst", "203.0.113.130", code=3)
    assert "DROPPED, blackhole" in text and "fpmctl show routes 203.0.113.130" in text


def test_a_frame_too_short_for_a_header_is_told_as_that(taught):
    """explain says that a frame is too short for a header, and does not print empty addresses for
    it."""
    for octets, text in (("00", "1 octet"), ("00" * 13, "13 octets")):
        text = f"packet     a frame of {text}, too short for an Ethernet header\n"
        assert said(taught, "port", "lan0", "hex", octets, code=3).startswith(text)
    full = said(taught, "port", "lan0", "hex", "00", "len", "60", code=3)
    assert "EtherType 0x0000 from 00:00:00:00:00:00" in full and ", 60 octets" in full


def test_nothing_is_sent_counted_or_marked(taught, lan, wan):
    """explain changes no counter, sends no frame and asks for no neighbor."""
    before = taught.counters()
    for wire in taught.wires.values():
        wire.clear()

    for packet, _, _ in kinds(lan, wan).values():
        explain(taught, lan, packet)
    assert json.loads(taught.fpmctl("--json", "explain", "dst", HOST).stdout)

    assert taught.drops(before) == {} and taught.moved(before, "punt") == {}
    taught.fence(lan)
    assert taught.moved(before, "total").get("forwarded4", 0) == 0
    assert wan.solicitations("192.0.2.120") == []


# --- explain agrees with the router --------------------------------------------------------


def random_packet(rng, lan, wan):
    """Return a random packet: mostly valid, often with one error."""
    four = rng.random() < 0.65
    if four:
        src = rng.choice([lan.peer4] * 6 + ["127.0.0.1", "240.0.0.1", "169.254.7.7"])
        dst = rng.choice(
            [f"198.51.100.{rng.randrange(256)}", f"203.0.113.{rng.randrange(128)}"] * 4
            + [f"203.0.113.{rng.randrange(128, 256)}", f"100.64.0.{rng.randrange(9)}"]
            + [wan.ip4, wan.peer4, "192.0.2.127", "192.0.2.120", "127.9.9.9"]
            + ["224.0.0.5", "239.1.1.1", "255.255.255.255", "169.254.3.3", "0.0.0.0"]
        )
        ip = IP(src=src, dst=dst, ttl=rng.choice([0, 1, 2, 64, 64, 255]))
        ip.flags = rng.choice(["DF", 0])
    else:
        src = rng.choice([lan.peer6] * 6 + ["::1", "::", "ff02::1", "fe80::77"])
        dst = rng.choice(
            [f"2001:db8:f000::{rng.randrange(1, 99):x}"] * 5
            + ["2001:db8:e000::1", "2001:db8:aaaa::1", wan.ip6, wan.peer6, "::1"]
            + ["fe80::99", "ff02::5", "ff0e::5", "2001:db8:1::77"]
        )
        ip = IPv6(src=src, dst=dst, hlim=rng.choice([0, 1, 2, 64, 64, 255]))
        ip.fl = rng.randrange(1 << 20)
    sport, dport = rng.randrange(1024, 65536), rng.choice([9, 53, 179, 3784, 4001])
    upper = rng.choice([UDP(sport=sport, dport=dport), TCP(sport=sport, dport=dport)])
    mac = rng.choice([lan.port_mac] * 12 + [BROADCAST, wan.mac, "01:00:5e:00:00:05"])
    load = token() + bytes(rng.choice([0, 0, 64, 1200, 1380]))
    data = bytearray(bytes(Ether(src=lan.mac, dst=mac) / ip / upper / Raw(load)))
    what = rng.random()
    if what < 0.12:  # one octet of the header is wrong
        data[14 + rng.randrange(8 if four else 6)] ^= 1 << rng.randrange(8)
    elif what < 0.16:
        data = data[: rng.randrange(14, 40)]
    elif what < 0.22:
        data += bytes(rng.randrange(1, 30))  # a trailer
    elif what < 0.26:
        data[12:14] = struct.pack("!H", rng.choice([0x0806, 0x88CC, 0x88B5, 0x0026]))
    return bytes(data[:1514])


def seen(dut, mark):
    """Return (wire, octets) of the probe with this mark as it left, or (None, b"")."""
    for wire in dut.wires.values():
        own = bytes.fromhex(wire.port_mac.replace(":", ""))
        for got in wire.got(mark):
            proto = got[23] if got[12:14] == b"\x08\x00" else got[20]
            if got[6:12] == own and proto in (6, 17):  # this is no ICMP error that quotes the probe
                return wire, got
    return None, b""


def asked(dut):
    """Count the packets whose sender was to get the MTU in an ICMP error, as far as the policers
    passed them."""
    rows = dut.control.ask("punt")
    return sum(
        r["passed"] for r in rows if r["class"] in ("icmp4-too-big", "icmp6-too-big")
    )


def test_it_is_what_happens(taught, lan, wan, rng):
    """explain agrees with the router for a few hundred random packets: each packet, sent
    afterwards, leaves by the port, to the MAC and with the TTL that explain gave, or moves the
    counters that explain gave."""
    told, packets = [], []
    for _ in range(400):
        data = random_packet(rng, lan, wan)
        packets.append(data)
        told.append(explain(taught, lan, data))
    want = Counter((r["verdict"], r.get("reason")) for r in told)
    before, marks, mtus = taught.counters(), taught.marks, asked(taught)

    for at in range(0, len(packets), 40):
        lan.send(*packets[at : at + 40])
        taught.fence(lan)

    moved = {("dropped", k): v for k, v in taught.drops(before).items()}
    moved |= {("punted", k): v for k, v in taught.moved(before, "punt").items()}
    # Leave out the frames of fences, and the punts that ask for an ICMP error: their packets also
    # count as drops.
    moved[("punted", "not_ip")] = moved.get(("punted", "not_ip"), 0) - taught.marks + marks
    for reason in ("ttl_expired", "unreach"):
        moved.pop(("punted", reason), None)
    # A packet that is answered with the MTU counts as a drop, and also as a punt as far as policers
    # pass it.
    moved[("punted", "too_big")] = (
        moved.get(("punted", "too_big"), 0) - asked(taught) + mtus
    )
    for reason in ("neigh_failed", "hold_full"):  # the punt thread counts these later
        moved.pop(("dropped", reason), None)
    want_left = want.pop(("forwarded", None), 0)
    assert {k: v for k, v in moved.items() if v} == dict(want)
    assert want_left > 10, "too few random packets are forwarded"
    for data, row in zip(packets, told):
        mark = token_of(data)
        if row["verdict"] != "forwarded" or mark is None:
            continue
        if mark not in data[: 14 + row["length"]]:  # the octets are behind the packet: wrong length
            continue
        wire, got = seen(taught, mark)
        assert wire and wire.tap == row["out"], row
        assert got[:6].hex(":") == row["mac"], row
        ttl = got[22] if row["family"] == 4 else got[21]
        assert ttl == row["out_ttl"], row
