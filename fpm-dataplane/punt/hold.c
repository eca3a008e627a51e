/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that wait for a neighbour: a bounded table, a few packets each. The kernel is
 * asked once a neighbour (through neigh); its answer frees them either way.      [punt]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/limits.h"
#include "base/worker.h"
#include "punt/internal.h"

int
hold_begin(struct punt *p)
{
	unsigned int buffers = p->conf.pool->size;

	p->most_hosts = table_limit(p->conf.limits, TABLE_waited_for);
	p->most_hold = p->most_hosts + p->most_hosts / 6;
	p->n_places = p->most_hosts + (p->most_hosts + 2) / 3;
	p->most_packets = table_limit(p->conf.limits, TABLE_waiting);
	if (p->most_packets > buffers / 2) {
		log_warn("punt: limits.waiting is more than half of the packet buffers, "
			 "which is taken max=%u buffers=%u",
			 buffers / 2, buffers);
		p->most_packets = buffers / 2;
	}
	p->hold = calloc(p->n_places, sizeof(*p->hold));
	table_begin(TABLE_waited_for, p->most_hosts);
	table_begin(TABLE_waiting, p->most_packets);
	return p->hold == NULL ? -ENOMEM : 0;
}

static struct held *
find(struct punt *p, uint16_t ifidx, uint8_t family, const struct ipaddr *addr)
{
	uint64_t h = ipaddr_hash(addr, p->fib->seed ^ ifidx);

	/* Never full: hold_packet() keeps some free, so the probe ends. */
	for (unsigned int i = 0;; i++) {
		struct held *e = &p->hold[(h + i) % p->n_places];

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
	table_used(TABLE_waited_for, --p->n_hold);
	for (unsigned int i = (hole + 1) % p->n_places; p->hold[i].family != 0;
	     i = (i + 1) % p->n_places) {
		struct held moved = p->hold[i];

		p->hold[i].family = 0;
		*find(p, moved.ifidx, moved.family, &moved.addr) = moved;
	}
}

bool
hold_waits(struct punt *p, const struct awaited *who)
{
	return find(p, who->ifidx, who->family, &who->addr)->family != 0;
}

void
hold_over(struct punt *p, const struct awaited *who)
{
	uint32_t host = fib_host_adj(p->fib, who->ifidx, who->family, &who->addr);

	if (who->adj != 0)
		fib_adj_open(p->fib->adj_used, who->adj);
	if (host != 0)
		fib_adj_open(p->fib->adj_used, host);
}

static void
tell_neigh(struct punt *p, enum msg_type type, const struct held *e)
{
	struct msg_neigh *m = msg_new(type, sizeof(*m));

	m->ifidx = e->ifidx;
	m->family = e->family;
	m->addr = e->addr;
	worker_send(p->conf.neigh, &m->m);
}

/* The host that had longest for an answer gives up its place, if that was long enough. */
static void
make_room(struct punt *p, double now)
{
	struct held *oldest = NULL;

	if (now < p->none_before)
		return;
	for (unsigned int i = 0; i < p->n_places; i++) {
		struct held *e = &p->hold[i];

		if (e->family != 0 && e->adj == 0 &&
		    (oldest == NULL || e->since < oldest->since))
			oldest = e;
	}
	if (oldest == NULL || now - oldest->since < HOLD_AT_LEAST) {
		p->none_before = oldest == NULL ? now : oldest->since + HOLD_AT_LEAST;
		return;
	}
	for (unsigned int i = 0; i < oldest->n; i++)
		punt_drop(p, oldest->m[i], DROP_hold_full);
	p->n_held -= oldest->n;
	tell_neigh(p, MSG_GLEAN_OVER, oldest);
	remove_entry(p, oldest);
}

/* A free entry for a neighbour; NULL when there is no room for it. */
static struct held *
enter(struct punt *p, const struct awaited *who)
{
	unsigned int most = who->adj != 0 ? p->most_hold : p->most_hosts;
	double now = monotonic_s();
	struct held *e;

	if (p->n_hold >= most || p->n_held >= p->most_packets)
		make_room(p, now);
	if (p->n_hold >= most || p->n_held >= p->most_packets) {
		table_refuse(p->n_hold >= most ? TABLE_waited_for : TABLE_waiting);
		return NULL;
	}
	e = find(p, who->ifidx, who->family, &who->addr);
	*e = (struct held){.ifidx = who->ifidx,
			   .family = who->family,
			   .addr = who->addr,
			   .since = now};
	table_used(TABLE_waited_for, ++p->n_hold);
	tell_neigh(p, MSG_GLEAN, e);
	return e;
}

void
hold_packet(struct punt *p, struct rte_mbuf *m, const struct awaited *who)
{
	struct held *e = find(p, who->ifidx, who->family, &who->addr);

	if (e->family == 0)
		e = enter(p, who);
	if (e == NULL) {
		punt_drop(p, m, DROP_hold_full);
		return;
	}
	if (e->n == HOLD_PER_NEIGHBOUR || p->n_held >= p->most_packets) {
		/* RFC 1122, 2.3.2.2: save at least the latest. The oldest makes room. */
		if (p->n_held >= p->most_packets)
			table_refuse(TABLE_waiting);
		punt_drop(p, e->m[0], DROP_hold_full);
		memmove(e->m, e->m + 1, (e->n - 1u) * sizeof(e->m[0]));
		e->n--;
		p->n_held--;
	}
	if (who->adj != 0)
		e->adj = who->adj;
	e->m[e->n++] = m;
	table_used(TABLE_waiting, ++p->n_held);
}

/*
 * Let the packets of an entry go, each by the route that it has now: on its way, or to the ICMP
 * error that says why there is none any more. `ip neigh flush` deletes who has just answered, in
 * as many rounds as it takes: then they wait for the next answer.
 */
static void
finish(struct punt *p, struct held *e, bool resolved)
{
	struct held copy = *e;
	struct awaited who = {copy.ifidx, copy.family, copy.addr, copy.adj};
	bool may_hold = resolved && copy.again < HOLD_AGAIN;

	remove_entry(p, e);
	p->n_held -= copy.n;
	table_used(TABLE_waiting, p->n_held);
	for (unsigned int i = 0; i < copy.n; i++) {
		struct rte_mbuf *m = copy.m[i];
		unsigned int n_held = p->n_held;

		if (may_hold && hold_waits(p, &who)) {
			hold_packet(p, m, &who); /* behind those before it */
			continue;
		}
		punt_forward(p, m, packet_meta(m)->family, packet_meta(m)->in_ifidx == 0,
			     may_hold);
		counter_add(&p->count->held, resolved && p->n_held == n_held);
	}
	e = find(p, who.ifidx, who.family, &who.addr);
	if (e->family == 0) {
		hold_over(p, &who);
		return;
	}
	e->again = copy.again + 1;
	e->since = copy.since;
}

void
hold_answer(struct punt *p, const struct msg_neigh *answer)
{
	struct held *e = find(p, answer->ifidx, answer->family, &answer->addr);

	if (e->family != 0)
		finish(p, e, answer->resolved);
}

void
hold_expire(struct punt *p, double now)
{
	for (unsigned int i = 0; i < p->n_places; i++)
		while (p->hold[i].family != 0 && now - p->hold[i].since > HOLD_SECONDS)
			finish(p, &p->hold[i], false); /* may move another entry here */
}

void
hold_clear(struct punt *p)
{
	for (unsigned int i = 0; i < p->n_places; i++) {
		struct held *e = &p->hold[i];

		if (e->family != 0)
			rte_pktmbuf_free_bulk(e->m, e->n);
		e->family = 0;
	}
	p->n_hold = p->n_held = 0;
}
