/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hop: report to rib which next hops are dead, so that rib leaves them out of its groups. A
 * next hop can have several sessions; it is dead while one of them has failed.
 *
 * IPv6 routes of BGP have the link-local address of the neighbor as next hop, but the
 * session has the global address of the neighbor. So an IPv6 session also decides whether a
 * device is dead. A device is all IPv6 addresses with one MAC address on an interface. It
 * is dead while one of its sessions has failed and none is Up.                        [bfd]
 */
#include "base/bfd_status.h"
#include "bfd/impl.h"
#include "fib/fib.h"

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

/* Report to rib whether a device is dead. The sessions of the first `n` records decide. */
static void
device_tell(struct bfd *b, uint32_t ifindex, uint64_t mac, uint32_t n)
{
	bool failed = false, up = false;
	struct msg_bfd_hop *m;

	for (uint32_t i = 1; i < n && !up; i++) {
		const struct kept *k = &b->kept[i];

		if (!k->used || k->mac != mac || k->mac_ifindex != ifindex)
			continue;
		failed = failed || k->pruned;
		up = k->fsm.state == BFD_UP && !k->leaving;
	}
	m = msg_new(MSG_BFD_HOP, sizeof(*m));
	m->ifindex = ifindex;
	m->addr = ipaddr_of_mac(mac);
	m->dead = failed && !up;
	worker_send(b->setup.rib, &m->m);
}

/* Store the present MAC address of the peer. If it is not known now, keep the last one. */
static void
mac_learn(struct bfd *b, struct session *s)
{
	struct kept *k = s->k;
	uint64_t hop = 0;
	fib_path path;

	if (s->place.by != BY_FORWARDERS || s->place.ifidx == 0 || k->told.family != 6) {
		k->mac = 0;
		return;
	}
	path = fib_onlink(b->fib, s->place.ifidx, 6, &k->told.dst);
	if (path_kind(path) == PATH_ADJ)
		hop = atomic_load_explicit(&b->fib->adj[path_index(path)].hop,
					   memory_order_acquire);
	if (hop != 0)
		k->mac = hop >> 16;
	else if (k->mac_ifindex != s->place.ifindex)
		k->mac = 0;
	k->mac_ifindex = s->place.ifindex;
}

/*
 * Store the MAC address of the peer. If it has changed, report the old and the new device.
 * `changed`: the state of the session has changed, so report the device in any case.
 */
static void
device_renew(struct bfd *b, struct session *s, bool changed)
{
	uint32_t was_ifindex = s->k->mac_ifindex;
	uint64_t was = s->k->mac;
	bool moved;

	mac_learn(b, s);
	moved = s->k->mac != was || s->k->mac_ifindex != was_ifindex;
	if (moved && was != 0)
		device_tell(b, was_ifindex, was, b->high);
	if ((moved || changed) && s->k->mac != 0)
		device_tell(b, s->k->mac_ifindex, s->k->mac, b->high);
}

void
session_prune_moved(struct bfd *b, struct session *s)
{
	device_renew(b, s, false);
}

void
sessions_tell_dead_hops(struct bfd *b)
{
	for (uint32_t i = 1; i < BFD_SESSIONS; i++) {
		const struct kept *k = &b->kept[i];

		if (!k->used || !k->pruned)
			continue;
		hop_tell(b, k, true);
		if (k->mac != 0)
			device_tell(b, k->mac_ifindex, k->mac, BFD_SESSIONS);
	}
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

static void
hop_renew(struct bfd *b, struct session *s)
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

void
session_prune(struct bfd *b, struct session *s)
{
	hop_renew(b, s);
	device_renew(b, s, true);
}
