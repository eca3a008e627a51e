/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel monitor and the forwarding database of a VXLAN device of the kernel, while
 * entries are deleted: Linux leaves other entries out of its answer.
 *
 * link: tap-bridge/
 */
#include "test_tap_bridge.h"

#include <net/if.h>

#include "tap-bridge/kmon.h"
#include "tap-bridge/netns.h"

#define N_ENTRIES 2000 /* some parts of an answer */

static struct {
	struct bed *bed;
	int n_reports;
	bool known[N_ENTRIES];
	bool deleted;
} fdb;

/* Add or delete each `step`th entry in one run of bridge(8). */
static void
entries_change(const char *verb, int step)
{
	char command[96];
	FILE *pipe;

	snprintf(command, sizeof(command), "bridge -n %s -batch -", fdb.bed->netns);
	pipe = popen(command, "w");
	assert_non_null(pipe);
	for (int i = 0; i < N_ENTRIES; i += step)
		fprintf(pipe, "fdb %s 02:00:5e:00:%02x:%02x dev vx0 dst 192.0.2.9\n", verb,
			i >> 8, i & 255);
	assert_int_equal(pclose(pipe), 0);
}

static void
on_link(void *ctx, const struct kmon_link *link, bool gone)
{
}

static void
on_vni(void *ctx, const struct kmon_vni *vni, bool gone)
{
}

/* After a quarter of the entries, change a port of a bridge. */
static void
on_entry_set_port(void *ctx, const struct kmon_fdb *entry, bool gone)
{
	int i = entry->mac[4] << 8 | entry->mac[5];

	fdb.known[i] = !gone;
	if (++fdb.n_reports == N_ENTRIES / 4)
		assert_int_equal(
			run("bridge -n %s link set dev vx0 priority 7", fdb.bed->netns), 0);
}

/* After a quarter of the entries, delete half of all. */
static void
on_entry(void *ctx, const struct kmon_fdb *entry, bool gone)
{
	int i = entry->mac[4] << 8 | entry->mac[5];

	assert_in_range(i, 0, N_ENTRIES - 1);
	fdb.known[i] = !gone;
	if (++fdb.n_reports < N_ENTRIES / 4 || fdb.deleted)
		return;
	fdb.deleted = true;
	entries_change("del", 2);
}

/* Make VXLAN device vx0 with all entries, or skip the test. */
static void
fdb_begin(void **state)
{
	memset(&fdb, 0, sizeof(fdb));
	fdb.bed = bed_of(state);
	if (run("ip -n %s link add vx0 type vxlan id 5 dstport 4789 nolearning "
		"2>/dev/null",
		fdb.bed->netns) != 0)
		skip(); /* a kernel without VXLAN */
	ip(fdb.bed, "link set vx0 up");
	entries_change("add", 1);
}

static void
known_must_be_the_kernels(void)
{
	assert_true(fdb.deleted);
	for (int i = 0; i < N_ENTRIES; i++)
		assert_int_equal(fdb.known[i], i % 2);
}

static void
deletions_during_the_first_dump_hide_no_entry(void **state)
{
	static const struct kmon_ops ops = {.on_link = on_link, .on_fdb = on_entry};
	struct kmon *km;

	fdb_begin(state);
	assert_int_equal(kmon_open(&km, fdb.bed->netns, &ops, NULL), 0);
	assert_int_equal(kmon_dispatch(km), 0);
	known_must_be_the_kernels();
	/* After lost events, too, no entry that exists is removed. */
	assert_int_equal(kmon_resync(km), 0);
	known_must_be_the_kernels();
	kmon_close(km);
}

static void
an_event_about_a_bridge_port_removes_no_entry(void **state)
{
	static const struct kmon_ops ops = {
		.on_link = on_link, .on_vni = on_vni, .on_fdb = on_entry_set_port};
	struct kmon *km;

	fdb_begin(state);
	if (run("ip -n %s link add br0 type bridge", fdb.bed->netns) != 0)
		skip(); /* a kernel without bridges */
	ip(fdb.bed, "link set vx0 master br0");
	assert_int_equal(kmon_open(&km, fdb.bed->netns, &ops, NULL), 0);
	assert_true(fdb.n_reports >= N_ENTRIES);
	for (int i = 0; i < N_ENTRIES; i++)
		assert_true(fdb.known[i]);
	kmon_close(km);
}

static int n_addresses; /* that the monitor has reported, and not as gone */

static void
on_addr(void *ctx, const struct kmon_addr *addr, bool gone)
{
	n_addresses += gone ? -1 : 1;
}

/*
 * After a quarter of the entries, add 500 addresses: more messages than the socket holds.
 */
