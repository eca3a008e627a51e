/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbors that neigh resolves: next hops, hosts of connected subnets, and neighbors
 * for which packets wait; and the query. The kernel has the neighbor table; the test
 * answers in place of the far end.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ tap-bridge/ poptrie/
 */
#include "test_neigh.h"

#include <jansson.h>

#define ADJ 5

static const uint8_t mac_c[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0c};

static uint64_t
hop_to(const uint8_t mac[6])
{
	return adj_hop_make(mac, IFIDX);
}

static bool
kernel_says(struct rig *r, const char *addr, const char *state)
{
	return run("ip -n %s neigh show %s dev t0 | grep -q %s", r->bed->netns, addr,
		   state) == 0;
}

/*
 * Let the kernel wait 3 s for the far end before it gives up, not 0.3 s. The far end
 * answers only when this program has a CPU.
 */
static void
be_patient(struct rig *r)
{
	bed_sysctl(r->bed, "ipv4/neigh/t0/retrans_time_ms", "1000");
	bed_sysctl(r->bed, "ipv6/neigh/t0/retrans_time_ms", "1000");
}

/* --- next hops ------------------------------------------------------------------------ */

static void
watched_next_hop_is_resolved(void **state)
{
	struct rig *r = rig_up(state);

	be_patient(r);
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	send_watch(r, MSG_ADJ_WATCH, ADJ + 1, "2001:db8::9");

	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));
	wait_for(r, hop_of(r, ADJ + 1) == hop_to(mac_b));
	/* The neighbor never failed. */
	assert_false(said_alive(&r->rib, ADJ, false));
	rig_stop(r);
}

static void
watch_set_while_the_link_is_down_is_resolved_when_it_comes(void **state)
{
	struct rig *r = rig_of(state);

	atomic_store(&device.link_down, true);
	rig_start(r);
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, iface_now(r).src4 == 0xc0000201);
	assert_int_equal(r->n_asked, 0);

	atomic_store(&device.link_down, false);
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));
	rig_stop(r);
}

static void
changed_mac_is_used_at_once(void **state)
{
	struct rig *r = rig_up(state);
	const struct msg_adj *said;

	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));

	ip(r->bed, "neigh replace 192.0.2.9 dev t0 lladdr 02:00:5e:00:53:0c nud reachable");

	wait_for(r, hop_of(r, ADJ) == hop_to(mac_c));
	wait_for(r, hop_of(r, host_adj(r, "192.0.2.9")) == hop_to(mac_c));
	wait_for(r, (said = adj_said(&r->rib, MSG_ADJ_STATE, ADJ)) != NULL &&
			    said->mac == mac_word(mac_c));
	rig_stop(r);
}

static void
next_hop_that_does_not_answer_fails_and_comes_back(void **state)
{
	struct rig *r = rig_up(state);

	r->answers = false;
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, said_alive(&r->rib, ADJ, false));
	assert_int_equal(hop_of(r, ADJ), 0);

	/* The kernel still asks for the neighbor. */
	r->answers = true;
	wait_for(r, said_alive(&r->rib, ADJ, true));
	assert_int_equal(hop_of(r, ADJ), hop_to(mac_b));
	rig_stop(r);
}

static void
next_hop_that_falls_silent_fails_after_the_kernel_gave_up(void **state)
{
	struct rig *r = rig_up(state);

	bed_sysctl(r->bed, "ipv4/neigh/t0/base_reachable_time_ms", "300");
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));

	r->answers = false;
	wait_for(r, said_alive(&r->rib, ADJ, false));
	assert_int_equal(hop_of(r, ADJ), 0);
	assert_int_equal(host_adj(r, "192.0.2.9"), 0);
	rig_stop(r);
}

static void
watched_next_hop_stays_fresh_without_traffic_of_the_kernel(void **state)
{
	struct rig *r = rig_up(state);

	be_patient(r);
	bed_sysctl(r->bed, "ipv4/neigh/t0/base_reachable_time_ms", "300");
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));

	/* The kernel confirms the neighbor repeatedly while it is used. */
	wait_for(r, hop_of(r, ADJ) == 0 || r->n_asked_unicast >= 2);
	assert_int_equal(hop_of(r, ADJ), hop_to(mac_b));
	assert_false(said_alive(&r->rib, ADJ, false));
	rig_stop(r);
}

