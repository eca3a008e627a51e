/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariants of a RIB after every round, counted from its objects: routes against
 * tries, records of the kernel's routes against both, slots against routes, ids against
 * slots, legs against links and adjacencies, group words against legs, labels against the
 * table of forwarders. Reads everything, changes nothing.
 */
#include "invariants.h"

#include "../unit/rib_rig.h"
#include "base/inet.h"
#include "fib/headend.h"
#include "fib/sid_entry.h"
#include "fib/sid_number.h"
#include "rib/group.h"
#include "rib/route.h"

/* References counted from the referring side, by number. */
struct counts {
	uint32_t *slot, *adj, *encap, *sid;
	uint32_t n_legs;
	size_t leg_bytes, block_bytes;
};

static bool
is_live(const struct slot *s)
{
	return s->kind == SLOT_ID || s->kind == SLOT_ORPHAN || s->kind == SLOT_INLINE;
}

static void
count_route(const struct rib *rib, const struct route *r, struct counts *c)
{
	MUST(r->zslot != 0 || kroute_first(&rib->kroutes, r) != 0);
	MUST(r->zslot <= rib->slots.high && r->kslot <= rib->slots.high);
	MUST(r->len <= family_bits(r->family));
	c->slot[r->zslot]++;
}

/*
 * Check that the first usable record of the kernel is in force, unless zebra's route
 * precedes it.
 */
static void
choice_must_hold(const struct rib *rib, const struct kroute *kr)
{
	const struct rib_kroutes *k = &rib->kroutes;
	const struct kroute *best = NULL;

	for (uint32_t i = kroute_first(k, kr->route); i != 0; i = kroute_next(k, i)) {
		const struct kroute *other = &k->v[i];

		MUST(other->route == kr->route);
		MUST(other == kr || kroute_precedes(other, kr) ||
		     kroute_precedes(kr, other));
		if (kroute_is_usable(k, other, &rib->links) &&
		    (best == NULL || kroute_precedes(other, best)))
			best = other;
	}
	if (best != NULL && kr->route->zslot != 0 && !best->is_local && !best->connected &&
	    best->metric > ZEBRA_METRIC)
		best = NULL;
	MUST(kr->route->kslot == (best == NULL ? 0 : best->slot));
}

static void
kroutes_must_be_sound(const struct rib *rib, struct counts *c)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t n = 0, n_connected = 0, n_listed = 0;

	for (uint32_t i = 1; i <= k->high; i++) {
		const struct kroute *kr = &k->v[i];
		struct prefix p;
		struct routes *t;

		if (kr->route == NULL)
			continue;
		n++;
		p = route_prefix(kr->route);
		t = tables_routes((struct rib_tables *)&rib->tables, kr->route->table);
		MUST(routes_find(t, kr->route->table, &p,
				 routes_hash(t, kr->route->table, &p)) == kr->route);
		MUST(kr->slot != 0 && kr->slot <= rib->slots.high);
		c->slot[kr->slot]++;
		choice_must_hold(rib, kr);
		if (kr->listed && !kr->connected)
			MUST(kr->on_list < k->local.n && k->local.v[kr->on_list] == i);
		n_listed += kr->listed;
		if (!kr->connected)
			continue;
		n_connected++;
		MUST(kr->on_list < k->connected.n && k->connected.v[kr->on_list] == i);
	}
	MUST(k->n == n && k->connected.n == n_connected && k->local.n == n_listed);
	MUST(!k->sweeping && !k->rebind);
}

