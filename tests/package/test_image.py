# SPDX-License-Identifier: BSD-3-Clause
"""The container image works in the lab of docker/containerlab. The test reads the lab's file and
deploys it as containerlab does, because Debian has no containerlab (test_containerlab.py uses it).

Containers start without a network. The ends of veth pairs are moved into them while their
entrypoint waits (CLAB_INTFS). Then the file's commands run in them. `make test-image` builds the
image and names it in IMAGE. The tests are skipped if there is no podman.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import docs, netns  # noqa: E402
from lib.tcp import received  # noqa: E402
from lib.wait import eventually  # noqa: E402

IMAGE = os.environ.get("IMAGE", "")
CLAB = docs.ROOT / "docker" / "containerlab" / "two-routers.clab.yaml"
TOPOLOGY = yaml.safe_load(CLAB.read_text(encoding="utf-8"))["topology"]
PAGE = (docs.ROOT / "docker/README.md").read_text(encoding="utf-8")
# A name that no other object on this machine has.
MARK = f"fi{os.getpid() % 100000}"
INSIDE = ["ip", "netns", "exec"]
# The MTU of a link that the file does not configure.
CONTAINERLABS_MTU = 9500

pytestmark = pytest.mark.skipif(
    not (IMAGE and shutil.which("podman")),
    reason="no podman, or no image: `make test-image`",
)
of_the_page = pytest.mark.skipif(
    os.environ.get("SUITE", "bookworm") != "bookworm",
    reason="the page has the sizes and drivers of the image of bookworm",
)


class Node:
    """A node of the file, as containerlab starts it: privileged, with the number of its links."""

    def __init__(self, node):
        self.name, self.said = MARK + node, TOPOLOGY["nodes"][node]
        assert self.said.keys() <= {
            "kind", "image", "env", "binds", "entrypoint", "healthcheck", "exec"
        }  # fmt: skip
        assert (self.said["kind"], self.said["image"]) == (
            "linux",
            "${IMAGE:=fpm-dataplane}",
        )
        self.links = [end for link in TOPOLOGY["links"] for end in link["endpoints"]
                      if end.startswith(node + ":")]  # fmt: skip
        words = ["--env", f"CLAB_INTFS={len(self.links)}"]
        for key, value in self.said.get("env", {}).items():
            words += ["--env", f"{key}={value}"]
        for bind in self.said.get("binds", []):
            words += ["--volume", f"{(CLAB.parent / bind.split(':')[0]).resolve()}:"
                                  + bind.partition(":")[2]]  # fmt: skip
        command = shlex.split(self.said.get("entrypoint", ""))
        if command:
            words += ["--entrypoint", json.dumps(command)]
        netns.command(["podman", "run", "--detach", "--name", self.name, "--privileged",
                       "--network", "none", *words, IMAGE])  # fmt: skip
        self.attach()

    def attach(self):
        """Give the node's network namespace the name of the node."""
        pid = netns.command(["podman", "inspect", "--format", "{{.State.Pid}}", self.name])
        netns.delete(self.name)
        netns.command(["ip", "netns", "attach", self.name, pid.strip()])

    def configure(self):
        """Run the commands of the file."""
        for command in self.said.get("exec", []):
            self.run(*shlex.split(command))

    def run(self, *argv, check=True):
        return netns.command(["podman", "exec", self.name, *argv], check=check)

    def show(self, *what):
        return json.loads(self.run("fpmctl", "--json", "show", *what))

    def log(self):
        done = subprocess.run(["podman", "logs", self.name], capture_output=True, text=True)
        return done.stdout + done.stderr

    def is_healthy(self):
        """Return True if the HEALTHCHECK succeeds, as podman runs it."""
        done = subprocess.run(["podman", "healthcheck", "run", self.name], check=False)
        return done.returncode == 0

    def close(self):
        netns.delete(self.name)
        netns.command(["podman", "rm", "--force", "--time", "5", self.name], check=False)


def cable(link):
    """Make a link of the file, up at both ends."""
    (a, dev_a), (b, dev_b) = (end.split(":") for end in link["endpoints"])
    mtu = ["mtu", str(link.get("mtu", CONTAINERLABS_MTU))]
    netns.command(["ip", "link", "add", dev_a, *mtu, "netns", MARK + a, "type", "veth",
                   "peer", "name", dev_b, *mtu, "netns", MARK + b])  # fmt: skip
    netns.link_set(MARK + a, dev_a, True)
    netns.link_set(MARK + b, dev_b, True)


