/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample: make samples of the records of forwarders. A limit bounds the load of the
 * collectors; samples over it are counted in the field `drops`.                    [sflow]
 */
#include <string.h>

#include "base/clock.h"
#include "base/inet.h"
#include "fib/fib.h"
#include "sflow/impl.h"

#define L2_LEN 14u

#define NS_A_SECOND 1000000000u

/* --- sources -------------------------------------------------------------------------- */

uint64_t
source_pool(const struct sflow *s, unsigned int port)
{
	struct if_counters c;

	counters_port(port, &c);
	return c.rx_packets - s->source[port].base;
}

uint64_t
source_lost(const struct sflow *s, unsigned int port, bool discards)
{
	const struct source *source = &s->source[port];
	struct counters *const *block;
	unsigned int n = counters_blocks(&block);
	uint64_t sum = discards ? source->discards_over : source->over;

	for (unsigned int i = 0; i < n; i++)
		sum += counter_read(discards ? &block[i]->discard_lost[port]
					     : &block[i]->sample_lost[port]);
	return sum;
}

static void
source_count_over(struct sflow *s, unsigned int port, bool discard)
{
	if (discard) {
		s->source[port].discards_over++;
		STATUS_ADD(discards_over, 1);
	} else {
		s->source[port].over++;
		STATUS_ADD(samples_over, 1);
	}
}

/* --- records -------------------------------------------------------------------------- */

static uint32_t
ifindex_of(const struct sflow *s, unsigned int ifidx)
{
	const struct fib_iface *iface = ifidx == 0 ? NULL : fib_iface(s->setup.fib, ifidx);

	return iface == NULL ? 0 : iface->ifindex;
}

/* Return the port of an interface; 0: unknown. */
static unsigned int
port_of(const struct sflow *s, unsigned int ifidx)
{
	const struct fib_iface *iface;

	if (ifidx < PORT_MAX)
		return ifidx;
	iface = fib_iface(s->setup.fib, ifidx);
	return iface == NULL ? 0 : iface->port;
}

/*
 * Return the port that is the source of a record: the port by which the packet came. If a
 * port did not accept a frame for sending, the record has only the egress interface, and
 * the port of this interface is the source.
 */
static unsigned int
source_of(const struct sflow *s, const struct watch_record *rec)
{
	unsigned int port = port_of(s, rec->in_ifidx);

	return port != 0 ? port : port_of(s, rec->out_ifidx);
}

/* Return true if a sampled packet is dropped. */
static bool
sample_is_dropped(const struct watch_record *rec)
{
	return rec->verdict != WATCH_GO && watch_reason(rec) < N_DROP;
}

/* Return the egress interface of a packet that is not dropped, in the form of sFlow. */
static uint32_t
output_of(const struct sflow *s, const struct watch_record *rec)
{
	if (rec->verdict == WATCH_GO)
		return ifindex_of(s, rec->out_ifidx);
	switch (watch_reason(rec)) {
	case PUNT_too_big:    /* the packet is fragmented */
	case PUNT_unresolved: /* the packet leaves when its neighbor has answered */
		return ifindex_of(s, rec->out_ifidx);
	case PUNT_kernel_route:
		return path_index(rec->path);
	default:
		return SFLOW_HOST;
	}
}

/* Return the offset of the IP header in a frame with `n` octets; 0: none. */
static unsigned int
frame_find_ip(const uint8_t *frame, unsigned int n, uint8_t family)
{
	unsigned int at = L2_LEN;

	while (n >= at + VLAN_BYTES && at < L2_LEN + VLAN_TAGS * VLAN_BYTES &&
	       vlan_type_is_tag(get_be16(frame + at - 2)))
		at += VLAN_BYTES;
	if (n < at + (family == 4 ? 20 : 40) ||
	    get_be16(frame + at - 2) != (family == 4 ? 0x0800 : 0x86dd))
		return 0;
	return at;
}

