# SPDX-License-Identifier: BSD-3-Clause
"""Chaos: everything goes wrong at random moments, every packet is checked."""
