/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A burst of frames passes the fast path (look, split, both walks, dispatch), with vectors
 * and without. Each frame also passes fwd_walk_noted() alone, by the rules of the slow
 * path. Both must give the same verdict and the same frame. In the burst, each frame that
 * is not dropped must be exactly once in the buffer of the interface that the slow path
 * chose, or in a punt ring. In some bursts thread bfd serves BFD, and gets the packets of
 * sessions.
 *
 * A frame is in a heap block that ends with the frame, so that AddressSanitizer finds an
 * over-read. The block has further octets if the forwarder may read them, see behind().
 *
 * A packet out of a VXLAN, a tunnel or a SID is judged once more, in a burst of such
 * packets: the linker replaces fwd_tunnels_walk() for this. A walk leaves a pattern of the
 * outer headers, with which later walks decapsulate (fwd/decap_fast.h). A packet that is
 * walked alone always passes the stages.
 *
 * A form is the code that handles a burst. form_set() selects code with or without vectors,
 * as fwd_cpu_choose() does. In the form RULES no packet takes the fast path: the linker
 * puts __wrap_fwd_fast() in the place of fwd_fast(), and the same for labels and for
 * packets out of a VXLAN (--wrap, see fuzz.mk).
 */
#include "packet_burst.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "fib/headend.h"
#include "fib/label.h"
#include "fwd/cpu.h"
#include "fwd/decap_fast.h"
#include "fib/vxlan.h"
#include "fwd/fast.h"
#include "fwd/inner.h"
#include "fwd/tunnel.h"
#include "fwd/vlan.h"
#include "fwd/walk.h"
#include "fwd/watch.h"
#include "must.h"
#include "packet_bfd.h"
#include "packet_frames.h"
#include "packet_labels.h"
#include "packet_tunnels.h"
#include "port/vlan_tags.h"

#define HEADROOM   RTE_PKTMBUF_HEADROOM
#define RING_SLOTS 128u /* more than a burst */
#define INSIDE     43u  /* octets that vectors may read behind an inner packet */
/* The number of references to each packet, so that the first free does not release it. */
#define KEPT 2

struct packet {
	struct rte_mbuf m;
	struct packet_meta meta; /* rte_mbuf_to_priv(): right behind */
	struct rte_mbuf
		tail; /* octets after the first segment: only a checksum reads them */
};

/* The result of a packet. */
struct outcome {
	unsigned int times; /* number of verdicts: exactly 1 at the end */
	uint8_t verdict, cause, family;
	uint16_t l3_len, out_ifidx;
	fib_path path;
};

static struct given given[BURST_MAX];
static struct packet alone[BURST_MAX], packet[BURST_MAX];
static struct outcome outcome[BURST_MAX];
static struct watch_record rec[BURST_MAX];
static struct counters count;
static _Atomic uint8_t adj_used[FIB_ADJ_MAX];
static struct fwd_conf conf;
static struct fwd fwd;
static struct burst burst;
static enum form {
	RULES,  /* slow path only */
	SCALAR, /* fast path, one packet at a time */
	SSE4,   /* fast path, four packets at once; also NEON */
	AVX2,   /* fast path, eight packets at once */
	AVX512, /* fast path, sixteen packets at once */
} form;

/* --- forms ------------------------------------------------------------------------- */

void __real_fwd_fast(struct burst *b);
void __wrap_fwd_fast(struct burst *b);
void __real_fwd_label_fast_parse(struct burst *b);
void __wrap_fwd_label_fast_parse(struct burst *b);
bool __real_fwd_label_fast_all(struct burst *b);
bool __wrap_fwd_label_fast_all(struct burst *b);
struct fwd_families __real_fwd_fast_payloads(struct burst *b, uint64_t of,
					     struct fwd_payload kind);
struct fwd_families __wrap_fwd_fast_payloads(struct burst *b, uint64_t of,
					     struct fwd_payload kind);
void __wrap_fwd_tunnels_walk(struct fwd *f);

void
__wrap_fwd_fast(struct burst *b)
{
	if (form == RULES)
		b->fast4 = b->fast6 = b->padded = 0;
	else
		__real_fwd_fast(b);
}

