/* SPDX-License-Identifier: BSD-3-Clause */
/* Labels of fuzz_packet, see packet_labels.h. */
#include "packet_labels.h"

#include <string.h>

#include "base/inet.h"
#include "must.h"
#include "packet_tunnels.h"

enum {
	GROUP_PHP,
	GROUP_SWAP,
	GROUP_MORE,
	GROUP_MAIN,
	GROUP_RED,
	GROUP_ECMP,
	GROUP_NONE,
	GROUP_HOLE,
	GROUP_MIX,
	GROUP_TUNNEL
};
enum { ENCAP_ONE = 1, ENCAP_MORE, ENCAP_INTO_TUNNEL };

static void
encap_make(struct fib *fib, uint32_t number, uint32_t adj, uint32_t first, unsigned int n)
{
	struct fib_encap *e = &fib->encap[number];

	e->next = PATH(PATH_ADJ, adj);
	e->n = (uint8_t)n;
	for (unsigned int i = 0; i < n; i++)
		e->entry[i] = __builtin_bswap32(label_entry(first + i, 0, false, 0));
}

void
labels_make(struct fib *fib, uint32_t adj, uint16_t vrf, uint32_t group, uint16_t tunnel)
{
	static const uint8_t push4[4] = {203, 0, 113}, mix4[4] = {203, 0, 114};
	static const uint8_t push6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x78};
	static const uint8_t into4[4] = {203, 0, 112};
	static const uint8_t into6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x7b};
	static fib_path ecmp[2];
	const struct {
		uint32_t group;
		fib_path path;
	} single[] = {{GROUP_PHP, PATH(PATH_ADJ, adj)},
		      {GROUP_SWAP, PATH(PATH_ENCAP, ENCAP_ONE)},
		      {GROUP_MORE, PATH(PATH_ENCAP, ENCAP_MORE)},
		      {GROUP_MAIN, PATH(PATH_VRF, 0)},
		      {GROUP_RED, PATH(PATH_VRF, vrf)},
		      {GROUP_NONE, PATH(PATH_ENCAP, 0)},
		      {GROUP_HOLE, PATH(PATH_BLACKHOLE, 0)},
		      {GROUP_TUNNEL, PATH(PATH_ENCAP, ENCAP_INTO_TUNNEL)}};

	encap_make(fib, ENCAP_ONE, adj, PUSH_ONE, 1);
	encap_make(fib, ENCAP_MORE, adj, PUSH_MORE, 3);
	encap_set(&fib->encap[ENCAP_INTO_TUNNEL], PATH(PATH_ONLINK, tunnel),
		  &(uint32_t){PUSH_ONE}, 1, 0);
	ecmp[0] = PATH(PATH_ADJ, adj);
	ecmp[1] = PATH(PATH_ENCAP, ENCAP_ONE);
	for (unsigned int i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		fib->group[group + single[i].group] = group_word_single(single[i].path);
	fib->group[group + GROUP_ECMP] = group_word_block(ecmp, 1);
	fib->label[LABEL_PHP] = group + GROUP_PHP;
	fib->label[LABEL_SWAP] = group + GROUP_SWAP;
	fib->label[LABEL_SWAP_MORE] = group + GROUP_MORE;
	fib->label[LABEL_MAIN] = group + GROUP_MAIN;
	fib->label[LABEL_RED] = group + GROUP_RED;
	fib->label[LABEL_ECMP] = group + GROUP_ECMP;
	fib->label[LABEL_UNSUPPORTED] = group + GROUP_NONE;
	fib->label[LABEL_BLACKHOLE] = group + GROUP_HOLE;
	fib->label[LABEL_INTO_TUNNEL] = group + GROUP_TUNNEL;
	packet_route(fib, 4, push4, 24, group + GROUP_SWAP);
	packet_route(fib, 4, mix4, 24, group + GROUP_ECMP);
	packet_route(fib, 6, push6, 48, group + GROUP_MORE);
	packet_route(fib, 4, into4, 24, group + GROUP_TUNNEL);
	packet_route(fib, 6, into6, 48, group + GROUP_TUNNEL);
}

/* The labels that are removed, and the lowest TTL among them. */
struct popped {
	const uint8_t *rest;
	uint32_t last; /* the last removed label, which decides about the path */
	uint8_t ttl, last_ttl, tc;
	bool bottom;
};

