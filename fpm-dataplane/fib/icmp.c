/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose the ICMP error for a drop, and decide whether it may be sent: never about an
 * error, never to a group or to an unreachable source, never about a packet that went to
 * many hosts. These functions read octets and tables, and change nothing.
 */
#include "fib/icmp.h"

#include <string.h>

#include "base/inet.h"
#include "base/kernel_event.h"
#include "fib/label.h"
#include "fib/rules.h"

#define DUMMY4 0xc0000008 /* RFC 7600, 4.8: a router without any IPv4 address */

/*
 * Return the reason why no ICMP error may be sent about an IPv4 packet, or NULL. RFC 1812,
 * 4.3.2.7.
 */
static const char *
icmp4_refusal(const struct icmp_about *about)
{
	const uint8_t *ip = about->ip;
	unsigned int ihl = (ip[0] & 15u) * 4;
	uint32_t src = get_be32(ip + 12), dst = get_be32(ip + 16);
	uint8_t type = about->room > ihl ? ip[ihl] : 255;

	if (about->l2_group)
		return "it came in a broadcast or multicast frame (RFC 1812, 4.3.2.7)";
	if ((get_be16(ip + 6) & 0x1fff) != 0)
		return "it is a later fragment (RFC 1812, 4.3.2.7)";
	if (src >> 24 == 0 || src >> 24 == 127 || src >= 0xe0000000 || dst >= 0xe0000000)
		return "one of its addresses is not a single host's (RFC 1812, 4.3.2.7)";
	/* An error may be sent about an ICMP packet only if it is a query or a reply. */
	if (ip[9] == 1 && type != 0 && type != 8 && type != 9 && type != 10 &&
	    (type < 13 || type > 18))
		return "it is an ICMP error itself (RFC 1812, 4.3.2.7)";
	return NULL;
}

/*
 * Return the next header after the extension headers, within `room` octets, and set *off to
 * its offset. Return 255 if it is unknown.
 */
static uint8_t
ip6_upper_layer(const uint8_t *ip, unsigned int room, unsigned int *off)
{
	uint8_t next = ip[6];
	unsigned int len;

	*off = 40;
	for (int i = 0; i < 8; i++) {
		if (next != 0 && next != 43 && next != 60 && next != 44 && next != 51)
			return next;
		if (*off + 8 > room)
			return 255;
		if (next == 44 && (get_be16(ip + *off + 2) & 0xfff8) != 0)
			return 255; /* a later fragment: its payload is unknown */
		len = next == 44   ? 8u
		      : next == 51 ? (ip[*off + 1] + 2u) * 4
				   : (ip[*off + 1] + 1u) * 8;
		next = ip[*off];
		*off += len;
	}
	return 255;
}

/*
 * Return the reason why no ICMPv6 error may be sent about a packet, or NULL. RFC 4443, 2.4
 * (e).
 */
static const char *
icmp6_refusal(const struct icmp_about *about)
{
	const uint8_t *ip = about->ip;
	unsigned int off;

	/* Packet too big may be sent about multicast packets. */
	if (!about->too_big && (about->l2_group || ip[24] == 0xff))
		return "it was sent to more than one host (RFC 4443, 2.4 (e))";
	if (ip[8] == 0xff ||
	    (get_be32(ip + 8) | get_be32(ip + 12) | get_be32(ip + 16)) == 0)
		return "its source is not a single host's (RFC 4443, 2.4 (e))";
	if (ip6_upper_layer(ip, about->room, &off) == 58 &&
	    (off >= about->room || ip[off] < 128 || ip[off] == 137))
		return "it is an ICMPv6 error or redirect itself (RFC 4443, 2.4 (e))";
	return NULL;
}

/* Return the number of equal leading bits of two IPv6 addresses. */
static unsigned int
bits_common6(const struct ipaddr *a, const struct ipaddr *b)
{
	for (unsigned int i = 0; i < 16; i++) {
		unsigned int differ = a->octet[i] ^ b->octet[i];

		if (differ != 0)
			return 8 * i + (unsigned int)__builtin_clz(differ) - 24;
	}
	return 128;
}

/* Return the label of a unicast address (RFC 6724, 2.1). */
static unsigned int
addr_label6(const struct ipaddr *a)
{
	uint32_t top = get_be32(a->octet);

	if ((top >> 24 & 0xfe) == 0xfc)
		return 13;
	if (top >> 16 == 0x2002)
		return 2;
	if (top >> 16 == 0x3ffe)
		return 12;
	return top == 0x20010000 ? 5 : 1;
}

/*
 * Return the source for an error to `to`, among the preferred addresses of the interface.
 * An address with the label of `to` is best (RFC 6724, 5, rule 6). If several have it, the
 * address with the longest prefix in common with `to` is best (rule 8). Linux compares only
 * the bits of the subnet, and so does this function. Among equal addresses the first is
 * taken.
 */
