/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outer_fast: the stages of vxlan.c and headend.c for the usual packets. The paths of
 * packets with the same outer destination differ only by the flow, so the route to this
 * destination is looked up once between two quiescent states. Any other packet is left
 * unchanged to vxlan.c and headend.c, which alone judge it. test_fwd_outer_fast compares
 * the two.                                                                      [fwd-n]
 */
#include "fwd/outer_fast.h"

#include "base/inet.h"
#include "fib/headend.h"
#include "fib/path_mtu.h"
#include "fib/vxlan.h"
#include "fwd/frame_header.h"
#include "port/vxlan_write.h"

/* --- the path ------------------------------------------------------------------------- */

/*
 * Find the neighbor and the egress interface of an outer packet that must leave by the
 * interface `link` (0: any). Return false if the packet is not a usual one: its neighbor is
 * not resolved, or its frames have tags.
 */
static inline bool
exit_find(const struct fwd *f, fib_path path, uint32_t link, struct fwd_exit *e)
{
	if (path_kind(path) != PATH_ADJ)
		return false;
	e->hop = atomic_load_explicit(&f->fib->adj[path_index(path)].hop,
				      memory_order_acquire);
	if (e->hop == 0)
		return false;
	e->out = fib_iface(f->fib, e->hop & 0xffff);
	return e->out != NULL && e->out->up && e->out->n_tags == 0 &&
	       e->out->ifidx < PORT_MAX && (link == 0 || link == e->out->ifindex);
}

/*
 * Return the length of the longest packet of a family whose outer packet fits. `mtu`: that
 * of the egress interface and its path.
 */
static inline uint16_t
vxlan_room(const struct fwd_leg *leg, unsigned int mtu, uint8_t family)
{
	const struct fib_vxlan_hop *hop = leg->of;
	unsigned int own = family == 4 ? leg->iface->mtu_bytes : leg->iface->mtu6_bytes;
	unsigned int room = RTE_MIN(mtu, leg->pmtu);

	room = room > hop->t.bytes ? room - hop->t.bytes : 0;
	return (uint16_t)RTE_MIN(room, own);
}

static inline uint16_t
headend_room(const struct fwd_leg *leg, unsigned int mtu, uint8_t family)
{
	const struct fib_headend *h = leg->of;
	unsigned int room = RTE_MIN(mtu, headend_pmtu_for(h, leg->pmtu, family));

	return (uint16_t)(room > h->bytes ? room - h->bytes : 0);
}

/*
 * Set the egress of a leg if all its flows take one path, and go to a neighbor that is
 * resolved.
 */
static bool
leg_find_exit(const struct fwd *f, struct fwd_leg *leg, uint32_t link)
{
	struct fwd_exit e;

	leg->out = NULL;
	if (!leg->usual || group_word_is_block(leg->route) ||
	    !exit_find(f, (fib_path)leg->route, link, &e))
		return false;
	leg->out = e.out;
	leg->adj = path_index((fib_path)leg->route);
	return true;
}

static __attribute__((noinline)) void
leg_find_vxlan(struct fwd *f, const struct fib_vxlan_hop *hop, struct fwd_leg *leg)
{
	leg->of = hop;
	leg->epoch = f->outer_epoch;
	leg->iface = fib_iface(f->fib, hop->ifidx);
	leg->usual = fib_vxlan_begin(f->fib, hop, &leg->route);
	leg->pmtu = fib_pmtu(f->fib, hop->t.vrf, hop->t.family, &hop->t.remote);
	if (leg_find_exit(f, leg, hop->t.link)) {
		unsigned int mtu =
			fib_mtu(f->fib, (fib_path)leg->route, leg->out, hop->t.family);

		leg->room[0] = vxlan_room(leg, mtu, 4);
		leg->room[1] = vxlan_room(leg, mtu, 6);
	}
}

static __attribute__((noinline)) void
leg_find_headend(struct fwd *f, const struct fib_headend *h, struct fwd_leg *leg)
{
	leg->of = h;
	leg->epoch = f->outer_epoch;
	leg->usual = fib_headend_begin(f->fib, h, leg->head, &leg->route);
	leg->pmtu = fib_headend_pmtu(f->fib, h);
	if (leg_find_exit(f, leg, 0)) {
		unsigned int mtu = fib_mtu(f->fib, (fib_path)leg->route, leg->out, 6);

		leg->room[0] = headend_room(leg, mtu, 4);
		leg->room[1] = headend_room(leg, mtu, 6);
	}
}

