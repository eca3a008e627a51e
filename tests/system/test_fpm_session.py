# SPDX-License-Identifier: BSD-3-Clause
"""Forwarding continues when the FPM session ends and begins. The daemon counts and survives
garbage."""

import json
import os
import select
import socket
import subprocess

import pytest

from lib import fpm_speaker as fpm
from lib import netns
from lib.freeze import frozen
from lib.wait import eventually, never
from zebra import Zebra

NET, HOST = "198.51.100.0/24", "198.51.100.9"
OTHER, OTHER_HOST = "203.0.113.0/24", "203.0.113.9"
SENTINEL = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"


def test_only_zebra_may_be_zebra(own_dut):
    """A daemon that listens on every address accepts the programs of this host by each of its
    addresses. It refuses and counts other clients, and the open session continues."""
    dut = own_dut()
    dut.edit_config("127.0.0.1:2620", "0.0.0.0:2620")
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    generation = dut.fpm()["generation"]

    # 127.0.0.2 to 127.0.0.1: both addresses are of this host, but they differ, so the daemon
    # refuses this client as it refuses one of another host.
    with netns.open_socket(dut.ctl, socket.AF_INET, socket.SOCK_STREAM) as stranger:
        stranger.settimeout(5)
        stranger.bind(("127.0.0.2", 0))
        stranger.connect(("127.0.0.1", 2620))
        assert stranger.recv(1) == b""

    row = dut.fpm()
    assert (row["strangers"], row["generation"], row["replaced"]) == (1, generation, 0)
    dut.forwarded(lan, lan.probe(HOST), wan)
    with netns.open_socket(dut.ctl, socket.AF_INET, socket.SOCK_STREAM) as own:
        own.connect((lan.ip4, 2620))
        eventually(lambda: dut.fpm()["replaced"] == 1, 5)


def test_who_is_listed_is_let_in(own_dut):
    """fpm.peer allows a zebra on another host by its address. This zebra teaches routes, and no
    other client does."""
    dut = own_dut()
    dut.edit_config("fpm:\n", "fpm:\n  peer: 127.0.0.2\n")
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    generation = dut.fpm()["generation"]

    with netns.open_socket(dut.ctl, socket.AF_INET, socket.SOCK_STREAM) as stranger:
        stranger.settimeout(5)
        stranger.bind(("127.0.0.3", 0))
        stranger.connect(("127.0.0.1", 2620))
        assert stranger.recv(1) == b""
    with netns.open_socket(dut.ctl, socket.AF_INET, socket.SOCK_STREAM) as listed:
        listed.bind(("127.0.0.2", 0))
        listed.connect(("127.0.0.1", 2620))
        eventually(lambda: dut.fpm()["generation"] == generation + 1, 5)
        hop = fpm.nexthop_message(9, gateway=wan.peer4, oif=dut.ifindex(wan))
        listed.sendall(fpm.frame(hop) + fpm.frame(fpm.route_message(NET, nhid=9)))
        dut.in_force(NET)
        dut.forwarded(lan, lan.probe(HOST), wan)

    assert dut.fpm()["strangers"] == 1


SPEAKS = """
import socket, sys
with socket.create_connection(("127.0.0.1", 2620), 10) as sock:
    sock.settimeout(60)
    sock.sendall(bytes.fromhex(sys.argv[1]))
    try:
        print(sock.recv(1))
    except ConnectionResetError:
        print(b"")  # what it had said was not read
"""


