/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare the kernel's rules of policy routing (`ip rule`) with those of the daemon, for
 * `audit`.
 */
#ifndef CTL_AUDIT_RULES_H
#define CTL_AUDIT_RULES_H

#include <jansson.h>
#include <stddef.h>

struct rule_audit {
	size_t n_kernel, n_rib; /* rules of both families */
	size_t n_found;         /* rules that differ */
	json_t *differences;    /* rows with the keys of the other differences */
};

/*
 * Compare the rules of both families, in their order, in the present network namespace.
 * Repeat the comparison up to twice while rules differ, because both sides change
 * meanwhile. Print no differences. Return CTL_OK, or CTL_NO_DAEMON when a side does not
 * answer.
 */
int audit_rules(const char *socket, struct rule_audit *out);
void audit_rules_free(struct rule_audit *a);

#endif
