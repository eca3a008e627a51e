/* SPDX-License-Identifier: BSD-3-Clause */
/* End points of SRv6, as forwarders read them. [rib] */
#include "rib/sid.h"

#include <assert.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/limits.h"
#include "fib/sid_entry.h"
#include "rib/encap.h"
#include "rib/link.h"
#include "rib/nh_list.h"
#include "rib/impl.h"
#include "rib/stack.h"
#include "rib/vrf.h"

static uint64_t
words_hash(const struct rib *rib, const struct stack *s)
{
	uint64_t h = rib->fib->seed + s->n;

	for (unsigned int i = 0; i < s->n; i++)
		h = mix64(h ^ stack_labels(s)[i]);
	return h;
}

/* Return the words of an end point, or NULL. */
static const struct stack *
sid_words(const struct rib *rib, const struct next_hop *hop, struct srv6_sid *sid)
{
	const struct stack *s;

	if (hop->kind != PATH_NONE || hop->encap != HOP_SEG6 || hop->stack == 0)
		return NULL;
	s = stack_at(rib, hop->stack);
	return srv6_sid_unpack(stack_labels(s), s->n, sid) ? s : NULL;
}

static uint32_t
words_find(const struct rib *rib, const struct stack *s)
{
	const struct rib_sids *t = &rib->sids;
	uint32_t i;

	for (i = hidx_first(&t->by_words, words_hash(rib, s)); i != 0;
	     i = hidx_next(&t->by_words, i))
		if (t->v[i].n == s->n && memcmp(t->v[i].word, stack_labels(s),
						s->n * sizeof(t->v[i].word[0])) == 0)
			break;
	return i;
}

bool
hop_is_end_point(const struct rib *rib, const struct next_hop *hop)
{
	struct srv6_sid sid;

	return sid_words(rib, hop, &sid) != NULL;
}

uint32_t
sid_find(const struct rib *rib, const struct next_hop *hop)
{
	struct srv6_sid sid;
	const struct stack *s = sid_words(rib, hop, &sid);

	return s == NULL ? 0 : words_find(rib, s);
}

/*
 * Return the number for forwarders of the interface that an end point names by its ifindex.
 */
static uint16_t
sid_ifidx(const struct rib *rib, uint32_t oif)
{
	const struct link *link = oif == 0 ? NULL : rib_link_find(&rib->links, oif);

	if (oif == 0)
		return 0;
	return link == NULL || link->ifidx == 0 ? SID_NO_IFACE : link->ifidx;
}

/* Take an entry of fib->encap for a policy; 0: none is left. */
static uint32_t
policy_get(struct rib *rib, const uint32_t *word, unsigned int n)
{
	uint32_t stack = stack_number(rib, word, n, 0) & (STACKS_MAX - 1);

	return stack == 0 ? 0 : encap_get(rib, ENCAP_HEADEND, stack);
}

static bool
sids_are_full(const struct rib *rib)
{
	return rib->sids.n >= table_limit(rib->conf.limits, TABLE_end_points);
}

bool
sid_is_available(const struct rib *rib, const struct next_hop *hop)
{
	struct srv6_sid sid;
	const struct stack *s = sid_words(rib, hop, &sid);

	if (s == NULL || words_find(rib, s) != 0)
		return s != NULL;
	return !sids_are_full(rib) && (sid.n_policy == 0 || !encaps_are_full(rib));
}

static void
sid_write_entry(struct rib *rib, uint32_t number, const struct srv6_sid *sid,
		uint32_t encap)
{
	struct fib_sid *e = &rib->fib->sid[number];

	e->action = sid->action;
	e->flavors = sid->flavors;
	e->block_bits = sid->block_bits;
	e->node_bits = sid->node_bits;
	e->family = sid->family;
	e->hop = sid->hop;
	e->policy = PATH(PATH_ENCAP, encap);
	atomic_store_explicit(&e->ifidx, sid_ifidx(rib, sid->oif), memory_order_relaxed);
	atomic_store_explicit(&e->vrf, vrf_of_table(rib, sid->table), memory_order_relaxed);
}

uint32_t
sid_get(struct rib *rib, const struct next_hop *hop)
{
	struct srv6_sid sid;
	const struct stack *s = sid_words(rib, hop, &sid);
	struct rib_sids *t = &rib->sids;
	struct rib_sid new = {.refs = 1};
	uint32_t number;
	uint64_t hash;

	number = s == NULL ? 0 : words_find(rib, s);
	if (number != 0)
		t->v[number].refs++;
	if (s == NULL || number != 0)
		return number;
	if (sids_are_full(rib)) {
		table_refuse(TABLE_end_points);
		t->refused = true;
		return 0;
	}
	hash = words_hash(rib, s);
	new.n = s->n;
	memcpy(new.word, stack_labels(s), s->n * sizeof(new.word[0]));
	if (sid.n_policy != 0) {
		/* From here on `s` and `sid.policy` may point to memory that was moved. */
		new.encap = policy_get(rib, new.word + 2, sid.n_policy);
		if (new.encap == 0)
			return 0; /* encap_get() has counted and logged it */
	}
	number = fifo32_len(&t->unused) > 0 ? fifo32_pop(&t->unused) : ++t->high;
	t->v = table_grow(t->v, &t->cap, number, sizeof(*t->v));
	t->v[number] = new;
	sid_write_entry(rib, number, &sid, new.encap);
	t->n_with_oif += sid.oif != 0;
	hidx_add(&t->by_words, hash, number);
	table_used(TABLE_end_points, ++t->n);
	return number;
}

void
sid_put(struct rib *rib, uint32_t number)
{
	struct rib_sids *t = &rib->sids;
	struct rib_sid *of = &t->v[number];
	struct srv6_sid sid;

	assert(of->refs > 0);
	if (--of->refs > 0)
		return;
	t->n_with_oif -= srv6_sid_unpack(of->word, of->n, &sid) && sid.oif != 0;
	if (of->encap != 0)
		encap_put(rib, of->encap);
	hidx_del(&t->by_words, number);
	*of = (struct rib_sid){.n = 0};
	fifo32_push(&t->unused, number);
	table_used(TABLE_end_points, --t->n);
	if (t->refused)
		rib->adjs.freed = true; /* legs_retry_adjs() tries again */
	t->refused = false;
}

void
sids_bind(struct rib *rib)
{
	for (uint32_t i = 1; i <= rib->sids.high; i++)
		if (rib->sids.v[i].n != 0)
			atomic_store_explicit(&rib->fib->sid[i].vrf,
					      vrf_of_table(rib, rib->sids.v[i].word[1]),
					      memory_order_relaxed);
}

void
sids_bind_link(struct rib *rib, uint32_t ifindex)
{
	struct srv6_sid sid;

	for (uint32_t i = 1; i <= rib->sids.high && rib->sids.n_with_oif != 0; i++)
		if (rib->sids.v[i].n != 0 && rib->sids.v[i].word[1] == ifindex &&
		    srv6_sid_unpack(rib->sids.v[i].word, rib->sids.v[i].n, &sid) &&
		    sid.oif == ifindex)
			atomic_store_explicit(&rib->fib->sid[i].ifidx,
					      sid_ifidx(rib, ifindex),
					      memory_order_relaxed);
}

void
sids_free(struct rib_sids *sids)
{
	free(sids->v);
	fifo32_free(&sids->unused);
	hidx_free(&sids->by_words);
}
