/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start with a checkpoint: the routes of the last daemon are in force before the first
 * packet, as routes of an ended session. [rib]. Slots return as orphans, by content, so
 * that zebra's replay adopts them and rewrites no prefix. The replay confirms routes and
 * the sweep removes the rest, as after any reconnect. Routes of the kernel are removed by
 * the first dump that does not show them. The checkpoint has no links, neighbors, rules or
 * VRFs: neigh and rtnl read them from the kernel at every start. Routes of tables other
 * than main wait until neigh reports which tables are VRFs. They then enter the FIBs of
 * these VRFs like routes that arrive before their VRF.
 */
#include "rib/restore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/kernel_event.h"
#include "rib/checkpoint.h"
#include "rib/commit.h"
#include "rib/content.h"
#include "rib/index.h"
#include "rib/kernel.h"
#include "rib/kroute.h"
#include "rib/mirror.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/stack.h"
#include "rib/table_count.h"
#include "rib/nh_list.h"

#define BATCH 128u

static struct prefix
ckpt_route_prefix(const struct ckpt_route *r)
{
	return (struct prefix){.addr = r->addr, .family = r->family, .len = r->len};
}

static bool
route_restore(struct rib *rib, const struct ckpt_route *old, uint32_t slot, uint64_t hash)
{
	struct routes *t = tables_routes(&rib->tables, old->table);
	struct prefix p = ckpt_route_prefix(old);
	struct route *r;

	if (routes_find(t, old->table, &p, hash) != NULL)
		return false;
	if (routes_are_full(rib)) {
		routes_refuse(rib); /* the last daemon had a larger limit */
		return false;
	}
	r = routes_insert(t, old->table, &p, hash);
	if (r == NULL) {
		routes_lack_memory(rib);
		return false;
	}
	tables_count(&rib->tables, old->table, p.family, 1);
	rib->tables.n_not_ip += old->table == FPM_TABLE_NONE;
	r->protocol = old->protocol;
	r->rtm_type = old->rtm_type;
	table_count_confirm(rib, r); /* gen 0: stale in every session */
	route_bind(rib, r, slot);
	return true;
}

/*
 * Return true if rib takes a route of the checkpoint from the kernel. Routes of zebra are
 * taken in the tables of rules. The rules are not known yet, so the route stays if its
 * table can be one of them (rtnl/tables.c). If no rule names the table any longer, the
 * first dump removes the route.
 */
static bool
kernel_is_source(const struct rib *rib, const struct ckpt_route *r,
		 const struct ckpt_kernel *k)
{
	enum routes_from from = rib->conf.from;

	if (routes_from_kernel(from, r->protocol,
			       r->family == FAMILY_LABEL ? ZEBRA_METRIC : k->metric))
		return true;
	return from == ROUTES_FROM_BOTH && family_is_ip(r->family) &&
	       r->table != RIB_TABLE_MAIN && r->table != RIB_TABLE_DEFAULT;
}

/*
 * Restore a route of the kernel, unless a changed configuration no longer takes it from the
 * kernel.
 */
static bool
kernel_restore(struct rib *rib, const struct ckpt_route *old, const struct ckpt_kernel *k,
	       uint32_t slot, uint64_t hash)
{
	struct kroute was = {.slot = slot,
			     .metric = k->metric,
			     .order = k->order,
			     .ifindex = k->ifindex,
			     .source4 = k->source4,
			     .protocol = old->protocol,
			     .rtm_type = old->rtm_type,
			     .scope = k->scope,
			     .preference = k->preference,
			     .is_local = (k->flags & CKPT_IS_LOCAL) != 0,
			     .connected = (k->flags & CKPT_CONNECTED) != 0,
			     .joins = (k->flags & CKPT_JOINS) != 0};
	struct prefix p = ckpt_route_prefix(old);
	struct route *r;

	if (!kernel_is_source(rib, old, k))
		return true;
	r = kernel_route_get(rib, old->table, &p, old->protocol, hash);
	if (r == NULL || !kernel_route_restore(rib, r, &was))
		return false;
	rib->count.restored_kernel++;
	return true;
}

/* Return an array, by slot number: true if a route of the kernel has the slot. */
static bool *
slots_of_kernel(const struct ckpt *old)
{
	bool *yes = mem_or_abort(calloc(FIB_GROUP_MAX, sizeof(*yes)));

	for (unsigned int v = 0; v < 2; v++)
		for (uint32_t i = 0; i < old->order[CKPT_KERNEL].n[v]; i++)
			yes[ckpt_route_by_address(old, CKPT_KERNEL, v, i)->slot] = true;
	return yes;
}

