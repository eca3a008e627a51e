/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets into tunnels and out of them, octet by octet: RFC 2003, 2473, 2784, 2890, 4213, 6040.
 * The Linux kernel as far end is in tests/vm/test_tunnel.py.
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
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/worker.h"
#include "fib/tunnel.h"
#include "fwd/cpu.h"
#include "fwd/fast.h"
#include "fwd/tunnel.h"
#include "fwd/walk.h"

#define LAN 1
#define WAN 2
#define T4  (PORT_MAX + 1) /* over IPv4 */
#define T6  (PORT_MAX + 2) /* over IPv6 */

#define LOCAL4  0xc0000241u /* 192.0.2.65 */
#define REMOTE4 0xc0000242u
#define HOST4   0xc6336409u /* 198.51.100.9: behind T4 */
#define BACK4   0xcb007107u /* 203.0.113.7: on LAN */

static const uint8_t lan_mac[6] = {2, 0, 0, 0, 1, 1}, wan_mac[6] = {2, 0, 0, 0, 1, 2};
static const uint8_t lan_peer[6] = {2, 0, 0, 0, 2, 1}, wan_peer[6] = {2, 0, 0, 0, 2, 2};
static const uint8_t local6[16] = {0x20, 1, 0xd, 0xb8, 0, 2, [15] = 1};
static const uint8_t remote6[16] = {0x20, 1, 0xd, 0xb8, 0, 2, [15] = 2};
static const uint8_t host6[16] = {0x20, 1, 0xd, 0xb8, 0, 0xa, [15] = 9};
static const uint8_t back6[16] = {0x20, 1, 0xd, 0xb8, 0, 0xb, [15] = 7};

static struct fib *fib;
static struct fwd fwd;
static struct counters count;
static struct burst b;
static struct {
	struct rte_mbuf m;
	struct packet_meta meta;
	uint8_t buffer[128 + 2048];
} packet;

/* --- tables ------------------------------------------------------------------------------- */

static struct fib_iface *
iface_make(uint16_t ifidx, const uint8_t mac[6])
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	assert_non_null(i);
	*i = (struct fib_iface){.ifidx = ifidx,
				.port = ifidx < PORT_MAX ? ifidx : 0,
				.mtu_bytes = 1500,
				.mtu6_bytes = 1500,
				.up = true,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true,
				.ifindex = ifidx + 10u};
	if (mac != NULL)
		memcpy(i->mac, mac, 6);
	free(fib->iface[ifidx]);
	fib->iface[ifidx] = i;
	return i;
}

static void
route4(uint32_t addr, unsigned int len, uint32_t group, fib_path path)
{
	uint8_t net[4];

	put_be32(net, addr);
	fib->group[group] = group_word_single(path);
	assert_int_equal(poptrie_add(fib->copy[0].pt4, net, len, group), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt4), 0);
}

static void
route6(const uint8_t addr[16], unsigned int len, uint32_t group, fib_path path)
{
	fib->group[group] = group_word_single(path);
	assert_int_equal(poptrie_add(fib->copy[0].pt6, addr, len, group), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt6), 0);
}

/* Publish the table of received packets, as neigh does. */
static void
table_make(void)
{
	static const uint8_t protos[] = {PROTO_GRE, PROTO_IP4, PROTO_IP6};
	struct fib_tunnels *tunnels = calloc(1, sizeof(*tunnels) + 64 * 2);

	assert_non_null(tunnels);
	tunnels->mask = 63;
	for (uint16_t ifidx = T4; ifidx <= T6; ifidx++)
		for (unsigned int p = 0; p < 3; p++) {
			const struct fib_tunnel *t = &fib->iface[ifidx]->tunnel;
			struct fib_tunnel_key key = {.local = t->local,
						     .remote = t->remote,
						     .key = t->key,
						     .vrf = t->vrf,
						     .family = t->family,
						     .proto = protos[p],
						     .has_key = t->has_key};
			uint32_t i = fib_tunnel_hash(fib, &key);

			if (!fib_tunnel_is(t, &key))
				continue;
			while (tunnels->entry[i & 63] != 0)
				i++;
			tunnels->entry[i & 63] = ifidx;
		}
	free(fib->tunnels);
	fib->tunnels = tunnels;
}

