# SPDX-License-Identifier: BSD-3-Clause
"""Routing daemons that are not FRR, as neighbors on the wire wan: BIRD 2 and GoBGP.

They run in the namespace of the far ends. `make peers` unpacks them in build/peers.
"""

import os
import signal
import socket
import struct

from lib import netns, procs
from lib.peers import libraries, program
from lib.wait import eventually

AS_OURS, AS_THEIRS = 64500, 65540


class Daemon:
    """A daemon beside the router `dut`. Its files are in a folder of its own."""

    PROGRAM = ""

    def __init__(self, dut):
        self.dut, self.process = dut, None
        self.wan = dut.wires["wan"]
        self.dir = f"{dut.dir}/{self.PROGRAM}"
        os.makedirs(self.dir, exist_ok=True)

    def command(self, *argv, check=True):
        """Run a program of the package in the daemon's namespace; return its output."""
        argv = [program(argv[0]), *argv[1:]]
        return netns.run(self.dut.far, [*libraries(), *argv], check=check)

    def run(self, *words):
        """Start the daemon."""
        argv = [*libraries(), program(self.PROGRAM), *words]
        self.process = procs.start(argv, self.dut.dir, f"{self.dir}/log", self.dut.far)

    def kill(self):
        """Kill the daemon, so that it sends no last message. The kernel closes its TCP connections."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)
        self.process = None

    def write(self, name, text):
        """Write a file of the daemon; return its path."""
        path = f"{self.dir}/{name}"
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

BIRD = """\
log stderr all;
router id {own4};
protocol device {{}}
protocol static s4 {{
	ipv4;
	include "routes4";
}}
protocol static s6 {{
	ipv6;
	include "routes6";
}}
"""
BIRD_BGP = """
protocol bgp b{family} {{
	local {own} as {theirs};
	neighbor {peer} as {ours};
	hold time 9;
	connect retry time 1;
	error wait time 1, 2;
	ipv{family} {{ import all; export where source = RTS_STATIC; next hop self; }};
}}
"""
BIRD_OSPF = """
protocol ospf v{version} o{family} {{
	ipv{family} {{ import all; export where source = RTS_STATIC; }};
	area 0 {{ interface "wan" {{ type broadcast; hello 1; dead 4; wait 4; }}; }};
}}
"""


class Bird(Daemon):
    """BIRD 2 with static routes that it announces by BGP or by OSPF."""

    PROGRAM = "bird"

    def start(self, routes, protocol="bgp"):
        """Start BIRD with {4: prefixes, 6: prefixes}."""
        text = BIRD.format(own4=self.wan.peer4)
        for family in (4, 6):
            own, peer = self.wan.peer(family), self.wan.own(family)
            words = {
                "family": family,
                "own": own,
                "peer": peer,
                "version": {4: 2, 6: 3}[family],
            }
            form = BIRD_BGP if protocol == "bgp" else BIRD_OSPF
            text += form.format(ours=AS_OURS, theirs=AS_THEIRS, **words)
        self._write_routes(routes)
        self.run("-f", "-c", self.write("bird.conf", text), "-s", f"{self.dir}/socket")
        eventually(
            lambda: "up" in self.birdc("show", "protocols", "s4"), 10, what="BIRD answers"
        )

    def announce(self, routes):
        """Announce these prefixes and no others."""
        self._write_routes(routes)
        self.birdc("configure")

    def birdc(self, *words):
        """Run a command of BIRD's client; return its output."""
        return self.command("birdc", "-s", f"{self.dir}/socket", *words)

    def _write_routes(self, routes):
        for family, prefixes in routes.items():
            lines = (f"route {prefix} blackhole;\n" for prefix in prefixes)
            self.write(f"routes{family}", "".join(lines))


GOBGP = """\
[global.config]
as = {theirs}
router-id = "{own4}"
"""
GOBGP_NEIGHBOR = """
[[neighbors]]
[neighbors.config]
neighbor-address = "{peer}"
peer-as = {ours}
[neighbors.timers.config]
hold-time = 9
keepalive-interval = 3
connect-retry = 1
idle-hold-time-after-reset = 1
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "ipv{family}-unicast"
"""


