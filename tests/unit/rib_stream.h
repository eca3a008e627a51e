/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FPM octets into a rib without its thread: the frame cutter, the decoder, the queue and the
 * mailbox are the daemon's own; only the socket is missing.
 */
#ifndef RIB_STREAM_H
#define RIB_STREAM_H

#include "rib_rig.h"

#include "fpm/decode.h"
#include "fpm/server.h"

struct stream {
	struct rig *g;
	struct fpm_queue queue;
	struct fpm_tally tally;
	uint8_t *rest; /* of a frame that is not complete */
	size_t n_rest;
	uint32_t other_pid; /* not 0: another zebra than the one of the octets */
	bool announced;
	bool held; /* rib stands still: what is handed over waits in its mailbox */
};

void stream_open(struct stream *s, struct rig *g);

/*
 * As if one read had brought these octets: frames cut, decoded, handed over, applied; not
 * committed. Returns 0 or -EPROTO, after which nothing more may be fed.
 */
int stream_feed(struct stream *s, const uint8_t *p, size_t len);

/* Rib stands still, and the queue has a limit; or it goes on with what waits. */
void stream_hold(struct stream *s, uint64_t limit_bytes);
void stream_go_on(struct stream *s);

/* The connection ends; what it taught stays. */
void stream_close(struct stream *s);

/*
 * All that zebra taught goes, by a session that replays nothing; only what the kernel said
 * is left. Asserts that nothing else stays behind.
 */
void stream_withdraw_all(struct rig *g);

#endif