/* Make T4 a tunnel of GRE, with a key unless that is 0. */
static struct fib_tunnel *
gre4(uint32_t key)
{
	struct fib_iface *i = iface_make(T4, NULL);
	struct fib_tunnel *t = &i->tunnel;

	i->mtu_bytes = i->mtu6_bytes = key != 0 ? 1472 : 1476;
	*t = (struct fib_tunnel){.family = 4,
				 .gre = true,
				 .inner4 = true,
				 .inner6 = true,
				 .has_key = key != 0,
				 .df = true,
				 .key = key,
				 .bytes = key != 0 ? 28 : 24,
				 .proto_at = 22,
				 .local = ipaddr_from_v4(LOCAL4),
				 .remote = ipaddr_from_v4(REMOTE4)};
	t->head[0] = 0x45;
	t->head[9] = PROTO_GRE;
	put_be32(t->head + 12, LOCAL4);
	put_be32(t->head + 16, REMOTE4);
	if (key != 0) {
		t->head[20] = 0x20;
		put_be32(t->head + 24, key);
	}
	table_make();
	return t;
}

/* Make T4 a tunnel of IP in IPv4. */
static struct fib_tunnel *
ip4(void)
{
	struct fib_tunnel *t = gre4(0);

	t->gre = false;
	t->bytes = 20;
	t->proto_at = 9;
	t->head[9] = 0;
	table_make();
	return t;
}

/* Make T6 a tunnel of IP in IPv6, with a limit if `limit`; of GRE if `gre`. */
static struct fib_tunnel *
over6(bool gre, bool limit)
{
	struct fib_iface *i = iface_make(T6, NULL);
	struct fib_tunnel *t = &i->tunnel;

	i->mtu_bytes = i->mtu6_bytes = 1440;
	*t = (struct fib_tunnel){.family = 6,
				 .gre = gre,
				 .inner4 = true,
				 .inner6 = true,
				 .has_limit = limit,
				 .bytes = (uint8_t)(40 + (limit ? 8 : 0) + (gre ? 4 : 0)),
				 .proto_at = (uint8_t)(gre     ? (limit ? 50 : 42)
						       : limit ? 40
							       : 6)};
	memcpy(t->local.octet, local6, 16);
	memcpy(t->remote.octet, remote6, 16);
	t->head[0] = 0x60;
	t->head[6] = limit ? PROTO_IP6_OPTS : gre ? PROTO_GRE : 0;
	memcpy(t->head + 8, local6, 16);
	memcpy(t->head + 24, remote6, 16);
	if (limit)
		memcpy(t->head + 40, (uint8_t[]){gre ? PROTO_GRE : 0, 0, 4, 1, 4, 1, 1, 0},
		       8);
	table_make();
	return t;
}

static int
up(void **state)
{
	urcu_qsbr_register_thread();
	fwd_cpu_choose(INSTRUCTIONS_SCALAR);
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	iface_make(LAN, lan_mac);
	iface_make(WAN, wan_mac);
	iface_make(T4, NULL);
	iface_make(T6, NULL);
	for (unsigned int a = 1; a <= 2; a++) {
		fib->adj[a].ifidx = a == 1 ? LAN : WAN;
		fib->adj[a].family = 4;
		fib->adj[a].hop =
			adj_hop_make(a == 1 ? lan_peer : wan_peer, fib->adj[a].ifidx);
	}
	route4(HOST4, 24, 10, PATH(PATH_ONLINK, T4));
	route4(REMOTE4, 32, 11, PATH(PATH_ADJ, 2));
	route4(LOCAL4, 32, 12, PATH(PATH_LOCAL, 0));
	route4(BACK4, 24, 13, PATH(PATH_ADJ, 1));
	route6(host6, 48, 14, PATH(PATH_ONLINK, T4));
	route6(remote6, 128, 11, PATH(PATH_ADJ, 2));
	route6(local6, 128, 12, PATH(PATH_LOCAL, 0));
	route6(back6, 48, 13, PATH(PATH_ADJ, 1));
	return 0;
}

