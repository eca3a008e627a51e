/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our structure: one table for each variant of the lookup, because the variant belongs to
 * the table. The library allocates the memory as it does in the daemon, with huge pages.
 * IPv6 keys are given by pointer, as they lie in packets. The pointers are made inside the
 * timed loop. The peers get contiguous keys without this cost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bench.h"
#include "poptrie/impl.h"

static int
pop_make(struct structure *s, enum pt_layout layout, const char **why)
{
	struct poptrie_conf conf = {.family = s->family == 4 ? POPTRIE_IP4 : POPTRIE_IP6};
	struct poptrie *pt = NULL;
	int rc;

	if (s->arg > (int)pt_isa_best()) {
		*why = "not on this CPU";
		return -ENOTSUP;
	}
	rc = pt_create(&pt, &conf, layout, (enum pt_isa)s->arg);
	s->h = pt;
	return rc;
}

static int
pop_open(struct structure *s, const struct table *t, const char **why)
{
	return pop_make(s, s->family == 4 ? PT_FUSED : PT_WIDE, why);
}

static int
wide_open(struct structure *s, const struct table *t, const char **why)
{
	return pop_make(s, PT_WIDE, why);
}

static int
pop_load(struct structure *s, const struct table *t)
{
	int rc = 0;

	for (size_t i = 0; i < t->n && rc == 0; i++)
		rc = poptrie_add(s->h, t->p[i].addr, t->p[i].len, t->p[i].value);
	return rc ? rc : poptrie_commit(s->h);
}

static void
pop_close(struct structure *s)
{
	poptrie_destroy(s->h);
}

static int
pop_add(struct structure *s, const struct prefix *p)
{
	int rc = poptrie_add(s->h, p->addr, p->len, p->value);

	return rc ? rc : poptrie_commit(s->h);
}

static int
pop_del(struct structure *s, const struct prefix *p)
{
	int rc = poptrie_del(s->h, p->addr, p->len);

	return rc ? rc : poptrie_commit(s->h);
}

static void
pop_bytes(struct structure *s, struct bytes *b)
{
	const struct pt_view *v = pt_view(s->h);
	struct poptrie_stats st;
	char node[16];

	poptrie_stats(s->h, &st);
	b->lookup = st.direct_bytes + st.node_bytes + st.leaf_bytes - st.free_bytes;
	b->truth = st.radix_bytes;
	b->total = b->lookup + b->truth;
	pages_of(v->leaf, b->pages, sizeof(b->pages));
	pages_of(v->node, node, sizeof(node));
	if (strcmp(node, b->pages) != 0)
		snprintf(b->pages, sizeof(b->pages), "mixed");
}

static const struct ops pop_ops = {
	.open = pop_open,
	.load = pop_load,
	.close = pop_close,
	.add = pop_add,
	.del = pop_del,
	.bytes = pop_bytes,
};

/* The layout of IPv4 tables on CPUs without atomic accesses of 16 octets. */
static const struct ops wide_ops = {
	.open = wide_open,
	.load = pop_load,
	.close = pop_close,
	.add = pop_add,
	.del = pop_del,
	.bytes = pop_bytes,
};

static void
single4(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	const struct poptrie *pt = im->s->h;
	uint32_t out[BATCH_MAX];

	for (size_t i = 0; i < n; i++)
		out[i % BATCH_MAX] = poptrie4_lookup(pt, k->v4[i]);
	keep(out);
}

static void
bulk4(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	const struct poptrie *pt = im->s->h;
	uint32_t out[BATCH_MAX];

	for (size_t i = 0; i + batch <= n; i += batch) {
		poptrie4_lookup_bulk(pt, k->v4 + i, out, batch);
		keep(out);
	}
}

static void
single6(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	const struct poptrie *pt = im->s->h;
	uint32_t out[BATCH_MAX];

	for (size_t i = 0; i < n; i++)
		out[i % BATCH_MAX] = poptrie6_lookup(pt, k->v6[i]);
	keep(out);
}

static void
bulk6(const struct impl *im, const struct keys *k, size_t n, unsigned int batch)
{
	const struct poptrie *pt = im->s->h;
	const uint8_t *at[BATCH_MAX];
	uint32_t out[BATCH_MAX];

	for (size_t i = 0; i + batch <= n; i += batch) {
		for (unsigned int j = 0; j < batch; j++)
			at[j] = k->v6[i + j];
		poptrie6_lookup_bulk(pt, at, out, batch);
		keep(out);
	}
}

static void
get_single(const struct impl *im, const struct keys *k, size_t from, unsigned int n,
	   uint32_t *value)
{
	for (unsigned int i = 0; i < n; i++)
		value[i] = k->v4 ? poptrie4_lookup(im->s->h, k->v4[from + i])
				 : poptrie6_lookup(im->s->h, k->v6[from + i]);
}

static void
get_bulk(const struct impl *im, const struct keys *k, size_t from, unsigned int n,
	 uint32_t *value)
{
	const uint8_t *at[BATCH_MAX];

	if (k->v4) {
		poptrie4_lookup_bulk(im->s->h, k->v4 + from, value, n);
		return;
	}
	for (unsigned int j = 0; j < n; j++)
		at[j] = k->v6[from + j];
	poptrie6_lookup_bulk(im->s->h, at, value, n);
}

/*
 * Updates cost the same in all variants. Measure them in the scalar one, which every CPU
 * has.
 */
static struct structure pop[] = {
	{.name = "poptrie-scalar",
	 .family = 4,
	 .arg = PT_SCALAR,
	 .ops = &pop_ops,
	 .update = true},
	{.name = "poptrie-avx2", .family = 4, .arg = PT_AVX2, .ops = &pop_ops},
	{.name = "poptrie-avx512", .family = 4, .arg = PT_AVX512, .ops = &pop_ops},
	{.name = "poptrie-scalar",
	 .family = 6,
	 .arg = PT_SCALAR,
	 .ops = &pop_ops,
	 .update = true},
	{.name = "poptrie-avx2", .family = 6, .arg = PT_AVX2, .ops = &pop_ops},
	{.name = "poptrie-avx512", .family = 6, .arg = PT_AVX512, .ops = &pop_ops},
	{.name = "poptrie-wide", .family = 4, .arg = PT_SCALAR, .ops = &wide_ops},
};

struct impl poptrie_impls[] = {
	{"poptrie-single", &pop[0], .single = true, .run = single4, .get = get_single},
	{"poptrie-scalar", &pop[0], .run = bulk4, .get = get_bulk},
	{"poptrie-avx2", &pop[1], .run = bulk4, .get = get_bulk},
	{"poptrie-avx512", &pop[2], .run = bulk4, .get = get_bulk},
	{"poptrie-wide", &pop[6], .run = bulk4, .get = get_bulk},
	{"poptrie-single", &pop[3], .single = true, .run = single6, .get = get_single},
	{"poptrie-scalar", &pop[3], .run = bulk6, .get = get_bulk},
	{"poptrie-avx2", &pop[4], .run = bulk6, .get = get_bulk},
	{"poptrie-avx512", &pop[5], .run = bulk6, .get = get_bulk},
	{0},
};
