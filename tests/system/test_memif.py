# SPDX-License-Identifier: BSD-3-Clause
"""A port that is a client of memif follows its server: the server may begin after the daemon, and may
restart. dpdk-testpmd plays the server."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess

import pytest

from back import come_back, kept_taps
from lib.dut import Dut
from lib.wait import eventually

pytestmark = pytest.mark.skipif(
    not shutil.which("dpdk-testpmd"), reason="dpdk-testpmd is not installed"
)


@contextlib.contextmanager
def server(dut, words, role="server"):
    """Run a server of memif, or a client, and kill it. `words` are its devargs, with the socket."""
    # Abstract sockets belong to a network namespace.
    argv = ["ip", "netns", "exec", dut.dp]
    argv += ["dpdk-testpmd", "--lcores", "0@0,1@0", "--no-huge", "-m", "64", "--no-shconf"]
    argv += ["--no-pci", "--no-telemetry", f"--file-prefix={os.path.basename(dut.dir)}"]
    argv += ["--vdev", f"net_memif0,role={role},{words}", "--vdev", "net_null0,no-rx=1"]
    argv += ["--", "--forward-mode=rxonly", "--total-num-mbufs=4096", "--no-mlockall"]
    with open(f"{dut.dir}/testpmd.log", "w", encoding="utf-8") as log:
        program = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        program.kill()
        program.wait()


def link(dut):
    """Return "up", "down", or None if the port is not open."""
    return next((r["link"] for r in dut.control.ask("ports") if r["name"] == "mem0"), None)


@pytest.mark.parametrize("abstract, role", [("yes", "role=client,"), ("no", "")])
def test_a_client_of_memif_connects_whenever_its_server_listens(own_dut, abstract, role):
    """The daemon starts without the server, the port gets its link when the server begins, and
    again when the server was killed and has begun again. The TAP keeps its ifindex and address."""
    dut = own_dut()
    words = f"socket={dut.dir}/memif.sock,socket-abstract={abstract},rsize=8"
    dut.edit_config(
        "ports:\n", f"ports:\n  - tap: mem0\n    device: net_memif0,{role}{words}\n"
    )
    dut.start()
    assert link(dut) is None
    assert "port: device not opened yet name=mem0 reason=memif-server-absent" in dut.log()

    with server(dut, words):
        eventually(lambda: link(dut) == "up", 20, 0.05)
    eventually(lambda: link(dut) == "down", 5, 0.05)
    index = dut.link_row("mem0")["ifindex"]
    dut.ip("addr add 198.51.100.1/24 dev mem0")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{dut.dir}/memif.sock")
    with server(dut, words):
        eventually(lambda: link(dut) == "up", 20, 0.05)
        row = dut.link_row("mem0")
        assert row["ifindex"] == index
        eventually(lambda: dut.route_row("198.51.100.0/24"), 5, 0.01)
    eventually(lambda: link(dut) == "down", 5, 0.05)


def test_the_tap_waits_for_the_server_over_restarts(own_dut):
    """The daemon crashes while the server is away: the next one keeps the TAP for the port, also over
    planned restarts, and opens the port behind it when the server is back. The TAP has another name
    by then, so that only the kept descriptor leads to it. A port that leaves the configuration takes
    its TAP with it."""
    dut = own_dut(supervised=True)
    words = f"socket={dut.dir}/memif.sock,socket-abstract=no,rsize=8"
    entry = f"  - tap: mem0\n    device: net_memif0,role=client,{words}\n"
    dut.edit_config("ports:\n", "ports:\n" + entry)
    dut.start()
    with server(dut, words):
        eventually(lambda: link(dut) == "up", 20, 0.05)
    eventually(lambda: link(dut) == "down", 5, 0.05)
    index = dut.link_row("mem0")["ifindex"]
    os.unlink(f"{dut.dir}/memif.sock")
    kept = kept_taps(dut)
    dut.ip("link set mem0 name mem9")

    for n, planned in enumerate((False, True, True, False)):
        before = dut.daemon.pid()
        if planned:
            assert dut.fpmctl("restart").returncode == 0
        else:
            os.kill(before, signal.SIGKILL)
        come_back(dut, before)
        assert link(dut) is None
        said = "fdstore: tap kept name=mem0 reason=port-waits"
        eventually(lambda n=n: dut.log(1000).count(said) == n + 1, 5, 0.02, "the TAP is kept")
        assert "tap released name=mem0" not in dut.log(1000)
        eventually(lambda: kept_taps(dut) == kept, 5, 0.02, "the supervisor has all TAPs")
    with server(dut, words):
        eventually(lambda: link(dut) == "up", 20, 0.05)
        assert f"port: kept tap renamed port=mem0 tap=mem9 ifindex={index}" in dut.log(1000)
        assert "mem0" not in {r["ifname"] for r in dut.links()}
        dut.ip("link set mem9 name mem0")

    eventually(lambda: link(dut) == "down", 5, 0.05)
    os.unlink(f"{dut.dir}/memif.sock")
    os.kill(before := dut.daemon.pid(), signal.SIGKILL)
    come_back(dut, before)
    assert dut.link_row("mem0")["ifindex"] == index
    dut.edit_config(entry, "")
    assert dut.fpmctl("config", "reload").returncode == 0
    eventually(lambda: "mem0" not in {r["ifname"] for r in dut.links()}, 5, 0.02)


def test_a_server_that_refuses_the_client_costs_few_tries(own_dut):
    """A server with another id listens and refuses. The client tries less and less often, and other
    ports lose no packet."""
    dut = own_dut()
    words = f"socket={dut.dir}/memif.sock,socket-abstract=no,rsize=8"
    dut.start()
    with server(dut, f"id=7,{words}"):
        eventually(lambda: os.path.exists(f"{dut.dir}/memif.sock"), 20, 0.05)
        device = f"net_memif0,role=client,{words}"
        assert dut.fpmctl("port", "add", "mem0", "device", device).returncode == 0
        said = "port opened again name=mem0 reason=server-back"
        eventually(lambda: dut.log(1000).count(said) == 4, 40, 0.1)
        tries = [line[11:23] for line in dut.log(1000).splitlines() if said in line]
        at = [sum(float(x) * f for x, f in zip(t.split(":"), (3600, 60, 1))) for t in tries]
        # 2, 4 and 8 s lie between them. A try that is late lengthens one and shortens the next.
        first, _, third = ((b - a) % 86400 for a, b in itertools.pairwise(at))
        assert third > 2 * first, tries
        assert dut.alive() and link(dut) == "down"
    assert dut.fpmctl("port", "del", "mem0").returncode == 0


def test_the_socket_of_a_killed_server_is_replaced(own_dut):
    """SIGKILL leaves the socket of a memif server. The next daemon removes it and listens again, for
    two ports that share the socket. In an earlier version no start succeeded until an operator removed
    the file. A planned restart opens the ports, too."""
    dut = own_dut(supervised=True)
    words = f"socket={dut.dir}/memif.sock,socket-abstract=no,rsize=8"
    device = "net_memif{},role=server,id={},{}"
    ports = "".join(f"  - tap: mem{n}\n    device: {device.format(n, n, words)}\n" for n in (0, 1))
    dut.edit_config("ports:\n", "ports:\n" + ports)
    Dut.start(dut)  # without a client the ports have no link

    for planned in (False, True, False):
        before = dut.daemon.pid()
        if planned:
            assert dut.fpmctl("restart").returncode == 0
        else:
            os.kill(before, signal.SIGKILL)
        dut.control.close()
        dut.daemon.back(before)
        assert {r["name"] for r in dut.control.ask("ports")} >= {"mem0", "mem1"}
        assert link(dut) == "down"
    assert "Address already in use" not in dut.log(1000)
    with server(dut, words, role="client"):
        eventually(lambda: link(dut) == "up", 20, 0.05)
    assert dut.stop() == 0
