# SPDX-License-Identifier: BSD-3-Clause
"""Each kind of BFD session in the dataplane, with a bfdd on either side. All tests share one router.
Each test has addresses of its own, and so a session of its own."""

import json
import shutil
import signal
import struct
import subprocess
import time

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from bfd_bed import ADMIN_DOWN, PATIENT, UP, bed, dissected, sniffed, undisturbed
from lib import frr_at, netns
from lib.wait import eventually

TTL_LEAST = 200


@pytest.fixture(scope="module")
def bfd():
    with bed("bfdk", daemons=["bgpd"]) as both:
        netns.run(both.router.far, ["sysctl", "-qw", "net.ipv6.conf.wan.disable_ipv6=0"])
        yield both


def own(bfd, ours, theirs, dev=("wan0", "wan")):
    """Give both sides an address; `ours` and `theirs` are ADDRESS/LENGTH. Return the addresses."""
    six = ["nodad"] if ":" in ours else []
    for space, address, device in ((bfd.router.ctl, ours, dev[0]), (bfd.router.far, theirs, dev[1])):
        netns.run(space, ["ip", "address", "replace", address, "dev", device, *six])
    return ours.split("/")[0], theirs.split("/")[0]


def pair(bfd, ours, theirs, *lines, here="", there="", theirs_lines=None):
    """Configure a session on both sides, with these lines. `here` ends the line `peer ...` of our side,
    and `there` that of the other side. The other side has `theirs_lines` instead, if given. A side
    without a profile has the line PATIENT first."""
    for frr, peer, its in (
        (bfd.ours, f"peer {theirs} {here}", lines),
        (bfd.theirs, f"peer {ours} {there}", lines if theirs_lines is None else theirs_lines),
    ):
        first = [] if any(line.startswith("profile") for line in its) else [PATIENT]
        frr.configure("bfd", peer.strip(), *first, *its)


def links(ours, theirs):
    """Return `here` and `there` for pair() that name local address and interface. An interface with
    several addresses needs them: bfdd 10.3 takes any address of the interface for a peer without a
    local address (doc/bfd.md, 4)."""
    return {
        "here": f"local-address {ours} interface wan0",
        "there": f"local-address {theirs} interface wan",
    }


def peer_row(bfd, ours):
    """Return the row that the peer's bfdd has for the session with our address, or None."""
    rows = bfd.theirs.json("show bfd peers json")
    return next((row for row in rows if row["peer"] == ours), None)


def up(bfd, ours, theirs):
    """Wait until both sides have the session Up. Returns our row."""
    eventually(lambda: bfd.state(theirs) == "up", 30, what=f"{theirs} is up")
    eventually(lambda: peer_row(bfd, ours)["status"] == "up", 20, what=f"{ours} is up there")
    return bfd.row(theirs)


def counters(bfd, ours):
    rows = bfd.theirs.json("show bfd peers counters json")
    return next(row for row in rows if row["peer"] == ours)


def test_a_session_of_ipv6_with_global_addresses(bfd):
    ours, theirs = own(bfd, "2001:db8:61::1/64", "2001:db8:61::2/64")
    pair(bfd, ours, theirs, **links(ours, theirs))
    row = up(bfd, ours, theirs)
    assert (row["by"], row["local"]) == ("forwarders", ours), row


def test_a_session_of_link_local_addresses(bfd):
    def link(space, dev):
        said = json.loads(netns.run(space, ["ip", "-j", "address", "show", "dev", dev]))
        return next(
            (a["local"] for a in said[0]["addr_info"] if a["scope"] == "link"), None
        )

    ours = link(bfd.router.ctl, "wan0")
    eventually(lambda: link(bfd.router.far, "wan"), 20, what="the peer has a link-local address")
    theirs = link(bfd.router.far, "wan")
    pair(bfd, ours, theirs, **links(ours, theirs))
    row = up(bfd, ours, theirs)
    assert (row["by"], row["local"]) == ("forwarders", ours), row


