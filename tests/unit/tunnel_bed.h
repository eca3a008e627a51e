/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables with two tunnels, and packets that go into them or come out of them, for tests of
 * the stages of forwarders. Two ports: LAN has the hosts of this router, WAN leads to the
 * far end.
 */
#ifndef TUNNEL_BED_H
#define TUNNEL_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/worker.h"
#include "fib/headend.h"
#include "fib/tunnel.h"
#include "fwd/cpu.h"
#include "fwd/fast.h"
#include "fwd/headend.h"
#include "fwd/inner.h"
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

/* --- tables --------------------------------------------------------------------------- */

static inline struct fib_iface *
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

static inline void
route4(uint32_t addr, unsigned int len, uint32_t group, fib_path path)
{
	uint8_t net[4];

	put_be32(net, addr);
	fib->group[group] = group_word_single(path);
	assert_int_equal(poptrie_add(fib->copy[0].pt4, net, len, group), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt4), 0);
}

static inline void
route6(const uint8_t addr[16], unsigned int len, uint32_t group, fib_path path)
{
	fib->group[group] = group_word_single(path);
	assert_int_equal(poptrie_add(fib->copy[0].pt6, addr, len, group), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt6), 0);
}

/* Publish the table that finds the tunnel of a received packet, as neigh does. */
static inline void
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

/* Make T4 a tunnel of GRE. `key` 0: without a key. */
static inline struct fib_tunnel *
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
static inline struct fib_tunnel *
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

/*
 * Make T6 a tunnel over IPv6, of GRE or of IP. `limit`: with the option for the tunnel
 * encapsulation limit (RFC 2473).
 */
static inline struct fib_tunnel *
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

static inline int
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

static inline int
down(void **state)
{
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

/* --- packets -------------------------------------------------------------------------- */

/*
 * Write an IP packet with UDP at `ip`, and return its length. `back`: from HOST4 (host6) to
 * BACK4 (back6); otherwise in the other direction.
 */
static inline unsigned int
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
static inline uint8_t *
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
static inline void
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

/*
 * Send a packet of `family` into the tunnel, after `change` has changed it (NULL:
 * unchanged). Return the outer header.
 */
static inline uint8_t *
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
static inline void
leaves(unsigned int bytes, uint16_t type, uint16_t out)
{
	const uint8_t *eth = rte_pktmbuf_mtod(&packet.m, const uint8_t *);

	assert_int_equal(packet.m.data_len, 14 + bytes);
	assert_int_equal(packet.m.pkt_len, 14 + bytes);
	assert_memory_equal(eth, out == LAN ? lan_peer : wan_peer, 6);
	assert_memory_equal(eth + 6, out == LAN ? lan_mac : wan_mac, 6);
	assert_int_equal(get_be16(eth + 12), type);
}

static uint8_t tos;

static inline void
set_tos(uint8_t *ip)
{
	if (ip[0] >> 4 == 4)
		ip[1] = tos;
	else
		put_be32(ip, 6u << 28 | (uint32_t)tos << 20 | 0x54321);
}

#endif
