# SPDX-License-Identifier: BSD-3-Clause
"""The nft table of the rules. A change is one transaction, and rules that stay keep their handles,
so their counters and limits stay, too."""

import json
import socket
import struct
import subprocess
import time

TABLE = "inet flowspec"
PRIORITY = -10  # before the operator's rules, so dropped packets take nothing from their limits
BASE, CHAINS = "forward", {4: "flow4", 6: "flow6"}


class NftError(Exception):
    """nft refused a transaction."""


class NftTimeout(NftError):
    """nft did not end in time. The kernel has the old rules, or the rules of the transaction."""


class OtherTable(NftError):
    """Another program has changed or deleted the table."""


class NotListed(NftError):
    """nft failed to list the table."""


def nft(text, *options, limit_s=60):
    """Run nft commands as one transaction within `limit_s` seconds; return its output. Raises
    NftError."""
    argv = ["nft", *options, *(["-f", "-"] if text is not None else [])]
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired as why:
        raise NftTimeout("nft takes too long") from why
    except OSError as why:
        raise NftError(str(why)) from why
    if done.returncode:
        raise NftError(" ".join(done.stderr.split()) or f"nft ended with {done.returncode}")
    return done.stdout


# Numbers of linux/netfilter/nfnetlink.h and nf_tables.h.
NETLINK_NETFILTER, NEW_GENERATION, GET_GENERATION, GENERATION_ID = 12, 10 << 8 | 15, 10 << 8 | 16, 1
ANSWER_S = 1