@pytest.fixture(scope="module")
def lab():
    """Yield {1: r1, 2: r2}. Each can reach the other's LAN."""
    nodes = {}
    try:
        for node in TOPOLOGY["nodes"]:
            nodes[node] = Node(node)
        for link in TOPOLOGY["links"]:
            cable(link)
        for n in (1, 2):
            nodes[f"h{n}"].configure()
            netns.ip_batch(
                [f"-6 addr add fd30:0:0:{n}::10/64 dev eth1 nodad",
                 f"-6 route add default via fd30:0:0:{n}::1"], MARK + f"h{n}",
            )  # fmt: skip
        routers = {n: nodes[f"r{n}"] for n in (1, 2)}
        try:
            for n, router in routers.items():
                far = f"10.30.{3 - n}.0/24"
                eventually(
                    lambda r=router, f=far: r.show("routes", f),
                    60,
                    0.5,
                    f"r{n} forwards {far}",
                )
        except AssertionError as err:
            logs = "\n".join(f"--- r{n}\n{r.log()[-3000:]}" for n, r in routers.items())
            raise AssertionError(f"{err}\n{logs}") from err
        yield routers
    finally:
        for node in nodes.values():
            node.close()


def ping(count, address):
    """Ping from host 1. Returns the number of answers."""
    said = netns.run(
        f"{MARK}h1",
        ["ping", "-c", str(count), "-i", "0.02", "-W", "1", address],
        check=False,
    )
    return int(said.split(" received")[0].split()[-1])


@pytest.mark.parametrize("address", ["10.30.2.10", "fd30:0:0:2::10"])
def test_hosts_reach_each_other_through_both_dataplanes(lab, address):
    eventually(lambda: ping(1, address), 30, what=f"{address} answers")
    kernel = [sum(netns.forwarded(r.name)) for r in lab.values()]
    assert ping(50, address) == 50
    assert [sum(netns.forwarded(r.name)) for r in lab.values()] == kernel


def test_tcp_passes(lab):
    """TCP passes. The hosts have `tx off`, because net_af_packet passes on checksums that the
    kernel left unfinished. They have the ports' MTU, because a host with containerlab's default MTU
    sends packets that are too long for the ports."""
    eventually(lambda: ping(1, "10.30.2.10"), 30, what="the host answers")
    h1, h2 = ([*INSIDE, f"{MARK}{host}"] for host in ("h1", "h2"))

    assert received(h2, h1, "10.30.2.10", 20000) == 20000


def test_health_and_names(lab):
    """`docker exec` shows TAPs with the names of the file, and the container is healthy."""
    for router in lab.values():
        assert [p["name"] for p in router.show("ports")] == ["core", "lan"]
        assert router.is_healthy()


def test_who_is_root_is_told_by_the_page(lab):
    """FRR's daemons run as user frr. The page names all processes of root, and the
    dataplane runs as root without most capabilities."""
    said = re.search(r"\*\*Users\.\*\* (.*?)run\s+as\s+user\s+frr", PAGE, re.S)[1]
    rows = netns.command(["podman", "top", lab[1].name, "user", "comm", "capeff"]).splitlines()[1:]
    of = {"root": set(), "frr": set()}
    health = {"sh", "fpmctl", "vtysh"}  # these run if podman has a systemd that runs the check
    for user, name, capabilities in (row.split(None, 2) for row in rows):
        of[user].add(name)
        if name == "fpm-dataplane":
            assert "full" not in capabilities and "SYS_MODULE" not in capabilities, capabilities

    assert {"zebra", "ospfd"} <= of["frr"]
    assert {"fpm-dataplane", "fpm-supervise", "watchfrr"} <= of["root"]
    called = {"fpm-dataplane": "the dataplane", "docker-init": "tini", "bash": "router.sh"}
    assert {name for name in of["root"] - health if called.get(name, name) not in said} == set()


def test_health_is_that_of_zebra_and_of_the_dataplane(lab):
    """A container whose zebra or dataplane is dead and not restarted is unhealthy. (watchfrr does
    nothing in its first minute.)"""
    for keeper, kept in (("watchfrr", "zebra"), ("fpm-supervise", "fpm-dataplane")):
        lab[1].run("pkill", "-STOP", "-x", keeper)
        lab[1].run("pkill", "-9", "-x", kept)
        eventually(lambda: not lab[1].is_healthy(), 5, what=f"unhealthy without {kept}")
        lab[1].run("pkill", "-CONT", "-x", keeper)
        eventually(lab[1].is_healthy, 100, 0.5, f"{keeper} starts {kept} again")
    eventually(lambda: ping(1, "10.30.2.10"), 60, what="forwarding again")


