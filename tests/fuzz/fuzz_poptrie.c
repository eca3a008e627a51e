/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An update script for poptrie and for the naive oracle: after each commit all lookups
 * around the changed prefixes agree, and at the end the lookups around every prefix.
 *
 * A libFuzzer target, built and run by `make fuzz`; by hand with clang:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -march=x86-64-v2 \
 *       -I. tests/fuzz/fuzz_poptrie.c poptrie/[a-z]*.c \
 *       tests/unit/oracle.c -o build/fuzz_poptrie && build/fuzz_poptrie CORPUS
 *
 * Built with -DFUZZ_STANDALONE by any compiler (without "fuzzer") it replays files.
 *
 * The first octet chooses the family, the layout of nodes (IPv4) or small tables (IPv6),
 * the code of the bulk lookup, whether a grace period passes at once or after some commits,
 * and whether memory is from an allocator that can be made to fail. Then each operation has
 * one octet and its arguments.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "poptrie/impl.h"
#include "must.h"
#include "../unit/oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_STAGED = 64, MAX_WAITING = 8, MAX_OPS = 600 };

struct script {
	const uint8_t *at, *end;
	struct poptrie *pt;
	struct oracle *o;
	unsigned int bytes;
	uint32_t value_max;
	struct {
		uint8_t addr[16];
		unsigned int len;
	} staged[MAX_STAGED];
	unsigned int n_staged; /* beyond MAX_STAGED, prefixes are checked only at the end */
	struct poptrie_retired *waiting[MAX_WAITING];
	unsigned int n_waiting, keep;
	unsigned int fail_in; /* allocations until one fails; 0: none does */
	bool failed;
};

static uint8_t
octet(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

/* Make a prefix of any length from few octets, so that prefixes nest and share nodes. */
static unsigned int
prefix(struct script *s, uint8_t *addr)
{
	static const uint8_t top[8] = {0x20, 0x2a, 0x00, 0x3f, 0x1f, 0x40, 0xff, 0x24};
	uint8_t a = octet(s), b = octet(s), c = octet(s), len = octet(s);

	memset(addr, 0, 16);
	addr[0] = top[a & 7];
	addr[1] = a >> 3 & 3 ? 0x10 : 0;
	addr[2] = b;
	addr[3] = c;
	if (s->bytes == 16) {
		memset(addr + 3, a & 0x80 ? c : 0, 12);
		addr[4 + (b & 7)] = c;
		addr[15] = c;
	}
	len %= s->bytes * 8 + 1;
	/*
	 * Prefixes shorter than 12 bits cover two million slots each, so make few of them.
	 */
	if (s->bytes == 16 && len > 0 && len < 12 && c & 15)
		len += 12;
	oracle_mask(addr, s->bytes, len, false);
	return len;
}

static uint32_t
value(struct script *s)
{
	uint8_t x = octet(s);

	/*
	 * Use few small values, so that adjacent leaves are sometimes equal, and the
	 * largest values.
	 */
	return x < 0xf0 ? 1 + x % 5 : s->value_max - (x & 7);
}

static void
agree(const struct script *s, uint8_t (*addr)[16], unsigned int n)
{
	uint32_t ip4[16], got[16];
	const uint8_t *key[16];

	for (unsigned int i = 0; i < n; i++) {
		uint8_t *a = addr[i];

		key[i] = a;
		ip4[i] = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];
	}
	if (s->bytes == 16)
		poptrie6_lookup_bulk(s->pt, key, got, n);
	else
		poptrie4_lookup_bulk(s->pt, ip4, got, n);
	for (unsigned int i = 0; i < n; i++) {
		uint32_t want = oracle_match(s->o, addr[i], s->bytes * 8, NULL);

		MUST(got[i] == want);
		MUST(want == (s->bytes == 16 ? poptrie6_lookup(s->pt, key[i])
					     : poptrie4_lookup(s->pt, ip4[i])));
	}
}

/* Compare the lookups of sixteen keys at both ends of a prefix, and beyond them. */
static void
agree_around(const struct script *s, const uint8_t *prefix_addr, unsigned int len)
{
	uint8_t addr[16][16];

	for (int i = 0; i < 16; i++) {
		memcpy(addr[i], prefix_addr, 16);
		oracle_mask(addr[i], s->bytes, len, i & 1);
		oracle_step(addr[i], s->bytes, i / 2 % 3 - 1);
		if (i >= 6 && len < s->bytes * 8)
			addr[i][len / 8] ^= (uint8_t)(0x80 >> (len + i) % 8);
	}
	agree(s, addr, 16);
}

static void
retire(void *ctx, struct poptrie *pt, struct poptrie_retired *r)
{
	struct script *s = ctx;

	s->waiting[s->n_waiting++] = r;
	while (s->n_waiting > s->keep) {
		poptrie_reclaim(pt, s->waiting[0]);
		s->n_waiting--;
		memmove(s->waiting, s->waiting + 1, s->n_waiting * sizeof(*s->waiting));
	}
}

static void *
hook_alloc(void *ctx, size_t bytes, size_t align)
{
	struct script *s = ctx;

	if (s->fail_in && --s->fail_in == 0) {
		s->failed = true;
		return NULL;
	}
	return heap_alloc(NULL, bytes, align);
}

/* Return true if the call failed for lack of memory. The caller then repeats it once. */
static bool
again(struct script *s, int rc)
{
	MUST(rc == (s->failed ? -ENOMEM : 0) || rc == 0);
	s->failed = false;
	return rc < 0;
}

