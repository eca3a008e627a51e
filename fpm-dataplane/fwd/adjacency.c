/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adjacency: turn each packet's path into a next hop. A packet that can be sent keeps
 * VERDICT_GO and gets its hop. Any other packet gets a drop or punt reason.
 *                                                                               [fwd-n]
 */
#include "base/inet.h"
#include "fib/label.h"
#include "fib/rules.h"
#include "fwd/decap_fast.h"
#include "fwd/headend.h"
#include "fwd/label.h"
#include "fwd/local_reason.h"
#include "fwd/outer_fast.h"
#include "fwd/sid.h"
#include "fwd/tunnel.h"
#include "fwd/vlan.h"
#include "fwd/vxlan.h"

/*
 * Return true if a packet that must not be fragmented is longer than the MTU of its path
 * and of interface `ifidx`. As in Linux, its sender then gets the ICMP error before the
 * neighbor is known. The MTU of a packet that gets labels or outer headers was checked
 * before.
 */
static bool
packet_is_too_big(const struct burst *b, unsigned int i, unsigned int ifidx)
{
	const struct fib_iface *out = fib_iface(b->fwd->fib, ifidx);
	enum path_kind kind = path_kind(b->path[i]);
	unsigned int mtu;

	if (out == NULL || b->family[i] == 0 || burst_has_labels(b, i) ||
	    (kind != PATH_ADJ && kind != PATH_ONLINK) ||
	    (b->family[i] == 4 && (burst_l3(b, i)[6] & 0x40) == 0))
		return false;
	mtu = fib_mtu(b->fwd->fib, b->path[i], out, b->family[i]);
	if (b->l3_len[i] <= mtu)
		return false;
	packet_meta(b->m[i])->mtu_bytes = (uint16_t)mtu;
	return true;
}

/*
 * Give a packet to the punt thread, where it waits for its neighbor on `ifidx`. If the TTL
 * is used up, the sender gets the ICMP error at once (RFC 1812, 5.3.1), because the packet
 * would be dropped in any case. If IPv6 is off on the interface, an IPv6 neighbor never has
 * a hop, so an IPv6 packet to it is refused here. `family` is that of the neighbor: an IPv6
 * packet with labels may have an IPv4 neighbor.
 */
static void
packet_unresolved(struct burst *b, unsigned int i, uint8_t family, unsigned int ifidx)
{
	bool off = b->family[i] == 6 && fib_ipv6_is_off(b->fwd->fib, family, ifidx);

	/*
	 * Family 0: labels remain, and the parse stage has checked their TTL. If IPv6 is
	 * off, Linux answers "no route" before it checks the hop limit.
	 */
	if (!off && b->family[i] != 0 && burst_l3(b, i)[b->family[i] == 4 ? 8 : 7] <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return;
	}
	if (burst_has_sid_path(b)) { /* the punt thread would choose another neighbor */
		burst_leave(b, i, DROP_neigh_failed);
		return;
	}
	if (off) {
		burst_icmp(b, i, PUNT_unreach, DROP_ipv6_off);
		return;
	}
	if (packet_is_too_big(b, i, ifidx)) {
		burst_leave(b, i, PUNT_too_big);
		return;
	}
	burst_leave(b, i, PUNT_unresolved);
	b->waits = true;
}

/*
 * The longest time for which new packets are queued behind packets that waited for the same
 * neighbor. Then they are sent directly, because an outage is worse than a wrong order.
 */
#define IN_TURN_PER_S 50 /* 20 ms */

/*
 * Return true if this packet may be sent directly although earlier packets waited for its
 * neighbor. Those packets come back by the inject ring, which a forwarder empties before it
 * receives a burst. f->turn_last: the last time at which a packet found that earlier
 * packets may be under way. f->turn_since: the first such time after a pause longer than
 * the limit.
 */
static bool
packet_has_turn(struct burst *b, uint32_t adj)
{
	struct fwd *f = b->fwd;
	const struct fwd_rings *r = &f->conf->rings;
	uint64_t now = burst_now(b),
		 limit = (rte_get_tsc_hz() << POLICER_TICK_SHIFT) / IN_TURN_PER_S;

	/*
	 * Acquire: with ADJ_OPEN and with the count, this thread sees the packets that punt
	 * injected before.
	 */
	if (b->waits ||
	    atomic_load_explicit(&f->adj_used[adj], memory_order_acquire) != ADJ_OPEN ||
	    atomic_load_explicit(r->n_gleaned, memory_order_acquire) != f->n_gleaned ||
	    ring_has_some(r->inject)) {
		if (now - f->turn_last > limit)
			f->turn_since = now;
		f->turn_last = now;
		if (now - f->turn_since <= limit)
			return false;
	}
	atomic_store_explicit(&f->adj_used[adj], ADJ_USED, memory_order_relaxed);
	return true;
}

