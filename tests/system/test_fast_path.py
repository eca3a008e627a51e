# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder never allocates, locks, logs or makes a system call while packets come. The tests check
the symbols that its objects call, and the system calls of a forwarder that is never idle."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from lib.dataplane import ROOT
from lib.wait import eventually
from test_idle import forwarders

# The symbols of other objects that the objects of the forwarders and of the lookup may call: {pattern
# of names: reason}.
ALLOWED = {
    "fib_(resolve(_in_vrf|_ip|_packet)?|route_vrf|host_adj|onlink|iface_has_linklocal)": "reads tables, under QSBR",
    "fib_(rules|label)_walk|fib_rules_table|fib_label_hash": "reads rules, labels and tables, under QSBR",
    "fib_headend_(begin|resolve|mtu|pmtu)": "reads tables, under QSBR; writes into its result",
    "ipaddr_equal": "compares two addresses",
    "fib_sid_number_find": "reads the numbers of SIDs, under QSBR",
    "fib_tunnel_(find|resolve|mtu|ecn)": "reads tables, under QSBR; writes into the packet",
    "fib_tunnel_(is_told|take_told)": "reads and decrements an atomic count of the tunnel",
    "fib_vxlan_(begin|find|resolve|mtu)": "reads tables, under QSBR",
    "fib_back_group|fib_egress_judge": "reads tables, under QSBR",
    "ruleset_(judge|decide|look|acl_classify4?)": "reads a ruleset, under QSBR",
    "rte_bpf_exec": "interprets a program; it cannot log, as no program divides by a register",
    "peer_\\w+_key|peers_know|kernel_outer_has_\\w+|policer_\\w+|punt_class_info": "words with atomic accesses",
    "rte_pktmbuf_free_bulk|rte_mempool_ops_table": "buffers back to their pool",
    "rte_eth_fp_ops|rte_eth_call_[rt]x_callbacks|port_rxqs_arm": "the port's driver",
    "urcu_qsbr_(quiescent_state|(un)?register_thread)": "QSBR",
    "idle_\\w+|worker_wake": "the edge between idle and busy",
    "watch_\\w+": "fpmctl trace and capture: rings",
    "due_set|clock_gettime": "a heap of the forwarder; the clock, without a system call (vDSO)",
    "mem(cpy|move|set|cmp)|__rte_panic|__cpu_model|_GLOBAL_OFFSET_TABLE_|per_lcore__lcore_id": "C, EAL",
    "pt_isa_best|rte_get_tsc_hz|thread_role|pthread_self|pthread_setname_np": "constants, a name at birth",
    "sched_short_slice|rte_sys_gettid": "at birth",
    "sched_short_slice_again": "gives a lent priority back, at most a thousand times a second",
}


def test_forwarders_call_nothing_that_allocates_locks_logs_or_asks_the_kernel():
    """Every undefined symbol of the objects of the forwarders and of the lookup is in ALLOWED."""
    if os.environ.get("BUILD", "release") != "release":
        pytest.skip("a build with sanitizers calls more symbols")
    objects = glob.glob(f"{ROOT}/build/release/obj/fpm-dataplane/fwd/*.o")
    objects += glob.glob(f"{ROOT}/build/release/obj/poptrie/lookup*.o")
    objects += glob.glob(f"{ROOT}/build/release/obj/poptrie/ranges_*.o")
    assert len(objects) > 10
    said = subprocess.run(
        ["nm", "--format=posix", *objects], capture_output=True, text=True, check=True
    ).stdout
    symbols = re.findall(r"^(\S+) ([A-Za-z])", said, re.M)
    own = {name for name, kind in symbols if kind not in "Uw"}

    wanted = {name for name, kind in symbols if kind in "Uw"} - own

    strange = {name for name in wanted if not re.fullmatch("|".join(ALLOWED), name)}
    assert strange == set()
    needless = [p for p in ALLOWED if not any(re.fullmatch(p, name) for name in wanted)]
    assert needless == []


def test_a_busy_forwarder_makes_no_system_call(own_dut, tmp_path):
    """A busy forwarder makes no system call, except that it wakes a thread that waits for the end of
    a grace period: liburcu does this in the forwarder, once for each grace period. One port gives
    frames without end and has no descriptor; the other ports are quiet."""
    if shutil.which("strace") is None:
        pytest.skip("no strace here")
    router = own_dut()
    with open(router.config, encoding="utf-8") as file:
        text = file.read()
    text = text.replace("net_af_packet,iface=p-lan", "net_null")
    text = re.sub("net_af_packet,iface=p-\\w+", "net_null,no-rx=1", text)
    with open(router.config, "w", encoding="utf-8") as file:
        file.write(text)
    router.daemon.start()
    dropped = lambda: router.counters("drop").get("l2_foreign", 0)  # noqa: E731
    eventually(lambda: dropped() > 100000, 10, 0.05, "frames come")
    (thread,) = forwarders(router)
    record = tmp_path / "calls"

    tracer = subprocess.Popen(
        ["strace", "-o", record, "-p", os.path.basename(thread)], stderr=subprocess.PIPE
    )
    try:
        assert b"attached" in tracer.stderr.readline()
        begin = dropped()
        eventually(lambda: dropped() > begin + 1000000, 20, 0.05, "a million frames")
    finally:
        tracer.terminate()
        tracer.communicate()

    calls = [line for line in record.read_text().splitlines() if "detached" not in line]
    wakes = [line for line in calls if re.match(r"futex\(0x\w+, FUTEX_WAKE, 1\)", line)]
    assert [line for line in calls if line not in wakes] == []
    assert len(wakes) < 10, "grace periods within a million frames"
