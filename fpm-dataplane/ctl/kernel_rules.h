/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_rules: the kernel's rules of policy routing (linux/fib_rules.h). The daemon decodes the
 * same messages. This decoder shares no code with it, so `fpmctl audit` also finds errors of the
 * daemon's decoder.
 */
#ifndef CTL_KERNEL_RULES_H
#define CTL_KERNEL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"

#define KERNEL_RULE_NONE UINT32_MAX /* the rule has no such number */

struct kernel_rule {
	uint32_t pref, table;
	uint32_t target;                          /* of goto, a pref */
	uint32_t suppress_length, suppress_group; /* KERNEL_RULE_NONE: not given */
	struct prefix src, dst;                   /* length 0: all */
	uint16_t sport[2], dport[2];              /* a range; the last one 0: all */
	uint8_t action;                           /* FR_ACT_* */
	uint8_t tos;                              /* bits of the octet; 0: not given */
	uint8_t ip_protocol;                      /* 0: all */
	bool invert, l3mdev;
	char iif[16];      /* "": all */
	bool iif_detached; /* the rule has no interface */
	/* Selectors that no received packet has. */
	bool mark, uid, tunnel, label, oif, unknown;
};

/*
 * Call on_rule() for each rule of a family in the present network namespace, in the kernel's order.
 * A kernel without rules has none. Returns 0, or -1 after printing an error.
 */
int kernel_rules(uint8_t family, void (*on_rule)(const struct kernel_rule *rule, void *ctx),
		 void *ctx);

/*
 * Call on_table() for each table that a rule of the family looks up, except for rules that match no
 * received packet. Returns as kernel_rules().
 */
int kernel_rule_tables(uint8_t family,
		       void (*on_table)(uint8_t family, uint32_t table, void *ctx),
		       void *ctx);

#endif
