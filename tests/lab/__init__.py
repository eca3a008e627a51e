# SPDX-License-Identifier: BSD-3-Clause
"""The lab: a router, its neighbors and a host in network namespaces of one machine."""
