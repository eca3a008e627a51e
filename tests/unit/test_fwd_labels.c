/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops for usual packets with labels (fwd/label_fast.c) give the result of
 * fwd/label.c, octet by octet. The frames are good frames with random changes. The seed is
 * printed.
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

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/inet.h"
#include "fib/label.h"
#include "fwd/fast.h"
#include "fwd/label.h"
#include "fwd_isas.h"
#include "port/label_write.h"
#include "random_fill.h"

#define ROUNDS   4000
#define BUFFER   512
#define HEADROOM 128
#define N_LABELS 24 /* from FIRST on */
#define FIRST    16u
#define N_ADJ    4

/* A burst with its own buffers. */
struct side {
	uint8_t buffer[BURST_MAX][BUFFER];
	struct rte_mbuf mbuf[BURST_MAX];
	struct burst burst;
};

static const uint8_t mac[6] = {2, 0, 0, 0, 1, 1};
static struct fib_iface in = {.ifidx = 1,
			      .ifindex = 1,
			      .up = true,
			      .mpls = true,
			      .forward4 = true,
			      .forward6 = true,
			      .fast4 = true,
			      .fast6 = true};
static struct fib_iface out[N_ADJ];
static struct fib *fib;
static struct fwd fwd;
static struct side fast, slow;
static unsigned long n_sent, n_switched, n_popped, n_pushed, n_refused;
static unsigned long n_own;      /* packets that get labels with the TTL of a route */
static unsigned long n_together; /* bursts of alike packets, for the vector code */
/*
 * The packets of a round may be alike. The vector code takes only bursts without an odd
 * packet, in which each packet loses its only label and is IP then, or each packet gets
 * labels, or the first label of each packet is replaced.
 */
static enum { MIXED, ALL_POP, ALL_PUSH, ALL_SWAP } round_of;
static bool only4;  /* all packets of the round are IPv4 */
static bool by_vrf; /* ALL_SWAP: the IP packets behind the labels get new labels */
static unsigned long n_swapped; /* bursts in which vectors replace all labels */
static unsigned int
	n_labels; /* labels that each path of the round pushes; 0: the paths differ */
static unsigned long n_long; /* packets that get more than LABEL_WORDS labels */
static unsigned long
	n_one; /* bursts of IPv4 packets, each of which gets one label by vectors */

static unsigned int
below(unsigned int n)
{
	return (unsigned int)random() % n;
}

/*
 * Return true once in about `n` calls; in rounds with alike packets, once in 200 * n calls.
 */
static bool
odd(unsigned int n)
{
	return below(round_of == MIXED ? n : 200 * n) == 0;
}

/* Return the TTL that a route gives its labels. 0, as for most routes: it gives none. */
static uint16_t
ttl_of_route(void)
{
	return odd(8) ? (uint16_t)(LABEL_TTL_OWN | (below(2) ? below(256) : 0)) : 0;
}

/* Return label `i` that entry `e` pushes. The labels differ in all of their 20 bits. */
static uint32_t
pushed(unsigned int e, unsigned int i)
{
	return (5000 + 16 * e + i) * 0x9e3779b1u >> 12;
}

/*
 * Make interfaces, next hops and label stacks. out[2] may have a small MTU, out[3] a tag.
 */
