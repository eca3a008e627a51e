/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adjacencies of next hops: one for each (interface, family, gateway), however many slots
 * of fib->group use it. [rib]. neigh keeps the MAC addresses; this file keeps the numbers.
 *
 * commit.c drops a reference a grace period after it unpublished the last path. Thus neigh
 * gets the request to forget a neighbor only when no forwarder can still send to it. The
 * number is used again after neigh has answered that it no longer writes there.
 *
 * A commit waits for neigh's answer about new adjacencies (adj_is_awaited). Otherwise a
 * forwarder could use an adjacency without a MAC address that the kernel already has. neigh
 * answers at once from its own table. If it does not answer, the commit waits at most
 * ANSWER_MS.
 */
#include "rib/adj.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "rib/index.h"
#include "rib/link.h"
#include "rib/impl.h"
#include "rib/slot.h"

#define ANSWER_MS 50

static uint64_t
adj_hash(const struct rib *rib, uint32_t ifindex, uint8_t family, const struct ipaddr *addr)
{
	return ipaddr_hash(addr, rib->fib->seed ^ ((uint64_t)family << 32 | ifindex));
}

static void
adj_send_neigh(struct rib *rib, enum msg_type type, uint32_t number, uint16_t ifidx)
{
	const struct adj *a = &rib->adjs.v[number];
	struct msg_adj *m = msg_new(type, sizeof(*m));

	m->adj = number;
	m->ifindex = a->ifindex;
	m->ifidx = ifidx;
	m->family = a->family;
	m->addr = a->addr;
	worker_send(rib->conf.neigh, &m->m);
}

/* Return how many numbers are in use, or become free when neigh has answered. */
static uint32_t
adj_count_used(const struct rib *rib)
{
	return rib->adjs.high - fifo32_len(&rib->adjs.unused);
}

static uint32_t
adj_number_new(struct rib *rib)
{
	if (fifo32_len(&rib->adjs.unused) > 0)
		return fifo32_pop(&rib->adjs.unused);
	if (rib->adjs.high + 1 >= rib->fib->adj_hosts)
		return 0;
	return ++rib->adjs.high;
}

static uint64_t
adj_mac_hash(const struct rib *rib, uint32_t ifindex, uint64_t mac)
{
	struct ipaddr key = ipaddr_of_mac(mac);

	return adj_hash(rib, ifindex, 0, &key);
}

/* Store the MAC address that neigh reports; 0: it is not known yet. */
static void
adj_mac_set(struct rib *rib, uint32_t number, uint64_t mac)
{
	struct adj *a = &rib->adjs.v[number];

	if (a->family != 6 || mac == 0 || mac == a->mac)
		return;
	if (a->mac != 0)
		hidx_del(&rib->adjs.by_mac, number);
	a->mac = mac;
	hidx_add(&rib->adjs.by_mac, adj_mac_hash(rib, a->ifindex, mac), number);
}

/* Return true if BFD has found the address or the MAC address of an adjacency dead. */
static bool
adj_is_dead(const struct rib *rib, const struct adj *a)
{
	struct ipaddr mac = ipaddr_of_mac(a->mac);

	return prune_has(rib, a->ifindex, a->family, &a->addr) ||
	       (a->mac != 0 && prune_has(rib, a->ifindex, 0, &mac));
}

/* Return the number of the adjacency; 0: none. */
static uint32_t
adj_find(const struct rib *rib, uint64_t hash, const struct link *link, uint8_t family,
	 const struct ipaddr *addr)
{
	uint32_t number;

	for (number = hidx_first(&rib->adjs.by_key, hash); number != 0;
	     number = hidx_next(&rib->adjs.by_key, number)) {
		const struct adj *a = &rib->adjs.v[number];

		if (a->ifindex == link->ifindex && a->family == family &&
		    rib->fib->adj[number].ifidx == link->ifidx &&
		    ipaddr_equal(&a->addr, addr))
			return number;
	}
	return 0;
}

uint32_t
adj_number(const struct rib *rib, const struct link *link, uint8_t family,
	   const struct ipaddr *addr)
{
	return adj_find(rib, adj_hash(rib, link->ifindex, family, addr), link, family,
			addr);
}

bool
adj_is_available(const struct rib *rib, const struct link *link, uint8_t family,
		 const struct ipaddr *addr)
{
	return adj_count_used(rib) < rib->fib->adj_hosts - 1 ||
	       adj_find(rib, adj_hash(rib, link->ifindex, family, addr), link, family,
			addr) != 0;
}

/*
 * Take a reference to the adjacency, and create it if necessary. Return 0 when all numbers
 * are in use.
 */
