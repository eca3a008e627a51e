# SPDX-License-Identifier: BSD-3-Clause
"""Bursts of all lengths that the configuration allows."""

import signal

import pytest

from lib.wait import eventually
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"


@pytest.mark.parametrize("rx, tx", [(1, 1), (256, 256), (256, 3), (65, 63), (7, 256)])
def test_bursts_of_any_length_leave_whole_and_in_order(own_dut, rx, tx):
    """With rx-burst and tx-burst from 1 to 256, 600 packets that wait for a stopped daemon leave
    once each, in order in each direction. A forwarder needs several rounds for so many packets."""
    dut = own_dut()
    dut.edit_config("log-level:", f"rx-burst: {rx}\ntx-burst: {tx}\nlog-level:")
    dut.start()
    lan, wan, alt = (dut.wires[name] for name in ("lan", "wan", "alt"))
    dut.route(NET, via=wan.peer4, wire=wan)
    dut.route(NET6, via=alt.peer6, wire=alt)
    frames = [lan.flow_frames(dst, [(5000 + n, 4001) for n in range(600)]) for dst in (HOST, HOST6)]
    probes = [frames[n % 5 == 0][n] for n in range(600)]

    dut.daemon.process.send_signal(signal.SIGSTOP)
    lan.send(*probes)
    dut.daemon.process.send_signal(signal.SIGCONT)

    for out, wanted in ((wan, [p for n, p in enumerate(probes) if n % 5]), (alt, probes[::5])):
        tokens = [token_of(p) for p in wanted]
        eventually(lambda o=out, t=tokens[-1]: o.got(t), 5, 0.01, "the last one left")
        dut.fence(lan)
        came = [token_of(d) for d in out.got() if token_of(d) in set(tokens)]
        assert came == tokens
