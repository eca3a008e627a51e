/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compile the library's lookup.c under other names with the kernel's variant of
 * AddressSanitizer (bench.mk). The compiler puts a call in front of every load. This
 * variant has no run-time library, so trace_calls.c defines the functions that are called.
 * Only this file is compiled so.
 */
#define poptrie4_lookup      traced4_lookup
#define poptrie6_lookup      traced6_lookup
#define poptrie4_lookup_bulk traced4_lookup_bulk
#define poptrie6_lookup_bulk traced6_lookup_bulk
#define poptrie4_lookup_each traced4_lookup_each
#define poptrie_prefetch     traced_prefetch
#define pt_bulk_choose       traced_bulk_choose
#define pt_isa_best          traced_isa_best
#define poptrie_isa_best     traced_isa_of_cpu
#define poptrie_isa_used     traced_isa_used
#define poptrie_use_at_most  traced_use_at_most
#include "poptrie/lookup.c"