/* Return the leg of a neighbor behind a VXLAN, whose adjacency is `adj`. */
static inline const struct fwd_leg *
leg_of_vxlan(struct fwd *f, uint32_t adj, const struct fib_vxlan_hop *hop)
{
	struct fwd_leg *leg = &f->leg[adj % FWD_LEGS];

	if (__builtin_expect(leg->of != hop || leg->epoch != f->outer_epoch, 0))
		leg_find_vxlan(f, hop, leg);
	return leg;
}

/* Return the leg of a path; NULL: the path leads to no headend. */
static inline const struct fwd_leg *
leg_of_headend(struct fwd *f, fib_path path)
{
	const struct fib_headend *h = &f->fib->headend[path_index(path)];
	struct fwd_leg *leg = &f->leg[path_index(path) % FWD_LEGS];

	if (path_kind(path) != PATH_ENCAP)
		return NULL;
	if (__builtin_expect(leg->of != h || leg->epoch != f->outer_epoch, 0)) {
		if (!path_is_headend(f->fib, path))
			return NULL;
		leg_find_headend(f, h, leg);
	}
	return leg;
}

/*
 * Use the egress that all flows of a leg have in common. Return false if there is none, or
 * if the neighbor has changed.
 */
static inline bool
leg_exit(const struct fwd *f, const struct fwd_leg *leg, struct fwd_exit *e)
{
	e->out = leg->out;
	if (e->out == NULL)
		return false;
	e->hop = atomic_load_explicit(&f->fib->adj[leg->adj].hop, memory_order_acquire);
	return e->hop != 0 && (e->hop & 0xffff) == e->out->ifidx;
}

/* --- adjacency ------------------------------------------------------------------------ */

static inline bool
packet_to_vtep(struct burst *b, unsigned int i, const struct fib_vxlan_hop *hop)
{
	struct fwd *f = b->fwd;
	uint32_t adj = path_index(b->path[i]), next;
	const struct fwd_leg *leg = leg_of_vxlan(f, adj, hop);
	const struct fib_tunnel *t = &hop->t;
	struct fwd_exit *e = &f->exit[i];
	uint16_t room;

	if (!leg->usual)
		return false;
	e->vxlan = hop;
	e->hash =
		flow_hash(burst_l3(b, i), burst_l3_room(b, i), b->family[i], f->fib->seed);
	if (leg_exit(f, leg, e)) {
		next = leg->adj;
		room = leg->room[b->family[i] == 6];
	} else {
		fib_path path = vxlan_path(f->fib, hop, leg->route, e->hash);

		if (!exit_find(f, path, t->link, e))
			return false;
		next = path_index(path);
		room = vxlan_room(leg, fib_mtu(f->fib, path, e->out, t->family),
				  b->family[i]);
	}
	if (b->l3_len[i] > fib_mtu_of_path(f->fib, b->path[i], room) ||
	    !vxlan_fits(b->m[i], hop, NULL) || !fib_adj_touch(f->adj_used, next))
		return false;
	if (atomic_load_explicit(&f->adj_used[adj], memory_order_relaxed) != ADJ_USED)
		atomic_store_explicit(&f->adj_used[adj], ADJ_USED, memory_order_relaxed);
	b->hop[i] = hop->ifidx; /* see burst_leaves_by_tunnel() */
	return true;
}

static inline bool
packet_to_segments(struct burst *b, unsigned int i)
{
	struct fwd *f = b->fwd;
	const struct fwd_leg *leg = leg_of_headend(f, b->path[i]);
	struct fwd_exit *e = &f->exit[i];
	const struct fib_headend *h;
	uint32_t next;
	uint16_t room;

	if (leg == NULL || !leg->usual)
		return false;
	h = leg->of;
	e->vxlan = NULL;
	e->hash =
		flow_hash(burst_l3(b, i), burst_l3_room(b, i), b->family[i], f->fib->seed);
	if (leg_exit(f, leg, e)) {
		next = leg->adj;
		room = leg->room[b->family[i] == 6];
	} else {
		fib_path path =
			headend_path(f->fib, leg->head, leg->route, e->hash, b->family[i]);

		if (!exit_find(f, path, 0, e))
			return false;
		next = path_index(path);
		room = headend_room(leg, fib_mtu(f->fib, path, e->out, 6), b->family[i]);
	}
	if (b->l3_len[i] > fib_mtu_of_path(f->fib, b->path[i], room) ||
	    rte_pktmbuf_headroom(b->m[i]) < h->bytes + VLAN_TAGS * VLAN_BYTES ||
	    !fib_adj_touch(f->adj_used, next))
		return false;
	b->hop[i] = e->hop;
	return true;
}