/*
 * Give the next hops of a slot the present numbers of their label stacks. Then sort the
 * next hops, because their order depends on these numbers.
 */
static void
stacks_restore(struct rib *rib, const struct ckpt *old, uint32_t at, struct nh_list *hops)
{
	for (uint32_t i = 0; i < hops->n; i++) {
		uint32_t label[LABELS_MAX];
		uint16_t ttl;
		unsigned int n = ckpt_hop_stack(old, at, hops->n, i, label, &ttl);

		if (n != 0)
			hops->v[i].stack =
				stack_number(rib, label, n, ttl) & (STACKS_MAX - 1);
	}
	nh_list_sort(hops);
}

/*
 * Restore the slots. Return their present numbers, indexed by the old numbers. Slots of
 * zebra are orphans, which its replay adopts. Slots of the kernel are not, because a route
 * of the kernel must not adopt an orphan.
 */
static uint32_t *
slots_restore(struct rib *rib, const struct ckpt *old)
{
	uint32_t *now = mem_or_abort(calloc(FIB_GROUP_MAX, sizeof(*now)));
	bool *of_kernel = slots_of_kernel(old);
	struct nh_list hops = {0};
	uint32_t at = 0, slot, mtu_bytes;

	while ((slot = ckpt_next_slot(old, &at, &hops, &mtu_bytes)) != 0) {
		/*
		 * The MTU is at least its family's minimum, which was applied when the
		 * route arrived.
		 */
		if (mtu_bytes != 0)
			nh_list_set_mtu(&hops, mtu_class_of(rib, 4, mtu_bytes));
		stacks_restore(rib, old, at, &hops);
		now[slot] = slot_restore(rib, &hops, of_kernel[slot]);
	}
	free(of_kernel);
	free(hops.v);
	return now;
}

/* Restore one route of an array. */
static bool
record_restore(struct rib *rib, const struct ckpt *old, unsigned int part,
	       const struct ckpt_route *r, uint32_t slot, uint64_t hash)
{
	if (slot == 0)
		return false;
	if (part != CKPT_KERNEL)
		return route_restore(rib, r, slot, hash);
	return kernel_restore(rib, r, &old->kernel[r - old->route[part]], slot, hash);
}

