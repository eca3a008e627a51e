# SPDX-License-Identifier: BSD-3-Clause
"""The dashboard of docker/grafana as Grafana puts its questions to Prometheus."""

import json
import re

from lib.docs import ROOT
from lib.wait import eventually

GRAFANA = ROOT / "docker" / "grafana"
FILE = GRAFANA / "dashboards" / "fpm-dataplane.json"


def dashboard():
    """The file."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def queries():
    """All that it asks Prometheus: [(query, legend)]."""
    targets = [target for panel in dashboard()["panels"] for target in panel["targets"]]
    return [(target["expr"], target["legendFormat"]) for target in targets]


def filled_in(query):
    """A query with values for Grafana's variables: all routers, a minute."""
    return query.replace("$__rate_interval", "1m").replace("$instance", ".*")


def answers(ask, is_enough=bool, timeout=60):
    """What each query is answered with, {query: labels of its series}, when all have enough; those
    that leave out what is zero may have none. `ask(query)` gives the rows of an answer."""
    wanted, found = {filled_in(query) for query, _ in queries()}, {}

    def answered():
        for query in wanted - found.keys():
            labels = [row["metric"] for row in ask(query)]
            if is_enough(labels) or "> 0" in query:
                found[query] = labels
        return found.keys() == wanted

    eventually(answered, timeout, 0.5, "every query of the dashboard is answered")
    return found


def without_their_labels(found):
    """Queries that have a series without a label which their legend names."""
    return [
        query
        for query, legend in queries()
        for labels in found[filled_in(query)]
        if not set(re.findall(r"{{(\w+)}}", legend)) <= labels.keys()
    ]
