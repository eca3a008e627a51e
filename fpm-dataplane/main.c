/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm-dataplane: wiring only. Configuration, EAL, ports and TAPs, threads up in order, wait
 * for a signal, down in reverse. Only main exits; every failure says one sentence.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_version.h>
#include <urcu/urcu-qsbr.h>

#include "restart/restart_lock.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "base/log_out.h"
#include "base/worker.h"
#include "config/config.h"
#include "config/print.h"
#include "manage/rxq_assign.h"
#include "start/eal.h"
#include "fib/fib.h"
#include "fpm/fpm.h"
#include "restart/quiesce.h"
#include "fwd/fwd.h"
#include "restart/fdstore.h"
#include "manage/manage.h"
#include "neigh/neigh.h"
#include "tap-bridge/netns.h"
#include "nicd/nicd.h"
#include "start/options.h"
#include "start/cpus.h"
#include "port/nicd_client.h"
#include "port/port.h"
#include "port/watch.h"
#include "manage/ports.h"
#include "start/preflight.h"
#include "start/prepare.h"
#include "start/privileges.h"
#include "punt/punt.h"
#include "rib/rib.h"
#include "start/signals.h"
#include "restart/handover.h"
#include "restart/watchdog.h"
#include "trace/trace.h"
#include "ui/ui.h"

#define END_MS 1000u /* a forwarder ends within a burst, or 100 ms of sleep */

enum { W_RIB, W_NEIGH, W_PUNT, W_FPM, W_UI, W_TRACE, W_MANAGE, N_WORKER };
enum end { END_FOR_GOOD, END_FAILED, END_GOES_ON /* in another daemon */ };

static struct {
	struct config conf, running; /* with what was chosen here; as manage changes it */
	bool poll_asked;             /* by the command line */
	struct rte_mempool *pool;
	struct port port[PORT_SLOTS];
	unsigned int n_port;
	struct fwd_conf fwd[CONFIG_CORES_MAX];
	struct fwd_rings rings[CONFIG_CORES_MAX];
	struct serving serving[CONFIG_CORES_MAX];
	struct {
		alignas(64) _Atomic uint32_t n;
	} gleaned[CONFIG_CORES_MAX]; /* each fwd_rings.n_gleaned */
	struct deal deal;
	struct fib *fib;
	struct watch *watch;
	struct worker worker[N_WORKER];
	atomic_bool stop_fwd;
	struct {
		int fd;             /* of the last daemon's checkpoint; -1: none */
		unsigned int tries; /* starts that had begun to read it before this one */
	} last_checkpoint;          /* until we forward */
	int predecessor; /* socket to the daemon whose place we take; -1: there is none */
	bool shared;     /* all ports can be open twice */
	char **argv;     /* as we were started, for a successor */
	sigset_t signals /* that main waits for */, born_with;
} dp;

/* All but its queues: for those it need not stop. */
static int
forwarder_make(const struct config *conf, unsigned int i)
{
	struct fwd_conf *f = &dp.fwd[i];
	struct serving *s = &dp.serving[i];
	char name[16];
	int rc = fwd_rings_make(&dp.rings[i], i, eal_client(), &dp.gleaned[i].n);

	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "fwd-%u", i);
	*f = (struct fwd_conf){.fib = dp.fib,
			       .tries = fib_copy_for(dp.fib, dp.deal.node[i]),
			       .punt = &dp.worker[W_PUNT],
			       .count = counters_register(name),
			       .watch = dp.watch,
			       .index = i,
			       .rx_burst = (uint16_t)conf->rx_burst,
			       .tx_burst = (uint16_t)conf->tx_burst,
			       .serving = s,
			       .stop = &dp.stop_fwd};
	f->count->forwards = true;
	f->count->cpu = (int)conf->core[i];
	rc = serve_open(s, conf->poll_always, &f->count->sleeps);
	if (rc < 0)
		return rc;
	dp.rings[i].idle = &s->idle;
	f->rings = dp.rings[i];
	f->watch_ring = watch_ring_add(dp.watch, &f->count->watch_lost);
	return f->watch_ring == NULL ? -ENOMEM : 0;
}

static int
forwarders_make(const struct config *conf)
{
	int rc = 0;

	fwd_cpu_init();
	for (unsigned int i = 0; i < conf->n_core && rc == 0; i++)
		rc = forwarder_make(conf, i);
	if (rc < 0)
		log_error("main: forwarders not made error=%s", strerror(-rc));
	return rc;
}

