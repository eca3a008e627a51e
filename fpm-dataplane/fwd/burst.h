/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * burst: the packets of one receive call on their way through the stages, and the state of
 * one forwarder.
 *
 * Each stage handles the whole burst and leaves a verdict per entry. An entry whose verdict
 * is not VERDICT_GO is not forwarded.
 */
#ifndef FWD_BURST_H
#define FWD_BURST_H

#include <assert.h>
#include <rte_mbuf.h>
#include <stdalign.h>
#include <stdint.h>

#include "fib/sid_entry.h"
#include "fib/tunnel.h"
#include "fib/urpf.h"
#include "fwd/fwd.h"
#include "port/packet_meta.h"
#include "port/watch.h"

#define BURST_MAX 64 /* packets that pass the stages together */
/* A verdict is an enum reason (a drop or a punt) or one of these numbers. */
#define VERDICT_GO           255 /* forward it, unless a later stage decides otherwise */
#define VERDICT_LATER        254 /* left to the slow path, see fwd_split() */
#define VERDICT_DECAPSULATED 253 /* decapsulated: the inner packet passes the stages next */
static_assert(N_REASON < VERDICT_DECAPSULATED, "a verdict is one octet");

static_assert(BURST_MAX <= 64, "one bit per entry");

#define L2_LEN 14

/*
 * 1: forwarders have no code for sessions that watch packets, for sFlow, filters and uRPF.
 * `make bench-watch` measures what this code costs while all of them are off.
 */
#ifndef FWD_BLIND
#define FWD_BLIND 0
#endif

/* The most packets per transmit call. fwd_conf.tx_burst has the number in use. */
#define TX_BURST_MAX FWD_BURST_MAX

/*
 * The most records of dropped packets that may wait in a ring for thread sflow. The number
 * of records of samples is not limited. The limit keeps the cost of a flood of dropped
 * packets low: further dropped packets are only counted.
 */
#define SAMPLE_DISCARDS_MAX 64

struct tx_buffer {
	uint16_t n; /* frames in m[] */
	/* The first n_own frames in m[] are frames of this router, see fwd_tx_own(). */
	uint16_t n_own;
	uint16_t port_id;
	bool listed;      /* in fwd.tx_used, until the flush at the end of the round */
	bool has_vlans;   /* some frames are of VLANs that m->port names: tx_ifidx() */
	uint16_t vlan;    /* not 0: all frames are of this VLAN; m->port does not name it */
	bool has_inserts; /* the device inserts the tag of some frames */
	/* time since which the device has taken no frame; 0: no frame is kept */
	uint64_t kept_tsc;
	struct rte_mbuf *m[TX_BURST_MAX + 8]; /* a vector store may write beyond the end */
};

/*
 * Return the interface by which a frame in the buffer of `port` leaves. For a VLAN it is in
 * m->port.
 */
static inline uint16_t
tx_ifidx(const struct rte_mbuf *m, uint16_t port)
{
	uint16_t said = m->port;

	return (uint16_t)(said - PORT_MAX) < IFIDX_MAX - PORT_MAX ? said : port;
}
static_assert(RTE_MAX_ETHPORTS <= PORT_MAX, "DPDK port ids are below PORT_MAX, or invalid");

/* A decapsulated packet. The inner packet passes the stages next. */
struct fwd_decap {
	struct rte_mbuf *m; /* begins with the outer frame */
	uint16_t ifidx;     /* of the tunnel */
	uint16_t at;        /* offset at which a frame of the inner packet would begin */
	/*
	 * An end point of SRv6 decapsulated it (DECAP_BY_SID); `ifidx` received the outer
	 * packet.
	 */
	bool by_sid;
	/* the tunnel and its VRF have counted it as received, or it has DECAP_GOES_ON */
	bool counted;
	uint16_t vrf;  /* the VRF in which it is looked up */
	fib_path path; /* PATH_NONE: look it up */
	uint16_t
		labels_at; /* `at` if MPLS labels follow the outer headers; 0: an IP packet */
};

/* Room for Ethernet, IPv6, an SRH of two segments, and the first octet behind them. */
#define FWD_PATTERN_BYTES 96u
#define FWD_PATTERNS_LOG2 6
#define FWD_PATTERNS      (1 << FWD_PATTERNS_LOG2)

/*
 * The effect of a match: the packet is decapsulated, or goes on to the next segment of
 * SRv6.
 */
