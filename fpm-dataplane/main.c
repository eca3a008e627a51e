/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm-dataplane: wiring only. Configuration, EAL, ports and TAPs, threads up in order, wait
 * for a signal, down in reverse. Only main exits; every failure says one sentence.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_version.h>
#include <urcu/urcu-qsbr.h>

#include "base/log.h"
#include "base/service.h"
#include "base/worker.h"
#include "config.h"
#include "deal.h"
#include "fib/fib.h"
#include "fpm/fpm.h"
#include "fwd/fwd.h"
#include "keep.h"
#include "manage.h"
#include "neigh/neigh.h"
#include "netns.h"
#include "plan.h"
#include "port/packet.h"
#include "port/port.h"
#include "port/rxq.h"
#include "port/watch.h"
#include "preflight.h"
#include "privilege.h"
#include "punt/punt.h"
#include "rib/rib.h"
#include "trace/trace.h"
#include "ui/ui.h"

enum { W_RIB, W_NEIGH, W_PUNT, W_FPM, W_UI, W_TRACE, W_MANAGE, N_WORKER };

static struct {
	struct config conf, running; /* with what was chosen here; as manage changes it */
	struct rte_mempool *pool;
	struct port port[PORT_SLOTS];
	bool tap_new[CONFIG_PORTS_MAX]; /* made by this start */
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
} dp;

static void
usage(FILE *out)
{
	fprintf(out,
		"usage: fpm-dataplane [-c FILE] [--check] [--poll] [--version] [--help]\n"
		"  -c, --config FILE  default /etc/fpm-dataplane/config.yaml\n"
		"      --check        read and check the configuration, start nothing\n"
		"      --poll         never sleep, as `idle: poll` in the file\n");
}

/*
 * lcore 0 is main, where plan_cores() left it, and the mould of the control threads.
 * lcore k is forwarder k-1, pinned.
 */
static int
eal_start(const struct config *conf)
{
	char lcores[1024], mem[16], prefix[32];
	const char *argv[16 + 2 * CONFIG_PLUGINS_MAX];
	int argc = 0, n = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	n = snprintf(lcores, sizeof(lcores), "0@(");
	for (unsigned int cpu = 0, first = 1; cpu < CPU_SETSIZE && n < 900; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			n += snprintf(lcores + n, sizeof(lcores) - (size_t)n, "%s%u",
				      first ? "" : ",", cpu);
			first = 0;
		}
	n += snprintf(lcores + n, sizeof(lcores) - (size_t)n, ")");
	for (unsigned int i = 0; i < conf->n_core; i++)
		n += snprintf(lcores + n, sizeof(lcores) - (size_t)n, ",%u@%u", i + 1,
			      conf->core[i]);
	snprintf(mem, sizeof(mem), "%u", conf->memory_mib);
	snprintf(prefix, sizeof(prefix), "fdp%d", (int)getpid());
	argv[argc++] = "fpm-dataplane";
	argv[argc++] = "--lcores";
	argv[argc++] = lcores;
	argv[argc++] = "-m";
	argv[argc++] = mem;
	argv[argc++] = "--no-telemetry";
	argv[argc++] = "--log-level=*:error";
	if (conf->hugepages) {
		argv[argc++] = "--in-memory";
	} else {
		argv[argc++] = "--no-huge";
		argv[argc++] = "--no-shconf";
		argv[argc++] = "--file-prefix";
		argv[argc++] = prefix;
	}
	/* Only configured devices are attached: an empty allow list would probe them all. */
	argv[argc++] = "--allow=0000:00:00.0";
	for (unsigned int i = 0; i < conf->n_plugin; i++) {
		argv[argc++] = "-d";
		argv[argc++] = conf->plugin[i];
	}
	argv[argc] = NULL;
	if (rte_eal_init(argc, (char **)(uintptr_t)argv) < 0)
		return -rte_errno;
	/* Without shared configuration it stays empty, and the EAL never removes it. */
	if (!conf->hugepages)
		(void)rmdir(rte_eal_get_runtime_dir());
	return 0;
}

