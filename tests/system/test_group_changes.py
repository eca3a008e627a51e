# SPDX-License-Identifier: BSD-3-Clause
"""A real FRR changes the next hops of a route. zebra makes a new group for each change; the flows
of the next hops that stay do not move."""

import contextlib
import ipaddress
import socket
import struct
from collections import Counter

import pytest

from lab import bgp_wire, routes
from lib import netns
from lib.frr import beside as frr_beside
from lib.wait import eventually
from test_ecmp_many import flow_frames, gateways, members

PATHS, FLOWS = 8, 1600
CONF = "hostname r1\nfpm address 127.0.0.1\n"
CASES = {
    4: ("ip", "198.51.100.0/24", "198.51.100.9", lambda w, n: f"192.0.2.{64 * w + 10 + n}"),
    6: ("ipv6", "2001:db8:f000::/36", "2001:db8:f000::9",
        lambda w, n: f"2001:db8:{w or 4}::10:{n + 1:x}"),
}  # fmt: skip
OTHER = {4: ("203.0.113.0/24", "203.0.113.9"), 6: ("2001:db8:e000::/36", "2001:db8:e000::9")}


class Flows:
    """Follow the flows of a route while FRR changes it."""

    def __init__(self, dut, family, prefix=None, dst=None, n=FLOWS):
        self.dut, self.n = dut, n
        self.word, self.prefix, self.dst, address = CASES[family]
        self.prefix, self.dst = prefix or self.prefix, dst or self.dst
        self.outs = [dut.wires[n] for n in ("wan", "alt", "ext")]
        self.hops = gateways(dut, self.outs, PATHS, address)
        self.vias = [via for via, _, _ in self.hops]
        self.mac = {via: mac for via, _, mac in self.hops}

    def line(self, via):
        """Return the line of frr.conf for one gateway."""
        return f"{self.word} route {self.prefix} {via}"

    def lines(self, vias):
        """Return the lines of frr.conf for some gateways."""
        return "".join(self.line(via) + "\n" for via in vias)

    def group(self):
        """Return the gateways of the route, alive or not."""
        row = self.dut.route_row(self.prefix)
        return [hop["via"] for hop in row["nexthops"]] if row else []

    def paths(self, vias):
        """Wait until the route has exactly these gateways. Return the MAC address that each flow
        takes."""
        eventually(
            lambda: sorted(self.group()) == sorted(vias), 15, 0.01, f"a route by {vias}"
        )
        return self.now()

    def now(self):
        """Return the MAC address that each flow takes."""
        lan = self.dut.wires["lan"]
        return members(self.dut, lan, self.outs, flow_frames(lan, self.dst, self.n))


def moved(before, after):
    """Return {(old MAC, new MAC): number of flows} of the flows that moved."""
    return Counter((b, a) for b, a in zip(before, after) if a != b)


def assert_left(before, after, macs):
    """Assert that the flows of these members moved, and no others."""
    assert {was for was, _ in moved(before, after)} == set(macs), moved(before, after)
    assert not set(macs) & set(after)


def assert_fair(paths, n):
    """Assert that the members of a group without weights have equal parts of the flows. By chance a
    part differs by 9 % (one standard deviation for 8 members)."""
    counts = Counter(paths)
    assert len(counts) == n and max(counts.values()) < 1.5 * FLOWS / n, counts


@pytest.fixture
def beside(own_dut):
    """A router without a test's zebra."""
    dut = own_dut()
    dut.start()
    dut.zebra.close()
    return dut


def test_a_static_gateway_goes_and_comes_back(beside, family):
    """A static gateway of eight is removed in vtysh: only its flows move, to all others. When it is
    added again, its flows return to it, and no other flow moves."""
    flows = Flows(beside, family)
    gone = flows.vias[3]
    rest = [v for v in flows.vias if v != gone]
    with frr_beside(beside, CONF + flows.lines(flows.vias)) as frr:
        before = flows.paths(flows.vias)
        frr.configure("no " + flows.line(gone))
        during = flows.paths(rest)
        frr.configure(flows.line(gone))
        after = flows.paths(flows.vias)

    assert_left(before, during, [flows.mac[gone]])
    assert len(moved(before, during)) == PATHS - 1
    assert_fair(before, PATHS)
    assert_fair(during, PATHS - 1)
    assert after == before


