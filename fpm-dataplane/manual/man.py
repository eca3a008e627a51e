#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make man`: write the manual pages to build/man. The keys of the file have the texts of
configuration.md, the commands have the help texts of the programs, as commands.md has. The rest of
each page is in man/NAME.SECTION.rst. docutils formats the pages, and its first warning is an error."""

import os
import re
import sys
import time
from pathlib import Path

from docutils.core import publish_string

import commands
import configuration

HERE = Path(__file__).resolve().parent
FRAMES = HERE / "man"
# The fields that docutils writes into the head of a page.
FIELDS = """
:Manual section: {section}
:Manual group: fpm-dataplane
:Version: {version}
:Date: {date}
"""
STRICT = {"report_level": 2, "halt_level": 2}
# Requests of docutils that have no effect. mandoc reports them.
USELESS = r"^(\.S[HS] .*\n)\.sp\n|^\.ft [CP]\n"


def date():
    """Return the date of a reproducible build, which dpkg-buildpackage sets, or today."""
    now = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return time.strftime("%Y-%m-%d", time.gmtime(now))


# --- reStructuredText ------------------------------------------------------------------------


def rst(text):
    """Return plain text with `code` as reStructuredText."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*_|])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"``{part}``" for part in parts[1::2]]
    return "".join(parts)


