# SPDX-License-Identifier: BSD-3-Clause
"""docker/compose.yaml as docker/README.md says to run it, by docker-compose and podman: the
two routers and their hosts. Prometheus and Grafana are images of a registry and left out;
Debian's Prometheus scrapes the routers instead, by the file that is theirs.

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

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import docs, procs  # noqa: E402
from lib.wait import eventually  # noqa: E402

PROMETHEUS = docs.ROOT / "build" / "prometheus" / "usr" / "bin" / "prometheus"
ROUTERS = ("r1", "r2", "h1", "h2")

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
        self.service = procs.start(
            ["podman", "system", "service", "--time=0", f"unix://{self.socket}"],
            str(directory), f"{directory}/podman.log",
        )  # fmt: skip
        eventually(lambda: os.path.exists(self.socket), 10, 0.1, "podman listens")

    def run(self, command, check=True):
        """A command line of the page, which speaks of docker."""
        command = command.replace("docker compose", f"docker-compose -p {self.project}")
        command = re.sub(r"\bexec (?=[rh]\d)", "exec -T ", command)
        # Images of a registry are left out.
        command = re.sub(r"up --detach.*", f"up --detach {' '.join(ROUTERS)}", command)
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=docs.ROOT, text=True, timeout=240, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "DOCKER_HOST": f"unix://{self.socket}"},
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"{command}\n{done.stdout}"
        return done.stdout

    def address(self, name):
        """Of a router on the management network."""
        ids = self.run(f"docker compose -f docker/compose.yaml ps -q {name}").split()
        said = subprocess.run(
            ["podman", "inspect", ids[-1]], capture_output=True, check=True
        )
        networks = json.loads(said.stdout)[0]["NetworkSettings"]["Networks"]
        return next(v["IPAddress"] for k, v in networks.items() if k.endswith("management"))

    def close(self):
        """Nothing of it stays."""
        self.run("docker compose -f docker/compose.yaml down --volumes", check=False)
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


def test_the_file_for_prometheus_finds_both_routers(lab, tmp_path):
    """docker/prometheus/prometheus.yml, with addresses for the names that docker resolves."""
    if not PROMETHEUS.exists():
        pytest.skip("no Prometheus: `make prometheus`")
    text = (docs.ROOT / "docker/prometheus/prometheus.yml").read_text()
    for name in ("r1", "r2"):
        text = text.replace(f"{name}:9620", f"{lab.address(name)}:9620")
    (tmp_path / "prometheus.yml").write_text(text)
    shutil.copy(docs.ROOT / "docker/prometheus/alerts.yml", tmp_path)
    argv = [str(PROMETHEUS), f"--config.file={tmp_path}/prometheus.yml", "--log.level=warn",
            f"--storage.tsdb.path={tmp_path}/db", "--web.listen-address=127.0.0.1:19090"]  # fmt: skip
    child = procs.start(argv, str(tmp_path), str(tmp_path / "log"))

    def ask(query):
        url = "http://127.0.0.1:19090/api/v1/query?query=" + urllib.parse.quote(query)
        with urllib.request.urlopen(url, timeout=5) as page:
            return json.load(page)["data"]["result"]

    try:
        eventually(
            lambda: len(ask("fpmdp_fpm_connected == 1")) == 2, 60, 0.5, "both are scraped"
        )
    finally:
        child.kill()
        child.wait()
