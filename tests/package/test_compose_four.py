# SPDX-License-Identifier: BSD-3-Clause
"""docker/compose-four.yaml works with the commands of docker/README.md, by docker-compose and podman:
four routers in a full mesh, two hosts, Prometheus and, if available, Grafana (lib/compose.py).

`make test-image` builds the image; skipped where there is no podman or no docker-compose.
"""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import compose, docs  # noqa: E402
from lib.compose import ask, grafana, load, prometheus, without_data  # noqa: E402
from lib.dashboard import FILE, MESH, answers, dashboard, without_their_labels  # noqa: E402
from lib.wait import eventually  # noqa: E402

COMMANDS = docs.shown_by(compose.README, "test_compose_four")
UP, PING, OSPF, DOWN = COMMANDS
BOXES = ["r1", "r2", "r3", "r4"]
TARGETS = {f"{box}:9620" for box in BOXES}

pytestmark = pytest.mark.skipif(compose.MISSING, reason=compose.WHY_MISSING)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with compose.bridges_are_wires():
        path = "docker/compose-four.yaml"
        made = compose.Compose(tmp_path_factory.mktemp("four"), path, [*BOXES, "h1", "h4"])
        try:
            made.run(UP)
            yield made
        finally:
            made.close()


def replied(lab):
    """Return true if the host behind r4 answers all pings of the host behind r1."""
    return " 0% packet loss" in lab.run(PING, check=False)


def test_the_lab_of_four_does_what_its_page_says(lab):
    """The lab starts, a host pings the host behind another router, and each router has OSPF with
    the three others."""
    assert UP.startswith("docker compose -f docker/compose-four.yaml up --detach")
    assert DOWN.endswith("down")

    eventually(lambda: replied(lab), 120, 1, "h4 answers h1")
    for box in BOXES:
        command = OSPF.replace(" r1 ", f" {box} ")
        full = lambda c=command: lab.run(c, check=False).count("Full/")  # noqa: E731
        eventually(lambda f=full: f() == 3, 60, 1, f"{box} has three neighbors")


def test_prometheus_scrapes_four_routers_and_fills_both_dashboards(lab):
    """Prometheus, as compose-four.yaml starts it, has all four targets up with the label of the mesh,
    has loaded the alerts of a router and of a mesh, and has data of all four routers for each query
    of both dashboards."""
    if "prometheus" not in lab.services:
        pytest.skip("no Prometheus: `make prometheus`")

    def of_all(labels):
        named = {label["instance"] for label in labels if "instance" in label}
        return labels and (named == TARGETS or not named)

    up = lambda: {row["metric"]["instance"] for row in ask('up{mesh="four"} == 1')}  # noqa: E731
    eventually(lambda: up() == TARGETS, 60, 0.5, "all four are scraped")
    for file in (FILE, MESH):
        assert without_their_labels(answers(ask, of_all, 120, file), file) == []
    files = [load(docs.ROOT / f"docker/prometheus/{name}.yml") for name in ("alerts", "mesh")]
    wanted = {rule["alert"] for file in files for group in file["groups"] for rule in group["rules"]}
    rules = [rule for group in prometheus("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == wanted
    assert [rule for rule in rules if rule["health"] == "err"] == []


def test_the_view_shows_the_one_busy_mesh_link(lab):
    """OSPF routes directly, so pings from h1 to h4 load one mesh link of r1. The panels of the mesh show
    it: its link has more than 1.5 times the average, and a packet passes two routers."""
    if "prometheus" not in lab.services:
        pytest.skip("no Prometheus: `make prometheus`")
    eventually(lambda: replied(lab), 120, 1, "h4 answers h1")
    rate = 'rate(fpmdp_port_tx_bytes_total{mesh="four", instance="r1:9620", port=~"mesh.+"}[30s])'
    share = f"{rate} / ignoring (port) group_left () avg without (port) ({rate})"

    def busy():
        flood = PING.replace("-c 3", "-q -c 300 -i 0.005 -s 1000")
        assert " 0% packet loss" in lab.run(flood)
        return {row["metric"]["port"]: float(row["value"][1]) for row in ask(share)}

    eventually(lambda: (now := busy()).get("mesh4", 0) > 1.5 and now, 90, 0.5, "mesh4 is busy")


def test_grafana_of_the_lab_shows_each_panel_with_data(lab):
    """Grafana, as compose-four.yaml starts it, has both dashboards of the files. The queries of each
    panel, in the form of Grafana's page, have values and no error."""
    if not {"grafana", "prometheus"} <= set(lab.services):
        pytest.skip("no image of Grafana, nor a Grafana in the directory that GRAFANA= names")
    eventually(lambda: (grafana("health") or {}).get("database") == "ok", 60, 0.5, "it is up")
    boards = [dashboard(file) for file in (FILE, MESH)]
    for board in boards:
        shown = eventually(
            lambda b=board: grafana(f"dashboards/uid/{b['uid']}").get("dashboard"), 60, 0.5, "it"
        )
        assert shown["panels"] == board["panels"]

    def all_have():
        route = "ip route 192.0.2.0/24 blackhole"
        change = f"exec r1 vtysh -c 'conf t' -c '{route}' -c 'no {route}'"
        lab.run(f"docker compose -f docker/compose-four.yaml {change}")
        assert [without_data(board) for board in boards] == [{}, {}]
        return True

    eventually(all_have, 120, 2, "each panel has data")
