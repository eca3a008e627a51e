/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policer: how many packets of each class may go to the host. A packet must find a token in
 * its source's bucket and in its class's; forwarders ask before they hand it over, so a
 * flood costs the host nothing.
 *
 * A bucket is one word: the moment at which it will be full again (the virtual scheduling
 * form of the generic cell rate algorithm, ITU-T I.371 annex A). Taking a token moves it on
 * by one interval; a refusal only reads. So one bucket serves all forwarders, exactly,
 * however packets spread over them, and is written no more often than its rate.
 */
#ifndef BASE_POLICER_H
#define BASE_POLICER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum punt_class {
#define CLASS(id, name, key, rate, burst, source_rate, source_burst, text) CLASS_##id,
#include "base/punt_class.def"
#undef CLASS
	N_PUNT_CLASS,
	/* From here on it is not only peers and neighbors that send it. */
	CLASS_FIRST_OPEN = CLASS_bgp_new,
};

enum punt_key { KEY_MAC, KEY_ADDR, KEY_NET };

struct punt_class_info {
	const char *name; /* "bgp-new" */
	const char *text; /* for people */
	enum punt_key key;
};
extern const struct punt_class_info punt_class_info[N_PUNT_CLASS];

/* Class by name; N_PUNT_CLASS when there is none. */
enum punt_class punt_class_find(const char *name);

/* The class of an ICMP or ICMPv6 error that we send. */
static inline enum punt_class
punt_class_icmp(uint8_t family, uint8_t type, uint8_t code)
{
	if (family == 6)
		return type == 3   ? CLASS_icmp6_ttl
		       : type == 2 ? CLASS_icmp6_too_big
				   : CLASS_icmp6_unreach;
	return type == 11               ? CLASS_icmp4_ttl
	       : type == 3 && code == 4 ? CLASS_icmp4_too_big
					: CLASS_icmp4_unreach;
}

/* Packets a second and packets. A rate of 0 closes the class. */
#define POLICER_UNLIMITED 0xffffffffu
#define POLICER_RATE_MAX  10000000u
#define POLICER_BURST_MAX 1000000u
struct policer_conf {
	uint32_t rate, burst;
	uint32_t source_rate, source_burst; /* of each source: its share */
};
extern const struct policer_conf policer_default[N_PUNT_CLASS];

/* --- the bucket ------------------------------------------------------------------------- */

/* Ticks are sixteenths of the clock's cycles, so that intervals are exact enough. */
#define POLICER_TICK_SHIFT 4

struct bucket_rate {
	_Atomic uint64_t interval; /* W:manage  ticks a token; 0: unlimited */
	_Atomic uint64_t depth;    /* W:manage  ticks of a full bucket; 0: closed */
	_Atomic uint64_t
		patience; /* W:manage  a bucket that far in debt was not filled by us */
};

void bucket_rate_set(struct bucket_rate *br, uint32_t rate, uint32_t burst,
		     uint64_t ticks_per_s);

/* Is there a token? Takes nothing.                                          [any thread] */
static inline bool
bucket_has(const _Atomic uint64_t *full_at, const struct bucket_rate *br, uint64_t now)
{
	uint64_t interval = atomic_load_explicit(&br->interval, memory_order_relaxed);
	uint64_t depth = atomic_load_explicit(&br->depth, memory_order_relaxed);
	uint64_t patience = atomic_load_explicit(&br->patience, memory_order_relaxed);
	int64_t debt = (int64_t)(atomic_load_explicit(full_at, memory_order_relaxed) - now);

	/*
	 * Past: full. Far ahead: of a slower rate that was replaced, or so long ago that the
	 * clock has come round; full as well. Clocks of cores may differ by a little.
	 */
	if (debt < 0 || (uint64_t)debt > patience)
		debt = 0;
	return interval == 0 || (uint64_t)debt + interval <= depth;
}

/* Take a token; false when there is none.                                   [any thread] */
static inline bool
bucket_take(_Atomic uint64_t *full_at, const struct bucket_rate *br, uint64_t now)
{
	uint64_t interval = atomic_load_explicit(&br->interval, memory_order_relaxed);
	uint64_t depth = atomic_load_explicit(&br->depth, memory_order_relaxed);
	uint64_t patience = atomic_load_explicit(&br->patience, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(full_at, memory_order_relaxed);
	int64_t debt;

	if (interval == 0)
		return true;
	do {
		debt = (int64_t)(at - now);
		if (debt < 0 || (uint64_t)debt > patience)
			debt = 0;
		if ((uint64_t)debt + interval > depth)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		full_at, &at, now + (uint64_t)debt + interval, memory_order_relaxed,
		memory_order_relaxed));
	return true;
}

/* --- the policers ------------------------------------------------------------------------ */

/* Give the clock (cycles a second) and all classes their rates.                  [main] */
void policer_init(uint64_t hz, const struct policer_conf conf[N_PUNT_CLASS]);

/* Change one class while packets pass.                                    [manage, main] */
void policer_set(enum punt_class class, const struct policer_conf *conf);
void policer_get(enum punt_class class, struct policer_conf *conf);

enum policer_verdict { POLICER_PASS, POLICER_RATE, POLICER_SOURCE };

/*
 * Whom a share belongs to: `n` octets of an address, 16 at most, under the seed of its VRF or
 * link (seed_of()).
 */
uint32_t policer_source(uint64_t seed, const uint8_t *octets, unsigned int n);

/* May a packet of `class` pass? `source` of policer_source(), `now` in ticks.  [any thread] */
enum policer_verdict policer_take(enum punt_class class, uint32_t source, uint64_t now);

/* Only the share: for what has a second one to respect. */
bool policer_share_take(enum punt_class class, uint32_t source, uint64_t now);

/* Ticks as seconds, for base/peers.h. */
uint32_t policer_seconds(uint64_t now);

#endif
