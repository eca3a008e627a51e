/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The punt thread without a thread, on the tables of vxlan_bed.h, for tests of the packets
 * that it forwards. LAN receives them, and they leave by WAN. The test plays the filter,
 * the TAPs and neigh. At the end of a test all buffers must be in the pool again.
 */
#ifndef PUNT_BED_H
#define PUNT_BED_H

#include "port/label_write.h" /* before a global `fib` */
#include "vxlan_bed.h"

#include <arpa/inet.h>

#include <rte_mempool.h>

#include "base/clock.h"
#include "base/idle.h"
#include "base/log.h"
#include "eal.h"
#include "punt/headend.h"
#include "punt/internal.h"
#include "punt/label.h"
#include "punt/tunnel.h"

/* Messages to neigh are counted. */
static struct {
	unsigned int n_gleans, n_over;
	struct ipaddr addr;
	uint16_t ifidx;
	uint8_t family;
} sent;

static inline void
neigh_send(struct worker *to, struct msg *msg)
{
	const struct msg_neigh *m = (const struct msg_neigh *)msg;

	sent.n_gleans += msg->type == MSG_GLEAN;
	sent.n_over += msg->type == MSG_GLEAN_OVER;
	sent.addr = m->addr;
	sent.ifidx = m->ifidx;
	sent.family = m->family;
	msg_free(msg);
}

#define worker_send neigh_send
#include "punt/neigh_queue.c"
#undef worker_send

#define BUFFERS 4095u /* twice the packets that may wait */

static struct punt p;
static struct fwd_rings rings[2];
static struct idle idles[2];
static struct rte_mempool *pool;
static struct watch no_watch;
static enum punt_judgment judgment;
static unsigned int n_judged, n_delivered;
static const struct fib_iface *judged_out;
static uint16_t delivered_bytes, delivered_ifidx;
static uint8_t delivered_l2[L2_LEN]; /* Ethernet header of the last one */

/* --- functions that this program replaces --------------------------------------------- */

enum punt_judgment
punt_filter(struct punt *of, struct rte_mbuf *m, uint8_t *ip, uint8_t family,
	    const struct fib_iface *out)
{
	n_judged++;
	judged_out = out;
	if (judgment == PUNT_DROPPED)
		punt_drop(of, m, DROP_filter);
	else if (judgment == PUNT_REJECTED)
		punt_lost(of, m, DROP_filter);
	return judgment;
}

void
tap_deliver(struct punt *of, struct rte_mbuf *m)
{
	n_delivered++;
	delivered_bytes = rte_pktmbuf_data_len(m);
	delivered_ifidx = packet_meta(m)->in_ifidx;
	memcpy(delivered_l2, rte_pktmbuf_mtod(m, const uint8_t *), L2_LEN);
	rte_pktmbuf_free(m);
}

/* --- the bed -------------------------------------------------------------------------- */

static inline int
bed_up(void **state)
{
	vxlan_up(state);
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ADJ, 2));
	fib->iface[LAN]->src4 = 0xcb007101; /* 203.0.113.1 */
	memcpy(fib->iface[LAN]->src6.octet, back6, 16);
	fib->iface[LAN]->src6.octet[15] = 1;
	memset(&count, 0, sizeof(count));
	memset(&p, 0, sizeof(p));
	memset(&sent, 0, sizeof(sent));
	p.fib = p.conf.fib = fib;
	p.count = p.conf.count = &count;
	p.conf.rings = rings;
	p.conf.n_fwd = 2;
	p.conf.pool = pool;
	p.conf.watch = &no_watch;
	p.conf.raw[0] = p.conf.raw[1] = -1;
	p.ip_id = 0x1234;
	p.linear = malloc(LINEAR_BYTES);
	judgment = PUNT_PASSES;
	n_judged = n_delivered = 0;
	return neigh_queue_begin(&p);
}

static inline int
bed_down(void **state)
{
	static unsigned int n_lost; /* by tests that have failed */
	unsigned int before = n_lost;
	void *m;

	neigh_queue_clear(&p);
	free(p.queue);
	free(p.linear);
	fib->seg6 = NULL; /* not allocated */
	fib->vxlan_hop[ADJ] = NULL;
	down(state);
	n_lost = rte_mempool_in_use_count(pool);
	if (n_lost != before)
		print_error("%u buffers are not back\n", n_lost - before);
	for (unsigned int i = 0; i < 2; i++)
		while (rte_ring_sc_dequeue(rings[i].inject, &m) == 0)
			rte_pktmbuf_free(m);
	before = n_lost == before ? 0 : 1;
	n_lost = rte_mempool_in_use_count(pool);
	return before == 0 ? 0 : -1;
}

/* Make a packet that LAN received, from BACK4 or back6 to HOST4 or host6. */
static inline struct rte_mbuf *
packet_make(uint8_t family, unsigned int len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *eth;

	assert_non_null(m);
	eth = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(L2_LEN + len));
	assert_non_null(eth);
	memcpy(eth, lan_mac, 6);
	memcpy(eth + 6, lan_peer, 6);
	put_be16(eth + 12, family == 4 ? 0x0800 : 0x86dd);
	inner_write(eth + L2_LEN, family, len, false);
	memset(packet_meta(m), 0, sizeof(struct packet_meta));
	packet_meta(m)->family = family;
	packet_meta(m)->in_ifidx = LAN;
	packet_meta(m)->fwd = 1;
	return m;
}

static inline void
ttl_write(struct rte_mbuf *m, uint8_t ttl)
{
	uint8_t *ip = l3_of(m);

	if (ip[0] >> 4 == 6) {
		ip[7] = ttl;
		return;
	}
	ip[8] = ttl;
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
}

