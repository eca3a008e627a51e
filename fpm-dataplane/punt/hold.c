/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold: packets that wait for a neighbor, in a bounded table with up to HOLD_PER_NEIGHBOR
 * packets per entry. The kernel is asked once per neighbor, through neigh. Its answer,
 * either way, releases the packets.                                              [punt]
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

	p->max_hosts = table_limit(p->conf.limits, TABLE_waited_for);
	p->max_hold = p->max_hosts + p->max_hosts / 6;
	p->n_places = p->max_hosts + (p->max_hosts + 2) / 3;
	p->max_packets = table_limit(p->conf.limits, TABLE_waiting);
	if (p->max_packets > buffers / 2) {
		log_warn("punt: limits.waiting clamped max=%u buffers=%u", buffers / 2,
			 buffers);
		p->max_packets = buffers / 2;
	}
	p->hold = calloc(p->n_places, sizeof(*p->hold));
	table_begin(TABLE_waited_for, p->max_hosts);
	table_begin(TABLE_waiting, p->max_packets);
	return p->hold == NULL ? -ENOMEM : 0;
}

static struct held *
held_find(struct punt *p, uint16_t ifidx, uint8_t family, const struct ipaddr *addr)
{
	uint64_t h = ipaddr_hash(addr, p->fib->seed ^ ifidx);

	/* hold_enter() keeps some entries free, so the probe ends. */
	for (unsigned int i = 0;; i++) {
		struct held *e = &p->hold[(h + i) % p->n_places];

		if (e->family == 0 || (e->ifidx == ifidx && e->family == family &&
				       ipaddr_equal(&e->addr, addr)))
			return e;
	}
}

/* Empty an entry and close the gap in the probe sequence. */
static void
held_remove(struct punt *p, struct held *e)
{
	unsigned int hole = (unsigned int)(e - p->hold);

	e->family = 0;
	table_used(TABLE_waited_for, --p->n_hold);
	for (unsigned int i = (hole + 1) % p->n_places; p->hold[i].family != 0;
	     i = (i + 1) % p->n_places) {
		struct held moved = p->hold[i];

		p->hold[i].family = 0;
		*held_find(p, moved.ifidx, moved.family, &moved.addr) = moved;
	}
}

struct awaited
hold_awaited(const struct punt *p, fib_path path, uint8_t family, const uint8_t *ip)
{
	uint32_t index = path_index(path);
	struct awaited who = {.ifidx = (uint16_t)index, .family = family};

	if (path_kind(path) == PATH_ADJ) {
		const struct fib_adj *adj = &p->fib->adj[index];

		return (struct awaited){adj->ifidx, adj->family, adj->addr, index};
	}
	memcpy(who.addr.octet, family == 4 ? ip + 16 : ip + 24, family_octets(family));
	return who;
}

bool
hold_waits(struct punt *p, const struct awaited *who)
{
	return held_find(p, who->ifidx, who->family, &who->addr)->family != 0;
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
held_tell_neigh(struct punt *p, enum msg_type type, const struct held *e)
{
	struct msg_neigh *m = msg_new(type, sizeof(*m));

	m->ifidx = e->ifidx;
	m->family = e->family;
	m->addr = e->addr;
	worker_send(p->conf.neigh, &m->m);
}

/* Remove the host that has waited longest, if that is HOLD_AT_LEAST or more. */
static void
hold_make_room(struct punt *p, double now)
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
	held_tell_neigh(p, MSG_GLEAN_OVER, oldest);
	held_remove(p, oldest);
}

/* Return a new entry for a neighbor, NULL if there is no room. */
static struct held *
hold_enter(struct punt *p, const struct awaited *who)
{
	unsigned int max = who->adj != 0 ? p->max_hold : p->max_hosts;
	double now = monotonic_s();
	struct held *e;

	if (p->n_hold >= max || p->n_held >= p->max_packets)
		hold_make_room(p, now);
	if (p->n_hold >= max || p->n_held >= p->max_packets) {
		table_refuse(p->n_hold >= max ? TABLE_waited_for : TABLE_waiting);
		return NULL;
	}
	e = held_find(p, who->ifidx, who->family, &who->addr);
	*e = (struct held){.ifidx = who->ifidx,
			   .family = who->family,
			   .addr = who->addr,
			   .since = now};
	table_used(TABLE_waited_for, ++p->n_hold);
	held_tell_neigh(p, MSG_GLEAN, e);
	return e;
}

void
hold_packet(struct punt *p, struct rte_mbuf *m, const struct awaited *who)
{
	struct held *e = held_find(p, who->ifidx, who->family, &who->addr);

	if (e->family == 0)
		e = hold_enter(p, who);
	if (e == NULL) {
		punt_drop(p, m, DROP_hold_full);
		return;
	}
	if (e->n == HOLD_PER_NEIGHBOR || p->n_held >= p->max_packets) {
		/*
		 * RFC 1122, 2.3.2.2: keep at least the latest packet. The oldest one is
		 * dropped.
		 */
		if (p->n_held >= p->max_packets)
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

/* Empty an entry and pass its packets to the caller in `*out`. */
static void
held_take(struct punt *p, struct held *e, struct held *out)
{
	*out = *e;
	held_remove(p, e);
	p->n_held -= out->n;
	table_used(TABLE_waiting, p->n_held);
}

bool
hold_take_answered(struct punt *p, const struct msg_neigh *answer, struct held *out)
{
	struct held *e = held_find(p, answer->ifidx, answer->family, &answer->addr);

	if (e->family == 0)
		return false;
	held_take(p, e, out);
	return true;
}

bool
hold_take_expired(struct punt *p, double now, unsigned int *place, struct held *out)
{
	for (; *place < p->n_places; ++*place) {
		struct held *e = &p->hold[*place];

		if (e->family == 0 || now - e->since <= HOLD_SECONDS)
			continue;
		held_take(p, e, out); /* may move another entry to this place */
		return true;
	}
	return false;
}

void
hold_again(struct punt *p, const struct held *was)
{
	struct awaited who = {was->ifidx, was->family, was->addr, was->adj};
	struct held *e = held_find(p, who.ifidx, who.family, &who.addr);

	if (e->family == 0) {
		hold_over(p, &who);
		return;
	}
	e->again = was->again + 1;
	e->since = was->since;
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
