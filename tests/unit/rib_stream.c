/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FPM octets into a RIB without its thread, see rib_stream.h.
 */
#include "rib_stream.h"

void
stream_open(struct stream *s, struct rig *g)
{
	memset(s, 0, sizeof(*s));
	s->g = g;
	s->queue.rib = &g->w;
	s->queue.limit_bytes = UINT64_MAX;
}

/* Report the session with the port id of its first message, as session.c does. */
static void
announce(struct stream *s)
{
	if (!s->announced)
		queue_put_session(&s->queue, FPM_SESSION_UP, ++s->g->gen,
				  s->decoded.nl_pid ^ s->other_pid);
	s->announced = true;
}

static int
on_event(void *arg, const struct fpm_event *ev)
{
	struct stream *s = arg;

	announce(s);
	return queue_put(&s->queue, ev);
}

static void
deliver(struct stream *s)
{
	struct msg *m;

	assert_int_equal(queue_flush(&s->queue), 0);
	if (s->held)
		return;
	while ((m = worker_take(&s->g->w)) != NULL)
		rib_on_msg(s->g->rib, m);
	assert_int_equal(queue_depth(), 0);
}

int
stream_feed(struct stream *s, const uint8_t *p, size_t len)
{
	/*
	 * Copy the octets into an allocation of their exact size, so that the sanitizer
	 * sees a read beyond their end.
	 */
	size_t n_all = s->n_rest + len, used = 0;
	uint8_t *all = malloc(n_all == 0 ? 1 : n_all);
	struct fpm_frame frame;
	int n;

	assert_non_null(all);
	if (s->n_rest > 0)
		memcpy(all, s->rest, s->n_rest);
	if (len > 0)
		memcpy(all + s->n_rest, p, len);
	while ((n = fpm_frame_next(all + used, n_all - used, &frame)) > 0) {
		used += (size_t)n;
		assert_int_equal(queue_begin_frame(&s->queue, frame.len), 0);
		assert_int_equal(fpm_decode(&frame, on_event, s, &s->decoded), 0);
		if (s->decoded.nl_pid != 0)
			announce(s);
	}
	free(s->rest);
	s->n_rest = n_all - used;
	s->rest = malloc(s->n_rest == 0 ? 1 : s->n_rest);
	assert_non_null(s->rest);
	memcpy(s->rest, all + used, s->n_rest);
	free(all);
	deliver(s);
	return n;
}

void
stream_hold(struct stream *s, uint64_t limit_bytes)
{
	s->held = true;
	s->queue.limit_bytes = limit_bytes;
}

void
stream_go_on(struct stream *s)
{
	s->held = false;
	s->queue.limit_bytes = UINT64_MAX;
	deliver(s);
}

void
stream_close(struct stream *s)
{
	if (s->announced)
		queue_put_session(&s->queue, FPM_SESSION_DOWN, s->g->gen,
				  s->decoded.nl_pid ^ s->other_pid);
	stream_go_on(s);
	free(s->rest);
	s->rest = NULL;
	s->n_rest = 0;
}

/*
 * Delete routes of other tables one by one, because they are not replayed and never swept.
 */
static void
delete_other_tables(struct rig *g)
{
	for (uint32_t i = 1; i <= g->rib->tables.other.high; i++) {
		const struct route *r = route_at(&g->rib->tables.other, i);
		struct fpm_event *ev;

		if (r->family == 0)
			continue;
		ev = rig_event(g, FPM_ROUTE_DEL);
		ev->table = r->table;
		ev->prefix = route_prefix(r);
	}
	rig_flush_batch(g);
}

/*
 * Return the number of slots of the kernel's prefixes. Store the number of routes of main.
 */
static uint32_t
kernels_slots(const struct rib *rib, uint32_t *n_routes)
{
	uint32_t n = 1; /* the permanent slot */

	*n_routes = 0;
	for (uint32_t i = 1; i <= rib->slots.high; i++) {
		bool used = false;

		for (uint32_t j = 1; j <= rib->kroutes.high && !used; j++)
			used = rib->kroutes.v[j].route != NULL &&
			       rib->kroutes.v[j].slot == i;
		n += used;
	}
	for (uint32_t j = 1; j <= rib->tables.main.high; j++)
		*n_routes += route_at(&rib->tables.main, j)->family != 0;
	return n;
}

void
stream_withdraw_all(struct rig *g)
{
	struct rib *rib = g->rib;
	uint32_t n_routes;

	rig_session(g, rib->session.nl_pid + 1);
	rig_flush_batch(g);
	rig_del(g, "203.0.113.255/32"); /* without a message no replay would begin */
	delete_other_tables(g);
	rig_later(g, 10000); /* past any hold time */
	rig_settle(g);
	assert_int_equal(rib->table_counts.stale, 0);
	assert_int_equal(rib->table_counts.n_zebra[0] + rib->table_counts.n_zebra[1], 0);
	assert_int_equal(rib->tables.other.n, 0);
	assert_int_equal(rib->early.n, 0);
	assert_int_equal(rib->nhs.n, 0);
	assert_int_equal(rib->contents.n_orphans, 0);
	assert_int_equal(rib->slots.n, kernels_slots(rib, &n_routes));
	assert_int_equal(rib->tables.main.n, n_routes);
	assert_int_equal(rib->tables.n_main[0] + rib->tables.n_main[1], n_routes);
	assert_int_equal(rib->adjs.n, 0);
	assert_int_equal(g->n_watch, g->n_unwatch);
	assert_int_equal(rib->adjs.n_asked, 0);
	assert_int_equal(rib->words.block_bytes, 0);
	assert_true(cds_list_empty(&rib->legs.floating));
	assert_false(rib->resync.due);
}
