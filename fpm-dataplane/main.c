/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm-dataplane: start and end the process. Read the configuration, start EAL, ports and
 * TAPs, start the threads in order, wait for a signal, and end all parts in reverse;
 * daemon/ connects the threads. Only main exits. Every failure is a line of the log.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <urcu/urcu-qsbr.h>

#include "base/log.h"
#include "base/log_out.h"
#include "base/policer.h"
#include "base/rlimits.h"
#include "base/sd_notify.h"
#include "daemon/dataplane.h"
#include "daemon/forwarders.h"
#include "daemon/threads.h"
#include "daemon/workers.h"
#include "manage/manage.h"
#include "manage/ports.h"
#include "nicd/nicd.h"
#include "restart/fdstore.h"
#include "restart/handover.h"
#include "restart/watchdog.h"
#include "rib/rib.h"
#include "start/cpus.h"
#include "start/eal.h"
#include "start/options.h"
#include "start/preflight.h"
#include "start/prepare.h"
#include "start/privileges.h"
#include "start/signals.h"

static struct dataplane dp;

static void
last_checkpoint_close(void)
{
	if (dp.last_checkpoint.fd >= 0)
		close(dp.last_checkpoint.fd);
	dp.last_checkpoint.fd = -1;
}

/* End all threads and free the objects of DPDK. */
static void
daemon_stop(enum end end)
{
	threads_end(&dp, end);
	eal_end(dp.pool);
}

static int
ports_start(const struct config *conf)
{
	int rc = ports_open(&dp.hotplug, conf, &dp.n_port);

	if (rc < 0)
		return rc; /* ports_open() has logged the port and the reason */
	rc = rxq_assign_all(&dp.rxq_assign, conf->port, conf->n_port);
	if (rc < 0)
		log_error("main: receive queues not assigned error=\"%s\"", strerror(-rc));
	return rc;
}

/* --- handover (restart/handover.h) ---------------------------------------------------- */

static void
stop_forwarding(void)
{
	/*
	 * Stop bfd first: it must not mistake the silence of ended forwarders for a silence
	 * of peers.
	 */
	worker_stop(&dp.worker[W_BFD]);
	forwarders_end(&dp);
	worker_stop(&dp.worker[W_PUNT]);
}

static void
close_exclusive(void)
{
	/* Ports may have been added and removed since the start. */
	dp.shared = ports_are_shared(dp.port);
	ports_release(dp.port);
	if (!dp.shared)
		ports_end(&dp, END_RESTART);
}

static void
daemon_reload(void)
{
	manage_reload(&dp.worker[W_MANAGE]);
}

static enum handover
daemon_hand_over(void)
{
	struct predecessor this = {
		.argv = dp.argv,
		.start_mask = dp.start_mask,
		.port = dp.port,
		.checkpoint_fd = rib_checkpoint_fd(&dp.worker[W_RIB]),
		.quiesce = {.worker = {[QUIESCE_UI] = &dp.worker[W_UI],
				       [QUIESCE_MANAGE] = &dp.worker[W_MANAGE],
				       [QUIESCE_FPM] = &dp.worker[W_FPM],
				       [QUIESCE_RIB] = &dp.worker[W_RIB]},
			    .rib_quiesce = rib_quiesce,
			    .rib_resume = rib_resume},
		.stop_forwarding = stop_forwarding,
		.close_exclusive = close_exclusive,
		.reload = daemon_reload,
	};
	enum handover done;

	this.n_thread_fd = threads_descriptors(&dp, this.thread_fd);
	done = handover_to_successor(&this);

	if (done == HANDOVER_DONE) {
		daemon_stop(END_RESTART);
		handover_pass_reload();
	}
	return done;
}

static int
daemon_take_over(const struct config *conf)
{
	struct successor this = {
		.sock = dp.predecessor,
		.conf = conf,
		.rib = &dp.worker[W_RIB],
		.neigh = &dp.worker[W_NEIGH],
		.rtnl = &dp.worker[W_RTNL],
		.port = dp.port,
		.n_port = dp.n_port,
		.shared = dp.shared,
		.rib_was_short = rib_had_nomem,
		.on_predecessor_death = nicd_abandon,
	};

	return handover_from_predecessor(&this);
}

/* Handle signals until one ends the daemon. Returns the exit code. */
static int
daemon_serve(void)
{
	int sig;

	for (;;) {
		sig = watchdog_sigwait(&dp.signals, dp.worker, N_WORKER);
		if (sig == SIGHUP) {
			daemon_reload();
			continue;
		}
		if (sig != SD_SIGNAL_RESTART)
			break;
		switch (daemon_hand_over()) {
		case HANDOVER_DONE:
			return 0;
		case HANDOVER_REFUSED:
			continue;
		case HANDOVER_SLOW:
			break;
		}
		break;
	}
	sd_send_nowait("STOPPING=1");
	log_info("main: stop requested signal=%d", sig);
	daemon_stop(sig == SD_SIGNAL_RESTART ? END_RESTART : END_FOR_GOOD);
	nicd_stop();
	return sig == SD_SIGNAL_RESTART ? SD_EXIT_RESTART : 0;
}

