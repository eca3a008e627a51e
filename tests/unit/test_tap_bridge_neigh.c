/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel monitor for neighbors: states, resolving, resyncs, checked with the kernel.
 *
 * link: tap-bridge/
 */
#include "test_tap_bridge_model.h"

#include <sys/socket.h>

/* --- neighbors ------------------------------------------------------------------------ */

static void
a_neighbor_is_followed_through_state_mac_and_deletion(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	ip(bed, "neigh replace 192.0.2.2 lladdr 02:00:5e:00:53:0a dev t0 nud reachable");
	eventually(m, neigh_is(m, "192.0.2.2", NUD_REACHABLE, mac_a));
	ip(bed, "neigh replace 192.0.2.2 lladdr 02:00:5e:00:53:0b dev t0 nud reachable");
	eventually(m, neigh_is(m, "192.0.2.2", NUD_REACHABLE, mac_b));
	ip(bed, "neigh change 192.0.2.2 dev t0 nud stale");
	eventually(m, neigh_is(m, "192.0.2.2", NUD_STALE, mac_b));
	ip(bed, "neigh del 192.0.2.2 dev t0");
	eventually(m, find_neigh(m, "192.0.2.2") == NULL);

	ip(bed, "neigh replace 2001:db8::2 lladdr 02:00:5e:00:53:0b dev t0 nud reachable");
	eventually(m, neigh_is(m, "2001:db8::2", NUD_REACHABLE, mac_b));
	assert_int_equal(find_neigh(m, "2001:db8::2")->family, 6);
	unwatch(m);
}

static const uint8_t mac_of_cluster[6] = {0x03, 0xbf, 0x0a, 0x00, 0x00, 0x01};

static void
the_kernels_own_noarp_entries_are_left_out_static_ones_are_not(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	/*
	 * The link's own multicast reports leave entries for groups in state NOARP. The
	 * kernel does not announce these entries.
	 */
	for (int64_t end = now_ms() + PATIENCE_MS; now_ms() < end;)
		if (run("ip -n %s neigh show nud noarp | grep -q ^ff02:", bed->netns) == 0)
			break;
	ip(bed, "neigh show nud noarp | grep -q ^ff02:");
	ip(bed, "neigh add 192.0.2.2 lladdr 02:00:5e:00:53:0b dev t0 nud noarp");
	eventually(m, neigh_is(m, "192.0.2.2", NUD_NOARP, mac_b));

	/* A cluster of servers may have the MAC of a group. */
	ip(bed, "neigh replace 192.0.2.2 lladdr 03:bf:0a:00:00:01 dev t0 nud noarp");
	eventually(m, neigh_is(m, "192.0.2.2", NUD_NOARP, mac_of_cluster));

	assert_int_equal(kmon_resync(m->km), 0);
	assert_int_equal(m->n_neighs, 1);
	unwatch(m);
}

static bool
is_arp_request(const uint8_t *frame, size_t len)
{
	static const uint8_t target[4] = {192, 0, 2, 9};

	return len >= 42 && frame[12] == 0x08 && frame[13] == 0x06 && frame[21] == 1 &&
	       memcmp(frame + 38, target, 4) == 0;
}

static bool
is_neighbor_solicitation(const uint8_t *frame, size_t len)
{
	/* ICMPv6 type 135 for a target that ends in ::9 */
	return len >= 78 && frame[12] == 0x86 && frame[13] == 0xdd && frame[20] == 58 &&
	       frame[54] == 135 && frame[77] == 9;
}

/* Resolve 192.0.2.9. Copy the kernel's request into `frame`. */
static void
resolve_9(struct bed *bed, struct model *m, uint8_t frame[2048])
{
	assert_int_equal(kmon_resolve(m->km, bed->tap.ifindex, 4, ip_octets("192.0.2.9")),
			 0);
	assert_true(tap_read_until(&bed->tap, frame, 2048, is_arp_request) > 0);
}

