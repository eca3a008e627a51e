# SPDX-License-Identifier: BSD-3-Clause
"""The help and the bash completion have all commands and options of fpmctl."""

import json
import os
import pty
import re
import select
import socket
import subprocess
import threading

import pytest

from lib.dataplane import ROOT


def dist(name):
    """Return a file that is installed with the program."""
    with open(os.path.join(ROOT, "fpm-dataplane", "dist", name), encoding="utf-8") as file:
        return file.read()


def all_help(dut):
    """Return the text of `fpmctl help`, and of `fpmctl help` for each command: {name: text}."""
    said = {"": dut.fpmctl("help").stdout}
    for name in re.findall(r"^  ([a-z]+)\b", said[""], re.MULTILINE):
        said[name] = dut.fpmctl("help", name).stdout
    return said


def options_of(text):
    """Return the options that a text names."""
    return set(re.findall(r"(?<![\w-])--?[a-z46][a-z-]*", text)) - {"-N", "-t", "-n"}


def test_help_fits_80_columns(dut):
    """The help fits 80 columns, and so does the usage of a command after a wrong use."""
    said = [*all_help(dut).values()]
    said += [dut.fpmctl(*words.split()).stderr for words in ("config", "port", "device x", "show")]
    assert all(said)
    assert [line for text in said for line in text.splitlines() if len(line) > 80] == []


COMPLETED = {
    "": "show explain trace capture config port device set audit doctor replay hold restart hook snmp help",
    "he": "help", "ho": "hold hook", "hook ": "load unload", "hook unload ": "dev", "hook unload dev la": "lan0", "hook load x.o ": "dev", "help dep": "", "help doc": "doctor", "show r": "routes rules",
    "show i": "interfaces", "show ports la": "lan0", "config ": "keys check show reload",
    "port ": "add set del", "port del wa": "wan0", "port set e": "ext0", "port add e": "",
    "port set ext0 ": "device mtu queues cores", "port set ext0 mtu ": "", "-j trace port la": "lan0",
    "trace dr": "dropped", "explain tt": "ttl", "doctor hu": "hugepages",
    "set ": "policer", "set policer bg": "bgp bgp-new", "set policer bgp sou":
    "source-rate source-burst", "audit --re": "--repair", "device ": "list bind unbind", "device list ": "", "--soc": "--socket",
    "-s /nowhere port del ": "", "show drops tt": "ttl", "show counters al": "all",
    "show fib ": "ipv4 ipv6", "show punt bg": "bgp bgp-new", "show threads fdp-r": "fdp-rib fdp-rtnl",
    "show interfaces l": "lo lan0", "show routes v": "via vrf", "show routes 10.0.0.0/8 l": "longest",
    "show routes vrf ": "", "show version ": "", "trace reason no_r": "no_route",
    "capture reason forw": "forwarding_off", "explain proto ig": "igmp", "trace src ": "",
    "show ports --js": "--json", "show groups ": "via dev state", "show routes p": "proto",
    "show routes dev wa": "wan0", "show log level e": "error", "show neighbors state re": "reachable",
    "show routes state un": "unreachable unresolved unsupported", "show routes proto ri": "rip ripng",
}  # fmt: skip


@pytest.mark.parametrize("line", COMPLETED)
def test_what_bash_completes(dut, line):
    """bash completes commands, their words and the names of ports that fpmctl knows, and nothing
    else."""
    words = ["fpmctl", *line.split(" ")]
    script = (
        'PATH=$1:$PATH; . "$2"; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_fpmctl; echo "${COMPREPLY[@]}"'
    )
    path = os.path.join(ROOT, "fpm-dataplane", "dist", "fpmctl.bash")

    done = subprocess.run(
        ["bash", "-c", script, "-", os.path.dirname(dut.daemon.ctl), path, *words],
        capture_output=True, text=True, check=False,
        env={**os.environ, "FPMCTL_SOCKET": dut.socket},
    )  # fmt: skip

    assert (sorted(done.stdout.split()), done.stderr) == (sorted(COMPLETED[line].split()), "")


