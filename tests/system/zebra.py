# SPDX-License-Identifier: BSD-3-Clause
"""A program that plays zebra for the daemon: it announces next hops, groups and routes, remembers
them, and can withdraw all of them."""

import itertools
import socket

from lib import fpm_speaker as fpm
from lib.fpm_speaker import FpmSpeaker, frame

MAIN = fpm.RT_TABLE_MAIN


class Zebra:
    """One FPM client. It sends each message at once and does not wait for the daemon."""

    def __init__(self, dut, first_id=100, pid=fpm.DEFAULT_PID):
        self.dut, self.pid = dut, pid
        self.speaker = None
        self.ids = itertools.count(first_id)
        self.prefixes, self.nexthops = {}, set()  # {(table, prefix): nhid}
        self.labels = set()
        self._singles = {}

    def connect(self):
        """Open the session, or open it again."""
        self.close()
        self._singles.clear()  # ids are valid as long as their session
        self.speaker = FpmSpeaker(netns=self.dut.ctl, pid=self.pid).connect()
        self.speaker.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        """End the session without a message, as zebra does."""
        if self.speaker:
            self.speaker.close()
        self.speaker = None

    def raw(self, octets):
        """Send any octets."""
        self.speaker.send_raw(octets)

    def send(self, *messages):
        """Send each message in a frame of its own."""
        self.raw(b"".join(frame(m) for m in messages))

    def together(self, *messages):
        """Send all messages in one frame, as zebra 8.4 sends a replace."""
        self.raw(frame(*messages))

    # -- the functions return a message or send it at once --

    def hop_message(self, nhid, via=None, wire=None, **more):
        """Return the NEWNEXTHOP of a single next hop. `more` is for fpm_speaker.nexthop_message()."""
        self.nexthops.add(nhid)
        if wire:
            more["oif"] = self.dut.ifindex(wire)
        return fpm.nexthop_message(nhid, gateway=via, pid=self.pid, **more)

    def hop(self, via=None, wire=None, nhid=None, **more):
        """Announce a single next hop. Returns its id."""
        nhid = nhid or next(self.ids)
        self.send(self.hop_message(nhid, via, wire, **more))
        return nhid

    def group_message(self, nhid, members):
        """Return the NEWNEXTHOP of a group: ids, or {id: weight}."""
        self.nexthops.add(nhid)
        return fpm.group_message(nhid, members, pid=self.pid)

    def group(self, members, nhid=None):
        """Announce a group of ids, or {id: weight}. Returns its id."""
        nhid = nhid or next(self.ids)
        self.send(self.group_message(nhid, members))
        return nhid

    def drop_hop(self, *nhids):
        """Send DELNEXTHOP for each id."""
        self.nexthops.difference_update(nhids)
        self.send(*(fpm.nexthop_del_message(nhid, pid=self.pid) for nhid in nhids))

    def add_message(self, prefix, nhid=None, table=MAIN, **more):
        """Return NEWROUTE. `more` is for fpm_speaker.route_message()."""
        self.prefixes[(table, prefix)] = nhid
        return fpm.route_message(prefix, nhid=nhid, table=table, pid=self.pid, **more)

    def add(self, prefix, nhid=None, **more):
        """Announce a route."""
        self.send(self.add_message(prefix, nhid, **more))

    def drop_message(self, prefix, table=MAIN):
        """Return DELROUTE."""
        self.prefixes.pop((table, prefix), None)
        return fpm.route_del_message(prefix, table=table, pid=self.pid)

    def drop(self, *prefixes, table=MAIN):
        """Withdraw routes."""
        self.send(*(self.drop_message(prefix, table) for prefix in prefixes))

    def label_message(self, label, *hops, **more):
        """Return the NEWROUTE of a label. `hops` and `more` are for fpm_speaker.label_message()."""
        self.labels.add(label)
        return fpm.label_message(label, *hops, pid=self.pid, **more)

    def drop_label(self, *labels):
        """Withdraw the routes of labels."""
        self.labels.difference_update(labels)
        self.send(*(fpm.label_del_message(label, pid=self.pid) for label in labels))

    # -- the usual case in one line --

    def route(self, prefix, via, wire):
        """Announce a next hop (once, then shared) and a route, as zebra sends them."""
        key = (via, wire.name)
        nhid = self._singles.get(key)
        if nhid not in self.nexthops:
            nhid = self._singles[key] = self.hop(via, wire)
        self.add(prefix, nhid)
        return nhid

    def flush(self):
        """Withdraw all announced objects: routes first, then next hops."""
        if self.speaker is None:
            self.connect()
        self.send(*(fpm.route_del_message(p, table=t) for t, p in self.prefixes))
        self.drop_label(*list(self.labels))
        self.drop_hop(*list(self.nexthops))
        self.prefixes.clear()
        self._singles.clear()
