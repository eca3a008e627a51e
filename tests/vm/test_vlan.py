# SPDX-License-Identifier: BSD-3-Clause
"""VLANs that the kernel has on a TAP are interfaces of the dataplane: IEEE 802.1Q, 802.1ad.
NICs that can strip and insert tags give the same results with this feature and without it."""

import contextlib
import os
import shutil
import statistics
import subprocess
import time
from types import SimpleNamespace

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from behind import HOST as BEHIND
from behind import echo, host_behind, ip_of
from labels import entries_of, with_labels
from lib import netns
from lib.linkwatch import LinkWatch
from lib.links import on_nics
from lib.probe import ping
from lib.wait import eventually
from router import Router, running
from sflow_sink import COUNTERS, PORT, Settings, Sink
from vlans import HOST, HOST6, NET, NET6, PEER, PEER6, VLAN, C, S
from vlans import add, neighbor, tagged, through, untagged, vlans
from vlans import lan, machine, router, vlan, wan  # noqa: F401
from wire import token, token_of

INNER = SimpleNamespace(name="s.30", tap="s.30")
GOING, GONE = "198.18.0.0/24", "198.18.0.9"
# 4000 VLANs take the guest two minutes: `N_VLANS=4000 make test-vm T=thousands`.
MANY = int(os.environ.get("N_VLANS", "1000"))


def octets(packet, tags=0):
    """Return the length of a received frame. Ethernet pads short frames, veths do not."""
    return max(len(bytes(packet)) + 4 * tags, 60 if on_nics() else 0)


@pytest.mark.quick
def test_who_sees_to_tags_is_shown(router, wan):
    assert router.port_row(wan)["vlan_offload"] is router.offloads
    said = router.fpmctl("show", "ports", "wan0").stdout
    assert ("VLAN tags by the NIC" in said) is router.offloads


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_forwards_out_of_and_into_a_vlan(router, lan, wan, family):
    host = HOST if family == 4 else HOST6

    out = through(lan, lan.probe(host), wan, (C, 100))

    assert (out.src, out.dst) == (wan.port_mac, wan.mac)
    assert out.type == (0x0800 if family == 4 else 0x86DD)
    assert (out[IP].ttl if family == 4 else out[IPv6].hlim) == 63
    back = lan.peer4 if family == 4 else lan.peer6
    src = PEER if family == 4 else PEER6
    out = through(wan, tagged(wan.probe(back, src=src), (C, 100)), lan)
    assert (out.src, out.dst) == (lan.port_mac, lan.mac)


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_samples_of_sflow_name_the_vlan(router, lan, wan):
    """A sample names the VLAN as the interface and in the record of switches, and has the tag in
    the frame. Its source is the port. The VLAN has counters, too."""
    settings = Settings(router)
    there = lan.probe(HOST, size=200)
    back = tagged(wan.probe(lan.peer4, src=PEER, size=200), (C, 100, 5))
    with Sink(router.ctl, port=PORT) as sink:
        settings(counters_s=1)
        for wire in (lan, wan):
            router.fence(wire)  # a forwarder uses the settings with which its round began
        try:
            through(lan, there, wan, (C, 100))
            through(wan, back, lan)
            for frame in (there, back):
                eventually(lambda f=frame: sink.of(token_of(f)), 5, 0.02, "a sample")
            eventually(lambda: sink.samples(COUNTERS, ifindex=router.ifindex(VLAN)), 10, 0.1)
        finally:
            settings(ports=())
        (out,), (into,) = sink.of(token_of(there)), sink.of(token_of(back))

    assert (out["input"], out["output"]) == (router.ifindex(lan), router.ifindex(VLAN))
    assert (out["vlan_in"], out["vlan_out"], out["nexthop"]) == (0, 100, PEER)
    assert (out["src_mask"], out["dst_mask"]) == (26, 24)
    assert (into["source"], into["input"]) == (router.ifindex(wan), router.ifindex(VLAN))
    assert into["output"] == router.ifindex(lan)
    assert (into["vlan_in"], into["pri_in"], into["vlan_out"]) == (100, 5, 0)
    assert into["header"] == back[:128] and into["length"] == len(back) + 4
    assert into["src_mask"] == 24


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
@pytest.mark.parametrize("tags", [1, 2])
def test_labels_behind_tags(router, lan, wan, family, tags):
    """Packets with labels leave by a VLAN of one tag or of two tags, and arrive by it. Labels are
    swapped, pushed and popped. The kernel gets a packet to an address of the router as the frame
    that came. An ICMP error about a packet with labels leaves by the VLAN."""
    behind_tags = [(C, 100)][:tags]
    on, peer, peer6 = VLAN, PEER, PEER6
    if tags == 2:
        behind_tags = [(S, 20), (C, 30)]
        on, peer, peer6 = INNER, "192.0.2.194", "2001:db8:65::2"
        add(router, "s", vid=20, protocol="802.1ad", addresses=())
        own = ("192.0.2.193/28", "2001:db8:65::1/64")
        add(router, "s.30", on="s", vid=30, addresses=own)
        for prefix, to in ((NET, peer), (NET6, peer6)):
            neighbor(router, wan, to, vlan=on)
    host, via = (HOST, peer) if family == 4 else (HOST6, peer6)
    hop = lambda labels: router.hop(on, labels, via=peer)  # noqa: E731
    router.label(100, hop([200, 201]))
    router.label(101, hop([]))
    router.label(102, router.hop(lan, [300]))
    router.label(103, {"oif": 1})
    router.route(NET if family == 4 else NET6, nhid=router.zebra.hop(via, on, labels=[400, 401]))

    def out(packet):
        return through(lan, packet, wan, *behind_tags)

    def into(packet):
        return through(wan, tagged(packet, *behind_tags), lan)

    assert labels_of(out(with_labels(lan.probe(host), 100))) == [200, 201]
    assert labels_of(out(lan.probe(host))) == [400, 401]
    plain = out(with_labels(lan.probe(host), 101))
    assert plain.type == (0x0800 if family == 4 else 0x86DD)
    assert labels_of(out(with_labels(lan.probe(host), 101, 500))) == [500]
    assert labels_of(into(with_labels(wan.probe(host), 102))) == [300]
    back = lan.peer4 if family == 4 else lan.peer6
    assert labels_of(into(with_labels(wan.probe(back, src=via), 103))) == []
    own = lan.ip4 if family == 4 else lan.ip6
    sent = tagged(with_labels(wan.probe(own, src=via), 103), *behind_tags)
    wan.send(sent)
    assert bytes(router.taps["wan"].expect_raw(token_of(sent))).startswith(sent)
    wan.send(tagged(with_labels(wan.probe(back, src=via), (103, 1)), *behind_tags))
    layer = ICMP if family == 4 else ICMPv6TimeExceeded
    errors = lambda f: f[12:].startswith(tagged(bytes(12), *behind_tags)[12:])  # noqa: E731
    came = wan.expect_raw(lambda f: errors(f) and layer in untagged(f, *behind_tags))
    error = untagged(came, *behind_tags)
    assert error[IP if family == 4 else IPv6].dst == via


