/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label_fast: the stages of label.c for the usual packets. A usual packet has one label of
 * our own, with an IP packet or another label behind it, and goes to a resolved neighbor on
 * an interface without tags. It causes no error. Each stage is one loop. Any other packet
 * is left unchanged to label.c, which alone judges it. test_fwd_labels compares the two.
 *                                                                               [fwd-n]
 */
#include "base/inet.h"
#include "fib/label.h"
#include "fwd/cpu.h"
#include "fwd/fast.h"
#include "fwd/frame_header.h"
#include "fwd/label.h"
#include "port/label_write.h"

static bool
path_is_fast(fib_path path)
{
	return path_kind(path) == PATH_ADJ ||
	       (path_kind(path) == PATH_ENCAP && !path_is_unsupported(path));
}

/* Reset a packet for the parse stage of label.c. */
static void
packet_return(struct burst *b, unsigned int i)
{
	b->l2[i] = rte_pktmbuf_mtod(b->m[i], uint8_t *);
	b->padded &= ~(1ull << i);
}

/* The result of label_take(). */
enum label_use {
	LABEL_ODD,    /* label.c has to take the packet */
	LABEL_SWITCH, /* another label follows this label, or replaces it */
	LABEL_IP,     /* the IP packet behind the label leaves or is looked up */
};

/* Take one frame with a label, and set b->path to that of the label. */
static inline enum label_use
label_take(struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const struct rte_mbuf *m = b->m[i];
	const uint8_t *p = burst_l3(b, i);
	uint8_t of_kernel = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed);
	uint32_t entry, group;
	uint64_t word;
	uint8_t ttl, carried;
	enum path_kind kind;

	if (m->data_len != m->pkt_len || m->data_len < L2_LEN + LABEL_BYTES + 20)
		return LABEL_ODD;
	entry = get_be32(p);
	ttl = label_ttl(entry);
	if (label_of(entry) < LABEL_SPECIAL_END || ttl <= 1)
		return LABEL_ODD;
	group = atomic_load_explicit(&fib->label[label_of(entry)], memory_order_consume);
	word = atomic_load_explicit(&fib->group[group], memory_order_consume);
	b->path[i] =
		group_word_path(word, group_word_is_block(word)
					      ? fib_label_hash(fib, p, m->data_len - L2_LEN)
					      : 0);
	kind = path_kind(b->path[i]);
	if (kind == PATH_ENCAP || (kind == PATH_ADJ && !label_is_bottom(entry))) {
		b->family[i] = 0;
		carried = kind == PATH_ENCAP || label_carries_ttl(b->path[i], of_kernel)
				  ? ttl
				  : UINT8_MAX;
		b->l3_len[i] = (uint16_t)(m->data_len - L2_LEN - LABEL_BYTES);
		b->label[i] = (struct burst_label){1, ttl, carried, label_tc(entry) & 7u,
						   label_is_bottom(entry)};
		return path_is_fast(b->path[i]) &&
				       (kind == PATH_ENCAP || p[LABEL_BYTES + 3] > 1)
			       ? LABEL_SWITCH
			       : LABEL_ODD;
	}
	/* The code for IP packets knows only the TTL mode of the kernel's sysctls. */
	return label_is_bottom(entry) && path_mtu_class(b->path[i]) == 0 &&
			       (kind == PATH_ADJ || kind == PATH_VRF)
		       ? LABEL_IP
		       : LABEL_ODD;
}

/*
 * Set the paths of the labels of a burst in which each frame has one label, which leads to
 * a lookup of the IP packet behind it, or to a neighbor. Return false for any other burst.
 * *vrf: a bit for each packet that is to be looked up.
 */
