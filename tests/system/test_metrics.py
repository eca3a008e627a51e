# SPDX-License-Identifier: BSD-3-Clause
"""The metrics page as Prometheus sees it, and what docker/ makes of it: alerts, dashboard.

Debian's Prometheus is unpacked by `make prometheus`; what needs it is skipped without.
"""

import http.client
import json
import os
import re
import subprocess
import urllib.parse

import pytest

from lib import netns, procs
from lib.wait import eventually

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(ROOT, "build/prometheus/usr/bin")
RULES = os.path.join(ROOT, "docker/prometheus")
DASHBOARD = os.path.join(ROOT, "docker/grafana/dashboards/fpm-dataplane.json")
PAGE = "127.0.0.1:9620"

needs_prometheus = pytest.mark.skipif(
    not os.access(f"{BIN}/promtool", os.X_OK), reason="no Prometheus: `make prometheus`"
)


def get(dut, address, path):
    """The body of http://ADDRESS/PATH as FRR's namespace sees it."""
    with netns.entered(dut.ctl):
        page = http.client.HTTPConnection(*address.split(":"), timeout=5)
        page.request("GET", path)
        reply = page.getresponse()
    assert reply.status == 200, path
    return reply.read().decode()


@pytest.fixture
def dut(own_dut):
    dut = own_dut(metrics=PAGE)
    dut.start()
    return dut


def promtool(*argv, stdin=None):
    done = subprocess.run(
        [f"{BIN}/promtool", *argv], input=stdin, capture_output=True, text=True, cwd=RULES
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_the_page_has_no_fault_that_promtool_knows(dut):
    """Names, units, types, help: `promtool check metrics`."""
    promtool("check", "metrics", stdin=get(dut, PAGE, "/metrics"))


@needs_prometheus
def test_prometheus_scrapes_it(dut, tmp_path):
    """A real Prometheus beside it: the target is up and its values are stored."""
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n"
        f"  - {{job_name: fpm-dataplane, static_configs: [{{targets: ['{PAGE}']}}]}}\n"
    )
    argv = [f"{BIN}/prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/db",
            "--web.listen-address=127.0.0.1:9090", "--log.level=warn"]  # fmt: skip
    child = procs.start(argv, str(tmp_path), str(tmp_path / "log"), netns=dut.ctl)
    try:

        def stored(query="fpmdp_build_info and on(instance) up == 1"):
            said = get(dut, "127.0.0.1:9090", "/api/v1/query?query=" + urllib.parse.quote(query))
            return json.loads(said)["data"]["result"]

        (sample,) = eventually(stored, timeout=30)
        assert sample["metric"]["version"] == dut.control.ask("version")[0]["version"]
    finally:
        child.kill()
        child.wait()


@needs_prometheus
def test_alerts_are_valid_and_fire_when_they_should():
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "alerts.yml")
    promtool("test", "rules", "alerts_test.yml")


def test_alerts_and_dashboard_ask_for_what_there_is(dut):
    """Every metric that they name is on the page."""
    there = set(re.findall(r"^# TYPE (\S+)", get(dut, PAGE, "/metrics"), re.M))
    with open(f"{RULES}/alerts.yml") as f:
        asked = f.read()
    with open(DASHBOARD) as f:
        asked += "".join(
            target["expr"] for panel in json.load(f)["panels"] for target in panel["targets"]
        )
    names = set(re.findall(r"fpmdp_\w+", asked))
    assert len(names) > 20
    assert names - there == set()
