/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that the punt thread forwards, octet by octet: plain ones and fragments; each
 * drop with its reason and its ICMP error; packets that wait for a neighbor.
 *
 * link: fpm-dataplane/punt/forward.c fpm-dataplane/punt/tunnel.c fpm-dataplane/punt/headend.c
 * link: fpm-dataplane/punt/label.c fpm-dataplane/punt/out.c fpm-dataplane/punt/icmp.c
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "punt_bed.h"

/* --- plain packets -------------------------------------------------------------------- */

static void
a_packet_leaves_with_a_lower_ttl_and_without_padding(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct rte_mbuf *m = packet_make(family, 60);

		atomic_store(&fib->adj_used[2], ADJ_UNUSED);
		rte_pktmbuf_append(m, 6);
		forward(m);
		assert_int_equal(fib->adj_used[2], ADJ_USED);
		m = frame_left(60, family == 4 ? 0x0800 : 0x86dd, WAN);
		packet_is(l3_of(m), family, 60, 8);
		rte_pktmbuf_free(m);
		assert_int_equal(n_judged, family == 4 ? 1 : 2);
		assert_ptr_equal(judged_out, fib->iface[WAN]);
		counted(N_REASON, family == 4, family == 6, 0);
	}
}

static void
a_packet_of_this_host_keeps_its_ttl_and_is_not_counted(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct rte_mbuf *m = packet_make(family, 60);

		ttl_write(m, 1);
		originate(m);
		m = frame_left(60, family == 4 ? 0x0800 : 0x86dd, WAN);
		packet_is(l3_of(m), family, 60, 1);
		rte_pktmbuf_free(m);
		assert_int_equal(n_judged, 0);
		counted(N_REASON, 0, 0, 0);
	}
}

static void
the_ttl_ends_at_one(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct rte_mbuf *m = packet_make(family, 60);

		ttl_write(m, 2);
		forward(m);
		m = frame_left(60, family == 4 ? 0x0800 : 0x86dd, WAN);
		packet_is(l3_of(m), family, 60, 1);
		rte_pktmbuf_free(m);
		counted(N_REASON, family == 4, family == 6, 0);
		m = packet_make(family, 60);
		ttl_write(m, 1);
		forward(m);
		error_left(family, family == 4 ? 11 : 3, 0, 0);
		counted(DROP_ttl, 0, 0, 1);
	}
}

static void
an_egress_that_is_down_or_gone_is_told(void **state)
{
	for (unsigned int gone = 0; gone < 2; gone++) {
		if (gone) {
			free(fib->iface[WAN]);
			fib->iface[WAN] = NULL;
		} else {
			fib->iface[WAN]->up = false;
		}
		forward(packet_make(4, 60));
		error_left(4, 3, 0, 0);
		counted(DROP_egress_down, 0, 0, 1);
		forward(packet_make(6, 60));
		error_left(6, 1, 0, 0);
		counted(DROP_egress_down, 0, 0, 1);
		originate(packet_make(4, 60));
		counted(DROP_egress_down, 0, 0, 0);
		assert_int_equal(n_judged, 0);
	}
}

static void
the_filter_decides_about_packets_of_others(void **state)
{
	struct rte_mbuf *m;

	judgment = PUNT_DROPPED;
	forward(packet_make(4, 60));
	counted(DROP_filter, 0, 0, 0);
	judgment = PUNT_REJECTED;
	m = packet_make(4, 60);
	packet_meta(m)->reject_type = 3;
	packet_meta(m)->reject_code = 10;
	forward(m);
	error_left(4, 3, 10, 0);
	counted(DROP_filter, 0, 0, 1);
	assert_int_equal(n_judged, 2);
	originate(packet_make(4, 60));
	rte_pktmbuf_free(frame_left(60, 0x0800, WAN));
	assert_int_equal(n_judged, 2);
}

