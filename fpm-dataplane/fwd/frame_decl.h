/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of frame_header.h, which frame_x86.h and frame_plain.h define.
 *
 * Private to fwd/. The functions write the frame.                               [fwd-n]
 */
#ifndef FWD_FRAME_DECL_H
#define FWD_FRAME_DECL_H

#include <stddef.h>

#include "base/inet.h"
#include "fib/fib.h"
#include "port/vlan_tags.h"

/* Tags of the fast-path packets of a burst. */
struct tagged {
	unsigned int bytes; /* length of the tags that are still in the frames */
	bool stripped;      /* the mbufs of some packets have tags that the NIC stripped */
	bool out;           /* some packets leave by a VLAN or macvlan */
};

/* Write both MAC addresses: the neighbor's from `hop`, ours from `out`. */
static inline void frame_write_macs(uint8_t *eth, uint64_t hop,
				    const struct fib_iface *out);

/*
 * Write the MAC addresses and the one or two tags of `out`, before the EtherType at `l2` +
 * VLAN_AT.
 */
static inline void frame_write_tags(const struct tagged *t, const struct rte_mbuf *m,
				    uint8_t *l2, uint64_t hop, const struct fib_iface *out);

/*
 * Return the priority of the inner or only tag that the packet came with, as the four
 * octets of a tag in memory.
 */
static inline uint32_t tag_priority_octets(const struct tagged *t, const struct rte_mbuf *m,
					   const uint8_t *l2);

#endif
