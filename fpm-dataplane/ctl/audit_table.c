/* SPDX-License-Identifier: BSD-3-Clause */
/* Collect the routes of one side of `fpmctl audit`; number their tables; sort them. */
#include "ctl/audit_table.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/hop_push.h"
#include "ctl/hops_text.h"
#include "ctl/json_row.h"
#include "ctl/zebra.h"

/* --- places --------------------------------------------------------------------------- */

static void *
mem_or_die(void *mem)
{
	if (mem == NULL)
		abort();
	return mem;
}

void
places_add_ruled(struct places *p, bool ip6, uint32_t table)
{
	uint32_t n = p->n_ruled[ip6]++;

	p->ruled[ip6] = mem_or_die(realloc(p->ruled[ip6], (n + 1) * sizeof(uint32_t)));
	p->ruled[ip6][n] = table;
}

static uint32_t
places_add(struct places *p, const struct place *at)
{
	if (p->n == p->cap) {
		p->cap = p->cap == 0 ? 16 : p->cap * 2;
		p->v = mem_or_die(realloc(p->v, p->cap * sizeof(*p->v)));
	}
	p->v[p->n] = *at;
	return p->last = p->n++;
}

uint32_t
places_add_vrf(struct places *p, const char *name, uint32_t table)
{
	return places_add(p,
			  &(struct place){.vrf = mem_or_die(strdup(name)), .table = table});
}

uint32_t
places_find(struct places *p, uint32_t table, const struct prefix *src)
{
	struct place new = {.table = table, .src = *src};

	/* Routes arrive table by table: begin with the last result. */
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t at = (p->last + i) % p->n;

		if (p->v[at].table != table)
			continue;
		if (p->v[at].src.len == src->len &&
		    (src->len == 0 || prefix_equal(&p->v[at].src, src)))
			return p->last = at;
	}
	for (uint32_t i = 0; i < p->n && new.vrf == NULL; i++)
		if (p->v[i].table == table && p->v[i].vrf != NULL)
			new.vrf = mem_or_die(strdup(p->v[i].vrf));
	for (unsigned int v = 0; v < 2 && table != 254 && new.vrf == NULL; v++)
		for (uint32_t i = 0; i < p->n_ruled[v]; i++)
			new.ruled[v] |= p->ruled[v][i] == table;
	return places_add(p, &new);
}

uint32_t
places_find_vrf(struct places *p, const char *name)
{
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t at = (p->last + i) % p->n;

		if (p->v[at].vrf != NULL && p->v[at].src.len == 0 &&
		    strcmp(p->v[at].vrf, name) == 0)
			return p->last = at;
	}
	return places_add_vrf(p, name, 0);
}

void
places_free(struct places *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		free(p->v[i].vrf);
	free(p->v);
	free(p->ruled[0]);
	free(p->ruled[1]);
	*p = (struct places){0};
}

/* --- routes --------------------------------------------------------------------------- */

struct entry *
table_add(struct table *t, uint32_t place, const struct prefix *p, uint64_t hops)
{
	if (t->n == t->cap) {
		t->cap = t->cap == 0 ? 4096 : t->cap * 2;
		t->entry = mem_or_die(realloc(t->entry, t->cap * sizeof(*t->entry)));
	}
	t->entry[t->n] = (struct entry){.prefix = *p, .place = place, .hops = hops};
	return &t->entry[t->n++];
}

static int
prefix_order(const struct prefix *p, const struct prefix *q)
{
	uint64_t a[2], b[2];

	if (p->family != q->family)
		return p->family - q->family;
	memcpy(a, p->addr.octet, sizeof(a));
	memcpy(b, q->addr.octet, sizeof(b));
	for (unsigned int i = 0; i < 2; i++)
		if (a[i] != b[i])
			return __builtin_bswap64(a[i]) < __builtin_bswap64(b[i]) ? -1 : 1;
	return p->len - q->len;
}

int
entry_order(const struct entry *x, const struct entry *y)
{
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return prefix_order(&x->prefix, &y->prefix);
}

