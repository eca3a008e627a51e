# SPDX-License-Identifier: BSD-3-Clause
"""The demo's addresses, as frr-config/demo has them, for tests with its lab.

Documentation addresses only (RFC 5737, RFC 3849)."""

R1_AS = 64500
R1_WAN4, ISP4, ISP6 = "192.0.2.1", "192.0.2.2", "2001:db8:1::2"
R1_LAN4, R1_LAN6 = "203.0.113.1", "2001:db8:2::1"
LAN4, LAN6 = "203.0.113.10", "2001:db8:2::10"
# core answers for all addresses of these and announces them by OSPF.
CORE_NETS4 = ("198.51.100.128/28", "198.51.100.144/28")
CORE_NETS6 = ("2001:db8:c0::/48", "2001:db8:c1::/48")
