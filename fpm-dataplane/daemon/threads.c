/* SPDX-License-Identifier: BSD-3-Clause */
/* Start the threads in the order start_order[], end them in order end_order[].    [main] */
#include "daemon/threads.h"

#include <fcntl.h>
#include <string.h>

#include <urcu/urcu-qsbr.h>

#include "base/log.h"
#include "base/rlimits.h"
#include "base/sd_notify.h"
#include "bfd/bfd.h"
#include "daemon/forwarders.h"
#include "fib/fib.h"
#include "filter/filter.h"
#include "fpm/fpm.h"
#include "hook/hook.h"
#include "manage/manage.h"
#include "manage/ports.h"
#include "neigh/neigh.h"
#include "port/bfd.h"
#include "port/watch.h"
#include "punt/punt.h"
#include "restart/fdstore.h"
#include "rib/rib.h"
#include "rtnl/rtnl.h"
#include "sflow/sflow.h"
#include "start/cpus.h"
#include "tap-bridge/netns.h"
#include "trace/trace.h"
#include "ui/ui.h"
#include "warn/warn.h"

/* Take the checkpoint of the previous daemon, which rib reads and closes; -1: none. */
static int
last_checkpoint_take(struct dataplane *dp)
{
	int fd = fdstore_take_checkpoint(rib_checkpoint_alive_ms);

	dp->last_checkpoint.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	dp->last_checkpoint.tries = rib_checkpoint_attempts(dp->last_checkpoint.fd);
	return fd;
}

/*
 * Start to read the kernel's routes. Like rib, rtnl needs neither DPDK nor ports. Its
 * messages wait until rib has read the checkpoint.
 */
static int
rtnl_begin(struct dataplane *dp)
{
	struct rtnl_conf rtnl = {.rib = &dp->worker[W_RIB],
				 .netns = dp->conf.control_netns,
				 .from = dp->conf.routes_from};
	int rc = rtnl_setup(&dp->worker[W_RTNL], &rtnl);

	if (rc == 0)
		rc = worker_prepare(&dp->worker[W_RTNL]);
	/*
	 * With a large checkpoint, start rtnl after rib, so that rtnl knows whether rib
	 * could use the checkpoint.
	 */
	if (rc < 0 || rib_checkpoint_routes(dp->last_checkpoint.fd) > KERNEL_LARGE)
		return rc;
	return worker_launch(&dp->worker[W_RTNL]);
}

/*
 * Start rib first, because to read the checkpoint of a large table takes longer than to
 * start DPDK and the ports, and needs neither of them. threads_start() waits for rib and
 * reports its errors.
 */
int
rib_begin(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct worker *w = dp->worker;
	struct rib_conf rib = {.neigh = &w[W_NEIGH],
			       .fpm = &w[W_FPM],
			       .rtnl = &w[W_RTNL],
			       .from = conf->routes_from,
			       .feedback = conf->fpm_feedback,
			       .through_kernel = conf->through_kernel,
			       .sweep_quiet_s = conf->sweep_quiet_s,
			       .sweep_max_s = conf->sweep_max_s,
			       .sweep_restart_s = conf->sweep_restart_s,
			       .checkpoint = sd_has_manager(),
			       .checkpoint_fd = last_checkpoint_take(dp),
			       .successor = dp->predecessor >= 0,
			       .checkpoint_max_age_s = conf->checkpoint_max_age_s,
			       .netns_id = netns_id(conf->control_netns),
			       .limits = &dp->conf.limits};
	struct fib_conf fib = {
		.retire = rib_retire, .retire_ctx = &w[W_RIB], .limits = &dp->conf.limits};
	int rc = rib_setup(&w[W_RIB], &rib);

	if (conf->fib_per_node)
		fib_conf_nodes(&fib, dp->rxq_assign.node, conf->n_core);
	if (rc == 0)
		rc = fib_create(&dp->fib, &fib);
	if (rc < 0)
		return rc;
	for (unsigned int c = 0; c < fib.n_nodes; c++)
		log_info("main: fib created node=%d%s%s%s", fib.node[c],
			 dp->fib->copy[c].refused != 0 ? " bind_error=\"" : "",
			 dp->fib->copy[c].refused != 0 ? strerror(dp->fib->copy[c].refused)
						       : "",
			 dp->fib->copy[c].refused != 0 ? "\"" : "");
	rib_set_fib(&w[W_RIB], dp->fib);
	rc = worker_prepare(&w[W_RIB]);
	if (rc == 0)
		rc = rtnl_begin(dp);
	/* Start rib later if a predecessor still writes the checkpoint that rib reads. */
	return rc < 0 || dp->predecessor >= 0 ? rc : worker_launch(&w[W_RIB]);
}

/* Wait until the FIB has all that rtnl and neigh have learned from the kernel. */
static void
kernel_state_await(struct dataplane *dp)
{
	/*
	 * rtnl has sent all routes that forwarding needs before its first wait, and may now
	 * continue to read: do not wait for it.
	 */
	struct worker *const settling[] = {&dp->worker[W_RIB], &dp->worker[W_NEIGH]};

	worker_settle(settling, 2);
}