static void
routes_that_lead_to_no_neighbor_have_their_reasons(void **state)
{
	static const struct {
		enum path_kind kind;
		enum reason reason;
		uint8_t type4, code4, type6, code6; /* type 0: no error */
	} row[] = {{PATH_NONE, DROP_no_route, 3, 0, 1, 0},
		   {PATH_BLACKHOLE, DROP_blackhole, 0, 0, 0, 0},
		   {PATH_UNREACHABLE, DROP_unreachable, 3, 1, 1, 0},
		   {PATH_PROHIBIT, DROP_prohibit, 3, 13, 1, 1},
		   {PATH_UNRESOLVED, DROP_unresolved_nh, 3, 0, 1, 0},
		   {PATH_FOREIGN, DROP_foreign_oif, 3, 0, 1, 0},
		   {PATH_DOWN, DROP_egress_down, 3, 0, 1, 0},
		   {PATH_NO_FIB, DROP_vrf_no_fib, 0, 0, 0, 0}};

	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fib->group[10] = fib->group[14] = group_word_single(PATH(row[i].kind, 0));
		forward(packet_make(4, 60));
		if (row[i].type4 != 0)
			error_left(4, row[i].type4, row[i].code4, 0);
		counted(row[i].reason, 0, 0, row[i].type4 != 0);
		forward(packet_make(6, 60));
		if (row[i].type6 != 0)
			error_left(6, row[i].type6, row[i].code6, 0);
		counted(row[i].reason, 0, 0, row[i].type6 != 0);
		originate(packet_make(4, 60));
		counted(DROP_no_route, 0, 0, 0);
	}
	assert_int_equal(n_delivered, 0);
}

static void
packets_for_the_kernel_go_to_the_tap(void **state)
{
	static const enum path_kind kind[] = {PATH_LOCAL, PATH_KERNEL};
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < 2; i++) {
		fib->group[10] = group_word_single(PATH(kind[i], 0));
		forward(packet_make(4, 60));
		assert_int_equal(n_delivered, i + 1);
		assert_int_equal(delivered_bytes, L2_LEN + 60);
		counted(N_REASON, 0, 0, 0);
		/*
		 * A packet with a lookup VRF is dropped, because the kernel does not look
		 * it up in the table of that VRF.
		 */
		m = packet_make(4, 60);
		packet_meta(m)->has_lookup_vrf = true;
		forward(m);
		assert_int_equal(n_delivered, i + 1);
		counted(DROP_foreign_oif, 0, 0, 0);
		/*
		 * A packet of this host: the kernel sends it, but there is no raw socket
		 * here.
		 */
		originate(packet_make(4, 60));
		assert_int_equal(n_delivered, i + 1);
		counted(i == 0 ? DROP_no_route : DROP_foreign_oif, 0, 0, 0);
	}
}

static void
the_buffers_come_back_if_the_ring_is_full(void **state)
{
	unsigned int room = rte_ring_free_count(rings[1].inject);

	for (unsigned int i = 0; i < room; i++)
		forward(packet_make(4, 60));
	forward(packet_make(4, 60));
	assert_int_equal(count.reason[DROP_inject_ring_full], 1);
	for (unsigned int i = 0; i < room; i++)
		rte_pktmbuf_free(frame_left(60, 0x0800, WAN));
}

/* --- packets larger than the MTU ------------------------------------------------------ */

static void
fragments_have_offsets_and_checksums(void **state)
{
	struct rte_mbuf *m = packet_make(4, 1000);

	fib->iface[WAN]->mtu_bytes = 1000;
	forward(m);
	m = frame_left(1000, 0x0800, WAN);
	packet_is(l3_of(m), 4, 1000, 8);
	rte_pktmbuf_free(m);
	counted(N_REASON, 1, 0, 0);
	/*
	 * The 980 octets of payload are cut into 480, 480 and 20, because offsets count 8
	 * octets.
	 */
	fib->iface[WAN]->mtu_bytes = 503;
	m = packet_make(4, 1000);
	rte_pktmbuf_append(m, 5); /* padding */
	forward(m);
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int bytes = i == 2 ? 40 : 500;
		const uint8_t *ip;

		m = frame_left(bytes, 0x0800, WAN);
		ip = l3_of(m);
		assert_int_equal(get_be16(ip + 2), bytes);
		assert_int_equal(get_be16(ip + 6), (i == 2 ? 0 : 0x2000) | i * 60);
		assert_int_equal(ip[8], 8);
		assert_true(ip4_checksum_ok(ip, 20));
		assert_int_equal(ip[bytes - 1], i == 2 ? 0x77 : 0);
		assert_int_equal(packet_meta(m)->in_ifidx, LAN);
		rte_pktmbuf_free(m);
	}
	counted(N_REASON, 3, 0, 0);
}

