/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sid: packets to an end point of SRv6: RFC 8986, 4, RFC 9800, 4.1. decap_fast.c handles
 * some packets to End.DT and End; this file handles all others, on the slow path. An end
 * point changes the destination or removes headers, so the packet passes the stages once
 * more, as the inner packet of a tunnel does.                                   [fwd-n]
 */
#include "fwd/sid.h"

#include <linux/rtnetlink.h>

#include "fib/headend.h"
#include "fib/rules.h"
#include "fib/sid_number.h"
#include "fib/urpf.h"
#include "fwd/label.h"
#include "fwd/tunnel.h"

#define PROTO_ICMP6    58u
#define PROTO_FRAGMENT 44u

#define RULES_BYTES 80 /* octets of a packet that policy rules may read */

/*
 * Return the path to the neighbor of an end point. As in Linux, policy rules choose the
 * table by the fields of the packet at offset `at`, but with the neighbor as the
 * destination.
 *
 * in   the ingress interface; NULL: rules see a packet of this host
 * vrf  the VRF in which the neighbor is looked up if there are no rules
 */
static fib_path
neighbor_path(const struct burst *b, unsigned int i, const struct fib_sid *sid,
	      unsigned int at, const struct fib_iface *in, uint16_t vrf)
{
	const struct fib *fib = b->fwd->fib;
	unsigned int room = burst_l3_room(b, i);
	uint8_t family = sid->family, copy[RULES_BYTES];

	if (fib_rules(fib, family) == NULL ||
	    (in != NULL && !fib_rules_concern(in, family)))
		return fib_resolve(fib, vrf, family, &sid->hop,
				   flow_hash(burst_l3(b, i), room, 6, fib->seed));
	room = room > at ? room - at : 0;
	if (room < (family == 4 ? 20u : 40u)) /* the end point or the kernel refuses it */
		return PATH(PATH_NONE, 0);
	room = room < sizeof(copy) ? room : sizeof(copy);
	memcpy(copy, burst_l3(b, i) + at, room);
	memcpy(copy + (family == 4 ? 16 : 24), sid->hop.octet, family_octets(family));
	return fib_resolve_packet(fib, in, vrf, family, copy, room);
}

/*
 * Look up the neighbor of End.X and End.DX* as Linux does (seg6_lookup_any_nexthop()): in
 * the VRF of the interface that the end point names, else in that of the ingress interface.
 * A link-local neighbor is looked up on this interface itself. `at`: offset of the packet
 * that goes to the neighbor. Return PATH_NONE if the kernel has to decide.
 */
static fib_path
neighbor_find(const struct burst *b, unsigned int i, const struct fib_sid *sid,
	      unsigned int at)
{
	const struct fib *fib = b->fwd->fib;
	uint16_t named = atomic_load_explicit(&sid->ifidx, memory_order_relaxed);
	const struct fib_iface *on = named == 0          ? b->in
				     : named < IFIDX_MAX ? fib_iface(fib, named)
							 : NULL;
	uint32_t adj;
	fib_path path;

	if (on == NULL)
		return PATH(PATH_NONE, 0);
	if (sid->family == 6 && ipaddr_is_linklocal6(&sid->hop)) {
		/* Linux then looks for the neighbor on the VRF's device, which has none. */
		if (named == 0 && on->vrf != 0)
			return PATH(PATH_NONE, 0);
		adj = fib_host_adj(fib, on->ifidx, 6, &sid->hop);
		return adj == 0 ? PATH(PATH_NONE, 0) : PATH(PATH_ADJ, adj);
	}
	path = neighbor_path(b, i, sid, at, named == 0 ? on : NULL, on->vrf);
	/* If there are several paths, Linux prefers the path by the named interface. */
	return path_kind(path) == PATH_ADJ &&
			       (named == 0 || fib->adj[path_index(path)].ifidx == named)
		       ? path
		       : PATH(PATH_NONE, 0);
}

/*
 * Return the neighbor of End.X and End.DX*. PATH_NONE: the kernel must take the packet,
 * because the neighbor is not resolved, other packets wait for it, or the packet may need
 * fragments. The punt thread cannot take the packet, because it would route the packet by
 * its destination.
 */
