# SPDX-License-Identifier: BSD-3-Clause
"""Packets to SIDs, sent to our router and to a Linux router beside it with the same end points, routes
and addresses. The same frames and ICMP errors have to come out of both. DIFFERS has the packets that
both treat differently, with the reason."""

import ipaddress
import re
import struct

import pytest
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import vrfs
from lib import netns
from lib.wait import eventually
from twins import Twins, equal

MAIN, RED = "main", "red"
# Destinations behind routes of table main (by wan) and of the VRF red (by ext).
DST = {
    (MAIN, 4): "203.0.113.9", (MAIN, 6): "2001:db8:aa::9",
    (RED, 4): "198.51.100.9", (RED, 6): "2001:db8:a::9",
}  # fmt: skip
UNKNOWN = {4: "100.64.7.9", 6: "2001:db8:77::9"}
REFUSED = {"unreachable": "198.51.101.9", "prohibit": "198.51.102.9", "blackhole": "198.51.103.9"}
REFUSED6 = {"unreachable": "2001:db8:ab::9", "prohibit": "2001:db8:ac::9", "blackhole": "2001:db8:ad::9"}
# Sources by the place of the route to them: in red by alt, in main by wan, in both, in red behind
# segments, in none.
SRC = {
    4: {RED: "198.18.1.9", MAIN: "198.18.2.9", "both": "198.18.3.9", "core": "198.18.4.9", "none": "100.64.9.9"},
    6: {RED: "2001:db8:c1::9", MAIN: "2001:db8:c2::9", "both": "2001:db8:c3::9", "core": "2001:db8:c4::9", "none": "2001:db8:79::9"},
}
TUNSRC = "2001:db8:bb::1"
NEXT, NEXT_RED = "2001:db8:ff01::1", "2001:db8:ff02::1"  # next segments: by wan in main, by ext in red
SID = {name: f"2001:db8:fe00::{n:x}" for n, name in enumerate(
    ("End", "End.X", "End.T", "End.DT4", "End.DT6", "End.DT6 table", "End.DT46", "End.DX4", "End.DX4 onlink",
     "End.DX6", "End.B6.Encaps", "End.PSP", "End.T from"), 1)}  # fmt: skip


def lines(wires):
    """Return the commands of `ip` that make the routes, the VRF and the end points."""
    lan, wan, alt, ext = (wires[n] for n in ("lan", "wan", "alt", "ext"))
    out = [f"link add {RED} type vrf table 100", f"link set {RED} up",
           "link add sr0 type dummy", "link set sr0 up", f"sr tunsrc set {TUNSRC}",
           "route add 203.0.113.0/24 via {} dev wan0".format(wan.peer4),
           "-6 route add 2001:db8:aa::/48 via {} dev wan0".format(wan.peer6),
           f"-6 route add 2001:db8:ff01::/48 via {wan.peer6} dev wan0"]  # fmt: skip
    for wire in (alt, ext):
        out += [f"link set {wire.tap} master {RED}", f"addr replace {wire.ip6}/64 dev {wire.tap} nodad"]
        out += [f"neigh replace {p} lladdr {wire.mac} dev {wire.tap} nud permanent" for p in (wire.peer4, wire.peer6)]
    for six, family, plen in (("", 4, 24), ("-6 ", 6, 48)):
        net = lambda a, p=plen: ipaddress.ip_network(f"{a}/{p}", strict=False)  # noqa: E731
        out.append(f"{six}route add {net(DST[RED, family])} vrf {RED} via {ext.peer(family)} dev ext0")
        src = SRC[family]
        for where in (RED, "both"):
            out.append(f"{six}route add {net(src[where])} vrf {RED} via {alt.peer(family)} dev alt0")
        for where in (MAIN, "both"):
            out.append(f"{six}route add {net(src[where])} via {wan.peer(family)} dev wan0")
        out.append(f"{six}route add {net(src['core'])} vrf {RED} encap seg6 mode encap segs {NEXT} dev wan0")
        for kind, to in (REFUSED if family == 4 else REFUSED6).items():
            out.append(f"{six}route add {kind} {net(to)} vrf {RED}")
    out.append(f"-6 route add 2001:db8:ff02::/48 vrf {RED} via {ext.peer6} dev ext0")
    ends = {
        "End": "End", "End.X": f"End.X nh6 {wan.peer6}", "End.T": "End.T table 100",
        "End.DT4": "End.DT4 vrftable 100", "End.DT6": "End.DT6 vrftable 100",
        "End.DT6 table": "End.DT6 table 100", "End.DT46": "End.DT46 vrftable 100",
        "End.DX4": "End.DX4 nh4 203.0.113.77", "End.DX4 onlink": f"End.DX4 nh4 {wan.peer4}",
        "End.DX6": f"End.DX6 nh6 {wan.peer6}",
        "End.B6.Encaps": f"End.B6.Encaps srh segs {NEXT}",
    }  # fmt: skip
    if psp():
        ends["End.PSP"] = "End flavors psp"
    return out + [f"-6 route add {SID[n]}/128 encap seg6local action {a} count dev {'red' if 'vrftable' in a else 'sr0'}"
                  for n, a in ends.items()]  # fmt: skip


