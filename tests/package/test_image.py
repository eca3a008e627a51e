# SPDX-License-Identifier: BSD-3-Clause
"""The container image: two routers and two hosts, cabled as containerlab does it.

    h1 --- eth2 r1 eth1 --- eth1 r2 eth2 --- h2        docker/lab/r1.conf, r2.conf

Containers start without a network; the ends of veth pairs are moved into them while their
entrypoint waits (CLAB_INTFS). `make test-image` builds the image and names it in IMAGE;
skipped where there is no podman.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import netns  # noqa: E402
from lib.wait import eventually  # noqa: E402

IMAGE = os.environ.get("IMAGE", "")
LAB = os.path.join(os.path.dirname(__file__), "../../docker/lab")
# Unlike any other on this machine.
MARK = f"fi{os.getpid() % 100000}"
HOSTS = {f"{MARK}h{n}": n for n in (1, 2)}

pytestmark = pytest.mark.skipif(
    not (IMAGE and shutil.which("podman")), reason="no podman, or no image: `make test-image`"
)


class Router:
    """A container of the image; `n` is 1 or 2."""

    def __init__(self, n):
        self.name = f"{MARK}r{n}"
        config = f"{os.path.realpath(LAB)}/r{n}.conf"
        # fmt: off
        netns.command([
            "podman", "run", "--detach", "--name", self.name, "--privileged",
            "--network", "none", "--tmpfs", "/run",
            "--volume", f"{config}:/etc/frr/frr.conf.mine:ro",
            "--env", "CLAB_INTFS=2", "--env", "PORTS=core=eth1 lan=eth2",
            "--env", "FRR_CONF=/etc/frr/frr.conf.mine", IMAGE,
        ])
        # fmt: on
        pid = netns.command(["podman", "inspect", "--format", "{{.State.Pid}}", self.name])
        netns.command(["ip", "netns", "attach", self.name, pid.strip()])

    def run(self, *argv, check=True):
        return netns.command(["podman", "exec", self.name, *argv], check=check)

    def show(self, *what):
        return json.loads(self.run("fpmctl", "--json", "show", *what))

    def log(self):
        done = subprocess.run(["podman", "logs", self.name], capture_output=True, text=True)
        return done.stdout + done.stderr

    def close(self):
        netns.delete(self.name)
        netns.command(["podman", "rm", "--force", "--time", "5", self.name], check=False)


def cable(a, dev_a, b, dev_b):
    netns.command(["ip", "link", "add", dev_a, "netns", a, "type", "veth",
                   "peer", "name", dev_b, "netns", b])  # fmt: skip


def host(name, n):
    netns.ip_batch(
        [
            "link set lo up",
            "link set eth0 up",
            f"addr add 10.30.{n}.10/24 dev eth0",
            f"-6 addr add fd30:0:0:{n}::10/64 dev eth0 nodad",
            f"route add default via 10.30.{n}.1",
            f"-6 route add default via fd30:0:0:{n}::1",
        ],
        name,
    )
    # What a NIC would do; docker/README.md, "checksums".
    netns.run(name, ["ethtool", "-K", "eth0", "tx", "off"])


@pytest.fixture(scope="module")
def lab():
    """{1: Router, 2: Router}, of which each can reach the other's LAN."""
    routers = {}
    try:
        for name in HOSTS:
            netns.command(["ip", "netns", "add", name])
        for n in (1, 2):
            routers[n] = Router(n)
        cable(routers[1].name, "eth1", routers[2].name, "eth1")
        for name, n in HOSTS.items():
            cable(routers[n].name, "eth2", name, "eth0")
            host(name, n)
        try:
            for n, router in routers.items():
                far = f"10.30.{3 - n}.0/24"
                eventually(
                    lambda r=router, f=far: r.show("routes", f), 60, 0.5, f"r{n} forwards {far}"
                )
        except AssertionError as err:
            logs = "\n".join(f"--- r{n}\n{r.log()[-3000:]}" for n, r in routers.items())
            raise AssertionError(f"{err}\n{logs}") from err
        yield routers
    finally:
        for router in routers.values():
            router.close()
        for name in HOSTS:
            netns.delete(name)


def ping(count, address):
    """From host 1. Returns how many were answered."""
    said = netns.run(
        f"{MARK}h1", ["ping", "-c", str(count), "-i", "0.02", "-W", "1", address], check=False
    )
    return int(said.split(" received")[0].split()[-1])


@pytest.mark.parametrize("address", ["10.30.2.10", "fd30:0:0:2::10"])
def test_hosts_reach_each_other_through_both_dataplanes(lab, address):
    eventually(lambda: ping(1, address), 30, what=f"{address} answers")
    kernel = [sum(netns.forwarded(r.name)) for r in lab.values()]
    assert ping(50, address) == 50
    assert [sum(netns.forwarded(r.name)) for r in lab.values()] == kernel


def test_tcp_passes(lab):
    """Ends with `tx off`: net_af_packet hands over what the kernel left unfinished."""
    eventually(lambda: ping(1, "10.30.2.10"), 30, what="the host answers")
    text = "x" * 20000
    with netns.entered(f"{MARK}h2"):
        server = subprocess.Popen(
            [sys.executable, "-c", "import socket; s = socket.create_server(('', 7000));"
             "print(flush=True); c, _ = s.accept();"
             f"c.sendall(b'{text}'); c.close()"], stdout=subprocess.PIPE)  # fmt: skip
    try:
        server.stdout.readline()
        code = (
            "import socket; s = socket.create_connection(('10.30.2.10', 7000), 10);"
            "print(sum(len(x) for x in iter(lambda: s.recv(65536), b'')))"
        )
        assert netns.run(f"{MARK}h1", [sys.executable, "-c", code]) == f"{len(text)}\n"
    finally:
        server.kill()
        server.wait()


def test_health_and_names(lab):
    """What `docker exec` shows: TAPs of the names asked for, and a healthy container."""
    for router in lab.values():
        assert [p["name"] for p in router.show("ports")] == ["core", "lan"]
        netns.command(["podman", "healthcheck", "run", router.name])
        assert "fpmdp_build_info" in router.run(
            "bash", "-c",
            "exec 3<>/dev/tcp/127.0.0.1/9620; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3;"
            "cat <&3")  # fmt: skip


def test_a_killed_dataplane_comes_back(lab):
    """fpm-supervise starts it again; OSPF has not noticed."""
    router = lab[1]
    up = router.run("vtysh", "-c", "show ip ospf neighbor json")
    router.run("pkill", "-9", "-x", "fpm-dataplane")
    eventually(lambda: ping(1, "10.30.2.10"), 20, what="forwarding again")
    changes = [
        [n[0]["nbrState"] for n in json.loads(said)["neighbors"].values()]
        for said in (up, router.run("vtysh", "-c", "show ip ospf neighbor json"))
    ]
    assert changes[0] == changes[1]


def test_stop_is_quick_and_clean(lab):
    """SIGTERM ends it within the ten seconds that docker gives, with exit code 0."""
    netns.command(["podman", "stop", "--time", "10", lab[2].name])
    state = netns.command(["podman", "inspect", "--format", "{{.State.ExitCode}}", lab[2].name])
    assert state.strip() == "0"