void
__wrap_fwd_label_fast_parse(struct burst *b)
{
	if (form != RULES)
		__real_fwd_label_fast_parse(b);
}

bool
__wrap_fwd_label_fast_all(struct burst *b)
{
	return form != RULES && __real_fwd_label_fast_all(b);
}

struct fwd_families
__wrap_fwd_fast_payloads(struct burst *b, uint64_t of, struct fwd_payload kind)
{
	return form == RULES ? (struct fwd_families){0, 0}
			     : __real_fwd_fast_payloads(b, of, kind);
}

static void
form_set(enum form now)
{
	form = now;
	fwd_isa = now == RULES ? FWD_SCALAR : FWD_SCALAR + (now - SCALAR);
}

/* --- packets ----------------------------------------------------------------------- */

/*
 * Return the number of octets that the forwarder may read, even if the frame is shorter.
 * Behind the tags that a frame may lose, burst_tags() reads the place of two more tags, and
 * the vectors read 39 octets, or 43 behind a label (fwd/fast.h).
 */
static unsigned int
behind(void)
{
	const unsigned int tags = VLAN_TAGS * VLAN_BYTES;

	return tags + (form >= SSE4 ? 43 : VLAN_AT + tags);
}

static void
packet_fill(struct packet *p, const struct given *g, uint8_t filler)
{
	unsigned int room = RTE_MAX((unsigned int)g->first, behind()) +
			    (frame_has_inside(g->frame, g->n) ? INSIDE : 0);
	uint8_t *block = malloc(HEADROOM + room);

	MUST(block != NULL);
	memset(block, filler, HEADROOM);
	memset(block + HEADROOM, filler, room);
	memcpy(block + HEADROOM, g->frame, g->first);
	memset(p, 0, sizeof(*p));
	p->m.buf_addr = block;
	p->m.buf_len = (uint16_t)(HEADROOM + room);
	p->m.data_off = HEADROOM;
	p->m.data_len = g->first;
	p->m.pkt_len = g->n;
	p->m.nb_segs = 1;
	p->m.vlan_tci = g->vlan_tci;
	p->m.ol_flags = g->ol_flags;
	p->m.priv_size = PACKET_PRIV_BYTES;
	rte_mbuf_refcnt_set(&p->m, KEPT);
	if (g->first == g->n)
		return;
	p->m.nb_segs = 2;
	p->m.next = &p->tail;
	p->tail.buf_addr = malloc(g->n - g->first);
	MUST(p->tail.buf_addr != NULL);
	memcpy(p->tail.buf_addr, g->frame + g->first, g->n - g->first);
	p->tail.data_len = g->n - g->first;
	p->tail.nb_segs = 1;
	rte_mbuf_refcnt_set(&p->tail, KEPT);
}

static void
packet_end(struct packet *p)
{
	free(p->m.buf_addr);
	free(p->tail.buf_addr);
	p->m.buf_addr = p->tail.buf_addr = NULL;
}

/* --- alone ------------------------------------------------------------------------- */

/*
 * Walk the packet that came out of a tunnel, and its inner packets, as fwd_explain() does.
 */
static void
walk_inside(unsigned int i)
{
	for (unsigned int deep = 0; burst.verdict[0] == VERDICT_DECAPSULATED; deep++) {
		struct fwd_decap decap = fwd_decap_of(&burst, 0);

		if (deep == FIB_TUNNELS_DEEP) {
			rec[i].verdict = DROP_encap_loop;
			rec[i].looked_up = false; /* the path is that of the outer packet */
			return;
		}
		fwd_tunnel_enter(&fwd, &burst, &decap, 1);
		memset(&rec[i], 0, offsetof(struct watch_record, frame));
		burst.rec[0] = &rec[i];
		fwd_walk_noted(&burst);
	}
}

