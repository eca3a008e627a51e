# SPDX-License-Identifier: BSD-3-Clause
"""Account for the packets that did not arrive: read all counters on their path, in the daemon, the
kernel and the sockets of the tests, and the CPU time that the daemon's threads got."""

import os
import struct

from lib import ledger
from wire import SOL_PACKET

PACKET_STATISTICS = 6  # linux/if_packet.h: packets, and drops among them, since the last read


class Whereabouts:
    """Read counters before and after the traffic of a test: create the object before, ask it after.

    where = Whereabouts(dut); ...; where.all_accounted_for(stream.lost(wan))
    """

    def __init__(self, dut):
        self.dut = dut
        self._ears()
        self.room, self.state = self._room(), self._state()

    def _ends(self):
        for name in self.dut.names:
            yield self.dut.dp, "p-" + name, "p-" + name
            yield self.dut.far, name, name

    def _ears(self):
        """Return {socket of this test: number of frames for which it had no room}. The kernel reports
        each frame once."""
        drops = {}
        for name, wire in self.dut.wires.items():
            drops[f"test's socket {name}"] = struct.unpack(
                "II", wire.sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
            )[1]
        return drops

    def _room(self):
        return ledger.read(self.dut.daemon, self._ends())

    def _state(self):
        """Return counters that may explain a loss. None of them permits a loss."""
        seen = {f"{kind} {name}": v for (kind, name), v in self.dut.daemon.counters().items()}
        for row in self.dut.control.ask("ports"):
            for key in ("rx_packets", "tx_packets", "rx_errors"):
                seen[f"{row['name']} {key}"] = row[key]
        with open("/proc/net/softnet_stat", encoding="ascii") as file:
            for n, line in enumerate(file):
                _, dropped, squeezed = (int(word, 16) for word in line.split()[:3])
                seen |= {f"cpu{n} backlog full": dropped, f"cpu{n} squeezed": squeezed}
        tasks = f"/proc/{self.dut.daemon.pid()}/task"
        for tid in os.listdir(tasks):
            with open(f"{tasks}/{tid}/comm", encoding="ascii") as file:
                name = f"{file.read().strip()} {tid}"
            with open(f"{tasks}/{tid}/schedstat", encoding="ascii") as file:
                ran, waited, _ = (int(word) // 1_000_000 for word in file.read().split())
            seen |= {f"{name} ran ms": ran, f"{name} waited ms": waited}
        return seen

    def all_accounted_for(self, lost):
        """Assert that the test lost at most as many packets as the counters report for lack of
        room. If not, print all counters."""
        room = ledger.grown(self.room, self._room())
        room |= {name: n for name, n in self._ears().items() if n}
        if len(lost) <= sum(room.values()):
            return
        told = ledger.grown(self.state, self._state())
        rows = [f"lost {len(lost)}: {lost[:20]}{' ...' * (len(lost) > 20)}"]
        rows += [f"no room: {name} {n}" for name, n in room.items()]
        rows += [f"{name} {n}" for name, n in told.items()]
        rows += [str(row) for row in self.dut.control.ask("cycles")]
        raise AssertionError("\n".join(rows))