static void
neighbor_use(struct burst *b, unsigned int i, uint32_t adj)
{
	const struct fib *fib = b->fwd->fib;
	_Atomic uint8_t *used = b->fwd->adj_used;

	b->hop[i] = atomic_load_explicit(&fib->adj[adj].hop, memory_order_acquire);
	if (b->hop[i] == 0)
		atomic_store_explicit(&used[adj], ADJ_BEHIND, memory_order_relaxed);
	if (!fib_adj_touch(used, adj) && (b->hop[i] == 0 || !packet_has_turn(b, adj)))
		packet_unresolved(b, i, fib->adj[adj].family, fib->adj[adj].ifidx);
}

/*
 * Use the neighbor of the outer packet to a VTEP. Until the headers are written, b->hop
 * names the interface over VXLAN.
 */
static void
vxlan_use(struct burst *b, unsigned int i, uint32_t adj, const struct fib_vxlan_hop *hop)
{
	struct fib_vxlan_outer outer;

	if (!fwd_vxlan_outer(b, i, hop, &outer))
		return;
	/*
	 * Earlier packets that waited for this neighbor may leave after this packet. There
	 * are rarely any, because the kernel has the neighbor's MAC before routes lead to
	 * it.
	 */
	if (atomic_load_explicit(&b->fwd->adj_used[adj], memory_order_relaxed) != ADJ_USED)
		atomic_store_explicit(&b->fwd->adj_used[adj], ADJ_USED,
				      memory_order_relaxed);
	/* The path becomes that of the neighbor, even if an on-link route led here. */
	b->path[i] = path_with_mtu(PATH(PATH_ADJ, adj), path_mtu_class(b->path[i]));
	if (path_kind(outer.path) == PATH_ADJ)
		neighbor_use(b, i, path_index(outer.path));
	else
		packet_unresolved(b, i, hop->t.family, path_index(outer.path));
	b->hop[i] = hop->ifidx;
}

static void
adj_use(struct burst *b, unsigned int i, uint32_t adj)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_vxlan_hop *hop = NULL;

	if (atomic_load_explicit(&fib->adj[adj].hop, memory_order_relaxed) == 0)
		hop = fib_vxlan_hop(fib, adj);
	if (hop == NULL)
		neighbor_use(b, i, adj);
	else
		vxlan_use(b, i, adj, hop);
}

/*
 * Use the neighbor of the outer packet. A packet that waits for it keeps the path of its
 * headend.
 */
static void
headend_use(struct burst *b, unsigned int i)
{
	struct fib_headend_outer outer;

	if (!fwd_headend_outer(b, i, &outer))
		return;
	if (path_kind(outer.path) == PATH_ADJ)
		neighbor_use(b, i, path_index(outer.path));
	else
		packet_unresolved(b, i, 6, path_index(outer.path));
	if (b->verdict[i] == PUNT_unresolved)
		b->hop[i] = outer.out->ifidx;
}

/*
 * Use the neighbor of the outer packet. Until the outer header is written, b->hop names the
 * tunnel.
 */
static void
tunnel_use(struct burst *b, unsigned int i, uint16_t ifidx)
{
	bool labels = burst_has_labels(b, i) || path_kind(b->path[i]) == PATH_ENCAP;
	const struct fib_tunnel_outer *outer =
		labels ? fwd_label_outer(b, i, ifidx) : fwd_tunnel_outer(b, i);

	if (outer == NULL)
		return;
	if (path_kind(outer->path) == PATH_ADJ)
		neighbor_use(b, i, path_index(outer->path));
	else
		packet_unresolved(b, i, outer->family, path_index(outer->path));
	b->hop[i] = ifidx;
}

/*
 * Use the next hop of a path that pushes labels, which is an adjacency or a tunnel, or the
 * adjacency of a headend. With labels, a packet that waits for its neighbor gets the path
 * of the adjacency or of the tunnel.
 */
static void
encap_use(struct burst *b, unsigned int i)
{
	fib_path next = encap_next(fib_encap(b->fwd->fib, b->path[i]));

	if (path_is_headend(b->fwd->fib, b->path[i])) {
		headend_use(b, i);
		return;
	}
	if (path_kind(next) == PATH_ADJ)
		adj_use(b, i, path_index(next));
	else if (path_tunnel(b->fwd->fib, next) != NULL)
		tunnel_use(b, i, (uint16_t)path_index(next));
	else
		fwd_label_refuse(b, i, PUNT_unreach, DROP_egress_down);
	if (b->verdict[i] == PUNT_unresolved)
		b->path[i] = next;
}

