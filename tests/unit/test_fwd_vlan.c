/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames with tags. Before the walk, a burst is divided by VLAN and tags are removed. After
 * it, tags are written, or restored for the kernel.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include <rte_ethdev.h>

#include "fwd/fast.h"
#include "fwd/sample.h"
#include "fwd/tx.h"
#include "fib/hook_list.h"
#include "fwd/vlan.h"
#include "fwd_isas.h"
#include "port/vlan_tags.h"

#define PORT  1
#define ONE   (PORT_MAX)      /* VLAN 100 on the port */
#define OUTER (PORT_MAX + 7)  /* service tag 20 on the port */
#define INNER (IFIDX_MAX - 1) /* VLAN 30 on OUTER */
#define BYTES 80

/* Frames with their memory. said: the octets of the frame on the wire. */
static struct {
	struct rte_mbuf m;
	uint8_t memory[64 + BYTES];
	uint8_t said[BYTES];
} came[BURST_MAX];

static struct fwd fwd;
static struct burst burst;
static struct counters count;
static struct {
	uint16_t ifidx;
	unsigned int n;
	struct rte_mbuf *m[BURST_MAX];
} walked[BURST_MAX];
static unsigned int n_walked;

static void
iface_make(struct fib *fib, uint16_t ifidx, uint8_t n_tags, struct fib_tag a,
	   struct fib_tag b)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	i->ifidx = ifidx;
	i->port = PORT;
	i->n_tags = i->n_written = n_tags;
	i->tag[0] = a;
	i->tag[1] = b;
	fib->iface[ifidx] = i;
}

static void
on(struct fib *fib, uint16_t ifidx, uint16_t type, uint16_t id, uint16_t vlan)
{
	if (fib->vlans[ifidx] == NULL)
		fib->vlans[ifidx] = calloc(1, sizeof(struct fib_vlans));
	fib->vlans[ifidx]->ifidx[type == VLAN_S_TYPE][id] = vlan;
}

static int
up(void **state)
{
	const struct fib_tag c100 = {VLAN_C_TYPE, 100}, s20 = {VLAN_S_TYPE, 20},
			     c30 = {VLAN_C_TYPE, 30}, none = {0};
	struct fib *fib;

	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	iface_make(fib, PORT, 0, none, none);
	iface_make(fib, ONE, 1, c100, none);
	iface_make(fib, OUTER, 1, s20, none);
	iface_make(fib, INNER, 2, s20, c30);
	on(fib, PORT, VLAN_C_TYPE, 100, ONE);
	on(fib, PORT, VLAN_S_TYPE, 20, OUTER);
	on(fib, OUTER, VLAN_C_TYPE, 30, INNER);
	fwd = (struct fwd){.fib = fib, .count = &count};
	memset(&count, 0, sizeof(count));
	burst.fwd = &fwd;
	burst.ifidx = PORT;
	burst.in = NULL; /* the interface was in the FIB of an earlier test */
	burst.n = 0;
	n_walked = 0;
	*state = fib;
	return 0;
}

static int
down(void **state)
{
	fib_destroy(*state);
	urcu_qsbr_unregister_thread();
	return 0;
}

/*
 * Add a frame to the burst: MACs, `n` octets of `tags`, the EtherType of IPv4. The last
 * octet is the number of the frame.
 */
static void
put(const uint8_t *tags, unsigned int n)
{
	unsigned int i = burst.n++;
	struct rte_mbuf *m = &came[i].m;
	uint8_t *f = came[i].said;

	memset(f, 0, BYTES);
	memcpy(f, "\2\0\0\0\0\1\2\0\0\0\0\2", VLAN_AT);
	memcpy(f + VLAN_AT, tags, n);
	put_be16(f + VLAN_AT + n, 0x0800);
	f[BYTES - 1] = (uint8_t)i;
	memcpy(came[i].memory + 64, f, BYTES);
	*m = (struct rte_mbuf){.buf_addr = came[i].memory, .data_off = 64};
	m->data_len = BYTES;
	m->pkt_len = BYTES;
	burst.m[i] = m;
}

