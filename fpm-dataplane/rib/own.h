/* SPDX-License-Identifier: BSD-3-Clause */
/* Own addresses and their subnets, as the kernel has them. [rib]. */
#ifndef RIB_OWN_H
#define RIB_OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"
#include "rib/index.h"

struct rib_links;

/* --- the two tables: subnets by interface, addresses in them; numbers from 1 ------------ */

struct own_subnet {
	struct prefix prefix; /* masked; len 0 and family 0: entry is free */
	uint32_t ifindex;
	uint32_t table;
	uint32_t refs; /* own addresses in it */
};

struct own {
	uint32_t subnet; /* number; 0: entry is free */
	struct ipaddr addr;
};

struct rib_own {
	struct own *v; /* by number, from 1 */
	uint32_t high, cap;
	struct vec32 unused;
	struct hidx by_addr;
	struct own_subnet *subnet; /* by number, from 1 */
	uint32_t subnet_high, subnet_cap;
	struct vec32 subnet_unused;
	struct hidx subnet_by_prefix, subnet_by_special[2];
};

struct prefix own_host_prefix(uint8_t family, const struct ipaddr *addr);
/*
 * Set *out to a special address of a subnet, which no host has, and return true if there is
 * one. IPv4: the all-zeros (0) and all-ones (1) host part. IPv6: the subnet-router anycast
 * address (0), which is an own address (RFC 4291, 2.6.1), but not on a link of two (RFC
 * 6164).
 */
bool subnet_special(const struct own_subnet *s, unsigned int which, struct prefix *out);

/* Return numbers; 0: none. */
uint32_t own_subnet_find(const struct rib_own *own, uint32_t ifindex, uint32_t table,
			 const struct prefix *p);
uint32_t own_find(const struct rib_own *own, uint32_t subnet, const struct ipaddr *addr);
uint32_t own_subnet_get(struct rib_own *own, uint32_t ifindex, uint32_t table,
			const struct prefix *p);
/*
 * Add an address to a subnet, or remove it. own_delete() also drops its reference to the
 * subnet, which the caller of own_insert() counted.
 */
uint32_t own_insert(struct rib_own *own, uint32_t subnet, const struct ipaddr *addr);
void own_delete(struct rib_own *own, uint32_t i);

bool own_is_address(const struct rib_own *own, uint32_t table, const struct prefix *p);
/*
 * Return the interface of a connected subnet; of several interfaces always the one with the
 * smallest index. 0: none.
 */
uint32_t own_connected_ifindex(const struct rib_own *own, const struct rib_links *links,
			       uint32_t table, const struct prefix *p);
bool own_is_special(const struct rib_own *own, const struct rib_links *links,
		    uint32_t table, const struct prefix *p);
/*
 * Return the only interface whose connected subnet covers `addr` best; 0: none or several.
 */
uint32_t own_ifindex_of(const struct rib_own *own, uint8_t family,
			const struct ipaddr *addr);
void own_free(struct rib_own *own);

#endif
