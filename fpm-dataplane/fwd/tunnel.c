/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel: encapsulate and decapsulate packets on the slow path.                 [fwd-n]
 */
#include "fwd/tunnel.h"

#include <stddef.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "fib/hook_list.h"
#include "fwd/frame_header.h"
#include "fwd/label.h"
#include "port/vlan_tags.h"

/* --- out of a tunnel ------------------------------------------------------------------ */

bool
fwd_tunnel_decap(struct burst *b, unsigned int i)
{
	uint8_t *ip = burst_l3(b, i);
	struct fib_tunnel_found found;

	/* The kernel takes a packet with MPLS labels, because it must pop them. */
	if (burst_has_labels(b, i) ||
	    !fwd_tunnel_find(b, ip, b->family[i], burst_l3_room(b, i), &found))
		return false;
	if (!burst_outer_is_right(b, i)) {
		burst_leave(b, i, DROP_ip4_checksum);
		return true;
	}
	/* As in Linux, labels get no congestion mark. */
	if (found.family != 0 && !fib_tunnel_ecn(ip + found.at, found.family, found.ecn)) {
		burst_leave(b, i, DROP_ecn_ce);
		return true;
	}
	burst_open(b, i, found.at, found.ifidx);
	if (found.family == 0) {
		unsigned int end = (unsigned int)(ip - burst_frame(b, i)) + b->l3_len[i];

		b->hop[i] |= DECAP_LABELS;
		if (rte_pktmbuf_pkt_len(b->m[i]) > end)
			packet_cut(b->m[i], end);
	}
	return true;
}

struct fwd_decap
fwd_decap_of(const struct burst *b, unsigned int i)
{
	struct fwd_decap decap = {.m = b->m[i],
				  .ifidx = b->hop[i] & 0xffff,
				  .at = (uint16_t)(b->hop[i] >> 16)};

	if ((b->hop[i] & DECAP_LABELS) != 0)
		decap.labels_at = decap.at;
	if ((b->hop[i] & DECAP_BY_SID) != 0) {
		decap.by_sid = true;
		decap.counted = (b->hop[i] & DECAP_GOES_ON) != 0;
		decap.vrf = b->vrf[i];
		decap.path = b->path[i];
	}
	return decap;
}

void
fwd_tunnel_keep(struct burst *b, unsigned int i)
{
	struct fwd_decap decap = fwd_decap_of(b, i);

	fwd_decap_compare(b->fwd, &decap);
	b->fwd->decap[b->fwd->n_decap++] = decap;
}

void
fwd_tunnel_cut(struct burst *b, unsigned int i)
{
	struct rte_mbuf *m = b->m[i];
	uint16_t by = (uint16_t)(burst_l2(b, i) - burst_frame(b, i));

	/*
	 * An end point of SRv6 has passed the packet on. The packet keeps its MACs and its
	 * priority.
	 */
	if (by == 0 && b->goes_on)
		return;
	m->data_off = (uint16_t)(m->data_off + by);
	m->data_len = (uint16_t)(m->data_len - by);
	m->pkt_len -= by;
	m->ol_flags &= ~PACKET_FLAGS_OF_OUTER;
	/*
	 * Clear the MAC addresses, which the code of ICMP errors checks for a group
	 * address.
	 */
	memset(burst_l2(b, i), 0, L2_LEN - 2);
	put_be16(burst_l2(b, i) + L2_LEN - 2, b->family[i] == 4 ? 0x0800 : 0x86dd);
}

void
fwd_tunnel_show(struct burst *b, unsigned int i, uint8_t was[L2_LEN])
{
	struct rte_mbuf *m = b->m[i];
	uint16_t by = (uint16_t)(burst_l2(b, i) - burst_frame(b, i));

	memcpy(was, burst_l2(b, i), L2_LEN);
	memset(burst_l2(b, i), 0, L2_LEN - 2);
	put_be16(burst_l2(b, i) + L2_LEN - 2, burst_labels_inside(b)        ? MPLS_TYPE
					      : burst_l3(b, i)[0] >> 4 == 4 ? 0x0800
									    : 0x86dd);
	m->data_off = (uint16_t)(m->data_off + by);
	m->data_len = (uint16_t)(m->data_len - by);
	m->pkt_len -= by;
	b->shown = by;
}

void
fwd_tunnel_hide(struct burst *b, unsigned int i, const uint8_t was[L2_LEN])
{
	struct rte_mbuf *m = b->m[i];

	memcpy(burst_l2(b, i), was, L2_LEN);
	m->data_off = (uint16_t)(m->data_off - b->shown);
	m->data_len = (uint16_t)(m->data_len + b->shown);
	m->pkt_len += b->shown;
}

/* Begin an empty burst for inner packets with the interface, VRF and path of `decap`. */
static void
inner_begin(struct fwd *f, struct burst *b, const struct fwd_decap *decap)
{
	memset(b, 0, offsetof(struct burst, m));
	b->labels = b->switched = b->push = b->into = b->judged = 0;
	b->push_bytes = 0;
	b->now = 0;
	b->fwd = f;
	b->inside = true;
	b->ifidx = decap->ifidx;
	b->by_sid = decap->by_sid;
	b->sid_vrf = decap->vrf;
	b->sid_path = decap->path;
	b->vrf_counted = decap->counted;
	b->labels_at = decap->labels_at;
	b->goes_on = decap->by_sid && decap->counted;
}