/* Returns the checkpoint of the last daemon, which rib reads and closes; -1: none. */
static int
last_checkpoint_take(void)
{
	int fd = service_take(FDSTORE_CHECKPOINT);

	dp.last_checkpoint.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	dp.last_checkpoint.tries = rib_checkpoint_tries(dp.last_checkpoint.fd);
	return fd;
}

static void
last_checkpoint_close(void)
{
	if (dp.last_checkpoint.fd >= 0)
		close(dp.last_checkpoint.fd);
	dp.last_checkpoint.fd = -1;
}

/*
 * rib first of all: the checkpoint of a large table takes longer to read than DPDK and the
 * ports take to start, and needs neither. Nobody hears of it before start() awaits it.
 */
static int
rib_begin(const struct config *conf)
{
	struct worker *w = dp.worker;
	struct rib_conf rib = {.neigh = &w[W_NEIGH],
			       .fpm = &w[W_FPM],
			       .feedback = conf->fpm_feedback,
			       .sweep_quiet_s = conf->sweep_quiet_s,
			       .sweep_max_s = conf->sweep_max_s,
			       .sweep_restart_s = conf->sweep_restart_s,
			       .checkpoint = service_is_kept(),
			       .checkpoint_fd = last_checkpoint_take(),
			       .successor = dp.predecessor >= 0,
			       .checkpoint_max_age_s = conf->checkpoint_max_age_s,
			       .netns_id = netns_id(conf->control_netns),
			       .limits = &dp.conf.limits};
	struct fib_conf fib = {
		.retire = rib_retire, .retire_ctx = &w[W_RIB], .limits = &dp.conf.limits};
	int rc = rib_setup(&w[W_RIB], &rib);

	if (conf->fib_per_node)
		fib_conf_nodes(&fib, dp.deal.node, conf->n_core);
	if (rc == 0)
		rc = fib_create(&dp.fib, &fib);
	if (rc < 0)
		return rc;
	for (unsigned int c = 0; c < fib.n_nodes; c++)
		log_info("fib: copy node=%d%s%s", fib.node[c],
			 dp.fib->copy[c].refused != 0 ? " refused=" : "",
			 dp.fib->copy[c].refused != 0 ? strerror(dp.fib->copy[c].refused)
						      : "");
	rib_set_fib(&w[W_RIB], dp.fib);
	rc = worker_prepare(&w[W_RIB]);
	/* A checkpoint that is still written to is none yet. */
	return rc < 0 || dp.predecessor >= 0 ? rc : worker_launch(&w[W_RIB]);
}

