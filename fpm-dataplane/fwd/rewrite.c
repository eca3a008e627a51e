/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spend the hop and write the new header: TTL (RFC 1812 5.3.1), checksum (RFC 1624),
 * MTU of egress and route, padding cut off, MACs. After this stage a packet only waits to be sent.
 * A packet that leaves before is untouched: the punt thread sees what came.     [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"
#include "port/vlan.h"

/* Both MAC addresses with two stores: `hop` has theirs, `out` ours. */
static inline void
write_macs(uint8_t *eth, uint64_t hop, const struct fib_iface *out)
{
	uint16_t head;
	uint32_t tail;
	uint64_t mac;

	memcpy(&head, out->mac, sizeof(head));
	memcpy(&tail, out->mac + 2, sizeof(tail));
	mac = __builtin_bswap64(hop & ~0xffffull) | (uint64_t)head << 48;
	memcpy(eth, &mac, 8);
	memcpy(eth + 8, &tail, 4);
}

/* First octet of the frame that leaves by `out`, tags written. */
static inline uint8_t *
frame_of(struct burst *b, unsigned int i, const struct fib_iface *out)
{
	if (out->n_tags == 0)
		return burst_l2(b, i);
	b->tags_out = true;
	return vlan_push(b->m[i], out);
}

static void
rewrite_one(struct burst *b, unsigned int i)
{
	uint8_t *ip = burst_l3(b, i);
	const struct fib_iface *out = fib_iface(b->fwd->fib, b->hop[i] & 0xffff);
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
	excess = rte_pktmbuf_pkt_len(b->m[i]) - L2_LEN - b->l3_len[i];
	if (excess > 0)
		rte_pktmbuf_trim(b->m[i], (uint16_t)excess);
	write_macs(frame_of(b, i, out), b->hop[i], out);
}

/*
 * Plain packets that fit their way out; the others are plain no more. `only4`: all of the burst
 * are plain IPv4, and the compiler makes a loop of its own of that.
 */
static inline __attribute__((always_inline)) void
rewrite_plain(struct burst *b, bool only4)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t plain = b->plain4 | b->plain6, odd = 0;

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		const struct fib_iface *out;
		uint8_t *ip = burst_l3(b, i);

		if (!only4 && (plain >> i & 1) == 0)
			continue;
		out = fib_iface(fib, b->hop[i] & 0xffff);
		if (out == NULL || !out->up ||
		    b->l3_len[i] > fib_mtu(fib, b->path[i], out)) {
			odd |= 1ull << i;
			continue;
		}
		write_macs(frame_of(b, i, out), b->hop[i], out);
		memcpy(ip + burst_hop_at(only4 ? 4 : b->family[i]), &b->hop_octets[i], 4);
	}
	b->plain4 &= ~odd;
	b->plain6 &= ~odd;
}

void
fwd_rewrite(struct burst *b)
{
	b->tags_out = false;
	if (b->plain4 == burst_all(b))
		rewrite_plain(b, true);
	else
		rewrite_plain(b, false);
	for (uint64_t rest = burst_all(b) & ~(b->plain4 | b->plain6); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->verdict[i] == VERDICT_GO)
			rewrite_one(b, i);
	}
}
