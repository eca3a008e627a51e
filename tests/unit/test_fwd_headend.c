/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outer header that a headend of SRv6 writes, and the inner packet behind it, octet by
 * octet: RFC 8754, 2 and 4.1, RFC 8986, 5.1 and 5.2, RFC 2473, 6, RFC 6040, 4.1.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fib/rules.h"
#include "fwd/note.h"

#include "tunnel_bed.h"

#include "fib/sid_entry.h"

#define HEADEND 1 /* index in fib->encap and fib->headend */
#define OUTER   40

static const uint8_t tunsrc6[16] = {0x20, 1, 0xd, 0xb8, 0, 0xff, [15] = 1};
static const uint8_t own6[16] = {0xfd, 1, [15] = 7};
static struct fib_seg6 seg6;

/*
 * Make the route to HOST4 and host6 a headend with `n` segments: remote6, then fc00::1,
 * fc00::2 and so on. In the words, as in a packet, the first segment to visit is the last
 * of the list.
 */
static struct fib_headend *
headend(enum srv6_mode mode, unsigned int n, const uint8_t source[16])
{
	uint32_t word[SRV6_WORDS_MAX];
	uint8_t segments[16 * SRV6_SEGMENTS_MAX] = {0}, n_words;

	for (unsigned int i = 1; i < n; i++) {
		segments[16 * (n - 1 - i)] = 0xfc;
		segments[16 * (n - 1 - i) + 15] = (uint8_t)i;
	}
	memcpy(segments + 16 * (n - 1), remote6, 16);
	n_words = srv6_headend_pack(mode, segments, n, word);
	if (source != NULL)
		n_words = srv6_headend_add_source(word, n_words, source);
	fib->encap[HEADEND] = (struct fib_encap){.next = PATH(PATH_VRF, 0)};
	assert_true(fib_headend_write(&fib->headend[HEADEND], word, n_words));
	return &fib->headend[HEADEND];
}

static int
headends_up(void **state)
{
	if (up(state) != 0)
		return -1;
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ENCAP, HEADEND));
	memcpy(seg6.source.octet, tunsrc6, 16);
	fib->seg6 = &seg6;
	return 0;
}

static int
headends_down(void **state)
{
	fib->seg6 = NULL; /* not allocated */
	return down(state);
}

/* Check the outer IPv6 header. The flow label may have any value but 0. */
static void
outer_is(const uint8_t *out, unsigned int bytes, uint8_t proto, uint8_t class)
{
	assert_int_equal(get_be32(out) >> 20, 0x600u | class);
	assert_int_not_equal(get_be32(out) & 0xfffff, 0);
	assert_int_equal(get_be16(out + 4), bytes - 40);
	assert_int_equal(out[6], proto);
	assert_int_equal(out[7], 64);
	assert_memory_equal(out + 8, tunsrc6, 16);
	assert_memory_equal(out + 24, remote6, 16);
}

/* Check the inner packet: its TTL is one less, and its checksum is right. */
static void
inside_is(const uint8_t *ip, uint8_t family)
{
	assert_int_equal(ip[0] >> 4, family);
	assert_int_equal(ip[family == 4 ? 8 : 7], 8);
	assert_int_equal(ip[99], 0x77);
	if (family == 4)
		assert_true(ip4_checksum_ok(ip, 20));
}

/*
 * S1: all segments are in the list. The first segment to visit is the last of the list, and
 * the destination.
 */
static void
h_encaps_lists_all_segments(void **state)
{
	for (unsigned int n = 1; n <= 4; n++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			unsigned int head = OUTER + 8 + 16 * n;
			uint8_t want[8] = {family == 4 ? 4 : 41, (uint8_t)(2 * n), 4,
					   (uint8_t)(n - 1), (uint8_t)(n - 1)};
			const uint8_t *out;

			headend(SRV6_ENCAP, n, NULL);
			out = into(family, 100, NULL);
			assert_int_equal(b.verdict[0], VERDICT_GO);
			leaves(100 + head, 0x86dd, WAN);
			outer_is(out, 100 + head, 43, 0xb8);
			assert_memory_equal(out + OUTER, want, 8);
			assert_memory_equal(out + head - 16, remote6, 16);
			for (unsigned int i = 1; i < n; i++) {
				assert_int_equal(out[head - 16 * (i + 1)], 0xfc);
				assert_int_equal(out[head - 16 * i - 1], i);
			}
			inside_is(out + head, family);
		}
}

