/* SPDX-License-Identifier: BSD-3-Clause */
/* vxlan: packets to VTEPs and from VTEPs, on the slow path. [fwd-n] */
#include "fwd/vxlan.h"

#include "fwd/frame_header.h"
#include "fwd/label.h"
#include "fwd/tunnel.h"
#include "fwd/vlan.h"
#include "port/vlan_tags.h"
#include "port/vxlan_write.h"

#define IP6_MTU_MIN 1280u /* RFC 8200, 5 */

/* --- from a VTEP ---------------------------------------------------------------------- */

/*
 * Return true if the UDP checksum is right, or is 0, which fib_vxlan_find() has allowed.
 * The port's result is not used, because a port may verify UDP even if no setting asks for
 * it, and may mean the inner packet.
 */
static bool
checksum_is_right(const struct burst *b, unsigned int i,
		  const struct fib_vxlan_found *found)
{
	const uint8_t *ip = burst_l3(b, i);
	unsigned int at = (unsigned int)(ip - burst_frame(b, i)) + found->udp_at;

	if (get_be16(ip + found->udp_at + 6) == 0)
		return true;
	return vxlan_udp_sum(b->m[i], ip, b->family[i], at,
			     (unsigned int)b->l3_len[i] - found->udp_at) == 0xffff;
}

/*
 * Call fib_tunnel_ecn(), and correct the outer UDP checksum, because the kernel gets the
 * whole frame if the inner packet is for this host. A change of an inner IPv4 header does
 * not change the outer sum, because the header checksum of the inner packet balances it.
 */
static bool
ecn_take(uint8_t *ip, const struct fib_vxlan_found *found, uint8_t ecn)
{
	uint8_t *inner = ip + found->at, *udp = ip + found->udp_at;
	uint16_t was = get_be16(inner), sum = get_be16(udp + 6);

	if (!fib_tunnel_ecn(inner, (uint8_t)found->family, ecn))
		return false;
	if (found->family == 6 && sum != 0 && get_be16(inner) != was) {
		/* RFC 1624, eqn. 3 */
		sum = (uint16_t)~inet_fold((uint16_t)~sum + (uint32_t)(uint16_t)~was +
					   get_be16(inner));
		put_be16(udp + 6, sum == 0 ? 0xffff : sum);
	}
	return true;
}

bool
fwd_vxlan_decap(struct burst *b, unsigned int i)
{
	uint8_t *ip = burst_l3(b, i), ecn = ip_dsfield(ip, b->family[i]) & ECN_MASK;
	struct fib_vxlan_found found =
		fib_vxlan_find(b->fwd->fib, b->in->vrf, b->family[i], ip,
			       burst_l3_room(b, i), &b->fwd->found_svi);

	/* The kernel takes a packet with MPLS labels, because it must pop them. */
	if (burst_has_labels(b, i) || (found.reason == N_REASON && found.ifidx == 0))
		return false;
	if (found.reason == N_REASON && !burst_outer_is_right(b, i))
		found.reason = DROP_ip4_checksum;
	else if (found.reason == N_REASON && !checksum_is_right(b, i, &found))
		found.reason = DROP_udp_checksum;
	else if (found.reason == N_REASON && !ecn_take(ip, &found, ecn))
		found.reason = DROP_ecn_ce;
	if (found.reason != N_REASON) {
		burst_leave(b, i, (enum reason)found.reason);
		return true;
	}
	burst_open(b, i, found.at, found.ifidx);
	return true;
}

/* --- to a VTEP ------------------------------------------------------------------------ */

/*
 * Return the length of the largest packet that goes to a neighbor. It may be below 1280,
 * the least MTU of IPv6: then the kernel fragments the outer packets.
 */
static unsigned int
mtu_of(const struct burst *b, unsigned int i, const struct fib_vxlan_hop *hop,
       const struct fib_vxlan_outer *outer)
{
	const struct fib *fib = b->fwd->fib;
	unsigned int mtu = fib_vxlan_mtu(fib, hop, outer, path_out(fib, outer->path));
	unsigned int own =
		fib_mtu(fib, b->path[i], fib_iface(fib, hop->ifidx), b->family[i]);

	return own < mtu ? own : mtu;
}