static void
static_neighbor_is_used_and_left_alone(void **state)
{
	struct rig *r = rig_up(state);

	ip(r->bed, "neigh add 192.0.2.9 dev t0 lladdr 02:00:5e:00:53:0c nud permanent");
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	glean(r, "192.0.2.9");
	wait_for(r, n_answers(&r->punt, "192.0.2.9", true) == 1);
	assert_int_equal(hop_of(r, ADJ), hop_to(mac_c));

	/* The entry stays when the link goes down, as in the kernel. */
	atomic_store(&device.link_down, true);
	wait_for(r, hop_of(r, ADJ) == 0);
	atomic_store(&device.link_down, false);
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_c));
	assert_true(kernel_says(r, "192.0.2.9", "PERMANENT"));
	assert_int_equal(r->n_asked, 0);
	rig_stop(r);
}

static void
group_mac_that_was_learned_is_not_used(void **state)
{
	struct rig *r = rig_up(state);

	ip(r->bed, "neigh add 192.0.2.8 dev t0 lladdr 01:00:5e:00:53:0c nud reachable");
	ip(r->bed, "neigh add 192.0.2.9 dev t0 lladdr 02:00:5e:00:53:0c nud reachable");

	wait_for(r, host_adj(r, "192.0.2.9") != 0);
	assert_int_equal(host_adj(r, "192.0.2.8"), 0);
	rig_stop(r);
}

static void
link_down_empties_adjacencies_and_up_resolves_again(void **state)
{
	struct rig *r = rig_up(state);

	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));

	atomic_store(&device.link_down, true);
	wait_for(r, hop_of(r, ADJ) == 0);
	wait_for(r, host_adj(r, "192.0.2.9") == 0);
	/*
	 * Wait until the kernel has removed the entry, because its linkwatch acts late and
	 * ignores a shorter flap.
	 */
	wait_for(r, !kernel_says(r, "192.0.2.9", "lladdr"));

	memcpy(r->peer_mac, mac_c, 6); /* another device has the address now */
	atomic_store(&device.link_down, false);
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_c));
	rig_stop(r);
}

static void
ipv6_neighbors_are_not_used_where_ipv6_is_off(void **state)
{
	struct rig *r = rig_up(state);

	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	send_watch(r, MSG_ADJ_WATCH, ADJ + 1, "2001:db8::9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b) && hop_of(r, ADJ + 1) == hop_to(mac_b));

	bed_sysctl(r->bed, "ipv6/conf/t0/disable_ipv6", "1");
	wait_for(r, hop_of(r, ADJ + 1) == 0);
	wait_for(r, said_alive(&r->rib, ADJ + 1, false));
	assert_true(hop_of(r, ADJ) == hop_to(mac_b));

	bed_sysctl(r->bed, "ipv6/conf/t0/disable_ipv6", "0");
	ip(r->bed,
	   "neigh replace 2001:db8::9 lladdr 02:00:5e:00:53:0c dev t0 nud permanent");
	wait_for(r, hop_of(r, ADJ + 1) == hop_to(mac_c));
	rig_stop(r);
}

static void
next_hop_evicted_by_the_kernel_is_used_until_it_is_settled(void **state)
{
	struct rig *r = rig_up(state);

	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));

	/*
	 * A new MAC address of the link removes all neighbors without a failure, as garbage
	 * collection does. With 2 s between its requests, the kernel does not give up
	 * before the test has looked.
	 */
	r->answers = false;
	bed_sysctl(r->bed, "ipv4/neigh/t0/retrans_time_ms", "2000");
	ip(r->bed, "link set t0 address 02:00:5e:00:53:0c");
	wait_for(r, memcmp(r->asked_from, mac_c, 6) == 0);
	assert_int_equal(hop_of(r, ADJ), hop_to(mac_b));
	assert_false(said_alive(&r->rib, ADJ, false));
	bed_sysctl(r->bed, "ipv4/neigh/t0/retrans_time_ms", "100");

	wait_for(r, said_alive(&r->rib, ADJ, false));
	assert_int_equal(hop_of(r, ADJ), 0);
	rig_stop(r);
}

