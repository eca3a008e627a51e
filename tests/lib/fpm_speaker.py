# SPDX-License-Identifier: BSD-3-Clause
"""A zebra for tests: it connects to the dataplane's FPM port and sends the messages of the test.

    with FpmSpeaker("127.0.0.1", 2620, netns="r1") as zebra:
        zebra.nexthop(1, gateway="192.0.2.1", oif=2)
        zebra.nexthop(2, gateway="192.0.2.9", oif=3)
        zebra.group(3, {1: 1, 2: 4})
        zebra.route("198.51.100.0/24", nhid=3)
        zebra.route_del("198.51.100.0/24")

The functions build netlink messages (bytes), frame() puts any number of them into one FPM
frame; the methods of FpmSpeaker send one message in one frame, as zebra does. Nothing is
checked, so that a test can send malformed messages.
"""

import errno
import ipaddress
import select
import socket
import struct
import time

from lib import netns as namespaces
from lib.wait import PATIENCE

RTM_NEWROUTE, RTM_DELROUTE = 24, 25
RTM_NEWNEIGH = 28
RTM_NEWNEXTHOP, RTM_DELNEXTHOP = 104, 105

NLM_F_REQUEST, NLM_F_REPLACE, NLM_F_CREATE = 0x1, 0x100, 0x400
UPSERT = NLM_F_REQUEST | NLM_F_REPLACE | NLM_F_CREATE

AF_UNSPEC, AF_INET, AF_INET6, AF_MPLS = 0, 2, 10, 28

RTN_UNSPEC, RTN_UNICAST = 0, 1
RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT = 6, 7, 8

RT_TABLE_MAIN = 254
PROTO_KERNEL, PROTO_ZEBRA, PROTO_BGP, PROTO_STATIC = 2, 11, 186, 196

RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY = 1, 2, 4, 5, 6
RTA_METRICS, RTA_MULTIPATH, RTA_TABLE, RTA_VIA = 8, 9, 15, 18
RTA_NEWDST, RTA_ENCAP_TYPE, RTA_ENCAP, RTA_NH_ID = 19, 21, 22, 30
RTA_TTL_PROPAGATE = 26
LWTUNNEL_ENCAP_MPLS, MPLS_IPTUNNEL_DST, MPLS_IPTUNNEL_TTL = 1, 1, 2
RTAX_MTU = 2
NHA_ID, NHA_GROUP, NHA_BLACKHOLE, NHA_OIF, NHA_GATEWAY = 1, 2, 4, 5, 6
NHA_ENCAP_TYPE, NHA_ENCAP = 7, 8

RTNH_F_ONLINK = 4
# Offsets of the prefix length and of the destination in an FPM frame of one route message whose first
# attribute is RTA_DST.
PLEN_AT, DST_AT = 4 + 16 + 1, 4 + 16 + 12 + 4
DEFAULT_PID = 4242

# --- octets -------------------------------------------------------------------------------


def _pad(octets):
    return octets + bytes(-len(octets) % 4)


def attr(kind, payload=b""):
    """One netlink attribute, padded. An int is a u32."""
    if isinstance(payload, int):
        payload = struct.pack("=I", payload)
    return _pad(struct.pack("=HH", 4 + len(payload), kind) + payload)


def message(kind, payload, pid=DEFAULT_PID, flags=UPSERT):
    """One netlink message, padded."""
    header = struct.pack("=IHHII", 16 + len(payload), kind, flags, 0, pid)
    return _pad(header + payload)


def frame(*messages):
    """One FPM frame that holds all `messages`, at most 65531 octets of them."""
    payload = b"".join(messages)
    return struct.pack("!BBH", 1, 1, 4 + len(payload)) + payload


def _family(address):
    return AF_INET if address.version == 4 else AF_INET6


def _gateway(family, gateway):
    """Return RTA_GATEWAY, or RTA_VIA if the gateway has another family than the route (RFC 8950)."""
    address = ipaddress.ip_address(gateway)
    if _family(address) == family:
        return attr(RTA_GATEWAY, address.packed)
    return attr(RTA_VIA, struct.pack("=H", _family(address)) + address.packed)


