/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hop: report to rib which next hops are dead, so that rib leaves them out of its groups. A
 * next hop can have several sessions; it is dead while one of them has failed.        [bfd]
 */
#include "base/bfd_status.h"
#include "bfd/impl.h"

/* Report to rib whether the next hop is dead. */
static void
hop_tell(struct bfd *b, const struct kept *k, bool dead)
{
	struct msg_bfd_hop *m = msg_new(MSG_BFD_HOP, sizeof(*m));

	m->ifindex = k->hop_ifindex;
	m->family = k->told.family;
	m->addr = k->told.dst;
	m->dead = dead;
	worker_send(b->setup.rib, &m->m);
}

void
sessions_tell_dead_hops(struct bfd *b)
{
	for (uint32_t i = 1; i < BFD_SESSIONS; i++)
		if (b->kept[i].used && b->kept[i].pruned)
			hop_tell(b, &b->kept[i], true);
}

/* Return true if another session has reported the same next hop dead. */
static bool
hop_is_dead_too(const struct bfd *b, const struct session *s)
{
	for (uint32_t i = 1; i < b->high; i++) {
		const struct session *o = &b->session[i];

		if (o != s && o->k != NULL && o->k->pruned &&
		    o->k->hop_ifindex == s->k->hop_ifindex &&
		    o->k->told.family == s->k->told.family &&
		    ipaddr_equal(&o->k->told.dst, &s->k->told.dst))
			return true;
	}
	return false;
}

void
session_prune(struct bfd *b, struct session *s)
{
	uint32_t ifindex = s->place.ifidx != 0 ? s->place.ifindex : 0;
	bool dead = bfd_fsm_is_failed(&s->k->fsm) && !s->k->leaving && ifindex != 0;

	if (dead == s->k->pruned && (!dead || ifindex == s->k->hop_ifindex))
		return;
	if (s->k->pruned && !hop_is_dead_too(b, s))
		hop_tell(b, s->k, false);
	s->k->pruned = dead;
	s->k->hop_ifindex = ifindex;
	if (!dead)
		return;
	hop_tell(b, s->k, true);
	STATUS_ADD(prunes, 1);
}