static int
down(void **state)
{
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

/* --- packets ------------------------------------------------------------------------------ */

/* Write an IP packet with UDP at `ip`, and return its length. */
static unsigned int
inner_write(uint8_t *ip, uint8_t family, unsigned int len, bool back)
{
	memset(ip, 0, len);
	if (family == 4) {
		ip[0] = 0x45;
		ip[1] = 0xb8;
		put_be16(ip + 2, (uint16_t)len);
		ip[8] = 9;
		ip[9] = 17;
		put_be32(ip + 12, back ? HOST4 : BACK4);
		put_be32(ip + 16, back ? BACK4 : HOST4);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	} else {
		put_be32(ip, 6u << 28 | 0xb8u << 20 | 0x54321);
		put_be16(ip + 4, (uint16_t)(len - 40));
		ip[6] = 17;
		ip[7] = 9;
		memcpy(ip + 8, back ? host6 : back6, 16);
		memcpy(ip + 24, back ? back6 : host6, 16);
	}
	ip[len - 1] = 0x77;
	return len;
}

/* Prepare a buffer for a frame that `ifidx` receives; return where its IP packet begins. */
static uint8_t *
frame_begin(uint16_t ifidx, uint8_t family)
{
	uint8_t *eth = packet.buffer + 128;

	memset(&packet, 0, sizeof(packet));
	packet.m.buf_addr = packet.buffer;
	packet.m.buf_len = sizeof(packet.buffer);
	packet.m.data_off = 128;
	packet.m.nb_segs = 1;
	packet.m.priv_size = PACKET_PRIV_BYTES;
	rte_mbuf_refcnt_set(&packet.m, 2); /* a drop frees nothing */
	memcpy(eth, ifidx == LAN ? lan_mac : wan_mac, 6);
	memcpy(eth + 6, ifidx == LAN ? lan_peer : wan_peer, 6);
	put_be16(eth + 12, family == 4 ? 0x0800 : 0x86dd);
	b.ifidx = ifidx;
	return eth + 14;
}

/* Pass the packet of `len` octets through the stages. */
static void
walk(unsigned int len)
{
	packet.m.data_len = (uint16_t)(14 + len);
	packet.m.pkt_len = 14 + len;
	memset(&fwd, 0, offsetof(struct fwd, tx));
	memset(fwd.tx, 0, sizeof(fwd.tx[0]) * 4);
	fwd.n_tx_used = 0;
	fwd.fib = fib;
	fwd.tries = &fib->copy[0];
	fwd.count = &count;
	fwd.adj_used = fib->adj_used;
	fwd.tx_burst = 32;
	fwd.ip_id = 0x1234;
	b.fwd = &fwd;
	b.n = 1;
	b.m[0] = &packet.m;
	b.inside = false;
	burst_look(&b);
	fwd_walk(&b, NULL);
}

/* Send a packet of a family into the tunnel, with changes. Return the outer header. */
static uint8_t *
into(uint8_t family, unsigned int len, void (*change)(uint8_t *ip))
{
	uint8_t *ip = frame_begin(LAN, family);

	inner_write(ip, family, len, false);
	if (change != NULL) {
		change(ip);
		if (family == 4) {
			put_be16(ip + 10, 0);
			put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
		}
	}
	walk(len);
	return rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14);
}

/* Check the frame that leaves: its Ethernet header and its length. */
static void
leaves(unsigned int bytes, uint16_t type, uint16_t out)
{
	const uint8_t *eth = rte_pktmbuf_mtod(&packet.m, const uint8_t *);

	assert_int_equal(packet.m.data_len, 14 + bytes);
	assert_int_equal(packet.m.pkt_len, 14 + bytes);
	assert_memory_equal(eth, out == LAN ? lan_peer : wan_peer, 6);
	assert_memory_equal(eth + 6, out == LAN ? lan_mac : wan_mac, 6);
	assert_int_equal(get_be16(eth + 12), type);
}

/* --- into a tunnel ------------------------------------------------------------------------ */

static void
set_df(uint8_t *ip)
{
	ip[6] |= 0x40;
}