static void
host_in_use_evicted_by_the_kernel_is_used_until_it_is_settled(void **state)
{
	struct rig *r = rig_up(state);
	uint32_t used;

	ip(r->bed, "neigh add 192.0.2.7 dev t0 lladdr 02:00:5e:00:53:0b nud stale");
	ip(r->bed, "neigh add 192.0.2.8 dev t0 lladdr 02:00:5e:00:53:0b nud stale");
	wait_for(r, host_adj(r, "192.0.2.7") != 0 && host_adj(r, "192.0.2.8") != 0);
	used = host_adj(r, "192.0.2.7");
	fib_adj_touch(r->fib->adj_used, used);

	/* A new MAC address of the link removes all neighbors without a failure. */
	r->answers = false;
	bed_sysctl(r->bed, "ipv4/neigh/t0/retrans_time_ms", "2000");
	ip(r->bed, "link set t0 address 02:00:5e:00:53:0c");
	wait_for(r, host_adj(r, "192.0.2.8") == 0);
	assert_int_equal(host_adj(r, "192.0.2.7"), used);
	assert_int_equal(hop_of(r, used), hop_to(mac_b));
	bed_sysctl(r->bed, "ipv4/neigh/t0/retrans_time_ms", "100");

	/* The neighbor no longer answers, so its adjacency is removed. */
	wait_for(r, host_adj(r, "192.0.2.7") == 0);
	rig_stop(r);
}

static void
glean_that_is_over_is_asked_for_no_longer(void **state)
{
	struct rig *r = rig_up(state);
	struct ipaddr addr = addr_of("192.0.2.9");
	struct msg_neigh *m = msg_new(MSG_GLEAN_OVER, sizeof(*m));

	bed_sysctl(r->bed, "ipv4/neigh/t0/retrans_time_ms", "30000"); /* no failure */
	r->answers = false;
	glean(r, "192.0.2.9");
	wait_for(r, kernel_says(r, "192.0.2.9", "INCOMPLETE"));
	m->ifidx = IFIDX;
	m->family = 4;
	m->addr = addr;
	worker_send(&r->neigh, &m->m);

	wait_for(r, !kernel_says(r, "192.0.2.9", "192.0.2.9"));
	assert_int_equal(n_answers(&r->punt, NULL, false), 0);
	rig_stop(r);
}

static void
unwatched_slot_is_empty_and_given_back(void **state)
{
	struct rig *r = rig_up(state);

	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));

	send_watch(r, MSG_ADJ_UNWATCH, ADJ, "192.0.2.9");
	send_watch(r, MSG_ADJ_UNWATCH, ADJ + 1, "192.0.2.99"); /* was never watched */
	wait_for(r, adj_said(&r->rib, MSG_ADJ_FREED, ADJ + 1) != NULL);
	assert_non_null(adj_said(&r->rib, MSG_ADJ_FREED, ADJ));
	assert_int_equal(hop_of(r, ADJ), 0);

	/* The slot is not written again. */
	ip(r->bed, "neigh replace 192.0.2.9 dev t0 lladdr 02:00:5e:00:53:0c nud reachable");
	wait_for(r, hop_of(r, host_adj(r, "192.0.2.9")) == hop_to(mac_c));
	assert_int_equal(hop_of(r, ADJ), 0);
	rig_stop(r);
}

/* --- hosts ---------------------------------------------------------------------------- */

static void
neighbor_of_the_kernel_becomes_a_host_and_goes(void **state)
{
	struct rig *r = rig_up(state);
	struct ipaddr addr = addr_of("192.0.2.7");
	uint32_t adj;

	ip(r->bed, "neigh add 192.0.2.7 dev t0 lladdr 02:00:5e:00:53:0c nud stale");
	ip(r->bed, "neigh add fe80::7 dev t0 lladdr 02:00:5e:00:53:0b nud stale");
	wait_for(r, host_adj(r, "192.0.2.7") != 0 && host_adj(r, "fe80::7") != 0);
	adj = host_adj(r, "192.0.2.7");
	assert_true(adj >= r->fib->adj_hosts);
	assert_int_equal(hop_of(r, adj), hop_to(mac_c));
	assert_int_equal(r->fib->adj[adj].ifidx, IFIDX);
	assert_memory_equal(&r->fib->adj[adj].addr, &addr, sizeof(addr));
	assert_int_equal(hop_of(r, host_adj(r, "fe80::7")), hop_to(mac_b));

	ip(r->bed, "neigh del 192.0.2.7 dev t0");
	wait_for(r, host_adj(r, "192.0.2.7") == 0);
	assert_int_equal(hop_of(r, adj), 0);
	rig_stop(r);
}

