/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's IPv6 structures: rte_fib6 (24 bits, then 8 bits a level; 2, 4 and 8 byte entries)
 * and rte_lpm6.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <rte_errno.h>
#include <rte_fib6.h>
#include <rte_lpm6.h>
#include "bench.h"
#include "impl_dpdk.h"
#include "port/dpdk_compat.h"

#define ROOM_ROUTES 100000u
#define ROOM_TBL8   16384u
#define TBL8_2B     32767u
#define LPM6_TBL8   (1u << 21)

static size_t
groups6(const struct table *t)
{
	size_t n = 0;

	for (unsigned int bits = 24; bits < 128; bits += 8)
		n += table_groups(t, bits);
	return n;
}

/*
 * Return the number of 8-bit levels below the first 24 bits that a prefix of this length
 * uses.
 */
static size_t
levels6(unsigned int len)
{
	return len > 24 ? (len - 24 + 7) / 8 : 0;
}

static bool
covers(const struct prefix *p, const struct prefix *q)
{
	struct prefix head = *q;

	head.len = p->len;
	prefix_mask(&head);
	return p->len <= q->len && memcmp(head.addr, p->addr, sizeof(p->addr)) == 0;
}

/*
 * Compute the number of groups to reserve. rte_fib6 refuses routes before its groups are
 * used up, because it reserves for each prefix all levels below its cover, shared or not.
 */
static size_t
reserved6(const struct table *t)
{
	const struct prefix *up[130];
	unsigned int depth = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct prefix *p = &t->p[i];

		while (depth && !covers(up[depth - 1], p))
			depth--;
		n += levels6(p->len) - (depth ? levels6(up[depth - 1]->len) : 0);
		up[depth++] = p;
	}
	return n;
}

static int
fib6_open(struct structure *s, const struct table *t, const char **why)
{
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE,
		.default_nh = 0,
		.max_routes = (int)(t->n + ROOM_ROUTES),
		.trie = {.nh_sz = (enum rte_fib_trie_nh_sz)s->arg},
	};

	s->n_tbl8 = groups6(t);
	conf.trie.num_tbl8 = (uint32_t)reserved6(t) + ROOM_TBL8;
	if (s->arg == RTE_FIB6_TRIE_2B && conf.trie.num_tbl8 > TBL8_2B) {
		*why = "needs more than 32767 groups of 256: not with 2-byte entries";
		return -E2BIG;
	}
	dpdk_heap_mark(s);
	s->h = rte_fib6_create(s->name, SOCKET_ID_ANY, &conf);
	return s->h ? 0 : -rte_errno;
}

static int
fib6_add(struct structure *s, const struct prefix *p)
{
	return rte_fib6_add(s->h, DPDK_IP6(p->addr), p->len, p->value);
}

static int
fib6_del(struct structure *s, const struct prefix *p)
{
	return rte_fib6_delete(s->h, DPDK_IP6(p->addr), p->len);
}

static int
fib6_load(struct structure *s, const struct table *t)
{
	int rc = 0;

	for (size_t i = 0; i < t->n && rc == 0; i++)
		rc = fib6_add(s, &t->p[i]);
	return rc;
}

static void
fib6_close(struct structure *s)
{
	rte_fib6_free(s->h);
}

static void
fib6_bytes(struct structure *s, struct bytes *b)
{
	b->total = dpdk_heap_grown(s);
	b->lookup = ((1u << 24) + s->n_tbl8 * 256) << s->arg;
	b->truth = b->total - (b->total < b->lookup ? b->total : b->lookup);
	pages_of((const uint8_t *)rte_fib6_get_dp(s->h) + (1 << 20), b->pages,
		 sizeof(b->pages));
}

static const struct ops fib6_ops = {
	.open = fib6_open,
	.load = fib6_load,
	.close = fib6_close,
	.add = fib6_add,
	.del = fib6_del,
	.bytes = fib6_bytes,
};

static int
fib6_select(const struct impl *im)
{
	return rte_fib6_select_lookup(im->s->h, (enum rte_fib6_lookup_type)im->variant);
}

static void
fib6_run(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	struct rte_fib6 *fib = im->s->h;
	uint64_t out[BATCH_MAX];

	for (size_t i = 0; i + batch <= n; i += batch) {
		rte_fib6_lookup_bulk(fib, DPDK_IP6(k->v6 + i), out, (int)batch);
		keep(out);
	}
}

