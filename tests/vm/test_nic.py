# SPDX-License-Identifier: BSD-3-Clause
"""A NIC on PCI with DPDK's own driver, behind an IOMMU, once for each model (run.py). The tests
show where a driver differs from AF_PACKET. The system tests show the handling of packets."""

import contextlib
import json
import os
import re
from types import SimpleNamespace

import pytest

from lib import netns
from lib.frr import Frr
from lib.links import FAR_SLOT
from lib.linkwatch import LinkWatch
from lib.wait import eventually
from router import Router, running
from wire import token_of

BEHIND = {("lan", 4): "198.51.100.9", ("wan", 4): "203.0.113.9",
          ("lan", 6): "2001:db8:a::9", ("wan", 6): "2001:db8:b::9"}  # fmt: skip
NETS = {"198.51.100.9": "198.51.100.0/24", "203.0.113.9": "203.0.113.0/24",
        "2001:db8:a::9": "2001:db8:a::/48", "2001:db8:b::9": "2001:db8:b::/48"}  # fmt: skip
JUMBO = 9000
VLAN = {4: ("203.0.113.1/24", "203.0.113.2"),
        6: ("2001:db8:64::1/64", "2001:db8:64::2")}  # fmt: skip


@pytest.fixture(scope="module")
def nic():
    """Run a router on NICs that may get long frames. Each NIC has a queue pair for each
    forwarder."""
    cores = ("\nmemory:", f"\ncores: {os.environ['FDP_CORES']}\nmemory:")
    jumbo = ("    device:", f"    mtu: {JUMBO}\n    checksum-offload: auto\n    device:")
    with running(Router(name="nic", metrics="127.0.0.1:9620"), cores, jumbo) as router:
        yield router


@pytest.fixture
def router(nic):
    """Return the router in its standard state."""
    nic.ready()
    return nic


def peer(wire, family):
    return wire.peer4 if family == 4 else wire.peer6


def behind(router, name, family):
    """Set a route to a host behind the peer of a wire. Return the host."""
    wire, host = router.wires[name], BEHIND[name, family]
    router.route(NETS[host], via=peer(wire, family), wire=wire)
    return host


@pytest.mark.quick
def test_the_driver_is_the_models_own(router):
    rows = router.control.ask("ports")

    assert {row["driver"] for row in rows} == {os.environ["FDP_DRIVER"]}
    assert {row["mac"] for row in rows} == {w.port_mac for w in router.wires.values()}


@pytest.mark.quick
def test_forwards_both_ways_without_loss(router, family):
    """Two streams of many flows pass in opposite directions, so that every queue has some flows."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    to_wan, to_lan = behind(router, "wan", family), behind(router, "lan", family)

    with router.stream(lan, to_wan, rate=400, flows=32) as there:
        with router.stream(wan, to_lan, rate=400, flows=32) as back:
            eventually(
                lambda: there.sent > 800 and back.sent > 800, 30, 0.1, "1600 packets"
            )

    eventually(lambda: there.lost(wan) == [] and back.lost(lan) == [], 5, 0.1, "all arrive")


@pytest.mark.quick
def test_a_wrong_header_checksum_is_dropped(router):
    """The NIC finds a wrong checksum if its driver says so and the file allows it. Otherwise
    the forwarder finds it. A packet with a right checksum passes in both cases."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    # The drivers of the other models do not offer the check.
    able = os.environ["FDP_DRIVER"] == "net_e1000_em"

    for was, now in (("auto", "off"), ("off", "auto"), ("auto", "auto")):
        looks = able and was == "auto"
        assert router.port_row(lan)["checksum_offload"] is looks
        said = " ".join(done(router, "show", "ports", "lan0").split())
        assert ("IPv4 checksums by the NIC" in said) is looks
        host = behind(router, "wan", 4)
        wrong = bytearray(bytes(lan.probe(host)))
        wrong[24] ^= 0x55
        assert router.not_forwarded(lan, bytes(wrong)) == {"ip4_checksum": 1}
        assert router.forwarded(lan, lan.probe(host), wan)
        # A change opens the device again.
        router.edit_config(f"checksum-offload: {was}", f"checksum-offload: {now}")
        done(router, "config", "reload")
        for wire in (lan, wan):
            carrier(router, wire)
        router.ready()