@pytest.mark.parametrize(
    "ours, theirs, via",
    [("10.41.0.1", "10.41.0.2", 4), ("2001:db8:41::1", "2001:db8:41::2", 6)],
    ids=["ipv4", "ipv6"],
)
def test_a_session_over_several_hops(bfd, ours, theirs, via):
    """A session between addresses of the loopback interfaces comes up over routes."""
    wan, size = bfd.router.wires["wan"], 32 if via == 4 else 128
    own(bfd, "2001:db8:61::1/64", "2001:db8:61::2/64")
    own(bfd, f"{ours}/{size}", f"{theirs}/{size}", ("lo", "lo"))
    hop, back = (wan.peer4, wan.ip4) if via == 4 else ("2001:db8:61::2", "2001:db8:61::1")
    word = "ip" if via == 4 else "ipv6"
    bfd.ours.configure(f"{word} route {theirs}/{size} {hop}")
    netns.run(bfd.router.far, ["ip", "route", "replace", f"{ours}/{size}", "via", back])
    pair(
        bfd,
        ours,
        theirs,
        f"minimum-ttl {TTL_LEAST}",
        here=f"multihop local-address {ours}",
        there=f"multihop local-address {theirs}",
    )
    row = up(bfd, ours, theirs)
    assert (row["multihop"], row["by"], row["dev"]) == (True, "forwarders", None), row
    # The peer sends Down. The packet is dropped if it comes over one hop too many, else it counts.
    was, other = bfd.router.counters(), peer_row(bfd, ours)
    assert row["discr"] == other["remote-id"]
    say_down(bfd, row, TTL_LEAST - 1)
    eventually(lambda: bfd.router.drops(was).get("bfd_bad") == 1, 10, what="it is counted")
    now = bfd.row(theirs)
    assert (now["state"], now["downs"]) == ("up", row["downs"]), now
    say_down(bfd, row, TTL_LEAST)
    eventually(lambda: bfd.row(theirs)["downs"] == row["downs"] + 1, 10, what="it is believed")
    assert bfd.router.drops(was).get("bfd_bad") == 1
    up(bfd, ours, theirs)


def test_a_session_over_several_hops_follows_its_route_to_an_interface_that_is_no_port(bfd):
    """The route of either side moves to an interface of the kernel, as to a tunnel that is the backup of
    a port. The session stays Up: packets that arrive there count, too."""
    wan = bfd.router.wires["wan"]
    ours, theirs = own(bfd, "10.43.0.1/32", "10.43.0.2/32", ("lo", "lo"))
    netns.run(bfd.router.ctl, ["ip", "link", "add", "back0", "type", "veth", "peer", "back1", "netns", bfd.router.far])
    for space, dev, last in ((bfd.router.ctl, "back0", 1), (bfd.router.far, "back1", 2)):
        netns.ip_batch([f"addr add 10.43.9.{last}/30 dev {dev}", f"link set {dev} up"], space)
    netns.run(bfd.router.far, ["ip", "route", "replace", ours, "via", wan.ip4])
    bfd.ours.configure(f"ip route {theirs}/32 {wan.peer4}")
    ends = {"here": f"multihop local-address {ours}", "there": f"multihop local-address {theirs}"}
    pair(bfd, ours, theirs, "minimum-ttl 250", **ends)
    row = up(bfd, ours, theirs)
    assert (row["by"], row["downs"]) == ("forwarders", 0), row
    netns.run(bfd.router.far, ["ip", "route", "replace", ours, "via", "10.43.9.1"])
    bfd.ours.configure(f"ip route {theirs}/32 10.43.9.2", f"no ip route {theirs}/32 {wan.peer4}")
    eventually(lambda: bfd.row(theirs)["rx_packets"] > row["rx_packets"] + 15, 30, what="packets still count")
    assert (bfd.row(theirs)["state"], bfd.row(theirs)["downs"]) == ("up", 0), bfd.row(theirs)
    bfd.ours.configure("bfd", f"no peer {theirs} {ends['here']}")
    netns.run(bfd.router.ctl, ["ip", "link", "del", "back0"])


