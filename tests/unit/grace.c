/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grace periods that the test ends, see grace.h. This file replaces two functions of
 * liburcu, because a barrier of liburcu takes about 10 ms. The functions here take no time.
 */
#include "grace.h"

#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

static struct due {
	struct rcu_head *head;
	void (*fn)(struct rcu_head *head);
} * due;
static size_t n_due, cap_due;

void
urcu_qsbr_call_rcu(struct rcu_head *head, void (*fn)(struct rcu_head *head))
{
	if (n_due == cap_due) {
		cap_due = cap_due == 0 ? 64 : cap_due * 2;
		due = realloc(due, cap_due * sizeof(*due));
		if (due == NULL)
			abort();
	}
	due[n_due++] = (struct due){.head = head, .fn = fn};
}

void
grace_over(void)
{
	size_t n = n_due;

	n_due = 0;
	/* the callback posts a message and does not call call_rcu */
	for (size_t i = 0; i < n; i++)
		due[i].fn(due[i].head);
	if (n_due == 0) {
		free(due);
		due = NULL;
		cap_due = 0;
	}
}

void
urcu_qsbr_barrier(void)
{
	grace_over();
}