/*
 * Clean up a failed start. Returns the exit code; SD_EXIT_ROOM reports to the predecessor
 * that there is no memory for two daemons.
 */
static int
daemon_start_failed(int rc)
{
	/* All threads have ended in order, so the checkpoint did not crash this start. */
	if (dp.last_checkpoint.fd >= 0)
		rib_checkpoint_reset_attempts(dp.last_checkpoint.fd,
					      dp.last_checkpoint.tries);
	last_checkpoint_close();
	if (dp.predecessor < 0)
		nicd_stop();
	return dp.predecessor >= 0 && rc == -ENOMEM ? SD_EXIT_ROOM : 1;
}

static int
daemon_run(const struct config *conf)
{
	static const char threads_step[] = "threads and the kernel's state";
	char limits[128];
	int rc;

	signals_begin(&dp.signals, &dp.start_mask);
	dp.predecessor = sd_take(SD_SUCCESSOR);
	if (privilege_drop(conf->bfd.on) < 0 || preflight(conf, dp.predecessor >= 0) < 0)
		return 1;
	/*
	 * Start the thread of call_rcu here. If a worker started it, it would have the
	 * worker's thread name.
	 */
	(void)urcu_qsbr_get_default_call_rcu_data();
	dp.rxq_assign = (struct rxq_assign){.serving = dp.serving,
					    .cpu = dp.conf.core,
					    .n_fwd = conf->n_core,
					    .port = dp.port};
	for (unsigned int i = 0; i < conf->n_core; i++)
		dp.rxq_assign.node[i] = cpus_node(conf->core[i]);
	rc = fwd_cpu_choose(conf->instructions);
	if (rc < 0) {
		log_error("main: cpu lacks instructions wanted=%s best=%s",
			  instructions_name(conf->instructions), fwd_cpu_best());
		return daemon_start_failed(rc);
	}
	sd_start_step("tables of routes");
	rc = rib_begin(&dp);
	if (rc < 0) {
		log_error("main: thread does not start thread=rib error=\"%s\" "
			  "limits=\"%s\"",
			  strerror(-rc), rlimits_text(limits, sizeof(limits)));
		return daemon_start_failed(rc);
	}
	sd_start_step("fpm-nics");
	rc = nicd_start(conf, dp.argv, predecessor_pid(dp.predecessor), &dp.start_mask);
	sd_start_step("DPDK");
	if (rc == 0)
		rc = eal_start(conf, predecessor_pid(dp.predecessor));
	if (rc < 0) {
		worker_stop(&dp.worker[W_RTNL]);
		worker_stop(&dp.worker[W_RIB]);
		return daemon_start_failed(rc);
	}
	ports_allow(predecessor_pid(dp.predecessor));
	dp.shared = ports_could_be_shared(conf);
	policer_init(rte_get_tsc_hz(), conf->policer);
	sd_start_step("packet memory");
	dp.pool = eal_pool(conf);
	rc = dp.pool == NULL ? -ENOMEM : workers_setup(&dp);
	sd_start_step("forwarders");
	if (rc == 0)
		rc = forwarders_make(&dp);
	if (rc == 0 && dp.shared)
		rc = ports_start(conf);
	if (rc == 0 && dp.predecessor >= 0)
		rc = daemon_take_over(conf);
	/*
	 * Forwarding waits for ports that cannot be open twice, so all other parts were
	 * prepared before.
	 */
	if (rc == 0 && !dp.shared)
		rc = ports_start(conf);
	if (rc == 0) {
		ports_claim(dp.port);
		if (dp.predecessor < 0)
			sd_start_step(threads_step);
		else
			sd_successor_step(threads_step);
		rc = threads_start(&dp);
	}
	if (rc < 0) {
		daemon_stop(END_FAILED);
		return daemon_start_failed(rc);
	}
	log_info("main: forwarding version=%s ports=%u cores=%u socket=%s", FPMDP_VERSION,
		 dp.n_port, conf->n_core, conf->control_socket);
	last_checkpoint_close();
	fdstore_put_all(dp.port, PORT_SLOTS, rib_checkpoint_fd(&dp.worker[W_RIB]));
	nicd_store_pidfd();
	sd_send("READY=1\nSTATUS=forwarding");
	return daemon_serve();
}

int
main(int argc, char **argv)
{
	struct options opt;
	int code;

	log_out_use_null();
	sd_init();
	if (!options_parse(argc, argv, &opt, &code))
		return code;
	if (preflight_stack() < 0)
		return 1;
	fdstore_begin(dp.port, PORT_SLOTS);
	if (!options_load(&opt, &dp.conf, &code))
		return code;
	if (opt.prepare)
		return prepare_machine(&dp.conf);
	log_out_open();
	log_set_level(dp.conf.log_level);
	dp.poll_by_option = opt.poll_always;
	dp.conf.poll_always |= dp.poll_by_option;
	dp.running = dp.conf;
	dp.argv = argv;
	cpus_layout(dp.conf.core, &dp.conf.n_core);
	if (opt.nics)
		return nicd_serve(&dp.conf);
	return daemon_run(&dp.conf);
}
