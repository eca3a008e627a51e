/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's IPv4 structures: rte_fib (DIR24-8, 2, 4 and 8 byte entries) and rte_lpm. In
 * rte_fib next hop 0 means "no route". rte_lpm has a bit for it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_malloc.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvla"
#include <rte_lpm.h>
#pragma GCC diagnostic pop
#include "bench.h"
#include "impl_dpdk.h"

#define ROOM_ROUTES 100000u /* for announcements of prefixes that the table lacks */
#define ROOM_TBL8   2048u
#define TBL8_2B     32767u /* two-byte entries have 15 bits for a group */

static int
fib_open(struct structure *s, const struct table *t, const char **why)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = 0,
		.max_routes = (int)(t->n + ROOM_ROUTES),
		.dir24_8 = {.nh_sz = (enum rte_fib_dir24_8_nh_sz)s->arg},
	};

	s->n_tbl8 = table_groups(t, 24);
	conf.dir24_8.num_tbl8 = (uint32_t)s->n_tbl8 + ROOM_TBL8;
	if (s->arg == RTE_FIB_DIR24_8_2B && conf.dir24_8.num_tbl8 > TBL8_2B)
		conf.dir24_8.num_tbl8 = TBL8_2B;
	if (conf.dir24_8.num_tbl8 < s->n_tbl8) {
		*why = "more than 32767 groups of 256: not for 2-byte entries";
		return -E2BIG;
	}
	dpdk_heap_mark(s);
	s->h = rte_fib_create(s->name, SOCKET_ID_ANY, &conf);
	return s->h ? 0 : -rte_errno;
}

static int
fib_add(struct structure *s, const struct prefix *p)
{
	return rte_fib_add(s->h, addr4(p->addr), p->len, p->value);
}

static int
fib_del(struct structure *s, const struct prefix *p)
{
	return rte_fib_delete(s->h, addr4(p->addr), p->len);
}

static int
fib_load(struct structure *s, const struct table *t)
{
	int rc = 0;

	for (size_t i = 0; i < t->n && rc == 0; i++)
		rc = fib_add(s, &t->p[i]);
	return rc;
}

static void
fib_close(struct structure *s)
{
	rte_fib_free(s->h);
}

static void
fib_bytes(struct structure *s, struct bytes *b)
{
	b->total = dpdk_heap_grown(s);
	b->lookup = ((1u << 24) + s->n_tbl8 * 256) << s->arg;
	b->truth = b->total - (b->total < b->lookup ? b->total : b->lookup);
	pages_of((const uint8_t *)rte_fib_get_dp(s->h) + (1 << 20), b->pages,
		 sizeof(b->pages));
}

static const struct ops fib_ops = {
	.open = fib_open,
	.load = fib_load,
	.close = fib_close,
	.add = fib_add,
	.del = fib_del,
	.bytes = fib_bytes,
};

static int
fib_select(const struct impl *im)
{
	return rte_fib_select_lookup(im->s->h, (enum rte_fib_lookup_type)im->variant);
}

static void
fib_run(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	struct rte_fib *fib = im->s->h;
	uint64_t out[BATCH_MAX];

	for (size_t i = 0; i + batch <= n; i += batch) {
		rte_fib_lookup_bulk(fib, k->v4 + i, out, (int)batch);
		keep(out);
	}
}

static void
fib_get(const struct impl *im, const struct keys *k, size_t from, unsigned int n,
	uint32_t *value)
{
	uint64_t out[BATCH_MAX];

	rte_fib_lookup_bulk(im->s->h, k->v4 + from, out, (int)n);
	for (unsigned int i = 0; i < n; i++)
		value[i] = (uint32_t)out[i];
}

static int
lpm_open(struct structure *s, const struct table *t, const char **why)
{
	struct rte_lpm_config conf = {.max_rules = (uint32_t)t->n + 1};

	s->n_tbl8 = table_groups(t, 24);
	conf.number_tbl8s = (uint32_t)s->n_tbl8 + 1;
	dpdk_heap_mark(s);
	s->h = rte_lpm_create(s->name, SOCKET_ID_ANY, &conf);
	return s->h ? 0 : -rte_errno;
}

/*
 * rte_lpm_add() searches all rules of the same length one after the other. For a full table
 * this takes minutes in any order. Lookups do not read the rules. So prefixes up to /24 are
 * written into the public array that lookups read, shortest first. Only the longer ones are
 * added by rte_lpm_add(), which finds their covers in that array.
 */
