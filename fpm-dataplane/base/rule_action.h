/* SPDX-License-Identifier: BSD-3-Clause */
/* rule_action: the words for actions of policy rules, in `show rules` and in the audit. */
#ifndef BASE_RULE_ACTION_H
#define BASE_RULE_ACTION_H

#include <linux/fib_rules.h>
#include <stdbool.h>
#include <stdint.h>

/* Return the word for an FR_ACT_*. l3mdev: the table is that of the packet's VRF. */
static inline const char *
rule_action_word(uint8_t action, bool l3mdev)
{
	switch (action) {
	case FR_ACT_TO_TBL:
		return l3mdev ? "l3mdev" : "lookup";
	case FR_ACT_GOTO:
		return "goto";
	case FR_ACT_NOP:
		return "nop";
	case FR_ACT_BLACKHOLE:
		return "blackhole";
	case FR_ACT_UNREACHABLE:
		return "unreachable";
	case FR_ACT_PROHIBIT:
		return "prohibit";
	default:
		return "unknown";
	}
}

#endif
