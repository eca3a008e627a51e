/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookup: find the path of each destination, with one bulk lookup per family, then the
 * choice of a member in each group.                                             [fwd-n]
 */
#include "base/inet.h"
#include "fwd/vlan.h"

/*
 * Choose among the members of a group by the hash of the flow. Groups with one member need
 * no hash.
 */
static void
paths_choose_by_hash(struct burst *b, const struct fwd_found *found)
{
	const struct fib *fib = b->fwd->fib;

	for (unsigned int k = 0; k < found->n; k++) {
		unsigned int i = found->at[k];
		uint64_t w = atomic_load_explicit(&fib->group[found->group[k]],
						  memory_order_consume);
		uint32_t hash = 0;

		if (group_word_is_block(w))
			hash = flow_hash(burst_l3(b, i), burst_l3_room(b, i), b->family[i],
					 fib->seed);
		b->path[i] = group_word_path(w, hash);
	}
}

/*
 * Set the paths from the result of one family's lookup. `all`: the result has all entries
 * in order; else found->at names the entries.
 */
static inline __attribute__((always_inline)) void
paths_choose(struct burst *b, const struct fwd_found *found, bool all)
{
	_Atomic uint64_t *group = b->fwd->fib->group;
	uint64_t any = 0;

#pragma GCC unroll 4
	for (unsigned int k = 0, n = found->n; k < n; k++) {
		uint64_t w =
			atomic_load_explicit(&group[found->group[k]], memory_order_consume);

		b->path[all ? k : found->at[k]] = (fib_path)w;
		any |= w;
	}
	if (group_word_is_block(any))
		paths_choose_by_hash(b, found);
}

/*
 * Prepare the result of a burst that is all fast-path packets of one family, [0] IPv4, [1]
 * IPv6: the entries are in order.
 */
static struct fwd_found *
found_all(struct burst *b, unsigned int family)
{
	struct fwd_found *found = &b->found[family];

	found->n = b->n;
	b->found[1 - family].n = 0;
	for (unsigned int i = 0; i < BURST_MAX; i++)
		found->at[i] = (uint8_t)i;
	return found;
}

/* Look up a burst that is all fast-path IPv4. b->dst4 has the keys already. */
static void
lookup_fast4(struct burst *b, const struct poptrie *pt4)
{
	struct fwd_found *v4 = found_all(b, 0);

	poptrie4_lookup_bulk(pt4, b->dst4, v4->group, b->n);
	paths_choose(b, v4, true);
}

/*
 * Return true if there are several destinations, all equal. In most bursts the loop ends at
 * the second address.
 */
static inline bool
dst6_is_one(const uint8_t *const *dst6, unsigned int n)
{
	uint64_t first[2], other[2];

	memcpy(first, dst6[0], sizeof(first));
	for (unsigned int i = 1; i < n; i++) {
		memcpy(other, dst6[i], sizeof(other));
		if (((first[0] ^ other[0]) | (first[1] ^ other[1])) != 0)
			return false;
	}
	return n > 1;
}

/*
 * Look up destinations that are segments of SRv6. Packets have few different segments,
 * which are addresses or long prefixes, and the lookup of such an address takes many steps.
 * So the results are kept until the next quiescent state.
 */
static __attribute__((noinline)) void
segments_look_up(struct fwd *f, const struct poptrie *pt6, const uint8_t *const *dst6,
		 uint32_t *group, unsigned int n)
{
	struct fwd_segment *of[BURST_MAX];
	const uint8_t *missed[BURST_MAX];
	uint32_t found[BURST_MAX];
	uint8_t at[BURST_MAX];
	unsigned int n_missed = 0;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t dst[2], x;
		struct fwd_segment *s;

		memcpy(dst, dst6[i], sizeof(dst));
		x = (dst[0] ^ dst[1] * 0xc2b2ae3d27d4eb4fu) * 0x9e3779b97f4a7c15u;
		s = &f->segment[x >> (64 - FWD_SEGMENTS_LOG2)];
		group[i] = s->group;
		if (__builtin_expect(((s->dst[0] ^ dst[0]) | (s->dst[1] ^ dst[1]) |
				      (s->epoch ^ f->outer_epoch)) == 0 &&
					     s->pt6 == pt6,
				     1))
			continue;
		of[n_missed] = s;
		missed[n_missed] = dst6[i];
		at[n_missed++] = (uint8_t)i;
	}
	if (n_missed == 0)
		return;
	poptrie6_lookup_bulk(pt6, missed, found, n_missed);
	for (unsigned int k = 0; k < n_missed; k++) {
		group[at[k]] = found[k];
		*of[k] = (struct fwd_segment){
			.epoch = f->outer_epoch, .pt6 = pt6, .group = found[k]};
		memcpy(of[k]->dst, missed[k], sizeof(of[k]->dst));
	}
}