static bool
labels_all_ip(struct burst *b, uint64_t *vrf)
{
	const _Atomic uint32_t *label = b->fwd->fib->label;
	const _Atomic uint64_t *group = b->fwd->fib->group;
	uint64_t mac = 0, to_vrf = 0;

	memcpy(&mac, b->in->mac, sizeof(b->in->mac));
	if (!frames_are_ours(b, 0, b->n, mac))
		return false;
	for (unsigned int i = 0, n = b->n; i < n; i++) {
		const uint8_t *eth = burst_l2(b, i);
		uint32_t entry = get_be32(eth + L2_LEN);
		uint64_t word = atomic_load_explicit(
			&group[atomic_load_explicit(&label[label_of(entry)],
						    memory_order_consume)],
			memory_order_consume);
		enum path_kind kind = path_kind((fib_path)word);

		if (get_be16(eth + 12) != MPLS_TYPE ||
		    label_of(entry) < LABEL_SPECIAL_END || label_ttl(entry) <= 1 ||
		    !label_is_bottom(entry) || group_word_is_block(word) ||
		    (kind != PATH_VRF && kind != PATH_ADJ) ||
		    path_mtu_class((fib_path)word) != 0)
			return false;
		b->path[i] = (fib_path)word;
		b->vrf[i] = (uint16_t)path_index((fib_path)word);
		to_vrf |= (uint64_t)(kind == PATH_VRF) << i;
	}
	*vrf = to_vrf;
	return true;
}

/*
 * Take each frame of `rest` that has our MAC address and a label. Return a bit for each
 * taken frame. *odd: a bit for each frame that label.c has to handle. *ip: a bit for each
 * frame whose IP packet must be checked.
 */
static uint64_t
labels_take(struct burst *b, uint64_t rest, uint64_t *odd, uint64_t *ip)
{
	uint64_t mac = 0, taken = 0, head;

	memcpy(&mac, b->in->mac, sizeof(b->in->mac));
	*odd = *ip = 0;
	for (; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		const uint8_t *eth = burst_l2(b, i);
		enum label_use use;

		memcpy(&head, eth, sizeof(head));
		if (((head ^ mac) & HEAD_BITS) != 0 || get_be16(eth + 12) != MPLS_TYPE)
			continue;
		use = label_take(b, i);
		taken |= 1ull << i;
		*odd |= (uint64_t)(use == LABEL_ODD) << i;
		*ip |= (uint64_t)(use == LABEL_IP) << i;
	}
	return taken;
}

/* Look up the IP packets of both families in the FIBs of b->vrf[]. */
static uint64_t
payloads_look_up(struct burst *b, struct fwd_families of)
{
	uint64_t fast4 = b->fast4, fast6 = b->fast6, odd;

	b->fast4 = of.four;
	b->fast6 = of.six;
	odd = fwd_lookup_each(b);
	b->fast4 = fast4;
	b->fast6 = fast6;
	return odd;
}

/*
 * Check the IP packets of `ip` behind their labels, and look up those of `vrf`. Return a
 * bit for each packet that label.c has to handle.
 */
static uint64_t
payloads_take(struct burst *b, uint64_t ip, uint64_t vrf)
{
	uint8_t pipe_ttl =
		atomic_load_explicit(&b->fwd->fib->label_ttl, memory_order_relaxed);
	const struct fwd_payload kind = {L2_LEN + LABEL_BYTES, true, true, pipe_ttl == 0};
	struct fwd_families pass;
	uint64_t odd;

	for (unsigned int i = 0, n = ip == burst_all(b) ? b->n : 0; i < n; i++)
		b->l2[i] += LABEL_BYTES;
	for (uint64_t rest = ip == burst_all(b) ? 0 : ip; rest != 0; rest &= rest - 1)
		b->l2[__builtin_ctzll(rest)] += LABEL_BYTES;
	pass = fwd_fast_payloads(b, ip, kind);
	odd = ip & ~(pass.four | pass.six);
	pass.four &= vrf;
	pass.six &= vrf;
	return (pass.four | pass.six) != 0 ? odd | payloads_look_up(b, pass) : odd;
}

/* Keep the packets of `taken`, except the packets of `odd`, which label.c has to handle. */
static void
labels_keep(struct burst *b, uint64_t taken, uint64_t odd)
{
	b->switched = taken & ~odd;
	for (; odd != 0; odd &= odd - 1)
		packet_return(b, (unsigned int)__builtin_ctzll(odd));
}

bool
fwd_label_fast_all(struct burst *b)
{
	uint64_t vrf;

	if (b->tag_bytes != 0 || get_be16(burst_l2(b, 0) + 12) != MPLS_TYPE ||
	    !labels_all_ip(b, &vrf))
		return false;
	b->fast4 = b->fast6 = b->padded = 0;
	labels_keep(b, burst_all(b), payloads_take(b, burst_all(b), vrf));
	return true;
}