static void
fib6_get(const struct impl *im, const struct keys *k, size_t from, unsigned int n,
	 uint32_t *value)
{
	uint64_t out[BATCH_MAX];

	rte_fib6_lookup_bulk(im->s->h, DPDK_IP6(k->v6 + from), out, (int)n);
	for (unsigned int i = 0; i < n; i++)
		value[i] = (uint32_t)out[i];
}

static int
lpm6_open(struct structure *s, const struct table *t, const char **why)
{
	struct rte_lpm6_config conf = {.max_rules = (uint32_t)t->n + 1};

	s->n_tbl8 = groups6(t);
	conf.number_tbl8s = (uint32_t)s->n_tbl8 + 1;
	if (conf.number_tbl8s > LPM6_TBL8) {
		*why = "more than 2097152 groups of 256";
		return -E2BIG;
	}
	dpdk_heap_mark(s);
	s->h = rte_lpm6_create(s->name, SOCKET_ID_ANY, &conf);
	return s->h ? 0 : -rte_errno;
}

static int
lpm6_load(struct structure *s, const struct table *t)
{
	int rc = 0;

	for (size_t i = 0; i < t->n && rc == 0; i++)
		if (t->p[i].len > 0)
			rc = rte_lpm6_add(s->h, DPDK_IP6(t->p[i].addr), t->p[i].len,
					  t->p[i].value);
	return rc;
}

static void
lpm6_close(struct structure *s)
{
	rte_lpm6_free(s->h);
}

static void
lpm6_bytes(struct structure *s, struct bytes *b)
{
	b->total = dpdk_heap_grown(s);
	b->lookup = ((1u << 24) + s->n_tbl8 * 256) * 4;
	b->truth = b->total - (b->total < b->lookup ? b->total : b->lookup);
	pages_of(s->h, b->pages, sizeof(b->pages));
}

static const struct ops lpm6_ops = {
	.open = lpm6_open,
	.load = lpm6_load,
	.close = lpm6_close,
	.bytes = lpm6_bytes,
};

static void
lpm6_run(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	const struct rte_lpm6 *lpm = im->s->h;
	int32_t out[BATCH_MAX];

	for (size_t i = 0; i + batch <= n; i += batch) {
		rte_lpm6_lookup_bulk_func(lpm, DPDK_IP6(k->v6 + i), out, batch);
		keep(out);
	}
}

static void
lpm6_get(const struct impl *im, const struct keys *k, size_t from, unsigned int n,
	 uint32_t *value)
{
	int32_t out[BATCH_MAX];

	rte_lpm6_lookup_bulk_func(im->s->h, DPDK_IP6(k->v6 + from), out, n);
	for (unsigned int i = 0; i < n; i++)
		value[i] = out[i] < 0 ? 0 : (uint32_t)out[i];
}

/* Updates are measured with 4-byte entries only, because the others write as often. */
static struct structure fib[] = {
	{.name = "rte_fib6-2B",
	 .family = 6,
	 .ops = &fib6_ops,
	 .arg = RTE_FIB6_TRIE_2B,
	 .entry_bytes = 2,
	 .update = false},
	{.name = "rte_fib6-4B",
	 .family = 6,
	 .ops = &fib6_ops,
	 .arg = RTE_FIB6_TRIE_4B,
	 .entry_bytes = 4,
	 .update = true},
	{.name = "rte_fib6-8B",
	 .family = 6,
	 .ops = &fib6_ops,
	 .arg = RTE_FIB6_TRIE_8B,
	 .entry_bytes = 8,
	 .update = false},
};
static struct structure lpm = {
	.name = "rte_lpm6", .family = 6, .ops = &lpm6_ops, .entry_bytes = 4};

#define FIB(at, size, kind, how)                                              \
	{                                                                     \
		.name = "rte_fib6-" size "-" kind, .s = &fib[at],             \
		.variant = RTE_FIB6_LOOKUP_TRIE_##how, .select = fib6_select, \
		.run = fib6_run, .get = fib6_get                              \
	}

struct impl fib6_impls[] = {
	FIB(0, "2B", "scalar", SCALAR),
	FIB(0, "2B", "avx512", VECTOR_AVX512),
	FIB(1, "4B", "scalar", SCALAR),
	FIB(1, "4B", "avx512", VECTOR_AVX512),
	FIB(2, "8B", "scalar", SCALAR),
	FIB(2, "8B", "avx512", VECTOR_AVX512),
	{.name = "rte_lpm6-bulk", .s = &lpm, .run = lpm6_run, .get = lpm6_get},
	{0},
};
