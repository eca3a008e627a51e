/* SPDX-License-Identifier: BSD-3-Clause */
/* What the daemon has: liburcu's QSBR as it is, and a publisher that waits for it. */
#include <urcu/urcu-qsbr.h>

#include "sync.h"

void
sync_publish(void)
{
	urcu_qsbr_synchronize_rcu();
}
