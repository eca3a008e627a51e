/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stop the workers one after the other, ui first: without ui no client sends requests to
 * manage.                                                                       [main]
 */
#include "restart/quiesce.h"

#include "base/log.h"
#include "restart/watchdog.h"

#define QUIESCE_MS 30000u

static struct {
	const struct quiesce *q;
	unsigned int n_stopped; /* number of stopped workers, in the order of `worker` */
	bool rib_asked;
	_Atomic bool done; /* W:rib, even after the wait has timed out */
} state;

/*
 * Ask the next worker to stop. Returns true if all have stopped and rib has processed all
 * their messages.
 */
static bool
workers_try_quiesce(void)
{
	struct worker *const *w = state.q->worker;

	while (state.n_stopped < QUIESCE_RIB) {
		if (!worker_stop_try(w[state.n_stopped]))
			return false;
		state.n_stopped++;
	}
	if (!state.rib_asked)
		state.q->rib_quiesce(w[QUIESCE_RIB], &state.done);
	state.rib_asked = true;
	return atomic_load(&state.done);
}

int
workers_quiesce(const struct quiesce *q)
{
	int rc;

	state.q = q;
	state.n_stopped = 0;
	state.rib_asked = false;
	atomic_store(&state.done, false);
	rc = watchdog_wait(workers_try_quiesce, QUIESCE_MS);
	if (rc < 0)
		log_error("main: thread does not stop thread=%s for_ms=%u",
			  q->worker[state.n_stopped]->ops->name, QUIESCE_MS);
	return rc;
}

int
workers_resume(const struct quiesce *q)
{
	struct worker *const *w = q->worker;
	int rc;

	q->rib_resume(w[QUIESCE_RIB]);
	rc = worker_start(w[QUIESCE_FPM]);
	if (rc == 0)
		rc = worker_start(w[QUIESCE_MANAGE]);
	return rc < 0 ? rc : worker_start(w[QUIESCE_UI]);
}