#define PUT(tags) put((const uint8_t *)(tags), sizeof(tags) - 1)

/* Strip the first tag of the last frame as a NIC does: the tag moves to the mbuf. */
static void
nic_takes(void)
{
	struct rte_mbuf *m = burst.m[burst.n - 1];
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = get_be16(f + VLAN_AT + 2);
	memmove(f + VLAN_BYTES, f, VLAN_AT);
	m->data_off += VLAN_BYTES;
	m->data_len -= VLAN_BYTES;
	m->pkt_len -= VLAN_BYTES;
}

#define PUT_TAKEN(tags) (PUT(tags), nic_takes())

static const uint8_t *
frame(const struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, const uint8_t *);
}

static void
walk(struct burst *b)
{
	walked[n_walked].ifidx = b->ifidx;
	walked[n_walked].n = b->n;
	memcpy(walked[n_walked++].m, b->m, b->n * sizeof(b->m[0]));
}

/* Leave all packets to the slow path, in the order of interfaces. */
static uint64_t
none_fast(struct burst *b)
{
	for (unsigned int i = 0; i < b->n && b->tag_bytes != 0; i++)
		fwd_untag(b, i);
	return burst_all(b);
}

static void
split(void)
{
	uint16_t of = fwd_look(&burst);

	fwd_split(&burst, of, walk, none_fast);
}

static unsigned int n_fast, n_fast_packets; /* calls of counted_fast(), and their packets */

static uint64_t
counted_fast(struct burst *b)
{
	n_fast++;
	n_fast_packets += b->n;
	return none_fast(b);
}

static void
assert_walk(unsigned int at, uint16_t ifidx, unsigned int n)
{
	assert_true(at < n_walked);
	assert_int_equal(walked[at].ifidx, ifidx);
	assert_int_equal(walked[at].n, n);
}

/*
 * Packets of an interface that has a program never pass in one burst with those of another
 * interface. Packets of other interfaces do, whatever program another one has.
 */
static void
a_program_gets_one_interface_at_a_time(void **state)
{
	static struct fib_hook hook = {.dev = "has"};
	static const struct fib_hooks hooks = {.n = 1, .hook = {&hook}};
	static const struct {
		uint16_t of; /* the interface with a program; 0: none of these */
		unsigned int bursts, packets; /* on the fast path */
	} want[] = {{0, 2, 4}, {PORT, 1, 3}, {ONE, 2, 2}, {OUTER, 2, 3}};
	struct fib *fib = *state;

	for (unsigned int i = 1; i < IFIDX_MAX; i++)
		if (fib->iface[i] != NULL) {
			fib->iface[i]->up = true;
			fib->iface[i]->ifindex = i;
		}
	for (unsigned int k = 0; k < 5; k++) {
		for (uint16_t i = 1; i < IFIDX_MAX; i++)
			if (fib->iface[i] != NULL)
				strcpy(fib->iface[i]->name,
				       k < 4 && i == want[k].of ? "has" : "has not");
		burst.fwd->hooks = k == 4 ? NULL : &hooks;
		burst.fwd->hook_moved = 1;
		burst.n = 0;
		burst.ifidx = PORT;
		n_walked = n_fast = n_fast_packets = 0;
		PUT("");
		PUT("\x81\0\0\x64");
		PUT("\x88\xa8\0\x14");
		PUT("\x81\0\0\x64");
		fwd_split(&burst, fwd_look(&burst), walk, counted_fast);
		assert_int_equal(n_fast, want[k % 4].bursts);
		assert_int_equal(n_fast_packets, want[k % 4].packets);
		assert_int_equal(burst.fwd->hook_moved, 0);
		assert_int_equal(n_walked, 3);
		assert_walk(0, PORT, 1);
		assert_walk(1, ONE, 2);
		assert_walk(2, OUTER, 1);
	}
	burst.fwd->hooks = NULL;
}

