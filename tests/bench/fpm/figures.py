# SPDX-License-Identifier: BSD-3-Clause
"""Many values as a few figures, the same keys in every JSON line."""

import statistics


def spread(values, digits=3):
    """Return median, minimum, maximum and number of some values."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
        "n": len(values),
    }


def microseconds(values):
    """Return median, least, most and tail of times in seconds, in us."""
    us = sorted(v * 1e6 for v in values)
    p99 = us[min(len(us) - 1, int(len(us) * 0.99))]
    return {**spread(us, 1), "p99": round(p99, 1), "unit": "us"}
