/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bfd: the thread that runs the BFD sessions of FRR. bfdd sends it the sessions over its
 * protocol for data planes (bfdd --dplaneaddr). Without the key `bfd.dplane` the thread
 * only answers queries, and bfdd sends and receives packets through the TAPs.
 */
#ifndef BFD_BFD_H
#define BFD_BFD_H

#include "base/bfd_conf.h"
#include "base/sd_notify.h"
#include "base/worker.h"

/* Names of the descriptors that outlive the daemon. */
#define BFD_KEEP_FD     "bfd"
#define BFD_CONN_FD     "bfd-conn-"
#define BFD_DESCRIPTORS 49u /* maximum */

struct bfd_table;
struct fib;
struct fwd_rings;

struct bfd_setup {
	struct fib *fib;
	struct worker *rib;      /* receives MSG_BFD_HOP */
	struct worker *punt;     /* receives MSG_BFD_PEER */
	struct fwd_rings *rings; /* array, one per forwarder; the thread reads CLASS_bfd */
	struct bfd_table *table; /* NULL while BFD is off */
	unsigned int n_fwd;
	unsigned int full_rounds;   /* rounds in which a forwarder empties a full queue */
	const char *netns;          /* the control namespace */
	struct bfd_setup_conf conf; /* as at the start; a change needs a restart */
};

/* Set up the thread, as rib_setup() does. Returns 0 or -ENOMEM.                   [main] */
int bfd_setup(struct worker *w, const struct bfd_setup *setup);

/*
 * Take over the sessions of the previous daemon, which has ended, and report their dead
 * next hops to rib. Call it before the forwarders start and before worker_start(). Returns
 * 0 or -errno.                                                                       [main]
 */
int bfd_take_over(struct worker *w);

/*
 * List the descriptors that a successor inherits, at most BFD_DESCRIPTORS. Returns their
 * number.                                                                           [main]
 */
unsigned int bfd_descriptors(const struct worker *w, struct named_fd *into);
void bfd_teardown(struct worker *w);

#endif