enum fwd_decap_use {
	DECAP_OPEN,
	DECAP_SEGMENT, /* the next segment is in the routing header, at offset 40 */
	DECAP_SHIFT,   /* the next segment is in the destination: RFC 9800, 4.1.1 */
};

/*
 * The outer headers of packets that are decapsulated in the same manner, or that an end
 * point (End) passes on, see fwd/decap_fast.h. Only the bits that are set in `mask` are
 * compared. The lookups of all packets with these headers have the same results.
 */
struct fwd_decap_pattern {
	uint64_t epoch;         /* fwd.outer_epoch at the time of the lookups */
	uint64_t interval;      /* fwd.interval at that time */
	uint16_t in;            /* interface that receives them */
	uint8_t use;            /* enum fwd_decap_use */
	struct ipaddr next;     /* DECAP_SHIFT: the destination with the next segment */
	struct fwd_decap decap; /* DECAP_OPEN: all members but `m` */
	/*
	 * The least length of a frame: up to the end of the smallest inner IP header, or of
	 * the routing header.
	 */
	uint16_t bytes_min;
	uint8_t n_words;       /* words of value[] and mask[]; 0: there is no pattern */
	uint8_t family, inner; /* of the outer and of the inner packet */
	uint8_t udp_at;        /* offset from the outer IP header; 0: no UDP */
	uint32_t sid;          /* number by which packets are counted; 0: none */
	fib_path local;        /* the path of the outer destination */
	uint64_t value[FWD_PATTERN_BYTES / 8], mask[FWD_PATTERN_BYTES / 8];
};

/* The group of a segment of SRv6 in a FIB, valid until the next quiescent state. */
struct fwd_segment {
	uint64_t epoch; /* of the lookup; valid while it is equal to fwd.outer_epoch */
	const struct poptrie *pt6;
	uint64_t dst[2]; /* the segment, in network order */
	uint32_t group;
};

#define FWD_SEGMENTS_LOG2 7
#define FWD_SEGMENTS      (1 << FWD_SEGMENTS_LOG2)

/* The path of packets into a tunnel, valid until the next quiescent state. */
struct fwd_outer {
	uint64_t epoch; /* of the lookup; valid while it is equal to fwd.outer_epoch */
	uint16_t ifidx; /* of the tunnel; 0: none yet */
	/* DS field of the packets for which the path was found; matters if outer.by_ds */
	uint8_t ds;
	/*
	 * The largest packet that fits the egress interface without fragments of the outer
	 * packet. 0: no packet fits, or there is no path.
	 */
	uint16_t mtu;
	bool told; /* an ICMP error about an outer packet has come: fib_tunnel_tell() */
	/* The neighbor is on a port, its frames have no tags or labels, and no error came. */
	bool plain;
	struct fib_tunnel_outer outer;
	const struct fib_iface *out; /* the egress interface; NULL: none */
};

#define FWD_OUTERS 64 /* indexed by the number of the tunnel; a power of two */

/*
 * The part of the path that all packets to a neighbor behind a VXLAN, or of a headend of
 * SRv6, have in common. Valid until the next quiescent state.
 */
struct fwd_leg {
	uint64_t epoch; /* of the lookup; valid while it is equal to fwd.outer_epoch */
	const void *of; /* struct fib_vxlan_hop or fib_headend; NULL: none yet */
	bool usual;     /* the rest is valid; false: look up each packet alone */
	uint64_t route; /* group word of the route to the VTEP, or to the first segment */
	const struct fib_iface *iface; /* the interface over VXLAN */
	unsigned int pmtu; /* path MTU of outer packets; FIB_PMTU_NONE: unknown */
	uint8_t head[40];  /* outer header of a headend, without the flow label */
	/*
	 * The egress interface, if all flows go to one resolved neighbor; NULL: find it for
	 * each packet.
	 */
	const struct fib_iface *out;
	uint32_t adj;     /* the adjacency of this neighbor */
	uint16_t room[2]; /* the longest inner packet of IPv4, and of IPv6 */
};

#define FWD_LEGS 64 /* indexed by adjacency or headend; a power of two */

/* The egress of a fast-path packet whose outer header is not written yet. */
struct fwd_exit {
	const struct fib_iface *out;
	const struct fib_vxlan_hop *vxlan; /* NULL: a headend */
	uint64_t hop;                      /* of the neighbor, as in an adjacency */
	uint32_t hash;                     /* of the inner flow */
};

