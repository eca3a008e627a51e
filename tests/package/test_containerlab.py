# SPDX-License-Identifier: BSD-3-Clause
"""docker/containerlab works with the commands of docker/README.md, by containerlab with podman.

containerlab writes into /etc (names of nodes) and makes a bridge. Therefore it gets a temporary
/etc and a network of its own. It reads /proc/modules, which a kernel without modules lacks; then
strace gives it an empty file. `make test-image` builds the image. The test is skipped if there is
no podman, or no containerlab in PATH (or named by CONTAINERLAB).
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import docs  # noqa: E402
from lib.tcp import received  # noqa: E402
from lib.wait import eventually  # noqa: E402

IMAGE = os.environ.get("IMAGE", "")
CONTAINERLAB = shutil.which(os.environ.get("CONTAINERLAB") or "containerlab")
HAS_MODULES = os.path.exists("/proc/modules")
EMPTY = b"/dev/null\0".hex()
PAST_MODULES = (
    "strace -f -qq -o /dev/null -P /proc/modules -e trace=openat "
    f"-e inject=openat:poke_enter=@arg2={EMPTY} "
)

pytestmark = pytest.mark.skipif(
    not (IMAGE and shutil.which("podman")), reason="no podman, or no image: `make test-image`"
)

# A script. $1: a directory. It makes /etc, /run/netns, podman's socket and the network private.
APART = """
mount --make-rprivate /
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" none /etc
mkdir -p /run/netns /run/podman
mount -t tmpfs none /run/netns
mount --make-shared /run/netns
mount -t tmpfs none /run/podman
ip link set lo up
exec podman system service --time=0 unix:///run/podman/podman.sock
"""


class Machine:
    """podman's service and its clients, separate from this machine's /etc and network."""

    def __init__(self, directory):
        (directory / "etc").mkdir()
        self.log = open(directory / "podman.log", "w+", encoding="utf-8")
        self.service = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-ec", APART, "sh", directory / "etc"],
            stdout=self.log, stderr=self.log,
        )  # fmt: skip
        # containerlab puts a directory beside its file.
        self.page = directory / "project"
        shutil.copytree(docs.ROOT / "docker", self.page / "docker")
        eventually(lambda: self.run("podman --remote info"), 20, what="podman's service answers")

    def run(self, command, check=True):
        """Run a command line of the page with podman in the place of docker. Returns its output."""
        command = re.sub("^docker ", "podman ", command)
        program = f"{'' if HAS_MODULES else PAST_MODULES}{CONTAINERLAB} "
        command = re.sub("^containerlab ", program, command)
        done = subprocess.run(
            ["nsenter", f"--target={self.service.pid}", "--mount", "--net",
             f"--wd={self.page}", "bash", "-e", "-c", command],
            env={**os.environ, "IMAGE": IMAGE, "CLAB_RUNTIME": "podman",
                 "CLAB_VERSION_CHECK": "disable"},
            text=True, timeout=120, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"{command}\n{done.stdout}"
        return done.stdout

    def inside(self, node):
        """Return the prefix of a command that runs on `node` with this machine's programs."""
        show = "podman inspect --format '{{.State.Pid}}' " + node
        return ["nsenter", f"--target={self.run(show).strip()}", "--net"]

    def close(self):
        self.service.terminate()
        self.service.wait(10)
        self.log.close()


@pytest.fixture
def machine(tmp_path):
    if CONTAINERLAB is None:
        pytest.skip("no containerlab: docker/README.md says where to get it")
    if not (HAS_MODULES or shutil.which("strace")):
        pytest.skip("containerlab wants /proc/modules, which is not here, nor is strace to give it one")
    there = Machine(tmp_path)
    try:
        yield there
    finally:
        there.close()


def test_the_lab_of_containerlab_does_what_its_page_says(machine):
    """containerlab deploys the lab; ping and TCP pass from host to host through both routers; the
    ports are up; `destroy` removes all objects."""
    deploy, ping, ports, destroy = docs.shown_by(
        docs.ROOT / "docker" / "README.md", "test_containerlab"
    )
    nodes = [f"clab-fpm-dataplane-{node}" for node in ("r1", "r2", "h1", "h2")]
    listed = "podman ps --all --format '{{.Names}}'; podman network ls --format '{{.Name}}'"
    before = machine.run(listed).split()

    try:
        said = machine.run(deploy)
        eventually(
            lambda: " 0% packet loss" in machine.run(ping, check=False), 90, 1,
            f"h2 answers h1\n{said}",
        )  # fmt: skip
        h1, h2 = machine.inside(nodes[2]), machine.inside(nodes[3])
        assert received(h2, h1, "10.30.2.10", 200000) == 200000
        assert {"core", "lan"} <= set(machine.run(ports).split())
        assert set(machine.run(listed).split()) - set(before) == {"clab", *nodes}
    finally:
        machine.run(destroy, check=False)
    assert machine.run(listed).split() == before
    assert os.listdir(machine.page / "docker/containerlab") == ["two-routers.clab.yaml"]
