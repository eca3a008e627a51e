# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's table of neighbors is full, of such as it will not throw out, and it refuses
whoever is new (ENOBUFS). Its limits are the machine's and no namespace's
(net.ipv4.neigh.default.gc_thresh3), so this is a guest's test."""

import contextlib
import re

import pytest

from gateways import case
from lib import netns
from lib.wait import eventually
from wire import token_of

FULL = 200  # neighbors that the kernel takes then
AN_HOUR = 3600000


@pytest.fixture
def dut(on_veths):
    """A router in its standard state."""
    on_veths.ready()
    return on_veths


def limit(family):
    """Where the kernel has its limit."""
    return f"/proc/sys/net/ipv{family}/neigh/default/gc_thresh3"


def read(path):
    """What a file of the kernel's has."""
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, text):
    """Write to a file of the kernel's."""
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


@contextlib.contextmanager
def kernel_is_full(dut, family):
    """As many neighbors on ext as the kernel takes, all reachable for an hour."""
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
    """(most lines of the log about it in a second, in all, the last one)."""
    found = re.findall(r"^(\S{19}).*(neigh: kernel refuses to resolve .*)$", dut.log(4000), re.M)
    seconds = [second for second, _ in found]
    return max(map(seconds.count, seconds), default=0), len(found), found[-1][1] if found else ""


def found(dut, at, gateway=None):
    """Does a packet for `at` leave on wan now? If not, what is known of its neighbor is told."""
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
def test_a_full_table_of_the_kernels_costs_who_is_new_and_nobody_else(dut, family):
    """RFC 6583, 7.1: a gateway in use and a host in use lose no packet. Who is new is not found:
    its sender is told, the drop is counted, the log says whom the kernel refuses, and why, once
    a second at most. When there is room again all of them are found, without anybody's help.

    Nothing is taught meanwhile: of IPv4 the loopback's own entry is thrown out, too, and the
    kernel has no other to carry FPM from 127.0.0.1 to 127.0.0.1.
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
            lan.srp1(probe := lan.probe(fresh), timeout=5)  # an ICMP error, which quotes it
            assert wan.got(token_of(probe)) == []
            eventually(lambda: refusals(dut)[1] > lines, 5, 0.05, "it is told")
            sent = stream.sent
            lan.send(*(lan.probe(case(family, 90 + n % 20)[0]) for n in range(200)))
            eventually(lambda: stream.sent > sent + 300, 20)
            assert dut.drops(before)["neigh_failed"] > 0
            wan.answer(other)
        eventually(lambda: found(dut, far_dst, other), 5, 0.05, "the gateway is found")
        eventually(lambda: found(dut, fresh), 5, 0.05, "the host is found")

    assert stream.lost(wan) == []
    most, _, last = refusals(dut)
    assert most <= 2 and "error=No buffer space available" in last, last
