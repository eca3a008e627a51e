/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TTL floor: drop packets that come with a TTL below 8. Traceroute from outside then
 * shows nothing behind this interface. Packets of hosts pass, because hosts send with a TTL
 * of 64 or more. BGP passes, because peers of EBGP send with a TTL of 1. OSPF passes,
 * because it sends some packets to the router's own address. If other protocols of
 * neighbors use unicast with a low TTL on the interface, such as LDP, RIP or PIM, let them
 * pass, too. Counters: 0 dropped packets, 1 packets of BGP and OSPF below the floor.
 */
#include <fpm_hook.h>

#define FLOOR 8
#define BGP   179 /* port of TCP */
#define OSPF  89  /* protocol */

uint64_t
ttl_floor(struct fpm_hook *hook)
{
	const uint8_t *ip = hook->packet;
	uint8_t hops = hook->family == 4 ? ip[8] : ip[7];
	uint8_t proto = hook->family == 4 ? ip[9] : ip[6];
	uint32_t at = hook->family == 4 ? (ip[0] & 15u) * 4 : 40;

	if (hops >= FLOOR)
		return FPM_PASS;
	if (proto == OSPF ||
	    (proto == 6 && (fpm_be16(ip + at) == BGP || fpm_be16(ip + at + 2) == BGP))) {
		hook->counter[1]++;
		return FPM_PASS;
	}
	hook->counter[0]++;
	return FPM_DROP;
}
