# SPDX-License-Identifier: BSD-3-Clause
"""The Debian package on a machine with systemd: the unit as it is installed, with all its
restrictions, on real drivers. If a daemon ends or hangs, systemd starts another one. Meanwhile
no TAP loses its carrier."""

import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

from full_table import send
from lab.routes import table4
from lib import fpm_speaker as fpm
from lib import links, netns, procs, unit
from lib.freeze import frozen
from lib.linkwatch import LinkWatch
from lib.wait import eventually
from service import CONFIG, NAME, forwards, routes, state, systemctl, traffic, wait_for_other
from service import write

DROP_IN = f"/run/systemd/system/{NAME}.service.d/test.conf"
MANY = 500000  # routes, which need more memory
MEMORY_LEFT = 16 << 20


def test_start_returns_when_it_forwards(router):
    """Type=notify: the daemon sends READY when the ports are up, not earlier."""
    router.stop()

    systemctl("start", NAME)

    rows = router.control.ask("ports")
    assert [row["name"] for row in rows] == [w.tap for w in router.wires.values()]
    assert state("SubState") == "running"
    # One descriptor for each TAP, and one for the checkpoint.
    assert int(state("NFileDescriptorStore")) == len(rows) + 1
    router.ready()
    routes(router)
    forwards(router)


def test_what_the_unit_forbids_is_forbidden(router):
    """The kernel reports the restrictions of the running process."""
    pid = router.daemon.pid()
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    with open(f"/proc/{pid}/mountinfo", encoding="ascii") as file:
        mounts = {row.split()[4]: row.split()[5].split(",") for row in file}

    # NET_ADMIN 12, NET_RAW 13, IPC_LOCK 14, SYS_ADMIN 21: capabilities(7)
    assert int(status["CapEff"], 16) == 1 << 12 | 1 << 13 | 1 << 14 | 1 << 21
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert int(status["Seccomp_filters"]) > 3
    assert "ro" in mounts["/"] and "ro" in mounts["/sys/fs/cgroup"]
    assert "rw" in mounts[f"/run/{NAME}"]
    # The daemon needs vfio's devices, because its ports use vfio.
    assert "char-vfio" in state("DeviceAllow")
    assert state("DevicePolicy") == "closed"
    routes(router)
    forwards(router)


def test_members_of_the_group_may_ask_others_may_not(router):
    """A user in the group may use fpmctl without being root. Another user may not."""
    ask = ["setpriv", "--reuid=nobody", "--regid=nogroup"]
    netns.command([*ask, f"--groups={NAME}", "fpmctl", "show", "ports"])

    with pytest.raises(netns.CommandError, match="(?i)permission"):
        netns.command([*ask, "--clear-groups", "fpmctl", "show", "ports"])


def test_a_killed_daemon_comes_back_and_no_carrier_is_lost(router):
    routes(router)
    restarts = int(state("NRestarts"))

    with LinkWatch(router.ctl) as watch:
        was = router.daemon.crash()
        wait_for_other(router, was)

    assert watch.lost_carrier() == []
    assert int(state("NRestarts")) == restarts + 1
    assert re.search(r"name=lan0 .* tap=kept", router.log(400))
    forwards(router)


def test_a_daemon_out_of_memory_comes_back_too(router):
    """The unit's MemoryMax is too small for zebra's routes: the kernel's OOM killer ends the
    daemon. systemd records this as the result oom-kill, and starts another daemon."""
    routes(router)
    eventually(lambda: router.fpm()["checkpoint"]["routes"] == 2, 10)
    via = router.zebra.hop(router.wires["wan"].peer4, router.wires["wan"])
    stream = fpm.table_stream(table4(MANY), 4, [via])
    was, restarts = router.daemon.pid(), int(state("NRestarts"))

    with LinkWatch(router.ctl) as watch:
        most = int(state("MemoryCurrent")) + MEMORY_LEFT
        limit(most)
        try:
            with contextlib.suppress(OSError):  # the daemon ends before it has read all
                send(router.zebra.speaker, stream)
            eventually(lambda: int(state("NRestarts")) > restarts, 60, what="it was killed")
        finally:
            limit("infinity")
        wait_for_other(router, was)

    assert watch.lost_carrier() == []
    assert f"{NAME}.service: A process of this unit has been killed by the OOM killer" in (
        router.log(400)
    )
    forwards(router)


