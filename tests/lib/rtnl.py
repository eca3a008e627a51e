# SPDX-License-Identifier: BSD-3-Clause
"""Read links, addresses and neighbors of a namespace by rtnetlink(7). A process of `ip` would take
ten times the CPU time, and fixtures read them before every test."""

import errno
import ipaddress
import os
import socket
import struct
from typing import NamedTuple

from lib import netns

NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300  # linux/netlink.h
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_GETLINK, RTM_GETADDR, RTM_GETNEIGH = 18, 22, 30  # linux/rtnetlink.h
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU = 1, 3, 4  # linux/if_link.h
IFA_ADDRESS, IFA_LOCAL = 1, 2  # linux/if_addr.h
NDA_DST, NDA_LLADDR = 1, 2  # linux/neighbour.h
NUD_NOARP, NUD_PERMANENT = 0x40, 0x80
IFF_UP, IFF_LOWER_UP = 0x1, 0x10000  # linux/if.h


class Link(NamedTuple):
    """An interface."""

    name: str
    index: int
    up: bool
    running: bool
    mtu: int
    mac: str


class Address(NamedTuple):
    """An address of an interface. `text` is as `ip addr del` takes it."""

    index: int
    local: str
    text: str
    is_global: bool


class Neighbor(NamedTuple):
    """An entry of the neighbor table. `state` has one of the bits NUD_*, or is 0."""

    index: int
    address: str
    state: int
    mac: str


def _dump(name, kind, head):
    """Yield the messages of a dump, without their netlink headers."""
    with netns.open_socket(name, socket.AF_NETLINK, socket.SOCK_RAW) as sock:
        size = 16 + len(head)
        sock.send(struct.pack("=IHHII", size, kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + head)
        while True:
            data, at = sock.recv(1 << 17), 0
            while at < len(data):
                size, what = struct.unpack_from("=IH", data, at)
                if what == NLMSG_DONE:
                    return
                if what == NLMSG_ERROR:
                    (code,) = struct.unpack_from("=i", data, at + 16)
                    number = -code or errno.EPROTO  # a dump has no acknowledgement
                    raise OSError(number, os.strerror(number))
                yield data[at + 16 : at + size]
                at += (size + 3) & ~3


def _attributes(message, at):
    """Return {type: octets} of the attributes that begin at `at`."""
    found = {}
    while at + 4 <= len(message):
        size, kind = struct.unpack_from("=HH", message, at)
        found[kind & 0x3FFF] = message[at + 4 : at + size]
        at += (size + 3) & ~3
    return found


def links(name):
    """Return {name: Link} of a namespace."""
    found = {}
    for message in _dump(name, RTM_GETLINK, bytes(16)):
        index, flags = struct.unpack_from("=iI", message, 4)
        has = _attributes(message, 16)
        ifname = has[IFLA_IFNAME].rstrip(b"\0").decode()
        (mtu,) = struct.unpack("=I", has[IFLA_MTU])
        mac = has.get(IFLA_ADDRESS, b"").hex(":")
        found[ifname] = Link(ifname, index, bool(flags & IFF_UP), bool(flags & IFF_LOWER_UP), mtu, mac)
    return found


def addresses(name):
    """Return the addresses of all interfaces of a namespace."""
    found = []
    for message in _dump(name, RTM_GETADDR, bytes(8)):
        length, scope, index = struct.unpack_from("=BxBI", message, 1)
        has = _attributes(message, 8)
        far = ipaddress.ip_address(has[IFA_ADDRESS])
        local = ipaddress.ip_address(has.get(IFA_LOCAL, has[IFA_ADDRESS]))
        peer = f" peer {far}" if far != local else ""
        found.append(Address(index, str(local), f"{local}{peer}/{length}", scope == 0))
    return found


def neighbors(name):
    """Return the neighbors of all interfaces of a namespace, including static neighbors."""
    found = []
    for message in _dump(name, RTM_GETNEIGH, bytes(12)):
        index, state = struct.unpack_from("=iH", message, 4)
        has = _attributes(message, 12)
        address = str(ipaddress.ip_address(has[NDA_DST])) if NDA_DST in has else ""
        found.append(Neighbor(index, address, state, has.get(NDA_LLADDR, b"").hex(":")))
    return found