static void
a_burst_is_divided_by_interface_in_order(void **state)
{
	PUT("");
	PUT("\x81\0\0\x64");
	PUT("\x88\xa8\0\x14\x81\0\0\x1e");
	PUT("\x81\0\0\x65");
	PUT("\x81\0\xa0\x64");
	PUT("");

	split();

	assert_int_equal(n_walked, 3);
	assert_walk(0, PORT, 3);
	/* There is no VLAN 101: the tag stays. */
	assert_int_equal(frame(walked[0].m[1])[13], 0);
	assert_int_equal(get_be16(frame(walked[0].m[1]) + VLAN_AT), VLAN_C_TYPE);
	assert_walk(1, ONE, 2);
	assert_walk(2, INNER, 1);
	for (unsigned int w = 1; w < 3; w++)
		for (unsigned int i = 0; i < walked[w].n; i++) {
			assert_int_equal(get_be16(frame(walked[w].m[i]) + VLAN_AT), 0x0800);
			assert_memory_equal(frame(walked[w].m[i]), came[0].said, VLAN_AT);
		}
	assert_ptr_equal(walked[1].m[0], &came[1].m);
	assert_ptr_equal(walked[1].m[1], &came[4].m);
	assert_int_equal(count.port[ONE].rx_packets, 2);
	assert_int_equal(count.port[ONE].rx_bytes, 2 * BYTES);
	assert_int_equal(count.port[INNER].rx_bytes, BYTES);
	assert_int_equal(count.port[PORT].rx_packets, 0); /* the caller counts them */
}

static void
a_burst_of_one_interface_walks_whole(void **state)
{
	for (unsigned int i = 0; i < BURST_MAX; i++)
		PUT("\x81\0\0\x64");

	split();

	assert_int_equal(n_walked, 1);
	assert_walk(0, ONE, BURST_MAX);
}

static void
so_does_one_whose_tag_the_nic_took(void **state)
{
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		if (i % 3 == 0)
			PUT_TAKEN("\x81\0\xe0\x64");
		else
			PUT_TAKEN("\x81\0\0\x64");
	}

	split();

	assert_int_equal(n_walked, 1);
	assert_walk(0, ONE, BURST_MAX);
	assert_int_equal(burst.bytes, BURST_MAX * BYTES);
	assert_int_equal(count.port[ONE].rx_packets, BURST_MAX);
	assert_int_equal(count.port[ONE].rx_bytes, BURST_MAX * BYTES);
}

static void
a_stripped_tag_without_a_vlan_is_put_back(void **state)
{
	struct fib *fib = *state;

	PUT_TAKEN("\x81\0\0\x65"); /* no such VLAN */
	PUT_TAKEN("\x81\0\xa0\0"); /* a priority tag */
	PUT("");
	PUT_TAKEN("\x81\0\x40\x64");
	PUT_TAKEN("\x81\0\0\x64\x81\0\0\x1e"); /* no VLAN 30 on ONE */
	PUT("\x88\xa8\0\x14\x81\0\0\x1e");     /* NICs do not remove this type */

	split();

	assert_walk(0, PORT, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(vlan_stripped(&came[i].m), 0);
		assert_int_equal(came[i].m.pkt_len, BYTES);
		assert_memory_equal(frame(&came[i].m), came[i].said, BYTES);
	}
	assert_walk(1, ONE, 2);
	assert_int_equal(get_be16(frame(&came[3].m) + VLAN_AT), 0x0800);
	assert_int_equal(get_be16(frame(&came[4].m) + VLAN_AT), VLAN_C_TYPE);
	assert_walk(2, INNER, 1);
	assert_int_equal(count.port[ONE].rx_bytes, 2 * BYTES);
	assert_int_equal(count.port[INNER].rx_bytes, BYTES);
	for (unsigned int i = 3; i < 5; i++) {
		vlan_restore(&came[i].m, fib->iface[ONE]);
		assert_memory_equal(frame(&came[i].m), came[i].said, BYTES);
	}
}

