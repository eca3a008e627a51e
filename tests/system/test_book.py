# SPDX-License-Identifier: BSD-3-Clause
"""`make book` writes the pages of the repository as HTML, and every link of the book leads to a file
and to a heading."""

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lib import docs

BOOK = docs.ROOT / "fpm-dataplane" / "manual" / "book.py"


class Page(HTMLParser):
    """The names, links and elements of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.count, self.text = [], [], {}, ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note an element."""
        found = dict(attrs)
        self.count[tag] = self.count.get(tag, 0) + 1
        if "id" in found:
            self.ids.append(found["id"])
        if link := found.get("href", found.get("src")):
            self.links.append(link)

    def handle_data(self, data):
        """Note text."""
        self.text += data


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The pages of the book: {path: Page}."""
    folder = tmp_path_factory.mktemp("book") / "out"
    subprocess.run(["/usr/bin/python3", str(BOOK), str(folder)], check=True)
    return {path: Page(path) for path in folder.rglob("*.html")}


def local(path, page):
    """Return the (file, heading) of each link of a page that stays in the book."""
    for link in page.links:
        if not re.match("[a-z]+:", link):
            name, _, heading = link.partition("#")
            yield (path.parent / name).resolve() if name else path, heading


def test_every_link_leads_to_a_file_and_to_a_heading(book):
    """Every link between pages leads to a file of the book, and to a heading that exists once. No
    link leads to a Markdown file."""
    n = 0
    for path, page in book.items():
        assert len(page.ids) == len(set(page.ids)), path
        for to, heading in local(path, page):
            assert to.is_file() and to.suffix != ".md", (path, to)
            assert not heading or heading in book[to].ids, (path, to, heading)
            n += 1
    assert n > 300


def test_every_page_is_in_the_book_and_in_the_index(book):
    """The book has README, the manual, the pages for developers, the scenarios. The index names
    each page."""
    index = next(path for path in book if path.name == "index.html" and path.parent.name == "out")
    top = index.parent
    named = {to for to, _ in local(index, book[index])}
    pages = [docs.ROOT / "README.md", *docs.ROOT.glob("fpm-dataplane/manual/*.md"),
             *docs.ROOT.glob("fpm-dataplane/doc/*.md"), *docs.ROOT.glob("frr-config/*/README.md")]  # fmt: skip

    assert len(pages) > 30
    for page in pages:
        assert (top / page.relative_to(docs.ROOT)).with_suffix(".html") in book, page
    assert book.keys() <= named


def test_a_page_has_the_tables_and_blocks_of_its_markdown(book):
    """Each table of a page is a table of the book, each block is a block, and a page says that a
    diagram of Mermaid is not drawn."""
    n = 0
    for path, page in book.items():
        source = next((p for p in docs.pages() if str(path).endswith(
            "/out/" + str(p.relative_to(docs.ROOT).with_suffix(".html")))), None)  # fmt: skip
        if source is None:
            assert path.parent.name == "out"
            continue
        tables = [line for _, line in docs.outside_fences(source) if re.match(r" *\|( *:?-+:? *\|)+$", line)]
        blocks = docs.blocks(source)
        assert page.count.get("table", 0) == len(tables), path
        assert page.count.get("pre", 0) == len(blocks), path
        diagrams = sum(block.language == "mermaid" for block in blocks)
        assert page.text.count("in the language Mermaid") == diagrams, path
        n += len(tables)
    assert n > 50
