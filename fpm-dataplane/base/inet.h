/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inet: header arithmetic, shared by forwarders and the punt thread. Pure functions; `ip`
 * points to the first octet of an IP header in network order.
 */
#ifndef BASE_INET_H
#define BASE_INET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t
get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t
get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline void
put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void
put_be32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

/* Return the one's complement sum of 16-bit words, not folded. RFC 1071 */
static inline uint32_t
inet_sum(const uint8_t *p, size_t len, uint32_t sum)
{
	for (; len >= 2; p += 2, len -= 2)
		sum += get_be16(p);
	if (len == 1)
		sum += (uint32_t)p[0] << 8;
	return sum;
}

static inline uint16_t
inet_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/*
 * Return true if the checksum of an IPv4 header of `len` octets (a multiple of 4) is
 * right.
 */
static inline bool
ip4_checksum_ok(const uint8_t *ip, unsigned int len)
{
	uint64_t sum = 0;
	uint32_t w;

	/* Whether a one's complement sum is all ones does not depend on byte order. */
	for (unsigned int i = 0; i < len; i += 4) {
		memcpy(&w, ip + i, sizeof(w));
		sum += w;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

/*
 * Return octets 8 to 11 (TTL, protocol, checksum) after one hop, in memory order. With m'
 * = m - 0x100, RFC 1624, eqn. 3 (HC' = ~(~HC + ~m + m')) is HC + 0x100 with the carry
 * added at the end, and never 0xffff. In memory order 0x100 is 1: RFC 1071, 2 (B).
 */
static inline uint32_t
ip4_hop_spent(const uint8_t *ip)
{
	uint32_t v, sum;

	memcpy(&v, ip + 8, sizeof(v));
	sum = (v >> 16) + 1;
	sum += sum >= 0xffff;
	return ((v & 0xffff) - 1) | sum << 16;
}

/* Decrement the TTL and update the checksum. */
static inline void
ip4_ttl_dec(uint8_t *ip)
{
	uint32_t v = ip4_hop_spent(ip);

	memcpy(ip + 8, &v, sizeof(v));
}

/*
 * Return octets 4 to 7 of an IPv6 header (hop limit last) after one hop, in memory order.
 */
static inline uint32_t
ip6_hop_spent(const uint8_t *ip)
{
	uint32_t v;

	memcpy(&v, ip + 4, sizeof(v));
	return v - (1u << 24);
}

/* Finalizer of splitmix64 (Sebastiano Vigna, public domain). */
static inline uint64_t
mix64(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

#define FNV1A_BEGIN 2166136261u

/* Extend an FNV-1a hash (Fowler, Noll, Vo) by `n` octets. It begins with FNV1A_BEGIN. */
static inline uint32_t
fnv1a(uint32_t hash, const void *octets, size_t n)
{
	const uint8_t *p = octets;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 16777619u;
	return hash;
}

/*
 * Return the hash seed for addresses of VRF or link number `of`. Equal addresses in two
 * VRFs or on two links are different hosts, so their hashes differ.
 */
static inline uint64_t
seed_of(uint64_t seed, uint32_t of)
{
	return mix64(seed ^ mix64(of));
}

static inline bool
proto_has_ports(uint8_t proto)
{
	return proto == 6 || proto == 17 || proto == 132 || proto == 136;
}

/*
 * Return the flow hash of an IPv4 packet of `len` octets: addresses, protocol, and ports.
 * The ports of fragments are left out, because all fragments of a datagram must take one
 * path. The hash is not linear in the seed, so that two routers in a row choose
 * differently.
 */
static inline uint32_t
ip4_flow_hash(const uint8_t *ip, unsigned int len, uint64_t seed)
{
	unsigned int ihl = (ip[0] & 15u) * 4;
	uint64_t a;
	uint32_t ports = 0;

	memcpy(&a, ip + 12, 8);
	if ((get_be16(ip + 6) & 0x3fff) == 0 && proto_has_ports(ip[9]) && len >= ihl + 4)
		memcpy(&ports, ip + ihl, 4);
	return (uint32_t)(mix64(mix64(a ^ seed) + ((uint64_t)ports << 8 | ip[9])) >> 32);
}

/*
 * Return the flow hash of an IPv6 packet: addresses, flow label, next header, and ports
 * when they follow the fixed header.
 */
static inline uint32_t
ip6_flow_hash(const uint8_t *ip, unsigned int len, uint64_t seed)
{
	uint64_t a[4];
	uint32_t ports = 0, label = get_be32(ip) & 0xfffff;

	memcpy(a, ip + 8, 32);
	if (proto_has_ports(ip[6]) && len >= 44)
		memcpy(&ports, ip + 40, 4);
	a[0] = mix64(a[0] ^ seed) + a[1];
	a[2] = mix64(a[2] ^ a[0]) + a[3];
	a[2] = mix64(a[2] + ((uint64_t)label << 8 | ip[6]));
	return (uint32_t)(mix64(a[2] + ports) >> 32);
}

/*
 * Return the flow hash of a packet, of which `len` octets may be read; at least the fixed
 * header.
 */
static inline uint32_t
flow_hash(const uint8_t *ip, unsigned int len, uint8_t family, uint64_t seed)
{
	return family == 4 ? ip4_flow_hash(ip, len, seed) : ip6_flow_hash(ip, len, seed);
}

#endif
