/* SPDX-License-Identifier: BSD-3-Clause */
/* frame: the framing of the FPM channel: a header of four octets, then netlink messages. */
#ifndef FPM_FRAME_H
#define FPM_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FPM_HEADER_BYTES 4u
#define FPM_FRAME_MAX    65535u /* the length field is 16 bits and counts the header */

struct fpm_frame {
	const uint8_t *payload;
	size_t len; /* octets of payload, may be 0 */
};

/*
 * Cut the next FPM frame off a byte stream.          [any thread, no side effects]
 *
 * buf    `len` octets as received; the FPM header is version, type, be16 length
 *        (FRR fpm/fpm.h), the length counting the 4 header octets.
 * frame  out: payload of one or more netlink messages (host order, 4-aligned when
 *        buf is); points into buf, valid while buf is. Unchanged unless the function
 *        returns a number above 0.
 *
 * Returns the number of octets consumed, 0 when more octets are needed, -EPROTO when the
 * stream is invalid: the caller closes the session and does not resynchronize.
 */
int fpm_frame_next(const uint8_t *buf, size_t len, struct fpm_frame *frame);

#endif
