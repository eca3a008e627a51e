/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of the FPM channel (FRR fpm/fpm.h). Any thread, no state. This file checks only
 * the header, and rejects a header at its first wrong octet, so that a peer with another
 * protocol is refused before it has sent a complete header.
 */
#include "fpm/frame.h"

#include <errno.h>

#define FPM_VERSION      1
#define FPM_TYPE_NETLINK 1 /* 2 is protobuf, which dplane_fpm_nl never sends */

int
fpm_frame_next(const uint8_t *buf, size_t len, struct fpm_frame *frame)
{
	size_t frame_len;

	if (len > 0 && buf[0] != FPM_VERSION)
		return -EPROTO;
	if (len > 1 && buf[1] != FPM_TYPE_NETLINK)
		return -EPROTO;
	if (len < FPM_HEADER_BYTES)
		return 0;
	frame_len = (size_t)buf[2] << 8 | buf[3];
	if (frame_len < FPM_HEADER_BYTES)
		return -EPROTO;
	if (len < frame_len)
		return 0;
	frame->payload = buf + FPM_HEADER_BYTES;
	frame->len = frame_len - FPM_HEADER_BYTES;
	return (int)frame_len;
}
