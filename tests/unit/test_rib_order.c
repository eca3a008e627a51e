/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any order of messages about different objects gives the same forwarding.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include <stdio.h>

#include "oracle.h"

#define N_ID     10u /* single next hops 1 to 10 */
#define N_GROUP  6u  /* groups 20 to 25 */
#define N_ROUTE  40u
#define N_LINK   4u /* ifindex 11 to 14; 14 is no port */
#define N_STREAM (N_ID + N_GROUP + N_ROUTE + N_LINK + N_LINK)
#define N_STEP   4u /* steps of each stream, in order */
#define N_PROBE  64u
/*
 * A sequence takes a second with AddressSanitizer. Each run of the program draws new ones.
 */
#ifdef __SANITIZE_ADDRESS__
#define N_ROUND 5u
#else
#define N_ROUND 10u
#endif

/* Send step `step` of stream `s`. Its content depends only on these two and the seed. */
static void
say(struct rig *g, uint64_t seed, uint32_t s, uint32_t step)
{
	struct rnd r = {seed ^ (s * 131u + step + 1) * 0x9e3779b97f4a7c15u};
	char text[48], gw[48];

	rnd_next(&r);
	if (s < N_ID) {
		if (step < N_STEP - 1 && rnd_below(&r, 4) == 0) {
			/* The id comes again, because the last step never deletes. */
			rig_nh_del(g, s + 1);
			return;
		}
		snprintf(gw, sizeof(gw), "10.255.%u.%u", rnd_below(&r, N_LINK) + 1,
			 rnd_below(&r, 3) + 1);
		rig_hop(g, s + 1, rnd_below(&r, 5) == 0 ? NULL : gw,
			11 + rnd_below(&r, N_LINK));
		return;
	}
	s -= N_ID;
	if (s < N_GROUP) {
		rig_group(g, 20 + s, 3, rnd_below(&r, N_ID) + 1, rnd_below(&r, 4) + 1,
			  rnd_below(&r, N_ID) + 1, rnd_below(&r, 4) + 1,
			  rnd_below(&r, N_ID + 2) + 1, 1u);
		return;
	}
	s -= N_GROUP;
	if (s < N_ROUTE) {
		/* Nested prefixes, so that a deletion uncovers another route. */
		snprintf(text, sizeof(text), "10.%u.%u.0/%u", s % 4, s / 4 * 16,
			 s < 4 ? 16 : 20 + s % 3);
		switch (rnd_below(&r, 6)) {
		case 0:
			rig_del(g, text);
			break;
		case 1:
			rig_route_type(g, text,
				       rnd_below(&r, 2) ? RTN_BLACKHOLE : RTN_PROHIBIT);
			break;
		case 2:
			/* The interface is that of the connected subnet. */
			rig_route_inline(g, text, "10.255.2.9", 0);
			break;
		case 3:
			rig_route_inline(g, text, "10.255.1.1", 11 + rnd_below(&r, N_LINK));
			break;
		default:
			rig_route(g, text,
				  rnd_below(&r, 2) ? 20 + rnd_below(&r, N_GROUP)
						   : 1 + rnd_below(&r, N_ID + 1));
		}
		return;
	}
	s -= N_ROUTE;
	if (s < N_LINK) {
		rig_flush_batch(g);
		if (rnd_below(&r, 5) == 0 && step < N_STEP - 1)
			rig_link_gone(g, 11 + s);
		else
			rig_link(g, 11 + s, s == 3 ? 0 : (uint16_t)(s + 1),
				 rnd_below(&r, 3) > 0);
		return;
	}
	s -= N_LINK;
	snprintf(text, sizeof(text), "10.255.%u.254/24", s + 1);
	rig_flush_batch(g);
	rig_addr(g, 11 + s, text, rnd_below(&r, 3) == 0);
}

/*
 * Return the next hops of a destination without their shares, which depend on history by
 * design.
 */
