/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neigh_queue: packets that wait for a neighbor, in a bounded table of queues with up to
 * QUEUE_PACKETS_MAX packets each. The thread asks the kernel once per neighbor, through
 * neigh. The answer, positive or negative, releases the packets.                 [punt]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/limits.h"
#include "base/worker.h"
#include "punt/internal.h"
#include "punt/tunnel.h"

int
neigh_queue_begin(struct punt *p)
{
	unsigned int buffers = p->conf.pool->size;

	p->max_hosts = table_limit(p->conf.limits, TABLE_waited_for);
	p->max_queues = p->max_hosts + p->max_hosts / 6;
	p->n_places = p->max_hosts + (p->max_hosts + 2) / 3;
	p->max_packets = table_limit(p->conf.limits, TABLE_waiting);
	if (p->max_packets > buffers / 2) {
		log_warn("punt: limit clamped key=limits.waiting max=%u buffers=%u",
			 buffers / 2, buffers);
		p->max_packets = buffers / 2;
	}
	p->queue = calloc(p->n_places, sizeof(*p->queue));
	table_begin(TABLE_waited_for, p->max_hosts);
	table_begin(TABLE_waiting, p->max_packets);
	return p->queue == NULL ? -ENOMEM : 0;
}

static struct neigh_queue *
neigh_queue_find(struct punt *p, uint16_t ifidx, uint8_t family, const struct ipaddr *addr)
{
	uint64_t h = ipaddr_hash(addr, p->fib->seed ^ ifidx);

	/* neigh_queue_enter() keeps some entries free, so the probe ends. */
	for (unsigned int i = 0;; i++) {
		struct neigh_queue *e = &p->queue[(h + i) % p->n_places];

		if (e->family == 0 || (e->ifidx == ifidx && e->family == family &&
				       ipaddr_equal(&e->addr, addr)))
			return e;
	}
}

/* Empty an entry and close the gap in the probe sequence. */
static void
neigh_queue_remove(struct punt *p, struct neigh_queue *e)
{
	unsigned int hole = (unsigned int)(e - p->queue);

	e->family = 0;
	table_used(TABLE_waited_for, --p->n_queues);
	for (unsigned int i = (hole + 1) % p->n_places; p->queue[i].family != 0;
	     i = (i + 1) % p->n_places) {
		struct neigh_queue moved = p->queue[i];

		p->queue[i].family = 0;
		*neigh_queue_find(p, moved.ifidx, moved.family, &moved.addr) = moved;
	}
}

struct neigh_key
neigh_key_of(const struct punt *p, fib_path path, uint8_t family, const uint8_t *ip)
{
	uint32_t index = path_index(path);
	struct neigh_key key = {.ifidx = (uint16_t)index, .family = family};
	const struct fib_vxlan_hop *vxlan = ip == NULL ? NULL : path_vxlan(p->fib, path);
	struct fib_tunnel_outer outer;
	struct fib_vxlan_outer vo;

	if (vxlan != NULL) {
		fib_vxlan_resolve(p->fib, vxlan, family, ip,
				  family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4),
				  &vo);
		if (vo.reason != N_REASON)
			return (struct neigh_key){0};
		return punt_vxlan_key(p, vxlan, vo.path);
	}
	if (path_tunnel(p->fib, path) != NULL) {
		fib_tunnel_resolve(p->fib, (uint16_t)index,
				   ip == NULL ? 0 : ip_dsfield(ip, family), &outer);
		if (outer.reason != N_REASON)
			return (struct neigh_key){0};
		if (path_kind(outer.path) == PATH_ONLINK)
			return punt_tunnel_key(&outer);
		path = outer.path;
		index = path_index(path);
	}
	if (path_kind(path) == PATH_ADJ)
		return neigh_key_of_adj(p, index);
	if (ip == NULL) /* labels, and no IP packet behind them: no address */
		return (struct neigh_key){0};
	memcpy(key.addr.octet, family == 4 ? ip + 16 : ip + 24, family_octets(family));
	return key;
}

bool
neigh_queue_exists(struct punt *p, const struct neigh_key *key)
{
	return neigh_queue_find(p, key->ifidx, key->family, &key->addr)->family != 0;
}

void
neigh_queue_over(struct punt *p, const struct neigh_key *key)
{
	uint32_t host = fib_host_adj(p->fib, key->ifidx, key->family, &key->addr);

	if (key->adj != 0)
		fib_adj_open(p->fib->adj_used, key->adj);
	if (host != 0)
		fib_adj_open(p->fib->adj_used, host);
}

static void
neigh_queue_tell_neigh(struct punt *p, enum msg_type type, const struct neigh_queue *e)
{
	struct msg_neigh *m = msg_new(type, sizeof(*m));

	m->ifidx = e->ifidx;
	m->family = e->family;
	m->addr = e->addr;
	worker_send(p->conf.neigh, &m->m);
}

/*
 * Remove the entry of the host for which packets have waited longest, if they have waited
 * for QUEUE_AT_LEAST_S or more.
 */