static fib_path
sid_neighbor(const struct burst *b, unsigned int i, const struct fib_sid *sid,
	     unsigned int at)
{
	const struct fib *fib = b->fwd->fib;
	fib_path path = neighbor_find(b, i, sid, at);
	const struct fib_iface *out;
	uint32_t adj = path_index(path);

	if (path_kind(path) != PATH_ADJ ||
	    atomic_load_explicit(&fib->adj[adj].hop, memory_order_relaxed) == 0 ||
	    atomic_load_explicit(&b->fwd->adj_used[adj], memory_order_relaxed) ==
		    ADJ_BEHIND)
		return PATH(PATH_NONE, 0);
	out = fib_iface(fib, fib->adj[adj].ifidx);
	return out == NULL || b->l3_len[i] > fib_mtu(fib, path, out, 4) ||
			       b->l3_len[i] > fib_mtu(fib, path, out, 6)
		       ? PATH(PATH_NONE, 0)
		       : path;
}

/*
 * Return the headend of End.B6.Encaps. PATH_NONE: the kernel, which has the same end point,
 * must take the packet, because the outer packet has no path here, its neighbor is not
 * resolved, or other packets wait for the neighbor. The flow of the packet to its next
 * segment chooses the path of the outer packet.
 */
static fib_path
sid_policy(const struct burst *b, unsigned int i, const struct fib_sid *sid,
	   const struct sid_packet *p)
{
	const struct fib *fib = b->fwd->fib;
	const uint8_t *ip = burst_l3(b, i);
	struct fib_headend_outer outer;
	uint8_t head[40];
	uint32_t adj;

	memcpy(head, ip, sizeof(head));
	if (p->left != 0)
		memcpy(head + 24, sid_segment(ip, p), 16);
	fib_headend_resolve(fib, sid->policy, 6, head, sizeof(head), &outer);
	if (outer.reason != N_REASON || path_kind(outer.path) != PATH_ADJ)
		return PATH(PATH_NONE, 0);
	adj = path_index(outer.path);
	return atomic_load_explicit(&fib->adj[adj].hop, memory_order_relaxed) == 0 ||
			       atomic_load_explicit(&b->fwd->adj_used[adj],
						    memory_order_relaxed) == ADJ_BEHIND
		       ? PATH(PATH_NONE, 0)
		       : sid->policy;
}

/* Pass the packet that begins at offset `at` of this packet through the stages again. */
static bool
sid_again(struct burst *b, unsigned int i, const struct fib_sid *sid, unsigned int at,
	  fib_path neighbor)
{
	burst_open(b, i, at, b->ifidx);
	b->hop[i] |= DECAP_BY_SID | (at == 0 ? DECAP_GOES_ON : 0);
	b->vrf[i] = sid_vrf(sid, b->in->vrf);
	b->path[i] = neighbor;
	if (path_kind(neighbor) == PATH_NONE && sid_is_alone(sid))
		b->path[i] = at == 0 ? SID_PATH_NEXT : SID_PATH_ALONE;
	return true;
}

/* Return true if the end point decapsulates packets of a family. */
static bool
sid_opens(const struct fib_sid *sid, uint8_t family)
{
	switch (sid->action) {
	case SRV6_END_DT4:
	case SRV6_END_DX4:
		return family == 4;
	case SRV6_END_DT6:
	case SRV6_END_DX6:
		return family == 6;
	case SRV6_END_DT46:
		return true;
	default:
		return (sid->flavors & SRV6_USD) != 0;
	}
}

bool
fwd_sid_decapsulates(const struct fib_sid *sid, uint8_t family)
{
	return srv6_is_dt(sid->action) && sid_opens(sid, family);
}

/*
 * Drop a packet, and ask for an ICMPv6 parameter problem. `at`: offset of the octet at
 * fault.
 */
static bool
sid_refuse(struct burst *b, unsigned int i, enum reason cause, unsigned int at)
{
	packet_meta(b->m[i])->mtu_bytes = (uint16_t)at;
	burst_icmp(b, i, PUNT_unreach, cause);
	return true;
}

/*
 * Refuse a packet because of the protocol behind its headers (RFC 8986, 4.1.1). Return
 * false if the kernel takes the packet: a ping of the SID (RFC 9259), or a fragment.
 */
static bool
upper_refuse(struct burst *b, unsigned int i, const struct sid_packet *p)
{
	return p->upper != PROTO_ICMP6 && p->upper != PROTO_FRAGMENT &&
	       sid_refuse(b, i, DROP_srv6_upper, p->upper_at);
}

