# SPDX-License-Identifier: BSD-3-Clause
"""Run the labs of docker/ with docker-compose and podman, with Prometheus and Grafana if available.

If podman has no image of Prometheus, an image is made of Debian's Prometheus. If podman has no image of
Grafana, an image is made of the directory GRAFANA (with bin, conf and public, as in the archive of its
makers). Both have the arguments, the user and the directories of the makers' images. A program that is
not there is left out.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

from lib import docs, procs
from lib.wait import eventually

PROMETHEUS = docs.ROOT / "build" / "prometheus" / "usr" / "bin"
README = docs.ROOT / "docker" / "README.md"
GRAFANA = Path(os.environ.get("GRAFANA") or "/usr/share/grafana")
# By service: the folder with the files of an image, a file that must be in it, and the Dockerfile of an
# image that is like the makers' image.
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
MISSING = not (
    os.environ.get("IMAGE") and shutil.which("podman") and shutil.which("docker-compose")
)
WHY_MISSING = "no podman, no docker-compose, or no image: `make test-image`"


class Compose:
    """A lab with the file `path` and at least these services. podman has a socket for this lab."""

    def __init__(self, directory, path, services):
        self.path = path
        self.socket = f"{directory}/podman.sock"
        self.project = f"fdp{os.getpid()}"
        self.files, self.services, self.made = f"-f {path}", [*services], {}
        self.others(directory)
        self.service = procs.start(
            ["podman", "system", "service", "--time=0", f"unix://{self.socket}"],
            str(directory), f"{directory}/podman.log",
        )  # fmt: skip
        eventually(lambda: os.path.exists(self.socket), 10, 0.1, "podman listens")

    def others(self, directory):
        """Find the images that the file names, if available; otherwise make their replacements."""
        theirs = load(docs.ROOT / self.path)["services"]
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
        """Run a command line of docker/README.md with podman in the place of docker."""
        command = command.replace("docker compose", f"docker-compose -p {self.project}")
        command = command.replace(f"-f {self.path}", self.files)
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
        self.run(f"docker compose -f {self.path} down --volumes", check=False)
        for image in self.made.values():
            subprocess.run(["podman", "rmi", "--force", image], check=False)
        self.service.terminate()
        self.service.wait(10)


@contextlib.contextmanager
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


def prometheus(path, **query):
    """Return the data of a page of the lab's Prometheus."""
    url = f"http://localhost:9090/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)["data"]


def ask(query):
    """Return the rows with which the lab's Prometheus answers a query."""
    return prometheus("query", query=query)["result"]


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
    targets = json.dumps(panel["targets"]).replace("$instance", ".*")
    targets = json.loads(targets.replace("$mesh", ".+"))
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


def load(path):
    """Load a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))