def _multipath(family, hops):
    entries = b""
    for hop in hops:
        inner = b""
        if hop.get("gateway") is not None:
            inner = _gateway(family, hop["gateway"])
        flags = RTNH_F_ONLINK if hop.get("onlink") else 0
        entries += struct.pack(
            "=HBBi", 8 + len(inner), flags, hop.get("weight", 1) - 1, hop.get("oif", 0)
        )
        entries += inner
    return attr(RTA_MULTIPATH, entries)


def _route(kind, prefix, table, rtm_type, protocol, pid, flags=0, attributes=b""):
    net = ipaddress.ip_network(prefix)
    rtmsg = struct.pack(
        "=BBBBBBBBI",
        _family(net),
        net.prefixlen,
        0,
        0,
        table if table < 256 else 0,
        protocol,
        0,
        rtm_type,
        flags,
    )
    body = rtmsg + attr(RTA_DST, net.network_address.packed) + attr(RTA_PRIORITY, 20)
    if table > 255:
        body += attr(RTA_TABLE, table)
    return message(kind, body + attributes, pid)


def route_message(
    prefix,
    nhid=None,
    gateway=None,
    oif=None,
    multipath=None,
    onlink=False,
    mtu=None,
    table=RT_TABLE_MAIN,
    rtm_type=RTN_UNICAST,
    protocol=PROTO_BGP,
    pid=DEFAULT_PID,
):
    """RTM_NEWROUTE with a next hop id, or with the gateways and interfaces in the message.

    multipath is a list of dicts with the keys gateway, oif, weight (1..256), onlink.
    """
    family = _family(ipaddress.ip_network(prefix))
    more = b""
    if mtu is not None:
        more += attr(RTA_METRICS, attr(RTAX_MTU, mtu))
    if nhid is not None:
        more += attr(RTA_NH_ID, nhid)
    if multipath is not None:
        more += _multipath(family, multipath)
    if gateway is not None:
        more += _gateway(family, gateway)
    if oif is not None:
        more += attr(RTA_OIF, oif)
    flags = RTNH_F_ONLINK if onlink else 0
    return _route(RTM_NEWROUTE, prefix, table, rtm_type, protocol, pid, flags, more)


def route_del_message(prefix, table=RT_TABLE_MAIN, protocol=PROTO_BGP, pid=DEFAULT_PID):
    """RTM_DELROUTE with the key only, as zebra sends it."""
    return _route(RTM_DELROUTE, prefix, table, RTN_UNSPEC, protocol, pid)


def label_stack(labels):
    """Return label entries, outermost first, with S on the last, TC and TTL 0 (RFC 3032)."""
    last = len(labels) - 1
    return b"".join(
        struct.pack("!I", label << 12 | (n == last) << 8) for n, label in enumerate(labels)
    )


def _label_hop(hop):
    body = b""
    if hop.get("labels"):
        body += attr(RTA_NEWDST, label_stack(hop["labels"]))
    if hop.get("via"):
        address = ipaddress.ip_address(hop["via"])
        body += attr(RTA_VIA, struct.pack("=H", _family(address)) + address.packed)
    return body


def label_message(label, *hops, protocol=PROTO_STATIC, propagate=None, pid=DEFAULT_PID):
    """RTM_NEWROUTE of a label as zebra sends it; hops are dicts with the keys via, oif, labels
    (absent: the label comes off), weight. propagate: ttl-propagate, which zebra does not send."""
    rtmsg = struct.pack("=BBBBBBBBI", AF_MPLS, 20, 0, 0, RT_TABLE_MAIN, protocol, 0, 1, 0)
    body = attr(RTA_DST, label_stack([label]))
    if len(hops) == 1:
        body += _label_hop(hops[0]) + attr(RTA_OIF, hops[0]["oif"])
    else:
        entries = b""
        for hop in hops:
            inner = _label_hop(hop)
            entries += struct.pack(
                "=HBBi", 8 + len(inner), 0, hop.get("weight", 1) - 1, hop["oif"]
            )
            entries += inner
        body += attr(RTA_MULTIPATH, entries)
    if propagate is not None:
        body += attr(RTA_TTL_PROPAGATE, bytes([propagate]))
    return message(RTM_NEWROUTE, rtmsg + body, pid)


