/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: records of packets that forwarders and the punt thread write for sessions of
 * `fpmctl trace` and `fpmctl capture`, and the filters of these sessions. sFlow has rings
 * of its own, of the same form, which thread sflow reads.
 *
 * A producer has a ring of records, which thread trace reads. The filters are a set that is
 * published under RCU. Without a session the set is NULL, which costs a producer one load
 * and one comparison. A full ring loses a record, never a packet.
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
#define WATCH_SNAP_MAX   1920 /* bytes of a frame that a record can hold */

enum watch_point {
	WATCH_WALK, /* received, with the verdict: the frame as received */
	WATCH_SENT, /* given to a port: the frame as sent */
	WATCH_LOST, /* dropped after the stages: the frame at that time */
};

/* The stages; a record names the stage that decided. */
enum watch_stage {
	STAGE_ADMIT,     /* ingress interface */
	STAGE_PARSE,     /* Ethernet and IP headers */
	STAGE_HOOK,      /* program of `fpmctl hook`, if the interface has one */
	STAGE_LOOKUP,    /* route and path */
	STAGE_ADJACENCY, /* neighbor */
	STAGE_URPF,      /* check of the source, if rp_filter is set */
	STAGE_FILTER,    /* ruleset of nft, if there is one */
	STAGE_REWRITE,   /* TTL, MTU, egress interface */
	STAGE_SEND,      /* all stages passed */
	N_STAGE
};

#define WATCH_FORWARDED 1u
#define WATCH_PUNTED    2u
#define WATCH_DROPPED   4u
#define WATCH_ANY       (WATCH_FORWARDED | WATCH_PUNTED | WATCH_DROPPED)

/* The filter of a session. Zero means any, unless stated otherwise. */
struct watch_filter {
	uint8_t points;   /* bit per enum watch_point */
	uint8_t verdicts; /* WATCH_FORWARDED, ...; for WATCH_WALK */
	uint8_t reason;   /* enum reason, N_REASON: any */
	bool packet;      /* a protocol, a port or an address is set below */
	bool has_proto;
	uint8_t proto;
	uint16_t sport, dport;
	uint16_t ifidx; /* ingress (walk, lost) or egress interface (sent) */
	uint16_t snap_bytes;
	struct prefix src, dst, host; /* family 0: any; host: either end */
};

/* Immutable once published. */
struct watch_set {
	uint8_t points; /* points that any filter watches, as bits */
	uint8_t live;   /* bit per session: its filter is in use */
	uint32_t epoch; /* number of the set */
	struct watch_filter filter[WATCH_SESSIONS];
	/* sFlow has no filters: one packet of sample_rate is recorded. */
	uint32_t sample_rate;
	uint16_t sample_bytes; /* octets of its frame in the record */
	bool sample_drops;     /* dropped packets are recorded, too */
};

struct watch_record {
	uint64_t time_ns; /* CLOCK_REALTIME at the burst */
	uint64_t hop;     /* MAC << 16 | ifidx; 0: none */
	uint32_t epoch;   /* of the set that matched */
	uint32_t group, path, flow_hash;
	/* entry of fib->encap with the labels before the outer header; 0: none */
	uint32_t outer_labels;
	uint32_t frame_bytes; /* on the wire */
	uint16_t snap_bytes;  /* octets of it that `frame` has */
	uint16_t in_ifidx, out_ifidx;
	uint16_t mtu_bytes; /* of egress and route; 0: not determined */
	uint16_t l3_bytes;  /* of the IP packet */
	uint16_t vrf;       /* number of the FIB of the lookup; 0: table main */
	/*
	 * `tunnel`: the tunnel of an outer packet (WATCH_DECAPSULATED), or the tunnel that
	 * a packet enters. `outer_ifidx`: the port that received the outer packet of an
	 * inner packet. 0: none
	 */
	uint16_t tunnel, outer_ifidx;
	uint16_t to_vrf;   /* VRF of the route; path and via are from there; 0: none */
	uint8_t point;     /* enum watch_point */
	uint8_t sessions;  /* bit per session that wants it; 0: none, skip it */
	uint8_t stage;     /* enum watch_stage */
	uint8_t verdict;   /* enum reason, or WATCH_GO: forwarded, or WATCH_DECAPSULATED */
	uint8_t class;     /* with a punt: enum punt_class */
	uint8_t cause;     /* with `icmp`: the drop reason */
	bool icmp;         /* the punt is for an ICMP error */
	uint16_t icmp_vrf; /* with `icmp`: the VRF of the error */
	uint8_t family;    /* 4, 6, or 0: not IP */
	uint8_t log2_buckets;
	uint8_t pops;       /* MPLS labels to remove; path and via are then valid */
	uint8_t rule;       /* 1: rule_pref decided; 2: rules apply, none decided */
	uint32_t rule_pref; /* of the kernel's rule ... */
	/* ... and the table that it names; 0: none, or that of the VRF. */
	uint32_t rule_table;
	bool to_main;           /* the VRF has no route: path and via are from table main */
	bool looked_up;         /* group, path, flow_hash and log2_buckets are valid */
	uint8_t urpf;           /* enum fib_urpf, if the source was checked ... */
	uint8_t back;           /* ... enum fib_back: the result */
	uint8_t filter;         /* WATCH_FILTER_ */
	uint64_t filter_handle; /* of the rule that decided; 0: the policy of the chain */
	char filter_chain[32];  /* truncated; "": no chain */
	char filter_comment[64]; /* of the rule, truncated */
	uint8_t hook;            /* WATCH_HOOK_ */
	uint8_t hook_dscp;       /* that the program set; UINT8_MAX: none */
	uint32_t hook_table;     /* that the program chose; 0: none */
	char hook_file[64];      /* of the program */
	uint8_t via_family;      /* of the next hop; 0: none */
	uint8_t rewritten[23];   /* first octets of the frame as sent, without tags */
	struct ipaddr via;
	alignas(8) uint8_t frame[WATCH_SNAP_MAX];
};

