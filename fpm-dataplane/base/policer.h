/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policer: limit the packets of each class that go to the host. A packet needs a token of
 * its source's bucket and of its class's bucket. Forwarders take the tokens before they
 * hand over a packet, so a flood costs the host nothing.
 *
 * A bucket is one word: the time at which it will be full again (the virtual scheduling
 * form of the generic cell rate algorithm, ITU-T I.371 annex A). Taking a token adds one
 * interval to the time. A refusal only reads the time. All forwarders share the bucket, so
 * its rate is exact for any distribution of packets over forwarders. The word is written
 * once per token, and never during refusals.
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
	/*
	 * This class and the following classes also contain traffic of hosts that are
	 * neither peers nor neighbors.
	 */
	CLASS_FIRST_OPEN = CLASS_bgp_new,
};

enum punt_key { KEY_MAC, KEY_ADDR, KEY_NET };

struct punt_class_info {
	const char *name; /* "bgp-new" */
	const char *text; /* description for operators */
	enum punt_key key;
};
extern const struct punt_class_info punt_class_info[N_PUNT_CLASS];

/* Find a class by name; N_PUNT_CLASS: there is none. */
enum punt_class punt_class_find(const char *name);

/* Return the class of an ICMP or ICMPv6 error that the router sends. */
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

/* Rates in packets a second, bursts in packets. A rate of 0 closes the class. */
#define POLICER_UNLIMITED 0xffffffffu
#define POLICER_RATE_MAX  10000000u
#define POLICER_BURST_MAX 1000000u
struct policer_conf {
	uint32_t rate, burst;
	uint32_t source_rate, source_burst; /* the share of each source */
};
extern const struct policer_conf policer_default[N_PUNT_CLASS];

/* --- the bucket ----------------------------------------------------------------------- */

/* A tick is 1/16 of a cycle of the clock, so that intervals are exact enough. */
#define POLICER_TICK_SHIFT 4

struct bucket_rate {
	_Atomic uint64_t interval; /* W:manage  ticks per token; 0: unlimited */
	_Atomic uint64_t depth;    /* W:manage  ticks of a full bucket; 0: closed */
	_Atomic uint64_t patience; /* W:manage  ticks; a larger debt is from an old rate */
};

void bucket_rate_set(struct bucket_rate *br, uint32_t rate, uint32_t burst,
		     uint64_t ticks_per_s);

/* Return true if the bucket has a token. Takes none.                       [any thread] */
static inline bool
bucket_has(const _Atomic uint64_t *full_at, const struct bucket_rate *br, uint64_t now)
{
	uint64_t interval = atomic_load_explicit(&br->interval, memory_order_relaxed);
	uint64_t depth = atomic_load_explicit(&br->depth, memory_order_relaxed);
	uint64_t patience = atomic_load_explicit(&br->patience, memory_order_relaxed);
	int64_t debt = (int64_t)(atomic_load_explicit(full_at, memory_order_relaxed) - now);

	/*
	 * With a time in the past, the bucket is full. It is also full with a time too far
	 * in the future, which comes from a slower rate that was replaced, or from a
	 * wrapped clock. The clocks of cores may differ slightly.
	 */
	if (debt < 0 || (uint64_t)debt > patience)
		debt = 0;
	return interval == 0 || (uint64_t)debt + interval <= depth;
}

/*
 * Take a token. Returns false if there is none.                               [any thread]
 */
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

/* --- the policers --------------------------------------------------------------------- */

/* Set the clock (cycles a second) and the rates of all classes.                  [main] */
void policer_init(uint64_t hz, const struct policer_conf conf[N_PUNT_CLASS]);

/* Set, or get, the rates of a class while packets pass.                  [manage, main] */
void policer_set(enum punt_class class, const struct policer_conf *conf);
void policer_get(enum punt_class class, struct policer_conf *conf);

enum policer_verdict { POLICER_PASS, POLICER_RATE, POLICER_SOURCE };

/*
 * Return the number of a source: a hash of `n` octets of an address, at most 16, under the
 * seed of its VRF or link (seed_of()).
 */
uint32_t policer_source(uint64_t seed, const uint8_t *octets, unsigned int n);

/*
 * Take the tokens for a packet of `class`. `source` is from policer_source(), `now` in
 * ticks.                                                                      [any thread]
 */
enum policer_verdict policer_take(enum punt_class class, uint32_t source, uint64_t now);

/*
 * Take only the token of the source, for packets that need the share of a second source.
 *                                                                             [any thread]
 */
bool policer_share_take(enum punt_class class, uint32_t source, uint64_t now);

/* Convert ticks to seconds, for base/peers.h. */
uint32_t policer_seconds(uint64_t now);

#endif
