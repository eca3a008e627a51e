/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: the connections to bfdd: see plan.h. */
#include "bfd/plan.h"

#include <stddef.h>

#define ANSWERS   2  /* echo replies after which a step of bfdd is over */
#define ASK_TICKS 10 /* seconds to wait for an answer */

/*
 * With more messages in one step, bfdd may have lost others. The first messages of a step
 * may have been counted for the previous step, so the limit is less than PLAN_ROOM.
 */
#define BURST_MOST (PLAN_ROOM / 2)

/* Begin a step: bfdd may send messages from now on. */
static void
step_begin(struct plan_conn *c)
{
	c->age++;
	c->answers = 0;
	c->asked = 0;
}

void
plan_opened(struct plan *p, unsigned int at, bool connecting, bool is_old)
{
	struct plan_conn *c = &p->conn[at];

	*c = (struct plan_conn){.open = true,
				.connecting = connecting,
				.settled = is_old,
				.age = c->age + 1,
				.born = ++p->order};
	p->due = true;
}

void
plan_doubt(struct plan *p)
{
	for (unsigned int i = 0; i < p->n_conn; i++)
		p->conn[i].doubtful = p->conn[i].stale = p->conn[i].open;
	p->missed = ++p->order;
	p->due = true;
}

void
plan_ended(struct plan *p, unsigned int at)
{
	struct plan_conn *c = &p->conn[at];

	c->open = c->connecting = false;
	p->due = true;
	if (c->n == 0 && !c->stale)
		return;
	c->n = 0;
	c->stale = c->doubtful = false;
	p->missed = ++p->order;
	p->handing = true;
	for (unsigned int i = 0; i < p->n_conn; i++)
		step_begin(&p->conn[i]);
}

void
plan_heard(struct plan *p, unsigned int at)
{
	struct plan_conn *c = &p->conn[at];

	c->burst++;
	if (!c->settled || (!p->handing && c->burst > BURST_MOST)) {
		c->stale = true;
		p->missed = ++p->order;
	}
	step_begin(c);
	p->due = true;
}

void
plan_tick(struct plan *p)
{
	/*
	 * bfdd drops an answer if its buffer has no room. Change the age, so that a late
	 * answer to the first request does not count for the second request.
	 */
	for (unsigned int i = 0; i < p->n_conn; i++)
		if (p->conn[i].asked != 0 && ++p->conn[i].asked > ASK_TICKS)
			step_begin(&p->conn[i]);
	p->due = true;
}

void
plan_answered(struct plan *p, unsigned int at, uint32_t age)
{
	struct plan_conn *c = &p->conn[at];

	if (age != c->age)
		return;
	c->asked = 0;
	if (c->answers < ANSWERS)
		c->answers++;
	p->due = true;
}

bool
plan_repeats(struct plan *p, unsigned int at)
{
	struct plan_conn *c = &p->conn[at];

	if (!c->open || c->connecting || c->asked != 0 || c->answers < ANSWERS)
		return false;
	c->asked = 1;
	return true;
}

bool
plan_is_connected(const struct plan *p)
{
	for (unsigned int i = 0; i < p->n_conn; i++)
		if (p->conn[i].open && !p->conn[i].connecting)
			return true;
	return false;
}

static enum plan_step
open_next(const struct plan *p, unsigned int *at)
{
	for (unsigned int i = 0; i < p->n_conn; i++)
		if (!p->conn[i].open) {
			*at = i;
			return PLAN_OPEN;
		}
	return PLAN_FULL;
}

/*
 * Check whether the steps of bfdd are over, and request an echo if necessary. Returns
 * PLAN_REST if all steps are over.
 */
static enum plan_step
steps_end(struct plan *p, unsigned int *at)
{
	bool waits = false;

	for (unsigned int i = 0; i < p->n_conn; i++) {
		struct plan_conn *c = &p->conn[i];

		if (!c->open || c->answers == ANSWERS)
			continue;
		waits = true;
		if (c->connecting || c->asked)
			continue;
		c->asked = 1;
		*at = i;
		return PLAN_ASK;
	}
	return waits ? PLAN_WAIT : PLAN_REST;
}

/* Facts by which plan_next() decides. Numbers of connections are -1 if there is none. */
struct view {
	uint32_t n_sessions;
	unsigned int n_open, n_empty, n_stale;
	int newest, newest_stale, oldest_empty;
};

static struct view
view_of(const struct plan *p)
{
	struct view v = {.newest = -1, .newest_stale = -1, .oldest_empty = -1};

	for (int i = 0; i < (int)p->n_conn; i++) {
		const struct plan_conn *c = &p->conn[i];

		if (!c->open)
			continue;
		v.n_open++;
		v.n_sessions += c->doubtful && c->n < PLAN_ROOM ? PLAN_ROOM : c->n;
		if (v.newest < 0 || c->born > p->conn[v.newest].born)
			v.newest = i;
		if (c->n == 0 && !c->doubtful) {
			v.n_empty++;
			if (v.oldest_empty < 0 || c->born < p->conn[v.oldest_empty].born)
				v.oldest_empty = i;
		} else if (c->stale) {
			v.n_stale++;
			if (v.newest_stale < 0 || c->born > p->conn[v.newest_stale].born)
				v.newest_stale = i;
		}
	}
	return v;
}

enum plan_step
plan_next(struct plan *p, unsigned int *at)
{
	enum plan_step step = steps_end(p, at);
	struct view v;

	if (step != PLAN_REST)
		return step;
	p->handing = false;
	for (unsigned int i = 0; i < p->n_conn; i++) {
		struct plan_conn *c = &p->conn[i];

		c->settled = c->open;
		c->burst = 0;
		c->stale = c->doubtful || (c->stale && c->n > 0);
	}
	v = view_of(p);
	/* If the newest connection got sessions, one more connection may get others. */
	if (v.n_open == 0 ||
	    (v.n_stale > 0 && (p->conn[v.newest].n > 0 || p->conn[v.newest].doubtful)))
		return open_next(p, at);
	if (v.n_stale > 0) {
		if (v.n_empty * PLAN_ROOM < v.n_sessions)
			return open_next(p, at);
		/*
		 * bfdd moves the sessions of a closed connection to the other connections,
		 * the oldest first. So in the end the last stale connection has all of
		 * them.
		 */
		*at = (unsigned int)v.newest_stale;
		return PLAN_CLOSE;
	}
	/*
	 * Since the newest connection was opened, bfdd may have lost sessions: see
	 * PLAN_ROOM.
	 */
	if (p->conn[v.newest].born < p->missed)
		return open_next(p, at);
	/* Keep one empty connection, which has room for new sessions. */
	if (v.n_empty > 1) {
		*at = (unsigned int)v.oldest_empty;
		return PLAN_CLOSE;
	}
	return PLAN_REST;
}
