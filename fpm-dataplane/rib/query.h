/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers to the ui. [rib]. Queries wait for the commit, so that an answer shows the state
 * of the forwarders.
 */
#ifndef RIB_QUERY_H
#define RIB_QUERY_H

#include <stdint.h>

struct msg_query;
struct rib;

struct rib_queries {
	struct msg_query **v; /* wait for the commit; base/msg.h limits their number */
	uint32_t n, cap;
};

void query_put(struct rib *rib, struct msg_query *q);
void query_answer_all(struct rib *rib);

#endif
