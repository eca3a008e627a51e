/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stage in which a program decides about packets: which data the program sees, and the
 * effects of its verdicts. The programs of these tests are functions of C instead of
 * machine code.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fib/hook_list.h" /* before `fib` of tunnel_bed.h */

#include "tunnel_bed.h"

#include "base/policer.h"
#include "fwd_isas.h"

#define RED       5    /* a VRF, in which the hosts of LAN are behind WAN */
#define RED_TABLE 1001 /* its table */
#define LEN       100  /* octets of a packet */

static struct fib_hook hook = {.dev = "lan0", .file = "test.o"};
static struct fib_hooks hooks = {.n = 1, .hook = {&hook}};
static struct fib_hook_state state_of[4];
static struct fwd_conf conf;
static uint64_t verdict;     /* the program returns it */
static struct fpm_hook seen; /* argument of the last call of the program */
static bool inside;          /* the packets came in a tunnel */

static uint64_t
program(void *arg)
{
	struct fpm_hook *got = arg;

	got->counter[1]++;
	seen = *got;
	memset(got->packet, 0xee, sizeof(got->packet)); /* has no effect */
	got->length = 0;
	return verdict;
}

static int
hooks_up(void **state)
{
	enum fwd_isa isa = fwd_isa;
	struct fib_vrf *red;
	uint8_t net[4];

	if (up(state) != 0)
		return -1;
	fwd_isa = isa; /* up() chooses the scalar code */
	policer_init(1000000000, policer_default);
	strcpy(fib->iface[LAN]->name, "lan0");
	strcpy(fib->iface[WAN]->name, "wan0");
	red = fib_vrf_new(fib, RED_TABLE, "red");
	assert_non_null(red);
	put_be32(net, BACK4);
	fib->group[23] = group_word_single(PATH(PATH_ADJ, 2));
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, 23), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	assert_int_equal(poptrie_add(red->tries.pt6, back6, 48, 23), 0);
	assert_int_equal(poptrie_commit(red->tries.pt6), 0);
	fib_vrf_publish(fib, RED, red);
	memset(state_of, 0, sizeof(state_of));
	memset(&seen, 0, sizeof(seen));
	memset(&count, 0, sizeof(count));
	conf = (struct fwd_conf){.index = 2};
	inside = false;
	hook.run = program;
	hook.state = state_of;
	strcpy(hook.dev, "lan0");
	verdict = FPM_PASS;
	return 0;
}

/* Packets of a burst. */
static struct {
	struct rte_mbuf m;
	struct packet_meta meta;
	uint8_t buffer[128 + 512];
} packets[BURST_MAX];

static uint8_t *
frame_of(unsigned int i)
{
	return rte_pktmbuf_mtod(&packets[i].m, uint8_t *);
}

/* Write a packet to BACK4 or back6, whose route leads to LAN, as `ifidx` receives it. */
static void
packet_make(unsigned int i, uint8_t family, uint16_t ifidx)
{
	uint8_t *eth = packets[i].buffer + 128, *ip = eth + 14;

	memset(&packets[i], 0, sizeof(packets[i]));
	packets[i].m.buf_addr = packets[i].buffer;
	packets[i].m.buf_len = sizeof(packets[i].buffer);
	packets[i].m.data_off = 128;
	packets[i].m.nb_segs = 1;
	packets[i].m.priv_size = PACKET_PRIV_BYTES;
	packets[i].m.data_len = 14 + LEN;
	packets[i].m.pkt_len = 14 + LEN;
	rte_mbuf_refcnt_set(&packets[i].m, 2); /* a drop frees nothing */
	memcpy(eth, ifidx == LAN ? lan_mac : wan_mac, 6);
	memcpy(eth + 6, ifidx == LAN ? lan_peer : wan_peer, 6);
	put_be16(eth + 12, family == 4 ? 0x0800 : 0x86dd);
	inner_write(ip, family, LEN, true);
	if (family == 4) {
		ip[15] = (uint8_t)i; /* addresses and checksums differ */
		ip[1] = (uint8_t)(i & 3);
		put_be16(ip + 10, 0);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	}
	b.m[i] = &packets[i].m;
}

