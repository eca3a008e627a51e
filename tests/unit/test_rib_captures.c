/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feed recorded streams of FRR to the frame cutter, the decoder, the queue and the RIB. The
 * result is compared with the model of their decode in text (capture_model.c). The streams
 * are also cut in two at every octet of the first 4 KiB, fed octet by octet, and fed in
 * random pieces with grace periods in between.
 *
 * NAME.bin and NAME.txt are in the folder $SHARED/fpm-captures. Without it all tests are
 * skipped.
 *
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c
 * link: fpm-dataplane/fpm/queue.c tests/unit/rib_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c
 * link: tests/unit/rib_stream.c tests/unit/grace.c tests/unit/rib_seen.c
 * link: tests/unit/rib_print.c
 * link: tests/unit/capture_model.c tests/unit/capture_answer.c tests/unit/capture_file.c
 */
#include "rib_stream.h"

#include <stdio.h>

#include "capture_file.h"
#include "capture_model.h"
#include "grace.h"
#include "oracle.h"
#include "rib_print.h"
#include "rib_seen.h"

#define CUT_BYTES 4096u
#ifdef __SANITIZE_ADDRESS__
/* Each capture starts at another offset, so that all kinds of places are cut. */
#define CUT_STEP 13u
#else
#define CUT_STEP 1u
#endif

/*
 * The lab of the captures: p1 to p4 are ifindex 2 to 5. One more link is no port of ours.
 */
static const struct cm_link lab[] = {
	{2, 1, true, {"10.0.1.1/24", "2001:db8:1::1/64"}},
	{3, 2, true, {"10.0.2.1/24", "2001:db8:2::1/64"}},
	{4, 3, true, {"10.0.3.1/24", "2001:db8:3::1/64"}},
	{5, 4, true, {"10.0.4.1/24", "2001:db8:4::1/64"}},
	{6, 0, true, {NULL, NULL}},
};
#define N_LAB (sizeof(lab) / sizeof(lab[0]))

static struct rig *
lab_rig(void)
{
	struct rig *g = rig_new();

	for (unsigned int i = 0; i < N_LAB; i++) {
		rig_link(g, lab[i].ifindex, (uint16_t)lab[i].ifidx, true);
		for (unsigned int v = 0; v < 2; v++)
			if (lab[i].addr[v] != NULL)
				rig_addr(g, lab[i].ifindex, lab[i].addr[v], false);
	}
	rig_settle(g);
	return g;
}

static void
lab_model(struct model *m)
{
	memset(m, 0, sizeof(*m));
	memcpy(m->link, lab, sizeof(lab));
	m->n_link = N_LAB;
	m->session = 1;
}

static void
set_link(struct rig *g, struct model *m, unsigned int at, bool up)
{
	rig_link(g, lab[at].ifindex, (uint16_t)lab[at].ifidx, up);
	m->link[at].up = up;
	rig_settle(g);
}

static void
feed(struct stream *s, const uint8_t *p, size_t len)
{
	assert_int_equal(stream_feed(s, p, len), 0);
	rig_go(s->g);
}

/* Feed a capture in two pieces, cut at `cut`, to a rig without routes of zebra. */
static void
feed_in_two(struct rig *g, const struct capture *c, size_t cut)
{
	struct stream s;

	stream_open(&s, g);
	feed(&s, c->bin, cut);
	feed(&s, c->bin + cut, c->len - cut);
	assert_int_equal(s.n_rest, 0);
	assert_int_equal(s.decoded.malformed, 0);
	stream_close(&s);
	rig_settle(g);
}

static void
every_capture_leads_to_the_state_of_its_decode(void **state)
{
	unsigned long routes = 0;

	if (captures.n == 0)
		skip();
	for (size_t i = 0; i < captures.n; i++) {
		struct capture *c = &captures.v[i];
		struct rig *g = lab_rig();
		struct model m;

		lab_model(&m);
		read_capture(&m, c);
		feed_in_two(g, c, c->len);
		assert_rig_is(g, &m, c->name);
		routes += m.n_route;
		/*
		 * Rule 8 of doc/fpm.md: zebra sends nothing when a link changes, and the
		 * other routes stay.
		 */
		for (unsigned int at = 0; at < N_LAB; at++) {
			set_link(g, &m, at, false);
			assert_rig_is(g, &m, c->name);
			set_link(g, &m, at, true);
			assert_rig_is(g, &m, c->name);
		}
		stream_withdraw_all(g);
		model_free(&m);
		rig_free(g);
	}
	print_message("%zu captures, %lu routes\n", captures.n, routes);
}

/*
 * The cuts decide when rounds and commits happen. The RIB must have the same content in the
 * end. The fingerprint makes the comparison fast; the model is only used to name a
 * difference.
 */
static void
cut_in_two_at_every_octet_it_is_the_same(void **state)
{
	unsigned long cuts = 0;

	if (captures.n == 0)
		skip();
	for (size_t i = 0; i < captures.n; i++) {
		struct capture *c = &captures.v[i];
		struct rig *g = lab_rig();
		uint64_t want;

		feed_in_two(g, c, c->len);
		want = rig_fingerprint(g);
		stream_withdraw_all(g);
		for (size_t cut = 1 + i % CUT_STEP; cut < c->len && cut <= CUT_BYTES;
		     cut += CUT_STEP, cuts++) {
			feed_in_two(g, c, cut);
			if (rig_fingerprint(g) != want) {
				struct model m;

				print_message("%s cut at %zu\n", c->name, cut);
				lab_model(&m);
				read_capture(&m, c);
				assert_rig_is(g, &m, c->name);
			}
			assert_int_equal(rig_fingerprint(g), want);
			stream_withdraw_all(g);
		}
		rig_free(g);
	}
	print_message("%lu cuts\n", cuts);
}