/* The filter concerns packets of others only. */
static void
fragments_of_an_error_are_packets_of_this_host(void **state)
{
	struct rte_mbuf *m = packet_make(4, 1000);
	uint16_t mtu_bytes = fib->iface[LAN]->mtu_bytes;

	ttl_write(m, 1);
	fib->iface[LAN]->mtu_bytes = 400;
	judgment = PUNT_DROPPED;
	forward(m);
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int bytes = i == 0 ? 396 : 200;

		m = frame_left(bytes, 0x0800, LAN);
		assert_int_equal(l3_of(m)[8], 64);
		assert_true(ip4_checksum_ok(l3_of(m), 20));
		rte_pktmbuf_free(m);
	}
	counted(DROP_ttl, 0, 0, 1);
	assert_int_equal(n_judged, 0);
	fib->iface[LAN]->mtu_bytes = mtu_bytes;
}

/* A packet leaves with a tag of the priority that its tag had on arrival. */
static void
fragments_have_the_priority_of_the_packet(void **state)
{
	struct rte_mbuf *m = packet_make(4, 100);
	struct fib_iface *out = fib->iface[WAN];

	out->mtu_bytes = 80;
	out->n_tags = out->n_written = 1;
	out->tag[0] = (struct fib_tag){VLAN_C_TYPE, 7};
	m->ol_flags = RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 0xa005;
	forward(m);
	for (unsigned int i = 0; i < 2; i++) {
		m = frame_next(1, WAN);
		assert_non_null(m);
		assert_int_equal(m->data_len, 18 + (i == 0 ? 76 : 44));
		assert_int_equal(get_be32(rte_pktmbuf_mtod(m, uint8_t *) + 12), 0x8100a007);
		assert_int_equal(get_be16(rte_pktmbuf_mtod(m, uint8_t *) + 16), 0x0800);
		rte_pktmbuf_free(m);
	}
	counted(N_REASON, 2, 0, 0);
}

static void
packets_that_must_not_be_cut_are_told_the_mtu(void **state)
{
	struct rte_mbuf *m = packet_make(4, 1000);

	fib->iface[WAN]->mtu_bytes = 999;
	fib->iface[WAN]->mtu6_bytes = 1300;
	df_set(m);
	forward(m);
	error_left(4, 3, 4, 999);
	counted(DROP_mtu, 0, 0, 1);
	rte_pktmbuf_free((forward(packet_make(6, 1300)), frame_left(1300, 0x86dd, WAN)));
	counted(N_REASON, 0, 1, 0);
	forward(packet_make(6, 1301));
	error_left(6, 2, 0, 1300);
	counted(DROP_mtu, 0, 0, 1);
	/* RFC 8200, 5: no link of IPv6 has a smaller MTU. */
	fib->iface[WAN]->mtu6_bytes = 1000;
	forward(packet_make(6, 1301));
	error_left(6, 2, 0, 1280);
	counted(DROP_mtu, 0, 0, 1);
}

