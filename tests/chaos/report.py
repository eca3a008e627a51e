# SPDX-License-Identifier: BSD-3-Clause
"""The result of a run: a table by fault, and the errors."""

import collections
import statistics
import time

SLACK_S = 0.05  # the longest time in transit at the start of a fault if other packets arrive
STALL_S = 0.5  # the same if no later packet has arrived: the router may get no CPU for so long


class Verdict:
    """Judges a run that has ended. `errors` is empty if all claims hold."""

    def __init__(self, run, traffic):
        self.run, self.traffic, self.errors = run, traffic, []
        self.vanished = 0  # packets whose route was withdrawn
        self.rows = collections.defaultdict(lambda: [0, 0, 0, 0, 0, [], 0.0])
        self._losses()
        self._counted()
        self._strays()

    def must(self, holds, text):
        """Record an error unless `holds`."""
        if not holds:
            self.errors.append(text)

    def _losses(self):
        lost = sorted(self.traffic.lost())
        begins = [h.begin - SLACK_S for h in self.run.happenings]
        ends = begins[1:] + [float("inf")]
        outside = []
        for when, cell in lost:
            near = [h for h in self.run.happenings if h.begin - SLACK_S <= when]
            to = self.run.oracle.cells[cell]
            if self.run.oracle.may_vanish(to, when):
                self.vanished += 1
                continue
            excused = [h for h in near if h.excuses(self.run.oracle, when, to)]
            excused = excused or self._met_in_transit(when, to)
            if excused:
                excused[-1].lost.append(when)
            else:
                outside.append((when, to, near[-1:] or None))
                if near:
                    near[-1].bad += 1
        for happening, begin, end in zip(self.run.happenings, begins, ends):
            row = self.rows[happening.name]
            row[0] += 1
            row[1] += self.traffic.sent_between(begin, end)
            row[2] += len(happening.lost)
            row[3] += happening.bad
            lost = happening.lost
            row[5].append(lost[-1] - lost[0] + 1 / self.traffic.rate if lost else 0.0)
            row[6] = max(row[6], happening.may_lose_until - happening.begin)
        self.must(
            not outside,
            f"{len(outside)} packets lost outside every window, such as "
            + "; ".join(self._where(*some) for some in _spread(outside)),
        )

    def _met_in_transit(self, when, cell):
        """Return a list of the next fault if it met the packet in transit and may have lost it, although
        the packet was sent more than SLACK_S before. This happens if the machine gave the router no
        time: no packet that was sent later had arrived when the fault began. Otherwise return []."""
        for h in self.run.happenings:
            if h.begin > when:
                met = max(h.begin - STALL_S, self.traffic.none_newer_came(h.begin)) <= when
                return [h] if met and h.excuses(self.run.oracle, when, cell) else []
        return []

    def _counted(self):
        for h in self.run.happenings:
            if h.counted is not None:
                self.must(
                    len(h.lost) <= h.counted,
                    f"{h.name} {h.detail} lost {len(h.lost)}, at most {h.counted} may be",
                )

    def _where(self, when, cell, near):
        text = f"{cell} at {when - self.run.begin:.3f} s"
        return text + (f" ({near[0].name} {when - near[0].begin:+.3f} s)" if near else "")

    def _strays(self):
        for now, out, allowed, cell, sent in self.traffic.wrong:
            near = [h for h in self.run.happenings if h.begin - SLACK_S <= sent]
            if near:
                self.rows[near[-1].name][4] += 1
        first = [
            f"{cell} sent {sent - self.run.begin:.3f} s, seen {now - sent:.3f} s later on {out},"
            f" allowed {'/'.join(sorted(allowed))}"
            for now, out, allowed, cell, sent in _spread(self.traffic.wrong)
        ]
        self.must(not first, f"{len(self.traffic.wrong)} by a wrong path: " + "; ".join(first))
        bad = [f"on {out}: {data.hex()}" for _, out, data in self.traffic.mangled[:3]]
        self.must(not bad, f"{len(self.traffic.mangled)} damaged: " + "; ".join(bad))
        two = [f"{c} at {s - self.run.begin:.3f} s" for _, _, c, s in self.traffic.twice[:3]]
        self.must(not two, f"{len(self.traffic.twice)} came twice: " + "; ".join(two))

    def table(self):
        """Return the table as lines of text."""
        # Gap: from the first packet that a fault lost to the last one.
        head = ("fault", "times", "sent", "lost", "outside", "wrong", "gap: median", "max", "window")
        yield "{:<18} {:>5} {:>8} {:>7} {:>8} {:>6} {:>13} {:>8} {:>8}".format(*head)
        for name, (times, sent, lost, bad, wrong, gaps, window) in sorted(self.rows.items()):
            some = "--"
            if lost:
                some = [f"{gap:.3f} s" for gap in (statistics.median(gaps), max(gaps))]
            limit = f"{window:.1f} s" if window > 0 else "none"
            yield (
                f"{name:<18} {times:>5} {sent:>8} {lost:>7} {bad:>8} {wrong:>6} "
                f"{some[0]:>13} {some[1]:>8} {limit:>8}"
            )


def _spread(rows, most=4):
    """Return a few of many rows, spread over all of them."""
    step = max(1, len(rows) // most)
    return rows[::step][:most]


def stamp(run, text):
    """Print a line with the time since the beginning."""
    print(f"{time.monotonic() - run.begin:7.2f} s  {text}", flush=True)
