/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Divide the buckets of a group among its members. Pure functions. [any thread]
 *
 * The shares follow the weights by largest remainder. The assignment is resilient: when
 * members are added, removed or change weight, a bucket changes its member only if that
 * member was removed or has more buckets than its new share. The bucket number is the top
 * bits of the flow hash, so that a block of twice the size keeps every flow on its member.
 *
 * A bucket that is free goes to the member that lacks buckets and has the best rank for it.
 * The rank is a hash of member and bucket (weighted rendezvous hashing: Thaler and
 * Ravishankar 1998) and does not depend on the other members. So two groups that have all
 * members but one in common send about 95 % of the flows of these members the same way,
 * also if neither was made from the other. A member that returns gets the buckets again
 * whose home it is.
 */
#include "rib/group.h"

#include <stdbool.h>
#include <stdlib.h>

#include "rib/index.h"

#define LOG2_MIN    1u
#define LOG2_MAX    12u
#define BUCKETS_MAX (1u << LOG2_MAX)
/*
 * Values in place of a member number. OWNER_GONE: the old member of the bucket was removed.
 * OWNER_NONE: the bucket has no member, or its member gave it up.
 */
#define OWNER_GONE UINT16_MAX
#define OWNER_NONE (UINT16_MAX - 1)
/* Compare at most this many members for one bucket, to bound the time for large groups. */
#define RANKED_MAX 64u
/* A share is fair if it differs from the weight by less than 1/50. */
#define FAIR 50u

struct remainder {
	uint64_t rest;
	uint32_t hash, member;
};

static int
remainder_order(const void *a, const void *b)
{
	const struct remainder *x = a, *y = b;

	if (x->rest != y->rest)
		return x->rest < y->rest ? 1 : -1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->member < y->member ? -1 : 1;
}

static uint64_t
members_weight(const struct bucket_member *m, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += m[i].weight;
	return sum;
}

/* Set m[].target so that the targets add up to 2^log2_n. */
static void
members_set_targets(struct bucket_member *m, uint32_t n, unsigned int log2_n)
{
	uint64_t total = members_weight(m, n);
	uint32_t left = 1u << log2_n;
	struct remainder *rest = mem_or_abort(malloc(n * sizeof(*rest)));

	for (uint32_t i = 0; i < n; i++) {
		uint64_t share = m[i].weight << log2_n;

		m[i].target = (uint32_t)(share / total);
		rest[i] = (struct remainder){share % total, m[i].hash, i};
		left -= m[i].target;
	}
	qsort(rest, n, sizeof(*rest), remainder_order);
	for (uint32_t i = 0; i < left; i++)
		m[rest[i].member].target++;
	free(rest);
}

/* Return true if each member's share is within 2 % of its weight. */
static bool
members_are_fair(const struct bucket_member *m, uint32_t n, unsigned int log2_n)
{
	uint64_t total = members_weight(m, n);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t want = m[i].weight << log2_n, got = m[i].target * total;
		uint64_t off = want > got ? want - got : got - want;

		if (off * FAIR >= want)
			return false;
	}
	return true;
}

unsigned int
group_log2(struct bucket_member *m, uint32_t n, unsigned int old_log2)
{
	uint32_t least = n <= 8 ? 16 * n : 4 * n < 128 ? 128 : 4 * n;
	unsigned int k = LOG2_MIN;

	while (k < LOG2_MAX && 1u << k < least)
		k++;
	if (k < old_log2)
		k = old_log2;
	members_set_targets(m, n, k);
	while (k < LOG2_MAX && !members_are_fair(m, n, k))
		members_set_targets(m, n, ++k);
	return k;
}

/* The members that have less than their target, as arrays that the compiler vectorizes. */
struct takers {
	uint32_t n;
	uint32_t *member, *hash;
	float *inverse; /* 1 / weight of each member */
};

/* The working state of group_fill(). */
struct fill {
	struct bucket_member *m;
	uint32_t n;
	unsigned int log2_n;
	uint64_t total; /* weight of all members */
	struct takers takers;
	uint16_t *home;    /* of the new block */
	uint32_t *by_path; /* hash table of member numbers + 1 */
	unsigned int log2_by_path;
	uint16_t owner[BUCKETS_MAX];
};

/*
 * Return the rank of a member for a bucket; the lowest is the best. It is -log2(u) / weight
 * for a random u between 0 and 1, so the probability of the best rank is proportional to
 * the weight. The bits of a float, read as an integer, are nearly its logarithm.
 */