def say_down(bfd, row, ttl):
    """Send a Down packet as the peer of a session does, with this TTL."""
    wire, six = bfd.router.wires["wan"], ":" in row["peer"]
    to = {"src": row["peer"], "dst": row["local"]}
    ip = IPv6(**to, hlim=ttl) if six else IP(**to, ttl=ttl)
    udp = UDP(sport=50001, dport=4784 if row["multihop"] else 3784)
    numbers = (row["remote_discr"], row["discr"], 1000000, 300000, 0)
    down = struct.pack("!BBBBIIIII", 0x20, 0x40, 3, 24, *numbers)
    wire.send(Ether(src=wire.mac, dst=wire.port_mac) / ip / udp / down)
    bfd.router.fence(wire)


def test_a_profile_changes_the_timers_of_a_session_that_stays_up(bfd):
    ours, theirs = own(bfd, "10.51.0.1/24", "10.51.0.2/24")
    bfd.ours.configure("bfd", "profile fast", "transmit-interval 100", "receive-interval 100", PATIENT)
    pair(bfd, ours, theirs, "profile fast", theirs_lines=("receive-interval 60",))
    was = up(bfd, ours, theirs)
    eventually(lambda: bfd.row(theirs)["interval_us"] == 100000, 10, what="the profile holds")
    bfd.ours.configure(
        "bfd", "profile fast", "transmit-interval 200", "receive-interval 400", "detect-multiplier 12"
    )
    # 200 ms from us; the peer's interval of 300 ms is less than the 400 that we require.
    eventually(
        lambda: (row := bfd.row(theirs))["interval_us"] == 200000 and row["mult"] == 12,
        10,
        what="the new timers hold",
    )
    eventually(
        lambda: peer_row(bfd, ours)["remote-receive-interval"] == 400
        and peer_row(bfd, ours)["remote-detect-multiplier"] == 12,
        10,
        what="the peer knows them",
    )
    row = bfd.row(theirs)
    assert (row["state"], row["downs"], row["discr"]) == ("up", was["downs"], was["discr"]), row
    assert counters(bfd, ours)["session-down"] == 0


def test_our_shutdown_is_told_to_the_peer_and_prunes_nothing(bfd):
    ours, theirs = own(bfd, "10.52.0.1/24", "10.52.0.2/24")
    pair(bfd, ours, theirs)
    up(bfd, ours, theirs)
    # RFC 5880, 6.8.16: AdminDown is sent for a detection time, and then no packet.
    with sniffed(bfd) as sniffer:
        bfd.ours.configure("bfd", f"peer {theirs}", "shutdown")
        eventually(lambda: bfd.state(theirs) == "admin-down", 10, what="we are AdminDown")
        assert not bfd.row(theirs)["pruned"]
        eventually(lambda: peer_row(bfd, ours)["status"] == "down", 10, what="the peer is Down")
        assert peer_row(bfd, ours)["diagnostic"] == "neighbor signaled session down"
        last = lambda: sniffer.of(ours, theirs)[-1]  # noqa: E731
        eventually(lambda: last().state == ADMIN_DOWN, 5, what="AdminDown is told")
        eventually(lambda: time.monotonic() - last().when > 3, 30, what="no packet in 3 s")
        assert last().state == ADMIN_DOWN
    bfd.ours.configure("bfd", f"peer {theirs}", "no shutdown")
    up(bfd, ours, theirs)


def test_a_deleted_session_is_told_to_the_peer_before_it_ends(bfd):
    ours, theirs = own(bfd, "10.53.0.1/24", "10.53.0.2/24")
    pair(bfd, ours, theirs)
    up(bfd, ours, theirs)
    bfd.ours.configure("bfd", f"no peer {theirs}")
    eventually(lambda: peer_row(bfd, ours)["status"] == "down", 10, what="the peer is Down")
    assert peer_row(bfd, ours)["diagnostic"] == "neighbor signaled session down"
    eventually(lambda: bfd.row(theirs) is None, 10, what="the session is gone")


