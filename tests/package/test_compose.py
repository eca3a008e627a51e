# SPDX-License-Identifier: BSD-3-Clause
"""docker/compose.yaml works with the commands of docker/README.md, by docker-compose and podman:
two routers, their hosts, Prometheus and, if available, Grafana. If no registry provides their
images, this test makes an image of Debian's Prometheus, and an image of the Grafana in the
directory GRAFANA (with bin, conf and public, as in the archive of its makers). They have the
arguments, the user and the directories of the makers' images. Without these programs they are left
out.

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
# The place of the files for an image, a file that must exist, and the content of the makers' image.
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
    """The lab, by a separate socket of podman."""

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
        """Return the images that compose.yaml names, if available; otherwise their replacements."""
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
        """Run a command line of the page with podman in the place of docker."""
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
        """Remove all objects of the lab."""
        self.run("docker compose -f docker/compose.yaml down --volumes", check=False)
        for image in self.made.values():
            subprocess.run(["podman", "rmi", "--force", image], check=False)
        self.service.terminate()
        self.service.wait(10)


@pytest.fixture(scope="module")
def bridges_are_wires():
    """Follow the page for hosts whose packet filter masquerades packets that cross a bridge."""
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
    """Write a setting of the kernel."""
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
    eventually(lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "before")

    lab.run("docker compose -f docker/compose.yaml restart r2")

    eventually(lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "after")


def test_prometheus_of_the_lab_scrapes_both_routers_and_fills_the_dashboard(lab):
    """Prometheus, as compose.yaml starts it, has both targets up, has loaded valid alert rules, and
    has data of both routers for each panel of the dashboard, which offers both routers."""
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
    """Return the answer of the lab's Grafana to a GET, or to a POST of `question`; None: no answer
    yet."""
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
    """Return the query of a panel for all routers and the last five minutes."""
    targets = json.loads(json.dumps(panel["targets"]).replace("$instance", ".*"))
    more = {"datasource": panel["datasource"], "intervalMs": 5000, "maxDataPoints": 300}
    return {"queries": [target | more for target in targets], "from": "now-5m", "to": "now"}


def without_data(board):
    """Return {(panel, query): Grafana's answer} of the queries that have an error, or that have no
    value although they do not leave out zeros."""
    bare = {}
    for panel in board["panels"]:
        said = grafana("ds/query", as_its_page_asks(panel))
        for target in panel["targets"]:
            result = said.get("results", {}).get(target["refId"], {"error": said})
            # Each series has times and values.
            columns = [frame["data"]["values"][1:] for frame in result.get("frames", [])]
            values = [v for (column,) in filter(None, columns) for v in column if v is not None]
            if "error" in result or not (values or "> 0" in target["expr"]):
                bare[panel["title"], target["expr"]] = result
    return bare


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
        # For queries of changes.
        lab.run(f"docker compose -f docker/compose.yaml {change}")
        bare = without_data(board)
        assert bare == {}
        return True

    eventually(all_have, 120, 2, "each panel has data")


def load(path):
    """Load a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))
