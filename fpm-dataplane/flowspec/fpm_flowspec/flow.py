# SPDX-License-Identifier: BSD-3-Clause
"""Flow specifications: components, values, order (RFC 8955, 4 and 5.1; RFC 8956, 3)."""

import functools
import ipaddress
import itertools
from dataclasses import dataclass

DESTINATION, SOURCE, PROTOCOL, PORT, DST_PORT, SRC_PORT = 1, 2, 3, 4, 5, 6
ICMP_TYPE, ICMP_CODE, TCP_FLAGS, LENGTH, DSCP, FRAGMENT, FLOW_LABEL = 7, 8, 9, 10, 11, 12, 13
NAMES = {
    DESTINATION: "destination",
    SOURCE: "source",
    PROTOCOL: "protocol",
    PORT: "port",
    DST_PORT: "destination-port",
    SRC_PORT: "source-port",
    ICMP_TYPE: "icmp-type",
    ICMP_CODE: "icmp-code",
    TCP_FLAGS: "tcp-flags",
    LENGTH: "packet-length",
    DSCP: "dscp",
    FRAGMENT: "fragment",
    FLOW_LABEL: "flow-label",
}
PREFIXES, BITMASKS = {DESTINATION, SOURCE}, {TCP_FLAGS, FRAGMENT}
# The largest value that a packet can have.
LARGEST = {
    PROTOCOL: 0xFF,
    PORT: 0xFFFF,
    DST_PORT: 0xFFFF,
    SRC_PORT: 0xFFFF,
    ICMP_TYPE: 0xFF,
    ICMP_CODE: 0xFF,
    LENGTH: 0xFFFF,
    DSCP: 0x3F,
    FLOW_LABEL: 0xFFFFF,
}
END, AND, NOT, MATCH = 0x80, 0x40, 0x02, 0x01
LESS, GREATER, EQUAL = 0x04, 0x02, 0x01
DONT_FRAGMENT, IS_FRAGMENT, FIRST, LAST = 0x01, 0x02, 0x04, 0x08


class Refused(Exception):
    """A flow specification that is not installed, with the reason."""


@dataclass(frozen=True)
class Prefix:
    """A prefix; its first `offset` bits are not compared (RFC 8956, 3.1)."""

    offset: int
    length: int
    value: int  # the address as a number, with zeros where nothing is compared
    bits: int  # 32 or 128

    @property
    def mask(self):
        """The bits that are compared."""
        return (1 << (self.bits - self.offset)) - (1 << (self.bits - self.length))

    def address(self):
        """Return the address of the prefix."""
        kind = ipaddress.IPv4Address if self.bits == 32 else ipaddress.IPv6Address
        return kind(self.value)

    def __str__(self):
        plain = f"{self.address()}/{self.length}"
        return f"{plain} offset {self.offset}" if self.offset else plain


@dataclass(frozen=True)
class Component:
    """One component: a Prefix, or a list of (operator octet, value)."""

    kind: int
    raw: bytes  # the octets behind the type
    value: object


@dataclass(frozen=True)
class Flow:
    """One flow specification."""

    family: int  # 4 or 6
    nlri: bytes
    components: tuple

    def get(self, kind):
        """Return the value of the component of a type; None: the flow has no such component."""
        return next((c.value for c in self.components if c.kind == kind), None)

    def __str__(self):
        return self.text

    @functools.cached_property
    def text(self):
        """The text, which each load of the table writes into the status file. It may have thousands of
        words."""
        return " ".join(_text(c) for c in self.components) or "all packets"


def parse(family, nlri):
    """Parse the octets of a flow specification. Raises Refused."""
    found = tuple(component for component, _ in components(family, nlri))
    return Flow(family, bytes(nlri), found)


def components(family, nlri, at=0):
    """Yield each Component from an offset on, and the offset behind it. Raises Refused."""
    last = 0
    while at < len(nlri):
        kind = nlri[at]
        if kind not in NAMES or (kind == FLOW_LABEL and family == 4):
            raise Refused(f"component type {kind} is not supported")
        if kind <= last:
            raise Refused("malformed: components are not in the order of their types")
        take = _prefix if kind in PREFIXES else _values
        try:
            value, after = take(family, nlri, at + 1)
        except IndexError as why:
            raise Refused(f"malformed: component {NAMES[kind]} ends too early") from why
        yield Component(kind, bytes(nlri[at + 1 : after]), value), after
        last, at = kind, after


def _prefix(family, nlri, at):
    bits, length, offset, at = (32 if family == 4 else 128), nlri[at], 0, at + 1
    if family == 6:
        offset, at = nlri[at], at + 1
    if length > bits or (offset >= length and (offset, length) != (0, 0)):
        raise Refused("malformed: a prefix has a wrong length")
    size = (length - offset + 7) // 8
    if at + size > len(nlri):
        raise IndexError
    pattern = int.from_bytes(nlri[at : at + size], "big")
    pattern >>= size * 8 - (length - offset)  # the padding behind the pattern has no meaning
    return Prefix(offset, length, pattern << (bits - length), bits), at + size