static void
onlink_use(struct burst *b, unsigned int i)
{
	const struct fib_iface *tunnel = path_tunnel(b->fwd->fib, b->path[i]);
	const uint8_t *ip = burst_l3(b, i);
	struct ipaddr dst = {0};
	uint32_t adj;

	if (tunnel != NULL) {
		tunnel_use(b, i, tunnel->ifidx);
		return;
	}
	if (b->family[i] == 4)
		memcpy(dst.octet, ip + 16, 4);
	else
		memcpy(dst.octet, ip + 24, 16);
	adj = fib_host_adj(b->fwd->fib, (uint16_t)path_index(b->path[i]), b->family[i],
			   &dst);
	if (adj == 0)
		packet_unresolved(b, i, b->family[i], path_index(b->path[i]));
	else
		adj_use(b, i, adj);
}

/*
 * Look up the packet once more: in the VRF that its route leads to, or in table main if its
 * VRF has no route. A route found there cannot lead to another VRF. If policy rules concern
 * the packet, it is not looked up in table main here: a rule has looked it up there
 * already, or no rule names table main.
 */
static void
path_look_further(struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	bool to_vrf = path_kind(b->path[i]) == PATH_VRF;
	const uint8_t *ip = burst_l3(b, i);
	uint8_t family = b->family[i];
	struct ipaddr dst = {0};
	uint32_t hash;

	if (burst_has_sid_path(b)) {
		/* The end point chose the path; the destination does not matter. */
		b->path[i] = b->sid_path;
		return;
	}
	if (!to_vrf && burst_has_sid_table(b)) {
		if (family == 6)
			memcpy(dst.octet, ip + 24, sizeof(dst.octet));
		if (path_is_no_route(b->path[i]) && b->in->vrf != 0 &&
		    !atomic_load_explicit(&fib->vrfs_told, memory_order_relaxed))
			b->path[i] = PATH(PATH_NO_FIB, 0);
		else if (family == 6 &&
			 fwd_sid_local_may_refuse(fib, b->in->vrf, b->path[i], &dst))
			b->path[i] = PATH(PATH_LOCAL, 0); /* the kernel decides */
		return;
	}
	if (!to_vrf &&
	    (!path_is_no_route(b->path[i]) || b->in->vrf == 0 ||
	     (fib_rules_concern(b->in, family) && fib_rules(fib, family) != NULL)))
		return;
	memcpy(dst.octet, ip + (family == 4 ? 16 : 24), family_octets(family));
	hash = flow_hash(ip, burst_l3_room(b, i), family, fib->seed);
	b->path[i] = to_vrf ? fib_resolve_in_vrf(fib, b->path[i], family, &dst, hash)
			    : fib_resolve(fib, b->in->vrf, family, &dst, hash);
}

/*
 * Handle a packet to an address of this host: a SID, the end of a tunnel, a VTEP, or an
 * address that the kernel serves.
 */
static void
path_local(struct burst *b, unsigned int i)
{
	fib_path local = b->path[i];

	if (path_index(local) != 0)
		fwd_decap_learn_end(b, i);
	if ((path_index(local) != 0 && fwd_sid_use(b, i)) ||
	    (burst_may_decap(b, i) && fwd_tunnel_decap(b, i)) ||
	    (burst_may_be_vxlan(b, i) && fwd_vxlan_decap(b, i))) {
		if (b->verdict[i] == VERDICT_DECAPSULATED)
			fwd_decap_learn(b, i, local);
		return;
	}
	burst_leave(b, i,
		    fwd_local_reason(burst_l3(b, i), burst_l3_room(b, i), b->family[i]));
}

/*
 * Handle a path that leads to no next hop: a local address, a route that refuses, or an
 * invalid path.
 */
static void
path_end(struct burst *b, unsigned int i)
{
	enum path_kind kind = path_kind(b->path[i]);

	switch (kind) {
	case PATH_LOCAL:
		path_local(b, i);
		break;
	case PATH_KERNEL:
		/*
		 * The packet is unchanged: the kernel checks TTL and MTU, and sends the
		 * ICMP errors.
		 */
		burst_leave(b, i, PUNT_kernel_route);
		break;
	case PATH_BCAST:
	case PATH_BLACKHOLE:
	case PATH_NO_FIB:
		burst_leave(b, i, path_cause(kind));
		break;
	default:
		if (burst_has_labels(b, i))
			fwd_label_refuse(b, i, PUNT_unreach, path_cause(kind));
		else
			burst_icmp(b, i, PUNT_unreach, path_cause(kind));
	}
}

