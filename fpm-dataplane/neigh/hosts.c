/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts of connected subnets: the neighbors that the kernel has resolved on our interfaces.
 * fib->hosts has them by address. Each host has an adjacency slot of neigh's half. Runs in
 * neigh. A slot and its host are reused only after a grace period, so no forwarder finds a
 * slot with a changed key. There are never more hosts than slots, which bounds the memory
 * during a scan.
 */
#include "neigh/internal.h"

#include <linux/neighbour.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/tsan.h"

static void
hosts_report_used(const struct neigh *n)
{
	table_used(TABLE_hosts, n->next_adj - n->fib->adj_hosts - n->n_free_adj);
}

static uint32_t
host_take_slot(struct neigh *n)
{
	uint32_t slot = 0;

	if (n->n_free_adj > 0)
		slot = n->free_adj[--n->n_free_adj];
	else if (n->next_adj < n->fib->adj_end)
		slot = n->next_adj++;
	hosts_report_used(n);
	return slot;
}

static void
host_free_slot(struct neigh *n, uint32_t slot)
{
	n->free_adj[n->n_free_adj++] = slot;
	hosts_report_used(n);
}

/* Give a free slot to the neighbor that has waited longest. One attempt per free slot. */
static void
host_retry_next(struct neigh *n)
{
	struct nb *nb;

	if (cds_list_empty(&n->no_slot))
		return;
	nb = cds_list_first_entry(&n->no_slot, struct nb, no_slot);
	host_update(n, nb);
	nb_release(n, nb);
}

static void
host_free(struct neigh *n, struct retired *r)
{
	struct host *h = caa_container_of(r, struct host, retired);

	host_free_slot(n, h->fib.adj);
	free(h);
	host_retry_next(n);
}

static void
host_add(struct neigh *n, struct nb *nb, uint64_t hop)
{
	struct fib_host_key key = {
		.ifidx = nb->ifidx, .family = nb->family, .addr = nb->addr};
	uint32_t slot = host_take_slot(n);
	struct host *h = slot == 0 ? NULL : calloc(1, sizeof(*h));

	if (h == NULL) {
		if (slot != 0)
			host_free_slot(n, slot);
		table_refuse(TABLE_hosts);
		if (cds_list_empty(&nb->no_slot))
			cds_list_add_tail(&nb->no_slot, &n->no_slot);
		return;
	}
	h->fib.ifidx = n->fib->adj[slot].ifidx = nb->ifidx;
	h->fib.family = n->fib->adj[slot].family = nb->family;
	h->fib.addr = n->fib->adj[slot].addr = nb->addr;
	h->fib.adj = slot;
	atomic_store_explicit(&n->fib->adj_used[slot],
			      nb_is_waited_for(nb) ? ADJ_BEHIND : ADJ_UNUSED,
			      memory_order_relaxed);
	nb_publish(n, nb, slot, hop);
	cds_lfht_node_init(&h->fib.node);
	GRACE_RELEASE(&h->fib.node);
	/*
	 * cds_lfht_add() contains a full barrier: a forwarder that finds the host sees its
	 * slot filled.
	 */
	cds_lfht_add(n->fib->hosts, fib_host_hash(n->fib, &key), &h->fib.node);
	nb->host = h;
	cds_list_del_init(&nb->no_slot);
}

static void
host_remove(struct neigh *n, struct nb *nb)
{
	struct host *h = nb->host;

	/*
	 * Clear the hop at once: a forwarder that still has the slot then gleans instead of
	 * sending.
	 */
	nb_publish(n, nb, h->fib.adj, 0);
	cds_lfht_del(n->fib->hosts, &h->fib.node);
	neigh_retire(n, &h->retired, host_free);
	nb->host = NULL;
}

void
host_apply(struct neigh *n, struct nb *nb, uint64_t hop)
{
	if (hop == 0)
		cds_list_del_init(&nb->no_slot);
	if (hop == 0 && nb->host != NULL)
		host_remove(n, nb);
	else if (hop != 0 && nb->host == NULL)
		host_add(n, nb, hop);
	else if (hop != 0)
		nb_publish(n, nb, nb->host->fib.adj, hop);
}

void
host_update(struct neigh *n, struct nb *nb)
{
	uint64_t hop = nb_hop(n, nb);

	host_apply(n, nb, hop);
	/* Reply last, so that punt finds the neighbor published. */
	if (hop != 0)
		glean_answer(n, nb, true);
}

bool
host_in_use(const struct neigh *n, const struct nb *nb)
{
	const struct host *h = nb->host;

	return h != NULL &&
	       (h->used || atomic_load_explicit(&n->fib->adj_used[h->fib.adj],
						memory_order_relaxed) != ADJ_UNUSED);
}

static bool
host_was_used(struct neigh *n, const struct host *h)
{
	uint8_t used = ADJ_USED;

	return atomic_compare_exchange_strong_explicit(&n->fib->adj_used[h->fib.adj], &used,
						       ADJ_UNUSED, memory_order_relaxed,
						       memory_order_relaxed);
}

/*
 * Confirm the hosts in use. The kernel sees none of the packets that forwarders send, so it
 * would let the entries of these hosts become stale and remove them. Unused entries are
 * left to the kernel's GC.
 */
void
host_sweep(struct neigh *n)
{
	/* Retry neighbors whose host found a free slot but no memory. */
	for (uint32_t k = n->n_free_adj + n->fib->adj_end - n->next_adj; k > 0; k--)
		host_retry_next(n);
	for (uint32_t i = 0; i < n->n_slot; i++) {
		struct nb *nb = n->nb_slot[i];
		bool used;

		if (nb == NULL)
			continue;
		used = nb->host != NULL && host_was_used(n, nb->host);
		if (nb->host != NULL)
			nb->host->used = used;
		if (nb->known && (nb->nud & NUD_STALE) && (used || nb_is_watched(nb)))
			nb_ask(n, nb);
	}
}
