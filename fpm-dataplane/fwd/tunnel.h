/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel: the stages for packets that go into tunnels, or come out of them.
 *
 * Private to fwd/. The functions read the packet and write the burst.           [fwd-n]
 */
#ifndef FWD_TUNNEL_H
#define FWD_TUNNEL_H

#include "fib/tunnel.h"
#include "fwd/burst.h"

/* Find the tunnel of a packet of the burst to this host, as fib_tunnel_find() does. */
static inline bool
fwd_tunnel_find(struct burst *b, const uint8_t *ip, uint8_t family, unsigned int room,
		struct fib_tunnel_found *found)
{
	return fib_tunnel_find(b->fwd->fib, b->in->vrf, b->in->ifindex, family, ip, room,
			       &b->fwd->found, found);
}

/*
 * Adjacency stage: if a packet to this host is the outer packet of a tunnel, let the inner
 * packet pass the stages as received by the tunnel, and return true. Only the ECN field of
 * the inner packet changes in the frame, because the kernel gets the whole frame if the
 * inner packet is for this host. A frame with labels inside loses its padding, because
 * labels have no length of their own.
 */
bool fwd_tunnel_decap(struct burst *b, unsigned int i);

/* Return true if a packet to this host may be the outer packet of a tunnel. */
static inline bool
burst_may_decap(const struct burst *b, unsigned int i)
{
	return tunnel_proto(burst_l3(b, i)[b->family[i] == 4 ? 9 : 6]) &&
	       atomic_load_explicit(&b->fwd->fib->tunnels, memory_order_relaxed) != NULL;
}

/*
 * Return true if the header checksum of an outer packet is right. IPv4: verify it by
 * software, because the port may have verified the inner packet instead. If the port
 * verifies no checksums, the parse stage has done so by software.
 */
static inline bool
burst_outer_is_right(const struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);

	return !b->rx_cksum || b->family[i] != 4 || ip4_checksum_ok(ip, (ip[0] & 15u) * 4);
}

/*
 * Decapsulate a packet: its inner packet, at offset `at`, passes the stages next as
 * received by `ifidx`.
 */
static inline void
burst_open(struct burst *b, unsigned int i, unsigned int at, uint16_t ifidx)
{
	if (!b->inside)
		packet_meta(b->m[i])->outer_ifidx = b->ifidx;
	b->verdict[i] = VERDICT_DECAPSULATED;
	/*
	 * The offset at which a frame of the inner packet would begin, and its interface.
	 */
	b->hop[i] =
		(uint64_t)(burst_l3(b, i) + at - L2_LEN - burst_frame(b, i)) << 16 | ifidx;
}

/* Return the description of a decapsulated packet of a burst. */
struct fwd_decap fwd_decap_of(const struct burst *b, unsigned int i);

/*
 * Call this before a packet is added to f->decap[]. Sets f->decap_differs if the packet has
 * another tunnel or lookup than the first packet there.
 */
static inline void
fwd_decap_compare(struct fwd *f, const struct fwd_decap *decap)
{
	const struct fwd_decap *first = &f->decap[0];

	if (f->n_decap == 0)
		f->decap_differs = false;
	else
		f->decap_differs |=
			((decap->ifidx ^ first->ifidx) | (decap->vrf ^ first->vrf) |
			 (decap->path ^ first->path) | (decap->by_sid ^ first->by_sid) |
			 (decap->labels_at ^ first->labels_at) |
			 (decap->counted ^ first->counted)) != 0;
}

/* Dispatch stage: add a decapsulated packet of this burst to f->decap[]. */
void fwd_tunnel_keep(struct burst *b, unsigned int i);

/*
 * Begin a burst with decap[0] and the packets that have the same tunnel and the same
 * lookup. Move the other packets to the start of decap[], and return their number.
 */
unsigned int fwd_tunnel_enter(struct fwd *f, struct burst *b, struct fwd_decap *decap,
			      unsigned int n);
/*
 * Begin a burst with all packets of f->decap[], which have the same tunnel and lookup.
 * f->decap[] is empty afterwards.
 */
void fwd_tunnel_enter_all(struct fwd *f, struct burst *b);
/*
 * Begin a burst with packets of several interfaces that the fast path can handle together:
 * packets of decap[0]'s interface, and of interfaces like it. Return false if no such burst
 * is possible. from[]: the index in decap[] of each packet of the burst. The caller counts
 * the packets as received.
 */
bool fwd_tunnel_join(struct fwd *f, struct burst *b, const struct fwd_decap *decap,
		     unsigned int n, uint8_t *from);
/*
 * Restore packet `i`, with buffer `m`, of a burst of fwd_tunnel_join() after the fast path
 * has refused it. Return the offset at which its frame begins now, for struct fwd_decap.
 */
uint16_t fwd_tunnel_leave(struct burst *b, unsigned int i, const struct rte_mbuf *m);
/*
 * Let the buffer begin with a frame of the inner packet, whose MAC addresses are zero, so
 * that a record can copy it. fwd_tunnel_hide() restores the outer frame.
 */
void fwd_tunnel_show(struct burst *b, unsigned int i, uint8_t was[L2_LEN]);
void fwd_tunnel_hide(struct burst *b, unsigned int i, const uint8_t was[L2_LEN]);