def test_a_session_that_is_deleted_and_made_again_at_once_comes_up(bfd):
    """If the session is made again while the old session still sends AdminDown to the peer, the old
    session becomes the new one."""
    ours, theirs = own(bfd, "10.65.0.1/24", "10.65.0.2/24")
    pair(bfd, ours, theirs)
    was = up(bfd, ours, theirs)
    bfd.ours.configure("bfd", f"no peer {theirs}", f"peer {theirs}")
    eventually(lambda: bfd.row(theirs)["lid"] != was["lid"], 10, what="it is another one of bfdd")
    row = up(bfd, ours, theirs)
    assert row["discr"] == was["discr"] and not row["shutdown"], row
    assert [r["peer"] for r in bfd.router.control.ask("bfd")].count(theirs) == 1
    mine = next(p for p in bfd.ours.json("show bfd peers json") if p["peer"] == theirs)
    assert mine["status"] == "up", mine


@pytest.mark.parametrize(
    "ours, theirs",
    [("10.62.0.1/24", "10.62.0.2/24"), ("2001:db8:62::1/64", "2001:db8:62::2/64")],
    ids=["ipv4", "ipv6"],
)
def test_our_packets_are_those_of_rfc_5881_from_the_first_to_admin_down(bfd, ours, theirs, tmp_path):
    """The packets have the fields of RFC 5881. tshark, which shares no code with us, reads the same
    fields, and finds no fault in a packet."""
    ours, theirs = own(bfd, ours, theirs)
    with sniffed(bfd) as wire:
        pair(bfd, ours, theirs, **links(ours, theirs))
        up(bfd, ours, theirs)
        eventually(
            lambda: [p.state for p in wire.of(ours, theirs)].count(UP) >= 5, 10, what="we say Up"
        )
        # The counters know each packet of the wire, and no other one.
        eventually(
            lambda: (
                len(wire.of(ours, theirs)),
                len(wire.of(theirs, ours)),
            ) == ((row := bfd.row(theirs))["tx_packets"], row["rx_packets"]),
            10, what="the packets are counted",
        )  # fmt: skip
        row, octets = bfd.row(theirs), 72 if ":" in ours else 52
        for direction in ("rx", "tx"):
            assert row[f"{direction}_bytes"] == octets * row[f"{direction}_packets"], row
        bfd.ours.configure("bfd", f"no peer {theirs} {links(ours, theirs)['here']}")
        eventually(lambda: bfd.row(theirs) is None, 10, what="the session is gone")
        sent = wire.of(ours, theirs)
    assert {p.ttl for p in sent} == {255}
    (port,) = {p.sport for p in sent}
    assert 49152 <= port <= 65535
    states = [p.state for p in sent]
    assert states[-1] == ADMIN_DOWN and sent[-1].diag == 7, sent[-3:]
    # After the first AdminDown the session sends nothing else.
    assert set(states[states.index(ADMIN_DOWN) :]) == {ADMIN_DOWN}, states
    assert peer_row(bfd, ours)["diagnostic"] == "neighbor signaled session down"
    if shutil.which("tshark"):
        read = list(dissected(sent, str(tmp_path / "sent.pcap")))
        assert read == [((p.state, p.diag, p.ttl), []) for p in sent]


@pytest.mark.parametrize("who", ["we", "the peer"])
def test_a_passive_side_waits_for_the_other(bfd, who):
    last = 54 if who == "we" else 55
    ours, theirs = own(bfd, f"10.{last}.0.1/24", f"10.{last}.0.2/24")
    base, lines = bfd.router.wires["wan"], [f"peer {theirs}", f"peer {ours}"]
    sides = [(bfd.ours, ours, base.ip4), (bfd.theirs, theirs, base.peer4)]
    if who == "the peer":
        sides.reverse()
        lines.reverse()
    (waits, its, its_base), (begins, other, other_base) = sides
    with sniffed(bfd) as wire:
        # vtysh first makes the session, and then makes it passive. So a first packet may be sent.
        waits.configure("bfd", lines[0], "passive-mode")
        eventually(
            lambda: next(p for p in waits.json("show bfd peers json") if p["peer"] == other)["passive-mode"],
            10, what="the session is passive",
        )  # fmt: skip
        if who == "we":
            eventually(
                lambda: (row := bfd.row(theirs))["passive"] and row["interval_us"] == 0,
                10,
                what="the session is passive and sends nothing",
            )
        # An active session sends once a second. Another session, which sends every 50 ms, measures
        # the time. The first packet may still be on its way to the wire, but comes before those of
        # the other session.
        for ticks in (2, 40):
            sent, clock = len(wire.of(its, other)), len(wire.of(its_base, other_base))
            eventually(lambda n=clock + ticks: len(wire.of(its_base, other_base)) >= n, 20, what="time goes on")
        assert len(wire.of(its, other)) == sent
        begins.configure("bfd", lines[1])
        up(bfd, ours, theirs)
        answer, question = wire.of(its, other)[sent], wire.of(other, its)[0]
    assert wire.packets.index(question) < wire.packets.index(answer)