/* Pass a burst of `n` packets that `ifidx` received. */
static void
pass(unsigned int n, uint16_t ifidx)
{
	memset(&fwd, 0, offsetof(struct fwd, tx));
	memset(fwd.tx, 0, sizeof(fwd.tx[0]) * 4);
	fwd.n_tx_used = 0;
	fwd.fib = fib;
	fwd.conf = &conf;
	fwd.tries = &fib->copy[0];
	fwd.count = &count;
	fwd.adj_used = fib->adj_used;
	fwd.tx_burst = 32;
	fwd.hooks = &hooks;
	b.fwd = &fwd;
	b.ifidx = ifidx;
	b.n = (uint16_t)n;
	b.inside = inside;
	burst_look(&b);
	fwd_walk(&b, NULL);
}

static void
make_and_pass(unsigned int n, uint8_t family, uint16_t ifidx)
{
	for (unsigned int i = 0; i < n; i++)
		packet_make(i, family, ifidx);
	pass(n, ifidx);
}

static void
it_sees_the_packet_and_no_more(void **state)
{
	uint8_t was[LEN];

	for (unsigned int family = 4; family <= 6; family += 2) {
		packet_make(0, (uint8_t)family, LAN);
		memcpy(was, frame_of(0) + 14, LEN);
		memset(frame_of(0) + 14 + LEN, 0x99, 60); /* behind the frame */
		pass(1, LAN);
		assert_int_equal(b.verdict[0], VERDICT_GO);
		assert_int_equal(seen.length, LEN);
		assert_int_equal(seen.octets, LEN);
		assert_int_equal(seen.family, family);
		assert_int_equal(seen.ifindex, LAN + 10);
		assert_memory_equal(seen.packet, was, LEN);
		for (unsigned int k = LEN; k < FPM_HOOK_OCTETS; k++)
			assert_int_equal(seen.packet[k], 0);
		assert_memory_equal(frame_of(0) + 14 + 20, was + 20, LEN - 20);
	}
}

static void
it_is_asked_about_ip_packets_of_its_interface_alone(void **state)
{
	make_and_pass(3, 4, WAN);
	assert_int_equal(state_of[2].packets, 0);
	packet_make(0, 4, LAN);
	packet_make(1, 4, LAN);
	put_be16(frame_of(1) + 12, 0x0806); /* ARP */
	packet_make(2, 4, LAN);
	frame_of(2)[14 + 10] ^= 1; /* a wrong checksum */
	packet_make(3, 6, LAN);
	pass(4, LAN);
	assert_int_equal(b.verdict[1], PUNT_l2_control);
	assert_int_equal(b.verdict[2], DROP_ip4_checksum);
	assert_int_equal(state_of[2].packets, 2);
	strcpy(hook.dev, "lan");
	make_and_pass(1, 4, LAN);
	assert_int_equal(state_of[2].packets, 2);
}

static void
each_forwarder_has_memory_of_its_own(void **state)
{
	make_and_pass(5, 4, LAN);
	assert_int_equal(seen.counter[1], 5);
	conf.index = 0;
	make_and_pass(1, 4, LAN);
	assert_int_equal(seen.counter[1], 1);
	assert_int_equal(state_of[0].packets, 1);
	assert_int_equal(state_of[2].packets, 5);
	assert_int_equal(state_of[2].hook.counter[1], 5);
}

static void
a_drop_has_its_reason_and_nothing_else_changes(void **state)
{
	uint8_t was[14 + LEN];

	verdict = FPM_DROP;
	for (unsigned int fast = 0; fast < 2; fast++) {
		fib->iface[LAN]->fast4 = fast != 0;
		packet_make(0, 4, LAN);
		memcpy(was, frame_of(0), sizeof(was));
		pass(1, LAN);
		assert_int_equal(b.verdict[0], DROP_hook);
		assert_memory_equal(frame_of(0), was, sizeof(was));
		assert_int_equal(state_of[2].dropped, fast + 1);
	}
	fib->iface[LAN]->fast4 = true;
}

static void
a_verdict_without_meaning_is_an_error(void **state)
{
	static const uint64_t wrong[] = {UINT64_MAX, 8, 1u << 14, 1u << 31, 0x80};

	for (unsigned int k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		verdict = wrong[k];
		make_and_pass(1, 4, LAN);
		assert_int_equal(b.verdict[0], DROP_hook);
		assert_int_equal(state_of[2].errors, k + 1);
		assert_int_equal(state_of[2].dropped, k + 1);
	}
}