static bool
on_wanted_add_addresses(void *ctx, unsigned int ifindex)
{
	if (++fdb.n_reports == N_ENTRIES / 4)
		assert_int_equal(run("for i in $(seq 250); do"
				     " echo addr add 10.0.0.$i/24 dev vx0;"
				     " echo addr add 10.0.1.$i/24 dev vx0;"
				     " done | ip -n %s -batch -",
				     fdb.bed->netns),
				 0);
	return true;
}

/* The owner must learn that events were lost, because no further event may come. */
static void
events_lost_during_a_resync_are_noticed(void **state)
{
	static const struct kmon_ops ops = {.on_link = on_link,
					    .on_addr = on_addr,
					    .on_fdb = on_entry,
					    .wants_fdb = on_wanted_add_addresses};
	struct kmon *km;
	int bytes = 8192;

	fdb_begin(state);
	fdb.deleted = true;        /* on_entry() deletes nothing */
	fdb.n_reports = N_ENTRIES; /* no change during the first dump */
	assert_int_equal(kmon_open(&km, fdb.bed->netns, &ops, NULL), 0);
	assert_false(kmon_is_lost(km));
	assert_int_equal(
		setsockopt(kmon_fd(km), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	fdb.n_reports = n_addresses = 0;
	(void)kmon_resync(km);
	assert_true(fdb.n_reports >= N_ENTRIES);
	assert_true(n_addresses < 500);
	assert_true(kmon_is_lost(km));
	assert_int_equal(kmon_resync(km), 0);
	assert_false(kmon_is_lost(km));
	assert_int_equal(n_addresses, 500);
	kmon_close(km);
}

/* Return the number of the device in the bed. */
static unsigned int
index_of_vx0(void)
{
	struct netns_guard guard;
	unsigned int ifindex;

	assert_int_equal(netns_enter(fdb.bed->netns, &guard), 0);
	ifindex = if_nametoindex("vx0");
	netns_leave(&guard);
	assert_true(ifindex > 0);
	return ifindex;
}

static bool is_wanted;

static bool
on_wanted(void *ctx, unsigned int ifindex)
{
	return is_wanted;
}

/* The owner wants the database of a device that it did not want before. */
static void
deletions_while_one_database_is_read_hide_no_entry(void **state)
{
	static const struct kmon_ops ops = {
		.on_link = on_link, .on_fdb = on_entry, .wants_fdb = on_wanted};
	struct kmon *km;

	fdb_begin(state);
	is_wanted = false;
	assert_int_equal(kmon_open(&km, fdb.bed->netns, &ops, NULL), 0);
	assert_int_equal(fdb.n_reports, 0);
	is_wanted = true;
	assert_int_equal(kmon_read_fdb(km, index_of_vx0()), 0);
	assert_int_equal(kmon_dispatch(km), 0);
	known_must_be_the_kernels();
	kmon_close(km);
}

static int n_left; /* entries of every_answer_is_disturbed() that may be deleted */

/* Delete an entry during each answer, which has more than 1,000 entries. */
static bool
on_wanted_delete(void *ctx, unsigned int ifindex)
{
	static int n_calls;

	if (n_calls++ % 500 == 0 && n_left > 0)
		assert_int_equal(run("bridge -n %s fdb del 02:00:5e:00:00:%02x dev vx0 "
				     "dst 192.0.2.9",
				     fdb.bed->netns, --n_left),
				 0);
	return true;
}

static void
a_database_that_changes_during_every_answer_is_read_again_later(void **state)
{
	static const struct kmon_ops ops = {
		.on_link = on_link, .on_fdb = on_entry, .wants_fdb = on_wanted_delete};
	struct kmon *km;

	fdb_begin(state);
	fdb.deleted = true; /* on_entry() deletes nothing */
	n_left = 0;
	assert_int_equal(kmon_open(&km, fdb.bed->netns, &ops, NULL), 0);
	n_left = 200;
	assert_int_equal(kmon_read_fdb(km, index_of_vx0()), -EAGAIN);
	assert_int_equal(kmon_resync(km), -EAGAIN);
	assert_true(n_left > 0);
	n_left = 0;
	assert_int_equal(kmon_dispatch(km), 0);
	for (int i = 200; i < N_ENTRIES; i++)
		assert_true(fdb.known[i]);
	kmon_close(km);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(an_event_about_a_bridge_port_removes_no_entry),
		bed_test(events_lost_during_a_resync_are_noticed),
		bed_test(deletions_during_the_first_dump_hide_no_entry),
		bed_test(deletions_while_one_database_is_read_hide_no_entry),
		bed_test(a_database_that_changes_during_every_answer_is_read_again_later),
	};

	return cmocka_run_group_tests_name("tap-bridge fdb", tests, NULL, NULL);
}
