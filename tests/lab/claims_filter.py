# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios that filter packets (see claims.py)."""

from lab import evidence, steps
from lab.evidence import check
from lib import probe

LOGS = ("dataplane",)
HOSTS = ["192.88.0.9", "2001:db8:c0::9"]


def counted(lab, *comments):
    """Return the packets of the rules with these comments."""
    rows = {row["comment"]: row["packets"] for row in lab.dp.show("filter") if row["kind"] == "rule"}
    return [rows[comment] for comment in comments]


def dropped(lab, node, source, address, comment):
    """Ping three times from a source address. Check that no ping is answered, and that the rule with
    this comment has dropped them."""
    before = counted(lab, comment)[0]
    got, _ = probe.ping(lab.ns[node], address, 3, 1, source)
    seen = counted(lab, comment)[0] - before
    check((got, seen) == (0, 3), f"3 packets of {source} dropped by the rule {comment}", (got, seen), LOGS)


def edge_filter(lab):
    """Customers send from their own prefixes only; bogons and floods of pings are dropped."""
    steps.in_fib(lab, "0.0.0.0/0", "::/0")
    row = lab.dp.show("filter")[0]
    check(row["state"] == "in-force", "the table in force", row, LOGS)
    yield f"The table {row['table']} is in force: {row['rules']} rules in {row['chains']} chains."
    for node in ("c1", "c2"):
        yield f"{node} pings beyond isp: {evidence.crossing(lab, node, HOSTS, 'wan0')}"

    for source, address in zip(("203.0.113.66", "2001:db8:b::66"), HOSTS):
        dropped(lab, "c1", source, address, "BCP 38, customer c1")
    spoofed = counted(lab, "BCP 38, customer c1")[0]
    dropped(lab, "c1", "203.0.113.66", "203.0.113.10", "BCP 38, customer c1")
    yield f"c1 sends from addresses of c2: {spoofed} packets to isp and 3 to c2 are dropped and counted."

    dropped(lab, "isp", "10.1.2.3", "198.51.100.10", "bogon source")
    dropped(lab, "isp", "fc00:9::9", "2001:db8:a::10", "bogon source, IPv6")
    dropped(lab, "c2", "", "192.168.1.1", "bogon destination")
    dropped(lab, "c2", "", "fd00::1", "bogon destination, IPv6")
    yield "Bogons as sources from isp and as destinations of customers are dropped, both families."

    for address, comment in zip(HOSTS, ("policer of pings", "policer of pings, IPv6")):
        before = counted(lab, comment)[0]
        got, _ = probe.ping(lab.ns["c1"], address, 300, 2)
        seen = counted(lab, comment)[0] - before
        check(got + seen == 300 and 30 <= got < 200, "most of 300 pings at once dropped", (got, seen), LOGS)
        sent = probe.udp_flows(lab.ns["c1"], address, 200)
        quiet = counted(lab, comment)[0] - before - seen
        check(quiet == 0, f"{sent} packets of UDP to pass the policer", quiet, LOGS)
        yield f"300 pings of c1 to {address} at once: {got} answered, the policer dropped {seen}; UDP passes."
    total = lab.dp.counter("drop", "filter")
    check(total > 300, "the drops by the reason filter", total, LOGS)
    yield f"`fpmctl show drops` has {total} packets of the reason filter."