/* Decapsulate a packet. */
static bool
sid_open(struct burst *b, unsigned int i, const struct fib_sid *sid,
	 const struct sid_packet *p, fib_path neighbor)
{
	uint8_t *ip = burst_l3(b, i);
	uint8_t family = sid_packet_inside(ip, burst_l3_room(b, i), p);

	if ((p->upper != PROTO_IP4 && p->upper != PROTO_IP6) ||
	    !sid_opens(sid, p->upper == PROTO_IP4 ? 4 : 6))
		return upper_refuse(b, i, p);
	if (family == 0) /* truncated */
		return false;
	if (!fib_tunnel_ecn(ip + p->upper_at, family, ip_dsfield(ip, 6) & ECN_MASK)) {
		burst_leave(b, i, DROP_ecn_ce);
		return true;
	}
	return sid_again(b, i, sid, p->upper_at, neighbor);
}

#define KEPT_MAX 256 /* the most octets before a routing header that is removed */

/* Return the number of octets of the frame before the routing header. */
static size_t
kept_bytes(const struct burst *b, unsigned int i, const struct sid_packet *p)
{
	return (size_t)(burst_l3(b, i) + p->srh_at - burst_frame(b, i));
}

/* Penultimate segment pop: remove the routing header, whose segments are all used. */
static void
srh_remove(struct burst *b, unsigned int i, const struct sid_packet *p)
{
	uint8_t *ip = burst_l3(b, i);
	struct rte_mbuf *m = b->m[i];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), kept[KEPT_MAX];

	ip[p->srh_next_at] = ip[p->srh_at];
	put_be16(ip + 4, (uint16_t)(get_be16(ip + 4) - p->srh_bytes));
	memcpy(kept, frame, kept_bytes(b, i, p));
	memcpy(frame + p->srh_bytes, kept, kept_bytes(b, i, p));
	m->data_off = (uint16_t)(m->data_off + p->srh_bytes);
	m->data_len = (uint16_t)(m->data_len - p->srh_bytes);
	m->pkt_len -= p->srh_bytes;
	b->l2[i] += p->srh_bytes;
	b->l3_len[i] = (uint16_t)(b->l3_len[i] - p->srh_bytes);
}

bool
fwd_sid_local_may_refuse(const struct fib *fib, uint16_t vrf, fib_path path,
			 const struct ipaddr *dst)
{
	enum path_kind kind = path_kind(path);

	return (kind == PATH_UNREACHABLE || kind == PATH_PROHIBIT ||
		kind == PATH_BLACKHOLE) &&
	       atomic_load_explicit(&fib->local_refuses6, memory_order_relaxed) &&
	       (vrf == 0 || path_kind(fib_resolve(fib, 0, 6, dst, 0)) == kind);
}

/*
 * Return the path of a packet to its next segment, in the table of its end point.
 * Source-specific routes are used.
 */
static fib_path
next_path(const struct burst *b, unsigned int i, const struct fib_sid *sid,
	  const struct ipaddr *next)
{
	const struct fib *fib = b->fwd->fib;
	uint16_t vrf = sid_vrf(sid, b->in->vrf);
	struct fib_rules_key key = {.main = b->fwd->tries, .vrf = vrf, .family = 6};
	struct fib_rules_hit hit;
	uint8_t head[40];

	key.flow_hash = flow_hash(burst_l3(b, i), burst_l3_room(b, i), 6, fib->seed);
	if (!sid_is_alone(sid) || !fib_has_sources6(fib))
		return fib_resolve(fib, vrf, 6, next, key.flow_hash);
	memcpy(head, burst_l3(b, i), sizeof(head));
	memcpy(head + 24, next->octet, 16);
	key.ip = head;
	key.room = sizeof(head);
	fib_rules_table(fib, fib_rules(fib, 6), &key, vrf, &hit);
	return path_kind(hit.path) == PATH_VRF
		       ? fib_resolve_in_vrf(fib, hit.path, 6, next, key.flow_hash)
		       : hit.path;
}

/*
 * Return true if only the kernel can handle the packet, and must get it with its SID. This
 * is so in two cases. The route of the next segment is in another VRF than the ingress
 * interface and leads to the kernel, which would look up the next segment in the VRF of the
 * ingress port. Or the route may be one of table local, although the end point looks up its
 * table alone.
 */
