# SPDX-License-Identifier: BSD-3-Clause
"""A Linux router beside ours, with the same wires, addresses and `ip` commands, and texts of the frames that
come out of both, so that a test can compare them."""

import hashlib
import ipaddress
import re
import struct

from ipv4 import checksum
from linux_router import LinuxRouter
from wire import token_of


class Twins:
    """Our router and a Linux router, with the same configuration."""

    def __init__(self, ours):
        self.ours, self.linux = ours, LinuxRouter(ours)

    def ip(self, *commands):
        """Run `ip` commands in both."""
        for one in (self.linux, self.ours):
            one.ip(*commands)

    def answers(self, frames, wire="lan"):
        """Send {case: frame} into the wire of each. Return the texts of the frames that came out, as
        two dictionaries {case: [text]}: of Linux, and of our router. Our router sends at most 100 ICMP
        errors at a time to a receiver."""
        found, cases = ({}, {}), list(frames)
        for at in range(0, len(cases), 30):
            for one, texts in zip((self.linux, self.ours), found):
                one.wires[wire].send(*(frames[c] for c in cases[at : at + 30]))
                self.fence(one, wire)
                texts |= {c: came_out(one, token_of(frames[c])) for c in cases[at : at + 30]}
        return found

    def fence(self, one, wire):
        """Return when the router has judged all frames."""
        if one is self.ours:
            one.fence(one.wires[wire])
        out = one.wires["lan" if wire == "wan" else "wan"]
        for _ in range(3):
            probe = one.wires[wire].probe(out.peer4)
            one.wires[wire].send(probe)
            out.expect_raw(token_of(probe), 10)
        one.collector.catch_up()


def came_out(one, mark):
    """Return the frames that carry a token, as sorted texts."""
    return sorted(f"{n} {text(data)}" for n, wire in one.wires.items() for data in wire.got(mark))


def text(data):
    """Return the words of a frame: its headers, and a digest of the rest."""
    kind = struct.unpack("!H", data[12:14])[0]
    return f"to {data[:6].hex(':')}: " + {0x800: text4, 0x86DD: text6}.get(kind, bytes.hex)(data[14:])


def text4(ip):
    """Return the words of an IPv4 packet. Its identification is left out."""
    octets, (length, _, where) = (ip[0] & 15) * 4, struct.unpack("!HHH", ip[2:8])
    src, dst = ipaddress.ip_address(ip[12:16]), ipaddress.ip_address(ip[16:20])
    head, rest = f"{src} > {dst} ttl {ip[8]}", ip[octets:length]
    if ip[9] == 1 and rest[:1] and rest[0] in (3, 11, 12):
        return f"{head} ICMP {rest[0]}/{rest[1]} arg {rest[4:8].hex()} quotes {text4(rest[8:])}"
    wrong = "" if checksum(ip[:octets]) == 0xFFFF else " wrong checksum"
    part = {0: "", 0x4000: " DF"}.get(where, f" fragment {where:#x}")
    return f"{head} tos {ip[1]:#x} len {length}{part}{ip[20:octets].hex()}{wrong} {inside(ip[9], rest)}"


def text6(ip):
    """Return the words of an IPv6 packet."""
    words, length, proto, hlim = struct.unpack("!IHBB", ip[:8])
    src, dst = ipaddress.ip_address(ip[8:24]), ipaddress.ip_address(ip[24:40])
    head, rest = f"{src} > {dst} hl {hlim}", ip[40 : 40 + length]
    if proto == 58 and rest[:1] and rest[0] < 128:
        return f"{head} ICMP {rest[0]}/{rest[1]} arg {rest[4:8].hex()} quotes {text6(rest[8:])}"
    # Each router chooses the flow labels of its outer headers.
    label = "" if proto in (4, 41, 43, 47, 60) else f" fl {words & 0xFFFFF}"
    return f"{head} tc {words >> 20 & 255:#x}{label} len {length} {inside(proto, rest)}"


def inside(proto, rest):
    """Return the words for the octets behind an IP header."""
    if proto == 4 and len(rest) >= 20:
        return f"| {text4(rest)}"
    if proto == 41 and len(rest) >= 40:
        return f"| {text6(rest)}"
    if proto in (43, 60) and len(rest) >= 8:
        octets = (rest[1] + 1) * 8
        return f"[{'SRH' if proto == 43 else 'options'} {rest[1:octets].hex()}] {inside(rest[0], rest[octets:])}"
    if proto == 47 and len(rest) >= 4:
        octets = 4 + 4 * bin(rest[0] & 0xB0).count("1")
        kind = {0x0800: 4, 0x86DD: 41}.get(struct.unpack("!H", rest[2:4])[0], 255)
        return f"GRE {rest[:octets].hex()} {inside(kind, rest[octets:])}"
    return f"proto {proto} {hashlib.md5(rest[:64]).hexdigest()[:6]}"


def equal(kernel, ours, differs=None):
    """Assert that both have sent the same texts, except for cases with a reason in `differs`."""
    differs = differs or {}
    found = {c: next((r for r in differs if re.fullmatch(r, c)), None) for c in kernel}
    wrong = [f"\n{c}\n   linux {kernel[c]}\n   ours  {ours[c]}" for c in kernel if kernel[c] != ours[c] and not found[c]]
    same = [c for c in kernel if found[c] and kernel[c] == ours[c]]
    assert not wrong, "".join(wrong)
    assert same == [], f"Linux and ours agree about {same}: remove them from the reasons"
