# SPDX-License-Identifier: BSD-3-Clause
"""MPLS labels while the daemon or zebra ends and returns: labels that stay lead to the same
neighbor all the time, and each packet leaves with the labels of its own path."""

import time

import pytest

from back import HOST, NET, come_back
from labels import TAKES_LABELS, LabelRouter, Paths, with_labels
from lib.linkwatch import LinkWatch
from lib.wait import eventually
from test_restart import WORST_MS, differences
from zebra import Zebra


@pytest.fixture(name="dut")
def kept_dut(own_dut):
    """A router that takes labels, under the supervisor."""
    dut = own_dut(kind=LabelRouter, supervised=True)
    dut.edit_config(*TAKES_LABELS)
    dut.start()
    return dut


@pytest.fixture(name="paths")
def label_paths(dut):
    """The labels that zebra has announced."""
    paths = Paths(dut, NET, HOST)
    paths.announce()
    return paths


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_labels_are_in_force_before_zebra_is_back(dut, paths, how):
    """kill -9 or `fpmctl restart`, three times under traffic. zebra is away. The next daemon
    forwards by the labels of the checkpoint; a label that was withdrawn is not in it."""
    lan, rate = dut.wires["lan"], 1000
    dut.label(102, dut.hop(dut.wires["alt"], [999]))
    dut.unlabel(102)
    eventually(lambda: dut.fpm()["checkpoint"]["other_tables"] == 3, 5)
    assert dut.fpm()["checkpoint"]["routes"] == 1
    dut.zebra.close()

    with LinkWatch(dut.ctl) as watch:
        for _ in range(3):
            was = dut.daemon.pid()
            with paths.stream(lan, rate) as stream:
                if how == "kill":
                    dut.daemon.crash()
                else:
                    assert dut.fpmctl("restart").returncode == 0
                come_back(dut, was)
                back = stream.sent
                eventually(lambda: stream.sent > back + 300, 10)
            paths.are_right(stream)
            lost = stream.lost(paths.wan)
            assert not [n for n in lost if n > back], "each packet leaves after the return"
            if how == "restart":
                assert len(lost) / rate * 1000 < WORST_MS
            found = dut.fpm()["checkpoint"]
            assert (found["restored"], found["restore_lost"], found["discarded"]) == (4, 0, 0)
            assert differences(dut) == 0
            assert dut.not_forwarded(lan, with_labels(lan.probe(HOST), 102)) == {
                "mpls_no_label": 1
            }
            for wire in (lan, paths.wan):
                wire.clear()
    assert watch.lost_carrier() == []


@pytest.mark.parametrize("pid", ["same", "another"])
def test_no_packet_is_lost_while_zebra_is_away_and_numbers_its_ids_again(dut, paths, pid):
    """The session ends, and the same zebra or another zebra connects, with other ids for its next
    hops. Labels that zebra announces again lose no packet. A label that the same zebra does not
    announce again is swept."""
    lan, old = dut.wires["lan"], dut.zebra
    dut.label(102, dut.hop(paths.wan, [999]))

    with paths.stream(lan) as stream:
        old.close()
        time.sleep(0.2)  # packets leave without zebra
        dut.zebra = Zebra(dut, first_id=5000, pid=old.pid ^ (0x3333 if pid == "another" else 0))
        dut.zebra.connect()
        paths.announce()
        if pid == "same":
            eventually(lambda: dut.fpm()["phase"] == "in-step", 20)
            assert dut.label_row(102) is None
        else:
            assert dut.label_row(102) is not None  # swept later: the peers of another zebra need time
        sent = stream.sent
        eventually(lambda: stream.sent > sent + 200, 5)

    paths.are_right(stream)
    assert stream.lost(paths.wan) == []
    assert differences(dut) == 0


def test_labels_change_between_two_daemons(dut, paths):
    """zebra changes, withdraws and adds labels while no daemon runs. The replay to the next daemon
    has them."""
    lan, wan, alt = (dut.wires[n] for n in ("lan", "wan", "alt"))
    dut.zebra.close()
    come_back(dut, dut.daemon.crash())
    dut.zebra.connect()
    dut.label(100, dut.hop(alt, [400]))
    dut.label(103, dut.hop(wan))
    dut.route(NET, via=wan.peer4, wire=wan)
    eventually(lambda: dut.fpm()["phase"] == "in-step", 20)

    before = dut.counters()
    dut.forwarded(lan, with_labels(lan.probe(HOST), 100), alt)
    dut.forwarded(lan, with_labels(lan.probe(HOST), 103), wan)
    dut.forwarded(lan, lan.probe(HOST), wan)
    assert dut.drops(before) == {}
    assert dut.not_forwarded(lan, with_labels(lan.probe(HOST), 101)) == {"mpls_no_label": 1}
    assert differences(dut) == 0
