/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signs of life, looked for as often as one likes: a thread has time from one yes to the
 * next. So a service manager that waits for 30 s ends who stood still for 30 s, neither a
 * thread that did for 16 nor one that did for 44.                                 [main]
 */
#include "restart/watchdog.h"

#include "base/log.h"

/* One who counts: a worker or a forwarder. */
struct one {
	const char *name;
	unsigned long rounds;
	bool rests; /* as it said that it would */
};

/* The i-th of all; false: there are no more. */
static bool
one_of(struct worker *w, unsigned int n, unsigned int i, uint64_t now_ms, struct one *one)
{
	struct counters *const *block;
	unsigned int n_block = counters_blocks(&block);

	if (i < n) {
		*one = (struct one){w[i].ops->name, worker_rounds(&w[i]),
				    worker_rests(&w[i], now_ms)};
		return true;
	}
	if (i - n >= n_block)
		return false;
	*one = (struct one){.name = block[i - n]->name, .rests = !block[i - n]->forwards};
	one->rounds = counter_read(&block[i - n]->rounds);
	return true;
}

bool
life_look(struct life *life, struct worker *w, unsigned int n, uint64_t now_ms,
	  unsigned int patience_ms)
{
	bool all = true, tell = !life->told && now_ms - life->since_ms >= patience_ms;
	struct one one;

	for (unsigned int i = 0; one_of(w, n, i, now_ms, &one); i++) {
		if (i < n)
			worker_wake(&w[i]);
		if (one.rests || one.rounds != life->rounds[i])
			continue;
		all = false;
		life->told |= tell;
		if (tell)
			log_warn("main: no sign of life thread=%s for_ms=%llu", one.name,
				 (unsigned long long)(now_ms - life->since_ms));
	}
	if (!all)
		return false;
	for (unsigned int i = 0; one_of(w, n, i, now_ms, &one); i++)
		life->rounds[i] = one.rounds;
	life->since_ms = now_ms;
	life->told = false;
	return true;
}
