/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fsm: the state machine of one BFD session: RFC 5880, section 6.8, for RFC 5881 (one hop)
 * and RFC 5883 (several hops). No input, output, clock or timer: the caller passes the time
 * and the packets, and carries out the returned actions. Any thread, one at a time for each
 * session.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, intervals are microseconds.
 *
 * The caller must:
 *   - carry out the actions (enum bfd_act) after each call that returns some;
 *   - send bfd_fsm_packet(f, false) every bfd_fsm_tx_us() less jitter, but no periodic
 *     packet while bfd_fsm_tx_us() is 0, and no packet from `silent_at` on, when a session
 *     in AdminDown may end (6.8.16);
 *   - call bfd_fsm_expired() at bfd_fsm_expire_at();
 *   - send echo packets every bfd_fsm_echo_us() while bfd_fsm_echo_us() is not 0, and call
 *     bfd_fsm_echo_lost() if conf.mult of them in a row did not come back.
 */
#ifndef BFD_FSM_H
#define BFD_FSM_H

#include <stdbool.h>
#include <stdint.h>

#include "bfd/packet.h"

#define BFD_SLOW_US 1000000u /* the shortest desired interval of a session that is not Up */
#define BFD_NEVER   UINT64_MAX /* a time that is never reached */

/* The configuration of a session. A `mult` or a `min_tx_us` of 0 is taken as 1. */
struct bfd_conf {
	uint32_t min_tx_us;      /* desired minimum transmit interval */
	uint32_t min_rx_us;      /* required minimum receive interval; 0: receive nothing */
	uint32_t min_echo_rx_us; /* announced; 0: the neighbor must not send echo packets */
	uint32_t echo_tx_us;     /* desired echo interval */
	uint8_t mult;
	bool passive;  /* send nothing until a packet arrives */
	bool shutdown; /* AdminDown */
	bool echo;     /* send echo packets if the neighbor allows it */
	bool cbit;     /* independent of the control plane */
	bool multihop; /* RFC 5883: no echo */
};

/*
 * A session. Plain data without pointers: a copy in another process is a session as well.
 */
struct bfd_fsm {
	struct bfd_conf conf;
	uint32_t my_discr, your_discr; /* your_discr 0: not known */

	/*
	 * The last packet of the neighbor. Intervals stay as they are when it falls silent.
	 */
	uint32_t remote_min_tx_us, remote_min_rx_us, remote_min_echo_rx_us;
	uint8_t remote_state, remote_diag, remote_mult;
	bool remote_demand, remote_cbit;

	uint8_t state;     /* enum bfd_state */
	uint8_t diag;      /* reason of the last change to Down or AdminDown; none in Up */
	uint8_t down_diag; /* reason of the last change from Up; kept in the next Up */
	bool was_up;       /* Up at least once */
	bool failed;       /* see bfd_fsm_is_failed() */
	bool polling;      /* a poll sequence is under way */
	uint32_t n_downs;  /* changes from Up to Down (not to AdminDown) */

	/* Intervals in packets. They follow `conf` once no poll sequence is under way. */
	uint32_t announced_tx_us, announced_rx_us;
	/* The values in use. They follow the announced values late: RFC 5880, 6.8.3. */
	uint32_t used_tx_us, used_rx_us;

	uint64_t heard_at; /* time of the last packet; 0: none since begin */
	uint64_t state_at; /* time of the last change of state */
	/*
	 * AdminDown: send no packets from this time on, because the neighbor knows.
	 * Otherwise BFD_NEVER.
	 */
	uint64_t silent_at;
	uint64_t poll_next_at; /* no new poll sequence begins before this time */
};

/* Actions for the caller, and changes it may pass on. 0: none. */
enum bfd_act {
	BFD_ACT_STATE = 1,   /* `state` has changed */
	BFD_ACT_REMOTE = 2,  /* a field remote_* or your_discr has changed */
	BFD_ACT_FINAL = 4,   /* answer at once with bfd_fsm_packet(f, true) */
	BFD_ACT_SEND = 8,    /* send bfd_fsm_packet(f, false) now, besides the schedule */
	BFD_ACT_TX = 16,     /* bfd_fsm_tx_us() has changed, see below */
	BFD_ACT_DETECT = 32, /* bfd_fsm_detect_us() has changed */
	BFD_ACT_ECHO = 64,   /* bfd_fsm_echo_us() has changed */
	BFD_ACT_POLL_ENDED = 128, /* the neighbor has answered the poll sequence */
	BFD_ACT_FOREIGN = 256,    /* the packet has another your_discr: it was ignored */
};
/*
 * BFD_ACT_TX: a shorter interval counts from the last sent packet. A longer interval counts
 * from the next packet: do not delay a packet whose time is already set. If both
 * BFD_ACT_FINAL and BFD_ACT_SEND are set, send both packets, the Final first.
 */