static void
paths_make(void)
{
	bool small = round_of == MIXED || below(4) == 0;
	bool all_tags = round_of != MIXED && below(8) == 0;
	bool all_own = round_of != MIXED && below(8) == 0;

	for (unsigned int a = 0; a < N_ADJ; a++) {
		uint8_t to[6] = {2, 0, 0, 0, 9, (uint8_t)a};
		bool tags = all_tags || (a == 3 && (round_of == MIXED || below(4) == 0));

		out[a] = (struct fib_iface){.ifidx = (uint16_t)(2 + a),
					    .port = (uint16_t)(2 + a),
					    .up = a != 1 || !odd(4),
					    .mtu_bytes = a == 2 && small ? 90 : 1500,
					    .mtu6_bytes = a == 2 && small ? 80 : 1500,
					    .mac = {2, 0, 0, 0, 8, (uint8_t)a},
					    .n_tags = tags,
					    .n_written = tags};
		out[a].tag[0] = (struct fib_tag){VLAN_C_TYPE, 7};
		atomic_store(&fib->iface[2 + a], &out[a]);
		fib->adj[1 + a].ifidx = out[a].ifidx;
		/* A neighbor may be unknown. */
		atomic_store(&fib->adj[1 + a].hop,
			     below(round_of == MIXED ? 12 : 64) == 0
				     ? 0
				     : adj_hop_make(to, out[a].ifidx));
		atomic_store(&fib->adj_used[1 + a], below(64) == 0 ? ADJ_UNUSED : ADJ_USED);
	}
	for (unsigned int e = 1; e < 8; e++) {
		uint32_t label[LABELS_MAX];
		unsigned int few = odd(8) ? 13 + below(LABELS_MAX - 12) : 1 + below(3);

		for (unsigned int i = 0; i < LABELS_MAX; i++)
			label[i] = pushed(e, i);
		encap_set(&fib->encap[e], PATH(PATH_ADJ, 1 + below(N_ADJ)), label,
			  n_labels ? n_labels : few,
			  all_own ? LABEL_TTL_OWN | 9 : ttl_of_route());
	}
}

static fib_path
path_random(void)
{
	static const enum path_kind no_adjacency[] = {PATH_NONE,      PATH_LOCAL,
						      PATH_BLACKHOLE, PATH_DOWN,
						      PATH_FOREIGN,   PATH_UNREACHABLE};
	fib_path path = PATH(no_adjacency[below(6)], 0);

	if (round_of != MIXED && !odd(8))
		return round_of == ALL_POP ? PATH(PATH_ADJ, 1 + below(N_ADJ))
					   : PATH(PATH_ENCAP, 1 + below(7));
	if (below(3) != 0)
		path = PATH(PATH_ADJ, 1 + below(N_ADJ));
	else if (below(3) != 0)
		path = PATH(PATH_ENCAP, below(8));
	return path_with_mtu(path, path_kind(path) == PATH_ADJ && below(8) == 0);
}

/* Give labels and routes of main and of VRF 1 random paths. */
static void
tables_make(void)
{
	for (unsigned int i = 0; i < N_LABELS; i++) {
		uint32_t kind = below(8);
		fib_path path = round_of == ALL_SWAP ? (by_vrf ? PATH(PATH_VRF, below(2))
							       : path_random())
				: kind == 0          ? PATH(PATH_VRF, below(odd(1) ? 3 : 2))
				: kind == 1          ? PATH(PATH_VRF, 0)
						     : path_random();

		if (odd(4) && path_mtu_class(path) == 0)
			path = path_with_mtu(path,
					     below(2) ? FIB_CLASS_PIPE : FIB_CLASS_UNIFORM);
		fib->group[100 + i] = group_word_single(path);
		fib->label[FIRST + i] = odd(16) ? 0 : 100 + i;
	}
	for (unsigned int i = 0; i < 16; i++)
		fib->group[200 + i] = group_word_single(path_random());
	atomic_store(&fib->label_ttl, (uint8_t)(below(3) == 0 ? 255 : 0));
}

/*
 * Add routes to 198.(18 + i).0.0/16 and 2001:db8:i::/48: in main by group 200 + i, in VRF 1
 * by group 208 + i.
 */
