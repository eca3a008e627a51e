/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_apply: compare one change with the mirror, and report it to the owner if it is new.
 *
 * Runs in the monitor's thread and calls the owner's callbacks: before a callback runs, the
 * mirror is up to date or the entries are removed from it. An item on a link is reported
 * after the link, and a link is reported gone after all items on it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

bool
kmon_is_watched(const struct kmon *km, enum kmon_kind kind)
{
	switch (kind) {
	case KMON_LINK:
		return km->ops.on_link != NULL;
	case KMON_CONF:
		return km->ops.on_conf != NULL;
	case KMON_MPLS:
		return km->ops.on_mpls != NULL;
	case KMON_INET6:
		return km->ops.on_inet6 != NULL;
	case KMON_ADDR:
		return km->ops.on_addr != NULL;
	case KMON_VNI:
		return km->ops.on_vni != NULL;
	case KMON_FDB:
		return km->ops.on_fdb != NULL;
	default:
		return km->ops.on_neigh != NULL;
	}
}

static void
kmon_report(struct kmon *km, enum kmon_kind kind, const union kmon_item *item, bool gone)
{
	struct kmon_neigh report;

	km->n_reports++;
	switch (kind) {
	case KMON_LINK:
		km->ops.on_link(km->ctx, &item->link, gone);
		break;
	case KMON_CONF:
		km->ops.on_conf(km->ctx, &item->conf, gone);
		break;
	case KMON_MPLS:
		km->ops.on_mpls(km->ctx, &item->mpls, gone);
		break;
	case KMON_INET6:
		km->ops.on_inet6(km->ctx, &item->inet6, gone);
		break;
	case KMON_ADDR:
		km->ops.on_addr(km->ctx, &item->addr, gone);
		break;
	case KMON_VNI:
		km->ops.on_vni(km->ctx, &item->vni, gone);
		break;
	case KMON_FDB:
		km->ops.on_fdb(km->ctx, &item->fdb, gone);
		break;
	default:
		report = item->neigh;
		if (gone) {
			report.nud = 0;
			report.has_mac = false;
		}
		km->ops.on_neigh(km->ctx, &report, gone);
		break;
	}
}

static void
entries_report_gone(struct kmon *km, enum kmon_kind kind, struct mirror_entry *list)
{
	for (struct mirror_entry *next; list != NULL; list = next) {
		next = list->next;
		km->n_doubted -= list->doubted;
		if (!list->early)
			kmon_report(km, kind, &list->item, true);
		free(list);
	}
}

void
kmon_report_gone(struct kmon *km, enum kmon_kind kind, struct mirror_entry *list)
{
	if (kind != KMON_LINK) {
		entries_report_gone(km, kind, list);
		return;
	}
	for (struct mirror_entry *next; list != NULL; list = next) {
		next = list->next;
		list->next = NULL;
		for (int k = KMON_NEIGH; k > KMON_LINK; k--)
			entries_report_gone(
				km, k, mirror_remove_on(&km->mirror[k], list->key.ifindex));
		entries_report_gone(km, KMON_LINK, list);
	}
}

/*
 * Return true if the mirror has the link of `key`. If not, the link is gone or not yet
 * known, and a waiting event will report it. Settings are an exception: the kernel sends
 * the settings of a new link before the link, and only once.
 */
static bool
kmon_has_link(const struct kmon *km, const struct kmon_key *key)
{
	struct kmon_key link = {.ifindex = key->ifindex};

	return km->ops.on_link == NULL || key->ifindex == KMON_CONF_ALL ||
	       mirror_find(&km->mirror[KMON_LINK], &link) != NULL;
}

static bool
addr_is_same_subnet(const union kmon_item *a, const union kmon_item *b)
{
	return a->addr.plen == b->addr.plen &&
	       memcmp(a->addr.peer, b->addr.peer, sizeof(a->addr.peer)) == 0;
}

/* Report settings that came before their link, which is known now. */
static void
kmon_report_early(struct kmon *km, unsigned int ifindex)
{
	static const struct {
		enum kmon_kind kind;
		uint8_t family;
	} setting[] = {{KMON_CONF, 4}, {KMON_CONF, 6}, {KMON_MPLS, 0}};

	for (size_t i = 0; i < sizeof(setting) / sizeof(setting[0]); i++) {
		enum kmon_kind kind = setting[i].kind;
		struct kmon_key key = {.ifindex = ifindex, .family = setting[i].family};
		struct mirror_entry *e = mirror_find(&km->mirror[kind], &key);

		if (e == NULL || !e->early)
			continue;
		e->early = false;
		kmon_report(km, kind, &e->item, false);
	}
}