static void
only_tags_that_lead_somewhere_are_taken(void **state)
{
	struct fib *fib = *state;

	PUT("\x88\xa8\0\x14");                     /* OUTER itself */
	PUT("\x88\xa8\0\x14\x81\0\0\x1f");         /* no VLAN 31 on OUTER */
	PUT("\x81\0\0\x14");                       /* another type */
	PUT("\x88\xa8\0\x14\x81\0\0\x1e\x81\0\0"); /* a third tag is ignored */
	came[2].m.data_len = VLAN_AT + 3;

	split();

	assert_walk(0, OUTER, 2);
	assert_int_equal(vlan_stripped(&came[1].m), 1);
	assert_walk(1, PORT, 1);
	assert_walk(2, INNER, 1);
	fib->iface[PORT]->tag_type_lost = true;
	burst.n = 0;
	burst.ifidx = PORT;
	PUT("\x81\0\0\x14");
	split();
	assert_walk(3, OUTER, 1);
}

/*
 * As in Linux, the tag behind a tag with id 0 selects the VLAN. So a burst is divided
 * although the first tags of its frames are equal.
 */
static void
a_tag_with_id_0_before_another_tag_is_passed_over(void **state)
{
	struct fib *fib = *state;

	PUT("\x81\0\xa0\0");
	PUT("\x81\0\xa0\0\x81\0\x40\x64");
	PUT("\x81\0\xa0\0\x88\xa8\x40\x14");
	PUT("\x81\0\xa0\0\x81\0\0\x65"); /* no such VLAN */
	PUT_TAKEN("\x81\0\xa0\0\x81\0\0\x64");

	split();

	assert_walk(0, PORT, 2);
	assert_ptr_equal(walked[0].m[0], &came[0].m);
	assert_int_equal(get_be16(frame(&came[3].m) + VLAN_AT + 2), 101);
	assert_walk(1, ONE, 2);
	assert_walk(2, OUTER, 1);
	assert_int_equal(get_be16(frame(&came[1].m) + VLAN_AT), 0x0800);
	vlan_restore(&came[1].m, fib->iface[ONE]);
	vlan_restore(&came[2].m, fib->iface[OUTER]);
	vlan_restore(&came[3].m, fib->iface[PORT]);
	vlan_restore(&came[4].m, fib->iface[ONE]);
	for (unsigned int i = 0; i < 5; i++)
		assert_memory_equal(frame(&came[i].m), came[i].said, BYTES);
	/* All frames have both tags: they walk together. */
	burst.n = n_walked = 0;
	burst.ifidx = PORT;
	PUT("\x81\0\xa0\0\x81\0\x40\x64");
	PUT("\x81\0\0\0\x81\0\0\x64");
	split();
	assert_int_equal(n_walked, 1);
	assert_walk(0, ONE, 2);
}

static void
a_restored_frame_is_as_it_was_received(void **state)
{
	struct fib *fib = *state;

	PUT("\x81\0\xb0\x64");
	PUT("\x88\xa8\xe0\x14\x81\0\x50\x1e");
	PUT("\x88\xa8\xe0\x14\x81\0\x70\0"); /* a priority tag within OUTER */
	split();
	burst.l2[0] = rte_pktmbuf_mtod(&came[2].m, uint8_t *);
	burst.m[0] = &came[2].m;
	assert_true(fwd_priority_tag(&burst, 0));
	assert_int_equal(get_be16(burst.l2[0] + VLAN_AT), 0x0800);

	vlan_restore(&came[0].m, fib->iface[ONE]);
	vlan_restore(&came[1].m, fib->iface[INNER]);
	vlan_restore(&came[2].m, fib->iface[OUTER]);

	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(came[i].m.pkt_len, BYTES);
		assert_memory_equal(frame(&came[i].m), came[i].said, BYTES);
		assert_int_equal(vlan_stripped(&came[i].m), 0);
	}
}

static void
tags_are_written_with_the_priority_that_came(void **state)
{
	struct fib *fib = *state;
	const uint8_t *f;

	PUT("\x81\0\xb0\x64");
	PUT("");
	split();

	f = vlan_push(&came[0].m, fib->iface[INNER]);
	assert_memory_equal(f + VLAN_AT, "\x88\xa8\xb0\x14\x81\0\xb0\x1e\x08\0", 10);
	assert_int_equal(came[0].m.pkt_len, BYTES + 4);
	f = vlan_push(&came[1].m, fib->iface[ONE]);
	assert_memory_equal(f + VLAN_AT, "\x81\0\0\x64\x08\0", 6);
	assert_int_equal(came[1].m.pkt_len, BYTES + 4);
	f = frame(&came[0].m);
	assert_ptr_equal(vlan_push(&came[0].m, fib->iface[PORT]), f);
}

