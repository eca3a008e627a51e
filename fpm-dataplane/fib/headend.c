/* SPDX-License-Identifier: BSD-3-Clause */
/* Write headends of SRv6, and find the paths of their outer packets. Any reader. */
#include "fib/headend.h"

#include "fib/icmp.h"
#include "fib/path_mtu.h"
#include "fib/rules.h"
#include "fib/sid_entry.h"

#define PROTO_ROUTING 43u

/*
 * Write the routing header of `n` segments at `srh`. Its first octet, the protocol of the
 * inner packet, stays zero. RFC 8754, 2 and 4.1.1.
 */
static void
srh_write(uint8_t *srh, enum srv6_mode mode, const uint32_t *segment, unsigned int n)
{
	unsigned int listed = mode == SRV6_ENCAP_RED ? n - 1 : n;

	srh[1] = (uint8_t)(2 * listed);
	srh[2] = SRH_TYPE;
	srh[3] = (uint8_t)(n - 1);
	srh[4] = (uint8_t)(listed - 1);
	for (unsigned int i = 0; i < 4 * listed; i++)
		put_be32(srh + SRH_FIXED_BYTES + 4 * i, segment[i]);
}

bool
fib_headend_write(struct fib_headend *h, const uint32_t *word, unsigned int n)
{
	const uint32_t *source, *first;
	unsigned int segments, srh;
	enum srv6_mode mode;

	segments = srv6_headend_unpack(word, n, &mode, &source);
	if (segments == 0)
		return false;
	memset(h, 0, sizeof(*h));
	srh = srv6_srh_bytes(mode, segments);
	h->bytes = (uint8_t)(40 + srh);
	h->next_at = srh == 0 ? 6 : 40;
	h->has_source = source != NULL;
	h->head[0] = 0x60;
	h->head[6] = srh == 0 ? 0 : PROTO_ROUTING;
	h->head[7] = HEADEND_HOP_LIMIT;
	first = word + 1 + 4 * (segments - 1);
	for (unsigned int i = 0; i < 4; i++) {
		if (source != NULL)
			put_be32(h->head + 8 + 4 * i, source[i]);
		put_be32(h->head + 24 + 4 * i, first[i]);
	}
	if (srh != 0)
		srh_write(h->head + 40, mode, word + 1, segments);
	return true;
}

/*
 * Choose the source as Linux does without `ip sr tunsrc` (RFC 6724): an address of the
 * egress interface, own or borrowed. Return false if there is none.
 */
static bool
source_choose(struct fib_headend_outer *outer)
{
	static const struct ipaddr none;
	struct ipaddr first, source;

	if (outer->out == NULL)
		return false;
	memcpy(first.octet, outer->head + 24, sizeof(first.octet));
	source = icmp_source6(outer->out, &first);
	memcpy(outer->head + 8, source.octet, sizeof(source.octet));
	return !ipaddr_equal(&source, &none);
}

/*
 * Look up the outer packet as a packet of this host, to which policy rules apply. `ds`: its
 * traffic class.
 */
static void
headend_look_up(const struct fib *fib, uint8_t ds, struct fib_headend_outer *outer)
{
	uint8_t head[sizeof(outer->head)];

	memcpy(head, outer->head, sizeof(head));
	put_be32(head, get_be32(head) | (uint32_t)ds << 20);
	outer->path =
		outer_below(fib, fib_resolve_packet(fib, NULL, 0, 6, head, sizeof(head)),
			    &outer->labels);
	outer->out = path_out(fib, outer->path);
	outer->reason = outer_refusal(outer->path, outer->out, 0);
	/* The outer packet would get this outer header again and again. */
	if (path_is_headend(fib, outer->path) &&
	    &fib->headend[path_index(outer->path)] == outer->headend)
		outer->reason = DROP_encap_loop;
}