/* Assert that each packet of the burst leaves with DSCP `dscp` and is right otherwise. */
static void
marked_right(unsigned int n, uint8_t family, uint8_t dscp)
{
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *ip = frame_of(i) + 14;

		assert_int_equal(b.verdict[i], VERDICT_GO);
		if (family == 4) {
			assert_int_equal(ip[1], dscp << 2 | (i & 3));
			assert_int_equal(ip[8], 8);
			assert_true(ip4_checksum_ok(ip, 20));
		} else {
			assert_int_equal(get_be32(ip),
					 6u << 28 | (uint32_t)dscp << 22 | 0x54321);
			assert_int_equal(ip[7], 8);
		}
	}
}

static void
a_dscp_is_written_on_the_fast_and_the_slow_path(void **state)
{
	for (unsigned int path = 0; path < 4; path++) {
		uint8_t family = path < 2 ? 4 : 6;

		fib->iface[LAN]->fast4 = fib->iface[LAN]->fast6 = path % 2 == 0;
		for (uint8_t dscp = 0; dscp < 64; dscp++) {
			verdict = FPM_DSCP(dscp);
			make_and_pass(BURST_MAX, family, LAN);
			assert_int_equal((b.fast4 | b.fast6) != 0, path % 2 == 0);
			marked_right(BURST_MAX, family, dscp);
		}
	}
	fib->iface[LAN]->fast4 = fib->iface[LAN]->fast6 = true;
	assert_int_equal(state_of[2].marked, 4 * 64 * BURST_MAX);
}

static void
a_table_leads_to_its_vrf(void **state)
{
	for (unsigned int family = 4; family <= 6; family += 2) {
		verdict = FPM_PASS;
		make_and_pass(20, (uint8_t)family, LAN);
		assert_int_equal(b.hop[19] & 0xffff, LAN);
		verdict = FPM_TABLE(RED_TABLE);
		make_and_pass(20, (uint8_t)family, LAN);
		for (unsigned int i = 0; i < 20; i++) {
			assert_int_equal(b.verdict[i], VERDICT_GO);
			assert_int_equal(b.hop[i] & 0xffff, WAN);
			assert_memory_equal(frame_of(i), wan_peer, 6);
		}
		verdict = FPM_TABLE(254);
		make_and_pass(1, (uint8_t)family, LAN);
		assert_int_equal(b.hop[0] & 0xffff, LAN);
		verdict = FPM_TABLE(RED_TABLE) | FPM_DSCP(10);
		make_and_pass(1, (uint8_t)family, LAN);
		assert_int_equal(b.hop[0] & 0xffff, WAN);
		marked_right(1, (uint8_t)family, 10);
	}
	assert_int_equal(state_of[2].moved, 44);
}

static void
a_table_of_no_vrf_drops(void **state)
{
	static const uint32_t tables[] = {1002, 0, UINT32_MAX};

	for (unsigned int k = 0; k < 3; k++) {
		verdict = FPM_TABLE(tables[k]);
		make_and_pass(2, 4, LAN);
		assert_int_equal(b.verdict[0], DROP_vrf_no_fib);
		assert_int_equal(b.verdict[1], DROP_vrf_no_fib);
	}
}

/* The program of an interface in a VRF can lead packets to main (table 254). */
static void
a_table_counts_more_than_the_vrf_of_the_interface(void **state)
{
	fib->iface[LAN]->vrf = RED;
	make_and_pass(1, 4, LAN);
	assert_int_equal(b.hop[0] & 0xffff, WAN);
	verdict = FPM_TABLE(254);
	make_and_pass(1, 4, LAN);
	assert_int_equal(b.hop[0] & 0xffff, LAN);
	fib->iface[LAN]->vrf = 0;
}

/*
 * Packets to addresses of this router are for this router, even if the table of the verdict
 * has another route for them.
 */
static void
packets_to_this_router_stay(void **state)
{
	verdict = FPM_TABLE(RED_TABLE);
	route4(BACK4, 32, 30, PATH(PATH_LOCAL, 0));
	route6(back6, 128, 30, PATH(PATH_LOCAL, 0));
	for (unsigned int family = 4; family <= 6; family += 2) {
		make_and_pass(2, (uint8_t)family, LAN);
		assert_int_equal(b.verdict[1], PUNT_local);
		assert_int_equal(fwd.hook_moved, 0);
	}
	route4(BACK4, 32, 30, PATH(PATH_BCAST, 0));
	make_and_pass(1, 4, LAN);
	assert_int_equal(b.verdict[0], path_cause(PATH_BCAST));
}

/*
 * If the table of the verdict leads to the kernel, the packet is dropped, because the
 * kernel would look it up in the table of its interface and forward it.
 */