uint32_t
adj_get(struct rib *rib, const struct link *link, uint8_t family, const struct ipaddr *addr)
{
	uint64_t hash = adj_hash(rib, link->ifindex, family, addr);
	uint32_t number = adj_find(rib, hash, link, family, addr);
	struct adj *a;

	if (number != 0) {
		rib->adjs.v[number].refs++;
		return number;
	}
	number = adj_number_new(rib);
	if (number == 0) {
		table_refuse(TABLE_adjacencies);
		return 0;
	}
	a = &rib->adjs.v[number];
	*a = (struct adj){.ifindex = link->ifindex,
			  .refs = 1,
			  .family = family,
			  .state = ADJ_WATCHED,
			  .alive = true,
			  .resolved = true, /* until neigh answers */
			  .pruned = prune_has(rib, link->ifindex, family, addr),
			  .addr = *addr};
	CDS_INIT_LIST_HEAD(&a->legs);
	rib->adjs.n++;
	table_used(TABLE_adjacencies, adj_count_used(rib));
	hidx_add(&rib->adjs.by_key, hash, number);
	/*
	 * Write the key before any path leads here. The release store of the group word
	 * orders this.
	 */
	rib->fib->adj[number].ifidx = link->ifidx;
	rib->fib->adj[number].family = family;
	rib->fib->adj[number].addr = *addr;
	if (!rib->stopping) {
		a->asked = true;
		if (rib->adjs.n_asked++ == 0)
			rib->adjs.asked_ms = rib->clock_ms();
		adj_send_neigh(rib, MSG_ADJ_WATCH, number, link->ifidx);
	}
	return number;
}

void
adj_event_ready(struct rib *rib, const struct msg_adj *m)
{
	struct leg *leg;
	struct adj *a;
	bool pruned;

	if (m->adj == 0 || m->adj >= rib->fib->adj_hosts || !rib->adjs.v[m->adj].asked)
		return;
	a = &rib->adjs.v[m->adj];
	a->asked = false;
	rib->adjs.n_asked--;
	if (a->state != ADJ_WATCHED)
		return;
	adj_mac_set(rib, m->adj, m->mac);
	pruned = adj_is_dead(rib, a);
	/* The commit that waits for the answer computes the words. */
	if (a->resolved != m->resolved || a->pruned != pruned)
		cds_list_for_each_entry (leg, &a->legs, on_adj)
			slot_dirty(rib, leg->slot, SLOT_PATHS);
	a->resolved = m->resolved;
	a->pruned = pruned;
}

bool
adj_is_awaited(const struct rib *rib)
{
	return rib->adjs.n_asked > 0 && rib->clock_ms() - rib->adjs.asked_ms < ANSWER_MS;
}

void
adj_put(struct rib *rib, uint32_t number)
{
	struct adj *a = &rib->adjs.v[number];

	assert(a->refs > 0);
	if (--a->refs > 0)
		return;
	hidx_del(&rib->adjs.by_key, number);
	if (a->mac != 0)
		hidx_del(&rib->adjs.by_mac, number);
	a->state = ADJ_UNWATCHED;
	rib->adjs.n--;
	if (!rib->stopping)
		adj_send_neigh(rib, MSG_ADJ_UNWATCH, number, rib->fib->adj[number].ifidx);
}

void
adj_event_freed(struct rib *rib, const struct msg_adj *m)
{
	if (m->adj == 0 || m->adj >= rib->fib->adj_hosts ||
	    rib->adjs.v[m->adj].state != ADJ_UNWATCHED)
		return;
	rib->adjs.v[m->adj].state = ADJ_FREE;
	fifo32_push(&rib->adjs.unused, m->adj);
	table_used(TABLE_adjacencies, adj_count_used(rib));
	rib->adjs.freed = true;
}

/*
 * Mark the slots that use an adjacency, so that their words are computed again before the
 * next batch of routes.
 */
static void
adj_slots_dirty(struct rib *rib, struct adj *a)
{
	struct leg *leg;

	cds_list_for_each_entry (leg, &a->legs, on_adj)
		slot_dirty(rib, leg->slot, SLOT_PATHS);
	rib->words.due = true;
}

void
adj_event_state(struct rib *rib, const struct msg_adj *m)
{
	struct adj *a;
	bool pruned;

	if (m->adj == 0 || m->adj >= rib->fib->adj_hosts)
		return;
	a = &rib->adjs.v[m->adj];
	/*
	 * A number is reused only after MSG_ADJ_FREED. A state that arrives earlier belongs
	 * to the old neighbor.
	 */
	if (a->state != ADJ_WATCHED)
		return;
	adj_mac_set(rib, m->adj, m->mac);
	pruned = adj_is_dead(rib, a);
	if (a->alive == m->alive && a->resolved == m->resolved && a->pruned == pruned)
		return;
	a->alive = m->alive;
	a->resolved = m->resolved;
	a->pruned = pruned;
	adj_slots_dirty(rib, a);
}

void
adjs_prune(struct rib *rib, const struct msg_bfd_hop *m)
{
	const struct hidx *idx = m->family == 0 ? &rib->adjs.by_mac : &rib->adjs.by_key;
	uint32_t number = hidx_first(idx, adj_hash(rib, m->ifindex, m->family, &m->addr));

	/* adj_is_dead() compares the key, so others with the same hash keep their state. */
	for (; number != 0; number = hidx_next(idx, number)) {
		struct adj *a = &rib->adjs.v[number];
		bool dead = adj_is_dead(rib, a);

		if (a->pruned == dead)
			continue;
		a->pruned = dead;
		adj_slots_dirty(rib, a);
	}
}

bool
adj_is_usable(const struct rib *rib, uint32_t number)
{
	return rib->adjs.v[number].alive && !rib->adjs.v[number].pruned;
}

void
adjs_free(struct rib_adjs *adjs)
{
	fifo32_free(&adjs->unused);
	hidx_free(&adjs->by_key);
	hidx_free(&adjs->by_mac);
	free(adjs->v);
}