static void
resolve_makes_the_kernel_send_arp_and_ends_in_failed(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	uint8_t frame[2048];

	resolve_9(bed, m, frame);
	eventually(m, neigh_is(m, "192.0.2.9", NUD_FAILED, NULL));
	unwatch(m);
}

static void
resolve_makes_the_kernel_send_ns_and_ends_in_failed(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	uint8_t frame[2048];

	/* A solicitation needs a link-local address as its source. */
	eventually(m, has_usable_link_local(m));
	assert_int_equal(kmon_resolve(m->km, bed->tap.ifindex, 6, ip_octets("2001:db8::9")),
			 0);

	assert_true(tap_read_until(&bed->tap, frame, sizeof(frame),
				   is_neighbor_solicitation) > 0);
	eventually(m, neigh_is(m, "2001:db8::9", NUD_FAILED, NULL));
	unwatch(m);
}

static void
every_failed_resolve_is_reported(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	for (unsigned int i = 1; i <= 3; i++) {
		assert_int_equal(
			kmon_resolve(m->km, bed->tap.ifindex, 4, ip_octets("192.0.2.9")),
			0);
		eventually(m, m->n_failed >= i);
	}
	unwatch(m);
}

static void
a_question_that_is_deleted_has_not_failed_and_is_asked_again(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	uint8_t frame[2048];

	resolve_9(bed, m, frame);
	ip(bed, "neigh del 192.0.2.9 dev t0");

	assert_false(kmon_has_failed(m->km, bed->tap.ifindex, 4, ip_octets("192.0.2.9")));
	assert_true(tap_read_until(&bed->tap, frame, sizeof(frame), is_arp_request) > 0);

	eventually(m, neigh_is(m, "192.0.2.9", NUD_FAILED, NULL));
	assert_true(kmon_has_failed(m->km, bed->tap.ifindex, 4, ip_octets("192.0.2.9")));
	unwatch(m);
}

static void
a_resolve_that_is_answered_ends_in_reachable(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	uint8_t frame[2048], reply[42];

	resolve_9(bed, m, frame);
	memcpy(reply, frame, sizeof(reply));
	memcpy(reply, mac_a, 6);
	memcpy(reply + 6, mac_b, 6);
	reply[21] = 2;
	memcpy(reply + 22, mac_b, 6);
	memcpy(reply + 28, frame + 38, 4);
	memcpy(reply + 32, frame + 22, 10);
	assert_int_equal(tap_write(&bed->tap, reply, sizeof(reply)), 0);

	eventually(m, neigh_is(m, "192.0.2.9", NUD_REACHABLE, mac_b));
	unwatch(m);
}

static void
resolving_a_stale_neighbor_keeps_its_mac(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	ip(bed, "neigh add 192.0.2.9 lladdr 02:00:5e:00:53:0b dev t0 nud stale");
	eventually(m, neigh_is(m, "192.0.2.9", NUD_STALE, mac_b));
	assert_int_equal(kmon_resolve(m->km, bed->tap.ifindex, 4, ip_octets("192.0.2.9")),
			 0);

	assert_int_equal(kmon_resync(m->km), 0);
	assert_true(neigh_is(m, "192.0.2.9", NUD_DELAY, mac_b));
	unwatch(m);
}

static void
resolving_a_static_neighbor_leaves_it_alone(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	unsigned int t0 = bed->tap.ifindex;

	/*
	 * The monitor does not know these entries yet, because no dispatch comes in
	 * between.
	 */
	ip(bed, "neigh add 192.0.2.7 lladdr 02:00:5e:00:53:0b dev t0 nud permanent");
	ip(bed, "neigh add 192.0.2.8 lladdr 02:00:5e:00:53:0b dev t0 nud noarp");
	assert_int_equal(kmon_resolve(m->km, t0, 4, ip_octets("192.0.2.7")), 0);
	/* The kernel announces no entry that it made itself with state NOARP. */
	assert_int_equal(kmon_resolve(m->km, t0, 4, ip_octets("192.0.2.8")), 1);
	assert_true(neigh_is(m, "192.0.2.8", NUD_NOARP, mac_b));

	assert_int_equal(kmon_resync(m->km), 0);
	assert_true(neigh_is(m, "192.0.2.7", NUD_PERMANENT, mac_b));
	assert_true(neigh_is(m, "192.0.2.8", NUD_NOARP, mac_b));
	unwatch(m);
}

