# SPDX-License-Identifier: BSD-3-Clause
"""Label stacks up to the 16 labels that FRR sends (MPLS_MAX_LABELS): up to 14 labels fit in one
cache line, and the fast path writes them. Longer stacks take the slow path."""

import ipaddress

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from labels import DEEP, TAKES_LABELS, LabelRouter, behind, entries_of, with_labels
from lib import api
from lib.wait import eventually
from router import running
from test_capture import capture
from watching import Watching
from wire import token_of

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
DEPTHS = [14, 15, 16]


@pytest.fixture(scope="module")
def deep_router(possible):
    """The router of this file."""
    with running(LabelRouter(name="labeldeep"), TAKES_LABELS) as router:
        yield router


@pytest.fixture
def dut(deep_router):
    """The router in its standard state, without labels."""
    deep_router.ready()
    yield deep_router
    assert deep_router.alive(), "the daemon died"


def labels_of(frame):
    """Return the labels of a frame, outermost first."""
    return [e[0] for e in entries_of(frame)]


def words_of(labels):
    """Return the words of fpmctl for labels."""
    return "label " + "/".join(map(str, labels))


def unfolded(text):
    """Return a text of fpmctl on one line. A line may end within a list of labels."""
    return " ".join(text.split()).replace("/ ", "/")


def pushed(labels, ttl, tc, bottom=1):
    """Return the entries of pushed labels; the last one has S unless labels follow."""
    return [(label, ttl, tc, bottom * (n == len(labels) - 1)) for n, label in enumerate(labels)]


def push(dut, wire, labels, via=None):
    """Let the routes to NET and NET6 push labels toward the neighbor on a wire."""
    for net in (NET, NET6):
        dut.route(net, nhid=dut.zebra.hop(via or wire.peer4, wire, labels=labels))


@pytest.mark.parametrize("n", DEPTHS)
def test_a_route_pushes_each_label_of_a_deep_stack(dut, lan, wan, n):
    """Each label has the TTL and the precedence of the packet, S is on the last one. The packet
    behind them is unchanged but for its TTL."""
    push(dut, wan, DEEP[:n])
    for probe in (lan.probe(HOST, ttl=20, tos=0xB8), lan.probe(HOST6, hlim=20, tc=0xB8)):
        came = dut.forwarded(lan, probe, wan)
        assert entries_of(came) == pushed(DEEP[:n], 19, 5)
        layer = IP if IP in probe else IPv6
        inner = layer(behind(came))
        assert bytes(inner.payload) == bytes(probe[layer].payload)
        assert (inner.ttl if layer is IP else inner.hlim) == 19
        assert (came[Ether].src, came[Ether].dst) == (wan.port_mac, wan.mac)


@pytest.mark.parametrize("n", DEPTHS)
@pytest.mark.parametrize("below", [[], [(300, 7, 2)], [(300 + i, 7, 2) for i in range(16)]])
def test_a_label_becomes_a_deep_stack(dut, lan, wan, n, below):
    """A label is swapped for a deep stack. The labels below it stay, so none of the new labels has
    S."""
    dut.label(100, dut.hop(wan, DEEP[:n]))
    sent = with_labels(lan.probe(HOST), (100, 9, 3), *below)

    came = dut.forwarded(lan, sent, wan)

    stay = [(*entry, int(i == len(below) - 1)) for i, entry in enumerate(below)]
    assert entries_of(came) == pushed(DEEP[:n], 8, 3, bottom=not below) + stay
    assert behind(came) == behind(sent)


def test_a_popped_label_leads_to_a_route_with_sixteen_labels(dut, lan, wan):
    """A label that leads to table main is replaced by the labels of the route there. Only the labels
    of this route count for the limit of 16, not the popped labels."""
    dut.label(100, {"oif": 1})
    push(dut, wan, DEEP)

    for host in (HOST, HOST6):
        sent = with_labels(lan.probe(host), (100, 9), (0, 8))
        assert entries_of(dut.forwarded(lan, sent, wan)) == pushed(DEEP, 7, 0)


