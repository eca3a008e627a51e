/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beat: make the packets of sessions, and give them to the forwarders (port/bfd.h). [bfd]
 */
#include <stdlib.h>
#include <string.h>

#include "base/idle.h"
#include "base/inet.h"
#include "bfd/impl.h"
#include "port/packet_meta.h"

#define IP4_DF 0x4000u

/*
 * Write IP and UDP headers before the payload, with checksums. Returns the number of
 * octets.
 */
static uint8_t
packet_make(uint8_t *out, uint8_t family, const struct ipaddr *src,
	    const struct ipaddr *dst, uint16_t from, uint16_t to, const uint8_t *payload)
{
	unsigned int head = family == 4 ? 20 : 40, octets = family_octets(family);
	unsigned int udp_bytes = 8 + BFD_OCTETS;
	uint8_t *udp = out + head;
	uint32_t sum;

	memset(out, 0, head + 8);
	if (family == 4) {
		out[0] = 0x45;
		out[1] = BFD_TCLASS;
		put_be16(out + 2, (uint16_t)(head + udp_bytes));
		put_be16(out + 6, IP4_DF);
		out[8] = 255;
		out[9] = 17;
		memcpy(out + 12, src->octet, 4);
		memcpy(out + 16, dst->octet, 4);
		put_be16(out + 10, (uint16_t)~inet_fold(inet_sum(out, 20, 0)));
	} else {
		out[0] = 0x60 | BFD_TCLASS >> 4;
		out[1] = (uint8_t)(BFD_TCLASS << 4);
		put_be16(out + 4, (uint16_t)udp_bytes);
		out[6] = 17;
		out[7] = 255;
		memcpy(out + 8, src->octet, 16);
		memcpy(out + 24, dst->octet, 16);
	}
	put_be16(udp, from);
	put_be16(udp + 2, to);
	put_be16(udp + 4, (uint16_t)udp_bytes);
	memcpy(udp + 8, payload, BFD_OCTETS);
	sum = inet_sum(src->octet, octets, inet_sum(dst->octet, octets, 17 + udp_bytes));
	put_be16(udp + 6, (uint16_t)~inet_fold(inet_sum(udp, udp_bytes, sum)));
	if (get_be16(udp + 6) == 0)
		put_be16(udp + 6, 0xffff);
	return (uint8_t)(head + udp_bytes);
}

static bool
beats_equal(const struct bfd_beat *a, const struct bfd_beat *b)
{
	return a != NULL && b != NULL && memcmp(a, b, sizeof(*a)) == 0;
}

static void
beat_free(void *owner, void *beat)
{
	free(beat);
}

/* Put `beat`, or NULL, into a slot, and notify its forwarder. */
static void
slot_put(struct bfd *b, uint32_t number, struct bfd_beat *beat)
{
	struct bfd_table *t = b->setup.table;
	struct bfd_slot *slot = &t->slot[number];
	struct bfd_beat *old = atomic_load_explicit(&slot->beat, memory_order_relaxed);

	if (old == NULL && beat == NULL)
		return;
	if (number >= atomic_load_explicit(&t->end, memory_order_relaxed))
		atomic_store_explicit(&t->end, number + 1, memory_order_relaxed);
	/*
	 * Release: a forwarder that reads the new `beat` also sees the packet behind it. A
	 * forwarder that reads the new `version` also sees the new `beat`. A forwarder that
	 * reads the new `epoch` also sees `end` and the slot.
	 */
	atomic_store_explicit(&slot->beat, beat, memory_order_release);
	atomic_fetch_add_explicit(&slot->version, 1, memory_order_release);
	atomic_fetch_add_explicit(&t->epoch, 1, memory_order_release);
	if (old != NULL)
		worker_defer(b->w, beat_free, old);
	idle_wake(b->setup.rings[number % b->setup.n_fwd].idle);
	if (beat != NULL)
		lend_faster(b, beat->most_us);
}

/* Make a beat with the fields that both beats of a session share. */
static struct bfd_beat *
beat_new(const struct session *s, uint32_t interval_us, uint8_t mult)
{
	struct bfd_beat *beat = calloc(1, sizeof(*beat));

	if (beat == NULL)
		abort();
	if (interval_us != 0) {
		beat->least_us = bfd_jitter_us(interval_us, mult, 0);
		beat->most_us = bfd_jitter_us(interval_us, mult, UINT32_MAX);
		if (beat->least_us > beat->most_us) {
			uint32_t most = beat->least_us;

			beat->least_us = beat->most_us;
			beat->most_us = most;
		}
	}
	beat->family = s->k->told.family;
	beat->vrf = s->place.vrf;
	beat->ifidx = s->place.ifidx;
	beat->local = s->place.local;
	beat->remote = s->k->told.dst;
	return beat;
}

