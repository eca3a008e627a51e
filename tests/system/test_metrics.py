# SPDX-License-Identifier: BSD-3-Clause
"""The metrics page as Prometheus reads it, and the alerts and the dashboard of docker/.

`make prometheus` unpacks Debian's Prometheus. Tests that need it are skipped without it.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

import jsonschema
import pytest
import yaml

from lib import netns, procs
from lib.dashboard import FILE, MESH, OPTIONAL, answers, dashboard, filled_in, queries, without_their_labels
from lib.wait import eventually

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(ROOT, "build/prometheus/usr/bin")
RULES = os.path.join(ROOT, "docker/prometheus")
GRAFANA = os.path.join(ROOT, "docker/grafana")
PAGE = "127.0.0.1:9620"
sys.path.append(f"{ROOT}/fpm-dataplane/manual")
import alerts as manual_alerts  # noqa: E402
import metrics as manual_metrics  # noqa: E402

needs_prometheus = pytest.mark.skipif(
    not os.access(f"{BIN}/promtool", os.X_OK), reason="no Prometheus: `make prometheus`"
)


def get(dut, address, path):
    """Return the body of http://ADDRESS/PATH, read in FRR's namespace."""
    with netns.entered(dut.ctl):
        page = http.client.HTTPConnection(*address.split(":"), timeout=5)
        page.request("GET", path)
        reply = page.getresponse()
    assert reply.status == 200, path
    return reply.read().decode()


@pytest.fixture
def dut(own_dut, request):
    if getattr(request, "param", False):
        return request.getfixturevalue("with_features")
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
    """`promtool check metrics` finds no fault in names, units, types and help."""
    promtool("check", "metrics", stdin=get(dut, PAGE, "/metrics"))


@pytest.fixture
def prometheus(dut, tmp_path):
    """Run a Prometheus that scrapes the router. ask(query) returns the rows of its answer."""
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n"
        f"  - {{job_name: fpm-dataplane, static_configs: [{{targets: ['{PAGE}']}}]}}\n"
    )
    argv = [f"{BIN}/prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/db",
            "--web.listen-address=127.0.0.1:9090", "--log.level=warn"]  # fmt: skip
    child = procs.start(argv, str(tmp_path), str(tmp_path / "log"), netns=dut.ctl)

    def ask(query):
        said = get(
            dut, "127.0.0.1:9090", "/api/v1/query?query=" + urllib.parse.quote(query)
        )
        return json.loads(said)["data"]["result"]

    try:
        yield ask
    finally:
        child.kill()
        child.wait()


@needs_prometheus
def test_prometheus_scrapes_it(dut, prometheus):
    """Prometheus shows the target as up and stores its values."""
    (sample,) = eventually(
        lambda: prometheus("fpmdp_build_info and on(instance) up == 1"), timeout=30
    )

    assert sample["metric"]["version"] == dut.control.ask("version")[0]["version"]


@needs_prometheus
def test_alerts_are_valid_and_fire_when_they_should():
    for config, rules in (("prometheus.yml", "alerts"), ("four.yml", "mesh")):
        promtool("check", "config", config)
        promtool("check", "rules", f"{rules}.yml")
        promtool("test", "rules", f"{rules}_test.yml")


@pytest.mark.parametrize("of", ["alerts", "mesh"])
def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not(of):
    """For each alert of alerts.yml and mesh.yml, alerts_test.yml or mesh_test.yml has a test in which
    it fires and one in which it does not. promtool runs these tests above."""
    rules, tests = (
        yaml.safe_load(open(f"{RULES}/{name}.yml", encoding="utf-8")) for name in (of, f"{of}_test")
    )
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    cases = [case for test in tests["tests"] for case in test["alert_rule_test"]]

    fires = {case["alertname"] for case in cases if case.get("exp_alerts")}
    silent = {case["alertname"] for case in cases if not case.get("exp_alerts")}

    assert fires == silent == set(alerts)


def test_the_manual_has_the_alerts_of_the_file():
    """The section of the manual equals the file. It has at most ten alerts. Each alert names its
    effect on traffic and a first step. If it differs, run `make reference`."""
    page = manual_alerts.PAGE.read_text(encoding="utf-8")
    urgent, notices = manual_alerts.groups()

    assert page == manual_alerts.page()
    assert 0 < len(urgent) <= 10
    for rule in urgent + notices + of_mesh():
        assert {"summary", "description", "action"} == rule["annotations"].keys(), rule["alert"]


