/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local_reason: distinguish packets of control protocols from other packets to this router
 * or to a group. The functions only read the packet.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_LOCAL_REASON_H
#define FWD_LOCAL_REASON_H

#include "fwd/burst.h"

/* Return the punt reason of a packet to this router: PUNT_local_control or PUNT_local. */
enum reason fwd_local_reason(const uint8_t *l3, unsigned int len, uint8_t family);
/*
 * Return true if this IPv4 packet is a reply of a DHCP server to a client on this router.
 * The destination is not checked, because a server sends the reply to the address that it
 * offers, which no host has yet (RFC 2131, 4.1). Only an interface without an address has
 * such a client. Replies to other clients may pass through this router; their client MACs
 * differ.
 */
bool fwd_dhcp_answer(const struct burst *b, unsigned int i);
/* Return true if this IPv4 packet is a reply of a DHCP server to any client. */
bool fwd_dhcp_answer_any(const struct burst *b, unsigned int i);
/*
 * Return the punt reason of a packet to a link-local group or to broadcast:
 * PUNT_group_control or PUNT_group.
 */
static inline enum reason
fwd_group_reason(const uint8_t *l3, unsigned int len, uint8_t family)
{
	return fwd_local_reason(l3, len, family) == PUNT_local_control ? PUNT_group_control
								       : PUNT_group;
}

#endif
