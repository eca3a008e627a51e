/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of a link, in the order of the kernel, and the choice of sources among
 * them. A link may have thousands of addresses, and each change of one of them publishes
 * the interface again. So no function here walks all of them: the addresses with the same
 * use are in a tree of their own, in the kernel's order. Runs in neigh.
 */
#include "neigh/internal.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/log.h"

/* Return the rank of an address. Linux ignores that an IPv4 address is deprecated. */
static enum source_rank
addr_source_rank(const struct kmon_addr *ka)
{
	const uint8_t *a = ka->addr;

	if (ka->tentative)
		return RANK_NONE;
	if (ka->family == 4) {
		if (a[0] == 127 || ka->secondary || ka->scope >= RT_SCOPE_HOST)
			return RANK_NONE;
		return a[0] == 169 && a[1] == 254 ? RANK_LINK : RANK_GLOBAL;
	}
	if ((a[0] & 0xe0) == 0x20) /* 2000::/3 */
		return ka->deprecated ? RANK_DEPRECATED : RANK_GLOBAL;
	if ((a[0] & 0xfe) == 0xfc) /* fc00::/7 */
		return ka->deprecated ? RANK_DEPRECATED_ULA : RANK_ULA;
	return RANK_NONE;
}

bool
addr_is_lent(const struct kmon_addr *ka)
{
	/* As in Linux, an address of scope link is a source on its own link only. */
	return ka->scope < RT_SCOPE_LINK && addr_source_rank(ka) != RANK_NONE;
}

/* Return the index of an address's tree in l->use; RANK_NONE: it is in no tree. */
static unsigned int
addr_use(const struct kmon_addr *ka)
{
	unsigned int rank = addr_source_rank(ka);
	struct ipaddr addr;

	memcpy(addr.octet, ka->addr, sizeof(addr.octet));
	if (ka->family == 6 && ipaddr_is_linklocal6(&addr))
		return ka->tentative ? USE_LINKLOCAL_TENTATIVE : USE_LINKLOCAL;
	return rank != RANK_NONE && !addr_is_lent(ka) ? USE_OWN + rank : rank;
}

/* --- the trees ------------------------------------------------------------------------ */

static struct local *
local_by_place(struct tree_node *node)
{
	return node == NULL ? NULL : caa_container_of(node, struct local, by_place);
}

static int
place_order(const struct tree_node *a, const struct tree_node *b)
{
	const struct local *x = caa_container_of(a, struct local, by_place),
			   *y = caa_container_of(b, struct local, by_place);

	return (x->place > y->place) - (x->place < y->place);
}

/*
 * A link may have an IPv4 address several times, with different subnets, but an IPv6
 * address only once.
 */
static int
address_order(const struct tree_node *a, const struct tree_node *b)
{
	const struct kmon_addr *x = &caa_container_of(a, struct local, by_address)->addr,
			       *y = &caa_container_of(b, struct local, by_address)->addr;
	int rc = x->family - y->family;

	if (rc == 0)
		rc = memcmp(x->addr, y->addr, family_octets(x->family));
	if (rc == 0 && x->family == 4)
		rc = x->plen - y->plen;
	if (rc == 0 && x->family == 4)
		rc = memcmp(x->peer, y->peer, 4);
	return rc;
}

static struct tree *
local_use(struct link *l, const struct local *a)
{
	unsigned int use = addr_use(&a->addr);

	return use == RANK_NONE ? NULL : &l->use[a->addr.family == 4 ? V4 : V6][use];
}

static uint32_t
random_next(struct neigh *n)
{
	return (uint32_t)mix64(n->fib->seed + ++n->n_randoms * 0x9e3779b97f4a7c15u);
}

static void
local_use_add(struct neigh *n, struct link *l, struct local *a)
{
	struct tree *use = local_use(l, a);

	if (use != NULL)
		tree_add(use, &a->by_place, random_next(n), place_order, &n->n_steps);
}

static void
local_use_remove(struct neigh *n, struct link *l, struct local *a)
{
	struct tree *use = local_use(l, a);

	if (use != NULL)
		tree_remove(use, &a->by_place, place_order, &n->n_steps);
}

struct local *
local_find(struct neigh *n, struct link *l, const struct kmon_addr *ka)
{
	struct local key = {.addr = *ka};
	struct tree_node *node =
		tree_find(&l->by_address, &key.by_address, address_order, &n->n_steps);

	return node == NULL ? NULL : caa_container_of(node, struct local, by_address);
}