static void
routes_must_be_sound(const struct rib *rib, struct counts *c)
{
	uint32_t n_main[2] = {0}, n_zebra[2] = {0}, n_other = 0, stale = 0;
	uint32_t n_staged[2] = {0};
	uint32_t n_not_ip = 0, n_labels = 0, n_tallied = 0, stale_other = 0;
	struct poptrie_stats st[2];

	for (uint32_t i = 1; i <= rib->tables.main.high; i++) {
		const struct route *r = route_at(&rib->tables.main, i);
		struct prefix p = route_prefix(r);
		unsigned int v = r->family == 6;

		if (r->family == 0)
			continue;
		count_route(rib, r, c);
		MUST(r->table == RIB_TABLE_MAIN);
		MUST(r->kslot == 0 || kroute_first(&rib->kroutes, r) != 0);
		MUST(routes_find(&rib->tables.main, r->table, &p,
				 routes_hash(&rib->tables.main, r->table, &p)) == r);
		MUST(route_is_staged(rib, r));
		n_main[v]++;
		n_staged[v] += route_effective(r) != 0;
		n_zebra[v] += r->zslot != 0;
		stale += r->zslot != 0 && r->gen != rib->session.gen;
	}
	for (uint32_t i = 1; i <= rib->tables.other.high; i++) {
		const struct route *r = route_at(&rib->tables.other, i);

		if (r->family == 0)
			continue;
		count_route(rib, r, c);
		MUST(r->table != RIB_TABLE_MAIN);
		MUST(family_is_ip(r->family) || r->table == FPM_TABLE_NONE);
		n_other++;
		n_not_ip += r->table == FPM_TABLE_NONE;
		n_labels += r->family == FAMILY_LABEL && r->zslot != 0;
		stale += r->family == FAMILY_LABEL && r->zslot != 0 &&
			 r->gen != rib->session.gen;
		n_tallied += r->table != FPM_TABLE_NONE && r->zslot != 0;
		stale_other += r->table != FPM_TABLE_NONE && r->zslot != 0 &&
			       r->gen != rib->session.gen;
	}
	for (uint32_t i = 1; i <= rib->table_counts.high; i++) {
		const struct table_count *t = &rib->table_counts.v[i];

		MUST(t->stale <= t->n && n_tallied >= t->n);
		MUST(t->n == 0 || table_count_find(rib, t->table) == t);
		n_tallied -= t->n;
	}
	MUST(n_tallied == 0 && rib->table_counts.stale_other == stale_other);
	poptrie_stats(rib->fib->copy[0].pt4, &st[0]);
	poptrie_stats(rib->fib->copy[0].pt6, &st[1]);
	for (unsigned int v = 0; v < 2; v++) {
		MUST(rib->tables.n_main[v] == n_main[v]);
		MUST(rib->table_counts.n_zebra[v] == n_zebra[v]);
		MUST(st[v].routes == n_staged[v]);
	}
	MUST(rib->tables.main.n == n_main[0] + n_main[1]);
	MUST(rib->tables.other.n == n_other);
	MUST(rib->tables.n_not_ip == n_not_ip && rib->table_counts.n_labels == n_labels);
	MUST(rib->table_counts.stale == stale);
	/* A complete replay has confirmed or swept all routes that it could. */
	MUST(!rib->session.connected || rib->session.replaying || stale == 0);
}

#define LABELS_SEEN \
	4096u /* check only so many lowest and highest labels without a route, for speed */

static bool
label_is_seen(uint32_t label)
{
	return label < LABELS_SEEN || label >= LABELS_ALL - LABELS_SEEN;
}

/* Return how many of the `n` labels from `from` on forwarders have. */
static uint32_t
labels_count(const struct rib *rib, uint32_t from, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t label = from; label < from + n; label++) {
		MUST(rib->labels.want[label] == rib->fib->label[label]);
		found += rib->fib->label[label] != 0;
	}
	return found;
}

/* Check that forwarders have each label with the slot of its route, and no other label. */
static void
labels_must_be_sound(const struct rib *rib)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= rib->tables.other.high; i++) {
		const struct route *r = route_at(&rib->tables.other, i);

		if (r->family != FAMILY_LABEL)
			continue;
		MUST(r->len == 32 && get_be32(r->octet) < LABELS_ALL);
		MUST(route_effective(r) != 0 && rib->labels.want != NULL);
		MUST(rib->fib->label[get_be32(r->octet)] == route_effective(r));
		n += label_is_seen(get_be32(r->octet));
	}
	MUST(rib->labels.staged.n == 0);
	if (rib->labels.want != NULL)
		n -= labels_count(rib, 0, LABELS_SEEN) +
		     labels_count(rib, LABELS_ALL - LABELS_SEEN, LABELS_SEEN);
	MUST(n == 0);
}

static void
hop_must_be_sound(const struct rib *rib, const struct next_hop *hop)
{
	MUST(hop->refusal == 0 || (hop->encap == HOP_SEG6 && hop->stack == 0));
	MUST(hop->stack == 0 || (hop->kind == PATH_NONE &&
				 (hop->encap == HOP_MPLS || hop->encap == HOP_SEG6)));
	MUST(hop->stack <= rib->stacks.high);
	MUST(hop->stack == 0 || rib->stacks.v[hop->stack].n != 0);
}

/*
 * Check that the entry that forwarders use for the leg has the labels and the adjacency of
 * the leg, or the segments of a headend.
 */
