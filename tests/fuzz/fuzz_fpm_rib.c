/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any octets pass the frame cutter, decoder, queue and RIB, while links, addresses,
 * neighbors, sessions and time change at random, zebra restarts, rib pauses until the queue
 * exceeds its limit, and the FIB is broken on purpose. The RIB stays sound (invariants.c),
 * the audit finds each error and reports no other, and when zebra has no routes, the RIB
 * has none of its objects.
 *
 * A libFuzzer target (`make fuzz`; mutate.c is its mutator). Built into a unit test it
 * replays the corpus with any compiler. control.h says what an input is.
 */
#include <errno.h>
#include <limits.h>

#include "../unit/rib_print.h"
#include "../unit/rib_stream.h"
#include "control.h"
#include "invariants.h"

/*
 * A rig costs more time than most inputs, so many inputs share one. Each input must leave
 * the rig as it was; the fuzzer checks that.
 */
#define INPUTS_A_RIG 500u
#define N_LINK       4u
/* The largest number of these expensive operations in one input. */
#define MAX_SETTLE 40u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void fuzz_end(void); /* called by programs that are not linked with libFuzzer */

static const char *const addr_of[N_LINK][2] = {
	{"10.0.1.1/24", "2001:db8:1::1/64"},
	{"10.0.2.1/24", "2001:db8:2::1/64"},
	{"10.0.2.2/24", "2001:db8:2::2/64"}, /* the same subnet on another link */
	{"10.0.0.1/16", "2001:db8::1/48"},
};

static struct rig *rig;
static unsigned int n_inputs, n_settles;
/* The number of allocations of the tries that will succeed; UINT_MAX: all. */
static unsigned int memory_left = UINT_MAX;

static void *
alloc(void *ctx, size_t bytes, size_t align)
{
	void *mem = NULL;

	if (memory_left == 0 || posix_memalign(&mem, align < 8 ? 8 : align, bytes) != 0)
		return NULL;
	memory_left -= memory_left != UINT_MAX;
	return mem;
}

static void
release(void *ctx, void *mem)
{
	free(mem);
}

static struct rig *
rig_with_poor_tries(void)
{
	struct rig *g = rig_new();
	struct poptrie **pt[2] = {&g->fib->copy[0].pt4, &g->fib->copy[0].pt6};

	for (unsigned int v = 0; v < 2; v++) {
		struct poptrie_conf conf = {.family = v == 0 ? POPTRIE_IP4 : POPTRIE_IP6,
					    .alloc = alloc,
					    .free = release,
					    .retire = rib_retire,
					    .ctx = &g->w};

		poptrie_destroy(*pt[v]);
		assert_int_equal(poptrie_create(pt[v], &conf), 0);
	}
	return g;
}

/* Create links 2 to 5; link 5 is no port. */
static void
kernel_at_rest(void)
{
	for (unsigned int i = 0; i < N_LINK; i++) {
		rig_link(rig, 2 + i, i == N_LINK - 1 ? 0 : (uint16_t)(1 + i), true);
		for (unsigned int v = 0; v < 2; v++)
			rig_addr(rig, 2 + i, addr_of[i][v], false);
	}
	rig_settle(rig);
}

/*
 * Give all that was withheld: memory, and the messages that neigh did not send while it was
 * held. For an adjacency that waits for both, MSG_ADJ_READY comes before MSG_ADJ_FREED.
 * After that the RIB waits for nothing.
 */
static void
give_all(void)
{
	static const enum msg_type said[] = {MSG_ADJ_READY, MSG_ADJ_FREED};

	memory_left = UINT_MAX;
	rig->hold_ready = rig->hold_freed = false;
	for (unsigned int which = 0; which < 2; which++)
		for (uint32_t i = 1; i <= rig->rib->adjs.high; i++) {
			const struct adj *a = &rig->rib->adjs.v[i];
			struct msg_adj *m;

			if (which == 0 ? !a->asked : a->state != ADJ_UNWATCHED)
				continue;
			m = msg_new(said[which], sizeof(*m));
			m->adj = i;
			m->resolved = true;
			rib_on_msg(rig->rib, &m->m);
		}
	rig_settle(rig);
	/* A walk that repairs a trie gives up for a round when it fails. */
	while (rig->rib->resync.due)
		rig_settle(rig);
}

static void
settle(void)
{
	if (++n_settles > MAX_SETTLE)
		return;
	give_all();
	rib_must_be_sound(rig);
}