static inline uint32_t
rank_of(uint32_t bucket_hash, uint32_t member_hash, float inverse)
{
	/* A mixer of 32 bits (lowbias32, C. Wellons, public domain). */
	uint32_t x = bucket_hash ^ member_hash;
	union {
		float value;
		uint32_t bits;
	} u;

	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	x ^= x >> 16;
	u.value = (float)(int32_t)(x >> 1 | 1);
	x = ((127u + 31) << 23) - u.bits + 1;
	u.value = (float)(int32_t)x * inverse;
	return u.bits;
}

/*
 * Return the hash for the ranks of a bucket. Buckets in the same 32nd or 128th part of the
 * flows have the same hash, so that groups with different numbers of buckets have equal
 * ranks.
 */
static uint32_t
fill_bucket_hash(const struct fill *f, uint32_t bucket)
{
	unsigned int log2_parts = f->n <= 4 ? 5 : 7;

	return (bucket >> (f->log2_n - log2_parts)) * 0x9e3779b1u;
}

static float
member_inverse(const struct bucket_member *m)
{
	return 1 / (float)m->weight;
}

static uint16_t
member_home(const struct bucket_member *m)
{
	return (uint16_t)m->hash;
}

/* Return the taker with the best rank for a bucket, and its rank. */
static uint32_t
fill_best_taker(const struct fill *f, uint32_t bucket, uint32_t *rank)
{
	const struct takers *t = &f->takers;
	uint32_t hash = fill_bucket_hash(f, bucket), best = UINT32_MAX;
	uint32_t first = t->n <= RANKED_MAX ? 0 : bucket * RANKED_MAX % t->n;
	uint32_t n = t->n - first < RANKED_MAX ? t->n - first : RANKED_MAX;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t r = rank_of(hash, t->hash[first + i], t->inverse[first + i]);

		/* Put the index of the member into the low bits of the rank. */
		r = (r & ~(RANKED_MAX - 1)) | i;
		best = r < best ? r : best;
	}
	*rank = best & ~(RANKED_MAX - 1);
	return first + (best & (RANKED_MAX - 1));
}

/* Return the taker that is the home of the bucket, or takers.n. */
static uint32_t
fill_home_taker(const struct fill *f, uint32_t bucket)
{
	const struct takers *t = &f->takers;
	uint32_t found = t->n;

	for (uint32_t i = 0; i < t->n; i++)
		found = (uint16_t)t->hash[i] == f->home[bucket] ? i : found;
	return found;
}

static void
fill_find_takers(struct fill *f)
{
	struct takers *t = &f->takers;

	t->n = 0;
	for (uint32_t i = 0; i < f->n; i++) {
		if (f->m[i].have >= f->m[i].target)
			continue;
		t->member[t->n] = i;
		t->hash[t->n] = f->m[i].hash;
		t->inverse[t->n++] = member_inverse(&f->m[i]);
	}
}

static void
taker_remove(struct takers *t, uint32_t at)
{
	t->n--;
	t->member[at] = t->member[t->n];
	t->hash[at] = t->hash[t->n];
	t->inverse[at] = t->inverse[t->n];
}

/*
 * Return a path without its MTU class: the class is that of the routes, not of the member.
 */
static fib_path
path_only(fib_path path)
{
	return PATH(path_kind(path), path_index(path));
}

/* Return the entry of a path in f->by_path, or the empty entry where it belongs. */
static uint32_t *
fill_find_path(const struct fill *f, fib_path path)
{
	uint32_t at = path * 0x9e3779b1u >> (32 - f->log2_by_path);

	while (f->by_path[at] != 0 && path_only(f->m[f->by_path[at] - 1].path) != path)
		at = (at + 1) & ((1u << f->log2_by_path) - 1);
	return &f->by_path[at];
}

static void
fill_index_paths(struct fill *f)
{
	f->log2_by_path = 1;
	while (1u << f->log2_by_path < 2 * f->n)
		f->log2_by_path++;
	f->by_path = mem_or_abort(calloc(1u << f->log2_by_path, sizeof(*f->by_path)));
	for (uint32_t i = 0; i < f->n; i++)
		*fill_find_path(f, path_only(f->m[i].path)) = i + 1;
}