def generation():
    """Return the number of the kernel's ruleset. Each change of any table changes it. None: the kernel
    does not answer."""
    ask = struct.pack("=IHHIIBBH", 20, GET_GENERATION, 1, 1, 0, 0, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as kernel:
            kernel.settimeout(ANSWER_S)
            kernel.sendto(ask, (0, 0))
            answer = kernel.recv(4096)
    except OSError:
        return None
    at = 20  # behind both headers
    if len(answer) < at or struct.unpack_from("=H", answer, 4)[0] != NEW_GENERATION:
        return None
    while at + 8 <= len(answer):
        size, kind = struct.unpack_from("=HH", answer, at)
        if kind == GENERATION_ID and size == 8:
            return struct.unpack_from("!I", answer, at + 4)[0]
        at += max(4, size + 3 & ~3)
    return None


def skeleton():
    """Return the commands that make the table without rules of flows, whatever it was before."""
    return f"""\
table {TABLE}
delete table {TABLE}
table {TABLE} {{
	chain flow4 {{ }}
	chain flow6 {{ }}
	chain {BASE} {{
		type filter hook forward priority {PRIORITY}; policy accept;
		meta nfproto vmap {{ ipv4 : jump flow4, ipv6 : jump flow6 }}
	}}
}}
"""


class Table:
    """The table in the kernel. `want` is {family: {key: Rules}}, with the rules in their order."""

    def __init__(self, run=nft, clock=time.monotonic, number=generation):
        self._nft, self.clock, self._generation = run, clock, number
        self.seen = None  # generation of the kernel when the table was read last
        # Time of the clock before which all calls of nft have to end; None: each may take a minute.
        self.until = None
        self.known = None  # {family: {key: (Rules, handles)}}; None: the table is not known

    def run(self, text, *options):
        """Run nft commands. Raises NftTimeout if the time is over."""
        if self.until is None:
            return self._nft(text, *options)
        left_s = self.until - self.clock()
        if left_s <= 0:
            raise NftTimeout("nft takes too long")
        return self._nft(text, *options, limit_s=left_s)

    def flush(self):
        """Make an empty table. Raises NftError."""
        self.known = None
        self.run(skeleton())
        self.known = {4: {}, 6: {}}

    def touched(self):
        """Return true if a program may have changed the table since it was read last."""
        now = self._generation()
        return now is None or now != self.seen

    def load(self, want):
        """Load rules. Return true if another program had changed the table, so that it was made again.
        Raises NftError; then the kernel has the rules of the last load that succeeded, or no rules if
        none succeeded. Raises NftTimeout as nft() does."""
        was_known = self.known is not None
        if was_known:
            text = self._changes(want)
            if text == "" and not self.touched():
                return False
            try:
                if text != "":
                    self.run(text)
                self._read(want)
                return False
            except NftTimeout:
                if text != "":
                    self.known = None
                raise
            except NotListed:
                if text == "":
                    raise
                # The handles of the new rules are not known: make the table again.
            except NftError:
                pass  # another program has changed the table: make it again
        self.known = None
        self.run(_whole(want))
        self._read(want)
        return was_known

    def check(self, want):
        """Raise NftError if nft would refuse these rules in a table of their own."""
        self.run(_whole(want), "-c")

    def _changes(self, want):
        text, gone = "", ""
        for family, some in want.items():
            chain, known = CHAINS[family], self.known[family]
            stays = {key for key, rules in some.items() if key in known and known[key][0] == rules}
            for key, (rules, handles) in known.items():
                if key not in stays:
                    text += "".join(f"delete rule {TABLE} {chain} handle {h}\n" for h in handles)
                    if rules.chain is not None:
                        gone = f"flush chain {TABLE} {rules.chain}\ndelete chain {TABLE} {rules.chain}\n"
                        text += gone
            keys, before, new = list(some), None, []
            for key in reversed(keys):
                if key in stays:
                    before = known[key][1][0]
                else:
                    new.append(_add(chain, some[key], before))
            text += "".join(reversed(new))
        return text

    def _list(self):
        try:
            return json.loads(self.run(None, "-j", "-a", "list", "table", *TABLE.split()))["nftables"]
        except NftTimeout:
            raise
        except NftError as why:
            if self._missing():
                raise OtherTable("the table is missing") from why
            raise NotListed(str(why)) from why

    def _missing(self):
        try:
            return f"table {TABLE}" not in self.run(None, "list", "tables").splitlines()
        except NftError:
            return False  # unknown

    def _read(self, want):
        """Read the handles of the rules. Raises OtherTable if the kernel has other rules than `want`,
        NotListed if nft does not say which rules it has."""
        seen = self._generation()
        listed = self._list()
        rules = {}  # {chain: its rules}
        for row in listed:
            if "rule" in row:
                rules.setdefault(row["rule"]["chain"], []).append(row["rule"])
        known = {}
        for family, some in want.items():
            left = iter(rules.get(CHAINS[family], ()))
            known[family] = {key: (x, [y["handle"] for _, y in zip(x.lines, left)]) for key, x in some.items()}
        comments = {chain: [rule.get("comment") for rule in some] for chain, some in rules.items()}
        if not _has_hook(listed) or comments != _comments(want):
            self.known = None
            raise OtherTable("the table has other rules than were loaded")
        self.known, self.seen = known, seen


def _whole(want):
    """Return the commands that make the table again, with rules."""
    each = (_add(CHAINS[f], rules) for f, some in want.items() for rules in some.values())
    return skeleton() + "".join(each)


def _has_hook(listed):
    """Return true if packets reach the rules: the base chain is there, and the table is not dormant."""
    # nft 1.0.6 writes a wrong word as the flag. The table has no other flag.
    dormant = any("flags" in row.get("table", {}) for row in listed)
    chains = {row["chain"]["name"]: row["chain"] for row in listed if "chain" in row}
    base = chains.get(BASE, {})
    return not dormant and base.get("hook") == "forward" and base.get("policy") == "accept"


def _comments(want):
    """Return {chain: the comments of its rules} of each chain that has rules. None: a rule has none."""
    found = {BASE: [None]}
    for family, some in want.items():
        for rules in some.values():
            found.setdefault(CHAINS[family], []).extend(map(_comment, rules.lines))
            if rules.chain is not None:
                found[rules.chain] = [None] * len(rules.chain_lines)
    return found


def _comment(line):
    return line.rpartition('comment "')[2].rstrip('"')


def _add(chain, rules, before=None):
    """Return the commands that add the rules of a flow: before the rule with a handle, or last."""
    text = ""
    if rules.chain is not None:
        text += f"add chain {TABLE} {rules.chain}\n"
        text += "".join(f"add rule {TABLE} {rules.chain} {line}\n" for line in rules.chain_lines)
    where = f"add rule {TABLE} {chain}"
    if before is not None:
        where = f"insert rule {TABLE} {chain} handle {before}"
    return text + "".join(f"{where} {line}\n" for line in rules.lines)
