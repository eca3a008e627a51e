/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first look at a burst: where its frames begin, what the port says of them, whether the
 * octets that decide whose they are (MAC addresses, tags) are the same in all.   [fwd-n]
 */
#include "fwd/burst.h"
#include "fwd/plain.h"

static uint64_t
one_by_one(struct burst *b, uint8_t tag_bytes)
{
	uint64_t bytes = 0, any = 0, all = UINT64_MAX, differ = 0;
	uint64_t tags = burst_tags(rte_pktmbuf_mtod(b->m[0], const uint8_t *));

	for (unsigned int i = 0; i < b->n; i++) {
		const struct rte_mbuf *m = b->m[i];
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

		b->l2[i] = frame + tag_bytes;
		bytes += m->pkt_len;
		any |= m->ol_flags;
		all &= m->ol_flags;
		differ |= burst_tags(frame) ^ tags;
	}
	b->tag_bytes = tag_bytes;
	b->bytes = bytes;
	b->any_flags = any;
	b->all_flags = all;
	b->heads_differ = UINT64_MAX; /* who asks looks at each anyway */
	return differ;
}

static uint64_t (*look)(struct burst *b, uint8_t tag_bytes) = one_by_one;

/* Before main, so that nobody can come too early. */
__attribute__((constructor)) static void
choose(void)
{
	if (fwd_has_avx512())
		look = fwd_look_avx512;
}

uint64_t
fwd_look_tags(struct burst *b, uint8_t tag_bytes)
{
	return look(b, tag_bytes);
}
