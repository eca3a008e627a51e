/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's lookup.c under other names, compiled with the kernel's flavour of
 * AddressSanitizer (Makefile): it puts a call in front of every load and brings no run
 * time of its own, so the calls are ours. This file is the only instrumented one.
 */
#define poptrie4_lookup      traced4_lookup
#define poptrie6_lookup      traced6_lookup
#define poptrie4_lookup_bulk traced4_lookup_bulk
#define poptrie6_lookup_bulk traced6_lookup_bulk
#define poptrie4_lookup_each traced4_lookup_each
#define poptrie_prefetch     traced_prefetch
#define pt_bulk_choose       traced_bulk_choose
#define pt_isa_best          traced_isa_best
#include "poptrie/lookup.c"