/*
 * Refuse to forward packets with link-scope addresses. IPv4: source or destination (RFC
 * 3927, 7). IPv6: source (RFC 4291, 2.5.6), and the sender gets an error (RFC 4007, 9); the
 * parser handled the destination.
 */
static bool
packet_link_scope(struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);

	if (b->family[i] == 4 &&
	    ((ip[12] == 169 && ip[13] == 254) || (ip[16] == 169 && ip[17] == 254))) {
		burst_leave(b, i, DROP_ip4_linklocal);
		return true;
	}
	if (b->family[i] == 6 && ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80) {
		burst_icmp(b, i, PUNT_unreach, DROP_ip6_linklocal);
		return true;
	}
	return false;
}

/*
 * Return true if Linux answers an IPv6 packet on such a path with an ICMP error even if it
 * forwards no IPv6: no route leads to the destination, or a route refuses.
 */
static bool
path_is_refused(enum path_kind kind)
{
	return kind == PATH_NONE || kind == PATH_THROW || kind == PATH_UNREACHABLE ||
	       kind == PATH_PROHIBIT;
}

/*
 * Return true if an IPv6 packet cannot leave by a path, because IPv6 is off on its egress
 * interface. Linux treats such a packet as a packet without a route.
 */
static bool
path_is_ipv6_off(const struct fib *fib, fib_path path)
{
	const struct fib_adj *adj;

	bool labels = path_kind(path) == PATH_ENCAP;

	if (labels) /* the path of a headend has no `next`: it stays PATH_ENCAP */
		path = encap_next(fib_encap(fib, path));
	if (path_kind(path) == PATH_ONLINK && labels)
		return false; /* a tunnel takes labels with any packet behind them */
	if (path_kind(path) == PATH_ONLINK)
		return fib_ipv6_is_off(fib, 6, path_index(path));
	if (path_kind(path) != PATH_ADJ)
		return false;
	adj = &fib->adj[path_index(path)];
	return fib_ipv6_is_off(fib, adj->family, adj->ifidx);
}

/*
 * Return true if the packet may be forwarded to another link. If forwarding is off on the
 * ingress interface, the packet is dropped without an ICMP error, as on a host (RFC 1122,
 * 3.2.1.3). IPv6 packets that have no route get the ICMP error of Linux.
 *
 * If the port is a member of a bond, team or bridge of the kernel, the kernel gets the
 * packet. Linux takes that device as the ingress interface, and the device may be in
 * another VRF. Linux also ignores packets of a bond's idle member.
 */
static bool
packet_may_pass(struct burst *b, unsigned int i, enum path_kind kind)
{
	bool off, missing;

	if (burst_has_labels(b, i)) /* net.mpls.conf.NAME.input allows it */
		return b->family[i] == 0 || !packet_link_scope(b, i);
	if (b->in->member) {
		burst_leave(b, i, PUNT_kernel_route);
		return false;
	}
	off = b->family[i] == 4 ? !b->in->forward4 : !b->in->forward6;
	missing = off && b->family[i] == 6 && path_is_ipv6_off(b->fwd->fib, b->path[i]);
	if (off && !missing && (b->family[i] == 4 || !path_is_refused(kind))) {
		burst_leave(b, i, DROP_forwarding_off);
		return false;
	}
	if (packet_link_scope(b, i))
		return false;
	if (missing)
		burst_icmp(b, i, PUNT_unreach, DROP_ipv6_off);
	return !missing;
}

/* Return the kind of all paths of a burst. PATH_NONE: the kinds differ, or no route. */
static inline enum path_kind
burst_path_kind(const struct burst *b)
{
	fib_path differ = 0;

	for (unsigned int i = 0, n = b->n; i < n; i++)
		differ |= b->path[i] ^ b->path[0];
	return path_kind(differ) == 0 ? path_kind(b->path[0]) : PATH_NONE;
}

/* Return true if fib_adj_touch() has nothing to do, which is nearly always true. */
static inline bool
adj_is_used(_Atomic uint8_t *used, uint32_t adj)
{
	return atomic_load_explicit(&used[adj], memory_order_relaxed) == ADJ_USED;
}

