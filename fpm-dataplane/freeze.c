/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads end one after the other, who speak to people first: after them nobody asks manage for
 * anything, and what it has in hand may take longer than a restart waits.         [main]
 */
#include "freeze.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "keep.h"
#include "manage.h"
#include "rib/rib.h"

#define FREEZE_MS 30000u

static struct {
	struct worker *const *w;
	unsigned int n_told, n_stopped; /* of them, in their order */
	bool busy, asked;
	_Atomic bool done; /* W:rib, also when we no longer wait */
} freeze;

bool
freeze_must_wait(const struct worker *manage)
{
	return manage_is_busy() || worker_rests(manage, monotonic_ms());
}

/* One that is told to stop cannot be told otherwise: manage is looked at before each. */
static bool
may_stop(unsigned int i)
{
	if (i >= freeze.n_told && i <= FREEZE_MANAGE)
		freeze.busy = freeze_must_wait(freeze.w[FREEZE_MANAGE]);
	if (freeze.busy)
		return false;
	freeze.n_told = i + 1;
	return true;
}

/* Nothing is heard any more that would have to be passed on; rib has digested the rest. */
static bool
is_over(void)
{
	while (freeze.n_stopped < FREEZE_RIB) {
		if (!may_stop(freeze.n_stopped))
			return true;
		if (!worker_stop_try(freeze.w[freeze.n_stopped]))
			return false;
		freeze.n_stopped++;
	}
	if (!freeze.asked)
		rib_freeze(freeze.w[FREEZE_RIB], &freeze.done);
	freeze.asked = true;
	return atomic_load(&freeze.done);
}

int
freeze_begin(struct worker *const w[FREEZE_WORKERS])
{
	int rc;

	freeze.w = w;
	freeze.n_told = freeze.n_stopped = 0;
	freeze.busy = freeze.asked = false;
	atomic_store(&freeze.done, false);
	rc = keep_until(is_over, FREEZE_MS);
	if (rc < 0)
		log_error("main: does not come to an end thread=%s for_s=%u",
			  w[freeze.n_stopped]->name, FREEZE_MS / 1000);
	return freeze.busy ? -EBUSY : rc;
}

int
freeze_undo(struct worker *const w[FREEZE_WORKERS])
{
	int rc;

	rib_thaw(w[FREEZE_RIB]);
	rc = worker_start(w[FREEZE_FPM]);
	if (rc == 0)
		rc = worker_start(w[FREEZE_MANAGE]);
	return rc < 0 ? rc : worker_start(w[FREEZE_UI]);
}