def speak_as(dut, user, *octets):
    """Run a program of that user in FRR's namespace. It reports the end of its session."""
    argv = ["ip", "netns", "exec", dut.ctl, "setpriv", "--reuid", user, "--clear-groups"]
    return subprocess.Popen(
        [*argv, "/usr/bin/python3", "-c", SPEAKS, b"".join(octets).hex()],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_program_of_another_user_is_shut_out(own_dut):
    """The daemon accepts a program of this host as zebra if its user is root or in fpm.users. It
    refuses another user and does not read its routes, and the open session continues."""
    dut = own_dut()
    dut.edit_config("fpm:\n", 'fpm:\n  users: ["4321"]\n')
    dut.start()
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)
    generation = dut.fpm()["generation"]
    hole = fpm.frame(fpm.route_message(NET, rtm_type=fpm.RTN_BLACKHOLE))

    with speak_as(dut, "1234", hole) as stranger:
        assert stranger.communicate(timeout=20)[0] == "b''\n"  # the daemon closed the connection

    row = dut.fpm()
    assert (row["strangers"], row["generation"], row["connected"]) == (1, generation, True)
    told = "fpm: connection refused reason=user uid=1234 see=fpm.users missed=0"
    eventually(lambda: told in dut.daemon.log(20), 5, 0.01)
    dut.forwarded(lan, lan.probe(HOST), wan)
    dut.zebra.close()
    eventually(lambda: not dut.fpm()["connected"], 5)
    assert "1 connection was refused" in dut.fpmctl("show", "fpm").stdout
    with speak_as(dut, "4321", hole) as listed:
        eventually(lambda: dut.fpm()["generation"] == generation + 1, 10)
        eventually(lambda: dut.route_row(NET)["state"] == "blackhole", 10)
        dut.zebra.connect()  # this session replaces the session of the listed user
        assert listed.communicate(timeout=20)[0] == "b''\n"
    assert dut.fpm()["strangers"] == 1


def test_loss_of_the_session_loses_no_packet(dut, lan, wan):
    """The routes of zebra stay in force while there is no session, and no packet is lost."""
    dut.route(NET, via=wan.peer4, wire=wan)

    with dut.stream(lan, HOST) as stream:
        dut.zebra.close()
        eventually(lambda: not dut.fpm()["connected"], 2)
        sent = stream.sent
        eventually(lambda: stream.sent > sent + 500)

    assert stream.lost(wan) == []
    dut.zebra.connect()


