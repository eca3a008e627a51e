# SPDX-License-Identifier: BSD-3-Clause
"""docker/router.sh, the main program of the container, runs without a container: tini, the script,
the dataplane and FRR have namespaces of their own (mounts, processes, network) and the files of
docker/.

Tests of the image itself are in tests/package/test_image.py.
"""

import contextlib
import os
import re
import shutil
import subprocess
import time

import pytest

from lib import machine, procs
from lib.dataplane import ROOT
from lib.wait import PATIENCE, eventually

DOCKER = os.path.join(ROOT, "docker")
BUILD = os.path.join(ROOT, "build", os.environ.get("BUILD", "release"))

pytestmark = pytest.mark.skipif(
    not (shutil.which("tini") and os.path.exists("/usr/lib/frr/frrinit.sh")),
    reason="no tini, or no FRR: `make deps`",
)

# $1: a directory. Its run/ and frr/ outlive the container, as the files of a container outlive its
# restart. $2: the interfaces; a host is behind the first. The other arguments are a command that
# starts the ENTRYPOINT of the image.
SETUP = """
mount --make-rprivate /
mount -t sysfs none /sys
mount -t tmpfs none "$1/etc"
mkdir "$1/etc/upper" "$1/etc/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$1/etc/upper,workdir=$1/etc/work" none /etc
mkdir -p /etc/frr /etc/fpm-dataplane
mount --bind "$1/frr" /etc/frr
mount --bind "$1/run" /run
[ ! -e "$1/extra.yaml" ] || cp "$1/extra.yaml" /etc/fpm-dataplane
mkdir -p /run/netns
rm -f /run/netns/host
ip netns add host
ip link set lo up
n=1
for name in $2; do
	ip link add "$name" type veth peer name eth0 netns host
	ip -n host link set eth0 name "h$n" up
	ip addr add "10.30.$n.1/24" dev "$name"
	n=$((n + 1))
done
[ $n = 1 ] || ip -n host addr add 10.30.1.10/24 dev h1
shift 2
exec "$@" tini -g -- bash "$ROUTER"
"""