def test_every_queue_gets_its_share(router):
    """With several queues RSS leaves no forwarder without packets. `show ports` and doctor show the
    headers that the device hashes."""
    row = router.port_row(router.wires["lan"])
    queues = row["queues"]
    found = {r["subject"]: r for r in json.loads(router.fpmctl("--json", "doctor", "rss").stdout)}
    said = (found["lan0"]["status"], found["lan0"]["text"])
    if queues == 1:
        assert (row["rss"], *said) == ("none", "n/a", "one queue: nothing to spread")
        return
    assert row["rss"] == "ip tcp udp"
    assert said == ("warn", "hashes ip tcp udp, but not: sctp l2")
    assert "one CPU" not in found["lan0"]["cost"]
    lan, wan = router.wires["lan"], router.wires["wan"]
    host = behind(router, "wan", 4)
    probes = [lan.probe(host, sport=sport) for sport in range(1000, 1256)]
    before = router.forwarded_by()

    lan.send(*probes)

    tokens = set(map(token_of, probes))
    wan.expect_many(lambda data: token_of(data) in tokens, len(probes), 10)

    def shares():
        after = router.forwarded_by()
        by = {lcore: after[lcore] - before[lcore] for lcore in after}
        return sum(by.values()) >= len(probes) and by

    by = eventually(shares, 3, 0.02, "a burst that has left is counted")
    assert len(by) == queues and sum(by.values()) == len(probes)
    assert min(by.values()) > len(probes) / queues / 3, by