def test_static_gateways_go_and_come_back_in_any_order(beside, family):
    """Three static gateways are removed one after the other, and two of them at once. They return
    in another order. Each change moves at most the flows of the gateways that leave or return."""
    flows = Flows(beside, family)
    vias = list(flows.vias)
    steps = [("no", [1]), ("no", [6, 4]), ("", [6]), ("no", [0]), ("", [1]), ("", [0, 4])]
    with frr_beside(beside, CONF + flows.lines(vias)) as frr:
        was = flows.paths(vias)
        for word, numbers in steps:
            some = [flows.vias[n] for n in numbers]
            frr.configure(*(f"{word} {flows.line(via)}".strip() for via in some))
            vias = [v for v in vias if v not in some] + ([] if word else some)
            now = flows.paths(vias)
            macs = {flows.mac[via] for via in some}
            if word:
                assert_left(was, now, macs)
            else:
                assert {to for _, to in moved(was, now)} <= macs
                assert moved(was, now).total() < 1.5 * FLOWS * len(some) / len(vias)
            assert_fair(now, len(vias))
            was = now


def test_routes_of_different_groups_come_to_one_group(beside, family):
    """One route has eight gateways, another seven of them. The first loses its eighth gateway, so
    that zebra gives both routes one group. Neither route's other flows move. When the gateway is
    back, the flows are as before."""
    one, two = Flows(beside, family), Flows(beside, family, *OTHER[family])
    gone = one.vias[5]
    rest = [v for v in one.vias if v != gone]
    nhid = lambda flows: beside.route_row(flows.prefix)["nexthop_id"]  # noqa: E731
    conf = CONF + two.lines(rest) + one.lines(one.vias)
    with frr_beside(beside, conf) as frr:
        before = [one.paths(one.vias), two.paths(rest)]
        frr.configure("no " + one.line(gone))
        during = [one.paths(rest), two.paths(rest)]
        assert nhid(one) == nhid(two)
        frr.configure(one.line(gone))
        after = [one.paths(one.vias), two.paths(rest)]

    assert_left(before[0], during[0], [one.mac[gone]])
    assert during[1] == before[1] and after == before


def test_a_lost_link_whose_gateways_zebra_removes(beside, family):
    """A port loses carrier and its gateways leave the group at once. Then zebra 8.4 makes a smaller
    group; 10.3 keeps the group, and sends nothing. Only the flows of that port move. With the
    carrier they return, as soon as zebra has made the group again."""
    flows = Flows(beside, family)
    wan = beside.wires["wan"]
    lost = [via for via, wire, _ in flows.hops if wire is wan]
    rest = [via for via in flows.vias if via not in lost]
    macs = [flows.mac[via] for via in lost]
    with frr_beside(beside, CONF + flows.lines(flows.vias)) as frr:
        before = flows.paths(flows.vias)
        netns.link_set(beside.far, "wan", up=False)
        smaller = lambda: sorted(flows.group()) == sorted(rest)  # noqa: E731
        eventually(lambda: smaller() or not beside.all_alive(flows.prefix), 5, 0.01)
        first = flows.now()

        def zebra_follows():
            row = frr.json(f"show {flows.word} route {flows.prefix} json")[flows.prefix][0]
            active = [hop["ip"] for hop in row["nexthops"] if hop.get("active")]
            same = row["nexthopGroupId"] == beside.route_row(flows.prefix)["nexthop_id"]
            return sorted(active) == sorted(rest) and same

        eventually(zebra_follows, 15, 0.1)
        during = flows.now()
        netns.link_set(beside.far, "wan", up=True)
        eventually(lambda: sorted(flows.group()) == sorted(flows.vias), 15, 0.01)
        gateways(beside, flows.outs, PATHS, CASES[family][3])
        eventually(lambda: beside.all_alive(flows.prefix), 15, 0.01)
        after = flows.now()
        assert frr.runs("zebra")

    assert_left(before, first, macs)
    assert during == first
    assert after == before