static void
link_changes(uint8_t arg)
{
	unsigned int i = arg % N_LINK;

	if ((arg & 0x10) != 0)
		rig_link_gone(rig, 2 + i);
	else
		rig_link(rig, 2 + i, (arg & 0x20) != 0 ? 0 : (uint16_t)(1 + i),
			 (arg & 8) == 0);
}

static void
neighbor_changes(uint8_t arg)
{
	struct rib *rib = rig->rib;
	uint32_t seen = 0;

	for (uint32_t i = 1; i <= rib->adjs.high; i++) {
		struct msg_adj *m;

		if (rib->adjs.v[i].state != ADJ_WATCHED || seen++ != arg % 8u)
			continue;
		m = msg_new(MSG_ADJ_STATE, sizeof(*m));
		m->adj = i;
		m->alive = (arg & 0x80) != 0;
		m->resolved = m->alive && (arg & 0x40) == 0;
		rib_on_msg(rib, &m->m);
		return;
	}
}

/*
 * Return the number of routes in force. A connected route whose link is down does not
 * count.
 */
static size_t
n_routes_in_force(void)
{
	size_t n = 0;

	for (uint32_t i = 1; i <= tables_walk_end(&rig->rib->tables); i++) {
		const struct route *r = tables_walk_at(&rig->rib->tables, i);

		n += r != NULL && route_effective(r) != 0;
	}
	return n;
}

static void
ask(void)
{
	static const enum query_kind kind[] = {QUERY_ROUTES, QUERY_NEXTHOPS, QUERY_GROUPS,
					       QUERY_SUMMARY};

	give_all();
	for (unsigned int i = 0; i < 3; i++) {
		struct msg_query q = {.kind = kind[i], .max = 50, .all_tables = true};
		json_t *rows = rig_ask(rig, &q, NULL), *row;
		size_t at;

		json_array_foreach (rows, at, row)
			MUST(json_is_object(row));
		MUST(kind[i] != QUERY_ROUTES || at == n_routes_in_force());
		json_decref(rows);
	}
}

/* Compare all, as `fpmctl audit` does. Return the number of differences. */
static json_int_t
audit(bool repair)
{
	struct msg_query q = {.kind = QUERY_AUDIT, .max = 20, .repair = repair};
	json_t *rows = rig_ask(rig, &q, NULL);
	const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
	json_int_t n = json_integer_value(json_object_get(last, "differences"));

	MUST(json_array_size(rows) == (size_t)n + 1);
	json_decref(rows);
	rig_settle(rig);
	return n;
}

static void
breaks_and_mends(uint8_t arg)
{
	struct msg_query q = {.kind = QUERY_BREAK,
			      .max = 1,
			      .has_prefix = true,
			      .breaking = (uint8_t)(BREAK_ROUTE + arg % 3)};
	uint32_t seen = 0;

	give_all();
	for (uint32_t i = 1; i <= rig->rib->tables.main.high; i++) {
		const struct route *r = route_at(&rig->rib->tables.main, i);

		/*
		 * Only a dump, which this fuzzer lacks, gives a lost route of the kernel
		 * back.
		 */
		if (r->family == 0 || r->zslot == 0 || seen++ != arg / 4u)
			continue;
		q.prefix = route_prefix(r);
		json_decref(rig_ask(rig, &q, NULL));
		rig_settle(rig);
		(void)audit(true);
		break;
	}
	MUST(audit(false) == 0);
	rib_must_be_sound(rig);
}

static void
session_changes(struct stream *s, uint8_t arg)
{
	uint32_t other_pid = s->other_pid + (arg & 1);

	stream_close(s);
	stream_open(s, rig);
	s->other_pid = other_pid;
}

