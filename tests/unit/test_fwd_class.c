/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers, and the share of each source in the packets for the host. The host's packets to an
 * address in one VRF make the address a peer in this VRF only.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c fpm-dataplane/port/bfd.c fpm-dataplane/punt/learn.c
 * link: poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/kernel_outer.h"
#include "base/peers.h"
#include "fwd/bfd.h"
#include "fwd/burst.h"
#include "punt/internal.h"

#define RED   1 /* ports; each is in the VRF of this number */
#define BLUE  2
#define MAIN  3 /* in no VRF */
#define VLAN  PORT_MAX
#define BYTES 96
#define HZ    2600000000ull

static const uint8_t ours[4] = {10, 0, 0, 1}, peer[4] = {10, 0, 0, 2};
static const uint8_t ours6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1},
		     peer6[16] = {0x20, 1, 0xd, 0xb8, [15] = 2};

static struct fwd fwd;
static struct burst burst;
static struct counters count;
static struct punt punt;
static struct rte_mbuf mbuf;
static uint8_t frame[BYTES];

static void
iface_make(struct fib *fib, uint16_t ifidx, uint16_t vrf)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	i->ifidx = ifidx;
	i->vrf = vrf;
	fib->iface[ifidx] = i;
}

#define SLOT_OWN 1 /* group of the routes of own addresses */

/* Make `ours` and `ours6` addresses of this router in VRF `number`; 0: in table main. */
static void
own_in(struct fib *fib, uint16_t number)
{
	struct fib_vrf *vrf = number == 0 ? NULL : fib_vrf_new(fib, number, "vrf");
	struct fib_copy *tries = vrf == NULL ? &fib->copy[0] : &vrf->tries;

	fib->group[SLOT_OWN] = group_word_single(PATH(PATH_LOCAL, 0));
	assert_int_equal(poptrie_add(tries->pt4, ours, 32, SLOT_OWN), 0);
	assert_int_equal(poptrie_add(tries->pt6, ours6, 128, SLOT_OWN), 0);
	assert_int_equal(poptrie_commit(tries->pt4), 0);
	assert_int_equal(poptrie_commit(tries->pt6), 0);
	if (vrf != NULL)
		fib_vrf_publish(fib, number, vrf);
}

static int
up(void **state)
{
	struct fib *fib;

	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	fib->seed = 11; /* a seed with which no two keys share a bucket or a word */
	iface_make(fib, RED, RED);
	iface_make(fib, BLUE, BLUE);
	iface_make(fib, MAIN, 0);
	iface_make(fib, VLAN, 0);
	iface_make(fib, VLAN + 1, 0);
	own_in(fib, RED);
	own_in(fib, BLUE);
	own_in(fib, 0);
	punt.fib = fib;
	fwd = (struct fwd){.fib = fib, .count = &count};
	burst = (struct burst){.fwd = &fwd, .n = 1, .now = policer_ticks()};
	policer_init(HZ, policer_default);
	*state = fib;
	return 0;
}

static int
down(void **state)
{
	fib_destroy(*state);
	urcu_qsbr_unregister_thread();
	return 0;
}

/*
 * Make a frame between the host and its peer, with protocol `proto` and these ports. Return
 * its length.
 */
static unsigned int
packet(uint8_t family, bool from_host, uint8_t proto, uint16_t sport, uint16_t dport)
{
	unsigned int n = family_octets(family), head = family == 4 ? 20 : 40;
	uint8_t *l3 = frame + L2_LEN, *src = l3 + (family == 4 ? 12 : 8);
	const uint8_t *us = family == 4 ? ours : ours6, *them = family == 4 ? peer : peer6;

	memset(frame, 0, sizeof(frame));
	memcpy(frame, "\2\0\0\0\0\1\2\0\0\0\0\2", 12);
	put_be16(frame + 12, family == 4 ? 0x0800 : 0x86dd);
	l3[0] = family == 4 ? 0x45 : 0x60;
	if (family == 4)
		put_be16(l3 + 2, 40);
	else
		put_be16(l3 + 4, 20);
	l3[family == 4 ? 8 : 7] = 255;
	l3[family == 4 ? 9 : 6] = proto;
	memcpy(src, from_host ? us : them, n);
	memcpy(src + n, from_host ? them : us, n);
	put_be16(l3 + head, sport);
	put_be16(l3 + head + 2, dport);
	l3[head + 12] = 0x50;
	l3[head + 13] = from_host ? 0x02 : 0x10; /* SYN; ACK */
	return L2_LEN + head + 20;
}

