/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops that BFD has found dead, by interface and address or MAC address. They are kept
 * apart from the adjacencies, because a route that comes later may make the adjacency
 * again. Several sessions may find the same next hop dead. Thread bfd reports the next hop
 * alive only when none of them finds it dead. [rib]
 */
#include "rib/prune.h"

#include <stdlib.h>

#include "base/msg.h"
#include "rib/impl.h"

static uint64_t
prune_hash(const struct rib *rib, uint32_t ifindex, uint8_t family,
	   const struct ipaddr *addr)
{
	return ipaddr_hash(addr, rib->fib->seed ^ ((uint64_t)family << 32 | ifindex));
}

/* Return the number of an entry; 0: there is none. */
static uint32_t
prune_find(const struct rib *rib, uint64_t hash, uint32_t ifindex, uint8_t family,
	   const struct ipaddr *addr)
{
	const struct rib_prunes *p = &rib->prunes;

	for (uint32_t i = hidx_first(&p->by_key, hash); i != 0;
	     i = hidx_next(&p->by_key, i))
		if (p->v[i].ifindex == ifindex && p->v[i].family == family &&
		    ipaddr_equal(&p->v[i].addr, addr))
			return i;
	return 0;
}

bool
prune_has(const struct rib *rib, uint32_t ifindex, uint8_t family,
	  const struct ipaddr *addr)
{
	return rib->prunes.n != 0 && prune_find(rib, prune_hash(rib, ifindex, family, addr),
						ifindex, family, addr) != 0;
}

static void
prune_add(struct rib_prunes *p, uint64_t hash, const struct msg_bfd_hop *m)
{
	uint32_t number = number_get(&p->unused, &p->high);

	p->v = table_grow(p->v, &p->cap, number, sizeof(*p->v));
	p->v[number] = (struct prune){m->ifindex, m->family, m->addr};
	hidx_add(&p->by_key, hash, number);
	p->n++;
}

bool
prune_event(struct rib *rib, const struct msg_bfd_hop *m)
{
	uint64_t hash = prune_hash(rib, m->ifindex, m->family, &m->addr);
	uint32_t number = prune_find(rib, hash, m->ifindex, m->family, &m->addr);

	if ((number != 0) == m->dead)
		return false;
	if (m->dead) {
		prune_add(&rib->prunes, hash, m);
	} else {
		hidx_del(&rib->prunes.by_key, number);
		vec32_push(&rib->prunes.unused, number);
		rib->prunes.n--;
	}
	return true;
}

void
prunes_free(struct rib_prunes *prunes)
{
	free(prunes->v);
	vec32_free(&prunes->unused);
	hidx_free(&prunes->by_key);
}
