/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fsm: the state machine of a BFD session. The numbers of sections are those of RFC 5880.
 *
 * Each entry point notes the intervals that the caller works with, changes the session, and
 * returns the differences as actions. So no path can forget to report a change to the
 * caller.
 *
 * Demand mode is never requested. A neighbor that requests it gets no periodic packets
 * (6.6).
 */
#include "bfd/fsm.h"

#include <string.h>

/*
 * Minimum time from the end of a poll sequence to the start of the next. A Final does not
 * show which Poll it answers, so a late Final of the previous sequence must not end the
 * next sequence.
 */
#define POLL_GAP_NS 1000000000ull

/*
 * Upper limit of the neighbor's interval for the packets that announce AdminDown: a
 * neighbor with a longer interval must not delay the end of a session that bfdd has
 * deleted.
 */
#define TOLD_INTERVAL_MAX_US 10000000u

static uint32_t
us_larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* --- intervals ------------------------------------------------------------------------ */

uint32_t
bfd_fsm_tx_us(const struct bfd_fsm *f)
{
	/*
	 * Ignore the required interval of a neighbor that is no longer known: if this
	 * interval was 0, no packet of this side would start the session again.
	 */
	if (f->your_discr == 0)
		return f->conf.passive ? 0 : f->used_tx_us;
	if (f->remote_min_rx_us == 0)
		return 0;
	if (f->remote_demand && f->state == BFD_UP && f->remote_state == BFD_UP &&
	    !f->polling)
		return 0;
	return us_larger(f->used_tx_us, f->remote_min_rx_us);
}

uint64_t
bfd_fsm_detect_us(const struct bfd_fsm *f)
{
	/* The neighbor does not send if this side requires no packets. */
	if (f->your_discr == 0 || f->used_rx_us == 0)
		return 0;
	return (uint64_t)f->remote_mult * us_larger(f->used_rx_us, f->remote_min_tx_us);
}

uint64_t
bfd_fsm_expire_at(const struct bfd_fsm *f)
{
	uint64_t detect_us = bfd_fsm_detect_us(f);

	return detect_us == 0 ? BFD_NEVER : f->heard_at + detect_us * 1000;
}

uint32_t
bfd_fsm_echo_us(const struct bfd_fsm *f)
{
	if (!f->conf.echo || f->conf.multihop || f->state != BFD_UP ||
	    f->remote_min_echo_rx_us == 0)
		return 0;
	return us_larger(f->conf.echo_tx_us, f->remote_min_echo_rx_us);
}

uint32_t
bfd_jitter_us(uint32_t interval_us, uint8_t mult, uint32_t random)
{
	uint64_t span = (uint64_t)interval_us * (mult == 1 ? 15 : 25) / 100;
	uint64_t us = (uint64_t)interval_us * 75 / 100 + (span * random >> 32);

	return us == 0 && interval_us != 0 ? 1 : (uint32_t)us;
}

/* --- actions -------------------------------------------------------------------------- */

/* The intervals with which the caller works, and the state. */
struct view {
	uint64_t detect_us;
	uint32_t tx_us, echo_us;
	uint8_t state;
};

static struct view
view_of(const struct bfd_fsm *f)
{
	return (struct view){
		.detect_us = bfd_fsm_detect_us(f),
		.tx_us = bfd_fsm_tx_us(f),
		.echo_us = bfd_fsm_echo_us(f),
		.state = f->state,
	};
}

static unsigned int
acts_since(const struct view *before, const struct bfd_fsm *f, uint64_t now)
{
	struct view after = view_of(f);
	unsigned int acts = 0;

	if (after.state != before->state) {
		acts |= BFD_ACT_STATE;
		/*
		 * 6.8.7: a packet between the periodic packets announces a change of state.
		 * A neighbor that wants no periodic packets gets it as well.
		 */
		if ((after.tx_us != 0 || f->your_discr != 0) && now < f->silent_at)
			acts |= BFD_ACT_SEND;
	}
	if (after.tx_us != before->tx_us) {
		acts |= BFD_ACT_TX;
		if (before->tx_us == 0 && now < f->silent_at)
			acts |= BFD_ACT_SEND;
	}
	if (after.detect_us != before->detect_us)
		acts |= BFD_ACT_DETECT;
	if (after.echo_us != before->echo_us)
		acts |= BFD_ACT_ECHO;
	return acts;
}

