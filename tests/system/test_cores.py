# SPDX-License-Identifier: BSD-3-Clause
"""Two forwarders: the same router on two cores, each port with two queues."""

import os
import threading
from collections import Counter

import pytest

from lib import preload
from lib.freeze import frozen
from lib.wait import LONG, eventually
from whereabouts import Whereabouts
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
PACKETS = 2000 if LONG else 800  # of each family


@pytest.fixture
def two_to_be(own_dut):
    """A router with a forwarder on each of two cores, not started yet."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("two forwarders need two cores")
    router = own_dut()
    router.edit_config("log-level:", f"cores: [{cpus[0]}, {cpus[1]}]\nlog-level:")
    return router


@pytest.fixture
def two(two_to_be):
    """The router with two forwarders, started."""
    two_to_be.start()
    return two_to_be


def test_every_flow_passes_in_order_on_two_cores(two):
    """Two forwarders share the flows between their queues and lose or reorder no packet. ICMP
    errors, local delivery and neighbors work from both, and the daemon stops cleanly."""
    dut, lan, wan = two, two.wires["lan"], two.wires["wan"]
    assert dut.port_row(lan)["queues"] == 2
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=wan.peer6, wire=wan)
    for dst in (HOST, HOST6):
        probes = [bytes(lan.probe(dst, sport=5000 + n % 40)) for n in range(PACKETS)]
        order = {token_of(p): n for n, p in enumerate(probes)}
        came = lambda: [order[token_of(d)] for d in wan.got() if token_of(d) in order]  # noqa: E731
        for at in range(0, PACKETS, 200):
            lan.send(*probes[at : at + 200])
            eventually(lambda n=at + 200: len(came()) >= n, 5, 0.01)
        came = came()
        assert len(came) == PACKETS
        for flow in range(40):
            of_flow = [n for n in came if n % 40 == flow]
            assert of_flow == sorted(of_flow)

    for n in range(16):
        assert lan.srp1(lan.probe("203.0.113.9", sport=6000 + n))
        lan.send(probe := lan.probe(lan.ip4, sport=6000 + n))
        dut.taps["lan"].expect_raw(token_of(probe))
    hosts = [f"192.0.2.{n}" for n in range(70, 80)]
    for host in hosts:
        wan.answer(host)
        dut.forwarded(lan, lan.probe(host), wan, timeout=3)
    passed = Counter({k: v for k, v in dut.counters("total").items() if k == "forwarded4"})
    assert passed["forwarded4"] >= PACKETS
    assert dut.stop() == 0


def test_routes_change_under_two_forwarders(two):
    """Both forwarders see a replace as a whole: no packet is lost or sent by a wrong egress."""
    dut, lan, wan, alt = two, *(two.wires[name] for name in ("lan", "wan", "alt"))
    one, other = dut.zebra.hop(wan.peer4, wan), dut.zebra.hop(alt.peer4, alt)
    dut.route(NET, nhid=one)

    with dut.stream(lan, HOST, rate=1500, flows=32) as stream:
        for n in range(150):
            dut.zebra.together(
                dut.zebra.drop_message(NET), dut.zebra.add_message(NET, (other, one)[n % 2])
            )
            sent = stream.sent
            eventually(lambda s=sent: stream.sent > s, 2, 0.001)
        stream.ending.set()
        stream.join()
        eventually(lambda: stream.lost(wan, alt) == [], 5, 0.05, "all packets arrived")

    assert dut.drops({}) == {}


def test_queues_are_served_where_the_file_says(own_dut):
    """The daemon places the queues by (port, queue, core) of the file and shares the other queues
    out evenly."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("two forwarders need two cores")
    router = own_dut()
    router.edit_config("log-level:", f"cores: {cpus}\nlog-level:")
    router.edit_config("iface=p-lan", f"iface=p-lan\n    cores: [{cpus[1]}, {cpus[1]}]")
    router.edit_config("iface=p-wan", f"iface=p-wan\n    cores: {cpus[::-1]}")
    router.start()
    lan, wan = router.wires["lan"], router.wires["wan"]

    rows = router.daemon.ports()
    served = Counter(cpu for row in rows.values() for cpu in row["cpus"])
    assert rows["lan0"]["cpus"] == [cpus[1]] * 2 and rows["wan0"]["cpus"] == cpus[::-1]
    assert served == {cpus[0]: 4, cpus[1]: 4}
    router.route(NET, via=wan.peer4, wire=wan)
    for n in range(20):
        router.forwarded(lan, lan.probe(HOST, sport=7000 + n), wan)
    assert {row["cpu"] for row in router.daemon.show("cycles")} <= set(cpus)


