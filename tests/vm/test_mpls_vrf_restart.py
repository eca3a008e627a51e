# SPDX-License-Identifier: BSD-3-Clause
"""The edge of L3VPNs while its daemon ends and returns and zebra is away: the labels of two customers
with equal addresses, and the labels of their routes."""

import pytest

from labels import LabelRouter, entries_of, with_labels
from lib import netns
from lib.wait import eventually
from router import running
from test_mpls_vrf import CUSTOMER, MINE, MODULES, THEIRS, customer_make, device
from test_restart import WORST_MS
from vrfs import BEFORE, HOST, NET, TABLE, row

RATE = 300  # packets a second of each stream


@pytest.fixture
def edge():
    """Run the router under the supervisor, with the routes and the labels of both customers."""
    netns.command(["modprobe", "-a", *MODULES])
    with running(LabelRouter(name="pe", supervised=True)) as router:
        router.ready()
        netns.sysctl(router.ctl, {"net.mpls.platform_labels": 1000, "net.mpls.conf.wan0.input": 1})
        wan = router.wires["wan"]
        for vrf, labels in THEIRS.items():
            customer_make(router, vrf)
            hop = router.zebra.hop(wan.peer4, wan, labels=labels)
            for net in NET.values():
                router.zebra.add(net, hop, table=TABLE[vrf])
            router.label(MINE[vrf], {"oif": device(router, vrf)})
        yield router
    netns.command(["modprobe", "-r", *MODULES])


def is_whole(router):
    """Return True if all ports are up, and each VRF has its own address and its routes."""
    if not all(port["link"] == "up" for port in router.control.ask("ports")):
        return False
    own = f"{BEFORE[4].format(1)}/32"
    rows = [row(router, vrf, prefix) for vrf in CUSTOMER for prefix in (own, *NET.values())]
    return all(rows) and all(r["state"] in ("local", "forwarding") for r in rows)


def streams_of(router):
    """Return a stream from each customer to the other edge, and one from there to both in turn."""
    wan = router.wires["wan"]
    into = {vrf: router.stream(router.wires[name], HOST[4], rate=RATE) for vrf, name in CUSTOMER.items()}
    dress = [lambda probe, label=label: with_labels(probe, label) for label in MINE.values()]
    return into, router.stream(wan, BEFORE[4].format(2), rate=RATE, dress=dress)


def are_right(router, into, out):
    """Assert that each packet that left did so once, with the labels of its VRF or to its customer."""
    wan, wires = router.wires["wan"], router.wires
    for vrf, stream in into.items():
        assert stream.arrived(*(w for w in wires.values() if w not in (wan, stream.wire))) == {}
        assert set(stream.arrived(wan).values()) == {1}
        for frame in wan.got(stream.mark):
            assert [e[0] for e in entries_of(frame)] == THEIRS[vrf], (vrf, frame.hex())
    assert out.arrived(wires["ext"]) == {}
    for turn, (vrf, name) in enumerate(CUSTOMER.items()):
        came = out.arrived(wires[name])
        assert set(came.values()) == {1} and {n % 2 for n in came} == {turn}, vrf


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_customers_keep_their_labels_while_the_daemon_ends_and_zebra_is_away(edge, how):
    """kill -9 or `fpmctl restart`, three times under traffic in both directions. The next daemon forwards by
    the labels of the checkpoint. No packet goes to the other customer, or gets labels of the other VRF."""
    dut, wan = edge, edge.wires["wan"]
    eventually(lambda: is_whole(dut), 10, 0.01, "both VRFs")
    n = len(MINE) + len(THEIRS) * len(NET)
    eventually(lambda: dut.fpm()["checkpoint"]["other_tables"] == n, 5, 0.05, "the checkpoint")
    dut.zebra.close()

    for _ in range(3):
        was = dut.daemon.pid()
        into, out = streams_of(dut)
        streams = [*into.values(), out]
        with streams[0], streams[1], out:
            if how == "kill":
                dut.daemon.crash()
            else:
                assert dut.fpmctl("restart").returncode == 0
            dut.control.close()
            dut.daemon.back(was)
            eventually(lambda: is_whole(dut), 10, 0.01, "both VRFs again")
            back = [stream.sent for stream in streams]
            more = lambda b=back, s=streams: all(x.sent > y + RATE / 3 for x, y in zip(s, b))  # noqa: E731
            eventually(more, 10, 0.05, "more packets")
        are_right(dut, into, out)
        for stream, begin in zip(streams, back):
            outs = [wan] if stream is not out else [dut.wires[name] for name in CUSTOMER.values()]
            lost = stream.lost(*outs)
            assert not [number for number in lost if number > begin], "each packet leaves after the return"
            if how == "restart":
                assert len(lost) / RATE * 1000 < WORST_MS
        found = dut.fpm()["checkpoint"]
        assert (found["restored"], found["restore_lost"], found["discarded"]) == (n, 0, 0)
        for wire in dut.wires.values():
            wire.clear()