/* Make a burst of this one frame, received by `ifidx`. */
static void
comes_by(uint16_t ifidx, uint8_t family, unsigned int len)
{
	mbuf = (struct rte_mbuf){.buf_addr = frame};
	mbuf.data_len = mbuf.pkt_len = (uint16_t)len;
	burst.m[0] = &mbuf;
	burst.l2[0] = frame;
	burst.family[0] = family;
	burst.l3_len[0] = (uint16_t)(len - L2_LEN);
	burst.ifidx = ifidx;
	burst.in = fib_iface(fwd.fib, ifidx);
}

static enum punt_class
class_by(uint16_t ifidx, uint8_t family, uint8_t proto, uint16_t sport, uint16_t dport)
{
	comes_by(ifidx, family, packet(family, false, proto, sport, dport));
	return fwd_class(&burst, 0, PUNT_local);
}

static void
the_host_says_by(uint16_t ifidx, uint8_t family, uint8_t proto, uint16_t sport,
		 uint16_t dport)
{
	unsigned int len = packet(family, true, proto, sport, dport);

	learn_peer(&punt, frame, len, ifidx);
}

static void
a_peer_of_one_vrf_is_a_stranger_in_another(void **state)
{
	static const struct {
		uint8_t proto;
		uint16_t port;
		enum punt_class known, strange;
	} said[] = {
		{17, 3784, CLASS_bfd, CLASS_control_new},
		{6, 179, CLASS_bgp, CLASS_bgp_new},
		{6, 22, CLASS_tcp, CLASS_local},
		{89, 0, CLASS_igp, CLASS_control_new},
		{17, 646, CLASS_signalling, CLASS_control_new},
	};

	for (uint8_t family = 4; family <= 6; family += 2)
		for (unsigned int i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
			uint8_t proto = said[i].proto;
			uint16_t port = said[i].port;
			/*
			 * A TCP connection has two ports. The other protocols are known by
			 * one port.
			 */
			uint16_t own = proto == 6 ? 40000 : port;

			the_host_says_by(RED, family, proto, own, port);
			assert_int_equal(class_by(RED, family, proto, port, own),
					 said[i].known);
			assert_int_equal(class_by(BLUE, family, proto, port, own),
					 said[i].strange);
			assert_int_equal(class_by(MAIN, family, proto, port, own),
					 said[i].strange);
			the_host_says_by(MAIN, family, proto, own, port);
			assert_int_equal(class_by(MAIN, family, proto, port, own),
					 said[i].known);
			assert_int_equal(class_by(BLUE, family, proto, port, own),
					 said[i].strange);
		}
}

/*
 * The kernel also sends packets of other hosts by a TAP. Their source is no address of this
 * router, so their destination does not become a peer of this router.
 */
static void
packets_that_the_kernel_forwards_make_no_peers(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		unsigned int len = packet(family, true, 17, 3784, 3784);
		uint8_t *l3 = frame + L2_LEN, *src = l3 + (family == 4 ? 12 : 8);

		src[family_octets(family) - 1] = 77;
		memset(src + family_octets(family), 10, family_octets(family));
		learn_peer(&punt, frame, len, RED);
		len = packet(family, false, 17, 3784, 3784);
		memset(src, 10, family_octets(family));
		comes_by(RED, family, len);
		assert_int_equal(fwd_class(&burst, 0, PUNT_local), CLASS_control_new);
	}
}

/* Send more packets than one source may send in a burst. Return the number that passes. */
static unsigned int passed(enum punt_class class)
{
	struct policer_conf conf;
	unsigned int n = 0;

	policer_get(class, &conf);
	for (unsigned int i = 0; i < conf.source_burst + 100; i++)
		n += fwd_police(&burst, 0, class);
	return n;
}

static void
the_same_address_has_a_share_in_each_vrf(void **state)
{
	static const enum punt_class class[] = {CLASS_bfd, CLASS_bgp, CLASS_icmp,
						CLASS_icmp4_ttl};

	for (uint8_t family = 4; family <= 6; family += 2)
		for (unsigned int i = 0; i < 4; i++) {
			struct policer_conf conf;

			/* After an hour all buckets are full. */
			burst.now += 3600 * HZ << POLICER_TICK_SHIFT;
			policer_get(class[i], &conf);
			comes_by(BLUE, family, packet(family, false, 17, 1, 2));
			passed(class[i]);
			assert_int_equal(passed(class[i]), 0);
			comes_by(RED, family, packet(family, false, 17, 1, 2));
			assert_in_range(passed(class[i]), conf.source_burst,
					conf.source_burst + 1);
		}
}