/*
 * Cut the outer headers off an inner packet without labels, and write an Ethernet header
 * before it.
 */
void fwd_tunnel_cut(struct burst *b, unsigned int i);

/* Look up the path into a tunnel. */
void fwd_outer_find(struct fwd *f, uint16_t ifidx, uint8_t ds, struct fwd_outer *w);

/*
 * Return the path into a tunnel of packets with the DS field `ds`, whose ECN bits are 0.
 * The path is looked up once between two quiescent states, or a few times if there are
 * packets for many tunnels, or if rules concern outer packets that inherit the TOS. The
 * result is valid until the next call.
 */
static inline const struct fwd_outer *
fwd_outer_of(struct fwd *f, uint16_t ifidx, uint8_t ds)
{
	struct fwd_outer *w = &f->outer[ifidx % FWD_OUTERS];

	if (__builtin_expect(w->ifidx != ifidx || w->epoch != f->outer_epoch ||
				     (w->outer.by_ds && w->ds != ds),
			     0))
		fwd_outer_find(f, ifidx, ds, w);
	return w;
}

/* Return the path of packet `i` into a tunnel. The lookup ignores the ECN bits. */
static inline const struct fwd_outer *
fwd_outer_into(const struct burst *b, unsigned int i, uint16_t ifidx)
{
	return fwd_outer_of(b->fwd, ifidx,
			    ip_dsfield(burst_l3(b, i), b->family[i]) & (uint8_t)~ECN_MASK);
}

/*
 * Return true if the kernel gets the next packet into a tunnel, because of an ICMP error
 * about an outer packet. `explain` leaves the error to a real packet.
 */
static inline bool
fwd_outer_take_told(const struct fwd *f, const struct fwd_outer *w)
{
	return w->told && (f->explains || fib_tunnel_take_told(f->fib, &w->outer));
}

/* Return the hop of the neighbor of an outer packet; 0: it is not resolved. */
static inline uint64_t
fwd_outer_hop(const struct fwd *f, const struct fwd_outer *w)
{
	if (w->out == NULL || path_kind(w->outer.path) != PATH_ADJ)
		return 0;
	return atomic_load_explicit(&f->fib->adj[path_index(w->outer.path)].hop,
				    memory_order_acquire);
}

/*
 * Drop or punt packet `i`, whose outer packet cannot be sent. The sender of packet `i` gets
 * an ICMP error if routers report `reason` (RFC 2473, section 8).
 */
void fwd_outer_refuse(struct burst *b, unsigned int i, enum reason reason);

/*
 * Write the MAC addresses and tags of an outer packet, with which the buffer begins. `hop`:
 * fwd_outer_hop().
 */
void fwd_outer_frame(struct burst *b, unsigned int i, const struct fwd_outer *w,
		     uint64_t hop);

/*
 * Adjacency stage: find the path of the outer packet, if the route of the packet is a
 * tunnel. Return NULL if the packet got a drop or punt reason. Valid until the next packet.
 */
const struct fib_tunnel_outer *fwd_tunnel_outer(struct burst *b, unsigned int i);
/* Rewrite stage: write the outer headers. */
void fwd_tunnel_rewrite(struct burst *b, unsigned int i);

/*
 * The stages for usual packets (tunnel_fast.c): packets without an error, whose outer
 * packet goes to a resolved neighbor on a port, in a frame without tags.
 *
 * fwd_tunnel_fast_parse() sets fast4 and fast6 of packets that came out of a tunnel.
 * fwd_tunnel_fast_adjacency() returns a bit for each fast-path packet of `odd` that goes
 * into a tunnel. The paths of all packets of `odd` are PATH_ONLINK.
 * fwd_tunnel_fast_rewrite() writes the headers of the packets of `which`, also of packets
 * that get an outer header by outer_fast.c, and returns a bit for each unusual packet,
 * which is not written. fwd_tunnel_fast_cut() does fwd_tunnel_cut() for the fast path.
 */
void fwd_tunnel_fast_parse(struct burst *b);
uint64_t fwd_tunnel_fast_adjacency(struct burst *b, uint64_t odd);
uint64_t fwd_tunnel_fast_rewrite(struct burst *b, uint64_t which);
void fwd_tunnel_fast_cut(struct burst *b);

/* Count a packet of `len` octets for the tunnels that it goes into. */
static inline void
tunnel_count_sent(struct fwd *f, const struct fib_tunnel_outer *outer, unsigned int len)
{
	for (unsigned int k = 0; k < outer->n; k++) {
		struct if_counters *c = &f->count->port[outer->tunnel[k]->ifidx];

		counter_add(&c->tx_packets, 1);
		counter_add(&c->tx_bytes, len);
		len += outer->tunnel[k]->tunnel.bytes;
	}
}

/*
 * Return true if the packet leaves by a tunnel: the hop names the tunnel and no MAC. A
 * neighbor on another link may have the MAC 00:00:00:00:00:00, too.
 */
static inline bool
burst_leaves_by_tunnel(const struct burst *b, unsigned int i)
{
	const struct fib_iface *out;

	if (b->hop[i] >> 16 != 0)
		return false;
	out = fib_iface(b->fwd->fib, (unsigned int)b->hop[i]);
	return out == NULL || out->tunnel.family != 0 || out->vxlan.family != 0;
}

#endif