static void
encap_must_be_sound(const struct rib *rib, const struct leg *leg)
{
	const struct stack *s = &rib->stacks.v[leg->hop.stack];
	const struct fib_encap *e = &rib->fib->encap[leg->encap];
	fib_path next = leg->hop.encap == HOP_SEG6 ? ENCAP_HEADEND
			: leg->adj != 0            ? PATH(PATH_ADJ, leg->adj)
						   : PATH(PATH_ONLINK, leg->link->ifidx);

	MUST(leg->encap <= rib->encaps.high && leg->hop.stack != 0);
	MUST(rib->encaps.v[leg->encap].stack == leg->hop.stack);
	MUST(encap_find(rib, next, leg->hop.stack) == leg->encap);
	if (leg->hop.encap == HOP_SEG6) {
		struct fib_headend headend;

		MUST(leg->adj == 0 &&
		     path_is_headend(rib->fib, PATH(PATH_ENCAP, leg->encap)));
		MUST(fib_headend_write(&headend, stack_labels(s), s->n));
		MUST(memcmp(&headend, &rib->fib->headend[leg->encap], sizeof(headend)) ==
		     0);
		return;
	}
	MUST(leg->adj != 0 || leg->link->gre);
	MUST(encap_next(e) == next && e->n == s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		MUST(encap_label(e, i) == stack_labels(s)[i]);
		MUST(e->packed || (__builtin_bswap32(e->entry[i]) & LABEL_REST) == 0);
	}
}

/* Check that a group word has only paths of the legs of its slot. */
static void
word_must_be_sound(const struct rib *rib, const struct slot *s)
{
	uint64_t word = rib->fib->group[s->number];
	unsigned int log2_n = group_word_log2(word);
	fib_path last = 0;

	MUST(group_word_is_block(word) == (s->block != NULL));
	MUST(s->block == NULL ||
	     (group_word_buckets(word) == s->block && log2_n == s->log2_block));
	for (uint32_t i = 0; i < 1u << log2_n; i++) {
		fib_path path = s->block == NULL ? (fib_path)word : s->block[i], leads;
		bool found = false;

		if (i > 0 && path == last)
			continue;
		last = path;
		for (uint32_t j = 0; j < s->n_legs && !found; j++) {
			(void)leg_path(rib, &s->leg[j], &leads);
			found = leads == path;
		}
		MUST(found);
	}
}

static bool
id_has_slot(const struct rib *rib, const struct nh *nh, uint32_t slot)
{
	uint32_t at = nh->slot;

	while (at != 0 && at != slot)
		at = slot_at(&rib->slots, at)->sibling;
	return at == slot;
}

/*
 * Return the number of references that rib itself has to a slot. It keeps the slots for
 * unresolved, suppressed and hidden routes. Kinds of hidden routes can share a slot.
 */
static uint32_t
own_refs(const struct rib *rib, uint32_t slot)
{
	uint32_t n =
		(slot == rib->contents.unresolved) + (slot == rib->contents.suppressed);

	for (unsigned int type = 0; type < RTN_THROW; type++)
		n += rib->contents.hidden[type] == slot;
	return n;
}

uint32_t
rib_n_own_slots(const struct rib *rib)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= rib->slots.high; i++)
		n += own_refs(rib, i) > 0;
	return n;
}

static void
slot_must_be_sound(const struct rib *rib, const struct slot *s, struct counts *c)
{
	const struct nh *nh;

	MUST(s->refs == c->slot[s->number] + own_refs(rib, s->number));
	MUST(s->refs > 0 && s->n_legs > 0);
	MUST(!s->queued && !s->idle && s->dirty == 0);
	MUST(s->version != 0 && s->former == 0);
	MUST(s->indexed == (s->kind != SLOT_ID));
	if (s->kind == SLOT_ID) {
		nh = slot_nh(rib, s);
		MUST(nh != NULL && id_has_slot(rib, nh, s->number));
	}
	for (uint32_t i = 0; i < s->n_legs; i++) {
		const struct leg *leg = &s->leg[i];

		MUST(leg->slot == s);
		MUST(leg->link == NULL ||
		     rib_link_find(&rib->links, leg->link->ifindex) == leg->link);
		MUST(leg->adj <= rib->adjs.high);
		MUST(leg->lacks_adj ? leg->adj == 0 : true);
		hop_must_be_sound(rib, &leg->hop);
		if (leg->encap != 0)
			encap_must_be_sound(rib, leg);
		MUST(leg->sid <= rib->sids.high);
		MUST(leg->sid == 0 || sid_find(rib, &leg->hop) == leg->sid);
		c->encap[leg->encap]++;
		c->sid[leg->sid]++;
		c->adj[leg->adj]++;
		c->n_legs += leg->link != NULL;
	}
	c->leg_bytes += s->n_legs * sizeof(*s->leg);
	if (s->block != NULL)
		c->block_bytes += group_block_bytes(s->log2_block);
	word_must_be_sound(rib, s);
}