def of_mesh():
    """Return the rules of mesh.yml."""
    with open(f"{RULES}/mesh.yml", encoding="utf-8") as file:
        (group,) = yaml.safe_load(file)["groups"]
    return group["rules"]


def declared():
    """Return the names of the metrics in the daemon's tables, from the source."""
    code = "".join(p.read_text() for p in Path(ROOT, "fpm-dataplane", "ui").glob("*.c"))
    fields = re.findall(r"STATUS_GAUGE\(b, (\w+),", code)
    return {*re.findall(r'"([a-z0-9_]+)"', code), *(f"fpm_{field}" for field in fields)}


def test_each_metric_of_the_alerts_is_in_the_daemons_tables():
    """Each metric in an expression is in the source of the metrics page. This needs no daemon."""
    named = {
        name
        for group in (*manual_alerts.groups(), of_mesh())
        for rule in group
        for name in re.findall(r"\bfpmdp_(\w+)", rule["expr"])
    }

    assert len(named) > 15
    assert named - declared() == set()
    assert "fpm_connectd" not in declared()


def test_the_manual_has_the_metrics_of_the_code():
    """metrics.md equals the tables of the code. If not, run `make reference`."""
    page = (manual_metrics.HERE / "metrics.md").read_text(encoding="utf-8")

    assert page == manual_metrics.page()
    assert len(manual_metrics.metrics()) > 100


def test_the_manual_has_every_metric_of_a_router(dut):
    """metrics.md has each metric of a running daemon, with its type, text and labels."""
    page = get(dut, PAGE, "/metrics")
    named = re.findall(r"^# HELP fpmdp_(\w+) (.*)\n# TYPE \S+ (\w+)$", page, re.M)
    known = manual_metrics.metrics()

    assert len(named) > 80
    for name, text, kind in named:
        assert known.get(name, ())[:1] + known.get(name, ())[2:] == [kind, text], name
    for name, labels in series(page).items():
        of = re.sub(r"_(bucket|sum|count)$", "", name.removeprefix("fpmdp_"))
        _, expected, _ = known[of if of in known else name.removeprefix("fpmdp_")]
        assert all(set(found) <= set(expected) for found in labels), name


def series(page):
    """Return {name: [labels]} of a page."""
    found = {}
    for name, labels in re.findall(r"^(fpmdp_\w+)(?:\{(.*?)\})? ", page, re.M):
        found.setdefault(name, []).append(dict(re.findall(r'(\w+)="(.*?)"', labels)))
    return found


# The series that an operator needs, each with its labels.
FIGURES = {
    "build_info": {"version", "instructions", "instructions_best", "lookup_instructions",
                   "lookup_instructions_best"},
    "uptime_seconds": set(), "packet_buffers_free": set(),
    "port_rx_packets_total": {"port"}, "port_tx_bytes_total": {"port"}, "port_up": {"port"},
    "port_rx_missed_packets_total": {"port"}, "port_queue_rx_packets_total": {"port", "queue"},
    "port_queue_info": {"port", "queue", "cpu"}, "forwarded_packets_total": {"family", "lcore"},
    "lcore_timed_cycles_total": {"lcore", "stage"}, "lcore_timed_packets_total": {"lcore"},
    "sleeps_total": {"lcore"}, "drop_packets_total": {"reason", "lcore"},
    "punt_packets_total": {"reason", "lcore"}, "punt_class_packets_total": {"class", "verdict"},
    "policer_rate_packets_per_second": {"class"}, "policer_burst_packets": {"class"},
    "policer_source_rate_packets_per_second": {"class"},
    "policer_source_burst_packets": {"class"}, "fpm_connected": set(), "fpm_lag_seconds": set(),
    "fpm_state": {"state"}, "fpm_queue_bytes": set(), "rib_commit_seconds_bucket": {"le"},
    "rib_grace_seconds_bucket": {"le"}, "rib_routes": {"family"}, "rib_bytes": set(),
    "fib_routes": {"family"}, "fib_bytes": {"family"}, "neighbors": {"family", "state"},
    "neighbors_waited_for": set(), "fpm_listening": set(), "urpf_dropped_packets_total": {"port"},
}  # fmt: skip


def test_every_figure_has_its_series(dut):
    """Each series is on the page with exactly the expected labels: port, queue, lcore, reason,
    class, family."""
    there = eventually(
        lambda: (s := series(get(dut, PAGE, "/metrics"))).get("fpmdp_neighbors") and s, 10
    )

    assert {k: [set(x) for x in there.get(f"fpmdp_{k}", [])][:1] for k in FIGURES} == {
        k: [labels] for k, labels in FIGURES.items()
    }


