/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feed FPM octets into a RIB without its thread. The frame cutter, the decoder, the queue
 * and the mailbox are those of the daemon; only the socket is missing.
 */
#ifndef RIB_STREAM_H
#define RIB_STREAM_H

#include "rib_rig.h"

#include "fpm/decode.h"
#include "fpm/impl.h"

struct stream {
	struct rig *g;
	struct fpm_queue queue;
	struct fpm_decoded decoded;
	uint8_t *rest; /* the incomplete frame */
	size_t n_rest;
	/*
	 * the port id of zebra is that in the octets XOR this; not 0: it is another zebra
	 */
	uint32_t other_pid;
	bool announced;
	bool held; /* rib is paused: batches wait in its mailbox */
};

void stream_open(struct stream *s, struct rig *g);

/*
 * Handle these octets as if one read had returned them: cut frames, decode them, hand
 * batches over and apply them, without a commit. Return 0 or -EPROTO; after -EPROTO the
 * caller feeds no more octets.
 */
int stream_feed(struct stream *s, const uint8_t *p, size_t len);

/* Pause rib with a limit of the queue, or let it handle the waiting batches. */
void stream_hold(struct stream *s, uint64_t limit_bytes);
void stream_go_on(struct stream *s);

/* End the connection. The routes stay. */
void stream_close(struct stream *s);

/*
 * Remove all routes of zebra by a session that replays nothing. Assert that only the
 * kernel's prefixes are left.
 */
void stream_withdraw_all(struct rig *g);

#endif
