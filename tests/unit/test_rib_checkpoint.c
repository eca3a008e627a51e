/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routes of a daemon that died, in the next daemon: restored, compared with the replay,
 * and refused if the checkpoint is damaged or does not fit.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c
 */
#include "ckpt_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log_said.h"
#include "oracle.h"
#include "base/clock.h"
#include "rib/restore.h"

static int
taught(void)
{
	struct rig *g = rig_begun(-1, NETNS);

	ckpt_teach(g);
	return ckpt_of_killed(g);
}

static void
restored_routes_are_in_force_before_zebra_connects(void **state)
{
	struct rig *g = rig_begun(taught(), NETNS);

	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "2001:db8:77::1", "192.0.2.129@2");
	assert_seen(g, "203.0.113.1", "192.0.2.129@2*3072 192.0.2.1@1*1024");
	assert_seen(g, "198.51.100.129", "blackhole");
	assert_seen(g, "203.0.113.129", "192.0.2.2@1 mtu 1400");
	assert_seen(g, "192.0.2.126", "local");
	assert_int_equal(g->rib->count.restored, 6);
	assert_int_equal(g->rib->count.restore_lost, 0);
	rig_free(g);
}

static void
a_replay_adopts_restored_routes_and_sweeps_the_rest(void **state)
{
	struct rig *g = rig_begun(taught(), NETNS);
	uint64_t writes = g->rib->count.trie_writes;

	rig_session(g, 100);
	rig_hop(g, 1007, "192.0.2.1", 11); /* ids may differ; only the content counts */
	rig_route(g, "198.51.100.0/24", 1007);
	rig_route_type(g, "198.51.100.128/25", RTN_BLACKHOLE);
	rig_go(g);
	assert_int_equal(g->rib->count.trie_writes, writes);
	assert_seen(g, "203.0.113.129", "192.0.2.2@1 mtu 1400");
	rig_sentinel(g);
	rig_go(g);

	assert_int_equal(g->rib->count.swept_routes, 3);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_seen(g, "198.51.100.129", "blackhole");
	assert_seen(g, "203.0.113.129", "none");
	rig_free(g);
}

static void
a_restored_checkpoint_is_one_itself(void **state)
{
	struct rig *g = rig_begun(ckpt_of_killed(rig_begun(taught(), NETNS)), NETNS);

	assert_int_equal(g->rib->count.restored, 6);
	assert_seen(g, "203.0.113.1", "192.0.2.129@2*3072 192.0.2.1@1*1024");
	rig_free(g);
}

static void
withdrawn_and_changed_routes_are_not_restored_as_they_were(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);

	ckpt_teach(g);
	rig_del(g, "198.51.100.0/24");
	rig_hop(g, 7, "192.0.2.3", 11); /* late binding: no route changes */
	rig_route(g, "2001:db8:77::/48", 7);
	rig_go(g);
	rig_settle(g);
	g = rig_begun(ckpt_of_killed(g), NETNS);

	assert_seen(g, "198.51.100.1", "none");
	assert_seen(g, "2001:db8:77::1", "192.0.2.3@1");
	assert_seen(g, "203.0.113.1", "192.0.2.129@2*3072 192.0.2.3@1*1024");
	assert_int_equal(g->rib->count.restored, 5);
	rig_free(g);
}

static void
a_restart_of_zebra_differs_from_a_reconnect(void **state)
{
	struct rig *g = rig_begun(taught(), NETNS);

	rig_session(g, 100);
	rig_go(g);
	assert_false(g->rib->session.restarted);
	rig_free(g);

	g = rig_begun(taught(), NETNS);
	rig_session(g, 200);
	rig_go(g);
	assert_true(g->rib->session.restarted);
	rig_free(g);
}

/*
 * fpm reports zebra's port id and its hold (FPM_ZEBRA), and the fpm of the next daemon gets
 * them. The test ends two daemons; the second one gets no report.
 */
static void
zebras_port_id_and_its_hold_are_kept(void **state)
{
	struct rig *g = rig_begun(taught(), NETNS);
	struct fpm_event *ev = rig_event(g, FPM_ZEBRA);

	assert_int_equal(fpm_status.old_nl_pid, 100);
	assert_int_equal(fpm_status.old_held_until_s, 0);
	ev->session.nl_pid = 300;
	ev->session.held_until_s = 4711;
	rig_go(g);
	for (unsigned int end = 0; end < 2; end++) {
		g = rig_begun(ckpt_of_killed(g), NETNS);
		assert_int_equal(fpm_status.old_nl_pid, 300);
		assert_int_equal(fpm_status.old_held_until_s, 4711);
	}
	rig_session(g, 300); /* the known zebra is connected */
	rig_go(g);
	assert_false(g->rib->session.restarted);
	g = rig_begun(ckpt_of_killed(g), NETNS);
	assert_int_equal(fpm_status.old_nl_pid, 300);
	assert_int_equal(fpm_status.old_held_until_s, 0);
	rig_free(g);
}

