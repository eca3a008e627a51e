/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drop by payload: UDP datagrams that begin with "M-SEARCH", the requests of SSDP with
 * which attackers make devices answer to a victim. Counter 0: dropped packets.
 */
#include <fpm_hook.h>

/* Return the offset of the payload of a UDP datagram; 0: the packet has no UDP header. */
static inline __attribute__((always_inline)) uint32_t
payload_at(const struct fpm_hook *hook)
{
	const uint8_t *ip = hook->packet;

	/* Later fragments have no UDP header. */
	if (hook->family == 4 && ip[9] == 17 && (fpm_be16(ip + 6) & 0x1fff) == 0)
		return (ip[0] & 15u) * 4 + 8;
	if (hook->family == 6 && ip[6] == 17)
		return 40 + 8;
	return 0;
}

uint64_t
drop_payload(struct fpm_hook *hook)
{
	uint32_t at = payload_at(hook);
	const uint8_t *text;

	/*
	 * The verifier accepts an index only if the program has compared it with a limit.
	 */
	if (at == 0 || at > 68 || hook->octets < at + 8)
		return FPM_PASS;
	text = hook->packet + at;
	if (text[0] != 'M' || text[1] != '-' || text[2] != 'S' || text[3] != 'E' ||
	    text[4] != 'A' || text[5] != 'R' || text[6] != 'C' || text[7] != 'H')
		return FPM_PASS;
	hook->counter[0]++;
	return FPM_DROP;
}