static const struct ipaddr *
error_source6(const struct fib_iface *in, const struct ipaddr *to)
{
	const struct ipaddr *best = &in->src6;
	unsigned int best_is = 0;

	for (unsigned int i = 0; i < in->n_own6; i++) {
		const struct fib_source *own = &in->own6[i];
		unsigned int bits = bits_common6(&own->addr, to), is;

		is = 1 + (bits < own->plen ? bits : own->plen);
		is += addr_label6(&own->addr) == addr_label6(to) ? 256 : 0;
		if (is > best_is) {
			best_is = is;
			best = &own->addr;
		}
	}
	return best;
}

struct ipaddr
icmp_source6(const struct fib_iface *out, const struct ipaddr *to)
{
	return *error_source6(out, to);
}

/*
 * Return the source for an error to `to`: the address of the interface in whose subnet `to`
 * or the gateway to it is, else the first (Linux, inet_select_addr()). 0: none.
 */
static uint32_t
error_source4(const struct fib *fib, const struct fib_iface *in, const struct ipaddr *to)
{
	fib_path path = fib_resolve(fib, in->vrf, 4, to, 0);
	uint32_t near = ipaddr_v4(to);

	if (path_kind(path) == PATH_ADJ) {
		const struct fib_adj *adj = &fib->adj[path_index(path)];

		if (adj->family == 4 && adj->ifidx == in->ifidx)
			near = ipaddr_v4(&adj->addr);
	}
	for (unsigned int i = 0; i < in->n_own4; i++) {
		uint32_t own = ipaddr_v4(&in->own4[i].addr);
		unsigned int plen = in->own4[i].plen;

		if (plen == 0 || (own ^ near) >> (32 - plen) == 0)
			return own;
	}
	return in->src4;
}

/*
 * Return true if an IPv6 packet without labels was sent to an address of this router. A rule
 * before table local may refuse such a packet.
 */
static bool
packet_was_for_router6(const struct fib *fib, const struct icmp_about *about)
{
	struct ipaddr to;
	fib_path path;

	if (about->family != 6 || about->labels != NULL)
		return false;
	memcpy(to.octet, about->ip + 24, 16);
	if (ipaddr_is_linklocal6(&to))
		return false;
	path = fib_resolve(fib, fib_vrf_of(fib, about->in_ifidx), 6, &to, 0);
	/* Index 0: an address of the router. Other indexes are numbers of SIDs. */
	return path_kind(path) == PATH_LOCAL && path_index(path) == 0;
}

/*
 * Set *src to the source of the error. If an IPv6 packet was sent to an address of this
 * router, the source is this address (RFC 4443, 2.2 (a)). Else the source is an address of
 * the interface that received the packet, or the address that this interface borrows
 * (neigh/iface.c). In IPv6, the source has the scope of the receiver of the error: RFC
 * 6724, 5 (rule 2). Return false if there is no such address.
 */
static bool
icmp_source(const struct fib *fib, const struct icmp_about *about, const struct ipaddr *to,
	    struct ipaddr *src)
{
	static const struct ipaddr none;
	const struct icmp_labels *labels = about->labels;
	const struct fib_iface *in = fib_iface(
		fib, labels != NULL && labels->source_ifidx != 0 ? labels->source_ifidx
								 : about->in_ifidx);
	uint32_t src4;

	if (about->family == 4) {
		src4 = in == NULL ? 0 : error_source4(fib, in, to);
		*src = ipaddr_from_v4(src4 == 0 ? DUMMY4 : src4);
		return true;
	}
	if (packet_was_for_router6(fib, about)) {
		memcpy(src->octet, about->ip + 24, 16);
		return true;
	}
	*src = none;
	if (in == NULL)
		return false;
	*src = ipaddr_is_linklocal6(to) ? in->linklocal6 : *error_source6(in, to);
	return !ipaddr_equal(src, &none);
}

uint8_t
icmp_tos(const uint8_t *ip4)
{
	return 0xc0 | (ip4[1] & 0x1e);
}

/*
 * Return the path of an ICMP error from `src` to `to`. Policy rules may select by the
 * header, so the lookup gets a header.
 */
static fib_path
error_path(const struct fib *fib, uint16_t vrf, const struct icmp_about *about,
	   const struct ipaddr *to, const struct ipaddr *src)
{
	uint8_t family = about->family;
	uint8_t ip[40] = {family == 4 ? 0x45 : 0x60};
	unsigned int octets = family_octets(family), at = family == 4 ? 12 : 8;

	if (fib_rules(fib, family) == NULL)
		return fib_resolve(fib, vrf, family, to, 0);
	ip[family == 4 ? 9 : 6] = family == 4 ? 1 : 58;
	if (family == 4)
		ip[1] = icmp_tos(about->ip);
	memcpy(ip + at, src->octet, octets);
	memcpy(ip + at + octets, to->octet, octets);
	return fib_resolve_error(fib, vrf, family, ip);
}

/*
 * Return true if a route leads to `to`: not an address of this router, not a broadcast
 * address.
 */
static bool
addr_has_return_route(const struct fib *fib, uint16_t vrf, const struct icmp_about *about,
		      const struct ipaddr *to, const struct ipaddr *src)
{
	enum path_kind kind;
	fib_path path;

	if (about->family == 6 && ipaddr_is_linklocal6(to))
		return true;
	path = error_path(fib, vrf, about, to, src);
	kind = path_kind(path);
	return kind == PATH_ADJ || kind == PATH_ONLINK || kind == PATH_KERNEL ||
	       (kind == PATH_ENCAP && !path_is_unsupported(path));
}

