/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of the label table wait for the commit, like changes of the tries: a label must
 * not lead to a group whose word is not published, nor to a group whose number is free.
 * [rib]
 */
#include "rib/labels.h"

#include <stdlib.h>

#include "base/inet.h"
#include "fib/label.h"
#include "rib/impl.h"
#include "rib/routes.h"

static uint32_t
label_of_route(const struct route *r)
{
	return get_be32(r->octet) & (LABELS_ALL - 1);
}

void
label_stage(struct rib *rib, const struct route *r)
{
	struct rib_labels *t = &rib->labels;
	uint32_t label = label_of_route(r);

	if (t->want == NULL)
		t->want = mem_or_abort(calloc(LABELS_ALL, sizeof(*t->want)));
	t->want[label] = route_effective(r);
	vec32_push(&t->staged, label);
}

bool
label_is_staged(const struct rib *rib, const struct route *r)
{
	const uint32_t *want = rib->labels.want;

	return (want == NULL ? 0 : want[label_of_route(r)]) == route_effective(r);
}

uint32_t
labels_next_wrong(const struct rib *rib, uint32_t label, uint32_t end)
{
	const struct rib_labels *t = &rib->labels;

	if (t->want == NULL)
		return end;
	while (label < end && atomic_load_explicit(&rib->fib->label[label],
						   memory_order_relaxed) == t->want[label])
		label++;
	return label;
}

void
label_stage_again(struct rib *rib, uint32_t label)
{
	vec32_push(&rib->labels.staged, label);
}

void
labels_commit(struct rib *rib)
{
	struct rib_labels *t = &rib->labels;

	for (uint32_t i = 0; i < t->staged.n; i++) {
		uint32_t label = t->staged.v[i];

		/* Release: a reader that finds the group sees its word. */
		atomic_store_explicit(&rib->fib->label[label], t->want[label],
				      memory_order_release);
	}
	t->staged.n = 0;
}

void
labels_free(struct rib *rib)
{
	free(rib->labels.want);
	vec32_free(&rib->labels.staged);
}
