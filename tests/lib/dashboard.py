# SPDX-License-Identifier: BSD-3-Clause
"""The dashboards of docker/grafana, with the queries that Grafana sends to Prometheus."""

import json
import re

from lib.docs import ROOT
from lib.wait import eventually

GRAFANA = ROOT / "docker" / "grafana"
FILE = GRAFANA / "dashboards" / "fpm-dataplane.json"
MESH = GRAFANA / "mesh" / "mesh.json"
# The metrics of features that a router may not have.
OPTIONAL = ("fpmdp_bfd_", "fpmdp_flowspec_", "fpmdp_interface_")


def dashboard(file=FILE):
    """Return the file of a dashboard as JSON."""
    return json.loads(file.read_text(encoding="utf-8"))


def queries(file=FILE):
    """Return all queries of a dashboard: [(query, legend)]."""
    targets = [target for panel in dashboard(file)["panels"] for target in panel["targets"]]
    return [(target["expr"], target["legendFormat"]) for target in targets]


def filled_in(query):
    """Return the query with values for Grafana's variables: all routers, all meshes, a minute."""
    query = query.replace("$__rate_interval", "1m").replace("$instance", ".*")
    return query.replace("$mesh", ".+")


def is_optional(query):
    """Return true if a query asks for the metrics of a feature that a router may not have."""
    return all(name.startswith(OPTIONAL) for name in re.findall(r"fpmdp_\w+", query)) and "fpmdp_" in query


def answers(ask, is_enough=bool, timeout=60, file=FILE, optional=False):
    """Wait until Prometheus has enough series for each query. Return {query: labels of its series}.
    A query that leaves out zeros may have none. `optional`: the router has the features of all queries.
    `ask(query)` returns the rows of an answer."""
    wanted, found = {filled_in(query) for query, _ in queries(file)}, {}

    def answered():
        for query in wanted - found.keys():
            labels = [row["metric"] for row in ask(query)]
            if is_enough(labels) or "> 0" in query or is_optional(query) and not optional:
                found[query] = labels
        return found.keys() == wanted

    eventually(answered, timeout, 0.5, "every query of the dashboard is answered")
    return found


def without_their_labels(found, file=FILE):
    """Return the queries with a series that lacks a label of the query's legend."""
    return [
        query
        for query, legend in queries(file)
        for labels in found[filled_in(query)]
        if not set(re.findall(r"{{(\w+)}}", legend)) <= labels.keys()
    ]
