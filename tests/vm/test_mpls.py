# SPDX-License-Identifier: BSD-3-Clause
"""MPLS with the modules of the kernel: the router knows which interfaces take labels as soon as the
kernel has MPLS, it obeys the kernel's routes of labels, and `fpmctl doctor` reports the settings
that keep labels from working."""

import glob
import json
import os
import shlex

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6

from labels import entries_of, with_labels
from lib import api, netns
from lib.wait import eventually
from linux_router import LinuxRouter
from wire import token_of

MODULES = ("mpls_iptunnel", "mpls_router")
HOST, HOST6 = "198.51.100.9", "2001:db8:a::9"
LINKS = ("lan0", "lan0.7", "m7", "red", "lo")


@pytest.fixture(scope="module")
def dut(on_veths):
    """Return a router with a VLAN, a macvlan and a VRF. Its kernel has no MPLS yet."""
    netns.command(["modprobe", "-r", *MODULES])
    on_veths.ready()
    on_veths.ip(
        "link add link lan0 name lan0.7 up type vlan id 7",
        "link add link lan0 name m7 up type macvlan mode bridge",
        "link add red up type vrf table 100",
    )
    yield on_veths
    netns.command(["modprobe", "-r", *MODULES])
    on_veths.ip("link del lan0.7", "link del m7", "link del red")


def told(dut):
    """Return {interface: it takes labels}; None: the router does not say."""
    rows = dut.control.ask("interfaces")
    api.validate(rows, api.rows_schema("GET", "/interfaces")[1]["schema"])
    return {r["name"]: r.get("mpls") for r in rows if r["name"] in LINKS}


def said(dut, **expected):
    """Wait until the router reports of each interface whether it takes labels: `expected`, and
    False for all others."""
    eventually(lambda: told(dut) == dict.fromkeys(LINKS, False) | expected, 1, 0.01, f"{expected}")


def put(dut, key, value):
    """Set net.mpls.KEY. KEY has slashes in place of dots."""
    netns.run(dut.ctl, ["sh", "-c", f"echo {value} >/proc/sys/net/mpls/{key}"])


def label_route(dut, verb, *words):
    """Add or delete the route of a label in the kernel."""
    netns.command(["ip", "-n", dut.ctl, "-f", "mpls", "route", verb, *map(str, words)])


def doctor(dut):
    """Return {subject: row} of doctor's check of MPLS."""
    return {r["subject"]: r for r in json.loads(dut.fpmctl("--json", "doctor", "mpls").stdout)}


def open_sysctls(dut):
    """Return the sysctls of MPLS that the daemon has open."""
    links = [os.readlink(path) for path in glob.glob(f"/proc/{dut.daemon.pid()}/fd/*")]
    return sorted(os.path.basename(link) for link in links if "/net/mpls/" in link)


def test_a_kernel_without_mpls_changes_nothing(dut):
    eventually(lambda: told(dut) == dict.fromkeys(LINKS), 5, 0.01, "interfaces, and no MPLS")
    assert doctor(dut)[""]["status"] == "n/a"
    assert "mpls" not in dut.fpmctl("--json", "doctor").stdout
    assert "MPLS" not in dut.fpmctl("show", "interfaces").stdout
    assert open_sysctls(dut) == []
    assert labels(dut) == {}
    assert "routing tables not read" not in dut.log()


def test_the_module_is_loaded_while_the_router_runs(dut):
    netns.command(["modprobe", "-a", *MODULES])
    said(dut)
    eventually(lambda: "neigh: kernel mpls changed present=yes" in dut.log(), 5, 0.05)
    assert open_sysctls(dut) == ["default_ttl", "ip_ttl_propagate"]
    assert "MPLS" not in dut.fpmctl("show", "interfaces").stdout
    assert doctor(dut)[""]["status"] == "n/a", "a kernel that has only loaded the module uses no labels"


