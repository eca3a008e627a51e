/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encode: write sFlow version 5 structures (sflow.org/sflow_version_5.txt and
 * sflow_drops.txt) in XDR: big-endian words, octets padded to four. No side effects beyond
 * the datagram, no thread of its own.
 */
#ifndef SFLOW_ENCODE_H
#define SFLOW_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"

#define SFLOW_DATAGRAM_MAX 1400
#define SFLOW_FCS_BYTES    4u
#define SFLOW_HOST         0x3fffffffu /* output: this router itself */

struct datagram {
	unsigned int len; /* octets, header included */
	unsigned int n;   /* samples */
	uint8_t octets[SFLOW_DATAGRAM_MAX];
};

/* A VLAN as the record 0:1001 has it. */
struct sflow_vlan {
	uint32_t id, priority;
};

/* A packet that was sampled or dropped. */
struct sflow_packet {
	uint32_t sequence;      /* number among the samples of its kind and source */
	uint32_t source, rate;  /* ifIndex of the port; one in `rate` (samples only) */
	uint32_t pool, drops;   /* pool: samples only */
	uint32_t input, output; /* ifIndex; output: also SFLOW_HOST */
	bool dropped;          /* a sample of a dropped packet: `reason`, and no `output` */
	uint32_t reason;       /* of a dropped packet */
	const uint8_t *header; /* first octets of the frame ... */
	unsigned int header_len; /* ... this many */
	uint32_t frame_len;      /* octets on the wire, with the FCS */
	bool tagged;             /* the frame arrived or left with a tag */
	struct sflow_vlan in, out;
	uint8_t router_family;       /* 4 or 6: family of the router record; 0: no record */
	struct ipaddr next_hop;      /* all zero: the destination is on the link */
	uint8_t next_hop_family;     /* 4 or 6; 0: as router_family */
	uint32_t src_mask, dst_mask; /* lengths of the prefixes */
};

/* The counters of an interface: the record 0:1. */
struct sflow_counters {
	uint32_t sequence;
	uint32_t ifindex;
	uint64_t speed;     /* bit a second; 0: unknown */
	uint32_t direction; /* 0 unknown, 1 full duplex, 2 half duplex */
	bool admin_up, oper_up, promiscuous;
	uint64_t in_octets, out_octets;
	uint32_t in_packets, in_discards, in_errors, out_packets, out_discards, out_errors;
};

/*
 * Begin a datagram. `agent` has family 4 or 6. The sequence number, the time since the
 * start in ms and the number of samples are completed by datagram_end().
 */
void datagram_begin(struct datagram *d, const struct ipaddr *agent, uint8_t family);
void datagram_end(struct datagram *d, uint32_t sequence, uint32_t uptime_ms);

/*
 * Append a sample. Returns false, and changes nothing, if there is no room for it. An empty
 * datagram has room for each sample with a header of SFLOW_HEADER_MAX octets.
 *
 * flow      sample 0:1, or 0:3 if an interface number is too large for 0:1
 * discard   sample 0:5
 * counters  sample 0:2, or 0:4
 */
bool datagram_add_flow(struct datagram *d, const struct sflow_packet *p);
bool datagram_add_discard(struct datagram *d, const struct sflow_packet *p);
bool datagram_add_counters(struct datagram *d, const struct sflow_counters *c);

#endif
