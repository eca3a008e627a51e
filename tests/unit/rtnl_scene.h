/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scene for tests of the rtnl thread: a namespace with a TAP t0, the real thread, and a
 * RIB that gets its messages.
 */
#ifndef RTNL_SCENE_H
#define RTNL_SCENE_H

#include "test_tap_bridge.h"

#include "../fuzz/invariants.h"
#include "rib_rig.h"
#include "rtnl/impl.h"

#define NET  "198.51.100.0/24"
#define NET6 "2001:db8:9::/48"

struct scene {
	struct bed *bed;
	struct rig *g;
	struct worker rtnl;
};

#define wait_until(condition)                                               \
	do {                                                                \
		int64_t end_ = now_ms() + PATIENCE_MS;                      \
		while (!(condition)) {                                      \
			if (now_ms() > end_)                                \
				fail_msg("did not happen: %s", #condition); \
			poll(NULL, 0, 1);                                   \
		}                                                           \
	} while (0)

/* As wait_until(), but handle the messages to [rib] meanwhile. */
#define wait_for(s, condition) wait_until((condition) || (rig_settle((s)->g), false))

/* Make a scene: TAP t0 with 192.0.2.1/24 and 2001:db8::1/64. The thread is not started. */
static struct scene *
scene_of(void **state)
{
	struct bed *bed = bed_of(state);
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->bed = bed;
	bed_tap(bed);
	bed_sysctl(bed, "ipv6/conf/t0/accept_dad", "0");
	bed_sysctl(bed, "ipv6/conf/t0/forwarding",
		   "1"); /* without forwarding t0 has no anycast address */
	ip(bed, "link set lo up");
	ip(bed, "addr add 192.0.2.1/24 dev t0");
	ip(bed, "addr add 2001:db8::1/64 dev t0");
	s->g = rig_new();
	return s;
}

static void
start(struct scene *s, enum routes_from from)
{
	struct rtnl_conf conf = {.rib = &s->g->w, .netns = s->bed->netns, .from = from};

	atomic_store(&kernel_status.in_step, 0); /* the last test has set it */
	assert_int_equal(rtnl_setup(&s->rtnl, &conf), 0);
	assert_int_equal(worker_prepare(&s->rtnl), 0);
	assert_int_equal(worker_start(&s->rtnl), 0);
	s->g->rib->conf.from = from;
	s->g->rib->conf.rtnl = &s->rtnl;
}

static struct scene *
started(void **state)
{
	struct scene *s = scene_of(state);

	start(s, ROUTES_FROM_BOTH);
	return s;
}

static void
stop(struct scene *s)
{
	worker_stop(&s->rtnl);
	s->g->rib->conf.rtnl = &s->g->rtnl;
	rig_settle(s->g);
	rib_must_be_sound(s->g);
	worker_free(&s->rtnl);
	rtnl_teardown(&s->rtnl);
	rig_free(s->g);
	free(s);
}

static const struct route *
route_of(const struct scene *s, uint32_t table, const char *text)
{
	struct rib_tables *t = &s->g->rib->tables;
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p, NULL), 0);
	return routes_find(tables_routes(t, table), table, &p,
			   routes_hash(tables_routes(t, table), table, &p));
}

/*
 * Return the number of routes of the kernel that the prefix has in tables main and local.
 */
static unsigned int
n_of(const struct scene *s, const char *text)
{
	const struct rib_kroutes *k = &s->g->rib->kroutes;
	const struct route *r = route_of(s, RT_TABLE_MAIN, text);
	unsigned int n = 0;

	for (uint32_t i = r == NULL ? 0 : kroute_first(k, r); i != 0; i = kroute_next(k, i))
		n++;
	return n;
}

/* Return the record that the kernel would use, or NULL. */
static const struct kroute *
first_of(const struct scene *s, const char *text)
{
	const struct rib_kroutes *k = &s->g->rib->kroutes;
	const struct route *r = route_of(s, RT_TABLE_MAIN, text);
	uint32_t i = r == NULL ? 0 : kroute_best(k, NULL, r);

	return i == 0 ? NULL : &k->v[i];
}

/*
 * Return the gateways of first_of(): "192.0.2.9 192.0.2.10". "-": no gateway; "none": no
 * record.
 */
static const char *
gateways_of(const struct scene *s, const char *text)
{
	static char out[256];
	const struct kroute *kr = first_of(s, text);
	const struct slot *slot;
	char buf[PREFIX_STRLEN];
	size_t n = 0;

	out[0] = '\0';
	if (kr == NULL)
		return "none";
	slot = slot_at(&s->g->rib->slots, kr->slot);
	for (uint32_t i = 0; i < slot->n_legs; i++) {
		const struct next_hop *hop = &slot->leg[i].hop;

		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s", i == 0 ? "" : " ",
				      hop->gw_family == 0
					      ? "-"
					      : ipaddr_str(&hop->gw, hop->gw_family, buf));
	}
	return out;
}

static bool
gateways_are(const struct scene *s, const char *text, const char *want)
{
	return strcmp(gateways_of(s, text), want) == 0;
}

static uint64_t
count(_Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
