# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces: make them, run commands in them, open sockets in them.

A namespace is named as `ip netns` names it. setns(2) moves the calling thread only, so a
socket opened inside entered() stays there while the rest of the program stays outside.
"""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess

from lib.wait import PATIENCE

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1  # netdevice(7)
SIOCETHTOOL, ETHTOOL_GLINK = 0x8946, 0x0A  # linux/sockios.h, linux/ethtool.h
SO_RCVBUFFORCE, SO_TIMESTAMPNS, ETH_P_ALL = 33, 35, 3  # socket(7), packet(7)
DOTS = str.maketrans("./", "/.")
_libc = ctypes.CDLL(None, use_errno=True)


class CommandError(Exception):
    """A command of the system failed; the message is its error output."""


def exists(name):
    """Return True if there is a namespace of this name."""
    return os.path.exists(f"/run/netns/{name}")


def command(argv, stdin=None, check=True, timeout=60, name=None):
    """Run `argv` in namespace `name` or in this one, return its output as text. With `check`, failure
    raises CommandError.

    `ip -n NAME` and `ip netns exec NAME` also make a mount namespace with a sysfs of their own, which
    takes longer than the rest of the command. So this thread enters the namespace, and the program
    inherits it.
    """
    if argv[:2] == ["ip", "-n"] and exists(argv[2]):
        name, argv = argv[2], ["ip", *argv[3:]]
    with entered(name) if name else contextlib.nullcontext():
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=timeout * PATIENCE
        )
    if check and done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise CommandError(f"{' '.join(argv)}: {said} (exit code {done.returncode})")
    return done.stdout


def run(name, argv, sysfs=False, **kw):
    """Call command() in namespace `name`. With `sysfs`, /sys is that of the namespace, too."""
    if sysfs:
        return command(["ip", "netns", "exec", name, *argv], **kw)
    return command(argv, name=name, **kw)


def ip_batch(lines, name=None):
    """Run many `ip` commands with few processes, in namespace `name` or in this one.

    Lines that begin with -6 run last, in a process of their own, because a batch has one
    family for all its lines.
    """
    where = ["-n", name] if name else []
    lines = list(lines)
    for family in ("", "-6 "):
        some = [x.removeprefix("-6 ") for x in lines if x.startswith("-6 ") == bool(family)]
        if some:
            argv = ["ip", *where, *family.split(), "-batch", "-"]
            command(argv, stdin="\n".join(some) + "\n")


def sysctl(name, settings):
    """Set a dictionary of sysctls in a namespace, without a process. As for sysctl(8), a slash in a
    key stands for a dot in the name of an interface."""
    with entered(name):
        for key, value in settings.items():
            try:
                with open("/proc/sys/" + key.translate(DOTS), "w", encoding="ascii") as file:
                    file.write(f"{value}\n")
            except OSError as error:
                raise CommandError(f"sysctl {key}={value}: {error.strerror}") from None


def link_set(name, ifname, up):
    """Take an interface up or down by ioctl(), not by a process, so that the moment is known."""
    with open_socket(name, socket.AF_INET, socket.SOCK_DGRAM) as sock:
        row = struct.pack("16sH14x", ifname.encode(), 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(sock, SIOCGIFFLAGS, row), 16)
        flags = flags | IFF_UP if up else flags & ~IFF_UP
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", ifname.encode(), flags))


def is_up(name, ifname):
    """Return True if an interface is up. Uses ioctl(), not a process: so the moment is known."""
    with open_socket(name, socket.AF_INET, socket.SOCK_DGRAM) as sock:
        row = fcntl.ioctl(sock, SIOCGIFFLAGS, struct.pack("16sH14x", ifname.encode(), 0))
    return bool(struct.unpack_from("H", row, 16)[0] & IFF_UP)


def has_carrier(name, ifname):
    """Return True if the interface has carrier. Uses ioctl(), not a process: so the moment is
    known."""
    answer = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_GLINK, 0))
    ask = struct.pack("16sP16x", ifname.encode(), ctypes.addressof(answer))
    with open_socket(name, socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCETHTOOL, ask)
    return struct.unpack_from("II", answer)[1] != 0


def can_have(words):
    """Return True if this kernel has links of `ip link add ... type WORDS`. Tries it and removes
    it."""
    return can_run(
        "ip link add name try0 type veth peer name try1 && "
        f"ip link add link try0 name try2 type {words}"
    )


def can_run(script):
    """Return True if the shell commands succeed in a new network namespace, which is removed."""
    argv = ["unshare", "--net", "sh", "-c", script]
    return subprocess.run(argv, capture_output=True).returncode == 0


def delete(name):
    """Delete a namespace if it exists. Its interfaces are deleted when its last process ends."""
    if exists(name):
        command(["ip", "netns", "del", name], check=False)


@contextlib.contextmanager
def entered(name):
    """Move this thread into namespace `name` until the with block ends."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        there = os.open(f"/run/netns/{name}", os.O_RDONLY)
        try:
            _setns(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _setns(here)
    finally:
        os.close(here)


def open_socket(name, family, kind, proto=0):
    """Open a socket in namespace `name`. The caller may use it from any namespace."""
    with entered(name):
        return socket.socket(family, kind, proto)


def open_capture(name, dev):
    """Open a socket that receives the frames that pass an interface, in both directions, with the time at
    which the kernel saw them. It does not block."""
    sock = open_socket(name, socket.AF_PACKET, socket.SOCK_RAW)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    with entered(name):
        sock.bind((dev, ETH_P_ALL))
    sock.setblocking(False)
    return sock


def read_proc(name, path):
    """Return the text of a file of /proc/net (or /proc/sys/net) in namespace `name`."""
    with entered(name):
        # /proc/net is a link to the *process*; a thread's own view is under thread-self.
        if path.startswith("/proc/net/"):
            path = "/proc/thread-self/net/" + path[len("/proc/net/") :]
        with open(path, encoding="ascii") as file:
            return file.read()


def forwarded(name):
    """Return the number of packets that the kernel of namespace `name` has forwarded: (IPv4,
    IPv6)."""
    rows = [r.split() for r in read_proc(name, "/proc/net/snmp").splitlines()]
    ip4 = [r for r in rows if r[0] == "Ip:"]
    four = int(dict(zip(ip4[0], ip4[1]))["ForwDatagrams"])
    six = dict(r.split() for r in read_proc(name, "/proc/net/snmp6").splitlines())
    return four, int(six["Ip6OutForwDatagrams"])


def icmp_unsent(name):
    """Return the number of ICMP messages, both families, that the kernel of `name` could not
    send."""
    rows = [r.split() for r in read_proc(name, "/proc/net/snmp").splitlines()]
    icmp = [r for r in rows if r[0] == "Icmp:"]
    four = int(dict(zip(icmp[0], icmp[1]))["OutErrors"])
    six = dict(r.split() for r in read_proc(name, "/proc/net/snmp6").splitlines())
    return four + int(six["Icmp6OutErrors"])


def _setns(fd):
    if _libc.setns(fd, CLONE_NEWNET) != 0:
        err = ctypes.get_errno()
        raise OSError(err, f"setns: {os.strerror(err)}")