static int
pool_make(const struct config *conf)
{
	unsigned int room = RTE_MBUF_DEFAULT_DATAROOM, each, n;

	for (unsigned int i = 0; i < conf->n_port; i++)
		if (conf->port[i].mtu_bytes + 64 > room)
			room = RTE_ALIGN(conf->port[i].mtu_bytes + 64, 64);
	/* No packet crosses a page: without hugepages each takes whole ones. */
	each = room + RTE_PKTMBUF_HEADROOM + 256;
	if (!conf->hugepages)
		each = RTE_ALIGN(each, 4096);
	/* Three quarters of the memory are packets; the rest is queues and rings. */
	n = (unsigned int)((uint64_t)conf->memory_mib * 1024 * 1024 * 3 / 4 / each);
	if (n > 262143)
		n = 262143;
	dp.pool = rte_pktmbuf_pool_create("packets", n, 256, PACKET_PRIV_BYTES,
					  (uint16_t)(room + RTE_PKTMBUF_HEADROOM), 0);
	if (dp.pool == NULL) {
		log_error("main: packet buffers not made n=%u error=%s; is memory.size-mib "
			  "(%u) "
			  "there?",
			  n, rte_strerror(rte_errno), conf->memory_mib);
		return -rte_errno;
	}
	return 0;
}

static int
ports_open(const struct config *conf)
{
	struct port port;
	char why[256];
	int rc;

	for (unsigned int i = 0; i < conf->n_port; i++) {
		const struct config_port *cp = &conf->port[i];
		struct port_conf pc = {.tap = cp->tap,
				       .netns = conf->control_netns,
				       .device = cp->device,
				       .tap_fd = keep_take_tap(cp->tap),
				       .mtu_bytes = cp->mtu_bytes,
				       .n_rxq = cp->n_rxq != 0 ? cp->n_rxq : cp->n_core,
				       .n_txq = conf->n_core,
				       .interrupts = !conf->poll_always};

		dp.tap_new[i] = !preflight_if_exists(conf->control_netns, cp->tap);
		rc = port_open(&port, (uint16_t)(i + 1), &pc, dp.pool, why, sizeof(why));
		if (rc < 0) {
			log_error("%s:%d: port %s device %s: %s", conf->file, cp->pos.line,
				  cp->tap, cp->device, why);
			return rc;
		}
		port_publish(&dp.port[i], &port);
		dp.n_port++;
		log_info("port: up name=%s device=%s ifindex=%u queues=%u tap=%s", cp->tap,
			 cp->device, dp.port[i].tap.ifindex, dp.port[i].n_rxq,
			 dp.port[i].tap_kept ? "kept"
			 : dp.tap_new[i]     ? "made"
					     : "found");
	}
	return 0;
}

/* All but its queues: for those it need not stop. */
static int
forwarder_make(const struct config *conf, unsigned int i)
{
	struct fwd_conf *f = &dp.fwd[i];
	struct serving *s = &dp.serving[i];
	char name[16];
	int rc = fwd_rings_make(&dp.rings[i], i, &dp.gleaned[i].n);

	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "fwd-%u", i);
	*f = (struct fwd_conf){.fib = dp.fib,
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

/* Queues for which the file names a CPU first, then the others. */
static int
forwarders_plan(const struct config *conf)
{
	int rc = 0;

	for (unsigned int i = 0; i < conf->n_core && rc == 0; i++)
		rc = forwarder_make(conf, i);
	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int p = 0; p < dp.n_port && rc == 0; p++)
			rc = deal_begin(&dp.deal, &dp.port[p], &conf->port[p], turn == 0);
	if (rc < 0)
		log_error("main: forwarders not made error=%s", strerror(-rc));
	return rc;
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
			       .checkpoint_fd = service_take(KEEP_CHECKPOINT),
			       .checkpoint_max_age_s = conf->checkpoint_max_age_s,
			       .netns_id = netns_id(conf->control_netns)};
	int rc = rib_setup(&w[W_RIB], &rib);

	if (rc == 0)
		rc = fib_create(&dp.fib, rib_retire, &w[W_RIB]);
	if (rc < 0)
		return rc;
	rib_set_fib(&w[W_RIB], dp.fib);
	rc = worker_prepare(&w[W_RIB]);
	return rc < 0 ? rc : worker_launch(&w[W_RIB]);
}

