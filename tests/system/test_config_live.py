# SPDX-License-Identifier: BSD-3-Clause
"""fpmctl checks a configuration without a daemon and shows the running one. A reload changes it
while packets pass: all of a change, or nothing."""

import json
import os
import signal
import subprocess

import pytest
import yaml

from lib import api, netns
from lib.wait import PATIENCE, eventually


@pytest.fixture
def router(own_dut):
    """A running router for one test alone."""
    dut = own_dut()
    dut.start()
    return dut


def running(dut):
    """Return the running configuration, as `config show` prints it."""
    done = dut.fpmctl("config", "show")
    assert (done.returncode, done.stderr) == (0, "")
    return yaml.safe_load(done.stdout)


def test_config_check_tells_all_errors_with_line_and_column(dut, tmp_path):
    """`fpmctl config check` prints the same errors as the daemon's --check, without a daemon."""
    file = tmp_path / "bad.yaml"
    file.write_text("ports:\n  - tap: a\n    device: net_null\n    mtu: 1\nidle: never\nx: 1\n")

    done = dut.fpmctl("config", "check", str(file), socket_path="/nowhere")
    argv = [dut.daemon.program, "-c", str(file), "--check"]
    own = subprocess.run(argv, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)

    assert done.returncode == 2 and done.stdout == ""
    places = [line.split(": ")[0] for line in done.stderr.splitlines()[:-1]]
    assert places == [f"{file}:4:5", f"{file}:5:1", f"{file}:6:1"]
    assert done.stderr.splitlines()[:-1] == own.stderr.splitlines()[:-1]
    good = dut.fpmctl("config", "check", dut.config, socket_path="/nowhere")
    assert dut.dp and good.returncode == 2  # the interfaces of the file are in another namespace
    assert "no network interface 'p-lan' here" in good.stderr


def test_a_file_that_the_daemons_unit_hides_is_no_file_that_is_not_there(router, tmp_path):
    """PrivateTmp and ProtectHome hide a file from the daemon (here: a mount that only the daemon
    has), and the user of fpmctl sees the file. fpmctl says that the daemon cannot read it, also
    with --json. It does not say so of a file that the daemon reads."""
    file = tmp_path / "new.yaml"
    file.write_text(open(router.config, encoding="utf-8").read())
    hide = ["nsenter", "-m", "-t", str(router.daemon.pid()), "mount", "-t", "tmpfs", "none"]
    assert router.fpmctl("config", "reload", str(file)).returncode == 0
    netns.command([*hide, str(tmp_path)])
    before = running(router)

    for words in ([], ["--json"]):
        done = router.fpmctl(*words, "config", "reload", str(file))
        assert done.returncode == 2
        assert "No such file or directory" in (done.stdout if words else done.stderr)
        assert "you can read the file, but the daemon cannot" in done.stderr
    assert running(router) == before
    file.write_text("ports: 1\n")
    netns.command([*hide[:-4], "umount", str(tmp_path)])
    done = router.fpmctl("config", "reload", str(file))
    assert done.returncode == 2 and "you can read the file" not in done.stderr


@pytest.mark.smoke
def test_config_check_for_scripts(dut, tmp_path):
    """With --json, `config check` prints a row for each error, with its place, and no row for a
    good file."""
    schema = {"$ref": "#/components/schemas/FpmctlConfigCheck"}
    file = tmp_path / "some.yaml"

    def check():
        done = dut.fpmctl("--json", "config", "check", str(file), socket_path="/nowhere")
        assert done.stderr == ""
        rows = json.loads(done.stdout)
        api.validate(rows, schema)
        return done.returncode, [(row["line"], row["column"]) for row in rows]

    assert check() == (2, [(None, None)])
    file.write_text("ports:\n  - {tap: a, device: net_null, mtu: 1}\nx: 1\n")
    assert check() == (2, [(2, 32), (3, 1)])
    file.write_text("ports:\n  - {tap: a, device: net_null}\n")
    assert check() == (0, [])


def test_what_runs_starts_the_same_router(router):
    """The configuration that `config show` prints starts the same router, which shows the same text
    again. The configuration has a policer that was changed at run time."""
    words = ["set", "policer", "dhcp", "rate", "unlimited", "source-burst", "7"]
    assert router.fpmctl(*words).returncode == 0
    first = router.fpmctl("config", "show").stdout
    assert running(router)["policers"]["dhcp"] == {
        "rate": "unlimited", "burst": 500, "source-rate": 500, "source-burst": 7,
    }  # fmt: skip

    router.stop()
    router.write_config(first)
    router.start()

    assert router.fpmctl("config", "show").stdout == first
    row = next(r for r in router.control.ask("punt") if r["class"] == "dhcp")
    assert (row["rate"], row["source_burst"]) == (None, 7)