/* S2: the first segment is in the destination only. One segment needs no list. */
static void
h_encaps_red_leaves_the_first_segment_out(void **state)
{
	for (unsigned int n = 1; n <= 5; n++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			unsigned int head = n == 1 ? OUTER : OUTER + 8 + 16 * (n - 1);
			uint8_t proto = family == 4 ? 4 : 41;
			uint8_t want[8] = {proto, (uint8_t)(2 * (n - 1)), 4,
					   (uint8_t)(n - 1), (uint8_t)(n - 2)};
			const uint8_t *out;

			headend(SRV6_ENCAP_RED, n, NULL);
			out = into(family, 100, NULL);
			assert_int_equal(b.verdict[0], VERDICT_GO);
			leaves(100 + head, 0x86dd, WAN);
			outer_is(out, 100 + head, n == 1 ? proto : 43, 0xb8);
			inside_is(out + head, family);
			if (n == 1)
				continue;
			assert_memory_equal(out + OUTER, want, 8);
			assert_int_equal(out[head - 1], 1);
			assert_int_equal(out[OUTER + 8 + 15], n - 1);
		}
}

/* Our own end points read what headends write. */
static void
end_points_read_the_header(void **state)
{
	struct sid_packet p;
	const uint8_t *out;

	headend(SRV6_ENCAP_RED, 3, NULL);
	out = into(4, 100, NULL);
	assert_true(sid_packet_read(out, 300, &p));
	assert_int_equal(p.left, 2);
	assert_int_equal(p.upper, 4);
	assert_int_equal(sid_segment(out, &p)[15], 1);
	p.left--;
	assert_int_equal(sid_segment(out, &p)[15], 2);
	assert_int_equal(sid_packet_inside(out, 300, &p), 4);
}

/*
 * RFC 6040, 4.1: the ECN field is copied. RFC 2473, 6.4: the traffic class is copied, too.
 */
static void
the_class_is_that_of_the_packet(void **state)
{
	headend(SRV6_ENCAP_RED, 1, NULL);
	for (tos = 0x20; tos <= 0x23; tos++)
		for (uint8_t family = 4; family <= 6; family += 2)
			assert_int_equal(get_be32(into(family, 60, set_tos)) >> 20,
					 0x600u | tos);
}

static uint8_t port;

static void
set_port(uint8_t *ip)
{
	ip[(ip[0] >> 4 == 4 ? 20 : 40) + 1] = port;
}

/* RFC 6437: packets of one flow have one label, and two flows have different labels. */
static void
the_label_is_that_of_the_flow(void **state)
{
	uint32_t label[16];

	headend(SRV6_ENCAP, 2, NULL);
	for (uint8_t family = 4; family <= 6; family += 2) {
		for (port = 0; port < 16; port++) {
			label[port] = get_be32(into(family, 60, set_port)) & 0xfffff;
			assert_int_equal(get_be32(into(family, 70, set_port)) & 0xfffff,
					 label[port]);
		}
		for (unsigned int i = 1; i < 16; i++)
			assert_int_not_equal(label[i], label[0]);
	}
}

