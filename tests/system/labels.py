# SPDX-License-Identifier: BSD-3-Clause
"""A router that takes MPLS labels, and the frames of its tests. A kernel without MPLS reports no
setting of an interface, so the configuration file turns labels on."""

from scapy.contrib.mpls import MPLS
from scapy.layers.l2 import Ether

from lib.wait import eventually
from router import Router

TAKES_LABELS = ("fpm:\n", "mpls:\n  input: all\nfpm:\n")


class LabelRouter(Router):
    """A Router to which zebra may announce labels."""

    def hop(self, wire, labels=(), via=None):
        """Return a next hop of a label: the neighbor on a wire, with these labels to push."""
        return {"via": via or wire.peer4, "oif": self.ifindex(wire), "labels": list(labels)}

    def label(self, label, *hops, **more):
        """Announce the route of a label. Return when it is in force."""
        self.zebra.send(self.zebra.label_message(label, *hops, **more))
        want = [h.get("labels") or [] for h in hops]

        def there():
            row = self.label_row(label)
            return row and sorted(h["labels"] for h in row["nexthops"]) == sorted(want)

        eventually(there, 5, 0.005, f"label {label}")
        self.label_row(label)

    def label_row(self, label):
        """Return the row of a label, or None."""
        return next((r for r in self.control.ask("labels") if r["label"] == label), None)

    def only_encap(self):
        """Return the only entry of labels. Entries of earlier tests end when no forwarder reads
        them any longer."""
        one = lambda: rows if len(rows := self.control.ask("encaps")) == 1 else None  # noqa: E731
        return eventually(one, 5, 0.02, "one entry of labels")[0]

    def unlabel(self, *labels):
        """Withdraw the routes of labels."""
        self.zebra.drop_label(*labels)
        eventually(lambda: not any(map(self.label_row, labels)), 5, 0.005)
        self.label_row(0)  # rib answers again after its round: see Router.in_force()


# As many labels as FRR sends. A packet that gets more than fourteen takes the slow path.
DEEP = [1048575 - 65537 * n for n in range(16)]


class Paths:
    """Four paths of packets that leave by wan: a label is swapped, a label is popped, a label is replaced
    by 16 labels, and a route pushes a label. The packets of a stream use the paths in turn."""

    def __init__(self, dut, net, host):
        self.dut, self.net, self.host = dut, net, host
        self.wan = dut.wires["wan"]

    def announce(self):
        """Let zebra announce the labels and the route."""
        dut, wan = self.dut, self.wan
        dut.label(100, dut.hop(wan, [200, 201]))
        dut.label(101, dut.hop(wan))
        dut.label(116, dut.hop(wan, DEEP))
        dut.route(self.net, nhid=dut.zebra.hop(wan.peer4, wan, labels=[300]))

    def stream(self, wire, rate=1000):
        """Send the packets, numbered."""
        dress = (
            lambda probe: with_labels(probe, 100),
            lambda probe: with_labels(probe, 101),
            lambda probe: probe,
            lambda probe: with_labels(probe, 116),
        )
        return self.dut.stream(wire, self.host, rate=rate, dress=dress)

    def are_right(self, stream):
        """Assert that each packet that left did so once, by wan, with the labels of its path."""
        others = [w for w in self.dut.wires.values() if w not in (self.wan, stream.wire)]
        assert stream.arrived(*others) == {}
        assert set(stream.arrived(self.wan).values()) == {1}
        for data in self.wan.got(stream.mark):
            at = data.index(stream.mark) + len(stream.mark)
            number = int.from_bytes(data[at : at + 4], "big")
            want = [[200, 201], [], [300], DEEP][number % 4]
            assert [e[0] for e in entries_of(data)] == want, (number, data.hex())


def with_labels(probe, *entries):
    """Return a probe behind label entries: a label, or (label, TTL), or (label, TTL, TC)."""
    packet = probe.payload
    for n, entry in enumerate(reversed(entries)):
        label, ttl, tc = (*entry, 64, 0)[:3] if isinstance(entry, tuple) else (entry, 64, 0)
        if isinstance(entry, tuple) and len(entry) == 2:
            tc = 0
        packet = MPLS(label=label, cos=tc, s=int(n == 0), ttl=ttl) / packet
    return Ether(src=probe[Ether].src, dst=probe[Ether].dst, type=0x8847) / packet


def entries_of(frame):
    """Return the label entries of a frame as (label, TTL, TC, S), outermost first."""
    found, data = [], bytes(frame)
    if data[12:14] != b"\x88\x47":
        return found
    at = 14
    while True:
        word = int.from_bytes(data[at : at + 4], "big")
        found.append((word >> 12, word & 255, word >> 9 & 7, word >> 8 & 1))
        at += 4
        if found[-1][3]:
            return found


def behind(frame):
    """Return the octets behind the labels of a frame."""
    data = bytes(frame)
    return data[14 + 4 * len(entries_of(frame)) :]
