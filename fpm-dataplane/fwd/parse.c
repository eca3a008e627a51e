/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse: validate the Ethernet header, and let parse_ip.c or label.c validate the rest.
 * Frames that are not to be routed go to the kernel unchanged. Unicast IP packets go to the
 * next stage. fast.c recognizes packets of the fast path; this file has the slow path.
 *                                                                               [fwd-n]
 */
#include "base/inet.h"
#include "base/mpls_entry.h"
#include "fwd/fast.h"
#include "fwd/label.h"
#include "fwd/parse_ip.h"
#include "fwd/tunnel.h"
#include "fwd/vlan.h"

/*
 * Return true for the EtherTypes of control protocols without IP: ARP, LLDP (IEEE 802.1AB),
 * LACP and other slow protocols (802.3), 802.1X. LLC frames have a length in place of the
 * type, or 0x8870: IS-IS (ISO 10589) and spanning tree.
 */
static bool
ethertype_is_control(uint16_t type)
{
	return type == 0x0806 || type == 0x88cc || type == 0x8809 || type == 0x888e ||
	       type == 0x8870 || type < 0x0600;
}

static bool
mac_is_of(const struct burst *b, uint16_t ifidx, const uint8_t *mac)
{
	const struct fib_iface *ifc = ifidx == 0 ? NULL : fib_iface(b->fwd->fib, ifidx);

	return ifc != NULL && memcmp(mac, ifc->mac, sizeof(ifc->mac)) == 0;
}

/*
 * Return true if a frame is for the MAC of an interface below the VLAN that it came by: of
 * the port, or of the VLAN with the outer tag alone. As in Linux, a VLAN with a MAC of its
 * own accepts such frames, too.
 */
static bool
mac_is_below(const struct burst *b, const uint8_t *mac)
{
	const struct fib_iface *in = b->in;
	uint8_t tag[VLAN_BYTES];

	if (in->n_tags == 0)
		return false;
	if (mac_is_of(b, in->port, mac))
		return true;
	put_be16(tag, in->tag[0].type);
	put_be16(tag + 2, in->tag[0].id);
	return mac_is_of(b, fib_vlan(b->fwd->fib, in->port, tag), mac);
}

/* Drop a frame that no interface of the router takes, or give it to the kernel. */
static void
frame_leave(struct burst *b, unsigned int i, bool to_kernel, enum reason drop)
{
	b->path[i] = PATH(PATH_NONE, 0);
	burst_leave(b, i, to_kernel ? PUNT_kernel_route : drop);
}

static void
parse_frame(struct burst *b, unsigned int i)
{
	const uint8_t *eth = burst_l2(b, i);
	uint16_t type, len = rte_pktmbuf_data_len(b->m[i]);

	b->family[i] = 0;
	if (len < L2_LEN) {
		burst_leave(b, i, DROP_l2_short);
		return;
	}
	type = get_be16(eth + 12);
	if ((eth[0] & 1) == 0 && memcmp(eth, b->in->mac, 6) != 0 && !mac_is_below(b, eth)) {
		frame_leave(b, i, b->in->member, DROP_l2_foreign);
		return;
	}
	if ((eth[6] & 1) != 0) { /* IEEE 802.3, 3.2.3: a source is one station */
		burst_leave(b, i, DROP_l2_group_source);
		return;
	}
	while (vlan_type_is_tag(type)) {
		if (!fwd_priority_tag(b, i)) {
			frame_leave(b, i, b->in->tagged_to_kernel, DROP_vlan_unknown);
			return;
		}
		type = get_be16(burst_l2(b, i) + 12);
	}
	if (type == 0x0800)
		fwd_parse_ip4(b, i);
	else if (type == 0x86dd)
		fwd_parse_ip6(b, i);
	else if (type == MPLS_TYPE || type == MPLS_MULTICAST_TYPE)
		fwd_label_parse(b, i);
	else
		burst_leave(b, i,
			    ethertype_is_control(type) ? PUNT_l2_control : PUNT_not_ip);
	/*
	 * A bridge forwards a frame to its other members whatever the frame contains, for
	 * example a broadcast of a subnet that this router does not know.
	 */
	if (b->in->member && b->verdict[i] < N_DROP)
		frame_leave(b, i, true, (enum reason)b->verdict[i]);
}

/* Prepare the results of a burst that is parsed. */
static void
burst_begin(struct burst *b)
{
	memset(b->verdict, VERDICT_GO, sizeof(b->verdict));
	b->labels = b->switched = b->push = b->into = 0;
}

static void
burst_parse_fast(struct burst *b)
{
	fwd_fast(b);
	for (uint64_t rest = burst_all(b) & ~(b->fast4 | b->fast6);
	     rest != 0 && b->tag_bytes != 0; rest &= rest - 1)
		fwd_untag(b, (unsigned int)__builtin_ctzll(rest));
}

/* Validate the packets of a burst that came out of a tunnel. */
static void
burst_parse_inner(struct burst *b)
{
	if (burst_labels_inside(b)) {
		b->fast4 = b->fast6 = b->padded = 0;
		for (unsigned int i = 0; i < b->n; i++) {
			b->family[i] = 0;
			fwd_label_parse(b, i);
		}
		return;
	}
	fwd_tunnel_fast_parse(b);
	for (uint64_t rest = burst_all(b) & ~(b->fast4 | b->fast6); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		b->family[i] = 0;
		if (burst_l3(b, i)[0] >> 4 == 4)
			fwd_parse_ip4(b, i);
		else
			fwd_parse_ip6(b, i);
	}
}

void
fwd_parse_fast(struct burst *b)
{
	burst_begin(b);
	if (__builtin_expect(b->inside, 0))
		fwd_tunnel_fast_parse(b);
	else
		burst_parse_fast(b);
}

void
fwd_parse(struct burst *b)
{
	burst_begin(b);
	if (__builtin_expect(b->inside, 0)) {
		burst_parse_inner(b);
		return;
	}
	if (!b->in->mpls || !fwd_label_fast_all(b)) {
		burst_parse_fast(b);
		if ((b->fast4 | b->fast6) == burst_all(b))
			return;
		if (b->in->mpls)
			fwd_label_fast_parse(b);
	}
	for (uint64_t rest = burst_all(b) & ~(b->fast4 | b->fast6 | b->switched); rest != 0;
	     rest &= rest - 1)
		parse_frame(b, (unsigned int)__builtin_ctzll(rest));
}
