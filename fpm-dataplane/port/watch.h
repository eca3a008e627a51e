/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: what forwarders and the punt thread set aside about packets while somebody looks
 * (`fpmctl trace`, `fpmctl capture`), and who is looking.
 *
 * Each producer has a ring of records of its own, read by [trace]. What is looked for is a
 * set of filters, published under RCU; NULL, and that is nearly always, means nobody looks:
 * one pointer to compare. A full ring costs a record, never a packet.
 */
#ifndef PORT_WATCH_H
#define PORT_WATCH_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/msg.h"
#include "base/prefix.h"

#define WATCH_SESSIONS   8
#define WATCH_RING_SLOTS 2048 /* a power of two */
#define WATCH_SNAP_MAX   1920 /* octets of a frame kept, at most */

enum watch_point {
	WATCH_WALK, /* came in and was judged: the frame as it came */
	WATCH_SENT, /* given to a port: the frame as it leaves */
	WATCH_LOST, /* dropped later than in the walk: the frame as it was then */
};

/* The stages of the walk; a record names the one at which the packet's way was decided. */
enum watch_stage {
	STAGE_ADMIT,     /* interface */
	STAGE_PARSE,     /* Ethernet and IP headers */
	STAGE_LOOKUP,    /* route and path */
	STAGE_ADJACENCY, /* neighbor */
	STAGE_REWRITE,   /* TTL, MTU, egress */
	STAGE_SEND,      /* passed all */
	N_STAGE
};

#define WATCH_FORWARDED 1u
#define WATCH_PUNTED    2u
#define WATCH_DROPPED   4u
#define WATCH_ANY       (WATCH_FORWARDED | WATCH_PUNTED | WATCH_DROPPED)

/* What one session looks for. Zero means any, unless said otherwise. */
struct watch_filter {
	uint8_t points;   /* bit an enum watch_point */
	uint8_t verdicts; /* WATCH_FORWARDED, ...; of walks */
	uint8_t reason;   /* enum reason, N_REASON: any */
	bool packet;      /* one of the fields below is set */
	bool has_proto;
	uint8_t proto;
	uint16_t sport, dport;
	uint16_t ifidx; /* came in by it (walks, drops), leaves by it (sent) */
	uint16_t snap_bytes;
	struct prefix src, dst, host; /* family 0: any; host: either end */
};

/* Immutable once published. */
struct watch_set {
	uint8_t points; /* of all filters together */
	uint8_t live;   /* bit a session: its filter is in use */
	uint32_t epoch; /* counts the sets published */
	struct watch_filter filter[WATCH_SESSIONS];
};

struct watch_record {
	uint64_t time_ns; /* CLOCK_REALTIME, of the burst */
	uint64_t hop;     /* MAC << 16 | ifidx; 0: none */
	uint32_t epoch;   /* of the set that wanted it */
	uint32_t group, path, flow_hash;
	uint32_t frame_bytes; /* on the wire */
	uint16_t snap_bytes;  /* of them in `frame` */
	uint16_t in_ifidx, out_ifidx;
	uint16_t mtu_bytes; /* of egress and route, 0: not got there */
	uint16_t l3_bytes;  /* of the IP packet */
	uint16_t vrf;       /* it was looked up in; 0: none, table main */
	uint16_t to_vrf;    /* its route leads to: path and via are of there; 0: none */
	uint8_t point;      /* enum watch_point */
	uint8_t sessions;   /* bit a session that wants it; 0: none, skip it */
	uint8_t stage;      /* enum watch_stage */
	uint8_t verdict;    /* enum reason, or WATCH_GO: forwarded */
	uint8_t class;      /* of a punt: enum punt_class */
	uint8_t cause;      /* with `icmp`: the drop that the error tells of */
	bool icmp;          /* a punt that asks for an ICMP error */
	uint8_t family;     /* 4, 6, 0 */
	uint8_t log2_buckets;
	bool looked_up;        /* group, path, flow_hash and log2_buckets hold something */
	uint8_t via_family;    /* of the next hop; 0: none */
	uint8_t rewritten[23]; /* first octets of the frame as it leaves, tags left out */
	struct ipaddr via;
	alignas(8) uint8_t frame[WATCH_SNAP_MAX];
};

#define WATCH_GO 255

