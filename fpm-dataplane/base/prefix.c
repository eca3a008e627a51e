/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and prefixes: comparison, masks, hashes, text. Any thread, no state. */
#include "base/prefix.h"
#include "base/inet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
ipaddr_equal(const struct ipaddr *a, const struct ipaddr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool
prefix_equal(const struct prefix *a, const struct prefix *b)
{
	return a->family == b->family && a->len == b->len &&
	       ipaddr_equal(&a->addr, &b->addr);
}

void
prefix_mask(struct prefix *p)
{
	unsigned int whole = p->len / 8;

	if (whole >= sizeof(p->addr.octet))
		return;
	p->addr.octet[whole] &= (uint8_t) ~(0xff >> (p->len % 8));
	memset(p->addr.octet + whole + 1, 0, sizeof(p->addr.octet) - whole - 1);
}

bool
prefix_has_host_bits(const struct prefix *p)
{
	unsigned int whole = p->len / 8, octets = family_octets(p->family);
	uint8_t bits;

	if (whole >= octets)
		return false;
	bits = p->addr.octet[whole] & (0xff >> p->len % 8);
	for (unsigned int i = whole + 1; i < octets; i++)
		bits |= p->addr.octet[i];
	return bits != 0;
}

bool
prefix_covers(const struct prefix *p, const struct ipaddr *a)
{
	struct prefix q = {.addr = *a, .family = p->family, .len = p->len};

	prefix_mask(&q);
	return ipaddr_equal(&q.addr, &p->addr);
}

uint64_t
ipaddr_hash(const struct ipaddr *a, uint64_t seed)
{
	uint64_t w[2];

	memcpy(w, a->octet, sizeof(w));
	return mix64(mix64(w[0] ^ seed) + w[1]);
}

uint64_t
prefix_hash(const struct prefix *p, uint64_t seed)
{
	return ipaddr_hash(&p->addr, seed ^ ((uint64_t)p->family << 8 | p->len));
}

const char *
ipaddr_str(const struct ipaddr *a, uint8_t family, char buf[PREFIX_STRLEN])
{
	if (inet_ntop(family == 4 ? AF_INET : AF_INET6, a->octet, buf, PREFIX_STRLEN) ==
	    NULL)
		buf[0] = '\0';
	return buf;
}

const char *
mac_str(const uint8_t mac[6], char buf[MAC_STRLEN])
{
	snprintf(buf, MAC_STRLEN, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	return buf;
}

const char *
prefix_str(const struct prefix *p, char buf[PREFIX_STRLEN])
{
	const uint8_t *o = p->addr.octet;
	char mac[MAC_STRLEN];
	size_t n;

	if (p->family == FAMILY_LABEL) {
		snprintf(buf, PREFIX_STRLEN, "label %u", ipaddr_v4(&p->addr));
		return buf;
	}
	if (p->family == FAMILY_MAC) {
		snprintf(buf, PREFIX_STRLEN, "mac %s vlan %u", mac_str(o, mac),
			 (unsigned int)(o[10] << 8 | o[11]));
		return buf;
	}
	ipaddr_str(&p->addr, p->family, buf);
	n = strlen(buf);
	snprintf(buf + n, PREFIX_STRLEN - n, "/%u", p->len);
	return buf;
}

int
prefix_parse(const char *text, struct prefix *out, bool *was_addr)
{
	char buf[PREFIX_STRLEN];
	char *slash, *end;
	struct prefix p = {0};
	unsigned long len;

	if (strlen(text) >= sizeof(buf))
		return -EINVAL;
	strcpy(buf, text);
	slash = strchr(buf, '/');
	if (slash != NULL)
		*slash = '\0';
	p.family = strchr(buf, ':') != NULL ? 6 : 4;
	if (inet_pton(p.family == 4 ? AF_INET : AF_INET6, buf, p.addr.octet) != 1)
		return -EINVAL;
	len = family_bits(p.family);
	if (slash != NULL) {
		if (slash[1] < '0' || slash[1] > '9')
			return -EINVAL;
		len = strtoul(slash + 1, &end, 10);
		if (*end != '\0' || len > family_bits(p.family))
			return -EINVAL;
	}
	p.len = (uint8_t)len;
	prefix_mask(&p);
	if (was_addr != NULL)
		*was_addr = slash == NULL;
	*out = p;
	return 0;
}

bool
prefix_text_has_host_bits(const char *text)
{
	char addr[PREFIX_STRLEN];
	struct prefix net, host;

	snprintf(addr, sizeof(addr), "%.*s", (int)strcspn(text, "/"), text);
	return prefix_parse(text, &net, NULL) == 0 &&
	       prefix_parse(addr, &host, NULL) == 0 &&
	       memcmp(&host.addr, &net.addr, sizeof(net.addr)) != 0;
}
