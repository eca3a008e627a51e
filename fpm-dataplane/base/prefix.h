/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prefix: an address or prefix of either family, as text and as octets.
 *
 * Octets are in network order, IPv4 in the first four.
 */
#ifndef BASE_PREFIX_H
#define BASE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREFIX_STRLEN 64
#define MAC_STRLEN    18

struct ipaddr {
	uint8_t octet[16]; /* unused octets are zero, so that memcmp() can compare */
};

struct prefix {
	struct ipaddr addr; /* host bits are zero */
	uint8_t family;     /* 4 or 6 */
	uint8_t len;        /* bits */
};

/*
 * Families of keys that zebra sends in addition to IP routes: MPLS labels, which forwarders
 * look up in fib->label, and MACs of EVPN, which are only stored and shown. `addr` has the
 * label, 20 bits in four octets; or MAC (6 octets), ifindex (4) and VLAN (2). All in
 * network order.
 */
#define FAMILY_LABEL 8
#define FAMILY_MAC   7

static inline bool
family_is_ip(uint8_t family)
{
	return family == 4 || family == 6;
}

static inline unsigned int
family_bits(uint8_t family)
{
	return family == 4 ? 32 : 128;
}

static inline unsigned int
family_octets(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

/* Return the first four octets as a number in host order: an IPv4 address. */
static inline uint32_t
ipaddr_v4(const struct ipaddr *a)
{
	return (uint32_t)a->octet[0] << 24 | (uint32_t)a->octet[1] << 16 |
	       (uint32_t)a->octet[2] << 8 | a->octet[3];
}

static inline struct ipaddr
ipaddr_from_v4(uint32_t v4)
{
	struct ipaddr a = {{(uint8_t)(v4 >> 24), (uint8_t)(v4 >> 16), (uint8_t)(v4 >> 8),
			    (uint8_t)v4}};

	return a;
}

/* Return true for 169.254/16. */
static inline bool
ipaddr_is_linklocal4(const struct ipaddr *a)
{
	return a->octet[0] == 169 && a->octet[1] == 254;
}

/* Return true for fe80::/10. */
static inline bool
ipaddr_is_linklocal6(const struct ipaddr *a)
{
	return a->octet[0] == 0xfe && (a->octet[1] & 0xc0) == 0x80;
}

/* Return true for a prefix inside fe80::/10. */
static inline bool
prefix_is_linklocal6(const struct prefix *p)
{
	return p->family == 6 && p->len >= 10 && ipaddr_is_linklocal6(&p->addr);
}

/* Return true for ::1. */
static inline bool
ipaddr_is_loopback6(const struct ipaddr *a)
{
	static const struct ipaddr loopback = {.octet[15] = 1};

	return __builtin_memcmp(a, &loopback, sizeof(*a)) == 0;
}

/*
 * Return the MAC address `mac` (mac_word()) in the form of an address, as a key of tables.
 */
static inline struct ipaddr
ipaddr_of_mac(uint64_t mac)
{
	struct ipaddr key = {{0}};

	for (unsigned int i = 0; i < 6; i++)
		key.octet[i] = (uint8_t)(mac >> (40 - 8 * i));
	return key;
}

bool ipaddr_equal(const struct ipaddr *a, const struct ipaddr *b);
bool prefix_equal(const struct prefix *a, const struct prefix *b);

/* Clear the host bits of p->addr. */
void prefix_mask(struct prefix *p);

/* Return true if a host bit is set, which prefix_mask() would clear. */
bool prefix_has_host_bits(const struct prefix *p);

/* Return true if `p` covers address `a` of the same family. */
bool prefix_covers(const struct prefix *p, const struct ipaddr *a);

/*
 * Return a 64-bit hash of all fields. If an attacker can choose the input, `seed` must be
 * secret.
 */
uint64_t prefix_hash(const struct prefix *p, uint64_t seed);
uint64_t ipaddr_hash(const struct ipaddr *a, uint64_t seed);

/*
 * Return true for prefixes of loopback, IPv6 link-local and multicast addresses. They are
 * in no FIB, because the forwarders have rules of their own for them.
 */
static inline bool
prefix_is_in_no_fib(const struct prefix *p)
{
	const uint8_t *o = p->addr.octet;

	if (p->family == 4)
		return p->len >= 4 && (o[0] == 127 || (o[0] & 0xf0) == 224);
	return (p->len >= 8 && o[0] == 0xff) ||
	       (p->len >= 10 && ipaddr_is_linklocal6(&p->addr)) ||
	       (p->len == 128 && ipaddr_is_loopback6(&p->addr));
}

/* Format an address or prefix: at most PREFIX_STRLEN octets to buf. Returns buf. */
const char *ipaddr_str(const struct ipaddr *a, uint8_t family, char buf[PREFIX_STRLEN]);
const char *prefix_str(const struct prefix *p, char buf[PREFIX_STRLEN]);

/* Format a MAC address: MAC_STRLEN octets to buf. Returns buf. */
const char *mac_str(const uint8_t mac[6], char buf[MAC_STRLEN]);

/*
 * Parse "192.0.2.0/24" or "2001:db8::1" (an address is a full-length prefix). Clears host
 * bits. Returns 0 or -EINVAL; `was_addr` (may be NULL) is true if the text has no length.
 */
int prefix_parse(const char *text, struct prefix *out, bool *was_addr);

/*
 * Return true if `text`, which prefix_parse() accepts, has host bits set, as 192.0.2.1/24.
 */
bool prefix_text_has_host_bits(const char *text);

#endif
