# SPDX-License-Identifier: BSD-3-Clause
"""The state of fpm-flowspec as `show flowspec`, the API, the metrics page and `doctor flowspec` tell it.
The test writes the summary of fpm-flowspec. test_flowspec has the real program."""

import json
import os
import time

import pytest

from lib import api
from router import Router
from test_doctor import doctor
from test_metrics import PAGE, get

ONE = {"nft_error": None, "frr_error": None, "validate": True, "sessions": 1, "sessions_up": 1,
       "installed": 2, "refused": 0, "waiting": 0}  # fmt: skip
# Summary, seconds since it was written; state, verdicts of the doctor with a word of each.
CASES = {
    "runs": (ONE, 0, "running", {"ok": "2 flows installed"}),
    "is gone": (None, 0, "absent", {"fail": "does not run"}),
    "hangs": (ONE, 60, "silent", {"fail": "no report for 6"}),
    "no session": (ONE | {"sessions_up": 0}, 0, "down", {"fail": "no session"}),
    "nft error": (ONE | {"nft_error": "no \x1b[1m"}, 0, "failing", {"fail": "nft: no "}),
    "refused": (ONE | {"refused": 3}, 0, "running", {"ok": "2 flows", "warn": "3 flow spec"}),
    "waiting": (ONE | {"waiting": 4}, 0, "running", {"ok": "2 flows", "warn": "too many"}),
    "FRR silent": (ONE | {"frr_error": "vtysh"}, 0, "running", {"ok": "2 flows", "warn": "vtysh"}),
    "no JSON": ("{", 0, "absent", {"fail": "does not run"}),
    "another type": ([1], 0, "absent", {"fail": "does not run"}),
    "too long": (ONE | {"nft_error": 20000 * "x"}, 0, "absent", {"fail": "does not run"}),
    "wrong types": ({"sessions_up": "x", "nft_error": 5}, 0, "silent", {"fail": "no report"}),
}  # fmt: skip


@pytest.fixture
def dut(own_dut):
    """A router whose filter has the table of fpm-flowspec."""
    dut = own_dut(Router, metrics=PAGE)
    dut.edit_config("fpm:\n", 'filter: {table: "inet flowspec", on-error: pass}\nfpm:\n')
    dut.daemon.within = ["env", f"FPM_FLOWSPEC_FOLDER={dut.dir}/flowspec"]
    os.makedirs(f"{dut.dir}/flowspec")
    dut.start()
    return dut


def test_each_state_is_told_by_all(dut):
    """Each state, and each kind of damaged summary, has a row, a gauge and a verdict."""
    path = f"{dut.dir}/flowspec/summary.json"
    for name, (summary, age_s, state, verdicts) in CASES.items():
        if summary is None:
            os.unlink(path)
        else:
            if isinstance(summary, dict) and "validate" in summary:
                summary = {"at_s": time.monotonic() - age_s, **summary}
            with open(path, "w", encoding="utf-8") as file:
                file.write(summary if isinstance(summary, str) else json.dumps(summary))

        rows = dut.control.ask("flowspec")
        api.validate(rows, api.rows_schema("GET", "/flowspec")[1]["schema"])
        assert rows[0]["state"] == state, name
        page = get(dut, PAGE, "/metrics")
        assert f"fpmdp_flowspec_up {int(state == 'running')}\n" in page, name
        if state == "running":
            assert f'fpmdp_flowspec_flows{{state="refused"}} {summary["refused"]}\n' in page
        code, found = doctor(dut, "flowspec")
        found = list(found.values())
        assert {row["status"] for row in found} == set(verdicts), (name, found)
        for row in found:
            assert verdicts[row["status"]] in row["text"], (name, row)
            assert "\x1b" not in row["text"]
        assert code == (3 if "fail" in verdicts else 0), name
        assert state in dut.fpmctl("show", "flowspec").stdout


def test_without_the_table_it_is_off(own_dut):
    """If filter.table does not name the table, there are no metrics and no warning."""
    dut = own_dut(Router, metrics=PAGE)
    dut.start()
    assert dut.control.ask("flowspec")[0]["state"] == "off"
    assert "flowspec" not in get(dut, PAGE, "/metrics")
    assert doctor(dut, "flowspec")[0] == 0
