/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decap_fast: see decap_fast.h. A packet that matches no pattern passes the stages
 * unchanged. test_fwd_decap_fast compares the results of this file with those of the
 * stages.                                                                       [fwd-n]
 */
#include "fwd/decap_fast.h"

#include "base/inet.h"
#include "fib/vxlan.h"
#include "fwd/label.h"
#include "fwd/sid.h"
#include "fwd/tunnel.h"
#include "port/vlan_tags.h"

#define GRE_HAS_KEY  0x20u /* in the first octet, RFC 2890 */
#define FRAME_MIN    60u   /* octets without the frame check sequence */
#define UNUSED_AFTER 64    /* intervals without use after which a pattern may be replaced */
/*
 * The low bit of the ECN field. If it is 0 (Not-ECT, ECT(0)), the inner packet does not
 * change.
 */
#define ECN_LOW 1u

static inline uint64_t
load64(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static inline uint32_t
load32(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* --- match ---------------------------------------------------------------------------- */

/*
 * Return the offset of four octets that differ between flows of the same IPv4 addresses:
 * the VNI, or the key of GRE. If there is neither, return the offset of the destination
 * address, because the octets behind the IPv4 header may be those of the inner packet.
 */
static inline unsigned int
flow_word_at(const uint8_t *ip)
{
	if (ip[9] == PROTO_UDP)
		return 20 + UDP_BYTES + 4;
	return ip[9] == PROTO_GRE && (ip[20] & GRE_HAS_KEY) != 0 ? 24 : 16;
}

/*
 * Return the only pattern that can match a frame of at least FRAME_MIN octets. A hash of
 * the addresses, and of the key or the VNI behind an IPv4 header, selects it.
 */
static inline struct fwd_decap_pattern *
pattern_of(struct fwd *f, const uint8_t *eth)
{
	const uint8_t *ip = eth + L2_LEN;
	uint64_t x;

	if (eth[13] == 0) /* EtherType 0x0800, not 0x86dd */
		x = load64(ip + 12) ^ (uint64_t)load32(ip + flow_word_at(ip)) * 0x9e3779b1u;
	else
		x = load64(ip + 16) ^
		    (load64(ip + 24) + load64(ip + 32)) * 0xc2b2ae3d27d4eb4fu;
	/*
	 * The last octets of the addresses are the highest octets of x. So only the highest
	 * bits of the product depend on all octets.
	 */
	return &f->pattern[x * 0x9e3779b97f4a7c15u >> (64 - FWD_PATTERNS_LOG2)];
}

/*
 * Compare the headers of a frame with a pattern, without its tags. `eth`: the first octet
 * of the frame if it had no tags. The MAC addresses are `tag_bytes` octets before.
 */
static inline __attribute__((always_inline)) bool
headers_match(const struct fwd_decap_pattern *p, const uint8_t *eth, unsigned int tag_bytes)
{
	unsigned int k = 0;
	uint64_t differ = 0;

	if (tag_bytes != 0) {
		uint8_t head[16];

		vlan_move_macs(head, eth - tag_bytes);
		memcpy(head + VLAN_AT, eth + VLAN_AT, sizeof(head) - VLAN_AT);
		for (; k < sizeof(head) / 8; k++)
			differ |= (load64(head + 8 * k) ^ p->value[k]) & p->mask[k];
	}
	for (; k < p->n_words; k++)
		differ |= (load64(eth + 8 * k) ^ p->value[k]) & p->mask[k];
	return differ == 0;
}

/*
 * Return true if the lengths in all headers agree with the length of the frame: no padding.
 */
static inline bool
lengths_match(const struct fwd_decap_pattern *p, const uint8_t *ip, unsigned int room)
{
	const uint8_t *inner = ip + p->decap.at;
	unsigned int len = p->family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	unsigned int rest = p->inner == 4 ? get_be16(inner + 2) : 40u + get_be16(inner + 4);

	return len == room && p->decap.at + rest == len &&
	       (p->udp_at == 0 || p->udp_at + get_be16(ip + p->udp_at + 4) == len);
}

/*
 * Return the pattern that matches packet `i`, or NULL. The TTL must be above 1, as on the
 * fast path.
 */
static inline __attribute__((always_inline)) struct fwd_decap_pattern *
packet_match(struct burst *b, unsigned int i, unsigned int tag_bytes)
{
	const uint8_t *eth = burst_l2(b, i), *ip = eth + L2_LEN;
	unsigned int bytes = rte_pktmbuf_data_len(b->m[i]);
	struct fwd_decap_pattern *p;

	if (bytes < FRAME_MIN + tag_bytes || eth - tag_bytes != burst_frame(b, i))
		return NULL;
	p = pattern_of(b->fwd, eth);
	if (p->n_words == 0 || p->in != b->ifidx || bytes < p->bytes_min + tag_bytes ||
	    !headers_match(p, eth, tag_bytes) || bytes != rte_pktmbuf_pkt_len(b->m[i]) ||
	    !lengths_match(p, ip, bytes - tag_bytes - L2_LEN))
		return NULL;
	if (p->family == 4 ? !b->in->fast4 || ip[8] <= 1 || !ip4_checksum_ok(ip, 20)
			   : !b->in->fast6 || ip[7] <= 1)
		return NULL;
	return p;
}

/* --- the lookups of a pattern --------------------------------------------------------- */

/* Return true for an end point that passes packets on by the route of the next segment. */
static bool
end_is_usual(const struct fib_sid *sid)
{
	return sid->action == SRV6_END && sid->family == 0;
}

/*
 * Return true if an end point removes the routing header of packets with `left` segments
 * left.
 */
static bool
end_removes(const struct fib_sid *sid, uint8_t left)
{
	return left == 1 && (sid->flavors & SRV6_PSP) != 0;
}

/*
 * Return true if the end point of the pattern still decapsulates its packets in the same
 * manner.
 */
static bool
sid_is_same(struct burst *b, unsigned int i, const struct fwd_decap_pattern *p)
{
	const struct fib_sid *sid = &b->fwd->fib->sid[path_index(p->local)];

	b->family[i] = 6;
	b->l3_len[i] = (uint16_t)burst_l3_segment(b, i);
	return fwd_sid_decapsulates(sid, p->inner) &&
	       !sid_has_argument(sid, burst_l3(b, i) + 24) &&
	       sid_vrf(sid, b->in->vrf) == p->decap.vrf && fwd_sid_number(b, i) == p->sid;
}

/*
 * Read the headers of packet `i`. Return true if End passes it on by the route of its next
 * segment and removes no header. *shift: the next segment is in the destination, and *p is
 * unused. Headers behind the routing header may be truncated, so there must be none.
 */
static bool
end_reads(const struct burst *b, unsigned int i, const struct fib_sid *sid,
	  struct sid_packet *p, bool *shift)
{
	const uint8_t *ip = burst_l3(b, i);

	if (b->family[i] != 6 || !end_is_usual(sid) || !b->in->forward6 ||
	    b->in->vrf == FIB_VRF_NONE || (ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80))
		return false;
	*shift = sid_has_argument(sid, ip + 24);
	return *shift || (sid_packet_read(ip, burst_l3_room(b, i), p) && p->left != 0 &&
			  p->srh_at == 40 && p->upper_at == 40 + p->srh_bytes &&
			  !end_removes(sid, p->left));
}

/*
 * Return true if the end point of the pattern still passes its packets on in the same
 * manner.
 */
static bool
end_is_same(struct burst *b, unsigned int i, struct fwd_decap_pattern *p)
{
	const struct fib_sid *sid = &b->fwd->fib->sid[path_index(p->local)];
	struct sid_packet headers;
	bool shift;

	b->family[i] = 6;
	b->l3_len[i] = (uint16_t)burst_l3_segment(b, i);
	if (!end_reads(b, i, sid, &headers, &shift) || shift != (p->use == DECAP_SHIFT) ||
	    fwd_sid_number(b, i) != p->sid)
		return false;
	if (shift) {
		memcpy(p->next.octet, burst_l3(b, i) + 24, sizeof(p->next.octet));
		sid_shift(sid, p->next.octet);
	}
	return true;
}

static bool
vxlan_is_same(struct burst *b, unsigned int i, const struct fwd_decap_pattern *p)
{
	struct fib_vxlan_found found =
		fib_vxlan_find(b->fwd->fib, b->in->vrf, p->family, burst_l3(b, i),
			       burst_l3_segment(b, i), &b->fwd->found_svi);

	return found.reason == N_REASON && found.ifidx == p->decap.ifidx &&
	       found.at == p->decap.at;
}

static bool
tunnel_is_same(struct burst *b, unsigned int i, const struct fwd_decap_pattern *p)
{
	struct fib_tunnel_found found;

	return fwd_tunnel_find(b, burst_l3(b, i), p->family, burst_l3_segment(b, i),
			       &found) &&
	       found.ifidx == p->decap.ifidx && found.at == p->decap.at;
}

/*
 * Repeat the lookups of a pattern after a quiescent state, for packet `i`, which matches
 * it. If a result or the MAC address of the port has changed, remove the pattern and return
 * false: the packet passes the stages.
 */
static __attribute__((noinline)) bool
pattern_renew(struct burst *b, unsigned int i, struct fwd_decap_pattern *p)
{
	const uint8_t *ip = burst_l3(b, i);
	struct ipaddr dst = {0};

	memcpy(dst.octet, ip + (p->family == 4 ? 16 : 24), family_octets(p->family));
	if (memcmp(burst_macs(b, i), b->in->mac, sizeof(b->in->mac)) == 0 &&
	    fib_resolve(b->fwd->fib, b->in->vrf, p->family, &dst, 0) == p->local &&
	    (p->use != DECAP_OPEN ? end_is_same(b, i, p)
	     : p->decap.by_sid    ? sid_is_same(b, i, p)
	     : p->udp_at != 0     ? vxlan_is_same(b, i, p)
				  : tunnel_is_same(b, i, p))) {
		p->epoch = b->fwd->outer_epoch;
		p->interval = b->fwd->interval;
		return true;
	}
	p->n_words = 0;
	return false;
}

/* --- packets -------------------------------------------------------------------------- */

/* Count a packet for the SID of its pattern, without its tags. */
static inline void
packet_count(struct burst *b, unsigned int i, const struct fwd_decap_pattern *p,
	     unsigned int tag_bytes)
{
	struct sid_counters *c = &b->fwd->count->sid[p->sid];

	if (p->sid == 0)
		return;
	counter_add(&c->packets, 1);
	counter_add(&c->bytes, rte_pktmbuf_pkt_len(b->m[i]) - tag_bytes - L2_LEN);
}

/*
 * Add the inner packet to f->decap[], so that it passes the stages next. `last`: the
 * pattern of the packet that was added before; NULL: there is none.
 */
static inline void
packet_open(struct burst *b, unsigned int i, const struct fwd_decap_pattern *p,
	    const struct fwd_decap_pattern *last)
{
	struct fwd *f = b->fwd;
	struct rte_mbuf *m = b->m[i];

	packet_meta(m)->outer_ifidx = b->ifidx;
	packet_count(b, i, p, 0);
	if (p != last)
		fwd_decap_compare(f, &p->decap);
	f->decap[f->n_decap] = p->decap;
	f->decap[f->n_decap++].m = m;
}

/*
 * Copy a congestion mark to the inner packet. If marked packets passed the stages instead,
 * later packets of their flow would overtake them. Return false if the packet must be
 * dropped.
 */
static inline bool
packet_mark(struct burst *b, unsigned int i, const struct fwd_decap_pattern *p)
{
	uint8_t *ip = burst_l3(b, i), ecn = ip_dsfield(ip, p->family) & ECN_MASK;

	return (ecn & ECN_LOW) == 0 || fib_tunnel_ecn(ip + p->decap.at, p->inner, ecn);
}

/* Make the next segment the destination of a packet. */
static inline void
packet_go_on(struct burst *b, unsigned int i, const struct fwd_decap_pattern *p,
	     unsigned int tag_bytes)
{
	uint8_t *ip = burst_l3(b, i), *srh = ip + 40;

	packet_count(b, i, p, tag_bytes);
	if (p->use == DECAP_SHIFT) {
		memcpy(ip + 24, p->next.octet, sizeof(p->next.octet));
		return;
	}
	srh[3]--;
	memcpy(ip + 24, srh + SRH_FIXED_BYTES + 16u * srh[3], 16);
}

/* Set b->in. Return false if the interface takes no packets, or checks their sources. */
static bool
iface_is_usual(struct burst *b)
{
	const struct fib_iface *in = fib_iface(b->fwd->fib, b->ifidx);

	b->in = in;
	return in != NULL && in->ifindex != 0 && in->up && !iface_checks_sources(in);
}

/*
 * Move the packets that match to f->decap[], without their tags. Return the number of
 * packets that stay in the burst. *gone_on: how many of them an end point passed on. The
 * compiler makes a separate loop for a burst without tags.
 */
static inline __attribute__((always_inline)) unsigned int
burst_open_matches(struct burst *b, unsigned int tag_bytes, unsigned int *gone_on)
{
	struct fwd *f = b->fwd;
	const struct fwd_decap_pattern *last = NULL;
	unsigned int kept = 0;

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		struct fwd_decap_pattern *p = packet_match(b, i, tag_bytes);

		if (p != NULL && p->epoch != f->outer_epoch && !pattern_renew(b, i, p))
			p = NULL;
		if (p != NULL && p->use != DECAP_OPEN) {
			packet_go_on(b, i, p, tag_bytes);
			++*gone_on;
			p = NULL;
		}
		if (p != NULL && packet_mark(b, i, p)) {
			if (tag_bytes != 0)
				vlan_strip(b->m[i], tag_bytes / VLAN_BYTES);
			packet_open(b, i, p, last);
			last = p;
		} else {
			b->m[kept] = b->m[i];
			b->l2[kept++] = b->l2[i];
		}
	}
	return kept;
}

void
fwd_decap_fast(struct burst *b)
{
	struct fwd *f = b->fwd;
	unsigned int kept, gone_on = 0, n = b->n;

	if (!iface_is_usual(b))
		return;
	f->hook_moved = 0;
	kept = b->tag_bytes == 0 ? burst_open_matches(b, 0, &gone_on)
				 : burst_open_matches(b, b->tag_bytes, &gone_on);
	fwd_decap_gain(f, n - kept + gone_on, n);
	b->segments = kept != 0 && gone_on == kept;
	if (kept == n)
		return;
	burst_count_vrf(b);
	b->vrf_counted = true;
	b->n = (uint16_t)kept;
}

/* --- learn ---------------------------------------------------------------------------- */

/* The octets of a pattern while it is made. */
struct octets {
	uint8_t value[FWD_PATTERN_BYTES], mask[FWD_PATTERN_BYTES];
	const uint8_t *eth;
};

/*
 * Make the pattern compare `n` octets from `at` on, in each octet only the bits of `mask`.
 */
static void
octets_count(struct octets *o, unsigned int at, unsigned int n, uint8_t mask)
{
	for (unsigned int k = at; k < at + n; k++) {
		o->mask[k] = mask;
		o->value[k] = o->eth[k] & mask;
	}
}

/*
 * Make the pattern compare the destination, the group bit of the source, and the EtherType.
 */
static void
eth_count(struct octets *o, unsigned int at)
{
	octets_count(o, at, 6, 0xff);
	octets_count(o, at + 6, 1, 1);
	octets_count(o, at + 12, 2, 0xff);
}

/* Make the pattern compare the fields of an IP header that all packets of a flow share. */
static void
ip_count(struct octets *o, unsigned int at, uint8_t family)
{
	if (family == 4) {
		octets_count(o, at, 1, 0xff);
		/* MF and the offset, so that no fragment matches */
		octets_count(o, at + 6, 1, 0x3f);
		octets_count(o, at + 7, 1, 0xff);
		octets_count(o, at + 9, 1, 0xff);
		octets_count(o, at + 12, 8, 0xff);
	} else {
		octets_count(o, at, 1, 0xf0);
		octets_count(o, at + 6, 1, 0xff);
		octets_count(o, at + 8, 32, 0xff);
	}
}

/*
 * Make the pattern compare the UDP port and checksum (0: none), the flag and VNI of VXLAN,
 * and the inner Ethernet header.
 */
static void
vxlan_count(struct octets *o, unsigned int at)
{
	octets_count(o, at + 2, 2, 0xff);
	octets_count(o, at + 6, 2, 0xff);
	octets_count(o, at + UDP_BYTES, 1, VXLAN_VNI_FLAG);
	octets_count(o, at + UDP_BYTES + 4, 3, 0xff);
	eth_count(o, at + UDP_BYTES + VXLAN_BYTES);
}

/* Return true if a pattern can describe the outer header: no IPv4 options, no fragment. */
static bool
outer_is_usual(const uint8_t *ip, uint8_t family)
{
	return family == 6 || (ip[0] == 0x45 && (get_be16(ip + 6) & 0x3fff) == 0);
}

/*
 * From a decapsulated packet, set all members of a pattern except the octets to compare.
 * Return false if a pattern cannot describe the packet.
 */
static bool
pattern_describe(struct burst *b, unsigned int i, fib_path local,
		 struct fwd_decap_pattern *p)
{
	struct fwd_decap decap = fwd_decap_of(b, i);
	const uint8_t *ip = burst_l3(b, i);
	uint8_t family = b->family[i], proto = ip[family == 4 ? 9 : 6];
	unsigned int head = family == 4 ? 20 : 40;

	*p = (struct fwd_decap_pattern){.in = b->ifidx,
					.decap = decap,
					.family = family,
					.inner = ip[decap.at] >> 4,
					.local = local};
	if (decap.labels_at != 0 || decap.at < head ||
	    decap.at + 1u > FWD_PATTERN_BYTES - L2_LEN ||
	    (p->inner != 4 && p->inner != 6) || !outer_is_usual(ip, family))
		return false;
	if (decap.by_sid) {
		const struct fib_sid *sid = &b->fwd->fib->sid[path_index(p->local)];

		p->sid = fwd_sid_number(b, i);
		return proto != 0 && path_kind(decap.path) == PATH_NONE &&
		       fwd_sid_decapsulates(sid, p->inner);
	}
	if (proto != PROTO_UDP)
		return true;
	p->udp_at = (uint8_t)head;
	return decap.at == head + VXLAN_HEAD_BYTES && get_be16(ip + head + 6) == 0;
}

/* Replace a pattern by `p` with the octets up to `end`. */
static void
pattern_store(struct burst *b, const struct octets *o, struct fwd_decap_pattern *p,
	      unsigned int end, struct fwd_decap_pattern *old)
{
	p->n_words = (uint8_t)((end + 7) / 8);
	p->epoch = b->fwd->outer_epoch;
	p->interval = b->fwd->interval;
	memcpy(p->value, o->value, sizeof(p->value));
	memcpy(p->mask, o->mask, sizeof(p->mask));
	*old = *p;
	b->fwd->has_patterns = true;
	b->fwd->learn_from = b->fwd->interval + 1;
}

/* Replace a pattern by that of packet `i`, which has just been decapsulated. */
static __attribute__((noinline)) void
pattern_make(struct burst *b, unsigned int i, fib_path local, struct fwd_decap_pattern *old)
{
	struct octets o = {.eth = burst_l2(b, i)};
	struct fwd_decap_pattern p;
	unsigned int end;

	if (!pattern_describe(b, i, local, &p))
		return;
	eth_count(&o, 0);
	ip_count(&o, L2_LEN, p.family);
	end = L2_LEN + (p.family == 4 ? 20u : 40u);
	if (p.udp_at != 0)
		vxlan_count(&o, end);
	else
		octets_count(&o, end, L2_LEN + p.decap.at - end, 0xff);
	octets_count(&o, L2_LEN + p.decap.at, 1,
		     0xf0); /* the version of the inner packet */
	p.bytes_min = (uint16_t)(L2_LEN + p.decap.at + (p.inner == 4 ? 20 : 40));
	pattern_store(b, &o, &p, L2_LEN + p.decap.at + 1, old);
}

/*
 * Replace a pattern by that of packet `i`, which End is about to pass on. The whole
 * destination is compared, so all packets of the pattern have the same argument.
 */
static __attribute__((noinline)) void
end_make(struct burst *b, unsigned int i, const struct sid_packet *headers, bool shift,
	 struct fwd_decap_pattern *old)
{
	const struct fib_sid *sid = &b->fwd->fib->sid[path_index(b->path[i])];
	struct octets o = {.eth = burst_l2(b, i)};
	struct fwd_decap_pattern p = {.in = b->ifidx,
				      .use = shift ? DECAP_SHIFT : DECAP_SEGMENT,
				      .family = 6,
				      .inner = 6,
				      .sid = fwd_sid_number(b, i),
				      .local = b->path[i],
				      .bytes_min = L2_LEN + 40};
	unsigned int end = L2_LEN + 40;

	eth_count(&o, 0);
	ip_count(&o, L2_LEN, 6);
	if (shift) {
		memcpy(p.next.octet, burst_l3(b, i) + 24, sizeof(p.next.octet));
		sid_shift(sid, p.next.octet);
	} else {
		octets_count(&o, end, SRH_FIXED_BYTES, 0xff);
		end += SRH_FIXED_BYTES;
		p.bytes_min = (uint16_t)(L2_LEN + 40 + headers->srh_bytes);
	}
	pattern_store(b, &o, &p, end, old);
}

/*
 * Return the pattern that may be replaced by that of packet `i`; NULL: there is none, or
 * the packet may not make a pattern.
 */
static struct fwd_decap_pattern *
pattern_to_make(struct burst *b, unsigned int i)
{
	struct fwd *f = b->fwd;
	const uint8_t *eth = burst_l2(b, i);
	struct fwd_decap_pattern *old;

	if (f->interval % DECAP_SAMPLE != 0 || b->inside || eth != burst_frame(b, i) ||
	    rte_pktmbuf_data_len(b->m[i]) < FRAME_MIN || fwd_watched(f) ||
	    fib_iface_is_hooked(f->hooks, b->in) || burst_has_labels(b, i))
		return NULL;
	old = pattern_of(f, eth);
	if (old->n_words != 0 && f->interval - old->interval < UNUSED_AFTER) {
		if (!f->decap_tries && rte_pktmbuf_data_len(b->m[i]) >= old->bytes_min &&
		    headers_match(old, eth, 0))
			fwd_decap_gain(f, 1, 0);
		return NULL;
	}
	return f->interval >= f->learn_from ? old : NULL;
}

void
fwd_decap_learn(struct burst *b, unsigned int i, fib_path local)
{
	struct fwd_decap_pattern *old;

	if ((b->hop[i] & DECAP_GOES_ON) != 0)
		return;
	old = pattern_to_make(b, i);
	if (old != NULL)
		pattern_make(b, i, local, old);
}

void
fwd_decap_learn_end(struct burst *b, unsigned int i)
{
	const struct fib_sid *sid = &b->fwd->fib->sid[path_index(b->path[i])];
	struct fwd_decap_pattern *old;
	struct sid_packet p;
	bool shift;

	if (b->fwd->interval % DECAP_SAMPLE != 0 || !end_reads(b, i, sid, &p, &shift))
		return;
	old = pattern_to_make(b, i);
	if (old != NULL)
		end_make(b, i, &p, shift, old);
}
