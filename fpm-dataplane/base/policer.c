/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policers of all classes. Forwarders and punt take tokens, manage sets rates. Rates
 * and token buckets are atomic, and no thread waits. All sources of a class share 256 token
 * buckets, selected by a hash: two sources may share a bucket, and no source is stored.
 */
#include "base/policer.h"

#include <stdalign.h>
#include <string.h>

#include "base/inet.h"

#define SOURCES 256

static struct policer {
	/* Written by manage, read by forwarders and punt. */
	alignas(64) struct bucket_rate rate;
	struct bucket_rate source_rate;
	struct policer_conf
		conf; /* W:manage R:ui a torn read is harmless, because it is only shown */
	alignas(64) _Atomic uint64_t full_at; /* W:fwd,punt by compare and swap */
	alignas(64) _Atomic uint64_t source_full_at[SOURCES];
} policer[N_PUNT_CLASS];

static uint64_t ticks_per_s; /* W:main before the threads start */

const struct punt_class_info punt_class_info[N_PUNT_CLASS] = {
#define CLASS(id, n, k, rate, burst, source_rate, source_burst, t) \
	[CLASS_##id] = {.name = (n), .text = (t), .key = KEY_##k},
#include "base/punt_class.def"
#undef CLASS
};

const struct policer_conf policer_default[N_PUNT_CLASS] = {
#define CLASS(id, name, key, r, b, sr, sb, text) \
	[CLASS_##id] = {                         \
		.rate = (r), .burst = (b), .source_rate = (sr), .source_burst = (sb)},
#include "base/punt_class.def"
#undef CLASS
};

enum punt_class
punt_class_find(const char *name)
{
	unsigned int c = 0;

	while (c < N_PUNT_CLASS && strcmp(name, punt_class_info[c].name) != 0)
		c++;
	return (enum punt_class)c;
}

void
bucket_rate_set(struct bucket_rate *br, uint32_t rate, uint32_t burst, uint64_t per_s)
{
	uint64_t interval = 0, depth = 0;

	if (rate == 0) {
		interval = 1; /* with depth 0 the bucket never has a token */
	} else if (rate != POLICER_UNLIMITED) {
		interval = (per_s + rate / 2) / rate;
		interval += interval == 0;
		depth = interval * burst;
	}
	atomic_store_explicit(&br->patience, depth + per_s, memory_order_relaxed);
	atomic_store_explicit(&br->depth, depth, memory_order_relaxed);
	atomic_store_explicit(&br->interval, interval, memory_order_relaxed);
}

void
policer_init(uint64_t hz, const struct policer_conf conf[N_PUNT_CLASS])
{
	ticks_per_s = hz << POLICER_TICK_SHIFT;
	for (unsigned int c = 0; c < N_PUNT_CLASS; c++)
		policer_set((enum punt_class)c, &conf[c]);
}

void
policer_set(enum punt_class class, const struct policer_conf *conf)
{
	struct policer *p = &policer[class];

	p->conf = *conf;
	bucket_rate_set(&p->rate, conf->rate, conf->burst, ticks_per_s);
	bucket_rate_set(&p->source_rate, conf->source_rate, conf->source_burst,
			ticks_per_s);
}

void
policer_get(enum punt_class class, struct policer_conf *conf)
{
	*conf = policer[class].conf;
}

uint32_t
policer_source(uint64_t seed, const uint8_t *octets, unsigned int n)
{
	uint64_t w[2] = {0};

	memcpy(w, octets, n);
	return (uint32_t)(mix64(mix64(w[0] ^ seed) ^ w[1]) >> 32);
}

bool
policer_share_take(enum punt_class class, uint32_t source, uint64_t now)
{
	struct policer *p = &policer[class];

	return bucket_take(&p->source_full_at[source % SOURCES], &p->source_rate, now);
}

enum policer_verdict
policer_take(enum punt_class class, uint32_t source, uint64_t now)
{
	struct policer *p = &policer[class];

	/*
	 * Test the bucket of the class before the bucket of the source gives a token: a
	 * packet that the class refuses must not take a token of its source.
	 */
	if (!bucket_has(&p->full_at, &p->rate, now))
		return POLICER_RATE;
	if (!policer_share_take(class, source, now))
		return POLICER_SOURCE;
	return bucket_take(&p->full_at, &p->rate, now) ? POLICER_PASS : POLICER_RATE;
}

uint32_t
policer_seconds(uint64_t now)
{
	return (uint32_t)(now / ticks_per_s);
}
