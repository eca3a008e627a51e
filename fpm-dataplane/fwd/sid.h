/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sid: packets to an end point of SRv6.
 *
 * Private to fwd/. The functions read and write the packet, and write the burst. [fwd-n]
 */
#ifndef FWD_SID_H
#define FWD_SID_H

#include "fib/sid_entry.h"
#include "fwd/burst.h"

/*
 * Adjacency stage: carry out the end point of the packet's path. The packet or its inner
 * packet passes the stages next, or the packet gets a drop or punt reason. Return false,
 * with the packet unchanged, if the kernel has to take it.
 */
bool fwd_sid_use(struct burst *b, unsigned int i);

/*
 * Return the number of the SID of a packet that its end point has not changed yet; 0: none.
 * Reads b->in, b->family[i] and b->l3_len[i].
 */
uint32_t fwd_sid_number(const struct burst *b, unsigned int i);

/* Return true for an end point that decapsulates packets of a family, and looks them up. */
bool fwd_sid_decapsulates(const struct fib_sid *sid, uint8_t family);

/*
 * Return the VRF of ICMP errors about these packets. End.T looks a packet up in another
 * table, but the sender of the packet is in the VRF of the ingress interface.
 */
static inline uint16_t
burst_icmp_vrf(const struct burst *b)
{
	return b->inside && b->by_sid && b->sid_path == SID_PATH_NEXT
		       ? fib_vrf_of(b->fwd->fib, b->ifidx)
		       : b->in->vrf;
}

/*
 * Return true if `path`, the result of a lookup of `dst` in the FIB of a VRF or of table
 * main, refuses the packet, and its route may be one of table local. Such a FIB has the
 * routes of table local, too, but a SID that names a table does not look up table local.
 */
bool fwd_sid_local_may_refuse(const struct fib *fib, uint16_t vrf, fib_path path,
			      const struct ipaddr *dst);

/* Admit stage: set the ingress interface of packets that an end point looks up in a VRF. */
void fwd_sid_admit(struct burst *b);

#endif
