# SPDX-License-Identifier: BSD-3-Clause
"""Rules of policy routing that name an interface by an alternative name. Linux looks for the
interface when the rule is added, and the rule keeps it. Each test gives the router and Linux the
same commands and the same frames."""

import os
import signal

import pytest

from lib import netns
from lib.wait import eventually
from rules_beside import EXT, TO4, TO6, WAN, becomes
from rules_beside import routers, rules, twin  # noqa: F401

OFFICE = "altname office"


class Named:
    """Both routers while rules name `office`, an alternative name."""

    def __init__(self, twin, rules):
        self.twin, self.rules = twin, rules
        self.n_other = 0

    def name(self, dev):
        """Give the alternative name to an interface."""
        self.twin.ip(f"link property add dev {dev} {OFFICE}")

    def unname(self, dev):
        """Take the alternative name from an interface."""
        self.twin.ip(f"link property del dev {dev} {OFFICE}")

    def reread(self):
        """Let the router read all rules again: add another rule."""
        self.n_other += 1
        pref = 500 + self.n_other
        self.rules(f"rule add pref {pref} to 203.0.113.9 lookup 100")
        eventually(lambda: pref in [row["pref"] for row in self.rows()], 5, 0.01, "the rule is read")

    def rows(self):
        """Return the rows of `show rules`."""
        return self.twin.dut.control.ask("rules")

    def takes(self, wires):
        """Check that the rule applies to packets of both families that come by these wires, and to no
        others."""
        for name in ("lan", "alt"):
            for dst in (TO4, TO6):
                becomes(self.twin, EXT if name in wires else WAN, name=name, dst=dst)

    def is_about(self, interface):
        """Check that `show rules` names this interface of the rule, or `[detached]` if it is None, and
        that the kernel shows the rule as detached in the same case."""
        found = lambda: [(r["iif_interface"], r["iif_detached"]) for r in self.rows() if r["iif"]]  # noqa: E731
        eventually(lambda: found() == [(interface, interface is None)] * 2, 5, 0.01, "the interface is told")
        shown = self.twin.dut.fpmctl("show", "rules").stdout
        assert shown.count("iif office (lan0) lookup") == (2 if interface else 0), shown
        assert shown.count("iif office [detached] lookup") == (0 if interface else 2), shown
        kernel = netns.run(self.twin.dut.ctl, ["ip", "rule", "show", "pref", "100"])
        assert ("[detached]" in kernel) == (interface is None), kernel


@pytest.fixture
def named(twin, rules):
    """Both routers with a rule for each family about lan0, which has the name of the rule."""
    both = Named(twin, rules)
    both.name("lan0")
    rules("rule add pref 100 iif office lookup 100", "-6 rule add pref 100 iif office lookup 100")
    both.takes({"lan"})
    both.is_about("lan0")
    yield both
    for dev in ("lan0", "alt0"):
        for ns in (twin.dut.ctl, twin.here):
            netns.run(ns, ["ip", "link", "property", "del", "dev", dev, *OFFICE.split()], check=False)


def test_a_rule_keeps_its_interface_when_the_name_moves(named):
    """The alternative name is removed, and then given to another interface: the rule is about the
    first interface. The same rule added again is about the other one."""
    named.unname("lan0")
    named.reread()
    named.takes({"lan"})
    named.is_about("lan0")
    named.name("alt0")
    named.reread()
    named.takes({"lan"})
    named.is_about("lan0")
    line = "rule add pref 100 iif office lookup 100"
    for six in ("", "-6 "):
        named.twin.ip(six + line.replace("add", "del"), six + line)
    named.takes({"alt"})


def test_a_name_that_moves_before_the_router_looks_does_not_take_the_rule_along(named):
    """The router stands still while a rule is added, the alternative name is taken from the interface,
    and another interface gets it: the rule is about the first interface."""
    ip, pid = named.twin.ip, named.twin.dut.daemon.pid()
    rules4_and_6 = ["rule add pref 100 iif office lookup 100", "-6 rule add pref 100 iif office lookup 100"]
    ip(*(line.replace("add", "del") for line in rules4_and_6))
    named.takes(set())
    named.unname("lan0")
    named.name("lan0")  # Linux reports the name by this change
    named.reread()
    os.kill(pid, signal.SIGSTOP)
    try:
        ip(*rules4_and_6)
        named.unname("lan0")
        named.name("alt0")
    finally:
        os.kill(pid, signal.SIGCONT)
    named.takes({"lan"})
    named.is_about("lan0")


def test_a_rule_loses_an_interface_that_is_renamed(named):
    """The interface of the rule is renamed: the rule is about none, also if the interface gets its
    name back. It is about an interface that gets the name of the rule as its primary name."""
    ip = named.twin.ip
    ip("link set lan0 name lan9")
    named.takes(set())
    ip("link set lan9 name lan0")
    named.reread()
    named.takes(set())
    named.is_about(None)
    named.unname("lan0")
    named.name("lan0")
    named.reread()
    named.takes(set())
    named.unname("lan0")
    ip("link set alt0 name office")
    try:
        named.takes({"alt"})
    finally:
        ip("link set office name alt0")
    named.takes(set())


def test_a_rule_keeps_its_interface_beside_one_of_that_name(named):
    """Another interface gets the former alternative name as its primary name: the rule is still
    about the first interface."""
    named.unname("lan0")
    named.twin.ip("link set alt0 name office")
    try:
        named.reread()
        named.takes({"lan"})
    finally:
        named.twin.ip("link set office name alt0")
    named.takes({"lan"})


def test_a_start_cannot_find_an_interface_that_lost_the_name(own_dut):
    """A daemon that starts after the alternative name was removed does not know the interface of
    the rule. The log, `show rules` and `show warnings` say so. A name that returns is found."""
    dut = own_dut()
    dut.ip(f"link property add dev lo {OFFICE}", "rule add pref 100 iif office lookup 100")
    dut.ip(f"link property del dev lo {OFFICE}")
    dut.start()
    row = lambda: next(r for r in dut.control.ask("rules") if r["pref"] == 100)  # noqa: E731
    assert (row()["lacks"], row()["iif_interface"], row()["iif_detached"]) == ("iif", None, False)
    assert "rib: rule not obeyed family=ipv4 pref=100 selector=iif" in dut.log(100)
    told = lambda: [r["dataplane"] for r in dut.control.ask("warnings")]  # noqa: E731
    eventually(lambda: "The part iif is not obeyed: fpmctl show rules." in told(), 10, 0.1)
    dut.ip(f"link property add dev lo {OFFICE}")
    eventually(lambda: (row()["lacks"], row()["iif_interface"]) == (None, "lo"), 5, 0.02)
