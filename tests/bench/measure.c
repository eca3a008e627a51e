/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates, and the check before them. Impls take turns (A, B, C, A, B, C, ...), so that a
 * noisy minute of the machine hits all of them; each turn warms up on a pass over the keys,
 * for the peer before has had the caches, and then times another (several when short).
 */
#include <stdio.h>
#include <stdlib.h>
#include <rte_cycles.h>
#include "bench.h"

#define TIMED4 ((size_t)4 << 20) /* lookups timed at least, milliseconds */
#define TIMED6 ((size_t)1 << 20)

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

void
measure(struct impl *const *im, unsigned int n, const struct keys *k, unsigned int batch,
	unsigned int reps, struct result *out)
{
	static double mlps[IMPLS_MAX][REPS_MAX];
	size_t least = k->v4 ? TIMED4 : TIMED6, passes = k->n < least ? least / k->n : 1;
	uint64_t t;

	for (unsigned int r = 0; r < reps; r++) {
		for (unsigned int i = 0; i < n; i++) {
			if (im[i]->select)
				im[i]->select(im[i]);
			im[i]->run(im[i], k, k->n, batch);
			t = rte_rdtsc_precise();
			for (size_t p = 0; p < passes; p++)
				im[i]->run(im[i], k, k->n, batch);
			t = rte_rdtsc_precise() - t;
			mlps[i][r] = (double)(k->n / batch * batch * passes) / tsc_us(t);
		}
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