/*
 * Like Linux, solicit entries that are externally learned or managed when a packet needs
 * them. Otherwise a failed entry would stay failed.
 */
static void
resolving_an_external_neighbor_keeps_its_flags(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	unsigned int t0 = bed->tap.ifindex;

	ip(bed,
	   "neigh add 192.0.2.8 lladdr 02:00:5e:00:53:0b dev t0 nud stale extern_learn");
	ip(bed, "neigh add 192.0.2.9 dev t0 nud failed extern_learn");
	ip(bed, "neigh add 192.0.2.10 dev t0 nud failed managed");
	for (unsigned int i = 0; i < 3; i++) {
		static const char *const addr[] = {"192.0.2.8", "192.0.2.9", "192.0.2.10"};

		assert_int_equal(kmon_resolve(m->km, t0, 4, ip_octets(addr[i])), 0);
	}

	assert_int_equal(kmon_resync(m->km), 0);
	assert_true(neigh_is(m, "192.0.2.8", NUD_DELAY, mac_b));
	assert_int_equal(find_neigh(m, "192.0.2.9")->nud, NUD_INCOMPLETE);
	assert_int_equal(find_neigh(m, "192.0.2.10")->nud, NUD_INCOMPLETE);
	ip(bed, "neigh show 192.0.2.8 | grep -q extern_learn");
	ip(bed, "neigh show 192.0.2.9 | grep -q extern_learn");
	ip(bed, "neigh show 192.0.2.10 | grep -q managed");

	/*
	 * The entries stay, although the neighbors do not answer: another program made
	 * them.
	 */
	assert_int_equal(kmon_forget(m->km, t0, 4, ip_octets("192.0.2.9")), 0);
	assert_int_equal(kmon_forget(m->km, t0, 4, ip_octets("192.0.2.10")), 0);
	ip(bed, "neigh show 192.0.2.9 | grep -q extern_learn");
	ip(bed, "neigh show 192.0.2.10 | grep -q managed");
	unwatch(m);
}

static void
on_a_link_of_arp_off_a_neighbor_has_the_mac_of_the_link(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	unsigned int t0 = bed->tap.ifindex;

	ip(bed, "link set t0 address 02:00:5e:00:53:0a arp off");
	eventually(m, find_link(m, "t0")->arp_off);
	assert_int_equal(kmon_resolve(m->km, t0, 4, ip_octets("192.0.2.9")), 1);
	assert_true(neigh_is(m, "192.0.2.9", NUD_NOARP, mac_a));
	assert_int_equal(kmon_resolve(m->km, t0, 6, ip_octets("2001:db8::9")), 1);
	assert_true(neigh_is(m, "2001:db8::9", NUD_NOARP, mac_a));

	/* The kernel deletes the entries. */
	ip(bed, "link set t0 arp on");
	eventually(m, find_neigh(m, "192.0.2.9") == NULL && !find_link(m, "t0")->arp_off);
	unwatch(m);
}

/* The monitor does not know `arp off` yet: the next call reports the neighbor. */
static void
a_neighbor_of_a_link_that_is_just_set_arp_off_is_reported_later(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	unsigned int t0 = bed->tap.ifindex;

	ip(bed, "link set t0 address 02:00:5e:00:53:0a arp off");
	assert_int_equal(kmon_resolve(m->km, t0, 4, ip_octets("192.0.2.9")), 0);
	eventually(m, find_link(m, "t0")->arp_off);
	assert_int_equal(kmon_resolve(m->km, t0, 4, ip_octets("192.0.2.9")), 1);
	assert_true(neigh_is(m, "192.0.2.9", NUD_NOARP, mac_a));
	unwatch(m);
}

