/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nexthop ids of the present session: single next hops and groups, in any order. [rib]
 *
 * A NEWNEXTHOP binds late: it marks the slots of the id and of the groups that name it, and
 * never changes a prefix. If a group names a group, the next hops of the inner group take
 * its place. An id that zebra has not announced yet is kept as a stub, so that its routes
 * and groups change as soon as zebra announces it.
 *
 * A DELNEXTHOP of an id in use marks it absent and keeps its last content in force. FRR 8.4
 * to 9.x deletes ids after a replay although their routes still exist (FRR PR 15183), and
 * zebra withdraws or sends again every route that it changes. Such ids are counted and
 * shown. They are freed with their last user.
 *
 * Ids of zebra do not outlive a session. After a restart of zebra or a loss of the
 * connection, the replay announces all ids again, and a restarted zebra may give the same
 * number to another next hop. Ids of the kernel are objects of `ip nexthop`. When the
 * kernel deletes an id, it deletes the routes of the id, too.
 */
#include "rib/nexthop.h"

#include <stdlib.h>
#include <string.h>

#include "rib/index.h"
#include "rib/impl.h"
#include "rib/slot.h"
#include "rib/stack.h"
#include "rib/nh_list.h"

/* If inner groups would give a group more next hops than this, they are not followed. */
#define NESTED_MAX UINT16_MAX

static uint64_t
nh_id_hash(nh_id id)
{
	return hash32((uint32_t)id ^ ((id & NH_OF_KERNEL) != 0 ? 0x9e3779b9u : 0));
}

struct nh *
nh_find(const struct rib *rib, nh_id id)
{
	for (uint32_t i = hidx_first(&rib->nhs.by_id, nh_id_hash(id)); i != 0;
	     i = hidx_next(&rib->nhs.by_id, i))
		if (rib->nhs.v[i]->id == id)
			return rib->nhs.v[i];
	return NULL;
}

struct nh *
nh_get(struct rib *rib, nh_id id)
{
	struct nh *nh = nh_find(rib, id);

	if (nh != NULL)
		return nh;
	nh = mem_or_abort(calloc(1, sizeof(*nh)));
	nh->id = id;
	CDS_INIT_LIST_HEAD(&nh->member_of);
	nh->number = number_get(&rib->nhs.unused, &rib->nhs.high);
	rib->nhs.v = table_grow(rib->nhs.v, &rib->nhs.cap, nh->number, sizeof(*rib->nhs.v));
	rib->nhs.v[nh->number] = nh;
	rib->nhs.n++;
	hidx_add(&rib->nhs.by_id, nh_id_hash(id), nh->number);
	return nh;
}

static void
nh_drop_members(struct rib *rib, struct nh *nh)
{
	struct member *member = nh->member;
	uint32_t n = nh->n_member;

	nh->member = NULL;
	nh->n_member = 0;
	for (uint32_t i = 0; i < n; i++) {
		cds_list_del(&member[i].in);
		member[i].nh->n_groups--;
		nh_maybe_free(rib, member[i].nh);
	}
	free(member);
}

static void
nh_free(struct rib *rib, struct nh *nh)
{
	hidx_del(&rib->nhs.by_id, nh->number);
	rib->nhs.v[nh->number] = NULL;
	vec32_push(&rib->nhs.unused, nh->number);
	rib->nhs.n--;
	nh_drop_members(rib, nh);
	free(nh);
}

/*
 * Free an id that zebra or the kernel no longer has and that no route or group here names.
 * Then its members may also have no user left. Free them in a loop, not by recursion,
 * because a peer can make chains that are too long for the stack.
 */
void
nh_maybe_free(struct rib *rib, struct nh *nh)
{
	if ((nh->known && !nh->absent) || nh->slot != 0 || nh->to_free ||
	    !cds_list_empty(&nh->member_of))
		return;
	nh->to_free = true;
	vec32_push(&rib->nhs.to_free, nh->number);
	if (rib->nhs.freeing)
		return;
	rib->nhs.freeing = true;
	while (rib->nhs.to_free.n > 0)
		nh_free(rib, rib->nhs.v[rib->nhs.to_free.v[--rib->nhs.to_free.n]]);
	rib->nhs.freeing = false;
}

/*
 * Append the next hop of a member. Multiply its weight by `factor`: the weight that an
 * inner group has in the outer group; 1: the group of the member is not an inner group.
 */
static void
member_add_hop(const struct member *m, uint32_t factor, struct nh_list *out)
{
	struct next_hop *hop = nh_list_push(out);
	uint64_t weight = (uint64_t)m->weight * factor;

	if (!m->nh->known || m->nh->is_group) {
		next_hop_special(hop, PATH_UNRESOLVED);
		out->unresolved = true;
		return;
	}
	*hop = m->nh->hop;
	if (hop->kind == PATH_NONE)
		hop->weight = weight < NEXT_HOP_WEIGHT_MAX ? (uint32_t)weight
							   : NEXT_HOP_WEIGHT_MAX;
}

/*
 * Follow two levels: a group may name groups, and these name single next hops (doc/fpm.md,
 * "Next hops"). A group on the third level counts as unresolved.
 */
void
nh_hops(struct rib *rib, const struct nh *nh, uint16_t mtu_class, struct nh_list *out)
{
	nh_list_clear(out);
	if (nh->known && !nh->is_group)
		*nh_list_push(out) = nh->hop;
	for (uint32_t i = 0; i < nh->n_member; i++) {
		const struct member *m = &nh->member[i];
		uint32_t n = m->nh->known && m->nh->is_group ? m->nh->n_member : 0;

		if (n == 0 || out->n + n > NESTED_MAX)
			member_add_hop(m, 1, out);
		else
			for (uint32_t k = 0; k < n; k++)
				member_add_hop(&m->nh->member[k], m->weight, out);
	}
	if (out->n == 0) {
		next_hop_special(nh_list_push(out), PATH_UNRESOLVED);
		out->unresolved = true;
	}
	nh_list_set_mtu(out, mtu_class);
	nh_list_sort(out);
}

