# SPDX-License-Identifier: BSD-3-Clause
"""A made-up Internet: its prefixes have the number and the lengths of a full table. Equal seeds
give equal tables.

A prefix is one integer, because there are millions of prefixes: address << 8 | length. The
address has 32 bits for IPv4, and is the upper 64 bits for IPv6. Addresses are drawn uniformly,
which is harder on a trie than the clusters of the real table.
"""

import ipaddress
import random
import struct

# Share of each prefix length, after public statistics of the global tables.
LENGTHS4 = {24: 600, 23: 95, 22: 105, 21: 48, 20: 42, 19: 25, 18: 14, 17: 8, 16: 13, 15: 2}
LENGTHS4 |= {14: 1, 13: 1}
LENGTHS6 = {48: 450, 32: 140, 44: 90, 40: 80, 36: 50, 46: 45, 47: 35, 45: 20, 33: 20}
LENGTHS6 |= {42: 20, 34: 15, 35: 15, 38: 10, 29: 10}

# A whole /8 is left out if a part of it is special (RFC 6890) or the lab uses it.
_NOT4 = {0, 10, 100, 127, 169, 172, 192, 198, 203}
_USABLE4 = [0 < n < 224 and n not in _NOT4 for n in range(256)]
# The registries' blocks, 2001::/16 (documentation, Teredo) left out.
_BLOCKS6 = [block << 52 for block in (0x240, 0x260, 0x280, 0x2A0, 0x2C0)]

_MASK4 = [(1 << 32) - (1 << (32 - n)) for n in range(33)]
_MASK6 = [(1 << 64) - (1 << (64 - n)) for n in range(65)]


def table4(n, seed=1):
    """`n` distinct IPv4 prefixes as integers, in random order."""
    rnd = random.Random(f"ipv4 {seed}")
    lengths, weights = list(LENGTHS4), list(LENGTHS4.values())
    found = {}
    while len(found) < n:
        k = (n - len(found)) * 9 // 8 + 16
        draw = struct.unpack(f"{k}I", rnd.randbytes(4 * k))
        for addr, plen in zip(draw, rnd.choices(lengths, weights, k=k)):
            if _USABLE4[addr >> 24]:
                found[(addr & _MASK4[plen]) << 8 | plen] = None
    return list(found)[:n]


def table6(n, seed=1):
    """`n` distinct IPv6 prefixes as integers, in random order."""
    rnd = random.Random(f"ipv6 {seed}")
    lengths, weights = list(LENGTHS6), list(LENGTHS6.values())
    low52 = (1 << 52) - 1
    found = {}
    while len(found) < n:
        k = (n - len(found)) * 9 // 8 + 16
        draw = struct.unpack(f"{k}Q", rnd.randbytes(8 * k))
        blocks = rnd.choices(_BLOCKS6, k=k)
        for addr, block, plen in zip(draw, blocks, rnd.choices(lengths, weights, k=k)):
            found[((block | addr & low52) & _MASK6[plen]) << 8 | plen] = None
    return list(found)[:n]


def text(prefix, family):
    """Return the text form of a prefix."""
    addr, plen = prefix >> 8, prefix & 255
    if family == 4:
        return f"{ipaddress.IPv4Address(addr)}/{plen}"
    return f"{ipaddress.IPv6Address(addr << 64)}/{plen}"


def parse(words):
    """Return (integer, family) of a prefix in text form; the inverse of text()."""
    net = ipaddress.ip_network(words)
    addr = int(net.network_address)
    if net.version == 6:
        if net.prefixlen > 64:
            raise ValueError(f"{words}: longer than /64")
        addr >>= 64
    return addr << 8 | net.prefixlen, net.version


def host(prefix, family, rnd):
    """Return a random address in the prefix, neither the first nor the last."""
    addr, plen = prefix >> 8, prefix & 255
    if family == 4:
        size = 1 << (32 - plen)
        return str(ipaddress.IPv4Address(addr + rnd.randrange(1, max(size - 1, 2))))
    return str(ipaddress.IPv6Address((addr << 64) + rnd.randrange(1, 1 << 16)))


def lonely(table, family, n, rnd):
    """Return `n` prefixes of the table that no other covers and that cover no other.

    The longest prefixes of the table cover no other, so only covers are searched.
    """
    longest, masks = (24, _MASK4) if family == 4 else (48, _MASK6)
    known = set(table)
    found = []
    for prefix in (rnd.choice(table) for _ in range(len(table))):
        if len(found) == n:
            break
        addr, plen = prefix >> 8, prefix & 255
        if plen != longest or prefix in found:
            continue
        if not any((addr & masks[m]) << 8 | m in known for m in range(8, plen)):
            found.append(prefix)
    return found
