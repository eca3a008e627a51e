/* SPDX-License-Identifier: BSD-3-Clause */
/* Publish the outer headers of the kernel's tunnels. No word depends on another word. */
#include "base/kernel_outer.h"

#include <stdatomic.h>

#define UDP_WORDS      (sizeof(((struct kernel_outer *)0)->udp) / sizeof(uint64_t))
#define PROTOCOL_WORDS (sizeof(((struct kernel_outer *)0)->protocol) / sizeof(uint64_t))

static struct {
	_Atomic uint64_t udp[UDP_WORDS], protocol[PROTOCOL_WORDS]; /* W:warn R:fwd */
	_Atomic bool pppoe;                                        /* W:warn R:fwd */
} outer;

void
kernel_outer_add(struct kernel_outer *o, const struct kernel_outer *from)
{
	for (unsigned int i = 0; i < UDP_WORDS; i++)
		o->udp[i] |= from->udp[i];
	for (unsigned int i = 0; i < PROTOCOL_WORDS; i++)
		o->protocol[i] |= from->protocol[i];
	o->pppoe |= from->pppoe;
}

static void
words_publish(_Atomic uint64_t *to, const uint64_t *from, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (atomic_load_explicit(&to[i], memory_order_relaxed) != from[i])
			atomic_store_explicit(&to[i], from[i], memory_order_relaxed);
}

void
kernel_outer_publish(const struct kernel_outer *o)
{
	words_publish(outer.udp, o->udp, UDP_WORDS);
	words_publish(outer.protocol, o->protocol, PROTOCOL_WORDS);
	atomic_store_explicit(&outer.pppoe, o->pppoe, memory_order_relaxed);
}

static bool
word_has(const _Atomic uint64_t *words, unsigned int bit)
{
	return atomic_load_explicit(&words[bit / 64], memory_order_relaxed) >> bit % 64 & 1;
}

bool
kernel_outer_has_udp(uint16_t port)
{
	return word_has(outer.udp, port);
}

bool
kernel_outer_has_protocol(uint8_t protocol)
{
	return word_has(outer.protocol, protocol);
}

bool
kernel_outer_has_pppoe(void)
{
	return atomic_load_explicit(&outer.pppoe, memory_order_relaxed);
}
