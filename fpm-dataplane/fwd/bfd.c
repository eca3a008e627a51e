/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bfd: send the packets of BFD sessions, and note received packets that change no session.
 * A forwarder does both without another thread, so a session stays up while other threads
 * get no CPU time. Packets that change a session go to thread bfd.                  [fwd-n]
 *
 * Tried with no gain that could be measured, with 1,000 sessions on Zen 4: a heap of times
 * whose nodes have four children in one cache line, beats in fewer cache lines, and a look
 * at the clock each 50 us.
 */
#include "fwd/bfd.h"

#include "base/clock.h"
#include "base/inet.h"
#include "base/peers.h"
#include "base/sched.h"
#include "fib/rules.h"
#include "fwd/label.h"
#include "fwd/tx.h"
#include "fwd/watch.h"
#include "port/vlan_tags.h"

#define SENDS_PER_ROUND 32 /* limits how long received packets wait */

/* --- sending -------------------------------------------------------------------------- */

/* Return the ticks until the next packet: RFC 5880, 6.8.7. */
static uint64_t
gap_draw(struct bfd_pace *p, const struct bfd_beat *beat)
{
	uint64_t spread = beat->most_us - beat->least_us + 1;

	/* xorshift64*: Marsaglia 2003, Vigna 2016 */
	p->random ^= p->random >> 12;
	p->random ^= p->random << 25;
	p->random ^= p->random >> 27;
	return (beat->least_us +
		((p->random * 0x2545f4914f6cdd1dull >> 32) * spread >> 32)) *
	       p->ticks_us;
}

/* Find the path of a BFD packet that this host sends. */
static fib_path
outer_find(struct fwd *f, const struct bfd_beat *beat)
{
	if (beat->ifidx != 0)
		return fib_onlink(f->fib, beat->ifidx, beat->family, &beat->remote);
	return fib_resolve_packet(f->fib, NULL, beat->vrf, beat->family, beat->packet,
				  beat->n);
}

/*
 * Give a BFD packet of this host to the punt thread, which finds its neighbor, or sends it
 * by the kernel or with labels. Returns false if there is no room for it.
 */
static bool
packet_hand_over(struct fwd *f, struct rte_mbuf *m, const struct bfd_beat *beat)
{
	struct class_counters *count = &f->count->class[CLASS_glean];

	*packet_meta(m) = (struct packet_meta){.reason = PUNT_unresolved,
					       .family = beat->family,
					       .vrf = beat->vrf,
					       .on_link = beat->ifidx != 0,
					       .out_ifidx = beat->ifidx};
	if (!ring_has_room(f->conf->rings.punt[CLASS_glean])) {
		counter_add(&count->ring_full, 1);
		counter_add(&f->count->reason[DROP_punt_ring_full], 1);
		rte_pktmbuf_free(m);
		return false;
	}
	counter_add(&count->passed, 1);
	rte_ring_sp_enqueue(f->conf->rings.punt[CLASS_glean], m);
	f->n_gleaned++;
	f->wake_punt = true;
	return true;
}

