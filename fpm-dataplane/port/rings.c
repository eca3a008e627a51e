/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings: make and free the rings between a forwarder and the punt thread.        [main]
 */
#include <stdio.h>

#include <rte_errno.h>

#include "base/log.h"
#include "port/packet_meta.h"

#define PUNT_RING_PROTECTED 1024
#define PUNT_RING_OPEN      512
#define PUNT_RING_TRANSIT   2048 /* 40 ms of 50,000 packets a second */
#define INJECT_RING         1024

const char *
rings_suffix(unsigned int client, char buf[RINGS_SUFFIX_STRLEN])
{
	snprintf(buf, RINGS_SUFFIX_STRLEN, ".%u", client);
	return buf;
}

/* Make a ring. Returns NULL if out of memory. */
static struct rte_ring *
ring_make(const char *what, unsigned int fwd, unsigned int client, unsigned int size)
{
	char name[RTE_RING_NAMESIZE], suffix[RINGS_SUFFIX_STRLEN];

	snprintf(name, sizeof(name), "%s-%u%s", what, fwd, rings_suffix(client, suffix));
	return rte_ring_create(name, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

static unsigned int ring_size(enum punt_class class)
{
	if (class == CLASS_kernel_route || class == CLASS_kernel_tunnel)
		return PUNT_RING_TRANSIT;
	return class < CLASS_FIRST_OPEN ? PUNT_RING_PROTECTED : PUNT_RING_OPEN;
}

int
fwd_rings_make(struct fwd_rings *r, unsigned int fwd, unsigned int client,
	       _Atomic uint32_t *n_gleaned)
{
	int rc = 0;
	char name[16];

	for (unsigned int c = 0; c < N_PUNT_CLASS; c++) {
		snprintf(name, sizeof(name), "punt-%u", c);
		r->punt[c] = ring_make(name, fwd, client, ring_size((enum punt_class)c));
		if (r->punt[c] == NULL && rc == 0)
			rc = -rte_errno;
	}
	r->inject = ring_make("inject", fwd, client, INJECT_RING);
	if (r->inject == NULL && rc == 0)
		rc = -rte_errno;
	r->n_gleaned = n_gleaned;
	if (rc < 0)
		log_error("main: rings not created error=\"%s\"", rte_strerror(-rc));
	return rc;
}

void
ring_end(struct rte_ring *ring)
{
	void *m = NULL;

	while (ring != NULL && rte_ring_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}

void
fwd_rings_free(struct fwd_rings *r)
{
	for (unsigned int c = 0; c < N_PUNT_CLASS; c++)
		ring_end(r->punt[c]);
	ring_end(r->inject);
}
