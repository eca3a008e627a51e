#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`make book`: write README.md, the manual, the pages for developers and the pages that they link to
as HTML to build/book. cmark-gfm, GitHub's own renderer, reads the Markdown. The folders are those
of the repository, so that links between pages stay as they are, with .html instead of .md."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANUAL = ROOT / "fpm-dataplane" / "manual"
CMARK = ["cmark-gfm", "--unsafe", "--validate-utf8", "-e", "table", "-e", "autolink"]
RELATIVE = re.compile(r'(href|src)="(?![a-z]+:|#)([^"#]+)(#[^"]*)?"')
HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.S)

STYLE = """\
body { margin: 0 auto; max-width: 60rem; padding: 0 1rem 3rem; color: #1b1f24; background: #fff;
  font: 1rem/1.5 "Noto Sans", "DejaVu Sans", sans-serif; }
nav { padding: .6rem 0; border-bottom: 1px solid #d0d7de; font-size: .9rem; }
nav a { margin-right: 1.2rem; }
h1, h2, h3 { line-height: 1.25; margin-top: 1.6em; }
h2 { border-bottom: 1px solid #d0d7de; }
code, pre { font: .88rem/1.45 "Noto Sans Mono", "DejaVu Sans Mono", monospace; }
code { background: #f0f2f4; padding: .1em .25em; border-radius: 3px; }
pre { background: #f6f8fa; padding: .8rem; overflow-x: auto; border-radius: 4px; }
pre code { background: none; padding: 0; }
.table { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .92rem; }
th, td { border: 1px solid #d0d7de; padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { background: #f0f2f4; }
tbody tr:nth-child(even) { background: #fafbfc; }
.note { font-size: .9rem; font-style: italic; margin-bottom: -.4rem; }
img { max-width: 100%; }
@media print { nav { display: none; } body { max-width: none; } }
"""
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - fpm-dataplane</title>
<link rel="stylesheet" href="{top}book.css">
</head>
<body>
<nav><a href="{top}index.html">Index</a>{around}</nav>
<main>
{text}</main>
</body>
</html>
"""
NOTE = (
    '<p class="note">This diagram is in the language Mermaid. Debian has no program that draws it, '
    "so the book has its text.</p>\n"
)


class BookError(Exception):
    """A page links to a file that does not exist."""


def slug(text):
    """Return the name that GitHub gives to a heading."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", text)).lower()
    return re.sub(r"[^\w -]", "", plain).strip().replace(" ", "-")


def rendered(page):
    """Return (title, HTML) of a page, with names for its headings. Links are those of the page."""
    done = subprocess.run([*CMARK, str(page)], capture_output=True, check=True)
    text = re.sub(r"<!--.*?-->\n?", "", done.stdout.decode(), flags=re.S)
    seen = {}

    def named(heading):
        name = slug(heading[2])
        seen[name] = seen.get(name, -1) + 1
        name += f"-{seen[name]}" if seen[name] else ""
        return f'<h{heading[1]} id="{name}">{heading[2]}</h{heading[1]}>'

    first = HEADING.search(text)
    title = html.unescape(re.sub(r"<[^>]*>", "", first[2])) if first else page.stem
    text = HEADING.sub(named, text)
    text = text.replace("<table>", '<div class="table">\n<table>')
    text = text.replace("</table>", "</table>\n</div>")
    return title, text.replace('<pre><code class="language-mermaid">', NOTE + "<pre><code>")


def linked(page, text):
    """Return the files of the repository to which a page links."""
    found = []
    for _, name, _ in RELATIVE.findall(text):
        to = Path(os.path.normpath(page.parent / html.unescape(name)))
        if not to.is_file() or ROOT not in to.parents:
            raise BookError(f"{page.relative_to(ROOT)}: no file {name}")
        found.append(to)
    return found


def target(page):
    """Return the path of a file in the book."""
    path = page.relative_to(ROOT)
    return path.with_suffix(".html") if path.suffix == ".md" else path


def to_html(link):
    """Return a link of a page as a link of the book."""
    name = re.sub(r"\.md$", ".html", link[2])
    return f'{link[1]}="{name}{link[3] or ""}"'


def collect():
    """Return {page: (title, text)} in reading order, and the other files to which they link."""
    index = MANUAL / "index.md"
    chapters = [to for to in linked(index, rendered(index)[1]) if to.parent == MANUAL]
    developers = sorted((MANUAL.parent / "doc").glob("*.md"))
    others = sorted(MANUAL.glob("*.md"))
    wait = [ROOT / "README.md", index, *chapters, *developers, *others]
    pages, files = {}, set()
    while wait:
        page = wait.pop(0)
        if page in pages:
            continue
        pages[page] = rendered(page)
        for to in linked(page, pages[page][1]):
            if to.suffix == ".md":
                wait.append(to)
            else:
                files.add(to)
    return pages, files


def contents(pages):
    """Return the text of the index page: a list of pages for each group."""
    folders = {ROOT: "Manual", MANUAL: "Manual", MANUAL.parent / "doc": "For developers"}
    groups = {"Manual": [], "For developers": [], "Examples, containers and tests": []}
    for page, (title, _) in pages.items():
        group = folders.get(page.parent, "Examples, containers and tests")
        groups[group].append(f'<li><a href="{target(page)}">{html.escape(title)}</a></li>\n')
    lists = (f"<h2>{name}</h2>\n<ul>\n{''.join(rows)}</ul>\n" for name, rows in groups.items())
    return "<h1>fpm-dataplane: the book</h1>\n" + "".join(lists)


def write(out, path, title, text, around=""):
    """Write a page of the book, which is in the folder `out`."""
    top = "../" * (len(path.parts) - 1)
    page = PAGE.format(title=html.escape(title), top=top, around=around, text=text)
    (out / path).parent.mkdir(parents=True, exist_ok=True)
    (out / path).write_text(page, encoding="utf-8")


def neighbor(page, order, step, words):
    """Return a link to the page before or after `page`, or nothing."""
    at = order.index(page) + step
    if not 0 <= at < len(order):
        return ""
    to = os.path.relpath(target(order[at]), target(page).parent)
    return f'<a href="{to}">{words}</a>'


def main(folder):
    """Write the book to the folder."""
    out = Path(folder).resolve()
    shutil.rmtree(out, ignore_errors=True)
    pages, files = collect()
    order = list(pages)
    write(out, Path("index.html"), "Index", contents(pages))
    (out / "book.css").write_text(STYLE, encoding="utf-8")
    for page, (title, text) in pages.items():
        text = RELATIVE.sub(to_html, text)
        around = neighbor(page, order, -1, "Previous") + neighbor(page, order, 1, "Next")
        write(out, target(page), title, text, around)
    for file in files:
        (out / target(file)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, out / target(file))
    print(f"{out}/index.html: {len(pages)} pages")


if __name__ == "__main__":
    main(*sys.argv[1:])
