/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse_ip: validate the IP packet of a frame, of a packet with labels or of a tunnel.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_PARSE_IP_H
#define FWD_PARSE_IP_H

#include "fwd/burst.h"

/*
 * Validate the IP packet at burst_l3() for forwarding. The verdict stays VERDICT_GO if it
 * may be forwarded.
 */
void fwd_parse_ip4(struct burst *b, unsigned int i);
void fwd_parse_ip6(struct burst *b, unsigned int i);

#endif