static void
a_gre_tunnel_writes_its_headers(void **state)
{
	uint8_t *out, *ip;

	gre4(0);
	out = into(4, 100, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	assert_int_equal(b.hop[0] & 0xffff, WAN);
	leaves(124, 0x0800, WAN);
	assert_int_equal(out[0], 0x45);
	assert_int_equal(get_be16(out + 2), 124);
	assert_int_equal(get_be16(out + 4), 0x1234);
	assert_int_equal(get_be16(out + 6), 0x4000);
	assert_int_equal(out[8], 8); /* that of the packet, less one */
	assert_int_equal(out[9], 47);
	assert_int_equal(get_be32(out + 12), LOCAL4);
	assert_int_equal(get_be32(out + 16), REMOTE4);
	assert_true(ip4_checksum_ok(out, 20));
	assert_memory_equal(out + 20, "\x00\x00\x08\x00", 4);
	ip = out + 24;
	assert_true(ip4_checksum_ok(ip, 20));
	assert_int_equal(ip[8], 8);
	assert_int_equal(ip[99], 0x77);

	gre4(0x01020304);
	out = into(6, 100, NULL);
	leaves(128, 0x0800, WAN);
	assert_memory_equal(out + 20, "\x20\x00\x86\xdd\x01\x02\x03\x04", 8);
	assert_int_equal(out[28 + 7], 8);
}

static void
ip_in_ipv4_has_the_protocol_of_the_packet(void **state)
{
	uint8_t *out;

	ip4();
	out = into(4, 60, NULL);
	leaves(80, 0x0800, WAN);
	assert_int_equal(out[9], 4);
	assert_int_equal(out[20], 0x45);
	out = into(6, 60, NULL);
	assert_int_equal(out[9], 41);
	assert_int_equal(out[20] >> 4, 6);
	ip4()->inner6 = false; /* as ipip: the kernel refuses it */
	into(6, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
}

static uint8_t tos;

static void
set_tos(uint8_t *ip)
{
	if (ip[0] >> 4 == 4)
		ip[1] = tos;
	else
		put_be32(ip, 6u << 28 | (uint32_t)tos << 20 | 0x54321);
}

/* RFC 6040, 4.1: the ECN field is copied, CE, too. The DSCP is fixed or inherited. */
static void
ttl_tos_and_df_follow_the_settings(void **state)
{
	struct fib_tunnel *t = gre4(0);

	t->ttl = 77;
	for (tos = 0xb8; tos <= 0xbb; tos++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			t->tos = 0x20;
			t->tos_inherit = false;
			assert_int_equal(into(family, 60, set_tos)[1], 0x20 | (tos & 3));
			t->tos_inherit = true;
			assert_int_equal(into(family, 60, set_tos)[1], tos);
		}
	assert_int_equal(into(4, 60, NULL)[8], 77);
	t->df = false;
	assert_int_equal(get_be16(into(4, 60, NULL) + 6), 0);
	assert_int_equal(get_be16(into(4, 60, set_df) + 6), 0x4000);
	assert_int_equal(get_be16(into(6, 60, NULL) + 6), 0);
	t->ignore_df = true;
	assert_int_equal(get_be16(into(4, 60, set_df) + 6), 0);
}

static void
a_tunnel_over_ipv6_writes_its_headers(void **state)
{
	static const uint8_t limit[8] = {41, 0, 4, 1, 4, 1, 1, 0};
	struct fib_tunnel *t = over6(false, true);
	uint32_t label;
	uint8_t *out;

	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, T6));
	t->ttl = 33;
	t->tos = 0x40;
	out = into(6, 100, NULL);
	leaves(148, 0x86dd, WAN);
	assert_int_equal(get_be32(out) >> 20, 0x640);
	label = get_be32(out) & 0xfffff;
	assert_true(label != 0 && label != 0x54321);
	assert_int_equal(get_be16(out + 4), 108);
	assert_int_equal(out[6], 60);
	assert_int_equal(out[7], 33);
	assert_memory_equal(out + 8, local6, 16);
	assert_memory_equal(out + 24, remote6, 16);
	assert_memory_equal(out + 40, limit, 8);
	assert_int_equal(get_be32(into(6, 100, NULL)) & 0xfffff,
			 label); /* a flow has one */

	t->flow_inherit = true;
	assert_int_equal(get_be32(into(6, 100, NULL)) & 0xfffff, 0x54321);
	assert_true((get_be32(into(4, 100, NULL)) & 0xfffff) != 0);
	/* Its own limit may be in the packet's options: RFC 2473, 4.1.1. */
	out = frame_begin(LAN, 6);
	inner_write(out, 6, 100, false);
	out[6] = PROTO_IP6_OPTS;
	walk(100);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);

	over6(true, false);
	out = into(4, 100, NULL);
	leaves(144, 0x86dd, WAN);
	assert_int_equal(out[6], 47);
	assert_memory_equal(out + 40, "\x00\x00\x08\x00", 4);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ONLINK, T4));
}