/*
 * Set the VLANs by which a packet arrived and left. If it has two tags, use the inner tag.
 */
static void
item_note_vlans(const struct sflow *s, struct item *item, const struct watch_record *rec)
{
	const struct fib_iface *out =
		rec->out_ifidx == 0 ? NULL : fib_iface(s->setup.fib, rec->out_ifidx);
	struct sflow_packet *p = &item->packet;
	unsigned int at = L2_LEN;

	while (p->header_len >= at + VLAN_BYTES && at < L2_LEN + VLAN_TAGS * VLAN_BYTES &&
	       vlan_type_is_tag(get_be16(item->header + at - 2))) {
		uint16_t tci = get_be16(item->header + at);

		p->tagged = true;
		p->in = (struct sflow_vlan){tci & 0xfff, tci >> 13};
		at += VLAN_BYTES;
	}
	if (out == NULL || rec->verdict != WATCH_GO || out->n_tags == 0)
		return;
	p->tagged = true;
	p->out = (struct sflow_vlan){out->tag[out->n_tags - 1].id, p->in.priority};
}

/* Fill the request to rib for the record of routers. */
static void
item_want_masks(struct item *item, const struct watch_record *rec, struct mask_want want[2])
{
	unsigned int at = frame_find_ip(item->header, item->packet.header_len, rec->family);
	bool four = rec->family == 4;
	const uint8_t *ip = item->header + at;

	if (at == 0)
		return;
	item->packet.router_family = rec->family;
	if (path_kind(rec->path) != PATH_ONLINK) {
		item->packet.next_hop = rec->via;
		item->packet.next_hop_family = rec->via_family;
	}
	for (unsigned int k = 0; k < 2; k++) {
		want[k].vrf = rec->vrf;
		want[k].prefix.family = rec->family;
		want[k].prefix.len = (uint8_t)family_bits(rec->family);
		memcpy(want[k].prefix.addr.octet,
		       ip + (four ? 12 : 8) + k * family_octets(rec->family),
		       family_octets(rec->family));
	}
}

/*
 * Set the limits. The buckets have room for the samples of one second. While there are more
 * samples, each tick sends its share, so that the samples are spread over time.
 */
void
limits_set(struct sflow *s)
{
	bucket_rate_set(&s->samples.rate, SAMPLES_A_SECOND, SAMPLES_A_SECOND, NS_A_SECOND);
	bucket_rate_set(&s->discards.rate, DISCARDS_A_SECOND, DISCARDS_A_SECOND,
			NS_A_SECOND);
}

/* Return false if a record is over the limit. */
static bool
limit_pass(struct sflow *s, bool discard, uint64_t now_ns)
{
	if (discard && !bucket_has(&s->discards.full_at, &s->discards.rate, now_ns))
		return false;
	if (!bucket_take(&s->samples.full_at, &s->samples.rate, now_ns))
		return false;
	if (discard)
		(void)bucket_take(&s->discards.full_at, &s->discards.rate, now_ns);
	return true;
}

static void
item_fill(struct sflow *s, struct batch *b, const struct watch_record *rec)
{
	struct item *item = &b->item[b->n];
	struct sflow_packet *p = &item->packet;
	unsigned int port = source_of(s, rec);

	item->discard = rec->point == WATCH_LOST;
	item->port = port;
	p->header_len =
		rec->snap_bytes < SFLOW_HEADER_MAX ? rec->snap_bytes : SFLOW_HEADER_MAX;
	memcpy(item->header, rec->frame, p->header_len);
	p->frame_len = rec->frame_bytes + SFLOW_FCS_BYTES;
	p->source = ifindex_of(s, port);
	p->input = ifindex_of(s, rec->in_ifidx);
	p->drops = (uint32_t)source_lost(s, port, item->discard);
	if (item->discard) {
		p->sequence = ++s->source[port].discard_sequence;
		p->output = ifindex_of(s, rec->out_ifidx);
		p->reason = sflow_reason((enum reason)rec->verdict);
	} else {
		p->sequence = ++s->source[port].sequence;
		p->rate = s->now.rate;
		p->pool = (uint32_t)source_pool(s, port);
		p->dropped = sample_is_dropped(rec);
		if (p->dropped)
			p->reason = sflow_reason(watch_reason(rec));
		else
			p->output = output_of(s, rec);
		if (rec->looked_up)
			item_want_masks(item, rec, &b->masks.of[2 * b->n]);
	}
	item_note_vlans(s, item, rec);
	b->n++;
	b->masks.n = 2 * b->n;
}

