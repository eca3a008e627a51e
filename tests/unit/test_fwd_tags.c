/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of a port with VLANs and macvlans. The verdict on a packet and the sent frame are
 * the same as for the packet alone with its tags removed first. They depend neither on the
 * other packets nor on whether a NIC removes and inserts tags. The frames are good frames
 * with random changes of octets and lengths. The seed is printed.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "fib/urpf.h"
#include "fwd/fast.h"
#include "fwd/vlan.h"
#include "fwd/walk.h"
#include "fwd_isas.h"
#include "port/vlan_tags.h"
#include "random_fill.h"

#define IN      1
#define OUT     2
#define C_IN    PORT_MAX        /* VLAN 100 on IN */
#define S_IN    (PORT_MAX + 1)  /* service tag 20 on IN */
#define TWO_IN  (PORT_MAX + 2)  /* VLAN 30 on S_IN */
#define C_OUT   (PORT_MAX + 3)  /* VLAN 200 on OUT */
#define TWO_OUT (PORT_MAX + 4)  /* VLAN 300 within service tag 40 on OUT */
#define C_LIKE  (PORT_MAX + 5)  /* VLAN 102 on IN */
#define C_VRF   (PORT_MAX + 6)  /* VLAN 110 on IN, of VRF 1 */
#define C_NOFIB (PORT_MAX + 7)  /* VLAN 111 on IN, of VRF 2, which has no FIB */
#define TWO_C   (PORT_MAX + 8)  /* VLAN 40 on C_LIKE */
#define C_TOO   (PORT_MAX + 9)  /* VLAN 201 on OUT */
#define M_IN    (PORT_MAX + 10) /* macvlan on IN */
#define M_C_IN  (PORT_MAX + 11) /* macvlan with the same MAC on C_IN */
#define M_OUT   (PORT_MAX + 12) /* macvlan on OUT */
#define N_IFACE 15
#define ROOM    64
#define BYTES   128
#define ROUNDS  6000

/* A packet of the burst, and the same packet alone. */
static struct packet {
	struct rte_mbuf m;
	struct packet_meta meta; /* behind the mbuf, as in a pool */
	uint8_t memory[ROOM + BYTES];
	uint8_t verdict, family;
	uint16_t ifidx;
	uint32_t wire_bytes;
	bool seen;
} together[BURST_MAX], alone[BURST_MAX];
static_assert(offsetof(struct packet, meta) == sizeof(struct rte_mbuf), "no padding");

static const uint16_t iface[N_IFACE] = {IN,    OUT,     C_IN,   S_IN,   TWO_IN,
					C_OUT, TWO_OUT, C_LIKE, C_VRF,  C_NOFIB,
					TWO_C, C_TOO,   M_IN,   M_C_IN, M_OUT};
static const uint8_t vmac[6] = {0, 0, 0x5e, 0, 1, 5};
static struct fib_macs *macs_on[2]; /* the tables of IN and C_IN; not always published */
static bool macvlans;               /* the tables are published in this round */
static struct fwd fwd;
static struct counters count;
static struct burst burst;
static unsigned int n_go, n_left, n_at_once, n_mixed, n_taken, n_inserted, n_whole,
	n_by_port, n_macvlan, n_several_macs;

/* Destinations of good packets: neighbors of routes_make(). */
static const struct where {
	unsigned int n;
	uint8_t k[5];
} wheres[] = {{5, {0, 1, 2, 4, 5}}, {1, {0}}, {1, {1}}, {2, {1, 4}}, {2, {0, 5}}}, *where;

static const uint8_t *mac_to; /* destination of all frames, unless macs_mixed */
static bool macs_mixed;

static uint8_t families; /* families of packets; neither 4 nor 6: both */

static unsigned int
below(unsigned int n)
{
	return (unsigned int)random() % n;
}

static struct fib_iface *
iface_make(uint16_t ifidx, uint16_t port)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	*i = (struct fib_iface){.ifidx = ifidx,
				.port = port,
				.mtu_bytes = 80,
				.mtu6_bytes = 80,
				.mac = {2, 0, 0, 0, 0, (uint8_t)port},
				.up = true,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true,
				.ifindex = ifidx + 10u};
	return fwd.fib->iface[ifidx] = i;
}

