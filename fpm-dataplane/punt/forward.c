/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward: forward one packet in the punt thread: a packet that waited for its neighbor, an
 * ICMP error of our own, or a fragment. The rules are those of the forwarders, for one
 * packet at a time. [punt]
 *
 * A packet larger than the egress MTU is fragmented (librte_ip_frag) if it is IPv4 without
 * DF. About any other packet the sender gets an ICMP error with the MTU.
 *
 * punt_forward() also forwards the ICMP errors and the fragments that it makes, so it calls
 * itself. It calls neigh_queue.c, icmp.c, tapio.c and out.c. These files never call it.
 */
#include <errno.h>
#include <string.h>

#include <rte_ip_frag.h>

#include "base/inet.h"
#include "fib/rules.h"
#include "port/label_write.h"
#include "port/vlan_tags.h"
#include "punt/headend.h"
#include "port/vxlan_write.h"
#include "punt/internal.h"
#include "punt/label.h"
#include "punt/tunnel.h"

/* A packet of 1500 octets with a header of 60 makes 180 fragments at an MTU of 68. */
#define PIECES_MAX 256

/* Forward an ICMP error of our own; NULL: no error. */
static void
error_send(struct punt *p, struct rte_mbuf *e)
{
	if (e != NULL)
		punt_forward(p, e, packet_meta(e)->family, true, true);
}

/*
 * Send an ICMP error about a packet whose labels have been removed. If the labels do not
 * end on this router, the error gets the same labels and takes the path of the packet (RFC
 * 3032, 2.3.2).
 */
static void
labels_error_send(struct punt *p, struct rte_mbuf *e, const struct punt_labels *labels)
{
	if (e == NULL)
		return;
	if (labels->lead.end_here)
		error_send(p, e);
	else if (punt_labels_put(e, labels, UINT8_MAX))
		punt_forward(p, e, packet_meta(e)->family, true, true);
	else
		punt_drop(p, e, DROP_no_headroom);
}

/* Send the ICMP error about a packet, which may have labels. Changes `m`. */
static void
sender_answer(struct punt *p, struct rte_mbuf *m, enum reason cause)
{
	struct punt_labels labels;

	if (!packet_meta(m)->has_labels)
		error_send(p, icmp_make_for_drop(p, m, cause, NULL));
	else if (punt_labels_take(p, m, &labels))
		labels_error_send(p, icmp_make_for_drop(p, m, cause, &labels), &labels);
}

/*
 * Drop a packet that cannot be forwarded. Send its sender an ICMP error unless we
 * originated the packet.
 */
static void
packet_give_up(struct punt *p, struct rte_mbuf *m, bool originated, enum reason reason)
{
	punt_lost(p, m, reason);
	if (!originated)
		sender_answer(p, m, reason);
	rte_pktmbuf_free(m);
}

/* Return true if the filter lets a packet pass. Otherwise the packet has been dropped. */
static bool
packet_passes(struct punt *p, struct rte_mbuf *m, uint8_t *ip, uint8_t family,
	      const struct fib_iface *out)
{
	enum punt_judgment judgment = punt_filter(p, m, ip, family, out);

	if (judgment == PUNT_REJECTED)
		punt_tell_sender(p, m, DROP_filter);
	return judgment == PUNT_PASSES;
}

/* Write the Ethernet header and the tags, and give the frame to a forwarder. */
static void
frame_send(struct punt *p, struct rte_mbuf *m, uint64_t hop, const struct fib_iface *out)
{
	uint64_t mac = __builtin_bswap64(hop);
	uint8_t *eth = vlan_push(m, out);

	memcpy(eth, &mac, 6);
	memcpy(eth + 6, out->mac, 6);
	punt_inject(p, m, out->ifidx);
}

/*
 * Send a packet that loses labels, or gets some, to the neighbor `hop`. If `to` is not
 * NULL, the packet goes into the tunnels of `to` first, and `hop` is the neighbor of its
 * outer packet.
 */