/* --- our timers: 6.8.3 ---------------------------------------------------------------- */

static bool
intervals_are_announced(const struct bfd_fsm *f)
{
	return f->announced_tx_us == f->conf.min_tx_us &&
	       f->announced_rx_us == f->conf.min_rx_us;
}

/* Set the announced intervals from the configuration; in state Up use a poll sequence. */
static void
follow_conf(struct bfd_fsm *f, uint64_t now)
{
	uint32_t tx = f->conf.min_tx_us, rx = f->conf.min_rx_us;

	if (f->state != BFD_UP) {
		f->polling = false;
		f->poll_next_at = 0;
		f->announced_tx_us = f->used_tx_us = us_larger(tx, BFD_SLOW_US);
		/* 6.8.3 requires this only for tx; bfdd does it for rx as well. */
		f->announced_rx_us = f->used_rx_us =
			rx == 0 ? 0 : us_larger(rx, BFD_SLOW_US);
		return;
	}
	/*
	 * A change during a sequence waits for the next sequence, because a Final does not
	 * show which values the neighbor saw.
	 */
	if (f->polling || intervals_are_announced(f) || now < f->poll_next_at)
		return;
	f->polling = true;
	f->announced_tx_us = tx;
	f->announced_rx_us = rx;
	/*
	 * To send more often, or to expect fewer packets, needs no confirmation. A required
	 * interval of 0 is the longest of all: no packets.
	 */
	if (tx < f->used_tx_us)
		f->used_tx_us = tx;
	if (f->used_rx_us != 0 && (rx == 0 || rx > f->used_rx_us))
		f->used_rx_us = rx;
}

static void
end_poll(struct bfd_fsm *f, uint64_t now)
{
	f->polling = false;
	f->used_tx_us = f->announced_tx_us;
	f->used_rx_us = f->announced_rx_us;
	f->poll_next_at = now + POLL_GAP_NS;
}

/* --- states --------------------------------------------------------------------------- */

static void
set_state(struct bfd_fsm *f, enum bfd_state state, enum bfd_diag diag, uint64_t now)
{
	if (f->state == BFD_UP) {
		f->down_diag = (uint8_t)diag;
		if (state == BFD_DOWN) {
			f->n_downs++;
			f->failed = true;
		}
	}
	if (state == BFD_UP) {
		f->was_up = true;
		f->failed = false;
	}
	f->state = (uint8_t)state;
	f->diag = (uint8_t)diag;
	f->state_at = now;
	f->silent_at = BFD_NEVER;
}

/*
 * Enter AdminDown. 6.8.16: announce it to the neighbor for the neighbor's detection time.
 */
static void
admin_down(struct bfd_fsm *f, uint64_t now)
{
	uint64_t its_interval_us;

	set_state(f, BFD_ADMIN_DOWN, BFD_DIAG_ADMIN, now);
	f->failed = false;
	follow_conf(f, now);
	its_interval_us = us_larger(f->used_tx_us, f->remote_min_rx_us);
	if (its_interval_us > TOLD_INTERVAL_MAX_US)
		its_interval_us = TOLD_INTERVAL_MAX_US;
	f->silent_at = now;
	if (f->your_discr != 0)
		f->silent_at += f->conf.mult * its_interval_us * 1000;
}

/*
 * Change the state by the received state: 6.8.6, from "If received state is AdminDown" on;
 * 6.2 has the diagram.
 */
