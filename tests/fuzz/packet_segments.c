/* SPDX-License-Identifier: BSD-3-Clause */
/* The headend of fuzz_packet, see packet_segments.h. */
#include "packet_segments.h"

#include "base/inet.h"
#include "must.h"
#include "packet_tunnels.h"

#define OUTER (40 + 8 + 32) /* octets: two segments */

void
segments_make(struct fib *fib, uint32_t group, uint32_t number)
{
	static const uint8_t net4[4] = {203, 0, 115};
	static const uint8_t net6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x79};
	static const uint8_t segments[32] = {0xfc, [15] = 2, [16] = 0x20, 1,       0x0d,
					     0xb8, 0,        0x77,        [31] = 5};
	static struct fib_seg6 seg6 = {.source = {{0xfd, [15] = 1}}};
	uint32_t word[SRV6_WORDS_MAX];

	fib->seg6 = &seg6;
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	fib->encap[number] = (struct fib_encap){.next = PATH(PATH_VRF, 0)};
	MUST(fib_headend_write(&fib->headend[number], word,
			       srv6_headend_pack(SRV6_ENCAP, segments, 2, word)));
	fib->group[group] = group_word_single(PATH(PATH_ENCAP, number));
	packet_route(fib, 4, net4, 24, group);
	packet_route(fib, 6, net6, 48, group);
}

void
segments_sent_on(const uint8_t *ip, unsigned int bytes, const uint8_t *left)
{
	uint8_t class = ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(get_be16(ip) >> 4);
	uint32_t first = get_be32(left + 14);

	MUST(ip[ip[0] >> 4 == 4 ? 8 : 7] > 1);
	MUST(get_be16(left + 12) == 0x86dd);
	MUST(first >> 20 == (0x600u | class) && (first & 0xfffff) != 0);
	MUST(get_be16(left + 18) == bytes + OUTER - 40);
	MUST(left[20] == 43 && left[21] == 64 && left[22] == 0xfd);
}
