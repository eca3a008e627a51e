/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segments: NHA_ENCAP of SRv6, types seg6local and seg6, of one next hop. Pure functions.
 */
#ifndef NETLINK_SEGMENTS_H
#define NETLINK_SEGMENTS_H

#include "base/fpm_event.h"
#include "netlink/attributes.h"

/*
 * Decode the nested attributes of an end point (`local`) or of a headend, and give `hop`
 * the encapsulation HOP_SEG6. Content that the dataplane does not support is not an error:
 * the hop gets no words, and hop->refusal gets the reason. Returns 0 or -EBADMSG.
 */
int hop_segments(struct fpm_hop *hop, const struct nlattr *encap, bool local);

#endif