static void
labels_send_by(struct punt *p, const struct label_packet *lp, bool originated,
	       fib_path path, const struct fib_tunnel_outer *to, uint64_t hop)
{
	const struct fib_iface *out = fib_iface(p->fib, hop & 0xffff);
	const struct fib_iface *by = to == NULL ? out : to->tunnel[0];
	uint8_t ttl = label_packet_ttl(lp);
	struct rte_mbuf *m = lp->m;
	unsigned int mtu;

	/* The TTL of our own packet must not be decremented here: undo the decrement. */
	if (originated && lp->pops == 0)
		ttl++;
	if (ttl == 0) {
		packet_give_up(p, m, originated, DROP_ttl);
		return;
	}
	if (out == NULL || !out->up) {
		packet_give_up(p, m, originated, DROP_egress_down);
		return;
	}
	if (!originated && !packet_passes(p, m, label_packet_rest(lp), lp->family, by))
		return;
	mtu = to == NULL ? label_mtu(p->fib, path, out, lp)
			 : label_tunnel_mtu(p->fib, path, by, lp,
					    fib_tunnel_mtu(p->fib, to, out));
	if (label_rest_bytes(lp) > mtu) {
		packet_meta(m)->family = lp->family;
		punt_fragment(p, m, (uint16_t)mtu);
		return;
	}
	label_packet_trim(lp);
	if (!packet_make_room(m, label_room(lp, to == NULL ? 0 : tunnel_room(to))) ||
	    !label_write(lp, ttl)) {
		punt_drop(p, m, DROP_no_headroom);
		return;
	}
	if (to != NULL) {
		punt_tunnel_count(p, to, rte_pktmbuf_pkt_len(m) - L2_LEN);
		label_enter_tunnels(p->fib, m, to, p->ip_id++);
	}
	if (!originated)
		counter_add(&p->count->forwarded[lp->family == 0   ? 2
						 : lp->family == 6 ? 1
								   : 0],
			    1);
	frame_send(p, m, hop, out);
}

/*
 * Return true if a packet without labels may leave by the port or VLAN `out`. If not, the
 * packet has been dropped. `by` is the interface that filters see: `out`, or a tunnel.
 */
static bool
packet_may_leave(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
		 const struct fib_iface *by, const struct fib_iface *out)
{
	uint8_t *ip = l3_of(m);

	if (!originated && ip[family == 4 ? 8 : 7] <= 1) {
		packet_give_up(p, m, originated, DROP_ttl);
		return false;
	}
	if (out == NULL || !out->up) {
		packet_give_up(p, m, originated, DROP_egress_down);
		return false;
	}
	return originated || packet_passes(p, m, ip, family, by);
}

static void
ttl_lower(uint8_t *ip, uint8_t family)
{
	if (family == 4)
		ip4_ttl_dec(ip);
	else
		ip[7]--;
}

static void
packet_send_by(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
	       fib_path path, uint64_t hop)
{
	const struct fib_iface *out = fib_iface(p->fib, hop & 0xffff);
	uint8_t *ip = l3_of(m);
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);

	if (!packet_may_leave(p, m, family, originated, out, out))
		return;
	if (len > fib_mtu(p->fib, path, out, family)) {
		punt_fragment(p, m, fib_mtu(p->fib, path, out, family));
		return;
	}
	if (!originated) {
		ttl_lower(ip, family);
		counter_add(&p->count->forwarded[family == 6], 1);
	}
	put_be16(ip - 2, family == 4 ? 0x0800 : 0x86dd);
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	frame_send(p, m, hop, out);
}

/* Send a packet into tunnels, and its outer packet to the neighbor `hop`. */
static void
tunnel_send_by(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
	       fib_path path, const struct fib_tunnel_outer *to, uint64_t hop)
{
	const struct fib_iface *tunnel = to->tunnel[0],
			       *out = fib_iface(p->fib, hop & 0xffff);
	uint8_t *ip = l3_of(m);
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4), mtu;

	if (!packet_may_leave(p, m, family, originated, tunnel, out))
		return;
	mtu = fib_tunnel_mtu(p->fib, to, out);
	if (mtu > fib_mtu(p->fib, path, tunnel, family))
		mtu = fib_mtu(p->fib, path, tunnel, family);
	if (len > mtu) {
		punt_fragment(p, m, (uint16_t)mtu);
		return;
	}
	if (!originated)
		ttl_lower(ip, family);
	if (!punt_tunnel_write(p, m, family, to)) {
		punt_drop(p, m, DROP_no_headroom);
		return;
	}
	if (!originated)
		counter_add(&p->count->forwarded[family == 6], 1);
	frame_send(p, m, hop, out);
}

