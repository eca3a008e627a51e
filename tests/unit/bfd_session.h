/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A BFD session for tests of its state machine, and the packets of its neighbor. Include
 * this once in a program, after cmocka.h.
 */
#ifndef BFD_SESSION_H
#define BFD_SESSION_H

#include "bfd/fsm.h"

#define MS     1000000ull
#define S      (1000 * MS)
#define T0     (100 * S)
#define OURS   0x11111111u
#define THEIRS 0x22222222u
#define MS_US  1000u

/*
 * An interval of 50 ms, multiplier 3. Echo is off; if a test sets `echo`, its interval is
 * 30 ms.
 */
static const struct bfd_conf usual = {
	.min_tx_us = 50 * MS_US,
	.min_rx_us = 50 * MS_US,
	.echo_tx_us = 30 * MS_US,
	.mult = 3,
};

/*
 * Make a packet of the neighbor. When it is Up, its interval is 40 ms with multiplier 4. It
 * has received our packets, because your_discr is ours.
 */
static inline struct bfd_packet
packet(enum bfd_state state)
{
	return (struct bfd_packet){
		.my_discr = THEIRS,
		.your_discr = OURS,
		.min_tx_us = state == BFD_UP ? 40 * MS_US : BFD_SLOW_US,
		.min_rx_us = 40 * MS_US,
		.version = BFD_VERSION,
		.state = (uint8_t)state,
		.mult = 4,
		.length = BFD_PACKET_BYTES,
	};
}

static inline unsigned int
receive(struct bfd_fsm *f, enum bfd_state state, uint64_t now)
{
	struct bfd_packet p = packet(state);

	return bfd_fsm_receive(f, &p, now);
}

static inline unsigned int
receive_final(struct bfd_fsm *f, uint64_t now)
{
	struct bfd_packet p = packet(BFD_UP);

	p.final = true;
	return bfd_fsm_receive(f, &p, now);
}

/* Return the packet that the session sends. Assert that the other side accepts it. */
static inline struct bfd_packet
sent(const struct bfd_fsm *f, bool final)
{
	uint8_t wire[BFD_PACKET_BYTES];
	struct bfd_packet p;

	bfd_fsm_packet(f, final, wire);
	assert_int_equal(bfd_packet_read(&p, wire, sizeof(wire)), BFD_PACKET_OK);
	return p;
}

static inline struct bfd_fsm
begun(const struct bfd_conf *conf)
{
	struct bfd_fsm f;

	bfd_fsm_begin(&f, OURS, conf, T0);
	return f;
}

/* A session that is Up, and whose first poll sequence has ended at T0. */
static inline struct bfd_fsm
up(const struct bfd_conf *conf)
{
	struct bfd_fsm f;

	bfd_fsm_begin(&f, OURS, conf, T0 - S);
	receive(&f, BFD_DOWN, T0);
	receive(&f, BFD_UP, T0);
	assert_int_equal(f.state, BFD_UP);
	receive_final(&f, T0);
	assert_false(f.polling);
	return f;
}

/* Call up(), and go on to LATER, when the next poll sequence may begin. */
#define LATER (T0 + 2 * S)
static inline struct bfd_fsm
up_later(const struct bfd_conf *conf)
{
	struct bfd_fsm f = up(conf);

	receive(&f, BFD_UP, LATER);
	return f;
}

/* Configure `f` with new timers at `now`. */
static inline unsigned int
timers(struct bfd_fsm *f, uint32_t min_tx_us, uint32_t min_rx_us, uint64_t now)
{
	struct bfd_conf conf = f->conf;

	conf.min_tx_us = min_tx_us;
	conf.min_rx_us = min_rx_us;
	return bfd_fsm_configure(f, &conf, now);
}

/* Return a new session in `state`. */
static inline struct bfd_fsm
in_state(enum bfd_state state)
{
	struct bfd_conf conf = usual;
	struct bfd_fsm f;

	conf.shutdown = state == BFD_ADMIN_DOWN;
	if (state == BFD_UP)
		return up(&usual);
	f = begun(&conf);
	if (state == BFD_INIT)
		receive(&f, BFD_DOWN, T0);
	assert_int_equal(f.state, state);
	return f;
}

#endif
