/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Use liburcu's QSBR, or no synchronization while the page says so. Both take turns of a
 * few milliseconds in one process, on the same memory. Two starts of one program differ by
 * more than the effect that is measured here.
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
