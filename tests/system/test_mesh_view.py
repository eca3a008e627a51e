# SPDX-License-Identifier: BSD-3-Clause
"""One view of four routers: the Prometheus of docker/compose-four.yaml with its own file four.yml, and the
queries of both dashboards. The routers are in network namespaces in place of containers.

`make prometheus` unpacks Debian's Prometheus. Without it the test is skipped.
"""

import json
import os
import shutil
import urllib.parse

import pytest

from gateways import HOST, NET
from lib import netns, procs
from lib.dashboard import MESH, answers, filled_in, queries, without_their_labels
from lib.dataplane import ROOT
from lib.wait import eventually
from router import Router
from test_metrics import BIN, get, needs_prometheus

BOXES = ("r1", "r2", "r3", "r4")
TARGETS = {f"{box}:9620" for box in BOXES}
CONFIG = f"{ROOT}/docker/prometheus"


class Box(Router):
    """A router with the ports lan0 and three mesh ports."""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.names = ("lan", "mesh1", "mesh2", "mesh3")


class View:
    """A namespace that reaches the metrics of all boxes, and Prometheus in it."""

    def __init__(self, boxes, folder):
        self.ctl = f"fdp-view-{os.getpid()}"
        netns.command(["ip", "netns", "add", self.ctl])
        self.boxes, self.folder, self.child = boxes, str(folder), None
        netns.ip_batch(["link set lo up", "link add br0 type bridge", "link set br0 up",
                        "addr add 10.99.0.254/24 dev br0"], self.ctl)  # fmt: skip
        for n, box in enumerate(boxes, 1):
            netns.ip_batch([f"link add v{n} type veth peer name eth0 netns {box.ctl}",
                            f"link set v{n} master br0", f"link set v{n} up"], self.ctl)  # fmt: skip
            netns.ip_batch([f"addr add 10.99.0.{n}/24 dev eth0", "link set eth0 up"], box.ctl)

    def start(self, config=f"{CONFIG}/four.yml"):
        """Start Prometheus with a configuration, by default four.yml, and a file of hosts for its targets."""
        with open(f"{self.folder}/hosts", "w", encoding="ascii") as file:
            file.writelines(f"10.99.0.{n} {box}\n" for n, box in enumerate(BOXES, 1))
        run = (f"mount --bind {self.folder}/hosts /etc/hosts && exec {BIN}/prometheus "
               f"--config.file={config} --storage.tsdb.path={self.folder}/db "
               "--web.listen-address=127.0.0.1:9090 --log.level=warn")  # fmt: skip
        argv = ["unshare", "--mount", "sh", "-c", run]
        self.child = procs.start(argv, self.folder, f"{self.folder}/log", netns=self.ctl)

    def page(self, path):
        """Return the data of a page of Prometheus."""
        return json.loads(get(self, "127.0.0.1:9090", f"/api/v1/{path}"))["data"]

    def ask(self, query):
        """Return the rows that answer a query."""
        return self.page("query?query=" + urllib.parse.quote(query))["result"]

    def close(self):
        """End Prometheus and remove the namespace."""
        if self.child:
            self.child.kill()
            self.child.wait()
        netns.command(["ip", "netns", "del", self.ctl])


@pytest.fixture
def view(own_dut, tmp_path):
    boxes = [own_dut(kind=Box, metrics="0.0.0.0:9620") for _ in BOXES]
    for box in boxes:
        box.start()
    made = View(boxes, tmp_path)
    try:
        yield made
    finally:
        made.close()


def of_all(labels):
    """Return true if the rows that name a router name all four."""
    named = {label["instance"] for label in labels if "instance" in label}
    return labels and (named == TARGETS or not named)