static void
a_table_that_leads_to_the_kernel_drops(void **state)
{
	verdict = FPM_TABLE(RED_TABLE);
	for (unsigned int family = 4; family <= 6; family += 2) {
		fib->group[23] = group_word_single(PATH(PATH_KERNEL, 77));
		make_and_pass(2, (uint8_t)family, LAN);
		assert_int_equal(b.verdict[1], DROP_foreign_oif);
		fib->group[23] = group_word_single(PATH(PATH_LOCAL, 0));
		make_and_pass(2, (uint8_t)family, LAN);
		assert_int_equal(b.verdict[1], DROP_foreign_oif);
	}
	verdict = FPM_PASS;
	route4(BACK4, 32, 30, PATH(PATH_KERNEL, 77));
	make_and_pass(1, 4, LAN);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
}

/* The punt thread gets the VRF of the verdict with a packet that waits for its neighbor. */
static void
the_punt_thread_learns_the_table(void **state)
{
	static uint8_t room[8192] __attribute__((aligned(64)));
	struct rte_ring *ring = (struct rte_ring *)room;
	struct rte_mbuf *m;

	assert_true((size_t)rte_ring_get_memsize(64) <= sizeof(room));
	assert_int_equal(rte_ring_init(ring, "punt", 64, RING_F_SP_ENQ | RING_F_SC_DEQ), 0);
	for (unsigned int class = 0; class < N_PUNT_CLASS; class ++)
		conf.rings.punt[class] = ring;
	fib->group[23] = group_word_single(PATH(PATH_ONLINK, WAN));
	for (unsigned int k = 0; k < 3; k++) {
		uint8_t family = k == 2 ? 6 : 4;

		verdict = k == 1 ? FPM_PASS : FPM_TABLE(RED_TABLE);
		if (k == 1)
			route4(BACK4, 32, 30, PATH(PATH_ONLINK, WAN));
		packet_make(0, family, LAN);
		packets[0].meta.lookup_vrf =
			99; /* left by an earlier packet in the buffer */
		packets[0].meta.has_lookup_vrf = true;
		pass(1, LAN);
		assert_int_equal(b.verdict[0], PUNT_unresolved);
		fwd_dispatch(&b);
		assert_int_equal(rte_ring_dequeue(ring, (void **)&m), 0);
		assert_ptr_equal(m, &packets[0].m);
		assert_int_equal(packets[0].meta.has_lookup_vrf, k != 1);
		assert_int_equal(packets[0].meta.lookup_vrf, k == 1 ? 0 : RED);
		assert_int_equal(packets[0].meta.vrf, 0);
	}
	/* Without a program, the verdict on an earlier packet has no effect. */
	fwd.hook_moved = 1;
	packet_make(0, 4, LAN);
	b.n = 1;
	fwd.hooks = NULL;
	burst_look(&b);
	fwd_walk(&b, NULL);
	assert_int_equal(fwd.hook_moved, 0);
}

/*
 * The program does not see an inner packet of an end point of SRv6. It has seen the outer
 * packet, and the end point has chosen the VRF.
 */
static void
packets_of_an_end_point_are_not_asked_about_again(void **state)
{
	verdict = FPM_TABLE(RED_TABLE);
	inside = b.by_sid = true;
	b.sid_vrf = 0;
	b.sid_path = PATH(PATH_NONE, 0);
	make_and_pass(2, 6, LAN);
	assert_int_equal(state_of[2].packets, 0);
	assert_int_equal(b.hop[1] & 0xffff, LAN);
	b.by_sid = false;
	make_and_pass(2, 6, LAN);
	assert_int_equal(state_of[2].packets, 2);
	assert_int_equal(b.hop[1] & 0xffff, WAN);
	inside = false;
}

/*
 * The kernel gets a packet for this router with its outer headers, so the checksum of the
 * outer UDP header must be right.
 */
static void
a_dscp_keeps_the_checksum_of_a_vxlan(void **state)
{
	uint8_t *ip = packets[0].buffer + 128 + 14, *udp = ip - 30;
	const unsigned int bytes = 30 + LEN;

	route6(back6, 128, 30, PATH(PATH_LOCAL, 0));
	fib->iface[LAN]->vxlan.family = 4;
	inside = true;
	for (uint8_t dscp = 0; dscp < 64; dscp++) {
		verdict = FPM_DSCP(dscp);
		packet_make(0, 6, LAN);
		put_be16(udp + 6, (uint16_t)~inet_fold(inet_sum(udp, bytes, 0)));
		pass(1, LAN);
		assert_int_equal(b.verdict[0], PUNT_local);
		assert_int_equal(get_be32(ip) >> 22 & 63, dscp);
		assert_int_equal(inet_fold(inet_sum(udp, bytes, 0)), 0xffff);
		packet_make(0, 6, LAN);
		pass(1, LAN);
		assert_int_equal(get_be16(udp + 6), 0); /* still no checksum */
	}
	inside = false;
}

