# SPDX-License-Identifier: BSD-3-Clause
"""SNMP: net-snmp's snmpd serves ifTable and ifXTable by `fpmctl snmp` (RFC 2863)."""

import json
import re
import shutil
import signal
import subprocess
import textwrap
import threading
import time

import pytest

from lib import netns, peers, procs
from lib.wait import eventually
from router import Router, running

AGENT = "127.0.0.1:1161"
IF, IFX = ".1.3.6.1.2.1.2.2", ".1.3.6.1.2.1.31.1.1"
DESCR, OPER, DISCARDS = f"{IF}.1.2", f"{IF}.1.8", f"{IF}.1.13"
NAME, IN_OCTETS, OUT_OCTETS = f"{IFX}.1.1", f"{IFX}.1.6", f"{IFX}.1.10"
ALIAS, DISCONTINUITY = f"{IFX}.1.18", f"{IFX}.1.19"
NET, HOST = "198.51.100.0/24", "198.51.100.9"

pytestmark = pytest.mark.skipif(
    not shutil.which("snmpd") or not shutil.which("snmpwalk"),
    reason="no SNMP: apt-get install snmpd snmp",
)


# The part of IF-MIB that snmptable needs; Debian has no IF-MIB.
MIB = """\
IFX-PART-MIB DEFINITIONS ::= BEGIN
partObjects OBJECT IDENTIFIER ::= { iso org(3) dod(6) internet(1) mgmt(2) mib-2(1) 31 1 }
partTable OBJECT-TYPE SYNTAX SEQUENCE OF PartEntry MAX-ACCESS not-accessible STATUS current
    DESCRIPTION "-" ::= { partObjects 1 }
partEntry OBJECT-TYPE SYNTAX PartEntry MAX-ACCESS not-accessible STATUS current
    DESCRIPTION "-" INDEX { partIndex } ::= { partTable 1 }
PartEntry ::= SEQUENCE { partIndex Integer32, partName OCTET STRING, partIn Counter64, partOut Counter64 }
partIndex OBJECT-TYPE SYNTAX Integer32 MAX-ACCESS not-accessible STATUS current
    DESCRIPTION "-" ::= { partEntry 99 }
partName OBJECT-TYPE SYNTAX OCTET STRING MAX-ACCESS read-only STATUS current
    DESCRIPTION "-" ::= { partEntry 1 }
partIn OBJECT-TYPE SYNTAX Counter64 MAX-ACCESS read-only STATUS current
    DESCRIPTION "-" ::= { partEntry 6 }
partOut OBJECT-TYPE SYNTAX Counter64 MAX-ACCESS read-only STATUS current
    DESCRIPTION "-" ::= { partEntry 10 }
END
"""
MODULE = """\
if_mib:
  walk: [1.3.6.1.2.1.31.1.1]
  metrics:
  - name: ifHCInOctets
    oid: 1.3.6.1.2.1.31.1.1.1.6
    type: counter
    indexes: [{labelname: ifIndex, type: gauge}]
    lookups:
    - {labels: [ifIndex], labelname: ifName, oid: 1.3.6.1.2.1.31.1.1.1.1, type: DisplayString}
"""
WEB = "127.0.0.1:9116"


