# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP API as its users see it: dist/openapi.yaml, requests on the Unix socket, answers held
to the schema."""

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


def call(dut, method, template, name=None, body=None, **query):
    """One request: (status, what it says as JSON), both as the specification has them."""
    kind, media = rows_schema(method, template)
    path = "/v1" + template.replace("{name}", urllib.parse.quote(name or "", safe=""))
    if query:
        path += "?" + urllib.parse.urlencode(query)
    conn = Connection(dut.socket)
    conn.request(method, path, body=None if body is None else json.dumps(body))
    answer = conn.getresponse()
    octets = answer.read()
    conn.close()
    if answer.status != 200:
        assert answer.headers["Content-Type"] == "application/json"
        said = json.loads(octets)
        validate(said, {"$ref": "#/components/schemas/Error"})
        return answer.status, said
    assert answer.headers["Content-Type"] == kind
    if kind == "application/x-pcapng":
        return 200, octets
    if kind == "application/x-ndjson":
        said = [json.loads(line) for line in octets.splitlines()]
        for row in said:
            validate(row, media["schema"])
        return 200, said
    said = json.loads(octets)
    validate(said, media["schema"])
    return 200, said