static void
sent_count(struct bfd_slot *s)
{
	atomic_store_explicit(&s->n_sent,
			      atomic_load_explicit(&s->n_sent, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static void
slot_send(struct fwd *f, struct bfd_slot *s, const struct bfd_beat *beat,
	  const uint8_t *packet)
{
	struct rte_mbuf *m = bfd_buffer(f->conf->bfd);
	fib_path path = outer_find(f, beat);
	uint32_t adj = path_kind(path) == PATH_ADJ ? path_index(path) : 0;
	uint64_t hop = atomic_load_explicit(&f->fib->adj[adj].hop, memory_order_acquire),
		 mac;
	const struct fib_iface *out = fib_iface(f->fib, hop & 0xffff);
	uint8_t *eth;

	if (m == NULL) {
		counter_add(&f->count->reason[DROP_no_mbuf], 1);
		return;
	}
	m->data_len = (uint16_t)(L2_LEN + beat->n);
	m->pkt_len = m->data_len;
	eth = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(eth + L2_LEN, packet, beat->n);
	put_be16(eth + 12, beat->family == 4 ? 0x0800 : 0x86dd);
	/*
	 * An echo packet has our own address as destination, so the kernel cannot resolve
	 * the neighbor by it. Only control packets make the kernel resolve the neighbor.
	 */
	if (hop == 0 && beat->port == BFD_PORT_ECHO) {
		counter_add(&f->count->reason[DROP_neigh_failed], 1);
		rte_pktmbuf_free(m);
		return;
	}
	if (hop == 0) {
		if (packet_hand_over(f, m, beat))
			sent_count(s);
		return;
	}
	if (out == NULL || !out->up) {
		counter_add(&f->count->reason[DROP_egress_down], 1);
		rte_pktmbuf_free(m);
		return;
	}
	fib_adj_touch(f->adj_used, adj);
	eth = vlan_push(m, out);
	mac = __builtin_bswap64(hop);
	memcpy(eth, &mac, 6);
	memcpy(eth + 6, out->mac, 6);
	fwd_tx(f, out->ifidx, m);
	sent_count(s);
}

/* Take over a slot that has changed. */
static void
slot_renew(struct fwd *f, uint32_t number, uint64_t now)
{
	struct bfd_pace *p = f->conf->bfd;
	struct bfd_slot *s = &p->table->slot[number];
	const struct bfd_beat *beat = bfd_beat(s);
	uint64_t was = due_when(&p->due, number), next;

	if (beat != NULL && beat->has_first)
		slot_send(f, s, beat, beat->first);
	/*
	 * A neighbor that wants no periodic packets still gets a packet about each change.
	 */
	if (beat != NULL && beat->most_us == 0 && beat->at_once)
		slot_send(f, s, beat, beat->packet);
	if (beat == NULL || beat->most_us == 0) {
		due_set(&p->due, number, DUE_NEVER);
		return;
	}
	next = beat->at_once ? now : now + gap_draw(p, beat);
	due_set(&p->due, number, was < next ? was : next);
}

static void
slots_renew(struct fwd *f, uint64_t now)
{
	struct bfd_pace *p = f->conf->bfd;
	uint32_t end;

	/* Acquire: the slots are at least as new as the epoch. */
	p->epoch = atomic_load_explicit(&p->table->epoch, memory_order_acquire);
	end = atomic_load_explicit(&p->table->end, memory_order_relaxed);
	for (uint32_t i = p->index; i < end; i += p->n_fwd) {
		struct bfd_slot *s = &p->table->slot[i];
		uint32_t version = atomic_load_explicit(&s->version, memory_order_acquire);

		if (version == atomic_load_explicit(&s->taken, memory_order_relaxed))
			continue;
		slot_renew(f, i, now);
		atomic_store_explicit(&s->taken, version, memory_order_relaxed);
	}
}

void
fwd_bfd_send(struct fwd *f)
{
	struct bfd_pace *p = f->conf->bfd;
	uint64_t now = rte_rdtsc();

	if (atomic_load_explicit(&p->table->epoch, memory_order_relaxed) != p->epoch)
		slots_renew(f, now);
	for (unsigned int n = 0; n < SENDS_PER_ROUND && due_first(&p->due) <= now; n++) {
		uint32_t number = p->due.heap[0];
		struct bfd_slot *s = &p->table->slot[number];
		const struct bfd_beat *beat = bfd_beat(s);

		if (beat == NULL || beat->most_us == 0) {
			due_set(&p->due, number, DUE_NEVER);
			continue;
		}
		slot_send(f, s, beat, beat->packet);
		due_set(&p->due, number, now + gap_draw(p, beat));
	}
	p->next = due_first(&p->due);
}

/* --- the priority of thread bfd ------------------------------------------------------- */

void
fwd_bfd_begin(struct fwd *f)
{
	struct bfd_pace *p = f->conf->bfd;

	sched_short_slice();
	atomic_store_explicit(&p->table->loan[p->index].tid, rte_sys_gettid(),
			      memory_order_relaxed);
}

void
fwd_bfd_end(struct fwd *f)
{
	struct bfd_pace *p = f->conf->bfd;

	atomic_store_explicit(&p->table->loan[p->index].tid, 0, memory_order_relaxed);
}

void
fwd_bfd_give_back(struct fwd *f)
{
	struct bfd_pace *p = f->conf->bfd;

	/*
	 * Clear `lent` first, because thread bfd may lend its priority again at any time.
	 */
	atomic_store_explicit(&p->table->loan[p->index].lent, false, memory_order_relaxed);
	sched_short_slice_again();
}

/* --- receiving ------------------------------------------------------------------------ */

struct view {
	const uint8_t *src, *dst; /* addresses, network order */
	const uint8_t *bfd;       /* the payload of UDP */
	unsigned int n;           /* octets of `bfd` */
	uint16_t port;
	uint8_t family, ttl;
};

/* Find the parts of a packet. Returns false if it is not BFD. */
static bool
bfd_find(const struct burst *b, unsigned int i, struct view *v)
{
	const uint8_t *ip = burst_l3(b, i), *udp;
	unsigned int room = burst_l3_room(b, i), off;

	v->family = b->family[i];
	off = v->family == 4 ? (ip[0] & 15u) * 4 : 40;
	if (room < off + 8 || (v->family == 4 ? ip[9] : ip[6]) != 17 ||
	    (v->family == 4 && (get_be16(ip + 6) & 0x3fff) != 0))
		return false;
	udp = ip + off;
	v->port = get_be16(udp + 2);
	if (v->port != BFD_PORT && v->port != BFD_PORT_MULTI && v->port != BFD_PORT_ECHO)
		return false;
	v->src = v->family == 4 ? ip + 12 : ip + 8;
	v->dst = v->src + family_octets(v->family);
	v->ttl = v->family == 4 ? ip[8] : ip[7];
	v->bfd = udp + 8;
	v->n = get_be16(udp + 4);
	v->n = v->n < 8 ? 0 : v->n - 8;
	if (v->n > room - off - 8)
		v->n = room - off - 8;
	return true;
}

/*
 * Return true for a packet of a session of one hop by a bridge, bond or team, which thread
 * bfd serves by sockets. The session of a packet over several hops does not depend on the
 * interface, but on the VRF, and the sockets receive from no VRF.
 */
static bool
is_for_sockets(const struct burst *b, const struct view *v)
{
	return b->in->member && v->port != BFD_PORT_MULTI;
}

/* Note a packet that changes no session. Returns false for every other packet. */
static bool
bfd_note(const struct burst *b, const struct view *v)
{
	unsigned int octets = family_octets(v->family);
	const struct bfd_beat *beat;
	struct bfd_slot *s;

	if (v->n != BFD_OCTETS)
		return false;
	s = &b->fwd->conf->bfd->table
		     ->slot[get_be32(v->bfd + BFD_YOUR_DISCR) & (BFD_SLOTS - 1)];
	beat = bfd_beat(s);
	if (beat == NULL || !beat->expects || beat->port != v->port ||
	    beat->family != v->family || v->ttl < beat->ttl_least ||
	    beat->vrf != b->in->vrf || (beat->ifidx != 0 && beat->ifidx != b->ifidx) ||
	    memcmp(beat->expect, v->bfd, BFD_OCTETS) != 0 ||
	    memcmp(beat->local.octet, v->dst, octets) != 0 ||
	    memcmp(v->port == BFD_PORT_ECHO ? beat->local.octet : beat->remote.octet,
		   v->src, octets) != 0)
		return false;
	atomic_store_explicit(&s->heard_ns, monotonic_ns(), memory_order_relaxed);
	atomic_fetch_add_explicit(&s->n_heard, 1, memory_order_relaxed);
	return true;
}

/* Return true if the packet names a session with its sender. */
static bool
names_session(const struct burst *b, const struct view *v)
{
	const struct bfd_beat *beat;

	if (v->n < BFD_OCTETS)
		return false;
	beat = bfd_beat(&b->fwd->conf->bfd->table->slot[get_be32(v->bfd + BFD_YOUR_DISCR) &
							(BFD_SLOTS - 1)]);
	return beat != NULL && beat->port == v->port && beat->family == v->family &&
	       memcmp(beat->remote.octet, v->src, family_octets(v->family)) == 0;
}

/* Return the reason to drop a packet; N_DROP: it may belong to a session. */
static enum reason
bfd_refusal(struct burst *b, const struct view *v)
{
	uint64_t seed = seed_of(b->fwd->fib->seed, b->in->vrf);

	/*
	 * RFC 5881, 5: TTL 255 proves that no router has forwarded the packet. An echo
	 * packet may have 254, because the peer has forwarded it once.
	 */
	if ((v->port == BFD_PORT && v->ttl != 255) ||
	    (v->port == BFD_PORT_ECHO && v->ttl < 254))
		return DROP_bfd_bad;
	/*
	 * If there are very many peers, peers_know() forgets some: look at the sessions,
	 * too.
	 */
	if (!names_session(b, v) &&
	    !peers_know(PEER_BFD, peer_addr_key(v->src, v->family, 0, seed),
			policer_seconds(burst_now(b))))
		return DROP_bfd_no_session;
	return N_DROP;
}

/*
 * Return true for an echo packet of a peer that is addressed to this router. By RFC 5881,
 * 4, the destination makes this router forward the packet back, so most senders use their
 * own address. But bfdd sends an echo packet of IPv6 to the address of its peer, whose bfdd
 * returns it.
 */
static bool
echo_is_of_peer(const struct burst *b, unsigned int i, const struct view *v)
{
	return v->port == BFD_PORT_ECHO && v->ttl == 255 && !burst_has_labels(b, i) &&
	       memcmp(v->src, v->dst, family_octets(v->family)) != 0;
}

static void
octets_swap(uint8_t *a, uint8_t *b, unsigned int n)
{
	uint8_t was[16];

	memcpy(was, a, n);
	memcpy(a, b, n);
	memcpy(b, was, n);
}

/*
 * Return an echo packet to its sender, with the next lower TTL. The UDP checksum stays
 * right, because addresses and ports only change places.
 */
static void
echo_return(struct burst *b, unsigned int i, const struct view *v)
{
	unsigned int octets = family_octets(v->family);
	unsigned int bytes = L2_LEN + b->l3_len[i];
	uint8_t *ip = burst_l3(b, i), *eth, mac[6];
	uint8_t *src = ip + (v->src - ip), *udp = ip + (v->bfd - ip) - 8;

	octets_swap(src, src + octets, octets);
	octets_swap(udp, udp + 2, 2);
	if (v->family == 4)
		ip4_ttl_dec(ip);
	else
		ip[7]--;
	if (rte_pktmbuf_pkt_len(b->m[i]) > bytes)
		packet_cut(b->m[i], bytes);
	memcpy(mac, burst_frame(b, i) + 6, sizeof(mac));
	eth = vlan_push(b->m[i], b->in);
	memcpy(eth, mac, sizeof(mac));
	memcpy(eth + 6, b->in->mac, sizeof(b->in->mac));
	fwd_tx(b->fwd, b->ifidx, b->m[i]);
}

enum bfd_fate
fwd_bfd_take(struct burst *b, unsigned int i, enum reason *refused)
{
	struct fwd *f = b->fwd;
	struct class_counters *count = &f->count->class[CLASS_bfd];
	struct packet_meta *meta = packet_meta(b->m[i]);
	struct view v;

	if (!bfd_find(b, i, &v) || is_for_sockets(b, &v))
		return BFD_NOT;
	if (bfd_note(b, &v)) {
		counter_add(&f->count->reason[PUNT_local_control], 1);
		counter_add(&count->passed, 1);
		counter_add(&count->taken, 1);
		rte_pktmbuf_free(b->m[i]);
		return BFD_TAKEN;
	}
	*refused = bfd_refusal(b, &v);
	if (*refused == N_DROP && !fwd_police(b, i, CLASS_bfd))
		*refused = DROP_policed;
	if (*refused == N_DROP && echo_is_of_peer(b, i, &v)) {
		counter_add(&f->count->reason[PUNT_local_control], 1);
		counter_add(&count->passed, 1);
		counter_add(&count->taken, 1);
		echo_return(b, i, &v);
		return BFD_TAKEN;
	}
	if (*refused == N_DROP && !ring_has_room(f->conf->rings.punt[CLASS_bfd])) {
		counter_add(&count->ring_full, 1);
		*refused = DROP_punt_ring_full;
	}
	if (*refused != N_DROP)
		return BFD_REFUSED;
	*meta = (struct packet_meta){.reason = PUNT_local_control,
				     .class = CLASS_bfd,
				     .family = v.family,
				     .in_ifidx = b->ifidx,
				     .vrf = b->in->vrf,
				     .has_labels = burst_has_labels(b, i)};
	counter_add(&f->count->reason[PUNT_local_control], 1);
	counter_add(&count->passed, 1);
	rte_ring_sp_enqueue(f->conf->rings.punt[CLASS_bfd], b->m[i]);
	f->wake_bfd = true;
	return BFD_TAKEN;
}