/* --- checkpoints that are refused ----------------------------------------------------- */

static struct ckpt_route *
nth(struct ckpt *c, unsigned int n)
{
	return ckpt_nth(c, CKPT_MAIN, n);
}

static void
refused(int fd, uint64_t netns, uint64_t at_ms, const char *want)
{
	const char *why = NULL;
	struct ckpt *c = ckpt_open(dup(fd), netns, at_ms, 60000, &why);

	assert_null(c);
	assert_string_equal(why, want);
}

static void
other_versions_places_and_times_are_refused(void **state)
{
	int fd = taught(), null = open("/dev/null", O_RDWR);
	struct ckpt *c = ckpt_opened(fd);
	const char *why = NULL;

	refused(null, NETNS, boottime_ms(), "not a checkpoint");
	refused(fd, NETNS + 1, boottime_ms(), "interfaces of another namespace");
	refused(fd, NETNS, boottime_ms() + 61000, "too old");
	refused(fd, NETNS, c->head->alive_ms - 61000, "too old");
	/* A predecessor still writes after its successor has read the clock. */
	ckpt_free(ckpt_open(dup(fd), NETNS, c->head->alive_ms - 1, 60000, &why));
	assert_null(why);
	c->head->layout++;
	refused(fd, NETNS, boottime_ms(), "layout of another version");
	c->head->layout = 1; /* without VRFs */
	refused(fd, NETNS, boottime_ms(), "layout of another version");
	c->head->layout = 2; /* a file of this layout is shorter */
	refused(fd, NETNS, boottime_ms(), "not a checkpoint");
	c->head->layout = CKPT_LAYOUT;
	c->head->attempts = 3;
	refused(fd, NETNS, boottime_ms(), "crash at each start with it");
	c->head->attempts = 0;
	rib_checkpoint_reset_attempts(fd, 0); /* as after a start that did not read it */
	assert_int_equal(c->head->attempts, 0);
	ckpt_free(ckpt_opened(fd));
	ckpt_free(c);
	close(fd);
	close(null);
}

/* Return the blocks of 512 octets that the file uses. */
static long
blocks_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (long)st.st_blocks;
}

static void
three_starts_that_crash_are_enough(void **state)
{
	long page = sysconf(_SC_PAGESIZE) / 512;
	int fd = taught();
	const char *why;

	for (int i = 0; i < 3; i++) {
		struct ckpt *c = ckpt_open(dup(fd), NETNS, boottime_ms(), 60000, &why);

		assert_non_null(c);
		ckpt_free(c);
	}
	refused(fd, NETNS, boottime_ms(), "crash at each start with it");
	assert_int_equal(rib_checkpoint_attempts(fd), 3);
	/* The start that crashed for another reason did not read the checkpoint. */
	rib_checkpoint_reset_attempts(fd, 3);
	refused(fd, NETNS, boottime_ms(), "crash at each start with it");
	/* The start before it crashed for another reason. */
	rib_checkpoint_reset_attempts(fd, 2);
	ckpt_empty_if_tried(fd);
	ckpt_free(ckpt_open(dup(fd), NETNS, boottime_ms(), 60000, &why));
	assert_null(why);
	assert_true(blocks_of(fd) > page);
	ckpt_empty_if_tried(fd);
	assert_int_equal(blocks_of(fd), page); /* the header */
	refused(fd, NETNS, boottime_ms(), "crash at each start with it");
	close(fd);
}

static void
a_file_of_another_size_is_refused(void **state)
{
	int fd = taught();
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	for (off_t bytes = 0; bytes <= 1 << 20; bytes = bytes * 8 + 1) {
		assert_int_equal(ftruncate(fd, bytes), 0);
		refused(fd, NETNS, boottime_ms(), "not a checkpoint");
	}
	assert_int_equal(ftruncate(fd, st.st_size + 1), 0);
	refused(fd, NETNS, boottime_ms(), "not a checkpoint");
	/* The right size, but the content is lost. */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(fd, st.st_size), 0);
	refused(fd, NETNS, boottime_ms(), "not a checkpoint");
	close(fd);
}