/* S3: the flow of the inner packet decides among equal routes to the first segment. */
static void
flows_spread_over_the_routes_below(void **state)
{
	static fib_path both[2] = {PATH(PATH_ADJ, 1), PATH(PATH_ADJ, 2)};
	unsigned int n[3] = {0};

	headend(SRV6_ENCAP, 2, NULL);
	fib->group[11] = group_word_block(both, 1);
	for (unsigned int i = 0; i < 200; i++) {
		port = (uint8_t)i;
		into(4, 60, set_port);
		assert_int_equal(b.verdict[0], VERDICT_GO);
		n[b.hop[0] & 0xffff]++;
	}
	assert_true(n[LAN] > 50 && n[WAN] > 50);
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

static void
rules_for_the_class_of_the_outer_header_decide(void **state)
{
	struct fib_rules *rules = calloc(1, sizeof(*rules) + 2 * sizeof(rules->rule[0]));

	assert_non_null(rules);
	rules->n = 2;
	rules->rule[0] = (struct fib_rule){.ifindex = 1, /* a packet of this host */
					   .action = FIB_RULE_PATH,
					   .path = PATH_BLACKHOLE,
					   .tos = 0xb8,
					   .tos_mask = 0xfc};
	rules->rule[1] = (struct fib_rule){.action = FIB_RULE_TABLE,
					   .suppress_group = RULE_NO_GROUP};
	headend(SRV6_ENCAP, 2, NULL);
	fib->rules[1] = rules;
	fwd.outer_epoch++;
	into(4, 60, NULL); /* the class of the outer header is 0xb8 */
	assert_int_equal(b.verdict[0], DROP_blackhole);
	rules->rule[0].tos = 0x20;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	fib->rules[1] = NULL;
	fwd.outer_epoch++;
	free(rules);
}

/*
 * The outer source address is the source of the next hop; else the kernel's source for all
 * headends; else an address of the egress interface.
 */
static void
the_source_is_the_nearest_that_is_set(void **state)
{
	static const uint8_t its[16] = {0xfd, 2, [15] = 9};
	struct fib_iface *wan = fib->iface[WAN];

	headend(SRV6_ENCAP, 1, its);
	assert_memory_equal(into(4, 60, NULL) + 8, its, 16);
	headend(SRV6_ENCAP, 1, NULL);
	assert_memory_equal(into(4, 60, NULL) + 8, tunsrc6, 16);
	memset(&seg6, 0, sizeof(seg6));
	memcpy(wan->src6.octet, own6, 16);
	assert_memory_equal(into(4, 60, NULL) + 8, own6, 16);
	/* RFC 6724, rule 8: the address in the subnet of the first segment. */
	wan->n_own6 = 2;
	wan->own6[0] = (struct fib_source){.plen = 64};
	memcpy(wan->own6[0].addr.octet, own6, 16);
	wan->own6[1] = (struct fib_source){.plen = 64};
	memcpy(wan->own6[1].addr.octet, local6, 16);
	assert_memory_equal(into(4, 60, NULL) + 8, local6, 16);
	wan->n_own6 = 0;
	memset(&wan->src6, 0, sizeof(wan->src6)); /* WAN has no address */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	memcpy(seg6.source.octet, tunsrc6, 16);
}

static uint8_t ttl_of_it;

static void
set_ttl(uint8_t *ip)
{
	ip[ip[0] >> 4 == 4 ? 8 : 7] = ttl_of_it;
}

static void
what_cannot_leave_has_a_reason(void **state)
{
	uint8_t was[200];

	headend(SRV6_ENCAP, 2, NULL);
	for (ttl_of_it = 0; ttl_of_it <= 1; ttl_of_it++) {
		into(4, 60, set_ttl);
		assert_int_equal(b.verdict[0], PUNT_ttl_expired);
	}
	fib->group[11] = group_word_single(PATH(PATH_NONE, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_no_route);
	fib->group[11] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], DROP_blackhole);
	/*
	 * If the route to the first segment leads to the kernel, to this host or into a
	 * tunnel, the kernel gets the packet unchanged.
	 */
	for (unsigned int k = 0; k < 3; k++) {
		static const fib_path path[] = {PATH(PATH_KERNEL, 0), PATH(PATH_LOCAL, 0),
						PATH(PATH_ONLINK, T4)};

		fib->group[11] = group_word_single(path[k]);
		gre4(0);
		memcpy(was, frame_begin(LAN, 4) - 14, 14);
		inner_write(was + 14, 4, 60, false);
		into(4, 60, NULL);
		assert_int_equal(b.verdict[0], PUNT_kernel_route);
		assert_int_equal(packet.m.data_len, 74);
		assert_memory_equal(packet.buffer + 128, was, 74);
	}
	/* The first segment is behind the same headend. */
	fib->group[11] = group_word_single(PATH(PATH_ENCAP, HEADEND));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], DROP_encap_loop);
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
	fib->iface[WAN]->up = false;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_egress_down);
	fib->iface[WAN]->up = true;
	fib->seg6 = NULL; /* the source is not known yet */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->seg6 = &seg6;
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
}