static int
entry_key_order(const struct entry *x, const struct entry *y)
{
	int rc = entry_order(x, y);

	return rc != 0 ? rc : x->hidden - y->hidden;
}

static int
entry_rank_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int rc = entry_key_order(x, y);

	return rc != 0 || x->rank == y->rank ? rc : x->rank < y->rank ? -1 : 1;
}

void
table_sort(struct table *t)
{
	size_t kept = 0;

	if (t->n == 0)
		return; /* qsort(NULL, 0) is undefined */
	qsort(t->entry, t->n, sizeof(struct entry), entry_rank_order);
	for (size_t i = 1; i < t->n; i++)
		if (entry_key_order(&t->entry[kept], &t->entry[i]) != 0)
			t->entry[++kept] = t->entry[i];
	t->n = kept + 1;
}

void
table_clear(struct table *t)
{
	free(t->entry);
	*t = (struct table){0};
}

/* --- rows of the daemon --------------------------------------------------------------- */

/* Return the word that the kernel's side has for the type of a row that is in no FIB. */
static const char *
row_type_state(const json_t *row)
{
	const char *type = row_str(row, "type");

	return strcmp(type, "anycast") == 0   ? "local"
	       : strcmp(type, "unicast") == 0 ? "unresolved"
					      : type;
}

/*
 * Return the weight of a next hop as the kernel tells it in its routes: rtnh_hops has eight
 * bits. The groups of the kernel have weights of 16 bits since Linux 6.12.
 */
static long long
weight_in_kernel(long long weight)
{
	return weight > 256 ? (weight - 1) % 256 + 1 : weight;
}

/*
 * Collect the next hops of a row of `show routes` in the spelling of hops_text.h. If a rule
 * of the family names the table, the table must have a FIB; other tables need none.
 */
static void
row_hops(const struct place *at, const json_t *row, bool ip6, enum spelling as,
	 struct hops_text *w)
{
	bool no_fib = strcmp(row_str(row, "state"), "not-installed") == 0;
	bool of_kernel = as != AS_TOLD || strcmp(row_str(row, "source"), "zebra") != 0;
	struct hop_push push;
	const json_t *hop;
	size_t i;

	hops_reset(w);
	/* A VRF has a FIB: such a route of its table is only hidden by table local. */
	if (no_fib && at->ruled[ip6] && at->vrf == NULL) {
		hops_add_kind(w, "no FIB");
		return;
	}
	json_array_foreach (json_object_get(row, "nexthops"), i, hop) {
		const char *via = row_has(hop, "via") ? row_str(hop, "via") : NULL;

		if (as == AS_COPY6 && via != NULL && strchr(via, ':') == NULL)
			via = NULL;
		push_row(&push, hop);
		/* zebra prints the VNI of such a next hop as a label. */
		if (as == AS_TOLD && push.n_labels > 0 &&
		    zebra_has_vnis(row_str(hop, "dev")))
			push = (struct hop_push){0};
		hops_add(w, via, row_str(hop, "dev"), push.text,
			 of_kernel ? weight_in_kernel(row_int(hop, "weight"))
				   : row_int(hop, "weight"));
		if (row_true(hop, "kernel_dead"))
			hops_mark_dead(w);
	}
	/* zebra's table has no MTU. */
	if (of_kernel && w->n > 0)
		hops_set_mtu(w, ip6, (uint32_t)row_int(row, "mtu"));
	if (as == AS_COPY6)
		hops_drop_bare_push(w);
	if (w->n == 0) /* blackhole, unresolved, ... */
		hops_add_kind(w, no_fib ? row_type_state(row) : row_str(row, "state"));
}

char *
audit_row_text(const struct place *at, const json_t *row, bool ip6, enum spelling as)
{
	static struct hops_text w;
	char *text;

	row_hops(at, row, ip6, as, &w);
	text = hops_join(&w);
	hops_reset(&w);
	return text;
}

uint64_t
audit_row_hash(const struct place *at, const json_t *row, bool ip6, enum spelling as)
{
	char *text = audit_row_text(at, row, ip6, as);
	uint64_t hash = hops_hash(text);

	free(text);
	return hash;
}
