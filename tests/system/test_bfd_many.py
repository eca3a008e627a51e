# SPDX-License-Identifier: BSD-3-Clause
"""Many BFD sessions. bfdd loses its messages to one connection beyond 8 KiB at a time. The daemon gets
all sessions all the same. The tests run with the installed FRR, and with a newer FRR if there is
one."""

import os

import pytest

from lib import frr_at
from lib.dut import Dut
from lib.wait import eventually
from router import Router, running

PORT = 50700
SESSIONS = 150
FEW = 10


def peers(n):
    """Return `n` link-local addresses: a session with one needs its interface."""
    return [f"fe80::{0x100 + i:x}" for i in range(n)]


@pytest.fixture(scope="module", params=["installed", "newer"])
def many(request):
    root = "/" if request.param == "installed" else frr_at.NEWER
    if not frr_at.present(root):
        pytest.skip("no bfdd: apt-get install frr" if root == "/" else "no FRR: make frr-root")
    router = Router(name=f"many-{request.param}"[:8], supervised=True)
    with running(router) as made:
        made.stop()
        made.zebra.close()
        frr = frr_at.FrrAt(root, made.ctl, f"{made.dir}/bfdd")
        try:
            frr.start_all("bfdd", bfdd=["--dplaneaddr", f"ipv4:127.0.0.1:{PORT}"])
            made.edit_config(
                "log-level: info", f'bfd: {{dplane: "127.0.0.1:{PORT}"}}\nlog-level: info'
            )
            yield made, frr
        finally:
            frr.destroy()


def configured(n, milliseconds):
    lines = ["bfd", "profile p", f"transmit-interval {milliseconds}", "exit"]
    for peer in peers(n):
        lines += [f"peer {peer} interface wan0", "profile p", "exit"]
    return "\n".join(lines) + "\n"


def rows(router):
    return router.control.ask("bfd")


def connections(router):
    return router.control.ask("version")[0]["bfd_connections"]


def test_all_sessions_of_the_start_come_with_their_interfaces(many):
    router, frr = many
    frr.load(configured(SESSIONS, 700))
    Dut.start(router)  # Router.start() waits until no packet waits for a neighbor
    eventually(
        lambda: [row["dev"] for row in rows(router)] == ["wan0"] * SESSIONS,
        30,
        what="all sessions are known, with their interface",
    )
    assert {row["tx_us"] for row in rows(router)} == {700000}
    # Three connections have the sessions, and a fourth has room for more.
    eventually(lambda: connections(router) == 4, 30, what="connections that are not needed end")
    assert {row["reason"] for row in rows(router)} == {None}


def test_a_change_of_all_sessions_at_once_reaches_each_of_them(many):
    router, frr = many
    frr.configure("bfd", "profile p", "transmit-interval 900")
    eventually(
        lambda: {row["tx_us"] for row in rows(router)} == {900000},
        30,
        what="each session has the new interval",
    )
    assert len(rows(router)) == SESSIONS


def test_sessions_that_are_deleted_at_once_are_all_forgotten(many):
    router, frr = many
    frr.configure("no bfd")
    eventually(lambda: rows(router) == [], 30, what="no session is left")
    frr.configure(*configured(FEW, 800).splitlines())
    eventually(lambda: len(rows(router)) == FEW, 30, what="new sessions come")
    assert {row["dev"] for row in rows(router)} == {"wan0"}


def test_few_sessions_of_the_start_have_their_interfaces_too(many):
    router, frr = many
    router.stop()
    Dut.start(router)
    eventually(lambda: len(rows(router)) == FEW, 30, what="the sessions come again")
    eventually(
        lambda: {(row["dev"], row["reason"]) for row in rows(router)} == {("wan0", None)},
        30,
        what="each session has its interface",
    )