void
fwd_label_fast_parse(struct burst *b)
{
	uint64_t odd, ip, taken, vrf = 0;

	taken = labels_take(b, burst_all(b) & ~(b->fast4 | b->fast6), &odd, &ip);
	for (uint64_t rest = ip; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		b->vrf[i] = (uint16_t)path_index(b->path[i]);
		vrf |= (uint64_t)(path_kind(b->path[i]) == PATH_VRF) << i;
	}
	if (ip != 0)
		odd |= payloads_take(b, ip, vrf);
	labels_keep(b, taken, odd);
}

/*
 * Return the adjacency of a path. It is 0, an adjacency without neighbor, if label.c must
 * handle the packet.
 */
static inline uint32_t
path_adjacency(const struct fib_encap *encap, fib_path path)
{
	return path_kind(path) == PATH_ADJ     ? path_index(path)
	       : path_kind(path) == PATH_ENCAP ? path_index(encap[path_index(path)].next)
					       : 0;
}

/*
 * Set the hops of a burst in which all paths push the same number of labels, with the TTL
 * of the kernel's sysctls, and lead to resolved neighbors. Return false for any other
 * burst.
 */
static inline bool
burst_pushes_alike(struct burst *b)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_adj *slot = fib->adj;
	_Atomic uint8_t *used = b->fwd->adj_used;
	unsigned int other_use = 0, unresolved = 0, room = UINT_MAX, bytes;
	uint64_t first, differ = 0;
	fib_path kinds = 0;

	for (unsigned int i = 0, n = b->n; i < n; i++)
		kinds |= b->path[i] ^ PATH(PATH_ENCAP, 0);
	if (path_kind(kinds) != 0)
		return false;
	first = encap_head(&fib->encap[path_index(b->path[0])]);
	bytes = encap_head_n(first) * LABEL_BYTES;
#pragma GCC unroll 4
	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint64_t head = encap_head(&fib->encap[path_index(b->path[i])]);
		uint32_t adj = path_index((fib_path)head);
		uint64_t hop = atomic_load_explicit(&slot[adj].hop, memory_order_acquire);
		unsigned int own = rte_pktmbuf_headroom(b->m[i]);

		b->hop[i] = hop;
		differ |= head ^ first;
		room = own < room ? own : room;
		/* See fib_adj_touch(), which seldom has anything to do. */
		other_use |=
			atomic_load_explicit(&used[adj], memory_order_relaxed) ^ ADJ_USED;
		unresolved |= hop == 0;
	}
	b->push_bytes = (uint8_t)bytes;
	return (other_use | unresolved) == 0 && differ >> 32 == 0 &&
	       encap_head_ttl(first) == 0 && bytes + VLAN_TAGS * VLAN_BYTES <= room;
}

/*
 * Return true if each packet of the burst keeps labels, or gets a label in place of its
 * last one.
 */
static inline bool
burst_all_swap(const struct burst *b)
{
	unsigned int families = 0;

	for (unsigned int i = 0, n = b->n; i < n; i++)
		families |= b->family[i];
	return families == 0;
}

