# SPDX-License-Identifier: BSD-3-Clause
"""A trace or capture that runs while the test sends: the control protocol's streams."""

import base64
import json
import socket
import struct

# Keys of a request that are no filter. The rows of a request without a filter would also have the
# frames of a fence.
OPEN = {"count", "for_s", "points", "snap"}


class Watching:
    """One stream of rows. It runs from its creation until close(). A request with a filter is in force
    when the constructor returns.

    with Watching(dut, trace={"dst": "198.51.100.9"}) as watch: ...; watch.take(3)
    """

    def __init__(self, dut, **request):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(dut.socket)
        self.sock.sendall(json.dumps(request).encode() + b"\n")
        self.file = self.sock.makefile("rb")
        self.ended = False
        self.first = self.row()
        (want,) = request.values()
        if want.keys() - OPEN:
            # A forwarder may be within a round that began without the request.
            dut.fence(next(w for w in dut.wires.values() if w.tap != want.get("port")))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def row(self):
        """Return the next row. A refusal raises LookupError."""
        row = json.loads(self.file.readline())
        if "error" in row:
            raise LookupError(row["error"])
        self.ended = "end" in row
        return row

    def take(self, count):
        """Return the next `count` rows."""
        return [self.row() for _ in range(count)]

    def rest(self):
        """Return all rows to the end of the stream, and wait for this end. The last row has the sums."""
        rows = []
        while True:
            row = self.row()
            if self.ended:
                return rows
            rows.append(row)

    def octets(self, enough):
        """Return the file of a capture, until `enough` of its blocks have come or it ends."""
        data = base64.b64decode(self.first["pcapng"])
        while not enough(blocks(data)):
            row = self.row()
            if self.ended:
                break
            data += base64.b64decode(row.get("pcapng", ""))
        return data

    def close(self):
        """Close the connection without a message."""
        self.file.close()
        self.sock.close()


def options(octets):
    """Return {code: [values]} of a pcapng option list."""
    found = {}
    while octets:
        code, length = struct.unpack_from("=HH", octets)
        if code == 0:
            break
        found.setdefault(code, []).append(octets[4 : 4 + length])
        octets = octets[4 + length + (-length) % 4 :]
    return found


def blocks(data):
    """Return [(type, body)] of a pcapng file. Both lengths of every block must be equal."""
    found = []
    while data:
        kind, length = struct.unpack_from("=II", data)
        (again,) = struct.unpack_from("=I", data, length - 4)
        assert length == again and length % 4 == 0, f"block {len(found)}"
        found.append((kind, data[8 : length - 4]))
        data = data[length:]
    return found


def packets(found):
    """Return [(interface name, direction, octets, whole length, comment, time in s)] of blocks."""
    assert found[0][0] == 0x0A0D0D0A
    names = [options(body[8:])[2][0].decode() for kind, body in found if kind == 1]
    rows = []
    for kind, body in found:
        if kind != 6:
            continue
        ifc, high, low, kept, whole = struct.unpack_from("=IIIII", body)
        opts = options(body[20 + kept + (-kept) % 4 :])
        (flags,) = struct.unpack("=I", opts[2][0])
        comment = opts.get(1, [b""])[0].decode()
        direction = {1: "in", 2: "out", 0: None}[flags & 3]
        seconds = ((high << 32) + low) / 1e9
        rows.append((names[ifc], direction, body[20 : 20 + kept], whole, comment, seconds))
    return rows


def count_of(found):
    """Return the number of packets among blocks."""
    return sum(kind == 6 for kind, _ in found)
