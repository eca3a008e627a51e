/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv6 validation before forwarding, RFC 8200 and RFC 4291.                      [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"

/* ::, ::1 and ::ffff:0:0/96 are on no wire: RFC 4291 2.5.2, 2.5.3; RFC 6890 2.2.3. */
static bool
is_martian(const uint8_t *a)
{
	uint64_t hi, lo;

	memcpy(&hi, a, 8);
	memcpy(&lo, a + 8, 8);
	lo = __builtin_bswap64(lo);
	return hi == 0 && (lo <= 1 || lo >> 32 == 0xffff);
}

static bool
is_zero(const uint8_t *a)
{
	static const uint8_t zero[16];

	return memcmp(a, zero, sizeof(zero)) == 0;
}

static bool
linklocal(const uint8_t *a)
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

void
fwd_parse6(struct burst *b, unsigned int i)
{
	const uint8_t *ip = burst_l3(b, i), *src = ip + 8, *dst = ip + 24;
	unsigned int room = rte_pktmbuf_data_len(b->m[i]) - L2_LEN;
	unsigned int frame = rte_pktmbuf_pkt_len(b->m[i]) - L2_LEN;
	bool l2_group = (burst_l2(b, i)[0] & 1) != 0;
	unsigned int len;

	if (room < 40) {
		burst_leave(b, i, DROP_l2_short);
		return;
	}
	len = 40u + get_be16(ip + 4);
	b->family[i] = 6;
	b->l3_len[i] = (uint16_t)len;
	if (ip[0] >> 4 != 6)
		burst_leave(b, i, DROP_ip6_version);
	else if (len > frame || len > 0xffff || (len == 40 && ip[6] == 0))
		/* The last is a jumbogram (RFC 2675), or lacks the header it announces. */
		burst_leave(b, i, DROP_ip6_length);
	else if (src[0] == 0xff || (is_martian(src) && !(dst[0] == 0xff && is_zero(src))))
		/* Only to a group does who has no address yet send from :: (RFC 4861, 4.3). */
		burst_leave(b, i, DROP_ip6_martian_src);
	else if (dst[0] == 0xff) /* in any frame: RFC 6085, 3 */
		/* Of wider scope it may interest an application. */
		burst_leave(b, i,
			    (dst[1] & 15) <= 2 ? fwd_group_class(ip, burst_l3_room(b, i), 6)
					       : PUNT_local);
	else if (l2_group)
		burst_leave(b, i, DROP_l2_not_unicast);
	else if (is_martian(dst))
		burst_leave(b, i, DROP_ip6_martian_dst);
	else if (
		linklocal(
			dst)) /* never forwarded, not even by the kernel: RFC 4291, 2.5.6 */
		burst_leave(b, i,
			    fib_iface_has_linklocal(b->in, dst)
				    ? fwd_local_class(ip, burst_l3_room(b, i), 6)
				    : DROP_ip6_linklocal_dst);
}