bool
fwd_vxlan_outer(struct burst *b, unsigned int i, const struct fib_vxlan_hop *hop,
		struct fib_vxlan_outer *outer)
{
	const uint8_t *ip = burst_l3(b, i);

	if (burst_has_labels(b, i) || path_kind(b->path[i]) == PATH_ENCAP) {
		burst_leave(b, i, PUNT_kernel_route);
		return false;
	}
	if (ip[b->family[i] == 4 ? 8 : 7] <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return false;
	}
	fib_vxlan_resolve(b->fwd->fib, hop, b->family[i], ip, burst_l3_room(b, i), outer);
	if (outer->reason == N_REASON && b->family[i] == 6) {
		unsigned int mtu = mtu_of(b, i, hop, outer);

		if (b->l3_len[i] > mtu && mtu < IP6_MTU_MIN)
			outer->reason = PUNT_kernel_route;
	}
	if (outer->reason == N_REASON)
		return true;
	fwd_outer_refuse(b, i, (enum reason)outer->reason);
	return false;
}

/*
 * Return the MAC address and interface of the neighbor of the outer packet; 0: it has none.
 */
static uint64_t
outer_hop(const struct fib *fib, const struct fib_vxlan_outer *outer)
{
	if (outer->reason != N_REASON || path_kind(outer->path) != PATH_ADJ)
		return 0;
	return atomic_load_explicit(&fib->adj[path_index(outer->path)].hop,
				    memory_order_acquire);
}

/* Write the headers before a packet that has passed all checks, and its MAC addresses. */
static void
frame_write(struct burst *b, unsigned int i, const struct fib_vxlan_hop *hop,
	    const struct fib_vxlan_outer *outer, const struct fib_iface *out)
{
	struct if_counters *c = &b->fwd->count->port[hop->ifidx];
	uint8_t *ip = burst_l3(b, i), *eth;
	struct rte_mbuf *m = b->m[i];

	if (b->family[i] == 4)
		ip4_ttl_dec(ip);
	else
		ip[7]--;
	counter_add(&c->tx_packets, 1);
	counter_add(&c->tx_bytes, b->l3_len[i]);
	vxlan_write(m, hop, b->family[i], b->l3_len[i], b->fwd->ip_id++, outer->hash);
	label_outer(b->fwd->fib, m, hop->t.family, outer->labels);
	eth = b->l2[i] = rte_pktmbuf_mtod(m, uint8_t *);
	if (out->n_tags != 0) {
		b->tags_out = true;
		eth = vlan_push(m, out);
	}
	frame_write_macs(eth, b->hop[i], out);
}

void
fwd_vxlan_rewrite(struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_vxlan_hop *hop = path_vxlan(fib, b->path[i]);
	const struct fib_iface *out = NULL;
	struct fib_vxlan_outer outer;
	unsigned int mtu;

	if (hop != NULL) {
		fib_vxlan_resolve(fib, hop, b->family[i], burst_l3(b, i),
				  burst_l3_room(b, i), &outer);
		b->hop[i] = outer_hop(fib, &outer);
		out = fib_iface(fib, b->hop[i] & 0xffff);
	}
	/*
	 * The neighbor of the packet, or of its outer packet, has changed within the burst.
	 */
	if (out == NULL || b->hop[i] == 0 || !out->up) {
		burst_icmp(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	mtu = mtu_of(b, i, hop, &outer);
	if (b->l3_len[i] > mtu) {
		packet_meta(b->m[i])->mtu_bytes = (uint16_t)mtu;
		burst_leave(b, i, PUNT_too_big);
		return;
	}
	if (!vxlan_fits(b->m[i], hop, outer.labels)) {
		burst_leave(b, i, DROP_no_headroom);
		return;
	}
	frame_write(b, i, hop, &outer, out);
}