def test_the_channels_states_are_those_of_the_api_and_one_is_1(dut):
    """The state set has the states of openapi.yaml. The state that `show fpm` prints has the
    value 1."""
    with open(f"{ROOT}/fpm-dataplane/dist/openapi.yaml", encoding="utf-8") as f:
        words = yaml.safe_load(f)["components"]["schemas"]["Fpm"]["properties"]["state"][
            "enum"
        ]

    def is_told(state):
        page = get(dut, PAGE, "/metrics")
        now = {word: _value(page, "fpm_state", {"state": word}) for word in words}
        return dut.fpm()["state"] == state and now == {w: float(w == state) for w in words}

    wan = dut.wires["wan"]
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    eventually(lambda: is_told("in-step"), 20)
    dut.zebra.close()
    eventually(lambda: is_told("away"), 5)
    listed = series(get(dut, PAGE, "/metrics"))["fpmdp_fpm_state"]
    assert sorted(row["state"] for row in listed) == sorted(words)


def test_queues_and_neighbors_are_counted(dut, tmp_path):
    """Packets received by a queue are counted for that queue. Neighbors that the kernel has
    resolved are counted as reachable or in another state of a resolved neighbor."""
    wan = dut.wires["wan"]
    value = lambda name, **labels: _value(
        get(dut, PAGE, "/metrics"), name, labels
    )  # noqa: E731
    permanent = eventually(
        lambda: value("neighbors", family="ipv4", state="permanent") or None, 10
    )
    before = value("port_queue_rx_packets_total", port=wan.tap, queue="0")

    wan.send(*[wan.probe(dut.wires["lan"].ip4, sport=sport) for sport in range(3000, 3005)])
    dut.ip(
        f"neigh add 192.0.2.60 lladdr 02:00:00:00:aa:01 dev {dut.wires['lan'].tap} nud permanent"
    )

    eventually(
        lambda: value("port_queue_rx_packets_total", port=wan.tap, queue="0") >= before + 5,
        5,
    )
    eventually(
        lambda: value("neighbors", family="ipv4", state="permanent") == permanent + 1, 10
    )


def test_interfaces_that_are_no_ports_are_counted(dut):
    """A macvlan has the counters of `show interfaces`, and they begin at 0 although another interface
    had its number. Ports have no such series."""
    if not netns.can_have("macvlan mode bridge"):
        pytest.skip("this kernel has no macvlans")
    lan, wan, mac = dut.wires["lan"], dut.wires["wan"], "02:aa:00:00:00:77"
    found = lambda: {row["interface"] for row in series(get(dut, PAGE, "/metrics"))  # noqa: E731
                     .get("fpmdp_interface_rx_packets_total", [])}  # fmt: skip
    shown = lambda name: next(r for r in dut.control.ask("interfaces") if r["name"] == name)  # noqa: E731
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    assert found() == set()
    for name in ("mv8", "mv9"):
        dut.ip(f"link add {name} link lan0 address {mac} type macvlan mode bridge", f"link set {name} up")
        eventually(lambda: found() == {name}, 5)
        # The kernel sends packets of IPv6 by the new macvlan between two reads.
        told = lambda: _value(get(dut, PAGE, "/metrics"), "interface_tx_bytes_total", {})  # noqa: E731
        eventually(lambda: told() == shown(name)["tx_bytes"], 5)  # noqa: B023
        for n in range(3):
            probe = lan.probe("198.51.100.9", sport=3000 + n)
            probe["Ether"].dst = mac
            lan.send(probe)
        eventually(lambda: shown(name)["rx_packets"] >= 3, 5)
        page = get(dut, PAGE, "/metrics")
        row = shown(name)
        for key in ("rx_packets", "rx_bytes"):
            assert 3 <= _value(page, f"interface_{key}_total", {"interface": name}) <= row[key]
        assert row["rx_packets"] < 6  # not those of the interface before
        dut.ip(f"link del {name}")
        eventually(lambda: found() == set(), 5)


