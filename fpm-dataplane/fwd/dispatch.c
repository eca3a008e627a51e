/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Last stage: every packet of the burst goes to a transmit buffer, a punt ring, or is
 * freed; each leaves exactly one mark in the counters.                           [fwd-n]
 */
#include "fwd/burst.h"
#include "fwd/cycles.h"
#include "fwd/plain.h"
#include "fwd/watch.h"
#include "port/vlan.h"

/* The frames of a buffer, noted before it is sent: a sent frame is no longer ours. */
struct vlan_frames {
	uint32_t differ;              /* in m->port; 0: all leave by frame[0]'s */
	uint32_t frame[TX_BURST_MAX]; /* octets * IFIDX_MAX + ifidx */
};
static_assert((UINT16_MAX + L2_LEN + VLAN_TAGS * VLAN_BYTES) <= UINT32_MAX / IFIDX_MAX,
	      "the longest frame fits");

/* Returns the octets of all. */
static uint64_t
note_vlans(const struct tx_buffer *tx, uint16_t port, struct vlan_frames *v)
{
	uint16_t first = tx->m[0]->port, differ = 0;
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < tx->n; i++) {
		differ |= tx->m[i]->port ^ first;
		bytes += rte_pktmbuf_pkt_len(tx->m[i]);
	}
	for (uint16_t i = 0; tx->has_inserts && i < tx->n; i++)
		bytes += vlan_sent_bytes(tx->m[i]) - rte_pktmbuf_pkt_len(tx->m[i]);
	v->differ = differ;
	v->frame[0] = tx_ifidx(tx->m[0], port);
	for (uint16_t i = 0; differ != 0 && i < tx->n; i++)
		v->frame[i] =
			vlan_sent_bytes(tx->m[i]) * IFIDX_MAX + tx_ifidx(tx->m[i], port);
	return bytes;
}

/* Frames of a VLAN; a port's own are counted. */
static inline void
count_vlan(struct fwd *f, uint16_t ifidx, uint64_t n, uint64_t bytes)
{
	struct if_counters *c = &f->count->port[ifidx];

	if (ifidx < PORT_MAX)
		return;
	counter_add(&c->tx_packets, n);
	counter_add(&c->tx_bytes, bytes);
}

/* The first `n`, of `bytes` octets, have left. */
static void
count_vlans(struct fwd *f, const struct vlan_frames *v, uint16_t n, uint64_t bytes)
{
	if (v->differ == 0)
		count_vlan(f, v->frame[0] % IFIDX_MAX, n, bytes);
	for (uint16_t i = 0; v->differ != 0 && i < n; i++)
		count_vlan(f, v->frame[i] % IFIDX_MAX, 1, v->frame[i] / IFIDX_MAX);
}

/* All in the buffer leave by one VLAN; from here on each says so, for others come. */
static __attribute__((noinline)) void
say_vlans(struct tx_buffer *tx)
{
	for (uint16_t i = 0; i < tx->n; i++)
		tx->m[i]->port = tx->vlan;
	tx->has_vlans |= tx->n > 0;
	tx->vlan = 0;
}

static void
flush_one(struct fwd *f, uint16_t ifidx)
{
	struct tx_buffer *tx = &f->tx[ifidx];
	struct if_counters *c = &f->count->port[ifidx];
	struct vlan_frames vlans;
	uint64_t begin_tsc, bytes = 0;
	bool has_vlans;
	uint16_t sent;

	if (tx->vlan != 0 && fwd_watched(f))
		say_vlans(tx);
	has_vlans = tx->has_vlans;
	if (has_vlans)
		bytes = note_vlans(tx, ifidx, &vlans);
	else
		for (uint16_t i = 0; i < tx->n; i++)
			bytes += rte_pktmbuf_pkt_len(tx->m[i]);
	begin_tsc = cycles_send(f);
	if (fwd_watched(f))
		sent = fwd_send_watched(f, ifidx, tx);
	else
		sent = fwd_send(f, tx);
	cycles_sent(f, begin_tsc);
	/* Only what was not sent is still ours to look at. */
	for (uint16_t i = sent; i < tx->n; i++)
		bytes -= vlan_sent_bytes(tx->m[i]);
	counter_add(&c->tx_packets, sent);
	counter_add(&c->tx_bytes, bytes);
	if (has_vlans)
		count_vlans(f, &vlans, sent, bytes);
	else if (tx->vlan != 0)
		count_vlan(f, tx->vlan, sent, bytes);
	if (sent < tx->n) {
		rte_pktmbuf_free_bulk(tx->m + sent, tx->n - sent);
		counter_add(&f->count->reason[DROP_tx_full], tx->n - sent);
	}
	tx->n = 0;
	tx->vlan = 0;
	tx->has_vlans = tx->has_inserts = false;
}

