/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decap_fast: decapsulate usual packets before the stages, by the octets of their outer
 * headers. Usual packets to an end point that passes them on (End, also with NEXT-C-SID)
 * get the next segment as their destination, and then pass the stages once instead of
 * twice.
 *
 * A packet that was decapsulated or passed on by the slow path leaves its outer headers as
 * a pattern. Until the next quiescent state, a packet with the same headers is handled by a
 * comparison of octets, without a lookup. After a quiescent state, the lookups of a pattern
 * are repeated once.
 *
 * FIB_TUNNELS_DEEP limits the passes through the stages. A packet that an end point passes
 * on here needs one pass less. So it may visit one end point more than on the slow path.
 *
 * Private to fwd/. The functions read the packet and write the burst.           [fwd-n]
 */
#ifndef FWD_DECAP_FAST_H
#define FWD_DECAP_FAST_H

#include "fib/hook_list.h"
#include "fib/sid_entry.h"
#include "fwd/hook.h"

/*
 * A comparison costs cycles, and a match saves many cycles. So packets are compared while
 * at least one of DECAP_GAIN packets matches. After DECAP_GAIN_MAX packets without a match,
 * no packet is compared until enough packets would match. Packets that would match are
 * counted in one of DECAP_SAMPLE intervals (fwd.interval).
 */
#define DECAP_GAIN     8
#define DECAP_GAIN_MAX 1024
#define DECAP_SAMPLE   8 /* a counting interval makes at most one new pattern */

/* Note that `hits` of `n` packets match a pattern, or would match. */
static inline void
fwd_decap_gain(struct fwd *f, unsigned int hits, unsigned int n)
{
	int gain = f->decap_gain + (int)(hits * DECAP_GAIN) - (int)n;

	gain = RTE_MAX(gain, -DECAP_GAIN_MAX);
	f->decap_gain = RTE_MIN(gain, DECAP_GAIN_MAX);
	if (f->decap_gain > 0)
		f->decap_tries = true;
	else if (f->decap_gain == -DECAP_GAIN_MAX)
		f->decap_tries = false;
}

/* Return true if the caller must call fwd_decap_fast(). */
static inline bool
fwd_decap_may_be_fast(const struct burst *b)
{
	struct fwd *f = b->fwd;

	if (!f->has_patterns || fwd_watched(f) ||
	    fib_iface_is_hooked(f->hooks, fib_iface(f->fib, b->ifidx)))
		return false;
	if (!f->decap_tries && f->interval % DECAP_SAMPLE == 0)
		fwd_decap_gain(f, 0, b->n);
	return f->decap_tries;
}

/*
 * Move the packets that match a pattern from the burst to f->decap[], and remove their tags
 * (b->tag_bytes octets). A packet that an end point passes on stays in the burst with its
 * new destination. All other packets stay unchanged. b->n, the number of packets that stay,
 * may be 0 afterwards.
 */
void fwd_decap_fast(struct burst *b);

/*
 * Adjacency stage: make a pattern of the headers of packet `i`, which has just been
 * decapsulated. `local`: the path of the outer packet.
 */
void fwd_decap_learn(struct burst *b, unsigned int i, fib_path local);

/*
 * Adjacency stage: make a pattern of the headers of packet `i` if an end point of SRv6 is
 * about to pass it on. b->path[i] is the path of its destination.
 */
void fwd_decap_learn_end(struct burst *b, unsigned int i);

#endif
