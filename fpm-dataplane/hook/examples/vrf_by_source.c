/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VRF by source: packets from 192.0.2.128/25 and from 2001:db8:1::/48 are looked up in the
 * VRF with table 1001 (`ip link add red type vrf table 1001`), whatever VRF the interface
 * is in. Counter 0: the number of these packets.
 */
#include <fpm_hook.h>

#define TABLE 1001

uint64_t
vrf_by_source(struct fpm_hook *hook)
{
	const uint8_t *ip = hook->packet;

	if (hook->family == 4) {
		if ((fpm_be32(ip + 12) & 0xffffff80) != 0xc0000280)
			return FPM_PASS;
	} else if (fpm_be32(ip + 8) != 0x20010db8 || fpm_be16(ip + 12) != 1) {
		return FPM_PASS;
	}
	hook->counter[0]++;
	return FPM_TABLE(TABLE);
}