/*
 * Let the new beat ask for the packets that the present beat of the slot asks for, if the
 * forwarder may not have sent them yet. A peer ignores the second of two Finals.
 */
static void
unsent_keep(const struct bfd_slot *slot, struct bfd_beat *beat)
{
	const struct bfd_beat *old = bfd_beat(slot);

	if (old == NULL ||
	    atomic_load_explicit(&slot->taken, memory_order_relaxed) ==
		    atomic_load_explicit(&slot->version, memory_order_relaxed))
		return;
	beat->at_once |= old->at_once;
	beat->has_first |= old->has_first;
}

static void
control_publish(struct bfd *b, struct session *s, bool now, bool final)
{
	const struct bfd_fsm *f = &s->k->fsm;
	bool multihop = f->conf.multihop;
	const struct bfd_slot *slot = &b->setup.table->slot[s->number];
	struct bfd_beat *beat = beat_new(s, session_tx_us(s), f->conf.mult);
	uint8_t octets[BFD_OCTETS];

	beat->port = multihop ? BFD_PORT_MULTI : BFD_PORT;
	beat->ttl_least = multihop ? s->k->told.ttl : 255;
	bfd_fsm_packet(f, false, octets);
	beat->n = packet_make(beat->packet, beat->family, &beat->local, &beat->remote,
			      s->k->src_port, beat->port, octets);
	beat->expects = bfd_fsm_is_steady(f, beat->expect);
	beat->at_once = now;
	beat->has_first = final;
	unsent_keep(slot, beat);
	if (beat->has_first) {
		bfd_fsm_packet(f, true, octets);
		packet_make(beat->first, beat->family, &beat->local, &beat->remote,
			    s->k->src_port, beat->port, octets);
	}
	if (beats_equal(beat, bfd_beat(slot)) && !now && !final)
		free(beat);
	else
		slot_put(b, s->number, beat);
}

/* Fill the payload of an echo packet. Only the sender reads it (RFC 5881, 4). */
static void
echo_fill(const struct session *s, uint8_t octets[BFD_OCTETS])
{
	static const uint8_t mark[8] = {'f', 'p', 'm', '-', 'e', 'c', 'h', 'o'};

	memset(octets, 0, BFD_OCTETS);
	memcpy(octets, mark, sizeof(mark));
	put_be32(octets + BFD_YOUR_DISCR, s->k->echo_discr);
}

static void
echo_publish(struct bfd *b, struct session *s)
{
	uint32_t number = BFD_SESSIONS + s->number;
	struct bfd_slot *slot = &b->setup.table->slot[number];
	uint32_t echo_us = session_echo_us(s);
	struct bfd_beat *beat;

	if (echo_us == 0) {
		slot_put(b, number, NULL);
		timer_set(b, s, TIMER_ECHO, DUE_NEVER);
		return;
	}
	beat = beat_new(s, echo_us, s->k->fsm.conf.mult);
	echo_fill(s, beat->expect);
	beat->expects = true;
	beat->port = BFD_PORT_ECHO;
	beat->ttl_least = BFD_ECHO_TTL;
	beat->n = packet_make(beat->packet, beat->family, &beat->local, &beat->local,
			      s->k->src_port, BFD_PORT_ECHO, beat->expect);
	if (beats_equal(beat, bfd_beat(slot))) {
		free(beat);
		return;
	}
	if (bfd_beat(slot) == NULL)
		atomic_store_explicit(&slot->heard_ns, monotonic_ns(),
				      memory_order_relaxed);
	slot_put(b, number, beat);
	timer_set(b, s, TIMER_ECHO,
		  monotonic_ns() + echo_us * 1000ull * s->k->fsm.conf.mult);
}

/* Empty the slots of the session, so that forwarders stop its packets. */
static void
slots_end(struct bfd *b, const struct session *s)
{
	slot_put(b, s->number, NULL);
	slot_put(b, BFD_SESSIONS + s->number, NULL);
	timer_set(b, s, TIMER_ECHO, DUE_NEVER);
}

void
beat_publish(struct bfd *b, struct session *s, bool now, bool final)
{
	if (s->place.by == BY_FORWARDERS) {
		kernel_end(b, s);
		control_publish(b, s, now, final);
		echo_publish(b, s);
		return;
	}
	slots_end(b, s);
	if (s->place.by == BY_KERNEL)
		kernel_publish(b, s, now, final);
	else
		kernel_end(b, s);
}

void
beat_end(struct bfd *b, struct session *s)
{
	slots_end(b, s);
	kernel_end(b, s);
}