def test_drops_of_rp_filter_are_counted_by_port(dut, request):
    """A packet without a route back to its source counts for the port that received it."""
    lan, wan, key = dut.wires["lan"], dut.wires["wan"], "net.ipv4.conf.lan0.rp_filter"
    value = lambda port: _value(  # noqa: E731
        get(dut, PAGE, "/metrics"), "urpf_dropped_packets_total", {"port": port}
    )
    urpf = lambda: {r["name"]: r.get("urpf") for r in dut.control.ask("interfaces")}["lan0"]  # noqa: E731
    request.addfinalizer(lambda: netns.sysctl(dut.ctl, {key: 0}))
    dut.route("198.51.100.0/24", via=wan.peer4, wire=wan)
    netns.sysctl(dut.ctl, {key: 1})
    eventually(lambda: urpf() == "strict", 5)
    lan.send(lan.probe("198.51.100.9", src="203.0.113.9"))
    eventually(lambda: value("lan0") == 1, 5)
    assert value("wan0") == 0


def _value(page, name, labels):
    """Return the value of one sample, 0 if the sample is missing."""
    for line in page.splitlines():
        if line.startswith(f"fpmdp_{name}{{") and all(
            f'{k}="{v}"' in line for k, v in labels.items()
        ):
            return float(line.rpartition(" ")[2])
    return 0


@pytest.fixture
def with_features(own_dut):
    """Return a router with the features of OPTIONAL. Its macvlan is an interface that is no port."""
    if not netns.can_have("macvlan mode bridge"):
        pytest.skip("this kernel has no macvlans")
    dut = own_dut(metrics=PAGE)
    more = 'filter: {table: "inet flowspec", on-error: pass}\nbfd: {dplane: "127.0.0.1:50700"}\n'
    dut.edit_config("fpm:\n", f"{more}fpm:\n")
    dut.start()
    dut.ip("link add mv9 link lan0 type macvlan mode bridge", "link set mv9 up")
    return dut


@needs_prometheus
@pytest.mark.parametrize("dut", [False, True], indirect=True, ids=["plain", "all features"])
def test_every_panel_shows_what_a_router_exports(dut, prometheus, request):
    """Each query of a panel returns series with the labels that its legend names. A query that
    leaves out zero values may return none, and so may a query about a feature that the router does not
    have."""
    found = answers(prometheus, optional=request.node.callspec.params["dut"])
    assert without_their_labels(found) == []


# The fields that Grafana reads: without a valid value a panel is empty or lies on another
# panel.
PANEL = {
    "type": "object",
    "required": ["id", "type", "title", "gridPos", "datasource", "targets"],
    "properties": {
        "type": {"enum": ["stat", "timeseries"]},
        "title": {"type": "string", "minLength": 1},
        "gridPos": {
            "type": "object",
            "required": ["x", "y", "w", "h"],
            "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 200},
        },
        "targets": {
            "type": "array",
            "minItems": 1,
            "items": {"required": ["expr", "legendFormat", "refId"]},
        },
    },
}


@pytest.mark.parametrize("file", [FILE, MESH], ids=lambda file: file.stem)
def test_the_dashboard_is_one_that_grafana_can_show(file):
    """Panels do not overlap, use the provisioned data source, and use only variables that
    exist."""
    board = dashboard(file)
    panels = board["panels"]
    with open(f"{GRAFANA}/provisioning/datasources/prometheus.yml", encoding="utf-8") as f:
        sources = [(row["type"], row["uid"]) for row in yaml.safe_load(f)["datasources"]]
    jsonschema.validate(panels, {"type": "array", "items": PANEL})

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {(p["datasource"]["type"], p["datasource"]["uid"]) for p in panels} == set(
        sources
    )
    covered = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(covered)) == len(covered) and max(x for x, _ in covered) < 24
    for panel in panels:
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters), panel["title"]
    names = {row["name"] for row in board["templating"]["list"]}
    asked = {name for query, _ in queries(file) for name in re.findall(r"\$(\w+)", query)}
    assert asked == names | {"__rate_interval"}


