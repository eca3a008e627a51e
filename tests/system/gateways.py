# SPDX-License-Identifier: BSD-3-Clause
"""Gateways on wan, each for one test alone, and the routes by them, in both families."""

from lib import netns

NET, HOST = "198.51.100.0/24", "198.51.100.9"
NET6, HOST6 = "2001:db8:f000::/36", "2001:db8:f000::9"
_NETWORKS = {4: ("192.0.2.{}", NET, HOST), 6: ("2001:db8:1::{}", NET6, HOST6)}


def case(family, number):
    """Return (gateway, prefix, destination): gateway 192.0.2.N or 2001:db8:1::N on wan.

    The kernel remembers neighbors, so each test has numbers of its own.
    """
    gateway, prefix, dst = _NETWORKS[family]
    return gateway.format(number), prefix, dst


def solicit(router, **values):
    """Set how the kernel of the router asks for neighbors on wan: sysctls of both families."""
    names = [f"net.{f}.neigh.{router.wires['wan'].tap}" for f in ("ipv4", "ipv6")]
    netns.sysctl(router.ctl, {f"{n}.{k}": v for n in names for k, v in values.items()})