def test_fewer_queues_than_cores_leave_no_flow_out(router):
    """With fewer queues than forwarders every flow passes. virtio keeps its number of queues,
    because they come in pairs."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    host = behind(router, "wan", 4)
    for n in (1, len(json.loads(os.environ["FDP_CORES"]))):
        done(router, "port", "set", "lan0", "queues", str(n))
        carrier(router, lan)
        assert all(router.forwarded(lan, lan.probe(host, sport=s), wan) for s in range(2000, 2040))


def test_doctor_reports_the_facts_of_the_nic(router):
    """Doctor has the right result for each port in every check. Checks that apply to metal only
    are n/a for the devices of the hypervisor."""
    rows = json.loads(done(router, "--json", "device", "list"))
    groups = {row["port"]: row["iommu_group"] for row in rows}
    found = {}
    for row in json.loads(router.fpmctl("--json", "doctor").stdout):
        found.setdefault(row["subject"], {})[row["check"]] = (row["status"], row["text"])

    assert "fail" not in {status for by in found.values() for status, _ in by.values()}
    for wire in router.wires.values():
        of = found[wire.tap]
        assert of["iommu"] == ("ok", f"driver vfio-pci, IOMMU group {groups[wire.tap]}")
        assert of["members"][0] == of["queues"][0] == of["forwarding"][0] == "ok"
        slot = [of[check] for check in ("pcie-link", "ext-tag", "read-request")]
        if os.environ["FDP_DRIVER"] == "net_e1000_em":  # QEMU's e1000e looks like a NIC of metal
            assert slot == [("ok", "x1 at 2.5 GT/s, its maximum: 2 Gbit/s"),
                            ("n/a", "the device has none"), ("warn", "128 octets")]  # fmt: skip
        else:
            assert {status for status, _ in slot} == {"n/a"}
            assert all("a device of the hypervisor" in text for _, text in slot)


@pytest.mark.quick
def test_a_pulled_cable_is_carrier_lost_and_its_ways_are_left(router, qmp):
    """The driver polls the carrier of a NIC. Within a second after a cable is pulled the TAP
    has no carrier. Its flows take the other next hop, and return when the cable is back."""
    lan, wan, alt = (router.wires[n] for n in ("lan", "wan", "alt"))
    hops = [router.zebra.hop(w.peer4, w) for w in (wan, alt)]
    group = router.zebra.group(hops)
    router.route("198.51.100.0/24", nhid=group)
    flows = [lan.probe("198.51.100.9", sport=sport) for sport in range(2000, 2064)]
    tokens = set(map(token_of, flows))

    def out():
        for wire in (wan, alt):
            wire.clear()
        lan.send(*flows)
        mine = lambda w: len(w.got(lambda data: token_of(data) in tokens))  # noqa: E731
        eventually(lambda: mine(wan) + mine(alt) == len(flows), 5, 0.05, "all flows leave")
        return mine(wan), mine(alt)

    assert 0 not in out()
    with pulled(qmp, "port1"):
        eventually(lambda: "LOWER_UP" not in router.link_row(wan.tap)["flags"], 3, 0.02)
        eventually(lambda: not router.all_alive("198.51.100.0/24"), 3, 0.02, "rib knows that it is down")
        assert out() == (0, len(flows))
    carrier(router, wan)
    eventually(lambda: router.all_alive("198.51.100.0/24"), 3, 0.02, "rib knows that it is up")
    assert 0 not in out()


def modes(router, qmp):
    """Return (promiscuous, allmulticast) as the driver accepted them. They must be equal for all
    ports. QEMU shows the state of a virtio NIC, which must be the same. It shows no state of
    other NICs."""
    (found,) = {(r["promiscuous"], r["allmulticast"]) for r in router.control.ask("ports")}
    if os.environ["FDP_DRIVER"] == "net_virtio":
        for n in range(len(router.wires)):
            (nic,) = qmp("query-rx-filter", name=f"port{n}")
            assert (nic["promiscuous"], nic["multicast"] == "all") == found, nic
    return found


@pytest.mark.quick
def test_frames_for_others_stay_out_and_those_for_groups_come_in(router, qmp, monkeypatch):
    """The NIC filters frames to another MAC. A NIC that is promiscuous because of its VLAN
    tags passes them, and the forwarder drops and counts them. Frames to OSPF's groups are
    received although no program joined the groups at the NIC. A new MAC of the TAP is the
    NIC's at once."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    host, mac = behind(router, "wan", 4), "02:00:00:00:ab:cd"
    takes_all = os.environ["FDP_DRIVER"] == "net_virtio"
    dropped = {"l2_foreign": 1} if takes_all else {}

    assert modes(router, qmp) == (takes_all, True)
    assert router.not_forwarded(lan, frame_to(mac, lan.probe(host))) == dropped
    assert router.forwarded(lan, lan.probe(host), wan)
    groups = [
        frame_to("01:00:5e:00:00:05", lan.probe("224.0.0.5", ttl=1, proto=89)),
        frame_to("33:33:00:00:00:05", lan.probe("ff02::5", src="fe80::5", hlim=1)),
    ]
    lan.send(*groups)
    for group in groups:
        # The frame may be longer, because some models pad a short frame.
        assert router.taps["lan"].expect_raw(token_of(group), 5).startswith(group)

    router.ip(f"link set {lan.tap} address {mac}")
    eventually(lambda: router.port_row(lan)["mac"] == mac, 5, 0.01, "the MAC is in force")
    old = bytes(lan.probe(host))
    with monkeypatch.context() as patch:
        patch.setattr(lan, "port_mac", mac)
        assert router.forwarded(lan, lan.probe(host), wan)
        assert router.not_forwarded(lan, old) == dropped
    router.ready()
    eventually(lambda: router.port_row(lan)["mac"] == lan.port_mac, 5, 0.01, "the MAC is as before")
    host = behind(router, "wan", 4)
    assert router.forwarded(lan, lan.probe(host), wan)


def frame_to(mac, packet):
    """Return a probe with another MAC, as octets."""
    return bytes.fromhex(mac.replace(":", "")) + bytes(packet)[6:]