static void
vlan_make(uint16_t ifidx, uint16_t on, uint16_t type, uint16_t id)
{
	struct fib *fib = fwd.fib;
	const struct fib_iface *below_it = fib->iface[on];
	struct fib_iface *i = iface_make(ifidx, below_it->port);

	memcpy(i->tag, below_it->tag, sizeof(i->tag));
	i->n_tags = below_it->n_tags;
	i->tag[i->n_tags++] = (struct fib_tag){.type = type, .id = id};
	i->n_written = i->n_tags;
	if (fib->vlans[on] == NULL)
		fib->vlans[on] = calloc(1, sizeof(struct fib_vlans));
	fib->vlans[on]->ifidx[type == VLAN_S_TYPE][id] = ifidx;
}

/* Make a macvlan on interface `on`, and its table. */
static struct fib_macs *
macvlan_make(uint16_t ifidx, uint16_t on)
{
	struct fib_macs *macs = calloc(1, sizeof(*macs) + 16 * sizeof(uint64_t));
	const struct fib_iface *below_it = fwd.fib->iface[on];
	struct fib_iface *i = iface_make(ifidx, below_it->port);

	memcpy(i->tag, below_it->tag, sizeof(i->tag));
	i->n_tags = below_it->n_tags;
	i->n_written = i->n_tags;
	memcpy(i->mac, vmac, sizeof(vmac));
	macs->mask = 15;
	macs->entry[mac_hash(mac_word(vmac)) & 15] = adj_hop_make(vmac, ifidx);
	if (fwd.fib->vlans[on] == NULL)
		fwd.fib->vlans[on] = calloc(1, sizeof(struct fib_vlans));
	return macs;
}

static void
macvlans_publish(bool all)
{
	macvlans = all;
	fwd.fib->group[6] = group_word_single(all ? PATH(PATH_ADJ, 6) : 0);
	fwd.fib->vlans[IN]->any_macs = all;
	fwd.fib->vlans[IN]->macs = all ? macs_on[0] : NULL;
	fwd.fib->vlans[C_IN]->macs = all ? macs_on[1] : NULL;
}

static void
route_add(struct fib_copy *tries, const uint8_t *net4, const uint8_t *net6, uint32_t group)
{
	assert_int_equal(poptrie_add(tries->pt4, net4, 16, group), 0);
	assert_int_equal(poptrie_add(tries->pt6, net6, 16, group), 0);
	assert_int_equal(poptrie_commit(tries->pt4), 0);
	assert_int_equal(poptrie_commit(tries->pt6), 0);
}

/*
 * Add routes 20.k/16 and 2a0k::/16 by neighbor k on: OUT, C_OUT, TWO_OUT, a missing
 * interface, C_TOO, M_OUT.
 */
static void
routes_make(void)
{
	static const uint16_t out[] = {OUT, C_OUT, TWO_OUT, 0, C_TOO, M_OUT};
	struct fib *fib = fwd.fib;
	struct fib_vrf *vrf = fib_vrf_new(fib, 1001, "one");

	assert_non_null(vrf);
	for (unsigned int k = 0; k < RTE_DIM(out); k++) {
		const uint8_t net4[4] = {20, (uint8_t)k}, net6[16] = {0x2a, (uint8_t)k};
		const uint8_t mac[6] = {2, 0, 0, 0, 9, (uint8_t)k};

		if (out[k] != 0)
			fib->adj[1 + k].hop = adj_hop_make(mac, out[k]);
		fib->group[1 + k] = group_word_single(PATH(PATH_ADJ, 1 + k));
		route_add(&fib->copy[0], net4, net6, 1 + k);
		/* Other neighbors in the VRF. */
		route_add(&vrf->tries, net4, net6, 1 + (k + 1) % 3);
	}
	fib->group[7] = group_word_single(PATH(PATH_ONLINK, IN));
	assert_int_equal(poptrie_add(fib->copy[0].pt4, (const uint8_t[4]){10}, 8, 7), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt4), 0);
	fib->vrfs_told = true;
	fib_vrf_publish(fib, 1, vrf);
}