static void
a_packet_that_cannot_be_cut_is_dropped(void **state)
{
	static struct rte_mbuf *kept[BUFFERS + 1];
	unsigned int n = 0;
	struct rte_mbuf *m;

	/* No fragment fits. */
	fib->iface[WAN]->mtu_bytes = 20;
	forward(packet_make(4, 60));
	counted(DROP_mtu, 0, 0, 0);
	/* No buffers for the fragments. */
	fib->iface[WAN]->mtu_bytes = 500;
	m = packet_make(4, 1000);
	while ((kept[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	rte_pktmbuf_free(kept[--n]);
	forward(m);
	counted(DROP_no_mbuf, 0, 0, 0);
	while (n > 0)
		rte_pktmbuf_free(kept[--n]);
}

/* --- packets that wait ---------------------------------------------------------------- */

static struct msg_neigh
answer(uint16_t ifidx, uint8_t family, const uint8_t *addr, bool resolved)
{
	struct msg_neigh a = {.ifidx = ifidx, .family = family, .resolved = resolved};

	memcpy(a.addr.octet, addr, family == 4 ? 4 : 16);
	return a;
}

static void
packets_wait_for_a_gateway_and_leave_in_order(void **state)
{
	struct msg_neigh a;
	uint8_t gateway[4] = {192, 0, 2, 254};
	struct rte_mbuf *m[3];

	memcpy(fib->adj[2].addr.octet, gateway, 4);
	atomic_store(&fib->adj[2].hop, 0);
	for (unsigned int i = 0; i < 3; i++) {
		m[i] = packet_make(i == 1 ? 6 : 4, 60);
		forward(m[i]);
	}
	assert_int_equal(p.n_waiting, 3);
	assert_int_equal(sent.n_gleans, 1);
	assert_int_equal(sent.ifidx, WAN);
	assert_memory_equal(sent.addr.octet, gateway, 4);
	counted(N_REASON, 0, 0, 0);
	/* An answer for another neighbor releases no packet. */
	a = answer(LAN, 4, gateway, true);
	punt_release_answered(&p, &a);
	assert_int_equal(p.n_waiting, 3);
	atomic_store(&fib->adj[2].hop, adj_hop_make(wan_peer, WAN));
	a = answer(WAN, 4, gateway, true);
	punt_release_answered(&p, &a);
	assert_int_equal(p.n_waiting, 0);
	assert_int_equal(count.held, 3);
	for (unsigned int i = 0; i < 3; i++) {
		struct rte_mbuf *left = frame_left(60, i == 1 ? 0x86dd : 0x0800, WAN);

		assert_ptr_equal(left, m[i]);
		packet_is(l3_of(left), i == 1 ? 6 : 4, 60, 8);
		rte_pktmbuf_free(left);
	}
	counted(N_REASON, 2, 1, 0);
}

static void
hosts_that_do_not_answer_are_told(void **state)
{
	struct msg_neigh a;
	uint8_t host[4];

	put_be32(host, HOST4);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, WAN));
	forward(packet_make(4, 60));
	assert_int_equal(sent.n_gleans, 1);
	assert_memory_equal(sent.addr.octet, host, 4);
	a = answer(WAN, 4, host, false);
	punt_release_answered(&p, &a);
	error_left(4, 3, 1, 0);
	counted(DROP_neigh_failed, 0, 0, 1);
	assert_int_equal(count.held, 0);
	forward(packet_make(6, 60));
	assert_memory_equal(sent.addr.octet, host6, 16);
	assert_int_equal(sent.family, 6);
	a = answer(WAN, 6, host6, false);
	punt_release_answered(&p, &a);
	error_left(6, 1, 3, 0);
	counted(DROP_neigh_failed, 0, 0, 1);
	/* neigh never answers. */
	forward(packet_make(4, 60));
	punt_release_expired(&p, monotonic_s() + QUEUE_MAX_S - 1);
	assert_int_equal(p.n_waiting, 1);
	punt_release_expired(&p, monotonic_s() + QUEUE_MAX_S + 1);
	error_left(4, 3, 1, 0);
	counted(DROP_neigh_failed, 0, 0, 1);
	/* A packet of this host waits as well, and no error is sent about it. */
	originate(packet_make(4, 60));
	assert_int_equal(p.n_waiting, 1);
	a = answer(WAN, 4, host, false);
	punt_release_answered(&p, &a);
	counted(DROP_neigh_failed, 0, 0, 0);
	/* Packets that may not wait. */
	punt_forward(&p, packet_make(4, 60), 4, false, false);
	error_left(4, 3, 1, 0);
	counted(DROP_neigh_failed, 0, 0, 1);
	assert_int_equal(p.n_waiting, 0);
}

/*
 * While fragments wait, the destination becomes an address of this router. The kernel gets
 * the fragments with the Ethernet header with which the packet came, because the kernel
 * reads the MACs.
 */
static void
fragments_that_waited_reach_the_kernel_as_they_came(void **state)
{
	struct rte_mbuf *m = packet_make(4, 100);
	uint8_t host[4], came[L2_LEN];
	struct msg_neigh a;

	put_be32(host, HOST4);
	memcpy(came, rte_pktmbuf_mtod(m, const uint8_t *), L2_LEN);
	fib->iface[WAN]->mtu_bytes = 80;
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, WAN));
	punt_fragment(&p, m, 80); /* a forwarder found the packet too large */
	assert_int_equal(p.n_waiting, 2);
	fib->group[10] = group_word_single(PATH(PATH_LOCAL, 0));
	memset(delivered_l2, 0, sizeof(delivered_l2));
	a = answer(WAN, 4, host, true);
	punt_release_answered(&p, &a);
	assert_int_equal(p.n_waiting, 0);
	assert_int_equal(n_delivered, 2);
	assert_memory_equal(delivered_l2, came, L2_LEN);
}

