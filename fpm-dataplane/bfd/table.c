/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table: find a session by its numbers; read the counters and the times that the forwarders
 * write. session_hear() stores the time of the last packet in the session, and
 * sessions_keep_counters() stores the counters in the memory that outlives the daemon.
 * [bfd]
 */
#include "base/clock.h"
#include "bfd/impl.h"

uint32_t
random_draw(struct bfd *b)
{
	/* xorshift64*: Marsaglia 2003, Vigna 2016 */
	b->random ^= b->random >> 12;
	b->random ^= b->random << 25;
	b->random ^= b->random >> 27;
	return (uint32_t)(b->random * 0x2545f4914f6cdd1dull >> 32);
}

uint16_t
src_port_draw(struct bfd *b)
{
	return (uint16_t)(BFD_PORT_LEAST + random_draw(b) % (65536u - BFD_PORT_LEAST));
}

struct session *
session_by_discr(struct bfd *b, uint32_t discr)
{
	uint32_t number = discr & (BFD_SLOTS - 1);
	struct session *s = number < BFD_SESSIONS ? &b->session[number] : NULL;

	return s != NULL && s->k != NULL && s->k->fsm.my_discr == discr ? s : NULL;
}

struct session *
session_by_lid(struct bfd *b, uint32_t lid)
{
	for (uint32_t i = 1; i < b->high; i++)
		if (b->session[i].k != NULL && b->session[i].k->conn >= 0 &&
		    b->session[i].k->told.lid == lid)
			return &b->session[i];
	return NULL;
}

static uint64_t
slot_count(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Return the length in octets of each packet of a session, from the IP header on. */
static uint64_t
session_packet_bytes(const struct session *s)
{
	return (s->k->told.family == 4 ? 20 : 40) + 8 + BFD_OCTETS;
}

void
session_counters(const struct bfd *b, const struct session *s,
		 struct bfd_dplane_counters *c)
{
	const struct bfd_slot *control = &b->setup.table->slot[s->number];
	const struct bfd_slot *echo = &b->setup.table->slot[BFD_SESSIONS + s->number];
	uint64_t bytes = session_packet_bytes(s);

	c->control_in_packets = s->k->n_rx + s->before[0] + slot_count(&control->n_heard);
	c->control_out_packets = s->k->n_tx + s->before[1] + slot_count(&control->n_sent);
	c->echo_in_packets = s->before[2] + slot_count(&echo->n_heard);
	c->echo_out_packets = s->before[3] + slot_count(&echo->n_sent);
	c->control_in_octets = c->control_in_packets * bytes;
	c->control_out_octets = c->control_out_packets * bytes;
	c->echo_in_octets = c->echo_in_packets * bytes;
	c->echo_out_octets = c->echo_out_packets * bytes;
}

void
sessions_keep_counters(struct bfd *b)
{
	for (uint32_t i = 1; i < b->high; i++) {
		const struct session *s = &b->session[i];
		struct bfd_dplane_counters c;

		if (s->k == NULL)
			continue;
		session_counters(b, s, &c);
		s->k->by_slots[0] = c.control_in_packets - s->k->n_rx;
		s->k->by_slots[1] = c.control_out_packets - s->k->n_tx;
		s->k->by_slots[2] = c.echo_in_packets;
		s->k->by_slots[3] = c.echo_out_packets;
	}
}

uint32_t
session_tx_us(const struct session *s)
{
	return monotonic_ns() >= s->k->fsm.silent_at ? 0 : bfd_fsm_tx_us(&s->k->fsm);
}

uint32_t
session_echo_us(const struct session *s)
{
	const struct ipaddr *own = &s->place.local;
	bool scoped = s->k->told.family == 4 ? ipaddr_is_linklocal4(own)
					     : ipaddr_is_linklocal6(own);

	return s->place.ifidx == 0 || scoped ? 0 : bfd_fsm_echo_us(&s->k->fsm);
}

void
session_hear(struct bfd *b, struct session *s)
{
	uint64_t at = slot_count(&b->setup.table->slot[s->number].heard_ns);

	if (at > s->k->fsm.heard_at)
		bfd_fsm_heard(&s->k->fsm, at);
}