@needs_prometheus
def test_prometheus_scrapes_four_routers_and_fills_both_dashboards(view):
    """All four targets are up, the alerts of a router and of a mesh are loaded without an error, and each
    query of both dashboards has data of all four routers. The view of the mesh shows that one link of the
    first router has all of its traffic."""
    view.start()
    first = view.boxes[0]
    lan, mesh = first.wires["lan"], first.wires["mesh1"]
    first.route(NET, via=mesh.peer4, wire=mesh)
    up = lambda: {row["metric"]["instance"] for row in view.ask('up{mesh="four"} == 1')}  # noqa: E731
    eventually(lambda: up() == TARGETS, 60, 0.5, "all four are scraped")

    rules = [rule for group in view.page("rules")["groups"] for rule in group["rules"]]
    assert {"MeshLinkBusy", "MeshLinkIdle", "BoxBusy", "TablesDiffer"} <= {rule["name"] for rule in rules}
    assert [rule for rule in rules if rule["health"] == "err"] == []

    assert without_their_labels(answers(view.ask, of_all, 120)) == []
    wanted, found = {filled_in(query) for query, _ in queries(MESH)}, set()

    def shown():
        for query in wanted - found:
            if of_all([row["metric"] for row in view.ask(query)]) or "> 0" in query:
                found.add(query)
        return found == wanted

    eventually(shown, 120, 0.5, "every query of the mesh has data of all four")

    link = f'rate(fpmdp_port_tx_packets_total{{instance="r1:9620",port=~"mesh.+"}}[1m])'

    def share():
        lan.send(*(lan.probe(HOST) for _ in range(64)))
        first.fence(lan)
        rates = {row["metric"]["port"]: float(row["value"][1]) for row in view.ask(link)}
        return rates.get("mesh10", 0) > 1.5 * sum(rates.values()) / 3

    eventually(share, 60, 0.5, "mesh10 of r1 has more than 1.5 times the average")


def quick(folder):
    """Copy the configuration with seconds in place of the minutes of the mesh's alerts. Returns its path."""
    made = f"{folder}/quick"
    shutil.copytree(CONFIG, made)
    with open(f"{made}/mesh.yml", encoding="utf-8") as file:
        text = file.read()
    assert text.count("[5m]") == 6 and text.count("for: 5m") == 4
    with open(f"{made}/mesh.yml", "w", encoding="utf-8") as file:
        file.write(text.replace("[5m]", "[20s]").replace("for: 5m", "for: 10s"))
    with open(f"{made}/four.yml", encoding="utf-8") as file:
        text = file.read()
    with open(f"{made}/four.yml", "w", encoding="utf-8") as file:
        file.write(text.replace("scrape_interval: 5s", "scrape_interval: 5s\n  evaluation_interval: 5s"))
    return f"{made}/four.yml"


@needs_prometheus
def test_the_alerts_of_the_mesh_fire_while_it_is_uneven(view):
    """The first router sends all of its traffic by one mesh link, and only it has a route. MeshLinkBusy fires
    for this link, MeshLinkIdle for its two others, and TablesDiffer. All end when the traffic is spread
    and the other routers have the route."""
    view.start(quick(view.folder))
    first = view.boxes[0]
    lan = first.wires["lan"]
    links = [first.wires[name] for name in ("mesh1", "mesh2", "mesh3")]
    frames = [bytes(lan.probe(HOST, sport=4000 + n, size=1400)) for n in range(240)]

    def firing():
        lan.send(*frames)
        first.fence(lan)
        rows = [row for row in view.page("alerts")["alerts"] if row["state"] == "firing"]
        names = [row["labels"] for row in rows if "mesh" in row["labels"]]
        return {(row["alertname"], row.get("instance"), row.get("port")) for row in names}

    first.route(NET, via=links[0].peer4, wire=links[0])
    uneven = {("MeshLinkBusy", "r1:9620", "mesh10"), ("MeshLinkIdle", "r1:9620", "mesh20"),
              ("MeshLinkIdle", "r1:9620", "mesh30"), ("TablesDiffer", None, None)}  # fmt: skip
    eventually(lambda: firing() == uneven, 120, 0, "the alerts of an uneven mesh")

    for box in view.boxes[1:]:
        box.route(NET, via=box.wires["mesh1"].peer4, wire=box.wires["mesh1"])
    hops = [first.zebra.hop(wire.peer4, wire) for wire in links]
    first.route(NET, nhid=first.zebra.group(hops))
    eventually(lambda: firing() == set(), 120, 0, "the alerts end")
