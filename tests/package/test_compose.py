# SPDX-License-Identifier: BSD-3-Clause
"""docker/compose.yaml as docker/README.md says to run it, by docker-compose and podman: two
routers, their hosts, Prometheus and, where it can be had, Grafana. Where no registry gives their
images, one is made here of Debian's Prometheus, and one of the Grafana that GRAFANA names (a
directory with bin, conf and public, as its makers' archive has it), with the words, the user and
the directories that their makers' images have; without those they are left out.

`make test-image` builds the image; skipped where there is no podman or no docker-compose.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import docs, procs  # noqa: E402
from lib.dashboard import answers, dashboard, without_their_labels  # noqa: E402
from lib.wait import eventually  # noqa: E402

PROMETHEUS = docs.ROOT / "build" / "prometheus" / "usr" / "bin"
COMMANDS = docs.shown_by(docs.ROOT / "docker" / "README.md", "test_compose")
SERVICES = ["r1", "r2", "h1", "h2"]
GRAFANA = Path(os.environ.get("GRAFANA") or "/usr/share/grafana")
# Where the files for an image are, which one must be there, and what the makers' image has.
STAND_INS = {
    "prometheus": (
        PROMETHEUS,
        "prometheus",
        """\
FROM {image}
COPY prometheus promtool /bin/
RUN mkdir /prometheus && chown nobody:nogroup /prometheus
USER nobody
WORKDIR /prometheus
HEALTHCHECK NONE
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
""",
    ),
    "grafana": (
        GRAFANA,
        "bin/grafana",
        """\
FROM {image}
COPY . /usr/share/grafana/
ENV PATH=/usr/share/grafana/bin:/bin GF_PATHS_PROVISIONING=/etc/grafana/provisioning
RUN mkdir -p /etc/grafana /var/log/grafana /var/lib/grafana/plugins && \\
	cp -r /usr/share/grafana/conf/provisioning /etc/grafana && chown -R 472:0 /var/lib/grafana /var/log/grafana
USER 472
WORKDIR /usr/share/grafana
HEALTHCHECK NONE
ENTRYPOINT ["grafana", "server", "--homepath=/usr/share/grafana", "cfg:default.log.mode=console", \
"cfg:default.paths.data=/var/lib/grafana", "cfg:default.paths.logs=/var/log/grafana", \
"cfg:default.paths.plugins=/var/lib/grafana/plugins"]
""",
    ),
}

pytestmark = pytest.mark.skipif(
    not (
        os.environ.get("IMAGE")
        and shutil.which("podman")
        and shutil.which("docker-compose")
    ),
    reason="no podman, no docker-compose, or no image: `make test-image`",
)


class Compose:
    """The lab, by a socket of podman's that is nobody else's."""

    def __init__(self, directory):
        self.socket = f"{directory}/podman.sock"
        self.project = f"fdp{os.getpid()}"
        self.files, self.services, self.made = "-f docker/compose.yaml", [*SERVICES], {}
        self.others(directory)
        self.service = procs.start(
            ["podman", "system", "service", "--time=0", f"unix://{self.socket}"],
            str(directory), f"{directory}/podman.log",
        )  # fmt: skip
        eventually(lambda: os.path.exists(self.socket), 10, 0.1, "podman listens")

    def others(self, directory):
        """The images that compose.yaml names, if they are there; else what takes their place."""
        theirs = load(docs.ROOT / "docker/compose.yaml")["services"]
        for service, (files, program, text) in STAND_INS.items():
            name = f"docker.io/{theirs[service]['image']}"
            done = subprocess.run(["podman", "image", "exists", name], check=False)
            if done.returncode != 0 and not (files / program).exists():
                continue
            self.services.append(service)
            if done.returncode == 0:
                continue
            self.made[service] = f"localhost/{self.project}-{service}"
            subprocess.run(
                ["podman", "build", "--quiet", "--network", "none", "--format", "docker",
                 "--tag", self.made[service], "--file", "-", str(files)],
                input=text.format(image=os.environ["IMAGE"]), text=True, check=True, timeout=240,
            )  # fmt: skip
        instead = {service: {"image": image} for service, image in self.made.items()}
        if instead:
            file = directory / "instead.yaml"
            file.write_text(yaml.safe_dump({"version": "3.7", "services": instead}))
            self.files += f" -f {file}"

    def run(self, command, check=True):
        """A command line of the page, which speaks of docker."""
        command = command.replace("docker compose", f"docker-compose -p {self.project}")
        command = command.replace("-f docker/compose.yaml", self.files)
        command = re.sub(r"\bexec (?=[rh]\d)", "exec -T ", command)
        command = re.sub(
            r"up --detach.*", f"up --detach {' '.join(self.services)}", command
        )
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=docs.ROOT, text=True, timeout=240, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "DOCKER_HOST": f"unix://{self.socket}"},
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"{command}\n{done.stdout}"
        return done.stdout

    def close(self):
        """Nothing of it stays."""
        self.run("docker compose -f docker/compose.yaml down --volumes", check=False)
        for image in self.made.values():
            subprocess.run(["podman", "rmi", "--force", image], check=False)
        self.service.terminate()
        self.service.wait(10)


@pytest.fixture(scope="module")
def bridges_are_wires():
    """As the page says of hosts whose packet filter masquerades what only crosses a bridge."""
    filtered = "/proc/sys/net/bridge/bridge-nf-call-iptables"
    if not os.path.exists(filtered):
        yield
        return
    with open(filtered, encoding="ascii") as file:
        was = file.read()
    try:
        write(filtered, "0")
        yield
    finally:
        write(filtered, was)


def write(path, text):
    """A value of the kernel's."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