class Gobgp(Daemon):
    """GoBGP with routes that its client reads from a file of the form MRT."""

    PROGRAM = "gobgpd"

    def start(self, routes):
        """Start GoBGP with {4: prefixes, 6: prefixes}."""
        text = GOBGP.format(theirs=AS_THEIRS, own4=self.wan.peer4)
        for family in (4, 6):
            text += GOBGP_NEIGHBOR.format(
                ours=AS_OURS, peer=self.wan.own(family), family=family
            )
        path = self.write("gobgpd.toml", text)
        self.run("-f", path, "--api-hosts", "127.0.0.1:50051", "-l", "warn")
        eventually(lambda: "65540" in self.client("global"), 20, what="GoBGP answers")
        self.announce(routes)

    def announce(self, routes):
        """Announce these prefixes and no others."""
        for family, prefixes in routes.items():
            have = self._count(family)
            if have:
                self.client("global", "rib", "del", "all", "-a", f"ipv{family}")
            path = f"{self.dir}/table{family}"
            # The client of GoBGP ends before it has sent its whole queue: 3.10 loses the last
            # hundreds of prefixes of a file, 3.36 loses all. So its queue is short, and the file
            # has each prefix twice.
            # GoBGP 3.10 does not read the short form of MP_REACH_NLRI, and 3.36 reads no other form.
            whole = "version 3.10." in self.client("--version")
            hop = self.wan.peer(family)
            write_mrt(path, [*prefixes, *prefixes], self.wan.peer4, hop, whole)
            eventually(
                lambda f=family, p=path, n=len(prefixes): self._inject(f, p) >= n, 60, 0.2
            )

    def _inject(self, family, path):
        other = f"--no-ipv{10 - family}"
        words = ("--queue-size", "1", other, path)
        self.client("mrt", "inject", "global", *words, check=False)
        return self._count(family)

    def _count(self, family):
        """Return the number of prefixes that GoBGP has."""
        text = self.client("global", "rib", "-a", f"ipv{family}", "summary")
        number = text.partition("Destination: ")[2].partition(",")[0]
        return int(number) if number.isdigit() else 0

    def client(self, *words, check=True):
        """Run GoBGP's client; return its output."""
        return self.command("gobgp", *words, check=check)


def write_mrt(path, prefixes, peer4, hop, whole):
    """Write a table of one peer as TABLE_DUMP_V2 (RFC 6396, 4.3). With `whole`, MP_REACH_NLRI of IPv6
    is not in the short form of 4.3.4."""

    def record(kind, body):
        return struct.pack("!IHHI", 0, 13, kind, len(body)) + body

    def attribute(flags, kind, body):
        return struct.pack("!BBB", flags, kind, len(body)) + body

    six = ":" in hop
    family = socket.AF_INET6 if six else socket.AF_INET
    peer, packed_hop = socket.inet_aton(peer4), socket.inet_pton(family, hop)
    path_of_2 = struct.pack("!BBII", 2, 2, AS_THEIRS, AS_THEIRS + 1)
    common = attribute(0x40, 1, b"\0") + attribute(0x40, 2, path_of_2)
    index = peer + struct.pack("!HHB", 0, 1, 2) + peer + peer + struct.pack("!I", AS_THEIRS)
    with open(path, "wb") as file:
        file.write(record(1, index))
        for number, prefix in enumerate(prefixes):
            address, _, length = prefix.partition("/")
            nlri = (
                bytes([int(length)])
                + socket.inet_pton(family, address)[: (int(length) + 7) // 8]
            )
            if six:
                reach = bytes([16]) + packed_hop
                if whole:
                    reach = struct.pack("!HB", 2, 1) + reach + b"\0" + nlri
                attributes = common + attribute(0x80, 14, reach)
            else:
                attributes = common + attribute(0x40, 3, packed_hop)
            entry = struct.pack("!HIH", 0, 0, len(attributes)) + attributes
            body = struct.pack("!I", number) + nlri + struct.pack("!H", 1) + entry
            file.write(record(4 if six else 2, body))