def limit(octets):
    """Set the memory limit of the service, until the machine's next start."""
    systemctl("set-property", "--runtime", NAME, f"MemoryMax={octets}")


def test_a_restart_keeps_the_carrier_too(router):
    routes(router)
    was = router.daemon.pid()

    with LinkWatch(router.ctl) as watch:
        with traffic(router, was):
            systemctl("restart", NAME)
        wait_for_other(router, was)

    assert watch.lost_carrier() == []
    forwards(router)


def test_a_port_that_went_can_come_again_at_once(router):
    """`port del` answers when systemd has closed its descriptor of the TAP, too."""
    kept = state("NFileDescriptorStore")

    for _ in range(20):
        netns.command(["fpmctl", "port", "add", "t", "device", "net_null50,no-rx=1"])
        netns.command(["fpmctl", "port", "del", "t"])
        assert state("NFileDescriptorStore") == kept
        assert "t" not in {link["ifname"] for link in router.links()}


@contextlib.contextmanager
def frr(router, stop="/bin/true"):
    """Run a service `frr` whose only action is `stop`, at its end."""
    unit_file = "/run/systemd/system/frr.service"
    with open(unit_file, "w", encoding="ascii") as file:
        file.write(
            "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
            f"ExecStop={stop}\n"
        )
    try:
        systemctl("daemon-reload")
        systemctl("start", "frr")
        yield
        systemctl("stop", "frr")
    finally:
        os.unlink(unit_file)
        systemctl("daemon-reload")
        netns.command(["fpmctl", "hold", "0"], check=False)


def test_a_restart_of_frr_is_known_before_it_begins(router, tmp_path):
    """fpm-dataplane-hold tells the daemon of the end of zebra before the first of FRR's daemons is
    asked to end. It does so at each restart of FRR, because systemd starts it again with FRR."""
    routes(router)  # zebra must have sent routes, or there is no session to hold
    forwards(router)
    seen = tmp_path / "seen"
    with frr(router, f"/bin/sh -c 'fpmctl --json show fpm >>{seen}'"):
        for _ in range(2):
            systemctl("restart", "frr")
            netns.command(["fpmctl", "hold", "0"])
        assert systemctl("is-active", f"{NAME}-hold").strip() == "active"
    assert re.findall(r'"state": *"(\w+)"', seen.read_text()) == ["held"] * 3
    router.zebra.connect()


def test_a_restart_of_frr_does_not_wait_for_a_daemon_that_waits_for_it(router):
    """The daemon has just crashed. systemd starts the next daemon only after FRR and
    fpm-dataplane-hold have stopped, so their stop must not wait for a daemon."""
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w", encoding="ascii") as file:
        file.write("[Service]\nRestartSec=3\n")
    try:
        with frr(router):
            was = router.daemon.pid()
            os.kill(was, signal.SIGKILL)
            eventually(lambda: state("SubState") == "auto-restart", 20, 0.02)

            systemctl("restart", "frr")

            wait_for_other(router, was)
            said = ["journalctl", "-q", "-o", "cat", "-u", f"{NAME}-hold"]
            assert "waiting for it" not in netns.command(said)
    finally:
        os.unlink(DROP_IN)
        systemctl("daemon-reload")
    router.zebra.close()
    router.zebra.connect()
    routes(router)
    forwards(router)


@contextlib.contextmanager
def watchdog(router, seconds):
    """Run the unit with another WatchdogSec."""
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w", encoding="ascii") as file:
        file.write(f"[Service]\nWatchdogSec={seconds}\nTimeoutAbortSec=2\n")
    try:
        systemctl("daemon-reload")
        was = router.daemon.pid()
        systemctl("restart", NAME)
        wait_for_other(router, was)
        yield
    finally:
        os.unlink(DROP_IN)
        systemctl("daemon-reload")
        systemctl("restart", NAME)
        router.control.close()