static int
workers_setup(const struct config *conf)
{
	static char listen[CONFIG_LISTEN_STRLEN]; /* ui keeps it */
	/* Nobody forwards in our place any more when threads start. */
	bool next = service_is_next() || dp.predecessor >= 0;
	struct worker *w = dp.worker;
	struct neigh_conf neigh = {.count = counters_register("neigh"),
				   .rib = &w[W_RIB],
				   .punt = &w[W_PUNT],
				   .manage = &w[W_MANAGE],
				   .netns = conf->control_netns,
				   .port = dp.port,
				   .n_port = PORT_SLOTS};
	struct punt_conf punt = {.neigh = &w[W_NEIGH],
				 .port = dp.port,
				 .n_port = PORT_SLOTS,
				 .rings = dp.rings,
				 .n_fwd = conf->n_core,
				 .no_lcore = nics_are_kept(),
				 .pool = dp.pool};
	struct fpm_conf fpm = {.rib = &w[W_RIB],
			       .netns = conf->control_netns,
			       .listen = conf->fpm_listen,
			       .from = conf->fpm_from,
			       .insists = next,
			       .queue_limit_bytes = conf->fpm_queue_limit_bytes};
	struct trace_conf trace = {.rib = &w[W_RIB],
				   .neigh = &w[W_NEIGH],
				   .port = dp.port,
				   .n_port = PORT_SLOTS,
				   .version = FPMDP_VERSION,
				   .explain = fwd_explain};
	struct ui_conf ui = {.rib = &w[W_RIB],
			     .neigh = &w[W_NEIGH],
			     .fpm = &w[W_FPM],
			     .trace = &w[W_TRACE],
			     .manage = &w[W_MANAGE],
			     .port = dp.port,
			     .n_port = PORT_SLOTS,
			     .serving = dp.serving,
			     .cpu = dp.conf.core,
			     .n_fwd = conf->n_core,
			     .control_socket = conf->control_socket,
			     .metrics_on = conf->metrics_on,
			     .metrics_listen = conf->metrics_listen,
			     .metrics_insist = next,
			     .netns = conf->control_netns,
			     .version = FPMDP_VERSION,
			     .dpdk = rte_version(),
			     .config_file = conf->file,
			     .fpm_listen = config_listen_str(&conf->fpm_listen, listen),
			     .hugepages = conf->hugepages,
			     .memory_mib = conf->memory_mib};
	struct manage_conf manage = {.running = &dp.running,
				     .poll_always = dp.poll_asked,
				     .rib = &w[W_RIB],
				     .fpm = &w[W_FPM],
				     .ports = {.port = dp.port,
					       .pool = dp.pool,
					       .deal = &dp.deal,
					       .interrupts = !conf->poll_always,
					       .neigh = &w[W_NEIGH],
					       .punt = &w[W_PUNT],
					       .last_ifidx = (uint16_t)conf->n_port}};
	int rc;

	neigh.fib = punt.fib = ui.fib = trace.fib = dp.fib;
	neigh.limits = punt.limits = ui.limits = &dp.conf.limits;
	punt.count = counters_register("punt");
	punt.watch = trace.watch = dp.watch = watch_create();
	if (dp.watch == NULL)
		return -ENOMEM;
	punt.watch_ring = watch_ring_add(dp.watch, &punt.count->watch_lost);
	if (punt.watch_ring == NULL)
		return -ENOMEM;
	rc = neigh_setup(&w[W_NEIGH], &neigh);
	if (rc == 0)
		rc = punt_setup(&w[W_PUNT], &punt);
	if (rc == 0)
		rc = fpm_setup(&w[W_FPM], &fpm);
	if (rc == 0)
		rc = trace_setup(&w[W_TRACE], &trace);
	if (rc == 0)
		rc = ui_setup(&w[W_UI], &ui);
	if (rc == 0)
		rc = manage_setup(&w[W_MANAGE], &manage);
	for (unsigned int i = W_RIB + 1; i < N_WORKER && rc == 0; i++)
		rc = worker_prepare(&w[i]);
	return rc;
}

/* What neigh has heard of the kernel is in the FIB. */
static void
kernel_learnt(void)
{
	struct worker *const settling[] = {&dp.worker[W_RIB], &dp.worker[W_NEIGH]};

	worker_settle(settling, 2);
}

/*
 * The kernel's state into the FIB first, then the packets: those that come by a checkpoint's
 * routes alone, without the connected ones, would go astray. Then the world, for which no
 * packet waits.
 */
static int
start(const struct config *conf)
{
	static const int order[] = {W_RIB, W_PUNT, W_NEIGH, W_TRACE, W_FPM, W_MANAGE, W_UI};
	int rc;

	for (unsigned int i = 0; i < N_WORKER; i++) {
		struct worker *w = &dp.worker[order[i]];

		rc = worker_start(w);
		service_hint("WATCHDOG=1"); /* of a successor, from COMMITTED on */
		if (rc < 0)
			log_error("main: %s does not start error=%s", w->ops->name,
				  strerror(-rc));
		if (rc < 0)
			return rc;
		if (order[i] == W_PUNT)
			plan_spare(w->thread);
		if (order[i] != W_NEIGH)
			continue;
		kernel_learnt();
		for (unsigned int f = 0; f < conf->n_core; f++)
			rte_eal_remote_launch(fwd_main, &dp.fwd[f], eal_lcore(f));
	}
	return 0;
}

/* Who ends us when one does not end has no idea which. */
static void
forwarders_end(void)
{
	uint64_t begin = monotonic_ms();
	bool told = false;

	atomic_store(&dp.stop_fwd, true);
	for (unsigned int i = 0; i < dp.conf.n_core; i++)
		idle_wake(&dp.serving[i].idle);
	for (unsigned int i = 0; i < dp.conf.n_core; i++)
		while (rte_eal_get_lcore_state(eal_lcore(i)) == RUNNING) {
			if (!told && monotonic_ms() - begin >= END_MS) {
				log_warn("main: does not end thread=fwd-%u for_ms=%u", i,
					 END_MS);
				told = true;
			}
			rte_pause();
		}
	rte_eal_mp_wait_lcore();
}

