/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Poptrie's lookups of one key, with a call of trace_load() for each load. See lines.c.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stddef.h>
#include <stdint.h>

struct poptrie;

uint32_t traced4_lookup(const struct poptrie *pt, uint32_t addr);
uint32_t traced6_lookup(const struct poptrie *pt, const uint8_t *addr);

/* lines.c */
void trace_load(uintptr_t addr, size_t bytes);

#endif