/* Check a frame that is not an inner packet, and that leaves behind a label in a tunnel. */
static void
labels_sent(unsigned int i)
{
	const struct watch_record *r = &rec[i];
	const struct rte_mbuf *m = &alone[i].m;
	const uint8_t *start = rte_pktmbuf_mtod(m, const uint8_t *);

	if (r->verdict != WATCH_GO || r->tunnel == 0 || r->outer_ifidx != 0 ||
	    path_kind(r->path) != PATH_ENCAP)
		return;
	label_tunnel_sent_on(fwd.fib, &fib_iface(fwd.fib, r->tunnel)->tunnel,
			     packet_of(given[i].frame, given[i].n),
			     given[i].frame + given[i].n, packet_of(start, m->data_len),
			     start + m->data_len, m->pkt_len - m->data_len);
}

/* Walk a packet on the slow path, as fwd_explain() does. */
static void
walk_alone(const struct packet_port *port, unsigned int i)
{
	struct packet *p = &alone[i];

	packet_fill(p, &given[i], 0xa5);
	memset(&rec[i], 0, offsetof(struct watch_record, frame));
	memset(&burst, 0, sizeof(burst));
	burst.fwd = &fwd;
	burst.ifidx = fwd_enter(fwd.fib, port->ifidx, &p->m);
	burst.rx_cksum = port->cksum;
	burst.n = 1;
	burst.m[0] = &p->m;
	burst.rec[0] = &rec[i];
	burst_look(&burst);
	/* The slow path must not read behind the frame. */
	ASAN_POISON_MEMORY_REGION(rte_pktmbuf_mtod_offset(&p->m, void *, p->m.data_len),
				  p->m.buf_len - p->m.data_off - p->m.data_len);
	fwd_walk_noted(&burst);
	walk_inside(i);
	labels_sent(i);
}

/* --- together ---------------------------------------------------------------------- */

static void
rings_make(void)
{
	for (unsigned int k = 0; k < N_PUNT_CLASS; k++) {
		ssize_t bytes = rte_ring_get_memsize(RING_SLOTS);
		struct rte_ring *r;

		MUST(bytes > 0);
		r = aligned_alloc(RTE_CACHE_LINE_SIZE,
				  RTE_ALIGN((size_t)bytes, RTE_CACHE_LINE_SIZE));
		MUST(r != NULL && rte_ring_init(r, "punt", RING_SLOTS,
						RING_F_SP_ENQ | RING_F_SC_DEQ) == 0);
		conf.rings.punt[k] = r;
	}
	conf.tx_burst = FWD_BURST_MAX; /* more than a burst has, so nothing is sent */
}

/* Record the verdicts of a walk. `which` has a bit for each entry that has a verdict. */
static void
take_down(const struct burst *b, uint64_t which)
{
	for (uint64_t rest = which; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		struct packet *p = (struct packet *)(void *)b->m[i];
		struct outcome *o = &outcome[p - packet];

		MUST(p >= packet && p < packet + BURST_MAX);
		o->times += b->verdict[i] != VERDICT_DECAPSULATED;
		o->verdict = b->verdict[i];
		o->cause = b->cause[i];
		o->family = b->family[i];
		o->l3_len = b->l3_len[i];
		o->out_ifidx = b->hop[i] & 0xffff;
		o->path = b->path[i];
	}
}

/* Replace fwd_tunnels_walk(): record the verdicts, then call it. */
void
__wrap_fwd_tunnels_walk(struct fwd *f)
{
	struct fwd_decap decap[BURST_MAX];
	unsigned int n = f->n_decap;
	struct burst b;

	memcpy(decap, f->decap, n * sizeof(decap[0]));
	f->n_decap = 0;
	for (unsigned int k = 0; f->depth == FIB_TUNNELS_DEEP && k < n; k++) {
		struct outcome *o = &outcome[(struct packet *)(void *)decap[k].m - packet];

		o->times++;
		o->verdict = DROP_encap_loop;
		rte_pktmbuf_free(decap[k].m);
	}
	if (f->depth == FIB_TUNNELS_DEEP)
		return;
	f->depth++;
	while (n > 0) {
		n = fwd_tunnel_enter(f, &b, decap, n);
		fwd_walk(&b, NULL);
		take_down(&b, burst_all(&b));
		fwd_dispatch_all(&b);
	}
	f->depth--;
}