def test_counters_agree_with_those_of_the_other_end(router):
    """Frames and octets, in and out, are equal to the counts of the kernel's NICs at the other
    ends, for frames of 60 octets up to the longest."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    host = behind(router, "wan", 4)
    router.ip(*(f"link set {w.tap} mtu {JUMBO}" for w in (lan, wan)))
    for wire in (lan, wan):
        eventually(lambda w=wire: router.port_row(w)["mtu"] == JUMBO, 2, 0.01, "MTU in force")
    probes = [lan.probe(host, size=size) for size in (46, 60, 64, 1500, JUMBO) * 10]
    begin = eventually(lambda: (now := both_ends(router)) == both_ends(router) and now, 5)

    lan.send(*probes)

    tokens = set(map(token_of, probes))
    wan.expect_many(lambda data: token_of(data) in tokens, len(probes), 10)
    octets = sum(len(bytes(probe)) for probe in probes)

    def moved():
        ours, theirs = (
            {key: now[key] - was[key] for key in now}
            for now, was in zip(both_ends(router), begin)
        )
        assert ours == theirs and ours["lan", "rx_packets"] >= len(probes), (ours, theirs)
        return ours

    by = eventually(moved, 5, 0.05, "both ends have counted all")
    assert min(by["lan", "rx_bytes"], by["wan", "tx_bytes"]) >= octets
    row = router.port_row(lan)
    assert (row["rx_errors"], row["tx_errors"]) == (0, 0)


def both_ends(router):
    """Return the counters of lan and wan by (name, counter): the counters of the dataplane,
    and the counters that the other ends expect."""
    rows = netns.read_proc(router.far, "/proc/net/dev").splitlines()[2:]
    fields = {row.split(":")[0].strip(): row.split(":")[1].split() for row in rows}
    ours, theirs = {}, {}
    for name in ("lan", "wan"):
        row = router.port_row(router.wires[name])
        ours |= {(name, f"{direction}_{of}"): row[f"{direction}_{of}"]
                 for direction in ("rx", "tx") for of in ("packets", "bytes")}  # fmt: skip
        bytes_in, in_, bytes_out, out = (int(fields[name][i]) for i in (0, 1, 8, 9))
        theirs |= {(name, "rx_packets"): out, (name, "rx_bytes"): bytes_out,
                   (name, "tx_packets"): in_, (name, "tx_bytes"): bytes_in}  # fmt: skip
    return ours, theirs


@contextlib.contextmanager
def pulled(qmp, nic_id):
    """Pull the cable of a NIC for the length of the block."""
    qmp("set_link", name=nic_id, up=False)
    try:
        yield
    finally:
        qmp("set_link", name=nic_id, up=True)


def carrier(router, wire):
    """Wait until the kernel and the dataplane see the carrier."""
    eventually(lambda: "LOWER_UP" in router.link_row(wire.tap)["flags"], 10, 0.02)
    eventually(lambda: router.port_row(wire)["link"] == "up", 2, 0.02)


def test_who_asks_for_counters_does_not_disturb_the_carrier(router):
    """Two threads read link state and statistics, which share registers in some NICs. The
    carrier stays."""
    with LinkWatch(router.ctl) as watch:
        for _ in range(300):
            router.control.ask("ports")

    assert watch.lost_carrier() == []


def test_a_nic_goes_and_comes_while_another_forwards(router):
    """A driver gives the NIC back and takes it again three times. A stream between two other
    ports loses no packet."""
    lan, wan, ext = (router.wires[n] for n in ("lan", "wan", "ext"))
    host = behind(router, "wan", 4)
    device = router.wiring.device("ext")
    with router.stream(lan, host, rate=200, flows=8) as stream:
        for _ in range(3):
            done(router, "port", "del", "ext0")
            done(router, "port", "add", "ext0", "device", device, "mtu", str(JUMBO))

    eventually(lambda: stream.lost(wan) == [], 5, 0.1, "all arrive")
    forwards_by_ext(router)


def done(router, *words):
    """Run fpmctl, which must succeed. Return its output."""
    ran = router.fpmctl(*words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def forwards_by_ext(router):
    """Check that the new port ext0 works as the old one did."""
    lan, ext = router.wires["lan"], router.wires["ext"]
    router.taps["ext"] = router._wire(router.ctl, "ext0")
    router.collector.add(router.taps["ext"])
    carrier(router, ext)
    assert router.port_row(ext)["driver"] == os.environ["FDP_DRIVER"]
    router.ready()
    router.route("203.0.113.0/24", via=ext.peer4, wire=ext)
    assert router.forwarded(lan, lan.probe("203.0.113.9"), ext)


def test_a_nic_changes_its_driver_unless_it_is_in_use(router, monkeypatch):
    """fpmctl device gives a real NIC from the dataplane to the kernel's driver and back. It
    refuses to take a NIC that is in use, so an error in a command cannot cut off its user."""
    address = router.wiring.device("ext")

    def refused(code, words, *command, **more):
        ran = router.fpmctl("device", *command, **more)
        assert (ran.returncode, words in ran.stderr) == (code, True), ran

    def row():
        rows = json.loads(done(router, "--json", "device", "list"))
        return next(r for r in rows if r["address"] == address)

    assert (row()["driver"], row()["port"], row()["open"]) == ("vfio-pci", "ext0", True)
    assert row()["iommu_group"] is not None
    refused(2, "is port ext0 of the running dataplane", "unbind", address)
    refused(2, "a process has it open", "unbind", address, socket_path="/nowhere")
    refused(2, "it is not a NIC", "bind", "00:1f.2")
    refused(2, "there is no PCI device 0000:00:1e.7", "bind", "00:1e.7")
    refused(2, "'eth77' is neither", "unbind", "eth77")
    done(router, "port", "del", "ext0")
    assert "before vfio-pci" in done(router, "device", "unbind", address)
    assert not row()["driver"].startswith("vfio")
    name = eventually(lambda: row()["interface"], 10, 0.05, "the kernel's interface")
    held = router.fpmctl("port", "add", "ext0", "device", address)
    assert held.returncode == 2 and "refused, nothing changed" in held.stderr
    assert f"the kernel's driver {row()['driver']} has {address}" in held.stderr
    assert f"`fpmctl device bind {address}`" in held.stderr
    assert (row()["port"], row()["open"], row()["ssh"]) == (None, False, False)
    far = f"0000:00:{FAR_SLOT:02x}.0"
    refused(2, f"{far}: its interface is in another network namespace", "bind", name, far)
    assert row()["interface"] == name  # the first device was not bound
    netns.ip_batch([f"addr add 192.0.2.250/26 dev {name}", f"link set {name} up"])
    refused(2, f"{name} has an address", "bind", address)
    netns.ip_batch([f"route add default via 192.0.2.251 dev {name}"])
    refused(2, f"{name} carries the default route", "bind", name)
    monkeypatch.setenv("SSH_CONNECTION", "198.51.100.7 50022 192.0.2.250 22")
    refused(2, f"an SSH session comes in by {name}; or --force", "bind", name)
    assert row()["default_route"] and row()["ssh"] and row()["has_address"]
    assert "SSH session" in done(router, "device", "list")
    refused(2, "'eth77' is neither", "bind", "--force", name, "eth77")
    refused(2, "is named twice", "bind", "--force", name, address)
    assert row()["interface"] == name
    assert "driver vfio-pci, before" in done(router, "device", "bind", name, "--force")
    monkeypatch.delenv("SSH_CONNECTION")
    (said,) = json.loads(done(router, "--json", "device", "bind", address))
    assert said == {"address": address, "driver": "vfio-pci", "before": "vfio-pci"}

    done(router, "port", "add", "ext0", "device", address, "mtu", str(JUMBO))
    forwards_by_ext(router)


# More MACs than the filter of an e1000e holds (15 and the own one).
MACVLANS = 20


def test_more_macs_than_the_filter_of_the_nic_holds(router, monkeypatch):
    """The NIC receives the frames to the MAC of each macvlan. If its filter has no room for one, or if
    its driver adds no MACs, the NIC becomes promiscuous, and the log says why."""
    ext, wan, device = router.wires["ext"], router.wires["wan"], router.wiring.device("ext")
    host = behind(router, "wan", 4)
    # They are not those of VRRP, for which the log would warn about arp_ignore.
    macs = {f"vm{n}": f"02:00:00:00:05:{n:02x}" for n in range(1, MACVLANS + 1)}
    was_all = router.port_row(ext)["promiscuous"]
    add = "link add link ext0 name {} address {} up type macvlan mode bridge"
    try:
        router.ip(*(add.format(*pair) for pair in macs.items()))
        known = lambda: macs.keys() <= {r["name"] for r in router.control.ask("interfaces")}  # noqa: E731
        eventually(known, 10, 0.05, "the macvlans are known")
        for mac in (*macs.values(), ext.port_mac):
            with monkeypatch.context() as patch:
                patch.setattr(ext, "port_mac", mac)
                eventually(lambda: router.forwarded(ext, ext.probe(host), wan), 10, 0.05, f"frames to {mac}")
        filled = "port: promiscuous mode on port=ext0 reason=mac-not-added" in router.log()
        assert router.port_row(ext)["promiscuous"] is True
        # virtio is promiscuous before, because of VLAN tags.
        assert filled is not was_all
    finally:
        router.ip(*(f"link del {name}" for name in macs))
        # A device that is opened again has the filter that it had.
        done(router, "port", "del", "ext0")
        done(router, "port", "add", "ext0", "device", device, "mtu", str(JUMBO))
    forwards_by_ext(router)


def test_a_tap_that_is_down_takes_the_link_of_the_nic_with_it(router):
    """`shutdown` in vtysh sets the TAP down. The driver takes the link of the NIC down if it can, else
    the log says that it cannot. After `no shutdown` packets pass again."""
    lan, wan = router.wires["lan"], router.wires["wan"]

    def said(state):
        words = f"neigh: link of device (set|not set) port=lan0 state={state}"
        return re.findall(words, router.log())

    before = len(said("down")), len(said("up"))
    router.ip(f"link set {lan.tap} down")
    eventually(lambda: len(said("down")) > before[0], 5, 0.02, "the link is set down")
    router.ip(f"link set {lan.tap} up")
    eventually(lambda: len(said("up")) > before[1], 5, 0.02, "the link is set up")
    print(f"{os.environ['FDP_DRIVER']}: link of device {said('down')[-1]}")
    assert said("down")[-1] == said("up")[-1], "a driver that sets the link down sets it up"

    carrier(router, lan)
    router.ready()
    host = behind(router, "wan", 4)
    assert router.forwarded(lan, lan.probe(host), wan)


def test_an_mtu_that_is_raised_is_in_force(router):
    """A NIC is opened for 1500 octets and its MTU is raised while it runs. Longer frames are
    received, although some drivers must open the device again for it. The port stays the
    same."""
    ext, wan, device = router.wires["ext"], router.wires["wan"], router.wiring.device("ext")
    done(router, "port", "del", "ext0")
    done(router, "port", "add", "ext0", "device", device, "mtu", "1500")
    forwards_by_ext(router)
    index = router.link_row("ext0")["ifindex"]
    router.ip(f"link set {wan.tap} mtu {JUMBO}")

    assert "applied" in done(router, "port", "set", "ext0", "mtu", str(JUMBO))

    carrier(router, ext)
    assert router.link_row("ext0")["ifindex"] == index
    eventually(lambda: router.port_row(ext)["mtu"] == JUMBO, 5, 0.05, "MTU in force")
    host = behind(router, "wan", 4)
    probe = bytes(ext.probe(host, size=JUMBO))
    ext.send(probe)
    came = wan.expect_raw(token_of(probe), 5)
    assert came[14 + 40 :] == probe[14 + 40 :]
    forwards_by_ext(router)


@pytest.mark.quick
def test_long_frames_pass_whole(router, family):
    """Frames of up to 9000 octets of IP pass whole, with this MTU of device, TAP and the other
    end."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    host = behind(router, "wan", family)
    router.ip(*(f"link set {w.tap} mtu {JUMBO}" for w in (lan, wan)))
    eventually(lambda: router.port_row(wan)["mtu"] == JUMBO, 2, 0.01, "MTU in force")
    eventually(lambda: router.port_row(lan)["mtu"] == JUMBO, 2, 0.01, "MTU in force")

    for size in (1501, 2049, 4096, 8178, 8179, 8999, JUMBO):
        probe = bytes(lan.probe(host, size=size))
        lan.send(probe)
        came = wan.expect_raw(token_of(probe), 5)
        # These octets are behind the headers that a router rewrites.
        assert came[14 + 40 :] == probe[14 + 40 :], size


