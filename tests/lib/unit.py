# SPDX-License-Identifier: BSD-3-Clause
"""The daemon's unit of systemd, and what `systemd-analyze security` says of it."""

import json
import re

from lib.dataplane import ROOT

PATH = f"{ROOT}/fpm-dataplane/dist/fpm-dataplane.service"


def _names(finding):
    """Words of which a comment has to name one: the value that is let through where there are
    several (CAP_NET_ADMIN without CAP_), else the key."""
    key, _, value = finding.partition("=")
    if not value.startswith("~"):
        return [name.rstrip("=") for name in finding.split("/")]
    if key == "RestrictNamespaces":  # of one kind only
        return [key]
    many = re.fullmatch(r"~(\w*)\((.*)\)", value)
    values = [many[1] + one for one in many[2].split("|")] if many else [value[1:]]
    return [value.removeprefix("CAP_") for value in values]


def unaccounted(findings):
    """Of `systemd-analyze security --json=short`, what stays open and no comment names."""
    with open(PATH, encoding="utf-8") as file:
        comments = "".join(line for line in file if line.startswith("#"))
    # Null is what does not concern a service of root, or one that is not running.
    still_open = [row["name"] for row in json.loads(findings) if row["set"] is False]
    assert "User=/DynamicUser=" in still_open, "not the list that it was"
    named = lambda word: re.search(rf"(?<![\w@]){re.escape(word)}\b", comments)  # noqa: E731
    return [name for name in still_open if not any(named(word) for word in _names(name))]
