/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPLS labels of fuzz_packet: a table of labels of each kind, and a second model of the
 * frames that leave with labels, or after labels were removed (RFC 3031, RFC 3032, RFC
 * 3443).
 */
#ifndef PACKET_LABELS_H
#define PACKET_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/label.h"
#include "fib/tunnel.h"

enum {
	LABEL_PHP = 16,  /* removed; the packet goes to the neighbor */
	LABEL_SWAP,      /* replaced by PUSH_ONE */
	LABEL_SWAP_MORE, /* replaced by PUSH_MORE and two further labels */
	LABEL_MAIN,      /* removed; lookup in table main */
	LABEL_RED,       /* removed; lookup in the VRF */
	LABEL_ECMP,      /* like LABEL_PHP or like LABEL_SWAP */
	LABEL_UNSUPPORTED,
	LABEL_BLACKHOLE,
	LABEL_INTO_TUNNEL, /* replaced by PUSH_ONE, behind the header of a tunnel */
	LABEL_UNKNOWN,
	LABEL_KINDS_END,
	PUSH_ONE = 200,
	PUSH_MORE = 300,
};

/*
 * Fill the table of labels, and add routes: 203.0.113.0/24 and 2001:db8:78::/48 push
 * labels, 203.0.114.0/24 has a path with a label and a path without, 203.0.112.0/24 and
 * 2001:db8:7b::/48 push a label into `tunnel`. `group` is the first of 16 free groups.
 */
void labels_make(struct fib *fib, uint32_t adj, uint16_t vrf, uint32_t group,
		 uint16_t tunnel);

/*
 * Check the first octets of a frame that leaves. `packet` and `end` are those of the frame
 * that came, behind its tags.
 */
void label_sent_on(const struct fib *fib, const uint8_t *packet, const uint8_t *end,
		   const uint8_t *left);

/*
 * Check a frame that leaves behind a label in tunnel `t`: the outer headers, the label, and
 * the packet. The frame has the octets from `left`, behind its tags, to `left_end` in its
 * first segment, and `behind` octets in the next.
 */
void label_tunnel_sent_on(const struct fib *fib, const struct fib_tunnel *t,
			  const uint8_t *packet, const uint8_t *end, const uint8_t *left,
			  const uint8_t *left_end, unsigned int behind);

/* Check the first octets of a frame whose outer packet got a label, and has 64 as its TTL. */
void label_outer_sent_on(const struct fib *fib, const uint8_t *left);

#endif