class Container:
    """Run the entry point of the image. `within` is a command that starts it."""

    def __init__(self, directory, interfaces="eth1", within=(), **env):
        self.dir = str(directory)
        self.log_file = f"{self.dir}/log"
        for name in ("etc", "run", "frr"):
            os.makedirs(f"{self.dir}/{name}", exist_ok=True)
        if not os.listdir(f"{self.dir}/frr"):
            for name in ("daemons", "frr.conf", "vtysh.conf"):
                shutil.copy(f"{DOCKER}/{name}", f"{self.dir}/frr")
        open(self.log_file, "w", encoding="utf-8").close()
        argv = ["env", f"PATH={BUILD}:{os.environ['PATH']}", f"ROUTER={DOCKER}/router.sh"]
        argv += [f"{key}={value}" for key, value in env.items()]
        argv += [
            "unshare",
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        argv += ["sh", "-ec", SETUP, "sh", self.dir, interfaces, *within]
        self.process = procs.start(argv, self.dir, self.log_file)
        machine.prefer([self.process.pid])

    def log(self):
        """Return the output that `docker logs` shows."""
        with open(self.log_file, encoding="utf-8", errors="replace") as file:
            return file.read()

    def inside(self):
        """Return the id of the container's process 1."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return file.read().split()[0]

    def run(self, command):
        """Run a command as `docker exec` does. Returns (exit code, output)."""
        argv = ["nsenter", "--target", self.inside(), "--mount", "--net", "--pid"]
        done = subprocess.run(
            [*argv, "env", f"PATH={BUILD}:{os.environ['PATH']}", "sh", "-c", command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=30 * PATIENCE,
        )  # fmt: skip
        return done.returncode, done.stdout

    def is_healthy(self):
        """Run the HEALTHCHECK of the Dockerfile."""
        with open(f"{DOCKER}/Dockerfile", encoding="utf-8") as file:
            words = re.search(r"^HEALTHCHECK (?:.*\\\n)*\s*CMD (.*)", file.read(), re.M)[1]
        return self.run(words)[0] == 0

    def ready(self):
        """Wait for the last line of the script."""
        try:
            eventually(lambda: "router: ports" in self.log(), 30, 0.1, "the router is up")
        except AssertionError as err:
            raise AssertionError(f"{err}\n{self.log()}") from err
        return self

    def end(self):
        """Stop the container as `docker stop` does. Returns its exit code."""
        os.kill(int(self.inside()), 15)
        return self.process.wait(10 * PATIENCE)


@pytest.mark.parametrize("abi", ["23", "25"])
def test_the_image_has_the_drivers_of_the_dpdk_of_its_package(abi, tmp_path):
    """The command of the Dockerfile reads the number of DPDK's ABI from the package. Outside of
    comments only the default of SUITE names a release of Debian, and no line has an ABI number."""
    control = tmp_path / "deb" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    control.write_text(
        "Package: fpm-dataplane\nVersion: 0\nArchitecture: all\nMaintainer: x <x@example.org>\n"
        f"Depends: libc6 (>= 2.34), librte-net-null{abi}, librte-net-virtio{abi}\nDescription: x\n"
    )
    deb = tmp_path / "fpm-dataplane.deb"
    subprocess.run(["dpkg-deb", "--build", control.parent.parent, deb], check=True, stdout=subprocess.DEVNULL)
    with open(f"{DOCKER}/Dockerfile", encoding="utf-8") as file:
        text = "".join(line for line in file if not line.startswith("#"))
    command = re.search(r"^RUN abi=\$\((.*)\) \\$", text, re.M)[1]

    done = subprocess.run(
        ["sh", "-c", command.replace("/tmp/fpm-dataplane.deb", str(deb))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout == f"{abi}\n"
    assert re.findall("bookworm|trixie", text) == ["bookworm"] and "ARG SUITE=bookworm\n" in text
    assert text.count("FROM debian:${SUITE}-slim") == text.count("FROM ") == 2
    assert not re.search(r"librte-[a-z-]+\d", text)
    assert {"librte-net-memif$abi", "librte-net-pcap$abi"} <= set(re.findall(r'"(librte[^"]*)"', text))


@pytest.fixture
def container(tmp_path):
    """Make containers that end with the test."""
    with contextlib.ExitStack() as ending:

        def make(*args, **kw):
            made = Container(tmp_path, *args, **kw)
            ending.callback(made.process.wait)
            ending.callback(
                made.process.kill
            )  # this ends all processes of its namespace too
            return made

        yield make


@pytest.fixture
def router(container):
    """A running container."""
    return container(PORTS="lan=10.30.1.0/24").ready()


def refused(made):
    """Return the last line of a container that ends by itself with code 2, long before a minute is
    over."""
    assert made.process.wait(15 * PATIENCE) == 2, made.log()
    return made.log().splitlines()[-1]


@pytest.mark.parametrize(
    ["env", "sentence"],
    [
        ({"PORTS": "10.30.1.0/24"}, "PORTS: '10.30.1.0/24' is a subnet without a port name"),
        ({"PORTS": "lan="}, "PORTS: 'lan=' names no interface; write lan=eth1, or lan=10.0.1.0/24"),
        ({"PORTS": "=eth1"}, "PORTS: '' of '=eth1' is not a valid port name"),
        ({"PORTS": "a-name-of-16-let=eth1"}, "is not a valid port name; expected at most 15 letters"),
        ({"PORTS": "l;n=eth1"}, "PORTS: 'l;n' of 'l;n=eth1' is not a valid port name"),
        ({"PORTS": "lan=10.30.1.300/24"}, "PORTS: '10.30.1.300/24' of 'lan=10.30.1.300/24' is not a subnet"),
        ({"PORTS": "lan=eth1 lan=eth2"}, "PORTS: two ports have the name lan"),
        ({"PORTS": "lan=eth1 wan=eth1"}, "PORTS: two ports use eth1"),
        ({"PORTS": "eth2=eth1"}, "PORTS: a port cannot have the name eth2, because another interface has it"),
        ({"PORTS": "lan=eth7", "WAIT_S": "1"},
         "the interface of port lan=eth7 did not appear in 1 s; present interfaces: eth1 eth2"),
        ({"PORTS": "lan=10.9.0.0/24", "WAIT_S": "1"},
         "the interface of port lan=10.9.0.0/24 did not appear in 1 s; present interfaces: eth1 eth2"),
        ({"CLAB_INTFS": "3", "WAIT_S": "1"}, "3 interfaces besides eth0 (CLAB_INTFS) did not appear in 1 s"),
        ({"CLAB_INTFS": "two"}, "CLAB_INTFS=two is not a number of interfaces"),
        ({"WAIT_S": "soon"}, "WAIT_S=soon is not a number of seconds"),
        ({"FRR_CONF": "/lab/r1.conf"}, "FRR_CONF=/lab/r1.conf is no readable file in the container; check that the file exists and is mounted"),
        ({"FRR_CONF": "/etc"}, "FRR_CONF=/etc is no readable file in the container; check that the file exists and is mounted"),
        ({"CONFIG": "/lab/r1.yaml"}, "CONFIG=/lab/r1.yaml is no readable file in the container; check that the file exists and is mounted"),
    ],
)  # fmt: skip
def test_a_variable_that_is_wrong_is_told_in_a_line(container, env, sentence):
    """A wrong variable ends the container at once with code 2 and one line, without a wait of a
    minute."""
    made = container("eth1 eth2", **env)

    said = refused(made)

    assert said.startswith("router: ") and sentence in said, made.log()
    assert made.log().count("router: ") == 1, made.log()


def test_no_interface_at_all_is_told(container):
    """The script reports `docker run` without a network, or with only the management network."""
    assert "no interface for a port; give the container networks" in refused(
        container("eth0")
    )


@pytest.mark.parametrize(
    ["lost", "sentence"],
    [("sys_admin", "router: not permitted to name its network namespace"), ("net_admin", "router: not permitted to")],
)  # fmt: skip
def test_missing_rights_are_told(container, lost, sentence):
    """Without --privileged the script names the missing right and the section of docker/README.md."""
    within = ["setpriv", "--bounding-set", f"-{lost}", "--inh-caps", f"-{lost}"]

    said = refused(container(within=within))

    assert said.startswith(sentence) and said.endswith(
        "(docker/README.md, Rights: --privileged)"
    )


def test_what_is_wrong_with_the_configuration_is_told(container, tmp_path):
    """The script reports an error in extra.yaml with file and line."""
    (tmp_path / "extra.yaml").write_text("metrics: off\nmetrix: on\n")
    made = container()

    assert "refuses its configuration" in refused(made)

    (line,) = re.findall(r"config.yaml:(\d+):1: .*metrix", made.log())
    first = re.findall(r"the lines from (\d+) on are from (\S+)", made.log())
    assert first == [(str(int(line) - 1), "/etc/fpm-dataplane/extra.yaml")]


def test_a_dataplane_that_does_not_start_ends_the_container(container, tmp_path):
    """The container ends with the exit code of the dataplane, and the script does not wait for the
    TAPs."""
    (tmp_path / "own.yaml").write_text(
        "ports: [{tap: lan, device: 'net_af_packet,iface=port-lan'}]\n"
        "control-netns: control\ncontrol-socket: /proc/nowhere/control.sock\n"
    )
    made = container(CONFIG=str(tmp_path / "own.yaml"), PORTS="lan=eth1")

    assert made.process.wait(20 * PATIENCE) == 1, made.log()

    said = re.findall("^router: the dataplane ended with exit code 1.*", made.log(), re.M)
    assert said and said[0].endswith("; see the lines above") and "/proc/nowhere" in made.log()


def test_an_interface_with_more_mtu_than_its_port_is_told(container):
    """The script reports an interface with a larger MTU than its port. containerlab makes such
    interfaces. With them OSPF waits without end, and packets of a host are lost."""
    within = ["sh", "-ec", 'ip link set eth1 mtu 9500; exec "$@"', "sh"]

    made = container("eth1 eth2", within, PORTS="lan=eth1 wan=eth2").ready()

    (said,) = re.findall("^router: .* has MTU .*", made.log(), re.M)
    assert said.startswith("router: eth1 has MTU 9500 and port lan 1500") and "mtu: 1500" in said
    assert "mtu 1500" in made.run("ip link show lan")[1]


def test_a_router_is_up_and_docker_stop_ends_it_within_seconds(router):
    """The router answers the host behind its port. `docker stop` ends it with exit code 0, and no
    process is left."""
    assert router.run("ip netns exec host ping -c 1 -W 5 10.30.1.1")[0] == 0
    assert router.is_healthy()
    began = time.monotonic()

    assert router.end() == 0

    assert time.monotonic() - began < 8 * PATIENCE  # docker kills after ten
    assert "router: stopping" in router.log()


def test_docker_stop_ends_one_that_still_waits(container):
    """A container that waits for an interface ends on `docker stop` at once, with code 0."""
    made = container(PORTS="lan=eth7")
    eventually(
        lambda: made.run("true")[0] == 0 and os.path.exists(f"{made.dir}/run/netns/wire")
    )
    began = time.monotonic()

    assert made.end() == 0 and time.monotonic() - began < 3 * PATIENCE


def test_health_is_that_of_zebra_and_of_the_dataplane(router):
    """The container is unhealthy while zebra or the dataplane is dead and not started again. It is
    healthy again after the start."""
    router.run("pkill -STOP watchfrr; pkill -9 -x zebra")
    assert not router.is_healthy()
    # watchfrr does this by itself, except in the first minute. A daemon of FRR 10 keeps the stderr of
    # the shell that started it open.
    router.run("/usr/lib/frr/watchfrr.sh restart zebra >/dev/null 2>&1; pkill -CONT watchfrr")
    eventually(router.is_healthy, 20, 0.2, "zebra is back")

    router.run("pkill -STOP fpm-supervise; pkill -9 -x fpm-dataplane")
    eventually(lambda: not router.is_healthy(), 10)
    router.run("pkill -CONT fpm-supervise")
    eventually(router.is_healthy, 30, 0.2, "fpm-supervise starts the dataplane again")
    assert "supervise: program ended signal=9" in router.log()


def test_without_its_supervisor_the_container_ends(router):
    """When the supervisor dies, the container ends, and the container's runtime can start it
    again."""
    router.run("pkill -9 fpm-supervise")

    assert router.process.wait(20 * PATIENCE) == 137
    assert "router: the dataplane ended with exit code 137" in router.log()


def test_what_frr_does_not_understand_is_told(container, tmp_path):
    """FRR starts without a line that it does not understand, and reports it only in vtysh. The
    script reports it."""
    (tmp_path / "mine.conf").write_text("hostname r9\nroter ospf\n")

    made = container(FRR_CONF=str(tmp_path / "mine.conf")).ready()

    assert re.search(
        r"router: /etc/frr/frr.conf: line 2: .*roter ospf", made.log()
    ), made.log()
    assert "has no line 'fpm address 127.0.0.1'" in made.log()


def test_what_was_written_outlives_a_restart_of_the_container(container, tmp_path):
    """FRR reads FRR_CONF until the first `write memory`. Then FRR reads the written configuration, which
    has the name of this container and of no other. The script accepts files that an earlier run left
    in /run."""
    mine, route = tmp_path / "mine.conf", "ip route 192.0.2.%d/32 blackhole"
    mine.write_text(f"fpm address 127.0.0.1\n{route % 1}\n")
    env = {"PORTS": "lan=eth1", "FRR_CONF": str(mine)}
    has = lambda n: route % n in made.run("vtysh -c 'show running-config'")[1]  # noqa: E731
    made = container(**env).ready()
    eventually(lambda: has(1), 20)
    made.end()
    # Nothing was written, so FRR reads the file as it is now.
    mine.write_text(f"fpm address 127.0.0.1\n{route % 2}\n")
    made = container(**env).ready()
    eventually(lambda: has(2) and not has(1), 20)
    made.run(f"vtysh -c 'conf t' -c '{route % 3}' -c end -c 'write memory'")
    assert made.end() == 0
    written = (tmp_path / "frr/frr.conf").read_text()
    assert re.findall("^hostname (.*)", written, re.M) == [os.uname().nodename]

    made = container(**env).ready()

    assert "/etc/frr/frr.conf was changed after it was copied from" in made.log()
    eventually(lambda: has(2) and has(3), 20)