/* The packet waits for the neighbor of the outer packet, and is unchanged. */
static void
packets_wait_for_the_neighbor(void **state)
{
	headend(SRV6_ENCAP, 2, NULL);
	fib->adj[2].hop = 0;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
	assert_int_equal(b.path[0], PATH(PATH_ENCAP, HEADEND));
	assert_int_equal(b.hop[0] & 0xffff, WAN);
	assert_int_equal(packet.m.data_len, 74);
	fib->adj[2].hop = adj_hop_make(wan_peer, WAN);
	fib->adj_used[2] = ADJ_UNUSED;
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
	assert_int_equal(b.path[0], PATH(PATH_ENCAP, HEADEND));
	assert_int_equal(b.hop[0] & 0xffff, WAN);
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

/* S4: the ICMP error has the MTU without the outer header. */
static void
packets_too_big_are_told_what_fits(void **state)
{
	headend(SRV6_ENCAP, 3, NULL); /* an outer header of 96 octets */
	for (uint8_t family = 4; family <= 6; family += 2) {
		into(family, 1404, NULL);
		assert_int_equal(b.verdict[0], VERDICT_GO);
		into(family, 1405, NULL);
		assert_int_equal(b.verdict[0], PUNT_too_big);
		assert_int_equal(packet.meta.mtu_bytes, 1404);
		assert_int_equal(packet.m.data_len, 14 + 1405);
	}
	/* The MTU of the route counts the packet without the outer header, as in Linux. */
	fib->mtu_bytes[1] = 1300;
	fib->group[10] = group_word_single(path_with_mtu(PATH(PATH_ENCAP, HEADEND), 1));
	into(4, 1300, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1301, NULL);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1300);
	fib->group[10] = group_word_single(PATH(PATH_ENCAP, HEADEND));
	/* The MTU of the route to the first segment includes the outer header. */
	fib->group[11] = group_word_single(path_with_mtu(PATH(PATH_ADJ, 2), 1));
	into(4, 1204, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1205, NULL);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1204);
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

/* The outer packet has the longest list of segments, and leaves by a VLAN with two tags. */
static void
the_longest_header_and_two_tags_fit(void **state)
{
	const uint8_t *eth;

	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 2;
	fib->iface[WAN]->tag[0] = (struct fib_tag){VLAN_S_TYPE, 20};
	fib->iface[WAN]->tag[1] = (struct fib_tag){VLAN_C_TYPE, 300};
	for (unsigned int red = 0; red < 2; red++) {
		assert_int_equal(
			headend(red ? SRV6_ENCAP_RED : SRV6_ENCAP, 4 + red, NULL)->bytes,
			SRV6_HEAD_MAX);
		into(4, 60, NULL);
		assert_int_equal(b.verdict[0], VERDICT_GO);
		eth = rte_pktmbuf_mtod(&packet.m, const uint8_t *);
		assert_int_equal(packet.m.data_len, 14 + 8 + SRV6_HEAD_MAX + 60);
		assert_true(packet.m.data_off >= 8);
		assert_memory_equal(eth, wan_peer, 6);
		assert_memory_equal(eth + 12,
				    "\x88\xa8\x00\x14\x81\x00\x01\x2c\x86\xdd\x6b", 11);
	}
	fib->iface[WAN]->n_tags = fib->iface[WAN]->n_written = 0;
}

#define RED 5

/*
 * The first segment of a packet of a VRF is looked up in main, whatever routes the VRF has.
 */
static void
packets_of_a_vrf_are_looked_up_below_in_main(void **state)
{
	struct fib_vrf *red = fib_vrf_new(fib, 1001, "red");
	uint8_t net[4];

	headend(SRV6_ENCAP, 2, NULL);
	assert_non_null(red);
	put_be32(net, HOST4);
	fib->group[30] = group_word_single(PATH(PATH_ADJ, 1));
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, 10), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	assert_int_equal(poptrie_add(red->tries.pt6, remote6, 128, 30), 0);
	assert_int_equal(poptrie_commit(red->tries.pt6), 0);
	fib_vrf_publish(fib, RED, red);
	fib->iface[LAN]->vrf = RED;
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	leaves(60 + OUTER + 8 + 32, 0x86dd, WAN);
	fib->iface[LAN]->vrf = 0;
}

