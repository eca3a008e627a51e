/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measure updates: publish one change at a time, and time each alone. The changes are
 * random withdrawals and announcements, the recorded update stream, and the worst cases
 * (the shortest prefixes and a default route). Readers' grace periods do not count, because
 * nothing reads meanwhile.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include "bench.h"

#define REPEATS     3u      /* runs of the sequence; a change counts with its median */
#define AWAY        1000u   /* prefixes that are withdrawn at any time */
#define CHANGES     100000u /* withdrawals, and the same number of announcements */
#define WORST_TIMES 9u
#define WORST_MAX   64u /* shortest prefixes that are tried */

/* Times of one sequence of changes; NAN for a change that failed. */
struct times {
	double *us;
	size_t n, cap;
};

/*
 * Make one change. A stream may withdraw a prefix that does not exist. That does not count
 * as a refusal.
 */
static void
timed(struct structure *s, const struct prefix *p, bool del, struct times *t)
{
	uint64_t tsc = rte_rdtsc_precise();
	int rc = del ? s->ops->del(s, p) : s->ops->add(s, p);
	double us = tsc_us(rte_rdtsc_precise() - tsc);

	if (rc < 0 && rc != -ENOENT)
		s->refused++;
	if (t->n < t->cap)
		t->us[t->n++] = rc < 0 ? NAN : us;
}

/*
 * Take the median of each change over the three identical sequences. The machine interrupts
 * a busy core hundreds of times a second, each time for longer than an update. An
 * interruption mostly affects one of the three times of a change, so the median is the time
 * of the structure alone. Returns the number of medians, packed into x[0].
 */
static size_t
medians(struct times x[REPEATS], double *raw_mean, double *raw_max)
{
	double sum = 0, one[REPEATS];
	size_t n = 0, n_raw = 0;

	*raw_max = 0;
	for (size_t i = 0; i < x[0].n; i++) {
		unsigned int got = 0;

		for (unsigned int r = 0; r < REPEATS; r++) {
			if (i >= x[r].n || isnan(x[r].us[i]))
				continue;
			one[got++] = x[r].us[i];
			sum += x[r].us[i];
			*raw_max = fmax(*raw_max, x[r].us[i]);
			n_raw++;
		}
		if (got == 0)
			continue;
		sort_doubles(one, got);
		x[0].us[n++] = one[got / 2];
	}
	*raw_mean = n_raw ? sum / (double)n_raw : 0;
	return n;
}

static void
print(const struct structure *s, const struct table *t, const char *kind, double *us,
      size_t n, double raw_mean, double raw_max)
{
	struct gaps g = gaps_watch(0.3);
	double sum = 0;

	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		sum += us[i];
	sort_doubles(us, n);
	printf("{\"bench\":\"update%d\",\"impl\":\"%s\",\"table\":\"%s\",\"kind\":\"%s\","
	       "\"changes\":%zu,\"refused\":%zu,\"mean_us\":%.3f,\"p50_us\":%.3f,"
	       "\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.1f,\"raw_mean_us\":%.3f,"
	       "\"raw_max_us\":%.1f,\"gaps_a_second\":%.0f,\"gap_max_us\":%.1f}\n",
	       s->family, s->name, t->name, kind, n, s->refused, sum / (double)n, us[n / 2],
	       us[n - 1 - n / 100], us[n - 1 - n / 1000], us[n - 1], raw_mean, raw_max,
	       g.a_second, g.max_us);
	fflush(stdout);
}

static void
random_changes(struct structure *s, const struct table *t, struct times *x)
{
	uint32_t away = t->n / 2 < AWAY ? (uint32_t)(t->n / 2) : AWAY;
	uint32_t ring[AWAY];
	uint8_t *gone = calloc(t->n, 1);
	struct rnd r = {.at = 7};

	for (uint32_t i = 0; gone && i < CHANGES + away; i++) {
		uint32_t at;

		if (i >= away) {
			timed(s, &t->p[ring[i % away]], false, x);
			gone[ring[i % away]] = 0;
		}
		if (i >= CHANGES)
			continue;
		do
			at = rnd_below(&r, (uint32_t)t->n);
		while (gone[at]);
		timed(s, &t->p[at], true, x);
		gone[at] = 1;
		ring[i % away] = at;
	}
	free(gone);
}

