/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bfd: the part of BFD sessions that a forwarder runs (port/bfd.h). Private to fwd/.
 * [fwd-n]
 */
#ifndef FWD_BFD_H
#define FWD_BFD_H

#include "fwd/burst.h"
#include "port/bfd.h"

/* Take over changes of the slots, and send the packets that are due. */
void fwd_bfd_send(struct fwd *f);

/*
 * Call fwd_bfd_send() if a slot has changed, or if `look` is true and a packet is due. The
 * caller does not look in each round with packets, because to read the clock costs 1 % of
 * the packet rate.
 */
static inline void
fwd_bfd_round(struct fwd *f, bool look)
{
	struct bfd_pace *p = f->conf->bfd;

	if (p != NULL &&
	    ((look && p->next != DUE_NEVER && rte_rdtsc() >= p->next) ||
	     atomic_load_explicit(&p->table->epoch, memory_order_relaxed) != p->epoch))
		fwd_bfd_send(f);
}

/* Begin and end the time in which thread bfd may lend its priority to this forwarder. */
void fwd_bfd_begin(struct fwd *f);
void fwd_bfd_end(struct fwd *f);
/* Give the lent priority back. */
void fwd_bfd_give_back(struct fwd *f);

/*
 * Note the end of a round. In this round the forwarder has sent the packets that were due,
 * and has polled its queues.
 */
static inline void
fwd_bfd_round_end(struct fwd *f)
{
	struct bfd_pace *p = f->conf->bfd;
	struct bfd_loan *loan;

	if (p == NULL)
		return;
	loan = &p->table->loan[p->index];
	atomic_store_explicit(&loan->rounds,
			      atomic_load_explicit(&loan->rounds, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (atomic_load_explicit(&loan->lent, memory_order_relaxed))
		fwd_bfd_give_back(f);
}

/* Results of fwd_bfd_take(). */
enum bfd_fate {
	BFD_NOT, /* not BFD, or for the sockets of thread bfd */
	BFD_TAKEN,
	BFD_REFUSED, /* the caller drops it */
};

/*
 * Take a packet to this host if it is BFD: note it, or give it to thread bfd. Call this
 * only if thread bfd runs the sessions. *refused: the drop reason, if the result is
 * BFD_REFUSED.
 */
enum bfd_fate fwd_bfd_take(struct burst *b, unsigned int i, enum reason *refused);

#endif