void
fwd_label_fast_adjacency(struct burst *b)
{
	const struct fib_adj *slot = b->fwd->fib->adj;
	const struct fib_encap *encap = b->fwd->fib->encap;
	_Atomic uint8_t *used = b->fwd->adj_used;
	uint64_t odd = 0;

	b->push_alike =
		b->switched == burst_all(b) && burst_all_swap(b) && burst_pushes_alike(b);
	if (b->push_alike)
		return;
	for (uint64_t rest = b->switched; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		uint32_t adj = path_adjacency(encap, b->path[i]);

		b->hop[i] = atomic_load_explicit(&slot[adj].hop, memory_order_acquire);
		if (b->hop[i] == 0 || !fib_adj_touch(used, adj))
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
	const struct fib_adj *slot = fib->adj;
	_Atomic uint8_t *used = b->fwd->adj_used;
	unsigned int most = 0;
	uint64_t push = 0;

	b->push_alike = odd == burst_all(b) && burst_pushes_alike(b);
	if (b->push_alike)
		return odd;
	for (; odd != 0; odd &= odd - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(odd), bytes;
		const struct fib_encap *e = &fib->encap[path_index(b->path[i])];
		uint32_t adj;
		uint64_t hop;

		if (path_kind(b->path[i]) != PATH_ENCAP)
			continue;
		/* encap[0], of a path that is not supported, leads to no neighbor. */
		bytes = e->n * LABEL_BYTES;
		adj = path_index(e->next);
		hop = atomic_load_explicit(&slot[adj].hop, memory_order_acquire);
		/* The vector code knows only the TTL of the kernel's sysctls. */
		if (hop == 0 || e->ttl != 0 || !fib_adj_touch(used, adj) ||
		    bytes + VLAN_TAGS * VLAN_BYTES > rte_pktmbuf_headroom(b->m[i]))
			continue;
		b->hop[i] = hop;
		most = bytes > most ? bytes : most;
		push |= 1ull << i;
	}
	b->push_bytes = (uint8_t)most;
	return push;
}

/* Move the start of the frame to `eth`, which is before or behind the present start. */
static inline void
frame_begin_at(struct rte_mbuf *m, uint8_t *eth)
{
	int more = (int)(rte_pktmbuf_mtod(m, uint8_t *) - eth);

	m->data_off = (uint16_t)(m->data_off - more);
	m->data_len = (uint16_t)(m->data_len + more);
	m->pkt_len = m->data_len;
}

/*
 * Return the interface by which a packet with `rest` octets behind its new labels leaves,
 * or NULL if it does not fit or needs tags.
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
	pipe_ttl = encap_pipe_ttl(e, pipe_ttl);
	encap_write(e, rest - e->n * LABEL_BYTES,
		    pipe_ttl == 0 ? label_tc_of_ip(rest, family) : 0, true,
		    pipe_ttl == 0 ? ttl : pipe_ttl);
	put_be16(rest - e->n * LABEL_BYTES - 2, MPLS_TYPE);
}

/* Write a packet that leaves with labels. `rest` is behind the label that is removed. */
static inline void
label_switch(const struct burst_label *label, const struct fib_encap *e, uint8_t *rest)
{
	if (e == NULL) {
		uint8_t own = rest[3];

		rest[3] = (label->carried < own ? label->carried : own) - 1;
		put_be16(rest - 2, MPLS_TYPE);
		return;
	}
	encap_write(e, rest - e->n * LABEL_BYTES, label->tc, label->bottom,
		    label->carried - 1);
	put_be16(rest - e->n * LABEL_BYTES - 2, MPLS_TYPE);
}

/* Return true if all packets of the burst lose their label and leave as IP packets. */
static bool
burst_all_pop(const struct burst *b)
{
	unsigned int differ = 0;

	for (unsigned int i = 0; i < b->n; i++)
		differ |= (b->family[i] == 0) | (path_kind(b->path[i]) ^ PATH_ADJ);
	return differ == 0;
}

/*
 * Rewrite a burst with vectors if all packets change their labels in the same manner.
 * Return false for any other burst.
 */
static bool
burst_rewrite_alike(struct burst *b, uint64_t which)
{
	enum fwd_labels_do what;

	if (which != burst_all(b) || (!fwd_uses_avx512() && !fwd_uses_avx2()))
		return false;
	if (which == b->push)
		what = FWD_LABELS_PUSH;
	else if (b->push_alike && b->push_bytes == LABEL_BYTES)
		what = FWD_LABELS_SWAP;
	else if (burst_all_pop(b))
		what = FWD_LABELS_POP;
	else
		return false;
	return fwd_uses_avx512() ? fwd_rewrite_labels_avx512(b, what)
				 : fwd_rewrite_labels_avx2(b, what);
}

uint64_t
fwd_label_fast_rewrite(struct burst *b, uint64_t which)
{
	const struct fib *fib = b->fwd->fib;
	uint8_t pipe_ttl = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed);
	uint64_t odd = 0;

	if (burst_rewrite_alike(b, which))
		return 0;
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
			label_switch(&b->label[i], e, rest);
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
