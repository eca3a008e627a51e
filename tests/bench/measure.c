/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measure rates, after a check of the answers. Impls take turns (A, B, C, A, B, C, ...), so
 * that a noisy minute of the machine affects all of them. In each turn an impl first looks
 * up all keys to warm up, because another impl has used the caches. Then the second half of
 * the keys is timed.
 *
 * There are enough keys to reach nearly all parts of the table that the stream can reach. A
 * million keys, looked up again and again, would leave the lines of a million addresses in
 * the caches. The keys themselves take no room in the caches: a chunk of them is copied to
 * where the L1 keeps it, its source is flushed, and only the lookups are timed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <emmintrin.h>
#include <rte_cycles.h>
#include "bench.h"

#define CHUNK 16384u /* octets; the clock is read twice for each chunk */
#define LINE  64u

/*
 * A round counts if the L3 was in the expected state before and after it. An 8 MiB chase
 * measures the state. In a virtual machine the other core may be moved to another L3 at any
 * moment. After this number of attempts a round counts as it is.
 */
#define IDLE_NS   30.0 /* at most; quiet machines have 12 to 18 */
#define BUSY_NS   60.0 /* at least, with contention; observed: 90 to 190 */
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

/* Look up `n` keys, beginning at `from`. Returns million lookups a second. */
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

/*
 * Run one turn of each impl. chase[1] is the chase before the round on entry, and the chase
 * after it on return. Returns true if the L3 was in the expected state.
 */
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

/*
 * Compare the answers of all impls with those of the first, in each `every`-th group of
 * keys. Prints the first difference of each impl, and returns false if there is one.
 */
bool
verify(struct impl *const *im, unsigned int n, const struct keys *k, size_t every)
{
	uint32_t want[BATCH_MAX], got[BATCH_MAX];
	unsigned int m;
	bool good = true;

	for (unsigned int i = 1; i < n; i++) {
		bool same = true;

		/*
		 * Two impls may share one structure, so select the variant before each
		 * group.
		 */
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
