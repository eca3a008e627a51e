# SPDX-License-Identifier: BSD-3-Clause
"""The model of N boxes (bench/scale.py) has the figures of the theory and of the four-box lab, and
bench_scale.py takes the figures of other benchmarks."""

import json
import os
import subprocess
import sys

import pytest

from bench import scale
from lib.docs import ROOT

FOUR = ["r1", "r2", "r3", "r4"]
PROGRAM = os.path.join(ROOT, "tests", "bench", "bench_scale.py")
BOX = scale.Box(mpps=10.0, cores=2, ext_gbps=10, mesh_gbps=10, octets=64)


def test_vlb_spreads_a_hot_pair_over_all_links_of_its_ends():
    """Each of the N - 1 links from the input box, and each to the output box, carries 1 / (N - 1) of the
    traffic. With direct routing one link carries all of it."""
    direct, vlb = (scale.loads({("r2", "r3"): 600}, mode, FOUR) for mode in scale.MODES)

    assert {link: n for link, n in direct.items() if n} == {("r2", "r3"): 600}
    used = {("r2", "r1"), ("r2", "r3"), ("r2", "r4"), ("r1", "r3"), ("r4", "r3")}
    assert {link: n for link, n in vlb.items() if n} == dict.fromkeys(used, 200)


@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
def test_uniform_traffic_loads_each_link_by_less_than_twice_the_direct_load(n):
    """With a demand d of each pair, each direction of each link carries d (2 N - 3) / (N - 1)."""
    boxes = [f"r{i}" for i in range(n)]
    demand = scale.uniform(boxes, n - 1)  # 1 for each pair

    assert set(scale.loads(demand, "direct", boxes).values()) == {1.0}
    wanted = dict.fromkeys(scale.links(boxes), (2 * n - 3) / (n - 1))
    assert scale.loads(demand, "vlb", boxes) == pytest.approx(wanted)


@pytest.mark.parametrize("n, boxes", [(2, 2.0), (3, 2.5), (4, 2 + 2 / 3), (16, 2 + 14 / 15)])
def test_a_packet_passes_two_boxes_or_three(n, boxes):
    """With VLB phase 1 ends at the output box for one of N - 1 parts of the traffic."""
    of = [f"r{i}" for i in range(n)]

    assert scale.boxes_passed(scale.uniform(of), "direct", of) == pytest.approx(2)
    assert scale.boxes_passed(scale.uniform(of), "vlb", of) == pytest.approx(boxes)
    assert scale.boxes_passed({("r0", "r0"): 5}, "vlb", of) == pytest.approx(1)


def test_the_slowest_part_limits_the_throughput():
    """The cores limit the rate if the mesh is fast. The mesh limits it if the links are slow, and the
    ports limit it if the cores are fast."""
    demand = scale.uniform(FOUR)
    port = 10e3 / (8 * 84)  # Mpps of a link

    most, limit = scale.throughput(demand, "vlb", FOUR, BOX)
    assert limit == "cores" and most == pytest.approx(4 * 20 / (2 + 2 / 3))
    fast = scale.Box(1000.0, 2, 10, 10, 64)
    assert scale.throughput(demand, "vlb", FOUR, fast) == (pytest.approx(4 * port), "port")
    slow = scale.Box(1000.0, 2, 10, 1, 64)
    most, limit = scale.throughput(scale.hot(FOUR), "direct", FOUR, slow)
    assert limit == "mesh" and most == pytest.approx(port / 10)
    assert scale.throughput(scale.hot(FOUR), "vlb", FOUR, slow)[0] == pytest.approx(3 * port / 10)


def test_a_dead_link_costs_phase_1_until_the_group_moves_and_phase_2_until_routing_does():
    """Each of four boxes sends 3 units to the other boxes. The dead link carries a third of the
    traffic of both ends in phase 1, and a third of that of four other pairs in phase 2."""
    demand = scale.uniform(FOUR, 3)

    lost = scale.loss(demand, "vlb", FOUR, {"r1", "r2"}, 0.001, 0.2)
    assert (lost["member"], lost["reroute"], lost["gone"]) == pytest.approx((2.0, 4 / 3, 0.0))
    assert lost["packets"] == pytest.approx(2.0 * 0.001 + 4 / 3 * 0.2)
    lost = scale.loss(demand, "direct", FOUR, {"r1", "r2"}, 0.001, 0.2)
    assert (lost["member"], lost["reroute"]) == pytest.approx((0.0, 2.0))
    assert scale.loss(demand, "vlb", FOUR, {"r1", "r2"}, 0.001, None)["packets"] is None


def test_a_dead_box_takes_its_own_traffic_and_its_part_of_phase_1():
    """Half of the traffic has the dead box at an end. A third of the rest passes it."""
    demand = scale.uniform(FOUR, 3)

    lost = scale.loss(demand, "vlb", FOUR, "r4", 0.001, None)
    assert lost == pytest.approx({"member": 2.0, "reroute": 0.0, "gone": 6.0, "packets": 0.002})
    assert scale.loss(demand, "direct", FOUR, "r4", None, None)["packets"] == 0


def test_a_box_has_each_route_once():
    assert scale.table_mib(2**20, 100) == 100


def near(demand, mode, by=0):
    """Return the loads of the model as whole numbers, with `by` added to the load of one link."""
    found = {link: round(load) for link, load in scale.loads(demand, mode, FOUR).items()}
    found["r2", "r1"] += by
    return found


