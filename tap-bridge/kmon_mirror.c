/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_mirror: the last reported state of links, settings, addresses and neighbors, by key.
 *
 * libnl's own caches search linearly, which is too slow for 10,000 neighbors, so this file
 * has hash tables with chains. It has no thread and reports nothing: it gives a removed
 * entry to the caller, which may then call callbacks while no table is being changed.
 */
#include <stdlib.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

#define MIN_BUCKETS 64

/* The hash has a seed, because hosts on a link choose their own addresses. */
static size_t
key_hash(const struct mirror *m, const struct kmon_key *key)
{
	uint64_t word[sizeof(*key) / 8], h = m->seed;

	memcpy(word, key, sizeof(word));
	for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++) {
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	return (size_t)(h ^ (h >> 32));
}

static struct mirror_entry **
mirror_bucket(const struct mirror *m, const struct kmon_key *key)
{
	return &m->bucket[key_hash(m, key) & (m->n_buckets - 1)];
}

static struct mirror_entry **
mirror_on(const struct mirror *m, uint32_t ifindex)
{
	uint64_t h = (m->seed ^ ifindex) * 0x9e3779b97f4a7c15;

	return &m->on[(size_t)(h >> 32) & (m->n_buckets - 1)];
}

/* Put an entry into its chains. */
static void
entry_link(struct mirror *m, struct mirror_entry *e)
{
	struct mirror_entry **to = mirror_bucket(m, &e->key);

	e->next = *to;
	*to = e;
	to = mirror_on(m, e->key.ifindex);
	e->on_next = *to;
	e->on_prev = to;
	if (*to != NULL)
		(*to)->on_prev = &e->on_next;
	*to = e;
}

/* Take an entry out of the chain of its link. */
static void
entry_unlink_on(struct mirror_entry *e)
{
	*e->on_prev = e->on_next;
	if (e->on_next != NULL)
		e->on_next->on_prev = e->on_prev;
}

struct kmon_key
kmon_key_of(enum kmon_kind kind, const union kmon_item *item)
{
	struct kmon_key key;

	memset(&key, 0, sizeof(key));
	switch (kind) {
	case KMON_LINK:
		key.ifindex = item->link.ifindex;
		break;
	case KMON_CONF:
		key.ifindex = item->conf.ifindex;
		key.family = item->conf.family;
		break;
	case KMON_MPLS:
		key.ifindex = item->mpls.ifindex;
		break;
	case KMON_INET6:
		key.ifindex = item->inet6.ifindex;
		break;
	case KMON_ADDR:
		key.ifindex = item->addr.ifindex;
		key.family = item->addr.family;
		memcpy(key.addr, item->addr.addr, sizeof(key.addr));
		/*
		 * An interface may have an IPv4 address twice, with another mask or another
		 * peer.
		 */
		if (item->addr.family == 4) {
			key.plen = item->addr.plen;
			memcpy(key.peer, item->addr.peer, sizeof(key.peer));
		}
		break;
	case KMON_VNI:
		key.ifindex = item->vni.ifindex;
		memcpy(key.addr, &item->vni.vlan, sizeof(item->vni.vlan));
		break;
	case KMON_FDB:
		key.ifindex = item->fdb.ifindex;
		memcpy(key.addr, item->fdb.mac, sizeof(item->fdb.mac));
		memcpy(key.peer, &item->fdb.from_vni, sizeof(item->fdb.from_vni));
		break;
	default:
		key.ifindex = item->neigh.ifindex;
		key.family = item->neigh.family;
		memcpy(key.addr, item->neigh.addr, sizeof(key.addr));
		break;
	}
	return key;
}

static bool
link_equal(const struct kmon_link *a, const struct kmon_link *b)
{
	return a->ifindex == b->ifindex && strcmp(a->name, b->name) == 0 &&
	       memcmp(a->mac, b->mac, sizeof(a->mac)) == 0 &&
	       a->mtu_bytes == b->mtu_bytes && a->admin_up == b->admin_up &&
	       a->carrier == b->carrier && a->protodown == b->protodown &&
	       a->dormant == b->dormant && a->arp_off == b->arp_off && a->on == b->on &&
	       a->macvlan == b->macvlan && a->vlan_type == b->vlan_type &&
	       a->vlan_id == b->vlan_id && a->master == b->master &&
	       a->vrf_table == b->vrf_table && a->group == b->group &&
	       a->bridge == b->bridge && a->vlan_filtering == b->vlan_filtering &&
	       memcmp(&a->tunnel, &b->tunnel, sizeof(a->tunnel)) == 0;
}

static bool
addr_equal(const struct kmon_addr *a, const struct kmon_addr *b)
{
	return a->ifindex == b->ifindex && a->family == b->family && a->plen == b->plen &&
	       memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 &&
	       memcmp(a->peer, b->peer, sizeof(a->peer)) == 0 &&
	       a->tentative == b->tentative && a->secondary == b->secondary &&
	       a->deprecated == b->deprecated && a->scope == b->scope;
}

static bool
neigh_equal(const struct kmon_neigh *a, const struct kmon_neigh *b)
{
	return a->ifindex == b->ifindex && a->family == b->family &&
	       memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 && a->has_mac == b->has_mac &&
	       (!a->has_mac || memcmp(a->mac, b->mac, sizeof(a->mac)) == 0) &&
	       a->nud == b->nud;
}