def exporter_config(program):
    """Return the configuration of an SNMP exporter. From version 0.23 on the community is not in the
    module."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    version = re.search(r"version (\d+)\.(\d+)", done.stdout + done.stderr)
    if tuple(map(int, version.groups())) < (0, 23):
        return MODULE + "  version: 2\n  auth: {community: public}\n"
    auths = "auths:\n  public_v2: {version: 2, community: public}\n"
    return auths + "modules:\n" + textwrap.indent(MODULE, "  ")


class Agent:
    """An snmpd in the control namespace of a router."""

    def __init__(self, router, tmp):
        self.router = router
        serve = f"{router.daemon.ctl} -s {router.daemon.socket} snmp"
        conf = tmp / "snmpd.conf"
        conf.write_text(
            f"agentaddress udp:{AGENT}\nrocommunity public 127.0.0.1\n"
            f"pass_persist -p 10 {IF} {serve}\npass_persist -p 10 {IFX} {serve}\n"
        )
        self.mark = str(tmp)
        argv = ["snmpd", "-f", "-Lo", "-m", "", "-C", "-c", str(conf), f"--persistentDir={tmp}/kept"]
        procs.start(argv, self.mark, str(tmp / "log"), netns=router.ctl)
        eventually(lambda: self.walk(NAME), 10, what="snmpd answers")

    def walk(self, oid, program="snmpwalk"):
        """Return [(oid, value)] of a part of the tree, in the order of the answers."""
        argv = [program, "-v2c", "-cpublic", "-m", "", "-OneQ", "-r1", "-t5", AGENT, oid]
        text = netns.command(["ip", "netns", "exec", self.router.ctl, *argv], check=False)
        return re.findall(r'^(\.[\d.]+) = "?(.*?)"? ?$', text, re.M)

    def column(self, oid):
        """Return {ifindex: value} of a column."""
        return {int(o.rsplit(".", 1)[1]): v for o, v in self.walk(oid) if o.startswith(f"{oid}.")}

    def close(self):
        procs.end_all(self.mark)


@pytest.fixture(scope="module")
def router():
    """A router of its own, because its daemon ends and starts while snmpd goes on."""
    with running(Router(name="snmp")) as made:
        yield made


@pytest.fixture(scope="module")
def agent(router, tmp_path_factory):
    made = Agent(router, tmp_path_factory.mktemp("snmp"))
    yield made
    made.close()


def kernel_links(router):
    """Return {ifindex: the kernel's row of an interface}."""
    rows = json.loads(netns.run(router.ctl, ["ip", "-j", "-s", "link"]))
    return {row["ifindex"]: row for row in rows}


def test_each_interface_of_the_kernel_is_there_once_and_in_order(router, agent):
    """Both tables have each interface of `ip link`, of the dataplane and of the kernel, by
    ascending ifindex."""
    names = {index: row["ifname"] for index, row in kernel_links(router).items()}
    assert len(names) > len(router.names)
    for column in (DESCR, NAME):
        walked = [(int(oid.rsplit(".", 1)[1]), value) for oid, value in agent.walk(column)]
        assert walked == sorted(names.items())


def test_the_octets_of_a_port_are_those_of_fpmctl_and_not_of_its_tap(router, agent):
    """The octets of a port include forwarded packets, which the kernel does not see on the TAP."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    router.route(NET, via=wan.peer4, wire=wan)
    for _ in range(20):
        router.forwarded(lan, lan.probe(HOST, size=1000), wan)

    def agree():
        ports = {row["ifindex"]: row for row in router.daemon.show("ports")}
        came, left = agent.column(IN_OCTETS), agent.column(OUT_OCTETS)
        return all(
            int(came[i]) == row["rx_bytes"] and int(left[i]) == row["tx_bytes"]
            for i, row in ports.items()
        )

    eventually(agree, 5, what="snmpd answers with the counters of fpmctl")
    kernel = kernel_links(router)[router.ifindex(wan)]["stats64"]
    assert int(agent.column(OUT_OCTETS)[router.ifindex(wan)]) > kernel["rx"]["bytes"] + 20 * 1000


def test_snmptable_prints_a_row_for_each_interface(router, agent, tmp_path):
    """snmptable, which asks for all columns of a row together, has the same counters."""
    (tmp_path / "IFX-PART-MIB.txt").write_text(MIB)
    argv = ["snmptable", "-v2c", "-cpublic", "-M", str(tmp_path), "-m", "IFX-PART-MIB", "-Ci", "-Cf", ";"]
    argv += ["-r1", "-t5", AGENT, "IFX-PART-MIB::partTable"]

    def agree():
        text = netns.command(["ip", "netns", "exec", router.ctl, *argv])
        rows = {cells[1].strip(chr(34)): cells[2:] for line in text.splitlines() if len(cells := line.split(";")) == 4}
        ports = {row["name"]: [str(row["rx_bytes"]), str(row["tx_bytes"])] for row in router.daemon.show("ports")}
        assert ports.items() <= rows.items(), text
        return True

    # The kernel may send a packet by a port between both readings.
    eventually(agree, 10, 0.1, "snmptable has the counters of fpmctl")


@pytest.mark.skipif(not peers.program("prometheus-snmp-exporter"), reason="no SNMP exporter: make peers")
def test_the_exporter_of_prometheus_reads_each_interface(router, agent, tmp_path):
    """prometheus-snmp-exporter makes a metric of each interface, with its name."""
    program = peers.program("prometheus-snmp-exporter")
    (tmp_path / "snmp.yml").write_text(exporter_config(program))
    argv = [program, f"--config.file={tmp_path}/snmp.yml"]
    argv += [f"--web.listen-address={WEB}"]
    procs.start(argv, str(tmp_path), str(tmp_path / "log"), netns=router.ctl)
    ask = ["curl", "-sf", f"http://{WEB}/snmp?module=if_mib&target={AGENT}"]

    def agree():
        page = netns.command(["ip", "netns", "exec", router.ctl, *ask])
        found = dict(re.findall(r'^ifHCInOctets\{ifIndex="\d+",ifName="([^"]+)"\} (\S+)$', page, re.M))
        ports = {row["name"]: row["rx_bytes"] for row in router.daemon.show("ports")}
        assert ports == {name: int(float(found[name])) for name in ports}
        return True

    try:
        eventually(agree, 20, 0.1, "the exporter answers with the counters of fpmctl")
    finally:
        procs.end_all(str(tmp_path))


def test_the_alias_and_the_state_of_the_kernel_are_shown(router, agent):
    """ifAlias is `ip link ... alias`; ifOperStatus follows the link. A control character in an
    alias, which would end the answer, is replaced."""
    wan = router.ifindex(router.wires["wan"])
    netns.run(router.ctl, ["ip", "link", "set", "wan0", "alias", "to the\nprovider"])
    netns.run(router.ctl, ["ip", "link", "set", "wan0", "down"])
    eventually(lambda: agent.column(ALIAS)[wan] == "to the?provider", 5)
    eventually(lambda: agent.column(OPER)[wan] == "2", 5)
    netns.run(router.ctl, ["ip", "link", "set", "wan0", "up"])
    eventually(lambda: agent.column(OPER)[wan] == "1", 5)


def test_nothing_can_be_set(router, agent):
    """SNMP changes no interface."""
    argv = ["snmpset", "-v2c", "-cpublic", "-m", "", AGENT, f"{ALIAS}.1", "s", "x"]
    text = netns.command(
        ["ip", "netns", "exec", router.ctl, "sh", "-c", " ".join(map(repr, argv)) + " 2>&1"],
        check=False,
    )
    assert "noAccess" in text or "notWritable" in text, text


def test_a_daemon_that_hangs_does_not_hang_snmpd(router, agent):
    """snmpd answers while the daemon hangs: interfaces of the kernel have counters, and interfaces
    of the dataplane have none."""
    ours = {router.ifindex(wire) for wire in router.wires.values()}
    pid = router.daemon.pid()
    procs.signal_pid(pid, signal.SIGSTOP)
    try:
        eventually(lambda: not ours & set(agent.column(IN_OCTETS)), 10)
        began = time.monotonic()
        others = set(kernel_links(router)) - ours
        assert others <= set(agent.column(IN_OCTETS))
        assert time.monotonic() - began < 10, "the walk waited for the daemon"
    finally:
        procs.signal_pid(pid, signal.SIGCONT)
    eventually(lambda: ours <= set(agent.column(IN_OCTETS)), 20)


def test_walks_while_the_daemon_restarts_are_whole(router, agent):
    """Walks go on without a pause while the daemon stops, starts, is killed and starts again. Each walk has
    each interface of the kernel once and in order, and no other name. snmpd answers all the time."""
    ours = {row["name"] for row in router.daemon.show("ports")}
    names = {row["ifname"] for row in kernel_links(router).values()}
    over, walks, faults = threading.Event(), [], []

    def walk():
        while not over.is_set():
            rows = [(int(oid.rsplit(".", 1)[1]), name) for oid, name in agent.walk(NAME)]
            indexes, seen = [index for index, _ in rows], {name for _, name in rows}
            walks.append(len(rows))
            # A TAP that is made again has another ifindex.
            if indexes != sorted(set(indexes)) or not names - ours <= seen <= names:
                faults.append(rows)

    walker = threading.Thread(target=walk)
    walker.start()
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            router.stop(number)
            seen = len(walks)
            eventually(lambda seen=seen: len(walks) > seen + 2, 20, 0.05, "walks without the daemon")
            router.start()
            seen = len(walks)
            eventually(lambda seen=seen: len(walks) > seen + 2, 20, 0.05, "walks with the daemon")
    finally:
        over.set()
        walker.join()
    assert faults == []
    now = {router.ifindex(wire) for wire in router.wires.values()}
    eventually(lambda: now <= set(agent.column(IN_OCTETS)), 10)


def test_a_device_that_is_opened_again_is_a_discontinuity_of_its_port(router, agent):
    """The interface below a port goes and comes: the port keeps its ifIndex and counts from 0. So its
    ifCounterDiscontinuityTime changes. Without that a manager would take the difference for a counter
    that wrapped (RFC 2863, 3.1.5)."""
    lan, ext = router.wires["lan"], router.wires["ext"]
    index, other = router.ifindex(ext), router.ifindex(lan)
    router.route(NET, via=router.wires["wan"].peer4, wire=router.wires["wan"])
    for _ in range(20):
        router.forwarded(ext, ext.probe(HOST), router.wires["wan"])
    eventually(lambda: int(agent.column(IN_OCTETS)[index]) >= 20 * 46, 5)
    before = agent.column(DISCONTINUITY)

    netns.ip_batch([f"link set p-ext netns {router.far}"], router.dp)
    eventually(lambda: router.port_row(ext)["link"] == "down", 5, 0.01)
    netns.ip_batch([f"link set p-ext netns {router.dp}"], router.far)
    netns.ip_batch(["link set p-ext up"], router.dp)
    eventually(lambda: router.port_row(ext)["link"] == "up", 10, 0.01)

    eventually(lambda: int(agent.column(IN_OCTETS)[index]) < 20 * 46, 5)
    after = agent.column(DISCONTINUITY)
    assert router.ifindex(ext) == index
    assert after[index] != before[index] and after[other] == before[other]


def test_without_the_daemon_its_interfaces_have_no_counters(router, agent):
    """An snmpd that goes on meanwhile shows the kernel's state of our ports, but no counter,
    because the counters of the TAPs lack most packets. After the start they count from 0, and
    ifCounterDiscontinuityTime is the time of the start."""
    ours = {router.ifindex(wire) for wire in router.wires.values()}
    others = set(kernel_links(router)) - ours
    before = agent.column(DISCONTINUITY)
    assert ours <= set(agent.column(IN_OCTETS))
    router.stop(signal.SIGTERM)
    eventually(lambda: not ours & set(agent.column(IN_OCTETS)), 5)
    assert others <= set(agent.column(IN_OCTETS)) and others <= set(agent.column(DISCARDS))
    router.start()
    ours = {router.ifindex(wire) for wire in router.wires.values()}
    eventually(lambda: ours <= set(agent.column(IN_OCTETS)), 5)
    after = agent.column(DISCONTINUITY)
    assert all(after[i] != "0:0:00:00.00" and after[i] != before.get(i) for i in ours), after