static void
an_answer_that_is_out_of_date_lets_packets_wait_again(void **state)
{
	struct msg_neigh a;
	uint8_t host[4];

	put_be32(host, HOST4);
	a = answer(WAN, 4, host, true);
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, WAN));
	forward(packet_make(4, 60));
	forward(packet_make(4, 60));
	for (unsigned int i = 0; i < QUEUE_AGAIN_MAX; i++) {
		punt_release_answered(&p, &a);
		assert_int_equal(p.n_waiting, 2);
		assert_int_equal(sent.n_gleans, 2 + i);
	}
	assert_int_equal(count.held, 0);
	punt_release_answered(&p, &a);
	assert_int_equal(p.n_waiting, 0);
	assert_int_equal(count.reason[DROP_neigh_failed], 2);
	error_left(4, 3, 1, 0);
	error_left(4, 3, 1, 0);
}

static void
a_neighbor_on_a_link_without_ipv6_is_not_asked_for(void **state)
{
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, WAN));
	fib->iface[WAN]->ipv6_off = true;
	forward(packet_make(6, 60));
	error_left(6, 1, 0, 0);
	counted(DROP_ipv6_off, 0, 0, 1);
	forward(packet_make(4, 60));
	assert_int_equal(p.n_waiting, 1);
	assert_int_equal(sent.n_gleans, 1);
}

static void
a_packet_of_this_host_may_be_for_a_link(void **state)
{
	struct rte_mbuf *m = packet_make(4, 60);

	packet_meta(m)->on_link = true;
	packet_meta(m)->out_ifidx = LAN;
	originate(m);
	assert_int_equal(p.n_waiting, 1);
	assert_int_equal(sent.ifidx, LAN);
	/*
	 * A packet to a link-local destination leaves by the link that it names, not by the
	 * table.
	 */
	m = packet_make(6, 60);
	memset(l3_of(m) + 24, 0, 16);
	put_be16(l3_of(m) + 24, 0xfe80);
	packet_meta(m)->out_ifidx = LAN;
	originate(m);
	assert_int_equal(p.n_waiting, 2);
	assert_int_equal(sent.ifidx, LAN);
	assert_int_equal(get_be16(sent.addr.octet), 0xfe80);
	/* A packet from outside follows the table, whatever these fields are. */
	m = packet_make(4, 60);
	packet_meta(m)->on_link = true;
	packet_meta(m)->out_ifidx = LAN;
	forward(m);
	rte_pktmbuf_free(frame_left(60, 0x0800, WAN));
}

/* Send a packet of this host to a neighbor on WAN that is not known. */
static void
forward_to(uint32_t host)
{
	struct rte_mbuf *m = packet_make(4, 60);

	put_be32(l3_of(m) + 16, host);
	packet_meta(m)->on_link = true;
	packet_meta(m)->out_ifidx = WAN;
	originate(m);
}

static void
a_full_queue_gives_up_the_host_that_waits_longest(void **state)
{
	uint64_t refused = table_state(TABLE_waiting).refused;
	uint8_t host[4];
	struct msg_neigh a;

	p.max_packets = 3;
	forward_to(HOST4);
	forward_to(HOST4 + 1);
	forward_to(HOST4 + 1);
	assert_int_equal(p.n_waiting, 3);
	/* Each has waited less than QUEUE_AT_LEAST_S. */
	forward_to(HOST4 + 2);
	counted(DROP_hold_full, 0, 0, 0);
	assert_int_equal(table_state(TABLE_waiting).refused, refused + 1);
	assert_int_equal(p.n_waiting, 3);
	assert_int_equal(p.n_queues, 2);
	assert_int_equal(sent.n_over, 0);
	/* A host keeps its latest packets. */
	forward_to(HOST4 + 1);
	counted(DROP_hold_full, 0, 0, 0);
	assert_int_equal(table_state(TABLE_waiting).refused, refused + 2);
	assert_int_equal(p.n_waiting, 3);
	for (unsigned int i = 0; i < p.n_places; i++)
		p.queue[i].since -= QUEUE_AT_LEAST_S;
	p.none_before = 0;
	forward_to(HOST4 + 2);
	counted(DROP_hold_full, 0, 0, 0); /* the packet of HOST4 */
	assert_int_equal(sent.n_over, 1);
	assert_int_equal(p.n_waiting, 3);
	assert_int_equal(p.n_queues, 2);
	assert_int_equal(table_state(TABLE_waiting).refused, refused + 2);
	/* The others still wait. */
	put_be32(host, HOST4 + 1);
	a = answer(WAN, 4, host, false);
	punt_release_answered(&p, &a);
	assert_int_equal(count.reason[DROP_neigh_failed], 2);
	assert_int_equal(p.n_waiting, 1);
	assert_int_equal(p.n_queues, 1);
}