static void
obey_state(struct bfd_fsm *f, enum bfd_state received, uint64_t now)
{
	switch (received) {
	case BFD_ADMIN_DOWN:
		if (f->state != BFD_DOWN)
			set_state(f, BFD_DOWN, BFD_DIAG_NEIGHBOR_DOWN, now);
		/* RFC 5882, 3.2: do not treat the neighbor as failed. */
		f->failed = false;
		break;
	case BFD_DOWN:
		if (f->state == BFD_DOWN)
			set_state(f, BFD_INIT, f->diag, now);
		else if (f->state == BFD_UP)
			set_state(f, BFD_DOWN, BFD_DIAG_NEIGHBOR_DOWN, now);
		break;
	case BFD_INIT:
		if (f->state == BFD_DOWN || f->state == BFD_INIT)
			set_state(f, BFD_UP, BFD_DIAG_NONE, now);
		break;
	case BFD_UP:
		if (f->state == BFD_INIT)
			set_state(f, BFD_UP, BFD_DIAG_NONE, now);
		break;
	}
}

/* --- entry points --------------------------------------------------------------------- */

static void
take_conf(struct bfd_fsm *f, const struct bfd_conf *conf)
{
	/* On the wire, a multiplier of 0 and a desired interval of 0 are invalid: 4.1. */
	f->conf = *conf;
	if (f->conf.mult == 0)
		f->conf.mult = 1;
	if (f->conf.min_tx_us == 0)
		f->conf.min_tx_us = 1;
}

void
bfd_fsm_begin(struct bfd_fsm *f, uint32_t my_discr, const struct bfd_conf *conf,
	      uint64_t now)
{
	*f = (struct bfd_fsm){
		.my_discr = my_discr,
		.remote_state = BFD_DOWN,
		.state = BFD_DOWN,
		.state_at = now,
		.silent_at = BFD_NEVER,
	};
	take_conf(f, conf);
	follow_conf(f, now);
	if (f->conf.shutdown)
		admin_down(f, now);
}

unsigned int
bfd_fsm_configure(struct bfd_fsm *f, const struct bfd_conf *conf, uint64_t now)
{
	uint8_t was[BFD_PACKET_BYTES], is[BFD_PACKET_BYTES];
	struct view before = view_of(f);
	unsigned int acts;

	bfd_fsm_packet(f, false, was);
	take_conf(f, conf);
	if (f->conf.shutdown && f->state != BFD_ADMIN_DOWN)
		admin_down(f, now);
	else if (!f->conf.shutdown && f->state == BFD_ADMIN_DOWN)
		set_state(f, BFD_DOWN, BFD_DIAG_NONE, now);
	follow_conf(f, now);
	acts = acts_since(&before, f, now);
	bfd_fsm_packet(f, false, is);
	/*
	 * 6.8.7: new contents are sent between the periodic packets. 6.5: a poll sequence
	 * adds no packets to the periodic ones.
	 */
	if (memcmp(was, is, sizeof(is)) != 0 && !f->polling && bfd_fsm_tx_us(f) != 0 &&
	    now < f->silent_at)
		acts |= BFD_ACT_SEND;
	return acts;
}

unsigned int
bfd_fsm_shutdown(struct bfd_fsm *f, bool shutdown, uint64_t now)
{
	struct bfd_conf conf = f->conf;

	conf.shutdown = shutdown;
	return bfd_fsm_configure(f, &conf, now);
}

/* Note the fields of a packet. Returns true if one has changed. */
static bool
note_remote(struct bfd_fsm *f, const struct bfd_packet *p)
{
	bool same = f->your_discr == p->my_discr && f->remote_state == p->state &&
		    f->remote_diag == p->diag && f->remote_mult == p->mult &&
		    f->remote_min_tx_us == p->min_tx_us &&
		    f->remote_min_rx_us == p->min_rx_us &&
		    f->remote_min_echo_rx_us == p->min_echo_rx_us &&
		    f->remote_demand == p->demand && f->remote_cbit == p->cbit;

	f->your_discr = p->my_discr;
	f->remote_state = p->state;
	f->remote_diag = p->diag;
	f->remote_mult = p->mult;
	f->remote_min_tx_us = p->min_tx_us;
	f->remote_min_rx_us = p->min_rx_us;
	f->remote_min_echo_rx_us = p->min_echo_rx_us;
	f->remote_demand = p->demand;
	f->remote_cbit = p->cbit;
	return !same;
}

