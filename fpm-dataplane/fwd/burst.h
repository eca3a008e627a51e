/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * burst: packets of one receive call on their walk, and the state of one forwarder.
 *
 * Each stage takes the whole burst and leaves a verdict an entry; what is not VERDICT_GO
 * any more has dropped out of the fast path.
 */
#ifndef FWD_BURST_H
#define FWD_BURST_H

#include <rte_mbuf.h>
#include <stdalign.h>
#include <stdint.h>

#include "fib/fib.h"
#include "fwd/fwd.h"
#include "port/packet.h"
#include "port/watch.h"

#define BURST_MAX     64  /* packets that walk together */
#define VERDICT_GO    255 /* still on the fast path; else an enum reason */
#define VERDICT_LATER 254 /* has another walk, by the rules; see fwd_split() */
static_assert(N_REASON < VERDICT_LATER, "a verdict is one octet");

static_assert(BURST_MAX <= 64, "a bit an entry");

#define L2_LEN 14

#ifndef FWD_BLIND
#define FWD_BLIND \
	0 /* 1: nobody can look, for bench-watch to measure what the question costs */
#endif

/* Packets one transmit call can be given; how many it is given is fwd_conf.tx_burst. */
#define TX_BURST_MAX FWD_BURST_MAX

struct tx_buffer {
	uint16_t n;
	uint16_t port_id;
	bool listed;      /* in fwd.tx_used, until the round's flush */
	bool has_vlans;   /* some are frames of VLANs, and say whose: tx_ifidx() */
	uint16_t vlan;    /* not 0: all are its, and say nothing */
	bool has_inserts; /* into some of those the device puts the tag */
	struct rte_mbuf *m[TX_BURST_MAX + 8]; /* with room for a vector stored too far */
};

/* By which interface a frame in the buffer of `port` leaves: a VLAN says so in m->port. */
static inline uint16_t
tx_ifidx(const struct rte_mbuf *m, uint16_t port)
{
	uint16_t said = m->port;

	return (uint16_t)(said - PORT_MAX) < IFIDX_MAX - PORT_MAX ? said : port;
}
static_assert(RTE_MAX_ETHPORTS <= PORT_MAX, "what it says of others is smaller, or none");

struct fwd {
	const struct fwd_conf *conf;
	struct fib *fib;
	const struct fib_copy *tries; /* of conf */
	struct counters *count;
	_Atomic uint8_t *adj_used;     /* fib->adj_used */
	uint16_t tx_burst;             /* of conf */
	const struct watch_set *watch; /* who looks, in this round; NULL: nobody */
	bool timed;                    /* this round is, see fwd/cycles.h */
	uint64_t mark_tsc;
	uint32_t n_gleaned; /* packets given to the punt thread to wait for a neighbor */
	uint64_t turn_since, turn_last; /* ticks, see packet_has_turn(); 0: never */
	bool wake_punt;                 /* something went into a punt ring this round */
	struct tx_buffer tx[PORT_MAX];
	uint16_t tx_used[PORT_MAX]; /* ports sent to in this round */
	uint16_t n_tx_used;
	struct rte_mbuf *rx[FWD_BURST_MAX]; /* received, when more than walk together */
};

/* What the lookup of one family found: entry at[k] of the burst leads to group[k]. */
struct fwd_found {
	unsigned int n;
	uint32_t group[BURST_MAX];
	uint8_t at[BURST_MAX];
};

struct burst {
	alignas(64) struct fwd *fwd;
	const struct fib_iface *in; /* interface it came in by */
	uint16_t n;
	uint16_t ifidx;
	bool rx_cksum;
	bool vrf_counted; /* what came in by members, packet by packet */
	bool vrfs_differ; /* of plain packets walked without the others: vrf[] has them */
	/* Of tags that plain packets still have behind their MACs, see burst_macs(); others have lost them. */
	uint8_t tag_bytes;
	uint64_t bytes;                /* of all frames, as they came; see fwd_look() */
	uint64_t any_flags, all_flags; /* of the buffers' ol_flags, or and and */
	uint64_t fast4, fast6; /* a bit an entry: of the dominant class, see fwd/fast.h */
	uint64_t padded;       /* of those: what Ethernet added is still there */
	struct rte_mbuf *m[BURST_MAX];
	uint8_t *l2[BURST_MAX]; /* first octet, as if tags had been taken off */
	uint8_t verdict[BURST_MAX];
	uint8_t cause[BURST_MAX]; /* of a punt that wants an ICMP error: the drop counted */
	uint8_t family[BURST_MAX];  /* 4, 6, 0 */
	uint16_t l3_len[BURST_MAX]; /* octets of the IP packet, padding excluded */
	uint32_t dst4[BURST_MAX];   /* of fast4: destination, host order */
	/* Of plain packets: the octets around the hop count, as sent on, see burst_hop_at(). */
	uint32_t hop_octets[BURST_MAX];
	fib_path path[BURST_MAX];
	uint64_t hop[BURST_MAX];             /* MAC << 16 | ifidx of the adjacency */
	struct fwd_found found[2];           /* [0] IPv4, [1] IPv6 */
	struct watch_record *rec[BURST_MAX]; /* only while somebody looks; may be NULL */
	uint16_t vrf[BURST_MAX];             /* see vrfs_differ */
	/* Of plain packets, once rewritten: the port that they leave by. */
	uint8_t out_port[BURST_MAX];
	bool tags_out;    /* some leave by a VLAN */
	bool vlan_a_port; /* all do, those of a port by the same, and do not say so */
	bool inserts;     /* some that leave by a VLAN get their tag from the device */
	bool waits;       /* one of them is to wait for a neighbor */
	uint64_t now;     /* ticks, read when the first packet wants to leave; 0 */
	/* The first frame's first octets; bits that are others, or may be, in one of the rest. */
	uint64_t head, heads_differ;
};
static_assert(sizeof(struct burst) <= 64 * (BURST_MAX + 1),
	      "a cache line of state a packet, and one for all");