static void
neighbors_known_before_the_start_are_hosts(void **state)
{
	struct rig *r = rig_of(state);

	ip(r->bed, "neigh add 192.0.2.7 dev t0 lladdr 02:00:5e:00:53:0c nud permanent");
	rig_start(r);

	wait_for(r, host_adj(r, "192.0.2.7") != 0);
	rig_stop(r);
}

static void
stale_host_in_use_is_confirmed_and_an_unused_one_is_not(void **state)
{
	struct rig *r = rig_up(state);

	be_patient(r);
	/* There are two hosts. Traffic goes to one of them. */
	ip(r->bed, "neigh add 192.0.2.7 dev t0 lladdr 02:00:5e:00:53:0b nud stale");
	ip(r->bed, "neigh add 192.0.2.8 dev t0 lladdr 02:00:5e:00:53:0b nud stale");
	wait_for(r, host_adj(r, "192.0.2.7") != 0 && host_adj(r, "192.0.2.8") != 0);
	fib_adj_touch(r->fib->adj_used, host_adj(r, "192.0.2.7"));

	wait_for(r, r->n_asked_unicast > 0);
	wait_for(r, kernel_says(r, "192.0.2.7", "REACHABLE"));
	assert_true(kernel_says(r, "192.0.2.8", "STALE"));
	assert_int_equal(r->n_asked, r->n_asked_unicast);
	rig_stop(r);
}

static void
many_hosts_come_and_go(void **state)
{
	enum { ROUNDS = 20, HOSTS = 250 };
	struct rig *r = rig_up(state);
	char file[] = "/tmp/test_neighXXXXXX";
	FILE *batch = fdopen(mkstemp(file), "w");

	assert_non_null(batch);
	for (int i = 0; i < ROUNDS * 2; i++)
		for (int h = 2; h < HOSTS; h++)
			fprintf(batch,
				i % 2 == 0 ? "neigh replace 192.0.2.%d dev t0 "
					     "lladdr 02:00:5e:00:53:0b nud reachable\n"
					   : "neigh del 192.0.2.%d dev t0\n",
				h);
	fprintf(batch,
		"neigh add 2001:db8::77 dev t0 lladdr 02:00:5e:00:53:0b nud stale\n");
	fclose(batch);
	ip(r->bed, "-batch %s", file);
	unlink(file);

	wait_for(r, host_adj(r, "2001:db8::77") != 0);
	for (int h = 2; h < HOSTS; h++) {
		char text[32];

		snprintf(text, sizeof(text), "192.0.2.%d", h);
		wait_for(r, host_adj(r, text) == 0);
	}
	/* Slots are reused: there are far fewer slots than there were hosts. */
	assert_true(host_adj(r, "2001:db8::77") < r->fib->adj_hosts + ROUNDS * HOSTS);
	rig_stop(r);
}

/* --- packets that wait ---------------------------------------------------------------- */

static void
glean_is_answered_when_the_host_can_be_found(void **state)
{
	struct rig *r = rig_up(state);

	be_patient(r);
	r->answers = false;
	glean(r, "192.0.2.9");
	glean(r, "192.0.2.9");
	glean(r, "192.0.2.9");
	wait_for(r, r->n_asked > 0);
	r->answers = true;

	wait_for(r, n_answers(&r->punt, "192.0.2.9", true) > 0);
	assert_int_equal(hop_of(r, host_adj(r, "192.0.2.9")), hop_to(mac_b));

	/*
	 * The neighbor is resolved now: the answer comes at once, without a solicitation.
	 */
	r->n_asked = 0;
	glean(r, "192.0.2.9");
	/* The first answer is for three packets, the second for this packet. */
	wait_for(r, n_answers(&r->punt, "192.0.2.9", true) == 2);
	assert_int_equal(r->n_asked, 0);
	assert_int_equal(n_answers(&r->punt, NULL, false), 0);
	rig_stop(r);
}

