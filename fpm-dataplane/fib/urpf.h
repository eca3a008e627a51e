/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urpf: the reverse path of a packet (RFC 3704), for the sysctl rp_filter and for the
 * expression `fib` of nft.
 *
 * The source is looked up as a destination is. Each group has a word beside its group word
 * (fib->egress) with the interfaces of all its next hops. Dead next hops are included,
 * because Linux compares them, too (fib_info_nh_uses_dev()). The word of a group without a
 * next hop (no route, blackhole, an address of this router) is 0.
 */
#ifndef FIB_URPF_H
#define FIB_URPF_H

#include "fib/fib.h"

/* How the sources of transit packets are checked. The numbers are those of rp_filter. */
enum fib_urpf {
	FIB_URPF_OFF,
	FIB_URPF_STRICT, /* a next hop of the source is on the ingress interface */
	FIB_URPF_LOOSE,  /* the source has a next hop */
};

/*
 * The egress of a next hop is 15 bits: the number of an interface, FIB_EGRESS_VRF with the
 * number of a VRF for a next hop that is the device of the VRF, or FIB_EGRESS_OTHER. A word
 * has up to four of them, the first in the lowest bits, or FIB_EGRESS_BLOCK and the address
 * of a struct fib_egress.
 */
#define FIB_EGRESS_VRF   0x4000u
#define FIB_EGRESS_OTHER 0x7fffu /* an interface that is no port */
#define FIB_EGRESS_WORD  4u      /* interfaces in a word */
#define FIB_EGRESS_BLOCK (1ull << 63)
static_assert(IFIDX_MAX <= FIB_EGRESS_VRF &&
		      FIB_VRF_MAX < FIB_EGRESS_OTHER - FIB_EGRESS_VRF,
	      "each egress is unique");

/* More than FIB_EGRESS_WORD egress interfaces, all different. Immutable. */
struct fib_egress {
	uint32_t n;
	uint16_t ifidx[];
};

static inline const struct fib_egress *
fib_egress_block(uint64_t egress)
{
	return (const struct fib_egress *)(uintptr_t)(egress & ~FIB_EGRESS_BLOCK);
}

/*
 * Return true if a word that is no block has an interface. `all` is fib_egress_all() of
 * this interface. False for a block.
 */
static inline bool
fib_egress_have(uint64_t egress, uint64_t all)
{
	const uint64_t high = 0x8000800080008000;

	/*
	 * For an equal entry, 0 is subtracted from 0x8000, so only there the high bit
	 * stays.
	 */
	return ((high - (egress ^ all)) & high & ~(0 - (egress >> 63))) != 0;
}

/* Return a word with the interface in each place. */
static inline uint64_t
fib_egress_all(uint16_t ifidx)
{
	return ifidx * 0x0001000100010001ull;
}

/* Results of a reverse path check. */
enum fib_back {
	FIB_BACK_NONE,  /* no next hop */
	FIB_BACK_OTHER, /* no next hop is on the ingress interface */
	FIB_BACK_HERE,  /* a next hop is on the ingress interface */
};

/*
 * Check the word of the source's group for packets from `in`. `by_vrf`: if `in` is in a
 * VRF, a next hop on any member of the VRF or on the VRF's device counts as on `in`.
 *                                                                             [RCU reader]
 */
enum fib_back fib_egress_judge(const struct fib *fib, const struct fib_iface *in,
			       uint64_t egress, bool by_vrf);

/*
 * The device of a VRF in one word: its ifindex, and the check of the sources of packets
 * that an end point of SRv6 looks up in the VRF. 0: the VRF has no device.
 */
static inline uint64_t
fib_vrf_device_make(uint32_t ifindex, enum fib_urpf urpf4)
{
	return (uint64_t)ifindex << 8 | urpf4;
}

static inline uint32_t
fib_vrf_device_ifindex(uint64_t word)
{
	return (uint32_t)(word >> 8);
}

static inline enum fib_urpf
fib_vrf_device_urpf4(uint64_t word)
{
	return (enum fib_urpf)(word & 0xff);
}

/*
 * Return true if `in` stands for the device of a VRF, as for inner packets of SRv6
 * (fwd/sid.c).
 */
static inline bool
fib_iface_is_vrf(const struct fib_iface *in)
{
	return (in->ifidx & FIB_EGRESS_VRF) != 0;
}

/* Return the egress word of a group. [RCU reader] */
static inline uint64_t
fib_group_egress(const struct fib *fib, uint32_t group)
{
	return atomic_load_explicit(&fib->egress[group], memory_order_consume);
}

#define FIB_BACK_LOOPBACK 1u /* ifindex of lo in each namespace */

struct fib_back_key {
	const struct fib_copy *main; /* tries of table main */
	const struct fib_iface *in;
	uint32_t oif; /* ifindex of the egress interface; rules see it as the ingress */
	const uint8_t
		*ip; /* the packet; `room` octets may be read, at least the whole header */
	unsigned int room;
	uint8_t family;
	bool by_vrf; /* see fib_egress_judge() */
	/*
	 * As for `fib` of nft: policy rules see `proto` as the protocol of the packet (0:
	 * not known), and no ports.
	 */
	bool no_ports;
	uint8_t proto;
};

/*
 * Look up the source of a packet. Return its group; 0: no route. If the kernel has policy
 * rules, they choose the table. Else look in the FIB of the packet's VRF, and then, if the
 * VRF has no route, in table main. [RCU reader]
 */
uint32_t fib_back_group(const struct fib *fib, const struct fib_back_key *key);

/* Check the reverse path of a packet. [RCU reader] */
static inline enum fib_back
fib_back(const struct fib *fib, const struct fib_back_key *key)
{
	return fib_egress_judge(
		fib, key->in, fib_group_egress(fib, fib_back_group(fib, key)), key->by_vrf);
}

/* Return true if packets with this result pass. */
static inline bool
fib_urpf_passes(enum fib_urpf mode, enum fib_back back)
{
	return back == FIB_BACK_HERE || (mode == FIB_URPF_LOOSE && back == FIB_BACK_OTHER);
}

#endif
