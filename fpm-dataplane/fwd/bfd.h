/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bfd: the part of BFD sessions that a forwarder has (port/bfd.h). Private to fwd/.  [fwd-n]
 */
#ifndef FWD_BFD_H
#define FWD_BFD_H

#include "fwd/burst.h"
#include "port/bfd.h"

/* Take over changes of the slots, and send the packets that are due. */
void fwd_bfd_send(struct fwd *f);

/* Call fwd_bfd_send() if a slot has changed or a packet is due. Without sessions this costs three loads. */
static inline void
fwd_bfd_round(struct fwd *f)
{
	struct bfd_pace *p = f->conf->bfd;

	if (p != NULL &&
	    (rte_rdtsc() >= p->next ||
	     atomic_load_explicit(&p->table->epoch, memory_order_relaxed) != p->epoch))
		fwd_bfd_send(f);
}

/*
 * Take a packet to this host if it is of BFD, and return true: the packet is then noted,
 * given to thread bfd, or dropped and counted. Only where thread bfd serves BFD.
 */
bool fwd_bfd_take(struct burst *b, unsigned int i);

#endif
