/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers to the ui about FIBs: that of main, and those of VRFs, of which there may be
 * thousands; so a slice at a time, and only when somebody asks (query.c). [rib].
 */
#include <jansson.h>

#include "base/counters.h"
#include "rib/rib_impl.h"

json_t *
vrf_json(const struct vrf *vrf)
{
	json_t *name;

	if (vrf == NULL)
		return json_null();
	name = json_string(vrf->fib->name);
	return name != NULL ? name
			    : json_sprintf("table%u", vrf->fib->table); /* no UTF-8 */
}

/* A row a family of `tries`, which are main's when `vrf` is NULL. */
static void
fib_rows(struct msg_query *q, const struct vrf *vrf, const struct fib_copy *tries)
{
	for (unsigned int v = 0; v < 2; v++) {
		json_t *row = json_pack("{s:s, s:o}", "family", v == 0 ? "ipv4" : "ipv6",
					"vrf", vrf_json(vrf));
		json_t *trie = trie_json(fib_trie(tries, v == 0 ? 4 : 6));

		json_object_update_missing(row, trie);
		json_decref(trie);
		json_array_append_new(q->rows, row);
	}
}

/* The next VRF behind the cursor; NULL: none is left, or the slice is full. */
static const struct vrf *
next_vrf(const struct rib *rib, struct msg_query *q)
{
	while (json_array_size(q->rows) + 2 <= q->max) {
		if (rib->n_vrf == 0 || ++q->cursor[0] >= FIB_VRF_NONE) {
			q->done = true;
			return NULL;
		}
		if (rib->vrf[q->cursor[0]] != NULL)
			return rib->vrf[q->cursor[0]];
	}
	return NULL;
}

void
list_fibs(const struct rib *rib, struct msg_query *q)
{
	const struct vrf *vrf;

	if (q->cursor[1] == 0)
		fib_rows(q, NULL, rib->fib->copy);
	q->cursor[1] = 1;
	while ((vrf = next_vrf(rib, q)) != NULL)
		fib_rows(q, vrf, &vrf->fib->tries);
}

static json_t *
vrf_row(const struct rib *rib, const struct vrf *vrf)
{
	const struct tally *t = tally_find(rib, vrf->fib->table);
	struct vrf_counters c;

	counters_vrf(vrf->number, &vrf->fib->base, &c);
	return json_pack("{s:o, s:I, s:b, s:I, s:I, s:b, s:I, s:I, s:I, s:o, s:o}", "name",
			 vrf_json(vrf), "table", (json_int_t)vrf->fib->table, "published",
			 vrf->published, "zebra", (json_int_t)(t == NULL ? 0 : t->n),
			 "stale", (json_int_t)(t == NULL ? 0 : t->stale), "replayed",
			 t == NULL || !tally_is_kept(rib, t), "rx_packets",
			 (json_int_t)c.rx_packets, "rx_bytes", (json_int_t)c.rx_bytes,
			 "dropped", (json_int_t)c.dropped, "fib4",
			 trie_json(vrf->fib->tries.pt4), "fib6",
			 trie_json(vrf->fib->tries.pt6));
}

void
list_vrfs(const struct rib *rib, struct msg_query *q)
{
	const struct vrf *vrf;

	while ((vrf = next_vrf(rib, q)) != NULL)
		json_array_append_new(q->rows, vrf_row(rib, vrf));
}