static int
workers_setup(const struct config *conf)
{
	static char listen[CONFIG_LISTEN_STRLEN]; /* ui keeps it */
	struct worker *w = dp.worker;
	struct neigh_conf neigh = {.rib = &w[W_RIB],
				   .punt = &w[W_PUNT],
				   .netns = conf->control_netns,
				   .port = dp.port,
				   .n_port = PORT_SLOTS};
	struct punt_conf punt = {.neigh = &w[W_NEIGH],
				 .port = dp.port,
				 .n_port = PORT_SLOTS,
				 .rings = dp.rings,
				 .n_fwd = conf->n_core,
				 .pool = dp.pool};
	struct fpm_conf fpm = {.rib = &w[W_RIB],
			       .netns = conf->control_netns,
			       .listen = conf->fpm_listen,
			       .peer = conf->fpm_peer,
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
			     .netns = conf->control_netns,
			     .version = FPMDP_VERSION,
			     .dpdk = rte_version(),
			     .config_file = conf->file,
			     .fpm_listen = config_listen_str(&conf->fpm_listen, listen),
			     .hugepages = conf->hugepages,
			     .memory_mib = conf->memory_mib};
	struct manage_conf manage = {.running = &dp.running,
				     .rib = &w[W_RIB],
				     .fpm = &w[W_FPM],
				     .ports = {.port = dp.port,
					       .pool = dp.pool,
					       .deal = &dp.deal,
					       .interrupts = !conf->poll_always,
					       .neigh = &w[W_NEIGH],
					       .punt = &w[W_PUNT],
					       .last_ifidx = (uint16_t)dp.n_port}};
	int rc;

	neigh.fib = punt.fib = ui.fib = trace.fib = dp.fib;
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

/* The kernel's state first, then the packets, then the world. */
static int
start(const struct config *conf)
{
	static const int order[] = {W_RIB, W_PUNT, W_NEIGH, W_TRACE, W_FPM, W_MANAGE, W_UI};
	unsigned int lcore;
	int rc;

	for (unsigned int i = 0; i < N_WORKER; i++) {
		struct worker *w = &dp.worker[order[i]];

		rc = order[i] == W_RIB ? worker_await(w) : worker_start(w);
		if (rc < 0)
			log_error("main: %s does not start error=%s", w->name,
				  strerror(-rc));
		if (rc < 0)
			return rc;
		if (order[i] == W_PUNT)
			plan_spare(w->thread);
	}
	lcore = 1;
	for (unsigned int i = 0; i < conf->n_core; i++, lcore++)
		rte_eal_remote_launch(fwd_main, &dp.fwd[i], lcore);
	return 0;
}

/* TAPs outlive a daemon that ran; a start that failed takes away again what it made. */
static void
ports_close(bool failed)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		struct port *port = &dp.port[i];

		if (!port_is_there(port))
			continue;
		if (failed && dp.tap_new[i])
			tap_destroy(&port->tap);
		port_close(port);
	}
}

static void
stop(bool failed)
{
	static const int order[] = {W_UI, W_MANAGE, W_FPM, W_TRACE, W_NEIGH, W_PUNT, W_RIB};

	for (unsigned int i = 0; i < 3; i++)
		worker_stop(&dp.worker[order[i]]);
	atomic_store(&dp.stop_fwd, true);
	for (unsigned int i = 0; i < dp.conf.n_core; i++)
		idle_wake(&dp.serving[i].idle);
	rte_eal_mp_wait_lcore();
	for (unsigned int i = 3; i < N_WORKER; i++)
		worker_stop(&dp.worker[order[i]]);
	/* All callbacks have posted their reclaims before the mailboxes go. */
	urcu_qsbr_barrier();
	for (unsigned int i = 0; i < N_WORKER; i++)
		worker_free(&dp.worker[order[i]]);
	ui_teardown(&dp.worker[W_UI]);
	manage_teardown(&dp.worker[W_MANAGE]);
	trace_teardown(&dp.worker[W_TRACE]);
	fpm_teardown(&dp.worker[W_FPM]);
	punt_teardown(&dp.worker[W_PUNT]);
	neigh_teardown(&dp.worker[W_NEIGH]);
	rib_teardown(&dp.worker[W_RIB]);
	ports_close(failed);
	if (dp.fib != NULL)
		fib_destroy(dp.fib);
	watch_free(dp.watch);
	for (unsigned int i = 0; i < CONFIG_CORES_MAX; i++) {
		serve_close(&dp.serving[i]);
		fwd_rings_free(&dp.rings[i]);
	}
	rte_mempool_free(dp.pool);
	rte_eal_cleanup();
}

