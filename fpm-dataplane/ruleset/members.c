/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fill sets and change them. [filter]
 *
 * The kernel stores an interval as two elements: its first address, and the first address
 * after it, which is marked as an end. It announces them one by one. A Poptrie has
 * prefixes, so the writer also keeps the sorted begins and ends for each Poptrie. A change
 * replaces the prefixes between the neighbors of the elements that were added or removed.
 */
#include "ruleset/members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "poptrie/poptrie.h"

#define ARRAY_MAX   32u   /* new sets with more addresses are Poptries */
#define ARRAY_GROWN 256u  /* with more elements the set is built again as a Poptrie */
#define SMALL_MAX   1000u /* a new Poptrie with more prefixes has the large form */
#define SMALL_GROWN 8000u /* with more prefixes the set is built again in the large form */
#define SEARCH_MAX  10000000u /* comparisons of one change */

/* --- arrays ------------------------------------------------------------------------- */

static void
content_free(void *owner, void *memory)
{
	struct ruleset_content *c = memory;

	if (c == NULL)
		return;
	free(c->key);
	free(c->key_end);
	free(c->element);
	free(c);
}

/* Return an empty content with room for `room` elements. Aborts if out of memory. */
static struct ruleset_content *
content_new(const struct ruleset_set *s, uint32_t room)
{
	struct ruleset_content *c = calloc(1, sizeof(*c));

	if (c == NULL)
		abort();
	c->room = room + 1;
	c->key = malloc((size_t)c->room * s->key_len);
	c->element = malloc(c->room * sizeof(*c->element));
	if (s->kind == SET_RANGES)
		c->key_end = malloc((size_t)c->room * s->key_len);
	if (c->key == NULL || c->element == NULL ||
	    (s->kind == SET_RANGES && c->key_end == NULL))
		abort();
	return c;
}

/* Append element `i` of another content. */
static void
element_copy(const struct ruleset_set *s, struct ruleset_content *c,
	     const struct ruleset_content *from, uint32_t i)
{
	size_t len = s->key_len;

	memcpy(c->key + c->n * len, from->key + i * len, len);
	if (c->key_end != NULL)
		memcpy(c->key_end + c->n * len, from->key_end + i * len, len);
	c->element[c->n++] = from->element[i];
}

/*
 * Copy the elements that have not expired at `now`, with room for `more` elements. The
 * kernel removes expired elements without an announcement.
 */
static struct ruleset_content *
content_copy(const struct ruleset_set *s, const struct ruleset_content *old, uint32_t more,
	     uint64_t now)
{
	struct ruleset_content *c = content_new(s, old->n + more);

	if (s->expires) {
		for (uint32_t i = 0; i < old->n; i++)
			if (old->element[i].until == 0 || old->element[i].until > now)
				element_copy(s, c, old, i);
		return c;
	}
	c->n = old->n;
	memcpy(c->key, old->key, (size_t)c->n * s->key_len);
	if (c->key_end != NULL)
		memcpy(c->key_end, old->key_end, (size_t)c->n * s->key_len);
	memcpy(c->element, old->element, c->n * sizeof(*c->element));
	return c;
}

/* Grow a content that only the writer uses, so that `more` elements have room. */
static void
content_room(const struct ruleset_set *s, struct ruleset_content *c, uint32_t more)
{
	if (c->n + more <= c->room)
		return;
	c->room = (c->n + more) + (c->n + more) / 4;
	c->key = realloc(c->key, (size_t)c->room * s->key_len);
	c->element = realloc(c->element, c->room * sizeof(*c->element));
	if (c->key == NULL || c->element == NULL)
		abort();
}

/*
 * Compare two elements: by key, then the end of an interval before the start of the next
 * interval.
 */
static int
bound_order(const uint8_t *key, bool end, const uint8_t *other, bool other_end,
	    unsigned int len)
{
	int d = memcmp(key, other, len);

	return d != 0 ? d : (int)other_end - (int)end;
}

