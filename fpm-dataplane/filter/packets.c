/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of rules with `log`, as lines of the daemon's log. A rule without a limit
 * could write a line for each packet, so a tick has at most LINES_TICK of them. [filter]
 */
#include "filter/packets.h"

#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/filter_status.h"
#include "base/log.h"
#include "filter/packet_text.h"
#include "ruleset/ruleset.h"

#define TICK_S     0.1
#define TICKS_S    10u
#define LINES_TICK 20u /* at most 200 lines a second, of all rings */

/* Return the level of the daemon's log for a level of syslog. */
static enum log_level
level_of(uint8_t syslog)
{
	return syslog <= 3   ? LOG_LEVEL_ERROR
	       : syslog == 4 ? LOG_LEVEL_WARN
	       : syslog <= 6 ? LOG_LEVEL_INFO
			     : LOG_LEVEL_DEBUG;
}

static void
packet_write(struct packets *p, const struct logged *l)
{
	enum log_level level = level_of(l->log.level);
	char text[PACKET_TEXT];

	if (!log_enabled(level))
		return;
	if (p->left == 0) {
		p->n_over++;
		return;
	}
	p->left--;
	log_write(level, "filter: packet logged %s", packet_text(l, text));
	atomic_fetch_add_explicit(&filter_status.logged, 1, memory_order_relaxed);
}

/* Log how many packets have no line. */
static void
lost_write(struct packets *p)
{
	uint64_t lost = p->n_over;

	for (unsigned int i = 0; i < p->n_ring; i++)
		lost += counter_read(&p->ring[i].n_lost);
	if (lost == p->n_lost)
		return;
	log_warn("filter: packets not logged packets=%llu reason=too-many",
		 (unsigned long long)(lost - p->n_lost));
	p->n_lost = lost;
	atomic_store_explicit(&filter_status.log_lost, lost, memory_order_relaxed);
}

/*
 * Write the packets of all rings. Take at most LOGGED_SLOTS packets from a ring, because
 * otherwise the loop would not end under a flood.
 */
static void
rings_empty(struct packets *p)
{
	struct logged l;

	/*
	 * Begin each tick with another ring, so that a flood in one ring does not use up
	 * the lines of the other rings.
	 */
	for (unsigned int k = 0; k < p->n_ring; k++) {
		struct logged_ring *ring = &p->ring[(p->ticks + k) % p->n_ring];

		for (unsigned int n = 0; n < LOGGED_SLOTS && logged_take(ring, &l); n++)
			packet_write(p, &l);
	}
}

static void
packets_on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct packets *p = timer->data;

	p->left = LINES_TICK;
	if (p->ticks++ % TICKS_S == 0)
		lost_write(p);
	rings_empty(p);
}

void
packets_serve(struct packets *p, struct ev_loop *loop, struct ruleset *r, unsigned int n)
{
	if (!r->logs)
		return;
	if (p->ring == NULL) {
		p->ring = aligned_alloc(64, n * sizeof(*p->ring));
		if (p->ring == NULL)
			abort();
		memset(p->ring, 0, n * sizeof(*p->ring));
		p->n_ring = n;
		p->loop = loop;
		ev_timer_init(&p->tick, packets_on_tick, TICK_S, TICK_S);
		p->tick.data = p;
		/*
		 * The timer runs until packets_stop(), because an old ruleset that logs may
		 * still be in use when a new ruleset logs nothing.
		 */
		ev_timer_start(loop, &p->tick);
	}
	r->logged = p->ring;
}

void
packets_stop(struct packets *p)
{
	if (p->ring == NULL)
		return;
	ev_timer_stop(p->loop, &p->tick);
}

void
packets_free(struct packets *p)
{
	if (p->ring == NULL)
		return;
	rings_empty(p);
	lost_write(p);
	free(p->ring);
	p->ring = NULL;
}