static void
routes_make(void)
{
	struct fib_vrf *vrf = fib_vrf_new(fib, 1000, "red");

	for (uint32_t i = 0; i < 8; i++) {
		const uint8_t net4[4] = {198, (uint8_t)(18 + i)};
		const uint8_t net6[16] = {0x20, 1, 0x0d, 0xb8, 0, (uint8_t)i};

		assert_int_equal(poptrie_add(fib->copy[0].pt4, net4, 16, 200 + i), 0);
		assert_int_equal(poptrie_add(fib->copy[0].pt6, net6, 48, 200 + i), 0);
		assert_int_equal(poptrie_add(vrf->tries.pt4, net4, 16, 208 + i), 0);
		assert_int_equal(poptrie_add(vrf->tries.pt6, net6, 48, 208 + i), 0);
	}
	assert_int_equal(poptrie_commit(fib->copy[0].pt4), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt6), 0);
	assert_int_equal(poptrie_commit(vrf->tries.pt4), 0);
	assert_int_equal(poptrie_commit(vrf->tries.pt6), 0);
	fib_vrf_publish(fib, 1, vrf);
	atomic_store(&fib->vrfs_told, true);
	atomic_store(&fib->mtu_bytes[1], 70);
}

static void
checksum_write(uint8_t *ip)
{
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
}

/* Write a good IP packet with `payload` octets. Return its length. */
static unsigned int
packet_write(uint8_t *ip, unsigned int family, unsigned int payload)
{
	if (family == 4) {
		ip[0] = 0x45;
		ip[1] = (uint8_t)below(256);
		put_be16(ip + 2, (uint16_t)(20 + payload));
		ip[8] = (uint8_t)(odd(1) ? 1 + below(80) : 2 + below(80));
		put_be32(ip + 12, 0x0a000000 | below(1 << 24));
		put_be32(ip + 16, 198u << 24 |
					  (odd(1) ? 17 + below(10) : 18 + below(8)) << 16 |
					  below(1 << 16));
		checksum_write(ip);
		return 20 + payload;
	}
	ip[0] = 0x60 | (uint8_t)below(16);
	put_be16(ip + 4, (uint16_t)payload);
	ip[6] = 17;
	ip[7] = (uint8_t)(odd(1) ? 1 + below(80) : 2 + below(80));
	ip[8] = 0x20;
	memcpy(ip + 24,
	       (const uint8_t[6]){0x20, 1, 0x0d, 0xb8, 0, (uint8_t)below(odd(1) ? 9 : 8)},
	       6);
	return 40 + payload;
}

/* Return the octets behind an IP packet: padding; in mixed rounds, maybe more octets. */
static unsigned int
padding(unsigned int ip_bytes)
{
	unsigned int pad = below(8) == 0 ? below(12) : 0;

	return round_of == MIXED || ip_bytes + pad <= FAST_PADDED_MAX - LABEL_BYTES ? pad
										    : 0;
}

/* Make a frame with one label or more. */
static void
frame_make(unsigned int i)
{
	unsigned int n = 1 + odd(3) + odd(6), len, family;
	uint8_t *p = fast.buffer[i] + HEADROOM, *at = p + 14;

	if (round_of == ALL_SWAP && !by_vrf)
		n += below(2);
	random_fill(fast.buffer[i], BUFFER);
	memcpy(p, mac, 6);
	p[6] &= 0xfe;
	put_be16(p + 12, odd(40) ? MPLS_MULTICAST_TYPE : MPLS_TYPE);
	for (unsigned int k = 0; k < n; k++, at += LABEL_BYTES) {
		uint32_t label = FIRST + below(N_LABELS);

		if (odd(12))
			label = below(16);
		put_be32(at, label_entry(label, (uint8_t)below(8), k + 1 == n,
					 (uint8_t)(odd(1) ? below(80) : 2 + below(78))));
	}
	family = below(2) || only4 ? 4 : 6;
	len = packet_write(at, family, below(50));
	/* A frame may be padded, cut, or hold something else. */
	len += n * LABEL_BYTES + padding(len);
	if (odd(30))
		len = below(len);
	if (odd(20))
		at[below(40)] = (uint8_t)random();
	fast.mbuf[i] = (struct rte_mbuf){.buf_addr = fast.buffer[i],
					 .data_off = HEADROOM,
					 .buf_len = BUFFER,
					 .data_len = (uint16_t)(14 + len),
					 .pkt_len = 14 + len,
					 .nb_segs = 1};
	memcpy(slow.buffer[i], fast.buffer[i], BUFFER);
	slow.mbuf[i] = fast.mbuf[i];
	slow.mbuf[i].buf_addr = slow.buffer[i];
}

