# SPDX-License-Identifier: BSD-3-Clause
"""Tables fit 80 columns with the longest there can be: IPv6 addresses and names of interfaces
without an end, counters of years, limits at their maximum. The rows are the daemon's own with
such values in them, told to fpmctl by somebody in its place."""

import subprocess

import pytest

from impostor import Impostor

ADDRESS, NAME = "2001:db8:ffff:ffff:ffff:ffff:ffff:%04x", "customer-4094.0"
COUNTER = 987_654_321_012_345
LONG = {
    "name": NAME, "dev": NAME, "vrf": NAME, "on": NAME, "via": ADDRESS % 2,
    "address": ADDRESS % 2, "addresses4": "255.255.255.255", "addresses6": ADDRESS % 2,
    "addresses": [ADDRESS % 3 + "/128", "192.0.2.1/24", ADDRESS % 4 + "/128"],
    "weight": 65535, "alive": False, "stale": True, "absent": True, "mtu": 65535,
    "ifindex": 9_999_999, "vlan": "4094.4094", "up": False, "link": "down", "cpus": [127] * 16,
    "device": "net_af_packet,iface=customer-4094.0", "queues": 16, "forwarding": "ipv4",
    "rss": "ip tcp udp sctp tunnel l2", "cpu": 1023, "tid": 4_194_303, "routes": 99_999_999,
    "nodes": 99_999_999, "leaves": 99_999_999, "bytes": 900 << 30, "free_bytes": 900 << 30,
    "radix_bytes": 900 << 30, "group": 1_048_575, "nexthop_id": 9_999_999, "rate": 10_000_000,
    "burst": 1_000_000, "source_rate": 10_000_000, "source_burst": 1_000_000,
}  # fmt: skip
COUNTED = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "rx_errors",
           "tx_errors", "dropped", "value", "passed", "policed", "over_share", "ring_full")  # fmt: skip
RATES = {"ports", "vrfs", "counters", "drops", "punt", "threads"}
ASKED = ["ports", "interfaces", "routes", "fib", "vrfs", "nexthops", "groups", "neighbors", "counters",
         "drops", "punt", "cycles", "threads", "memory", "fpm"]  # fmt: skip


def stretched(value, key=None, named=False):
    """A row with the longest values of its keys; names only where they are an interface's."""
    if isinstance(value, dict):
        return {k: stretched(v, k, named) for k, v in value.items()}
    if key == "name" and not named:
        return value
    if key == "prefix":
        return (ADDRESS % 1 + "/128") if ":" in value else "255.255.255.255/32"
    if key in COUNTED:
        return COUNTER
    if key in LONG:
        return LONG[key]
    return [stretched(v, None, named) for v in value] if isinstance(value, list) else value


def moving(rows):
    """These rows to every question; counters move between one answer and the next."""

    def answer(request):
        assert "show" in request
        said = [dict(row) for row in rows]
        for row in rows:
            row |= {k: row[k] + 10**12 for k in COUNTED if k in row}
        return said

    return answer


@pytest.mark.parametrize("what", ASKED)
def test_the_longest_values_fit_80_columns(dut, wan, lan, what, tmp_path):
    """No line is longer, and every value is still there, unbroken."""
    zebra = dut.zebra
    hops = [zebra.hop(wan.peer4, wan), zebra.hop(lan.peer4, lan)]
    dut.route("198.51.100.0/24", nhid=zebra.group(hops))
    dut.route("2001:db8:f000::/36", via=wan.peer6, wire=wan)
    named = what in ("ports", "interfaces")
    rows = [stretched(row, named=named) for row in dut.control.ask(what)]
    if what == "cycles":
        rows = [{"thread": "fwd-63", "cpu": 1023, "stage": "adjacency", "cycles": 10**15,
                 "packets": 10**6, "bursts": 10**4}]  # fmt: skip
    if what == "vrfs":  # of which a kernel may have none
        rows = [{"name": NAME, "table": 2**32 - 2, "published": False, "stale": 99_999_999,
                 "replayed": False, "rx_packets": COUNTER, "rx_bytes": COUNTER,
                 "dropped": COUNTER, "fib4": {"routes": 99_999_999},
                 "fib6": {"routes": 99_999_999}}]  # fmt: skip
    path = str(tmp_path / "impostor.sock")
    impostor = Impostor(path, moving(rows))
    try:
        for words in [[], ["--rates=0.1"]] if what in RATES else [[]]:
            every = ["all"] if what in ("counters", "drops") else []
            done = dut.fpmctl(*words, "show", what, *every, socket_path=path)

            assert (done.returncode, done.stderr) == (0, "")
            assert [x for x in done.stdout.splitlines() if len(x) > 80] == []
            said = set(done.stdout.split())
            assert not rows or {w for w in wanted(what)} <= said, done.stdout
    finally:
        impostor.close()


def test_a_long_answer_needs_no_memory(dut, tmp_path):
    """100,000 routes, 30 MiB of JSON and 100 as objects, are printed as they come: with 32 MiB
    of data at most."""
    row = {
        "prefix": "198.18.0.0/15", "table": 254, "vrf": None, "source": "zebra",
        "protocol": "bgp", "type": "unicast", "nexthop_id": 7, "group": 9, "stale": False,
        "state": "forwarding", "mtu": None, "nexthops": [],
    }  # fmt: skip
    path, out = str(tmp_path / "impostor.sock"), tmp_path / "out"
    impostor = Impostor(path, lambda _: [row] * 100_000)
    try:
        for words in (["--json", "show", "routes"], ["show", "routes"]):
            argv = ["prlimit", f"--data={32 << 20}", dut.daemon.ctl, "-s", path, *words]
            with open(out, "wb") as file:
                subprocess.run(argv, stdout=file, check=True, timeout=60)
            assert len(out.read_bytes().splitlines()) >= 100_000
    finally:
        impostor.close()


def wanted(what):
    """Words that have to be in a table of such values."""
    of = {
        "ports": [NAME, ADDRESS % 2],
        "interfaces": [NAME, ADDRESS % 3 + "/128", "192.0.2.1/24", ADDRESS % 4 + "/128"],
        "routes": [ADDRESS % 1 + "/128", ADDRESS % 2, NAME, "65535", "(dead)", "(stale)"],
        "nexthops": [ADDRESS % 2, NAME, "65535", "(dead)"],
        "neighbors": [ADDRESS % 2, NAME],
        "fib": [NAME, "99999999"],
        "vrfs": [NAME, "4294967294", "99999999"],
    }
    return of.get(what, [])
