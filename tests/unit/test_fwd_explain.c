/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `explain`: the walk of a packet that was not received, over tables made by hand. Also
 * the filters and rings of `trace` and `capture`, which observe real packets.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/port/watch.c fpm-dataplane/port/rxq.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/base/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "base/policer.h"
#include "fib/icmp.h"
#include "fib/rules.h"
#include "fwd/fwd.h"
#include "port/watch.h"

#define IN    1
#define OUT   2
#define ADJ   7
#define GROUP 5
#define DST4  0xc6336409u /* 198.51.100.9 */
#define SRC4  0xc0000202u /* 192.0.2.2 */

static const uint8_t mac_in[6] = {2, 0, 0, 0, 0, 1}, mac_out[6] = {2, 0, 0, 0, 1, 1};
static const uint8_t mac_peer[6] = {2, 0, 0, 0, 1, 2};

static void
iface_make(struct fib *fib, uint16_t ifidx, const uint8_t mac[6])
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	*i = (struct fib_iface){.ifidx = ifidx,
				.mtu_bytes = 1400,
				.mtu6_bytes = 1400,
				.up = true,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true,
				.ifindex = ifidx + 10u};
	memcpy(i->mac, mac, 6);
	fib->iface[ifidx] = i;
}

static int
fib_up(void **state)
{
	static const uint8_t net[4] = {198, 51, 100, 0};
	struct fib *fib;

	urcu_qsbr_register_thread();
	policer_init(1000000000, policer_default);
	assert_int_equal(fib_create(&fib, &(struct fib_conf){.n_nodes = 0}), 0);
	iface_make(fib, IN, mac_in);
	iface_make(fib, OUT, mac_out);
	fib->adj[ADJ].ifidx = OUT;
	fib->adj[ADJ].family = 4;
	fib->adj[ADJ].addr = ipaddr_from_v4(0xc0000242);
	fib->adj[ADJ].hop = adj_hop_make(mac_peer, OUT);
	fib->group[GROUP] = group_word_single(PATH(PATH_ADJ, ADJ));
	assert_int_equal(poptrie_add(fib->copy[0].pt4, net, 24, GROUP), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt4), 0);
	*state = fib;
	return 0;
}

static int
fib_down(void **state)
{
	fib_destroy(*state);
	urcu_qsbr_unregister_thread();
	return 0;
}

/*
 * Write Ethernet, IPv4 and UDP headers of a packet of `len` octets. Return the length of
 * the headers.
 */
static uint16_t
frame_make(uint8_t *f, uint16_t len, uint8_t ttl, bool df)
{
	uint8_t *ip = f + 14;

	memset(f, 0, 42);
	memcpy(f, mac_in, 6);
	put_be16(f + 12, 0x0800);
	ip[0] = 0x45;
	put_be16(ip + 2, len);
	put_be16(ip + 6, df ? 0x4000 : 0);
	ip[8] = ttl;
	ip[9] = 17;
	put_be32(ip + 12, SRC4);
	put_be32(ip + 16, DST4);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	put_be16(ip + 20, 4000);
	put_be16(ip + 22, 53);
	return 42;
}

static struct watch_record
explain(struct fib *fib, uint16_t len, uint8_t ttl, bool df)
{
	uint8_t f[64];
	uint16_t n = frame_make(f, len, ttl, df);
	struct watch_record rec;

	fwd_explain(fib, IN, f, n, len < 100 ? 114 : 14u + len, &rec);
	return rec;
}

static void
a_packet_passes_all_stages(void **state)
{
	struct fib *fib = *state;
	struct watch_record rec = explain(fib, 100, 64, false);

	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.stage, STAGE_SEND);
	assert_true(rec.looked_up);
	assert_int_equal(rec.group, GROUP);
	assert_int_equal(rec.path, PATH(PATH_ADJ, ADJ));
	assert_int_equal(rec.out_ifidx, OUT);
	assert_int_equal(rec.mtu_bytes, 1400);
	assert_int_equal(rec.l3_bytes, 100);
	assert_int_equal(rec.via_family, 4);
	assert_int_equal(ipaddr_v4(&rec.via), 0xc0000242);
	assert_memory_equal(rec.rewritten, mac_peer, 6);
	assert_memory_equal(rec.rewritten + 6, mac_out, 6);
	assert_int_equal(rec.rewritten[22], 63);
	assert_int_equal(rec.frame[22], 64); /* as it was received */
}