/*
 * Walk a burst as burst_walk() and burst_walk_fast() of loop.c do in a round that is not
 * timed.
 */
static void
walk(struct burst *b)
{
	if (fwd_decap_may_be_fast(b))
		fwd_decap_fast(b);
	if (b->n == 0) {
		fwd_tunnels_walk(b->fwd);
		return;
	}
	fwd_walk(b, NULL);
	take_down(b, burst_all(b));
	fwd_dispatch_all(b);
}

static uint64_t
walk_fast(struct burst *b)
{
	fwd_walk_fast(b, NULL);
	take_down(b, b->fast4 | b->fast6);
	return fwd_dispatch_fast(b);
}

/* Handle a burst as burst_handle() of loop.c does. */
static void
handle(const struct packet_port *port, struct burst *b)
{
	bool vlans = fib_vlans(fwd.fib, port->ifidx) != NULL;
	uint16_t of = port->ifidx;

	b->fwd = &fwd;
	b->now = 0;
	b->ifidx = port->ifidx;
	b->rx_cksum = port->cksum;
	b->vrf_counted = false;
	if (vlans)
		of = fwd_look(b);
	else
		burst_look(b);
	if (vlans)
		fwd_split(b, of, walk, walk_fast);
	else
		walk(b);
}

/*
 * Check that the frame that leaves, or that the punt thread gets, equals the frame of the
 * slow path.
 */
static void
same_frame(unsigned int i, bool leaves)
{
	struct rte_mbuf *a = &alone[i].m, *b = &packet[i].m;

	if ((a->ol_flags & RTE_MBUF_F_TX_VLAN) != 0)
		vlan_insert(a);
	if ((b->ol_flags & RTE_MBUF_F_TX_VLAN) != 0)
		vlan_insert(b);
	MUST(a->pkt_len == b->pkt_len && a->data_len == b->data_len);
	MUST(a->nb_segs == b->nb_segs && (a->next == NULL) == (b->next == NULL));
	MUST(memcmp(rte_pktmbuf_mtod(a, void *), rte_pktmbuf_mtod(b, void *),
		    a->data_len) == 0);
	if (leaves)
		return;
	MUST(a->ol_flags == b->ol_flags);
	MUST(vlan_stripped(a) == 0 || a->vlan_tci == b->vlan_tci);
	MUST(vlan_stripped(a) < 2 || a->vlan_tci_outer == b->vlan_tci_outer);
}

/*
 * Return the final path of a packet. A packet with labels that waits has the path of its
 * neighbor.
 */
static fib_path
path_in_the_end(const struct watch_record *r)
{
	return r->verdict == PUNT_unresolved && path_kind(r->path) == PATH_ENCAP &&
			       !path_is_headend(fwd.fib, r->path)
		       ? encap_next(fib_encap(fwd.fib, r->path))
		       : r->path;
}

/*
 * Return true if a packet has passed one end point more than the slow path allows. The
 * limit does not count an end point that a pattern handles, see fwd/decap_fast.h.
 */
static bool
is_one_deeper(unsigned int i)
{
	return rec[i].verdict == DROP_encap_loop && outcome[i].verdict != DROP_encap_loop;
}

static void
same_verdict(unsigned int i)
{
	const struct outcome *o = &outcome[i];
	const struct watch_record *r = &rec[i];

	MUST(o->times == 1);
	if (is_one_deeper(i))
		return;
	if (o->verdict != r->verdict) {
		fprintf(stderr, "entry %u: %s together, %s alone\n", i,
			o->verdict < N_REASON ? reason_info[o->verdict].name : "go",
			r->verdict < N_REASON ? reason_info[r->verdict].name : "go");
		abort();
	}
	MUST(o->family == r->family);
	MUST(o->family == 0 || o->l3_len == r->l3_bytes);
	MUST(!r->looked_up || o->path == path_in_the_end(r));
	if (r->verdict == PUNT_ttl_expired || r->verdict == PUNT_unreach)
		MUST(o->cause == r->cause);
	MUST(r->verdict != WATCH_GO || o->out_ifidx == r->out_ifidx);
}

