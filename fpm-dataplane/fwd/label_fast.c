/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label_fast: the stages of label.c for the usual packets, in one loop each: one label of
 * our own, an IP packet or another label behind it, a resolved neighbor on an interface
 * without tags, no error. A packet that does not fit keeps nothing and goes through
 * label.c, which alone judges it. test_fwd_labels compares the two.             [fwd-n]
 */
#include "base/inet.h"
#include "fib/label.h"
#include "fwd/fast.h"
#include "fwd/frame.h"
#include "fwd/label.h"
#include "port/label.h"

/* Lookups that the labels of a burst lead to, in the tries of their VRFs. */
struct payload_lookups {
	const struct poptrie *pt4[BURST_MAX];
	uint32_t dst4[BURST_MAX], group[BURST_MAX];
	uint8_t at[BURST_MAX];
	unsigned int n;
	bool differ; /* the tries are not all the same */
};

static bool
path_is_fast(fib_path path)
{
	return path_kind(path) == PATH_ADJ ||
	       (path_kind(path) == PATH_ENCAP && !path_is_unsupported(path));
}

/*
 * Prepare the octets around the hop count of the IP packet behind the label, with the lower
 * TTL of both, less one (see label_packet_ttl()). Return false if it is not a usual packet.
 */
static bool
payload_take(struct burst *b, unsigned int i, uint8_t version, uint8_t ttl, bool uniform)
{
	const uint8_t *ip;
	unsigned int room;

	b->l2[i] += LABEL_BYTES;
	ip = burst_l3(b, i);
	room = burst_l3_segment(b, i);
	if (!fwd_fast_payload(b, i, version, room)) {
		b->l2[i] -= LABEL_BYTES;
		return false;
	}
	b->family[i] = version;
	b->padded |= (uint64_t)(b->l3_len[i] != room) << i;
	if (!uniform || ttl >= (version == 4 ? ip[8] : ip[7]))
		return true;
	if (version == 6) {
		uint8_t *hop_limit = (uint8_t *)&b->hop_octets[i] + 3;

		*hop_limit = ttl - 1;
	} else {
		uint8_t header[12];

		memcpy(header, ip, sizeof(header));
		ip4_ttl_set(header, ttl - 1);
		memcpy(&b->hop_octets[i], header + 8, sizeof(b->hop_octets[i]));
	}
	return true;
}

/* Add the lookup of an IPv4 packet. Return false if its VRF has no FIB. */
static bool
lookup_add(struct burst *b, unsigned int i, unsigned int vrf, struct payload_lookups *l)
{
	const struct fib *fib = b->fwd->fib;
	const struct poptrie *pt4 = vrf == 0 ? b->fwd->tries->pt4 : fib_vrf_pt4(fib, vrf);

	if (pt4 == NULL)
		return false;
	l->pt4[l->n] = pt4;
	l->differ |= pt4 != l->pt4[0];
	l->dst4[l->n] = b->dst4[i];
	l->at[l->n++] = (uint8_t)i;
	return true;
}

/* Look up an IPv6 packet at once. */
static bool
lookup_six(struct burst *b, unsigned int i, unsigned int vrf)
{
	const struct fib *fib = b->fwd->fib;
	const struct poptrie *pt6 = vrf == 0 ? b->fwd->tries->pt6 : fib_vrf_pt6(fib, vrf);
	const uint8_t *ip = burst_l3(b, i);

	if (pt6 == NULL)
		return false;
	b->path[i] = fib_group_path(fib, poptrie6_lookup(pt6, ip + 24),
				    flow_hash(ip, b->l3_len[i], 6, fib->seed));
	return path_is_fast(b->path[i]);
}

/* Let a packet be one that label.c has not seen. */
static void
packet_return(struct burst *b, unsigned int i)
{
	b->l2[i] = rte_pktmbuf_mtod(b->m[i], uint8_t *);
	b->padded &= ~(1ull << i);
}

/*
 * Take one frame with a label. Return true if it is a usual one: b->path is set, or a
 * lookup is added.
 */