static void
side_begin(struct side *s, unsigned int n)
{
	s->burst = (struct burst){.fwd = &fwd, .in = &in, .n = (uint16_t)n, .ifidx = 1};
	for (unsigned int i = 0; i < n; i++)
		s->burst.m[i] = &s->mbuf[i];
	burst_look(&s->burst);
}

static void
assert_alike(unsigned int i)
{
	const struct rte_mbuf *a = &fast.mbuf[i], *b = &slow.mbuf[i];

	assert_int_equal(fast.burst.verdict[i], slow.burst.verdict[i]);
	assert_int_equal(fast.burst.family[i], slow.burst.family[i]);
	assert_int_equal(a->data_off, b->data_off);
	assert_int_equal(a->pkt_len, b->pkt_len);
	assert_int_equal(a->data_len, b->data_len);
	assert_memory_equal(rte_pktmbuf_mtod(a, uint8_t *), rte_pktmbuf_mtod(b, uint8_t *),
			    a->data_len);
	if (fast.burst.verdict[i] == VERDICT_GO)
		assert_int_equal(fast.burst.hop[i], slow.burst.hop[i]);
	else
		assert_int_equal(fast.burst.cause[i], slow.burst.cause[i]);
}

static bool
out_has_tags(unsigned int i)
{
	return fib_iface(fib, fast.burst.hop[i] & 0xffff)->n_tags != 0;
}

/*
 * Assert that a packet leaves with the labels of its path. S is set on the last label
 * before IP.
 */
static void
assert_pushed_labels(const struct burst *b, unsigned int i)
{
	const uint8_t *l3 = rte_pktmbuf_mtod(b->m[i], const uint8_t *) + 14;
	unsigned int e = path_index(b->path[i]), n = fib->encap[e].n;

	for (unsigned int k = 0; k < n; k++) {
		uint32_t entry = get_be32(l3 + k * LABEL_BYTES);

		assert_int_equal(label_of(entry), pushed(e, k));
		assert_true(!label_is_bottom(entry) || k + 1 == n);
		assert_true(label_is_bottom(entry) || k + 1 < n || b->family[i] == 0);
		assert_int_equal((entry ^ get_be32(l3)) & LABEL_REST & ~0x100u, 0);
	}
	n_long += n > LABEL_WORDS;
}

static void
assert_pushed(unsigned int i)
{
	if (fast.burst.verdict[i] == VERDICT_GO && !out_has_tags(i) &&
	    path_kind(fast.burst.path[i]) == PATH_ENCAP)
		assert_pushed_labels(&fast.burst, i);
}

/* Begin a round. In every second round all packets are alike, of the kind `alike`. */
static void
round_begin(unsigned int round, int alike)
{
	round_of = round % 2 == 0 ? MIXED : alike;
	only4 = below(2) == 0;
	by_vrf = below(4) == 0;
	n_labels = round_of == MIXED || below(4) == 0 ? 0 : 1 + below(4) / 3;
	if (n_labels != 0 && below(8) == 0)
		n_labels = 13 + below(LABELS_MAX - 12);
}

/* Count a burst that the vector code takes, unless a path or an interface is odd. */
static void
count_together(uint64_t packets, unsigned int n)
{
	n_together += round_of != MIXED && n >= 16 && packets == burst_all(&fast.burst);
}

