# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages are made from the help texts and from the table of keys. They have every command,
option, word and key. The programs, the file VERSION and the changelog have the same version."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lib import api
from lib.dataplane import ROOT

BELOW = Path(ROOT, "fpm-dataplane")
sys.path.append(str(BELOW / "manual"))
import commands  # noqa: E402

PROGRAMS = Path(ROOT, "build", "release")
FPMCTL = str(PROGRAMS / "fpmctl")
NAMES = ("fpmctl.1", "fpm-dataplane.8", "fpm-supervise.8", "fpm-flowspec.8", "fpm-dataplane.yaml.5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder with the pages. docutils fails at its first warning."""
    where = tmp_path_factory.mktemp("man")
    script = str(BELOW / "manual" / "man.py")
    subprocess.run(["/usr/bin/python3", script, str(PROGRAMS), str(where), "0.9"], check=True)
    assert {path.name for path in where.iterdir()} == set(NAMES)
    return where


def text_of(folder, name):
    """Return the source of a page without the escapes of hyphens and apostrophes."""
    text = (folder / name).read_text(encoding="utf-8")
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "")


def entries(text):
    """Return the first words of headings and definitions of a page."""
    heads = re.findall(r"^(?:\.SS|\.B) (.+)$", text, re.M)
    return {word for head in heads for word in re.split(r"[][,=| ]+", head)}


def options_of(text):
    """Return the options that a help text names."""
    found = set(re.findall(r"(?<![\w-])--?[a-zM46][a-z-]*", text))
    return found - {"-N", "-M"}  # these options belong to vtysh and zebra


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_formatted_without_warnings(folder, name):
    """man, groff and mandoc format the page without a warning. mandoc may be absent."""
    page = str(folder / name)
    done = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    if shutil.which("man"):
        argv = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    if shutil.which("mandoc"):
        argv = ["mandoc", "-T", "lint", "-W", "warning", page]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_name_section_and_version(folder, name):
    """The head of a page has its name, section and version. `man -k` finds it by its section NAME."""
    text = text_of(folder, name)
    title, section = name.rsplit(".", 1)
    head = rf'^\.TH "{title.upper()}" "?{section}"? "\d{{4}}-\d\d-\d\d" "fpm-dataplane 0\.9"'

    assert re.search(head, text, re.M)
    assert re.search(rf"^\.SH NAME\n{title} - \w", text, re.M)
    assert "@" not in text, "a part was not filled in"


def test_every_command_and_option_has_an_entry(folder):
    """fpmctl(1) has a heading for each command, and an entry for each option, each word of a command
    and each table of `show`."""
    text = text_of(folder, "fpmctl.1")
    overview = commands.printed(FPMCTL, "help")
    names = commands.commands(overview)
    helps = [overview, *(commands.printed(FPMCTL, "help", name) for name in names)]
    heads = [line.split()[1] for line in text.splitlines() if line.startswith(".SS ")]

    assert len(names) > 10 and heads == names
    assert set().union(*map(options_of, helps)) - entries(text) == set()
    for name in ("show", "explain", "trace", "capture", "doctor"):
        words = set(commands.printed(FPMCTL, "--complete", name).split()) - {"list", "-", "all"}
        assert len(words) > 10 and words - entries(text) == set(), name
    assert {"0", "1", "2", "3", "NO_COLOR", "FPMCTL_SOCKET"} - entries(text) == set()


def test_every_line_of_the_help_is_on_the_page(folder):
    """fpmctl(1) has each line of the help texts."""

    def flat(said):
        return re.sub(r"\s+", "", re.sub(r"\\f.|[`\\]", "", said)).lower()

    text = flat(text_of(folder, "fpmctl.1").replace("\n.sp\n", "\n").replace("\n.TP\n", "\n"))
    for name in commands.commands(commands.printed(FPMCTL, "help")):
        for line in commands.printed(FPMCTL, "help", name).splitlines()[1:]:
            for part in re.split(r" {2,}", line.strip()):
                assert flat(part) in text, part


@pytest.mark.parametrize("name", ["fpm-dataplane", "fpm-supervise"])
def test_every_option_of_a_daemon_has_an_entry(folder, name):
    """The page has an entry for each option."""
    said = commands.printed(str(PROGRAMS / name), "--help")

    assert len(options_of(said)) > 3
    assert options_of(said) - entries(text_of(folder, f"{name}.8")) - {"-c"} == set()


def test_every_key_has_an_entry(folder):
    """fpm-dataplane.yaml(5) has each key with its default."""
    text = text_of(folder, "fpm-dataplane.yaml.5")
    rows = subprocess.run([FPMCTL, "-j", "config", "keys"], capture_output=True, check=True).stdout
    for row in json.loads(rows):
        key, default = row["key"], row["default"]
        if key.startswith("policers."):
            _, name, last = key.split(".")
            assert re.search(rf"^\.B policers\.{name}\n.*{last} {default}\b", text, re.M), key
            key = f"policers.CLASS.{last}"
        elif default is not None:
            body = text.split(f"\n.B {key}\n")[1].split("\n.TP\n")[0]
            assert f"Default: \\fB{default}\\fP." in body, key
        assert f"\n.B {key}\n" in text, key


def test_the_page_names_every_schema_of_fpmctl(folder):
    """fpmctl(1) names every schema of fpmctl that no path of the API has, and no other."""
    of = {name for name in api.SPEC["components"]["schemas"] if name.startswith("Fpmctl")}
    assert set(re.findall(r"Fpmctl\w+", text_of(folder, "fpmctl.1"))) == of


def test_version_of_programs_file_and_changelog_agree():
    """The newest version of the changelog is that of the file VERSION, and the programs print it,
    with their commit if it is not a release."""
    changes = (BELOW / "doc" / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d|not released)\)$", changes, re.M)
    numbers = [number for number, _ in found]
    number = Path(ROOT, "VERSION").read_text(encoding="utf-8").partition("-")[0]

    assert len(found) == len(re.findall("^## ", changes, re.M)), "a version has no date"
    assert numbers == [f"0.{n}" for n in range(len(numbers), 0, -1)] and numbers[0] == number
    assert "not released" not in [date for _, date in found[1:]]
    for name in ("fpm-dataplane", "fpmctl", "fpm-supervise"):
        said = commands.printed(str(PROGRAMS / name), "--version")
        assert re.match(rf"{name} {re.escape(number)}(-\w+(-dirty)?)?(, DPDK .*)?$", said), said
