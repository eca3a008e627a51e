/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spend the hop and write the new header: TTL (RFC 1812 5.3.1), checksum (RFC 1624),
 * MTU of egress and route, padding cut off, MACs. After this stage a packet only waits to be sent.
 * A packet that leaves before is untouched: the punt thread sees what came.     [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"

static void
rewrite_one(struct burst *b, unsigned int i)
{
	uint8_t *ip = burst_l3(b, i), *eth = burst_l2(b, i);
	const struct fib_iface *out = fib_iface(b->fwd->fib, b->hop[i] & 0xffff);
	uint64_t mac = __builtin_bswap64(b->hop[i]);
	uint8_t *ttl = b->family[i] == 4 ? ip + 8 : ip + 7;
	unsigned int excess, mtu;

	if (*ttl <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return;
	}
	if (out == NULL || !out->up) {
		burst_icmp(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	mtu = fib_mtu(b->fwd->fib, b->path[i], out);
	if (b->l3_len[i] > mtu) {
		burst_leave(b, i, PUNT_too_big);
		packet_meta(b->m[i])->mtu_bytes = (uint16_t)mtu;
		return;
	}
	if (b->family[i] == 4)
		ip4_ttl_dec(ip);
	else
		(*ttl)--;
	memcpy(eth, &mac, 6);
	memcpy(eth + 6, out->mac, 6);
	excess = rte_pktmbuf_pkt_len(b->m[i]) - L2_LEN - b->l3_len[i];
	if (excess > 0)
		rte_pktmbuf_trim(b->m[i], (uint16_t)excess);
}

void
fwd_rewrite(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		if (b->verdict[i] == VERDICT_GO)
			rewrite_one(b, i);
}
