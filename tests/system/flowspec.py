# SPDX-License-Identifier: BSD-3-Clause
"""A router with FRR, fpm-flowspec and ExaBGP, and GoBGP on the wire wan, which announces routes and
flow specifications."""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import struct

from foreign import AS_OURS, AS_THEIRS, GOBGP, Daemon
from lab import bgp_wire
from lib import netns, procs
from lib.flowspec import command
from lib.wait import eventually

TABLE = "inet flowspec"
FRR = """\
fpm address 127.0.0.1
bgp route-map delay-timer 0
router bgp {ours}
 bgp router-id {own4}
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 no bgp network import-check
 neighbor {peer4} remote-as {theirs}
 neighbor {peer4} timers 3 9
 neighbor {peer4} enforce-first-as
 neighbor {peer4} timers connect 1
 neighbor {peer6} remote-as {theirs}
 neighbor {peer6} timers 3 9
 neighbor {peer6} enforce-first-as
 neighbor {peer6} timers connect 1
 neighbor 127.0.0.2 remote-as {ours}
 neighbor 127.0.0.2 passive
 neighbor 127.0.0.2 update-source lo
 address-family ipv4 unicast
  neighbor {peer4} activate
 exit-address-family
 address-family ipv6 unicast
  neighbor {peer6} activate
 exit-address-family
 address-family ipv4 flowspec
  local-install lo
  neighbor {peer4} activate
  neighbor 127.0.0.2 activate
  neighbor 127.0.0.2 route-reflector-client
 exit-address-family
 address-family ipv6 flowspec
  local-install lo
  neighbor {peer4} activate
  neighbor 127.0.0.2 activate
  neighbor 127.0.0.2 route-reflector-client
 exit-address-family
exit
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
"""
GOBGP_FAMILY = """\
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "{}"
"""


class Announcer(Daemon):
    """GoBGP. Its client announces routes and flow specifications."""

    PROGRAM = "gobgpd"

    def start(self):
        """Start GoBGP without routes."""
        text = GOBGP.format(theirs=AS_THEIRS, own4=self.wan.peer4)
        for family, names in ((4, ("ipv4-unicast", "ipv4-flowspec", "ipv6-flowspec")), (6, ("ipv6-unicast",))):
            text += GOBGP_NEIGHBOR.format(ours=AS_OURS, peer=self.wan.own(family))
            text += "".join(map(GOBGP_FAMILY.format, names))
        path = self.write("gobgpd.toml", text)
        self.run("-f", path, "--api-hosts", "127.0.0.1:50051", "-l", "warn")
        eventually(lambda: str(AS_THEIRS) in self._client("global", check=False), 20, what="GoBGP answers")

    def route(self, prefix, verb="add", via=None):
        """Announce a unicast route, or withdraw it with the verb "del"."""
        family = 6 if ":" in prefix else 4
        via = via or self.wan.peer(family)
        self._client("global", "rib", verb, "-a", f"ipv{family}", prefix, "nexthop", via)

    def flow(self, match, then="discard", family=4):
        """Announce a flow specification in the words of GoBGP."""
        words = [*match.split(), "then", *then.split()]
        self._client("global", "rib", "add", "-a", f"ipv{family}-flowspec", "match", *words)

    def withdraw(self, match, family=4):
        """Withdraw a flow specification."""
        self._client("global", "rib", "del", "-a", f"ipv{family}-flowspec", "match", *match.split())

    def nothing(self):
        """Withdraw all flow specifications."""
        for family in (4, 6):
            self._client("global", "rib", "del", "all", "-a", f"ipv{family}-flowspec")

    def _client(self, *words, check=True):
        return self.command("gobgp", *words, check=check)