static void
stream_changes(struct structure *s, const struct change *c, size_t n, uint32_t nexthops,
	       struct times *x)
{
	for (size_t i = 0; i < n; i++) {
		struct prefix p = c[i].p;

		p.value = 1 + p.value % nexthops;
		timed(s, &p, c[i].withdraw, x);
	}
}

/* Load the original table again, because the stream has changed it. */
static bool
rebuilt(struct structure *s, const struct table *t)
{
	const char *why;

	s->ops->close(s);
	s->refused = 0;
	s->up = s->ops->open(s, t, &why) == 0;
	return s->up && s->ops->load(s, t) == 0;
}

/* Measure the changes `c`. NULL: random changes, after which the table is as before. */
void
update_bench(struct structure *s, const struct table *t, const char *kind,
	     const struct change *c, size_t n_changes, uint32_t nexthops)
{
	size_t cap = c ? n_changes : 2 * (size_t)CHANGES;
	struct times x[REPEATS];
	double raw_mean, raw_max;

	if (t->n < 4 || cap == 0)
		return;
	for (unsigned int r = 0; r < REPEATS; r++) {
		x[r] = (struct times){.us = malloc(cap * sizeof(double)), .cap = cap};
		if (!x[r].us)
			abort();
		/* Touch the memory first, so that no page fault is timed. */
		memset(x[r].us, 0, cap * sizeof(double));
		if (!c)
			random_changes(s, t, &x[r]);
		else if (rebuilt(s, t))
			stream_changes(s, c, n_changes, nexthops, &x[r]);
	}
	cap = medians(x, &raw_mean, &raw_max);
	print(s, t, kind, x[0].us, cap, raw_mean, raw_max);
	for (unsigned int r = 0; r < REPEATS; r++)
		free(x[r].us);
}

struct worst {
	double median, max;
	uint8_t len;
};

/*
 * Measure withdrawals and announcements of one prefix. `there` is true if the table has the
 * prefix, before and after. Raise the values of `w` to the larger one of both medians and
 * to the slowest single time.
 */
static void
worst_of(struct structure *s, const struct prefix *p, bool there, struct worst *w)
{
	double us[2][WORST_TIMES], m;
	double pair[2];

	for (unsigned int i = 0; i < WORST_TIMES; i++) {
		struct times x = {.us = pair, .cap = 2};

		timed(s, p, there, &x);
		timed(s, p, !there, &x);
		if (isnan(pair[0]) || isnan(pair[1]))
			return;
		us[0][i] = pair[0];
		us[1][i] = pair[1];
	}
	for (int i = 0; i < 2; i++) {
		sort_doubles(us[i], WORST_TIMES);
		m = us[i][WORST_TIMES / 2];
		if (m > w->median) {
			w->median = m;
			w->len = p->len;
		}
		w->max = fmax(w->max, us[i][WORST_TIMES - 1]);
	}
}

static void
worst_print(const struct structure *s, const struct table *t, const char *kind,
	    const struct worst *w, unsigned int tried)
{
	struct gaps g = gaps_watch(0.2);

	printf("{\"bench\":\"update%d\",\"impl\":\"%s\",\"table\":\"%s\",\"kind\":\"%s\","
	       "\"tried\":%u,\"len\":%u,\"worst_us\":%.2f,\"max_us\":%.1f,"
	       "\"gap_max_us\":%.1f}\n",
	       s->family, s->name, t->name, kind, tried, w->len, w->median, w->max,
	       g.max_us);
	fflush(stdout);
}

/*
 * Measure the shortest prefixes of the table and a default route. Afterwards the table is
 * as before.
 */
void
update_worst(struct structure *s, const struct table *t)
{
	struct prefix dflt = {.value = 1};
	struct worst w = {0};
	unsigned int tried = 0;

	for (unsigned int len = 1; len <= 24 && tried < WORST_MAX; len++)
		for (size_t i = 0; i < t->n && tried < WORST_MAX; i++)
			if (t->p[i].len == len) {
				worst_of(s, &t->p[i], true, &w);
				tried++;
			}
	if (tried)
		worst_print(s, t, "worst-short", &w, tried);
	w = (struct worst){0};
	for (size_t i = 0; i < t->n; i++)
		if (t->p[i].len == 0)
			return;
	worst_of(s, &dflt, false, &w);
	if (w.median > 0)
		worst_print(s, t, "worst-default", &w, 1);
}