/* An older version was smaller and had other fields behind the layout number. */
static void
an_older_version_of_any_size_is_recognized(void **state)
{
	int fd = taught();
	struct ckpt *c = ckpt_opened(fd);

	c->head->layout = 1;
	ckpt_free(c);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	refused(fd, NETNS, boottime_ms(), "layout of another version");
	assert_int_equal(ftruncate(fd, 4), 0);
	refused(fd, NETNS, boottime_ms(), "not a checkpoint");
	close(fd);
}

static void
each_octet_of_the_header_counts(void **state)
{
	int fd = taught();
	struct ckpt *c = ckpt_opened(fd);
	uint8_t *octet = (uint8_t *)c->head;
	uint32_t high;

	for (size_t i = 0; i < offsetof(struct ckpt_header, attempts); i++) {
		const char *why;
		struct ckpt *got;

		octet[i] ^= 0x10;
		got = ckpt_open(dup(fd), NETNS, boottime_ms(), 60000, &why);
		assert_null(got);
		octet[i] ^= 0x10;
	}
	c->head->n_routes[CKPT_MAIN] += 2;
	refused(fd, NETNS, boottime_ms(), "damaged routes");
	c->head->n_routes[CKPT_MAIN] -= 4;
	refused(fd, NETNS, boottime_ms(), "damaged routes");
	c->head->n_routes[CKPT_MAIN] += 2;
	c->head->n_slots += 2;
	refused(fd, NETNS, boottime_ms(), "damaged next hops");
	c->head->n_slots -= 2;
	c->head->attempts = 0;
	high = c->head->route_high[CKPT_MAIN];
	c->head->route_high[CKPT_MAIN] = ~0u;
	refused(fd, NETNS, boottime_ms(), "damaged header");
	c->head->route_high[CKPT_MAIN] = 2;
	refused(fd, NETNS, boottime_ms(), "damaged routes");
	/*
	 * A number of records that were never written: reading them would cost seconds and
	 * gigabytes.
	 */
	c->head->route_high[CKPT_MAIN] = 60000000;
	refused(fd, NETNS, boottime_ms(), "damaged header");
	c->head->route_high[CKPT_MAIN] = high;
	c->head->hop_high += 1000000;
	refused(fd, NETNS, boottime_ms(), "damaged header");
	c->head->hop_high -= 1000000;
	c->head->route_high[CKPT_OTHER] = 1; /* this array was never written */
	refused(fd, NETNS, boottime_ms(), "damaged header");
	c->head->route_high[CKPT_OTHER] = 0;
	c->head->n_routes[CKPT_OTHER] = 2;
	refused(fd, NETNS, boottime_ms(), "damaged routes");
	c->head->n_routes[CKPT_OTHER] = 0;
	c->head->attempts = 0;
	ckpt_free(ckpt_opened(fd));
	ckpt_free(c);
	close(fd);
}

static void
each_octet_of_a_record_counts(void **state)
{
	int fd = taught();
	struct ckpt *c = ckpt_opened(fd);

	ckpt_octets_count(fd, (uint8_t *)nth(c, 1), (uint8_t *)nth(c, 3),
			  sizeof(struct ckpt_route));
	ckpt_octets_count(fd, (uint8_t *)&c->hop[2], (uint8_t *)&c->hop[3],
			  sizeof(c->hop[2]));
	ckpt_free(c);
	close(fd);
}

static void
records_that_changed_places_are_not_believed(void **state)
{
	int fd = taught();
	struct ckpt *c = ckpt_opened(fd);
	struct ckpt_route *one = nth(c, 1), *other = nth(c, 2), was = *one;
	const char *why;

	*one = *other;
	*other = was;
	assert_null(ckpt_open(dup(fd), NETNS, boottime_ms(), 60000, &why));
	assert_string_equal(why, "damaged routes");
	ckpt_free(c);
	close(fd);
}