static void
nothing_is_marked_as_used(void **state)
{
	struct fib *fib = *state;

	explain(fib, 100, 64, false);

	assert_int_equal(fib->adj_used[ADJ], 0);
}

static void
each_stage_can_be_the_last(void **state)
{
	struct fib *fib = *state;
	struct watch_record rec = explain(fib, 100, 1, false);

	assert_int_equal(rec.stage, STAGE_REWRITE);
	assert_true(rec.icmp);
	assert_int_equal(watch_reason(&rec), DROP_ttl);
	fib->adj[ADJ].hop = 0;
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.stage, STAGE_ADJACENCY);
	assert_int_equal(rec.verdict, PUNT_unresolved);
	assert_int_equal(rec.hop, 0);
	assert_int_equal(rec.out_ifidx, OUT);
	/* A packet that must not be fragmented is refused before its neighbor is known. */
	rec = explain(fib, 1401, 64, true);
	assert_int_equal(watch_reason(&rec), DROP_mtu);
	rec = explain(fib, 1400, 64, true);
	assert_int_equal(rec.verdict, PUNT_unresolved);
	rec = explain(fib, 1401, 64, false);
	assert_int_equal(rec.verdict, PUNT_unresolved);
	fib->group[GROUP] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	rec = explain(fib, 100, 64, false);
	assert_int_equal(watch_reason(&rec), DROP_blackhole);
	fib->iface[IN]->forward4 = fib->iface[IN]->fast4 = false;
	fib->group[GROUP] = group_word_single(PATH(PATH_ADJ, ADJ));
	rec = explain(fib, 100, 64, false);
	assert_int_equal(watch_reason(&rec), DROP_forwarding_off);
	rec = explain(fib, 19, 64, false);
	assert_int_equal(rec.stage, STAGE_PARSE);
	assert_int_equal(watch_reason(&rec), DROP_ip4_length);
	assert_false(rec.looked_up);
	fib->iface[IN]->up = false;
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.stage, STAGE_ADMIT);
	assert_int_equal(watch_reason(&rec), DROP_ingress_down);
}

static void
too_big_is_cut_or_answered(void **state)
{
	struct fib *fib = *state;
	struct watch_record rec = explain(fib, 1401, 64, false);

	assert_int_equal(rec.verdict, PUNT_too_big);
	assert_false(rec.icmp);
	rec = explain(fib, 1401, 64, true);
	assert_int_equal(rec.verdict, PUNT_too_big);
	assert_true(rec.icmp);
	assert_int_equal(watch_reason(&rec), DROP_mtu);
	rec = explain(fib, 1400, 64, true);
	assert_int_equal(rec.verdict, WATCH_GO);
	/*
	 * The longest packet that ui allows: with its Ethernet header, the length fits in
	 * 16 bits.
	 */
	rec = explain(fib, WATCH_FRAME_BYTES_MAX - 14, 64, true);
	assert_int_equal(rec.verdict, PUNT_too_big);
	assert_int_equal(rec.l3_bytes, WATCH_FRAME_BYTES_MAX - 14);
}

static void
filters_match_their_fields(void **state)
{
	struct watch_set set = {.points = 1, .live = 1};
	struct watch_filter *f = &set.filter[0];
	uint8_t frame[64];
	uint16_t n = frame_make(frame, 100, 64, false);

	f->points = 1;
	assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n), 1);
	assert_int_equal(watch_wanted(&set, WATCH_SENT, IN, frame, n), 0);
	f->ifidx = OUT;
	assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n), 0);
	*f = (struct watch_filter){.points = 1, .packet = true, .sport = 4000, .dport = 53};
	assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n), 1);
	/* The frame ends within the destination port. */
	assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, 37), 0);
	put_be16(frame + 20, 1); /* a later fragment has no ports */
	assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n), 0);
	for (unsigned int len = 0; len < 34; len++)
		assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, len), 0);
}