/* Octets of a frame from the place of its first tag on, as many as two tags have. */
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

/* The MAC addresses of a plain packet. */
static inline uint8_t *
burst_macs(const struct burst *b, unsigned int i)
{
	return b->l2[i] - b->tag_bytes;
}

static inline uint8_t *
burst_l3(const struct burst *b, unsigned int i)
{
	return b->l2[i] + L2_LEN;
}

/* Where in an IP header b->hop_octets are: IPv4 TTL, protocol, checksum; IPv6 payload length,
 * next header, hop limit. */
static inline unsigned int
burst_hop_at(uint8_t family)
{
	return 16u - 2u * family;
}
static_assert(16 - 2 * 4 == 8 && 16 - 2 * 6 == 4, "where they are");

/* Octets of the IP packet that can be looked at: what the first segment holds. */
static inline unsigned int
burst_l3_room(const struct burst *b, unsigned int i)
{
	unsigned int room = rte_pktmbuf_data_len(b->m[i]) - L2_LEN;

	return b->l3_len[i] < room ? b->l3_len[i] : room;
}

/* All entries of a burst, a bit each. */
static inline uint64_t
burst_all(const struct burst *b)
{
	return b->n == 64 ? UINT64_MAX : (1ull << b->n) - 1;
}

/* What the port says of an IPv4 header checksum, when it is one that looks. */
static inline uint64_t
burst_cksum(const struct burst *b, unsigned int i)
{
	return b->m[i]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
}

/* What has come in by a member of a VRF, whatever becomes of it; those told apart have been counted. */
static inline void
burst_count_vrf(const struct burst *b)
{
	struct vrf_counters *c = &b->fwd->count->vrf[b->in->vrf];

	if (b->vrf_counted || b->in->vrf == 0)
		return;
	counter_add(&c->rx_packets, b->n);
	counter_add(&c->rx_bytes, b->bytes);
}

/* Does somebody look at packets in this round? */
static inline bool
fwd_watched(const struct fwd *f)
{
	return !FWD_BLIND && f->watch != NULL;
}

/* Drop by a DROP_ reason, or punt by a PUNT_ reason; counted when the burst ends. */
static inline void
burst_leave(struct burst *b, unsigned int i, enum reason reason)
{
	b->verdict[i] = (uint8_t)reason;
}

/* Drop for `cause`, and ask the punt thread for the ICMP error that belongs to it. */
static inline void
burst_icmp(struct burst *b, unsigned int i, enum reason punt, enum reason cause)
{
	b->verdict[i] = (uint8_t)punt;
	b->cause[i] = (uint8_t)cause;
}

/* The moment of the burst, in ticks. */
static inline uint64_t
burst_now(struct burst *b)
{
	if (b->now == 0)
		b->now = policer_ticks();
	return b->now;
}

/* The stages, in order. */
bool fwd_admit(struct burst *b);     /* the interface; false: all have left */
void fwd_parse(struct burst *b);     /* Ethernet, RFC 1812 5.2.2, RFC 8200 */
void fwd_lookup(struct burst *b);    /* destination -> path */
void fwd_adjacency(struct burst *b); /* path -> MAC and interface, or out */
void fwd_rewrite(struct burst *b);   /* TTL, checksum, MACs */
/* The same for plain packets alone; those that are plain no more are left to the rules. */
void fwd_parse_fast(struct burst *b);
void fwd_lookup_fast(struct burst *b);
void fwd_adjacency_fast(struct burst *b);
void fwd_rewrite_fast(struct burst *b);
uint64_t fwd_dispatch_fast(struct burst *b); /* returns the others, a bit each */
void fwd_dispatch(struct burst *b);          /* tx buffers, punt rings, drops */

/*
 * Which class does a packet that leaves by `reason` belong to, and may it pass? Counts what
 * may not.
 */
enum punt_class fwd_class(struct burst *b, unsigned int i, enum reason reason);
bool fwd_police(struct burst *b, unsigned int i, enum punt_class class);

/* What kind of packet to us is this? PUNT_local_control or PUNT_local. */
enum reason fwd_local_class(const uint8_t *l3, unsigned int len, uint8_t family);
/*
 * Is this IPv4 packet, for whatever address, a DHCP server's answer to a client of ours? To
 * the address that it offers and nobody has yet: RFC 2131, 4.1. Only a port without an address
 * has such a client; others' clients, whose answers may pass through us, have other MACs.
 */
bool fwd_dhcp_answer(const struct burst *b, unsigned int i);
/* And of one to a link-local group or broadcast? PUNT_group_control or PUNT_group. */
static inline enum reason
fwd_group_class(const uint8_t *l3, unsigned int len, uint8_t family)
{
	return fwd_local_class(l3, len, family) == PUNT_local_control ? PUNT_group_control
								      : PUNT_group;
}

#endif