/* Send a packet behind an outer header of SRv6 to the neighbor `hop`. */
static void
headend_send_by(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
		fib_path path, const struct fib_headend_outer *ho, uint64_t hop)
{
	const struct fib_iface *out = fib_iface(p->fib, hop & 0xffff);
	uint8_t *ip = l3_of(m);
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	uint16_t mtu;

	if (!packet_may_leave(p, m, family, originated, out, out))
		return;
	mtu = fib_mtu_of_path(p->fib, path, (uint16_t)fib_headend_mtu(p->fib, ho));
	if (len > mtu) {
		punt_fragment(p, m, mtu);
		return;
	}
	if (!originated)
		ttl_lower(ip, family);
	if (!punt_headend_write(p, m, family, ho)) {
		punt_drop(p, m, DROP_no_headroom);
		return;
	}
	if (!originated)
		counter_add(&p->count->forwarded[family == 6], 1);
	frame_send(p, m, hop, out);
}

/*
 * Send a packet to a neighbor behind a VXLAN, and its outer packet to the neighbor `hop`.
 */
static void
vxlan_send_by(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
	      fib_path path, const struct fib_vxlan_hop *vxlan,
	      const struct fib_vxlan_outer *vo, uint64_t hop)
{
	const struct fib_iface *iface = fib_iface(p->fib, vxlan->ifidx),
			       *out = fib_iface(p->fib, hop & 0xffff);
	uint8_t *ip = l3_of(m);
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4), mtu;
	struct if_counters *c = &p->count->port[vxlan->ifidx];

	if (!packet_may_leave(p, m, family, originated, iface, out))
		return;
	mtu = fib_vxlan_mtu(p->fib, vxlan, vo, out);
	if (mtu > fib_mtu(p->fib, path, iface, family))
		mtu = fib_mtu(p->fib, path, iface, family);
	if (len > mtu) {
		punt_fragment(p, m, (uint16_t)mtu);
		return;
	}
	if (!vxlan_fits(m, vxlan, vo->labels)) {
		punt_drop(p, m, DROP_no_headroom);
		return;
	}
	if (!originated) {
		ttl_lower(ip, family);
		counter_add(&p->count->forwarded[family == 6], 1);
	}
	counter_add(&c->tx_packets, 1);
	counter_add(&c->tx_bytes, len);
	vxlan_write(m, vxlan, family, len, p->ip_id++, vo->hash);
	label_outer(p->fib, m, vxlan->t.family, vo->labels);
	frame_send(p, m, hop, out);
}

/* A packet and its path out of the router. */
struct forward_path {
	struct label_packet lp;
	fib_path path; /* the result of the lookup */
	/*
	 * The path that leads to the neighbor: `path` itself, or the path of the labels, of
	 * the tunnel or of the outer header.
	 */
	fib_path neighbor;
	bool has_headend; /* the packet gets an outer header of SRv6: `ho` */
	struct fib_headend_outer ho;
	bool has_labels; /* the packet came with labels */
	/* the tunnel that the packet enters; NULL: none */
	const struct fib_iface *tunnel;
	struct fib_tunnel_outer to;        /* valid if `tunnel` is not NULL */
	const struct fib_vxlan_hop *vxlan; /* the neighbor behind a VXLAN; NULL: none */
	struct fib_vxlan_outer vo;         /* valid if `vxlan` is not NULL */
};

/* Find the path of an IP packet without labels. */
static void
packet_find_path(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
		 struct forward_path *fp)
{
	const struct packet_meta *meta = packet_meta(m);
	const uint8_t *ip = l3_of(m);
	struct ipaddr dst = {0};

	const struct fib_iface *in = originated ? NULL : fib_iface(p->fib, meta->in_ifidx);
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN;