def test_reload_applies_what_needs_no_restart(router):
    """`config reload` shows the changes of policers, timers, limits, log level and feedback, and
    then applies them."""

    new = "policers:\n  icmp: {rate: 77}\nfpm:\n  feedback: true\n  queue-limit-mib: 64\n"
    router.edit_config("fpm:\n", new)
    router.edit_config("sweep-quiet-s: 1", "sweep-quiet-s: 3")
    more = "log-level: debug\ncheckpoint-max-age-s: 5\nroutes: {through-kernel: false}"
    router.edit_config("log-level: info", more)
    dry = router.fpmctl("config", "reload", "--dry-run")
    assert dry.returncode == 0 and "log-level: info -> debug" in dry.stdout
    assert running(router)["log-level"] == "info"

    done = router.fpmctl("config", "reload")

    assert (done.returncode, done.stderr) == (0, "")
    want = {
        "policers.icmp.rate: 2000 -> 77", "fpm.sweep-quiet-s: 1 -> 3",
        "fpm.feedback: false -> true", "fpm.queue-limit-mib: 512 -> 64",
        "log-level: info -> debug", "checkpoint-max-age-s: 60 -> 5",
        "routes.through-kernel: true -> false",
    }  # fmt: skip
    lines = {line.strip().partition("  (")[0] for line in done.stdout.splitlines()}
    assert lines == want | {"applied"}
    now = running(router)
    assert now["fpm"]["sweep-quiet-s"] == 3 and now["policers"]["icmp"]["rate"] == 77
    row = next(r for r in router.control.ask("punt") if r["class"] == "icmp")
    assert row["rate"] == 77
    want = {"sweep_quiet_s": 3, "feedback_enabled": 1, "queue_limit_bytes": 64 << 20}
    eventually(lambda: want.items() <= router.fpm().items(), 3, 0.01, "rib and fpm have it")
    again = router.fpmctl("config", "reload")
    assert (again.returncode, again.stdout) == (0, "no difference from the running configuration\n")


def test_reload_is_refused_as_a_whole(router):
    """A reload with one key that needs a restart changes nothing. It prints each reason."""
    before = router.fpmctl("config", "show").stdout

    router.edit_config("log-level: info", "log-level: debug\nidle: poll")
    router.edit_config("size-mib: 96", "size-mib: 128")
    done = router.fpmctl("config", "reload")

    assert done.returncode == 2
    assert done.stdout.startswith("requested:\n") and "applied" not in done.stdout
    assert done.stderr.startswith("fpmctl: refused, nothing changed: 2 of the changes")
    assert "! idle: adaptive -> poll  (needs a restart of the daemon)" in done.stdout
    assert "! memory.size-mib: 96 -> 128  (needs a restart" in done.stdout
    assert router.fpmctl("config", "show").stdout == before
    rows = json.loads(router.fpmctl("--json", "config", "reload").stdout)
    assert {r["key"]: r["possible"] for r in rows} == {
        "idle": False, "memory.size-mib": False, "log-level": True,
    }  # fmt: skip


def in_force(dut):
    """Return the values that the working threads use: policers, the FPM's timers and limits,
    TAPs."""
    policers = {r["class"]: [r[k] for k in r if "rate" in k or "burst" in k]
                for r in dut.control.ask("punt")}  # fmt: skip
    fpm = {k: v for k, v in dut.fpm().items() if k.startswith(("sweep_", "feedback_e", "queue_l"))}
    ports = {r["name"]: (r["device"], r["cpus"], dut.link_row(r["name"])["mtu"])
             for r in dut.control.ask("ports")}  # fmt: skip
    return policers, fpm, ports


@pytest.mark.parametrize("old, new", [
    ("tap: ext0", "tap: ext9"),
    ("tap: ext0\n    device: net_af_packet,iface=p-ext", "tap: ext0\n    device: net_af_packet,iface=p-lan"),
], ids=["another name", "a swap"])  # fmt: skip
def test_a_reload_names_the_port_that_still_has_the_device(router, old, new):
    """A port is added before another one is removed. If it needs the interface of the other one, the
    reload is refused, and the reason says that a port of this daemon has the interface, not another
    daemon."""
    if "p-lan" in new:
        router.edit_config("iface=p-lan", "iface=p-ext")
    router.edit_config(old, new)

    done = router.fpmctl("config", "reload")

    assert done.returncode == 2
    assert "is the device of a port that runs; remove that port first" in done.stderr
    assert "another fpm-dataplane" not in done.stderr
    assert {row["name"] for row in router.control.ask("ports")} == {"lan0", "wan0", "alt0", "ext0"}


def test_a_reload_that_fails_in_its_last_part_leaves_policers_and_all_else(router):
    """A reload fails at a device that does not open, after it changed other ports. The daemon uses
    none of the file's policers, timers, limits and log level. A reload without the device applies
    them."""
    before, shown = in_force(router), router.fpmctl("config", "show").stdout
    assert before[0]["icmp"][0] == 2000 and before[1] and before[2].keys() >= {"wan0"}
    new = "policers:\n  icmp: {rate: 77, source-burst: 5}\n  dhcp: {rate: unlimited}\n"
    new += "fpm:\n  feedback: true\n  queue-limit-mib: 64\n"
    bad = "  - tap: new0\n    device: net_pcap,rx_pcap=/nowhere.pcap\n"
    router.edit_config("iface=p-wan\n", "iface=p-wan\n    mtu: 1400\n")
    router.edit_config("control-netns:", bad + "control-netns:")
    router.edit_config("fpm:\n", new)
    router.edit_config("sweep-quiet-s: 1", "sweep-quiet-s: 3")
    router.edit_config("log-level: info", "log-level: debug")

    refused = router.fpmctl("config", "reload")

    assert (refused.returncode, "applied" in refused.stdout) == (2, False)
    assert "policers.icmp.rate: 2000 -> 77" in refused.stdout
    assert "refused, nothing changed: port new0 device net_pcap" in refused.stderr
    assert (in_force(router), router.fpmctl("config", "show").stdout) == (before, shown)
    router.edit_config(bad, "")
    assert router.fpmctl("config", "reload").returncode == 0
    after = in_force(router)
    assert after[0]["icmp"][0] == 77 and after[2]["wan0"][2] == 1400