/* The IP packet behind the last label decides, whatever the number of labels is. */
static void
filters_match_the_packet_behind_labels(void **state)
{
	struct watch_set set = {.points = 1, .live = 1};
	struct watch_filter *f = &set.filter[0];
	uint8_t plain[64], frame[64 + 20 * LABEL_BYTES];
	uint16_t n = frame_make(plain, 64 - 14u, 64, false);

	*f = (struct watch_filter){.points = 1, .packet = true, .sport = 4000, .dport = 53};
	for (unsigned int labels = 1; labels <= 20; labels++) {
		unsigned int bytes = labels * LABEL_BYTES;

		memcpy(frame, plain, 14u);
		put_be16(frame + 12, MPLS_TYPE);
		for (unsigned int i = 0; i < labels; i++)
			put_be32(frame + 14u + i * LABEL_BYTES,
				 label_entry(100 + i, 0, i + 1 == labels, 9));
		memcpy(frame + 14u + bytes, plain + 14u, n - 14u);
		f->dport = 53;
		assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n + bytes), 1);
		for (unsigned int len = 0; len < 14u + bytes + 24; len++)
			assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, len), 0);
		f->dport = 54;
		assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n + bytes), 0);
		f->dport = 53;
		frame[14u + bytes] = 0x55; /* no IP packet */
		assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n + bytes), 0);
		frame[14u + bytes] = 0x45;
		frame[14u + bytes - 2] = 0; /* no last label */
		assert_int_equal(watch_wanted(&set, WATCH_WALK, IN, frame, n + bytes), 0);
	}
}

static void
a_full_ring_costs_records_and_counts_them(void **state)
{
	struct watch *w = watch_create();
	uint64_t lost = 0;
	struct watch_ring *ring = watch_ring_add(w, &lost);

	for (unsigned int i = 0; i < WATCH_RING_SLOTS; i++)
		assert_non_null(watch_open(ring));
	watch_publish(ring);
	assert_null(watch_open(ring));
	assert_int_equal(lost, 1);
	atomic_store(&ring->tail, 1);
	assert_ptr_equal(watch_open(ring), &ring->record[0]);
	watch_free(w);
}

/* Metrics and JSON need UTF-8. */
static void
a_vrf_whose_name_is_not_utf8_has_the_name_of_its_table(void **state)
{
	struct fib *fib = *state;
	struct fib_vrf *odd = fib_vrf_new(fib, 4000000000, "r\x9b");
	struct fib_vrf *plain = fib_vrf_new(fib, 101, "r\xc3\xa9");

	assert_string_equal(odd->name, "table4000000000");
	assert_string_equal(plain->name, "r\xc3\xa9");
	fib_vrf_free(odd);
	fib_vrf_free(plain);
}

/*
 * Table main has the route. A VRF uses its own FIB; without a FIB it drops the packet. If
 * its FIB has no route, or one of type throw, the route of main counts. If its FIB has a
 * route that refuses packets, the packet is refused.
 */
static void
a_member_of_a_vrf_goes_by_its_fib_then_by_main(void **state)
{
	static const uint8_t net[4] = {198, 51, 100, 0}, any[4];
	static struct fib_rules no_rule;
	enum { REFUSES = GROUP + 1, THROWS };
	struct fib *fib = *state;
	struct fib_vrf *red = fib_vrf_new(fib, 100, "red");
	struct fib_iface *in = fib->iface[IN];
	struct watch_record rec;

	in->vrf = 3;
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, DROP_vrf_no_fib);
	assert_int_equal(rec.stage, STAGE_LOOKUP);
	rec = explain(fib, 1600, 64, false); /* a packet of the slow path */
	assert_int_equal(rec.verdict, DROP_vrf_no_fib);

	fib_vrf_publish(fib, 3, red);
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict,
			 DROP_vrf_no_fib); /* its routes may be still to come */
	assert_false(rec.to_main);
	fib->vrfs_told = true;
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.vrf, 3);
	assert_true(rec.to_main);
	assert_int_equal(rec.group, GROUP);

	fib->group[REFUSES] = group_word_single(PATH(PATH_UNREACHABLE, 0));
	fib->group[THROWS] = group_word_single(PATH(PATH_THROW, 0));
	assert_int_equal(poptrie_add(red->tries.pt4, any, 0, REFUSES), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, PUNT_unreach);
	assert_int_equal(rec.cause, DROP_unreachable);
	assert_false(rec.to_main);

	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, THROWS), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_true(rec.to_main);
	in->rules4 = true;
	fib->rules[0] = &no_rule; /* the rules have decided that there is no route */
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, PUNT_unreach);
	assert_false(rec.to_main);
	fib->rules[0] = NULL; /* the default rules: first the VRF, then main */
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, WATCH_GO);
	in->rules4 = false;

	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, GROUP), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.group, GROUP);
	assert_false(rec.to_main);
}