static void
packets_too_big_are_told_the_mtu_of_the_tunnel(void **state)
{
	struct fib_tunnel *t = gre4(0);

	into(4, 1476, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1477, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1476);
	/* The link below has become smaller. */
	fib->iface[WAN]->mtu_bytes = 1400;
	into(4, 1376, set_df);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1377, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	assert_int_equal(packet.meta.mtu_bytes, 1376);
	/* Without DF the outer packet may be fragmented, which the kernel does. */
	t->df = false;
	into(4, 1377, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	into(4, 1377, set_df);
	assert_int_equal(b.verdict[0], PUNT_too_big);
	/* IPv6 has no MTU below 1280. */
	t->df = true;
	fib->iface[WAN]->mtu_bytes = 1290;
	into(6, 1280, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->iface[WAN]->mtu_bytes = 1500;
}

static uint8_t ttl_of_it;

static void
set_ttl(uint8_t *ip)
{
	ip[ip[0] >> 4 == 4 ? 8 : 7] = ttl_of_it;
}

static void
what_cannot_go_in_has_a_reason(void **state)
{
	uint8_t verdict[8];
	struct fib_iface *i;

	gre4(0);
	ttl_of_it = 1;
	into(4, 60, set_ttl);
	assert_int_equal(b.verdict[0], PUNT_ttl_expired);
	fib->group[11] = group_word_single(PATH(PATH_NONE, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_no_route);
	fib->group[11] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], DROP_blackhole);
	fib->group[11] = group_word_single(PATH(PATH_KERNEL, 0));
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_kernel_route);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, T4)); /* into itself */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], DROP_encap_loop);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, WAN)); /* not resolved */
	into(4, 60, NULL);
	assert_int_equal(b.verdict[0], PUNT_unresolved);
	assert_int_equal(b.path[0], PATH(PATH_ONLINK, T4));
	fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
	/* The local address is gone; the link is another one; IPsec; the tunnel is down. */
	fib->group[12] = group_word_single(PATH(PATH_NONE, 0));
	into(4, 60, NULL);
	verdict[0] = b.cause[0];
	fib->group[12] = group_word_single(PATH(PATH_LOCAL, 0));
	fib->iface[T4]->tunnel.link = 99;
	into(4, 60, NULL);
	verdict[1] = b.verdict[0];
	fib->iface[T4]->tunnel.link = WAN + 10;
	into(4, 60, NULL);
	verdict[2] = b.verdict[0];
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	into(4, 60, NULL);
	verdict[3] = b.verdict[0];
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	i = fib->iface[T4];
	i->up = false;
	into(4, 60, NULL);
	verdict[4] = b.cause[0];
	i->up = true;
	assert_int_equal(verdict[0], DROP_egress_down);
	assert_int_equal(verdict[1], PUNT_kernel_route);
	assert_int_equal(verdict[2], VERDICT_GO);
	assert_int_equal(verdict[3], PUNT_kernel_route);
	assert_int_equal(verdict[4], DROP_egress_down);
}