def test_packets_of_all_depths_arrive_together(dut, lan, wan):
    """Packets to next hops with 1 to 16 labels follow each other: each has the labels of its route,
    whether the fast path or the slow path writes them."""
    for n in range(1, 17):
        nhid = dut.zebra.hop(wan.peer4, wan, labels=DEEP[:n])
        dut.zebra.add(f"203.0.{n}.0/24", nhid)
        dut.label(100 + n, dut.hop(wan, DEEP[:n]))
    dut.in_force("203.0.16.0/24")
    sent = [
        with_labels(lan.probe(HOST), 100 + n) if swap else lan.probe(f"203.0.{n}.9")
        for _ in range(4)
        for n in range(1, 17)
        for swap in (False, True)
    ]

    lan.send(*sent)
    dut.fence(lan)

    got = wan.got()
    for i, probe in enumerate(sent):
        (came,) = [f for f in got if token_of(probe) in f]
        assert entries_of(came) == pushed(DEEP[: i // 2 % 16 + 1], 63, 0), i


def test_next_hops_of_one_route_may_push_one_label_and_sixteen(dut, lan, wan, alt):
    """Each flow has the labels of its next hop."""
    hops = [dut.zebra.hop(w.peer4, w, labels=x) for w, x in ((wan, DEEP[:1]), (alt, DEEP))]
    dut.route(NET, nhid=dut.zebra.group(hops))

    lan.send(*(lan.probe(HOST, sport=7000 + n) for n in range(40)))
    dut.fence(lan)

    by = [[labels_of(f) for f in w.got() if entries_of(f)] for w in (wan, alt)]
    assert sum(map(len, by)) == 40 and min(map(len, by)) >= 5
    assert set(map(tuple, by[0])) == {tuple(DEEP[:1])} and set(map(tuple, by[1])) == {tuple(DEEP)}


@pytest.mark.parametrize("to", [DEEP[:1], DEEP[:15]])
def test_sixteen_labels_are_replaced_without_loss(dut, lan, wan, alt, to):
    """Each packet has the old labels or the new ones, none is lost, none has labels of both."""
    nhid = dut.zebra.hop(wan.peer4, wan, labels=DEEP)
    dut.route(NET, nhid=nhid)
    for n in range(400):
        if n % 20 == 10:
            out, labels = ((alt, to), (wan, DEEP))[n // 20 % 2]
            dut.zebra.hop(out.peer4, out, nhid=nhid, labels=labels)
        lan.send(lan.probe(HOST))
    dut.fence(lan)

    by = [[tuple(labels_of(f)) for f in w.got() if entries_of(f)] for w in (wan, alt)]
    assert sum(map(len, by)) == 400
    assert set(by[0]) == {tuple(DEEP)} and set(by[1]) == {tuple(to)}


@pytest.mark.parametrize("n", [15, 16])
def test_the_mtu_counts_all_labels(dut, lan, wan, n):
    """A packet that fits with its labels leaves. The sender of a larger packet of IPv6, or of IPv4
    with DF, receives an error with the MTU of the link less the labels."""
    push(dut, wan, DEEP[:n])
    room = 1500 - 4 * n

    for host, more in ((HOST, {"flags": "DF"}), (HOST6, {})):
        came = dut.forwarded(lan, lan.probe(host, size=room, **more), wan)
        assert labels_of(came) == DEEP[:n] and len(came) == 1514
    lan.send(lan.probe(HOST, size=room + 1, flags="DF"))
    error = lan.expect(lambda f: IP in Ether(f) and ICMP in Ether(f), 2)
    assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, room)
    lan.send(lan.probe(HOST6, size=room + 1))
    error = lan.expect(lambda f: IPv6 in Ether(f) and Ether(f)[IPv6].nh == 58
                       and bytes(Ether(f)[IPv6].payload)[0] == 2, 2)  # fmt: skip
    assert int.from_bytes(bytes(error[IPv6].payload)[4:8], "big") == room


@pytest.mark.parametrize("n", [15, 16])
def test_each_fragment_has_all_labels(dut, lan, wan, n):
    """Each fragment has all labels if a route pushes them onto the packet, and if they replace the
    label of the packet."""
    push(dut, wan, DEEP[:n])
    dut.label(100, dut.hop(wan, DEEP[:n]))
    for frame in (
        lan.probe(HOST, size=1500),
        with_labels(lan.probe(HOST, size=1496), 100),
        with_labels(lan.probe(HOST, size=1436), 100, *range(300, 315)),
    ):
        wan.clear()
        lan.send(frame)
        dut.fence(lan)
        pieces = [f for f in wan.got() if entries_of(f)]
        below = labels_of(frame)[1:]
        assert [labels_of(f) for f in pieces] == [DEEP[:n] + below] * 2
        parts = sorted((IP(behind(f)) for f in pieces), key=lambda p: p.frag)
        assert b"".join(bytes(p.payload) for p in parts) == bytes(frame[IP].payload)
        assert all(len(f) <= 1514 for f in pieces)


def test_a_packet_waits_for_its_neighbor_with_sixteen_labels(dut, lan, wan):
    """The kernel resolves an unknown neighbor, then the packets leave with their labels."""
    fresh = str(ipaddress.ip_network(wan.host4)[12])
    push(dut, wan, DEEP, via=fresh)
    dut.label(100, dut.hop(wan, DEEP, via=fresh))
    sent = [lan.probe(HOST), lan.probe(HOST6), with_labels(lan.probe(HOST), 100)]

    wan.answer(fresh)
    lan.send(*sent)

    for frame in sent:
        assert entries_of(wan.expect(token_of(frame), 3)) == pushed(DEEP, 63, 0)


@pytest.mark.parametrize("n", [0, 7, 15])
def test_an_error_goes_on_with_the_labels_that_replace_the_label(dut, lan, wan, n):
    """RFC 3032, 2.3.2: the ICMP error about an expired packet takes the path of its label, which
    pushes 16 labels. It quotes the stack as it came."""
    dut.label(100, dut.hop(wan, DEEP))
    below = [300 + i for i in range(n)]

    lan.send(with_labels(lan.probe(HOST), (100, 1), *below))
    came = wan.expect(lambda f: entries_of(f) and IP(behind(f)).proto == 1, 2)

    assert labels_of(came) == DEEP + below
    error = IP(behind(came))
    assert (error[ICMP].type, error.dst) == (11, lan.peer4)
    extension = bytes(error[ICMP])[8 + bytes(error[ICMP])[5] * 4 :]
    words = [int.from_bytes(extension[i : i + 4], "big") for i in range(8, len(extension), 4)]
    assert [word >> 12 for word in words] == [100, *below]


@pytest.mark.parametrize("n", [17, 30])
def test_more_labels_than_frr_sends_are_refused_and_counted(dut, lan, wan, n):
    """Linux pushes up to 30 labels, this router 16. The route with more is shown as unsupported, and
    its packets are dropped and counted. It is used once its next hop has fewer."""
    stack = range(16, 16 + n)
    nhid = dut.zebra.hop(wan.peer4, wan, labels=stack)
    dut.route(NET, nhid=nhid)
    dut.zebra.send(dut.zebra.label_message(100, dut.hop(wan, stack)))
    eventually(lambda: dut.label_row(100), 5, 0.005)

    assert dut.not_forwarded(lan, lan.probe(HOST)) == {"unsupported_encap": 1}
    # The ICMP error about a packet with a label takes the path of the label. This label has no path,
    # so the error is dropped, too.
    labelled = with_labels(lan.probe(HOST), 100)
    assert dut.not_forwarded(lan, labelled) == {"unsupported_encap": 1, "no_route": 1}
    assert dut.route_row(NET)["state"] == dut.label_row(100)["state"] == "unsupported"
    eventually(lambda: dut.control.ask("encaps") == [], 5, 0.02, "no entry of labels")
    (row,) = dut.control.request({"explain": {"port": lan.tap, "frame": bytes(lan.probe(HOST)).hex()}})
    assert (row["path"], row["reason"]) == ("unsupported", "unsupported_encap")

    dut.zebra.hop(wan.peer4, wan, nhid=nhid, labels=DEEP)
    eventually(lambda: dut.route_row(NET)["state"] == "forwarding", 5, 0.005)
    assert labels_of(dut.forwarded(lan, lan.probe(HOST), wan)) == DEEP


@pytest.mark.parametrize("n", [15, 16])
def test_each_view_shows_all_labels(dut, lan, wan, n):
    """`show labels`, `encaps`, `routes` and `nexthops`, and explain, trace and capture show all
    labels. The addresses that trace and capture select are those of the packet behind the labels."""
    stack = DEEP[:n]
    push(dut, wan, stack)
    dut.label(100, dut.hop(wan, stack))
    for what in ("encaps", "labels", "routes", "nexthops"):
        rows = dut.control.ask(what)
        api.validate(rows, api.rows_schema("GET", f"/{what}")[1]["schema"])
    encap = dut.only_encap()
    assert (encap["labels"], encap["via"], encap["dev"]) == (stack, wan.peer4, wan.tap)
    assert encap["nexthops"] == 3
    for view in (("encaps",), ("labels",), ("routes", NET), ("nexthops",)):
        shown = unfolded(dut.fpmctl("show", *view).stdout)
        assert f"{words_of(stack)} via {wan.peer4}" in shown, (view, shown)

    plain, labelled = lan.probe(HOST), with_labels(lan.probe(HOST), (100, 9), 400)
    for frame, pops, ttl in ((plain, None, 63), (labelled, 1, 8)):
        (row,) = dut.control.request({"explain": {"port": lan.tap, "frame": bytes(frame).hex()}})
        assert (row["push"], row.get("pops"), row["out_ttl"]) == (stack, pops, ttl)
        assert (row["path"], row["via"], row["verdict"]) == ("labels", wan.peer4, "forwarded")
    shown = dut.fpmctl("explain", "dst", HOST, "port", lan.tap).stdout
    assert words_of(stack).replace("label", "pushed:") in unfolded(shown), shown

    for frame, labels in ((plain, None), (labelled, [100, 400])):
        with Watching(dut, trace={"dst": HOST, "count": 1}) as watch:
            lan.send(frame)
            (row,) = watch.take(1)
        assert (row.get("labels"), row["push"], row["via"]) == (labels, stack, wan.peer4)
    ((_, _, left, *_),) = capture(dut, lan, [plain], 1, dst=HOST, points=["tx"])
    assert labels_of(left) == stack and token_of(plain) in left


def test_audit_compares_sixteen_labels_with_zebra(dut, wan, tmp_path):
    """audit agrees with zebra's table of labels, and finds a label that differs in the last place."""
    table = '{"100": {"inLabel": 100, "installed": true, "nexthops": [{"type": "SR (IS-IS)", ' \
            '"outLabel": %d, "outLabelStack": %s, "installed": true, "nexthop": "%s"}]}}'  # fmt: skip
    (tmp_path / "mpls.json").write_text(table % (DEEP[0], DEEP, wan.peer4))
    script = tmp_path / "vtysh"
    script.write_text(
        'case "$*" in *route) ;; *summary*) echo \'{"routes": []}\' ;;'
        f" *mpls*) cat {tmp_path}/mpls.json ;; *) echo '{{}}' ;; esac\n"
    )
    audit = lambda: dut.fpmctl("audit", "--vtysh", f"sh {script}")  # noqa: E731
    dut.label(100, dut.hop(wan, DEEP))
    done = audit()
    assert done.returncode == 0, done
    assert "labels  1 of zebra, 1 in the dataplane: 0 differ" in done.stdout, done

    other = DEEP[:15] + [DEEP[15] + 1]
    dut.label(100, dut.hop(wan, other))
    done = audit()
    assert done.returncode == 3, done
    text = unfolded(done.stdout)
    ours, zebras = words_of(other), words_of(DEEP)
    via = f"via {wan.peer4}"
    assert f"DIFFERS label 100: zebra has {via} {zebras}, the dataplane has {via} {ours}" in text, text