def _values(_family, nlri, at):
    found = []
    while True:
        operator, size = nlri[at], 1 << (nlri[at] >> 4 & 3)
        if at + 1 + size > len(nlri):
            raise IndexError
        found.append((operator, int.from_bytes(nlri[at + 1 : at + 1 + size], "big")))
        at += 1 + size
        if operator & END:
            return tuple(found), at


def groups(values):
    """Split the list of a component into groups of terms. The component holds if all terms of a
    group hold. The AND bit of the first term has no meaning."""
    found = []
    for number, (operator, value) in enumerate(values):
        if number == 0 or not operator & AND:
            found.append([])
        found[-1].append((operator, value))
    return found


# --- numbers: sets of values as sorted, disjoint ranges [(first, last)] --------------------------


def ranges(kind, values):
    """Return the values of packets for which a component with numbers holds."""
    return _merged(one for group in groups(values) for one in _all_of(group, LARGEST[kind]))


def _all_of(group, largest):
    """Return the numbers for which all terms of a group hold. A flow may have 1,300 terms, so the time
    must not grow with the square of their number."""
    low, high, without = 0, largest, set()
    for operator, value in group:
        sign = operator & (LESS | GREATER | EQUAL)
        if sign == 0:
            return []  # the term never holds
        if sign == LESS | GREATER:
            without.add(value)
        elif sign != LESS | GREATER | EQUAL:
            if not sign & GREATER:
                high = min(high, value if sign & EQUAL else value - 1)
            if not sign & LESS:
                low = max(low, value if sign & EQUAL else value + 1)
    found = []
    for value in sorted(x for x in without if low <= x <= high):
        found.append((low, value - 1))
        low = value + 1
    return [(a, b) for a, b in (*found, (low, high)) if a <= b]


def _merged(some):
    found = []
    for first, last in sorted(some):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def holds(values, bits):
    """Return true if a component with bitmasks holds for a packet with these bits (RFC 8955,
    4.2.1.2)."""

    def term(operator, value):
        seen = bits & value == value if operator & MATCH else bits & value != 0
        return seen != bool(operator & NOT)

    return any(all(term(*each) for each in group) for group in groups(values))


def held(values, width):
    """Return all numbers of `width` bits for which a component with bitmasks holds, as a number whose
    bit N stands for N. It is faster than holds() for each of them: a flow may have 1,900 terms."""
    everything, found = (1 << (1 << width)) - 1, 0
    having = [_having(bit, width) for bit in range(width)]
    for group in groups(values):
        have = everything
        for operator, value in group:
            wanted = [numbers for bit, numbers in enumerate(having) if value >> bit & 1]
            if operator & MATCH:
                seen = functools.reduce(int.__and__, wanted, everything if value >> width == 0 else 0)
            else:
                seen = functools.reduce(int.__or__, wanted, 0)
            have &= everything & ~seen if operator & NOT else seen
        found |= have
    return found


@functools.cache
def _having(bit, width):
    """Return the numbers of `width` bits that have a bit, in the form of held()."""
    half = 1 << bit  # half of the period of the pattern
    return sum(((1 << half) - 1) << at for at in range(half, 1 << width, 2 * half))


# --- order (RFC 8955, 5.1; RFC 8956, 4) ----------------------------------------------------------


def _before(a, b):
    """Return -1 if flow `a` comes before flow `b`, 1 if it comes after `b`, 0 if both are equal."""
    for x, y in itertools.zip_longest(a.components, b.components):
        if x is None or y is None:
            return 1 if x is None else -1
        if x.kind != y.kind:
            return -1 if x.kind < y.kind else 1
        order = _prefix_before(x.value, y.value) if x.kind in PREFIXES else _raw_before(x.raw, y.raw)
        if order:
            return order
    return 0


def _prefix_before(x, y):
    if x.offset != y.offset:
        return -1 if x.offset < y.offset else 1
    shift = x.bits - min(x.length, y.length)
    if x.value >> shift != y.value >> shift:
        return -1 if x.value >> shift < y.value >> shift else 1
    return (y.length > x.length) - (y.length < x.length)


def _raw_before(x, y):
    common = min(len(x), len(y))
    if x[:common] != y[:common]:
        return -1 if x[:common] < y[:common] else 1
    return (len(y) > len(x)) - (len(y) < len(x))


order = functools.cmp_to_key(_before)


# --- text ----------------------------------------------------------------------------------------

_SIGNS = {0: "never", 1: "=", 2: ">", 3: ">=", 4: "<", 5: "<=", 6: "!=", 7: "any"}


def _text(component):
    name = NAMES[component.kind]
    if component.kind in PREFIXES:
        return f"{name} {component.value}"
    sign = _bit_sign if component.kind in BITMASKS else lambda o: _SIGNS[o & 7]
    form = hex if component.kind in BITMASKS else str
    some = ("&".join(sign(o) + form(v) for o, v in g) for g in groups(component.value))
    return f"{name} {'|'.join(some)}"


def _bit_sign(operator):
    return ("!" if operator & NOT else "") + ("=" if operator & MATCH else "~")
