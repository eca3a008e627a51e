# SPDX-License-Identifier: BSD-3-Clause
"""The daemon's systemd unit, and the findings of `systemd-analyze security` for it."""

import json
import re

from lib.dataplane import ROOT

PATH = f"{ROOT}/fpm-dataplane/dist/fpm-dataplane.service"


def _names(finding):
    """Return the words of which a comment has to contain one: the value that is allowed if the key
    has several values (CAP_NET_ADMIN without CAP_), else the key."""
    key, _, value = finding.partition("=")
    if not value.startswith("~"):
        return [name.rstrip("=") for name in finding.split("/")]
    if key == "RestrictNamespaces":  # a value other than yes or no restricts some kinds only
        return [key]
    many = re.fullmatch(r"~(\w*)\((.*)\)", value)
    values = [many[1] + one for one in many[2].split("|")] if many else [value[1:]]
    return [value.removeprefix("CAP_") for value in values]


def unaccounted(findings):
    """Return the findings of `systemd-analyze security --json=short` that no comment of the unit
    explains."""
    with open(PATH, encoding="utf-8") as file:
        comments = "".join(line for line in file if line.startswith("#"))
    # Null: the check does not apply to a service of root, or to a service that does not run.
    still_open = [row["name"] for row in json.loads(findings) if row["set"] is False]
    assert "User=/DynamicUser=" in still_open, "the list of findings lacks User=/DynamicUser="
    named = lambda word: re.search(rf"(?<![\w@]){re.escape(word)}\b", comments)  # noqa: E731
    return [name for name in still_open if not any(named(word) for word in _names(name))]
