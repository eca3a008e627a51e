/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample: packets for sFlow. The distance from one sample to the next is uniform between 1
 * and 2N-1 packets, so that samples do not follow a pattern of the traffic. The record has
 * the frame as it was received and the result of the stages. If the ring is full, the
 * record is lost and counted for the port. The packet is never lost.            [fwd-n]
 */
#include "fwd/sample.h"

#include "fwd/headend.h"
#include "fwd/label.h"
#include "fwd/note.h"
#include "port/vlan_tags.h"

/* Return the distance to the next sample: the high half of a random number, scaled. */
static uint32_t
distance_draw(struct fwd *f)
{
	/* xorshift64*: Marsaglia 2003, Vigna 2016. The state is never 0. */
	f->sample_random ^= f->sample_random >> 12;
	f->sample_random ^= f->sample_random << 25;
	f->sample_random ^= f->sample_random >> 27;
	return 1 + (uint32_t)(((f->sample_random * 0x2545f4914f6cdd1dull >> 32) *
			       (2ull * f->sample->sample_rate - 1)) >>
			      32);
}

void
fwd_sample_begin(struct fwd *f)
{
	f->sample_epoch = f->sample->epoch;
	if (f->sample_random == 0)
		f->sample_random =
			rte_rdtsc() ^ (uint64_t)(f->conf->index + 1) << 56 ^ f->fib->seed;
	f->sample_random |= f->sample_random == 0;
	f->sample_skip = distance_draw(f);
}

static void
sample_open(struct burst *b, unsigned int i)
{
	struct fwd *f = b->fwd;
	struct watch_ring *ring = f->conf->sample_ring;
	struct watch_record *rec;

	ring->n_lost = &f->count->sample_lost[b->ifidx];
	rec = watch_open(ring);
	if (rec == NULL)
		return;
	/* Put back a tag that the NIC stripped, because it was on the wire. */
	if (vlan_stripped(b->m[i]) != 0)
		vlan_restore(b->m[i], NULL);
	rec->epoch = f->sample->epoch;
	rec->point = WATCH_WALK;
	watch_copy(rec, b->m[i], f->sample->sample_bytes);
	f->sampled[f->n_sampled].m = b->m[i];
	f->sampled[f->n_sampled++].rec = rec;
}

void
fwd_sample_take(struct burst *b)
{
	struct fwd *f = b->fwd;

	while (f->sample_skip <= b->n) {
		sample_open(b, f->sample_skip - 1);
		f->sample_skip += distance_draw(f);
	}
	f->sample_skip -= b->n;
	/* The stages are not timed in this round, because they do more than usual. */
	if (f->n_sampled != 0)
		f->timed = false;
}

static void
record_note(struct burst *b, unsigned int i, struct watch_record *rec)
{
	bool sent = b->verdict[i] == VERDICT_GO || b->verdict[i] == PUNT_too_big;

	rec->in_ifidx = b->ifidx;
	rec->vrf = b->in != NULL ? b->in->vrf : 0;
	/* Only a packet that passed the adjacency stage has a valid hop. */
	rec->stage = sent ? STAGE_REWRITE : STAGE_PARSE;
	if (sent || b->verdict[i] == PUNT_kernel_route ||
	    b->verdict[i] == PUNT_unresolved) {
		unsigned int written = fwd_headend_written(b, i);

		/*
		 * fwd_note_next_hop() reads the packet behind the outer header that was
		 * written.
		 */
		b->l2[i] += written;
		fwd_note_next_hop(b, i, rec);
		b->l2[i] -= written;
		rec->looked_up = b->family[i] != 0 && !burst_has_labels(b, i) &&
				 (b->switched >> i & 1) == 0;
	}
	if (rec->looked_up && b->in != NULL && (b->in->rules4 || b->in->rules6))
		fwd_note_rule(b, i, rec);
	fwd_note_verdict(b, i, rec);
}

void
fwd_sample_note(struct burst *b)
{
	struct fwd *f = b->fwd;
	unsigned int left = 0;

	for (unsigned int k = 0; k < f->n_sampled; k++) {
		unsigned int i = 0;

		while (i < b->n && b->m[i] != f->sampled[k].m)
			i++;
		if (i < b->n)
			record_note(b, i, f->sampled[k].rec);
		else
			f->sampled[left++] = f->sampled[k];
	}
	f->n_sampled = left;
	if (left == 0)
		watch_publish(f->conf->sample_ring);
}

/*
 * Open the record of a dropped packet, without the frame. A record for which the ring has
 * no room is counted for `port`.
 */
static struct watch_record *
drop_open(struct fwd *f, uint16_t port, enum reason reason)
{
	struct watch_ring *ring = f->conf->sample_ring;
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t *end = &f->discard_end[f->n_discards % SAMPLE_DISCARDS_MAX];
	struct watch_record *rec = NULL;

	ring->n_lost = &f->count->discard_lost[port];
	if (*end <= tail)
		rec = watch_open(ring);
	else
		counter_add(ring->n_lost, 1);
	if (rec == NULL)
		return NULL;
	*end = ring->next;
	f->n_discards++;
	rec->epoch = f->sample->epoch;
	rec->point = WATCH_LOST;
	rec->verdict = (uint8_t)reason;
	return rec;
}

/* Publish a record, unless records of samples before it are not complete. */
static void
drop_publish(struct fwd *f)
{
	if (f->n_sampled == 0)
		watch_publish(f->conf->sample_ring);
}

void
fwd_sample_drop(struct burst *b, unsigned int i, enum reason reason)
{
	uint16_t port = b->in != NULL ? b->in->port : b->ifidx < PORT_MAX ? b->ifidx : 0;
	struct watch_record *rec = drop_open(b->fwd, port, reason);
	unsigned int stripped = vlan_stripped(b->m[i]);

	if (rec != NULL) {
		rec->in_ifidx = b->ifidx;
		/* The punt thread may get the packet next, and expects it without tags. */
		if (stripped != 0)
			vlan_restore(b->m[i], b->in);
		watch_copy(rec, b->m[i], b->fwd->sample->sample_bytes);
		if (stripped != 0)
			vlan_strip(b->m[i], stripped);
	}
	drop_publish(b->fwd);
}

void
fwd_sample_unsent(struct fwd *f, uint16_t port, uint16_t out, struct rte_mbuf *m)
{
	struct watch_record *rec = drop_open(f, port, DROP_tx_full);

	if (rec != NULL) {
		rec->out_ifidx = out;
		if ((m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0)
			vlan_insert(m);
		watch_copy(rec, m, f->sample->sample_bytes);
	}
	drop_publish(f);
}
