# SPDX-License-Identifier: BSD-3-Clause
"""Random malformed FPM messages and frames. The same seed gives the same data."""

from lib import fpm_speaker as fpm

NET = "198.51.100.0/24"


def damaged(rng, octets, most=4):
    """Return `octets` with at most `most` of them changed."""
    octets = bytearray(octets)
    for _ in range(rng.randrange(most + 1)):
        octets[rng.randrange(len(octets))] = rng.randrange(256)
    return bytes(octets)


def fpm_session(dut, rng, octets=20000):
    """Send FPM frames with right headers and damaged or random messages inside."""
    good = [
        fpm.route_message(NET, nhid=3),
        fpm.route_message("2001:db8:f000::/48", nhid=4),
        fpm.route_message(NET, gateway="192.0.2.66", oif=2),
        fpm.route_message(NET, multipath=[{"gateway": "192.0.2.66", "oif": 2}, {"oif": 3}]),
        fpm.nexthop_message(3, gateway="192.0.2.66", oif=2),
        fpm.nexthop_message(5, gateway="2001:db8:1::2", oif=2),
        fpm.group_message(4, {3: 1, 5: 2}),
        fpm.nexthop_del_message(3),
        fpm.route_del_message(NET),
    ]
    sent = 0
    while sent < octets:
        if rng.random() < 0.1:
            data = fpm.frame(rng.randbytes(rng.randrange(200)))
        else:
            data = fpm.frame(damaged(rng, rng.choice(good), 3))
        try:
            dut.zebra.raw(data)
        except OSError:
            return  # the daemon may close the connection
        sent += len(data)


def frames(rng, wire, count):
    """Yield frames of a broken or hostile neighbor: random octets, damaged packets, and packets
    that are cut short."""
    eth4 = bytes.fromhex(
        wire.port_mac.replace(":", "") + wire.mac.replace(":", "") + "0800"
    )
    eth6 = eth4[:12] + b"\x86\xdd"
    good = [
        bytes(wire.probe("198.51.100.9", size=100)),
        bytes(wire.probe("2001:db8:f000::9", size=120)),
        bytes(wire.probe(wire.ip4)),
        bytes(wire.probe(wire.ip6)),
        bytes(wire.probe("198.51.100.9", size=1500, flags="MF")),
    ]
    for _ in range(count):
        kind = rng.random()
        if kind < 0.2:
            yield rng.randbytes(rng.randrange(14, 200))
        elif kind < 0.45:
            yield rng.choice((eth4 + b"\x45", eth6 + b"\x60")) + rng.randbytes(
                rng.randrange(0, 100)
            )
        elif kind < 0.75:
            data = damaged(rng, rng.choice(good), 6)
            yield eth4[:12] + data[12:] if rng.random() < 0.8 else data
        elif kind < 0.95:
            data = rng.choice(good)
            yield data[: rng.randrange(14, len(data) + 1)]
        else:
            yield extension_headers(rng, eth6)


def extension_headers(rng, eth6):
    """Return an IPv6 packet with a random sequence of extension headers."""
    body = b""
    kinds = [0, 43, 44, 51, 60, 135, 59, 58, 17, 6]
    first = rng.choice(kinds)
    for _ in range(rng.randrange(1, 12)):
        body += bytes([rng.choice(kinds), rng.choice((0, 0, 1, 255))]) + rng.randbytes(6)
    source = bytes.fromhex("20010db8000000000000000000000002")
    target = bytes.fromhex("20010db8f00000000000000000000009")
    head = (
        b"\x60\0\0\0" + len(body).to_bytes(2, "big") + bytes([first, rng.choice((1, 64))])
    )
    return eth6 + head + source + target + body
