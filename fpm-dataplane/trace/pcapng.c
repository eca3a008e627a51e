/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcapng: write the format of the IETF draft "PCAP Next Generation (pcapng) Capture File
 * Format", in the machine's byte order, as the draft demands. Each port is an interface of
 * the file, time stamps are in nanoseconds, packets have direction flags, and a comment has
 * the reason of a drop or punt. rte_pcapng of DPDK 22.11 has no comments, and rte_pdump
 * does not serve the process that owns the ports.                               [trace]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/internal.h"

#define BLOCK_SECTION     0x0a0d0d0au
#define BLOCK_INTERFACE   1u
#define BLOCK_PACKET      6u
#define BYTE_ORDER_MAGIC  0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u

#define OPT_END        0u
#define OPT_COMMENT    1u
#define SHB_USERAPPL   4u
#define IF_NAME        2u
#define IF_DESCRIPTION 3u
#define IF_MAC         6u
#define IF_TSRESOL     9u
#define EPB_FLAGS      2u
#define EPB_INBOUND    1u
#define EPB_OUTBOUND   2u

void
octets_put(struct octets *out, const void *data, size_t len)
{
	if (out->len + len > out->size) {
		while (out->len + len > out->size)
			out->size = out->size == 0 ? 65536 : out->size * 2;
		out->data = realloc(out->data, out->size);
		if (out->data == NULL)
			abort();
	}
	memcpy(out->data + out->len, data, len);
	out->len += len;
}

static void
octets_put32(struct octets *out, uint32_t v)
{
	octets_put(out, &v, sizeof(v));
}

static void
octets_put16(struct octets *out, uint16_t v)
{
	octets_put(out, &v, sizeof(v));
}

/* Append octets, and zeros up to a multiple of four. */
static void
octets_put_padded(struct octets *out, const void *data, size_t len)
{
	static const uint8_t zero[4];

	octets_put(out, data, len);
	octets_put(out, zero, (4 - len % 4) % 4);
}

static void
option_put(struct octets *out, uint16_t code, const void *data, size_t len)
{
	octets_put16(out, code);
	octets_put16(out, (uint16_t)len);
	octets_put_padded(out, data, len);
}

/* Begin a block whose length is not known yet. Returns its offset. */
static size_t
block_begin(struct octets *out, uint32_t type)
{
	size_t at = out->len;

	octets_put32(out, type);
	octets_put32(out, 0);
	return at;
}

static void
block_finish(struct octets *out, size_t at)
{
	uint32_t len;

	octets_put16(out, OPT_END);
	octets_put16(out, 0);
	len = (uint32_t)(out->len - at + 4);
	octets_put32(out, len);
	memcpy(out->data + at + 4, &len, sizeof(len));
}

static void
interface_block(struct octets *out, struct pcapng_ports *known, const struct port *port)
{
	static const uint8_t nanoseconds = 9;
	size_t at = block_begin(out, BLOCK_INTERFACE);

	octets_put16(out, LINKTYPE_ETHERNET);
	octets_put16(out, 0);
	octets_put32(out, 0); /* no snap length */
	option_put(out, IF_NAME, port->name, strlen(port->name));
	option_put(out, IF_DESCRIPTION, port->device, strlen(port->device));
	option_put(out, IF_MAC, port->mac, sizeof(port->mac));
	option_put(out, IF_TSRESOL, &nanoseconds, 1);
	block_finish(out, at);
	known->block[port->ifidx] = (uint16_t)++known->n;
}

void
pcapng_header(struct octets *out, struct pcapng_ports *known, const struct trace_conf *conf)
{
	static const uint64_t unknown = UINT64_MAX;
	char text[64];
	size_t at = block_begin(out, BLOCK_SECTION);

	octets_put32(out, BYTE_ORDER_MAGIC);
	octets_put16(out, 1); /* version 1.0 */
	octets_put16(out, 0);
	octets_put(out, &unknown, sizeof(unknown));
	snprintf(text, sizeof(text), "fpm-dataplane %s", conf->version);
	option_put(out, SHB_USERAPPL, text, strlen(text));
	block_finish(out, at);
	*known = (struct pcapng_ports){0};
	for (unsigned int i = 0; i < conf->n_port; i++)
		if (port_is_there(&conf->port[i]))
			interface_block(out, known, &conf->port[i]);
}

/*
 * Return the number of a port's block. Writes the block now if the port was added after the
 * header was written.
 */
static uint32_t
port_block(struct octets *out, struct pcapng_ports *known, const struct trace_conf *conf,
	   uint16_t ifidx)
{
	/* Frames of a VLAN belong to its port. */
	if (ifidx >= PORT_MAX)
		ifidx = fib_iface(conf->fib, ifidx)->port;
	if (ifidx >= 1 && ifidx <= conf->n_port && known->block[ifidx] == 0 &&
	    port_is_there(&conf->port[ifidx - 1]))
		interface_block(out, known, &conf->port[ifidx - 1]);
	/* A packet that we originate has no ingress port; it gets the first block. */
	return known->block[ifidx] != 0 ? known->block[ifidx] - 1u : 0;
}

/* Write the reason of a drop or punt into `text`; "" for a forwarded packet. */
static void
record_comment(const struct watch_record *rec, char text[160])
{
	enum reason reason = watch_reason(rec);

	text[0] = '\0';
	if (rec->verdict == WATCH_DECAPSULATED)
		snprintf(text, 160, "decapsulated: the inner packet is handled next");
	else if (rec->verdict != WATCH_GO)
		snprintf(text, 160, "%s %s: %s", reason < N_DROP ? "drop" : "punt",
			 reason_info[reason].name, reason_info[reason].text);
}

void
pcapng_packet(struct octets *out, struct pcapng_ports *known, const struct trace_conf *conf,
	      const struct watch_record *rec, uint16_t snap)
{
	/* An inner packet belongs to the port that received its outer packet. */
	uint16_t ifidx = rec->point == WATCH_SENT ? rec->out_ifidx
			 : rec->outer_ifidx != 0  ? rec->outer_ifidx
						  : rec->in_ifidx;
	uint32_t len = rec->snap_bytes < snap ? rec->snap_bytes : snap;
	uint32_t flags = rec->point == WATCH_WALK   ? EPB_INBOUND
			 : rec->point == WATCH_SENT ? EPB_OUTBOUND
						    : 0;
	uint32_t block = port_block(out, known, conf, ifidx);
	char text[160];
	size_t at = block_begin(out, BLOCK_PACKET);

	octets_put32(out, block);
	octets_put32(out, (uint32_t)(rec->time_ns >> 32));
	octets_put32(out, (uint32_t)rec->time_ns);
	octets_put32(out, len);
	octets_put32(out, rec->frame_bytes);
	octets_put_padded(out, rec->frame, len);
	option_put(out, EPB_FLAGS, &flags, sizeof(flags));
	record_comment(rec, text);
	if (text[0] != '\0')
		option_put(out, OPT_COMMENT, text, strlen(text));
	block_finish(out, at);
}
