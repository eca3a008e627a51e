# SPDX-License-Identifier: BSD-3-Clause
"""The checksum of IPv4 headers."""


def checksum(header):
    """Return the ones' complement sum of a header. The checksum field counts with its value."""
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ip_of(data):
    """Return the IPv4 header of a frame."""
    return data[14 : 14 + (data[14] & 15) * 4]


def ident_for_zero(data):
    """Return the identification for which the right checksum is 0x0000."""
    header = bytearray(ip_of(data))
    header[4:6] = header[10:12] = b"\0\0"
    return (0xFFFF - checksum(header)).to_bytes(2, "big")
