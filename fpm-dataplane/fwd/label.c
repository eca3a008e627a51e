/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label: packets with MPLS labels (RFC 3031, RFC 3032). One function for each stage that
 * differs from that of IP packets. The octets of a frame do not change before the rewrite,
 * so that a packet for this host goes to the kernel as it came, with its labels.    [fwd-n]
 */
#include "fwd/label.h"

#include "base/inet.h"
#include "fib/label.h"
#include "fwd/frame_header.h"
#include "fwd/parse_ip.h"
#include "port/label_write.h"
#include "port/vlan_tags.h"

static bool
path_leaves(fib_path path)
{
	enum path_kind kind = path_kind(path);

	return kind == PATH_ADJ || kind == PATH_ONLINK ||
	       (kind == PATH_ENCAP && path_index(path) != 0);
}

struct label_packet
fwd_label_packet(const struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	struct burst_label label = {0};

	if (burst_has_labels(b, i)) /* otherwise the union has hop_octets, not label */
		label = b->label[i];
	return (struct label_packet){
		.m = b->m[i],
		.at = (uint16_t)burst_labels_at(b),
		.family = b->family[i],
		.pops = label.pops,
		.ttl = label.ttl,
		.carried = label.carried,
		.tc = label.tc,
		.bottom = label.bottom,
		.l3_bytes = b->l3_len[i],
		.uniform_ttl = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed),
		.encap = path_kind(b->path[i]) == PATH_ENCAP ? fib_encap(fib, b->path[i])
							     : NULL};
}

/*
 * Select the IP packet behind all labels, for an ICMP error about it. Return false, with
 * b->family 0, if there is none, or if the frame has only a part of it.
 */
static bool
payload_find(struct burst *b, unsigned int i)
{
	unsigned int n;
	const uint8_t *ip = label_ip_find(b->m[i], burst_labels_at(b), &n, &b->l3_len[i]);

	b->family[i] = 0;
	if (ip == NULL)
		return false;
	b->family[i] = ip[0] >> 4;
	b->l2[i] = (uint8_t *)(uintptr_t)(ip - L2_LEN);
	return true;
}

void
fwd_label_refuse(struct burst *b, unsigned int i, enum reason punt, enum reason cause)
{
	if (!burst_has_labels(b, i) || payload_find(b, i))
		burst_icmp(b, i, punt, cause);
	else
		burst_leave(b, i, cause);
}

/*
 * Handle a packet whose labels lead to a lookup of the IP packet of `family` behind them.
 */
static void
label_parse_ip(struct burst *b, unsigned int i, uint8_t family, uint16_t vrf)
{
	uint64_t flags = b->m[i]->ol_flags;

	/* The device verified no header behind labels. */
	b->m[i]->ol_flags &= ~RTE_MBUF_F_RX_IP_CKSUM_MASK;
	if (family == 4)
		fwd_parse_ip4(b, i);
	else
		fwd_parse_ip6(b, i);
	b->m[i]->ol_flags = flags;
	if (b->verdict[i] == VERDICT_GO)
		b->path[i] = fib_resolve_ip(b->fwd->fib, vrf, family, burst_l3(b, i),
					    burst_l3_room(b, i));
}

/* Store the result of the walk over the labels. */
static void
label_walk_store(struct burst *b, unsigned int i, const struct label_walk *walk)
{
	b->labels |= 1ull << i;
	b->path[i] = walk->path;
	b->label[i] = (struct burst_label){walk->n, walk->ttl, walk->carried, walk->tc & 7u,
					   walk->bottom};
}