@pytest.mark.parametrize("name", LINKS)
def test_input_of_an_interface_is_followed(dut, name):
    put(dut, f"conf/{name}/input", 1)
    said(dut, **{name: True})
    shown = dut.fpmctl("show", "interfaces", name).stdout
    assert "    takes MPLS labels" in shown.splitlines()
    put(dut, f"conf/{name}/input", 0)
    said(dut)
    assert "takes MPLS labels" not in dut.fpmctl("show", "interfaces").stdout


def test_a_new_name_keeps_it(dut):
    put(dut, "conf/m7/input", 1)
    dut.rename("m7", "m8")
    rows = lambda: {r["name"]: r.get("mpls") for r in dut.control.ask("interfaces")}  # noqa: E731
    eventually(lambda: rows().get("m8"), 1, 0.01, "m8 takes labels")
    dut.rename("m8", "m7")
    said(dut, m7=True)
    put(dut, "conf/m7/input", 0)
    said(dut)


def test_doctor_mends_a_kernel_that_refuses_labels(dut):
    put(dut, "conf/lan0/input", 1)
    said(dut, lan0=True)
    row = doctor(dut)[""]
    assert (row["status"], "platform_labels" in row["text"]) == ("fail", True)
    netns.command(shlex.split(row["fix"][0]))
    assert doctor(dut)[""]["status"] == "ok"

    label_route(dut, "add", 100, "dev", "red")
    label_route(dut, "add", 101, "via", "inet", "192.0.2.2", "dev", "lan0")
    rows = doctor(dut)
    assert {name: row["status"] for name, row in rows.items()} == {"red": "warn"}
    netns.command(shlex.split(rows["red"]["fix"][0]))
    said(dut, lan0=True, red=True)
    assert doctor(dut)[""]["status"] == "ok"
    for label in (100, 101):
        label_route(dut, "del", label)
    for name in ("lan0", "red"):
        put(dut, f"conf/{name}/input", 0)
    said(dut)


def test_the_module_is_unloaded(dut):
    put(dut, "conf/lan0/input", 1)
    said(dut, lan0=True)
    netns.command(["modprobe", "-r", *MODULES])
    eventually(lambda: told(dut) == dict.fromkeys(LINKS), 1, 0.01, "no MPLS")
    assert open_sysctls(dut) == []
    netns.command(["modprobe", "-a", *MODULES])
    said(dut)


def labels(dut):
    """Return {label: (source, state, next hops)} of the router's label table."""
    rows = dut.control.ask("labels")
    api.validate(rows, api.rows_schema("GET", "/labels")[1]["schema"])
    hops = lambda r: [(h["via"], h["dev"], h.get("labels", [])) for h in r["nexthops"]]  # noqa: E731
    return {r["label"]: (r["source"], r["state"], hops(r)) for r in rows}


def has_labels(dut, want):
    """Wait at most a second until the router has these labels of the kernel, and no other."""
    want = {label: ("kernel", "forwarding", hops) for label, hops in want.items()}

    def same():
        seen = labels(dut)
        assert seen == want, seen
        return True

    eventually(same, 1, 0.01, "labels of the kernel")


def test_labels_of_the_kernel_are_followed(dut):
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    put(dut, "platform_labels", 1000)
    put(dut, "conf/lan0/input", 1)
    said(dut, lan0=True)
    via = ["via", "inet", wan.peer4, "dev", "wan0"]
    label_route(dut, "add", 100, *via)
    has_labels(dut, {100: [(wan.peer4, "wan0", [])]})
    assert entries_of(dut.forwarded(lan, with_labels(lan.probe(HOST), 100), wan)) == []

    label_route(dut, "replace", 100, "as", "300/200", *via)
    has_labels(dut, {100: [(wan.peer4, "wan0", [300, 200])]})
    came = entries_of(dut.forwarded(lan, with_labels(lan.probe(HOST), 100), wan))
    assert [label for label, *_ in came] == [300, 200]
    row = dut.fpmctl("show", "labels", "100").stdout
    assert "boot" in row, row

    label_route(dut, "add", 101, "dev", "red")
    label_route(dut, "add", 102, *via, "proto", "static")
    label_route(dut, "add", 103, *via, "proto", "193")  # of LDP: zebra's copy
    third = {102: [(wan.peer4, "wan0", [])]}
    has_labels(dut, {100: [(wan.peer4, "wan0", [300, 200])], 101: [(None, "red", [])], **third})
    label_route(dut, "replace", 101, *via, "proto", "193")
    label_route(dut, "del", 100)
    has_labels(dut, third)
    label_route(dut, "flush", "proto", "static")
    has_labels(dut, {})
    label_route(dut, "flush", "proto", "193")


