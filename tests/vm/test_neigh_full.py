# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's table of neighbors is full of entries that it does not delete, and it refuses
new ones (ENOBUFS). The limits are the machine's, not a namespace's
(net.ipv4.neigh.default.gc_thresh3), so this test needs a guest."""

import contextlib
import re

import pytest

from gateways import case
from lib import netns
from lib.wait import eventually
from wire import token_of

FULL = 200  # the number of neighbors that the kernel accepts in the test
AN_HOUR = 3600000


@pytest.fixture
def dut(on_veths):
    """Return a router in its standard state."""
    on_veths.ready()
    return on_veths


def limit(family):
    """Return the file of the kernel's limit."""
    return f"/proc/sys/net/ipv{family}/neigh/default/gc_thresh3"


def read(path):
    """Return the content of a file of the kernel's."""
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, text):
    """Write to a file of the kernel's."""
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


@contextlib.contextmanager
def kernel_is_full(dut, family):
    """Fill the kernel's table with neighbors on ext, all reachable for an hour."""
    ext, was = dut.wires["ext"], read(limit(family))
    key = f"net.ipv{family}.neigh.{ext.tap}.base_reachable_time_ms"
    host = "203.0.113.{}" if family == 4 else "2001:db8:e::{:x}"
    netns.sysctl(dut.ctl, {key: AN_HOUR})
    write(limit(family), FULL)
    try:
        with pytest.raises(netns.CommandError, match="No buffer space"):
            dut.ip(*(f"neigh add {host.format(n)} lladdr 02:55:00:00:00:{n:02x} dev {ext.tap}"
                     " nud reachable" for n in range(1, 250)))  # fmt: skip
        yield
    finally:
        write(limit(family), was)
        dut.ip(f"neigh flush dev {ext.tap} nud reachable")
        netns.sysctl(dut.ctl, {key: 30000})


def refusals(dut):
    """Return (most lines of the log about refusals in a second, all of them, the last one)."""
    found = re.findall(r"^(\S{19}).*(neigh: kernel refuses to resolve .*)$", dut.log(4000), re.M)
    seconds = [second for second, _ in found]
    return max(map(seconds.count, seconds), default=0), len(found), found[-1][1] if found else ""


def found(dut, at, gateway=None):
    """Return the frame if a packet for `at` leaves on wan now. Otherwise raise an error with
    all facts about its neighbor."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    lan.send(probe := lan.probe(at))
    try:
        return wan.expect_raw(token_of(probe), 0.2)
    except AssertionError as err:
        who = gateway or at
        shown = netns.command(["ip", "-n", dut.ctl, "neigh", "show", who])
        raise LookupError(
            f"kernel: {shown.strip()}; here: {dut.neighbor_row(who, wan)}; log: {dut.log(5)}; "
            f"asked on the wire: {len(wan.solicitations(who))} times"
        ) from err


FAR = {4: ("198.18.7.0/24", "198.18.7.9"), 6: ("2001:db8:1818::/48", "2001:db8:1818::9")}


@pytest.mark.quick
def test_a_full_neighbor_table_of_the_kernel_affects_only_new_hosts(dut, family):
    """RFC 6583, 7.1: a gateway in use and a host in use lose no packet. A new neighbor is not
    found: the sender gets an error, the drop is counted, and the log names the neighbor that the
    kernel refuses and the reason, at most once a second. When there is room again all of them
    are found without help.

    zebra sends no routes meanwhile. The kernel deletes the IPv4 entry of the loopback, too, and has
    then no entry to carry FPM from 127.0.0.1 to 127.0.0.1.
    """
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    gateway, prefix, dst = case(family, 70)
    other, host, fresh = (case(family, number)[0] for number in (71, 80, 81))
    far, far_dst = FAR[family]
    for address in (gateway, host, fresh):
        wan.answer(address)
    dut.route(prefix, via=gateway, wire=wan)
    dut.route(far, via=other, wire=wan)
    for at in (dst, host):
        dut.forwarded(lan, lan.probe(at), wan, timeout=5)
    before, lines = dut.counters(), refusals(dut)[1]

    with dut.stream(lan, [dst, host], rate=100) as stream:
        with kernel_is_full(dut, family):
            lan.srp1(probe := lan.probe(fresh), timeout=5)  # an ICMP error that quotes it
            assert wan.got(token_of(probe)) == []
            eventually(lambda: refusals(dut)[1] > lines, 5, 0.05, "the log has the refusal")
            sent = stream.sent
            lan.send(*(lan.probe(case(family, 90 + n % 20)[0]) for n in range(200)))
            eventually(lambda: stream.sent > sent + 300, 20)
            assert dut.drops(before)["neigh_failed"] > 0
            wan.answer(other)
        eventually(lambda: found(dut, far_dst, other), 5, 0.05, "the gateway is found")
        eventually(lambda: found(dut, fresh), 5, 0.05, "the host is found")

    assert stream.lost(wan) == []
    most, _, last = refusals(dut)
    assert most <= 2 and "error=\"No buffer space available" in last, last