struct icmp_kind
icmp_of_drop(enum reason cause, uint8_t family)
{
	/* RFC 792 and RFC 1812 5.2.7.1; RFC 4443 3.1. Unreachable routes: as in Linux. */
	static const struct icmp_kind error[N_DROP][2] = {
		[DROP_ttl] = {{11, 0}, {3, 0}},
		[DROP_no_route] = {{3, 0}, {1, 0}},
		[DROP_unresolved_nh] = {{3, 0}, {1, 0}},
		[DROP_foreign_oif] = {{3, 0}, {1, 0}},
		[DROP_unsupported_encap] = {{3, 0}, {1, 0}},
		[DROP_vrf_again] = {{3, 0}, {1, 0}},
		[DROP_egress_down] = {{3, 0}, {1, 0}},
		/* IPv6 is off on the egress interface */
		[DROP_ipv6_off] = {{0, 0}, {1, 0}},
		[DROP_unreachable] = {{3, 1}, {1, 0}},
		[DROP_prohibit] = {{3, 13}, {1, 1}},
		[DROP_neigh_failed] = {{3, 1}, {1, 3}},
		[DROP_ip6_linklocal] = {{0, 0}, {1, 2}},
		[DROP_srv6_segments] = {{0, 0}, {4, 0}}, /* RFC 8754, 4.3.1.1 */
		[DROP_srv6_upper] = {{0, 0}, {4, 4}},    /* RFC 8986, 4.1.1 */
	};

	return error[cause][family == 6];
}

/*
 * Return the interface to which a path leads. If this interface is not in the VRF, return
 * any interface of the VRF that has an address.
 */
static uint16_t
iface_of_path(const struct fib *fib, uint16_t vrf, uint8_t family, fib_path path)
{
	const struct fib_iface *out = NULL;

	if (path_kind(path) == PATH_ADJ)
		out = fib_iface(fib, fib->adj[path_index(path)].ifidx);
	else if (path_kind(path) == PATH_ONLINK)
		out = fib_iface(fib, path_index(path));
	return out != NULL && out->vrf == vrf ? out->ifidx
					      : fib_iface_of_vrf(fib, vrf, family);
}

/* Return iface_of_path() for the path of an IP packet in a VRF. */
static uint16_t
iface_to(const struct fib *fib, uint16_t vrf, uint8_t family, const uint8_t *ip,
	 unsigned int room)
{
	fib_path path = PATH(PATH_NONE, 0);

	if (room >= (family == 4 ? 20 : 40))
		path = fib_resolve_ip(fib, vrf, family, ip, room);
	return iface_of_path(fib, vrf, family, path);
}

struct icmp_labels
icmp_labels_of(const struct fib *fib, const uint8_t *p, unsigned int room)
{
	struct icmp_labels labels = {0};
	struct label_walk walk;
	unsigned int bytes;

	fib_label_walk(fib, p, room, &walk);
	if (walk.reason != N_REASON || path_kind(walk.path) != PATH_VRF)
		return labels;
	labels.end_here = true;
	labels.vrf = (uint16_t)path_index(walk.path);
	bytes = walk.n * LABEL_BYTES;
	if (labels.vrf != 0 && walk.payload != 0)
		labels.source_ifidx =
			iface_to(fib, labels.vrf, walk.payload, p + bytes, room - bytes);
	return labels;
}

struct icmp_labels
icmp_lead_in_vrf(const struct fib *fib, uint16_t vrf, uint8_t family, const uint8_t *ip)
{
	struct ipaddr to = {0};
	fib_path path;

	memcpy(to.octet, ip + (family == 4 ? 12 : 8), family_octets(family));
	path = fib_resolve(fib, vrf, family, &to, 0);
	return (struct icmp_labels){.end_here = true,
				    .vrf = vrf,
				    .source_ifidx = iface_of_path(fib, vrf, family, path)};
}

const char *
icmp_refusal(const struct fib *fib, const struct icmp_about *about, struct ipaddr *src)
{
	const char *why = about->family == 4 ? icmp4_refusal(about) : icmp6_refusal(about);
	struct ipaddr to = {0};
	bool has_source, labels_go_on;
	uint16_t vrf;

	if (why != NULL)
		return why;
	if (about->in_ifidx == 0)
		return "the router itself sent it";
	memcpy(to.octet, about->family == 4 ? about->ip + 12 : about->ip + 8,
	       family_octets(about->family));
	has_source = icmp_source(fib, about, &to, src);
	labels_go_on = about->labels != NULL && !about->labels->end_here;
	vrf = about->labels != NULL ? about->labels->vrf : fib_vrf_of(fib, about->in_ifidx);
	if (!labels_go_on && !addr_has_return_route(fib, vrf, about, &to, src))
		return "no route leads back to its source";
	if (!has_source)
		return "the interface has no address from which to send it";
	return NULL;
}