/* Return the place of an element, or the place where it would be. */
static uint32_t
place_find(const struct ruleset_set *s, const struct ruleset_content *c,
	   const struct ruleset_member *m, bool *there)
{
	uint32_t from = 0, to = c->n;
	size_t len = s->key_len;

	if (s->kind == SET_RANGES) {
		for (from = 0; from < c->n; from++)
			if (memcmp(c->key + from * len, m->key, len) == 0 &&
			    memcmp(c->key_end + from * len, m->key_end, len) == 0)
				break;
		*there = from < c->n;
		return from;
	}
	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (bound_order(c->key + mid * len, c->element[mid].end, m->key, m->e.end,
				s->key_len) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	*there = from < c->n && bound_order(c->key + from * len, c->element[from].end,
					    m->key, m->e.end, s->key_len) == 0;
	return from;
}

static void
element_put(const struct ruleset_set *s, struct ruleset_content *c, uint32_t at,
	    const struct ruleset_member *m)
{
	memcpy(c->key + (size_t)at * s->key_len, m->key, s->key_len);
	if (c->key_end != NULL)
		memcpy(c->key_end + (size_t)at * s->key_len, m->key_end, s->key_len);
	c->element[at] = m->e;
}

/* Move the elements from `at` on by one place, up or down. */
static void
elements_move(const struct ruleset_set *s, struct ruleset_content *c, uint32_t at, bool up)
{
	size_t len = s->key_len, n = c->n - at - (up ? 0 : 1), from = at + (up ? 0 : 1),
	       to = at + (up ? 1 : 0);

	memmove(c->key + to * len, c->key + from * len, n * len);
	if (c->key_end != NULL)
		memmove(c->key_end + to * len, c->key_end + from * len, n * len);
	memmove(&c->element[to], &c->element[from], n * sizeof(*c->element));
	c->n = up ? c->n + 1 : c->n - 1;
}

/* Make one change in a content that no reader has and that has room for it. */
static void
content_change(const struct ruleset_set *s, struct ruleset_content *c,
	       const struct ruleset_change *change)
{
	bool there;
	uint32_t at = place_find(s, c, &change->m, &there);

	if (change->leaves) {
		if (there)
			elements_move(s, c, at, false);
		return;
	}
	if (!there)
		elements_move(s, c, at, true);
	element_put(s, c, at, &change->m);
}

/* --- prefixes ----------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 address; /* a key as a number */

static address
address_of(const uint8_t *key, unsigned int len)
{
	address a = 0;

	for (unsigned int i = 0; i < len; i++)
		a = a << 8 | key[i];
	return a;
}

static void
address_write(address a, unsigned int len, uint8_t *key)
{
	for (unsigned int i = len; i-- > 0; a >>= 8)
		key[i] = (uint8_t)a;
}

/* Return the number of zero bits at the end, at most `most`. */
static unsigned int
zero_bits(address a, unsigned int most)
{
	unsigned int n = 0;

	while (n < most && (a & 1) == 0) {
		a >>= 1;
		n++;
	}
	return n;
}

/* Return an address with `n` ones at its end. */
static address
address_ones(unsigned int n)
{
	return n == 128 ? ~(address)0 : ((address)1 << n) - 1;
}

/* Stage the prefixes of the addresses from `first` to `last`. Returns 0 or -ENOMEM. */
static int
span_add(struct ruleset_set *s, address first, address last)
{
	unsigned int width = s->key_len * 8u, bits;
	uint8_t key[16];

	for (;;) {
		bits = zero_bits(first, width);
		while ((first | address_ones(bits)) > last)
			bits--;
		address_write(first, s->key_len, key);
		if (poptrie_add(s->pt, key, width - bits, 1) < 0)
			return -ENOMEM;
		first |= address_ones(bits);
		if (first == last)
			return 0;
		first++;
	}
}

/* Remove the prefixes that begin within the addresses from `first` to `last`. */
static void
span_del(struct ruleset_set *s, address first, address last)
{
	unsigned int width = s->key_len * 8u, len = 0;
	uint8_t key[16] = {0};
	bool inclusive = true;

	if (first > 0) { /* begin after the host route of address first - 1 */
		address_write(first - 1, s->key_len, key);
		len = width;
		inclusive = false;
	}
	while (poptrie_next(s->pt, key, &len, inclusive) != POPTRIE_NONE &&
	       address_of(key, s->key_len) <= last) {
		(void)poptrie_del(s->pt, key, len);
		inclusive = false;
	}
}

/* Stage the intervals that begin at the elements from `from` to `to` - 1. */
static int
intervals_add(struct ruleset_set *s, const struct ruleset_content *c, uint32_t from,
	      uint32_t to)
{
	size_t len = s->key_len;

	for (uint32_t i = from; i < to; i++) {
		const uint8_t *key = c->key + i * len;
		address last = address_ones(s->key_len * 8u);

		if (c->element[i].end)
			continue;
		if (i + 1 < c->n) {
			if (memcmp(key, key + len, len) == 0)
				continue; /* a duplicate, which the kernel never sends */
			last = address_of(key + len, s->key_len) - 1;
		}
		if (span_add(s, address_of(key, s->key_len), last) < 0)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Return the index of the first element whose key is at least `key`; with `above`, of the
 * first element whose key is greater than `key`.
 */
static uint32_t
element_behind(const struct ruleset_set *s, const struct ruleset_content *c,
	       const uint8_t *key, bool above)
{
	struct ruleset_member m = {.key = key, .e.end = true};
	bool there;
	uint32_t at = place_find(s, c, &m, &there);

	while (above && at < c->n &&
	       memcmp(c->key + (size_t)at * s->key_len, key, s->key_len) == 0)
		at++;
	return at;
}

static int
key_order(const void *a, const void *b, void *ctx)
{
	const struct ruleset_change *const *x = a, *const *y = b;
	const struct ruleset_set *s = ctx;

	return memcmp((*x)->m.key, (*y)->m.key, s->key_len);
}

/*
 * Replace the prefixes between the neighbors of the changed keys list[0] to list[n - 1], as
 * long as these regions touch. Returns the number of keys that were handled, or -ENOMEM.
 */
static int
region_redo(struct ruleset_set *s, const struct ruleset_content *c,
	    const struct ruleset_change **list, uint32_t n)
{
	size_t len = s->key_len;
	uint32_t from = element_behind(s, c, list[0]->m.key, false), to, done = 1;
	address first = 0, last;

	/* Both neighbors existed before the change, and intervals end at them. */
	if (from > 0) {
		from = element_behind(s, c, c->key + (from - 1) * len, false);
		first = address_of(c->key + from * len, s->key_len);
	}
	to = element_behind(s, c, list[0]->m.key, true);
	while (done < n &&
	       (to == c->n || memcmp(list[done]->m.key, c->key + to * len, len) <= 0)) {
		to = element_behind(s, c, list[done]->m.key, true);
		done++;
	}
	last = to == c->n ? address_ones(s->key_len * 8u)
			  : address_of(c->key + to * len, s->key_len) - 1;
	span_del(s, first, last);
	return intervals_add(s, c, from, to) < 0 ? -ENOMEM : (int)done;
}

/* Stage changes of a set of intervals. */
static int
intervals_change(struct ruleset_set *s, const struct ruleset_change *list, uint32_t n)
{
	struct ruleset_content *c = atomic_load_explicit(&s->content, memory_order_relaxed);
	const struct ruleset_change **by_key = malloc(n * sizeof(const void *));
	int done = 0;

	if (by_key == NULL)
		return -ENOMEM;
	content_room(s, c, n);
	for (uint32_t i = 0; i < n; i++) {
		content_change(s, c, &list[i]);
		by_key[i] = &list[i];
	}
	qsort_r(by_key, n, sizeof(const void *), key_order, s);
	for (uint32_t i = 0; i < n && done >= 0; i += (uint32_t)done)
		done = region_redo(s, c, by_key + i, n - i);
	free(by_key);
	return done < 0 ? -ENOMEM : 0;
}

/* Stage changes of a set of hosts. */
static int
hosts_change(struct ruleset_set *s, const struct ruleset_change *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].leaves)
			(void)poptrie_del(s->pt, list[i].m.key, s->key_len * 8u);
		else if (poptrie_add(s->pt, list[i].m.key, s->key_len * 8u, 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void
retired_free(void *owner, void *memory)
{
	struct poptrie_retired *r = memory;

	poptrie_reclaim(r->user[0], r);
}

static void
trie_retire(void *ctx, struct poptrie *pt, struct poptrie_retired *r)
{
	const struct ruleset_reclaim *reclaim = ctx;

	r->user[0] = pt;
	reclaim->defer(reclaim->ctx, retired_free, r);
}

/* --- sets --------------------------------------------------------------------------- */

static int
member_order(const void *a, const void *b, void *ctx)
{
	const struct ruleset_member *x = a, *y = b;
	const struct ruleset_set *s = ctx;

	return bound_order(x->key, x->e.end, y->key, y->e.end, s->key_len);
}

/* Fill a Poptrie; `c` has the sorted elements. */
static int
prefixes_fill(struct ruleset_set *s, const struct ruleset_content *c,
	      const struct ruleset_reclaim *reclaim)
{
	struct poptrie_conf conf = {.family = s->key_len == 4 ? POPTRIE_IP4 : POPTRIE_IP6,
				    .small = s->small,
				    .retire = reclaim->defer == NULL ? NULL : trie_retire,
				    .ctx = (void *)reclaim};
	int rc = poptrie_create(&s->pt, &conf);

	if (rc < 0)
		return rc;
	if (s->interval)
		rc = intervals_add(s, c, 0, c->n);
	for (uint32_t i = 0; !s->interval && rc == 0 && i < c->n; i++)
		rc = poptrie_add(s->pt, c->key + (size_t)i * s->key_len, s->key_len * 8u,
				 1);
	return rc < 0 ? rc : poptrie_commit(s->pt);
}

/* Return true if a set of `n` elements becomes a Poptrie. */
static bool
suits_poptrie(const struct ruleset_set *s, uint32_t n)
{
	return s->addresses && !s->is_map && !s->expires && n > ARRAY_MAX;
}

int
ruleset_members_fill(struct ruleset_set *s, struct ruleset_member *list, uint32_t n,
		     const struct ruleset_reclaim *reclaim)
{
	struct ruleset_content *c = content_new(s, n);
	int rc;

	if (n > 0 && s->kind != SET_RANGES)
		qsort_r(list, n, sizeof(*list), member_order, s);
	for (uint32_t i = 0; i < n; i++)
		element_put(s, c, c->n++, &list[i]);
	atomic_store_explicit(&s->content, c, memory_order_relaxed);
	if (!suits_poptrie(s, n))
		return 0;
	s->kind = SET_PREFIXES;
	s->small = n <= SMALL_MAX;
	rc = prefixes_fill(s, c, reclaim);
	if (!s->interval) { /* the Poptrie has all information */
		content_free(NULL, c);
		atomic_store_explicit(&s->content, NULL, memory_order_relaxed);
	}
	return rc;
}

static int
prefixes_change(struct ruleset_set *s, const struct ruleset_change *list, uint32_t n)
{
	int rc = s->interval ? intervals_change(s, list, n) : hosts_change(s, list, n);

	return rc < 0 ? rc : poptrie_commit(s->pt);
}

/* Return true if the kind of the set is suitable for `n` more elements. */
static bool
kind_suits(const struct ruleset_set *s, uint32_t n)
{
	struct poptrie_stats stats;
	const struct ruleset_content *c =
		atomic_load_explicit(&s->content, memory_order_relaxed);

	if (s->kind != SET_PREFIXES)
		/*
		 * Elements that expire cannot be in a Poptrie. Each change of ranges needs
		 * a search.
		 */
		return (!s->addresses || s->expires || c->n + n <= ARRAY_GROWN) &&
		       (s->kind != SET_RANGES || (uint64_t)n * c->n <= SEARCH_MAX);
	poptrie_stats(s->pt, &stats);
	return !s->small || stats.routes + n <= SMALL_GROWN;
}

int
ruleset_members_change(struct ruleset_set *s, const struct ruleset_change *list, uint32_t n,
		       uint64_t now, const struct ruleset_reclaim *reclaim)
{
	struct ruleset_content *old, *new;

	if (!kind_suits(s, n))
		return -ERANGE;
	if (s->kind == SET_PREFIXES)
		return prefixes_change(s, list, n);
	old = atomic_load_explicit(&s->content, memory_order_relaxed);
	new = content_copy(s, old, n, now);
	for (uint32_t i = 0; i < n; i++)
		content_change(s, new, &list[i]);
	/* Release: a reader of the pointer sees all elements. */
	atomic_store_explicit(&s->content, new, memory_order_release);
	if (reclaim->defer != NULL)
		reclaim->defer(reclaim->ctx, content_free, old);
	else
		content_free(NULL, old);
	return 0;
}

void
ruleset_members_free(struct ruleset_set *s)
{
	content_free(NULL, atomic_load_explicit(&s->content, memory_order_relaxed));
	if (s->pt != NULL)
		poptrie_destroy(s->pt);
}