static void
list(struct fwd *f, uint16_t ifidx)
{
	struct tx_buffer *tx = &f->tx[ifidx];

	if (tx->listed)
		return;
	tx->listed = true;
	tx->port_id = fib_iface(f->fib, ifidx)->port_id;
	f->tx_used[f->n_tx_used++] = ifidx;
}

static inline void
put(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	struct tx_buffer *tx = &f->tx[ifidx];
	uint16_t n = tx->n;

	if (n == 0)
		list(f, ifidx);
	if (tx->vlan != 0)
		say_vlans(tx);
	tx->m[n++] = m;
	tx->n = n;
	if (n == f->tx_burst)
		flush_one(f, ifidx);
}

/* A frame of a VLAN, into the buffer of its port. */
static void
put_vlan(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	uint16_t port = fib_iface(f->fib, ifidx)->port;

	m->port = ifidx; /* see tx_ifidx() */
	f->tx[port].has_vlans = true;
	f->tx[port].has_inserts |= (m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0;
	put(f, port, m);
}

static inline void
put_any(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	if (ifidx >= PORT_MAX)
		put_vlan(f, ifidx, m);
	else
		put(f, ifidx, m);
}

bool
fwd_tx_vlan(struct fwd *f, uint16_t port, uint16_t vlan)
{
	struct tx_buffer *tx = &f->tx[port];

	if (tx->vlan == vlan)
		return true;
	if (tx->n == 0) {
		tx->vlan = vlan;
		return true;
	}
	if (tx->vlan != 0)
		say_vlans(tx);
	tx->has_vlans |= vlan != 0;
	return vlan == 0;
}

struct rte_mbuf **
fwd_tx_room(struct fwd *f, uint16_t ifidx, unsigned int n)
{
	struct tx_buffer *tx = &f->tx[ifidx];
	unsigned int at = tx->n;

	if (at + n > f->tx_burst)
		return NULL;
	if (at == 0)
		list(f, ifidx);
	tx->n = (uint16_t)(at + n);
	return tx->m + at;
}

void
fwd_tx_full(struct fwd *f, uint16_t ifidx)
{
	if (f->tx[ifidx].n == f->tx_burst)
		flush_one(f, ifidx);
}

void
fwd_tx(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	put_any(f, ifidx, m);
}

void
fwd_tx_flush(struct fwd *f)
{
	for (uint16_t i = 0; i < f->n_tx_used; i++) {
		struct tx_buffer *tx = &f->tx[f->tx_used[i]];

		if (tx->n > 0)
			flush_one(f, f->tx_used[i]);
		tx->listed = false;
	}
	f->n_tx_used = 0;
}

/* A packet of the burst is dropped; and counted for its VRF, which those that leave are not. */
static void
count_drop(const struct burst *b, enum reason reason)
{
	counter_add(&b->fwd->count->reason[reason], 1);
	if (b->in != NULL)
		counter_vrf_drop(b->fwd->count, b->in->vrf);
}

/*
 * Hand a packet to the punt thread, if its class lets it. What does not pass is dropped for
 * its own cause when an ICMP error was wanted: then the error is what was withheld.
 */
static void
punt(struct burst *b, unsigned int i, enum reason reason)
{
	struct fwd *f = b->fwd;
	struct packet_meta *meta = packet_meta(b->m[i]);
	enum punt_class class = fwd_class(b, i, reason);
	bool icmp = reason == PUNT_ttl_expired || reason == PUNT_unreach;
	enum reason drop = DROP_policed;

	if (icmp)
		count_drop(b, b->cause[i]);
	if (fwd_police(b, i, class)) {
		meta->reason = (uint8_t)reason;
		meta->class = (uint8_t) class;
		meta->cause = b->cause[i];
		meta->family = b->family[i];
		meta->in_ifidx = b->ifidx;
		meta->vrf = b->in->vrf;
		meta->path = b->path[i];
		/* Counted before the punt thread can have it: whoever sees what comes of a
		 * packet finds it in the counters. A ring with room keeps it: no other fills it. */
		if (ring_has_room(f->conf->rings.punt[class])) {
			counter_add(&f->count->reason[reason], 1);
			counter_add(&f->count->class[class].passed, 1);
			rte_ring_sp_enqueue(f->conf->rings.punt[class], b->m[i]);
			f->n_gleaned += class == CLASS_glean;
			f->wake_punt = true;
			return;
		}
		counter_add(&f->count->class[class].ring_full, 1);
		drop = DROP_punt_ring_full;
	}
	if (reason == PUNT_too_big && class != CLASS_cut) {
		count_drop(b, DROP_mtu);
		icmp = true;
	}
	if (icmp)
		counter_add(&f->count->icmp_limited, 1);
	else
		count_drop(b, drop);
	if (fwd_watched(f))
		watch_lost(f->conf->watch_ring, f->watch, b->ifidx, b->m[i], drop);
	rte_pktmbuf_free(b->m[i]);
}

static uint64_t
one_by_one(struct burst *b)
{
	return burst_all(b);
}

static uint64_t (*spread)(struct burst *b) = one_by_one;

/* Before main, so that nobody can come too early. */
__attribute__((constructor)) static void
choose(void)
{
	if (fwd_has_avx512())
		spread = fwd_spread_avx512;
}

void
fwd_dispatch(struct burst *b)
{
	struct fwd *f = b->fwd;
	uint64_t plain = b->plain4 | b->plain6;
	unsigned int n4 = (unsigned int)__builtin_popcountll(b->plain4);
	unsigned int n6 = (unsigned int)__builtin_popcountll(b->plain6);

	unsigned int n = b->n;

	if (plain == burst_all(b)) {
		for (uint64_t rest = spread(b); rest != 0; rest &= rest - 1) {
			unsigned int i = (unsigned int)__builtin_ctzll(rest);

			put_any(f, b->hop[i] & 0xffff, b->m[i]);
		}
		n = 0;
	}
	/* In the order of arrival, plain or not. */
	for (unsigned int i = 0; i < n; i++) {
		if (b->verdict[i] < N_DROP) {
			count_drop(b, b->verdict[i]);
			rte_pktmbuf_free(b->m[i]);
		} else if (b->verdict[i] != VERDICT_GO) {
			punt(b, i, b->verdict[i]);
		} else {
			put_any(f, b->hop[i] & 0xffff, b->m[i]);
			if ((plain >> i & 1) == 0) {
				n4 += b->family[i] == 4;
				n6 += b->family[i] == 6;
			}
		}
	}
	counter_add(&f->count->forwarded[0], n4);
	counter_add(&f->count->forwarded[1], n6);
}

/* Only those of `keep` stay, all of them plain and rewritten, in order. */
static void
keep_plain(struct burst *b, uint64_t keep)
{
	unsigned int n = 0;

	for (uint64_t rest = keep; rest != 0; rest &= rest - 1, n++) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		b->m[n] = b->m[i];
		b->hop[n] = b->hop[i];
		b->way[n] = b->way[i];
	}
	b->n = (uint16_t)n;
	n = (unsigned int)__builtin_popcountll(b->plain4);
	b->plain4 = n == 64 ? UINT64_MAX : (1ull << n) - 1;
	b->plain6 = burst_all(b) & ~b->plain4;
}

uint64_t
fwd_dispatch_plain(struct burst *b)
{
	uint64_t left = burst_all(b) & ~(b->plain4 | b->plain6);

	if (left != 0)
		keep_plain(b, b->plain4 | b->plain6);
	fwd_dispatch(b);
	return left;
}
