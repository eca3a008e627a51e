/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings of logged packets. */
#include "ruleset/logged.h"

#include <string.h>

#include "base/counters.h"
#include "ruleset/ruleset.h"

void
logged_put(struct logged_ring *ring, const struct ruleset_log *log,
	   const struct ruleset_packet *p)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	struct logged *l = &ring->slot[head % LOGGED_SLOTS];

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) >=
	    LOGGED_SLOTS) {
		counter_add(&ring->n_lost, 1);
		return;
	}
	l->log = *log;
	memcpy(l->iifname, p->iifname, sizeof(l->iifname));
	memcpy(l->oifname, p->oifname, sizeof(l->oifname));
	l->l3_bytes = p->l3_bytes;
	l->family = p->family;
	l->later = p->later;
	l->has_transport = p->has_transport;
	l->l4proto = p->l4proto;
	l->transport = p->transport;
	l->octets = (uint16_t)(p->room < LOGGED_OCTETS ? p->room : LOGGED_OCTETS);
	memcpy(l->ip, p->ip, l->octets);
	/* Release: thread filter sees the slot below the head. */
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

bool
logged_take(struct logged_ring *ring, struct logged *out)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	if (atomic_load_explicit(&ring->head, memory_order_acquire) == tail)
		return false;
	*out = ring->slot[tail % LOGGED_SLOTS];
	/* Release: the thread that judges packets reuses the slot only after the copy. */
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	return true;
}