class Speaker:
    """A peer on the wire wan that announces octets for IPv4: paths and flow specifications that no daemon
    makes. With a hold time of 0 BGP needs no keepalives, so it sends nothing else."""

    FORM = (
        "neighbor {0} remote-as {1}",
        "neighbor {0} passive",
        "address-family ipv4 flowspec",
        "neighbor {0} activate",
    )

    def __init__(self, dut, frr, asn):
        self.dut, self.frr, self.asn, self.sock = dut, frr, asn, None
        self.address = str(ipaddress.ip_address(dut.wires["wan"].peer4) + 8)

    def connect(self, *lines):
        """Configure the neighbor in FRR, with additional lines, and open the session."""
        lines = [line.format(self.address, self.asn) for line in (*self.FORM[:2], *lines, *self.FORM[2:])]
        netns.ip_batch([f"addr replace {self.address}/32 dev wan"], self.dut.far)
        self.frr.configure(f"router bgp {AS_OURS}", *lines)
        self.sock = netns.open_socket(self.dut.far, socket.AF_INET, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.bind((self.address, 0))
        self.sock.connect((self.dut.wires["wan"].ip4, 179))
        self.sock.sendall(bgp_wire.open_message(self.asn, 0, self.address, ((1, 133),)))
        self.sock.sendall(bgp_wire.message(bgp_wire.KEEPALIVE))
        eventually(lambda: self.frr.bgp_state(self.address) == "Established", 20, what="the session is up")

    def flow(self, nlri, path):
        """Announce a flow specification that drops, with an AS path of segments (type, AS numbers)."""
        segments = b"".join(struct.pack(f"!BB{len(x)}I", kind, len(x), *x) for kind, x in path)
        reach = bytes.fromhex("0001850000") + _with_length(nlri)
        attributes = b"\x90\x0e" + struct.pack("!H", len(reach)) + reach + bytes.fromhex("400101004005040000007f")
        attributes += bytes([0x40, 2, len(segments)]) + segments + bytes.fromhex("c010088006000000000000")
        self._update(attributes)

    def withdraw(self, nlri):
        """Withdraw a flow specification."""
        unreach = bytes.fromhex("000185") + _with_length(nlri)
        self._update(b"\x90\x0f" + struct.pack("!H", len(unreach)) + unreach)

    def _update(self, attributes):
        body = struct.pack("!HH", 0, len(attributes)) + attributes
        self.sock.sendall(bgp_wire.message(bgp_wire.UPDATE, body))

    def close(self):
        """End the session, and remove the neighbor from FRR."""
        if self.sock is not None:
            self.sock.close()
        self.frr.configure(f"router bgp {AS_OURS}", f"no neighbor {self.address}")


def _with_length(nlri):
    return (bytes([len(nlri)]) if len(nlri) < 240 else struct.pack("!H", 0xF000 | len(nlri))) + nlri


class Helper:
    """fpm-flowspec and ExaBGP, in the control namespace of a router."""

    def __init__(self, dut, frr):
        self.dut, self.frr, self.process = dut, frr, None
        self.folder = f"{dut.dir}/flowspec"
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)  # in the place of systemd
        self.manager.setblocking(False)
        self.notifications = f"{dut.dir}/flowspec.notify"

    def start(self, *options):
        """Start fpm-flowspec, which starts ExaBGP, and wait until its session is up."""
        if not os.path.exists(self.notifications):
            self.manager.bind(self.notifications)
        argv = ["env", f"NOTIFY_SOCKET={self.notifications}"]
        argv += command(self.frr, self.folder, "--recheck", "1", *options)
        self.process = procs.start(argv, self.dut.dir, f"{self.dut.dir}/flowspec.log", self.dut.ctl)
        eventually(lambda: self.sessions() == {"127.0.0.1": "up"}, 40, 0.1, "the session of ExaBGP is up")

    def end(self, number=signal.SIGTERM):
        """End fpm-flowspec by a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(20)
        self.process = None

    def notified(self):
        """Return the notifications to the service manager since the last call."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.manager.recv(100).decode())
        return found

    def pids(self, word):
        """Return the ids of processes whose command line has a word."""
        found = []
        for pid in procs.marked(self.dut.dir):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found += [pid] if word.encode() in file.read().split(b"\0") else []
            except OSError:
                pass
        return found

    def status(self):
        """Return the content of the status file."""
        with open(f"{self.folder}/status.json", encoding="utf-8") as file:
            return json.load(file)

    def log(self):
        """Return the log of fpm-flowspec."""
        with open(f"{self.dut.dir}/flowspec.log", encoding="utf-8") as file:
            return file.read()

    def sessions(self):
        """Return {peer: state}, or {} if there is no status file."""
        try:
            return self.status()["sessions"]
        except FileNotFoundError:
            return {}

    def flows(self):
        """Return {match: "installed" or the reason why not}."""
        return {row["match"]: row["reason"] or row["state"] for row in self.status()["flows"]}

    def kernel_rules(self):
        """Return the number of rules of flows in the kernel."""
        text = netns.run(self.dut.ctl, ["nft", "-j", "list", "table", *TABLE.split()])
        rows = [row["rule"] for row in json.loads(text)["nftables"] if "rule" in row]
        return sum(row["chain"] in ("flow4", "flow6") for row in rows)

    def settled(self, **flows):
        """Wait until the helper has exactly these flows, {match: "installed" or a part of the reason why
        not}, and the dataplane has a rule for each installed flow."""

        def there():
            have = self.flows()
            right = have.keys() == flows.keys() and all(flows[m] in have[m] for m in flows)
            rows = self.dut.control.ask("filter")
            rules = [row for row in rows if row["kind"] == "rule"]
            named = {r["comment"] for r in rules if r["comment"] and TABLE in r["chain"]}
            want = {m for m, state in flows.items() if state == "installed"}
            if not right or named != want or rows[0]["state"] != "in-force":
                raise LookupError(f"{have}, in the dataplane: {named}, {rows[0]['state']}")
            return rules

        rules = eventually(there, 30, 0.05, "the flows are in force")
        # A forwarder may be within a round that began with the previous rules.
        self.dut.fence(self.dut.wires["lan"])
        return rules