static void
slots_must_be_sound(const struct rib *rib, struct counts *c)
{
	uint32_t n = 0, orphans = 0;

	for (uint32_t i = 1; i <= rib->slots.high; i++) {
		const struct slot *s = slot_at(&rib->slots, i);

		if (!is_live(s)) {
			MUST(s->kind == SLOT_FREE); /* all grace periods are over */
			MUST(c->slot[i] == 0 && s->n_legs == 0 && s->block == NULL);
			continue;
		}
		n++;
		orphans += s->kind == SLOT_ORPHAN;
		slot_must_be_sound(rib, s, c);
	}
	MUST(rib->slots.n == n && rib->contents.n_orphans == orphans);
	MUST(rib->contents.leg_bytes == c->leg_bytes &&
	     rib->words.block_bytes == c->block_bytes);
	MUST(rib->slots.idle.n == 0 && rib->slots.dirty.n == 0);
}

static void
ids_must_be_sound(const struct rib *rib)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= rib->nhs.high; i++) {
		struct nh *nh = rib->nhs.v[i];
		const struct member *m;

		if (nh == NULL)
			continue;
		n++;
		MUST(nh->number == i && nh_find(rib, nh->id) == nh);
		hop_must_be_sound(rib, &nh->hop);
		for (uint32_t at = nh->slot; at != 0;
		     at = slot_at(&rib->slots, at)->sibling)
			MUST(slot_at(&rib->slots, at)->kind == SLOT_ID &&
			     slot_nh(rib, slot_at(&rib->slots, at)) == nh);
		/*
		 * A next hop that is not announced and has no reference must have been
		 * freed.
		 */
		MUST((nh->known && !nh->absent) || nh->slot != 0 ||
		     !cds_list_empty(&nh->member_of));
		MUST(!nh->to_free);
		cds_list_for_each_entry (m, &nh->member_of, in) {
			MUST(m->nh == nh && nh_find(rib, m->group->id) == m->group);
			MUST(m >= m->group->member &&
			     m < m->group->member + m->group->n_member);
		}
		for (uint32_t j = 0; j < nh->n_member; j++)
			MUST(nh_find(rib, nh->member[j].nh->id) == nh->member[j].nh);
	}
	MUST(rib->nhs.n == n && rib->nhs.to_free.n == 0);
}

static void
links_must_be_sound(const struct rib *rib, const struct counts *c)
{
	uint32_t n_legs = 0, n_adj = 0;
	const struct leg *leg;

	for (uint32_t i = 1; i <= rib->links.high; i++) {
		struct link *link = rib->links.v[i];

		if (link == NULL)
			continue;
		MUST(rib_link_find(&rib->links, link->ifindex) == link);
		MUST(link->known || !cds_list_empty(&link->legs));
		cds_list_for_each_entry (leg, &link->legs, on_link) {
			MUST(leg->link == link);
			n_legs++;
		}
	}
	MUST(n_legs == c->n_legs);
	for (uint32_t i = 1; i <= rib->adjs.high; i++) {
		const struct adj *a = &rib->adjs.v[i];
		uint32_t refs = 0;

		MUST(a->state != ADJ_UNWATCHED); /* neigh has answered */
		if (a->state == ADJ_FREE) {
			MUST(c->adj[i] == 0);
			continue;
		}
		n_adj++;
		MUST(a->refs == c->adj[i] && !a->asked);
		cds_list_for_each_entry (leg, &a->legs, on_adj) {
			MUST(leg->adj == i);
			refs++;
		}
		MUST(refs == a->refs);
		MUST(rib->fib->adj[i].family == a->family &&
		     ipaddr_equal(&rib->fib->adj[i].addr, &a->addr));
	}
	MUST(rib->adjs.n == n_adj && rib->adjs.n_asked == 0);
}

static void
encaps_must_be_sound(const struct rib *rib, const struct counts *c)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= rib->encaps.high; i++) {
		MUST(rib->encaps.v[i].refs == c->encap[i]);
		n += c->encap[i] != 0;
	}
	MUST(rib->encaps.n == n && rib->encaps.high < rib->fib->encap_end);
}