static bool
nh_has_members(const struct nh *nh, const struct fpm_event *ev)
{
	if (!nh->is_group || nh->n_member != ev->n_hops)
		return false;
	for (uint32_t i = 0; i < nh->n_member; i++)
		if ((uint32_t)nh->member[i].nh->id != ev->hops[i].id ||
		    nh->member[i].weight != ev->hops[i].weight)
			return false;
	return true;
}

static void
nh_set_members(struct rib *rib, struct nh *nh, const struct fpm_event *ev)
{
	struct member *member = mem_or_abort(calloc(ev->n_hops + 1u, sizeof(*member)));
	struct member *old = nh->member;
	uint32_t n_old = nh->n_member;

	/*
	 * Add the new members first, so that an id in both lists is not freed in between.
	 */
	for (uint32_t i = 0; i < ev->n_hops; i++) {
		member[i].nh = nh_get(rib, (nh->id & NH_OF_KERNEL) | ev->hops[i].id);
		member[i].group = nh;
		member[i].weight = ev->hops[i].weight == 0 ? 1 : ev->hops[i].weight;
		cds_list_add(&member[i].in, &member[i].nh->member_of);
		member[i].nh->n_groups++;
	}
	nh->member = member;
	nh->n_member = ev->n_hops;
	for (uint32_t i = 0; i < n_old; i++) {
		cds_list_del(&old[i].in);
		old[i].nh->n_groups--;
		nh_maybe_free(rib, old[i].nh);
	}
	free(old);
}

static void
nh_mark_slots(struct rib *rib, const struct nh *nh)
{
	for (uint32_t i = nh->slot; i != 0; i = slot_at(&rib->slots, i)->sibling)
		slot_dirty(rib, slot_at(&rib->slots, i), SLOT_CONTENT);
}

/*
 * Mark the slots of the id, of the groups that name it, and of the groups of these groups.
 * Their content changes at the end of the round.
 */
static void
nh_changed(struct rib *rib, struct nh *nh)
{
	struct member *m, *outer;

	rib->nhs.changed = true;
	rib->nhs.n_changes++;
	nh_mark_slots(rib, nh);
	cds_list_for_each_entry (m, &nh->member_of, in) {
		nh_mark_slots(rib, m->group);
		cds_list_for_each_entry (outer, &m->group->member_of, in)
			nh_mark_slots(rib, outer->group);
	}
}

void
nh_upsert(struct rib *rib, nh_id id, const struct fpm_event *ev)
{
	struct nh *nh = nh_get(rib, id);
	struct next_hop hop;

	nh->absent = false;
	if (ev->is_group) {
		if (nh->known && nh_has_members(nh, ev))
			return;
		nh->known = nh->is_group = true;
		nh_set_members(rib, nh, ev);
	} else {
		if (ev->blackhole)
			next_hop_special(&hop, PATH_BLACKHOLE);
		else if (ev->n_hops == 0)
			next_hop_special(&hop, PATH_UNRESOLVED);
		else
			stack_next_hop(rib, &hop, &ev->hops[0]);
		if (nh->known && !nh->is_group && memcmp(&hop, &nh->hop, sizeof(hop)) == 0)
			return;
		nh->known = true;
		nh->is_group = false;
		nh->hop = hop;
		nh_drop_members(rib, nh);
	}
	nh_changed(rib, nh);
}

void
nh_delete(struct rib *rib, nh_id id)
{
	struct nh *nh = nh_find(rib, id);

	if (nh == NULL || !nh->known) {
		rib->count.nh_del_unknown++;
		return;
	}
	nh->absent = true;
	nh_maybe_free(rib, nh);
}

void
nh_remove(struct rib *rib, nh_id id)
{
	struct nh *nh = nh_find(rib, id);

	if (nh == NULL || !nh->known)
		return;
	nh_drop_members(rib, nh); /* still known: a group that names itself is not freed */
	nh->known = nh->is_group = false;
	nh_changed(rib, nh);
	nh_maybe_free(rib, nh);
}

void
nhs_end_dump(struct rib *rib, uint32_t dump)
{
	for (uint32_t i = 1; i <= rib->nhs.high; i++) {
		const struct nh *nh = rib->nhs.v[i];

		if (nh != NULL && (nh->id & NH_OF_KERNEL) != 0 && nh->known &&
		    nh->dump != dump)
			nh_remove(rib, nh->id);
	}
}

void
nhs_end_session(struct rib *rib)
{
	for (uint32_t i = 1; i <= rib->nhs.high; i++) {
		struct nh *nh = rib->nhs.v[i];

		if (nh == NULL || (nh->id & NH_OF_KERNEL) != 0)
			continue;
		hidx_del(&rib->nhs.by_id, i);
		rib->nhs.v[i] = NULL;
		vec32_push(&rib->nhs.unused, i);
		rib->nhs.n--;
		free(nh->member);
		free(nh);
	}
}

void
nhs_free(struct rib *rib)
{
	for (uint32_t i = 1; i <= rib->nhs.high; i++)
		if (rib->nhs.v[i] != NULL) {
			free(rib->nhs.v[i]->member);
			free(rib->nhs.v[i]);
		}
	free(rib->nhs.v);
	rib->nhs.v = NULL;
	rib->nhs.high = rib->nhs.cap = rib->nhs.n = 0;
	vec32_free(&rib->nhs.unused);
	vec32_free(&rib->nhs.to_free);
	hidx_free(&rib->nhs.by_id);
}
