# SPDX-License-Identifier: BSD-3-Clause
"""Run the commands of README and manual as they stand there, page by page, in the order of the page
(fpm-dataplane/doc/testing.md). fpmctl and the daemon accept the commands that a sentence names."""

import os
import re
import shlex
import subprocess
import time

import pytest

from lab.lab import Lab
from lab.readme import differs, in_lab
from lib import docs

PAGES = [p for p in docs.pages() if any(b.place == "lab" for b in docs.blocks(p))]


def parts():
    """Return the blocks of each page for a lab, cut behind the blocks that take the lab down."""
    for page in PAGES:
        part, number = [], 1
        for block in docs.blocks(page):
            part += [block] if block.place == "lab" else []
            if part and block is part[-1] and "lab-down" in block.text:
                yield pytest.param(part, id=f"{page.stem}-{number}")
                part, number = [], number + 1
        if part:
            yield pytest.param(part, id=f"{page.stem}-{number}")


# The tests' machine has these packages, and may have no route to Debian's servers.
INSTALL = "apt-get update && apt-get install -y make && "


class Reader:
    """Follow a page as a reader does, in a lab whose name differs from a lab that may be up."""

    def __init__(self):
        self.name = f"d{os.getpid()}"

    def do(self, block):
        """Run a block. Raises AssertionError when it does not do what the page says."""
        lab = Lab(self.name)
        for command, text in block.commands:
            where = f"{block.page.relative_to(docs.ROOT)}:{block.line}: {command}"
            if block.language == "console":
                seen = differs(lab, command, text)
                assert seen is None, f"{where}\n{seen}"
                continue
            done = subprocess.run(
                ["bash", "-e", "-c", in_lab(lab, command.replace(INSTALL, ""))],
                cwd=docs.ROOT, env=self.environment(lab), text=True, check=False, timeout=120,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert done.returncode in block.codes, f"{where}\n{done.stdout}"

    def environment(self, lab):
        """Return the environment of a reader, without the variables that `make system` got."""
        kept = {k: v for k, v in os.environ.items() if not re.match("MAKE|BUILD$", k)}
        path = f"{docs.ROOT}/build/release:{kept['PATH']}"
        return {**kept, "LAB": self.name, "FPMCTL_SOCKET": lab.socket, "PATH": path,
                "ROUTES": "2000"}  # fmt: skip

    def leave(self):
        """Take down the lab if it is still up."""
        Lab(self.name).down()


@pytest.mark.parametrize("part", parts())
def test_a_reader_who_does_what_the_page_says_sees_what_it_says(part):
    """Every block for a lab gives its exit code, and the output that the page shows. The test
    prints the time of each block and does not judge it, because the time depends on the machine."""
    reader = Reader()
    try:
        for block in part:
            at = time.monotonic()
            reader.do(block)
            print(f"{block.page.name}:{block.line}: {time.monotonic() - at:.1f} s")
    finally:
        reader.leave()


# Commands in a sentence: `fpmctl show ports`, `show ports`, `doctor rss`. `show ip route` and
# similar commands belong to FRR. Words in capitals stand for values of the reader.
NAMED = re.compile(r"`((?:fpmctl |fpm-dataplane |fpm-supervise |show |doctor |audit )[^`\n]+)`")
OF_FRR = re.compile(r"show (ip|ipv6|bgp|vrrp|zebra|running-config)\b")
STANDS_FOR = {"FILE": "/dev/null", "NAME": "wan0", "X": "ports", "N": "1500", "CHECK ...": "rss",
              "PREFIX": "192.0.2.0/24", "ADDRESS": "192.0.2.1", "...": ""}  # fmt: skip
WRONG = re.compile(
    r"unexpected word|unknown option|unrecognized option|no check '|fpmctl: -.* (is|are) for |is none of"
)


def named(page):
    """Return the commands that a page names in its sentences."""
    text = "\n".join(line for _, line in docs.outside_fences(page))
    for command in NAMED.findall(text):
        if OF_FRR.match(command):
            continue
        for word, value in STANDS_FOR.items():
            command = re.sub(rf"(?<![\w-]){re.escape(word)}(?!\w)", value, command)
        head, bar, tail = command.rpartition("|")  # `fpmctl port add|del`
        yield from [head, f"{head.rpartition(' ')[0]} {tail}"] if bar else [command]


def test_no_block_writes_down_what_frr_has_not_read_yet():
    """watchfrr is ready, and `systemctl restart frr` returns, when the daemons listen. `vtysh -b`
    reads frr.conf after that. A `write memory` in between truncates the file while vtysh reads it,
    so no block contains both."""
    found = [block for page in docs.pages() for block in docs.blocks(page)
             if re.search(r"restart frr\b.*\bwrite\b", block.text, re.S)]  # fmt: skip
    assert found == []


def refused(command):
    """Return the error about a command's words, or None. No daemon runs that could be changed:
    fpmctl checks its words before it connects, and the daemon gets an option that starts
    nothing."""
    argv = shlex.split(command)
    if argv[0] == "fpm-supervise":  # `fpm-supervise fpm-dataplane -c FILE`
        argv = argv[1:]
    if argv[0] == "fpm-dataplane":
        argv[1:1] = ["--version" if "--prepare" in argv else "--check"]
    elif argv[0] != "fpmctl":
        argv[0:0] = ["fpmctl"]
    environment = {**os.environ, "FPMCTL_SOCKET": "/nonexistent/control.sock",
                   "PATH": f"{docs.ROOT}/build/release:{os.environ['PATH']}"}  # fmt: skip
    done = subprocess.run(
        argv, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stderr if WRONG.search(done.stderr) else None


def test_what_sentences_name_is_a_command():
    """fpmctl and the daemon accept each command in the sentences of the pages, the commented
    example, the alerts and the dashboard."""
    beside = ("fpm-dataplane/dist/fpm-dataplane.yaml", "docker/prometheus/alerts.yml", "docker/prometheus/mesh.yml",
              "docker/grafana/dashboards/fpm-dataplane.json")  # fmt: skip
    pages = [*docs.pages(), *(docs.ROOT / name for name in beside)]
    found = {command: page for page in pages for command in named(page)}

    assert len(found) > 40
    for command, page in found.items():
        said = refused(command)
        assert said is None, f"{page.relative_to(docs.ROOT)}: `{command}`: {said}"


@pytest.mark.parametrize(
    "command", ["show prots", "doctor rrs", "fpmctl replay --dry-run", "fpm-dataplane --chek"]
)
def test_what_is_no_command_is_found(command):
    """refused() finds wrong commands. Otherwise test_what_sentences_name_is_a_command would find
    nothing."""
    assert refused(command)


def test_all_pages_have_commands_that_are_run():
    """The harness finds commands in every page, README and troubleshooting included. Each block
    belongs to one part, and the first block of a part makes the lab."""
    of_lab = [b for page in PAGES for b in docs.blocks(page) if b.place == "lab"]
    assert sum((p.values[0] for p in parts()), []) == of_lab
    assert all(re.search("make (demo|lab )", p.values[0][0].text) for p in parts())
    assert {"README", "troubleshooting", "behavior"} <= {page.stem for page in PAGES}


def test_the_installation_of_readme_is_that_of_the_manual():
    """install.md contains the files and commands of README. test_manual runs the commands of
    install.md."""
    readme = docs.blocks(docs.ROOT / "README.md")
    manual = (docs.ROOT / "fpm-dataplane/manual/install.md").read_text(encoding="utf-8")
    (config,) = [b.text for b in readme if b.language == "yaml"]
    (commands,) = [b.text for b in readme if "systemctl enable" in b.text]
    (frr,) = [b.text for b in readme if b.text.startswith("fpm address")]
    parts = [p.strip() for p in re.split(r"&&|\n", re.sub(r" +#.*", "", commands)) if p.strip()]

    assert config in manual
    assert all(line in manual for line in frr.splitlines())
    assert len(commands.splitlines()) == 6
    for part in parts:
        if part.startswith("sysctl -w "):
            settings, _, path = part.partition(" | tee ")
            part = [setting.replace("=", " = ") for setting in settings.split()[2:]] + [path]
        elif part.startswith(("make deb", "apt-get install")):
            part = [word.rpartition("/")[2] for word in part.split()]
        assert all(word in manual for word in ([part] if isinstance(part, str) else part)), part


def recipe(target):
    """Return the lines of a target's recipe; "" if the target does not exist."""
    text = docs.makefiles()
    found = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", text, re.M)
    return found[1] if found else ""


def read_by(target):
    """Return the text that defines the options of a target's program: the program and the modules
    beside it."""
    bench = docs.ROOT / "tests/bench"
    (script,) = re.findall(r"tests/bench/(bench_\w+\.py)", recipe(target))
    text = (bench / script).read_text(encoding="utf-8")
    for package in re.findall(r"^(?:from|import) (\w+)", text, re.M):
        for path in [bench / f"{package}.py", *(bench / package).glob("*.py")]:
            text += path.read_text(encoding="utf-8") if path.is_file() else ""
    return text


def test_commands_of_benchmarks_name_what_there_is():
    """Only `make test-bench` runs the commands of benchmarks. Each one names a target, and each of
    its options is an option that the program of the target reads."""
    seen = 0
    for block in docs.blocks(docs.ROOT / "tests/bench/README.md"):
        for target, words in re.findall(r"^make (?:-s )?([\w-]+)([^#\n]*)", block.text, re.M):
            assert recipe(target), f"no target {target}"
            if target in ("bench", "bench-report"):  # these two programs read no options
                continue
            for option in re.findall(r"\b([A-Z]\w*)=", words):
                seen += 1
                assert re.search(rf'"{option}"', read_by(target)), f"{target} {option}="
    assert seen > 15