static bool
next_is_the_kernels(const struct burst *b, unsigned int i, const struct fib_sid *sid,
		    const struct ipaddr *next)
{
	const struct fib *fib = b->fwd->fib;
	uint16_t vrf = sid_vrf(sid, b->in->vrf);
	/* Without routes that refuse in table local there is nothing to look up. */
	bool is_alone = sid_is_alone(sid) &&
			atomic_load_explicit(&fib->local_refuses6, memory_order_relaxed);
	enum path_kind kind;
	fib_path path;

	if (vrf == b->in->vrf && !is_alone)
		return false;
	path = next_path(b, i, sid, next);
	kind = path_kind(path);
	return (vrf != b->in->vrf && (kind == PATH_KERNEL || kind == PATH_LOCAL)) ||
	       (is_alone && fwd_sid_local_may_refuse(fib, vrf, path, next));
}

/*
 * Return true for an end point that advances to the next segment. The others decapsulate.
 */
static bool
sid_goes_on(const struct fib_sid *sid)
{
	return sid->action <= SRV6_END_T || sid->action == SRV6_END_B6_ENCAPS;
}

/*
 * Carry out End, End.X, End.T, End.B6.Encaps: advance to the next segment.
 *
 * shift  the next segment is in the destination address, and `p` is unused
 */
static bool
sid_advance(struct burst *b, unsigned int i, const struct fib_sid *sid,
	    const struct sid_packet *p, bool shift, fib_path neighbor)
{
	uint8_t *ip = burst_l3(b, i);
	struct ipaddr next;

	if (!shift && p->left == 0)
		return sid_open(b, i, sid, p, neighbor);
	memcpy(next.octet, shift ? ip + 24 : sid_segment(ip, p), 16);
	if (shift)
		sid_shift(sid, next.octet);
	if (next_is_the_kernels(b, i, sid, &next))
		return false;
	if (ip[7] <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return true;
	}
	if (shift) {
		memcpy(ip + 24, next.octet, 16);
		return sid_again(b, i, sid, 0, neighbor);
	}
	/*
	 * If the packet is inside outer headers, the removal of its routing header would
	 * make the lengths in the outer headers wrong, and the kernel might get the packet
	 * later. So the kernel takes the packet now.
	 */
	if (kept_bytes(b, i, p) > KEPT_MAX ||
	    (burst_l2(b, i) != burst_frame(b, i) && p->left == 1 &&
	     (sid->flavors & SRV6_PSP) != 0))
		return false;
	memcpy(ip + 24, next.octet, 16);
	ip[p->srh_at + 3]--;
	if (p->left == 1 && (sid->flavors & SRV6_PSP) != 0)
		srh_remove(b, i, p);
	return sid_again(b, i, sid, 0, neighbor);
}

/* Carry out the end point of a packet's path, as fwd_sid_use() does. */
static bool
sid_carry_out(struct burst *b, unsigned int i)
{
	const struct fib_sid *sid = &b->fwd->fib->sid[path_index(b->path[i])];
	const uint8_t *ip = burst_l3(b, i);
	bool shift = sid_has_argument(sid, ip + 24);
	fib_path neighbor = PATH(PATH_NONE, 0);
	struct sid_packet p = {0};

	if (burst_has_labels(b, i) || !b->in->forward6 ||
	    (ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80) ||
	    sid_vrf(sid, b->in->vrf) == FIB_VRF_NONE)
		return false;
	/*
	 * RFC 9800, 4.1.1: with an argument in the SID, the headers behind that of IPv6 are
	 * not read.
	 */
	if (!shift && !sid_packet_read(ip, burst_l3_room(b, i), &p))
		return p.wrong_at != 0 && sid_refuse(b, i, DROP_srv6_segments, p.wrong_at);
	if (!sid_goes_on(sid) && p.left != 0) /* RFC 8986, 4.4 to 4.8 */
		return sid_refuse(b, i, DROP_srv6_segments, p.srh_at + 3u);
	if (sid->family != 0 || sid->action == SRV6_END_B6_ENCAPS) {
		neighbor =
			sid->family != 0
				? sid_neighbor(b, i, sid, sid_goes_on(sid) ? 0 : p.upper_at)
				: sid_policy(b, i, sid, &p);
		if (path_kind(neighbor) == PATH_NONE)
			return false;
	}
	if (sid_goes_on(sid))
		return sid_advance(b, i, sid, &p, shift, neighbor);
	return sid_open(b, i, sid, &p, neighbor);
}

