/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of peers. punt writes, forwarders read. Atomic words; no lock, no allocation.
 */
#include "base/peers.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "base/inet.h"

#define SETS 1024
#define WAYS 4

static alignas(64) _Atomic uint64_t table[N_PEER_KIND][SETS][WAYS]; /* W:punt R:fwd */

static uint64_t
mix_addr(uint64_t h, const uint8_t *addr, uint8_t family)
{
	uint64_t w[2] = {0};

	memcpy(w, addr, family == 4 ? 4 : 16);
	return mix64(mix64(h ^ w[0]) ^ w[1]);
}

uint64_t
peer_addr_key(const uint8_t *remote, uint8_t family, uint32_t what, uint64_t seed)
{
	return mix_addr(mix64(seed ^ ((uint64_t)what << 8 | family)), remote, family);
}

uint64_t
peer_tcp_key(const uint8_t *remote, const uint8_t *own, uint8_t family,
	     uint16_t remote_port, uint16_t own_port, uint64_t seed)
{
	uint64_t h =
		peer_addr_key(remote, family, (uint32_t)remote_port << 16 | own_port, seed);

	return mix_addr(h, own, family);
}

uint64_t
peer_mac_key(const uint8_t mac[6], uint16_t ifidx, uint64_t seed)
{
	uint8_t octet[16] = {0};

	memcpy(octet, mac, 6);
	return peer_addr_key(octet, 6, ifidx, seed);
}

/* A word: 31 bits of the key, the proof bit, 32 bits of seconds. 0 is an empty word. */
#define PROOF (1ull << 32)

static uint64_t
tag_of(uint64_t key)
{
	uint64_t tag = key >> 33 << 33;

	return tag != 0 ? tag : 1ull << 33;
}

static bool
word_has_key(uint64_t word, uint64_t key)
{
	return word >> 33 << 33 == tag_of(key);
}

/*
 * Return true if the word has not expired. The clocks of cores may differ by a second. A
 * time further in the future comes from a clock that went back, for example when a virtual
 * machine moved to another host.
 */
static bool
word_is_fresh(uint64_t word, uint32_t now_s)
{
	int32_t age_s = (int32_t)(now_s - (uint32_t)word);

	return word != 0 && age_s >= -1 && age_s < PEER_SECONDS;
}

/*
 * Return the rank of a word. An empty or expired word has 0, an unproved word less than any
 * proved word. If two words are of one kind, the younger has the higher rank.
 */
static uint64_t
word_value(uint64_t word, uint32_t now_s)
{
	if (!word_is_fresh(word, now_s))
		return 0;
	return (word & PROOF) + 1 + (uint32_t)word;
}

void
peers_learn(enum peer_kind kind, uint64_t key, bool proof, uint32_t now_s)
{
	_Atomic uint64_t *set = table[kind][key % SETS], *at = NULL;
	uint64_t word = tag_of(key) | (proof ? PROOF : 0) | now_s, least = UINT64_MAX,
		 old = 0;

	for (unsigned int i = 0; i < WAYS; i++) {
		uint64_t w = atomic_load_explicit(&set[i], memory_order_relaxed);

		if (word_has_key(w, key)) {
			word |= w & PROOF;
			at = &set[i];
			old = w;
			break;
		}
		if (word_value(w, now_s) < least) {
			least = word_value(w, now_s);
			at = &set[i];
			old = w;
		}
	}
	if (!word_has_key(old, key) && !proof && word_is_fresh(old, now_s) &&
	    (old & PROOF) != 0)
		return;
	/*
	 * Write at most once a second: the readers' copies of the cache line stay valid.
	 */
	if (old != word)
		atomic_store_explicit(at, word, memory_order_relaxed);
}

void
peers_forget(enum peer_kind kind, uint64_t key)
{
	_Atomic uint64_t *set = table[kind][key % SETS];

	for (unsigned int i = 0; i < WAYS; i++)
		if (word_has_key(atomic_load_explicit(&set[i], memory_order_relaxed), key))
			atomic_store_explicit(&set[i], 0, memory_order_relaxed);
}

bool
peers_know(enum peer_kind kind, uint64_t key, uint32_t now_s)
{
	const _Atomic uint64_t *set = table[kind][key % SETS];

	for (unsigned int i = 0; i < WAYS; i++) {
		uint64_t w = atomic_load_explicit(&set[i], memory_order_relaxed);

		if (word_has_key(w, key))
			return word_is_fresh(w, now_s);
	}
	return false;
}
