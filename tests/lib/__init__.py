# SPDX-License-Identifier: BSD-3-Clause
"""Helpers shared by the lab, the demo and the system tests. Standard library only."""
