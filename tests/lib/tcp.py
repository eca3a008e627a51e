# SPDX-License-Identifier: BSD-3-Clause
"""Send octets over TCP from one host to another. A host is the prefix of a command that runs
there."""

import subprocess
import sys

SERVER = """
import socket
server = socket.create_server(("", {port}))
print(flush=True)
connection, _ = server.accept()
connection.sendall(bytes({octets}))
connection.close()
"""
CLIENT = """
import socket
connection = socket.create_connection(("{address}", {port}), 10)
print(sum(len(part) for part in iter(lambda: connection.recv(65536), b"")))
"""


def received(there, here, address, octets=20000, port=7000):
    """Send `octets` from `there`, such as ["ip", "netns", "exec", "h2"], to `address` on `here`.
    Returns the number that arrives. If none arrives for ten seconds, raises AssertionError with the
    output of the programs."""
    words = [*there, sys.executable, "-c", SERVER.format(port=port, octets=octets)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        server.stdout.readline()
        done = subprocess.run(
            [*here, sys.executable, "-c", CLIENT.format(address=address, port=port)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return int(done.stdout)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