def test_a_move_whose_mtu_the_kernel_refuses_is_none(two_to_be, monkeypatch):
    """The kernel refuses the MTU of a change that also moves queues: the daemon changes nothing. A
    later move of another port is visible, so a move of this port would have been visible, too."""
    two = two_to_be
    preload.start(two, monkeypatch, "mtu_refused", MTU_REFUSED="1399")
    served = lambda name: two.daemon.ports()[name]["cpus"]  # noqa: E731
    before, was = two.fpmctl("config", "show").stdout, served("lan0")
    other = was[::-1]
    words = ["cores", ",".join(map(str, other))]

    refused = two.fpmctl("port", "set", "lan0", "mtu", "1399", *words)

    assert other != was == served("wan0") and refused.returncode == 2
    assert "nothing changed" in refused.stderr and "mtu not set" in refused.stderr
    assert two.fpmctl("config", "show").stdout == before
    assert two.fpmctl("port", "set", "wan0", *words).returncode == 0
    eventually(lambda: served("wan0") == other, 5, 0.01)
    assert served("lan0") == was


def test_queues_move_to_other_cores_and_no_packet_is_lost(two):
    """Both queues move to and fro forty times while 2000 packets a second pass: all packets arrive
    once, each flow in order. The daemon refuses a CPU that does not forward."""
    dut, lan, wan = two, two.wires["lan"], two.wires["wan"]
    cpus = sorted(os.sched_getaffinity(0))[:2]
    dut.route(NET, via=wan.peer4, wire=wan)
    where = Whereabouts(dut)

    with dut.stream(lan, HOST, rate=2000, flows=32) as stream:
        for n in range(40):
            want = [cpus[n % 2], cpus[n // 2 % 2]]
            done = dut.fpmctl("port", "set", "lan0", "cores", ",".join(map(str, want)))
            assert (done.returncode, done.stderr) == (0, "")
            assert dut.daemon.ports()["lan0"]["cpus"] == want
        refused = dut.fpmctl("port", "set", "lan0", "cores", f"{cpus[0]},{cpus[1] + 1}")

    assert refused.returncode != 0 and "nothing changed" in refused.stderr
    assert dut.daemon.ports()["lan0"]["cpus"] == want
    where.all_accounted_for(stream.lost(wan))
    assert set(stream.arrived(wan).values()) == {1}
    for flow, numbers in flows_of(stream, wan).items():
        assert numbers == sorted(numbers), f"flow {flow} out of order"


def done(dut, *words):
    """Run a command that must succeed."""
    result = dut.fpmctl(*words)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr


def test_another_ports_queues_and_cores_change_and_no_packet_is_lost(two, rng):
    """2000 packets a second pass between two other ports while one port changes its queues and
    cores. Packets that find no room are lost, and a counter counts each of them. Each flow stays in
    order, and each packet arrives once."""
    dut, lan, wan = two, two.wires["lan"], two.wires["wan"]
    cpus = sorted(os.sched_getaffinity(0))[:2]
    dut.route(NET, via=wan.peer4, wire=wan)
    where, queues = Whereabouts(dut), 2

    with dut.stream(lan, HOST, rate=2000, flows=32) as stream:
        done(dut, "port", "set", "ext0", "device", "net_null,no-rx=1", "queues", "2")
        for _ in range(12):
            queues = rng.choice([n for n in (1, 2, 3, 4) if n != queues])
            done(dut, "port", "set", "ext0", "cores", "auto", "queues", str(queues))
            assert dut.daemon.ports()["ext0"]["queues"] == queues
            for _ in range(2):
                want = rng.choices(cpus, k=queues)
                done(dut, "port", "set", "ext0", "cores", ",".join(map(str, want)))
                assert dut.daemon.ports()["ext0"]["cpus"] == want
        for _ in range(4):
            done(dut, "port", "del", "ext0")
            done(dut, "port", "add", "ext0", "device", "net_af_packet,iface=p-ext")
            for want in (cpus, cpus[::-1], [cpus[0]] * 2, [cpus[1]] * 2):
                done(dut, "port", "set", "ext0", "cores", ",".join(map(str, want)))
                assert dut.daemon.ports()["ext0"]["cpus"] == want

    where.all_accounted_for(stream.lost(wan))
    assert stream.sent > 1000 and set(stream.arrived(wan).values()) == {1}
    for flow, numbers in flows_of(stream, wan).items():
        assert numbers == sorted(numbers), f"flow {flow} out of order"


def test_what_a_forwarder_has_not_judged_yet_is_not_lost(two):
    """A fence of the tests waits for each forwarder, also for a forwarder that gets no CPU time."""
    dut, lan, wan = two, two.wires["lan"], two.wires["wan"]
    dut.route(NET, via=wan.peer4, wire=wan)

    for name in ("fwd-0", "fwd-1"):
        probes = [lan.probe(HOST, sport=5000 + n) for n in range(200)]
        come = lambda sent=probes: sum(bool(wan.got(token_of(p))) for p in sent)  # noqa: E731
        seen = []
        fence = threading.Thread(target=lambda: seen.append((dut.fence(lan), come())[1]))
        with frozen(dut.daemon.pid(), name):
            lan.send(*probes)
            marks = dut.marks
            fence.start()
            # The packets and the marks of the other forwarder have passed. The fence sends some
            # marks again because it has no answer.
            eventually(lambda n=marks: dut.marks > n + 32, 5, 0.01)
            assert 0 < come() < 200 and not seen
        fence.join()
        assert seen == [200]


def test_a_list_longer_than_the_queues_is_refused_and_auto_restores_the_file(two):
    """The daemon refuses a list of CPUs longer than the number of queues of net_af_packet. `auto`
    restores the value of the file."""
    cpu = min(os.sched_getaffinity(0))

    refused = two.fpmctl("port", "set", "lan0", "cores", f"{cpu},{cpu},{cpu}")

    assert refused.returncode == 2 and "2 receive queues, not 3" in refused.stderr
    assert "nothing changed" in refused.stderr
    assert two.fpmctl("port", "set", "lan0", "cores", f"{cpu},{cpu}").returncode == 0
    assert f"cores: [{cpu}, {cpu}]" in two.fpmctl("config", "show").stdout
    done = two.fpmctl("port", "set", "lan0", "cores", "auto")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"cores: [{cpu}, {cpu}]" not in two.fpmctl("config", "show").stdout
    assert two.daemon.ports()["lan0"]["cpus"] == [cpu, cpu]


def test_who_names_no_cpus_is_told_so_of_a_ports(own_dut):
    """With `cores: auto` no port can choose a CPU, because one CPU forwards. The daemon says that
    `cores:` is auto. It does not say that a CPU does not exist, not even of a CPU that it only keeps
    free of control threads."""
    router = own_dut()
    router.start()

    for cpu in os.sched_getaffinity(0):
        refused = router.fpmctl("port", "set", "lan0", "cores", str(cpu))
        assert refused.returncode == 2 and "`cores:` is auto" in refused.stderr
    router.edit_config("log-level:", f"cores: [{max(os.sched_getaffinity(0))}]\nlog-level:")
    refused = router.fpmctl("config", "reload")
    assert refused.returncode == 2 and "a restart of the daemon" in refused.stdout


def flows_of(stream, wire):
    """Return the numbers of a stream's packets by flow, in the order of arrival."""
    flows = {}
    for data in wire.got(stream.mark):
        at = data.index(stream.mark) + len(stream.mark)
        number = int.from_bytes(data[at : at + 4], "big")
        flows.setdefault(number % stream.flows, []).append(number)
    return flows


def allowed(folder):
    """Return the CPUs on which a thread may run."""
    with open(folder + "/status", encoding="ascii") as file:
        line = next(row for row in file if row.startswith("Cpus_allowed_list:"))
    found = set()
    for part in line.split()[1].split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.smoke
def test_no_other_thread_runs_on_a_core_that_forwards(dut):
    """The control threads, the threads of DPDK and of liburcu run on the other CPUs when there are
    any. The punt thread, for which BFD waits, is not bound to the only other CPU."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is no other CPU")
    tasks = f"/proc/{dut.daemon.pid()}/task"
    threads = {}
    for tid in os.listdir(tasks):
        with open(f"{tasks}/{tid}/comm", encoding="ascii") as file:
            threads[f"{file.read().strip()} {tid}"] = allowed(f"{tasks}/{tid}")

    cores = {name: cpus for name, cpus in threads.items() if name.startswith("fwd-")}
    busy = set().union(*cores.values())
    assert cores and all(len(cpus) == 1 for cpus in cores.values())
    others = os.sched_getaffinity(0) - busy
    (punt,) = (n for n in threads if n.startswith("fdp-punt"))
    assert threads.pop(punt) == (others if len(others) > 1 else others | busy)
    strays = {n: c for n, c in threads.items() if n not in cores and c & busy}
    assert strays == {}
