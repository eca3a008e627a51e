# SPDX-License-Identifier: BSD-3-Clause
"""Bonds as ports. A bond of two NICs by DPDK has a bond or a bridge of the kernel at the other
end (run.py has the cables). A bond of the kernel is a port by AF_PACKET. A cable is pulled at
both ends."""

import contextlib
import math
import os
import re
import time

import pytest
from lacp import COLLECTING, DISTRIBUTING, SYNCHRONIZATION, Watch

from lib import links, netns
from lib.linkwatch import LinkWatch
from lib.wait import eventually, never
from router import Router, running
from wire import token_of

HOST, NET = "203.0.113.9", "203.0.113.0/24"
MEMBERS = (1, 2)  # numbers of the NICs in the bond
LOSS_S = 1.0  # at most, from the moment a member is lost
IN_USE = 0x3C  # LACP's states: aggregation, synchronization, collecting, distributing
UP_S = 3  # seconds until LACP is up, at most
# The parts of UP_S that the dataplane may take. IN_SYNC_S: from the link until the dataplane
# announces that it is in sync, while Linux waits (the dataplane waits half a second, in rounds of
# 0.1 s, and sends a LACPDU each third of a second). ANSWER_S: from Linux's LACPDU with the state
# collecting until the LACPDU of the dataplane with the state distributing.
IN_SYNC_S, ANSWER_S = 1.2, 0.6
JUMBO = 9000
LACP = "bond mode 802.3ad lacp_rate fast miimon 50 xmit_hash_policy layer3+4"
METRICS = "127.0.0.1:9620"
PEERS = {1: "bridge mcast_snooping 0", 4: LACP}


def group(name, kind, members, address):
    """Return lines for `ip` that make an interface of several members, which are down."""
    lines = [f"link add {name} type {kind}"]
    lines += [f"link set {m} master {name}" for m in members]
    lines += [f"link set {m} up" for m in members]
    return [*lines, f"link set {name} address {address} mtu {JUMBO} up"]


class Bonded(links.Nics):
    """The port lan is a NIC, the port wan a bond of two. The kernel at the other end of wan has
    a bond or a bridge of its two NICs."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def make(self, dut):
        netns.command(["modprobe", "-a", "bonding", "bridge"])
        names, dut.names = dut.names, ("lan", *(f"m{n}" for n in MEMBERS))
        super().make(dut)
        dut.names = names
        ends = [f"m{n}" for n in MEMBERS]
        netns.ip_batch([f"link set {end} down" for end in ends], dut.far)
        netns.ip_batch(group("wan", PEERS[self.mode], ends, links.far_mac(1)), dut.far)

    def device(self, name):
        if name == "lan":
            return links.pci(0)
        members = ",".join(f"member={links.pci(n)}" for n in MEMBERS)
        return f"net_bonding0,mode={self.mode},{members}"


class KernelBonds(links.Veths):
    """The port wan is a bond of two veths. The kernel makes the bond at both ends."""

    def make(self, dut):
        netns.command(["modprobe", "bonding"])
        names, dut.names = dut.names, ("lan", "m1", "m2")
        super().make(dut)
        dut.names = names
        for where, names, mac in ((dut.far, ("m1", "m2"), links.far_mac(1)),
                                  (dut.dp, ("p-m1", "p-m2"), links.port_mac(1))):  # fmt: skip
            netns.ip_batch([f"link set {name} down" for name in names], where)
            name = "wan" if where == dut.far else "p-wan"
            netns.ip_batch(group(name, LACP, names, mac), where)


@contextlib.contextmanager
def a_router(name, wiring, *edits):
    """Run a router of two ports under a supervisor. The port wan is a bond. Each of `edits` is (old
    text, new text) of its configuration."""
    router = Router(name=name, supervised=True, metrics=METRICS)
    router.names, router.wiring = ("lan", "wan"), wiring
    with running(router, *edits):
        yield router


@pytest.fixture(scope="module")
def bond(request):
    """Run a router with a bond by DPDK in the mode that a test asks for, one router at a
    time."""
    # Packet buffers have the size of the longest MTU at the start.
    jumbo = ("tap: lan0\n", f"tap: lan0\n    mtu: {JUMBO}\n")
    cores = ("\nmemory:", f"\ncores: {os.environ['FDP_CORES']}\nmemory:")
    with a_router("bond", Bonded(request.param), jumbo, cores) as router:
        yield router


lacp = pytest.mark.parametrize("bond", [4], indirect=True, ids=["802.3ad"])
backup = pytest.mark.parametrize("bond", [1], indirect=True, ids=["active-backup"])


def members(router):
    """Return {number of its NIC: "active", "idle" or "down"}."""
    rows = router.port_row(router.wires["wan"])["bond"]["members"]
    by = {row["device"]: row for row in rows}
    rows = {n: by[links.pci(n)] for n in MEMBERS}
    how = lambda row: "active" if row["active"] else "idle"  # noqa: E731
    return {n: how(r) if r["link"] == "up" else "down" for n, r in rows.items()}


def both_active(router):
    """Return True if both members carry traffic."""
    return members(router) == dict.fromkeys(MEMBERS, "active")


@contextlib.contextmanager
def pulled(qmp, *numbers):
    """Pull the cables of these NICs for the length of the block."""
    plug(qmp, numbers, False)
    try:
        yield
    finally:
        plug(qmp, numbers, True)


def plug(qmp, numbers, up):
    for n in numbers:
        for end in ("port", "far"):
            qmp("set_link", name=f"{end}{n}", up=up)


def carrier(router):
    return netns.has_carrier(router.ctl, "wan0")


def routed(router):
    """Set a route to HOST by wan, with the peer of lan behind lan. Return both wires."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    router.ready()
    router.route(NET, via=wan.peer4, wire=wan)
    return lan, wan