/*
 * Let rtnl read the tables that it has not read because a checkpoint had their routes. No
 * packet waits for them.
 */
static void
kernel_state_confirm(struct dataplane *dp)
{
	if (atomic_load_explicit(&kernel_status.restored, memory_order_relaxed) != 0)
		worker_send(&dp->worker[W_RTNL], msg_new(MSG_REPLAY, sizeof(struct msg)));
}

/*
 * Start the forwarders when the FIB has the kernel's state. If the FIB had only the routes
 * of a checkpoint and no connected routes, packets would be misrouted. Start the threads
 * for clients and zebra last, because no packet waits for them.
 */
int
threads_start(struct dataplane *dp)
{
	/*
	 * bfd follows neigh, because the interfaces of its sessions have to be in the FIB.
	 */
	static const int start_order[] = {W_RIB,   W_RTNL,   W_PUNT,  W_FILTER,
					  W_NEIGH, W_BFD,    W_TRACE, W_SFLOW,
					  W_FPM,   W_MANAGE, W_WARN,  W_UI};
	char limits[128];
	int rc;

	for (unsigned int i = 0; i < N_WORKER; i++) {
		struct worker *w = &dp->worker[start_order[i]];

		/*
		 * The init of a thread may wait for a lock of the kernel, without a limit.
		 * The service manager ends the start after the time of the step.
		 */
		rc = worker_start(w);
		sd_send_nowait("WATCHDOG=1"); /* a successor sends it from COMMITTED on */
		if (rc < 0)
			log_error("main: thread does not start thread=%s error=\"%s\" "
				  "limits=\"%s\"",
				  w->ops->name, strerror(-rc),
				  rlimits_text(limits, sizeof(limits)));
		if (rc < 0)
			return rc;
		if (start_order[i] == W_PUNT)
			cpus_allow_forwarding(w->thread);
		if (start_order[i] != W_NEIGH)
			continue;
		rc = bfd_take_over(&dp->worker[W_BFD]);
		if (rc < 0)
			log_error("main: sessions of bfd not taken over error=\"%s\"",
				  strerror(-rc));
		if (rc < 0)
			return rc;
		kernel_state_await(dp);
		forwarders_launch(dp);
		kernel_state_confirm(dp);
	}
	return 0;
}

/*
 * The order in which the workers end. warn, filter and rib are the last, because they do
 * not use ports.
 */
static const int end_order[N_WORKER] = {W_UI,    W_MANAGE, W_FPM,    W_TRACE,
					W_SFLOW, W_BFD,    W_NEIGH,  W_PUNT,
					W_RTNL,  W_WARN,   W_FILTER, W_RIB};
#define N_WITH_PORTS (N_WORKER - 3)

/*
 * End all threads that use a port, and free the devices, because a successor waits only for
 * this. Request the end of warn and filter first: their scan or read may wait for the
 * kernel, and can end while the other threads end.
 */
void
ports_end(struct dataplane *dp, enum end end)
{
	worker_stop_ask(&dp->worker[W_WARN]);
	worker_stop_ask(&dp->worker[W_FILTER]);
	for (unsigned int i = 0; i < 3; i++)
		worker_stop(&dp->worker[end_order[i]]);
	hooks_end(dp->hooks);
	forwarders_end(dp);
	for (unsigned int i = 3; i < N_WITH_PORTS; i++)
		worker_stop(&dp->worker[end_order[i]]);
	ports_close(dp->port, end == END_FAILED);
}

unsigned int
threads_descriptors(const struct dataplane *dp, struct named_fd *into)
{
	static_assert(BFD_DESCRIPTORS <= FDSTORE_THREADS, "there is room for them");

	return bfd_descriptors(&dp->worker[W_BFD], into);
}

void
threads_end(struct dataplane *dp, enum end end)
{
	ports_end(dp, end);
	for (unsigned int i = N_WITH_PORTS; i < N_WORKER; i++)
		worker_stop(&dp->worker[end_order[i]]);
	/*
	 * Wait until all RCU callbacks have sent their reclaims, before the mailboxes are
	 * freed.
	 */
	urcu_qsbr_barrier();
	for (unsigned int i = 0; i < N_WORKER; i++)
		worker_free(&dp->worker[end_order[i]]);
	ui_teardown(&dp->worker[W_UI], end != END_RESTART);
	warn_teardown(&dp->worker[W_WARN]);
	filter_teardown(&dp->worker[W_FILTER]);
	manage_teardown(&dp->worker[W_MANAGE]);
	bfd_teardown(&dp->worker[W_BFD]);
	sflow_teardown(&dp->worker[W_SFLOW]);
	trace_teardown(&dp->worker[W_TRACE]);
	fpm_teardown(&dp->worker[W_FPM]);
	punt_teardown(&dp->worker[W_PUNT]);
	neigh_teardown(&dp->worker[W_NEIGH]);
	rtnl_teardown(&dp->worker[W_RTNL]);
	rib_teardown(&dp->worker[W_RIB]);
	hooks_free(dp->hooks);
	if (dp->fib != NULL)
		fib_destroy(dp->fib);
	watch_free(dp->watch);
	watch_free(dp->sampler);
	forwarders_free(dp);
	bfd_table_free(dp->bfd_table);
}
