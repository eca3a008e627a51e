# SPDX-License-Identifier: BSD-3-Clause
"""Make nft matches and statements of a flow specification.

A match is exact: it holds for the packets for which the flow specification holds, and for no
others. A flow that nft cannot express is refused.
"""

import hashlib
import ipaddress
import itertools
from dataclasses import dataclass

from . import flow as f
from .flow import Refused

TCP, UDP = 6, 17
ICMP = {4: 1, 6: 58}
COMMENT_MAX = 120  # nft takes 128 octets
RULE_OCTETS = 500  # longer than a rule without long lists
ALL_TCP_FLAGS, RESERVED_BITS = range(256), 4
# The kinds of packets, as bits of the component `fragment` without DF.
WHOLE, FIRST, MIDDLE, LAST = 0, f.FIRST, f.IS_FRAGMENT, f.IS_FRAGMENT | f.LAST


@dataclass(frozen=True)
class Rules:
    """The nft rules of one flow: in the chain of its family, and in a chain of its own."""

    lines: tuple
    chain: str = None  # None: it has no chain of its own
    chain_lines: tuple = ()

    @property
    def number(self):
        """The number of rules. A rule with long lists counts as several, because nft needs as much
        time for it."""
        return sum(-(-len(line) // RULE_OCTETS) for line in self.lines)


def rules(flow, actions):
    """Return the Rules of a flow with its Actions. Raises Refused."""
    found = matches(flow)
    comment = f'comment "{str(flow)[:COMMENT_MAX]}"'
    if actions.drops():
        return Rules(tuple(f"{m} counter drop {comment}".lstrip() for m in found))
    marks = f"{_ip(flow)} dscp set {actions.dscp} " if actions.dscp is not None else ""
    end = "" if actions.goes_on else " accept"
    if actions.bytes_s is None and actions.packets_s is None:
        return Rules(tuple(f"{m} {marks}counter{end} {comment}".lstrip() for m in found))
    # All rules of a flow share its limits. The next flows apply to packets within the limits only if
    # the actions say so (`goes_on`).
    chain = "rate_" + hashlib.sha256(bytes([flow.family]) + flow.nlri).hexdigest()[:16]
    limits = []
    if actions.bytes_s is not None:
        limits.append(f"limit rate over {actions.bytes_s} bytes/second counter drop")
    if actions.packets_s is not None:
        burst = min(max(actions.packets_s, 5), 0xFFFFFFFF)  # packets of a second, as for octets
        limits.append(
            f"limit rate over {actions.packets_s}/second burst {burst} packets counter drop"
        )
    limits.append(f"{marks}counter{end or ' return'}")
    verdict = "jump" if actions.goes_on else "goto"
    lines = tuple(f"{m} {verdict} {chain} {comment}".lstrip() for m in found)
    return Rules(lines, chain, tuple(limits))


def matches(flow):
    """Return the matches of a flow as texts. If a flow holds for a packet, exactly one of its matches
    holds for the packet."""
    parts = [
        _address(flow, f.DESTINATION, "daddr"),
        _address(flow, f.SOURCE, "saddr"),
        _protocol(flow),
        _ports(flow),
        _numbers(flow, f.ICMP_TYPE, f"{_icmp(flow)} type"),
        _numbers(flow, f.ICMP_CODE, f"{_icmp(flow)} code"),
        _tcp_flags(flow),
        _numbers(flow, f.LENGTH, "meta length", always=True),
        _numbers(flow, f.DSCP, f"{_ip(flow)} dscp", always=True),
        _numbers(flow, f.FLOW_LABEL, "ip6 flowlabel", always=True),
        _fragment(flow),
    ]
    if not all(parts):
        raise Refused("no packet matches it")
    # Each packet has a family, so a flow without components has a match, too.
    first = [f"meta nfproto ipv{flow.family}"]
    return [" ".join(filter(None, first + list(some))) for some in itertools.product(*parts)]


def _ip(flow):
    return "ip" if flow.family == 4 else "ip6"


def _icmp(flow):
    return "icmp" if flow.family == 4 else "icmpv6"


def _address(flow, kind, word):
    prefix = flow.get(kind)
    if prefix is None or prefix.mask == 0:
        return [""]
    if prefix.offset == 0:
        return [f"{_ip(flow)} {word} {prefix}"]
    mask = ipaddress.IPv6Address(prefix.mask)
    return [f"ip6 {word} & {mask} == {prefix.address()}"]


def set_of(found):
    """Return ranges as nft writes them: one value, or a set."""
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in found]
    return texts[0] if len(texts) == 1 and "-" not in texts[0] else f"{{ {', '.join(texts)} }}"


def _numbers(flow, kind, words, always=False):
    """Match a number. `always`: each packet has this number, so a test for all values is left out."""
    values = flow.get(kind)
    if values is None:
        return [""]
    found = f.ranges(kind, values)
    if always and found == [(0, f.LARGEST[kind])]:
        return [""]
    return [f"{words} {set_of(found)}"] if found else []


def _protocol(flow):
    """Match the protocol. Other components hold for some protocols only."""
    values = flow.get(f.PROTOCOL)
    found = [(0, 255)] if values is None else f.ranges(f.PROTOCOL, values)
    needed = [
        ({f.PORT, f.DST_PORT, f.SRC_PORT}, {TCP, UDP}),
        ({f.TCP_FLAGS}, {TCP}),
        ({f.ICMP_TYPE, f.ICMP_CODE}, {ICMP[flow.family]}),
    ]
    for kinds, protocols in needed:
        if any(flow.get(kind) is not None for kind in kinds):
            have = {n for a, b in found for n in range(a, b + 1)} & protocols
            found = [(n, n) for n in sorted(have)]
    if found == [(0, 255)]:
        return [""]
    return [f"meta l4proto {set_of(found)}"] if found else []


def _ports(flow):
    source = _numbers(flow, f.SRC_PORT, "th sport")
    destination = _numbers(flow, f.DST_PORT, "th dport")
    some = [" ".join(filter(None, pair)) for pair in itertools.product(source, destination)]
    values = flow.get(f.PORT)
    if values is None:
        return some
    either = f.ranges(f.PORT, values)
    if not either:
        return []
    ports = set_of(either)
    both = [f"th sport {ports}"]
    if either != [(0, f.LARGEST[f.PORT])]:
        both.append(f"th sport != {ports} th dport {ports}")
    return [" ".join(filter(None, pair)) for pair in itertools.product(some, both)]


def _tcp_flags(flow):
    values = flow.get(f.TCP_FLAGS)
    if values is None:
        return [""]
    # The four bits of the data offset count as zero (RFC 8955, 4.2.2.9).
    held, size = f.held(values, 8 + RESERVED_BITS), len(ALL_TCP_FLAGS)
    plain = held & (1 << size) - 1  # the reserved bits are 0
    if held != sum(plain << size * n for n in range(1 << RESERVED_BITS)):
        raise Refused("tcp-flags beyond the eight of RFC 9293 are not supported")
    good = [flags for flags in ALL_TCP_FLAGS if plain >> flags & 1]
    if len(good) == len(ALL_TCP_FLAGS):
        return ["tcp flags >= 0"]
    if not good:
        return []
    # The bits that are equal in all good values. If every value with these bits is good, one match
    # with a mask is enough.
    ones, zeros = 0xFF, 0xFF
    for flags in good:
        ones, zeros = ones & flags, zeros & ~flags
    mask = ones | zeros
    if len(good) == 1 << (8 - mask.bit_count()):
        return [f"tcp flags & {mask} == {ones}"]
    return [f"tcp flags {{ {', '.join(map(str, good))} }}"]


# --- fragments -----------------------------------------------------------------------------------

_KINDS = {
    # offset and "more fragments", by the kinds of packets
    frozenset({WHOLE}): ["ip frag-off & 0x3fff == 0"],
    frozenset({FIRST}): ["ip frag-off & 0x3fff == 0x2000"],
    frozenset({MIDDLE}): ["ip frag-off & 0x2000 != 0 ip frag-off & 0x1fff != 0"],
    frozenset({LAST}): ["ip frag-off & 0x2000 == 0 ip frag-off & 0x1fff != 0"],
    frozenset({WHOLE, FIRST}): ["ip frag-off & 0x1fff == 0"],
    frozenset({MIDDLE, LAST}): ["ip frag-off & 0x1fff != 0"],
    frozenset({FIRST, MIDDLE, LAST}): ["ip frag-off & 0x3fff != 0"],
    frozenset({WHOLE, FIRST, MIDDLE, LAST}): [""],
}
_KINDS6 = {
    # A packet that is not cut may still have a fragment header: its offset is 0, and the flag for
    # more fragments is off (RFC 6946).
    frozenset({WHOLE}): ["exthdr frag missing", "frag frag-off 0 frag more-fragments 0"],
    frozenset({FIRST}): ["frag frag-off 0 frag more-fragments 1"],
    frozenset({MIDDLE}): ["frag frag-off != 0 frag more-fragments 1"],
    frozenset({LAST}): ["frag frag-off != 0 frag more-fragments 0"],
    frozenset({MIDDLE, LAST}): ["frag frag-off != 0"],
    frozenset({WHOLE, FIRST, MIDDLE, LAST}): [""],
}


def _fragment(flow):
    values = flow.get(f.FRAGMENT)
    if values is None:
        return [""]
    kinds = (WHOLE, FIRST, MIDDLE, LAST)
    if flow.family == 6:
        # The bit DF is ignored (RFC 8956, 3.6).
        values = tuple((operator, value & ~f.DONT_FRAGMENT) for operator, value in values)
        return _of_kinds(_KINDS6, {k for k in kinds if f.holds(values, k)})
    good = {df: {k for k in kinds if f.holds(values, k | df)} for df in (0, f.DONT_FRAGMENT)}
    if good[0] == good[f.DONT_FRAGMENT]:
        return _of_kinds(_KINDS, good[0])
    words = {0: "ip frag-off & 0x4000 == 0", f.DONT_FRAGMENT: "ip frag-off & 0x4000 != 0"}
    return [f"{words[df]} {x}".rstrip() for df, some in good.items() for x in _of_kinds(_KINDS, some)]


def _of_kinds(table, good):
    """Return matches for packets of these kinds: one for all of them, or one for each."""
    whole = table.get(frozenset(good))
    return whole or [x for kind in sorted(good) for x in table[frozenset({kind})]]