def ran(clock, begin, end):
    """Return the seconds between two times (monotonic) in which this guest ran, by a Watch."""
    offset = time.time() - time.monotonic()
    return clock.took(begin + offset, end + offset)


def lost_for(clock, stream, wire, since, until=math.inf):
    """Return the seconds from `since` to the last packet, sent before `until`, that did not arrive; 0:
    none was lost. Time in which this guest did not run does not count."""
    lost = [at for at in map(stream.time_of, stream.lost(wire)) if at < until]
    return ran(clock, since, max(lost)) if lost else 0.0


def loses_no_second(router, qmp, n):
    """Pull the cable of a member and check that packets pass both ways within a second."""
    lan, wan = routed(router)
    with contextlib.ExitStack() as undo:
        clock = undo.enter_context(Watch(router.far, [f"m{m}" for m in MEMBERS]))
        out = undo.enter_context(router.stream(lan, HOST, rate=50, flows=16))
        back = undo.enter_context(router.stream(wan, lan.peer4, rate=50, flows=16))
        since = out.times[-1]
        with pulled(qmp, n):
            # Half of the packets are sent after the second that the change may take.
            for stream in (out, back):
                enough = len(stream.times) + 2 * LOSS_S * stream.rate
                eventually(lambda s=stream, e=enough: s.sent > e, 20, 0.1, "packets")
            assert members(router)[n] == "down" and carrier(router)
            last = out.times[-1]
    for stream, at in ((out, wan), (back, lan)):
        took = lost_for(clock, stream, at, since, last)
        print(f"member {n} pulled: {len(stream.lost(at))} of {stream.sent} lost, for {took:.3f} s")
        assert took < LOSS_S


def restarted(router):
    """Restart as planned. Return the pid of the old daemon."""
    was = router.daemon.pid()
    done = router.fpmctl("restart", timeout=240)
    assert done.returncode == 0, done.stderr
    return was


def killed(router):
    """End the daemon with kill -9. Return its pid."""
    return router.daemon.crash()


