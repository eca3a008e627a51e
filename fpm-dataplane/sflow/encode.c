/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * encode: sFlow version 5 in XDR. A length is filled in after its structure was written, so
 * that no structure is measured before.
 */
#include "sflow/encode.h"

#include <string.h>

#include "base/inet.h"

#define SAMPLE_FLOW              1u
#define SAMPLE_COUNTERS          2u
#define SAMPLE_FLOW_EXPANDED     3u
#define SAMPLE_COUNTERS_EXPANDED 4u
#define SAMPLE_DISCARD           5u

#define RECORD_HEADER   1u
#define RECORD_SWITCH   1001u
#define RECORD_ROUTER   1002u
#define RECORD_COUNTERS 1u

#define SOURCE_MAX  0xffffffu   /* a larger ifIndex needs the expanded form */
#define IFINDEX_MAX 0x3ffffffeu /* largest ifIndex in the fields input and output */

/* The formats of an output, in the upper two bits of the short form. */
#define FORMAT_IFINDEX 0u
#define FORMAT_DROPPED 1u

#define ETHERNET_TYPE     6u /* ifType ethernetCsmacd */
#define PROTOCOL_ETHERNET 1u

/* --- words ---------------------------------------------------------------------------- */

/* A place in a datagram. Once `full` is set, nothing more is written. */
struct xdr {
	struct datagram *d;
	unsigned int at;
	bool full;
};

static void
put_octets(struct xdr *x, const void *octets, unsigned int n)
{
	unsigned int padded = (n + 3) & ~3u;

	x->full = x->full || x->at + padded > SFLOW_DATAGRAM_MAX;
	if (x->full)
		return;
	memcpy(x->d->octets + x->at, octets, n);
	memset(x->d->octets + x->at + n, 0, padded - n);
	x->at += padded;
}

static void
xdr_put(struct xdr *x, uint32_t word)
{
	uint8_t octets[4];

	put_be32(octets, word);
	put_octets(x, octets, sizeof(octets));
}

static void
xdr_put64(struct xdr *x, uint64_t value)
{
	xdr_put(x, (uint32_t)(value >> 32));
	xdr_put(x, (uint32_t)value);
}

static void
put_address(struct xdr *x, const struct ipaddr *addr, uint8_t family)
{
	xdr_put(x, family == 4 ? 1 : 2);
	put_octets(x, addr->octet, family_octets(family));
}

/*
 * Begin a structure: its format, and room for its length. Returns the place of the length.
 */
static unsigned int
put_begin(struct xdr *x, uint32_t format)
{
	xdr_put(x, format);
	xdr_put(x, 0);
	return x->at - 4;
}

static void
put_end(struct xdr *x, unsigned int begin)
{
	if (!x->full)
		put_be32(x->d->octets + begin, x->at - begin - 4);
}

/* --- the datagram --------------------------------------------------------------------- */

void
datagram_begin(struct datagram *d, const struct ipaddr *agent, uint8_t family)
{
	struct xdr x = {.d = d};

	d->n = 0;
	xdr_put(&x, 5); /* version */
	put_address(&x, agent, family);
	xdr_put(&x, 0); /* sub-agent */
	xdr_put(&x, 0); /* sequence, uptime, number of samples: datagram_end() */
	xdr_put(&x, 0);
	xdr_put(&x, 0);
	d->len = x.at;
}

void
datagram_end(struct datagram *d, uint32_t sequence, uint32_t uptime_ms)
{
	unsigned int agent = get_be32(d->octets + 4) == 1 ? 4 : 16;
	uint8_t *at = d->octets + 8 + agent + 4;

	put_be32(at, sequence);
	put_be32(at + 4, uptime_ms);
	put_be32(at + 8, d->n);
}

/* Accept the sample that was written, if there was room. */
static bool
sample_end(struct xdr *x, unsigned int begin)
{
	put_end(x, begin);
	if (x->full)
		return false;
	x->d->len = x->at;
	x->d->n++;
	return true;
}

/* --- packets -------------------------------------------------------------------------- */

static void
put_header(struct xdr *x, const struct sflow_packet *p)
{
	unsigned int begin = put_begin(x, RECORD_HEADER);

	xdr_put(x, PROTOCOL_ETHERNET);
	xdr_put(x, p->frame_len);
	xdr_put(x, SFLOW_FCS_BYTES); /* stripped */
	xdr_put(x, p->header_len);
	put_octets(x, p->header, p->header_len);
	put_end(x, begin);
}