/* Return the homes, which follow the paths of a block. */
static uint16_t *
block_homes(const fib_path *block, unsigned int log2_n)
{
	return (uint16_t *)(uintptr_t)(block + (1u << log2_n));
}

/* Give the buckets of `old` to the members that had them. */
static void
fill_keep(struct fill *f, const fib_path *old, unsigned int old_log2)
{
	const uint16_t *home = block_homes(old, old_log2);

	fill_index_paths(f);
	for (uint32_t b = 0; b < 1u << f->log2_n; b++) {
		uint32_t old_b = f->log2_n >= old_log2 ? b >> (f->log2_n - old_log2)
						       : b << (old_log2 - f->log2_n);
		uint32_t member = *fill_find_path(f, path_only(old[old_b]));

		f->home[b] = home[old_b];
		f->owner[b] = member == 0 ? OWNER_GONE : (uint16_t)(member - 1);
		if (member != 0)
			f->m[member - 1].have++;
	}
	free(f->by_path);
}

/* Return the lowest number of buckets that is a fair share of the member. */
static uint32_t
fill_lowest(const struct fill *f, const struct bucket_member *m)
{
	uint64_t share = m->weight << f->log2_n;
	uint64_t rounded = share / f->total;
	uint64_t fair = share * (FAIR - 1) / FAIR / f->total + 1;

	return (uint32_t)(fair < rounded ? fair : rounded);
}

/* Return the highest number of buckets that is a fair share of the member. */
static uint32_t
fill_highest(const struct fill *f, const struct bucket_member *m)
{
	uint64_t share = m->weight << f->log2_n;
	uint64_t rounded = (share + f->total - 1) / f->total;
	uint64_t fair = (share * (FAIR + 1) - 1) / FAIR / f->total;

	return (uint32_t)(fair > rounded ? fair : rounded);
}

/* Return true if the member has buckets, and a lower target still is a fair share. */
static bool
fill_can_wait(const struct fill *f, const struct bucket_member *m)
{
	return m->have > 0 && m->target > m->have && m->target > fill_lowest(f, m);
}

/*
 * Change the targets within fair shares so that no bucket goes from one old member to
 * another because of rounding. Members without buckets take their share from all.
 */
static void
fill_spare_flows(const struct fill *f)
{
	struct bucket_member *m = f->m;
	uint64_t surplus = 0, come = 0;
	uint32_t waits = 0, searched;

	for (uint32_t i = 0; i < f->n; i++) {
		surplus += m[i].have > m[i].target ? m[i].have - m[i].target : 0;
		come += m[i].have == 0 ? m[i].target : 0;
	}
	for (uint32_t i = 0, idle = 0; surplus > come && idle < f->n;
	     i = (i + 1) % f->n, idle++) {
		if (m[i].have <= m[i].target || m[i].target >= fill_highest(f, &m[i]))
			continue;
		for (searched = 0; searched < f->n && !fill_can_wait(f, &m[waits]);
		     searched++)
			waits = (waits + 1) % f->n;
		if (searched == f->n)
			return;
		m[i].target++;
		m[waits].target--;
		waits = (waits + 1) % f->n;
		surplus--;
		idle = 0;
	}
}

/* The order in which a member that has too many buckets gives them up. */
enum offer {
	OFFER_HOME,   /* the home of the bucket is a member that lacks buckets */
	OFFER_BETTER, /* a member that lacks buckets has a better rank for it */
	OFFER_ANY,
};

static bool
fill_offers(const struct fill *f, uint32_t bucket, enum offer offer)
{
	const struct bucket_member *m = &f->m[f->owner[bucket]];
	uint32_t rank;

	if (offer == OFFER_HOME)
		return fill_home_taker(f, bucket) < f->takers.n;
	if (offer == OFFER_ANY)
		return true;
	(void)fill_best_taker(f, bucket, &rank);
	return f->home[bucket] != member_home(m) &&
	       rank < rank_of(fill_bucket_hash(f, bucket), m->hash, member_inverse(m));
}

/* Take buckets from the members that have more than their target. */
static void
fill_release(struct fill *f)
{
	uint64_t surplus = 0;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->m[i].have > f->m[i].target)
			surplus += f->m[i].have - f->m[i].target;
	for (enum offer offer = OFFER_HOME; surplus > 0; offer++) {
		for (uint32_t b = 0; b < 1u << f->log2_n && surplus > 0; b++) {
			uint16_t owner = f->owner[b];

			if (owner >= OWNER_NONE || f->m[owner].have <= f->m[owner].target ||
			    !fill_offers(f, b, offer))
				continue;
			f->m[owner].have--;
			f->owner[b] = OWNER_NONE;
			surplus--;
		}
	}
}

