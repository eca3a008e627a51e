# SPDX-License-Identifier: BSD-3-Clause
"""fpm-flowspec and ExaBGP beside an FRR."""

import os

from lib.dataplane import ROOT
from lib.peers import exabgp

FOLDER = os.path.join(ROOT, "fpm-dataplane", "flowspec")
PROGRAM = os.path.join(FOLDER, "fpm-flowspec")
_RELAY = "run /usr/bin/fpm-flowspec relay;"


def why_not():
    """Return the reason why ExaBGP cannot run on this machine in one sentence, or None."""
    return None if exabgp() else "this machine has no ExaBGP (`make peers` unpacks it)"


def command(frr, folder, *options):
    """Return the command that starts fpm-flowspec and ExaBGP, with their files in `folder`. The
    configuration of ExaBGP is the installed configuration, except for the paths."""
    with open(os.path.join(FOLDER, "exabgp.conf"), encoding="utf-8") as file:
        text = file.read()
    assert _RELAY in text
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "exabgp.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(_RELAY, f"run {PROGRAM} relay --folder {folder};"))
    argv = [PROGRAM, "run", "--folder", folder, "--vtysh", " ".join(frr.vtysh_argv())]
    *words, _, speaker = exabgp()
    return [*argv, "--exabgp", " ".join([*words, PROGRAM, "speaker", speaker, path]), *options]
