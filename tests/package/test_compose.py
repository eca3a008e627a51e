# SPDX-License-Identifier: BSD-3-Clause
"""docker/compose.yaml as docker/README.md says to run it, by docker-compose and podman: two
routers, their hosts, Prometheus. Where no registry gives its image one is made here of
Debian's Prometheus, with the words that the image's makers start it with. Grafana is left out.

`make test-image` builds the image; skipped where there is no podman or no docker-compose.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import docs, procs  # noqa: E402
from lib.dashboard import answers, without_their_labels  # noqa: E402
from lib.wait import eventually  # noqa: E402

PROMETHEUS = docs.ROOT / "build" / "prometheus" / "usr" / "bin"
SERVICES = ["r1", "r2", "h1", "h2"]
# What the image of Prometheus' makers has: these words, this user, this directory.
STAND_IN = """\
FROM {image}
COPY prometheus promtool /bin/
RUN mkdir /prometheus && chown nobody:nogroup /prometheus
USER nobody
WORKDIR /prometheus
HEALTHCHECK NONE
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
"""

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
        self.files, self.services, self.made = "-f docker/compose.yaml", SERVICES, None
        self.prometheus(directory)
        self.service = procs.start(
            ["podman", "system", "service", "--time=0", f"unix://{self.socket}"],
            str(directory), f"{directory}/podman.log",
        )  # fmt: skip
        eventually(lambda: os.path.exists(self.socket), 10, 0.1, "podman listens")

    def prometheus(self, directory):
        """The image that compose.yaml names, if it is there; else one that takes its place."""
        theirs = load(docs.ROOT / "docker/compose.yaml")
        name = theirs["services"]["prometheus"]["image"]
        there = subprocess.run(
            ["podman", "image", "exists", f"docker.io/{name}"], check=False
        )
        if there.returncode != 0 and not PROMETHEUS.exists():
            return
        self.services = [*SERVICES, "prometheus"]
        if there.returncode == 0:
            return
        self.made = f"localhost/{self.project}-prometheus"
        subprocess.run(
            ["podman", "build", "--quiet", "--network", "none", "--format", "docker",
             "--tag", self.made, "--file", "-", str(PROMETHEUS)],
            input=STAND_IN.format(image=os.environ["IMAGE"]), text=True, check=True, timeout=240,
        )  # fmt: skip
        instead = {"version": "3.7", "services": {"prometheus": {"image": self.made}}}
        (directory / "instead.yaml").write_text(yaml.safe_dump(instead))
        self.files += f" -f {directory}/instead.yaml"

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
        if self.made:
            subprocess.run(["podman", "rmi", "--force", self.made], check=False)
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
        yield compose
    finally:
        compose.close()


def commands():
    """The page's, a line each."""
    page = docs.ROOT / "docker" / "README.md"
    (block,) = [b for b in docs.blocks(page) if "test_compose" in b.words]
    return block.text.splitlines()


def test_the_lab_of_compose_does_what_its_page_says(lab):
    """Up, a ping from host to host through both routers, OSPF, ports."""
    up, ping, ospf, ports, down = commands()

    lab.run(up)

    eventually(
        lambda: " 0% packet loss" in lab.run(ping, check=False), 90, 1, "h2 answers h1"
    )
    assert "Full" in lab.run(ospf)
    assert {"core", "lan"} <= set(lab.run(ports).split())
    assert down.endswith("down")


def test_a_router_that_is_restarted_is_one_again(lab):
    """`docker compose restart`: its interfaces are new ones, its namespaces too."""
    ping = commands()[1]
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


def load(path):
    """A file of YAML."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))