class Peer:
    """One BGP neighbor that announces a prefix by a gateway of its own. Its hold time is 0, so it
    needs no keepalives."""

    def __init__(self, namespace, number, router, gateway, prefix, bandwidth=None):
        self.family = 6 if ":" in prefix else 4
        self.key = [routes.parse(prefix)[0]]
        self.gateway = ipaddress.ip_address(gateway).packed
        self.attrs = bgp_wire.attributes([65100 + number])
        # Extended community, draft-ietf-idr-link-bandwidth. bgpd 10.3 ignores a community of the type
        # 0x40, which is not transitive.
        if bandwidth:
            self.attrs += struct.pack("!BBBBBHf", 0xC0, 16, 8, 0x00, 4, 65100 + number, bandwidth)
        self.side, self.number, self.router = namespace, number, router
        eventually(self._open, 20, 0.1, f"a session with neighbor {number}")

    def _open(self):
        """Open the session. bgpd refuses neighbors for a short time after its start."""
        address = peer_address(self.number)
        self.sock = netns.open_socket(self.side, socket.AF_INET, socket.SOCK_STREAM)
        self.reader = bgp_wire.Reader()
        self.sock.settimeout(10)
        try:
            self.sock.bind((address, 0))
            self.sock.connect((self.router, 179))
            self.sock.sendall(bgp_wire.open_message(65100 + self.number, 0, address))
            self._expect(came := [], bgp_wire.OPEN)
            self.sock.sendall(bgp_wire.message(bgp_wire.KEEPALIVE))
            self._expect(came, bgp_wire.KEEPALIVE)
        except ConnectionError:
            self.sock.close()
            return False
        return True

    def _expect(self, came, kind):
        while kind not in came:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError(f"the router hung up after {came}")
            came += [k for k, _ in self.reader.feed(data)]

    def announce(self):
        """Announce the prefix."""
        make = bgp_wire.announce4 if self.family == 4 else bgp_wire.announce6
        self.sock.sendall(make(self.key, self.attrs, self.gateway))

    def withdraw(self):
        """Withdraw the prefix."""
        make = bgp_wire.withdraw4 if self.family == 4 else bgp_wire.withdraw6
        self.sock.sendall(make(self.key))


def peer_address(number):
    """Return the address of one BGP neighbor."""
    return f"10.99.1.{10 + number}"


def bgp_conf(family):
    """Return the lines of frr.conf for eight BGP neighbors and multipath."""
    peers = [peer_address(n) for n in range(PATHS)]
    lines = ["router bgp 65001", "bgp router-id 10.99.1.1", "no bgp ebgp-requires-policy"]
    lines += ["bgp bestpath as-path multipath-relax"]
    for n, peer in enumerate(peers):
        lines += [f"neighbor {peer} remote-as {65100 + n}", f"neighbor {peer} passive"]
    lines += [f"address-family ipv{family} unicast", f"maximum-paths {PATHS}"]
    lines += [f"neighbor {peer} activate" for peer in peers]
    return "\n".join([*lines, "exit-address-family"]) + "\n"


@contextlib.contextmanager
def bgp_side(dut):
    """Make a namespace with the addresses of the BGP neighbors, on a link to the router."""
    name = f"{dut.ctl}-b"
    netns.command(["ip", "netns", "add", name])
    try:
        netns.command(
            ["ip", "link", "add", "bgp0", "netns", dut.ctl, "type", "veth"]
            + ["peer", "name", "bgp0", "netns", name]
        )
        dut.ip("link set bgp0 up", "addr add 10.99.1.1/24 dev bgp0")
        addresses = [f"addr add {peer_address(n)}/24 dev bgp0" for n in range(PATHS)]
        netns.ip_batch(["link set bgp0 up", *addresses], name)
        yield name
    finally:
        netns.delete(name)


