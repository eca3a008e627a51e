# SPDX-License-Identifier: BSD-3-Clause
"""Read the output of `fpmctl audit`."""

import re


def not_as_zebra_shows(said):
    """Return the prefixes of an audit's output whose next hops in zebra are not those in the
    dataplane. Differences of zebra's copies in the kernel are left out."""
    return re.findall(r"^DIFFERS (\S+): (?!zebra's copy in the kernel )", said, re.MULTILINE)


def only_copies_differ(said):
    """Return True if an audit found differences, and in each of them zebra and the dataplane have the
    same next hops and zebra's copy in the kernel alone has others. All settings of interfaces are equal."""
    if not re.search(r"^links .*: 0 settings differ$", said, re.MULTILINE):
        return False
    found = re.search(
        r"^copies +(\d+) .*^RIB .* zebra's: 0 differ; .* kernel's: (\d+) differs?$"
        r".*^FIB .*: 0 differ$",
        said,
        re.MULTILINE | re.DOTALL,
    )
    return bool(found) and found[1] == found[2]