@pytest.mark.parametrize("restarted", [False, True], ids=["reconnect", "zebra restarted"])
@pytest.mark.parametrize("sentinel", [False, True], ids=["quiet", "sentinel"])
def test_what_a_replay_does_not_confirm_is_swept(dut, lan, wan, alt, restarted, sentinel):
    """The daemon marks and sweeps: stale routes go, and kept routes lose no packet. New ids for the
    same next hops move no packet (a restarted zebra counts from the start again)."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(OTHER, via=alt.peer4, wire=alt)
    swept = dut.fpm()["swept_routes"]

    with dut.stream(lan, HOST) as stream:
        dut.zebra.close()
        if restarted:
            old, dut.zebra = dut.zebra, Zebra(dut, first_id=5000, pid=os.getpid() ^ 0x5555)
            dut.zebra.connect()
            dut.zebra.prefixes.update(old.prefixes)
        else:
            dut.zebra.connect()
        # In a replay, groups come before their members, and routes come last.
        dut.zebra.group([6000], nhid=6001)
        dut.zebra.hop(wan.peer4, wan, nhid=6000)
        dut.zebra.add(NET, 6001)
        if sentinel:
            dut.zebra.add(SENTINEL, rtm_type=fpm.RTN_BLACKHOLE)
        eventually(
            lambda: dut.route_row(OTHER) is None, 15, what="the stale route is swept"
        )

    assert stream.lost(wan) == []
    assert dut.fpm()["swept_routes"] == swept + 1
    assert dut.route_row(NET)["stale"] is False
    assert dut.not_forwarded(lan, lan.probe(OTHER_HOST)) == {"no_route": 1}


def test_what_a_zebra_that_is_ended_withdraws_is_not_heard(dut, lan, wan, alt):
    """After `fpmctl hold` and a stop of FRR, routes stay and lose no packet. The daemon refuses the
    old zebra and accepts the next zebra at once. It sweeps the routes that the next zebra does not
    repeat, as after any restart."""
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(OTHER, via=alt.peer4, wire=alt)
    old = dut.zebra

    with dut.stream(lan, HOST) as stream:
        assert dut.fpmctl("hold", "60").returncode == 0
        assert dut.fpm()["state"] == "held"
        assert old.speaker.wait_closed(5)
        assert "fpm: hold started nl_pid=" in dut.daemon.log(100)
        old.connect()
        old.speaker.routes_del("198.51.100.0/24", 1)
        assert old.speaker.wait_closed(5)
        assert dut.fpm()["state"] == "held" and dut.route_row(NET)["source"] == "zebra"
        assert "a hold refuses zebra" in dut.fpmctl("show", "fpm").stdout
        dut.zebra = Zebra(dut, first_id=5000, pid=old.pid ^ 0x3333)
        dut.zebra.connect()
        dut.zebra.prefixes.update(old.prefixes)
        dut.zebra.route(NET, wan.peer4, wan)
        eventually(lambda: dut.route_row(OTHER) is None, 15, what="it was not said again")

    assert stream.lost(wan) == []
    eventually(lambda: dut.fpm()["state"] == "in-step", 5, what="the sweep is over")


def test_hold_has_answered_when_it_holds(dut, wan):
    """FRR's unit ends FRR as soon as `fpmctl hold` has answered. So the daemon answers only when
    fpm and rib, both without CPU time here, have begun the hold and recorded it."""
    dut.route(NET, via=wan.peer4, wire=wan)

    for late in ("fdp-fpm", "fdp-rib"):
        with socket.socket(socket.AF_UNIX) as asks:
            asks.settimeout(5)
            asks.connect(dut.socket)
            with frozen(dut.daemon.pid(), late):
                asks.send(b'{"do": "hold", "seconds": 60}\n')
                # ui has read the request by the time it answers another one
                assert dut.control.ask("counters") and dut.control.ask("counters")
                if late == "fdp-rib":
                    eventually(lambda: dut.fpm()["state"] == "held", 5, 0.01)
                never(lambda: select.select([asks], [], [], 0)[0], 0.2)
                assert (dut.fpm()["state"] == "held") == (late == "fdp-rib")
            assert json.loads(asks.recv(4096)) == {"end": True, "rows": 0}
        assert dut.fpm()["state"] == "held"
        assert dut.fpmctl("hold", "0").returncode == 0
        dut.zebra.connect()
        dut.route(NET, via=wan.peer4, wire=wan)
    assert dut.fpmctl("hold", "0").returncode == 0
    eventually(lambda: dut.fpm()["state"] != "held", 5, 0.01)
    dut.zebra.connect()


def test_a_hold_of_an_unknown_zebra_is_refused_with_a_reason(own_dut):
    """`fpmctl hold` fails and says so when no zebra has sent a message, so that an operator does
    not restart FRR as if the routes were kept."""
    dut = own_dut()
    dut.start()
    dut.zebra.close()

    said = dut.fpmctl("hold")

    assert (said.stdout, said.returncode) == ("", 3)
    assert said.stderr.startswith("fpmctl: nothing to hold: no zebra has sent a message yet")
    assert dut.fpmctl("hold", "0").returncode == 0
    assert dut.fpm()["state"] != "held"


def test_a_held_zebra_is_accepted_when_the_time_is_over(dut, wan):
    """When FRR was not restarted after a hold, the daemon accepts its zebra again after the time of
    the hold or after `hold 0`."""
    dut.route(NET, via=wan.peer4, wire=wan)
    for words in (["hold", "1"], ["hold", "3600"], ["hold", "0"]):
        done = dut.fpmctl(*words)
        assert done.returncode == 0 and ("The hold is over" in done.stdout) == (words[1] == "0")
        if words[1] != "3600":
            eventually(lambda: dut.fpm()["state"] == "away", 5)
        else:
            eventually(lambda: dut.fpm()["state"] == "held", 5)
    done = dut.fpmctl("hold", "0")
    assert (done.returncode, done.stdout) == (0, "There was no hold: nothing has changed.\n")
    dut.zebra.connect()
    dut.route(NET, via=wan.peer4, wire=wan)

    for word in ("3601", "-1", "soon", "1h"):
        assert dut.fpmctl("hold", word).returncode == 2
    with pytest.raises(LookupError, match="0 to 3600"):
        dut.control.request({"do": "hold", "seconds": 3601})
    with pytest.raises(LookupError, match="goes with hold"):
        dut.control.request({"do": "replay", "seconds": 1})


def test_a_replayed_route_ahead_of_its_next_hop_loses_nothing(dut, lan, wan):
    """In a replay a route may precede its next-hop object, because live updates overtake zebra's
    walk. The old next hop stays in force until the id is announced."""
    dut.route(NET, via=wan.peer4, wire=wan)

    with dut.stream(lan, HOST) as stream:
        dut.zebra.close()
        dut.zebra.connect()
        dut.zebra.add(NET, 6000)
        sent = stream.sent
        eventually(lambda: stream.sent > sent + 200)
        dut.zebra.hop(wan.peer4, wan, nhid=6000)

    assert stream.lost(wan) == []


def test_a_zebra_without_routes_sweeps_them_all(dut, wan):
    """A zebra that connects and replays nothing confirms nothing: the daemon sweeps all routes
    after the silence."""
    dut.route(NET, via=wan.peer4, wire=wan)

    dut.zebra.close()
    dut.zebra.connect()

    eventually(lambda: dut.route_row(NET) is None, 5, what="all routes are swept")


def test_stale_routes_are_marked_until_they_are_swept(dut, wan):
    """`stale` marks the routes that a replay has not confirmed, until the sweep."""
    dut.route(NET, via=wan.peer4, wire=wan)
    assert dut.route_row(NET)["stale"] is False

    dut.zebra.close()
    dut.zebra.connect()
    dut.zebra.hop(wan.peer4, wan, nhid=7)

    eventually(lambda: dut.route_row(NET)["stale"] is True, 1, 0.005)
    dut.zebra.add(NET, 7)
    eventually(lambda: dut.route_row(NET)["stale"] is False, 1, 0.005)


@pytest.mark.smoke
def test_a_second_client_replaces_the_first(dut, lan, wan):
    """The daemon has one session at a time: the newest client is zebra."""
    dut.route(NET, via=wan.peer4, wire=wan)
    before = dut.fpm()["replaced"]

    with dut.stream(lan, HOST) as stream:
        second = Zebra(dut, first_id=9000)
        second.connect()
        assert dut.zebra.speaker.wait_closed(3), "the first session is closed"
        second.route(NET, wan.peer4, wan)
        second.route(OTHER, wan.peer4, wan)
        dut.in_force(OTHER)

    assert stream.lost(wan) == []
    assert dut.fpm()["replaced"] == before + 1
    second.flush()
    second.close()
    dut.zebra.connect()


def _is_closed(dut):
    return dut.zebra.speaker.wait_closed(3)


BROKEN = {
    "version 2": b"\2\1\0\x20" + bytes(28),
    "protobuf": b"\1\2\0\x20" + bytes(28),
    "length 0": b"\1\1\0\0",
    "length 3": b"\1\1\0\3" + bytes(8),
    "text": b"GET / HTTP/1.1\r\nHost: r1\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_frame_header_closes_the_session(dut, lan, wan, name):
    """The daemon closes and counts a session with a broken frame header, and never searches for the
    next frame. Forwarding goes on, and the daemon accepts a new session."""
    dut.route(NET, via=wan.peer4, wire=wan)
    before = dut.fpm()["bad_frames"]

    dut.zebra.raw(BROKEN[name])

    assert _is_closed(dut)
    assert dut.fpm()["bad_frames"] == before + 1
    dut.forwarded(lan, lan.probe(HOST), wan)
    dut.zebra.connect()
    dut.route(OTHER, via=wan.peer4, wire=wan)


def _with_length(message, length):
    return length.to_bytes(4, "little") + message[4:]


def malformed_messages():
    """Return {name: octets inside a right frame} of messages that are malformed."""
    route = fpm.route_message(NET, nhid=1)
    hop = fpm.nexthop_message(1, gateway="192.0.2.66", oif=1)
    head = bytes([2, 24, 0, 0, 254, 186, 0, 1]) + bytes(4)
    return {
        "nlmsg_len beyond the frame": _with_length(route, 4096),
        "nlmsg_len below its header": _with_length(route, 8),
        "nlmsg_len 0": _with_length(route, 0),
        "message of 5 octets": route[:5],
        "rtmsg cut": fpm.message(fpm.RTM_NEWROUTE, b"\2\x18\0\0"),
        "attribute beyond the message": fpm.message(
            fpm.RTM_NEWROUTE, head + b"\xff\0\1\0\1\2"
        ),
        "attribute of length 0": fpm.message(fpm.RTM_NEWROUTE, head + bytes(8)),
        "prefix of 33 bits": fpm.message(
            fpm.RTM_NEWROUTE, bytes([2, 33]) + head[2:] + fpm.attr(1, bytes(4))
        ),
        "address of 2 octets": fpm.message(fpm.RTM_NEWROUTE, head + fpm.attr(1, b"\1\2")),
        "no destination": fpm.message(fpm.RTM_NEWROUTE, head + fpm.attr(30, 1)),
        "next hop without an id": fpm.message(fpm.RTM_NEWNEXTHOP, bytes(8)),
        "id of 1 octet": fpm.message(fpm.RTM_NEWNEXTHOP, bytes(8) + fpm.attr(1, b"\1")),
        "group of 5 octets": fpm.message(
            fpm.RTM_NEWNEXTHOP, bytes(8) + fpm.attr(1, 3) + fpm.attr(2, bytes(5))
        ),
        "gateway of 3 octets": fpm.message(
            fpm.RTM_NEWNEXTHOP, b"\2" + bytes(7) + fpm.attr(1, 3) + fpm.attr(6, b"abc")
        ),
        "multipath cut": fpm.message(
            fpm.RTM_NEWROUTE, head + fpm.attr(1, bytes(4)) + fpm.attr(9, b"\x40\0\0\0")
        ),
        "next hop cut": hop[:20],
    }


@pytest.mark.parametrize("name", list(malformed_messages()))
def test_a_malformed_message_is_survived(dut, lan, wan, name):
    """The daemon skips a malformed message or closes the session, and counts it. Forwarding goes
    on, and a replay restores the state."""
    dut.route(OTHER, via=wan.peer4, wire=wan)
    before = dut.fpm()

    dut.zebra.raw(fpm.frame(malformed_messages()[name]))
    try:
        dut.zebra.add("2001:db8:f000::/48", rtm_type=fpm.RTN_BLACKHOLE)
    except OSError:
        pass  # the daemon has closed the session

    def judged():
        now = dut.fpm()
        return not now["connected"] or now["routes"] > before["routes"]

    eventually(judged, 3, 0.01)
    now = dut.fpm()
    keys = ("malformed", "bad_frames", "skipped_type", "skipped_route")
    assert sum(now[k] - before[k] for k in keys) >= 1, "counted"
    if not now["connected"]:
        dut.zebra.connect()
    dut.forwarded(lan, lan.probe(OTHER_HOST), wan)


@pytest.mark.smoke
def test_groups_inside_groups_lead_nowhere(dut, lan):
    """Groups are flat (doc/fpm.md, 3.2). The daemon does not follow two groups that contain each other
    or a group that contains itself: their routes are unresolved, and the session goes on."""
    for nhid, member in ((7001, 7001), (7002, 7003), (7003, 7002)):
        dut.zebra.group([member], nhid=nhid)
    dut.route(NET, nhid=7001)
    dut.route(OTHER, nhid=7002)

    drops = dut.not_forwarded(lan, lan.probe(HOST), lan.probe(OTHER_HOST))

    assert drops == {"unresolved_nh": 2}
    assert {dut.route_row(net)["state"] for net in (NET, OTHER)} == {"unresolved"}
    assert dut.fpm()["connected"]


def test_truncated_frames_and_sudden_ends(dut, lan, wan):
    """A session that ends in the middle of a frame has no effect on the next session."""
    dut.route(OTHER, via=wan.peer4, wire=wan)
    whole = fpm.frame(fpm.route_message("198.51.100.0/25", rtm_type=fpm.RTN_BLACKHOLE))

    for cut in range(1, len(whole), 3):
        dut.zebra.raw(whole[:cut])
        dut.zebra.close()
        dut.zebra.connect()

    dut.route(OTHER, via=wan.peer4, wire=wan)
    dut.forwarded(lan, lan.probe(OTHER_HOST), wan)
    assert dut.route_row("198.51.100.0/25") is None