/*
 * Look up a burst that is all fast-path IPv6. If all destinations are equal, look up one,
 * because packets to an end point of SRv6 have one destination, and a lookup of a /128
 * takes many steps.
 */
static void
lookup_fast6(struct burst *b, const struct poptrie *pt6)
{
	struct fwd_found *v6 = found_all(b, 1);
	const uint8_t *dst6[BURST_MAX];
	uint32_t group;

	for (unsigned int i = 0; i < b->n; i++)
		dst6[i] = burst_l3(b, i) + 24;
	if (b->segments) {
		segments_look_up(b->fwd, pt6, dst6, v6->group, b->n);
	} else if (dst6_is_one(dst6, b->n)) {
		group = poptrie6_lookup(pt6, dst6[0]);
		for (unsigned int i = 0; i < b->n; i++)
			v6->group[i] = group;
	} else {
		poptrie6_lookup_bulk(pt6, dst6, v6->group, b->n);
	}
	paths_choose(b, v6, true);
}

/*
 * Drop the packets of a burst whose VRF has no FIB, because no other FIB may be used for
 * them. Packets with labels are not dropped, because they have their path already.
 */
static void
burst_no_fib(struct burst *b)
{
	burst_to_slow(b, burst_all(b));
	b->found[0].n = b->found[1].n = 0;
	for (unsigned int i = 0; i < b->n; i++)
		if (b->verdict[i] == VERDICT_GO &&
		    ((b->labels | b->switched) >> i & 1) == 0)
			burst_leave(b, i, DROP_vrf_no_fib);
}

/*
 * Return a bit for each IPv4 packet that needs a path; *six: a bit for each IPv6 packet.
 * The caller then has a loop per family, because the CPU would mispredict a branch on the
 * family of mixed traffic.
 */
static uint64_t
burst_to_look_up(const struct burst *b, uint64_t *six)
{
	uint64_t go = 0, four = 0;

	if ((b->fast4 | b->fast6) == burst_all(b)) {
		*six = b->fast6;
		return b->fast4;
	}
	for (unsigned int i = 0; i < b->n; i++) {
		go |= (uint64_t)(b->verdict[i] == VERDICT_GO) << i;
		four |= (uint64_t)(b->family[i] == 4) << i;
	}
	go &= ~(b->labels | b->switched); /* packets with labels have their path already */
	*six = go & ~four;
	return go & four;
}

void
fwd_lookup(struct burst *b)
{
	const struct poptrie *pt4 = b->fwd->tries->pt4, *pt6 = b->fwd->tries->pt6;
	struct fwd_found *v4 = &b->found[0], *v6 = &b->found[1];
	uint32_t dst4[BURST_MAX];
	const uint8_t *dst6[BURST_MAX];
	unsigned int n4 = 0, n6 = 0;
	uint64_t four, six;

	/* A burst has one ingress interface, hence one VRF: read it once per burst. */
	if (b->in->vrf != 0) {
		pt4 = fib_vrf_pt4(b->fwd->fib, b->in->vrf);
		pt6 = fib_vrf_pt6(b->fwd->fib, b->in->vrf);
		burst_count_vrf(b);
		if (pt4 == NULL || pt6 == NULL) {
			burst_no_fib(b);
			return;
		}
	}
	if (b->fast4 == burst_all(b)) {
		lookup_fast4(b, pt4);
		return;
	}
	if (b->fast6 == burst_all(b)) {
		lookup_fast6(b, pt6);
		return;
	}
	/* All packets have their paths from their labels. */
	if (b->switched == burst_all(b)) {
		v4->n = v6->n = 0;
		return;
	}
	four = burst_to_look_up(b, &six);
	for (uint64_t rest = four; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		dst4[n4] = get_be32(burst_l3(b, i) + 16);
		v4->at[n4++] = (uint8_t)i;
	}
	for (uint64_t rest = six; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		dst6[n6] = burst_l3(b, i) + 24;
		v6->at[n6++] = (uint8_t)i;
	}
	v4->n = n4;
	v6->n = n6;
	if (n4 > 0) {
		poptrie4_lookup_bulk(pt4, dst4, v4->group, n4);
		paths_choose(b, v4, false);
	}
	if (n6 > 0) {
		poptrie6_lookup_bulk(pt6, dst6, v6->group, n6);
		paths_choose(b, v6, false);
	}
	if (__builtin_expect(b->in->rules4 | b->in->rules6, 0))
		fwd_lookup_rules(b);
}