/*
 * A route to another VRF is looked up there once and costs one hop. A second such route is
 * not followed.
 */
static void
a_route_to_another_vrf_is_followed_once(void **state)
{
	static const uint8_t net[4] = {198, 51, 100, 0};
	enum { TO_BLUE = GROUP + 1, TO_RED };
	struct fib *fib = *state;
	struct fib_vrf *red = fib_vrf_new(fib, 100, "red"),
		       *blue = fib_vrf_new(fib, 2000, "blue");
	struct watch_record rec;

	fib->iface[IN]->vrf = 3;
	fib_vrf_publish(fib, 3, red);
	fib_vrf_publish(fib, 4, blue);
	fib->group[TO_BLUE] = group_word_single(PATH(PATH_VRF, 4));
	fib->group[TO_RED] = group_word_single(PATH(PATH_VRF, 3));
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, TO_BLUE), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	fib_vrf_publish(fib, 4, NULL); /* the same drop as for a member without a FIB */
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, DROP_vrf_no_fib);
	assert_int_equal(rec.to_vrf, 4);
	fib_vrf_publish(fib, 4, blue);
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict,
			 DROP_vrf_no_fib); /* its routes may be still to come */
	fib->vrfs_told = true;
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, WATCH_GO); /* by main: blue has no route */
	assert_int_equal(rec.to_vrf, 4);

	assert_int_equal(poptrie_add(blue->tries.pt4, net, 24, GROUP), 0);
	assert_int_equal(poptrie_commit(blue->tries.pt4), 0);
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.group, TO_BLUE);
	assert_int_equal(rec.path, PATH(PATH_ADJ, ADJ));
	assert_int_equal(rec.vrf, 3);
	assert_int_equal(rec.to_vrf, 4);
	assert_int_equal(rec.out_ifidx, OUT);
	assert_int_equal(rec.rewritten[22], 63);

	fib->mtu_bytes[1] = 1300;
	fib->mtu_bytes[2] = 1200;
	fib->group[TO_BLUE] = group_word_single(path_with_mtu(PATH(PATH_VRF, 4), 1));
	rec = explain(fib, 1301, 64, true);
	assert_int_equal(watch_reason(&rec), DROP_mtu);
	assert_int_equal(rec.mtu_bytes, 1300);
	fib->group[GROUP] = group_word_single(path_with_mtu(PATH(PATH_ADJ, ADJ), 2));
	rec = explain(fib, 1200, 64, true);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.mtu_bytes, 1200);

	assert_int_equal(poptrie_add(blue->tries.pt4, net, 24, TO_RED), 0);
	assert_int_equal(poptrie_commit(blue->tries.pt4), 0);
	rec = explain(fib, 100, 64, false);
	assert_int_equal(rec.verdict, PUNT_unreach);
	assert_int_equal(rec.cause, DROP_vrf_again);
}

/*
 * The second choice takes other bits of the hash, because all packets that come to it agree
 * in the bits of the first choice.
 */
