/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports, as functions in DPDK's table of port functions (rte_eth_fp_ops), without a
 * driver. Port 0 receives as net_bench does: it writes frames into fresh mbufs, with the
 * same stores for any number of tags. The other ports free the packets that are sent.
 * Between two bursts port 0 ends turns, and stores the CPU time that the thread used for
 * each packet.                                                                     [fwd]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_malloc.h>

#include "../forward/stream.h"
#include "base/inet.h"
#include "fib/label.h"
#include "port/packet_meta.h"
#include "tags.h"

#define N_BUFFERS 32767
#define N_ORDER   4096  /* interfaces in a random order, used again and again */
#define N_FEW     65536 /* frames to the ten routes */
#define WARM      4     /* the first 1/WARM of a turn is not counted */

struct ports {
	struct world *w;
	struct fwd_conf *conf;
	struct rte_mempool *pool;
	struct stream stream; /* frames of the file, and a header without tags */
	struct frame4 *few;
	uint8_t head[3][64] __rte_aligned(64); /* headers by number of tags */
	uint8_t head_label[64] __rte_aligned(64);
	uint8_t head_tunnel[N_TUNNELLED][192] __rte_aligned(64);
	uint8_t from[N_ADJ][FROM_BYTES]; /* octets of the outer header of GRE, by far end */
	uint32_t label[1 + N_OUT];       /* by egress port; 0: it leads to the VRF */
	uint32_t less_source;            /* added to a sum: removes the header's source */
	uint32_t tag[2 * MANY];          /* outermost tag as it is in a frame */
	uint16_t order[N_ORDER];
	uint32_t at[2], at_order; /* place in the frames of all routes, of the ten routes */

	const struct row *row;
	double *cycles;
	atomic_bool *stop;
	unsigned int rounds, at_turn, at_row, round;
	uint64_t turn_tsc, end_tsc, begin_ns, packets;
	bool warm, check;
	uint64_t wrong;
};

static struct ports ports;
static void *no_callback[1], *receiver = &ports, *sender[1 + N_OUT];

static uint64_t
cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Make the outermost tags of the row: two for each interface, with and without a priority,
 * because the priority does not belong to the interface.
 */
static void
tags_of(struct ports *p, const struct row *row)
{
	for (unsigned int k = 0; k < 2 * MANY; k++) {
		unsigned int id = row->tags_in == 2 ? S_TAG : C_FIRST + k / 2 % row->n;
		uint8_t *tag = (uint8_t *)&p->tag[k];

		put_be16(tag, row->tags_in == 2 ? VLAN_S_TYPE : VLAN_C_TYPE);
		put_be16(tag + 2, (uint16_t)(id | (k % 2 == 0 ? 0 : URGENT)));
	}
	for (unsigned int i = 0; i < N_ORDER; i++)
		p->order[i] = (uint16_t)(mix64(i) % row->n);
}

/*
 * Return true if the turn is of the row that `row` is compared with: the first and the
 * last.
 */
static bool
of_base(const struct row *row, unsigned int turn)
{
	return row->base != NULL && (turn == 0 || turn == N_TURN - 1);
}

static const struct row *
row_named(const char *name)
{
	const struct row *row = rows;

	while (strcmp(row->name, name) != 0)
		row++;
	return row;
}

/* Return the number of the first row that is measured. */
static unsigned int
row_first(void)
{
	unsigned int r = 0;

	while (r < n_rows - 1 && !row_is_asked(&rows[r]))
		r++;
	return r;
}

static void
turn_begin(struct ports *p)
{
	p->row = of_base(&rows[p->at_row], p->at_turn) ? row_named(rows[p->at_row].base)
						       : &rows[p->at_row];
	world_turn(p->w, p->row);
	sessions_turn(p->conf, p->row);
	tags_of(p, p->row);
	p->warm = false;
	p->end_tsc = rte_rdtsc() + p->turn_tsc / WARM;
}

static void
turn_next(struct ports *p)
{
	uint64_t now_ns = cpu_ns();

	if (!p->warm) {
		p->warm = true;
		p->packets = 0;
		p->begin_ns = now_ns;
		p->end_tsc = rte_rdtsc() + p->turn_tsc;
		return;
	}
	if (!p->check)
		p->cycles[(p->round * n_rows + p->at_row) * N_TURN + p->at_turn] =
			(double)(now_ns - p->begin_ns) * 1e-9 * (double)rte_get_tsc_hz() /
			(double)p->packets;
	if (++p->at_turn == N_TURN) {
		p->at_turn = 0;
		do
			p->at_row++;
		while (p->at_row < n_rows && !row_is_asked(&rows[p->at_row]));
	}
	if (p->at_row == n_rows) {
		p->at_row = row_first();
		p->round += !p->check;
		p->check = false;
		*p->stop = p->round == p->rounds;
	}
	turn_begin(p);
}