/*
 * Each tag keeps its priority. If the packet leaves with one tag, this tag has the priority
 * of the customer's tag.
 */
static void
two_tags_keep_their_priorities(void **state)
{
	struct fib *fib = *state;
	const uint8_t *f;

	PUT("\x88\xa8\x40\x14\x81\0\xb0\x1e");
	PUT("\x88\xa8\x40\x14\x81\0\xb0\x1e");
	PUT("\x88\xa8\x40\x14");
	split();

	f = vlan_push(&came[0].m, fib->iface[INNER]);
	assert_memory_equal(f + VLAN_AT, "\x88\xa8\x40\x14\x81\0\xb0\x1e\x08\0", 10);
	f = vlan_push(&came[1].m, fib->iface[ONE]);
	assert_memory_equal(f + VLAN_AT, "\x81\0\xb0\x64\x08\0", 6);
	f = vlan_push(&came[2].m, fib->iface[INNER]);
	assert_memory_equal(f + VLAN_AT, "\x88\xa8\x40\x14\x81\0\x40\x1e\x08\0", 10);
}

/* --- sending -------------------------------------------------------------------------- */

static struct fwd_conf conf;
static unsigned int n_takes; /* frames that the device takes in a call */

static uint16_t
device_takes(void *queue, struct rte_mbuf **m, uint16_t n)
{
	return n < n_takes ? n : (uint16_t)n_takes;
}

/* Empty the buffers. In each call, the device takes up to `takes` frames. */
static void
buffers_begin(unsigned int takes)
{
	static void *queue[1];

	n_takes = takes;
	rte_eth_fp_ops[0].tx_pkt_burst = device_takes;
	rte_eth_fp_ops[0].txq.data = queue;
	fwd.conf = &conf;
	fwd.tx_burst = 64;
	memset(fwd.tx, 0, sizeof(fwd.tx));
}

/*
 * Add a frame to the burst. Its mbuf is not freed after it is sent, because the test reads
 * it.
 */
static void
frame_to_send(void)
{
	struct rte_mbuf *m = &came[burst.n].m;

	PUT("");
	rte_mbuf_refcnt_set(m, 2);
	m->nb_segs = 1;
}

/*
 * Send two frames by the port and four by a VLAN. The device inserts the tag of the first
 * and the last of these four; the two others have their tag. The device takes `takes`
 * frames.
 */
static void
send_six(unsigned int takes)
{
	buffers_begin(takes);
	for (unsigned int i = 0; i < 6; i++) {
		frame_to_send();
		if (i == 2 || i == 5) {
			came[i].m.vlan_tci = 0xb064;
			came[i].m.ol_flags = RTE_MBUF_F_TX_VLAN;
		}
		fwd_tx(&fwd, i < 2 ? PORT : ONE, &came[i].m);
	}
	fwd_tx_flush(&fwd);
}

static void
octets_sent_have_the_tag_that_the_device_puts_in(void **state)
{
	send_six(64);
	assert_int_equal(count.port[PORT].tx_bytes, 6 * BYTES + 2 * 4);
	assert_int_equal(count.port[ONE].tx_bytes, 4 * BYTES + 2 * 4);
	assert_int_equal(count.port[ONE].tx_packets, 4);
}

static void
octets_not_sent_are_not_counted(void **state)
{
	send_six(4);
	assert_int_equal(count.port[PORT].tx_bytes, 4 * BYTES + 4);
	assert_int_equal(count.port[ONE].tx_bytes, 2 * BYTES + 4);
	assert_int_equal(count.port[ONE].tx_packets, 2);
	assert_int_equal(count.reason[DROP_tx_full], 2);
}

