# SPDX-License-Identifier: BSD-3-Clause
"""The pings from each router of a topology to each address of the others.

FRR's tests look at tables. The pings show that packets follow these tables. The verdict compares
the answered pings with those of the kernel's run.
"""

import json

HOSTS_MOST, ADDRESSES_MOST = 16, 40  # more would take longer than the tests


def reach(net):
    """Return {"r1>192.0.2.1": answered} of a topology; {} for a large one."""
    if len(net.hosts) > HOSTS_MOST:
        return {}
    own = {name: _addresses(host) for name, host in net.hosts.items()}
    targets = {}
    for name in net.hosts:
        others = set().union(*(own[n] for n in own if n != name)) - own[name]
        targets[name] = sorted(others)[:ADDRESSES_MOST]
    found = _ping(net, targets, "-c 1 -W 1")
    # A first packet may be lost while a neighbor is resolved.
    again = {}
    for pair in [pair for pair, answered in found.items() if not answered]:
        name, _, address = pair.partition(">")
        again.setdefault(name, []).append(address)
    return {**found, **_ping(net, again, "-c 3 -i 0.3 -W 1")}


def _addresses(host):
    """Return the global addresses of the interfaces of a host that are up."""
    _, text, _ = host.cmd_status("ip -j addr", warn=False)
    try:
        rows = json.loads(text)
    except ValueError:
        return set()
    up = [row for row in rows if "UP" in row.get("flags", ())]
    infos = [info for row in up for info in row.get("addr_info", ())]
    # A router must not forward ::ffff:0:0/96 (RFC 6890, table 20), but Linux does.
    return {
        info["local"]
        for info in infos
        if info.get("scope") == "global" and not info.get("local", "::ffff:").startswith("::ffff:")
    }


def _ping(net, targets, words):
    """Ping {name: [address]} from all hosts at the same time. Return {"name>address": answered}."""
    running, found = {}, {}
    for name, addresses in targets.items():
        one = "(ping -n -q {} {} >/dev/null 2>&1; echo {} $?) &"
        script = " ".join(one.format(words, address, address) for address in addresses)
        if addresses:
            running[name] = net.hosts[name].popen(["/bin/sh", "-c", script + " wait"])
    for name, process in running.items():
        text, _ = process.communicate(timeout=120)
        for line in text.splitlines():
            address, code = line.split()
            found[f"{name}>{address}"] = code == "0"
    return found
