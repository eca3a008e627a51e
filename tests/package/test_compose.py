# SPDX-License-Identifier: BSD-3-Clause
"""docker/compose.yaml works with the commands of docker/README.md, by docker-compose and podman:
two routers, their hosts, Prometheus and, if available, Grafana (lib/compose.py).

`make test-image` builds the image; skipped where there is no podman or no docker-compose.
"""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import compose, docs  # noqa: E402
from lib.compose import ask, grafana, load, prometheus, without_data  # noqa: E402
from lib.dashboard import answers, dashboard, without_their_labels  # noqa: E402
from lib.wait import eventually  # noqa: E402

COMMANDS = docs.shown_by(compose.README, "test_compose")
SERVICES = ["r1", "r2", "h1", "h2"]

pytestmark = pytest.mark.skipif(compose.MISSING, reason=compose.WHY_MISSING)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with compose.bridges_are_wires():
        made = compose.Compose(tmp_path_factory.mktemp("compose"), "docker/compose.yaml", SERVICES)
        try:
            made.run(COMMANDS[0])
            yield made
        finally:
            made.close()


def test_the_lab_of_compose_does_what_its_page_says(lab):
    """The lab starts, a host pings the other host through both routers, OSPF is Full, and the ports
    are up, as the page says."""
    up, ping, ospf, ports, down = COMMANDS
    assert up.startswith("docker compose -f docker/compose.yaml up --detach")

    eventually(
        lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "h2 answers h1"
    )
    assert "Full" in lab.run(ospf)
    assert {"core", "lan"} <= set(lab.run(ports).split())
    assert down.endswith("down")


def test_a_router_that_is_restarted_is_one_again(lab):
    """A router works again after `docker compose restart`, with new interfaces and namespaces."""
    ping = COMMANDS[1]
    eventually(lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "h2 answers before")

    lab.run("docker compose -f docker/compose.yaml restart r2")

    eventually(lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "h2 answers again")


def test_prometheus_of_the_lab_scrapes_both_routers_and_fills_the_dashboard(lab):
    """Prometheus, as compose.yaml starts it, has both targets up, has loaded valid alert rules, and
    has data of both routers for each panel of the dashboard, which offers both routers."""
    if "prometheus" not in lab.services:
        pytest.skip("no Prometheus: `make prometheus`")

    def of_both(labels):
        named = {label["instance"] for label in labels if "instance" in label}
        return labels and (named == both or not named)

    both = {"r1:9620", "r2:9620"}
    up = lambda: {row["metric"]["instance"] for row in ask("up == 1")}  # noqa: E731
    eventually(lambda: up() == both, 60, 0.5, "both routers are scraped")
    assert without_their_labels(answers(ask, of_both, 120)) == []
    chosen = prometheus("label/instance/values", **{"match[]": "fpmdp_build_info"})
    assert set(chosen) == both
    alerts = load(docs.ROOT / "docker/prometheus/alerts.yml")
    rules = [rule for group in prometheus("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {
        rule["alert"] for group in alerts["groups"] for rule in group["rules"]
    }
    assert [rule for rule in rules if rule["health"] == "err"] == []


def test_grafana_of_the_lab_shows_each_panel_with_data(lab):
    """Grafana, as compose.yaml starts it, has Prometheus as its data source, which answers. It has
    the dashboard of the file, which offers both routers. Each panel's queries, in the form of
    Grafana's page, have values and no error."""
    if not {"grafana", "prometheus"} <= set(lab.services):
        pytest.skip("no image of Grafana, nor a Grafana in the directory that GRAFANA= names")
    board = dashboard()

    eventually(lambda: (grafana("health") or {}).get("database") == "ok", 60, 0.5, "it is up")
    source = "datasources/uid/prometheus"
    eventually(lambda: grafana(f"{source}/health")["status"] == "OK", 60, 0.5, "it asks Prometheus")
    assert [row["name"] for row in grafana("datasources") if row["isDefault"]] == ["Prometheus"]
    shown = eventually(
        lambda: grafana("dashboards/uid/fpm-dataplane").get("dashboard"), 60, 0.5, "the dashboard"
    )
    assert {key: shown[key] for key in ("panels", "templating")} == {
        key: board[key] for key in ("panels", "templating")
    }
    values = f"{source}/resources/api/v1/label/instance/values?match%5B%5D=fpmdp_build_info"
    eventually(lambda: grafana(values)["data"] == ["r1:9620", "r2:9620"], 60, 0.5, "both routers")

    route = "ip route 192.0.2.0/24 blackhole"
    change = f"exec r1 vtysh -c 'conf t' -c '{route}' -c 'no {route}'"

    def all_have():
        # This change of the routes gives queries about changes a value.
        lab.run(f"docker compose -f docker/compose.yaml {change}")
        bare = without_data(board)
        assert bare == {}
        return True

    eventually(all_have, 120, 2, "each panel has data")