def psp():
    """Return True if the kernel has the flavor PSP (Linux 6.3)."""
    version = netns.command(["uname", "-r"]).split(".")
    return (int(version[0]), int(version[1])) >= (6, 3)


@pytest.fixture(scope="module")
def both(on_veths):
    """Return both routers."""
    on_veths.ready()
    netns.command(["modprobe", "-a", "vrf", "dummy"])
    # Linux sends a host five errors about unreachable destinations, and then one a second. All
    # namespaces share the setting.
    netns.command(["sysctl", "-qw", "net.ipv4.route.error_cost=0"])
    beside = Twins(on_veths)
    try:
        beside.linux.build()
        for one in (beside.linux, on_veths):
            netns.sysctl(one.ctl, {"net.vrf.strict_mode": 1})
            one.ip(*lines(on_veths.wires))
        def there():
            missing = [n for n, s in SID.items() if n in made and not on_veths.route_row(f"{s}/128")]
            return not missing and all(vrfs.row(on_veths, RED, d) for d in ("198.51.100.0/24", "2001:db8:a::/48", "2001:db8:ad::/48"))
        made = [n for n in SID if n not in ("End.T from",) and (psp() or n != "End.PSP")]
        eventually(there, 20, 0.1, "end points and routes")
        eventually(lambda: on_veths.fpm()["srv6_source"] == TUNSRC, 20, 0.1, "the source of outer headers")
        yield beside
    finally:
        beside.linux.destroy()
        for line in ("link del sr0", f"link del {RED}", "sr tunsrc set ::"):
            netns.command(["ip", "-n", on_veths.ctl, *line.split()], check=False)
        for six in ("-4", "-6"):
            netns.command(["ip", "-n", on_veths.ctl, six, "route", "flush", "table", "100"], check=False)
            netns.command(["ip", "-n", on_veths.ctl, six, "route", "flush", "proto", "boot"], check=False)


def inner(both, src, dst, **fields):
    """Return an IP packet with a token."""
    return both.ours.wires["lan"].probe(dst, src=src, **fields).payload


def outer(both, name, inside, segments=(), left=0, last=None, **words):
    """Return a frame to a SID with an inner packet. `segments` has the order of the list in the
    header: the last segment to visit is the first."""
    lan = both.ours.wires["lan"]
    srh = b""
    if segments:
        srh = routing(inside, segments, left, last, **{k: words.pop(k) for k in ("flags", "tag", "tlv", "kind", "hdrlen") if k in words})
    words.setdefault("nh", 43 if srh else next_of(inside))
    ip = IPv6(src=lan.peer6, dst=SID[name], **words)
    return bytes(Ether(src=lan.mac, dst=lan.port_mac) / ip / Raw(srh + bytes(inside)))


def next_of(inside):
    """Return the protocol number of a packet, as the next header field before it has it."""
    return 17 if isinstance(inside, bytes) else 41 if IPv6 in inside else 4


def routing(inside, segments, left, last, flags=0, tag=0, tlv=b"", kind=4, hdrlen=None):
    """Return a segment routing header."""
    body = b"".join(ipaddress.ip_address(s).packed for s in segments) + tlv
    hdrlen = len(body) // 8 if hdrlen is None else hdrlen
    return struct.pack("!BBBBBBH", next_of(inside), hdrlen, kind, left, len(segments) - 1 if last is None else last, flags, tag) + body


@pytest.fixture
def small_ext(both):
    """Give ext a smaller MTU in both routers."""
    both.ip("link set ext0 mtu 1400")
    eventually(lambda: both.ours.port_row(both.ours.wires["ext"])["mtu"] == 1400, 10, 0.05, "the MTU")
    yield
    both.ip("link set ext0 mtu 1500")