static int
run(const struct config *conf)
{
	sigset_t signals;
	int rc, sig = 0;

	/* Blocked before any thread is born: all inherit it, main alone waits. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SERVICE_SIGNAL_RESTART);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	privilege_drop();
	/* Its thread is born here: from a worker it would have that worker's name. */
	(void)urcu_qsbr_get_default_call_rcu_data();
	if (preflight(conf) < 0)
		return 1;
	rc = rib_begin(conf);
	if (rc < 0) {
		log_error("main: rib does not start error=%s", strerror(-rc));
		return 1;
	}
	rc = eal_start(conf);
	if (rc < 0) {
		worker_stop(&dp.worker[W_RIB]);
		log_error("main: DPDK does not start error=%s%s", rte_strerror(-rc),
			  conf->hugepages ? "; memory.hugepages is true: are there any?"
					  : "");
		return 1;
	}
	policer_init(rte_get_tsc_hz(), conf->policer);
	dp.deal = (struct deal){.serving = dp.serving,
				.cpu = dp.conf.core,
				.n_fwd = conf->n_core,
				.port = dp.port};
	for (unsigned int i = 0; i < conf->n_core; i++)
		dp.deal.node[i] = (int)rte_lcore_to_socket_id(i + 1);
	rc = pool_make(conf);
	if (rc == 0)
		rc = ports_open(conf);
	if (rc == 0)
		rc = workers_setup(conf);
	if (rc == 0)
		rc = forwarders_plan(conf);
	if (rc == 0)
		rc = start(conf);
	if (rc == 0) {
		log_info("main: forwarding version=%s ports=%u cores=%u socket=%s",
			 FPMDP_VERSION, dp.n_port, conf->n_core, conf->control_socket);
		keep_ready(dp.port, PORT_SLOTS, rib_checkpoint_fd(&dp.worker[W_RIB]));
		while ((sig = keep_wait(&signals, dp.worker, N_WORKER)) == SIGHUP)
			manage_reload(&dp.worker[W_MANAGE]);
		service_say("STOPPING=1");
		log_info("main: stopping signal=%d", sig);
	}
	stop(rc != 0);
	return rc != 0 ? 1 : sig == SERVICE_SIGNAL_RESTART ? SERVICE_EXIT_RESTART : 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"poll", no_argument, NULL, 'p'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *file = "/etc/fpm-dataplane/config.yaml";
	bool check = false, poll_always = false;
	int opt, errors;

	while ((opt = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			file = optarg;
			break;
		case 'k':
			check = true;
			break;
		case 'p':
			poll_always = true;
			break;
		case 'v':
			printf("fpm-dataplane %s, %s\n", FPMDP_VERSION, rte_version());
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc) {
		usage(stderr);
		return 2;
	}
	errors = config_load(file, &dp.conf, stderr);
	if (errors > 0) {
		fprintf(stderr, "%s: %d error%s, nothing started\n", file, errors,
			errors == 1 ? "" : "s");
		return 2;
	}
	if (check) {
		printf("%s: good: %u port%s\n", file, dp.conf.n_port,
		       dp.conf.n_port == 1 ? "" : "s");
		return 0;
	}
	service_init();
	log_set_level(dp.conf.log_level);
	dp.running = dp.conf;
	dp.conf.poll_always |= poll_always;
	plan_cores(dp.conf.core, &dp.conf.n_core);
	return run(&dp.conf);
}