/* A sixth of the places is for gateways, so that hosts cannot take all of them. */
static void
gateways_have_room_that_hosts_have_not(void **state)
{
	atomic_store(&fib->adj[2].hop, 0);
	p.n_queues = p.max_hosts - 1;
	forward_to(HOST4);
	assert_int_equal(p.n_waiting, 1);
	forward_to(HOST4 + 1);
	counted(DROP_hold_full, 0, 0, 0);
	forward(packet_make(4, 60)); /* by the gateway of adjacency 2 */
	assert_int_equal(p.n_waiting, 2);
	p.n_queues = p.max_hosts + p.max_hosts / 6;
	fib->adj[2].addr.octet[3]++;
	forward(packet_make(4, 60));
	counted(DROP_hold_full, 0, 0, 0);
	assert_int_equal(p.n_waiting, 2);
}

/* RFC 1812, 4.3.2.7: no error is sent about a packet that came as a frame to a group. */
static void
an_error_that_may_not_be_sent_is_counted(void **state)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct rte_mbuf *m = packet_make(family, 60);

		ttl_write(m, 1);
		*rte_pktmbuf_mtod(m, uint8_t *) |= 1;
		forward(m);
		assert_int_equal(count.icmp_limited, 1);
		count.icmp_limited = 0;
		counted(DROP_ttl, 0, 0, 0);
	}
}

static int
all_up(void **state)
{
	return eal_up("test_punt_forward");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		PUNT_TEST(a_packet_leaves_with_a_lower_ttl_and_without_padding),
		PUNT_TEST(a_packet_of_this_host_keeps_its_ttl_and_is_not_counted),
		PUNT_TEST(the_ttl_ends_at_one),
		PUNT_TEST(an_egress_that_is_down_or_gone_is_told),
		PUNT_TEST(the_filter_decides_about_packets_of_others),
		PUNT_TEST(routes_that_lead_to_no_neighbor_have_their_reasons),
		PUNT_TEST(packets_for_the_kernel_go_to_the_tap),
		PUNT_TEST(the_buffers_come_back_if_the_ring_is_full),
		PUNT_TEST(fragments_have_offsets_and_checksums),
		PUNT_TEST(fragments_of_an_error_are_packets_of_this_host),
		PUNT_TEST(fragments_have_the_priority_of_the_packet),
		PUNT_TEST(packets_that_must_not_be_cut_are_told_the_mtu),
		PUNT_TEST(a_packet_that_cannot_be_cut_is_dropped),
		PUNT_TEST(packets_wait_for_a_gateway_and_leave_in_order),
		PUNT_TEST(hosts_that_do_not_answer_are_told),
		PUNT_TEST(fragments_that_waited_reach_the_kernel_as_they_came),
		PUNT_TEST(an_answer_that_is_out_of_date_lets_packets_wait_again),
		PUNT_TEST(a_full_queue_gives_up_the_host_that_waits_longest),
		PUNT_TEST(gateways_have_room_that_hosts_have_not),
		PUNT_TEST(an_error_that_may_not_be_sent_is_counted),
		PUNT_TEST(a_neighbor_on_a_link_without_ipv6_is_not_asked_for),
		PUNT_TEST(a_packet_of_this_host_may_be_for_a_link),
	};

	return cmocka_run_group_tests_name("punt_forward", tests, all_up, all_down);
}