static void
a_tunnel_goes_through_a_tunnel(void **state)
{
	uint8_t *out;

	gre4(0);
	over6(false, false);
	fib->group[11] = group_word_single(PATH(PATH_ONLINK, T6));
	/* Both remotes have group 11: that of T6 has another one now. */
	route6(remote6, 128, 20, PATH(PATH_ADJ, 2));
	out = into(4, 100, NULL);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	leaves(164, 0x86dd, WAN);
	assert_int_equal(out[6], 4);
	assert_int_equal(get_be16(out + 40 + 2), 124);
	assert_int_equal(out[40 + 24 + 99], 0x77);
	/* The MTU is that of the smallest: 1500 - 40, then T6's 1440 - 24. */
	into(4, 1416, set_df);
	assert_int_equal(b.verdict[0], VERDICT_GO);
	into(4, 1417, set_df);
	assert_int_equal(packet.meta.mtu_bytes, 1416);
	fib->group[20] = group_word_single(PATH(PATH_ONLINK, T6));
	into(4, 100, NULL);
	assert_int_equal(b.verdict[0], DROP_encap_loop);
	fib->group[20] = fib->group[11] = group_word_single(PATH(PATH_ADJ, 2));
}

/* --- out of a tunnel ---------------------------------------------------------------------- */

/* Write an outer header of T4 from the far end, and return where the packet inside begins. */
static uint8_t *
outer4(uint8_t proto, uint8_t dscp, unsigned int len, const char *gre, unsigned int n_gre)
{
	uint8_t *out = frame_begin(WAN, 4);

	memset(out, 0, 20);
	out[0] = 0x45;
	out[1] = dscp;
	put_be16(out + 2, (uint16_t)(20 + n_gre + len));
	out[8] = 60;
	out[9] = proto;
	put_be32(out + 12, REMOTE4);
	put_be32(out + 16, LOCAL4);
	put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	memcpy(out + 20, gre, n_gre);
	return out + 20 + n_gre;
}

/* Receive an outer packet of GRE. */
static void
gre_in(uint8_t family, uint8_t dscp, const char *gre, unsigned int n_gre)
{
	inner_write(outer4(47, dscp, 60, gre, n_gre), family, 60, true);
	walk(20 + n_gre + 60);
}

#define GRE4     "\0\0\x08\0"
#define GRE6     "\0\0\x86\xdd"
#define GRE4_KEY "\x20\0\x08\0\x01\x02\x03\x04"

/* Let the opened packet pass the stages, and check what leaves by LAN. */
static uint8_t *
opened_leaves(uint16_t ifidx, unsigned int bytes, uint16_t type)
{
	assert_int_equal(b.verdict[0], VERDICT_OPENED);
	assert_int_equal(b.hop[0] & 0xffff, ifidx);
	assert_int_equal(packet.meta.outer_ifidx, WAN);
	fwd_tunnel_keep(&b, 0);
	fwd_tunnels_walk(&fwd);
	assert_int_equal(fwd.n_opened, 0);
	assert_int_equal(fwd.tx[LAN].n, 1);
	assert_ptr_equal(fwd.tx[LAN].m[0], &packet.m);
	leaves(bytes, type, LAN);
	return rte_pktmbuf_mtod_offset(&packet.m, uint8_t *, 14);
}

static void
packets_come_out_of_gre(void **state)
{
	uint64_t rx = count.port[T4].rx_packets;
	uint8_t *ip;

	gre4(0);
	gre_in(4, 0, GRE4, 4);
	ip = opened_leaves(T4, 60, 0x0800);
	assert_int_equal(ip[8], 8);
	assert_true(ip4_checksum_ok(ip, 20));
	assert_int_equal(ip[59], 0x77);
	gre_in(6, 0, GRE6, 4);
	ip = opened_leaves(T4, 60, 0x86dd);
	assert_int_equal(ip[7], 8);
	assert_int_equal(count.port[T4].rx_packets, rx + 2);
	gre4(0x01020304);
	gre_in(4, 0, GRE4_KEY, 8);
	opened_leaves(T4, 60, 0x0800);
}