def inside_frames(both, name, family):
    """Return {case: frame} of inner packets that end in errors, with senders of each kind."""
    ttl = {"ttl": 1} if family == 4 else {"hlim": 1}
    df = {"flags": "DF"} if family == 4 else {}
    red, main = DST[RED, family], DST[MAIN, family]
    frames = {}
    for where, src in SRC[family].items():
        kinds = {
            "goes": inner(both, src, red),
            "to main": inner(both, src, main),
            "ttl": inner(both, src, red, **ttl),
            "too big": inner(both, src, red, size=1420, **df),
            "unknown": inner(both, src, UNKNOWN[family]),
            "ttl, unknown": inner(both, src, UNKNOWN[family], **ttl),
            "ttl, to main": inner(both, src, main, **ttl),
            **{k: inner(both, src, d) for k, d in (REFUSED if family == 4 else REFUSED6).items()},
        }
        frames |= {f"from {where}: {k}": outer(both, name, p) for k, p in kinds.items()}
    return frames


def without_sources(found):
    """Return the texts of ICMP errors without their sources."""
    return {c: [re.sub(r"\S+ > (\S+ (?:hl|ttl) \d+ ICMP)", r"> \1", t) for t in texts] for c, texts in found.items()}


@pytest.mark.parametrize("name", ["End.DT4", "End.DT46"])
def test_errors_about_ipv4_packets_inside(both, small_ext, name):
    """Both routers send the same errors to the same senders, with the same sources."""
    kernel, ours = both.answers(inside_frames(both, name, 4))
    # Linux writes 0 into the traffic class of the outer header of its error (manual/srv6.md).
    kernel, ours = ({c: [t.replace(" tc 0xc0 ", " tc 0x0 ") for t in texts] for c, texts in f.items()} for f in (kernel, ours))
    equal(kernel, ours)


@pytest.mark.parametrize("name", ["End.DT6", "End.DT46", "End.DT6 table"])
def test_errors_about_ipv6_packets_inside(both, small_ext, name):
    """Our errors have an address of the VRF as their source (RFC 4443, 2.2: the source of other
    packets to the sender). Linux uses an address of the port of the outer packet. Behind `table`
    Linux looks up most senders in main, not in the table. Therefore our errors are compared with
    our errors behind `vrftable`."""
    frames = inside_frames(both, name, 6)
    kernel, ours = both.answers(frames)
    for case, texts in ours.items():
        assert all(f"{both.ours.wires['alt'].ip6} > " in t for t in texts if "ICMP" in t), (case, texts)
    if name != "End.DT6 table":
        equal(without_sources(kernel), without_sources(ours))
        return
    # The table alone is looked up: no route of main is used.
    main = [c for c in frames if "to main" in c]
    assert all("ICMP 1/0" in kernel[c][0] for c in main if kernel[c])
    other = both.answers(inside_frames(both, "End.DT6", 6))[1]
    for found in (ours, other):
        for case in main:
            del found[case]
    plain = lambda texts: [re.sub(r"proto \d+ \w+|fe00::\w+", "", t) for t in texts]  # noqa: E731
    assert {c: plain(t) for c, t in ours.items()} == {c: plain(t) for c, t in other.items()}