@pytest.mark.parametrize("by, differs", [(0, False), (60, False), (150, True), (-150, True)])
def test_chance_is_tolerated_and_a_wrong_path_is_not(by, differs):
    """600 flows by three links: a standard deviation is 11.5 flows."""
    demand = {("r2", "r3"): 600}

    off = scale.differences(demand, "vlb", near(demand, "vlb", by))

    assert set(off) == ({("r2", "r1")} if differs else set())


def test_direct_loads_are_no_vlb_loads():
    """The check reports differences if the loads are those of the other mode."""
    demand = {("r2", "r3"): 600}

    assert scale.differences(demand, "vlb", near(demand, "direct"))
    assert scale.differences(demand, "direct", near(demand, "vlb"))


FORWARD = {"bench": "forward", "table": "full", "traffic": "v4", "program": "ours", "mpps": 50.0}
MEMORY = {"bench": "memory", "routes": 2**20, "median": 100.0}
LINK = {"bench": "link-loss", "median": 400.0}


def run(tmp_path, *lines, **options):
    """Run the program on these lines. Return (exit code, its JSON objects, its tables)."""
    file = tmp_path / "some.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "FILES": str(file), "BOXES": "4", "ROUTES": str(2**20), **options}
    done = subprocess.run([sys.executable, PROGRAM], env=env, capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_the_program_takes_the_figures_of_the_other_benchmarks(tmp_path):
    """The rate of a core limits 64-octet frames. Without a measured time of routing the loss of a link is
    not known, and no figure is made up."""
    code, rows, text = run(tmp_path, FORWARD, MEMORY, LINK, OCTETS="64", CORES="1")

    (vlb,) = [r for r in rows if (r.get("mode"), r.get("pattern")) == ("vlb", "uniform")]
    assert code == 0 and vlb["limit"] == "cores"
    assert vlb["mpps"] == pytest.approx(4 * 50 / (2 + 2 / 3), abs=0.01)
    assert vlb["table_mib"] == 100 and vlb["link_lost_packets"] is None
    assert vlb["box_lost_packets"] == round(vlb["mpps"] / 2 / 3 * 0.0004 * 1e6)
    assert "not measured" in text
    assert rows[-1]["bench"] == "command" and "OCTETS=64" in rows[-1]["command"]


def test_a_figure_of_the_command_line_counts_before_that_of_a_file(tmp_path):
    _, rows, _ = run(tmp_path, FORWARD, OCTETS="64", CORES="1", MPPS="25")

    (vlb,) = [r for r in rows if (r.get("mode"), r.get("pattern")) == ("vlb", "uniform")]
    assert vlb["mpps"] == pytest.approx(4 * 25 / (2 + 2 / 3), abs=0.01) and "table_mib" not in vlb


def test_the_time_of_routing_is_that_of_the_lab(tmp_path):
    """The scenario cluster-vlb writes how long flows of a dead mesh link lose packets."""
    lab = {"bench": "mesh-loss", "routes": 500, "reroute_ms": 250.0}
    _, rows, _ = run(tmp_path, FORWARD, LINK, lab, OCTETS="64", CORES="1")

    (vlb,) = [r for r in rows if (r.get("mode"), r.get("pattern")) == ("vlb", "uniform")]
    # A dead link carries a third of six pairs in phase 1, and of four pairs in phase 2.
    pair = vlb["mpps"] * 1e6 / 12
    assert vlb["link_lost_packets"] == pytest.approx(pair * (2 * 0.0004 + 4 / 3 * 0.25), rel=1e-4)


def test_nothing_measured_is_said_and_no_success(tmp_path):
    code, rows, text = run(tmp_path)

    assert code == 2 and "no rate of a core" in text and [r["bench"] for r in rows] == ["command"]


def test_the_memory_of_a_box_is_that_of_a_lab_with_many_routes(tmp_path):
    """A lab with 500 routes does not show the memory of a route."""
    few = {"bench": "mesh-memory", "mode": "vlb", "routes": 600, "mib": {"r1": {"dataplane": 137, "bgpd": 20}}}
    mib = {"r1": {"dataplane": 10, "zebra": 20, "bgpd": 70}, "r2": {"dataplane": 10, "zebra": 30, "bgpd": 160}}
    many = {"bench": "mesh-memory", "mode": "vlb", "routes": 2**18, "mib": mib}
    _, rows, _ = run(tmp_path, FORWARD, few)
    assert "box_mib" not in rows[0]
    _, rows, text = run(tmp_path, FORWARD, many, few)

    assert rows[0]["box_mib"] == 800 and "box_mib" in text


@pytest.mark.parametrize("by, passed, code", [(0, 2.667, 0), (400, 2.667, 1), (0, 2.0, 1)])
def test_the_program_fails_if_the_lab_differs_from_the_model(tmp_path, by, passed, code):
    demand = {("r2", "r3"): 600}
    loads = {" ".join(link): n for link, n in near(demand, "vlb", by).items()}
    row = {"bench": "mesh-loads", "mode": "vlb", "each": 1, "boxes_passed": passed,
           "packets": {"r2 r3": 600}, "loads": loads}  # fmt: skip
    lab = tmp_path / "lab.jsonl"
    lab.write_text(json.dumps(row) + "\n", encoding="utf-8")

    got, rows, _ = run(tmp_path, MESH_JSON=str(lab))

    (seen,) = [r for r in rows if r["bench"] == "scale-check"]
    assert got == code and bool(seen["differences"]) is bool(code)
    assert seen["boxes_model"] == pytest.approx(2.667, abs=0.001)
