/* SPDX-License-Identifier: BSD-3-Clause */
/* frame_plain: the functions of frame_decl.h for any CPU. */
#ifndef FWD_FRAME_PLAIN_H
#define FWD_FRAME_PLAIN_H

#include "fwd/frame_decl.h"

static inline void
frame_write_macs(uint8_t *eth, uint64_t hop, const struct fib_iface *out)
{
	uint64_t mac = rte_cpu_to_be_64(hop);

	/* two octets too many: the next store overwrites them */
	memcpy(eth, &mac, sizeof(mac));
	memcpy(eth + 6, out->mac, sizeof(out->mac));
}

/*
 * Return the priority of the outer or the inner tag that the packet came with, as the
 * octets of a tag. A single tag is both.
 */
static inline uint32_t
tag_priority(const struct tagged *t, const struct rte_mbuf *m, const uint8_t *l2,
	     bool outer)
{
	unsigned int stripped = t->stripped ? vlan_stripped(m) : 0;
	uint32_t octets = 0;

	if (t->bytes != 0)
		memcpy(&octets, l2 + VLAN_AT - (outer ? t->bytes : VLAN_BYTES),
		       sizeof(octets));
	else if (stripped != 0)
		octets =
			rte_cpu_to_be_32(outer ? vlan_outer_tci(m, stripped) : m->vlan_tci);
	return octets & rte_cpu_to_be_32(VLAN_PRIORITY);
}

/* Write a tag at `to`. `priority` has the form of the octets of a tag. */
static inline void
tag_write(uint8_t *to, struct fib_tag tag, uint32_t priority)
{
	uint32_t octets = rte_cpu_to_be_32((uint32_t)tag.type << 16 | tag.id) | priority;

	memcpy(to, &octets, sizeof(octets));
}

static inline void
frame_write_tags(const struct tagged *t, const struct rte_mbuf *m, uint8_t *l2,
		 uint64_t hop, const struct fib_iface *out)
{
	/* Read both old priorities first: the new tags overwrite the old ones. */
	uint32_t inner = tag_priority(t, m, l2, false);
	uint32_t outer = tag_priority(t, m, l2, true);
	uint8_t *eth = l2 - fib_tag_bytes(out);

	if (out->n_written == 2)
		tag_write(l2 + VLAN_AT - VLAN_BYTES, out->tag[1], inner);
	else
		outer = inner;
	frame_write_macs(eth, hop, out);
	tag_write(eth + VLAN_AT, out->tag[0], outer);
}

static inline uint32_t
tag_priority_octets(const struct tagged *t, const struct rte_mbuf *m, const uint8_t *l2)
{
	return tag_priority(t, m, l2, false);
}

#endif