static void
inner_add(struct burst *b, const struct fwd_decap *decap)
{
	b->m[b->n] = decap->m;
	b->l2[b->n] = rte_pktmbuf_mtod_offset(decap->m, uint8_t *, decap->at);
	b->bytes += rte_pktmbuf_pkt_len(decap->m) - decap->at - L2_LEN;
	/*
	 * Keep the flag of a stripped tag, because the tag with which the packet leaves
	 * gets its priority.
	 */
	if (b->goes_on)
		b->any_flags |= decap->m->ol_flags & VLAN_STRIPPED;
	b->n++;
}

unsigned int
fwd_tunnel_enter(struct fwd *f, struct burst *b, struct fwd_decap *decap, unsigned int n)
{
	unsigned int left = 0;

	inner_begin(f, b, &decap[0]);
	for (unsigned int k = 0; k < n; k++) {
		if (decap[k].ifidx != b->ifidx || decap[k].by_sid != b->by_sid ||
		    decap[k].vrf != b->sid_vrf || decap[k].path != b->sid_path ||
		    decap[k].labels_at != b->labels_at ||
		    decap[k].counted != b->vrf_counted) {
			decap[left++] = decap[k];
			continue;
		}
		inner_add(b, &decap[k]);
	}
	return left;
}

void
fwd_tunnel_enter_all(struct fwd *f, struct burst *b)
{
	inner_begin(f, b, &f->decap[0]);
	for (unsigned int k = 0, n = f->n_decap; k < n; k++)
		inner_add(b, &f->decap[k]);
	f->n_decap = 0;
}

/*
 * Return true if usual packets of an interface may pass the stages in one burst with those
 * of other interfaces.
 */
static bool
iface_joins(const struct fwd *f, const struct fib_iface *in)
{
	/* The check of sources (uRPF) and programs handle one interface at a time. */
	return in != NULL && in->up && in->ifindex != 0 && !iface_checks_sources(in) &&
	       (in->fast4 || in->fast6) && !fib_iface_is_hooked(f->hooks, in);
}

static bool
ifaces_alike(const struct fib_iface *a, const struct fib_iface *b)
{
	return a->fast4 == b->fast4 && a->fast6 == b->fast6 &&
	       a->unnumbered4 == b->unnumbered4;
}

bool
fwd_tunnel_join(struct fwd *f, struct burst *b, const struct fwd_decap *decap,
		unsigned int n, uint8_t *from)
{
	const struct fib_iface *in = fib_iface(f->fib, decap[0].ifidx), *other;
	uint16_t differ = 0;

	if (fwd_watched(f) || fwd_filters(f) || decap[0].by_sid ||
	    decap[0].labels_at != 0 || !iface_joins(f, in))
		return false;
	inner_begin(f, b, &decap[0]);
	for (unsigned int k = 0; k < n; k++) {
		other = fib_iface(f->fib, decap[k].ifidx);
		if (decap[k].by_sid || decap[k].labels_at != 0 ||
		    decap[k].at != decap[0].at || !iface_joins(f, other) ||
		    !ifaces_alike(other, in))
			continue;
		from[b->n] = (uint8_t)k;
		b->vrf[b->n] = other->vrf;
		differ |= other->vrf ^ in->vrf;
		inner_add(b, &decap[k]);
	}
	b->in = in;
	b->vrfs_differ = differ != 0;
	b->vrf_counted = true;
	return true;
}

uint16_t
fwd_tunnel_leave(struct burst *b, unsigned int i, const struct rte_mbuf *m)
{
	uint8_t *l2 = b->l2[i];
	uint16_t at = (uint16_t)(l2 - rte_pktmbuf_mtod(m, uint8_t *));

	if (at == 0) /* its outer headers are cut off already, see fwd_tunnel_cut() */
		memset(l2, 0, L2_LEN - 2);
	return at;
}

/* --- into a tunnel -------------------------------------------------------------------- */

void
fwd_outer_find(struct fwd *f, uint16_t ifidx, uint8_t ds, struct fwd_outer *w)
{
	const struct fib_iface *out = NULL;

	w->ifidx = ifidx;
	w->ds = ds;
	w->epoch = f->outer_epoch;
	fib_tunnel_resolve(f->fib, ifidx, ds, &w->outer);
	if (w->outer.reason == N_REASON)
		out = path_out(f->fib, w->outer.path);
	w->out = out;
	w->mtu = (uint16_t)(out == NULL ? 0 : fib_tunnel_mtu(f->fib, &w->outer, out));
	w->told = fib_tunnel_is_told(f->fib, &w->outer);
	w->plain = out != NULL && !w->told && path_kind(w->outer.path) == PATH_ADJ &&
		   w->outer.labels == NULL && out->n_tags == 0 && out->ifidx < PORT_MAX;
}