static int
lpm_load_direct(struct rte_lpm *lpm, const struct table *t)
{
	int rc = 0;

	for (unsigned int len = 0; len <= 32; len++) {
		for (size_t i = 0; i < t->n && rc == 0; i++) {
			const struct prefix *p = &t->p[i];
			uint32_t a = addr4(p->addr);
			struct rte_lpm_tbl_entry e = {.valid = 1};

			if (p->len != len)
				continue;
			if (len > 24) {
				rc = rte_lpm_add(lpm, a, (uint8_t)len, p->value);
				continue;
			}
			e.next_hop = p->value & 0xffffff;
			e.depth = len & 63;
			for (uint32_t j = 0; j < 1u << (24 - len); j++)
				lpm->tbl24[(a >> 8) + j] = e;
		}
	}
	return rc;
}

static int
lpm_load(struct structure *s, const struct table *t)
{
	int rc = 0;

	if (s->arg == 0)
		return lpm_load_direct(s->h, t);
	for (size_t i = 0; i < t->n && rc == 0; i++)
		rc = rte_lpm_add(s->h, addr4(t->p[i].addr), t->p[i].len, t->p[i].value);
	return rc;
}

static void
lpm_close(struct structure *s)
{
	rte_lpm_free(s->h);
}

static void
lpm_bytes(struct structure *s, struct bytes *b)
{
	b->total = dpdk_heap_grown(s);
	b->lookup = ((1u << 24) + s->n_tbl8 * 256) * 4;
	b->truth = b->total - (b->total < b->lookup ? b->total : b->lookup);
	pages_of(s->h, b->pages, sizeof(b->pages));
}

static const struct ops lpm_ops = {
	.open = lpm_open,
	.load = lpm_load,
	.close = lpm_close,
	.bytes = lpm_bytes,
};

static inline __attribute__((always_inline)) void
lpm_loop(const struct rte_lpm *lpm, const struct keys *k, size_t n, unsigned int batch)
{
	uint32_t out[BATCH_MAX];

	for (size_t i = 0; i + batch <= n; i += batch) {
		rte_lpm_lookup_bulk(lpm, k->v4 + i, out, batch);
		keep(out);
	}
}

/* DPDK's manual asks for a count that the compiler knows. */
static void
lpm_run(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	switch (batch) {
	case 64:
		lpm_loop(im->s->h, k, n, 64);
		break;
	case 32:
		lpm_loop(im->s->h, k, n, 32);
		break;
	case 1:
		lpm_loop(im->s->h, k, n, 1);
		break;
	default:
		lpm_loop(im->s->h, k, n, batch);
	}
}

static void
lpm_get(const struct impl *im, const struct keys *k, size_t from, unsigned int n,
	uint32_t *value)
{
	rte_lpm_lookup_bulk((struct rte_lpm *)im->s->h, k->v4 + from, value, n);
	for (unsigned int i = 0; i < n; i++)
		value[i] = value[i] & RTE_LPM_LOOKUP_SUCCESS ? value[i] & 0xffffff : 0;
}

/* Updates are measured with 4-byte entries only, because the others write as often. */
static struct structure fib[] = {
	{.name = "rte_fib-2B",
	 .family = 4,
	 .ops = &fib_ops,
	 .arg = RTE_FIB_DIR24_8_2B,
	 .entry_bytes = 2,
	 .update = false},
	{.name = "rte_fib-4B",
	 .family = 4,
	 .ops = &fib_ops,
	 .arg = RTE_FIB_DIR24_8_4B,
	 .entry_bytes = 4,
	 .update = true},
	{.name = "rte_fib-8B",
	 .family = 4,
	 .ops = &fib_ops,
	 .arg = RTE_FIB_DIR24_8_8B,
	 .entry_bytes = 8,
	 .update = false},
};
static struct structure lpm = {
	.name = "rte_lpm",
	.family = 4,
	.ops = &lpm_ops,
	.entry_bytes = 4,
	.note = "written into its array",
};

#define FIB(at, size, kind, how)                                               \
	{                                                                      \
		.name = "rte_fib-" size "-" kind, .s = &fib[at],               \
		.variant = RTE_FIB_LOOKUP_DIR24_8_##how, .select = fib_select, \
		.run = fib_run, .get = fib_get                                 \
	}

struct impl fib4_impls[] = {
	FIB(0, "2B", "scalar", SCALAR_MACRO),
	FIB(0, "2B", "avx512", VECTOR_AVX512),
	FIB(1, "4B", "scalar", SCALAR_MACRO),
	FIB(1, "4B", "avx512", VECTOR_AVX512),
	FIB(2, "8B", "scalar", SCALAR_MACRO),
	FIB(2, "8B", "avx512", VECTOR_AVX512),
	{.name = "rte_lpm-bulk", .s = &lpm, .run = lpm_run, .get = lpm_get},
	{0},
};

void
lpm_by_its_own_add(void)
{
	lpm.arg = 1;
	lpm.note = "by rte_lpm_add()";
}