def test_long_frames_of_the_kernel_leave_and_are_heard(router):
    """Long frames pass whole through the TAP in both directions. BGP sessions with a large MTU need this."""
    lan = router.wires["lan"]
    router.ip(f"link set {lan.tap} mtu {JUMBO}")
    eventually(lambda: router.port_row(lan)["mtu"] == JUMBO, 2, 0.01, "MTU in force")
    with kernel_peer(router, "lan", "192.0.2.50/26"):
        said = netns.run(router.far, ["ping", "-c", "3", "-M", "do", "-s", str(JUMBO - 28),
                                      "-W", "3", lan.ip4])  # fmt: skip

    assert " 3 received" in said, said


@pytest.fixture
def vlan(router):
    """Add wan0.100 with the peer as a neighbor, for the longest frames."""
    wan = router.wires["wan"]
    router.ip(*(f"link set {router.wires[n].tap} mtu {JUMBO}" for n in ("lan", "wan")))
    router.ip("link add link wan0 name wan0.100 type vlan id 100", "link set wan0.100 up")
    router.ip(*(f"addr add {ours} dev wan0.100 nodad" for ours, _ in VLAN.values()))
    row = SimpleNamespace(tap="wan0.100", mac=wan.mac)
    for _, peer in VLAN.values():
        router.neighbor(peer, row)
    eventually(lambda: router.port_row(wan)["mtu"] == JUMBO, 2, 0.01, "MTU in force")

    def there():
        rows = router.control.ask("interfaces", name="wan0.100")
        ours = {address for address, _ in VLAN.values()}
        return rows and rows[0]["up"] and ours <= set(rows[0]["addresses"])

    eventually(there, 5, 0.01, "an interface with its addresses")
    yield router
    router.ip("link del wan0.100")