static void
what_forwarders_do_not_take_is_for_the_kernel(void **state)
{
	static const struct {
		const char *gre;
		unsigned int n;
	} other[] = {{GRE4_KEY, 8},                 /* a key, and the tunnel has none */
		     {"\x80\0\x08\0\0\0\0\0", 8},   /* checksum */
		     {"\x10\0\x08\0\0\0\0\0", 8},   /* sequence number */
		     {"\x40\0\x08\0\0\0\0\0", 8},   /* routing */
		     {"\x20\1\x88\x0b\0\0\0\0", 8}, /* version 1: PPTP */
		     {"\0\0\x88\x47", 4},           /* labels */
		     {"\0\0\x65\x58", 4}};          /* Ethernet */
	uint8_t *out;

	gre4(0);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		gre_in(4, 0, other[i].gre, other[i].n);
		assert_int_equal(b.verdict[0], PUNT_local);
	}
	/* A fragment; another remote; a packet inside that is longer than the outer one. */
	outer4(47, 0, 60, GRE4, 4);
	out = packet.buffer + 128 + 14;
	inner_write(out + 24, 4, 60, true);
	out[6] = 0x20;
	put_be16(out + 10, 0);
	put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	walk(84);
	assert_int_equal(b.verdict[0], PUNT_local);
	outer4(47, 0, 60, GRE4, 4);
	inner_write(out + 24, 4, 60, true);
	put_be32(out + 12, REMOTE4 + 1);
	put_be16(out + 10, 0);
	put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	walk(84);
	assert_int_equal(b.verdict[0], PUNT_local);
	outer4(47, 0, 59, GRE4, 4);
	inner_write(out + 24, 4, 60, true);
	walk(84);
	assert_int_equal(b.verdict[0], PUNT_local);
	gre4(0x01020304); /* a key is missing, or is another one */
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], PUNT_local);
	gre_in(4, 0, "\x20\0\x08\0\x01\x02\x03\x05", 8);
	assert_int_equal(b.verdict[0], PUNT_local);
	gre4(0);
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], PUNT_local);
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	fib->iface[T4]->up = false;
	gre_in(4, 0, GRE4, 4);
	assert_int_equal(b.verdict[0], PUNT_local);
	fib->iface[T4]->up = true;
}