static void
paths_of(const struct rig *g, const char *dst, char *out, size_t size)
{
	const char *seen = rig_seen(g, dst);
	size_t n = 0;
	bool skip = false;

	for (; *seen != '\0' && n + 1 < size; seen++) {
		skip = *seen == '*' || (skip && *seen != ' ');
		if (!skip)
			out[n++] = *seen;
	}
	out[n] = '\0';
}

static void
probe(uint32_t i, char *dst, size_t size)
{
	if (i < 8)
		snprintf(dst, size, "10.255.%u.%u", i / 2 + 1, i % 2 ? 254 : 7);
	else
		snprintf(dst, size, "10.%u.%u.9", i % 4, i / 4 * 16 & 255);
}

/* Interleave the streams at random. Rounds and grace periods also come at random. */
static struct rig *
run(uint64_t seed, struct rnd *r, bool in_order)
{
	struct rig *g = rig_new();
	uint32_t at[N_STREAM] = {0}, left = N_STREAM * N_STEP, s = 0;

	rig_session(g, 1);
	while (left > 0) {
		if (in_order)
			s = at[s] == N_STEP ? s + 1 : s;
		else
			do {
				s = rnd_below(r, N_STREAM);
			} while (at[s] == N_STEP);
		/*
		 * The addresses of an interface are deleted with it. So the events of its
		 * addresses follow all events of the interface, as the kernel reports them.
		 */
		if (s >= N_STREAM - N_LINK && at[s - N_LINK] < N_STEP)
			s -= N_LINK;
		say(g, seed, s, at[s]++);
		left--;
		if (!in_order && rnd_below(r, 20) == 0)
			rig_go(g);
		if (!in_order && rnd_below(r, 100) == 0)
			rig_settle(g);
	}
	rig_settle(g);
	return g;
}

static void
any_interleaving_ends_in_the_same_forwarding(void **state)
{
	struct rnd r = rnd_seeded("rib order");
	static char want[N_PROBE][512];
	char dst[32], got[512];

	for (unsigned int round = 0; round < N_ROUND; round++) {
		uint64_t seed = rnd_next(&r);
		struct rig *g = run(seed, &r, true);

		for (uint32_t i = 0; i < N_PROBE; i++) {
			probe(i, dst, sizeof(dst));
			paths_of(g, dst, want[i], sizeof(want[i]));
		}
		rig_free(g);
		for (unsigned int perm = 0; perm < 5; perm++) {
			g = run(seed, &r, false);
			for (uint32_t i = 0; i < N_PROBE; i++) {
				probe(i, dst, sizeof(dst));
				paths_of(g, dst, got, sizeof(got));
				assert_string_equal(got, want[i]);
			}
			rig_free(g);
		}
	}
}

static void
everything_withdrawn_leaves_nothing_behind(void **state)
{
	struct rnd r = rnd_seeded("rib leave");

	for (unsigned int round = 0; round < 10; round++) {
		struct rig *g = run(rnd_next(&r), &r, false);

		rig_session(g, 2);
		rig_route(g, "203.0.113.0/24", 1);
		rig_sentinel(g);
		rig_del(g, "203.0.113.0/24");
		rig_go(g);
		rig_now_ms += 1000000; /* past the hold time of a restarted zebra */
		for (uint32_t i = 0; i < N_LINK; i++)
			rig_link_gone(g, 11 + i);
		rig_settle(g);
		rig_settle(g);
		assert_int_equal(g->rib->tables.n_main[0], 0);
		assert_int_equal(g->rib->tables.n_main[1], 1); /* the sentinel */
		/* The slot of the sentinel, and the permanent slot. */
		assert_int_equal(g->rib->slots.n, 2);
		assert_int_equal(g->rib->adjs.n, 0);
		assert_int_equal(g->n_watch, g->n_unwatch);
		assert_int_equal(g->rib->nhs.n, 0);
		assert_int_equal(g->rib->words.block_bytes, 0);
		assert_int_equal(g->rib->links.by_ifindex.n, 0);
		rig_free(g);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_interleaving_ends_in_the_same_forwarding),
		cmocka_unit_test(everything_withdrawn_leaves_nothing_behind),
	};

	return cmocka_run_group_tests_name("rib order", tests, NULL, NULL);
}
