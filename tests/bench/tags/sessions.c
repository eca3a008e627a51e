/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BFD sessions beside the transit packets: the forwarder sends their packets, and port 0 receives
 * those of their peers, as many of them. All sessions are Up, so no packet changes anything.  [fwd]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "base/inet.h"
#include "port/bfd.h"
#include "tags.h"

#define TTL         254
#define UDP_BYTES   (8 + BFD_OCTETS)
#define FRAME_BYTES (14 + 20 + UDP_BYTES)

static struct bfd_table *table;
static struct bfd_pace *pace;
static struct bfd_beat **beats; /* by row: the packets of all sessions; NULL: no sessions */
static uint8_t frame[N_SESSIONS][FRAME_BYTES]; /* of the peers */
static uint64_t next_tsc,
	gap_tsc; /* time of the next frame, gap between frames; gap 0: no frames */
static unsigned int at;

/* Write the IP packet of one side of session `k`. The payload says Up. */
static void
packet_write(uint8_t *ip, unsigned int k, uint32_t from, uint32_t to)
{
	uint8_t *udp = ip + 20, *bfd = udp + 8;

	memset(ip, 0, 20 + UDP_BYTES);
	ip[0] = 0x45;
	ip[1] = 0xc0;
	put_be16(ip + 2, 20 + UDP_BYTES);
	ip[8] = TTL;
	ip[9] = 17;
	put_be32(ip + 12, from);
	put_be32(ip + 16, to);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	put_be16(udp, (uint16_t)(49152 + k));
	put_be16(udp + 2, BFD_PORT_MULTI);
	put_be16(udp + 4, UDP_BYTES);
	bfd[0] = 1 << 5;
	bfd[1] = 3 << 6;
	bfd[2] = 3;
	bfd[3] = BFD_OCTETS;
	put_be32(bfd + 4, 1 + k);
	put_be32(bfd + BFD_YOUR_DISCR, 1 + k);
}

/* Write the packets of all sessions with the interval of a row. */
static struct bfd_beat *
beats_make(unsigned int ms)
{
	struct bfd_beat *all = calloc(N_SESSIONS, sizeof(*all));

	if (all == NULL)
		return NULL;
	for (unsigned int k = 0; k < N_SESSIONS; k++) {
		struct bfd_beat *beat = &all[k];
		uint32_t peer = THERE + k % N_ADJ;

		*beat = (struct bfd_beat){.least_us = ms * 750,
					  .most_us = ms * 1000,
					  .expects = true,
					  .family = 4,
					  .ttl_least = TTL,
					  .n = 20 + UDP_BYTES,
					  .port = BFD_PORT_MULTI,
					  .local = ipaddr_from_v4(HERE),
					  .remote = ipaddr_from_v4(peer)};
		packet_write(beat->packet, k, HERE, peer);
		memcpy(beat->expect, beat->packet + 28, BFD_OCTETS);
	}
	return all;
}

/*
 * Give all sessions the packets of a row. If the packets were written here, they would take
 * the place of routes in the caches before each turn.
 */
static void
sessions_set(struct bfd_beat *of_row)
{
	for (unsigned int k = 0; k < N_SESSIONS; k++)
		table->slot[1 + k].beat = of_row == NULL ? NULL : &of_row[k];
}

/*
 * Set the next packet of each session to a random time within an interval. The forwarder
 * itself would draw 75 to 100 % of the interval. A turn is shorter than that, so it would
 * have no packet.
 */
static void
phases_set(uint64_t interval_tsc)
{
	uint64_t now = rte_rdtsc();

	for (unsigned int k = 0; k < N_SESSIONS; k++)
		due_set(&pace->due, 1 + k,
			interval_tsc == 0 ? DUE_NEVER
					  : now + mix64(now + k) % interval_tsc);
	pace->next = due_first(&pace->due);
}

int
sessions_make(struct rte_mempool *pool, const uint8_t head[14])
{
	table = bfd_table_create();
	pace = table == NULL ? NULL : bfd_pace_create(table, pool, 0, 1);
	beats = calloc(n_rows, sizeof(beats[0]));
	if (pace == NULL || beats == NULL)
		return -ENOMEM;
	for (unsigned int r = 0; r < n_rows; r++) {
		if (rows[r].session_ms != 0 &&
		    (beats[r] = beats_make(rows[r].session_ms)) == NULL)
			return -ENOMEM;
	}
	table->end = 1 + N_SESSIONS;
	for (unsigned int k = 0; k < N_SESSIONS; k++) {
		memcpy(frame[k], head, 14);
		packet_write(frame[k] + 14, k, THERE + k % N_ADJ, HERE);
	}
	return 0;
}

void
sessions_turn(struct fwd_conf *conf, const struct row *row)
{
	static struct bfd_beat *now;
	struct bfd_beat *of_row = beats[row - rows];

	conf->bfd = row->bfd ? pace : NULL;
	if (of_row != now) {
		now = of_row;
		sessions_set(of_row);
	}
	/* Peers draw from 75 to 100 % of the interval: 7/8 is the mean. */
	gap_tsc = rte_get_tsc_hz() / 1000 * row->session_ms * 7 / 8 / N_SESSIONS;
	phases_set(gap_tsc * N_SESSIONS);
	next_tsc = gap_tsc == 0 ? UINT64_MAX : rte_rdtsc();
}

unsigned int
sessions_receive(struct rte_mbuf **m, unsigned int n)
{
	unsigned int i = 0;

	for (uint64_t now = rte_rdtsc(); i < n && next_tsc <= now; i++) {
		memcpy(rte_pktmbuf_mtod(m[i], uint8_t *), frame[at], FRAME_BYTES);
		m[i]->data_len = FRAME_BYTES;
		m[i]->pkt_len = FRAME_BYTES;
		at = (at + 1) % N_SESSIONS;
		next_tsc += gap_tsc;
	}
	return i;
}

bool
sessions_sent(const struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *) + 14;

	return m->pkt_len == FRAME_BYTES && ip[9] == 17 &&
	       get_be16(ip + 22) == BFD_PORT_MULTI && get_be32(ip + 12) == HERE;
}

bool
sessions_right(const struct counters *c)
{
	uint64_t sent = 0, heard = 0;
	bool ran = false;

	for (unsigned int k = 0; k < N_SESSIONS; k++) {
		sent += table->slot[1 + k].n_sent;
		heard += table->slot[1 + k].n_heard;
	}
	for (unsigned int r = 0; r < n_rows; r++)
		ran |= rows[r].session_ms != 0 && row_is_asked(&rows[r]);
	/* Nothing else is local. */
	return (!ran || (sent > 0 && heard > 0)) &&
	       heard == c->reason[PUNT_local_control] && heard == c->class[CLASS_bfd].taken;
}