def header_frames(both, name, nxt):
    """Return {case: frame}: packets to a SID with routing headers of all kinds."""
    sid, hmac = SID[name], bytes([5, 38, 0, 0, 0, 0, 0, 9] + [0x55] * 32)
    pad, bad = bytes([4, 6] + [0] * 6), bytes([4, 60] + [0] * 6)
    family = 6 if name in ("End.DT6", "End.DT6 table", "End.DX6") else 4
    where = RED if name == "End.DT6 table" else MAIN
    two, three = [nxt, sid], [nxt, nxt, sid]
    kinds = {
        "bare": ([], 0, {}),
        "congestion": ([], 0, {"tc": 3}),
        "hop limit 1": ([], 0, {"hlim": 1}),
        "SL 0": ([sid, nxt], 0, {}),
        "SL 1": (two, 1, {}),
        "SL 2": (three, 2, {}),
        "SL 1, last entry 0": ([nxt], 1, {}),
        "SL 2, last entry 0": ([nxt], 2, {}),
        "SL 3, last entry 1": (two, 3, {}),
        "SL 0, last entry beyond the header": (two, 0, {"last": 5}),
        "SL 1, last entry beyond the header": (two, 1, {"last": 5}),
        "SL 1, header shorter than the list": (two, 1, {"hdrlen": 2}),
        "SL 1, padding": (two, 1, {"tlv": pad}),
        "SL 0, padding": (two, 0, {"tlv": pad}),
        "SL 1, TLV beyond the header": (two, 1, {"tlv": bad}),
        "SL 0, TLV beyond the header": (two, 0, {"tlv": bad}),
        "SL 1, tag and flags": (two, 1, {"tag": 77, "flags": 0xF7}),
        "SL 1, HMAC flag alone": (two, 1, {"flags": 8}),
        "SL 1, wrong HMAC": (two, 1, {"flags": 8, "tlv": hmac}),
        "SL 0, wrong HMAC": (two, 0, {"flags": 8, "tlv": hmac}),
        "SL 1, HMAC without flag": (two, 1, {"tlv": hmac}),
        "SL 1, routing type 2": (two, 1, {"kind": 2}),
        "SL 0, routing type 2": (two, 0, {"kind": 2}),
        "SL 1, hop limit 1": (two, 1, {"hlim": 1}),
        "SL 1, to nowhere": ([UNKNOWN[6], sid], 1, {}),
        "SL 1, to nowhere, hop limit 1": ([UNKNOWN[6], sid], 1, {"hlim": 1}),
        "SL 1, to a group": (["ff0e::1", sid], 1, {}),
        "SL 1, to a link-local address": (["fe80::1", sid], 1, {}),
        "SL 1, to the router": ([both.ours.wires["lan"].ip6, sid], 1, {}),
    }
    if name in ("End", "End.T", "End.PSP"):
        del kinds["SL 1, to a link-local address"]  # Linux answers when its solicitations have failed
    packet = lambda: inner(both, SRC[family][where], DST[where, family])  # noqa: E731
    frames = {f"{name}: {k}": outer(both, name, packet(), segments, left, **words) for k, (segments, left, words) in kinds.items()}
    other = 10 - family
    frames[f"{name}: other family"] = outer(both, name, inner(both, SRC[other][MAIN], DST[MAIN, other]))
    frames[f"{name}: UDP"] = outer(both, name, bytes(inner(both, SRC[6][MAIN], DST[MAIN, 6]))[40:])
    cut = bytes(packet())
    at = 2 if family == 4 else 4
    longer = cut[:at] + struct.pack("!H", struct.unpack("!H", cut[at:at + 2])[0] + 1) + cut[at + 2:]
    frames[f"{name}: inner length beyond the packet"] = outer(both, name, longer, nh=41 if family == 6 else 4)
    return frames


ADVANCE = r"End|End\.X|End\.T|End\.B6\.Encaps|End\.PSP"
DECAP = r"End\.DT4|End\.DT6|End\.DT6 table|End\.DT46|End\.DX4|End\.DX4 onlink|End\.DX6"
BOUNDS = "SL 2, last entry 0|SL 3, last entry 1|SL 1, last entry beyond the header|SL 1, header shorter than the list"
# Regular expressions of the cases that both treat differently, with the reason. manual/srv6.md has them.
DIFFERS = {
    rf"({ADVANCE}): (bare|congestion|hop limit 1|SL 0|SL 0, (?!routing type).*|other family|UDP|inner length .*)":
        "ours sends a parameter problem, Linux nothing (RFC 8986, 4.1.1)",
    rf"({DECAP}): UDP|(?!End\.DT46)({DECAP}): other family": "ours sends a parameter problem, Linux nothing (RFC 8986, 4.4 to 4.8)",
    rf"({DECAP}): SL [123](?!, routing type).*":
        "ours sends a parameter problem, Linux nothing, or it decapsulates if the header is wrong (RFC 8986, 4.4 to 4.8)",
    rf"({ADVANCE}): ({BOUNDS})": "ours sends a parameter problem, Linux nothing (RFC 8986, 4.1, S10)",
    r"(End|End\.X|End\.T|End\.PSP): SL 1, TLV beyond the header": "ours reads no TLVs",
    rf"({ADVANCE}): SL 1, wrong HMAC|({DECAP}): SL 0, wrong HMAC": "ours does not verify the HMAC",
    r"(End|End\.X|End\.T|End\.PSP): SL 1,( to nowhere,)? hop limit 1": "the hop limit counts before the lookup (RFC 8986, 4.1, S05)",
    r"End\.PSP: SL 1, to the router": "the kernel of ours sends a parameter problem about the protocol (RFC 8200, 4), Linux nothing",
    r"End\.X: SL 1, to a (group|link-local address)": "ours forwards neither",
    r"End\.B6\.Encaps: SL [12](?!, routing type).*":
        "hop limits of both headers (RFC 8986, 4.13, S12); and the reasons of End",
    r"End\.DX4 onlink: (bare|hop limit 1|SL 0|SL 0, (last|padding|TLV).*)": "ours sends to the neighbor, Linux asks for the inner destination",
    r"End\.(DT|DX4:|DX6).*congestion": "ours obeys the ECN field of the outer header (RFC 6040)",
}


