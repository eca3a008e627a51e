# SPDX-License-Identifier: BSD-3-Clause
"""Routing daemons that are not FRR. `make peers` unpacks their packages in build/peers, because their
installation would start services."""

import os
import shutil

from lib.dataplane import ROOT

UNPACKED = os.path.join(ROOT, "build", "peers")


def program(name):
    """Return the path of a program: unpacked, or of the machine; None: there is none."""
    path = [f"{UNPACKED}/usr/{folder}" for folder in ("sbin", "bin")] + [
        "/usr/sbin",
        "/usr/bin",
    ]
    return shutil.which(name, path=":".join(path))


def libraries():
    """Return the command that starts a program with the libraries that were unpacked."""
    return ["env", f"LD_LIBRARY_PATH={UNPACKED}/usr/lib/x86_64-linux-gnu"]


def exabgp():
    """Return the command that starts ExaBGP, unpacked or of the machine; None: there is none."""
    found = program("python3-exabgp") or program("exabgp")
    if found is None:
        return None
    modules = f"PYTHONPATH={UNPACKED}/usr/lib/python3/dist-packages"
    return ["env", modules, "/usr/bin/python3", found]
