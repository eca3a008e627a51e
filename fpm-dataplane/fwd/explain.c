/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain: pass a frame that was not received through the stages that every packet takes.
 * The frame is in a buffer of this file and not in a port's pool. The counters and the
 * neighbor marks are private copies that nothing else reads. Because the code is that of
 * the forwarders, there is no second model of forwarding that could differ.     [trace]
 */
#include <string.h>

#include "base/worker.h"
#include "fib/hook_list.h"
#include "fwd/fast.h"
#include "fwd/tunnel.h"
#include "fwd/vlan.h"
#include "fwd/watch.h"

static struct {
	struct rte_mbuf m;
	struct packet_meta meta; /* rte_mbuf_to_priv(): directly behind the mbuf */
	uint8_t room[RTE_PKTMBUF_HEADROOM];
	uint8_t frame[WATCH_FRAME_BYTES_MAX];
} packet;

static struct counters count;
static _Atomic uint8_t adj_used[FIB_ADJ_MAX];
static struct fwd fwd;
static struct burst burst;

/* Pass an inner packet through the stages. The record then describes the inner packet. */
static void
explain_inside(struct watch_record *rec)
{
	uint8_t was[L2_LEN];
	struct fwd_decap decap = fwd_decap_of(&burst, 0);

	fwd_tunnel_enter(&fwd, &burst, &decap, 1);
	memset(rec, 0, sizeof(*rec));
	fwd_tunnel_show(&burst, 0, was);
	watch_copy(rec, &packet.m, WATCH_SNAP_MAX);
	fwd_tunnel_hide(&burst, 0, was);
	burst.rec[0] = rec;
	fwd_walk_noted(&burst);
}

void
fwd_explain(struct fib *fib, uint16_t ifidx, const uint8_t *frame, uint16_t n,
	    uint32_t frame_bytes, struct watch_record *rec)
{
	ASSERT_ROLE(ROLE_TRACE);
	memset(&packet.m, 0, sizeof(packet.m));
	memset(&packet.meta, 0, sizeof(packet.meta));
	memcpy(packet.frame, frame, n);
	memset(packet.frame + n, 0, frame_bytes - n);
	packet.m.buf_addr = packet.room;
	packet.m.buf_len = UINT16_MAX;
	packet.m.data_off = sizeof(packet.room);
	packet.m.data_len = (uint16_t)frame_bytes;
	packet.m.pkt_len = frame_bytes;
	packet.m.nb_segs = 1;
	packet.m.priv_size = PACKET_PRIV_BYTES;
	rte_mbuf_refcnt_set(&packet.m, 1);
	memset(rec, 0, sizeof(*rec));
	/*
	 * Old pointers are invalid: this thread had quiescent states since the last packet.
	 */
	fwd.outer_epoch++;
	fwd.found.ifidx = 0;
	fwd.found_svi = NULL;
	fwd.fib = fib;
	fwd.tries = &fib->copy[0];
	fwd.count = &count;
	fwd.explains = true;
	fwd.filter = fib_filter(fib);
	fwd.hooks = fib_hooks(fib);
	fwd.adj_used = adj_used;
	/* No earlier packet waits for a neighbor. */
	memset(adj_used, ADJ_UNUSED, sizeof(adj_used));
	burst.fwd = &fwd;
	burst.ifidx = fwd_enter(fib, ifidx, &packet.m);
	/* Copy the frame without the tags of a VLAN, as in a record of a received frame. */
	watch_copy(rec, &packet.m, WATCH_SNAP_MAX);
	burst.now = 0;
	burst.inside = false;
	burst.n = 1;
	burst.m[0] = &packet.m;
	burst.rec[0] = rec;
	burst_look(&burst);
	fwd_walk_noted(&burst);
	for (unsigned int deep = 0;
	     burst.verdict[0] == VERDICT_DECAPSULATED && deep < FIB_TUNNELS_DEEP; deep++)
		explain_inside(rec);
	if (rec->verdict == WATCH_DECAPSULATED) /* as fwd_tunnels_walk() */
		rec->verdict = DROP_encap_loop;
}