static void
control(struct stream *s, uint8_t what, uint8_t arg, size_t *segment)
{
	what %= CONTROL_N;
	if (what == CONTROL_SETTLE || what >= CONTROL_ASK)
		stream_go_on(s); /* these examine the result of all messages so far */
	switch ((enum control)what) {
	case CONTROL_ROUND:
		rig_go(rig);
		break;
	case CONTROL_SETTLE:
		settle();
		break;
	case CONTROL_LINK:
		link_changes(arg);
		break;
	case CONTROL_ADDR:
		rig_addr(rig, 2 + arg % N_LINK, addr_of[arg % N_LINK][arg >> 2 & 1],
			 (arg & 8) != 0);
		break;
	case CONTROL_NEIGH:
		neighbor_changes(arg);
		break;
	case CONTROL_SESSION:
		session_changes(s, arg);
		break;
	case CONTROL_TIME:
		rig_now_ms += arg * 1000u;
		rig_go(rig);
		break;
	case CONTROL_SEGMENT:
		*segment = arg;
		break;
	case CONTROL_ASK:
		if (++n_settles <= MAX_SETTLE)
			ask();
		break;
	case CONTROL_HOLD:
		if (++n_settles > MAX_SETTLE)
			break;
		give_all();
		rig->hold_ready = (arg & 1) != 0;
		rig->hold_freed = (arg & 2) != 0;
		break;
	case CONTROL_MEMORY:
		memory_left = arg == 255 ? UINT_MAX : arg;
		break;
	case CONTROL_AUDIT:
		if (++n_settles > MAX_SETTLE)
			break;
		give_all();
		MUST(audit((arg & 1) != 0) == 0);
		break;
	case CONTROL_BREAK:
		if (++n_settles <= MAX_SETTLE)
			breaks_and_mends(arg);
		break;
	case CONTROL_LIMIT:
		if (arg != 0)
			stream_hold(s, arg * 512u);
		break;
	case CONTROL_N:
		break;
	}
}

/* Return the octets of the next well-formed frame; 0: there is none. */
static size_t
frame_octets(const uint8_t *p, size_t left, bool *is_control)
{
	size_t len;

	if (left < 4 || p[0] != 1 || (p[1] != 1 && p[1] != CONTROL_TYPE))
		return 0;
	*is_control = p[1] == CONTROL_TYPE;
	len = (size_t)p[2] << 8 | p[3];
	return len < 4 || len > left ? 0 : len;
}

static int
feed(struct stream *s, const uint8_t *p, size_t len, size_t segment)
{
	int rc = 0;

	for (size_t n; len > 0 && rc == 0; p += n, len -= n) {
		n = segment == 0 || segment > len ? len : segment;
		rc = stream_feed(s, p, n);
		if (rc == 0 && queue_over_limit(&s->queue))
			rc = -ENOBUFS;
		if (segment != 0)
			rig_go(rig);
	}
	return rc;
}

/*
 * Return the number of octets if one session took all of them, without a control frame and
 * without a DELNEXTHOP. Otherwise return 0.
 */
static size_t
play(const uint8_t *p, size_t left)
{
	size_t segment = 0, n, plain = left;
	bool is_control;
	struct stream s;

	stream_open(&s, rig);
	for (; left > 0; p += n, left -= n) {
		n = frame_octets(p, left, &is_control);
		if (n > 0 && is_control) {
			for (size_t i = 4; i + 1 < n; i += 2)
				control(&s, p[i], p[i + 1], &segment);
			plain = 0;
			continue;
		}
		if (n == 0)
			n = left;
		if (feed(&s, p, n, segment) == 0)
			continue;
		/* As in the daemon: the session ends and zebra connects again, while rib
		 * runs on. */
		session_changes(&s, 0);
		plain = 0;
	}
	/* The effect of a DELNEXTHOP of a next hop in use depends on the rounds
	 * (nexthop.c). */
	plain = s.decoded.nexthop_dels == 0 ? plain : 0;
	stream_close(&s);
	give_all();
	return plain;
}

/* Play the same octets in other pieces and rounds: the RIB must come to the same state. */
static void
again_in_pieces(const uint8_t *p, size_t len)
{
	uint64_t want = rig_fingerprint(rig);
	struct stream s;

	stream_withdraw_all(rig);
	stream_open(&s, rig);
	for (size_t n; len > 0; p += n, len -= n) {
		n = 1 + (p[0] + 8 * len) % 300;
		n = n > len ? len : n;
		MUST(stream_feed(&s, p, n) == 0);
		if ((len & 1) != 0)
			rig_settle(rig);
		else
			rig_go(rig);
	}
	stream_close(&s);
	rig_settle(rig);
	MUST(rig_fingerprint(rig) == want);
}

void
fuzz_end(void)
{
	if (rig != NULL)
		rig_free(rig);
	rig = NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t plain;

	log_set_level(LOG_LEVEL_ERROR);
	if (rig == NULL) {
		rig = rig_with_poor_tries();
		kernel_at_rest();
	}
	n_settles = 0;
	plain = play(data, size);
	rig_settle(rig);
	rib_must_be_sound(rig);
	if (plain > 0)
		again_in_pieces(data, plain);
	kernel_at_rest();
	stream_withdraw_all(rig);
	rib_must_be_sound(rig);
	if (++n_inputs % INPUTS_A_RIG == 0)
		fuzz_end();
	return 0;
}