unsigned int
bfd_fsm_receive(struct bfd_fsm *f, const struct bfd_packet *p, uint64_t now)
{
	struct view before = view_of(f);
	unsigned int acts = 0;

	if (p->your_discr != 0 && p->your_discr != f->my_discr)
		return BFD_ACT_FOREIGN;
	if (note_remote(f, p))
		acts |= BFD_ACT_REMOTE;
	/*
	 * In AdminDown, 6.8.6 does not treat the packet as received. This function does,
	 * because otherwise each packet would set a discriminator that has already expired.
	 */
	bfd_fsm_heard(f, now);
	if (f->polling && p->final) {
		end_poll(f, now);
		acts |= BFD_ACT_POLL_ENDED;
	}
	if (f->state != BFD_ADMIN_DOWN) {
		obey_state(f, p->state, now);
		if (p->poll)
			acts |= BFD_ACT_FINAL;
	}
	follow_conf(f, now);
	return acts | acts_since(&before, f, now);
}

unsigned int
bfd_fsm_expired(struct bfd_fsm *f, uint64_t now)
{
	struct view before = view_of(f);

	if (now < bfd_fsm_expire_at(f))
		return 0;
	f->your_discr = 0; /* 6.8.1 */
	if (f->state == BFD_INIT || f->state == BFD_UP)
		set_state(f, BFD_DOWN, BFD_DIAG_EXPIRED, now);
	follow_conf(f, now);
	return BFD_ACT_REMOTE | acts_since(&before, f, now);
}

unsigned int
bfd_fsm_echo_lost(struct bfd_fsm *f, uint64_t now)
{
	struct view before = view_of(f);

	if (f->state != BFD_UP)
		return 0;
	set_state(f, BFD_DOWN, BFD_DIAG_ECHO, now);
	follow_conf(f, now);
	return acts_since(&before, f, now);
}

void
bfd_fsm_heard(struct bfd_fsm *f, uint64_t at)
{
	if (at > f->heard_at)
		f->heard_at = at;
}

void
bfd_fsm_resume(struct bfd_fsm *f, uint64_t now)
{
	if (f->heard_at != 0)
		f->heard_at = now;
}

/* --- packets -------------------------------------------------------------------------- */

void
bfd_fsm_packet(const struct bfd_fsm *f, bool final, uint8_t out[BFD_PACKET_BYTES])
{
	struct bfd_packet p = {
		.my_discr = f->my_discr,
		.your_discr = f->your_discr,
		.min_tx_us = f->announced_tx_us,
		.min_rx_us = f->announced_rx_us,
		/*
		 * As in bfdd, set this over several hops, too, although no peer sends echo
		 * packets there.
		 */
		.min_echo_rx_us = f->conf.min_echo_rx_us,
		.version = BFD_VERSION,
		.diag = f->diag,
		.state = f->state,
		.mult = f->conf.mult,
		.length = BFD_PACKET_BYTES,
		.poll = f->polling && !final,
		.final = final,
		.cbit = f->conf.cbit,
	};

	bfd_packet_write(&p, out);
}

bool
bfd_fsm_is_steady(const struct bfd_fsm *f, uint8_t rx_expect[BFD_PACKET_BYTES])
{
	struct bfd_packet p = {
		.my_discr = f->your_discr,
		.your_discr = f->my_discr,
		.min_tx_us = f->remote_min_tx_us,
		.min_rx_us = f->remote_min_rx_us,
		.min_echo_rx_us = f->remote_min_echo_rx_us,
		.version = BFD_VERSION,
		.diag = f->remote_diag,
		.state = f->remote_state,
		.mult = f->remote_mult,
		.length = BFD_PACKET_BYTES,
		.cbit = f->remote_cbit,
		.demand = f->remote_demand,
	};

	if (f->state != BFD_UP || f->remote_state != BFD_UP || f->polling ||
	    !intervals_are_announced(f))
		return false;
	bfd_packet_write(&p, rx_expect);
	return true;
}
