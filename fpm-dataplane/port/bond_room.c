/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for LACP. When a member of an 802.3ad bond has a link for the first time, DPDK 22.11
 * makes packets and rings for it, and ends the program when there is no memory: so the same
 * is made, and given back, before. That is done by DPDK's interrupt thread, which also hears of
 * links: none comes up meanwhile.
 */
#include "port/bond.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>

#include <rte_alarm.h>
#include <rte_eth_bond.h>
#include <rte_eth_bond_8023ad.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "base/errmsg.h"

/* As rte_eth_bond_8023ad.c has them: a frame, a cache, one packet beside the descriptors. */
#define FRAME_BYTES (sizeof(struct slow_protocol_frame) + RTE_PKTMBUF_HEADROOM)
#define CACHE       32
#define MORE        1
/* Two rings of a few places, and whatever small there may be until a link comes up. */
#define RINGS_BYTES (64u << 10)
/* Of a queue with 1024 descriptors: drivers reserve as many as 4096, of 32 octets. */
#define QUEUE_BYTES (160u << 10)

struct trial {
	uint16_t member[RTE_MAX_ETHPORTS]; /* that had no link yet */
	unsigned int n, n_packet;
	size_t other_bytes; /* a member */
	bool fits;
	sem_t done;
};

/* What DPDK calls the packets of a member: there from its first link on, for good. */
static bool
had_a_link(uint16_t member)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "slave_port%u_pool", member);
	return rte_mempool_lookup(name) != NULL;
}

static void
members_find(struct trial *t)
{
	uint16_t bond, member[BOND_MEMBERS_MAX];

	RTE_ETH_FOREACH_DEV(bond)
	{
		int n = rte_eth_bond_slaves_get(bond, member, BOND_MEMBERS_MAX);

		if (n <= 0 || rte_eth_bond_mode_get(bond) != BONDING_MODE_8023AD)
			continue;
		while (n-- > 0)
			if (!had_a_link(member[n]) && t->n < RTE_MAX_ETHPORTS)
				t->member[t->n++] = member[n];
	}
}

/* In DPDK's interrupt thread. */
static void
try_all(void *ctx)
{
	struct rte_mempool *pool[RTE_MAX_ETHPORTS];
	void *other[RTE_MAX_ETHPORTS];
	struct trial *t = ctx;
	unsigned int n = 0;

	for (t->fits = true; t->fits && n < t->n; n++) {
		int node = rte_eth_dev_socket_id(t->member[n]);
		char name[RTE_MEMPOOL_NAMESIZE];

		if (node < 0)
			node = (int)rte_socket_id();
		snprintf(name, sizeof(name), "bond_room%u", n);
		pool[n] = rte_pktmbuf_pool_create(name, t->n_packet, CACHE, 0, FRAME_BYTES,
						  node);
		other[n] = rte_malloc_socket(NULL, t->other_bytes, 0, node);
		t->fits = pool[n] != NULL && other[n] != NULL;
	}
	while (n-- > 0) {
		rte_mempool_free(pool[n]);
		rte_free(other[n]);
	}
	sem_post(&t->done);
}

int
bond_room(unsigned int n_desc, unsigned int n_queue, char *why, unsigned int why_size)
{
	struct trial t = {.n_packet = n_desc + MORE};

	members_find(&t);
	if (t.n == 0)
		return 0;
	t.other_bytes = RINGS_BYTES + (size_t)n_queue * QUEUE_BYTES;
	sem_init(&t.done, 0, 0);
	if (rte_eal_alarm_set(1, try_all, &t) < 0)
		t.fits = true; /* nobody knows */
	else
		while (sem_wait(&t.done) < 0)
			continue;
	sem_destroy(&t.done);
	if (t.fits)
		return 0;
	return why_not(
		why, why_size, -ENOMEM,
		"memory.size-mib is too small: 802.3ad takes more of it when links of "
		"a bond come up (%u member%s to come) than would be left, and DPDK "
		"would end the program then",
		t.n, t.n == 1 ? "" : "s");
}
