# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP API as its users see it: dist/openapi.yaml, requests on the Unix socket, answers held
to the schema."""

import contextlib
import http.client
import json
import os
import socket
import urllib.parse

import jsonschema
import yaml

from lib.dataplane import ROOT

PATH = os.path.join(ROOT, "fpm-dataplane", "dist", "openapi.yaml")
with open(PATH, encoding="utf-8") as _file:
    SPEC = yaml.safe_load(_file)


class Connection(http.client.HTTPConnection):
    """HTTP on the Unix socket `path`."""

    def __init__(self, path, timeout=10):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def operations():
    """All of the API: {(method, path): what the specification says of it}."""
    methods = ("get", "post", "put", "patch", "delete")
    return {
        (method.upper(), path): said
        for path, item in SPEC["paths"].items()
        for method, said in item.items()
        if method in methods
    }


def validate(value, schema):
    """Hold a value to a schema, which may refer to the components; all that is wrong is told."""
    whole = {**schema, "components": SPEC["components"]}
    found = jsonschema.Draft202012Validator(whole).iter_errors(value)
    wrong = [f"{list(e.absolute_path)}: {e.message}" for e in found]
    assert not wrong, "\n".join(wrong[:10])


def rows_schema(method, path):
    """What the 200 of an operation holds."""
    (content,) = operations()[method, path]["responses"]["200"]["content"].items()
    return content


def referred(node):
    """The node itself, or what its $ref leads to."""
    if "$ref" not in node:
        return node
    where = SPEC
    for step in node["$ref"].removeprefix("#/").split("/"):
        where = where[step]
    return where


def held_to(responses, status, headers, octets):
    """An answer, held to the response that is described for its status: what it says, as JSON
    where it is. A status that is not described is a fault, as is a header or a type of content.
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
    if headers.get("Content-Type") != "application/json" or not octets:  # to HEAD
        return octets
    value = json.loads(octets)
    validate(value, schema)
    return value


def place(template, name=None, **query):
    """Path and parameters as they stand in a request."""
    path = "/v1" + template.replace("{name}", urllib.parse.quote(name or "", safe=""))
    return path + ("?" + urllib.parse.urlencode(query) if query else "")


def call(dut, method, template, name=None, body=None, headers=(), **query):
    """One request: (status, what it says), both as the specification has them."""
    conn = Connection(dut.socket)
    octets = body if body is None or isinstance(body, bytes) else json.dumps(body)
    with contextlib.suppress(BrokenPipeError):  # refused by its head alone
        conn.request(method, place(template, name, **query), octets, dict(headers))
    answer = conn.getresponse()
    octets = answer.read()
    conn.close()
    described = operations()[method, template]["responses"]
    return answer.status, held_to(described, answer.status, answer.headers, octets)


def otherwise(dut, octets, method="GET"):
    """What is answered to these, which are no operation: (status, headers, what it says)."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(dut.socket)
        sock.sendall(octets)
        answer = http.client.HTTPResponse(sock, method=method)
        answer.begin()
        said = held_to(SPEC["x-otherwise"], answer.status, answer.headers, answer.read())
        return answer.status, answer.headers, said