/* Give a bucket that is free to a taker. */
static void
fill_give(struct fill *f, uint32_t bucket, uint32_t taker)
{
	uint32_t member = f->takers.member[taker];
	struct bucket_member *m = &f->m[member];

	if (f->owner[bucket] == OWNER_NONE)
		f->home[bucket] = member_home(m);
	f->owner[bucket] = (uint16_t)member;
	if (++m->have == m->target)
		taker_remove(&f->takers, taker);
}

/* Give the free buckets to the members that have less than their target. */
static void
fill_free(struct fill *f, bool has_homes)
{
	uint32_t n_buckets = 1u << f->log2_n, taker, rank;

	for (uint32_t b = 0; has_homes && b < n_buckets; b++) {
		if (f->owner[b] < OWNER_NONE)
			continue;
		taker = fill_home_taker(f, b);
		if (taker < f->takers.n)
			fill_give(f, b, taker);
	}
	for (uint32_t b = 0; b < n_buckets; b++)
		if (f->owner[b] >= OWNER_NONE)
			fill_give(f, b, fill_best_taker(f, b, &rank));
}

void
group_fill(fib_path *out, unsigned int log2_n, struct bucket_member *m, uint32_t n,
	   const fib_path *old, unsigned int old_log2)
{
	struct fill f = {
		.m = m, .n = n, .log2_n = log2_n, .home = block_homes(out, log2_n)};

	f.total = members_weight(m, n);
	f.takers.member = mem_or_abort(malloc(n * sizeof(*f.takers.member)));
	f.takers.hash = mem_or_abort(malloc(n * sizeof(*f.takers.hash)));
	f.takers.inverse = mem_or_abort(malloc(n * sizeof(*f.takers.inverse)));
	for (uint32_t i = 0; i < n; i++)
		m[i].have = 0;
	if (old != NULL) {
		fill_keep(&f, old, old_log2);
		fill_spare_flows(&f);
	} else {
		for (uint32_t b = 0; b < 1u << log2_n; b++)
			f.owner[b] = OWNER_NONE;
	}
	fill_find_takers(&f);
	if (f.takers.n > 0) {
		fill_release(&f);
		fill_free(&f, old != NULL);
	}
	for (uint32_t b = 0; b < 1u << log2_n; b++)
		out[b] = m[f.owner[b]].path;
	free(f.takers.member);
	free(f.takers.hash);
	free(f.takers.inverse);
}

/* The buckets that a path loses and gains. */
struct change {
	fib_path path; /* 0: the entry is empty */
	uint16_t loses, gains;
};

/* Return the entry of a path in a hash table of 2^log2_n entries. */
static struct change *
change_find(struct change *table, unsigned int log2_n, fib_path path)
{
	uint32_t at = path * 0x9e3779b1u >> (32 - log2_n);

	while (table[at].path != 0 && table[at].path != path)
		at = (at + 1) & ((1u << log2_n) - 1);
	table[at].path = path;
	return &table[at];
}

uint32_t
group_excess(uint64_t from, uint64_t to)
{
	const fib_path *a = group_word_buckets(from), *b = group_word_buckets(to);
	unsigned int log2_a = group_word_log2(from), log2_b = group_word_log2(to);
	unsigned int log2_n = log2_a > log2_b ? log2_a : log2_b;
	struct change *table;
	uint32_t excess = 0;

	if (!group_word_is_block(from) || !group_word_is_block(to))
		return 0;
	/* Twice as many entries as paths in both blocks. */
	table = mem_or_abort(calloc(4u << log2_n, sizeof(*table)));
	for (uint32_t i = 0; i < 1u << log2_n; i++) {
		fib_path was = path_only(a[i >> (log2_n - log2_a)]);
		fib_path is = path_only(b[i >> (log2_n - log2_b)]);

		if (was == is)
			continue;
		change_find(table, log2_n + 2, was)->loses++;
		change_find(table, log2_n + 2, is)->gains++;
	}
	for (uint32_t i = 0; i < 4u << log2_n; i++)
		excess += table[i].loses < table[i].gains ? table[i].loses : table[i].gains;
	free(table);
	return excess << (LOG2_MAX - log2_n);
}