/* Start a session in Down, or in AdminDown if conf->shutdown. `my_discr` is not 0. */
void bfd_fsm_begin(struct bfd_fsm *f, uint32_t my_discr, const struct bfd_conf *conf,
		   uint64_t now);

/*
 * Take a new configuration. In Up, a poll sequence announces a change of min_tx_us or
 * min_rx_us. A value with which one of the sides could miss packets is used only after the
 * sequence. The functions from here to bfd_fsm_echo_lost() return actions: bits of enum
 * bfd_act.
 */
unsigned int bfd_fsm_configure(struct bfd_fsm *f, const struct bfd_conf *conf,
			       uint64_t now);

/*
 * Set conf.shutdown. True: enter AdminDown and announce it at least until `silent_at`.
 * False: enter Down and start again.
 */
unsigned int bfd_fsm_shutdown(struct bfd_fsm *f, bool shutdown, uint64_t now);

/*
 * Take a packet that bfd_packet_read() accepted, and that belongs to this session by
 * your_discr, or if that is 0, by its addresses.
 */
unsigned int bfd_fsm_receive(struct bfd_fsm *f, const struct bfd_packet *p, uint64_t now);

/*
 * Handle the end of the detection time. Does nothing if it has not ended, so early or extra
 * calls do no harm.
 */
unsigned int bfd_fsm_expired(struct bfd_fsm *f, uint64_t now);

/* Handle the loss of echo packets that did not come back. */
unsigned int bfd_fsm_echo_lost(struct bfd_fsm *f, uint64_t now);

/*
 * Note that forwarders received the packet that bfd_fsm_is_steady() expects, last at `at`.
 */
void bfd_fsm_heard(struct bfd_fsm *f, uint64_t at);

/*
 * Start the detection time again at `now`, because no packet could be received before (a
 * restart).
 */
void bfd_fsm_resume(struct bfd_fsm *f, uint64_t now);

/*
 * Write the packet to send. `final`: the answer to a Poll. During a poll sequence all other
 * packets have the P bit.
 */
void bfd_fsm_packet(const struct bfd_fsm *f, bool final, uint8_t out[BFD_PACKET_BYTES]);

/*
 * Return the interval between packets, before jitter. 0: send no periodic packets, because
 * nothing was heard in a passive session, or the neighbor wants none (min rx 0, or its
 * demand mode is active). In AdminDown see also `silent_at`.
 */
uint32_t bfd_fsm_tx_us(const struct bfd_fsm *f);

/*
 * Return the detection time; 0: there is none, because no neighbor is known or this side
 * requires no packets.
 */
uint64_t bfd_fsm_detect_us(const struct bfd_fsm *f);

/* Return the time at which to call bfd_fsm_expired(), or BFD_NEVER. */
uint64_t bfd_fsm_expire_at(const struct bfd_fsm *f);

/* Return the interval between echo packets, before jitter; 0: send none. */
uint32_t bfd_fsm_echo_us(const struct bfd_fsm *f);

/*
 * Return true after a failure, until the session is Up again. A failure is a change from Up
 * to Down because the detection time ended, the echo function failed, or the neighbor sent
 * Down. AdminDown of either side is no failure, and it ends a failure: RFC 5882, section
 * 3.2.
 */
static inline bool
bfd_fsm_is_failed(const struct bfd_fsm *f)
{
	return f->failed;
}

/*
 * Return true if the session is Up, no poll sequence is under way or waits, and every
 * received packet that equals `rx_expect` would change nothing but `heard_at`. `rx_expect`
 * is written only in this case.
 */
bool bfd_fsm_is_steady(const struct bfd_fsm *f, uint8_t rx_expect[BFD_PACKET_BYTES]);

/*
 * Return `interval_us` less jitter: 75 to 100 % of it, or 75 to 90 % if `mult` is 1. `mult`
 * is our own multiplier, `random` any 32 random bits.  RFC 5880, section 6.8.7
 */
uint32_t bfd_jitter_us(uint32_t interval_us, uint8_t mult, uint32_t random);

#endif
