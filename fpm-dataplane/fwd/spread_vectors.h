/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spread_vectors: put a burst whose packets all leave into the transmit buffers, one port
 * at a time. The result is that of fwd_tx_put() per packet.
 *
 * spread_sse4.c, spread_avx2.c and spread_avx512.c include this file, each for one kind of
 * CPU. Before the include they define octets64, after it the function that this file
 * declares first.
 *                                                                               [fwd-n]
 *
 * With four interfaces all stages together take 0.95 times the cycles that they take with
 * fwd_tx_put() (AVX-512). Adding up the octets per interface here, and not in a loop before
 * the transmit call, gained nothing (1.0).
 */
#ifndef FWD_SPREAD_VECTORS_H
#define FWD_SPREAD_VECTORS_H

#include "fwd/tx.h"

/* Store the packets of `mine` from `m` on. May write 8 pointers beyond them. */
INLINE void burst_copy(struct rte_mbuf **m, const struct burst *b, uint64_t mine);

/*
 * With more ports the scalar code is as fast, because each port costs a pass over all
 * entries.
 */
#define PORTS_MAX 12

static_assert(PORT_MAX <= 256 && BURST_MAX == 64, "a vector has an octet per entry");

/* See fwd_spread_avx512() in fwd/tx.h. */
INLINE uint64_t
spread_vectors(struct burst *b)
{
	struct fwd *f = b->fwd;
	uint64_t todo = burst_all(b), left = 0;
	octets64 out = octets_load(b->out_port);

	for (unsigned int k = 0; todo != 0 && k < PORTS_MAX; k++) {
		unsigned int first = (unsigned int)__builtin_ctzll(todo);
		uint16_t ifidx = b->out_port[first];
		uint16_t vlan = b->vlan_a_port ? (uint16_t)b->hop[first] : 0;
		uint64_t mine = octets_are(out, (uint8_t)ifidx) & todo;
		bool said = fwd_tx_vlan(f, ifidx, vlan);
		struct rte_mbuf **m =
			fwd_tx_room(f, ifidx, (unsigned int)__builtin_popcountll(mine));

		todo &= ~mine;
		if (m == NULL) {
			left |= mine;
			continue;
		}
		burst_copy(m, b, mine);
		for (uint64_t rest = said ? 0 : mine; rest != 0; rest &= rest - 1)
			b->m[__builtin_ctzll(rest)]->port = vlan;
		f->tx[ifidx].has_vlans |= b->tags_out && !b->vlan_a_port;
		f->tx[ifidx].has_inserts |= b->inserts;
		fwd_tx_full(f, ifidx);
	}
	return todo | left;
}

#endif