def label_del_message(label, pid=DEFAULT_PID):
    """RTM_DELROUTE of a label."""
    rtmsg = struct.pack("=BBBBBBBBI", AF_MPLS, 20, 0, 0, RT_TABLE_MAIN, 0, 0, 0, 0)
    return message(RTM_DELROUTE, rtmsg + attr(RTA_DST, label_stack([label])), pid)


def nexthop_message(
    nhid,
    gateway=None,
    oif=None,
    blackhole=False,
    onlink=False,
    labels=None,
    label_ttl=None,
    encap=None,
    pid=DEFAULT_PID,
):
    """RTM_NEWNEXTHOP of a single next hop or a blackhole. label_ttl: the N of `encap mpls LABELS ttl N`.
    encap: (type, attributes) of an encapsulation other than labels."""
    family = AF_INET
    body = attr(NHA_ID, nhid)
    if blackhole:
        body += attr(NHA_BLACKHOLE)
    if gateway is not None:
        address = ipaddress.ip_address(gateway)
        family = _family(address)
        body += attr(NHA_GATEWAY, address.packed)
    if oif is not None:
        body += attr(NHA_OIF, oif)
    if labels:
        body += attr(NHA_ENCAP_TYPE, struct.pack("=H", LWTUNNEL_ENCAP_MPLS))
        ttl = b"" if label_ttl is None else attr(MPLS_IPTUNNEL_TTL, bytes([label_ttl]))
        body += attr(NHA_ENCAP, attr(MPLS_IPTUNNEL_DST, label_stack(labels)) + ttl)
    if encap:
        body += attr(NHA_ENCAP_TYPE, struct.pack("=H", encap[0]))
        body += attr(NHA_ENCAP, encap[1])
    flags = RTNH_F_ONLINK if onlink else 0
    nhmsg = struct.pack("=BBBBI", family, 0, PROTO_ZEBRA, 0, flags)
    return message(RTM_NEWNEXTHOP, nhmsg + body, pid)


def group_message(nhid, members, pid=DEFAULT_PID):
    """RTM_NEWNEXTHOP of a group; members is {id: weight} or a list of ids, weight 1."""
    if not isinstance(members, dict):
        members = dict.fromkeys(members, 1)
    entries = b"".join(
        struct.pack("=IBBH", member, (weight - 1) & 255, (weight - 1) >> 8, 0)
        for member, weight in members.items()
    )
    nhmsg = struct.pack("=BBBBI", AF_UNSPEC, 0, PROTO_ZEBRA, 0, 0)
    return message(
        RTM_NEWNEXTHOP, nhmsg + attr(NHA_ID, nhid) + attr(NHA_GROUP, entries), pid
    )


def nexthop_del_message(nhid, pid=DEFAULT_PID):
    """RTM_DELNEXTHOP."""
    return message(RTM_DELNEXTHOP, bytes(8) + attr(NHA_ID, nhid), pid)


def route_block(first, count, nhid, delete=False, **words):
    """Frames of `count` adjacent prefixes from `first` on, one message each, as bytes.

    Built from one template: a million takes about a second. `words` as route_message().
    """
    net = ipaddress.ip_network(first)
    if delete:
        template = frame(route_del_message(first, **words))
    else:
        template = frame(route_message(first, nhid=nhid, **words))
    size = net.max_prefixlen // 8
    head, tail = template[:DST_AT], template[DST_AT + size :]
    address, step = int(net.network_address), 1 << (net.max_prefixlen - net.prefixlen)
    return b"".join(
        head + (address + n * step).to_bytes(size, "big") + tail for n in range(count)
    )