static struct batch *
batch_new(struct sflow *s)
{
	struct batch *b = msg_new(MSG_QUERY, sizeof(*b));

	b->masks.q.kind = QUERY_MASKS;
	b->masks.q.from = s->w;
	return b;
}

static void
batch_send(struct sflow *s, struct batch *b)
{
	s->n_asked++;
	worker_send(s->setup.rib, &b->masks.q.m);
}

/*
 * Return true if a record belongs to the settings in force and is within the limits.
 * Without an agent no datagrams are sent, but psample gets samples.
 */
static bool
record_is_wanted(struct sflow *s, const struct watch_record *rec, uint64_t now_ns)
{
	bool discard = rec->point == WATCH_LOST;

	if (rec->epoch != s->epoch)
		return false;
	if ((s->agent_family != 0 || psample_is_open(s)) &&
	    s->n_asked < SFLOW_BATCHES_MAX && limit_pass(s, discard, now_ns))
		return true;
	source_count_over(s, source_of(s, rec), discard);
	return false;
}

static void
ring_take(struct sflow *s, struct watch_ring *ring, struct batch **batch, uint64_t now_ns)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

	for (; tail != head; tail++) {
		const struct watch_record *rec = &ring->record[tail % WATCH_RING_SLOTS];

		if (record_is_wanted(s, rec, now_ns)) {
			if (*batch == NULL)
				*batch = batch_new(s);
			item_fill(s, *batch, rec);
			if ((*batch)->n == BATCH_MAX) {
				batch_send(s, *batch);
				*batch = NULL;
			}
		}
		/* Release: the producer may overwrite the record after it sees the tail. */
		atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	}
}

void
records_take(struct sflow *s, uint64_t now_ns)
{
	struct batch *batch = NULL;

	for (unsigned int i = 0; i < s->setup.watch->n_ring; i++)
		ring_take(s, &s->setup.watch->ring[i], &batch, now_ns);
	if (batch != NULL)
		batch_send(s, batch);
}

void
records_drop(struct sflow *s)
{
	for (unsigned int i = 0; i < s->setup.watch->n_ring; i++) {
		struct watch_ring *ring = &s->setup.watch->ring[i];

		/* Release: as in ring_take(). */
		atomic_store_explicit(
			&ring->tail,
			atomic_load_explicit(&ring->head, memory_order_acquire),
			memory_order_release);
	}
}

/* --- answers -------------------------------------------------------------------------- */

void
batch_answered(struct sflow *s, struct batch *b)
{
	s->n_asked--;
	for (unsigned int i = 0; i < b->n && sflow_is_on(&s->now); i++) {
		struct item *item = &b->item[i];
		struct sflow_packet *p = &item->packet;

		p->header = item->header;
		if (!item->discard)
			psample_send(s, p, &s->source[item->port]);
		if (s->now.n_collector == 0)
			continue;
		if (s->agent_family == 0) {
			source_count_over(s, item->port, item->discard);
			continue;
		}
		p->src_mask = b->masks.of[2 * i].prefix.len;
		p->dst_mask = b->masks.of[2 * i + 1].prefix.len;
		if (item->discard) {
			out_add(s, datagram_add_discard, p);
			STATUS_ADD(discards, 1);
		} else {
			out_add(s, datagram_add_flow, p);
			STATUS_ADD(samples, 1);
		}
	}
	out_flush(s);
	msg_free(&b->masks.q.m);
}