void
fib_headend_resolve(const struct fib *fib, fib_path path, uint8_t family, const uint8_t *ip,
		    unsigned int room, struct fib_headend_outer *outer)
{
	const struct fib_seg6 *seg6 =
		atomic_load_explicit(&fib->seg6, memory_order_consume);
	const struct fib_headend *h = &fib->headend[path_index(path)];
	uint32_t hash = flow_hash(ip, room, family, fib->seed);
	static const struct ipaddr none;
	bool chosen;

	outer->headend = h;
	outer->labels = NULL;
	outer->family = family;
	outer->reason = PUNT_kernel_route;
	if (seg6 == NULL || !fib_tunnels_allowed(fib))
		return;
	headend_head(outer->head, h->head, hash, family);
	chosen = !h->has_source && ipaddr_equal(&seg6->source, &none);
	if (!h->has_source && !chosen)
		memcpy(outer->head + 8, seg6->source.octet, sizeof(seg6->source.octet));
	headend_look_up(fib, ip_dsfield(ip, family), outer);
	if (!chosen || outer->reason != N_REASON)
		return;
	if (!source_choose(outer))
		outer->reason = PUNT_kernel_route;
	else if (fib_rules(fib, 6) != NULL) /* rules may select by the source */
		headend_look_up(fib, ip_dsfield(ip, family), outer);
}

/* Choose the source of all packets, if they leave by one interface. */
static bool
source_choose_once(const struct fib *fib, uint64_t route, uint8_t *head)
{
	struct fib_headend_outer outer = {.path = (fib_path)route};

	if (group_word_is_block(route) || path_kind(outer.path) != PATH_ADJ)
		return false;
	outer.out = path_out(fib, outer.path);
	memcpy(outer.head, head, sizeof(outer.head));
	if (!source_choose(&outer))
		return false;
	memcpy(head, outer.head, sizeof(outer.head));
	return true;
}

bool
fib_headend_begin(const struct fib *fib, const struct fib_headend *h, uint8_t *head,
		  uint64_t *route)
{
	const struct fib_seg6 *seg6 =
		atomic_load_explicit(&fib->seg6, memory_order_consume);
	static const struct ipaddr none;
	struct ipaddr first;

	if (seg6 == NULL || !fib_tunnels_allowed(fib) || fib_rules(fib, 6) != NULL)
		return false;
	memcpy(head, h->head, 40);
	memcpy(first.octet, head + 24, sizeof(first.octet));
	*route = fib_route_word(fib, 0, 6, &first);
	if (h->has_source)
		return true;
	if (ipaddr_equal(&seg6->source, &none))
		return source_choose_once(fib, *route, head);
	memcpy(head + 8, seg6->source.octet, sizeof(seg6->source.octet));
	return true;
}

unsigned int
fib_headend_pmtu(const struct fib *fib, const struct fib_headend *h)
{
	unsigned int least = FIB_PMTU_NONE, listed = 0;

	if (atomic_load_explicit(&fib->pmtus, memory_order_consume) == NULL)
		return least;
	if (h->next_at == 40 && h->head[44] < SRV6_SEGMENTS_MAX)
		listed = h->head[44] + 1u;
	for (unsigned int i = 0; i <= listed; i++) {
		const uint8_t *segment =
			i == 0 ? h->head + 24 : fib_headend_segment(h, i - 1);
		struct ipaddr dst;
		unsigned int mtu;

		memcpy(dst.octet, segment, sizeof(dst.octet));
		mtu = fib_pmtu(fib, 0, 6, &dst);
		least = mtu < least ? mtu : least;
	}
	return least;
}

unsigned int
fib_headend_mtu(const struct fib *fib, const struct fib_headend_outer *outer)
{
	unsigned int mtu = outer_mtu(fib, outer->path, outer->labels, outer->out, 6);
	unsigned int path = headend_pmtu_for(
		outer->headend, fib_headend_pmtu(fib, outer->headend), outer->family);

	if (path < mtu)
		mtu = path;
	return mtu > outer->headend->bytes ? mtu - outer->headend->bytes : 0;
}