static void
early_must_be_sound(const struct rib *rib)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= rib->early.high; i++) {
		const struct route *r = rib->early.v[i].route;

		if (r == NULL)
			continue;
		n++;
		MUST(r->family != 0 && r->zslot != 0 && rib->early.v[i].nhid != 0);
		MUST(r->gen == rib->session.gen);
	}
	MUST(rib->early.n == n);
}

/*
 * Check the entries of end points. The references of an entry are the legs that use it. If
 * an entry names an interface, it has the number of this interface.
 */
static void
sids_must_be_sound(const struct rib *rib, const struct counts *c)
{
	uint32_t n = 0, n_used = 0;

	for (uint32_t i = 1; i <= rib->sids.high; i++) {
		const struct rib_sid *of = &rib->sids.v[i];
		const struct link *link;
		struct srv6_sid sid;
		uint16_t ifidx = 0;

		MUST(of->refs == c->sid[i]);
		if (of->refs == 0)
			continue;
		n_used++;
		MUST(srv6_sid_unpack(of->word, of->n, &sid));
		if (sid.oif != 0) {
			link = rib_link_find(&rib->links, sid.oif);
			ifidx = link == NULL || link->ifidx == 0 ? SID_NO_IFACE
								 : link->ifidx;
			n++;
		}
		MUST(rib->fib->sid[i].ifidx == ifidx);
	}
	MUST(rib->sids.n_with_oif == n && rib->sids.n == n_used);
}

/*
 * Check which routes have a number in the FIB: those whose table has a FIB and whose slot
 * has an end point, and no others.
 */
static void
sid_numbers_must_be_sound(const struct rib *rib)
{
	const struct fib_sid_numbers *t = rib->fib->sid_numbers;
	uint32_t n_numbers = 0, n_routes = 0, number;

	for (uint32_t i = 1; i <= t->high; i++) {
		struct prefix p = fib_sid_number_prefix(rib->fib, i);

		if (p.len == 0)
			continue;
		n_numbers++;
		MUST(fib_sid_number_of(rib->fib, t->of[i].table, &p.addr, p.len) == i);
		MUST((t->lens[(p.len - 1) / 64] >> (p.len - 1) % 64 & 1) != 0);
	}
	for (uint32_t i = 1; i <= tables_walk_end(&rib->tables); i++) {
		const struct route *r = tables_walk_at(&rib->tables, i);
		uint32_t slot =
			r != NULL && r->family == 6 && r->len > 0 ? route_effective(r) : 0;
		struct prefix p;

		if (slot == 0 || !slot_at(&rib->slots, slot)->end_point)
			continue;
		if (r->table != RIB_TABLE_MAIN && vrf_find(rib, r->table) == NULL)
			continue;
		n_routes++;
		p = route_prefix(r);
		number = fib_sid_number_of(rib->fib, r->table, &p.addr, p.len);
		MUST(number != 0 || t->high + 1 == SIDS_MAX);
		MUST(number == 0 || t->of[number].vrf == vrf_of_table(rib, r->table));
	}
	MUST(n_numbers == n_routes || t->high + 1 == SIDS_MAX);
}

void
rib_must_be_sound(struct rig *g)
{
	const struct rib *rib = g->rib;
	struct counts c = {0};

	c.slot = calloc(rib->slots.high + 1u, sizeof(*c.slot));
	c.adj = calloc(rib->adjs.high + 1u, sizeof(*c.adj));
	c.encap = calloc(rib->encaps.high + 1u, sizeof(*c.encap));
	c.sid = calloc(rib->sids.high + 1u, sizeof(*c.sid));
	MUST(c.slot != NULL && c.adj != NULL && c.encap != NULL && c.sid != NULL);
	for (uint32_t i = 1; i <= rib->sids.high; i++)
		c.encap[rib->sids.v[i].encap]++; /* policies of End.B6.Encaps */
	MUST(!rib->pending.staged[0] && !rib->pending.staged[1] && !rib->resync.due);
	MUST(rib->reclaims.open == NULL && rib->reclaims.n == 0);
	routes_must_be_sound(rib, &c);
	labels_must_be_sound(rib);
	kroutes_must_be_sound(rib, &c);
	slots_must_be_sound(rib, &c);
	ids_must_be_sound(rib);
	links_must_be_sound(rib, &c);
	encaps_must_be_sound(rib, &c);
	early_must_be_sound(rib);
	sids_must_be_sound(rib, &c);
	sid_numbers_must_be_sound(rib);
	free(c.slot);
	free(c.adj);
	free(c.encap);
	free(c.sid);
}