def test_a_kernel_that_loses_mpls_loses_its_labels(dut):
    wan = dut.wires["wan"]
    via = ["via", "inet", wan.peer4, "dev", "wan0"]
    label_route(dut, "add", 100, *via)
    has_labels(dut, {100: [(wan.peer4, "wan0", [])]})
    netns.command(["modprobe", "-r", *MODULES])
    has_labels(dut, {})
    netns.command(["modprobe", "-a", *MODULES])
    said(dut)
    put(dut, "platform_labels", 1000)
    label_route(dut, "add", 101, *via)
    has_labels(dut, {101: [(wan.peer4, "wan0", [])]})
    label_route(dut, "del", 101)
    has_labels(dut, {})


def test_packets_obey_the_settings_of_the_kernel(dut):
    """An interface without MPLS input drops labels. With net.mpls.ip_ttl_propagate 0 (pipe model,
    RFC 3443) labels have a TTL of their own, and the packet keeps its own, less one a router."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    netns.command(["modprobe", "-a", *MODULES])
    said(dut)
    put(dut, "platform_labels", 1000)
    put(dut, "conf/lan0/input", 1)
    said(dut, lan0=True)
    via = ["via", "inet", wan.peer4, "dev", "wan0"]
    label_route(dut, "add", 100, *via)
    label_route(dut, "add", 101, "as", 200, *via)
    has_labels(dut, {100: [(wan.peer4, "wan0", [])], 101: [(wan.peer4, "wan0", [200])]})
    dut.route("198.51.100.0/24", nhid=dut.zebra.hop(wan.peer4, wan, labels=[300, 301]))

    def pushed():
        probe = lan.probe(HOST, ttl=20, tos=0xB8)
        return [e[1:3] for e in entries_of(dut.forwarded(lan, probe, wan))]

    def popped():
        came = dut.forwarded(lan, with_labels(lan.probe(HOST, ttl=20), (100, 9)), wan)
        return entries_of(came), came[IP].ttl

    assert (pushed(), popped()) == ([(19, 5)] * 2, ([], 8))
    put(dut, "ip_ttl_propagate", 0)
    put(dut, "default_ttl", 59)
    # No message reports a change of these settings; the router reads them from time to time.
    eventually(lambda: pushed() == [(59, 0)] * 2, 10, 0.1, "the TTL of labels")
    assert popped() == ([], 19)
    came = dut.forwarded(lan, with_labels(lan.probe(HOST, ttl=20), (101, 9, 3)), wan)
    assert entries_of(came) == [(200, 8, 3, 1)]
    put(dut, "ip_ttl_propagate", 1)
    eventually(lambda: pushed() == [(19, 5)] * 2, 10, 0.1, "the TTL of packets")
    put(dut, "default_ttl", 255)

    put(dut, "conf/lan0/input", 0)
    said(dut)
    assert dut.not_forwarded(lan, with_labels(lan.probe(HOST), 101)) == {"mpls_off": 1}
    for label in (100, 101):
        label_route(dut, "del", label)


@pytest.fixture
def linux(dut):
    """Return a Linux router beside ours, with the same wires."""
    router = LinuxRouter(dut)
    try:
        router.build()
        yield router
    finally:
        router.destroy()


def ttls(data):
    """Return the TTLs of a frame: of its labels, outermost first, and of its IP packet."""
    entries, ip = entries_of(data), data[IP] if IP in data else data[IPv6]
    return [e[1] for e in entries], ip.ttl if IP in data else ip.hlim


def test_ttls_are_those_of_linux(dut, linux):
    """RFC 3443: uniform and pipe model, when labels are pushed and popped, for both families. The
    kernel of the guest forwards the same frames with the same settings; each frame leaves both
    routers with equal TTLs. One difference is wanted: behind a label with a higher TTL, the TTL
    of the packet never rises."""
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    netns.command(["modprobe", "-a", *MODULES])
    said(dut)
    linux.sysctl({"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1})
    routes = (
        ("100", ""), ("101", "as 200"), ("102", "as 200/201"),
        ("103", "", "ttl-propagate disabled"), ("104", "", "ttl-propagate enabled"),
    )  # fmt: skip
    for ctl in (dut.ctl, linux.ctl):
        settings = {"platform_labels": 1000, "conf.lan0.input": 1}
        netns.sysctl(ctl, {f"net.mpls.{key}": value for key, value in settings.items()})
        for label, new, *more in routes:
            words = f"{label} {new} via inet {wan.peer4} dev wan0 {' '.join(more)}"
            netns.command(["ip", "-n", ctl, "-f", "mpls", "route", "add", *words.split()])
        for net, via in (("198.51.100.0/24", wan.peer4), ("2001:db8:a::/48", wan.peer6)):
            words = f"{net} encap mpls 300/301 via {via} dev wan0"
            netns.command(["ip", "-n", ctl, "route", "add", *words.split()])
        words = f"203.0.113.0/24 encap mpls 300 ttl 33 via {wan.peer4} dev wan0"
        netns.command(["ip", "-n", ctl, "route", "add", *words.split()])
    said(dut, lan0=True)
    eventually(lambda: len(labels(dut)) == len(routes), 5, 0.05, "the labels are in force")
    dut.route_row("203.0.113.0/24")

    probes, rising = {}, {}
    for host, kind, key in ((HOST, "IPv4", "ttl"), (HOST6, "IPv6", "hlim")):
        for ttl in (20, 255, 2):
            probes[f"push {kind} {ttl}"] = lan.probe(host, **{key: ttl})
            for label, *_ in routes:
                for above in (9, 30, 255, 2):
                    name = f"label {label} {above} above {kind} {ttl}"
                    probes[name] = with_labels(lan.probe(host, **{key: ttl}), (int(label), above))
                    if label in ("100", "104") and above > ttl:
                        rising[name] = (label, ([], ttl - 1), ([], above - 1))
    probes["push with a TTL of the route"] = lan.probe("203.0.113.9", ttl=20)

    def through(router):
        came = {}
        router.wires["wan"].clear()
        for name, probe in probes.items():
            router.wires["lan"].send(probe)
            came[name] = ttls(router.wires["wan"].expect(token_of(probe), 5))
        return came

    try:
        for propagate, default in ((1, 255), (0, 59)):
            settings = {"ip_ttl_propagate": propagate, "default_ttl": default}
            for ctl in (dut.ctl, linux.ctl):
                netns.sysctl(ctl, {f"net.mpls.{key}": value for key, value in settings.items()})
            first = "push IPv4 20"
            want = ([19, 19] if propagate else [59, 59], 19)

            def obeyed():
                wan.clear()
                lan.send(probes[first])
                return ttls(wan.expect(token_of(probes[first]), 5)) == want

            eventually(obeyed, 10, 0.1, "the TTL of labels")
            ours, theirs = through(dut), through(linux)
            assert theirs[first] == want
            differ = {k: (ours[k], theirs[k]) for k in ours if ours[k] != theirs[k]}
            # Label 100 follows the sysctl.
            assert differ == {k: v[1:] for k, v in rising.items() if v[0] == "104" or propagate}
    finally:
        for label, *_ in routes:
            label_route(dut, "del", label)
        for net in ("198.51.100.0/24", "2001:db8:a::/48", "203.0.113.0/24"):
            netns.command(["ip", "-n", dut.ctl, "route", "del", net])
        put(dut, "ip_ttl_propagate", 1)
        put(dut, "default_ttl", 255)
        put(dut, "conf/lan0/input", 0)
        said(dut)
