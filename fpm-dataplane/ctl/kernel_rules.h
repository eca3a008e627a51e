/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_rules: the kernel's rules of policy routing (linux/fib_rules.h). The daemon
 * decodes the same messages. This decoder shares no code with it, so `fpmctl audit` also
 * finds errors of the daemon's decoder.
 */
#ifndef CTL_KERNEL_RULES_H
#define CTL_KERNEL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"

#define KERNEL_RULE_NONE UINT32_MAX /* the rule has no such number */

struct kernel_rule {
	uint32_t pref, table;
	uint32_t target;                          /* goto: the pref of the next rule */
	uint32_t suppress_length, suppress_group; /* KERNEL_RULE_NONE: not given */
	struct prefix src, dst;                   /* length 0: all */
	uint16_t sport[2], dport[2];              /* first and last port; last 0: all */
	uint16_t sport_mask, dport_mask;          /* if first and last port are equal */
	uint8_t action;                           /* FR_ACT_* */
	uint8_t tos;                              /* bits of the octet; 0: not given */
	uint8_t ip_protocol;                      /* 0: all */
	bool invert, l3mdev;
	bool unresolved;   /* goto: no rule has the pref `target` */
	char iif[16];      /* "": all */
	bool iif_detached; /* no interface has the name `iif` */
	char oif[16];      /* "": all */
	bool oif_detached; /* no interface has the name `oif` */
	/* [0]: the value, [1]: its mask */
	uint32_t fwmark[2], flowlabel[2];
	uint8_t dscp[2];
	bool has_dscp, has_uid_range, has_flowlabel;
	uint32_t uid_range[2];
	uint64_t tun_id;  /* 0: none */
	uint32_t realms;  /* 0: none */
	uint8_t protocol; /* of the program that made the rule */
	/*
	 * The rule has a selector that no received packet matches; `unknown`: it has an
	 * attribute that this decoder does not know.
	 */
	bool mark, uid, tunnel, unknown;
};

/*
 * Call on_rule() for each rule of a family in the present network namespace, in the
 * kernel's order. Returns 0, or -1 after printing an error. Returns KERNEL_RULES_ABSENT if
 * the kernel was built or started without rules of the family: it then behaves as if it had
 * the standard rules.
 */
#define KERNEL_RULES_ABSENT 1
int kernel_rules(uint8_t family, void (*on_rule)(const struct kernel_rule *rule, void *ctx),
		 void *ctx);

/*
 * Call on_table() for each table that a rule of the family looks up, except for rules that
 * match no received packet. Returns 0, or -1 after printing an error.
 */
int kernel_rule_tables(uint8_t family,
		       void (*on_table)(uint8_t family, uint32_t table, void *ctx),
		       void *ctx);

#endif