/* The sender of a packet behind a label gets the error that it gets without the label. */
static void
a_refused_packet_behind_a_label_is_unreachable(void **state)
{
	static const struct {
		enum path_kind kind;
		enum reason verdict;
	} of[] = {{PATH_UNREACHABLE, PUNT_unreach},
		  {PATH_PROHIBIT, PUNT_unreach},
		  {PATH_NONE, PUNT_unreach},
		  {PATH_BLACKHOLE, DROP_blackhole}};

	for (unsigned int k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		uint8_t *p = fast.buffer[0] + HEADROOM, *ip = p + 14 + LABEL_BYTES;
		unsigned int len;

		round_of = ALL_POP;
		fib->label[FIRST] = 100;
		fib->group[100] = group_word_single(PATH(PATH_VRF, 0));
		for (unsigned int i = 0; i < 16; i++)
			fib->group[200 + i] = group_word_single(PATH(of[k].kind, 0));
		memset(fast.buffer[0], 0, BUFFER);
		memcpy(p, mac, 6);
		put_be16(p + 12, MPLS_TYPE);
		put_be32(p + 14, label_entry(FIRST, 0, true, 64));
		len = packet_write(ip, 4, 30);
		put_be32(ip + 16, 198u << 24 | 18u << 16 | 7);
		ip[8] = 64;
		checksum_write(ip);
		fast.mbuf[0] =
			(struct rte_mbuf){.buf_addr = fast.buffer[0],
					  .data_off = HEADROOM,
					  .buf_len = BUFFER,
					  .data_len = (uint16_t)(14 + LABEL_BYTES + len),
					  .pkt_len = 14 + LABEL_BYTES + len,
					  .nb_segs = 1};
		side_begin(&fast, 1);
		fwd_parse(&fast.burst);
		fwd_lookup(&fast.burst);
		fwd_adjacency(&fast.burst);
		assert_int_equal(fast.burst.verdict[0], of[k].verdict);
	}
}

static void
usual_packets_and_others_agree(void **state)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int n = 1 + below(BURST_MAX);

		round_begin(round, round % 4 == 1 ? ALL_POP : ALL_SWAP);
		paths_make();
		tables_make();
		for (unsigned int i = 0; i < n; i++)
			frame_make(i);
		side_begin(&fast, n);
		side_begin(&slow, n);
		fwd_parse(&fast.burst);
		fwd_parse_fast(&slow.burst);
		for (unsigned int i = 0; i < n; i++) {
			slow.burst.family[i] = 0;
			if (slow.mbuf[i].data_len < L2_LEN)
				burst_leave(&slow.burst, i, DROP_l2_short);
			else
				fwd_label_parse(&slow.burst, i);
		}
		assert_int_equal(slow.burst.switched, 0);
		n_switched += (unsigned int)__builtin_popcountll(fast.burst.switched);
		fwd_lookup(&fast.burst);
		fwd_lookup(&slow.burst);
		fwd_adjacency(&fast.burst);
		fwd_adjacency(&slow.burst);
		if (round_of == ALL_POP)
			count_together(fast.burst.switched, n);
		n_swapped += n >= 16 && fast.burst.switched == burst_all(&fast.burst) &&
			     fast.burst.push_alike && fast.burst.push_bytes == LABEL_BYTES;
		fwd_rewrite(&fast.burst);
		fwd_rewrite(&slow.burst);
		for (unsigned int i = 0; i < n; i++) {
			bool go = fast.burst.verdict[i] == VERDICT_GO;

			assert_alike(i);
			assert_pushed(i);
			n_sent += go;
			n_popped += go && fast.burst.family[i] != 0;
			n_refused += !go;
		}
	}
	print_message("%lu sent, %lu of them without the label, %lu by the loops for usual "
		      "packets, %lu refused, %lu bursts of vectors that replace labels, "
		      "%lu long\n",
		      n_sent, n_popped, n_switched, n_refused, n_swapped, n_long);
	assert_true(n_switched > ROUNDS && n_popped > ROUNDS && n_refused > ROUNDS);
	assert_true(n_together > ROUNDS / 16 && n_swapped > ROUNDS / 64);
	assert_true(n_long > ROUNDS / 8);
	n_together = n_swapped = n_long = 0;
}