static void
neigh_queue_make_room(struct punt *p, double now)
{
	struct neigh_queue *oldest = NULL;

	if (now < p->none_before)
		return;
	for (unsigned int i = 0; i < p->n_places; i++) {
		struct neigh_queue *e = &p->queue[i];

		if (e->family != 0 && e->adj == 0 &&
		    (oldest == NULL || e->since < oldest->since))
			oldest = e;
	}
	if (oldest == NULL || now - oldest->since < QUEUE_AT_LEAST_S) {
		p->none_before = oldest == NULL ? now : oldest->since + QUEUE_AT_LEAST_S;
		return;
	}
	for (unsigned int i = 0; i < oldest->n; i++)
		punt_drop(p, oldest->m[i], DROP_hold_full);
	p->n_waiting -= oldest->n;
	table_used(TABLE_waiting, p->n_waiting);
	neigh_queue_tell_neigh(p, MSG_GLEAN_OVER, oldest);
	neigh_queue_remove(p, oldest);
}

/* Return a new entry for a neighbor, NULL if there is no room. */
static struct neigh_queue *
neigh_queue_enter(struct punt *p, const struct neigh_key *key)
{
	unsigned int max = key->adj != 0 ? p->max_queues : p->max_hosts;
	double now = monotonic_s();
	struct neigh_queue *e;

	if (p->n_queues >= max || p->n_waiting >= p->max_packets)
		neigh_queue_make_room(p, now);
	if (p->n_queues >= max || p->n_waiting >= p->max_packets) {
		table_refuse(p->n_queues >= max ? TABLE_waited_for : TABLE_waiting);
		return NULL;
	}
	e = neigh_queue_find(p, key->ifidx, key->family, &key->addr);
	*e = (struct neigh_queue){.ifidx = key->ifidx,
				  .family = key->family,
				  .addr = key->addr,
				  .since = now};
	table_used(TABLE_waited_for, ++p->n_queues);
	neigh_queue_tell_neigh(p, MSG_GLEAN, e);
	return e;
}

void
neigh_queue_add(struct punt *p, struct rte_mbuf *m, const struct neigh_key *key)
{
	struct neigh_queue *e = neigh_queue_find(p, key->ifidx, key->family, &key->addr);

	if (e->family == 0)
		e = neigh_queue_enter(p, key);
	if (e == NULL) {
		punt_drop(p, m, DROP_hold_full);
		return;
	}
	if (e->n == QUEUE_PACKETS_MAX || p->n_waiting >= p->max_packets) {
		/*
		 * RFC 1122, 2.3.2.2: keep at least the latest packet. The oldest one is
		 * dropped.
		 */
		if (p->n_waiting >= p->max_packets)
			table_refuse(TABLE_waiting);
		punt_drop(p, e->m[0], DROP_hold_full);
		memmove(e->m, e->m + 1, (e->n - 1u) * sizeof(e->m[0]));
		e->n--;
		p->n_waiting--;
	}
	if (key->adj != 0)
		e->adj = key->adj;
	e->m[e->n++] = m;
	table_used(TABLE_waiting, ++p->n_waiting);
}

/* Empty an entry and pass its packets to the caller in `*out`. */
static void
neigh_queue_take(struct punt *p, struct neigh_queue *e, struct neigh_queue *out)
{
	*out = *e;
	neigh_queue_remove(p, e);
	p->n_waiting -= out->n;
	table_used(TABLE_waiting, p->n_waiting);
}

bool
neigh_queue_take_answered(struct punt *p, const struct msg_neigh *answer,
			  struct neigh_queue *out)
{
	struct neigh_queue *e =
		neigh_queue_find(p, answer->ifidx, answer->family, &answer->addr);

	if (e->family == 0)
		return false;
	neigh_queue_take(p, e, out);
	return true;
}

bool
neigh_queue_take_expired(struct punt *p, double now, unsigned int *place,
			 struct neigh_queue *out)
{
	for (; *place < p->n_places; ++*place) {
		struct neigh_queue *e = &p->queue[*place];

		if (e->family == 0 || now - e->since <= QUEUE_MAX_S)
			continue;
		neigh_queue_take(p, e, out); /* may move another entry to this place */
		return true;
	}
	return false;
}

void
neigh_queue_again(struct punt *p, const struct neigh_queue *was)
{
	struct neigh_key key = {was->ifidx, was->family, was->addr, was->adj};
	struct neigh_queue *e = neigh_queue_find(p, key.ifidx, key.family, &key.addr);

	if (e->family == 0) {
		neigh_queue_over(p, &key);
		return;
	}
	e->again = was->again + 1;
	e->since = was->since;
}

void
neigh_queue_clear(struct punt *p)
{
	for (unsigned int i = 0; i < p->n_places; i++) {
		struct neigh_queue *e = &p->queue[i];

		if (e->family != 0)
			rte_pktmbuf_free_bulk(e->m, e->n);
		e->family = 0;
	}
	p->n_queues = p->n_waiting = 0;
}