/* A sample of a sent packet names the neighbor that it was sent to. */
static void
samples_name_the_neighbor(void **state)
{
	static fib_path both[2] = {PATH(PATH_ADJ, 1), PATH(PATH_ADJ, 2)};
	struct watch_record rec;

	headend(SRV6_ENCAP, 2, NULL);
	fib->group[11] = group_word_block(both, 1);
	put_be32(fib->adj[1].addr.octet, 1);
	put_be32(fib->adj[2].addr.octet, 2);
	for (unsigned int i = 0; i < 64; i++) {
		port = (uint8_t)i;
		into(i % 2 == 0 ? 4 : 6, 60, set_port);
		memset(&rec, 0, sizeof(rec));
		b.l2[0] += fwd_headend_written(&b, 0);
		fwd_note_path(&b, 0, &rec);
		assert_int_equal(rec.via_family, 4);
		assert_int_equal(get_be32(rec.via.octet),
				 (b.hop[0] & 0xffff) == LAN ? 1 : 2);
	}
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

static void
padding_is_cut_off(void **state)
{
	uint8_t *ip = frame_begin(LAN, 4);

	headend(SRV6_ENCAP_RED, 1, NULL);
	inner_write(ip, 4, 30, false);
	walk(46);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	leaves(70, 0x86dd, WAN);
}

/*
 * With random octets and lengths, nothing outside the frame and its headroom is read or
 * written. A sanitizer checks this, because the memory ends where the frame ends.
 */
static void
no_packet_is_read_beyond_its_end(void **state)
{
	unsigned int n_sent = 0, n_other = 0;

	srandom(41);
	for (unsigned int round = 0; round < 60000; round++) {
		enum srv6_mode mode = random() % 2 == 0 ? SRV6_ENCAP : SRV6_ENCAP_RED;
		unsigned int n = 1 + (unsigned int)random() % (mode == SRV6_ENCAP ? 4 : 5);
		uint8_t family = random() % 2 == 0 ? 4 : 6, *ip = frame_begin(LAN, family);
		unsigned int len = inner_write(ip, family, 60, false), cut = 0;
		uint8_t *memory;

		headend(mode, n, random() % 2 == 0 ? own6 : NULL);
		for (unsigned int k = (unsigned int)random() % 3; k > 0; k--)
			ip[(unsigned int)random() % len] = (uint8_t)random();
		if (family == 4 && random() % 8 != 0) {
			put_be16(ip + 10, 0);
			put_be16(ip + 10,
				 (uint16_t)~inet_fold(inet_sum(ip, (ip[0] & 15u) * 4, 0)));
		}
		if (random() % 3 == 0)
			cut = (unsigned int)random() % (len - 19);
		memory = malloc(128 + 14 + len - cut);
		assert_non_null(memory);
		memcpy(memory, packet.buffer, 128 + 14 + len - cut);
		packet.m.buf_addr = memory;
		packet.m.buf_len = (uint16_t)(128 + 14 + len - cut);
		walk(len - cut);
		if (b.verdict[0] == VERDICT_GO)
			n_sent++;
		else
			n_other++;
		assert_true(packet.m.data_len == packet.m.pkt_len &&
			    packet.m.data_off + packet.m.data_len <= packet.m.buf_len);
		free(memory);
	}
	assert_true(n_sent > 5000 && n_other > 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h_encaps_lists_all_segments),
		cmocka_unit_test(h_encaps_red_leaves_the_first_segment_out),
		cmocka_unit_test(end_points_read_the_header),
		cmocka_unit_test(the_class_is_that_of_the_packet),
		cmocka_unit_test(the_label_is_that_of_the_flow),
		cmocka_unit_test(flows_spread_over_the_routes_below),
		cmocka_unit_test(rules_for_the_class_of_the_outer_header_decide),
		cmocka_unit_test(the_source_is_the_nearest_that_is_set),
		cmocka_unit_test(what_cannot_leave_has_a_reason),
		cmocka_unit_test(packets_wait_for_the_neighbor),
		cmocka_unit_test(packets_too_big_are_told_what_fits),
		cmocka_unit_test(the_longest_header_and_two_tags_fit),
		cmocka_unit_test(packets_of_a_vrf_are_looked_up_below_in_main),
		cmocka_unit_test(samples_name_the_neighbor),
		cmocka_unit_test(padding_is_cut_off),
		cmocka_unit_test(no_packet_is_read_beyond_its_end),
	};

	return cmocka_run_group_tests(tests, headends_up, headends_down);
}
