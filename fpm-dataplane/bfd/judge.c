/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge: handle timers that are due. When a detection time has ended, the session counts as
 * failed only after each forwarder has polled its queues once more: a packet that waits
 * there, because a forwarder had no CPU, must not count as missing.                  [bfd]
 */
#include "base/idle.h"
#include "base/log.h"
#include "bfd/impl.h"
#include "port/packet_meta.h"

#define LOOK_MAX_NS \
	1000000000ull /* longest wait; a forwarder without a round in it forwards nothing */

/* Note the rounds of all forwarders, and wake sleeping forwarders. */
static void
forwarders_ask(struct bfd *b)
{
	struct counters *const *blocks;
	unsigned int n = counters_blocks(&blocks);

	b->asking = true;
	b->asked_ns = monotonic_ns();
	for (unsigned int i = 0; i < n; i++) {
		b->asked_round[i] = counter_read(&blocks[i]->rounds);
		b->asked_idle[i] = counter_read(&blocks[i]->idle_polls);
	}
	for (unsigned int i = 0; i < b->setup.n_fwd; i++)
		idle_wake(b->setup.rings[i].idle);
}

/*
 * Return true if a forwarder has received all packets that were in its queues at the time
 * of forwarders_ask(): it has found the queues empty, or its rounds since then have taken
 * as many packets as a queue holds. One empty round is no proof, because the round that ran
 * at that time may have polled the queues before. So two empty rounds are needed.
 */
static bool
forwarder_has_looked(const struct bfd *b, const struct counters *c, unsigned int i)
{
	return counter_read(&c->idle_polls) - b->asked_idle[i] >= 2 ||
	       counter_read(&c->rounds) - b->asked_round[i] >= 2 + b->setup.full_rounds;
}

static bool
forwarders_have_looked(const struct bfd *b)
{
	struct counters *const *blocks;
	unsigned int n = counters_blocks(&blocks);

	for (unsigned int i = 0; i < n; i++)
		if (blocks[i]->forwards && !forwarder_has_looked(b, blocks[i], i))
			return false;
	return true;
}

/*
 * Return true if all forwarders have polled their queues since forwarders_ask(), or if
 * LOOK_MAX_NS is over: a forwarder that hangs must not stop the detection of all sessions.
 */
static bool
question_is_over(const struct bfd *b)
{
	static struct log_limit limit;
	unsigned int missed;

	if (!b->asking || forwarders_have_looked(b))
		return b->asking;
	if (monotonic_ns() - b->asked_ns < LOOK_MAX_NS)
		return false;
	if (log_allowed(&limit, &missed))
		log_warn("bfd: forwarder hangs effect=sessions-judged-without-it missed=%u",
			 missed);
	return true;
}

/* Handle a detection time that has ended at `when`, unless a forwarder noted a packet. */
static void
detect_due(struct bfd *b, struct session *s, uint64_t when, bool looked)
{
	unsigned int act;

	session_hear(b, s);
	if (bfd_fsm_expire_at(&s->k->fsm) > monotonic_ns()) {
		timer_set(b, s, TIMER_DETECT, bfd_fsm_expire_at(&s->k->fsm));
		return;
	}
	if (!looked || when > b->asked_ns)
		return; /* the timer stays due */
	kept_open(s->k);
	act = bfd_fsm_expired(&s->k->fsm, monotonic_ns());
	kept_close(s->k);
	session_obey(b, s, act);
}

/* Handle missing echo packets like detect_due(). */
static void
echo_due(struct bfd *b, struct session *s, uint64_t when, bool looked)
{
	const struct bfd_slot *slot = &b->setup.table->slot[BFD_SESSIONS + s->number];
	uint64_t heard = atomic_load_explicit(&slot->heard_ns, memory_order_relaxed);
	uint64_t end = heard + session_echo_us(s) * 1000ull * s->k->fsm.conf.mult;
	unsigned int act;

	if (session_echo_us(s) == 0) {
		timer_set(b, s, TIMER_ECHO, DUE_NEVER);
		return;
	}
	if (end > monotonic_ns()) {
		timer_set(b, s, TIMER_ECHO, end);
		return;
	}
	if (!looked || when > b->asked_ns)
		return;
	kept_open(s->k);
	act = bfd_fsm_echo_lost(&s->k->fsm, monotonic_ns());
	kept_close(s->k);
	session_obey(b, s, act);
}

void
timers_judge(struct bfd *b)
{
	bool looked = question_is_over(b), waits = false;
	uint64_t now = monotonic_ns();

	if (looked) {
		b->asking = false;
		rings_take(b);
		sockets_take(b);
	}
	if (due_first(&b->due) > now)
		return;
	/*
	 * `i` is a place in the heap. Go to the next place only if the timer there stays.
	 */
	for (uint32_t i = 0; i < b->due.n;) {
		uint32_t id = b->due.heap[i], n = b->due.n;
		struct session *s = &b->session[id / N_TIMER];
		uint64_t when = due_when(&b->due, id);

		if (when > now) {
			i++;
			continue;
		}
		switch (id % N_TIMER) {
		case TIMER_DETECT:
			detect_due(b, s, when, looked);
			break;
		case TIMER_ECHO:
			echo_due(b, s, when, looked);
			break;
		case TIMER_SEND:
			kernel_send(b, s);
			break;
		case TIMER_END:
			session_end_due(b, s);
			break;
		default:
			break;
		}
		if (b->due.n == n && b->due.heap[i] == id &&
		    due_when(&b->due, id) == when) {
			waits = true;
			i++;
		}
	}
	if (waits && !b->asking)
		forwarders_ask(b);
}
