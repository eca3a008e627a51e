/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liburcu's QSBR, and while the page says so no synchronisation at all: the two take turns in
 * one process, on the same memory, a few milliseconds each. Two starts of one program differ
 * by more than what is to be seen here.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

#include "sync.h"

static void (*quiescent_state)(void);

static __attribute__((constructor)) void
find_the_real_one(void)
{
	*(void **)&quiescent_state = dlsym(RTLD_NEXT, "urcu_qsbr_quiescent_state");
	if (quiescent_state == NULL)
		abort();
}

void
urcu_qsbr_quiescent_state(void)
{
	if (!sync_page->without)
		quiescent_state();
}

void
sync_publish(void)
{
	urcu_qsbr_synchronize_rcu();
}