/*
 * kmon_resolve() sends a lookup and a request. Only with `arp off` a second lookup follows.
 */
static void
resolving_takes_two_messages(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	struct kmon_stats before, after;

	kmon_stats(m->km, &before);
	assert_int_equal(kmon_resolve(m->km, bed->tap.ifindex, 4, ip_octets("192.0.2.9")),
			 0);
	kmon_stats(m->km, &after);
	assert_int_equal(after.requests - before.requests, 2);
	unwatch(m);
}

static void
resolving_nonsense_is_refused(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	assert_int_equal(kmon_resolve(m->km, 4711, 4, ip_octets("192.0.2.9")), -ENODEV);
	assert_int_equal(kmon_resolve(m->km, 0, 4, ip_octets("192.0.2.9")), -EINVAL);
	assert_int_equal(kmon_resolve(m->km, bed->tap.ifindex, 5, ip_octets("192.0.2.9")),
			 -EINVAL);
	unwatch(m);
}

/* --- resync --------------------------------------------------------------------------- */

/* Change `count` neighbors 10.x.y.z of t0 in one run of ip(8). */
static void
batch_neighbors(struct bed *bed, const char *verb, int count, const char *rest)
{
	char command[128];
	FILE *pipe;

	snprintf(command, sizeof(command), "ip -n %s -batch -", bed->netns);
	pipe = popen(command, "w");
	assert_non_null(pipe);
	for (int i = 0; i < count; i++)
		fprintf(pipe, "neigh %s 198.18.%d.%d dev t0 %s\n", verb, i / 200,
			i % 200 + 1, rest);
	assert_int_equal(pclose(pipe), 0);
}

static void
a_resync_without_changes_reports_none(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	struct kmon_stats st;

	/* Handle the events that came meanwhile. */
	assert_int_equal(kmon_resync(m->km), 0);
	assert_int_equal(kmon_resync(m->km), 0);
	kmon_stats(m->km, &st);
	assert_int_equal(st.resyncs, 2);
	assert_int_equal(st.last_resync_changes, 0);
	unwatch(m);
}

static void
an_overrun_is_noticed_and_made_good(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	struct kmon_stats st;
	int tiny = 1;

	ip(bed, "link add t1 type dummy 2>/dev/null || ip -n %s tuntap add t1 mode tap",
	   bed->netns);
	ip(bed, "link set t1 up");
	ip(bed, "addr add 203.0.113.1/24 dev t1");
	ip(bed, "neigh add 203.0.113.2 lladdr 02:00:5e:00:53:0a dev t1 nud permanent");
	ip(bed, "neigh add 192.0.2.2 lladdr 02:00:5e:00:53:0a dev t0 nud permanent");
	ip(bed, "neigh add 192.0.2.3 lladdr 02:00:5e:00:53:0a dev t0 nud permanent");
	eventually(m, find_neigh(m, "203.0.113.2") && find_neigh(m, "192.0.2.3"));
	assert_int_equal(
		setsockopt(kmon_fd(m->km), SOL_SOCKET, SO_RCVBUF, &tiny, sizeof(tiny)), 0);

	batch_neighbors(bed, "add", 300, "lladdr 02:00:5e:00:53:0b nud permanent");
	ip(bed, "link del t1");
	/*
	 * Add an address before the other is deleted, because a link without an IPv4
	 * address loses its neighbors.
	 */
	ip(bed, "addr add 198.51.100.1/24 dev t0");
	ip(bed, "addr del 192.0.2.1/24 dev t0");
	ip(bed, "neigh del 192.0.2.2 dev t0");
	ip(bed, "neigh replace 192.0.2.3 lladdr 02:00:5e:00:53:0b dev t0 nud permanent");
	ip(bed, "link set t0 mtu 1400");
	eventually(m, find_link(m, "t0")->mtu_bytes == 1400);

	kmon_stats(m->km, &st);
	assert_true(st.resyncs >= 1);
	assert_true(st.last_resync_changes >= 300);
	assert_null(find_link(m, "t1"));
	assert_null(find_addr(m, "203.0.113.1", 24));
	assert_null(find_neigh(m, "203.0.113.2"));
	assert_null(find_addr(m, "192.0.2.1", 24));
	assert_null(find_neigh(m, "192.0.2.2"));
	assert_true(neigh_is(m, "192.0.2.3", NUD_PERMANENT, mac_b));
	assert_int_equal(m->n_neighs, 301);
	assert_model_is_the_kernels(m, bed);
	unwatch(m);
}