@contextlib.contextmanager
def stopped(pid):
    """Stop all threads of a process."""
    os.kill(pid, signal.SIGSTOP)
    yield


def test_what_hangs_is_started_again(router):
    """The daemon sends WATCHDOG=1 while all its threads run. When one thread or all threads
    stop, it sends none: systemd ends the daemon by its watchdog signal and starts another."""
    with watchdog(router, 4):
        was = router.daemon.pid()
        # WATCHDOG=1 once a second keeps the daemon alive beyond the limit.
        first = int(state("WatchdogTimestampMonotonic"))
        eventually(lambda: int(state("WatchdogTimestampMonotonic")) > first + 6e6, 20, 0.2)
        assert router.daemon.pid() == was

        hangs_and_is_ended(router, frozen(was, "fdp-rib"))
        assert "thread hangs thread=rib" in router.log(400)
        hangs_and_is_ended(router, stopped(router.daemon.pid()))


def hangs_and_is_ended(router, hung):
    """Check that systemd ends a daemon that hangs once, and that the next one forwards."""
    was, restarts = router.daemon.pid(), int(state("NRestarts"))
    timeouts = router.log(4000).count("Watchdog timeout")
    with LinkWatch(router.ctl) as watch, contextlib.suppress(OSError):
        with hung:
            eventually(lambda: not procs.is_alive(was), 20, 0.1, "systemd ends it")
    wait_for_other(router, was)

    assert watch.lost_carrier() == []
    assert int(state("NRestarts")) == restarts + 1
    assert router.log(4000).count("Watchdog timeout") == timeouts + 1
    forwards(router)


def test_reload_applies_what_the_file_says_now_or_nothing(router):
    """`systemctl reload` applies the file while the same daemon runs on. It changes nothing if
    the file is wrong."""
    was = router.daemon.pid()
    with open(CONFIG, encoding="utf-8") as file:
        good = file.read()

    def rate():
        rows = router.control.ask("punt")
        return next(row["rate"] for row in rows if row["class"] == "icmp")

    usual = rate()
    try:
        router.write_config(good + "policers:\n  icmp: {rate: 321, burst: 50}\n")
        systemctl("reload", NAME)
        eventually(lambda: rate() == 321, 10, 0.1, "the rate is the file's")
        router.write_config(good + "policers:\n  icmp: {rate: none}\n")
        systemctl("reload", NAME)
        eventually(lambda: "configuration not reloaded reason=" in router.log(50), 10, 0.1)
        assert rate() == 321
    finally:
        router.write_config(good)
        systemctl("reload", NAME)
    eventually(lambda: rate() == usual, 10, 0.1, "the rate is as before")
    assert router.daemon.pid() == was


def test_the_journal_has_every_line_with_its_priority(router):
    """`journalctl -p warning` shows all warnings and no other lines."""
    read = [
        "journalctl",
        "-q",
        "-o",
        "json",
        "--output-fields=MESSAGE,PRIORITY",
        "-u",
        NAME,
    ]
    letters = {"3": "E", "4": "W", "6": "I", "7": "D"}
    rows = [json.loads(line) for line in netns.command(read).splitlines()]
    own = [r for r in rows if re.match(r"\S+Z [EWID] ", r["MESSAGE"])]

    assert {"I", "W"} <= {r["MESSAGE"].split()[1] for r in own}
    assert [r for r in own if letters[r["PRIORITY"]] != r["MESSAGE"].split()[1]] == []


def test_systemd_calls_the_running_service_at_most_medium(router):
    """systemd-analyze rates the running service. Each setting that stays open has a comment in
    the unit."""
    said = netns.command(["systemd-analyze", "--no-pager", "security", NAME], check=False)

    assert re.search(r"exposure level for \S+: [0-9.]+ (OK|MEDIUM)", said), said
    found = netns.command(["systemd-analyze", "--no-pager", "--json=short", "security", NAME])
    assert unit.unaccounted(found) == []