/* The FIB of a routing table, valid until the next quiescent state. */
struct fwd_hook_table {
	bool valid;
	uint16_t number; /* FIB_VRF_NONE: the table has no FIB */
	uint32_t table;
	uint64_t epoch; /* fwd.outer_epoch when it was found */
};

#define FWD_HOOK_TABLES 16 /* indexed by the number of the table; a power of two */

/*
 * Bits of b->hop[] if the verdict is VERDICT_DECAPSULATED. BY_SID: an end point of SRv6 has
 * handled the packet. GOES_ON: the end point removed no outer header. LABELS: MPLS labels
 * follow the outer headers.
 */
#define DECAP_BY_SID  (1ull << 32)
#define DECAP_GOES_ON (1ull << 33)
#define DECAP_LABELS  (1ull << 34)

struct fwd {
	const struct fwd_conf *conf;
	struct fib *fib;
	const struct fib_copy *tries; /* conf->tries */
	struct counters *count;
	_Atomic uint8_t *adj_used;      /* fib->adj_used */
	uint16_t tx_burst;              /* conf->tx_burst */
	const struct watch_set *watch;  /* filters of this round; NULL: no session */
	const struct watch_set *sample; /* sFlow in this round; NULL: off. See sample.h */
	uint32_t sample_skip;           /* packets up to and including the next sample */
	/* epoch of the watch_set by which sample_skip was drawn */
	uint32_t sample_epoch;
	uint64_t sample_random;        /* state of the generator; 0: not set yet */
	const struct ruleset *filter;  /* of this round; NULL: no ruleset */
	const struct fib_hooks *hooks; /* of this round; NULL: no program, see fwd/hook.h */
	bool explains;                 /* no real packet passes the stages: fwd_explain() */
	bool timed;                    /* this round is timed, see fwd/cycles.h */
	uint64_t mark_tsc;
	/* Decapsulated packets of the burst, see fwd/tunnel.h. */
	struct fwd_decap decap[BURST_MAX];
	unsigned int n_decap, depth; /* depth: nested decapsulations so far */
	bool decap_differs;          /* some of decap[] need bursts of their own */
	/* See fwd/decap_fast.h. */
	uint64_t interval; /* grows every few rounds, and with each round without packets */
	uint64_t learn_from; /* the next pattern may be made from this interval on */
	int decap_gain;      /* above 0: enough packets match patterns */
	/* A pattern has been made; packets are compared with pattern[]. */
	bool has_patterns, decap_tries;
	struct fwd_decap_pattern pattern[FWD_PATTERNS];
	uint32_t ip_id; /* lower 16 bits: ID of the next outer IPv4 header */
	/* grows with each quiescent state; results with another epoch are invalid */
	uint64_t outer_epoch;
	struct fwd_outer outer[FWD_OUTERS]; /* see fwd_outer_into() */
	struct fwd_leg leg[FWD_LEGS];       /* see outer_fast.c */
	struct fwd_exit exit[BURST_MAX];    /* by entry of the burst, see outer_fast.c */
	/* Indexed by a hash of the segment, see fwd/lookup.c. */
	struct fwd_segment segment[FWD_SEGMENTS];
	struct fib_tunnel_last found;
	const struct fib_iface *found_svi; /* see fib_vxlan_find() */
	struct fib_iface sid_in; /* ingress interface of packets by_sid, see fwd/sid.c */
	/*
	 * A bit for each packet of the burst for which a program chose a FIB, and that
	 * FIB's number.
	 */
	uint64_t hook_moved;
	uint16_t hook_vrf[BURST_MAX];
	struct fwd_hook_table hook_table[FWD_HOOK_TABLES];
	uint32_t n_gleaned; /* packets given to the punt thread to wait for a neighbor */
	uint64_t turn_since, turn_last; /* policer ticks, see packet_has_turn(); 0: never */
	bool wake_punt;                 /* a punt ring got a packet in this round */
	bool wake_bfd;                  /* thread bfd got a packet in this round */
	/* Samples of the received burst whose records are not complete. */
	unsigned int n_sampled;
	struct {
		const struct rte_mbuf *m;
		struct watch_record *rec;
	} sampled[BURST_MAX];
	struct tx_buffer tx[PORT_MAX];
	/* ports with frames of this round, or with kept frames */
	uint16_t tx_used[PORT_MAX];
	uint16_t n_tx_used;
	bool tx_own; /* frames put into the buffers now are of this router: fwd_tx_own() */
	struct rte_mbuf *rx[FWD_BURST_MAX]; /* receive buffer for bursts above BURST_MAX */
	/*
	 * n_discards: records of dropped packets so far. discard_end: the place in the ring
	 * where each of the last records ends. The reader has read a record when the ring's
	 * tail has passed this place.
	 */
	uint64_t n_discards, discard_end[SAMPLE_DISCARDS_MAX];
};