static void
commit(struct script *s)
{
	if (again(s, poptrie_commit(s->pt)))
		MUST(poptrie_commit(s->pt) == 0);
	for (unsigned int i = 0; i < s->n_staged && i < MAX_STAGED; i++)
		agree_around(s, s->staged[i].addr, s->staged[i].len);
	s->n_staged = 0;
}

static void
stage(struct script *s, const uint8_t *addr, unsigned int len, uint32_t v)
{
	int rc;

	if (v) {
		if (again(s, poptrie_add(s->pt, addr, len, v)))
			MUST(poptrie_add(s->pt, addr, len, v) == 0);
		oracle_set(s->o, addr, len, v);
	} else {
		rc = poptrie_del(s->pt, addr, len);
		MUST((rc == 0) == (oracle_del(s->o, addr, len) != 0));
	}
	MUST(poptrie_exact(s->pt, addr, len) == v);
	if (s->n_staged < MAX_STAGED) {
		memcpy(s->staged[s->n_staged].addr, addr, 16);
		s->staged[s->n_staged].len = len;
	}
	s->n_staged++;
}

static void
step(struct script *s)
{
	uint8_t op = octet(s), addr[16];
	unsigned int len;
	uint32_t v;

	switch (op & 15) {
	case 0:
	case 1:
	case 2:
	case 3: /* 0 to 3 commit each change, as a daemon with few changes does */
	case 4:
	case 5:
	case 6:
		len = prefix(s, addr);
		stage(s, addr, len, value(s));
		if ((op & 15) <= 3)
			commit(s);
		break;
	case 7:
	case 8:
		len = prefix(s, addr);
		stage(s, addr, len, 0);
		if (op & 16)
			commit(s);
		break;
	case 9:
	case 10: /* the next prefix that exists: give it another value, or delete it */
		len = prefix(s, addr);
		v = poptrie_next(s->pt, addr, &len, true);
		if (v == 0)
			break;
		MUST(oracle_exact(s->o, addr, len) == v);
		stage(s, addr, len, op & 16 ? value(s) : 0);
		if (op & 32)
			commit(s);
		break;
	case 11: /* add neighboring prefixes: full nodes, many changes in a slot */
		len = prefix(s, addr);
		for (unsigned int i = op >> 4; len > 8 && i < 16; i++) {
			addr[(len - 1) / 8] ^= (uint8_t)(0x80 >> (len - 1) % 8);
			addr[(len - 1) / 8 - 1] ^= (uint8_t)i;
			stage(s, addr, len, 1 + i);
		}
		break;
	case 12:
		s->value_max = POPTRIE_VALUE_MAX;
		break;
	case 13:
		if (op & 16)
			pt_walk_begin(pt_view(s->pt), 0);
		len = prefix(s, addr);
		commit(s);
		agree_around(s, addr, len);
		break;
	case 14:
		s->fail_in = 1 + octet(s) % 32;
		break;
	default:
		commit(s);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.at = data, .end = data + size, .value_max = PT_VALUE16};
	struct poptrie_conf conf = {.ctx = &s};
	struct oracle_route *all;
	struct poptrie_stats st;
	uint8_t how = octet(&s);
	enum pt_isa isa = (how >> 2 & 3) % (pt_isa_best() + 1u);

	conf.family = how & 1 ? POPTRIE_IP6 : POPTRIE_IP4;
	/* IPv6 has one layout of nodes, so bit 1 selects small tables there. */
	conf.small = (how & 3) == 3;
	s.bytes = how & 1 ? 16 : 4;
	if (how & 16) {
		s.keep = how >> 5 & 6;
		conf.retire = retire;
	}
	if (how & 32) {
		conf.alloc = hook_alloc;
		conf.free = heap_free;
	}
	MUST(pt_create(&s.pt, &conf, how & 2 ? PT_WIDE : PT_FUSED, isa) == 0);
	s.pt->min_visits = PT_LEVELS + 3;
	s.o = oracle_new(how & 1);
	for (int i = 0; i < MAX_OPS && s.at < s.end; i++)
		step(&s);
	commit(&s);
	s.fail_in = 0;
	all = oracle_sorted(s.o);
	for (uint32_t i = 0; i < s.o->routes; i++)
		agree_around(&s, all[i].addr, all[i].len);
	for (uint32_t i = 0; i < s.o->routes; i++) {
		MUST(poptrie_del(s.pt, all[i].addr, all[i].len) == 0);
		/* Commit a default route alone, because it rebuilds the whole table. */
		if (all[i].len == 0)
			MUST(poptrie_commit(s.pt) == 0);
	}
	MUST(poptrie_commit(s.pt) == 0);
	s.keep = 0;
	while (s.n_waiting)
		poptrie_reclaim(s.pt, s.waiting[--s.n_waiting]);
	poptrie_stats(s.pt, &st);
	MUST(st.routes == 0 && st.nodes == 0 && st.leaves == 0 && st.retired_bytes == 0);
	free(all);
	oracle_free(s.o);
	poptrie_destroy(s.pt);
	return 0;
}

#ifdef FUZZ_STANDALONE
int
main(int argc, char **argv)
{
	static uint8_t buf[1 << 16];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		LLVMFuzzerTestOneInput(buf, fread(buf, 1, sizeof(buf), f));
		fclose(f);
	}
	return 0;
}
#endif