/*
 * Let the fast stages for labels and outer headers take packets without a plain adjacency.
 * Move the packets that they do not take to the slow path.
 *
 * encap, tunnel: a bit for each packet whose path is PATH_ENCAP, or PATH_ONLINK
 * adj            a bit for each other packet
 */
static void
burst_use_others(struct burst *b, uint64_t encap, uint64_t tunnel, uint64_t adj)
{
	uint64_t odd = encap | tunnel | adj;

	if (encap != 0 && path_is_headend(b->fwd->fib, b->path[__builtin_ctzll(encap)])) {
		b->into = fwd_outer_fast_adjacency(b, encap);
		encap &= ~b->into;
	}
	if (encap != 0) {
		b->push = fwd_push_fast_adjacency(b, encap);
		adj |= encap & ~b->push;
	}
	if (adj != 0)
		b->into |= fwd_outer_fast_adjacency(b, adj);
	if (tunnel != 0)
		b->into |= fwd_tunnel_fast_adjacency(b, tunnel);
	burst_to_slow(b, odd & ~(b->push | b->into));
}

/* Let the fast stages for labels and outer headers take what they can of `odd`. */
static __attribute__((noinline)) void
burst_use_mixed(struct burst *b, uint64_t odd)
{
	uint64_t encap = 0, tunnel = 0;

	for (uint64_t rest = odd; rest != 0; rest &= rest - 1) {
		enum path_kind kind = path_kind(b->path[__builtin_ctzll(rest)]);

		encap |= kind == PATH_ENCAP ? rest & -rest : 0;
		tunnel |= kind == PATH_ONLINK ? rest & -rest : 0;
	}
	burst_use_others(b, encap, tunnel, odd & ~(encap | tunnel));
}

/*
 * Set the hop of fast-path packets whose neighbor is resolved. Move the other packets to
 * the slow path. `all`: the whole burst is on the fast path, and all paths are adjacencies;
 * the compiler makes a separate loop for this case.
 */
static inline __attribute__((always_inline)) void
adj_use_fast(struct burst *b, bool all)
{
	const struct fib_adj *slot = b->fwd->fib->adj;
	_Atomic uint8_t *used = b->fwd->adj_used;
	uint64_t fast = b->fast4 | b->fast6, odd = 0;

#pragma GCC unroll 2
	for (unsigned int i = 0, n = b->n; i < n; i++) {
		fib_path path = b->path[i];
		uint32_t adj = all || path_kind(path) == PATH_ADJ ? path_index(path) : 0;
		uint64_t hop;

		if (!all && (fast >> i & 1) == 0)
			continue;
		hop = atomic_load_explicit(&slot[adj].hop, memory_order_acquire);
		b->hop[i] = hop;
		if (__builtin_expect(hop != 0 && adj_is_used(used, adj), 1))
			continue;
		if (hop == 0 || !fib_adj_touch(used, adj))
			odd |= 1ull << i;
	}
	if (odd != 0 && b->tag_bytes == 0)
		burst_use_mixed(b, odd);
	else
		burst_to_slow(b, odd);
}

void
fwd_adjacency_fast(struct burst *b)
{
	bool all = (b->fast4 | b->fast6) == burst_all(b);
	enum path_kind kind = all ? burst_path_kind(b) : PATH_NONE;

	if (kind == PATH_ADJ)
		adj_use_fast(b, true);
	else if (kind == PATH_ENCAP && b->tag_bytes == 0)
		burst_use_others(b, burst_all(b), 0, 0);
	else if (kind == PATH_ONLINK && b->tag_bytes == 0)
		burst_use_others(b, 0, burst_all(b), 0);
	else
		adj_use_fast(b, false);
}

void
fwd_adjacency(struct burst *b)
{
	b->waits = false;
	if ((b->fast4 | b->fast6) != 0)
		fwd_adjacency_fast(b);
	if (b->switched != 0)
		fwd_label_fast_adjacency(b);
	for (uint64_t rest = burst_all(b) & ~(b->fast4 | b->fast6 | b->switched); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		enum path_kind kind;

		if (b->verdict[i] != VERDICT_GO)
			continue;
		if (!burst_has_labels(b, i))
			path_look_further(b, i);
		kind = path_kind(b->path[i]);
		if (kind != PATH_LOCAL && !packet_may_pass(b, i, kind))
			continue;
		if (kind == PATH_ADJ)
			adj_use(b, i, path_index(b->path[i]));
		else if (kind == PATH_ENCAP && path_index(b->path[i]) != 0)
			encap_use(b, i);
		else if (kind == PATH_ONLINK)
			onlink_use(b, i);
		else
			path_end(b, i);
	}
}