def comes_back(router, end, as_it_was):
    """Check another daemon on the same NICs. The TAP loses no carrier and zebra's routes are in
    force at once. The members are as before, and a stream passes again within UP_S."""
    lan, wan = routed(router)
    eventually(lambda: as_it_was(router), 10, 0.1, "the members are as before")
    eventually(lambda: router.fpm()["checkpoint"]["routes"] == 1, 5, 0.05, "a checkpoint")
    router.zebra.close()
    with (
        LinkWatch(router.ctl) as watch,
        Watch(router.far, [f"m{n}" for n in MEMBERS]) as clock,
        router.stream(lan, HOST, rate=50, flows=16) as stream,
    ):
        was = end(router)
        router.control.close()
        router.daemon.back(was)
        begin = time.monotonic()
        eventually(lambda: as_it_was(router), UP_S, 0.02, "the members are as before")
        took = ran(clock, begin, time.monotonic())
        enough = len(stream.times) + stream.rate
        eventually(lambda: stream.sent > enough, 20, 0.1, "packets")
    rest = lost_for(clock, stream, wan, begin)
    print(f"{end.__name__}: members back after {took:.2f} s, none lost after {rest:.2f} s")
    assert watch.lost_carrier() == []
    assert took < UP_S and rest < UP_S
    assert router.fpm()["checkpoint"]["restored"] == 1


@pytest.mark.quick
@lacp
def test_lacp_comes_up_within_three_seconds(bond, qmp):
    """Three times, from two cables without link: the TAP has carrier and both members carry
    traffic within three seconds. The dataplane's part of the time is shorter and is checked by
    itself, because Linux waits two seconds. Time in which this guest did not run does not
    count."""
    lan, wan = routed(bond)
    with Watch(bond.far, [f"m{n}" for n in MEMBERS]) as watch:
        for _ in range(3):
            with pulled(qmp, *MEMBERS):
                eventually(lambda: not carrier(bond), 3, 0.02, "no carrier without a member")
                # Forwarders know of the lost link before the TAP does.
                assert bond.port_row(wan)["link"] == "down"
                assert members(bond) == dict.fromkeys(MEMBERS, "down")
            begin = time.time()
            eventually(lambda: carrier(bond) and both_active(bond), 5, 0.02, "LACP")
            end = time.time()
            said = lambda n, ours, state: watch.first(f"m{n}", begin, ours, state)  # noqa: E731
            for n in MEMBERS:
                # The dataplane announces `distributing` within a third of a second.
                sends = eventually(lambda n=n: said(n, True, DISTRIBUTING), 3, 0.02, "`distributing`")
                in_sync, asked = said(n, True, SYNCHRONIZATION), said(n, False, COLLECTING)
                assert watch.took(begin, in_sync) < IN_SYNC_S, watch.story(begin)
                assert watch.took(asked, sends) < ANSWER_S, watch.story(begin)
            print(watch.story(begin))
            assert watch.took(begin, end) < UP_S, watch.story(begin)

    eventually(lambda: bond.forwarded(lan, lan.probe(HOST), wan), 3, 0.02, "forwarded")
    rows = bond.port_row(wan)["bond"]
    assert rows["mode"] == "802.3ad"
    assert {row["partner"] for row in rows["members"]} == {wan.mac}
    text = bond.fpmctl("show", "ports", "wan0").stdout
    assert f"802.3ad, {links.pci(1)} active with {wan.mac}" in " ".join(text.split()), text


