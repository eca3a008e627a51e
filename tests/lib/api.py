# SPDX-License-Identifier: BSD-3-Clause
"""Send requests to the HTTP API on its Unix socket and compare the answers with the schema in
dist/openapi.yaml."""

import contextlib
import http.client
import json
import os
import socket
import urllib.parse

import jsonschema
import yaml

from lib.dataplane import ROOT
from lib.wait import PATIENCE

PATH = os.path.join(ROOT, "fpm-dataplane", "dist", "openapi.yaml")
with open(PATH, encoding="utf-8") as _file:
    SPEC = yaml.safe_load(_file)


class Connection(http.client.HTTPConnection):
    """HTTP on the Unix socket `path`."""

    def __init__(self, path, timeout=10 * PATIENCE):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def operations():
    """Return all operations of the API: {(method, path): its object in the specification}."""
    methods = ("get", "post", "put", "patch", "delete")
    return {
        (method.upper(), path): said
        for path, item in SPEC["paths"].items()
        for method, said in item.items()
        if method in methods
    }


def validate(value, schema):
    """Compare a value with a schema, which may refer to the components. Report all differences."""
    whole = {**schema, "components": SPEC["components"]}
    found = jsonschema.Draft202012Validator(whole).iter_errors(value)
    wrong = [f"{list(e.absolute_path)}: {e.message}" for e in found]
    assert not wrong, "\n".join(wrong[:10])


def rows_schema(method, path):
    """Return the schema of the rows in an operation's answer of status 200."""
    (content,) = operations()[method, path]["responses"]["200"]["content"].items()
    return content


def referred(node):
    """Return the node itself, or the node to which its $ref refers."""
    if "$ref" not in node:
        return node
    where = SPEC
    for step in node["$ref"].removeprefix("#/").split("/"):
        where = where[step]
    return where


def held_to(responses, status, headers, octets):
    """Compare an answer with the response that the specification has for its status. Return the
    body, as JSON if it is JSON. A status, a header or a content type that the specification does
    not describe is a fault.
    """
    assert str(status) in responses, f"{status} is not described: {octets[:300]}"
    said = referred(responses[str(status)])
    for name, header in said.get("headers", {}).items():
        validate(headers[name], header["schema"])
    kinds = said.get("content", {None: {}})
    assert headers.get("Content-Type") in kinds
    schema = kinds[headers.get("Content-Type")].get("schema")
    if headers.get("Content-Type") == "application/x-ndjson":
        rows = [json.loads(line) for line in octets.splitlines()]
        for row in rows:
            validate(row, schema)
        return rows
    if headers.get("Content-Type") != "application/json" or not octets:  # the answer to HEAD is empty
        return octets
    value = json.loads(octets)
    validate(value, schema)
    return value


def place(template, name=None, **query):
    """Return path and parameters in the form of a request line."""
    path = "/v1" + template.replace("{name}", urllib.parse.quote(name or "", safe=""))
    return path + ("?" + urllib.parse.urlencode(query) if query else "")


def call(dut, method, template, name=None, body=None, headers=(), **query):
    """Send one request. Return (status, body) after a comparison with the specification."""
    conn = Connection(dut.socket)
    octets = body if body is None or isinstance(body, bytes) else json.dumps(body)
    with contextlib.suppress(BrokenPipeError):  # the server may refuse a request after its head
        conn.request(method, place(template, name, **query), octets, dict(headers))
    answer = conn.getresponse()
    octets = answer.read()
    conn.close()
    described = operations()[method, template]["responses"]
    return answer.status, held_to(described, answer.status, answer.headers, octets)


def otherwise(dut, octets, method="GET"):
    """Send octets that are no operation of the API. Return (status, headers, body) of the
    answer."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10 * PATIENCE)
        sock.connect(dut.socket)
        sock.sendall(octets)
        answer = http.client.HTTPResponse(sock, method=method)
        answer.begin()
        said = held_to(SPEC["x-otherwise"], answer.status, answer.headers, answer.read())
        return answer.status, answer.headers, said