def test_a_vlan_passes_both_ways(vlan, family):
    """Every NIC passes tagged frames, also the longest, which have four octets more. A frame
    with a priority tag alone (VLAN 0) is handled as untagged."""
    lan, wan = vlan.wires["lan"], vlan.wires["wan"]
    peer, host = VLAN[family][1], lan.peer4 if family == 4 else lan.peer6

    for size in (100, JUMBO):
        out = bytes(lan.probe(peer, size=size))
        lan.send(out)
        came = wan.expect_raw(token_of(out), 5)
        assert (came[12:16].hex(), came[58:]) == ("81000064", out[54:]), size
        for tag in ("81000064", "8100e064", "8100a000"):
            back = bytes(wan.probe(host, src=peer, size=size))
            wan.send(back[:12] + bytes.fromhex(tag) + back[12:])
            came = lan.expect_raw(token_of(back), 5)
            assert came[54:] == back[54:], (size, tag)


@contextlib.contextmanager
def kernel_peer(router, name, *addresses):
    """Give the kernel at the far end of a wire addresses for the length of the block."""
    netns.sysctl(router.far, {f"net.ipv6.conf.{name}.disable_ipv6": 0})
    netns.ip_batch([f"addr add {a} dev {name}" for a in addresses], router.far)
    try:
        yield
    finally:
        netns.ip_batch([f"addr flush dev {name}"], router.far)
        netns.sysctl(router.far, {f"net.ipv6.conf.{name}.disable_ipv6": 1})