/* The result of the lookup of one family: entry at[k] of the burst leads to group[k]. */
struct fwd_found {
	unsigned int n;
	uint32_t group[BURST_MAX];
	uint8_t at[BURST_MAX];
};

/* Result of the walk over the labels of a packet: see struct label_walk. */
struct burst_label {
	uint8_t pops, ttl, carried;
	uint8_t tc : 3;
	bool bottom : 1;
};

struct burst {
	alignas(64) struct fwd *fwd;
	const struct fib_iface *in; /* ingress interface */
	uint16_t n;
	uint16_t ifidx;
	bool rx_cksum;
	bool vrf_counted; /* the packets are counted for their VRFs already */
	bool segments;    /* fwd_decap_fast() has written all destinations: next segments */
	bool noted;       /* rec[] is valid: a session watches, or fwd_explain() runs */
	bool inside;      /* inner packets; the outer headers are still in the frames */
	uint16_t shown;   /* octets that fwd_tunnel_show() cut off the front of a frame */
	/* Valid if `inside`; see struct fwd_decap. All packets have the same labels_at. */
	uint16_t labels_at;
	bool by_sid;
	bool goes_on; /* an end point has passed the packets on, and removed no outer header */
	uint16_t sid_vrf;
	fib_path sid_path;
	bool vrfs_differ; /* fast path: packets of several VRFs, see vrf[] */
	bool macs_known;  /* fast path: each frame is known to be for its interface's MAC */
	/*
	 * Bytes of the tags that fast-path packets still have behind their MACs, see
	 * burst_macs(). Other packets have lost these tags.
	 */
	uint8_t tag_bytes;
	uint64_t bytes;                /* of all frames as received; see fwd_look() */
	uint64_t any_flags, all_flags; /* OR and AND of the mbufs' ol_flags */
	uint64_t fast4, fast6; /* bit per entry: packets on the fast path, see fwd/fast.h */
	uint64_t padded;       /* fast-path packets whose frames still have padding */
	struct rte_mbuf *m[BURST_MAX];
	uint8_t *l2[BURST_MAX]; /* first octet of the frame as if it had no tags */
	uint8_t verdict[BURST_MAX];
	uint8_t cause[BURST_MAX];   /* punt with ICMP error: the drop reason */
	uint8_t family[BURST_MAX];  /* 4, 6, or 0: not IP */
	uint16_t l3_len[BURST_MAX]; /* bytes of the IP packet without padding */
	uint64_t labels; /* bit per entry: came with MPLS labels, see fwd/label.h */
	/*
	 * Bits per entry, see fwd/label_fast.c. `switched`: packets that came with a label
	 * and are on the fast path (not in `labels`). `push`: packets of fast4 and fast6
	 * that get labels.
	 */
	uint64_t switched, push;
	/* bit per entry: packets of fast4 and fast6 that get an outer header */
	uint64_t into;
	/* bit per entry: the filter let the packet pass; valid if fwd.filter is set */
	uint64_t judged;
	uint8_t push_bytes; /* the most octets of labels that a packet of `push` gets */
	bool push_alike;    /* all packets are in `push` and get push_bytes */
	uint32_t dst4[BURST_MAX]; /* destinations of packets in `fast4`, host order */
	union {
		/*
		 * Fast path only: the four octets around the hop count as they are sent,
		 * see burst_hop_at().
		 */
		uint32_t hop_octets[BURST_MAX];
		struct burst_label label[BURST_MAX]; /* of packets with labels */
	};
	fib_path path[BURST_MAX];
	uint64_t hop[BURST_MAX];             /* MAC << 16 | ifidx, from the adjacency */
	struct fwd_found found[2];           /* [0] IPv4, [1] IPv6 */
	struct watch_record *rec[BURST_MAX]; /* valid if `noted`; NULL: no record */
	uint16_t
		/* VRF of the lookup; valid if vrfs_differ, and for packets with labels */
		vrf[BURST_MAX];
	/* Fast path only, after rewrite: the port by which the packet leaves. */
	uint8_t out_port[BURST_MAX];
	bool tags_out; /* some packets leave by a VLAN or macvlan */
	/*
	 * Some packets leave by a VLAN or macvlan, and no two egress interfaces share a
	 * port. m->port does not name the VLAN or macvlan.
	 */
	bool vlan_a_port;
	bool inserts; /* the device inserts the tag of some packets */
	bool waits;   /* a packet of this burst is to wait for a neighbor */
	uint64_t now; /* policer ticks, read on first use; 0: not yet */
	/*
	 * The first 8 octets of the first frame, and the bits that differ in other frames.
	 * Bits may be set without a difference.
	 */
	uint64_t head, heads_differ;
	/*
	 * Sources of packets in `fast4`, host order. Written and read only if in->urpf4 is
	 * set, so they are in cache lines of their own.
	 */
	alignas(64) uint32_t src4[BURST_MAX];
};
static_assert(offsetof(struct burst, src4) <= 64 * (BURST_MAX + 1),
	      "a cache line of state per packet, and one for the burst");