def test_an_echo_session_is_judged_by_packets_that_the_peer_loops(bfd):
    if shutil.which("nft") is None:
        pytest.skip("no nft: apt-get install nftables")
    ours, theirs = own(bfd, "10.56.0.1/24", "10.56.0.2/24")
    netns.run(bfd.router.far, ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
    ends = links(ours, theirs)
    pair(bfd, ours, theirs, "echo-mode", **ends, theirs_lines=("echo receive-interval 50",))
    up(bfd, ours, theirs)
    eventually(lambda: bfd.row(theirs)["echo_rx_packets"] > 20, 10, what="echo packets come back")
    row = bfd.row(theirs)
    assert row["echo_tx_packets"] >= row["echo_rx_packets"], row
    rows = bfd.ours.json("show bfd peers counters json")
    told = next(r for r in rows if r["peer"] == theirs)
    assert told["echo-packet-input"] >= row["echo_rx_packets"], told
    # Control packets still arrive, so only the missing echo packets show the failure.
    rule = "table inet t { chain c { type filter hook prerouting priority -300; udp dport 3785 drop; }; }\n"
    nft = ["ip", "netns", "exec", bfd.router.far, "nft"]
    subprocess.run([*nft, "-f", "-"], input=rule, text=True, check=True)
    try:
        said = f"session down peer={theirs} dev=wan0 reason=echo-failed"
        eventually(lambda: said in bfd.router.daemon.log(100), 10, what="lost echo packets end it")
    finally:
        subprocess.run([*nft, "delete", "table", "inet", "t"], check=True)
    bfd.ours.configure("bfd", f"peer {theirs} {ends['here']}", "no echo-mode")
    up(bfd, ours, theirs)


@pytest.mark.parametrize(
    "addresses",
    [("10.57.0.1/24", "10.57.0.2/24"), ("2001:db8:57::1/64", "2001:db8:57::2/64"), ("fe80::57:1/64", "fe80::57:2/64")],
    ids=["ipv4", "ipv6", "link_local"],
)
def test_our_router_loops_the_echo_packets_of_its_peer(bfd, addresses):
    """bfdd sends echo packets of IPv4 to its own address, which our router forwards, and those of IPv6
    to our address."""
    ours, theirs = own(bfd, *addresses)
    pair(
        bfd,
        ours,
        theirs,
        **links(ours, theirs),
        theirs_lines=("echo-mode", "echo transmit-interval 200"),
    )
    up(bfd, ours, theirs)
    eventually(
        lambda: counters(bfd, ours)["echo-packet-input"] > 10, 15, what="the peer gets its packets"
    )
    assert counters(bfd, ours)["session-down"] == 0


@pytest.mark.parametrize(
    "addresses", [("169.254.58.1/30", "169.254.58.2/30"), ("fe80::58:1/64", "fe80::58:2/64")], ids=["ipv4", "ipv6"]
)
def test_a_link_local_session_has_no_echo_packets_of_ours(bfd, addresses):
    """No router forwards a packet of a link-local address, so such an echo packet never comes back. For
    the same reason our router announces to an IPv4 peer that it takes none."""
    ours, theirs = own(bfd, *addresses)
    netns.run(bfd.router.far, ["sysctl", "-qw", "net.ipv6.conf.all.forwarding=1", "net.ipv4.ip_forward=1"])
    lines = ("echo-mode", "echo receive-interval 50", "echo transmit-interval 200")
    pair(bfd, ours, theirs, *lines, **links(ours, theirs))
    row = up(bfd, ours, theirs)
    eventually(lambda: bfd.row(theirs)["rx_packets"] > row["rx_packets"] + 12, 20, what="time goes on")
    row = bfd.row(theirs)
    assert (row["state"], row["downs"], row["echo_us"], row["echo_tx_packets"]) == ("up", 0, 0, 0), row
    assert counters(bfd, ours)["session-down"] == 0


def crash(frr):
    """Kill bfdd with SIGKILL, and start it again."""
    frr.kill("bfdd", signal.SIGKILL)
    eventually(lambda: not frr.runs("bfdd"), 5, what="bfdd is gone")
    frr.restart("bfdd")


@pytest.mark.parametrize(
    "last, again",
    [
        (58, lambda frr: frr.restart("bfdd")),
        (59, lambda frr: frr.restart_all()),
        (63, crash),
    ],
    ids=["bfdd", "all of FRR", "bfdd is killed"],
)
def test_a_restart_keeps_the_sessions_on_the_wire(bfd, last, again):
    ours, theirs = own(bfd, f"10.{last}.0.1/24", f"10.{last}.0.2/24")
    pair(bfd, ours, theirs, "detect-multiplier 3")
    up(bfd, ours, theirs)
    bfd.ours.vtysh("write memory")

    def restarted():
        """Return how often both sides saw the session go down, and whether it is the same session."""
        before, was = counters(bfd, ours)["session-down"], bfd.row(theirs)
        again(bfd.ours)
        eventually(
            lambda: {p["status"] for p in bfd.ours.json("show bfd peers json")
                     if p["peer"] == theirs} == {"up"},
            30, what="the new bfdd has the session Up",
        )  # fmt: skip
        row = bfd.row(theirs)
        same = row["discr"] == was["discr"]
        return counters(bfd, ours)["session-down"] - before, row["downs"] - was["downs"], same

    assert undisturbed(bfd, (ours, theirs), 0.9, restarted) == (0, 0, True)


def test_sessions_that_bfdd_does_not_take_back_end_after_ten_seconds(bfd):
    """bfdd is killed and comes back without its configuration. The peer receives AdminDown."""
    ours, theirs = own(bfd, "10.66.0.1/24", "10.66.0.2/24")
    pair(bfd, ours, theirs)
    up(bfd, ours, theirs)
    bfd.ours.vtysh("write memory")
    before, began = counters(bfd, ours)["session-down"], time.monotonic()
    bfd.ours.kill("bfdd", signal.SIGKILL)
    eventually(lambda: not bfd.ours.runs("bfdd"), 5, what="bfdd is gone")
    bfd.ours.start_daemon("bfdd")
    eventually(lambda: peer_row(bfd, ours)["status"] == "down", 30, what="the peer is told")
    assert time.monotonic() - began >= 10
    assert peer_row(bfd, ours)["diagnostic"] == "neighbor signaled session down"
    assert counters(bfd, ours)["session-down"] == before + 1
    eventually(lambda: bfd.router.control.ask("bfd") == [], 20, what="no session is left")
    bfd.ours.vtysh_boot("bfdd")
    up(bfd, ours, theirs)
    bfd.up()


def test_bfdd_shows_our_counters(bfd):
    """bfdd requests the counters of each session. The test reads the dataplane's counters before
    and after."""
    ours, theirs = own(bfd, "10.64.0.1/24", "10.64.0.2/24")
    pair(bfd, ours, theirs)
    up(bfd, ours, theirs)

    def rows():
        said = bfd.router.fpmctl("--json", "show", "bfd").stdout
        return {row["peer"]: row for row in json.loads(said)}

    before = rows()
    told = {row["peer"]: row for row in bfd.ours.json("show bfd peers counters json")}
    after = rows()
    assert set(told) == set(before) == set(after) and len(told) >= 2
    keys = {"control-packet-input": "rx_packets", "control-packet-output": "tx_packets",
            "echo-packet-input": "echo_rx_packets"}  # fmt: skip
    for peer, row in told.items():
        for key, name in keys.items():
            assert before[peer][name] <= row[key] <= after[peer][name], (name, row)
    row = told[theirs]
    assert row["control-packet-input"] > 0 and row["control-packet-output"] > 0, row


def test_a_session_follows_the_address_of_its_interface(bfd):
    """The session names no local address, so the kernel selects its source. The session has the new
    source when the kernel selects another."""
    ours, theirs = own(bfd, "10.60.0.1/24", "10.60.0.2/24")
    pair(bfd, ours, theirs)
    assert up(bfd, ours, theirs)["local"] == ours
    netns.ip_batch(
        ["addr del 10.60.0.1/24 dev wan0", "addr add 10.60.0.5/24 dev wan0"], bfd.router.ctl
    )
    bfd.theirs.configure("bfd", f"no peer {ours}", "peer 10.60.0.5")
    row = up(bfd, "10.60.0.5", theirs)
    assert row["local"] == "10.60.0.5", row


def test_a_session_takes_the_address_that_its_interface_gets_later(bfd):
    if frr_at.version("/") >= (10, 3):
        pytest.skip("bfdd 10.3 and later names an address of the interface itself")
    theirs, ours = "10.83.0.2", "10.83.0.1"
    bfd.ours.configure("bfd", f"peer {theirs} interface wan0")
    eventually(lambda: bfd.row(theirs) is not None, 20, what="the session is there")
    was = bfd.row(theirs)["local"]
    own(bfd, f"{ours}/24", f"{theirs}/24")
    bfd.theirs.configure("bfd", f"peer {ours} interface wan")
    row = up(bfd, ours, theirs)
    assert row["local"] == ours != was, (row, was)


def test_a_planned_restart_keeps_a_session_that_names_no_interface(bfd):
    ours, theirs = own(bfd, "10.61.0.1/24", "10.61.0.2/24")
    fast = ("transmit-interval 50", "receive-interval 50", "detect-multiplier 3")
    pair(bfd, ours, theirs, *fast)
    was = up(bfd, ours, theirs)
    eventually(lambda: bfd.row(theirs)["detect_us"] == 150000, 10, what="the timers are agreed")

    def restarted():
        """Return how often both sides saw the session go down, and our row."""
        before, downs = counters(bfd, ours)["session-down"], bfd.row(theirs)["downs"]
        assert bfd.router.fpmctl("restart").returncode == 0
        eventually(lambda: bfd.row(theirs) is not None, 20, what="the successor has the session")
        row = up(bfd, ours, theirs)
        return counters(bfd, ours)["session-down"] - before, row["downs"] - downs, row

    *downs, row = undisturbed(bfd, (ours, theirs), 0.15, restarted)
    assert (row["discr"], row["by"], downs) == (was["discr"], "forwarders", [0, 0]), row


def test_a_session_stays_up_in_bfdd_when_one_of_its_clients_leaves(bfd):
    """bfdd marks the session Down and sends no message. The daemon then tells bfdd again that the
    session is Up."""
    ours, theirs = own(bfd, "10.82.0.1/24", "10.82.0.2/24")
    pair(bfd, ours, theirs)
    was = up(bfd, ours, theirs)
    before = counters(bfd, ours)["session-down"]

    def told():
        return next(p for p in bfd.ours.json("show bfd peers json") if p["peer"] == theirs)

    router = ["router bgp 65000", f"neighbor {theirs} remote-as 65001"]
    bfd.ours.configure(*router, f"neighbor {theirs} bfd")
    said = lambda: bfd.ours.json(f"show bgp neighbors {theirs} json")[theirs]  # noqa: E731
    eventually(lambda: said()["peerBfdInfo"]["status"] == "Up", 20, what="bgpd uses the session")
    bfd.ours.configure(*router, f"no neighbor {theirs} bfd")
    eventually(lambda: told()["diagnostic"] != "ok", 20, what="bfdd takes the session for Down")
    eventually(lambda: told()["status"] == "up", 20, what="bfdd knows that it is Up")
    row = bfd.row(theirs)
    assert (row["state"], row["discr"], row["downs"]) == ("up", was["discr"], was["downs"]), row
    assert counters(bfd, ours)["session-down"] == before
