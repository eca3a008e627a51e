/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_outer: the outer headers of tunnels that end in the kernel, such as WireGuard and
 * PPPoE. Thread warn learns them from the devices of the kernel. Forwarders read them to
 * choose the punt class of a packet for the host: the packets of a tunnel have a class of
 * their own. Each fact is a bit of an atomic word.
 */
#ifndef BASE_KERNEL_OUTER_H
#define BASE_KERNEL_OUTER_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_outer {
	uint64_t udp[65536 / 64];    /* bits: UDP ports on which the devices receive */
	uint64_t protocol[256 / 64]; /* bits: IP protocols */
	bool pppoe;                  /* EtherType 0x8864: PPPoE sessions */
};

static inline void
kernel_outer_add_udp(struct kernel_outer *o, uint16_t port)
{
	o->udp[port / 64] |= 1ull << port % 64;
}

static inline void
kernel_outer_add_protocol(struct kernel_outer *o, uint8_t protocol)
{
	o->protocol[protocol / 64] |= 1ull << protocol % 64;
}

/* Add the facts of `from` to `o`. */
void kernel_outer_add(struct kernel_outer *o, const struct kernel_outer *from);

/* Replace the facts. A reader may see old and new facts together.                [warn] */
void kernel_outer_publish(const struct kernel_outer *o);

/*
 * Return true if the outer packets of a tunnel of the kernel have this header. [any thread]
 */
bool kernel_outer_has_udp(uint16_t port);
bool kernel_outer_has_protocol(uint8_t protocol);
bool kernel_outer_has_pppoe(void);

#endif