static void
glean_fails_when_the_kernel_gives_up_every_time(void **state)
{
	struct rig *r = rig_up(state);

	r->answers = false;
	for (unsigned int i = 1; i <= 3; i++) {
		int64_t start = now_ms();

		glean(r, "192.0.2.9");
		wait_for(r, n_answers(&r->punt, "192.0.2.9", false) == i);
		assert_true(now_ms() - start < 5000); /* before the time limit, GLEAN_S */
	}
	assert_int_equal(n_answers(&r->punt, NULL, true), 0);
	rig_stop(r);
}

static void
glean_has_a_time_limit_of_its_own(void **state)
{
	struct rig *r = rig_up(state);

	bed_sysctl(r->bed, "ipv4/neigh/t0/retrans_time_ms", "60000");
	r->answers = false;
	glean(r, "192.0.2.9");

	wait_for(r, n_answers(&r->punt, "192.0.2.9", false) == 1);
	rig_stop(r);
}

static void
glean_on_a_link_that_is_down_fails_at_once(void **state)
{
	struct rig *r = rig_up(state);

	ip(r->bed, "link set t0 down");
	wait_for(r, said_up(&r->rib, "t0", false));
	glean(r, "192.0.2.9");
	wait_for(r, n_answers(&r->punt, "192.0.2.9", false) == 1);
	assert_int_equal(r->n_asked, 0);
	rig_stop(r);
}

static void
scan_is_answered_whole_and_does_not_touch_the_next_hop(void **state)
{
	/*
	 * SCANNED is more than neigh asks for in one round. It is less than the 1024
	 * entries of the kernel's table, because all namespaces share the table and other
	 * tests run at the same time.
	 */
	enum { SCANNED = 600 };
	struct rig *r = rig_up(state);

	ip(r->bed, "addr add 198.18.0.1/16 dev t0");
	ip(r->bed, "neigh add 192.0.2.9 dev t0 lladdr 02:00:5e:00:53:0b nud permanent");
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, hop_of(r, ADJ) == hop_to(mac_b));

	r->answers = false;
	for (uint32_t i = 0; i < SCANNED; i++) {
		struct ipaddr addr = ipaddr_from_v4(0xc6120002 + i);

		send_glean(r, &addr, 4);
	}
	wait_for(r, n_answers(&r->punt, NULL, false) == SCANNED);
	assert_int_equal(n_answers(&r->punt, NULL, true), 0);
	assert_int_equal(hop_of(r, ADJ), hop_to(mac_b));
	assert_false(said_alive(&r->rib, ADJ, false));
	rig_stop(r);
}

/* --- query ---------------------------------------------------------------------------- */

/* Return the number of neighbors of a family in a state from the summary. */
static json_int_t
summary_of(struct rig *r, const char *family, const char *nud)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	json_int_t n;

	q->kind = QUERY_NEIGH_SUMMARY;
	q->from = &r->ui.w;
	q->max = 10;
	worker_send(&r->neigh, &q->m);
	wait_for(r, r->ui.n == 1);
	r->ui.n = 0;
	assert_true(q->done);
	assert_int_equal(json_array_size(q->rows), 1);
	n = json_integer_value(
		json_object_get(json_object_get(json_array_get(q->rows, 0), family), nud));
	json_decref(q->rows);
	msg_free(&q->m);
	return n;
}

/* Run the query in slices of `max` rows. Return all rows. */
static json_t *
query(struct rig *r, unsigned int max, uint8_t family, unsigned int *n_slices)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	json_t *rows;

	q->kind = QUERY_NEIGHBORS;
	q->from = &r->ui.w;
	q->max = max;
	q->family = family;
	for (*n_slices = 1;; ++*n_slices) {
		size_t before = json_array_size(q->rows);

		worker_send(&r->neigh, &q->m);
		wait_for(r, r->ui.n == 1);
		r->ui.n = 0;
		assert_int_equal(q->m.type, MSG_REPLY);
		assert_true(json_array_size(q->rows) - before <= max);
		if (q->done)
			break;
		q->m.type = MSG_QUERY;
	}
	rows = q->rows;
	msg_free(&q->m);
	return rows;
}