static bool
label_take(struct burst *b, unsigned int i, bool uniform, struct payload_lookups *l)
{
	const struct fib *fib = b->fwd->fib;
	const struct rte_mbuf *m = b->m[i];
	const uint8_t *p = burst_l3(b, i);
	uint32_t entry, group;
	uint64_t word;
	uint8_t ttl;
	enum path_kind kind;

	if (m->data_len != m->pkt_len || m->data_len < L2_LEN + LABEL_BYTES + 20)
		return false;
	entry = get_be32(p);
	ttl = label_ttl(entry);
	if (label_of(entry) < LABEL_SPECIAL_END || ttl <= 1)
		return false;
	group = atomic_load_explicit(&fib->label[label_of(entry)], memory_order_consume);
	word = atomic_load_explicit(&fib->group[group], memory_order_consume);
	b->path[i] =
		group_word_path(word, group_word_is_block(word)
					      ? fib_label_hash(fib, p, m->data_len - L2_LEN)
					      : 0);
	kind = path_kind(b->path[i]);
	if (kind == PATH_ENCAP || (kind == PATH_ADJ && !label_is_bottom(entry))) {
		b->family[i] = 0;
		b->label[i] = (struct burst_label){1, ttl, label_tc(entry),
						   label_is_bottom(entry)};
		return path_is_fast(b->path[i]) &&
		       (kind == PATH_ENCAP || p[LABEL_BYTES + 3] > 1);
	}
	if (!label_is_bottom(entry) || (kind != PATH_ADJ && kind != PATH_VRF) ||
	    !payload_take(b, i, p[LABEL_BYTES] >> 4, ttl, uniform))
		return false;
	if (kind == PATH_ADJ)
		return true;
	return b->family[i] == 4 ? lookup_add(b, i, path_index(b->path[i]), l)
				 : lookup_six(b, i, path_index(b->path[i]));
}

/* Look up the packets behind the labels. Return a bit for each that label.c has to take. */
static uint64_t
lookups_finish(struct burst *b, struct payload_lookups *l)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t odd = 0;

	if (l->differ)
		poptrie4_lookup_each(l->pt4, l->dst4, l->group, l->n);
	else
		poptrie4_lookup_bulk(l->pt4[0], l->dst4, l->group, l->n);
	for (unsigned int k = 0; k < l->n; k++) {
		unsigned int i = l->at[k];
		uint64_t word = atomic_load_explicit(&fib->group[l->group[k]],
						     memory_order_consume);

		b->path[i] = group_word_path(
			word,
			group_word_is_block(word)
				? flow_hash(burst_l3(b, i), b->l3_len[i], 4, fib->seed)
				: 0);
		odd |= (uint64_t)!path_is_fast(b->path[i]) << i;
	}
	return odd;
}

void
fwd_label_fast_parse(struct burst *b)
{
	uint64_t mac = 0, rest, odd = 0, taken = 0, head;
	struct payload_lookups lookups;
	bool uniform =
		atomic_load_explicit(&b->fwd->fib->label_ttl, memory_order_relaxed) == 0;

	memcpy(&mac, b->in->mac, sizeof(b->in->mac));
	lookups.n = 0;
	lookups.differ = false;
	for (rest = burst_all(b) & ~(b->fast4 | b->fast6); rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		const uint8_t *eth = burst_l2(b, i);

		memcpy(&head, eth, sizeof(head));
		if (((head ^ mac) & HEAD_BITS) != 0 || get_be16(eth + 12) != MPLS_TYPE)
			continue;
		if (label_take(b, i, uniform, &lookups))
			taken |= 1ull << i;
		else
			odd |= 1ull << i;
	}
	if (lookups.n > 0)
		odd |= lookups_finish(b, &lookups);
	b->switched = taken & ~odd;
	for (rest = odd; rest != 0; rest &= rest - 1)
		packet_return(b, (unsigned int)__builtin_ctzll(rest));
}

/* Return the adjacency of a path for which path_is_fast() is true. */
static uint32_t
path_adjacency(const struct fib *fib, fib_path path)
{
	return path_index(path_kind(path) == PATH_ENCAP ? fib_encap(fib, path)->next
							: path);
}

void
fwd_label_fast_adjacency(struct burst *b)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t odd = 0;

	for (uint64_t rest = b->switched; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		uint32_t adj = path_adjacency(fib, b->path[i]);

		b->hop[i] = atomic_load_explicit(&fib->adj[adj].hop, memory_order_acquire);
		if (b->hop[i] == 0 || !fib_adj_touch(b->fwd->adj_used, adj))
			odd |= 1ull << i;
	}
	b->switched &= ~odd;
	for (; odd != 0; odd &= odd - 1)
		fwd_label_again(b, (unsigned int)__builtin_ctzll(odd));
}

uint64_t
fwd_push_fast_adjacency(struct burst *b, uint64_t odd)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t push = 0;

	for (uint64_t rest = odd; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		uint32_t adj;

		if (path_kind(b->path[i]) != PATH_ENCAP || path_is_unsupported(b->path[i]))
			continue;
		adj = path_index(fib_encap(fib, b->path[i])->next);
		b->hop[i] = atomic_load_explicit(&fib->adj[adj].hop, memory_order_acquire);
		if (b->hop[i] != 0 && fib_adj_touch(b->fwd->adj_used, adj))
			push |= 1ull << i;
	}
	return push;
}