void
fwd_label_parse(struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const uint8_t *eth = burst_l2(b, i);
	struct label_packet p;
	struct label_walk walk;

	if (!b->in->mpls) {
		/* A kernel without MPLS ignores the frame as one of an unknown protocol. */
		burst_leave(b, i,
			    atomic_load_explicit(&fib->mpls_known, memory_order_relaxed)
				    ? DROP_mpls_off
				    : PUNT_not_ip);
		return;
	}
	if (!burst_labels_inside(b) &&
	    ((eth[0] & 1) != 0 || get_be16(eth + 12) != MPLS_TYPE)) {
		burst_leave(b, i, DROP_mpls_multicast);
		return;
	}
	fib_label_walk(fib, burst_l3(b, i), burst_l3_segment(b, i), &walk);
	label_walk_store(b, i, &walk);
	if (walk.reason != N_REASON) {
		burst_leave(b, i, (enum reason)walk.reason);
		return;
	}
	if (walk.payload != 0 &&
	    (path_kind(walk.path) == PATH_VRF || path_kind(walk.path) == PATH_ADJ ||
	     path_kind(walk.path) == PATH_ONLINK)) {
		b->l2[i] += walk.n * LABEL_BYTES;
		if (path_kind(walk.path) == PATH_VRF)
			label_parse_ip(b, i, walk.payload, (uint16_t)path_index(walk.path));
		else if (!payload_find(b, i))
			burst_leave(b, i, DROP_mpls_payload);
	}
	if (b->verdict[i] != VERDICT_GO || !path_leaves(b->path[i]))
		return;
	p = fwd_label_packet(b, i);
	if (label_packet_ttl(&p) == 0)
		fwd_label_refuse(b, i, PUNT_ttl_expired, DROP_ttl);
}

void
fwd_label_again(struct burst *b, unsigned int i)
{
	b->l2[i] = rte_pktmbuf_mtod(b->m[i], uint8_t *);
	b->family[i] = 0;
	b->padded &= ~(1ull << i);
	fwd_label_parse(b, i);
}

void
fwd_label_keep_path(struct burst *b, unsigned int i)
{
	uint32_t entry = get_be32(burst_frame(b, i) + L2_LEN);
	uint8_t of_kernel =
		atomic_load_explicit(&b->fwd->fib->label_ttl, memory_order_relaxed);
	uint8_t ttl = label_ttl(entry);
	bool swap = b->family[i] == 0 && path_kind(b->path[i]) == PATH_ENCAP;
	uint8_t carried =
		swap || label_carries_ttl(b->path[i], of_kernel) ? ttl : UINT8_MAX;

	/*
	 * A lookup in a VRF may have replaced the path of the label. Then the TTL mode of
	 * the label is the default, because label_fast.c takes such a label only with the
	 * default.
	 */
	b->labels |= 1ull << i;
	b->label[i] = (struct burst_label){1, ttl, carried, label_tc(entry) & 7u,
					   label_is_bottom(entry)};
	b->padded &= ~(1ull << i);
}

void
fwd_label_too_big(struct burst *b, unsigned int i, unsigned int mtu)
{
	packet_meta(b->m[i])->mtu_bytes = (uint16_t)mtu;
	burst_leave(b, i,
		    burst_has_labels(b, i) && !payload_find(b, i) ? DROP_mtu
								  : PUNT_too_big);
}

void
fwd_label_rewrite(struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_iface *out = fib_iface(fib, b->hop[i] & 0xffff);
	struct label_packet p = fwd_label_packet(b, i);
	uint8_t ttl = label_packet_ttl(&p), *eth;
	unsigned int mtu;

	if (ttl == 0) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return;
	}
	if (out == NULL || !out->up) {
		fwd_label_refuse(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	mtu = label_mtu(fib, b->path[i], out, &p);
	if (label_rest_bytes(&p) > mtu) {
		fwd_label_too_big(b, i, mtu);
		return;
	}
	label_packet_trim(&p);
	if (!label_write(&p, ttl)) {
		burst_leave(b, i, DROP_no_headroom);
		return;
	}
	if (p.at != 0)
		p.m->ol_flags &= ~PACKET_FLAGS_OF_OUTER;
	eth = b->l2[i] = rte_pktmbuf_mtod(p.m, uint8_t *);
	if (out->n_tags != 0) {
		b->tags_out = true;
		eth = vlan_push(p.m, out);
	}
	frame_write_macs(eth, b->hop[i], out);
}