/*
 * Return the TTL with which a packet with the labels `entry` leaves. Behind the labels is
 * an IP packet of TTL 60. The last entry has S set.
 */
static unsigned int
ttl_out_of(const uint32_t *entry, unsigned int n, struct label_walk *walk)
{
	uint8_t frame[L2_LEN + 4 * LABEL_BYTES + 40] = {0};
	struct rte_mbuf m = {
		.buf_addr = frame, .data_len = sizeof(frame), .pkt_len = sizeof(frame)};
	struct label_packet p = {.m = &m};

	for (unsigned int i = 0; i < n; i++)
		put_be32(frame + L2_LEN + i * LABEL_BYTES, entry[i]);
	frame[L2_LEN + n * LABEL_BYTES] = 0x45;
	frame[L2_LEN + n * LABEL_BYTES + 8] = 60;
	fib_label_walk(fib, frame + L2_LEN, sizeof(frame) - L2_LEN, walk);
	assert_int_equal(walk->reason, N_REASON);
	p.pops = walk->n;
	p.ttl = walk->ttl;
	p.carried = walk->carried;
	if (path_kind(walk->path) == PATH_ENCAP)
		p.encap = fib_encap(fib, walk->path);
	else
		p.family = walk->payload;
	return label_packet_ttl(&p);
}

static void
label_route(unsigned int i, fib_path path)
{
	fib->group[100 + i] = group_word_single(path);
	fib->label[FIRST + i] = 100 + i;
}

/*
 * The packet has TTL 60 and two labels with the TTLs `ttl`. of_kernel: the setting of the
 * kernel; 0: uniform model.
 */
static void
the_mode_of_a_label_decides_where_its_ttl_goes(void **state)
{
	const uint32_t pipe = FIB_CLASS_PIPE, uniform = FIB_CLASS_UNIFORM, none = 0;
	const struct {
		uint8_t of_kernel;
		uint32_t first, second;
		enum path_kind kind; /* path of the second label */
		uint8_t ttl[2];
		unsigned int out;
	} a[] = {
		{0, none, none, PATH_ADJ, {9, 30}, 8},
		{255, none, none, PATH_ADJ, {9, 30}, 59},
		{0, none, pipe, PATH_ADJ, {9, 30}, 59},
		{0, pipe, none, PATH_ADJ, {9, 30}, 29},
		{255, uniform, none, PATH_ADJ, {9, 30}, 59},
		{255, none, uniform, PATH_ADJ, {9, 30}, 29},
		{255, uniform, uniform, PATH_ADJ, {9, 30}, 8},
		{255, uniform, uniform, PATH_VRF, {30, 9}, 8},
		{0, pipe, none, PATH_ENCAP, {9, 30}, 29},
		{0, none, pipe, PATH_ENCAP, {9, 30}, 8},
		{255, none, uniform, PATH_ENCAP, {9, 30}, 29},
		{0, pipe, pipe, PATH_ADJ, {1, 30}, 0},
		{0, pipe, pipe, PATH_ADJ, {30, 1}, 0},
	};

	for (unsigned int i = 0; i < sizeof(a) / sizeof(a[0]); i++) {
		const fib_path path[] = {
			path_with_mtu(PATH(PATH_VRF, 0), a[i].first),
			path_with_mtu(PATH(a[i].kind, a[i].kind != PATH_VRF), a[i].second)};

		const uint32_t entry[] = {label_entry(FIRST, 0, false, a[i].ttl[0]),
					  label_entry(FIRST + 1, 0, true, a[i].ttl[1])};
		struct label_walk walk;

		label_route(0, path[0]);
		label_route(1, path[1]);
		atomic_store(&fib->label_ttl, a[i].of_kernel);
		assert_int_equal(ttl_out_of(entry, 2, &walk), a[i].out);
	}
}