static bool
leads_to_lookup(uint32_t label)
{
	return label == 0 || label == 2 || label == 7 || label == LABEL_MAIN ||
	       label == LABEL_RED;
}

static uint8_t
lower(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static struct popped
labels_pop(const uint8_t *p, const uint8_t *end)
{
	struct popped o = {.rest = p, .ttl = 255};
	unsigned int of_above = 0; /* entries that belong to the label above them */
	bool goes_on = true;

	for (unsigned int n = 0; goes_on; n++) {
		uint32_t entry, label;

		MUST(o.rest + 4 <= end);
		entry = get_be32(o.rest);
		label = entry >> 12;
		o.rest += 4;
		o.bottom = (entry & 0x100) != 0;
		if (of_above == 0 && label == 7)
			of_above = n == 0 ? 1 : 2;
		if (of_above == 0 || n == 0) {
			o.last = label;
			o.last_ttl = entry & 0xff;
			o.tc = entry >> 9 & 7;
			o.ttl = lower(o.ttl, o.last_ttl);
		}
		if (of_above > 0 && n > 0)
			of_above--;
		goes_on = !o.bottom && leads_to_lookup(o.last);
	}
	return o;
}

/* Check the labels that were pushed. */
static void
pushed_well(const uint8_t *left, uint8_t tc, bool bottom, uint8_t ttl)
{
	uint32_t first = get_be32(left + 14), second;

	MUST(first >> 12 == PUSH_ONE || first >> 12 == PUSH_MORE);
	MUST((first & 0xff) == ttl && (first >> 9 & 7) == tc);
	if (first >> 12 == PUSH_ONE) {
		MUST(((first & 0x100) != 0) == bottom);
		return;
	}
	second = get_be32(left + 18);
	MUST((first & 0x100) == 0 && second >> 12 == PUSH_MORE + 1);
	MUST((second & 0xff) == ttl && (second >> 9 & 7) == tc && (second & 0x100) == 0);
}

/*
 * Return the hop count that an IP packet has before it falls by one. `label_ttl`: the
 * lowest TTL of the labels that were removed; 255: there were none.
 */
static uint8_t
ip_ttl(const struct fib *fib, const uint8_t *ip, uint8_t label_ttl)
{
	uint8_t own = ip[0] >> 4 == 4 ? ip[8] : ip[7];

	return fib->label_ttl == 0 ? lower(own, label_ttl) : own;
}

/* Check an IP packet that leaves, with labels or without. */
static void
ip_sent_on(const struct fib *fib, const uint8_t *ip, const uint8_t *left, uint8_t label_ttl)
{
	bool is4 = ip[0] >> 4 == 4;
	uint8_t own = is4 ? ip[8] : ip[7];
	uint8_t ttl = ip_ttl(fib, ip, label_ttl);
	uint8_t tc = is4 ? ip[1] >> 5 : (uint8_t)((get_be16(ip) >> 4 & 0xff) >> 5);

	MUST(own > 1 && ttl > 1 && (is4 || ip[0] >> 4 == 6));
	if (get_be16(left + 12) == 0x8847) {
		pushed_well(left, fib->label_ttl == 0 ? tc : 0, true,
			    fib->label_ttl == 0 ? (uint8_t)(ttl - 1) : fib->label_ttl);
		return;
	}
	MUST(get_be16(left + 12) == (is4 ? 0x0800 : 0x86dd));
	MUST(left[is4 ? 22 : 21] == ttl - 1);
}

/* Check a packet that leaves behind the labels that it got, in a tunnel or without one. */
static void
behind_labels(const struct fib *fib, const uint8_t *packet, const uint8_t *end,
	      const uint8_t *left, bool tunnel)
{
	struct popped o;

	if (get_be16(packet - 2) != 0x8847) {
		ip_sent_on(fib, packet, left, 255);
		return;
	}
	o = labels_pop(packet, end);
	MUST(o.ttl > 1);
	if (leads_to_lookup(o.last)) {
		MUST(o.bottom);
		ip_sent_on(fib, o.rest, left, o.ttl);
	} else if (get_be16(left + 12) == 0x8847 &&
		   (get_be32(left + 14) >> 12 == PUSH_ONE ||
		    get_be32(left + 14) >> 12 == PUSH_MORE) &&
		   o.last != LABEL_PHP) {
		MUST(tunnel ? o.last == LABEL_INTO_TUNNEL
			    : o.last == LABEL_SWAP || o.last == LABEL_SWAP_MORE ||
				      o.last == LABEL_ECMP);
		pushed_well(left, o.tc, o.bottom,
			    (uint8_t)((fib->label_ttl == 0 ? o.ttl : o.last_ttl) - 1));
	} else if (o.bottom) {
		MUST(o.last == LABEL_PHP || o.last == LABEL_ECMP);
		MUST(get_be16(left + 12) != 0x8847);
		ip_sent_on(fib, o.rest, left, o.ttl);
	} else {
		uint32_t was = get_be32(o.rest), is = get_be32(left + 14);
		uint8_t own = was & 0xff;

		MUST(o.last == LABEL_PHP || o.last == LABEL_ECMP);
		MUST(get_be16(left + 12) == 0x8847 && is >> 8 == was >> 8);
		MUST((is & 0xff) + 1 == (fib->label_ttl == 0 ? lower(own, o.ttl) : own));
	}
}

void
label_sent_on(const struct fib *fib, const uint8_t *packet, const uint8_t *end,
	      const uint8_t *left)
{
	behind_labels(fib, packet, end, left, false);
}

/*
 * Check that an IP packet leaves with the hop count `ttl`, else unchanged. Its checksum is as
 * right as it was: a device may call a wrong checksum good.
 */
static void
ip_kept(const uint8_t *ip, const uint8_t *end, uint8_t ttl, const uint8_t *left,
	const uint8_t *left_end)
{
	bool is4 = ip[0] >> 4 == 4;
	unsigned int bytes = is4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);

	MUST(ip + bytes <= end);
	if (bytes > left_end - left)
		bytes = (unsigned int)(left_end - left);
	MUST(bytes >= (is4 ? 20 : 40));
	for (unsigned int k = 0; k < bytes; k++)
		if (is4 ? k != 8 && k != 10 && k != 11 : k != 7)
			MUST(left[k] == ip[k]);
	MUST(left[is4 ? 8 : 7] == ttl);
	MUST(!is4 || inet_fold(inet_sum(left, (left[0] & 15) * 4u, 0)) ==
			     inet_fold(inet_sum(ip, (ip[0] & 15) * 4u, 0)));
}