/*
 * Return a verdict that depends on the address, so that the verdicts of a burst alternate.
 */
static uint64_t
alternate(void *arg)
{
	const struct fpm_hook *got = arg;

	switch (got->packet[15] % 4) {
	case 0:
		return FPM_PASS;
	case 1:
		return FPM_DROP;
	case 2:
		return FPM_TABLE(RED_TABLE);
	default:
		return FPM_DSCP(46);
	}
}

static void
packets_of_a_burst_have_verdicts_of_their_own(void **state)
{
	hook.run = alternate;
	make_and_pass(BURST_MAX, 4, LAN);
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		const uint8_t *ip = frame_of(i) + 14;

		assert_int_equal(b.verdict[i], i % 4 == 1 ? DROP_hook : VERDICT_GO);
		if (i % 4 == 1)
			continue;
		assert_int_equal(b.hop[i] & 0xffff, i % 4 == 2 ? WAN : LAN);
		assert_int_equal(ip[1] >> 2, i % 4 == 3 ? 46 : 0);
		assert_true(ip4_checksum_ok(ip, 20));
	}
}

/* Explain packet 0 of packets[]. Return the record. */
static struct watch_record
explained(void)
{
	struct watch_record rec;

	packet_make(0, 4, LAN);
	fib->hooks = &hooks;
	fwd_explain(fib, LAN, frame_of(0), 14 + LEN, 14 + LEN, &rec);
	fib->hooks = NULL;
	return rec;
}

static void
explain_tells_and_counts_nothing(void **state)
{
	struct watch_record rec = explained();

	assert_int_equal(rec.hook, WATCH_HOOK_PASS);
	assert_string_equal(rec.hook_file, "test.o");
	assert_int_equal(rec.verdict, WATCH_GO);
	verdict = FPM_DROP;
	rec = explained();
	assert_int_equal(rec.hook, WATCH_HOOK_DROP);
	assert_int_equal(rec.stage, STAGE_HOOK);
	assert_int_equal(watch_reason(&rec), DROP_hook);
	verdict = FPM_DSCP(46) | FPM_TABLE(RED_TABLE);
	rec = explained();
	assert_int_equal(rec.hook, WATCH_HOOK_CHANGE);
	assert_int_equal(rec.hook_dscp, 46);
	assert_int_equal(rec.hook_table, RED_TABLE);
	assert_int_equal(rec.to_vrf, RED);
	assert_int_equal(rec.out_ifidx, WAN);
	assert_int_equal(seen.counter[1], 1); /* counters begin with 0 for each packet */
	for (unsigned int k = 0; k < 4; k++)
		assert_int_equal(state_of[k].packets, 0);
	strcpy(hook.dev, "wan0");
	rec = explained();
	assert_int_equal(rec.hook, WATCH_HOOK_NONE);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, hooks_up, down)
	const struct CMUnitTest tests[] = {
		TEST(it_sees_the_packet_and_no_more),
		TEST(it_is_asked_about_ip_packets_of_its_interface_alone),
		TEST(each_forwarder_has_memory_of_its_own),
		TEST(a_drop_has_its_reason_and_nothing_else_changes),
		TEST(a_verdict_without_meaning_is_an_error),
		TEST(a_dscp_is_written_on_the_fast_and_the_slow_path),
		TEST(a_table_leads_to_its_vrf),
		TEST(a_table_of_no_vrf_drops),
		TEST(a_table_counts_more_than_the_vrf_of_the_interface),
		TEST(packets_to_this_router_stay),
		TEST(a_table_that_leads_to_the_kernel_drops),
		TEST(the_punt_thread_learns_the_table),
		TEST(packets_of_an_end_point_are_not_asked_about_again),
		TEST(a_dscp_keeps_the_checksum_of_a_vxlan),
		TEST(packets_of_a_burst_have_verdicts_of_their_own),
		TEST(explain_tells_and_counts_nothing),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
