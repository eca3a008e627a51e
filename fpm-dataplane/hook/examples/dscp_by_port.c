/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DSCP by port: signalling of SIP (port 5060, TCP and UDP, either end) gets CS3, media of
 * RTP (UDP destination ports 16384 to 32767) gets EF, as RFC 4594 recommends. All other
 * packets get 0. Counters: 0 signalling, 1 media, 2 other packets.
 */
#include <fpm_hook.h>

#define CS3 24
#define EF  46

uint64_t
dscp_by_port(struct fpm_hook *hook)
{
	const uint8_t *ip = hook->packet;
	uint32_t at = hook->family == 4 ? (ip[0] & 15u) * 4 : 40;
	uint8_t proto = hook->family == 4 ? ip[9] : ip[6];
	uint16_t from, to;

	hook->counter[2]++;
	/* Later fragments have no ports. */
	if ((proto != 6 && proto != 17) || hook->octets < at + 4 ||
	    (hook->family == 4 && (fpm_be16(ip + 6) & 0x1fff) != 0))
		return FPM_DSCP(0);
	from = fpm_be16(ip + at);
	to = fpm_be16(ip + at + 2);
	if (from == 5060 || to == 5060) {
		hook->counter[2]--;
		hook->counter[0]++;
		return FPM_DSCP(CS3);
	}
	if (proto == 17 && to >= 16384 && to <= 32767) {
		hook->counter[2]--;
		hook->counter[1]++;
		return FPM_DSCP(EF);
	}
	return FPM_DSCP(0);
}
