# SPDX-License-Identifier: BSD-3-Clause
"""A thread that answers fpmctl in the place of the daemon. It gives answers that no daemon gives on
this machine."""

import contextlib
import json
import socket
import threading


class Impostor(threading.Thread):
    """Answer requests on the socket `path` with the rows of answer(request)."""

    def __init__(self, path, answer):
        super().__init__(daemon=True)
        self.answer, self.sock = answer, socket.socket(socket.AF_UNIX)
        self.sock.bind(path)
        self.sock.listen()
        self.start()

    def run(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return  # closed: the test is over
            # The client may have closed its end before it has read the whole answer.
            with contextlib.suppress(OSError), conn, conn.makefile("rw") as file:
                for line in file:
                    n = 0
                    for n, row in enumerate(self.answer(json.loads(line)), 1):
                        file.write(json.dumps(row) + "\n")
                    file.write(json.dumps({"end": True, "rows": n}) + "\n")
                    file.flush()

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.join()