/*
 * RFC 6790, 4.2: the indicator and the entropy label belong to the label above. That label
 * alone decides about the VRF, the TTL and the TC.
 */
static void
an_entropy_label_belongs_to_the_label_above(void **state)
{
	const uint32_t pipe = FIB_CLASS_PIPE, uniform = FIB_CLASS_UNIFORM, none = 0;
	const struct {
		uint8_t of_kernel;
		uint32_t class;
		unsigned int out;
	} a[] = {{0, none, 8},      {0, pipe, 59},   {0, uniform, 8},
		 {255, uniform, 8}, {255, pipe, 59}, {255, none, 59}};
	const uint32_t below[] = {label_entry(FIRST, 5, false, 9),
				  label_entry(LABEL_ENTROPY_INDICATOR, 1, false, 1),
				  label_entry(0xabcde, 2, true, 0)};
	const uint32_t on_top[] = {label_entry(LABEL_ENTROPY_INDICATOR, 1, false, 9),
				   label_entry(0xabcde, 2, true, 0)};
	struct label_walk walk;

	for (unsigned int i = 0; i < sizeof(a) / sizeof(a[0]); i++) {
		label_route(0, path_with_mtu(PATH(PATH_VRF, 3), a[i].class));
		atomic_store(&fib->label_ttl, a[i].of_kernel);
		assert_int_equal(ttl_out_of(below, 3, &walk), a[i].out);
		assert_int_equal(walk.n, 3);
		assert_int_equal(path_index(walk.path), 3);
		assert_int_equal(walk.tc, 5);
		assert_int_equal(ttl_out_of(on_top, 2, &walk),
				 a[i].of_kernel == 0 ? 8 : 59);
		assert_int_equal(path_index(walk.path), 0);
	}
}

/*
 * Assert that labels have the TTL of the route, else of the kernel's sysctl, else of the
 * packet.
 */
static void
assert_pushed_ttl(const struct burst *b, unsigned int i)
{
	const uint8_t *l3 = rte_pktmbuf_mtod(b->m[i], const uint8_t *) + 14;
	const struct fib_encap *e = fib_encap(fib, b->path[i]);
	const uint8_t *ip = l3 + e->n * LABEL_BYTES;
	unsigned int ttl = e->ttl != 0 ? e->ttl - LABEL_TTL_OWN : fib->label_ttl;

	if (ttl == 0)
		ttl = b->family[i] == 4 ? ip[8] : ip[7];
	assert_int_equal(label_ttl(get_be32(l3)), ttl);
	n_own += e->ttl != 0;
}

/* Give packet `i` of both sides `room` octets before the frame. Tags always have room. */
static void
headroom_set(unsigned int i, unsigned int room)
{
	struct side *sides[] = {&fast, &slow};

	for (unsigned int s = 0; s < 2; s++) {
		sides[s]->mbuf[i].buf_addr = sides[s]->buffer[i] + HEADROOM - room;
		sides[s]->mbuf[i].data_off = (uint16_t)room;
	}
}

/* Assert that the fast path marks each neighbor as used, for neigh. */
static void
assert_neighbors_used(const struct burst *b)
{
	for (uint64_t rest = b->push; rest != 0; rest &= rest - 1) {
		fib_path path = b->path[__builtin_ctzll(rest)];

		assert_int_equal(
			fib->adj_used[path_index(encap_next(fib_encap(fib, path)))],
			ADJ_USED);
	}
}

/*
 * If a route pushes labels on packets without labels, loop and slow path give the same
 * result.
 */
