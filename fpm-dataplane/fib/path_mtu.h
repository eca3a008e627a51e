/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_mtu: the path MTUs that routers have reported for outer packets of tunnels, VXLAN
 * and SRv6 (RFC 1191, RFC 8201; RFC 2003, 5.1). Linux keeps them with the route of the
 * destination, for all packets of the host. The punt thread learns them from ICMP errors to
 * this host (punt/pmtu.c).
 */
#ifndef FIB_PATH_MTU_H
#define FIB_PATH_MTU_H

#include "fib/fib.h"

#define FIB_PMTUS_MAX  256u
#define FIB_PMTUS_HALF (FIB_PMTUS_MAX / 2)
#define FIB_PMTU_NONE  UINT16_MAX
#define FIB_PMTU_LEAST 552u /* of IPv4: net.ipv4.route.min_pmtu of Linux. IPv6: 1280 */

struct fib_pmtu {
	struct ipaddr dst; /* of outer packets */
	uint16_t vrf;      /* of outer packets */
	uint16_t mtu_bytes;
	uint8_t family;
	bool sure; /* a tunnel or VTEP has this address; else the error may be forged */
	uint32_t until_s; /* monotonic_s() at which the entry expires */
};

/* Immutable: punt publishes a new table for each change. */
struct fib_pmtus {
	uint32_t n;
	struct fib_pmtu entry[FIB_PMTUS_MAX];
};

/*
 * Return the path MTU of outer packets to a destination, in octets; FIB_PMTU_NONE: none is
 * known. [RCU reader]
 */
static inline unsigned int
fib_pmtu(const struct fib *fib, uint16_t vrf, uint8_t family, const struct ipaddr *dst)
{
	const struct fib_pmtus *known =
		atomic_load_explicit(&fib->pmtus, memory_order_consume);

	for (uint32_t i = 0; known != NULL && i < known->n; i++) {
		const struct fib_pmtu *e = &known->entry[i];

		if (e->vrf == vrf && e->family == family && ipaddr_equal(&e->dst, dst))
			return e->mtu_bytes;
	}
	return FIB_PMTU_NONE;
}

#endif