#define WATCH_GO           255
#define WATCH_DECAPSULATED 253 /* an outer packet: another record has the inner packet */

enum watch_filter_verdict {
	WATCH_FILTER_NONE, /* the packet did not reach the filter */
	WATCH_FILTER_PASS,
	WATCH_FILTER_DROP,
	WATCH_FILTER_REJECT,
};

enum watch_hook_verdict {
	WATCH_HOOK_NONE, /* no program ran on the packet */
	WATCH_HOOK_PASS,
	WATCH_HOOK_CHANGE, /* passes; the program set a DSCP or a table */
	WATCH_HOOK_DROP,
};

struct watch_ring {
	alignas(64) _Atomic uint64_t head; /* W:producer  records published */
	uint64_t next;                     /* W:producer  records opened */
	uint64_t *n_lost;                  /* W:producer  counter of records without room */
	alignas(64) _Atomic uint64_t tail; /* W:trace,sflow  records consumed */
	struct watch_record *record; /* WATCH_RING_SLOTS; watch_populate() allocates them */
};

struct watch {
	_Atomic(struct watch_set *) set; /* W:trace,sflow  NULL: no session, or off */
	struct watch_ring ring[COUNTERS_MAX];
	unsigned int n_ring;
};

/* Create an empty watch without rings. Returns NULL if out of memory.             [main] */
struct watch *watch_create(void);
void watch_free(struct watch *w);

/*
 * Add the ring of a producer, whose lost records are counted in *n_lost. Returns NULL if
 * out of memory.                                                                 [main]
 */
struct watch_ring *watch_ring_add(struct watch *w, uint64_t *n_lost);

/*
 * Allocate the memory of the rings before a session begins, so that no forwarder waits for
 * page faults.                                                                  [trace]
 */
void watch_populate(struct watch *w);

/*
 * Return the filters, NULL without a session. Valid until the next quiescent state.
 *                                                                          [RCU reader]
 */
static inline const struct watch_set *
watch_set(const struct watch *w)
{
	return atomic_load_explicit(&w->set, memory_order_consume);
}

/*
 * Return a bit mask of the sessions whose filters match this frame before its verdict is
 * known. `len` octets of it can be read.                              [no side effects]
 */
uint8_t watch_wanted(const struct watch_set *set, enum watch_point point, uint16_t ifidx,
		     const uint8_t *frame, unsigned int len);

/*
 * Return the drop reason that caused an ICMP error, or else the verdict. Do not call this
 * for a packet that is forwarded or decapsulated.
 */
static inline enum reason
watch_reason(const struct watch_record *rec)
{
	return (enum reason)(rec->icmp ? rec->cause : rec->verdict);
}

/* Return the sessions of a record that want its verdict too. */
uint8_t watch_wanted_verdict(const struct watch_set *set, const struct watch_record *rec);

/* Return the longest part of a frame that one of `sessions` wants, in octets. */
uint16_t watch_snap(const struct watch_set *set, uint8_t sessions);

/*
 * Open the next free record, zeroed except `frame`. If the ring is full, count a lost
 * record and return NULL. After watch_publish() thread trace reads the record. [producer]
 */
struct watch_record *watch_open(struct watch_ring *ring);

struct rte_mbuf;

/* Copy a frame, up to `snap` octets, into its record. */
void watch_copy(struct watch_record *rec, const struct rte_mbuf *m, uint16_t snap);

/*
 * Make the record of a frame that a session wants (see watch_wanted()), with the frame in
 * it. Returns NULL if no session wants it or the ring is full. *now_ns is the time of the
 * burst; 0: not read yet.                                                    [producer]
 */
struct watch_record *watch_note(struct watch_ring *ring, const struct watch_set *set,
				enum watch_point point, uint16_t ifidx,
				const struct rte_mbuf *m, uint64_t *now_ns);

/* Record a frame that is about to be dropped for `reason`, and publish.       [producer] */
void watch_lost(struct watch_ring *ring, const struct watch_set *set, uint16_t ifidx,
		const struct rte_mbuf *m, enum reason reason);
void watch_publish(struct watch_ring *ring);

/* Return CLOCK_REALTIME in ns. */
uint64_t watch_now_ns(void);

/*
 * A request of ui to [trace], and the reply with rows, as for any query. ui and trace send
 * one object to each other until the request is done. With `cancel` ui sends it for the
 * last time, and trace frees it.
 */
enum watch_ask { WATCH_ASK_NONE, WATCH_ASK_TRACE, WATCH_ASK_CAPTURE, WATCH_ASK_EXPLAIN };

#define WATCH_FRAME_MAX 1984 /* bytes of a frame in a request of explain */
/*
 * Longest frame of such a request, with the zeros behind `frame`. The length must fit 16
 * bits even with a VLAN tag.
 */
#define WATCH_FRAME_BYTES_MAX 65520

struct watch_want {
	uint8_t ask; /* enum watch_ask */
	struct watch_filter filter;
	uint64_t count;       /* packets; 0: no limit */
	double for_s;         /* seconds; 0: no limit */
	uint16_t ifidx;       /* explain: ingress interface */
	uint16_t n_frame;     /* explain: octets in `frame`; zeros follow ... */
	uint32_t frame_bytes; /* ... up to here */
	uint8_t frame[WATCH_FRAME_MAX];
};

struct msg_watch {
	struct msg_query q; /* first: msg_free() gets its address */
	bool cancel;
	const char *error; /* of a reply: the reason of a failure, a static sentence */
	struct watch_want want;
};

#endif