/* Return the eight octets of a frame that are its first two tags, if it has two. */
static inline uint64_t
burst_tags(const uint8_t *frame)
{
	uint64_t tags;

	memcpy(&tags, frame + L2_LEN - 2, sizeof(tags));
	return tags;
}

static inline uint8_t *
burst_l2(const struct burst *b, unsigned int i)
{
	return b->l2[i];
}

/* Return the MAC addresses of a fast-path packet. */
static inline uint8_t *
burst_macs(const struct burst *b, unsigned int i)
{
	return b->l2[i] - b->tag_bytes;
}

/*
 * Return the offset at which the frame of a packet with labels begins: 0, unless the labels
 * came out of a tunnel.
 */
static inline unsigned int
burst_labels_at(const struct burst *b)
{
	return b->inside ? b->labels_at : 0;
}

/* Return true if the packets came out of a tunnel with MPLS labels. */
static inline bool
burst_labels_inside(const struct burst *b)
{
	return burst_labels_at(b) != 0;
}

/* Return the MAC addresses of a slow-path packet, which may have labels. */
static inline const uint8_t *
burst_frame(const struct burst *b, unsigned int i)
{
	return rte_pktmbuf_mtod(b->m[i], const uint8_t *);
}

static inline uint8_t *
burst_l3(const struct burst *b, unsigned int i)
{
	return b->l2[i] + L2_LEN;
}

/*
 * Return the offset of b->hop_octets in an IP header. IPv4: TTL, protocol, checksum. IPv6:
 * payload length, next header, hop limit.
 */
static inline unsigned int
burst_hop_at(uint8_t family)
{
	return 16u - 2u * family;
}
static_assert(16 - 2 * 4 == 8 && 16 - 2 * 6 == 4, "offsets of b->hop_octets");

/*
 * Return the number of bytes of the first segment from burst_l3() on, of a packet without
 * tags.
 */
static inline unsigned int
burst_l3_segment(const struct burst *b, unsigned int i)
{
	return rte_pktmbuf_data_len(b->m[i]) -
	       (unsigned int)(burst_l3(b, i) - burst_frame(b, i));
}

/* Return the number of bytes of the IP packet that are in the first segment. */
static inline unsigned int
burst_l3_room(const struct burst *b, unsigned int i)
{
	unsigned int room = burst_l3_segment(b, i);

	return b->l3_len[i] < room ? b->l3_len[i] : room;
}

/* Return a mask with a bit for each entry. */
static inline uint64_t
burst_all(const struct burst *b)
{
	return b->n == 64 ? UINT64_MAX : (1ull << b->n) - 1;
}

/*
 * Return the port's result for the IPv4 header checksum. Valid only if b->rx_cksum. A
 * device that parses tunnels reports on the inner header: see parse_ip.c and
 * burst_outer_is_right().
 */
static inline uint64_t
burst_cksum(const struct burst *b, unsigned int i)
{
	return b->m[i]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
}

/*
 * Count the burst as received by its VRF, whether or not it is dropped later. fwd_split()
 * has counted the packets that it separated.
 */
static inline void
burst_count_vrf(const struct burst *b)
{
	struct vrf_counters *c = &b->fwd->count->vrf[b->in->vrf];

	if (b->vrf_counted || b->in->vrf == 0)
		return;
	counter_add(&c->rx_packets, b->n);
	counter_add(&c->rx_bytes, b->bytes);
}