static void
a_refused_one_is_counted_and_the_start_is_a_plain_one(void **state)
{
	int fd = taught();
	struct ckpt *c = ckpt_opened(fd);
	struct rig *g;

	memset(nth(c, 1), 0xff, 4 * sizeof(struct ckpt_route));
	ckpt_free(c);
	g = rig_begun(fd, NETNS);

	assert_int_equal(g->rib->count.restore_refused, 1);
	assert_int_equal(g->rib->count.restored, 0);
	assert_int_equal(log_said("rib: checkpoint discarded reason=\"damaged routes\""),
			 1);
	assert_seen(g, "198.51.100.1", "none");
	ckpt_teach(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	rig_free(g);
}

static void
kills_between_two_stores_cost_a_record_at_most(void **state)
{
	int fd = taught();
	struct ckpt *c = ckpt_opened(fd);
	struct rig *g;

	/* The state that a daemon leaves if it is killed within ckpt_put_route(). */
	nth(c, 1)->crc = 0;
	c->head->n_routes[CKPT_MAIN]--;
	ckpt_free(c);
	g = rig_begun(fd, NETNS);
	assert_int_equal(g->rib->count.restored, 5);
	assert_seen(g, "198.51.100.1", "none");
	assert_seen(g, "203.0.113.129", "192.0.2.2@1 mtu 1400");
	rig_free(g);
}

static void
a_slot_half_written_has_its_old_content(void **state)
{
	struct nh_list two = {0}, got = {0};
	struct ckpt *c = ckpt_new(NETNS), *old;
	struct ckpt_hop first[2];
	const char *why;
	uint32_t at = 0, mtu;

	*nh_list_push(&two) = (struct next_hop){.ifindex = 1, .weight = 1};
	*nh_list_push(&two) = (struct next_hop){.ifindex = 2, .weight = 1};
	ckpt_alive(c, boottime_ms());
	ckpt_put_slot(c, 5, &two, 0, NULL);
	memcpy(first, &c->hop[1], sizeof(first));
	two.v[0].ifindex = 9;
	ckpt_put_slot(c, 5, &two, 0, NULL); /* next hops 3 and 4 */
	/*
	 * The state before the last steps: the old set exists, and the first next hop of
	 * the new set.
	 */
	memcpy(&c->hop[1], first, sizeof(first));
	memset(&c->hop[4], 0, sizeof(c->hop[4]));

	old = ckpt_open(dup(c->fd), NETNS, boottime_ms(), 60000, &why);
	assert_non_null(old);
	assert_int_equal(ckpt_next_slot(old, &at, &got, &mtu), 5);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.v[0].ifindex, 1);
	assert_int_equal(got.v[1].ifindex, 2);
	assert_int_equal(ckpt_next_slot(old, &at, &got, &mtu), 0);
	ckpt_free(old);
	ckpt_free(c);
	free(two.v);
	free(got.v);
}

/* After any number of random changes, the checkpoint has the routes that exist then. */
static void
random_changes_are_all_there(void **state)
{
	enum { N = 300 };
	struct rnd r = {20261121};
	/* The same numbers in main, in another table and among the kernel's routes. */
	uint32_t route[CKPT_PARTS][N + 1] = {0}, slot[N + 1] = {0};
	struct ckpt *c = ckpt_new(NETNS);
	struct nh_list hops = {0};

	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t k = 1 + rnd_below(&r, N), n = 1 + rnd_below(&r, 4);
		unsigned int part = rnd_below(&r, CKPT_PARTS);
		struct ckpt_route cr = {.addr = ipaddr_from_v4(k),
					.family = 4,
					.len = 32,
					.protocol = 186,
					.rtm_type = RTN_UNICAST,
					.table = part == CKPT_MAIN ? RIB_TABLE_MAIN : 100};

		switch (rnd_below(&r, 4)) {
		case 0:
			cr.slot = route[part][k] = 1 + rnd_below(&r, N);
			if (part == CKPT_KERNEL)
				ckpt_put_kernel(c, k, &cr,
						&(struct ckpt_kernel){.metric = cr.slot});
			else
				ckpt_put_route(c, k, &cr);
			break;
		case 1:
			route[part][k] = 0;
			if (part == CKPT_KERNEL)
				ckpt_drop_kernel(c, k);
			else
				ckpt_drop_route(c, cr.table, k);
			break;
		case 2:
			nh_list_clear(&hops);
			for (uint32_t w = 0; w < n; w++)
				*nh_list_push(&hops) =
					(struct next_hop){.ifindex = i, .weight = w + 1};
			slot[k] = i;
			ckpt_put_slot(c, k, &hops, n * 1000, NULL);
			break;
		default:
			slot[k] = 0;
			ckpt_drop_slot(c, k);
		}
		if (i % 500 == 0) {
			uint32_t seen[N + 1] = {0}, at = 0, s, mtu;
			struct ckpt *old;
			const char *why;

			ckpt_alive(c, boottime_ms());
			c->head->attempts = 0;
			old = ckpt_open(dup(c->fd), NETNS, boottime_ms(), 60000, &why);
			assert_non_null(old);
			assert_int_equal(old->n_bad, 0);
			while ((s = ckpt_next_slot(old, &at, &hops, &mtu)) != 0) {
				seen[s] = hops.v[0].ifindex;
				assert_int_equal(mtu, hops.n * 1000);
			}
			assert_memory_equal(seen, slot, sizeof(slot));
			for (uint32_t x = 0; x < CKPT_PARTS * N; x++) {
				uint32_t of = x % CKPT_PARTS, number = x / CKPT_PARTS + 1;
				const struct ckpt_route *is =
					number <= *ckpt_high(old->head, of)
						? ckpt_route(old, of, number)
						: NULL;

				assert_int_equal(is == NULL ? 0 : is->slot,
						 route[of][number]);
				if (is != NULL && of == CKPT_KERNEL)
					assert_int_equal(old->kernel[number].metric,
							 is->slot);
			}
			ckpt_free(old);
		}
	}
	free(hops.v);
	ckpt_free(c);
}

