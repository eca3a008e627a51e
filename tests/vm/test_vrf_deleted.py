# SPDX-License-Identifier: BSD-3-Clause
"""A VRF of the kernel is deleted while it has routes of the kernel. Linux deletes some of them, and keeps
the routes without a device in its table. Our router has what Linux has, before and afterwards."""

from lib import netns
from lib.wait import eventually
from vrfs import BEHIND, HOST, NET, TABLE, add, enslave, goes, lines_of, row, vrfs
from vrfs import machine, router, two  # noqa: F401

REFUSED = {4: "203.0.113.0/24", 6: "2001:db8:b::/48"}
RED = f"table {TABLE['red']}"


def kept_by_linux(router, family):
    """Return the prefixes that the table of the VRF has in Linux."""
    shown = netns.run(router.ctl, ["ip", f"-{family}", "route", "show", *RED.split()], check=False)
    words = [line.split() for line in shown.splitlines()]
    return {w[1] if w[0] in ("blackhole", "unreachable") else w[0] for w in words if w}


def kept_here(router, family):
    """Return the prefixes of the table that our router knows."""
    rows = router.control.ask("routes", all_tables=True)
    return {r["prefix"] for r in rows if r["table"] == TABLE["red"] and (":" in r["prefix"]) == (family == 6)}


def test_routes_of_the_kernel_in_a_vrf_that_is_deleted(two, family):
    """Routes by a member go with the VRF, and a route that refuses stays for the next VRF of this
    table. Packets take no route of the deleted VRF."""
    lan, wan = two.wires["lan"], two.wires["wan"]
    six = "-6 " if family == 6 else ""
    two.ip(
        f"{six}route add {NET[family]} via {BEHIND[family].format(2)} dev wan0 {RED}",
        f"{six}route add blackhole {REFUSED[family]} {RED}",
    )
    eventually(lambda: row(two, "red", NET[family]) and row(two, "red", REFUSED[family]), 5, 0.01)
    goes(two, lan, wan, HOST[family])

    two.ip("link del red")
    eventually(lambda: vrfs(two)["lan0"] is None, 5, 0.01, "in no VRF")
    gone = lambda: NET[family] not in kept_here(two, family)  # noqa: E731
    eventually(gone, 5, 0.01, "the route by a member is gone")
    assert NET[family] not in kept_by_linux(two, family)
    two.not_forwarded(lan, lan.probe(HOST[family]))

    add(two, "red")
    enslave(two, "red", lan)
    enslave(two, "red", wan)
    two.ip(*lines_of(two, "red")[2:])
    both = lambda: row(two, "red", REFUSED[family]) is not None  # noqa: E731
    stays = REFUSED[family] in kept_by_linux(two, family)
    eventually(lambda: both() == stays, 5, 0.01, f"the route that refuses stays: {stays}")
    assert row(two, "red", NET[family]) is None
    two.ip(f"{six}route add {NET[family]} via {BEHIND[family].format(2)} dev wan0 {RED}")
    eventually(lambda: row(two, "red", NET[family]), 5, 0.01)
    goes(two, lan, wan, HOST[family])
    assert two.control.ask("audit")[-1]["differences"] == 0
    two.ip(f"{six}route del {NET[family]} {RED}")
    if stays:
        two.ip(f"{six}route del blackhole {REFUSED[family]} {RED}")
