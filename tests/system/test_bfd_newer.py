# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the dataplane whose peer has the bfdd of a newer FRR (`make frr-root`). The tests are
those of test_bfd and test_bfd_kinds, in which the peer has the installed FRR."""

import pytest

from bfd_bed import bed
from lib import frr_at, netns
from test_bfd import (  # noqa: F401
    test_a_next_hop_leaves_its_group_when_its_session_fails_and_comes_back_with_it,
    test_a_planned_restart_does_not_end_a_session_of_three_times_50_ms,
    test_a_session_of_bfdd_comes_up_with_a_peer_and_the_forwarders_keep_it,
    test_a_shutdown_of_the_peer_is_no_failure_and_prunes_nothing,
)
from test_bfd_kinds import (  # noqa: F401
    test_a_passive_side_waits_for_the_other,
    test_a_session_of_ipv6_with_global_addresses,
    test_an_echo_session_is_judged_by_packets_that_the_peer_loops,
    test_our_router_loops_the_echo_packets_of_its_peer,
)


@pytest.fixture(scope="module")
def bfd():
    with bed("bfdn", peer_root=frr_at.NEWER) as both:
        netns.run(both.router.far, ["sysctl", "-qw", "net.ipv6.conf.wan.disable_ipv6=0"])
        yield both
