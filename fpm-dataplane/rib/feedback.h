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

void feedback_put(struct rib *rib, const struct route *r); /* zebra sent it */
/* rib did not take the route */
void feedback_refuse(struct rib *rib, const struct fpm_event *ev);
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