/* Restore a batch. The cache misses of its routes overlap, as in zebra_batch(). */
static void
batch_restore(struct rib *rib, const struct ckpt *old, unsigned int part,
	      const struct ckpt_route *const *r, uint32_t n, const uint32_t *slot)
{
	uint64_t hash[BATCH];

	for (uint32_t i = 0; i < n; i++) {
		const struct routes *t = tables_routes(&rib->tables, r[i]->table);
		struct prefix p = ckpt_route_prefix(r[i]);

		hash[i] = routes_hash(t, r[i]->table, &p);
		routes_prefetch_bucket(t, hash[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		routes_prefetch_route(tables_routes(&rib->tables, r[i]->table), hash[i]);
	for (uint32_t i = 0; i < n; i++)
		if (record_restore(rib, old, part, r[i], slot[r[i]->slot], hash[i]))
			rib->count.restored += part != CKPT_KERNEL;
		else
			rib->count.restore_lost++;
}

/*
 * Start to load the routes from `at` on into the cache. Return the number of these routes.
 */
static uint32_t
batch_load(const struct ckpt *old, unsigned int part, unsigned int v, uint32_t at,
	   const struct ckpt_route **batch)
{
	uint32_t n = 0;

	for (; n < BATCH && at + n < old->order[part].n[v]; n++) {
		batch[n] = ckpt_route_by_address(old, part, v, at + n);
		__builtin_prefetch(batch[n]);
	}
	return n;
}

/*
 * Restore one family of a part in the order of addresses, so that the next nodes of the
 * trie are in the cache.
 */
static void
family_restore(struct rib *rib, const struct ckpt *old, unsigned int part, unsigned int v,
	       const uint32_t *slot)
{
	const struct ckpt_route *batch[2][BATCH];
	uint32_t at = 0, n = batch_load(old, part, v, 0, batch[0]), n_next;

	for (unsigned int current = 0; n > 0; current ^= 1, n = n_next) {
		at += n;
		n_next = batch_load(old, part, v, at, batch[current ^ 1]);
		batch_restore(rib, old, part, batch[current], n, slot);
	}
}

static void
part_restore(struct rib *rib, const struct ckpt *old, unsigned int part,
	     const uint32_t *slot)
{
	const uint32_t *n = old->order[part].n;

	/* Most routes of the kernel are of table main. */
	routes_expect(part == CKPT_OTHER ? &rib->tables.other : &rib->tables.main,
		      n[0] + n[1]);
	for (unsigned int v = 0; v < 2; v++)
		family_restore(rib, old, part, v, slot);
}

/*
 * Restore the port id of the zebra that sent the routes. fpm refuses this zebra until the
 * time at which the last daemon would have accepted it again.
 */
static void
zebra_restore(struct rib *rib, const struct ckpt_header *old)
{
	rib->session.nl_pid = old->nl_pid;
	mirror_zebra(rib, old->nl_pid, old->held_until_s);
	atomic_store_explicit(&fpm_status.old_nl_pid, old->nl_pid, memory_order_relaxed);
	atomic_store_explicit(&fpm_status.old_held_until_s, old->held_until_s,
			      memory_order_relaxed);
}

/* Put the routes of the records in force. */
static void
checkpoint_restore(struct rib *rib, const struct ckpt *old)
{
	uint32_t *slot = slots_restore(rib, old);

	for (unsigned int part = 0; part < CKPT_PARTS; part++)
		part_restore(rib, old, part, slot);
	free(slot);
	kernel_rebind(rib);
	atomic_store_explicit(&kernel_status.restored,
			      rib->count.restored_kernel > 0 &&
				      rib->count.restored + rib->count.restored_kernel >
					      KERNEL_LARGE,
			      memory_order_relaxed);
	zebra_restore(rib, old->head);
	/*
	 * zebra replays all routes to a new daemon, so no request for the missing ones is
	 * necessary.
	 */
	rib->slots.refused = rib->tables.refused = false;
	rib->tables.retry_ms = 0;
	rib_commit(rib);
}

/* Write the only slot that exists before the checkpoint. */
static void
mirror_unresolved(struct rib *rib)
{
	struct nh_list hops = {0};

	next_hop_special(nh_list_push(&hops), PATH_UNRESOLVED);
	mirror_slot(rib, rib->contents.unresolved, &hops);
	free(hops.v);
}

static const char turned_off[] = "turned off";

/*
 * Return true if an installation or a configuration explains why the checkpoint cannot be
 * used.
 */
static bool
discard_is_expected(const char *why)
{
	return why == turned_off || why == ckpt_other_layout || why == ckpt_other_netns;
}

int
checkpoint_begin(struct rib *rib, int old_fd)
{
	uint64_t max_age_ms = rib->conf.checkpoint_max_age_s * 1000ull;
	uint64_t begin_ms = boottime_ms();
	const char *why = turned_off;
	uint64_t alive_ms; /* a copy: a predecessor that still runs changes the original */
	struct ckpt *old = NULL;
	int rc = 0;

	if (max_age_ms > 0 && rib->conf.checkpoint) {
		rib->ckpt = ckpt_new(rib->conf.netns_id);
		if (rib->ckpt == NULL) {
			rc = -errno;
			log_warn("rib: checkpoint not created error=\"%s\"", strerror(-rc));
		}
		mirror_alive(rib);
		mirror_unresolved(rib);
	}
	if (old_fd < 0)
		return rc;
	/* Its memory may be what this start lacks. A predecessor still writes its own. */
	if (!rib->conf.successor)
		ckpt_empty_if_tried(old_fd);
	if (max_age_ms > 0)
		old = ckpt_open(old_fd, rib->conf.netns_id, boottime_ms(), max_age_ms,
				&why);
	else
		close(old_fd);
	if (old == NULL) {
		rib->count.restore_refused++;
		log_warn("rib: checkpoint discarded reason=\"%s\"", why);
		return why == ckpt_no_memory      ? -ENOMEM
		       : discard_is_expected(why) ? rc
						  : -EINVAL;
	}
	checkpoint_restore(rib, old);
	alive_ms = old->head->alive_ms;
	log_info("rib: checkpoint restored routes=%llu kernel_routes=%llu lost=%llu "
		 "bad_records=%u age_ms=%llu took_ms=%llu",
		 (unsigned long long)rib->count.restored,
		 (unsigned long long)rib->count.restored_kernel,
		 (unsigned long long)rib->count.restore_lost, old->n_bad,
		 (unsigned long long)(boottime_ms() - alive_ms),
		 (unsigned long long)(boottime_ms() - begin_ms));
	ckpt_free(old);
	return rc;
}