@pytest.mark.parametrize("words", ["config check", "config reload", "-s", "capture -w"])
def test_files_complete_as_bash_completes_files(dut, tmp_path, words):
    """Completion of files works as in bash: a folder gets its slash and no blank, and a name with a
    blank stays one word."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a name.yaml").write_text("")
    rc = tmp_path / "rc"
    path = os.path.join(ROOT, "fpm-dataplane", "dist", "fpmctl.bash")
    rc.write_text(f"PS1=; . {path}; fpmctl() {{ printf '<%s>' \"$@\"; echo; echo END; }}\n"
                  "bind 'set enable-bracketed-paste off'\necho READY\n")  # fmt: skip
    ours, theirs = pty.openpty()
    argv = ["bash", "--norc", "--rcfile", str(rc), "-i"]
    with subprocess.Popen(argv[:1] + argv[2:], stdin=theirs, stdout=theirs, stderr=theirs,
                          cwd=tmp_path, env={**os.environ, "TERM": "dumb"},
                          preexec_fn=lambda: os.login_tty(os.dup(0))) as shell:  # fmt: skip
        os.close(theirs)
        said = ""
        try:
            for typed, awaited in (("", "READY"), (f"fpmctl {words} fol\ta\t\n", "END\r")):
                os.write(ours, typed.encode())
                while awaited not in said:
                    assert select.select([ours], [], [], 10)[0], said
                    said += os.read(ours, 4096).decode()
        finally:
            shell.kill()
            os.close(ours)

    assert said.count("<") and f"<{words.split()[-1]}><folder/a name.yaml>" in said, said


OPTIONS = {
    "trace --count -1": "unknown option --count", "trace count -1": "below 0", "trace for -2.5": "below 0",
    "show ports -x": "unknown option -x", "show ports --json=1": "--json takes no value",
    "show ports -s": "-s needs a value", "trace count 0.5": "whole number from 1 to", "show ports --watch=x": "--watch 'x' is not a number of seconds from 0.1 to",
    "trace count 1.5": "whole number from 1 to", "capture for 0": "a number of seconds above 0",
}  # fmt: skip


@pytest.mark.parametrize("line", OPTIONS)
def test_a_wrong_option_or_number_is_one_sentence(dut, line):
    """A wrong option or number gives one line with the error, and exit code 2."""
    done = dut.fpmctl(*line.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert OPTIONS[line] in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


JSON = {
    "show version": list, "show routes": list, "explain dst 192.0.2.66": list, "trace for 0.1": list,
    "config keys": list, "config show": list, "config reload --dry-run": list, "device list": list,
    "doctor list": list, "doctor clock": list, "help": None,
    "capture -w /dev/null for 0.1": None,
}  # fmt: skip


@pytest.mark.parametrize("line", JSON)
def test_json_is_what_the_manual_page_says(dut, line):
    """--json prints one array, and an object only for audit (test_audit). A command without JSON
    refuses it."""
    done = dut.fpmctl("--json", *line.split())

    if JSON[line] is None:
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("fpmctl: --json is for ")
    else:
        assert isinstance(json.loads(done.stdout), JSON[line])


def test_completion_knows_all_commands_and_options(dut):
    """Completion has the commands and the options of the help."""
    said = all_help(dut)
    assert dut.fpmctl("--complete").stdout.split() == [name for name in said if name]
    long = {o for o in set().union(*map(options_of, said.values())) if o.startswith("--")}
    assert long - options_of(dist("fpmctl.bash")) == set()


# Keys of the rows of several commands. Their members are arrays in a daemon of this version.
ARRAYS = "addresses nexthops tables stages segments steps queues cores rates labels walk rules"


@pytest.fixture
def foreign(tmp_path):
    """Listen on a socket, as a daemon of another version whose arrays have members of other types.
    Yield the path of the socket, and a list of the requests. The rows describe a port of no MAC address, too."""
    row = {key: [1, None, "x", {}, [], True] for key in ARRAYS.split()}
    row["addresses"] += ["192.0.2.9/31"]
    row |= {"name": "lan0", "ifindex": 7, "addresses4": "192.0.2.9"}
    requests = []
    answer = "\n".join(json.dumps(x) for x in (row, {"end": True, "rows": 1}, "")).encode()

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                requests.append(client.recv(4096).decode())
                client.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        server = threading.Thread(target=serve)
        server.start()
        yield str(tmp_path / "socket"), requests
        listener.shutdown(socket.SHUT_RDWR)
        server.join()


@pytest.mark.parametrize(
    "words", ["interfaces", "routes", "ports", "memory", "fpm", "rules", "neighbors", "labels", "bfd"]
)
def test_rows_of_another_version_do_not_kill_fpmctl(dut, foreign, words):
    """fpmctl leaves out members of other types, and ends with an exit code."""
    done = dut.fpmctl("show", words, socket_path=foreign[0])
    assert 0 <= done.returncode <= 3, done


def test_explain_chooses_a_source_from_rows_of_another_version(dut, foreign):
    """`fpmctl explain` skips addresses of other types, and finds the length of the port's own subnet
    behind them: the source is the other address of its /31."""
    path, requests = foreign
    done = dut.fpmctl("explain", "port", "lan0", "dst", "203.0.113.2", socket_path=path)
    assert 0 <= done.returncode <= 3, done
    assert "c0000208cb007102" in requests[-1]  # 192.0.2.8 to 203.0.113.2