/* RFC 6040, 4.2. Columns: outer Not-ECT, ECT(1), ECT(0), CE. 9: dropped. */
static void
ecn_comes_out_by_rfc_6040(void **state)
{
	static const uint8_t want[4][4] = {
		{0, 0, 0, 9}, /* inner Not-ECT */
		{1, 1, 1, 3}, /* ECT(1) */
		{2, 1, 2, 3}, /* ECT(0) */
		{3, 3, 3, 3}, /* CE */
	};

	gre4(0);
	for (uint8_t inner = 0; inner < 4; inner++)
		for (uint8_t outer = 0; outer < 4; outer++)
			for (uint8_t family = 4; family <= 6; family += 2) {
				uint8_t *ip =
					outer4(47, outer, 60, family == 4 ? GRE4 : GRE6, 4);

				inner_write(ip, family, 60, true);
				tos = 0xb8 | inner;
				set_tos(ip);
				put_be16(ip + 10, family == 4 ? 0 : get_be16(ip + 10));
				if (family == 4)
					put_be16(ip + 10,
						 (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
				walk(84);
				if (want[inner][outer] == 9) {
					assert_int_equal(b.verdict[0], DROP_ecn_ce);
					continue;
				}
				ip = opened_leaves(T4, 60, family == 4 ? 0x0800 : 0x86dd);
				assert_int_equal(ip_dsfield(ip, family),
						 0xb8 | want[inner][outer]);
				assert_true(family == 6 || ip4_checksum_ok(ip, 20));
			}
}

static void
packets_come_out_of_ip_in_ip(void **state)
{
	static const uint8_t limit[8] = {4, 0, 4, 1, 4, 1, 1, 0};
	uint8_t *out;

	ip4();
	inner_write(outer4(4, 0, 60, "", 0), 4, 60, true);
	walk(80);
	opened_leaves(T4, 60, 0x0800);
	inner_write(outer4(41, 0, 60, "", 0), 6, 60, true);
	walk(80);
	opened_leaves(T4, 60, 0x86dd);
	inner_write(outer4(4, 0, 60, "", 0), 6, 60, true); /* of another version */
	walk(80);
	assert_int_equal(b.verdict[0], PUNT_local);

	over6(false, true);
	out = frame_begin(WAN, 6);
	memset(out, 0, 40);
	out[0] = 0x60;
	put_be16(out + 4, 68);
	out[6] = PROTO_IP6_OPTS;
	out[7] = 3;
	memcpy(out + 8, remote6, 16);
	memcpy(out + 24, local6, 16);
	memcpy(out + 40, limit, 8);
	inner_write(out + 48, 4, 60, true);
	walk(108);
	opened_leaves(T6, 60, 0x0800);
}

/* A packet inside for this host goes to the kernel as it came. */
static void
a_packet_inside_for_this_host_keeps_its_outer_header(void **state)
{
	struct burst inner = {0};
	uint8_t *ip, was[84 + 14];

	gre4(0);
	ip = outer4(47, 0, 60, GRE4, 4);
	inner_write(ip, 4, 60, true);
	put_be32(ip + 16, LOCAL4);
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	memcpy(was, packet.buffer + 128, sizeof(was));
	walk(84);
	assert_int_equal(b.verdict[0], VERDICT_OPENED);
	inner.fwd = &fwd;
	inner.inside = true;
	inner.n = 1;
	inner.ifidx = T4;
	inner.m[0] = &packet.m;
	inner.l2[0] = packet.buffer + 128 + (b.hop[0] >> 16);
	fwd_walk(&inner, NULL);
	assert_int_equal(inner.verdict[0], PUNT_local);
	assert_int_equal(packet.m.data_off, 128);
	assert_memory_equal(packet.buffer + 128, was, sizeof(was));
}

static struct watch_record
explained(uint16_t ifidx, unsigned int len)
{
	struct watch_record rec;

	thread_role = ROLE_TRACE;
	fwd_explain(fib, ifidx, packet.buffer + 128, (uint16_t)(14 + len), 14 + len, &rec);
	thread_role = ROLE_NONE;
	return rec;
}

/* `fpmctl explain` follows a packet out of a tunnel, and into one. */
static void
explain_follows_a_packet_through_tunnels(void **state)
{
	struct watch_record rec;

	gre4(0);
	over6(false, false);
	inner_write(outer4(47, 0, 60, GRE4, 4), 4, 60, true);
	rec = explained(WAN, 84);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.in_ifidx, T4);
	assert_int_equal(rec.outer_ifidx, WAN);
	assert_int_equal(rec.out_ifidx, LAN);
	assert_int_equal(rec.frame_bytes, 74);
	assert_int_equal(get_be16(rec.frame + 12), 0x0800);
	assert_int_equal(get_be32(rec.frame + 14 + 16), BACK4);

	inner_write(frame_begin(LAN, 4), 4, 60, false);
	rec = explained(LAN, 60);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.tunnel, T4);
	assert_int_equal(rec.mtu_bytes, 1476);
	assert_int_equal(rec.out_ifidx, WAN);
	assert_int_equal(rec.via_family, 4);
	assert_int_equal(rec.rewritten[14 + 8], 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gre_tunnel_writes_its_headers),
		cmocka_unit_test(ip_in_ipv4_has_the_protocol_of_the_packet),
		cmocka_unit_test(ttl_tos_and_df_follow_the_settings),
		cmocka_unit_test(a_tunnel_over_ipv6_writes_its_headers),
		cmocka_unit_test(packets_too_big_are_told_the_mtu_of_the_tunnel),
		cmocka_unit_test(what_cannot_go_in_has_a_reason),
		cmocka_unit_test(packets_come_out_of_gre),
		cmocka_unit_test(what_forwarders_do_not_take_is_for_the_kernel),
		cmocka_unit_test(ecn_comes_out_by_rfc_6040),
		cmocka_unit_test(packets_come_out_of_ip_in_ip),
		cmocka_unit_test(a_packet_inside_for_this_host_keeps_its_outer_header),
		cmocka_unit_test(a_tunnel_goes_through_a_tunnel),
		cmocka_unit_test(explain_follows_a_packet_through_tunnels),
	};

	return cmocka_run_group_tests(tests, up, down);
}