DAEMONS = 'bgpd=yes\nzebra_options="-A 127.0.0.1 -s 90000000{more}"\nbgpd_options="-A 127.0.0.1"\n'
BGP = """\
hostname {host}
{fpm}
router bgp {asn}
 bgp router-id {id}
 no bgp ebgp-requires-policy
 no bgp network import-check
 no bgp default ipv4-unicast
 neighbor {peer4} remote-as {peer_as}
 neighbor {peer6} remote-as {peer_as}
 neighbor {peer4} timers 3 9
 neighbor {peer6} timers 3 9
 neighbor {peer4} timers connect 1
 neighbor {peer6} timers connect 1
 address-family ipv4 unicast
  neighbor {peer4} activate
  {net4}
 exit-address-family
 address-family ipv6 unicast
  neighbor {peer6} activate
  {net6}
 exit-address-family
exit
"""


def bgp_router(router, namespace, host, more="", **words):
    """Start an FRR with one BGP session for each family. Its files are in the router's
    directory."""
    source = f"{router.dir}/{host}.conf"
    os.makedirs(source)
    texts = {"daemons": DAEMONS.format(more=more), "vtysh.conf": f"hostname {host}\n",
             "frr.conf": BGP.format(host=host, **words)}  # fmt: skip
    for name, text in texts.items():
        with open(f"{source}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    frr = Frr(namespace, source, f"{router.dir}/{host}", router.dir)
    frr.start()
    return frr


def test_bgp_through_the_tap_makes_routes_that_forward(router, qmp):
    """An FRR runs at each end of the wire. ARP, neighbor discovery and TCP pass by the NIC and
    the TAP. Packets to the prefixes that the peer announces are forwarded. A pulled cable ends
    the session."""
    lan, wan = router.wires["lan"], router.wires["wan"]
    ip4, ip6 = "192.0.2.100", "2001:db8:1::100"
    router.zebra.close()
    with contextlib.ExitStack() as undo:
        undo.enter_context(kernel_peer(router, "wan", f"{ip4}/26", f"{ip6}/64"))
        both = {"asn": 65001, "peer_as": 65002, "id": ip4}
        isp = bgp_router(
            router, router.far, "isp", **both, fpm="no ipv6 forwarding", peer4=wan.ip4,
            peer6=wan.ip6, net4="network 203.0.113.0/24",
            net6="network 2001:db8:b::/48")  # fmt: skip
        undo.callback(isp.stop, *isp.daemons)
        r1 = bgp_router(
            router, router.ctl, "r1", " -M dplane_fpm_nl", asn=65002, peer_as=65001, id=wan.ip4,
            fpm="fpm address 127.0.0.1", peer4=ip4, peer6=ip6, net4="", net6="")  # fmt: skip
        undo.callback(r1.stop, *r1.daemons)
        for family in (4, 6):
            host = BEHIND["wan", family]
            # Wait for the route, because a call of vtysh takes many seconds in the guest.
            eventually(lambda h=host: router.route_row(NETS[h]), 60, 0.1, "a route by BGP")
            router.in_force(NETS[host])
            assert router.forwarded(lan, lan.probe(host), wan, 10)
        with pulled(qmp, "port1"):
            # The session ends before the hold time, because the TAP has no carrier.
            eventually(lambda: r1.bgp_state(ip4) != "Established", 4, 0.1, "BGP goes down")
            assert "LOWER_UP" not in router.link_row(wan.tap)["flags"]
        carrier(router, wan)


def test_nothing_is_amiss_in_the_log(router):
    """The log of a start and of an hour on a good NIC has no warning, because an operator would
    have to examine it."""
    text = router.log(10000)

    lines = [line for line in text.splitlines() if re.search(r"^\S+ [EW] ", line)]
    # Other tests have caused these: DPDK's lines about the kernel's NIC that a test has named, its
    # lines about the MACs for which the filter has no room, and the links that drivers do not set.
    known = (
        'dpdk: message text="EAL: (Driver cannot|Failed to) attach (the )?device ',
        'dpdk: message text="eth_virtio_pci_init.*: Failed to init PCI device',
        r'dpdk: message text="Port \d+: MAC address array full"$',
        'neigh: link of device not set port=lan0 state=(up|down) error="Operation not supported"',
    )
    assert [x for x in lines if not any(re.search(words, x) for words in known)] == []