def test_a_refused_reload_deletes_no_tap_that_was_there_before(router):
    """A refused reload keeps a TAP that existed before, with the operator's addresses. It deletes
    the TAP that it made for another new port. The next reload uses the kept TAP for its port."""
    new = "  - tap: old0\n    device: net_null61,no-rx=1\n"
    new += "  - tap: made0\n    device: net_null62,no-rx=1\n"
    bad = "  - tap: new0\n    device: net_pcap,rx_pcap=/nowhere.pcap\n"
    router.ip("tuntap add dev old0 mode tap", "addr add 203.0.113.1/24 dev old0")
    before = router.link_row("old0")["ifindex"]
    router.edit_config("control-netns:", new + bad + "control-netns:")

    refused = router.fpmctl("config", "reload")

    assert "refused, nothing changed: port new0 device net_pcap" in refused.stderr
    assert router.link_row("old0")["ifindex"] == before
    assert "203.0.113.1/24" in netns.command(["ip", "-n", router.ctl, "addr", "show", "old0"])
    assert "made0" not in {link["ifname"] for link in router.links()}
    router.edit_config(bad, "")
    assert router.fpmctl("config", "reload").returncode == 0
    assert router.link_row("old0")["ifindex"] == before
    assert router.fpmctl("port", "del", "old0").returncode == 0
    assert "old0" not in {link["ifname"] for link in router.links()}


def test_reload_of_a_bad_file_tells_all_that_is_wrong(router, tmp_path):
    """A reload of a bad file prints all errors with line and column on stderr. Exit code 2; it
    changes nothing."""
    before = router.fpmctl("config", "show").stdout
    file = tmp_path / "bad.yaml"
    file.write_text("ports: []\nlog-level: loud\n", encoding="utf-8")

    done = router.fpmctl("config", "reload", str(file))

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{file}:1:1: ports:" in done.stderr and f"{file}:2:1: log-level:" in done.stderr
    assert f"refused, nothing changed: 2 errors in {file}" in done.stderr
    assert router.fpmctl("config", "show").stdout == before
    assert router.fpmctl("config", "reload", "/nowhere.yaml").returncode == 2


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_reload_of_what_may_never_end_is_refused_at_once(router, tmp_path, kind):
    """A reload refuses a pipe or a terminal at once. To wait for a writer would block the thread
    until the watchdog aborts the daemon."""
    file = tmp_path / "config.yaml"
    if kind == "pipe":
        os.mkfifo(file)
    else:
        master, slave = os.openpty()
        file.symlink_to(os.ttyname(slave))
    try:
        done = router.fpmctl("config", "reload", str(file))
    finally:
        if kind == "terminal":
            os.close(master)
            os.close(slave)

    assert (done.returncode, done.stdout) == (2, "")
    assert "is no regular file" in done.stderr and "nothing changed" in done.stderr
    assert running(router)


def test_sighup_is_a_reload(router):
    """SIGHUP reloads the configuration, as systemd's `reload` sends it. The log has the reason of a
    refusal."""
    router.edit_config("log-level: info", "log-level: warn")
    os.kill(router.daemon.pid(), signal.SIGHUP)
    eventually(lambda: running(router)["log-level"] == "warn", 5)

    router.edit_config("log-level: warn", "log-level: info\nidle: poll")
    os.kill(router.daemon.pid(), signal.SIGHUP)
    eventually(lambda: 'key=idle reason="needs a restart' in router.log(), 5)
    assert running(router)["log-level"] == "warn"


@pytest.mark.parametrize(
    "words", ["", "frob", "check", "check a b", "show me", "reload a b", "show --dry-run"]
)
def test_wrong_words_are_2(dut, words):
    """Wrong words give a sentence, the usage and exit code 2."""
    done = dut.fpmctl("config", *words.split())

    assert done.returncode == 2 and done.stdout == "" and "usage:" in done.stderr


@pytest.mark.parametrize(
    "value", ["show", {}, {"do": "frob"}, {"do": "show", "file": "/x"},
              {"do": "reload", "file": "x"}, {"do": "reload", "more": 1}, {"do": 1}]
)  # fmt: skip
def test_a_wrong_request_is_refused(dut, value):
    """The daemon answers a wrong request on the socket with a sentence."""
    with pytest.raises(LookupError):
        dut.control.request({"config": value})
    assert dut.control.request({"config": {"do": "show"}})
