/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that wait for a neighbour: a bounded table, a few packets each. The kernel is
 * asked once a neighbour (through neigh); its answer frees them either way.      [punt]
 */
#include <string.h>

#include "base/worker.h"
#include "punt/internal.h"

static struct held *
find(struct punt *p, uint16_t ifidx, uint8_t family, const struct ipaddr *addr)
{
	uint64_t h = ipaddr_hash(addr, p->fib->seed ^ ifidx);

	/* Never full: hold_packet() keeps a quarter free, so the probe ends. */
	for (unsigned int i = 0;; i++) {
		struct held *e = &p->hold[(h + i) % HOLD_NEIGHBOURS];

		if (e->family == 0 || (e->ifidx == ifidx && e->family == family &&
				       ipaddr_equal(&e->addr, addr)))
			return e;
	}
}

/* Empty an entry and close the gap it leaves in the probe sequence. */
static void
remove_entry(struct punt *p, struct held *e)
{
	unsigned int hole = (unsigned int)(e - p->hold);

	e->family = 0;
	p->n_hold--;
	for (unsigned int i = (hole + 1) % HOLD_NEIGHBOURS; p->hold[i].family != 0;
	     i = (i + 1) % HOLD_NEIGHBOURS) {
		struct held moved = p->hold[i];

		p->hold[i].family = 0;
		*find(p, moved.ifidx, moved.family, &moved.addr) = moved;
	}
}

void
hold_packet(struct punt *p, struct rte_mbuf *m, uint16_t ifidx, uint8_t family,
	    const struct ipaddr *addr)
{
	struct held *e = find(p, ifidx, family, addr);
	struct msg_neigh *glean;

	if (e->family == 0 &&
	    (p->n_hold >= HOLD_NEIGHBOURS * 3 / 4 || p->n_held >= HOLD_PACKETS)) {
		punt_drop(p, m, DROP_hold_full);
		return;
	}
	if (e->family == 0) {
		*e = (struct held){.ifidx = ifidx,
				   .family = family,
				   .addr = *addr,
				   .since = ev_now(p->worker->loop)};
		p->n_hold++;
		glean = msg_new(MSG_GLEAN, sizeof(*glean));
		glean->ifidx = ifidx;
		glean->family = family;
		glean->addr = *addr;
		worker_send(p->conf.neigh, &glean->m);
	}
	if (e->n == HOLD_PER_NEIGHBOUR || p->n_held >= HOLD_PACKETS) {
		/* RFC 1122, 2.3.2.2: save at least the latest. The oldest makes room. */
		punt_drop(p, e->m[0], DROP_hold_full);
		memmove(e->m, e->m + 1, (e->n - 1u) * sizeof(e->m[0]));
		e->n--;
		p->n_held--;
	}
	e->m[e->n++] = m;
	p->n_held++;
}

/* Let the packets of an entry go: on their way, or to an ICMP error. */
static void
finish(struct punt *p, struct held *e, bool resolved)
{
	struct held copy = *e;

	remove_entry(p, e);
	p->n_held -= copy.n;
	for (unsigned int i = 0; i < copy.n; i++) {
		struct rte_mbuf *m = copy.m[i];

		if (resolved) {
			counter_add(&p->count->held, 1);
			punt_forward(p, m, packet_meta(m)->family,
				     packet_meta(m)->in_ifidx == 0, false);
		} else {
			icmp_for_drop(p, m, DROP_neigh_failed);
			punt_drop(p, m, DROP_neigh_failed);
		}
	}
}

void
hold_answer(struct punt *p, const struct msg_neigh *answer)
{
	struct held *e = find(p, answer->ifidx, answer->family, &answer->addr);

	if (e->family != 0)
		finish(p, e, answer->resolved);
}

void
hold_expire(struct punt *p, ev_tstamp now)
{
	for (unsigned int i = 0; i < HOLD_NEIGHBOURS; i++)
		while (p->hold[i].family != 0 && now - p->hold[i].since > HOLD_SECONDS)
			finish(p, &p->hold[i], false); /* may move another entry here */
}

void
hold_clear(struct punt *p)
{
	for (unsigned int i = 0; i < HOLD_NEIGHBOURS; i++) {
		struct held *e = &p->hold[i];

		if (e->family != 0)
			rte_pktmbuf_free_bulk(e->m, e->n);
		e->family = 0;
	}
	p->n_hold = p->n_held = 0;
}