/* Return true if a session watches packets in this round. */
static inline bool
fwd_watched(const struct fwd *f)
{
	return !FWD_BLIND && f->watch != NULL;
}

/* Return true if a ruleset is in force in this round. */
static inline bool
fwd_filters(const struct fwd *f)
{
	return !FWD_BLIND && f->filter != NULL;
}

/* Return true if the sources of the IPv4 packets of an interface are checked (uRPF). */
static inline bool
iface_checks_sources(const struct fib_iface *in)
{
	return !FWD_BLIND && in->urpf4 != FIB_URPF_OFF;
}

/* Give a packet a DROP_ or PUNT_ reason. The dispatch stage counts it. */
static inline void
burst_leave(struct burst *b, unsigned int i, enum reason reason)
{
	b->verdict[i] = (uint8_t)reason;
}

/* Drop a packet for `cause` and ask the punt thread for the ICMP error. */
static inline void
burst_icmp(struct burst *b, unsigned int i, enum reason punt, enum reason cause)
{
	b->verdict[i] = (uint8_t)punt;
	b->cause[i] = (uint8_t)cause;
}

/* Return the time of the burst in policer ticks. */
static inline uint64_t
burst_now(struct burst *b)
{
	if (b->now == 0)
		b->now = policer_ticks();
	return b->now;
}

/* The stages, in order. */
bool fwd_admit(struct burst *b);  /* ingress interface; false: all packets are dropped */
void fwd_parse(struct burst *b);  /* Ethernet, RFC 1812 5.2.2, RFC 8200 */
void fwd_lookup(struct burst *b); /* destination to path */
void fwd_lookup_rules(struct burst *b); /* the part of lookup for b->in->rules4, rules6 */
void fwd_adjacency(struct burst *b);    /* path to MAC and egress interface */
void fwd_urpf(struct burst *b);         /* reverse path check, if b->in->urpf4 is set */
void fwd_rewrite(struct burst *b);      /* TTL, checksum, MACs */
/* The stages for fast-path packets alone. A stage may move packets to the slow path. */
void fwd_parse_fast(struct burst *b);
void fwd_lookup_fast(struct burst *b);
void fwd_adjacency_fast(struct burst *b);
void fwd_rewrite_fast(struct burst *b);
/*
 * Look up the fast-path packets, each in the FIB of b->vrf[]. Return a bit for each packet
 * whose VRF has no FIB.
 */
uint64_t fwd_lookup_each(struct burst *b);
uint64_t fwd_dispatch_fast(struct burst *b); /* returns a bit per slow-path packet */
void fwd_dispatch(struct burst *b);          /* transmit buffers, punt rings, drops */

/* Return true if entry `i` came with labels, and the interface accepts labels. */
static inline bool
burst_has_labels(const struct burst *b, unsigned int i)
{
	return (b->labels >> i & 1) != 0;
}

/* Return true if an end point has chosen the neighbor, or the headend, of these packets. */
static inline bool
burst_has_sid_path(const struct burst *b)
{
	return b->inside && b->by_sid && path_kind(b->sid_path) != PATH_NONE;
}

/*
 * Return true if an end point has chosen a table for these packets, and only this table is
 * looked up: no rules, and no table main if the table has no route.
 */
static inline bool
burst_has_sid_table(const struct burst *b)
{
	return b->inside && b->by_sid &&
	       (b->sid_path == SID_PATH_ALONE || b->sid_path == SID_PATH_NEXT);
}

/*
 * Return the punt class of a packet that leaves with `reason`. fwd_police() returns true if
 * the policer lets the packet pass, and counts the refusal if not.
 */
enum punt_class fwd_class(struct burst *b, unsigned int i, enum reason reason);
bool fwd_police(struct burst *b, unsigned int i, enum punt_class class);

/*
 * Return true if fwd_urpf() checks a packet, or has refused it. *back: an enum fib_back,
 * the result of the lookup of its source.
 */
bool fwd_urpf_ask(const struct burst *b, unsigned int i, uint8_t *back);

struct fib_rules_hit;

/*
 * Apply the policy rules to a packet whose headers are valid. Returns false if its family
 * has no rules for its interface.
 */
bool fwd_rules_ask(const struct burst *b, unsigned int i, struct fib_rules_hit *hit);

#endif
