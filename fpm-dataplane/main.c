/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm-dataplane: the life of the process. Configuration, EAL, ports and TAPs, threads up in
 * order, wait for a signal, down in reverse; daemon/ connects the threads. Only main exits;
 * every failure says one sentence.
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
#include "base/sd_notify.h"
#include "daemon/dataplane.h"
#include "daemon/forwarders.h"
#include "daemon/threads.h"
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

/* All threads end, and with them what DPDK has. */
static void
stop(enum end end)
{
	threads_end(&dp, end);
	eal_end(dp.pool);
}

static int
ports_begin(const struct config *conf)
{
	int rc = ports_open(conf, dp.pool, dp.port, &dp.n_port);

	if (rc < 0)
		return rc; /* which one, and why, was said */
	rc = deal_all(&dp.deal, conf->port, dp.n_port);
	if (rc < 0)
		log_error("main: queues not dealt error=%s", strerror(-rc));
	return rc;
}

/* --- handover (restart/handover.h) ---------------------------------------------------------- */

static void
stop_forwarding(void)
{
	forwarders_end(&dp);
	worker_stop(&dp.worker[W_PUNT]);
}

static void
close_exclusive(void)
{
	/* As they are now: ports have come and gone since the start. */
	dp.shared = ports_are_shared(dp.port);
	if (!dp.shared)
		ports_end(&dp, END_GOES_ON);
}

static void
reload(void)
{
	manage_reload(&dp.worker[W_MANAGE]);
}

static enum handover
hand_over(void)
{
	struct predecessor this = {
		.argv = dp.argv,
		.born_with = dp.born_with,
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
		.reload = reload,
	};
	enum handover done = handover_to_successor(&this);

	if (done == HANDOVER_DONE) {
		stop(END_GOES_ON);
		handover_pass_on_reload();
	}
	return done;
}

static int
take_over(const struct config *conf)
{
	struct successor this = {
		.sock = dp.predecessor,
		.conf = conf,
		.rib = &dp.worker[W_RIB],
		.neigh = &dp.worker[W_NEIGH],
		.port = dp.port,
		.n_port = dp.n_port,
		.shared = dp.shared,
		.rib_was_short = rib_was_short,
		.mistrust = nics_mistrust,
	};

	return handover_from_predecessor(&this);
}

/* Until there is a reason to end. Returns the exit code. */
static int
live(void)
{
	int sig;

	for (;;) {
		sig = watchdog_sigwait(&dp.signals, dp.worker, N_WORKER);
		if (sig == SIGHUP) {
			reload();
			continue;
		}
		if (sig != SD_SIGNAL_RESTART)
			break;
		switch (hand_over()) {
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
	log_info("main: stopping signal=%d", sig);
	stop(sig == SD_SIGNAL_RESTART ? END_GOES_ON : END_FOR_GOOD);
	nics_end();
	return sig == SD_SIGNAL_RESTART ? SD_EXIT_RESTART : 0;
}

/* The exit code of a start: for a successor there may have been no room beside us. */
static int
failed(int rc)
{
	/* It has not crashed by the checkpoint. All threads have ended. */
	if (dp.last_checkpoint.fd >= 0)
		rib_checkpoint_forgive(dp.last_checkpoint.fd, dp.last_checkpoint.tries);
	last_checkpoint_close();
	if (dp.predecessor < 0)
		nics_end();
	return dp.predecessor >= 0 && rc == -ENOMEM ? SD_EXIT_ROOM : 1;
}

static int
run(const struct config *conf)
{
	int rc;

	signals_begin(&dp.signals, &dp.born_with);
	dp.predecessor = sd_take(SD_SUCCESSOR);
	if (privilege_drop() < 0 || preflight(conf, dp.predecessor >= 0) < 0)
		return 1;
	/* Its thread is born here: from a worker it would have that worker's name. */
	(void)urcu_qsbr_get_default_call_rcu_data();
	dp.deal = (struct deal){.serving = dp.serving,
				.cpu = dp.conf.core,
				.n_fwd = conf->n_core,
				.port = dp.port};
	for (unsigned int i = 0; i < conf->n_core; i++)
		dp.deal.node[i] = plan_node(conf->core[i]);
	rc = rib_begin(&dp);
	if (rc < 0) {
		log_error("main: rib does not start error=%s", strerror(-rc));
		return failed(rc);
	}
	rc = nics_begin(conf, dp.argv, predecessor_pid(dp.predecessor), &dp.born_with);
	if (rc == 0)
		rc = eal_start(conf, predecessor_pid(dp.predecessor));
	if (rc < 0) {
		worker_stop(&dp.worker[W_RIB]);
		return failed(rc);
	}
	dp.shared = ports_could_be_shared(conf);
	policer_init(rte_get_tsc_hz(), conf->policer);
	dp.pool = eal_pool(conf);
	rc = dp.pool == NULL ? -ENOMEM : workers_setup(&dp);
	if (rc == 0)
		rc = forwarders_make(&dp);
	if (rc == 0 && dp.shared)
		rc = ports_begin(conf);
	if (rc == 0 && dp.predecessor >= 0)
		rc = take_over(conf);
	/* Of those that cannot be open twice transit waits: for them, and for nothing else. */
	if (rc == 0 && !dp.shared)
		rc = ports_begin(conf);
	if (rc == 0)
		rc = threads_start(&dp);
	if (rc < 0) {
		stop(END_FAILED);
		return failed(rc);
	}
	log_info("main: forwarding version=%s ports=%u cores=%u socket=%s", FPMDP_VERSION,
		 dp.n_port, conf->n_core, conf->control_socket);
	last_checkpoint_close();
	fdstore_keep_all(dp.port, PORT_SLOTS, rib_checkpoint_fd(&dp.worker[W_RIB]));
	nics_keep();
	sd_send("READY=1");
	return live();
}

int
main(int argc, char **argv)
{
	struct options opt;
	int code;

	log_out_use_null();
	sd_init();
	if (!options_parse(argc, argv, &opt, &code) || !options_load(&opt, &dp.conf, &code))
		return code;
	if (opt.prepare)
		return prepare_machine(&dp.conf);
	log_out_open();
	log_set_level(dp.conf.log_level);
	dp.poll_asked = opt.poll_always;
	dp.conf.poll_always |= dp.poll_asked;
	dp.running = dp.conf;
	dp.argv = argv;
	plan_cores(dp.conf.core, &dp.conf.n_core);
	if (opt.nics)
		return nics_serve(&dp.conf);
	return run(&dp.conf);
}