ENDS = [n for n in SID if n != "End.T from"]


@pytest.mark.parametrize("name", ENDS)
def test_headers_of_packets_to_sids(both, name):
    """Each end point treats packets with routing headers of all kinds as Linux does, but for DIFFERS."""
    if name == "End.PSP" and not psp():
        pytest.skip("this kernel has no PSP")
    kernel, ours = both.answers(header_frames(both, name, NEXT_RED if name == "End.T" else NEXT))
    equal(kernel, ours, DIFFERS)


@pytest.mark.parametrize("hop_limit", [64, 1])
def test_end_t_looks_its_table_up_alone(both, hop_limit):
    """End.T uses no table but its own. The errors go to the sender of the packet, which is in the
    VRF of the ingress port."""
    dst = [DST[RED, 6], DST[MAIN, 6], UNKNOWN[6], *REFUSED6.values()]
    frames = {f"to {d}": outer(both, "End.T", inner(both, SRC[4][MAIN], DST[MAIN, 4]), [d, SID["End.T"]], 1, hlim=hop_limit) for d in dst}
    kernel, ours = both.answers(frames)
    if hop_limit == 64:
        equal(kernel, ours)
        return
    # RFC 8986, 4.1, S05: the hop limit counts before the lookup, and the packet is quoted as it came.
    source = both.ours.wires["lan"].ip6
    assert all(len(t) == 1 and f"{source} > " in t[0] and "ICMP 3/0" in t[0] and SID["End.T"] in t[0] for t in ours.values()), ours


def test_a_source_chooses_the_route_of_end_t(both):
    """End.T uses the route by source for packets of lan. This route leads to the kernel, because it
    inserts a header."""
    lines = [f"-6 route add 2001:db8:ff03::/48 table 100 via {both.ours.wires['ext'].peer6} dev ext0",
             f"-6 route add 2001:db8:ff03::/48 from 2001:db8:4::/64 table 100 encap seg6 mode inline segs {NEXT_RED} dev ext0"]  # fmt: skip
    both.ip(*lines)
    try:
        frame = lambda: outer(both, "End.T", inner(both, SRC[4][MAIN], DST[MAIN, 4]), ["2001:db8:ff03::1", SID["End.T"]], 1)  # noqa: E731

        def same():
            kernel, ours = both.answers({"from": frame()})
            return kernel == ours and kernel["from"], (kernel, ours)

        assert eventually(lambda: same()[0], 10, 0.2, "both routers send the same"), same()[1]
    finally:
        both.ip(*(re.sub(" encap.* dev", " dev", line.replace(" add ", " del ")) for line in lines))


def counted(both, names):
    """Return {name: (packets, octets, errors)} of Linux and of ours."""
    linux, ours = {}, {}
    rows = {r["sid"]: r for r in both.ours.control.ask("sids")}
    for name in names:
        text = netns.command(["ip", "-n", both.linux.ctl, "-6", "-s", "route", "show", f"{SID[name]}/128"])
        linux[name] = tuple(map(int, re.search(r"packets (\d+) bytes (\d+) errors (\d+)", text).groups()))
        row = rows[f"{SID[name]}/128"]
        ours[name] = (row["packets"], row["bytes"], row["errors"])
    return linux, ours


def test_counters_of_sids(both):
    """Our counters are those of Linux: the accepted packets, their octets, and the packets that an
    end point refuses."""
    names = [n for n in ENDS if n not in ("End.PSP", "End.DX4 onlink")]
    before = counted(both, names)
    frames = {}
    for name in names:
        nxt = NEXT_RED if name == "End.T" else NEXT
        all_of = header_frames(both, name, nxt)
        take = {"bare", "SL 0", "SL 1", "SL 2", "SL 1, last entry 0", "SL 0, padding", "other family", "UDP"}
        frames |= {c: f for c, f in all_of.items() if c.partition(": ")[2] in take}
    both.answers(frames)
    after = counted(both, names)
    moved = [{n: tuple(b - a for a, b in zip(x[n], y[n])) for n in names} for x, y in zip(before, after)]
    assert moved[0] == moved[1]