@pytest.fixture
def port0(router):
    """Give the first port's device to the kernel's own driver, as after a boot. Give it back to
    vfio-pci and start the service at the end."""
    router.stop()
    address = links.pci(0)
    device = f"/sys/bus/pci/devices/{address}"
    netns.command(["modprobe", "e1000e"])
    write(device + "/driver_override", "\n")
    write(device + "/driver/unbind", address)
    write("/sys/bus/pci/drivers_probe", address)
    netns.command(["udevadm", "settle"])  # udev gives another name
    (interface,) = eventually(lambda: os.listdir(device + "/net"), 10, 0.05)
    try:
        yield device, interface
    finally:
        router.stop()
        links.give_to_vfio(address)
        router.start()


def test_the_start_takes_the_nic_and_the_hugepages_that_the_file_names(router, port0):
    """ExecStartPre binds the NIC and reserves hugepages, so the machine needs no preparation by
    hand."""
    device, _ = port0
    write("/proc/sys/vm/nr_hugepages", "0")

    systemctl("start", NAME)

    assert os.path.realpath(device + "/driver").endswith("/vfio-pci")
    with open("/proc/sys/vm/nr_hugepages", encoding="ascii") as file:
        assert int(file.read()) >= 48, "48 pages of 2 MiB are 96 MiB"
    router.ready()
    routes(router)
    forwards(router)


def test_a_nic_that_the_machine_uses_is_left_alone(router, port0):
    """The NIC has an address, so a user may be connected by it. The start fails and gives the
    reason."""
    device, interface = port0
    netns.ip_batch([f"addr add 192.0.2.77/24 dev {interface}"])

    systemctl("start", NAME, check=False)

    assert os.path.exists(f"{device}/net/{interface}")
    assert f"driver=e1000e: {interface} has an address" in router.log(400)
    assert state("ActiveState") != "active"


def test_a_nic_in_another_namespace_is_left_alone(router, port0):
    """The program cannot see the addresses of a NIC in another namespace. Therefore the start fails
    and gives the reason."""
    device, interface = port0
    netns.command(["ip", "netns", "add", "elsewhere"])
    try:
        netns.command(["ip", "link", "set", interface, "netns", "elsewhere"])

        systemctl("start", NAME, check=False)

        netns.command(["ip", "-n", "elsewhere", "link", "show", interface])
        assert os.path.realpath(device + "/driver").endswith("/e1000e")
        assert "its interface is in another network namespace" in router.log(400)
        assert state("ActiveState") != "active"
    finally:
        netns.delete("elsewhere")


def test_a_device_that_is_no_nic_is_left_alone(router, tmp_path):
    """A wrong address in the file may be the address of a disk. The daemon does not touch the device."""
    disk = "0000:00:1f.2"  # SATA in QEMU's q35
    with open(CONFIG, encoding="utf-8") as file:
        text = file.read().replace(links.pci(0), disk)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text, encoding="utf-8")

    done = subprocess.run(
        [NAME, "--prepare", "-c", wrong],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert re.search(rf"device not bound address={disk} .*it is not a NIC", done.stderr)
    with open(f"/sys/bus/pci/devices/{disk}/driver_override", encoding="ascii") as file:
        assert "vfio" not in file.read()


def test_a_stop_is_clean_and_closes_all(router):
    """A stop ends with exit code 0. systemd keeps no descriptor, and the TAPs lose carrier, so
    neighbors know at once."""
    assert router.stop() == 0

    assert state("ActiveState") == "inactive"
    assert state("Result") == "success"
    assert state("NFileDescriptorStore") == "0"
    assert all(
        "LOWER_UP" not in router.link_row(w.tap)["flags"] for w in router.wires.values()
    )


def test_a_wrong_configuration_is_not_tried_again(router):
    with open(CONFIG, encoding="utf-8") as file:
        good = file.read()
    router.stop()
    restarts = state("NRestarts")
    router.write_config(good + "nonsense: 1\n")
    try:
        systemctl("start", NAME, check=False)
        eventually(lambda: state("ActiveState") == "failed", 10)
        assert state("ExecMainStatus") == "2"
        assert state("NRestarts") == restarts
        assert "nonsense" in router.log()
    finally:
        router.write_config(good)
