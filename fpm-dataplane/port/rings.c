/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings between a forwarder and the punt thread, made and freed by main.
 */
#include <stdio.h>

#include <rte_errno.h>

#include "base/log.h"
#include "port/packet.h"

#define PUNT_RING_PROTECTED 1024
#define PUNT_RING_OPEN      512
#define INJECT_RING         1024

/* NULL when memory is out. */
static struct rte_ring *
ring_make(const char *what, unsigned int fwd, unsigned int size)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%s-%u", what, fwd);
	return rte_ring_create(name, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

int
fwd_rings_make(struct fwd_rings *r, unsigned int fwd, _Atomic uint32_t *n_gleaned)
{
	bool made = true;
	char name[16];

	for (unsigned int c = 0; c < N_PUNT_CLASS; c++) {
		snprintf(name, sizeof(name), "punt-%u", c);
		r->punt[c] = ring_make(name, fwd,
				       c < CLASS_FIRST_OPEN ? PUNT_RING_PROTECTED
							    : PUNT_RING_OPEN);
		made &= r->punt[c] != NULL;
	}
	r->inject = ring_make("inject", fwd, INJECT_RING);
	r->n_gleaned = n_gleaned;
	if (made && r->inject != NULL)
		return 0;
	log_error("main: rings not made error=%s", rte_strerror(rte_errno));
	return -rte_errno;
}

void
fwd_rings_free(struct fwd_rings *r)
{
	for (unsigned int c = 0; c < N_PUNT_CLASS; c++)
		rte_ring_free(r->punt[c]);
	rte_ring_free(r->inject);
}