static void
events_after_an_overrun_arrive_again(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	struct kmon_stats st;
	int tiny = 1;

	assert_int_equal(
		setsockopt(kmon_fd(m->km), SOL_SOCKET, SO_RCVBUF, &tiny, sizeof(tiny)), 0);
	batch_neighbors(bed, "add", 100, "lladdr 02:00:5e:00:53:0b nud permanent");
	eventually(m, m->n_neighs == 100);
	kmon_stats(m->km, &st);

	ip(bed, "neigh del 198.18.0.1 dev t0");
	eventually(m, m->n_neighs == 99);
	assert_true(st.resyncs >= 1);
	assert_model_is_the_kernels(m, bed);
	unwatch(m);
}

static void
thousands_of_neighbors_are_followed_without_overrun(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);
	struct kmon_stats st;

	batch_neighbors(bed, "add", 3000, "lladdr 02:00:5e:00:53:0b nud permanent");
	eventually(m, m->n_neighs == 3000);
	batch_neighbors(bed, "del", 2900, "");
	eventually(m, m->n_neighs == 100);

	kmon_stats(m->km, &st);
	assert_int_equal(st.resyncs, 0);
	assert_model_is_the_kernels(m, bed);
	unwatch(m);
}

static void
a_callback_may_resolve_in_the_middle_of_a_resync(void **state)
{
	struct bed *bed = bed_of(state);
	struct model *m = watched_tap(bed);

	/*
	 * There are so many neighbors that the dump takes several messages. They are
	 * permanent, because the kernel drops other entries when the machine has many. The
	 * monitor looks them up and does not solicit them.
	 */
	batch_neighbors(bed, "add", 900, "lladdr 02:00:5e:00:53:0b nud permanent");
	m->resolve_in_callback = true;
	assert_int_equal(kmon_resync(m->km), 0);
	m->resolve_in_callback = false;

	assert_int_equal(m->n_neighs, 900);
	unwatch(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_neighbor_is_followed_through_state_mac_and_deletion),
		bed_test(the_kernels_own_noarp_entries_are_left_out_static_ones_are_not),
		bed_test(resolve_makes_the_kernel_send_arp_and_ends_in_failed),
		bed_test(resolve_makes_the_kernel_send_ns_and_ends_in_failed),
		bed_test(every_failed_resolve_is_reported),
		bed_test(a_question_that_is_deleted_has_not_failed_and_is_asked_again),
		bed_test(a_resolve_that_is_answered_ends_in_reachable),
		bed_test(resolving_a_stale_neighbor_keeps_its_mac),
		bed_test(resolving_a_static_neighbor_leaves_it_alone),
		bed_test(resolving_an_external_neighbor_keeps_its_flags),
		bed_test(on_a_link_of_arp_off_a_neighbor_has_the_mac_of_the_link),
		bed_test(a_neighbor_of_a_link_that_is_just_set_arp_off_is_reported_later),
		bed_test(resolving_takes_two_messages),
		bed_test(resolving_nonsense_is_refused),
		bed_test(a_resync_without_changes_reports_none),
		bed_test(an_overrun_is_noticed_and_made_good),
		bed_test(events_after_an_overrun_arrive_again),
		bed_test(thousands_of_neighbors_are_followed_without_overrun),
		bed_test(a_callback_may_resolve_in_the_middle_of_a_resync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