static const json_t *
row_of(const json_t *rows, const char *address)
{
	const json_t *found = NULL, *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		if (strcmp(json_string_value(json_object_get(row, "address")), address) ==
		    0) {
			assert_null(found); /* each address has one row */
			found = row;
		}
	}
	return found;
}

#define text_of(row, key) json_string_value(json_object_get(row, key))

static void
query_shows_each_neighbor_once_in_slices(void **state)
{
	struct rig *r = rig_up(state);
	unsigned int n_slices;
	const json_t *row;
	json_t *rows;

	ip(r->bed, "neigh add 2001:db8::7 dev t0 lladdr 02:00:5e:00:53:0c nud permanent");
	for (int i = 10; i < 15; i++)
		ip(r->bed,
		   "neigh add 192.0.2.%d dev t0 lladdr 02:00:5e:00:53:0c nud "
		   "permanent",
		   i);
	r->answers = false;
	send_watch(r, MSG_ADJ_WATCH, ADJ, "192.0.2.9");
	wait_for(r, said_alive(&r->rib, ADJ, false));

	assert_int_equal(summary_of(r, "ipv4", "permanent"), 5);
	assert_int_equal(summary_of(r, "ipv6", "permanent"), 1);
	rows = query(r, 2, 4, &n_slices);
	assert_int_equal(json_array_size(rows), 6);
	assert_true(n_slices >= 3);
	row = row_of(rows, "192.0.2.9");
	assert_string_equal(text_of(row, "use"), "nexthop");
	assert_string_equal(text_of(row, "dev"), "t0");
	assert_true(json_is_null(json_object_get(row, "mac")));
	assert_int_equal(json_integer_value(json_object_get(row, "adj")), ADJ);
	row = row_of(rows, "192.0.2.12");
	assert_string_equal(text_of(row, "use"), "host");
	assert_string_equal(text_of(row, "state"), "permanent");
	assert_string_equal(text_of(row, "mac"), "02:00:5e:00:53:0c");
	assert_int_equal(json_integer_value(json_object_get(row, "adj")),
			 host_adj(r, "192.0.2.12"));
	json_decref(rows);

	rows = query(r, 100, 0, &n_slices);
	assert_int_equal(n_slices, 1);
	assert_non_null(row_of(rows, "2001:db8::7"));
	json_decref(rows);
	rig_stop(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(watched_next_hop_is_resolved),
		bed_test(watch_set_while_the_link_is_down_is_resolved_when_it_comes),
		bed_test(changed_mac_is_used_at_once),
		bed_test(next_hop_that_does_not_answer_fails_and_comes_back),
		bed_test(next_hop_that_falls_silent_fails_after_the_kernel_gave_up),
		bed_test(watched_next_hop_stays_fresh_without_traffic_of_the_kernel),
		bed_test(static_neighbor_is_used_and_left_alone),
		bed_test(group_mac_that_was_learned_is_not_used),
		bed_test(link_down_empties_adjacencies_and_up_resolves_again),
		bed_test(ipv6_neighbors_are_not_used_where_ipv6_is_off),
		bed_test(next_hop_evicted_by_the_kernel_is_used_until_it_is_settled),
		bed_test(host_in_use_evicted_by_the_kernel_is_used_until_it_is_settled),
		bed_test(glean_that_is_over_is_asked_for_no_longer),
		bed_test(unwatched_slot_is_empty_and_given_back),
		bed_test(neighbor_of_the_kernel_becomes_a_host_and_goes),
		bed_test(neighbors_known_before_the_start_are_hosts),
		bed_test(stale_host_in_use_is_confirmed_and_an_unused_one_is_not),
		bed_test(many_hosts_come_and_go),
		bed_test(glean_is_answered_when_the_host_can_be_found),
		bed_test(glean_fails_when_the_kernel_gives_up_every_time),
		bed_test(glean_has_a_time_limit_of_its_own),
		bed_test(glean_on_a_link_that_is_down_fails_at_once),
		bed_test(scan_is_answered_whole_and_does_not_touch_the_next_hop),
		bed_test(query_shows_each_neighbor_once_in_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
