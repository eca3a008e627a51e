/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spread_avx512: put a burst whose packets all leave into the transmit buffers, with
 * AVX-512: one port at a time, eight packets at once. The result is that of fwd_tx_put()
 * per packet. [fwd-n]
 *
 * With four interfaces all stages together take 0.95 times the cycles that they take with
 * fwd_tx_put(). To add up the octets per interface here, and not in a loop before the
 * transmit call, gained nothing (1.0).
 */
#include "fwd/avx512.h"
#include "fwd/tx.h"

FWD_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,popcnt")

/*
 * With more ports the scalar code is as fast, because each port costs a pass over all
 * entries.
 */
#define PORTS_MAX 12

static_assert(PORT_MAX <= 256 && BURST_MAX == 64, "a vector has an octet per entry");

uint64_t
fwd_spread_avx512(struct burst *b)
{
	struct fwd *f = b->fwd;
	unsigned int n = b->n;
	uint64_t todo = burst_all(b), left = 0;
	__m512i out = _mm512_loadu_si512((const void *)b->out_port);

	for (unsigned int k = 0; todo != 0 && k < PORTS_MAX; k++) {
		unsigned int first = (unsigned int)__builtin_ctzll(todo);
		uint16_t ifidx = b->out_port[first];
		uint16_t vlan = b->vlan_a_port ? (uint16_t)b->hop[first] : 0;
		uint64_t mine = _mm512_mask_cmpeq_epi8_mask(todo, out,
							    _mm512_set1_epi8((char)ifidx));
		bool said = fwd_tx_vlan(f, ifidx, vlan);
		struct rte_mbuf **m =
			fwd_tx_room(f, ifidx, (unsigned int)__builtin_popcountll(mine));

		todo &= ~mine;
		if (m == NULL) {
			left |= mine;
			continue;
		}
		/*
		 * Whole vectors are stored. Surplus pointers are overwritten by the next
		 * store, or lie behind the last packet.
		 */
		for (unsigned int i = 0; i < n; i += 8) {
			__mmask8 of = (__mmask8)(mine >> i);

			_mm512_storeu_si512(
				(void *)m,
				_mm512_maskz_compress_epi64(
					of, _mm512_loadu_si512((const void *)&b->m[i])));
			m += __builtin_popcount(of);
		}
		for (uint64_t rest = said ? 0 : mine; rest != 0; rest &= rest - 1)
			b->m[__builtin_ctzll(rest)]->port = vlan;
		f->tx[ifidx].has_vlans |= b->tags_out && !b->vlan_a_port;
		f->tx[ifidx].has_inserts |= b->inserts;
		fwd_tx_full(f, ifidx);
	}
	return todo | left;
}

FWD_TARGET_END
