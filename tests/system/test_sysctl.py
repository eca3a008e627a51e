# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's `forwarding` sysctls decide whether a port forwards: for IPv4 the sysctl of the TAP,
for IPv6 the sysctl of `all`."""

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lib import netns
from lib.wait import eventually
from on_time import Medians
from wire import token, token_of

CASES = {
    4: ("198.51.100.0/24", "198.51.100.9", "peer4", "ipv4"),
    6: ("2001:db8:f000::/36", "2001:db8:f000::9", "peer6", "ipv6"),
}
N = 5


@pytest.fixture
def sysctl(dut):
    """Return a function that sets net.FAMILY.conf.DEV.forwarding in FRR's namespace. Set all to
    1 after the test."""

    def write(family, dev, value):
        netns.sysctl(dut.ctl, {f"net.{family}.conf.{dev}.forwarding": value})

    yield write
    # Only a change of `all` reaches every interface. Wait for each change, because the router may
    # still show a state from before the first one.
    for value in (1, 0, 1):
        for family in ("ipv4", "ipv6"):
            write(family, "all", value)
        state = {"on" if value else "off"}
        eventually(lambda s=state: {shown(dut, w) for w in dut.wires.values()} == s, 3, 0.01)


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def case(request, dut, wan, alt):
    """Return (destination, name of the family, name of the other family), with a route for both
    by wan."""
    for prefix, _, peer, _ in CASES.values():
        dut.route(prefix, via=getattr(wan, peer), wire=wan)
    return CASES[request.param][1], CASES[request.param][3], CASES[10 - request.param]


def shown(dut, wire):
    """Return the forwarding state of a port from fpmctl."""
    return dut.port_row(wire)["forwarding"]


def takes_effect(dut, write, wires, *steps):
    """`steps` are pairs of a value and the forwarding state that it gives to the ports `wires`. Assert
    that fpmctl shows the state within 100 ms after write(value) (the medians of five). The last state
    is that of the first step."""
    medians = Medians(dut)
    for value, state in (*(steps * medians.TIMES), steps[0]):
        write(value)
        medians.until(state, lambda s=state: {shown(dut, w) for w in wires} == {s})
    medians.are_in_time()


@pytest.mark.parametrize("case", [4], indirect=True, ids=["IPv4"])
def test_an_interface_that_does_not_forward_is_a_host(dut, lan, wan, alt, case, sysctl):
    """RFC 1122, 3.2.1.3: a host drops silently each packet that is not for it. Other interfaces and
    the other family forward. Packets for the host's own addresses are delivered."""
    dst, family, other = case

    takes_effect(dut, lambda value: sysctl(family, lan.tap, value), [lan], (0, other[3]), (1, "on"))

    probes = [lan.probe(dst) for _ in range(N)]
    assert dut.not_forwarded(lan, *probes) == {"forwarding_off": N}
    assert [p for p in probes if lan.got(token_of(p))] == [], "no ICMP error"
    told = dut.fpmctl("explain", "port", lan.tap, "dst", dst).stdout
    assert "DROPPED, forwarding_off" in told and "no MAC" not in told
    dut.forwarded(lan, lan.probe(other[1]), wan)
    dut.forwarded(alt, alt.probe(dst), wan)
    echo = _echo(lan, dst)
    lan.send(echo)
    assert lan.expect(token_of(echo)).src == lan.port_mac, "the kernel answers a ping"

    sysctl(family, lan.tap, 1)

    eventually(lambda: shown(dut, lan) == "on", 3, 0.005)
    dut.forwarded(lan, lan.probe(dst), wan)


def test_ipv6_is_forwarded_whatever_the_interface_says(dut, lan, wan, sysctl):
    """ip-sysctl.rst: in IPv6 only the value of `all` decides about forwarding. The value of an
    interface makes this interface a host for neighbor discovery, which accepts router
    advertisements."""
    prefix, dst, peer, family = CASES[6]
    dut.route(prefix, via=getattr(wan, peer), wire=wan)

    sysctl(family, lan.tap, 0)
    sysctl(family, wan.tap, 0)

    dut.neighbor("192.0.2.60", lan)  # known after the sysctls: the kernel reports changes in order
    dut.forwarded(lan, lan.probe(dst), wan)
    assert shown(dut, lan) == "on"
    assert "4 OK, 0 WARN" in dut.fpmctl("doctor", "forwarding").stdout


def _echo(lan, dst):
    eth = Ether(src=lan.mac, dst=lan.port_mac)
    if ":" in dst:
        return eth / IPv6(src=lan.peer6, dst=lan.ip6) / ICMPv6EchoRequest() / Raw(token())
    return eth / IP(src=lan.peer4, dst=lan.ip4) / ICMP() / Raw(token())


def test_all_interfaces_at_once(dut, lan, wan, case, sysctl):
    """`no ip forwarding` in vtysh writes conf.all: no interface forwards that family."""
    dst, family, other = case

    wires = dut.wires.values()
    takes_effect(dut, lambda value: sysctl(family, "all", value), wires, (0, other[3]), (1, "on"))

    assert dut.not_forwarded(lan, lan.probe(dst)) == {"forwarding_off": 1}
    dut.forwarded(lan, lan.probe(other[1]), wan)

    sysctl(family, "all", 1)

    eventually(lambda: {shown(dut, w) for w in wires} == {"on"}, 3, 0.005)
    dut.forwarded(lan, lan.probe(dst), wan)


def test_an_exception_from_all_is_linuxs(dut, lan, wan, case, sysctl):
    """ip-sysctl.rst: for IPv4 an interface's own setting decides. For IPv6 that of `all` decides."""
    dst, family, other = case
    sysctl(family, "all", 0)
    eventually(lambda: shown(dut, lan) == other[3], 3, 0.005)

    sysctl(family, lan.tap, 1)

    if family == "ipv4":
        takes_effect(dut, lambda value: sysctl(family, lan.tap, value), [lan], (1, "on"), (0, other[3]))
        dut.forwarded(lan, lan.probe(dst), wan)
    else:
        dut.neighbor("192.0.2.60", lan)  # known after the sysctl: the kernel reports changes in order
        assert dut.not_forwarded(lan, lan.probe(dst)) == {"forwarding_off": 1}
        assert shown(dut, lan) == "ipv4"


def test_traffic_goes_on_while_another_family_is_switched(dut, lan, wan, case, sysctl):
    """A switch replaces the port's state as a whole, so other traffic goes on."""
    dst, _, other = case

    with dut.stream(lan, dst) as stream:
        for value in (0, 1) * 10:
            sysctl(other[3], "all", value)

    assert stream.lost(wan) == []
