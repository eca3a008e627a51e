/* SPDX-License-Identifier: BSD-3-Clause */
/* What is told to zebra of the routes it sent. [rib]. */
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
	struct feedback_item *v; /* routes to be acknowledged after the commit */
	uint32_t n, cap;
	uint32_t resend_at; /* 0: no route was said to have failed for a lack of memory */
};

void feedback_put(struct rib *rib, const struct route *r);         /* zebra has sent it */
void feedback_refuse(struct rib *rib, const struct fpm_event *ev); /* not even kept */
/* A slice, when there is memory again, of all routes. Returns true when there are more. */
bool feedback_resend(struct rib *rib);
void feedback_seal(struct rib *rib); /* all so far is committed */
void feedback_send(struct rib *rib, struct msg_feedback *m);

void rib_feedback_free(struct rib *rib);
void feedback_clear(struct rib *rib); /* another session: the replay will be acknowledged */

#endif