@lacp
def test_flows_are_spread_over_members_and_queues_both_ways(bond):
    """Both ends spread flows by addresses and ports: each member carries a good part of the
    flows, and each forwarder handles a good part of them."""
    lan, wan = routed(bond)
    eventually(lambda: both_active(bond), 10, 0.1, "both members are active")
    row = bond.port_row(wan)
    assert row["queues"] == 2 and {"ip", "udp"} <= set(row["rss"].split()), row
    before, by = [counters(bond, n) for n in MEMBERS], bond.forwarded_by()

    with bond.stream(lan, HOST, rate=200, flows=64) as out:
        with bond.stream(wan, lan.peer4, rate=200, flows=64) as back:
            eventually(lambda: out.sent > 256 and back.sent > 256, 20, 0.1, "packets")

    eventually(lambda: out.lost(wan) == [] and back.lost(lan) == [], 5, 0.1, "all arrive")
    for n, was in zip(MEMBERS, before):
        came, went = (now - then for now, then in zip(counters(bond, n), was))
        assert came > out.sent / 8 and went > back.sent / 8, (n, came, went)
    by = {lcore: n - by[lcore] for lcore, n in bond.forwarded_by().items()}
    assert len(by) == 2 and min(by.values()) > sum(by.values()) / 6, by


def counters(router, n):
    """Return the frames that the kernel's NIC of a cable has received and sent."""
    rows = netns.read_proc(router.far, "/proc/net/dev").splitlines()
    row = next(row for row in rows if row.strip().startswith(f"m{n}:"))
    fields = row.split(":")[1].split()
    return int(fields[1]), int(fields[9])


@lacp
def test_without_lacp_at_the_other_end_there_is_no_carrier(bond, qmp):
    """Links without LACP at the other end give no carrier. The port has carrier when LACP is
    up."""
    with pulled(qmp, *MEMBERS):
        eventually(lambda: not carrier(bond), 3, 0.02, "no carrier")
        netns.link_set(bond.far, "wan", False)
    try:
        eventually(lambda: members(bond) == dict.fromkeys(MEMBERS, "idle"), 5, 0.02, "links without LACP")
        never(lambda: carrier(bond), 2 * IN_SYNC_S, 0.02)
    finally:
        netns.link_set(bond.far, "wan", True)
    eventually(lambda: carrier(bond), 10, 0.02, "carrier")
    lan, wan = routed(bond)
    assert bond.forwarded(lan, lan.probe(HOST), wan)


@lacp
@pytest.mark.parametrize("end, n", [(restarted, 1), (killed, 2)])
def test_lacp_goes_on_when_restarted_and_without_a_member(bond, qmp, end, n):
    """LACP is up after a restart or a crash. Traffic goes by either member alone, and by both
    when the cable is back."""
    comes_back(bond, end, both_active)
    loses_no_second(bond, qmp, n)
    eventually(lambda: both_active(bond), 10, 0.1, "both members are active")


@lacp
def test_a_vlan_on_a_bond(bond, qmp):
    """Tagged frames pass both ways by each member."""
    lan, wan = routed(bond)
    bond.ip("link add link wan0 name wan0.100 type vlan id 100", "link set wan0.100 up",
            "addr add 192.0.2.129/26 dev wan0.100")  # fmt: skip
    vlan = type("Vlan", (), {"tap": "wan0.100", "mac": wan.mac})
    try:
        bond.neighbor("192.0.2.130", vlan)
        for n in MEMBERS:
            with pulled(qmp, n):
                eventually(lambda n=n: members(bond)[n] == "down", 3, 0.02)
                probe = bytes(lan.probe("192.0.2.130"))
                lan.send(probe)
                assert wan.expect_raw(token_of(probe), 5)[12:16].hex() == "81000064"
                back = bytes(wan.probe(lan.peer4, src="192.0.2.130"))
                wan.send(back[:12] + bytes.fromhex("81000064") + back[12:])
                lan.expect_raw(token_of(back), 5)
            eventually(lambda: both_active(bond), 10, 0.1, "both members are active")
    finally:
        bond.ip("link del wan0.100")


