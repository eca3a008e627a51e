# SPDX-License-Identifier: BSD-3-Clause
"""fpm_flowspec loads the table again after a failure of nft, or after a change by another program."""

import json
import os
import subprocess
import sys

import pytest

from flowspec_fed import Fed, host
from lib.flowspec import FOLDER, PROGRAM
from lib.wait import eventually

sys.path.insert(0, FOLDER)

from fpm_flowspec import action, flow, origin, table, translate  # noqa: E402


@pytest.mark.parametrize("slow", [2.5, 9.0])
def test_nft_is_bounded(slow):
    """All calls of nft for one load end within the time of the load."""
    now = 0.0

    def nft(_text, *_options, limit_s):
        nonlocal now
        now += min(slow, limit_s)
        if slow >= limit_s:
            raise table.NftTimeout("nft takes too long")
        raise table.NftError("no")

    loaded = table.Table(nft, lambda: now)
    loaded.known, loaded.until = {4: {}, 6: {}}, 4.0
    one = flow.parse(4, host(1))
    with pytest.raises(table.NftTimeout):
        loaded.load({4: {one.nlri: translate.rules(one, action.Actions(bytes_s=0))}, 6: {}})
    assert now == 4.0 and loaded.known is None


@pytest.mark.parametrize("why", [table.NftTimeout, table.NftError])
@pytest.mark.parametrize("named", [True, False])
def test_a_look_at_the_table_that_fails_is_repeated(tmp_path, capfd, why, named):
    """If no flow has changed, and nft cannot list the table in time, or at all, the rules keep their
    counters. The helper reports the failure, and looks again."""
    numbers, asked = iter(range(100)), []

    def nft(text, *options, **_limit):
        asked.append((text, options))
        if named and options == ("list", "tables"):
            return f"table inet another\ntable {table.TABLE}\n"
        raise why("nft does not list it")

    fed = Fed(tmp_path, None, validate=False)
    fed.table = fed.helper.table = loaded = table.Table(nft, lambda: fed.now, lambda: next(numbers))
    loaded.known = {4: {}, 6: {}}
    fed.helper.start()
    assert fed.status()["error"] == "nft does not list it"
    before = len(asked)
    fed.wait(6)
    assert len(asked) == 2 * before and loaded.known is not None
    assert {text for text, _ in asked} == {None} and not any("-c" in options for _, options in asked)
    said = capfd.readouterr().err
    assert "nft does not list it" in said and "another program" not in said


def test_commands_that_hang_are_ended(tmp_path):
    """vtysh and nft are killed when their time is over."""
    program = tmp_path / "nft"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    with pytest.raises(origin.FrrTimeout):
        origin.vtysh(["show version"], 0.1, [str(program)])
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}:{path}"
    try:
        with pytest.raises(table.NftTimeout):
            table.nft("", limit_s=0.1)
    finally:
        os.environ["PATH"] = path


def test_changes_of_another_program_are_looked_for(tmp_path):
    """The table is verified every 5 s. It is loaded if another program may have changed it."""
    fed = Fed(tmp_path, None, validate=False)
    fed.helper.start()
    fed.flow(host(1))
    fed.wait(60)
    loads = fed.table.loads
    fed.table.changed = True
    fed.wait(6)
    assert fed.table.loads == loads + 1
    fed.wait(60)
    assert fed.table.loads == loads + 1


EXABGP = """#!/bin/sh
exec 3> {0}/events
echo '{{"type": "state", "neighbor": {{"address": {{"peer": "127.0.0.2"}}, "state": "up"}}}}' >&3
exec sleep 60
"""


def test_a_log_on_a_full_disk_costs_no_rule(tmp_path):
    """`run` continues to obey ExaBGP while each write to its log fails with ENOSPC, and its status file
    cannot be written. When it ends, it empties the table and ends ExaBGP."""
    exabgp, folder = tmp_path / "exabgp", tmp_path / "run"
    exabgp.write_text(EXABGP.format(folder))
    exabgp.chmod(0o755)
    folder.mkdir()
    (folder / "status.json.part").mkdir()  # status.json cannot be written
    summary = folder / "summary.json"
    argv = ["unshare", "-n", PROGRAM, "run", "--folder", str(folder), "--exabgp", str(exabgp)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.Popen(argv, stderr=full, env=environment)  # pylint: disable=consider-using-with
    try:
        eventually(lambda: json.loads(summary.read_text())["sessions_up"] == 1, 10, 0.02)
        program = eventually(lambda: children(done.pid), 5, 0.02)
        done.terminate()
        assert done.wait(20) == 0
        assert not summary.exists() and not any(os.path.exists(f"/proc/{pid}") for pid in program)
    finally:
        done.kill()
        done.wait()


def children(pid):
    """Return the children of a process."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


STATUS = {"sessions": {}, "table": "t", "loaded": True, "frr_error": None, "waiting": 0, "flows": []}


def show(folder, *options, **more):
    """Run `fpm-flowspec show`, which buffers its output as it does at an operator's."""
    argv = [PROGRAM, "show", "--folder", str(folder), *options]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 20} | more
    return subprocess.run(argv, env=environment, text=True, check=False, **more)


def test_a_damaged_status_file_is_reported_in_a_sentence(tmp_path):
    """A status file that is cut, has other octets, or is of another version gives one sentence with the
    path and the remedy."""
    texts = [b"", b"{", b"[]", b"{}", b"null", os.urandom(500), b"[" * 100000]
    texts += [json.dumps({**STATUS, "flows": [row]}).encode() for row in (None, {}, {"state": 7})]
    texts += [json.dumps({**STATUS, "sessions": 3}).encode()]
    for text in texts:
        (tmp_path / "status.json").write_bytes(text)
        done = show(tmp_path)
        said = f"fpm-flowspec: {tmp_path}/status.json is damaged, or of another version: run "
        assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith(said), done
        assert done.stderr.count("\n") == 1
    (tmp_path / "status.json").unlink()
    assert "No such file" in show(tmp_path).stderr


def test_an_output_that_is_full_or_closed_is_reported(tmp_path):
    """`show` reports a full disk. A reader that ends early, such as `head`, is no error."""
    (tmp_path / "status.json").write_text(json.dumps(STATUS))
    assert show(tmp_path).stdout == "Session   none down\nTable     t loaded\n"
    for options in ((), ("--json",)):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = show(tmp_path, *options, stdout=full)
        assert (done.returncode, done.stderr) == (1, "fpm-flowspec: [Errno 28] No space left on device\n")
        reader, writer = os.pipe()
        os.close(reader)
        done = show(tmp_path, *options, stdout=writer)
        os.close(writer)
        assert (done.returncode, done.stderr) == (0, "")