	memcpy(dst.octet, family == 4 ? ip + 16 : ip + 24, family_octets(family));
	if (originated && (meta->on_link || (family == 6 && ipaddr_is_linklocal6(&dst))))
		fp->path = fib_onlink(p->fib, meta->out_ifidx, family, &dst);
	else if (!originated && meta->has_lookup_vrf)
		fp->path =
			fib_resolve_in_vrf(p->fib, PATH(PATH_VRF, meta->lookup_vrf), family,
					   &dst, flow_hash(ip, room, family, p->fib->seed));
	else if (in != NULL && in->vrf != meta->vrf)
		/*
		 * An end point of SRv6 has put the packet in this VRF, so the rules for the
		 * port do not apply.
		 */
		fp->path = fib_resolve_ip(p->fib, meta->vrf, family, ip, room);
	else if (originated && family == 4 && ip[9] == IPPROTO_ICMP)
		fp->path = fib_resolve_error(p->fib, meta->vrf, family, ip);
	else
		fp->path = fib_resolve_packet(p->fib, in, meta->vrf, family, ip, room);
	fp->lp = (struct label_packet){
		.m = m,
		.family = family,
		.l3_bytes =
			family == 4 ? get_be16(ip + 2) : (uint16_t)(40u + get_be16(ip + 4)),
		.uniform_ttl =
			atomic_load_explicit(&p->fib->label_ttl, memory_order_relaxed)};
	if (path_kind(fp->path) == PATH_ENCAP)
		fp->lp.encap = fib_encap(p->fib, fp->path);
}

/* Find the neighbor of the outer packet. A packet with labels goes to the kernel. */
static void
headend_find_neighbor(struct punt *p, struct forward_path *fp)
{
	fp->neighbor = PATH(PATH_KERNEL, 0);
	if (fp->has_labels)
		return;
	punt_headend_outer(p, fp->lp.m, fp->lp.family, fp->path, &fp->ho);
	fp->has_headend = fp->ho.reason == N_REASON;
	if (fp->has_headend)
		fp->neighbor = fp->ho.path;
	else if (fp->ho.reason == DROP_egress_down)
		fp->neighbor = PATH(PATH_DOWN, 0);
	else if (fp->ho.reason != PUNT_kernel_route)
		/* the path of a route that refuses packets, or of no route */
		fp->neighbor = fp->ho.path;
}

/* Find the path of the outer packet to a VTEP. */
static void
vxlan_find_outer(struct punt *p, struct forward_path *fp)
{
	const struct fib_iface *iface = fib_iface(p->fib, fp->vxlan->ifidx);
	struct rte_mbuf *m = fp->lp.m;

	fib_vxlan_resolve(p->fib, fp->vxlan, fp->lp.family, l3_of(m),
			  rte_pktmbuf_data_len(m) - L2_LEN, &fp->vo);
	fp->neighbor = fp->vo.reason == N_REASON ? fp->vo.path : PATH(PATH_DOWN, 0);
	/* Give the packet to the kernel, which sends it by its own vxlan device. */
	if (fp->vo.reason == PUNT_kernel_route)
		fp->neighbor = PATH(PATH_KERNEL, iface->ifindex & PATH_INDEX_MASK);
}

/* Find the path of the outer packet of a tunnel. */
static void
tunnel_find_outer(struct punt *p, struct forward_path *fp)
{
	const struct fib_tunnel *t = &fp->tunnel->tunnel;
	const struct label_packet *lp = &fp->lp;

	fib_tunnel_resolve(p->fib, fp->tunnel->ifidx, label_ds(lp), &fp->to);
	if (fp->to.reason == N_REASON &&
	    (label_packet_keeps(lp) ? !t->gre
				    : !tunnel_takes(t, label_packet_rest(lp), lp->family)))
		fp->to.reason = PUNT_kernel_route;
	fp->neighbor = fp->to.reason == N_REASON ? fp->to.path : PATH(PATH_DOWN, 0);
	/* Give the packet to the kernel, which sends it by its own tunnel device. */
	if (fp->to.reason == PUNT_kernel_route)
		fp->neighbor = PATH(PATH_KERNEL, fp->tunnel->ifindex & PATH_INDEX_MASK);
}

