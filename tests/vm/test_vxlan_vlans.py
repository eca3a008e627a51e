# SPDX-License-Identifier: BSD-3-Clause
"""A single vxlan device for all VNIs, below a bridge with VLANs, which the machine's own kernel may not
have: each VLAN on the bridge that has a VNI is an interface of the dataplane."""

import json

import pytest

from lib import netns
from lib.wait import eventually
from test_vxlan import NET, HOST, OWN, RMAC, VTEP, back, encapsulated, from_vtep, ifindex, netns_mac
from test_vxlan import own_addresses, row
from vxlan_links import PORT, VNI

VLAN, SVI = 7, "br1.7"


@pytest.fixture
def dut(on_veths):
    """Return a router with a single vxlan device, and a VLAN with a VNI."""
    dut = on_veths
    dut.ready()
    wan = dut.wires["wan"]
    dut.ip(
        *own_addresses("add", 4),
        "link add br1 type bridge vlan_filtering 1 vlan_default_pvid 0",
        f"link add vx1 type vxlan dstport {PORT} local {OWN[4]} nolearning external noudpcsum",
        "link set br1 addrgenmode none",
        "link set vx1 master br1 addrgenmode none",
        f"link add link br1 name {SVI} type vlan id {VLAN}",
        f"link set {SVI} addrgenmode none",
    )
    bridge(dut, "link set dev vx1 vlan_tunnel on learning off")
    bridge(dut, f"vlan add dev br1 vid {VLAN} self")
    dut.ip("link set vx1 up", "link set br1 up", f"link set {SVI} up", f"addr add 10.9.0.1/24 dev {SVI}")
    yield dut
    dut.ip(f"link del {SVI}", "link del vx1", "link del br1", *own_addresses("del", 4))
    eventually(lambda: row(dut, "br1") is None, 5, 0.01, "no bridge")
    assert wan
    dut.ready()


def bridge(dut, words):
    """Run bridge(8) in the control namespace."""
    netns.command(["bridge", "-n", dut.ctl, *words.split()])


def vni(dut, verb):
    """Give the VLAN its VNI ("add"), or remove the VNI."""
    if verb == "add":
        bridge(dut, f"vlan add dev vx1 vid {VLAN}")
        bridge(dut, f"vlan add dev vx1 vid {VLAN} tunnel_info id {VNI}")
        eventually(lambda: "rx_packets" in row(dut, SVI), 5, 0.01, "an interface")
    else:
        bridge(dut, f"vlan del dev vx1 vid {VLAN} tunnel_info id {VNI}")
        eventually(lambda: "rx_packets" not in row(dut, SVI), 5, 0.01, "no interface")


def test_a_vlan_with_a_vni_is_an_interface(dut):
    lan, wan = dut.wires["lan"], dut.wires["wan"]
    assert "rx_packets" not in row(dut, SVI)
    vni(dut, "add")
    found = row(dut, SVI)
    assert (found["vni"], found["vxlan"], found["up"]) == (VNI, "vx1", True)
    assert row(dut, "vx1")["by_kernel"] is None
    dut.ip(f"neigh replace {VTEP[4]} lladdr {RMAC} dev {SVI} nud noarp extern_learn")
    dut.route(f"{VTEP[4]}/32", wan.peer4, wan)
    dut.route("203.0.113.67/32", wan.peer4, wan)
    dut.route(NET[4], nhid=dut.zebra.hop(VTEP[4], oif=ifindex(dut, SVI), onlink=True))
    base = row(dut, SVI)
    ip, inside = encapsulated(dut, lan.probe(HOST[4]))
    assert (ip.dst, inside.dst, inside.src) == (VTEP[4], RMAC, netns_mac(dut, SVI))
    bridge(dut, f"fdb add {RMAC} dev vx1 dst 203.0.113.67 src_vni {VNI} vni {VNI} self")
    eventually(lambda: encapsulated(dut, lan.probe(HOST[4]))[0].dst == "203.0.113.67", 5, 0.02)
    dut.forwarded(wan, from_vtep(dut, back(dut, 4), dst_mac=netns_mac(dut, SVI)), lan)
    now = row(dut, SVI)
    assert now["tx_packets"] > base["tx_packets"] and now["rx_packets"] == base["rx_packets"] + 1
    # The kernel may have other VNIs, so it gets the packets of an unknown VNI.
    frame = from_vtep(dut, back(dut, 4), vni=VNI + 1, dst_mac=netns_mac(dut, SVI))
    assert dut.not_forwarded(wan, frame) == {}
    vni(dut, "del")
    vni(dut, "add")


def test_a_further_port_leaves_all_vlans_to_the_kernel(dut):
    vni(dut, "add")
    dut.ip("link add x1 type veth peer name x2", "link set x1 master br1")
    try:
        eventually(lambda: row(dut, "vx1")["by_kernel"] == "ports", 5, 0.01, "left to the kernel")
        assert "rx_packets" not in row(dut, SVI)
        rows = json.loads(dut.fpmctl("--json", "doctor", "tunnels").stdout)
        assert [r["status"] for r in rows if r["subject"] == "vx1"] == ["warn"]
    finally:
        dut.ip("link del x1")
    eventually(lambda: "rx_packets" in row(dut, SVI), 5, 0.01, "an interface")


def test_a_daemon_that_starts_finds_the_vni(dut):
    vni(dut, "add")
    dut.stop()
    dut.start()
    eventually(lambda: "rx_packets" in row(dut, SVI), 10, 0.05, "an interface")


def test_a_filter_of_vnis_is_named(dut):
    """Forwarders do not obey the filter of `bridge vni`. A warning says so while the device has the
    filter, which the kernel sets only when it makes the device."""
    where = "vnifilter of vx2"
    told = lambda: [r["where"] for r in dut.control.ask("warnings") if r["kind"] == "vnifilter"]  # noqa: E731
    assert told() == []
    dut.ip(
        "link add br2 type bridge vlan_filtering 1 vlan_default_pvid 0",
        f"link add vx2 type vxlan dstport {PORT + 1} local {OWN[4]} nolearning external vnifilter",
        "link set vx2 master br2 addrgenmode none",
    )
    try:
        eventually(lambda: told() == [where], 30, 0.1, where)
    finally:
        dut.ip("link del vx2", "link del br2")
    eventually(lambda: told() == [], 30, 0.1, "no warning")
