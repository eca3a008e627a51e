/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reason of a punted packet that came in a tunnel decides whether the kernel gets it
 * with the headers of the tunnel, or the punt thread handles the inner packet. Packets
 * without a neighbor wait for the neighbor of their present route.
 *
 * link: fpm-dataplane/punt/punt.c
 * link: fpm-dataplane/punt/forward.c fpm-dataplane/punt/tunnel.c fpm-dataplane/punt/headend.c
 * link: fpm-dataplane/punt/label.c fpm-dataplane/punt/out.c fpm-dataplane/punt/icmp.c
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "punt_bed.h"

#include "punt/pmtu.h"
#include "punt/punt.h"
#include "punt/vteps.h"

#define OUTER_BYTES 24u /* IPv4 and GRE */

/* --- functions that this program replaces --------------------------------------------- */

static unsigned int n_looked; /* calls of punt_pmtu_look() */

void
punt_pmtu_look(struct punt *of, struct rte_mbuf *m)
{
	n_looked++;
}

void
punt_pmtu_expire(struct punt *of)
{
}

void
punt_vteps_free(struct punt_vteps *v)
{
}

int
tap_start(struct punt *of)
{
	return 0;
}

void
tap_stop(struct punt *of)
{
}

void
tap_begin(struct punt *of, unsigned int port)
{
}

void
tap_forget(struct punt *of, unsigned int port)
{
}

void
tap_poll(struct punt *of, unsigned int port, bool on)
{
}

void
tap_replace(struct punt *of, const struct msg_tap *t)
{
}

/* --- packets out of a tunnel ---------------------------------------------------------- */

static struct worker thread; /* punt, but its functions run on the bed */

/* Let the punt thread take a packet from the ring of a forwarder. */
static void
handle(struct rte_mbuf *m)
{
	assert_int_equal(rte_ring_sp_enqueue(rings[1].punt[CLASS_FIRST_OPEN], m), 0);
	thread.ops->on_round(&thread);
	assert_int_equal(rte_ring_count(rings[1].punt[CLASS_FIRST_OPEN]), 0);
}

/*
 * Make a packet of `len` octets that LAN received from a tunnel, whose outer packets WAN
 * got.
 */
static struct rte_mbuf *
inner_make(enum reason reason, unsigned int len)
{
	struct rte_mbuf *m = packet_make(4, len);

	assert_non_null(rte_pktmbuf_prepend(m, OUTER_BYTES));
	packet_meta(m)->inner_at = OUTER_BYTES;
	packet_meta(m)->outer_ifidx = WAN;
	packet_meta(m)->reason = (uint8_t)reason;
	return m;
}

static void
the_kernel_gets_the_outer_packet_by_its_port(void **state)
{
	for (unsigned int r = PUNT_l2_control; r < PUNT_unresolved; r++) {
		n_delivered = n_looked = 0;
		handle(inner_make(r, 60));
		assert_int_equal(n_delivered, 1);
		assert_int_equal(delivered_bytes, OUTER_BYTES + L2_LEN + 60);
		assert_int_equal(delivered_ifidx, WAN);
		assert_int_equal(n_looked, r == PUNT_local || r == PUNT_local_control);
	}
	counted(N_REASON, 0, 0, 0);
}

static void
an_inner_packet_waits_for_its_own_neighbor(void **state)
{
	struct rte_mbuf *m = inner_make(PUNT_unresolved, 60);
	struct msg_neigh a = {.ifidx = WAN, .family = 4, .resolved = true};
	uint8_t host[4];

	put_be32(host, HOST4);
	put_be32(a.addr.octet, HOST4);
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, WAN));
	handle(m);
	assert_int_equal(sent.n_gleans, 1);
	assert_int_equal(sent.ifidx, WAN);
	assert_memory_equal(sent.addr.octet, host, 4);
	assert_int_equal(p.n_waiting, 1);
	fib->group[10] = group_word_single(PATH(PATH_ADJ, 2));
	punt_release_answered(&p, &a);
	m = frame_left(60, 0x0800, WAN);
	packet_is(l3_of(m), 4, 60, 8);
	rte_pktmbuf_free(m);
	counted(N_REASON, 1, 0, 0);
}

/*
 * Packets for 192.0.2.254 still wait, although its MAC address is known by now. A further
 * packet, for which a forwarder did not know the MAC address, waits behind them.
 */
