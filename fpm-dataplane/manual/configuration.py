#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make reference`: write configuration.md from the daemon's table of keys (`fpmctl config keys`) and
from the comments of the example file. No line of the page is written by hand. A test compares the
page with both sources. man.py makes the manual page of the file from the same texts."""

import json
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import commands

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "dist" / "fpm-dataplane.yaml"
COLUMNS = 120

BEGIN = """\
# Configuration

`make reference` writes this page from the daemon's table of keys (`fpmctl config keys`) and from the comments of the
[example file](../dist/fpm-dataplane.yaml). The package installs the example as `/etc/fpm-dataplane/config.yaml`. The manual
page `fpm-dataplane.yaml(5)` has the same texts. A file must have `ports`. All other keys are optional.

`fpm-dataplane --check -c FILE` and `fpmctl config check FILE` print every error of a file, with line and column.

The last column of the table says how a change of the key takes effect:

- *reload*: a running daemon takes the change by `fpmctl config reload`, `systemctl reload fpm-dataplane` or SIGHUP.
- *restart*: the change needs `fpmctl restart`. A reload of a file in which such a key differs changes nothing.

| key | default | change by |
|---|---|---|
"""


class ExampleError(Exception):
    """The example file has no text about a key."""


@dataclass
class Words:
    """The texts of the example file: paragraphs, and lines that begin with "- "."""

    about: dict = field(default_factory=dict)  # {key: text}; "fpm" has the text of the section
    lead: dict = field(default_factory=dict)  # {class: text before the first class of a group}

    def of(self, key):
        """Return the text about a key."""
        if not self.about.get(key):
            raise ExampleError(f"{EXAMPLE.name} has no text about {key}")
        return self.about[key]


def keys(fpmctl):
    """Return the rows of the table: key, default, values, required, reload."""
    return json.loads(commands.printed(fpmctl, "--json", "config", "keys"))


def joined(lines):
    """Return the text of comment lines: each paragraph and each item of a list is one line."""
    text = ""
    for line in lines:
        if not line:
            text += "\n\n"
        elif line.startswith("- "):
            text = f"{text}\n{line}" if text and text[-1] != "\n" else text + line
        else:
            text += (" " if text and text[-1] != "\n" else "") + line
    return text.strip()


def words(example):
    """Return the Words of the example file."""
    found, comment, sections = Words(), [], {}
    for line in example.splitlines():
        remark = re.match(r" *# ?(.*)", line)
        key = re.match(r"( *(?:- )?)(?:# )?([a-z][a-z0-9-]*):(?: |$)", line)
        if key and not (remark and not _is_key(remark[1])):
            depth = len(key[1]) // 2
            sections = {d: n for d, n in sections.items() if d < depth} | {depth: key[2]}
            path = ".".join(sections[d] for d in sorted(sections))
            trailing = re.search(r"\}  # (.*)", line)
            found.about.setdefault(path, trailing[1] if trailing else joined(comment))
            if trailing and comment:
                found.lead[key[2]] = joined(comment)
            comment = []
        elif remark:
            comment.append(remark[1].strip())
        elif not line.strip():
            comment = []
    return found


def _is_key(text):
    """Return True for a key that is a comment because it has no default: `control-netns: r1`."""
    return re.match(r"[a-z-]+: (\S+|\[\S+\]|\"[^\"]*\")$", text)


def _prose(text):
    """Return the text as Markdown: options as code, lines of at most COLUMNS."""
    text = re.sub(r"(?<![`\w])(-M [a-z_]+|--[a-z-]+=?[a-z_]*)(?![`\w])", r"`\1`", text)
    text = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    lines = (
        textwrap.fill(line, COLUMNS, break_long_words=False, break_on_hyphens=False,
                      subsequent_indent="  " if line.startswith("- ") else "")
        for line in text.split("\n")
    )  # fmt: skip
    return "\n".join(lines).replace("\0", " ")


def is_policer(row):
    """Return True for a key of a class of packets."""
    return row["key"].startswith("policers.")


def facts(row):
    """Return a sentence each about values, default and change of a key."""
    return [
        f"Values: {row['values']}.",
        "This key is required." if row["required"] else f"Default: {_value(row['default'])}.",
        f"A change needs a {'reload' if row['reload'] else 'restart'}.",
    ]


def _value(text):
    return f"`{text}`" if text is not None else "none"


def policers(rows):
    """Return {class: {"rate": row, ...}}."""
    classes = {}
    for row in filter(is_policer, rows):
        _, name, key = row["key"].split(".")
        classes.setdefault(name, {})[key] = row
    return classes


def page(rows, example):
    """Return the whole page."""
    about = words(example)
    sections = {"": "\n## The router\n"}
    out = BEGIN
    for row in rows:
        if is_policer(row):
            continue
        name = row["key"].replace("[]", "")
        above = name.rpartition(".")[0]
        anchor = re.sub(r"[^a-z0-9-]", "", row["key"])
        default = "required" if row["required"] else _value(row["default"])
        how = "reload" if row["reload"] else "restart"
        out += f"| [`{row['key']}`](#{anchor}) | {default} | {how} |\n"
        sections.setdefault(above, f"\n## {above}\n\n{_prose(about.about.get(above, ''))}\n")
        sections[above] += f"\n### `{row['key']}`\n\n{_prose(about.of(name))}\n\n"
        sections[above] += _prose(" ".join(facts(row))) + "\n"
    out += "| [`policers.*`](#policers) | *below* | reload |\n" + "".join(sections.values())
    return out + _policers(policers(rows), about)


def _policers(classes, about):
    """Return the section of the classes: their keys, and a table for each group of classes."""
    head = list(next(iter(classes.values())))
    out = f"\n## policers\n\n{_prose(about.of('policers'))}\n\n"
    for key, row in next(iter(classes.values())).items():
        out += f"- `{key}`: {row['values']}\n"
    for name, of in classes.items():
        if name in about.lead:
            out += f"\n{_prose(about.lead[name])}\n\n"
            out += f"| class | {' | '.join(head)} | packets |\n|---|{'---|' * (len(head) + 1)}\n"
        figures = " | ".join(of[key]["default"] for key in head)
        out += f"| `{name}` | {figures} | {about.of(f'policers.{name}')} |\n"
    return out


def main(fpmctl):
    """Write the page."""
    text = page(keys(fpmctl), EXAMPLE.read_text(encoding="utf-8"))
    (HERE / "configuration.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