void
local_set(struct neigh *n, struct link *l, struct local *a, const struct kmon_addr *ka)
{
	if (a != NULL) {
		local_use_remove(n, l, a);
		a->addr = *ka;
		local_use_add(n, l, a);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (a == NULL) {
		log_error("neigh: address ignored reason=no-memory dev=%s", l->name);
		return;
	}
	a->addr = *ka;
	/*
	 * Keep the order of the kernel, which decides between equal sources: a new IPv6
	 * address becomes the first. The first dump has that order.
	 */
	if (ka->family == 6 && n->control != NULL) {
		a->place = --l->place_first;
		cds_list_add(&a->list, &l->locals);
	} else {
		a->place = ++l->place_last;
		cds_list_add_tail(&a->list, &l->locals);
	}
	tree_add(&l->by_address, &a->by_address, random_next(n), address_order,
		 &n->n_steps);
	local_use_add(n, l, a);
	l->n_addr4 += ka->family == 4;
}

void
local_remove(struct neigh *n, struct link *l, struct local *a)
{
	local_use_remove(n, l, a);
	tree_remove(&l->by_address, &a->by_address, address_order, &n->n_steps);
	cds_list_del(&a->list);
	l->n_addr4 -= a->addr.family == 4;
	free(a);
}

/* --- sources -------------------------------------------------------------------------- */

/*
 * Return the first address after `a`, in the kernel's order, that has the use `use` or
 * `other`. If `a` is NULL, return the first such address. Return NULL if there is none.
 */
static struct local *
local_next(struct neigh *n, const struct link *l, unsigned int v, unsigned int use,
	   unsigned int other, const struct local *a)
{
	const struct tree_node *at = a == NULL ? NULL : &a->by_place;
	struct local *x =
		local_by_place(tree_after(&l->use[v][use], at, place_order, &n->n_steps));
	struct local *y =
		local_by_place(tree_after(&l->use[v][other], at, place_order, &n->n_steps));

	return x == NULL || (y != NULL && y->place < x->place) ? y : x;
}

void
link_sources(struct neigh *n, const struct link *l, bool lent, struct fib_iface *fi,
	     struct ranks *best)
{
	for (unsigned int v = V4; v <= V6; v++) {
		int *rank = v == V4 ? &best->v4 : &best->v6, use = RANK_GLOBAL;
		const struct local *a = NULL;
		struct ipaddr addr;

		/* The kernel lists the primary address first. */
		for (; use > *rank && a == NULL; use--)
			a = local_next(n, l, v, (unsigned int)use,
				       (unsigned int)(lent ? use : USE_OWN + use), NULL);
		if (a == NULL)
			continue;
		*rank = use + 1;
		memcpy(addr.octet, a->addr.addr, sizeof(addr.octet));
		if (v == V4)
			fi->src4 = ipaddr_v4(&addr);
		else
			fi->src6 = addr;
	}
}

struct ranks
link_lent(const struct link *l)
{
	struct ranks best = {RANK_GLOBAL, RANK_GLOBAL};

	while (best.v4 > RANK_NONE && l->use[V4][best.v4].root == NULL)
		best.v4--;
	while (best.v6 > RANK_NONE && l->use[V6][best.v6].root == NULL)
		best.v6--;
	return best;
}

void
link_own_sources(struct neigh *n, const struct link *l, struct fib_iface *fi)
{
	for (unsigned int v = V4; v <= V6; v++) {
		struct fib_source *own = v == V4 ? fi->own4 : fi->own6;
		uint8_t *n_own = v == V4 ? &fi->n_own4 : &fi->n_own6;
		unsigned int other = v == V4 ? USE_OWN + RANK_GLOBAL : RANK_ULA;
		const struct local *a = NULL;

		while (*n_own < FIB_ON_LINK_MAX &&
		       (a = local_next(n, l, v, RANK_GLOBAL, other, a)) != NULL) {
			memcpy(own[*n_own].addr.octet, a->addr.addr,
			       sizeof(own[*n_own].addr.octet));
			own[(*n_own)++].plen = a->addr.plen;
		}
	}
}

void
link_linklocals(struct neigh *n, const struct link *l, struct fib_iface *fi)
{
	const struct local *a = local_next(n, l, V6, USE_LINKLOCAL, USE_LINKLOCAL, NULL);

	/* A tentative address (DAD) is no source yet. */
	if (a != NULL)
		memcpy(fi->linklocal6.octet, a->addr.addr, sizeof(fi->linklocal6.octet));
	a = NULL;
	while (fi->n_on_link6 <= FIB_ON_LINK_MAX &&
	       (a = local_next(n, l, V6, USE_LINKLOCAL, USE_LINKLOCAL_TENTATIVE, a)) !=
		       NULL) {
		if (fi->n_on_link6 < FIB_ON_LINK_MAX)
			memcpy(fi->on_link6[fi->n_on_link6].octet, a->addr.addr,
			       sizeof(fi->on_link6[0].octet));
		fi->n_on_link6++;
	}
}
