/* SPDX-License-Identifier: BSD-3-Clause */
/* Use liburcu's QSBR unchanged, as the daemon does, with a publisher that waits for it. */
#include <urcu/urcu-qsbr.h>

#include "sync.h"

void
sync_publish(void)
{
	urcu_qsbr_synchronize_rcu();
}