static void
the_second_choice_among_equals_is_not_the_first(void **state)
{
	static const uint8_t net[4] = {198, 51, 100, 0};
	enum { TO_BLUE = GROUP + 1, THERE };
	const fib_path first[2] = {PATH(PATH_VRF, 4), PATH(PATH_DOWN, 0)},
		       second[2] = {PATH(PATH_ADJ, ADJ), PATH(PATH_ADJ, ADJ + 1)};
	struct fib *fib = *state;
	struct fib_vrf *blue = fib_vrf_new(fib, 2000, "blue");
	struct ipaddr dst = ipaddr_from_v4(DST4);
	unsigned int n[2] = {0, 0};

	fib_vrf_publish(fib, 4, blue);
	fib->adj[ADJ + 1] = fib->adj[ADJ];
	fib->group[TO_BLUE] = group_word_block(first, 1);
	fib->group[THERE] = group_word_block(second, 1);
	assert_int_equal(poptrie_add(fib->copy[0].pt4, net, 24, TO_BLUE), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt4), 0);
	assert_int_equal(poptrie_add(blue->tries.pt4, net, 24, THERE), 0);
	assert_int_equal(poptrie_commit(blue->tries.pt4), 0);
	for (uint16_t sport = 1; sport <= 400; sport++) {
		uint8_t f[64];
		uint16_t len = frame_make(f, 100, 64, false);
		struct watch_record rec;

		put_be16(f + 34, sport);
		fwd_explain(fib, IN, f, len, 114, &rec);
		/* The punt thread sends packets by the same path after they waited. */
		assert_int_equal(rec.path, fib_resolve(fib, 0, 4, &dst, rec.flow_hash));
		if (path_kind(rec.path) == PATH_ADJ)
			n[path_index(rec.path) - ADJ]++;
	}
	assert_in_range(n[0] + n[1], 100, 300);
	assert_in_range(n[0], (n[0] + n[1]) / 4, (n[0] + n[1]) * 3 / 4);
}

/*
 * An ICMP error that cannot be sent must not use a token of its class or a place in the
 * ring.
 */
static void
each_error_that_is_asked_for_is_sent(void **state)
{
	struct fib *fib = *state;
	unsigned int n = 0;

	for (enum path_kind kind = PATH_NONE; kind <= PATH_KERNEL; kind++) {
		struct watch_record rec;

		fib_vrf_publish(fib, 4, fib_vrf_new(fib, 2000, "blue"));
		fib->group[GROUP] = group_word_single(PATH(kind, kind == PATH_ADJ     ? ADJ
								 : kind == PATH_ENCAP ? 0
										      : 4));
		if (kind == PATH_VRF) { /* the route of VRF 4 leads to a VRF, too */
			static const uint8_t net[4] = {198, 51, 100, 0};

			poptrie_add(fib->vrf[4]->tries.pt4, net, 24, GROUP);
			poptrie_commit(fib->vrf[4]->tries.pt4);
		}
		rec = explain(fib, 100, 64, false);
		fib_vrf_free(fib->vrf[4]);
		fib_vrf_publish(fib, 4, NULL);
		if (!rec.icmp)
			continue;
		n++;
		if (icmp_of_drop(rec.cause, 4).type == 0 ||
		    icmp_of_drop(rec.cause, 6).type == 0)
			fail_msg("%s: no ICMP error is sent", reason_info[rec.cause].name);
	}
	assert_int_equal(n, 9);
}

/* The kernel checks TTL and MTU, so that it sends the ICMP errors. */
static void
a_route_by_the_kernel_is_punted_whatever_its_ttl_and_size(void **state)
{
	struct fib *fib = *state;

	fib->group[GROUP] = group_word_single(PATH(PATH_KERNEL, 7));
	for (uint8_t ttl = 0; ttl < 3; ttl++) {
		struct watch_record rec = explain(fib, 1500, ttl, true);

		assert_int_equal(rec.verdict, PUNT_kernel_route);
		assert_int_equal(rec.class, CLASS_kernel_route);
		assert_false(rec.icmp);
	}
	fib->iface[IN]->forward4 = fib->iface[IN]->fast4 = false;
	assert_int_equal(explain(fib, 100, 64, false).verdict, DROP_forwarding_off);
}

#define OUTER PORT_MAX
#define INNER (PORT_MAX + 1)

/* Add VLAN 100 on IN, and VLAN 30 on that VLAN, with the MACs. */
static void
vlans_make(struct fib *fib, const uint8_t outer[6], const uint8_t inner[6])
{
	const struct fib_tag s100 = {VLAN_S_TYPE, 100}, c30 = {VLAN_C_TYPE, 30};

	fib->vlans[IN] = calloc(1, sizeof(struct fib_vlans));
	fib->vlans[IN]->ifidx[1][100] = OUTER;
	fib->vlans[OUTER] = calloc(1, sizeof(struct fib_vlans));
	fib->vlans[OUTER]->ifidx[0][30] = INNER;
	iface_make(fib, OUTER, outer);
	iface_make(fib, INNER, inner);
	fib->iface[OUTER]->port = fib->iface[INNER]->port = IN;
	fib->iface[OUTER]->tag[0] = fib->iface[INNER]->tag[0] = s100;
	fib->iface[INNER]->tag[1] = c30;
	fib->iface[OUTER]->n_tags = 1;
	fib->iface[INNER]->n_tags = 2;
}