/*
 * Write one frame. which: the interface by which it comes in (two numbers for each:
 * tags_of()).
 */
static inline void
frame_write(const struct ports *p, const struct frame4 *f, unsigned int tags,
	    unsigned int which, struct rte_mbuf *m)
{
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *), *l2 = d + tags * VLAN_BYTES;
	uint32_t ports_udp = rte_cpu_to_be_16(STREAM_SPORT + f->port) |
			     (uint32_t)rte_cpu_to_be_16((uint16_t)which) << 16;

	stream_fill(m, p->head[tags], (uint16_t)(p->stream.len4 + tags * VLAN_BYTES),
		    RTE_PTYPE_L3_IPV4);
	/*
	 * A frame without tags has the tag at its end, where it is padding that no code
	 * reads.
	 */
	memcpy(d + (tags == 0 ? 56 : 12), &p->tag[which], VLAN_BYTES);
	memcpy(l2 + 24, &f->checksum, 2);
	memcpy(l2 + 30, f->dst, 4);
	memcpy(l2 + 34, &ports_udp, 4);
	rte_prefetch0(f + STREAM_AHEAD);
}

/* Set the source of a frame to the destination of another frame, with a right checksum. */
static inline void
source_write(const struct ports *p, const struct frame4 *from, struct rte_mbuf *m)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *) + STREAM_L2;
	uint32_t sum = (uint16_t)~get_be16(ip + 10) + p->less_source + get_be16(from->dst) +
		       get_be16(from->dst + 2);

	put_be16(ip + 10, (uint16_t)~inet_fold(sum));
	memcpy(ip + 12, from->dst, sizeof(from->dst));
	rte_prefetch0(from + STREAM_AHEAD);
}

/* Write one frame with a label. */
static inline void
label_frame_write(const struct ports *p, const struct frame4 *f, struct rte_mbuf *m)
{
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *), *l2 = d + LABEL_BYTES;
	uint32_t ports_udp = rte_cpu_to_be_16(STREAM_SPORT + f->port);

	stream_fill(m, p->head_label, (uint16_t)(p->stream.len4 + LABEL_BYTES), 0);
	memcpy(d + 14, &p->label[p->row->label_vrf ? 0 : f->port], LABEL_BYTES);
	memcpy(l2 + 24, &f->checksum, 2);
	memcpy(l2 + 30, f->dst, 4);
	memcpy(l2 + 34, &ports_udp, 4);
	rte_prefetch0(f + STREAM_AHEAD);
}

/* Write one frame with a packet in a tunnel. `k`: the tunnel or VNI of a mixed row. */
static inline void
tunnel_frame_write(const struct ports *p, const struct frame4 *f, unsigned int k,
		   struct rte_mbuf *m)
{
	unsigned int more = tunnel_bytes(p->row->out_of);
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *), *l2 = d + more;
	uint32_t ports_udp = rte_cpu_to_be_16(STREAM_SPORT + f->port);

	stream_fill(m, p->head_tunnel[p->row->out_of], (uint16_t)(p->stream.len4 + more),
		    0);
	if (more > 24) /* the inner packet begins behind the first 64 octets */
		rte_mov64(d + 64, p->head_tunnel[p->row->out_of] + 64);
	if (p->row->out_of == SRV6_TWO) {
		rte_mov64(d + 128, p->head_tunnel[SRV6_TWO] + 128);
		put_be32(d + STREAM_L2 + SECOND_AT, THERE + f->port - 1u);
	}
	if (p->row->mixed && p->row->out_of == GRE)
		memcpy(d + STREAM_L2 + FROM_AT, p->from[k], FROM_BYTES);
	else if (p->row->mixed)
		put_be32(d + STREAM_L2 + VNI_AT, (VNI_FIRST + k) << 8);
	memcpy(l2 + 24, &f->checksum, 2);
	memcpy(l2 + 30, f->dst, 4);
	memcpy(l2 + 34, &ports_udp, 4);
	rte_prefetch0(f + STREAM_AHEAD);
}

static void
frames_write(struct ports *p, struct rte_mbuf **m, uint16_t n)
{
	const struct row *row = p->row;
	const struct frame4 *f = row->ten ? p->few : p->stream.f4;
	uint32_t end = row->ten ? N_FEW : p->stream.n4;
	unsigned int step = row->mixed, at = p->at_order;
	uint32_t *next = &p->at[row->ten];

	world_in(p->w, row, p->order[at % N_ORDER]);
	for (uint16_t i = 0; i < n; i++) {
		unsigned int which = 2u * p->order[at % N_ORDER] + (i & 1);

		if (row->label || row->label_vrf)
			label_frame_write(p, &f[*next], m[i]);
		else if (row->out_of != BARE)
			tunnel_frame_write(p, &f[*next], which / 2, m[i]);
		else
			frame_write(p, &f[*next], row->tags_in, which, m[i]);
		if (row->to_macvlans)
			world_mac(which / 2, rte_pktmbuf_mtod(m[i], uint8_t *));
		if (row->sources)
			source_write(p, &f[(*next + end / 2) % end], m[i]);
		at += step;
		if (++*next == end)
			*next = 0;
	}
	p->at_order = at + 1;
}