static void
octet_by_octet_it_is_the_same(void **state)
{
	if (captures.n == 0)
		skip();
	for (size_t i = 0; i < captures.n; i++) {
		struct capture *c = &captures.v[i];
		struct rig *g = lab_rig();
		struct stream s;
		struct model m;

		stream_open(&s, g);
		for (size_t at = 0; at < c->len; at++)
			feed(&s, c->bin + at, 1);
		stream_close(&s);
		rig_settle(g);
		lab_model(&m);
		read_capture(&m, c);
		assert_rig_is(g, &m, c->name);
		model_free(&m);
		rig_free(g);
	}
}

static void
in_random_pieces_with_links_that_flap_it_is_the_same(void **state)
{
	struct rnd r = {0x20261121};

	if (captures.n == 0)
		skip();
	if (getenv("SEED") != NULL)
		r = rnd_seeded("rib captures");
	else
		printf("rib captures: SEED=0x%llx\n", (unsigned long long)r.s);
	for (size_t i = 0; i < captures.n * 4; i++) {
		struct capture *c = &captures.v[i / 4];
		struct rig *g = lab_rig();
		struct stream s;
		struct model m;

		lab_model(&m);
		stream_open(&s, g);
		for (size_t at = 0, n; at < c->len; at += n) {
			n = 1 + rnd_below(&r, rnd_below(&r, 2) ? 40 : 1500);
			n = n > c->len - at ? c->len - at : n;
			/* Sometimes several reads come before one round. */
			assert_int_equal(stream_feed(&s, c->bin + at, n), 0);
			if (rnd_below(&r, 3) > 0)
				rig_go(g);
			if (rnd_below(&r, 8) == 0)
				rig_settle(g);
			if (rnd_below(&r, 8) == 0)
				set_link(g, &m, rnd_below(&r, N_LAB), rnd_below(&r, 2));
		}
		stream_close(&s);
		rig_settle(g);
		read_capture(&m, c);
		assert_rig_is(g, &m, c->name);
		stream_withdraw_all(g);
		model_free(&m);
		rig_free(g);
	}
}

/*
 * Captures 01 to 17 are one connection. Before 18 the listener went away and came back. 19
 * to 25 are without next-hop ids. After each capture the state is that of all decodes so
 * far.
 */
static void
a_lab_day_of_reconnects_ends_as_its_decodes_say(void **state)
{
	static const char *const version[] = {"frr8.4.4-", "frr10.3-"};

	if (captures.n == 0)
		skip();
	for (unsigned int v = 0; v < 2; v++) {
		struct rig *g = lab_rig();
		struct stream s;
		struct model m;
		unsigned int parts = 0;

		lab_model(&m);
		stream_open(&s, g);
		for (size_t i = 0; i < captures.n; i++) {
			struct capture *c = &captures.v[i];
			const char *part = c->name + strlen(version[v]);
			bool replay = strncmp(part, "18-", 3) == 0 ||
				      strncmp(part, "19-", 3) == 0;

			if (strncmp(c->name, version[v], strlen(version[v])) != 0 ||
			    part[0] < '0' || part[0] > '2')
				continue;
			if (replay) {
				stream_close(&s);
				stream_open(&s, g);
				model_session(&m);
			}
			feed(&s, c->bin, c->len);
			read_capture(&m, c);
			rig_settle(g);
			/* During a replay no known route is removed. */
			if (replay) {
				assert_true(g->rib->session.replaying);
				rig_later(g, 10);
				model_replay_over(&m);
			}
			assert_rig_is(g, &m, c->name);
			parts++;
		}
		assert_true(parts > 20);
		stream_close(&s);
		stream_withdraw_all(g);
		model_free(&m);
		rig_free(g);
	}
}

/*
 * FRR 8.4 sends a replace as two messages in one frame. However the stream is cut, no
 * reader sees the state between the two.
 */
static void
replaces_of_a_live_stream_are_never_seen_half_done(void **state)
{
	unsigned int replaces = 0;

	if (captures.n == 0)
		skip();
	for (size_t i = 0; i < captures.n; i++) {
		struct capture *c = &captures.v[i];
		struct rig *g;
		struct stream s;

		/* The DEL of this key is at octet 8 of the frame, the NEW follows. */
		if (strstr(c->name, "07-ecmp4") == NULL || c->name[3] != '8')
			continue;
		g = lab_rig();
		rig_session(g, 7);
		rig_hop(g, 9, "10.0.4.9", 5);
		rig_route(g, "198.51.100.0/24", 9);
		rig_settle(g);
		assert_seen(g, "198.51.100.1", "10.0.4.9@4");
		stream_open(&s, g);
		s.announced = true; /* this is the session of the route */
		for (size_t at = 0; at < c->len; at++) {
			feed(&s, c->bin + at, 1);
			rig_settle(g);
			assert_string_not_equal(rig_seen(g, "198.51.100.1"), "none");
			replaces++;
		}
		assert_int_equal(s.decoded.route_dels, 1);
		stream_close(&s);
		rig_free(g);
	}
	assert_true(replaces > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_capture_leads_to_the_state_of_its_decode),
		cmocka_unit_test(octet_by_octet_it_is_the_same),
		cmocka_unit_test(cut_in_two_at_every_octet_it_is_the_same),
		cmocka_unit_test(in_random_pieces_with_links_that_flap_it_is_the_same),
		cmocka_unit_test(a_lab_day_of_reconnects_ends_as_its_decodes_say),
		cmocka_unit_test(replaces_of_a_live_stream_are_never_seen_half_done),
	};

	log_set_level(LOG_LEVEL_WARN);
	return cmocka_run_group_tests_name("rib captures", tests, captures_open,
					   captures_close);
}