def test_a_killed_dataplane_comes_back(lab):
    """fpm-supervise restarts a killed dataplane. OSPF loses no adjacency."""
    router = lab[1]
    up = router.run("vtysh", "-c", "show ip ospf neighbor json")
    router.run("pkill", "-9", "-x", "fpm-dataplane")
    eventually(lambda: ping(1, "10.30.2.10"), 20, what="forwarding again")
    changes = [
        [n[0]["nbrState"] for n in json.loads(said)["neighbors"].values()]
        for said in (up, router.run("vtysh", "-c", "show ip ospf neighbor json"))
    ]
    assert changes[0] == changes[1]


def test_stop_is_quick_and_clean_and_start_begins_where_it_was(lab):
    """SIGTERM ends the container with exit code 0 within the ten seconds that docker allows. After
    a start with cables it has the configuration that was written, not the first one of FRR_CONF.
    """
    router = lab[2]
    router.run("vtysh", "-c", "conf t", "-c", "ip route 192.0.2.0/24 blackhole",
               "-c", "end", "-c", "write memory")  # fmt: skip
    netns.command(["podman", "stop", "--time", "10", router.name])
    state = netns.command(
        ["podman", "inspect", "--format", "{{.State.ExitCode}}", router.name]
    )
    assert state.strip() == "0"

    netns.command(["podman", "start", router.name])
    router.attach()
    for link in TOPOLOGY["links"]:
        if any(end.startswith("r2:") for end in link["endpoints"]):
            cable(link)

    eventually(
        lambda: router.show("routes", "192.0.2.0/24"), 60, 0.5, "the route that was written"
    )
    assert "was changed after it was copied from /lab/r2.conf, and is kept" in router.log()


def test_without_rights_it_says_so():
    """`docker run` without --privileged prints a sentence and has exit code 2."""
    done = subprocess.run(["podman", "run", "--rm", "--network", "none", IMAGE],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith("router: there is no /dev/net/tun") and "--privileged" in said


def megabytes(image):
    """Return the size of the image."""
    words = ["podman", "image", "inspect", "--format", "{{.Size}}", image]
    return int(netns.command(words)) / 1e6


def packages(image):
    """Return the names of Debian's packages in the image."""
    words = ["dpkg-query", image, "--show", "--showformat", "${Package}\n"]
    run = ["podman", "run", "--rm", "--network", "none", "--entrypoint"]
    return set(netns.command([*run, *words]).split())


@of_the_page
def test_the_image_is_as_small_as_its_page_says():
    """The image adds to Debian's image at most the size that its page says. It has no service manager and no
    compiler."""
    (said,) = re.findall(r"\*\*Size\.\*\* (\d+) MB more", PAGE)

    ours = megabytes(IMAGE) - megabytes("docker.io/library/debian:bookworm-slim")

    assert abs(ours - int(said)) < 3
    there = packages(IMAGE)
    assert {"frr", "fpm-dataplane"} <= there
    assert {"systemd", "gcc", "make", "libdpdk-dev"} & there == set()


@of_the_page
def test_an_image_with_drivers_has_them_and_is_as_large_as_its_page_says():
    """An image with `--build-arg DRIVERS=`, of the page's two drivers or of all, has the drivers
    and the size of the page."""
    some, most, said = re.search(
        r'DRIVERS="([^"]+)"`, for\s+example,[^`]*`DRIVERS="([^"]+)"`\s+\((\d+)\s+MB', PAGE
    ).groups()
    made = f"localhost/{MARK}-drivers"
    try:
        for drivers in (some, most):
            netns.command(
                ["podman", "build", "--quiet", "--format", "docker", "--network", "host",
                 "--build-arg", f"VERSION={os.environ['VERSION']}", "--build-arg", f"DRIVERS={drivers}",
                 "--file", str(docs.ROOT / "docker/Dockerfile"), "--tag", made, str(docs.ROOT)], timeout=600,
            )  # fmt: skip
            assert set(drivers.split()) <= packages(made)
        assert abs(megabytes(made) - megabytes(IMAGE) - int(said)) < 3
    finally:
        netns.command(["podman", "rmi", "--force", made], check=False)