/*
 * Return the number of the FIB in which a packet was looked up first. Policy rules choose
 * it if they concern the packet.
 */
static uint16_t
packet_fib(const struct burst *b, unsigned int i)
{
	struct fib_rules_hit hit;

	if ((b->fwd->hook_moved >> i & 1) != 0)
		return b->fwd->hook_vrf[i];
	if (!fwd_rules_ask(b, i, &hit))
		return b->in->vrf;
	return path_kind(hit.path) == PATH_VRF ? (uint16_t)path_index(hit.path)
					       : hit.number;
}

/* Return the table of a FIB; 0: the FIB is gone. */
static uint32_t
fib_table(const struct fib *fib, uint16_t number)
{
	const struct fib_vrf *of = number == 0 ? NULL : fib_vrf(fib, number);

	return number == 0 ? RT_TABLE_MAIN : of == NULL ? RT_TABLE_UNSPEC : of->table;
}

uint32_t
fwd_sid_number(const struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const uint8_t *ip = burst_l3(b, i);
	struct ipaddr dst;
	uint16_t vrf;

	if (atomic_load_explicit(&fib->sid_numbers->n_not_main, memory_order_relaxed) == 0)
		return fib_sid_number_find(fib, RT_TABLE_MAIN, ip + 24);
	memcpy(dst.octet, ip + 24, sizeof(dst.octet));
	vrf = fib_route_vrf(fib, packet_fib(b, i), 6, &dst,
			    flow_hash(ip, burst_l3_room(b, i), 6, fib->seed));
	return fib_sid_number_find(fib, fib_table(fib, vrf), dst.octet);
}

/* Count a packet with `bytes` octets that the end point of a SID has taken. */
static void
sid_count(struct burst *b, unsigned int i, uint32_t number, uint16_t bytes)
{
	struct sid_counters *c = &b->fwd->count->sid[number];

	if (number == 0)
		return;
	if (b->verdict[i] != VERDICT_DECAPSULATED) {
		counter_add(&c->errors, 1);
		return;
	}
	counter_add(&c->packets, 1);
	counter_add(&c->bytes, bytes);
}

bool
fwd_sid_use(struct burst *b, unsigned int i)
{
	uint16_t bytes = b->l3_len[i];
	uint32_t number;

	if (b->family[i] != 6)
		return false;
	number = fwd_sid_number(b, i);
	if (!sid_carry_out(b, i))
		return false;
	sid_count(b, i, number, bytes);
	return true;
}

void
fwd_sid_admit(struct burst *b)
{
	struct fib_iface *in = &b->fwd->sid_in;
	const struct fib_vrf *vrf;
	uint64_t device;

	if (!b->by_sid ||
	    (b->sid_vrf == b->in->vrf && !(burst_has_sid_table(b) && b->in->rules6)))
		return;
	*in = *b->in;
	in->vrf = b->sid_vrf;
	/* IPv6: the rules of Linux see the port as the ingress interface. */
	if (burst_has_sid_table(b)) {
		in->rules6 = fib_has_sources6(b->fwd->fib);
		in->fast6 = in->fast6 && !in->rules6;
		b->in = in;
		return;
	}
	device = atomic_load_explicit(&b->fwd->fib->vrf_device[b->sid_vrf],
				      memory_order_relaxed);
	/* As in Linux, the VRF's own device counts as the ingress interface. */
	in->ifidx = (uint16_t)(FIB_EGRESS_VRF | b->sid_vrf);
	vrf = fib_vrf(b->fwd->fib, b->sid_vrf);
	if (vrf != NULL)
		memcpy(in->hook_name, vrf->name, sizeof(in->hook_name));
	in->hook_ifindex = fib_vrf_device_ifindex(device);
	if (in->hook_ifindex != 0)
		in->ifindex = in->hook_ifindex;
	in->forward4 = in->forward6 = true;
	in->rules4 = fib_rules(b->fwd->fib, 4) != NULL;
	in->rules6 = fib_rules(b->fwd->fib, 6) != NULL;
	in->fast4 = !in->rules4;
	in->fast6 = !in->rules6;
	in->ipv6_off = false;
	in->urpf4 = fib_vrf_device_urpf4(device);
	b->in = in;
}