/* Explain a frame of these VLANs. */
static struct watch_record
explain_tagged(struct fib *fib, const uint8_t *plain, uint16_t n, unsigned int tags,
	       const uint8_t mac[6])
{
	uint8_t f[72];
	struct watch_record rec;

	memcpy(f, mac, 6);
	memcpy(f + 6, plain + 6, 6);
	put_be32(f + 12, 0x88a86064);
	put_be32(f + 16, 0x8100001e);
	memcpy(f + 12 + 4 * tags, plain + 12, n - 12u);
	fwd_explain(fib, IN, f, (uint16_t)(n + 4 * tags), 114 + 4 * tags, &rec);
	return rec;
}

/* The record shows the packet behind the tags, as that of a received frame does. */
static void
a_frame_with_tags_has_the_record_of_its_packet(void **state)
{
	uint8_t plain[64];
	uint16_t n = frame_make(plain, 100, 64, false);

	vlans_make(*state, mac_in, mac_in);
	for (unsigned int tags = 1; tags <= 2; tags++) {
		struct watch_record rec = explain_tagged(*state, plain, n, tags, mac_in);

		assert_int_equal(rec.verdict, WATCH_GO);
		assert_int_equal(rec.in_ifidx, tags == 1 ? OUTER : INNER);
		assert_int_equal(rec.frame_bytes, 114);
		assert_memory_equal(rec.frame, plain, n);
	}
}

/* A VLAN takes frames to its own MAC and to those of the interfaces below, as in Linux. */
static void
a_vlan_takes_frames_to_the_macs_below(void **state)
{
	static const uint8_t mac[3][6] = {
		{2, 0, 0, 0, 0, 7}, {2, 0, 0, 0, 0, 8}, {2, 0, 0, 0, 0, 9}};
	uint8_t plain[64];
	uint16_t n = frame_make(plain, 100, 64, false);

	vlans_make(*state, mac[0], mac[1]);
	for (unsigned int tags = 1; tags <= 2; tags++) {
		assert_int_equal(explain_tagged(*state, plain, n, tags, mac_in).verdict,
				 WATCH_GO);
		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(
				explain_tagged(*state, plain, n, tags, mac[i]).verdict,
				i < tags ? WATCH_GO : DROP_l2_foreign);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_frame_with_tags_has_the_record_of_its_packet, fib_up, fib_down),
		cmocka_unit_test_setup_teardown(a_vlan_takes_frames_to_the_macs_below,
						fib_up, fib_down),
		cmocka_unit_test_setup_teardown(a_packet_passes_all_stages, fib_up,
						fib_down),
		cmocka_unit_test_setup_teardown(nothing_is_marked_as_used, fib_up,
						fib_down),
		cmocka_unit_test_setup_teardown(each_stage_can_be_the_last, fib_up,
						fib_down),
		cmocka_unit_test_setup_teardown(
			a_route_by_the_kernel_is_punted_whatever_its_ttl_and_size, fib_up,
			fib_down),
		cmocka_unit_test_setup_teardown(too_big_is_cut_or_answered, fib_up,
						fib_down),
		cmocka_unit_test_setup_teardown(
			a_vrf_whose_name_is_not_utf8_has_the_name_of_its_table, fib_up,
			fib_down),
		cmocka_unit_test_setup_teardown(
			a_member_of_a_vrf_goes_by_its_fib_then_by_main, fib_up, fib_down),
		cmocka_unit_test_setup_teardown(a_route_to_another_vrf_is_followed_once,
						fib_up, fib_down),
		cmocka_unit_test_setup_teardown(
			the_second_choice_among_equals_is_not_the_first, fib_up, fib_down),
		cmocka_unit_test_setup_teardown(each_error_that_is_asked_for_is_sent,
						fib_up, fib_down),
		cmocka_unit_test(filters_match_their_fields),
		cmocka_unit_test(filters_match_the_packet_behind_labels),
		cmocka_unit_test(a_full_ring_costs_records_and_counts_them),
	};

	if (fwd_cpu_choose(INSTRUCTIONS_AUTO) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