static void
put_switch(struct xdr *x, const struct sflow_packet *p)
{
	unsigned int begin = put_begin(x, RECORD_SWITCH);

	xdr_put(x, p->in.id);
	xdr_put(x, p->in.priority);
	xdr_put(x, p->out.id);
	xdr_put(x, p->out.priority);
	put_end(x, begin);
}

static void
put_router(struct xdr *x, const struct sflow_packet *p)
{
	unsigned int begin = put_begin(x, RECORD_ROUTER);

	put_address(x, &p->next_hop,
		    p->next_hop_family != 0 ? p->next_hop_family : p->router_family);
	xdr_put(x, p->src_mask);
	xdr_put(x, p->dst_mask);
	put_end(x, begin);
}

static void
put_records(struct xdr *x, const struct sflow_packet *p)
{
	xdr_put(x, 1u + p->tagged + (p->router_family != 0));
	put_header(x, p);
	if (p->tagged)
		put_switch(x, p);
	if (p->router_family != 0)
		put_router(x, p);
}

bool
datagram_add_flow(struct datagram *d, const struct sflow_packet *p)
{
	struct xdr x = {.d = d, .at = d->len};
	uint32_t format = p->dropped ? FORMAT_DROPPED : FORMAT_IFINDEX;
	uint32_t output = p->dropped ? p->reason : p->output;
	bool expanded = p->source > SOURCE_MAX || p->input > IFINDEX_MAX ||
			(output > IFINDEX_MAX && output != SFLOW_HOST);
	unsigned int begin = put_begin(&x, expanded ? SAMPLE_FLOW_EXPANDED : SAMPLE_FLOW);

	xdr_put(&x, p->sequence);
	if (expanded)
		xdr_put(&x, 0); /* class of the source: ifIndex */
	xdr_put(&x, p->source);
	xdr_put(&x, p->rate);
	xdr_put(&x, p->pool);
	xdr_put(&x, p->drops);
	if (expanded) {
		xdr_put(&x, FORMAT_IFINDEX);
		xdr_put(&x, p->input);
		xdr_put(&x, format);
		xdr_put(&x, output);
	} else {
		xdr_put(&x, p->input);
		xdr_put(&x, format << 30 | output);
	}
	put_records(&x, p);
	return sample_end(&x, begin);
}

bool
datagram_add_discard(struct datagram *d, const struct sflow_packet *p)
{
	struct xdr x = {.d = d, .at = d->len};
	unsigned int begin = put_begin(&x, SAMPLE_DISCARD);

	xdr_put(&x, p->sequence);
	xdr_put(&x, 0); /* class of the source: ifIndex */
	xdr_put(&x, p->source);
	xdr_put(&x, p->drops);
	xdr_put(&x, p->input);
	xdr_put(&x, p->output);
	xdr_put(&x, p->reason);
	put_records(&x, p);
	return sample_end(&x, begin);
}

/* --- counters ------------------------------------------------------------------------- */

static void
put_counters(struct xdr *x, const struct sflow_counters *c)
{
	unsigned int begin = put_begin(x, RECORD_COUNTERS);

	xdr_put(x, c->ifindex);
	xdr_put(x, ETHERNET_TYPE);
	xdr_put64(x, c->speed);
	xdr_put(x, c->direction);
	xdr_put(x, (uint32_t)c->admin_up | (uint32_t)c->oper_up << 1);
	xdr_put64(x, c->in_octets);
	xdr_put(x, c->in_packets);
	xdr_put(x, UINT32_MAX); /* multicast and broadcast frames are not counted apart */
	xdr_put(x, UINT32_MAX);
	xdr_put(x, c->in_discards);
	xdr_put(x, c->in_errors);
	xdr_put(x, UINT32_MAX); /* unknown protocols */
	xdr_put64(x, c->out_octets);
	xdr_put(x, c->out_packets);
	xdr_put(x, UINT32_MAX);
	xdr_put(x, UINT32_MAX);
	xdr_put(x, c->out_discards);
	xdr_put(x, c->out_errors);
	xdr_put(x, c->promiscuous ? 1 : 2);
	put_end(x, begin);
}

bool
datagram_add_counters(struct datagram *d, const struct sflow_counters *c)
{
	struct xdr x = {.d = d, .at = d->len};
	bool expanded = c->ifindex > SOURCE_MAX;
	unsigned int begin =
		put_begin(&x, expanded ? SAMPLE_COUNTERS_EXPANDED : SAMPLE_COUNTERS);

	xdr_put(&x, c->sequence);
	if (expanded)
		xdr_put(&x, 0);
	xdr_put(&x, c->ifindex);
	xdr_put(&x, 1); /* records */
	put_counters(&x, c);
	return sample_end(&x, begin);
}