@lacp
def test_a_tap_that_is_down_takes_the_links_of_the_members_with_it(bond):
    """`shutdown` in vtysh sets the TAP of the bond down. The drivers of the members take their links
    down if they can, else the log says that they cannot. After `no shutdown` packets pass again."""

    def said(state):
        words = f"neigh: link of device (set|not set) port=wan0 state={state}"
        return re.findall(words, bond.log())

    before = len(said("down")), len(said("up"))
    bond.ip("link set wan0 down")
    eventually(lambda: len(said("down")) > before[0], 5, 0.02, "the links are set down")
    bond.ip("link set wan0 up")
    eventually(lambda: len(said("up")) > before[1], 5, 0.02, "the links are set up")
    assert said("down")[-1] == said("up")[-1], "a driver that sets the link down sets it up"

    eventually(lambda: both_active(bond), 10, 0.1, "both members are active")
    eventually(lambda: carrier(bond), 5, 0.02, "the carrier")
    lan, wan = routed(bond)
    assert bond.forwarded(lan, lan.probe(HOST), wan)


@lacp
def test_a_bond_goes_and_comes(bond):
    """A bond's NICs belong to it alone. `port del` gives them back, and `port add` takes them
    again."""
    wan = bond.wires["wan"]
    device = bond.wiring.device("wan")
    taken = bond.fpmctl("port", "add", "ext0", "device", links.pci(2))
    assert taken.returncode != 0 and links.pci(2) in taken.stderr, taken
    rows = bond.fpmctl("device", "list").stdout
    assert rows.count("port wan0") == len(MEMBERS), rows
    for _ in range(2):
        gone = bond.fpmctl("port", "del", "wan0")
        assert gone.returncode == 0, gone.stderr
        come = bond.fpmctl("port", "add", "wan0", "device", device)
        assert come.returncode == 0, come.stderr
        eventually(lambda: both_active(bond), 5, 0.05, "LACP")
    bond.taps["wan"] = bond._wire(bond.ctl, "wan0")
    bond.collector.add(bond.taps["wan"])
    lan, wan = routed(bond)
    assert bond.forwarded(lan, lan.probe(HOST), wan)


def long_frames_by_each_member(router, qmp, as_it_was):
    """Raise the MTU of a running bond beyond that at which its NICs were opened. It is in force
    for each member, both ways. No packet of a stream is lost."""
    lan, wan = routed(router)
    eventually(lambda: as_it_was(router), 10, 0.1, "the members are as before")
    assert router.port_row(wan)["mtu"] == 1500
    with router.stream(lan, HOST, rate=100, flows=16) as stream:
        router.ip(f"link set {lan.tap} mtu {JUMBO}")
        done = router.fpmctl("port", "set", wan.tap, "mtu", str(JUMBO))
        assert done.returncode == 0, done.stderr
        in_force = lambda: {router.port_row(w)["mtu"] for w in (lan, wan)} == {JUMBO}  # noqa: E731
        eventually(in_force, 5, 0.05, "MTU in force")
        enough = len(stream.times) + stream.rate
        eventually(lambda: stream.sent > enough, 20, 0.1, "packets")
    assert stream.lost(wan) == []
    for n in MEMBERS:
        with pulled(qmp, n):
            eventually(lambda n=n: alone(router, n), 10, 0.02, "the other member alone")
            for size in (1501, 2049, JUMBO):
                for wire, dst, out in ((lan, HOST, wan), (wan, lan.peer4, lan)):
                    probe = bytes(wire.probe(dst, size=size))
                    wire.send(probe)
                    came = out.expect_raw(token_of(probe), 5)
                    # These octets are behind the headers that a router rewrites.
                    assert came[14 + 40 :] == probe[14 + 40 :], (n, size, wire.name)
        # Wait until both ends use both members. Linux would need longer to change to the other
        # member if a link were lost before.
        eventually(lambda: as_it_was(router), 10, 0.1, "the members are as before")
    done = router.fpmctl("port", "set", wan.tap, "mtu", "1500")
    assert done.returncode == 0, done.stderr


def alone(router, n):
    """Return True if one member is down and traffic goes by the other."""
    return sorted(members(router).items()) == sorted({n: "down", 3 - n: "active"}.items())