/* Begin the frame at `eth`: `more` octets earlier than it does, or later. */
static inline void
frame_begin_at(struct rte_mbuf *m, uint8_t *eth)
{
	int more = (int)(rte_pktmbuf_mtod(m, uint8_t *) - eth);

	m->data_off = (uint16_t)(m->data_off - more);
	m->data_len = (uint16_t)(m->data_len + more);
	m->pkt_len = m->data_len;
}

/*
 * Return the interface by which a packet with `rest` octets behind its new labels leaves, or
 * NULL if it does not fit or needs tags.
 */
static inline const struct fib_iface *
egress_of(const struct burst *b, unsigned int i, const struct fib_encap *e,
	  unsigned int rest)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_iface *out = fib_iface(fib, b->hop[i] & 0xffff);
	unsigned int push = e == NULL ? 0 : e->n * LABEL_BYTES;
	unsigned int mtu;

	if (out == NULL || !out->up || out->n_tags != 0 || out->ifidx >= PORT_MAX)
		return NULL;
	mtu = e == NULL && b->family[i] == 6 ? out->mtu6_bytes : out->mtu_bytes;
	if (path_mtu_class(b->path[i]) != 0)
		mtu = fib_mtu_of_path(fib, b->path[i],
				      (uint16_t)(mtu > push ? mtu - push : 0)) +
		      push;
	return rest + push <= mtu && push + VLAN_TAGS * VLAN_BYTES <=
					     rte_pktmbuf_headroom(b->m[i])
		       ? out
		       : NULL;
}

/* Write an IP packet with new labels, or without labels. `rest` is its header. */
static inline void
ip_write(struct burst *b, unsigned int i, const struct fib_encap *e, uint8_t *rest,
	 uint8_t pipe_ttl)
{
	uint8_t family = b->family[i], ttl;

	memcpy(rest + burst_hop_at(family), &b->hop_octets[i], 4);
	if (e == NULL) {
		put_be16(rest - 2, family == 4 ? 0x0800 : 0x86dd);
		return;
	}
	ttl = family == 4 ? rest[8] : rest[7];
	encap_write(e, rest - e->n * LABEL_BYTES,
		    pipe_ttl == 0 ? label_tc_of_ip(rest, family) : 0, true,
		    pipe_ttl == 0 ? ttl : pipe_ttl);
	put_be16(rest - e->n * LABEL_BYTES - 2, MPLS_TYPE);
}

/* Write a packet on which labels remain. `rest` is behind the label that comes off. */
static inline void
label_switch(const struct burst_label *label, const struct fib_encap *e, uint8_t *rest,
	     bool uniform)
{
	if (e == NULL) {
		uint8_t own = rest[3];

		rest[3] = (uniform && label->ttl < own ? label->ttl : own) - 1;
		put_be16(rest - 2, MPLS_TYPE);
		return;
	}
	encap_write(e, rest - e->n * LABEL_BYTES, label->tc, label->bottom, label->ttl - 1);
	put_be16(rest - e->n * LABEL_BYTES - 2, MPLS_TYPE);
}

uint64_t
fwd_label_fast_rewrite(struct burst *b, uint64_t which)
{
	const struct fib *fib = b->fwd->fib;
	uint8_t pipe_ttl = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed);
	uint64_t odd = 0;

	for (uint64_t left = which; left != 0; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(left);
		const struct fib_encap *e = path_kind(b->path[i]) == PATH_ENCAP
						    ? fib_encap(fib, b->path[i])
						    : NULL;
		bool ip = b->family[i] != 0;
		uint8_t *rest = burst_l3(b, i) + (ip ? 0 : LABEL_BYTES), *eth;
		unsigned int bytes =
			ip ? b->l3_len[i]
			   : b->m[i]->data_len - (unsigned int)L2_LEN - LABEL_BYTES;
		const struct fib_iface *out = egress_of(b, i, e, bytes);

		if (out == NULL) {
			odd |= 1ull << i;
			continue;
		}
		if (ip)
			ip_write(b, i, e, rest, pipe_ttl);
		else
			label_switch(&b->label[i], e, rest, pipe_ttl == 0);
		eth = rest - L2_LEN - (e == NULL ? 0 : e->n * LABEL_BYTES);
		frame_begin_at(b->m[i], eth);
		if (ip && (b->padded >> i & 1) != 0) {
			b->m[i]->data_len = (uint16_t)(rest + bytes - eth);
			b->m[i]->pkt_len = b->m[i]->data_len;
		}
		b->l2[i] = eth;
		b->out_port[i] = (uint8_t)out->port;
		frame_write_macs(eth, b->hop[i], out);
	}
	return odd;
}