static uint16_t
transmit_free(void *queue, struct rte_mbuf **m, uint16_t n)
{
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static uint16_t
receive(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct ports *p = queue;

	if (rte_rdtsc() >= p->end_tsc)
		turn_next(p);
	if (*p->stop || rte_pktmbuf_alloc_bulk(p->pool, m, n) != 0)
		return 0;
	frames_write(p, m, n);
	p->packets += n - sessions_receive(m, n);
	while (p->row->no_walk && rte_rdtsc() < p->end_tsc) {
		transmit_free(NULL, m, n);
		if (rte_pktmbuf_alloc_bulk(p->pool, m, n) != 0)
			return 0;
		frames_write(p, m, n);
		p->packets += n;
	}
	return n;
}

/* Return the encapsulation of the packets that leave. */
static enum tunnelled
row_outer(const struct row *row)
{
	return row->out_of == SRV6_TWO ? SRV6_TWO : row->into;
}

/*
 * Return true if the tags of the frame are those of next hop `adj`; with adj < 0, those of
 * any next hop on the port.
 */
static bool
tags_right(const struct row *row, const uint8_t *eth, unsigned int port, int adj,
	   unsigned int which)
{
	uint16_t priority = row->tags_in > 0 && which % 2 != 0 ? URGENT : 0;
	const uint8_t *tag = eth + 12;
	unsigned int id;

	if (row->tags_out == 2) {
		if (get_be16(tag) != VLAN_S_TYPE || get_be16(tag + 2) != (S_TAG | priority))
			return false;
		tag += VLAN_BYTES;
	}
	if (row->tags_in == 2)
		priority = 0; /* inner tags come without a priority */
	if (row->tags_out > 0) {
		id = (get_be16(tag + 2) ^ priority) - C_OUT;
		if (get_be16(tag) != VLAN_C_TYPE || id >= N_ADJ || world_port(id) != port ||
		    (adj >= 0 && id != (unsigned int)adj))
			return false;
		tag += VLAN_BYTES;
	}
	return get_be16(tag) == (is_srv6(row_outer(row)) ? 0x86dd : 0x0800);
}

/* Return true if the labels of the frame are right. */
static bool
labels_right(const struct row *row, const uint8_t *eth)
{
	if (get_be16(eth + 12) != MPLS_TYPE)
		return false;
	for (unsigned int i = 0; i < row->push; i++)
		if (get_be32(eth + 14 + i * LABEL_BYTES) !=
		    label_entry(PUSHED + i, 0, i + 1 == row->push, 63))
			return false;
	return true;
}

/* Return true if the frame left by the right port with the right headers. */
static bool
right(const struct ports *p, const struct rte_mbuf *m, unsigned int port)
{
	const struct row *row = p->row;
	const uint8_t *eth = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned int outer = tunnel_bytes(row_outer(row));
	unsigned int more = row->tags_out * VLAN_BYTES + row->push * LABEL_BYTES + outer;
	const uint8_t *ip = eth + 14 + more;
	unsigned int said = get_be16(ip + 20) - STREAM_SPORT, which = get_be16(ip + 22);
	unsigned int len = p->stream.len4 + more;
	bool kept = (row->label && row->push > 0) || row->out_of == SRV6_TWO; /* TTL */
	const uint8_t macs[12] = {2, 0, 0, 0, (uint8_t)port, 2,
				  2, 0, 0, 0, (uint8_t)port, 1};
	int adj = row->ten ? (int)world_ten(row, said, which / 2) : -1;

	return m->pkt_len == len && m->data_len == len &&
	       memcmp(eth, macs, sizeof(macs)) == 0 &&
	       port == (adj < 0 ? said : world_port((unsigned int)adj)) &&
	       (row->push > 0 ? labels_right(row, eth)
			      : tags_right(row, eth, port, adj, which)) &&
	       (outer == 0 ||
		outer_right(row_outer(row), eth + 14, port, p->stream.len4 - 14)) &&
	       ip[8] == (kept ? 64 : 63) && ip4_checksum_ok(ip, 20);
}

static uint16_t
transmit(void *queue, struct rte_mbuf **m, uint16_t n)
{
	unsigned int port = (unsigned int)(uintptr_t)queue;

	for (uint16_t i = 0; ports.check && i < n; i++)
		ports.wrong += !sessions_sent(m[i]) && !right(&ports, m[i], port);
	return transmit_free(NULL, m, n);
}

/* Make the headers with one and two tags. The innermost tag is the same in all frames. */
static void
heads_make(struct ports *p)
{
	for (unsigned int tags = 0; tags < 3; tags++) {
		uint8_t *h = p->head[tags];

		memcpy(h, p->stream.head4, 12);
		memcpy(h + 12 + tags * VLAN_BYTES, p->stream.head4 + 12,
		       64 - 12 - 2 * VLAN_BYTES);
	}
	p->less_source = (uint16_t)~get_be16(p->head[0] + STREAM_L2 + 12) +
			 (uint16_t)~get_be16(p->head[0] + STREAM_L2 + 14);
	memcpy(p->head_label, p->head[1], sizeof(p->head_label));
	put_be16(p->head_label + 12, MPLS_TYPE);
	for (unsigned int how = GRE; how < N_TUNNELLED; how++) {
		uint8_t *h = p->head_tunnel[how];
		unsigned int bytes = tunnel_bytes((enum tunnelled)how);

		memcpy(h, p->stream.head4, STREAM_L2);
		if (is_srv6((enum tunnelled)how))
			put_be16(h + STREAM_L2 - 2, 0x86dd);
		outer_write(h + STREAM_L2, (enum tunnelled)how, THERE, HERE,
			    p->stream.len4 - STREAM_L2);
		memcpy(h + STREAM_L2 + bytes, p->stream.head4 + STREAM_L2, 64 - STREAM_L2);
	}
	for (unsigned int a = 0; a < N_ADJ; a++) {
		uint8_t outer[OUTER_MAX];

		outer_write(outer, GRE, THERE + a, HERE, p->stream.len4 - STREAM_L2);
		memcpy(p->from[a], outer + FROM_AT, FROM_BYTES);
	}
	for (unsigned int port = 0; port <= N_OUT; port++)
		p->label[port] =
			htonl(label_entry(port == 0 ? VPN : LABEL + port, 0, true, 64));
	put_be16(p->head[2] + 16, VLAN_C_TYPE);
	put_be16(p->head[2] + 18, C_FIRST);
}

/* Make the frames to the ten routes, with their checksums. */
static int
few_make(struct ports *p)
{
	struct rte_ipv4_hdr ip;

	p->few = rte_malloc(NULL, (N_FEW + STREAM_AHEAD) * sizeof(*p->few), 0);
	if (p->few == NULL)
		return -ENOMEM;
	memcpy(&ip, p->stream.head4 + STREAM_L2, sizeof(ip));
	for (unsigned int i = 0; i < N_FEW; i++) {
		struct frame4 *f = &p->few[i];
		uint64_t x = mix64(i);

		f->port = (uint16_t)(x % N_TEN);
		put_be32(f->dst, 20u << 24 | f->port << 16 | (uint16_t)(x >> 32));
		ip.hdr_checksum = 0;
		memcpy(&ip.dst_addr, f->dst, 4);
		f->checksum = rte_ipv4_cksum(&ip);
	}
	return 0;
}

static void
ops_set(void)
{
	for (unsigned int n = 0; n <= N_OUT; n++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[n];

		sender[n] = (void *)(uintptr_t)n;
		ops->rx_pkt_burst = receive;
		ops->tx_pkt_burst = transmit;
		ops->rxq.data = &receiver;
		ops->txq.data = &sender[n];
		ops->rxq.clbk = ops->txq.clbk = no_callback;
	}
}

int
ports_make(struct world *w, struct fwd_conf *conf, const char *frames, unsigned int rounds,
	   unsigned int turn_us, double *cycles, atomic_bool *stop)
{
	struct ports *p = &ports;
	int rc;

	p->w = w;
	p->conf = conf;
	p->rounds = rounds;
	p->turn_tsc = rte_get_tsc_hz() * turn_us / 1000000;
	p->cycles = cycles;
	p->stop = stop;
	p->check = true;
	p->at_row = row_first();
	rc = stream_open(&p->stream, frames, "");
	if (rc < 0)
		return rc;
	p->stream.mac = (struct rte_ether_addr){{2, 0, 0, 0, 0, 1}};
	stream_len(&p->stream, 64);
	heads_make(p);
	rc = few_make(p);
	if (rc < 0)
		return rc;
	p->pool = rte_pktmbuf_pool_create("packets", N_BUFFERS, 256, PACKET_PRIV_BYTES,
					  RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (p->pool == NULL)
		return -rte_errno;
	rc = sessions_make(p->pool, p->head[0]);
	if (rc < 0)
		return rc;
	ops_set();
	return 0;
}

void
ports_begin(void)
{
	turn_begin(&ports);
}

uint64_t
ports_wrong(void)
{
	return ports.wrong;
}