/* A capture of sent frames sees the tag. The counts are the same as without a capture. */
static void
a_captured_frame_has_its_tag(void **state)
{
	struct watch_set set = {.points = 1u << WATCH_SENT, .live = 1};
	struct watch *w = watch_create();
	uint64_t n_lost = 0;

	set.filter[0] = (struct watch_filter){.points = 1u << WATCH_SENT,
					      .verdicts = WATCH_ANY,
					      .reason = N_REASON,
					      .snap_bytes = 200};
	conf.watch_ring = watch_ring_add(w, &n_lost);
	fwd.watch = &set;
	send_six(64);
	assert_int_equal(conf.watch_ring->head, 6);
	for (unsigned int i = 0; i < 6; i++) {
		const struct watch_record *rec = &conf.watch_ring->record[i];
		bool by_device = i == 2 || i == 5;

		assert_int_equal(rec->frame_bytes, by_device ? BYTES + 4 : BYTES);
		assert_memory_equal(rec->frame, came[i].said, VLAN_AT);
		if (by_device)
			assert_memory_equal(rec->frame + VLAN_AT, "\x81\0\xb0\x64\x08\0",
					    6);
		assert_int_equal(came[i].m.ol_flags & RTE_MBUF_F_TX_VLAN, 0);
	}
	assert_int_equal(count.port[PORT].tx_bytes, 6 * BYTES + 2 * 4);
	assert_int_equal(count.port[ONE].tx_bytes, 4 * BYTES + 2 * 4);
	watch_free(w);
	conf.watch_ring = NULL;
}

/* --- samples of sFlow ----------------------------------------------------------------- */

static void
walk_sampled(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		b->verdict[i] = DROP_blackhole;
	walk(b);
	fwd_sample_note(b);
}

/*
 * A sample has its tags, also a tag that the NIC stripped, and the interface of its VLAN.
 */
static void
samples_are_the_frames_as_received(void **state)
{
	struct watch_set set = {.epoch = 1, .sample_rate = 1, .sample_bytes = BYTES};
	static const uint16_t ifidx[] = {PORT, ONE, INNER, ONE};
	struct watch *w = watch_create();
	const struct watch_record *rec;

	conf.sample_ring = watch_ring_add(w, NULL);
	fwd.conf = &conf;
	fwd.sample = &set;
	fwd_sample_begin(&fwd);
	PUT("");
	PUT("\x81\0\xa0\x64");
	PUT("\x88\xa8\0\x14\x81\0\0\x1e");
	PUT_TAKEN("\x81\0\x20\x64");

	assert_true(fwd_sample(&burst));
	fwd_split(&burst, fwd_look(&burst), walk_sampled, NULL);

	assert_int_equal(n_walked, 3);
	assert_int_equal(conf.sample_ring->head, 4);
	for (unsigned int i = 0; i < 4; i++) {
		rec = &conf.sample_ring->record[i];
		assert_int_equal(rec->in_ifidx, ifidx[i]);
		assert_int_equal(rec->frame_bytes, BYTES);
		assert_memory_equal(rec->frame, came[i].said, BYTES);
	}
	assert_int_equal(count.port[ONE].rx_bytes, 2 * BYTES);
	watch_free(w);
	conf.sample_ring = NULL;
}

/* Turn on reports of dropped packets. */
static struct watch *
drops_watch(struct watch_set *set)
{
	struct watch *w = watch_create();

	*set = (struct watch_set){.epoch = 1,
				  .sample_rate = 1000000,
				  .sample_bytes = 2 * BYTES,
				  .sample_drops = true};
	conf.sample_ring = watch_ring_add(w, NULL);
	fwd.conf = &conf;
	fwd.sample = set;
	return w;
}

static void
walk_dropped(struct burst *b)
{
	b->in = fib_iface(fwd.fib, b->ifidx);
	walk(b);
	for (unsigned int i = 0; i < b->n; i++) {
		struct rte_mbuf before = *b->m[i];

		fwd_sample_drop(b, i, DROP_blackhole);
		assert_int_equal(b->m[i]->data_off, before.data_off);
		assert_int_equal(b->m[i]->pkt_len, before.pkt_len);
		assert_int_equal(b->m[i]->ol_flags, before.ol_flags);
		assert_int_equal(b->m[i]->vlan_tci, before.vlan_tci);
		assert_int_equal(b->m[i]->vlan_tci_outer, before.vlan_tci_outer);
	}
}

