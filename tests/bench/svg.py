# SPDX-License-Identifier: BSD-3-Clause
"""Draw bar and line charts as SVG text. The same values give the same text.

The colors are readable on a light and on a dark background: text and grid follow
`prefers-color-scheme`, and each series color has a contrast of at least 3 to both.
"""

import math
import textwrap
from html import escape

WIDTH, LINE, LABEL = 760, 15, 42  # pixels, pixels, characters
COLORS = ("#2f7de1", "#c96a10", "#2a9950", "#a259d9", "#8a8f98", "#d1486a", "#0f9aa8", "#9a7d0a")
STYLE = """\
text{font:12px sans-serif;fill:#1f2328}.t{font-weight:bold;font-size:14px}
.g{stroke:#d0d7de;stroke-width:1}.w{stroke:#1f2328;stroke-width:1.2}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{stroke:#3d444d}.w{stroke:#e6edf3}}
"""


def place(x):
    """Format a coordinate."""
    return f"{x:.1f}".removesuffix(".0")


def text(x, y, words, anchor="start", more=""):
    """Return a text element."""
    return f'<text x="{place(x)}" y="{place(y)}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    """Return a straight line of the class `kind`."""
    ends = f'x1="{place(x1)}" y1="{place(y1)}" x2="{place(x2)}" y2="{place(y2)}"'
    return f'<line {ends} class="{kind}"/>'


def bar(x, y, width, height, color):
    """Return a filled rectangle."""
    box = f'x="{place(x)}" y="{place(y)}" width="{place(width)}" height="{place(height)}"'
    return f'<rect {box} fill="{color}"/>'


def document(title, height, parts):
    """Return the SVG document."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {place(height)}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        text(8, 20, title, more=' class="t"'),
        *parts,
        "</svg>\n",
    ])  # fmt: skip


class Axis:
    """A linear or logarithmic scale from values to coordinates."""

    def __init__(self, ticks, begin, end, log=False):
        self.ticks, self.begin, self.end, self.log = ticks, begin, end, log

    def at(self, value):
        """Return the coordinate. Values outside of the axis are drawn at its end."""
        low, high = self.ticks[0], self.ticks[-1]
        value = min(max(value, low), high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        if low == high:  # an axis with one value has it in the middle
            return (self.begin + self.end) / 2
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)


def ticks_to(most):
    """Return round numbers from 0 to at least `most`, four to eight of them."""
    step = 10 ** math.floor(math.log10(most))
    step = next(step * f for f in (0.2, 0.5, 1, 2) if most / (step * f) <= 7)
    return [step * n for n in range(math.ceil(most / step) + 1)]


def decades(low, high):
    """Return the powers of ten that enclose the range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**n for n in range(first, last + 1)]


def legend(x, y, names):
    """Return the entries of a legend in rows: (name, color, dashed)."""
    parts, begin = [], x
    for name, color, dashed in names:
        if x + 25 + 7 * len(name) > WIDTH:
            x, y = begin, y + LINE
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        parts.append(
            f'<path d="M{place(x)} {place(y)}h20" stroke="{color}" stroke-width="4"{dash}/>'
        )
        parts.append(text(x + 25, y + 4, name))
        x += 45 + 7 * len(name)
    return parts


def bars(title, unit, groups, names, log=False):
    """Return a chart of horizontal bars.

    groups   [(label, [(from, to, least, most, words)])], a bar for each of `names`; the whisker
             reaches from least to most, None: no whisker
    names    of the bars of a group; one name: no legend
    """
    left, right, thick = 300, WIDTH - 84, 13 if len(names) > 1 else 16
    top = 52 if len(names) > 1 else 34
    all_ = [b for _, of in groups for b in of]
    ends = [x for b in all_ for x in b[:4] if x is not None]
    ticks = decades(min(ends), max(ends)) if log else ticks_to(max(ends))
    axis = Axis(ticks, left, right, log)
    labels = [textwrap.wrap(label, LABEL) for label, _ in groups]
    tall = [max(len(names) * thick, LINE * len(words)) for words in labels]
    height = top + sum(tall) + 10 * len(groups) + 44
    bottom = height - 40
    parts = []
    for tick in axis.ticks:
        parts.append(line(axis.at(tick), top - 4, axis.at(tick), bottom, "g"))
        parts.append(text(axis.at(tick), bottom + LINE, f"{tick:g}", "middle"))
    y = top
    for words, space, (_, of) in zip(labels, tall, groups):
        first = y + space / 2 + 4 - LINE * (len(words) - 1) / 2
        parts += [text(left - 8, first + LINE * n, x, "end") for n, x in enumerate(words)]
        y += (space - len(of) * thick) / 2
        for n, (begin, end, least, most, value) in enumerate(of):
            first = axis.at(begin)
            width = max(3, axis.at(end) - first)
            parts.append(bar(first, y, width, thick - 2, COLORS[n]))
            right_end = first + width
            if least is not None:
                at = y + thick / 2 - 1
                parts.append(line(axis.at(least), at, axis.at(most), at, "w"))
                right_end = max(right_end, axis.at(most))
            parts.append(text(right_end + 5, y + thick - 3, value))
            y += thick
        y += (space - len(of) * thick) / 2 + 10
    parts.append(text((left + right) / 2, height - 6, unit, "middle"))
    if len(names) > 1:
        entries = [(name, COLORS[n], False) for n, name in enumerate(names)]
        parts += legend(12, 36, entries)
    return document(title, height, parts)


def lines(title, x_unit, y_unit, x_ticks, series, log=(False, False)):
    """Return a line chart.

    x_ticks  [(value, words)]
    series   [(name, [(x, y)], color number, dashed)]
    log      True for an axis that is logarithmic: (x, y)
    """
    left, right, bottom = 64, WIDTH - 20, 318
    top = 58 if len(series) < 4 else 58 + LINE
    values = [y for _, points, _, _ in series for _, y in points]
    ticks = decades(max(0.1, min(values)), max(values)) if log[1] else ticks_to(max(values))
    up = Axis(ticks, bottom, top, log[1])
    along = Axis([x for x, _ in x_ticks], left + 14, right - 14, log[0])
    parts = []
    for tick in up.ticks:
        parts.append(line(left, up.at(tick), right, up.at(tick), "g"))
        parts.append(text(left - 6, up.at(tick) + 4, f"{tick:g}", "end"))
    for x, words in x_ticks:
        parts.append(text(along.at(x), bottom + 18, words, "middle"))
    for _, points, number, dashed in series:
        at = [f"{place(along.at(x))} {place(up.at(y))}" for x, y in points]
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        color = COLORS[number]
        parts.append(
            f'<path d="M{"L".join(at)}" fill="none" stroke="{color}" stroke-width="2"{dash}/>'
        )
        for x, y in points:
            spot = f'cx="{place(along.at(x))}" cy="{place(up.at(y))}"'
            parts.append(f'<circle {spot} r="3" fill="{color}"/>')
    parts.append(text((left + right) / 2, bottom + 40, x_unit, "middle"))
    middle = (top + bottom) / 2
    turn = f' transform="rotate(-90 14 {place(middle)})"'
    parts.append(text(14, middle, y_unit, "middle", turn))
    parts += legend(left, 40, [(name, COLORS[n], dashed) for name, _, n, dashed in series])
    return document(title, bottom + 50, parts)