static inline void
df_set(struct rte_mbuf *m)
{
	uint8_t *ip = l3_of(m);

	ip[6] = 0x40;
	ttl_write(m, ip[8]);
}

/* Put labels before the packet, the last one at the bottom, each with this TTL. */
static inline void
labels_add(struct rte_mbuf *m, const uint32_t *label, unsigned int n, uint8_t ttl)
{
	uint8_t *eth;

	assert_non_null(rte_pktmbuf_prepend(m, (uint16_t)(4 * n)));
	eth = rte_pktmbuf_mtod(m, uint8_t *);
	memmove(eth, eth + 4 * n, 12);
	put_be16(eth + 12, MPLS_TYPE);
	for (unsigned int i = 0; i < n; i++)
		put_be32(eth + 14 + 4 * i,
			 label[i] << 12 | (uint32_t)(i + 1 == n) << 8 | ttl);
	packet_meta(m)->has_labels = true;
}

/* Take the next frame that a forwarder gets; it leaves by `out`. NULL: none. */
static inline struct rte_mbuf *
frame_next(unsigned int fwd_, uint16_t out)
{
	void *m = NULL;

	if (rte_ring_sc_dequeue(rings[fwd_].inject, &m) < 0)
		return NULL;
	assert_int_equal(packet_meta(m)->out_ifidx, out);
	return m;
}

/*
 * Take the frame that left by `out`, and check its Ethernet header and length. The caller
 * frees it.
 */
static inline struct rte_mbuf *
frame_left(unsigned int bytes, uint16_t type, uint16_t out)
{
	struct rte_mbuf *m = frame_next(1, out);
	const uint8_t *eth;

	assert_non_null(m);
	eth = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(m->pkt_len, L2_LEN + bytes);
	assert_int_equal(m->data_len, L2_LEN + bytes);
	assert_int_equal(m->nb_segs, 1);
	assert_memory_equal(eth, out == LAN ? lan_peer : wan_peer, 6);
	assert_memory_equal(eth + 6, out == LAN ? lan_mac : wan_mac, 6);
	assert_int_equal(get_be16(eth + 12), type);
	return m;
}

/* Check the packet of inner_write() at `ip`: its TTL, its checksum, its end. */
static inline void
packet_is(const uint8_t *ip, uint8_t family, unsigned int len, uint8_t ttl)
{
	assert_int_equal(ip[0] >> 4, family);
	assert_int_equal(ip[family == 4 ? 8 : 7], ttl);
	assert_int_equal(family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4), len);
	assert_int_equal(ip[len - 1], 0x77);
	if (family == 4)
		assert_true(ip4_checksum_ok(ip, 20));
}

/*
 * Assert the counters: one drop for `reason` and no other drop (N_REASON: none at all), the
 * packets that were forwarded, the ICMP errors that were sent.
 */
static inline void
counted(uint16_t reason, unsigned int forwarded4, unsigned int forwarded6,
	unsigned int icmp)
{
	for (unsigned int r = 0; r < N_REASON; r++)
		assert_int_equal(count.reason[r], r == reason);
	assert_int_equal(count.forwarded[0], forwarded4);
	assert_int_equal(count.forwarded[1], forwarded6);
	assert_int_equal(count.icmp_sent, icmp);
	assert_int_equal(count.icmp_limited, 0);
	assert_null(frame_next(0, 0));
	assert_null(frame_next(1, 0));
	memset(count.reason, 0, sizeof(count.reason));
	memset(count.forwarded, 0, sizeof(count.forwarded));
	count.icmp_sent = 0;
}

/* Take the ICMP error of LAN's address to the sender; check its type, code and argument. */
static inline void
error_left(uint8_t family, uint8_t type, uint8_t code, uint32_t arg)
{
	struct rte_mbuf *m = frame_next(1, LAN);
	const uint8_t *ip;

	assert_non_null(m);
	ip = l3_of(m);
	assert_int_equal(ip[0] >> 4, family);
	assert_int_equal(ip[family == 4 ? 9 : 6], family == 4 ? 1 : 58);
	assert_int_equal(ip[family == 4 ? 8 : 7], 64);
	if (family == 4) {
		assert_int_equal(get_be32(ip + 12), fib->iface[LAN]->src4);
		assert_int_equal(get_be32(ip + 16), BACK4);
	} else {
		assert_memory_equal(ip + 8, fib->iface[LAN]->src6.octet, 16);
		assert_memory_equal(ip + 24, back6, 16);
	}
	ip += family == 4 ? 20 : 40;
	assert_int_equal(ip[0], type);
	assert_int_equal(ip[1], code);
	assert_int_equal(get_be32(ip + 4), arg);
	rte_pktmbuf_free(m);
}

static inline void
forward(struct rte_mbuf *m)
{
	punt_forward(&p, m, packet_meta(m)->family, false, true);
}

/* Forward a packet as one of this host. */
static inline void
originate(struct rte_mbuf *m)
{
	packet_meta(m)->in_ifidx = 0;
	punt_forward(&p, m, packet_meta(m)->family, true, true);
}

/* A test on this bed. */
#define PUNT_TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)

static inline int
eal_up(const char *name)
{
	log_set_level(LOG_LEVEL_ERROR);
	if (eal_begin(name, "net_null0", "net_null1") < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("punt", BUFFERS, 0, PACKET_PRIV_BYTES,
				       RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	for (unsigned int i = 0; i < 2; i++) {
		rings[i].inject = rte_ring_create(i == 0 ? "inject0" : "inject1", 64,
						  SOCKET_ID_ANY, 0);
		rings[i].idle = &idles[i];
		if (rings[i].inject == NULL)
			return -1;
	}
	return pool != NULL ? 0 : -1;
}

static inline int
all_down(void **state)
{
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}

#endif