static bool
fdb_equal(const struct kmon_fdb *a, const struct kmon_fdb *b)
{
	return a->family == b->family &&
	       memcmp(a->remote, b->remote, sizeof(a->remote)) == 0 && a->vni == b->vni &&
	       a->link == b->link && a->port == b->port;
}

bool
kmon_item_equal(enum kmon_kind kind, const union kmon_item *a, const union kmon_item *b)
{
	switch (kind) {
	case KMON_LINK:
		return link_equal(&a->link, &b->link);
	case KMON_CONF:
		return a->conf.forwarding == b->conf.forwarding &&
		       a->conf.ignore_linkdown == b->conf.ignore_linkdown &&
		       a->conf.rp_filter == b->conf.rp_filter;
	case KMON_MPLS:
		return a->mpls.input == b->mpls.input;
	case KMON_INET6:
		return a->inet6.off == b->inet6.off &&
		       a->inet6.mtu_bytes == b->inet6.mtu_bytes &&
		       a->inet6.ndisc_notify == b->inet6.ndisc_notify &&
		       a->inet6.force_forwarding == b->inet6.force_forwarding;
	case KMON_ADDR:
		return addr_equal(&a->addr, &b->addr);
	case KMON_VNI:
		return a->vni.vni == b->vni.vni;
	case KMON_FDB:
		return fdb_equal(&a->fdb, &b->fdb);
	default:
		return neigh_equal(&a->neigh, &b->neigh);
	}
}

struct mirror_entry *
mirror_find(const struct mirror *m, const struct kmon_key *key)
{
	struct mirror_entry *e;

	if (m->n_buckets == 0)
		return NULL;
	for (e = *mirror_bucket(m, key); e != NULL; e = e->next)
		if (memcmp(&e->key, key, sizeof(*key)) == 0)
			return e;
	return NULL;
}

static int
mirror_grow(struct mirror *m)
{
	struct mirror bigger = *m;

	bigger.n_buckets = m->n_buckets ? 2 * m->n_buckets : MIN_BUCKETS;
	bigger.bucket = calloc(bigger.n_buckets, sizeof(*bigger.bucket));
	bigger.on = calloc(bigger.n_buckets, sizeof(*bigger.on));
	if (bigger.bucket == NULL || bigger.on == NULL) {
		free(bigger.bucket);
		free(bigger.on);
		return -1;
	}
	for (size_t i = 0; i < m->n_buckets; i++) {
		for (struct mirror_entry *e = m->bucket[i], *next; e != NULL; e = next) {
			next = e->next;
			entry_link(&bigger, e);
		}
	}
	free(m->bucket);
	free(m->on);
	m->n_buckets = bigger.n_buckets;
	m->bucket = bigger.bucket;
	m->on = bigger.on;
	return 0;
}

struct mirror_entry *
mirror_add(struct mirror *m, const struct kmon_key *key)
{
	struct mirror_entry *e;

	if (m->n_entries >= m->n_buckets && mirror_grow(m) < 0 && m->n_buckets == 0)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->key = *key;
	entry_link(m, e);
	m->n_entries++;
	return e;
}

struct mirror_entry *
mirror_remove_if(struct mirror *m,
		 bool (*want)(const struct mirror_entry *e, const void *arg),
		 const void *arg)
{
	struct mirror_entry *taken = NULL;

	for (size_t i = 0; i < m->n_buckets; i++) {
		for (struct mirror_entry **p = &m->bucket[i], *e; (e = *p) != NULL;) {
			m->n_steps++;
			if (!want(e, arg)) {
				p = &e->next;
				continue;
			}
			*p = e->next;
			entry_unlink_on(e);
			e->next = taken;
			taken = e;
			m->n_entries--;
		}
	}
	return taken;
}

/* Return `e`, or the first entry behind it that is on the link. */
static struct mirror_entry *
entry_on(struct mirror *m, struct mirror_entry *e, uint32_t ifindex)
{
	for (; e != NULL; e = e->on_next) {
		m->n_steps++;
		if (e->key.ifindex == ifindex)
			return e;
	}
	return NULL;
}

struct mirror_entry *
mirror_first_on(struct mirror *m, uint32_t ifindex)
{
	return m->n_buckets == 0 ? NULL : entry_on(m, *mirror_on(m, ifindex), ifindex);
}

struct mirror_entry *
mirror_next_on(struct mirror *m, const struct mirror_entry *e)
{
	return entry_on(m, e->on_next, e->key.ifindex);
}

struct mirror_entry *
mirror_remove_on(struct mirror *m, uint32_t ifindex)
{
	struct mirror_entry *taken = NULL, *next;

	for (struct mirror_entry *e = mirror_first_on(m, ifindex); e != NULL; e = next) {
		next = mirror_next_on(m, e);
		mirror_remove(m, e);
		e->next = taken;
		taken = e;
	}
	return taken;
}

void
mirror_remove(struct mirror *m, struct mirror_entry *e)
{
	struct mirror_entry **p = mirror_bucket(m, &e->key);

	while (*p != e)
		p = &(*p)->next;
	*p = e->next;
	e->next = NULL;
	entry_unlink_on(e);
	m->n_entries--;
}

void
mirror_free(struct mirror *m)
{
	for (size_t i = 0; i < m->n_buckets; i++) {
		for (struct mirror_entry *e = m->bucket[i], *next; e != NULL; e = next) {
			next = e->next;
			free(e);
		}
	}
	free(m->bucket);
	free(m->on);
	memset(m, 0, sizeof(*m));
}
