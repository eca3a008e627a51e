# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the scenarios that filter packets (see claims.py)."""

import json
import signal

from lab import evidence, steps
from lab.evidence import check, wait_for
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
    seen = lambda: counted(lab, comment)[0] - before  # noqa: E731
    what = f"3 packets of {source} dropped by the rule {comment}"
    wait_for(what, lambda: seen() >= 3, seen, LOGS)
    check((got, seen()) == (0, 3), what, (got, seen()), LOGS)


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
        past = evidence.forwarded(lab)
        sent = probe.udp_flows(lab.ns["c1"], address, 200)
        passed = lambda p=past: evidence.forwarded(lab) - p  # noqa: E731
        wait_for(f"{sent} packets of UDP forwarded", lambda s=sent, p=passed: p() >= s, passed, LOGS)
        quiet = counted(lab, comment)[0] - before - seen
        check(quiet == 0, f"{sent} packets of UDP to pass the policer", quiet, LOGS)
        yield f"300 pings of c1 to {address} at once: {got} answered, the policer dropped {seen}; UDP passes."
    total = lab.dp.counter("drop", "filter")
    check(total > 300, "the drops by the reason filter", total, LOGS)
    yield f"`fpmctl show drops` has {total} packets of the reason filter."


ATTACKED = ["203.0.113.10", "2001:db8:c::10"]
FLOWS = {
    "drop4": "destination 203.0.113.10/32 protocol =17 destination-port =9",
    "drop6": "destination 2001:db8:c::10/128 protocol =17 destination-port =9",
    "limit4": "destination 203.0.113.10/32 protocol =1 icmp-type =8",
    "foreign4": "destination 198.51.100.9/32",
}


def flowspec(lab):
    """A customer filters the packets to its own hosts by flow specifications, and to no others."""
    told = lambda: _told(lab)  # noqa: E731
    steps.bgp_up(lab, "192.0.2.6")
    steps.in_fib(lab, "203.0.113.0/24", "2001:db8:c::/48")
    wait_for("the session of ExaBGP", lambda: told()["sessions"] == {"127.0.0.1": "up"}, told, ("bgpd",))
    check(told()["flows"] == [], "no flow specification", told(), LOGS)
    for host in ATTACKED:
        check(_arrived(lab, host) == 100, f"100 packets of UDP at {host}", "fewer", LOGS)
    yield "BGP with c1 and with ExaBGP is Established. Without flow specifications UDP reaches c1."

    _announce(lab, "enable", drop4="installed", drop6="installed")
    for host, name in zip(ATTACKED, ("drop4", "drop6")):
        check(_arrived(lab, host) == 0, f"no packet of UDP at {host}", "some", LOGS)
        at_rule = lambda n=name: counted(lab, FLOWS[n])  # noqa: E731
        wait_for("100 packets at the rule", lambda a=at_rule: a()[0] >= 100, at_rule, LOGS)
        check(at_rule() == [100], "100 packets at the rule", at_rule(), LOGS)
    seen = evidence.crossing(lab, "isp", ATTACKED, "cust0")
    yield f"c1 announces two flows: 100 packets of UDP to port 9 in each family are dropped. Pings pass: {seen}"

    _announce(lab, "enable", limit4="installed", foreign4="not validated: no unicast route")
    got, _ = probe.ping(lab.ns["isp"], ATTACKED[0], 100, 2)
    check(2 <= got <= 60, "a part of 100 pings answered", got, LOGS)
    yield f"A flow with 1000 octets a second passes {got} of 100 pings at once."
    yield "A flow for a destination that c1 does not announce is refused by name."

    _announce(lab, "disable", drop4=None, drop6=None, limit4=None, foreign4=None)
    check(_arrived(lab, ATTACKED[0]) == 100, "100 packets of UDP again", "fewer", LOGS)
    _announce(lab, "enable", drop4="installed")
    lab.birds["c1"].end(signal.SIGKILL)
    wait_for("no flow without BIRD", lambda: told()["flows"] == [], told, ("bgpd",))
    lab.birds["c1"].start()
    steps.bgp_up(lab, "192.0.2.6")
    steps.in_fib(lab, "203.0.113.0/24", "2001:db8:c::/48")
    _announce(lab, "enable", drop4="installed", drop6="installed")
    yield "Withdrawn flows filter nothing, nor do those of a BIRD that was killed. It starts again: they are back."


def _told(lab):
    """Return the status of fpm-flowspec."""
    try:
        with open(lab.path("flowspec", "status.json"), encoding="utf-8") as file:
            return json.load(file)
    except OSError:
        return {"sessions": {}, "flows": []}


def _announce(lab, verb, **flows):
    """Enable or disable protocols of BIRD, and wait until their flows have these states, in
    fpm-flowspec and in the dataplane: "installed", a part of the reason why not, or None."""
    for name in flows:
        lab.birds["c1"].birdc(verb, name)

    def there():
        states = {row["match"]: row["reason"] or row["state"] for row in _told(lab)["flows"]}
        rules = {row["comment"] for row in lab.dp.show("filter") if row["kind"] == "rule"}
        right = all((state or "") in states.get(FLOWS[name], "") for name, state in flows.items())
        gone = all(FLOWS[name] not in states for name, state in flows.items() if state is None)
        return right and gone and all((FLOWS[n] in rules) == (s == "installed") for n, s in flows.items())

    wait_for(f"the flows {flows}", there, lambda: _told(lab)["flows"], ("bgpd", "dataplane"))
    # A forwarder that is within a round uses the old rules until the round ends. No flow filters this ping.
    once = lambda: probe.ping(lab.ns["isp"], ATTACKED[1], 1, 1)[0]  # noqa: E731
    wait_for(f"an answer from {ATTACKED[1]}", once, lambda: "nothing", LOGS)


def _arrived(lab, host):
    """Send 100 packets of UDP from isp to port 9 of a host of c1. Return how many arrive."""
    with probe.UdpSink(lab.ns["c1"], host) as sink:
        before = lab.dp.counter("drop", "filter")
        sent = probe.udp_flows(lab.ns["isp"], host, 100)
        seen = lambda: sink.count() + lab.dp.counter("drop", "filter") - before  # noqa: E731
        wait_for(f"{sent} packets at {host} or dropped", lambda: seen() >= sent, seen, LOGS, 5)
        return sink.count()
