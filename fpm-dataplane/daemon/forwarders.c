/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Make the objects of the forwarders before their threads start, and free them after the
 * threads have ended, because code below fwd/ neither allocates nor logs.       [main]
 */
#include "daemon/forwarders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/dataplane.h"
#include "fib/fib.h"
#include "port/bfd.h"
#include "port/watch.h"
#include "start/eal.h"

#define END_MS 1000u /* a forwarder ends within a burst, or 100 ms of sleep */

/* Make all objects of a forwarder except its queues, which may change while it runs. */
static int
forwarder_make(struct dataplane *dp, unsigned int i)
{
	const struct config *conf = &dp->conf;
	struct fwd_conf *f = &dp->fwd[i];
	struct serving *s = &dp->serving[i];
	char name[16];
	int rc = fwd_rings_make(&dp->rings[i], i, eal_client(), &dp->gleaned[i].n);

	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "fwd-%u", i);
	*f = (struct fwd_conf){.fib = dp->fib,
			       .tries = fib_copy_for(dp->fib, dp->rxq_assign.node[i]),
			       .punt = &dp->worker[W_PUNT],
			       .count = counters_register(name),
			       .watch = dp->watch,
			       .sampler = dp->sampler,
			       .index = i,
			       .rx_burst = (uint16_t)conf->rx_burst,
			       .tx_burst = (uint16_t)conf->tx_burst,
			       .serving = s,
			       .stop = &dp->stop_fwd};
	f->count->forwards = true;
	f->count->cpu = (int)conf->core[i];
	if (dp->bfd_table != NULL) {
		f->bfd_worker = &dp->worker[W_BFD];
		f->bfd = bfd_pace_create(dp->bfd_table, dp->pool, i, conf->n_core);
		if (f->bfd == NULL)
			return -ENOMEM;
	}
	rc = serving_open(s, conf->poll_always, &f->count->sleeps);
	if (rc < 0)
		return rc;
	dp->rings[i].idle = &s->idle;
	if (f->bfd != NULL) {
		s->idle.until = bfd_pace_sleep_ns;
		s->idle.until_ctx = f->bfd;
	}
	f->rings = dp->rings[i];
	f->watch_ring = watch_ring_add(dp->watch, &f->count->watch_lost);
	f->sample_ring = watch_ring_add(dp->sampler, NULL);
	return f->watch_ring == NULL || f->sample_ring == NULL ? -ENOMEM : 0;
}

int
forwarders_make(struct dataplane *dp)
{
	int rc = 0;

	for (unsigned int i = 0; i < dp->conf.n_core && rc == 0; i++)
		rc = forwarder_make(dp, i);
	if (rc < 0)
		log_error("main: forwarders not created error=\"%s\"", strerror(-rc));
	return rc;
}

void
forwarders_launch(struct dataplane *dp)
{
	for (unsigned int f = 0; f < dp->conf.n_core; f++)
		rte_eal_remote_launch(fwd_main, &dp->fwd[f], eal_lcore(f));
}

/*
 * End the forwarders. The log names a forwarder that does not end, because the supervisor,
 * which then kills the daemon, cannot name it.
 */
void
forwarders_end(struct dataplane *dp)
{
	uint64_t begin = monotonic_ms();
	bool logged = false;

	atomic_store(&dp->stop_fwd, true);
	for (unsigned int i = 0; i < dp->conf.n_core; i++)
		idle_wake(&dp->serving[i].idle);
	for (unsigned int i = 0; i < dp->conf.n_core; i++)
		while (rte_eal_get_lcore_state(eal_lcore(i)) == RUNNING) {
			if (!logged && monotonic_ms() - begin >= END_MS) {
				log_warn(
					"main: thread does not end thread=fwd-%u for_ms=%u",
					i, END_MS);
				logged = true;
			}
			rte_pause();
		}
	rte_eal_mp_wait_lcore();
}

void
forwarders_free(struct dataplane *dp)
{
	for (unsigned int i = 0; i < CONFIG_CORES_MAX; i++) {
		serving_close(&dp->serving[i]);
		bfd_pace_free(dp->fwd[i].bfd);
		fwd_rings_free(&dp->rings[i]);
	}
}