/*
 * Return the neighbor's MAC address and interface, as in an adjacency. 0: unknown, or the
 * path leads to no neighbor.
 */
static uint64_t
path_hop(struct punt *p, struct forward_path *fp)
{
	uint32_t adj;

	fp->neighbor = fp->path;
	if (path_is_headend(p->fib, fp->path))
		headend_find_neighbor(p, fp);
	else if (path_kind(fp->path) == PATH_ENCAP && path_index(fp->path) != 0)
		fp->neighbor = encap_next(fp->lp.encap);
	fp->tunnel = path_tunnel(p->fib, fp->neighbor);
	if (fp->tunnel != NULL)
		tunnel_find_outer(p, fp);
	fp->vxlan = fp->has_labels ? NULL : path_vxlan(p->fib, fp->path);
	if (fp->vxlan != NULL)
		vxlan_find_outer(p, fp);
	if (path_kind(fp->neighbor) != PATH_ADJ)
		return 0;
	adj = path_index(fp->neighbor);
	fib_adj_touch(p->fib->adj_used, adj);
	return atomic_load_explicit(&p->fib->adj[adj].hop, memory_order_acquire);
}

/*
 * Find the path of a packet, and set *hop to the MAC address and the interface of its
 * neighbor (0: not known). Return false if the packet was dropped or given to the kernel.
 */
static bool
packet_find_hop(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
		struct forward_path *fp, uint64_t *hop)
{
	uint16_t reason = N_REASON;

	*fp = (struct forward_path){.has_labels = packet_meta(m)->has_labels};
	if (fp->has_labels)
		reason = punt_label_resolve(p, m, &fp->lp, &fp->path);
	else
		packet_find_path(p, m, family, originated, fp);
	if (reason == PUNT_not_ip) {
		tap_deliver(p, m);
		return false;
	}
	if (reason != N_REASON) {
		punt_drop(p, m, (enum reason)reason);
		return false;
	}
	*hop = path_hop(p, fp);
	return true;
}

/* Return the neighbor of a packet; family 0: its path leads to no neighbor. */
static struct neigh_key
forward_path_key(const struct punt *p, const struct forward_path *fp)
{
	enum path_kind kind = path_kind(fp->neighbor);

	if (kind != PATH_ADJ && kind != PATH_ONLINK)
		return (struct neigh_key){0};
	if (fp->tunnel != NULL && kind == PATH_ONLINK)
		return punt_tunnel_key(&fp->to);
	if (fp->vxlan != NULL)
		return punt_vxlan_key(p, fp->vxlan, fp->neighbor);
	if (fp->has_headend)
		return punt_headend_key(p, &fp->ho);
	return neigh_key_of(p, fp->neighbor, fp->lp.family, label_packet_rest(&fp->lp));
}

/* Send a packet to a neighbor whose MAC address is known. Takes `m`. */
static void
forward_to_hop(struct punt *p, struct rte_mbuf *m, bool originated, struct forward_path *fp,
	       uint64_t hop)
{
	uint8_t family = fp->lp.family;

	if (fp->has_headend)
		headend_send_by(p, m, family, originated, fp->path, &fp->ho, hop);
	else if (fp->has_labels || path_kind(fp->path) == PATH_ENCAP)
		labels_send_by(p, &fp->lp, originated, fp->path,
			       fp->tunnel == NULL ? NULL : &fp->to, hop);
	else if (fp->tunnel != NULL)
		tunnel_send_by(p, m, family, originated, fp->path, &fp->to, hop);
	else if (fp->vxlan != NULL)
		vxlan_send_by(p, m, family, originated, fp->path, fp->vxlan, &fp->vo, hop);
	else
		packet_send_by(p, m, family, originated, fp->path, hop);
}