static void
a_neighbor_waited_for_has_a_share_on_each_link(void **state)
{
	struct policer_conf conf;

	policer_get(CLASS_glean, &conf);
	for (uint8_t family = 4; family <= 6; family += 2) {
		unsigned int src = family == 4 ? 12 : 8;

		burst.now += 3600 * HZ << POLICER_TICK_SHIFT;
		comes_by(BLUE, family, packet(family, false, 17, 1, 2));
		burst.path[0] = PATH(PATH_ONLINK, BLUE);
		passed(CLASS_glean);
		frame[L2_LEN + src]++; /* another source, the same neighbor */
		assert_int_equal(passed(CLASS_glean), 0);
		burst.ifidx = RED;
		burst.in = fib_iface(fwd.fib, RED);
		burst.path[0] = PATH(PATH_ONLINK, RED);
		assert_in_range(passed(CLASS_glean), conf.source_burst,
				conf.source_burst + 1);
	}
}

/* A switch has one MAC in all VLANs of a trunk, and is a neighbor in each. */
static void
the_same_mac_has_a_share_in_each_vlan(void **state)
{
	struct policer_conf conf;

	policer_get(CLASS_arp, &conf);
	packet(4, false, 17, 1, 2);
	comes_by(VLAN, 0, 60);
	passed(CLASS_arp);
	assert_int_equal(passed(CLASS_arp), 0);
	comes_by(VLAN + 1, 0, 60);
	assert_in_range(passed(CLASS_arp), conf.source_burst, conf.source_burst + 1);
}

/* --- tunnels that end in the kernel ----------------------------------------------------- */

static enum punt_class
class_of_frame(uint16_t type, uint8_t mac0)
{
	unsigned int len = packet(4, false, 0, 0, 0);

	put_be16(frame + 12, type);
	frame[0] = mac0;
	comes_by(BLUE, 0, len);
	return fwd_class(&burst, 0, PUNT_not_ip);
}

static void
outer_packets_of_the_kernels_tunnels_have_a_class_of_their_own(void **state)
{
	struct kernel_outer outer = {.pppoe = true}, none = {0};

	kernel_outer_add_udp(&outer, 51820);
	kernel_outer_add_udp(&outer, 3784); /* a port of BFD */
	kernel_outer_add_protocol(&outer, 47);
	kernel_outer_add_protocol(&outer, 89); /* OSPF */
	for (unsigned int on = 0; on <= 1; on++) {
		enum punt_class tunnel = on ? CLASS_kernel_tunnel : CLASS_local;

		kernel_outer_publish(on ? &outer : &none);
		for (uint8_t family = 4; family <= 6; family += 2) {
			assert_int_equal(class_by(BLUE, family, 17, 9, 51820), tunnel);
			assert_int_equal(class_by(BLUE, family, 47, 0, 0x800), tunnel);
			assert_int_equal(class_by(BLUE, family, 17, 51820, 9), CLASS_local);
			assert_int_equal(class_by(BLUE, family, 6, 9, 51820), CLASS_local);
			assert_int_equal(class_by(BLUE, family, 50, 0, 0), CLASS_local);
			/*
			 * Packets of protocols with a class of their own stay in this
			 * class.
			 */
			assert_int_equal(class_by(BLUE, family, 17, 9, 3784),
					 CLASS_control_new);
			assert_int_equal(class_by(BLUE, family, 89, 0, 0),
					 CLASS_control_new);
		}
		for (unsigned int inner = 46; inner <= 47; inner++) {
			unsigned int len =
				packet(6, false, 60, 0, 0); /* an encapsulation limit */

			frame[L2_LEN + 40] = (uint8_t)inner;
			comes_by(BLUE, 6, len);
			assert_int_equal(fwd_class(&burst, 0, PUNT_local),
					 inner == 47 ? tunnel : CLASS_local);
		}
		/*
		 * PPPoE: frames of sessions, but neither discovery nor frames to a group.
		 */
		assert_int_equal(class_of_frame(0x8864, 2),
				 on ? CLASS_kernel_tunnel : CLASS_group);
		assert_int_equal(class_of_frame(0x8864, 3), CLASS_group);
		assert_int_equal(class_of_frame(0x8863, 2), CLASS_group);
		assert_int_equal(class_of_frame(0x88b5, 2), CLASS_group);
	}
	kernel_outer_publish(&none);
}

/* --- BFD packets of a port that is a member of a bridge, bond or team ------------------ */

