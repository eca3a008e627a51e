/* SPDX-License-Identifier: BSD-3-Clause */
/* packets: write packets that matched a rule with `log` to the log. [filter] */
#ifndef FILTER_PACKETS_H
#define FILTER_PACKETS_H

#include <ev.h>

#include "ruleset/logged.h"

struct ruleset;

struct packets {
	struct logged_ring *ring; /* one per thread; NULL: no rule has ever had `log` */
	unsigned int n_ring;
	struct ev_loop *loop;
	ev_timer tick;
	unsigned int left;  /* lines that may still be written in this tick */
	unsigned int ticks; /* ticks since the timer started */
	uint64_t n_lost;    /* packets without a line, as last logged and counted */
	uint64_t n_over;    /* packets taken from the rings when `left` was 0: no line */
};

/* Let the rules of a new ruleset log their packets. `n`: threads that judge packets. */
void packets_serve(struct packets *p, struct ev_loop *loop, struct ruleset *r,
		   unsigned int n);

/* Stop the timer. packets_free() writes the last packets, when no thread judges packets. */
void packets_stop(struct packets *p);
void packets_free(struct packets *p);

#endif