static void
a_packet_waits_behind_earlier_ones(void **state)
{
	struct msg_neigh a = {.ifidx = WAN, .family = 4, .resolved = true};
	struct rte_mbuf *m[2] = {packet_make(4, 60), packet_make(4, 60)}, *left;

	put_be32(a.addr.octet, 0xc00002fe);
	fib->adj[2].addr = a.addr;
	atomic_store(&fib->adj[2].hop, 0);
	for (unsigned int i = 0; i < 2; i++) {
		packet_meta(m[i])->reason = PUNT_unresolved;
		atomic_store(&fib->adj_used[2], ADJ_BEHIND);
		handle(m[i]);
		assert_int_equal(p.n_waiting, i + 1);
		assert_int_equal(fib->adj_used[2], ADJ_BEHIND);
		atomic_store(&fib->adj[2].hop, adj_hop_make(wan_peer, WAN));
	}
	punt_release_answered(&p, &a);
	assert_int_equal(fib->adj_used[2], ADJ_OPEN);
	for (unsigned int i = 0; i < 2; i++) {
		left = frame_left(60, 0x0800, WAN);
		assert_ptr_equal(left, m[i]);
		rte_pktmbuf_free(left);
	}
	counted(N_REASON, 2, 0, 0);
}

/*
 * A packet is in the ring while its route changes from adjacency 2 to adjacency 3, and
 * adjacency 2 gets another neighbor, for which a packet waits. It must not wait for this
 * neighbor.
 */
static void
the_present_route_decides_where_a_packet_waits(void **state)
{
	struct rte_mbuf *m = packet_make(4, 60);

	put_be32(fib->adj[2].addr.octet, 0xc00002fe);
	atomic_store(&fib->adj[2].hop, 0);
	forward(packet_make(4, 60));
	assert_int_equal(p.n_waiting, 1);
	fib->adj[3] = fib->adj[2];
	put_be32(fib->adj[3].addr.octet, 0xc00002fd);
	atomic_store(&fib->adj[3].hop, adj_hop_make(wan_peer, WAN));
	atomic_store(&fib->adj_used[3], ADJ_BEHIND);
	fib->group[10] = group_word_single(PATH(PATH_ADJ, 3));
	packet_meta(m)->reason = PUNT_unresolved;
	handle(m);
	assert_int_equal(p.n_waiting, 1);
	assert_int_equal(fib->adj_used[3], ADJ_OPEN);
	rte_pktmbuf_free(frame_left(60, 0x0800, WAN));
	counted(N_REASON, 1, 0, 0);
}

static void
the_sender_of_an_inner_packet_is_told(void **state)
{
	struct rte_mbuf *m = inner_make(PUNT_ttl_expired, 60);

	packet_meta(m)->cause = DROP_ttl;
	handle(m);
	error_left(4, 11, 0, 0);
	m = inner_make(PUNT_unreach, 60);
	packet_meta(m)->cause = DROP_no_route;
	handle(m);
	error_left(4, 3, 0, 0);
	assert_int_equal(n_delivered, 0);
	counted(N_REASON, 0, 0, 2);
}

static void
an_inner_packet_that_is_too_big_is_cut_without_its_outer_headers(void **state)
{
	struct rte_mbuf *m = inner_make(PUNT_too_big, 1000);

	packet_meta(m)->mtu_bytes = 576;
	fib->iface[WAN]->mtu_bytes = 576;
	handle(m);
	rte_pktmbuf_free(frame_left(20 + 552, 0x0800, WAN));
	rte_pktmbuf_free(frame_left(1000 - 552, 0x0800, WAN));
	fib->iface[WAN]->mtu_bytes = 1500;
	assert_int_equal(n_delivered, 0);
}

static int
thread_up(void **state)
{
	if (bed_up(state) != 0 || punt_setup(&thread, &p.conf) != 0)
		return -1;
	punt_teardown(&thread);
	thread.ctx = &p;
	return 0;
}

static int
all_up(void **state)
{
	if (eal_up("test_punt_reasons") != 0)
		return -1;
	for (unsigned int f = 0; f < 2; f++)
		for (unsigned int c = 0; c < N_PUNT_CLASS; c++) {
			char name[16];

			snprintf(name, sizeof(name), "punt%u.%u", f, c);
			rings[f].punt[c] = rte_ring_create(name, 8, SOCKET_ID_ANY, 0);
			if (rings[f].punt[c] == NULL)
				return -1;
		}
	return 0;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, thread_up, bed_down)
	static const struct CMUnitTest tests[] = {
		TEST(the_kernel_gets_the_outer_packet_by_its_port),
		TEST(an_inner_packet_waits_for_its_own_neighbor),
		TEST(a_packet_waits_behind_earlier_ones),
		TEST(the_present_route_decides_where_a_packet_waits),
		TEST(the_sender_of_an_inner_packet_is_told),
		TEST(an_inner_packet_that_is_too_big_is_cut_without_its_outer_headers),
	};

	return cmocka_run_group_tests_name("punt_reasons", tests, all_up, all_down);
}