static void
packets_that_get_labels_agree(void **state)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int n = 1 + below(BURST_MAX);

		round_begin(round, ALL_PUSH);
		paths_make();
		tables_make();
		for (unsigned int i = 0; i < n; i++) {
			unsigned int family = below(2) || only4 ? 4 : 6, len;
			uint8_t *p = fast.buffer[i] + HEADROOM;

			frame_make(i);
			put_be16(p + 12, family == 4 ? 0x0800 : 0x86dd);
			len = packet_write(p + 14, family, below(50));
			len += padding(len);
			fast.mbuf[i].data_len = (uint16_t)(14 + len);
			fast.mbuf[i].pkt_len = 14 + len;
			memcpy(slow.buffer[i], fast.buffer[i], BUFFER);
			slow.mbuf[i] = fast.mbuf[i];
			headroom_set(i, odd(12) ? VLAN_TAGS * VLAN_BYTES + below(16)
						: HEADROOM);
		}
		side_begin(&fast, n);
		side_begin(&slow, n);
		fwd_parse(&fast.burst);
		in.fast4 = in.fast6 = false;
		fwd_parse(&slow.burst);
		in.fast4 = in.fast6 = true;
		fwd_lookup(&fast.burst);
		fwd_lookup(&slow.burst);
		fwd_adjacency(&fast.burst);
		assert_neighbors_used(&fast.burst);
		fwd_adjacency(&slow.burst);
		n_pushed += (unsigned int)__builtin_popcountll(fast.burst.push);
		count_together(fast.burst.push, n);
		n_one += n >= 16 && only4 && fast.burst.push_alike &&
			 fast.burst.push_bytes == LABEL_BYTES;
		fwd_rewrite(&fast.burst);
		fwd_rewrite(&slow.burst);
		for (unsigned int i = 0; i < n; i++) {
			assert_alike(i);
			if (fast.burst.verdict[i] == VERDICT_GO && !out_has_tags(i) &&
			    path_kind(fast.burst.path[i]) == PATH_ENCAP)
				assert_pushed_ttl(&fast.burst, i);
			assert_pushed(i);
		}
	}
	assert_true(n_own > ROUNDS / 8);
	print_message("%lu by the loop that pushes, %lu with more than %u labels\n",
		      n_pushed, n_long, LABEL_WORDS);
	assert_true(n_long > ROUNDS / 4);
	assert_true(n_pushed > ROUNDS && n_together > ROUNDS / 16 && n_one > ROUNDS / 64);
	n_together = n_one = n_long = 0;
}

static void
an_interface_of_a_vrf_is_found_by_its_addresses(void **state)
{
	round_of = MIXED;
	paths_make();
	out[0].vrf = out[1].vrf = out[2].vrf = 9; /* out[0] has no address */
	out[1].src4 = 0x0a000001;
	out[2].src6.octet[0] = 0x20;
	out[3].src4 = 0x0a000002;
	assert_int_equal(fib_iface_of_vrf(fib, 9, 4), out[1].ifidx);
	assert_int_equal(fib_iface_of_vrf(fib, 9, 6), out[2].ifidx);
	assert_int_equal(fib_iface_of_vrf(fib, 8, 4), 0);
}

int
main(void)
{
	unsigned int seed = getenv("SEED") != NULL ? (unsigned int)atoi(getenv("SEED"))
						   : (unsigned int)getpid();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_packets_and_others_agree),
		cmocka_unit_test(a_refused_packet_behind_a_label_is_unreachable),
		cmocka_unit_test(packets_that_get_labels_agree),
		cmocka_unit_test(the_mode_of_a_label_decides_where_its_ttl_goes),
		cmocka_unit_test(an_entropy_label_belongs_to_the_label_above),
		cmocka_unit_test(an_interface_of_a_vrf_is_found_by_its_addresses),
	};
	int rc;

	printf("SEED=%u\n", seed);
	srandom(seed);
	if (fib_create(&fib, &(struct fib_conf){0}) < 0)
		return 1;
	memcpy(in.mac, mac, 6);
	routes_make();
	fwd = (struct fwd){.fib = fib, .tries = &fib->copy[0], .adj_used = fib->adj_used};
	rc = run_with_each_isa(tests, NULL, NULL);
	for (unsigned int i = 0; i < N_ADJ; i++)
		atomic_store(&fib->iface[2 + i], NULL);
	fib_destroy(fib);
	return rc;
}