/* The report does not change the mbuf, because the punt thread may get the packet later. */
static void
dropped_packets_are_reported_with_their_tags(void **state)
{
	struct watch_set set;
	struct watch *w = drops_watch(&set);

	PUT("");
	PUT("\x81\0\xa0\x64");
	PUT("\x88\xa8\0\x14\x81\0\0\x1e");
	PUT_TAKEN("\x81\0\x20\x64");
	fwd_split(&burst, fwd_look(&burst), walk_dropped, NULL);

	assert_int_equal(conf.sample_ring->head, 4);
	for (unsigned int i = 0, k; i < 4; i++) {
		/* The packets pass by interface. Packets 1 and 3 are of the same VLAN. */
		const struct watch_record *rec = &conf.sample_ring->record[i];

		k = i < 2 ? i : 5 - i;
		assert_int_equal(rec->frame_bytes, BYTES);
		assert_memory_equal(rec->frame, came[k].said, BYTES);
	}
	burst.in = NULL;
	watch_free(w);
	conf.sample_ring = NULL;
}

/*
 * Vector code does not write the VLAN to the mbufs, because the buffer has one VLAN for all
 * its frames.
 */
static void
frames_not_sent_have_the_vlan_as_output(void **state)
{
	struct watch_set set;
	struct watch *w = drops_watch(&set);
	struct rte_mbuf **room;

	buffers_begin(1);
	assert_true(fwd_tx_vlan(&fwd, PORT, ONE));
	room = fwd_tx_room(&fwd, PORT, 3);
	for (unsigned int i = 0; i < 3; i++) {
		frame_to_send();
		came[i].m.port = 0;
		room[i] = &came[i].m;
	}
	came[2].m.vlan_tci = 0xb064;
	came[2].m.ol_flags = RTE_MBUF_F_TX_VLAN;
	fwd_tx_flush(&fwd);

	assert_int_equal(conf.sample_ring->head, 2);
	assert_int_equal(conf.sample_ring->record[0].frame_bytes, BYTES);
	assert_int_equal(conf.sample_ring->record[1].frame_bytes, BYTES + 4);
	assert_memory_equal(conf.sample_ring->record[1].frame + VLAN_AT, "\x81\0\xb0\x64",
			    4);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(conf.sample_ring->record[i].out_ifidx, ONE);
	watch_free(w);
	conf.sample_ring = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_program_gets_one_interface_at_a_time, up,
						down),
		cmocka_unit_test_setup_teardown(a_burst_is_divided_by_interface_in_order,
						up, down),
		cmocka_unit_test_setup_teardown(a_burst_of_one_interface_walks_whole, up,
						down),
		cmocka_unit_test_setup_teardown(so_does_one_whose_tag_the_nic_took, up,
						down),
		cmocka_unit_test_setup_teardown(a_stripped_tag_without_a_vlan_is_put_back,
						up, down),
		cmocka_unit_test_setup_teardown(
			octets_sent_have_the_tag_that_the_device_puts_in, up, down),
		cmocka_unit_test_setup_teardown(octets_not_sent_are_not_counted, up, down),
		cmocka_unit_test_setup_teardown(a_captured_frame_has_its_tag, up, down),
		cmocka_unit_test_setup_teardown(only_tags_that_lead_somewhere_are_taken, up,
						down),
		cmocka_unit_test_setup_teardown(
			a_tag_with_id_0_before_another_tag_is_passed_over, up, down),
		cmocka_unit_test_setup_teardown(a_restored_frame_is_as_it_was_received, up,
						down),
		cmocka_unit_test_setup_teardown(
			tags_are_written_with_the_priority_that_came, up, down),
		cmocka_unit_test_setup_teardown(two_tags_keep_their_priorities, up, down),
		cmocka_unit_test_setup_teardown(samples_are_the_frames_as_received, up,
						down),
		cmocka_unit_test_setup_teardown(
			dropped_packets_are_reported_with_their_tags, up, down),
		cmocka_unit_test_setup_teardown(frames_not_sent_have_the_vlan_as_output, up,
						down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
