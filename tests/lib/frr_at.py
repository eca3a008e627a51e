# SPDX-License-Identifier: BSD-3-Clause
"""Single daemons of an FRR in a root file system, in a network namespace, without a dataplane: for
tests of FRR itself. The root "/" is the machine's own FRR.

Each process has a mount namespace of its own, in which one directory of the test is /etc/frr,
/var/run/frr and all other folders of FRR: processes of other routers use the same root.
"""

import json
import os
import shutil
import signal
import subprocess

from lib import netns, procs
from lib.wait import PATIENCE, eventually

BUILD = os.path.join(os.path.dirname(__file__), "..", "..", "build")
NEWER = os.path.abspath(os.environ.get("FRR_ROOT") or os.path.join(BUILD, "frr-root"))
PROGRAMS = "/usr/lib/frr"
# sh runs this with the directory, the root and a command. All mounts end with the process.
PRIVATE = """\
dir=$0 root=$1; shift
cd "$dir" || exit 1
for there in etc/frr run/frr var/tmp/frr var/lib/frr; do
	[ -d "$root/$there" ] || mkdir -p "$root/$there" || exit 1
	mount --bind "$dir" "$root/$there" || exit 1
done
[ "$root" = / ] && exec "$@"
mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" ||
	exit 1
exec chroot "$root" "$@"
"""


def present(root):
    """Return True if there is an FRR in this root."""
    return os.access(f"{root}/{PROGRAMS}/zebra", os.X_OK)


def version(root):
    """Return the numbers of the version of a root's FRR, such as (8, 4, 4)."""
    argv = ["chroot", root, f"{PROGRAMS}/zebra", "--version"]
    word = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[2]
    return tuple(int(n) for n in word.split("-")[0].split("."))


class FrrAt:
    """The daemons of one router. `dir` is its directory and the mark of its processes."""

    def __init__(self, root, namespace, directory):
        self.root, self.namespace, self.dir = root, namespace, directory
        self.version = version(root)
        self.running = {}

    def _prepare(self):
        os.makedirs(self.dir, exist_ok=True)
        os.chmod(self.dir, 0o777)  # user frr has another number in each root
        for name in ("vtysh.conf", "frr.conf"):
            with open(f"{self.dir}/{name}", "w", encoding="ascii"):
                pass

    def _argv(self, *words):
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", PRIVATE]
        return [*command, self.dir, self.root, *words]

    def start(self, daemon, *words):
        """Start a daemon; wait until vtysh can ask it."""
        for name in (".vty", ".pid"):
            if os.path.exists(f"{self.dir}/{daemon}{name}"):
                os.unlink(f"{self.dir}/{daemon}{name}")
        argv = self._argv(f"{PROGRAMS}/{daemon}", "--log", f"file:/etc/frr/{daemon}.log", *words)
        log = f"{self.dir}/{daemon}.out"
        self.running[daemon] = procs.start(argv, self.dir, log, self.namespace)
        eventually(lambda: os.path.exists(f"{self.dir}/{daemon}.vty"), 20, what=f"{daemon} starts")

    def start_all(self, *daemons, **words):
        """Start zebra, mgmtd if FRR has it, and `daemons`. `words`: the arguments of daemons by name."""
        self._prepare()
        has_mgmtd = os.access(f"{self.root}/{PROGRAMS}/mgmtd", os.X_OK)
        for daemon in ("zebra", *(["mgmtd"] if has_mgmtd else []), *daemons):
            self.start(daemon, *words.get(daemon, ()))

    def end(self, daemon, number=signal.SIGTERM):
        """End a daemon with this signal; wait for its end."""
        process = self.running.pop(daemon)
        process.send_signal(number)
        process.wait(10 * PATIENCE)

    def destroy(self):
        """Kill all daemons and remove their directory."""
        # procs.end_all() does not see a process in another root, because its mark is not visible.
        for process in self.running.values():
            process.kill()
            process.wait()
        self.running = {}
        shutil.rmtree(self.dir, ignore_errors=True)

    def ask(self, *lines, timeout=60):
        """Run lines in vtysh, return its output."""
        words = [word for line in lines for word in ("-c", line)]
        return netns.run(self.namespace, self._argv("vtysh", *words), timeout=timeout)

    def configure(self, *lines):
        """Run lines in vtysh's configuration mode."""
        return self.ask("configure terminal", *lines)

    def load(self, text):
        """Give a configuration to all daemons, faster than by configure()."""
        with open(f"{self.dir}/frr.conf", "w", encoding="ascii") as file:
            file.write(text)
        netns.run(self.namespace, self._argv("vtysh", "-b"))

    def json(self, line):
        """Run one `show ... json`, return its value."""
        return json.loads(self.ask(line).strip() or "{}")