def labels_of(frame):
    return [label for label, *_ in entries_of(frame)]


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_a_macvlan_on_a_vlan_has_its_mac_and_tag(router, lan, wan):
    """A virtual router of VRRP in a VLAN. The port and other VLANs do not accept its MAC."""
    vmac = "00:00:5e:00:01:05"
    add(router, "wan0.200", vid=200, addresses=("192.0.2.193/28",))
    router.ip(
        "link add link wan0.200 name vr5 type macvlan mode bridge",
        f"link set vr5 address {vmac}",
        "link set vr5 up",
        "addr add 192.0.2.210/28 dev vr5",
        f"neigh replace 192.0.2.211 lladdr {wan.mac} dev vr5 nud permanent",
    )
    shown = lambda: {r["name"]: r for r in router.control.ask("interfaces")}["vr5"]  # noqa: E731
    eventually(lambda: shown()["up"] and shown()["on"] == "wan0.200", 5, 0.01)

    def probe():
        made = wan.probe(HOST, src="192.0.2.194", size=100)
        made[Ether].dst = vmac
        return made

    through(wan, tagged(probe(), (C, 200)), wan, (C, 100))
    out = through(lan, lan.probe("192.0.2.211"), wan, (C, 200))

    assert out.src == vmac
    for tags in ((), ((C, 100),)):
        assert router.not_forwarded(wan, tagged(probe(), *tags)) == {"l2_foreign": 1}


# Two gateways with keepalived and VRRP's default timers. The other gateway has the higher priority.
VMACS = {4: "00:00:5e:00:01:05", 6: "00:00:5e:00:02:07"}
GROUPS = {4: "01005e000012", 6: "333300000012"}
FAIL_OVER_S = 4.0
KEEPALIVED = """\
global_defs {{
  vrrp_version 3
}}
vrrp_instance four {{
  state BACKUP
  interface {dev}
  use_vmac
  virtual_router_id 5
  priority {priority}
  virtual_ipaddress {{ 192.0.2.206/28 }}
}}
vrrp_instance six {{
  state BACKUP
  interface {dev}
  use_vmac
  virtual_router_id 7
  priority {priority}
  virtual_ipaddress {{
    fe80::5
    2001:db8:c8::14/64
  }}
}}
"""