/* Return true if the owner needs the entry of a forwarding database. */
static bool
fdb_is_wanted(const struct kmon *km, unsigned int ifindex)
{
	return km->ops.wants_fdb == NULL || km->ops.wants_fdb(km->ctx, ifindex);
}

static int
kmon_apply_new(struct kmon *km, const struct kmon_change *change,
	       const struct kmon_key *key, bool early)
{
	struct mirror_entry *e = mirror_add(&km->mirror[change->kind], key);

	if (e == NULL)
		return -ENOMEM;
	e->gen = km->gen;
	e->item = change->item;
	e->early = early;
	if (!early)
		kmon_report(km, change->kind, &change->item, false);
	if (change->kind == KMON_LINK)
		kmon_report_early(km, key->ifindex);
	return 0;
}

/*
 * Return the state after a change: a message about one setting leaves the others as they
 * were.
 */
static union kmon_item
change_complete(const struct kmon_change *change, const union kmon_item *was)
{
	union kmon_item now = change->item;

	if (change->lacks_forwarding)
		now.conf.forwarding = was->conf.forwarding;
	if (change->lacks_linkdown)
		now.conf.ignore_linkdown = was->conf.ignore_linkdown;
	if (change->lacks_rp_filter)
		now.conf.rp_filter = was->conf.rp_filter;
	return now;
}

int
kmon_apply(struct kmon *km, const struct kmon_change *change)
{
	enum kmon_kind kind = change->kind;
	struct mirror *m = &km->mirror[kind];
	struct kmon_key key = kmon_key_of(kind, &change->item);
	bool early = kind != KMON_LINK && !kmon_has_link(km, &key);
	struct mirror_entry *e;
	union kmon_item old, now;

	if (!kmon_is_watched(km, kind))
		return 0;
	e = mirror_find(m, &key);
	if (change->gone) {
		if (e != NULL) {
			mirror_remove(m, e);
			kmon_report_gone(km, kind, e);
		}
		return 0;
	}
	if (early && kind != KMON_CONF && kind != KMON_MPLS)
		return 0;
	if (kind == KMON_FDB && !fdb_is_wanted(km, key.ifindex))
		return 0;
	if (e == NULL) {
		/* The first message about a link has all settings. It will follow. */
		if (change->lacks_forwarding || change->lacks_linkdown)
			return 0;
		return kmon_apply_new(km, change, &key, early);
	}
	e->gen = km->gen;
	km->n_doubted -= e->doubted;
	e->doubted = false;
	now = change_complete(change, &e->item);
	if (kmon_item_equal(kind, &e->item, &now))
		return 0;
	old = e->item;
	e->item = now;
	if (early)
		return 0;
	/*
	 * The kernel changes the peer of an IPv6 address in place. For an owner that keeps
	 * subnets, the old subnet is gone then.
	 */
	if (kind == KMON_ADDR && !addr_is_same_subnet(&old, &now))
		kmon_report(km, kind, &old, true);
	kmon_report(km, kind, &now, false);
	return 0;
}

void
kmon_drop_fdb(struct kmon *km, unsigned int ifindex)
{
	struct mirror_entry *next, *e = mirror_remove_on(&km->mirror[KMON_FDB], ifindex);

	for (; e != NULL; e = next) {
		next = e->next;
		free(e);
	}
}

void
kmon_report_neighbors_on(struct kmon *km, unsigned int ifindex)
{
	struct mirror *m = &km->mirror[KMON_NEIGH];

	for (const struct mirror_entry *e = mirror_first_on(m, ifindex); e != NULL;
	     e = mirror_next_on(m, e))
		kmon_report(km, KMON_NEIGH, &e->item, false);
}

void
kmon_report_neighbors(struct kmon *km)
{
	const struct mirror *m = &km->mirror[KMON_NEIGH];

	for (size_t b = 0; b < m->n_buckets; b++)
		for (const struct mirror_entry *e = m->bucket[b]; e != NULL; e = e->next)
			kmon_report(km, KMON_NEIGH, &e->item, false);
}