def test_grafana_is_given_what_its_files_name():
    """compose.yaml mounts the files where Grafana's provisioning looks for them. The data
    source is a service of the same network, at the port on which it listens."""
    docker = os.path.join(ROOT, "docker")
    with open(f"{docker}/compose.yaml", encoding="utf-8") as file:
        lab = yaml.safe_load(file)["services"]
    mounts = dict(volume.split(":")[1::-1] for volume in lab["grafana"]["volumes"])
    said = {}
    for what, name in (("datasources", "prometheus.yml"), ("dashboards", "dashboards.yml")):
        below = os.path.join(docker, mounts[f"/etc/grafana/provisioning/{what}"])
        with open(f"{below}/{name}", encoding="utf-8") as file:
            said[what] = yaml.safe_load(file)
    (source,), (provider,) = said["datasources"]["datasources"], said["dashboards"]["providers"]

    listed = os.listdir(os.path.join(docker, mounts[provider["options"]["path"]]))

    assert (provider["type"], listed) == ("file", ["fpm-dataplane.json"])
    at = urllib.parse.urlsplit(source["url"])
    assert lab[at.hostname]["ports"] == [f"127.0.0.1:{at.port}:{at.port}"]
    assert set(lab[at.hostname]["networks"]) & set(lab["grafana"]["networks"])


def test_the_lab_of_four_is_one_mesh_and_is_scraped_whole():
    """Prometheus has the routers of compose-four.yaml as targets with the label `mesh`. Each router has
    a port to each other and frr.conf addresses on these ports, which vtysh accepts. Each network of two
    routers is one cable."""
    docker = os.path.join(ROOT, "docker")
    with open(f"{docker}/compose-four.yaml", encoding="utf-8") as file:
        lab = yaml.safe_load(file)
    with open(f"{RULES}/four.yml", encoding="utf-8") as file:
        (job,) = yaml.safe_load(file)["scrape_configs"]
    (target,) = job["static_configs"]
    boxes = [name for name in lab["services"] if re.fullmatch(r"r\d", name)]

    assert target["targets"] == [f"{box}:9620" for box in boxes] and target["labels"]["mesh"]
    ends = {}
    for box in boxes:
        service = lab["services"][box]
        ports = dict(word.split("=") for word in service["environment"]["PORTS"].split())
        assert ports.keys() == {"lan", *(f"mesh{far[1]}" for far in boxes if far != box)}
        path = f"{docker}/lab/four/{box}.conf"
        assert service["environment"]["FRR_CONF"] == f"/lab/four/{box}.conf"
        with open(path, encoding="utf-8") as file:
            rows = dict(re.findall(r"^interface (\S+)\n ip address (\S+)/24$", file.read(), re.M))
        assert {name: f"{at.rpartition('.')[0]}.0/24" for name, at in rows.items()} == ports
        joined = {net: words["ipv4_address"] for net, words in service["networks"].items() if words}
        assert sorted(joined.values()) == sorted(rows.values())
        for net, at in joined.items():
            ends.setdefault(net, []).append(at)
            assert lab["networks"][net]["ipam"]["config"][0]["subnet"] in ports.values()
        done = subprocess.run(["vtysh", "-C", "-f", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    cables = [at for net, at in ends.items() if net.startswith("mesh")]
    assert len(cables) == 6 and all(len(set(at)) == 2 for at in cables)


@needs_prometheus
def test_the_dashboards_queries_are_valid(tmp_path):
    """promtool accepts each query as the expression of a rule, with values for Grafana's
    variables."""
    rules = [
        {"record": f"panel:{n}", "expr": filled_in(query)}
        for n, (query, _) in enumerate(queries() + queries(MESH))
    ]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file))


# Metrics of the features below that no panel shows: it shows octets in place of packets, and sessions in
# place of connections.
NO_PANEL = {"fpmdp_interface_rx_packets_total", "fpmdp_interface_tx_packets_total", "fpmdp_bfd_packets_total",
            "fpmdp_bfd_connections"}  # fmt: skip
SHOWN = (*OPTIONAL, "fpmdp_urpf_", "fpmdp_rib_flows_")


def test_alerts_and_dashboard_ask_for_what_there_is(with_features):
    """The page has every metric that alerts and dashboard name. The dashboard shows the metrics of all
    interfaces, of BFD, flowspec and rp_filter."""
    read = lambda: set(re.findall(r"^# TYPE (\S+)", get(with_features, PAGE, "/metrics"), re.M))  # noqa: E731
    eventually(lambda: "fpmdp_interface_rx_bytes_total" in read(), 10)
    there = read()
    asked = "".join(open(f"{RULES}/{name}.yml", encoding="utf-8").read() for name in ("alerts", "mesh"))
    asked += "".join(query for query, _ in queries() + queries(MESH))
    names = {re.sub("_bucket$", "", n) for n in re.findall(r"fpmdp_\w+", asked)}
    assert len(names) > 20
    assert names - there == set()
    shown = "".join(query for query, _ in queries())
    assert {name for name in there if name.startswith(SHOWN) and name not in shown} == NO_PANEL
