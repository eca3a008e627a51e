/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * headend: packets that get an outer header of SRv6, on the slow path: RFC 8986, 5.1 and
 * 5.2.                                                                          [fwd-n]
 */
#include "fwd/headend.h"

#include "base/inet.h"
#include "fwd/frame_header.h"
#include "fwd/label.h"
#include "fwd/sid.h"
#include "fwd/tunnel.h"
#include "port/vlan_tags.h"

static void
outer_find(const struct burst *b, unsigned int i, struct fib_headend_outer *outer)
{
	fib_headend_resolve(b->fwd->fib, b->path[i], b->family[i], burst_l3(b, i),
			    burst_l3_room(b, i), outer);
}

/* Drop or punt a packet whose outer packet cannot be sent. */
static void
outer_refuse(struct burst *b, unsigned int i, uint16_t reason)
{
	/*
	 * The end point has written the next segment into the packet, so the kernel would
	 * forward the packet to that segment.
	 */
	if (reason == PUNT_kernel_route && burst_has_sid_path(b))
		burst_leave(b, i, DROP_egress_down);
	else
		fwd_outer_refuse(b, i, (enum reason)reason);
}

bool
fwd_headend_outer(struct burst *b, unsigned int i, struct fib_headend_outer *outer)
{
	if (burst_has_labels(b, i)) { /* the kernel pops them */
		burst_leave(b, i, PUNT_kernel_route);
		return false;
	}
	if (burst_l3(b, i)[b->family[i] == 4 ? 8 : 7] <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return false;
	}
	outer_find(b, i, outer);
	if (outer->reason == N_REASON)
		return true;
	outer_refuse(b, i, outer->reason);
	return false;
}

/* Return the length of the largest packet. RTAX_MTU of the route excludes outer headers. */
static unsigned int
inner_mtu(const struct burst *b, unsigned int i, const struct fib_headend_outer *outer)
{
	const struct fib *fib = b->fwd->fib;

	return fib_mtu_of_path(fib, b->path[i], (uint16_t)fib_headend_mtu(fib, outer));
}

void
fwd_headend_rewrite(struct burst *b, unsigned int i)
{
	uint8_t *ip = burst_l3(b, i), family = b->family[i], *eth;
	unsigned int len = b->l3_len[i], bytes, room, mtu;
	struct rte_mbuf *m = b->m[i];
	struct fib_headend_outer outer;
	const struct fib_iface *out = fib_iface(b->fwd->fib, b->hop[i] & 0xffff);

	outer_find(b, i, &outer);
	if (outer.reason != N_REASON || out == NULL || out != outer.out) {
		/* The path has changed within the burst. */
		burst_icmp(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	mtu = inner_mtu(b, i, &outer);
	if (len > mtu) {
		packet_meta(m)->mtu_bytes = (uint16_t)mtu;
		burst_leave(b, i, PUNT_too_big);
		return;
	}
	bytes = outer.headend->bytes;
	room = bytes + outer_label_bytes(outer.labels) + VLAN_TAGS * VLAN_BYTES;
	if (rte_pktmbuf_headroom(m) < room) {
		burst_leave(b, i, DROP_no_headroom);
		return;
	}
	if (family == 4)
		ip4_ttl_dec(ip);
	else
		ip[7]--;
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	headend_put(&outer, ip, family, len);
	m->data_off = (uint16_t)(m->data_off - bytes);
	m->data_len = (uint16_t)(m->data_len + bytes);
	m->pkt_len += bytes;
	put_be16(rte_pktmbuf_mtod_offset(m, uint8_t *, L2_LEN - 2), 0x86dd);
	label_outer(b->fwd->fib, m, 6, outer.labels);
	eth = b->l2[i] = rte_pktmbuf_mtod(m, uint8_t *);
	if (out->n_tags != 0) {
		b->tags_out = true;
		eth = vlan_push(m, out);
	}
	frame_write_macs(eth, b->hop[i], out);
}