def sentence(text):
    """Return the text with a capital letter and a period."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ":")) else ".")


def body(text):
    """Return paragraphs and lists of the example file as the body of a definition."""
    lines = re.split(r"\n+", text)
    return "\n\n".join(
        f"    - {rst(line[2:])}" if line.startswith("- ") else f"    {rst(line)}" for line in lines
    )


def term(name, text):
    """Return a definition. Without the backslash docutils would take the name for a list of options."""
    return f"\\{rst(name)}\n{body(text)}\n\n"


def heading(text, line):
    """Return a heading that is underlined by this character."""
    title = rst(text)
    return f"{title}\n{line * len(title)}\n\n"


# --- help texts ------------------------------------------------------------------------------


def starts(line, indent):
    """Return True if a line of a help text begins an item. An option may be indented further."""
    begin = len(line) - len(line.lstrip())
    return begin == indent or re.match(r" {6}--\S.* {2}", line) is not None


def items(lines, indent):
    """Return the items of a help text that begin at this column: lists of lines."""
    found = []
    for line in filter(str.strip, lines):
        if starts(line, indent) or not found:
            found.append([line.strip()])
        else:
            found[-1].append(line.strip())
    return found


def described(lines, indent):
    """Return a help text as definitions, paragraphs and examples."""
    out, prose = "", []
    for first, *below in items(lines, indent):
        split = re.match(r"(\S+(?: \S+)*) {2,}(?:([A-Z]+) {2,})?(\S.*)$", first)
        example = first.startswith("fpmctl ")
        if prose and (split or below or example):
            out += rst(" ".join(prose)) + (":" if example else "") + "\n\n"
            prose = []
        if split:
            name = " ".join(filter(None, split.groups()[:2]))
            out += term(name, " ".join([split[3], *below]))
        elif below:
            out += term(first, "\n\n".join(below))
        elif example:
            out += f"    {first}\n"
        else:
            prose.append(first)
    return out + rst(" ".join(prose)) + "\n"


def section(overview, title):
    """Return the lines of a section of `fpmctl help`."""
    return overview.partition(f"\n{title}:\n")[2].partition("\n\n")[0].splitlines()


def synopsis(text):
    """Return the usage of a help text, and the lines after it."""
    lines = text.splitlines()
    n = 1
    while n < len(lines) and lines[n].startswith(" " * 10):
        n += 1
    usage = " ".join(line.strip() for line in lines[:n]).removeprefix("usage: ")
    return usage, lines[n:]


def command(text):
    """Return the subsection of a command of fpmctl."""
    usage, (summary, *rest) = synopsis(text)
    title = usage.removeprefix("fpmctl [OPTIONS] ")
    return heading(title, "~") + rst(sentence(summary.strip())) + "\n\n" + described(rest, 6)


def of_fpmctl(programs):
    """Return the generated parts of fpmctl(1)."""
    fpmctl = str(programs / "fpmctl")
    overview = commands.printed(fpmctl, "help")
    options = re.search(r"(?:^ +-.*\n(?: {10,}.*\n)*)+", overview, re.M)[0].splitlines()
    helps = [commands.printed(fpmctl, "help", name) for name in commands.commands(overview)]
    return {
        "commands": "\n".join(map(command, helps)),
        "options": described(options, 2),
        "environment": described(section(overview, "Environment"), 2),
        "exit": described(section(overview, "Exit codes"), 2),
    }


def of_program(programs, name):
    """Return the generated parts of the page of a program with one help text."""
    usage, rest = synopsis(commands.printed(str(programs / name), "--help"))
    about = [line for line in rest if not line.startswith(" ")]
    options = [line for line in rest if line.startswith(" ")]
    return {
        "usage": f"| **{name}** {rst(usage.removeprefix(name).strip())}",
        "about": rst(" ".join(about)),
        "options": described(options, 2),
    }


# --- the file --------------------------------------------------------------------------------


def above_key(row):
    """Return the key that contains the key of a row, or "" for a key of the router."""
    return row["key"].replace("[]", "").rpartition(".")[0]


def sections(rows):
    """Sort the rows, so that all keys inside one key are one section. In the file the keys of the
    router are between such sections; in the page they are one section."""
    order = list(dict.fromkeys(map(above_key, rows)))
    return sorted(rows, key=lambda row: order.index(above_key(row)))


def of_file(programs):
    """Return the generated part of fpm-dataplane.yaml(5)."""
    rows = sections(configuration.keys(str(programs / "fpmctl")))
    about = configuration.words(configuration.EXAMPLE.read_text(encoding="utf-8"))
    out, now = heading("KEYS", "="), None
    for row in rows:
        name = row["key"].replace("[]", "")
        above = above_key(row)
        if configuration.is_policer(row):
            continue
        if above != now:
            out += heading(above or "The router", "~")
            out += body(about.about.get(above, "")).replace("    ", "") + "\n\n"
            now = above
        out += term(row["key"], f"{about.of(name)}\n\n{' '.join(configuration.facts(row))}")
    classes = configuration.policers(rows)
    out += heading("policers", "~") + body(about.of("policers")).replace("    ", "") + "\n\n"
    for key, row in next(iter(classes.values())).items():
        out += term(f"policers.CLASS.{key}", row["values"])
    for name, of in classes.items():
        if name in about.lead:
            out += rst(about.lead[name]) + "\n\n"
        figures = ", ".join(f"{key} {row['default']}" for key, row in of.items())
        packets = sentence(about.of(f"policers.{name}"))
        out += term(f"policers.{name}", f"{packets} Default: {figures}.")
    return {"keys": out}


# --- pages -----------------------------------------------------------------------------------


def pages(programs, version):
    """Return {"fpmctl.1": text, ...}; the programs of this version are in this folder."""
    parts = {
        "fpmctl.1": of_fpmctl(programs),
        "fpm-dataplane.8": of_program(programs, "fpm-dataplane"),
        "fpm-supervise.8": of_program(programs, "fpm-supervise"),
        "fpm-flowspec.8": {},
        "fpm-dataplane.yaml.5": of_file(programs),
    }
    made = {}
    for name, values in parts.items():
        text = (FRAMES / f"{name}.rst").read_text(encoding="utf-8")
        for mark, value in values.items():
            text = text.replace(f"@{mark}@\n", value + "\n")
        head, line, rest = text.partition("\n\nSYNOPSIS\n" if "SYNOPSIS" in text else "\n\nDESCRIPTION\n")
        fields = FIELDS.format(section=name[-1], version=f"fpm-dataplane {version}", date=date())
        roff = publish_string(
            head + "\n" + fields + line + rest, writer_name="manpage", settings_overrides=STRICT
        ).decode()
        made[name] = re.sub(USELESS, r"\1", roff, flags=re.M)
    return made


def main(programs, folder, version):
    """Write the pages to the folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in pages(Path(programs), version).items():
        Path(folder, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
