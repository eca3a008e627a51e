# SPDX-License-Identifier: BSD-3-Clause
"""What is known not to be right yet, each with its reason in one place."""

import pytest

DEFRAG = pytest.mark.xfail(
    strict=True,
    reason="net_af_packet joins its queues to a fanout group with "
    "PACKET_FANOUT_FLAG_DEFRAG: the kernel reassembles IPv4 fragments before the port "
    "sees them, and cuts what is then longer than a ring slot",
)
ADMIN_DOWN = pytest.mark.xfail(
    strict=True, reason="frames that come in by an interface set down are still forwarded"
)
QUIET_SESSION = pytest.mark.xfail(
    strict=True,
    reason="fpm tells rib of a new session only with its first message: a zebra without "
    "routes sweeps nothing",
)
EARLY_ROUTE = pytest.mark.xfail(
    strict=True,
    reason="a replayed route that names an id not announced yet turns unresolved at once "
    "instead of keeping its old way until the id is known",
)