/* Routes are written in any order and read in the order of the tries, each once. */
static void
routes_are_read_by_address(void **state)
{
	enum { N = 2000 };
	struct rnd r = {4};
	struct ckpt *writer = ckpt_new(NETNS), *c;
	uint32_t last = 0, seen[2] = {0};
	uint8_t last6[4] = {0};

	for (uint32_t i = 1; i <= N; i++) {
		uint32_t x = rnd_next(&r) >> 32;
		struct ckpt_route cr = {.addr = ipaddr_from_v4(x),
					.family = i % 3 == 0 ? 6 : 4,
					.len = 32,
					.slot = i,
					.table = RIB_TABLE_MAIN};

		if (cr.family == 6)
			cr.addr.octet[0] = 0x20 | (x & 0x1f);
		ckpt_put_route(writer, i, &cr);
	}
	ckpt_alive(writer, boottime_ms());
	c = ckpt_opened(writer->fd);
	assert_int_equal(c->order[CKPT_MAIN].n[0], N - N / 3);
	assert_int_equal(c->order[CKPT_MAIN].n[1], N / 3);
	for (uint32_t i = 0; i < N - N / 3; i++) {
		const struct ckpt_route *is = ckpt_route_by_address(c, CKPT_MAIN, 0, i);

		assert_true(is->family == 4 && ipaddr_v4(&is->addr) >= last);
		last = ipaddr_v4(&is->addr);
		seen[0] += is->slot;
	}
	for (uint32_t i = 0; i < N / 3; i++) {
		const struct ckpt_route *is = ckpt_route_by_address(c, CKPT_MAIN, 1, i);

		assert_true(is->family == 6 && memcmp(is->addr.octet, last6, 4) >= 0);
		memcpy(last6, is->addr.octet, 4);
		seen[1] += is->slot;
	}
	assert_int_equal(seen[0] + seen[1], N * (N + 1) / 2);
	ckpt_free(c);
	ckpt_free(writer);
}

static void
no_checkpoint_is_written_without_a_manager(void **state)
{
	struct rig *g = rig_new();

	g->rib->conf.checkpoint_max_age_s = 60;
	checkpoint_begin(g->rib, -1);
	assert_null(g->rib->ckpt);
	rig_free(g);

	g = rig_new(); /* a checkpoint that exists is not used when the feature is off */
	checkpoint_begin(g->rib, taught());
	assert_int_equal(g->rib->count.restore_refused, 1);
	assert_int_equal(g->rib->count.restored, 0);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restored_routes_are_in_force_before_zebra_connects),
		cmocka_unit_test(a_replay_adopts_restored_routes_and_sweeps_the_rest),
		cmocka_unit_test(a_restored_checkpoint_is_one_itself),
		cmocka_unit_test(
			withdrawn_and_changed_routes_are_not_restored_as_they_were),
		cmocka_unit_test(a_restart_of_zebra_differs_from_a_reconnect),
		cmocka_unit_test(zebras_port_id_and_its_hold_are_kept),
		cmocka_unit_test(other_versions_places_and_times_are_refused),
		cmocka_unit_test(three_starts_that_crash_are_enough),
		cmocka_unit_test(a_file_of_another_size_is_refused),
		cmocka_unit_test(an_older_version_of_any_size_is_recognized),
		cmocka_unit_test(each_octet_of_the_header_counts),
		cmocka_unit_test(each_octet_of_a_record_counts),
		cmocka_unit_test(records_that_changed_places_are_not_believed),
		cmocka_unit_test(a_refused_one_is_counted_and_the_start_is_a_plain_one),
		cmocka_unit_test(kills_between_two_stores_cost_a_record_at_most),
		cmocka_unit_test(a_slot_half_written_has_its_old_content),
		cmocka_unit_test(random_changes_are_all_there),
		cmocka_unit_test(routes_are_read_by_address),
		cmocka_unit_test(no_checkpoint_is_written_without_a_manager),
	};

	return cmocka_run_group_tests_name("rib checkpoint", tests, NULL, NULL);
}