static int
up(void **state)
{
	unsigned int seed = (unsigned int)getpid();

	print_message("seed %u\n", seed);
	srandom(seed);
	urcu_qsbr_register_thread();
	if (fib_create(&fwd.fib, &(struct fib_conf){0}) < 0)
		return -1;
	iface_make(IN, IN);
	iface_make(OUT, OUT);
	vlan_make(C_IN, IN, VLAN_C_TYPE, 100);
	vlan_make(S_IN, IN, VLAN_S_TYPE, 20);
	vlan_make(TWO_IN, S_IN, VLAN_C_TYPE, 30);
	vlan_make(C_LIKE, IN, VLAN_C_TYPE, 102);
	vlan_make(TWO_C, C_LIKE, VLAN_C_TYPE, 40);
	vlan_make(C_VRF, IN, VLAN_C_TYPE, 110);
	vlan_make(C_NOFIB, IN, VLAN_C_TYPE, 111);
	fwd.fib->iface[C_VRF]->vrf = 1;
	fwd.fib->iface[C_NOFIB]->vrf = 2;
	vlan_make(C_OUT, OUT, VLAN_C_TYPE, 200);
	vlan_make(C_TOO, OUT, VLAN_C_TYPE, 201);
	vlan_make(1000 + PORT_MAX, OUT, VLAN_S_TYPE, 40);
	vlan_make(TWO_OUT, 1000 + PORT_MAX, VLAN_C_TYPE, 300);
	macs_on[0] = macvlan_make(M_IN, IN);
	macs_on[1] = macvlan_make(M_C_IN, C_IN);
	free(macvlan_make(M_OUT, OUT));
	routes_make();
	fwd.tries = &fwd.fib->copy[0];
	fwd.adj_used = fwd.fib->adj_used;
	fwd.count = &count;
	fwd.tx_burst = TX_BURST_MAX;
	return 0;
}