@contextlib.contextmanager
def keepalived(router, namespace, dev, priority):
    """Run keepalived with a virtual router of each family."""
    files = {flag: f"{router.dir}/keepalived.{dev}.{flag}" for flag in "fprc"}
    with open(files["f"], "w", encoding="ascii") as file:
        file.write(KEEPALIVED.format(dev=dev, priority=priority))
    words = [word for flag, path in files.items() for word in (f"-{flag}", path)]
    with netns.entered(namespace):
        program = subprocess.Popen(["keepalived", "-n", "-l", *words],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        yield
    finally:
        program.terminate()
        program.wait(20)


@pytest.fixture
def other_gateway(router, wan):
    """The other end of wan is a gateway, too, in VLAN 200."""
    if shutil.which("keepalived") is None:
        pytest.skip("no keepalived: apt-get install keepalived")
    netns.ip_batch([f"link add link {wan.name} name gw.200 type vlan id 200"], router.far)
    try:
        netns.sysctl(router.far, {"net.ipv6.conf.gw/200.disable_ipv6": 0})
        netns.ip_batch(["link set gw.200 up", "addr add 192.0.2.195/28 dev gw.200"], router.far)
        with keepalived(router, router.far, "gw.200", 250):
            yield
    finally:
        netns.ip_batch(["link del gw.200"], router.far)


@pytest.mark.usefixtures("other_gateway")
def test_a_virtual_router_on_a_vlan_takes_over_in_time(router, lan, wan):
    """RFC 5798, 6.1: when the Master of a VLAN is silent, the Backup forwards the packets of the hosts
    after three advertisements and a part of a fourth, in both families."""
    add(router, "wan0.200", vid=200, addresses=("192.0.2.193/28", "2001:db8:c8::1/64"))
    sources = {4: ("192.0.2.194", lan.peer4), 6: ("2001:db8:c8::2", lan.peer6)}

    def other_is_master():
        ours, theirs = (netns.command(["ip", "-n", n, "-br", "addr"]) for n in (router.ctl, router.far))
        return all(a in theirs and a not in ours for a in ("192.0.2.206/28", "2001:db8:c8::14/64"))

    def passes(family):
        """Return True if an advertisement has come, and then a packet to the virtual MAC passes."""
        start = bytes.fromhex(GROUPS[family] + VMACS[family].replace(":", "") + "810000c8")
        if not wan.got(lambda data: data.startswith(start)):
            return False
        src, dst = sources[family]
        probe = wan.probe(dst, src=src)
        probe[Ether].dst = VMACS[family]
        wan.send(tagged(probe, (C, 200)))
        lan.expect(token_of(probe), 5)
        return True

    def silence():
        """Take the other gateway away. Return the seconds without a gateway, by family."""
        netns.ip_batch(["link set gw.200 down"], router.far)
        begin, took = time.monotonic(), {}
        wan.clear()
        while len(took) < 2 and time.monotonic() < begin + 30:
            took |= {f: time.monotonic() - begin for f in {4, 6} - took.keys() if passes(f)}
            time.sleep(0.01)
        netns.ip_batch(["link set gw.200 up"], router.far)
        return took

    with keepalived(router, router.ctl, "wan0.200", 200):
        for _ in range(3):  # a machine with other work may be late
            eventually(other_is_master, 30, 0.1, "the other gateway is Master")
            took = silence()
            if len(took) == 2 and max(took.values()) < FAIL_OVER_S:
                break
        print(f"seconds without a gateway, by family: {took}")
        assert len(took) == 2 and max(took.values()) < FAIL_OVER_S, took


def test_the_kernel_has_the_vlan_on_a_macvlan(router, lan, wan):
    """The forwarder gives the kernel the frames of the macvlan with a tag, and packets that are
    routed there."""
    vmac = "00:00:5e:00:01:06"
    router.ip(
        f"link add link wan0 name vr6 address {vmac} type macvlan mode bridge",
        "link set vr6 up",
        "link add link vr6 name vr6.50 type vlan id 50",
        "link set vr6.50 up",
        "addr add 203.0.113.1/24 dev vr6.50",
        f"neigh replace {PEER} lladdr {wan.mac} dev vr6.50 nud permanent",
    )
    probe = wan.probe(lan.peer4, src=PEER)
    probe[Ether].dst = vmac
    came = lambda: wan.send(tagged(probe, (C, 50))) or lan.got(token_of(probe))  # noqa: E731
    eventually(came, 5, 0.1, "a packet of the VLAN")
    there = lan.probe(PEER)
    eventually(lambda: lan.send(there) or wan.got(token_of(there)), 5, 0.1, "a packet into the VLAN")
    assert untagged(wan.got(token_of(there))[0], (C, 50)).src == vmac


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_the_kernel_forwards_a_packet_of_a_vlan(router, wan, family):
    """The route of a packet leaves by an interface that is no port. The VLAN interface of the
    kernel gets the packet, and the answer leaves with a tag."""
    with host_behind(router):
        probe = echo(wan, family, src=PEER if family == 4 else PEER6)
        before = router.counters()
        wan.send(tagged(probe, (C, 100)))
        back = lambda d: token_of(d) == token_of(probe) and d[:6] != wan.port_mac  # noqa: E731
        answer = untagged(wan.expect_raw(back), (C, 100))

        assert ip_of(answer, family).src == BEHIND[family]
        assert router.moved(before, "punt")["kernel_route"] == 1


@pytest.mark.usefixtures("vlan")
def test_a_priority_is_kept_from_vlan_to_vlan(router, wan):
    """IEEE 802.1Q, 6.9.3: PCP and DEI are kept. A frame without a tag has priority 0."""
    add(router, "wan0.200", vid=200, addresses=("192.0.2.193/28",))

    for priority in (0, 5, 7):
        # The packet is so long that neither Ethernet nor the NIC pads it.
        probe = wan.probe(HOST, src="192.0.2.194", size=100)
        through(wan, tagged(probe, (C, 200, priority)), wan, (C, 100, priority))


def test_what_the_kernel_sends_has_the_priority_that_it_gave(router, wan):
    """The kernel's frames have the priority of the VLAN's `egress-qos-map`, as with any NIC. Frames
    in transit do not have it, and there is a warning."""
    router.ip(
        "link add link wan0 name wan0.100 type vlan id 100 egress-qos-map 0:5",
        "link set wan0.100 up",
        "addr add 203.0.113.1/24 dev wan0.100",
    )
    eventually(lambda: vlans(router).get("wan0.100", {}).get("up"), 5, 0.01, "it is there")
    neighbor(router, wan)

    netns.run(router.ctl, ["ping", "-c", "1", "-W", "0.1", PEER], check=False)

    data = wan.expect_raw(lambda d: d[12:14] == b"\x81\0" and Ether(d).haslayer(ICMP))
    assert untagged(data, (C, 100, 5))[IP].dst == PEER
    # Forwarded frames do not have this priority, and the router warns about it.
    told = ("tc", "egress-qos-map of wan0.100")
    eventually(lambda: told in {(r["kind"], r["where"]) for r in router.control.ask("warnings")}, 10, 0.1)


@pytest.mark.usefixtures("vlan")
def test_many_at_a_time_of_several_vlans_and_none(router, lan, wan):
    """A forwarder divides a burst by VLAN. Each frame leaves once, by its own route."""
    add(router, "wan0.200", vid=200, addresses=("192.0.2.193/28",))
    neighbor(router, wan, "192.0.2.194", SimpleNamespace(tap="wan0.200"))
    plain = [wan.probe(lan.peer4) for _ in range(64)]
    one = [wan.probe(lan.peer4, src=PEER) for _ in range(64)]
    two = [wan.probe(HOST, src="192.0.2.194") for _ in range(64)]
    nobody = [wan.probe(lan.peer4) for _ in range(64)]
    before = router.counters()

    for a, b, c, d in zip(plain, one, two, nobody):
        wan.send(a, tagged(b, (C, 100)), tagged(c, (C, 200)), tagged(d, (C, 300)))
    router.fence(wan)

    assert router.drops(before) == {"vlan_unknown": 64}

    def mine(wire, probes):
        tokens = set(map(token_of, probes))
        return len(wire.got(lambda data: token_of(data) in tokens))

    assert mine(lan, plain) == mine(lan, one) == mine(wan, two) == 64
    rows = vlans(router)
    assert rows["wan0.100"]["rx_packets"] == 64 and rows["wan0.200"]["rx_packets"] == 64
    assert rows["wan0.100"]["tx_packets"] >= 64  # the kernel sends frames, too
    assert rows["wan0.100"]["rx_bytes"] == sum(octets(p, tags=1) for p in one)


@pytest.mark.quick
def test_two_tags(router, lan, wan, family):
    """IEEE 802.1ad: a customer's VLAN inside a service VLAN."""
    add(router, "s.20", vid=20, protocol="802.1ad", addresses=())
    add(router, "s.30", on="s.20", vid=30)
    host, peer, prefix = (HOST, PEER, NET) if family == 4 else (HOST6, PEER6, NET6)
    neighbor(router, wan, peer, INNER)
    router.route(prefix, via=peer, wire=INNER)
    tags = (S, 20), (C, 30)

    through(lan, lan.probe(host), wan, *tags)

    back = lan.peer4 if family == 4 else lan.peer6
    through(wan, tagged(wan.probe(back, src=peer), *tags), lan)
    assert vlans(router)["s.30"]["vlan"] == "20.30"
    for wrong in ([(S, 20), (C, 31)], [(S, 21), (C, 30)], [*tags, (C, 1)]):
        assert router.not_forwarded(wan, tagged(wan.probe(back, src=peer), *wrong)) == {
            "vlan_unknown": 1
        }


@pytest.mark.skipif(not on_nics(), reason="a veth lets one tag pass its MTU, not two")
def test_two_tags_pass_at_full_length(router, lan, wan):
    """QEMU's e1000e passes this length. On metal e1000e counts the FCS, too
    (manual/interfaces.md)."""
    add(router, "s.20", vid=20, protocol="802.1ad", addresses=())
    add(router, "s.30", on="s.20", vid=30)
    neighbor(router, wan, PEER, INNER)
    router.route(NET, via=PEER, wire=INNER)
    tags = (S, 20), (C, 30)

    assert through(lan, lan.probe(HOST, size=1500), wan, *tags)[IP].len == 1500
    frame = tagged(wan.probe(lan.peer4, src=PEER, size=1500), *tags)
    assert through(wan, frame, lan)[IP].len == 1500


def test_each_of_two_tags_keeps_its_priority(router, wan):
    """The service tag and the customer tag each keep their priority. If one tag is removed, the
    frame keeps the customer's priority."""
    add(router, "s.20", vid=20, protocol="802.1ad", addresses=())
    add(router, "s.30", on="s.20", vid=30)
    neighbor(router, wan, PEER, INNER)
    router.route(NET, via=PEER, wire=INNER)
    add(router, "wan0.200", vid=200, addresses=("192.0.2.193/28",))
    one, host = SimpleNamespace(tap="wan0.200"), "192.0.2.194"
    neighbor(router, wan, host, one)
    two = (S, 20, 2), (C, 30, 5)

    through(wan, tagged(wan.probe(HOST, src=PEER), *two), wan, *two)
    through(wan, tagged(wan.probe(host, src=PEER, size=100), *two), wan, (C, 200, 5))
    probe = wan.probe(HOST, src=host)
    through(wan, tagged(probe, (C, 200, 3)), wan, (S, 20, 3), (C, 30, 3))


def test_two_tags_of_one_kind(router, lan, wan):
    """The NIC may strip the outer tag, but not the inner one."""
    add(router, "s.20", vid=20, addresses=())
    add(router, "s.30", on="s.20", vid=30)
    neighbor(router, wan, PEER, INNER)
    router.route(NET, via=PEER, wire=INNER)
    tags = (C, 20, 5), (C, 30, 5)

    through(lan, lan.probe(HOST), wan, (C, 20), (C, 30))
    through(wan, tagged(wan.probe(HOST, src=PEER), *tags), wan, *tags)
    through(wan, tagged(wan.probe(lan.peer4, src=PEER), *tags), lan)
    frame = tagged(wan.probe("203.0.113.1", src=PEER), *tags)
    wan.send(frame)
    came = router.taps["wan"].expect_raw(token_of(frame))
    assert came == frame + bytes(octets(frame) - len(frame))


@pytest.mark.skipif(not on_nics(), reason="veths have no part in tags")
@pytest.mark.usefixtures("vlan")
def test_who_sees_to_tags_changes_by_a_reload(router, lan, wan):
    """A reload closes and opens the device. VLANs stay and forward."""
    word, other = ("auto", "off") if router.offloads else ("off", "auto")

    def becomes(was, now):
        router.edit_config(f"vlan-offload: {was}", f"vlan-offload: {now}")
        said = router.fpmctl("config", "reload")
        assert said.returncode == 0, said.stderr
        assert router.port_row(wan)["vlan_offload"] is (now == "auto")
        there = lambda: through(lan, lan.probe(HOST), wan, (C, 100))  # noqa: E731
        eventually(there, 10, 0.1, "out of the VLAN")
        through(wan, tagged(wan.probe(lan.peer4, src=PEER), (C, 100)), lan)

    becomes(word, other)
    becomes(other, word)


@pytest.mark.quick
def test_a_deleted_vlan_ends_at_once(router, lan, wan):
    """A deleted VLAN ends at once, with its neighbors and routes. Another VLAN can have its
    id."""
    add(router)
    neighbor(router, wan)
    router.route(NET, via=PEER, wire=VLAN)
    probe = tagged(wan.probe(lan.peer4, src=PEER), (C, 100))

    router.ip("link del wan0.100")
    eventually(lambda: vlans(router) == {}, 2, 0.01)

    assert router.not_forwarded(wan, probe) == {"vlan_unknown": 1}
    assert list(router.not_forwarded(lan, lan.probe(HOST)).values()) == [1]
    assert "wan0.100" not in {r["dev"] for r in router.control.ask("neighbors")}
    add(router, name="other")
    through(wan, tagged(wan.probe(lan.peer4, src=PEER), (C, 100)), lan)


@pytest.mark.usefixtures("vlan")
def test_a_vlan_that_is_set_down_is_deaf_and_its_routes_are_left(router, lan, wan):
    router.ip("link set wan0.100 down")
    eventually(lambda: not vlans(router)["wan0.100"]["up"], 2, 0.01)

    probe = tagged(wan.probe(lan.peer4, src=PEER), (C, 100))
    assert router.not_forwarded(wan, probe) == {"ingress_down": 1}
    assert router.not_forwarded(lan, lan.probe(HOST)) == {"egress_down": 1}
    through(wan, wan.probe(lan.peer4), lan)


@pytest.mark.usefixtures("vlan")
def test_a_port_that_is_set_down_takes_its_vlans_along(router, lan):
    router.ip("link set wan0 down")
    eventually(lambda: router.route_row(NET)["state"] == "down", 2, 0.01)

    assert router.not_forwarded(lan, lan.probe(HOST)) == {"egress_down": 1}
    router.ip("link set wan0 up", "link set wan0.100 up")
    eventually(lambda: vlans(router)["wan0.100"]["up"], 2, 0.01)


@pytest.mark.usefixtures("vlan")
def test_a_vlan_that_comes_up_with_its_port_is_announced(router, wan):
    """arp_notify: the gratuitous ARP for the address of a VLAN leaves with its tag when its port is set
    up again. The kernel's own one may be lost, because the port has no link yet."""
    netns.sysctl(router.ctl, {"net.ipv4.conf.wan0/100.arp_notify": 1})
    router.ip("link set wan0 down")
    eventually(lambda: not vlans(router)["wan0.100"]["up"], 5, 0.01)
    wan.clear()

    router.ip("link set wan0 up")

    body = ARP(hwsrc=wan.port_mac, psrc="203.0.113.1", hwdst="00:00:00:00:00:00", pdst="203.0.113.1")
    frame = tagged(Ether(src=wan.port_mac, dst="ff:ff:ff:ff:ff:ff") / body, (C, 100))
    eventually(lambda: any(data[: len(frame)] == frame for data in wan.got()), 10, 0.05)


@pytest.mark.skipif(on_nics(), reason="the far end is a veth of the same kernel")
@pytest.mark.usefixtures("vlan")
def test_a_lost_carrier_is_told_of_the_vlans_at_once(router, wan):
    """The kernel reports the lost carrier of the far end at once, that of the TAP a second later,
    and then that of its VLANs. The dataplane reports the TAP and its VLANs at once."""
    add(router, "wan0.s", vid=20, protocol="802.1ad", addresses=())
    add(router, INNER.name, "wan0.s", 30, addresses=())
    took = {"down": [], "up": []}
    with LinkWatch(router.ctl) as watch:
        for word, flag in (("down", "NO-CARRIER"), ("up", ",LOWER_UP")) * 5:
            netns.link_set(router.far, wan.name, word == "up")
            eventually(lambda w=word: router.port_row(wan)["link"] == w, 5, 0.001)
            begin = time.monotonic()
            for dev in (wan.tap, VLAN.tap, "wan0.s", INNER.tap):
                eventually(lambda d=dev, f=flag: f in watch.last(d), 5, 0.001)
            took[word].append(time.monotonic() - begin)
    # Medians, because a guest without KVM may stand still for a time.
    assert max(map(statistics.median, took.values())) < 0.5, took


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_an_icmp_error_is_the_vlans(router, wan, family):
    """RFC 1812, 4.3.2.4, RFC 4443, 2.2: the source is an address of the interface that received
    the packet."""
    last, host, peer = ({"ttl": 1}, HOST, PEER) if family == 4 else ({"hlim": 1}, HOST6, PEER6)
    probe = wan.probe(host, src=peer, **last)

    wan.send(tagged(probe, (C, 100)))

    data = wan.expect_raw(lambda d: d[12:16] == b"\x81\0\0\x64" and token_of(probe) in d)
    error = untagged(data, (C, 100))
    ip = error[IP if family == 4 else IPv6]
    assert (ip.src, ip.dst) == ("203.0.113.1" if family == 4 else "2001:db8:64::1", peer)
    assert error[ICMP].type == 11 if family == 4 else error[ICMPv6TimeExceeded].code == 0


@pytest.mark.usefixtures("vlan")
def test_an_mtu_of_its_own(router, lan, wan):
    router.ip("link set wan0.100 mtu 1400")
    eventually(
        lambda: (
            router.not_forwarded(lan, lan.probe(HOST, size=1401, flags="DF")) == {"mtu": 1}
        ),
        5,
        0.1,
    )

    through(lan, lan.probe(HOST, size=1400, flags="DF"), wan, (C, 100))
    pieces = lan.probe(HOST, size=1401)
    through(lan, pieces, wan, (C, 100))


@pytest.mark.usefixtures("vlan")
def test_pieces_have_the_priority_of_their_packet(router, wan):
    add(router, "wan0.200", vid=200, addresses=("192.0.2.193/28",))
    router.ip("link set wan0.100 mtu 1400")
    eventually(lambda: vlans(router)["wan0.100"]["mtu"] == 1400, 5, 0.01)

    whole = wan.probe(HOST, src="192.0.2.194", size=1500)
    piece = through(wan, tagged(whole, (C, 200, 5)), wan, (C, 100, 5))

    assert piece[IP].len < 1500


@pytest.mark.usefixtures("vlan")
def test_full_length(router, lan, wan):
    """A packet of 1500 octets of IP passes with a tag, because Ethernet allows this length."""
    out = through(lan, lan.probe(HOST, size=1500), wan, (C, 100))

    assert out[IP].len == 1500
    through(wan, tagged(wan.probe(lan.peer4, src=PEER, size=1500), (C, 100)), lan)


@pytest.mark.usefixtures("vlan")
def test_a_mac_of_its_own(router, lan, wan):
    """As in Linux, the VLAN accepts frames to the MAC of its port, too. The port does not accept
    that of the VLAN."""
    mac = "02:00:00:00:aa:01"
    router.ip(f"link set wan0.100 address {mac}")

    def leaves_with_it():
        return through(lan, lan.probe(HOST), wan, (C, 100)).src == mac

    eventually(leaves_with_it, 5, 0.05)
    probe = wan.probe(lan.peer4, src=PEER)
    through(wan, tagged(probe, (C, 100)), lan)
    probe = Ether(dst=mac, src=wan.mac) / wan.probe(lan.peer4, src=PEER)[IP]
    through(wan, tagged(probe, (C, 100)), lan)
    probe = Ether(dst=mac, src=wan.mac) / wan.probe(lan.peer4)[IP]
    assert router.not_forwarded(wan, probe) == {"l2_foreign": 1}


@pytest.mark.usefixtures("vlan")
def test_the_kernel_gets_what_was_on_the_wire(router, wan):
    """The port's TAP has the frames with their tags."""
    frames = [
        tagged(wan.probe("203.0.113.1", src=PEER), (C, 100, 5)),
        tagged(Ether(dst="ff:ff:ff:ff:ff:ff", src=wan.mac)
               / ARP(psrc=PEER, pdst="203.0.113.1") / Raw(token()), (C, 100)),
    ]  # fmt: skip

    for frame in frames:
        wan.send(frame)
        came = router.taps["wan"].expect_raw(token_of(frame))
        assert came == frame + bytes(octets(frame) - len(frame))


@pytest.mark.quick
def test_the_kernel_of_a_neighbor_is_pinged_through_a_vlan(router, lan, wan):
    """ARP and neighbor discovery pass with tags both ways. A forwarded packet waits for
    them."""
    add(router)
    netns.ip_batch(["link add link wan name v100 type vlan id 100"], router.far)
    try:
        netns.sysctl(router.far, {"net.ipv6.conf.v100.disable_ipv6": 0})
        netns.ip_batch(
            ["link set v100 up", f"addr add {PEER}/24 dev v100",
             f"addr add {PEER6}/64 dev v100 nodad"], router.far)  # fmt: skip
        for address in (PEER, PEER6):
            assert ping(router.ctl, address)[0] == 3
        probe = lan.probe(PEER)
        out = through(lan, probe, wan, (C, 100))
        assert out.dst == wan.mac
    finally:
        netns.ip_batch(["link del v100"], router.far)


@pytest.mark.usefixtures("vlan")
def test_a_packet_of_a_vlan_is_explained(router, lan, wan):
    said = router.fpmctl("explain", "dst", HOST, "src", lan.peer4, "port", "lan0")
    assert "wan0.100" in said.stdout, said.stdout + said.stderr

    said = router.fpmctl("explain", "dst", lan.peer4, "src", PEER, "port", "wan0.100")
    assert "FORWARDED" in said.stdout, said.stdout + said.stderr

    frame = tagged(wan.probe(lan.peer4, src=PEER), (C, 100))
    said = router.fpmctl("explain", "port", "wan0", "hex", frame.hex())
    assert "FORWARDED" in said.stdout, said.stdout + said.stderr


def test_thousands_on_a_port_that_go_under_load(router, lan, wan, capsys):
    """One VLAN forwards without a loss while a thousand other VLANs are added and deleted. Packets
    from and to a deleted VLAN pass until its deletion, with its tag, and then not at all."""
    add(router)
    neighbor(router, wan)
    router.route(NET, via=PEER, wire=VLAN)
    ids = [v for v in range(1, MANY + 1) if v != 100]
    make = [f"link add link wan0 name wan0.{v} group 7 up type vlan id {v}" for v in ids]
    some = (1, 512, MANY)
    make += [f"addr add 10.{v >> 8}.{v & 255}.1/24 dev wan0.{v}" for v in some]
    # Without IPv6 the guest's kernel makes the VLANs in half the time.
    netns.sysctl(router.ctl, {"net.ipv6.conf.default.disable_ipv6": 1})
    with router.stream(lan, HOST, rate=200) as stream:
        begin = time.monotonic()
        for at in range(0, len(make), 500):
            router.ip(*make[at : at + 500])
        netns.sysctl(router.ctl, {"net.ipv6.conf.default.disable_ipv6": 0})
        made = time.monotonic()
        eventually(
            lambda: sum(r["up"] for r in vlans(router).values()) == MANY, 30, 0.2, "all up"
        )
        known = time.monotonic()
        for v in some:
            probe = wan.probe(lan.peer4, src=f"10.{v >> 8}.{v & 255}.2")
            through(wan, tagged(probe, (C, v)), lan)
        going = SimpleNamespace(name="wan0.512", tap="wan0.512")
        neighbor(router, wan, "10.2.0.2", going)
        router.route(GOING, via="10.2.0.2", wire=going)
        outward, inward = (router.stream(*x, rate=200) for x in ((lan, GONE), (wan, lan.peer4)))
        inward.templates = [(tagged(head, (C, 512)), tail) for head, tail in inward.templates]
        with outward, inward:
            eventually(lambda: wan.got(outward.mark) and lan.got(inward.mark), 10, 0.01)
            going_since = time.monotonic()
            router.ip("link del group 7")
            asked = time.monotonic()
            eventually(lambda: len(vlans(router)) == 1, 30, 0.2, "all gone")
            gone = time.monotonic()
            first = [outward.sent, inward.sent]
            eventually(lambda: outward.sent > first[0] + 20 and inward.sent > first[1] + 20, 10)

    assert stream.lost(wan) == []
    with capsys.disabled():
        print(f"\n{MANY} vlans: made by the kernel in {made - begin:.1f} s, known "
              f"{known - made:.1f} s later; link del {asked - going_since:.1f} s, forgotten "
              f"{gone - asked:.1f} s later; of {stream.sent} packets of one that stays 0 lost")  # fmt: skip
    assert {data[12:16] for data in wan.got(outward.mark)} == {b"\x81\0\2\0"}
    for wire, one, since in ((wan, outward, first[0]), (lan, inward, first[1])):
        seen = one.arrived(wire)
        assert set(seen.values()) == {1} and max(seen) <= since
    assert router.alive()


def test_one_on_a_renamed_tap_outlives_the_daemon():
    """The TAP was renamed, and a VLAN on it keeps its own name. After a crash both have the
    same names and forward."""
    if on_nics():
        pytest.skip("all NICs are another router's")
    with running(Router(name="kept", supervised=True)) as dut:
        lan, wan = dut.wires["lan"], dut.wires["wan"]
        # The TAP is down meanwhile, because kernels before 6.2 require it.
        dut.ip("link set wan0 down", "link set wan0 name uplink", "link set uplink up")
        wan.tap = "uplink"
        dut.kernel_defaults()
        add(dut, on="uplink")
        neighbor(dut, wan)
        dut.route(NET, via=PEER, wire=VLAN)
        through(lan, lan.probe(HOST), wan, (C, 100))
        eventually(lambda: dut.fpm()["checkpoint"]["routes"] == 1, 5)
        dut.zebra.close()

        with LinkWatch(dut.ctl) as watch:
            was = dut.daemon.crash()
            dut.control.close()
            dut.daemon.back(was)
            eventually(lambda: vlans(dut)["wan0.100"]["up"] and dut.route_row(NET), 5)
            through(lan, lan.probe(HOST), wan, (C, 100))

        assert watch.lost_carrier() == []
        assert vlans(dut)["wan0.100"]["on"] == "wan0"


@pytest.mark.quick
@pytest.mark.usefixtures("vlan")
def test_rp_filter_is_that_of_the_vlan(router, lan, wan):
    """A VLAN has an rp_filter of its own, and is a reverse path of its own. Each packet of a burst
    from several VLANs is judged by the VLAN by which it came."""
    add(router, "wan0.101", vid=101, addresses=("203.0.114.1/24",))
    netns.sysctl(router.ctl, {"net.ipv4.conf.wan0/100.rp_filter": 1})
    eventually(lambda: vlans(router)["wan0.100"]["urpf"] == "strict", 5, 0.01, "strict")
    assert vlans(router)["wan0.101"]["urpf"] == "off"
    sources = {"203.0.113.9": True, "203.0.114.9": False, "192.0.2.77": False}
    frames = {
        (vid, src): tagged(wan.probe(lan.peer4, src=src), (C, vid))
        for src in sources
        for vid in (100, 101)
    }
    before = router.counters()

    wan.send(*frames.values())
    router.fence(wan)

    passed = {key for key, frame in frames.items() if lan.got(token_of(frame))}
    assert passed == {(vid, src) for vid, src in frames if vid == 101 or sources[src]}
    assert router.drops(before) == {"urpf": 2}
    rows = vlans(router)
    assert (rows["wan0.100"]["urpf_dropped"], rows["wan0.101"]["urpf_dropped"]) == (2, 0)