/*
 * Return `its`, the trie of the packet's VRF. If it is NULL, return the trie of table main
 * and, if the packet is of a VRF, set the packet's bit in *none.
 */
static inline const struct poptrie *
trie_vrf_or_main(const struct poptrie *its, const struct poptrie *of_main,
		 const struct burst *b, unsigned int i, uint64_t *none)
{
	if (__builtin_expect(its != NULL, 1))
		return its;
	*none |= (uint64_t)(b->vrf[i] != 0) << i;
	return of_main;
}

static inline const struct poptrie *
trie_of_vrf4(const struct burst *b, unsigned int i, uint64_t *none)
{
	return trie_vrf_or_main(fib_vrf_pt4(b->fwd->fib, b->vrf[i]), b->fwd->tries->pt4, b,
				i, none);
}

static inline const struct poptrie *
trie_of_vrf6(const struct burst *b, unsigned int i, uint64_t *none)
{
	return trie_vrf_or_main(fib_vrf_pt6(b->fwd->fib, b->vrf[i]), b->fwd->tries->pt6, b,
				i, none);
}

/*
 * Look up IPv4 packets, each in its trie. Nearly always all packets are of one VRF. Then
 * they are looked up together in one trie, which is faster.
 */
static void
lookup_each4(const struct poptrie *const *pt4, const uint32_t *dst4, uint32_t *group,
	     unsigned int n)
{
	uintptr_t differ = 0;

	for (unsigned int i = 0; i < n; i++)
		differ |= (uintptr_t)pt4[i] ^ (uintptr_t)pt4[0];
	if (differ != 0)
		poptrie4_lookup_each(pt4, dst4, group, n);
	else if (n > 0)
		poptrie4_lookup_bulk(pt4[0], dst4, group, n);
}

uint64_t
fwd_lookup_each(struct burst *b)
{
	struct fwd_found *v4 = &b->found[0], *v6 = &b->found[1];
	const struct poptrie *pt4[BURST_MAX];
	uint32_t dst4[BURST_MAX];
	unsigned int n4 = 0, n6 = 0;
	uint64_t none = 0;

	if (b->fast4 == burst_all(b)) {
		for (unsigned int i = 0; i < b->n; i++)
			pt4[i] = trie_of_vrf4(b, i, &none);
		found_all(b, 0);
		lookup_each4(pt4, b->dst4, v4->group, b->n);
		paths_choose(b, v4, true);
		return none;
	}
	for (uint64_t rest = b->fast4; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		pt4[n4] = trie_of_vrf4(b, i, &none);
		dst4[n4] = b->dst4[i];
		v4->at[n4++] = (uint8_t)i;
	}
	for (uint64_t rest = b->fast6; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		v6->group[n6] =
			poptrie6_lookup(trie_of_vrf6(b, i, &none), burst_l3(b, i) + 24);
		v6->at[n6++] = (uint8_t)i;
	}
	v4->n = n4;
	v6->n = n6;
	lookup_each4(pt4, dst4, v4->group, n4);
	paths_choose(b, v4, false);
	paths_choose(b, v6, false);
	return none;
}

void
fwd_lookup_fast(struct burst *b)
{
	if (b->vrfs_differ) {
		burst_to_slow(b, fwd_lookup_each(b));
		return;
	}
	for (uint64_t rest = burst_all(b) & ~(b->fast4 | b->fast6); rest != 0;
	     rest &= rest - 1)
		b->verdict[__builtin_ctzll(rest)] = VERDICT_LATER;
	fwd_lookup(b);
}