/* The order in which they end: rib, the last, knows nothing of ports. */
static const int ending[N_WORKER] = {W_UI,    W_MANAGE, W_FPM, W_TRACE,
				     W_NEIGH, W_PUNT,   W_RIB};

/* Whoever uses a port ends, and the devices are free: a successor waits for nothing else. */
static void
ports_end(enum end end)
{
	for (unsigned int i = 0; i < 3; i++)
		worker_stop(&dp.worker[ending[i]]);
	forwarders_end();
	for (unsigned int i = 3; i < N_WORKER - 1; i++)
		worker_stop(&dp.worker[ending[i]]);
	ports_close(dp.port, end == END_FAILED);
}

static void
stop(enum end end)
{
	ports_end(end);
	worker_stop(&dp.worker[W_RIB]);
	/* All callbacks have posted their reclaims before the mailboxes go. */
	urcu_qsbr_barrier();
	for (unsigned int i = 0; i < N_WORKER; i++)
		worker_free(&dp.worker[ending[i]]);
	ui_teardown(&dp.worker[W_UI], end != END_GOES_ON);
	manage_teardown(&dp.worker[W_MANAGE]);
	trace_teardown(&dp.worker[W_TRACE]);
	fpm_teardown(&dp.worker[W_FPM]);
	punt_teardown(&dp.worker[W_PUNT]);
	neigh_teardown(&dp.worker[W_NEIGH]);
	rib_teardown(&dp.worker[W_RIB]);
	if (dp.fib != NULL)
		fib_destroy(dp.fib);
	watch_free(dp.watch);
	for (unsigned int i = 0; i < CONFIG_CORES_MAX; i++) {
		serve_close(&dp.serving[i]);
		fwd_rings_free(&dp.rings[i]);
	}
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
	forwarders_end();
	worker_stop(&dp.worker[W_PUNT]);
}

static void
close_exclusive(void)
{
	/* As they are now: ports have come and gone since the start. */
	dp.shared = ports_are_shared(dp.port);
	if (!dp.shared)
		ports_end(END_GOES_ON);
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
		if (sig != SERVICE_SIGNAL_RESTART)
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
	service_hint("STOPPING=1");
	log_info("main: stopping signal=%d", sig);
	stop(sig == SERVICE_SIGNAL_RESTART ? END_GOES_ON : END_FOR_GOOD);
	nics_end();
	return sig == SERVICE_SIGNAL_RESTART ? SERVICE_EXIT_RESTART : 0;
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
	return dp.predecessor >= 0 && rc == -ENOMEM ? SERVICE_EXIT_ROOM : 1;
}

static int
run(const struct config *conf)
{
	int rc;

	signals_begin(&dp.signals, &dp.born_with);
	dp.predecessor = service_take(SERVICE_SUCCESSOR);
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
	rc = rib_begin(conf);
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
	rc = dp.pool == NULL ? -ENOMEM : workers_setup(conf);
	if (rc == 0)
		rc = forwarders_make(conf);
	if (rc == 0 && dp.shared)
		rc = ports_begin(conf);
	if (rc == 0 && dp.predecessor >= 0)
		rc = take_over(conf);
	/* Of those that cannot be open twice transit waits: for them, and for nothing else. */
	if (rc == 0 && !dp.shared)
		rc = ports_begin(conf);
	if (rc == 0)
		rc = start(conf);
	if (rc < 0) {
		stop(END_FAILED);
		return failed(rc);
	}
	log_info("main: forwarding version=%s ports=%u cores=%u socket=%s", FPMDP_VERSION,
		 dp.n_port, conf->n_core, conf->control_socket);
	last_checkpoint_close();
	fdstore_keep_all(dp.port, PORT_SLOTS, rib_checkpoint_fd(&dp.worker[W_RIB]));
	nics_keep();
	service_say("READY=1");
	return live();
}

int
main(int argc, char **argv)
{
	struct options opt;
	int code;

	sink_stand_in();
	service_init();
	if (!options_parse(argc, argv, &opt, &code) || !options_load(&opt, &dp.conf, &code))
		return code;
	if (opt.prepare)
		return prepare_machine(&dp.conf);
	sink_begin();
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