uint64_t
fwd_outer_fast_adjacency(struct burst *b, uint64_t odd)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t into = 0;

	for (; odd != 0; odd &= odd - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(odd);
		const struct fib_vxlan_hop *hop;

		if (path_kind(b->path[i]) != PATH_ADJ) {
			into |= packet_to_segments(b, i) ? odd & -odd : 0;
			continue;
		}
		hop = b->hop[i] != 0 ? NULL : path_vxlan(fib, b->path[i]);
		if (hop != NULL && packet_to_vtep(b, i, hop))
			into |= odd & -odd;
	}
	return into;
}

/* --- rewrite -------------------------------------------------------------------------- */

/*
 * Set the start of the frame to `eth`, before an outer header, and its end to that of the
 * packet.
 */
static inline void
frame_end(struct burst *b, unsigned int i, uint8_t *eth, uint16_t type)
{
	const struct fwd_exit *e = &b->fwd->exit[i];
	const uint8_t *end = burst_l3(b, i) + b->l3_len[i];
	struct rte_mbuf *m = b->m[i];

	m->data_off = (uint16_t)(eth - (uint8_t *)m->buf_addr);
	m->data_len = (uint16_t)(end - eth);
	m->pkt_len = m->data_len;
	put_be16(eth + L2_LEN - 2, type);
	frame_write_macs(eth, e->hop, e->out);
	b->l2[i] = eth;
	b->hop[i] = e->hop;
	b->out_port[i] = (uint8_t)e->out->port;
}

/* Decrement the hop count, before it may be copied to the outer header. */
static inline void
hop_spend(struct burst *b, unsigned int i)
{
	memcpy(burst_l3(b, i) + burst_hop_at(b->family[i]), &b->hop_octets[i], 4);
}

static inline void
vxlan_put_all(struct burst *b, unsigned int i, const struct fwd_exit *e)
{
	struct if_counters *c = &b->fwd->count->port[e->vxlan->ifidx];
	unsigned int len = b->l3_len[i];
	uint8_t *out;

	counter_add(&c->tx_packets, 1);
	counter_add(&c->tx_bytes, len);
	hop_spend(b, i);
	out = vxlan_put(e->vxlan, burst_l3(b, i), b->family[i], len, b->fwd->ip_id++,
			e->hash);
	frame_end(b, i, out - L2_LEN, e->vxlan->t.family == 4 ? 0x0800 : 0x86dd);
	if (e->vxlan->csum)
		vxlan_write_sum(b->m[i], e->vxlan, out, len);
}

/*
 * Return false if another leg has replaced the leg of this packet, and the new lookup says
 * that the packet is not a usual one.
 */
static inline bool
headend_put_all(struct burst *b, unsigned int i, const struct fwd_exit *e)
{
	const struct fwd_leg *leg = leg_of_headend(b->fwd, b->path[i]);
	uint8_t *out;

	if (leg == NULL || !leg->usual)
		return false;
	hop_spend(b, i);
	out = headend_put_flow(leg->of, leg->head, e->hash, burst_l3(b, i), b->family[i],
			       b->l3_len[i]);
	frame_end(b, i, out - L2_LEN, 0x86dd);
	return true;
}

uint64_t
fwd_outer_fast_rewrite(struct burst *b, uint64_t which)
{
	uint64_t odd = 0;

	for (; which != 0; which &= which - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(which);
		const struct fwd_exit *e = &b->fwd->exit[i];

		if (e->vxlan != NULL)
			vxlan_put_all(b, i, e);
		else if (!headend_put_all(b, i, e))
			odd |= which & -which;
	}
	return odd;
}
