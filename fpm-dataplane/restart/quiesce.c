/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads end one after the other, who speak to people first: after them nobody asks manage for
 * anything.                                                                       [main]
 */
#include "restart/quiesce.h"

#include "base/log.h"
#include "restart/watchdog.h"

#define FREEZE_MS 30000u

static struct {
	struct worker *const *w;
	void (*rib_quiesce)(struct worker *, _Atomic bool *done);
	void (*rib_resume)(struct worker *);
	unsigned int n_stopped; /* of them, in their order */
	bool asked;
	_Atomic bool done; /* W:rib, also when we no longer wait */
} freeze;

/* Nothing is heard any more that would have to be passed on; rib has digested the rest. */
static bool
is_over(void)
{
	while (freeze.n_stopped < FREEZE_RIB) {
		if (!worker_stop_try(freeze.w[freeze.n_stopped]))
			return false;
		freeze.n_stopped++;
	}
	if (!freeze.asked)
		freeze.rib_quiesce(freeze.w[FREEZE_RIB], &freeze.done);
	freeze.asked = true;
	return atomic_load(&freeze.done);
}

void
freeze_whom(struct worker *const w[FREEZE_WORKERS],
	    void (*rib_quiesce)(struct worker *, _Atomic bool *done),
	    void (*rib_resume)(struct worker *))
{
	freeze.w = w;
	freeze.rib_quiesce = rib_quiesce;
	freeze.rib_resume = rib_resume;
}

int
freeze_begin(void)
{
	int rc;

	freeze.n_stopped = 0;
	freeze.asked = false;
	atomic_store(&freeze.done, false);
	rc = watchdog_until(is_over, FREEZE_MS);
	if (rc < 0)
		log_error("main: does not come to an end thread=%s for_s=%u",
			  freeze.w[freeze.n_stopped]->ops->name, FREEZE_MS / 1000);
	return rc;
}

int
freeze_undo(void)
{
	struct worker *const *w = freeze.w;
	int rc;

	freeze.rib_resume(w[FREEZE_RIB]);
	rc = worker_start(w[FREEZE_FPM]);
	if (rc == 0)
		rc = worker_start(w[FREEZE_MANAGE]);
	return rc < 0 ? rc : worker_start(w[FREEZE_UI]);
}