def table_stream(table, family, nhids, delete=False, pick=None, **words):
    """Return FPM frames, one message each, of a table of lab.routes. The routes have the next hop
    ids in turn, or the id of index pick(prefix)."""
    any_prefix, octets = ("0.0.0.0/0", 4) if family == 4 else ("::/0", 16)
    parts = []
    for nhid in nhids:
        if delete:
            one = frame(route_del_message(any_prefix, **words))
        else:
            one = frame(route_message(any_prefix, nhid=nhid, **words))
        parts.append((one[:PLEN_AT], one[PLEN_AT + 1 : DST_AT], one[DST_AT + octets :]))
    zeros = bytes(octets - 8 if family == 6 else 0)
    size = octets - len(zeros)
    out = []
    for n, prefix in enumerate(table):
        head, middle, tail = parts[pick(prefix) if pick else n % len(parts)]
        address = (prefix >> 8).to_bytes(size, "big") + zeros
        out.append(b"%b%c%b%b%b" % (head, prefix & 255, middle, address, tail))
    return b"".join(out)


# --- the connection -----------------------------------------------------------------------


class FpmSpeaker:
    """One FPM connection. Connects on connect() or on entering a with block."""

    def __init__(self, host="127.0.0.1", port=2620, netns=None, pid=DEFAULT_PID):
        self.host, self.port, self.netns, self.pid = host, port, netns, pid
        self.socket = None

    def connect(self, timeout=10 * PATIENCE):
        """Connect, in the namespace if the test named one. Retry while the dataplane refuses."""
        end = time.monotonic() + timeout
        while True:
            try:
                self.socket = self._open(timeout)
                return self
            except OSError as error:
                if error.errno != errno.ECONNREFUSED or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def _open(self, timeout):
        if self.netns is None:
            return socket.create_connection((self.host, self.port), timeout)
        with namespaces.entered(self.netns):
            return socket.create_connection((self.host, self.port), timeout)

    def close(self):
        """Close the connection. The routes stay in force."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def __enter__(self):
        return self if self.socket is not None else self.connect()

    def __exit__(self, *exc):
        self.close()

    def wait_closed(self, timeout=10 * PATIENCE):
        """Return True if the dataplane closes the connection within `timeout` seconds."""
        ready, _, _ = select.select([self.socket], [], [], timeout)
        if not ready:
            return False
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def send_raw(self, octets):
        """Send any octets without a change."""
        self.socket.sendall(octets)

    def send(self, *messages):
        """Send all `messages` in one frame."""
        self.send_raw(frame(*messages))

    def route(self, prefix, **words):
        """Add or replace a route; words as route_message()."""
        self.send(route_message(prefix, pid=self.pid, **words))

    def route_del(self, prefix, **words):
        """Delete a route; words as route_del_message()."""
        self.send(route_del_message(prefix, pid=self.pid, **words))

    def replace(self, prefix, **words):
        """Replace a route as FRR 8.4 does: delete and add in one frame."""
        table = words.get("table", RT_TABLE_MAIN)
        self.send(
            route_del_message(prefix, table=table, pid=self.pid),
            route_message(prefix, pid=self.pid, **words),
        )

    def nexthop(self, nhid, **words):
        """Add or change a single next hop; words as nexthop_message()."""
        self.send(nexthop_message(nhid, pid=self.pid, **words))

    def group(self, nhid, members):
        """Add or change a group: {id: weight}, or a list of ids of weight 1."""
        self.send(group_message(nhid, members, pid=self.pid))

    def nexthop_del(self, nhid):
        """Delete a next hop or a group."""
        self.send(nexthop_del_message(nhid, pid=self.pid))

    def routes(self, first, count, nhid, **words):
        """Add `count` adjacent prefixes from `first` on, as fast as the socket takes them."""
        self.send_raw(route_block(first, count, nhid, pid=self.pid, **words))

    def routes_del(self, first, count, **words):
        """Delete what routes() added."""
        self.send_raw(route_block(first, count, None, delete=True, pid=self.pid, **words))