/* Check the packets in the buffers of the ports. Returns their number. */
static unsigned int
sent(void)
{
	unsigned int n = 0;

	for (unsigned int k = 0; k < fwd.n_tx_used; k++) {
		uint16_t port = fwd.tx_used[k];
		struct tx_buffer *tx = &fwd.tx[port];

		for (unsigned int j = 0; j < tx->n; j++, n++) {
			struct packet *p = (struct packet *)(void *)tx->m[j];
			uint16_t by = tx->vlan != 0 ? tx->vlan : tx_ifidx(&p->m, port);

			MUST(p >= packet && p < packet + BURST_MAX);
			MUST(outcome[p - packet].verdict == VERDICT_GO);
			MUST(outcome[p - packet].out_ifidx == by);
			MUST(by < PORT_MAX || tx->vlan != 0 || tx->has_vlans);
			MUST(tx->has_inserts || (p->m.ol_flags & RTE_MBUF_F_TX_VLAN) == 0);
			MUST(rte_mbuf_refcnt_read(&p->m) == KEPT);
			rte_mbuf_refcnt_set(&p->m, 1); /* a second send would be found */
		}
		memset(tx, 0, offsetof(struct tx_buffer, m));
	}
	fwd.n_tx_used = 0;
	return n;
}

/* Check the packets in the punt rings, with the data for the punt thread. */
static void
punted(void)
{
	for (unsigned int k = 0; k < N_PUNT_CLASS; k++) {
		void *m;

		while (rte_ring_sc_dequeue(conf.rings.punt[k], &m) == 0) {
			struct packet *p = m;
			unsigned int i = (unsigned int)(p - packet);
			const struct watch_record *r = &rec[i];

			MUST(i < BURST_MAX && rte_mbuf_refcnt_read(&p->m) == KEPT);
			rte_mbuf_refcnt_set(&p->m, 1);
			if (is_one_deeper(i))
				continue;
			MUST(p->meta.reason == r->verdict && p->meta.class == k);
			MUST(p->meta.family == r->family);
			if (conf.bfd != NULL && k == CLASS_bfd)
				bfd_handed_over(&p->m);
			else if (conf.bfd != NULL && r->class == CLASS_bfd)
				MUST(k == CLASS_control_new);
			else
				MUST(k == r->class);
			MUST(p->meta.in_ifidx == r->in_ifidx);
			/*
			 * End.T of SRv6: the VRF of an ICMP error is not that of the
			 * lookup.
			 */
			MUST(!r->looked_up || p->meta.vrf == r->vrf ||
			     (p->meta.has_lookup_vrf && p->meta.lookup_vrf == r->vrf &&
			      p->meta.vrf == r->icmp_vrf));
			MUST(p->meta.mtu_bytes == alone[i].meta.mtu_bytes);
		}
	}
}

static void
walk_together(const struct packet_port *port, unsigned int n, bool bfd)
{
	unsigned int n_go = 0, cut = below(4) == 0 ? below(n) : 0;
	uint64_t forwarded = count.forwarded[0] + count.forwarded[1] + count.forwarded[2];
	uint8_t filler = (uint8_t)below(256);

	conf.bfd = bfd ? bfd_sessions(port->ifidx) : NULL;
	for (unsigned int i = 0; i < n; i++) {
		packet_fill(&packet[i], &given[i], filler);
		if (bfd)
			bfd_seen(&given[i]);
	}
	memset(outcome, 0, sizeof(outcome));
	memset(&burst, 0, sizeof(burst));
	/* The second walk finds `burst` and the buffers as the first walk left them. */
	for (unsigned int from = 0, to; from < n; from = to) {
		to = from < cut ? cut : n;
		burst.n = (uint16_t)(to - from);
		for (unsigned int i = from; i < to; i++)
			burst.m[i - from] = &packet[i].m;
		handle(port, &burst);
	}
	for (unsigned int i = 0; i < n; i++) {
		same_verdict(i);
		n_go += is_one_deeper(i) ? outcome[i].verdict == VERDICT_GO
					 : rec[i].verdict == WATCH_GO;
	}
	MUST(sent() == n_go);
	MUST(count.forwarded[0] + count.forwarded[1] + count.forwarded[2] - forwarded ==
	     n_go);
	punted();
	if (bfd)
		bfd_counted();
	for (unsigned int i = 0; i < n; i++) {
		/* Each packet was sent, put in a ring or freed exactly once. */
		MUST(rte_mbuf_refcnt_read(&packet[i].m) == 1);
		if (rec[i].verdict >= N_DROP)
			same_frame(i, rec[i].verdict == WATCH_GO);
		packet_end(&packet[i]);
	}
}