void
label_tunnel_sent_on(const struct fib *fib, const struct fib_tunnel *t,
		     const uint8_t *packet, const uint8_t *end, const uint8_t *left,
		     const uint8_t *left_end, unsigned int behind)
{
	static const uint8_t limit[8] = {PROTO_GRE, 0, 4, 1, 4, 1, 1, 0};
	const unsigned int outer = 40 + sizeof(limit) + 4;
	const uint8_t *ip = packet;
	uint8_t label_ttl = 255;

	MUST(left_end - left >= outer + LABEL_BYTES);
	MUST(get_be16(left - 2) == 0x86dd && get_be32(left) >> 20 == 0x600);
	MUST(get_be16(left + 4) == left_end - left - 40 + (int)behind);
	MUST(left[6] == PROTO_IP6_OPTS && left[7] == FIB_TUNNEL_TTL);
	MUST(memcmp(left + 8, t->local.octet, 16) == 0);
	MUST(memcmp(left + 24, t->remote.octet, 16) == 0);
	MUST(memcmp(left + 40, limit, sizeof(limit)) == 0);
	MUST(get_be16(left + 48) == 0 && get_be16(left + 50) == 0x8847);
	MUST(get_be32(left + outer) >> 12 == PUSH_ONE);
	/* The labels begin where they begin behind an Ethernet header. */
	behind_labels(fib, packet, end, left + outer - 14, true);
	if (get_be16(packet - 2) == 0x8847) {
		struct popped o = labels_pop(packet, end);

		if (!leads_to_lookup(o.last))
			return;
		ip = o.rest;
		label_ttl = o.ttl;
	}
	ip_kept(ip, end, (uint8_t)(ip_ttl(fib, ip, label_ttl) - 1),
		left + outer + LABEL_BYTES, left_end);
}

void
label_outer_sent_on(const struct fib *fib, const uint8_t *left)
{
	uint32_t entry = get_be32(left + 14);

	MUST(get_be16(left + 12) == MPLS_TYPE && left[18] >> 4 == 6);
	MUST((entry | 0xe00) ==
	     (PUSH_ONE << 12 | 0xf00u | (fib->label_ttl == 0 ? 64u : fib->label_ttl)));
}
