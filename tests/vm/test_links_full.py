# SPDX-License-Identifier: BSD-3-Clause
"""More VLANs and VRFs than `limits:` allows: those in the table are served, the others are counted,
logged and shown. A refused VLAN or VRF gets a place by itself when others are deleted."""

from types import SimpleNamespace

import pytest

from lib.wait import eventually
from router import Router, running
from test_limits import shown
from test_resources import said, table
from vlans import C, neighbor, tagged, through, vlans

VLANS, VRFS, MORE = 8, 2, 3
NET, HOST = "198.51.100.0/24", "198.51.100.9"


@pytest.fixture(scope="module")
def few():
    """Run a router on veths with small limits."""
    router = Router(name="few")
    # build() writes the file and start() reads it.
    build = router.build

    def with_limits():
        build()
        lines = f"limits:\n  vlans: {VLANS}\n  vrfs: {VRFS}\n"
        router.edit_config("log-level:", lines + "log-level:")

    router.build = with_limits
    with running(router) as dut:
        yield dut


def filled(dut, name, most, refused):
    """Check that the table is full and that fpmctl shows it. The log reports it at most once a second."""
    row = eventually(lambda: (r := table(dut, name))["refused"] >= refused and r, 10)
    assert (row["used"], row["max"], row["key"]) == (most, most, f"limits.{name}")
    eventually(lambda: said(dut, f"table is full table={name} max={most} .*key=limits.{name}")[1], 5)
    assert said(dut, f"table is full table={name}")[0] <= 2
    assert shown(dut, name)[:3] == [name, str(most), str(most)]
    assert shown(dut, name)[4] == f"limits.{name}"


def test_vlans_beyond_the_limit_come_in_when_others_go(few):
    """A frame of a VLAN beyond the limit is dropped with a reason. The other VLANs forward. The
    refused VLAN gets a place when others are deleted."""
    dut, lan, wan = few, few.wires["lan"], few.wires["wan"]
    dut.ready()
    ids = range(101, 101 + VLANS + MORE)
    for n in ids:
        dut.ip(f"link add link wan0 name wan0.{n} up type vlan id {n}",
               f"addr add 10.0.{n}.1/24 dev wan0.{n}")  # fmt: skip
    filled(dut, "vlans", VLANS, MORE)
    last, first = ids[-1], ids[0]
    there = lambda: sum(r["up"] for r in vlans(dut).values())  # noqa: E731
    eventually(lambda: there() == VLANS, 5)
    assert f"wan0.{last}" not in vlans(dut)

    def probe(n):
        return tagged(wan.probe(lan.peer4, src=f"10.0.{n}.2"), (C, n))

    through(wan, probe(first), lan)
    assert dut.not_forwarded(wan, probe(last)) == {"vlan_unknown": 1}
    dut.ip(*(f"link del wan0.{n}" for n in ids[:MORE]))
    eventually(lambda: f"wan0.{last}" in vlans(dut) and there() == VLANS, 15, 0.05)
    through(wan, probe(last), lan)
    going = SimpleNamespace(name=f"wan0.{last}", tap=f"wan0.{last}")
    neighbor(dut, wan, f"10.0.{last}.2", going)
    dut.route(NET, via=f"10.0.{last}.2", wire=going)
    through(lan, lan.probe(HOST), wan, (C, last))
    dut.ip(*(f"link del wan0.{n}" for n in ids[MORE:]))
    eventually(lambda: table(dut, "vlans")["used"] == 0, 10)
    eventually(lambda: said(dut, "table has room again table=vlans")[1] >= 1, 5)


def test_vrfs_beyond_the_limit_come_in_when_others_go(few):
    """Packets from members of a VRF beyond the limit are dropped with a reason. The refused VRF
    gets a place when another is deleted."""
    dut, lan, ext = few, few.wires["lan"], few.wires["ext"]
    dut.ready()
    names = [f"v{n}" for n in range(VRFS + 1)]
    dut.ip(*(f"link add {v} up type vrf table {300 + n}" for n, v in enumerate(names)))
    filled(dut, "vrfs", VRFS, 1)
    known = lambda: {r["name"] for r in dut.control.ask("vrfs")}  # noqa: E731
    eventually(lambda: known() == set(names[:VRFS]), 5)
    for wire in (lan, ext):
        dut.ip(f"link set {wire.tap} master {names[-1]}")
    eventually(lambda: "vrf_no_fib" in dut.not_forwarded(lan, lan.probe(ext.peer4)), 5)

    dut.ip(f"link del {names[0]}")
    eventually(lambda: known() == set(names[1:]), 10, 0.05)
    dut.neighbor(ext.peer4, ext)
    eventually(lambda: dut.forwarded(lan, lan.probe(ext.peer4), ext, timeout=0.5), 10)
    dut.ip(*(f"link del {v}" for v in names[1:]))
    eventually(lambda: table(dut, "vrfs")["used"] == 0, 10)
    eventually(lambda: said(dut, "table has room again table=vrfs")[1] >= 1, 5)
