/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of neighbors: a hash table by (interface, family, address), and numbered slots.
 * The hash is seeded, because hosts on a link choose their addresses. With slots a query
 * can stop, resume, and find each record once, whatever was added or removed meanwhile.
 * Runs in neigh; sends nothing.
 */
#include "neigh/internal.h"

#include <linux/neighbour.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

#define CHAINS_MIN 1024u

static struct nb **
nb_chain_of(const struct neigh *n, uint16_t ifidx, uint8_t family,
	    const struct ipaddr *addr)
{
	struct fib_host_key key = {.ifidx = ifidx, .family = family, .addr = *addr};

	return &n->nb_chain[fib_host_hash(n->fib, &key) & (n->n_chain - 1)];
}

struct nb *
nb_find(const struct neigh *n, uint16_t ifidx, uint8_t family, const struct ipaddr *addr)
{
	struct nb *nb = NULL;

	if (n->n_chain > 0)
		nb = *nb_chain_of(n, ifidx, family, addr);
	while (nb != NULL && (nb->ifidx != ifidx || nb->family != family ||
			      !ipaddr_equal(&nb->addr, addr)))
		nb = nb->next;
	return nb;
}

/* Double the number of chains. A failure is harmless once chains exist: they get longer. */
static void
nb_grow_chains(struct neigh *n)
{
	uint32_t n_chain = n->n_chain == 0 ? CHAINS_MIN : 2 * n->n_chain;
	struct nb **chain = calloc(n_chain, sizeof(*chain));

	if (chain == NULL)
		return;
	free(n->nb_chain);
	n->nb_chain = chain;
	n->n_chain = n_chain;
	for (uint32_t i = 0; i < n->n_slot; i++) {
		struct nb *nb = n->nb_slot[i], **to;

		if (nb == NULL)
			continue;
		to = nb_chain_of(n, nb->ifidx, nb->family, &nb->addr);
		nb->next = *to;
		*to = nb;
	}
}

static bool
nb_grow_slots(struct neigh *n)
{
	uint32_t room = n->room_slot == 0 ? CHAINS_MIN : 2 * n->room_slot;
	struct nb **slot = realloc(n->nb_slot, room * sizeof(*slot));
	uint32_t *spare;

	if (slot == NULL)
		return false;
	n->nb_slot = slot;
	spare = realloc(n->free_slot, room * sizeof(*spare));
	if (spare == NULL)
		return false;
	n->free_slot = spare;
	n->room_slot = room;
	return true;
}

static bool
nb_make_room(struct neigh *n)
{
	if (n->n_nb >= n->max_nb)
		return false;
	if (n->n_nb >= n->n_chain)
		nb_grow_chains(n);
	if (n->n_free_slot == 0 && n->n_slot == n->room_slot && !nb_grow_slots(n))
		return false;
	return n->n_chain > 0;
}

struct nb *
nb_get(struct neigh *n, uint16_t ifidx, uint8_t family, const struct ipaddr *addr)
{
	struct nb *nb = nb_find(n, ifidx, family, addr), **to;

	if (nb != NULL)
		return nb;
	if (!nb_make_room(n))
		return NULL;
	nb = calloc(1, sizeof(*nb));
	if (nb == NULL)
		return NULL;
	nb->ifidx = ifidx;
	nb->family = family;
	nb->addr = *addr;
	CDS_INIT_LIST_HEAD(&nb->watches);
	CDS_INIT_LIST_HEAD(&nb->retry);
	CDS_INIT_LIST_HEAD(&nb->to_ask);
	CDS_INIT_LIST_HEAD(&nb->glean);
	CDS_INIT_LIST_HEAD(&nb->no_slot);
	to = nb_chain_of(n, ifidx, family, addr);
	nb->next = *to;
	*to = nb;
	nb->slot = n->n_free_slot > 0 ? n->free_slot[--n->n_free_slot] : n->n_slot++;
	n->nb_slot[nb->slot] = nb;
	cds_hlist_add_head(&nb->on, &n->nb_on[ifidx]);
	table_used(TABLE_neighbors, ++n->n_nb);
	return nb;
}

void
nb_release(struct neigh *n, struct nb *nb)
{
	struct nb **p;

	if (nb->known || nb->host != NULL || nb_is_watched(nb) || nb_is_waited_for(nb))
		return;
	p = nb_chain_of(n, nb->ifidx, nb->family, &nb->addr);
	while (*p != nb)
		p = &(*p)->next;
	*p = nb->next;
	n->nb_slot[nb->slot] = NULL;
	n->free_slot[n->n_free_slot++] = nb->slot;
	cds_hlist_del(&nb->on);
	table_used(TABLE_neighbors, --n->n_nb);
	cds_list_del(&nb->retry);
	cds_list_del(&nb->to_ask);
	cds_list_del(&nb->no_slot);
	free(nb);
}

void
nb_free_all(struct neigh *n)
{
	for (uint32_t i = 0; i < n->n_slot; i++) {
		if (n->nb_slot[i] != NULL)
			nb_free_hop(n->nb_slot[i]);
		free(n->nb_slot[i]);
	}
	free(n->nb_slot);
	free(n->free_slot);
	free(n->nb_chain);
}

bool
nb_usable(const struct neigh *n, const struct nb *nb)
{
	static const uint8_t zero[6];
	bool odd = (nb->mac[0] & 1) != 0 || memcmp(nb->mac, zero, sizeof(zero)) == 0;

	if (!n->iface[nb->ifidx].up || (nb->family == 6 && n->iface[nb->ifidx].ipv6_off))
		return false;
	if (nb->grace)
		return true;
	if (!nb->known || !nb->has_mac || (nb->nud & NUD_USABLE) == 0)
		return false;
	/*
	 * An ARP reply must not give a unicast neighbor a group MAC (RFC 1812, 3.3.2), or
	 * the MAC 0. A permanent entry of an operator may. kmon does not report the noarp
	 * entries with the MAC 0 that the kernel makes for itself.
	 */
	return !odd || (nb->nud & (NUD_PERMANENT | NUD_NOARP)) != 0;
}

uint64_t
nb_hop(const struct neigh *n, const struct nb *nb)
{
	return nb_usable(n, nb) ? adj_hop_make(nb->mac, nb->ifidx) : 0;
}

void
nb_ask(struct neigh *n, struct nb *nb)
{
	/* Otherwise nb_apply_iface() asks as soon as the interface can send. */
	if (n->iface[nb->ifidx].can_ask && cds_list_empty(&nb->to_ask))
		cds_list_add_tail(&nb->to_ask, &n->to_ask);
}