/*
 * Return true if only the kernel can send the packet, because its outer packet needs
 * fragments: DF is not set, or the packet is IPv6 and the MTU is below 1280, the least MTU
 * of IPv6.
 */
static bool
needs_fragments(const struct burst *b, unsigned int i, const struct fwd_outer *w)
{
	const struct fib_iface *tunnel = w->outer.tunnel[0];
	unsigned int len = b->l3_len[i];

	if (len <= w->mtu || len > fib_mtu(b->fwd->fib, b->path[i], tunnel, b->family[i]))
		return false; /* the packet fits, or is too big for the tunnel itself */
	return (b->family[i] == 6 && w->mtu < 1280) ||
	       !tunnel_sets_df(&tunnel->tunnel, burst_l3(b, i), b->family[i]);
}

void
fwd_outer_refuse(struct burst *b, unsigned int i, enum reason reason)
{
	if (reason == PUNT_kernel_route || reason == DROP_encap_loop ||
	    reason == DROP_blackhole || reason == DROP_vrf_no_fib)
		burst_leave(b, i, reason);
	else
		fwd_label_refuse(b, i, PUNT_unreach, reason);
}

const struct fib_tunnel_outer *
fwd_tunnel_outer(struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i);
	const struct fwd_outer *w;
	enum reason reason;

	/* If IPv6 is off, Linux answers "no route" before it checks the hop limit. */
	if (fib_ipv6_is_off(b->fwd->fib, b->family[i], path_index(b->path[i]))) {
		burst_icmp(b, i, PUNT_unreach, DROP_ipv6_off);
		return NULL;
	}
	if (ip[b->family[i] == 4 ? 8 : 7] <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return NULL;
	}
	w = fwd_outer_into(b, i, (uint16_t)path_index(b->path[i]));
	reason = (enum reason)w->outer.reason;
	if (reason == N_REASON &&
	    tunnel_conflicts(&w->outer.tunnel[0]->tunnel, ip, b->family[i]))
		reason = DROP_encap_loop;
	if (reason == N_REASON &&
	    (!tunnel_takes(&w->outer.tunnel[0]->tunnel, ip, b->family[i]) ||
	     needs_fragments(b, i, w) || fwd_outer_take_told(b->fwd, w)))
		reason = PUNT_kernel_route;
	if (reason == N_REASON)
		return &w->outer;
	fwd_outer_refuse(b, i, reason);
	return NULL;
}

static void
too_big(struct burst *b, unsigned int i, unsigned int mtu)
{
	packet_meta(b->m[i])->mtu_bytes = (uint16_t)mtu;
	burst_leave(b, i, PUNT_too_big);
}

void
fwd_outer_frame(struct burst *b, unsigned int i, const struct fwd_outer *w, uint64_t hop)
{
	uint8_t *eth = b->l2[i] = rte_pktmbuf_mtod(b->m[i], uint8_t *);

	b->hop[i] = hop;
	if (w->out->n_tags != 0) {
		b->tags_out = true;
		eth = vlan_push(b->m[i], w->out);
	}
	frame_write_macs(eth, hop, w->out);
}

void
fwd_tunnel_rewrite(struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_iface *tunnel = fib_iface(fib, b->hop[i] & 0xffff);
	uint8_t *ip = burst_l3(b, i), family = b->family[i];
	unsigned int len = b->l3_len[i], bytes, mtu;
	struct rte_mbuf *m = b->m[i];
	const struct fwd_outer *w;
	uint64_t hop;

	if (ip[family == 4 ? 8 : 7] <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return;
	}
	mtu = fib_mtu(fib, b->path[i], tunnel, family);
	if (len > mtu) {
		too_big(b, i, mtu);
		return;
	}
	w = fwd_outer_into(b, i, tunnel->ifidx);
	hop = fwd_outer_hop(b->fwd, w);
	if (hop == 0) { /* the path has changed within the burst */
		burst_icmp(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	if (len > w->mtu) {
		too_big(b, i, w->mtu);
		return;
	}
	bytes = L2_LEN + len;
	if (rte_pktmbuf_headroom(m) < tunnel_room(&w->outer) + VLAN_TAGS * VLAN_BYTES) {
		burst_leave(b, i, DROP_no_headroom);
		return;
	}
	if (family == 4)
		ip4_ttl_dec(ip);
	else
		ip[7]--;
	if (rte_pktmbuf_pkt_len(m) > bytes)
		packet_cut(m, bytes);
	tunnel_count_sent(b->fwd, &w->outer, len);
	tunnel_put_all(fib, &w->outer, ip, &family, &len, b->fwd->ip_id++);
	m->data_off = (uint16_t)(m->data_off - w->outer.bytes);
	m->data_len = (uint16_t)(m->data_len + w->outer.bytes);
	m->pkt_len += w->outer.bytes;
	put_be16(rte_pktmbuf_mtod_offset(m, uint8_t *, L2_LEN - 2),
		 family == 4 ? 0x0800 : 0x86dd);
	label_outer(fib, m, family, w->outer.labels);
	fwd_outer_frame(b, i, w, hop);
}
