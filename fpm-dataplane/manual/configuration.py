#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make reference`: configuration.md out of the daemon's own table of keys (`fpmctl config
keys`) and the words of the commented example. Nothing of the page is written by hand, and a
test holds it against this."""

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "dist" / "fpm-dataplane.yaml"

BEGIN = """\
# Configuration

Made by `make reference` of the daemon's own table of keys, `fpmctl config keys`, and of the words in the
[commented example](../dist/fpm-dataplane.yaml), which is installed as `/etc/fpm-dataplane/config.yaml`. Only `ports` has to be
there. `fpm-dataplane --check -c FILE` and `fpmctl config check FILE` tell all that is wrong with a file.

Keys changed by *reload* are taken by a running daemon: `fpmctl config reload`, `systemctl reload fpm-dataplane`, SIGHUP. The
others need `fpmctl restart`, and a file in which one of them differs is not reloaded at all.

| key | default | changed by |
|---|---|---|
"""


class ExampleError(Exception):
    """The example lacks a key."""


def keys(fpmctl):
    """Rows of the table: key, default, values, required, reload."""
    said = subprocess.run(
        [fpmctl, "--json", "config", "keys"], capture_output=True, check=True
    )
    return json.loads(said.stdout)


def words(text):
    """{key: what the comment before it says}, of the example; a section has its own, under
    "fpm" for all of fpm.*; a key right behind another shares its words."""
    found, comment, sections, seen = {}, [], {}, False
    for line in text.splitlines():
        remark = re.match(r" *# ?(.*)", line)
        key = re.match(r"( *(?:- )?)(?:# )?([a-z][a-z0-9-]*):(?: |$)", line)
        if key and not (remark and not _is_key(remark[1])):
            depth = len(key[1]) // 2
            name = key[2]
            sections = {d: n for d, n in sections.items() if d < depth} | {depth: name}
            path = ".".join(sections[d] for d in sorted(sections))
            trailing = re.search(r"\}  # (.*)", line)
            said = trailing[1] if trailing else " ".join(comment)
            found.setdefault(path, said or (seen and found.get(seen, "")))
            comment, seen = ([], path) if said or not seen else (comment, seen)
        elif remark:
            comment.append(remark[1].strip())
        elif not line.strip():
            comment, seen = [], False
    return found


def _is_key(text):
    """A key that is commented out, as it has no default: `control-netns: r1`."""
    return re.match(r"[a-z-]+: \S+$|[a-z-]+: \[\S+\]$", text)


def _prose(text):
    """As Markdown: words for the machine in code."""
    return re.sub(r"(?<![`\w])(-M [a-z_]+|--[a-z-]+=?[a-z_]*)(?![`\w])", r"`\1`", text)


def page(rows, example):
    """The whole page."""
    about = words(example)
    policers = [r for r in rows if r["key"].startswith("policers.")]
    others = [r for r in rows if r not in policers]
    sections = {"": "\n## The router\n"}
    out = BEGIN
    for row in others:
        name = row["key"].replace("[]", "")
        above = name.rpartition(".")[0]
        said = about.get(name)
        if not said:
            raise ExampleError(f"{EXAMPLE.name} has no words about {row['key']}")
        default = "*must be there*" if row["required"] else _value(row["default"])
        how = "reload" if row["reload"] else "restart"
        anchor = re.sub(r"[^a-z0-9-]", "", row["key"])
        out += f"| [`{row['key']}`](#{anchor}) | {default} | {how} |\n"
        lead = _prose(about.get(above) or "")
        sections.setdefault(above, f"\n## {above}\n\n{lead}".rstrip() + "\n")
        sections[above] += f"\n### `{row['key']}`\n\n{_prose(said)}\n\n"
        sections[
            above
        ] += f"Default: {default}. Values: {row['values']}. Changed by {how}.\n"
    out += "| [`policers.*`](#policers) | *below* | reload |\n" + "".join(sections.values())
    return out + _policers(policers, about)


def _value(text):
    return f"`{text}`" if text is not None else "none"


def _policers(rows, about):
    """Classes and their figures, a line each."""
    values = {}
    for row in rows:
        _, name, key = row["key"].split(".")
        values.setdefault(name, {})[key] = row
    heads = list(next(iter(values.values())))
    out = f"\n## policers\n\n{_prose(about['policers'])}\n\n"
    for row in next(iter(values.values())).values():
        out += f"- `{row['key'].split('.')[2]}`: {row['values']}\n"
    out += f"\n| class | {' | '.join(heads)} | what is in it |\n|---|{'---|' * (len(heads) + 1)}\n"
    for name, of in values.items():
        said = about.get(f"policers.{name}")
        if not said:
            raise ExampleError(f"{EXAMPLE.name} has no words about policers.{name}")
        figures = " | ".join(of[key]["default"] for key in heads)
        out += f"| `{name}` | {figures} | {said} |\n"
    return out


def main(fpmctl):
    """Write the page."""
    text = page(keys(fpmctl), EXAMPLE.read_text(encoding="utf-8"))
    (HERE / "configuration.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