/* Forward a packet whose neighbor's MAC address is not known. Takes `m`. */
static void
forward_without_hop(struct punt *p, struct rte_mbuf *m, bool originated, bool may_wait,
		    const struct forward_path *fp)
{
	struct packet_meta *meta = packet_meta(m);
	enum path_kind kind = path_kind(fp->neighbor);
	uint8_t family = fp->lp.family;
	struct neigh_key key;

	if ((kind == PATH_LOCAL || kind == PATH_KERNEL) && !originated) {
		if (meta->has_lookup_vrf) /* the kernel would use another table */
			punt_drop(p, m, DROP_foreign_oif);
		else
			tap_deliver(p, m);
		return;
	}
	if (kind == PATH_KERNEL && !fp->has_labels) {
		punt_originate(p, m, family, fp->neighbor);
		return;
	}
	if (kind != PATH_ADJ && kind != PATH_ONLINK) {
		packet_give_up(p, m, originated,
			       originated ? DROP_no_route : path_cause(kind));
		return;
	}
	key = forward_path_key(p, fp);
	if (family == 6 && fib_ipv6_is_off(p->fib, key.family, key.ifidx)) {
		packet_give_up(p, m, originated, DROP_ipv6_off);
		return;
	}
	if (!may_wait) {
		packet_give_up(p, m, originated, DROP_neigh_failed);
		return;
	}
	meta->family = family;
	if (originated)
		meta->in_ifidx = 0;
	neigh_queue_add(p, m, &key);
}

void
punt_forward(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
	     bool may_wait)
{
	struct forward_path fp;
	uint64_t hop;

	if (!packet_find_hop(p, m, family, originated, &fp, &hop))
		return;
	if (hop != 0)
		forward_to_hop(p, m, originated, &fp, hop);
	else
		forward_without_hop(p, m, originated, may_wait, &fp);
}

void
punt_forward_in_turn(struct punt *p, struct rte_mbuf *m)
{
	struct packet_meta *meta = packet_meta(m);
	struct forward_path fp;
	struct neigh_key key;
	uint64_t hop;

	if (!packet_find_hop(p, m, meta->family, false, &fp, &hop))
		return;
	key = forward_path_key(p, &fp);
	if (hop != 0 && neigh_queue_exists(p, &key)) {
		meta->family = fp.lp.family;
		neigh_queue_add(p, m, &key);
		return;
	}
	if (hop != 0)
		forward_to_hop(p, m, false, &fp, hop);
	else
		forward_without_hop(p, m, false, true, &fp);
	if (key.family != 0 && !neigh_queue_exists(p, &key))
		neigh_queue_over(p, &key);
}

void
punt_tell_sender(struct punt *p, struct rte_mbuf *m, enum reason cause)
{
	sender_answer(p, m, cause);
	rte_pktmbuf_free(m);
}

/* --- packets larger than the MTU: RFC 791 2.3, RFC 1191, RFC 8200 5 ------------------- */

/*
 * Drop a packet that must not be fragmented, and send an ICMP error with the MTU. Takes
 * `m`.
 */
static void
packet_too_big(struct punt *p, struct rte_mbuf *m, uint16_t mtu,
	       const struct punt_labels *labels)
{
	struct icmp_error error = {3, 4, mtu, labels};
	struct rte_mbuf *e;

	if (packet_meta(m)->family == 6)
		error = (struct icmp_error){2, 0, mtu < 1280 ? 1280 : mtu, labels};
	punt_lost(p, m, DROP_mtu);
	e = icmp_make(p, m, &error);
	if (labels != NULL)
		labels_error_send(p, e, labels);
	else
		error_send(p, e);
	rte_pktmbuf_free(m);
}

/*
 * Forward a fragment. `labels` are the labels of the whole packet; NULL: none. An ICMP
 * error of our own has no ingress interface.
 */
static void
piece_forward(struct punt *p, struct rte_mbuf *piece, const struct punt_labels *labels)
{
	bool originated = packet_meta(piece)->in_ifidx == 0;

	if (labels == NULL || punt_labels_put(piece, labels, 0))
		punt_forward(p, piece, 4, originated, true);
	else
		punt_drop(p, piece, DROP_no_headroom);
}