@lacp
def test_long_frames_by_each_member_with_lacp(bond, qmp):
    long_frames_by_each_member(bond, qmp, lambda r: both_active(r) and lacp_is_up(r))


@backup
def test_long_frames_by_each_member(bond, qmp):
    long_frames_by_each_member(bond, qmp, first_active)


def first_active(router):
    return members(router) == {1: "active", 2: "idle"}


@backup
@pytest.mark.parametrize("end, n", [(restarted, 2), (killed, 1)])
def test_active_backup_goes_on_when_restarted_and_by_the_other(bond, qmp, end, n):
    """The first member carries traffic while it has a link. Otherwise the other member does. This
    holds after a restart and after a crash."""
    comes_back(bond, end, first_active)
    loses_no_second(bond, qmp, n)
    eventually(lambda: first_active(bond), 5, 0.02, "the first member is active")
    assert f"{links.pci(2)} idle" in bond.fpmctl("show", "ports", "wan0").stdout


@backup
def test_active_backup_without_members_has_no_carrier(bond, qmp):
    """Without members the TAP has no carrier. It has carrier again with the second member
    alone."""
    lan, wan = routed(bond)
    with pulled(qmp, 1):
        with pulled(qmp, 2):
            eventually(lambda: not carrier(bond), 3, 0.02, "no carrier")
        eventually(lambda: carrier(bond), 3, 0.02, "carrier")
        assert members(bond) == {1: "down", 2: "active"}
        eventually(lambda: bond.all_alive(NET), 3, 0.02, "rib knows of the carrier")
        assert bond.forwarded(lan, lan.probe(HOST), wan)


@backup
def test_a_driver_that_hides_its_link_is_refused(bond):
    """e1000e's driver promises an interrupt that never comes, and DPDK believes it. Therefore a
    bond refuses the NIC. The NIC works as a port by itself."""
    links.give_to_vfio(links.pci(3))
    device = f"net_bonding1,mode=1,member={links.pci(3)},member=0000:00:{links.FAR_SLOT + 3:x}.0"

    done = bond.fpmctl("port", "add", "ext0", "device", device)

    why = f"{links.pci(3)} cannot be in a bond: its driver (net_e1000_em) does not report"
    assert done.returncode != 0 and why in done.stderr, done
    for words in (("add", "ext0", "device", links.pci(3)), ("del", "ext0")):
        done = bond.fpmctl("port", *words)
        assert done.returncode == 0, done.stderr


def test_a_bond_of_the_kernels_is_a_port():
    """A bond of the kernel with LACP is a port by AF_PACKET: traffic goes on when a member is
    lost."""
    with a_router("kernel", KernelBonds()) as router:
        lan, wan = routed(router)
        ends = [f"m{n}" for n in MEMBERS]
        for n in MEMBERS:
            with Watch(router.far, ends) as clock, router.stream(lan, HOST, rate=50, flows=16) as stream:
                since = stream.times[-1]
                netns.link_set(router.far, f"m{n}", False)
                enough = stream.sent + 2 * LOSS_S * stream.rate
                eventually(lambda e=enough: stream.sent > e, 20, 0.1, "packets")
            assert carrier(router)
            assert lost_for(clock, stream, wan, since) < LOSS_S
            netns.link_set(router.far, f"m{n}", True)
            eventually(lambda: lacp_is_up(router), 10, 0.1, "LACP")
        for n in MEMBERS:
            netns.link_set(router.far, f"m{n}", False)
        eventually(lambda: not carrier(router), 3, 0.02, "no carrier")


def lacp_is_up(router):
    """Return True if the kernel at the other end reports both members up, and has both in one
    aggregator."""
    text = netns.read_proc(router.far, "/proc/net/bonding/wan")
    states = [int(n) & IN_USE == IN_USE for n in re.findall(r"port state: (\d+)", text)]
    aggregators = set(re.findall(r"Aggregator ID: (\d+)", text))
    return states == [True] * 2 * len(MEMBERS) and len(aggregators) == 1


