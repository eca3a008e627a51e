/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: filters on octets, and the rings of records. The octets are only read, so any
 * content is valid. No thread of its own, no lock, no allocation after the start.
 */
#include "port/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_mbuf.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "fib/fib.h"

#define L2_LEN 14

struct watch *
watch_create(void)
{
	struct watch *w = aligned_alloc(64, sizeof(*w));

	if (w != NULL)
		memset(w, 0, sizeof(*w));
	return w;
}

void
watch_free(struct watch *w)
{
	for (unsigned int i = 0; w != NULL && i < w->n_ring; i++)
		munmap(w->ring[i].record, WATCH_RING_SLOTS * sizeof(struct watch_record));
	free(w);
}

struct watch_ring *
watch_ring_add(struct watch *w, uint64_t *n_lost)
{
	struct watch_ring *ring = &w->ring[w->n_ring];
	void *mem = mmap(NULL, WATCH_RING_SLOTS * sizeof(struct watch_record),
			 PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	ring->record = mem;
	ring->n_lost = n_lost;
	w->n_ring++;
	return ring;
}

void
watch_populate(struct watch *w)
{
	/*
	 * A kernel before 5.14 cannot do this. Then a page is allocated at its first write.
	 */
	for (unsigned int i = 0; i < w->n_ring; i++)
		(void)madvise(w->ring[i].record,
			      WATCH_RING_SLOTS * sizeof(struct watch_record),
			      MADV_POPULATE_WRITE);
}

uint64_t
watch_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool
prefix_covers_octets(const struct prefix *p, uint8_t family, const uint8_t *octets)
{
	struct ipaddr addr = {0};

	if (p->family != family)
		return false;
	memcpy(addr.octet, octets, family_octets(family));
	return prefix_covers(p, &addr);
}

/*
 * Read the ports behind the IP header; 0 if there are none or the packet is a later
 * fragment.
 */
static void
ip_ports(const uint8_t *ip, unsigned int len, uint8_t family, uint16_t port[2])
{
	unsigned int off = family == 4 ? (ip[0] & 15u) * 4 : 40;
	bool later = family == 4 && (get_be16(ip + 6) & 0x1fff) != 0;

	port[0] = port[1] = 0;
	if (later || !proto_has_ports(family == 4 ? ip[9] : ip[6]) || len < off + 4)
		return;
	port[0] = get_be16(ip + off);
	port[1] = get_be16(ip + off + 2);
}

static bool
filter_matches_ip(const struct watch_filter *f, const uint8_t *ip, unsigned int len,
		  uint8_t family)
{
	const uint8_t *src = family == 4 ? ip + 12 : ip + 8;
	const uint8_t *dst = src + family_octets(family);
	uint16_t port[2];

	if (f->has_proto && f->proto != (family == 4 ? ip[9] : ip[6]))
		return false;
	if (f->src.family != 0 && !prefix_covers_octets(&f->src, family, src))
		return false;
	if (f->dst.family != 0 && !prefix_covers_octets(&f->dst, family, dst))
		return false;
	if (f->host.family != 0 && !prefix_covers_octets(&f->host, family, src) &&
	    !prefix_covers_octets(&f->host, family, dst))
		return false;
	if (f->sport == 0 && f->dport == 0)
		return true;
	ip_ports(ip, len, family, port);
	return (f->sport == 0 || f->sport == port[0]) &&
	       (f->dport == 0 || f->dport == port[1]);
}

/* Apply filter_matches_ip() to the IP packet behind the labels at `p`; false: none. */
static bool
filter_matches_labels(const struct watch_filter *f, const uint8_t *p, unsigned int len)
{
	bool bottom = false;
	uint8_t family;

	while (!bottom && len >= LABEL_BYTES + 20) {
		bottom = label_is_bottom(get_be32(p));
		p += LABEL_BYTES;
		len -= LABEL_BYTES;
	}
	family = bottom ? p[0] >> 4 : 0;
	return (family == 4 || (family == 6 && len >= 40)) &&
	       filter_matches_ip(f, p, len, family);
}

static bool
filter_matches(const struct watch_filter *f, const uint8_t *frame, unsigned int len)
{
	unsigned int tag = 0;
	uint16_t type;

	if (!f->packet)
		return true;
	/* A frame that is about to be sent has its tags. */
	while (len >= L2_LEN + 4 && tag < 2 && vlan_type_is_tag(get_be16(frame + 12))) {
		frame += 4;
		len -= 4;
		tag++;
	}
	if (len < L2_LEN + 20)
		return false;
	type = get_be16(frame + 12);
	if (type == MPLS_TYPE)
		return filter_matches_labels(f, frame + L2_LEN, len - L2_LEN);
	if (type == 0x0800)
		return filter_matches_ip(f, frame + L2_LEN, len - L2_LEN, 4);
	return type == 0x86dd && len >= L2_LEN + 40 &&
	       filter_matches_ip(f, frame + L2_LEN, len - L2_LEN, 6);
}

uint8_t
watch_wanted(const struct watch_set *set, enum watch_point point, uint16_t ifidx,
	     const uint8_t *frame, unsigned int len)
{
	uint8_t wanted = 0;

	if ((set->points & 1u << point) == 0)
		return 0;
	for (unsigned int i = 0; i < WATCH_SESSIONS; i++) {
		const struct watch_filter *f = &set->filter[i];

		if ((set->live & 1u << i) != 0 && (f->points & 1u << point) != 0 &&
		    (f->ifidx == 0 || f->ifidx == ifidx) && filter_matches(f, frame, len))
			wanted |= (uint8_t)(1u << i);
	}
	return wanted;
}

uint8_t
watch_wanted_verdict(const struct watch_set *set, const struct watch_record *rec)
{
	uint8_t sessions = rec->sessions;
	enum reason reason = watch_reason(rec);
	uint8_t kind = rec->verdict == WATCH_GO || rec->verdict == WATCH_DECAPSULATED
			       ? WATCH_FORWARDED
		       : reason < N_DROP ? WATCH_DROPPED
					 : WATCH_PUNTED;

	for (unsigned int i = 0; i < WATCH_SESSIONS; i++) {
		const struct watch_filter *f = &set->filter[i];

		if ((f->verdicts & kind) == 0 ||
		    (f->reason != N_REASON && f->reason != reason &&
		     f->reason != rec->verdict))
			sessions &= (uint8_t) ~(1u << i);
	}
	return sessions;
}

uint16_t
watch_snap(const struct watch_set *set, uint8_t sessions)
{
	uint16_t snap = 0;

	for (unsigned int i = 0; i < WATCH_SESSIONS; i++)
		if ((sessions & 1u << i) != 0 && set->filter[i].snap_bytes > snap)
			snap = set->filter[i].snap_bytes;
	return snap;
}

struct watch_record *
watch_open(struct watch_ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	struct watch_record *r;

	if (ring->next - tail >= WATCH_RING_SLOTS) {
		counter_add(ring->n_lost, 1);
		return NULL;
	}
	r = &ring->record[ring->next++ % WATCH_RING_SLOTS];
	memset(r, 0, offsetof(struct watch_record, frame));
	return r;
}

void
watch_publish(struct watch_ring *ring)
{
	/* Release: a reader of the head sees the records below it. */
	atomic_store_explicit(&ring->head, ring->next, memory_order_release);
}

void
watch_copy(struct watch_record *rec, const struct rte_mbuf *m, uint16_t snap)
{
	uint32_t left = rte_pktmbuf_pkt_len(m), at = 0;

	rec->frame_bytes = left;
	if (left > snap)
		left = snap;
	for (; left > 0 && m != NULL; m = m->next) {
		uint32_t n =
			rte_pktmbuf_data_len(m) < left ? rte_pktmbuf_data_len(m) : left;

		memcpy(rec->frame + at, rte_pktmbuf_mtod(m, const uint8_t *), n);
		at += n;
		left -= n;
	}
	rec->snap_bytes = (uint16_t)at;
}

struct watch_record *
watch_note(struct watch_ring *ring, const struct watch_set *set, enum watch_point point,
	   uint16_t ifidx, const struct rte_mbuf *m, uint64_t *now_ns)
{
	uint8_t wanted =
		watch_wanted(set, point, ifidx, rte_pktmbuf_mtod(m, const uint8_t *),
			     rte_pktmbuf_data_len(m));
	struct watch_record *rec = wanted != 0 ? watch_open(ring) : NULL;

	if (rec == NULL)
		return NULL;
	if (*now_ns == 0)
		*now_ns = watch_now_ns();
	rec->time_ns = *now_ns;
	rec->epoch = set->epoch;
	rec->point = (uint8_t)point;
	rec->sessions = wanted;
	watch_copy(rec, m, watch_snap(set, wanted));
	return rec;
}

void
watch_lost(struct watch_ring *ring, const struct watch_set *set, uint16_t ifidx,
	   const struct rte_mbuf *m, enum reason reason)
{
	uint64_t now_ns = 0;
	struct watch_record *rec = watch_note(ring, set, WATCH_LOST, ifidx, m, &now_ns);

	if (rec != NULL) {
		rec->in_ifidx = ifidx;
		rec->verdict = (uint8_t)reason;
		rec->sessions = watch_wanted_verdict(set, rec);
	}
	watch_publish(ring);
}