void
punt_fragment(struct punt *p, struct rte_mbuf *m, uint16_t mtu)
{
	struct punt_labels taken, *labels = NULL;
	struct packet_meta meta;
	struct rte_mbuf *piece[PIECES_MAX];
	unsigned int len, n_labels, below = 0;
	uint8_t l2[L2_LEN], *ip;
	int n;

	if (packet_meta(m)->has_labels) {
		struct label_packet lp;
		uint16_t ip_bytes;
		fib_path path;

		/* `mtu` counts the labels that stay on the packet. */
		if (label_ip_find(m, 0, &n_labels, &ip_bytes) == NULL ||
		    punt_label_resolve(p, m, &lp, &path) != N_REASON ||
		    !punt_labels_take(p, m, &taken)) {
			punt_drop(p, m, DROP_mtu);
			return;
		}
		below = (n_labels - lp.pops) * LABEL_BYTES;
		if (mtu < below + 68) {
			punt_drop(p, m, DROP_mtu);
			return;
		}
		mtu = (uint16_t)(mtu - below);
		labels = &taken;
	}
	meta = *packet_meta(m);
	ip = l3_of(m);
	if (meta.family == 6 || (get_be16(ip + 6) & 0x4000) != 0) {
		packet_too_big(p, m, mtu, labels);
		return;
	}
	len = get_be16(ip + 2);
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	memcpy(l2, rte_pktmbuf_mtod(m, const uint8_t *), L2_LEN);
	rte_pktmbuf_adj(m, L2_LEN);
	n = rte_ipv4_fragment_copy_nonseg_packet(m, piece, PIECES_MAX, mtu, p->conf.pool);
	if (n < 0) {
		rte_pktmbuf_prepend(m, L2_LEN); /* captures show the Ethernet header, too */
		punt_drop(p, m, n == -ENOMEM ? DROP_no_mbuf : DROP_mtu);
		return;
	}
	for (int i = 0; i < n; i++) {
		uint8_t *eth = (uint8_t *)rte_pktmbuf_prepend(piece[i], L2_LEN);

		memcpy(eth, l2, L2_LEN); /* the kernel and captures of drops read it */
		ip = eth + L2_LEN;
		ip[6] &= 0x7f; /* the reserved flag, which must be zero (RFC 791, 3.1) */
		put_be16(ip + 10, 0); /* the library leaves the checksum to the device */
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, (ip[0] & 15u) * 4, 0)));
		*packet_meta(piece[i]) = meta;
		vlan_inherit(piece[i], m);
		piece_forward(p, piece[i], labels);
	}
	rte_pktmbuf_free(m);
}

/* --- packets that waited -------------------------------------------------------------- */

/*
 * Forward each packet of an entry by its present route. If it no longer has a route, or the
 * neighbor was not resolved, drop it and send an ICMP error.
 *
 * `ip neigh flush` works in several rounds, so it may delete a neighbor that has just
 * replied. Then the packets wait for the next answer of neigh, at most QUEUE_AGAIN_MAX
 * times.
 */
static void
neigh_queue_release(struct punt *p, const struct neigh_queue *waited, bool resolved)
{
	struct neigh_key key = {waited->ifidx, waited->family, waited->addr, waited->adj};
	bool may_wait = resolved && waited->again < QUEUE_AGAIN_MAX;

	for (unsigned int i = 0; i < waited->n; i++) {
		struct rte_mbuf *m = waited->m[i];
		unsigned int n_waiting = p->n_waiting;

		if (may_wait && neigh_queue_exists(p, &key)) {
			/* Earlier packets to this neighbor wait: keep the order. */
			neigh_queue_add(p, m, &key);
			continue;
		}
		punt_forward(p, m, packet_meta(m)->family, packet_meta(m)->in_ifidx == 0,
			     may_wait);
		counter_add(&p->count->held, resolved && p->n_waiting == n_waiting);
	}
	neigh_queue_again(p, waited);
}

void
punt_release_answered(struct punt *p, const struct msg_neigh *answer)
{
	struct neigh_queue waited;

	if (neigh_queue_take_answered(p, answer, &waited))
		neigh_queue_release(p, &waited, answer->resolved);
}

void
punt_release_expired(struct punt *p, double now)
{
	struct neigh_queue waited;

	for (unsigned int place = 0; neigh_queue_take_expired(p, now, &place, &waited);)
		neigh_queue_release(p, &waited, false);
}
