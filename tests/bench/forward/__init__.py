# SPDX-License-Identifier: BSD-3-Clause
"""Forwarding benchmarks: programs, sources, reports."""