@pytest.fixture(scope="module")
def lab(bridges_are_wires, tmp_path_factory):
    compose = Compose(tmp_path_factory.mktemp("compose"))
    try:
        compose.run(COMMANDS[0])
        yield compose
    finally:
        compose.close()


def test_the_lab_of_compose_does_what_its_page_says(lab):
    """Up, a ping from host to host through both routers, OSPF, ports."""
    up, ping, ospf, ports, down = COMMANDS
    assert up.startswith("docker compose -f docker/compose.yaml up --detach")

    eventually(
        lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "h2 answers h1"
    )
    assert "Full" in lab.run(ospf)
    assert {"core", "lan"} <= set(lab.run(ports).split())
    assert down.endswith("down")


def test_a_router_that_is_restarted_is_one_again(lab):
    """`docker compose restart`: its interfaces are new ones, its namespaces too."""
    ping = COMMANDS[1]
    eventually(lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "before")

    lab.run("docker compose -f docker/compose.yaml restart r2")

    eventually(lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "after")


def test_prometheus_of_the_lab_scrapes_both_routers_and_fills_the_dashboard(lab):
    """As compose.yaml starts it: both targets up, the alerts' rules loaded and good, and data of
    both routers for each panel of the dashboard, which has both to choose from."""
    if "prometheus" not in lab.services:
        pytest.skip("no Prometheus: `make prometheus`")

    def page(path, **query):
        url = f"http://localhost:9090/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)["data"]

    def ask(query):
        return page("query", query=query)["result"]

    def of_both(labels):
        named = {label["instance"] for label in labels if "instance" in label}
        return labels and (named == both or not named)

    both = {"r1:9620", "r2:9620"}
    up = lambda: {row["metric"]["instance"] for row in ask("up == 1")}  # noqa: E731
    eventually(lambda: up() == both, 60, 0.5, "both routers are scraped")
    assert without_their_labels(answers(ask, of_both, 120)) == []
    chosen = page("label/instance/values", **{"match[]": "fpmdp_build_info"})
    assert set(chosen) == both
    alerts = load(docs.ROOT / "docker/prometheus/alerts.yml")
    rules = [rule for group in page("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {
        rule["alert"] for group in alerts["groups"] for rule in group["rules"]
    }
    assert [rule for rule in rules if rule["health"] == "err"] == []


def grafana(path, question=None):
    """What the lab's Grafana answers to a GET, or to `question`, posted; None: nothing yet."""
    page = urllib.request.Request(
        f"http://localhost:3000/api/{path}",
        data=question and json.dumps(question).encode(),
        headers={
            "Authorization": "Basic " + base64.b64encode(b"admin:admin").decode(),
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(page, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)
    except OSError:
        return None


def as_its_page_asks(panel):
    """The question of a panel with all routers chosen, five minutes of them."""
    targets = json.loads(json.dumps(panel["targets"]).replace("$instance", ".*"))
    more = {"datasource": panel["datasource"], "intervalMs": 5000, "maxDataPoints": 300}
    return {"queries": [target | more for target in targets], "from": "now-5m", "to": "now"}


def without_data(board):
    """{(panel, query): what Grafana says} of those that have an error, or no value at all though
    they do not leave out what is zero."""
    bare = {}
    for panel in board["panels"]:
        said = grafana("ds/query", as_its_page_asks(panel))
        for target in panel["targets"]:
            result = said.get("results", {}).get(target["refId"], {"error": said})
            # Of each series: times, values.
            columns = [frame["data"]["values"][1:] for frame in result.get("frames", [])]
            values = [v for (column,) in filter(None, columns) for v in column if v is not None]
            if "error" in result or not (values or "> 0" in target["expr"]):
                bare[panel["title"], target["expr"]] = result
    return bare


def test_grafana_of_the_lab_shows_each_panel_with_data(lab):
    """As compose.yaml starts it: Prometheus is its data source and answers; the dashboard is there
    as its file has it, with both routers to choose from; each panel's queries, asked as its page
    asks them, have values and no error."""
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
        # For figures of changes.
        lab.run(f"docker compose -f docker/compose.yaml {change}")
        bare = without_data(board)
        assert bare == {}
        return True

    eventually(all_have, 120, 2, "each panel has data")


def load(path):
    """A file of YAML."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))
