/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Updates, one published change at a time, each timed alone: random withdrawals and
 * re-announcements, the real update stream, and the worst there are (the shortest prefixes
 * and a default route). Readers' grace periods are not counted: nothing reads meanwhile.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include "bench.h"

#define AWAY        1000u   /* prefixes that are withdrawn at any time */
#define CHANGES     100000u /* withdrawals, and as many announcements */
#define WORST_TIMES 9u
#define WORST_MAX   64u /* shortest prefixes tried */

struct times {
	double *us;
	size_t n, cap;
	double sum;
};

/* One change; counts when it was taken (a stream may withdraw what is not there). */
static void
timed(struct structure *s, const struct prefix *p, bool del, struct times *t)
{
	uint64_t tsc = rte_rdtsc_precise();
	int rc = del ? s->ops->del(s, p) : s->ops->add(s, p);
	double us = tsc_us(rte_rdtsc_precise() - tsc);

	if (rc < 0 && rc != -ENOENT)
		s->refused++;
	if (rc < 0 || t->n == t->cap)
		return;
	t->us[t->n++] = us;
	t->sum += us;
}

static void
print(const struct structure *s, const struct table *t, const char *kind, struct times *x)
{
	size_t n = x->n;
	struct gaps g;

	if (n == 0)
		return;
	sort_doubles(x->us, n);
	/* As long as the measurement was: what the machine adds by itself. */
	g = gaps_watch(fmin(fmax(x->sum / 1e6, 0.2), 1.0));
	printf("{\"bench\":\"update%d\",\"impl\":\"%s\",\"table\":\"%s\",\"kind\":\"%s\","
	       "\"changes\":%zu,\"refused\":%zu,\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_"
	       "us\":%.3f,"
	       "\"p999_us\":%.3f,\"max_us\":%.1f,\"gaps_a_second\":%.0f,"
	       "\"gap_max_us\":%.1f}\n",
	       s->family, s->name, t->name, kind, n, s->refused, x->sum / (double)n,
	       x->us[n / 2], x->us[n - 1 - n / 100], x->us[n - 1 - n / 1000], x->us[n - 1],
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

/* `c` NULL: random changes, after which the table is as before. */
void
update_bench(struct structure *s, const struct table *t, const char *kind,
	     const struct change *c, size_t n_changes, uint32_t nexthops)
{
	struct times x = {.cap = c ? n_changes : 2 * (size_t)CHANGES};

	if (t->n < 4 || x.cap == 0)
		return;
	x.us = malloc(x.cap * sizeof(*x.us));
	if (!x.us)
		return;
	memset(x.us, 0, x.cap * sizeof(*x.us)); /* no page faults while timing */
	if (!c)
		random_changes(s, t, &x);
	for (size_t i = 0; c && i < n_changes; i++) {
		struct prefix p = c[i].p;

		p.value = 1 + p.value % nexthops;
		timed(s, &p, c[i].withdraw, &x);
	}
	print(s, t, kind, &x);
	free(x.us);
}

struct worst {
	double median, max;
	uint8_t len;
};

/* The slower of withdrawing and announcing one prefix, as medians, and the slowest. */
static void
worst_of(struct structure *s, const struct prefix *p, bool there, struct worst *w)
{
	double us[2][WORST_TIMES], m;
	struct times x = {.us = us[0], .cap = 2};
	double pair[2];

	for (unsigned int i = 0; i < WORST_TIMES; i++) {
		x = (struct times){.us = pair, .cap = 2};
		timed(s, p, there, &x);
		timed(s, p, !there, &x);
		if (x.n < 2)
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

/* The shortest prefixes of the table, and a default route; the table is as before then. */
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
