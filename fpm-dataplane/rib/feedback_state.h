/* SPDX-License-Identifier: BSD-3-Clause */
/* feedback_state: which routes feedback.c has to report to zebra. [rib] */
#ifndef RIB_FEEDBACK_STATE_H
#define RIB_FEEDBACK_STATE_H

#include <stdint.h>

struct feedback_item;

struct rib_feedback {
	struct feedback_item *v; /* routes to report after the commit */
	uint32_t n, cap;
	/* the next route to report again (tables_walk_at()); 0: none is due again */
	uint32_t resend_at;
	/* all routes are reported again after this lap of resync_request.h */
	uint64_t resend_lap;
};

/*
 * Report all routes again after lap `lap` of resync_request.h. Call this only if
 * rib->conf.feedback is set.
 */
static inline void
feedback_resend_after(struct rib_feedback *f, uint64_t lap)
{
	f->resend_at = 1;
	f->resend_lap = lap;
}

#endif
