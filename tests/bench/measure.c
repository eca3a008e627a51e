/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates, and the check before them. Impls take turns (A, B, C, A, B, C, ...), so that a
 * noisy minute of the machine hits all of them; each turn warms up on all keys, for the peer
 * before has had the caches, and then is timed on the second half of them.
 *
 * So many keys that they reach nearly all of the table that the stream can reach: a million,
 * asked again and again, leave in the caches the lines of a million addresses instead. Nor
 * do keys take room there: a chunk of them is copied to where the L1 keeps it, its source is
 * flushed, and only the lookups are timed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <emmintrin.h>
#include <rte_cycles.h>
#include "bench.h"

#define CHUNK 16384u /* octets; two looks at the clock for each */
#define LINE  64u

/*
 * A round counts when the L3 was as it should be on both sides of it, told by an 8 MiB
 * chase; in a virtual machine the other core may be moved to another L3 at any moment. When
 * that does not come about within so many rounds, they count as they are.
 */
#define IDLE_NS   30.0 /* at most; quiet machines: 12 to 18 */
#define BUSY_NS   60.0 /* at least, with contention; 90 to 190 */
#define TRIES     4u
#define CHASE_MEM (8u << 20)

static int
double_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void
sort_doubles(double *x, size_t n)
{
	qsort(x, n, sizeof(*x), double_order);
}

static void
flush(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += LINE)
		_mm_clflush(at + i);
	_mm_mfence();
}

/* Look up `n` keys from `from` on; million a second. */
static double
pass(const struct impl *im, const struct keys *k, size_t from, size_t n, unsigned int batch)
{
	static uint8_t room[CHUNK] __attribute__((aligned(4096)));
	size_t each = k->v4 ? sizeof(*k->v4) : sizeof(*k->v6), per = CHUNK / each;
	const uint8_t *all = k->v4 ? (const uint8_t *)k->v4 : (const uint8_t *)k->v6;
	struct keys chunk = *k;
	uint64_t t, sum = 0;

	chunk.n = per;
	if (k->v4)
		chunk.v4 = (void *)room;
	else
		chunk.v6 = (void *)room;
	for (size_t at = from; at + per <= from + n; at += per) {
		memcpy(room, all + at * each, CHUNK);
		flush(all + at * each, CHUNK);
		t = rte_rdtsc_precise();
		im->run(im, &chunk, per, batch);
		sum += rte_rdtsc_precise() - t;
	}
	return (double)(n / per * per) / tsc_us(sum);
}

/* One turn each; *chase: that before it, becomes that after it. Was the L3 as asked? */
static bool
round_of(struct impl *const *im, unsigned int n, const struct keys *k, unsigned int batch,
	 bool contended, double *mlps, double chase[2])
{
	chase[0] = chase[1];
	for (unsigned int i = 0; i < n; i++) {
		if (im[i]->select)
			im[i]->select(im[i]);
		pass(im[i], k, 0, k->n, batch);
		mlps[i] = pass(im[i], k, k->n / 2, k->n / 2, batch);
	}
	chase[1] = chase_ns(CHASE_MEM);
	return contended ? chase[0] >= BUSY_NS && chase[1] >= BUSY_NS
			 : chase[0] <= IDLE_NS && chase[1] <= IDLE_NS;
}

void
measure(struct impl *const *im, unsigned int n, const struct keys *k, unsigned int batch,
	unsigned int reps, bool contended, struct result *out, double chase[2])
{
	static double mlps[IMPLS_MAX][REPS_MAX];
	double round[IMPLS_MAX], seen[2] = {0, chase_ns(CHASE_MEM)};
	unsigned int spare = reps * (TRIES - 1);

	chase[0] = INFINITY;
	chase[1] = 0;
	for (unsigned int r = 0; r < reps; r++) {
		while (!round_of(im, n, k, batch, contended, round, seen) && spare > 0)
			spare--;
		for (unsigned int i = 0; i < n; i++)
			mlps[i][r] = round[i];
		chase[0] = fmin(chase[0], fmin(seen[0], seen[1]));
		chase[1] = fmax(chase[1], fmax(seen[0], seen[1]));
	}
	for (unsigned int i = 0; i < n; i++) {
		sort_doubles(mlps[i], reps);
		out[i] = (struct result){
			.median = mlps[i][reps / 2],
			.min = mlps[i][0],
			.max = mlps[i][reps - 1],
		};
	}
}

static void
complain(const struct impl *a, const struct impl *b, const struct keys *k, size_t at,
	 uint32_t va, uint32_t vb)
{
	fprintf(stderr, "bench-fib: %s says %u, %s says %u for ", a->name, va, b->name, vb);
	if (k->v4)
		fprintf(stderr, "%u.%u.%u.%u\n", k->v4[at] >> 24, k->v4[at] >> 16 & 255,
			k->v4[at] >> 8 & 255, k->v4[at] & 255);
	else
		for (int i = 0; i < 16; i++)
			fprintf(stderr, "%02x%s", k->v6[at][i],
				i == 15 ? "\n"
				: i & 1 ? ":"
					: "");
}

/* Do all give the answers of the first, in `every`-th group of keys? Else say which not. */
bool
verify(struct impl *const *im, unsigned int n, const struct keys *k, size_t every)
{
	uint32_t want[BATCH_MAX], got[BATCH_MAX];
	unsigned int m;
	bool good = true;

	for (unsigned int i = 1; i < n; i++) {
		bool same = true;

		/* Two impls may share one structure: take turns between passes only. */
		for (size_t at = 0; at < k->n && same; at += BATCH_MAX * every) {
			m = k->n - at < BATCH_MAX ? (unsigned int)(k->n - at) : BATCH_MAX;
			if (im[0]->select)
				im[0]->select(im[0]);
			im[0]->get(im[0], k, at, m, want);
			if (im[i]->select)
				im[i]->select(im[i]);
			im[i]->get(im[i], k, at, m, got);
			for (unsigned int j = 0; j < m && same; j++) {
				same = want[j] == got[j];
				if (!same)
					complain(im[0], im[i], k, at + j, want[j], got[j]);
			}
		}
		good &= same;
	}
	return good;
}