static int
down(void **state)
{
	macvlans_publish(false);
	free(macs_on[0]);
	free(macs_on[1]);
	fib_destroy(fwd.fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

/* Write tags of kind `k` at `at`. Return the number of octets. */
static unsigned int
tags_put(uint8_t *at, unsigned int k)
{
	static const uint32_t tags[][3] = {
		{0},
		{0x81000064},             /* C_IN */
		{0x88a80014, 0x8100001e}, /* TWO_IN */
		{0x88a80014},             /* S_IN */
		{0x88a80014, 0x81000005}, /* no such VLAN on S_IN */
		{0x81000065},             /* no such VLAN */
		{0x81000066},             /* C_LIKE */
		{0x81000066, 0x81000028}, /* TWO_C */
		{0x8100006e},             /* C_VRF */
		{0x8100006f},             /* C_NOFIB */
		{0x81000000},             /* a priority tag */
		{0x81000064, 0x81000000}, /* a priority tag within C_IN */
		{0x88a80014, 0x8100001e, 0x81000007},
	};
	unsigned int n = 0;

	for (k %= RTE_DIM(tags); n < 3 && tags[k][n] != 0; n++)
		put_be32(at + n * VLAN_BYTES, tags[k][n] | below(2) * below(8) << 13);
	return n * VLAN_BYTES;
}

/* Make a frame with tags of kind `k`. An odd frame often has an error. */
static void
packet_make(struct packet *p, unsigned int k, bool odd)
{
	uint8_t *f = p->memory + ROOM, *ip;
	bool four = families == 4 || (families != 6 && below(4) != 0);
	unsigned int len = 60 + below(20), at = VLAN_AT;
	unsigned int to = odd ? below(6) : where->k[below(where->n)];

	if (to == 5 && !macvlans)
		to = 0;
	random_fill(p->memory, sizeof(p->memory));
	memcpy(f, mac_to, 6);
	if (macs_mixed)
		memcpy(f, below(2) ? vmac : fwd.fib->iface[IN]->mac, 6);
	if (odd && below(32) == 0) /* to another station */
		f[5] ^= 0x40;
	f[6] &= 0xfe;
	f[6] |= odd && below(32) == 0; /* a group address as source */
	at += tags_put(f + at, k);
	put_be16(f + at, four ? 0x0800 : 0x86dd);
	ip = f + at + 2;
	if (four) {
		ip[0] = 0x45;
		put_be16(ip + 2, (uint16_t)(len - 14));
		ip[8] = (uint8_t)(2 + below(9));
		put_be32(ip + 12, (10 + below(2)) << 24 | below(1 << 24));
		put_be32(ip + 16, 20u << 24 | to << 16);
		put_be16(ip + 10, 0);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	} else {
		ip[0] = 0x60;
		put_be16(ip + 4, (uint16_t)(len - 14 - 40));
		ip[6] = 17;
		ip[7] = (uint8_t)(2 + below(9));
		ip[8] = 0x20;
		ip[24] = 0x2a;
		ip[25] = (uint8_t)to;
	}
	len += at - VLAN_AT;
	if (odd && below(4) == 0)
		len = 14 + below(24);
	else if (odd && below(2))
		f[below(64)] = (uint8_t)random();
	p->m = (struct rte_mbuf){.buf_addr = p->memory,
				 .buf_len = sizeof(p->memory),
				 .data_off = ROOM,
				 .port = 0,
				 .nb_segs = 1,
				 .data_len = (uint16_t)len,
				 .pkt_len = len,
				 .priv_size = sizeof(p->meta)};
	if (odd && below(16) == 0) { /* as if a NIC had removed a tag */
		p->m.ol_flags = RTE_MBUF_F_RX_VLAN_STRIPPED;
		p->m.vlan_tci = (uint16_t)random();
	}
	p->seen = false;
}

static uint16_t stale_tci; /* vlan_tci of a frame without the flag: has no meaning */

/* Remove the first tag of a received frame like a NIC, if it is of type 802.1Q. */
static void
nic_takes(struct rte_mbuf *m)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	if (m->ol_flags != 0)
		return;
	m->vlan_tci = stale_tci;
	if (m->data_len < 18 || get_be16(f + 12) != 0x8100)
		return;
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = get_be16(f + 14);
	memmove(f + 4, f, 12);
	m->data_off += 4;
	m->data_len -= 4;
	m->pkt_len -= 4;
	n_taken++;
}

/* Insert a tag like a NIC. */
static void
nic_puts(struct rte_mbuf *m)
{
	uint8_t *f;

	if ((m->ol_flags & RTE_MBUF_F_TX_VLAN) == 0)
		return;
	m->data_off -= 4;
	m->data_len += 4;
	m->pkt_len += 4;
	f = rte_pktmbuf_mtod(m, uint8_t *);
	memmove(f, f + 4, 12);
	put_be16(f + 12, 0x8100);
	put_be16(f + 14, m->vlan_tci);
	n_inserted++;
}

static void
note(struct burst *b, unsigned int i)
{
	struct packet *p = (struct packet *)b->m[i];
	uint16_t out = b->hop[i] & 0xffff;

	assert_false(p->seen);
	p->seen = true;
	p->verdict = b->verdict[i];
	p->family = b->family[i];
	if (((b->fast4 | b->fast6) >> i & 1) == 0)
		return;
	assert_int_equal(p->verdict, VERDICT_GO);
	assert_int_equal(b->out_port[i], OUT);
	assert_true(b->tags_out || out == OUT);
	assert_true(out == OUT || b->vlan_a_port || p->m.port == out);
	assert_true(!b->vlan_a_port || out == (b->hop[0] & 0xffff));
	assert_true(b->inserts || (p->m.ol_flags & RTE_MBUF_F_TX_VLAN) == 0);
}

/* Pass all packets of a burst through the stages, and note the results. */
static void
walk(struct burst *b)
{
	n_at_once += b->n > 1 && b->tag_bytes != 0;
	n_whole += b->n > 1 && b->tag_bytes == 0 && b->ifidx >= PORT_MAX &&
		   (b->all_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
	fwd_walk(b, NULL);
	n_by_port += b->vlan_a_port;
	for (unsigned int i = 0; i < b->n; i++) {
		note(b, i);
		((struct packet *)b->m[i])->ifidx = b->ifidx;
	}
}

/*
 * Pass the fast-path packets of a burst. Assert that they are in the buffer of their port,
 * in order. Return the other packets.
 */
static uint64_t
walk_fast(struct burst *b)
{
	struct tx_buffer *tx = &fwd.tx[OUT];
	struct rte_mbuf *go[BURST_MAX];
	uint64_t left, other_mac = 0;
	uint16_t n = 0;

	for (unsigned int i = 0; i < b->n; i++)
		other_mac |= (uint64_t)(memcmp(rte_pktmbuf_mtod(b->m[i], const uint8_t *),
					       b->in->mac, 6) != 0)
			     << i;
	fwd_walk_fast(b, NULL);
	n_by_port += b->vlan_a_port;
	for (unsigned int i = 0; i < b->n; i++)
		if (((b->fast4 | b->fast6) >> i & 1) != 0) {
			note(b, i);
			go[n++] = b->m[i];
		}
	left = burst_all(b) & ~(b->fast4 | b->fast6);
	n_mixed += n;
	n_several_macs += (other_mac & (b->fast4 | b->fast6)) != 0;
	tx->n = 0;
	assert_int_equal(fwd_dispatch_fast(b), left);
	assert_int_equal(tx->n, n);
	assert_memory_equal(tx->m, go, n * sizeof(go[0]));
	return left;
}

static void
assert_same(const struct packet *a, const struct packet *b)
{
	const uint8_t *fa = rte_pktmbuf_mtod(&a->m, const uint8_t *);
	const uint8_t *fb = rte_pktmbuf_mtod(&b->m, const uint8_t *);

	assert_true(a->seen && b->seen);
	/*
	 * With macvlans, a frame that ends within its tags may be dropped for another
	 * reason, because its MAC may be that of only one interface.
	 */
	if (!macvlans || a->m.data_len > VLAN_AT + VLAN_TAGS * VLAN_BYTES ||
	    a->verdict >= N_DROP)
		assert_int_equal(a->verdict, b->verdict);
	assert_true(a->verdict >= N_DROP || b->verdict < N_DROP);
	assert_int_equal(a->family, b->family);
	/* A packet with an error in its tags may belong to any interface. */
	if (a->verdict < N_DROP) {
		n_left++;
		return;
	}
	if (a->verdict != VERDICT_GO)
		assert_int_equal(a->ifidx, b->ifidx);
	assert_int_equal(a->m.pkt_len, b->m.pkt_len);
	assert_int_equal(a->m.data_len, b->m.data_len);
	assert_int_equal(a->m.data_off, b->m.data_off);
	assert_memory_equal(fa, fb, a->m.data_len);
	if (a->verdict == VERDICT_GO) {
		n_go++;
		return;
	}
	/* The kernel gets the packet with its tags. */
	n_left++;
	assert_int_equal(vlan_stripped(&a->m), vlan_stripped(&b->m));
	if (vlan_stripped(&a->m) > 0)
		assert_int_equal(a->m.vlan_tci, b->m.vlan_tci);
	if (vlan_stripped(&a->m) > 1)
		assert_int_equal(a->m.vlan_tci_outer, b->m.vlan_tci_outer);
}

static void
burst_of(struct packet *p, unsigned int n)
{
	burst.fwd = &fwd;
	burst.ifidx = IN;
	burst.n = (uint16_t)n;
	burst.now = 0;
	burst.vrf_counted = false;
	for (unsigned int i = 0; i < n; i++)
		burst.m[i] = &p[i].m;
}

static void
round_of(unsigned int n)
{
	unsigned int kind = below(2) ? below(2) : below(13),
		     kinds = 1 + (below(2) ? 0 : below(12));
	bool odd = below(2), nic = below(2);
	uint64_t rx = 0, by_vrf[3], bytes = 0, vlan_bytes = 0, vrf_bytes = 0;
	uint16_t of;

	macvlans_publish(below(2));
	macs_mixed = below(4) == 0;
	mac_to = macvlans && below(2) ? vmac : fwd.fib->iface[IN]->mac;
	stale_tci = below(2) ? 100 : 102;
	where = &wheres[below(RTE_DIM(wheres))];
	families = (uint8_t)(4 + below(3)); /* 5: both */
	for (unsigned int i = 0; i < n; i++) {
		packet_make(&together[i], kind + below(kinds), odd && below(4) == 0);
		alone[i] = together[i];
		alone[i].m.buf_addr = alone[i].memory;
		alone[i].wire_bytes =
			alone[i].m.pkt_len + (alone[i].m.ol_flags != 0 ? VLAN_BYTES : 0);
		bytes += alone[i].wire_bytes;
		if (nic)
			nic_takes(&together[i].m);
	}
	fwd.fib->iface[C_OUT]->n_written = 1;
	fwd.fib->out_special = macvlans ? FIB_OUT_MACVLAN : 0;
	memset(&count, 0, sizeof(count));
	for (unsigned int i = 0; i < n; i++) {
		burst_of(&alone[i], 1);
		burst.ifidx = fwd_enter(fwd.fib, IN, &alone[i].m);
		burst_look(&burst);
		walk(&burst);
	}
	for (unsigned int k = 0; k < 3; k++)
		by_vrf[k] = count.vrf[k].rx_packets;
	memset(&count, 0, sizeof(count));
	fwd.fib->iface[C_OUT]->n_written = below(4) != 0;
	fwd.fib->out_special = 0;
	if (fwd.fib->iface[C_OUT]->n_written == 0 || below(2))
		fwd.fib->out_special = FIB_OUT_TAG_BY_DEVICE;
	if (macvlans)
		fwd.fib->out_special |= FIB_OUT_MACVLAN;
	burst_of(together, n);
	of = fwd_look(&burst);
	assert_int_equal(burst.bytes, bytes);
	fwd_split(&burst, of, walk, walk_fast);
	for (unsigned int i = 0; i < n; i++) {
		nic_puts(&together[i].m);
		assert_same(&together[i], &alone[i]);
		n_macvlan += alone[i].verdict == VERDICT_GO && alone[i].ifidx >= M_IN &&
			     alone[i].ifidx <= M_OUT;
	}
	for (unsigned int k = 0; k < N_IFACE; k++) {
		rx += count.port[iface[k]].rx_packets;
		vlan_bytes += count.port[iface[k]].rx_bytes;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (alone[i].ifidx < PORT_MAX)
			continue;
		rx--;
		vlan_bytes -= alone[i].wire_bytes;
		if (alone[i].ifidx == C_VRF)
			vrf_bytes += alone[i].wire_bytes;
	}
	assert_true(odd || (rx == 0 && vlan_bytes == 0));
	assert_true(odd || count.vrf[1].rx_bytes == vrf_bytes);
	for (unsigned int k = 0; k < 3; k++)
		assert_true(odd || count.vrf[k].rx_packets == by_vrf[k]);
}

static void
mtu_set(uint16_t ifidx, uint16_t mtu_bytes)
{
	fwd.fib->iface[ifidx]->mtu_bytes = mtu_bytes;
	fwd.fib->iface[ifidx]->mtu6_bytes = below(4) ? mtu_bytes : 56;
	if (fwd.fib->iface[ifidx]->mtu6_bytes > mtu_bytes)
		fwd.fib->iface[ifidx]->mtu6_bytes = mtu_bytes;
}

/*
 * Switch the check of sources on for some interfaces. Sources in 10/8 have a route by some
 * of them, which differ from round to round; sources in 11/8 have no route.
 */
static void
urpf_set(unsigned int round)
{
	static const uint16_t checks[] = {IN, C_IN, C_LIKE, C_VRF, M_IN};
	uint64_t egress = 0;

	for (unsigned int i = 0; i < RTE_DIM(checks); i++) {
		fwd.fib->iface[checks[i]]->urpf4 =
			round % 2 == 0 ? FIB_URPF_OFF : (uint8_t)below(3);
		if (i < FIB_EGRESS_WORD && below(2))
			egress |= (uint64_t)checks[(i + round) % RTE_DIM(checks)] << i * 16;
	}
	fwd.fib->egress[7] = egress;
}

static void
other_packets_of_the_burst_change_nothing(void **state)
{
	n_go = n_left = n_at_once = n_mixed = n_taken = n_inserted = n_whole = 0;
	n_by_port = n_macvlan = n_several_macs = 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		mtu_set(TWO_OUT, below(2) ? 80 : 50);
		fwd.fib->iface[C_IN]->forward4 = below(4) != 0;
		fwd.fib->iface[C_IN]->fast4 = fwd.fib->iface[C_IN]->forward4;
		fwd.fib->iface[C_TOO]->up = below(8) != 0;
		urpf_set(round);
		mtu_set(OUT, below(4) ? 80 : 60);
		mtu_set(C_OUT, below(4) ? 80 : 60);
		fwd.fib->mtu_bytes[1] = 55;
		fwd.fib->group[5] =
			group_word_single(PATH(PATH_ADJ, 5) | (below(8) ? 0 : 1u << 18));
		round_of(below(2) ? BURST_MAX : 1 + below(BURST_MAX));
	}
	assert_true(n_go > ROUNDS && n_left > ROUNDS && n_at_once > ROUNDS / 20 &&
		    n_mixed > ROUNDS);
	assert_true(n_macvlan > ROUNDS && n_several_macs > ROUNDS / 100);
	assert_true(n_taken > ROUNDS && n_inserted > ROUNDS && n_whole > ROUNDS / 20);
	assert_true((!fwd_uses_avx512() && !fwd_uses_avx2()) || n_by_port > ROUNDS / 400);
}

/* Make packet `i` the answer of a DHCP server to the client on the interface with `mac`. */
static void
dhcp_answer_make(unsigned int i, const uint8_t mac[6])
{
	uint8_t *f = together[i].memory + ROOM, *ip = f + L2_LEN;

	packet_make(&together[i], 0, false);
	together[i].m.data_len = L2_LEN + 20 + 44;
	together[i].m.pkt_len = together[i].m.data_len;
	memcpy(f, mac, 6);
	put_be16(ip + 2, 20 + 44);
	put_be16(ip + 6, 0);
	ip[9] = 17;
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	put_be16(ip + 20, 67);
	put_be16(ip + 22, 68);
	memcpy(ip + 20 + 8 + 28, mac, 6);
}

/*
 * An interface without an address may have a DHCP client, which uses the interface's MAC.
 */
static void
each_macvlan_gets_its_dhcp_answers(void **state)
{
	struct fib *fib = fwd.fib;

	for (unsigned int k = 0; k < N_IFACE; k++)
		fib->iface[iface[k]]->urpf4 = FIB_URPF_OFF;
	fib->iface[IN]->unnumbered4 = fib->iface[M_IN]->unnumbered4 = true;
	macvlans_publish(true);
	mac_to = vmac;
	macs_mixed = false;
	where = &wheres[1];
	families = 4;
	for (unsigned int n = 2; n <= BURST_MAX; n++) {
		for (unsigned int i = 0; i < n; i++)
			dhcp_answer_make(i, below(2) ? vmac : fib->iface[IN]->mac);
		burst_of(together, n);
		fwd_split(&burst, fwd_look(&burst), walk, walk_fast);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(together[i].verdict, PUNT_local_control);
	}
	fib->iface[IN]->unnumbered4 = fib->iface[M_IN]->unnumbered4 = false;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_packets_of_the_burst_change_nothing),
		cmocka_unit_test(each_macvlan_gets_its_dhcp_answers),
	};

	return run_with_each_isa(tests, up, down);
}
