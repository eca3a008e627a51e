/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A headend of SRv6 for fuzz_packet, and a model of the frames that leave by it (RFC 8986,
 * 5.1).
 */
#ifndef PACKET_SEGMENTS_H
#define PACKET_SEGMENTS_H

#include <stdint.h>

#include "fib/headend.h"

/*
 * Make 203.0.115.0/24 and 2001:db8:79::/48 a headend. Its first segment is in
 * 2001:db8:77::/48. `group` is a free group, `number` a free entry of fib->encap.
 */
void segments_make(struct fib *fib, uint32_t group, uint32_t number);

/*
 * Check the first octets of a frame that leaves: `ip` is the packet of `bytes` octets that
 * came.
 */
void segments_sent_on(const uint8_t *ip, unsigned int bytes, const uint8_t *left);

#endif