@contextlib.contextmanager
def bgp_peers(flows, bandwidth=lambda n: None):
    """Run FRR with eight BGP neighbors that announce the prefix, each by its gateway. Yields the
    neighbors."""
    family = 6 if ":" in flows.prefix else 4
    conf = CONF + bgp_conf(family)
    with contextlib.ExitStack() as end:
        side = end.enter_context(bgp_side(flows.dut))
        end.enter_context(frr_beside(flows.dut, conf, ["bgpd"]))
        peers = []
        for n, via in enumerate(flows.vias):
            peers.append(Peer(side, n, "10.99.1.1", via, flows.prefix, bandwidth(n)))
            end.callback(peers[n].sock.close)
            peers[n].announce()
        yield peers


def test_a_bgp_path_is_withdrawn_and_announced_again(beside, family):
    """One of eight BGP paths is withdrawn: only its flows move. When it is announced again, its
    flows return, and no other flow moves. When a session ends, only the flows of its path move."""
    flows = Flows(beside, family)
    with bgp_peers(flows) as peers:
        before = flows.paths(flows.vias)
        peers[2].withdraw()
        during = flows.paths([v for v in flows.vias if v != flows.vias[2]])
        peers[2].announce()
        after = flows.paths(flows.vias)
        peers[7].sock.close()
        ended = flows.paths(flows.vias[:7])

    assert_left(before, during, [flows.mac[flows.vias[2]]])
    assert_fair(during, PATHS - 1)
    assert after == before
    assert_left(after, ended, [flows.mac[flows.vias[7]]])


def test_bgp_paths_with_weights(beside, family):
    """Eight BGP paths have bandwidths of 1 to 8. The heaviest path is withdrawn, and bgpd gives all
    others new weights. Only the flows of the withdrawn path move, and the parts of the flows follow
    the bandwidths within 2 %. When the path is announced again, only its share moves, all to it."""
    flows = Flows(beside, family, n=10_000)
    rest = flows.vias[:7]

    def assert_shares(paths, vias):
        counts, total = Counter(paths), sum(range(1, len(vias) + 1))
        for n, via in enumerate(vias, 1):
            # By chance a part differs by 0.4 % of all flows (one standard deviation).
            assert abs(counts[flows.mac[via]] / flows.n - n / total) < 0.02, counts

    with bgp_peers(flows, lambda n: 125000 * (n + 1)) as peers:
        before = flows.paths(flows.vias)
        peers[7].withdraw()
        during = flows.paths(rest)
        peers[7].announce()
        after = flows.paths(flows.vias)

    assert_shares(before, flows.vias)
    assert_left(before, during, [flows.mac[flows.vias[7]]])
    assert_shares(during, rest)
    assert {to for _, to in moved(during, after)} == {flows.mac[flows.vias[7]]}
    assert_shares(after, flows.vias)


def test_next_hops_of_a_kernel_route(beside, family):
    """`ip route replace` takes one of eight next hops from a route of the kernel and gives it back.
    Only the flows of this next hop move. In IPv6 a single next hop is also deleted and appended, and
    again only its flows move."""
    flows = Flows(beside, family)
    gone = flows.vias[3]
    rest = [v for v in flows.vias if v != gone]
    ip = f"-{family} route"

    def replace(vias):
        hops = " ".join(f"nexthop via {via}" for via in vias)
        netns.command(["ip", "-n", beside.ctl, *f"{ip} replace {flows.prefix} {hops}".split()])

    replace(flows.vias)
    before = flows.paths(flows.vias)
    replace(rest)
    during = flows.paths(rest)
    replace(flows.vias)
    after = flows.paths(flows.vias)
    if family == 6:
        for word in ("del", "append"):
            words = f"{ip} {word} {flows.prefix} via {gone}".split()
            netns.command(["ip", "-n", beside.ctl, *words])
            paths = flows.paths(rest if word == "del" else flows.vias)
            assert paths == (during if word == "del" else before)

    assert_left(before, during, [flows.mac[gone]])
    assert after == before
