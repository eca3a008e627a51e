# SPDX-License-Identifier: BSD-3-Clause
"""The table of keys, the example and the page of the manual agree. So do the reasons for drops,
their advice and their page, and the help texts and the page of commands."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from lib import api
from lib.dataplane import ROOT

MANUAL = Path(ROOT, "fpm-dataplane", "manual")
sys.path.append(str(MANUAL))
import commands  # noqa: E402
import configuration  # noqa: E402
import reasons  # noqa: E402

FPMCTL = str(Path(ROOT, "build", "release", "fpmctl"))


def test_the_reference_is_what_the_table_and_the_example_make():
    """The reference page equals the table and the example. If not, run `make reference`."""
    example = configuration.EXAMPLE.read_text(encoding="utf-8")

    made = configuration.page(configuration.keys(FPMCTL), example)

    assert (MANUAL / "configuration.md").read_text(encoding="utf-8") == made


def test_the_page_of_reasons_is_what_the_code_says():
    """The page has every reason of the code, with its advice. If not, run `make reference`."""
    assert (MANUAL / "reasons.md").read_text(encoding="utf-8") == reasons.page()


def test_the_page_of_commands_is_what_the_programs_print():
    """The page of commands equals the output of the programs. If not, run `make reference`."""
    page = (MANUAL / "commands.md").read_text(encoding="utf-8")

    assert page == commands.page(Path(FPMCTL).parent)
    for name in ("show", "explain", "doctor", "restart"):
        assert f"\n## fpmctl {name}\n" in page


def test_every_reason_that_runs_is_on_the_page(dut):
    """The page has every reason of the running daemon, with the daemon's names and words."""
    page = (MANUAL / "reasons.md").read_text(encoding="utf-8")
    for row in dut.control.ask("counters"):
        if row["kind"] != "total":
            assert f"| `{row['name']}` | {row['text']} |" in page


def flat(value, path=""):
    """Return the values of a file as {"fpm.listen": value}. A list of mappings counts as its first
    mapping."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return flat(value[0], path + "[]")
    if not isinstance(value, dict):
        return {path: value}
    found = {}
    for key, below in value.items():
        found |= flat(below, f"{path}.{key}" if path else key)
    return found


def test_the_example_has_every_key_with_its_default():
    """The example has every key with its default. A key without a default is a comment there, and a
    value that depends on the machine may differ."""
    text = configuration.EXAMPLE.read_text(encoding="utf-8")
    there = flat(yaml.safe_load(text))
    rows = {row["key"]: row for row in configuration.keys(FPMCTL)}

    # A section whose keys are all comments is null.
    empty = {key.rpartition(".")[0] for key in rows} & {k for k, v in there.items() if v is None}
    assert there.keys() - rows.keys() - empty == set()
    for key, row in rows.items():
        if row["default"] is None:
            assert key in there or f"# {key.rpartition('.')[2]}: " in text, key
        else:
            assert yaml.safe_load(row["default"]) == there[key], key


def test_scripts_get_what_the_specification_says():
    """The JSON of `fpmctl config keys` is as dist/openapi.yaml describes it."""
    schema = {"$ref": "#/components/schemas/FpmctlConfigKeys"}
    api.validate(configuration.keys(FPMCTL), schema)


def test_the_table_for_people_fits_80_columns():
    """The table fits 80 columns and has every key that --json has."""
    done = subprocess.run(
        [FPMCTL, "config", "keys"], capture_output=True, text=True, check=True
    )
    said = json.loads(
        subprocess.run(
            [FPMCTL, "-j", "config", "keys"], capture_output=True, check=True
        ).stdout
    )

    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert {row["key"] for row in said} == {x.split()[0] for x in lines[1::2]}
