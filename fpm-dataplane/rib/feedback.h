/* SPDX-License-Identifier: BSD-3-Clause */
/* Report to zebra what happened to its routes. [rib] */
#ifndef RIB_FEEDBACK_H
#define RIB_FEEDBACK_H

#include <stdbool.h>
#include <stdint.h>

struct fpm_event;
struct msg_feedback;
struct rib;
struct route;
struct feedback_item;

struct rib_feedback {
	struct feedback_item *v; /* routes to report after the commit */
	uint32_t n, cap;
	/* the next route to report again (tables_walk_at()); 0: none is due again */
	uint32_t resend_at;
	uint64_t resend_lap; /* the routes are reported again after this lap of resync.h */
};

void feedback_put(struct rib *rib, const struct route *r); /* zebra sent it */
/* rib did not take the route */
void feedback_refuse(struct rib *rib, const struct fpm_event *ev);
/* Report all routes again after lap `lap` of resync.h. For rib->conf.feedback only. */
static inline void
feedback_resend_after(struct rib_feedback *f, uint64_t lap)
{
	f->resend_at = 1;
	f->resend_lap = lap;
}
/*
 * Report the next slice of all routes again, because reported failures may be over or a
 * table got a FIB. Return true if there are more.
 */
bool feedback_resend(struct rib *rib);
/* After a commit, put the reports into messages that are sent after the grace period. */
void feedback_seal(struct rib *rib);
void feedback_send(struct rib *rib, struct msg_feedback *m);

void rib_feedback_free(struct rib *rib);
void feedback_clear(struct rib *rib); /* for a new session, whose replay is reported */

#endif