/* Return true if the frame has tags and ends before the header behind them. */
static bool
ends_in_tags(const struct given *g)
{
	unsigned int at = VLAN_AT;

	while (at < VLAN_AT + VLAN_TAGS * VLAN_BYTES && at + 2 <= g->first &&
	       (get_be16(g->frame + at) == VLAN_C_TYPE ||
		get_be16(g->frame + at) == VLAN_S_TYPE))
		at += VLAN_BYTES;
	return at > VLAN_AT && at + 2 > g->first;
}

/*
 * Remove the frames that end within their tags, and return the number of the others. Such a
 * frame belongs to the interface of the other frames in a burst with the same tags, but
 * alone to the port, because fwd_look() checks the length of the first frame only. No such
 * frame is sent, but the drop reasons differ.
 */
static unsigned int
whole_ones(unsigned int n)
{
	unsigned int whole = 0;

	for (unsigned int i = 0; i < n; i++)
		if (!ends_in_tags(&given[i]))
			given[whole++] = given[i];
	return whole;
}

/*
 * Forget the patterns of earlier inputs, and let packets be compared with patterns from now
 * on.
 */
static void
patterns_begin(void)
{
	memset(fwd.pattern, 0, sizeof(fwd.pattern));
	fwd.learn_from = 0;
	fwd.outer_epoch++;
	fwd.interval += DECAP_SAMPLE - fwd.interval % DECAP_SAMPLE;
	fwd.decap_gain = DECAP_GAIN_MAX;
	fwd.decap_tries = true;
}

/* Let the next walk make a pattern, and repeat the lookups of the patterns in use. */
static void
patterns_age(void)
{
	fwd.outer_epoch++;
	fwd.interval += DECAP_SAMPLE;
	fwd.found.ifidx = 0;
	fwd.found_svi = NULL;
}

void
packet_burst(struct fib *fib, const struct packet_port *port, const uint8_t *frame,
	     uint16_t n, uint64_t seed)
{
	unsigned int entries;
	bool bfd;

	if (conf.tx_burst == 0)
		rings_make();
	fwd.conf = &conf;
	fwd.fib = fib;
	fwd.tries = &fib->copy[0];
	fwd.count = &count;
	fwd.adj_used = adj_used;
	fwd.tx_burst = conf.tx_burst;
	/* The tables have changed since the last burst. */
	patterns_begin();
	patterns_age();
	chance_seed(seed);
	bfd = below(2) == 0;
	entries = whole_ones(
		frames_make(given, port, fib->iface[port->ifidx]->mac, frame, n));
	if (entries == 0)
		return;
	memset(adj_used, ADJ_UNUSED, sizeof(adj_used));
	form_set(RULES);
	for (unsigned int i = 0; i < entries; i++)
		walk_alone(port, i);
	/* enum fwd_isa and the vectors of enum form have the same order. */
	for (enum fwd_isa isa = FWD_SCALAR; isa <= fwd_isa_best(); isa++) {
		form_set(SCALAR + (isa - FWD_SCALAR));
		walk_together(port, entries, bfd);
		patterns_age();
	}
	/*
	 * If the CPU has no vector code, walk once more: the first walk has made patterns.
	 */
	if (fwd_isa_best() == FWD_SCALAR)
		walk_together(port, entries, bfd);
	for (unsigned int i = 0; i < entries; i++)
		packet_end(&alone[i]);
}