struct watch_ring {
	alignas(64) _Atomic uint64_t head; /* W:producer  records published */
	uint64_t next;                     /* W:producer  records opened */
	uint64_t *n_lost;                  /* W:producer  records without room: a counter */
	alignas(64) _Atomic uint64_t tail; /* W:trace  records done with */
	struct watch_record *record; /* WATCH_RING_SLOTS, paid for by watch_populate() */
};

struct watch {
	_Atomic(struct watch_set *) set; /* W:trace  NULL: nobody looks */
	struct watch_ring ring[COUNTERS_MAX];
	unsigned int n_ring;
};

/* Zeroed, without rings. Returns NULL when memory is out.                        [main] */
struct watch *watch_create(void);
void watch_free(struct watch *w);

/*
 * A ring for one more producer, whose lost records are counted in *n_lost. Returns NULL
 * when memory is out.                                                            [main]
 */
struct watch_ring *watch_ring_add(struct watch *w, uint64_t *n_lost);

/* Have the rings' memory there before somebody looks: no forwarder waits for it. [trace] */
void watch_populate(struct watch *w);

/* Who is looking? Valid until the next quiescent state.                    [RCU reader] */
static inline const struct watch_set *
watch_set(const struct watch *w)
{
	return atomic_load_explicit(&w->set, memory_order_consume);
}

/*
 * Which sessions want this frame, before its verdict is known? `len` octets of it can be
 * looked at. Bits of sessions.                                      [no side effects]
 */
uint8_t watch_wanted(const struct watch_set *set, enum watch_point point, uint16_t ifidx,
		     const uint8_t *frame, unsigned int len);

/*
 * Why the packet left: the drop behind an ICMP error, else the verdict itself. Not of what is
 * forwarded.
 */
static inline enum reason
watch_reason(const struct watch_record *rec)
{
	return (enum reason)(rec->icmp ? rec->cause : rec->verdict);
}

/* Of the sessions of a record, those that want its verdict too. */
uint8_t watch_wanted_verdict(const struct watch_set *set, const struct watch_record *rec);

/* The longest part of a frame that one of `sessions` wants, in octets. */
uint16_t watch_snap(const struct watch_set *set, uint8_t sessions);

/*
 * The next free record, all but `frame` zero; NULL when the ring is full,
 * which is counted. It is [trace]'s to read from watch_publish() on.           [producer]
 */
struct watch_record *watch_open(struct watch_ring *ring);

struct rte_mbuf;

/* Copy what there is of a frame, at most `snap` octets, into its record. */
void watch_copy(struct watch_record *rec, const struct rte_mbuf *m, uint16_t snap);

/*
 * A record of a frame that somebody wants (watch_wanted), with the frame in it; NULL when
 * nobody wants it or there is no room. *now_ns is the time of the burst, 0: not asked yet.
 */
struct watch_record *watch_note(struct watch_ring *ring, const struct watch_set *set,
				enum watch_point point, uint16_t ifidx,
				const struct rte_mbuf *m, uint64_t *now_ns);

/* Note a frame that is about to be dropped for `reason`, and publish.      [producer] */
void watch_lost(struct watch_ring *ring, const struct watch_set *set, uint16_t ifidx,
		const struct rte_mbuf *m, enum reason reason);
void watch_publish(struct watch_ring *ring);

/* CLOCK_REALTIME in ns. */
uint64_t watch_now_ns(void);

/*
 * ui's question to [trace], and its answer: rows as of any query. One object travels to and
 * fro until it is done; with `cancel` it comes for the last time, and trace frees it.
 */
enum watch_ask { WATCH_ASK_NONE, WATCH_ASK_TRACE, WATCH_ASK_CAPTURE, WATCH_ASK_EXPLAIN };

#define WATCH_FRAME_MAX 1984 /* octets of a frame to explain that a request can hold */

struct watch_want {
	uint8_t ask; /* enum watch_ask */
	struct watch_filter filter;
	uint64_t count;       /* packets; 0: no limit */
	double for_s;         /* seconds; 0: no limit */
	uint16_t ifidx;       /* explain: came in by it */
	uint16_t n_frame;     /* explain: octets in `frame`; zeros follow ... */
	uint32_t frame_bytes; /* ... up to here */
	uint8_t frame[WATCH_FRAME_MAX];
};

struct msg_watch {
	struct msg_query q; /* first: msg_free() takes it for the whole */
	bool cancel;
	const char *error; /* of a reply: why not, a sentence; static */
	struct watch_want want;
};

#endif
