/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample: choose received packets at random for sFlow, one of N on average, and record them
 * and dropped packets in a ring that thread sflow reads (port/watch.h). While sFlow is off,
 * a burst pays one comparison. A burst without a sample pays one subtraction.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_SAMPLE_H
#define FWD_SAMPLE_H

#include "fwd/burst.h"

/* Take over new settings, and draw the distance to the next sample. */
void fwd_sample_begin(struct fwd *f);

/* Copy the packets of a received burst that are samples, as they were received. */
void fwd_sample_take(struct burst *b);

/* Count the packets of a received burst. Returns true if the burst has a sample. */
static inline bool
fwd_sample(struct burst *b)
{
	struct fwd *f = b->fwd;

	if (FWD_BLIND || f->sample == NULL)
		return false;
	if (f->sample_skip > b->n) {
		f->sample_skip -= b->n;
		return false;
	}
	fwd_sample_take(b);
	return f->n_sampled != 0;
}

/*
 * Note the results of the stages in the records of the samples that are in this burst. The
 * records are published after the last sample of the received burst.
 */
void fwd_sample_note(struct burst *b);

/* Return true if dropped packets are recorded in this round. */
static inline bool
fwd_samples_drops(const struct fwd *f)
{
	return !FWD_BLIND && f->sample != NULL && f->sample->sample_drops;
}

/* Record a packet of the burst that is about to be dropped, with the tags that it had. */
void fwd_sample_drop(struct burst *b, unsigned int i, enum reason reason);

/*
 * Record a frame that `port` did not take. Interface `out`: the port, or a VLAN on it. A
 * tag that the device was to insert is in the frame afterwards.
 */
void fwd_sample_unsent(struct fwd *f, uint16_t port, uint16_t out, struct rte_mbuf *m);

#endif