#define SLOT      5u /* of the session */
#define RING_SIZE 8

/* Pass the burst on as a packet to this router. Return its class; N_PUNT_CLASS: BFD took it. */
static enum punt_class
class_by_dispatch(uint8_t family, uint16_t port, struct bfd_table *table)
{
	static struct {
		struct rte_mbuf m;
		struct packet_meta meta;
	} buffer;
	static alignas(64) char room[4096];
	struct rte_ring *ring = (struct rte_ring *)room;
	struct bfd_pace pace = {.table = table};
	struct fwd_conf conf = {.fib = fwd.fib, .bfd = &pace, .count = &count};
	unsigned int len = packet(family, false, 17, 49200, port);
	uint8_t *udp = frame + L2_LEN + (family == 4 ? 20 : 40);
	void *m;

	len += 8 + BFD_OCTETS - 20;
	put_be16(udp + 4, 8 + BFD_OCTETS);
	memset(udp + 8, 0, BFD_OCTETS);
	put_be32(udp + 8 + BFD_YOUR_DISCR, SLOT);
	comes_by(RED, family, len);
	buffer.m = mbuf;
	rte_mbuf_refcnt_set(&buffer.m, 2); /* it is never freed */
	buffer.m.nb_segs = 1;
	burst.m[0] = &buffer.m;
	burst.verdict[0] = PUNT_local_control;
	assert_in_range(rte_ring_get_memsize(RING_SIZE), 1, sizeof(room));
	assert_int_equal(
		rte_ring_init(ring, "punt", RING_SIZE, RING_F_SP_ENQ | RING_F_SC_DEQ), 0);
	for (unsigned int i = 0; i < N_PUNT_CLASS; i++)
		conf.rings.punt[i] = ring;
	fwd.conf = &conf;
	fwd_dispatch(&burst);
	fwd.conf = NULL;
	if (rte_ring_sc_dequeue(ring, &m) != 0)
		return N_PUNT_CLASS;
	assert_ptr_equal(m, &buffer.m);
	return buffer.meta.class;
}

/*
 * The kernel has the session of one hop by the device above. Forwarders have that over
 * several hops, in the VRF of the device, from which thread bfd has no sockets.
 */
static void
only_multihop_packets_of_a_member_are_for_the_forwarders(void **state)
{
	struct fib *fib = *state;

	fib->iface[RED]->member = true;
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct bfd_table *table = bfd_table_create();
		struct bfd_beat beat = {.expects = true,
					.family = family,
					.ttl_least = 255,
					.vrf = RED,
					.port = BFD_PORT_MULTI};

		assert_non_null(table);
		memcpy(beat.local.octet, family == 4 ? ours : ours6, family_octets(family));
		memcpy(beat.remote.octet, family == 4 ? peer : peer6,
		       family_octets(family));
		put_be32(beat.expect + BFD_YOUR_DISCR, SLOT);
		atomic_store(&table->slot[SLOT].beat, &beat);
		the_host_says_by(RED, family, 17, 49200, BFD_PORT);
		assert_int_equal(class_by_dispatch(family, BFD_PORT, table),
				 CLASS_signalling);
		assert_int_equal(class_by_dispatch(family, BFD_PORT_ECHO, table),
				 CLASS_signalling);
		assert_int_equal(class_by_dispatch(family, BFD_PORT_MULTI, table),
				 N_PUNT_CLASS);
		assert_int_equal(atomic_load(&table->slot[SLOT].n_heard), 1);
		atomic_store(&table->slot[SLOT].beat, NULL);
		bfd_table_free(table);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_peer_of_one_vrf_is_a_stranger_in_another,
						up, down),
		cmocka_unit_test_setup_teardown(
			packets_that_the_kernel_forwards_make_no_peers, up, down),
		cmocka_unit_test_setup_teardown(the_same_address_has_a_share_in_each_vrf,
						up, down),
		cmocka_unit_test_setup_teardown(
			a_neighbor_waited_for_has_a_share_on_each_link, up, down),
		cmocka_unit_test_setup_teardown(the_same_mac_has_a_share_in_each_vlan, up,
						down),
		cmocka_unit_test_setup_teardown(
			outer_packets_of_the_kernels_tunnels_have_a_class_of_their_own, up,
			down),
		cmocka_unit_test_setup_teardown(
			only_multihop_packets_of_a_member_are_for_the_forwarders, up, down),
	};

	if (fwd_cpu_choose(INSTRUCTIONS_AUTO) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
