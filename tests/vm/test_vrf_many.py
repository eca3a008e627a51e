# SPDX-License-Identifier: BSD-3-Clause
"""The memory of many VRFs with few routes each is proportional to their routes. No table has a
fixed size."""

from lib.wait import eventually

MANY, TEN, TABLE = 256, 10, 3000


def test_256_vrfs_with_ten_routes_each_take_a_few_mib(on_veths, capsys):
    """The bound is for the whole daemon: interfaces, RIB and FIBs."""
    router = on_veths
    router.ready()
    wan = router.wires["wan"]
    nhid = router.zebra.hop(wan.peer4, wan)
    routes = lambda k: router.zebra.speaker.routes("20.0.0.0/28", TEN, nhid, table=TABLE + k)  # noqa: E731

    # The FIB of a VRF also has the prefixes of table local.
    local = len([r for r in router.control.ask("routes", family=4) if r["type"] in ("local", "broadcast")])

    def filled(n):
        rows = [r for r in router.control.ask("fib") if r["vrf"] and r["family"] == "ipv4"]
        return len(rows) == n and min(r["routes"] for r in rows) == TEN + local

    def make(first, last):
        for k in range(first, last):
            routes(k)
        names = [f"many{k}" for k in range(first, last)]
        router.ip(*(f"link add {name} type vrf table {TABLE + k}" for k, name in
                    enumerate(names, first)))  # fmt: skip
        eventually(lambda: filled(last), 60, 0.1, "all in their FIBs")

    # Make the first VRF before the measurement, because it has costs of its own.
    make(0, 1)
    before = router.rss()
    try:
        make(1, 1 + MANY)
        grown = router.rss() - before
    finally:
        router.ip(*(f"link del many{k}" for k in range(1 + MANY)))
    with capsys.disabled():
        print(f"\n{MANY} VRFs of {TEN} routes: {grown >> 10} KiB")
    assert grown < 16 << 20
    for k in range(1 + MANY):
        router.zebra.speaker.routes_del("20.0.0.0/28", TEN, table=TABLE + k)
